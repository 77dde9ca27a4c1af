//! Desired state in a lab: only the difference is sent, nothing that is wanted is touched, and nothing of
//! others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod flows;

use std::collections::BTreeMap;
use std::time::Duration;

use bellrock_api::openflow::{Action, GroupType, MessageKind};
use bellrock_api::{
    BucketEntry, Cookie, Dpid, Event, Flow, FlowCommand, FlowMod, GroupEntry, MacAddr, Match,
    MeterEntry, Port, ToSwitch, Version,
};
use bellrock_emulator::check::{LoggedMessage, Way};
use bellrock_emulator::lab::{FaultKind, Faults, Lab};
use bellrock_emulator::topology::{HostId, Topology, ring};
use bellrock_services::desired::{Desired, DesiredFlows, Wanted, WhyNot};
use fastrand::Rng;
use flows::{Hand, NAME, Tree, findings, flows_of, mesh};

const VERSIONS: [Version; 2] = [Version::V1_0, Version::V1_3];

/// Longer than it takes where nothing is wrong.
const SETTLED_WITHIN: Duration = Duration::from_secs(10);

fn lab(version: Version, topology: impl TryInto<Topology, Error: std::fmt::Debug>) -> (Lab, Hand) {
    let hand = Hand::default();
    let topology = topology.try_into().unwrap();
    let lab = Lab::seeded(1).version(version).topology(topology).run(hand.clone());
    (lab, hand)
}

fn settle(lab: &mut Lab, hand: &Hand, desired: &Desired) {
    let desired = desired.clone();
    let settled = hand.run(async move { desired.settled().await });
    let done = lab.run_until(SETTLED_WITHIN, |_| settled.lock().unwrap().is_some());
    assert!(done, "{:?}", hand.network().desired().state().load());
}

fn flow(number: u32, port: u32) -> Flow {
    Flow::new(Match::any().in_port(Port(number))).priority(7).output(Port(port))
}

/// Flow_mods of the app that the switches were sent since they began.
fn flow_mods(lab: &Lab) -> usize {
    let switches = lab.topology().switches().iter();
    let to_switch = switches.flat_map(|switch| lab.messages(&switch.name));
    let to_switch = to_switch.filter(|message| message.way == Way::ToSwitch);
    let is_ours = |message: &&LoggedMessage| match ToSwitch::decode(&message.bytes) {
        Ok(message) => matches!(message.body, ToSwitch::FlowMod(flow)
            if flow.command == FlowCommand::DeleteStrict || Cookie::of_app(NAME).owns(flow.cookie)),
        Err(_) => message.kind() == Some(MessageKind::FlowMod),
    };
    to_switch.filter(is_ours).count()
}

#[test]
fn a_restarted_controller_sends_the_difference_and_nothing_else() {
    for version in VERSIONS {
        let (mut lab, hand) = lab(version, ring(3, 1));
        let desired = hand.network().desired();
        let all = |n: u32| (1..=3_u64).map(move |s| (Dpid(s), flow(n, n + 1)));
        desired.set_independent(1, all(1));
        desired.set_independent(2, all(2));
        desired.complete();
        settle(&mut lab, &hand, &desired);
        assert_eq!(flows_of(&lab, NAME).len(), 6);

        lab.stop_controller();
        lab.run_for(Duration::from_secs(1));
        let again = Hand::default();
        let before = flow_mods(&lab);
        lab.start_controller(again.clone());
        let desired = again.network().desired();
        // One intent as it was, one that is gone, and one that is new.
        desired.set_independent(1, all(1));
        desired.set_independent(3, all(3));
        assert!(lab.run_until(Duration::from_secs(20), Lab::is_all_up));
        settle(&mut lab, &again, &desired);
        assert_eq!(flow_mods(&lab) - before, 3, "{version}: three are new");
        assert_eq!(flows_of(&lab, NAME).len(), 9, "{version}: nothing goes before all is said");
        desired.complete();
        settle(&mut lab, &again, &desired);
        lab.run_for(Duration::from_secs(1));
        assert_eq!(flow_mods(&lab) - before, 6, "{version}: three go");
        let left: Vec<String> = flows_of(&lab, NAME).into_iter().map(|(.., m)| m).collect();
        assert!(
            left.iter().all(|matching| ["in_port=1", "in_port=3"].contains(&matching.as_str()))
        );
    }
}

