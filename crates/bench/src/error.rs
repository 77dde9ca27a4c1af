//! Why a load cannot be put on a controller, and what the operator can do about it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bellrock_session::Close;

/// What is wrong with a [`crate::Load`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A number out of its range.
    #[error("{what} cannot be {value}; give {least} to {most}")]
    Range {
        /// Which.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// The lowest.
        least: u64,
        /// The highest.
        most: u64,
    },
    /// A rate that cannot be kept or makes no sense.
    #[error("a rate of {0} packet_ins per second and switch cannot be; give 0.001 to 10000000")]
    Rate(f64),
    /// No time to measure in, or to wait.
    #[error("the {0} is zero; give a time")]
    NoTime(&'static str),
}

/// Why a test could not be done, or ended before its time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The load makes no sense.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The connection is refused.
    #[error(
        "nobody listens on {0}; start the controller there, or give its address with --connect"
    )]
    NobodyListens(SocketAddr),
    /// No connection, for another reason.
    #[error("cannot connect to {address}: {error}")]
    Connect {
        /// Where to.
        address: SocketAddr,
        /// The system's word.
        error: io::Error,
    },
    /// The responder's address is not to be had.
    #[error("cannot listen on {address}: {error}; a controller may be running there")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The system's word.
        error: io::Error,
    },
    /// What listens speaks another version, or no OpenFlow at all.
    #[error("switch {dpid}: {close}; --of 1.0 or --of 1.3 chooses the version of the switches")]
    Protocol {
        /// The switch that found out.
        dpid: u32,
        /// What it found out.
        close: Close,
    },
    /// More connections than the process may have files open.
    #[error(
        "{switches} switches need {needed} open files, and this process may have {limit}; raise \
         the hard limit (as root: ulimit -Hn {needed}; in a service: LimitNOFILE={needed})"
    )]
    OpenFiles {
        /// Switches asked for.
        switches: u32,
        /// Files that they need.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// The controller does not do what every controller does before the first packet_in.
    #[error(
        "the controller did not {what} within {waited:?} ({ready} of {switches} switches); {hint}"
    )]
    NeverAnswers {
        /// What is missing.
        what: &'static str,
        /// How long was waited.
        waited: Duration,
        /// Switches that had it.
        ready: u32,
        /// Switches.
        switches: u32,
        /// What may be done.
        hint: &'static str,
    },
    /// More hosts than the controller learns in the time that it has.
    #[error(
        "the controller did not learn {destinations} destinations within {waited:?} (those of {ready} of \
         {switches} switches); give it fewer --macs, or more time with --learn-timeout"
    )]
    LearnsTooSlowly {
        /// Destinations of all switches.
        destinations: u64,
        /// How long was waited.
        waited: Duration,
        /// Switches whose destinations it knew.
        ready: u32,
        /// Switches.
        switches: u32,
    },
    /// A connection was closed by the controller.
    #[error("the controller closed the connection of switch {dpid} {when}{reason}")]
    Closed {
        /// Whose.
        dpid: u32,
        /// In which part of the test.
        when: &'static str,
        /// What the controller said, or the system.
        reason: String,
    },
    /// A core that is not there, or that this process may not use.
    #[error("core {core} cannot be pinned to; this process may use {usable:?}")]
    NoSuchCore {
        /// The core named.
        core: usize,
        /// Those that there are.
        usable: Vec<usize>,
    },
    /// The process to measure is not there.
    #[error("process {pid} cannot be measured: {error}; give the controller's own pid")]
    Process {
        /// Which.
        pid: u32,
        /// The system's word.
        error: io::Error,
    },
    /// The controller that was to be started did not come up.
    #[error("the controller `{command_line}` is not there: {why}")]
    StartController {
        /// What was to be run.
        command_line: String,
        /// What happened.
        why: String,
    },
    /// Where a controller is to be started, one runs.
    #[error("something listens on {0} already; end it, or have the controller listen elsewhere")]
    AlreadyListens(SocketAddr),
    /// One half of a comparison.
    #[error("a comparison needs both halves, and one ended before its time: {0}")]
    EndedEarly(String),
    /// A message could not be written.
    #[error("a message could not be written: {0}; this is a fault of the generator")]
    Encode(#[from] bellrock_openflow::EncodeError),
    /// The system refused something.
    #[error("cannot {what}: {error}")]
    System {
        /// What.
        what: &'static str,
        /// The system's word.
        error: io::Error,
    },
}

impl BenchError {
    /// For `map_err`: the system refused `what`.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| BenchError::System { what, error: error.into() }
    }
}
