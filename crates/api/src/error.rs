//! What can go wrong when an app speaks to a switch.

use bellrock_openflow::EncodeError;

use crate::Dpid;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a command to a switch was not accepted. What was not accepted has no effect at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The message cannot be said in the switch's version, or the send buffer is full.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A flow's priority is not one that an app can give: which band of the switch's priorities an app
    /// has, its place in the chain decides ([`crate::PriorityBand`]).
    #[error(
        "an app's flows have priorities from 0 to 4095, not {priority}; which app's flows come first \
         is decided by the order of the apps"
    )]
    Priority {
        /// What was asked for.
        priority: u16,
    },
    /// The switch sent only the beginning of the packet and kept no copy: there is nothing to
    /// send on. Ask for whole packets (`miss_send_len: 65535`, the default).
    #[error("the packet came cut to {have} of {total} bytes, and unbuffered: it cannot be sent on")]
    Truncated {
        /// Bytes that came.
        have: usize,
        /// Bytes of the whole packet.
        total: usize,
    },
    /// Too many requests to this switch wait for their answers.
    #[error(
        "{waiting} requests to this switch are unanswered; wait for answers before asking more"
    )]
    TooManyRequests {
        /// How many wait.
        waiting: usize,
    },
    /// The controller itself asked for what only an app can do: flows belong to an app.
    #[error("flows belong to an app; the controller's own handle to the network can install none")]
    NotAnApp,
    /// No such switch is connected.
    #[error("no switch with datapath id {0} is connected")]
    UnknownSwitch(Dpid),
    /// The switch, or the worker that owns it, has too much to send already.
    #[error("switch {0} does not take messages as fast as they come; try again later")]
    Full(Dpid),
    /// A transaction is to wait for another change, and a handler cannot wait.
    #[error("the transaction waits for another change, and a handler cannot wait")]
    WouldWait,
    /// A transaction was overtaken by others again and again.
    #[error("the transaction was overtaken by others {} times", crate::MAX_ATTEMPTS)]
    Contended,
}
