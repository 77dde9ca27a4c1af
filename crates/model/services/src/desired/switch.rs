//! The state of one switch that is up, and the changes to send to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use bellrock_api::{ChangeOutcome, Error, FlowKey, Refusal, RequestError, SwitchInfo, Version};

use super::compare::{ChangeResult, Difference, DueChange, HeldChanges, RefusedChanges};
use super::not_kept::{KeptReport, NotKept, VERIFY_AFTER};
use super::order::MissingEntries;
use super::read::KnownEntries;
use super::wanted::WantedEntries;
use super::{
    AUDIT_EVERY, IncludedOrders, MissingReason, OrderCounts, READ_AGAIN, READ_BACK_PER_SECOND,
    REFUSED_AGAIN, SwitchOrders,
};
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
    pub(super) read_state: ReadState,
    /// Entries of a kind that was not requested yet are wanted. It is requested before changes are
    /// sent.
    pub(super) lacks_objects: bool,
    pub(super) audit: Audit,
    /// Orders of operators at this switch, those that the known entries include, and those that had
    /// come when the present read, and the present audit, began.
    orders: SwitchOrders,
    order_counts: OrderCounts,
    included_orders: IncludedOrders,
    orders_at_read: OrderCounts,
    orders_at_audit: OrderCounts,
    /// No audit because of an order begins before this time: a script may give many orders.
    earliest_audit: Duration,
    /// It was reported that the switch does not report its tables.
    pub(super) is_unreported: bool,
    /// It has reported its tables for the first time, and they are not compared yet.
    pub(super) is_new: bool,
    pub(super) refused: RefusedChanges,
    pub(super) refused_until: Option<Duration>,
    /// Changes that it confirms and does not keep.
    pub(super) not_kept: NotKept,
    /// It has confirmed changes since its last report.
    has_unread_changes: bool,
    /// Number of refusals.
    pub(super) refusals: u64,
    /// Why its version cannot express a wanted entry.
    unsupported: Option<Error>,
    /// Numbers of entries that are wanted, and that are installed.
    pub(super) wanted: usize,
    pub(super) installed: usize,
    /// Entries to add, by distance from the destination; groups and meters first.
    additions: BTreeMap<Option<u32>, Vec<DueChange>>,
    /// Intents with entries that the switch cannot have, and why.
    impossible: BTreeMap<u32, MissingReason>,
    /// Intents in `impossible` whose missing entry is a group or a meter.
    without_groups: BTreeSet<u32>,
    /// Flows to remove.
    removals: Vec<PendingRemoval>,
    /// Intents of flows that the switch refuses to remove.
    refused_removals: Vec<u32>,
    /// Numbers of unwanted flows of no intent. They are removed if the number becomes an intent.
    pub(super) orphans: BTreeSet<u32>,
    /// Intents of sent changes, until the switch has confirmed them or reported its tables.
    unconfirmed: BTreeSet<u32>,
    /// Groups and meters to remove.
    unused: Vec<DueChange>,
    /// Number of changes under way. Further changes wait for the next program.
    in_flight: usize,
    /// It was compared since these were sent.
    is_overtaken: bool,
    /// Nothing is sent before this time.
    earliest_send: Duration,
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
struct PendingRemoval {
    due: DueChange,
    /// Since when no flow leads packets to it.
    free_since: Option<Duration>,
}

/// A change that was sent, and the entry before it, if known.
pub(super) struct SentChange {
    pub(super) due: DueChange,
    distance: Option<u32>,
    previous: Option<ChangeResult>,
}

/// What to do after a program has ended.
#[derive(Default)]
pub(super) struct AfterProgram {
    /// Intents, and distances of flows, of the entries that were added.
    pub(super) installed: BTreeSet<(u32, Option<u32>)>,
    /// Reasons why the switch has refused changes, each once.
    pub(super) refused: Vec<Refusal>,
    /// Whether the switch has to be compared again.
    pub(super) needs_comparison: bool,
}

