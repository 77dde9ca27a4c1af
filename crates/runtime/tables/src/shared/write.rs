//! Changes of a shared table.
//!
//! A writer decides from snapshots of lines, and locks the lines only for the stores
//! ([`LineSnapshot::take`]). That fails if a line has changed. Changing or removing an entry locks
//! its line; moving one locks the old and the new line. Inserting a key locks both its lines, so
//! that two threads that insert the same key notice each other. A search for a free slot in full
//! lines may read many lines; it locks none meanwhile.

use super::line::{LineSnapshot, LockedLine, SharedEntry, SharedLine};
use super::sync::{AtomicU64, Ordering, spin_loop};
use super::{LookUp, MAX_TRIES, NotReplaced, SharedInsert, SharedTable};
use crate::seed::Hashed;
use crate::stamp::{age, stamp};

/// Maximum number of entries moved, one after another, to free a slot. With two, one of three
/// tables of 300,000 entries could not be filled to its bound; with three, all could.
const MAX_MOVES: usize = 3;

/// Lines that an eviction reads to find an old entry, besides those of the new key. With two
/// entries in each, the evicted entry is among the oldest twentieth on average.
const EVICT_SAMPLE_LINES: usize = 8;

/// Snapshots of both lines of a key; a table of one line has no second.
struct Homes<'t> {
    indices: [usize; 2],
    first: LineSnapshot<'t>,
    second: Option<LineSnapshot<'t>>,
}

/// A slot of one of the two lines.
#[derive(Clone, Copy)]
struct LineSlot {
    in_second: bool,
    slot: usize,
}

impl<'t> Homes<'t> {
    fn lines(&self) -> impl Iterator<Item = (bool, &LineSnapshot<'t>)> {
        let second = self.second.as_ref().map(|second| (true, second));
        std::iter::once((false, &self.first)).chain(second)
    }

    fn find(&self, key: u64) -> Option<SharedEntry> {
        self.lines().find_map(|(_, line)| line.find(key)).map(|(_, entry)| entry)
    }

    /// A free slot, in the first line if possible, so that most look-ups end there.
    fn free(&self) -> Option<LineSlot> {
        self.lines().find_map(|(in_second, line)| Some(LineSlot { in_second, slot: line.free()? }))
    }

    /// The oldest entry of both lines.
    fn oldest(&self, now: u32) -> Option<(LineSlot, SharedEntry)> {
        let all = self.lines().flat_map(|(in_second, line)| {
            let slots = line.slots.into_iter().enumerate();
            slots.map(move |(slot, entry)| (LineSlot { in_second, slot }, entry))
        });
        let taken = all.filter(|(_, entry)| entry.is_occupied());
        taken.max_by_key(|(_, entry)| age(entry.stamp, now))
    }

    /// Locks both lines, if they are unchanged.
    fn take(&self) -> Option<HeldHomes<'t>> {
        let first = self.first.take()?;
        let second = match &self.second {
            Some(second) => Some(second.take()?),
            None => None,
        };
        Some(HeldHomes { first, second })
    }
}

/// Both lines of a key, locked.
struct HeldHomes<'t> {
    first: LockedLine<'t>,
    second: Option<LockedLine<'t>>,
}

impl HeldHomes<'_> {
    fn put(&self, at: LineSlot, entry: SharedEntry) {
        let line = self.second.as_ref().filter(|_| at.in_second).unwrap_or(&self.first);
        line.put(at.slot, entry);
    }
}

/// An entry that may be evicted, and its place.
struct Victim<'t> {
    line: LineSnapshot<'t>,
    slot: usize,
    entry: SharedEntry,
}

impl SharedTable {
    /// Inserts an entry, seen at `now`, unless the key is present.
    pub fn insert(&self, at: Hashed, value: u64, now: u32) -> SharedInsert {
        debug_assert_eq!(at, self.hash(at.key), "hashed by this table");
        if self.bound == 0 {
            return SharedInsert::Busy;
        }
        let entry = SharedEntry { key: at.key, value, stamp: stamp(now) };
        self.until_done(|| self.try_insert(at, entry, now)).unwrap_or(SharedInsert::Busy)
    }

    /// Replaces the value of a key, seen at `now`, if the present value is `expected`.
    ///
    /// # Errors
    /// [`NotReplaced`] gives the reason.
    pub fn replace(
        &self,
        at: Hashed,
        expected: u64,
        value: u64,
        now: u32,
    ) -> Result<(), NotReplaced> {
        self.exchange(at, expected, |entry| Some(SharedEntry { value, stamp: stamp(now), ..entry }))
    }

    /// Replaces a value as [`SharedTable::replace`] does, but keeps its age.
    ///
    /// # Errors
    /// [`NotReplaced`] gives the reason.
    pub fn replace_unseen(&self, at: Hashed, expected: u64, value: u64) -> Result<(), NotReplaced> {
        self.exchange(at, expected, |entry| Some(SharedEntry { value, ..entry }))
    }

