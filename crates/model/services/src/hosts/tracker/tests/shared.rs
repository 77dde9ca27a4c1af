//! Hosts of two controllers, which exchange what they know.

use bellrock_api::Host;

use super::*;
use crate::exchange::{Buckets, Digest, HostClaim, HostFact, HostFacts, HostInput, Peer};

const A: Peer = Peer(0);
const B: Peer = Peer(1);

/// A is master of switch 1, and B of switch 2.
struct Cluster {
    a: Scene,
    b: Scene,
}

impl Cluster {
    fn new() -> Self {
        let scene = |me: Peer| {
            let mut scene = Scene::default();
            scene.tracker.handle_input(me, HostInput::Open(me), &scene.topology, scene.now);
            scene.own(&[u64::from(me.0) + 1]);
            scene
        };
        Cluster { a: scene(A), b: scene(B) }
    }

    /// Delivers what each has to say until nobody has anything to say.
    fn exchange(&mut self) {
        loop {
            let from_a = self.a.messages();
            let from_b = self.b.messages();
            if from_a.is_empty() && from_b.is_empty() {
                return;
            }
            from_a.into_iter().for_each(|message| self.b.input(A, message));
            from_b.into_iter().for_each(|message| self.a.input(B, message));
        }
    }

    fn to(&mut self, now: Duration) {
        self.a.to(now);
        self.b.to(now);
        self.exchange();
    }

    fn places(&self, n: u16) -> [Option<SwitchPort>; 2] {
        [self.a.place(n), self.b.place(n)]
    }

    fn owners(&self, n: u8) -> [Option<HostId>; 2] {
        [self.a.owner(n), self.b.owner(n)]
    }
}

impl Scene {
    fn own(&mut self, dpids: &[u64]) {
        let own = dpids.iter().map(|dpid| Dpid(*dpid)).collect();
        self.tracker.set_own_switches(own, self.now);
    }

    fn input(&mut self, peer: Peer, input: HostInput) {
        self.tracker.handle_input(peer, input, &self.topology, self.now);
    }

    /// What this controller sends.
    fn messages(&mut self) -> Vec<HostInput> {
        let ToShare { changed, claims, moved, gone, .. } = self.tracker.take_shared();
        let own = &self.tracker.sharing.as_ref().unwrap().own;
        let mut facts = HostFacts::default();
        for id in changed {
            match self.tracker.hosts.get(id.mac, id.vlan) {
                Some(host) if own.contains(&host.at.dpid) => facts.present.push(fact(host)),
                Some(_) => {}
                None => facts.gone.push(id),
            }
        }
        facts.gone.extend(gone.into_iter().map(|(_, host)| host));
        let facts = (facts != HostFacts::default()).then_some(HostInput::Facts(facts));
        let claims = claims.into_iter().map(|(_, claim)| HostInput::Claim(claim));
        let moved = moved.into_iter().map(|(_, fact)| HostInput::Moved(fact));
        facts.into_iter().chain(claims).chain(moved).collect()
    }

    /// All hosts of this controller, as it reports them when it connects.
    fn report(&mut self) -> Vec<HostInput> {
        let own = self.tracker.sharing.as_ref().unwrap().own.clone();
        let hosts = self.tracker.hosts.iter().filter(|host| own.contains(&host.at.dpid));
        let facts = HostFacts { present: hosts.map(fact).collect(), gone: Vec::new() };
        vec![
            HostInput::Begin,
            HostInput::Facts(facts),
            HostInput::Complete(own.into(), Buckets::ALL),
        ]
    }
}

fn fact(host: &Host) -> HostFact {
    let Host { id, at, addresses, since } = host.clone();
    HostFact { id, at, addresses, since }
}

#[test]
fn both_controllers_know_all_hosts_and_one_reports_each() {
    let mut cluster = Cluster::new();
    cluster.a.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    cluster.b.told(2, at(2, 1), SenderAddresses::Address(ip(2)));
    cluster.exchange();
    assert_eq!(cluster.places(1), [Some(at(1, 1)); 2]);
    assert_eq!(cluster.places(2), [Some(at(2, 1)); 2]);
    assert_eq!(cluster.owners(2), [Some(host(2)); 2]);
    assert_eq!((cluster.a.names(), cluster.b.names()), (vec!["host_seen"], vec!["host_seen"]));
    // A host that answers nobody is forgotten by its own controller, and then by the other one.
    cluster.to(s(2000));
    assert_eq!((cluster.places(1), cluster.places(2)), ([None; 2], [None; 2]));
    assert_eq!((cluster.a.names(), cluster.b.names()), (vec!["host_gone"], vec!["host_gone"]));
    assert!(cluster.a.probes().iter().all(|probe| probe.host == host(1)));
}

