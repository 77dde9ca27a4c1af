//! Hosts that come, go and move, and what attackers try, on a simulated clock.

use bellrock_api::{Dpid, Link, MacAddr, Port};

use super::*;

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(dpid: u64, port: u32) -> SwitchPort {
    SwitchPort::new(Dpid(dpid), Port(port))
}

fn host(n: u16) -> HostId {
    let [a, b] = n.to_be_bytes();
    HostId::new(MacAddr([2, 0, 0, 0, a, b]), None)
}

fn ip(n: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, n])
}

struct Scene {
    tracker: HostTracker,
    topology: Topology,
    now: Duration,
    /// Packet counts of hosts, as far as their switches answer.
    packets: BTreeMap<HostId, u64>,
    /// Number of requests for packet counts.
    counted: usize,
}

impl Scene {
    /// Two switches with three edge ports each.
    fn new(settings: HostTrackingSettings) -> Self {
        let ports = || (1..=3).map(Port).collect();
        let topology = Topology::of([(Dpid(1), ports()), (Dpid(2), ports())], []);
        let (tracker, packets) = (HostTracker::new(settings, [1, 2]), BTreeMap::new());
        Scene { tracker, topology, now: s(10), packets, counted: 0 }
    }

    fn default() -> Self {
        Scene::new(HostTrackingSettings::default())
    }

    fn told(&mut self, n: u16, at: SwitchPort, told: SenderAddresses) {
        let sighting = Sighting { host: host(n), at, addresses: told, time: Duration::ZERO };
        self.tracker.handle_sighting(sighting, &self.topology, self.now);
    }

    fn seen(&mut self, n: u16, at: SwitchPort) {
        self.told(n, at, SenderAddresses::Nothing);
    }

    fn to(&mut self, now: Duration) {
        while let Some(due) = self.tracker.due().filter(|due| *due <= now) {
            let at = due.max(self.now);
            self.tracker.timers(&self.topology, at);
            for counted in std::mem::take(&mut self.tracker.counts) {
                self.counted += 1;
                let packets = self.packets.get(&counted.host).copied();
                self.tracker.handle_count(counted, packets, &self.topology, at);
            }
        }
        self.now = now;
    }

    fn place(&self, n: u16) -> Option<SwitchPort> {
        let host = host(n);
        self.tracker.hosts.get(host.mac, host.vlan).map(|host| host.at)
    }

    fn owner(&self, n: u8) -> Option<HostId> {
        self.tracker.hosts.by_ip(ip(n), None).map(|host| host.id)
    }

    fn probes(&mut self) -> Vec<Probe> {
        std::mem::take(&mut self.tracker.probes)
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.tracker.events)
    }

    fn names(&mut self) -> Vec<&'static str> {
        self.events().iter().map(Event::name).collect()
    }

    fn down(&mut self, at: SwitchPort) {
        self.change(|topology| {
            topology.edge.remove(&at);
            topology.switches.get_mut(&at.dpid).unwrap().retain(|port| *port != at.port);
        });
    }

    fn up(&mut self, at: SwitchPort) {
        self.change(|topology| {
            topology.edge.insert(at);
            let ports = topology.switches.get_mut(&at.dpid).unwrap();
            ports.push(at.port);
            ports.sort_unstable();
        });
    }

    fn change(&mut self, change: impl FnOnce(&mut Topology)) {
        change(&mut self.topology);
        self.tracker.topology(&self.topology, self.now);
    }
}

#[test]
fn hosts_are_learnt_where_no_switch_is_and_no_sooner() {
    let mut scene = Scene::default();
    scene.topology.edge.remove(&at(1, 2));
    scene.seen(1, at(1, 2));
    scene.seen(1, at(7, 1));
    assert_eq!(scene.place(1), None);
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    assert_eq!((scene.place(1), scene.owner(1)), (Some(at(1, 1)), Some(host(1))));
    assert_eq!(scene.tracker.take_hosts().map(|hosts| hosts.len()), Some(1));
    assert!(scene.tracker.take_hosts().is_none(), "nothing has changed since");
}

