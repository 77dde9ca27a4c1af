//! Links between switches of two controllers, which exchange what they know.

use super::*;
use crate::exchange::Peer;

const A: Peer = Peer(0);
const B: Peer = Peer(1);

/// Two controllers, each master of one switch with four ports. Both have the same clock.
struct Cluster {
    a: Scene,
    b: Scene,
}

impl Cluster {
    fn new() -> Self {
        let (mut a, mut b) = (Scene::new(0), Scene::new(0));
        a.links.share();
        b.links.share();
        a.switch(1, 4);
        b.switch(2, 4);
        let mut cluster = Cluster { a, b };
        cluster.exchange();
        cluster
    }

    /// Each controller reports all that it knows.
    fn exchange(&mut self) {
        report(&mut self.a, A, &mut self.b);
        report(&mut self.b, B, &mut self.a);
    }

    /// An announcement of A comes in at a switch of B, which passes it on.
    fn passed(&mut self, from: SwitchPort, to: SwitchPort) -> AnnouncementOutcome {
        let passed = ReceivedAnnouncement { latency: None, ..self.a.announcement(from, to, MS) };
        self.a.hears(passed)
    }

    /// The link between port 4 of both switches.
    fn link(&mut self) {
        assert_eq!(self.passed(at(1, 4), at(2, 4)), AnnouncementOutcome::Accepted);
        let back =
            ReceivedAnnouncement { latency: None, ..self.b.announcement(at(2, 4), at(1, 4), MS) };
        assert_eq!(self.b.hears(back), AnnouncementOutcome::Accepted);
        self.exchange();
    }

    fn to(&mut self, now: Duration) {
        self.a.to(now);
        self.b.to(now);
    }

    fn links(&mut self) -> [usize; 2] {
        [&mut self.a, &mut self.b].map(|scene| scene.topology().bidirectional_links().count())
    }

    fn events(&mut self) -> [Vec<&'static str>; 2] {
        [self.a.events(), self.b.events()]
    }
}

fn report(from: &mut Scene, peer: Peer, to: &mut Scene) {
    let facts = from.links.own_facts();
    let all = facts.keys().copied().collect();
    for facts in facts.into_values() {
        to.links.peer_switch(peer, (*facts).clone(), &to.hosts, to.now);
    }
    to.links.peer_complete(peer, &all, to.now);
}

#[test]
fn a_link_between_switches_of_two_controllers_is_known_to_both() {
    let mut cluster = Cluster::new();
    assert_eq!(cluster.links(), [0, 0]);
    cluster.link();
    assert_eq!(cluster.links(), [2, 2]);
    cluster.to(s(3));
    cluster.exchange();
    let (of_a, of_b) = (cluster.a.topology(), cluster.b.topology());
    assert_eq!(of_a.switches, of_b.switches);
    assert_eq!((&of_a.edge, &of_a.trunk), (&of_b.edge, &of_b.trunk));
    assert_eq!(of_a.edge.len(), 6, "ports of hosts of both");
    assert_eq!(cluster.events(), [["link_up"; 2], ["link_up"; 2]]);
}

#[test]
fn the_controller_that_has_signed_it_takes_an_announcement_once_wherever_it_comes_in() {
    let mut cluster = Cluster::new();
    let genuine =
        ReceivedAnnouncement { latency: None, ..cluster.a.announcement(at(1, 4), at(2, 4), MS) };
    assert_eq!(cluster.a.hears(genuine), AnnouncementOutcome::Accepted);
    // A host at another port of B, and one at a port of A, repeat the frame.
    for to in [at(2, 3), at(1, 2)] {
        let copy = ReceivedAnnouncement { to, ..genuine };
        assert_eq!(cluster.a.hears(copy), AnnouncementOutcome::Replayed);
    }
    let old = cluster.a.announcement(at(1, 3), at(2, 3), MS);
    cluster.to(cluster.a.now + INTERVAL * 2);
    assert_eq!(cluster.a.hears(old), AnnouncementOutcome::Replayed, "it is old");
    assert_eq!(cluster.a.topology().links.len(), 1);
    // B does not decide about it.
    assert_eq!(cluster.b.hears(genuine), AnnouncementOutcome::Stale);
}