#[test]
fn a_false_claim_at_another_controller_is_refused_by_the_one_that_has_the_host() {
    let mut cluster = Cluster::new();
    cluster.a.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    cluster.exchange();
    cluster.b.seen(1, at(2, 3));
    assert_eq!(cluster.b.probes(), [], "the other one asks");
    cluster.exchange();
    let probe = Probe { at: at(1, 1), host: host(1), ip: ip(1) };
    assert_eq!(cluster.a.probes(), [probe]);
    cluster.a.seen(1, at(1, 1));
    cluster.to(s(60));
    assert_eq!(cluster.places(1), [Some(at(1, 1)); 2]);
    assert_eq!(cluster.a.names(), ["host_seen", "host_move_refused"]);
    assert_eq!(cluster.b.names(), Vec::<&str>::new());
}

#[test]
fn a_host_moves_to_a_switch_of_another_controller_and_belongs_to_that_one() {
    let mut cluster = Cluster::new();
    cluster.a.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    cluster.exchange();
    cluster.b.seen(1, at(2, 3));
    cluster.exchange();
    cluster.to(s(60));
    assert_eq!(cluster.places(1), [Some(at(2, 3)); 2]);
    assert_eq!(cluster.owners(1), [Some(host(1)); 2]);
    assert_eq!(cluster.a.names(), ["host_seen", "host_moved"]);
    assert!(cluster.a.tracker.is_of_peer(host(1)) && !cluster.b.tracker.is_of_peer(host(1)));
    // The new one asks from now on.
    cluster.a.probes();
    cluster.b.probes();
    cluster.to(s(2000));
    assert_eq!(cluster.places(1), [None; 2]);
    assert!(cluster.a.probes().is_empty() && !cluster.b.probes().is_empty());
}

#[test]
fn an_address_of_a_host_of_another_controller_is_only_taken_if_that_host_does_not_answer() {
    let mut cluster = Cluster::new();
    cluster.a.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    cluster.exchange();
    cluster.b.told(2, at(2, 2), SenderAddresses::Address(ip(1)));
    cluster.exchange();
    cluster.a.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    cluster.to(s(20));
    assert_eq!(cluster.owners(1), [Some(host(1)); 2]);
    assert!(cluster.a.names().contains(&"address_claim_refused"));
    // This time it is silent.
    cluster.b.told(2, at(2, 2), SenderAddresses::Address(ip(1)));
    cluster.exchange();
    cluster.to(s(30));
    assert_eq!(cluster.owners(1), [None; 2]);
    cluster.b.told(2, at(2, 2), SenderAddresses::Address(ip(1)));
    cluster.exchange();
    assert_eq!(cluster.owners(1), [Some(host(2)); 2]);
}

#[test]
fn hosts_that_both_find_at_the_same_moment_end_at_one_port() {
    for answers in [false, true] {
        let mut cluster = Cluster::new();
        cluster.a.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
        cluster.b.told(1, at(2, 1), SenderAddresses::Address(ip(1)));
        cluster.exchange();
        assert_eq!(cluster.places(1), [Some(at(1, 1)); 2], "the first node decides");
        if answers {
            cluster.a.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
        }
        cluster.to(s(30));
        let expected = if answers { at(1, 1) } else { at(2, 1) };
        assert_eq!(cluster.places(1), [Some(expected); 2]);
        assert_eq!(cluster.owners(1), [Some(host(1)); 2]);
    }
}

#[test]
fn two_hosts_with_one_address_are_the_same_to_both() {
    let mut cluster = Cluster::new();
    cluster.a.told(1, at(1, 1), SenderAddresses::Address(ip(9)));
    cluster.b.told(2, at(2, 1), SenderAddresses::Address(ip(9)));
    cluster.exchange();
    assert_eq!(cluster.owners(9), [Some(host(1)); 2]);
    assert_eq!((cluster.places(1), cluster.places(2)), ([Some(at(1, 1)); 2], [Some(at(2, 1)); 2]));
}

#[test]
fn the_earlier_sighting_wins_over_the_order_of_the_nodes() {
    let mut cluster = Cluster::new();
    // They do not hear each other.
    cluster.b.told(1, at(2, 1), SenderAddresses::Address(ip(1)));
    cluster.b.told(2, at(2, 2), SenderAddresses::Address(ip(9)));
    cluster.a.to(s(20));
    cluster.b.to(s(20));
    cluster.a.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    cluster.a.told(3, at(1, 2), SenderAddresses::Address(ip(9)));
    cluster.exchange();
    assert_eq!(cluster.places(1), [Some(at(2, 1)); 2], "it is asked where it was first");
    assert_eq!(cluster.owners(9), [Some(host(2)); 2]);
    cluster.b.told(1, at(2, 1), SenderAddresses::Address(ip(1)));
    cluster.to(s(50));
    assert_eq!(cluster.places(1), [Some(at(2, 1)); 2], "it has answered");
}

