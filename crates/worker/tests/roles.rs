//! Roles: standbys, orders, and what the switch says of them, on both versions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod lab;

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bellrock_api::openflow::{
    Bytes, Experimenter, FlowStats, FromSwitch, List, NICIRA, PacketOut, PortState, RoleExtension,
    RoleKind, RoleMessage, RoleReason, RoleStatus, ToSwitch,
};
use bellrock_api::runtime::RoleControl;
use bellrock_api::{
    Action, App, Change, ChangeOutcome, ControllerRole, Cookie, Dpid, EarlierFlows, EndReason,
    Error, ErrorCode, ErrorMessage, Event, Flow, GrantedRole, Handler, MacAddr, Match, Network,
    NoConfirmation, PacketIn, Port, PortDesc, PortReason, PortStatus, Result, RoleError, RoleOrder,
    RoleOrderFuture, Switch, SwitchInfo, Verdict, Version, Xid,
};
use bellrock_session::{FirstRole, SwitchDescription};
use bellrock_worker::WorkerSettings;
use lab::{FakeRoles, Lab, Notes, SwitchId, told};

const BOTH: [Version; Version::ALL.len()] = Version::ALL;
const DPID: Dpid = Dpid(5);
/// Type of a flow_mod, and of a request for statistics in 1.0.
const FLOW_MOD: u8 = 14;
const STATS_REQUEST: u8 = 16;

/// Notes what it sees. Adopts every flow.
#[derive(Clone, Default)]
struct Watching(Notes);

impl App for Watching {
    type Handler = Watching;

    fn name(&self) -> &'static str {
        "watching"
    }

    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Adopt
    }

    fn switch_up(&self, _: &Network, info: &SwitchInfo) -> Watching {
        self.0.note(format!("made as {}", info.role));
        self.clone()
    }
}

impl Handler for Watching {
    fn adopt(&mut self, _: &mut Switch<'_>, flow: &FlowStats<'_>) -> Result<bool> {
        self.0.note(format!("adopts {:x}", flow.cookie & !Cookie::MASK));
        Ok(true)
    }

    fn switch_up(&mut self, _: &mut Switch<'_>) -> Result<()> {
        self.0.note("up");
        Ok(())
    }

    fn packet_in(&mut self, _: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        self.0.note(format!("packet of {}", packet.data().len()));
        Ok(Verdict::Consume)
    }

    fn port_status(&mut self, _: &mut Switch<'_>, status: &PortStatus) -> Result<()> {
        self.0.note(format!("port {}", status.desc.port));
        Ok(())
    }

    fn tick(&mut self, _: &mut Switch<'_>) -> Result<()> {
        self.0.note("tick");
        Ok(())
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.0.note(format!("down as {}", info.role));
    }
}

fn settings(first_role: FirstRole) -> WorkerSettings {
    let mut settings = WorkerSettings::default();
    settings.session.first_role = first_role;
    settings
}

/// A connected switch with roles, and what the app has seen.
fn connected(version: Version, first_role: FirstRole) -> (Lab, SwitchId, Notes) {
    let notes = Notes::default();
    let mut lab = Lab::new(1, settings(first_role), vec![Box::new(Watching(notes.clone()))]);
    let mut description = SwitchDescription::new(DPID.0);
    description.ports = vec![port(1)];
    let id = lab.connect(0, version, description);
    lab.switches[id].roles = FakeRoles::equal();
    lab.run();
    (lab, id, notes)
}

fn port(number: u32) -> PortDesc {
    let name = bellrock_api::openflow::FixedStr::new("eth");
    PortDesc::new(Port(number), MacAddr::from_u64(number.into()), name)
}

fn order(lab: &Lab, order: RoleOrder) -> RoleOrderFuture {
    lab.shared.network().set_role(DPID, order)
}

/// Runs the lab; the order must have its outcome then.
fn outcome(lab: &mut Lab, ordered: RoleOrderFuture) -> Result<GrantedRole, RoleError> {
    lab.run();
    match poll(ordered) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("the order has no outcome"),
    }
}

fn poll(ordered: RoleOrderFuture) -> Poll<Result<GrantedRole, RoleError>> {
    pin!(ordered).poll(&mut Context::from_waker(Waker::noop()))
}

fn ordered(lab: &mut Lab, role: RoleOrder) -> Result<GrantedRole, RoleError> {
    let ordered = order(lab, role);
    outcome(lab, ordered)
}

const fn master(generation_id: u64) -> RoleOrder {
    RoleOrder::Master { generation_id }
}

const SLAVE: RoleOrder = RoleOrder::Slave { generation_id: None };

/// A granted role. 1.0 has no generation ids.
fn granted(
    version: Version,
    role: ControllerRole,
    generation: u64,
) -> Result<GrantedRole, RoleError> {
    let generation_id = (version == Version::V1_3).then_some(generation);
    Ok(GrantedRole { role, generation_id })
}

/// Role of the switch that is up.
fn up(lab: &Lab) -> Option<ControllerRole> {
    lab.shared.network().switch(DPID).map(|info| info.role)
}

/// Role of the switch that stands by.
fn standby(lab: &Lab) -> Option<ControllerRole> {
    lab.shared.network().standbys().load().get(DPID).map(|info| info.role)
}

