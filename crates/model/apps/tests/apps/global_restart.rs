//! Global learning when the controller restarts: its table is empty, its flows remain.

use std::time::Duration;

use bellrock_api::{Field, MacAddr, Version};
use bellrock_apps::{GlobalLearning, LearningSettings};
use bellrock_emulator::lab::{Lab, Pings, on_both_versions};
use bellrock_emulator::topology::TopologySpec;
use bellrock_tables::{Budget, SharedTable};

on_both_versions!(
    a_host_is_known_again_by_its_first_broadcast_and_its_flows_stay,
    hosts_that_are_not_known_again_get_flows_without_a_flood,
    a_host_that_moved_to_another_switch_is_reached_when_it_is_heard_of,
    a_host_that_moved_is_reached_though_it_sends_to_stations_only,
    a_switch_that_lost_its_flows_meanwhile_gets_them_again,
    switches_that_come_back_one_after_the_other_take_their_flows_on,
    flows_of_hosts_that_are_not_heard_of_go,
    flows_that_were_taken_on_go_when_their_host_moves
);

const PING_INTERVAL: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);
/// Switches retry 1 and 3 s after the controller stopped, and again after 4 s.
const AWAY: Duration = Duration::from_secs(4);
const BACK: Duration = Duration::from_secs(5);
/// By then letters are read, and wrong flows removed.
const SETTLED: Duration = Duration::from_secs(4);
const SWITCHES: usize = 3;

fn app(settings: LearningSettings) -> GlobalLearning<SharedTable> {
    GlobalLearning::new(settings, &Budget::unlimited())
}

/// Three switches in a line, with two hosts at each: h1 and h2 at s1, and so on.
fn line() -> TopologySpec {
    let mut text = String::new();
    for number in 1..=SWITCHES {
        let (one, two) = (2 * number - 1, 2 * number);
        text.push_str(&format!("switch s{number}\nhost h{one}\nhost h{two}\n"));
        text.push_str(&format!("link s{number} h{one}\nlink s{number} h{two}\n"));
    }
    text.push_str("link s1 s2\nlink s2 s3\n");
    TopologySpec::parse(&text).unwrap()
}

/// The first hosts of the switches talk with each other, and so do the second hosts.
fn talking(settings: LearningSettings, version: Version) -> (Lab, Vec<Pings>) {
    let mut lab = Lab::seeded(11).topology(line()).version(version).run(app(settings));
    let pairs =
        [("h1", "h3"), ("h3", "h5"), ("h5", "h1"), ("h2", "h4"), ("h4", "h6"), ("h6", "h2")];
    let pings = pairs.map(|(from, to)| lab.start_pings(from, to, u16::MAX, PING_INTERVAL));
    lab.run_for(2 * SECOND);
    (lab, pings.into())
}

fn restart(lab: &mut Lab, settings: LearningSettings, while_away: impl FnOnce(&mut Lab)) {
    lab.stop_controller();
    lab.run_for(AWAY);
    while_away(lab);
    lab.start_controller(app(settings));
    assert!(lab.run_until(BACK, Lab::is_all_up));
    lab.run_for(SECOND / 10);
}

fn counter(lab: &mut Lab, name: &str) -> u64 {
    lab.app_counter("global_learning", name).unwrap()
}

/// Creation time of each flow, by switch and match, without the table-miss entries.
fn flows(lab: &Lab) -> Vec<(String, Option<u128>, Option<u128>, Duration)> {
    let mut flows = Vec::new();
    for name in ["s1", "s2", "s3"] {
        for (_, table) in lab.switch(name).datapath().tables().iter() {
            for (_, flow) in table.flows().filter(|(_, flow)| flow.priority > 0) {
                let [from, to] = [Field::EthSrc, Field::EthDst].map(|f| flow.matching().value(f));
                flows.push((format!("{name} {}", flow.matching()), from, to, flow.created));
            }
        }
    }
    flows.sort();
    flows
}

/// Number of flows of a switch to or from a host.
fn flows_about(lab: &Lab, switch: &str, mac: MacAddr) -> usize {
    let is = |value: &Option<u128>| *value == Some(mac.to_u64().into());
    let all = flows(lab).into_iter().filter(|(name, ..)| name.starts_with(switch));
    all.filter(|(_, from, to, _)| is(from) || is(to)).count()
}

fn mac(lab: &Lab, host: &str) -> MacAddr {
    lab.topology().hosts().iter().find(|its| its.name == host).unwrap().mac
}

