//! Watches: in order and without gaps, whatever happens to members.

use std::time::Duration;

use bellrock_cluster::etcd::{
    Change, Client, Error, ReadNeeded, Transaction, Watch, WatchEvent, Write, limits,
};

use crate::servers::{Cluster, LONG, SHORT, within};

/// Writes `from..to` as values of one key, each once, also while members fail.
async fn count(client: &Client, from: u32, to: u32) {
    for number in from..to {
        let value = number.to_string();
        loop {
            let found = client.read_key(b"count").await.unwrap();
            if found.as_ref().is_some_and(|entry| entry.value == value.as_bytes()) {
                break;
            }
            let revision = found.map_or(0, |entry| entry.mod_revision);
            let put = Transaction::new().unchanged("count", revision).put("count", value.as_str());
            if client.transact(&put).await.unwrap().is_committed() {
                break;
            }
        }
    }
}

/// Reads a watch until the key has this value. Returns all its values, and other events.
async fn until(watch: &mut Watch, last: u32) -> (Vec<u32>, Vec<WatchEvent>) {
    let (mut values, mut others) = (Vec::new(), Vec::new());
    while values.last() != Some(&last) {
        let what = format!("{last} is reported; so far {others:?}");
        match within(watch.next(), &what).await.expect("the watch goes on") {
            WatchEvent::Changes { changes, revision } => {
                for change in changes {
                    let Change::Put(entry) = change else { panic!("{change:?}") };
                    assert!(entry.mod_revision <= revision && entry.key == b"count");
                    values.push(String::from_utf8(entry.value).unwrap().parse().unwrap());
                }
            }
            WatchEvent::Progress { .. } | WatchEvent::Alive => {}
            other => others.push(other),
        }
    }
    (values, others)
}

