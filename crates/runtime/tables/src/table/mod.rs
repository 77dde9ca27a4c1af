//! The table: look-ups, insertion with eviction, ageing. Module `resize` changes its size.

mod resize;
#[cfg(test)]
mod tests;

use crate::budget::Budget;
use crate::line::{Entry, SLOTS_PER_LINE};
use crate::lines::{EntryPosition, Lines, MAX_PROBE_SLOTS, MAX_ROOM_LINES};
use crate::seed::{Hashed, Seed};
use crate::stamp::{Stamp, age, stamp};

/// Maximum bound on entries; a larger bound is reduced to it. (Beyond it, 32 bits of hash would not
/// spread evenly over the lines.)
pub const MAX_BOUND_ENTRIES: usize = 1 << 28;

/// Entries that a full table holds for each line of four slots: 21.3 bytes an entry. At 3.9 entries
/// a line, no arrangement of the entries could be found any more.
const ENTRIES_PER_LINE: usize = SLOTS_PER_LINE - 1;

/// Entries that an eviction compares, besides those in the slots of the new key. It removes the
/// oldest. With sixteen, the removed entry is among the oldest twentieth on average.
const EVICT_SAMPLE_ENTRIES: usize = 16;

/// Maximum number of lines that an eviction reads to find its sample. It is reached only if the
/// entries are spread very unevenly; the sample is then smaller.
const EVICT_SAMPLE_MAX_LINES: usize = 32;

/// Maximum number of cache lines that one insertion reads or writes; repeated accesses count again.
/// A usual insertion touches three, and some eight at the bound. An insertion reaches the maximum
/// only if it does a step of a resize whose entries all collide.
pub const MAX_LINES_PER_INSERT: usize = 2 * MAX_PROBE_SLOTS / SLOTS_PER_LINE
    + resize::MAX_STEP_LINES
    + resize::CLEAR_LINES_PER_STEP
    + 2 * MAX_ROOM_LINES
    + EVICT_SAMPLE_MAX_LINES
    + MAX_PROBE_SLOTS / SLOTS_PER_LINE
    + 2;

/// Result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an eviction is reported here and nowhere else"]
pub enum Insert<V> {
    /// The key is new.
    Inserted,
    /// The key was there, with the value `old`.
    Updated {
        /// The previous value. Its entry may have been older than the caller's maximum age.
        old: V,
    },
    /// The key is new, and an old entry was removed for it. Either the table is at its bound or may
    /// not grow, or (less than once in its life) all eight slots of the key could not be freed.
    Evicted {
        /// The key of the removed entry.
        key: u64,
        /// Its value.
        value: V,
    },
    /// Nothing was inserted: the bound is zero, or the budget has no bytes for a first allocation.
    Refused,
}

/// Counters over the life of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Entries removed to make space for new ones.
    pub evicted: u64,
    /// Evicted entries of a table that was not full: the new entry had no free slot.
    pub crowded_out: u64,
    /// Entries that [`FlatTable::age`] removed.
    pub aged_out: u64,
    /// Insertions that were refused.
    pub refused: u64,
    /// Times that the budget or the allocator refused to let the table grow.
    pub growth_refused: u64,
}

/// Names one of the two allocations of a table that is being resized.
#[derive(Clone, Copy)]
enum TablePart {
    Main,
    Old,
}

/// A bounded hash table from `u64` to a value of at most four bytes, whose entries age.
///
/// "Now" is a number of ticks of the caller's clock; it may wrap around (see
/// [`MAX_AGE_TICKS`](crate::MAX_AGE_TICKS)). A value of more than four bytes does not compile.
pub struct FlatTable<V> {
    /// Receives new entries.
    main: Lines<V>,
    /// Entries that a resize still has to drain into `main`; empty otherwise.
    old: Lines<V>,
    /// Lines that a resize still has to clear before they become `main`; empty otherwise.
    next: Lines<V>,
    seed: Seed,
    len: usize,
    bound: usize,
    /// The last line that an eviction sampled, counted through `main`, then the rest of `old`.
    hand: usize,
    /// The line that `age` read last, counted in the same way.
    sweep: usize,
    /// Insertions at the bound that still have to pass before the budget is asked again.
    growth_pause: u32,
    budget: Budget,
    stats: Stats,
}

