//! Compares the wanted entries of a switch with its actual ones.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bellrock_api::openflow::{MAX_MESSAGE_LEN, Out};
use bellrock_api::{AppId, Change, Cookie, Dpid, Error, FlowKey, Refusal, ReportedFlow, Version};

use super::order::{LackCause, MissingAtSwitch};
use super::read::{KnownEntries, group_wanted, is_reactive, meter_wanted};
use super::wanted::WantedEntries;
use super::{DesiredEntry, MissingReason};

/// A change to make, its intent, and its result.
#[derive(Debug)]
pub(super) struct DueChange {
    pub(super) intent: u32,
    pub(super) change: Change,
    pub(super) made: ChangeResult,
}

/// The result of a change.
#[derive(Clone, Debug)]
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
    pub(super) adds: BTreeMap<Option<u32>, Vec<DueChange>>,
    /// Flows that are installed but not wanted.
    pub(super) leftovers: Vec<DueChange>,
    /// Intents of unwanted flows that the switch refuses to remove.
    pub(super) staying: Vec<u32>,
    /// Numbers of unwanted flows that belong to no intent.
    pub(super) strangers: BTreeSet<u32>,
    /// Groups and meters that are installed but not wanted any more.
    pub(super) unused: Vec<DueChange>,
    /// Numbers of entries that are wanted, and that are installed.
    pub(super) wanted: usize,
    pub(super) installed: usize,
    /// Intents and distances of entries that the switch cannot have, and why.
    pub(super) stuck: Vec<(u32, Option<u32>, MissingReason)>,
    /// Intents with a flow whose key another intent has.
    pub(super) shadowed: Vec<u32>,
    /// Why the switch's version cannot express an entry.
    pub(super) unsayable: Option<Error>,
}

/// Changes that a switch has refused, so that they are not sent again at once.
#[derive(Debug, Default)]
pub(super) struct RefusedChanges {
    /// The last refused change at each place, and its intent.
    places: HashMap<EntryKey, (u32, Change, Refusal)>,
    last: Option<Refusal>,
}

/// Identifies an entry in a switch.
#[derive(Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are flows")]
enum EntryKey {
    Flow(FlowKey),
    Group(u32),
    Meter(u32),
}

impl RefusedChanges {
    pub(super) fn note(&mut self, DueChange { intent, change, made }: DueChange, why: Refusal) {
        self.places.insert(made.place(), (intent, change, why));
        self.last = Some(why);
    }

