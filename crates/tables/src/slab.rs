//! Room for chunks smaller than a huge page, in huge pages that they share.
//!
//! A thousand tables of a thousand entries each take as many pages of 4 KiB as one table of a million,
//! and miss the TLB as often; in a virtual machine, where a miss walks the pages of both kernels, that is a
//! third of the time of a look-up. So chunks from [`MIN_ROOM_BYTES`] up lie side by side in slabs of
//! huge pages.
//!
//! Slabs belong to the thread that allocates, so that they lie in the memory nearest to it. What is freed,
//! on whatever thread, is there for the next chunk; a slab whose chunks are all gone goes too. This is
//! for resizes: each takes a lock, which nobody else holds but a thread that frees just then.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::chunk::{HUGE_PAGE_BYTES, advise};
use crate::line::LINE_BYTES;

/// Bytes of a slab: so many huge pages that what is left over at its end is little beside what lies in
/// it. The kernel gives each of them when it is touched first.
const SLAB_BYTES: usize = 16 * HUGE_PAGE_BYTES;

/// Bytes of the smallest room, so that there are not too many in a slab to look through: a page, below which
/// nothing is gained.
pub(crate) const MIN_ROOM_BYTES: usize = 4096;

/// Slabs that are looked through for room, at most, before there is a new one.
const MAX_SLABS_LOOKED_THROUGH: usize = 8;

thread_local! {
    static SLABS: RefCell<Slabs> = const { RefCell::new(Slabs { slabs: Vec::new(), next: 0 }) };
}

/// A part of a slab that is one chunk's alone, aligned to a cache line. Not cleared.
pub(crate) struct Room {
    slab: Arc<Slab>,
    range: Range<usize>,
}

impl Room {
    /// Room for so many bytes. `None` for less than [`MIN_ROOM_BYTES`], for as much as a huge page or more, and where
    /// there is no memory.
    pub(crate) fn take(bytes: usize) -> Option<Self> {
        if !(MIN_ROOM_BYTES..HUGE_PAGE_BYTES).contains(&bytes) {
            return None;
        }
        SLABS.try_with(|slabs| slabs.borrow_mut().take(bytes.next_multiple_of(LINE_BYTES))).ok()?
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: the range lies within the slab's allocation.
        #[allow(unsafe_code)]
        unsafe {
            self.slab.start.add(self.range.start)
        }
    }

    /// Whether the kernel was advised to have it in huge pages, and took the advice.
    pub(crate) fn is_advised(&self) -> bool {
        self.slab.advised
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.slab.free().give_back(self.range.clone());
    }
}

/// The slabs of a thread that chunks lie in.
struct Slabs {
    slabs: Vec<Weak<Slab>>,
    /// Where there was room last.
    next: usize,
}

impl Slabs {
    fn take(&mut self, bytes: usize) -> Option<Room> {
        for _ in 0..self.slabs.len().min(MAX_SLABS_LOOKED_THROUGH) {
            if self.next >= self.slabs.len() {
                self.next = 0;
            }
            let Some(slab) = self.slabs.get(self.next)?.upgrade() else {
                self.slabs.swap_remove(self.next);
                continue;
            };
            match slab.take(bytes) {
                Some(room) => return Some(room),
                None => self.next += 1,
            }
        }
        let slab = Slab::new()?;
        self.next = self.slabs.len();
        self.slabs.push(Arc::downgrade(&slab));
        slab.take(bytes)
    }
}

/// Huge pages that rooms are given out of.
struct Slab {
    start: NonNull<u8>,
    advised: bool,
    free: Mutex<Free>,
}

// SAFETY: it owns its memory, and gives no byte of it to two rooms.
#[allow(unsafe_code)]
unsafe impl Send for Slab {}
// SAFETY: as above; what changes is behind a lock.
#[allow(unsafe_code)]
unsafe impl Sync for Slab {}

impl Slab {
    fn new() -> Option<Arc<Self>> {
        // SAFETY: the size is not zero.
        #[allow(unsafe_code)]
        let start = NonNull::new(unsafe { alloc(layout()?) })?;
        let advised = advise(start, SLAB_BYTES);
        Some(Arc::new(Slab { start, advised, free: Mutex::new(Free::all()) }))
    }

