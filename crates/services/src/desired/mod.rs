//! What each app wants in the switches, and how they are brought to it without losing a packet.
//!
//! An app says what it wants ([`Desired::set`]), under a number of its own, an *intent*. A task keeps the
//! switches at it: it reads the tables of a switch that comes up, compares them with what is wanted, and sends
//! the difference and nothing else. A flow that is there as it is wanted is not touched: its packets
//! notice neither a restart of the controller nor a lost connection.
//!
//! # Order
//! An intent is an ordered list: what comes later may lead packets to what comes earlier, and waits until
//! that is confirmed. So the flows of a path or a tree are given from the destination outward, as in
//! [`Plan::tree`](crate::programming::Plan::tree), and for the same reasons. What is wanted no more is
//! removed when the rest of its intent is confirmed and packets that are on their way have had time to leave
//! ([`DRAIN`](crate::programming::DRAIN)); nobody waits for that. A flow that takes the place of another with
//! the same match and priority does so at once, in one message. Intents do not wait for one another, and
//! a switch that is slow holds up what leads to it, and nothing else.
//!
//! # After a restart
//! The app takes on what its last run left ([`bellrock_api::LeftFlows::Keep`]). Nothing of it is removed
//! until the app has said that it has set all that it wants ([`Desired::complete`]). Then those of its flows go
//! that are no intent's. Flows with a timeout are the exception, and those with the number 0: handlers have
//! installed them for packets that they saw; they are adopted as they are, and go by themselves or when
//! the app removes them. Flows with cookies of no app are never touched; they are reported
//! ([`bellrock_api::Event::ForeignFlows`]).
//!
//! An intent that was set in this run owns its number: flows with it go at once where they are not wanted. So
//! what an app wants in a switch that comes up is set at the latest in its `switch_up`, before the tables
//! are read ([`Desired::set_at`]); or under numbers that it has not set yet.
//!
//! Groups and meters have no cookies. Those that are wanted are compared, added and changed; others are
//! left alone.
//!
//! # Audit
//! Whoever else can change a switch, by hand or by a program, leaves it with something that nobody wants. So the
//! tables of each are read every [`AUDIT_EVERY`]: what was removed or changed is put back, what was added under a
//! cookie of the app goes, and the event [`bellrock_api::Event::WantedAltered`] tells of it.
//!
//! # Failure
//! A switch that refuses a change has it reported ([`bellrock_api::Event::WantedRefused`]) and is asked
//! again later. Where it is not known what became of a change, the switch's tables are read again. Nothing counts
//! as installed that the switch has not confirmed or told.

mod book;
mod commit;
mod compare;
mod found;
mod order;
mod read;
mod switch;
mod task;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellrock_api::{
    Dpid, Error, Flow, GroupEntry, Match, MeterEntry, Network, Refusal, Watch, time_for_changes,
};

use book::{Book, Entry};
pub use commit::{Commit, NotCommitted};
pub use found::{FoundFlows, MAX_FOUND_PER_SWITCH};
pub use read::flows_told;

/// After how long a switch that did not tell its tables is asked again. One that would tell more than is kept of a reply is
/// asked after [`AUDIT_EVERY`].
pub const READ_AGAIN: Duration = Duration::from_secs(1);

/// After how long a switch is asked again for what it has refused.
pub const REFUSED_AGAIN: Duration = Duration::from_secs(30);

/// How often the tables of each switch are read to find what somebody else has changed in them.
pub const AUDIT_EVERY: Duration = Duration::from_secs(60);

/// The most that the time to wait for a change grows by, for changes before it.
pub const MAX_TIME_FOR_LACKING: Duration = Duration::from_secs(60);

/// Something that an app wants in a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are flows")]
pub enum Wanted {
    /// A flow. Its number becomes that of the intent, and it has no time-outs: it is there for as long as it is wanted.
    Flow(Flow),
    /// A group (1.3). It is there before all flows.
    Group(GroupEntry),
    /// A meter (1.3). It is there before all flows.
    Meter(MeterEntry),
}

impl Wanted {
    /// The same under the number of an intent.
    fn of(self, intent: u32) -> Self {
        match self {
            Wanted::Flow(flow) => Wanted::Flow(flow.number(intent).idle(0).hard(0)),
            other => other,
        }
    }
}

impl From<Flow> for Wanted {
    fn from(flow: Flow) -> Self {
        Wanted::Flow(flow)
    }
}

impl From<GroupEntry> for Wanted {
    fn from(group: GroupEntry) -> Self {
        Wanted::Group(group)
    }
}

