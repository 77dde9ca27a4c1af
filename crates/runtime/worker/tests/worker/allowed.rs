//! An app that may not do everything: what it writes beyond its allowance is not sent, and it gets
//! an error.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::lab::{Lab, SwitchId};
use bellrock_api::openflow::{GroupCommand, GroupMod, GroupType, List, MessageKind, RequestBody};
use bellrock_api::runtime::AllowedApp;
use bellrock_api::{
    APP_MESSAGES_PER_PACKET_IN, APP_MESSAGES_PER_SECOND, APP_TASKS, Allowance, AllowedWrites, App,
    AppGuard, Change, ChangeOutcome, Dpid, Error, ErrorCode, ErrorMessage, Flow, FlowMod, Handler,
    Match, Needs, Network, PacketIn, Port, Result, Switch, SwitchInfo, ToSwitch, Verdict, Version,
    Xid,
};
use bellrock_worker::{MessagesSeen, WorkerSettings};

/// What the app does at a packet, by its first byte.
const INSTALL: u8 = 0;
const SEND: u8 = 1;
const GROUP: u8 = 2;
const ASK: u8 = 3;
const REMOVE: u8 = 4;

#[derive(Clone, Default)]
struct Writer {
    notes: Arc<Mutex<Vec<String>>>,
    network: Arc<Mutex<Option<Network>>>,
}

impl Writer {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap())
    }

    fn network(&self) -> Network {
        self.network.lock().unwrap().clone().unwrap()
    }
}

impl App for Writer {
    type Handler = Writer;
    fn name(&self) -> &'static str {
        "writer"
    }
    fn start(&self, network: &Network) {
        *self.network.lock().unwrap() = Some(network.clone());
    }
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Writer {
        self.clone()
    }
}

impl Handler for Writer {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        match packet.data()[0] {
            INSTALL => _ = switch.install(&FlowMod::add(&Match::any()))?,
            SEND => switch.packet_out(packet, Port(2))?,
            GROUP => {
                let (command, kind) = (GroupCommand::Add, GroupType::All);
                let group = GroupMod { command, kind, group: 1, buckets: List::empty() };
                switch.send(&ToSwitch::GroupMod(group))?;
            }
            ASK => _ = switch.request(RequestBody::Desc)?,
            REMOVE => _ = switch.remove(&Match::any(), Port::ANY)?,
            _ => {}
        }
        Ok(Verdict::Consume)
    }

    fn error(&mut self, _: &mut Switch<'_>, _: Xid, error: &ErrorMessage<'_>) -> Result<()> {
        let ErrorMessage::Standard { code, data } = error else { panic!("{error:?}") };
        assert_eq!(*code, ErrorCode::RequestPermission);
        let quoted = bellrock_api::openflow::frame(data).unwrap();
        assert!(quoted.is_some() || data.len() == 64, "the message is quoted");
        self.notes.lock().unwrap().push("refused".to_owned());
        Ok(())
    }

    fn unanswered(&mut self, _: &mut Switch<'_>, _: Xid) -> Result<()> {
        self.notes.lock().unwrap().push("unanswered".to_owned());
        Ok(())
    }
}

fn allowing(write: AllowedWrites) -> Allowance {
    Allowance { write, ..Allowance::default() }
}

fn lab(allowance: Allowance) -> (Lab, Writer) {
    let writer = Writer::default();
    let app = AllowedApp::new(Box::new(writer.clone()), allowance);
    (Lab::new(1, WorkerSettings::default(), vec![Box::new(app)]), writer)
}

/// Has the app write, and returns the kinds of messages that the switch got.
fn written(lab: &mut Lab, s: SwitchId, what: u8) -> Vec<MessageKind> {
    lab.run();
    lab.switches[s].received.clear();
    lab.packet_in(s, 1, None, &[what; 60]);
    lab.run();
    let kind = |bytes: &Vec<u8>| ToSwitch::decode(bytes).unwrap().body.kind();
    lab.switches[s].received.iter().map(kind).collect()
}

