//! Reads, transactions, independent writes and leases.

use std::time::Duration;

use bellrock_cluster::etcd::{
    Change, Client, Entry, Error, Outcome, Transaction, WatchEvent, Write, limits,
};

use crate::servers::{Cluster, within};

fn keys(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| String::from_utf8(entry.key.clone()).unwrap()).collect()
}

fn revision(outcome: &Outcome) -> i64 {
    match outcome {
        Outcome::Committed { revision } => *revision,
        other => panic!("not committed: {other:?}"),
    }
}

async fn put(client: &Client, key: &str, value: &str, expected: i64) -> Outcome {
    let transaction = Transaction::new().unchanged(key, expected).put(key, value);
    client.transact(&transaction).await.unwrap()
}

#[tokio::test]
async fn a_read_has_all_entries_of_its_prefix_in_order() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client();
    let writes: Vec<Write> =
        (0..250).map(|number| Write::put(format!("a/{number:03}"), "v", 0)).collect();
    for outcome in client.write_each(&writes).await {
        revision(&outcome.unwrap());
    }
    // Neighbours of the prefix, also outside of this client's part of etcd.
    put(&client, "a", "", 0).await;
    put(&client, "a0", "", 0).await;
    cluster.etcdctl(0, &["put", "/test", "x"]);
    cluster.etcdctl(0, &["put", "/tesu/a/", "x"]);
    let expected: Vec<String> = (0..250).map(|number| format!("a/{number:03}")).collect();
    for page in [1000, 250, 249, 7] {
        let snapshot = client.read_in_pages("a/", page).await.unwrap();
        assert_eq!(keys(&snapshot.entries), expected, "in pages of {page}");
        assert!(snapshot.entries.iter().all(|entry| entry.value == b"v" && entry.lease.is_none()));
    }
    assert_eq!(client.read("").await.unwrap().entries.len(), 252);
    let none = client.read("b/").await.unwrap();
    assert!(none.entries.is_empty() && none.revision > 1);
}

#[tokio::test]
async fn all_pages_are_of_one_revision() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client();
    let writer = client.clone();
    let write = async move {
        for round in 0..100 {
            // Always the same value in the first and the last.
            let value = round.to_string();
            let both = Transaction::new().put("a", value.clone()).put("z", value);
            revision(&writer.transact(&both).await.unwrap());
        }
    };
    let task = tokio::spawn(write);
    let mut seen = Vec::new();
    while !task.is_finished() {
        let snapshot = client.read_in_pages("", 1).await.unwrap();
        let values: Vec<_> = snapshot.entries.iter().map(|entry| entry.value.clone()).collect();
        assert!(values.len() != 1 && values.first() == values.last(), "{values:?}");
        assert!(snapshot.entries.iter().all(|entry| entry.mod_revision <= snapshot.revision));
        seen.push(snapshot.revision);
    }
    task.await.unwrap();
    assert!(seen.is_sorted(), "a later read is not older");
}

#[tokio::test]
async fn pages_that_are_too_large_are_read_in_smaller_ones() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client();
    // 40 MB: more than an answer may have, and than etcd's gateway takes at once.
    for number in 0..40 {
        put(&client, &format!("{number:02}"), &"v".repeat(1_000_000), 0).await;
    }
    let snapshot = client.read("").await.unwrap();
    assert_eq!(snapshot.entries.len(), 40);
    assert!(snapshot.entries.iter().all(|entry| entry.value.len() == 1_000_000));
}

#[tokio::test]
async fn a_transaction_happens_whole_or_not_at_all() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client();
    let first = revision(&put(&client, "k", "1", 0).await);
    let Outcome::Conflict { found } = put(&client, "k", "2", 0).await else { panic!("committed") };
    let expected = Entry { key: "k".into(), value: "1".into(), mod_revision: first, lease: None };
    assert_eq!(found, [expected]);
    let both = Transaction::new().unchanged("k", first).unchanged("l", 0).delete("k").put("l", "2");
    let second = revision(&client.transact(&both).await.unwrap());
    assert_eq!(second, first + 1);
    assert_eq!(keys(&client.read("").await.unwrap().entries), ["l"]);
    let again = client.transact(&both).await.unwrap();
    let Outcome::Conflict { found } = again else { panic!("{again:?}") };
    assert_eq!(keys(&found), ["l"], "what is there of the compared keys");
    let by_value = |value: &str| Transaction::new().value("l", value).put("l", "3");
    assert!(!client.transact(&by_value("1")).await.unwrap().is_committed());
    assert!(client.transact(&by_value("2")).await.unwrap().is_committed());
    assert_eq!(client.read_key(b"l").await.unwrap().unwrap().value, b"3");
    assert_eq!(client.read_key(b"k").await.unwrap(), None);
    // etcd accepts as many as the client does.
    let many = (0..limits::MAX_OPERATIONS).fold(Transaction::new(), |all, number| {
        let key = format!("many/{number}");
        all.unchanged(key.clone(), 0).put(key, "")
    });
    revision(&client.transact(&many).await.unwrap());
    let large = Transaction::new().put("large", vec![b'v'; limits::MAX_TRANSACTION_BYTES - 5]);
    revision(&client.transact(&large).await.unwrap());
}

