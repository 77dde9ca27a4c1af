//! The entries of a store, as one controller knows them, and orders that change them.
//!
//! An order is a function of the entries: it reads what there is, and changes some, or refuses. It
//! is stored by compare-and-swap. Every commit also writes one entry, the number of commits: so
//! what the order was checked against is what the store has. If another controller was faster, the
//! order is checked again against what that one has stored. So of two orders for the last capacity
//! of a link exactly one gets it. Orders that come while others are stored are stored together.
//!
//! # The leader
//! Each controller that shares the store keeps an entry `node/NAME` alive by a lease. One of those
//! that live is the leader: an entry `leader`, written as any order is. What the leader orders is
//! checked with [`Draft::is_leader`] in the order itself. So a controller that was the leader, and
//! has not heard that another one is now, changes nothing: its commit has an old number. A
//! controller that is alone is always the leader.
//!
//! # Large orders
//! An order that is larger than a commit of the store is checked as a whole, and stored in parts,
//! in the order of its writes. It says which changes must be in the same part
//! ([`Draft::together`]). Each part is on condition that nobody has stored anything since the last
//! one. If somebody has, the order is checked again as a whole, and what it has stored already
//! stays. It is answered when its last part is stored; if that fails, the answer is how far it came
//! ([`NotOrdered::Partly`]). Readers see each part when it is stored. If the controller ends
//! between two parts, the first ones stay, and the same order again stores the rest. A store in a
//! file or in memory has no such limit: there, every order is stored as a whole or not at all.
//!
//! # When the store has gone back
//! The number of commits only grows. If the store has a smaller one than this controller knows, and
//! still has after it was read once more, an old snapshot was restored. Then what this controller
//! has is newer, and is put back, also removals: what was removed stays removed. The event
//! `store_put_back` names the entries.
//!
//! # What it is not
//! It knows nothing of what values mean: that is a [`BookModel`]. It is not for the hot path.

mod draft;
mod follow;
mod order;
mod task;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use bellrock_api::runtime::promise;
use bellrock_api::{Network, Publisher, Watch};
use futures_lite::StreamExt;

pub use draft::Draft;
pub use order::NotOrdered;

use super::{EntryStore, Life, NotStored, StoreChange, StoreEvent, StoreEvents, StoreLimits};
use order::{AnyJob, Order};
use task::Task;

/// Name of the number of commits, which each commit of a book changes. A store whose revisions may
/// come again compares its value too.
pub const COMMITS: &str = "commits";
/// Name of the entry that names the leader.
pub(super) const LEADER: &str = "leader";
/// Names of controllers that live begin so.
pub(super) const NODE: &str = "node/";

/// Maximum number of orders that are stored together, if the store does not allow fewer changes.
const MAX_BATCH: usize = 256;
/// Maximum number of orders that wait. Further ones are refused.
const MAX_WAITING: usize = 16_384;
/// Time to see what another controller has stored before an order. Then the order is refused.
const FOLLOW_LIMIT: Duration = Duration::from_secs(5);
/// Number of times that orders are checked again, as other controllers were faster. Then they are
/// refused.
const MAX_ATTEMPTS: u32 = 64;
/// Time for a store to answer. That in etcd answers in less, whatever happens.
const COMMIT_LIMIT: Duration = Duration::from_secs(15);
/// Time after which a store that has ended is followed again.
const FOLLOW_AGAIN: Duration = Duration::from_secs(1);
/// Bytes of a commit that are kept for the number of commits and the leader.
const OWN_BYTES: usize = 512;
/// Entries of a commit that are kept for the same.
const OWN_CHANGES: usize = 2;
/// Number of names in the report of an old snapshot. The others are counted.
const NAMES_SHOWN: usize = 20;

/// What the values of a book mean, and what is to be known of all of them at once.
pub trait BookModel: Default + Send + 'static {
    /// The value of an entry.
    type Value: Send + Sync + PartialEq + 'static;

    /// Reads a value.
    ///
    /// # Errors
    /// What is wrong, for the log: a newer release has written it, or it is damaged.
    fn read(name: &str, value: &str) -> Result<Self::Value, String>;

    /// Returns the JSON form of a value.
    fn show(value: &Self::Value) -> String;

    /// Whether an entry of this name is of the book. Others stay in the store as they are, for
    /// example what only an earlier release reads.
    #[must_use]
    fn has(name: &str) -> bool {
        let _ = name;
        true
    }

    /// Takes in a change that is stored.
    fn change(&mut self, name: &str, before: Option<&Self::Value>, after: Option<&Self::Value>);

    /// Takes in a change of an order that is being checked, so that the next order of the same
    /// commit is checked against it. Before anything is stored, all these changes are taken back:
    /// the last one first, with `before` and `after` exchanged. A model whose orders look at
    /// [`Draft::changes`] needs none of this.
    fn draft(&mut self, name: &str, before: Option<&Self::Value>, after: Option<&Self::Value>) {
        let _ = (name, before, after);
    }
}

