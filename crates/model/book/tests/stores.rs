//! The stores in memory and in a file do what every store must do.
#![cfg(feature = "file")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

#[path = "shared/store_suite.rs"]
mod suite;

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

use bellrock_book::file::{FileStore, NamedValues, read};
use bellrock_book::{EntryStore, MemoryStore, NotStored, StoreChange};

/// Waits for a future in this thread. The store answers from its own.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}

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

fn directory(name: &str) -> PathBuf {
    let name = format!("bellrock-file-store-{name}-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn read_again(path: &Path) -> NamedValues {
    read(path, |_| panic!("it is not of version 1")).unwrap()
}

#[test]
fn a_file_does_what_every_store_must() {
    let place = directory("suite");
    let create = |name: &str| FileStore::create(place.join(name), Vec::new()).unwrap();
    block_on(async {
        let store = create("a");
        suite::entries_change_only_if_their_revisions_are_as_expected(&store).await;
        suite::a_conflict_changes_nothing(&create("b")).await;
        suite::a_wrong_commit_is_refused(&create("c")).await;
        suite::concurrent_counters_lose_nothing(&create("d")).await;
    });
    assert_eq!(read_again(&place.join("a")), [("a/x".into(), r#"{"n":1}"#.into())]);
    assert_eq!(read_again(&place.join("d")), [("counter".into(), "30".into())]);
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_failed_write_is_not_committed() {
    let place = directory("full");
    let path = place.join("store.json");
    let store = FileStore::create(path.clone(), vec![("k".into(), "1".into())]).unwrap();
    let put = |expected| StoreChange::Put { name: "k".into(), value: "2".into(), expected };
    // A directory in the place of the new file.
    let beside = place.join("store.json.new");
    fs::create_dir_all(&beside).unwrap();
    let refused = block_on(store.commit(vec![put(1)])).unwrap_err();
    assert!(matches!(&refused, NotStored::Unavailable(why) if why.contains("store.json")));
    assert_eq!(read_again(&path), [("k".into(), "1".into())]);
    fs::remove_dir_all(beside).unwrap();
    block_on(store.commit(vec![put(1)])).unwrap();
    assert_eq!(read_again(&path), [("k".into(), "2".into())]);
    fs::remove_dir_all(place).unwrap();
}
