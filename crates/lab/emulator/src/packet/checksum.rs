//! Checksums: the Internet checksum, whole or updated, and SCTP's.

/// Adds bytes to a sum of 16-bit words (RFC 1071), four bytes at a time. An odd last byte counts as
/// if a zero followed.
pub(crate) fn add(mut sum: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        sum += u64::from(u32::from_be_bytes(*word));
    }
    for (at, byte) in rest.iter().enumerate() {
        sum += u64::from(*byte) << (8 * (1 - at % 2));
    }
    sum
}

/// The Internet checksum of a sum.
pub(crate) const fn finish(sum: u64) -> u16 {
    !fold(sum)
}

const fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// The Internet checksum after `old` has become `new` (RFC 1624, equation 3). Both begin at an even
/// offset and have the same, even length.
pub(super) fn updated(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    // For all zeros the right checksum is 0xffff, but the equation would give 0x0000.
    if old == new {
        return checksum;
    }
    let without = u64::from(!checksum) + u64::from(finish(add(0, old)));
    finish(add(without, new))
}

/// CRC-32C, the polynomial reversed (RFC 9260, appendix A).
const CASTAGNOLI: u32 = 0x82f6_3b78;

/// Runs bytes through the CRC's register, which starts as `register`.
pub(super) fn crc32c_register(register: u32, bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(register, |register, byte| {
        (0..8).fold(register ^ u32::from(byte), |register, _| {
            register >> 1 ^ if register & 1 == 1 { CASTAGNOLI } else { 0 }
        })
    })
}

/// The CRC-32C of an SCTP packet, as its four bytes stand in it (RFC 9260 §6.8).
pub(super) fn crc32c(bytes: impl IntoIterator<Item = u8>) -> [u8; 4] {
    (!crc32c_register(u32::MAX, bytes)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_sums_are_those_of_the_standards() {
        // RFC 1071 §3, and the check value of CRC-32C.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(finish(add(0, &bytes)), !0xddf2);
        assert_eq!(finish(add(0, &[1, 2, 3])), !0x0402, "an odd byte is the upper one");
        assert_eq!(crc32c(*b"123456789"), 0xe306_9283_u32.to_le_bytes());
    }

    proptest! {
        #[test]
        fn an_update_is_the_checksum_anew(
            mut bytes in proptest::collection::vec(any::<u8>(), 20..80),
            at in 0_usize..8,
            new in any::<[u8; 4]>(),
        ) {
            // All zeros have the checksum 0xffff or 0; an update cannot know which.
            bytes[19] = 1;
            let at = at * 2;
            let before = finish(add(0, &bytes));
            let old: [u8; 4] = bytes[at..at + 4].try_into().unwrap();
            bytes[at..at + 4].copy_from_slice(&new);
            prop_assert_eq!(updated(before, &old, &new), finish(add(0, &bytes)));
        }
    }
}
