//! What etcd keeps for each switch: the order of its masters, and the epoch of that order.

use crate::node::NodeId;

/// Bits of a generation id that hold the rank.
const RANK_BITS: u32 = 8;

/// A generation id (`generation_id` of role requests, 1.3.5 §6.3.4): the election that made a
/// controller the master of a switch. A switch refuses older ones than the newest it has seen.
///
/// ```text
///  63                                   8 7      0
/// +--------------------------------------+--------+
/// |                epoch                 |  rank  |
/// +--------------------------------------+--------+
/// ```
///
/// The epoch is that of the switch's [`Record`], and the rank is a node's place in its order. So
/// two nodes never claim a switch with the same generation, and the next node of the order can take
/// over from the one before it without a new record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

impl Generation {
    /// The generation of the node of this rank in this epoch.
    #[must_use]
    pub fn new(epoch: u64, rank: u8) -> Self {
        Generation(epoch << RANK_BITS | u64::from(rank))
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(self) -> u64 {
        self.0 >> RANK_BITS
    }

    /// The rank.
    #[must_use]
    pub fn rank(self) -> u8 {
        self.0.to_be_bytes()[7]
    }
}

/// The order of masters of one switch, as etcd keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The nodes, the master first. The next one takes over when those before it are gone.
    pub masters: Vec<NodeId>,
    /// A minimum of the epoch. Without it, an old snapshot of etcd would bring old epochs back.
    pub floor: u64,
    /// The revision of etcd that wrote the record (`mod_revision`).
    pub revision: u64,
}

impl Record {
    /// The number of this order. Each change of a record has a greater one.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.revision.max(self.floor)
    }

    /// The node that is master as long as nothing fails.
    #[must_use]
    pub fn first(&self) -> Option<NodeId> {
        self.masters.first().copied()
    }

    /// Place of a node in the order, from 0.
    #[must_use]
    pub fn rank(&self, node: NodeId) -> Option<u8> {
        let rank = self.masters.iter().position(|&other| other == node)?;
        u8::try_from(rank).ok()
    }

    /// The generation by which a node claims the switch. `None` if the order does not have it.
    #[must_use]
    pub fn generation(&self, node: NodeId) -> Option<Generation> {
        Some(Generation::new(self.epoch(), self.rank(node)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(place: usize) -> NodeId {
        NodeId::new(place).unwrap()
    }

    #[test]
    fn each_next_node_and_each_next_record_has_a_greater_generation() {
        let old = Record { masters: vec![node(2), node(0)], floor: 0, revision: 7 };
        let new = Record { masters: vec![node(0), node(2)], floor: 8, revision: 12 };
        let generations = [
            old.generation(node(2)),
            old.generation(node(0)),
            new.generation(node(0)),
            new.generation(node(2)),
        ];
        assert!(generations.is_sorted_by(|a, b| a < b), "{generations:?}");
        assert_eq!(old.generation(node(1)), None);
        assert_eq!(new.generation(node(2)), Some(Generation(0xc01)));
        assert_eq!((Generation(0xc01).epoch(), Generation(0xc01).rank()), (12, 1));
    }

    #[test]
    fn an_epoch_does_not_go_back_when_etcd_does() {
        let restored = Record { masters: vec![node(0)], floor: 41, revision: 9 };
        assert_eq!(restored.epoch(), 41);
        assert_eq!(restored.generation(node(0)).unwrap().epoch(), 41);
    }
}
