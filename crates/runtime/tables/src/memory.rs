//! Memory of a chunk: part of a slab, or an allocation of its own.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

use crate::line::LINE_BYTES;
use crate::slab::SlabSlot;

/// Bytes of a huge page on `x86_64`, and usually elsewhere.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Bytes of a small page, the smallest step in which the kernel provides memory.
const PAGE_BYTES: usize = 4096;

/// Memory for a chunk. Not cleared.
pub(crate) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
    /// The part of a slab that it is; `None` for an allocation of its own.
    slot: Option<SlabSlot>,
    is_advised: bool,
}

// SAFETY: it alone owns its bytes, as a `Vec` does.
#[allow(unsafe_code)]
unsafe impl Send for Memory {}
// SAFETY: a shared reference gives no access to the bytes.
#[allow(unsafe_code)]
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates. `None` if the allocator refuses, or if the layout has no bytes.
    pub(crate) fn allocate(layout: Layout) -> Option<Self> {
        let slot = SlabSlot::take(layout.size()).filter(|_| layout.align() <= LINE_BYTES);
        let (start, is_advised) = match &slot {
            Some(slot) => (slot.start(), slot.is_advised()),
            None if layout.size() == 0 => return None,
            None => {
                // SAFETY: the size is not zero.
                #[allow(unsafe_code)]
                let start = NonNull::new(unsafe { alloc(layout) })?;
                (start, layout.size() >= HUGE_PAGE_BYTES && advise(start, layout.size()))
            }
        };
        Some(Memory { start, layout, slot, is_advised })
    }

    /// Allocates in small pages, of which each write touches few. `None` as for
    /// [`allocate`](Self::allocate).
    pub(crate) fn allocate_small_pages(layout: Layout) -> Option<Self> {
        // Without this, the allocation would begin on a huge page, and could become one.
        let layout = Layout::from_size_align(layout.size(), LINE_BYTES).ok()?;
        if layout.size() == 0 {
            return None;
        }
        // SAFETY: the size is not zero.
        #[allow(unsafe_code)]
        let start = NonNull::new(unsafe { alloc(layout) })?;
        Some(Memory { start, layout, slot: None, is_advised: false })
    }

    /// Makes the kernel provide all of it now.
    pub(crate) fn touch(&mut self) {
        for at in (0..self.layout.size()).step_by(PAGE_BYTES) {
            // SAFETY: `at` is within the allocation. A plain write could be left out as useless.
            #[allow(unsafe_code)]
            unsafe {
                self.start.add(at).write_volatile(0);
            }
        }
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Number of bytes for which the kernel accepted the advice to use huge pages.
    pub(crate) fn advised_bytes(&self) -> Option<usize> {
        self.is_advised.then_some(self.layout.size())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.slot.is_none() {
            // SAFETY: it was allocated with this layout, since it is in no slab.
            #[allow(unsafe_code)]
            unsafe {
                dealloc(self.start.as_ptr(), self.layout);
            }
        }
    }
}

/// Advises the kernel to use huge pages. Returns false if it does not support them.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn advise(start: NonNull<u8>, bytes: usize) -> bool {
    use rustix::mm::{Advice, madvise};
    // SAFETY: the range was just allocated and starts on a page; advice changes no contents.
    #[allow(unsafe_code)]
    unsafe {
        madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage).is_ok()
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn advise(_: NonNull<u8>, _: usize) -> bool {
    false
}