impl DesiredSwitch {
    pub(super) fn new(info: &SwitchInfo, orders: SwitchOrders) -> Self {
        let counts = orders.counts();
        DesiredSwitch {
            since: info.since,
            version: info.version,
            known: None,
            read_state: ReadState::At(Duration::ZERO),
            lacks_objects: false,
            audit: Audit::Not,
            orders,
            order_counts: counts,
            included_orders: IncludedOrders::of_new_connection(counts),
            orders_at_read: counts,
            orders_at_audit: counts,
            earliest_audit: Duration::ZERO,
            is_unreported: false,
            is_new: false,
            refused: RefusedChanges::default(),
            refused_until: None,
            not_kept: NotKept::default(),
            has_unread_changes: false,
            refusals: 0,
            unsupported: None,
            wanted: 0,
            installed: 0,
            additions: BTreeMap::new(),
            impossible: BTreeMap::new(),
            without_groups: BTreeSet::new(),
            removals: Vec::new(),
            refused_removals: Vec::new(),
            orphans: BTreeSet::new(),
            unconfirmed: BTreeSet::new(),
            unused: Vec::new(),
            in_flight: 0,
            is_overtaken: false,
            earliest_send: Duration::ZERO,
        }
    }

    /// Whether its entries are known, except those under way.
    pub(super) fn is_read(&self) -> bool {
        self.known.is_some() && self.read_state == ReadState::Not
    }

    /// Whether an order of an operator may have changed the known entries.
    pub(super) fn is_outdated(&self) -> bool {
        self.known.is_some() && self.included_orders.is_outdated(self.order_counts)
    }

    /// Notes the orders of operators. After them, the tables are audited at once.
    pub(super) fn note_orders(&mut self) {
        self.order_counts = self.orders.counts();
        self.hasten_audit();
    }

    fn hasten_audit(&mut self) {
        if let Audit::At(at) = self.audit
            && self.included_orders.needs_report(self.order_counts)
        {
            self.audit = Audit::At(at.min(self.earliest_audit));
        }
    }

    /// Notes that a read of the tables begins.
    pub(super) fn begin_read(&mut self) {
        self.read_state = ReadState::Now;
        self.orders_at_read = self.order_counts;
    }

    /// Notes that an audit begins.
    pub(super) fn begin_audit(&mut self) {
        self.audit = Audit::Now;
        self.orders_at_audit = self.order_counts;
    }

    /// Plans the next audit after a read or an audit has ended. `pause`: the minimum time until
    /// then.
    fn plan_audit(&mut self, now: Duration, pause: Duration) {
        self.earliest_audit = now + pause;
        self.audit = Audit::At(now + AUDIT_EVERY);
        self.plan_read_back(now);
        self.hasten_audit();
    }

    /// Plans when confirmed changes are read back, corrections sooner.
    fn plan_read_back(&mut self, now: Duration) {
        let after = match (self.has_unread_changes, self.not_kept.needs_report()) {
            (false, _) => return,
            (true, true) => VERIFY_AFTER,
            (true, false) => self.read_back_after(),
        };
        self.audit_by(now + after);
    }

    /// Brings the next audit forward to this time at the latest, but not before the pause after the
    /// last one: a table may have been too large.
    fn audit_by(&mut self, time: Duration) {
        if let Audit::At(at) = self.audit {
            self.audit = Audit::At(at.min(time.max(self.earliest_audit)));
        }
    }

    /// Returns the time after which confirmed changes are read back. It grows with the tables, so
    /// that a switch which is changed all the time reports at most [`READ_BACK_PER_SECOND`] flows a
    /// second.
    fn read_back_after(&self) -> Duration {
        let flows = self.known.as_ref().map_or(0, |known| known.in_report.max(known.flows.len()));
        Duration::from_secs(flows.div_ceil(READ_BACK_PER_SECOND) as u64)
            .clamp(VERIFY_AFTER, AUDIT_EVERY)
    }

