//! Settings of an engine, and the reasons why it may not start.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use bellrock_session::Versions;
use bellrock_worker::{LimitError, WorkerSettings};

use crate::idle::IdleMode;
#[cfg(feature = "tls")]
use crate::tls::TlsSettings;

/// Default address for switches: this machine only, with the port that IANA assigned to OpenFlow.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 6653));

/// Maximum number of workers.
pub const MAX_WORKERS: usize = 1024;

/// The CPU cores of the workers' threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pinning {
    /// One usable core for each worker, in order. Nothing is pinned if there are more workers than
    /// cores.
    #[default]
    Auto,
    /// The scheduler decides.
    None,
    /// These cores, in the order of the workers. There must be one for each worker.
    Cores(Vec<usize>),
}

/// Settings of an engine.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Addresses to listen on. Port 0 selects a free port.
    pub listen: Vec<SocketAddr>,
    /// OpenFlow versions that are spoken at some of the addresses, with or without TLS, instead of
    /// those of the sessions. A switch that ends the connection when it sees a newer version than
    /// its own needs an address where only its version is spoken.
    pub listen_versions: BTreeMap<SocketAddr, Versions>,
    /// Number of workers; 0 for one on each core that this process may use.
    pub workers: usize,
    /// Number of cores without a worker if `workers` is 0: threads of apps have them. There is one
    /// worker at least.
    pub spared_cores: usize,
    /// Core of each worker.
    pub pin: Pinning,
    /// How workers wait when they have nothing to do.
    pub idle: IdleMode,
    /// Limits, write mode and sessions.
    pub worker: WorkerSettings,
    /// Addresses to listen on with TLS.
    #[cfg(feature = "tls")]
    pub tls: Option<TlsSettings>,
}

impl Default for EngineSettings {
    fn default() -> Self {
        EngineSettings {
            listen: vec![DEFAULT_LISTEN],
            listen_versions: BTreeMap::new(),
            workers: 0,
            spared_cores: 0,
            pin: Pinning::default(),
            idle: IdleMode::default(),
            worker: WorkerSettings::default(),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

/// Why the engine did not start. Nothing keeps running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No address to listen on.
    #[error("no address to listen on; give at least one, such as {DEFAULT_LISTEN}")]
    NoAddress,
    /// Too many workers.
    #[error("{0} workers are too many; at most {MAX_WORKERS}")]
    TooManyWorkers(usize),
    /// The number of cores differs from the number of workers.
    #[error("{cores} cores to pin to for {workers} workers; name one core for each worker")]
    PinCount {
        /// Number of cores.
        cores: usize,
        /// Number of workers.
        workers: usize,
    },
    /// The core does not exist, or this process may not use it.
    #[error("core {core} cannot be pinned to; this process may use {usable:?}")]
    NoSuchCore {
        /// The core.
        core: usize,
        /// The usable cores.
        usable: Vec<usize>,
    },
    /// Two apps have the same name: their flows would have the same cookies.
    #[error("two apps are called {0}; each app of a chain needs a name of its own")]
    DuplicateApp(&'static str),
    /// More apps than there are bands of priorities ([`bellrock_worker::MAX_APPS`]).
    #[error("{0} apps are too many; at most 15 can have priorities of their own")]
    TooManyApps(usize),
    /// A limit is out of its range.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// Listening on an address failed.
    #[error("cannot listen on {address}: {error}{}", bind_hint(error))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// Threads, pollers or wake-ups could not be created.
    #[error("cannot start {what}: {error}")]
    System {
        /// The part that failed.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

fn bind_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another controller may be running there",
        io::ErrorKind::AddrNotAvailable => "; no interface of this machine has that address",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges",
        _ => "",
    }
}