#[test]
fn a_link_purges_the_hosts_at_its_ports() {
    let mut scene = Scene::default();
    scene.seen(1, at(1, 3));
    scene.seen(2, at(2, 3));
    scene.seen(3, at(2, 1));
    let link = Link { from: at(1, 3), to: at(2, 3), rate_kbps: None, since: s(10) };
    scene.change(|topology| {
        *topology = Topology::of(topology.switches.clone(), [link]);
    });
    assert_eq!((scene.place(1), scene.place(2), scene.place(3)), (None, None, Some(at(2, 1))));
    let gone = Event::HostGone { host: host(1), at: at(1, 3), why: HostGone::Link };
    assert!(scene.events().contains(&gone));
}

/// A cheap switch that forwards LLDP joins the two ports.
#[test]
fn hosts_at_a_link_are_reported_once_and_packets_that_cross_it_are_not() {
    let mut scene = Scene::default();
    let link = |from, to| Link { from, to, rate_kbps: None, since: s(10) };
    let ends = [at(1, 3), at(2, 3)];
    let links = [link(ends[0], ends[1]), link(ends[1], ends[0])];
    scene.change(|topology| *topology = Topology::of(topology.switches.clone(), links));
    let crosses = |scene: &mut Scene, n, at| {
        scene.tracker.handle_at_link(host(n), at, &scene.topology, scene.now);
    };
    // The packet of a new host crosses the link before its sighting is handled.
    crosses(&mut scene, 1, at(2, 3));
    scene.seen(1, at(1, 1));
    scene.events();
    for second in 11..40 {
        scene.to(s(second));
        crosses(&mut scene, 1, at(2, 3));
    }
    assert_eq!(scene.events(), []);
    for second in 40..80 {
        scene.to(s(second));
        ends.into_iter().for_each(|at| crosses(&mut scene, 7, at));
        crosses(&mut scene, 8, ends[0]);
    }
    assert_eq!(scene.events(), [Event::HostAtLink { host: host(7), ports: ends.into() }]);
    scene.change(|topology| *topology = Topology::of(topology.switches.clone(), []));
    scene.change(|topology| *topology = Topology::of(topology.switches.clone(), links));
    scene.events();
    for second in 80..90 {
        scene.to(s(second));
        crosses(&mut scene, 8, ends[1]);
    }
    assert_eq!(scene.names(), ["host_at_link"], "it is connected so again");
}

#[test]
fn a_host_whose_port_goes_down_may_come_up_anywhere() {
    let mut scene = Scene::default();
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    scene.seen(2, at(1, 2));
    scene.down(at(1, 1));
    scene.down(at(1, 2));
    assert_eq!((scene.place(1), scene.owner(1)), (None, None));
    scene.seen(1, at(2, 2));
    assert_eq!((scene.place(1), scene.owner(1)), (Some(at(2, 2)), Some(host(1))));
    assert_eq!(scene.names()[2..], ["host_gone", "host_gone", "host_moved"]);
    // The other host has no address to probe when its port is up again.
    scene.up(at(1, 2));
    assert_eq!(scene.probes(), []);
    scene.seen(2, at(1, 2));
    assert_eq!(scene.names(), ["host_seen"]);
}

#[test]
fn hosts_that_are_away_are_asked_once_when_their_port_is_back() {
    let settings =
        HostTrackingSettings { max_hosts_per_port: 100, ..HostTrackingSettings::default() };
    let mut scene = Scene::new(settings);
    for n in 0..100 {
        scene.told(n, at(1, 1), SenderAddresses::Address(ip(n as u8)));
        scene.now += Duration::from_millis(1);
    }
    scene.down(at(1, 1));
    scene.down(at(2, 2));
    assert_eq!(scene.probes(), []);
    scene.up(at(1, 1));
    let asked: BTreeSet<HostId> = scene.probes().iter().map(|probe| probe.host).collect();
    assert_eq!(asked.len(), ASKED_ON_RETURN);
    assert!(asked.contains(&host(99)) && !asked.contains(&host(0)), "the last seen");
    scene.to(s(20));
    assert_eq!(scene.probes().len(), ASKED_ON_RETURN, "once more, as always");
    // A change elsewhere does not matter to them.
    scene.up(at(2, 2));
    scene.to(s(30));
    assert_eq!(scene.probes(), []);
}

#[test]
fn a_claim_by_a_port_that_has_gone_down_meanwhile_is_void() {
    let mut scene = Scene::default();
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    scene.seen(1, at(2, 1));
    scene.down(at(2, 1));
    scene.to(s(12));
    assert_eq!(scene.place(1), Some(at(1, 1)));
}

