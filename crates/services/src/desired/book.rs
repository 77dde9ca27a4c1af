//! What an app wants, by switch.

use std::collections::{BTreeMap, BTreeSet};

use bellrock_api::Dpid;

use super::Wanted;

/// What an app wants.
#[derive(Default)]
pub(super) struct Book {
    /// Of each switch and intent, with the distance of each entry from its destination.
    switches: BTreeMap<Dpid, BTreeMap<u32, Vec<Entry>>>,
    /// Where each intent has entries.
    intents: BTreeMap<u32, BTreeSet<Dpid>>,
    /// Switches of which something has changed since they were last looked at.
    changed: BTreeSet<Dpid>,
    /// Numbers that were intents at some time of this run: flows with them are not another's.
    pub(super) known: BTreeSet<u32>,
    pub(super) complete: bool,
    /// All switches are to be looked at.
    all_changed: bool,
    /// Groups and meters of each switch that were wanted at some time of this run.
    pub(super) groups: BTreeMap<Dpid, BTreeSet<u32>>,
    pub(super) meters: BTreeMap<Dpid, BTreeSet<u32>>,
}

/// Something wanted, and how far from the destination.
pub(super) type Entry = (u32, Wanted);

impl Book {
    pub(super) fn set(&mut self, intent: u32, entries: impl Iterator<Item = (u32, Dpid, Wanted)>) {
        for dpid in self.intents.remove(&intent).unwrap_or_default() {
            self.changed.insert(dpid);
            if let Some(of_switch) = self.switches.get_mut(&dpid) {
                of_switch.remove(&intent);
                if of_switch.is_empty() {
                    self.switches.remove(&dpid);
                }
            }
        }
        for (distance, dpid, wanted) in entries {
            self.changed.insert(dpid);
            self.intents.entry(intent).or_default().insert(dpid);
            match &wanted {
                Wanted::Flow(_) => {}
                Wanted::Group(group) => {
                    self.groups.entry(dpid).or_default().insert(group.id);
                }
                Wanted::Meter(meter) => {
                    self.meters.entry(dpid).or_default().insert(meter.id);
                }
            }
            let of_switch = self.switches.entry(dpid).or_default();
            of_switch.entry(intent).or_default().push((distance, wanted));
        }
        self.known.insert(intent);
    }

    /// What an intent wants in one switch, and nothing else there.
    pub(super) fn set_at(
        &mut self,
        intent: u32,
        dpid: Dpid,
        entries: impl Iterator<Item = Wanted>,
    ) {
        let others = self.intents.remove(&intent).unwrap_or_default();
        if let Some(of_switch) = self.switches.get_mut(&dpid) {
            of_switch.remove(&intent);
        }
        self.changed.insert(dpid);
        self.set(intent, entries.map(|wanted| (0, dpid, wanted)));
        let kept = others.into_iter().filter(|other| *other != dpid);
        self.intents.entry(intent).or_default().extend(kept);
    }

    /// What is wanted in a switch, by intent.
    pub(super) fn of(&self, dpid: Dpid) -> impl Iterator<Item = (u32, &Entry)> {
        let intents = self.switches.get(&dpid).into_iter().flatten();
        intents.flat_map(|(intent, entries)| entries.iter().map(move |entry| (*intent, entry)))
    }

    /// The intents that want something in a switch.
    pub(super) fn intents_of(&self, dpid: Dpid) -> impl Iterator<Item = u32> {
        self.switches.get(&dpid).into_iter().flat_map(|intents| intents.keys().copied())
    }

    /// The switches of an intent.
    pub(super) fn switches_of(&self, intent: u32) -> impl Iterator<Item = Dpid> {
        self.intents.get(&intent).into_iter().flatten().copied()
    }

    /// The intents that have entries in switches that are not `ready`, and how far those are from their
    /// destinations.
    pub(super) fn waiting(&self, ready: impl Fn(Dpid) -> bool) -> impl Iterator<Item = (u32, u32)> {
        let waiting = self.switches.iter().filter(move |(dpid, _)| !ready(**dpid));
        waiting.flat_map(|(_, intents)| {
            intents.iter().flat_map(|(intent, entries)| {
                entries.iter().map(|(distance, _)| (*intent, *distance))
            })
        })
    }

    /// All that is wanted is in the book.
    pub(super) fn set_complete(&mut self) {
        self.all_changed |= !self.complete;
        self.complete = true;
    }

    /// Those of `all` switches that have changed since this was last asked.
    pub(super) fn take_changed(&mut self, all: impl Iterator<Item = Dpid>) -> BTreeSet<Dpid> {
        let mut changed = std::mem::take(&mut self.changed);
        if std::mem::take(&mut self.all_changed) {
            changed.extend(all);
        }
        changed
    }
}
