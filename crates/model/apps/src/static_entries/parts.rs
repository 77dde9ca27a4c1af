//! The sequence in which the changes of an order are stored. The store of a cluster takes a large
//! order in parts, and other orders are checked against each part. So what holds for all entries
//! must hold after each part, too: no two entries are the same flow, group or meter of a switch.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bellrock_services::desired::DesiredEntry;

use super::index::{EntryIndex, Place};
use super::order::StaticEntry;

/// Maximum number of flows in a row that are stored at the same moment, where each one takes the
/// place of the one before it.
const MAX_CHAIN: usize = 32;

/// The change of an entry: its name, and what it becomes. `None`: it is removed.
pub(super) type EntryChange = (String, Option<Arc<StaticEntry>>);

impl EntryIndex {
    /// Returns the changes of an order, in the sequence in which they are stored. What is in one
    /// list is stored at the same moment: an entry, and the one whose place it takes. Groups and
    /// meters come first, then flows, then removals. `max_chain`: maximum number of changes of one
    /// moment, for flows that can also be stored one after the other.
    pub(super) fn sequence(
        &self,
        set: &[Arc<StaticEntry>],
        remove: &BTreeSet<String>,
        max_chain: usize,
    ) -> Vec<Vec<EntryChange>> {
        let set = set.iter().map(|entry| (entry.name.clone(), Some(Arc::clone(entry))));
        let changes = set.chain(remove.iter().map(|name| (name.clone(), None)));
        let mut changes: Vec<Option<EntryChange>> = changes.map(Some).collect();
        let (next, followers) = self.successors(&changes);
        let mut sequence = Vec::new();
        // The first one of a chain goes to a place that is free, or is removed. What is left then
        // are circles of entries that exchange their places.
        let firsts = (0..changes.len()).filter(|index| !followers.contains(index));
        for first in firsts.chain(0..changes.len()) {
            let indexes = std::iter::successors(Some(first), |index| next.get(index).copied());
            let chain: Vec<_> = indexes.map_while(|index| changes[index].take()).collect();
            if chain.is_empty() {
                continue;
            }
            let kind = kind(&chain);
            let is_circle = followers.contains(&first);
            if kind == Kind::Flows && !is_circle {
                let max_chain = max_chain.clamp(1, MAX_CHAIN);
                sequence.extend(chain.chunks(max_chain).map(|part| (kind, part.to_vec())));
            } else {
                sequence.push((kind, chain));
            }
        }
        sequence.sort_by_key(|(kind, _)| *kind);
        sequence.into_iter().map(|(_, chain)| chain).collect()
    }

    /// Returns which change takes the place that another one leaves, by index, and all those that
    /// take one.
    fn successors(
        &self,
        changes: &[Option<EntryChange>],
    ) -> (HashMap<usize, usize>, BTreeSet<usize>) {
        let indexed = || changes.iter().flatten().enumerate();
        let by_name: HashMap<&str, usize> =
            indexed().map(|(index, (name, _))| (name.as_str(), index)).collect();
        let mut next = HashMap::new();
        for (index, (name, after)) in indexed() {
            let Some(after) = after else { continue };
            let there = self.places.get(&(after.dpid, Place::of(&after.wanted)));
            let there = there.and_then(|number| self.by_number.get(number));
            let there = there.filter(|there| there.name != *name);
            if let Some(left) = there.and_then(|there| by_name.get(&*there.name)) {
                next.insert(*left, index);
            }
        }
        let followers = next.values().copied().collect();
        (next, followers)
    }
}

/// What the changes of one moment write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Groups and meters, which flows of later parts use.
    Groups,
    Mixed,
    Flows,
    Removals,
}

fn kind(chain: &[EntryChange]) -> Kind {
    let set = || chain.iter().filter_map(|(_, after)| after.as_ref());
    let is_flow = |entry: &Arc<StaticEntry>| matches!(entry.wanted, DesiredEntry::Flow(_));
    match (set().any(is_flow), set().all(is_flow)) {
        (true, true) => Kind::Flows,
        (true, false) => Kind::Mixed,
        (false, true) => Kind::Removals,
        (false, false) => Kind::Groups,
    }
}
