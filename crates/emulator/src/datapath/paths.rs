//! Which flows packets with one key go through: a memory of look-ups.
//!
//! Packets of a conversation have one key, and go through the same flows until a table changes. What
//! a packet's whole key is found by costs one hash, where each table costs one for each of its masks.
//!
//! A path goes only as far as the key of the packet at its next table follows from the key at the
//! first: a tag that is removed shows fields that the key did not have. From there on tables are
//! asked.

use hashbrown::HashTable;

use super::flows::FlowId;
use crate::packet::{KEY_WORDS, Key};

/// Paths that a switch remembers; with one more it forgets them all. They take some 150 bytes each.
const REMEMBERED: usize = 1_024;
/// Tables that a path goes through at most.
const LONGEST: usize = 4;

/// The flows that a packet matches, in the order of its tables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    flows: [Option<FlowId>; LONGEST],
}

impl Path {
    /// The flow of the packet's table with this place in its way.
    #[inline]
    pub(super) fn flow(&self, place: usize) -> Option<FlowId> {
        *self.flows.get(place)?
    }

    /// Notes it.
    #[inline]
    pub(super) fn note(&mut self, place: usize, flow: FlowId) {
        if let Some(entry) = self.flows.get_mut(place) {
            *entry = Some(flow);
        }
    }
}

/// The paths that are remembered.
#[derive(Debug)]
pub(super) struct Paths {
    known: HashTable<(Key, Path)>,
    capacity: usize,
    /// The state of the tables that they are true for.
    changes: u64,
}

/// A copy of a switch begins to remember for itself.
impl Clone for Paths {
    fn clone(&self) -> Self {
        Paths::new(self.capacity)
    }
}

impl Default for Paths {
    fn default() -> Self {
        Paths::new(REMEMBERED)
    }
}

impl Paths {
    pub(super) fn new(capacity: usize) -> Self {
        Paths { known: HashTable::new(), capacity, changes: 0 }
    }

    /// The path of packets with this key, if it is known and the tables are as they were.
    #[inline]
    pub(super) fn find(&mut self, key: &Key, changes: u64) -> Option<Path> {
        if self.changes != changes {
            self.known.clear();
            self.changes = changes;
        }
        self.known.find(hash(key), |(known, _)| known == key).map(|(_, path)| *path)
    }

    /// Remembers a path that [`Paths::find`] did not know.
    pub(super) fn remember(&mut self, key: &Key, path: Path) {
        if self.known.len() >= self.capacity {
            self.known.clear();
        }
        if self.capacity > 0 {
            self.known.insert_unique(hash(key), (*key, path), |(key, _)| hash(key));
        }
    }
}

/// A folded multiplication for every two words, the way of wyhash. It is not keyed, so that runs
/// repeat.
#[inline]
fn hash(key: &Key) -> u64 {
    const SEED: u64 = 0x243f_6a88_85a3_08d3;
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    // An odd number of words: the last has no other.
    const { assert!(KEY_WORDS % 2 == 1) };
    let (pairs, last) = key.words().as_chunks::<2>();
    let mix = |hash: u64, a: u64, b: u64| {
        let product = u128::from(a ^ FACTOR) * u128::from(b ^ hash);
        hash.rotate_left(5) ^ (product as u64) ^ ((product >> 64) as u64)
    };
    let hash = pairs.iter().fold(SEED, |hash, [a, b]| mix(hash, *a, *b));
    mix(hash, last.first().copied().unwrap_or_default(), SEED)
}
