//! What happens on the controller's end.

use bellrock_openflow::{
    DecodeError, ErrorMessage, Experimenter, FlowRemoved, FromSwitch, MultipartKind, PacketIn,
    PortStatus,
};

use crate::requests::{Gathered, RequestKind};

/// What a message meant. Borrows from the received bytes.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'b> {
    /// The session dealt with it: hello, echo, its own requests, a reply that nobody asked for.
    Nothing,
    /// `out` has no room for the session's answer. Nothing was consumed and nothing has changed:
    /// empty `out`, and call again with the same bytes.
    OutFull,
    /// The handshake is over; [`crate::Controller::take_switch`] has the switch.
    Ready,
    /// A packet for the controller. One that comes before `Ready` is the first sign of a switch that has
    /// work: the handshake then waits for optional answers only [`crate::PACKET_WAIT`] longer.
    PacketIn {
        /// Its xid, 0 as a rule.
        xid: u32,
        /// The packet.
        packet: PacketIn<'b>,
    },
    /// A port was added, removed or changed. Comes only after `Ready`; before, it is applied to
    /// the switch's ports.
    PortStatus(PortStatus),
    /// A flow is gone. Comes only after `Ready`.
    FlowRemoved(FlowRemoved<'b>),
    /// The switch says that something was wrong with what it got.
    Error {
        /// The xid of the message at fault: [`crate::xid::owner`] says whose it is.
        xid: u32,
        /// What was wrong.
        error: ErrorMessage<'b>,
        /// The request that it answers, which is over then; `None` for a message that expects no
        /// reply, such as a flow_mod.
        request: Option<RequestKind>,
    },
    /// An experimenter's message, asked for or not.
    Experimenter {
        /// Its xid.
        xid: u32,
        /// What it says.
        message: Experimenter<'b>,
        /// It answers a request that was registered.
        requested: bool,
    },
    /// The answer to a request: barrier, role, config, queue config, async, features or echo.
    Reply {
        /// The request's xid.
        xid: u32,
        /// The answer.
        body: FromSwitch<'b>,
    },
    /// The whole answer to a multipart request, put together if it came in parts.
    Multipart {
        /// The request's xid.
        xid: u32,
        /// The answer.
        reply: Gathered<'b>,
    },
    /// The answer to a multipart request grew beyond
    /// [`max_multipart_bytes`](crate::Settings::max_multipart_bytes) and was dropped. The request
    /// is over.
    MultipartOverflow {
        /// The request's xid.
        xid: u32,
        /// What was asked for.
        kind: MultipartKind,
    },
    /// The reply to the barrier behind a question ([`crate::Controller::follow`]) has come, and no answer
    /// before it: the switch does not answer this question. The request is over.
    Silent {
        /// The request's xid.
        xid: u32,
        /// What was asked for.
        kind: RequestKind,
    },
    /// A message that cannot be read. It was answered, unless it is a reply or an error, or too many were
    /// answered already.
    Malformed {
        /// Its xid.
        xid: u32,
        /// What is wrong with it.
        error: DecodeError,
        /// The request that it would have answered, which is over then.
        request: Option<RequestKind>,
    },
    /// The answer to [`crate::Controller::probe`].
    ProbeAnswered,
}

/// What a session left out, in numbers of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Other messages that came before the handshake was over and were dropped: flow_removed,
    /// experimenter.
    pub early_others: u32,
    /// Replies to no request, or of another kind than the request asked for; hellos after the first.
    pub unexpected: u32,
    /// Messages that could not be read.
    pub malformed: u32,
    /// Errors that were not sent, because too many were, or because `out` was full.
    pub errors_suppressed: u32,
    /// Multipart replies that grew too large.
    pub multipart_overflows: u32,
    /// Ports beyond [`crate::MAX_PORTS`] that were left out.
    pub ports_left_out: u32,
}
