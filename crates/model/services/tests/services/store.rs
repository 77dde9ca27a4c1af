//! The store in memory does what every store must do.

use bellrock_services::store::MemoryStore;

use crate::suite;

#[test]
fn memory_does_what_every_store_must() {
    suite::ready(async {
        suite::entries_change_only_if_their_revisions_are_as_expected(&MemoryStore::default())
            .await;
        suite::a_conflict_changes_nothing(&MemoryStore::default()).await;
        suite::a_wrong_commit_is_refused(&MemoryStore::default()).await;
        suite::concurrent_counters_lose_nothing(&MemoryStore::default()).await;
        let store = MemoryStore::default();
        suite::a_follower_sees_each_commit_as_a_whole(&store, &store.clone()).await;
    });
}
