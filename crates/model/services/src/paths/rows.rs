//! Distances and next hops between all switches, updated when links change.
//!
//! Links are bidirectional and each counts as one hop. So distances are those of breadth-first
//! search, and the same in both directions. Each switch has a row over all switches: the distance
//! of each, and a bit for each of its own links that begins a shortest path to it. Published
//! versions share rows; a change copies the rows that it changes.
//!
//! A certificate makes changes incremental. Distances to a destination are right exactly if each
//! other switch is one hop farther away than its nearest neighbour. This still holds for switches
//! whose links have not changed. So only the relinked switches are checked: destinations for which
//! it no longer holds there are [repaired](super::repair), and no others.

use std::sync::Arc;

use super::graph::{Graph, GraphChange, GraphLink, GraphNode, NodeIndex};
use super::repair::Repair;

/// There is no path.
pub(super) const UNREACHABLE: u16 = u16::MAX;

/// If more than one in this many switches has changed links, computing all rows anew is faster.
const MOST_CHANGED: usize = 4;

/// Number of links with a bit in one byte.
const PLANE_LINKS: usize = u8::BITS as usize;

/// The links that begin shortest paths: a plane for every eight links in order of ports, with a
/// byte for each destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PathRow {
    capacity: usize,
    planes: Vec<u8>,
}

impl PathRow {
    /// Returns the bytes of all planes for one destination: which links begin a shortest path.
    pub(super) fn of(&self, to: NodeIndex) -> impl Iterator<Item = u8> {
        self.planes.iter().skip(to).step_by(self.capacity.max(1)).copied()
    }
}

/// See the [module](self). By index of switch.
#[derive(Clone, Default)]
pub(super) struct PathRows {
    pub(super) distances: Vec<Arc<[u16]>>,
    pub(super) next_hops: Vec<Arc<PathRow>>,
}

impl PathRows {
    /// Updates the rows after a change of the graph.
    pub(super) fn update(&mut self, graph: &Graph, change: &GraphChange) {
        match change {
            GraphChange::Renumbered => self.compute(graph),
            GraphChange::Links(changed) if changed.len() * MOST_CHANGED > graph.nodes.len() => {
                self.compute(graph);
            }
            GraphChange::Links(changed) => self.update_changed(graph, changed),
        }
    }

    /// Computes all rows anew.
    fn compute(&mut self, graph: &Graph) {
        let links = DestinationLinks::of(graph);
        let mut search = Search::default();
        let all = 0..graph.nodes.len();
        let distances = all.clone().map(|index| search.from(&links, index, graph.capacity).into());
        self.distances = distances.collect();
        let rows = all.map(|index| Arc::new(self.row(&graph.nodes[index], index, graph.capacity)));
        self.next_hops = rows.collect();
    }

    /// Updates the rows after the links of these switches have changed.
    fn update_changed(&mut self, graph: &Graph, changed: &[NodeIndex]) {
        for index in self.distances.len()..graph.nodes.len() {
            let mut distances = vec![UNREACHABLE; graph.capacity];
            distances[index] = 0;
            self.distances.push(distances.into());
            self.next_hops.push(Arc::default());
        }
        let mut affected = vec![false; graph.capacity];
        for index in changed {
            self.find_affected(&graph.nodes[*index], *index, &mut affected);
        }
        for index in changed {
            self.next_hops[*index] =
                Arc::new(self.row(&graph.nodes[*index], *index, graph.capacity));
        }
        let mut repair = Repair::new(&graph.nodes);
        for to in (0..graph.nodes.len()).filter(|to| affected[*to]) {
            let mut row = std::mem::take(&mut self.distances[to]);
            let distances = Arc::make_mut(&mut row);
            repair.distances_to(to, changed, distances);
            // This row has the distances to `to`. Their counterparts are in the rows of the changed
            // switches, which are concerned too: distances are the same in both directions.
            for index in repair.changed_and_neighbours() {
                self.update_row(&graph.nodes[index], index, to, distances);
            }
            self.distances[to] = row;
        }
    }

