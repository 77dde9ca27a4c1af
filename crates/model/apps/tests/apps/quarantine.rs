//! The app `quarantine` in a lab: listed hosts are cut off at once, everywhere, and come back.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bellrock_api::openflow::MessageKind;
use bellrock_api::{AppId, Dpid, Event, Flow, FlowMod, Match, Port, ToSwitch, Version};
use bellrock_apps::quarantine::{BlockGap, BlockList, BlockLists, Blocked, NotChanged, Quarantine};
use bellrock_apps::{Learning, LearningSettings, MatchKind};
use bellrock_book::MemoryStore;
use bellrock_emulator::lab::{Lab, Pings, on_both_versions};
use bellrock_emulator::network::NetworkSettings;
use bellrock_emulator::network::{LoggedMessage, MessageDirection};
use bellrock_emulator::topology::tree;
use bellrock_services::desired::{AUDIT_EVERY, OperatorChange};
use bellrock_tables::Budget;
use bellrock_worker::WorkerSettings;

const SEED: u64 = 42;

/// Promised maximum time from a change of the list until no packet of the host passes any switch.
const CUT_OFF_WITHIN: Duration = Duration::from_millis(50);
const PING_INTERVAL: Duration = Duration::from_millis(5);
const WHILE: Duration = Duration::from_secs(1);
/// Switches retry their controller every 8 seconds.
const BACK_WITHIN: Duration = Duration::from_secs(20);

on_both_versions!(
    a_listed_host_is_cut_off_within_50_ms_and_comes_back,
    addresses_and_prefixes_are_cut_off_too,
    a_switch_that_comes_up_has_the_drops_before_anything_else,
    a_listed_host_stays_cut_off_while_controllers_and_connections_come_and_go,
    drops_that_somebody_removes_are_put_back,
    a_list_with_a_bad_line_changes_nothing,
    drops_are_above_flows_of_single_connections,
    flows_deleted_by_an_operator_are_put_back_at_once,
    a_switch_that_has_not_confirmed_is_a_gap
);

/// Four switches, nine hosts.
fn lab(version: Version, lists: &BlockLists) -> Lab {
    let lab = Lab::seeded(SEED).topology(tree(2, 3)).version(version);
    lab.app(Quarantine::new(lists)).run(Learning::default())
}

fn mac(lab: &Lab, host: &str) -> Blocked {
    let topology = lab.topology();
    Blocked::Mac(topology.hosts()[topology.host(host).unwrap().index()].mac)
}

/// The entries that some switch is not known to block, and where.
fn gaps(lists: &BlockLists) -> Vec<(Blocked, Vec<(Dpid, BlockGap)>)> {
    let blocked = lists.entries().into_iter().map(|entry| entry.blocked);
    let gaps = blocked.map(|blocked| (blocked, lists.gaps(&blocked)));
    gaps.filter(|(_, gaps)| !gaps.is_empty()).collect()
}

fn answered(lab: &mut Lab, pings: &Pings, time: Duration) -> u32 {
    let before = lab.statistics(pings).received;
    lab.run_for(time);
    lab.statistics(pings).received - before
}

