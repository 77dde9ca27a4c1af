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
//! The entries are those of a book ([`bellrock_book::EntryBook`]): an order is checked
//! against what is stored, and switches hear of it when it is stored. So all nodes of a cluster
//! have the same entries, and those of a controller that is alone come back after a restart.
//!
//! The app must come before the apps whose flows it overrides.

mod check;
mod form;
mod index;
mod order;
mod parts;
mod references;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bellrock_api::openflow::{MAX_MESSAGE_LEN, Out};
use bellrock_api::{
    App, AppId, Change, Dpid, EarlierFlows, Error, Forwards, Network, SwitchInfo, Version,
};
use bellrock_book::{EntryStore, MemoryStore};
use bellrock_services::desired::{
    Desired, DesiredEntry, DesiredFlows, IntentState, UnsettledIntents,
};
use bellrock_services::wait::wait_until;
use futures_lite::FutureExt;

pub use form::{entry_name, read_stored, show_stored, stored_name};
use index::EntryIndex;
pub use order::{
    MAX_ENTRY_NAME_CHARS, MAX_STATIC_ENTRIES, NotSet, NotSetReason, StaticChange, StaticEntry,
    StaticOrder, StaticRefusal,
};
pub use references::{Reference, Unresolved};
use stored::StoredEntries;

/// Maximum time between two looks at the clock while an entry is going to end: somebody may set it.
const CLOCK_CHECK: Duration = Duration::from_secs(60);

/// Returns the time since 1970.
pub type UnixTime = fn() -> Duration;

/// The static entries of a controller: takes orders, and returns how far the switches are. All
/// clones share the same entries.
#[derive(Clone)]
pub struct StaticEntries(Arc<Shared>);

struct Shared {
    book: StoredEntries,
    /// The clock by which entries end. `None`: that of the network, with which they are gone.
    unix_time: Option<UnixTime>,
    /// Once the app has started.
    started: OnceLock<Started>,
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

impl fmt::Debug for StaticEntries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StaticEntries").field(&self.0.book).finish()
    }
}

/// No entries: they are kept as long as the controller runs.
impl Default for StaticEntries {
    fn default() -> Self {
        StaticEntries::of(StoredEntries::alone(Arc::new(MemoryStore::default())), None)
    }
}

impl StaticEntries {
    /// Reads the entries of a store of this controller alone. They come back after a restart.
    #[must_use]
    pub fn stored(store: Arc<dyn EntryStore>, unix_time: UnixTime) -> Self {
        StaticEntries::of(StoredEntries::alone(store), Some(unix_time))
    }

    /// Shares the entries of a store with other controllers. `node`: the name of this one. Until
    /// the store is read, there are no orders, and no flow of an earlier run is removed.
    #[must_use]
    pub fn shared(store: Arc<dyn EntryStore>, node: String, unix_time: UnixTime) -> Self {
        StaticEntries::of(StoredEntries::shared(store, node), Some(unix_time))
    }

    fn of(book: StoredEntries, unix_time: Option<UnixTime>) -> Self {
        StaticEntries(Arc::new(Shared { book, unix_time, started: OnceLock::new() }))
    }

