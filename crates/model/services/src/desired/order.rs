//! Which entries wait for which: each intent's missing entries, by distance from the destination.

use std::collections::{BTreeMap, BTreeSet};

use bellrock_api::Dpid;

/// Why a wanted entry is not in a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LackCause {
    /// It is to be sent or under way, or the switch has yet to report its tables.
    Due,
    /// The switch refuses it, or its version cannot express it.
    Stuck,
    /// The switch is not up.
    Away,
}

/// Missing entries of a switch: intents, and distances of flows (`None` for groups and meters).
pub(super) type MissingAtSwitch = BTreeMap<(u32, Option<u32>), LackCause>;

/// Missing entries of all switches.
#[derive(Default)]
pub(super) struct MissingEntries {
    intents: BTreeMap<u32, MissingOfIntent>,
    switches: BTreeMap<Dpid, MissingAtSwitch>,
    /// Intents whose nearest distance has grown.
    freed: BTreeSet<u32>,
}

#[derive(Default)]
struct MissingOfIntent {
    /// By distance and switch; groups and meters first.
    entries: BTreeMap<(Option<u32>, Dpid), LackCause>,
    /// Number of entries that are due.
    due: usize,
}

impl MissingOfIntent {
    fn nearest(&self) -> Option<u32> {
        self.flows().next()?.0
    }

    fn flows(&self) -> impl Iterator<Item = (Option<u32>, Dpid)> {
        self.entries.range((Some(0), Dpid(0))..).map(|(place, _)| *place)
    }
}

impl MissingEntries {
    /// Replaces the missing entries of a switch.
    pub(super) fn set(&mut self, dpid: Dpid, missing: MissingAtSwitch) {
        let before = self.switches.remove(&dpid).unwrap_or_default();
        // Inserts first: removing first could raise the nearest distance and free switches too
        // early.
        for ((intent, distance), cause) in &missing {
            let of_intent = self.intents.entry(*intent).or_default();
            let old = of_intent.entries.insert((*distance, dpid), *cause);
            of_intent.due += usize::from(*cause == LackCause::Due);
            of_intent.due -= usize::from(old == Some(LackCause::Due));
        }
        for (intent, distance) in before.keys().filter(|place| !missing.contains_key(place)) {
            self.remove(*intent, *distance, dpid);
        }
        if !missing.is_empty() {
            self.switches.insert(dpid, missing);
        }
    }

    /// Notes that a switch has the entries of an intent at this distance.
    pub(super) fn installed(&mut self, intent: u32, distance: Option<u32>, dpid: Dpid) {
        if let Some(at_switch) = self.switches.get_mut(&dpid)
            && at_switch.remove(&(intent, distance)).is_some()
        {
            self.remove(intent, distance, dpid);
        }
    }

    fn remove(&mut self, intent: u32, distance: Option<u32>, dpid: Dpid) {
        let Some(of_intent) = self.intents.get_mut(&intent) else { return };
        let cause = of_intent.entries.remove(&(distance, dpid));
        of_intent.due -= usize::from(cause == Some(LackCause::Due));
        if of_intent.entries.is_empty() {
            self.intents.remove(&intent);
        } else if distance.is_some() && of_intent.nearest() > distance {
            self.freed.insert(intent);
        }
    }

    /// Returns the switches whose missing entries stopped waiting since the last call.
    pub(super) fn take_freed(&mut self) -> BTreeSet<Dpid> {
        let freed = std::mem::take(&mut self.freed);
        let intents = freed.iter().filter_map(|intent| self.intents.get(intent));
        let freed_entries = intents.flat_map(|of_intent| {
            let nearest = of_intent.nearest();
            of_intent.flows().take_while(move |(distance, _)| *distance == nearest)
        });
        freed_entries.map(|(_, dpid)| dpid).collect()
    }

    /// Returns the intents with missing entries.
    pub(super) fn intents(&self) -> impl Iterator<Item = u32> {
        self.intents.keys().copied()
    }

    /// Returns the minimum distance at which an intent lacks a flow.
    pub(super) fn nearest(&self, intent: u32) -> Option<u32> {
        self.intents.get(&intent)?.nearest()
    }

