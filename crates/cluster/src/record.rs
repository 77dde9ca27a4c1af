//! What etcd keeps for each switch: the order of its masters, and the epoch of that order.

use crate::node::NodeId;

/// Bits of a generation id below the epoch.
const LOW_BITS: u32 = 8;
/// Bits of a generation id that hold the node.
const NODE_BITS: u32 = 4;
/// What the first rank is stored as. The first release had only the rank in the low bits, so these
/// were below 16: their generations and those of this release are never equal.
const FIRST_RANK: u8 = 1;
/// The last epoch. The one after it is 0.
const MAX_EPOCH: u64 = u64::MAX >> LOW_BITS;

/// A generation id (`generation_id` of role requests, 1.3.5 §6.3.4): the election that made a
/// controller the master of a switch. A switch refuses older ones than the newest it has seen.
///
/// ```text
///  63                                   8 7    4 3    0
/// +--------------------------------------+------+------+
/// |                epoch                 | rank | node |
/// +--------------------------------------+------+------+
/// ```
///
/// The epoch is that of the switch's [`Record`], the rank is a node's place in its order (from 1),
/// and the node is its place in the list of nodes. So two nodes never claim a switch with the same
/// generation, whatever etcd forgets, and the next node of the order can take over from the one
/// before it without a new record.
///
/// Generations are compared in a circle, as switches compare them: there is no first and no last
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Generation(pub u64);

impl Generation {
    /// The generation of this node, which has this rank in this epoch.
    #[must_use]
    pub fn new(epoch: u64, rank: u8, node: NodeId) -> Self {
        let rank = u64::from(rank.saturating_add(FIRST_RANK)) & ((1 << NODE_BITS) - 1);
        Generation(epoch << LOW_BITS | rank << NODE_BITS | node.index() as u64)
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(self) -> u64 {
        self.0 >> LOW_BITS
    }

    /// The rank, also of a generation of an older release.
    #[must_use]
    pub fn rank(self) -> u8 {
        match (self.low() >> NODE_BITS).checked_sub(FIRST_RANK) {
            Some(rank) => rank,
            None => self.low(),
        }
    }

    /// The node. `None`: the generation is of an older release.
    pub(crate) fn node(self) -> Option<NodeId> {
        let node = self.low() & ((1 << NODE_BITS) - 1);
        NodeId::new(usize::from(node)).filter(|_| self.low() >> NODE_BITS >= FIRST_RANK)
    }

    fn low(self) -> u8 {
        self.0.to_be_bytes()[7]
    }

    /// Whether a switch that has seen `other` takes this one for a newer one: whether
    /// `(int64_t)(self - other) > 0`.
    #[must_use]
    pub fn is_newer_than(self, other: Generation) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() > 0
    }

    /// The newer one of two.
    #[must_use]
    pub fn newest(one: Option<Generation>, other: Option<Generation>) -> Option<Generation> {
        match (one, other) {
            (Some(one), Some(other)) if other.is_newer_than(one) => Some(other),
            (one, other) => one.or(other),
        }
    }
}

/// Whether an epoch comes after another one, in the circle of generations.
pub(crate) fn is_later(epoch: u64, other: u64) -> bool {
    let top = |epoch: u64| Generation(epoch << LOW_BITS);
    top(epoch).is_newer_than(top(other))
}

/// The later one of two epochs.
pub(crate) fn later(one: u64, other: u64) -> u64 {
    if is_later(other, one) { other } else { one }
}

/// The epoch after this one.
pub(crate) fn next_epoch(epoch: u64) -> u64 {
    epoch.wrapping_add(1) & MAX_EPOCH
}

/// The order of masters of one switch, as etcd keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The nodes, the master first. The next one takes over when those before it are gone.
    pub masters: Vec<NodeId>,
    /// A minimum of the epoch. Without it, an old snapshot of etcd would bring old epochs back.
    pub floor: u64,
    /// Whether an operator has put the switch where it is: balancing leaves it there.
    pub placed: bool,
    /// The revision of etcd that wrote the record (`mod_revision`).
    pub revision: u64,
}

