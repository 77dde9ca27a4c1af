//! Desired state: keeps each app's flows, groups and meters in the switches, and loses no packets.
//!
//! An app sets entries ([`Desired::set`]) under a number of its own, an *intent*. A task reads the
//! tables of a switch that comes up, compares them with the intents, and sends only the difference.
//! A flow that is right is not touched, so its packets notice neither a restart of the controller
//! nor a lost connection.
//!
//! # Order
//! An intent is an ordered list. A later flow may lead packets to an earlier one, so it waits until
//! the earlier one is confirmed. Apps therefore list the flows of a path or a tree from the
//! destination, as in [`Plan::tree`](crate::programming::Plan::tree). Flows that are no longer
//! wanted are removed when the rest of their intent is confirmed and packets under way have had
//! time to leave ([`DRAIN`](crate::programming::DRAIN)); nothing waits for that. A flow replaces
//! another with the same match and priority in one message. Intents do not wait for each other. A
//! slow switch delays only the flows that lead to it.
//!
//! # After a restart
//! The app adopts the flows of its last run ([`bellrock_api::EarlierFlows::Keep`]). None is removed
//! until the app reports that it has set all its intents ([`Desired::complete`]). Then its flows
//! that belong to no intent are removed, except flows with a timeout or the number 0. Handlers
//! installed those for packets that they saw: they stay until they time out or the app removes
//! them. Flows with cookies of no app are never touched, only reported
//! ([`bellrock_api::Event::ForeignFlows`]).
//!
//! An intent that was set in this run owns its number: other flows with that number are removed at
//! once. So an app sets the intents of a switch that comes up in its `switch_up` at the latest,
//! before the tables are read ([`Desired::set_at`]), or uses numbers that it has not set yet.
//!
//! Groups and meters have no cookies. Wanted ones are compared, added and changed; others stay.
//!
//! # Audit
//! Other programs, and people, can change a switch. So the tables of each are read every
//! [`AUDIT_EVERY`], and [`VERIFY_AFTER`] a confirmed change: only a report shows whether an entry
//! is there. Large tables are read back later ([`READ_BACK_PER_SECOND`]). Removed or changed flows
//! are restored, and flows that were added under a cookie of the app are removed. The event
//! [`bellrock_api::Event::WantedAltered`] reports it. After an order of an operator that may change
//! a switch ([`OperatorChange`]) its tables are read at once, and until then its entries count as
//! unconfirmed.
//!
//! A switch may confirm an entry and report it otherwise, each time. Such an entry is *not kept*
//! ([`MissingReason::NotKept`], [`bellrock_api::Event::WantedNotKept`]): it is corrected
//! [`NOT_KEPT_AFTER`] times, and then at growing intervals, from [`NOT_KEPT_AGAIN`] to
//! [`NOT_KEPT_AGAIN_MAX`].
//!
//! # In a cluster
//! All controllers have the same intents, and each brings the switches that obey it to them. An
//! intent here does not wait for entries in switches that obey another controller: a [`Commit`]
//! reports the switches of this one. [`Desired::unsettled`] lists the others as away.
//!
//! # Failure
//! If a switch refuses a change, that is reported ([`bellrock_api::Event::WantedRefused`]) and the
//! change is sent again later. If the outcome of a change is unknown, the switch's tables are read
//! again. An entry counts as installed only after the switch has confirmed or reported it.

mod commit;
mod compare;
mod found;
mod not_kept;
mod operator_changes;
mod order;
mod read;
mod switch;
mod task;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellrock_api::runtime::{Promise, promise};
use bellrock_api::{
    Deviation, Dpid, Error, Flow, GroupEntry, Match, MeterEntry, Network, Publisher, Refusal,
    Watch, time_for_changes,
};

pub use commit::{Commit, NotCommitted};
pub use found::{FoundFlows, MAX_FOUND_PER_SWITCH};
pub use not_kept::{KEPT_AFTER, NOT_KEPT_AFTER, NOT_KEPT_AGAIN, NOT_KEPT_AGAIN_MAX, VERIFY_AFTER};
pub use operator_changes::{
    IncludedOrders, OperatorChange, OperatorChanges, OrderCounts, SwitchOrders,
};
pub use read::reported_flows;
use wanted::{WantedEntries, WantedEntry};

/// Time after which a switch that did not report its tables is asked again. After a reply that was
/// too large, it is asked after [`AUDIT_EVERY`].
pub const READ_AGAIN: Duration = Duration::from_secs(1);

/// Time after which a refused change is sent again.
pub const REFUSED_AGAIN: Duration = Duration::from_secs(30);

/// Minimum time between two events about the same refusal of a switch, over all its connections.
pub const REFUSAL_REPORTED_EVERY: Duration = Duration::from_secs(60);