/// The messages that the switch received, without requests for roles.
fn received(lab: &mut Lab, id: SwitchId) -> Vec<String> {
    let all = lab.switches[id].take();
    all.into_iter().filter(|text| text != "RoleRequest" && text != "Experimenter").collect()
}

/// The switch sends a role_status.
fn role_status(lab: &mut Lab, id: SwitchId, role: RoleKind) {
    let status = RoleStatus {
        role: RoleMessage { role, generation_id: 9 },
        reason: RoleReason::MasterRequest,
    };
    let mut out = bellrock_api::openflow::Out::with_capacity(64);
    RoleExtension::Status(status).write(Version::V1_3, 0, &mut out).unwrap();
    lab.send_bytes(id, out.as_slice());
    lab.run();
}

/// The switch refuses a flow_mod so.
fn refuse(lab: &mut Lab, id: SwitchId, code: ErrorCode) {
    refuse_message(lab, id, code, FLOW_MOD);
}

/// The same for a message of this type.
fn refuse_message(lab: &mut Lab, id: SwitchId, code: ErrorCode, kind: u8) {
    let quoted = [1, kind, 0, 8, 0, 0, 0, 1];
    lab.send(id, &FromSwitch::Error(ErrorMessage::Standard { code, data: Bytes(&quoted) }));
    lab.run();
}

/// The switch refuses the message with this xid, since the controller is slave.
fn refuse_slave(lab: &mut Lab, id: SwitchId, xid: u32) {
    let data = Bytes(&[4, FLOW_MOD, 0, 8, 0, 0, 0, 1]);
    let error = ErrorMessage::Standard { code: ErrorCode::RequestIsSlave, data };
    let mut out = bellrock_api::openflow::Out::with_capacity(64);
    FromSwitch::Error(error).encode(Version::V1_3, xid, &mut out).unwrap();
    lab.send_bytes(id, out.as_slice());
    lab.run();
}

/// The xid of the last message that the switch received.
fn last_xid(lab: &Lab, id: SwitchId) -> u32 {
    let message = lab.switches[id].received.last().unwrap();
    u32::from_be_bytes(message[4..8].try_into().unwrap())
}

/// The switch connects again, with roles and this newest generation id.
fn reconnects(lab: &mut Lab, old: SwitchId, version: Version, generation: Option<u64>) -> SwitchId {
    lab.hang_up(old);
    lab.run();
    let id = lab.connect(0, version, SwitchDescription::new(DPID.0));
    lab.switches[id].roles = FakeRoles { generation, ..FakeRoles::equal() };
    lab.run();
    id
}

/// Why the switch went down, as published.
fn why_down(lab: &Lab) -> Vec<EndReason> {
    let events = lab.shared.network().events().latest(usize::MAX);
    let why = |event: &Event| match event {
        Event::SwitchDown { why, .. } => Some(why.reason),
        _ => None,
    };
    events.iter().filter_map(|happened| why(&happened.event)).collect()
}

#[test]
fn a_standby_is_ready_and_neither_cleaned_nor_up() {
    for version in BOTH {
        let (mut lab, id, notes) = connected(version, FirstRole::Standby);
        let left = told(version, &[(Cookie::of_app("watching").with(1), 7, Port(2))]);
        lab.switches[id].flows = Some(left);
        lab.packet_in(id, 1, None, &[0; 60]);
        let mut down = port(1);
        down.state = PortState::LINK_DOWN;
        let status = PortStatus { reason: PortReason::Modify, desc: down };
        lab.send(id, &FromSwitch::PortStatus(status));
        lab.advance(Duration::from_secs(90));
        assert_eq!(received(&mut lab, id), [""; 0], "{version}");
        assert_eq!(lab.switches[id].asked_for_flows, None, "{version}");
        assert!(!lab.is_configured(id) && !lab.is_closed(id));
        assert_eq!(notes.take(), [""; 0]);
        assert_eq!(lab.counters("packet_ins_standby"), [1]);
        assert_eq!(up(&lab), None);
        // The switch knows that it stands by.
        assert_eq!(lab.switches[id].roles.kind, Some(RoleKind::Slave));
        assert_eq!(standby(&lab), Some(ControllerRole::Slave));
        let info = lab.shared.network().standbys().load().get(DPID).cloned().unwrap();
        assert!(info.version == version && info.ports.iter().all(|port| !port.is_up()));
    }
}

#[test]
fn packets_of_a_standby_are_dropped_from_the_first_one() {
    for version in BOTH {
        let notes = Notes::default();
        let app = Box::new(Watching(notes.clone()));
        let mut lab = Lab::new(1, settings(FirstRole::Standby), vec![app]);
        let id = lab.connect(0, version, SwitchDescription::new(DPID.0));
        lab.switches[id].roles = FakeRoles::equal();
        lab.early_packet_in(id, 1, &[0; 60]);
        lab.run();
        assert_eq!(ordered(&mut lab, master(3)), granted(version, ControllerRole::Master, 3));
        assert_eq!(notes.take(), ["made as master", "up"], "{version}");
        assert_eq!(lab.counters("packet_ins_standby"), [1]);
    }
}

