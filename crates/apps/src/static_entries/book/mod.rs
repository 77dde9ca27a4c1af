//! The entries by name, and the checks of an order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use bellrock_api::openflow::{Match, Meter};
use bellrock_api::{Dpid, PriorityBand};
use bellrock_services::desired::DesiredEntry;

use super::references::{Reference, References, Unresolved};
use crate::provisioning::FIRST_GROUP;

/// Maximum number of static entries of a controller.
pub const MAX_STATIC_ENTRIES: usize = 100_000;

/// Maximum length of an entry's name, in characters.
pub const MAX_ENTRY_NAME_CHARS: usize = 64;

/// A flow, group or meter that an operator wants in a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticEntry {
    /// Its name, by which it is changed and removed.
    pub name: String,
    /// Who may change and remove it.
    pub owner: String,
    /// Its switch.
    pub dpid: Dpid,
    /// What is wanted.
    pub wanted: DesiredEntry,
    /// When it is removed, in the time of [`bellrock_api::Network::now`].
    pub end: Option<Duration>,
    /// Its number among the intents of the app; 0 for the next free one.
    pub number: u32,
}

/// An order: what one owner sets and removes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticOrder {
    /// Who orders.
    pub owner: String,
    /// Entries to set. Those of the same names are replaced.
    pub set: Vec<StaticEntry>,
    /// Names of entries to remove.
    pub remove: Vec<String>,
    /// Whether to remove all other entries of this owner.
    pub replace: bool,
}

/// What an order has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticChange {
    /// Number of entries that are new, or differ from before.
    pub set: usize,
    /// Number of entries that were there before.
    pub unchanged: usize,
    /// Number of entries that were removed.
    pub removed: usize,
    /// The numbers of the entries of the order, and of the removed ones.
    pub numbers: BTreeSet<u32>,
    /// The names of the entries that are new, differ from before, or were removed.
    pub names: BTreeSet<String>,
    /// The entries that were removed or replaced, as they were.
    pub(super) before: Vec<StaticEntry>,
    /// Number of this change.
    pub(super) revision: u64,
}

/// Why an order has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NotSet {
    /// Index of the entry among those to set. `None`: one to remove.
    pub entry: Option<usize>,
    /// What is wrong, and what would be right.
    pub why: NotSetReason,
}

/// What is wrong with an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSetReason {
    /// The name is empty, too long or has other characters.
    #[error(
        "{0:?} is not a name of an entry; give 1 to {MAX_ENTRY_NAME_CHARS} letters, digits, `.`, `-`, `_` and `:`"
    )]
    Name(String),
    /// Two entries of the order have the same name.
    #[error("the name {0} is there twice")]
    Twice(String),
    /// The entry belongs to somebody else.
    #[error(
        "the entry {name} belongs to {owner}, and only an order of this owner changes it; with the command: --owner {owner}"
    )]
    Owner {
        /// Its name.
        name: String,
        /// Its owner.
        owner: String,
    },
    /// Another entry is the same flow, group or meter.
    #[error("the entry {other} is the same {what} of this switch")]
    Taken {
        /// `flow`, `group` or `meter`.
        what: &'static str,
        /// The other entry.
        other: String,
    },
    /// The priority is outside the app's.
    #[error("{0} is not a priority of a static flow; give 0 to {max}", max = PriorityBand::PRIORITIES - 1)]
    Priority(u16),
    /// The number of the group is not for operators.
    #[error("{0} is not a number of a static group; give 0 to {max}", max = FIRST_GROUP - 1)]
    Group(u32),
    /// The number of the meter is not for operators.
    #[error("{meter} is not a number of a static meter; give {first} to {max}", max = Meter::MAX)]
    Meter {
        /// The number.
        meter: u32,
        /// The first one that is free.
        first: u32,
    },
    /// There is no entry of this name.
    #[error("there is no entry {0}; `bellrock static list` shows all")]
    Missing(String),
    /// Another entry uses this group or meter.
    #[error(
        "{name} stays as it is: its {what} is used by the entry {user} of {owner}; remove that one before, or with it"
    )]
    InUse {
        /// The entry to remove or to change.
        name: String,
        /// What it is.
        what: Reference,
        /// The entry that uses it.
        user: String,
        /// The owner of that entry.
        owner: String,
    },
    /// The switch does not have a group or meter that the entry uses.
    #[error(
        "the switch has no {0}, and no static entry is it; set it before, or in the same order"
    )]
    Absent(Reference),
    /// There are too many entries.
    #[error("{MAX_STATIC_ENTRIES} entries is the maximum; this order would make it {0}")]
    Full(usize),
}

