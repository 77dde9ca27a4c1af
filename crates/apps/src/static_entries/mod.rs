//! Static flows, groups and meters: operators name them, and switches keep them.
//!
//! An entry belongs to one switch and has a name, an owner and perhaps an end. It is desired state
//! ([`bellrock_services::desired`]): it is confirmed by its switch, put back when another program
//! removes it, and installed again when the switch or the controller has restarted. Its number,
//! which is in the cookie of its flow, stays with its name.
//!
//! [`StaticEntries`] is the handle. It checks a whole order before it changes anything: two entries
//! cannot be the same flow, group or meter of a switch, and an order cannot touch entries of
//! another owner. Who keeps the entries in a file reads them with [`StaticEntries::snapshot`].
//!
//! The app must come before the apps whose flows it overrides.

mod book;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bellrock_api::{App, EarlierFlows, Forwards, Network, Publisher, SwitchInfo};
use bellrock_services::desired::{Desired, DesiredFlows, IntentState, UnsettledIntents};
use bellrock_services::wait::wait_until;
use futures_lite::FutureExt;

use book::Book;
pub use book::{
    MAX_ENTRY_NAME_CHARS, MAX_STATIC_ENTRIES, NotSet, NotSetReason, StaticChange, StaticEntry,
    StaticOrder,
};

/// The static entries of a controller: changes them, and tells how far the switches are. All clones
/// share the same entries.
#[derive(Clone, Default)]
pub struct StaticEntries(Arc<Shared>);

#[derive(Default)]
struct Shared {
    book: Mutex<Book>,
    /// Number of changes of the book.
    changes: Publisher<u64>,
    /// The app's desired state, once it has started.
    desired: OnceLock<Desired>,
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
        if let Some(desired) = self.0.desired.get()
            && !change.numbers.is_empty()
        {
            let wanted = change.numbers.iter().map(|number| (*number, book.wanted(*number)));
            desired.set_each(wanted);
        }
        if !change.numbers.is_empty() {
            self.0.changes.update(|changes| changes + 1);
        }
        Ok(change)
    }

    /// Returns all entries by name, and the number of changes that made them.
    #[must_use]
    pub fn snapshot(&self) -> (Vec<StaticEntry>, u64) {
        let book = self.book();
        (book.entries().cloned().collect(), **self.0.changes.watch().load())
    }

    /// Returns the states of the entries that their switches have not confirmed, by number.
    pub async fn unsettled(&self) -> UnsettledIntents {
        match self.0.desired.get() {
            Some(desired) => desired.unsettled().await,
            None => self.book().numbers().map(|number| (number, IntentState::Due)).collect(),
        }
    }

    /// Waits until the switches have confirmed the entries with these numbers, or their removal, or
    /// have refused them, or are found to be down. Returns those that are not confirmed.
    pub async fn decided(&self, numbers: &BTreeSet<u32>) -> BTreeMap<u32, IntentState> {
        let Some(desired) = self.0.desired.get() else { return BTreeMap::new() };
        loop {
            let state = desired.state().load();
            let mut unsettled = desired.unsettled().await;
            unsettled.retain(|number, _| numbers.contains(number));
            let is_open =
                |state: &IntentState| matches!(state, IntentState::Due | IntentState::Leaving);
            if !unsettled.values().any(is_open) {
                return unsettled;
            }
            desired.state().changed(state.version()).await;
        }
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
                if let Some(desired) = self.0.desired.get() {
                    desired.set_each(numbers.iter().map(|number| (*number, book.wanted(*number))));
                }
                drop(book);
                self.0.changes.update(|changes| changes + 1);
                continue;
            }
            let changed = async { _ = changes.newer(seen.version()).await };
            wait_until(&network, end).or(changed).await;
        }
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
        let Static(entries) = self;
        let book = entries.book();
        let desired = network.desired();
        if entries.0.desired.set(desired.clone()).is_err() {
            return;
        }
        desired.set_each(book.numbers().map(|number| (number, book.wanted(number))));
        desired.complete();
        drop(book);
        network.spawn("end of static entries", entries.clone().expire(network.clone()));
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}
