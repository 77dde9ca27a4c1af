//! Compares paths with simple algorithms, and after many changes with a fresh computation.

use std::collections::{BTreeMap, BTreeSet};

use crate::networks::{at, fat_tree, link, link_way, random_regular, snapshot, unlink};
use bellrock_api::{Dpid, Port, SwitchPort, Topology};
use bellrock_services::paths::{Hop, MAX_SWITCHES, Path, PathTracker, Paths};
use proptest::prelude::*;

/// Switches 1 to `n`, with ports 1 to 4.
fn switches(n: u64) -> Topology {
    let ports: Vec<Port> = (1..=4).map(Port).collect();
    let switches = (1..=n).map(|dpid| (Dpid(dpid), ports.clone())).collect();
    Topology { switches, settled: true, ..Topology::default() }
}

/// Each switch has the next one at port 1 and the previous one at port 2.
fn ring(n: u64) -> Topology {
    let mut topology = switches(n);
    for dpid in 1..=n {
        link(&mut topology, at(dpid, 1), at(dpid % n + 1, 2));
    }
    topology
}

fn of(topology: &Topology) -> Paths {
    PathTracker::default().update(&snapshot(topology))
}

/// Returns the switches of a path.
fn told(path: &Path) -> Vec<u64> {
    path.switches().map(|dpid| dpid.0).collect()
}

/// Distances between all switches, and all first hops.
type Seen = BTreeMap<(Dpid, Dpid), (Option<u16>, Vec<Hop>)>;

/// Returns the first pair of switches for which paths differ from the expected ones.
fn different(paths: &Paths, topology: &Topology, expected: &Seen) -> Option<String> {
    let seen = seen(paths, topology);
    assert_eq!(seen.len(), expected.len());
    let mut both = seen.iter().zip(expected);
    both.find(|(seen, expected)| seen != expected).map(|different| format!("{different:?}"))
}

/// Returns all distances and first hops in a topology.
fn seen(paths: &Paths, topology: &Topology) -> Seen {
    let all = topology.switches.keys();
    let pairs = all.clone().flat_map(|from| all.clone().map(|to| (*from, *to)));
    pairs
        .map(|(from, to)| {
            ((from, to), (paths.distance(from, to), paths.next_hops(from, to).collect()))
        })
        .collect()
}

/// Returns the links that paths may use.
fn usable(topology: &Topology) -> Vec<Hop> {
    let is_up = |at: SwitchPort| topology.switches.contains_key(&at.dpid);
    topology
        .bidirectional_links()
        .filter(|link| is_up(link.from) && is_up(link.to) && link.from.dpid != link.to.dpid)
        .map(|link| Hop { from: link.from, to: link.to })
        .collect()
}

/// Computes the same with Floyd and Warshall's algorithm.
fn expected(topology: &Topology) -> Seen {
    let all: Vec<Dpid> = topology.switches.keys().copied().collect();
    let links = usable(topology);
    let mut distances: BTreeMap<(Dpid, Dpid), u16> = BTreeMap::new();
    distances.extend(links.iter().map(|hop| ((hop.from.dpid, hop.to.dpid), 1)));
    distances.extend(all.iter().map(|dpid| ((*dpid, *dpid), 0)));
    for via in &all {
        for from in &all {
            for to in &all {
                let [a, b] = [(*from, *via), (*via, *to)].map(|pair| distances.get(&pair).copied());
                if let Some(sum) = a.zip(b).map(|(a, b)| a + b) {
                    let distance = distances.entry((*from, *to)).or_insert(sum);
                    *distance = sum.min(*distance);
                }
            }
        }
    }
    let pairs = all.iter().flat_map(|from| all.iter().map(|to| (*from, *to)));
    pairs
        .map(|(from, to)| {
            let distance = distances.get(&(from, to)).copied();
            let closer = |hop: &&Hop| {
                hop.from.dpid == from
                    && distances.get(&(hop.to.dpid, to)).map(|left| left + 1) == distance
                    && distance.is_some()
            };
            ((from, to), (distance, links.iter().filter(closer).copied().collect()))
        })
        .collect()
}