#[test]
fn hosts_of_a_switch_that_is_away_stay_until_they_are_seen_elsewhere_or_too_old() {
    let mut scene = Scene::default();
    for n in 1..=3 {
        scene.told(n, at(1, u32::from(n)), SenderAddresses::Address(ip(n as u8)));
    }
    let before = scene.topology.clone();
    scene.change(|topology| {
        topology.switches.remove(&Dpid(1));
        topology.edge.retain(|port| port.dpid != Dpid(1));
    });
    scene.told(3, at(2, 1), SenderAddresses::Address(ip(3)));
    scene.to(s(12));
    assert_eq!((scene.place(1), scene.place(3)), (Some(at(1, 1)), Some(at(2, 1))));
    // Switch 1 is back, and its ports are not judged yet. Then they are, except one that went down.
    scene.change(|topology| {
        topology.switches.insert(Dpid(1), [1, 3].map(Port).to_vec());
    });
    assert_eq!((scene.place(1), scene.place(2)), (Some(at(1, 1)), None));
    scene.change(|topology| *topology = before);
    assert_eq!(scene.place(1), Some(at(1, 1)));
    scene.change(|topology| {
        topology.switches.remove(&Dpid(1));
        topology.edge.retain(|port| port.dpid != Dpid(1));
    });
    scene.to(s(700));
    assert_eq!(scene.place(1), None, "it could not be probed");
}

#[test]
fn a_host_that_answers_has_not_moved() {
    let mut scene = Scene::default();
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    scene.names();
    scene.seen(1, at(2, 1));
    assert_eq!(scene.probes(), [Probe { at: at(1, 1), host: host(1), ip: ip(1) }]);
    assert_eq!(scene.tracker.stale, [at(1, 1)], "packets from its port count");
    scene.to(s(10) + ASK_AGAIN_AFTER);
    assert_eq!(scene.probes().len(), 1);
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    scene.to(s(12));
    assert_eq!(scene.place(1), Some(at(1, 1)));
    let refused = Event::HostMoveRefused { host: host(1), at: at(1, 1), claimed_at: at(2, 1) };
    assert_eq!(scene.events(), [refused]);
    assert_eq!(scene.tracker.refused, [RefusedSighting::Claim(at(2, 1))]);
    // A later claim is checked again, and reported again after a while.
    for second in 12..30 {
        scene.to(s(second));
        scene.seen(1, at(2, 1));
        scene.seen(1, at(1, 1));
    }
    assert_eq!(scene.names(), ["host_move_refused"]);
    assert_eq!(scene.place(1), Some(at(1, 1)));
}

#[test]
fn a_host_that_does_not_answer_for_a_second_has_moved() {
    let mut scene = Scene::default();
    scene.told(1, at(1, 1), SenderAddresses::Used(ip(1)));
    scene.seen(1, at(2, 1));
    scene.seen(1, at(2, 2));
    scene.to(s(10) + ANSWER_WITHIN - Duration::from_millis(1));
    assert_eq!(scene.place(1), Some(at(1, 1)));
    assert_eq!(scene.probes().len(), 2, "it is asked for the address that it used");
    scene.to(s(11));
    assert_eq!(scene.place(1), Some(at(2, 1)));
    assert_eq!(scene.names(), ["host_seen", "host_moved"]);
}

#[test]
fn a_question_that_could_not_be_sent_is_not_taken_for_unanswered() {
    let mut scene = Scene::default();
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    scene.seen(1, at(2, 1));
    for half_second in 1..8 {
        assert_eq!(scene.probes().len(), 1);
        scene.tracker.not_sent(host(1), scene.now);
        scene.to(s(10) + ASK_AGAIN_AFTER * half_second);
    }
    assert_eq!(scene.place(1), Some(at(1, 1)));
    // The last probe was sent.
    scene.to(scene.now + ANSWER_WITHIN);
    assert_eq!(scene.place(1), Some(at(2, 1)));
}

#[test]
fn an_address_stays_with_who_answers_for_it() {
    let mut scene = Scene::default();
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    scene.told(2, at(1, 2), SenderAddresses::Address(ip(1)));
    assert_eq!(scene.probes(), [Probe { at: at(1, 1), host: host(1), ip: ip(1) }]);
    scene.seen(1, at(1, 1));
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    scene.to(s(12));
    assert_eq!(scene.owner(1), Some(host(1)));
    let refused = Event::AddressClaimRefused { ip: ip(1), owner: host(1), claimed_by: host(2) };
    assert!(scene.events().contains(&refused));

    scene.told(2, at(1, 2), SenderAddresses::Address(ip(1)));
    scene.to(s(14));
    assert_eq!(scene.owner(1), Some(host(2)), "nobody answered for it");
    scene.seen(1, at(1, 1));
    assert_eq!(scene.owner(1), Some(host(2)));
}

