//! Distances and next hops between all switches, and how a change of links changes them.
//!
//! Links go both ways and each counts as one hop, so distances are those of breadth-first search and
//! the same in both directions. What is kept of a switch is a row over all switches: how far each is,
//! and which of the switch's own links begin a shortest path to it, a bit each. Rows are shared by the
//! versions that are published; a change copies those that it changes.
//!
//! A change is incremental by a certificate. Distances to a destination are right exactly if each other
//! switch is one hop further from it than the nearest of its neighbours. Where no link of a switch has
//! changed that still holds, so it is enough to look at the switches whose links have: the destinations
//! for which it does not hold there are [repaired](super::repair), and no others.

use std::sync::Arc;

use super::graph::{Change, Graph, Index, Node, Way};
use super::repair::Repair;

/// No way leads there.
pub(super) const UNREACHABLE: u16 = u16::MAX;

/// If more than one in so many switches have changed links, all is computed anew, which is faster then.
const MOST_CHANGED: usize = 4;

/// Links of a switch that have a bit in one byte.
const PLANE_LINKS: usize = u8::BITS as usize;

/// The links of a switch that begin shortest paths: a plane for each eight links in the order of ports,
/// and in it a byte for each destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    room: usize,
    planes: Vec<u8>,
}

impl Row {
    /// Whether links begin a shortest path to one destination: the bytes of all planes.
    pub(super) fn of(&self, to: Index) -> impl Iterator<Item = u8> {
        self.planes.iter().skip(to).step_by(self.room.max(1)).copied()
    }
}

/// See the [module](self). By numbers of switches.
#[derive(Clone, Default)]
pub(super) struct Rows {
    pub(super) distances: Vec<Arc<[u16]>>,
    pub(super) next_hops: Vec<Arc<Row>>,
}

impl Rows {
    /// Follows a change of the graph.
    pub(super) fn update(&mut self, graph: &Graph, change: &Change) {
        match change {
            Change::Renumbered => self.compute(graph),
            Change::Links(changed) if changed.len() * MOST_CHANGED > graph.nodes.len() => {
                self.compute(graph);
            }
            Change::Links(changed) => self.follow(graph, changed),
        }
    }

    /// All of it, whatever was there.
    fn compute(&mut self, graph: &Graph) {
        let links = Links::of(graph);
        let mut search = Search::default();
        let all = 0..graph.nodes.len();
        let distances = all.clone().map(|index| search.from(&links, index, graph.room).into());
        self.distances = distances.collect();
        let rows = all.map(|index| Arc::new(self.row(&graph.nodes[index], index, graph.room)));
        self.next_hops = rows.collect();
    }

    /// What has changed with the links of these switches.
    fn follow(&mut self, graph: &Graph, changed: &[Index]) {
        for index in self.distances.len()..graph.nodes.len() {
            let mut alone = vec![UNREACHABLE; graph.room];
            alone[index] = 0;
            self.distances.push(alone.into());
            self.next_hops.push(Arc::default());
        }
        let mut concerned = vec![false; graph.room];
        for index in changed {
            self.find_concerned(&graph.nodes[*index], *index, &mut concerned);
        }
        for index in changed {
            self.next_hops[*index] = Arc::new(self.row(&graph.nodes[*index], *index, graph.room));
        }
        let mut repair = Repair::new(&graph.nodes);
        for to in (0..graph.nodes.len()).filter(|to| concerned[*to]) {
            let mut row = std::mem::take(&mut self.distances[to]);
            let distances = Arc::make_mut(&mut row);
            repair.distances_to(to, changed, distances);
            // Distances from here to those are in their own rows, and those destinations are concerned
            // too: distances are the same in both directions.
            for index in repair.changed_and_neighbours() {
                self.follow_distances(&graph.nodes[index], index, to, distances);
            }
            self.distances[to] = row;
        }
    }

    /// Which of a switch's links begin shortest paths, for all destinations, by the distances.
    fn row(&self, node: &Node, index: Index, room: usize) -> Row {
        let mut planes = vec![0; node.ways.len().div_ceil(PLANE_LINKS) * room];
        let own = &self.distances[index];
        for (plane, ways) in planes.chunks_mut(room).zip(node.ways.chunks(PLANE_LINKS)) {
            for (bit, way) in ways.iter().enumerate() {
                let others = &self.distances[way.to as Index];
                for ((bits, own), other) in plane.iter_mut().zip(own.iter()).zip(others.iter()) {
                    *bits |= u8::from(is_next_hop(*own, *other)) << bit;
                }
            }
        }
        Row { room, planes }
    }

    /// The same for one destination: changes what is not so.
    fn follow_distances(&mut self, node: &Node, index: Index, to: Index, distances: &[u16]) {
        let own = distances[index];
        for (plane, ways) in node.ways.chunks(PLANE_LINKS).enumerate() {
            let bits = ways.iter().enumerate().fold(0, |bits, (bit, way): (_, &Way)| {
                bits | u8::from(is_next_hop(own, distances[way.to as Index])) << bit
            });
            let row = &mut self.next_hops[index];
            let at = plane * row.room + to;
            if row.planes[at] != bits {
                Arc::make_mut(row).planes[at] = bits;
            }
        }
    }

    /// Marks the destinations that a switch is not one hop further from than its nearest neighbour.
    fn find_concerned(&self, node: &Node, index: Index, concerned: &mut [bool]) {
        let own = &self.distances[index];
        let mut nearest = vec![UNREACHABLE; own.len()];
        for way in &node.ways {
            let others = self.distances[way.to as Index].iter();
            nearest.iter_mut().zip(others).for_each(|(least, other)| *least = (*least).min(*other));
        }
        for (at, (own, nearest)) in own.iter().zip(nearest).enumerate() {
            concerned[at] |= at != index && *own != nearest.saturating_add(1);
        }
    }
}

/// Whether a neighbour at that distance is on a shortest path.
fn is_next_hop(own: u16, other: u16) -> bool {
    // Neighbours are reachable both or not at all, so that what wraps is not equal.
    own == other.wrapping_add(1)
}

/// Only where links lead, for searches.
struct Links {
    /// Where the links of each switch begin, and the end of the last.
    first: Vec<u32>,
    to: Vec<u16>,
}

impl Links {
    fn of(graph: &Graph) -> Self {
        let mut links = Links { first: vec![0], to: Vec::new() };
        for node in &graph.nodes {
            // Switches are fewer than 2^16.
            links.to.extend(node.ways.iter().map(|way| way.to as u16));
            links.first.push(links.to.len() as u32);
        }
        links
    }

    fn from(&self, index: Index) -> &[u16] {
        &self.to[self.first[index] as usize..self.first[index + 1] as usize]
    }
}

/// Room for searches.
#[derive(Default)]
struct Search {
    distances: Vec<u16>,
    /// Switches that were found, the nearest first.
    found: Vec<u16>,
}

impl Search {
    /// How far each switch is from one, by breadth-first search.
    fn from(&mut self, links: &Links, start: Index, room: usize) -> &[u16] {
        self.distances.clear();
        self.distances.resize(room, UNREACHABLE);
        self.distances[start] = 0;
        self.found.clear();
        self.found.push(start as u16);
        let mut next = 0;
        while let Some(index) = self.found.get(next).copied() {
            next += 1;
            let further = self.distances[Index::from(index)] + 1;
            for to in links.from(index.into()) {
                let distance = &mut self.distances[Index::from(*to)];
                if *distance == UNREACHABLE {
                    *distance = further;
                    self.found.push(*to);
                }
            }
        }
        &self.distances
    }
}