    /// Removes an entry, if its value is `expected`.
    ///
    /// # Errors
    /// [`NotReplaced`] gives the reason.
    pub fn remove(&self, at: Hashed, expected: u64) -> Result<(), NotReplaced> {
        self.exchange(at, expected, |_| None)
    }

    fn exchange(
        &self,
        at: Hashed,
        expected: u64,
        change: impl Fn(SharedEntry) -> Option<SharedEntry>,
    ) -> Result<(), NotReplaced> {
        let exchanged = self.until_done(|| match self.look(at) {
            LookUp::Here(line, slot, entry) if entry.value == expected => {
                let line = line.take()?;
                match change(entry) {
                    Some(changed) => line.put(slot, changed),
                    None => self.clear(&line, slot),
                }
                Some(Ok(()))
            }
            LookUp::Here(_, _, entry) => Some(Err(NotReplaced::Is(entry.value))),
            LookUp::Nowhere => Some(Err(NotReplaced::Absent)),
            LookUp::Busy => None,
        });
        exchanged.unwrap_or(Err(NotReplaced::Busy))
    }

    /// Removes all entries that `doomed` selects; passes each to `removed`. Reads the whole table.
    pub fn remove_where(
        &self,
        mut doomed: impl FnMut(u64, u64) -> bool,
        mut removed: impl FnMut(u64, u64),
    ) {
        for line in (0..self.lines.count()).filter_map(|line| self.lines.get(line)) {
            self.remove_in(
                line,
                |entry| doomed(entry.key, entry.value),
                |entry| removed(entry.key, entry.value),
            );
        }
    }

    /// Removes entries more than `max_age` ticks old from the next `steps` lines, and passes each
    /// to `removed`. The next call, of any thread, continues behind these lines; a sweep of the
    /// whole table takes [`SharedTable::lines`] steps.
    pub fn age(&self, now: u32, max_age: u32, steps: usize, mut removed: impl FnMut(u64, u64)) {
        let (count, steps) = (self.lines.count(), steps.min(self.lines.count()));
        if steps == 0 {
            return;
        }
        let from = self.sweep.fetch_add(steps, Ordering::Relaxed) % count;
        let lines = (from..count).chain(0..from).take(steps);
        for line in lines.filter_map(|line| self.lines.get(line)) {
            if line.may_have_older(now, max_age) {
                let is_old = |entry: &SharedEntry| age(entry.stamp, now) > max_age;
                self.remove_in(line, is_old, |entry| {
                    count_one(&self.stats.0.aged_out);
                    removed(entry.key, entry.value);
                });
            }
        }
    }

    /// Removes the entries of a line that `doomed` selects; none if other threads keep writing.
    fn remove_in(
        &self,
        line: &SharedLine,
        mut doomed: impl FnMut(&SharedEntry) -> bool,
        removed: impl FnMut(SharedEntry),
    ) {
        let gone = self.until_done(|| {
            let snapshot = line.snapshot()?;
            let gone = snapshot.slots.map(|entry| entry.is_occupied() && doomed(&entry));
            if gone.contains(&true) {
                let held = snapshot.take()?;
                let slots = (0..).zip(gone).filter(|(_, gone)| *gone);
                slots.for_each(|(slot, _)| self.clear(&held, slot));
            }
            Some(snapshot.slots.into_iter().zip(gone).filter(|(_, gone)| *gone))
        });
        // The line is released before, as `removed` may take its time.
        gone.into_iter().flatten().map(|(entry, _)| entry).for_each(removed);
    }

    /// Repeats an attempt until it succeeds; `None` after [`MAX_TRIES`] attempts.
    fn until_done<R>(&self, mut attempt: impl FnMut() -> Option<R>) -> Option<R> {
        for _ in 0..MAX_TRIES {
            match attempt() {
                None => spin_loop(),
                done => return done,
            }
        }
        count_one(&self.stats.0.busy);
        None
    }

    /// Empties a slot and counts its entry as removed.
    fn clear(&self, line: &LockedLine<'_>, slot: usize) {
        line.clear(slot);
        self.len.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Snapshots of both lines of a key; `None` if a thread is writing to one, or without lines.
    fn homes(&self, at: Hashed) -> Option<Homes<'_>> {
        let indices = self.lines.homes(at);
        let snapshot = |index| self.lines.get(index)?.snapshot();
        let first = snapshot(indices[0])?;
        let second = match indices[0] == indices[1] {
            true => None,
            false => Some(snapshot(indices[1])?),
        };
        Some(Homes { indices, first, second })
    }

