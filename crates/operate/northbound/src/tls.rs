//! TLS of the server.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use bellrock_tls::{TlsFileError, files};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

use crate::TlsFiles;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or does not have what it should have.
    #[error(transparent)]
    File(#[from] TlsFileError),
    /// Certificate and key do not fit, or the key is of an unknown kind.
    #[error("the certificate cannot be used with its key: {0}")]
    Pair(#[from] rustls::Error),
}

/// The certificate of a server, which can be replaced while the server runs. All clones share it.
#[derive(Clone, Debug)]
pub struct Certificate(Arc<RwLock<LoadedCertificate>>);

/// A certificate with its key, as read from files.
#[derive(Clone, Debug)]
pub struct LoadedCertificate {
    key: Arc<CertifiedKey>,
    /// Its end, in seconds since 1970.
    expiry: Option<i64>,
}

impl LoadedCertificate {
    /// Reads a certificate and its key.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn read(of: &TlsFiles) -> Result<Self, TlsError> {
        let TlsFiles { certificate, key } = of;
        let chain = files::certificates(certificate)?;
        let expiry = chain.first().and_then(expiry);
        let private = files::private_key(key)?;
        let key = CertifiedKey::from_der(chain, private, &ring::default_provider())?;
        Ok(LoadedCertificate { key: Arc::new(key), expiry })
    }
}

impl Certificate {
    /// Reads a certificate and its key.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Certificate(Arc::new(RwLock::new(LoadedCertificate::read(files)?))))
    }

    /// Replaces it. Connections that exist keep the earlier one.
    pub fn replace(&self, loaded: LoadedCertificate) {
        // Each change is one assignment.
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = loaded;
    }

    /// Its end, in seconds since 1970.
    pub(crate) fn expiry(&self) -> Option<i64> {
        self.loaded().expiry
    }

    fn loaded(&self) -> RwLockReadGuard<'_, LoadedCertificate> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.loaded().key))
    }
}

/// Accepts TLS 1.2 and 1.3 with this certificate, for HTTP/1.1.
pub(crate) fn acceptor(certificate: &Certificate) -> Result<TlsAcceptor, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificate.clone()));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The end of a certificate, in seconds since 1970. `None`: it is not of X.509.
fn expiry(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Some(certificate.validity().not_after.timestamp())
}
