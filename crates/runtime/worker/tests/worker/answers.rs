//! Each request ends in each way that it can end, and its asker learns that and nothing else.

use std::fmt::Debug;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::lab::{Lab, Notes, SwitchId, told};
use bellrock_api::openflow::{
    Bytes, ConfigFlags, FlowStatsRequest, FromSwitch, HEADER_LEN, MessageKind, MultipartKind,
    MultipartReply, Out, RequestBody, RoleExtension, RoleKind, RoleMessage, SwitchConfig,
};
use bellrock_api::runtime::{RawMessages, RoleControl};
use bellrock_api::{
    App, Cookie, Dpid, EarlierFlows, ErrorCode, ErrorMessage, FlowMod, FlowStats, Handler, Match,
    Network, PacketIn, Port, ProgramFuture, ReplyBody, RequestFuture, Result, RoleOrder,
    RoleOrderFuture, Switch, SwitchInfo, ToSwitch, Verdict, Version, Xid,
};
use bellrock_session::{SwitchDescription, xid};
use bellrock_worker::WorkerSettings;

const SWITCH: Dpid = Dpid(5);
const BOTH: &[Version] = &Version::ALL;

/// How long a request waits for its answer here.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Longer than each time limit: that of requests, and the 5 s for flows of an earlier run.
const LONG: Duration = Duration::from_secs(8);

/// What parts of a reply may have together here.
const MAX_MULTIPART_BYTES: usize = 1000;

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    /// A handler, for statistics.
    Statistics,
    /// A handler, by a barrier.
    Barrier,
    /// A handler, for the configuration.
    Config,
    /// A handler, to remove its flows (1.0).
    Removal,
    /// A handler, by a message that expects no answer.
    Flow,
    /// A task, for statistics.
    Task,
    /// A task, by a program of changes: its barrier.
    Program,
    /// An order for a role.
    Role,
    /// The search for flows of an earlier run.
    Cleaning,
}

/// How a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Reply,
    Refused,
    /// Only the barrier behind it is answered.
    Silent,
    Late,
    TooLarge,
    Unreadable,
    Disconnected,
}

const ENDS: [Ended; 7] = [
    Ended::Reply,
    Ended::Refused,
    Ended::Silent,
    Ended::Late,
    Ended::TooLarge,
    Ended::Unreadable,
    Ended::Disconnected,
];

/// The request cannot end so.
const NEVER: &str = "never";

/// What the asker learns, in the order of [`ENDS`]: the calls of a handler, or the beginning of the
/// outcome of a future.
const TABLE: [(Asker, &[Version], [&str; ENDS.len()]); 10] = [
    (Asker::Statistics, BOTH, ["reply", "error", "unanswered", "unanswered", "", "", "down"]),
    (Asker::Barrier, BOTH, ["barrier", "error", NEVER, "unanswered", NEVER, "", "down"]),
    (Asker::Config, BOTH, ["answer", "error", NEVER, "unanswered", NEVER, "", "down"]),
    (
        Asker::Removal,
        &[Version::V1_0],
        [
            "flow_mod",
            "error, unanswered",
            "unanswered",
            "unanswered",
            "unanswered",
            "unanswered",
            "down",
        ],
    ),
    (Asker::Flow, BOTH, [NEVER, "error", NEVER, NEVER, NEVER, NEVER, "down"]),
    (
        Asker::Task,
        BOTH,
        [
            "Ok(",
            "Err(Refused(",
            "Err(Silent)",
            "Err(Unanswered)",
            "Err(TooLarge)",
            "Err(Unreadable(",
            "Err(Disconnected)",
        ],
    ),
    (
        Asker::Program,
        BOTH,
        [
            "[Installed]",
            "[Unknown(TimedOut)]",
            NEVER,
            "[Unknown(TimedOut)]",
            NEVER,
            "[Unknown(TimedOut)]",
            "[Unknown(Disconnected)]",
        ],
    ),
    (
        Asker::Role,
        &[Version::V1_0],
        [
            "Ok(",
            "Err(Refused(",
            "Err(Unsupported)",
            "Err(Unanswered)",
            NEVER,
            "Err(Unanswered)",
            "Err(Disconnected)",
        ],
    ),
    // A switch that ignores the request is asked next whether it has roles at all.
    (
        Asker::Role,
        &[Version::V1_3],
        [
            "Ok(",
            "Err(Refused(",
            "pending",
            "Err(Unanswered)",
            NEVER,
            "Err(Unanswered)",
            "Err(Disconnected)",
        ],
    ),
    (Asker::Cleaning, BOTH, ["adopt, up", "up", "up", "up", "up", "up", ""]),
];

