//! One cache line of a table: four slots.
//!
//! Keys, values and stamps are in separate arrays, and so are the halves of the keys: the four keys
//! are compared at once, without a branch for each. No predictor can guess the slot of an entry.

use crate::four::{Four, same};
use crate::stamp::{OCCUPIED, Stamp, age};

/// Slots in a cache line of 64 bytes: each has 8 bytes of key, 4 of value, 4 of stamp.
pub(crate) const SLOTS_PER_LINE: usize = 4;
/// Bytes of a line, for any type of value.
pub(crate) const LINE_BYTES: usize = 64;

/// An entry as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<V> {
    /// The key.
    pub key: u64,
    /// The value.
    pub value: V,
    /// Tick of the last insertion, update or touch, with the top bit set.
    pub(crate) stamp: u32,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line<V> {
    /// The lower and the upper halves of the keys.
    keys: [Four; 2],
    values: [V; SLOTS_PER_LINE],
    stamps: [u32; SLOTS_PER_LINE],
}

impl<V: Copy + Default + PartialEq> Line<V> {
    pub(crate) fn empty() -> Self {
        const { assert!(size_of::<Self>() == LINE_BYTES, "a value is at most four bytes") }
        Self {
            keys: [Four([0; SLOTS_PER_LINE]); 2],
            values: [V::default(); SLOTS_PER_LINE],
            stamps: [0; SLOTS_PER_LINE],
        }
    }

    /// The slot of `key`.
    #[inline]
    pub(crate) fn find(&self, key: u64) -> Option<usize> {
        lowest(same(&self.keys, key) & self.occupied())
    }

    /// A slot with `key`. It may be an empty one if `key` is zero: empty slots have the key zero.
    #[inline(always)]
    fn likely(&self, key: u64) -> Option<usize> {
        lowest(same(&self.keys, key))
    }

    /// Returns whether `key` is in this line. May wrongly return true for the key zero.
    #[inline(always)]
    pub(crate) fn may_have(&self, key: u64) -> bool {
        same(&self.keys, key) != 0
    }

    /// Returns the value of `key`, if it is in this line and was last seen at most `max_age` ticks
    /// before `now`. Reads `max_age` only if needed. May return `None` for a present key zero.
    #[inline(always)]
    pub(crate) fn fresh(&self, key: u64, now: Stamp, max_age: &u32) -> Option<V> {
        let slot = self.likely(key)?;
        let seen = self.stamps[slot];
        // Most hits come within the tick of the last one.
        if seen != now.0 && (seen & OCCUPIED == 0 || age(seen, now.0) > *max_age) {
            return None;
        }
        Some(self.values[slot])
    }

    /// Returns the value of `key`, if it is in this line, and stamps it with `now`. May return
    /// `None` for a key zero that is present.
    #[inline(always)]
    pub(crate) fn touch(&mut self, key: u64, now: Stamp) -> Option<V> {
        let slot = self.likely(key)?;
        // Written only if it differs: a clean line needs no write-back.
        if self.stamps[slot] != now.0 {
            if self.stamps[slot] & OCCUPIED == 0 {
                return None;
            }
            self.stamps[slot] = now.0;
        }
        Some(self.values[slot])
    }

    /// The first slot without an entry.
    #[inline]
    pub(crate) fn free(&self) -> Option<usize> {
        lowest(!self.occupied() & ((1 << SLOTS_PER_LINE) - 1))
    }

    #[inline]
    fn occupied(&self) -> u32 {
        (0..SLOTS_PER_LINE).fold(0, |mask, slot| mask | (self.stamps[slot] >> 31) << slot)
    }

    /// Iterates over the occupied slots with their entries.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, Entry<V>)> + use<'_, V> {
        (0..SLOTS_PER_LINE)
            .filter(|&slot| self.stamps[slot] & OCCUPIED != 0)
            .map(|slot| (slot, self.entry(slot)))
    }

    #[inline]
    pub(crate) fn entry(&self, slot: usize) -> Entry<V> {
        let [low, high] = self.keys;
        let key = u64::from(high.0[slot]) << 32 | u64::from(low.0[slot]);
        Entry { key, value: self.values[slot], stamp: self.stamps[slot] }
    }

    pub(crate) fn put(&mut self, slot: usize, entry: Entry<V>) {
        let [low, high] = &mut self.keys;
        (low.0[slot], high.0[slot]) = (entry.key as u32, (entry.key >> 32) as u32);
        self.values[slot] = entry.value;
        self.stamps[slot] = entry.stamp;
    }

    /// Stores a new value and stamp in a slot. Writes only what differs: most hits come within the
    /// tick of the last one, and a clean line needs no write-back.
    #[inline]
    pub(crate) fn refresh(&mut self, slot: usize, value: V, stamp: u32) {
        if self.values[slot] != value {
            self.values[slot] = value;
        }
        if self.stamps[slot] != stamp {
            self.stamps[slot] = stamp;
        }
    }

    /// Empties a slot.
    pub(crate) fn take(&mut self, slot: usize) -> Entry<V> {
        let entry = self.entry(slot);
        self.put(slot, Entry { key: 0, value: V::default(), stamp: 0 });
        entry
    }
}

#[inline]
fn lowest(mask: u32) -> Option<usize> {
    // The `%` tells the compiler that the slot is within the line.
    (mask != 0).then(|| mask.trailing_zeros() as usize % SLOTS_PER_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_zero_is_a_key_and_an_empty_slot_has_none() {
        let mut line = Line::<u32>::empty();
        assert_eq!(line.find(0), None);
        line.put(2, Entry { key: 0, value: 9, stamp: OCCUPIED });
        assert_eq!(line.find(0), Some(2));
        assert_eq!(line.take(2).value, 9);
        assert_eq!(line.find(0), None);
        assert_eq!((line.touch(0, Stamp::at(1)), line.fresh(0, Stamp::at(1), &1)), (None, None));
    }

    #[test]
    fn a_key_is_compared_whole_and_each_slot_is_looked_at() {
        let keys = [7, 7 << 32, 7 << 32 | 7, u64::MAX];
        let mut line = Line::<u32>::empty();
        for (slot, key) in keys.into_iter().enumerate() {
            assert_eq!(line.find(key), None);
            line.put(slot, Entry { key, value: slot as u32, stamp: Stamp::at(5).0 });
            assert_eq!((line.find(key), line.entry(slot).key), (Some(slot), key));
        }
        for (slot, key) in keys.into_iter().enumerate() {
            let value = Some(slot as u32);
            let fresh = |key, now, max_age| line.fresh(key, Stamp::at(now), &max_age);
            assert_eq!((fresh(key, 5, 0), fresh(key, 7, 2)), (value, value));
            assert_eq!((fresh(key, 8, 2), fresh(key ^ 1, 5, 2)), (None, None));
            assert_eq!(
                (line.touch(key, Stamp::at(8)), line.touch(key ^ 1, Stamp::at(8))),
                (value, None)
            );
            assert_eq!(line.fresh(key, Stamp::at(8), &0), value);
        }
    }

    #[test]
    fn a_full_line_has_no_free_slot() {
        let mut line = Line::<u32>::empty();
        for slot in 0..SLOTS_PER_LINE {
            assert_eq!(line.free(), Some(slot));
            line.put(slot, Entry { key: slot as u64, value: 0, stamp: OCCUPIED });
        }
        assert_eq!(line.free(), None);
        assert_eq!(line.entries().count(), SLOTS_PER_LINE);
        line.take(1);
        assert_eq!(line.free(), Some(1));
    }
}
