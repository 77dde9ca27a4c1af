//! TLS of the server.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::TlsFiles;

/// Maximum size of a file of a certificate or key, in bytes.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file does not have what it should have.
    #[error("{}: {why}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Certificate and key do not fit, or the key is of an unknown kind.
    #[error("the certificate cannot be used with its key: {0}")]
    Pair(#[from] rustls::Error),
}

/// Reads a certificate and its key. TLS 1.2 and 1.3 are spoken, with HTTP/1.1. Returns also the end
/// of the certificate, in seconds since 1970.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<(TlsAcceptor, Option<i64>), TlsError> {
    let TlsFiles { certificate, key } = files;
    let wrong = |path: &Path, why: &str| TlsError::Content { path: path.into(), why: why.into() };
    let pem = read(certificate)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.map_err(|error| wrong(certificate, &format!("not PEM: {error}")))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "it has no certificate in PEM (BEGIN CERTIFICATE)"));
    }
    let expiry = expiry(&chain[0]);
    let private = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|_| wrong(key, "it has no private key in PEM (BEGIN PRIVATE KEY)"))?;
    let provider = Arc::new(ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, private)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), expiry))
}

/// The end of a certificate, in seconds since 1970. `None`: it is not of X.509.
fn expiry(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |error| TlsError::File { path: path.into(), error };
    if fs::metadata(path).map_err(failed)?.len() > MAX_PEM_BYTES {
        let why = format!("it has more than {MAX_PEM_BYTES} bytes");
        return Err(TlsError::Content { path: path.into(), why });
    }
    fs::read(path).map_err(failed)
}