impl<V: Copy + Default + PartialEq> FlatTable<V> {
    /// Creates an empty table for at most `bound` entries, with its own secret seed. Allocates
    /// nothing before the first insertion.
    pub fn new(bound: usize, budget: &Budget) -> Self {
        Self::with_seed(bound, budget, Seed::random())
    }

    /// Creates a table with a given seed, for simulations that must repeat.
    pub fn with_seed(bound: usize, budget: &Budget, seed: Seed) -> Self {
        Self {
            main: Lines::default(),
            old: Lines::default(),
            next: Lines::default(),
            seed,
            len: 0,
            bound: bound.min(MAX_BOUND_ENTRIES),
            hand: 0,
            sweep: 0,
            growth_pause: 0,
            budget: budget.clone(),
            stats: Stats::default(),
        }
    }

    /// Hashes a key for this table. A batch hashes and prefetches all its keys before its look-ups.
    #[inline]
    pub fn hash(&self, key: u64) -> Hashed {
        self.seed.hash(key)
    }

    /// Starts to bring the likely place of a key into the cache.
    #[inline]
    pub fn prefetch(&self, at: Hashed) {
        self.main.prefetch(at);
    }

    /// Second step of the prefetch, after the first has completed: prefetches the second line of a
    /// key that is not in its first line. This concerns one key in eight; its look-up would
    /// otherwise wait as long as all other look-ups together.
    #[inline]
    pub fn prefetch_rest(&self, at: Hashed) {
        self.main.prefetch_second(at);
    }

    /// Returns the value of a key, regardless of age.
    #[inline]
    pub fn lookup(&self, key: u64) -> Option<V> {
        self.lookup_hashed(self.hash(key))
    }

    /// [`FlatTable::lookup`] of a key that this table has hashed.
    #[inline]
    pub fn lookup_hashed(&self, at: Hashed) -> Option<V> {
        self.find_entry(at).map(|entry| entry.value)
    }

    /// Returns the value of a key whose entry is at most `max_age` ticks old.
    #[inline]
    pub fn lookup_fresh(&self, key: u64, now: u32, max_age: u32) -> Option<V> {
        self.lookup_fresh_hashed(self.hash(key), Stamp::at(now), &max_age)
    }

    /// [`FlatTable::lookup_fresh`] of a key that this table has hashed. Reads `max_age` only for an
    /// entry that was not seen at `now`, which is rare.
    #[inline(always)]
    pub fn lookup_fresh_hashed(&self, at: Hashed, now: Stamp, max_age: &u32) -> Option<V> {
        match self.main.first_line(at).and_then(|line| line.fresh(at.key, now, max_age)) {
            Some(value) => Some(value),
            None => self.fresh_elsewhere(at.key, now, *max_age),
        }
    }

    /// Searches the second line. It hashes again, so that the caller need not keep the hash in a
    /// register. It is short, so that it saves no registers.
    #[cold]
    #[inline(never)]
    fn fresh_elsewhere(&self, key: u64, now: Stamp, max_age: u32) -> Option<V> {
        let second = self.main.second_line(self.hash(key));
        match second.and_then(|line| line.fresh(key, now, &max_age)) {
            Some(value) => Some(value),
            None => self.fresh_anywhere(key, now, max_age),
        }
    }

    #[cold]
    #[inline(never)]
    fn fresh_anywhere(&self, key: u64, now: Stamp, max_age: u32) -> Option<V> {
        let (part, place) = self.find_old_first(self.hash(key))?;
        let entry = self.part(part).line(place.line).entry(place.slot);
        (age(entry.stamp, now.0) <= max_age).then_some(entry.value)
    }

    /// Returns the value of a key and sets the entry's age to zero. Touches at most
    /// [`MAX_LINES_PER_INSERT`] lines, and usually one.
    pub fn touch(&mut self, key: u64, now: u32) -> Option<V> {
        self.touch_hashed(self.hash(key), Stamp::at(now))
    }

    /// [`FlatTable::touch`] of a key that this table has hashed.
    #[inline(always)]
    pub fn touch_hashed(&mut self, at: Hashed, now: Stamp) -> Option<V> {
        debug_assert_eq!(at, self.hash(at.key), "hashed by this table");
        match self.main.first_line_mut(at).and_then(|line| line.touch(at.key, now)) {
            Some(value) => Some(value),
            None => self.touch_elsewhere(at.key, now),
        }
    }

