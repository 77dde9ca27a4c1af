//! What the nodes of a cluster share, in etcd: stores of named entries.
//!
//! The keys of a store begin with `/bellrock/CLUSTER/STORE/`; the entry's name follows. A value is
//! JSON:
//!
//! ```text
//! {"version":1,"commit":"7f0c41d2a96be853","value":...}
//! ```
//!
//! `commit` is a random number: it distinguishes a commit whose answer was lost from one of another
//! node that writes the same. Each commit is one transaction, which also compares the names of the
//! cluster's nodes: another cluster of the same name changes nothing.
//!
//! All stores share a thread with a runtime of its own: reading 100,000 entries must not delay
//! heartbeats. It ends when the last [`SharedStore`] is dropped.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bellrock_book::{
    COMMITS, CommitFuture, EntryStore, Life, NotStored, StoreChange, StoreEvent, StoreEvents,
    StoreLimits, StoredChange, StoredEntry, Stream,
};
use serde::Deserialize;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{sleep, timeout};

use crate::boot_time::BootTime;
use crate::etcd::limits::{MAX_OPERATIONS, MAX_TRANSACTION_BYTES};
use crate::etcd::{
    self, Change, Client, Entry, LeaseId, Outcome, ReadNeeded, Snapshot, Transaction, WatchEvent,
};
use crate::known_commits::KnownCommits;
use crate::runtime::{NODES, Store, Trouble, all_nodes};
use crate::{ClusterSettings, StartError};

/// Version of the form of values.
const VERSION: u32 = 1;
/// Maximum number of changes of a commit. A transaction has two more compares: the nodes, and the
/// number of commits.
const MAX_CHANGES: usize = MAX_OPERATIONS - 2;
/// Maximum size of a commit, in bytes of names and values. The rest of a transaction is for the
/// envelopes of values, and for keys, which are in it twice.
const MAX_COMMIT_BYTES: usize = MAX_TRANSACTION_BYTES / 2;
/// Maximum number of commits and followers that wait for the thread. Further ones are refused.
const MAX_JOBS: usize = 1024;
/// Maximum number of events that wait for a follower. At the bound, the watch waits for it.
const MAX_WAITING_EVENTS: usize = 256;
/// Time to live of the lease by which a node shows that it lives, in seconds. etcd removes the key
/// 0 to 0.5 s later; its default minimum is 2 s.
const LIFE_SECONDS: i64 = 3;
/// Time between two signs of life.
const LIFE_EVERY: Duration = Duration::from_millis(500);
/// Time before the end of its lease from which on a node does not count on it any more: for clocks
/// that do not run equally fast, and for a task that has just looked.
const LIFE_MARGIN: Duration = Duration::from_millis(500);
/// Value of the key of a node that lives: no words.
const LIFE: &str = "\"\"";
/// After a failure, etcd is read again after so long.
const READ_AGAIN: Duration = Duration::from_millis(500);

/// The stores of a cluster.
#[derive(Clone, Debug)]
pub struct SharedStores {
    jobs: mpsc::Sender<Job>,
}

/// A store that the nodes of a cluster share.
#[derive(Clone, Debug)]
pub struct SharedStore {
    jobs: mpsc::Sender<Job>,
    /// What all keys begin with, after the prefix of the cluster.
    prefix: Arc<str>,
    known: Arc<KnownCommits>,
}

#[derive(Debug)]
enum Job {
    Commit {
        prefix: Arc<str>,
        changes: Vec<StoreChange>,
        known: Arc<KnownCommits>,
        answer: oneshot::Sender<Result<u64, NotStored>>,
    },
    Follow {
        prefix: Arc<str>,
        events: mpsc::Sender<Reported>,
        known: Arc<KnownCommits>,
    },
    Live {
        key: String,
        lease: Arc<KnownLease>,
    },
}

