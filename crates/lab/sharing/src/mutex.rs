//! The table behind a mutex, which every look-up locks.

use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bellrock_apps::global_learning::GlobalTable;
use bellrock_tables::{Budget, Hashed, NotReplaced, Seed, SharedInsert, SharedTable};

/// The product's table behind a mutex. Only the cost of the lock differs.
pub struct InMutex {
    /// Hashes keys before the lock is taken.
    seed: Seed,
    table: Mutex<SharedTable>,
}

impl InMutex {
    fn table(&self) -> MutexGuard<'_, SharedTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GlobalTable for InMutex {
    fn new(bound: usize, budget: &Budget, seed: Seed) -> Self {
        let table = Mutex::new(SharedTable::with_seed(bound, budget, seed.clone()));
        InMutex { seed, table }
    }

    #[inline(always)]
    fn hash(&self, key: u64) -> Hashed {
        self.seed.hash(key)
    }

    fn prefetch(&self, at: Hashed) {
        self.table().prefetch(at);
    }

    fn prefetch_rest(&self, at: Hashed) {
        self.table().prefetch_rest(at);
    }

    fn bytes_in_use(&self) -> usize {
        self.table().bytes_in_use()
    }

    fn touch_if(&self, at: Hashed, now: u32, accept: impl Fn(u64) -> bool) -> Option<u64> {
        self.table().touch_if(at, now, accept)
    }

    fn lookup_fresh(&self, at: Hashed, now: u32, max_age: u32) -> Option<u64> {
        self.table().lookup_fresh(at, now, max_age)
    }

    fn lookup_age(&self, at: Hashed, now: u32) -> Option<(u64, u32)> {
        self.table().lookup_age(at, now)
    }

    fn insert(&self, at: Hashed, value: u64, now: u32) -> SharedInsert {
        self.table().insert(at, value, now)
    }

    fn replace(&self, at: Hashed, expected: u64, value: u64, now: u32) -> Result<(), NotReplaced> {
        self.table().replace(at, expected, value, now)
    }

    fn replace_unseen(&self, at: Hashed, expected: u64, value: u64) -> Result<(), NotReplaced> {
        self.table().replace_unseen(at, expected, value)
    }

    fn remove(&self, at: Hashed, expected: u64) -> Result<(), NotReplaced> {
        self.table().remove(at, expected)
    }

    fn remove_where(
        &self,
        select: &mut dyn FnMut(u64, u64) -> bool,
        removed: &mut dyn FnMut(u64, u64),
    ) {
        self.table().remove_where(select, removed);
    }

    fn lines(&self) -> usize {
        self.table().lines()
    }

    fn age(&self, now: u32, max_age: u32, steps: usize, removed: &mut dyn FnMut(u64, u64)) {
        self.table().age(now, max_age, steps, removed);
    }

    fn for_each(&self, now: u32, report: &mut dyn FnMut(u64, u64, u32) -> ControlFlow<()>) {
        let table = self.table();
        let _stopped =
            table.iter_ages(now).try_for_each(|(key, value, age)| report(key, value, age));
    }
}