/// Returns the switches that a flooded packet from one reaches, each as often as it does.
fn flooded(paths: &Paths, topology: &Topology, from: Dpid) -> Vec<Dpid> {
    let mut came = vec![from];
    let mut under_way = vec![(from, None)];
    while let Some((dpid, port)) = under_way.pop() {
        assert!(came.len() <= topology.switches.len(), "it runs in a circle");
        for out in paths.flood_ports(dpid).iter().filter(|out| Some(**out) != port) {
            if let Some(link) = topology.links.get(&SwitchPort::new(dpid, *out)) {
                came.push(link.to.dpid);
                under_way.push((link.to.dpid, Some(link.to.port)));
            }
        }
    }
    came.sort_unstable();
    came
}

fn check_flooding(paths: &Paths, topology: &Topology) {
    for dpid in topology.switches.keys() {
        let part: Vec<Dpid> = topology.switches.keys().copied().collect();
        let part = part.into_iter().filter(|to| paths.distance(*dpid, *to).is_some());
        assert_eq!(flooded(paths, topology, *dpid), part.collect::<Vec<_>>(), "from {dpid}");
        let is_end = |at: SwitchPort| topology.links.values().any(|l| l.from == at || l.to == at);
        let ports = topology.switches[dpid].iter().copied();
        let edge: Vec<Port> = ports.filter(|port| !is_end(SwitchPort::new(*dpid, *port))).collect();
        assert_eq!(paths.edge_ports(*dpid), edge, "{dpid}");
        let flood: BTreeSet<&Port> = paths.flood_ports(*dpid).iter().collect();
        assert!(edge.iter().all(|port| flood.contains(port)), "hosts of {dpid} are reached");
    }
}

#[test]
fn a_link_that_goes_affects_the_paths_over_it_and_no_others() {
    let mut topology = ring(6);
    let mut tracker = PathTracker::default();
    let before = tracker.update(&snapshot(&topology));
    unlink(&mut topology, at(1, 1));
    let after = tracker.update(&snapshot(&topology));
    let changes = after.changes_since(&before);
    assert!(changes.affect(Dpid(1), Dpid(2)) && changes.affect(Dpid(6), Dpid(3)));
    // Both directions round the ring are shortest from 1 to 4; 2 and 4 are on the other side.
    assert!(changes.affect(Dpid(1), Dpid(4)));
    assert!(!changes.affect(Dpid(2), Dpid(4)) && !changes.affect(Dpid(5), Dpid(1)));
    let back = before.changes_since(&after);
    assert!(back.affect(Dpid(1), Dpid(2)) && !back.affect(Dpid(2), Dpid(4)));
    assert!(!after.changes_since(&after).affect(Dpid(1), Dpid(2)));
}

#[test]
fn a_ring_has_one_way_to_near_switches_and_two_to_the_opposite_one() {
    let paths = of(&ring(6));
    let ports =
        |to| paths.next_hops(Dpid(1), Dpid(to)).map(|hop| hop.from.port.0).collect::<Vec<_>>();
    assert_eq!([2, 3, 4, 5, 6].map(ports), [vec![1], vec![1], vec![1, 2], vec![2], vec![2]]);
    assert_eq!(paths.distance(Dpid(1), Dpid(4)), Some(3));
    assert_eq!((paths.distance(Dpid(1), Dpid(1)), ports(1)), (Some(0), vec![]));
    assert_eq!((paths.distance(Dpid(1), Dpid(9)), ports(9)), (None, vec![]));
}

#[test]
fn keys_are_spread_and_keep_their_path_when_another_goes() {
    let mut topology = switches(2);
    topology.switches.values_mut().for_each(|ports| ports.extend((5..=200).map(Port)));
    for port in 1..=100 {
        link(&mut topology, at(1, port), at(2, port));
    }
    let before = of(&topology);
    assert_eq!(before.next_hops(Dpid(1), Dpid(2)).count(), 100, "more than a word has bits");
    let port = |paths: &Paths, key| paths.next_hop(Dpid(1), Dpid(2), key).unwrap().from.port.0;
    let mut keys = [0; 101];
    (0..100_000).for_each(|key| keys[port(&before, key) as usize] += 1);
    assert!(keys[1..].iter().all(|keys| (800..1200).contains(keys)), "{keys:?}");
    unlink(&mut topology, at(1, 77));
    let after = of(&topology);
    for key in 0..10_000 {
        let (was, is) = (port(&before, key), port(&after, key));
        assert!(is != 77 && (is == was || was == 77), "key {key} went from {was} to {is}");
    }
}

