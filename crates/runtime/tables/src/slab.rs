//! Memory for chunks smaller than a huge page: they share huge pages.
//!
//! A thousand tables of a thousand entries each use as many pages of 4 KiB as one table of a
//! million, and miss the TLB as often. In a virtual machine, where a miss walks the page tables of
//! both kernels, that is a third of the time of a look-up. So chunks of at least [`MIN_SLOT_BYTES`]
//! are placed side by side in slabs of huge pages.
//!
//! A slab belongs to the thread that allocates it, so that it is in the nearest memory. Any thread
//! may free a chunk; its memory is reused for the next chunk. A slab without chunks is freed. Only
//! resizes come here: each takes a lock, contended only by a thread that frees at the same moment.

use std::alloc::Layout;
use std::cell::RefCell;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::line::LINE_BYTES;
use crate::memory::{Allocation, HUGE_PAGE_BYTES};

/// Bytes of a slab. With so many huge pages, the unused rest at its end is relatively small. The
/// kernel provides each page when it is first touched.
const SLAB_BYTES: usize = 16 * HUGE_PAGE_BYTES;

/// Minimum size of a chunk in a slab: one page, below which nothing is gained. It limits the number
/// of chunks to search in a slab.
pub(crate) const MIN_SLOT_BYTES: usize = 4096;

/// Maximum number of slabs searched for space before a new one is allocated.
const MAX_SLABS_LOOKED_THROUGH: usize = 8;

thread_local! {
    static SLABS: RefCell<Slabs> = const { RefCell::new(Slabs { slabs: Vec::new(), next: 0 }) };
}

/// A part of a slab for one chunk, aligned to a cache line. Not cleared.
pub(crate) struct SlabSlot {
    slab: Arc<Slab>,
    range: Range<usize>,
}

impl SlabSlot {
    /// Takes `bytes` of a slab. `None` below [`MIN_SLOT_BYTES`], from a huge page up, or without
    /// memory.
    pub(crate) fn take(bytes: usize) -> Option<Self> {
        if !(MIN_SLOT_BYTES..HUGE_PAGE_BYTES).contains(&bytes) {
            return None;
        }
        SLABS.try_with(|slabs| slabs.borrow_mut().take(bytes.next_multiple_of(LINE_BYTES))).ok()?
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: the range is within the slab's allocation.
        #[allow(unsafe_code)]
        unsafe {
            self.slab.memory.start().add(self.range.start)
        }
    }

    /// Returns whether the kernel accepted the advice to use huge pages for it.
    pub(crate) fn is_advised(&self) -> bool {
        self.slab.advised
    }
}

impl Drop for SlabSlot {
    fn drop(&mut self) {
        self.slab.free().give_back(self.range.clone());
    }
}

/// Touches the huge page behind the one that this thread used last, so that the next chunks find
/// it ready. Does nothing if that was done before.
pub(crate) fn touch_next_page() {
    let _ = SLABS.try_with(|slabs| {
        let slabs = slabs.borrow();
        if let Some(slab) = slabs.slabs.get(slabs.next).and_then(Weak::upgrade) {
            slab.touch_next_page();
        }
    });
}

/// The slabs of a thread.
struct Slabs {
    slabs: Vec<Weak<Slab>>,
    /// The slab that had space last.
    next: usize,
}

impl Slabs {
    fn take(&mut self, bytes: usize) -> Option<SlabSlot> {
        for _ in 0..self.slabs.len().min(MAX_SLABS_LOOKED_THROUGH) {
            if self.next >= self.slabs.len() {
                self.next = 0;
            }
            let Some(slab) = self.slabs.get(self.next)?.upgrade() else {
                self.slabs.swap_remove(self.next);
                continue;
            };
            match slab.take(bytes) {
                Some(slot) => return Some(slot),
                None => self.next += 1,
            }
        }
        let slab = Slab::new()?;
        self.next = self.slabs.len();
        self.slabs.push(Arc::downgrade(&slab));
        slab.take(bytes)
    }
}

/// Huge pages that chunks share.
struct Slab {
    memory: Allocation,
    advised: bool,
    free: Mutex<Free>,
}

impl Slab {
    fn new() -> Option<Arc<Self>> {
        let memory = Allocation::new(layout()?)?;
        let advised = memory.advise();
        Some(Arc::new(Slab { memory, advised, free: Mutex::new(Free::all()) }))
    }

    fn take(self: &Arc<Self>, bytes: usize) -> Option<SlabSlot> {
        let range = self.free().take(bytes)?;
        Some(SlabSlot { slab: Arc::clone(self), range })
    }

    fn touch_next_page(&self) {
        let page = self.free().touch_next_page();
        // Only this thread takes from the slab, so the page stays free without the lock.
        if let Some(page) = page {
            // SAFETY: the page is within the slab, and was never part of a slot.
            #[allow(unsafe_code)]
            unsafe {
                self.memory.start().add(page).write_volatile(0);
            }
        }
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        // Nothing panics while the lock is held.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn layout() -> Option<Layout> {
    Layout::from_size_align(SLAB_BYTES, HUGE_PAGE_BYTES).ok()
}

/// The free bytes of a slab.
struct Free {
    /// The free ranges, in order; no two are adjacent.
    ranges: Vec<Range<usize>>,
    /// Bytes from here on were never part of a slot.
    used: usize,
    /// Bytes from here on were not touched ahead.
    touched: usize,
}

impl Free {
    fn all() -> Self {
        Free { ranges: std::iter::once(0..SLAB_BYTES).collect(), used: 0, touched: 0 }
    }

