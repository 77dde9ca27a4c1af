//! A log of the keys of TLS sessions, in the format that NSS began (`SSLKEYLOGFILE`), and the keys of
//! records that come from it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use ring::{aead, hkdf, hmac};

/// Maximum size of a log that is read, in bytes: some hundred thousand sessions.
const MAX_LOG_BYTES: u64 = 256 << 20;

/// Length of the random numbers of both ends (RFC 8446 §4.1.2).
pub(super) const RANDOM_BYTES: usize = 32;

/// Length of a nonce of all suites here.
const NONCE_BYTES: usize = 12;

/// Length of the part of a nonce that a record of AES-GCM carries in TLS 1.2 (RFC 5288 §3).
const EXPLICIT_NONCE_BYTES: usize = 8;

pub(super) type Random = [u8; RANDOM_BYTES];

/// The secrets of all sessions of a log, by the random number of the client.
#[derive(Debug, Default)]
pub(crate) struct KeyLog(HashMap<Random, Secrets>);

/// The secrets of a session. A log may lack some.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    /// TLS 1.2.
    pub(super) master: Option<Vec<u8>>,
    pub(super) client_handshake: Option<Vec<u8>>,
    pub(super) server_handshake: Option<Vec<u8>>,
    pub(super) client_traffic: Option<Vec<u8>>,
    pub(super) server_traffic: Option<Vec<u8>>,
}

