//! Memory for a part of a table: allocated at once, filled step by step, if possible in huge pages.
//!
//! At ten million entries a look-up is mostly a TLB miss: there are too many pages of 4 KiB. A
//! chunk of [`HUGE_PAGE_BYTES`] is aligned to a huge page, and the kernel is advised to use one;
//! smaller chunks share them. The kernel may ignore the advice.

use std::alloc::Layout;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::budget::{Advised, Budget};
use crate::memory::{HUGE_PAGE_BYTES, Memory};

/// Memory for up to `capacity` values of `T`, of which the first `len` are set. Like a `Vec` that
/// never moves, with its own alignment.
pub(crate) struct Chunk<T> {
    start: NonNull<T>,
    len: usize,
    capacity: usize,
    /// `None` without capacity.
    _memory: Option<Memory>,
    /// Counts the bytes that the kernel accepted for huge pages.
    _advised: Option<Advised>,
}

// SAFETY: it alone owns its memory, as a `Vec` does.
#[allow(unsafe_code)]
unsafe impl<T: Send> Send for Chunk<T> {}
// SAFETY: a shared chunk hands out shared references only.
#[allow(unsafe_code)]
unsafe impl<T: Sync> Sync for Chunk<T> {}

impl<T> Chunk<T> {
    /// A chunk without capacity and memory.
    pub(crate) const fn empty() -> Self {
        Chunk { start: NonNull::dangling(), len: 0, capacity: 0, _memory: None, _advised: None }
    }

    /// The memory that a chunk for `capacity` values needs; `None` if that is too large to exist.
    pub(crate) fn layout(capacity: usize) -> Option<Layout> {
        let layout = Layout::array::<T>(capacity).ok()?;
        let huge = layout.size() >= HUGE_PAGE_BYTES;
        if huge { layout.align_to(HUGE_PAGE_BYTES).ok() } else { Some(layout) }
    }
}

impl<T: Copy> Chunk<T> {
    /// A chunk in memory of [`Chunk::layout`] for `capacity` values.
    pub(crate) fn new(capacity: usize, memory: Memory, budget: &Budget) -> Self {
        let _advised = memory.advised_bytes().map(|bytes| budget.advised(bytes));
        let start = memory.start().cast();
        Chunk { start, len: 0, capacity, _memory: Some(memory), _advised }
    }

    /// Allocates a chunk for `capacity` values; `None` if the allocator refuses.
    #[cfg(test)]
    pub(crate) fn with_capacity(capacity: usize, budget: &Budget) -> Option<Self> {
        let layout = Self::layout(capacity)?;
        if layout.size() == 0 {
            return Some(Chunk::empty());
        }
        Some(Self::new(capacity, Memory::allocate(layout)?, budget))
    }

    /// Sets up to `count` more values to `value`, within the capacity.
    pub(crate) fn fill(&mut self, count: usize, value: T) {
        let count = count.min(self.capacity - self.len);
        for at in self.len..self.len + count {
            // SAFETY: `at` is below the capacity, so within the memory.
            #[allow(unsafe_code)]
            unsafe {
                self.start.add(at).write(value);
            }
        }
        self.len += count;
    }
}

impl<T> Deref for Chunk<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` are set; without capacity, `start` is dangling and `len` is 0.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr(), self.len)
        }
    }
}

impl<T> DerefMut for Chunk<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the chunk is borrowed exclusively.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len)
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test panics")]
mod tests {
    use super::*;
    use crate::slab::MIN_SLOT_BYTES;

    #[test]
    fn a_chunk_is_filled_step_by_step_and_never_beyond_its_slot() {
        let mut chunk = Chunk::with_capacity(10, &Budget::unlimited()).unwrap();
        assert!(chunk.is_empty());
        chunk.fill(4, 7_u64);
        chunk.fill(4, 8);
        chunk.fill(4, 9);
        assert_eq!(*chunk, [7, 7, 7, 7, 8, 8, 8, 8, 9, 9]);
        chunk[9] = 1;
        assert_eq!(chunk.last(), Some(&1));
    }

    #[test]
    fn a_chunk_of_a_huge_page_lies_on_its_boundary_and_the_advice_is_counted() {
        let budget = Budget::unlimited();
        let large = Chunk::<u64>::with_capacity(HUGE_PAGE_BYTES / 8, &budget).unwrap();
        assert!(large.start.as_ptr().cast::<u8>().align_offset(HUGE_PAGE_BYTES) == 0);
        let medium = Chunk::<u64>::with_capacity(MIN_SLOT_BYTES / 8, &budget).unwrap();
        let small = Chunk::<u64>::with_capacity(MIN_SLOT_BYTES / 8 - 1, &budget).unwrap();
        // All of it or, if the kernel has no huge pages, nothing.
        assert!([0, HUGE_PAGE_BYTES + MIN_SLOT_BYTES].contains(&budget.huge_page_bytes()));
        drop((large, medium));
        assert_eq!(budget.huge_page_bytes(), 0);
        drop(small);
    }

    #[test]
    fn a_chunk_without_slot_has_no_memory() {
        assert!(Chunk::<u64>::empty().is_empty());
        let mut none = Chunk::<u64>::with_capacity(0, &Budget::unlimited()).unwrap();
        none.fill(1, 1);
        assert!(none.is_empty());
        assert!(Chunk::<u64>::with_capacity(usize::MAX, &Budget::unlimited()).is_none());
    }
}
