//! Compares four keys with one key at once.

/// Lower or upper halves of four keys.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct Four(pub(crate) [u32; 4]);

/// Returns a bit mask of the keys that equal `key`. The keys are given as lower and upper halves.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn same([low, high]: &[Four; 2], key: u64) -> u32 {
    use std::arch::x86_64::{
        _mm_and_si128, _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_cvtsi64_si128, _mm_load_si128,
        _mm_movemask_ps, _mm_shuffle_epi32,
    };
    // SAFETY: SSE2 is part of every x86_64; a `Four` has the size and alignment of the load.
    #[allow(unsafe_code)]
    unsafe {
        let key = _mm_cvtsi64_si128(key as i64);
        let same_low = _mm_cmpeq_epi32(
            _mm_shuffle_epi32::<0b00_00_00_00>(key),
            _mm_load_si128(std::ptr::from_ref(low).cast()),
        );
        let same_high = _mm_cmpeq_epi32(
            _mm_shuffle_epi32::<0b01_01_01_01>(key),
            _mm_load_si128(std::ptr::from_ref(high).cast()),
        );
        _mm_movemask_ps(_mm_castsi128_ps(_mm_and_si128(same_low, same_high))) as u32
    }
}

/// The same on other processors.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn same(keys: &[Four; 2], key: u64) -> u32 {
    one_by_one(keys, key)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn one_by_one([low, high]: &[Four; 2], key: u64) -> u32 {
    (0..4).fold(0, |same, nth| {
        let is_same = low.0[nth] == key as u32 && high.0[nth] == (key >> 32) as u32;
        same | u32::from(is_same) << nth
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_once_is_as_one_by_one() {
        // Halves that are often equal.
        for n in 0..0x1_0000_u64 {
            let halves =
                |from: u32| Four(std::array::from_fn(|nth| (n >> (from + nth as u32)) as u32 & 1));
            let (keys, key) = ([halves(0), halves(4)], n >> 8 & 1 | (n >> 9 & 1) << 32);
            assert_eq!(same(&keys, key), one_by_one(&keys, key), "{n}");
        }
        let keys = [Four([u32::MAX, 0, 1, 2]), Four([u32::MAX, u32::MAX, 0, 1])];
        assert_eq!(
            [u64::MAX, 0xffff_ffff_0000_0000, 1, 5].map(|key| same(&keys, key)),
            [1, 2, 4, 0]
        );
    }
}