#[test]
fn a_walk_takes_a_shortest_path_and_keys_take_all_of_them() {
    let topology = fat_tree(4);
    let paths = of(&topology);
    let (from, to) = (Dpid(6), Dpid(18));
    let taken: BTreeSet<Path> = (0..200).map(|key| paths.path(from, to, key).unwrap()).collect();
    assert_eq!(taken.len(), 4, "through each core switch");
    assert!(taken.iter().all(|path| path.hops.len() == 4 && path.hops[3].to.dpid == to));
    let all: BTreeSet<Path> = paths.k_shortest(from, to, 4, |_| true).into_iter().collect();
    assert_eq!(taken, all);
    assert_eq!(paths.path(from, from, 1).unwrap().hops, []);
    assert_eq!(paths.path(from, Dpid(99), 1), None);
}

#[test]
fn links_that_may_not_be_used_are_gone_around() {
    let paths = of(&ring(5));
    let avoiding = |avoided: SwitchPort| {
        paths.shortest(Dpid(1), Dpid(2), move |hop| hop.from != avoided && hop.to != avoided)
    };
    assert_eq!(avoiding(at(4, 3)).as_ref().map(told), Some(vec![1, 2]));
    assert_eq!(avoiding(at(1, 1)).as_ref().map(told), Some(vec![1, 5, 4, 3, 2]));
    assert_eq!(paths.shortest(Dpid(1), Dpid(2), |_| false), None);
    let all = paths.k_shortest(Dpid(1), Dpid(3), 9, |_| true);
    assert_eq!(all.iter().map(told).collect::<Vec<_>>(), [vec![1, 2, 3], vec![1, 5, 4, 3]]);
    assert_eq!(paths.k_shortest(Dpid(1), Dpid(3), 0, |_| true), []);
    assert_eq!(paths.k_shortest(Dpid(1), Dpid(9), 1, |_| true), []);
    let here = paths.k_shortest(Dpid(1), Dpid(1), 3, |_| true);
    assert_eq!(here, [Path { from: Dpid(1), to: Dpid(1), hops: vec![] }]);
}

#[test]
fn nothing_is_flooded_before_the_topology_is_settled() {
    let mut topology = ring(3);
    topology.settled = false;
    let mut tracker = PathTracker::default();
    let paths = tracker.update(&snapshot(&topology));
    assert!(!paths.is_settled() && paths.flood_ports(Dpid(1)).is_empty());
    assert!(paths.edge_ports(Dpid(1)).is_empty());
    assert_eq!(paths.distance(Dpid(1), Dpid(2)), Some(1), "there are paths");
    topology.settled = true;
    let paths = tracker.update(&snapshot(&topology));
    assert!(paths.is_settled());
    assert_eq!(paths.edge_ports(Dpid(1)), [3, 4].map(Port));
    assert_eq!(paths.flood_ports(Dpid(1)), [1, 2, 3, 4].map(Port));
    assert_eq!(paths.flood_ports(Dpid(2)), [2, 3, 4].map(Port), "the circle is open here");
}

#[test]
fn a_link_that_is_up_one_way_is_no_path_and_no_port_of_hosts() {
    let mut topology = switches(2);
    link_way(&mut topology, at(1, 1), at(2, 2));
    let paths = of(&topology);
    assert_eq!(paths.distance(Dpid(1), Dpid(2)), None);
    assert_eq!(paths.edge_ports(Dpid(1)), [2, 3, 4].map(Port));
    assert_eq!(paths.edge_ports(Dpid(2)), [1, 3, 4].map(Port));
    assert_eq!(paths.flood_ports(Dpid(2)), [1, 3, 4].map(Port));
}

#[test]
fn paths_of_large_networks_are_right_too() {
    for topology in [fat_tree(6), random_regular(60, 5, 1)] {
        let paths = of(&topology);
        assert_eq!(different(&paths, &topology, &expected(&topology)), None);
        check_flooding(&paths, &topology);
    }
}