    /// Whether the entries come back after a restart of the controller.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.0.unix_time.is_some()
    }

    /// Whether other controllers have the same entries.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.0.book.is_shared()
    }

    /// Keeps the meters from 1 to `last` for another app: no entry can be one of them.
    pub fn reserve_meters(&self, last: u32) {
        self.0.book.with_model(|index| index.last_reserved_meter = last);
    }

    /// Checks all entries as orders of their owners would be: somebody may have edited them, or
    /// other meters are reserved now.
    ///
    /// # Errors
    /// The first entry that is wrong, or contradicts another one.
    pub fn check_all(&self) -> Result<(), NotSet> {
        self.0.book.with_model(|index| index.check_all())
    }

    /// Returns the time that ends of entries are given in: since 1970 for entries of a store, else
    /// [`Network::now`], and zero before the app starts.
    #[must_use]
    pub fn now(&self) -> Duration {
        let network_time = || self.0.started.get().map(|started| started.network.now());
        let unix_time = self.0.unix_time.map(|unix_time| unix_time());
        unix_time.or_else(network_time).unwrap_or_default()
    }

    /// Returns the entry of this name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<StaticEntry> {
        self.current(|index| index.entry(name).map(|entry| StaticEntry::clone(entry)))
    }

    /// Returns all entries by name.
    #[must_use]
    pub fn all(&self) -> Vec<StaticEntry> {
        self.current(|index| index.entries().map(|entry| StaticEntry::clone(entry)).collect())
    }

    /// Returns the groups and meters that the entries of an order use, and that no static entry is:
    /// their switches may have them from elsewhere.
    #[must_use]
    pub fn unresolved(&self, order: &StaticOrder) -> Vec<Unresolved> {
        self.current(|index| index.unresolved(order))
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

    /// Returns the states of the entries that their switches have not confirmed, by number.
    pub async fn unsettled(&self) -> UnsettledIntents {
        self.take_stored();
        match self.0.started.get() {
            Some(Started { desired, .. }) => desired.unsettled().await,
            None => {
                let due = |number: &u32| (*number, IntentState::Due);
                self.current(|index| index.by_number.keys().map(due).collect())
            }
        }
    }

    /// Waits until the switches have confirmed the entries with these numbers, or their removal, or
    /// have refused them, or are found to be down. Returns those that are not confirmed.
    pub async fn decided(&self, numbers: &BTreeSet<u32>) -> BTreeMap<u32, IntentState> {
        let Some(Started { desired, .. }) = self.0.started.get() else { return BTreeMap::new() };
        let mut unsettled = desired.decided(numbers.clone()).await;
        unsettled.retain(|number, _| numbers.contains(number));
        unsettled
    }

    /// Carries out orders, and follows the store, as long as the controller runs. The app does so
    /// when it starts.
    pub async fn run_store(self, network: Network) {
        self.0.book.clone().run(network).await;
    }

    /// Calls `read` with the entries that have not ended.
    fn current<T>(&self, read: impl FnOnce(&mut EntryIndex) -> T) -> T {
        let now = self.now();
        self.0.book.with_model(|index| {
            index.expire(now);
            read(index)
        })
    }

    /// Notes at which switches of an order all flows without wildcards have the same priority.
    /// Those that are not reachable stay as they were.
    fn note_versions(&self, order: &StaticOrder) {
        let Some(Started { network, .. }) = self.0.started.get() else { return };
        let switches: BTreeSet<Dpid> = order.set.iter().map(|entry| entry.dpid).collect();
        for info in switches.into_iter().filter_map(|dpid| network.reachable(dpid)) {
            self.0.book.with_model(|index| match info.version.ranks_exact_flows_first() {
                true => index.exact_first.insert(info.dpid),
                false => index.exact_first.remove(&info.dpid),
            });
        }
    }

    /// Makes desired state of what has changed.
    fn take_stored(&self) {
        let Some(Started { desired, .. }) = self.0.started.get() else { return };
        // Desired state is written under the lock of the book: so it gets changes in the order in
        // which they were stored.
        self.0.book.with_model(|index| {
            let changed = index.take_changed();
            if !changed.is_empty() {
                desired.set_each(changed.into_iter().map(|number| (number, index.wanted(number))));
            }
        });
    }

    /// Keeps desired state equal to what is stored, and removes entries at their end, as long as
    /// the controller runs.
    async fn keep(self, network: Network, desired: Desired) {
        let changes = self.0.book.changes();
        let mut is_complete = false;
        loop {
            let seen = changes.load();
            let end = self.current(|index| index.next_end());
            self.take_stored();
            // From now on, flows that are none of the entries are removed.
            if !is_complete && self.0.book.is_read() {
                desired.complete();
                is_complete = true;
            }
            let left = end.map(|end| end.saturating_sub(self.now()).min(CLOCK_CHECK));
            let changed = async { _ = changes.newer(seen.version()).await };
            wait_until(&network, left.map(|left| network.now() + left)).or(changed).await;
        }
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

crate::boxed::boxed!(Static);

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
        let desired = network.desired();
        let out = Mutex::new(Out::with_capacity(MAX_MESSAGE_LEN));
        let started = Started { desired: desired.clone(), network: network.clone(), app, out };
        if entries.0.started.set(started).is_err() {
            return;
        }
        // Those of a store that is read already are wanted before the first switch comes.
        entries.current(|_| ());
        entries.take_stored();
        network.spawn("stored static entries", entries.clone().run_store(network.clone()));
        network.spawn("static entries", entries.clone().keep(network.clone(), desired));
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}

#[cfg(test)]
mod tests;
