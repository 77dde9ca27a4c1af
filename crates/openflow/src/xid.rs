//! Transaction ids with owners: how a controller tells whose message a reply is about.
//!
//! A reply and an error carry the xid of the message that they are about, so the xid says to whom
//! they go. The high eight bits name the owner, the low 24 count:
//!
//! ```text
//!  31          24 23                                             0
//! +--------------+-----------------------------------------------+
//! |    owner     |                     count                     |
//! +--------------+-----------------------------------------------+
//! ```
//!
//! The count is one for all owners of a session and starts again after 2^24 - 1 messages. Zero is
//! left out: switches put xid 0 into what nobody asked for.

/// The session itself: its handshake, its echoes, its table-miss entry.
pub const SESSION: u8 = 0;

/// Bits of the count.
pub const COUNT_BITS: u32 = 24;

/// The largest count.
pub const MAX_COUNT: u32 = (1 << COUNT_BITS) - 1;

/// The xid of `owner` with this count, of which the low 24 bits are taken.
#[must_use]
#[inline]
pub const fn xid(owner: u8, count: u32) -> u32 {
    (owner as u32) << COUNT_BITS | count & MAX_COUNT
}

/// Who owns an xid: 0 is the session, 1 to 255 are the caller's to give.
#[must_use]
#[inline]
pub const fn owner(xid: u32) -> u8 {
    (xid >> COUNT_BITS) as u8
}

/// The xids of one session: counts up, from 1 to [`MAX_COUNT`] and round again.
#[derive(Debug, Default)]
pub struct Counter(u32);

impl Counter {
    /// The next one, with this owner.
    #[inline]
    pub fn next(&mut self, owner: u8) -> u32 {
        xid(owner, self.next_count())
    }

    /// The count of the next one, whoever is its owner.
    #[inline]
    pub fn next_count(&mut self) -> u32 {
        self.0 += 1;
        if self.0 > MAX_COUNT {
            std::hint::cold_path();
            self.0 = 1;
        }
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_and_counts_do_not_mix_and_zero_is_never_given() {
        let mut counter = Counter(MAX_COUNT - 1);
        assert_eq!(counter.next(7), 0x07ff_ffff);
        assert_eq!(counter.next(255), 0xff00_0001);
        assert_eq!(owner(0xff00_0001), 255);
        assert_eq!(xid(1, u32::MAX), 0x01ff_ffff);
        assert_eq!(owner(counter.next(SESSION)), SESSION);
    }
}
