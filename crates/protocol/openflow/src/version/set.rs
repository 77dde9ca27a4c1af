//! Sets of versions.

use std::fmt;

use crate::Version;

/// A set of supported versions: at least one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Versions {
    /// One bit for each wire version, as in the bitmap of a hello (1.3.5 §7.5.1). Never 0.
    bits: u32,
}

const fn bit(version: Version) -> u32 {
    1 << version.wire()
}

impl Versions {
    /// All supported versions.
    pub const ALL: Versions = {
        let (mut bits, mut place) = (0, 0);
        while place < Version::ALL.len() {
            bits |= bit(Version::ALL[place]);
            place += 1;
        }
        Versions { bits }
    };

    /// Only this version.
    #[must_use]
    pub const fn only(version: Version) -> Self {
        Versions { bits: bit(version) }
    }

    /// These versions; `None` if there are none.
    #[must_use]
    pub fn of(versions: impl IntoIterator<Item = Version>) -> Option<Self> {
        Versions::from_bitmap(versions.into_iter().fold(0, |bits, version| bits | bit(version)))
    }

    /// The supported versions of a bitmap with one bit for each wire version (1.3.5 §7.5.1). `None`
    /// if none of them is supported.
    #[must_use]
    pub const fn from_bitmap(bits: u32) -> Option<Self> {
        match bits & Versions::ALL.bits {
            0 => None,
            bits => Some(Versions { bits }),
        }
    }

    /// One bit for each wire version, as in a hello (1.3.5 §7.5.1).
    #[must_use]
    pub const fn bitmap(self) -> u32 {
        self.bits
    }

    /// The versions in both sets; `None` if there are none.
    #[must_use]
    pub const fn and(self, other: Versions) -> Option<Self> {
        Versions::from_bitmap(self.bits & other.bits)
    }

    /// Returns whether the version is in the set.
    #[must_use]
    pub const fn contains(self, version: Version) -> bool {
        self.bits & bit(version) != 0
    }

    /// The versions, lowest first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Version> + use<> {
        Version::ALL.into_iter().filter(move |version| self.contains(*version))
    }

    /// The lowest version.
    #[must_use]
    pub const fn lowest(self) -> Version {
        let mut place = 0;
        while place + 1 < Version::ALL.len() && !self.contains(Version::ALL[place]) {
            place += 1;
        }
        Version::ALL[place]
    }

    /// The highest version.
    #[must_use]
    pub const fn highest(self) -> Version {
        let mut place = Version::ALL.len() - 1;
        while place > 0 && !self.contains(Version::ALL[place]) {
            place -= 1;
        }
        Version::ALL[place]
    }

    /// The highest version with at most this wire version, if any.
    #[must_use]
    pub fn highest_up_to(self, wire: u8) -> Option<Version> {
        self.iter().rfind(|version| version.wire() <= wire)
    }
}

/// All supported versions.
impl Default for Versions {
    fn default() -> Self {
        Versions::ALL
    }
}

impl From<Version> for Versions {
    fn from(version: Version) -> Self {
        Versions::only(version)
    }
}

/// Prints a list for sentences: `1.0 and 1.3`.
impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lowest, highest) = (self.lowest(), self.highest());
        for version in self.iter() {
            let before = match version {
                version if version == lowest => "",
                version if version == highest => " and ",
                _ => ", ",
            };
            write!(f, "{before}{version}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn any_versions() -> impl Strategy<Value = BTreeSet<Version>> {
        prop::collection::btree_set(prop::sample::select(&Version::ALL[..]), 0..=Version::ALL.len())
    }

    proptest! {
        #[test]
        fn it_is_a_set_that_is_never_empty(a in any_versions(), b in any_versions()) {
            let (set, other) = (Versions::of(a.iter().copied()), Versions::of(b.iter().copied()));
            prop_assert_eq!(set.is_none(), a.is_empty());
            let Some(set) = set else { return Ok(()) };
            prop_assert!(set.iter().eq(a.iter().copied()));
            prop_assert_eq!(Some(&set.lowest()), a.first());
            prop_assert_eq!(Some(&set.highest()), a.last());
            for version in Version::ALL {
                prop_assert_eq!(set.contains(version), a.contains(&version));
            }
            prop_assert_eq!(Versions::from_bitmap(set.bitmap()), Some(set));
            let Some(other) = other else { return Ok(()) };
            prop_assert_eq!(set.and(other), Versions::of(a.intersection(&b).copied()));
            prop_assert_eq!(set == other, a == b);
        }

        #[test]
        fn a_bitmap_keeps_the_supported_versions(bits: u32, wire: u8) {
            let named = |version: &Version| bits >> version.wire() & 1 != 0;
            let expected: Vec<_> = Version::ALL.into_iter().filter(named).collect();
            let set = Versions::from_bitmap(bits);
            prop_assert_eq!(set, Versions::of(expected.iter().copied()));
            let below = expected.iter().rev().find(|version| version.wire() <= wire);
            prop_assert_eq!(set.and_then(|set| set.highest_up_to(wire)), below.copied());
        }
    }

    #[test]
    fn it_prints_as_in_a_sentence() {
        assert_eq!(Versions::ALL.to_string(), "1.0 and 1.3");
        for version in Version::ALL {
            assert_eq!(Versions::from(version).to_string(), version.name());
        }
    }

    #[test]
    fn its_default_is_all_versions() {
        assert!(Versions::default().iter().eq(Version::ALL));
    }
}