/// Interval at which the tables of each switch are audited for changes by others.
pub const AUDIT_EVERY: Duration = Duration::from_secs(60);

/// Maximum number of flows that a switch reports in a second because of confirmed changes of one
/// app. They are read back after [`VERIFY_AFTER`], and in larger tables later, up to
/// [`AUDIT_EVERY`].
pub const READ_BACK_PER_SECOND: usize = 200;

/// Maximum extra time to wait for a change because of the changes before it.
pub const MAX_QUEUE_TIME: Duration = Duration::from_secs(60);

/// An entry that an app wants in a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are flows")]
pub enum DesiredEntry {
    /// A flow. It gets the number of its intent and no timeouts: it stays as long as it is wanted.
    Flow(Flow),
    /// A group (1.3). It is installed before all flows.
    Group(GroupEntry),
    /// A meter (1.3). It is installed before all flows.
    Meter(MeterEntry),
}

impl DesiredEntry {
    /// Returns the entry with the number of an intent.
    fn with_number(self, intent: u32) -> Self {
        match self {
            DesiredEntry::Flow(flow) => DesiredEntry::Flow(flow.number(intent).idle(0).hard(0)),
            other => other,
        }
    }
}

impl From<Flow> for DesiredEntry {
    fn from(flow: Flow) -> Self {
        DesiredEntry::Flow(flow)
    }
}

impl From<GroupEntry> for DesiredEntry {
    fn from(group: GroupEntry) -> Self {
        DesiredEntry::Group(group)
    }
}

impl From<MeterEntry> for DesiredEntry {
    fn from(meter: MeterEntry) -> Self {
        DesiredEntry::Meter(meter)
    }
}

/// Gives an app its handle to desired state.
pub trait DesiredFlows {
    /// Returns the desired state of this app. All handles of an app share one state. The app must
    /// adopt the flows of its last run: its [`bellrock_api::App::earlier_flows`] is `Keep`.
    fn desired(&self) -> Desired;
}

impl DesiredFlows for Network {
    fn desired(&self) -> Desired {
        let all = self.extension::<DesiredByApp>();
        let mut apps = all.0.lock().unwrap_or_else(PoisonError::into_inner);
        let desired = apps.entry(self.app()).or_insert_with(|| {
            let desired = Desired(Arc::default());
            // All terms of an app that runs once share it.
            let network = self.clone().with_term(None);
            let run = task::run(network.clone(), desired.clone());
            network.spawn("desired state", run);
            desired
        });
        desired.clone()
    }
}

/// The desired state of each app of the controller.
#[derive(Default)]
struct DesiredByApp(Mutex<BTreeMap<&'static str, Desired>>);

/// Returns each app with desired state, and the number of its flows wanted in a switch.
#[must_use]
pub fn wanted_flow_counts(network: &Network, dpid: Dpid) -> Vec<(&'static str, usize)> {
    let all = network.extension::<DesiredByApp>();
    let apps = all.0.lock().unwrap_or_else(PoisonError::into_inner);
    apps.iter().map(|(app, desired)| (*app, desired.book().flows_in(dpid))).collect()
}

/// Returns each app whose entries a switch does not have through its own fault, and why.
#[must_use]
pub fn faults_of_switch(network: &Network, dpid: Dpid) -> Vec<(&'static str, MissingReason)> {
    let all = network.extension::<DesiredByApp>();
    let apps = all.0.lock().unwrap_or_else(PoisonError::into_inner);
    let why = |desired: &Desired| desired.state().load().faults.get(&dpid).copied();
    apps.iter().filter_map(|(app, desired)| Some((*app, why(desired)?))).collect()
}

/// The desired state of an app.
#[derive(Clone)]
pub struct Desired(Arc<DesiredShared>);

#[derive(Default)]
struct DesiredShared {
    book: Mutex<WantedEntries>,
    /// Number of writes to the book.
    writes: Publisher<u64>,
    state: Publisher<DesiredState>,
    found: found::FoundMatches,
    questions: Mutex<Vec<Question>>,
}

/// Who waits for the states of intents.
struct Question {
    /// The answer waits until these are decided.
    intents: BTreeSet<u32>,
    answer: Promise<UnsettledIntents>,
}

/// The states of the intents that are not settled.
pub type UnsettledIntents = BTreeMap<u32, IntentState>;

/// How far the switches are at an app's desired state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredState {
    /// Number of writes to the desired state that this includes.
    pub writes: u64,
    /// Number of entries wanted in switches that are up.
    pub wanted: usize,
    /// Number of these entries that their switches have reported or confirmed.
    pub installed: usize,
    /// Number of switches whose tables are still to be read.
    pub unread_switches: usize,
    /// Switches that cannot have all wanted entries, and why.
    pub refused: BTreeMap<Dpid, MissingReason>,
    /// Switches at fault for entries that are missing: they refuse an entry, cannot express it, or
    /// confirm it and do not keep it.
    pub faults: BTreeMap<Dpid, MissingReason>,
    /// Number of refusals since the switch came up, for each switch that is up and has refused.
    pub refusals: BTreeMap<Dpid, u64>,
    /// Number of changes sent since the controller started.
    pub changes_sent: u64,
    /// Number of changes that the switch with most of them has yet to confirm.
    pub longest_queue: usize,
    /// The state of each intent that has a [`Commit`].
    pub intents: BTreeMap<u32, IntentState>,
}

