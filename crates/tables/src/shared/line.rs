//! One cache line of a shared table: three slots and a number that says whether somebody writes.
//!
//! The number is even while the line is at rest, and odd while one writer has it; whoever is done
//! leaves it two higher than it was. A reader takes what it needs between two looks at the number, and
//! believes it if both found the same even one. It writes nothing, so the line stays in the caches of
//! all cores that read it. (A sequence lock; the order of the accesses is that of Boehm 2012.)
//!
//! The number wraps around after 2^31 writes. A reader that slept through exactly so many of them,
//! between two loads, would believe a mixture.

use super::sync::{AtomicU32, AtomicU64, Ordering, fence};
use crate::stamp::{OCCUPIED, age, stamp};

/// Slots in a cache line of 64 bytes: 8 bytes of key, 8 of value, 4 of stamp each; and 4 for the number.
pub(super) const SLOTS_PER_LINE: usize = 3;

/// An entry as it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: u64,
    pub(super) value: u64,
    /// The tick at which it was last seen, with the top bit set; 0 in an empty slot.
    pub(super) stamp: u32,
}

impl Entry {
    #[inline(always)]
    pub(super) fn is_occupied(&self) -> bool {
        self.stamp & OCCUPIED != 0
    }
}

/// All slots of a line, read or held at one moment.
pub(super) type Slots = [Entry; SLOTS_PER_LINE];

#[repr(C, align(64))]
pub(super) struct Line {
    sequence: AtomicU32,
    stamps: [AtomicU32; SLOTS_PER_LINE],
    keys: [AtomicU64; SLOTS_PER_LINE],
    values: [AtomicU64; SLOTS_PER_LINE],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Line>() == 64);

/// All slots of a line at one moment, and the line's number at that moment.
pub(super) struct Snapshot<'l> {
    line: &'l Line,
    number: u32,
    pub(super) slots: Slots,
}

impl<'l> Snapshot<'l> {
    /// The slot of a key, and its entry.
    pub(super) fn find(&self, key: u64) -> Option<(usize, Entry)> {
        let mut slots = self.slots.into_iter().enumerate();
        slots.find(|(_, entry)| entry.is_occupied() && entry.key == key)
    }

    /// The first slot that holds no entry.
    pub(super) fn free(&self) -> Option<usize> {
        self.slots.iter().position(|entry| !entry.is_occupied())
    }

    /// Whether nobody has written since.
    pub(super) fn is_current(&self) -> bool {
        self.line.is_unchanged(self.number)
    }

    /// Takes the line for writing, if nobody has written since.
    pub(super) fn take(&self) -> Option<Held<'l>> {
        let (line, before) = (self.line, self.number);
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        line.sequence.compare_exchange(before, before.wrapping_add(1), acquire, relaxed).ok()?;
        // Who sees one of the writes to come will also see the odd number.
        fence(Ordering::Release);
        #[cfg(all(test, not(loom)))]
        crate::work::holds_one_more();
        Some(Held { line, before })
    }
}

