//! What is known of one switch that is up, and what it is to be sent.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use bellrock_api::{Error, FlowKey, Outcome, Refusal, SwitchInfo, Version};

use super::book::Book;
use super::compare::{Difference, Due, Made, Refused};
use super::order::Lacking;
use super::read::Known;
use super::{AUDIT_EVERY, READ_AGAIN, REFUSED_AGAIN, WhyNot};
use crate::programming::DRAIN;

/// After how long a switch that could not be sent something is sent it again: too much waits for it, or it
/// has gone, which will be told.
const FULL_AGAIN: Duration = Duration::from_millis(100);

/// See the [module](self).
pub(super) struct InSwitch {
    pub(super) since: Duration,
    pub(super) version: Version,
    /// What it has told and confirmed, but for what is on its way. `None` until it has told its tables.
    pub(super) known: Option<Known>,
    pub(super) reading: Reading,
    /// Something is wanted of a kind that it was not asked for: it is asked before it is sent anything.
    pub(super) lacks_objects: bool,
    pub(super) audit: Audit,
    /// It was told that it does not tell its tables.
    pub(super) is_untold: bool,
    /// It has told its tables for the first time, and they are not compared yet.
    pub(super) is_fresh: bool,
    pub(super) refused: Refused,
    pub(super) refused_until: Option<Duration>,
    /// How often it has refused something.
    pub(super) refusals: u64,
    /// Its version cannot say something that is wanted.
    unsayable: Option<Error>,
    /// Things wanted, and those of them that are there.
    pub(super) wanted: usize,
    pub(super) installed: usize,
    /// What is to be made, by the distance from the destination; groups and meters first of all.
    adds: BTreeMap<Option<u32>, Vec<Due>>,
    /// Intents that want something here which it cannot be given, and why not.
    stuck: BTreeMap<u32, WhyNot>,
    /// Those among them for which that is a group or a meter.
    without_groups: BTreeSet<u32>,
    /// Flows that are to go.
    leaving: Vec<Leaving>,
    /// Intents of flows that it refuses to remove.
    staying: Vec<u32>,
    /// Numbers of flows that are not wanted and of no intent. If one becomes an intent, they are to go.
    pub(super) strangers: BTreeSet<u32>,
    /// Intents of changes that were sent, until the switch has confirmed them, or told its tables.
    unconfirmed: BTreeSet<u32>,
    /// Groups and meters that are to go.
    unused: Vec<Due>,
    /// Changes that are on their way. What comes due meanwhile goes with the next program.
    under_way: usize,
    /// It was compared since that was sent.
    is_overtaken: bool,
    /// It is sent nothing before.
    not_before: Duration,
}

/// Whether the tables have to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// No.
    Not,
    /// At this time, or later.
    At(Duration),
    /// They are being read.
    Now,
}

/// Whether the tables are looked at again, though nothing is known to have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audit {
    /// No: they were never told.
    Not,
    /// At this time, or later.
    At(Duration),
    /// They are being read.
    Now,
    /// Likewise, but changes were sent meanwhile: what is told is of no time.
    Overtaken,
}

/// A flow that is to go.
struct Leaving {
    due: Due,
    /// Since when nothing leads packets to it any more.
    free_since: Option<Duration>,
}

/// A change that was sent, and what was there before, if that was known.
pub(super) struct Sent {
    pub(super) due: Due,
    distance: Option<u32>,
    before: Option<Made>,
}

/// What is to be done after a program has ended.
#[derive(Default)]
pub(super) struct Ended {
    /// Intents, and distances of flows, of what is there now.
    pub(super) made: BTreeSet<(u32, Option<u32>)>,
    /// Why the switch has refused some of it, each reason once.
    pub(super) refused: Vec<Refusal>,
    /// It has to be compared again.
    pub(super) compare: bool,
}

