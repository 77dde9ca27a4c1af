//! What an app wants, by switch.

use std::collections::{BTreeMap, BTreeSet};

use bellrock_api::{AppId, Dpid, Error, Flow, ToldFlow, ToldForm, Version};

use super::Wanted;
use super::read::Objects;

/// What an app wants.
#[derive(Default)]
pub(super) struct Book {
    /// Of each switch and intent.
    switches: BTreeMap<Dpid, BTreeMap<u32, Vec<Entry>>>,
    intents: BTreeMap<u32, Intent>,
    /// Switches of which something has changed since they were last looked at.
    changed: BTreeSet<Dpid>,
    /// Numbers that were intents at some time of this run: flows with them are not another's.
    pub(super) known: BTreeSet<u32>,
    /// Those of them that have become ones since this was last asked.
    new: BTreeSet<u32>,
    /// Intents of which the app wants to know how far they are.
    followed: BTreeMap<u32, Followed>,
    /// Those of them that are to be asked of switches again which have refused them.
    asked_again: BTreeSet<u32>,
    pub(super) complete: bool,
    /// Numbers of intents that could not be set when the rest was: flows of an earlier run with them stay.
    pub(super) unset: BTreeSet<u32>,
    /// All switches are to be looked at.
    all_changed: bool,
    /// Groups and meters of each switch that were wanted at some time of this run.
    pub(super) groups: BTreeMap<Dpid, BTreeSet<u32>>,
    pub(super) meters: BTreeMap<Dpid, BTreeSet<u32>>,
}

/// An intent of which somebody wants to know how far it is.
#[derive(Default)]
struct Followed {
    /// How many. Nobody any more, where it may have left something.
    by: usize,
    /// The switches where it wants something, or has wanted something and may not be gone.
    switches: BTreeSet<Dpid>,
}

/// An intent that wants something.
struct Intent {
    /// Where it has entries.
    switches: BTreeSet<Dpid>,
    /// What is farther from the destination waits for what is nearer.
    is_ordered: bool,
}

/// Something wanted.
pub(super) struct Entry {
    /// How far from the destination.
    pub(super) distance: u32,
    pub(super) wanted: Wanted,
    /// A flow as a switch of a version would tell of it, or why it cannot have it.
    told: Option<(Version, Result<ToldFlow, Error>)>,
}

impl Entry {
    pub(super) fn new(distance: u32, wanted: Wanted) -> Self {
        Entry { distance, wanted, told: None }
    }

    /// The distance of a flow; groups and meters have none, and come first.
    pub(super) fn place(&self) -> Option<u32> {
        self.is_flow().then_some(self.distance)
    }

    pub(super) fn is_flow(&self) -> bool {
        matches!(self.wanted, Wanted::Flow(_))
    }

    /// The flow, and how a switch would tell of it, once that was found out.
    pub(super) fn flow(&self) -> Option<(&Flow, &Result<ToldFlow, Error>)> {
        let Wanted::Flow(flow) = &self.wanted else { return None };
        Some((flow, &self.told.as_ref()?.1))
    }
}

impl Book {
    /// How many flows are wanted in a switch.
    pub(super) fn flows_in(&self, dpid: Dpid) -> usize {
        let entries = self.switches.get(&dpid).into_iter().flat_map(BTreeMap::values).flatten();
        entries.filter(|entry| entry.is_flow()).count()
    }

    /// What a switch has to report besides flows: that of which something is, or was, wanted in it. 1.0 has neither.
    pub(super) fn objects_in(&self, dpid: Dpid, version: Version) -> Objects {
        let any =
            |of: &BTreeMap<Dpid, BTreeSet<u32>>| of.get(&dpid).is_some_and(|of| !of.is_empty());
        let has_them = version == Version::V1_3;
        Objects { groups: has_them && any(&self.groups), meters: has_them && any(&self.meters) }
    }

    /// What an intent wants, and nothing else.
    pub(super) fn set(
        &mut self,
        intent: u32,
        is_ordered: bool,
        entries: impl Iterator<Item = (Dpid, Entry)>,
    ) {
        let mut wanted: BTreeMap<Dpid, Vec<Entry>> = BTreeMap::new();
        for (dpid, entry) in entries {
            wanted.entry(dpid).or_default().push(entry);
        }
        let before = self.intents.get(&intent);
        let gone = before.into_iter().flat_map(|before| &before.switches).copied();
        let gone: Vec<Dpid> = gone.filter(|dpid| !wanted.contains_key(dpid)).collect();
        if before.is_some_and(|before| before.is_ordered != is_ordered) {
            self.changed.extend(wanted.keys());
        }
        self.know(intent);
        let of_intent = || Intent { switches: BTreeSet::new(), is_ordered };
        self.intents.entry(intent).or_insert_with(of_intent).is_ordered = is_ordered;
        for (dpid, entries) in wanted {
            self.put(intent, dpid, entries);
        }
        for dpid in gone {
            self.put(intent, dpid, Vec::new());
        }
        if self.intents.get(&intent).is_some_and(|now| now.switches.is_empty()) {
            self.intents.remove(&intent);
        }
    }