#[test]
fn a_host_that_tells_ever_new_addresses_is_believed_a_few_in_a_second() {
    let mut scene = Scene::default();
    let mut published = 0;
    for n in 0..200 {
        scene.told(1, at(1, 1), SenderAddresses::Address(ip(n)));
        published += usize::from(scene.tracker.take_hosts().is_some());
        scene.now += Duration::from_millis(5);
    }
    assert!(published <= 1 + MAX_ADDRESSES + 2 * REPLACED_PER_S as usize, "{published}");
    scene.now += s(1);
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(250)));
    assert_eq!(scene.owner(250), Some(host(1)));
}

#[test]
fn a_host_that_was_away_does_not_take_back_its_address() {
    let mut scene = Scene::default();
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    scene.down(at(1, 1));
    scene.told(2, at(1, 2), SenderAddresses::Address(ip(1)));
    scene.up(at(1, 1));
    scene.seen(1, at(1, 1));
    assert_eq!((scene.place(1), scene.owner(1)), (Some(at(1, 1)), Some(host(2))));
}

#[test]
fn an_old_host_is_asked_before_it_is_forgotten() {
    let mut scene = Scene::default();
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    scene.seen(2, at(1, 2));
    scene.to(s(200));
    scene.seen(2, at(1, 2));
    scene.to(s(310));
    assert_eq!(scene.probes().len(), 1);
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    scene.to(s(505));
    assert_eq!((scene.place(1), scene.place(2)), (Some(at(1, 1)), None), "it could not be asked");
    scene.to(s(700));
    assert_eq!(scene.place(1), None);
    assert_eq!(scene.probes().len(), 2 * AGE_PROBES as usize);
    assert_eq!(scene.names(), ["host_seen", "host_seen", "host_gone", "host_gone"]);
    assert_eq!(scene.tracker.due(), None);
}

#[test]
fn a_host_whose_flows_carry_packets_is_not_forgotten_and_is_asked_for_once_in_its_time() {
    let mut scene = Scene::default();
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    for round in 1..=5 {
        *scene.packets.entry(host(1)).or_default() += 10;
        scene.to(s(10) + s(302) * round + s(2));
        assert_eq!((scene.place(1), scene.counted), (Some(at(1, 1)), round as usize));
    }
    // No further packet until the next request: then it is gone. A lower count is of new flows.
    scene.packets.insert(host(1), 7);
    scene.to(scene.now + s(304));
    assert_eq!(scene.place(1), Some(at(1, 1)));
    scene.to(scene.now + s(304));
    assert_eq!((scene.place(1), scene.names().pop()), (None, Some("host_gone")));
}

#[test]
fn a_claim_is_refused_while_the_hosts_own_flows_carry_packets() {
    let mut scene = Scene::default();
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    // The host answers nothing, and each request counts one packet more.
    scene.packets.insert(host(1), 5);
    scene.seen(1, at(2, 1));
    scene.to(s(10) + ASK_AGAIN_AFTER);
    scene.packets.insert(host(1), 6);
    scene.to(s(12));
    assert_eq!((scene.place(1), scene.counted), (Some(at(1, 1)), 2));
    assert_eq!(scene.names(), ["host_seen", "host_move_refused"]);
    // Flows that carry no packets any more keep no host.
    scene.to(s(20));
    scene.seen(1, at(2, 1));
    scene.to(s(22));
    assert_eq!((scene.place(1), scene.names()), (Some(at(2, 1)), vec!["host_moved"]));
}

