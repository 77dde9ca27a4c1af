//! The store of static entries: in memory, in a file, or in the etcd of a cluster.
//!
//! An order is checked against all entries, stored by compare-and-swap, and only then wanted in
//! switches. Each order also writes the number of orders: so what it was checked against is what
//! the store has. If another node was faster, the order is checked again; if that one changed the
//! same entry, the order is refused.
//!
//! Orders that come while others are stored are stored together.
//!
//! # Several nodes
//! Each node follows the store, and wants what others have stored. All of them want all entries;
//! the master of a switch has them installed. A node that has not read the store yet takes no
//! orders, and removes no flows.
//!
//! # When the store has gone back
//! The number of orders only grows. If it is smaller than before, though the store was read while
//! this node ordered nothing, an old snapshot of etcd was restored. Then what this node has is
//! newer: it is put back. Entries that were removed since the snapshot come back: nobody knows any
//! more that somebody removed them. The log names all of them.

mod follow;
mod saved;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bellrock_apps::static_entries::{
    self as app, NotSet, StaticChange, StaticEntries, StaticOrder,
};
use bellrock_services::desired::DesiredEntry;
use bellrock_services::store::{EntryStore, MemoryStore, NotStored, StoreChange};

use super::wait::wait_until;
use crate::file_store::{self, FileStore, FileStoreError, NamedValues};
use saved::{ORDERS, SavedOrders, entry_name, stored_name, unix_seconds};

/// Time for a store to answer. That in etcd answers in less, whatever happens.
const COMMIT_LIMIT: Duration = Duration::from_secs(15);
/// Time for this node to see what another one has stored before its order. Then the order is
/// refused.
const FOLLOW_LIMIT: Duration = Duration::from_secs(5);
/// Number of times that an order is checked again because another node was faster. Then it is
/// refused.
const MAX_ATTEMPTS: u32 = 64;
/// Bytes of a commit that are kept for the number of orders.
const ORDERS_BYTES: usize = 64;

/// The store of the static entries.
pub struct StaticStore(Arc<Shared>);

struct Shared {
    entries: StaticEntries,
    store: Arc<dyn EntryStore>,
    place: Place,
    /// Orders that nobody has begun with.
    waiting: Mutex<VecDeque<Arc<Waiting>>>,
    /// Its lock is held by whoever changes the entries, until that is stored.
    known: Mutex<Known>,
    /// Wakes who waits for changes of other nodes.
    followed: Condvar,
}

/// Where the entries are.
#[derive(Debug)]
enum Place {
    Memory,
    File(PathBuf),
    Cluster,
}

/// What this controller knows of the store.
#[derive(Default)]
struct Known {
    /// Revisions of all names in the store.
    revisions: HashMap<String, u64>,
    /// Number of orders so far.
    orders: u64,
    /// Names of entries that this release cannot read.
    unreadable: BTreeSet<String>,
    /// Names of entries that are to be put back, as the store has gone back.
    lost: BTreeSet<String>,
    is_loaded: bool,
    /// What is wrong with the store.
    trouble: Option<String>,
}

/// An order that waits for its result.
struct Waiting {
    order: StaticOrder,
    result: Mutex<Option<Result<StaticChange, NotOrdered>>>,
}

/// Why an order was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotOrdered {
    #[error(transparent)]
    NotSet(NotSet),
    #[error(
        "the entry {0} was changed at another node of the cluster at the same moment, and nothing of this order was carried out; look at the entry (bellrock static list), and order again"
    )]
    Conflict(String),
    #[error("the entry {0} is of a newer release, or damaged, and this node cannot read it")]
    Unreadable(String),
    #[error("nothing has changed: {0}")]
    Unavailable(String),
    #[error(
        "whether this order was carried out is not known, as the answer of etcd was lost: bellrock static list shows it when etcd answers ({0})"
    )]
    Unknown(String),
    /// It had more changes than fit into one commit.
    #[error(
        "{stored} of {of} changes were carried out, and the others were not: {why}; the same order again carries out the rest"
    )]
    Partly { stored: usize, of: usize, why: Box<NotOrdered> },
}

