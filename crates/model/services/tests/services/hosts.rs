//! Host tracking in emulated networks: hosts come, move and go; none takes another's address.

use std::net::IpAddr;
use std::time::Duration;

use crate::lab::*;
use bellrock_api::packet::{Ethernet, eth_type};
use bellrock_api::{
    Dpid, Event, FlowMod, HostEntry, MacAddr, Match, Needs, Port, ToSwitch, Version,
};
use bellrock_apps::Learning;
use bellrock_emulator::lab::{Lab, LabBuilder};
use bellrock_services::chain::ServiceSettings;
use bellrock_services::hosts::{HostTrackingSettings, PROBE_SOURCE, SIGHTINGS_PER_PORT_PER_S};

const SECOND: Duration = Duration::from_secs(1);

/// A tree of learning switches: three switches with three hosts each, under one switch. An app
/// relies on the places of hosts.
fn learning(version: Version) -> LabBuilder {
    tree(version).app(Reads(Needs::HOSTS))
}

fn tree(version: Version) -> LabBuilder {
    Lab::seeded(3).topology(bellrock_emulator::topology::tree(2, 3)).version(version)
}

fn up(version: Version) -> Lab {
    let mut lab = learning(version).run(Learning::default());
    settle(&mut lab);
    assert!(lab.ping_all().is_complete());
    lab
}

/// A broadcast frame with this source address.
fn from(mac: MacAddr) -> Vec<u8> {
    Ethernet::new(mac, MacAddr::BROADCAST).payload(eth_type::IPV4, &[])
}

#[test]
fn hosts_are_known_with_their_addresses_where_they_are() {
    for version in VERSIONS {
        let lab = up(version);
        let known = hosts(&lab);
        assert_eq!(known.len(), 9);
        let first = known.by_ip(IpAddr::from([10, 0, 0, 1]), None).unwrap();
        assert_eq!((first.id.mac, first.at), (mac(&lab, "h1"), at(2, 1)));
        assert_eq!(known.by_ip(IpAddr::from([10, 0, 0, 9]), None).unwrap().at, at(4, 3));
        assert!(known.iter().all(|host| links(&lab).is_edge(host.at)));
    }
}

#[test]
fn a_host_whose_port_goes_down_moves_at_once() {
    for version in VERSIONS {
        let mut lab = up(version);
        lab.move_host("h1", "s4");
        lab.run_for(SECOND / 10);
        assert_eq!(place(&lab, "h1"), None);
        lab.run_for(SECOND * 3);
        lab.announce("h1");
        lab.run_for(SECOND);
        assert!(lab.ping("h1", "h9"));
        assert_eq!(place(&lab, "h1").unwrap().dpid.0, 4);
        assert!(events(&lab).contains(&"host_moved"));
    }
}

#[test]
fn a_host_that_moves_unseen_is_believed_when_nobody_answers_for_a_second() {
    for version in VERSIONS {
        let mut lab = up(version);
        lab.move_host_unseen("h1", "s4");
        lab.run_for(SECOND * 3);
        lab.announce("h1");
        lab.run_for(SECOND - SECOND / 100);
        assert_eq!(place(&lab, "h1"), Some(at(2, 1)));
        lab.run_for(SECOND / 10);
        assert_eq!(place(&lab, "h1").unwrap().dpid.0, 4);
        // The apps have not received the packets that it sent meanwhile.
        lab.announce("h1");
        lab.run_for(SECOND);
        assert!(lab.ping("h1", "h9") && lab.ping("h2", "h1"));
    }
}

#[test]
fn nobody_takes_the_address_of_a_host_that_is_there() {
    for version in VERSIONS {
        let mut lab = up(version);
        let h1 = mac(&lab, "h1");
        for _ in 0..20 {
            lab.send_frame("h9", &from(h1));
            lab.run_for(SECOND / 4);
        }
        assert_eq!(place(&lab, "h1"), Some(at(2, 1)));
        let refused = |event: &Event| {
            matches!(event, Event::HostMoveRefused { at: is, claimed_at, .. }
            if *is == at(2, 1) && *claimed_at == at(4, 3))
        };
        assert_eq!(all_events(&lab).iter().filter(|event| refused(event)).count(), 1);
        // Apps never received the claims: packets still go to the host's port.
        assert!(lab.ping("h5", "h1") && lab.ping("h9", "h1"));
        assert!(lab.app_counter("hosts", "claims_dropped").unwrap() >= 20);
    }
}