impl From<MeterEntry> for Wanted {
    fn from(meter: MeterEntry) -> Self {
        Wanted::Meter(meter)
    }
}

/// Where an app's handle to what it wants comes from.
pub trait DesiredFlows {
    /// What this app wants in the switches. All handles of an app are the same. The app has to take on the
    /// flows that it finds: its [`bellrock_api::App::left_flows`] is `Keep`.
    fn desired(&self) -> Desired;
}

impl DesiredFlows for Network {
    fn desired(&self) -> Desired {
        let all = self.extension::<OfAllApps>();
        let mut apps = all.0.lock().unwrap_or_else(PoisonError::into_inner);
        let desired = apps.entry(self.app()).or_insert_with(|| {
            let desired = Desired(Arc::default());
            let (network, kept) = (self.clone(), desired.clone());
            self.spawn("desired state", async move { task::keep(network, kept).await });
            desired
        });
        desired.clone()
    }
}

/// What each app of the controller wants.
#[derive(Default)]
struct OfAllApps(Mutex<BTreeMap<&'static str, Desired>>);

/// How many flows each app that has a desired state wants in a switch now.
#[must_use]
pub fn wanted_in(network: &Network, dpid: Dpid) -> Vec<(&'static str, usize)> {
    let all = network.extension::<OfAllApps>();
    let apps = all.0.lock().unwrap_or_else(PoisonError::into_inner);
    apps.iter().map(|(app, desired)| (*app, desired.book().flows_in(dpid))).collect()
}

/// What an app wants in the switches.
#[derive(Clone)]
pub struct Desired(Arc<Inner>);

#[derive(Default)]
struct Inner {
    book: Mutex<Book>,
    /// How often the book was written in.
    written: Watch<u64>,
    state: Watch<DesiredState>,
    found: found::Found,
}

/// How far the switches are at what an app wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredState {
    /// How many changes of what is wanted it includes.
    pub written: u64,
    /// Things that are wanted in switches that are up.
    pub wanted: usize,
    /// Those that their switches have told or confirmed.
    pub installed: usize,
    /// Switches whose tables are still to be read.
    pub unread: usize,
    /// Switches that cannot be given all that is wanted in them, and why.
    pub refused: BTreeMap<Dpid, WhyNot>,
    /// How often each switch that is up has refused something since it came up, where it has.
    pub refusals: BTreeMap<Dpid, u64>,
    /// Changes that were sent since the controller started.
    pub changes_sent: u64,
    /// Changes that the switch with most of them has yet to confirm.
    pub longest_queue: usize,
    /// How far each intent is that somebody has a [`Commit`] of.
    pub intents: BTreeMap<u32, IntentState>,
}

/// How far the switches are at one intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentState {
    /// They have what it wants, and those that are up have nothing that it has wanted before.
    Settled,
    /// They have what it wants; flows that it has wanted before are about to go, or a switch has yet to tell whether it has
    /// some.
    Leaving,
    /// They have what it wants; this switch, which is not up, may have flows that it has wanted before.
    Left(Dpid),
    /// Something is to be changed, or a switch has yet to tell its tables.
    Due,
    /// This switch is not up: what it has is not known.
    Away(Dpid),
    /// This switch cannot be given all that it wants there.
    Refused(Dpid, WhyNot),
}

/// Why a switch has not what is wanted in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhyNot {
    /// It refuses.
    #[error("the switch refuses it: {0}")]
    Refused(Refusal),
    /// Its version cannot say it.
    #[error(transparent)]
    Unsayable(Error),
    /// Another intent of the app, with a higher number, wants another flow in the same place.
    #[error("another flow of the app has the place of one of its flows")]
    Shadowed,
}

impl DesiredState {
    /// Whether all switches that are up have what is wanted.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.unread == 0 && self.installed == self.wanted
    }

    /// How long slow switches need for what they have yet to confirm: whoever waits for a further change waits longer by
    /// that. At most [`MAX_TIME_FOR_LACKING`].
    #[must_use]
    pub fn time_for_lacking(&self) -> Duration {
        time_for_changes(self.longest_queue).min(MAX_TIME_FOR_LACKING)
    }
}

impl Desired {
    /// Wants this, from the destination outward, and nothing else under this number. Entries of one switch that
    /// follow each other are changed together.
    pub fn set<W: Into<Wanted>>(&self, intent: u32, entries: impl IntoIterator<Item = (Dpid, W)>) {
        self.set_tree(intent, outward(entries));
    }

    /// The same with the distance of each from the destination: all of one distance are changed together,
    /// before those that are farther.
    pub fn set_tree<W: Into<Wanted>>(
        &self,
        intent: u32,
        entries: impl IntoIterator<Item = (u32, Dpid, W)>,
    ) {
        self.write(|book| book.set(intent, true, entries_of(intent, entries)));
    }

