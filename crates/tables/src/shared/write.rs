//! How a shared table is changed.
//!
//! Who changes an entry has both lines that its key may lie in. So two who insert the same key find each
//! other, and whoever has a line in which an entry lies knows that nobody moves it.

use super::line::{Entry, Line, Locked, SLOTS_PER_LINE};
use super::sync::{AtomicU64, Ordering, spin_loop};
use super::{MAX_TRIES, NotReplaced, SharedInsert, SharedTable};
use crate::seed::Hashed;
use crate::stamp::{age, stamp};

/// Entries that are moved, one after another, to make room for one. With two, one table of 300,000 entries in three could
/// not be filled to its bound; with three, none.
const MAX_MOVES: usize = 3;

/// Lines that an eviction reads to find an old entry, besides those where the new one belongs. With two entries in
/// each, the one that goes is among the oldest twentieth, on the average.
const EVICT_SAMPLE_LINES: usize = 8;

/// Both lines that a key may lie in; the second is missing in a table of one.
struct Homes<'t> {
    indices: [usize; 2],
    lines: [Option<Locked<'t>>; 2],
}

impl Homes<'_> {
    fn find(&self, key: u64) -> Option<(&Locked<'_>, usize, Entry)> {
        self.lines.iter().flatten().find_map(|line| {
            let (slot, entry) = line.find(key)?;
            Some((line, slot, entry))
        })
    }

    /// The oldest entry in them.
    fn oldest(&self, now: u32) -> Option<(&Locked<'_>, usize, Entry)> {
        let lines = self.lines.iter().flatten();
        let all = lines.flat_map(|line| {
            let slots = line.slots().into_iter().enumerate();
            slots.map(move |(slot, entry)| (line, slot, entry))
        });
        let taken = all.filter(|(_, _, entry)| entry.is_occupied());
        taken.max_by_key(|(_, _, entry)| age(entry.stamp, now))
    }
}

impl SharedTable {
    /// Inserts an entry, seen at `now`, unless the key is there.
    pub fn insert(&self, at: Hashed, value: u64, now: u32) -> SharedInsert {
        debug_assert_eq!(at, self.hash(at.key), "hashed by this table");
        let Some(homes) = self.lock_homes(at) else { return SharedInsert::Busy };
        if let Some((_, _, entry)) = homes.find(at.key) {
            return SharedInsert::There { value: entry.value };
        }
        let entry = Entry { key: at.key, value, stamp: stamp(now) };
        let Some((line, slot)) = self.place(&homes) else {
            return self.put_over_oldest(&homes, entry);
        };
        // Counted before it is there, so that there are never more than the bound.
        let full = self.len.0.fetch_add(1, Ordering::Relaxed) >= self.bound;
        if !full {
            line.put(slot, entry);
            return SharedInsert::Inserted;
        }
        let Some(victim) = self.evict_elsewhere(&homes, now) else {
            self.len.0.fetch_sub(1, Ordering::Relaxed);
            return self.put_over_oldest(&homes, entry);
        };
        line.put(slot, entry);
        SharedInsert::Evicted { key: victim.key, value: victim.value }
    }

    /// Gives a key another value, seen at `now`, if it has the one that is expected.
    ///
    /// # Errors
    /// [`NotReplaced`] says why it was not.
    pub fn replace(
        &self,
        at: Hashed,
        expected: u64,
        value: u64,
        now: u32,
    ) -> Result<(), NotReplaced> {
        self.exchange(at, expected, |entry| Some(Entry { value, stamp: stamp(now), ..entry }))
    }

    /// The same, and leaves its age as it is.
    ///
    /// # Errors
    /// [`NotReplaced`] says why it was not.
    pub fn replace_unseen(&self, at: Hashed, expected: u64, value: u64) -> Result<(), NotReplaced> {
        self.exchange(at, expected, |entry| Some(Entry { value, ..entry }))
    }

