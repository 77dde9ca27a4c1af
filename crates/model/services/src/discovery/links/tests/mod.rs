//! Links that come and go, and what attackers try, on a simulated clock.

use bellrock_api::{Host, HostId, MacAddr, Suspicion};

use super::*;
use crate::discovery::relays::{HOST_PORT_MEMORY, LinkVerdict, MAX_SUSPECTED, MAX_VERDICTS};

const INTERVAL: Duration = Duration::from_secs(5);
const MS: Duration = Duration::from_millis(1);

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(dpid: u64, port: u32) -> SwitchPort {
    SwitchPort::new(Dpid(dpid), Port(port))
}

/// Links, with the state of a controller around them.
struct Scene {
    links: LinkTable,
    hosts: Hosts,
    now: Duration,
    nonce: u64,
}

impl Scene {
    /// Switches 1 to `switches` with four ports each, up from the start.
    fn new(switches: u64) -> Self {
        Scene::with(switches, false)
    }

    fn with(switches: u64, refuse_slow: bool) -> Self {
        let links = LinkTable::new(INTERVAL, refuse_slow, BTreeSet::new());
        let mut scene = Scene { links, hosts: Hosts::default(), now: s(1), nonce: 0 };
        (1..=switches).for_each(|dpid| scene.switch(dpid, 4));
        scene
    }

    fn switch(&mut self, dpid: u64, ports: u32) {
        let ports = (1..=ports).map(|port| PortUp { port: Port(port), rate_kbps: None }).collect();
        self.links.switch(Dpid(dpid), s(1), ports, self.now);
    }

    fn to(&mut self, now: Duration) {
        while let Some(due) = self.links.due().filter(|due| *due <= now) {
            self.links.timers(due.max(self.now));
        }
        self.now = now;
    }

    fn announcement(
        &mut self,
        from: SwitchPort,
        to: SwitchPort,
        took: Duration,
    ) -> ReceivedAnnouncement {
        self.nonce += 1;
        ReceivedAnnouncement {
            from,
            to,
            nonce: self.nonce,
            sent: self.now,
            arrived: self.now,
            latency: Some(took),
            noise: Duration::ZERO,
        }
    }

    /// One port hears another by way of ordinary switches.
    fn forwarded(&mut self, from: SwitchPort, to: SwitchPort) -> AnnouncementOutcome {
        let heard = self.announcement(from, to, MS);
        self.hears(ReceivedAnnouncement { nonce: heard.nonce | 1 << 63, ..heard })
    }

    /// Receives an announcement now.
    fn hears(&mut self, heard: ReceivedAnnouncement) -> AnnouncementOutcome {
        let heard = ReceivedAnnouncement { arrived: self.now, ..heard };
        self.links.handle_announcement(heard, &self.hosts, self.now)
    }

    /// One port hears another.
    fn way(&mut self, from: SwitchPort, to: SwitchPort) -> AnnouncementOutcome {
        let heard = self.announcement(from, to, MS);
        self.hears(heard)
    }

    fn both(&mut self, a: SwitchPort, b: SwitchPort) {
        assert_eq!(
            (self.way(a, b), self.way(b, a)),
            (AnnouncementOutcome::Accepted, AnnouncementOutcome::Accepted)
        );
    }

    fn host(&mut self, n: u8, place: SwitchPort) {
        let id = HostId::new(MacAddr([2, 0, 0, 0, 0, n]), None);
        self.hosts.insert(Host { id, at: place, addresses: Vec::new(), since: self.now });
    }

    fn topology(&mut self) -> Topology {
        self.links.topology()
    }

    fn events(&mut self) -> Vec<&'static str> {
        self.links.take_events().iter().map(Event::name).collect()
    }
}

#[test]
fn links_are_up_as_soon_as_they_are_heard_and_other_ports_are_for_hosts_after_a_while() {
    let mut scene = Scene::new(2);
    scene.both(at(1, 4), at(2, 4));
    let early = scene.topology();
    assert_eq!((early.links.len(), early.edge.len(), early.settled), (2, 0, false));
    scene.to(s(3));
    let topology = scene.topology();
    assert!(topology.settled && topology.bidirectional_links().count() == 2);
    assert_eq!(topology.edge_of(Dpid(1)).collect::<Vec<_>>(), [Port(1), Port(2), Port(3)]);
    assert_eq!(scene.events(), ["link_up", "link_up"]);

    // The ports of a new switch are no edge at first. Known ports stay.
    scene.switch(3, 4);
    let topology = scene.topology();
    assert!(topology.settled && topology.edge_of(Dpid(3)).next().is_none());
    scene.to(s(5));
    assert_eq!(scene.topology().edge_of(Dpid(3)).count(), 4);
}

