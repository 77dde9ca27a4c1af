//! Topologies, as discovery would publish them.
#![allow(dead_code, unreachable_pub, reason = "each program uses a part of it")]

use std::time::Duration;

use bellrock_api::{Dpid, Link, Port, Publisher, Snapshot, SwitchPort, Topology};
use fastrand::Rng;

pub fn at(dpid: u64, port: u32) -> SwitchPort {
    SwitchPort::new(Dpid(dpid), Port(port))
}

/// Adds one direction of a link.
pub fn link_way(topology: &mut Topology, from: SwitchPort, to: SwitchPort) {
    topology.links.insert(from, Link { from, to, rate_kbps: None, since: Duration::ZERO });
}

/// Adds both directions of a link.
pub fn link(topology: &mut Topology, a: SwitchPort, b: SwitchPort) {
    link_way(topology, a, b);
    link_way(topology, b, a);
}

/// Removes both directions of the link at a port.
pub fn unlink(topology: &mut Topology, end: SwitchPort) {
    if let Some(link) = topology.links.remove(&end) {
        topology.links.remove(&link.to);
    }
}

/// Every port without a link is an edge port.
pub fn snapshot(topology: &Topology) -> Snapshot<Topology> {
    let Topology { switches, links, settled, .. } = topology.clone();
    let whole = Topology::of(switches, links.into_values());
    Publisher::new(Topology { settled, ..whole }).watch().load()
}

/// The fat-tree of `k`-port switches, with a port for each host.
pub fn fat_tree(k: u64) -> Topology {
    let half = k / 2;
    let mut topology = Topology { settled: true, ..Topology::default() };
    let ports: Vec<Port> = (1..=k as u32).map(Port).collect();
    let (core, aggregation, edge) = (
        |group: u64, i: u64| group * half + i,
        |pod: u64, i: u64| half * half + pod * k + i,
        |pod: u64, i: u64| half * half + pod * k + half + i,
    );
    topology.switches.extend((0..half * half + k * k).map(|dpid| (Dpid(dpid), ports.clone())));
    let port = |n: u64| n as u32 + 1;
    for pod in 0..k {
        for i in 0..half {
            for j in 0..half {
                let up = at(aggregation(pod, i), port(half + j));
                link(&mut topology, up, at(core(i, j), port(pod)));
                let down = at(aggregation(pod, i), port(j));
                link(&mut topology, down, at(edge(pod, j), port(half + i)));
            }
        }
    }
    topology
}

/// Switches with `degree` links each to random others, and as many edge ports. Parallel links, and
/// links from a switch to itself, are drawn anew.
pub fn random_regular(switches: u64, degree: u32, seed: u64) -> Topology {
    let mut rng = Rng::with_seed(seed);
    let ports: Vec<Port> = (1..=2 * degree).map(Port).collect();
    loop {
        let mut topology = Topology { settled: true, ..Topology::default() };
        topology.switches.extend((0..switches).map(|dpid| (Dpid(dpid), ports.clone())));
        let mut ends: Vec<SwitchPort> =
            (0..switches).flat_map(|dpid| (1..=degree).map(move |port| at(dpid, port))).collect();
        rng.shuffle(&mut ends);
        let mut neighbours = std::collections::BTreeSet::new();
        let mut tries = 0;
        while let Some(a) = ends.pop() {
            let fits = |b: &SwitchPort| a.dpid != b.dpid && !neighbours.contains(&(a.dpid, b.dpid));
            let Some(found) = ends.iter().rposition(fits) else { break };
            let b = ends.swap_remove(found);
            neighbours.extend([(a.dpid, b.dpid), (b.dpid, a.dpid)]);
            link(&mut topology, a, b);
            tries += 1;
        }
        if tries == switches * u64::from(degree) / 2 {
            return topology;
        }
    }
}