#[test]
fn a_relay_between_hosts_of_two_controllers_is_found() {
    let mut cluster = Cluster::new();
    cluster.to(s(60));
    cluster.exchange();
    cluster.a.host(1, at(2, 2));
    assert_eq!(cluster.passed(at(1, 2), at(2, 2)), AnnouncementOutcome::Suspected);
    cluster.exchange();
    assert_eq!(cluster.links(), [0, 0]);
    assert!(cluster.b.topology().is_edge(at(2, 2)));
    assert_eq!(cluster.events()[0], ["relay_suspected"]);
}

#[test]
fn a_slow_link_to_a_switch_of_another_controller_is_not_held_back() {
    let mut cluster = Cluster::new();
    cluster.a.links.refuse_slow = true;
    cluster.a.links.median = Some(MS);
    cluster.link();
    assert_eq!(cluster.links(), [2, 2]);
}

#[test]
fn when_a_controller_is_lost_its_links_stay_for_its_successor() {
    let mut cluster = Cluster::new();
    cluster.link();
    cluster.to(s(20));
    for _ in 0..4 {
        // They are confirmed in each round.
        cluster.link();
    }
    cluster.events();
    cluster.b.links.peer_dead(A, s(20));
    cluster.b.to(s(21));
    cluster.b.switch(1, 4);
    let announced = cluster.b.announcement(at(1, 4), at(2, 4), MS);
    cluster.b.to(s(30));
    assert_eq!(cluster.links()[1], 2);
    assert_eq!(cluster.b.hears(announced), AnnouncementOutcome::Late, "it is no replay");
    assert_eq!(cluster.b.topology().edge.len(), 6);
    assert_eq!(cluster.events()[1], Vec::<&str>::new());
    // Nothing confirms them: they end, as other links do.
    cluster.b.to(s(60));
    assert_eq!(cluster.links()[1], 0);
    assert!(cluster.b.topology().is_trunk(at(1, 4)), "it was one, and nothing says otherwise");
}

#[test]
fn a_switch_that_nobody_takes_over_is_gone_after_a_while() {
    let mut cluster = Cluster::new();
    cluster.link();
    cluster.events();
    cluster.b.links.peer_dead(A, s(1));
    let until = s(1) + UNOWNED_KEPT;
    cluster.b.to(until - MS * 200);
    assert!(cluster.b.topology().switches.contains_key(&Dpid(1)));
    // Its own direction would be silent too.
    cluster.b.to(until + MS * 200);
    let topology = cluster.b.topology();
    assert!(!topology.switches.contains_key(&Dpid(1)) && topology.links.is_empty());
    assert!(topology.is_trunk(at(2, 4)), "the switch may forward without a controller");
    assert_eq!(cluster.events()[1], ["link_down", "link_down"]);
}

#[test]
fn a_port_that_is_down_ends_the_link_at_all_controllers() {
    let mut cluster = Cluster::new();
    cluster.link();
    cluster.events();
    cluster.b.links.port_down(at(2, 4), s(2));
    cluster.exchange();
    assert_eq!(cluster.links(), [0, 0]);
    cluster.exchange();
    assert_eq!(cluster.links(), [0, 0]);
    assert_eq!(cluster.events(), [["link_down"; 2], ["link_down"; 2]]);
    assert!(!cluster.a.topology().is_trunk(at(1, 4)), "a port that is down says that it is over");
}

