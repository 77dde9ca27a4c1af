//! Packets and events reach the handlers in order, and a handler that fails affects no other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::lab::{Lab, Notes, flow_removed, quietly};
use bellrock_api::openflow::{Bytes, FlowRemoved, FlowRemovedReason, FromSwitch};
use bellrock_api::runtime::DynApp;
use bellrock_api::{
    App, Batch, Cookie, Dpid, ErrorCode, ErrorMessage, FlowMod, Handler, Match, Network, PacketIn,
    Port, Result, Switch, SwitchInfo, ToSwitch, Verdict, Version, Xid,
};
use bellrock_worker::{Drive, MAX_PANICS, SWITCH_COUNTERS, WorkerSettings, WriteMode};

/// Actions of an app, by the first byte of a packet.
const PASS: u8 = 0;
const CONSUME: u8 = 1;
const FAIL: u8 = 2;
const PANIC: u8 = 3;

/// An app that records what it sees.
#[derive(Clone)]
struct Probe {
    name: &'static str,
    seen: Notes,
}

impl Probe {
    fn new(name: &'static str) -> Self {
        Probe { name, seen: Notes::default() }
    }
}

impl App for Probe {
    type Handler = Probe;
    fn name(&self) -> &'static str {
        self.name
    }
    fn switch_up(&self, _: &Network, switch: &SwitchInfo) -> Probe {
        self.seen.note(format!("make {}", switch.dpid.0));
        self.clone()
    }
}

impl Handler for Probe {
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.seen.note(format!("up {}", switch.dpid().0));
        Ok(())
    }
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        self.seen.note(format!("packet {:?}", packet.data()));
        switch.packet_out(packet, Port(9))?;
        match packet.data()[0] {
            PASS => Ok(Verdict::Pass),
            CONSUME => Ok(Verdict::Consume),
            FAIL => Err(bellrock_api::Error::UnknownSwitch(Dpid(0)).into()),
            PANIC => panic!("on purpose"),
            _ => unreachable!(),
        }
    }
    fn flow_removed(&mut self, switch: &mut Switch<'_>, flow: &FlowRemoved<'_>) -> Result<()> {
        self.seen.note(format!("flow_removed {}", switch.cookie().owns(flow.cookie)));
        Ok(())
    }
    fn error(&mut self, _: &mut Switch<'_>, xid: Xid, error: &ErrorMessage<'_>) -> Result<()> {
        self.seen.note(format!("error {:#x} {error:?}", xid.0));
        Ok(())
    }
    fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.seen.note(format!("tick {:?}", switch.now()));
        Ok(())
    }
    fn switch_down(&mut self, info: &SwitchInfo) {
        self.seen.note(format!("down {}", info.dpid.0));
    }
}

fn two(settings: WorkerSettings) -> (Lab, Probe, Probe) {
    let (first, second) = (Probe::new("first"), Probe::new("second"));
    let apps: Vec<Box<dyn DynApp>> = vec![Box::new(first.clone()), Box::new(second.clone())];
    (Lab::new(1, settings, apps), first, second)
}

#[test]
fn packets_go_down_the_chain_in_order_until_they_are_consumed() {
    for version in Version::ALL {
        let (mut lab, first, second) = two(WorkerSettings::default());
        let s = lab.up(version, 5);
        assert_eq!(first.seen.take(), ["make 5", "up 5"]);
        assert_eq!(second.seen.take(), ["make 5", "up 5"]);
        for data in [[PASS, 10], [CONSUME, 11], [PASS, 12]] {
            lab.packet_in(s, 1, None, &data);
        }
        lab.run();
        assert_eq!(first.seen.take(), ["packet [0, 10]", "packet [1, 11]", "packet [0, 12]"]);
        assert_eq!(second.seen.take(), ["packet [0, 10]", "packet [0, 12]"]);
        assert_eq!(lab.switches[s].take().len(), 5);
    }
}

#[test]
fn an_error_takes_back_what_was_written_and_passes_the_packet_on() {
    let (mut lab, first, second) = two(WorkerSettings::default());
    let s = lab.up(Version::V1_3, 5);
    first.seen.take();
    second.seen.take();
    lab.packet_in(s, 1, None, &[FAIL, 1]);
    lab.packet_in(s, 1, None, &[CONSUME, 2]);
    lab.run();
    assert_eq!(second.seen.take(), ["packet [2, 1]"]);
    // The two failures sent nothing; one packet was sent on.
    assert_eq!(lab.switches[s].take().len(), 1);
    assert_eq!(lab.workers[0].0.counters().handler_errors.get(), 2);
}