    /// Searches the second line; see [`FlatTable::fresh_elsewhere`].
    #[cold]
    #[inline(never)]
    fn touch_elsewhere(&mut self, key: u64, now: Stamp) -> Option<V> {
        let at = self.hash(key);
        match self.main.second_line_mut(at).and_then(|line| line.touch(key, now)) {
            Some(value) => Some(value),
            None => self.touch_anywhere(key, now),
        }
    }

    #[cold]
    #[inline(never)]
    fn touch_anywhere(&mut self, key: u64, now: Stamp) -> Option<V> {
        let (part, place) = self.find_old_first(self.hash(key))?;
        let line = self.part_mut(part).line_mut(place.line);
        let value = line.entry(place.slot).value;
        line.refresh(place.slot, value, now.0);
        if matches!(part, TablePart::Old) {
            // The price of a search in both parts, as long as there are two.
            self.step_resize();
        }
        Some(value)
    }

    /// Replaces the value of a key that this table has hashed; keeps its age. Returns the old one.
    pub fn replace_hashed(&mut self, at: Hashed, value: V) -> Option<V> {
        let (part, place) = self.find(at)?;
        let line = self.part_mut(part).line_mut(place.line);
        let old = line.entry(place.slot);
        line.refresh(place.slot, value, old.stamp);
        Some(old.value)
    }

    /// Inserts or updates an entry, seen at `now`, and continues a resize. Touches at most
    /// [`MAX_LINES_PER_INSERT`] lines.
    #[inline]
    pub fn insert(&mut self, key: u64, value: V, now: u32) -> Insert<V> {
        self.insert_hashed(self.hash(key), value, now)
    }

    /// [`FlatTable::insert`] of a key that this table has hashed. (A hash of another table would
    /// put the entry where no look-up finds it.)
    #[inline]
    pub fn insert_hashed(&mut self, at: Hashed, value: V, now: u32) -> Insert<V> {
        debug_assert_eq!(at, self.hash(at.key), "hashed by this table");
        if let Some((part, place)) = self.find(at) {
            let line = self.part_mut(part).line_mut(place.line);
            let old = line.entry(place.slot).value;
            line.refresh(place.slot, value, stamp(now));
            self.step_resize();
            return Insert::Updated { old };
        }
        self.insert_new(at, Entry { key: at.key, value, stamp: stamp(now) })
    }

    #[inline(never)]
    fn insert_new(&mut self, at: Hashed, entry: Entry<V>) -> Insert<V> {
        let full = self.is_full();
        let Some(place) = self.place(at, full) else {
            return self.insert_over_neighbour(at, entry, full);
        };
        if !full {
            self.main.line_mut(place.line).put(place.slot, entry);
            self.len += 1;
            return Insert::Inserted;
        }
        match self.evict(at, entry.stamp) {
            Some(victim) => {
                self.main.line_mut(place.line).put(place.slot, entry);
                self.len += 1;
                Insert::Evicted { key: victim.key, value: victim.value }
            }
            None => self.refuse(),
        }
    }

    /// Inserts an entry with a new key, seen at `now`, only if no other entry must be removed for
    /// it. Returns whether it was inserted.
    pub fn insert_if_room(&mut self, at: Hashed, value: V, now: u32) -> bool {
        debug_assert_eq!(at, self.hash(at.key), "hashed by this table");
        if self.find(at).is_some() || self.is_full() {
            return false;
        }
        let Some(place) = self.place(at, false) else { return false };
        let entry = Entry { key: at.key, value, stamp: stamp(now) };
        self.main.line_mut(place.line).put(place.slot, entry);
        self.len += 1;
        true
    }

    /// Returns whether a new entry must replace another. Grows or continues a resize, if needed.
    fn is_full(&mut self) -> bool {
        self.step_resize();
        self.grow_early();
        self.len >= self.room() && !self.grow()
    }

    /// Returns a free slot for a new entry. If there is none in a table that is not full, the table
    /// grows once more, but only if it is at least half full: a lighter table gets here only by a
    /// broken hash, which must not cost memory.
    fn place(&mut self, at: Hashed, full: bool) -> Option<EntryPosition> {
        self.main.make_room(at, &self.seed).or_else(|| {
            let half_full = self.len * 2 >= self.main.target() * ENTRIES_PER_LINE;
            if full || !half_full || !self.grow() {
                return None;
            }
            self.main.make_room(at, &self.seed)
        })
    }

