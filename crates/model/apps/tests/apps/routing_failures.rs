//! Reactive routing with switches that refuse flows or are slow to confirm: each gets rare retries,
//! and delays only its own pairs.

use std::time::Duration;

use crate::known::known;
use bellrock_api::Version;
use bellrock_apps::{Routing, RoutingSettings};
use bellrock_emulator::lab::{Lab, LabBuilder};
use bellrock_emulator::network::NetworkSettings;
use bellrock_emulator::topology::{leaf_spine, ring};

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

const PING_EVERY: Duration = Duration::from_millis(10);

/// A lab in reactive mode, in which all hosts are known.
fn reactive(lab: LabBuilder, idle_timeout_s: u16) -> Lab {
    let settings = RoutingSettings { idle_timeout_s, ..RoutingSettings::default() };
    known(lab.run(Routing::new(settings)))
}

#[test]
fn a_switch_that_does_not_confirm_holds_up_only_those_whose_flows_are_to_be_changed_in_it() {
    for version in VERSIONS {
        // s1, s2 and s3 with four hosts each, and s4, s5 and s6 between them.
        let lab = Lab::seeded(1).topology(leaf_spine(3, 3, 4)).version(version);
        let mut lab = reactive(lab, 60);
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

#[test]
fn a_flow_that_is_refused_is_asked_for_seldom_and_is_there_when_there_is_room() {
    const IDLE_S: u16 = 20;
    for version in VERSIONS {
        let own = reactive(Lab::seeded(1).topology(ring(4, 3)).version(version), IDLE_S);
        let own = own.flows("s4").len() as u32;
        // The table has space only for the flows between the three hosts of s4.
        let network = NetworkSettings { table_capacity: own + 6, ..NetworkSettings::default() };
        let lab = Lab::seeded(1).topology(ring(4, 3)).version(version).network(network);
        let mut lab = reactive(lab, IDLE_S);
        let at = |lab: &Lab, switch: &str| {
            let mac =
                |name| lab.topology().hosts().iter().find(|host| host.name == name).unwrap().mac;
            let from = format!("dl_src={}", mac("h1s1"));
            let to = format!("dl_dst={}", mac("h1s3"));
            let of_pair = |flow: &&String| flow.contains(&from) && flow.contains(&to);
            lab.flows(switch).iter().filter(of_pair).count()
        };
        lab.link_down("s4", "s1");
        lab.run_for(Duration::from_secs(1));
        let of_s4 = [("h1s4", "h2s4"), ("h2s4", "h3s4"), ("h3s4", "h1s4")];
        assert!(lab.ping("h1s1", "h1s3") && lab.ping("h1s1", "h1s3"));
        assert!(lab.ping_pairs(&of_s4).is_complete() && lab.ping_pairs(&of_s4).is_complete());
        assert_eq!((lab.flows("s4").len() as u32, at(&lab, "s2")), (own + 6, 1), "{version}");
        let pings = lab.start_pings("h1s1", "h1s3", 700, Duration::from_millis(100));
        lab.link_up("s4", "s1");
        lab.run_for(Duration::from_secs(5));
        lab.link_down("s1", "s2");
        lab.run_for(Duration::from_secs(1));
        let before = lab.app_counter("routing", "flow_mods").unwrap();
        lab.run_for(Duration::from_secs(9));
        let sent = lab.app_counter("routing", "flow_mods").unwrap() - before;
        assert!((1..=16).contains(&sent), "{version}: {sent}");
        assert_eq!(at(&lab, "s4"), 0, "{version}: {:?}", lab.flows("s4"));
        // The hosts of s4 are silent, and their flows time out.
        lab.run_for(Duration::from_secs(60));
        assert_eq!(at(&lab, "s4"), 1, "{version}: {:?}", lab.flows("s4"));
        let statistics = lab.statistics(&pings);
        assert!(statistics.received >= 697, "{version}: {statistics:?}");
        assert_eq!(lab.findings(), [""; 0], "{version}");
    }
}
