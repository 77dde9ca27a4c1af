//! Global learning in emulated networks, with each of the three tables.

use std::time::Duration;

use bellrock_api::{App, Field, MacAddr, Port, Version};
use bellrock_apps::global_learning::GlobalTable;
use bellrock_apps::{GlobalLearning, Learning, LearningSettings};
use bellrock_emulator::host::FlowState;
use bellrock_emulator::lab::{Lab, LabBuilder, Pings};
use bellrock_emulator::topology::{TopologySpec, linear, tree};
use bellrock_sharing::{InMutex, InTransactions};
use bellrock_tables::{Budget, SharedTable};

const SEED: u64 = 42;
const PING_INTERVAL: Duration = Duration::from_millis(50);
const SETTLE: Duration = Duration::from_secs(1);
/// The time in which a packet of a host counts as passing, and a second for letters.
const MOVED: Duration = Duration::from_secs(4);
const STEADY: Duration = Duration::from_secs(1);

/// A scenario on both versions, with each kind of table.
macro_rules! with_each_table {
    ($($scenario:ident),*) => {$(
        mod $scenario {
            use bellrock_api::Version::{V1_0, V1_3};

            #[test]
            fn without_locks() {
                super::$scenario::<super::SharedTable>(V1_0);
                super::$scenario::<super::SharedTable>(V1_3);
            }

            #[test]
            fn behind_a_mutex() {
                super::$scenario::<super::InMutex>(V1_0);
                super::$scenario::<super::InMutex>(V1_3);
            }

            #[test]
            fn in_transactions() {
                super::$scenario::<super::InTransactions>(V1_0);
                super::$scenario::<super::InTransactions>(V1_3);
            }
        }
    )*};
}

with_each_table!(
    all_reach_each_other_over_flows,
    hosts_known_to_one_switch_are_known_to_all,
    a_host_moves_to_another_switch,
    a_host_moves_while_its_old_link_goes_down,
    a_port_that_goes_down_takes_its_hosts_with_it,
    silent_hosts_are_forgotten_everywhere,
    a_switch_that_comes_back_learns_the_ways_again,
    a_port_that_went_down_while_its_switch_was_away_has_no_hosts,
    several_workers_share_the_table
);

fn app<T: GlobalTable>(settings: LearningSettings) -> GlobalLearning<T> {
    GlobalLearning::new(settings, &Budget::unlimited())
}

fn lab<T: GlobalTable>(builder: LabBuilder, version: Version) -> Lab {
    builder.version(version).run(app::<T>(LearningSettings::default()))
}

fn seeded() -> LabBuilder {
    Lab::seeded(SEED)
}

/// A line of switches with two hosts at each: h1 and h2 at s1, and so on.
fn line(switches: u32) -> TopologySpec {
    let mut text = String::new();
    for number in 1..=switches {
        let (one, two) = (2 * number - 1, 2 * number);
        text.push_str(&format!("switch s{number}\nhost h{one}\nhost h{two}\n"));
        text.push_str(&format!("link s{number} h{one}\nlink s{number} h{two}\n"));
    }
    for number in 1..switches {
        text.push_str(&format!("link s{number} s{}\n", number + 1));
    }
    TopologySpec::parse(&text).unwrap()
}

fn counter(lab: &mut Lab, name: &str) -> u64 {
    lab.app_counter("global_learning", name).unwrap()
}

/// Number of flows of a switch to or from a host.
fn flows_about(lab: &Lab, switch: &str, mac: MacAddr) -> usize {
    let tables = lab.switch(switch).datapath().tables().iter();
    let flows = tables.flat_map(|(_, table)| table.flows());
    let about = flows.filter(|(_, flow)| {
        let is = |field| flow.matching().value(field) == Some(mac.to_u64().into());
        is(Field::EthDst) || is(Field::EthSrc)
    });
    about.count()
}

/// The places of a host as the app lists them.
fn places(lab: &mut Lab, mac: MacAddr) -> Vec<(u64, Port)> {
    let hosts = lab.hosts_known();
    let its = hosts.into_iter().filter(|(_, _, entry)| entry.mac == mac);
    its.map(|(dpid, _, entry)| (dpid.0, entry.port)).collect()
}

