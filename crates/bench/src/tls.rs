//! What the switches of a load show to a controller that demands TLS, and what they accept.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    Resumption, UnbufferedClientConnection, verify_server_cert_signed_by_trust_anchor,
};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CipherSuite, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// The certificate of all switches of a load, and the authorities of controllers. The name in the
/// controller's certificate does not matter, as with Open vSwitch.
///
/// The switches prefer TLS 1.3 with AES-128-GCM, and resume no sessions: each connection is a whole
/// handshake.
#[derive(Clone)]
pub struct LoadTls(Arc<ClientConfig>);

/// Why a file of TLS cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct LoadTlsError {
    path: PathBuf,
    why: String,
}

impl fmt::Debug for LoadTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadTls").finish_non_exhaustive()
    }
}

impl LoadTls {
    /// Reads PEM files: the switches' certificate with those of its authorities, its key, and the
    /// authorities of controllers.
    ///
    /// # Errors
    /// A file cannot be read, or does not have what it should have.
    pub fn read(certificate: &Path, key: &Path, authorities: &Path) -> Result<Self, LoadTlsError> {
        let provider = provider();
        let mut roots = RootCertStore::empty();
        for root in certificates(authorities)? {
            roots.add(root).map_err(|error| wrong(authorities, &error))?;
        }
        let algorithms = provider.signature_verification_algorithms;
        let verifier = Arc::new(AnyName { roots, algorithms });
        let private =
            PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| wrong(key, &error))?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(certificate, &error))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_auth_cert(certificates(certificate)?, private)
            .map_err(|error| wrong(certificate, &error))?;
        config.resumption = Resumption::disabled();
        Ok(LoadTls(Arc::new(config)))
    }

    /// Makes a session that has not begun.
    pub(crate) fn session(&self) -> Result<UnbufferedClientConnection, Error> {
        // It is neither sent nor checked.
        let name = ServerName::from(IpAddr::V4(Ipv4Addr::LOCALHOST));
        UnbufferedClientConnection::new(Arc::clone(&self.0), name)
    }
}

/// The algorithms, AES-128-GCM of TLS 1.3 first.
fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    // A stable sort: the others keep their order.
    provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    provider
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, LoadTlsError> {
    let pem = read(path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let all = all.map_err(|error| wrong(path, &error))?;
    match all.is_empty() {
        true => Err(wrong(path, &"it has no certificate in PEM (BEGIN CERTIFICATE)")),
        false => Ok(all),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, LoadTlsError> {
    fs::read(path).map_err(|error| wrong(path, &error))
}

fn wrong(path: &Path, why: &dyn fmt::Display) -> LoadTlsError {
    LoadTlsError { path: path.into(), why: why.to_string() }
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
