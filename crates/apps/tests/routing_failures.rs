//! Reactive routing with a switch that does not confirm: it holds up nobody else.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::time::Duration;

use bellrock_api::Version;
use bellrock_apps::{Routing, RoutingSettings};
use bellrock_emulator::lab::{Lab, LabBuilder};
use bellrock_emulator::topology::leaf_spine;

const VERSIONS: [Version; 2] = [Version::V1_0, Version::V1_3];

/// By then discovery has asked all ports.
const SETTLED: Duration = Duration::from_secs(12);

const PING_EVERY: Duration = Duration::from_millis(10);

/// The lab when all hosts are known, in reactive mode.
fn known(lab: LabBuilder, idle_timeout_s: u16) -> Lab {
    let settings = RoutingSettings { idle_timeout_s, ..RoutingSettings::default() };
    let mut lab = lab.run(Routing::new(settings));
    lab.run_for(SETTLED);
    let hosts: Vec<String> = lab.topology().hosts().iter().map(|host| host.name.clone()).collect();
    hosts.iter().for_each(|host| lab.announce(host));
    lab.run_for(Duration::from_secs(1));
    lab
}

#[test]
fn a_switch_that_does_not_confirm_holds_up_only_those_whose_flows_are_to_be_changed_in_it() {
    for version in VERSIONS {
        // s1, s2 and s3 with four hosts each, and s4, s5 and s6 between them.
        let lab = Lab::seeded(1).topology(leaf_spine(3, 3, 4)).version(version);
        let mut lab = known(lab, 60);
        let pairs: Vec<(String, String)> = (1..=4)
            .flat_map(|from| (5..=12).map(move |to| (format!("h{from}"), format!("h{to}"))))
            .collect();
        let named: Vec<(&str, &str)> = pairs.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert!(lab.ping_pairs(&named).is_complete() && lab.ping_pairs(&named).is_complete());
        let crosses = |lab: &Lab, (from, to): (&str, &str), switch: &str| {
            [lab.paths(from, to), lab.paths(to, from)].map(|paths| {
                paths.iter().flatten().any(|hop| hop.split(':').next() == Some(switch))
            })
        };
        let before: Vec<[bool; 2]> = named.iter().map(|pair| crosses(&lab, *pair, "s4")).collect();
        let pings: Vec<_> =
            named.iter().map(|(from, to)| lab.start_pings(from, to, 300, PING_EVERY)).collect();
        lab.run_for(Duration::from_millis(100));
        lab.silence("s5");
        lab.link_down("s1", "s4");
        lab.run_for(Duration::from_secs(4));
        let mut moved = 0;
        for ((pair, before), ping) in named.iter().zip(before).zip(&pings) {
            let after = crosses(&lab, *pair, "s6");
            let has_moved = before != [false; 2] && (0..2).all(|way| !before[way] || after[way]);
            if has_moved {
                let statistics = lab.statistics(ping);
                let lost = statistics.sent - statistics.received;
                assert!(lost <= 5, "{version} {pair:?}: {statistics:?}");
                moved += 1;
            }
        }
        assert!(moved > 0, "{version}: {:?}", lab.flows("s1"));
    }
}
