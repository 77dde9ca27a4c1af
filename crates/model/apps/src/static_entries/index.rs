//! The stored entries by number, name and place, and when they end.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{Dpid, Match};
use bellrock_services::desired::DesiredEntry;

use super::order::StaticEntry;
use super::references::{Reference, References};

/// What identifies an entry in its switch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Flow(u8, u16, Box<Match>),
    Group(u32),
    Meter(u32),
}

impl Place {
    pub(super) fn of(wanted: &DesiredEntry) -> Self {
        match wanted {
            DesiredEntry::Flow(flow) => {
                Place::Flow(flow.table, flow.priority, Box::new(flow.matching.clone()))
            }
            DesiredEntry::Group(group) => Place::Group(group.id),
            DesiredEntry::Meter(meter) => Place::Meter(meter.id),
        }
    }

    pub(super) fn what(&self) -> &'static str {
        match self {
            Place::Flow(..) => "flow",
            Place::Group(_) => "group",
            Place::Meter(_) => "meter",
        }
    }
}

impl From<Reference> for Place {
    fn from(reference: Reference) -> Self {
        match reference {
            Reference::Group(id) => Place::Group(id),
            Reference::Meter(id) => Place::Meter(id),
        }
    }
}

/// All stored entries. Those that have ended, and that no other entry uses, count for nothing.
#[derive(Debug, Default)]
pub(super) struct EntryIndex {
    pub(super) by_number: BTreeMap<u32, Arc<StaticEntry>>,
    pub(super) numbers: BTreeMap<String, u32>,
    /// The number of the entry at each place.
    pub(super) places: HashMap<(Dpid, Place), u32>,
    ends: BTreeSet<(Duration, u32)>,
    /// Groups and meters that have ended, and stay because other entries use them.
    overdue: BTreeSet<u32>,
    /// Entries that have ended, by name, and are still stored: the next order removes them.
    pub(super) ended: BTreeMap<String, Arc<StaticEntry>>,
    pub(super) references: References,
    pub(super) last_number: u32,
    /// Numbers whose entries differ since [`EntryIndex::take_changed`].
    changed: BTreeSet<u32>,
    /// The latest time that it knows of.
    now: Duration,
    /// Meters up to this one belong to another app.
    pub(super) last_reserved_meter: u32,
    /// Switches in which all flows without wildcards have the same priority.
    pub(super) exact_first: BTreeSet<Dpid>,
}

impl EntryIndex {
    /// All entries by name.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Arc<StaticEntry>> {
        self.numbers.values().filter_map(|number| self.by_number.get(number))
    }

    /// The entry of this name.
    pub(super) fn entry(&self, name: &str) -> Option<&Arc<StaticEntry>> {
        self.numbers.get(name).and_then(|number| self.by_number.get(number))
    }

    /// What is wanted under a number, and where.
    pub(super) fn wanted(&self, number: u32) -> Option<(Dpid, DesiredEntry)> {
        self.by_number.get(&number).map(|entry| (entry.dpid, entry.wanted.clone()))
    }

    /// The numbers whose entries differ since the last call.
    pub(super) fn take_changed(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.changed)
    }

    /// When the next entry ends.
    pub(super) fn next_end(&self) -> Option<Duration> {
        match self.overdue.iter().find(|number| self.user_of(**number).is_none()) {
            Some(_) => Some(Duration::ZERO),
            None => self.ends.first().map(|(end, _)| *end),
        }
    }

    /// Takes out the entries that have ended. A group or meter stays until no entry uses it.
    pub(super) fn expire(&mut self, now: Duration) {
        self.now = now;
        while let Some((end, number)) = self.ends.first().copied().filter(|(end, _)| *end <= now) {
            self.ends.remove(&(end, number));
            self.overdue.insert(number);
        }
        // A group may use another that has ended too.
        while let Some(number) =
            self.overdue.iter().copied().find(|number| self.user_of(*number).is_none())
        {
            if let Some(entry) = self.take(number) {
                self.ended.insert(entry.name.clone(), entry);
            }
            self.changed.insert(number);
        }
    }

    /// An entry that uses the group or meter of this number.
    pub(super) fn user_of(&self, number: u32) -> Option<&Arc<StaticEntry>> {
        let entry = self.by_number.get(&number)?;
        let used = Reference::of(&entry.wanted)?;
        let user = self.references.users(entry.dpid, used).next()?;
        self.by_number.get(&user)
    }

    /// Takes in what is stored under a name, in place of what was.
    pub(super) fn store(&mut self, name: &str, entry: Option<&Arc<StaticEntry>>) {
        let before = self.numbers.get(name).copied();
        self.changed.extend(before);
        self.changed.extend(entry.map(|entry| entry.number));
        self.set(name, entry);
        if let Some(entry) = entry {
            self.last_number = self.last_number.max(entry.number);
            self.references.note(entry);
        }
        // An entry may have used a group that has ended.
        self.expire(self.now);
    }

    /// Puts an entry in place of the one with this name. `None`: removes that. The same calls in
    /// the reverse order, each with what was before, undo it.
    pub(super) fn set(&mut self, name: &str, entry: Option<&Arc<StaticEntry>>) {
        self.ended.remove(name);
        if let Some(number) = self.numbers.get(name).copied() {
            self.take(number);
        }
        let Some(entry) = entry else { return };
        // Two nodes of different releases may have given a number twice.
        self.take(entry.number);
        if self.is_over(entry) {
            self.ended.insert(name.to_owned(), Arc::clone(entry));
        } else {
            self.put(Arc::clone(entry));
        }
    }

    /// Whether an entry has ended, and no other entry uses it.
    fn is_over(&self, entry: &StaticEntry) -> bool {
        let is_used = |it| self.references.users(entry.dpid, it).next().is_some();
        entry.end.is_some_and(|end| end <= self.now)
            && !Reference::of(&entry.wanted).is_some_and(is_used)
    }

    fn put(&mut self, entry: Arc<StaticEntry>) {
        let number = entry.number;
        self.places.insert((entry.dpid, Place::of(&entry.wanted)), number);
        self.numbers.insert(entry.name.clone(), number);
        self.references.add(&entry);
        self.ends.extend(entry.end.map(|end| (end, number)));
        self.by_number.insert(number, entry);
    }

    fn take(&mut self, number: u32) -> Option<Arc<StaticEntry>> {
        let entry = self.by_number.remove(&number)?;
        self.references.remove(&entry);
        self.overdue.remove(&number);
        self.numbers.remove(&entry.name);
        let place = (entry.dpid, Place::of(&entry.wanted));
        // Another entry of the same order may have it already.
        if self.places.get(&place) == Some(&number) {
            self.places.remove(&place);
        }
        if let Some(end) = entry.end {
            self.ends.remove(&(end, number));
        }
        Some(entry)
    }
}