#[test]
fn a_port_to_a_switch_that_is_lost_is_none_of_a_host_since_it_may_forward_without_its_controller() {
    let mut scene = Scene::new(2);
    scene.both(at(1, 1), at(2, 1));
    scene.to(s(10));
    assert!(!scene.topology().is_edge(at(1, 1)));
    scene.links.switch_down(Dpid(2), scene.now);
    scene.to(s(60));
    let topology = scene.topology();
    assert!(!topology.is_edge(at(1, 1)) && topology.is_edge(at(1, 2)));
    assert!(topology.is_trunk(at(1, 1)) && !topology.is_trunk(at(1, 2)));
    // Plugging in a host instead takes the port down first.
    scene.links.port_down(at(1, 1), scene.now);
    assert!(!scene.topology().is_edge(at(1, 1)));
}

#[test]
fn a_link_goes_down_at_once_with_a_port_and_a_switch_and_after_three_rounds_of_silence() {
    let mut scene = Scene::new(3);
    scene.both(at(1, 1), at(2, 1));
    scene.both(at(2, 2), at(3, 2));
    scene.both(at(3, 3), at(1, 3));
    scene.links.port_down(at(2, 1), scene.now);
    assert_eq!(scene.topology().links.len(), 4);
    scene.links.switch_down(Dpid(3), scene.now);
    assert!(scene.topology().links.is_empty());
    let downs = scene.links.take_events();
    let why = |event: &Event| match event {
        Event::LinkDown { why, .. } => Some(*why),
        _ => None,
    };
    let downs: Vec<_> = downs.iter().filter_map(why).collect();
    assert_eq!(
        downs,
        [
            LinkDown::Port,
            LinkDown::Port,
            LinkDown::Switch,
            LinkDown::Switch,
            LinkDown::Switch,
            LinkDown::Switch
        ]
    );

    scene.both(at(1, 2), at(2, 2));
    scene.to(scene.now + INTERVAL * 3);
    assert_eq!(scene.topology().links.len(), 2, "three rounds, and one may be late");
    scene.to(scene.now + INTERVAL * 2);
    assert!(scene.topology().links.is_empty());
    assert_eq!(scene.events()[2..], ["link_down", "link_down"]);
}

#[test]
fn a_switch_that_connects_anew_has_no_links_of_before() {
    let mut scene = Scene::new(2);
    scene.both(at(1, 1), at(2, 1));
    let ports = vec![PortUp { port: Port(1), rate_kbps: Some(10_000_000) }];
    scene.links.switch(Dpid(2), s(9), ports, s(9));
    assert!(scene.topology().links.is_empty());
    scene.now = s(9);
    scene.both(at(1, 1), at(2, 1));
    assert_eq!(scene.topology().link(at(2, 1)).unwrap().rate_kbps, Some(10_000_000));
}

#[test]
fn an_announcement_is_good_once_and_for_a_round() {
    let mut scene = Scene::new(3);
    let first = scene.announcement(at(1, 1), at(2, 1), MS);
    let late = ReceivedAnnouncement { to: at(3, 1), ..scene.announcement(at(1, 2), at(2, 2), MS) };
    assert_eq!(scene.hears(first), AnnouncementOutcome::Accepted);
    assert_eq!(scene.hears(first), AnnouncementOutcome::Replayed);
    assert_eq!(
        scene.hears(ReceivedAnnouncement { to: at(3, 1), ..first }),
        AnnouncementOutcome::Replayed
    );
    scene.to(s(1) + INTERVAL + MS);
    assert_eq!(scene.hears(late), AnnouncementOutcome::Replayed);
    let topology = scene.topology();
    assert_eq!(topology.links.values().map(|link| link.to).collect::<Vec<_>>(), [at(2, 1)]);
    assert_eq!(scene.events(), ["link_up", "replayed_announcement", "replayed_announcement"]);
}