#[test]
fn an_app_that_only_reads_gets_answers_and_changes_nothing() {
    for version in Version::ALL {
        let (mut lab, writer) = lab(allowing(AllowedWrites::None));
        let s = lab.up(version, 5);
        writer.take();
        for what in [INSTALL, SEND, REMOVE] {
            assert_eq!(written(&mut lab, s, what), [], "{version} {what}");
            assert_eq!(writer.take(), ["refused"], "{version} {what}");
        }
        let _ = written(&mut lab, s, ASK);
        assert!(!writer.take().contains(&"refused".to_owned()), "{version}");
        let states = lab.shared.app_states();
        assert_eq!(states[0].refused, 3);
        assert_eq!(lab.counters("messages_refused"), [3]);
        let alarms = lab.shared.network().events().latest(100);
        let texts: Vec<_> = alarms.iter().map(|one| one.event.to_string()).collect();
        let named =
            texts.iter().filter(|text| text.contains("writer is not allowed to change flows"));
        assert_eq!(named.count(), 1, "once a minute: {texts:?}");
    }
}

#[test]
fn an_app_with_its_own_flows_changes_no_groups() {
    let (mut lab, writer) = lab(allowing(AllowedWrites::Own));
    let s = lab.up(Version::V1_3, 5);
    writer.take();
    assert_eq!(written(&mut lab, s, INSTALL), [MessageKind::FlowMod]);
    assert_eq!(written(&mut lab, s, SEND), [MessageKind::PacketOut]);
    assert_eq!(written(&mut lab, s, REMOVE), [MessageKind::FlowMod]);
    assert_eq!(writer.take(), [""; 0]);
    assert_eq!(written(&mut lab, s, GROUP), []);
    assert_eq!(writer.take(), ["refused"]);
    // From a task too, by error, and with nothing sent.
    let (command, kind) = (GroupCommand::Add, GroupType::All);
    let group = GroupMod { command, kind, group: 1, buckets: List::empty() };
    let sent = writer.network().send(Dpid(5), &ToSwitch::GroupMod(group));
    assert!(matches!(sent, Err(Error::NotAllowed { .. })), "{sent:?}");
    let flow = Flow::new(Match::any());
    let mut outcome = outcomes(&mut lab, &writer, vec![Change::Add(flow), Change::RemoveGroup(1)]);
    assert!(matches!(outcome.remove(0), ChangeOutcome::NotSent(Error::NotAllowed { .. })));
}

/// The outcomes of a program that is refused at once.
fn outcomes(lab: &mut Lab, writer: &Writer, changes: Vec<Change>) -> Vec<ChangeOutcome> {
    let (network, result) = (writer.network(), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&result);
    lab.shared.network().spawn("ask", async move {
        *kept.lock().unwrap() = network.program(Dpid(5), changes).await;
    });
    lab.run();
    std::mem::take(&mut result.lock().unwrap())
}

#[test]
fn an_app_sees_only_its_switches() {
    let switches = Some(BTreeSet::from([Dpid(5)]));
    let (mut lab, writer) = lab(Allowance { switches, ..Allowance::default() });
    let (own, other) = (lab.up(Version::V1_3, 5), lab.up(Version::V1_3, 6));
    writer.take();
    assert_eq!(written(&mut lab, own, SEND), [MessageKind::PacketOut]);
    assert_eq!(written(&mut lab, other, SEND), []);
    assert_eq!(writer.take(), [""; 0], "it is not called");
    let sent = writer.network().send(Dpid(6), &ToSwitch::BarrierRequest);
    assert!(matches!(sent, Err(Error::NotAllowed { what: "use this switch" })), "{sent:?}");
    assert!(writer.network().send(Dpid(5), &ToSwitch::BarrierRequest).is_ok());
}

