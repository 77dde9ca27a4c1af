//! Flows of learning switches when their connections, or the controller, come back.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::time::Duration;

use bellrock_api::{MacAddr, Version};
use bellrock_apps::{Learning, LearningSettings};
use bellrock_emulator::lab::{Lab, Pings, on_both_versions};
use bellrock_emulator::topology::linear;
use bellrock_tables::Budget;

on_both_versions!(
    a_switch_that_comes_back_keeps_its_flows,
    a_controller_that_comes_back_takes_the_flows_on,
    flows_of_other_settings_are_laid_anew,
    a_host_that_has_moved_meanwhile_is_reached_again,
    flows_of_a_port_that_went_down_meanwhile_go
);

const PING_INTERVAL: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);
/// Switches have tried their controller 1 and 3 s after it stopped, and try again after 4 s.
const AWAY: Duration = Duration::from_secs(4);
const BACK: Duration = Duration::from_secs(5);
const SWITCHES: [&str; 2] = ["s1", "s2"];

/// Two hosts at different switches talk, and so do two others.
fn talking(version: Version) -> (Lab, [Pings; 2]) {
    let mut lab = Lab::seeded(7).topology(linear(2, 2)).version(version).run(Learning::default());
    assert!(lab.ping_all().is_complete());
    let hosts: Vec<String> = lab.topology().hosts().iter().map(|host| host.name.clone()).collect();
    let pings = [[0, 2], [1, 3]]
        .map(|[from, to]| lab.start_pings(&hosts[from], &hosts[to], u16::MAX, PING_INTERVAL));
    lab.run_for(SECOND);
    (lab, pings)
}

/// Since when each flow is there, by what it matches; the table-miss entry left out.
fn flows(lab: &Lab) -> Vec<(String, Duration)> {
    let of = |name: &&str| {
        let tables = lab.switch(name).datapath().tables().iter();
        let flows = tables.flat_map(|(_, table)| table.flows()).map(|(_, flow)| flow);
        let learnt = flows.filter(|flow| flow.priority > 0);
        learnt.map(|flow| (format!("{name} {}", flow.matching()), flow.created)).collect::<Vec<_>>()
    };
    let mut flows: Vec<_> = SWITCHES.iter().flat_map(of).collect();
    flows.sort();
    flows
}

fn flows_about(lab: &Lab, mac: MacAddr) -> usize {
    flows(lab).iter().filter(|(flow, _)| flow.contains(&mac.to_string())).count()
}

/// Every ping was answered, but for one that is under way.
fn assert_none_lost(lab: &Lab, pings: &[Pings]) {
    for pings in pings {
        let statistics = lab.statistics(pings);
        assert!(
            statistics.sent > 100 && statistics.received + 1 >= statistics.sent,
            "{statistics:?}"
        );
    }
}

/// No packet comes to the controller while they go on.
fn assert_quiet(lab: &mut Lab, pings: &[Pings]) {
    let before = lab.counter("packet_ins");
    lab.run_for(SECOND);
    assert_eq!(lab.counter("packet_ins"), before);
    assert_none_lost(lab, pings);
}

fn restart(lab: &mut Lab, settings: LearningSettings, while_away: impl FnOnce(&mut Lab)) {
    lab.stop_controller();
    lab.run_for(AWAY);
    while_away(lab);
    lab.start_controller(Learning::new(settings, &Budget::unlimited()));
    assert!(lab.run_until(BACK, Lab::is_all_up));
    lab.run_for(Duration::from_millis(100));
}

fn a_switch_that_comes_back_keeps_its_flows(version: Version) {
    let (mut lab, pings) = talking(version);
    let before = flows(&lab);
    let installed = lab.app_counter("learning", "flow_mods");
    lab.disconnect("s1");
    lab.run_for(SECOND);
    lab.reconnect("s1");
    assert!(lab.run_until(BACK, Lab::is_all_up));
    assert_quiet(&mut lab, &pings);
    assert_eq!(flows(&lab), before);
    assert_eq!(lab.app_counter("learning", "flow_mods"), installed);
    let at_s1 = before.iter().filter(|(flow, _)| flow.starts_with("s1")).count() as u64;
    assert_eq!((lab.counter("flows_adopted"), lab.counter("stale_flows_removed")), (at_s1, 0));
    // What it learnt by them it knows.
    assert_eq!(lab.hosts_known().len(), 8);
}

fn a_controller_that_comes_back_takes_the_flows_on(version: Version) {
    let (mut lab, pings) = talking(version);
    let before = flows(&lab);
    for _ in 0..3 {
        restart(&mut lab, LearningSettings::default(), |_| ());
        assert_quiet(&mut lab, &pings);
        assert_eq!(flows(&lab), before);
        assert_eq!(lab.app_counter("learning", "flow_mods"), Some(0));
        assert_eq!(lab.counter("flows_adopted"), before.len() as u64);
    }
}

fn flows_of_other_settings_are_laid_anew(version: Version) {
    let (mut lab, pings) = talking(version);
    let before = flows(&lab).len() as u64;
    let changed = LearningSettings { idle_timeout_s: 61, ..LearningSettings::default() };
    restart(&mut lab, changed, |_| ());
    assert_eq!((lab.counter("flows_adopted"), lab.counter("stale_flows_removed")), (0, before));
    lab.run_for(SECOND);
    assert!(!flows(&lab).is_empty());
    assert_quiet(&mut lab, &[]);
    let answered = pings.map(|pings| lab.statistics(&pings).received);
    lab.run_for(SECOND);
    for (pings, answered) in pings.iter().zip(answered) {
        assert!(lab.statistics(pings).received >= answered + 99);
    }
}

fn a_host_that_has_moved_meanwhile_is_reached_again(version: Version) {
    let (mut lab, pings) = talking(version);
    let moving = &lab.topology().hosts()[0];
    let (name, mac) = (moving.name.clone(), moving.mac);
    restart(&mut lab, LearningSettings::default(), |lab| lab.move_host_unseen(&name, "s2"));
    // It sends its next ping within the interval, and the answer comes to where it is.
    lab.run_for(SECOND);
    let [pings, other] = pings;
    let answered = lab.statistics(&pings).received;
    lab.run_for(SECOND);
    assert!(lab.statistics(&pings).received >= answered + 99);
    assert!(lab.app_counter("learning", "moves").unwrap() >= 1);
    assert!(flows_about(&lab, mac) > 0);
    assert_none_lost(&lab, &[other]);
}

fn flows_of_a_port_that_went_down_meanwhile_go(version: Version) {
    let (mut lab, [_, other]) = talking(version);
    let gone = &lab.topology().hosts()[0];
    let (name, mac) = (gone.name.clone(), gone.mac);
    restart(&mut lab, LearningSettings::default(), |lab| lab.link_down("s1", &name));
    let at_s1 = |lab: &Lab| {
        let flows = flows(lab).into_iter().filter(|(flow, _)| flow.starts_with("s1"));
        flows.filter(|(flow, _)| flow.contains(&mac.to_string())).count()
    };
    assert_eq!(at_s1(&lab), 0);
    assert_none_lost(&lab, &[other]);
    // And are there again when it is.
    lab.link_up("s1", &name);
    lab.run_for(SECOND);
    assert!(at_s1(&lab) > 0);
}