impl InSwitch {
    pub(super) fn new(info: &SwitchInfo) -> Self {
        InSwitch {
            since: info.since,
            version: info.version,
            known: None,
            reading: Reading::At(Duration::ZERO),
            lacks_objects: false,
            audit: Audit::Not,
            is_untold: false,
            is_fresh: false,
            refused: Refused::default(),
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

    /// Whether what it has is known, but for what is on its way.
    pub(super) fn is_read(&self) -> bool {
        self.known.is_some() && self.reading == Reading::Not
    }

    /// Why something that is wanted cannot be there.
    pub(super) fn why_not(&self) -> Option<WhyNot> {
        self.refused.last().map(WhyNot::Refused).or(self.unsayable.map(WhyNot::Unsayable))
    }

    /// How many changes are to be made.
    pub(super) fn changes(&self) -> usize {
        self.adds.values().map(Vec::len).sum::<usize>() + self.leaving.len()
    }

    /// How many changes it has yet to confirm: those on their way, and those that are to be made.
    pub(super) fn unconfirmed_changes(&self) -> usize {
        self.under_way + self.changes()
    }

    /// It was compared with what is wanted.
    pub(super) fn compared(&mut self, found: Difference) {
        let groups = found.stuck.iter().filter(|(_, at, _)| at.is_none());
        self.without_groups = groups.map(|(intent, ..)| *intent).collect();
        let shadowed = found.shadowed.iter().map(|intent| (*intent, WhyNot::Shadowed));
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
        let since = |due: &Due| before.get(due.made.flow_key()?).copied();
        let leaving = found.leftovers.into_iter();
        self.leaving = leaving.map(|due| Leaving { free_since: since(&due), due }).collect();
        self.is_overtaken = self.under_way > 0;
    }

    /// Notes which flows that are to go are `free`: of their intents, by number, nothing leads packets to them
    /// any more. When the first of them may go.
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

    /// Whether some flow is to go.
    pub(super) fn has_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// The intents that have flows here which are to go, or may have: something of them is on its way.
    pub(super) fn leaving(&self) -> impl Iterator<Item = u32> {
        let leaving = self.leaving.iter().map(|leaving| leaving.due.intent);
        leaving.chain(self.unconfirmed.iter().copied()).chain(self.staying.iter().copied())
    }

    /// It has told its tables.
    pub(super) fn told(&mut self, now: Duration, mut known: Known) {
        self.is_fresh = self.known.is_none();
        (self.reading, self.is_untold) = (Reading::Not, known.unreported.is_some());
        if let Some(before) = self.known.take() {
            known.keep_unreported(before);
        }
        self.known = Some(known);
        self.unconfirmed.clear();
        self.audit = Audit::At(now + AUDIT_EVERY);
    }

    /// Whether it is to be asked for groups or meters now: not while changes are on their way to it.
    pub(super) fn is_asked_for_objects(&self) -> bool {
        self.lacks_objects && self.is_read() && self.under_way == 0
    }

    /// The intents that want something here which it cannot be given, and why not.
    pub(super) fn stuck(&self) -> impl Iterator<Item = (u32, WhyNot)> {
        self.stuck.iter().map(|(intent, why)| (*intent, *why))
    }

    /// When it can be sent something, if nothing has to come back first.
    pub(super) fn sends_at(&self) -> Option<Duration> {
        let is_free = self.under_way == 0 && !self.lacks_objects;
        (self.is_read() && is_free).then_some(self.not_before)
    }

    /// What it can be sent now. That is on its way, then.
    pub(super) fn take_program(
        &mut self,
        now: Duration,
        book: &Book,
        lacking: &Lacking,
    ) -> Vec<Sent> {
        let mut going: Vec<(Option<u32>, Due)> = Vec::new();
        let groups = self.adds.remove(&None).unwrap_or_default();
        going.extend(groups.into_iter().map(|due| (None, due)));
        if going.is_empty() {
            for (at, dues) in &mut self.adds {
                let goes = |due: &mut Due| {
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
        let send = |(distance, due): (Option<u32>, Due)| {
            let before = known.as_mut().and_then(|known| known.forget(&due.made));
            Sent { due, distance, before }
        };
        going.into_iter().map(send).collect()
    }

    /// Whether no flow of the app is left that may use groups or meters which nobody wants any more: those go with a meter.
    fn uses_nothing_old(&self) -> bool {
        let known = self.known.as_ref();
        let replaces = |due: &Due| match &due.made {
            Made::Flow(told) => known.is_some_and(|known| known.flows.contains_key(&told.key)),
            _ => false,
        };
        let is_replaced = self.adds.values().flatten().any(replaces);
        self.leaving.is_empty() && self.staying.is_empty() && self.stuck.is_empty() && !is_replaced
    }

    /// Has it asked again for what it has refused of these intents. Whether that was something.
    pub(super) fn ask_again(&mut self, intents: &BTreeSet<u32>) -> bool {
        let forgot = self.refused.forget(intents);
        if self.refused.is_empty() {
            self.refused_until = None;
        }
        forgot
    }

    /// Takes what it has told in an audit. How many flows somebody else has changed, removed or added.
    pub(super) fn audited(&mut self, now: Duration, told: Option<Known>) -> usize {
        let audit = std::mem::replace(&mut self.audit, Audit::At(now + AUDIT_EVERY));
        let is_unreported = |told: &Known| told.unreported.is_some();
        self.is_untold &= told.as_ref().is_none_or(is_unreported);
        let (Some(known), Some(mut told), Audit::Now) = (&mut self.known, told, audit) else {
            return 0;
        };
        let altered = if told.unreported.is_none() { known.altered(&told) } else { 0 };
        told.keep_unreported(std::mem::take(known));
        *known = told;
        altered
    }

    /// Notes what became of what it was sent.
    pub(super) fn ended(&mut self, now: Duration, all: Vec<Sent>, outcomes: Vec<Outcome>) -> Ended {
        let mut ended = Ended { compare: self.is_overtaken, ..Ended::default() };
        (self.under_way, self.is_overtaken) = (0, false);
        self.unconfirmed.clear();
        for (Sent { due, distance, before }, outcome) in all.into_iter().zip(outcomes) {
            let known = match outcome {
                Outcome::Installed => {
                    if due.made.adds() {
                        self.installed += 1;
                        ended.made.insert((due.intent, distance));
                    }
                    Some(due.made)
                }
                Outcome::Refused(why) => {
                    self.refusals += 1;
                    self.refused_until.get_or_insert(now + REFUSED_AGAIN);
                    self.refused.note(due, why);
                    // Where a table is full it is the same for thousands: it is told once.
                    if !ended.refused.contains(&why) {
                        ended.refused.push(why);
                    }
                    before
                }
                Outcome::NotSent(_) | Outcome::Withheld => {
                    self.not_before = now + FULL_AGAIN;
                    before
                }
                // It may be there or not: the switch will tell.
                Outcome::Unknown(_) => {
                    self.reading = Reading::At(now + READ_AGAIN);
                    self.unconfirmed.insert(due.intent);
                    None
                }
            };
            // What is there and what cannot be may stand at the same distance.
            ended.compare |= outcome != Outcome::Installed || !self.stuck.is_empty();
            if let (Some(all), Some(known)) = (&mut self.known, known) {
                all.note(known);
            }
        }
        ended
    }
}

impl Leaving {
    /// When it may go: packets that are on their way to it have to have left.
    fn goes_at(&self) -> Option<Duration> {
        Some(self.free_since? + DRAIN)
    }
}
