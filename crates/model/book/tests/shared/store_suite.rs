//! What every store of named entries must do, as functions that the tests of each one call.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test uses a part, and fails by panicking"
)]

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bellrock_book::{EntryStore, NotStored, StoreChange, StoreEvent, StoreEvents, StoredChange};
use futures_lite::StreamExt;

fn put(name: &str, value: &str, expected: u64) -> StoreChange {
    StoreChange::Put { name: name.into(), value: value.into(), expected }
}

fn remove(name: &str, expected: u64) -> StoreChange {
    StoreChange::Remove { name: name.into(), expected }
}

fn conflict(name: &str) -> Result<u64, NotStored> {
    Err(NotStored::Conflict { name: name.into() })
}

/// The output of a future that waits for nothing: stores in this process are always ready.
pub fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

/// Names and values that a new follower reads.
pub async fn read(store: &dyn EntryStore) -> Vec<(String, String)> {
    let mut events = store.follow();
    loop {
        match events.next().await.unwrap() {
            StoreEvent::Read { entries, revision } => {
                assert!(entries.iter().all(|entry| (1..=revision).contains(&entry.revision)));
                return entries.into_iter().map(|entry| (entry.name, entry.value)).collect();
            }
            StoreEvent::Reachable => {}
            other => panic!("{other:?}"),
        }
    }
}

async fn names(store: &dyn EntryStore) -> Vec<String> {
    read(store).await.into_iter().map(|(name, _)| name).collect()
}

/// Entries are written, replaced and removed by compare-and-swap.
pub async fn entries_change_only_if_their_revisions_are_as_expected(store: &dyn EntryStore) {
    let first = store.commit(vec![put("a/x", r#"{"n":1}"#, 0), put("b", "2", 0)]).await.unwrap();
    assert_eq!(store.commit(vec![put("b", "3", 0)]).await, conflict("b"), "it exists");
    let second = store.commit(vec![put("b", "3", first)]).await.unwrap();
    assert!(second > first);
    assert_eq!(store.commit(vec![put("b", "4", first)]).await, conflict("b"));
    assert_eq!(store.commit(vec![remove("b", first)]).await, conflict("b"));
    assert_eq!(store.commit(vec![remove("c", 0)]).await, conflict("c"), "nothing to remove");
    assert_eq!(read(store).await, [("a/x".into(), r#"{"n":1}"#.into()), ("b".into(), "3".into())]);
    store.commit(vec![remove("b", second)]).await.unwrap();
    assert_eq!(store.commit(vec![put("b", "5", second)]).await, conflict("b"), "it is gone");
    assert_eq!(names(store).await, ["a/x"]);
}

/// A commit with one conflict changes nothing, wherever in it the conflict is.
pub async fn a_conflict_changes_nothing(store: &dyn EntryStore) {
    let first = store.commit(vec![put("k", "1", 0), put("l", "1", 0)]).await.unwrap();
    for changes in [
        vec![put("new", "1", 0), put("k", "2", first), put("l", "2", first + 7)],
        vec![put("l", "2", first + 7), put("new", "1", 0), remove("k", first)],
    ] {
        assert_eq!(store.commit(changes).await, conflict("l"));
        let all = read(store).await;
        assert_eq!(all, [("k".into(), "1".into()), ("l".into(), "1".into())]);
    }
    let both = vec![remove("k", first), put("l", "2", first)];
    store.commit(both).await.unwrap();
    assert_eq!(read(store).await, [("l".into(), "2".into())]);
}

/// What is wrong by itself is refused.
pub async fn a_wrong_commit_is_refused(store: &dyn EntryStore) {
    for changes in [
        vec![put("", "1", 0)],
        vec![put(&"n".repeat(129), "1", 0)],
        vec![put("k", "1", 0), put("k", "2", 0)],
    ] {
        let refused = store.commit(changes).await;
        assert!(matches!(refused, Err(NotStored::Invalid(_))), "{refused:?}");
    }
    assert!(names(store).await.is_empty());
}

/// Of many that change the same entry, one after the other wins, and nobody loses a change.
pub async fn concurrent_counters_lose_nothing(store: &dyn EntryStore) {
    let count = async |rounds: u64| {
        for _ in 0..rounds {
            loop {
                let mut events = store.follow();
                let entry = loop {
                    if let Some(StoreEvent::Read { entries, .. }) = events.next().await {
                        break entries.into_iter().next();
                    }
                };
                let (value, revision) = match entry {
                    Some(entry) => (entry.value.parse::<u64>().unwrap(), entry.revision),
                    None => (0, 0),
                };
                let next = (value + 1).to_string();
                match store.commit(vec![put("counter", &next, revision)]).await {
                    Ok(_) => break,
                    Err(NotStored::Conflict { .. }) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
    };
    futures_lite::future::zip(count(10), futures_lite::future::zip(count(10), count(10))).await;
    assert_eq!(read(store).await, [("counter".into(), "30".into())]);
}

/// A follower sees all changes in order, those of one commit together.
pub async fn a_follower_sees_each_commit_as_a_whole(
    store: &dyn EntryStore,
    other: &dyn EntryStore,
) {
    let mut events = store.follow();
    let first = other.commit(vec![put("k", "1", 0), put("l", "1", 0)]).await.unwrap();
    let second = other.commit(vec![put("k", "2", first), remove("l", first)]).await.unwrap();
    let third = store.commit(vec![put("m", "3", 0)]).await.unwrap();
    let mut seen = Vec::new();
    while seen.last() != Some(&third) {
        match next_change(&mut events).await {
            // It may be read after the first commit, or any later one.
            StoreEvent::Read { revision, .. } => seen.push(revision),
            StoreEvent::Changed(changes) => {
                let revisions: Vec<u64> = changes.iter().map(revision_of).collect();
                assert!(revisions.iter().all(|one| *one == revisions[0]), "one commit, one event");
                let count = if revisions[0] == third { 1 } else { 2 };
                assert_eq!(changes.len(), count, "{changes:?}");
                seen.push(revisions[0]);
            }
            _ => {}
        }
    }
    assert!(seen.is_sorted(), "{seen:?}");
    assert!(second > first && third > second);
}

async fn next_change(events: &mut StoreEvents) -> StoreEvent {
    events.next().await.unwrap()
}

fn revision_of(change: &StoredChange) -> u64 {
    match change {
        StoredChange::Put(entry) => entry.revision,
        StoredChange::Removed { revision, .. } => *revision,
    }
}
