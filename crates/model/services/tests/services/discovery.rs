//! Discovery in emulated networks: links come and go; announcements from hosts make none.

use std::time::Duration;

use crate::lab::*;
use bellrock_api::openflow::{PortConfig, PortMod};
use bellrock_api::{Dpid, Event, FlowMod, Match, Needs, Port, ToSwitch, Version};
use bellrock_apps::Learning;
use bellrock_emulator::lab::Lab;
use bellrock_services::chain::ServiceSettings;
use bellrock_services::discovery::{
    DiscoveryKey, DiscoverySettings, MISSED_ROUNDS, NEW_PORT, PUBLISH_AT_ONCE, PUBLISH_EVERY,
};

const SWITCHES: [&str; 3] = ["s1", "s2", "s3"];
const INTERVAL: Duration = DiscoverySettings::INTERVAL;

fn up(version: Version) -> Lab {
    builder(version).run(Reads(Needs::TOPOLOGY))
}

/// Returns the sending ports of the links that are up.
fn ends(lab: &Lab) -> Vec<String> {
    let name = |link: &bellrock_api::Link| format!("{}:{}", link.from.dpid.0, link.from.port);
    links(lab).links.values().map(name).collect()
}

#[test]
fn all_links_are_up_at_once_and_ports_of_hosts_are_edges_a_little_later() {
    for version in VERSIONS {
        let mut lab = up(version);
        lab.run_for(Duration::from_millis(100));
        assert_eq!(ends(&lab), ["1:1", "1:2", "2:1", "2:2", "3:1", "3:2"], "{version}");
        let topology = links(&lab);
        assert_eq!(topology.bidirectional_links().count(), 6);
        assert_eq!(topology.link(at(1, 1)).unwrap().to, at(2, 2));
        assert!(!topology.settled && topology.edge.is_empty());
        lab.run_for(NEW_PORT + Duration::from_millis(100));
        let topology = links(&lab);
        assert!(topology.settled);
        let edge: Vec<_> = topology.edge_of(Dpid(1)).collect();
        assert_eq!(edge, [Port(3), Port(4)]);
        // Nothing changes while nothing happens.
        let version = topology.version();
        lab.run_for(INTERVAL * 10);
        assert_eq!(links(&lab).version(), version);
        let of_links = events(&lab).into_iter().filter(|name| name.starts_with("link_"));
        assert_eq!(of_links.collect::<Vec<_>>(), ["link_up"; 6]);
    }
}

#[test]
fn a_link_goes_down_and_comes_up_with_its_ports() {
    for version in VERSIONS {
        let mut lab = up(version);
        settle(&mut lab);
        lab.link_down("s1", "s2");
        lab.run_for(Duration::from_millis(50));
        assert_eq!(ends(&lab), ["1:2", "2:1", "3:1", "3:2"]);
        lab.link_up("s1", "s2");
        lab.run_for(Duration::from_millis(50));
        assert_eq!(ends(&lab).len(), 6);
        lab.restart("s3", false);
        assert!(lab.run_until(Duration::from_secs(1), |lab| ends(lab) == ["1:1", "2:2"]));
        // All links are up at once when it is back.
        assert!(lab.run_until(Duration::from_secs(20), |lab| lab.is_up("s3")));
        lab.run_for(Duration::from_millis(50));
        assert_eq!(ends(&lab).len(), 6);
    }
}

#[test]
fn a_port_that_goes_down_and_up_within_one_read_comes_back() {
    for version in VERSIONS {
        let mut lab = up(version);
        settle(&mut lab);
        for other in ["s2", "h1"] {
            lab.link_down("s1", other);
            lab.link_up("s1", other);
        }
        lab.run_for(Duration::from_millis(50));
        assert_eq!(ends(&lab).len(), 6, "{version}");
        assert!(events(&lab).contains(&"link_down"));
        assert!(links(&lab).is_up(at(1, 3)) && !links(&lab).is_edge(at(1, 3)));
        lab.run_for(NEW_PORT + Duration::from_millis(100));
        assert!(links(&lab).is_edge(at(1, 3)));
    }
}

