//! A store that lives as long as its process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    CommitFuture, EntryStore, NotStored, StoreChange, StoreEvent, StoreEvents, StoreLimits,
    StoredChange, StoredEntry,
};

/// Maximum number of events that wait for a follower. A follower that is farther behind is ended.
const MAX_WAITING_EVENTS: usize = 4096;

/// A store in memory. Clones share its entries.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    entries: BTreeMap<String, (u64, String)>,
    revision: u64,
    followers: Vec<async_channel::Sender<StoreEvent>>,
}

impl MemoryStore {
    /// Creates a store with these entries. All get revision 1.
    #[must_use]
    pub fn with_entries(entries: impl IntoIterator<Item = (String, String)>) -> Self {
        let entries = entries.into_iter().map(|(name, value)| (name, (1, value))).collect();
        MemoryStore(Arc::new(Mutex::new(Kept { entries, revision: 1, followers: Vec::new() })))
    }

    /// Calls `read` with names and values of all entries, in the order of names.
    pub fn with<T>(&self, read: impl FnOnce(&mut dyn Iterator<Item = (&str, &str)>) -> T) -> T {
        let kept = self.kept();
        let mut values = kept.values();
        read(&mut values)
    }

    /// Changes entries, if `save` saves all that there is then; else none. Others wait meanwhile.
    ///
    /// # Errors
    /// [`NotStored`]; that of `save` is [`NotStored::Unavailable`].
    pub fn commit_if<E: ToString>(
        &self,
        changes: Vec<StoreChange>,
        save: impl FnOnce(&mut dyn Iterator<Item = (&str, &str)>) -> Result<(), E>,
    ) -> Result<u64, NotStored> {
        self.limits().check(&changes)?;
        let mut kept = self.kept();
        for change in &changes {
            let revision = kept.entries.get(change.name()).map_or(0, |(revision, _)| *revision);
            let is_removal = matches!(change, StoreChange::Remove { .. });
            if revision != change.expected() || (is_removal && revision == 0) {
                return Err(NotStored::Conflict { name: change.name().to_owned() });
            }
        }
        let revision = kept.revision + 1;
        let (mut before, mut done) = (Vec::new(), Vec::new());
        for change in changes {
            let name = change.name().to_owned();
            before.push((name.clone(), kept.entries.remove(&name)));
            done.push(match change {
                StoreChange::Put { value, .. } => {
                    kept.entries.insert(name.clone(), (revision, value.clone()));
                    StoredChange::Put(StoredEntry { name, value, revision })
                }
                StoreChange::Remove { .. } => StoredChange::Removed { name, revision },
            });
        }
        let saved = save(&mut kept.values());
        if let Err(error) = saved {
            for (name, entry) in before {
                match entry {
                    Some(entry) => kept.entries.insert(name, entry),
                    None => kept.entries.remove(&name),
                };
            }
            return Err(NotStored::Unavailable(error.to_string()));
        }
        kept.revision = revision;
        let event = StoreEvent::Changed(done);
        kept.followers.retain(|follower| follower.try_send(event.clone()).is_ok());
        Ok(revision)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A commit is taken back before anything of it can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(name, (_, value))| (name.as_str(), value.as_str()))
    }
}

impl EntryStore for MemoryStore {
    fn limits(&self) -> StoreLimits {
        StoreLimits { changes: usize::MAX, bytes: usize::MAX }
    }

    fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture {
        let result = self.commit_if(changes, |_| Ok::<(), String>(()));
        Box::pin(std::future::ready(result))
    }

    fn follow(&self) -> StoreEvents {
        let (sender, receiver) = async_channel::bounded(MAX_WAITING_EVENTS);
        let mut kept = self.kept();
        let entries = kept.entries.iter().map(|(name, (revision, value))| {
            let (name, value) = (name.clone(), value.clone());
            StoredEntry { name, value, revision: *revision }
        });
        let read = StoreEvent::Read { revision: kept.revision, entries: entries.collect() };
        // There is space: nobody else has the channel.
        let _ = sender.try_send(read);
        kept.followers.push(sender);
        Box::pin(receiver)
    }
}
