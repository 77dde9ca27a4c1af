//! The versions of the protocol, and what differs between them.

mod by_version;
mod capabilities;
mod set;

use std::fmt;
use std::str::FromStr;

pub use by_version::ByVersion;
pub use set::Versions;

/// One row per version: variant, name, minor number, and how its messages are laid out.
macro_rules! versions {
    ($($(#[$doc:meta])* $version:ident $name:literal $minor:literal $family:ident;)*) => {
        /// A supported version of the protocol.
        ///
        /// Code that differs between versions asks for a capability, such as
        /// [`Version::has_groups`]. Only code that reads or writes the bytes of messages asks for
        /// the [`Family`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        pub enum Version {
            $($(#[$doc])* #[cfg_attr(feature = "serde", serde(rename = $name))] $version,)*
        }

        impl Version {
            /// All supported versions, lowest first.
            pub const ALL: [Version; [$($name),*].len()] = [$(Version::$version),*];

            /// Its minor number: 3 of 1.3.
            #[must_use]
            #[inline]
            pub const fn minor(self) -> u8 {
                match self { $(Version::$version => $minor,)* }
            }

            /// How its messages are laid out.
            #[must_use]
            #[inline]
            pub const fn family(self) -> Family {
                match self { $(Version::$version => Family::$family,)* }
            }

            /// Returns its name: `1.3`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Version::$version => $name,)* }
            }

            /// Returns the version of a header's first byte, if it is supported.
            #[must_use]
            #[inline]
            pub const fn from_wire(byte: u8) -> Option<Version> {
                match byte {
                    $(byte if byte == $minor + 1 => Some(Version::$version),)*
                    _ => None,
                }
            }
        }
    };
}

versions! {
    /// OpenFlow 1.0.0, wire version 0x01.
    V1_0 "1.0" 0 Fixed;
    /// OpenFlow 1.3.5, wire version 0x04.
    V1_3 "1.3" 3 Oxm;
}

impl Version {
    /// The highest supported version.
    pub const HIGHEST: Version = Version::ALL[Version::ALL.len() - 1];

    /// The version byte of the header.
    #[must_use]
    #[inline]
    pub const fn wire(self) -> u8 {
        self.minor() + 1
    }
}

/// How the messages of a version are laid out. Versions of one family differ in single messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Structures of fixed length, and actions without instructions: 1.0.
    Fixed,
    /// Matches are lists of fields, OXM (1.3.5 §7.2.3.2), and flows have instructions: 1.2 and
    /// later.
    Oxm,
}

/// Chooses by the minor version: `by_minor!(0 => 3, 1.. => 5)` is a function that returns
/// `Some(3)` for 1.0, and `Some(5)` from 1.1 on. Without a row that fits it returns `None`.
macro_rules! by_minor {
    ($($minors:pat => $value:expr),* $(,)?) => {
        |minor: u8| {
            #[allow(
                unreachable_patterns, clippy::match_single_binding,
                reason = "some rows are of all versions, others of none"
            )]
            match minor { $($minors => Some($value),)* _ => None }
        }
    };
}
pub(crate) use by_minor;

/// Evaluates an expression with the version as a constant, so that the compiler makes code for each
/// version. Offsets and lengths are then constants in a hot loop.
///
/// ```
/// use bellrock_openflow::{Version, by_constant_version};
///
/// let version = Version::V1_3;
/// let byte = by_constant_version!(version, VERSION => const { VERSION.wire() });
/// assert_eq!(byte, 4);
/// ```
#[macro_export]
macro_rules! by_constant_version {
    ($version:expr, $constant:ident => $value:expr) => {
        match $version {
            $crate::Version::V1_0 => {
                const $constant: $crate::Version = $crate::Version::V1_0;
                $value
            }
            $crate::Version::V1_3 => {
                const $constant: $crate::Version = $crate::Version::V1_3;
                $value
            }
        }
    };
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that is not a supported version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a supported OpenFlow version; the versions are {all}", all = Versions::ALL)]
pub struct ParseVersionError(String);

impl FromStr for Version {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, ParseVersionError> {
        let named = Version::ALL.into_iter().find(|version| version.name() == text);
        named.ok_or_else(|| ParseVersionError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_parse_as_they_print() {
        for version in Version::ALL {
            assert_eq!(version.to_string().parse(), Ok(version));
            assert_eq!(Version::from_wire(version.wire()), Some(version));
            let error = "1.1".parse::<Version>().unwrap_err().to_string();
            assert!(error.contains(version.name()), "{error}");
        }
    }

    #[test]
    fn all_versions_are_listed_lowest_first() {
        assert!(Version::ALL.is_sorted_by_key(|version| version.wire()));
        let known = (0..=u8::MAX).filter_map(Version::from_wire);
        assert!(known.eq(Version::ALL));
    }

    #[test]
    fn the_constant_is_the_version() {
        for version in Version::ALL {
            assert_eq!(by_constant_version!(version, VERSION => VERSION), version);
        }
    }
}
