//! The interface of the shared table, and its implementation without locks.

use std::ops::ControlFlow;

use bellrock_tables::{Budget, Hashed, NotReplaced, Seed, SharedInsert, SharedTable};

/// A table from hosts to their places, for all switches. Keys and values are words that only the
/// app interprets. Each call is atomic; times are in seconds.
///
/// [`SharedTable`] implements it and documents each method. Other tables are for experiments on the
/// cost of sharing (crate `bellrock-sharing`).
#[expect(missing_docs, reason = "see SharedTable")]
pub trait GlobalTable: Send + Sync + 'static {
    /// Whether switches cache entries of it, so that they rarely read it. False for tables that
    /// show the cost of a look-up for each packet.
    const IS_CACHED: bool = false;
    fn new(bound: usize, budget: &Budget, seed: Seed) -> Self;
    fn hash(&self, key: u64) -> Hashed;
    fn prefetch(&self, at: Hashed);
    fn prefetch_rest(&self, at: Hashed);
    fn bytes_in_use(&self) -> usize;
    fn touch_if(&self, at: Hashed, now: u32, accept: impl Fn(u64) -> bool) -> Option<u64>;
    fn lookup_fresh(&self, at: Hashed, now: u32, max_age: u32) -> Option<u64>;
    fn lookup_age(&self, at: Hashed, now: u32) -> Option<(u64, u32)>;
    fn insert(&self, at: Hashed, value: u64, now: u32) -> SharedInsert;
    /// # Errors
    /// Reason why the value was not replaced.
    fn replace(&self, at: Hashed, expected: u64, value: u64, now: u32) -> Result<(), NotReplaced>;
    /// # Errors
    /// Reason why the value was not replaced.
    fn replace_unseen(&self, at: Hashed, expected: u64, value: u64) -> Result<(), NotReplaced>;
    /// # Errors
    /// Reason why the entry was not removed.
    fn remove(&self, at: Hashed, expected: u64) -> Result<(), NotReplaced>;
    fn remove_where(
        &self,
        select: &mut dyn FnMut(u64, u64) -> bool,
        removed: &mut dyn FnMut(u64, u64),
    );
    fn lines(&self) -> usize;
    fn age(&self, now: u32, max_age: u32, steps: usize, removed: &mut dyn FnMut(u64, u64));
    fn for_each(&self, now: u32, report: &mut dyn FnMut(u64, u64, u32) -> ControlFlow<()>);
}

impl GlobalTable for SharedTable {
    const IS_CACHED: bool = true;

    fn new(bound: usize, budget: &Budget, seed: Seed) -> Self {
        SharedTable::with_seed(bound, budget, seed)
    }

    #[inline(always)]
    fn hash(&self, key: u64) -> Hashed {
        self.hash(key)
    }

    #[inline]
    fn prefetch(&self, at: Hashed) {
        self.prefetch(at);
    }

    #[inline]
    fn prefetch_rest(&self, at: Hashed) {
        self.prefetch_rest(at);
    }

    #[inline]
    fn bytes_in_use(&self) -> usize {
        self.bytes_in_use()
    }

    #[inline(always)]
    fn touch_if(&self, at: Hashed, now: u32, accept: impl Fn(u64) -> bool) -> Option<u64> {
        self.touch_if(at, now, accept)
    }

    #[inline(always)]
    fn lookup_fresh(&self, at: Hashed, now: u32, max_age: u32) -> Option<u64> {
        self.lookup_fresh(at, now, max_age)
    }

    fn lookup_age(&self, at: Hashed, now: u32) -> Option<(u64, u32)> {
        self.lookup_age(at, now)
    }

    fn insert(&self, at: Hashed, value: u64, now: u32) -> SharedInsert {
        self.insert(at, value, now)
    }

    fn replace(&self, at: Hashed, expected: u64, value: u64, now: u32) -> Result<(), NotReplaced> {
        self.replace(at, expected, value, now)
    }

    fn replace_unseen(&self, at: Hashed, expected: u64, value: u64) -> Result<(), NotReplaced> {
        self.replace_unseen(at, expected, value)
    }

    fn remove(&self, at: Hashed, expected: u64) -> Result<(), NotReplaced> {
        self.remove(at, expected)
    }

    fn remove_where(
        &self,
        select: &mut dyn FnMut(u64, u64) -> bool,
        removed: &mut dyn FnMut(u64, u64),
    ) {
        self.remove_where(select, removed);
    }

    fn lines(&self) -> usize {
        self.lines()
    }

    fn age(&self, now: u32, max_age: u32, steps: usize, removed: &mut dyn FnMut(u64, u64)) {
        self.age(now, max_age, steps, removed);
    }

    fn for_each(&self, now: u32, report: &mut dyn FnMut(u64, u64, u32) -> ControlFlow<()>) {
        let mut all = self.iter_ages(now);
        let _stopped = all.try_for_each(|(key, value, age)| report(key, value, age));
    }
}