/// What this node knows of the lease of its key: the number, and the time until which etcd
/// certainly has the key.
#[derive(Debug, Default)]
struct KnownLease(Mutex<Option<(LeaseId, BootTime)>>);

impl KnownLease {
    /// Notes that etcd has the key for `time` from a request on, which was sent at `asked`. etcd
    /// counts from when it gets the request, so the lease is not shorter.
    fn extend(&self, lease: LeaseId, asked: BootTime, time: Duration) {
        *self.lock() = Some((lease, asked.after(time.saturating_sub(LIFE_MARGIN))));
    }

    /// Notes that the lease is over.
    fn end(&self) {
        *self.lock() = None;
    }

    fn number(&self) -> Option<u64> {
        self.number_at(BootTime::now())
    }

    fn number_at(&self, now: BootTime) -> Option<u64> {
        let (lease, until) = (*self.lock())?;
        (now < until).then_some(unsigned(lease.0))
    }

    fn lock(&self) -> MutexGuard<'_, Option<(LeaseId, BootTime)>> {
        // Each change is one write.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedStores {
    /// Starts the thread. That etcd cannot be reached is no error.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(settings: &ClusterSettings) -> Result<Self, StartError> {
        let nodes: Vec<String> = all_nodes(settings)?.into_iter().map(|(name, _)| name).collect();
        let me = nodes.iter().position(|name| *name == settings.node).unwrap_or_default();
        let prefix = format!("/bellrock/{}/", settings.name);
        let client = Client::new(&etcd::Settings { prefix, ..settings.etcd.clone() })?;
        let client = client.beginning_at(me);
        SharedStores::with_client(client, nodes)
    }

    /// Starts the thread with this client, for a cluster of nodes with these names, sorted.
    ///
    /// # Errors
    /// [`StartError::System`].
    pub fn with_client(client: Client, nodes: Vec<String>) -> Result<Self, StartError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (jobs, mut receiver) = mpsc::channel(MAX_JOBS);
        let shared = Arc::new(Shared {
            nodes: serde_json::to_vec(&nodes).map_err(std::io::Error::other)?,
            membership: Store::new(client.clone(), nodes),
            client,
            lives: Mutex::default(),
            has_new_life: Notify::new(),
        });
        std::thread::Builder::new().name("cluster-store".into()).spawn(move || {
            runtime.block_on(async {
                while let Some(job) = receiver.recv().await {
                    tokio::spawn(Arc::clone(&shared).carry_out(job));
                }
            });
        })?;
        Ok(SharedStores { jobs })
    }

    /// The store of this name, such as `static`. All nodes give it the same one.
    #[must_use]
    pub fn open(&self, name: &str) -> SharedStore {
        SharedStore {
            jobs: self.jobs.clone(),
            prefix: format!("{name}/").into(),
            known: Arc::default(),
        }
    }
}

impl EntryStore for SharedStore {
    fn limits(&self) -> StoreLimits {
        StoreLimits { changes: MAX_CHANGES, bytes: MAX_COMMIT_BYTES }
    }

    fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture {
        if let Err(error) = self.limits().check(&changes) {
            return Box::pin(std::future::ready(Err(error)));
        }
        let (answer, answered) = oneshot::channel();
        let (prefix, known) = (Arc::clone(&self.prefix), Arc::clone(&self.known));
        let job = Job::Commit { prefix, changes, known, answer };
        let sent = self.jobs.try_send(job);
        Box::pin(async move {
            if sent.is_err() {
                let why = format!("{MAX_JOBS} commits wait for etcd already: try again");
                return Err(NotStored::Unavailable(why));
            }
            let lost = |_| NotStored::Unknown("this node of the cluster is ending".into());
            answered.await.map_err(lost)?
        })
    }

