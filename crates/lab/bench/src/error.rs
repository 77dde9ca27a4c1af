//! Errors of a load test, and what the operator can do about them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bellrock_openflow::Versions;
use bellrock_session::CloseReason;

/// Error in a [`crate::Load`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A number out of its range.
    #[error("{what} cannot be {value}; give {least} to {most}")]
    Range {
        /// Name of the value.
        what: &'static str,
        /// The value asked for.
        value: u64,
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// A rate that cannot be kept, or that makes no sense.
    #[error(
        "a rate of {0} packet_ins per second and switch is out of range; give 0.001 to 10000000"
    )]
    Rate(f64),
    /// A time to measure or to wait is zero.
    #[error("the {0} is zero; give a time")]
    NoTime(&'static str),
}

/// Why a test could not run, or ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The load is invalid.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The connection was refused.
    #[error(
        "nothing listens on {0}; start the controller there, or give its address with --connect"
    )]
    NobodyListens(SocketAddr),
    /// The connection failed for another reason.
    #[error("cannot connect to {address}: {error}")]
    Connect {
        /// Address of the controller.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The responder cannot listen on its address.
    #[error("cannot listen on {address}: {error}; a controller may be running there")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The listener speaks another version, or no OpenFlow.
    #[error("switch {dpid}: {close}; --of sets the version of the switches ({all})", all = Versions::ALL)]
    Protocol {
        /// Datapath id of the switch that noticed.
        dpid: u32,
        /// Why its session closed.
        close: CloseReason,
    },
    /// The test needs more open files than the process may have.
    #[error(
        "{switches} switches need {needed} open files, and this process may have {limit}; raise \
         the hard limit (as root: ulimit -Hn {needed}; in a service: LimitNOFILE={needed})"
    )]
    OpenFiles {
        /// Number of switches asked for.
        switches: u32,
        /// Number of files that they need.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// The controller does not do what every controller does before the first packet_in.
    #[error(
        "the controller did not {what} within {waited:?} ({ready} of {switches} switches); {hint}"
    )]
    NeverAnswers {
        /// The missing step.
        what: &'static str,
        /// Time that the generator waited.
        waited: Duration,
        /// Number of switches that completed it.
        ready: u32,
        /// Number of switches of the test.
        switches: u32,
        /// Advice for the operator.
        hint: &'static str,
    },
    /// The controller does not learn all hosts in the time allowed.
    #[error(
        "the controller did not learn {destinations} destinations within {waited:?} ({ready} of \
         {switches} switches are done); use fewer --macs, or allow more time with --learn-timeout"
    )]
    LearnsTooSlowly {
        /// Number of destinations of all switches.
        destinations: u64,
        /// Time that the generator waited.
        waited: Duration,
        /// Number of switches whose destinations it learnt.
        ready: u32,
        /// Number of switches of the test.
        switches: u32,
    },
    /// The controller closed a connection.
    #[error("the controller closed the connection of switch {dpid} {when}{reason}")]
    Closed {
        /// Datapath id of the switch.
        dpid: u32,
        /// Part of the test.
        when: &'static str,
        /// Reason given by the controller or the system.
        reason: String,
    },
    /// A core that does not exist, or that this process may not use.
    #[error("core {core} cannot be pinned to; this process may use {usable:?}")]
    NoSuchCore {
        /// The core asked for.
        core: usize,
        /// The cores that this process may use.
        usable: Vec<usize>,
    },
    /// The process to measure does not exist.
    #[error("process {pid} cannot be measured: {error}; give the controller's own pid")]
    Process {
        /// Its process id.
        pid: u32,
        /// The system's error.
        error: io::Error,
    },
    /// The controller to start did not come up.
    #[error("the controller `{command_line}` did not start: {why}")]
    StartController {
        /// Its command line.
        command_line: String,
        /// What happened.
        why: String,
    },
    /// Something listens already on the address of a controller to start.
    #[error("something already listens on {0}; stop it, or give the controller another address")]
    AlreadyListens(SocketAddr),
    /// One half of a comparison failed.
    #[error("one half of the comparison ended early: {0}")]
    EndedEarly(String),
    /// A message could not be encoded.
    #[error("a message could not be written: {0}; this is a fault of the generator")]
    Encode(#[from] bellrock_openflow::EncodeError),
    /// A system call failed.
    #[error("cannot {what}: {error}")]
    System {
        /// What it was for.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl BenchError {
    /// Maps a system error to [`BenchError::System`], for `map_err`. `what` is what failed.
    pub fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| BenchError::System { what, error: error.into() }
    }
}
