//! Limits the bytes that all tables of a process together may hold.
//!
//! A table uses it only when it changes its size, never per packet, so one shared atomic is enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A number of bytes that several tables share. Clones share the same bytes.
///
/// A table asks before it allocates. If it is refused, it keeps its size and evicts entries. Bytes
/// that one table returns, another can use.
#[derive(Clone, Debug)]
pub struct Budget(Arc<ByteCounter>);

#[derive(Debug)]
struct ByteCounter {
    limit: usize,
    used: AtomicUsize,
    /// Bytes of `used` for which the kernel accepted the advice to use huge pages.
    huge: AtomicUsize,
    /// Times that a table was refused memory.
    refusals: AtomicU64,
    source: Source,
}

/// Where the bytes of a budget come from.
#[derive(Debug)]
enum Source {
    /// It is a budget of its own.
    Own,
    /// They were taken out of a larger budget when this one was made.
    Part(MemoryReservation),
    /// A larger budget, out of which each table takes them too.
    Share(Budget),
}

impl Source {
    /// The larger budget.
    fn whole(&self) -> Option<&Budget> {
        match self {
            Source::Own => None,
            Source::Part(reservation) => Some(&reservation.budget),
            Source::Share(whole) => Some(whole),
        }
    }
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self::within(limit, Source::Own)
    }

    fn within(limit: usize, source: Source) -> Self {
        let (used, huge) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let refusals = AtomicU64::new(0);
        Self(Arc::new(ByteCounter { limit, used, huge, refusals, source }))
    }

    /// Takes a budget of `limit` bytes out of this one, for tables that together may use no more;
    /// `None` if this budget has too few left. The bytes are taken at once. They return when the
    /// last clone and the last table of the part are dropped.
    pub fn part(&self, limit: usize) -> Option<Self> {
        self.reserve(limit).map(|whole| Self::within(limit, Source::Part(whole)))
    }

    /// Makes a budget of at most `limit` bytes of this one, for the tables of one owner. Unlike
    /// those of a [`part`](Self::part), its bytes stay with this budget until a table takes them.
    /// So the shares of several owners may be larger together than the whole.
    pub fn share(&self, limit: usize) -> Self {
        Self::within(limit.min(self.limit()), Source::Share(self.clone()))
    }

    /// Creates a budget that refuses nothing; it still counts.
    pub fn unlimited() -> Self {
        Self::new(usize::MAX)
    }

    /// Maximum number of bytes that all tables together may hold.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Number of bytes that all tables together hold now.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Number of times that a table of this budget was refused memory: since this budget had too
    /// few bytes left, or the larger one that it is a share of. A table that is refused asks again
    /// after a while.
    pub fn refusals(&self) -> u64 {
        self.0.refusals.load(Ordering::Relaxed)
    }

    /// Bytes of large tables for which the kernel accepted the advice to use huge pages.
    /// `AnonHugePages` in `/proc/PID/smaps_rollup` shows whether the pages exist. 0 if the kernel
    /// does not support huge pages.
    pub fn huge_page_bytes(&self) -> usize {
        self.0.huge.load(Ordering::Relaxed)
    }

    /// Counts bytes for which the kernel was advised to use huge pages.
    pub(crate) fn advised(&self, bytes: usize) -> Advised {
        // The larger budget of a part counts them too.
        let whole = self.0.source.whole().map(|whole| Box::new(whole.advised(bytes)));
        self.0.huge.fetch_add(bytes, Ordering::Relaxed);
        Advised { budget: self.clone(), bytes, _whole: whole }
    }

    /// Takes `bytes` until the reservation is dropped; `None` if too few are left.
    pub(crate) fn reserve(&self, bytes: usize) -> Option<MemoryReservation> {
        if self.take(bytes) {
            return Some(MemoryReservation { budget: self.clone(), bytes });
        }
        self.0.refusals.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Takes `bytes` of this budget, and of the one that it is a share of.
    fn take(&self, bytes: usize) -> bool {
        let ByteCounter { limit, used, source, .. } = &*self.0;
        let add = |used: usize| used.checked_add(bytes).filter(|sum| sum <= limit);
        // Relaxed: the number guards no other memory.
        if used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
            return false;
        }
        if let Source::Share(whole) = source
            && !whole.take(bytes)
        {
            used.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        true
    }

    /// Returns `bytes` that were taken.
    fn put_back(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Source::Share(whole) = &self.0.source {
            whole.put_back(bytes);
        }
    }
}