/// What identifies an entry in its switch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    Flow(u8, u16, Box<Match>),
    Group(u32),
    Meter(u32),
}

impl Place {
    fn of(wanted: &DesiredEntry) -> Self {
        match wanted {
            DesiredEntry::Flow(flow) => {
                Place::Flow(flow.table, flow.priority, Box::new(flow.matching.clone()))
            }
            DesiredEntry::Group(group) => Place::Group(group.id),
            DesiredEntry::Meter(meter) => Place::Meter(meter.id),
        }
    }

    fn what(&self) -> &'static str {
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

/// The groups and meters that these entries are.
fn places(entries: &[StaticEntry]) -> impl Iterator<Item = (Dpid, Reference)> {
    entries.iter().filter_map(|entry| Some((entry.dpid, Reference::of(&entry.wanted)?)))
}

/// All entries.
#[derive(Debug, Default)]
pub(super) struct Book {
    by_number: BTreeMap<u32, StaticEntry>,
    numbers: BTreeMap<String, u32>,
    /// The number of the entry at each place.
    places: HashMap<(Dpid, Place), u32>,
    ends: BTreeSet<(Duration, u32)>,
    /// Groups and meters that have ended, and stay because other entries use them.
    overdue: BTreeSet<u32>,
    /// Names of entries that have ended, which who keeps the entries has not removed yet.
    ended: BTreeSet<String>,
    references: References,
    last_number: u32,
    /// The change that has set each entry, by the entry's number.
    revisions: HashMap<u32, u64>,
    last_revision: u64,
    /// Meters up to this one belong to another app.
    last_reserved_meter: u32,
}

impl Book {
    pub(super) fn reserve_meters(&mut self, last: u32) {
        self.last_reserved_meter = last;
    }

    /// All entries by name.
    pub(super) fn entries(&self) -> impl Iterator<Item = &StaticEntry> {
        self.numbers.values().filter_map(|number| self.by_number.get(number))
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.by_number.keys().copied()
    }

    /// What is wanted under a number, and where.
    pub(super) fn wanted(&self, number: u32) -> Option<(Dpid, DesiredEntry)> {
        self.by_number.get(&number).map(|entry| (entry.dpid, entry.wanted.clone()))
    }

    /// When the next entry ends.
    pub(super) fn next_end(&self) -> Option<Duration> {
        let is_free = |number: &&u32| self.user_of(**number).is_none();
        match self.overdue.iter().find(is_free) {
            Some(_) => Some(Duration::ZERO),
            None => self.ends.first().map(|(end, _)| *end),
        }
    }

    /// Removes the entries that have ended. A group or meter stays until no entry uses it. Returns
    /// their numbers.
    pub(super) fn expire(&mut self, now: Duration) -> Vec<u32> {
        while let Some((end, number)) = self.ends.first().copied().filter(|(end, _)| *end <= now) {
            self.ends.remove(&(end, number));
            self.overdue.insert(number);
        }
        let mut ended = Vec::new();
        // A group may use another that has ended too.
        while let Some(number) =
            self.overdue.iter().copied().find(|number| self.user_of(*number).is_none())
        {
            let name = self.take(number).map(|entry| entry.name);
            self.ended.extend(name);
            ended.push(number);
        }
        ended
    }

    /// The names of entries that have ended since they were kept.
    pub(super) fn ended(&self) -> impl Iterator<Item = &str> {
        self.ended.iter().map(String::as_str)
    }

    /// Forgets names of entries that have ended: nobody keeps them any more.
    pub(super) fn forget_ended<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        for name in names {
            self.ended.remove(name);
        }
    }

    /// The entry of this name.
    pub(super) fn entry(&self, name: &str) -> Option<&StaticEntry> {
        self.numbers.get(name).and_then(|number| self.by_number.get(number))
    }

