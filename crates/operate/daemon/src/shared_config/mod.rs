//! The configuration that the nodes of a cluster share: an entry in etcd, which each node applies
//! as a layer above its own file.
//!
//! ```text
//! {"generation":4,"node":"a","changed_at":1795820400,"text":"switches: {core-1: a1}\n"}
//! ```
//!
//! The entry is in a book ([`EntryBook`]), as orders of apps are. So of two orders at the same
//! moment one is refused, and what an old snapshot of etcd lacks is put back. The generation only
//! grows: what is shared no more is an empty text with a generation of its own. A node that cannot
//! apply a text keeps what was in force before, and reports an alarm.
//!
//! A node that starts begins with its own file, and applies what is shared when etcd has answered,
//! so that it starts without etcd too. Until then no app decides about what nodes share.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bellrock_api::{AppEvent, Network};
use bellrock_book::{BookModel, Draft, EntryBook, EntryStore, NotOrdered};
use bellrock_operator::{ORDER_TIMEOUT, wait_until};
use bellrock_query::{
    ErrorKind, QueryError, ReloadAnswer, SetSharedConfig, SharedConfig, SharedConfigHandle,
};
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use super::reload::Reloader;

/// Time between two looks whether the controller is still there, while nothing changes.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Number of tries to apply a text while a worker is too busy to take a setting.
const BUSY_TRIES: u32 = 10;

/// Time between two of these tries.
const BUSY_PAUSE: Duration = Duration::from_millis(200);

/// Name of the alarm that a text is not in force here. It ends with the next one that is.
const REFUSED: &str = "shared_config_refused";

/// What that alarm is about.
const SUBJECT: &str = "shared configuration";

/// Name of the entry.
const ENTRY: &str = "configuration";

/// The value of the entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
struct Document {
    generation: u64,
    node: String,
    /// In seconds since 1970.
    changed_at: u64,
    text: String,
}

/// The book has one entry, and nothing is to be known beside it.
#[derive(Default)]
struct SharedText;

impl BookModel for SharedText {
    type Value = Document;

    fn read(_: &str, value: &str) -> Result<Document, String> {
        serde_json::from_str(value).map_err(|error| error.to_string())
    }

    fn show(document: &Document) -> String {
        // It has no maps with other keys than text.
        serde_json::to_string(document).unwrap_or_default()
    }

    fn change(&mut self, _: &str, _: Option<&Document>, _: Option<&Document>) {}
}

/// A document that was applied at this node.
struct Applied {
    document: Document,
    outcome: Result<ReloadAnswer, QueryError>,
}

/// The shared configuration at one node.
pub(super) struct SharedConfigNode {
    book: EntryBook<SharedText>,
    reloader: Arc<Reloader>,
    network: OnceLock<Network>,
    /// The last document. Locked while one is applied, so that the newest one is applied last.
    /// `None`: the store was not read yet.
    applied: Mutex<Option<Applied>>,
}

impl SharedConfigNode {
    pub(super) fn new(
        store: Arc<dyn EntryStore>,
        node: String,
        reloader: Arc<Reloader>,
    ) -> Arc<Self> {
        let book = EntryBook::shared(store, node);
        let (network, applied) = (OnceLock::new(), Mutex::default());
        Arc::new(SharedConfigNode { book, reloader, network, applied })
    }