    fn follow(&self) -> StoreEvents {
        let (events, receiver) = mpsc::channel(MAX_WAITING_EVENTS);
        // If it does not fit, the stream ends at once.
        let (prefix, known) = (Arc::clone(&self.prefix), Arc::clone(&self.known));
        let _ = self.jobs.try_send(Job::Follow { prefix, events, known });
        Box::pin(Events(receiver, Arc::clone(&self.known)))
    }

    fn show_life(&self, name: &str) -> Life {
        let (key, lease) = (format!("{}{name}", self.prefix), Arc::<KnownLease>::default());
        let known = Arc::clone(&lease);
        // If it does not fit, others take this node for one that does not live: it leads nothing.
        let _ = self.jobs.try_send(Job::Live { key, lease });
        Life::new(move || known.number())
    }
}

/// An event, and the number of the read that it is.
type Reported = (Option<u64>, StoreEvent);

struct Events(mpsc::Receiver<Reported>, Arc<KnownCommits>);

impl Stream for Events {
    type Item = StoreEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StoreEvent>> {
        self.0.poll_recv(context).map(|reported| {
            let (read, event) = reported?;
            if let Some(read) = read {
                self.1.take(read);
            }
            Some(event)
        })
    }
}

/// What the thread has.
struct Shared {
    client: Client,
    /// The value of the key of the nodes.
    nodes: Vec<u8>,
    membership: Store,
    /// The keys by which this node shows that it lives, one of each store, with what it knows of
    /// them.
    lives: Mutex<Vec<(String, Arc<KnownLease>)>>,
    has_new_life: Notify,
}

/// The form of a value.
#[derive(Deserialize)]
struct Envelope {
    version: u32,
    value: serde_json::Value,
}

impl Shared {
    async fn carry_out(self: Arc<Self>, job: Job) {
        match job {
            Job::Commit { prefix, changes, known, answer } => {
                // Nobody may wait for it any more.
                let _ = answer.send(self.commit(&prefix, &changes, &known).await);
            }
            Job::Follow { prefix, events, known } => self.follow(&prefix, &events, &known).await,
            Job::Live { key, lease } => {
                let is_first = {
                    let mut lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
                    lives.push((key, lease));
                    lives.len() == 1
                };
                self.has_new_life.notify_one();
                // One lease is for the keys of all stores.
                if !is_first {
                    return;
                }
                loop {
                    // What is wrong with etcd is reported by those who follow the store.
                    let _ = self.live().await;
                    self.lives().iter().for_each(|(_, lease)| lease.end());
                    sleep(READ_AGAIN).await;
                }
            }
        }
    }

