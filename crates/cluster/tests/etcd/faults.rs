//! Leaders that are lost, full disks, and snapshots that are restored.

use std::collections::BTreeSet;
use std::time::Duration;

use bellrock_cluster::etcd::{Client, Error, Outcome, ReadNeeded, Transaction, Watch, WatchEvent};

use crate::servers::{Cluster, within};

/// Adds one to a counter, whatever happens: an outcome that is unknown is read.
async fn increment(client: &Client, who: &str, round: u32) {
    loop {
        let Ok(found) = client.read_key(b"counter").await else { continue };
        let (before, revision) = match &found {
            None => (String::new(), 0),
            Some(entry) => (String::from_utf8(entry.value.clone()).unwrap(), entry.mod_revision),
        };
        let mark = format!("{who}{round}");
        if before.split(' ').any(|one| one == mark) {
            return;
        }
        let after = format!("{before} {mark}");
        let write = Transaction::new().unchanged("counter", revision).put("counter", after);
        if client.transact(&write).await.is_ok_and(|outcome| outcome.is_committed()) {
            return;
        }
    }
}

/// Three tasks write while a fault happens and ends. Every write happens, and once.
async fn written_once_despite(
    cluster: &mut Cluster,
    fault: impl FnOnce(&mut Cluster, usize),
    end: impl FnOnce(&mut Cluster, usize),
) {
    const ROUNDS: u32 = 40;
    increment(&cluster.client(), "first", 0).await;
    let tasks: Vec<_> = ["a", "b", "c"]
        .map(|who| {
            let client = cluster.fast_client();
            tokio::spawn(async move {
                for round in 0..ROUNDS {
                    increment(&client, who, round).await;
                }
            })
        })
        .into();
    let leader = cluster.leader().await;
    fault(cluster, leader);
    for task in tasks {
        within(task, "all is written without this member").await.unwrap();
    }
    end(cluster, leader);
    cluster.wait_until_ready().await;
    // What was lost on its way may have arrived by now.
    let value = cluster.client().read_key(b"counter").await.unwrap().unwrap().value;
    let value = String::from_utf8(value).unwrap();
    let marks: Vec<&str> = value.split_whitespace().collect();
    let different: BTreeSet<&str> = marks.iter().copied().collect();
    assert_eq!((marks.len(), different.len()), (1 + 3 * ROUNDS as usize, marks.len()), "{value}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_happen_once_when_the_leader_is_killed() {
    let mut cluster = Cluster::start(3).await;
    written_once_despite(&mut cluster, Cluster::kill, Cluster::run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_happen_once_when_the_leader_falls_silent() {
    let mut cluster = Cluster::start(3).await;
    let (pause, resume) = (
        |cluster: &mut Cluster, leader| cluster.pause(leader),
        |cluster: &mut Cluster, leader| cluster.resume(leader),
    );
    written_once_despite(&mut cluster, pause, resume).await;
}

/// A write is sent to a member that is stopped, and is executed after the client gave up.
#[tokio::test]
async fn a_write_without_an_answer_is_not_repeated_blindly() {
    let cluster = Cluster::start(1).await;
    let mut settings = cluster.settings();
    (settings.attempt, settings.total) = (Duration::from_millis(200), Duration::from_secs(1));
    let client = Client::new(&settings).unwrap();
    client.read("").await.unwrap();
    cluster.pause(0);
    // The connection is open, so it may arrive.
    let plain = client.transact(&Transaction::new().put("k", "v")).await.unwrap();
    assert!(matches!(plain, Outcome::Unknown { why: Error::Silent { .. } }), "{plain:?}");
    let fenced = Transaction::new().unchanged("f", 0).put("f", "v");
    // The other connection was given up, and a new one gets no answer: this one was not sent.
    let error = client.transact(&fenced).await.unwrap_err();
    assert!(matches!(error, Error::NoneAnswered { .. }), "{error}");
    cluster.resume(0);
    within(async { while client.read("").await.is_err() {} }, "it answers again").await;
    assert!(client.transact(&fenced).await.unwrap().is_committed());
}

#[tokio::test]
async fn a_full_database_is_reported_and_can_be_read() {
    let cluster = Cluster::with_flags(1, &["--quota-backend-bytes", "8388608"]).await;
    let client = cluster.client();
    let mut committed = 0;
    let error = loop {
        let key = format!("{committed:03}");
        let put = Transaction::new().unchanged(key.clone(), 0).put(key, "v".repeat(500_000));
        match client.transact(&put).await {
            // Also the write that reached the quota, which etcd executes and calls a failure.
            Ok(outcome) => assert!(outcome.is_committed(), "{outcome:?}"),
            Err(error) => break error,
        }
        committed += 1;
        assert!(committed < 100, "the quota is not reached");
    };
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert_eq!(client.read("").await.unwrap().entries.len(), committed);
    let members = client.members().await;
    let alarms = &members[0].1.as_ref().unwrap().alarms;
    assert!(alarms.len() == 1 && alarms[0].ends_with("alarm:NOSPACE"), "{alarms:?}");
    // Removals free space: etcd accepts them.
    let delete = Transaction::new().delete("000");
    client.transact(&delete).await.unwrap();
    // What the error advises.
    let revision = client.read("").await.unwrap().revision.to_string();
    cluster.etcdctl(0, &["compact", &revision]);
    cluster.etcdctl(0, &["defrag"]);
    cluster.etcdctl(0, &["alarm", "disarm"]);
    let put = Transaction::new().unchanged("z", 0).put("z", "v");
    assert!(client.transact(&put).await.unwrap().is_committed());
}

async fn write(client: &Client, count: u32) {
    for number in 0..count {
        let put = Transaction::new().put("k", number.to_string());
        assert!(client.transact(&put).await.unwrap().is_committed());
    }
}

async fn last_event(watch: &mut Watch) -> WatchEvent {
    // Signs of life go on as long as the watch does, so all of it is bounded.
    let all = async {
        let mut last = None;
        while let Some(event) = watch.next().await {
            last = Some(event);
        }
        last.unwrap()
    };
    within(all, "the watch ends").await
}

/// Takes a snapshot, writes, and puts the snapshot in place of it.
async fn go_back(cluster: &mut Cluster, client: &Client, token: &str) {
    write(client, 5).await;
    cluster.etcdctl(0, &["snapshot", "save", "snapshot.db"]);
    write(client, 5).await;
    cluster.kill(0);
    cluster.restore(0, "snapshot.db", token);
    cluster.run(0);
    cluster.wait_until_ready().await;
}

#[tokio::test]
async fn an_old_snapshot_is_noticed() {
    let mut cluster = Cluster::start(1).await;
    let client = cluster.client();
    let mut watch = client.watch("", 1);
    // etcd's default token: the cluster has the same id again.
    go_back(&mut cluster, &client, "etcd-cluster").await;
    let end = last_event(&mut watch).await;
    let WatchEvent::ReadNeeded(ReadNeeded::WentBack(error)) = end else { panic!("{end:?}") };
    let Error::WentBack { seen, found, .. } = error else { panic!("{error}") };
    assert!(found < seen);
    // Nothing is done on what was read before, also not after as many writes as were lost.
    let put = Transaction::new().put("k", "v");
    let error = client.transact(&put).await.unwrap_err();
    assert!(matches!(error, Error::WentBack { .. }), "{error}");
    assert!(error.to_string().contains("an old snapshot was restored"), "{error}");
    write(&cluster.client(), 20).await;
    assert_eq!(client.read("").await.unwrap_err(), error);
    assert_eq!(
        last_event(&mut client.watch("", 1)).await,
        WatchEvent::ReadNeeded(ReadNeeded::WentBack(error))
    );
    client.forget_history();
    assert!(client.transact(&put).await.unwrap().is_committed());
}

#[tokio::test]
async fn a_watch_notices_an_old_snapshot_by_what_its_client_has_written() {
    let mut cluster = Cluster::start(1).await;
    let client = cluster.client();
    go_back(&mut cluster, &client, "etcd-cluster").await;
    // It has shown nothing so far, and the next change that it wants is there.
    let end = last_event(&mut client.watch("", 1)).await;
    assert!(matches!(end, WatchEvent::ReadNeeded(ReadNeeded::WentBack(_))), "{end:?}");
}

#[tokio::test]
async fn a_restore_is_noticed_though_others_have_written_as_much_since() {
    let mut cluster = Cluster::start(1).await;
    let client = cluster.client();
    write(&client, 5).await;
    let old = client.read("").await.unwrap();
    cluster.etcdctl(0, &["snapshot", "save", "snapshot.db"]);
    let put = Transaction::new().put("k", "lost");
    assert!(client.transact(&put).await.unwrap().is_committed());
    let snapshot = client.read("").await.unwrap();
    cluster.kill(0);
    cluster.restore(0, "snapshot.db", "etcd-cluster");
    cluster.run(0);
    cluster.wait_until_ready().await;
    write(&cluster.client(), 20).await;
    let end = last_event(&mut client.watch_after("", &snapshot)).await;
    let WatchEvent::ReadNeeded(ReadNeeded::WentBack(error)) = end else { panic!("{end:?}") };
    assert!(matches!(error, Error::Rewritten { .. }), "{error}");
    // What is known is in the snapshot too.
    let mut watch = client.watch_after("", &old);
    let event = within(watch.next(), "the watch is connected").await.unwrap();
    assert!(matches!(event, WatchEvent::Connected { .. }), "{event:?}");
    let event = within(watch.next(), "the changes come").await.unwrap();
    assert!(matches!(event, WatchEvent::Changes { .. }), "{event:?}");
}

#[tokio::test]
async fn another_cluster_at_the_same_address_is_noticed() {
    let mut cluster = Cluster::start(1).await;
    let client = cluster.client();
    go_back(&mut cluster, &client, "another-token").await;
    let error = client.transact(&Transaction::new().put("k", "lost")).await.unwrap_err();
    assert!(matches!(error, Error::OtherCluster { .. }), "{error}");
    let mut watch = client.watch("", 1);
    let event = within(watch.next(), "the watch reports").await.unwrap();
    assert_eq!(event, WatchEvent::Disconnected { error: error.clone() });
    let end = last_event(&mut watch).await;
    assert_eq!(end, WatchEvent::ReadNeeded(ReadNeeded::OtherCluster(error)));
    assert!(client.is_replaced().await && !cluster.client().is_replaced().await);
    let found = cluster.client().read_key(b"k").await.unwrap().unwrap();
    assert_eq!(found.value, b"4", "nothing was written to it");
    client.forget_history();
    write(&client, 1).await;
}