    /// Whether an entry of an intent is due at any switch.
    pub(super) fn is_due(&self, intent: u32) -> bool {
        self.intents.get(&intent).is_some_and(|of_intent| of_intent.due > 0)
    }

    /// Returns a switch that is not up and should have an entry of an intent.
    pub(super) fn disconnected(&self, intent: u32) -> Option<Dpid> {
        let entries = &self.intents.get(&intent)?.entries;
        entries.iter().find(|(_, cause)| **cause == LackCause::Away).map(|((_, dpid), _)| *dpid)
    }

    /// Returns the intents with entries that are due.
    pub(super) fn due(&self) -> impl Iterator<Item = u32> {
        self.intents.iter().filter(|(_, of_intent)| of_intent.due > 0).map(|(intent, _)| *intent)
    }

    /// Whether an entry is due at a switch: of one intent, or of any.
    pub(super) fn is_due_at(&self, dpid: Dpid, intent: Option<u32>) -> bool {
        let Some(at_switch) = self.switches.get(&dpid) else { return false };
        at_switch.iter().any(|((entry_intent, _), cause)| {
            *cause == LackCause::Due && intent.is_none_or(|intent| intent == *entry_intent)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: Dpid = Dpid(1);
    const MIDDLE: Dpid = Dpid(2);
    const FAR: Dpid = Dpid(3);

    fn lacks(places: &[(u32, u32, LackCause)]) -> MissingAtSwitch {
        places.iter().map(|(intent, distance, why)| ((*intent, Some(*distance)), *why)).collect()
    }

    #[test]
    fn farther_flows_are_freed_when_all_nearer_flows_are_installed() {
        let mut lacking = MissingEntries::default();
        lacking.set(NEAR, lacks(&[(7, 0, LackCause::Due)]));
        lacking.set(MIDDLE, lacks(&[(7, 0, LackCause::Due), (7, 1, LackCause::Due)]));
        lacking.set(FAR, lacks(&[(7, 2, LackCause::Due), (8, 0, LackCause::Due)]));
        assert_eq!(lacking.take_freed(), BTreeSet::new());
        lacking.installed(7, Some(0), NEAR);
        assert_eq!((lacking.nearest(7), lacking.take_freed()), (Some(0), BTreeSet::new()));
        lacking.set(MIDDLE, lacks(&[(7, 1, LackCause::Due)]));
        assert_eq!((lacking.nearest(7), lacking.take_freed()), (Some(1), BTreeSet::from([MIDDLE])));
        lacking.set(MIDDLE, lacks(&[]));
        assert_eq!((lacking.nearest(7), lacking.take_freed()), (Some(2), BTreeSet::from([FAR])));
        lacking.installed(7, Some(2), FAR);
        assert_eq!((lacking.nearest(7), lacking.take_freed()), (None, BTreeSet::new()));
        assert_eq!(lacking.due().collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn groups_and_meters_are_due_and_are_no_flow_that_others_wait_for() {
        let mut lacking = MissingEntries::default();
        lacking.set(NEAR, MissingAtSwitch::from([((7, None), LackCause::Due)]));
        lacking.set(FAR, lacks(&[(7, 1, LackCause::Due)]));
        assert!(lacking.is_due(7) && lacking.is_due_at(NEAR, Some(7)));
        assert_eq!(lacking.nearest(7), Some(1));
        lacking.installed(7, None, NEAR);
        assert_eq!((lacking.is_due(7), lacking.take_freed()), (true, BTreeSet::new()));
        lacking.installed(7, Some(1), FAR);
        assert!(!lacking.is_due(7) && lacking.intents.is_empty());
    }

    #[test]
    fn stuck_and_away_flows_hold_farther_flows_and_are_not_due() {
        let mut lacking = MissingEntries::default();
        for why in [LackCause::Stuck, LackCause::Away] {
            lacking.set(NEAR, lacks(&[(7, 0, LackCause::Due)]));
            assert!(lacking.is_due(7) && lacking.is_due_at(NEAR, Some(7)));
            lacking.set(NEAR, lacks(&[(7, 0, why)]));
            assert_eq!((lacking.nearest(7), lacking.is_due(7)), (Some(0), false));
            assert!(!lacking.is_due_at(NEAR, None));
            assert_eq!(lacking.disconnected(7), (why == LackCause::Away).then_some(NEAR));
        }
    }
}
