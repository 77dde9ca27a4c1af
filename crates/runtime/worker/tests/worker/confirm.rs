//! Changes that a switch confirms: each outcome is correct, whatever the switch does.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::lab::{Lab, SwitchId};
use bellrock_api::openflow::{
    Bytes, EncodeError, Experimenter, FlowCommand, FlowMod, FlowStatsRequest, FromSwitch, Hello,
    Message, MultipartKind, MultipartRequest, Out, RequestBody, RequestKind, RoleKind, RoleMessage,
};
use bellrock_api::runtime::{DynApp, RawMessages};
use bellrock_api::{
    App, Change, ChangeOutcome, Dpid, Error, ErrorCode, ErrorMessage, Flow, Handler, Match,
    Network, NoConfirmation, Port, ProgramFuture, Refusal, ReplyBody, RequestError, Result, Switch,
    SwitchInfo, ToSwitch, Version, Xid,
};
use bellrock_session::SwitchDescription;
use bellrock_worker::WorkerSettings;

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;
const SWITCH: Dpid = Dpid(5);
const TABLE_FULL: ChangeOutcome =
    ChangeOutcome::Refused(Refusal::Standard(ErrorCode::FlowModTableFull));

/// An app that only keeps its handle to the network, and counts the errors that it gets.
#[derive(Clone, Default)]
struct Quiet {
    network: Arc<Mutex<Option<Network>>>,
    errors: Arc<Mutex<u32>>,
}

impl App for Quiet {
    type Handler = Quiet;
    fn wants_packet_ins(&self) -> bool {
        false
    }
    fn start(&self, network: &Network) {
        *self.network.lock().unwrap() = Some(network.clone());
    }
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Quiet {
        self.clone()
    }
}

impl Handler for Quiet {
    fn error(&mut self, _: &mut Switch<'_>, _: Xid, _: &ErrorMessage<'_>) -> Result<()> {
        *self.errors.lock().unwrap() += 1;
        Ok(())
    }
}

/// An app that gets the packets that match no other flow, and leaves them to nobody.
struct Curious;

impl App for Curious {
    type Handler = Curious;
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Curious {
        Curious
    }
}

impl Handler for Curious {}

fn lab(workers: usize, version: Version) -> (Lab, SwitchId, Network, Quiet) {
    let app = Quiet::default();
    let mut lab = Lab::new(workers, WorkerSettings::default(), vec![Box::new(app.clone())]);
    let switch = lab.up(version, SWITCH.0);
    let network = app.network.lock().unwrap().clone().unwrap();
    (lab, switch, network, app)
}

/// A flow with this number.
fn flow(number: u32) -> Flow {
    let address = std::net::Ipv4Addr::from_bits(number);
    let matching = Match::any().eth_type(0x0800).ipv4_dst(address);
    Flow::new(matching).priority(100).number(number).output(Port(1))
}

