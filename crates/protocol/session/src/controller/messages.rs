//! Processing of messages after a version is agreed on.

use std::time::Duration;

use bellrock_openflow::{
    DecodeError, ErrorCode, ErrorMessage, FromSwitch, HEADER_LEN, Header, MessageFrame,
    MessageKind, MultipartReply, Out, Reason, RequestKind, RoleExtension, RoleMessage, ToSwitch,
};

use super::ControllerSession;
use super::handshake::HandshakeStage;
use crate::close::{CloseReason, Stop};
use crate::description::MissingReply;
use crate::event::SessionEvent;
use crate::hello::{self, ERROR, write_error};
use crate::requests::{CompleteReply, PartOutcome};
use crate::xid;

impl ControllerSession {
    /// Processes one message. On [`Stop::Full`], nothing of the session has changed but the count
    /// of xids.
    pub(super) fn message<'b>(
        &mut self,
        message: MessageFrame<'b>,
        now: Duration,
        out: &mut Out,
    ) -> Result<SessionEvent<'b>, Stop> {
        if matches!(self.stage, HandshakeStage::Hello) {
            return self.hello(message, out);
        }
        if !self.is_ready()
            && let Some(refused) = hello::refusal(message)
        {
            return Err(refused.into());
        }
        let event = match self.decode(message) {
            Err(error) => self.malformed(message, error, None, now, out),
            Ok(FromSwitch::EchoRequest(payload)) => {
                ToSwitch::EchoReply(payload).encode(self.version, message.header.xid, out)?;
                Ok(SessionEvent::Nothing)
            }
            Ok(FromSwitch::MultipartReply(_)) => self.multipart(message, now, out),
            Ok(FromSwitch::Error(error)) => self.error(message.header.xid, error),
            Ok(FromSwitch::BarrierReply) if self.requests.is_guard(message.header.xid) => {
                Ok(self.overtaken(message.header.xid))
            }
            Ok(body) if self.is_ready() => Ok(self.ready(message.header.xid, body)),
            Ok(body) => self.early(message.header.xid, body, now, out),
        }?;
        if matches!(event, SessionEvent::Ready) {
            // From here on, silence counts.
            self.since = now;
        }
        Ok(event)
    }

    fn decode<'b>(&self, message: MessageFrame<'b>) -> Result<FromSwitch<'b>, DecodeError> {
        if message.header.version != self.version.wire() {
            return Err(DecodeError {
                what: "header.version",
                offset: 0,
                reason: Reason::Version(message.header.version),
                answer: ErrorCode::RequestBadVersion,
            });
        }
        FromSwitch::decode(message.bytes).map(|decoded| decoded.body)
    }

    /// Handles a message after the handshake that needs no answer.
    fn ready<'b>(&mut self, xid: u32, body: FromSwitch<'b>) -> SessionEvent<'b> {
        match body {
            FromSwitch::PacketIn(packet) => SessionEvent::PacketIn { xid, packet },
            FromSwitch::PortStatus(status) => SessionEvent::PortStatus(status),
            FromSwitch::FlowRemoved(flow) => SessionEvent::FlowRemoved(flow),
            FromSwitch::Experimenter(message) => {
                let requested = self.requests.answer(xid, RequestKind::Experimenter);
                match RoleExtension::read(&message) {
                    Some(RoleExtension::Reply(role)) if requested => SessionEvent::Role {
                        xid,
                        role: RoleMessage { role, generation_id: RoleMessage::NO_GENERATION },
                    },
                    Some(RoleExtension::Status(status)) if !requested => {
                        SessionEvent::RoleStatus(status)
                    }
                    _ => SessionEvent::Experimenter { xid, message, requested },
                }
            }
            FromSwitch::RoleReply(role) if self.requests.answer(xid, RequestKind::Role) => {
                SessionEvent::Role { xid, role }
            }
            FromSwitch::EchoReply(_) if self.probe == Some(xid) => {
                self.probe = None;
                SessionEvent::ProbeAnswered
            }
            FromSwitch::EchoReply(_) if xid::owner(xid) == xid::SESSION => SessionEvent::Nothing,
            body => {
                let kind = RequestKind::answered_by(&body);
                if kind.is_some_and(|kind| self.requests.answer(xid, kind)) {
                    return SessionEvent::Reply { xid, body };
                }
                self.counters.unexpected += 1;
                SessionEvent::Nothing
            }
        }
    }

    /// Handles a multipart reply, or a part of one, already checked by itself.
    fn multipart<'b>(
        &mut self,
        message: MessageFrame<'b>,
        now: Duration,
        out: &mut Out,
    ) -> Result<SessionEvent<'b>, Stop> {
        let xid = message.header.xid;
        let (kind, more, body) = match MultipartReply::split(self.version, message.bytes) {
            Ok(split) => split,
            Err(error) => return self.malformed(message, error, None, now, out),
        };
        let part = self.requests.part(xid, kind, more, body, self.settings.max_multipart_bytes);
        match part {
            PartOutcome::Kept => Ok(SessionEvent::Nothing),
            PartOutcome::Unknown => {
                self.counters.unexpected += 1;
                Ok(SessionEvent::Nothing)
            }
            PartOutcome::Overflow => {
                self.counters.multipart_overflows += 1;
                if self.is_ready() {
                    return Ok(SessionEvent::MultipartOverflow { xid, kind });
                }
                Ok(self.without(xid, MissingReply::Unreadable))
            }
            PartOutcome::Last(bytes) => match CompleteReply::check(self.version, kind, bytes) {
                Err(error) => {
                    let ended = Some(RequestKind::Multipart(kind));
                    self.malformed(message, error, ended, now, out)
                }
                Ok(reply) if self.is_ready() => Ok(SessionEvent::Multipart { xid, reply }),
                Ok(reply) => Ok(self.described(&reply)),
            },
        }
    }

    fn error<'b>(&mut self, xid: u32, error: ErrorMessage<'b>) -> Result<SessionEvent<'b>, Stop> {
        if !self.is_ready() {
            return self.early_error(xid, &error);
        }
        // The switch has no barriers: the answer or the time limit ends the request.
        if self.requests.is_guard(xid) {
            self.requests.end(xid);
            return Ok(SessionEvent::Nothing);
        }
        Ok(SessionEvent::Error { xid, error, request: self.requests.end(xid) })
    }

    /// Handles a message that cannot be decoded. A reply ends its request (`ended` if already
    /// ended), and is not answered: errors are about requests. Any other message is answered.
    fn malformed<'b>(
        &mut self,
        message: MessageFrame<'b>,
        error: DecodeError,
        ended: Option<RequestKind>,
        now: Duration,
        out: &mut Out,
    ) -> Result<SessionEvent<'b>, Stop> {
        self.counters.malformed += 1;
        let xid = message.header.xid;
        if !self.is_reply(message.header) {
            self.answer(message, error.answer, now, out);
            return Ok(SessionEvent::Malformed { xid, error, request: None });
        }
        if !self.is_ready() {
            return self.early_malformed(xid, error);
        }
        let request = ended.or_else(|| self.requests.end(xid));
        Ok(SessionEvent::Malformed { xid, error, request })
    }

    /// Whether a message has an xid of this end. Other messages have the switch's own numbers.
    fn is_reply(&self, header: Header) -> bool {
        MessageKind::from_wire(self.version, header.kind).is_some_and(|kind| {
            matches!(
                kind,
                MessageKind::Error
                    | MessageKind::EchoReply
                    | MessageKind::FeaturesReply
                    | MessageKind::GetConfigReply
                    | MessageKind::MultipartReply
                    | MessageKind::BarrierReply
                    | MessageKind::QueueGetConfigReply
                    | MessageKind::RoleReply
                    | MessageKind::GetAsyncReply
            )
        })
    }

    /// Handles an impossible length: the next message cannot be found.
    pub(super) fn broken(
        &mut self,
        stream: &[u8],
        error: DecodeError,
        now: Duration,
        out: &mut Out,
    ) -> CloseReason {
        if let (Some(header), Some(bytes)) = (Header::read(stream), stream.get(..HEADER_LEN)) {
            self.answer(MessageFrame { header, bytes }, error.answer, now, out);
        }
        CloseReason::BadLength(error)
    }

    /// Answers with an error: never to an error, within the rate limit, and only if `out` has
    /// space.
    fn answer(&mut self, message: MessageFrame<'_>, code: ErrorCode, now: Duration, out: &mut Out) {
        if message.header.kind == ERROR {
            return;
        }
        let is_sent =
            self.errors.allows(now) && write_error(self.version, message, code, out).is_ok();
        if is_sent {
            self.errors.pass(now);
        } else {
            self.counters.errors_suppressed += 1;
        }
    }
}