/// Flows of the learning app to the host exist already; the drops override them.
fn a_listed_host_is_cut_off_within_50_ms_and_comes_back(version: Version) {
    let lists = BlockLists::default();
    let mut lab = lab(version, &lists);
    let pings = [("h1", "h9"), ("h9", "h1"), ("h1", "h2"), ("h2", "h3")]
        .map(|(from, to)| lab.start_pings(from, to, u16::MAX, PING_INTERVAL));
    lab.run_for(WHILE);
    let learnt = lab.flows("s2").len();
    let host = mac(&lab, "h1");

    lists.add(host).unwrap();
    lab.run_for(CUT_OFF_WITHIN);
    let [to_h9, of_h9, to_h2, others] = &pings;
    for pings in [to_h9, of_h9, to_h2] {
        assert_eq!(answered(&mut lab, pings, WHILE), 0, "no packet from it or to it");
    }
    assert!(answered(&mut lab, others, WHILE) >= 199, "who is not listed notices nothing");
    assert!(lab.flows("s2").len() > learnt, "what was learnt is still there");
    for switch in ["s1", "s2", "s3", "s4"] {
        let drops = lab.flows(switch).iter().filter(|flow| flow.ends_with(" drop")).count();
        assert_eq!(drops, 2, "{switch}: {:?}", lab.flows(switch));
    }

    lists.remove(host).unwrap();
    lab.run_for(CUT_OFF_WITHIN);
    for pings in &pings {
        assert!(answered(&mut lab, pings, WHILE) >= 199, "it is back");
    }
    assert_eq!(lists.entries(), []);
}

#[test]
fn a_list_of_the_file_that_is_not_in_force_is_an_open_alarm() {
    let lists = BlockLists::default();
    lists.reject_file("line 3 is wrong".to_owned());
    let mut lab = lab(Version::V1_3, &lists);
    lab.run_for(CUT_OFF_WITHIN);
    let open = |lab: &Lab| {
        let open = lab.controller().unwrap().events().open_alarms();
        open.iter().map(|record| record.event.to_string()).collect::<Vec<_>>()
    };
    let alarms = open(&lab);
    assert!(matches!(&alarms[..], [one] if one.ends_with("line 3 is wrong")), "{alarms:?}");
    lists.set_file(BlockList::parse("10.0.0.1\n").unwrap());
    assert_eq!(open(&lab), [""; 0]);
}

fn addresses_and_prefixes_are_cut_off_too(version: Version) {
    let lists = BlockLists::default();
    let mut lab = lab(version, &lists);
    assert!(lab.ping_all().is_complete());
    // h1 to h3 are 10.0.0.1 to 10.0.0.3; the others are outside 10.0.0.0/30.
    lists.set_file(BlockList::parse("10.0.0.0/30\n10.0.0.9\n").unwrap());
    lab.run_for(CUT_OFF_WITHIN);
    assert!(!lab.ping("h1", "h5") && !lab.ping("h5", "h3") && !lab.ping("h9", "h5"));
    assert!(lab.ping("h4", "h8"));
    // A prefix replaces its parts; an IPv6 address, which 1.0 does not support.
    lists.set_file(BlockList::parse("10.0.0.0/29\n2001:db8::1\n").unwrap());
    lab.run_for(CUT_OFF_WITHIN);
    assert!(!lab.ping("h1", "h8") && !lab.ping("h8", "h7") && lab.ping("h8", "h9"));
    let gaps: usize = gaps(&lists).iter().map(|(_, gaps)| gaps.len()).sum();
    assert_eq!(gaps, if version == Version::V1_0 { 4 } else { 0 }, "{:?}", lists.entries());
}

/// On 1.0 a flow without wildcards is above all priorities: existing connections would continue, if
/// their flows had no wildcards.
fn drops_are_above_flows_of_single_connections(version: Version) {
    let lists = BlockLists::default();
    let exact = LearningSettings { matching: MatchKind::Exact, ..LearningSettings::default() };
    let learning = Learning::new(exact, &Budget::unlimited());
    let lab = Lab::seeded(SEED).topology(tree(1, 2)).version(version);
    let mut lab = lab.app(Quarantine::new(&lists)).run(learning);
    let all =
        [tcp(1, 2, None), tcp(1, 2, Some(5)), arp_reply(1, 2, None), arp_reply(1, 2, Some(5))];
    for vlan in [None, Some(5)] {
        lab.send_frame("h2", &tcp(2, 1, vlan));
        lab.run_for(WHILE);
    }
    let arrived = |lab: &mut Lab| {
        lab.capture("h2");
        for frame in &all {
            lab.send_frame("h1", frame);
            lab.run_for(CUT_OFF_WITHIN);
        }
        lab.capture("h2").iter().filter(|frame| all.contains(frame)).count()
    };
    assert_eq!(arrived(&mut lab), all.len());
    let before = lab.message_count("s1", MessageDirection::FromSwitch);
    assert_eq!(arrived(&mut lab), all.len());
    let asked = lab.message_count("s1", MessageDirection::FromSwitch) - before;
    assert!(asked < all.len() as u64, "{asked} messages: there are flows {:#?}", lab.flows("s1"));
    lists.add(mac(&lab, "h1")).unwrap();
    lab.run_for(CUT_OFF_WITHIN);
    assert_eq!(arrived(&mut lab), 0, "{:#?}", lab.flows("s1"));
}

