//! A hint to the processor that memory will be read soon.

/// Starts to bring the cache line of `target` into the second-level cache: of a whole batch's lines more are
/// then under way at a time than the first level takes, and from there it is only a few cycles. Does nothing on
/// processors without a stable intrinsic for it, and under Miri, which does not know it.
#[inline(always)]
pub(crate) fn read<T>(target: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program could see and cannot fault; the address
        // is that of a live reference besides. SSE is part of every x86_64.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(target).cast());
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = target;
}