    /// Replaces the oldest entry in the slots of the new key.
    fn insert_over_neighbour(&mut self, at: Hashed, entry: Entry<V>, full: bool) -> Insert<V> {
        let mut oldest = Oldest::at(entry.stamp);
        self.look_at_homes(at, &mut oldest);
        let Some((line, slot, victim)) = oldest.found else { return self.refuse() };
        self.line_mut(line).put(slot, entry);
        self.stats.evicted += 1;
        self.stats.crowded_out += u64::from(!full);
        Insert::Evicted { key: victim.key, value: victim.value }
    }

    /// Removes the oldest of a sample of entries.
    fn evict(&mut self, at: Hashed, now: u32) -> Option<Entry<V>> {
        let mut oldest = Oldest::at(now);
        self.look_at_homes(at, &mut oldest);
        let mut seen = 0;
        for _ in 0..EVICT_SAMPLE_MAX_LINES.min(self.lines()) {
            self.hand = self.following(self.hand);
            seen += oldest.look_at(self.hand, self.line(self.hand).entries());
            if seen >= EVICT_SAMPLE_ENTRIES {
                break;
            }
        }
        let (line, slot, victim) = oldest.found?;
        self.line_mut(line).take(slot);
        self.len -= 1;
        self.stats.evicted += 1;
        Some(victim)
    }

    fn look_at_homes(&self, at: Hashed, oldest: &mut Oldest<V>) {
        if self.main.target() > 0 {
            for line in self.main.homes(at) {
                oldest.look_at(line, self.main.line(line).entries());
            }
        }
    }

    fn refuse(&mut self) -> Insert<V> {
        self.stats.refused += 1;
        Insert::Refused
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: u64) -> Option<V> {
        let (part, place) = self.find(self.hash(key))?;
        let entry = self.part_mut(part).line_mut(place.line).take(place.slot);
        self.len -= 1;
        self.step_resize();
        Some(entry.value)
    }

    /// Removes all entries that `doomed` selects and passes each to `removed`. Reads the whole
    /// table once: for rare events, such as a port that goes down.
    pub fn remove_where(
        &mut self,
        mut doomed: impl FnMut(u64, V) -> bool,
        mut removed: impl FnMut(u64, V),
    ) {
        for line in 0..self.lines() {
            self.remove_in_line(line, |entry| doomed(entry.key, entry.value), &mut removed);
        }
        self.release_if_empty();
    }

    /// Removes entries more than `max_age` ticks old from the next `steps` lines and passes each to
    /// `removed`. Returns the number removed. The next call continues behind these lines.
    ///
    /// A sweep of the whole table takes [`FlatTable::lines`] steps; a step reads four slots. A call
    /// makes at most one sweep. These steps also release the memory of a table that has become much
    /// too large for its entries. If a resize moves an entry meanwhile, it may be the next sweep
    /// that finds it: a caller that must not get an old entry uses [`FlatTable::lookup_fresh`].
    pub fn age(
        &mut self,
        now: u32,
        max_age: u32,
        steps: usize,
        mut removed: impl FnMut(u64, V),
    ) -> usize {
        let before = self.len;
        for _ in 0..steps.min(self.lines()) {
            self.sweep = self.following(self.sweep);
            self.remove_in_line(self.sweep, |entry| age(entry.stamp, now) > max_age, &mut removed);
            self.step_resize();
        }
        let aged_out = before - self.len;
        self.stats.aged_out += aged_out as u64;
        self.release_if_empty();
        self.shrink();
        aged_out
    }

    fn remove_in_line(
        &mut self,
        line: usize,
        mut doomed: impl FnMut(&Entry<V>) -> bool,
        removed: &mut impl FnMut(u64, V),
    ) {
        let full = *self.line(line);
        for (slot, entry) in full.entries().filter(|(_, entry)| doomed(entry)) {
            self.line_mut(line).take(slot);
            self.len -= 1;
            removed(entry.key, entry.value);
        }
    }

    /// Removes all entries and releases all memory.
    pub fn clear(&mut self) {
        self.len = 0;
        self.release_if_empty();
    }