#[test]
fn a_late_announcement_over_a_known_link_is_no_alarm_unless_it_comes_again_or_elsewhere() {
    let mut scene = Scene::new(3);
    scene.both(at(1, 1), at(2, 1));
    let late = scene.announcement(at(1, 1), at(2, 1), MS);
    let later = scene.announcement(at(1, 1), at(2, 1), MS);
    let elsewhere = scene.announcement(at(1, 1), at(3, 1), MS);
    scene.to(s(1) + INTERVAL * 2);
    assert_eq!(scene.hears(late), AnnouncementOutcome::Late);
    assert_eq!(scene.hears(later), AnnouncementOutcome::Late);
    assert_eq!(scene.events(), ["link_up", "link_up"]);
    let link = scene.links.up(at(1, 1)).unwrap();
    assert_eq!(link.last_seen, s(1), "it does not prove that the link is still there");
    for replayed in [elsewhere, later, late] {
        assert_eq!(scene.hears(replayed), AnnouncementOutcome::Replayed);
    }
    // One alarm for each port.
    assert_eq!(scene.events(), ["replayed_announcement", "replayed_announcement"]);
}

#[test]
fn an_announcement_that_waits_for_the_task_does_not_grow_old() {
    let mut scene = Scene::new(2);
    let heard = scene.announcement(at(1, 1), at(2, 1), MS);
    let much_later = scene.now + INTERVAL * 2;
    assert_eq!(
        scene.links.handle_announcement(heard, &scene.hosts, much_later),
        AnnouncementOutcome::Accepted
    );
}

#[test]
fn a_port_that_flaps_makes_no_announcement_good_again() {
    let mut scene = Scene::new(3);
    let used = scene.announcement(at(1, 1), at(2, 1), MS);
    assert_eq!(scene.hears(used), AnnouncementOutcome::Accepted);
    scene.links.port_down(at(1, 1), scene.now);
    scene.to(s(2));
    scene.switch(1, 4);
    assert_eq!(
        scene.hears(ReceivedAnnouncement { to: at(3, 1), ..used }),
        AnnouncementOutcome::Replayed
    );
    assert_eq!(scene.way(at(1, 1), at(2, 1)), AnnouncementOutcome::Accepted);
}

#[test]
fn an_announcement_that_returns_to_its_port_is_no_link() {
    let mut scene = Scene::new(1);
    assert_eq!(scene.way(at(1, 1), at(1, 1)), AnnouncementOutcome::Reflected);
    assert_eq!(scene.way(at(9, 1), at(1, 1)), AnnouncementOutcome::Stale);
    assert!(scene.topology().links.is_empty());
    assert_eq!(scene.events(), ["reflected_announcement"]);
}

#[test]
fn a_link_between_ports_that_the_operator_trusts_is_no_relay() {
    for refuse_slow in [false, true] {
        let mut scene = Scene::with(5, refuse_slow);
        scene.links.relays = RelayTable::new(BTreeSet::from([at(1, 1), at(3, 1), at(2, 2)]));
        for (a, b) in [(1, 2), (2, 3), (3, 4), (4, 5)] {
            (0..8).for_each(|_| scene.both(at(a, 4), at(b, 3)));
        }
        scene.to(s(20));
        scene.host(1, at(1, 1));
        // Hosts were seen there before the announcements, and the link is the slowest.
        for _ in 0..8 {
            for (from, to) in [(at(1, 1), at(3, 1)), (at(3, 1), at(1, 1))] {
                let slow = scene.announcement(from, to, 100 * MS);
                assert_eq!(scene.hears(slow), AnnouncementOutcome::Accepted);
            }
        }
        let links = scene.topology().links;
        assert!(links.iter().any(|(_, link)| (link.from, link.to) == (at(1, 1), at(3, 1))));
        // One trusted port is not enough.
        scene.host(2, at(2, 2));
        assert_eq!(scene.way(at(2, 2), at(4, 2)), AnnouncementOutcome::Suspected);
    }
}

#[test]
fn a_link_where_hosts_have_been_is_a_relay() {
    let mut scene = Scene::new(3);
    scene.both(at(1, 4), at(2, 4));
    scene.to(s(20));
    scene.host(1, at(1, 1));
    for _ in 0..5 {
        assert_eq!(scene.way(at(1, 1), at(3, 1)), AnnouncementOutcome::Suspected);
        assert_eq!(scene.way(at(3, 1), at(1, 1)), AnnouncementOutcome::Suspected);
    }
    assert_eq!(scene.topology().links.len(), 2);
    let events = scene.links.take_events();
    let suspicion = Suspicion::HostTraffic { at: at(1, 1) };
    let relays = events.iter().filter(|event| event.name() == "relay_suspected");
    assert_eq!(relays.count(), 2, "each direction is reported once: {events:?}");
    assert!(events.contains(&Event::RelaySuspected {
        from: at(1, 1),
        to: at(3, 1),
        why: suspicion
    }));
    scene.to(scene.now + ALARM_EVERY);
    scene.way(at(1, 1), at(3, 1));
    assert_eq!(scene.events().last(), Some(&"relay_suspected"), "and again after a while");
}