    /// Takes the first range that is long enough, or its beginning.
    fn take(&mut self, bytes: usize) -> Option<Range<usize>> {
        let at = self.ranges.iter().position(|free| free.len() >= bytes)?;
        let free = self.ranges.get_mut(at)?;
        let taken = free.start..free.start + bytes;
        free.start = taken.end;
        if free.start == free.end {
            self.ranges.remove(at);
        }
        self.used = self.used.max(taken.end);
        Some(taken)
    }

    /// Returns the first page without a used byte, if it is to be touched now.
    fn touch_next_page(&mut self) -> Option<usize> {
        let page = self.used.next_multiple_of(HUGE_PAGE_BYTES);
        if page >= SLAB_BYTES || page < self.touched {
            return None;
        }
        self.touched = page + HUGE_PAGE_BYTES;
        Some(page)
    }

    fn give_back(&mut self, mut range: Range<usize>) {
        let mut at = self.ranges.partition_point(|free| free.start < range.start);
        if let Some(behind) = self.ranges.get(at)
            && behind.start == range.end
        {
            range.end = self.ranges.remove(at).end;
        }
        if let Some(before) = at.checked_sub(1)
            && self.ranges.get(before).is_some_and(|before| before.end == range.start)
        {
            range.start = self.ranges.remove(before).start;
            at = before;
        }
        self.ranges.insert(at, range);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test panics")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slots_lie_apart_and_what_is_given_back_is_taken_again() {
        let slots: Vec<SlabSlot> = (0..4).map(|_| SlabSlot::take(10_000).unwrap()).collect();
        let starts: Vec<usize> = slots.iter().map(|slot| slot.start().as_ptr().addr()).collect();
        assert!(starts.is_sorted() && starts.windows(2).all(|two| two[1] - two[0] >= 10_000));
        assert!(starts.iter().all(|start| start.is_multiple_of(LINE_BYTES)));
        let slab = Arc::downgrade(&slots[0].slab);
        drop(slots);
        assert_eq!(slab.strong_count(), 0, "it goes with its last slot");
    }

    #[test]
    fn a_slot_is_given_back_by_another_thread() {
        let (first, second) =
            (SlabSlot::take(MIN_SLOT_BYTES).unwrap(), SlabSlot::take(MIN_SLOT_BYTES).unwrap());
        let start = first.start();
        std::thread::spawn(move || drop(first)).join().unwrap();
        let third = SlabSlot::take(MIN_SLOT_BYTES).unwrap();
        assert_eq!(third.start(), start);
        drop((second, third));
    }

    #[test]
    fn a_full_slab_is_followed_by_another() {
        let bytes = HUGE_PAGE_BYTES - LINE_BYTES;
        let slots: Vec<SlabSlot> =
            (0..=SLAB_BYTES / bytes).map(|_| SlabSlot::take(bytes).unwrap()).collect();
        let (first, last) = (slots.first().unwrap(), slots.last().unwrap());
        assert!(!Arc::ptr_eq(&first.slab, &last.slab));
    }

    #[test]
    fn small_chunks_and_chunks_of_a_huge_page_get_no_slot() {
        for bytes in [0, MIN_SLOT_BYTES - 1, HUGE_PAGE_BYTES, usize::MAX] {
            assert!(SlabSlot::take(bytes).is_none(), "{bytes}");
        }
    }

    #[test]
    fn the_page_behind_the_used_ones_is_touched_once() {
        let mut free = Free::all();
        let slot = free.take(HUGE_PAGE_BYTES + 1).unwrap();
        assert_eq!(free.touch_next_page(), Some(2 * HUGE_PAGE_BYTES));
        assert_eq!(free.touch_next_page(), None);
        // A page that was used once may be in use again at any time.
        free.give_back(slot);
        assert_eq!(free.touch_next_page(), None);
        free.take(SLAB_BYTES).unwrap();
        assert_eq!(free.touch_next_page(), None, "there is no page left");
    }

    proptest! {
        #[test]
        fn no_byte_is_given_out_twice_and_none_is_lost(
            steps in prop::collection::vec((any::<bool>(), 1_usize..64, any::<prop::sample::Index>()), 0..200),
        ) {
            const PART: usize = SLAB_BYTES / 256;
            let (mut free, mut taken) = (Free::all(), Vec::<Range<usize>>::new());
            for (takes, parts, which) in steps {
                if takes {
                    if let Some(range) = free.take(parts * PART) {
                        prop_assert!(taken.iter().all(|t| t.end <= range.start || range.end <= t.start));
                        taken.push(range);
                    }
                } else if !taken.is_empty() {
                    free.give_back(taken.swap_remove(which.index(taken.len())));
                }
                prop_assert!(free.ranges.windows(2).all(|two| two[0].end < two[1].start));
                let sum: usize = free.ranges.iter().chain(&taken).map(ExactSizeIterator::len).sum();
                prop_assert_eq!(sum, SLAB_BYTES);
            }
            taken.into_iter().for_each(|range| free.give_back(range));
            prop_assert_eq!(free.ranges, Free::all().ranges);
        }
    }
}