#[test]
fn what_handlers_installed_is_adopted_and_flows_of_nobody_stay_and_are_reported() {
    for version in VERSIONS {
        let (mut lab, hand) = lab(version, ring(3, 1));
        let band = hand.network().app_id().unwrap().band();
        let cookie = Cookie::of_app(NAME);
        let any = Match::any().in_port(Port(9));
        let put = |n: u16, cookie: u64, idle: u16| {
            let priority = band.lift(n).unwrap();
            let flow = FlowMod::add(&any).priority(priority).cookie(cookie).idle_timeout(idle);
            lab.controller().unwrap().send(Dpid(1), &ToSwitch::FlowMod(flow)).unwrap();
        };
        put(1, cookie.with(77), 600);
        put(2, cookie.with(0), 0);
        put(3, cookie.with(78), 0);
        put(4, 0xbad, 0);
        assert!(lab.run_until(SETTLED_WITHIN, |lab| lab.flows("s1").len() >= 4));
        lab.restart("s1", true);
        lab.run_for(Duration::from_secs(5));
        let mut heard = hand.network().events().subscribe();
        let events = hand.run(async move { heard.next().await });
        let desired = hand.network().desired();
        desired.complete();
        settle(&mut lab, &hand, &desired);
        lab.run_for(Duration::from_secs(2));
        let ours: Vec<u16> = flows_of(&lab, NAME).into_iter().map(|(_, p, _)| p).collect();
        assert_eq!(ours, [1, 2], "{version}: what no handler installed and nobody wants goes");
        let flows = lab.flows("s1");
        assert!(flows.iter().any(|flow| flow.contains("0xbad")), "{flows:#?}");
        let Some(bellrock_api::Heard::Event(first)) = events.lock().unwrap().clone() else {
            panic!("nothing was heard");
        };
        assert_eq!(first.event, Event::ForeignFlows { dpid: Dpid(1), flows: 1 });
    }
}

#[test]
fn a_switch_that_comes_back_empty_is_filled_and_one_that_comes_back_whole_is_left_alone() {
    for version in VERSIONS {
        let (mut lab, hand) = lab(version, ring(3, 1));
        let desired = hand.network().desired();
        desired.set_independent(1, (1..=3_u64).map(|s| (Dpid(s), flow(1, 2))));
        settle(&mut lab, &hand, &desired);
        for (keeps_tables, sent) in [(true, 0), (false, 1)] {
            let before = flow_mods(&lab);
            lab.restart("s2", keeps_tables);
            assert!(lab.run_until(Duration::from_secs(20), |lab| !lab.is_up("s2")));
            assert!(lab.run_until(Duration::from_secs(20), Lab::is_all_up));
            settle(&mut lab, &hand, &desired);
            lab.run_for(Duration::from_secs(1));
            assert_eq!(flow_mods(&lab) - before, sent, "{version} {keeps_tables}");
            assert_eq!(flows_of(&lab, NAME).len(), 3);
        }
    }
}

#[test]
fn a_new_way_is_there_before_the_old_one_goes() {
    for seed in 0..25 {
        let mut rng = Rng::with_seed(seed);
        let version = VERSIONS[seed as usize % 2];
        let (mut lab, hand) = lab(version, mesh(rng.u32(4..10), &mut rng));
        let (to, mac) = (HostId(0), lab.topology().hosts()[0].mac);
        let desired = hand.network().desired();
        desired.set_tree(1, Tree::random(lab.topology(), to, &mut rng).flows(mac));
        settle(&mut lab, &hand, &desired);
        for _ in 0..3 {
            let late = Faults::of(rng.u64(..), &[FaultKind::MessageDelay]).each(4);
            lab.inject(&late.within(Duration::from_millis(1)));
            lab.run_for(Duration::from_millis(2));
            desired.set_tree(1, Tree::random(lab.topology(), to, &mut rng).flows(mac));
            let wanted = desired.clone();
            let settled = hand.run(async move { wanted.settled().await });
            lab.run_until(SETTLED_WITHIN, |lab| {
                assert_eq!(findings(lab, to), [""; 0], "seed {seed} at {:?}", lab.now());
                settled.lock().unwrap().is_some()
            });
            assert!(settled.lock().unwrap().is_some(), "seed {seed}");
        }
    }
}