/// The entries of a store. All clones are the same.
pub struct EntryBook<M: BookModel>(Arc<Shared<M>>);

impl<M: BookModel> Clone for EntryBook<M> {
    fn clone(&self) -> Self {
        EntryBook(Arc::clone(&self.0))
    }
}

impl<M: BookModel> fmt::Debug for EntryBook<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryBook").field("store", &self.0.store).finish_non_exhaustive()
    }
}

struct Shared<M: BookModel> {
    store: Arc<dyn EntryStore>,
    /// The name of this controller. `None`: it does not share the store.
    node: Option<String>,
    /// The lease of the entry by which it shows that it lives. Empty: no task runs yet.
    life: OnceLock<Life>,
    known: Mutex<Known<M>>,
    /// Number of changes of `known`.
    version: Publisher<u64>,
    jobs: (Sender<AnyJob<M>>, Receiver<AnyJob<M>>),
    /// What the store reports, until the task takes it.
    events: Mutex<Option<StoreEvents>>,
}

/// What this controller knows of the store.
struct Known<M: BookModel> {
    values: BTreeMap<String, Arc<M::Value>>,
    /// Revisions of all names, except those of nodes.
    revisions: HashMap<String, u64>,
    model: M,
    commits: u64,
    /// All changes up to this revision are known.
    revision: u64,
    /// Entries that this release cannot read.
    unreadable: BTreeSet<String>,
    nodes: BTreeSet<String>,
    leader: Option<String>,
    is_read: bool,
    trouble: Option<String>,
}

impl<M: BookModel> Default for Known<M> {
    fn default() -> Self {
        Known {
            values: BTreeMap::new(),
            revisions: HashMap::new(),
            model: M::default(),
            commits: 0,
            revision: 0,
            unreadable: BTreeSet::new(),
            nodes: BTreeSet::new(),
            leader: None,
            is_read: false,
            trouble: None,
        }
    }
}

impl<M: BookModel> EntryBook<M> {
    /// Opens a store of this controller alone.
    #[must_use]
    pub fn alone(store: Arc<dyn EntryStore>) -> Self {
        EntryBook::open(store, None)
    }

    /// Opens a store that this controller shares with others. `node`: its own name.
    #[must_use]
    pub fn shared(store: Arc<dyn EntryStore>, node: String) -> Self {
        EntryBook::open(store, Some(node))
    }

    fn open(store: Arc<dyn EntryStore>, node: Option<String>) -> Self {
        let mut events = store.follow();
        let mut known = Known::default();
        // A store in this process answers at once: its entries are there before the first switch.
        let mut context = Context::from_waker(Waker::noop());
        match pin!(events.next()).poll(&mut context) {
            Poll::Ready(Some(event)) => {
                known.take(event);
            }
            _ => known.trouble = Some("the store was not read yet".into()),
        }
        EntryBook(Arc::new(Shared {
            store,
            node,
            life: OnceLock::new(),
            known: Mutex::new(known),
            version: Publisher::default(),
            jobs: async_channel::bounded(MAX_WAITING),
            events: Mutex::new(Some(events)),
        }))
    }

    /// The name of this controller: empty if it is alone.
    #[must_use]
    pub fn node(&self) -> &str {
        self.0.node.as_deref().unwrap_or_default()
    }