/// `services: hosts` observes: it never changes what apps forward.
#[test]
fn packets_pass_where_no_app_relies_on_the_places_of_hosts() {
    for version in VERSIONS {
        let services = ServiceSettings { always: Needs::HOSTS, ..ServiceSettings::default() };
        let mut lab = tree(version).services(services).run(Learning::default());
        settle(&mut lab);
        assert!(lab.ping_all().is_complete());
        let claim = from(mac(&lab, "h1"));
        lab.capture("h5");
        for _ in 0..4 {
            lab.send_frame("h9", &claim);
            lab.run_for(SECOND);
        }
        let heard = lab.capture("h5").into_iter().filter(|it| it.starts_with(&claim)).count();
        assert_eq!(heard, 4, "{version}");
        assert_eq!(lab.app_counter("hosts", "claims_dropped"), Some(0));
        assert_eq!(place(&lab, "h1"), Some(at(2, 1)), "{version}: it answers there");
        assert!(events(&lab).contains(&"host_move_refused"));
    }
}

/// An empty IPv4 packet between two hosts.
fn ipv4(from: (MacAddr, [u8; 4]), to: (MacAddr, [u8; 4])) -> Vec<u8> {
    let head = [0x45, 0, 0, 20, 0, 1, 0, 0, 64, 255, 0, 0];
    let packet = [&head[..], &from.1, &to.1].concat();
    Ethernet::new(from.0, to.0).payload(eth_type::IPV4, &packet)
}

/// An attacker sends from the source address of probes, so that an app learns it, and makes a host
/// send there. The host's answers to probes must not go to the attacker.
#[test]
fn nobody_takes_the_address_that_hosts_answer_to() {
    for version in VERSIONS {
        let mut lab = up(version);
        let h1 = mac(&lab, "h1");
        let (host, prober) = ((h1, [10, 0, 0, 1]), (PROBE_SOURCE, [10, 0, 0, 99]));
        for _ in 0..3 {
            lab.send_frame("h9", &ipv4(prober, (MacAddr::BROADCAST, [255; 4])));
            lab.send_frame("h9", &ipv4(prober, host));
            lab.run_for(SECOND / 10);
            lab.send_frame("h1", &ipv4(host, prober));
            lab.run_for(SECOND / 10);
        }
        for _ in 0..12 {
            lab.send_frame("h9", &from(h1));
            lab.run_for(SECOND / 4);
        }
        assert_eq!(place(&lab, "h1"), Some(at(2, 1)), "{version} {:#?}", lab.flows("s2"));
        assert!(lab.ping("h5", "h1"), "{version}");
        let named = "02:42:52:00:00:01";
        let flows = ["s1", "s2", "s3", "s4"].map(|switch| lab.flows(switch)).concat();
        let of_tracker = 2 * 4;
        let with_it = flows.iter().filter(|flow| flow.contains(named)).count();
        assert_eq!(with_it, of_tracker, "{version} {flows:#?}");
        let used = Event::ProbeAddressUsed { at: at(4, 3) };
        assert_eq!(all_events(&lab).iter().filter(|event| **event == used).count(), 1);
        assert!(lab.app_counter("hosts", "probe_address_used").unwrap() >= 6);
    }
}

#[test]
fn hosts_are_asked_also_after_somebody_emptied_the_tables() {
    for version in VERSIONS {
        let mut lab = up(version);
        let before = lab.flows("s2").iter().filter(|flow| flow.contains("02:42:52")).count();
        let any = Match::any();
        let empty = ToSwitch::FlowMod(FlowMod::delete(&any));
        network(&lab).send(Dpid(2), &empty).unwrap();
        lab.run_for(SECOND / 10);
        let flows = lab.flows("s2");
        let there = flows.iter().filter(|flow| flow.contains("02:42:52")).count();
        assert_eq!((before, there), (2, 2), "{version} {flows:#?}");
    }
}