    /// Removes an entry, if it has the value that is expected.
    ///
    /// # Errors
    /// [`NotReplaced`] says why it was not.
    pub fn remove(&self, at: Hashed, expected: u64) -> Result<(), NotReplaced> {
        self.exchange(at, expected, |_| None)
    }

    fn exchange(
        &self,
        at: Hashed,
        expected: u64,
        change: impl FnOnce(Entry) -> Option<Entry>,
    ) -> Result<(), NotReplaced> {
        let homes = self.lock_homes(at).ok_or(NotReplaced::Busy)?;
        let (line, slot, entry) = homes.find(at.key).ok_or(NotReplaced::Absent)?;
        if entry.value != expected {
            return Err(NotReplaced::Is(entry.value));
        }
        match change(entry) {
            Some(changed) => line.put(slot, changed),
            None => self.take(line, slot),
        }
        Ok(())
    }

    /// Removes all entries that `doomed` picks, and hands each to `removed`. Reads the whole table:
    /// for rare events.
    pub fn remove_where(
        &self,
        mut doomed: impl FnMut(u64, u64) -> bool,
        mut removed: impl FnMut(u64, u64),
    ) {
        for line in (0..self.lines.count()).filter_map(|line| self.lines.get(line)) {
            let mut pick = |entry: &Entry| entry.is_occupied() && doomed(entry.key, entry.value);
            if line.snapshot().is_none_or(|slots| slots.iter().any(&mut pick)) {
                self.remove_in(line, &mut pick, |entry| removed(entry.key, entry.value));
            }
        }
    }

    /// Removes entries more than `max_age` ticks old among the next `steps` lines, and hands each to
    /// `removed`. Whoever calls it next goes on behind them; a sweep of the whole table takes [`SharedTable::lines`] steps.
    pub fn age(&self, now: u32, max_age: u32, steps: usize, mut removed: impl FnMut(u64, u64)) {
        let (count, steps) = (self.lines.count(), steps.min(self.lines.count()));
        if steps == 0 {
            return;
        }
        let from = self.sweep.fetch_add(steps, Ordering::Relaxed) % count;
        let lines = (from..count).chain(0..from).take(steps);
        for line in lines.filter_map(|line| self.lines.get(line)) {
            if line.may_have_older(now, max_age) {
                let is_old = |entry: &Entry| entry.is_occupied() && age(entry.stamp, now) > max_age;
                self.remove_in(line, is_old, |entry| {
                    count_one(&self.stats.0.aged_out);
                    removed(entry.key, entry.value);
                });
            }
        }
    }

    fn remove_in(
        &self,
        line: &Line,
        mut doomed: impl FnMut(&Entry) -> bool,
        removed: impl FnMut(Entry),
    ) {
        let mut gone = [None; SLOTS_PER_LINE];
        let Some(locked) = self.lock(line) else { return };
        for (slot, entry) in locked.slots().into_iter().enumerate() {
            if doomed(&entry) {
                self.take(&locked, slot);
                gone[slot] = Some(entry);
            }
        }
        // What the caller does with them may take its time.
        drop(locked);
        gone.into_iter().flatten().for_each(removed);
    }