#[test]
fn a_connection_requests_no_role_unless_it_is_ordered_to() {
    for version in BOTH {
        let (mut lab, id, notes) = connected(version, FirstRole::Equal);
        lab.advance(Duration::from_millis(900));
        let sent = lab.switches[id].take();
        assert!(sent.iter().all(|text| text != "RoleRequest" && text != "Experimenter"));
        assert!(lab.is_configured(id));
        assert_eq!(notes.take(), ["made as equal", "up"]);
        assert_eq!((up(&lab), standby(&lab)), (Some(ControllerRole::Equal), None));
    }
}

#[test]
fn a_standby_that_takes_over_comes_up_as_after_a_connect() {
    for version in BOTH {
        for (role, generation) in [(master(7), 7), (RoleOrder::Equal, 0)] {
            let (mut lab, id, notes) = connected(version, FirstRole::Standby);
            let left = told(version, &[(Cookie::of_app("watching").with(1), 0x8001, Port(2))]);
            lab.switches[id].flows = Some(left);
            let expected = granted(version, role.role(), generation);
            assert_eq!(ordered(&mut lab, role), expected, "{version}");
            assert!(lab.is_configured(id));
            assert_eq!((up(&lab), standby(&lab)), (Some(role.role()), None));
            let seen = notes.take();
            let made = format!("made as {}", role.role());
            assert_eq!(seen.first(), Some(&made), "{version}");
            assert_eq!(seen.last().map(String::as_str), Some("up"), "{version}");
            assert!(lab.switches[id].asked_for_flows.is_some());
            let sent = received(&mut lab, id);
            let entries = sent.iter().filter(|text| text.starts_with("flow_mod Add any"));
            assert_eq!(entries.count(), usize::from(version == Version::V1_3), "{sent:?}");
            lab.packet_in(id, 1, None, &[0; 60]);
            lab.run();
            assert_eq!(notes.take(), ["packet of 60"]);
        }
    }
}

#[test]
fn a_switch_that_is_up_stands_by_on_an_order_and_comes_back() {
    for version in BOTH {
        let (mut lab, id, notes) = connected(version, FirstRole::Equal);
        assert_eq!(ordered(&mut lab, master(1)), granted(version, ControllerRole::Master, 1));
        // Only its role has changed.
        assert_eq!(notes.take(), ["made as equal", "up"]);
        assert_eq!(up(&lab), Some(ControllerRole::Master));
        received(&mut lab, id);
        assert_eq!(ordered(&mut lab, SLAVE), granted(version, ControllerRole::Slave, 1));
        lab.packet_in(id, 1, None, &[0; 60]);
        lab.advance(Duration::from_secs(3));
        // At once: the switch has not answered yet.
        assert_eq!(notes.take(), ["down as master"], "{version}");
        assert_eq!(received(&mut lab, id), [""; 0], "{version}");
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Slave)));
        assert_eq!(why_down(&lab), [EndReason::StoodBy]);
        let barrier = lab.shared.network().send(DPID, &ToSwitch::BarrierRequest);
        assert_eq!(barrier, Err(Error::UnknownSwitch(DPID)));
        assert_eq!(ordered(&mut lab, master(2)), granted(version, ControllerRole::Master, 2));
        assert_eq!(notes.take(), ["made as master", "up"]);
        assert_eq!((up(&lab), standby(&lab)), (Some(ControllerRole::Master), None));
        assert_eq!(
            (lab.counters("switches_up"), lab.counters("switches_down")),
            (vec![2], vec![1])
        );
        assert_eq!(lab.counters("switches_standby"), [1]);
    }
}

#[test]
fn a_controller_that_is_made_slave_stands_by_at_once() {
    let status = |lab: &mut Lab, id| role_status(lab, id, RoleKind::Slave);
    let is_slave = |lab: &mut Lab, id| refuse(lab, id, ErrorCode::RequestIsSlave);
    let no_permission = |lab: &mut Lab, id| refuse(lab, id, ErrorCode::RequestPermission);
    type Demotes = fn(&mut Lab, SwitchId);
    let ways: [(Version, Demotes); 3] =
        [(Version::V1_3, status), (Version::V1_3, is_slave), (Version::V1_0, no_permission)];
    for (version, demote) in ways {
        let (mut lab, id, notes) = connected(version, FirstRole::Equal);
        ordered(&mut lab, master(1)).unwrap();
        received(&mut lab, id);
        notes.take();
        demote(&mut lab, id);
        // Errors of what was sent before are no news.
        demote(&mut lab, id);
        lab.advance(Duration::from_secs(3));
        assert_eq!(notes.take(), ["down as slave"], "{version}");
        assert_eq!(received(&mut lab, id), [""; 0], "{version}");
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Slave)));
        assert_eq!(why_down(&lab), [EndReason::Demoted]);
        // Who was ordered to be master needs an order to be it again.
        if version == Version::V1_3 {
            role_status(&mut lab, id, RoleKind::Equal);
            assert_eq!(up(&lab), None);
            assert_eq!(lab.counters("role_reports_ignored"), [1]);
        }
        assert_eq!(ordered(&mut lab, master(10)), granted(version, ControllerRole::Master, 10));
        assert_eq!(notes.take(), ["made as master", "up"]);
    }
}