    /// Changes that are not to be sent at `now`.
    pub(super) fn held(&self, now: Duration) -> HeldChanges<'_> {
        HeldChanges { refused: &self.refused, not_kept: &self.not_kept, now }
    }

    /// Why a wanted entry is missing.
    pub(super) fn missing_reason(&self) -> Option<MissingReason> {
        self.refused
            .last()
            .map(MissingReason::Refused)
            .or(self.unsupported.map(MissingReason::Unsayable))
    }

    /// Number of changes to send.
    pub(super) fn changes(&self) -> usize {
        self.additions.values().map(Vec::len).sum::<usize>() + self.removals.len()
    }

    /// Number of changes that are not confirmed: those under way, and those to send.
    pub(super) fn unconfirmed_changes(&self) -> usize {
        self.in_flight + self.changes()
    }

    /// Takes over the result of a comparison.
    pub(super) fn set_difference(&mut self, difference: Difference) {
        let groups = difference.impossible.iter().filter(|(_, distance, _)| distance.is_none());
        self.without_groups = groups.map(|(intent, ..)| *intent).collect();
        let shadowed = difference.shadowed.iter().map(|intent| (*intent, MissingReason::Shadowed));
        let impossible = difference.impossible.iter().map(|(intent, _, why)| (*intent, *why));
        let doubtful = difference.doubtful.iter().copied();
        self.impossible = doubtful.chain(shadowed).chain(impossible).collect();
        (self.refused_removals, self.orphans) = (difference.refused_removals, difference.orphans);
        (self.wanted, self.installed) = (difference.wanted, difference.installed);
        self.unsupported = difference.unsupported;
        self.additions = difference.additions;
        self.unused = difference.unused;
        let before: HashMap<FlowKey, Duration> = self
            .removals
            .drain(..)
            .filter_map(|old| Some((old.due.result.flow_key()?.clone(), old.free_since?)))
            .collect();
        let since = |due: &DueChange| before.get(due.result.flow_key()?).copied();
        let removals = difference.leftovers.into_iter();
        self.removals =
            removals.map(|due| PendingRemoval { free_since: since(&due), due }).collect();
        self.is_overtaken = self.in_flight > 0;
    }

    /// Whether all wanted entries of the last comparison are installed, and no entry is to be
    /// removed.
    pub(super) fn lacks_nothing(&self) -> bool {
        let has_nothing_to_send = self.additions.is_empty()
            && self.removals.is_empty()
            && self.unused.is_empty()
            && self.in_flight == 0;
        let has_nothing_refused = self.impossible.is_empty()
            && self.refused.is_empty()
            && self.refused_removals.is_empty();
        self.is_read() && !self.is_new && has_nothing_to_send && has_nothing_refused
    }

    /// Adds entries to a switch that lacks nothing.
    pub(super) fn add(&mut self, additions: BTreeMap<Option<u32>, Vec<DueChange>>) {
        self.wanted += additions.values().map(Vec::len).sum::<usize>();
        self.additions = additions;
    }

    /// Notes which flows to remove are `free`: no flow of their intent leads packets to them any
    /// more. Returns when the first may be removed.
    pub(super) fn mark_free(
        &mut self,
        now: Duration,
        is_free: impl Fn(u32) -> bool,
    ) -> Option<Duration> {
        for removal in self.removals.iter_mut().filter(|leaving| leaving.free_since.is_none()) {
            removal.free_since = is_free(removal.due.intent).then_some(now);
        }
        self.removals.iter().filter_map(PendingRemoval::removal_at).min()
    }

    /// Whether there are flows to remove.
    pub(super) fn has_removals(&self) -> bool {
        !self.removals.is_empty()
    }

    /// Returns the intents with flows that are to be removed, or may be: changes are under way.
    pub(super) fn removal_intents(&self) -> impl Iterator<Item = u32> {
        let intents = self.removals.iter().map(|removal| removal.due.intent);
        intents.chain(self.unconfirmed.iter().copied()).chain(self.refused_removals.iter().copied())
    }

    /// Takes the tables that the switch has reported.
    pub(super) fn set_reported(&mut self, now: Duration, mut known: KnownEntries) {
        self.is_new = self.known.is_none();
        (self.read_state, self.is_unreported) = (ReadState::Not, known.unreported.is_some());
        if let Some(before) = self.known.take() {
            self.keep_unreported(&mut known, before, self.orders_at_read);
        }
        self.known = Some(known);
        self.unconfirmed.clear();
        self.has_unread_changes = false;
        self.included_orders.add_report(self.orders_at_read);
        self.plan_audit(now, READ_AGAIN);
    }

    /// Keeps the entries known before, of kinds that the switch does not report. After an order of
    /// an operator its flows are unknown, and are sent again.
    fn keep_unreported(
        &self,
        reported: &mut KnownEntries,
        mut before: KnownEntries,
        at_request: OrderCounts,
    ) {
        if self.included_orders.needs_report(at_request) {
            before.flows.clear();
        }
        reported.keep_unreported(before);
    }

    /// Whether to request groups or meters now: not while changes are under way.
    pub(super) fn needs_object_read(&self) -> bool {
        self.lacks_objects && self.is_read() && self.in_flight == 0
    }

    /// Returns the intents with entries that were restored after the last report.
    pub(super) fn unverified(&self) -> impl Iterator<Item = u32> {
        self.not_kept.unverified()
    }

    /// Why the switch cannot have an entry of some intent. An intent in the way of another is no
    /// fault of the switch.
    pub(super) fn fault(&self) -> Option<MissingReason> {
        self.impossible.values().find(|why| **why != MissingReason::Shadowed).copied()
    }

    /// Returns the intents with entries that the switch cannot have, and why.
    pub(super) fn impossible(&self) -> impl Iterator<Item = (u32, MissingReason)> {
        self.impossible.iter().map(|(intent, why)| (*intent, *why))
    }

    /// Returns when changes can be sent, unless a reply is awaited first.
    pub(super) fn next_send(&self) -> Option<Duration> {
        let is_free = self.in_flight == 0 && !self.lacks_objects;
        (self.is_read() && is_free).then_some(self.earliest_send)
    }

    /// Takes the changes that can be sent now. They are under way from then on.
    pub(super) fn take_program(
        &mut self,
        now: Duration,
        book: &WantedEntries,
        missing: &MissingEntries,
    ) -> Vec<SentChange> {
        let mut program: Vec<(Option<u32>, DueChange)> = Vec::new();
        let groups = self.additions.remove(&None).unwrap_or_default();
        program.extend(groups.into_iter().map(|due| (None, due)));
        if program.is_empty() {
            for (distance, changes) in &mut self.additions {
                let is_ready = |due: &mut DueChange| {
                    let is_next = || missing.nearest(due.intent) >= *distance;
                    let is_waiting = book.is_ordered(due.intent) && !is_next();
                    !is_waiting && !self.without_groups.contains(&due.intent)
                };
                program.extend(changes.extract_if(.., is_ready).map(|due| (*distance, due)));
            }
            self.additions.retain(|_, dues| !dues.is_empty());
        }
        let is_over =
            |removal: &mut PendingRemoval| removal.removal_at().is_some_and(|at| at <= now);
        let removals = self.removals.extract_if(.., is_over);
        program.extend(removals.map(|removal| (None, removal.due)));
        if program.is_empty() && self.may_remove_unused() {
            program.extend(self.unused.drain(..).map(|due| (None, due)));
        }
        (self.in_flight, self.is_overtaken) = (program.len(), false);
        if self.in_flight > 0 && self.audit == Audit::Now {
            self.audit = Audit::Overtaken;
        }
        self.unconfirmed.extend(program.iter().map(|(_, due)| due.intent));
        let known = &mut self.known;
        let send = |(distance, due): (Option<u32>, DueChange)| {
            let previous = known.as_mut().and_then(|known| known.remove(&due.result));
            SentChange { due, distance, previous }
        };
        program.into_iter().map(send).collect()
    }

    /// Whether no flow of the app may use unwanted groups or meters: flows go with their meter.
    fn may_remove_unused(&self) -> bool {
        let known = self.known.as_ref();
        let replaces = |due: &DueChange| match &due.result {
            ChangeResult::Flow(reported) => {
                known.is_some_and(|known| known.flows.contains_key(&reported.key))
            }
            _ => false,
        };
        let is_replaced = self.additions.values().flatten().any(replaces);
        self.removals.is_empty()
            && self.refused_removals.is_empty()
            && self.impossible.is_empty()
            && !is_replaced
    }

    /// Sends refused changes of these intents again. Returns whether there were any.
    pub(super) fn retry(&mut self, intents: &BTreeSet<u32>) -> bool {
        let had_refused = self.refused.remove_intents(intents)
            | self.not_kept.retry(|intent| intents.contains(&intent));
        if self.refused.is_empty() {
            self.refused_until = None;
        }
        had_refused
    }

    /// Takes the tables of an audit. Returns how many flows others, or orders of operators,
    /// changed, removed or added, and what the switch does not keep.
    pub(super) fn finish_audit(
        &mut self,
        now: Duration,
        reported: Result<KnownEntries, RequestError>,
    ) -> KeptReport {
        let is_whole = std::mem::replace(&mut self.audit, Audit::Not) == Audit::Now;
        let by_order = self.is_outdated();
        let is_unreported = |reported: &KnownEntries| reported.unreported.is_some();
        self.is_unreported &= reported.as_ref().map_or(true, is_unreported);
        let is_too_large = matches!(reported, Err(RequestError::TooLarge));
        // A switch that does not answer is not asked again sooner for that.
        self.has_unread_changes &= reported.is_ok();
        let report = match (reported, self.known.take()) {
            (Ok(mut reported), Some(known)) if is_whole => {
                let report = match reported.unreported {
                    None => {
                        self.not_kept.note_audit(now, self.version, &known, &reported, by_order)
                    }
                    Some(_) => KeptReport::default(),
                };
                self.keep_unreported(&mut reported, known, self.orders_at_audit);
                self.known = Some(reported);
                self.has_unread_changes = false;
                self.included_orders.add_report(self.orders_at_audit);
                report
            }
            (_, known) => {
                self.known = known;
                KeptReport::default()
            }
        };
        self.plan_audit(now, if is_too_large { AUDIT_EVERY } else { READ_AGAIN });
        report
    }

    /// Notes the outcomes of a program.
    pub(super) fn finish_program(
        &mut self,
        now: Duration,
        sent: Vec<SentChange>,
        outcomes: Vec<ChangeOutcome>,
    ) -> AfterProgram {
        let mut result =
            AfterProgram { needs_comparison: self.is_overtaken, ..AfterProgram::default() };
        (self.in_flight, self.is_overtaken) = (0, false);
        self.unconfirmed.clear();
        for (SentChange { due, distance, previous }, outcome) in sent.into_iter().zip(outcomes) {
            let known = match outcome {
                ChangeOutcome::Installed => {
                    result.needs_comparison |=
                        self.not_kept.note_confirmed(&due, previous.as_ref());
                    self.has_unread_changes = true;
                    if due.result.is_entry() {
                        self.installed += 1;
                        result.installed.insert((due.intent, distance));
                    }
                    Some(due.result)
                }
                ChangeOutcome::Refused(why) => {
                    self.refusals += 1;
                    self.refused_until.get_or_insert(now + REFUSED_AGAIN);
                    self.refused.add(due, why);
                    // A full table refuses thousands of flows: each reason is reported once.
                    if !result.refused.contains(&why) {
                        result.refused.push(why);
                    }
                    previous
                }
                ChangeOutcome::NotSent(_) | ChangeOutcome::Withheld => {
                    self.earliest_send = now + FULL_AGAIN;
                    previous
                }
                // The change may be in place or not: the next read reports it.
                ChangeOutcome::Unknown(_) => {
                    self.read_state = ReadState::At(now + READ_AGAIN);
                    self.unconfirmed.insert(due.intent);
                    None
                }
            };
            // Installed and refused entries may have the same distance.
            result.needs_comparison |=
                outcome != ChangeOutcome::Installed || !self.impossible.is_empty();
            if let (Some(entries), Some(known)) = (&mut self.known, known) {
                entries.insert(known);
            }
        }
        self.plan_read_back(now);
        result
    }
}

impl PendingRemoval {
    /// Returns when the flow may be removed: packets under way to it must have left.
    fn removal_at(&self) -> Option<Duration> {
        Some(self.free_since? + DRAIN)
    }
}
