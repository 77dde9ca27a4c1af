//! The secret key that proves that an announcement is the controller's.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of a tag: a whole HMAC-SHA256 (RFC 2104).
pub(super) const TAG_LEN: usize = 32;

/// Minimum length of a configured key, in bytes.
pub const MIN_KEY_LEN: usize = 16;

/// The secret key that signs announcements. Its `Debug` does not show it.
#[derive(Clone)]
pub struct DiscoveryKey {
    hmac: Hmac<Sha256>,
    /// The same as bytes, for the other controllers of a cluster.
    secret: Box<[u8]>,
}

/// The text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a discovery key has at least {} hexadecimal digits, two for each byte; \
     for example, take the output of `openssl rand -hex 32`",
    2 * MIN_KEY_LEN
)]
pub struct ParseKeyError;

/// The operating system has no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot get random numbers for keys from the operating system: {0}")]
pub struct NoRandomness(#[from] getrandom::Error);

impl DiscoveryKey {
    /// Creates a key from secret bytes.
    ///
    /// # Errors
    /// There are fewer than [`MIN_KEY_LEN`] bytes.
    pub fn new(secret: &[u8]) -> Result<Self, ParseKeyError> {
        if secret.len() < MIN_KEY_LEN {
            return Err(ParseKeyError);
        }
        Ok(DiscoveryKey::of(secret))
    }

    /// Creates a key without a check of its length.
    pub(crate) fn of(secret: &[u8]) -> Self {
        // HMAC hashes a key that is longer than a block (RFC 2104 §2), so any length works.
        match Hmac::new_from_slice(secret) {
            Ok(hmac) => DiscoveryKey { hmac, secret: secret.into() },
            Err(_) => unreachable!("HMAC takes keys of any length"),
        }
    }

    /// Reads a key from hexadecimal digits.
    ///
    /// # Errors
    /// The text is too short, or not of hexadecimal digits.
    pub fn from_hex(text: &str) -> Result<Self, ParseKeyError> {
        let (pairs, rest) = text.trim().as_bytes().as_chunks();
        if !rest.is_empty() {
            return Err(ParseKeyError);
        }
        let digit = |digit: u8| char::from(digit).to_digit(16).ok_or(ParseKeyError);
        let byte = |[high, low]: &[u8; 2]| Ok((digit(*high)? << 4 | digit(*low)?) as u8);
        let secret: Vec<u8> = pairs.iter().map(byte).collect::<Result<_, _>>()?;
        DiscoveryKey::new(&secret)
    }

    /// The secret bytes.
    pub(crate) fn secret(&self) -> &[u8] {
        &self.secret
    }

    /// Signs a text.
    pub(super) fn sign(&self, text: &[u8]) -> [u8; TAG_LEN] {
        self.hmac.clone().chain_update(text).finalize().into_bytes().into()
    }

    /// Whether the key signed a text. Takes as long for a wrong tag as for the right one.
    pub(super) fn verify(&self, text: &[u8], tag: &[u8; TAG_LEN]) -> bool {
        self.hmac.clone().chain_update(text).verify_slice(tag).is_ok()
    }
}

impl fmt::Debug for DiscoveryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Returns secret random bytes from the operating system.
///
/// # Errors
/// [`NoRandomness`].
pub(crate) fn secret<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_signs_what_it_signed_and_nothing_else() {
        let key = DiscoveryKey::from_hex(&"0b".repeat(20)).unwrap();
        let tag = key.sign(b"Hi There");
        // RFC 4231 §4.2.
        assert_eq!(tag[..8], [0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53]);
        assert!(key.verify(b"Hi There", &tag) && !key.verify(b"Hi There.", &tag));
        let other = DiscoveryKey::from_hex(&"0c".repeat(20)).unwrap();
        assert!(!other.verify(b"Hi There", &tag));
        assert_eq!(format!("{key:?}"), "Key(..)");
    }

    #[test]
    fn a_malformed_key_is_refused() {
        for text in ["", "0b", &"0b".repeat(15), &"0g".repeat(20), &"0b0".repeat(11)] {
            assert_eq!(DiscoveryKey::from_hex(text).err(), Some(ParseKeyError), "{text}");
        }
        assert!(DiscoveryKey::from_hex(&format!("{}\n", "Ab".repeat(16))).is_ok());
    }
}
