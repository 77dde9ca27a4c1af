//! Both ends of TLS between nodes. A node's certificate has its name as a DNS name.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use bellrock_tls::{TlsFileError, files};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Files in PEM, for TLS between the nodes.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Certificate of this node, with its chain. It has the node's name as a DNS name.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities that sign the nodes' certificates.
    pub authorities: PathBuf,
}

impl TlsFiles {
    /// Checks that the files fit, and that the certificate has the name of this node.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn check(&self, node: &str) -> Result<(), TlsError> {
        LinkTls::read(self, node).map(drop)
    }
}

/// Why TLS between the nodes cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or does not have what it should have.
    #[error(transparent)]
    File(#[from] TlsFileError),
    /// Certificate and key do not fit, or the key is of an unknown kind.
    #[error("the certificate of the node cannot be used with its key: {0}")]
    Pair(#[from] rustls::Error),
    /// The authorities are none.
    #[error("the authorities of the nodes cannot be used: {0}")]
    Authorities(String),
    /// Others would refuse the certificate.
    #[error(
        "the certificate {path} does not have the DNS name {node}, by which the other nodes know this \
         one: sign one with it"
    )]
    OtherName {
        /// The file.
        path: PathBuf,
        /// Name of this node.
        node: String,
    },
}

/// TLS of a node: what it shows, and whom it trusts. All clones share one state.
#[derive(Clone)]
pub struct LinkTls(Arc<RwLock<Ends>>);

/// Both ends, as connections that begin now use them.
#[derive(Clone)]
struct Ends {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    /// End of the node's certificate, in seconds since 1970.
    not_after: Option<i64>,
}

impl LinkTls {
    /// Reads the files of the node with this name.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn read(files: &TlsFiles, node: &str) -> Result<Self, TlsError> {
        Ok(LinkTls(Arc::new(RwLock::new(ends(files, node)?))))
    }

    /// Uses what another one has read, for all connections that begin from now on.
    pub fn replace(&self, other: &LinkTls) {
        let ends = other.ends();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = ends;
    }

    /// End of the node's certificate, in seconds since 1970. `None`: it has none that can be read.
    #[must_use]
    pub fn not_after(&self) -> Option<i64> {
        self.ends().not_after
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.ends().acceptor
    }

    pub(super) fn connector(&self) -> TlsConnector {
        self.ends().connector
    }

    fn ends(&self) -> Ends {
        // A panic under this lock leaves it whole: it is replaced at once.
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for LinkTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkTls")
    }
}

/// Both ends, by the files of this node.
fn ends(of: &TlsFiles, node: &str) -> Result<Ends, TlsError> {
    let TlsFiles { certificate, key, authorities } = of;
    let chain = files::certificates(certificate)?;
    let not_after = chain.first().and_then(end_of);
    if !chain.first().is_some_and(|leaf| has_name(leaf, node)) {
        return Err(TlsError::OtherName { path: certificate.clone(), node: node.into() });
    }
    let roots = files::root_store(authorities, files::certificates(authorities)?)?;
    let roots = Arc::new(roots);
    let provider = Arc::new(ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
            .build()
            .map_err(|error| TlsError::Authorities(error.to_string()))?;
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain.clone(), files::private_key(key)?)?;
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, files::private_key(key)?)?;
    let acceptor = TlsAcceptor::from(Arc::new(server));
    Ok(Ends { acceptor, connector: TlsConnector::from(Arc::new(client)), not_after })
}

fn end_of(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

/// The name that a node's certificate must have.
pub(super) fn server_name(node: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(node.to_owned()).ok()
}

/// Whether a certificate has this DNS name.
pub(super) fn has_name(certificate: &CertificateDer<'_>, node: &str) -> bool {
    let Some(name) = server_name(node) else { return false };
    let parsed = rustls::server::ParsedCertificate::try_from(certificate);
    parsed.is_ok_and(|certificate| rustls::client::verify_server_name(&certificate, &name).is_ok())
}
