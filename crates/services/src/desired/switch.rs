//! The state of one switch that is up, and the changes to send to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use bellrock_api::{ChangeOutcome, Error, FlowKey, Refusal, SwitchInfo, Version};

use super::compare::{ChangeResult, Difference, DueChange, RefusedChanges};
use super::order::MissingEntries;
use super::read::KnownEntries;
use super::wanted::WantedEntries;
use super::{AUDIT_EVERY, MissingReason, READ_AGAIN, REFUSED_AGAIN};
use crate::programming::DRAIN;

/// Time after which changes that could not be sent are sent again. Too much waits for the switch,
/// or it has disconnected, which will be noticed.
const FULL_AGAIN: Duration = Duration::from_millis(100);

/// See the [module](self).
pub(super) struct DesiredSwitch {
    pub(super) since: Duration,
    pub(super) version: Version,
    /// Its reported and confirmed entries, without those under way. `None` before the first report.
    pub(super) known: Option<KnownEntries>,
    pub(super) reading: ReadState,
    /// Entries of a kind that was not requested yet are wanted. It is requested before changes are
    /// sent.
    pub(super) lacks_objects: bool,
    pub(super) audit: Audit,
    /// It was reported that the switch does not report its tables.
    pub(super) is_untold: bool,
    /// It has reported its tables for the first time, and they are not compared yet.
    pub(super) is_fresh: bool,
    pub(super) refused: RefusedChanges,
    pub(super) refused_until: Option<Duration>,
    /// Number of refusals.
    pub(super) refusals: u64,
    /// Why its version cannot express a wanted entry.
    unsayable: Option<Error>,
    /// Numbers of entries that are wanted, and that are installed.
    pub(super) wanted: usize,
    pub(super) installed: usize,
    /// Entries to add, by distance from the destination; groups and meters first.
    adds: BTreeMap<Option<u32>, Vec<DueChange>>,
    /// Intents with entries that the switch cannot have, and why.
    stuck: BTreeMap<u32, MissingReason>,
    /// Intents in `stuck` whose missing entry is a group or a meter.
    without_groups: BTreeSet<u32>,
    /// Flows to remove.
    leaving: Vec<Leaving>,
    /// Intents of flows that the switch refuses to remove.
    staying: Vec<u32>,
    /// Numbers of unwanted flows of no intent. They are removed if the number becomes an intent.
    pub(super) strangers: BTreeSet<u32>,
    /// Intents of sent changes, until the switch has confirmed them or reported its tables.
    unconfirmed: BTreeSet<u32>,
    /// Groups and meters to remove.
    unused: Vec<DueChange>,
    /// Number of changes under way. Further changes wait for the next program.
    under_way: usize,
    /// It was compared since these were sent.
    is_overtaken: bool,
    /// Nothing is sent before this time.
    not_before: Duration,
}

/// Whether the tables are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadState {
    /// They are not.
    Not,
    /// At this time, or later.
    At(Duration),
    /// They are being read.
    Now,
}

/// Whether the tables are to be audited, although no change is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audit {
    /// No: they were never reported.
    Not,
    /// At this time, or later.
    At(Duration),
    /// They are being read.
    Now,
    /// They are being read, but changes were sent meanwhile: the result is of no single time.
    Overtaken,
}

/// A flow to remove.
struct Leaving {
    due: DueChange,
    /// Since when no flow leads packets to it.
    free_since: Option<Duration>,
}

/// A change that was sent, and the entry before it, if known.
pub(super) struct SentChange {
    pub(super) due: DueChange,
    distance: Option<u32>,
    before: Option<ChangeResult>,
}

/// What to do after a program has ended.
#[derive(Default)]
pub(super) struct AfterProgram {
    /// Intents, and distances of flows, of the entries that were added.
    pub(super) made: BTreeSet<(u32, Option<u32>)>,
    /// Reasons why the switch has refused changes, each once.
    pub(super) refused: Vec<Refusal>,
    /// Whether the switch has to be compared again.
    pub(super) compare: bool,
}

impl DesiredSwitch {
    pub(super) fn new(info: &SwitchInfo) -> Self {
        DesiredSwitch {
            since: info.since,
            version: info.version,
            known: None,
            reading: ReadState::At(Duration::ZERO),
            lacks_objects: false,
            audit: Audit::Not,
            is_untold: false,
            is_fresh: false,
            refused: RefusedChanges::default(),
            refused_until: None,
            refusals: 0,
            unsayable: None,
            wanted: 0,
            installed: 0,
            adds: BTreeMap::new(),
            stuck: BTreeMap::new(),
            without_groups: BTreeSet::new(),
            leaving: Vec::new(),
            staying: Vec::new(),
            strangers: BTreeSet::new(),
            unconfirmed: BTreeSet::new(),
            unused: Vec::new(),
            under_way: 0,
            is_overtaken: false,
            not_before: Duration::ZERO,
        }
    }

