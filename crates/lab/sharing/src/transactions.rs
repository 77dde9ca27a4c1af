//! The table in transactions: buckets are shared variables; each access is a transaction.
//!
//! It shows the cost of transactions for every packet. Transactions are for values that must change
//! together; the place of a host is one word. Its memory is limited by its bound on entries, but
//! not charged to the budget.

use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use bellrock_apps::global_learning::GlobalTable;
use bellrock_tables::{Budget, Hashed, NotReplaced, Seed, SharedInsert};
use bellrock_transactions::{TVar, atomically};

/// Average number of entries in a bucket of a full table.
const ENTRIES_PER_BUCKET: usize = 4;

/// Maximum number of entries of a bucket. In a full table one bucket in a million million would
/// have more: an eviction before the table is full is thus deliberate.
const MAX_ENTRIES_PER_BUCKET: usize = 24;

/// Bytes of an entry with its share of the bucket, to estimate whether the table fits the cache.
const BYTES_PER_ENTRY: usize = 128;

/// Maximum age in seconds. An entry with a greater age counts as new, as in the other tables.
const HALF_OF_CLOCK: u32 = u32::MAX / 2;

/// A table whose entries are in transactional variables.
pub struct InTransactions {
    seed: Seed,
    /// Variables are created at their first write.
    buckets: Box<[OnceLock<TVar<HostBucket>>]>,
    len: AtomicUsize,
    bound: usize,
    sweep: AtomicUsize,
}

type HostBucket = std::sync::Arc<[HostVariable]>;

#[derive(Clone, Copy)]
struct HostVariable {
    key: u64,
    value: u64,
    /// In seconds.
    last_seen: u32,
}

impl HostVariable {
    fn age(&self, now: u32) -> u32 {
        // A clock behind that of the last write means that the entry is new.
        Some(now.wrapping_sub(self.last_seen)).filter(|age| *age <= HALF_OF_CLOCK).unwrap_or(0)
    }
}

/// Change of a bucket in a transaction.
enum BucketChange {
    Nothing,
    Put(usize, HostVariable),
    Push(HostVariable),
    Remove(usize),
}

impl InTransactions {
    fn bucket(&self, at: Hashed) -> Option<&OnceLock<TVar<HostBucket>>> {
        let index = (u128::from(at.hash()) * self.buckets.len() as u128) >> 64;
        self.buckets.get(index as usize)
    }

    /// Reads one bucket in a transaction. `None` if there is none, or others interfered too often.
    fn read<R>(&self, at: Hashed, view: impl Fn(&[HostVariable]) -> R) -> Option<R> {
        let bucket = self.bucket(at)?.get()?;
        atomically(|tx| Ok(view(&tx.read(bucket)?))).ok()
    }

    /// Changes one bucket in a transaction. `None` as for [`InTransactions::read`].
    fn change<R>(
        &self,
        at: Hashed,
        decide: impl Fn(&[HostVariable]) -> (BucketChange, R),
    ) -> Option<R> {
        let bucket = self.bucket(at)?.get_or_init(|| TVar::new(HostBucket::default()));
        self.change_bucket(bucket, decide)
    }

    fn change_bucket<R>(
        &self,
        bucket: &TVar<HostBucket>,
        decide: impl Fn(&[HostVariable]) -> (BucketChange, R),
    ) -> Option<R> {
        let (before, after, result) = atomically(|tx| {
            let mut entries = tx.read(bucket)?.to_vec();
            let before = entries.len();
            let (change, result) = decide(&entries);
            match change {
                BucketChange::Nothing => return Ok((before, before, result)),
                BucketChange::Put(slot, entry) => {
                    entries.get_mut(slot).into_iter().for_each(|present| *present = entry);
                }
                BucketChange::Push(entry) => entries.push(entry),
                BucketChange::Remove(slot) => drop(entries.swap_remove(slot)),
            }
            let after = entries.len();
            tx.write(bucket, entries.into())?;
            Ok((before, after, result))
        })
        .ok()?;
        if after > before {
            self.len.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.len.fetch_sub(before - after, Ordering::Relaxed);
        }
        Some(result)
    }

    fn exchange(
        &self,
        at: Hashed,
        expected: u64,
        change: impl Fn(usize, HostVariable) -> BucketChange,
    ) -> Result<(), NotReplaced> {
        let exchanged = self.change(at, |entries| match find(entries, at.key()) {
            None => (BucketChange::Nothing, Err(NotReplaced::Absent)),
            Some((_, entry)) if entry.value != expected => {
                (BucketChange::Nothing, Err(NotReplaced::Is(entry.value)))
            }
            Some((slot, entry)) => (change(slot, entry), Ok(())),
        });
        exchanged.unwrap_or(Err(NotReplaced::Busy))
    }

    /// Removes the entries of a bucket that `select` selects.
    fn remove_in(
        &self,
        bucket: &TVar<HostBucket>,
        select: &mut dyn FnMut(&HostVariable) -> bool,
        removed: &mut dyn FnMut(u64, u64),
    ) {
        // Selected outside the transaction, which may run again.
        for entry in bucket.load().iter().filter(|entry| select(entry)) {
            let is_removed = self.change_bucket(bucket, |entries| match find(entries, entry.key) {
                Some((slot, present))
                    if present.value == entry.value && present.last_seen == entry.last_seen =>
                {
                    (BucketChange::Remove(slot), true)
                }
                _ => (BucketChange::Nothing, false),
            });
            if is_removed == Some(true) {
                removed(entry.key, entry.value);
            }
        }
    }
}

