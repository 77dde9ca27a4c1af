//! What a switch has proved of itself by TLS.

use std::fmt;
use std::str::FromStr;

use crate::Dpid;

/// The certificate that a switch has shown, and the TLS session of its connection. The certificate
/// has a valid chain to an authority of the configuration.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SwitchIdentity {
    /// Common name of its subject. Empty: it has none.
    pub name: Box<str>,
    /// The datapath ids that it names, see [`Self::dpid_of_uri`].
    pub dpids: Vec<Dpid>,
    /// Of the certificate.
    pub fingerprint: Fingerprint,
    /// Of its public key (its `SubjectPublicKeyInfo`), which a renewed certificate may keep.
    pub key: Fingerprint,
    /// Its end, in seconds since 1970.
    pub not_after: i64,
    /// Version of TLS.
    pub protocol: &'static str,
    /// Cipher suite, by its name at IANA.
    pub cipher: Box<str>,
    /// Which state of the authorities and of their lists of revocations accepted it: the runtime
    /// counts them.
    pub epoch: u64,
    /// The certificates as the switch sent them (DER): its own first, then those of authorities.
    pub certificates: Vec<Box<[u8]>>,
}

impl SwitchIdentity {
    /// A certificate without names and session.
    #[must_use]
    pub fn new(fingerprint: Fingerprint, key: Fingerprint) -> Self {
        SwitchIdentity {
            name: "".into(),
            dpids: Vec::new(),
            fingerprint,
            key,
            not_after: 0,
            protocol: "",
            cipher: "".into(),
            epoch: 0,
            certificates: Vec::new(),
        }
    }

    /// The datapath id that a URI in a certificate names: `of:` and 16 hexadecimal digits, the form
    /// in which ONOS names devices.
    #[must_use]
    pub fn dpid_of_uri(uri: &str) -> Option<Dpid> {
        uri.strip_prefix("of:").and_then(whole_dpid)
    }

    /// The datapath id that a common name is: exactly 16 hexadecimal digits. A shorter one may be
    /// the name of a host.
    #[must_use]
    pub fn dpid_of_name(name: &str) -> Option<Dpid> {
        whole_dpid(name)
    }
}

fn whole_dpid(text: &str) -> Option<Dpid> {
    let is_whole = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_whole.then(|| text.parse().ok()).flatten()
}

impl fmt::Debug for SwitchIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SwitchIdentity")
            .field("name", &self.name)
            .field("dpids", &self.dpids)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// Prints its name and the beginning of its key's fingerprint, as in a log line.
impl fmt::Display for SwitchIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "without a name" } else { &self.name };
        write!(f, "certificate {name:?}, key {}", self.key)
    }
}

/// A SHA-256 fingerprint. Prints as `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is sha256: and 64 hexadecimal digits, with or without colons between bytes")]
pub struct ParseFingerprintError;

/// Reads it as it prints, and with colons between the bytes, as OpenSSL prints it.
impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    fn from_str(text: &str) -> Result<Self, ParseFingerprintError> {
        let digits = text.strip_prefix("sha256:").ok_or(ParseFingerprintError)?;
        let digits: Vec<u8> = digits.bytes().filter(|byte| *byte != b':').collect();
        let nibble = |byte: u8| (byte as char).to_digit(16).and_then(|n| u8::try_from(n).ok());
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return Err(ParseFingerprintError);
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let &[high, low] = pair else { return Err(ParseFingerprintError) };
            let (high, low) = nibble(high).zip(nibble(low)).ok_or(ParseFingerprintError)?;
            *byte = high << 4 | low;
        }
        Ok(Fingerprint(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_read_as_they_print_and_as_openssl_prints_them() {
        let fingerprint = Fingerprint(std::array::from_fn(|i| i as u8 * 8));
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        let bytes: Vec<String> = fingerprint.0.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(format!("sha256:{}", bytes.join(":")).parse(), Ok(fingerprint));
        for wrong in ["", "sha256:", "sha256:00", &fingerprint.to_string()[7..], "sha256:zz"] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(ParseFingerprintError), "{wrong}");
        }
    }

    #[test]
    fn only_whole_datapath_ids_are_taken_out_of_certificates() {
        let dpid = Some(Dpid(0xa1));
        assert_eq!(SwitchIdentity::dpid_of_uri("of:00000000000000a1"), dpid);
        assert_eq!(SwitchIdentity::dpid_of_name("00000000000000A1"), dpid);
        for other in ["a1", "of:a1", "cafe", "0x000000000000a1", "+0000000000000a1"] {
            assert_eq!(SwitchIdentity::dpid_of_uri(other), None, "{other}");
            assert_eq!(SwitchIdentity::dpid_of_name(other), None, "{other}");
        }
    }
}
