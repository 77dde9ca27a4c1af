//! When an entry was last seen: 31 bits of the caller's clock, and one bit that says that the slot
//! holds an entry at all. So an empty slot is all zero and every key is allowed, zero too.

/// Set in the stamp of every slot that holds an entry.
pub(crate) const OCCUPIED: u32 = 1 << 31;
const TICK_BITS: u32 = OCCUPIED - 1;

/// Maximum age that can be distinguished, in ticks of the caller's clock: 34 years of seconds.
///
/// The clock may wrap around. An entry whose stamp lies ahead of "now" has the age 0, and so has one
/// that was left to grow older than this: sweep more often.
pub const MAX_AGE_TICKS: u32 = (1 << 30) - 1;

/// The stamp of an entry seen at `now`.
#[inline]
pub(crate) fn stamp(now: u32) -> u32 {
    now | OCCUPIED
}

/// How many ticks before `now` the stamp was made.
#[inline]
pub(crate) fn age(stamp: u32, now: u32) -> u32 {
    let ticks = now.wrapping_sub(stamp) & TICK_BITS;
    if ticks > MAX_AGE_TICKS { 0 } else { ticks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_across_the_wrap_of_the_clock() {
        assert_eq!(age(stamp(10), 25), 15);
        assert_eq!(age(stamp(u32::MAX - 1), 3), 5);
        assert_eq!(age(stamp(TICK_BITS), OCCUPIED + 4), 5);
        assert_eq!(age(stamp(0), MAX_AGE_TICKS), MAX_AGE_TICKS);
    }

    #[test]
    fn a_stamp_ahead_of_the_clock_is_new() {
        assert_eq!(age(stamp(30), 25), 0);
        assert_eq!(age(stamp(3), u32::MAX), 0);
    }
}
