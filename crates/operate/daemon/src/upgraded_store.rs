//! The store of static entries in the etcd of a cluster that an earlier release may have used.

use std::sync::Arc;

use bellrock_book::{
    CommitFuture, EntryStore, Life, StoreChange, StoreEvent, StoreEvents, StoreLimits,
    StoredChange, StoredEntry,
};
use futures_lite::StreamExt;

use bellrock_operator::upgraded_entry;

/// A store whose values of earlier releases are read in the form of this one. What cannot be read
/// stays as it is.
#[derive(Debug)]
pub(super) struct UpgradedStore(pub(super) Arc<dyn EntryStore>);

impl EntryStore for UpgradedStore {
    fn limits(&self) -> StoreLimits {
        self.0.limits()
    }

    fn commit(&self, changes: Vec<StoreChange>) -> CommitFuture {
        self.0.commit(changes)
    }

    fn follow(&self) -> StoreEvents {
        Box::pin(self.0.follow().map(upgraded_event))
    }

    fn show_life(&self, name: &str) -> Life {
        self.0.show_life(name)
    }
}

fn upgraded_event(event: StoreEvent) -> StoreEvent {
    let entry = |StoredEntry { name, value, revision }| {
        let value = upgraded_entry(&name, &value).unwrap_or(value);
        StoredEntry { name, value, revision }
    };
    match event {
        StoreEvent::Read { revision, entries } => {
            let entries = entries.into_iter().map(entry).collect();
            StoreEvent::Read { revision, entries }
        }
        StoreEvent::Changed(changes) => {
            let changes = changes.into_iter().map(|change| match change {
                StoredChange::Put(put) => StoredChange::Put(entry(put)),
                removed @ StoredChange::Removed { .. } => removed,
            });
            StoreEvent::Changed(changes.collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use bellrock_book::MemoryStore;

    use super::*;
    use bellrock_operator::{ORDER_TIMEOUT, wait_until};

    /// Waits for an output, which a store in memory has at once.
    fn block_on<T>(future: impl Future<Output = T>) -> T {
        wait_until(Instant::now() + ORDER_TIMEOUT, future).expect("in time")
    }

    #[test]
    fn entries_of_earlier_releases_are_read_in_the_present_form() {
        let old = r#"{"number":7,"owner":"alice","end":9,"entry":{"name":"a","switch":"a1","flow":{"match":"any","actions":"drop"}}}"#;
        let strange = r#"{"number":7}"#;
        let store = MemoryStore::with_entries(
            [("entry/a", old), ("entry/b", strange), ("orders", r#"{"orders":3}"#)]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let upgraded = UpgradedStore(Arc::new(store.clone()));
        let mut events = upgraded.follow();
        let new = "\"number=7 owner=alice switch=00000000000000a1 end=9 table=0 priority=2048 match=any actions=drop\"";
        let Some(StoreEvent::Read { entries, .. }) = block_on(events.next()) else {
            panic!("it is read")
        };
        let values: Vec<&str> = entries.iter().map(|entry| &*entry.value).collect();
        assert_eq!(values, [new, strange, r#"{"orders":3}"#]);
        // A node of an earlier release changes it.
        let change = StoreChange::Put { name: "entry/a".into(), value: old.into(), expected: 1 };
        block_on(upgraded.commit(vec![change])).unwrap();
        let Some(StoreEvent::Changed(changes)) = block_on(events.next()) else {
            panic!("it has changed")
        };
        let [StoredChange::Put(entry)] = &changes[..] else { panic!("{changes:?}") };
        assert_eq!(entry.value, new);
    }
}
