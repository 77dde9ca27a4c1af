//! The links of a topology by index of switch, updated by its changes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use bellrock_api::{Dpid, Port, SwitchPort, Topology};

/// Minimum number of spare indices, so that a new switch fits into existing tables.
const SPARE: usize = 64;

/// Maximum number of switches with paths. Memory grows with its square, to 170 MB at this number.
/// Further switches are left out ([`super::Paths::omitted_switches`]).
pub const MAX_SWITCHES: usize = 4096;

/// The index of a switch, also while it is down, until a [renumbering](Graph::renumber).
pub(super) type NodeIndex = usize;

/// A link, from the side of the sending switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GraphLink {
    pub(super) out_port: Port,
    /// The switch at the other end, and its receiving port.
    pub(super) to: u32,
    pub(super) to_port: Port,
}

/// A switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GraphNode {
    pub(super) dpid: Dpid,
    pub(super) is_up: bool,
    /// Links that are up in both directions and lead to another switch, by port.
    pub(super) links: Vec<GraphLink>,
    /// Edge ports, in order.
    pub(super) edge: Vec<Port>,
    /// Ports on segments, each with all ports of its segment.
    pub(super) segments: Vec<(Port, Arc<[SwitchPort]>)>,
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Arc<GraphNode>>,
    /// The switches' indices, by datapath id.
    pub(super) numbers: Arc<Vec<(Dpid, u32)>>,
    /// Number of indices that the tables have space for.
    pub(super) capacity: usize,
}

/// The effect of a new topology on tables.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GraphChange {
    /// All switches have new indices.
    Renumbered,
    /// The links of these switches have changed.
    Links(Vec<NodeIndex>),
}

impl Graph {
    /// Updates the graph from one topology to the next.
    pub(super) fn update(&mut self, old: &Topology, new: &Topology) -> GraphChange {
        let changed = changed(old, new);
        let known = |dpid: &&Dpid| number(&self.numbers, **dpid).is_some();
        let added = new.switches.keys().filter(|dpid| !known(dpid)).count();
        let has_removed = self.nodes.len() + added > new.switches.len();
        if self.nodes.len() + added > self.capacity && (has_removed || self.capacity < MAX_SWITCHES)
        {
            self.renumber(new);
            return GraphChange::Renumbered;
        }
        if added > 0 {
            self.add_missing(new);
        }
        let mut relinked = Vec::new();
        for dpid in changed {
            // A link can name a switch that is in no topology.
            let Some(index) = number(&self.numbers, dpid) else { continue };
            let node = self.node(dpid, new);
            if node.links != self.nodes[index].links {
                relinked.push(index);
            }
            if node != *self.nodes[index] {
                self.nodes[index] = Arc::new(node);
            }
        }
        GraphChange::Links(relinked)
    }

    /// Numbers the switches that are up in order of their datapath ids, and forgets all others.
    fn renumber(&mut self, topology: &Topology) {
        let up = topology.switches.len();
        self.capacity = (up + SPARE.max(up / 8)).min(MAX_SWITCHES);
        let all = topology.switches.keys().take(self.capacity);
        self.numbers = Arc::new(all.clone().copied().zip(0..).collect());
        self.nodes = all.map(|dpid| Arc::new(self.node(*dpid, topology))).collect();
    }

    fn add_missing(&mut self, topology: &Topology) {
        let mut numbers = (*self.numbers).clone();
        for dpid in topology.switches.keys() {
            if self.nodes.len() == self.capacity {
                break;
            }
            if let Err(at) = numbers.binary_search_by_key(dpid, |(dpid, _)| *dpid) {
                numbers.insert(at, (*dpid, self.nodes.len() as u32));
                self.nodes.push(Arc::new(GraphNode { dpid: *dpid, ..GraphNode::default() }));
            }
        }
        self.numbers = Arc::new(numbers);
    }