#[test]
fn the_hosts_of_a_lost_controller_stay_and_belong_to_its_successor() {
    let mut cluster = Cluster::new();
    for n in 1..=3 {
        cluster.a.told(n, at(1, u32::from(n)), SenderAddresses::Address(ip(n as u8)));
    }
    cluster.exchange();
    cluster.b.input(A, HostInput::Dead);
    let version = cluster.b.tracker.take_hosts();
    assert!(version.is_some());
    cluster.b.own(&[1, 2]);
    assert!(cluster.b.tracker.take_hosts().is_none(), "nothing has changed for apps");
    assert_eq!(cluster.b.names(), Vec::<&str>::new());
    let facts = cluster.b.messages();
    let [HostInput::Facts(facts)] = &facts[..] else { panic!("{facts:?}") };
    assert_eq!((facts.present.len(), facts.gone.len()), (3, 0));
    // They are asked after their time, not all in the same moment.
    cluster.b.to(s(10) + s(300));
    let asked = cluster.b.probes().len();
    assert!(asked > 0, "{asked}");
    // A claim about one is checked here now.
    cluster.b.seen(1, at(2, 1));
    assert!(cluster.b.probes().iter().all(|probe| probe.at.dpid == Dpid(1)));
}

#[test]
fn a_claim_waits_while_nobody_is_master_of_the_hosts_switch() {
    let mut cluster = Cluster::new();
    cluster.a.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    cluster.exchange();
    cluster.b.input(A, HostInput::Dead);
    cluster.b.seen(1, at(2, 1));
    cluster.b.to(s(30));
    assert_eq!(cluster.b.place(1), Some(at(1, 1)));
    // The switch is gone for good: the host may be anywhere.
    cluster.b.change(|topology| {
        topology.switches.remove(&Dpid(1));
        topology.edge.retain(|at| at.dpid != Dpid(1));
    });
    cluster.b.seen(1, at(2, 1));
    cluster.b.to(s(100));
    assert_eq!(cluster.b.place(1), Some(at(2, 1)));
}

#[test]
fn hosts_that_nobody_takes_over_are_forgotten_at_last() {
    let mut cluster = Cluster::new();
    cluster.a.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    cluster.exchange();
    cluster.b.to(s(2000));
    assert_eq!(cluster.b.place(1), Some(at(1, 1)), "its controller looks after it");
    cluster.b.input(A, HostInput::Dead);
    cluster.b.to(s(3000));
    assert_eq!(cluster.b.place(1), None);
}

#[test]
fn a_controller_that_connects_again_reports_everything_and_what_it_leaves_out_is_gone() {
    let mut cluster = Cluster::new();
    cluster.a.seen(1, at(1, 1));
    cluster.a.seen(2, at(1, 2));
    cluster.exchange();
    // This one is gone while they are not connected.
    cluster.a.down(at(1, 2));
    cluster.a.messages();
    for message in cluster.a.report() {
        cluster.b.input(A, message);
    }
    assert_eq!((cluster.b.place(1), cluster.b.place(2)), (Some(at(1, 1)), None));
    // A switch that it has lost: its next master will report the host.
    cluster.a.own(&[]);
    for message in cluster.a.report() {
        cluster.b.input(A, message);
    }
    assert_eq!(cluster.b.place(1), Some(at(1, 1)));
}

#[test]
fn a_host_that_is_gone_is_reported_by_its_own_controller_only() {
    let mut cluster = Cluster::new();
    cluster.a.seen(1, at(1, 1));
    cluster.exchange();
    let gone = HostFacts { present: Vec::new(), gone: vec![host(1)] };
    cluster.b.input(Peer(2), HostInput::Facts(gone.clone()));
    assert_eq!(cluster.b.place(1), Some(at(1, 1)));
    // A port that is down at the other controller.
    cluster.b.down(at(1, 1));
    assert_eq!((cluster.b.place(1), cluster.b.names()), (None, vec![]));
    cluster.a.down(at(1, 1));
    assert_eq!(cluster.a.names(), ["host_seen", "host_gone"]);
}