    /// What an intent wants in one switch, and nothing else there.
    pub(super) fn set_at(&mut self, intent: u32, dpid: Dpid, entries: Vec<Entry>) {
        self.know(intent);
        let of_intent = || Intent { switches: BTreeSet::new(), is_ordered: false };
        self.intents.entry(intent).or_insert_with(of_intent);
        self.put(intent, dpid, entries);
        if self.intents.get(&intent).is_some_and(|now| now.switches.is_empty()) {
            self.intents.remove(&intent);
        }
    }

    /// The same of an intent that is in the book. Where it wants what it wanted, nothing changes.
    fn put(&mut self, intent: u32, dpid: Dpid, mut entries: Vec<Entry>) {
        for entry in &entries {
            match &entry.wanted {
                Wanted::Flow(_) => {}
                Wanted::Group(group) => {
                    self.groups.entry(dpid).or_default().insert(group.id);
                }
                Wanted::Meter(meter) => {
                    self.meters.entry(dpid).or_default().insert(meter.id);
                }
            }
        }
        let of_switch = self.switches.entry(dpid).or_default();
        let before = of_switch.remove(&intent).unwrap_or_default();
        let mut is_same = before.len() == entries.len();
        for (entry, before) in entries.iter_mut().zip(before) {
            is_same &= entry.distance == before.distance && entry.wanted == before.wanted;
            if entry.wanted == before.wanted {
                entry.told = before.told;
            }
        }
        if !is_same {
            self.changed.insert(dpid);
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

    /// What is wanted in a switch, by intent.
    pub(super) fn of(&self, dpid: Dpid) -> impl DoubleEndedIterator<Item = (u32, &Entry)> {
        let intents = self.switches.get(&dpid).into_iter().flatten();
        intents.flat_map(|(intent, entries)| entries.iter().map(move |entry| (*intent, entry)))
    }

    /// Finds out how a switch would tell of what is wanted in it. Once for each flow: most are compared many
    /// times.
    pub(super) fn tell(&mut self, dpid: Dpid, app: AppId, version: Version) {
        let mut form = None;
        let intents = self.switches.get_mut(&dpid).into_iter().flatten();
        for entry in intents.flat_map(|(_, entries)| entries) {
            if let Wanted::Flow(flow) = &entry.wanted
                && entry.told.as_ref().is_none_or(|(its, _)| *its != version)
            {
                let form = form.get_or_insert_with(|| ToldForm::new(version));
                entry.told = Some((version, form.of_flow(app, flow)));
            }
        }
    }

    fn know(&mut self, intent: u32) {
        if self.known.insert(intent) {
            self.new.insert(intent);
        }
    }

    /// The numbers that have become intents since this was last asked.
    pub(super) fn take_new(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.new)
    }

    /// Somebody wants to know how far an intent is from now on, and has it asked of all switches.
    pub(super) fn follow(&mut self, intent: u32) {
        let followed = self.followed.entry(intent).or_default();
        followed.by += 1;
        followed
            .switches
            .extend(self.intents.get(&intent).into_iter().flat_map(|its| &its.switches));
        self.asked_again.insert(intent);
    }

    /// Somebody does not any more.
    pub(super) fn unfollow(&mut self, intent: u32) {
        let wanted = self.intents.get(&intent).map(|its| &its.switches);
        if let Some(followed) = self.followed.get_mut(&intent) {
            followed.by -= 1;
            let wants = |dpid| wanted.is_some_and(|wanted| wanted.contains(dpid));
            // What it may have left is told to whoever asks next.
            if followed.by == 0 && followed.switches.iter().all(wants) {
                self.followed.remove(&intent);
            }
        }
    }

    /// The intents that somebody wants to know of, and the switches where they have something or may have.
    pub(super) fn followed(&self) -> impl Iterator<Item = (u32, &BTreeSet<Dpid>)> {
        let followed = self.followed.iter().filter(|(_, followed)| followed.by > 0);
        followed.map(|(intent, followed)| (*intent, &followed.switches))
    }

    /// An intent has nothing left where it wants nothing.
    pub(super) fn settled(&mut self, intent: u32) {
        if let Some(followed) = self.followed.get_mut(&intent) {
            let wanted = self.intents.get(&intent).map(|its| &its.switches);
            followed.switches.retain(|dpid| wanted.is_some_and(|wanted| wanted.contains(dpid)));
        }
    }

    /// Those that are to be asked again of switches that have refused them, since this was last asked.
    pub(super) fn take_asked_again(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.asked_again)
    }

    /// Whether what is farther waits for what is nearer.
    pub(super) fn is_ordered(&self, intent: u32) -> bool {
        self.intents.get(&intent).is_some_and(|intent| intent.is_ordered)
    }

    /// All that is wanted is in the book, but for these intents.
    pub(super) fn set_complete(&mut self, unset: BTreeSet<u32>) {
        self.all_changed |= !self.complete || self.unset != unset;
        (self.complete, self.unset) = (true, unset);
    }

    /// Those of `all` switches that have changed since this was last asked, and others that have.
    pub(super) fn take_changed(&mut self, all: impl Iterator<Item = Dpid>) -> BTreeSet<Dpid> {
        let mut changed = std::mem::take(&mut self.changed);
        if std::mem::take(&mut self.all_changed) {
            changed.extend(all);
        }
        changed
    }
}