/// An error of the app's author.
#[derive(Debug)]
struct NoBackend(u8);

impl std::fmt::Display for NoBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no backend for {}", self.0)
    }
}

impl std::error::Error for NoBackend {}

/// Fails at each packet with an error that is not a command's.
struct Balancer;

impl App for Balancer {
    type Handler = Balancer;
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Balancer {
        Balancer
    }
}

impl Handler for Balancer {
    fn packet_in(&mut self, _: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        let headers = packet.headers()?;
        let last = headers.link.map_or(0, |_| packet.data()[13]);
        Err(NoBackend(last))?
    }
}

#[test]
fn an_authors_own_error_is_counted_and_kept_with_its_text_and_type() {
    let mut lab = Lab::with_app(Balancer);
    let s = lab.up(Version::V1_0, 5);
    lab.packet_in(s, 1, None, &[7; 60]);
    lab.packet_in(s, 1, None, &[9; 60]);
    lab.packet_in(s, 1, None, &[1; 3]);
    lab.run();
    let states = lab.shared.app_states();
    assert_eq!(states[0].errors, 3);
    let last = states[0].last_error.as_deref().unwrap();
    assert!(last.contains("(etherparse::err::"), "{last}");
    lab.packet_in(s, 1, None, &[8; 60]);
    lab.run();
    let states = lab.shared.app_states();
    assert_eq!(
        states[0].last_error.as_deref(),
        Some("no backend for 8 (worker::dispatch::NoBackend)")
    );
    assert_eq!(lab.workers[0].0.counters().handler_errors.get(), 4);
}

#[test]
fn a_panic_costs_its_packet_and_nothing_else() {
    let (mut lab, first, second) = two(WorkerSettings::default());
    let s = lab.up(Version::V1_0, 5);
    first.seen.take();
    second.seen.take();
    for data in [[CONSUME, 1], [PANIC, 2], [PASS, 3], [PANIC, 4], [CONSUME, 5]] {
        lab.packet_in(s, 1, None, &data);
    }
    quietly(|| lab.run());
    let seen =
        ["packet [1, 1]", "packet [3, 2]", "packet [0, 3]", "packet [3, 4]", "packet [1, 5]"];
    assert_eq!(first.seen.take(), seen);
    assert_eq!(second.seen.take(), ["packet [0, 3]"]);
    assert_eq!(lab.switches[s].take().len(), 4);
    assert_eq!(lab.workers[0].0.counters().handler_panics.get(), 2);
    // The session still works.
    lab.packet_in(s, 1, None, &[CONSUME, 6]);
    lab.run();
    assert_eq!(lab.switches[s].take().len(), 1);
}

#[test]
fn a_batch_handler_that_panics_before_it_takes_a_packet_does_not_hang() {
    struct Broken;
    impl App for Broken {
        type Handler = Broken;
        fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Broken {
            Broken
        }
    }
    impl Handler for Broken {
        fn packet_ins(&mut self, _: &mut Switch<'_>, _: &mut Batch<'_>) {
            panic!("on purpose");
        }
    }
    let mut lab = Lab::with_app(Broken);
    let s = lab.up(Version::V1_3, 5);
    lab.packet_in(s, 1, None, &[0; 60]);
    lab.packet_in(s, 1, None, &[0; 60]);
    quietly(|| lab.run());
    assert!(lab.workers[0].0.counters().handler_panics.get() > 0);
}

#[test]
fn a_batch_handler_that_panics_between_packets_takes_nothing_back_of_the_apps_before_it() {
    struct Broken;
    impl App for Broken {
        type Handler = Broken;
        fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Broken {
            Broken
        }
    }
    impl Handler for Broken {
        fn packet_ins(&mut self, switch: &mut Switch<'_>, batch: &mut Batch<'_>) {
            batch.for_each(switch, self);
            panic!("on purpose");
        }
    }
    let first = Probe::new("first");
    let apps: Vec<Box<dyn DynApp>> = vec![Box::new(first.clone()), Box::new(Broken)];
    let mut lab = Lab::new(1, WorkerSettings::default(), apps);
    let s = lab.up(Version::V1_3, 5);
    lab.switches[s].take();
    for i in 0..3 {
        lab.packet_in(s, 1, None, &[PASS, i]);
    }
    quietly(|| lab.run());
    assert!(lab.workers[0].0.counters().handler_panics.get() > 0);
    assert_eq!(lab.switches[s].take().len(), 3, "what the first app wrote goes out");
}