#[test]
fn a_switch_that_comes_late_takes_the_place_of_hosts_that_were_seen_through_it() {
    let mut scene = Scene::new(1);
    scene.to(s(60));
    scene.host(1, at(1, 1));
    scene.to(s(90));
    scene.links.switch(Dpid(2), s(90), vec![PortUp { port: Port(1), rate_kbps: None }], s(90));
    scene.both(at(1, 1), at(2, 1));
    assert_eq!(scene.topology().links.len(), 2);
    // The same for a link that was silent while hosts were seen through it.
    scene.to(s(200));
    assert!(scene.topology().links.is_empty());
    scene.both(at(1, 1), at(2, 1));
}

#[test]
fn a_link_that_has_become_slow_is_reported_and_stays() {
    let mut scene = Scene::new(2);
    for round in 0..20 {
        scene.to(s(10) + INTERVAL * round);
        let took = if round < 6 { MS } else { MS * 6 };
        let heard = scene.announcement(at(1, 1), at(2, 1), took);
        scene.hears(heard);
    }
    let events = scene.links.take_events();
    let why = Suspicion::Latency { measured: MS * 6, expected: MS };
    assert!(events.contains(&Event::RelaySuspected { from: at(1, 1), to: at(2, 1), why }));
    assert_eq!(events.iter().filter(|it| it.name() == "relay_suspected").count(), 1);
    assert_eq!(scene.topology().links.len(), 1);
}

/// Load of the controller or of its machine delays announcements everywhere.
#[test]
fn links_that_become_slow_together_are_no_relays() {
    let mut scene = Scene::new(6);
    let latency = |n: u64, round| MS * if round < 6 { 1 } else { 5 + n as u32 };
    for round in 0..30 {
        scene.to(s(10) + INTERVAL * round);
        for n in 1..=5 {
            let heard = scene.announcement(at(n, 1), at(n + 1, 2), latency(n, round));
            scene.hears(heard);
        }
    }
    assert!(!scene.events().contains(&"relay_suspected"));
    // One of them does not recover with the others.
    for round in 30..50 {
        scene.to(s(10) + INTERVAL * round);
        for n in 1..=5 {
            let took = if n == 3 { MS * 8 } else { MS };
            let heard = scene.announcement(at(n, 1), at(n + 1, 2), took);
            scene.hears(heard);
        }
    }
    assert!(scene.events().contains(&"relay_suspected"));
}

#[test]
fn a_new_link_that_is_slower_than_all_others_is_reported_and_stays_down_if_that_is_wanted() {
    for refuse_slow in [false, true] {
        let mut scene = Scene::with(4, refuse_slow);
        for round in 0..10 {
            scene.to(s(10) + INTERVAL * round);
            (1..=3).for_each(|n| scene.both(at(n, 1), at(n + 1, 2)));
        }
        for round in 10..24 {
            scene.to(s(10) + INTERVAL * round);
            (1..=3).for_each(|n| scene.both(at(n, 1), at(n + 1, 2)));
            let heard = scene.announcement(at(1, 4), at(4, 4), MS * 20);
            scene.hears(heard);
            let heard = scene.announcement(at(1, 3), at(3, 3), MS * 2);
            scene.hears(heard);
        }
        let events = scene.links.take_events();
        let why = Suspicion::Latency { measured: MS * 20, expected: MS };
        assert!(events.contains(&Event::RelaySuspected { from: at(1, 4), to: at(4, 4), why }));
        let topology = scene.topology();
        assert_eq!(topology.link(at(1, 4)).is_some(), !refuse_slow);
        assert!(topology.link(at(1, 3)).is_some(), "this link is not slow");
    }
}