fn add(numbers: impl IntoIterator<Item = u32>) -> Vec<Change> {
    numbers.into_iter().map(|number| Change::Add(flow(number))).collect()
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn outcome(programmed: &mut ProgramFuture) -> Vec<ChangeOutcome> {
    match poll(programmed) {
        Poll::Ready(outcomes) => outcomes,
        Poll::Pending => panic!("it is not known yet"),
    }
}

#[test]
fn an_error_is_the_outcome_of_the_change_that_caused_it_and_no_other() {
    for version in VERSIONS {
        let (mut lab, s, network, app) = lab(1, version);
        lab.switches[s].refused = vec![3];
        let mut programmed = network.program(SWITCH, add(1..=5));
        assert!(poll(&mut programmed).is_pending());
        lab.run();
        let installed = ChangeOutcome::Installed;
        let expected = [installed, installed, TABLE_FULL, installed, installed];
        assert_eq!(outcome(&mut programmed), expected);
        assert_eq!(*app.errors.lock().unwrap(), 0, "it is no error of a handler's message");
        let counted = ["changes_sent", "changes_confirmed", "changes_refused", "changes_unknown"];
        assert_eq!(counted.map(|name| lab.counters(name)[0]), [5, 4, 1, 0]);
    }
}

#[test]
fn an_operator_s_messages_go_out_as_they_are_and_are_confirmed() {
    for version in VERSIONS {
        let (mut lab, s, network, app) = lab(1, version);
        lab.switches[s].refused = vec![2];
        let mut out = Out::with_capacity(1024);
        let message = |number: u32, out: &mut Out| -> Box<[u8]> {
            out.clear();
            let matching = Match::any();
            let flow =
                FlowMod { cookie: number.into(), priority: 40_000, ..FlowMod::add(&matching) };
            ToSwitch::FlowMod(flow).encode(version, 77, out).unwrap();
            out.as_slice().into()
        };
        let messages = (1..=3).map(|number| message(number, &mut out)).collect();
        lab.switches[s].received.clear();
        let mut sent = network.send_messages(SWITCH, messages);
        lab.run();
        let installed = ChangeOutcome::Installed;
        assert_eq!(outcome(&mut sent), [installed, TABLE_FULL, installed]);
        let flows = lab.flow_mods(s);
        let cookies: Vec<_> =
            flows.iter().map(|(_, cookie, priority)| (*cookie, *priority)).collect();
        assert_eq!(cookies, [(1, 40_000), (2, 40_000), (3, 40_000)]);
        assert_eq!(*app.errors.lock().unwrap(), 0, "no app has sent it");
    }
}

/// In 1.3, packets reach the controller by a flow of its own, whose place others may take.
#[test]
fn the_table_miss_entry_comes_back_behind_an_operator_s_removal_of_all_flows() {
    for (command, priority, table, comes_back) in [
        (FlowCommand::Delete, 0, FlowMod::ALL_TABLES, true),
        (FlowCommand::DeleteStrict, 0, 0, true),
        (FlowCommand::DeleteStrict, 1, 0, false),
        (FlowCommand::Delete, 0, 1, false),
        (FlowCommand::Add, 0, 0, false),
    ] {
        let app = Quiet::default();
        let chain: Vec<Box<dyn DynApp>> = vec![Box::new(app.clone()), Box::new(Curious)];
        let mut lab = Lab::new(1, WorkerSettings::default(), chain);
        let s = lab.up(Version::V1_3, SWITCH.0);
        let network = app.network.lock().unwrap().clone().unwrap();
        let all = Match::any();
        let flow = FlowMod { command, priority, table, ..FlowMod::add(&all) };
        let mut out = Out::with_capacity(1024);
        ToSwitch::FlowMod(flow).encode(Version::V1_3, 0, &mut out).unwrap();
        lab.switches[s].received.clear();
        let mut sent = network.send_messages(SWITCH, vec![out.as_slice().into()]);
        lab.run();
        assert_eq!(outcome(&mut sent), [ChangeOutcome::Installed]);
        let flows = lab.flow_mods(s);
        assert_eq!(flows.len(), 1 + usize::from(comes_back), "{command:?} {priority} {table}");
    }
}

#[test]
fn an_operator_gets_the_reply_to_a_request_of_any_kind() {
    let (mut lab, _, network, _) = lab(1, Version::V1_3);
    for (request, kind) in [
        (ToSwitch::BarrierRequest, RequestKind::Barrier),
        (ToSwitch::FeaturesRequest, RequestKind::Features),
        (ToSwitch::GetConfigRequest, RequestKind::Config),
        (
            ToSwitch::MultipartRequest(MultipartRequest::of(RequestBody::Desc)),
            RequestKind::Multipart(MultipartKind::Desc),
        ),
    ] {
        let mut asked = network.send_request(SWITCH, &request);
        lab.run();
        let Poll::Ready(Ok(reply)) = poll(&mut asked) else { panic!("{kind:?} is answered") };
        assert_eq!(reply.kind(), kind);
        let is_multipart = matches!(kind, RequestKind::Multipart(_));
        assert_eq!((reply.body().is_ok(), reply.message().is_ok()), (is_multipart, !is_multipart));
    }
    let role = RoleMessage { role: RoleKind::Slave, generation_id: 1 };
    for (message, why) in [
        (ToSwitch::Hello(Hello::bare()), Error::NotARequest),
        (ToSwitch::RoleRequest(role), Error::RoleChange),
    ] {
        let refused = poll(&mut network.send_request(SWITCH, &message));
        assert_eq!(refused, Poll::Ready(Err(RequestError::NotSent(why))));
    }
}

/// Whether an experimenter's message expects a reply, only its sender knows.
#[test]
fn a_message_of_an_experimenter_is_a_request_if_its_sender_awaits_a_reply() {
    for version in VERSIONS {
        let (mut lab, s, network, _) = lab(1, version);
        let kind = version.has_roles().then_some(9);
        let message = |data| Experimenter { experimenter: 0x1234, kind, data: Bytes(data) };
        lab.switches[s].received.clear();
        let mut asked = network.send_request(SWITCH, &ToSwitch::Experimenter(message(b"ask!")));
        let mut silent = network.send_request(SWITCH, &ToSwitch::Experimenter(message(b"mute")));
        lab.switches[s].ignored_barriers = Some(Vec::new());
        lab.run();
        let sent: Vec<_> =
            lab.switches[s].received.iter().map(|bytes| ToSwitch::decode(bytes).unwrap()).collect();
        let xids: Vec<_> = sent
            .iter()
            .filter(|sent| matches!(sent.body, ToSwitch::Experimenter(_)))
            .map(|sent| sent.xid)
            .collect();
        assert_eq!(xids.len(), 2, "{version}");
        assert!(poll(&mut asked).is_pending() && poll(&mut silent).is_pending());
        let mut out = Out::with_capacity(1024);
        let answer = FromSwitch::Experimenter(message(b"told"));
        answer.encode(version, xids[0], &mut out).unwrap();
        for barrier in lab.switches[s].ignored_barriers.take().unwrap() {
            FromSwitch::BarrierReply.encode(version, barrier, &mut out).unwrap();
        }
        let bytes = out.as_slice().to_vec();
        lab.send_bytes(s, &bytes);
        lab.run();
        let Poll::Ready(Ok(reply)) = poll(&mut asked) else { panic!("{version}: it is answered") };
        assert_eq!(reply.kind(), RequestKind::Experimenter);
        assert_eq!(reply.message(), Ok(answer));
        // The switch has answered the barrier behind it, and not the message.
        assert_eq!(poll(&mut silent), Poll::Ready(Err(RequestError::Silent)), "{version}");
    }
}

#[test]
fn a_flow_goes_out_with_the_app_s_cookie_and_a_priority_of_its_band() {
    for version in VERSIONS {
        let (mut lab, s, network, _) = lab(1, version);
        let changes = vec![Change::Add(flow(7)), Change::Remove(flow(7))];
        let mut programmed = network.program(SWITCH, changes);
        lab.run();
        assert_eq!(outcome(&mut programmed), [ChangeOutcome::Installed; 2]);
        let band = network.app_id().unwrap().band();
        for message in &lab.switches[s].received {
            let Message { body: ToSwitch::FlowMod(flow), .. } = ToSwitch::decode(message).unwrap()
            else {
                panic!("{}", crate::lab::describe(message));
            };
            assert!(network.cookie().owns(flow.cookie));
            assert_eq!(band.lower(flow.priority), Some(100));
        }
        assert_eq!(lab.switches[s].received.len(), 2);
    }
}

#[test]
fn a_switch_that_answers_no_barrier_has_installed_nothing_for_certain() {
    for version in VERSIONS {
        let (mut lab, s, network, _) = lab(1, version);
        lab.switches[s].ignored_barriers = Some(Vec::new());
        let mut programmed = network.program(SWITCH, add(1..=2));
        let within = Duration::from_secs(3);
        let mut short = network.program_within(SWITCH, add([9]), within);
        lab.advance(within + Duration::from_secs(1));
        assert_eq!(outcome(&mut short), [ChangeOutcome::Unknown(NoConfirmation::TimedOut)]);
        assert!(poll(&mut programmed).is_pending());
        lab.advance(Duration::from_secs(8));
        assert_eq!(outcome(&mut programmed), [ChangeOutcome::Unknown(NoConfirmation::TimedOut); 2]);
        // A late answer is ignored, and the session goes on.
        let late = lab.switches[s].ignored_barriers.take().unwrap();
        let mut out = Out::with_capacity(1024);
        for xid in late {
            FromSwitch::BarrierReply.encode(version, xid, &mut out).unwrap();
        }
        let bytes = out.as_slice().to_vec();
        lab.send_bytes(s, &bytes);
        let mut next = network.program(SWITCH, add([3]));
        lab.run();
        assert_eq!(outcome(&mut next), [ChangeOutcome::Installed]);
        lab.advance(Duration::from_secs(2));
        assert_eq!(lab.counters("unexpected"), [2]);
    }
}

#[test]
fn a_connection_that_ends_leaves_what_was_sent_unknown_and_the_rest_unsent() {
    let (mut lab, s, network, _) = lab(1, Version::V1_3);
    lab.switches[s].silent = true;
    // More than may be unconfirmed at a time.
    let mut programs: Vec<_> = (0..12).map(|i| network.program(SWITCH, add([i]))).collect();
    lab.run();
    assert!(programs.iter_mut().all(|programmed| poll(programmed).is_pending()));
    lab.hang_up(s);
    lab.run();
    let outcomes: Vec<_> = programs.iter_mut().map(|programmed| outcome(programmed)[0]).collect();
    let (sent, unsent) = outcomes.split_at(8);
    assert_eq!(sent, [ChangeOutcome::Unknown(NoConfirmation::Disconnected); 8]);
    assert_eq!(unsent, [ChangeOutcome::NotSent(Error::UnknownSwitch(SWITCH)); 4]);
    assert_eq!(lab.counters("changes_unknown"), [8]);
    // No switch is there; when it is back, programs work again.
    let mut gone = network.program(SWITCH, add([1, 2]));
    assert_eq!(outcome(&mut gone), [ChangeOutcome::NotSent(Error::UnknownSwitch(SWITCH)); 2]);
    lab.up(Version::V1_3, SWITCH.0);
    let mut back = network.program(SWITCH, add([1, 2]));
    lab.run();
    assert_eq!(outcome(&mut back), [ChangeOutcome::Installed; 2]);
}

#[test]
fn programs_that_had_to_wait_go_out_together_and_each_has_its_own_outcome() {
    let (mut lab, s, network, _) = lab(1, Version::V1_3);
    lab.switches[s].ignored_barriers = Some(Vec::new());
    lab.switches[s].refused = vec![15, 1_500];
    let mut programs: Vec<_> = (0..2_000).map(|i| network.program(SWITCH, add([i]))).collect();
    let soon = Duration::from_secs(1);
    let mut impatient = network.program_within(SWITCH, add([5_000]), soon);
    let mut behind = network.program(SWITCH, add(6_000..6_002));
    lab.run();
    let mut barriers = Vec::new();
    for expected in [8, 4] {
        let unanswered = lab.switches[s].ignored_barriers.replace(Vec::new()).unwrap();
        // 8 alone; then 1,024 together, the rest of 968, the one with a shorter limit, and the one
        // behind it.
        assert_eq!(unanswered.len(), expected);
        assert!(poll(&mut programs[1_999]).is_pending());
        let mut out = Out::with_capacity(1024);
        for xid in &unanswered {
            FromSwitch::BarrierReply.encode(Version::V1_3, *xid, &mut out).unwrap();
        }
        let bytes = out.as_slice().to_vec();
        lab.send_bytes(s, &bytes);
        lab.run();
        barriers.extend(unanswered);
    }
    assert_eq!(barriers.len(), 12);
    for (number, programmed) in programs.iter_mut().enumerate() {
        let refused = [15, 1_500].contains(&number);
        assert_eq!(
            outcome(programmed),
            [if refused { TABLE_FULL } else { ChangeOutcome::Installed }]
        );
    }
    assert_eq!(outcome(&mut impatient), [ChangeOutcome::Installed]);
    assert_eq!(outcome(&mut behind), [ChangeOutcome::Installed; 2]);
    assert_eq!(lab.counters("changes_confirmed"), [2_001]);
}

#[test]
fn errors_that_came_before_the_connection_ended_are_certain() {
    let (mut lab, s, network, _) = lab(1, Version::V1_3);
    lab.switches[s].ignored_barriers = Some(Vec::new());
    lab.switches[s].refused = vec![2];
    let mut programmed = network.program(SWITCH, add(1..=3));
    lab.run();
    lab.hang_up(s);
    lab.run();
    let lost = ChangeOutcome::Unknown(NoConfirmation::Disconnected);
    assert_eq!(outcome(&mut programmed), [lost, TABLE_FULL, lost]);
}

#[test]
fn where_one_change_cannot_be_said_none_is_sent() {
    let (mut lab, s, network, _) = lab(1, Version::V1_0);
    let group = Flow::new(Match::any().in_port(Port(1))).group(7);
    let mut changes = add(1..=3);
    changes.insert(1, Change::Add(group));
    let mut programmed = network.program(SWITCH, changes);
    lab.run();
    let unsupported = EncodeError::Unsupported { what: "groups", version: Version::V1_0 };
    let mut expected = [ChangeOutcome::Withheld; 4];
    expected[1] = ChangeOutcome::NotSent(unsupported.into());
    assert_eq!(outcome(&mut programmed), expected);
    let mut high = network.program(SWITCH, vec![Change::Add(flow(1).priority(4096))]);
    let refused = ChangeOutcome::NotSent(Error::Priority { priority: 4096 });
    assert_eq!(outcome(&mut high), [refused]);
    assert!(lab.switches[s].received.is_empty());
    let mut nobodys = lab.shared.network().program(SWITCH, add([1]));
    assert_eq!(outcome(&mut nobodys), [ChangeOutcome::NotSent(Error::NotAnApp)]);
}

#[test]
fn many_changes_are_all_confirmed_each_at_its_place() {
    let (mut lab, s, network, _) = lab(1, Version::V1_0);
    lab.switches[s].refused = vec![1_023, 1_024, 19_999];
    let mut programmed = network.program(SWITCH, add(0..20_000));
    lab.run();
    let outcomes = outcome(&mut programmed);
    assert_eq!(outcomes.len(), 20_000);
    let refused: Vec<_> =
        (0..20_000).filter(|i| outcomes[*i] != ChangeOutcome::Installed).collect();
    assert_eq!(refused, [1_023, 1_024, 19_999]);
    assert!(refused.iter().all(|i| outcomes[*i] == TABLE_FULL));
    let numbers = lab.switches[s].received.iter().map(|message| {
        let ToSwitch::FlowMod(flow) = ToSwitch::decode(message).unwrap().body else { panic!() };
        (flow.cookie & 0xffff_ffff) as u32
    });
    assert!(numbers.eq(0..20_000), "in order");
}

#[test]
fn programs_beyond_the_backlog_are_not_sent_and_the_others_are() {
    let (mut lab, s, network, _) = lab(1, Version::V1_0);
    lab.switches[s].silent = true;
    let programs = 16 * 1024 * 1024 / (1024 * 80) + 10;
    let mut programs: Vec<_> =
        (0..programs).map(|_| network.program(SWITCH, add(0..1024))).collect();
    lab.run();
    let full = ChangeOutcome::NotSent(Error::Full(SWITCH));
    assert_eq!(outcome(programs.last_mut().unwrap()), [full; 1024]);
    lab.switches[s].silent = false;
    lab.run();
    assert_eq!(outcome(&mut programs[0]), [ChangeOutcome::Installed; 1024]);
}

#[test]
fn a_switch_that_is_handed_over_takes_its_programs_along() {
    let (mut lab, s, network, _) = lab(2, Version::V1_3);
    lab.switches[s].ignored_barriers = Some(Vec::new());
    lab.switches[s].refused = vec![2];
    let mut before = network.program(SWITCH, add(1..=3));
    let all = Match::any();
    let mut asked = network.request(SWITCH, RequestBody::Flow(FlowStatsRequest::all(&all)));
    lab.run();
    // Posted to the worker that it leaves.
    let mut meanwhile = network.program(SWITCH, add([4]));
    assert!(lab.shared.hand_over(SWITCH, 1));
    lab.run();
    assert_eq!(lab.switches[s].worker, 1);
    let mut out = Out::with_capacity(1024);
    for xid in lab.switches[s].ignored_barriers.take().unwrap() {
        FromSwitch::BarrierReply.encode(Version::V1_3, xid, &mut out).unwrap();
    }
    let bytes = out.as_slice().to_vec();
    lab.send_bytes(s, &bytes);
    lab.run();
    assert_eq!(
        outcome(&mut before),
        [ChangeOutcome::Installed, TABLE_FULL, ChangeOutcome::Installed]
    );
    assert_eq!(outcome(&mut meanwhile), [ChangeOutcome::Installed]);
    assert!(matches!(poll(&mut asked), Poll::Ready(Ok(_))));
}

#[test]
fn a_task_gets_a_whole_reply_or_hears_why_not() {
    let flows = |network: &Network| {
        let all = Match::any();
        network.request(SWITCH, RequestBody::Flow(FlowStatsRequest::all(&all)))
    };
    let (mut lab, s, network, _) = lab(1, Version::V1_3);
    let mut asked = flows(&network);
    lab.run();
    let Poll::Ready(Ok(reply)) = poll(&mut asked) else { panic!("it has answered") };
    assert!(matches!(reply.body(), Ok(ReplyBody::Flow(flows)) if flows.is_empty()));
    lab.switches[s].flows = None;
    let mut many: Vec<_> = (0..17).map(|_| flows(&network)).collect();
    lab.run();
    let too_many = RequestError::NotSent(Error::TooManyRequests { unanswered: 16 });
    assert_eq!(poll(&mut many[16]), Poll::Ready(Err(too_many)));
    // Shows that it is alive, but does not answer.
    for _ in 0..13 {
        lab.advance(Duration::from_secs(5));
        lab.packet_in(s, 1, None, &[1]);
    }
    assert_eq!(poll(&mut many[0]), Poll::Ready(Err(RequestError::Unanswered)));
    let mut last = flows(&network);
    lab.run();
    lab.hang_up(s);
    lab.run();
    assert_eq!(poll(&mut last), Poll::Ready(Err(RequestError::Disconnected)));
    let unknown = RequestError::NotSent(Error::UnknownSwitch(SWITCH));
    assert_eq!(poll(&mut flows(&network)), Poll::Ready(Err(unknown)));
    // 1.0 has no groups.
    let id = lab.connect(0, Version::V1_0, SwitchDescription::new(6));
    lab.run();
    assert!(!lab.is_closed(id));
    let refused = poll(&mut network.request(Dpid(6), RequestBody::GroupDesc));
    assert!(matches!(refused, Poll::Ready(Err(RequestError::NotSent(Error::Encode(_))))));
}

#[test]
fn a_slow_switch_has_longer_for_many_changes_and_for_what_stands_before_them() {
    let (mut lab, s, network, _) = lab(1, Version::V1_3);
    lab.switches[s].ignored_barriers = Some(Vec::new());
    let within = Duration::from_secs(3);
    let second = Duration::from_secs(1);
    // 1,024 changes take 3 s at 300 a second, and one behind them takes no longer.
    let mut many = network.program_within(SWITCH, add(0..1_024), within);
    lab.run();
    let mut behind = network.program_within(SWITCH, add([5_000]), within);
    lab.advance(within + 2 * second);
    assert!(poll(&mut many).is_pending() && poll(&mut behind).is_pending());
    lab.advance(2 * second);
    assert_eq!(outcome(&mut many), [ChangeOutcome::Unknown(NoConfirmation::TimedOut); 1_024]);
    assert_eq!(outcome(&mut behind), [ChangeOutcome::Unknown(NoConfirmation::TimedOut)]);
    // No change is before the next one.
    let mut alone = network.program_within(SWITCH, add([6_000]), within);
    lab.advance(within + second);
    assert_eq!(outcome(&mut alone), [ChangeOutcome::Unknown(NoConfirmation::TimedOut)]);
}