/// Why the file of static entries cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StaticStoreError {
    /// The file itself.
    #[error(transparent)]
    File(#[from] FileStoreError),
    /// An entry in it is wrong.
    #[error("{}: entry {name}: {error}", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// The entry's name.
        name: String,
        /// What is wrong.
        error: String,
    },
    /// Two entries in it contradict each other.
    #[error("{}: {error}", path.display())]
    Contradiction {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: NotSet,
    },
}

impl fmt::Debug for StaticStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StaticStore").field(&self.0.place).finish()
    }
}

impl StaticStore {
    /// Reads the entries of this file, and keeps the file equal to them. A missing file has no
    /// entries. Call it before the controller starts.
    ///
    /// # Errors
    /// [`StaticStoreError`]. Then there are no entries.
    pub fn open(
        path: impl Into<PathBuf>,
        entries: &StaticEntries,
    ) -> Result<Self, StaticStoreError> {
        let path = path.into();
        let values = load(&path, entries)?;
        let revisions = values.iter().map(|(name, _)| (name.clone(), 1)).collect();
        let orders = values.iter().find(|(name, _)| name == ORDERS);
        let orders = orders.map_or(0, |(_, value)| read_orders(value));
        let store = FileStore::create(path.clone(), values)?;
        let known = Known { revisions, orders, is_loaded: true, ..Known::default() };
        Ok(StaticStore::new(entries, Arc::new(store), Place::File(path), known))
    }

    /// Keeps the entries as long as the controller runs.
    #[must_use]
    pub fn in_memory(entries: &StaticEntries) -> Self {
        let known = Known { is_loaded: true, ..Known::default() };
        StaticStore::new(entries, Arc::new(MemoryStore::default()), Place::Memory, known)
    }

    /// Shares the entries with other controllers by this store, which a thread follows. Call it
    /// before the controller starts.
    #[must_use]
    pub fn shared(store: Arc<dyn EntryStore>, entries: &StaticEntries) -> Self {
        entries.await_entries();
        let known = Known { trouble: Some("etcd was not read yet".into()), ..Known::default() };
        let store = StaticStore::new(entries, store, Place::Cluster, known);
        follow::start(&store.0);
        store
    }

    fn new(
        entries: &StaticEntries,
        store: Arc<dyn EntryStore>,
        place: Place,
        known: Known,
    ) -> Self {
        StaticStore(Arc::new(Shared {
            entries: entries.clone(),
            store,
            place,
            waiting: Mutex::default(),
            known: Mutex::new(known),
            followed: Condvar::new(),
        }))
    }

    /// Reads the entries of this file into `entries` as [`open`](Self::open) does, and writes
    /// nothing.
    ///
    /// # Errors
    /// [`StaticStoreError`].
    pub fn check(path: &Path, entries: &StaticEntries) -> Result<(), StaticStoreError> {
        load(path, entries).map(drop)
    }

    /// The file. `None`: the entries are in memory, or in etcd.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.0.place {
            Place::File(path) => Some(path),
            Place::Memory | Place::Cluster => None,
        }
    }

    /// Whether the entries come back after a restart of the controller.
    pub(super) fn is_kept(&self) -> bool {
        !matches!(self.0.place, Place::Memory)
    }

    /// Whether other controllers have the same entries.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.0.place, Place::Cluster)
    }

    /// Carries out an order, or nothing of it, and stores the result. Returns when it is stored.
    ///
    /// # Errors
    /// [`NotOrdered`].
    pub(super) fn order(&self, order: StaticOrder) -> Result<StaticChange, NotOrdered> {
        let ours = Arc::new(Waiting { order, result: Mutex::default() });
        lock(&self.0.waiting).push_back(Arc::clone(&ours));
        let mut known = lock(&self.0.known);
        loop {
            // Whoever had the lock before may have carried it out with its own.
            if let Some(result) = lock(&ours.result).take() {
                return result;
            }
            let batch = self.0.next_batch();
            known = self.0.carry_out(known, batch);
        }
    }
}

impl Waiting {
    fn finish(&self, result: Result<StaticChange, NotOrdered>) {
        *lock(&self.result) = Some(result);
    }