#[test]
fn each_end_of_a_request_reaches_its_asker_and_nobody_else() {
    for (asker, versions, expected) in TABLE {
        for version in versions {
            for (ended, expected) in ENDS.into_iter().zip(expected) {
                if expected == NEVER {
                    continue;
                }
                let learned = Asked::new(asker, *version).end(ended);
                let is_expected = match expected {
                    "" => learned.is_empty(),
                    // What the outcome holds is not this test's.
                    expected if expected.ends_with('(') => learned.starts_with(expected),
                    expected => learned == expected,
                };
                assert!(
                    is_expected,
                    "{version} {asker:?} {ended:?}: {learned:?}, not {expected:?}"
                );
            }
        }
    }
}

/// A second end finds nobody: the switch answers what is over.
#[test]
fn a_request_that_is_over_does_not_end_again() {
    for (asker, versions, _) in TABLE {
        for version in versions {
            if matches!(asker, Asker::Flow | Asker::Role) {
                continue;
            }
            let mut asked = Asked::new(asker, *version);
            asked.bring_about(Ended::Late);
            asked.notes.take();
            asked.bring_about(Ended::Reply);
            assert_eq!(asked.notes.take(), Vec::<String>::new(), "{version} {asker:?}");
        }
    }
}

/// An app of which the first byte of a packet orders what to ask.
#[derive(Clone, Default)]
struct Asks(Notes);

impl App for Asks {
    type Handler = Asks;

    fn name(&self) -> &'static str {
        "asks"
    }

    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Adopt
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Asks {
        self.clone()
    }
}

impl Handler for Asks {
    fn switch_up(&mut self, _: &mut Switch<'_>) -> Result<()> {
        self.0.note("up");
        Ok(())
    }

    fn adopt(&mut self, _: &mut Switch<'_>, _: &FlowStats<'_>) -> Result<bool> {
        self.0.note("adopt");
        Ok(true)
    }

    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        let all = Match::any();
        let mut askers = TABLE.iter().map(|(asker, ..)| *asker);
        match askers.find(|asker| *asker as u8 == packet.data()[0]) {
            Some(Asker::Statistics) => {
                switch.request(RequestBody::Flow(FlowStatsRequest::all(&all)))?
            }
            Some(Asker::Barrier) => switch.barrier()?,
            Some(Asker::Config) => switch.send(&ToSwitch::GetConfigRequest)?,
            Some(Asker::Removal) => switch.remove(&all, Port::ANY)?,
            _ => switch.install(&FlowMod::add(&all))?,
        };
        Ok(Verdict::Consume)
    }

    fn reply(&mut self, _: &mut Switch<'_>, _: Xid, _: &ReplyBody<'_>) -> Result<()> {
        self.0.note("reply");
        Ok(())
    }

    fn answer(&mut self, _: &mut Switch<'_>, _: Xid, _: &FromSwitch<'_>) -> Result<()> {
        self.0.note("answer");
        Ok(())
    }

    fn barrier(&mut self, _: &mut Switch<'_>, _: Xid) -> Result<()> {
        self.0.note("barrier");
        Ok(())
    }

    fn error(&mut self, _: &mut Switch<'_>, _: Xid, _: &ErrorMessage<'_>) -> Result<()> {
        self.0.note("error");
        Ok(())
    }

    fn unanswered(&mut self, _: &mut Switch<'_>, _: Xid) -> Result<()> {
        self.0.note("unanswered");
        Ok(())
    }

    fn switch_down(&mut self, _: &SwitchInfo) {
        self.0.note("down");
    }
}

/// The future of a request that a task has made.
enum Waiting {
    Request(RequestFuture),
    Program(ProgramFuture),
    Role(RoleOrderFuture),
}

/// A request that the switch has not answered.
struct Asked {
    lab: Lab,
    switch: SwitchId,
    version: Version,
    notes: Notes,
    asker: Asker,
    xid: u32,
    waiting: Option<Waiting>,
}

impl Asked {
    fn new(asker: Asker, version: Version) -> Self {
        let notes = Notes::default();
        let mut settings = WorkerSettings::default();
        settings.session.request_timeout = REQUEST_TIMEOUT;
        settings.session.max_multipart_bytes = MAX_MULTIPART_BYTES;
        let mut lab = Lab::new(1, settings, vec![Box::new(Asks(notes.clone()))]);
        let switch = lab.connect(0, version, SwitchDescription::new(SWITCH.0));
        if asker == Asker::Cleaning {
            lab.switches[switch].flows = None;
        }
        lab.run();
        let found = lab.switches[switch].asked_for_flows.unwrap();
        lab.switches[switch].silent = true;
        let mut asked = Asked { lab, switch, version, notes, asker, xid: found, waiting: None };
        if asker != Asker::Cleaning {
            asked.notes.take();
            asked.xid = asked.ask();
        }
        asked
    }

