//! TLS towards switches: what the controller shows and what it demands, handshakes, and the
//! encrypted channel.
//!
//! Both sides show a certificate, and each verifies the other's (OpenFlow 1.3.5 §6.3.3). Versions
//! 1.2 and 1.3 are accepted. Handshakes have threads of their own (`handshake`), since one takes as
//! long as thousands of packets; a worker gets an established session (`session`).

mod certificate;
#[cfg(fuzzing)]
mod fuzzing;
pub(crate) mod handshake;
mod identities;
mod refusal_text;
pub(crate) mod session;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use bellrock_api::SwitchIdentity;
pub use bellrock_tls::TlsFileError;
use bellrock_tls::files;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{CertificateError, KeyLogFile, ServerConfig};
use tracing::warn;

#[cfg(fuzzing)]
pub use fuzzing::FuzzedSession;
pub use identities::{
    Identities, IdentityMap, MAX_PINS, MAX_PINS_PER_KEY, Pin, Pins, PinsChanged, UnnamedIdentity,
};

/// Number of tickets that a switch gets in TLS 1.3; each resumes one session.
const TICKETS: usize = 1;

/// The variable that names a file for the keys of sessions, so that a capture can be decrypted. It
/// is the name that other programs use too.
const KEY_LOG_VARIABLE: &str = "SSLKEYLOGFILE";

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
    /// Which certificate speaks for which datapath ids.
    pub identities: Identities,
}

/// What the controller shows to switches, and which of theirs it accepts. All clones share it.
#[derive(Clone, Debug)]
pub struct TlsServer(Arc<RwLock<Loaded>>);

/// What was read of the files.
#[derive(Clone, Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    /// What `config` asks about certificates of switches.
    verifier: Arc<dyn ClientCertVerifier>,
    /// Number of times that files were read.
    epoch: u64,
    /// End of the controller's certificate, in seconds since 1970.
    not_after: Option<i64>,
    /// When a list of revoked certificates should be replaced.
    revocations_end: Option<i64>,
}

