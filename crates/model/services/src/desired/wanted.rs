//! An app's wanted entries, by switch.

use std::collections::{BTreeMap, BTreeSet};

use bellrock_api::{AppId, Dpid, Error, Flow, FlowNormalizer, ReportedFlow, Version};

use super::DesiredEntry;
use super::read::Objects;

/// An app's wanted entries.
#[derive(Default)]
pub(super) struct WantedEntries {
    /// Entries of each switch and intent.
    switches: BTreeMap<Dpid, BTreeMap<u32, Vec<WantedEntry>>>,
    intents: BTreeMap<u32, Intent>,
    /// Switches with changes since the last [`WantedEntries::take_changed`].
    changed: BTreeMap<Dpid, BookChange>,
    /// Numbers that were intents in this run: all flows with them belong to these intents.
    pub(super) known_intents: BTreeSet<u32>,
    /// Those of `known_intents` that became intents since the last [`WantedEntries::take_new`].
    new_intents: BTreeSet<u32>,
    /// Intents whose progress is followed.
    followed: BTreeMap<u32, Followed>,
    /// Followed intents whose refused changes are to be sent again.
    retried: BTreeSet<u32>,
    pub(super) complete: bool,
    /// Intents that could not be set yet: flows of an earlier run with their numbers stay.
    pub(super) unset: BTreeSet<u32>,
    /// All switches have changes.
    all_changed: bool,
    /// Groups and meters of each switch that were wanted in this run.
    pub(super) groups: BTreeMap<Dpid, BTreeSet<u32>>,
    pub(super) meters: BTreeMap<Dpid, BTreeSet<u32>>,
}

/// How the wanted entries of a switch have changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BookChange {
    /// These intents had no entries there, and have flows now.
    Added(BTreeSet<u32>),
    /// In any other way.
    Other,
}

/// An intent whose progress is followed.
#[derive(Default)]
struct Followed {
    /// Number of commits. It is 0 if the intent is kept only because it may have left flows.
    commits: usize,
    /// The switches with entries of it, or with earlier entries that may not be removed yet.
    switches: BTreeSet<Dpid>,
}

/// An intent with entries.
struct Intent {
    /// Switches with entries.
    switches: BTreeSet<Dpid>,
    /// Whether flows wait for flows that are nearer to the destination.
    is_ordered: bool,
}

/// A wanted entry.
pub(super) struct WantedEntry {
    /// Distance from the destination.
    pub(super) distance: u32,
    pub(super) wanted: DesiredEntry,
    /// The flow as a switch of this version reports it, or why that version cannot express it.
    reported: Option<(Version, Result<ReportedFlow, Error>)>,
}

impl WantedEntry {
    pub(super) fn new(distance: u32, wanted: DesiredEntry) -> Self {
        WantedEntry { distance, wanted, reported: None }
    }

    /// Returns the distance of a flow. `None` for groups and meters, which come first.
    pub(super) fn flow_distance(&self) -> Option<u32> {
        self.is_flow().then_some(self.distance)
    }

    pub(super) fn is_flow(&self) -> bool {
        matches!(self.wanted, DesiredEntry::Flow(_))
    }

    /// Returns the flow, and the form in which a switch reports it, after
    /// [`WantedEntries::normalize`].
    pub(super) fn flow(&self) -> Option<(&Flow, &Result<ReportedFlow, Error>)> {
        let DesiredEntry::Flow(flow) = &self.wanted else { return None };
        Some((flow, &self.reported.as_ref()?.1))
    }
}

impl WantedEntries {
    /// Returns the number of flows wanted in a switch.
    pub(super) fn flows_in(&self, dpid: Dpid) -> usize {
        let entries = self.switches.get(&dpid).into_iter().flat_map(BTreeMap::values).flatten();
        entries.filter(|entry| entry.is_flow()).count()
    }

    /// Kinds to request besides flows: those that are, or were, wanted in a switch. 1.0 has none.
    pub(super) fn objects_in(&self, dpid: Dpid, version: Version) -> Objects {
        let has_any = |objects: &BTreeMap<Dpid, BTreeSet<u32>>| {
            objects.get(&dpid).is_some_and(|ids| !ids.is_empty())
        };
        Objects {
            groups: version.has_groups() && has_any(&self.groups),
            meters: version.has_meters() && has_any(&self.meters),
        }
    }