/// Bytes advised for huge pages; dropping it ends the count.
#[derive(Debug)]
pub(crate) struct Advised {
    budget: Budget,
    bytes: usize,
    _whole: Option<Box<Advised>>,
}

impl Drop for Advised {
    fn drop(&mut self) {
        self.budget.0.huge.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes taken out of a [`Budget`]; dropping it returns them.
#[derive(Debug)]
pub(crate) struct MemoryReservation {
    budget: Budget,
    bytes: usize,
}

impl MemoryReservation {
    /// The budget that the bytes are taken out of.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The bytes that are still reserved.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns some of the bytes to the budget; all of them, if `bytes` is more.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.put_back(bytes);
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_out_its_limit_and_not_a_byte_more() {
        let budget = Budget::new(100);
        let first = budget.reserve(60).unwrap();
        assert!(budget.reserve(41).is_none());
        let mut second = budget.reserve(40).unwrap();
        assert_eq!(budget.used(), 100);
        second.give_back(15);
        assert_eq!((second.bytes(), budget.used()), (25, 85));
        second.give_back(50);
        assert_eq!((second.bytes(), budget.used()), (0, 60));
        let second = budget.reserve(40).unwrap();
        drop(first);
        assert_eq!(budget.used(), 40);
        drop(second);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_part_is_taken_at_once_and_given_back_with_its_last_table() {
        let budget = Budget::new(100);
        let part = budget.part(60).unwrap();
        assert!(budget.part(41).is_none());
        assert_eq!((budget.used(), part.used(), part.limit()), (60, 0, 60));
        let table = part.reserve(10).unwrap();
        assert!(part.reserve(51).is_none());
        let advised = part.advised(10);
        assert_eq!((budget.huge_page_bytes(), part.huge_page_bytes()), (10, 10));
        drop(part);
        drop(advised);
        assert_eq!((budget.used(), budget.huge_page_bytes()), (60, 0));
        drop(table);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn shares_take_their_bytes_when_tables_do_and_count_what_they_refuse() {
        let whole = Budget::new(100);
        let (small, large) = (whole.share(30), whole.share(1000));
        assert_eq!((small.limit(), large.limit(), whole.used()), (30, 100, 0));
        let mut first = small.reserve(20).unwrap();
        assert!(small.reserve(11).is_none(), "its own limit");
        let second = large.reserve(80).unwrap();
        assert!(small.reserve(1).is_none(), "that of all");
        assert!(large.reserve(1).is_none());
        assert_eq!((small.used(), large.used(), whole.used()), (20, 80, 100));
        assert_eq!((small.refusals(), large.refusals(), whole.refusals()), (2, 1, 0));
        first.give_back(5);
        assert_eq!((small.used(), whole.used()), (15, 95));
        let advised = small.advised(10);
        assert_eq!((small.huge_page_bytes(), whole.huge_page_bytes()), (10, 10));
        let part = small.part(5).unwrap();
        assert_eq!((small.used(), whole.used(), part.used()), (20, 100, 0));
        drop((first, second, part, advised));
        assert_eq!((small.used(), large.used(), whole.used()), (0, 0, 0));
    }

    #[test]
    fn a_sum_that_overflows_is_refused() {
        let budget = Budget::unlimited();
        let _held = budget.reserve(1).unwrap();
        assert!(budget.reserve(usize::MAX).is_none());
    }
}