#[test]
fn whatever_goes_wrong_switches_come_to_what_is_wanted() {
    for seed in 0..60 {
        let mut rng = Rng::with_seed(seed);
        let version = VERSIONS[seed as usize % 2];
        let (mut lab, hand) = lab(version, ring(5, 1));
        let desired = hand.network().desired();
        let mut wanted = BTreeMap::new();
        let plan = lab.inject(&Faults::random(seed).within(Duration::from_secs(5)));
        for _ in 0..20 {
            let intent = rng.u32(1..6);
            let flows: Vec<(Dpid, Flow)> = (0..rng.usize(0..8))
                .map(|_| (Dpid(rng.u64(1..=5)), flow(intent * 100 + rng.u32(0..4), rng.u32(1..4))))
                .collect();
            desired.set(intent, flows.clone());
            wanted.insert(intent, flows);
            lab.run_for(Duration::from_millis(rng.u64(0..500)));
        }
        desired.complete();
        lab.run_for(plan.lasts());
        let recovery = lab.recovery_time(Duration::from_secs(60));
        lab.run_for(recovery);
        let state = desired.state().load();
        assert!(state.is_settled(), "seed {seed}: {:?}\n{plan}", **state);
        let mut expected: Vec<(Dpid, u16, String)> = wanted
            .values()
            .flatten()
            .map(|(dpid, flow)| (*dpid, flow.priority, flow.matching.to_string()))
            .collect();
        expected.sort();
        expected.dedup();
        assert_eq!(flows_of(&lab, NAME), expected, "seed {seed}\n{plan}");
    }
}

#[test]
fn what_is_farther_waits_for_what_is_nearer() {
    let (mut lab, hand) = lab(Version::V1_3, ring(3, 1));
    lab.disconnect("s1");
    lab.run_for(Duration::from_secs(1));
    let desired = hand.network().desired();
    desired.set(1, [(Dpid(1), flow(1, 2)), (Dpid(2), flow(1, 2))]);
    desired.set_independent(2, [(Dpid(1), flow(2, 2)), (Dpid(2), flow(2, 2))]);
    lab.run_for(Duration::from_secs(2));
    let there: Vec<_> = flows_of(&lab, NAME).into_iter().map(|(d, _, m)| (d, m)).collect();
    assert_eq!(there, [(Dpid(2), "in_port=2".to_owned())]);
    lab.reconnect("s1");
    assert!(lab.run_until(Duration::from_secs(20), Lab::is_all_up));
    settle(&mut lab, &hand, &desired);
    assert_eq!(flows_of(&lab, NAME).len(), 4);
    desired.withdraw(1);
    desired.withdraw(2);
    settle(&mut lab, &hand, &desired);
    lab.run_for(Duration::from_secs(1));
    assert_eq!(flows_of(&lab, NAME), []);
}

#[test]
fn groups_and_meters_are_kept_too_and_what_a_version_cannot_say_is_told() {
    let wanted = || {
        let bucket = BucketEntry::of(&[Action::output(Port(2))]).watch_port(Port(2));
        let group = GroupEntry::new(5, GroupType::FastFailover).bucket(bucket);
        let used = Flow::new(Match::any().eth_dst(MacAddr([2; 6]))).meter(6).group(5);
        [
            (Dpid(1), Wanted::Flow(used)),
            (Dpid(1), Wanted::Group(group)),
            (Dpid(1), Wanted::Meter(MeterEntry::drop_above_kbps(6, 1000))),
        ]
    };
    let (mut lab, hand) = lab(Version::V1_3, ring(3, 1));
    let desired = hand.network().desired();
    desired.set(1, wanted());
    settle(&mut lab, &hand, &desired);
    let sent = desired.state().load().changes_sent;
    assert_eq!(sent, 3);
    lab.restart("s1", true);
    lab.run_for(Duration::from_secs(10));
    settle(&mut lab, &hand, &desired);
    assert_eq!(desired.state().load().changes_sent, sent, "all was there");
    lab.restart("s1", false);
    lab.run_for(Duration::from_secs(10));
    settle(&mut lab, &hand, &desired);
    assert_eq!(desired.state().load().changes_sent, sent + 3, "nothing was there");
    desired.withdraw(1);
    lab.run_for(Duration::from_secs(1));
    assert_eq!(desired.state().load().changes_sent, sent + 6);

    let (mut lab, hand) = self::lab(Version::V1_0, ring(3, 1));
    let desired = hand.network().desired();
    desired.set(1, wanted());
    desired.set(2, [(Dpid(1), flow(1, 2))]);
    lab.run_for(Duration::from_secs(1));
    let state = desired.state().load();
    assert!(!state.is_settled());
    assert!(matches!(state.refused[&Dpid(1)], WhyNot::Unsayable(_)), "{state:?}");
    assert_eq!(flows_of(&lab, NAME).len(), 1, "the other intent is there");
}