#[test]
fn without_a_role_no_permission_of_1_0_is_an_error_as_any() {
    let (mut lab, id, notes) = connected(Version::V1_0, FirstRole::Equal);
    refuse(&mut lab, id, ErrorCode::RequestPermission);
    assert_eq!(notes.take(), ["made as equal", "up"]);
    assert_eq!(up(&lab), Some(ControllerRole::Equal));
}

#[test]
fn a_switch_may_give_access_back_but_not_to_who_was_ordered_to_stand_by() {
    let (mut lab, id, notes) = connected(Version::V1_3, FirstRole::Equal);
    role_status(&mut lab, id, RoleKind::Slave);
    assert_eq!(up(&lab), None);
    role_status(&mut lab, id, RoleKind::Equal);
    assert_eq!(up(&lab), Some(ControllerRole::Equal));
    let all = ["made as equal", "up", "down as slave", "made as equal", "up"];
    assert_eq!(notes.take(), all);
    for order in [Some(SLAVE), None] {
        let first = order.map_or(FirstRole::Standby, |_| FirstRole::Equal);
        let (mut lab, id, _) = connected(Version::V1_3, first);
        if let Some(order) = order {
            ordered(&mut lab, order).unwrap();
        }
        role_status(&mut lab, id, RoleKind::Master);
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Master)));
    }
}

#[test]
fn a_stale_order_changes_nothing_and_names_the_newest_generation() {
    for first in [FirstRole::Equal, FirstRole::Standby] {
        let (mut lab, id, _) = connected(Version::V1_3, first);
        lab.switches[id].roles.generation = Some(9);
        let before = (up(&lab), standby(&lab));
        for stale in [master(8), RoleOrder::Slave { generation_id: Some(8) }] {
            let error = Err(RoleError::Stale { newest: Some(9) });
            assert_eq!(ordered(&mut lab, stale), error);
            assert_eq!((up(&lab), standby(&lab)), before);
        }
        let granted = granted(Version::V1_3, ControllerRole::Master, 10);
        assert_eq!(ordered(&mut lab, master(10)), granted);
    }
}

#[test]
fn a_slave_takes_the_newest_generation_of_the_switch_even_if_elections_come_between() {
    let (mut lab, id, _) = connected(Version::V1_3, FirstRole::Equal);
    lab.switches[id].roles.generation = Some(u64::MAX / 2);
    let expected = granted(Version::V1_3, ControllerRole::Slave, u64::MAX / 2);
    assert_eq!(ordered(&mut lab, SLAVE), expected);
    // Always a newer one between the question and the request: the number of requests is bounded.
    let (mut lab, id, _) = connected(Version::V1_3, FirstRole::Equal);
    lab.switches[id].roles.elections = 3;
    assert_eq!(ordered(&mut lab, SLAVE), Err(RoleError::Stale { newest: Some(12) }));
    let requests = lab.switches[id].take();
    assert_eq!(requests.iter().filter(|text| *text == "RoleRequest").count(), 4 + 4 + 1);
    // It was ordered to stand by, whatever the switch takes it for.
    assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Equal)));
    role_status(&mut lab, id, RoleKind::Master);
    assert_eq!(up(&lab), None);
}

#[test]
fn a_generation_id_after_the_wrap_around_is_newer() {
    let (mut lab, id, _) = connected(Version::V1_3, FirstRole::Equal);
    lab.switches[id].roles.generation = Some(u64::MAX - 1);
    let expected = granted(Version::V1_3, ControllerRole::Master, 3);
    assert_eq!(ordered(&mut lab, master(3)), expected);
}

#[test]
fn a_switch_without_roles_obeys_whoever_writes() {
    let refuses = |code| FakeRoles { refuses: Some(code), ..FakeRoles::default() };
    for (version, code) in [
        (Version::V1_0, None),
        (Version::V1_0, Some(ErrorCode::RequestBadExperimenter)),
        (Version::V1_0, Some(ErrorCode::RequestBadType)),
        (Version::V1_3, None),
        (Version::V1_3, Some(ErrorCode::RoleUnsupported)),
    ] {
        let (mut lab, id, notes) = connected(version, FirstRole::Equal);
        lab.switches[id].roles = code.map_or_else(FakeRoles::default, refuses);
        assert_eq!(ordered(&mut lab, master(1)), Err(RoleError::Unsupported), "{code:?}");
        assert_eq!(up(&lab), Some(ControllerRole::Equal));
        let equal = GrantedRole { role: ControllerRole::Equal, generation_id: None };
        assert_eq!(ordered(&mut lab, RoleOrder::Equal), Ok(equal));
        notes.take();
        // Nobody else keeps it from writing, so it does so itself.
        assert_eq!(ordered(&mut lab, SLAVE), Err(RoleError::Unsupported));
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Equal)));
        assert_eq!(notes.take(), ["down as equal"]);
        assert_eq!(ordered(&mut lab, master(2)), Err(RoleError::Unsupported));
        assert_eq!(up(&lab), None);
        assert_eq!(ordered(&mut lab, RoleOrder::Equal), Ok(equal));
        assert_eq!(up(&lab), Some(ControllerRole::Equal));
    }
}