/// How far the switches are at one intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentState {
    /// The switches have its entries. Those that are up have none of its earlier entries.
    Settled,
    /// The switches have its entries. Some of its earlier flows are still to be removed, or a
    /// switch has yet to report whether it has some.
    Leaving,
    /// The switches have its entries. This switch is not up and may have earlier flows of it.
    Left(Dpid),
    /// A change is to be made or confirmed, or a switch has yet to report its tables.
    Due,
    /// This switch is not up: its flows are unknown.
    Away(Dpid),
    /// This switch cannot have all its entries.
    Refused(Dpid, MissingReason),
    /// This switch has reported its entries otherwise, or not at all. They were restored, and its
    /// next report shows whether they are there.
    Restored(Dpid),
}

/// Why a switch does not have a wanted entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingReason {
    /// The switch refuses it.
    #[error("the switch refuses it: {0}")]
    Refused(Refusal),
    /// The switch's OpenFlow version cannot express it.
    #[error(transparent)]
    Unsayable(Error),
    /// The switch confirms it each time, and then reports it otherwise, or not at all.
    #[error("the switch confirms it and does not keep it: it {0}")]
    NotKept(Deviation),
    /// Another intent of the app, with a higher number, has another flow of equal match and
    /// priority.
    #[error("another intent of the app has another flow with the same match and priority")]
    Shadowed,
}

impl DesiredState {
    /// Whether all switches that are up have their wanted entries.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.unread_switches == 0 && self.installed == self.wanted
    }

    /// Returns the time that the longest queue of a switch needs to be confirmed, at most
    /// [`MAX_QUEUE_TIME`]. A wait for a further change is longer by this.
    #[must_use]
    pub fn queue_time(&self) -> Duration {
        time_for_changes(self.longest_queue).min(MAX_QUEUE_TIME)
    }
}

impl Desired {
    /// Replaces the intent with these entries, ordered from the destination. Adjacent entries of
    /// one switch are changed together.
    pub fn set<W: Into<DesiredEntry>>(
        &self,
        intent: u32,
        entries: impl IntoIterator<Item = (Dpid, W)>,
    ) {
        self.set_tree(intent, with_distances(entries));
    }

    /// Replaces the intent with these entries and their distances from the destination. Entries of
    /// one distance are changed together, before those that are farther.
    pub fn set_tree<W: Into<DesiredEntry>>(
        &self,
        intent: u32,
        entries: impl IntoIterator<Item = (u32, Dpid, W)>,
    ) {
        self.write(|book| book.set(intent, true, wanted_entries(intent, entries)));
    }

    /// Replaces the entries of the intent in one switch; those in other switches stay. For apps
    /// that set switches separately: in [`bellrock_api::App::switch_up`], before tables are read.
    pub fn set_at<W: Into<DesiredEntry>>(
        &self,
        dpid: Dpid,
        intent: u32,
        entries: impl IntoIterator<Item = W>,
    ) {
        let entry = |wanted: W| WantedEntry::new(0, wanted.into().with_number(intent));
        let entries = entries.into_iter().map(entry).collect();
        self.write(|book| book.set_at(intent, dpid, entries));
    }

    /// Replaces the intent with these entries, none of which waits for another.
    pub fn set_independent<W: Into<DesiredEntry>>(
        &self,
        intent: u32,
        entries: impl IntoIterator<Item = (Dpid, W)>,
    ) {
        let entries = entries.into_iter().map(|(dpid, wanted)| (0, dpid, wanted));
        self.write(|book| book.set(intent, false, wanted_entries(intent, entries)));
    }

    /// Replaces many intents at once. Each gets one entry, or none; no entry waits for another.
    /// Refused entries of these intents are sent again at once. [`Desired::unsettled`] confirms
    /// them, at a cost that [`Desired::commit`] for each of thousands would exceed.
    pub fn set_each<W: Into<DesiredEntry>>(
        &self,
        intents: impl IntoIterator<Item = (u32, Option<(Dpid, W)>)>,
    ) {
        self.write(|book| {
            for (intent, entry) in intents {
                let entry = entry.into_iter().map(|(dpid, wanted)| (0, dpid, wanted));
                book.set(intent, false, wanted_entries(intent, entry));
                book.retry(intent);
            }
        });
    }

