//! Both ends of TLS between nodes. A node's certificate has its name as a DNS name.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use bellrock_tls::{TlsFileError, files};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{CertificateError, ClientConfig, ServerConfig};
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
    /// Lists of revoked certificates: one of each authority.
    pub revocations: Option<PathBuf>,
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
    /// The authorities are none, or the lists of revoked certificates are.
    #[error(
        "the authorities of the nodes, or their lists of revoked certificates, cannot be used: {0}"
    )]
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
    verifier: Arc<dyn ClientCertVerifier>,
    /// Number of times that all this was replaced.
    epoch: u64,
    /// End of the node's certificate, in seconds since 1970.
    not_after: Option<i64>,
    /// When a list of revoked certificates should be replaced.
    revocations_end: Option<i64>,
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
        let mut own = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let epoch = own.epoch.wrapping_add(1);
        *own = Ends { epoch, ..ends };
    }

    /// End of the node's certificate, in seconds since 1970. `None`: it has none that can be read.
    #[must_use]
    pub fn not_after(&self) -> Option<i64> {
        self.ends().not_after
    }

    /// When the first list of revoked certificates should be replaced, in seconds since 1970.
    /// `None`: there is none, or it does not say.
    #[must_use]
    pub fn revocations_end(&self) -> Option<i64> {
        self.ends().revocations_end
    }

    /// Changes when the files are read anew.
    pub(super) fn epoch(&self) -> u64 {
        self.0.read().unwrap_or_else(PoisonError::into_inner).epoch
    }

    /// Whether a certificate, with its chain, is revoked. Both ends show certificates of nodes.
    fn has_revoked(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((own, rest)) = chain.split_first() else { return false };
        let verified = self.ends().verifier.verify_client_cert(own, rest, UnixTime::now());
        matches!(verified, Err(rustls::Error::InvalidCertificate(CertificateError::Revoked)))
    }

    /// What accepts a connection.
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

/// The certificate that the other end of a connection has shown.
pub(super) struct ShownCertificate {
    tls: LinkTls,
    chain: Vec<CertificateDer<'static>>,
    /// When it was verified last.
    epoch: u64,
}

impl ShownCertificate {
    /// `epoch`: that of `tls` before the handshake.
    pub(super) fn new(tls: &LinkTls, epoch: u64, chain: Option<&[CertificateDer<'_>]>) -> Self {
        let chain = chain.unwrap_or_default().iter().map(|it| it.clone().into_owned()).collect();
        ShownCertificate { tls: tls.clone(), chain, epoch }
    }

    /// Whether it has this DNS name.
    pub(super) fn has_name(&self, node: &str) -> bool {
        self.chain.first().is_some_and(|leaf| has_name(leaf, node))
    }

    /// Whether it has been revoked meanwhile. Looks only after the files were read anew.
    pub(super) fn is_revoked(&mut self) -> bool {
        let epoch = self.tls.epoch();
        if epoch == self.epoch {
            return false;
        }
        self.epoch = epoch;
        self.tls.has_revoked(&self.chain)
    }
}

impl fmt::Debug for LinkTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkTls")
    }
}

/// Both ends, by the files of this node.
fn ends(of: &TlsFiles, node: &str) -> Result<Ends, TlsError> {
    let TlsFiles { certificate, key, authorities, revocations } = of;
    let chain = files::certificates(certificate)?;
    let not_after = chain.first().and_then(end_of);
    if !chain.first().is_some_and(|leaf| has_name(leaf, node)) {
        return Err(TlsError::OtherName { path: certificate.clone(), node: node.into() });
    }
    let roots = files::root_store(authorities, files::certificates(authorities)?)?;
    let roots = Arc::new(roots);
    let provider = Arc::new(ring::default_provider());
    let lists = revocations.as_deref().map(files::revocations).transpose()?.unwrap_or_default();
    let revocations_end = files::revocations_end(&lists);
    let unusable = |error: VerifierBuilderError| TlsError::Authorities(error.to_string());
    let mut of_clients =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
    let mut of_servers =
        WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
    if revocations.is_some() {
        of_clients = of_clients.with_crls(lists.clone()).only_check_end_entity_revocation();
        of_servers = of_servers.with_crls(lists).only_check_end_entity_revocation();
    }
    let verifier = of_clients.build().map_err(unusable)?;
    let of_servers = of_servers.build().map_err(unusable)?;
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(Arc::clone(&verifier))
        .with_single_cert(chain.clone(), files::private_key(key)?)?;
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_webpki_verifier(of_servers)
        .with_client_auth_cert(chain, files::private_key(key)?)?;
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let connector = TlsConnector::from(Arc::new(client));
    Ok(Ends { acceptor, connector, verifier, epoch: 0, not_after, revocations_end })
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
fn has_name(certificate: &CertificateDer<'_>, node: &str) -> bool {
    let Some(name) = server_name(node) else { return false };
    let parsed = rustls::server::ParsedCertificate::try_from(certificate);
    parsed.is_ok_and(|certificate| rustls::client::verify_server_name(&certificate, &name).is_ok())
}