/// Waits until a watch is served, and returns the address.
async fn connected(watch: &mut Watch) -> String {
    loop {
        match within(watch.next(), "the watch is served").await.unwrap() {
            WatchEvent::Connected { endpoint } => return endpoint,
            WatchEvent::Changes { .. } => panic!("nothing was written"),
            WatchEvent::Disconnected { error } => eprintln!("{error}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_watch_begins_at_its_revision_and_reports_progress() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client();
    count(&client, 0, 10).await;
    let snapshot = client.read("").await.unwrap();
    count(&client, 10, 20).await;
    let mut watch = client.watch("", snapshot.revision + 1);
    let (values, events) = until(&mut watch, 19).await;
    assert_eq!(values, (10..20).collect::<Vec<_>>());
    assert_eq!(events.len(), 1, "{events:?}");
    // Revisions that do not concern it are reported, too.
    cluster.etcdctl(0, &["put", "/elsewhere", "x"]);
    let revision = client.read("").await.unwrap().revision;
    let progress =
        async { while watch.next().await.unwrap() != (WatchEvent::Progress { revision }) {} };
    within(progress, "progress is reported").await;
}

#[tokio::test]
async fn changes_of_one_transaction_come_together() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client();
    let many = (0..limits::MAX_OPERATIONS)
        .fold(Transaction::new(), |all, number| all.put(number.to_string(), "v"));
    let mut watch = client.watch("", 1);
    connected(&mut watch).await;
    assert!(client.transact(&many).await.unwrap().is_committed());
    loop {
        if let WatchEvent::Changes { changes, .. } = within(watch.next(), "changes").await.unwrap()
        {
            assert_eq!(changes.len(), limits::MAX_OPERATIONS);
            break;
        }
    }
}

#[tokio::test]
async fn a_watch_goes_on_when_its_member_is_killed() {
    let mut cluster = Cluster::start(3).await;
    let client = cluster.client();
    let mut watch = client.watch("", 1);
    let first = connected(&mut watch).await;
    count(&client, 0, 20).await;
    cluster.kill(cluster.index_of(&first));
    count(&client, 20, 40).await;
    let (values, events) = until(&mut watch, 39).await;
    assert_eq!(values, (0..40).collect::<Vec<_>>(), "each change once, in order");
    let [WatchEvent::Disconnected { .. }, WatchEvent::Connected { endpoint }] = &events[..] else {
        panic!("{events:?}");
    };
    assert_ne!(*endpoint, first);
}

#[tokio::test]
async fn a_watch_goes_on_when_its_member_falls_silent() {
    let cluster = Cluster::start(3).await;
    let client = cluster.fast_client();
    let mut watch = client.watch("", 1);
    let first = connected(&mut watch).await;
    let index = cluster.index_of(&first);
    cluster.pause(index);
    // It is not asked for anything else: only the watch can notice.
    let others: Vec<usize> = (0..3).filter(|other| *other != index).collect();
    let writer = Client::new(&cluster.settings_for(&others)).unwrap();
    count(&writer, 0, 10).await;
    let (values, events) = until(&mut watch, 9).await;
    assert_eq!(values, (0..10).collect::<Vec<_>>());
    let silent = |event: &WatchEvent| {
        matches!(event, WatchEvent::Disconnected { error: Error::Silent { .. } })
    };
    assert!(events.iter().any(silent), "{events:?}");
    cluster.resume(index);
}

#[tokio::test]
async fn a_quiet_watch_stays_where_it_is() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client();
    let mut watch = client.watch("", 1);
    connected(&mut watch).await;
    // Long enough to be asked for signs of life.
    let quiet = async {
        loop {
            match watch.next().await.unwrap() {
                WatchEvent::Progress { .. } | WatchEvent::Alive => {}
                other => break other,
            }
        }
    };
    let event = tokio::time::timeout(limits::WATCH_SILENCE * 4, quiet).await;
    assert!(event.is_err(), "{event:?}");
}

#[tokio::test]
async fn a_member_without_a_majority_does_not_serve() {
    let mut cluster = Cluster::start(3).await;
    let survivor = Client::new(&cluster.settings_for(&[0])).unwrap();
    let mut watch = survivor.watch("", 1);
    connected(&mut watch).await;
    cluster.kill(1);
    cluster.kill(2);
    let lost = async {
        loop {
            if let WatchEvent::Disconnected { error } = watch.next().await.unwrap() {
                break error;
            }
        }
    };
    let error = within(lost, "etcd ends the watch").await;
    // Which of them depends on whether etcd's gateway passes its reason on.
    let expected = matches!(error, Error::NoLeader { .. } | Error::Closed { .. });
    assert!(expected, "{error}");
    let mut settings = cluster.settings();
    (settings.attempt, settings.total) = (Duration::from_millis(200), Duration::from_secs(2));
    let client = Client::new(&settings).unwrap();
    let put = Transaction::new().unchanged("k", 0).put("k", "v");
    let error = client.transact(&put).await.unwrap_err();
    let Error::NoneAnswered { each, .. } = &error else { panic!("{error}") };
    assert_eq!(each.len(), 3, "{error}");
    assert!(error.to_string().contains("has no leader"), "{error}");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    // It is reported as a member all the same.
    assert_eq!(survivor.members().await[0].1.as_ref().unwrap().leader, None);
    cluster.run(1);
    count(&cluster.client(), 0, 1).await;
    until(&mut watch, 0).await;
}

#[tokio::test]
async fn compacted_changes_end_a_watch() {
    let mut cluster = Cluster::start(3).await;
    let client = cluster.client();
    count(&client, 0, 10).await;
    let revision = client.read("").await.unwrap().revision;
    cluster.etcdctl(0, &["compact", &revision.to_string()]);
    let mut late = client.watch("", 2);
    let ends = |watch: Watch| async move {
        let mut watch = watch;
        let mut last = None;
        while let Some(event) = within(watch.next(), "the watch ends").await {
            last = Some(event);
        }
        last.unwrap()
    };
    let expected = WatchEvent::ReadNeeded(ReadNeeded::Compacted { revision });
    connected(&mut late).await;
    assert_eq!(ends(late).await, expected);

    // While it was away.
    let away = Client::new(&cluster.settings_for(&[2])).unwrap();
    let mut watch = away.watch("", revision + 1);
    connected(&mut watch).await;
    cluster.kill(2);
    let others = Client::new(&cluster.settings_for(&[0, 1])).unwrap();
    count(&others, 10, 20).await;
    let revision = others.read("").await.unwrap().revision;
    cluster.etcdctl(0, &["compact", &revision.to_string()]);
    cluster.run(2);
    cluster.wait_until_ready().await;
    let WatchEvent::ReadNeeded(why) = ends(watch).await else { panic!("another end") };
    assert_eq!(why, ReadNeeded::Compacted { revision });
}

#[tokio::test]
async fn a_reader_that_is_slow_misses_nothing() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client();
    let mut watch = client.watch("", 1);
    connected(&mut watch).await;
    // More bytes than may wait.
    let value = "v".repeat(900_000);
    let rounds = 2 * limits::MAX_WAITING_BYTES / value.len();
    for number in 0..rounds {
        let write = Write::put(format!("{number:03}"), value.clone(), 0);
        assert!(client.write_each(&[write]).await[0].as_ref().unwrap().is_committed());
    }
    // The reader takes its time: longer than a silent member is given.
    tokio::time::sleep(limits::WATCH_SILENCE * 2).await;
    let mut seen = 0;
    while seen < rounds {
        match within(watch.next(), "all changes").await.unwrap() {
            WatchEvent::Changes { changes, .. } => seen += changes.len(),
            WatchEvent::Progress { .. } | WatchEvent::Alive => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, rounds);
}

#[tokio::test]
async fn a_late_watch_gets_all_in_pieces_of_whole_revisions() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client();
    // More than one message of etcd can have; each transaction is two events.
    for number in 0..24 {
        let value = "v".repeat(450_000);
        let both = Transaction::new().put("a", value.clone()).put(format!("b{number}"), value);
        assert!(client.transact(&both).await.unwrap().is_committed());
    }
    let mut watch = client.watch("", 1);
    let mut events = 0;
    while events < 48 {
        match within(watch.next(), "all changes").await.unwrap() {
            WatchEvent::Changes { changes, .. } => {
                assert_eq!(changes.len() % 2, 0, "both changes of a transaction");
                events += changes.len();
            }
            WatchEvent::Connected { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_watch_that_is_dropped_lets_go_of_etcd() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client();
    let watchers = || {
        let url = format!("http://{}/metrics", cluster.members[0].address);
        let output = std::process::Command::new("bash")
            .args([
                "-c",
                &format!(
                    "exec 3<>/dev/tcp/{}; printf 'GET {url} HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3",
                    cluster.members[0].address.replace(':', "/"),
                ),
            ])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find(|line| line.starts_with("etcd_debugging_mvcc_watcher_total "));
        line.and_then(|line| line.split(' ').nth(1)).unwrap().parse::<u32>().unwrap()
    };
    let mut watch = client.watch("", 1);
    connected(&mut watch).await;
    assert_eq!(watchers(), 1);
    drop(watch);
    let mut waited = 0;
    while watchers() > 0 {
        assert!(SHORT * waited < LONG, "etcd still has a watcher");
        tokio::time::sleep(SHORT).await;
        waited += 1;
    }
}
