//! Checksums: the Internet's, by differences and whole, and SCTP's.

/// The ones' complement sum of 16-bit words (RFC 1071); an odd last byte counts as the upper one.
pub(super) fn sum(bytes: &[u8], start: u32) -> u32 {
    let (pairs, last) = bytes.as_chunks::<2>();
    let words = pairs.iter().map(|pair| u32::from(u16::from_be_bytes(*pair)));
    let last = last.first().map_or(0, |byte| u32::from(*byte) << 8);
    // 65,536 words at most: a frame's length fits 16 bits.
    fold(words.fold(start, |sum, word| sum + word) + last)
}

const fn fold(sum: u32) -> u32 {
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum & 0xffff) + (sum >> 16)
}

/// The Internet checksum of bytes, with `start` summed up before (a pseudo-header, or 0).
pub(super) fn internet(bytes: &[u8], start: u32) -> u16 {
    !(sum(bytes, start) as u16)
}

/// The Internet checksum after `old` has become `new` (RFC 1624, equation 3). Both begin at an even
/// offset and have the same, even length.
pub(super) fn updated(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    let without = !checksum as u32 + (0xffff - sum(old, 0));
    !(sum(new, fold(without)) as u16)
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
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], 0), 0xddf2);
        assert_eq!(crc32c(*b"123456789"), 0xe306_9283_u32.to_le_bytes());
    }

    proptest! {
        #[test]
        fn an_update_is_the_checksum_anew(
            mut bytes in proptest::collection::vec(any::<u8>(), 20..80),
            at in 0_usize..8,
            new in any::<[u8; 4]>(),
        ) {
            // All zeros have the checksum 0xffff or 0, which an update cannot tell apart.
            bytes[19] = 1;
            let at = at * 2;
            let before = internet(&bytes, 0);
            let old: [u8; 4] = bytes[at..at + 4].try_into().unwrap();
            bytes[at..at + 4].copy_from_slice(&new);
            prop_assert_eq!(updated(before, &old, &new), internet(&bytes, 0));
        }
    }
}
