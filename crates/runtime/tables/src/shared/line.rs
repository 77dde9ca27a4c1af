//! One cache line of a shared table: three slots and a sequence number that locks it.
//!
//! The number is even while the line is idle, and odd while a writer holds it. A writer leaves it
//! two higher. A reader loads the number, the entries, and the number again. The entries are valid
//! if both numbers are equal and even. A reader writes nothing, so the line stays in the caches of
//! all readers. (A sequence lock; the order of the accesses is that of Boehm 2012.)
//!
//! The number wraps around after 2^31 writes. A reader suspended between two loads for exactly that
//! many writes would accept a mixture.

use super::sync::{AtomicU32, AtomicU64, Ordering, fence};
use crate::stamp::{OCCUPIED, age, stamp};

/// Slots in a cache line of 64 bytes: 8 bytes of key, 8 of value, 4 of stamp each; the number: 4.
pub(super) const SLOTS_PER_LINE: usize = 3;

/// An entry as it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SharedEntry {
    pub(super) key: u64,
    pub(super) value: u64,
    /// Tick at which it was last seen, with the top bit set; 0 in an empty slot.
    pub(super) stamp: u32,
}

impl SharedEntry {
    #[inline(always)]
    pub(super) fn is_occupied(&self) -> bool {
        self.stamp & OCCUPIED != 0
    }
}

/// All slots of a line, read atomically.
pub(super) type Slots = [SharedEntry; SLOTS_PER_LINE];

#[repr(C, align(64))]
pub(super) struct SharedLine {
    sequence: AtomicU32,
    stamps: [AtomicU32; SLOTS_PER_LINE],
    keys: [AtomicU64; SLOTS_PER_LINE],
    values: [AtomicU64; SLOTS_PER_LINE],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<SharedLine>() == 64);

/// All slots of a line at one moment, and the line's number at that moment.
pub(super) struct LineSnapshot<'l> {
    line: &'l SharedLine,
    number: u32,
    pub(super) slots: Slots,
}

impl<'l> LineSnapshot<'l> {
    /// The slot of a key, and its entry.
    pub(super) fn find(&self, key: u64) -> Option<(usize, SharedEntry)> {
        let mut slots = self.slots.into_iter().enumerate();
        slots.find(|(_, entry)| entry.is_occupied() && entry.key == key)
    }

    /// The first slot without an entry.
    pub(super) fn free(&self) -> Option<usize> {
        self.slots.iter().position(|entry| !entry.is_occupied())
    }

    /// Returns whether the line is unchanged since the snapshot.
    pub(super) fn is_current(&self) -> bool {
        self.line.is_unchanged(self.number)
    }

    /// Locks the line for writing, if it is unchanged since the snapshot.
    pub(super) fn take(&self) -> Option<LockedLine<'l>> {
        let (line, before) = (self.line, self.number);
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        line.sequence.compare_exchange(before, before.wrapping_add(1), acquire, relaxed).ok()?;
        // A reader that sees one of the writes below also sees the odd number.
        fence(Ordering::Release);
        #[cfg(all(test, not(loom)))]
        crate::work::holds_one_more();
        Some(LockedLine { line, before })
    }
}

