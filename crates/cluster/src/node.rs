//! Nodes of a cluster, and sets of them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Maximum number of nodes. A cluster of nine survives the loss of four; each node more costs each
/// other one a connection and 20 messages a second.
pub const MAX_NODES: usize = 9;

/// A controller of the cluster: its place in the list of the cluster's nodes, sorted by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u8);

impl NodeId {
    /// The node at this place, from 0. `None` if a cluster cannot have so many nodes.
    #[must_use]
    pub fn new(place: usize) -> Option<Self> {
        u8::try_from(place).ok().filter(|_| place < MAX_NODES).map(NodeId)
    }

    /// Place in the list of nodes, from 0.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The first `count` nodes: all nodes of a cluster of that size.
    pub fn all(count: usize) -> impl DoubleEndedIterator<Item = NodeId> + Clone {
        (0..count).filter_map(NodeId::new)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// A set of nodes. It travels as bits: the lowest is that of the first node.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "u16")]
pub struct NodeSet(u16);

impl From<u16> for NodeSet {
    fn from(bits: u16) -> Self {
        NodeSet::from_bits(bits)
    }
}

impl NodeSet {
    /// The set of no node.
    pub const EMPTY: NodeSet = NodeSet(0);

    /// Adds a node.
    pub fn insert(&mut self, node: NodeId) {
        self.0 |= 1 << node.0;
    }

    /// Removes a node.
    pub fn remove(&mut self, node: NodeId) {
        self.0 &= !(1 << node.0);
    }

    /// Whether the set has this node.
    #[must_use]
    pub fn contains(self, node: NodeId) -> bool {
        self.0 & (1 << node.0) != 0
    }

    /// Number of nodes in the set.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the set has no node.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set of these bits. Bits that are no node are left out.
    pub(crate) fn from_bits(bits: u16) -> Self {
        NodeSet(bits & ((1 << MAX_NODES) - 1))
    }

    /// The nodes of the set, in their order.
    pub fn iter(self) -> impl Iterator<Item = NodeId> {
        NodeId::all(MAX_NODES).filter(move |&node| self.contains(node))
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<T: IntoIterator<Item = NodeId>>(nodes: T) -> Self {
        let mut set = NodeSet::EMPTY;
        for node in nodes {
            set.insert(node);
        }
        set
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(NodeId::index)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_nodes_that_were_added_and_not_removed() {
        let nodes: Vec<NodeId> = NodeId::all(MAX_NODES).collect();
        let mut set = NodeSet::EMPTY;
        assert!(set.is_empty());
        set.insert(nodes[8]);
        set.insert(nodes[1]);
        set.insert(nodes[1]);
        assert_eq!((set.len(), set.iter().collect::<Vec<_>>()), (2, vec![nodes[1], nodes[8]]));
        set.remove(nodes[1]);
        assert!(set.contains(nodes[8]) && !set.contains(nodes[1]));
        assert_eq!(format!("{set:?}"), "{8}");
    }

    #[test]
    fn there_is_no_tenth_node() {
        assert_eq!(NodeId::new(MAX_NODES), None);
        assert_eq!(NodeId::all(20).count(), MAX_NODES);
    }
}
