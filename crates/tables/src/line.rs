//! One cache line of a table: four slots.
//!
//! Keys, values and stamps lie in arrays of their own, so that the four keys are compared without a
//! branch for each: in which of its slots an entry lies is a coin toss that no branch predictor wins.

use crate::stamp::OCCUPIED;

/// Slots in a cache line of 64 bytes: 8 bytes of key, 4 of value, 4 of stamp each.
pub(crate) const SLOTS_PER_LINE: usize = 4;
/// Bytes of a line, whatever its values are.
pub(crate) const LINE_BYTES: usize = 64;

/// An entry as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<V> {
    /// The key.
    pub key: u64,
    /// The value.
    pub value: V,
    /// The tick at which the entry was last inserted, updated or touched, with the top bit set.
    pub(crate) stamp: u32,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line<V> {
    keys: [u64; SLOTS_PER_LINE],
    values: [V; SLOTS_PER_LINE],
    stamps: [u32; SLOTS_PER_LINE],
}

impl<V: Copy + Default + PartialEq> Line<V> {
    pub(crate) fn empty() -> Self {
        const { assert!(size_of::<Self>() == LINE_BYTES, "a value is at most four bytes") }
        Self {
            keys: [0; SLOTS_PER_LINE],
            values: [V::default(); SLOTS_PER_LINE],
            stamps: [0; SLOTS_PER_LINE],
        }
    }

    /// The slot of `key`.
    #[inline(always)]
    pub(crate) fn find(&self, key: u64) -> Option<usize> {
        // The one slot that can have the key, or slot 0: a sum rather than a test for each.
        let [_, b, c, d] = self.keys.map(|other| usize::from(other == key));
        let slot = (b + 2 * c + 3 * d) % SLOTS_PER_LINE;
        if self.keys[slot] == key && self.stamps[slot] & OCCUPIED != 0 {
            return Some(slot);
        }
        if key == 0 { self.find_zero() } else { None }
    }

    /// The slot of the key that empty slots have too.
    #[cold]
    fn find_zero(&self) -> Option<usize> {
        (0..SLOTS_PER_LINE).find(|&slot| self.keys[slot] == 0 && self.stamps[slot] & OCCUPIED != 0)
    }

    /// The first slot that holds no entry.
    #[inline]
    pub(crate) fn free(&self) -> Option<usize> {
        lowest(!self.occupied() & ((1 << SLOTS_PER_LINE) - 1))
    }

    #[inline]
    fn occupied(&self) -> u32 {
        (0..SLOTS_PER_LINE).fold(0, |mask, slot| mask | (self.stamps[slot] >> 31) << slot)
    }

    /// The slots that hold an entry, as they are now, with their entries.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, Entry<V>)> + use<'_, V> {
        (0..SLOTS_PER_LINE)
            .filter(|&slot| self.stamps[slot] & OCCUPIED != 0)
            .map(|slot| (slot, self.entry(slot)))
    }

    #[inline]
    pub(crate) fn entry(&self, slot: usize) -> Entry<V> {
        Entry { key: self.keys[slot], value: self.values[slot], stamp: self.stamps[slot] }
    }

    pub(crate) fn put(&mut self, slot: usize, entry: Entry<V>) {
        self.keys[slot] = entry.key;
        self.values[slot] = entry.value;
        self.stamps[slot] = entry.stamp;
    }

    /// Takes a new value and stamp into a slot. Writes only what differs: most hits come within the
    /// tick of the last one, and a line that stays clean needs no write-back.
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