impl KeyLog {
    /// Reads a log. Lines of other kinds are skipped.
    ///
    /// # Errors
    /// The file cannot be read, or has no line of a session.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let mut log = KeyLog::default();
        for line in BufReader::new(File::open(path)?.take(MAX_LOG_BYTES)).lines() {
            log.add(&line?);
        }
        match log.0.is_empty() {
            true => Err(io::Error::other("it has no lines such as CLIENT_TRAFFIC_SECRET_0 …")),
            false => Ok(log),
        }
    }

    fn add(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let (Some(label), Some(random), Some(secret)) = (words.next(), words.next(), words.next())
        else {
            return;
        };
        let random = unhex(random).and_then(|random| Random::try_from(random).ok());
        let (Some(random), Some(secret)) = (random, unhex(secret)) else { return };
        let known = |label| {
            ["CLIENT_RANDOM", "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET"]
                .contains(&label)
                || ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"].contains(&label)
        };
        if !known(label) {
            return;
        }
        let of = self.0.entry(random).or_default();
        let place = match label {
            "CLIENT_RANDOM" => &mut of.master,
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => &mut of.client_handshake,
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => &mut of.server_handshake,
            "CLIENT_TRAFFIC_SECRET_0" => &mut of.client_traffic,
            _ => &mut of.server_traffic,
        };
        *place = Some(secret);
    }

    pub(super) fn of(&self, client: &Random) -> Option<&Secrets> {
        self.0.get(client)
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        &[high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

/// A cipher suite with authenticated encryption (RFC 8446 §B.4, RFC 5289, RFC 7905).
#[derive(Clone, Copy)]
pub(super) struct Suite {
    cipher: &'static aead::Algorithm,
    is_sha384: bool,
}

impl Suite {
    /// The suite of this number. `None`: it cannot be decrypted here.
    pub(super) fn of(number: u16) -> Option<Self> {
        let (cipher, is_sha384) = match number {
            0x1301 | 0xc02b | 0xc02f => (&aead::AES_128_GCM, false),
            0x1302 | 0xc02c | 0xc030 => (&aead::AES_256_GCM, true),
            0x1303 | 0xcca8 | 0xcca9 => (&aead::CHACHA20_POLY1305, false),
            _ => return None,
        };
        Some(Suite { cipher, is_sha384 })
    }

    fn hkdf(self) -> hkdf::Algorithm {
        if self.is_sha384 { hkdf::HKDF_SHA384 } else { hkdf::HKDF_SHA256 }
    }

    fn hmac(self) -> hmac::Algorithm {
        self.hkdf().hmac_algorithm()
    }

    /// Length of secrets, in bytes.
    fn hash_bytes(self) -> usize {
        if self.is_sha384 { 48 } else { 32 }
    }

    /// The secret behind an update of keys (RFC 8446 §7.2).
    pub(super) fn next_secret(self, secret: &[u8]) -> Option<Vec<u8>> {
        self.expand_label(secret, "traffic upd", self.hash_bytes())
    }

    /// HKDF-Expand-Label (RFC 8446 §7.1), without a context.
    fn expand_label(self, secret: &[u8], label: &str, bytes: usize) -> Option<Vec<u8>> {
        let label = ["tls13 ", label].concat();
        let (high_low, length) = ((bytes as u16).to_be_bytes(), [label.len() as u8]);
        let info: [&[u8]; 4] = [&high_low, &length, label.as_bytes(), &[0]];
        let key = hkdf::Prk::new_less_safe(self.hkdf(), secret);
        let mut out = vec![0; bytes];
        key.expand(&info, Bytes(bytes)).ok()?.fill(&mut out).ok()?;
        Some(out)
    }

    /// The PRF of TLS 1.2 (RFC 5246 §5).
    fn prf(self, secret: &[u8], label: &str, seed: &[u8], bytes: usize) -> Vec<u8> {
        let key = hmac::Key::new(self.hmac(), secret);
        let seed = [label.as_bytes(), seed].concat();
        let (mut out, mut a) = (Vec::new(), hmac::sign(&key, &seed));
        while out.len() < bytes {
            out.extend_from_slice(hmac::sign(&key, &[a.as_ref(), &seed].concat()).as_ref());
            a = hmac::sign(&key, a.as_ref());
        }
        out.truncate(bytes);
        out
    }

    /// The keys of one direction of TLS 1.3.
    pub(super) fn keys(self, secret: &[u8]) -> Option<RecordKeys> {
        let key = self.expand_label(secret, "key", self.cipher.key_len())?;
        let iv = self.expand_label(secret, "iv", NONCE_BYTES)?;
        RecordKeys::new(self, &key, iv)
    }

    /// The keys of TLS 1.2: those of the client, then those of the server (RFC 5246 §6.3).
    pub(super) fn keys_of_master(
        self,
        master: &[u8],
        client: &Random,
        server: &Random,
    ) -> Option<[RecordKeys; 2]> {
        let is_gcm = self.cipher != &aead::CHACHA20_POLY1305;
        let iv_bytes = if is_gcm { NONCE_BYTES - EXPLICIT_NONCE_BYTES } else { NONCE_BYTES };
        let key_bytes = self.cipher.key_len();
        let seed = [&server[..], &client[..]].concat();
        let block = self.prf(master, "key expansion", &seed, 2 * (key_bytes + iv_bytes));
        let (keys, ivs) = block.split_at_checked(2 * key_bytes)?;
        let (client_key, server_key) = keys.split_at_checked(key_bytes)?;
        let (client_iv, server_iv) = ivs.split_at_checked(iv_bytes)?;
        Some([
            RecordKeys::new(self, client_key, client_iv.to_vec())?,
            RecordKeys::new(self, server_key, server_iv.to_vec())?,
        ])
    }
}

struct Bytes(usize);

impl hkdf::KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

/// The key of one direction, and the number of its next record.
pub(super) struct RecordKeys {
    key: aead::LessSafeKey,
    iv: Vec<u8>,
    number: u64,
}

impl RecordKeys {
    fn new(suite: Suite, key: &[u8], iv: Vec<u8>) -> Option<Self> {
        let key = aead::UnboundKey::new(suite.cipher, key).ok()?;
        Some(RecordKeys { key: aead::LessSafeKey::new(key), iv, number: 0 })
    }

    /// Decrypts the body of a record of TLS 1.3. Returns what is inside, with its type.
    pub(super) fn open(&mut self, header: &[u8], body: &[u8]) -> Option<(u8, Vec<u8>)> {
        let aad = aead::Aad::from(header);
        let mut plain = body.to_vec();
        let bytes = self.key.open_in_place(self.counted_nonce()?, aad, &mut plain).ok()?.len();
        self.number += 1;
        plain.truncate(bytes);
        // Zeros behind the type are padding (RFC 8446 §5.4).
        let end = plain.iter().rposition(|byte| *byte != 0)?;
        let kind = plain.get(end).copied()?;
        plain.truncate(end);
        Some((kind, plain))
    }

    /// Decrypts the body of a record of TLS 1.2.
    pub(super) fn open_12(&mut self, header: &[u8], body: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = match self.iv.len() {
            NONCE_BYTES => (self.counted_nonce()?, body),
            _ => {
                let (explicit, sealed) = body.split_at_checked(EXPLICIT_NONCE_BYTES)?;
                let nonce = [&self.iv[..], explicit].concat();
                (aead::Nonce::try_assume_unique_for_key(&nonce).ok()?, sealed)
            }
        };
        let bytes = sealed.len().checked_sub(self.key.algorithm().tag_len())?;
        let kind_and_version = header.get(..3)?;
        let number = self.number.to_be_bytes();
        let length = u16::try_from(bytes).ok()?.to_be_bytes();
        let aad = aead::Aad::from([&number[..], kind_and_version, &length].concat());
        let mut plain = sealed.to_vec();
        self.key.open_in_place(nonce, aad, &mut plain).ok()?;
        self.number += 1;
        plain.truncate(bytes);
        Some(plain)
    }

    /// The nonce of the next record, by its number (RFC 8446 §5.3, RFC 7905 §2).
    fn counted_nonce(&self) -> Option<aead::Nonce> {
        let mut nonce: [u8; NONCE_BYTES] = self.iv.as_slice().try_into().ok()?;
        let number = self.number.to_be_bytes();
        for (byte, other) in nonce.iter_mut().rev().zip(number.iter().rev()) {
            *byte ^= other;
        }
        Some(aead::Nonce::assume_unique_for_key(nonce))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_line_by_line_and_other_lines_do_not_matter() {
        let mut log = KeyLog::default();
        let random = "0a".repeat(RANDOM_BYTES);
        for line in [
            "# a comment",
            "",
            "CLIENT_RANDOM",
            &format!("CLIENT_TRAFFIC_SECRET_0 {random} 0102"),
            &format!("SERVER_TRAFFIC_SECRET_0 {random} 03"),
            &format!("EXPORTER_SECRET {random} 04"),
            &format!("CLIENT_RANDOM {} 05", "0b".repeat(RANDOM_BYTES)),
            &format!("CLIENT_RANDOM {} 06", "0c".repeat(RANDOM_BYTES - 1)),
            &format!("CLIENT_RANDOM {random} 0x"),
        ] {
            log.add(line);
        }
        let secrets = log.of(&[10; RANDOM_BYTES]).unwrap();
        assert_eq!(secrets.client_traffic.as_deref(), Some(&[1, 2][..]));
        assert_eq!(secrets.server_traffic.as_deref(), Some(&[3][..]));
        assert_eq!((secrets.master.as_ref(), secrets.client_handshake.as_ref()), (None, None));
        assert_eq!(log.of(&[11; RANDOM_BYTES]).unwrap().master.as_deref(), Some(&[5][..]));
        assert_eq!(log.0.len(), 2);
    }
}
