//! Flows of an earlier run, and apps that adopt them.

use std::time::Duration;

use crate::lab::{Lab, Notes, SwitchId, quietly, told};
use bellrock_api::openflow::{
    Bytes, FlowCommand, FromSwitch, MultipartKind, MultipartReply, Out, ReplyBody,
};
use bellrock_api::runtime::DynApp;
use bellrock_api::{
    App, Cookie, EarlierFlows, ErrorCode, ErrorMessage, FlowMod, FlowStats, Handler, Match,
    Network, PacketIn, Port, Result, Switch, SwitchInfo, Verdict, Version,
};
use bellrock_session::SwitchDescription;
use bellrock_worker::{MAX_PANICS, WorkerSettings};

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

/// Adopts flows with even priorities, panics at 13, and fails at 15. After the last question, it
/// installs a flow with priority 1.
#[derive(Clone)]
struct Asked {
    name: &'static str,
    left: EarlierFlows,
    seen: Notes,
}

impl Asked {
    fn new(name: &'static str) -> Self {
        Asked { name, left: EarlierFlows::Adopt, seen: Notes::default() }
    }
}

impl App for Asked {
    type Handler = Asked;
    fn name(&self) -> &'static str {
        self.name
    }
    fn earlier_flows(&self) -> EarlierFlows {
        self.left
    }
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Asked {
        self.clone()
    }
}

impl Handler for Asked {
    fn adopt(&mut self, switch: &mut Switch<'_>, flow: &FlowStats<'_>) -> Result<bool> {
        assert!(switch.cookie().owns(flow.cookie) && flow.matching.in_port() == Some(Port(1)));
        self.seen.note(format!("asked {}", flow.priority));
        assert_ne!(flow.priority, 13, "on purpose");
        if flow.priority == 15 {
            switch.install(&FlowMod::add(&Match::any()).priority(5000))?;
        }
        Ok(flow.priority.is_multiple_of(2))
    }

    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.seen.note("up");
        switch.install(&FlowMod::add(&Match::any()).priority(1))?;
        Ok(())
    }

    fn packet_in(&mut self, _: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        self.seen.note(format!("packet {}", packet.data()[0]));
        Ok(Verdict::Consume)
    }
}

fn chain(apps: &[&Asked]) -> Lab {
    let apps = apps.iter().map(|app| Box::new((*app).clone()) as Box<dyn DynApp>).collect();
    Lab::new(1, WorkerSettings::default(), apps)
}

/// A flow of an app, with its number and its priority on the wire.
fn flow(app: &Asked, number: u64, priority: u16) -> (u64, u16, Port) {
    (Cookie::of_app(app.name).with(number), priority, Port(2))
}

/// Connects a switch with these flows. Returns the flow_mods that it gets.
fn connect(
    lab: &mut Lab,
    version: Version,
    flows: &[(u64, u16, Port)],
) -> Vec<(FlowCommand, u64, u16)> {
    let s = lab.connect(0, version, SwitchDescription::new(5));
    lab.switches[s].flows = Some(told(version, flows));
    lab.run();
    lab.flow_mods(s)
}

/// Priorities of the flows that are removed one by one.
fn removed(flow_mods: &[(FlowCommand, u64, u16)]) -> Vec<u16> {
    let strict = flow_mods.iter().filter(|(command, ..)| *command == FlowCommand::DeleteStrict);
    strict.map(|(_, _, priority)| *priority).collect()
}

/// Whether all flows of an app are removed at once.
fn all_removed(flow_mods: &[(FlowCommand, u64, u16)], app: &Asked) -> bool {
    let mut all = flow_mods.iter().filter(|(command, ..)| *command == FlowCommand::Delete);
    all.any(|(_, cookie, _)| Cookie::of_app(app.name).owns(*cookie))
}

#[test]
fn an_app_is_asked_about_each_of_its_flows_and_the_others_go() {
    for version in VERSIONS {
        let (first, second) = (Asked::new("first"), Asked::new("second"));
        let mut lab = chain(&[&first, &second]);
        let flows = [
            flow(&first, 1, 0xf010),
            flow(&second, 2, 0xe003),
            flow(&first, 3, 0xf011),
            (0xdead, 0xf005, Port(2)),
            flow(&second, 4, 0xe004),
        ];
        let sent = connect(&mut lab, version, &flows);
        assert_eq!(removed(&sent), [0xe003, 0xf011]);
        assert_eq!(first.seen.take(), ["asked 16", "asked 17", "up"]);
        assert_eq!(second.seen.take(), ["asked 3", "asked 4", "up"]);
        // In 1.3 a removal has the cookie too, to spare a flow that is installed meanwhile.
        if version == Version::V1_3 {
            let named: Vec<u64> = sent.iter().map(|(_, cookie, _)| *cookie).collect();
            assert!(named.contains(&flows[1].0) && named.contains(&flows[2].0), "{sent:x?}");
        }
        assert_eq!(
            (lab.counters("flows_adopted"), lab.counters("stale_flows_removed")),
            (vec![2], vec![2])
        );
        // Flows that it installs at switch_up follow the removals.
        let last: Vec<_> = sent[sent.len() - 2..].iter().map(|(command, ..)| *command).collect();
        assert_eq!(last, [FlowCommand::Add; 2]);
    }
}

