//! What is wanted in a switch beside what is there: the difference.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bellrock_api::{
    AppId, Change, Cookie, Dpid, Error, FlowKey, Refusal, ToldFlow, ToldForm, Version,
};

use super::Wanted;
use super::book::{Book, Entry};
use super::read::{Known, group_wanted, is_reactive, meter_wanted};

/// A change that is to be made, for which intent, and what it is known by when it is made.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) intent: u32,
    pub(super) change: Change,
    pub(super) made: Made,
}

/// What is known of a switch after a change.
#[derive(Clone, Debug)]
pub(super) enum Made {
    Flow(ToldFlow),
    NoFlow(FlowKey),
    Group(u32, String),
    Meter(u32, String),
    NoGroup(u32),
    NoMeter(u32),
}

/// What has to change in a switch.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// By the distance from the destination; groups and meters first of all.
    pub(super) adds: BTreeMap<Option<u32>, Vec<Due>>,
    pub(super) removes: Vec<Due>,
    /// Groups and meters that no flow uses any more.
    pub(super) removes_after: Vec<Due>,
    /// How many things are wanted, and how many of them are there.
    pub(super) wanted: usize,
    pub(super) installed: usize,
    /// Intents, and the distances of what the switch cannot be given: it was refused, or its version
    /// cannot say it.
    pub(super) stuck: Vec<(u32, Option<u32>)>,
    /// Why not, of what its version cannot say.
    pub(super) unsayable: Option<Error>,
}

/// What a switch has refused, so that it is not asked again at once.
pub(super) type Refused = Vec<(Change, Refusal)>;

/// Compares.
pub(super) fn difference(
    dpid: Dpid,
    book: &Book,
    known: &Known,
    refused: &Refused,
    (app, version): (AppId, Version),
) -> Difference {
    let mut all = Difference::default();
    let mut form = ToldForm::new(version);
    let mut keys = HashSet::new();
    let (mut groups, mut meters) = (BTreeSet::new(), BTreeSet::new());
    let mut entries: Vec<(u32, &Entry)> = book.of(dpid).collect();
    // Where two intents want another flow in the same place, the one with the higher number has it.
    entries.reverse();
    for (intent, (distance, wanted)) in entries {
        let (at, due) = match wanted {
            Wanted::Flow(flow) => match form.of_flow(app, flow) {
                Ok(told) => {
                    if !keys.insert(told.key.clone()) {
                        continue;
                    }
                    let is_there = known.flows.get(&told.key) == Some(&told);
                    let change = Change::Add(flow.clone());
                    let due = Due { intent, change, made: Made::Flow(told) };
                    (Some(*distance), (!is_there).then_some(due))
                }
                Err(error) => {
                    all.wanted += 1;
                    all.stuck.push((intent, Some(*distance)));
                    all.unsayable = Some(error);
                    continue;
                }
            },
            Wanted::Group(group) => {
                groups.insert(group.id);
                let told = group_wanted(group);
                let change = match known.groups.get(&group.id) {
                    Some(other) if *other == told => None,
                    Some(_) => Some(Change::ModifyGroup(group.clone())),
                    None => Some(Change::AddGroup(group.clone())),
                };
                let made = Made::Group(group.id, told);
                (None, change.map(|change| Due { intent, change, made }))
            }
            Wanted::Meter(meter) => {
                meters.insert(meter.id);
                let told = meter_wanted(meter);
                let change = match known.meters.get(&meter.id) {
                    Some(other) if *other == told => None,
                    Some(_) => Some(Change::ModifyMeter(meter.clone())),
                    None => Some(Change::AddMeter(meter.clone())),
                };
                let made = Made::Meter(meter.id, told);
                (None, change.map(|change| Due { intent, change, made }))
            }
        };
        all.wanted += 1;
        match due {
            None => all.installed += 1,
            Some(due) if refused.iter().any(|(change, _)| *change == due.change) => {
                all.stuck.push((intent, at));
            }
            Some(due) => all.adds.entry(at).or_default().push(due),
        }
    }
    // What was given first is sent first.
    all.adds.values_mut().for_each(|dues| dues.reverse());
    all.removes = leftovers(book, known, &keys);
    all.removes_after = unused(dpid, book, known, &groups, &meters);
    all
}

/// The groups and meters that were wanted in this run and are there still.
fn unused(
    dpid: Dpid,
    book: &Book,
    known: &Known,
    groups: &BTreeSet<u32>,
    meters: &BTreeSet<u32>,
) -> Vec<Due> {
    let due = |change, made| Due { intent: 0, change, made };
    let once = |of: &BTreeMap<Dpid, BTreeSet<u32>>| of.get(&dpid).cloned().unwrap_or_default();
    let groups = once(&book.groups)
        .into_iter()
        .filter(|id| !groups.contains(id) && known.groups.contains_key(id))
        .map(|id| due(Change::RemoveGroup(id), Made::NoGroup(id)));
    let meters = once(&book.meters)
        .into_iter()
        .filter(|id| !meters.contains(id) && known.meters.contains_key(id))
        .map(|id| due(Change::RemoveMeter(id), Made::NoMeter(id)));
    groups.chain(meters).collect()
}

/// The flows that are there and not wanted.
fn leftovers(book: &Book, known: &Known, wanted: &HashSet<FlowKey>) -> Vec<Due> {
    let number = |told: &ToldFlow| (told.cookie & !Cookie::MASK) as u32;
    let goes = |told: &&ToldFlow| {
        let was_intent = book.known.contains(&number(told));
        !wanted.contains(&told.key) && (was_intent || book.complete && !is_reactive(told))
    };
    let mut gone: Vec<&ToldFlow> = known.flows.values().filter(goes).collect();
    // The table has no order, and a run that repeats has to have one.
    gone.sort_by_cached_key(|told| {
        (told.key.table, told.key.priority, told.key.matching.to_string())
    });
    gone.into_iter()
        .map(|told| Due {
            intent: number(told),
            change: Change::RemoveTold(told.clone()),
            made: Made::NoFlow(told.key.clone()),
        })
        .collect()
}

impl Known {
    /// A change was confirmed.
    pub(super) fn note(&mut self, made: Made) {
        match made {
            Made::Flow(told) => {
                self.flows.insert(told.key.clone(), told);
            }
            Made::NoFlow(key) => {
                self.flows.remove(&key);
            }
            Made::Group(id, told) => {
                self.groups.insert(id, told);
            }
            Made::Meter(id, told) => {
                self.meters.insert(id, told);
            }
            Made::NoGroup(id) => {
                self.groups.remove(&id);
            }
            Made::NoMeter(id) => {
                self.meters.remove(&id);
            }
        }
    }
}
