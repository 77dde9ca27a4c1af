//! A table that all threads read and write; no thread waits for another.
//!
//! [`SharedTable`] maps a `u64` to a `u64` and records when each entry was last seen, as
//! [`FlatTable`] does for one owner. Global learning stores the location of every host in one.
//!
//! Properties:
//! - **Reading takes no lock and writes nothing shared.** A usual hit reads one cache line, any
//!   other look-up two. It executes no instruction with a `lock` prefix, except that it marks an
//!   entry as seen at most once a tick.
//! - **A reader never sees the value of another key**, nor an older value after a newer one.
//! - **Writers do not wait either.** A writer takes snapshots of lines and decides what to write
//!   where. Then it locks one or two lines for a few stores, if they are unchanged. There is no
//!   deadlock: a writer that cannot lock a line releases all its lines and starts again.
//! - **Every operation on one key does a bounded amount of work.** It tries [`MAX_TRIES`] times.
//!   After that a look-up reports a miss, and a change reports [`SharedInsert::Busy`]. So a thread
//!   that the system suspends delays no other thread. If it is suspended between those stores, the
//!   three entries of its line appear absent until it resumes.
//! - **Memory is bounded** by the bound on entries and by a [`Budget`]: 28.4 bytes an entry,
//!   charged when the table is created. The kernel provides it page by page as it is used.
//! - **An attacker may choose the keys.** The hash is keyed ([`Seed`]).
//!
//! Limits: the table does not change its size. To resize it under its readers would cost every
//! look-up a second search, or a way to detect when the last reader has left the old memory.
//! Charged but untouched memory costs nothing. It reads no clock and keeps no order.
//! `docs/adr/0010-shared-table.md` explains the design.
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

use line::{LineSnapshot, SharedEntry, SharedLine};
use lines::SharedLines;
use sync::{AtomicU64, AtomicUsize, Ordering, spin_loop};

use crate::budget::Budget;
use crate::seed::{Hashed, Seed};
use crate::stamp::{age, stamp};
use crate::table::MAX_BOUND_ENTRIES;

/// Number of attempts of an operation on a line that another thread is writing. A write takes some
/// ten nanoseconds; so does the pause between two attempts.
#[cfg(not(loom))]
pub const MAX_TRIES: usize = 256;
/// Few, so that all interleavings can be tried.
#[cfg(loom)]
pub const MAX_TRIES: usize = 2;

/// Entries of a full table for each four lines of three slots.
const ENTRIES_PER_FOUR_LINES: usize = 9;

/// Result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an eviction is reported here and nowhere else"]
pub enum SharedInsert {
    /// The key is new.
    Inserted,
    /// The key is new, and an old entry was removed for it.
    Evicted {
        /// The key of the removed entry.
        key: u64,
        /// Its value.
        value: u64,
    },
    /// Nothing was changed: the key is present already.
    There {
        /// Its value.
        value: u64,
    },
    /// Nothing was changed: other threads kept writing to its lines, or the bound is 0.
    Busy,
}

/// Reason why a value was not replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReplaced {
    /// The key has this other value.
    Is(u64),
    /// The key is absent.
    Absent,
    /// Other threads kept writing to its lines.
    Busy,
}

/// Counters over the life of a shared table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedStats {
    /// Entries removed to make space for new ones.
    pub evicted: u64,
    /// Evicted entries of a table that was not full: the new entry had no free slot.
    pub crowded_out: u64,
    /// Entries that [`SharedTable::age`] removed.
    pub aged_out: u64,
    /// Changes and look-ups that failed because other threads kept writing.
    pub busy: u64,
}

/// A number that many threads write. It has its own cache lines, so that writes do not delay
/// accesses to its neighbours.
#[repr(align(128))]
struct Apart<T>(T);

/// A bounded hash table from `u64` to `u64` that threads share, whose entries age. See the module.
///
/// "Now" is a number of ticks of a clock that all callers share. It may wrap around (see
/// [`MAX_AGE_TICKS`](crate::MAX_AGE_TICKS)).
pub struct SharedTable {
    lines: SharedLines,
    seed: Seed,
    bound: usize,
    len: Apart<AtomicUsize>,
    /// The next line of an eviction; below, the next line of a sweep.
    hand: Apart<AtomicUsize>,
    sweep: AtomicUsize,
    stats: Apart<SharedCounts>,
}

/// Result of one search for a key.
enum LookUp<'t> {
    /// The key is in this line, in this slot.
    Here(LineSnapshot<'t>, usize, SharedEntry),
    Nowhere,
    /// Another thread is writing there.
    Busy,
}

#[derive(Default)]
struct SharedCounts {
    evicted: AtomicU64,
    crowded_out: AtomicU64,
    aged_out: AtomicU64,
    busy: AtomicU64,
}

impl SharedTable {
    /// Creates an empty table for at most `bound` entries, with its own secret seed. While the
    /// budget has too few bytes, the bound is halved; [`SharedTable::bound`] returns the result. A
    /// table with bound 0 accepts no entry.
    #[must_use]
    pub fn new(bound: usize, budget: &Budget) -> Self {
        Self::with_seed(bound, budget, Seed::random())
    }