#[test]
fn a_switch_is_asked_for_no_more_flows_than_are_needed() {
    let (one, other) = (Asked::new("one"), Asked::new("other"));
    let keeps = Asked { left: EarlierFlows::Keep, ..Asked::new("keeps") };
    let removes = Asked { left: EarlierFlows::Remove, ..Asked::new("removes") };
    let asked = |apps: &[&Asked], version| {
        let mut lab = chain(apps);
        connect(&mut lab, version, &[]);
        let switch = &lab.switches[0];
        switch.asked_for_flows.map(|_| switch.asked_for_cookie)
    };
    let of_one = (Cookie::of_app("one").with(0), Cookie::MASK);
    assert_eq!(asked(&[&one, &keeps, &removes], Version::V1_3), Some(of_one));
    assert_eq!(asked(&[&one, &other], Version::V1_3), Some((0, 0)));
    assert_eq!(asked(&[&keeps, &removes], Version::V1_3), None);
    assert_eq!(asked(&[&one], Version::V1_0), Some((0, 0)));
    assert_eq!(asked(&[&keeps], Version::V1_0), None);
}

#[test]
fn beside_an_app_that_is_asked_the_flows_of_the_others_go_or_stay() {
    for version in VERSIONS {
        let asked = Asked::new("asked");
        let keeps = Asked { left: EarlierFlows::Keep, ..Asked::new("keeps") };
        let removes = Asked { left: EarlierFlows::Remove, ..Asked::new("removes") };
        let mut lab = chain(&[&asked, &keeps, &removes]);
        let flows = [flow(&asked, 1, 0xf010), flow(&keeps, 1, 0xe001), flow(&removes, 1, 0xd001)];
        let sent = connect(&mut lab, version, &flows);
        match version {
            Version::V1_0 => assert_eq!(removed(&sent), [0xd001]),
            Version::V1_3 => {
                assert!(all_removed(&sent, &removes) && removed(&sent).is_empty(), "{sent:x?}");
                assert!(!all_removed(&sent, &asked) && !all_removed(&sent, &keeps), "{sent:x?}");
            }
        }
        assert_eq!(
            (keeps.seen.take(), removes.seen.take()),
            (vec!["up".into()], vec!["up".into()])
        );
    }
}

#[test]
fn flows_of_another_band_go_without_a_question() {
    for version in VERSIONS {
        let app = Asked::new("app");
        let mut lab = chain(&[&app]);
        let flows = [flow(&app, 1, 0xe010), flow(&app, 2, 0x0010), flow(&app, 3, 0xf010)];
        assert_eq!(removed(&connect(&mut lab, version, &flows)), [0xe010, 0x0010]);
        assert_eq!(app.seen.take(), ["asked 16", "up"]);
    }
}

#[test]
fn a_handler_that_panics_or_fails_over_a_flow_loses_that_flow() {
    for version in VERSIONS {
        let app = Asked::new("app");
        let mut lab = chain(&[&app]);
        let flows = [12, 13, 14, 15, 16].map(|n| flow(&app, 0, 0xf000 + n));
        let sent = quietly(|| connect(&mut lab, version, &flows));
        assert_eq!(removed(&sent), [0xf00d, 0xf00f]);
        let counters = ["handler_panics", "handler_errors", "flows_adopted"];
        assert_eq!(counters.map(|name| lab.counters(name)), [vec![1], vec![1], vec![3]]);
        assert_eq!(app.seen.take().last().unwrap(), "up");
    }
}

#[test]
fn the_flows_of_an_app_that_is_disabled_stay() {
    for version in VERSIONS {
        let app = Asked::new("app");
        let mut lab = chain(&[&app]);
        // It is disabled before the last flow.
        let mut flows = vec![flow(&app, 0, 0xf00d); MAX_PANICS];
        flows.push(flow(&app, 0, 0xf011));
        let sent = quietly(|| connect(&mut lab, version, &flows));
        assert_eq!(removed(&sent), [0xf00d; MAX_PANICS]);
        app.seen.take();
        // Another switch: no app is asked.
        let s = lab.connect(0, version, SwitchDescription::new(6));
        lab.switches[s].flows = Some(told(version, &flows));
        lab.run();
        let sent = lab.flow_mods(s);
        assert!(removed(&sent).is_empty() && !all_removed(&sent, &app), "{sent:x?}");
        assert!(app.seen.take().is_empty());
    }
}