#[test]
fn another_refusal_is_reported_and_no_answer_too() {
    for version in BOTH {
        let (mut lab, id, _) = connected(version, FirstRole::Equal);
        lab.switches[id].roles.refuses = Some(ErrorCode::RequestBadLength);
        let refused = ordered(&mut lab, master(1));
        assert!(matches!(refused, Err(RoleError::Refused(_))), "{refused:?}");
        assert_eq!(up(&lab), Some(ControllerRole::Equal));
        lab.switches[id].roles = FakeRoles::default();
        lab.switches[id].ignored_barriers = Some(Vec::new());
        let (as_master, as_slave) = (order(&lab, master(1)), order(&lab, SLAVE));
        lab.advance(Duration::from_secs(130));
        assert_eq!(poll(as_master), Poll::Ready(Err(RoleError::Unanswered)));
        assert_eq!(poll(as_slave), Poll::Ready(Err(RoleError::Unanswered)));
        // It was ordered to stand by, so it does.
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Equal)));
    }
}

#[test]
fn orders_are_bounded_and_end_with_the_connection() {
    for version in BOTH {
        let (mut lab, id, _) = connected(version, FirstRole::Equal);
        lab.switches[id].silent = true;
        let orders: Vec<_> = (1..=9).map(|generation| order(&lab, master(generation))).collect();
        lab.run();
        lab.hang_up(id);
        lab.run();
        let outcomes = orders.into_iter().map(poll).collect::<Vec<_>>();
        let (last, first) = outcomes.split_last().unwrap();
        assert!(first.iter().all(|its| *its == Poll::Ready(Err(RoleError::Disconnected))));
        let full = Error::TooManyRequests { waiting: 8 };
        assert_eq!(*last, Poll::Ready(Err(RoleError::NotSent(full))));
        let gone = order(&lab, SLAVE);
        assert_eq!(poll(gone), Poll::Ready(Err(RoleError::NotSent(Error::UnknownSwitch(DPID)))));
    }
}

#[test]
fn what_was_on_its_way_is_not_sent_as_a_slave() {
    let (mut lab, id, _) = connected(Version::V1_3, FirstRole::Equal);
    received(&mut lab, id);
    let actions = [Action::output(Port(9))];
    let packet = PacketOut {
        buffer_id: None,
        in_port: Port::CONTROLLER,
        actions: List::of(&actions),
        data: Bytes(&[0; 60]),
    };
    let network = lab.shared.network();
    network.send(DPID, &ToSwitch::PacketOut(packet)).unwrap();
    role_status(&mut lab, id, RoleKind::Slave);
    assert_eq!(received(&mut lab, id), [""; 0]);
    assert_eq!(lab.counters("mail_undeliverable"), [1]);
}

#[test]
fn a_program_that_a_demotion_overtakes_is_unknown_or_not_sent() {
    struct Programming;
    impl App for Programming {
        type Handler = ();
        fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
        fn start(&self, network: &Network) {
            let network = network.clone();
            let notes: std::sync::Arc<Outcomes> = network.extension();
            network.clone().spawn("program", async move {
                while network.switch(DPID).is_none() {
                    network.watch_switches().changed(network.switches().version()).await;
                }
                let flow = Flow::new(Match::any()).output(Port(2));
                let outcomes = network.program(DPID, vec![Change::Add(flow)]).await;
                notes.0.lock().unwrap().extend(outcomes);
            });
        }
    }
    #[derive(Default)]
    struct Outcomes(std::sync::Mutex<Vec<ChangeOutcome>>);
    for version in BOTH {
        let mut lab = Lab::with_app(Programming);
        let id = lab.connect(0, version, SwitchDescription::new(DPID.0));
        lab.switches[id].roles = FakeRoles::equal();
        lab.switches[id].ignored_barriers = Some(Vec::new());
        lab.advance(Duration::from_secs(6));
        ordered(&mut lab, SLAVE).unwrap();
        let outcomes: std::sync::Arc<Outcomes> = lab.shared.network().extension();
        let lost = ChangeOutcome::Unknown(NoConfirmation::Disconnected);
        assert_eq!(*outcomes.0.lock().unwrap(), [lost], "{version}");
    }
    // A refusal that demotes is that of its change.
    let mut lab = Lab::with_app(Programming);
    let id = lab.connect(0, Version::V1_3, SwitchDescription::new(DPID.0));
    lab.switches[id].ignored_barriers = Some(Vec::new());
    lab.advance(Duration::from_secs(6));
    let change = last_xid(&lab, id);
    refuse_slave(&mut lab, id, change);
    let outcomes: std::sync::Arc<Outcomes> = lab.shared.network().extension();
    let outcomes = outcomes.0.lock().unwrap();
    assert!(matches!(outcomes[..], [ChangeOutcome::Refused(_)]), "{outcomes:?}");
    assert_eq!(up(&lab), None);
}