    /// Forgets refused changes of these intents. Returns whether there were any.
    pub(super) fn forget(&mut self, intents: &BTreeSet<u32>) -> bool {
        let before = self.places.len();
        self.places.retain(|_, (intent, ..)| !intents.contains(intent));
        if self.is_empty() {
            self.last = None;
        }
        self.places.len() < before
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns why a change was refused, if it was.
    fn why(&self, change: &Change, made: &ChangeResult) -> Option<Refusal> {
        if self.places.is_empty() {
            return None;
        }
        let refused = self.places.get(&made.place()).filter(|(_, its, _)| its == change);
        refused.map(|(.., why)| *why)
    }

    /// Returns the last refusal.
    pub(super) fn last(&self) -> Option<Refusal> {
        self.last
    }
}

/// Compares the wanted entries of a switch with its actual ones.
pub(super) fn difference(
    dpid: Dpid,
    book: &mut WantedEntries,
    known: &KnownEntries,
    refused: &RefusedChanges,
    (app, version): (AppId, Version),
) -> Difference {
    let mut all = Difference::default();
    book.tell(dpid, app, version);
    // The intent that has each flow key, and its flow.
    let mut keys: HashMap<&FlowKey, (u32, &ReportedFlow)> = HashMap::new();
    let (mut groups, mut meters) = (BTreeSet::new(), BTreeSet::new());
    // If two intents have flows with the same key, the higher intent number wins.
    for (intent, entry) in book.of(dpid).rev() {
        let at = entry.place();
        let due = match &entry.wanted {
            DesiredEntry::Flow(_) => match entry.flow() {
                Some((_, Ok(told))) if keys.contains_key(&told.key) => {
                    let (its, flow) = keys[&told.key];
                    if its != intent && !is_same(flow, told) {
                        all.shadowed.push(intent);
                    }
                    continue;
                }
                Some((flow, Ok(told))) => {
                    keys.insert(&told.key, (intent, told));
                    let is_there = known.flows.get(&told.key) == Some(told);
                    (!is_there)
                        .then(|| (Change::Add(flow.clone()), ChangeResult::Flow(told.clone())))
                }
                Some((_, Err(error))) => {
                    all.unsayable(intent, at, *error);
                    continue;
                }
                None => continue,
            },
            DesiredEntry::Group(group) => {
                groups.insert(group.id);
                let told = group_wanted(group);
                let change = match known.groups.get(&group.id) {
                    Some(other) if *other == told => None,
                    Some(_) => Some(Change::ModifyGroup(group.clone())),
                    None => Some(Change::AddGroup(group.clone())),
                };
                change.map(|change| (change, ChangeResult::Group(group.id, told)))
            }
            DesiredEntry::Meter(meter) => {
                meters.insert(meter.id);
                let told = meter_wanted(meter);
                let change = match known.meters.get(&meter.id) {
                    Some(other) if *other == told => None,
                    Some(_) => Some(Change::ModifyMeter(meter.clone())),
                    None => Some(Change::AddMeter(meter.clone())),
                };
                change.map(|change| (change, ChangeResult::Meter(meter.id, told)))
            }
        };
        let Some((change, made)) = due else {
            (all.wanted, all.installed) = (all.wanted + 1, all.installed + 1);
            continue;
        };
        // For flows, `book.tell` has checked whether the version can express them.
        if at.is_none()
            && let Err(error) =
                change.encode(app, version, 0, &mut Out::with_capacity(MAX_MESSAGE_LEN))
        {
            all.unsayable(intent, at, error);
            continue;
        }
        all.wanted += 1;
        if let Some(refusal) = refused.why(&change, &made) {
            all.stuck.push((intent, at, MissingReason::Refused(refusal)));
        } else {
            all.adds.entry(at).or_default().push(DueChange { intent, change, made });
        }
    }
    // Entries are sent in the order given.
    all.adds.values_mut().for_each(|dues| dues.reverse());
    (all.leftovers, all.strangers) = leftovers(book, known, &keys);
    all.unused = unused(dpid, book, known, &groups, &meters);
    let is_refused = |due: &mut DueChange| refused.why(&due.change, &due.made).is_some();
    all.staying = all.leftovers.extract_if(.., is_refused).map(|due| due.intent).collect();
    all.unused.retain_mut(|due| !is_refused(due));
    all
}

impl Difference {
    /// The switch's version cannot express an entry.
    fn unsayable(&mut self, intent: u32, at: Option<u32>, why: Error) {
        self.wanted += 1;
        self.stuck.push((intent, at, MissingReason::Unsayable(why)));
        self.unsayable = Some(why);
    }

