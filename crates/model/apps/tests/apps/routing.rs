//! Routing in networks with cycles: all hosts reach each other, no packet circles, failures heal.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::known::{SETTLED, known};
use bellrock_api::packet::{Arp, arp_request};
use bellrock_api::{Dpid, Version};
use bellrock_apps::RoutingMode::{Proactive, Reactive};
use bellrock_apps::{Routing, RoutingMode, RoutingSettings};
use bellrock_emulator::lab::Lab;
use bellrock_emulator::topology::{NamedTopology, fat_tree, ring};
use bellrock_services::programming::DRAIN;

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

/// Everything works in each of these cases.
const ALL: [(Version, RoutingMode); 4] = [
    (Version::V1_0, Reactive),
    (Version::V1_3, Reactive),
    (Version::V1_0, Proactive),
    (Version::V1_3, Proactive),
];

fn lab(topology: NamedTopology, version: Version, mode: RoutingMode) -> Lab {
    let app = Routing::new(RoutingSettings { mode, ..RoutingSettings::default() });
    known(Lab::seeded(1).topology(topology).version(version).run(app))
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

/// With flows by destination, every packet that it sends matches a flow.
#[test]
fn a_host_that_only_answers_is_found() {
    for (version, mode) in ALL {
        let app = Routing::new(RoutingSettings { mode, ..RoutingSettings::default() });
        let mut lab = Lab::seeded(1).topology(ring(4, 1)).version(version).run(app);
        lab.run_for(SETTLED);
        lab.announce("h1");
        lab.run_for(Duration::from_secs(1));
        assert!(lab.ping("h1", "h3"));
        lab.run_for(Duration::from_secs(1));
        let hosts = lab.controller().unwrap().hosts().load().len();
        assert_eq!(hosts, 2, "{version} {mode:?}");
        let floods = |lab: &mut Lab| lab.app_counter("routing", "floods").unwrap();
        let before = floods(&mut lab);
        assert!(lab.ping("h1", "h3"));
        assert_eq!(floods(&mut lab), before, "{version} {mode:?}: flows carry it");
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
            // A returning link moves only the flows that must move, and no packet is lost.
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
fn a_switch_that_loses_the_controller_for_a_while_goes_on_carrying_packets_of_its_hosts_too() {
    const EVERY: Duration = Duration::from_millis(10);
    for (version, mode) in ALL {
        let mut lab = lab(ring(4, 1), version, mode);
        assert!(lab.ping_all().is_complete());
        let pairs = [("h1", "h2"), ("h2", "h3"), ("h4", "h2"), ("h1", "h3"), ("h3", "h1")];
        let pings = pairs.map(|(from, to)| lab.start_pings(from, to, 2_500, EVERY));
        lab.run_for(Duration::from_secs(1));
        lab.disconnect("s2");
        lab.run_for(Duration::from_secs(10));
        lab.reconnect("s2");
        lab.run_for(Duration::from_secs(15));
        for ping in &pings {
            let statistics = lab.statistics(ping);
            let (sent, received) = (statistics.sent, statistics.received);
            assert_eq!((sent, received), (2_500, 2_500), "{version} {mode:?}: {statistics:?}");
        }
        assert_eq!(lab.findings(), [""; 0], "{version} {mode:?}");
    }
}

#[test]
fn hosts_that_are_not_known_are_reached_by_flooding_and_nothing_comes_twice() {
    for version in VERSIONS {
        let mut lab = Lab::seeded(1).topology(fat_tree(4)).version(version).run(Routing::default());
        lab.run_for(SETTLED);
        assert!(lab.ping("h1", "h16"));
        assert!(lab.app_counter("routing", "floods").unwrap() > 0);
        assert_eq!(lab.duplicates(), [], "{version}");
    }
}

/// Returns whether this is an ARP answer for this address.
fn is_arp_answer(frame: &[u8], ip: Ipv4Addr) -> bool {
    Arp::read(frame).is_some_and(|arp| arp.operation == Arp::REPLY && arp.sender_ip == ip)
}

#[test]
fn an_address_that_nobody_has_any_more_can_be_taken_and_one_that_is_taken_is_defended() {
    for (version, mode) in ALL {
        let mut lab = lab(ring(4, 1), version, mode);
        let mac = |lab: &Lab, n: usize| lab.topology().hosts()[n].mac;
        let (h1, h3) = (mac(&lab, 0), mac(&lab, 2));
        // h1 has used another address beside 10.0.0.1, and the controller saw it.
        let before = Ipv4Addr::new(10, 0, 0, 99);
        lab.send_frame("h1", &arp_request(h1, before, before));
        lab.run_for(Duration::from_secs(1));
        let known = lab.controller().unwrap().hosts().load().by_ip(before.into(), None).cloned();
        assert_eq!(known.map(|host| host.id.mac), Some(h1), "{version} {mode:?}");
        for (ip, is_taken) in [(before, false), ([10, 0, 0, 1].into(), true)] {
            lab.capture("h3");
            // The probe that h3 sends before it takes the address (RFC 5227 §2.1.1).
            lab.send_frame("h3", &arp_request(h3, Ipv4Addr::UNSPECIFIED, ip));
            lab.run_for(Duration::from_secs(1));
            let answers = lab.capture("h3");
            let is_declined = answers.iter().any(|frame| is_arp_answer(frame, ip));
            assert_eq!(is_declined, is_taken, "{version} {mode:?} {ip:?}: {answers:?}");
        }
    }
}

#[test]
fn flows_of_hosts_that_are_silent_go_and_come_back_when_they_talk() {
    let mut lab = lab(ring(4, 1), Version::V1_3, Reactive);
    assert!(lab.ping("h1", "h3") && lab.ping("h1", "h3"));
    let flows = |lab: &Lab| {
        let all = ["s1", "s2", "s3", "s4"].map(|switch| lab.flows(switch));
        all.iter().flatten().filter(|flow| flow.contains("dl_src")).count()
    };
    assert!(flows(&lab) >= 6, "{:?}", lab.flows("s1"));
    lab.run_for(Duration::from_secs(70));
    assert_eq!(flows(&lab), 0, "{:?}", lab.flows("s1"));
    assert!(lab.ping("h1", "h3") && lab.ping("h1", "h3"));
    assert!(flows(&lab) >= 6);
}

#[test]
fn old_flows_go_when_packets_have_left_them() {
    for version in VERSIONS {
        let mut lab = lab(ring(4, 1), version, Reactive);
        assert!(lab.ping("h1", "h3") && lab.ping("h1", "h3"));
        let has_flow = |lab: &Lab, switch: &str| {
            let ends = ["dl_src=00:00:00:00:00:01", "dl_dst=00:00:00:00:00:03"];
            lab.flows(switch).iter().any(|flow| ends.iter().all(|end| flow.contains(end)))
        };
        let (old, new) = if has_flow(&lab, "s2") { ("s2", "s4") } else { ("s4", "s2") };
        assert!(has_flow(&lab, old) && !has_flow(&lab, new), "{version}");
        lab.link_down("s1", old);
        lab.run_for(DRAIN / 2);
        assert!(has_flow(&lab, old) && has_flow(&lab, new), "{version}");
        lab.run_for(DRAIN);
        assert!(!has_flow(&lab, old) && has_flow(&lab, new), "{version}");
        assert!(lab.ping("h1", "h3"), "{version}");
    }
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
fn flows_that_an_earlier_run_left_carry_traffic_on_and_nothing_is_sent_that_is_there() {
    for (version, mode) in ALL {
        let mut lab = lab(ring(4, 1), version, mode);
        assert!(lab.ping_all().is_complete());
        let flows = |lab: &Lab| {
            let all = ["s1", "s2", "s3", "s4"].map(|switch| lab.flows(switch));
            all.iter().flatten().filter(|flow| flow.contains("dl_dst=00:00")).count()
        };
        let before = flows(&lab);
        let pings = lab.start_pings("h1", "h3", 4000, Duration::from_millis(10));
        lab.stop_controller();
        lab.run_for(Duration::from_secs(1));
        lab.start_controller(Routing::new(RoutingSettings { mode, ..RoutingSettings::default() }));
        lab.run_for(Duration::from_secs(40));
        let statistics = lab.statistics(&pings);
        assert_eq!(statistics.received, 4000, "{version} {mode:?}: {statistics:?}");
        assert_eq!(lab.counter("changes_sent"), 0, "{version} {mode:?}");
        assert!(before > 0 && flows(&lab) == before, "{version} {mode:?}");
        // The flows are maintained from now on: a failure is bypassed.
        let pings = lab.start_pings("h1", "h3", 300, Duration::from_millis(10));
        lab.link_down("s1", "s2");
        lab.run_for(Duration::from_secs(1));
        lab.link_up("s1", "s2");
        lab.link_down("s4", "s1");
        lab.run_for(Duration::from_secs(3));
        let statistics = lab.statistics(&pings);
        // The one remaining link must be found first.
        assert!(statistics.received >= 296, "{version} {mode:?}: {statistics:?}");
    }
}

#[test]
fn proactive_flows_are_there_before_anybody_talks_and_spread_over_all_shortest_paths() {
    for version in VERSIONS {
        let mut lab = lab(fat_tree(4), version, Proactive);
        // To each of 16 hosts, at each of 20 switches.
        for switch in lab.topology().switches() {
            let flows = lab.flows(&switch.name);
            let to_hosts = flows.iter().filter(|flow| flow.contains("dl_dst=00:00")).count();
            assert_eq!(to_hosts, 16, "{version} {}: {flows:?}", switch.name);
        }
        assert_eq!(lab.findings(), [""; 0], "{version}");
        let delivered = |lab: &mut Lab| lab.app_counter("routing", "delivered").unwrap();
        let floods = |lab: &mut Lab| lab.app_counter("routing", "floods").unwrap();
        let before = (delivered(&mut lab), floods(&mut lab));
        assert!(lab.ping_all().is_complete());
        // No packet needs the controller, and no address request is flooded.
        assert_eq!((delivered(&mut lab), floods(&mut lab)), before);
    }
}

/// A switch is lost or replaced, and a host that only answers is at another one now. Host tracking
/// keeps the old place, since a switch without its controller goes on forwarding.
#[test]
fn a_silent_host_of_a_lost_switch_is_found_where_it_is_now() {
    for (version, mode) in ALL {
        let mut lab = lab(ring(4, 1), version, mode);
        assert!(lab.ping("h1", "h3"), "h1 knows the address of h3 from now on");
        lab.disconnect("s3");
        lab.run_for(Duration::from_secs(12));
        assert!(!lab.is_up("s3"));
        lab.move_host_unseen("h3", "s4");
        lab.run_for(Duration::from_secs(3));
        // Packets of h1 follow flows of before, and h2 asks for the address first.
        for from in ["h2", "h1"] {
            let pings = lab.start_pings(from, "h3", 4, Duration::from_secs(1));
            lab.run_for(Duration::from_secs(6));
            let received = lab.statistics(&pings).received;
            assert!(received >= 2, "{version} {mode:?} {from}: {received} of 4");
        }
        let answered = |lab: &mut Lab| lab.app_counter("routing", "answered").unwrap();
        let host = lab.topology().host("h3").unwrap();
        let mac = lab.network().host(host).mac();
        let hosts = lab.controller().unwrap().hosts().load();
        assert_eq!(hosts.get(mac, None).map(|host| host.at.dpid), Some(Dpid(4)));
        let before = answered(&mut lab);
        assert!(lab.ping("h4", "h3") && answered(&mut lab) > before, "{version} {mode:?}");
    }
}

#[test]
fn packets_for_a_host_of_a_lost_switch_are_flooded_once_in_a_second() {
    for (version, mode) in ALL {
        let mut lab = lab(ring(4, 1), version, mode);
        assert!(lab.ping("h1", "h3"));
        lab.disconnect("s3");
        lab.run_for(Duration::from_secs(100));
        lab.run_for(Duration::from_secs(1));
        let count = |lab: &mut Lab, name| lab.app_counter("routing", name).unwrap();
        let (searches, answered) = (count(&mut lab, "searches"), count(&mut lab, "answered"));
        let pings = lab.start_pings("h1", "h3", 100, Duration::from_millis(100));
        lab.run_for(Duration::from_secs(12));
        println!("{version} {mode:?} {:?}", lab.statistics(&pings));
        let searches = count(&mut lab, "searches") - searches;
        assert!(searches <= 12, "{version} {mode:?}: {searches} searches");
        assert_eq!(count(&mut lab, "answered"), answered, "{version} {mode:?}");
    }
}
