//! Attacks on the topology from the literature, in emulated networks: TopoGuard (Hong et al., NDSS
//! 2015), SPHINX (Dhawan et al., NDSS 2015), TopoGuard+ (Skowyra et al., DSN 2018), and identifier
//! binding (Jero et al., USENIX Security 2017). `discovery.rs` and `hosts.rs` have more.

use std::net::IpAddr;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::lab::*;
use bellrock_api::{Event, Needs, Suspicion, Version};
use bellrock_apps::Learning;
use bellrock_emulator::lab::Lab;
use bellrock_services::chain::ServiceSettings;
use bellrock_services::discovery::{DiscoverySettings, LinkVerdict, Relays};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
const INTERVAL: Duration = DiscoverySettings::INTERVAL;
/// Directions of links of the triangle.
const GENUINE: usize = 6;

/// A triangle whose hosts have spoken.
fn talking(version: Version) -> Lab {
    let mut lab = builder(version).run(Reads(Needs::TOPOLOGY | Needs::HOSTS));
    settle(&mut lab);
    lab.run_for(INTERVAL * 2);
    lab.announce("h1");
    lab.announce("h5");
    lab.run_for(SECOND);
    lab
}

/// The value of a future that is ready.
fn ready<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("there is no answer yet"),
    }
}

fn directions(lab: &Lab) -> usize {
    links(lab).links.len()
}

/// Port amnesia (TopoGuard+): hosts take their ports down and up, so that these count as new, and
/// then pass on announcements.
#[test]
fn hosts_that_take_their_ports_down_and_up_gain_no_link() {
    for version in VERSIONS {
        for both in [false, true] {
            let mut lab = talking(version);
            for host in if both { &[("s1", "h1"), ("s3", "h5")][..] } else { &[("s1", "h1")][..] } {
                lab.link_down(host.0, host.1);
                lab.run_for(MS * 100);
                lab.link_up(host.0, host.1);
            }
            relay(&mut lab, "h1", "h5", MS, INTERVAL * 4);
            assert_eq!(directions(&lab), GENUINE, "{version} {both}");
            let amnesia = |event: &Event| {
                matches!(event, Event::RelaySuspected { why: Suspicion::HostPort { .. }, .. })
            };
            assert!(all_events(&lab).iter().any(amnesia), "{version} {both}");
        }
    }
}

/// The same from the middle of a relay: they speak as hosts, take the port down, relay, take it
/// down again and speak again.
#[test]
fn hosts_that_change_between_host_and_relay_gain_no_link() {
    for version in VERSIONS {
        let mut lab = talking(version);
        for _ in 0..4 {
            lab.link_down("s1", "h1");
            lab.run_for(MS * 20);
            lab.link_up("s1", "h1");
            relay(&mut lab, "h1", "h5", MS, SECOND * 4);
            lab.announce("h1");
            lab.run_for(SECOND);
        }
        assert_eq!(directions(&lab), GENUINE, "{version}");
    }
}

#[test]
fn an_operator_overrules_the_verdict_on_a_relay() {
    for version in VERSIONS {
        let mut lab = talking(version);
        let (one, other) = (at(1, 3), at(3, 3));
        relay(&mut lab, "h1", "h5", MS, INTERVAL * 2);
        assert_eq!(directions(&lab), GENUINE);
        let judge = |lab: &mut Lab, verdict| {
            let answer = Relays::judge(&network(lab), one, other, verdict).unwrap();
            lab.run_for(MS * 50);
            ready(answer).unwrap().unwrap()
        };
        let list = Relays::list(&network(&lab)).unwrap();
        lab.run_for(MS * 50);
        let list = ready(list).unwrap();
        assert_eq!((list.len(), list[0].from, list[0].to), (1, one, other), "{list:?}");

        judge(&mut lab, Some(LinkVerdict::Link));
        relay(&mut lab, "h1", "h5", MS, INTERVAL * 2);
        assert_eq!(directions(&lab), GENUINE + 2);
        assert!(!links(&lab).is_edge(one));
        assert_eq!(place(&lab, "h1"), None, "a switch is there, says the operator");

        assert!(!judge(&mut lab, Some(LinkVerdict::Relay)).is_up);
        assert_eq!(directions(&lab), GENUINE);
        relay(&mut lab, "h1", "h5", MS, INTERVAL * 2);
        assert_eq!(directions(&lab), GENUINE);
        assert!(links(&lab).is_edge(one));
        lab.announce("h1");
        lab.run_for(SECOND);
        assert_eq!(place(&lab, "h1"), Some(one), "it is a host again");
    }
}

/// Port probing (TopoGuard+): an attacker waits until its victim is away, and takes its address
/// before the victim is back. Nothing can tell it from a host that moves; but the victim gets its
/// place back, unless the attacker answers for it, and then that is reported.
#[test]
fn a_returning_host_gets_its_address_back_from_an_attacker() {
    for version in VERSIONS {
        let services = ServiceSettings { always: Needs::HOSTS, ..ServiceSettings::default() };
        let tree = bellrock_emulator::topology::tree(2, 3);
        let lab = Lab::seeded(3).topology(tree).version(version).services(services);
        let mut lab = lab.run(Learning::default());
        settle(&mut lab);
        assert!(lab.ping_all().is_complete());
        let victim = mac(&lab, "h1");
        let mut claim = vec![0xff; 6];
        claim.extend(victim.0);
        claim.extend([0x08, 0x00]);
        claim.resize(60, 0);
        lab.link_down("s2", "h1");
        lab.run_for(SECOND / 10);
        lab.send_frame("h9", &claim);
        lab.run_for(SECOND / 10);
        assert_eq!(place(&lab, "h1"), Some(at(4, 3)), "it looks like a move");
        assert!(events(&lab).contains(&"host_moved"), "and is reported as a move");
        lab.link_up("s2", "h1");
        lab.run_for(SECOND * 3);
        lab.announce("h1");
        lab.run_for(SECOND * 5);
        lab.announce("h1");
        lab.run_for(SECOND);
        assert_eq!(place(&lab, "h1"), Some(at(2, 1)), "{version}");
        assert!(lab.ping("h5", "h1"));
    }
}

/// Identifier binding: a host states that the Internet address of another one is its own.
#[test]
fn nobody_takes_the_internet_address_of_a_host_that_answers() {
    for version in VERSIONS {
        let mut lab = talking(version);
        let victim = hosts(&lab).get(mac(&lab, "h1"), None).unwrap().addresses[0];
        let IpAddr::V4(ip) = victim else { panic!("IPv4") };
        let attacker = mac(&lab, "h5");
        let claim = bellrock_api::packet::arp_announcement(attacker, ip);
        for _ in 0..6 {
            lab.send_frame("h5", &claim);
            lab.run_for(SECOND / 2);
        }
        assert!(events(&lab).contains(&"address_claim_refused"), "{version}");
        let owner = hosts(&lab).by_ip(victim, None).map(|host| host.id.mac);
        assert_eq!(owner, Some(mac(&lab, "h1")), "{version}");
    }
}