/// The Ethernet header of a frame between two hosts.
fn header(from: u8, to: u8, vlan: Option<u16>, eth_type: u16) -> Vec<u8> {
    let mut frame = vec![0, 0, 0, 0, 0, to, 0, 0, 0, 0, 0, from];
    if let Some(vlan) = vlan {
        frame.extend([0x81, 0]);
        frame.extend((3 << 13 | vlan).to_be_bytes());
    }
    frame.extend(eth_type.to_be_bytes());
    frame
}

fn tcp(from: u8, to: u8, vlan: Option<u16>) -> Vec<u8> {
    let mut frame = header(from, to, vlan, 0x0800);
    frame.extend([0x45, 0xb8, 0, 46, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    frame.extend([0x12, 0x34, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
    frame.resize(frame.len() + 6, 0);
    frame
}

fn arp_reply(from: u8, to: u8, vlan: Option<u16>) -> Vec<u8> {
    let mut frame = header(from, to, vlan, 0x0806);
    frame.extend([0, 1, 8, 0, 6, 4, 0, 2]);
    frame.extend([0, 0, 0, 0, 0, from, 10, 0, 0, from, 0, 0, 0, 0, 0, to, 10, 0, 0, to]);
    frame.resize(frame.len() + 18, 0);
    frame
}

fn a_switch_that_comes_up_has_the_drops_before_anything_else(version: Version) {
    let lists = BlockLists::default();
    lists.set_file(BlockList::parse("10.0.0.1\n00:00:00:00:00:02").unwrap());
    let lab = lab(version, &lists);
    // Skips the removal of an earlier run's flows, and the table-miss entry.
    let is_own = |message: &String| message.contains(" ADD ") && !message.contains("priority=0 ");
    let sent: Vec<String> = lab.messages("s2").map(ToString::to_string).filter(is_own).collect();
    assert!(sent.len() >= 6, "{sent:#?}");
    assert!(sent[..6].iter().all(|flow| flow.ends_with("actions=drop")), "{sent:#?}");
}

fn a_list_with_a_bad_line_changes_nothing(version: Version) {
    let lists = BlockLists::default();
    let mut lab = lab(version, &lists);
    lists.set_file(BlockList::parse("10.0.0.1\n").unwrap());
    lab.run_for(CUT_OFF_WITHIN);
    let bad = BlockList::parse("10.0.0.2\n10.0.0.3/33\n").unwrap_err();
    assert_eq!(bad[0].line, 2);
    lists.reject_file(bad[0].to_string());
    assert!(!lab.ping("h1", "h5") && lab.ping("h2", "h5"));
}

/// The flows for the hosts' packets stay in the switches while the controller changes: the later
/// controller has no app that would remove them.
fn a_listed_host_stays_cut_off_while_controllers_and_connections_come_and_go(version: Version) {
    let lists = BlockLists::default();
    let for_ever = LearningSettings { idle_timeout_s: 0, ..LearningSettings::default() };
    let learning = Learning::new(for_ever, &Budget::unlimited());
    let lab = Lab::seeded(SEED).topology(tree(2, 3)).version(version);
    let mut lab = lab.app(Quarantine::new(&lists)).run(learning);
    let pings = [("h1", "h9"), ("h9", "h1"), ("h4", "h9"), ("h2", "h8")]
        .map(|(from, to)| lab.start_pings(from, to, u16::MAX, PING_INTERVAL));
    let [to_h9, of_h9, guests, others] = &pings;
    lab.run_for(WHILE);
    let (host, guest) = (mac(&lab, "h1"), mac(&lab, "h4"));
    lists.add(host).unwrap();
    lists.add(guest).unwrap();
    lab.run_for(CUT_OFF_WITHIN);
    let cut_off = |lab: &Lab| [to_h9, of_h9].map(|pings| lab.statistics(pings).received);
    let (before, removed) = (cut_off(&lab), drops_removed(&lab));
    let switches = ["s1", "s2", "s3", "s4"];

    lab.stop_controller();
    lab.run_for(WHILE);
    let again = BlockLists::default();
    again.add(host).unwrap();
    lab.start_controller(Quarantine::new(&again));
    assert!(lab.run_until(BACK_WITHIN, Lab::is_all_up));
    lab.run_for(WHILE);
    assert_eq!(cut_off(&lab), before, "another controller");
    let of_guest = 2 * switches.len();
    assert_eq!(drops_removed(&lab) - removed, of_guest, "those of the guest, and no others");
    assert!(answered(&mut lab, guests, WHILE) >= 199, "who is not listed any more is back");

    let added = drops_added(&lab);
    switches.iter().for_each(|switch| lab.disconnect(switch));
    lab.run_for(WHILE);
    switches.iter().for_each(|switch| lab.reconnect(switch));
    assert!(lab.run_until(BACK_WITHIN, Lab::is_all_up));
    lab.run_for(WHILE);
    assert_eq!(cut_off(&lab), before, "other connections");
    assert_eq!(
        drops_added(&lab) - added,
        2 * switches.len(),
        "with the first bytes, and not again"
    );
    assert_eq!(drops_removed(&lab) - removed, of_guest, "none is removed");
    assert!(answered(&mut lab, others, WHILE) >= 199, "who never was listed notices nothing");
    again.remove(host).unwrap();
    lab.run_for(CUT_OFF_WITHIN);
    for pings in &pings {
        assert!(answered(&mut lab, pings, WHILE) >= 199, "it is back");
    }
}

/// Another program removes drops and adds one with the app's cookie; only these are repaired.
fn drops_that_somebody_removes_are_put_back(version: Version) {
    let lists = BlockLists::default();
    let mut lab = lab(version, &lists);
    lists.set_file(BlockList::parse("10.0.0.1\n10.0.0.2\n").unwrap());
    lab.run_for(WHILE);
    let drops = |lab: &Lab| -> Vec<String> {
        let flows = lab.flows("s2").into_iter().filter(|flow| flow.ends_with(" drop"));
        flows
            .map(|flow| {
                flow[flow.find("priority").unwrap()..flow.find(" cookie").unwrap()].to_owned()
            })
            .collect()
    };
    let before = drops(&lab);
    assert_eq!(before.len(), 8);
    let app = AppId::new(0, "quarantine").unwrap();
    let priority = app.band().lift(Flow::new(Match::any()).priority).unwrap();
    let send = |lab: &Lab, flow: FlowMod<'_>| {
        let flow = flow.priority(priority).cookie(app.cookie().with(0));
        lab.controller().unwrap().send(Dpid(2), &ToSwitch::FlowMod(flow)).unwrap();
    };
    let (from, other) = (
        Match::any().eth_type(0x0800).ipv4_src([10, 0, 0, 1].into()),
        Match::any().in_port(Port(99)),
    );
    send(&lab, FlowMod::delete(&from));
    send(&lab, FlowMod::add(&other));
    lab.run_for(WHILE);
    assert_eq!(drops(&lab).len(), 8);
    assert_ne!(drops(&lab), before);
    let (added, removed) = (drops_added(&lab), drops_removed(&lab));
    lab.run_for(AUDIT_EVERY);
    assert_eq!(drops(&lab), before);
    let changed = (drops_added(&lab) - added, drops_removed(&lab) - removed);
    assert_eq!(changed, (1, 1), "the difference, and nothing else");
    assert!(!lab.ping("h1", "h9") && lab.ping("h3", "h9"));
}

/// An operator deletes all flows of a switch by an order to the controller.
fn flows_deleted_by_an_operator_are_put_back_at_once(version: Version) {
    let lists = BlockLists::default();
    let mut lab = lab(version, &lists);
    lists.set_file(BlockList::parse("10.0.0.1\n10.0.0.2\n").unwrap());
    lab.run_for(WHILE);
    let drops = |lab: &Lab| lab.flows("s2").iter().filter(|flow| flow.ends_with(" drop")).count();
    assert_eq!((drops(&lab), gaps(&lists)), (8, vec![]));
    let network = lab.controller().unwrap();
    for _ in 0..2 {
        let order = OperatorChange::begin(&network, Dpid(2));
        let any = Match::any();
        network.send(Dpid(2), &ToSwitch::FlowMod(FlowMod::delete(&any))).unwrap();
        let of_s2 = vec![(Dpid(2), BlockGap::Reading)];
        assert!(gaps(&lists).len() == 2 && gaps(&lists).iter().all(|(_, gaps)| *gaps == of_s2));
        lab.run_for(CUT_OFF_WITHIN);
        assert_eq!(drops(&lab), 0, "nothing is read before the order has ended");
        assert_eq!(gaps(&lists).len(), 2);
        drop(order);
        // The second order comes soon after a read, so its read waits for a second.
        assert!(lab.run_until(2 * WHILE, |lab| drops(lab) == 8));
        lab.run_for(CUT_OFF_WITHIN);
        assert_eq!(gaps(&lists), []);
    }
    let events = network.events().latest(usize::MAX);
    let altered = events.iter().filter(|record| record.event.name() == "wanted_altered");
    let texts: Vec<_> = altered.map(|record| record.event.to_string()).collect();
    assert_eq!(texts.len(), 2);
    assert!(
        texts.iter().all(|text| text.contains("changed by an order of an operator")),
        "{texts:?}"
    );
    lab.run_for(2 * WHILE);
    let order = OperatorChange::begin(&network, Dpid(2));
    drop(order);
    assert!(!gaps(&lists).is_empty());
    lab.run_for(CUT_OFF_WITHIN);
    assert_eq!(gaps(&lists), [], "the first order for a while is followed by a read at once");
}

/// A block is on its way to slow switches, and to one that comes up.
fn a_switch_that_has_not_confirmed_is_a_gap(version: Version) {
    const SLOW: Duration = Duration::from_millis(200);
    let lists = BlockLists::default();
    let lab = Lab::seeded(SEED).topology(tree(2, 3)).version(version);
    let mut lab = lab.control_delay(SLOW).app(Quarantine::new(&lists)).run(Learning::default());
    lab.run_for(BACK_WITHIN);
    let host: Blocked = "10.0.0.1".parse().unwrap();
    lists.add(host).unwrap();
    let everywhere: Vec<_> = (1..=4).map(|n| (Dpid(n), BlockGap::Unconfirmed)).collect();
    assert_eq!(lists.gaps(&host), everywhere);
    lab.run_for(SLOW);
    assert_eq!(lists.gaps(&host), everywhere);
    lab.run_for(WHILE);
    assert_eq!(lists.gaps(&host), []);
    // An earlier entry stays confirmed while another is on its way.
    let other: Blocked = "10.0.0.2".parse().unwrap();
    lists.add(other).unwrap();
    assert_eq!((lists.gaps(&host).len(), lists.gaps(&other).len()), (0, 4));
    lab.disconnect("s2");
    lab.run_for(WHILE);
    assert_eq!(lists.gaps(&other), [], "a switch that is down is no gap here");
    lab.reconnect("s2");
    assert!(lab.run_until(BACK_WITHIN, |_| !lists.gaps(&host).is_empty()));
    assert_eq!(lists.gaps(&host), [(Dpid(2), BlockGap::Unconfirmed)]);
    lab.run_for(2 * WHILE);
    assert_eq!(gaps(&lists), []);
}

/// Number of drops sent to the switches.
fn drops_added(lab: &Lab) -> usize {
    let is_one = |message: &&LoggedMessage| {
        let text = message.to_string();
        text.contains(" ADD ") && text.ends_with("actions=drop")
    };
    ["s1", "s2", "s3", "s4"].iter().map(|switch| lab.messages(switch).filter(is_one).count()).sum()
}

/// Number of removals of the app's flows sent to the switches: single, or all by cookie (1.3).
fn drops_removed(lab: &Lab) -> usize {
    let app = AppId::new(0, "quarantine").unwrap();
    let priority = app.band().lift(Flow::new(Match::any()).priority).unwrap();
    let marks = [format!("priority={priority}"), format!("cookie={:#x}/", app.cookie().with(0))];
    let is_one = |message: &&LoggedMessage| {
        let text = message.to_string();
        text.contains(" DEL") && marks.iter().any(|mark| text.contains(mark))
    };
    ["s1", "s2", "s3", "s4"].iter().map(|switch| lab.messages(switch).filter(is_one).count()).sum()
}

/// A full table refuses drops. They are listed, and installed when it has space.
#[test]
fn refused_drops_are_listed_and_sent_again() {
    let lists = BlockLists::default();
    let settings = NetworkSettings { table_capacity: 9, ..NetworkSettings::default() };
    let lab = Lab::seeded(SEED).topology(tree(1, 2)).version(Version::V1_3).network(settings);
    let mut lab = lab.run(Quarantine::new(&lists));
    let hosts: Vec<Blocked> =
        (1..=6).map(|n| format!("00:00:00:00:01:0{n}").parse().unwrap()).collect();
    for host in &hosts {
        lists.add(*host).unwrap();
    }
    lab.run_for(WHILE);
    let refused = |lists: &BlockLists| gaps(lists).len();
    assert_eq!(refused(&lists), 2, "{:?}", lists.entries());
    let [(dpid, gap)] = &lists.gaps(&hosts[5])[..] else { panic!("{:?}", gaps(&lists)) };
    assert!(*dpid == Dpid(1) && matches!(gap, BlockGap::Refused(_)), "{gap:?}");
    assert!(gap.to_string().contains("refused"), "{gap}");
    lists.remove(hosts[0]).unwrap();
    lists.remove(hosts[1]).unwrap();
    lab.run_for(WHILE + CUT_OFF_WITHIN);
    assert_eq!(refused(&lists), 0, "{:?}", lists.entries());
    // If one of two flows of an entry was installed, it is removed too.
    lists.add(hosts[0]).unwrap();
    lab.run_for(WHILE);
    assert_eq!(refused(&lists), 1, "{:?}", lists.entries());
    hosts.iter().for_each(|host| drop(lists.remove(*host)));
    lab.run_for(CUT_OFF_WITHIN);
    let left = lab.flows("s1").iter().filter(|flow| flow.ends_with(" drop")).count();
    assert_eq!(left, 0, "{:#?}", lab.flows("s1"));
}

/// In a table that stays full: refused flows are sent at growing intervals, are reported twice, and
/// are installed as soon as there is space.
#[test]
fn drops_refused_by_a_full_table_are_sent_less_and_less_often() {
    const MINUTES: usize = 20;
    let lists = BlockLists::default();
    let settings =
        NetworkSettings { table_capacity: 9, messages: 1 << 16, ..NetworkSettings::default() };
    let lab = Lab::seeded(SEED).topology(tree(1, 2)).version(Version::V1_3).network(settings);
    let mut lab = lab.run(Quarantine::new(&lists));
    let hosts: Vec<Blocked> =
        (1..=6).map(|n| format!("00:00:00:00:01:0{n}").parse().unwrap()).collect();
    hosts.iter().for_each(|host| lists.add(*host).unwrap());
    lab.run_for(Duration::from_secs(60) * MINUTES as u32);
    let sent = lab.messages("s1").filter(|it| it.to_string().contains(" ADD ")).count();
    // Nine of twelve flows fit. The flows of two hosts are sent again after 1, 2, 4, 8, 16 and 32
    // s, and then every minute.
    let (most, least) = (12 + 4 * (6 + MINUTES), 12 + 4 * MINUTES);
    assert!((least..=most).contains(&sent), "{sent} of {least} to {most}");
    let reported = |lab: &Lab| {
        let events = lab.controller().unwrap().events().latest(usize::MAX);
        let is_one = |event: &Event| matches!(event, Event::WantedRefused { app, .. } if *app == "quarantine");
        events.iter().filter(|it| is_one(&it.event)).count()
    };
    assert_eq!(reported(&lab), 2);
    // The switch reconnects, and refuses the same flows each time.
    let (before, since) = (reported(&lab), lab.controller().unwrap().now());
    for _ in 0..12 {
        lab.disconnect("s1");
        lab.run_for(CUT_OFF_WITHIN);
        lab.reconnect("s1");
        assert!(lab.run_until(BACK_WITHIN, Lab::is_all_up));
        lab.run_for(WHILE);
    }
    let minutes = (lab.controller().unwrap().now() - since).as_secs() as usize / 60 + 1;
    assert!(reported(&lab) - before <= minutes, "{} in {minutes} min", reported(&lab) - before);
    // Refused flows do not wait where there is space.
    lab.run_for(Duration::from_secs(60) * MINUTES as u32);
    let gaps = || gaps(&lists).len();
    assert_eq!(gaps(), 2);
    hosts[..2].iter().for_each(|host| lists.remove(*host).unwrap());
    lab.run_for(CUT_OFF_WITHIN);
    assert_eq!(gaps(), 0, "{:?}", lists.entries());
}

/// Number of requests for flows sent to a switch.
fn asked(lab: &Lab, switch: &str) -> usize {
    let is_one = |message: &&LoggedMessage| message.kind() == Some(MessageKind::MultipartRequest);
    lab.messages(switch).filter(is_one).count()
}

/// A reply takes longer than the pause before a retry, and than the time between changes.
#[test]
fn a_slow_switch_is_heard_out_whatever_else_is_to_be_done() {
    const SLOW: Duration = Duration::from_millis(600);
    let lists = BlockLists::default();
    lists.add("10.0.0.1".parse().unwrap()).unwrap();
    let network =
        NetworkSettings { table_capacity: 60, messages: 1 << 17, ..NetworkSettings::default() };
    let lab = Lab::seeded(SEED).topology(tree(2, 3)).version(Version::V1_3).network(network);
    let mut lab = lab.control_delay(SLOW).app(Quarantine::new(&lists)).run(Learning::default());
    lab.run_for(BACK_WITHIN);
    lab.stop_controller();
    lab.run_for(WHILE);
    let next = BlockLists::default();
    lab.start_controller(Quarantine::new(&next));
    assert!(lab.run_until(BACK_WITHIN, Lab::is_all_up));
    let is_dropped = |lab: &Lab| lab.flows("s2").iter().any(|flow| flow.contains("=10.0.0.1 "));
    assert!(is_dropped(&lab));
    for number in 1..=40 {
        next.add(format!("10.7.0.{number}").parse().unwrap()).unwrap();
        lab.run_for(SLOW / 2);
    }
    assert!(!is_dropped(&lab), "it is let back while the list changes all the time");
    let gaps = gaps(&next).len();
    assert!(gaps > 20, "{gaps} do not fit");
    let before = asked(&lab, "s2");
    lab.run_for(3 * AUDIT_EVERY);
    assert!((2..=4).contains(&(asked(&lab, "s2") - before)), "{}", asked(&lab, "s2") - before);
}

/// Including flows of other apps: a request of 1.0 cannot select by cookie.
#[test]
fn a_switch_that_has_too_much_to_tell_is_told_of() {
    let lists = BlockLists::default();
    lists.add("10.0.0.1".parse().unwrap()).unwrap();
    let mut settings = WorkerSettings::default();
    settings.session.max_multipart_bytes = 64 << 10;
    let lab = Lab::seeded(SEED).topology(tree(1, 2)).version(Version::V1_0);
    let mut lab = lab.worker_settings(settings).run(Quarantine::new(&lists));
    for port in 0..2000 {
        let matching = Match::any().in_port(Port(1000 + port));
        let theirs = FlowMod::add(&matching).cookie(0xbad).priority(1);
        lab.controller().unwrap().send(Dpid(1), &ToSwitch::FlowMod(theirs)).unwrap();
    }
    lab.run_for(2 * AUDIT_EVERY);
    let told = lab.controller().unwrap().events().latest(usize::MAX);
    let untold = told.iter().filter(|told| matches!(told.event, Event::TablesUntold { .. }));
    assert_eq!(untold.count(), 1);
}

/// Runs the lab until an order is stored.
fn stored<T>(lab: &mut Lab, order: impl Future<Output = T>) -> T {
    let mut order = pin!(order);
    for _ in 0..100 {
        if let Poll::Ready(done) = order.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
        lab.run_for(Duration::from_millis(1));
    }
    panic!("it is not stored");
}

/// A store outlasts the controller: the host is cut off before the next run and after it.
#[test]
fn a_stored_host_stays_blocked_over_a_restart() {
    let store = Arc::new(MemoryStore::default());
    let lists = BlockLists::stored(store.clone());
    let mut lab = lab(Version::V1_3, &lists);
    assert!(lab.ping("h1", "h9") && lab.ping("h2", "h9"));
    let (host, other) = (mac(&lab, "h1"), mac(&lab, "h2"));
    assert_eq!(stored(&mut lab, lists.block(host)), Ok(()));
    assert_eq!(stored(&mut lab, lists.block(host)), Err(NotChanged::Listed(host)));
    assert_eq!(stored(&mut lab, lists.unblock(other)), Err(NotChanged::NotListed(other)));
    lab.run_for(WHILE);
    assert!(!lab.ping("h1", "h9") && gaps(&lists).is_empty());

    lab.stop_controller();
    lab.run_for(WHILE);
    let next = BlockLists::stored(store.clone());
    let listed: Vec<_> = next.entries().iter().map(|entry| (entry.blocked, entry.line)).collect();
    assert_eq!(listed, [(host, None)], "it is known before a switch connects");
    next.set_file(BlockList::parse("# who\n00:00:00:00:00:77").unwrap());
    lab.start_chain(vec![Box::new(Quarantine::new(&next)), Box::new(Learning::default())]);
    lab.run_for(BACK_WITHIN);
    assert!(!lab.ping("h1", "h9") && lab.ping("h2", "h9"));
    let in_file: Blocked = "00:00:00:00:00:77".parse().unwrap();
    let why = NotChanged::InFile { blocked: in_file, line: 2 };
    assert_eq!(stored(&mut lab, next.unblock(in_file)), Err(why));
    assert_eq!(stored(&mut lab, next.unblock(host)), Ok(()));
    lab.run_for(WHILE);
    assert!(lab.ping("h1", "h9"), "it is back");
    assert_eq!(next.entries().len(), 1, "that of the file");
    assert!(BlockLists::stored(store).entries().is_empty());
}