impl SharedLine {
    /// An empty line. (Zeroed memory is the same.)
    #[cfg(loom)]
    pub(super) fn empty() -> Self {
        SharedLine {
            sequence: AtomicU32::new(0),
            stamps: std::array::from_fn(|_| AtomicU32::new(0)),
            keys: std::array::from_fn(|_| AtomicU64::new(0)),
            values: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// A fast search for a key, enough for nearly all look-ups. A returned slot may be an empty one
    /// for the key zero. `None` may also mean that a thread is writing the line.
    #[inline(always)]
    pub(super) fn likely(&self, key: u64) -> Option<(usize, SharedEntry)> {
        let before = self.sequence.load(Ordering::Acquire);
        let slot = self.slot_of(key)?;
        let entry = self.load(slot);
        (self.is_unchanged(before)).then_some((slot, entry))
    }

    /// All slots at one moment; `None` if a thread is writing the line.
    pub(super) fn snapshot(&self) -> Option<LineSnapshot<'_>> {
        #[cfg(all(test, not(loom)))]
        crate::work::reads_a_line();
        let number = self.sequence.load(Ordering::Acquire);
        let snapshot = LineSnapshot { line: self, number, slots: self.slots() };
        snapshot.is_current().then_some(snapshot)
    }

    /// Returns whether the line was idle when the number was read, and is unchanged since.
    #[inline(always)]
    pub(super) fn is_unchanged(&self, before: u32) -> bool {
        // The entries are loaded before the number is loaded again.
        fence(Ordering::Acquire);
        // An odd number never equals itself without its lowest bit: one comparison checks both.
        self.sequence.load(Ordering::Relaxed) == before & !1
    }

    /// Records that an entry was seen at `now`, unless the slot has changed. Writes at most once a
    /// tick, since each write invalidates the line in the caches of all its readers.
    #[inline(always)]
    pub(super) fn refresh(&self, slot: usize, seen: u32, now: u32) {
        if seen != stamp(now) {
            self.refresh_stamp(slot, seen, now);
        }
    }

    /// Records that a key was seen, in any slot of the line. In a race it may mark another entry,
    /// which was written just then and is as new.
    pub(super) fn refresh_key(&self, key: u64, now: u32) {
        for (slot, entry) in self.slots().into_iter().enumerate() {
            if entry.key == key {
                self.refresh(slot, entry.stamp, now);
            }
        }
    }

    #[cold]
    fn refresh_stamp(&self, slot: usize, seen: u32, now: u32) {
        // A slot that was emptied meanwhile stays empty: its stamp differs from `seen`. A writer
        // that moves the entry at the same time may keep the older stamp, which does no harm.
        if seen & OCCUPIED != 0
            && let Some(its) = self.stamps.get(slot)
        {
            let _lost =
                its.compare_exchange(seen, stamp(now), Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Returns whether an entry seems to be more than `max_age` ticks old. Only a hint.
    pub(super) fn may_have_older(&self, now: u32, max_age: u32) -> bool {
        self.stamps.iter().any(|its| {
            let seen = its.load(Ordering::Relaxed);
            seen & OCCUPIED != 0 && age(seen, now) > max_age
        })
    }

    #[inline(always)]
    fn slot_of(&self, key: u64) -> Option<usize> {
        // No branch for each slot: no predictor could guess it.
        let [a, b, c] = &self.keys;
        let is = |its: &AtomicU64| u32::from(its.load(Ordering::Relaxed) == key);
        let same = is(a) | is(b) << 1 | is(c) << 2;
        (same != 0).then(|| same.trailing_zeros() as usize)
    }

    #[inline(always)]
    fn load(&self, slot: usize) -> SharedEntry {
        // Shows the compiler that the slot is within bounds.
        let slot = slot.min(SLOTS_PER_LINE - 1);
        SharedEntry {
            key: self.keys[slot].load(Ordering::Relaxed),
            value: self.values[slot].load(Ordering::Relaxed),
            stamp: self.stamps[slot].load(Ordering::Relaxed),
        }
    }

    fn slots(&self) -> Slots {
        std::array::from_fn(|slot| self.load(slot))
    }
}

/// A line locked by one writer until this is dropped. Held for a few stores only, since no thread
/// can read the line meanwhile.
pub(super) struct LockedLine<'l> {
    line: &'l SharedLine,
    before: u32,
}

impl LockedLine<'_> {
    pub(super) fn put(&self, slot: usize, entry: SharedEntry) {
        self.line.keys[slot].store(entry.key, Ordering::Relaxed);
        self.line.values[slot].store(entry.value, Ordering::Relaxed);
        // A swap, not a store: a concurrent refresh comes before it or fails. Loom's model would
        // otherwise let the refresh of an entry come after its removal.
        let _refreshed = self.line.stamps[slot].swap(entry.stamp, Ordering::Relaxed);
    }

    /// Empties a slot.
    pub(super) fn clear(&self, slot: usize) {
        self.put(slot, SharedEntry::default());
    }
}

impl Drop for LockedLine<'_> {
    fn drop(&mut self) {
        self.line.sequence.store(self.before.wrapping_add(2), Ordering::Release);
        #[cfg(all(test, not(loom)))]
        crate::work::holds_one_less();
    }
}
