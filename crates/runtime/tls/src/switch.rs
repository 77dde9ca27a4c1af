//! The switch's end of TLS.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CipherSuite, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::files::{self, TlsFileError};

/// Reads PEM files: a switch's certificate with those of its authorities, its key, and the
/// authorities of controllers. `preferred` is the first of the switch's cipher suites; without,
/// they have rustls's order.
///
/// As with Open vSwitch, the name in the controller's certificate does not matter.
///
/// # Errors
/// A file cannot be read, or does not have what it should have.
pub fn switch_config(
    certificate: &Path,
    key: &Path,
    authorities: &Path,
    preferred: Option<CipherSuite>,
) -> Result<ClientConfig, TlsFileError> {
    let mut provider = ring::default_provider();
    // A stable sort: the others keep their order.
    provider.cipher_suites.sort_by_key(|suite| preferred != Some(suite.suite()));
    let roots = files::root_store(authorities, files::certificates(authorities)?)?;
    let verifier = AnyName { roots, algorithms: provider.signature_verification_algorithms };
    let (chain, private) = (files::certificates(certificate)?, files::private_key(key)?);
    config(provider, verifier).with_client_auth_cert(chain, private).map_err(|error| {
        let why = format!("it cannot be used with its key: {error}");
        TlsFileError::content(certificate, why)
    })
}

fn config(
    provider: CryptoProvider,
    verifier: AnyName,
) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    // Its versions are known at compile time to be those of this provider.
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap_or_else(|error| unreachable!("{error}"));
    builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
}

/// The name of a controller, for sessions of [`switch_config`]: it is neither sent nor checked.
#[must_use]
pub fn controller_name() -> ServerName<'static> {
    ServerName::from(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// Accepts every certificate that an authority has signed, whatever its name.
#[derive(Debug)]
struct AnyName {
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (own, all) = (ParsedCertificate::try_from(own)?, self.algorithms.all);
        verify_server_cert_signed_by_trust_anchor(&own, &self.roots, others, now, all)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