    fn lives(&self) -> Vec<(String, Arc<KnownLease>)> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn commit(
        &self,
        prefix: &str,
        changes: &[StoreChange],
        known: &KnownCommits,
    ) -> Result<u64, NotStored> {
        let unavailable = |error: &dyn ToString| NotStored::Unavailable(error.to_string());
        let commit = getrandom::u64().map_err(|error| unavailable(&error))?;
        let mut transaction = Transaction::new().value(NODES, self.nodes.clone());
        let mut count = None;
        for change in changes {
            let key = format!("{prefix}{}", change.name());
            let expected = i64::try_from(change.expected()).unwrap_or(i64::MAX);
            transaction = transaction.unchanged(key.clone(), expected);
            if let (COMMITS, StoreChange::Put { name, value, .. }) = (change.name(), change) {
                count = Some(enveloped(commit, value));
                let conflict = |()| NotStored::Conflict { name: name.clone() };
                let seen = match expected {
                    0 => None,
                    expected => known.expected(expected).map_err(conflict)?,
                };
                if let Some(bytes) = seen {
                    transaction = transaction.value(key.clone(), bytes);
                }
            }
            transaction = match change {
                StoreChange::Put { value, .. } => transaction.put(key, enveloped(commit, value)),
                StoreChange::Remove { name, expected: 0 } => {
                    return Err(NotStored::Conflict { name: name.clone() });
                }
                StoreChange::Remove { .. } => transaction.delete(key),
            };
        }
        match self.client.transact(&transaction).await {
            Ok(Outcome::Committed { revision }) => {
                if let Some(count) = count {
                    known.commit(revision, count.into_bytes());
                }
                Ok(unsigned(revision))
            }
            Ok(Outcome::Conflict { found }) => Err(self.conflict(prefix, changes, &found)),
            Ok(Outcome::Unknown { why }) => Err(NotStored::Unknown(why.to_string())),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Keeps the keys of all stores alive, until their lease is over. That is so when etcd could
    /// not be reached for long.
    async fn live(&self) -> Result<(), Trouble> {
        self.membership.check_nodes().await?;
        let mut asked = BootTime::now();
        let (lease, mut time) = self.client.grant_lease(LIFE_SECONDS).await?;
        let mut stored = 0;
        loop {
            let lives = self.lives();
            for (key, _) in &lives[stored.min(lives.len())..] {
                let commit = getrandom::u64().map_err(|error| Trouble::Other(error.to_string()))?;
                let nodes = Transaction::new().value(NODES, self.nodes.clone());
                let life = nodes.put_leased(key.as_str(), enveloped(commit, LIFE), lease);
                let Outcome::Committed { .. } = self.client.transact(&life).await? else {
                    return Ok(());
                };
            }
            stored = lives.len();
            lives.iter().for_each(|(_, known)| known.extend(lease, asked, time));
            if timeout(LIFE_EVERY, self.has_new_life.notified()).await.is_ok() {
                continue;
            }
            let asking = BootTime::now();
            match self.client.keep_lease_alive(lease).await {
                Ok(Some(left)) => (asked, time) = (asking, left),
                Ok(None) => return Ok(()),
                // It is asked again: only etcd knows when the lease is over.
                Err(_) => {}
            }
        }
    }

    /// Finds what did not hold. `found`: what is there; perhaps only that of one key.
    fn conflict(&self, prefix: &str, changes: &[StoreChange], found: &[Entry]) -> NotStored {
        let nodes = found.iter().find(|entry| entry.key == NODES.as_bytes());
        if nodes.is_some_and(|nodes| nodes.value != self.nodes) {
            let why = "etcd has another cluster of the same name, or its nodes have changed";
            return NotStored::Unavailable(why.into());
        }
        let revision_of = |change: &StoreChange| {
            let key = format!("{prefix}{}", change.name());
            let entry = found.iter().find(|entry| entry.key == key.as_bytes());
            entry.map_or(0, |entry| unsigned(entry.mod_revision))
        };
        // With an answer, all that exists is in it.
        let differs = |change: &&StoreChange| revision_of(change) != change.expected();
        let exists = |change: &&StoreChange| revision_of(change) != 0;
        let of_answer = nodes.and_then(|_| changes.iter().find(differs));
        let of_history = || changes.iter().filter(exists).find(differs);
        match of_answer.or_else(of_history).or_else(|| changes.last()) {
            Some(change) => NotStored::Conflict { name: change.name().to_owned() },
            None => NotStored::Invalid("a commit without changes".into()),
        }
    }

    /// Reads all entries, and reports changes, until nobody follows any more.
    async fn follow(&self, prefix: &str, events: &mpsc::Sender<Reported>, known: &KnownCommits) {
        loop {
            let trouble = match self.follow_once(prefix, events, known).await {
                Ok(()) => return,
                Err(trouble) => trouble,
            };
            let is_replaced = match &trouble {
                Trouble::WentBack(_) => true,
                Trouble::OtherCluster(_) => self.client.is_replaced().await,
                Trouble::Other(_) => false,
            };
            if is_replaced {
                // The owner of the store finds out by what is read next.
                self.client.forget_history();
            }
            let unreachable = StoreEvent::Unreachable(trouble.to_string());
            if events.send((None, unreachable)).await.is_err() {
                return;
            }
            sleep(READ_AGAIN).await;
        }
    }

    async fn follow_once(
        &self,
        prefix: &str,
        events: &mpsc::Sender<Reported>,
        known: &KnownCommits,
    ) -> Result<(), Trouble> {
        self.membership.check_nodes().await?;
        let snapshot = self.client.read(prefix).await?;
        let mut watch = self.client.watch_after(prefix, &snapshot);
        let Snapshot { revision, entries } = snapshot;
        let number = known.read();
        let commits = [prefix, COMMITS].concat();
        let see = |entry: &Entry| {
            if entry.key == commits.as_bytes() {
                known.see(number, entry.mod_revision, entry.value.clone());
            }
        };
        entries.iter().for_each(see);
        let entries = entries.into_iter().filter_map(|entry| stored(prefix, entry)).collect();
        let read = StoreEvent::Read { revision: unsigned(revision), entries };
        if events.send((Some(number), read)).await.is_err() {
            return Ok(());
        }
        while let Some(event) = watch.next().await {
            let reported = match event {
                WatchEvent::Connected { .. } => vec![StoreEvent::Reachable],
                WatchEvent::Disconnected { error } => {
                    vec![StoreEvent::Unreachable(error.to_string())]
                }
                WatchEvent::Changes { changes, .. } => {
                    for change in &changes {
                        if let Change::Put(entry) = change {
                            see(entry);
                        }
                    }
                    by_commit(prefix, changes)
                }
                WatchEvent::Progress { .. } | WatchEvent::Alive => Vec::new(),
                WatchEvent::ReadNeeded(
                    ReadNeeded::WentBack(error) | ReadNeeded::OtherCluster(error),
                ) => return Err(error.into()),
                WatchEvent::ReadNeeded(why) => return Err(Trouble::Other(why.to_string())),
            };
            for event in reported {
                if events.send((None, event)).await.is_err() {
                    return Ok(());
                }
            }
            if events.is_closed() {
                return Ok(());
            }
        }
        Err(Trouble::Other("the watch of etcd has ended".into()))
    }
}

/// One event for each revision: that of a commit.
fn by_commit(prefix: &str, changes: Vec<Change>) -> Vec<StoreEvent> {
    let mut commits: Vec<(u64, Vec<StoredChange>)> = Vec::new();
    for change in changes {
        let change = match change {
            Change::Put(entry) => stored(prefix, entry).map(StoredChange::Put),
            Change::Delete { key, mod_revision } => name_of(prefix, &key)
                .map(|name| StoredChange::Removed { name, revision: unsigned(mod_revision) }),
        };
        let Some(change) = change else { continue };
        let revision = match &change {
            StoredChange::Put(entry) => entry.revision,
            StoredChange::Removed { revision, .. } => *revision,
        };
        match commits.last_mut() {
            Some((last, commit)) if *last == revision => commit.push(change),
            _ => commits.push((revision, vec![change])),
        }
    }
    commits.into_iter().map(|(_, commit)| StoreEvent::Changed(commit)).collect()
}

fn enveloped(commit: u64, value: &str) -> String {
    format!(r#"{{"version":{VERSION},"commit":"{commit:016x}","value":{value}}}"#)
}

/// An entry with the value out of its envelope. One in another form keeps it: its reader finds it
/// wrong.
fn stored(prefix: &str, entry: Entry) -> Option<StoredEntry> {
    let name = name_of(prefix, &entry.key)?;
    let value = match serde_json::from_slice::<Envelope>(&entry.value) {
        Ok(Envelope { version: VERSION, value }) => value.to_string(),
        _ => String::from_utf8_lossy(&entry.value).into_owned(),
    };
    Some(StoredEntry { name, value, revision: unsigned(entry.mod_revision) })
}

fn name_of(prefix: &str, key: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(key).ok()?.strip_prefix(prefix)?;
    Some(name.to_owned()).filter(|name| !name.is_empty())
}

fn unsigned(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or_default()
}
