//! Handles each message that a switch of the load receives. It verifies answers. It answers
//! requests as a switch without flows, groups and meters does.

use bellrock_openflow::{
    Aggregate, Bytes, ErrorCode, ErrorMessage, FromSwitch, HEADER_LEN, List, MultipartReply, Out,
    QueueConfig, ReplyBody, RequestBody, ToSwitch,
};
use bellrock_session::SwitchSession;
use bellrock_session::switch::SwitchSessionEvent;

use super::connection::{ConnectionTrouble, DriverConnection, DriverStage};
use super::desk::Desk;
use crate::verify::{AnswerKind, FLOW_MOD, PACKET_OUT};
use crate::window::{AnswerProgress, BufferMeaning};

/// `OFPT_FEATURES_REQUEST`, the same in both versions.
const FEATURES_REQUEST: u8 = 5;

impl DriverConnection {
    /// Handles all whole messages in `bytes`, and returns their length in bytes.
    pub(super) fn messages(
        &mut self,
        bytes: &[u8],
        desk: &mut Desk,
        now_ns: u64,
    ) -> Result<usize, ConnectionTrouble> {
        let mut rest = bytes;
        while let Some([version, kind, high, low, ..]) = rest.first_chunk::<HEADER_LEN>() {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let is_answer = matches!(*kind, FLOW_MOD | PACKET_OUT)
                && *version == self.version().wire()
                && length >= HEADER_LEN
                && self.stage >= DriverStage::Greeting;
            if is_answer {
                let taken = self.right_answers(rest, desk, now_ns);
                if taken > 0 {
                    rest = &rest[taken..];
                    continue;
                }
                let Some((message, behind)) = rest.split_at_checked(length) else { break };
                self.answer(message, desk, now_ns);
                rest = behind;
                continue;
            }
            let used = self.other(rest, *kind, desk, now_ns)?;
            if used == 0 {
                break;
            }
            rest = &rest[used..];
        }
        Ok(bytes.len() - rest.len())
    }

    /// Takes the answers at the start of the stream that are right and in order. Returns their
    /// length in bytes.
    fn right_answers(&mut self, stream: &[u8], desk: &mut Desk, now_ns: u64) -> usize {
        let (packets, used) = desk.verifier.run(stream, self.dpid, &self.window);
        if packets > 0 {
            let latency = &mut desk.latency;
            self.window.answered(packets, now_ns, |sent_ns, packets| {
                latency.add_times(now_ns.saturating_sub(sent_ns), packets);
            });
            desk.tally.verified += packets;
            self.done += packets;
        }
        used
    }

    #[inline]
    fn answer(&mut self, message: &[u8], desk: &mut Desk, now_ns: u64) {
        if self.window.next() == 0 {
            // No packet was sent yet: these are the controller's first flows, and flooded ARPs.
            desk.tally.other += 1;
            return;
        }
        let Desk { verifier, tally, .. } = desk;
        let answer = verifier.check(message, self.dpid, &mut self.window, now_ns, tally);
        if let AnswerKind::SetUp { sent_ns } = answer {
            desk.latency.add(now_ns.saturating_sub(sent_ns));
            self.done += 1;
        }
    }

    /// Handles the reply to an echo request that was sent in place of a packet_in.
    fn load_echo_came(&mut self, xid: u32, desk: &mut Desk, now_ns: u64) {
        let sent_ns = match self.window.which(xid) {
            BufferMeaning::Waiting(number) => match self.window.both(number, true, now_ns) {
                AnswerProgress::Complete { sent_ns, .. } => sent_ns,
                AnswerProgress::Half | AnswerProgress::Twice => return,
            },
            BufferMeaning::Over(_) => {
                desk.tally.extra += 1;
                return;
            }
            BufferMeaning::Unknown => {
                desk.tally.other += 1;
                return;
            }
        };
        desk.tally.verified += 1;
        desk.latency.add(now_ns.saturating_sub(sent_ns));
        self.done += 1;
    }