#[test]
fn one_read_is_answered_in_one_write_and_split_messages_wait() {
    let (mut lab, first, _) = two(WorkerSettings::default());
    let s = lab.up(Version::V1_3, 5);
    first.seen.take();
    lab.writes(s);
    for i in 0..200 {
        lab.packet_in(s, 1, None, &[CONSUME, i]);
    }
    lab.run();
    assert_eq!(lab.writes(s).len(), 1, "coalesced");
    assert_eq!(lab.switches[s].take().len(), 200);
    // A message that comes byte by byte.
    let mut out = bellrock_api::openflow::Out::with_capacity(1024);
    let packet = crate::lab::packet_in(1, None, &[CONSUME, 7], &Version::V1_3);
    FromSwitch::PacketIn(packet).encode(Version::V1_3, 0, &mut out).unwrap();
    for byte in out.as_slice() {
        lab.send_bytes(s, &[*byte]);
        lab.run();
    }
    assert_eq!(first.seen.take().last().unwrap(), "packet [1, 7]");
    assert_eq!(lab.switches[s].take().len(), 1);
}

#[test]
fn immediate_mode_writes_each_message_by_itself() {
    let settings = WorkerSettings { write: WriteMode::Immediate, ..WorkerSettings::default() };
    let (mut lab, ..) = two(settings);
    let s = lab.up(Version::V1_0, 5);
    lab.writes(s);
    for i in 0..10 {
        lab.packet_in(s, 1, None, &[CONSUME, i]);
    }
    lab.run();
    assert_eq!(lab.writes(s).len(), 10);
}

#[test]
fn errors_go_to_the_app_that_owns_their_xid_and_flow_removed_to_all() {
    /// Installs a flow when it comes up.
    struct Installer(Probe);
    impl App for Installer {
        type Handler = Installer;
        fn name(&self) -> &'static str {
            self.0.name
        }
        fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Installer {
            Installer(self.0.clone())
        }
    }
    impl Handler for Installer {
        fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
            switch.install(&FlowMod::add(&Match::any().in_port(Port(1))).cookie(7))?;
            Ok(())
        }
        fn error(&mut self, s: &mut Switch<'_>, x: Xid, e: &ErrorMessage<'_>) -> Result<()> {
            self.0.error(s, x, e)
        }
        fn flow_removed(&mut self, s: &mut Switch<'_>, f: &FlowRemoved<'_>) -> Result<()> {
            self.0.flow_removed(s, f)
        }
    }
    let (first, second) = (Probe::new("first"), Probe::new("second"));
    let apps: Vec<Box<dyn DynApp>> =
        vec![Box::new(Installer(first.clone())), Box::new(Installer(second.clone()))];
    let mut lab = Lab::new(1, WorkerSettings::default(), apps);
    let id = lab.connect(0, Version::V1_3, bellrock_session::SwitchDescription::new(5));
    lab.run();
    let flows: Vec<(u32, u64)> = lab.switches[id]
        .received
        .iter()
        .filter_map(|bytes| match ToSwitch::decode(bytes).unwrap() {
            message if let ToSwitch::FlowMod(flow) = message.body => {
                (flow.cookie & 0xff == 7).then_some((message.xid, flow.cookie))
            }
            _ => None,
        })
        .collect();
    assert_eq!(flows.len(), 2);
    assert_eq!(flows[0].1, Cookie::of_app("first").with(7));
    let (xid, cookie) = flows[1];
    let error = ErrorMessage::Standard { code: ErrorCode::FlowModTableFull, data: Bytes(&[]) };
    let mut out = bellrock_api::openflow::Out::with_capacity(1024);
    FromSwitch::Error(error).encode(Version::V1_3, xid, &mut out).unwrap();
    lab.send_bytes(id, out.as_slice());
    let gone = flow_removed(cookie, 1, FlowRemovedReason::IdleTimeout);
    lab.send(id, &FromSwitch::FlowRemoved(gone));
    lab.run();
    assert_eq!(first.seen.take(), ["flow_removed false"]);
    let seen = second.seen.take();
    assert!(seen[0].starts_with(&format!("error {xid:#x}")), "{seen:?}");
    assert_eq!(seen[1], "flow_removed true");
}