#[test]
fn an_order_follows_its_switch_to_another_worker() {
    for version in BOTH {
        let app = Box::new(Watching::default());
        let mut lab = Lab::new(2, WorkerSettings::default(), vec![app]);
        let id = lab.connect(0, version, SwitchDescription::new(DPID.0));
        lab.switches[id].roles = FakeRoles::equal();
        lab.run();
        // One is on its way when the switch moves, one waits in the mailbox, one comes later.
        lab.switches[id].silent = true;
        let first = order(&lab, master(1));
        lab.run();
        let second = order(&lab, RoleOrder::Equal);
        assert!(lab.shared.hand_over(DPID, 1));
        let third = order(&lab, master(2));
        lab.run();
        lab.switches[id].silent = false;
        lab.run();
        let role = |role, generation| Poll::Ready(granted(version, role, generation));
        assert_eq!(poll(first), role(ControllerRole::Master, 1), "{version}");
        assert_eq!(poll(second), role(ControllerRole::Equal, 1), "{version}");
        assert_eq!(poll(third), role(ControllerRole::Master, 2), "{version}");
        assert_eq!(lab.shared.worker_of(DPID), Some(1));
        assert_eq!(up(&lab), Some(ControllerRole::Master));
    }
}

#[test]
fn a_standby_owns_its_datapath_id() {
    for version in BOTH {
        let (mut lab, first, _) = connected(version, FirstRole::Standby);
        let second = lab.connect(0, version, SwitchDescription::new(DPID.0));
        lab.run();
        assert!(lab.is_closed(second) && !lab.is_closed(first), "{version}");
        lab.hang_up(first);
        lab.run();
        assert_eq!(standby(&lab), None);
    }
}

#[test]
fn a_standby_is_held_before_the_switch_answers_and_if_its_request_is_stale() {
    let stale = FakeRoles { elections: 3, ..FakeRoles::equal() };
    for roles in [FakeRoles::default(), stale] {
        let notes = Notes::default();
        let app = Box::new(Watching(notes.clone()));
        let mut lab = Lab::new(1, settings(FirstRole::Standby), vec![app]);
        let id = lab.connect(0, Version::V1_3, SwitchDescription::new(DPID.0));
        lab.switches[id].ignored_barriers = Some(Vec::new());
        lab.switches[id].roles = roles;
        lab.advance(Duration::from_secs(6));
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Equal)));
        for role in [RoleKind::Equal, RoleKind::Master] {
            role_status(&mut lab, id, role);
        }
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Master)));
        assert!(!lab.is_configured(id));
        assert_eq!(notes.take(), [""; 0]);
    }
}

#[test]
fn a_switch_gives_access_back_only_so_often() {
    const PAIRS: u64 = 500;
    let (mut lab, id, _) = connected(Version::V1_3, FirstRole::Equal);
    let mut out = bellrock_api::openflow::Out::with_capacity(1 << 17);
    let mut status = |role| {
        let role = RoleMessage { role, generation_id: 9 };
        let status = RoleStatus { role, reason: RoleReason::Config };
        RoleExtension::Status(status).write(Version::V1_3, 0, &mut out).unwrap();
    };
    for _ in 0..PAIRS {
        status(RoleKind::Slave);
        status(RoleKind::Equal);
    }
    lab.send_bytes(id, out.as_slice());
    lab.run();
    assert_eq!(lab.counters("switches_standby"), [1 + 4]);
    assert_eq!(lab.counters("role_reports_ignored"), [PAIRS - 4]);
    assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Equal)));
    lab.advance(Duration::from_secs(60));
    role_status(&mut lab, id, RoleKind::Equal);
    assert_eq!(up(&lab), Some(ControllerRole::Equal));
}

#[test]
fn an_order_to_stand_by_needs_no_answer_and_replaces_what_waits() {
    for version in BOTH {
        let (mut lab, id, notes) = connected(version, FirstRole::Equal);
        lab.switches[id].silent = true;
        let (first, second) = (order(&lab, master(1)), order(&lab, master(2)));
        lab.run();
        notes.take();
        let third = order(&lab, SLAVE);
        lab.run();
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Equal)));
        assert_eq!(poll(second), Poll::Ready(Err(RoleError::Replaced)), "{version}");
        lab.switches[id].silent = false;
        lab.run();
        let role = |role| Poll::Ready(granted(version, role, 1));
        assert_eq!(poll(first), role(ControllerRole::Master), "{version}");
        assert_eq!(poll(third), role(ControllerRole::Slave), "{version}");
        assert_eq!(notes.take(), ["down as equal"], "{version}");
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Slave)));
    }
}

#[test]
fn a_switch_that_refuses_only_the_change_has_roles() {
    for order in [master(3), RoleOrder::Equal] {
        let (mut lab, id, notes) = connected(Version::V1_3, FirstRole::Standby);
        lab.switches[id].roles.refuses_changes = Some(ErrorCode::RoleUnsupported);
        let refused = ordered(&mut lab, order);
        assert!(matches!(refused, Err(RoleError::Refused(_))), "{refused:?}");
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Slave)));
        assert_eq!(notes.take(), [""; 0]);
    }
}

