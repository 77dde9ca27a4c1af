//! Transaction ids with owners, which relate replies to the sender of a message.
//!
//! A reply or an error has the xid of its message, so the xid identifies the receiver of the reply.
//! The high eight bits are the owner, the low 24 a count:
//!
//! ```text
//!  31          24 23                                             0
//! +--------------+-----------------------------------------------+
//! |    owner     |                     count                     |
//! +--------------+-----------------------------------------------+
//! ```
//!
//! All owners of a session share one count. It restarts after 2^24 - 1 messages. Zero is left out:
//! switches use xid 0 for messages that are not replies.

/// Owner for the session itself: its handshake, its echoes, its table-miss entry.
pub const SESSION: u8 = 0;

/// Number of bits of the count.
pub const COUNT_BITS: u32 = 24;

/// The maximum count.
pub const MAX_COUNT: u32 = (1 << COUNT_BITS) - 1;

/// Makes the xid of `owner` with the low 24 bits of `count`.
#[must_use]
#[inline]
pub const fn xid(owner: u8, count: u32) -> u32 {
    (owner as u32) << COUNT_BITS | count & MAX_COUNT
}

/// Returns the owner of an xid: 0 is the session, 1 to 255 are for the caller.
#[must_use]
#[inline]
pub const fn owner(xid: u32) -> u8 {
    (xid >> COUNT_BITS) as u8
}

/// Source of the xids of one session. Counts from 1 to [`MAX_COUNT`], then restarts.
#[derive(Clone, Copy, Debug, Default)]
pub struct XidSource(u32);

impl XidSource {
    /// Returns the next xid for this owner.
    #[inline]
    pub fn next(&mut self, owner: u8) -> u32 {
        xid(owner, self.next_count())
    }

    /// Returns the next count, for any owner.
    #[inline]
    pub fn next_count(&mut self) -> u32 {
        self.0 += 1;
        if self.0 > MAX_COUNT {
            std::hint::cold_path();
            self.0 = 1;
        }
        self.0
    }

    /// Number of xids that were given since this source was `earlier`: less than [`MAX_COUNT`].
    #[must_use]
    pub fn given_since(self, earlier: Self) -> u32 {
        let (now, earlier) = (self.0, earlier.0);
        if now >= earlier { now - earlier } else { now + MAX_COUNT - earlier }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_and_counts_do_not_mix_and_zero_is_never_given() {
        let mut counter = XidSource(MAX_COUNT - 1);
        assert_eq!(counter.next(7), 0x07ff_ffff);
        assert_eq!(counter.next(255), 0xff00_0001);
        assert_eq!(owner(0xff00_0001), 255);
        assert_eq!(xid(1, u32::MAX), 0x01ff_ffff);
        assert_eq!(owner(counter.next(SESSION)), SESSION);
    }

    #[test]
    fn the_xids_given_since_an_earlier_count_are_counted_over_the_restart() {
        let mut counter = XidSource(MAX_COUNT - 1);
        let earlier = counter;
        assert_eq!(counter.given_since(earlier), 0);
        for given in 1..=3 {
            counter.next_count();
            assert_eq!(counter.given_since(earlier), given);
        }
        assert_eq!(counter.next_count(), 3);
    }
}
