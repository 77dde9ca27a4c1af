//! Why a TLS handshake failed, as a sentence for the operator with what to do.

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};

/// Explains an error of a handshake.
pub(crate) fn explain(error: &Error) -> String {
    let advice = match error {
        Error::NoCertificatesPresented => {
            "it shows no certificate, or has none with a key of a kind that is accepted (RSA, P-256, \
             P-384, Ed25519); give the switch one (ovs-vsctl set-ssl KEY CERTIFICATE CA)"
        }
        Error::InvalidCertificate(error) => return of_certificate(error),
        Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered)
        | Error::PeerIncompatible(PeerIncompatible::Tls12NotOfferedOrEnabled)
        // The extension is new in TLS 1.2.
        | Error::PeerIncompatible(PeerIncompatible::SignatureAlgorithmsExtensionRequired) => {
            "it offers no TLS newer than 1.1, which is not safe; TLS 1.2 and 1.3 are accepted"
        }
        Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon) => {
            "it offers no cipher suite that is safe; suites with AES-GCM or ChaCha20-Poly1305 are \
             accepted, after a key exchange with elliptic curves"
        }
        Error::PeerIncompatible(
            PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon
            | PeerIncompatible::NoSignatureSchemesInCommon,
        ) => {
            "it can sign with no scheme that is accepted; give it a key of RSA with 2,048 bits or \
             more, P-256, P-384 or Ed25519"
        }
        Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown,
        ) => {
            "the switch does not trust the controller's certificate; its CA certificate must be the \
             authority of `tls.certificate`"
        }
        Error::AlertReceived(AlertDescription::CertificateExpired) => {
            "the switch says that the controller's certificate has expired; renew `tls.certificate`, \
             or set the clock of the switch"
        }
        Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            "the switch accepts no TLS that is safe; TLS 1.2 and 1.3 are accepted"
        }
        Error::InvalidMessage(_) => {
            "what it sends is not TLS; the switch must connect with `ssl:`, and this address is for \
             nothing else"
        }
        _ => return format!("the TLS handshake failed: {error}"),
    };
    format!("{advice} ({error})")
}

fn of_certificate(error: &CertificateError) -> String {
    let what = match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired; renew it, or set this machine's clock"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; set this machine's clock, or that of the machine \
             which made it"
        }
        CertificateError::Revoked => "its certificate is revoked by `tls.crl`",
        CertificateError::UnknownRevocationStatus
        | CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. } => {
            "`tls.crl` has no valid list of the authority of its certificate; add or renew that list"
        }
        CertificateError::UnknownIssuer => {
            "no authority of `tls.ca` has signed its certificate; sign it by one, or add its authority"
        }
        CertificateError::BadSignature => {
            "the signature of its certificate, or its own in the handshake, is wrong: another \
             authority may have the same name, or its key is of a kind that is not accepted (RSA \
             below 2,048 bits)"
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "its certificate is not for clients; sign it with the extended key usage clientAuth, or \
             with none"
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its certificate is signed with an algorithm that is not accepted, such as SHA-1 or \
             MD5, or has a key of a kind that is not accepted, such as P-521; sign it with SHA-256"
        }
        CertificateError::Other(other) => match other.to_string().as_str() {
            "UnsupportedCertVersion" => {
                "its certificate is of X.509 version 1; make one of version 3 (ovs-pki does so since \
                 Open vSwitch 2.10)"
            }
            "CaUsedAsEndEntity" => {
                "its certificate is one of an authority; sign one for the switch itself"
            }
            _ => "its certificate cannot be used",
        },
        _ => "its certificate cannot be used",
    };
    format!("{what} ({error})")
}