#[test]
fn a_claim_of_a_host_that_is_not_there_is_answered() {
    let mut cluster = Cluster::new();
    cluster.a.seen(1, at(1, 1));
    cluster.exchange();
    // A has lost it, and B has missed that.
    cluster.a.tracker.remove(host(1), HostGone::Aged);
    cluster.a.messages();
    cluster.b.seen(1, at(2, 1));
    cluster.exchange();
    assert_eq!(cluster.places(1), [None; 2]);
    cluster.b.seen(1, at(2, 1));
    cluster.exchange();
    assert_eq!(cluster.places(1), [Some(at(2, 1)); 2]);
    let claim = HostClaim::Place { host: host(1), at: at(1, 2), ip: None };
    cluster.a.input(B, HostInput::Claim(claim));
    assert_eq!(cluster.places(1), [Some(at(2, 1)); 2]);
}

#[test]
fn reported_hosts_are_bounded_and_are_not_evicted_for_own_ones() {
    let settings = HostTrackingSettings { max_hosts: 4, ..HostTrackingSettings::default() };
    let mut scene = Scene::new(settings);
    scene.input(B, HostInput::Open(B));
    scene.own(&[2]);
    let facts = |n: u16| HostFact { id: host(n), at: at(1, 1), addresses: Vec::new(), since: s(1) };
    let present = (1..=9).map(facts).collect();
    scene.input(A, HostInput::Facts(HostFacts { present, gone: Vec::new() }));
    assert_eq!(scene.tracker.hosts.len(), 4);
    scene.seen(100, at(2, 1));
    assert_eq!((scene.tracker.hosts.len(), scene.place(100)), (4, None));
}

#[test]
fn hosts_that_differ_from_what_a_peer_has_reported_are_asked_for_and_reported_again() {
    let mut cluster = Cluster::new();
    for n in 1..=9 {
        cluster.a.told(n, at(1, 1 + u32::from(n) % 3), SenderAddresses::Address(ip(n as u8)));
    }
    cluster.exchange();
    let digest = |scene: &Scene| {
        let mut digest = Digest::default();
        scene.tracker.hosts.iter().for_each(|it| digest.add_host(it.id, it.at, &it.addresses));
        digest
    };
    let of_a = digest(&cluster.a);
    let asked = |scene: &mut Scene| {
        for _ in 0..2 {
            let switches = BTreeSet::from([Dpid(1)]);
            scene.input(A, HostInput::Digest(of_a.clone(), switches.into()));
        }
        scene.tracker.take_shared().differing
    };
    assert_eq!(asked(&mut cluster.b), []);
    let spoilt: [fn(&mut Scene); 4] = [
        |scene| scene.tracker.remove_silently(host(3)),
        |scene| scene.tracker.entries.get_mut(&host(4)).unwrap().addresses.clear(),
        |scene| scene.tracker.entries.get_mut(&host(5)).unwrap().of = None,
        |scene| {
            let extra = HostFact { id: host(77), at: at(1, 1), addresses: Vec::new(), since: s(1) };
            scene.input(A, HostInput::Facts(HostFacts { present: vec![extra], gone: Vec::new() }));
        },
    ];
    for (case, spoil) in spoilt.into_iter().enumerate() {
        spoil(&mut cluster.b);
        let differing = asked(&mut cluster.b);
        let [(A, buckets)] = differing[..] else { panic!("{case}: {differing:?}") };
        assert_eq!(buckets.0.count_ones(), 1, "{case}");
        let hosts = cluster.a.tracker.hosts.iter().filter(|host| buckets.has_host(host.id));
        let facts = HostFacts { present: hosts.map(fact).collect(), gone: Vec::new() };
        cluster.b.input(A, HostInput::Begin);
        cluster.b.input(A, HostInput::Facts(facts));
        let switches = BTreeSet::from([Dpid(1)]);
        cluster.b.input(A, HostInput::Complete(switches.into(), buckets));
        assert_eq!(asked(&mut cluster.b), [], "{case}");
        assert_eq!(digest(&cluster.b), of_a, "{case}");
    }
}

/// A controller that has restarted does not know the hosts of its switch, and the others know
/// nobody who decides about them.
#[test]
fn a_host_without_a_controller_is_given_to_the_master_of_its_switch() {
    let mut cluster = Cluster::new();
    cluster.a.told(1, at(1, 1), SenderAddresses::Address(ip(1)));
    cluster.exchange();
    cluster.b.input(A, HostInput::Dead);
    cluster.a = Cluster::new().a;
    assert_eq!(cluster.places(1), [None, Some(at(1, 1))]);
    let nothing = HostInput::Digest(Digest::default(), BTreeSet::from([Dpid(1)]).into());
    cluster.b.input(A, nothing);
    cluster.exchange();
    assert_eq!(cluster.places(1), [Some(at(1, 1)); 2]);
    assert!(cluster.b.tracker.is_of_peer(host(1)) && !cluster.a.tracker.is_of_peer(host(1)));
}