fn mac(lab: &Lab, host: &str) -> MacAddr {
    let hosts = lab.topology().hosts().iter();
    hosts.filter(|its| its.name == host).map(|its| its.mac).next().unwrap()
}

fn assert_steady(lab: &mut Lab, pings: &[Pings]) {
    let before: Vec<u32> = pings.iter().map(|pings| lab.statistics(pings).received).collect();
    lab.run_for(STEADY);
    let sent = (STEADY.as_millis() / PING_INTERVAL.as_millis()) as u32;
    for (pings, before) in pings.iter().zip(before) {
        let answered = lab.statistics(pings).received - before;
        assert!(answered + 1 >= sent, "{answered} of {sent} pings were answered");
    }
}

/// Each host is attached once, and a stream over three switches uses flows.
fn all_reach_each_other_over_flows<T: GlobalTable>(version: Version) {
    const STREAM_BYTES: u64 = 2_000_000;
    let mut lab = lab::<T>(seeded().topology(tree(2, 3)), version);
    let pinged = lab.ping_all();
    assert!(pinged.is_complete(), "{pinged}");
    assert_eq!(lab.duplicates(), []);
    assert_eq!(lab.hosts_known().len(), 9, "each at one switch, and at no other");
    let report = lab.tcp("h1", "h9", STREAM_BYTES);
    assert_eq!((report.state, report.bytes), (FlowState::Done, STREAM_BYTES));
    assert_eq!(lab.black_holes(), Vec::<String>::new());
    assert_eq!(counter(&mut lab, "moves"), 0);
}

/// One packet from a switch shows the way to all its hosts: fewer floods than with local learning.
fn hosts_known_to_one_switch_are_known_to_all<T: GlobalTable>(version: Version) {
    fn flooded(app: impl App, version: Version) -> u64 {
        let name = app.name().to_owned();
        let mut lab = seeded().topology(line(4)).version(version).run(app);
        // Every host has been seen: by its neighbour at the same switch, and by broadcast.
        for (one, two) in [("h1", "h2"), ("h3", "h4"), ("h5", "h6"), ("h7", "h8")] {
            assert!(lab.ping(one, two));
        }
        let before = lab.app_counter(&name, "floods").unwrap();
        // The second host of each switch has never sent a broadcast.
        for (from, to) in [("h2", "h8"), ("h4", "h6"), ("h8", "h4"), ("h6", "h2")] {
            let frame =
                [&mac(&lab, to).0[..], &mac(&lab, from).0, &[0x88, 0xb5], &[0; 46]].concat();
            lab.send_frame(from, &frame);
            lab.run_for(SETTLE);
        }
        lab.app_counter(&name, "floods").unwrap() - before
    }
    let local = flooded(Learning::default(), version);
    let global = flooded(app::<T>(LearningSettings::default()), version);
    assert_eq!(global, 0, "all ways are known");
    assert!(local > 0, "without the others' knowledge");
}

/// The old port stays up. The old switch and those on the way remove their flows.
fn a_host_moves_to_another_switch<T: GlobalTable>(version: Version) {
    let mut lab = lab::<T>(seeded().topology(line(3)), version);
    let moving = mac(&lab, "h1");
    let pings = ["h2", "h3", "h5"].map(|from| lab.start_pings(from, "h1", u16::MAX, PING_INTERVAL));
    lab.run_for(SETTLE);
    assert_steady(&mut lab, &pings);
    let [(first, _)] = places(&mut lab, moving)[..] else { panic!("attached once") };
    lab.move_host_unseen("h1", "s3");
    lab.run_for(MOVED);
    assert_ne!(flows_about(&lab, "s1", moving), 0, "nobody knows yet");
    lab.announce("h1");
    lab.run_for(SETTLE);
    assert_steady(&mut lab, &pings);
    let [(now, _)] = places(&mut lab, moving)[..] else { panic!("attached once") };
    assert_ne!(now, first);
    assert_eq!(counter(&mut lab, "moves"), 1);
    assert_eq!(lab.black_holes(), Vec::<String>::new());
    let pinged = lab.ping_all();
    assert!(pinged.is_complete(), "{pinged}");
}