    /// Replaces an intent.
    pub(super) fn set(
        &mut self,
        intent: u32,
        is_ordered: bool,
        entries: impl Iterator<Item = (Dpid, WantedEntry)>,
    ) {
        let mut wanted: BTreeMap<Dpid, Vec<WantedEntry>> = BTreeMap::new();
        for (dpid, entry) in entries {
            wanted.entry(dpid).or_default().push(entry);
        }
        let before = self.intents.get(&intent);
        let removed = before.into_iter().flat_map(|before| &before.switches).copied();
        let gone: Vec<Dpid> = removed.filter(|dpid| !wanted.contains_key(dpid)).collect();
        if before.is_some_and(|before| before.is_ordered != is_ordered) {
            self.changed.extend(wanted.keys().map(|dpid| (*dpid, BookChange::Other)));
        }
        self.add_known(intent);
        let new_intent = || Intent { switches: BTreeSet::new(), is_ordered };
        self.intents.entry(intent).or_insert_with(new_intent).is_ordered = is_ordered;
        for (dpid, entries) in wanted {
            self.put(intent, dpid, entries);
        }
        for dpid in gone {
            self.put(intent, dpid, Vec::new());
        }
        if self.intents.get(&intent).is_some_and(|current| current.switches.is_empty()) {
            self.intents.remove(&intent);
        }
    }

    /// Replaces the entries of an intent in one switch.
    pub(super) fn set_at(&mut self, intent: u32, dpid: Dpid, entries: Vec<WantedEntry>) {
        self.add_known(intent);
        let new_intent = || Intent { switches: BTreeSet::new(), is_ordered: false };
        self.intents.entry(intent).or_insert_with(new_intent);
        self.put(intent, dpid, entries);
        if self.intents.get(&intent).is_some_and(|current| current.switches.is_empty()) {
            self.intents.remove(&intent);
        }
    }

    /// Replaces the entries of a known intent in a switch. Equal entries change nothing.
    fn put(&mut self, intent: u32, dpid: Dpid, mut entries: Vec<WantedEntry>) {
        for entry in &entries {
            match &entry.wanted {
                DesiredEntry::Flow(_) => {}
                DesiredEntry::Group(group) => {
                    self.groups.entry(dpid).or_default().insert(group.id);
                }
                DesiredEntry::Meter(meter) => {
                    self.meters.entry(dpid).or_default().insert(meter.id);
                }
            }
        }
        let of_switch = self.switches.entry(dpid).or_default();
        let before = of_switch.remove(&intent).unwrap_or_default();
        let had_none = before.is_empty();
        let mut is_same = before.len() == entries.len();
        for (entry, before) in entries.iter_mut().zip(before) {
            is_same &= entry.distance == before.distance && entry.wanted == before.wanted;
            if entry.wanted == before.wanted {
                entry.reported = before.reported;
            }
        }
        if !is_same {
            let is_added = had_none && entries.iter().all(WantedEntry::is_flow);
            match self.changed.entry(dpid).or_insert_with(|| BookChange::Added(BTreeSet::new())) {
                BookChange::Added(intents) if is_added => drop(intents.insert(intent)),
                change => *change = BookChange::Other,
            }
        }
        let switches = self.intents.get_mut(&intent).map(|intent| &mut intent.switches);
        if entries.is_empty() {
            switches.map(|switches| switches.remove(&dpid));
            if of_switch.is_empty() {
                self.switches.remove(&dpid);
            }
        } else {
            switches.map(|switches| switches.insert(dpid));
            of_switch.insert(intent, entries);
            if let Some(followed) = self.followed.get_mut(&intent) {
                followed.switches.insert(dpid);
            }
        }
    }

    /// Returns the entries of a switch, by intent.
    pub(super) fn entries(
        &self,
        dpid: Dpid,
    ) -> impl DoubleEndedIterator<Item = (u32, &WantedEntry)> {
        let intents = self.switches.get(&dpid).into_iter().flatten();
        intents.flat_map(|(intent, entries)| entries.iter().map(move |entry| (*intent, entry)))
    }

    /// Returns the entries of an intent in a switch.
    pub(super) fn entries_of(&self, dpid: Dpid, intent: u32) -> &[WantedEntry] {
        let intents = self.switches.get(&dpid);
        intents.and_then(|intents| intents.get(&intent)).map_or(&[], Vec::as_slice)
    }

