//! A table that all threads share: each reads and writes it, and none waits for another.
//!
//! [`SharedTable`] maps a `u64` to a `u64` and remembers when the entry was last seen, as [`FlatTable`]
//! does for one owner. The global learning switch keeps where each host of the network is in one.
//!
//! What it promises:
//! - **Reading takes no lock and writes nothing shared.** A hit is one cache line, whatever else is two, and there is no
//!   instruction with a `lock` prefix on the way; an entry that is seen is marked so at most once a tick.
//! - **A key is never seen with another key's value**, nor with a value that it had before one that was
//!   seen already.
//! - **Writers do not wait either.** Who changes something first reads what there is, as it was at one moment, and decides
//!   what is to be written where. Then it takes the line, or the two, for a few stores, if they still are as they were.
//!   There is no order in which two could wait for each other: who does not get a line lets go of all that it has, and
//!   looks again.
//! - **Every operation on one key does a bounded amount of work.** It tries [`MAX_TRIES`] times; after that a look-up
//!   says that it does not know the key, and a change that it was not made ([`SharedInsert::Busy`]). So a thread that the
//!   system stops delays no other, unless that happens between those stores: until it goes on, the three entries of
//!   that line are as if they were not there.
//! - **Memory is bounded** by the bound on entries and by a [`Budget`]: 28.4 bytes an entry, charged whole when the table is made.
//!   The kernel gives the memory page by page as it is used.
//! - **Keys may be chosen by an enemy.** The hash is keyed ([`Seed`]).
//!
//! What it is not: it does not change its size. A table that is resized under its readers needs a second look-up, or a
//! way to tell when the last reader has left the old one, in each look-up for ever; memory that is charged but not touched costs nothing.
//! It reads no clock and keeps no order. `docs/adr/0010-shared-table.md` explains the design.
//!
//! ```
//! use bellrock_tables::{Budget, SharedInsert, SharedTable};
//!
//! let hosts = SharedTable::new(1 << 20, &Budget::new(256 << 20));
//! let host = hosts.hash(0x0001_0200_0000_0001);
//! assert_eq!(hosts.insert(host, 7, 100), SharedInsert::Inserted);
//! assert_eq!(hosts.insert(host, 8, 100), SharedInsert::There { value: 7 });
//! assert_eq!(hosts.replace(host, 7, 8, 101), Ok(()));
//! assert_eq!(hosts.lookup(host), Some(8));
//! assert_eq!(hosts.lookup_fresh(host, 500, 300), None);
//! ```
//!
//! [`FlatTable`]: crate::FlatTable

mod line;
mod lines;
#[cfg(all(test, loom))]
mod loom_tests;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;
mod write;

use std::hint::cold_path;

use line::{Entry, Line, Snapshot};
use lines::Lines;
use sync::{AtomicU64, AtomicUsize, Ordering, spin_loop};

use crate::budget::Budget;
use crate::seed::{Hashed, Seed};
use crate::stamp::{age, stamp};
use crate::table::MAX_BOUND_ENTRIES;

/// Times that an operation looks at a line that somebody writes before it gives up. A write takes
/// some ten nanoseconds, and a pause between two looks as long.
#[cfg(not(loom))]
pub const MAX_TRIES: usize = 256;
/// Few, so that all interleavings can be tried.
#[cfg(loom)]
pub const MAX_TRIES: usize = 2;

/// A full table holds nine entries for each four lines of three slots.
const ENTRIES_PER_FOUR_LINES: usize = 9;

/// What an insertion did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an eviction is reported here and nowhere else"]
pub enum SharedInsert {
    /// The key is new.
    Inserted,
    /// The key is new, and an old entry went to make room for it.
    Evicted {
        /// The key of the entry that went.
        key: u64,
        /// Its value.
        value: u64,
    },
    /// Nothing was changed: the key is there already.
    There {
        /// Its value.
        value: u64,
    },
    /// Nothing was changed: others wrote where it belongs all the time, or the table has no room at all.
    Busy,
}

/// Why a value was not replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReplaced {
    /// It is another one.
    Is(u64),
    /// The key is not there.
    Absent,
    /// Others wrote there all the time.
    Busy,
}

/// What happened in the life of a shared table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedStats {
    /// Entries that went to make room for others.
    pub evicted: u64,
    /// Those of them that went although the table was not full, since the new entry had no place.
    pub crowded_out: u64,
    /// Entries that [`SharedTable::age`] removed.
    pub aged_out: u64,
    /// Changes that were not made, and look-ups that ended without an answer, since others wrote.
    pub busy: u64,
}

