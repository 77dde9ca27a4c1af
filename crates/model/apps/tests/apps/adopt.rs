//! Flows of learning switches when their connections, or the controller, come back.

use std::time::Duration;

use crate::odd::odd_flows;
use bellrock_api::{App, MacAddr, Version};
use bellrock_apps::{GlobalLearning, Learning, LearningSettings};
use bellrock_emulator::lab::{Lab, Pings};
use bellrock_emulator::topology::linear;
use bellrock_tables::{Budget, SharedTable};

/// A scenario on both versions, with each of the two apps.
macro_rules! with_each_app {
    ($($scenario:ident),*) => {$(
        mod $scenario {
            use bellrock_api::Version::{V1_0, V1_3};

            #[test]
            fn with_learning() {
                super::$scenario(super::learning, V1_0);
                super::$scenario(super::learning, V1_3);
            }

            #[test]
            fn with_global_learning() {
                super::$scenario(super::global_learning, V1_0);
                super::$scenario(super::global_learning, V1_3);
            }
        }
    )*};
}

with_each_app!(
    a_switch_that_comes_back_keeps_its_flows,
    a_controller_that_comes_back_takes_the_flows_on,
    flows_that_make_no_sense_harm_none_of_the_others,
    flows_of_other_settings_are_laid_anew,
    a_host_that_has_moved_meanwhile_is_reached_again,
    flows_of_a_port_that_went_down_meanwhile_go
);

/// Creates an app with these settings.
type Make<A> = fn(LearningSettings) -> A;

fn learning(settings: LearningSettings) -> Learning {
    Learning::new(settings, &Budget::unlimited())
}

fn global_learning(settings: LearningSettings) -> GlobalLearning<SharedTable> {
    GlobalLearning::new(settings, &Budget::unlimited())
}

const PING_INTERVAL: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);
/// Switches retry 1 and 3 s after the controller stopped, and again after 4 s.
const AWAY: Duration = Duration::from_secs(4);
const BACK: Duration = Duration::from_secs(5);
/// Global learning learns no host from packets to stations while wrong flows are being removed.
const SETTLED: Duration = Duration::from_secs(3);
const SWITCHES: [&str; 2] = ["s1", "s2"];

/// Two hosts at different switches talk, and so do two other hosts.
fn talking(make: Make<impl App>, version: Version) -> (Lab, [Pings; 2]) {
    let app = make(LearningSettings::default());
    let mut lab = Lab::seeded(7).topology(linear(2, 2)).version(version).run(app);
    assert!(lab.ping_all().is_complete());
    let hosts: Vec<String> = lab.topology().hosts().iter().map(|host| host.name.clone()).collect();
    let pings = [[0, 2], [1, 3]]
        .map(|[from, to]| lab.start_pings(&hosts[from], &hosts[to], u16::MAX, PING_INTERVAL));
    lab.run_for(SECOND);
    (lab, pings)
}

/// Creation time of each flow, by match, without the table-miss entry.
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

/// A counter of the app.
fn counter(lab: &mut Lab, name: &str) -> u64 {
    let app =
        if lab.app_counter("learning", name).is_some() { "learning" } else { "global_learning" };
    lab.app_counter(app, name).unwrap()
}

fn flows_about(lab: &Lab, mac: MacAddr) -> usize {
    flows(lab).iter().filter(|(flow, _)| flow.contains(&mac.to_string())).count()
}

/// Every ping was answered, except one under way.
fn assert_none_lost(lab: &Lab, pings: &[Pings]) {
    for pings in pings {
        let statistics = lab.statistics(pings);
        assert!(
            statistics.sent > 100 && statistics.received + 1 >= statistics.sent,
            "{statistics:?}"
        );
    }
}

/// No packet comes to the controller meanwhile.
fn assert_quiet(lab: &mut Lab, pings: &[Pings]) {
    let before = lab.counter("packet_ins");
    lab.run_for(SECOND);
    assert_eq!(lab.counter("packet_ins"), before);
    assert_none_lost(lab, pings);
}

fn restart(lab: &mut Lab, app: impl App, while_away: impl FnOnce(&mut Lab)) {
    lab.stop_controller();
    lab.run_for(AWAY);
    while_away(lab);
    lab.start_controller(app);
    assert!(lab.run_until(BACK, Lab::is_all_up));
    lab.run_for(Duration::from_millis(100));
}

