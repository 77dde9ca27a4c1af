//! Why connections of switches end, and why switches go down.

use std::fmt;

/// Why a connection ended, or a switch is down: a kind for programs, and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionEnd {
    /// The kind of reason.
    pub reason: EndReason,
    /// What happened, and what the operator can do about it.
    pub text: Box<str>,
}

impl fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The kinds of ends of a connection. After the last two, the connection stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EndReason {
    /// The switch closed it, or it failed.
    ClosedByPeer,
    /// Nothing came from the switch for too long, not even an echo reply.
    Dead,
    /// The switch read none of the waiting bytes for too long.
    Stalled,
    /// The handshake was not finished in time.
    HandshakeTimeout,
    /// The two ends did not agree: no common version, or one of them refused.
    Refused,
    /// The bytes are not OpenFlow, or are malformed.
    Malformed,
    /// Another live connection has this datapath id.
    Duplicate,
    /// A new connection with the same datapath id replaced it.
    Replaced,
    /// It may not speak for this datapath id: its certificate, or its lack of one.
    Identity,
    /// An auxiliary connection, which Bellrock does not use.
    Auxiliary,
    /// A limit was exceeded.
    Limit,
    /// The controller is stopping.
    Stopped,
    /// The switch made this controller a slave without an order: another one is master. The
    /// connection stays, and stands by.
    Demoted,
    /// This controller was ordered to stand by. The connection stays.
    StoodBy,
    /// Another node of the cluster is master. The connection stays, and stands by.
    TakenOver,
}

impl EndReason {
    /// Name of the reason in `bellrock events --json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EndReason::ClosedByPeer => "closed_by_peer",
            EndReason::Dead => "dead",
            EndReason::Stalled => "stalled",
            EndReason::HandshakeTimeout => "handshake_timeout",
            EndReason::Refused => "refused",
            EndReason::Malformed => "malformed",
            EndReason::Duplicate => "duplicate",
            EndReason::Replaced => "replaced",
            EndReason::Identity => "identity",
            EndReason::Auxiliary => "auxiliary",
            EndReason::Limit => "limit",
            EndReason::Stopped => "stopped",
            EndReason::Demoted => "demoted",
            EndReason::StoodBy => "stood_by",
            EndReason::TakenOver => "taken_over",
        }
    }

    /// Whether an operator should look at it.
    #[must_use]
    pub fn is_alarming(self) -> bool {
        self != EndReason::ClosedByPeer && self.is_loss()
    }

    /// Whether a switch that was up is lost. A standby in a cluster, and the end of the controller,
    /// are routine.
    #[must_use]
    pub fn is_loss(self) -> bool {
        !matches!(self, EndReason::Stopped | EndReason::StoodBy | EndReason::TakenOver)
    }
}
