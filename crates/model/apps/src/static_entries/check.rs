//! What an order would change, and whether it may.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::Meter;
use bellrock_api::{Dpid, Match, PriorityBand};
use bellrock_services::desired::DesiredEntry;

use super::index::{EntryIndex, Place};
use super::order::{
    MAX_ENTRY_NAME_CHARS, MAX_STATIC_ENTRIES, NotSet, NotSetReason, StaticChange, StaticEntry,
    StaticOrder,
};
use super::references::{Reference, Unresolved};
use crate::provisioning::FIRST_GROUP;

/// What an order that is right changes.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Entries to write.
    pub(super) set: Vec<Arc<StaticEntry>>,
    /// Names of entries to remove.
    pub(super) remove: BTreeSet<String>,
    pub(super) change: StaticChange,
}

/// The groups and meters that these entries are.
fn places(entries: &[StaticEntry]) -> impl Iterator<Item = (Dpid, Reference)> {
    entries.iter().filter_map(|entry| Some((entry.dpid, Reference::of(&entry.wanted)?)))
}

impl EntryIndex {
    /// Checks an order, and returns what it changes.
    ///
    /// # Errors
    /// The first entry or name that is wrong.
    pub(super) fn plan(&self, order: &StaticOrder) -> Result<Plan, NotSet> {
        let removed = self.check(order)?;
        self.check_references(order, &removed)?;
        let mut plan = Plan::default();
        for entry in removed.iter().filter_map(|number| self.by_number.get(number)) {
            plan.change.numbers.insert(entry.number);
            plan.remove.insert(entry.name.clone());
        }
        plan.change.removed = plan.remove.len();
        let mut last_number = self.last_number;
        for entry in &order.set {
            let before = self.entry(&entry.name);
            let number = match before {
                Some(before) => before.number,
                None => self.next_number(&mut last_number),
            };
            let end = entry.end.map(whole_seconds);
            let entry = StaticEntry { number, end, ..entry.clone() };
            plan.change.numbers.insert(number);
            if before.is_some_and(|before| **before == entry) {
                plan.change.unchanged += 1;
            } else {
                plan.change.set += 1;
                plan.set.push(Arc::new(entry));
            }
        }
        Ok(plan)
    }

    /// Checks all entries against each other, as orders of their owners would be.
    ///
    /// # Errors
    /// The first entry that is wrong, or contradicts another one.
    pub(super) fn check_all(&self) -> Result<(), NotSet> {
        let mut by_owner = BTreeMap::<&str, Vec<&Arc<StaticEntry>>>::new();
        for entry in self.by_number.values().chain(self.ended.values()) {
            by_owner.entry(&entry.owner).or_default().push(entry);
        }
        let mut checked = EntryIndex::default();
        checked.last_reserved_meter = self.last_reserved_meter;
        for (owner, entries) in by_owner {
            let set = entries.iter().map(|entry| StaticEntry::clone(entry)).collect();
            let owner = owner.to_owned();
            checked.check(&StaticOrder { owner, set, ..StaticOrder::default() })?;
            entries.into_iter().for_each(|entry| checked.set(&entry.name, Some(entry)));
        }
        Ok(())
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
            let user = user.map(|user| &**user);
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
        self.check_exact_flows(order, &names, &removed)?;
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

    /// Checks that no two flows without wildcards differ by a priority only that their switch does
    /// not keep: they would replace each other.
    fn check_exact_flows(
        &self,
        order: &StaticOrder,
        names: &BTreeMap<&str, usize>,
        removed: &BTreeSet<u32>,
    ) -> Result<(), NotSet> {
        let exact = |entry: &'_ StaticEntry| match &entry.wanted {
            DesiredEntry::Flow(flow) if self.exact_first.contains(&entry.dpid) => {
                flow.matching.is_exact().then(|| (entry.dpid, flow.matching.clone()))
            }
            _ => None,
        };
        let exact_flows: Vec<_> = order.set.iter().map(exact).collect();
        if exact_flows.iter().all(Option::is_none) {
            return Ok(());
        }
        let stays = |entry: &&Arc<StaticEntry>| {
            !removed.contains(&entry.number) && !names.contains_key(&*entry.name)
        };
        let others = self.by_number.values().filter(stays);
        let mut there: HashMap<(Dpid, Match), &str> =
            others.filter_map(|entry| Some((exact(entry)?, &*entry.name))).collect();
        for (index, flow) in exact_flows.into_iter().enumerate() {
            let Some(flow) = flow else { continue };
            if let Some(other) = there.insert(flow, &order.set[index].name) {
                let why = NotSetReason::SameExact(other.to_owned());
                return Err(NotSet { entry: Some(index), why });
            }
        }
        Ok(())
    }

    /// The next number after `last` that no entry has. 0 is for flows of handlers.
    fn next_number(&self, last: &mut u32) -> u32 {
        loop {
            *last = last.checked_add(1).unwrap_or(1);
            if !self.by_number.contains_key(last) {
                return *last;
            }
        }
    }
}

/// A store has the ends of entries in seconds.
fn whole_seconds(end: Duration) -> Duration {
    Duration::from_secs(end.as_secs() + u64::from(end.subsec_nanos() > 0))
}
