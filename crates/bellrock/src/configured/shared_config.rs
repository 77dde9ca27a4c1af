//! The configuration that the nodes of a cluster share: an entry in etcd, which each node applies as a layer above
//! its own file.
//!
//! ```text
//! {"generation":4,"node":"a","changed_at":1795820400,"text":"switches: {core-1: a1}\n"}
//! ```
//!
//! The generation only grows: what is shared no more is an empty text with a generation of its own. If etcd has
//! an older generation than a node knows, an old snapshot was restored, and the node puts its own back. A
//! node that cannot apply a text keeps what was in force before, and reports an alarm.
//!
//! A node that starts begins with its own file, and applies what is shared when etcd has answered, so that it
//! starts without etcd too. Until then it decides nothing about circuits.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bellrock_api::{AppEvent, Network};
use bellrock_config::MAX_SHARED_BYTES;
use bellrock_query::{
    ErrorKind, QueryError, ReloadAnswer, SetSharedConfig, SharedConfig, SharedConfigHandle,
};
use bellrock_services::store::{
    EntryStore, NotStored, StoreChange, StoreEvent, StoredChange, StoredEntry,
};
use futures_lite::StreamExt;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use super::reload::Reloader;
use crate::operator::wait_until;

/// Time for etcd to answer an order, which it does within the deadlines of the cluster's client.
const COMMIT_LIMIT: Duration = Duration::from_secs(15);

/// Time between two looks whether the controller is still there, while nothing changes.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Name of the entry.
const ENTRY: &str = "configuration";

/// The entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
struct Document {
    generation: u64,
    node: String,
    /// In seconds since 1970.
    changed_at: u64,
    text: String,
}

/// What a node knows of the entry.
#[derive(Default)]
struct Known {
    document: Document,
    /// Revision of the entry; 0: there is none.
    revision: u64,
    is_read: bool,
    /// Why the newest one is not known.
    trouble: Option<String>,
    /// Why this release cannot read the newest one.
    unreadable: Option<String>,
}

/// The shared configuration at one node.
pub(super) struct SharedConfigNode {
    store: Arc<dyn EntryStore>,
    node: String,
    reloader: Arc<Reloader>,
    network: OnceLock<Network>,
    known: Mutex<Known>,
    /// Held while a document is applied, so that the newest one is applied last.
    turn: Mutex<()>,
}

impl SharedConfigNode {
    pub(super) fn new(
        store: Arc<dyn EntryStore>,
        node: String,
        reloader: Arc<Reloader>,
    ) -> Arc<Self> {
        let (network, turn) = (OnceLock::new(), Mutex::new(()));
        let trouble = Some("etcd has not answered yet".to_owned());
        let known = Mutex::new(Known { trouble, ..Known::default() });
        Arc::new(SharedConfigNode { store, node, reloader, network, known, turn })
    }

    /// Applies what is stored, and its changes, in a thread that ends with the store.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(super) fn follow(self: &Arc<Self>, network: Network) -> std::io::Result<()> {
        // It is called once.
        let _ = self.network.set(network);
        let mut events = self.store.follow();
        let node = Arc::downgrade(self);
        let follow = move || {
            loop {
                let event = wait_until(Instant::now() + LOOK_EVERY, events.next());
                let Some(node) = Weak::upgrade(&node) else { return };
                match event {
                    Some(Some(event)) => node.take_event(event),
                    // The stores of the cluster have ended.
                    Some(None) => return,
                    None => {}
                }
            }
        };
        thread::Builder::new().name("shared-config".into()).spawn(follow).map(|_| ())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_event(&self, event: StoreEvent) {
        match event {
            StoreEvent::Read { entries, .. } => {
                self.take_entry(entries.into_iter().find(|entry| entry.name == ENTRY));
            }
            StoreEvent::Changed(changes) => {
                for change in changes {
                    match change {
                        StoredChange::Put(entry) if entry.name == ENTRY => {
                            self.take_entry(Some(entry));
                        }
                        StoredChange::Removed { name, .. } if name == ENTRY => {
                            self.take_entry(None);
                        }
                        _ => {}
                    }
                }
            }
            StoreEvent::Unreachable(why) => self.known().trouble = Some(why),
            StoreEvent::Reachable => self.known().trouble = None,
        }
    }

    /// Takes what is stored.
    fn take_entry(&self, entry: Option<StoredEntry>) {
        let revision = entry.as_ref().map_or(0, |entry| entry.revision);
        match entry.map(|entry| serde_json::from_str::<Document>(&entry.value)).transpose() {
            Ok(document) => {
                // The alarm says what is wrong with it.
                let _ = self.apply(document.unwrap_or_default(), revision, false);
            }
            Err(error) => {
                let why = format!("this release cannot read what nodes share: {error}");
                warn!("{why}");
                self.known().unreadable = Some(why);
            }
        }
    }

