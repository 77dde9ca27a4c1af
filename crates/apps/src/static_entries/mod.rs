//! Static flows, groups and meters: operators name them, and switches keep them.
//!
//! An entry belongs to one switch and has a name, an owner and perhaps an end. It is desired state
//! ([`bellrock_services::desired`]): it is confirmed by its switch, put back when another program
//! removes it, and installed again when the switch or the controller has restarted. Its number,
//! which is in the cookie of its flow, stays with its name.
//!
//! [`StaticEntries`] is the handle. It checks a whole order before it changes anything: two entries
//! cannot be the same flow, group or meter of a switch, an order cannot touch entries of another
//! owner, and a group or meter stays as long as another entry uses it.
//!
//! Who keeps the entries in a store prepares an order ([`StaticEntries::prepare`]), stores it, and
//! then confirms it or takes it back. Switches hear of it when it is confirmed. Nodes of a cluster
//! apply what others have stored ([`StaticEntries::apply`]).
//!
//! The app must come before the apps whose flows it overrides.

mod book;
mod references;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bellrock_api::openflow::{MAX_MESSAGE_LEN, Out};
use bellrock_api::{
    App, AppId, Change, EarlierFlows, Error, Forwards, Network, Publisher, SwitchInfo, Version,
};
use bellrock_services::desired::{
    Desired, DesiredEntry, DesiredFlows, IntentState, UnsettledIntents,
};
use bellrock_services::wait::wait_until;
use futures_lite::FutureExt;

use book::Book;
pub use book::{
    MAX_ENTRY_NAME_CHARS, MAX_STATIC_ENTRIES, NotSet, NotSetReason, StaticChange, StaticEntry,
    StaticOrder,
};
pub use references::{Reference, Unresolved};

/// The static entries of a controller: changes them, and tells how far the switches are. All clones
/// share the same entries.
#[derive(Clone, Default)]
pub struct StaticEntries(Arc<Shared>);

impl fmt::Debug for StaticEntries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StaticEntries").field(&self.changes()).finish()
    }
}

#[derive(Default)]
struct Shared {
    book: Mutex<Book>,
    /// Number of changes of the book.
    changes: Publisher<u64>,
    /// Once the app has started.
    started: OnceLock<Started>,
    /// Whether entries of earlier runs are still to be read: no flow is removed until then.
    is_awaited: Mutex<bool>,
    /// Numbers of entries that are prepared, and not yet confirmed.
    prepared: Mutex<BTreeSet<u32>>,
}

/// What the app has when it runs.
struct Started {
    desired: Desired,
    network: Network,
    app: AppId,
    /// Checks write messages to it: a new one for each of thousands of entries would cost more than
    /// the check.
    out: Mutex<Out>,
}

impl StaticEntries {
    /// Keeps the meters from 1 to `last` for another app: no entry can be one of them.
    pub fn reserve_meters(&self, last: u32) {
        self.book().reserve_meters(last);
    }

    /// Changes entries, or none of them. `now` is [`Network::now`], or zero before the controller
    /// starts.
    ///
    /// # Errors
    /// The first entry or name that is wrong.
    pub fn change(&self, order: StaticOrder, now: Duration) -> Result<StaticChange, NotSet> {
        // Desired state is written under the lock, so that two orders reach it as they reached the
        // book.
        let mut book = self.book();
        let change = book.change(order, now)?;
        if !change.numbers.is_empty() {
            self.set_desired(&book, &change.numbers);
        }
        Ok(change)
    }

    /// As [`change`](Self::change), except that switches do not hear of it until it is
    /// [confirmed](Self::confirm).
    ///
    /// # Errors
    /// As there.
    pub fn prepare(&self, order: StaticOrder, now: Duration) -> Result<StaticChange, NotSet> {
        let mut book = self.book();
        let change = book.change(order, now)?;
        self.prepared().extend(&change.numbers);
        Ok(change)
    }