impl Line {
    /// An empty line. (One of zeros is the same.)
    #[cfg(loom)]
    pub(super) fn empty() -> Self {
        Line {
            sequence: AtomicU32::new(0),
            stamps: std::array::from_fn(|_| AtomicU32::new(0)),
            keys: std::array::from_fn(|_| AtomicU64::new(0)),
            values: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// The likely entry of a key, for the way of nearly all look-ups: if this says `None`, it may be
    /// here all the same (the key zero, or a line that somebody writes).
    #[inline(always)]
    pub(super) fn likely(&self, key: u64) -> Option<(usize, Entry)> {
        let before = self.sequence.load(Ordering::Acquire);
        let slot = self.slot_of(key)?;
        let entry = self.load(slot);
        (self.is_unchanged(before)).then_some((slot, entry))
    }

    /// All slots at one moment; `None` if somebody writes.
    pub(super) fn snapshot(&self) -> Option<Snapshot<'_>> {
        #[cfg(all(test, not(loom)))]
        crate::work::reads_a_line();
        let number = self.sequence.load(Ordering::Acquire);
        let snapshot = Snapshot { line: self, number, slots: self.slots() };
        snapshot.is_current().then_some(snapshot)
    }

    /// Whether nobody wrote since the number was read, nor did then.
    #[inline(always)]
    pub(super) fn is_unchanged(&self, before: u32) -> bool {
        // What was read since is read before the number is.
        fence(Ordering::Acquire);
        // An odd number is never the same again without its lowest bit: one comparison for both.
        self.sequence.load(Ordering::Relaxed) == before & !1
    }

    /// Notes that an entry was seen at `now`. Nothing, if it is another one by now; and at most once a
    /// tick, since it is one write for all who read the line.
    #[inline(always)]
    pub(super) fn refresh(&self, slot: usize, seen: u32, now: u32) {
        if seen != stamp(now) {
            self.refresh_stamp(slot, seen, now);
        }
    }

    /// The same for a key, wherever it is in the line. In a race it may be another one that is marked, which was
    /// written just then and is as new.
    pub(super) fn refresh_key(&self, key: u64, now: u32) {
        for (slot, entry) in self.slots().into_iter().enumerate() {
            if entry.key == key {
                self.refresh(slot, entry.stamp, now);
            }
        }
    }

    #[cold]
    fn refresh_stamp(&self, slot: usize, seen: u32, now: u32) {
        // A slot that was emptied meanwhile stays empty: its stamp is not what was seen. A writer that
        // moves the entry at the same time may take the older stamp along, and no harm is done.
        if seen & OCCUPIED != 0
            && let Some(its) = self.stamps.get(slot)
        {
            let _lost =
                its.compare_exchange(seen, stamp(now), Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Whether an entry here seems to be more than `max_age` ticks old. Only a hint.
    pub(super) fn may_have_older(&self, now: u32, max_age: u32) -> bool {
        self.stamps.iter().any(|its| {
            let seen = its.load(Ordering::Relaxed);
            seen & OCCUPIED != 0 && age(seen, now) > max_age
        })
    }

    #[inline(always)]
    fn slot_of(&self, key: u64) -> Option<usize> {
        // Without a branch for each slot, which no predictor would guess.
        let [a, b, c] = &self.keys;
        let is = |its: &AtomicU64| u32::from(its.load(Ordering::Relaxed) == key);
        let same = is(a) | is(b) << 1 | is(c) << 2;
        (same != 0).then(|| same.trailing_zeros() as usize)
    }

    #[inline(always)]
    fn load(&self, slot: usize) -> Entry {
        // The compiler does not know that it is one of three.
        let slot = slot.min(SLOTS_PER_LINE - 1);
        Entry {
            key: self.keys[slot].load(Ordering::Relaxed),
            value: self.values[slot].load(Ordering::Relaxed),
            stamp: self.stamps[slot].load(Ordering::Relaxed),
        }
    }

    fn slots(&self) -> Slots {
        std::array::from_fn(|slot| self.load(slot))
    }
}

/// A line that one writer has until this is dropped: for a few stores, no more, since nobody reads it meanwhile.
pub(super) struct Held<'l> {
    line: &'l Line,
    before: u32,
}

impl Held<'_> {
    pub(super) fn put(&self, slot: usize, entry: Entry) {
        self.line.keys[slot].store(entry.key, Ordering::Relaxed);
        self.line.values[slot].store(entry.value, Ordering::Relaxed);
        // Not a mere store: a refresh that is going on comes before this or fails, also in loom's eyes, which
        // would let the refresh of an entry come after the entry was taken.
        let _refreshed = self.line.stamps[slot].swap(entry.stamp, Ordering::Relaxed);
    }

    /// Empties a slot.
    pub(super) fn clear(&self, slot: usize) {
        self.put(slot, Entry::default());
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.line.sequence.store(self.before.wrapping_add(2), Ordering::Release);
        #[cfg(all(test, not(loom)))]
        crate::work::holds_one_less();
    }
}
