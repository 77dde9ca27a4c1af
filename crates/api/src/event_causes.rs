//! Why things happen in the network: the causes and signs that events name.

use std::fmt;
use std::time::Duration;

use crate::{Port, SwitchPort};

/// A sign of a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StormSign {
    /// Flooded frames come in again by other ports of the switch.
    Returns {
        /// Port where the frame came in before.
        from: Port,
    },
    /// The same broadcast or multicast frame comes in by one port repeatedly.
    Copies,
    /// Hosts move back and forth between ports of the switch.
    Moves {
        /// Port of the host before the move.
        from: Port,
    },
}

/// Why a link is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkDown {
    /// One of its ports is down or gone.
    Port,
    /// One of its switches is gone.
    Switch,
    /// Nothing was heard through it for three rounds.
    Silent,
    /// Announcements of its sending port arrive elsewhere.
    Moved,
    /// An operator says that it is a relay.
    Refused,
}

/// Why a host is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostGone {
    /// Its port is down, or gone with its switch.
    Port,
    /// A link to a switch was found at its port.
    Link,
    /// It was not seen for too long, and does not answer probes.
    Aged,
    /// Removed to make space for other hosts: the maximum number is reached.
    Evicted,
}

/// The evidence for a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Suspicion {
    /// A host was seen at one of the ports, when a link would have been found there long before.
    HostTraffic {
        /// The port.
        at: SwitchPort,
    },
    /// A host was at one of the ports until that port went down and up again, while the other
    /// switch was connected.
    HostPort {
        /// The port.
        at: SwitchPort,
    },
    /// Announcements take longer than before, or than over other links.
    Latency {
        /// Measured latency.
        measured: Duration,
        /// Expected latency.
        expected: Duration,
    },
}

impl LinkDown {
    /// Whether an operator should look at it. A switch that is gone is an alarm itself, and an
    /// operator moves cables and judges relays.
    #[must_use]
    pub fn is_alarming(self) -> bool {
        matches!(self, LinkDown::Port | LinkDown::Silent)
    }
}

impl fmt::Display for LinkDown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LinkDown::Port => "a port is down",
            LinkDown::Switch => "a switch is gone",
            LinkDown::Silent => "nothing was heard for three rounds",
            LinkDown::Moved => "its sending port is heard elsewhere",
            LinkDown::Refused => "an operator says that it is a relay",
        })
    }
}

impl fmt::Display for HostGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HostGone::Port => "the port is down",
            HostGone::Link => "a switch is at its port",
            HostGone::Aged => "it was not seen for long, and does not answer",
            HostGone::Evicted => "the maximum number of hosts is reached",
        })
    }
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Suspicion::HostTraffic { at } => write!(f, "a host was seen at {at}"),
            Suspicion::HostPort { at } => {
                write!(f, "a host was at {at} until the port went down and up again")
            }
            Suspicion::Latency { measured: is, expected: Duration::ZERO } => {
                write!(f, "its latency is {is:?}, usually too low to measure")
            }
            Suspicion::Latency { measured: is, expected: usual } => {
                write!(f, "its latency is {is:?}, usually {usual:?}")
            }
        }
    }
}