    /// Makes desired state of changes that were prepared.
    pub fn confirm<'c>(&self, changes: impl IntoIterator<Item = &'c StaticChange>) {
        let book = self.book();
        let numbers: BTreeSet<u32> =
            changes.into_iter().flat_map(|change| &change.numbers).copied().collect();
        self.prepared().retain(|number| !numbers.contains(number));
        if !numbers.is_empty() {
            self.set_desired(&book, &numbers);
        }
    }

    /// Puts and removes entries as another controller has decided, whose checks they have passed.
    pub fn apply(&self, put: Vec<StaticEntry>, remove: &[String]) {
        let mut book = self.book();
        let numbers = book.apply(put, remove);
        if !numbers.is_empty() {
            self.set_desired(&book, &numbers);
        }
    }

    /// Declares that entries are still to come from a store. The app removes no flow of an earlier
    /// run until [`complete`](Self::complete). Call it before the controller starts.
    pub fn await_entries(&self) {
        *self.is_awaited() = true;
    }

    /// Declares that all entries are there: flows that are none of them are removed.
    pub fn complete(&self) {
        let mut is_awaited = self.is_awaited();
        if std::mem::take(&mut *is_awaited)
            && let Some(Started { desired, .. }) = self.0.started.get()
        {
            desired.complete();
        }
    }

    /// Returns the entry of this name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<StaticEntry> {
        self.book().entry(name).cloned()
    }

    /// Returns up to `limit` names of entries that have ended, and were kept by somebody.
    #[must_use]
    pub fn ended(&self, limit: usize) -> Vec<String> {
        self.book().ended().take(limit).map(str::to_owned).collect()
    }

    /// Forgets such names.
    pub fn forget_ended<'n>(&self, names: impl IntoIterator<Item = &'n str>) {
        self.book().forget_ended(names);
    }

    /// Returns the time of the network; zero before the app starts.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.0.started.get().map_or(Duration::ZERO, |started| started.network.now())
    }

    /// Puts the entries of an earlier run back, with their numbers. `orders`: those of each owner.
    /// Entries that have ended (an end of zero) stay only if others use them.
    ///
    /// # Errors
    /// The first entry that is wrong, or contradicts another.
    pub fn restore(&self, orders: impl IntoIterator<Item = StaticOrder>) -> Result<(), NotSet> {
        let mut book = self.book();
        book.restore(orders)?;
        let numbers: Vec<u32> = book.numbers().collect();
        self.set_desired(&book, &numbers);
        Ok(())
    }

    /// Returns the groups and meters that the entries of an order use, and that no static entry is:
    /// their switches may have them from elsewhere.
    #[must_use]
    pub fn unresolved(&self, order: &StaticOrder) -> Vec<Unresolved> {
        self.book().unresolved(order)
    }

    /// Takes a change back, for example because it cannot be kept. What later changes have set or
    /// removed stays as it is.
    pub fn undo(&self, change: &StaticChange) {
        let mut book = self.book();
        let mut numbers = book.undo(change);
        // Those that have ended meanwhile, too.
        numbers.extend(&change.numbers);
        self.prepared().retain(|number| !change.numbers.contains(number));
        self.set_desired(&book, &numbers);
    }

    /// Makes desired state of the entries with these numbers, and counts the change.
    fn set_desired<'n>(&self, book: &Book, numbers: impl IntoIterator<Item = &'n u32>) {
        if let Some(Started { desired, .. }) = self.0.started.get() {
            let wanted = numbers.into_iter().map(|number| (*number, book.wanted(*number)));
            desired.set_each(wanted);
        }
        self.0.changes.update(|changes| changes + 1);
    }

    /// Checks whether a switch of this version can have an entry. Before the app starts, it can.
    ///
    /// # Errors
    /// What the version does not know.
    pub fn check(&self, wanted: &DesiredEntry, version: Version) -> Result<(), Error> {
        let Some(Started { app, out, .. }) = self.0.started.get() else { return Ok(()) };
        let change = match wanted.clone() {
            DesiredEntry::Flow(flow) => Change::Add(flow),
            DesiredEntry::Group(group) => Change::AddGroup(group),
            DesiredEntry::Meter(meter) => Change::AddMeter(meter),
        };
        let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
        out.clear();
        change.encode(*app, version, 0, &mut out)
    }

    /// Returns the number of changes so far.
    #[must_use]
    pub fn changes(&self) -> u64 {
        **self.0.changes.watch().load()
    }

    /// Returns all entries by name, and the number of changes that made them.
    #[must_use]
    pub fn snapshot(&self) -> (Vec<StaticEntry>, u64) {
        let book = self.book();
        (book.entries().cloned().collect(), self.changes())
    }

    /// Returns the states of the entries that their switches have not confirmed, by number.
    pub async fn unsettled(&self) -> UnsettledIntents {
        let mut unsettled = match self.0.started.get() {
            Some(Started { desired, .. }) => desired.unsettled().await,
            None => self.book().numbers().map(|number| (number, IntentState::Due)).collect(),
        };
        for number in &*self.prepared() {
            unsettled.entry(*number).or_insert(IntentState::Due);
        }
        unsettled
    }

    /// Waits until the switches have confirmed the entries with these numbers, or their removal, or
    /// have refused them, or are found to be down. Returns those that are not confirmed.
    pub async fn decided(&self, numbers: &BTreeSet<u32>) -> BTreeMap<u32, IntentState> {
        let Some(Started { desired, .. }) = self.0.started.get() else { return BTreeMap::new() };
        let mut unsettled = desired.decided(numbers.clone()).await;
        unsettled.retain(|number, _| numbers.contains(number));
        unsettled
    }

    /// Removes entries at their end, as long as the controller runs.
    async fn expire(self, network: Network) {
        let changes = self.0.changes.watch();
        loop {
            let seen = changes.load();
            let end = self.book().next_end();
            if end.is_some_and(|end| end <= network.now()) {
                let mut book = self.book();
                let numbers = book.expire(network.now());
                self.set_desired(&book, &numbers);
                continue;
            }
            let changed = async { _ = changes.newer(seen.version()).await };
            wait_until(&network, end).or(changed).await;
        }
    }

    fn prepared(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.0.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_awaited(&self) -> MutexGuard<'_, bool> {
        self.0.is_awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // An order changes the book only after all of it was checked.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The app.
#[derive(Clone, Default)]
pub struct Static(StaticEntries);

impl Static {
    /// Creates an app that keeps these entries.
    #[must_use]
    pub fn new(entries: &StaticEntries) -> Self {
        Static(entries.clone())
    }
}

impl App for Static {
    type Handler = ();

    fn name(&self) -> &'static str {
        "static"
    }

    fn forwards(&self) -> Forwards {
        Forwards::Selected
    }

    fn wants_packet_ins(&self) -> bool {
        false
    }

    /// Entries stay in the switches while the controller restarts.
    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Keep
    }

    fn start(&self, network: &Network) {
        let (Static(entries), Some(app)) = (self, network.app_id()) else { return };
        let is_awaited = entries.is_awaited();
        let book = entries.book();
        let desired = network.desired();
        let out = Mutex::new(Out::with_capacity(MAX_MESSAGE_LEN));
        let started = Started { desired: desired.clone(), network: network.clone(), app, out };
        if entries.0.started.set(started).is_err() {
            return;
        }
        desired.set_each(book.numbers().map(|number| (number, book.wanted(number))));
        if !*is_awaited {
            desired.complete();
        }
        drop(book);
        network.spawn("end of static entries", entries.clone().expire(network.clone()));
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}