#[test]
fn a_port_that_flaps_all_the_time_has_the_topology_published_now_and_then() {
    let mut lab = up(Version::V1_3);
    settle(&mut lab);
    let (flaps, pause) = (250, Duration::from_millis(2));
    let published = links(&lab).version();
    for _ in 0..flaps {
        lab.link_down("s1", "s2");
        lab.run_for(pause);
        lab.link_up("s1", "s2");
        lab.run_for(pause);
    }
    let published = u32::try_from(links(&lab).version() - published).unwrap();
    let paced = (flaps * 2 * pause).div_duration_f64(PUBLISH_EVERY) as u32;
    assert!((paced..=PUBLISH_AT_ONCE + paced + 1).contains(&published), "{published} of {paced}");
    // The last change is not lost.
    lab.link_down("s1", "s2");
    lab.run_for(PUBLISH_EVERY + pause);
    assert_eq!(ends(&lab), ["1:2", "2:1", "3:1", "3:2"]);
}

#[test]
fn links_stay_when_somebody_empties_the_tables() {
    for version in VERSIONS {
        let mut lab = up(version);
        settle(&mut lab);
        let any = Match::any();
        let empty = ToSwitch::FlowMod(FlowMod::delete(&any));
        let before: Vec<usize> = SWITCHES.map(|name| lab.flows(name).len()).into();
        for dpid in 1..=3 {
            network(&lab).send(Dpid(dpid), &empty).unwrap();
        }
        lab.run_for(INTERVAL * (MISSED_ROUNDS + 2));
        let after: Vec<usize> = SWITCHES.map(|name| lab.flows(name).len()).into();
        assert_eq!((after, ends(&lab).len()), (before, 6), "{version}");
        assert!(!events(&lab).contains(&"link_down"), "{version}");
    }
}

#[test]
fn a_link_that_carries_nothing_one_way_is_told_and_then_down() {
    for version in VERSIONS {
        let mut lab = up(version);
        settle(&mut lab);
        let info = network(&lab).switch(Dpid(2)).unwrap();
        let address = info.port(Port(2)).unwrap().address;
        let config = PortConfig::NO_RECV;
        let deaf =
            PortMod { port: Port(2), address, config, mask: config, advertise: Default::default() };
        network(&lab).send(Dpid(2), &ToSwitch::PortMod(deaf)).unwrap();
        lab.run_for(INTERVAL * (MISSED_ROUNDS - 1));
        assert_eq!(ends(&lab).len(), 6, "one or two may be lost");
        lab.run_for(INTERVAL * 3);
        assert_eq!(ends(&lab), ["1:2", "2:1", "2:2", "3:1", "3:2"]);
        assert_eq!(links(&lab).bidirectional_links().count(), 4);
        assert!(!links(&lab).is_edge(at(1, 1)));
        assert!(events(&lab).contains(&"one_way"));
    }
}

#[test]
fn a_forged_announcement_makes_no_link() {
    for version in VERSIONS {
        let mut lab = up(version);
        settle(&mut lab);
        let mut forged = announcement(&mut lab, "h1");
        let tag_at = forged.len() - 3;
        forged[tag_at] ^= 1;
        for _ in 0..3 {
            lab.send_frame("h5", &forged);
            lab.run_for(Duration::from_secs(1));
        }
        assert_eq!(ends(&lab).len(), 6);
        assert!(links(&lab).is_edge(at(3, 3)));
        let told = Event::ForgedAnnouncement { at: at(3, 3) };
        assert_eq!(all_events(&lab).iter().filter(|event| **event == told).count(), 1);
        assert_eq!(lab.app_counter("discovery", "announcements_forged"), Some(3));
    }
}

#[test]
fn a_replayed_announcement_makes_no_link() {
    for version in VERSIONS {
        let mut lab = up(version);
        settle(&mut lab);
        // An old announcement, at another port and at its own.
        let old = announcement(&mut lab, "h1");
        lab.run_for(INTERVAL * 2);
        lab.send_frame("h5", &old);
        lab.send_frame("h1", &old);
        lab.run_for(Duration::from_secs(1));
        assert_eq!(ends(&lab).len(), 6);
        let events = all_events(&lab);
        assert!(events.contains(&Event::ReplayedAnnouncement { at: at(3, 3), sender: at(1, 3) }));
        assert!(events.contains(&Event::ReflectedAnnouncement { at: at(1, 3) }));
    }
}

#[test]
fn a_relay_between_hosts_that_talk_makes_no_link() {
    for version in VERSIONS {
        let mut lab = builder(version).run(Reads(Needs::TOPOLOGY | Needs::HOSTS));
        settle(&mut lab);
        lab.run_for(INTERVAL * 2);
        lab.announce("h1");
        lab.run_for(Duration::from_secs(1));
        relay(&mut lab, "h1", "h5", Duration::from_millis(1), INTERVAL * 3);
        assert_eq!(ends(&lab).len(), 6);
        assert!(events(&lab).contains(&"relay_suspected"));
        assert_eq!(place(&lab, "h1"), Some(at(1, 3)));
    }
}