    /// Sends the request, and returns its xid.
    fn ask(&mut self) -> u32 {
        let network = self.lab.shared.network();
        let all = Match::any();
        self.waiting = match self.asker {
            Asker::Task => {
                let body = RequestBody::Flow(FlowStatsRequest::all(&all));
                Some(Waiting::Request(network.request(SWITCH, body)))
            }
            Asker::Program => {
                let mut out = Out::with_capacity(1024);
                ToSwitch::FlowMod(FlowMod::add(&all)).encode(self.version, 0, &mut out).unwrap();
                let messages = vec![out.as_slice().into()];
                Some(Waiting::Program(network.send_messages(SWITCH, messages)))
            }
            Asker::Role => {
                let order = RoleOrder::Master { generation_id: 1 };
                Some(Waiting::Role(network.set_role(SWITCH, order)))
            }
            by_handler => {
                self.lab.packet_in(self.switch, 1, None, &[by_handler as u8; 60]);
                None
            }
        };
        self.lab.run();
        let sent = self.lab.unread(self.switch);
        let at = usize::from(self.asker == Asker::Program);
        sent[at].1
    }

    /// Ends the request, and returns what its asker learns.
    fn end(mut self, ended: Ended) -> String {
        self.bring_about(ended);
        match self.waiting {
            Some(Waiting::Request(request)) => outcome(request),
            Some(Waiting::Program(program)) => outcome(program),
            Some(Waiting::Role(order)) => outcome(order),
            None => self.notes.take().join(", "),
        }
    }

    fn bring_about(&mut self, ended: Ended) {
        let (switch, version) = (self.switch, self.version);
        let mut out = Out::with_capacity(1 << 16);
        match ended {
            Ended::Reply | Ended::Unreadable => self.write_reply(&mut out),
            Ended::Refused => {
                let (code, data) = (ErrorCode::RequestBadMultipart, Bytes(&[]));
                let error = FromSwitch::Error(ErrorMessage::Standard { code, data });
                error.encode(version, self.xid, &mut out).unwrap();
            }
            Ended::Silent => {
                let behind = xid::xid(xid::SESSION, (self.xid & xid::MAX_COUNT) + 1);
                FromSwitch::BarrierReply.encode(version, behind, &mut out).unwrap();
            }
            Ended::TooLarge => self.write_flows(&mut out, MAX_MULTIPART_BYTES / 50, true),
            Ended::Late => self.lab.advance(LONG),
            Ended::Disconnected => self.lab.hang_up(switch),
        }
        let mut bytes = out.as_slice().to_vec();
        if ended == Ended::Unreadable {
            // Too short for its kind, or too long for a barrier's reply.
            let len = if bytes.len() == HEADER_LEN { HEADER_LEN + 4 } else { HEADER_LEN };
            bytes.resize(len, 0);
            bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        }
        self.lab.unread(switch);
        self.lab.send_bytes(switch, &bytes);
        self.lab.run();
        let is_removed = |lab: &mut Lab| {
            lab.unread(switch).iter().any(|(kind, _)| *kind == MessageKind::FlowMod)
        };
        if self.asker == Asker::Removal && is_removed(&mut self.lab) {
            self.notes.note("flow_mod");
        }
    }

    fn write_reply(&self, out: &mut Out) {
        let message = match self.asker {
            Asker::Barrier | Asker::Program => FromSwitch::BarrierReply,
            Asker::Config => {
                let flags = ConfigFlags::empty();
                FromSwitch::GetConfigReply(SwitchConfig { flags, miss_send_len: 128 })
            }
            Asker::Role if self.version == Version::V1_0 => {
                let reply = RoleExtension::Reply(RoleKind::Master);
                return reply.write(self.version, self.xid, out).unwrap();
            }
            Asker::Role => {
                let role = RoleMessage { role: RoleKind::Master, generation_id: 1 };
                FromSwitch::RoleReply(role)
            }
            _ => return self.write_flows(out, 1, false),
        };
        message.encode(self.version, self.xid, out).unwrap();
    }

    /// Reports flows of the app.
    fn write_flows(&self, out: &mut Out, number: usize, more: bool) {
        let flow = (Cookie::of_app("asks").with(1), 0xf010, Port(2));
        let flows = told(self.version, &vec![flow; number]);
        let body = ReplyBody::decode_parts(self.version, MultipartKind::Flow, &flows).unwrap();
        let reply = FromSwitch::MultipartReply(MultipartReply { more, body });
        reply.encode(self.version, self.xid, out).unwrap();
    }
}

fn outcome<T: Debug>(future: impl Future<Output = T>) -> String {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => format!("{outcome:?}"),
        Poll::Pending => "pending".into(),
    }
}