#[test]
fn another_role_than_the_ordered_one_ends_no_standby() {
    for version in BOTH {
        let (mut lab, id, notes) = connected(version, FirstRole::Standby);
        lab.switches[id].roles.grants = Some(RoleKind::Equal);
        let other = Err(RoleError::Other(ControllerRole::Equal));
        assert_eq!(ordered(&mut lab, master(3)), other, "{version}");
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Equal)));
        assert_eq!(notes.take(), [""; 0]);
    }
}

#[test]
fn an_order_to_stand_by_holds_for_the_next_connection_too() {
    for version in BOTH {
        let (mut lab, id, _) = connected(version, FirstRole::Equal);
        ordered(&mut lab, SLAVE).unwrap();
        let id = reconnects(&mut lab, id, version, Some(4));
        assert!(!lab.is_configured(id), "{version}");
        assert_eq!(received(&mut lab, id), [""; 0], "{version}");
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Slave)));
        // Other switches begin as ever.
        let other = lab.connect(0, version, SwitchDescription::new(99));
        lab.run();
        assert!(lab.is_configured(other) && lab.shared.network().switch(Dpid(99)).is_some());
        // Until the next order.
        assert!(ordered(&mut lab, master(5)).is_ok());
        assert!(lab.is_configured(id));
    }
}

#[test]
fn a_master_is_master_again_after_a_flap_unless_another_one_was_elected() {
    for (version, newest, comes_back) in [
        (Version::V1_0, None, true),
        (Version::V1_3, Some(3), true),
        (Version::V1_3, None, true),
        (Version::V1_3, Some(4), false),
    ] {
        for first in [FirstRole::Equal, FirstRole::Standby] {
            let (mut lab, id, _) = connected(version, first);
            ordered(&mut lab, master(3)).unwrap();
            let id = reconnects(&mut lab, id, version, newest);
            let roles = match comes_back {
                true => (Some(ControllerRole::Master), None),
                false => (None, Some(ControllerRole::Equal)),
            };
            assert_eq!((up(&lab), standby(&lab)), roles, "{version} {newest:?}");
            assert_eq!(lab.is_configured(id), comes_back);
        }
    }
    // Equal again, in a controller that stands by otherwise.
    for version in BOTH {
        let (mut lab, id, _) = connected(version, FirstRole::Standby);
        ordered(&mut lab, RoleOrder::Equal).unwrap();
        reconnects(&mut lab, id, version, None);
        assert_eq!(up(&lab), Some(ControllerRole::Equal), "{version}");
    }
}

#[test]
fn a_lost_election_is_not_forgotten_with_the_connection() {
    for (version, is_connected) in [
        (Version::V1_0, true),
        (Version::V1_3, true),
        (Version::V1_0, false),
        (Version::V1_3, false),
    ] {
        let (mut lab, id, _) = connected(version, FirstRole::Equal);
        ordered(&mut lab, master(3)).unwrap();
        if !is_connected {
            lab.hang_up(id);
            lab.run();
            let gone = Err(RoleError::NotSent(Error::UnknownSwitch(DPID)));
            assert_eq!(ordered(&mut lab, SLAVE), gone);
        } else if version == Version::V1_0 {
            refuse(&mut lab, id, ErrorCode::RequestPermission);
        } else {
            refuse(&mut lab, id, ErrorCode::RequestIsSlave);
        }
        if is_connected {
            lab.hang_up(id);
            lab.run();
        }
        let id = lab.connect(0, version, SwitchDescription::new(DPID.0));
        lab.switches[id].roles = FakeRoles::equal();
        lab.run();
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Slave)), "{version}");
    }
}

#[test]
fn in_1_0_no_permission_demotes_only_for_what_a_slave_may_not_send() {
    let (mut lab, id, notes) = connected(Version::V1_0, FirstRole::Equal);
    ordered(&mut lab, master(1)).unwrap();
    notes.take();
    refuse_message(&mut lab, id, ErrorCode::RequestPermission, STATS_REQUEST);
    assert_eq!(up(&lab), Some(ControllerRole::Master));
    assert_eq!(notes.take(), [""; 0]);
    refuse_message(&mut lab, id, ErrorCode::RequestPermission, FLOW_MOD);
    assert_eq!(up(&lab), None);
}

#[test]
fn no_handler_answers_the_error_that_ends_its_time() {
    #[derive(Clone)]
    struct Stubborn(Notes);
    impl App for Stubborn {
        type Handler = Stubborn;
        fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Stubborn {
            self.clone()
        }
    }
    impl Handler for Stubborn {
        fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
            switch.barrier()?;
            Ok(())
        }
        fn error(&mut self, switch: &mut Switch<'_>, _: Xid, _: &ErrorMessage<'_>) -> Result<()> {
            self.0.note("error");
            switch.barrier()?;
            Ok(())
        }
    }
    let notes = Notes::default();
    let mut lab = Lab::with_app(Stubborn(notes.clone()));
    let id = lab.connect(0, Version::V1_3, SwitchDescription::new(DPID.0));
    lab.switches[id].ignored_barriers = Some(Vec::new());
    lab.advance(Duration::from_secs(6));
    let own = lab.switches[id].ignored_barriers.as_ref().unwrap().last().copied().unwrap();
    received(&mut lab, id);
    refuse_slave(&mut lab, id, own);
    assert_eq!(notes.take(), [""; 0]);
    assert_eq!(received(&mut lab, id), [""; 0]);
    assert_eq!(up(&lab), None);
}