    /// Returns the states of all intents that are not settled, after all writes so far. Those of
    /// switches that are down are included, except removals.
    pub async fn unsettled(&self) -> UnsettledIntents {
        self.decided(BTreeSet::new()).await
    }

    /// Waits until these intents are decided: each is settled or refused, or its switch is down.
    /// Returns the states of all intents that are not settled.
    pub async fn decided(&self, intents: BTreeSet<u32>) -> UnsettledIntents {
        let (answer, decided) = promise();
        let question = Question { intents, answer };
        self.0.questions.lock().unwrap_or_else(PoisonError::into_inner).push(question);
        self.0.writes.update(|written| written + 1);
        // The task that answers lives as long as the controller.
        decided.await.unwrap_or_default()
    }

    /// Like [`Desired::set`], with confirmation: the [`Commit`] reports when all switches have the
    /// entries, or which switch refuses. Refused entries of this intent are sent again at once.
    pub fn commit<W: Into<DesiredEntry>>(
        &self,
        intent: u32,
        entries: impl IntoIterator<Item = (Dpid, W)>,
    ) -> Commit {
        self.commit_tree(intent, with_distances(entries))
    }

    /// Like [`Desired::set_tree`], with confirmation.
    pub fn commit_tree<W: Into<DesiredEntry>>(
        &self,
        intent: u32,
        entries: impl IntoIterator<Item = (u32, Dpid, W)>,
    ) -> Commit {
        self.write(|book| {
            book.follow(intent);
            book.set(intent, true, wanted_entries(intent, entries));
        });
        Commit::new(self.clone(), intent)
    }

    /// Removes all entries of the intent. To wait until they are removed, use the [`Commit`].
    pub fn withdraw(&self, intent: u32) -> Commit {
        self.commit(intent, std::iter::empty::<(Dpid, DesiredEntry)>())
    }

    /// Declares that all intents have been set: unwanted flows of an earlier run are removed.
    pub fn complete(&self) {
        self.complete_except([]);
    }

    /// Like [`Desired::complete`], except for intents that cannot be set yet: flows of an earlier
    /// run under these numbers stay until they are set.
    pub fn complete_except(&self, intents: impl IntoIterator<Item = u32>) {
        let unset = intents.into_iter().collect();
        self.write(|book| book.set_complete(unset));
    }

    /// Searches for flows of an earlier run: when a switch has reported its tables, matches for
    /// which `filter` returns `true` are published. Only the first call counts. Make it before
    /// switches come up.
    pub fn find_flows(
        &self,
        filter: impl Fn(&Match) -> bool + Send + Sync + 'static,
    ) -> &Watch<FoundFlows> {
        self.0.found.watch(filter)
    }

    /// Returns how far the switches are.
    #[must_use]
    pub fn state(&self) -> &Watch<DesiredState> {
        self.0.state.watch()
    }

    /// Waits until all switches that are up have their wanted entries.
    pub async fn settled(&self) {
        let writes = **self.0.writes.watch().load();
        let mut state = self.state().load();
        while state.writes < writes || !state.is_settled() {
            state = self.state().changed(state.version()).await;
        }
    }

    fn book(&self) -> MutexGuard<'_, WantedEntries> {
        // A panic of an iterator leaves whole entries.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, change: impl FnOnce(&mut WantedEntries)) {
        change(&mut self.book());
        self.0.writes.update(|written| written + 1);
    }
}

/// Adds distances to entries ordered from the destination. Adjacent ones of one switch share one.
fn with_distances<W>(
    entries: impl IntoIterator<Item = (Dpid, W)>,
) -> impl Iterator<Item = (u32, Dpid, W)> {
    let (mut last, mut distance) = (None, 0);
    entries.into_iter().map(move |(dpid, wanted)| {
        if last.replace(dpid).is_some_and(|last| last != dpid) {
            distance += 1;
        }
        (distance, dpid, wanted)
    })
}

/// Turns wanted entries into entries of an intent.
fn wanted_entries<W: Into<DesiredEntry>>(
    intent: u32,
    entries: impl IntoIterator<Item = (u32, Dpid, W)>,
) -> impl Iterator<Item = (Dpid, WantedEntry)> {
    let entry =
        move |wanted: W, distance| WantedEntry::new(distance, wanted.into().with_number(intent));
    entries.into_iter().map(move |(distance, dpid, wanted)| (dpid, entry(wanted, distance)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_time_grows_with_the_longest_queue_up_to_a_bound() {
        let waits = |longest_queue| {
            let state = DesiredState { longest_queue, ..DesiredState::default() };
            state.queue_time().as_secs()
        };
        assert_eq!([0, 299, 300, 1_024, 1_000_000].map(waits), [0, 0, 1, 3, 60]);
    }
}