impl TlsServer {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsFileError`].
    pub fn read(files: &TlsFiles) -> Result<Self, TlsFileError> {
        Ok(TlsServer(Arc::new(RwLock::new(load(files)?))))
    }

    /// Replaces what it shows and accepts, for the connections from now on. Established ones go on;
    /// [`Monitor::close_revoked`](crate::Monitor::close_revoked) closes those of revoked
    /// certificates.
    pub fn replace(&self, other: TlsServer) {
        let loaded = other.loaded().clone();
        let mut own = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let epoch = own.epoch + 1;
        *own = Loaded { epoch, ..loaded };
    }

    /// End of the controller's certificate, in seconds since 1970. `None`: it cannot be read.
    #[must_use]
    pub fn not_after(&self) -> Option<i64> {
        self.loaded().not_after
    }

    /// When the first list of revoked certificates should be replaced, in seconds since 1970.
    /// `None`: there is none, or it does not say.
    #[must_use]
    pub fn revocations_end(&self) -> Option<i64> {
        self.loaded().revocations_end
    }

    /// The configuration of new connections, and its number.
    pub(crate) fn config(&self) -> (Arc<ServerConfig>, u64) {
        let loaded = self.loaded();
        (Arc::clone(&loaded.config), loaded.epoch)
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.loaded().epoch
    }

    /// Whether a certificate that was accepted once is revoked now. Anything else that has changed,
    /// such as its authority or the time, is for new connections.
    ///
    /// # Errors
    /// Why it is not accepted any more.
    pub(crate) fn check_again(&self, identity: &SwitchIdentity) -> Result<(), String> {
        match self.verify(identity) {
            Err(error @ rustls::Error::InvalidCertificate(CertificateError::Revoked)) => {
                Err(refusal_text::explain(&error))
            }
            _ => Ok(()),
        }
    }

    /// Verifies the certificate of a switch, as a whole handshake does. A resumed session skips
    /// that.
    pub(crate) fn verify(&self, identity: &SwitchIdentity) -> Result<(), rustls::Error> {
        let verifier = Arc::clone(&self.loaded().verifier);
        let mut chain = identity.certificates.iter().map(|der| CertificateDer::from(der.to_vec()));
        let own = chain.next().ok_or(rustls::Error::NoCertificatesPresented)?;
        verifier.verify_client_cert(&own, &chain.collect::<Vec<_>>(), UnixTime::now()).map(drop)
    }

    fn loaded(&self) -> RwLockReadGuard<'_, Loaded> {
        // Each change is one assignment.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(of: &TlsFiles) -> Result<Loaded, TlsFileError> {
    let TlsFiles { certificate, key, authorities, revocations } = of;
    let mut chain = files::certificates(certificate)?;
    let not_after = chain.first().and_then(certificate::parse).map(|own| own.not_after);
    let private = files::private_key(key)?;
    let authority_list = files::certificates(authorities)?;
    append_root(&mut chain, &authority_list);
    let roots = files::root_store(authorities, authority_list)?;
    let provider = Arc::new(ring::default_provider());
    let mut verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let mut revocations_end = None;
    if let Some(path) = revocations {
        let lists = files::revocations(path)?;
        revocations_end = files::revocations_end(&lists);
        warn_if_old(path, &lists);
        verifier = verifier.with_crls(lists).only_check_end_entity_revocation();
    }
    let about = revocations.as_ref().unwrap_or(authorities);
    let verifier =
        verifier.build().map_err(|error| TlsFileError::content(about, error.to_string()))?;
    let unusable = |error: rustls::Error| {
        TlsFileError::content(certificate, format!("it cannot be used with its key: {error}"))
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_client_cert_verifier(Arc::clone(&verifier))
        .with_single_cert(chain, private)
        .map_err(unusable)?;
    // What resumes a session is with the switch, encrypted with keys that this server makes: it
    // takes no memory here, and ends when files are read anew.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = ring::Ticketer::new().map_err(unusable)?;
    config.send_tls13_tickets = TICKETS;
    if std::env::var_os(KEY_LOG_VARIABLE).is_some() {
        warn!(
            "the keys of all sessions with switches are written to the file of {KEY_LOG_VARIABLE}"
        );
        config.key_log = Arc::new(KeyLogFile::new());
    }
    Ok(Loaded { config: Arc::new(config), verifier, epoch: 0, not_after, revocations_end })
}

/// Warns of a list that should have been replaced. It stays in force: without it, revoked
/// certificates would be accepted again.
fn warn_if_old(path: &Path, lists: &[CertificateRevocationListDer<'_>]) {
    let now = i64::try_from(UnixTime::now().as_secs()).unwrap_or(i64::MAX);
    if files::revocations_end(lists).is_some_and(|end| end < now) {
        warn!(
            "{}: a list of revoked certificates should have been replaced by now (nextUpdate): what its authority has \
             revoked since is accepted",
            path.display()
        );
    }
}

/// Ends the controller's chain with its root, if that is among the authorities. Switches that start
/// without an authority take it from there (`ovs-vsctl --bootstrap set-ssl`).
fn append_root(chain: &mut Vec<CertificateDer<'static>>, roots: &[CertificateDer<'static>]) {
    let names = |der: &CertificateDer<'_>| {
        let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
        let (subject, issuer) = (certificate.subject(), certificate.issuer());
        Some((subject.as_raw().to_vec(), issuer.as_raw().to_vec()))
    };
    let Some((subject, issuer)) = chain.last().and_then(names) else { return };
    if subject == issuer {
        return;
    }
    let is_issuer = |root: &&CertificateDer<'_>| names(root).is_some_and(|(own, _)| own == issuer);
    chain.extend(roots.iter().find(is_issuer).cloned());
}
