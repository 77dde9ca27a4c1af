//! A value for each version.

use std::ops::{Index, IndexMut};

use crate::Version;

/// A value for each supported version: `values[version]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByVersion<T>([T; Version::ALL.len()]);

impl<T> ByVersion<T> {
    /// Calls `value` for each version, lowest first.
    pub fn from_fn(value: impl FnMut(Version) -> T) -> Self {
        ByVersion(Version::ALL.map(value))
    }
}

/// Each version's number is its place in [`Version::ALL`].
const _: () = {
    let mut place = 0;
    while place < Version::ALL.len() {
        assert!(Version::ALL[place] as usize == place);
        place += 1;
    }
};

impl<T> Index<Version> for ByVersion<T> {
    type Output = T;

    #[inline]
    fn index(&self, version: Version) -> &T {
        &self.0[version as usize]
    }
}

impl<T> IndexMut<Version> for ByVersion<T> {
    #[inline]
    fn index_mut(&mut self, version: Version) -> &mut T {
        &mut self.0[version as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_its_own_value() {
        let mut values = ByVersion::from_fn(Version::wire);
        for version in Version::ALL {
            assert_eq!(values[version], version.wire());
            values[version] += 100;
        }
        assert_eq!(values, ByVersion::from_fn(|version| version.wire() + 100));
    }
}