fn a_host_moves_while_its_old_link_goes_down<T: GlobalTable>(version: Version) {
    let mut lab = lab::<T>(seeded().topology(line(3)), version);
    let moving = mac(&lab, "h1");
    let pings = ["h3", "h5"].map(|from| lab.start_pings(from, "h1", u16::MAX, PING_INTERVAL));
    lab.run_for(SETTLE);
    lab.move_host("h1", "s2");
    lab.run_for(MOVED);
    assert_eq!(flows_about(&lab, "s1", moving), 0, "flows of the port that is down");
    lab.announce("h1");
    lab.run_for(SETTLE);
    assert_steady(&mut lab, &pings);
}

fn a_port_that_goes_down_takes_its_hosts_with_it<T: GlobalTable>(version: Version) {
    let mut lab = lab::<T>(seeded().topology(line(3)), version);
    assert!(lab.ping("h1", "h6") && lab.ping("h1", "h3"));
    let gone = mac(&lab, "h1");
    lab.link_down("s1", "h1");
    lab.run_for(SETTLE + SETTLE);
    assert_eq!(places(&mut lab, gone), []);
    for switch in ["s1", "s2", "s3"] {
        assert_eq!(flows_about(&lab, switch, gone), 0, "{switch}");
    }
    // A link between switches: the ways over it are forgotten, and found again.
    lab.link_down("s2", "s3");
    lab.run_for(SETTLE);
    assert!(!lab.ping("h2", "h6") && lab.ping("h2", "h4"));
    lab.link_up("s2", "s3");
    lab.run_for(MOVED);
    assert!(lab.ping("h2", "h6"));
    assert_eq!(counter(&mut lab, "moves"), 0);
}

fn silent_hosts_are_forgotten_everywhere<T: GlobalTable>(version: Version) {
    let settings = LearningSettings { max_age_s: 5, idle_timeout_s: 0, ..Default::default() };
    let lab = seeded().topology(line(2)).version(version);
    let mut lab = lab.run(app::<T>(settings));
    assert!(lab.ping("h1", "h3"));
    let silent = mac(&lab, "h1");
    assert!(flows_about(&lab, "s1", silent) > 0 && flows_about(&lab, "s2", silent) > 0);
    // A sweep takes a minute.
    lab.run_for(Duration::from_secs(70));
    assert_eq!(places(&mut lab, silent), []);
    assert_eq!(flows_about(&lab, "s1", silent) + flows_about(&lab, "s2", silent), 0);
    assert!(counter(&mut lab, "aged_out") >= 2);
    assert!(lab.ping("h3", "h1"));
}

fn a_switch_that_comes_back_learns_the_ways_again<T: GlobalTable>(version: Version) {
    let mut lab = lab::<T>(seeded().topology(linear(4, 1)), version);
    assert!(lab.ping_all().is_complete());
    for switch in ["s2", "s3"] {
        lab.restart(switch, false);
        lab.run_for(MOVED);
    }
    let pinged = lab.ping_all();
    assert!(pinged.is_complete(), "{pinged}");
    assert_eq!(lab.hosts_known().len(), 4);
}

fn a_port_that_went_down_while_its_switch_was_away_has_no_hosts<T: GlobalTable>(version: Version) {
    let mut lab = lab::<T>(seeded().topology(line(2)), version);
    assert!(lab.ping("h1", "h2") && lab.ping("h1", "h3"));
    let gone = mac(&lab, "h1");
    lab.disconnect("s1");
    lab.run_for(SETTLE);
    lab.link_down("s1", "h1");
    lab.reconnect("s1");
    lab.run_for(SETTLE + SETTLE);
    assert_eq!(places(&mut lab, gone), []);
    assert_eq!(flows_about(&lab, "s1", gone) + flows_about(&lab, "s2", gone), 0);
}

fn several_workers_share_the_table<T: GlobalTable>(version: Version) {
    let lab = seeded().topology(tree(3, 2)).version(version).workers(3);
    let mut lab = lab.run(app::<T>(LearningSettings::default()));
    let pinged = lab.ping_all();
    assert!(pinged.is_complete(), "{pinged}");
    lab.hand_over("s2", 2);
    let pinged = lab.ping_all();
    assert!(pinged.is_complete(), "{pinged}");
    assert_eq!((lab.hosts_known().len(), counter(&mut lab, "moves")), (8, 0));
}