#[tokio::test]
async fn independent_writes_do_not_hinder_each_other() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client();
    let mut writes: Vec<Write> =
        (0..150).map(|number| Write::put(number.to_string(), "v", 0)).collect();
    let taken = revision(&put(&client, "7", "other", 0).await);
    writes.push(Write::put("", "", 0));
    writes.push(Write::delete("7", taken));
    writes.push(Write::delete("8", taken));
    // Twice the same key: in this order.
    writes.push(Write::put("9", "w", 0));
    let outcomes = client.write_each(&writes).await;
    assert_eq!(outcomes.len(), writes.len());
    for (write, outcome) in writes.iter().zip(&outcomes).take(150) {
        if write.operation.key() == b"7" {
            let Ok(Outcome::Conflict { found }) = outcome else { panic!("{outcome:?}") };
            assert_eq!(found[0].value, b"other");
        } else {
            revision(outcome.as_ref().unwrap());
        }
    }
    assert_eq!(outcomes[150], Err(Error::EmptyTransaction));
    revision(outcomes[151].as_ref().unwrap());
    for outcome in &outcomes[152..] {
        assert!(matches!(outcome, Ok(Outcome::Conflict { .. })), "{outcome:?}");
    }
    assert_eq!(client.read("").await.unwrap().entries.len(), 149);
}

#[tokio::test]
async fn keys_end_with_their_lease() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client();
    let (lease, time) = client.grant_lease(60).await.unwrap();
    assert_eq!(time, Duration::from_secs(60));
    let leased = Transaction::new().unchanged("k", 0).put_leased("k", "v", lease);
    let written = revision(&client.transact(&leased).await.unwrap());
    assert_eq!(client.read_key(b"k").await.unwrap().unwrap().lease, Some(lease));
    assert!(client.lease_time_left(lease).await.unwrap().unwrap() <= time);
    assert_eq!(client.keep_lease_alive(lease).await.unwrap(), Some(time));
    let mut watch = client.watch("", written + 1);
    client.revoke_lease(lease).await.unwrap();
    let removal = loop {
        match within(watch.next(), "the key is removed").await.unwrap() {
            WatchEvent::Changes { changes, .. } => break changes,
            WatchEvent::Connected { .. } | WatchEvent::Progress { .. } | WatchEvent::Alive => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(removal, [Change::Delete { key: "k".into(), mod_revision: written + 1 }]);
    assert_eq!(client.keep_lease_alive(lease).await.unwrap(), None);
    assert_eq!(client.lease_time_left(lease).await.unwrap(), None);
    client.revoke_lease(lease).await.unwrap();
    assert_eq!(client.grant_lease(0).await, Err(Error::LeaseTime(0)));
    let refused = client.transact(&leased).await.unwrap_err();
    assert!(matches!(refused, Error::LeaseNotFound { .. }), "{refused}");
    // One that nobody keeps alive.
    let (short, _) = client.grant_lease(1).await.unwrap();
    let leased = Transaction::new().unchanged("s", 0).put_leased("s", "v", short);
    revision(&client.transact(&leased).await.unwrap());
    let gone = async {
        while client.read_key(b"s").await.unwrap().is_some() {
            tokio::time::sleep(crate::servers::SHORT).await;
        }
    };
    within(gone, "the lease expires").await;
}

#[tokio::test]
async fn members_report_their_state() {
    let cluster = Cluster::start(3).await;
    let client = cluster.client();
    let members = client.members().await;
    let states: Vec<_> = members.iter().map(|(_, member)| member.clone().unwrap()).collect();
    for ((address, _), member) in members.iter().zip(&cluster.members) {
        assert_eq!(*address, member.address);
    }
    let leader = states[0].leader.unwrap();
    assert!(states.iter().any(|state| state.member_id == leader));
    assert!(states.iter().all(|state| {
        state.cluster_id == states[0].cluster_id
            && state.leader == Some(leader)
            && state.version.starts_with("3.")
            && state.database_bytes > 0
            && state.raft_term > 0
            && state.alarms.is_empty()
    }));
}