impl Record {
    /// The number of this order. Each change of a record has a greater one.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        // A revision is far from the end of the space. A floor that is not may be of an older
        // release.
        self.revision.max(self.floor & MAX_EPOCH) & MAX_EPOCH
    }

    /// The node that is master as long as nothing fails.
    #[must_use]
    pub fn first(&self) -> Option<NodeId> {
        self.masters.first().copied()
    }

    /// The node that an operator has given the switch to. `None`: balancing may move it.
    #[must_use]
    pub fn placed_at(&self) -> Option<NodeId> {
        self.first().filter(|_| self.placed)
    }

    /// Place of a node in the order, from 0.
    #[must_use]
    pub fn rank(&self, node: NodeId) -> Option<u8> {
        let rank = self.masters.iter().position(|&other| other == node)?;
        u8::try_from(rank).ok()
    }

    /// Place in the order of the node that a switch has obeyed last, by the newest generation that
    /// it has seen: the next one that lives takes over from there. 0: this record is newer.
    pub(crate) fn place_after(&self, newest: Generation) -> usize {
        let epoch = newest.epoch();
        let place = if epoch == self.epoch() {
            Some(newest.rank())
        } else if is_later(epoch, self.epoch()) {
            newest.node().and_then(|node| self.rank(node))
        } else {
            None
        };
        place.map_or(0, usize::from)
    }

    /// The generation by which a node claims the switch. `None` if the order does not have it.
    #[must_use]
    pub fn generation(&self, node: NodeId) -> Option<Generation> {
        Some(Generation::new(self.epoch(), self.rank(node)?, node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::MAX_NODES;

    fn node(place: usize) -> NodeId {
        NodeId::new(place).unwrap()
    }

    #[test]
    fn each_next_node_and_each_next_record_has_a_greater_generation() {
        let old = Record { masters: vec![node(2), node(0)], floor: 0, placed: false, revision: 7 };
        let new = Record { masters: vec![node(0), node(2)], floor: 8, placed: false, revision: 12 };
        let generations = [
            old.generation(node(2)),
            old.generation(node(0)),
            new.generation(node(0)),
            new.generation(node(2)),
        ];
        let is_older = |a: &Option<Generation>, b: &Option<Generation>| {
            b.unwrap().is_newer_than(a.unwrap()) && !a.unwrap().is_newer_than(b.unwrap())
        };
        assert!(generations.is_sorted_by(is_older), "{generations:?}");
        assert_eq!(old.generation(node(1)), None);
        assert_eq!(new.generation(node(2)), Some(Generation(0xc22)));
        assert_eq!((Generation(0xc22).epoch(), Generation(0xc22).rank()), (12, 1));
    }

    #[test]
    fn two_nodes_never_have_one_generation_whatever_etcd_forgets() {
        let ids = NodeId::all(MAX_NODES).flat_map(|node| {
            (0..MAX_NODES as u8).map(move |rank| Generation::new(7, rank, node).0)
        });
        let of_older_releases = (0..MAX_NODES as u64).map(|rank| 7 << 8 | rank);
        let all: Vec<u64> = ids.chain(of_older_releases).collect();
        let distinct: std::collections::BTreeSet<u64> = all.iter().copied().collect();
        assert_eq!(distinct.len(), all.len());
        for rank in 0..MAX_NODES as u8 {
            assert_eq!(Generation(7 << 8 | u64::from(rank)).rank(), rank);
            assert_eq!(Generation::new(7, rank, node(8)).rank(), rank);
        }
    }

    #[test]
    fn generations_go_on_after_the_last_one() {
        let last = Generation(u64::MAX - 1);
        let floor = next_epoch(last.epoch());
        let record = Record { masters: vec![node(0)], floor, placed: false, revision: 9 };
        assert!(record.generation(node(0)).unwrap().is_newer_than(last));
        assert!(is_later(record.epoch(), last.epoch()) && !is_later(last.epoch(), record.epoch()));
        assert_eq!(later(last.epoch(), 0), 0);
        // Somebody has written it by hand.
        let record = Record { floor: u64::MAX, ..record };
        assert_eq!(next_epoch(record.epoch()), 0);
    }

    #[test]
    fn an_epoch_does_not_go_back_when_etcd_does() {
        let restored = Record { masters: vec![node(0)], floor: 41, placed: false, revision: 9 };
        assert_eq!(restored.epoch(), 41);
        assert_eq!(restored.generation(node(0)).unwrap().epoch(), 41);
    }
}
