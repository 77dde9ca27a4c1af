//! Links between switches of two controllers, which exchange what they know.

use super::*;
use crate::exchange::{Buckets, Digest, LinkInput, Peer, SwitchFacts};

const A: Peer = Peer(0);
const B: Peer = Peer(1);
const C: Peer = Peer(2);
/// An election.
const TERM: u64 = 7;

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
        to.links.peer_switch(peer, TERM, (*facts).clone(), &to.hosts, to.now);
    }
    to.links.peer_complete(peer, (&all, Buckets::ALL), &to.hosts, to.now);
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
    cluster.b.links.peer_dead(A, &Hosts::default(), s(20));
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
    cluster.b.links.peer_dead(A, &Hosts::default(), s(1));
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
fn switches_reported_by_peers_are_bounded() {
    let mut scene = Scene::new(0);
    scene.links.share();
    for dpid in 0..=MAX_SWITCHES as u64 {
        let facts = SwitchFacts { dpid: Dpid(dpid), ports: Vec::new(), links: Vec::new() };
        scene.links.peer_switch(A, TERM, facts, &scene.hosts, scene.now);
    }
    assert_eq!(scene.topology().switches.len(), MAX_SWITCHES);
}

/// A third controller, which has no switch of the link.
fn third(cluster: &mut Cluster) -> Scene {
    let mut third = Scene::new(0);
    third.links.share();
    report(&mut cluster.a, A, &mut third);
    report(&mut cluster.b, B, &mut third);
    third.topology();
    third.events();
    third
}

/// Controller A starts again: it knows nothing, and its clock begins again.
fn restart(cluster: &mut Cluster) {
    cluster.a = Scene::new(0);
    cluster.a.links.share();
    cluster.a.now = cluster.b.now;
    report(&mut cluster.b, B, &mut cluster.a);
}

#[test]
fn a_switch_that_goes_back_to_a_controller_that_has_restarted_keeps_its_links() {
    let mut cluster = Cluster::new();
    cluster.link();
    cluster.to(s(5));
    let mut third = third(&mut cluster);
    cluster.events();
    let hosts = Hosts::default();
    for scene in [&mut cluster.b, &mut third] {
        scene.now = s(6);
        scene.links.peer_dead(A, &hosts, s(6));
    }
    cluster.b.switch(1, 4);
    report(&mut cluster.b, B, &mut third);
    cluster.to(s(8));
    restart(&mut cluster);
    cluster.a.switch(1, 4);
    cluster.b.links.switch_lost(Dpid(1), &hosts, s(8));
    report(&mut cluster.b, B, &mut third);
    for scene in [&mut cluster.b, &mut third] {
        report(&mut cluster.a, A, scene);
    }
    report(&mut cluster.b, B, &mut cluster.a);
    assert_eq!(cluster.links(), [2, 2]);
    assert_eq!(third.topology().bidirectional_links().count(), 2);
    assert_eq!((cluster.b.events(), third.events()), (vec![], vec![]));
}

#[test]
fn a_controller_that_restarts_and_reports_its_switch_before_it_was_missed_keeps_its_links() {
    let mut cluster = Cluster::new();
    cluster.link();
    cluster.to(s(5));
    let mut third = third(&mut cluster);
    cluster.events();
    restart(&mut cluster);
    cluster.a.switch(1, 4);
    report(&mut cluster.b, B, &mut cluster.a);
    for scene in [&mut cluster.b, &mut third] {
        scene.links.handle_input(A, LinkInput::Restarted, &Hosts::default(), s(5));
        report(&mut cluster.a, A, scene);
    }
    assert_eq!((cluster.b.events(), third.events()), (vec!["link_down"], vec!["link_down"]));
}

#[test]
fn a_third_controller_shows_links_as_the_masters_of_their_sending_switches_report_them() {
    let mut cluster = Cluster::new();
    cluster.link();
    cluster.to(s(2));
    let mut third = third(&mut cluster);
    // The port of B is down for a moment. Both directions end at A and at B, and are found again.
    cluster.b.links.port_down(at(2, 4), s(2));
    cluster.b.switch(2, 4);
    cluster.exchange();
    cluster.to(s(3));
    cluster.link();
    // The report of A comes first.
    report(&mut cluster.a, A, &mut third);
    report(&mut cluster.b, B, &mut third);
    assert_eq!(third.topology().bidirectional_links().count(), 2);
    // And while the port is down, none is shown.
    let mut without = (*cluster.b.links.own_facts()[&Dpid(2)]).clone();
    without.ports.retain(|fact| fact.port != Port(4));
    without.links.clear();
    third.links.peer_switch(B, TERM, without, &Hosts::default(), s(3));
    assert_eq!(third.topology().links.len(), 0);
}

