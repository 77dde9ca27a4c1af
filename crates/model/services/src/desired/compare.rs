//! Compares the wanted entries of a switch with its actual ones.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use bellrock_api::openflow::{MAX_MESSAGE_LEN, Out};
use bellrock_api::{
    AppId, Change, Cookie, Deviation, Dpid, Error, FlowKey, Refusal, ReportedFlow, Version,
};

use super::not_kept::NotKept;
use super::order::{LackCause, MissingAtSwitch};
use super::read::{KnownEntries, is_reactive, wanted_group_text, wanted_meter_text};
use super::wanted::{WantedEntries, WantedEntry};
use super::{DesiredEntry, MissingReason};

/// A change to make, its intent, and its result.
#[derive(Debug, PartialEq)]
pub(super) struct DueChange {
    pub(super) intent: u32,
    pub(super) change: Change,
    pub(super) result: ChangeResult,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ChangeResult {
    Flow(ReportedFlow),
    NoFlow(FlowKey),
    Group(u32, String),
    Meter(u32, String),
    NoGroup(u32),
    NoMeter(u32),
}

/// The changes to make in a switch.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// Entries to add, by distance from the destination; groups and meters first.
    pub(super) additions: BTreeMap<Option<u32>, Vec<DueChange>>,
    /// Flows that are installed but not wanted.
    pub(super) leftovers: Vec<DueChange>,
    /// Intents of unwanted flows that the switch refuses to remove.
    pub(super) refused_removals: Vec<u32>,
    /// Numbers of unwanted flows that belong to no intent.
    pub(super) orphans: BTreeSet<u32>,
    /// Groups and meters that are installed but not wanted any more.
    pub(super) unused: Vec<DueChange>,
    /// Numbers of entries that are wanted, and that are installed.
    pub(super) wanted: usize,
    pub(super) installed: usize,
    /// Intents and distances of entries that the switch cannot have, and why.
    pub(super) impossible: Vec<(u32, Option<u32>, MissingReason)>,
    /// Intents of entries that the switch has, but reports otherwise or not always, and why.
    /// Entries that are farther from the destination do not wait for them.
    pub(super) doubtful: Vec<(u32, MissingReason)>,
    /// Intents with a flow whose key another intent has.
    pub(super) shadowed: Vec<u32>,
    /// Why the switch's version cannot express an entry.
    pub(super) unsupported: Option<Error>,
}

/// Changes that a switch has refused, so that they are not sent again at once.
#[derive(Debug, Default)]
pub(super) struct RefusedChanges {
    /// The last refused change at each place, and its intent.
    changes: HashMap<EntryKey, (u32, Change, Refusal)>,
    last: Option<Refusal>,
}

/// Identifies an entry in a switch.
#[derive(Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are flows")]
pub(super) enum EntryKey {
    Flow(FlowKey),
    Group(u32),
    Meter(u32),
}

impl RefusedChanges {
    pub(super) fn add(&mut self, DueChange { intent, change, result }: DueChange, why: Refusal) {
        self.changes.insert(result.key(), (intent, change, why));
        self.last = Some(why);
    }

    /// Forgets refused changes of these intents. Returns whether there were any.
    pub(super) fn remove_intents(&mut self, intents: &BTreeSet<u32>) -> bool {
        let before = self.changes.len();
        self.changes.retain(|_, (intent, ..)| !intents.contains(intent));
        if self.is_empty() {
            self.last = None;
        }
        self.changes.len() < before
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns why a change was refused, if it was.
    fn refusal(&self, change: &Change, result: &ChangeResult) -> Option<Refusal> {
        if self.changes.is_empty() {
            return None;
        }
        let refused = self
            .changes
            .get(&result.key())
            .filter(|(_, refused_change, _)| refused_change == change);
        refused.map(|(.., why)| *why)
    }

    /// Returns the last refusal.
    pub(super) fn last(&self) -> Option<Refusal> {
        self.last
    }
}

/// Changes that are not to be sent now.
#[derive(Clone, Copy)]
pub(super) struct HeldChanges<'h> {
    pub(super) refused: &'h RefusedChanges,
    pub(super) not_kept: &'h NotKept,
    pub(super) now: Duration,
}