    /// Whether its entries are known, except those under way.
    pub(super) fn is_read(&self) -> bool {
        self.known.is_some() && self.reading == ReadState::Not
    }

    /// Why a wanted entry is missing.
    pub(super) fn why_not(&self) -> Option<MissingReason> {
        self.refused
            .last()
            .map(MissingReason::Refused)
            .or(self.unsayable.map(MissingReason::Unsayable))
    }

    /// Number of changes to send.
    pub(super) fn changes(&self) -> usize {
        self.adds.values().map(Vec::len).sum::<usize>() + self.leaving.len()
    }

    /// Number of changes that are not confirmed: those under way, and those to send.
    pub(super) fn unconfirmed_changes(&self) -> usize {
        self.under_way + self.changes()
    }

    /// Takes over the result of a comparison.
    pub(super) fn compared(&mut self, found: Difference) {
        let groups = found.stuck.iter().filter(|(_, at, _)| at.is_none());
        self.without_groups = groups.map(|(intent, ..)| *intent).collect();
        let shadowed = found.shadowed.iter().map(|intent| (*intent, MissingReason::Shadowed));
        let stuck = found.stuck.iter().map(|(intent, _, why)| (*intent, *why));
        self.stuck = shadowed.chain(stuck).collect();
        (self.staying, self.strangers) = (found.staying, found.strangers);
        (self.wanted, self.installed) = (found.wanted, found.installed);
        self.unsayable = found.unsayable;
        self.adds = found.adds;
        self.unused = found.unused;
        let before: HashMap<FlowKey, Duration> = self
            .leaving
            .drain(..)
            .filter_map(|old| Some((old.due.made.flow_key()?.clone(), old.free_since?)))
            .collect();
        let since = |due: &DueChange| before.get(due.made.flow_key()?).copied();
        let leaving = found.leftovers.into_iter();
        self.leaving = leaving.map(|due| Leaving { free_since: since(&due), due }).collect();
        self.is_overtaken = self.under_way > 0;
    }

    /// Notes which flows to remove are `free`: no flow of their intent leads packets to them any
    /// more. Returns when the first may be removed.
    pub(super) fn note_free(
        &mut self,
        now: Duration,
        is_free: impl Fn(u32) -> bool,
    ) -> Option<Duration> {
        for leaving in self.leaving.iter_mut().filter(|leaving| leaving.free_since.is_none()) {
            leaving.free_since = is_free(leaving.due.intent).then_some(now);
        }
        self.leaving.iter().filter_map(Leaving::goes_at).min()
    }

    /// Whether there are flows to remove.
    pub(super) fn has_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Returns the intents with flows that are to be removed, or may be: changes are under way.
    pub(super) fn leaving(&self) -> impl Iterator<Item = u32> {
        let leaving = self.leaving.iter().map(|leaving| leaving.due.intent);
        leaving.chain(self.unconfirmed.iter().copied()).chain(self.staying.iter().copied())
    }

    /// Takes the tables that the switch has reported.
    pub(super) fn told(&mut self, now: Duration, mut known: KnownEntries) {
        self.is_fresh = self.known.is_none();
        (self.reading, self.is_untold) = (ReadState::Not, known.unreported.is_some());
        if let Some(before) = self.known.take() {
            known.keep_unreported(before);
        }
        self.known = Some(known);
        self.unconfirmed.clear();
        self.audit = Audit::At(now + AUDIT_EVERY);
    }

    /// Whether to request groups or meters now: not while changes are under way.
    pub(super) fn is_asked_for_objects(&self) -> bool {
        self.lacks_objects && self.is_read() && self.under_way == 0
    }

    /// Returns the intents with entries that the switch cannot have, and why.
    pub(super) fn stuck(&self) -> impl Iterator<Item = (u32, MissingReason)> {
        self.stuck.iter().map(|(intent, why)| (*intent, *why))
    }

    /// Returns when changes can be sent, unless a reply is awaited first.
    pub(super) fn sends_at(&self) -> Option<Duration> {
        let is_free = self.under_way == 0 && !self.lacks_objects;
        (self.is_read() && is_free).then_some(self.not_before)
    }