/// Checks that every host is known, only at its own switch; one may have moved.
#[track_caller]
fn assert_known(lab: &mut Lab, moved: Option<(&str, usize)>) {
    let dpids: Vec<_> = lab.topology().switches().iter().map(|switch| switch.dpid).collect();
    let names: Vec<_> = (1..=2 * SWITCHES).map(|number| format!("h{number}")).collect();
    let hosts = lab.hosts_known();
    assert_eq!(hosts.len(), names.len(), "{hosts:?}");
    for (index, name) in names.iter().enumerate() {
        let switch = moved.filter(|(host, _)| host == name).map_or(index / 2, |(_, switch)| switch);
        let mac = mac(lab, name);
        let at = hosts.iter().find(|(_, _, entry)| entry.mac == mac).unwrap().0.0;
        assert_eq!(at, dpids[switch], "{name}");
    }
}

/// Checks for a second that every ping is answered, except one under way at each end.
#[track_caller]
fn assert_steady(lab: &mut Lab, pings: &[Pings]) {
    let before: Vec<u32> = pings.iter().map(|pings| lab.statistics(pings).received).collect();
    lab.run_for(SECOND);
    let sent = (SECOND.as_millis() / PING_INTERVAL.as_millis()) as u32;
    for (pings, before) in pings.iter().zip(before) {
        let answered = lab.statistics(pings).received - before;
        assert!(answered + 1 >= sent, "{answered} of {sent} pings were answered");
    }
}

#[track_caller]
fn assert_none_lost(lab: &Lab, pings: &[Pings]) {
    for pings in pings {
        let statistics = lab.statistics(pings);
        assert!(statistics.received + 1 >= statistics.sent, "{statistics:?}");
    }
}

fn a_host_is_known_again_by_its_first_broadcast_and_its_flows_stay(version: Version) {
    let (mut lab, pings) = talking(LearningSettings::default(), version);
    let before = flows(&lab);
    restart(&mut lab, LearningSettings::default(), |_| ());
    assert!(lab.hosts_known().is_empty(), "flows do not tell where hosts are attached");
    lab.announce_all();
    lab.run_for(SETTLED);
    assert_known(&mut lab, None);
    assert_eq!(flows(&lab), before);
    assert_none_lost(&lab, &pings);
    // Flows and letters work as without a restart.
    let pinged = lab.ping_all();
    assert!(pinged.is_complete(), "{pinged}");
    lab.move_host_unseen("h1", "s3");
    lab.run_for(SETTLED);
    lab.announce("h1");
    lab.run_for(SECOND);
    assert_steady(&mut lab, &pings);
    assert_known(&mut lab, Some(("h1", 2)));
    assert_eq!(lab.black_holes(), Vec::<String>::new());
    assert_eq!(counter(&mut lab, "moves"), 1);
}

fn hosts_that_are_not_known_again_get_flows_without_a_flood(version: Version) {
    let (mut lab, pings) = talking(LearningSettings::default(), version);
    restart(&mut lab, LearningSettings::default(), |_| ());
    // These hosts have not talked before.
    let frame = [&mac(&lab, "h6").0[..], &mac(&lab, "h1").0, &[0x88, 0xb5], &[0; 46]].concat();
    lab.capture("h6");
    lab.send_frame("h1", &frame);
    lab.run_for(SECOND / 20);
    assert!(lab.capture("h6").contains(&frame));
    assert_eq!((counter(&mut lab, "floods"), counter(&mut lab, "flow_mods")), (0, 3));
    assert!(lab.hosts_known().is_empty());
    // When the hosts are known, these flows stay, and so do the adopted ones.
    let before = flows(&lab);
    lab.announce_all();
    lab.run_for(SETTLED);
    assert_eq!(flows(&lab), before);
    assert_none_lost(&lab, &pings);
}

fn a_host_that_moved_to_another_switch_is_reached_when_it_is_heard_of(version: Version) {
    let (mut lab, pings) = talking(LearningSettings::default(), version);
    restart(&mut lab, LearningSettings::default(), |lab| lab.move_host_unseen("h1", "s3"));
    lab.announce("h1");
    lab.run_for(SETTLED);
    assert_steady(&mut lab, &pings);
    lab.announce_all();
    lab.run_for(SETTLED);
    assert_known(&mut lab, Some(("h1", 2)));
    assert_eq!(lab.black_holes(), Vec::<String>::new());
    let pinged = lab.ping_all();
    assert!(pinged.is_complete(), "{pinged}");
}