#[test]
fn one_way_and_miswired_links_are_reported_once() {
    let mut scene = Scene::new(3);
    for _ in 0..4 {
        scene.way(at(1, 1), at(2, 1));
        // 2:2 hears 1:2, and is heard at 3:2; 3:2 is heard at 1:2.
        scene.way(at(1, 2), at(2, 2));
        scene.way(at(2, 2), at(3, 2));
        scene.way(at(3, 2), at(1, 2));
        scene.to(scene.now + INTERVAL);
    }
    let events = scene.links.take_events();
    let of = |name| events.iter().filter(|event| event.name() == name).count();
    assert_eq!((of("one_way"), of("miswired"), of("link_up")), (1, 3, 4), "{events:?}");
    let topology = scene.topology();
    assert_eq!(topology.bidirectional_links().count(), 0);
    assert!(!topology.is_edge(at(2, 1)) && !topology.is_edge(at(1, 2)));
}

#[test]
fn a_port_that_is_heard_elsewhere_has_another_link() {
    let mut scene = Scene::new(3);
    scene.both(at(1, 1), at(2, 1));
    scene.both(at(1, 1), at(3, 1));
    let topology = scene.topology();
    assert_eq!(topology.link(at(1, 1)).unwrap().to, at(3, 1));
    assert_eq!(topology.bidirectional_links().count(), 2);
}

#[test]
fn forged_announcements_are_told_now_and_then() {
    let mut scene = Scene::new(1);
    (0..1000).for_each(|_| scene.links.report_forged(at(1, 1), scene.now));
    scene.links.report_forged(at(7, 1), s(1));
    assert_eq!(scene.events(), ["forged_announcement"]);
}

#[test]
fn ports_of_a_link_that_has_fallen_silent_are_none_of_hosts_until_they_go_down() {
    let mut scene = Scene::new(2);
    scene.both(at(1, 1), at(2, 1));
    scene.to(s(60));
    let topology = scene.topology();
    assert!(topology.links.is_empty() && topology.is_edge(at(1, 2)));
    assert!(topology.is_trunk(at(1, 1)) && topology.is_trunk(at(2, 1)));
    scene.links.port_down(at(1, 1), scene.now);
    scene.switch(1, 4);
    scene.to(s(63));
    let topology = scene.topology();
    assert!(topology.is_edge(at(1, 1)) && topology.is_trunk(at(2, 1)));
    // It carries announcements again.
    scene.both(at(1, 1), at(2, 1));
    assert_eq!(scene.topology().links.len(), 2);
}

#[test]
fn ports_of_a_link_that_is_not_judged_yet_are_none_of_hosts() {
    let mut scene = Scene::with(4, true);
    for round in 0..10 {
        scene.to(s(10) + INTERVAL * round);
        (1..=3).for_each(|n| scene.both(at(n, 1), at(n + 1, 2)));
    }
    for took in [MS, MS * 20] {
        for port in [at(1, 4), at(4, 4)] {
            scene.links.port_down(port, scene.now);
            scene.switch(port.dpid.0, 4);
        }
        for sample in 1..=4 {
            let topology = scene.topology();
            assert!(topology.link(at(1, 4)).is_none() && !topology.is_edge(at(4, 4)), "{sample}");
            for (from, to) in [(at(1, 4), at(4, 4)), (at(4, 4), at(1, 4))] {
                let heard = scene.announcement(from, to, took);
                scene.hears(heard);
            }
            scene.to(scene.now + s(2));
        }
        assert!(scene.links.has_changed());
        let topology = scene.topology();
        assert_eq!(topology.link(at(1, 4)).is_some(), took == MS);
        // The ports of a link that is too slow are edge ports.
        assert_eq!(topology.is_edge(at(1, 4)) && topology.is_edge(at(4, 4)), took != MS);
    }
}

/// Takes a port down and up again, with the hosts that are known there.
fn flap(scene: &mut Scene, port: SwitchPort) {
    scene.links.note_hosts(port, &scene.hosts, scene.now);
    scene.links.port_down(port, scene.now);
    scene.hosts = Hosts::default();
    scene.links.port_up(port.dpid, s(1), PortUp { port: port.port, rate_kbps: None }, scene.now);
}