#[test]
fn switches_above_the_bound_are_left_out_and_find_room_when_others_go() {
    let bound = MAX_SWITCHES as u64;
    let mut topology = Topology { settled: true, ..Topology::default() };
    for dpid in 0..bound + 2 {
        topology.switches.insert(Dpid(dpid), vec![Port(1), Port(2)]);
    }
    link(&mut topology, at(bound, 1), at(bound + 1, 2));
    let mut tracker = PathTracker::default();
    let paths = tracker.update(&snapshot(&topology));
    assert_eq!((paths.omitted_switches(), paths.distance(Dpid(bound), Dpid(bound + 1))), (2, None));
    topology.switches.remove(&Dpid(0));
    topology.switches.remove(&Dpid(1));
    let paths = tracker.update(&snapshot(&topology));
    assert_eq!(
        (paths.omitted_switches(), paths.distance(Dpid(bound), Dpid(bound + 1))),
        (0, Some(1))
    );
}

/// A change of a topology. Numbers are random, and taken modulo the number of objects.
#[derive(Clone, Debug)]
enum Event {
    Link(u64, u32, u64, u32),
    OneWay(u64, u32, u64, u32),
    Unlink(usize),
    ForgetWay(usize),
    SwitchDown(u64),
    SwitchUp(u64),
    PortDown(u64, u32),
    Unsettle,
    Settle,
}

const SWITCHES: u64 = 9;
const PORTS: u32 = 5;

fn event() -> impl Strategy<Value = Event> {
    let end = || (0..SWITCHES, 1..=PORTS);
    let ends = || (end(), end());
    prop_oneof![
        8 => ends().prop_map(|((a, p), (b, q))| Event::Link(a, p, b, q)),
        1 => ends().prop_map(|((a, p), (b, q))| Event::OneWay(a, p, b, q)),
        4 => any::<usize>().prop_map(Event::Unlink),
        1 => any::<usize>().prop_map(Event::ForgetWay),
        1 => (0..SWITCHES).prop_map(Event::SwitchDown),
        2 => (0..SWITCHES).prop_map(Event::SwitchUp),
        1 => end().prop_map(|(a, p)| Event::PortDown(a, p)),
        1 => Just(Event::Unsettle),
        1 => Just(Event::Settle),
    ]
}

impl Event {
    fn happen(&self, topology: &mut Topology) {
        let nth = |n: usize, topology: &Topology| {
            let links = topology.links.len().max(1);
            topology.links.keys().nth(n % links).copied()
        };
        match *self {
            Event::Link(a, p, b, q) => {
                unlink(topology, at(a, p));
                unlink(topology, at(b, q));
                link(topology, at(a, p), at(b, q));
            }
            Event::OneWay(a, p, b, q) => link_way(topology, at(a, p), at(b, q)),
            Event::Unlink(n) => {
                if let Some(end) = nth(n, topology) {
                    unlink(topology, end);
                }
            }
            Event::ForgetWay(n) => {
                if let Some(end) = nth(n, topology) {
                    topology.links.remove(&end);
                }
            }
            Event::SwitchDown(a) => {
                // Its links may still be there for a while.
                topology.switches.remove(&Dpid(a));
            }
            Event::SwitchUp(a) => {
                topology.switches.insert(Dpid(a), (1..=PORTS).map(Port).collect());
            }
            Event::PortDown(a, p) => {
                if let Some(ports) = topology.switches.get_mut(&Dpid(a)) {
                    ports.retain(|port| port.0 != p);
                }
            }
            Event::Unsettle => topology.settled = false,
            Event::Settle => topology.settled = true,
        }
    }
}

