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

/// Time between two tries to put back what an old snapshot lacks.
const PUT_BACK_EVERY: Duration = Duration::from_secs(5);

/// Number of tries to apply a text while a worker is too busy to take a setting.
const BUSY_TRIES: u32 = 10;

/// Time between two of these tries.
const BUSY_PAUSE: Duration = Duration::from_millis(200);

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
    /// Whether the entry is older than the document.
    is_behind: bool,
    /// Why the newest one is not known.
    trouble: Option<String>,
    /// Why this release cannot read the newest one.
    unreadable: Option<String>,
    /// What became of the document here.
    outcome: Option<Result<ReloadAnswer, QueryError>>,
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
            let mut pause = LOOK_EVERY;
            loop {
                let event = wait_until(Instant::now() + pause, events.next());
                let Some(node) = Weak::upgrade(&node) else { return };
                match event {
                    Some(Some(event)) => node.take_event(event),
                    // The stores of the cluster have ended.
                    Some(None) => return,
                    None => node.put_back(),
                }
                pause = if node.known().is_behind { PUT_BACK_EVERY } else { LOOK_EVERY };
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
    /// order that this node has just stored. Returns what became of it, also if the store has reported it
    /// before the order had its answer; `None` if there is nothing to apply.
    fn apply(
        &self,
        document: Document,
        revision: u64,
        is_own: bool,
    ) -> Option<Result<ReloadAnswer, QueryError>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let is_older = {
            let mut known = self.known();
            if is_own && document.generation <= known.document.generation {
                let is_it = document == known.document;
                return known.outcome.clone().filter(|_| is_it);
            }
            known.unreadable = None;
            known.revision = revision;
            let is_older = document.generation < known.document.generation;
            known.is_behind = is_older;
            let is_new = document != known.document || !known.is_read;
            if !known.is_read {
                (known.is_read, known.trouble) = (true, None);
            }
            if !is_new {
                return None;
            }
            if !is_older {
                (known.document, known.outcome) = (document.clone(), None);
            }
            is_older
        };
        if is_older {
            self.put_back();
            return None;
        }
        let Document { generation, node, text, .. } = document;
        let answer = self.share(&text);
        self.known().outcome = Some(answer.clone());
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

    /// Puts a text in force here.
    fn share(&self, text: &str) -> Result<ReloadAnswer, QueryError> {
        let mut answer = self.reloader.share(text, false);
        for _ in 1..BUSY_TRIES {
            if !answer.as_ref().is_err_and(|error| error.kind == ErrorKind::Busy) {
                break;
            }
            thread::sleep(BUSY_PAUSE);
            answer = self.reloader.share(text, false);
        }
        answer
    }

    /// Stores again what an old snapshot lacks, if the entry is older than what this node knows. What the
    /// store reports then ends that.
    fn put_back(&self) {
        let (document, revision) = {
            let known = self.known();
            if !known.is_behind {
                return;
            }
            (known.document.clone(), known.revision)
        };
        let generation = document.generation;
        match self.commit(put(&document, revision)) {
            Ok(_) => warn!(
                "etcd went back to an earlier shared configuration; generation {generation} is stored again"
            ),
            // Another node has put it back, or it is tried again.
            Err(NotStored::Conflict { .. } | NotStored::Unknown(_)) => {}
            Err(error) => warn!(
                "etcd went back to an earlier shared configuration, and generation {generation} is not stored \
                 again yet: {error}"
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

/// The answer to an order that is stored, and that a later one replaced before it was in force here.
fn overtaken(mut answer: ReloadAnswer) -> ReloadAnswer {
    answer.applied = true;
    answer.warnings.push("a later order has replaced it already".to_owned());
    answer
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
                applied.unwrap_or_else(|| Ok(overtaken(answer))).map_err(|error| {
                    let why = format!("it is stored for all nodes, but not in force here: {error}");
                    QueryError { message: why, ..error }
                })
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

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::atomic::{AtomicBool, Ordering};

    use bellrock_config::{Config, Sources};
    use bellrock_services::store::{CommitFuture, MemoryStore, StoreEvents, StoreLimits};

    use super::super::builder::builder;
    use super::super::{SharedTableKind, start_log};
    use super::*;

    /// A store that can be away: then it takes nothing.
    #[derive(Clone, Debug, Default)]
    struct TestStore {
        entries: MemoryStore,
        is_away: Arc<AtomicBool>,
    }

    impl EntryStore for TestStore {
        fn limits(&self) -> StoreLimits {
            self.entries.limits()
        }

        fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture {
            if self.is_away.load(Ordering::Relaxed) {
                return Box::pin(ready(Err(NotStored::Unavailable("it is away".to_owned()))));
            }
            self.entries.commit(changes)
        }

        fn follow(&self) -> StoreEvents {
            self.entries.follow()
        }
    }

    impl TestStore {
        fn generation(&self) -> u64 {
            self.entries.with(|entries| {
                let (_, value) = entries.next().unwrap();
                serde_json::from_str::<Document>(value).unwrap().generation
            })
        }

        /// Writes a value as somebody else does.
        fn write(&self, value: &str, expected: u64) {
            let (name, value) = (ENTRY.to_owned(), value.to_owned());
            drop(self.entries.commit(vec![StoreChange::Put { name, value, expected }]));
        }
    }

    /// A node, and what its store reports to it when the test says so.
    struct TestNode {
        node: Arc<SharedConfigNode>,
        events: StoreEvents,
    }

    impl TestNode {
        fn new(name: &str, store: &TestStore) -> Self {
            let config = Config::default();
            let (_, parts) =
                builder(&config, SharedTableKind::default(), &mut |builder, _| Ok(builder))
                    .unwrap();
            let log_level = start_log(&config);
            let reloader = Reloader::new((Sources::default(), false), config, log_level, parts);
            let events = store.follow();
            let node = SharedConfigNode::new(Arc::new(store.clone()), name.to_owned(), reloader);
            let mut node = TestNode { node, events };
            node.hear();
            node
        }

        fn hear(&mut self) {
            while let Some(Some(event)) = wait_until(Instant::now(), self.events.next()) {
                self.node.take_event(event);
            }
        }

        fn order(&self, text: &str) -> Result<ReloadAnswer, QueryError> {
            self.node.set(&SetSharedConfig { text: text.to_owned(), ..Default::default() })
        }

        fn knows(&self) -> (u64, String, Option<String>) {
            let SharedConfig { generation, text, trouble, .. } = self.node.get();
            (generation, text, trouble)
        }
    }

    #[test]
    fn of_two_orders_one_is_carried_out_and_the_other_knows_that_it_was_not() {
        let store = TestStore::default();
        let (mut a, mut b) = (TestNode::new("a", &store), TestNode::new("b", &store));
        assert_eq!(a.knows(), (0, String::new(), None));
        let answer = a.order("log_level: debug").unwrap();
        assert!(answer.applied && answer.changes.len() == 1, "{answer:?}");
        // Before b has heard it.
        let error = b.order("log_level: warn").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Refused);
        assert!(error.message.contains("another order was faster"), "{error}");
        b.hear();
        assert_eq!(b.knows(), (1, "log_level: debug".to_owned(), None));
        let late = SetSharedConfig { generation: Some(0), ..Default::default() };
        let error = b.node.set(&late).unwrap_err();
        assert!(error.message.contains("1 is the generation now, not 0"), "{error}");
        b.order("log_level: warn").unwrap();
        a.hear();
        // What b has ordered comes to b as well.
        b.hear();
        assert_eq!(a.knows(), (2, "log_level: warn".to_owned(), None));
        assert_eq!(b.knows(), a.knows());
    }

    #[test]
    fn an_order_whose_text_is_refused_here_says_so_even_if_the_store_was_faster() {
        let a = TestNode::new("a", &TestStore::default());
        let document = |generation, text: &str| {
            let (node, text) = ("a".to_owned(), text.to_owned());
            Document { generation, node, changed_at: 1, text }
        };
        let refused = document(1, "no_such_setting: 1");
        // What the store reports comes first, then the answer to the order.
        assert!(a.node.apply(refused.clone(), 1, false).unwrap().is_err());
        assert!(a.node.apply(refused, 1, true).unwrap().is_err());
        let good = document(2, "log_level: debug");
        assert!(a.node.apply(good.clone(), 2, false).unwrap().unwrap().applied);
        assert!(a.node.apply(good, 2, true).unwrap().unwrap().applied);
        assert!(a.node.apply(document(1, "log_level: warn"), 1, true).is_none(), "it is replaced");
    }

    #[test]
    fn what_an_old_snapshot_lacks_is_put_back_as_soon_as_the_store_takes_it() {
        let store = TestStore::default();
        let mut a = TestNode::new("a", &store);
        a.order("log_level: debug").unwrap();
        let old = store.entries.with(|entries| entries.next().unwrap().1.to_owned());
        a.order("log_level: warn").unwrap();
        a.hear();
        store.is_away.store(true, Ordering::Relaxed);
        store.write(&old, 2);
        a.hear();
        assert_eq!((store.generation(), a.knows().0), (1, 2), "the node keeps the newer one");
        a.node.put_back();
        assert_eq!(store.generation(), 1, "the store is away");
        store.is_away.store(false, Ordering::Relaxed);
        a.node.put_back();
        assert_eq!(store.generation(), 2);
        a.hear();
        // Nothing is to be put back any more.
        store.is_away.store(true, Ordering::Relaxed);
        assert!(!a.node.known().is_behind);
        assert_eq!(a.knows(), (2, "log_level: warn".to_owned(), None));
    }

    #[test]
    fn a_form_of_a_newer_release_is_named_and_not_overwritten() {
        let store = TestStore::default();
        let mut a = TestNode::new("a", &store);
        store.write(r#"{"generation":7,"parts":[]}"#, 0);
        a.hear();
        let trouble = a.knows().2.unwrap();
        assert!(trouble.starts_with("this release cannot read what nodes share"), "{trouble}");
        let error = a.order("log_level: warn").unwrap_err();
        assert!(error.message.contains("this release cannot read"), "{error}");
        store.entries.with(|entries| assert!(entries.next().unwrap().1.contains("parts")));
    }

    #[test]
    fn a_text_that_is_too_long_is_refused_before_it_is_stored() {
        let store = TestStore::default();
        let a = TestNode::new("a", &store);
        let text = format!("# {}", "x".repeat(bellrock_config::MAX_SHARED_BYTES));
        let error = a.order(&text).unwrap_err();
        assert!(error.message.contains("nodes share at most 256 KiB"), "{error}");
        store.entries.with(|entries| assert!(entries.next().is_none()));
    }
}