fn a_host_that_moved_is_reached_though_it_sends_to_stations_only(version: Version) {
    let (mut lab, pings) = talking(LearningSettings::default(), version);
    restart(&mut lab, LearningSettings::default(), |lab| lab.move_host_unseen("h3", "s1"));
    lab.run_for(SETTLED);
    assert_steady(&mut lab, &pings);
    lab.announce_all();
    lab.run_for(SETTLED);
    assert_known(&mut lab, Some(("h3", 0)));
    assert_eq!(lab.black_holes(), Vec::<String>::new());
}

fn a_switch_that_lost_its_flows_meanwhile_gets_them_again(version: Version) {
    for (switch, comes_last) in
        [("s1", true), ("s2", true), ("s3", true), ("s1", false), ("s2", false), ("s3", false)]
    {
        let (mut lab, pings) = talking(LearningSettings::default(), version);
        lab.stop_controller();
        lab.run_for(AWAY);
        lab.disconnect(switch);
        lab.restart(switch, false);
        if !comes_last {
            lab.reconnect(switch);
        }
        lab.start_controller(app(LearningSettings::default()));
        lab.run_for(BACK);
        if comes_last {
            lab.reconnect(switch);
        }
        assert!(lab.run_until(BACK, Lab::is_all_up));
        lab.run_for(SETTLED);
        assert_steady(&mut lab, &pings);
        lab.announce_all();
        lab.run_for(SETTLED);
        assert_known(&mut lab, None);
        assert_eq!(lab.black_holes(), Vec::<String>::new());
        assert_steady(&mut lab, &pings);
        if comes_last {
            assert_eq!(counter(&mut lab, "moves"), 0, "nobody was learnt at another switch");
        }
    }
}

fn switches_that_come_back_one_after_the_other_take_their_flows_on(version: Version) {
    for last in ["s1", "s2", "s3"] {
        let (mut lab, pings) = talking(LearningSettings::default(), version);
        let before = flows(&lab);
        lab.stop_controller();
        lab.run_for(AWAY);
        lab.disconnect(last);
        lab.start_controller(app(LearningSettings::default()));
        lab.run_for(BACK);
        lab.reconnect(last);
        assert!(lab.run_until(BACK, Lab::is_all_up));
        lab.run_for(SETTLED);
        assert_eq!(flows(&lab), before, "{last}");
        lab.announce_all();
        lab.run_for(SETTLED);
        assert_known(&mut lab, None);
        assert_eq!(flows(&lab), before, "{last}");
        assert_none_lost(&lab, &pings);
    }
}

fn flows_of_hosts_that_are_not_heard_of_go(version: Version) {
    let settings = LearningSettings { max_age_s: 20, idle_timeout_s: 0, ..Default::default() };
    let mut lab = Lab::seeded(11).topology(line()).version(version).run(app(settings));
    assert!(lab.ping("h1", "h3") && lab.ping("h2", "h6"));
    let before = flows(&lab);
    restart(&mut lab, settings, |_| ());
    lab.run_for(Duration::from_secs(10));
    assert_eq!(flows(&lab), before);
    // A sweep takes a minute.
    lab.run_for(Duration::from_secs(80));
    assert_eq!(flows(&lab), []);
    assert!(lab.ping("h1", "h3") && lab.ping("h2", "h6"));
    assert_eq!((lab.hosts_known().len(), counter(&mut lab, "moves")), (4, 0));
}

fn flows_that_were_taken_on_go_when_their_host_moves(version: Version) {
    let settings = LearningSettings { idle_timeout_s: 0, ..Default::default() };
    let (mut lab, pings) = talking(settings, version);
    restart(&mut lab, settings, |_| ());
    lab.announce_all();
    lab.run_for(SETTLED);
    let moving = mac(&lab, "h1");
    assert!(["s1", "s2", "s3"].iter().all(|switch| flows_about(&lab, switch, moving) > 0));
    lab.move_host_unseen("h1", "s2");
    lab.run_for(SETTLED);
    lab.announce("h1");
    lab.run_for(SECOND);
    assert_steady(&mut lab, &pings);
    assert_known(&mut lab, Some(("h1", 1)));
    assert_eq!(lab.black_holes(), Vec::<String>::new());
}