    /// Wants this in one switch, and there nothing else under this number; what is wanted under it in
    /// others stays. For apps that say of each switch by itself what they want in it: in
    /// [`bellrock_api::App::switch_up`], before anybody reads its tables.
    pub fn set_at<W: Into<Wanted>>(
        &self,
        dpid: Dpid,
        intent: u32,
        entries: impl IntoIterator<Item = W>,
    ) {
        let entry = |wanted: W| Entry::new(0, wanted.into().of(intent));
        let entries = entries.into_iter().map(entry).collect();
        self.write(|book| book.set_at(intent, dpid, entries));
    }

    /// The same for entries that do not depend on one another: none waits for another.
    pub fn set_independent<W: Into<Wanted>>(
        &self,
        intent: u32,
        entries: impl IntoIterator<Item = (Dpid, W)>,
    ) {
        let entries = entries.into_iter().map(|(dpid, wanted)| (0, dpid, wanted));
        self.write(|book| book.set(intent, false, entries_of(intent, entries)));
    }

    /// Wants this as by [`Desired::set`], and has it confirmed: the [`Commit`] tells when all switches have it, or
    /// which one refuses. What a switch has refused of this intent before is asked of it again at once.
    pub fn commit<W: Into<Wanted>>(
        &self,
        intent: u32,
        entries: impl IntoIterator<Item = (Dpid, W)>,
    ) -> Commit {
        self.commit_tree(intent, outward(entries))
    }

    /// The same as by [`Desired::set_tree`].
    pub fn commit_tree<W: Into<Wanted>>(
        &self,
        intent: u32,
        entries: impl IntoIterator<Item = (u32, Dpid, W)>,
    ) -> Commit {
        self.write(|book| {
            book.follow(intent);
            book.set(intent, true, entries_of(intent, entries));
        });
        Commit::new(self.clone(), intent)
    }

    /// Wants nothing under this number any more. Who wants to know when it is gone waits for the [`Commit`].
    pub fn withdraw(&self, intent: u32) -> Commit {
        self.commit(intent, std::iter::empty::<(Dpid, Wanted)>())
    }

    /// All that the app wants has been set once since the controller started: what an earlier run left and
    /// is not wanted goes.
    pub fn complete(&self) {
        self.complete_except([]);
    }

    /// The same, but for intents that cannot be set yet: what an earlier run left under these numbers stays until they
    /// are.
    pub fn complete_except(&self, intents: impl IntoIterator<Item = u32>) {
        let unset = intents.into_iter().collect();
        self.write(|book| book.set_complete(unset));
    }

    /// Looks for flows of an earlier run: when a switch has reported its tables, the matches of the app's flows that are
    /// `looked_for` are published. Only the first call has an effect; it comes before switches are up.
    pub fn look_for(
        &self,
        looked_for: impl Fn(&Match) -> bool + Send + Sync + 'static,
    ) -> &Watch<FoundFlows> {
        self.0.found.look_for(looked_for)
    }

    /// How far the switches are.
    #[must_use]
    pub fn state(&self) -> &Watch<DesiredState> {
        &self.0.state
    }

    /// Waits until all switches that are up have what is wanted now.
    pub async fn settled(&self) {
        let written = **self.0.written.load();
        let mut state = self.0.state.load();
        while state.written < written || !state.is_settled() {
            state = self.0.state.changed(state.version()).await;
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // A panic of an iterator leaves whole entries.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, change: impl FnOnce(&mut Book)) {
        change(&mut self.book());
        self.0.written.update(|written| written + 1);
    }
}

/// Entries from the destination outward, with their distances: those of one switch that follow each other have the same.
fn outward<W>(
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

/// The same as entries of an intent.
fn entries_of<W: Into<Wanted>>(
    intent: u32,
    entries: impl IntoIterator<Item = (u32, Dpid, W)>,
) -> impl Iterator<Item = (Dpid, Entry)> {
    let entry = move |wanted: W, distance| Entry::new(distance, wanted.into().of(intent));
    entries.into_iter().map(move |(distance, dpid, wanted)| (dpid, entry(wanted, distance)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_behind_many_changes_waits_longer_up_to_a_bound() {
        let waits = |longest_queue| {
            let state = DesiredState { longest_queue, ..DesiredState::default() };
            state.time_for_lacking().as_secs()
        };
        assert_eq!([0, 299, 300, 1_024, 1_000_000].map(waits), [0, 0, 1, 3, 60]);
    }
}