    fn take(&self, line: &Locked<'_>, slot: usize) {
        line.take(slot);
        self.len.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// A line, when whoever has it is done; `None` if that takes too long.
    fn lock<'t>(&self, line: &'t Line) -> Option<Locked<'t>> {
        for _ in 0..MAX_TRIES {
            match line.try_lock() {
                None => spin_loop(),
                locked => return locked,
            }
        }
        count_one(&self.stats.0.busy);
        None
    }

    fn lock_homes(&self, at: Hashed) -> Option<Homes<'_>> {
        let indices = self.lines.homes(at);
        let [first, second] = indices.map(|index| self.lines.get(index));
        let first = first?;
        for _ in 0..MAX_TRIES {
            let lines = match (first.try_lock(), second) {
                (None, _) => None,
                (locked, _) if indices[0] == indices[1] => Some([locked, None]),
                (locked, second) => {
                    second.and_then(Line::try_lock).map(|second| [locked, Some(second)])
                }
            };
            if let Some(lines) = lines {
                return Some(Homes { indices, lines });
            }
            spin_loop();
        }
        count_one(&self.stats.0.busy);
        None
    }

    /// A free slot for a new entry: one that is free, or one that moving others makes so.
    fn place<'h>(&self, homes: &'h Homes<'_>) -> Option<(&'h Locked<'h>, usize)> {
        let lines = || homes.indices.into_iter().zip(&homes.lines);
        let lines = || lines().filter_map(|(index, line)| Some((index, line.as_ref()?)));
        // The first line first, so that most look-ups end there; and few moves before many.
        (0..=MAX_MOVES).find_map(|moves| {
            lines().find_map(|(index, line)| Some((line, self.free_slot(index, line, moves)?)))
        })
    }

    /// A slot of a line that is free, or becomes so by moving at most so many entries.
    fn free_slot(&self, index: usize, line: &Locked<'_>, moves: usize) -> Option<usize> {
        if let Some(slot) = line.free() {
            return Some(slot);
        }
        if moves == 0 {
            return None;
        }
        line.slots().into_iter().enumerate().find_map(|(slot, entry)| {
            let other = self.other_line(entry.key, index);
            // One that somebody has is left out: it may be one that this thread has.
            let other_line = self.lines.get(other)?.try_lock()?;
            let free = self.free_slot(other, &other_line, moves - 1)?;
            other_line.put(free, entry);
            line.take(slot);
            Some(slot)
        })
    }

    /// The line that a key of a line may lie in as well.
    fn other_line(&self, key: u64, line: usize) -> usize {
        let [first, second] = self.lines.homes(self.hash(key));
        if line == first { second } else { first }
    }

    /// Puts a new entry where the oldest is of those that hold its slots.
    fn put_over_oldest(&self, homes: &Homes<'_>, entry: Entry) -> SharedInsert {
        let Some((line, slot, victim)) = homes.oldest(entry.stamp) else {
            return SharedInsert::Busy;
        };
        line.put(slot, entry);
        count_one(&self.stats.0.evicted);
        if self.len() < self.bound {
            count_one(&self.stats.0.crowded_out);
        }
        SharedInsert::Evicted { key: victim.key, value: victim.value }
    }

    /// Removes the oldest of a sample of entries in lines that this thread has not. `None` if one in the way of the new
    /// one is as old, or it could not be had.
    fn evict_elsewhere(&self, homes: &Homes<'_>, now: u32) -> Option<Entry> {
        let own = homes.oldest(now).map_or(0, |(_, _, entry)| age(entry.stamp, now) + 1);
        let from = self.hand.0.fetch_add(EVICT_SAMPLE_LINES, Ordering::Relaxed);
        let count = self.lines.count();
        let sample = (0..EVICT_SAMPLE_LINES.min(count)).map(|nth| from.wrapping_add(nth) % count);
        let others = sample.filter(|line| !homes.indices.contains(line));
        let lines = others.filter_map(|line| self.lines.get(line));
        let entries = lines.flat_map(|line| {
            let slots = line.snapshot().unwrap_or_default().into_iter().enumerate();
            slots.map(move |(slot, entry)| (line, slot, entry))
        });
        let taken = entries.filter(|(_, _, entry)| entry.is_occupied());
        let (line, slot, victim) = taken.max_by_key(|(_, _, entry)| age(entry.stamp, now))?;
        if age(victim.stamp, now) + 1 < own {
            return None;
        }
        let locked = line.try_lock()?;
        if locked.slots().get(slot) != Some(&victim) {
            return None;
        }
        self.take(&locked, slot);
        count_one(&self.stats.0.evicted);
        Some(victim)
    }
}

fn count_one(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}