    fn release_if_empty(&mut self) {
        if self.len == 0 {
            self.main = Lines::default();
            self.old = Lines::default();
            self.next = Lines::default();
        }
    }

    /// Number of entries, including old ones that are not yet swept.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Maximum number of entries that the table holds.
    pub fn bound(&self) -> usize {
        self.bound
    }

    /// Iterates over all entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, V)> + use<'_, V> {
        self.main.iter().chain(self.old.iter()).map(|entry| (entry.key, entry.value))
    }

    /// Iterates over all entries with their ages in ticks at `now`, in no order.
    pub fn iter_ages(&self, now: u32) -> impl Iterator<Item = (u64, V, u32)> + use<'_, V> {
        let entries = self.main.iter().chain(self.old.iter());
        entries.map(move |entry| (entry.key, entry.value, age(entry.stamp, now)))
    }

    /// Number of bytes allocated, all of them charged to the budget.
    pub fn memory(&self) -> usize {
        self.main.bytes() + self.old.bytes() + self.next.bytes()
    }

    /// The budget that the table shares with other tables.
    #[inline]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Counters since the table was created.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Number of lines that a sweep of [`FlatTable::age`] reads: one step each.
    pub fn lines(&self) -> usize {
        self.main.target() + self.old.undrained()
    }

    fn find_entry(&self, at: Hashed) -> Option<Entry<V>> {
        let (part, place) = self.find(at)?;
        Some(self.part(part).line(place.line).entry(place.slot))
    }

    fn find(&self, at: Hashed) -> Option<(TablePart, EntryPosition)> {
        match self.main.find(at) {
            Some(place) => Some((TablePart::Main, place)),
            None => self.old_if_any()?.find(at).map(|place| (TablePart::Old, place)),
        }
    }

    /// [`FlatTable::find`] of a key that is most likely not in `main`, where it was not found.
    fn find_old_first(&self, at: Hashed) -> Option<(TablePart, EntryPosition)> {
        let in_old = self.old_if_any().and_then(|old| old.find(at));
        in_old
            .map(|place| (TablePart::Old, place))
            .or_else(|| self.main.find(at).map(|place| (TablePart::Main, place)))
    }

    /// The lines that a resize drains, if one is running.
    fn old_if_any(&self) -> Option<&Lines<V>> {
        (self.old.target() > 0).then_some(&self.old)
    }

    fn part(&self, part: TablePart) -> &Lines<V> {
        match part {
            TablePart::Main => &self.main,
            TablePart::Old => &self.old,
        }
    }

    fn part_mut(&mut self, part: TablePart) -> &mut Lines<V> {
        match part {
            TablePart::Main => &mut self.main,
            TablePart::Old => &mut self.old,
        }
    }

    /// The line after `line`, counted through both parts. A resize may have removed lines.
    fn following(&self, line: usize) -> usize {
        if line + 1 < self.lines() { line + 1 } else { 0 }
    }

    fn line(&self, line: usize) -> &crate::line::Line<V> {
        match line.checked_sub(self.main.target()) {
            None => self.main.line(line),
            Some(line) => self.old.line(self.old.drained() + line),
        }
    }

    fn line_mut(&mut self, line: usize) -> &mut crate::line::Line<V> {
        match line.checked_sub(self.main.target()) {
            None => self.main.line_mut(line),
            Some(line) => self.old.line_mut(self.old.drained() + line),
        }
    }
}

impl<V> std::fmt::Debug for FlatTable<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlatTable")
            .field("len", &self.len)
            .field("bound", &self.bound)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// The oldest entry seen, with its line (counted through both parts) and slot.
struct Oldest<V> {
    now: u32,
    found: Option<(usize, usize, Entry<V>)>,
}

impl<V: Copy + Default + PartialEq> Oldest<V> {
    fn at(now: u32) -> Self {
        Self { now, found: None }
    }

    /// Compares the entries of a line; returns their number.
    fn look_at(&mut self, line: usize, entries: impl Iterator<Item = (usize, Entry<V>)>) -> usize {
        let mut seen = 0;
        for (slot, entry) in entries {
            seen += 1;
            let older = |found: &Entry<V>| age(entry.stamp, self.now) > age(found.stamp, self.now);
            if self.found.as_ref().is_none_or(|(_, _, found)| older(found)) {
                self.found = Some((line, slot, entry));
            }
        }
        seen
    }
}