/// Checks a switch that has come up without a report of its flows.
fn assert_not_told(lab: &mut Lab, version: Version, s: SwitchId, app: &Asked) {
    let sent = lab.flow_mods(s);
    // They are removed where cookies identify them.
    assert_eq!(all_removed(&sent, app), version == Version::V1_3, "{sent:x?}");
    assert!(removed(&sent).is_empty());
    assert_eq!(app.seen.take(), ["up"]);
}

#[test]
fn a_switch_that_does_not_tell_its_flows_comes_up_without() {
    for version in VERSIONS {
        let app = Asked::new("app");
        let mut lab = chain(&[&app]);
        let s = lab.connect(0, version, SwitchDescription::new(5));
        lab.switches[s].flows = None;
        lab.advance(Duration::from_secs(4));
        assert!(app.seen.take().is_empty(), "it is waited for");
        lab.advance(Duration::from_secs(2));
        assert_not_told(&mut lab, version, s, &app);
        // Too late.
        tell(&mut lab, version, s, &[flow(&app, 1, 0xf010)]);
        assert!(app.seen.take().is_empty());
    }
}

#[test]
fn a_switch_that_refuses_to_tell_its_flows_comes_up_without() {
    for version in VERSIONS {
        let app = Asked::new("app");
        let mut lab = chain(&[&app]);
        let s = waiting(&mut lab, version);
        let error = ErrorMessage::Standard { code: ErrorCode::RequestPermission, data: Bytes(&[]) };
        answer(&mut lab, version, s, FromSwitch::Error(error));
        assert_not_told(&mut lab, version, s, &app);
    }
}

#[test]
fn packets_wait_until_the_flows_are_told() {
    for version in VERSIONS {
        let app = Asked::new("app");
        let mut lab = chain(&[&app]);
        let s = waiting(&mut lab, version);
        for number in 0..100 {
            lab.packet_in(s, 1, None, &[number]);
        }
        lab.run();
        assert!(app.seen.take().is_empty());
        tell(&mut lab, version, s, &[flow(&app, 1, 0xf010)]);
        lab.packet_in(s, 1, None, &[100]);
        lab.run();
        let expected = ["asked 16", "up"].map(String::from).into_iter();
        let expected: Vec<_> = expected.chain((0..=100).map(|n| format!("packet {n}"))).collect();
        assert_eq!(app.seen.take(), expected);
        assert_eq!(
            (lab.counters("packet_ins"), lab.counters("packet_ins_early")),
            (vec![101], vec![0])
        );
    }
}

#[test]
fn no_more_packets_wait_than_there_is_room_for() {
    const PACKET_BYTES: usize = 1500;
    const ROOM: usize = 64 * 1024;
    for version in VERSIONS {
        let app = Asked::new("app");
        let mut lab = chain(&[&app]);
        let s = waiting(&mut lab, version);
        for _ in 0..100 {
            lab.packet_in(s, 1, None, &[7; PACKET_BYTES]);
        }
        lab.run();
        tell(&mut lab, version, s, &[]);
        let (came, early) = (lab.counters("packet_ins")[0], lab.counters("packet_ins_early")[0]);
        assert_eq!(came + early, 100);
        assert!(
            (ROOM / PACKET_BYTES - 2..=ROOM / PACKET_BYTES).contains(&(came as usize)),
            "{came}"
        );
    }
}

/// A switch that has been asked for its flows, and has not answered.
fn waiting(lab: &mut Lab, version: Version) -> SwitchId {
    let s = lab.connect(0, version, SwitchDescription::new(5));
    lab.switches[s].flows = None;
    lab.run();
    assert!(lab.switches[s].asked_for_flows.is_some());
    s
}

fn tell(lab: &mut Lab, version: Version, s: SwitchId, flows: &[(u64, u16, Port)]) {
    let flows = told(version, flows);
    let body = ReplyBody::decode_parts(version, MultipartKind::Flow, &flows).unwrap();
    answer(lab, version, s, FromSwitch::MultipartReply(MultipartReply::of(body)));
}

/// Answers the request for flows.
fn answer(lab: &mut Lab, version: Version, s: SwitchId, message: FromSwitch<'_>) {
    let mut out = Out::with_capacity(1 << 16);
    message.encode(version, lab.switches[s].asked_for_flows.unwrap(), &mut out).unwrap();
    lab.send_bytes(s, out.as_slice());
    lab.run();
}