    /// Handles a message that is not an answer. Returns its length, or zero if it is incomplete.
    fn other(
        &mut self,
        stream: &[u8],
        kind: u8,
        desk: &mut Desk,
        now_ns: u64,
    ) -> Result<usize, ConnectionTrouble> {
        let Some(session) = self.session() else { return Ok(0) };
        let next = session.next(stream, &mut desk.out).map_err(ConnectionTrouble::Protocol)?;
        let Some((used, event)) = next else { return Ok(0) };
        match event {
            SwitchSessionEvent::OutFull => {
                // Moves what is written to the outbox, then handles the message again.
                self.spill(desk);
                return self.other(stream, kind, desk, now_ns);
            }
            SwitchSessionEvent::Message { xid, body } => self.message(xid, body, desk, now_ns)?,
            SwitchSessionEvent::Malformed { .. } => desk.tally.unreadable += 1,
            _ => {}
        }
        if kind == FEATURES_REQUEST {
            self.told_features(desk)?;
        }
        Ok(used)
    }

    fn message(
        &mut self,
        xid: u32,
        body: ToSwitch<'_>,
        desk: &mut Desk,
        now_ns: u64,
    ) -> Result<(), ConnectionTrouble> {
        match body {
            ToSwitch::EchoReply(_) if self.stage == DriverStage::Learnt => {
                self.load_echo_came(xid, desk, now_ns);
                return Ok(());
            }
            ToSwitch::EchoReply(_) => {
                self.echo_came(xid);
                return Ok(());
            }
            ToSwitch::Error(_) => {
                desk.tally.errors += 1;
                return Ok(());
            }
            _ => desk.tally.other += 1,
        }
        if desk.as_cbench && !matches!(body, ToSwitch::Experimenter(_)) {
            return Ok(());
        }
        // Makes space for the longest of these replies.
        self.spill(desk);
        match self.session() {
            Some(session) => reply(session, xid, &body, &mut desk.out),
            None => Ok(()),
        }
    }
}

fn reply(
    session: &SwitchSession,
    xid: u32,
    body: &ToSwitch<'_>,
    out: &mut Out,
) -> Result<(), ConnectionTrouble> {
    let refuse = |code: ErrorCode| {
        let code = code.nearest(session.version());
        FromSwitch::Error(ErrorMessage::Standard { code, data: Bytes(&[]) })
    };
    let answer = match body {
        ToSwitch::MultipartRequest(request) => match statistics(&request.body) {
            Some(body) => FromSwitch::MultipartReply(MultipartReply::of(body)),
            None => refuse(ErrorCode::RequestBadMultipart),
        },
        ToSwitch::RoleRequest(role) => FromSwitch::RoleReply(*role),
        ToSwitch::QueueGetConfigRequest(port) => {
            FromSwitch::QueueGetConfigReply(QueueConfig { port: *port, queues: List::empty() })
        }
        ToSwitch::Experimenter(_) => refuse(ErrorCode::RequestBadExperimenter),
        ToSwitch::GetAsyncRequest => refuse(ErrorCode::RequestBadType),
        _ => return Ok(()),
    };
    Ok(session.send(xid, &answer, out)?)
}

/// Statistics of a switch without flows; `None` for requests that it does not support.
fn statistics(request: &RequestBody<'_>) -> Option<ReplyBody<'static>> {
    Some(match request {
        RequestBody::Flow(_) => ReplyBody::Flow(List::empty()),
        RequestBody::Aggregate(_) => {
            ReplyBody::Aggregate(Aggregate { packet_count: 0, byte_count: 0, flow_count: 0 })
        }
        RequestBody::Table => ReplyBody::Table(List::empty()),
        RequestBody::PortStats(_) => ReplyBody::PortStats(List::empty()),
        RequestBody::Queue(_) => ReplyBody::Queue(List::empty()),
        RequestBody::Group(_) => ReplyBody::Group(List::empty()),
        RequestBody::GroupDesc => ReplyBody::GroupDesc(List::empty()),
        RequestBody::Meter(_) => ReplyBody::Meter(List::empty()),
        RequestBody::MeterConfig(_) => ReplyBody::MeterConfig(List::empty()),
        RequestBody::TableFeatures(_) => ReplyBody::TableFeatures(List::empty()),
        _ => return None,
    })
}
