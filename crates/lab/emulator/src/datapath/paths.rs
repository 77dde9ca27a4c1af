//! A cache of look-ups: the flows that packets with one key match.
//!
//! The packets of a conversation have one key, and match the same flows until a table changes. A
//! look-up by the whole key costs one hash; in a table it costs one hash for each mask.
//!
//! A path ends where the key at the next table no longer follows from the key at the first table:
//! popping a tag shows fields that the key did not have. From there on the tables are searched.

use hashbrown::HashTable;

use super::flows::FlowIndex;
use crate::packet::{KEY_WORDS, PacketKey};

/// Maximum number of paths in the cache, some 150 bytes each. When it is full, all are removed.
const REMEMBERED: usize = 1_024;
/// Maximum number of tables in a path.
const LONGEST: usize = 4;

/// The flows that a packet matches, in the order of its tables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CachedPath {
    flows: [Option<FlowIndex>; LONGEST],
}

impl CachedPath {
    /// The flow at this position of the path.
    #[inline]
    pub(super) fn flow(&self, place: usize) -> Option<FlowIndex> {
        *self.flows.get(place)?
    }

    /// Records the flow at this position of the path.
    #[inline]
    pub(super) fn note(&mut self, place: usize, flow: FlowIndex) {
        if let Some(entry) = self.flows.get_mut(place) {
            *entry = Some(flow);
        }
    }
}

/// The cached paths.
#[derive(Debug)]
pub(super) struct PathCache {
    known: HashTable<(PacketKey, CachedPath)>,
    capacity: usize,
    /// The tables' change count for which they are valid.
    changes: u64,
}

/// A copy of a switch starts with an empty cache.
impl Clone for PathCache {
    fn clone(&self) -> Self {
        PathCache::new(self.capacity)
    }
}

impl Default for PathCache {
    fn default() -> Self {
        PathCache::new(REMEMBERED)
    }
}

impl PathCache {
    pub(super) fn new(capacity: usize) -> Self {
        PathCache { known: HashTable::new(), capacity, changes: 0 }
    }

    /// The path of packets with this key, if it is cached and the tables have not changed.
    #[inline]
    pub(super) fn find(&mut self, key: &PacketKey, changes: u64) -> Option<CachedPath> {
        if self.changes != changes {
            self.known.clear();
            self.changes = changes;
        }
        self.known.find(hash(key), |(known, _)| known == key).map(|(_, path)| *path)
    }

    /// Caches a path that [`PathCache::find`] did not return.
    pub(super) fn insert(&mut self, key: &PacketKey, path: CachedPath) {
        if self.known.len() >= self.capacity {
            self.known.clear();
        }
        if self.capacity > 0 {
            self.known.insert_unique(hash(key), (*key, path), |(key, _)| hash(key));
        }
    }
}

/// Hashes a key: a folded multiplication for every two words, as in wyhash. It has no secret, so
/// that runs repeat.
#[inline]
fn hash(key: &PacketKey) -> u64 {
    const SEED: u64 = 0x243f_6a88_85a3_08d3;
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    // The number of words is odd: the last has no partner.
    const { assert!(KEY_WORDS % 2 == 1) };
    let (pairs, last) = key.words().as_chunks::<2>();
    let mix = |hash: u64, a: u64, b: u64| {
        let product = u128::from(a ^ FACTOR) * u128::from(b ^ hash);
        hash.rotate_left(5) ^ (product as u64) ^ ((product >> 64) as u64)
    };
    let hash = pairs.iter().fold(SEED, |hash, [a, b]| mix(hash, *a, *b));
    mix(hash, last.first().copied().unwrap_or_default(), SEED)
}