#[test]
fn messages_and_tasks_beyond_their_number_are_refused() {
    let allowance =
        Allowance { messages_per_second: Some(3), tasks: Some(2), ..Allowance::default() };
    let (mut lab, writer) = lab(allowance);
    let s = lab.up(Version::V1_3, 5);
    writer.take();
    for _ in 0..10 {
        lab.packet_in(s, 1, None, &[SEND; 60]);
    }
    lab.switches[s].received.clear();
    lab.run();
    assert_eq!((lab.switches[s].received.len(), writer.take().len()), (3, 7));
    lab.advance(std::time::Duration::from_secs(2));
    assert_eq!(written(&mut lab, s, SEND), [MessageKind::PacketOut], "a second later");
    // Questions are free.
    (0..20).for_each(|_| assert!(!written(&mut lab, s, ASK).contains(&MessageKind::PacketOut)));
    assert_eq!(writer.take().iter().filter(|note| **note == "refused").count(), 0);
    let network = writer.network();
    let waiting = |network: &Network| {
        let sleeping = network.clone();
        network.spawn("wait", async move {
            sleeping.sleep(std::time::Duration::from_secs(60)).await;
        })
    };
    let _all: Vec<_> = (0..5).map(|_| waiting(&network)).collect();
    lab.run();
    assert_eq!(lab.shared.tasks().iter().filter(|task| task.app == "writer").count(), 2);
    lab.advance(std::time::Duration::from_secs(61));
    let _again = waiting(&network);
    lab.run();
    assert_eq!(lab.shared.tasks().iter().filter(|task| task.app == "writer").count(), 1);
}

#[test]
fn an_app_that_sends_too_many_messages_is_named_and_they_are_sent() {
    let (mut lab, writer) = lab(Allowance::default());
    let s = lab.up(Version::V1_3, 5);
    let mut seen = MessagesSeen::default();
    lab.shared.look_at_messages(&mut seen);
    let before = lab.shared.app_states()[0].messages;
    lab.switches[s].received.clear();
    assert_eq!(written(&mut lab, s, SEND), [MessageKind::PacketOut]);
    let state = &lab.shared.app_states()[0];
    assert_eq!(state.messages, before + 1, "by its handler");
    let network = writer.network();
    for _ in 0..100 {
        network.send(Dpid(5), &ToSwitch::BarrierRequest).unwrap();
    }
    lab.run();
    lab.shared.look_at_messages(&mut seen);
    let state = &lab.shared.app_states()[0];
    assert_eq!((state.messages, state.excesses), (before + 101, 0), "and by its network");
    // So many at once that the test would take long by sending them.
    let named = |packet_ins| {
        let guard = AppGuard::new(Allowance::default(), Needs::empty());
        let sent = APP_MESSAGES_PER_SECOND + 5 * APP_MESSAGES_PER_PACKET_IN;
        let time = std::time::Duration::from_millis(500);
        (0..3).for_each(|_| guard.note_sent(&network, sent, packet_ins, time));
        let events = network.events().latest(100);
        let texts = events.iter().map(|one| one.event.to_string());
        (guard.excesses(), texts.filter(|text| text.contains("writer sent 1000080")).count())
    };
    assert_eq!(named(5), (0, 0), "for packet-ins");
    assert_eq!(named(4), (3, 1), "named once a minute");
    let limited = Allowance { messages_per_second: Some(9), ..Allowance::default() };
    let limited = AppGuard::new(limited, Needs::empty());
    limited.note_sent(&network, u64::MAX, 0, std::time::Duration::from_secs(1));
    assert_eq!(limited.excesses(), 0, "its messages are refused instead");
    let late = AppGuard::new(Allowance::default(), Needs::empty());
    let seconds = |n| std::time::Duration::from_secs(n);
    late.note_sent(&network, 2 * APP_MESSAGES_PER_SECOND, 0, seconds(2));
    assert_eq!(late.excesses(), 0, "the look was late");
    late.note_sent(&network, 2 * APP_MESSAGES_PER_SECOND + 1, 0, seconds(2));
    assert_eq!(late.excesses(), 1);
}

#[test]
fn every_app_has_a_budget_of_tasks() {
    let (mut lab, writer) = lab(Allowance::default());
    let network = writer.network();
    for _ in 0..APP_TASKS + 3 {
        drop(network.spawn("wait", std::future::pending()));
    }
    // Each has its turn, and those that are refused end in it.
    lab.advance(std::time::Duration::from_secs(5));
    let tasks = lab.shared.tasks();
    assert_eq!(tasks.iter().filter(|task| task.app == "writer").count(), APP_TASKS);
    assert_eq!(lab.shared.app_states()[0].refused, 3);
    let events = network.events().latest(100);
    let texts: Vec<_> = events.iter().map(|one| one.event.to_string()).collect();
    let named = "the app writer is not allowed to run so many tasks";
    assert!(texts.iter().any(|text| text.contains(named)), "{texts:?}");
}