impl HeldChanges<'_> {
    /// Returns why a change is not to be sent now.
    fn reason(&self, change: &Change, result: &ChangeResult) -> Option<MissingReason> {
        let refusal = self.refused.refusal(change, result).map(MissingReason::Refused);
        let held = || self.not_kept.held(self.now, change, result).map(MissingReason::NotKept);
        refusal.or_else(held)
    }

    /// Returns how the switch deviates from a wanted entry that it reports now, but does not keep.
    fn doubt(&self, entry: &WantedEntry) -> Option<Deviation> {
        if self.not_kept.is_empty() {
            return None;
        }
        let result = match &entry.wanted {
            DesiredEntry::Flow(_) => ChangeResult::Flow(entry.flow()?.1.as_ref().ok()?.clone()),
            DesiredEntry::Group(group) => ChangeResult::Group(group.id, wanted_group_text(group)),
            DesiredEntry::Meter(meter) => ChangeResult::Meter(meter.id, wanted_meter_text(meter)),
        };
        self.not_kept.doubtful(&result)
    }
}

/// Compares the wanted entries of a switch with its actual ones.
pub(super) fn difference(
    dpid: Dpid,
    book: &mut WantedEntries,
    known: &KnownEntries,
    held: HeldChanges<'_>,
    (app, version): (AppId, Version),
) -> Difference {
    let mut difference = Difference::default();
    book.normalize(dpid, app, version);
    // The intent that has each flow key, and its flow.
    let mut keys: HashMap<&FlowKey, (u32, &ReportedFlow)> = HashMap::new();
    // Number of them that are in the switch. Hashing matches is most of the work here.
    let mut known_keys = 0;
    let (mut groups, mut meters) = (BTreeSet::new(), BTreeSet::new());
    // If two intents have flows with the same key, the higher intent number wins.
    for (intent, entry) in book.entries(dpid).rev() {
        let distance = entry.flow_distance();
        let due = match &entry.wanted {
            DesiredEntry::Flow(_) => match entry.flow() {
                Some((flow, Ok(reported))) => {
                    match keys.entry(&reported.key) {
                        Entry::Occupied(winner) => {
                            let (other_intent, flow) = *winner.get();
                            if other_intent != intent && !is_same(flow, reported) {
                                difference.shadowed.push(intent);
                            }
                            continue;
                        }
                        Entry::Vacant(place) => place.insert((intent, reported)),
                    };
                    let installed = known.flows.get(&reported.key);
                    known_keys += usize::from(installed.is_some());
                    (installed != Some(reported))
                        .then(|| (Change::Add(flow.clone()), ChangeResult::Flow(reported.clone())))
                }
                Some((_, Err(error))) => {
                    difference.add_unsupported(intent, distance, *error);
                    continue;
                }
                None => continue,
            },
            DesiredEntry::Group(group) => {
                groups.insert(group.id);
                let text = wanted_group_text(group);
                let change = match known.groups.get(&group.id) {
                    Some(other) if *other == text => None,
                    Some(_) => Some(Change::ModifyGroup(group.clone())),
                    None => Some(Change::AddGroup(group.clone())),
                };
                change.map(|change| (change, ChangeResult::Group(group.id, text)))
            }
            DesiredEntry::Meter(meter) => {
                meters.insert(meter.id);
                let text = wanted_meter_text(meter);
                let change = match known.meters.get(&meter.id) {
                    Some(other) if *other == text => None,
                    Some(_) => Some(Change::ModifyMeter(meter.clone())),
                    None => Some(Change::AddMeter(meter.clone())),
                };
                change.map(|change| (change, ChangeResult::Meter(meter.id, text)))
            }
        };
        let Some((change, result)) = due else {
            difference.wanted += 1;
            match held.doubt(entry) {
                Some(why) => difference.doubtful.push((intent, MissingReason::NotKept(why))),
                None => difference.installed += 1,
            }
            continue;
        };
        // For flows, `book.tell` has checked whether the version can express them.
        if distance.is_none()
            && let Err(error) =
                change.encode(app, version, 0, &mut Out::with_capacity(MAX_MESSAGE_LEN))
        {
            difference.add_unsupported(intent, distance, error);
            continue;
        }
        difference.wanted += 1;
        if let Some(why) = held.reason(&change, &result) {
            match why {
                // The switch has the flow, in another form.
                MissingReason::NotKept(Deviation::Cookie | Deviation::Contents) => {
                    difference.doubtful.push((intent, why));
                }
                _ => difference.impossible.push((intent, distance, why)),
            }
        } else {
            difference.additions.entry(distance).or_default().push(DueChange {
                intent,
                change,
                result,
            });
        }
    }
    // Entries are sent in the order given.
    difference.additions.values_mut().for_each(|changes| changes.reverse());
    if known_keys < known.flows.len() {
        (difference.leftovers, difference.orphans) = leftovers(book, known, &keys);
    }
    difference.unused = unused(dpid, book, known, &groups, &meters);
    let is_refused = |due: &mut DueChange| held.reason(&due.change, &due.result).is_some();
    difference.refused_removals =
        difference.leftovers.extract_if(.., is_refused).map(|due| due.intent).collect();
    difference.unused.retain_mut(|due| !is_refused(due));
    difference
}