#[test]
fn handlers_are_told_of_seconds_and_of_the_end() {
    let (mut lab, first, _) = two(WorkerSettings::default());
    let s = lab.up(Version::V1_3, 5);
    first.seen.take();
    lab.advance(Duration::from_millis(3100));
    assert_eq!(first.seen.take().len(), 3);
    lab.hang_up(s);
    lab.run();
    assert_eq!(first.seen.take(), ["down 5"]);
    assert!(lab.shared.network().switches().is_empty());
    lab.advance(Duration::from_secs(3));
    assert_eq!(first.seen.take(), Vec::<String>::new());
}

#[test]
fn packets_over_the_limit_a_second_are_dropped_and_counted() {
    let mut settings = WorkerSettings::default();
    settings.limits.packet_ins_per_second = Some(10);
    let (mut lab, first, _) = two(settings);
    let s = lab.up(Version::V1_3, 5);
    first.seen.take();
    for _ in 0..25 {
        lab.packet_in(s, 1, None, &[CONSUME]);
    }
    lab.run();
    assert_eq!(first.seen.take().len(), 10);
    assert_eq!(lab.workers[0].0.counters().packet_ins_over_limit.get(), 15);
    lab.advance(Duration::from_secs(2));
    first.seen.take();
    lab.packet_in(s, 1, None, &[CONSUME]);
    lab.run();
    assert!(first.seen.take().contains(&"packet [1]".to_owned()));
}

#[test]
fn the_counters_of_a_switch_go_on_over_its_connections() {
    let mut settings = WorkerSettings::default();
    settings.limits.packet_ins_per_second = Some(10);
    let (mut lab, ..) = two(settings);
    let counters = |lab: &Lab| -> Vec<u64> {
        let all = lab.shared.switch_counters();
        assert_eq!((all.len(), all[0].0), (1, Dpid(5)));
        let names = SWITCH_COUNTERS.iter().map(|(name, _)| *name);
        let values: BTreeMap<_, _> = all[0].1.iter().collect();
        names.map(|name| values[name]).collect()
    };
    for round in 1..=2 {
        let s = lab.up(Version::V1_3, 5);
        for _ in 0..25 {
            lab.packet_in(s, 1, None, &[CONSUME]);
        }
        let refusal =
            ErrorMessage::Standard { code: ErrorCode::RequestPermission, data: Bytes(&[]) };
        lab.send(s, &FromSwitch::Error(refusal));
        lab.run();
        let [connections, ended, packet_ins, ignored, errors, _] = counters(&lab)[..] else {
            panic!("another set of counters");
        };
        assert_eq!((connections, ended), (round, round - 1));
        assert_eq!((packet_ins, ignored, errors), (10 * round, 15 * round, round));
        lab.hang_up(s);
        lab.run();
        assert_eq!(counters(&lab)[..5], [round, round, 10 * round, 15 * round, round]);
    }
}

#[test]
fn the_messages_to_a_switch_are_counted_without_echoes() {
    let (mut lab, ..) = two(WorkerSettings::default());
    let s = lab.up(Version::V1_3, 5);
    let sent = |lab: &Lab| lab.shared.switch_counters()[0].1.flowmsgs_sent;
    lab.advance(Duration::from_secs(2));
    let before = sent(&lab);
    assert!(before > 0, "the handshake has messages");
    // Long enough for several echoes.
    lab.advance(Duration::from_secs(120));
    assert!(!lab.is_closed(s));
    assert_eq!(sent(&lab), before);
    let network = lab.shared.network();
    for _ in 0..3 {
        network.send(Dpid(5), &ToSwitch::BarrierRequest).unwrap();
    }
    lab.run();
    assert_eq!(sent(&lab), before + 3);
}

#[test]
fn the_limit_of_packet_ins_changes_for_switches_that_are_connected_and_for_later_ones() {
    let (mut lab, _, _) = two(WorkerSettings::default());
    let first = lab.up(Version::V1_3, 1);
    let over = |lab: &mut Lab, switch| {
        let before = lab.workers[0].0.counters().packet_ins_over_limit.get();
        for _ in 0..25 {
            lab.packet_in(switch, 1, None, &[CONSUME]);
        }
        lab.run();
        lab.workers[0].0.counters().packet_ins_over_limit.get() - before
    };
    assert_eq!(over(&mut lab, first), 0);
    assert!(lab.shared.limit_packet_ins(Some(10)));
    lab.run();
    assert_eq!(over(&mut lab, first), 15);
    let later = lab.up(Version::V1_0, 2);
    assert_eq!(over(&mut lab, later), 15);
    assert!(lab.shared.limit_packet_ins(None));
    lab.run();
    assert_eq!((over(&mut lab, first), over(&mut lab, later)), (0, 0));
}

