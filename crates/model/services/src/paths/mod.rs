//! Shortest paths over the topology.
//!
//! # What it is
//! [`Paths`] is a snapshot: the distance between any two switches, the links that begin shortest
//! paths between them (equal-cost multipath), and the ports that a flooded packet goes out of.
//! [`PathTracker`] computes the next snapshot from the last one by the changes of the topology.
//! [`PathService`] is the task that does so in a running controller; [`paths`] returns its
//! snapshots.
//!
//! A handler reads them through a [`bellrock_api::WatchReader`]: without a lock, at the cost of a
//! few words. Paths that avoid links, and several paths, are searched on request; that is for
//! tasks.
//!
//! # What it is not
//! Each link counts as one hop, whatever its rate; an app that knows better avoids links
//! ([`Paths::shortest`]). Nothing is installed here.
//!
//! # Bounds
//! [`MAX_SWITCHES`]. `docs/book/src/internals/paths.md` lists the costs.

mod changes;
mod flood;
mod graph;
mod repair;
mod rows;
mod search;
mod service;

use std::collections::BTreeSet;
use std::sync::Arc;

use bellrock_api::{Dpid, Port, Snapshot, SwitchPort, Topology};

pub use changes::PathChanges;
use flood::Flood;
pub use graph::MAX_SWITCHES;
use graph::{Graph, GraphLink, GraphNode, NodeIndex, number};
use rows::{PathRows, UNREACHABLE};
use search::{IndexedPath, SearchFilter};
pub use service::{PathService, paths};

/// A link, in the direction in which a path takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// The sending port.
    pub from: SwitchPort,
    /// The receiving port.
    pub to: SwitchPort,
}

/// A path between two switches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// The first switch.
    pub from: Dpid,
    /// The last switch.
    pub to: Dpid,
    /// The links between them, each from the switch where the last one ends. Empty if `from` is
    /// `to`.
    pub hops: Vec<Hop>,
}

impl Path {
    /// Returns the switches on the path, from the first to the last.
    pub fn switches(&self) -> impl DoubleEndedIterator<Item = Dpid> {
        std::iter::once(self.from).chain(self.hops.iter().map(|hop| hop.to.dpid))
    }
}

/// Paths between all switches, for the topology at one time.
///
/// Only links that are up in both directions, between two different switches that are up, are used.
#[derive(Clone, Default)]
pub struct Paths {
    numbers: Arc<Vec<(Dpid, u32)>>,
    nodes: Vec<Arc<GraphNode>>,
    rows: PathRows,
    flood: Option<Arc<Flood>>,
    omitted_switches: usize,
}

impl Paths {
    /// Returns the number of hops between two switches. `None` if there is no path.
    #[must_use]
    pub fn distance(&self, from: Dpid, to: Dpid) -> Option<u16> {
        let (from, to) = (self.number(from)?, self.number(to)?);
        let distance = self.rows.distances[from][to];
        (distance != UNREACHABLE).then_some(distance)
    }

    /// Returns the first hops of all shortest paths between two switches, by port. Empty if there
    /// is no path, or both are the same.
    pub fn next_hops(&self, from: Dpid, to: Dpid) -> impl Iterator<Item = Hop> {
        let both = self.number(from).zip(self.number(to));
        both.into_iter().flat_map(move |(from, to)| {
            self.links_to(from, to).map(move |link| self.hop(&self.nodes[from], link))
        })
    }

    /// Returns the first hop of a shortest path for packets with this `key`, such as a hash of
    /// their addresses. The same key gives the same hop, and keys are spread evenly.
    ///
    /// When a first hop goes, only its keys get another one. A first hop that comes takes only its
    /// share (rendezvous hashing: Thaler and Ravishankar, 1998).
    #[must_use]
    pub fn next_hop(&self, from: Dpid, to: Dpid, key: u64) -> Option<Hop> {
        let (from, to) = (self.number(from)?, self.number(to)?);
        self.choose(from, to, key).map(|link| self.hop(&self.nodes[from], link))
    }

