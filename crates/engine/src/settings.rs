//! What an engine can be told, and why it may refuse to start.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use bellrock_worker::{MIN_REQUESTS, Settings as WorkerSettings, TASKS_UNANSWERED};

use crate::idle::Idle;

/// Where switches connect unless something else is asked for: this machine only, on the port that
/// IANA gave to OpenFlow.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 6653));

/// The most workers.
pub const MAX_WORKERS: usize = 1024;

/// The most that `limits.bytes_per_turn` can be: each worker has a buffer of so many bytes, and
/// while it deals with them, all its other switches wait.
pub const MAX_BYTES_PER_TURN: usize = 16 * 1024 * 1024;

/// Which core a worker's thread stays on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pinning {
    /// The first worker on the first core that this process may use, and so on; nothing is pinned
    /// if there are more workers than cores.
    #[default]
    Auto,
    /// The scheduler decides.
    None,
    /// The first worker on the first of these, and so on. There have to be as many as workers.
    Cores(Vec<usize>),
}

/// What an engine can be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Addresses to listen on. Port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Workers; 0 for one on each core that this process may use.
    pub workers: usize,
    /// Which core each stays on.
    pub pin: Pinning,
    /// How each waits when it has nothing to do.
    pub idle: Idle,
    /// Limits, write mode and sessions.
    pub worker: WorkerSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            listen: vec![DEFAULT_LISTEN],
            workers: 0,
            pin: Pinning::default(),
            idle: Idle::default(),
            worker: WorkerSettings::default(),
        }
    }
}

/// Why the engine did not start. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No address to listen on.
    #[error("no address to listen on; give at least one, such as {DEFAULT_LISTEN}")]
    NoAddress,
    /// Too many workers.
    #[error("{0} workers are too many; at most {MAX_WORKERS}")]
    TooManyWorkers(usize),
    /// Cores to pin to, and workers, differ in number.
    #[error("{cores} cores to pin to for {workers} workers; name one core for each worker")]
    PinCount {
        /// Cores named.
        cores: usize,
        /// Workers.
        workers: usize,
    },
    /// A core that is not there, or that this process may not use.
    #[error("core {core} cannot be pinned to; this process may use {usable:?}")]
    NoSuchCore {
        /// The core named.
        core: usize,
        /// Those that there are.
        usable: Vec<usize>,
    },
    /// Two apps of the same name: their flows could not be told apart.
    #[error("two apps are called {0}; each app of a chain needs a name of its own")]
    DuplicateApp(&'static str),
    /// More apps than there are bands of priorities ([`bellrock_worker::MAX_APPS`]).
    #[error("{0} apps are too many; at most 15 can have priorities of their own")]
    TooManyApps(usize),
    /// A limit of zero.
    #[error("the limit {0} is zero; nothing would ever pass")]
    ZeroLimit(&'static str),
    /// Turns that are too long.
    #[error("the limit bytes_per_turn is {0}; at most {MAX_BYTES_PER_TURN}")]
    LongTurn(usize),
    /// So few requests to a switch that those of tasks leave none for the apps.
    #[error(
        "max_requests is {0}, and tasks of the controller have up to {TASKS_UNANSWERED} unanswered \
         themselves; give at least {MIN_REQUESTS}"
    )]
    FewRequests(u16),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {error}{}", bind_hint(error))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's word.
        error: io::Error,
    },
    /// Threads, pollers or wake-ups cannot be had.
    #[error("cannot start {what}: {error}")]
    System {
        /// What was to be started.
        what: &'static str,
        /// The system's word.
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