    /// Applies a document, unless this node knows a newer one, which it puts back. `is_own`: it is that of an
    /// order that this node has just stored. Returns `None` if there is nothing to apply.
    fn apply(
        &self,
        document: Document,
        revision: u64,
        is_own: bool,
    ) -> Option<Result<ReloadAnswer, QueryError>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = {
            let mut known = self.known();
            if is_own && document.generation <= known.document.generation {
                // The store has reported it, or a later one, before the order had its answer.
                return None;
            }
            known.unreadable = None;
            known.revision = revision;
            let is_older = document.generation < known.document.generation;
            let is_new = document != known.document || !known.is_read;
            if !known.is_read {
                (known.is_read, known.trouble) = (true, None);
            }
            if !is_new {
                return None;
            }
            if !is_older {
                known.document = document.clone();
            }
            is_older.then(|| known.document.clone())
        };
        if let Some(newest) = lost {
            self.put_back(&newest, revision);
            return None;
        }
        let Document { generation, node, text, .. } = document;
        let answer = self.reloader.share(&text, false);
        match &answer {
            Ok(_) if generation == 0 => {}
            Ok(answer) => {
                let changes = answer.changes.len();
                let text = format!(
                    "generation {generation} of what nodes share, ordered at node {node}, is in force here; \
                     changes: {changes}"
                );
                info!("{text}");
                self.publish(AppEvent::new("shared_config_applied", &text));
            }
            Err(error) => {
                let text = format!(
                    "generation {generation} of what nodes share, ordered at node {node}, is not in force here: {error}"
                );
                text.lines().for_each(|line| warn!("{line}"));
                self.publish(AppEvent::new("shared_config_refused", &text).alarming());
            }
        }
        Some(answer)
    }

    /// Stores again what an old snapshot lacks. `revision`: that of the older entry.
    fn put_back(&self, newest: &Document, revision: u64) {
        let generation = newest.generation;
        let put = put(newest, revision);
        match self.commit(put) {
            Ok(_) => warn!(
                "etcd went back to an earlier shared configuration; generation {generation} is stored again"
            ),
            // Another node has put it back, or etcd is read again.
            Err(NotStored::Conflict { .. } | NotStored::Unknown(_)) => {}
            Err(error) => warn!(
                "etcd went back to an earlier shared configuration, and generation {generation} cannot be stored \
                 again: {error}"
            ),
        }
    }

    fn commit(&self, change: StoreChange) -> Result<u64, NotStored> {
        let commit = self.store.commit(vec![change]);
        let late = || NotStored::Unknown("etcd has not answered in time".to_owned());
        wait_until(Instant::now() + COMMIT_LIMIT, commit).unwrap_or_else(|| Err(late()))
    }

    fn publish(&self, event: AppEvent) {
        if let Some(network) = self.network.get() {
            network.publish(event);
        }
    }
}

fn put(document: &Document, expected: u64) -> StoreChange {
    let value = serde_json::to_string(document).unwrap_or_default();
    StoreChange::Put { name: ENTRY.to_owned(), value, expected }
}

/// Nothing has changed, for this reason.
fn refused(why: impl std::fmt::Display) -> QueryError {
    QueryError::new(ErrorKind::Refused, format!("nothing has changed: {why}"))
}

impl SharedConfigHandle for SharedConfigNode {
    fn get(&self) -> SharedConfig {
        let known = self.known();
        let Document { generation, node, changed_at, text } = known.document.clone();
        let trouble = known.unreadable.clone().or_else(|| known.trouble.clone());
        drop(known);
        let has_changed = generation > 0;
        SharedConfig {
            generation,
            text,
            node: has_changed.then_some(node),
            changed_at: has_changed.then_some(changed_at),
            trouble: trouble.or_else(|| self.reloader.shared_trouble()),
        }
    }

    fn set(&self, order: &SetSharedConfig) -> Result<ReloadAnswer, QueryError> {
        if order.text.len() > MAX_SHARED_BYTES {
            let (bytes, limit) = (order.text.len(), MAX_SHARED_BYTES >> 10);
            let why = format!("the text has {bytes} bytes; nodes share at most {limit} KiB");
            return Err(QueryError::invalid("text", why));
        }
        let (revision, before) = {
            let known = self.known();
            let unknown = known.trouble.as_ref().filter(|_| !known.is_read);
            if let Some(why) = known.unreadable.as_ref().or(unknown) {
                return Err(refused(why));
            }
            (known.revision, known.document.generation)
        };
        if let Some(expected) = order.generation.filter(|expected| *expected != before) {
            let why = format!(
                "{before} is the generation now, not {expected}; order again with what it has"
            );
            return Err(refused(why).at("generation"));
        }
        let answer = self.reloader.share(&order.text, true).map_err(|error| error.at("text"))?;
        if order.dry_run {
            return Ok(answer);
        }
        let changed_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let (node, text) = (self.node.clone(), order.text.clone());
        let document = Document { generation: before + 1, node, changed_at, text };
        match self.commit(put(&document, revision)) {
            Ok(revision) => {
                let applied = self.apply(document, revision, true);
                applied.unwrap_or(Ok(ReloadAnswer { applied: true, ..answer }))
            }
            Err(NotStored::Conflict { .. }) => {
                Err(refused("another order was faster; read what is shared now, and try again"))
            }
            Err(NotStored::Unknown(why)) => {
                let why = format!(
                    "whether this was stored is not known, as the answer of etcd was lost: {why}; read what is shared"
                );
                Err(QueryError::new(ErrorKind::Timeout, why))
            }
            Err(error) => Err(refused(error)),
        }
    }
}
