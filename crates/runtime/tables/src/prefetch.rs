//! A hint to the processor that memory will be read soon.

/// Starts to load the cache line of `target` into the second-level cache. That cache can load more
/// lines of a batch at the same time than the first level, and is only a few cycles away. Does
/// nothing on processors without a stable intrinsic, and under Miri, which does not support it.
#[inline(always)]
pub(crate) fn read<T>(target: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch has no visible effect and cannot fault; the address also is that of a
        // live reference. SSE is part of every x86_64.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(target).cast());
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = target;
}