#[test]
fn a_switch_that_is_asked_and_does_not_answer_holds_nothing_for_ever() {
    let mut scene = Scene::default();
    scene.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    let due = |scene: &mut Scene| scene.tracker.due().unwrap();
    while scene.tracker.counts.is_empty() {
        let at = due(&mut scene);
        scene.tracker.timers(&scene.topology, at);
    }
    let (asked, last) = (scene.tracker.counts.clone(), due(&mut scene));
    assert_eq!(asked, [CountedHost { host: host(1), at: at(1, 1) }]);
    assert_eq!(last, s(10 + 300 + 2) + COUNTED_WITHIN);
    scene.tracker.timers(&scene.topology, last);
    assert_eq!(scene.place(1), None);
    // A late answer is about no host.
    scene.tracker.handle_count(asked[0], Some(1), &scene.topology, last);
    assert_eq!(scene.tracker.due(), None);
}

#[test]
fn a_host_that_is_believed_in_is_asked_before_another_has_its_address() {
    let mut scene = Scene::default();
    scene.topology.edge.remove(&at(1, 1));
    scene.tracker.believe(
        &[1, 2, 3].map(|n| (host(n), at(1, n.into()))).into(),
        &scene.topology,
        scene.now,
    );
    assert_eq!((scene.place(1), scene.place(2)), (None, Some(at(1, 2))), "where hosts can be");
    // Before its port is judged, its address is used elsewhere.
    scene.told(1, at(2, 1), SenderAddresses::Address(ip(1)));
    assert_eq!(scene.probes(), [Probe { at: at(1, 1), host: host(1), ip: ip(1) }]);
    scene.packets.insert(host(1), 5);
    scene.to(s(10) + ASK_AGAIN_AFTER);
    scene.packets.insert(host(1), 6);
    scene.to(s(12));
    assert_eq!(scene.place(1), Some(at(1, 1)));
    // A silent host is forgotten, and not assumed again.
    scene.to(s(400));
    assert_eq!(scene.place(2), None);
    scene.tracker.believe(&[(host(2), at(1, 2))].into(), &scene.topology, scene.now);
    scene.seen(2, at(2, 2));
    assert_eq!(scene.place(2), Some(at(2, 2)));
}

#[test]
fn a_belief_in_a_port_that_is_down_is_void() {
    let mut scene = Scene::default();
    scene.down(at(1, 1));
    scene.tracker.believe(&[(host(1), at(1, 1))].into(), &scene.topology, scene.now);
    scene.seen(1, at(2, 1));
    assert_eq!((scene.place(1), scene.probes()), (Some(at(2, 1)), vec![]));
}

#[test]
fn use_of_the_probe_address_is_reported_at_a_limited_rate() {
    let mut scene = Scene::default();
    for second in 0..=10 {
        scene.tracker.probe_address_used(at(1, 1), s(10 + second));
    }
    scene.tracker.probe_address_used(at(2, 1), s(20));
    let used = |at| Event::ProbeAddressUsed { at };
    assert_eq!(scene.events(), [used(at(1, 1)), used(at(1, 1)), used(at(2, 1))]);
    assert_eq!(scene.place(1), None);
}

#[test]
fn a_claim_of_many_addresses_takes_no_room_from_other_hosts() {
    let settings = HostTrackingSettings {
        max_hosts: 20,
        max_hosts_per_port: 15,
        ..HostTrackingSettings::default()
    };
    let mut scene = Scene::new(settings);
    (0..1000).for_each(|n| scene.seen(n, at(1, 1)));
    assert_eq!(scene.tracker.hosts.at(at(1, 1)).count(), 15);
    assert_eq!(scene.names().iter().filter(|name| **name == "too_many_hosts").count(), 1);
    (1000..1020).for_each(|n| scene.seen(n, at(1, 2)));
    let count = |scene: &Scene, port| scene.tracker.hosts.at(at(1, port)).count();
    assert_eq!((count(&scene, 1), count(&scene, 2)), (10, 10));
    scene.seen(2000, at(2, 1));
    assert_eq!(scene.place(2000), Some(at(2, 1)));
    assert_eq!((scene.tracker.hosts.len(), scene.tracker.entries.len()), (20, 20));
    let addresses = 2 * MAX_ADDRESSES as u8;
    for n in 0..addresses {
        scene.told(2000, at(2, 1), SenderAddresses::Address(ip(n)));
        scene.now += s(1) / REPLACED_PER_S;
    }
    assert_eq!((scene.owner(0), scene.owner(addresses - 1)), (None, Some(host(2000))));
    let refused = &scene.tracker.refused;
    assert!(
        refused.contains(&RefusedSighting::PortFull(at(1, 1)))
            && refused.contains(&RefusedSighting::Full(at(1, 2)))
    );
}

mod shared;
