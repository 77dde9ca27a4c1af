//! Events of the controller's end.

use bellrock_openflow::{
    DecodeError, ErrorMessage, Experimenter, FlowRemoved, FromSwitch, MultipartKind,
    PacketInMessage, PortStatus, RequestKind, RoleMessage, RoleStatus,
};

use crate::requests::CompleteReply;

/// The event of a message. Borrows from the received bytes.
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionEvent<'b> {
    /// The session has processed it: hello, echo, its own requests, unexpected replies.
    Nothing,
    /// `out` has no space for the session's answer. Nothing was consumed or changed: empty `out`,
    /// and call again with the same bytes.
    OutFull,
    /// The features have come, and with them the datapath id. `Ready` follows, when the optional
    /// answers are there too.
    Identified {
        /// The datapath id.
        datapath_id: u64,
    },
    /// The handshake is over: [`crate::ControllerSession::take_switch`] returns the switch.
    Ready,
    /// A packet for the controller. If it comes before `Ready`, the switch has traffic: the
    /// handshake then waits only [`crate::PACKET_WAIT`] longer for optional answers.
    PacketIn {
        /// Its xid, usually 0.
        xid: u32,
        /// The packet.
        packet: PacketInMessage<'b>,
    },
    /// A port was added, removed or changed. Before `Ready`, the change is also applied to the
    /// switch's ports.
    PortStatus(PortStatus),
    /// A flow was removed. Only after `Ready`.
    FlowRemoved(FlowRemoved<'b>),
    /// The switch reports an error in a message that it got.
    Error {
        /// The xid of the faulty message: [`crate::xid::owner`] returns its owner.
        xid: u32,
        /// The error.
        error: ErrorMessage<'b>,
        /// The request that it ends; `None` for a message that expects no reply, such as a
        /// flow_mod.
        request: Option<RequestKind>,
    },
    /// An experimenter's message, requested or not.
    Experimenter {
        /// Its xid.
        xid: u32,
        /// The message.
        message: Experimenter<'b>,
        /// Whether it answers a registered request.
        requested: bool,
    },
    /// The answer to a request for a role, in either version
    /// ([`crate::ControllerSession::request_role`]).
    Role {
        /// The request's xid.
        xid: u32,
        /// The controller's role. 1.0 has no generation ids: [`RoleMessage::NO_GENERATION`].
        role: RoleMessage,
    },
    /// The switch has changed the controller's role, without a request. Only after `Ready`.
    RoleStatus(RoleStatus),
    /// The answer to a request: barrier, config, queue config, async, features or echo.
    Reply {
        /// The request's xid.
        xid: u32,
        /// The answer.
        body: FromSwitch<'b>,
    },
    /// The whole answer to a multipart request, with all its parts.
    Multipart {
        /// The request's xid.
        xid: u32,
        /// The answer.
        reply: CompleteReply<'b>,
    },
    /// The answer to a multipart request exceeded
    /// [`max_multipart_bytes`](crate::SessionSettings::max_multipart_bytes) and was dropped. The
    /// request is over.
    MultipartOverflow {
        /// The request's xid.
        xid: u32,
        /// Kind of the request.
        kind: MultipartKind,
    },
    /// The reply to the barrier behind a request ([`crate::ControllerSession::follow`]) came
    /// without an answer before it: the switch does not support the request, which is over.
    Silent {
        /// The request's xid.
        xid: u32,
        /// Kind of the request.
        kind: RequestKind,
    },
    /// A message that cannot be decoded. It was answered, unless it is a reply or an error, or the
    /// rate limit was reached.
    Malformed {
        /// Its xid.
        xid: u32,
        /// The error in it.
        error: DecodeError,
        /// The request that it would have answered, which is over.
        request: Option<RequestKind>,
    },
    /// The answer to [`crate::ControllerSession::probe`].
    ProbeAnswered,
}

/// Numbers of messages that a session left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounters {
    /// Messages dropped before the end of the handshake: flow_removed and experimenter.
    pub early_others: u32,
    /// Replies to no request, or of another kind than requested, and hellos after the first.
    pub unexpected: u32,
    /// Messages that could not be decoded.
    pub malformed: u32,
    /// Errors not sent, because of the rate limit, or because `out` was full.
    pub errors_suppressed: u32,
    /// Multipart replies that grew too large.
    pub multipart_overflows: u32,
    /// Ports beyond [`crate::MAX_PORTS`] that were left out.
    pub ports_left_out: u32,
}