    /// Tries an insertion once. `None`, for another attempt, after a faster thread or a move.
    fn try_insert(&self, at: Hashed, entry: SharedEntry, now: u32) -> Option<SharedInsert> {
        let Some(homes) = self.homes(at) else {
            // A write to one line does not matter if the key is in the other.
            return match self.look(at) {
                LookUp::Here(_, _, there) => Some(SharedInsert::There { value: there.value }),
                LookUp::Nowhere | LookUp::Busy => None,
            };
        };
        if let Some(there) = homes.find(at.key) {
            return Some(SharedInsert::There { value: there.value });
        }
        match homes.free() {
            Some(place) => self.put_in_free(&homes, place, entry, now),
            None if self.make_room(homes.indices) => None,
            None => self.put_over_oldest(&homes, &homes.take()?, entry, now),
        }
    }

    fn put_in_free(
        &self,
        homes: &Homes<'_>,
        place: LineSlot,
        entry: SharedEntry,
        now: u32,
    ) -> Option<SharedInsert> {
        let is_full = self.len() >= self.bound;
        let victim = if is_full { self.choose_victim(homes, now) } else { None };
        let held = homes.take()?;
        // Counted before it is stored, so that the table never exceeds its bound.
        if self.len.0.fetch_add(1, Ordering::Relaxed) < self.bound {
            held.put(place, entry);
            return Some(SharedInsert::Inserted);
        }
        if let Some(Victim { line, slot, entry: victim }) = victim
            && let Some(line) = line.take()
        {
            self.clear(&line, slot);
            count_one(&self.stats.0.evicted);
            held.put(place, entry);
            return Some(SharedInsert::Evicted { key: victim.key, value: victim.value });
        }
        self.len.0.fetch_sub(1, Ordering::Relaxed);
        self.put_over_oldest(homes, &held, entry, now)
    }

    /// Replaces the oldest entry in the slots of the new key. `None` if all these slots are free,
    /// while the rest of the table is full.
    fn put_over_oldest(
        &self,
        homes: &Homes<'_>,
        held: &HeldHomes<'_>,
        entry: SharedEntry,
        now: u32,
    ) -> Option<SharedInsert> {
        let (place, victim) = homes.oldest(now)?;
        held.put(place, entry);
        count_one(&self.stats.0.evicted);
        if self.len() < self.bound {
            count_one(&self.stats.0.crowded_out);
        }
        Some(SharedInsert::Evicted { key: victim.key, value: victim.value })
    }

    /// Moves entries until one of two full lines has a free slot. Tries few moves before many.
    fn make_room(&self, homes: [usize; 2]) -> bool {
        (1..=MAX_MOVES).any(|moves| homes.into_iter().any(|line| self.free_slot(line, moves)))
    }

    /// Returns whether a line has a free slot, or gets one by at most `moves` moves.
    fn free_slot(&self, index: usize, moves: usize) -> bool {
        let Some(line) = self.lines.get(index).and_then(SharedLine::snapshot) else { return false };
        if line.free().is_some() {
            return true;
        }
        moves > 0
            && line.slots.into_iter().any(|entry| {
                let other = self.other_line(entry.key, index);
                other != index
                    && self.free_slot(other, moves - 1)
                    && self.move_entry(entry.key, index, other).is_some()
            })
    }

    /// Moves an entry from one of its lines to the other. `None` if the entry is gone, no slot is
    /// free, or another thread is writing.
    pub(super) fn move_entry(&self, key: u64, from: usize, to: usize) -> Option<()> {
        let (from, to) = (self.lines.get(from)?.snapshot()?, self.lines.get(to)?.snapshot()?);
        let ((slot, entry), free) = (from.find(key)?, to.free()?);
        // Both are locked at the same time, so that no reader misses the entry in both.
        let (from, to) = (from.take()?, to.take()?);
        to.put(free, entry);
        from.clear(slot);
        Some(())
    }

    /// The other possible line of a key that is in `line`.
    fn other_line(&self, key: u64, line: usize) -> usize {
        let [first, second] = self.lines.homes(self.hash(key));
        if line == first { second } else { first }
    }

    /// The oldest of a sample of entries outside `homes`. `None` if `homes` has an older entry.
    fn choose_victim(&self, homes: &Homes<'_>, now: u32) -> Option<Victim<'_>> {
        let own = homes.oldest(now).map_or(0, |(_, entry)| age(entry.stamp, now) + 1);
        let from = self.hand.0.fetch_add(EVICT_SAMPLE_LINES, Ordering::Relaxed);
        let count = self.lines.count();
        let sample = (0..EVICT_SAMPLE_LINES.min(count)).map(|nth| from.wrapping_add(nth) % count);
        let others = sample.filter(|line| !homes.indices.contains(line));
        let oldest_of = |line: usize| {
            let line = self.lines.get(line)?.snapshot()?;
            let slots = line.slots.into_iter().enumerate();
            let taken = slots.filter(|(_, entry)| entry.is_occupied());
            let (slot, entry) = taken.max_by_key(|(_, entry)| age(entry.stamp, now))?;
            Some(Victim { line, slot, entry })
        };
        let victim =
            others.filter_map(oldest_of).max_by_key(|victim| age(victim.entry.stamp, now))?;
        (age(victim.entry.stamp, now) + 1 >= own).then_some(victim)
    }
}

fn count_one(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}
