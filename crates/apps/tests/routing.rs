//! Routing in networks with cycles: everybody reaches everybody, nothing runs in circles, and what fails is
//! gone around.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::net::IpAddr;
use std::time::Duration;

use bellrock_api::{
    App, Dpid, Handler, Host, HostId, Network, Port, SwitchInfo, SwitchPort, Version,
};
use bellrock_apps::RoutingMode::{Proactive, Reactive};
use bellrock_apps::{Routing, RoutingMode, RoutingSettings};
use bellrock_emulator::lab::Lab;
use bellrock_emulator::topology::{Named, Node, Topology, fat_tree, ring};
use bellrock_services::discovery::{Discovery, DiscoverySettings};
use bellrock_services::paths::PathService;

const VERSIONS: [Version; 2] = [Version::V1_0, Version::V1_3];

/// Everything works in each of these.
const ALL: [(Version, RoutingMode); 4] = [
    (Version::V1_0, Reactive),
    (Version::V1_3, Reactive),
    (Version::V1_0, Proactive),
    (Version::V1_3, Proactive),
];

/// By then discovery has asked all ports.
const SETTLED: Duration = Duration::from_secs(12);

/// Publishes the hosts of a topology from the start.
struct AllHosts(Topology);

struct Nothing;

impl Handler for Nothing {}

impl App for AllHosts {
    type Handler = Nothing;

    fn wants_packet_ins(&self) -> bool {
        false
    }