/// Compares only the flows of these intents, which had no entries in the switch before. All other
/// wanted entries must be installed. Returns the changes to make by distance, or `None` if one of
/// the flows takes the place of another: then all entries are to be compared.
pub(super) fn additions(
    dpid: Dpid,
    book: &mut WantedEntries,
    known: &KnownEntries,
    intents: &BTreeSet<u32>,
    (app, version): (AppId, Version),
) -> Option<BTreeMap<Option<u32>, Vec<DueChange>>> {
    book.normalize_of(dpid, intents, app, version);
    let mut keys = HashSet::new();
    let mut additions: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for intent in intents {
        for entry in book.entries_of(dpid, *intent) {
            let (flow, Ok(reported)) = entry.flow()? else { return None };
            if known.flows.contains_key(&reported.key) || !keys.insert(&reported.key) {
                return None;
            }
            additions.entry(entry.flow_distance()).or_default().push(DueChange {
                intent: *intent,
                change: Change::Add(flow.clone()),
                result: ChangeResult::Flow(reported.clone()),
            });
        }
    }
    Some(additions)
}

/// Returns the missing entries of a switch that lacks nothing else.
pub(super) fn missing_additions(
    additions: &BTreeMap<Option<u32>, Vec<DueChange>>,
) -> MissingAtSwitch {
    let missing = additions.iter().flat_map(|(distance, changes)| {
        changes.iter().map(|due| ((due.intent, *distance), LackCause::Due))
    });
    missing.collect()
}

impl Difference {
    /// The switch's version cannot express an entry.
    fn add_unsupported(&mut self, intent: u32, distance: Option<u32>, why: Error) {
        self.wanted += 1;
        self.impossible.push((intent, distance, MissingReason::Unsayable(why)));
        self.unsupported = Some(why);
    }

    /// Returns the missing entries of the switch.
    pub(super) fn missing(&self) -> MissingAtSwitch {
        let stuck =
            self.impossible.iter().map(|(intent, at, _)| ((*intent, *at), LackCause::Stuck));
        let mut missing: MissingAtSwitch = stuck.collect();
        missing.extend(missing_additions(&self.additions));
        missing
    }
}