    fn take(self: &Arc<Self>, bytes: usize) -> Option<Room> {
        let range = self.free().take(bytes)?;
        Some(Room { slab: Arc::clone(self), range })
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        // Nothing panics while it is held.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        if let Some(layout) = layout() {
            // SAFETY: allocated with the same layout, and all rooms are gone, since each holds the slab.
            #[allow(unsafe_code)]
            unsafe {
                dealloc(self.start.as_ptr(), layout);
            }
        }
    }
}

fn layout() -> Option<Layout> {
    Layout::from_size_align(SLAB_BYTES, HUGE_PAGE_BYTES).ok()
}

/// What of a slab is free: ranges of its bytes, in order, none of which touches the next.
struct Free(Vec<Range<usize>>);

impl Free {
    fn all() -> Self {
        Free(std::iter::once(0..SLAB_BYTES).collect())
    }

    /// The first range that is long enough, or its beginning.
    fn take(&mut self, bytes: usize) -> Option<Range<usize>> {
        let at = self.0.iter().position(|free| free.len() >= bytes)?;
        let free = self.0.get_mut(at)?;
        let taken = free.start..free.start + bytes;
        free.start = taken.end;
        if free.start == free.end {
            self.0.remove(at);
        }
        Some(taken)
    }

    fn give_back(&mut self, mut range: Range<usize>) {
        let mut at = self.0.partition_point(|free| free.start < range.start);
        if let Some(behind) = self.0.get(at)
            && behind.start == range.end
        {
            range.end = self.0.remove(at).end;
        }
        if let Some(before) = at.checked_sub(1)
            && self.0.get(before).is_some_and(|before| before.end == range.start)
        {
            range.start = self.0.remove(before).start;
            at = before;
        }
        self.0.insert(at, range);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rooms_lie_apart_and_what_is_given_back_is_taken_again() {
        let rooms: Vec<Room> = (0..4).map(|_| Room::take(10_000).unwrap()).collect();
        let starts: Vec<usize> = rooms.iter().map(|room| room.start().as_ptr().addr()).collect();
        assert!(starts.is_sorted() && starts.windows(2).all(|two| two[1] - two[0] >= 10_000));
        assert!(starts.iter().all(|start| start.is_multiple_of(LINE_BYTES)));
        let slab = Arc::downgrade(&rooms[0].slab);
        drop(rooms);
        assert_eq!(slab.strong_count(), 0, "it goes with its last room");
    }

    #[test]
    fn a_room_is_given_back_by_another_thread() {
        let (first, second) =
            (Room::take(MIN_ROOM_BYTES).unwrap(), Room::take(MIN_ROOM_BYTES).unwrap());
        let start = first.start();
        std::thread::spawn(move || drop(first)).join().unwrap();
        let third = Room::take(MIN_ROOM_BYTES).unwrap();
        assert_eq!(third.start(), start);
        drop((second, third));
    }

    #[test]
    fn a_full_slab_is_followed_by_another() {
        let bytes = HUGE_PAGE_BYTES - LINE_BYTES;
        let rooms: Vec<Room> =
            (0..=SLAB_BYTES / bytes).map(|_| Room::take(bytes).unwrap()).collect();
        let (first, last) = (rooms.first().unwrap(), rooms.last().unwrap());
        assert!(!Arc::ptr_eq(&first.slab, &last.slab));
    }

    #[test]
    fn what_is_small_or_a_huge_page_of_its_own_gets_no_room() {
        for bytes in [0, MIN_ROOM_BYTES - 1, HUGE_PAGE_BYTES, usize::MAX] {
            assert!(Room::take(bytes).is_none(), "{bytes}");
        }
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
                prop_assert!(free.0.windows(2).all(|two| two[0].end < two[1].start));
                let sum: usize = free.0.iter().chain(&taken).map(ExactSizeIterator::len).sum();
                prop_assert_eq!(sum, SLAB_BYTES);
            }
            taken.into_iter().for_each(|range| free.give_back(range));
            prop_assert_eq!(free.0, Free::all().0);
        }
    }
}