    fn start(&self, network: &Network) {
        network.hosts().update(|hosts| {
            let mut hosts = hosts.clone();
            for host in self.0.hosts() {
                let id = Node::Host(self.0.host(&host.name).unwrap());
                let ends = self.0.links().iter().flat_map(|link| {
                    let [a, b] = link.ends;
                    [(a, b), (b, a)]
                });
                let (_, place) = ends.into_iter().find(|(end, _)| end.node == id).unwrap();
                let Node::Switch(switch) = place.node else { panic!("{} is alone", host.name) };
                let (dpid, port) = (Dpid(self.0.switches()[switch.index()].dpid), place.port);
                hosts.insert(Host {
                    id: HostId::new(host.mac, None),
                    at: SwitchPort::new(dpid, Port(port)),
                    addresses: vec![IpAddr::V4(host.ip)],
                    since: Duration::ZERO,
                });
            }
            hosts
        });
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Nothing {
        Nothing
    }
}

fn lab(topology: Named, version: Version, mode: RoutingMode) -> Lab {
    let built = topology.build().unwrap();
    let mut lab = Lab::seeded(1)
        .topology(topology)
        .version(version)
        .app(Discovery::new(DiscoverySettings::default()).unwrap())
        .app(AllHosts(built))
        .app(PathService)
        .run(Routing::new(RoutingSettings { mode, ..RoutingSettings::default() }));
    lab.run_for(SETTLED);
    lab
}

#[test]
fn everybody_reaches_everybody_in_networks_with_cycles() {
    for (version, mode) in ALL {
        for topology in [ring(4, 1), ring(5, 2), fat_tree(4)] {
            let mut lab = lab(topology, version, mode);
            for round in 1..=2 {
                let pinged = lab.ping_all();
                assert!(
                    pinged.is_complete(),
                    "{topology} {version} {mode:?} round {round}:\n{pinged}"
                );
                assert_eq!(lab.findings(), [""; 0], "{topology} {version} {mode:?} round {round}");
            }
            assert_eq!(lab.duplicates(), [], "{topology} {version} {mode:?}");
        }
    }
}

#[test]
fn any_link_of_a_ring_can_be_cut_under_a_running_ping() {
    const EVERY: Duration = Duration::from_millis(10);
    for (version, mode) in ALL {
        for (a, b) in [("s1", "s2"), ("s2", "s3"), ("s3", "s4"), ("s4", "s1")] {
            let mut lab = lab(ring(4, 1), version, mode);
            assert!(lab.ping_all().is_complete());
            let pings = [("h1", "h3"), ("h2", "h4"), ("h1", "h2")];
            let pings = pings.map(|(from, to)| lab.start_pings(from, to, 300, EVERY));
            lab.run_for(Duration::from_secs(1));
            lab.link_down(a, b);
            lab.run_for(Duration::from_secs(3));
            for ping in &pings {
                let statistics = lab.statistics(ping);
                let lost = statistics.sent - statistics.received;
                assert!(
                    statistics.sent == 300 && lost <= 2,
                    "{version} {mode:?} {a} {b}: {statistics:?}"
                );
            }
            assert_eq!(lab.findings(), [""; 0], "{version} {mode:?} {a} {b}");
            // Nothing moves for it that does not have to, and nothing is lost.
            let pings = lab.start_pings("h1", "h3", 300, EVERY);
            lab.link_up(a, b);
            lab.run_for(Duration::from_secs(12));
            let statistics = lab.statistics(&pings);
            assert_eq!(statistics.received, 300, "{version} {mode:?} {a} {b}: {statistics:?}");
            assert!(lab.ping_all().is_complete());
            assert_eq!(lab.findings(), [""; 0], "{version} {mode:?} {a} {b}");
            assert_eq!(lab.duplicates(), [], "{version} {mode:?} {a} {b}");
        }
    }
}

#[test]
fn hosts_that_are_not_known_are_reached_by_flooding_and_nothing_comes_twice() {
    for version in VERSIONS {
        let begin = || Lab::seeded(1).topology(fat_tree(4)).version(version).app(PathService);
        // As long as it is not known which ports are those of hosts, nothing is flooded.
        let mut lab = begin().run(Routing::default());
        assert!(!lab.ping("h1", "h16"));
        assert_eq!(lab.app_counter("routing", "floods"), Some(0));
        let discovery = Discovery::new(DiscoverySettings::default()).unwrap();
        let mut lab = begin().app(discovery).run(Routing::default());
        lab.run_for(SETTLED);
        assert!(lab.ping("h1", "h16"));
        assert!(lab.app_counter("routing", "floods").unwrap() > 0);
        assert_eq!(lab.duplicates(), [], "{version}");
    }
}

#[test]
fn flows_of_hosts_that_are_silent_go_and_come_back_when_they_talk() {
    let mut lab = lab(ring(4, 1), Version::V1_3, Reactive);
    assert!(lab.ping("h1", "h3") && lab.ping("h1", "h3"));
    let flows = |lab: &Lab| {
        let all = ["s1", "s2", "s3", "s4"].map(|switch| lab.flows(switch));
        all.iter().flatten().filter(|flow| flow.contains("eth_src")).count()
    };
    assert!(flows(&lab) >= 6, "{:?}", lab.flows("s1"));
    lab.run_for(Duration::from_secs(70));
    assert_eq!(flows(&lab), 0, "{:?}", lab.flows("s1"));
    assert!(lab.ping("h1", "h3") && lab.ping("h1", "h3"));
    assert!(flows(&lab) >= 6);
}

#[test]
fn a_switch_that_comes_back_empty_gets_its_flows_again() {
    for (version, mode) in ALL {
        let mut lab = lab(ring(4, 1), version, mode);
        assert!(lab.ping_all().is_complete());
        let before = lab.flows("s2").len();
        lab.restart("s2", false);
        lab.run_for(SETTLED * 2);
        assert!(lab.is_all_up());
        assert!(lab.ping_all().is_complete());
        assert_eq!(lab.findings(), [""; 0], "{version} {mode:?}");
        assert!(lab.flows("s2").len() > before / 2, "{:?}", lab.flows("s2"));
    }
}

#[test]
fn flows_that_an_earlier_run_left_are_taken_on() {
    for version in VERSIONS {
        let mut lab = lab(ring(4, 1), version, Reactive);
        assert!(lab.ping_all().is_complete());
        let flows = |lab: &Lab| {
            let all = ["s1", "s2", "s3", "s4"].map(|switch| lab.flows(switch));
            all.iter().flatten().filter(|flow| flow.contains("output")).count()
        };
        let before = flows(&lab);
        let pings = lab.start_pings("h1", "h3", 2000, Duration::from_millis(10));
        lab.stop_controller();
        lab.run_for(Duration::from_secs(1));
        lab.start_controller(Routing::default());
        lab.run_for(Duration::from_secs(25));
        let statistics = lab.statistics(&pings);
        assert_eq!(statistics.received, 2000, "{version}: {statistics:?}");
        assert!(before > 0 && flows(&lab) <= before);
    }
}

#[test]
fn proactive_flows_are_there_before_anybody_talks_and_spread_over_all_shortest_paths() {
    for version in VERSIONS {
        let mut lab = lab(fat_tree(4), version, Proactive);
        // To each of 16 hosts, at each of 20 switches.
        for switch in lab.topology().switches() {
            let flows = lab.flows(&switch.name);
            let to_hosts = flows.iter().filter(|flow| flow.contains("eth_dst=00:00")).count();
            assert_eq!(to_hosts, 16, "{version} {}: {flows:?}", switch.name);
        }
        assert_eq!(lab.findings(), [""; 0], "{version}");
        let delivered = |lab: &mut Lab| lab.app_counter("routing", "delivered").unwrap();
        let before = delivered(&mut lab);
        assert!(lab.ping_all().is_complete());
        assert_eq!(delivered(&mut lab), before, "no packet needs the controller");
        assert_eq!(lab.app_counter("routing", "floods"), Some(0), "and no question is flooded");
    }
}
