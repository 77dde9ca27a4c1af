//! Memory of a chunk: part of a slab, or an allocation of its own.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use crate::line::LINE_BYTES;
use crate::preparer::free;
use crate::slab::SlabSlot;

/// Bytes of a huge page on `x86_64`, and usually elsewhere.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Bytes of a small page, the smallest step in which the kernel provides memory.
const PAGE_BYTES: usize = 4096;

/// Minimum size of an allocation whose pages go back to the kernel at once when it is freed, in
/// bytes. An allocator may keep them: of ten million hosts it kept 150 MiB of earlier sizes.
const MIN_RETURNED_BYTES: usize = 64 << 10;

/// An allocation of this crate's own.
pub(crate) struct Allocation {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it alone owns its bytes, as a `Vec` does.
#[allow(unsafe_code)]
unsafe impl Send for Allocation {}
// SAFETY: a shared reference gives no access to the bytes.
#[allow(unsafe_code)]
unsafe impl Sync for Allocation {}

impl Allocation {
    /// Allocates. `None` if the allocator refuses, or if the layout has no bytes.
    pub(crate) fn new(layout: Layout) -> Option<Self> {
        if layout.size() == 0 {
            return None;
        }
        // SAFETY: the size is not zero.
        #[allow(unsafe_code)]
        let start = NonNull::new(unsafe { alloc(layout) })?;
        Some(Allocation { start, layout })
    }

    /// Allocates memory of zeros. `None` as for [`new`](Self::new).
    pub(crate) fn cleared(layout: Layout) -> Option<Self> {
        if layout.size() == 0 {
            return None;
        }
        // SAFETY: the size is not zero.
        #[allow(unsafe_code)]
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Allocation { start, layout })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Advises the kernel to use huge pages. Returns false if it does not support them.
    pub(crate) fn advise(&self) -> bool {
        advise_huge_pages(self.start, self.layout.size())
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let bytes = self.layout.size();
        let before = self.start.align_offset(PAGE_BYTES);
        if bytes >= MIN_RETURNED_BYTES && before < bytes {
            // SAFETY: the offset is within the allocation.
            #[allow(unsafe_code)]
            let first_page = unsafe { self.start.add(before) };
            return_pages(first_page, (bytes - before) / PAGE_BYTES * PAGE_BYTES);
        }
        // SAFETY: it was allocated with this layout.
        #[allow(unsafe_code)]
        unsafe {
            dealloc(self.start.as_ptr(), self.layout);
        }
    }
}

/// Memory for a chunk. Not cleared.
pub(crate) struct Memory {
    place: Place,
    bytes: usize,
    is_advised: bool,
}

/// Where memory is.
enum Place {
    /// Part of a slab.
    Slot(SlabSlot),
    /// An allocation of its own; `None` once it is freed.
    Own(Option<Allocation>),
}

impl Memory {
    /// Allocates. `None` if the allocator refuses, or if the layout has no bytes.
    pub(crate) fn allocate(layout: Layout) -> Option<Self> {
        let bytes = layout.size();
        let slot = SlabSlot::take(bytes).filter(|_| layout.align() <= LINE_BYTES);
        if let Some(slot) = slot {
            let is_advised = slot.is_advised();
            return Some(Memory { place: Place::Slot(slot), bytes, is_advised });
        }
        let own = Allocation::new(layout)?;
        let is_advised = bytes >= HUGE_PAGE_BYTES && own.advise();
        Some(Memory { place: Place::Own(Some(own)), bytes, is_advised })
    }

    /// Allocates in small pages, of which each write touches few. `None` as for
    /// [`allocate`](Self::allocate).
    pub(crate) fn allocate_small_pages(layout: Layout) -> Option<Self> {
        // Without this, the allocation would begin on a huge page, and could become one.
        let layout = Layout::from_size_align(layout.size(), LINE_BYTES).ok()?;
        let own = Allocation::new(layout)?;
        Some(Memory { place: Place::Own(Some(own)), bytes: layout.size(), is_advised: false })
    }

    /// Makes the kernel provide all of it now.
    pub(crate) fn touch(&mut self) {
        for at in (0..self.bytes).step_by(PAGE_BYTES) {
            // SAFETY: `at` is within the memory. A plain write could be left out as useless.
            #[allow(unsafe_code)]
            unsafe {
                self.start().add(at).write_volatile(0);
            }
        }
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        match &self.place {
            Place::Slot(slot) => slot.start(),
            Place::Own(own) => own.as_ref().map_or(NonNull::dangling(), Allocation::start),
        }
    }

    /// Number of bytes for which the kernel accepted the advice to use huge pages.
    pub(crate) fn advised_bytes(&self) -> Option<usize> {
        self.is_advised.then_some(self.bytes)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Place::Own(own) = &mut self.place
            && let Some(own) = own.take_if(|own| own.layout.size() >= MIN_RETURNED_BYTES)
        {
            free(own);
        }
    }
}

/// Returns pages to the kernel: their contents are lost.
#[cfg(all(target_os = "linux", not(miri)))]
fn return_pages(start: NonNull<u8>, bytes: usize) {
    use rustix::mm::{Advice, madvise};
    // SAFETY: the caller owns the range, whole pages, and reads none of it any more. If the kernel
    // refuses, the memory stays as it is.
    #[allow(unsafe_code)]
    let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxDontNeed) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn return_pages(_: NonNull<u8>, _: usize) {}

/// Advises the kernel to use huge pages. Returns false if it does not support them.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn advise_huge_pages(start: NonNull<u8>, bytes: usize) -> bool {
    use rustix::mm::{Advice, madvise};
    // SAFETY: the range was just allocated and starts on a page; advice changes no contents.
    #[allow(unsafe_code)]
    unsafe {
        madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage).is_ok()
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn advise_huge_pages(_: NonNull<u8>, _: usize) -> bool {
    false
}