/// Returns the groups and meters that were wanted earlier in this run and are still installed.
fn unused(
    dpid: Dpid,
    book: &WantedEntries,
    known: &KnownEntries,
    groups: &BTreeSet<u32>,
    meters: &BTreeSet<u32>,
) -> Vec<DueChange> {
    let due = |change, result| DueChange { intent: 0, change, result };
    let earlier =
        |objects: &BTreeMap<Dpid, BTreeSet<u32>>| objects.get(&dpid).cloned().unwrap_or_default();
    let groups = earlier(&book.groups)
        .into_iter()
        .filter(|id| !groups.contains(id) && known.groups.contains_key(id))
        .map(|id| due(Change::RemoveGroup(id), ChangeResult::NoGroup(id)));
    let meters = earlier(&book.meters)
        .into_iter()
        .filter(|id| !meters.contains(id) && known.meters.contains_key(id))
        .map(|id| due(Change::RemoveMeter(id), ChangeResult::NoMeter(id)));
    groups.chain(meters).collect()
}

/// Whether two flows differ in their cookie at most: two intents may want the same flow.
fn is_same(one: &ReportedFlow, other: &ReportedFlow) -> bool {
    let mut one = one.clone();
    one.cookie = other.cookie;
    one == *other
}

/// Returns the flows to remove, and the numbers of unwanted flows that belong to no intent.
fn leftovers(
    book: &WantedEntries,
    known: &KnownEntries,
    wanted: &HashMap<&FlowKey, (u32, &ReportedFlow)>,
) -> (Vec<DueChange>, BTreeSet<u32>) {
    let number = |reported: &ReportedFlow| (reported.cookie & !Cookie::MASK) as u32;
    let (mut removed, mut orphans) = (Vec::new(), BTreeSet::new());
    for reported in known.flows.values().filter(|told| !wanted.contains_key(&told.key)) {
        let was_intent = book.known_intents.contains(&number(reported));
        if !was_intent {
            orphans.insert(number(reported));
        }
        let is_obsolete = book.complete && !book.unset.contains(&number(reported));
        if was_intent || is_obsolete && !is_reactive(reported) {
            removed.push(reported);
        }
    }
    // The table has no order, and a repeatable run needs one.
    removed.sort_by_cached_key(|reported| {
        (reported.key.table, reported.key.priority, reported.key.matching.to_string())
    });
    let due = |reported: &ReportedFlow| DueChange {
        intent: number(reported),
        change: Change::RemoveReported(reported.clone()),
        result: ChangeResult::NoFlow(reported.key.clone()),
    };
    (removed.into_iter().map(due).collect(), orphans)
}

impl ChangeResult {
    pub(super) fn key(&self) -> EntryKey {
        match self {
            ChangeResult::Flow(reported) => EntryKey::Flow(reported.key.clone()),
            ChangeResult::NoFlow(key) => EntryKey::Flow(key.clone()),
            ChangeResult::Group(id, _) | ChangeResult::NoGroup(id) => EntryKey::Group(*id),
            ChangeResult::Meter(id, _) | ChangeResult::NoMeter(id) => EntryKey::Meter(*id),
        }
    }

    /// Returns the key of a flow.
    pub(super) fn flow_key(&self) -> Option<&FlowKey> {
        match self {
            ChangeResult::Flow(reported) => Some(&reported.key),
            ChangeResult::NoFlow(key) => Some(key),
            _ => None,
        }
    }

    /// Whether the result is an installed entry.
    pub(super) fn is_entry(&self) -> bool {
        matches!(self, ChangeResult::Flow(_) | ChangeResult::Group(..) | ChangeResult::Meter(..))
    }
}

impl KnownEntries {
    /// Whether the switch is as after a change with this result.
    pub(super) fn has(&self, result: &ChangeResult) -> bool {
        match result {
            ChangeResult::Flow(flow) => self.flows.get(&flow.key) == Some(flow),
            ChangeResult::NoFlow(key) => !self.flows.contains_key(key),
            ChangeResult::Group(id, text) => self.groups.get(id) == Some(text),
            ChangeResult::Meter(id, text) => self.meters.get(id) == Some(text),
            ChangeResult::NoGroup(id) => !self.groups.contains_key(id),
            ChangeResult::NoMeter(id) => !self.meters.contains_key(id),
        }
    }