    /// Returns the hops of the shortest path for packets with this key, each chosen by
    /// [`next_hop`](Self::next_hop). Empty if there is no path; allocates nothing.
    pub fn walk(&self, from: Dpid, to: Dpid, key: u64) -> impl Iterator<Item = Hop> {
        let to = self.number(to);
        let mut at = self.number(from);
        std::iter::from_fn(move || {
            let here = at?;
            let link = self.choose(here, to?, key)?;
            // Each hop is closer, so the walk ends.
            at = Some(link.to as NodeIndex);
            Some(self.hop(&self.nodes[here], link))
        })
    }

    /// Returns the path of [`walk`](Self::walk). `None` if there is no path.
    #[must_use]
    pub fn path(&self, from: Dpid, to: Dpid, key: u64) -> Option<Path> {
        self.distance(from, to)?;
        Some(Path { from, to, hops: self.walk(from, to, key).collect() })
    }

    /// Searches the shortest path over `usable` hops; of several, the one by the lowest port where
    /// they part. For tasks.
    #[must_use]
    pub fn shortest(&self, from: Dpid, to: Dpid, usable: impl Fn(Hop) -> bool) -> Option<Path> {
        let (start, end) = (self.number(from)?, self.number(to)?);
        let filter =
            SearchFilter { usable: &usable, switches: BTreeSet::new(), first: BTreeSet::new() };
        let path = self.search(start, end, &filter)?;
        Some(self.to_path(from, to, &path))
    }

    /// Searches the `k` shortest paths over `usable` hops that pass no switch twice. The shortest
    /// is first; ports decide between equal ones. Parallel links make different paths. For tasks.
    #[must_use]
    pub fn k_shortest(
        &self,
        from: Dpid,
        to: Dpid,
        k: usize,
        usable: impl Fn(Hop) -> bool,
    ) -> Vec<Path> {
        let Some((start, end)) = self.number(from).zip(self.number(to)) else { return Vec::new() };
        let all = self.search_k(start, end, k, &usable);
        all.iter().map(|path| self.to_path(from, to, path)).collect()
    }

    /// Returns the link at a port, if paths use it. On a segment, one of several.
    #[must_use]
    pub fn hop_at(&self, from: SwitchPort) -> Option<Hop> {
        let node = &self.nodes[self.number(from.dpid)?];
        node.link_at(from.port).map(|link| self.hop(node, link))
    }