/// A number that many write, in cache lines of its own, so that nobody waits for it who needs its neighbours.
#[repr(align(128))]
struct Apart<T>(T);

/// A bounded hash table from `u64` to `u64` that threads share, whose entries age. See the
/// module's documentation.
///
/// "Now" is a number of ticks of the callers' clock, the same for all; it may wrap around (see
/// [`MAX_AGE_TICKS`](crate::MAX_AGE_TICKS)).
pub struct SharedTable {
    lines: Lines,
    seed: Seed,
    bound: usize,
    len: Apart<AtomicUsize>,
    /// The line that the next eviction looks at first, and the next that a sweep does.
    hand: Apart<AtomicUsize>,
    sweep: AtomicUsize,
    stats: Apart<Counts>,
}

/// What a look for a key came to.
enum Look<'t> {
    /// It is in this line, in this slot.
    Here(Snapshot<'t>, usize, Entry),
    Nowhere,
    /// Somebody writes there.
    Busy,
}

#[derive(Default)]
struct Counts {
    evicted: AtomicU64,
    crowded_out: AtomicU64,
    aged_out: AtomicU64,
    busy: AtomicU64,
}

impl SharedTable {
    /// An empty table for at most `bound` entries, with a secret seed of its own. While the budget has
    /// not the bytes for it, the bound is halved; [`SharedTable::bound`] returns the result. A bound of 0 is a table that
    /// takes nothing.
    #[must_use]
    pub fn new(bound: usize, budget: &Budget) -> Self {
        Self::with_seed(bound, budget, Seed::random())
    }

    /// The same with a given seed, for simulations that must repeat.
    #[must_use]
    pub fn with_seed(bound: usize, budget: &Budget, seed: Seed) -> Self {
        let mut bound = bound.min(MAX_BOUND_ENTRIES);
        let lines = loop {
            if bound == 0 {
                break Lines::none();
            }
            if let Some(lines) = Lines::reserve(lines_for(bound), budget) {
                break lines;
            }
            bound /= 2;
        };
        SharedTable {
            lines,
            seed,
            bound,
            len: Apart(AtomicUsize::new(0)),
            hand: Apart(AtomicUsize::new(0)),
            sweep: AtomicUsize::new(0),
            stats: Apart(Counts::default()),
        }
    }

    /// Hashes a key for this table. A batch hashes and prefetches all its keys before it looks up the
    /// first.
    #[inline(always)]
    #[must_use]
    pub fn hash(&self, key: u64) -> Hashed {
        self.seed.hash(key)
    }

    /// Starts to bring the likely place of a key into the cache.
    #[inline]
    pub fn prefetch(&self, at: Hashed) {
        self.lines.prefetch_first(at);
    }

    /// The second step of that, when the first has had its time: the other place of a key that is not
    /// where it is likely.
    #[inline]
    pub fn prefetch_rest(&self, at: Hashed) {
        if self.lines.first(at).is_some_and(|line| line.likely(at.key).is_none()) {
            self.lines.prefetch_second(at);
        }
    }

    /// The value of a key, however old.
    #[must_use]
    pub fn lookup(&self, at: Hashed) -> Option<u64> {
        self.find(at).map(|entry| entry.value)
    }

    /// The value of a key and how many ticks before `now` it was last seen.
    #[must_use]
    pub fn lookup_age(&self, at: Hashed, now: u32) -> Option<(u64, u32)> {
        self.find(at).map(|entry| (entry.value, age(entry.stamp, now)))
    }

    /// The value of a key whose entry is at most `max_age` ticks old.
    #[inline(always)]
    #[must_use]
    pub fn lookup_fresh(&self, at: Hashed, now: u32, max_age: u32) -> Option<u64> {
        if let Some((_, entry)) = self.lines.first(at).and_then(|line| line.likely(at.key))
            && is_fresh(&entry, now, max_age)
        {
            return Some(entry.value);
        }
        self.fresh_elsewhere(at.key, now, max_age)
    }

    /// Hashes again, so that the caller need not keep the hash at hand.
    #[cold]
    #[inline(never)]
    fn fresh_elsewhere(&self, key: u64, now: u32, max_age: u32) -> Option<u64> {
        self.find(self.hash(key))
            .filter(|entry| is_fresh(entry, now, max_age))
            .map(|entry| entry.value)
    }