    /// Forgets an entry that a change is about to change: its state is unknown until the change has
    /// ended. Returns the entry, to note it again if it stays.
    pub(super) fn remove(&mut self, result: &ChangeResult) -> Option<ChangeResult> {
        match result {
            ChangeResult::Flow(flow) => self.flows.remove(&flow.key).map(ChangeResult::Flow),
            ChangeResult::NoFlow(key) => self.flows.remove(key).map(ChangeResult::Flow),
            ChangeResult::Group(id, _) | ChangeResult::NoGroup(id) => {
                self.groups.remove(id).map(|text| ChangeResult::Group(*id, text))
            }
            ChangeResult::Meter(id, _) | ChangeResult::NoMeter(id) => {
                self.meters.remove(id).map(|text| ChangeResult::Meter(*id, text))
            }
        }
    }

    /// Notes the result of a confirmed change.
    pub(super) fn insert(&mut self, result: ChangeResult) {
        match result {
            ChangeResult::Flow(flow) => {
                self.flows.insert(flow.key.clone(), flow);
            }
            ChangeResult::NoFlow(key) => {
                self.flows.remove(&key);
            }
            ChangeResult::Group(id, text) => {
                self.groups.insert(id, text);
            }
            ChangeResult::Meter(id, text) => {
                self.meters.insert(id, text);
            }
            ChangeResult::NoGroup(id) => {
                self.groups.remove(&id);
            }
            ChangeResult::NoMeter(id) => {
                self.meters.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::{Action, Flow, MacAddr, Match, Port};

    use super::super::wanted::{BookChange, WantedEntry};
    use super::*;

    const SWITCH: Dpid = Dpid(1);

    fn flow(host: u8, port: u32) -> WantedEntry {
        let matching = Match::any().eth_dst(MacAddr([2, 0, 0, 0, 0, host]));
        let flow = Flow::new(matching).actions(&[Action::output(Port(port))]);
        WantedEntry::new(0, DesiredEntry::Flow(flow))
    }

    #[test]
    fn flows_of_new_intents_are_compared_alone_unless_one_takes_the_place_of_another() {
        let of_app = (AppId::new(2, "app").unwrap(), Version::V1_3);
        let mut book = WantedEntries::default();
        let mut known = KnownEntries::default();
        let mut add = |book: &mut WantedEntries, entries: Vec<(u32, WantedEntry)>| {
            for (intent, entry) in entries {
                book.set(intent, false, std::iter::once((SWITCH, entry)));
            }
            let change = book.take_changed(std::iter::empty()).remove(&SWITCH).unwrap();
            let BookChange::Added(intents) = change else { return None };
            let found = additions(SWITCH, book, &known, &intents, of_app)?;
            let (refused, not_kept) = (RefusedChanges::default(), NotKept::default());
            let now = Duration::ZERO;
            let held = HeldChanges { refused: &refused, not_kept: &not_kept, now };
            let all = difference(SWITCH, book, &known, held, of_app);
            assert_eq!(found, all.additions);
            assert!(all.leftovers.is_empty() && all.impossible.is_empty());
            let changes = found.into_values().flatten();
            let count = changes.map(|due| known.insert(due.result)).count();
            Some(count)
        };
        assert_eq!(add(&mut book, vec![(7, flow(1, 1)), (3, flow(2, 1))]), Some(2));
        assert_eq!(add(&mut book, vec![(8, flow(3, 1))]), Some(1));
        // Of a host that has a flow already, in the switch or in the same order.
        assert_eq!(add(&mut book, vec![(9, flow(3, 2))]), None);
        assert_eq!(add(&mut book, vec![(10, flow(4, 1)), (11, flow(4, 1))]), None);
        // Of an intent that had another flow.
        assert_eq!(add(&mut book, vec![(7, flow(5, 1))]), None);
    }
}
