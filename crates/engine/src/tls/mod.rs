//! TLS towards switches: what the controller shows and what it demands, handshakes, and the
//! encrypted channel.
//!
//! Both sides show a certificate, and each verifies the other's (OpenFlow 1.3.5 §6.3.3). Versions 1.2
//! and 1.3 are accepted. Handshakes have threads of their own (`handshake`), since one takes as long
//! as thousands of packets; a worker gets an established session (`session`).

pub(crate) mod handshake;
pub(crate) mod session;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// Maximum size of a file of certificates, of a key or of revocations, in bytes.
const MAX_PEM_BYTES: u64 = 16 << 20;

/// The files of a TLS server, all in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The controller's certificate, followed by those of the authorities between it and the root.
    pub certificate: PathBuf,
    /// The key of the first certificate.
    pub key: PathBuf,
    /// The authorities that sign the certificates of switches.
    pub authorities: PathBuf,
    /// Revoked certificates of switches. Each authority of a switch must have a list then.
    pub revocations: Option<PathBuf>,
}

/// TLS of an engine.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// Addresses to listen on. Port 0 selects a free port.
    pub listen: Vec<SocketAddr>,
    /// What the controller shows and demands there.
    pub server: TlsServer,
}

/// What the controller shows to switches, and which of theirs it accepts. All clones share it.
#[derive(Clone, Debug)]
pub struct TlsServer(Arc<RwLock<Arc<ServerConfig>>>);

/// Why the files of a TLS server cannot be used.
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
}

impl TlsServer {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(TlsServer(Arc::new(RwLock::new(Arc::new(read_config(files)?)))))
    }

    /// Reads the files anew, for the connections from now on. Established ones keep what they have.
    ///
    /// # Errors
    /// [`TlsError`]. Then nothing has changed.
    pub fn replace(&self, files: &TlsFiles) -> Result<(), TlsError> {
        let config = Arc::new(read_config(files)?);
        // Each change is one assignment.
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn read_config(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let TlsFiles { certificate, key, authorities, revocations } = files;
    let chain = certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|_| wrong(key, "it has no private key in PEM (BEGIN PRIVATE KEY)"))?;
    let mut roots = RootCertStore::empty();
    for root in certificates(authorities)? {
        roots
            .add(root)
            .map_err(|error| wrong(authorities, format!("it is no authority: {error}")))?;
    }
    let provider = Arc::new(ring::default_provider());
    let mut verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    if let Some(path) = revocations {
        let pem = read(path)?;
        let lists =
            CertificateRevocationListDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
        let lists = lists.map_err(|error| wrong(path, format!("not PEM: {error}")))?;
        if lists.is_empty() {
            return Err(wrong(path, "it has no list of revocations in PEM (BEGIN X509 CRL)"));
        }
        verifier = verifier.with_crls(lists).only_check_end_entity_revocation();
    }
    let about = revocations.as_ref().unwrap_or(authorities);
    let verifier = verifier.build().map_err(|error| wrong(about, error.to_string()))?;
    let unusable = |error: rustls::Error| {
        wrong(certificate, format!("it cannot be used with its key: {error}"))
    };
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, private)
        .map_err(unusable)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read(path)?;
    let all = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| wrong(path, format!("not PEM: {error}")))?;
    if all.is_empty() {
        return Err(wrong(path, "it has no certificate in PEM (BEGIN CERTIFICATE)"));
    }
    Ok(all)
}

fn wrong(path: &Path, why: impl Into<String>) -> TlsError {
    TlsError::Content { path: path.into(), why: why.into() }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |error| TlsError::File { path: path.into(), error };
    if fs::metadata(path).map_err(failed)?.len() > MAX_PEM_BYTES {
        return Err(wrong(path, format!("it has more than {} MiB", MAX_PEM_BYTES >> 20)));
    }
    fs::read(path).map_err(failed)
}
