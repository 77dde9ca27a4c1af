//! Digests, which identify a frame without a copy of it.

/// A digest of bytes. Different bytes have the same digest only by chance. It is the same on every
/// machine and in every build.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    // Multiply and rotate, eight bytes at a time; the constant is 2^64 divided by the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |digest: u64, word: u64| (digest ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let (words, rest) = bytes.as_chunks::<8>();
    let mut digest =
        words.iter().fold(bytes.len() as u64, |d, word| mix(d, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    digest = mix(digest, u64::from_le_bytes(last));
    digest ^ digest >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_their_digest() {
        let long: Vec<u8> = (0..=255).collect();
        for len in 0..long.len() {
            assert_ne!(digest(&long[..len]), digest(&long[..=len]));
        }
        // It must never change: digests of runs are compared between machines.
        assert_eq!(digest(b"frame"), digest(b"frame"));
        assert_ne!(digest(b"frame"), digest(b"frama"));
    }
}