#[test]
fn a_port_that_was_down_for_a_moment_ends_the_link_at_all_controllers_until_it_is_heard() {
    let mut cluster = Cluster::new();
    cluster.link();
    cluster.to(s(2));
    cluster.b.links.port_down(at(2, 4), s(2));
    cluster.b.switch(2, 4);
    cluster.exchange();
    cluster.exchange();
    assert_eq!(cluster.links(), [0, 0]);
    cluster.to(s(3));
    cluster.link();
    assert_eq!(cluster.links(), [2, 2]);
}

#[test]
fn a_link_that_is_silent_ends_at_all_controllers_and_its_ports_are_not_those_of_hosts() {
    let mut cluster = Cluster::new();
    cluster.link();
    cluster.to(s(40));
    cluster.exchange();
    cluster.exchange();
    assert_eq!(cluster.links(), [0, 0]);
    for scene in [&mut cluster.a, &mut cluster.b] {
        let topology = scene.topology();
        assert!(topology.is_trunk(at(1, 4)) && topology.is_trunk(at(2, 4)));
    }
}

/// The new master reports the switch before the old one knows that it is none any more.
#[test]
fn a_switch_that_moves_keeps_its_links_whichever_report_comes_first() {
    let mut cluster = Cluster::new();
    cluster.link();
    cluster.events();
    cluster.b.switch(1, 4);
    report(&mut cluster.b, B, &mut cluster.a);
    assert!(cluster.a.links.is_here(Dpid(1)));
    report(&mut cluster.a, A, &mut cluster.b);
    assert!(cluster.b.links.is_here(Dpid(1)));
    let hosts = Hosts::default();
    cluster.a.links.switch_lost(Dpid(1), &hosts, s(2));
    assert!(cluster.a.links.is_of(Dpid(1), B));
    report(&mut cluster.a, A, &mut cluster.b);
    assert_eq!(cluster.links(), [2, 2]);
    assert_eq!(cluster.events(), [Vec::<&str>::new(), Vec::new()]);
    // And back, the other way round.
    cluster.b.links.switch_lost(Dpid(1), &hosts, s(3));
    cluster.exchange();
    cluster.a.switch(1, 4);
    cluster.exchange();
    assert_eq!(cluster.links(), [2, 2]);
    assert!(cluster.b.links.is_of(Dpid(1), A));
    assert_eq!(cluster.events(), [Vec::<&str>::new(), Vec::new()]);
}

#[test]
fn a_port_that_hears_a_controller_that_cannot_be_asked_is_none_of_a_host() {
    let mut cluster = Cluster::new();
    cluster.to(s(10));
    assert!(cluster.b.topology().is_edge(at(2, 2)));
    cluster.b.links.hold(at(2, 2), s(10));
    let facts = cluster.b.links.own_facts();
    let port = facts[&Dpid(2)].ports.iter().find(|fact| fact.port == Port(2)).copied().unwrap();
    assert!(!cluster.b.topology().is_edge(at(2, 2)) && !port.is_known);
    assert!(!cluster.b.topology().is_trunk(at(2, 2)));
    cluster.b.to(s(60));
    assert!(cluster.b.topology().is_edge(at(2, 2)));
}

#[test]
fn links_to_switches_that_were_not_reported_yet_are_not_shown() {
    let mut cluster = Cluster::new();
    cluster.link();
    let mut third = Scene::new(0);
    third.links.share();
    report(&mut cluster.a, A, &mut third);
    assert_eq!(third.topology().links.len(), 0);
    assert!(third.topology().is_trunk(at(1, 4)));
    report(&mut cluster.b, B, &mut third);
    assert_eq!(third.topology().bidirectional_links().count(), 2);
}

#[test]
fn what_is_reported_is_bounded() {
    let mut scene = Scene::new(0);
    scene.links.share();
    for dpid in 0..=MAX_SWITCHES as u64 {
        let facts = SwitchFacts { dpid: Dpid(dpid), ports: Vec::new(), links: Vec::new() };
        scene.links.peer_switch(A, facts, &scene.hosts, scene.now);
    }
    assert_eq!(scene.topology().switches.len(), MAX_SWITCHES);
}