#[test]
fn nobody_takes_an_address_by_a_port_that_has_just_come_up() {
    for version in VERSIONS {
        let mut lab = up(version);
        let h1 = mac(&lab, "h1");
        lab.link_down("s4", "h9");
        lab.run_for(SECOND / 10);
        lab.link_up("s4", "h9");
        lab.run_for(SECOND / 10);
        for _ in 0..5 {
            lab.send_frame("h9", &from(h1));
            lab.run_for(SECOND / 10);
        }
        assert!(!links(&lab).is_edge(at(4, 3)));
        let taken = |(dpid, _, seen): &(Dpid, &str, HostEntry)| {
            (*dpid, seen.mac, seen.port) == (Dpid(4), h1, Port(3))
        };
        assert!(!lab.hosts_known().iter().any(taken), "{version}");
        assert_eq!(place(&lab, "h1"), Some(at(2, 1)));
        assert!(lab.ping("h8", "h1"));
    }
}

#[test]
fn a_host_that_says_nothing_is_asked_and_stays_while_it_answers() {
    let settings = HostTrackingSettings { max_age: SECOND * 60, ..HostTrackingSettings::default() };
    let services =
        ServiceSettings { always: Needs::HOSTS, hosts: settings, ..ServiceSettings::default() };
    let mut lab = learning(Version::V1_3).services(services).run(Learning::default());
    settle(&mut lab);
    assert!(lab.ping_all().is_complete());
    lab.move_host_unseen("h1", "s4");
    lab.run_for(SECOND * 600);
    assert_eq!(hosts(&lab).len(), 8, "only the one that went is gone");
    assert_eq!(place(&lab, "h1"), None);
    assert!(lab.app_counter("hosts", "probes_sent").unwrap() >= 8 * 9);
}

#[test]
fn hosts_that_were_seen_through_a_switch_without_a_controller_go_when_it_has_one() {
    let mut lab = builder(Version::V1_3).run(Reads(Needs::HOSTS));
    // Before discovery finds the link, hosts send from the port where the link is.
    lab.disconnect("s2");
    lab.run_for(SECOND * 10);
    assert!(links(&lab).is_edge(at(1, 1)));
    lab.announce("h3");
    lab.announce("h4");
    lab.run_for(SECOND);
    lab.reconnect("s2");
    assert!(lab.run_until(SECOND * 20, |lab| !links(lab).is_edge(at(1, 1))));
    lab.run_for(SECOND * 5);
    lab.announce("h3");
    lab.run_for(SECOND);
    assert_eq!(place(&lab, "h3"), Some(at(2, 3)));
    assert!(hosts(&lab).iter().all(|host| links(&lab).is_edge(host.at)));
}

#[test]
fn a_host_with_a_million_addresses_takes_no_room_from_others() {
    let mut lab = up(Version::V1_3);
    let before = hosts(&lab).len();
    for n in 0..2 * u64::from(SIGHTINGS_PER_PORT_PER_S) + 1000 {
        lab.send_frame("h9", &from(MacAddr::from_u64(0x0200_0000_0000 + n)));
        lab.run_for(SECOND / 1000);
    }
    lab.run_for(SECOND);
    let most = HostTrackingSettings::default().max_hosts_per_port;
    assert_eq!(hosts(&lab).at(at(4, 3)).count(), most);
    assert_eq!(hosts(&lab).len(), before - 1 + most);
    assert!(events(&lab).contains(&"too_many_hosts"));
    assert!(lab.app_counter("hosts", "over_port_limit").unwrap() > 0);
    assert!(lab.app_counter("hosts", "sightings_over_limit").unwrap() > 0);
    assert!(lab.ping("h1", "h5"));
}