    /// Puts and removes entries as another controller has decided, which has checked them. Returns
    /// the numbers of the entries that differ now.
    pub(super) fn apply(&mut self, put: Vec<StaticEntry>, remove: &[String]) -> BTreeSet<u32> {
        self.last_revision += 1;
        let mut changed = BTreeSet::new();
        for name in remove {
            self.ended.remove(name);
            if let Some(number) = self.numbers.get(name).copied() {
                self.take(number);
                changed.insert(number);
            }
        }
        for entry in put {
            changed.insert(entry.number);
            let before = self.free(&entry).filter(|before| *before != entry.number);
            // It was removed and set again, or another name has its number now.
            let other = self.by_number.get(&entry.number).filter(|other| other.name != entry.name);
            let other = other.map(|other| other.number);
            for number in before.into_iter().chain(other) {
                self.take(number);
                changed.insert(number);
            }
            self.last_number = self.last_number.max(entry.number);
            self.put(entry);
        }
        changed
    }

    /// An entry that uses the group or meter of this number.
    fn user_of(&self, number: u32) -> Option<&StaticEntry> {
        let entry = self.by_number.get(&number)?;
        let used = Reference::of(&entry.wanted)?;
        let user = self.references.users(entry.dpid, used).next()?;
        self.by_number.get(&user)
    }

    /// Carries out orders of an earlier run. Their entries are not checked against each other's
    /// needs, since no order of this run has to be refused.
    pub(super) fn restore(
        &mut self,
        orders: impl IntoIterator<Item = StaticOrder>,
    ) -> Result<(), NotSet> {
        for order in orders {
            self.check(&order)?;
            self.carry_out(order, BTreeSet::new());
        }
        self.expire(Duration::ZERO);
        Ok(())
    }

    /// Carries out an order, or none of it.
    pub(super) fn change(
        &mut self,
        order: StaticOrder,
        now: Duration,
    ) -> Result<StaticChange, NotSet> {
        // Entries that have ended must not be in the way.
        let ended = self.expire(now);
        let removed = self.check(&order)?;
        self.check_references(&order, &removed)?;
        let mut change = self.carry_out(order, removed);
        change.numbers.extend(ended);
        Ok(change)
    }

    /// Carries out an order that is right.
    fn carry_out(&mut self, order: StaticOrder, removed: BTreeSet<u32>) -> StaticChange {
        let mut change = StaticChange { removed: removed.len(), ..StaticChange::default() };
        self.last_revision += 1;
        change.revision = self.last_revision;
        for number in removed {
            let before = self.take(number);
            change.names.extend(before.iter().map(|entry| entry.name.clone()));
            change.before.extend(before);
            change.numbers.insert(number);
        }
        // Entries of one order may exchange their places.
        let kept: Vec<Option<u32>> = order.set.iter().map(|entry| self.free(entry)).collect();
        for (mut entry, kept) in order.set.into_iter().zip(kept) {
            entry.number = match (kept, entry.number) {
                (Some(number), _) => number,
                (None, 0) => self.next_number(),
                (None, number) => number,
            };
            self.last_number = self.last_number.max(entry.number);
            let is_same = kept.is_some_and(|number| {
                self.by_number.get(&number).is_some_and(|before| *before == entry)
            });
            *(if is_same { &mut change.unchanged } else { &mut change.set }) += 1;
            if !is_same {
                change.names.insert(entry.name.clone());
            }
            change.numbers.insert(entry.number);
            change.before.extend(self.put(entry));
        }
        change
    }

    /// The groups and meters that the entries of an order use, and that no static entry is.
    pub(super) fn unresolved(&self, order: &StaticOrder) -> Vec<Unresolved> {
        let of_order: BTreeSet<(Dpid, Reference)> = places(&order.set).collect();
        let is_static = |dpid: Dpid, used: Reference| {
            of_order.contains(&(dpid, used)) || self.places.contains_key(&(dpid, used.into()))
        };
        let entries = order.set.iter().enumerate();
        let uses = entries.flat_map(|(index, entry)| {
            let used = Reference::used_by(&entry.wanted).into_iter();
            used.map(move |used| Unresolved { entry: index, dpid: entry.dpid, used })
        });
        uses.filter(|unresolved| !is_static(unresolved.dpid, unresolved.used)).collect()
    }

