//! Block list entries in a store: they outlast the controller, and all controllers of a cluster
//! have the same.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellrock_api::Network;
use bellrock_book::{BookModel, Draft, EntryBook, EntryStore, NotOrdered, Words};

use super::list::{Blocked, MAX_BLOCKED};
use super::lists::{BlockLists, NotChanged};

/// What the names of entries begin with in the store.
const PREFIX: &str = "block/";

/// The stored entries.
pub(super) type StoredBlocks = EntryBook<BlockModel>;

/// What is known of all stored entries.
#[derive(Debug, Default)]
pub(super) struct BlockModel {
    all: BTreeSet<Blocked>,
}

fn name(blocked: &Blocked) -> String {
    format!("{PREFIX}{blocked}")
}

fn blocked(name: &str) -> Option<Blocked> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

impl BookModel for BlockModel {
    type Value = Blocked;

    fn read(name: &str, value: &str) -> Result<Blocked, String> {
        Words::parse(value)?;
        blocked(name).ok_or_else(|| format!("{name} is not a host to block"))
    }

    fn show(_: &Blocked) -> String {
        Words::default().show()
    }

    fn change(&mut self, _: &str, before: Option<&Blocked>, after: Option<&Blocked>) {
        if let Some(before) = before {
            self.all.remove(before);
        }
        self.all.extend(after);
    }
}

impl BlockLists {
    /// Lists whose single entries are in a store of this controller alone: they come back after a
    /// restart.
    #[must_use]
    pub fn stored(store: Arc<dyn EntryStore>) -> Self {
        BlockLists::of(StoredBlocks::alone(store))
    }

    /// Lists whose single entries several controllers share. `node`: the name of this one.
    #[must_use]
    pub fn shared(store: Arc<dyn EntryStore>, node: String) -> Self {
        BlockLists::of(StoredBlocks::shared(store, node))
    }

    /// Blocks a host, or a prefix, as [`BlockLists::add`] does, and stores it. Then this
    /// controller's switches are to drop its packets, and soon those of the others.
    ///
    /// # Errors
    /// [`NotChanged`].
    pub async fn block(&self, blocked: Blocked) -> Result<(), NotChanged> {
        let Some(book) = self.book() else { return self.add(blocked) };
        if self.line(&blocked).is_some() {
            return Err(NotChanged::Listed(blocked));
        }
        let in_file = self.file_len();
        let order = book.order(move |draft: &mut Draft<'_, BlockModel>| {
            if draft.value(&name(&blocked)).is_some() {
                return Err(NotChanged::Listed(blocked));
            }
            let added = draft.changes().filter(|(_, before, _)| before.is_none()).count();
            if draft.model().all.len() + added + in_file >= MAX_BLOCKED {
                return Err(NotChanged::Full);
            }
            draft.put(&name(&blocked), blocked);
            Ok(())
        });
        self.take_outcome(order.await)
    }

    /// Unblocks a host or a prefix that [`BlockLists::block`] blocked, and stores that.
    ///
    /// # Errors
    /// [`NotChanged`].
    pub async fn unblock(&self, blocked: Blocked) -> Result<(), NotChanged> {
        let Some(book) = self.book() else { return self.remove(blocked) };
        let line = self.line(&blocked);
        let order = book.order(move |draft: &mut Draft<'_, BlockModel>| {
            if draft.value(&name(&blocked)).is_none() {
                return Err(match line {
                    Some(line) => NotChanged::InFile { blocked, line },
                    None => NotChanged::NotListed(blocked),
                });
            }
            draft.remove(&name(&blocked));
            Ok(())
        });
        self.take_outcome(order.await)
    }

    fn take_outcome(&self, result: Result<(), NotOrdered<NotChanged>>) -> Result<(), NotChanged> {
        match result {
            Ok(()) => {
                self.take_stored();
                Ok(())
            }
            Err(NotOrdered::Refused(why)) => Err(why),
            Err(error) => Err(NotChanged::NotStored(error.to_string())),
        }
    }

    /// Whether the entries are known. Until then nothing is unblocked.
    pub(super) fn is_read(&self) -> bool {
        self.book().is_none_or(EntryBook::is_read)
    }

    /// Blocks what is stored, and nothing else.
    pub(super) fn take_stored(&self) {
        if let Some(book) = self.book() {
            self.set_added(&book.with_model(|model| model.all.clone()));
        }
    }

    /// Carries out orders, and follows the store.
    pub(super) fn start(&self, network: &Network) {
        let Some(book) = self.book() else { return };
        network.spawn("stored block list", book.clone().run(network.clone()));
        let (book, lists) = (book.clone(), self.clone());
        network.spawn("follow the block list", async move {
            loop {
                let seen = book.changes().load();
                lists.take_stored();
                book.changes().newer(seen.version()).await;
            }
        });
    }
}
