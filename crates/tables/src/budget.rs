//! Limits the bytes that all tables of a process together may hold.
//!
//! A table uses it only when it changes its size, never per packet, so one shared atomic is enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    /// The reservation in the larger budget, if this budget is a part of one.
    whole: Option<MemoryReservation>,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self::within(limit, None)
    }

    fn within(limit: usize, whole: Option<MemoryReservation>) -> Self {
        let (used, huge) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self(Arc::new(ByteCounter { limit, used, huge, whole }))
    }

    /// Takes a budget of `limit` bytes out of this one, for tables that together may use no more;
    /// `None` if this budget has too few left. The bytes are taken at once. They return when the
    /// last clone and the last table of the part are dropped.
    pub fn part(&self, limit: usize) -> Option<Self> {
        self.reserve(limit).map(|whole| Self::within(limit, Some(whole)))
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

    /// Bytes of large tables for which the kernel accepted the advice to use huge pages.
    /// `AnonHugePages` in `/proc/PID/smaps_rollup` shows whether the pages exist. 0 if the kernel
    /// does not support huge pages.
    pub fn huge_page_bytes(&self) -> usize {
        self.0.huge.load(Ordering::Relaxed)
    }

    /// Counts bytes for which the kernel was advised to use huge pages.
    pub(crate) fn advised(&self, bytes: usize) -> Advised {
        // The larger budget of a part counts them too.
        let whole = self.0.whole.as_ref().map(|whole| Box::new(whole.budget.advised(bytes)));
        self.0.huge.fetch_add(bytes, Ordering::Relaxed);
        Advised { budget: self.clone(), bytes, _whole: whole }
    }

    /// Takes `bytes` until the reservation is dropped; `None` if too few are left.
    pub(crate) fn reserve(&self, bytes: usize) -> Option<MemoryReservation> {
        // Relaxed: the number guards no other memory.
        self.0
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|&sum| sum <= self.0.limit)
            })
            .ok()
            .map(|_| MemoryReservation { budget: self.clone(), bytes })
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
        self.budget.0.used.fetch_sub(bytes, Ordering::Relaxed);
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
    fn a_sum_that_overflows_is_refused() {
        let budget = Budget::unlimited();
        let _held = budget.reserve(1).unwrap();
        assert!(budget.reserve(usize::MAX).is_none());
    }
}
