//! The lines of a shared table, all allocated at the start, and the rule that assigns two of them
//! to each key: the same rule as for the table with one owner.

use super::line::SharedLine;
use crate::budget::{Budget, MemoryReservation};
use crate::prefetch;
use crate::seed::Hashed;

/// Bytes of a line.
pub(super) const LINE_BYTES: usize = 64;

/// A fixed number of lines, charged to a budget in full. The kernel provides the memory, already
/// cleared, page by page as lines are written.
pub(super) struct SharedLines {
    /// Declared before the reservation: the bytes are freed before the budget counts them as free.
    lines: store::Store,
    reservation: Option<MemoryReservation>,
}

impl SharedLines {
    /// No lines and no memory.
    pub(super) fn none() -> Self {
        SharedLines { lines: store::Store::none(), reservation: None }
    }

    /// Reserves memory for `count` lines. `None` if the budget or the allocator refuses.
    pub(super) fn reserve(count: usize, budget: &Budget) -> Option<Self> {
        let reservation = budget.reserve(count.checked_mul(LINE_BYTES)?)?;
        let lines = store::Store::of(count, budget)?;
        Some(SharedLines { lines, reservation: Some(reservation) })
    }

    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.lines.len()
    }

    /// Number of bytes charged to the budget.
    pub(super) fn bytes(&self) -> usize {
        self.reservation.as_ref().map_or(0, MemoryReservation::bytes)
    }

    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> Option<&SharedLine> {
        self.lines.get(index)
    }

    /// The first line of a hash, from its upper bits; most keys are there. `None` without lines.
    #[inline(always)]
    pub(super) fn first(&self, at: Hashed) -> Option<&SharedLine> {
        self.get(self.first_home(at))
    }

    /// The two lines of a hash. They differ, unless there is only one line.
    #[inline]
    pub(super) fn homes(&self, at: Hashed) -> [usize; 2] {
        let first = self.first_home(at);
        let second = spread(at.hash << 32, self.count());
        let second = second + usize::from(second == first);
        [first, if second < self.count() { second } else { 0 }]
    }

    #[inline]
    pub(super) fn prefetch_first(&self, at: Hashed) {
        if let Some(line) = self.first(at) {
            prefetch::read(line);
        }
    }

    #[inline]
    pub(super) fn prefetch_second(&self, at: Hashed) {
        let [_, second] = self.homes(at);
        if let Some(line) = self.get(second) {
            prefetch::read(line);
        }
    }

    #[inline(always)]
    fn first_home(&self, at: Hashed) -> usize {
        spread(at.hash, self.count())
    }
}

/// Spreads bits evenly over any number of lines (Lemire 2019).
#[inline(always)]
fn spread(bits: u64, count: usize) -> usize {
    ((u128::from(bits) * count as u128) >> 64) as usize
}

#[cfg(not(loom))]
mod store {
    //! Cleared memory, aligned to a huge page if it is at least that large.

    use std::alloc::Layout;
    use std::ops::Deref;
    use std::ptr::NonNull;

    use super::super::line::SharedLine;
    use crate::budget::{Advised, Budget};
    use crate::memory::{Allocation, HUGE_PAGE_BYTES, advise_huge_pages};

    pub(in super::super) struct Store {
        start: NonNull<SharedLine>,
        count: usize,
        /// `None` without lines.
        _memory: Option<Allocation>,
        _advised: Option<Advised>,
    }

    // SAFETY: it alone owns its memory, and it hands out only shared references to atomics.
    #[allow(unsafe_code)]
    unsafe impl Send for Store {}
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe impl Sync for Store {}

    impl Store {
        pub(in super::super) fn none() -> Self {
            Store { start: NonNull::dangling(), count: 0, _memory: None, _advised: None }
        }

        /// Allocates `count` cleared lines. `None` if the allocator refuses.
        pub(in super::super) fn of(count: usize, budget: &Budget) -> Option<Self> {
            let bytes = Layout::array::<SharedLine>(count).ok()?.size();
            if bytes == 0 {
                return Some(Store::none());
            }
            let is_large = bytes >= HUGE_PAGE_BYTES;
            let align = if is_large { HUGE_PAGE_BYTES } else { align_of::<SharedLine>() };
            // For an aligned layout, the allocator would write all zeros itself. Without alignment
            // it takes large blocks fresh from the kernel, which clears each page on first touch.
            let layout = Layout::from_size_align(bytes.checked_add(align)?, 1).ok()?;
            let memory = Allocation::cleared(layout)?;
            let skip = memory.start().align_offset(align);
            debug_assert!(skip <= align, "there are `align` spare bytes");
            // SAFETY: there are `align` bytes more than the lines need.
            #[allow(unsafe_code)]
            let start = unsafe { memory.start().add(skip) };
            let advised = is_large && advise_huge_pages(start, bytes);
            let _advised = advised.then(|| budget.advised(bytes));
            Some(Store { start: start.cast(), count, _memory: Some(memory), _advised })
        }
    }

    impl Deref for Store {
        type Target = [SharedLine];

        #[inline(always)]
        fn deref(&self) -> &[SharedLine] {
            // SAFETY: `count` lines from `start` on are within the memory and aligned; all zeros is
            // a valid line. Without lines `start` is dangling and `count` is 0.
            #[allow(unsafe_code)]
            unsafe {
                std::slice::from_raw_parts(self.start.as_ptr(), self.count)
            }
        }
    }
}

#[cfg(loom)]
mod store {
    //! Lines one by one: loom's atomics cannot be created as zeroed memory.

    use std::ops::Deref;

    use super::super::line::SharedLine;
    use crate::budget::Budget;

    pub(in super::super) struct Store(Vec<SharedLine>);

    impl Store {
        pub(in super::super) fn none() -> Self {
            Store(Vec::new())
        }

        pub(in super::super) fn of(count: usize, _: &Budget) -> Option<Self> {
            Some(Store((0..count).map(|_| SharedLine::empty()).collect()))
        }
    }

    impl Deref for Store {
        type Target = [SharedLine];

        fn deref(&self) -> &[SharedLine] {
            &self.0
        }
    }
}