    /// Computes from the distances which links begin shortest paths, for all destinations.
    fn row(&self, node: &GraphNode, index: NodeIndex, capacity: usize) -> PathRow {
        let mut planes = vec![0; node.links.len().div_ceil(PLANE_LINKS) * capacity];
        let own = &self.distances[index];
        for (plane, links) in planes.chunks_mut(capacity).zip(node.links.chunks(PLANE_LINKS)) {
            for (bit, link) in links.iter().enumerate() {
                let others = &self.distances[link.to as NodeIndex];
                for ((bits, own), other) in plane.iter_mut().zip(own.iter()).zip(others.iter()) {
                    *bits |= u8::from(is_next_hop(*own, *other)) << bit;
                }
            }
        }
        PathRow { capacity, planes }
    }

    /// Updates this for one destination.
    fn update_row(&mut self, node: &GraphNode, index: NodeIndex, to: NodeIndex, distances: &[u16]) {
        let own = distances[index];
        for (plane, links) in node.links.chunks(PLANE_LINKS).enumerate() {
            let bits = links.iter().enumerate().fold(0, |bits, (bit, link): (_, &GraphLink)| {
                bits | u8::from(is_next_hop(own, distances[link.to as NodeIndex])) << bit
            });
            let row = &mut self.next_hops[index];
            let at = plane * row.capacity + to;
            if row.planes[at] != bits {
                Arc::make_mut(row).planes[at] = bits;
            }
        }
    }

    /// Marks destinations whose distance is not one more than that of the nearest neighbour.
    fn find_affected(&self, node: &GraphNode, index: NodeIndex, affected: &mut [bool]) {
        let own = &self.distances[index];
        let mut nearest = vec![UNREACHABLE; own.len()];
        for link in &node.links {
            let others = self.distances[link.to as NodeIndex].iter();
            nearest
                .iter_mut()
                .zip(others)
                .for_each(|(minimum, other)| *minimum = (*minimum).min(*other));
        }
        for (at, (own, nearest)) in own.iter().zip(nearest).enumerate() {
            affected[at] |= at != index && *own != nearest.saturating_add(1);
        }
    }
}

/// Whether a neighbour at this distance is on a shortest path.
fn is_next_hop(own: u16, other: u16) -> bool {
    // A neighbour is unreachable only if the switch itself is, so a wrapped value never matches.
    own == other.wrapping_add(1)
}

/// The destinations of links only, for searches.
struct DestinationLinks {
    /// Where the links of each switch begin, and the end of the last.
    first: Vec<u32>,
    to: Vec<u16>,
}

impl DestinationLinks {
    fn of(graph: &Graph) -> Self {
        let mut links = DestinationLinks { first: vec![0], to: Vec::new() };
        for node in &graph.nodes {
            // There are fewer than 2^16 switches.
            links.to.extend(node.links.iter().map(|link| link.to as u16));
            links.first.push(links.to.len() as u32);
        }
        links
    }

    fn from(&self, index: NodeIndex) -> &[u16] {
        &self.to[self.first[index] as usize..self.first[index + 1] as usize]
    }
}

/// Buffers for searches.
#[derive(Default)]
struct Search {
    distances: Vec<u16>,
    /// Switches that were found, the nearest first.
    found: Vec<u16>,
}

impl Search {
    /// Returns the distances of all switches from one, by breadth-first search.
    fn from(&mut self, links: &DestinationLinks, start: NodeIndex, capacity: usize) -> &[u16] {
        self.distances.clear();
        self.distances.resize(capacity, UNREACHABLE);
        self.distances[start] = 0;
        self.found.clear();
        self.found.push(start as u16);
        let mut next = 0;
        while let Some(index) = self.found.get(next).copied() {
            next += 1;
            let distance_to_next = self.distances[NodeIndex::from(index)] + 1;
            for to in links.from(index.into()) {
                let distance = &mut self.distances[NodeIndex::from(*to)];
                if *distance == UNREACHABLE {
                    *distance = distance_to_next;
                    self.found.push(*to);
                }
            }
        }
        &self.distances
    }
}