#[test]
fn mail_of_one_term_is_not_delivered_in_the_next() {
    /// Adopts nothing, so that its switches come up at once.
    struct Plain;
    impl App for Plain {
        type Handler = ();
        fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
    }
    let mut lab = Lab::with_app(Plain);
    let id = lab.up(Version::V1_3, DPID.0);
    let network = lab.shared.network();
    let actions = [Action::output(Port(9))];
    let message = ToSwitch::PacketOut(PacketOut {
        buffer_id: None,
        in_port: Port::CONTROLLER,
        actions: List::of(&actions),
        data: Bytes(&[0; 60]),
    });
    let is_packet_out = |text: &String| text.starts_with("packet_out");
    network.send(DPID, &message).unwrap();
    for role in [RoleKind::Slave, RoleKind::Equal] {
        let role = RoleMessage { role, generation_id: 9 };
        let status = RoleStatus { role, reason: RoleReason::Config };
        let mut out = bellrock_api::openflow::Out::with_capacity(64);
        RoleExtension::Status(status).write(Version::V1_3, 0, &mut out).unwrap();
        lab.send_bytes(id, out.as_slice());
    }
    lab.run();
    assert_eq!(up(&lab), Some(ControllerRole::Equal));
    assert!(!received(&mut lab, id).iter().any(is_packet_out));
    assert_eq!(lab.counters("mail_undeliverable"), [1]);
    // That of the present term is.
    network.send(DPID, &message).unwrap();
    lab.run();
    assert!(received(&mut lab, id).iter().any(is_packet_out));
}

#[test]
fn replies_reach_the_app_that_has_asked() {
    /// Asks for several things when the switch comes up.
    #[derive(Clone)]
    struct Asking(&'static str, Notes, bool, Network);
    impl App for Asking {
        type Handler = Asking;
        fn name(&self) -> &'static str {
            self.0
        }
        fn switch_up(&self, network: &Network, _: &SwitchInfo) -> Asking {
            Asking(self.0, self.1.clone(), self.2, network.clone())
        }
    }
    impl Handler for Asking {
        fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
            if !self.2 {
                return Ok(());
            }
            let version = switch.version();
            switch.send(&ToSwitch::GetConfigRequest)?;
            switch.send(&ToSwitch::EchoRequest(Bytes(b"hi")))?;
            switch.send(&ToSwitch::FeaturesRequest)?;
            let message = |experimenter, number: u32, data| {
                let kind = Some(number).filter(|_| version == Version::V1_3);
                ToSwitch::Experimenter(Experimenter { experimenter, kind, data: Bytes(data) })
            };
            if version == Version::V1_3 {
                let role = RoleKind::NoChange;
                switch.send(&ToSwitch::RoleRequest(RoleMessage { role, generation_id: 0 }))?;
            }
            // Only an order changes the role.
            let master = RoleMessage { role: RoleKind::Master, generation_id: 0 };
            let is_master = [0, 0, 0, 10, 0, 0, 0, 1];
            let by_extension = match version {
                Version::V1_0 => message(NICIRA, 10, &is_master),
                Version::V1_3 => message(NICIRA, 10, &is_master[4..]),
            };
            for change in [ToSwitch::RoleRequest(master), by_extension] {
                assert_eq!(switch.send(&change), Err(Error::RoleChange));
                assert_eq!(self.3.send(DPID, &change), Err(Error::RoleChange));
            }
            switch.send(&message(7, 1, &[0, 0, 0, 1]))?;
            Ok(())
        }
        fn answer(&mut self, _: &mut Switch<'_>, _: Xid, answer: &FromSwitch<'_>) -> Result<()> {
            self.1.note(format!("{} {:?}", self.0, answer.kind()));
            Ok(())
        }
    }
    for version in BOTH {
        let notes = Notes::default();
        let apps = [("first", false), ("second", true)];
        let apps = apps.map(|(name, asks)| {
            let network = bellrock_api::runtime::EmptyNetwork::network();
            Box::new(Asking(name, notes.clone(), asks, network)) as _
        });
        let mut lab = Lab::new(1, WorkerSettings::default(), apps.into());
        let id = lab.connect(0, version, SwitchDescription::new(DPID.0));
        lab.switches[id].roles = FakeRoles::equal();
        lab.run();
        let mut expected =
            vec!["second GetConfigReply", "second EchoReply", "second FeaturesReply"];
        expected.extend((version == Version::V1_3).then_some("second RoleReply"));
        assert_eq!(notes.take(), expected);
        // The reply to an experimenter's message.
        let xid = last_xid(&lab, id);
        let kind = (version == Version::V1_3).then_some(2);
        let reply = Experimenter { experimenter: 7, kind, data: Bytes(&[0, 0, 0, 2]) };
        let mut out = bellrock_api::openflow::Out::with_capacity(64);
        FromSwitch::Experimenter(reply).encode(version, xid, &mut out).unwrap();
        lab.send_bytes(id, out.as_slice());
        lab.run();
        assert_eq!(notes.take(), ["second Experimenter"]);
    }
}
