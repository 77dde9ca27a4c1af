//! The time when an entry was last seen: 31 bits of the caller's clock, and one bit that marks an
//! occupied slot. An empty slot is thus all zero, and every key is allowed, zero too.

/// Set in the stamp of every occupied slot.
pub(crate) const OCCUPIED: u32 = 1 << 31;
const TICK_BITS: u32 = OCCUPIED - 1;

/// Maximum age that can be distinguished, in ticks of the caller's clock: 34 years of seconds.
///
/// The clock may wrap around. The age is 0 for an entry whose stamp is ahead of "now", and for one
/// that has grown older than this: sweep more often.
pub const MAX_AGE_TICKS: u32 = (1 << 30) - 1;

/// The stamp of an entry seen at `now`.
#[inline]
pub(crate) fn stamp(now: u32) -> u32 {
    Stamp::at(now).0
}

/// A time of the caller's clock, as tables store it. A caller makes it once for several look-ups at
/// the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(pub(crate) u32);

impl Stamp {
    /// The stamp of what is seen at `now`, in ticks of the caller's clock.
    #[must_use]
    #[inline]
    pub const fn at(now: u32) -> Self {
        Stamp(now | OCCUPIED)
    }

    /// The time, in ticks of the caller's clock modulo 2^31.
    #[must_use]
    #[inline]
    pub const fn ticks(self) -> u32 {
        self.0 & TICK_BITS
    }
}

/// Number of ticks between the stamp and `now`.
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