#[test]
fn a_relay_between_hosts_that_keep_quiet_is_told_by_how_long_it_takes() {
    for refuse_slow_links in [false, true] {
        let discovery = DiscoverySettings { refuse_slow_links, ..DiscoverySettings::default() };
        let services = ServiceSettings { discovery, ..ServiceSettings::default() };
        let mut lab = builder(Version::V1_3).services(services).run(Reads(Needs::TOPOLOGY));
        lab.run_for(INTERVAL * 10);
        relay(&mut lab, "h1", "h5", Duration::from_millis(10), INTERVAL * 13);
        assert!(events(&lab).contains(&"relay_suspected"));
        assert_eq!(ends(&lab).len(), if refuse_slow_links { 6 } else { 8 });
    }
}

#[test]
fn lldp_of_other_devices_is_counted_and_not_reported_as_forged() {
    let mut lab = up(Version::V1_3);
    settle(&mut lab);
    let frame = b"\x01\x80\xc2\x00\x00\x0e\x02\x00\x00\x00\x00\x01\x88\xcc\
        \x02\x07\x04\x02\x00\x00\x00\x00\x01\x04\x05\x05eth0\x06\x02\x00\x78\x00\x00";
    for len in 12..=frame.len() {
        lab.send_frame("h1", &frame[..len]);
        lab.run_for(Duration::from_millis(100));
    }
    assert_eq!(ends(&lab).len(), 6);
    assert!(lab.app_counter("discovery", "lldp_of_others").unwrap() > 10);
    assert!(!events(&lab).contains(&"forged_announcement"));
}

#[test]
fn a_flood_of_lldp_harms_the_port_that_it_comes_from_only() {
    let mut lab = up(Version::V1_3);
    settle(&mut lab);
    let mut forged = announcement(&mut lab, "h1");
    forged[100] ^= 1;
    for _ in 0..200 {
        (0..10).for_each(|_| lab.send_frame("h5", &forged));
        lab.run_for(INTERVAL / 50);
    }
    assert!(lab.app_counter("discovery", "lldp_over_limit").unwrap() > 1000);
    assert_eq!(ends(&lab).len(), 6);
    assert_eq!(lab.app_counter("discovery", "announcements_lost"), Some(0));
}

#[test]
fn a_key_that_two_controllers_share_makes_their_announcements_genuine_and_no_links() {
    let key = DiscoveryKey::new(&[7; 32]).unwrap();
    let settings = || {
        let discovery =
            DiscoverySettings { key: Some(key.clone()), ..DiscoverySettings::default() };
        ServiceSettings { discovery, ..ServiceSettings::default() }
    };
    let mut other =
        Lab::seeded(8).topology(triangle()).services(settings()).run(Reads(Needs::TOPOLOGY));
    let theirs = announcement(&mut other, "h1");
    let mut lab = builder(Version::V1_3).services(settings()).run(Reads(Needs::TOPOLOGY));
    settle(&mut lab);
    lab.send_frame("h5", &theirs);
    lab.run_for(Duration::from_secs(1));
    assert_eq!(ends(&lab).len(), 6);
    assert_eq!(lab.app_counter("discovery", "announcements_of_others"), Some(1));
    assert_eq!(lab.app_counter("discovery", "announcements_forged"), Some(0));
}

#[test]
fn apps_behind_it_go_on_as_before() {
    for version in VERSIONS {
        let services = ServiceSettings { always: Needs::HOSTS, ..ServiceSettings::default() };
        let mut lab = Lab::seeded(3)
            .topology(bellrock_emulator::topology::tree(2, 3))
            .version(version)
            .services(services)
            .run(Learning::default());
        settle(&mut lab);
        assert!(lab.ping_all().is_complete());
        assert_eq!(links(&lab).links.len(), 6);
        assert_eq!(hosts(&lab).len(), 9);
    }
}

#[test]
fn runs_with_one_seed_are_the_same() {
    let run = || {
        let mut lab = builder(Version::V1_3).workers(2).run(Reads(Needs::TOPOLOGY | Needs::HOSTS));
        lab.run_for(INTERVAL * 3);
        lab.announce("h1");
        lab.link_down("s1", "s2");
        lab.run_for(INTERVAL);
        (lab.digest(), format!("{:?}", all_events(&lab)))
    };
    assert_eq!(run(), run());
}