    /// Whether the network is known well enough to flood: [`Topology::settled`].
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.flood.is_some()
    }

    /// Returns the ports of a switch that a flooded packet goes out of, except its `in_port`: the
    /// edge ports, and the ports of a spanning tree. The packet reaches each host once, even if
    /// links form a circle. Empty before the topology is settled.
    #[must_use]
    pub fn flood_ports(&self, dpid: Dpid) -> &[Port] {
        let flood = self.flood.as_ref().zip(self.number(dpid));
        flood.map_or(&[], |(flood, index)| flood.ports(index))
    }

    /// Returns the ports of a switch that hosts can be at: up, and no end of a link. Empty before
    /// [`Topology::settled`].
    #[must_use]
    pub fn edge_ports(&self, dpid: Dpid) -> &[Port] {
        let index = self.number(dpid).filter(|_| self.is_settled());
        index.map_or(&[], |index| &self.nodes[index].edge)
    }

    /// Returns all ports of the segment that a port is on.
    #[must_use]
    pub fn segment(&self, at: SwitchPort) -> Option<&Arc<[SwitchPort]>> {
        let node = &self.nodes[self.number(at.dpid)?];
        node.segments.iter().find(|(port, _)| *port == at.port).map(|(_, ports)| ports)
    }

    /// Returns all segments, each with its ports.
    pub fn segments(&self) -> impl Iterator<Item = &Arc<[SwitchPort]>> {
        let all = self.nodes.iter().flat_map(|node| {
            node.segments.iter().filter(move |(port, ports)| {
                ports.first() == Some(&SwitchPort::new(node.dpid, *port))
            })
        });
        all.map(|(_, ports)| ports)
    }

    /// Returns the port by which packets from a switch enter a segment, or packets for it leave the
    /// segment: the nearest, the lowest of several. So the switches of the segment always see the
    /// hosts of a switch at the same port.
    #[must_use]
    pub fn entry(&self, segment: &[SwitchPort], switch: Dpid) -> Option<SwitchPort> {
        let near = segment.iter().filter_map(|at| Some((self.distance(switch, at.dpid)?, *at)));
        near.min().map(|(_, at)| at)
    }

    /// Returns where packets between a host with this place and a switch leave or enter the
    /// network: its place, or the [entry](Self::entry) of its segment.
    #[must_use]
    pub fn attachment(&self, place: SwitchPort, switch: Dpid) -> SwitchPort {
        let entry = self.segment(place).and_then(|ports| self.entry(ports, switch));
        entry.unwrap_or(place)
    }

    /// Whether paths use a link.
    #[must_use]
    pub fn has_hop(&self, hop: Hop) -> bool {
        let Some(node) = self.number(hop.from.dpid).map(|at| &self.nodes[at]) else { return false };
        let links = node.links.iter().filter(|link| link.out_port == hop.from.port);
        links.map(|link| self.hop(node, link)).any(|it| it == hop)
    }

    /// Returns the switches that are up, by datapath id, with their [edge ports](Self::edge_ports).
    pub fn switches(&self) -> impl Iterator<Item = (Dpid, &[Port])> {
        let up = self.numbers.iter().filter(|(_, index)| self.nodes[*index as NodeIndex].is_up);
        up.map(|(dpid, _)| (*dpid, self.edge_ports(*dpid)))
    }

    /// Number of switches without paths because there are more than [`MAX_SWITCHES`].
    #[must_use]
    pub fn omitted_switches(&self) -> usize {
        self.omitted_switches
    }

    fn number(&self, dpid: Dpid) -> Option<NodeIndex> {
        number(&self.numbers, dpid)
    }

    fn links_to(&self, from: NodeIndex, to: NodeIndex) -> impl Iterator<Item = &GraphLink> {
        let bytes = self.rows.next_hops[from].of(to);
        let links = self.nodes[from].links.chunks(u8::BITS as usize);
        bytes.zip(links).flat_map(|(byte, links)| {
            let mut remaining = byte;
            std::iter::from_fn(move || {
                let link = links.get(remaining.trailing_zeros() as usize)?;
                remaining &= remaining - 1;
                Some(link)
            })
        })
    }

    fn choose(&self, from: NodeIndex, to: NodeIndex, key: u64) -> Option<&GraphLink> {
        let here = mix(key ^ mix(self.nodes[from].dpid.0));
        // Of the links by a port on a segment, the first.
        let score = |link: &&GraphLink| {
            let other = std::cmp::Reverse((self.nodes[link.to as NodeIndex].dpid, link.to_port));
            (mix(here ^ u64::from(link.out_port.0)), other)
        };
        self.links_to(from, to).max_by_key(score)
    }

    fn hop(&self, node: &GraphNode, link: &GraphLink) -> Hop {
        let next = self.nodes[link.to as NodeIndex].dpid;
        Hop {
            from: SwitchPort::new(node.dpid, link.out_port),
            to: SwitchPort::new(next, link.to_port),
        }
    }

    fn to_path(&self, from: Dpid, to: Dpid, indexed: &IndexedPath) -> Path {
        let hops = indexed.iter().map(|(at, link)| self.hop(&self.nodes[*at], link)).collect();
        Path { from, to, hops }
    }
}

/// Spreads the bits of a number over all 64 (the finisher of SplitMix64: Steele, Lea and Flood,
/// 2014).
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Computes [`Paths`] from each version of a topology, by its changes.
#[derive(Default)]
pub struct PathTracker {
    /// The last topology; none at first.
    topology: Option<Snapshot<Topology>>,
    graph: Graph,
    rows: PathRows,
}

impl PathTracker {
    /// Returns the paths of a topology. Computes only what has changed since the last call.
    pub fn update(&mut self, topology: &Snapshot<Topology>) -> Paths {
        let change = match &self.topology {
            Some(before) => self.graph.update(before, topology),
            None => self.graph.update(&Topology::default(), topology),
        };
        self.rows.update(&self.graph, &change);
        self.topology = Some(Arc::clone(topology));
        let nodes = self.graph.nodes.clone();
        let up = nodes.iter().filter(|node| node.is_up).count();
        Paths {
            numbers: Arc::clone(&self.graph.numbers),
            nodes,
            rows: self.rows.clone(),
            flood: topology.settled.then(|| Arc::new(Flood::of(&self.graph))),
            omitted_switches: topology.switches.len() - up,
        }
    }
}
