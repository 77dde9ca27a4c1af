//! Finds the switches between which paths have changed.

use std::sync::Arc;

use bellrock_api::Dpid;

use super::{Hop, Paths};

/// Maximum number of changed directed links to check one by one. Above it, all paths count as
/// changed.
const MAX_CHANGED: usize = 64;

/// The differences between two versions of [`Paths`], from [`Paths::changes_since`].
pub struct PathChanges<'p> {
    before: &'p Paths,
    after: &'p Paths,
    /// The ends of links that are gone, and of links that have come.
    removed: Vec<(Dpid, Dpid)>,
    added: Vec<(Dpid, Dpid)>,
}

impl Paths {
    /// Returns the differences from another version.
    #[must_use]
    pub fn changes_since<'p>(&'p self, before: &'p Paths) -> PathChanges<'p> {
        PathChanges {
            before,
            after: self,
            removed: before.links_not_in(self),
            added: self.links_not_in(before),
        }
    }

    /// Returns the ends of links that another version does not have.
    fn links_not_in(&self, other: &Paths) -> Vec<(Dpid, Dpid)> {
        let mut missing = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            // Consecutive versions share unchanged nodes, as long as the numbers of switches stay.
            let is_numbered_so = Arc::ptr_eq(&self.numbers, &other.numbers);
            if is_numbered_so
                && other.nodes.get(at).is_some_and(|other_node| Arc::ptr_eq(node, other_node))
            {
                continue;
            }
            let other_hops: Vec<Hop> = other.hops_of(node.dpid).collect();
            let hops = self.hops_of(node.dpid).filter(|hop| !other_hops.contains(hop));
            missing.extend(hops.map(|hop| (hop.from.dpid, hop.to.dpid)));
        }
        missing
    }

    fn hops_of(&self, dpid: Dpid) -> impl Iterator<Item = Hop> {
        let nodes = self.number(dpid).and_then(|index| self.nodes.get(index));
        nodes.into_iter().flat_map(|node| node.links.iter().map(|link| self.hop(node, link)))
    }
}

impl PathChanges<'_> {
    /// Whether a shortest path between two switches may have changed for some key. If not,
    /// [`Paths::walk`] is the same for all keys.
    ///
    /// Compares the distance, and checks whether a link that has gone was on a shortest path, or a
    /// link that has come is on one. Costs a few look-ups for each changed link.
    #[must_use]
    pub fn affect(&self, from: Dpid, to: Dpid) -> bool {
        self.removed.len() + self.added.len() > MAX_CHANGED
            || self.before.distance(from, to) != self.after.distance(from, to)
            || self.removed.iter().any(|link| self.before.is_on_path(*link, from, to))
            || self.added.iter().any(|link| self.after.is_on_path(*link, from, to))
    }
}

impl Paths {
    /// Whether a link is on a shortest path.
    fn is_on_path(&self, (first, last): (Dpid, Dpid), from: Dpid, to: Dpid) -> bool {
        let hops = |from, to| self.distance(from, to).map(u32::from);
        let by_link =
            hops(from, first).zip(hops(last, to)).map(|(before, after)| before + 1 + after);
        by_link.is_some() && by_link == hops(from, to)
    }
}