    /// The value of a key if `accept` takes it; then its entry is from now on as old as a new one.
    #[inline(always)]
    pub fn touch_if(&self, at: Hashed, now: u32, accept: impl Fn(u64) -> bool) -> Option<u64> {
        if let Some(line) = self.lines.first(at)
            && let Some((slot, entry)) = line.likely(at.key)
            && entry.is_occupied()
        {
            if !accept(entry.value) {
                cold_path();
                return None;
            }
            line.refresh(slot, entry.stamp, now);
            return Some(entry.value);
        }
        self.touch_elsewhere(at.key, now, accept)
    }

    /// In the second line, or closely.
    #[cold]
    #[inline(never)]
    fn touch_elsewhere(&self, key: u64, now: u32, accept: impl Fn(u64) -> bool) -> Option<u64> {
        let at = self.hash(key);
        let entry = self.find(at)?;
        if !accept(entry.value) {
            return None;
        }
        if entry.stamp != stamp(now) {
            let homes = self.lines.homes(at);
            for line in homes.into_iter().filter_map(|line| self.lines.get(line)) {
                line.refresh_key(key, now);
            }
        }
        Some(entry.value)
    }

    #[inline(never)]
    fn find(&self, at: Hashed) -> Option<Entry> {
        for _ in 0..MAX_TRIES {
            match self.look(at) {
                Look::Here(_, _, entry) => return Some(entry),
                Look::Nowhere => return None,
                Look::Busy => spin_loop(),
            }
        }
        self.stats.0.busy.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Looks for a key, once.
    #[inline]
    fn look(&self, at: Hashed) -> Look<'_> {
        let [first, second] = self.lines.homes(at);
        let snapshot = |line| self.lines.get(line).and_then(Line::snapshot);
        let find = |line: &Option<Snapshot<'_>>| line.as_ref().and_then(|line| line.find(at.key));
        let first = snapshot(first);
        if let Some((slot, entry)) = find(&first)
            && let Some(line) = first
        {
            return Look::Here(line, slot, entry);
        }
        let second = snapshot(second);
        if let Some((slot, entry)) = find(&second)
            && let Some(line) = second
        {
            return Look::Here(line, slot, entry);
        }
        // Neither had it at one moment: it may have been moved from the second to the first in between.
        match (first, second) {
            (Some(first), Some(_)) if first.is_current() => Look::Nowhere,
            _ if self.lines.count() == 0 => Look::Nowhere,
            _ => Look::Busy,
        }
    }

    /// Entries, those included that are old but not yet swept.
    #[must_use]
    pub fn len(&self) -> usize {
        // An insertion counts its entry before it makes room for it.
        self.len.0.load(Ordering::Relaxed).min(self.bound)
    }

    /// True if there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Maximum number of entries that the table holds.
    #[must_use]
    pub fn bound(&self) -> usize {
        self.bound
    }

    /// Lines that a sweep of [`SharedTable::age`] has to look at: one step each.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines.count()
    }

    /// The bytes charged to the budget.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.lines.bytes()
    }

    /// The bytes that its entries are spread over: what of it is in use. A line each, until lines
    /// are shared.
    #[inline]
    #[must_use]
    pub fn bytes_in_use(&self) -> usize {
        self.len().min(self.lines.count()) * lines::LINE_BYTES
    }

    /// What happened so far.
    #[must_use]
    pub fn stats(&self) -> SharedStats {
        let Counts { evicted, crowded_out, aged_out, busy } = &self.stats.0;
        let [evicted, crowded_out, aged_out, busy] =
            [evicted, crowded_out, aged_out, busy].map(|count| count.load(Ordering::Relaxed));
        SharedStats { evicted, crowded_out, aged_out, busy }
    }

    /// All entries with their ages in ticks at `now`, in no order. Each line is read at one moment, the
    /// table is not: an entry that is moved meanwhile may be missed, or seen twice.
    pub fn iter_ages(&self, now: u32) -> impl Iterator<Item = (u64, u64, u32)> + use<'_> {
        let lines = (0..self.lines.count()).filter_map(|line| self.lines.get(line));
        let entries = lines.filter_map(Line::snapshot).flat_map(|line| line.slots);
        entries
            .filter(Entry::is_occupied)
            .map(move |entry| (entry.key, entry.value, age(entry.stamp, now)))
    }
}

impl std::fmt::Debug for SharedTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedTable")
            .field("len", &self.len())
            .field("bound", &self.bound)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

#[inline(always)]
fn is_fresh(entry: &Entry, now: u32, max_age: u32) -> bool {
    // Most hits come within the tick of the last one.
    entry.stamp == stamp(now) || (entry.is_occupied() && age(entry.stamp, now) <= max_age)
}

/// The lines that a bound needs.
fn lines_for(bound: usize) -> usize {
    (bound * 4).div_ceil(ENTRIES_PER_FOUR_LINES)
}
