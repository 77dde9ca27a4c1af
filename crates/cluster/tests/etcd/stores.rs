//! Entries that nodes share: what every store must do, on etcd, and what etcd brings with it.

#[path = "../../../model/book/tests/shared/store_suite.rs"]
mod suite;

use bellrock_book::{COMMITS, EntryStore, NotStored, StoreChange, StoreEvent};
use bellrock_cluster::{SharedStore, SharedStores};
use futures_lite::StreamExt;

use crate::servers::{Cluster, within};

fn nodes() -> Vec<String> {
    ["a", "b", "c"].map(str::to_owned).to_vec()
}

/// The stores of a node.
fn stores(cluster: &Cluster) -> SharedStores {
    SharedStores::with_client(cluster.client(), nodes()).unwrap()
}

/// A store with an own name, which has no entries. The nodes are known.
async fn store(stores: &SharedStores, name: &str) -> SharedStore {
    let store = stores.open(name);
    assert!(suite::read(&store).await.is_empty());
    store
}

fn put(name: &str, value: &str, expected: u64) -> StoreChange {
    StoreChange::Put { name: name.into(), value: value.into(), expected }
}

#[tokio::test]
async fn etcd_does_what_every_store_must() {
    let cluster = Cluster::start(3).await;
    let (one, two) = (stores(&cluster), stores(&cluster));
    let suite = async {
        suite::entries_change_only_if_their_revisions_are_as_expected(&store(&one, "a").await)
            .await;
        suite::a_conflict_changes_nothing(&store(&one, "b").await).await;
        suite::a_wrong_commit_is_refused(&store(&one, "c").await).await;
        suite::concurrent_counters_lose_nothing(&store(&one, "d").await).await;
        let here = store(&one, "e").await;
        suite::a_follower_sees_each_commit_as_a_whole(&here, &two.open("e")).await;
    };
    within(suite, "the suite").await;
}

#[tokio::test]
async fn a_commit_may_have_as_many_changes_as_its_limits_say() {
    let cluster = Cluster::start(1).await;
    let store = store(&stores(&cluster), "s").await;
    let limits = store.limits();
    let value = format!("\"{}\"", "v".repeat(limits.bytes / limits.changes - 64));
    let mut all: Vec<StoreChange> =
        (0..limits.changes).map(|number| put(&format!("{number:04}"), &value, 0)).collect();
    store.commit(all.clone()).await.unwrap();
    assert_eq!(suite::read(&store).await.len(), limits.changes);
    all.push(put("one more", "1", 0));
    assert!(matches!(store.commit(all).await, Err(NotStored::Invalid(_))));
}

#[tokio::test]
async fn another_cluster_of_the_same_name_changes_nothing() {
    let cluster = Cluster::start(1).await;
    let ours = store(&stores(&cluster), "s").await;
    ours.commit(vec![put("k", "1", 0)]).await.unwrap();
    let strangers = ["d", "e", "f"].map(str::to_owned).to_vec();
    let theirs = SharedStores::with_client(cluster.client(), strangers).unwrap().open("s");
    let refused = theirs.commit(vec![put("l", "1", 0)]).await.unwrap_err();
    assert!(refused.to_string().contains("another cluster"), "{refused}");
    match theirs.follow().next().await.unwrap() {
        StoreEvent::Unreachable(why) => assert!(why.contains("another cluster"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(suite::read(&ours).await, [("k".into(), "1".into())]);
}

#[tokio::test]
async fn an_owner_who_has_not_heard_of_a_restore_changes_nothing() {
    let mut cluster = Cluster::start(1).await;
    let one = store(&stores(&cluster), "s").await;
    let count = |n: u64, expected| vec![put(COMMITS, &format!("{{\"count\":\"{n}\"}}"), expected)];
    let first = one.commit(count(1, 0)).await.unwrap();
    cluster.etcdctl(0, &["snapshot", "save", "snapshot.db"]);
    // The owner knows the second commit, and takes nothing more.
    let second = one.commit(count(2, first)).await.unwrap();
    let mut events = one.follow();
    assert!(matches!(events.next().await.unwrap(), StoreEvent::Read { .. }));
    cluster.kill(0);
    cluster.restore(0, "snapshot.db", "etcd-cluster");
    cluster.run(0);
    let two = stores(&cluster).open("s");
    let again = async {
        loop {
            match two.commit(count(2, first)).await {
                Ok(revision) => return revision,
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        }
    };
    assert_eq!(within(again, "etcd is back").await, second, "the same revision again");
    let wrong = async {
        loop {
            match one.commit(count(3, second)).await {
                Err(NotStored::Unavailable(_)) => {
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
                other => return other,
            }
        }
    };
    let refused = within(wrong, "it is asked").await;
    assert_eq!(refused, Err(NotStored::Conflict { name: COMMITS.into() }));
}

#[tokio::test]
async fn without_etcd_nothing_is_committed_and_later_it_goes_on() {
    let mut cluster = Cluster::start(1).await;
    let mut settings = cluster.settings();
    settings.total = std::time::Duration::from_secs(5);
    let client = bellrock_cluster::etcd::Client::new(&settings).unwrap();
    let store = store(&SharedStores::with_client(client, nodes()).unwrap(), "s").await;
    let mut events = store.follow();
    let first = store.commit(vec![put("k", "1", 0)]).await.unwrap();
    cluster.kill(0);
    let refused = store.commit(vec![put("k", "2", first)]).await.unwrap_err();
    assert!(matches!(refused, NotStored::Unavailable(_)), "{refused:?}");
    let unreachable =
        async { while !matches!(events.next().await.unwrap(), StoreEvent::Unreachable(_)) {} };
    within(unreachable, "the follower hears of it").await;
    cluster.run(0);
    let back = async { while !matches!(events.next().await.unwrap(), StoreEvent::Reachable) {} };
    within(back, "it is reachable again").await;
    store.commit(vec![put("k", "2", first)]).await.unwrap();
    assert_eq!(suite::read(&store).await, [("k".into(), "2".into())]);
}