    /// Returns the missing entries of the switch.
    pub(super) fn lacking(&self) -> MissingAtSwitch {
        let stuck = self.stuck.iter().map(|(intent, at, _)| ((*intent, *at), LackCause::Stuck));
        let mut lacking: MissingAtSwitch = stuck.collect();
        for (at, dues) in &self.adds {
            lacking.extend(dues.iter().map(|due| ((due.intent, *at), LackCause::Due)));
        }
        lacking
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
    let due = |change, made| DueChange { intent: 0, change, made };
    let once = |of: &BTreeMap<Dpid, BTreeSet<u32>>| of.get(&dpid).cloned().unwrap_or_default();
    let groups = once(&book.groups)
        .into_iter()
        .filter(|id| !groups.contains(id) && known.groups.contains_key(id))
        .map(|id| due(Change::RemoveGroup(id), ChangeResult::NoGroup(id)));
    let meters = once(&book.meters)
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
    let number = |told: &ReportedFlow| (told.cookie & !Cookie::MASK) as u32;
    let (mut gone, mut strangers) = (Vec::new(), BTreeSet::new());
    for told in known.flows.values().filter(|told| !wanted.contains_key(&told.key)) {
        let was_intent = book.known.contains(&number(told));
        if !was_intent {
            strangers.insert(number(told));
        }
        let is_over = book.complete && !book.unset.contains(&number(told));
        if was_intent || is_over && !is_reactive(told) {
            gone.push(told);
        }
    }
    // The table has no order, and a repeatable run needs one.
    gone.sort_by_cached_key(|told| {
        (told.key.table, told.key.priority, told.key.matching.to_string())
    });
    let due = |told: &ReportedFlow| DueChange {
        intent: number(told),
        change: Change::RemoveReported(told.clone()),
        made: ChangeResult::NoFlow(told.key.clone()),
    };
    (gone.into_iter().map(due).collect(), strangers)
}

impl ChangeResult {
    fn place(&self) -> EntryKey {
        match self {
            ChangeResult::Flow(told) => EntryKey::Flow(told.key.clone()),
            ChangeResult::NoFlow(key) => EntryKey::Flow(key.clone()),
            ChangeResult::Group(id, _) | ChangeResult::NoGroup(id) => EntryKey::Group(*id),
            ChangeResult::Meter(id, _) | ChangeResult::NoMeter(id) => EntryKey::Meter(*id),
        }
    }

    /// Returns the key of a flow.
    pub(super) fn flow_key(&self) -> Option<&FlowKey> {
        match self {
            ChangeResult::Flow(told) => Some(&told.key),
            ChangeResult::NoFlow(key) => Some(key),
            _ => None,
        }
    }

    /// Whether the result is an installed entry.
    pub(super) fn adds(&self) -> bool {
        matches!(self, ChangeResult::Flow(_) | ChangeResult::Group(..) | ChangeResult::Meter(..))
    }
}

impl KnownEntries {
    /// Returns the number of flows that differ from the known ones, except reactive flows.
    pub(super) fn altered(&self, told: &KnownEntries) -> usize {
        let stays = |(_, flow): &(&FlowKey, &ReportedFlow)| !is_reactive(flow);
        let differs = |(key, flow): &(&FlowKey, &ReportedFlow)| told.flows.get(key) != Some(flow);
        let is_new = |(key, _): &(&FlowKey, &ReportedFlow)| !self.flows.contains_key(key);
        self.flows.iter().filter(stays).filter(differs).count()
            + told.flows.iter().filter(stays).filter(is_new).count()
    }

    /// Forgets an entry that a change is about to change: its state is unknown until the change has
    /// ended. Returns the entry, to note it again if it stays.
    pub(super) fn forget(&mut self, made: &ChangeResult) -> Option<ChangeResult> {
        match made {
            ChangeResult::Flow(told) => self.flows.remove(&told.key).map(ChangeResult::Flow),
            ChangeResult::NoFlow(key) => self.flows.remove(key).map(ChangeResult::Flow),
            ChangeResult::Group(id, _) | ChangeResult::NoGroup(id) => {
                self.groups.remove(id).map(|told| ChangeResult::Group(*id, told))
            }
            ChangeResult::Meter(id, _) | ChangeResult::NoMeter(id) => {
                self.meters.remove(id).map(|told| ChangeResult::Meter(*id, told))
            }
        }
    }

    /// Notes the result of a confirmed change.
    pub(super) fn note(&mut self, made: ChangeResult) {
        match made {
            ChangeResult::Flow(told) => {
                self.flows.insert(told.key.clone(), told);
            }
            ChangeResult::NoFlow(key) => {
                self.flows.remove(&key);
            }
            ChangeResult::Group(id, told) => {
                self.groups.insert(id, told);
            }
            ChangeResult::Meter(id, told) => {
                self.meters.insert(id, told);
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