    /// Takes the changes that can be sent now. They are under way from then on.
    pub(super) fn take_program(
        &mut self,
        now: Duration,
        book: &WantedEntries,
        lacking: &MissingEntries,
    ) -> Vec<SentChange> {
        let mut going: Vec<(Option<u32>, DueChange)> = Vec::new();
        let groups = self.adds.remove(&None).unwrap_or_default();
        going.extend(groups.into_iter().map(|due| (None, due)));
        if going.is_empty() {
            for (at, dues) in &mut self.adds {
                let goes = |due: &mut DueChange| {
                    let is_next = || lacking.nearest(due.intent) >= *at;
                    let waits = book.is_ordered(due.intent) && !is_next();
                    !waits && !self.without_groups.contains(&due.intent)
                };
                going.extend(dues.extract_if(.., goes).map(|due| (*at, due)));
            }
            self.adds.retain(|_, dues| !dues.is_empty());
        }
        let goes = |leaving: &mut Leaving| leaving.goes_at().is_some_and(|at| at <= now);
        let leaving = self.leaving.extract_if(.., goes);
        going.extend(leaving.map(|leaving| (None, leaving.due)));
        if going.is_empty() && self.uses_nothing_old() {
            going.extend(self.unused.drain(..).map(|due| (None, due)));
        }
        (self.under_way, self.is_overtaken) = (going.len(), false);
        if self.under_way > 0 && self.audit == Audit::Now {
            self.audit = Audit::Overtaken;
        }
        self.unconfirmed.extend(going.iter().map(|(_, due)| due.intent));
        let known = &mut self.known;
        let send = |(distance, due): (Option<u32>, DueChange)| {
            let before = known.as_mut().and_then(|known| known.forget(&due.made));
            SentChange { due, distance, before }
        };
        going.into_iter().map(send).collect()
    }

    /// Whether no flow of the app may use unwanted groups or meters: flows go with their meter.
    fn uses_nothing_old(&self) -> bool {
        let known = self.known.as_ref();
        let replaces = |due: &DueChange| match &due.made {
            ChangeResult::Flow(told) => {
                known.is_some_and(|known| known.flows.contains_key(&told.key))
            }
            _ => false,
        };
        let is_replaced = self.adds.values().flatten().any(replaces);
        self.leaving.is_empty() && self.staying.is_empty() && self.stuck.is_empty() && !is_replaced
    }

    /// Sends refused changes of these intents again. Returns whether there were any.
    pub(super) fn ask_again(&mut self, intents: &BTreeSet<u32>) -> bool {
        let forgot = self.refused.forget(intents);
        if self.refused.is_empty() {
            self.refused_until = None;
        }
        forgot
    }

    /// Takes the tables of an audit. Returns how many flows others changed, removed or added.
    pub(super) fn audited(&mut self, now: Duration, told: Option<KnownEntries>) -> usize {
        let audit = std::mem::replace(&mut self.audit, Audit::At(now + AUDIT_EVERY));
        let is_unreported = |told: &KnownEntries| told.unreported.is_some();
        self.is_untold &= told.as_ref().is_none_or(is_unreported);
        let (Some(known), Some(mut told), Audit::Now) = (&mut self.known, told, audit) else {
            return 0;
        };
        let altered = if told.unreported.is_none() { known.altered(&told) } else { 0 };
        told.keep_unreported(std::mem::take(known));
        *known = told;
        altered
    }

    /// Notes the outcomes of a program.
    pub(super) fn ended(
        &mut self,
        now: Duration,
        all: Vec<SentChange>,
        outcomes: Vec<ChangeOutcome>,
    ) -> AfterProgram {
        let mut ended = AfterProgram { compare: self.is_overtaken, ..AfterProgram::default() };
        (self.under_way, self.is_overtaken) = (0, false);
        self.unconfirmed.clear();
        for (SentChange { due, distance, before }, outcome) in all.into_iter().zip(outcomes) {
            let known = match outcome {
                ChangeOutcome::Installed => {
                    if due.made.adds() {
                        self.installed += 1;
                        ended.made.insert((due.intent, distance));
                    }
                    Some(due.made)
                }
                ChangeOutcome::Refused(why) => {
                    self.refusals += 1;
                    self.refused_until.get_or_insert(now + REFUSED_AGAIN);
                    self.refused.note(due, why);
                    // A full table refuses thousands of flows: each reason is reported once.
                    if !ended.refused.contains(&why) {
                        ended.refused.push(why);
                    }
                    before
                }
                ChangeOutcome::NotSent(_) | ChangeOutcome::Withheld => {
                    self.not_before = now + FULL_AGAIN;
                    before
                }
                // The change may be in place or not: the next read reports it.
                ChangeOutcome::Unknown(_) => {
                    self.reading = ReadState::At(now + READ_AGAIN);
                    self.unconfirmed.insert(due.intent);
                    None
                }
            };
            // Installed and refused entries may have the same distance.
            ended.compare |= outcome != ChangeOutcome::Installed || !self.stuck.is_empty();
            if let (Some(all), Some(known)) = (&mut self.known, known) {
                all.note(known);
            }
        }
        ended
    }
}

impl Leaving {
    /// Returns when the flow may be removed: packets under way to it must have left.
    fn goes_at(&self) -> Option<Duration> {
        Some(self.free_since? + DRAIN)
    }
}