    /// Computes, once for each flow, how a switch reports its wanted flows: most are compared
    /// often.
    pub(super) fn normalize(&mut self, dpid: Dpid, app: AppId, version: Version) {
        let intents = self.switches.get_mut(&dpid).into_iter().flatten();
        normalize(intents.flat_map(|(_, entries)| entries), app, version);
    }

    /// The same, for the flows of these intents.
    pub(super) fn normalize_of(
        &mut self,
        dpid: Dpid,
        intents: &BTreeSet<u32>,
        app: AppId,
        version: Version,
    ) {
        let Some(of_switch) = self.switches.get_mut(&dpid) else { return };
        for intent in intents {
            normalize(of_switch.get_mut(intent).into_iter().flatten(), app, version);
        }
    }

    fn add_known(&mut self, intent: u32) {
        if self.known_intents.insert(intent) {
            self.new_intents.insert(intent);
        }
    }

    /// Returns the numbers that have become intents since the last call.
    pub(super) fn take_new(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.new_intents)
    }

    /// Follows an intent, and requests its refused changes again of all switches.
    pub(super) fn follow(&mut self, intent: u32) {
        let followed = self.followed.entry(intent).or_default();
        followed.commits += 1;
        followed
            .switches
            .extend(self.intents.get(&intent).into_iter().flat_map(|intent| &intent.switches));
        self.retried.insert(intent);
    }

    /// Requests the refused changes of an intent again of all switches.
    pub(super) fn retry(&mut self, intent: u32) {
        self.retried.insert(intent);
    }

    /// Ends one follow of an intent.
    pub(super) fn unfollow(&mut self, intent: u32) {
        let wanted = self.intents.get(&intent).map(|intent| &intent.switches);
        if let Some(followed) = self.followed.get_mut(&intent) {
            followed.commits -= 1;
            let is_wanted = |dpid| wanted.is_some_and(|wanted| wanted.contains(dpid));
            // Kept for the next commit, which reports flows that may be left.
            if followed.commits == 0 && followed.switches.iter().all(is_wanted) {
                self.followed.remove(&intent);
            }
        }
    }

    /// Returns the followed intents, and the switches with entries of them, or that may have some.
    pub(super) fn followed(&self) -> impl Iterator<Item = (u32, &BTreeSet<Dpid>)> {
        let followed = self.followed.iter().filter(|(_, followed)| followed.commits > 0);
        followed.map(|(intent, followed)| (*intent, &followed.switches))
    }

    /// Notes that an intent has no entries left in switches where it wants none.
    pub(super) fn remove_unwanted_switches(&mut self, intent: u32) {
        if let Some(followed) = self.followed.get_mut(&intent) {
            let wanted = self.intents.get(&intent).map(|intent| &intent.switches);
            followed.switches.retain(|dpid| wanted.is_some_and(|wanted| wanted.contains(dpid)));
        }
    }

    /// Returns the intents whose refused changes are to be sent again, since the last call.
    pub(super) fn take_retried(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.retried)
    }

    /// Whether flows wait for flows that are nearer to the destination.
    pub(super) fn is_ordered(&self, intent: u32) -> bool {
        self.intents.get(&intent).is_some_and(|intent| intent.is_ordered)
    }

    /// Notes that all intents are set, except these.
    pub(super) fn set_complete(&mut self, unset: BTreeSet<u32>) {
        self.all_changed |= !self.complete || self.unset != unset;
        (self.complete, self.unset) = (true, unset);
    }

    /// Returns the switches with changes since the last call, and how they have changed; `all` of
    /// them, if all have changed.
    pub(super) fn take_changed(
        &mut self,
        all: impl Iterator<Item = Dpid>,
    ) -> BTreeMap<Dpid, BookChange> {
        let mut changed = std::mem::take(&mut self.changed);
        if std::mem::take(&mut self.all_changed) {
            changed.extend(all.map(|dpid| (dpid, BookChange::Other)));
        }
        changed
    }
}

fn normalize<'e>(entries: impl Iterator<Item = &'e mut WantedEntry>, app: AppId, version: Version) {
    let mut normalizer = None;
    for entry in entries {
        if let DesiredEntry::Flow(flow) = &entry.wanted
            && entry.reported.as_ref().is_none_or(|(normalized_for, _)| *normalized_for != version)
        {
            let normalizer = normalizer.get_or_insert_with(|| FlowNormalizer::new(version));
            entry.reported = Some((version, normalizer.of_flow(app, flow)));
        }
    }
}