    /// Whether it may remove entries that it does not name.
    fn is_open(&self) -> bool {
        self.order.replace
    }

    fn changes(&self) -> usize {
        self.order.set.len() + self.order.remove.len()
    }
}

impl Shared {
    /// Takes the orders that are carried out together: those whose changes fit into one commit, or
    /// one.
    fn next_batch(&self) -> Vec<Arc<Waiting>> {
        let mut waiting = lock(&self.waiting);
        let limit = self.store.limits().changes.saturating_sub(1);
        let (mut batch, mut changes) = (Vec::new(), 0_usize);
        while let Some(next) = waiting.front() {
            let is_large = next.is_open() && limit < usize::MAX / 2;
            changes = changes.saturating_add(next.changes());
            if !batch.is_empty() && (is_large || changes > limit) {
                break;
            }
            batch.extend(waiting.pop_front());
            if is_large {
                break;
            }
        }
        batch
    }

    /// Carries out orders. Each gets its result.
    fn carry_out<'l>(
        &'l self,
        mut known: MutexGuard<'l, Known>,
        mut batch: Vec<Arc<Waiting>>,
    ) -> MutexGuard<'l, Known> {
        for _ in 0..MAX_ATTEMPTS {
            if !known.is_loaded {
                let why = known.trouble.clone().unwrap_or_default();
                let why = format!("the static entries of the cluster are not read yet: {why}");
                finish(&batch, &NotOrdered::Unavailable(why));
                return known;
            }
            self.put_back(&mut known);
            let planned = self.plan(&known, &mut batch);
            if planned.is_empty() {
                return known;
            }
            let changes = self.changes_of(&known, planned.iter().map(|(_, change)| change));
            let Err(NotCommitted { error, stored }) = self.commit(&mut known, &changes) else {
                self.entries.confirm(planned.iter().map(|(_, change)| change));
                let removed = changes.iter().filter_map(removed_name);
                self.entries.forget_ended(removed);
                planned.into_iter().for_each(|(waiting, change)| waiting.finish(Ok(change)));
                return known;
            };
            planned.iter().rev().for_each(|(_, change)| self.entries.undo(change));
            // Those of earlier commits were carried out, whatever became of the last one.
            self.reapply(&changes[..stored]);
            let partly = |why: NotOrdered| match stored {
                0 => why,
                stored => NotOrdered::Partly { stored, of: changes.len(), why: Box::new(why) },
            };
            let name = match error {
                NotStored::Conflict { name } => name,
                NotStored::Unknown(why) => {
                    finish(&batch, &partly(NotOrdered::Unknown(why)));
                    return known;
                }
                error => {
                    finish(&batch, &partly(NotOrdered::Unavailable(error.to_string())));
                    return known;
                }
            };
            if let Some(entry) = entry_name(&name) {
                for (waiting, _) in
                    planned.iter().filter(|(_, change)| change.names.contains(entry))
                {
                    waiting.finish(Err(partly(NotOrdered::Conflict(entry.to_owned()))));
                }
                batch.retain(|waiting| lock(&waiting.result).is_none());
                if batch.is_empty() {
                    return known;
                }
            }
            let expected = changes.iter().find(|change| change.name() == name);
            let expected = expected.map(StoreChange::expected);
            let (after, is_seen) = self.wait_for_change(known, &name, expected);
            known = after;
            if !is_seen {
                let why = known.trouble.clone().unwrap_or_else(|| "it is late".into());
                let why = format!("this node does not see what other nodes have stored: {why}");
                finish(&batch, &NotOrdered::Unavailable(why));
                return known;
            }
        }
        let why = "other nodes of the cluster change static entries all the time: try again";
        finish(&batch, &NotOrdered::Unavailable(why.into()));
        known
    }

    /// Changes the entries as these orders want, except those that are wrong, which get their
    /// result.
    fn plan(
        &self,
        known: &Known,
        batch: &mut Vec<Arc<Waiting>>,
    ) -> Vec<(Arc<Waiting>, StaticChange)> {
        let now = self.entries.now();
        let mut planned = Vec::new();
        for waiting in std::mem::take(batch) {
            let order = &waiting.order;
            let mut names = order.set.iter().map(|entry| &entry.name).chain(&order.remove);
            if let Some(name) = names.find(|name| known.unreadable.contains(*name)) {
                waiting.finish(Err(NotOrdered::Unreadable(name.clone())));
                continue;
            }
            match self.entries.prepare(order.clone(), now) {
                Err(error) => waiting.finish(Err(NotOrdered::NotSet(error))),
                Ok(change) => {
                    batch.push(Arc::clone(&waiting));
                    planned.push((waiting, change));
                }
            }
        }
        planned
    }

    /// What is to be stored, so that the store has the entries of now. What others use comes first.
    fn changes_of<'c>(
        &self,
        known: &Known,
        planned: impl Iterator<Item = &'c StaticChange>,
    ) -> Vec<StoreChange> {
        let names: BTreeSet<&str> =
            planned.flat_map(|change| &change.names).map(String::as_str).collect();
        if names.is_empty() {
            return Vec::new();
        }
        let mut changes = self.puts(known, names.iter().copied());
        let gone = names.iter().filter(|name| self.entries.entry(name).is_none());
        let remove = |name: &str| {
            let name = stored_name(name);
            let expected = known.revisions.get(&name).copied()?;
            Some(StoreChange::Remove { name, expected })
        };
        changes.extend(gone.filter_map(|name| remove(name)));
        // Entries that have ended since. They cost no commit of their own.
        let limit = self.store.limits().changes.saturating_sub(changes.len() + 1);
        let ended = self.entries.ended(limit.min(app::MAX_STATIC_ENTRIES));
        let ended = ended.iter().filter(|name| !names.contains(name.as_str()));
        changes.extend(ended.filter_map(|name| remove(name)));
        changes
    }

    /// The writes of these entries, if they exist: groups and meters first.
    fn puts<'n>(&self, known: &Known, names: impl Iterator<Item = &'n str>) -> Vec<StoreChange> {
        let mut entries: Vec<_> = names.filter_map(|name| self.entries.entry(name)).collect();
        entries.sort_by_key(|entry| matches!(entry.wanted, DesiredEntry::Flow(_)));
        let (now, unix) = (self.entries.now(), unix_seconds());
        let put = |entry: app::StaticEntry| {
            let name = stored_name(&entry.name);
            let expected = known.revisions.get(&name).copied().unwrap_or_default();
            StoreChange::Put { name, value: saved::show(entry, now, unix), expected }
        };
        entries.into_iter().map(put).collect()
    }

    /// Stores changes: in one commit, if they fit into one. Each commit counts as an order.
    fn commit(&self, known: &mut Known, changes: &[StoreChange]) -> Result<(), NotCommitted> {
        let limits = self.store.limits();
        let (most, bytes) = (limits.changes - 1, limits.bytes - ORDERS_BYTES);
        let mut stored = 0;
        while stored < changes.len() {
            let rest = &changes[stored..];
            let sizes = rest.iter().scan(0_usize, |sum, change| {
                *sum = sum.saturating_add(change.bytes());
                Some(*sum)
            });
            let count = sizes.take(most).take_while(|sum| *sum <= bytes).count().max(1);
            let mut commit = rest[..count].to_vec();
            let orders = known.orders + 1;
            let expected = known.revisions.get(ORDERS).copied().unwrap_or_default();
            commit.push(StoreChange::Put {
                name: ORDERS.to_owned(),
                value: serde_json::to_string(&SavedOrders { orders }).unwrap_or_default(),
                expected,
            });
            let committed = self.store.commit(commit.clone());
            let late = || NotStored::Unknown("the store does not answer".into());
            let committed = wait_until(Instant::now() + COMMIT_LIMIT, committed);
            let revision = committed
                .unwrap_or_else(|| Err(late()))
                .map_err(|error| NotCommitted { error, stored })?;
            known.orders = orders;
            for change in commit {
                match change {
                    StoreChange::Put { name, .. } => known.revisions.insert(name, revision),
                    StoreChange::Remove { name, .. } => known.revisions.remove(&name),
                };
            }
            stored += count;
        }
        Ok(())
    }

    /// Changes the entries as is stored.
    fn reapply(&self, stored: &[StoreChange]) {
        let (now, unix) = (self.entries.now(), unix_seconds());
        let (mut put, mut remove) = (Vec::new(), Vec::new());
        for change in stored {
            match change {
                StoreChange::Put { value, .. } => put.extend(saved::read(value, now, unix)),
                StoreChange::Remove { name, .. } => {
                    remove.extend(entry_name(name).map(str::to_owned));
                }
            }
        }
        self.entries.apply(put, &remove);
    }

    /// Waits until this node knows of another revision of an entry than the expected one. Returns
    /// whether it does.
    fn wait_for_change<'l>(
        &'l self,
        known: MutexGuard<'l, Known>,
        name: &str,
        expected: Option<u64>,
    ) -> (MutexGuard<'l, Known>, bool) {
        let before = match expected {
            Some(expected) => expected,
            None => known.revisions.get(name).copied().unwrap_or_default(),
        };
        let is_same =
            |known: &mut Known| known.revisions.get(name).copied().unwrap_or_default() == before;
        let waited = self.followed.wait_timeout_while(known, FOLLOW_LIMIT, is_same);
        let (known, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        (known, !timeout.timed_out())
    }

    /// Stores the entries again that the store has lost. What does not succeed is tried again after
    /// the next event, and before the next order.
    fn put_back(&self, known: &mut Known) {
        if known.lost.is_empty() {
            return;
        }
        let changes = self.puts(known, known.lost.iter().map(String::as_str));
        match self.commit(known, &changes) {
            Ok(()) => {
                tracing::info!("{} static entries are in etcd again", changes.len());
                known.lost.clear();
            }
            // Another node does the same.
            Err(NotCommitted { error: NotStored::Conflict { .. }, .. }) => {}
            Err(NotCommitted { error, .. }) => {
                tracing::warn!("static entries that etcd has lost are not there again: {error}");
            }
        }
    }
}