/// Lists all loop-free paths by brute force.
fn all_paths(links: &[Hop], at: Dpid, to: Dpid, so_far: &mut Vec<Hop>, all: &mut Vec<Vec<Hop>>) {
    if at == to {
        all.push(so_far.clone());
        return;
    }
    for hop in links.iter().filter(|hop| hop.from.dpid == at) {
        let next = hop.to.dpid;
        if so_far.iter().any(|before| before.from.dpid == next) {
            continue;
        }
        so_far.push(*hop);
        all_paths(links, next, to, so_far, all);
        so_far.pop();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn after_any_changes_paths_are_those_of_the_topology(
        steps in prop::collection::vec(prop::collection::vec(event(), 1..4), 1..30)
    ) {
        let mut topology = Topology { settled: true, ..Topology::default() };
        for dpid in 0..SWITCHES {
            Event::SwitchUp(dpid).happen(&mut topology);
        }
        let mut tracker = PathTracker::default();
        for events in steps {
            events.iter().for_each(|event| event.happen(&mut topology));
            let paths = tracker.update(&snapshot(&topology));
            prop_assert_eq!(different(&paths, &topology, &expected(&topology)), None);
            let anew = of(&topology);
            for dpid in topology.switches.keys() {
                prop_assert_eq!(paths.flood_ports(*dpid), anew.flood_ports(*dpid));
            }
            if topology.settled {
                check_flooding(&paths, &topology);
            }
        }
    }

    #[test]
    fn links_of_a_large_network_go_and_come_back(
        seed in 0..1000_u64,
        events in prop::collection::vec((any::<usize>(), any::<bool>()), 1..20),
    ) {
        let whole = random_regular(40, 3, seed);
        let (mut topology, mut tracker) = (whole.clone(), PathTracker::default());
        tracker.update(&snapshot(&whole));
        for (n, goes) in events {
            let (end, to) = {
                let (end, link) = whole.links.iter().nth(n % whole.links.len()).unwrap();
                (*end, link.to)
            };
            if goes { unlink(&mut topology, end) } else { link(&mut topology, end, to) }
            let paths = tracker.update(&snapshot(&topology));
            let anew = of(&topology);
            prop_assert_eq!(different(&paths, &topology, &seen(&anew, &topology)), None);
            check_flooding(&paths, &topology);
        }
    }

    #[test]
    fn paths_that_a_change_does_not_affect_are_those_of_before(
        events in prop::collection::vec(prop::collection::vec(event(), 1..4), 1..30),
    ) {
        let mut topology = Topology { settled: true, ..Topology::default() };
        (0..SWITCHES).for_each(|dpid| Event::SwitchUp(dpid).happen(&mut topology));
        let mut tracker = PathTracker::default();
        let mut before = tracker.update(&snapshot(&topology));
        for events in events {
            events.iter().for_each(|event| event.happen(&mut topology));
            let after = tracker.update(&snapshot(&topology));
            let changes = after.changes_since(&before);
            let all = (0..SWITCHES).flat_map(|a| (0..SWITCHES).map(move |b| (Dpid(a), Dpid(b))));
            for (from, to) in all {
                let walks = |paths: &Paths| -> Vec<Vec<Hop>> {
                    (0..8).map(|key| paths.walk(from, to, key).collect()).collect()
                };
                if !changes.affect(from, to) {
                    prop_assert_eq!(walks(&before), walks(&after));
                    prop_assert_eq!(before.distance(from, to), after.distance(from, to));
                }
            }
            drop(changes);
            before = after;
        }
    }

    #[test]
    fn k_shortest_paths_are_the_first_of_all(
        links in prop::collection::vec(((0..6_u64, 1..=4_u32), (0..6_u64, 1..=4_u32)), 0..14),
        k in 1_usize..12,
        avoided in any::<prop::sample::Index>(),
    ) {
        let mut topology = Topology { settled: true, ..Topology::default() };
        (0..6).for_each(|dpid| Event::SwitchUp(dpid).happen(&mut topology));
        for ((a, p), (b, q)) in links {
            Event::Link(a, p, b, q).happen(&mut topology);
        }
        let paths = of(&topology);
        let mut links = usable(&topology);
        let avoided = (!links.is_empty()).then(|| links[avoided.index(links.len())]);
        links.retain(|hop| Some(*hop) != avoided);
        let mut all = Vec::new();
        all_paths(&links, Dpid(0), Dpid(5), &mut Vec::new(), &mut all);
        all.sort_by_key(|hops| (hops.len(), hops.iter().map(|hop| hop.from.port).collect::<Vec<_>>()));
        all.truncate(k);
        let found = paths.k_shortest(Dpid(0), Dpid(5), k, |hop| Some(hop) != avoided);
        let found: Vec<Vec<Hop>> = found.into_iter().map(|path| path.hops).collect();
        prop_assert_eq!(&found, &all);
        let first = paths.shortest(Dpid(0), Dpid(5), |hop| Some(hop) != avoided);
        prop_assert_eq!(first.map(|path| path.hops), all.first().cloned());
    }
}
