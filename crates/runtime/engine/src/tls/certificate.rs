//! What a switch's certificate says.

use bellrock_api::{Fingerprint, SwitchIdentity};
use rustls::CommonState;
use rustls::pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// Maximum number of characters of a common name that are kept (RFC 5280, `ub-common-name`).
const MAX_NAME_CHARS: usize = 64;

/// Maximum number of datapath ids that are taken out of a certificate.
pub(crate) const MAX_DPIDS: usize = 4096;

/// What the peer of a session has proved. `None`: it showed no certificate that can be read, which
/// a server that demands one does not accept.
pub(crate) fn identity(session: &CommonState, epoch: u64) -> Option<SwitchIdentity> {
    let certificates = session.peer_certificates()?;
    let mut identity = parse(certificates.first()?)?;
    identity.protocol = match session.protocol_version() {
        Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3",
        Some(rustls::ProtocolVersion::TLSv1_2) => "TLS 1.2",
        _ => "TLS",
    };
    if let Some(suite) = session.negotiated_cipher_suite() {
        identity.cipher = format!("{:?}", suite.suite()).replace("TLS13_", "TLS_").into();
    }
    identity.certificates = certificates.iter().map(|der| (**der).into()).collect();
    identity.epoch = epoch;
    Some(identity)
}

/// Reads a certificate. `None`: it is none of X.509.
pub(crate) fn parse(der: &CertificateDer<'_>) -> Option<SwitchIdentity> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let (whole, key) = (fingerprint(der), fingerprint(certificate.public_key().raw));
    let mut identity = SwitchIdentity::new(whole, key);
    identity.not_after = certificate.validity().not_after.timestamp();
    let name = certificate.subject().iter_common_name().next();
    let name = name.and_then(|name| name.as_str().ok()).unwrap_or_default();
    identity.name = name.chars().take(MAX_NAME_CHARS).collect();
    let others = certificate.subject_alternative_name().ok().flatten();
    let uris = others.into_iter().flat_map(|names| &names.value.general_names);
    let of_uri = |name: &GeneralName<'_>| match name {
        GeneralName::URI(uri) => SwitchIdentity::dpid_of_uri(uri),
        _ => None,
    };
    identity.dpids = uris.filter_map(of_uri).take(MAX_DPIDS).collect();
    if identity.dpids.is_empty() {
        identity.dpids.extend(SwitchIdentity::dpid_of_name(&identity.name));
    }
    Some(identity)
}

fn fingerprint(bytes: &[u8]) -> Fingerprint {
    Fingerprint(Sha256::digest(bytes).into())
}
