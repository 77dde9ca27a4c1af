//! Processing of messages after a version is agreed on.

use std::time::Duration;

use bellrock_openflow::{
    DecodeError, ErrorCode, ErrorMessage, Frame, FromSwitch, HEADER_LEN, Header, MessageKind,
    MultipartReply, Out, Reason, RequestKind, Role, RoleExtension, ToSwitch,
};

use super::Controller;
use super::handshake::Stage;
use crate::close::{Close, Stop};
use crate::description::Missing;
use crate::event::Event;
use crate::hello::{self, ERROR, write_error};
use crate::requests::{Gathered, Part};
use crate::xid;

impl Controller {
    /// Processes one message. On [`Stop::Full`], nothing of the session has changed but the count
    /// of xids.
    pub(super) fn message<'b>(
        &mut self,
        message: Frame<'b>,
        now: Duration,
        out: &mut Out,
    ) -> Result<Event<'b>, Stop> {
        if matches!(self.stage, Stage::Hello) {
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
                Ok(Event::Nothing)
            }
            Ok(FromSwitch::MultipartReply(_)) => self.multipart(message, now, out),
            Ok(FromSwitch::Error(error)) => self.error(message.header.xid, error),
            Ok(FromSwitch::BarrierReply) if self.requests.is_guard(message.header.xid) => {
                Ok(self.overtaken(message.header.xid))
            }
            Ok(body) if self.is_ready() => Ok(self.ready(message.header.xid, body)),
            Ok(body) => self.early(message.header.xid, body, now, out),
        }?;
        if matches!(event, Event::Ready) {
            // From here on, silence counts.
            self.since = now;
        }
        Ok(event)
    }

    fn decode<'b>(&self, message: Frame<'b>) -> Result<FromSwitch<'b>, DecodeError> {
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
    fn ready<'b>(&mut self, xid: u32, body: FromSwitch<'b>) -> Event<'b> {
        match body {
            FromSwitch::PacketIn(packet) => Event::PacketIn { xid, packet },
            FromSwitch::PortStatus(status) => Event::PortStatus(status),
            FromSwitch::FlowRemoved(flow) => Event::FlowRemoved(flow),
            FromSwitch::Experimenter(message) => {
                let requested = self.requests.answer(xid, RequestKind::Experimenter);
                match RoleExtension::read(&message) {
                    Some(RoleExtension::Reply(role)) if requested => {
                        Event::Role { xid, role: Role { role, generation_id: Role::NO_GENERATION } }
                    }
                    Some(RoleExtension::Status(status)) if !requested => Event::RoleStatus(status),
                    _ => Event::Experimenter { xid, message, requested },
                }
            }
            FromSwitch::RoleReply(role) if self.requests.answer(xid, RequestKind::Role) => {
                Event::Role { xid, role }
            }
            FromSwitch::EchoReply(_) if self.probe == Some(xid) => {
                self.probe = None;
                Event::ProbeAnswered
            }
            FromSwitch::EchoReply(_) if xid::owner(xid) == xid::SESSION => Event::Nothing,
            body => {
                let kind = RequestKind::answered_by(&body);
                if kind.is_some_and(|kind| self.requests.answer(xid, kind)) {
                    return Event::Reply { xid, body };
                }
                self.counters.unexpected += 1;
                Event::Nothing
            }
        }
    }

    /// Handles a multipart reply, or a part of one, already checked by itself.
    fn multipart<'b>(
        &mut self,
        message: Frame<'b>,
        now: Duration,
        out: &mut Out,
    ) -> Result<Event<'b>, Stop> {
        let xid = message.header.xid;
        let (kind, more, body) = match MultipartReply::split(self.version, message.bytes) {
            Ok(split) => split,
            Err(error) => return self.malformed(message, error, None, now, out),
        };
        let part = self.requests.part(xid, kind, more, body, self.settings.max_multipart_bytes);
        match part {
            Part::Kept => Ok(Event::Nothing),
            Part::Unknown => {
                self.counters.unexpected += 1;
                Ok(Event::Nothing)
            }
            Part::Overflow => {
                self.counters.multipart_overflows += 1;
                if self.is_ready() {
                    return Ok(Event::MultipartOverflow { xid, kind });
                }
                Ok(self.without(xid, Missing::Unreadable))
            }
            Part::Last(bytes) => match Gathered::check(self.version, kind, bytes) {
                Err(error) => {
                    let ended = Some(RequestKind::Multipart(kind));
                    self.malformed(message, error, ended, now, out)
                }
                Ok(reply) if self.is_ready() => Ok(Event::Multipart { xid, reply }),
                Ok(reply) => Ok(self.described(&reply)),
            },
        }
    }

    fn error<'b>(&mut self, xid: u32, error: ErrorMessage<'b>) -> Result<Event<'b>, Stop> {
        if !self.is_ready() {
            return self.early_error(xid, &error);
        }
        // The switch has no barriers: the answer or the time limit ends the request.
        if self.requests.is_guard(xid) {
            self.requests.end(xid);
            return Ok(Event::Nothing);
        }
        Ok(Event::Error { xid, error, request: self.requests.end(xid) })
    }

    /// Handles a message that cannot be decoded. A reply ends its request (`ended` if already
    /// ended), and is not answered: errors are about requests. Any other message is answered.
    fn malformed<'b>(
        &mut self,
        message: Frame<'b>,
        error: DecodeError,
        ended: Option<RequestKind>,
        now: Duration,
        out: &mut Out,
    ) -> Result<Event<'b>, Stop> {
        self.counters.malformed += 1;
        let xid = message.header.xid;
        if !self.is_reply(message.header) {
            self.answer(message, error.answer, now, out);
            return Ok(Event::Malformed { xid, error, request: None });
        }
        if !self.is_ready() {
            return self.early_malformed(xid, error);
        }
        let request = ended.or_else(|| self.requests.end(xid));
        Ok(Event::Malformed { xid, error, request })
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
    ) -> Close {
        if let (Some(header), Some(bytes)) = (Header::read(stream), stream.get(..HEADER_LEN)) {
            self.answer(Frame { header, bytes }, error.answer, now, out);
        }
        Close::BadLength(error)
    }

    /// Answers with an error: never to an error, within the rate limit, and only if `out` has
    /// space.
    fn answer(&mut self, message: Frame<'_>, code: ErrorCode, now: Duration, out: &mut Out) {
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
