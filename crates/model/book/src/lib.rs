//! Stores of named entries: what outlasts a controller, and what the nodes of a cluster share.
//!
//! A store has entries with a name, a value (JSON) and a revision. [`EntryStore::follow`] reads all
//! of them and reports changes; [`EntryStore::commit`] changes several at once, each on condition
//! that its revision is as expected: all of them or none. So two writers never overwrite what the
//! other one has not seen.
//!
//! [`MemoryStore`] keeps entries as long as the process lives. [`mod@file`] has a store in a file
//! (feature `file`), for a controller that is alone; the crate `cluster` has one in etcd.
//!
//! [`EntryBook`] is what an app has of a store: the entries as it knows them, and orders that are
//! checked against all of them. [`leadership`] chooses by a book where apps run that run once.
//!
//! # What it is not
//! It knows nothing of what the values mean, and no network: its owner decides what a conflict is
//! for an operator.

mod book;
#[cfg(feature = "file")]
pub mod file;
pub mod leadership;
mod life;
mod memory;
mod words;

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;

pub use book::{BookModel, COMMITS, Draft, EntryBook, NotOrdered};
pub use futures_lite::Stream;
pub use life::Life;
pub use memory::MemoryStore;
pub use words::Words;

/// Maximum length of an entry's name, in bytes. Longer ones are refused.
pub const MAX_STORED_NAME_BYTES: usize = 128;

/// An entry of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// Name.
    pub name: String,
    /// Value, in JSON.
    pub value: String,
    /// Revision of its last change. It grows with every change of the store.
    pub revision: u64,
}

/// A change of one entry, on condition of its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreChange {
    /// Writes a value.
    Put {
        /// Name of the entry.
        name: String,
        /// Value, in JSON.
        value: String,
        /// Revision that the entry has; 0: it does not exist.
        expected: u64,
    },
    /// Removes the entry.
    Remove {
        /// Name of the entry.
        name: String,
        /// Revision that the entry has. With 0 it is a conflict: there is nothing to remove.
        expected: u64,
    },
}

impl StoreChange {
    /// Returns the name of the entry.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            StoreChange::Put { name, .. } | StoreChange::Remove { name, .. } => name,
        }
    }

    /// Returns the revision that the entry must have.
    #[must_use]
    pub fn expected(&self) -> u64 {
        match self {
            StoreChange::Put { expected, .. } | StoreChange::Remove { expected, .. } => *expected,
        }
    }

    /// Returns the size of the change, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            StoreChange::Put { name, value, .. } => name.len() + value.len(),
            StoreChange::Remove { name, .. } => name.len(),
        }
    }
}

/// What a store reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreEvent {
    /// All entries. Comes first, and again whenever changes may have been missed.
    Read {
        /// The newest revision that they include.
        revision: u64,
        /// The entries. What is not among them does not exist.
        entries: Vec<StoredEntry>,
    },
    /// Changes, all those of one commit in one event, also those of this process.
    Changed(Vec<StoredChange>),
    /// The store does not answer: changes come late, and commits fail. It is tried again.
    Unreachable(String),
    /// It answers again.
    Reachable,
}

/// A change that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredChange {
    /// An entry was written.
    Put(StoredEntry),
    /// An entry was removed.
    Removed {
        /// Its name.
        name: String,
        /// Revision of the removal.
        revision: u64,
    },
}

/// Why a commit has no revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotStored {
    /// An entry does not have the expected revision. Nothing was changed.
    #[error("{name} was changed by somebody else at the same moment")]
    Conflict {
        /// Name of the entry.
        name: String,
    },
    /// The commit is wrong by itself, or too large. Nothing was changed.
    #[error("{0}")]
    Invalid(String),
    /// The store cannot be used. Nothing was changed, and will not be.
    #[error("{0}")]
    Unavailable(String),
    /// The answer was lost: all was changed, or nothing was. [`EntryStore::follow`] shows it.
    #[error("{0}")]
    Unknown(String),
}

/// What a commit can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Maximum number of changes.
    pub changes: usize,
    /// Maximum size of all changes, in bytes of names and values.
    pub bytes: usize,
}

impl StoreLimits {
    /// Checks what no store carries out.
    ///
    /// # Errors
    /// [`NotStored::Invalid`].
    pub fn check(&self, changes: &[StoreChange]) -> Result<(), NotStored> {
        let wrong = |why: String| Err(NotStored::Invalid(why));
        let bytes: usize = changes.iter().map(StoreChange::bytes).sum();
        if changes.len() > self.changes || bytes > self.bytes {
            let (count, StoreLimits { changes, bytes: maximum }) = (changes.len(), self);
            return wrong(format!(
                "{count} changes of {bytes} bytes are too many at once: {changes} of {maximum} bytes are the maximum"
            ));
        }
        let mut names = BTreeSet::new();
        for name in changes.iter().map(StoreChange::name) {
            if name.is_empty() || name.len() > MAX_STORED_NAME_BYTES {
                return wrong(format!("{name:?} is not a name of a stored entry"));
            }
            if !names.insert(name) {
                return wrong(format!("the entry {name} is changed twice"));
            }
        }
        Ok(())
    }
}

/// The outcome of a commit, which goes on whether or not somebody waits.
pub type CommitFuture = Pin<Box<dyn Future<Output = Result<u64, NotStored>> + Send>>;

/// What a store reports, until the store has ended.
pub type StoreEvents = Pin<Box<dyn Stream<Item = StoreEvent> + Send>>;

/// A store of named entries. Its methods can be called from any thread and any executor.
pub trait EntryStore: fmt::Debug + Send + Sync {
    /// What a commit can have.
    fn limits(&self) -> StoreLimits;

    /// Changes entries: all of them, or none. Returns the revision of the changes, in time that is
    /// bounded by the store. A store in a file writes it before this returns.
    fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture;

    /// Reads all entries, and follows their changes.
    fn follow(&self) -> StoreEvents;

    /// Keeps an entry of this name for as long as this process lives, and returns what is known of
    /// its lease. A store that others share removes the entry some seconds after the process has
    /// ended, or cannot reach the store any more. A store of one process has no such entries, and a
    /// lease that does not end.
    fn show_life(&self, name: &str) -> Life {
        let _ = name;
        Life::endless()
    }
}