#[test]
fn a_port_that_had_hosts_is_no_link_to_a_switch_that_was_there_before() {
    let mut scene = Scene::new(3);
    scene.to(s(60));
    scene.host(1, at(1, 1));
    flap(&mut scene, at(1, 1));
    scene.to(s(61));
    // In both directions, whichever port is heard first.
    for (from, to) in [(at(1, 1), at(2, 1)), (at(2, 1), at(1, 1))] {
        assert_eq!(scene.way(from, to), AnnouncementOutcome::Suspected);
    }
    assert!(scene.topology().links.is_empty());
    let why = Suspicion::HostPort { at: at(1, 1) };
    let suspected = scene.links.suspected_links();
    assert_eq!(suspected.len(), 1);
    assert_eq!(suspected[0].evidence, Some((why, s(61))));
    // A switch that connects after the host has gone is one in its place.
    let ports = vec![PortUp { port: Port(1), rate_kbps: None }];
    scene.links.switch(Dpid(4), s(61), ports, s(61));
    assert_eq!(scene.way(at(1, 1), at(4, 1)), AnnouncementOutcome::Accepted);
    // After some minutes the port counts as any other.
    scene.links.port_down(at(4, 1), scene.now);
    scene.to(s(60) + HOST_PORT_MEMORY);
    assert_eq!(scene.way(at(1, 1), at(2, 1)), AnnouncementOutcome::Accepted);
}

#[test]
fn a_port_of_a_link_may_go_down_and_up_as_it_likes() {
    let mut scene = Scene::new(2);
    scene.both(at(1, 1), at(2, 1));
    scene.to(s(60));
    scene.host(1, at(1, 2));
    flap(&mut scene, at(1, 1));
    scene.to(s(61));
    assert_eq!(scene.way(at(1, 1), at(2, 1)), AnnouncementOutcome::Accepted);
}

#[test]
fn an_operator_overrules_what_a_link_looks_like() {
    let mut scene = Scene::new(2);
    let (one, other) = (at(1, 1), at(2, 1));
    scene.to(s(60));
    scene.host(1, one);
    assert_eq!(scene.way(one, other), AnnouncementOutcome::Suspected);
    let judged = scene.links.judge(other, one, Some(LinkVerdict::Link)).unwrap();
    assert_eq!((judged.verdict, judged.is_up), (Some(LinkVerdict::Link), false));
    scene.both(one, other);
    assert_eq!(scene.topology().links.len(), 2);
    assert!(scene.links.suspected_links()[0].is_up);
    // As a relay it goes down at once, in both directions, and stays down without an alarm.
    scene.events();
    let judged = scene.links.judge(one, other, Some(LinkVerdict::Relay)).unwrap();
    assert!(!judged.is_up);
    assert_eq!(scene.events(), ["link_down", "link_down"]);
    scene.hosts = Hosts::default();
    assert_eq!(scene.way(one, other), AnnouncementOutcome::Suspected);
    assert!(scene.links.topology().links.is_empty());
    assert!(scene.links.topology().is_edge(one));
    assert!(scene.events().is_empty());
    // Verdicts outlive the ports, unlike what announcements have shown.
    scene.links.port_down(one, scene.now);
    assert_eq!(scene.links.suspected_links().len(), 1);
    assert_eq!(scene.links.judge(one, other, None).unwrap().verdict, None);
    assert!(scene.links.suspected_links().is_empty());
}

#[test]
fn verdicts_and_suspicions_are_bounded() {
    let mut table = RelayTable::new(BTreeSet::new());
    let why = Suspicion::HostTraffic { at: at(1, 1) };
    for n in 0..MAX_VERDICTS as u64 + 10 {
        let judged = table.judge(at(n, 1), at(n, 2), Some(LinkVerdict::Link));
        assert_eq!(judged.is_ok(), n < MAX_VERDICTS as u64, "{n}");
        table.suspect(at(n, 3), at(n, 4), why, s(1));
    }
    assert_eq!(table.pairs().count(), MAX_VERDICTS + MAX_SUSPECTED);
    // A link that is judged already can be judged again.
    assert!(table.judge(at(0, 2), at(0, 1), Some(LinkVerdict::Relay)).is_ok());
    assert!(!table.is_trusted(at(0, 1), at(0, 2)));
}

mod segments;
mod shared;

#[test]
fn links_stay_up_while_the_controller_is_stopped() {
    let mut scene = Scene::new(2);
    scene.both(at(1, 1), at(2, 1));
    scene.to(s(10));
    scene.both(at(1, 1), at(2, 1));
    scene.events();
    // Nothing runs for a minute.
    scene.now = s(70);
    scene.links.timers(s(70));
    scene.to(s(80));
    assert_eq!((scene.topology().links.len(), scene.events()), (2, vec![]));
    // Then it runs, and still hears nothing.
    scene.to(s(100));
    assert_eq!((scene.topology().links.len(), scene.events()), (0, vec!["link_down"; 2]));
}
