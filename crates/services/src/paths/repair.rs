//! Repairs the distances to one destination after links have changed, by looking only at the switches
//! whose distances change, and their neighbours (in the way of Ramalingam and Reps, 1996).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::graph::{Index, Node, Way};
use super::rows::UNREACHABLE;

/// Room for repairs, and what the last one has changed.
pub(super) struct Repair<'g> {
    nodes: &'g [Arc<Node>],
    /// Switches to look at, the nearest first.
    queue: BinaryHeap<Reverse<(u16, u16)>>,
    changed: Marked,
    /// Those in `changed` and their neighbours.
    around: Marked,
}

impl<'g> Repair<'g> {
    pub(super) fn new(nodes: &'g [Arc<Node>]) -> Self {
        let (changed, around) = (Marked::new(nodes.len()), Marked::new(nodes.len()));
        Repair { nodes, queue: BinaryHeap::new(), changed, around }
    }

    /// The switches whose distances the last repair has changed, and all that have a link to one of them.
    pub(super) fn changed_and_neighbours(&mut self) -> impl Iterator<Item = Index> {
        self.around.clear();
        for index in &self.changed.all {
            self.around.mark(Index::from(*index));
            for way in &self.nodes[Index::from(*index)].ways {
                self.around.mark(way.to as Index);
            }
        }
        self.around.all.iter().map(|index| Index::from(*index))
    }

    /// Makes distances to `to` right that were so before the links of the switches in `relinked` changed.
    pub(super) fn distances_to(&mut self, to: Index, relinked: &[Index], distances: &mut [u16]) {
        self.changed.clear();
        self.find_lost(to, relinked, distances);
        for index in &self.changed.all {
            distances[Index::from(*index)] = UNREACHABLE;
        }
        for at in 0..self.changed.all.len() {
            self.look_at(Index::from(self.changed.all[at]), distances);
        }
        for index in relinked {
            self.look_at(*index, distances);
        }
        while let Some(Reverse((distance, index))) = self.queue.pop() {
            let index = Index::from(index);
            if distance >= distances[index] {
                continue;
            }
            self.changed.mark(index);
            distances[index] = distance;
            for way in &self.nodes[index].ways {
                if distance + 1 < distances[way.to as Index] {
                    self.queue.push(Reverse((distance + 1, way.to as u16)));
                }
            }
        }
    }

    /// Marks the switches that get further away: of which no neighbour is as near as one has to be, or
    /// each that is gets further away itself. They are looked at from the destination outward, so that a
    /// switch comes after all that are nearer.
    fn find_lost(&mut self, to: Index, relinked: &[Index], distances: &[u16]) {
        let reachable = relinked.iter().filter(|index| distances[**index] != UNREACHABLE);
        self.queue.extend(reachable.map(|index| Reverse((distances[*index], *index as u16))));
        while let Some(Reverse((distance, index))) = self.queue.pop() {
            let index = Index::from(index);
            let ways = &self.nodes[index].ways;
            let holds = |way: &Way| {
                let next = way.to as Index;
                distances[next] < distance && !self.changed.is_marked(next)
            };
            if index == to || ways.iter().any(holds) || !self.changed.mark(index) {
                continue;
            }
            for way in ways.iter().filter(|way| distances[way.to as Index] == distance + 1) {
                self.queue.push(Reverse((distance + 1, way.to as u16)));
            }
        }
    }

    /// Queues a switch if a neighbour makes it nearer than it is said to be.
    fn look_at(&mut self, index: Index, distances: &[u16]) {
        let ways = self.nodes[index].ways.iter();
        let nearest = ways.map(|way| distances[way.to as Index]).min().unwrap_or(UNREACHABLE);
        let distance = nearest.saturating_add(1);
        if distance < distances[index] {
            self.queue.push(Reverse((distance, index as u16)));
        }
    }
}

/// A set of switches that is cleared at once.
struct Marked {
    all: Vec<u16>,
    /// The round in which each was marked last.
    rounds: Vec<u32>,
    round: u32,
}

impl Marked {
    fn new(switches: usize) -> Self {
        Marked { all: Vec::new(), rounds: vec![0; switches], round: 0 }
    }

    /// `false` if it is marked already.
    fn mark(&mut self, index: Index) -> bool {
        let is_new = !self.is_marked(index);
        if is_new {
            self.rounds[index] = self.round;
            self.all.push(index as u16);
        }
        is_new
    }

    fn is_marked(&self, index: Index) -> bool {
        self.rounds[index] == self.round
    }

    fn clear(&mut self) {
        self.all.clear();
        // A round for each destination of one change: far fewer than there are numbers.
        self.round += 1;
    }
}