    /// Checks that an order takes no group or meter away from an entry that uses it, and that its
    /// entries use none that was taken away.
    fn check_references(&self, order: &StaticOrder, removed: &BTreeSet<u32>) -> Result<(), NotSet> {
        let of_order: BTreeSet<(Dpid, Reference)> = places(&order.set).collect();
        let replaced: HashMap<u32, usize> = order
            .set
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| Some((*self.numbers.get(&entry.name)?, index)))
            .collect();
        let mut users_of_order: HashMap<(Dpid, Reference), &StaticEntry> = HashMap::new();
        for entry in &order.set {
            let used = Reference::used_by(&entry.wanted).into_iter();
            users_of_order.extend(used.map(|used| ((entry.dpid, used), entry)));
        }
        let is_gone = |number: &u32| removed.contains(number) || replaced.contains_key(number);
        for number in removed.iter().chain(replaced.keys()) {
            let Some(entry) = self.by_number.get(number) else { continue };
            let Some(what) = Reference::of(&entry.wanted) else { continue };
            if of_order.contains(&(entry.dpid, what)) {
                continue;
            }
            let mut users = self.references.users(entry.dpid, what);
            let user = users.find(|user| !is_gone(user)).and_then(|user| self.by_number.get(&user));
            let of_order = users_of_order.get(&(entry.dpid, what)).copied();
            if let Some(user) = user.or(of_order) {
                let why = NotSetReason::InUse {
                    name: entry.name.clone(),
                    what,
                    user: user.name.clone(),
                    owner: user.owner.clone(),
                };
                return Err(NotSet { entry: replaced.get(number).copied(), why });
            }
        }
        let was_static =
            |unresolved: &Unresolved| self.references.was_static(unresolved.dpid, unresolved.used);
        match self.unresolved(order).into_iter().find(was_static) {
            Some(Unresolved { entry, used, .. }) => {
                Err(NotSet { entry: Some(entry), why: NotSetReason::Absent(used) })
            }
            None => Ok(()),
        }
    }

    /// Takes a change back. What later changes have set or removed stays as it is. Returns the
    /// numbers of the entries that differ now.
    pub(super) fn undo(&mut self, change: &StaticChange) -> BTreeSet<u32> {
        let is_of_it = |number: &u32| self.revisions.get(number) == Some(&change.revision);
        let mut numbers: BTreeSet<u32> = change.numbers.iter().copied().filter(is_of_it).collect();
        numbers.iter().for_each(|number| drop(self.take(*number)));
        for before in &change.before {
            let place = (before.dpid, Place::of(&before.wanted));
            let is_free = !self.by_number.contains_key(&before.number)
                && !self.numbers.contains_key(&before.name)
                && !self.places.contains_key(&place);
            if is_free {
                numbers.insert(before.number);
                self.put(before.clone());
            }
        }
        numbers
    }

    /// Returns the numbers of the entries to remove, if all of the order is right.
    fn check(&self, order: &StaticOrder) -> Result<BTreeSet<u32>, NotSet> {
        let mut names = BTreeMap::new();
        for (index, entry) in order.set.iter().enumerate() {
            let wrong = |why| NotSet { entry: Some(index), why };
            self.check_entry(entry, &order.owner).map_err(wrong)?;
            if names.insert(&*entry.name, index).is_some() {
                return Err(wrong(NotSetReason::Twice(entry.name.clone())));
            }
        }
        let mut removed = BTreeSet::new();
        for name in &order.remove {
            let wrong = |why| NotSet { entry: None, why };
            let number = *self
                .numbers
                .get(name)
                .ok_or_else(|| wrong(NotSetReason::Missing(name.clone())))?;
            self.check_owner(number, &order.owner).map_err(wrong)?;
            if names.contains_key(&**name) {
                return Err(wrong(NotSetReason::Twice(name.clone())));
            }
            removed.insert(number);
        }
        if order.replace {
            let others = self.by_number.values().filter(|entry| entry.owner == order.owner);
            let others = others.filter(|entry| !names.contains_key(&*entry.name));
            removed.extend(others.map(|entry| entry.number));
        }
        self.check_places(order, &names, &removed)?;
        let replaced = names.keys().filter(|name| self.numbers.contains_key(**name)).count();
        let after = self.by_number.len() - removed.len() + names.len() - replaced;
        match after > MAX_STATIC_ENTRIES {
            true => Err(NotSet { entry: None, why: NotSetReason::Full(after) }),
            false => Ok(removed),
        }
    }

    fn check_entry(&self, entry: &StaticEntry, owner: &str) -> Result<(), NotSetReason> {
        let is_name_char = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
        let is_name = !entry.name.is_empty()
            && entry.name.len() <= MAX_ENTRY_NAME_CHARS
            && entry.name.chars().all(is_name_char);
        if !is_name {
            return Err(NotSetReason::Name(entry.name.clone()));
        }
        match &entry.wanted {
            DesiredEntry::Flow(flow) if flow.priority >= PriorityBand::PRIORITIES => {
                return Err(NotSetReason::Priority(flow.priority));
            }
            DesiredEntry::Group(group) if group.id >= FIRST_GROUP => {
                return Err(NotSetReason::Group(group.id));
            }
            DesiredEntry::Meter(meter)
                if meter.id <= self.last_reserved_meter || meter.id > Meter::MAX =>
            {
                let first = self.last_reserved_meter + 1;
                return Err(NotSetReason::Meter { meter: meter.id, first });
            }
            _ => {}
        }
        match self.numbers.get(&entry.name) {
            Some(number) => self.check_owner(*number, owner),
            None => Ok(()),
        }
    }

    fn check_owner(&self, number: u32, owner: &str) -> Result<(), NotSetReason> {
        match self.by_number.get(&number) {
            Some(entry) if entry.owner != owner => {
                Err(NotSetReason::Owner { name: entry.name.clone(), owner: entry.owner.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Checks that no two entries would be the same flow, group or meter of a switch.
    fn check_places(
        &self,
        order: &StaticOrder,
        names: &BTreeMap<&str, usize>,
        removed: &BTreeSet<u32>,
    ) -> Result<(), NotSet> {
        let mut of_order: HashMap<(Dpid, Place), &str> = HashMap::new();
        for (index, entry) in order.set.iter().enumerate() {
            let place = (entry.dpid, Place::of(&entry.wanted));
            let there = self.places.get(&place).filter(|number| !removed.contains(number));
            let there = there.and_then(|number| self.by_number.get(number));
            let there = there.filter(|other| !names.contains_key(&*other.name));
            let other = there.map(|other| &*other.name).or_else(|| of_order.get(&place).copied());
            if let Some(other) = other {
                let why = NotSetReason::Taken { what: place.1.what(), other: other.to_owned() };
                return Err(NotSet { entry: Some(index), why });
            }
            of_order.insert(place, &entry.name);
        }
        Ok(())
    }

    /// Frees the place of the entry with this name. Returns its number.
    fn free(&mut self, entry: &StaticEntry) -> Option<u32> {
        let number = *self.numbers.get(&entry.name)?;
        let before = self.by_number.get(&number)?;
        let place = (before.dpid, Place::of(&before.wanted));
        self.leave(&place, number);
        Some(number)
    }

    /// Frees a place, unless another entry has it meanwhile.
    fn leave(&mut self, place: &(Dpid, Place), number: u32) {
        if self.places.get(place) == Some(&number) {
            self.places.remove(place);
        }
    }

    /// Puts an entry under its number. Returns the one that was there.
    fn put(&mut self, entry: StaticEntry) -> Option<StaticEntry> {
        let number = entry.number;
        self.revisions.insert(number, self.last_revision);
        self.places.insert((entry.dpid, Place::of(&entry.wanted)), number);
        self.numbers.insert(entry.name.clone(), number);
        let end = entry.end;
        if let Some(before) = self.by_number.get(&number) {
            self.references.remove(before);
        }
        self.references.add(&entry);
        self.ended.remove(&entry.name);
        let before = self.by_number.insert(number, entry);
        self.overdue.remove(&number);
        if let Some(end) = before.as_ref().and_then(|before| before.end) {
            self.ends.remove(&(end, number));
        }
        self.ends.extend(end.map(|end| (end, number)));
        before
    }

    fn take(&mut self, number: u32) -> Option<StaticEntry> {
        let entry = self.by_number.remove(&number)?;
        self.references.remove(&entry);
        self.overdue.remove(&number);
        self.revisions.remove(&number);
        self.numbers.remove(&entry.name);
        self.leave(&(entry.dpid, Place::of(&entry.wanted)), number);
        if let Some(end) = entry.end {
            self.ends.remove(&(end, number));
        }
        Some(entry)
    }

    /// The next number that no entry has. 0 is for flows of handlers.
    fn next_number(&mut self) -> u32 {
        loop {
            self.last_number = self.last_number.checked_add(1).unwrap_or(1);
            if !self.by_number.contains_key(&self.last_number) {
                return self.last_number;
            }
        }
    }
}

#[cfg(test)]
mod tests;