fn a_switch_that_comes_back_keeps_its_flows(make: Make<impl App>, version: Version) {
    let (mut lab, pings) = talking(make, version);
    let before = flows(&lab);
    let installed = counter(&mut lab, "flow_mods");
    lab.disconnect("s1");
    lab.run_for(SECOND);
    lab.reconnect("s1");
    assert!(lab.run_until(BACK, Lab::is_all_up));
    assert_quiet(&mut lab, &pings);
    assert_eq!(flows(&lab), before);
    assert_eq!(counter(&mut lab, "flow_mods"), installed);
    let at_s1 = before.iter().filter(|(flow, _)| flow.starts_with("s1")).count() as u64;
    assert_eq!((lab.counter("flows_adopted"), lab.counter("stale_flows_removed")), (at_s1, 0));
    // The hosts of the flows are known: to each switch alone, or to all together.
    let known = lab.hosts_known();
    assert_eq!(known.len(), if known[0].1 == "learning" { 8 } else { 4 });
}

fn a_controller_that_comes_back_takes_the_flows_on(make: Make<impl App>, version: Version) {
    let (mut lab, pings) = talking(make, version);
    let before = flows(&lab);
    for _ in 0..3 {
        restart(&mut lab, make(LearningSettings::default()), |_| ());
        assert_quiet(&mut lab, &pings);
        assert_eq!(flows(&lab), before);
        assert_eq!(counter(&mut lab, "flow_mods"), 0);
        assert_eq!(lab.counter("flows_adopted"), before.len() as u64);
    }
}

/// The same entries with the cookies of an app, which is then asked about them.
fn odd_flows_of(version: Version, app: &str) -> Vec<Vec<u8>> {
    let cookie = bellrock_api::Cookie::of_app(app).with(0).to_be_bytes();
    let at = if version == Version::V1_0 { 64 } else { 24 };
    let mut entries = odd_flows(version);
    entries.iter_mut().for_each(|entry| entry[at..at + 8].copy_from_slice(&cookie));
    entries
}

fn flows_that_make_no_sense_harm_none_of_the_others(make: Make<impl App>, version: Version) {
    let (mut lab, pings) = talking(make, version);
    let before = flows(&lab);
    let app = make(LearningSettings::default());
    for entries in [odd_flows(version), odd_flows_of(version, app.name())] {
        SWITCHES.iter().for_each(|switch| lab.report_beside(switch, &entries.concat()));
        restart(&mut lab, make(LearningSettings::default()), |_| ());
        assert_quiet(&mut lab, &pings);
        assert_eq!(flows(&lab), before);
        assert_eq!(lab.counter("flows_adopted"), before.len() as u64);
        assert_eq!(lab.counter("malformed"), 0);
    }
}

fn flows_of_other_settings_are_laid_anew(make: Make<impl App>, version: Version) {
    let (mut lab, pings) = talking(make, version);
    let before = flows(&lab).len() as u64;
    let changed = LearningSettings { idle_timeout_s: 61, ..LearningSettings::default() };
    restart(&mut lab, make(changed), |_| ());
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

fn a_host_that_has_moved_meanwhile_is_reached_again(make: Make<impl App>, version: Version) {
    let (mut lab, pings) = talking(make, version);
    let moving = &lab.topology().hosts()[0];
    let (name, mac) = (moving.name.clone(), moving.mac);
    restart(&mut lab, make(LearningSettings::default()), |lab| lab.move_host_unseen(&name, "s2"));
    // The host sends its next ping within the interval, and the answer reaches it.
    lab.run_for(SECOND);
    let [pings, other] = pings;
    let answered = lab.statistics(&pings).received;
    lab.run_for(SECOND);
    assert!(lab.statistics(&pings).received >= answered + 99);
    assert!(flows_about(&lab, mac) > 0);
    assert_none_lost(&lab, &[other]);
}

fn flows_of_a_port_that_went_down_meanwhile_go(make: Make<impl App>, version: Version) {
    let (mut lab, [_, other]) = talking(make, version);
    let gone = &lab.topology().hosts()[0];
    let (name, mac) = (gone.name.clone(), gone.mac);
    restart(&mut lab, make(LearningSettings::default()), |lab| lab.link_down("s1", &name));
    let at_s1 = |lab: &Lab| {
        let flows = flows(lab).into_iter().filter(|(flow, _)| flow.starts_with("s1"));
        flows.filter(|(flow, _)| flow.contains(&mac.to_string())).count()
    };
    assert_eq!(at_s1(&lab), 0);
    assert_none_lost(&lab, &[other]);
    // They return with the link.
    lab.link_up("s1", &name);
    lab.run_for(SETTLED);
    assert!(at_s1(&lab) > 0);
}
