//! Desired state in a lab: it sends only the difference, and leaves right and foreign flows alone.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::flows::{Hand, NAME, Tree, findings, findings_from, flows_of, mesh};
use crate::odd::odd_flows;
use bellrock_api::openflow::{Action, GroupType, MessageKind};
use bellrock_api::{
    BucketEntry, Cookie, Dpid, Event, Flow, FlowCommand, FlowMod, GroupEntry, MacAddr, Match,
    MeterEntry, Port, ToSwitch, Version,
};
use bellrock_emulator::check::{LoggedMessage, MessageDirection};
use bellrock_emulator::lab::{FaultKind, Faults, Lab};
use bellrock_emulator::topology::{HostIndex, TopologySpec, ring};
use bellrock_services::desired::{
    AUDIT_EVERY, Desired, DesiredEntry, DesiredFlows, MissingReason, REFUSAL_REPORTED_EVERY,
};
use bellrock_services::programming::DRAIN;
use fastrand::Rng;

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

/// Longer than needed if nothing is wrong.
const SETTLED_WITHIN: Duration = Duration::from_secs(10);

fn lab(
    version: Version,
    topology: impl TryInto<TopologySpec, Error: std::fmt::Debug>,
) -> (Lab, Hand) {
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

/// Number of the app's flow_mods sent to switches since the lab began.
fn flow_mods(lab: &Lab) -> usize {
    let switches = lab.topology().switches().iter();
    let to_switch = switches.flat_map(|switch| lab.messages(&switch.name));
    let to_switch = to_switch.filter(|message| message.direction == MessageDirection::ToSwitch);
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
        // One intent as before, one gone, and one new.
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
fn flows_of_handlers_are_adopted_and_foreign_flows_stay_and_are_reported() {
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
        let Some(bellrock_api::SubscriptionItem::Event(first)) = events.lock().unwrap().clone()
        else {
            panic!("nothing was heard");
        };
        assert_eq!(first.event, Event::ForeignFlows { dpid: Dpid(1), flows: 1 });
    }
}

#[test]
fn flows_that_make_no_sense_are_foreign_and_what_is_wanted_is_installed_and_audited() {
    for version in VERSIONS {
        let (mut lab, hand) = lab(version, ring(3, 1));
        let entries = odd_flows(version);
        lab.report_beside("s1", &entries.concat());
        lab.restart("s1", true);
        lab.run_for(Duration::from_secs(5));
        let mut heard = hand.network().events().subscribe();
        let events = hand.run(async move { heard.next().await });
        let desired = hand.network().desired();
        desired.set_independent(1, (1..=3_u64).map(|s| (Dpid(s), flow(1, 2))));
        desired.complete();
        settle(&mut lab, &hand, &desired);
        assert_eq!(flows_of(&lab, NAME).len(), 3, "{version}");
        let Some(bellrock_api::SubscriptionItem::Event(first)) = events.lock().unwrap().clone()
        else {
            panic!("nothing was heard");
        };
        assert_eq!(
            first.event,
            Event::ForeignFlows { dpid: Dpid(1), flows: entries.len() },
            "{version}"
        );
        let before = flow_mods(&lab);
        lab.run_for(2 * AUDIT_EVERY);
        assert_eq!(flow_mods(&lab), before, "{version}: an audit finds all as it should be");
        assert_eq!(lab.counter("malformed"), 0);
        let errors = |message: &&LoggedMessage| message.kind() == Some(MessageKind::Error);
        assert_eq!(
            lab.messages("s1").filter(errors).count(),
            0,
            "{version}: a reply is not answered"
        );
    }
}

#[test]
fn a_flow_whose_match_lacks_a_field_is_not_sent_and_the_field_is_named() {
    for version in VERSIONS {
        let (mut lab, hand) = lab(version, ring(3, 1));
        let desired = hand.network().desired();
        let wrong = Flow::new(Match::any().eth_type(0x0800).tcp_dst(80)).output(Port(1));
        desired.set_independent(1, [(Dpid(1), wrong)]);
        desired.set_independent(2, [(Dpid(1), flow(1, 2))]);
        lab.run_for(Duration::from_secs(1));
        let state = desired.state().load();
        let MissingReason::Unsayable(why) = state.refused[&Dpid(1)] else { panic!("{state:?}") };
        assert_eq!(why.to_string(), "tcp_dst needs ip_proto 6: add .ip_proto(6)", "{version}");
        assert_eq!(flows_of(&lab, NAME).len(), 1, "{version}: the other intent is there");
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
fn changes_by_others_are_undone_at_the_next_audit() {
    for version in VERSIONS {
        let (mut lab, hand) = lab(version, ring(3, 1));
        let desired = hand.network().desired();
        let wanted = |n: u32| (1..=3_u64).map(move |s| (Dpid(s), flow(n, n % 3 + 1)));
        (1..=4).for_each(|n| desired.set_independent(n, wanted(n)));
        desired.complete();
        settle(&mut lab, &hand, &desired);
        let (before, sent) = (flows_of(&lab, NAME), flow_mods(&lab));
        // One flow is removed, one changed, one gets a foreign cookie, and one is added.
        let band = hand.network().app_id().unwrap().band();
        let cookie = Cookie::of_app(NAME);
        let wrong = [Action::output(Port(2))];
        let wrong_flows =
            |lab: &Lab| lab.flows("s2").iter().filter(|flow| flow.contains("output:2")).count();
        let right = wrong_flows(&lab);
        let matching = |n: u32| Match::any().in_port(Port(n));
        let (first, second, third, fifth) = (matching(1), matching(2), matching(3), matching(5));
        let priority = band.lift(7).unwrap();
        for flow in [
            FlowMod { command: FlowCommand::DeleteStrict, ..FlowMod::delete(&first) }
                .priority(priority),
            FlowMod::add(&second).priority(priority).cookie(cookie.with(2)).actions(&wrong),
            FlowMod::add(&third).priority(priority).cookie(0xbad).actions(&wrong),
            FlowMod::add(&fifth).priority(priority).cookie(cookie.with(5)),
        ] {
            lab.controller().unwrap().send(Dpid(2), &ToSwitch::FlowMod(flow)).unwrap();
        }
        lab.run_for(Duration::from_secs(1));
        assert_ne!(flows_of(&lab, NAME), before);
        assert!(wrong_flows(&lab) > right);
        let theirs = flow_mods(&lab) - sent;
        lab.run_for(AUDIT_EVERY + Duration::from_secs(2));
        assert_eq!(flows_of(&lab, NAME), before, "{version}");
        assert_eq!(wrong_flows(&lab), right, "{version}");
        assert_eq!(flow_mods(&lab) - sent - theirs, 4, "{version}: nothing else was touched");
        let told = hand.network().events().latest(usize::MAX);
        let altered = |event: &Event| matches!(event, Event::WantedAltered { .. });
        let told: Vec<Event> = told.into_iter().map(|told| told.event).filter(altered).collect();
        let expected = Event::WantedAltered { app: NAME, dpid: Dpid(2), flows: 4, by_order: false };
        assert!(expected.is_alarming());
        assert_eq!(told, [expected]);
    }
}

#[test]
fn a_new_way_is_there_before_the_old_one_goes() {
    for seed in 0..25 {
        let mut rng = Rng::with_seed(seed);
        let version = VERSIONS[seed as usize % 2];
        let (mut lab, hand) = lab(version, mesh(rng.u32(4..10), &mut rng));
        let (to, mac) = (HostIndex(0), lab.topology().hosts()[0].mac);
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

/// Returns a random path from one switch to a host, ordered from the destination.
fn path(lab: &Lab, to: HostIndex, from: Dpid, rng: &mut Rng) -> Vec<(Dpid, Flow)> {
    let mac = lab.topology().hosts()[to.index()].mac;
    let path = Tree::random(lab.topology(), to, rng).path_from(lab.topology(), from);
    let flow = |port| Flow::new(Match::any().eth_dst(mac)).priority(100).output(port);
    path.into_iter().map(|(dpid, port)| (dpid, flow(port))).collect()
}

#[test]
fn a_path_leads_to_its_end_while_what_it_has_left_drains_and_goes() {
    let drained = DRAIN.as_millis() as u64;
    for seed in 0..40 {
        let mut rng = Rng::with_seed(seed);
        let version = VERSIONS[seed as usize % 2];
        let (mut lab, hand) = lab(version, mesh(rng.u32(4..10), &mut rng));
        let (to, from) = (HostIndex(0), HostIndex(lab.topology().hosts().len() as u32 - 1));
        let source = Dpid(lab.topology().switches().last().unwrap().dpid);
        let desired = hand.network().desired();
        desired.set(1, path(&lab, to, source, &mut rng));
        settle(&mut lab, &hand, &desired);
        let mut last = Vec::new();
        for _ in 0..6 {
            let late = Faults::of(rng.u64(..), &[FaultKind::MessageDelay]).each(4);
            lab.inject(&late.within(Duration::from_millis(1)));
            last = path(&lab, to, source, &mut rng);
            desired.set(1, last.clone());
            // Some changes come while the last one is under way, some while it drains, some later.
            let until = lab.now() + Duration::from_millis(rng.u64(0..2 * drained));
            lab.run_until(SETTLED_WITHIN, |lab| {
                let found = findings_from(lab, [from], to);
                assert_eq!(found, [""; 0], "seed {seed} at {:?}", lab.now());
                lab.now() >= until
            });
        }
        settle(&mut lab, &hand, &desired);
        // Messages may still be late.
        lab.run_for(20 * DRAIN);
        let there: Vec<Dpid> = flows_of(&lab, NAME).into_iter().map(|(dpid, ..)| dpid).collect();
        let mut wanted: Vec<Dpid> = last.into_iter().map(|(dpid, _)| dpid).collect();
        wanted.sort();
        assert_eq!(there, wanted, "seed {seed}: nothing is left");
    }
}

#[test]
fn a_change_does_not_wait_for_draining_flows() {
    for version in VERSIONS {
        let (mut lab, hand) = lab(version, ring(4, 1));
        let desired = hand.network().desired();
        let path = |middle: u64| [1, middle, 3].map(|s| (Dpid(s), flow(1, middle as u32)));
        desired.set(1, path(2));
        settle(&mut lab, &hand, &desired);
        desired.set(1, path(4));
        settle(&mut lab, &hand, &desired);
        let since = lab.now();
        let has = |lab: &Lab, s: u64| flows_of(lab, NAME).iter().any(|(dpid, ..)| *dpid == Dpid(s));
        lab.run_for(DRAIN / 2);
        assert!(has(&lab, 2) && has(&lab, 4), "{version}: packets may be on their way by s2");
        desired.set(2, [(Dpid(1), flow(2, 1)), (Dpid(2), flow(2, 1))]);
        settle(&mut lab, &hand, &desired);
        assert!(lab.now() < since + DRAIN, "{version}: it was not made at once");
        // Draining flows are wanted again.
        desired.set(1, path(2));
        settle(&mut lab, &hand, &desired);
        assert!(lab.now() < since + DRAIN, "{version}: it was not made at once");
        lab.run_for(2 * DRAIN);
        let left: Vec<_> = flows_of(&lab, NAME).into_iter().map(|(d, _, m)| (d.0, m)).collect();
        let one = |s| (s, "in_port=1".to_owned());
        let two = |s| (s, "in_port=2".to_owned());
        assert_eq!(left, [one(1), two(1), one(2), two(2), one(3)], "{version}");
    }
}

#[test]
fn a_switch_that_answers_nothing_holds_up_those_alone_that_need_it() {
    for version in VERSIONS {
        let (mut lab, hand) = lab(version, ring(4, 1));
        let desired = hand.network().desired();
        desired.set(1, [(Dpid(3), flow(1, 1)), (Dpid(2), flow(1, 1))]);
        desired.set(2, [(Dpid(1), flow(2, 1))]);
        settle(&mut lab, &hand, &desired);
        lab.silence("s1");
        let since = lab.now();
        // An intent that needs the silent switch, one beside it, and one that leaves old flows.
        desired.set(2, [(Dpid(1), flow(2, 2)), (Dpid(2), flow(2, 2))]);
        desired.set(3, [(Dpid(3), flow(3, 1)), (Dpid(2), flow(3, 1))]);
        desired.set(1, [(Dpid(3), flow(1, 4)), (Dpid(4), flow(1, 4))]);
        let there = |lab: &Lab| -> Vec<(u64, String)> {
            flows_of(lab, NAME).into_iter().map(|(dpid, _, m)| (dpid.0, m)).collect()
        };
        let all = |flows: &[(u64, u32)]| -> Vec<(u64, String)> {
            flows.iter().map(|(s, port)| (*s, format!("in_port={port}"))).collect()
        };
        lab.run_for(DRAIN / 2);
        let now = all(&[(1, 2), (2, 1), (2, 3), (3, 1), (3, 3), (4, 1)]);
        assert_eq!(there(&lab), now, "{version}: all but what needs s1");
        lab.run_for(DRAIN);
        let now = all(&[(1, 2), (2, 3), (3, 1), (3, 3), (4, 1)]);
        assert_eq!(there(&lab), now, "{version}: what was left has gone");
        assert!(lab.now() < since + 2 * DRAIN);
        // Its connection is closed at last, and it connects again.
        lab.run_for(Duration::from_secs(60));
        settle(&mut lab, &hand, &desired);
        let now = all(&[(1, 2), (2, 2), (2, 3), (3, 1), (3, 3), (4, 1)]);
        assert_eq!(there(&lab), now, "{version}: and now that too");
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
fn farther_flows_wait_for_nearer_flows() {
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
            (Dpid(1), DesiredEntry::Flow(used)),
            (Dpid(1), DesiredEntry::Group(group)),
            (Dpid(1), DesiredEntry::Meter(MeterEntry::drop_above_kbps(6, 1000))),
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
    assert!(matches!(state.refused[&Dpid(1)], MissingReason::Unsayable(_)), "{state:?}");
    assert_eq!(flows_of(&lab, NAME).len(), 1, "the other intent is there");
}

#[test]
fn more_switches_than_tell_their_tables_at_a_time_all_get_what_is_wanted_without_time_outs() {
    let (mut lab, hand) = lab(Version::V1_3, ring(100, 1));
    let desired = hand.network().desired();
    desired.set_independent(1, (1..=100).map(|dpid| (Dpid(dpid), flow(1, 2).idle(5).hard(9))));
    settle(&mut lab, &hand, &desired);
    assert_eq!(flows_of(&lab, NAME).len(), 100);
    lab.run_for(Duration::from_secs(10));
    assert_eq!(flows_of(&lab, NAME).len(), 100, "they are wanted still");
}

#[test]
fn where_a_switch_refuses_many_flows_the_reason_is_told_once_and_what_it_takes_is_there() {
    let (mut lab, hand) = lab(Version::V1_3, ring(3, 1));
    let desired = hand.network().desired();
    // There is no such meter.
    let refused = (1..=5_000).map(|number| flow(number, 1).meter(9));
    let taken = (5_001..=6_000).map(|number| flow(number, 1));
    desired.set_independent(1, refused.chain(taken).map(|flow| (Dpid(1), flow)));
    lab.run_for(Duration::from_secs(5));
    let state = desired.state().load();
    assert!(matches!(state.refused[&Dpid(1)], MissingReason::Refused(_)), "{state:?}");
    assert_eq!((state.installed, state.wanted), (1_000, 6_000));
    let told = hand.network().events().latest(100);
    let is_refusal = |event: &Event| matches!(event, Event::WantedRefused { .. });
    assert_eq!(told.iter().filter(|happened| is_refusal(&happened.event)).count(), 1);
}

/// A switch reconnects all the time, and refuses the same change each time.
#[test]
fn a_refusal_over_many_connections_is_published_once_a_minute_with_its_number() {
    let (mut lab, hand) = lab(Version::V1_3, ring(3, 1));
    let desired = hand.network().desired();
    // There is no such meter.
    desired.set_independent(1, [(Dpid(1), flow(1, 1).meter(9))]);
    let refusals = || {
        let events = hand.network().events().latest(usize::MAX);
        let refused = |event: &Event| match event {
            Event::WantedRefused { times, .. } => Some(*times),
            _ => None,
        };
        events.iter().filter_map(|happened| refused(&happened.event)).collect::<Vec<u64>>()
    };
    lab.run_for(Duration::from_secs(1));
    assert_eq!(refusals(), [1]);
    for _ in 0..5 {
        lab.restart("s1", true);
        lab.run_for(Duration::from_secs(8));
    }
    assert_eq!(refusals(), [1], "each connection has refused it");
    lab.run_for(REFUSAL_REPORTED_EVERY);
    let published = refusals();
    assert!(published.len() == 2 && published[1] > 5, "{published:?}");
}