    /// Creates a table with a given seed, for simulations that must repeat.
    #[must_use]
    pub fn with_seed(bound: usize, budget: &Budget, seed: Seed) -> Self {
        let mut bound = bound.min(MAX_BOUND_ENTRIES);
        let lines = loop {
            if bound == 0 {
                break SharedLines::none();
            }
            if let Some(lines) = SharedLines::reserve(lines_for(bound), budget) {
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
            stats: Apart(SharedCounts::default()),
        }
    }

    /// Hashes a key for this table. A batch hashes and prefetches all its keys before its look-ups.
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

    /// Second step of the prefetch, after the first has completed: prefetches the second line of a
    /// key that is not in its first line.
    #[inline]
    pub fn prefetch_rest(&self, at: Hashed) {
        if self.lines.first(at).is_some_and(|line| line.likely(at.key).is_none()) {
            self.lines.prefetch_second(at);
        }
    }

    /// Returns the value of a key, regardless of age.
    #[must_use]
    pub fn lookup(&self, at: Hashed) -> Option<u64> {
        self.find(at).map(|entry| entry.value)
    }

    /// Returns the value of a key and its age in ticks at `now`.
    #[must_use]
    pub fn lookup_age(&self, at: Hashed, now: u32) -> Option<(u64, u32)> {
        self.find(at).map(|entry| (entry.value, age(entry.stamp, now)))
    }

    /// Returns the value of a key whose entry is at most `max_age` ticks old.
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

    /// Hashes again, so that the caller need not keep the hash in a register.
    #[cold]
    #[inline(never)]
    fn fresh_elsewhere(&self, key: u64, now: u32, max_age: u32) -> Option<u64> {
        self.find(self.hash(key))
            .filter(|entry| is_fresh(entry, now, max_age))
            .map(|entry| entry.value)
    }

    /// Returns the value of a key if `accept` accepts it, and then sets the entry's age to zero.
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

    /// Searches both lines, each as a snapshot.
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
    fn find(&self, at: Hashed) -> Option<SharedEntry> {
        for _ in 0..MAX_TRIES {
            match self.look(at) {
                LookUp::Here(_, _, entry) => return Some(entry),
                LookUp::Nowhere => return None,
                LookUp::Busy => spin_loop(),
            }
        }
        self.stats.0.busy.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Searches for a key once.
    #[inline]
    fn look(&self, at: Hashed) -> LookUp<'_> {
        let [first, second] = self.lines.homes(at);
        let snapshot = |line| self.lines.get(line).and_then(SharedLine::snapshot);
        let find =
            |line: &Option<LineSnapshot<'_>>| line.as_ref().and_then(|line| line.find(at.key));
        let first = snapshot(first);
        if let Some((slot, entry)) = find(&first)
            && let Some(line) = first
        {
            return LookUp::Here(line, slot, entry);
        }
        let second = snapshot(second);
        if let Some((slot, entry)) = find(&second)
            && let Some(line) = second
        {
            return LookUp::Here(line, slot, entry);
        }
        // Neither snapshot had it, but it may have moved from the second to the first meanwhile.
        match (first, second) {
            (Some(first), Some(_)) if first.is_current() => LookUp::Nowhere,
            _ if self.lines.count() == 0 => LookUp::Nowhere,
            _ => LookUp::Busy,
        }
    }

    /// Number of entries, including old ones that are not yet swept.
    #[must_use]
    pub fn len(&self) -> usize {
        // An insertion counts its entry before it evicts another.
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

    /// Number of lines that a sweep of [`SharedTable::age`] reads: one step each.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines.count()
    }

    /// Number of bytes charged to the budget.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.lines.bytes()
    }

    /// Estimated bytes of memory in use: one line for each entry, up to all lines.
    #[inline]
    #[must_use]
    pub fn bytes_in_use(&self) -> usize {
        self.len().min(self.lines.count()) * lines::LINE_BYTES
    }

    /// Counters since the table was created.
    #[must_use]
    pub fn stats(&self) -> SharedStats {
        let SharedCounts { evicted, crowded_out, aged_out, busy } = &self.stats.0;
        let [evicted, crowded_out, aged_out, busy] =
            [evicted, crowded_out, aged_out, busy].map(|count| count.load(Ordering::Relaxed));
        SharedStats { evicted, crowded_out, aged_out, busy }
    }

    /// Iterates over all entries with their ages in ticks at `now`, in no order. Each line is read
    /// atomically, but not the table: an entry that moves meanwhile may be missed, or seen twice.
    pub fn iter_ages(&self, now: u32) -> impl Iterator<Item = (u64, u64, u32)> + use<'_> {
        let lines = (0..self.lines.count()).filter_map(|line| self.lines.get(line));
        let entries = lines.filter_map(SharedLine::snapshot).flat_map(|line| line.slots);
        entries
            .filter(SharedEntry::is_occupied)
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
fn is_fresh(entry: &SharedEntry, now: u32, max_age: u32) -> bool {
    // Most hits come within the tick of the last one.
    entry.stamp == stamp(now) || (entry.is_occupied() && age(entry.stamp, now) <= max_age)
}

/// Number of lines that a bound needs.
fn lines_for(bound: usize) -> usize {
    (bound * 4).div_ceil(ENTRIES_PER_FOUR_LINES)
}
