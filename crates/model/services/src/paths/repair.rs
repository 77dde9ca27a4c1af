//! Repairs the distances to one destination after links have changed. It visits only the switches
//! whose distances change, and their neighbours (after Ramalingam and Reps, 1996).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::graph::{GraphLink, GraphNode, NodeIndex};
use super::rows::UNREACHABLE;

/// Buffers for repairs, and the changes of the last one.
pub(super) struct Repair<'g> {
    nodes: &'g [Arc<GraphNode>],
    /// Switches to visit, the nearest first.
    queue: BinaryHeap<Reverse<(u16, u16)>>,
    changed: Marked,
    /// The switches in `changed` and their neighbours.
    neighbourhood: Marked,
}

impl<'g> Repair<'g> {
    pub(super) fn new(nodes: &'g [Arc<GraphNode>]) -> Self {
        let (changed, neighbourhood) = (Marked::new(nodes.len()), Marked::new(nodes.len()));
        Repair { nodes, queue: BinaryHeap::new(), changed, neighbourhood }
    }

    /// Returns the switches whose distances the last repair has changed, and their neighbours.
    pub(super) fn changed_and_neighbours(&mut self) -> impl Iterator<Item = NodeIndex> {
        self.neighbourhood.clear();
        for index in &self.changed.all {
            self.neighbourhood.mark(NodeIndex::from(*index));
            for link in &self.nodes[NodeIndex::from(*index)].links {
                self.neighbourhood.mark(link.to as NodeIndex);
            }
        }
        self.neighbourhood.all.iter().map(|index| NodeIndex::from(*index))
    }

    /// Corrects distances to `to` that were right before the links of `relinked` switches changed.
    pub(super) fn distances_to(
        &mut self,
        to: NodeIndex,
        relinked: &[NodeIndex],
        distances: &mut [u16],
    ) {
        self.changed.clear();
        self.find_lost(to, relinked, distances);
        for index in &self.changed.all {
            distances[NodeIndex::from(*index)] = UNREACHABLE;
        }
        for at in 0..self.changed.all.len() {
            self.queue_nearer(NodeIndex::from(self.changed.all[at]), distances);
        }
        for index in relinked {
            self.queue_nearer(*index, distances);
        }
        while let Some(Reverse((distance, index))) = self.queue.pop() {
            let index = NodeIndex::from(index);
            if distance >= distances[index] {
                continue;
            }
            self.changed.mark(index);
            distances[index] = distance;
            for link in &self.nodes[index].links {
                if distance + 1 < distances[link.to as NodeIndex] {
                    self.queue.push(Reverse((distance + 1, link.to as u16)));
                }
            }
        }
    }

    /// Marks the switches that get farther away: all neighbours that were nearer have gone or get
    /// farther away themselves. Switches are visited in order of distance, after all nearer ones.
    fn find_lost(&mut self, to: NodeIndex, relinked: &[NodeIndex], distances: &[u16]) {
        let reachable = relinked.iter().filter(|index| distances[**index] != UNREACHABLE);
        self.queue.extend(reachable.map(|index| Reverse((distances[*index], *index as u16))));
        while let Some(Reverse((distance, index))) = self.queue.pop() {
            let index = NodeIndex::from(index);
            let links = &self.nodes[index].links;
            let is_nearer = |link: &GraphLink| {
                let next = link.to as NodeIndex;
                distances[next] < distance && !self.changed.is_marked(next)
            };
            if index == to || links.iter().any(is_nearer) || !self.changed.mark(index) {
                continue;
            }
            for link in links.iter().filter(|way| distances[way.to as NodeIndex] == distance + 1) {
                self.queue.push(Reverse((distance + 1, link.to as u16)));
            }
        }
    }

    /// Queues a switch if a neighbour gives it a smaller distance than its current one.
    fn queue_nearer(&mut self, index: NodeIndex, distances: &[u16]) {
        let links = self.nodes[index].links.iter();
        let nearest =
            links.map(|link| distances[link.to as NodeIndex]).min().unwrap_or(UNREACHABLE);
        let distance = nearest.saturating_add(1);
        if distance < distances[index] {
            self.queue.push(Reverse((distance, index as u16)));
        }
    }
}

/// A set of switches that is cleared in constant time.
struct Marked {
    all: Vec<u16>,
    /// The round in which each switch was last marked.
    rounds: Vec<u32>,
    round: u32,
}

impl Marked {
    fn new(switches: usize) -> Self {
        Marked { all: Vec::new(), rounds: vec![0; switches], round: 0 }
    }

    /// Marks a switch. Returns `false` if it is marked already.
    fn mark(&mut self, index: NodeIndex) -> bool {
        let is_new = !self.is_marked(index);
        if is_new {
            self.rounds[index] = self.round;
            self.all.push(index as u16);
        }
        is_new
    }

    fn is_marked(&self, index: NodeIndex) -> bool {
        self.rounds[index] == self.round
    }

    fn clear(&mut self) {
        self.all.clear();
        // One round for each destination of a change: far fewer than a `u32` holds.
        self.round += 1;
    }
}