fn find(entries: &[HostVariable], key: u64) -> Option<(usize, HostVariable)> {
    entries.iter().copied().enumerate().find(|(_, entry)| entry.key == key)
}

impl GlobalTable for InTransactions {
    fn new(bound: usize, _: &Budget, seed: Seed) -> Self {
        let buckets = (0..bound.div_ceil(ENTRIES_PER_BUCKET)).map(|_| OnceLock::new()).collect();
        let (len, sweep) = (AtomicUsize::new(0), AtomicUsize::new(0));
        InTransactions { seed, buckets, len, bound, sweep }
    }

    #[inline(always)]
    fn hash(&self, key: u64) -> Hashed {
        self.seed.hash(key)
    }

    /// Does nothing: the place of a variable's value in memory is unknown here.
    fn prefetch(&self, _: Hashed) {}

    fn prefetch_rest(&self, _: Hashed) {}

    fn bytes_in_use(&self) -> usize {
        self.len.load(Ordering::Relaxed) * BYTES_PER_ENTRY
    }

    fn touch_if(&self, at: Hashed, now: u32, accept: impl Fn(u64) -> bool) -> Option<u64> {
        let (value, last_seen) = self.read(at, |entries| {
            let (_, entry) = find(entries, at.key())?;
            accept(entry.value).then_some((entry.value, entry.last_seen))
        })??;
        if last_seen != now {
            // If the value has changed meanwhile, the other writer has also set its age.
            let _result = self.exchange(at, value, |slot, entry| {
                BucketChange::Put(slot, HostVariable { last_seen: now, ..entry })
            });
        }
        Some(value)
    }

    fn lookup_fresh(&self, at: Hashed, now: u32, max_age: u32) -> Option<u64> {
        self.lookup_age(at, now).filter(|(_, age)| *age <= max_age).map(|(value, _)| value)
    }

    fn lookup_age(&self, at: Hashed, now: u32) -> Option<(u64, u32)> {
        let (_, entry) = self.read(at, |entries| find(entries, at.key()))??;
        Some((entry.value, entry.age(now)))
    }

    fn insert(&self, at: Hashed, value: u64, now: u32) -> SharedInsert {
        let new = HostVariable { key: at.key(), value, last_seen: now };
        let inserted = self.change(at, |entries| {
            if let Some((_, entry)) = find(entries, at.key()) {
                return (BucketChange::Nothing, SharedInsert::There { value: entry.value });
            }
            let is_full = self.len.load(Ordering::Relaxed) >= self.bound;
            let oldest = entries.iter().enumerate().max_by_key(|(_, entry)| entry.age(now));
            match oldest {
                Some((slot, old)) if is_full || entries.len() >= MAX_ENTRIES_PER_BUCKET => (
                    BucketChange::Put(slot, new),
                    SharedInsert::Evicted { key: old.key, value: old.value },
                ),
                _ => (BucketChange::Push(new), SharedInsert::Inserted),
            }
        });
        inserted.unwrap_or(SharedInsert::Busy)
    }

    fn replace(&self, at: Hashed, expected: u64, value: u64, now: u32) -> Result<(), NotReplaced> {
        self.exchange(at, expected, |slot, entry| {
            BucketChange::Put(slot, HostVariable { value, last_seen: now, ..entry })
        })
    }

    fn replace_unseen(&self, at: Hashed, expected: u64, value: u64) -> Result<(), NotReplaced> {
        self.exchange(at, expected, |slot, entry| {
            BucketChange::Put(slot, HostVariable { value, ..entry })
        })
    }

    fn remove(&self, at: Hashed, expected: u64) -> Result<(), NotReplaced> {
        self.exchange(at, expected, |slot, _| BucketChange::Remove(slot))
    }

    fn remove_where(
        &self,
        select: &mut dyn FnMut(u64, u64) -> bool,
        removed: &mut dyn FnMut(u64, u64),
    ) {
        for bucket in self.buckets.iter().filter_map(OnceLock::get) {
            self.remove_in(bucket, &mut |entry| select(entry.key, entry.value), removed);
        }
    }

    fn lines(&self) -> usize {
        self.buckets.len()
    }

    fn age(&self, now: u32, max_age: u32, steps: usize, removed: &mut dyn FnMut(u64, u64)) {
        let count = self.buckets.len();
        let steps = steps.min(count);
        if steps == 0 {
            return;
        }
        let from = self.sweep.fetch_add(steps, Ordering::Relaxed) % count;
        let next = self.buckets.iter().cycle().skip(from).take(steps);
        for bucket in next.filter_map(OnceLock::get) {
            self.remove_in(bucket, &mut |entry| entry.age(now) > max_age, removed);
        }
    }

    fn for_each(&self, now: u32, report: &mut dyn FnMut(u64, u64, u32) -> ControlFlow<()>) {
        for bucket in self.buckets.iter().filter_map(OnceLock::get) {
            for entry in bucket.load().iter() {
                if report(entry.key, entry.value, entry.age(now)).is_break() {
                    return;
                }
            }
        }
    }
}