#[test]
fn of_two_controllers_that_report_a_switch_the_one_of_the_newer_election_is_its_master() {
    let mut cluster = Cluster::new();
    cluster.link();
    let mut third = third(&mut cluster);
    let hosts = Hosts::default();
    let facts = (*cluster.a.links.own_facts()[&Dpid(1)]).clone();
    for newer in [TERM + 1, TERM.wrapping_add(u64::MAX / 2)] {
        // The switch has gone to B. A was stopped, and does not know it.
        third.links.peer_switch(B, newer, facts.clone(), &hosts, s(2));
        let stale = SwitchFacts { links: Vec::new(), ..facts.clone() };
        third.links.peer_switch(A, TERM, stale, &hosts, s(2));
        assert!(third.links.is_of(Dpid(1), B) && third.links.is_of(Dpid(1), A));
        assert_eq!(third.topology().bidirectional_links().count(), 2);
        third.links.peer_left(A, &[Dpid(1)], &hosts, s(2));
        assert!(third.links.is_of(Dpid(1), B) && !third.links.is_of(Dpid(1), A));
        // If it is B that is gone, A may be the master again.
        third.links.peer_switch(A, TERM, facts.clone(), &hosts, s(2));
        third.links.peer_left(B, &[Dpid(1)], &hosts, s(2));
        assert!(third.links.is_of(Dpid(1), A));
    }
    assert_eq!(third.events(), Vec::<&str>::new());
}

#[test]
fn a_difference_from_what_a_peer_has_reported_is_found_whatever_made_it() {
    let mut cluster = Cluster::new();
    cluster.link();
    cluster.to(s(4));
    cluster.exchange();
    let mut third = third(&mut cluster);
    let digest = |scene: &Scene| {
        let mut digest = Digest::default();
        scene.links.own_facts().values().for_each(|facts| digest.add_switch(facts));
        digest
    };
    let of_a = digest(&cluster.a);
    let asked = |third: &mut Scene| {
        let mut ask = || third.links.compare(A, &of_a);
        assert_eq!(ask(), Buckets::NONE, "it may be on its way");
        ask()
    };
    assert_eq!(asked(&mut third), Buckets::NONE);
    let spoilt: [fn(&mut LinkTable); 5] = [
        |links| assert!(links.pairs.remove(&at(1, 4)).is_some()),
        |links| links.port_down(at(1, 2), s(4)),
        |links| links.switch_down(Dpid(1), s(4)),
        |links| links.port_mut(at(1, 1)).unwrap().is_known = false,
        |links| {
            let extra = SwitchFacts { dpid: Dpid(9), ports: Vec::new(), links: Vec::new() };
            links.peer_switch(A, TERM, extra, &Hosts::default(), s(4));
        },
    ];
    for (case, spoil) in spoilt.into_iter().enumerate() {
        spoil(&mut third.links);
        let buckets = asked(&mut third);
        assert_eq!(buckets.0.count_ones(), 1, "{case}");
        // Only what was asked for is reported again.
        let all = cluster.a.links.own_facts();
        let again = all.into_iter().filter(|(dpid, _)| buckets.has_switch(*dpid));
        let again: BTreeMap<_, _> = again.collect();
        for facts in again.values() {
            third.links.peer_switch(A, TERM, (**facts).clone(), &third.hosts, s(4));
        }
        let all = again.keys().copied().collect();
        third.links.peer_complete(A, (&all, buckets), &third.hosts, s(4));
        assert_eq!(asked(&mut third), Buckets::NONE, "{case}");
        let topology = third.topology();
        assert_eq!(topology.links, cluster.a.topology().links, "{case}");
    }
}

#[test]
fn an_announcement_that_a_peer_passes_on_counts_before_its_report_is_the_newest() {
    let mut cluster = Cluster::new();
    cluster.link();
    cluster.b.switch(1, 4);
    report(&mut cluster.b, B, &mut cluster.a);
    assert!(cluster.a.links.is_here(Dpid(1)) && cluster.a.links.is_of(Dpid(1), B));
    assert!(!cluster.a.links.is_of(Dpid(1), C));
}