    /// Whether other controllers have the same entries.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.0.node.is_some()
    }

    /// Whether the entries are known.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.known().is_read
    }

    /// Returns why no order can be carried out: the store is not read yet, or it has an entry that
    /// this release cannot read.
    #[must_use]
    pub fn unusable(&self) -> Option<String> {
        self.known().unusable()
    }

    /// Returns why the entries may be old, or cannot be changed: as [`unusable`](Self::unusable),
    /// or the store does not answer.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let known = self.known();
        known.unusable().or_else(|| known.trouble.clone())
    }

    /// Whether this controller is the leader, as far as it knows. An order asks
    /// [`Draft::is_leader`].
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.known().is_leader(self.0.node.as_deref())
    }

    /// Returns the number of the lease by which this controller leads, as far as it knows. `None`,
    /// or another number, as soon as another controller may have become the leader.
    ///
    /// An order that was stored while it was this leader, under this lease, excludes that another
    /// one led since then, as long as this returns the same number: the other one knows the order,
    /// and what comes before it, before it becomes the leader. So it knows that this controller
    /// lives, until the lease is over.
    #[must_use]
    pub fn lead_lease(&self) -> Option<u64> {
        let Some(node) = self.0.node.as_deref() else { return Some(0) };
        let lease = self.0.life.get()?.lease()?;
        let known = self.known();
        (known.leader.as_deref() == Some(node) && known.nodes.contains(node)).then_some(lease)
    }

    /// The name of the leader, as far as this controller knows. `None`: there is none, or this
    /// controller is alone.
    #[must_use]
    pub fn leader(&self) -> Option<String> {
        self.known().leader.clone()
    }

    /// Whether the controller of this name lives, as far as this one knows.
    #[must_use]
    pub fn is_alive(&self, node: &str) -> bool {
        self.known().is_alive(self.0.node.as_deref(), node)
    }

    /// Number of changes so far, of entries, nodes and the leader.
    #[must_use]
    pub fn changes(&self) -> &Watch<u64> {
        self.0.version.watch()
    }

    /// The value of an entry.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Arc<M::Value>> {
        self.known().values.get(name).cloned()
    }

    /// All entries, by name.
    #[must_use]
    pub fn values(&self) -> Vec<(String, Arc<M::Value>)> {
        let known = self.known();
        known.values.iter().map(|(name, value)| (name.clone(), Arc::clone(value))).collect()
    }

    /// Calls `read` with the model. Nothing is stored meanwhile.
    pub fn with_model<T>(&self, read: impl FnOnce(&mut M) -> T) -> T {
        read(&mut self.known().model)
    }

    /// Carries out an order, even if its answer is dropped. `plan` is called again if another
    /// controller was faster: it must depend on the draft, and on what does not matter then.
    /// The task [`EntryBook::run`] carries it out.
    ///
    /// # Errors
    /// [`NotOrdered`]. A refusal has changed nothing.
    pub async fn order<R, E>(
        &self,
        plan: impl FnMut(&mut Draft<'_, M>) -> Result<R, E> + Send + 'static,
    ) -> Result<R, NotOrdered<E>>
    where
        R: Send + 'static,
        E: Send + 'static,
    {
        let (answer, answered) = promise();
        let order = Box::new(Order::new(plan, answer));
        if self.0.jobs.0.try_send(order).is_err() {
            let why = format!("{MAX_WAITING} orders wait for the store already: try again");
            return Err(NotOrdered::Unavailable(why));
        }
        let ending = || NotOrdered::Unknown("the controller is ending".into());
        answered.await.unwrap_or_else(|| Err(ending()))
    }

    /// Carries out orders, and follows the store, as long as the controller runs. One task runs it.
    pub async fn run(self, network: Network) {
        let taken = self.0.events.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut task = Task {
            events: taken.unwrap_or_else(|| self.0.store.follow()),
            book: self,
            network,
            left: VecDeque::new(),
            is_mending: false,
        };
        if let Some(node) = &task.book.0.node {
            let book = &task.book.0;
            book.life.get_or_init(|| book.store.show_life(&format!("{NODE}{node}")));
        }
        loop {
            task.lead_if_due().await;
            task.next().await;
        }
    }

    fn known(&self) -> MutexGuard<'_, Known<M>> {
        // A change is taken in entry by entry.
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self) {
        self.0.version.update(|version| version + 1);
    }
}

impl<M: BookModel> Known<M> {
    fn unusable(&self) -> Option<String> {
        if !self.is_read {
            let why = self.trouble.as_deref().unwrap_or_default();
            return Some(format!("the store is not read yet: {why}"));
        }
        let name = self.unreadable.first()?;
        Some(format!(
            "the entry {name} is of a newer release, or damaged, and this controller cannot read it"
        ))
    }

    fn is_leader(&self, node: Option<&str>) -> bool {
        node.is_none_or(|node| {
            self.leader.as_deref() == Some(node)
                && self.nodes.contains(node)
                && self.trouble.is_none()
        })
    }

    fn is_alive(&self, own: Option<&str>, node: &str) -> bool {
        match own {
            None => node.is_empty(),
            Some(own) => own == node || self.nodes.contains(node),
        }
    }

    /// The controller that is to lead now, if it does not yet.
    fn due_leader(&self) -> Option<&String> {
        let is_led = self.leader.as_ref().is_some_and(|leader| self.nodes.contains(leader));
        self.nodes.first().filter(|_| !is_led && self.is_read)
    }
}

#[cfg(test)]
mod tests;