    fn node(&self, dpid: Dpid, topology: &Topology) -> GraphNode {
        if !topology.switches.contains_key(&dpid) {
            return GraphNode { dpid, ..GraphNode::default() };
        }
        let links = topology.links.range(ports_of(dpid)).filter_map(|(from, link)| {
            if topology.segments.contains_key(from) {
                return None;
            }
            let back = topology.links.get(&link.to)?;
            let leads_away = back.to == *from && link.to.dpid != dpid;
            let to = number(&self.numbers, link.to.dpid)?;
            let is_up = topology.switches.contains_key(&link.to.dpid);
            let graph_link =
                GraphLink { out_port: from.port, to: to as u32, to_port: link.to.port };
            (leads_away && is_up).then_some(graph_link)
        });
        // On a segment, each port has a link to each port of another switch.
        let on_segments = topology.segments.range(ports_of(dpid));
        let across = on_segments.clone().flat_map(|(from, ports)| {
            let others = ports.iter().filter(move |to| to.dpid != dpid);
            others.filter_map(move |to| {
                let is_up = topology.switches.contains_key(&to.dpid);
                let number = number(&self.numbers, to.dpid).filter(|_| is_up)?;
                Some(GraphLink { out_port: from.port, to: number as u32, to_port: to.port })
            })
        });
        let mut links: Vec<GraphLink> = links.chain(across).collect();
        links.sort_by_key(|link| link.out_port);
        let edge = topology.edge_of(dpid).collect();
        let segments = on_segments.map(|(at, ports)| (at.port, Arc::clone(ports))).collect();
        GraphNode { dpid, is_up: true, links, edge, segments }
    }
}

/// Returns the index of a switch in a list sorted by datapath id.
pub(super) fn number(numbers: &[(Dpid, u32)], dpid: Dpid) -> Option<NodeIndex> {
    let at = numbers.binary_search_by_key(&dpid, |(dpid, _)| *dpid).ok()?;
    Some(numbers[at].1 as NodeIndex)
}

/// Returns the switches that have changed.
fn changed(old: &Topology, new: &Topology) -> BTreeSet<Dpid> {
    let mut changed = BTreeSet::new();
    for (before, after) in pairs(&old.links, &new.links) {
        if before.map(|link| link.to) != after.map(|link| link.to) {
            let links = before.into_iter().chain(after);
            changed.extend(links.flat_map(|link| [link.from.dpid, link.to.dpid]));
        }
    }
    for (before, after) in pairs(&old.segments, &new.segments) {
        if before != after {
            let ports = before.into_iter().chain(after).flat_map(|ports| ports.iter());
            changed.extend(ports.map(|at| at.dpid));
        }
    }
    changed.extend(old.edge.symmetric_difference(&new.edge).map(|at| at.dpid));
    let all = old.switches.keys().chain(new.switches.keys());
    let is_in = |topology: &Topology, dpid| topology.switches.contains_key(dpid);
    for dpid in all.filter(|dpid| is_in(old, dpid) != is_in(new, dpid)) {
        changed.insert(*dpid);
        let links = new.links.range(ports_of(*dpid));
        changed.extend(links.map(|(_, link)| link.to.dpid));
        let segments = new.segments.range(ports_of(*dpid));
        changed.extend(segments.flat_map(|(_, ports)| ports.iter().map(|at| at.dpid)));
    }
    changed
}

fn ports_of(dpid: Dpid) -> RangeInclusive<SwitchPort> {
    SwitchPort::new(dpid, Port(0))..=SwitchPort::new(dpid, Port(u32::MAX))
}

/// Returns the values of two maps in pairs of equal keys, in order of keys.
fn pairs<'m, K: Ord, V>(
    old: &'m BTreeMap<K, V>,
    new: &'m BTreeMap<K, V>,
) -> impl Iterator<Item = (Option<&'m V>, Option<&'m V>)> {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    std::iter::from_fn(move || {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return None,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        Some((before.map(|(_, value)| value), after.map(|(_, value)| value)))
    })
}