    /// Follows the store in a task, and applies what is shared in a thread, since that may wait for
    /// workers. The thread ends within a minute after the controller.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(super) fn follow(self: &Arc<Self>, network: Network) -> std::io::Result<()> {
        // It is called once.
        let _ = self.network.set(network.clone());
        network.spawn("shared configuration", self.book.clone().run(network.clone()));
        let (node, changes) = (Arc::downgrade(self), self.book.changes().clone());
        let follow = move || {
            while let Some(node) = node.upgrade() {
                let seen = changes.load().version();
                drop(node.apply());
                drop(node);
                wait_until(Instant::now() + LOOK_EVERY, changes.newer(seen));
            }
        };
        thread::Builder::new().name("shared-config".into()).spawn(follow).map(|_| ())
    }

    /// The newest document that this node knows. Nothing is shared: an empty one of generation 0.
    fn document(&self) -> Document {
        self.book.value(ENTRY).map(|document| Document::clone(&document)).unwrap_or_default()
    }

    /// Applies the newest document, unless that was done.
    fn apply(&self) -> MutexGuard<'_, Option<Applied>> {
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let document = self.document();
        let is_applied = applied.as_ref().is_some_and(|applied| applied.document == document);
        if !self.book.is_read() || is_applied {
            return applied;
        }
        let outcome = self.share(&document.text);
        let Document { generation, node, .. } = &document;
        match &outcome {
            Ok(_) if *generation == 0 => {}
            Ok(answer) => {
                let changes = answer.changes.len();
                let text = format!(
                    "generation {generation} of what nodes share, ordered at node {node}, is in force here; \
                     changes: {changes}"
                );
                info!("{text}");
                let applied = AppEvent::new("shared_config_applied", &text);
                self.publish(applied.ending(REFUSED, SUBJECT));
            }
            Err(error) => {
                let text = format!(
                    "generation {generation} of what nodes share, ordered at node {node}, is not in force here: {error}"
                );
                text.lines().for_each(|line| warn!("{line}"));
                self.publish(AppEvent::new(REFUSED, &text).alarming_until_ended(SUBJECT));
            }
        }
        *applied = Some(Applied { document, outcome });
        applied
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

    /// Stores a text as the generation after `before`. Returns the document.
    fn store(&self, before: u64, text: String) -> Result<Document, QueryError> {
        let changed_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let node = self.book.node().to_owned();
        let document = Document { generation: before + 1, node, changed_at, text };
        let stored = document.clone();
        let order = self.book.order(move |draft: &mut Draft<'_, SharedText>| {
            let generation = draft.value(ENTRY).map_or(0, |document| document.generation);
            if generation != before {
                return Err("another order was faster; read what is shared now, and try again");
            }
            draft.put(ENTRY, stored.clone());
            Ok(())
        });
        let late = || NotOrdered::Unknown("it is late".to_owned());
        let ordered = wait_until(Instant::now() + ORDER_TIMEOUT, order);
        match ordered.unwrap_or_else(|| Err(late())) {
            Ok(()) => Ok(document),
            Err(NotOrdered::Refused(why)) => Err(refused(why)),
            Err(NotOrdered::Unavailable(why)) => Err(refused(why)),
            Err(NotOrdered::Unknown(why)) => {
                let why = format!(
                    "whether this was stored is not known, as the answer of etcd was lost: {why}; read what is shared"
                );
                Err(QueryError::new(ErrorKind::Timeout, why))
            }
            // One entry fits into a commit.
            Err(error @ NotOrdered::Partly { .. }) => {
                Err(QueryError::new(ErrorKind::Timeout, error.to_string()))
            }
        }
    }

    fn publish(&self, event: AppEvent) {
        if let Some(network) = self.network.get() {
            network.publish(event);
        }
    }
}

/// The answer to an order that is stored, and that a later one replaced before it was in force
/// here.
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
        let Document { generation, node, changed_at, text } = self.document();
        let has_changed = generation > 0;
        SharedConfig {
            generation,
            text,
            node: has_changed.then_some(node),
            changed_at: has_changed.then_some(changed_at),
            trouble: self.book.trouble().or_else(|| self.reloader.shared_trouble()),
        }
    }

    fn set(&self, order: &SetSharedConfig) -> Result<ReloadAnswer, QueryError> {
        if let Some(why) = self.book.unusable() {
            return Err(refused(why));
        }
        let before = self.document().generation;
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
        let document = self.store(before, order.text.clone())?;
        match &*self.apply() {
            Some(applied) if applied.document == document => {
                applied.outcome.clone().map_err(|error| {
                    let why = format!("it is stored for all nodes, but not in force here: {error}");
                    QueryError { message: why, ..error }
                })
            }
            _ => Ok(overtaken(answer)),
        }
    }
}

#[cfg(test)]
mod tests;