/// Why changes are not stored. Those before `stored` are.
struct NotCommitted {
    error: NotStored,
    stored: usize,
}

fn removed_name(change: &StoreChange) -> Option<&str> {
    match change {
        StoreChange::Remove { name, .. } => entry_name(name),
        StoreChange::Put { .. } => None,
    }
}

/// Gives all orders that have no result this one.
fn finish(batch: &[Arc<Waiting>], why: &NotOrdered) {
    for waiting in batch.iter().filter(|waiting| lock(&waiting.result).is_none()) {
        waiting.finish(Err(why.clone()));
    }
}

fn read_orders(value: &str) -> u64 {
    serde_json::from_str(value).map_or(0, |SavedOrders { orders }| orders)
}

/// Puts the entries of a file into `entries`, except those that have ended and are in no use.
/// Returns what the file has then.
fn load(path: &Path, entries: &StaticEntries) -> Result<NamedValues, StaticStoreError> {
    let unix = unix_seconds();
    let mut by_owner = BTreeMap::<String, Vec<app::StaticEntry>>::new();
    let mut values = file_store::read(path, saved::read_first_version)?;
    for (stored, value) in &values {
        let Some(name) = entry_name(stored) else { continue };
        let entry = saved::read(value, Duration::ZERO, unix).map_err(|error| {
            StaticStoreError::Entry { path: path.to_owned(), name: name.to_owned(), error }
        })?;
        by_owner.entry(entry.owner.clone()).or_default().push(entry);
    }
    let orders = by_owner.into_iter();
    let orders = orders.map(|(owner, set)| StaticOrder { owner, set, ..StaticOrder::default() });
    entries
        .restore(orders)
        .map_err(|error| StaticStoreError::Contradiction { path: path.to_owned(), error })?;
    let is_there =
        |stored: &str| entry_name(stored).is_none_or(|name| entries.entry(name).is_some());
    values.retain(|(stored, _)| is_there(stored));
    let ended = entries.ended(app::MAX_STATIC_ENTRIES);
    entries.forget_ended(ended.iter().map(String::as_str));
    Ok(values)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