#[test]
fn any_thread_can_send_to_any_switch_and_a_backlog_is_an_error() {
    let sent = Arc::new(AtomicUsize::new(0));
    let mut lab = Lab::with_app(Probe::new("first"));
    let s = lab.up(Version::V1_3, 5);
    let network = lab.shared.network();
    assert!(network.send(Dpid(6), &ToSwitch::BarrierRequest).is_err());
    let m = Match::any().in_port(Port(3));
    let flow = ToSwitch::FlowMod(FlowMod::add(&m));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    network.send(Dpid(5), &flow).unwrap();
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    lab.run();
    let received = lab.switches[s].take();
    assert_eq!(received.len(), 400);
    assert!(received.iter().all(|text| text.starts_with("flow_mod Add in_port=3")));
    // A switch that reads nothing: senders get an error before memory grows.
    lab.stuck(s, true);
    let big = bellrock_api::openflow::PacketOut {
        buffer_id: None,
        in_port: Port::CONTROLLER,
        actions: bellrock_api::openflow::List::empty(),
        data: Bytes(&[0; 60_000]),
    };
    let mut refused = None;
    for _ in 0..200 {
        match network.send(Dpid(5), &ToSwitch::PacketOut(big)) {
            Ok(()) => lab.run(),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    assert_eq!(refused, Some(bellrock_api::Error::Full(Dpid(5))));
}

/// Sends a barrier for each packet, and then fails if the packet says so.
struct Asker(Probe);
impl App for Asker {
    type Handler = Asker;
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Asker {
        Asker(self.0.clone())
    }
}
impl Handler for Asker {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        match switch.barrier() {
            Ok(_) => {}
            Err(error) => {
                self.0.seen.note(format!("{error}"));
                return Err(error.into());
            }
        }
        match packet.data()[0] {
            PANIC => panic!("on purpose"),
            FAIL => Err(bellrock_api::Error::UnknownSwitch(Dpid(0)).into()),
            _ => Ok(Verdict::Consume),
        }
    }
    fn barrier(&mut self, _: &mut Switch<'_>, _: Xid) -> Result<()> {
        self.0.seen.note("answered");
        Ok(())
    }
    fn unanswered(&mut self, _: &mut Switch<'_>, _: Xid) -> Result<()> {
        self.0.seen.note("unanswered");
        Ok(())
    }
}

#[test]
fn requests_that_are_taken_back_do_not_count_as_unanswered() {
    let probe = Probe::new("asker");
    let mut lab = Lab::with_app(Asker(probe.clone()));
    let s = lab.up(Version::V1_3, 5);
    for i in 0..100 {
        lab.packet_in(s, 1, None, &[if i < MAX_PANICS - 1 { PANIC } else { FAIL }]);
    }
    quietly(|| lab.run());
    lab.packet_in(s, 1, None, &[CONSUME]);
    lab.run();
    assert_eq!(probe.seen.take(), ["answered"]);
}

#[test]
fn at_most_64_requests_are_unanswered_and_they_are_given_up_in_time() {
    let probe = Probe::new("asker");
    let mut lab = Lab::with_app(Asker(probe.clone()));
    let s = lab.up(Version::V1_0, 5);
    lab.switches[s].silent = true;
    for _ in 0..70 {
        lab.packet_in(s, 1, None, &[CONSUME]);
    }
    lab.run();
    let seen = probe.seen.take();
    assert_eq!(seen.len(), 6, "the 65th and later");
    assert!(seen[0].starts_with("64 requests to this switch are unanswered"), "{seen:?}");
    // Shows that it is alive, but does not answer.
    for _ in 0..13 {
        lab.advance(Duration::from_secs(5));
        lab.packet_in(s, 1, None, &[FAIL]);
    }
    let seen = probe.seen.take();
    assert_eq!(seen.iter().filter(|text| *text == "unanswered").count(), 64);
    assert_eq!(lab.workers[0].0.counters().requests_unanswered.get(), 64);
}
