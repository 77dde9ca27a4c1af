//! Why a controller of a configuration does not run.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use bellrock::RunError;
use bellrock::settings::{FileStoreError, StaticFileError};
use bellrock_apps::provisioning::Conflict;
use bellrock_config::files::KeyFileError;
use bellrock_engine::StartError;
use bellrock_northbound::TlsError;

use super::followed_file::FollowedFileError;
use super::switch_tls::SwitchTlsError;

/// Why the controller did not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotRun {
    /// The controller did not start, or has failed.
    #[error(transparent)]
    Run(RunError),
    /// A port is taken.
    #[error("{error}; choose another port, such as --listen {other}")]
    PortTaken {
        /// The error.
        error: Box<RunError>,
        /// The next port.
        other: SocketAddr,
    },
    /// Circuits need the same resource.
    #[error(transparent)]
    Circuits(#[from] Conflict),
    /// A file of an app cannot be followed.
    #[error(transparent)]
    FollowedFile(#[from] FollowedFileError),
    /// The file of static entries cannot be used.
    #[error(transparent)]
    StaticFile(#[from] StaticFileError),
    /// A file of what an app stores cannot be used.
    #[error(transparent)]
    Orders(FileStoreError),
    /// The key of discovery cannot be read.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// The certificate of the HTTP server cannot be used.
    #[error(transparent)]
    Certificate(#[from] TlsError),
    /// TLS towards switches cannot be set up.
    #[error(transparent)]
    SwitchTls(#[from] SwitchTlsError),
    /// A token of `http.token_hashes` is wrong.
    #[error("http.token_hashes: {0}")]
    Tokens(String),
    /// A file of the cluster cannot be used.
    #[error("{0}")]
    Cluster(String),
    /// The chain has apps in Python, and this program does not run Python.
    #[error("{0}: apps in Python need Python; `bellrock run` starts it")]
    Python(String),
    /// The configuration file, or what nodes share, cannot be watched.
    #[error("the configuration cannot be watched: {0}")]
    Watch(io::Error),
}

impl From<RunError> for NotRun {
    fn from(error: RunError) -> Self {
        match &error {
            RunError::Start(StartError::Listen { address, error: why })
                if why.kind() == ErrorKind::AddrInUse =>
            {
                let port = address.port().checked_add(1).unwrap_or(FREE_PORT);
                NotRun::PortTaken {
                    other: SocketAddr::new(address.ip(), port),
                    error: Box::new(error),
                }
            }
            _ => NotRun::Run(error),
        }
    }
}

/// Port number that lets the system choose a port.
const FREE_PORT: u16 = 0;
