//! The versions of the protocol, and what differs between them.

mod by_version;
mod capabilities;
mod set;

use std::fmt;
use std::str::FromStr;

pub use by_version::ByVersion;
pub use set::Versions;

/// A supported version of the protocol.
///
/// Code that differs between versions asks for a capability, such as [`Version::has_groups`]. Only
/// code that reads or writes the bytes of messages asks for the version itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Version {
    /// OpenFlow 1.0.0, wire version 0x01.
    #[cfg_attr(feature = "serde", serde(rename = "1.0"))]
    V1_0,
    /// OpenFlow 1.3.5, wire version 0x04.
    #[cfg_attr(feature = "serde", serde(rename = "1.3"))]
    V1_3,
}

impl Version {
    /// All supported versions, lowest first.
    pub const ALL: [Version; 2] = [Version::V1_0, Version::V1_3];

    /// The version byte of the header.
    #[must_use]
    #[inline]
    pub const fn wire(self) -> u8 {
        match self {
            Version::V1_0 => 1,
            Version::V1_3 => 4,
        }
    }

    /// Returns the version of a header's first byte, if it is supported.
    #[must_use]
    #[inline]
    pub const fn from_wire(byte: u8) -> Option<Version> {
        match byte {
            1 => Some(Version::V1_0),
            4 => Some(Version::V1_3),
            _ => None,
        }
    }

    /// Returns its name: `1.3`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Version::V1_0 => "1.0",
            Version::V1_3 => "1.3",
        }
    }
}

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
#[error("{0:?} is not a supported OpenFlow version; give 1.0 or 1.3")]
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
