//! TLS, users, and what is not etcd.

use std::time::Duration;

use bellrock_cluster::etcd::{Client, Error, Settings, Transaction, User, WatchEvent};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::pki::Pki;
use crate::servers::{Cluster, SHORT, within};

fn put() -> Transaction {
    Transaction::new().put("k", "v")
}

#[tokio::test]
async fn etcd_and_its_client_know_each_other_by_certificate() {
    let pki = Pki::new("an authority");
    let cluster = Cluster::secure(1, &pki).await;
    let good = pki.files("bellrock", &["bellrock.example"]);
    let client = |tls| {
        let mut settings = cluster.settings();
        settings.tls = Some(tls);
        settings.total = Duration::from_secs(5);
        Client::new(&settings).unwrap()
    };
    let ours = client(good.clone());
    let ready = async {
        while ours.transact(&put()).await.is_err() {
            tokio::time::sleep(SHORT).await;
        }
    };
    within(ready, "etcd is ready").await;
    let mut watch = ours.watch("", 1);
    let event = within(watch.next(), "the watch is served").await.unwrap();
    assert!(matches!(event, WatchEvent::Connected { .. }), "{event:?}");

    let another = Pki::new("another authority");
    let others = another.files("bellrock", &["bellrock.example"]);
    let (mut stranger, mut nameless, mut distrustful) = (good.clone(), good.clone(), good);
    stranger.certificate = others.certificate;
    nameless.certificate = None;
    distrustful.authorities = others.authorities;
    for (wrong, expected) in [
        (stranger, "received fatal alert"),
        (nameless, "received fatal alert"),
        (distrustful, "invalid peer certificate"),
    ] {
        // Nothing of it was executed.
        let error = client(wrong).transact(&put()).await.unwrap_err();
        let Error::NoneAnswered { each, .. } = &error else { panic!("{error}") };
        assert!(matches!(each[..], [Error::Tls { .. }]), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }

    let mut plain = cluster.settings();
    plain.endpoints = vec![format!("http://{}", cluster.members[0].address)];
    plain.total = plain.attempt;
    let error = Client::new(&plain).unwrap().transact(&put()).await.unwrap_err();
    assert!(error.to_string().contains("or expect https"), "{error}");
}

#[tokio::test]
async fn users_need_a_password_and_a_role() {
    let mut cluster = Cluster::start(1).await;
    for arguments in [
        &["user", "add", "root:secret"][..],
        &["user", "add", "bellrock:passphrase"],
        &["role", "add", "cluster"],
        &["role", "grant-permission", "cluster", "readwrite", "--prefix=true", "/test/"],
        &["user", "grant-role", "bellrock", "cluster"],
        &["auth", "enable"],
    ] {
        cluster.etcdctl(0, arguments);
    }
    let settings = |name: &str, password: &str, prefix: &str| {
        let mut settings = cluster.settings();
        settings.user = Some(User { name: name.into(), password: password.into() });
        settings.prefix = prefix.into();
        settings
    };
    let client = |settings: Settings| Client::new(&settings).unwrap();
    let ours = client(settings("bellrock", "passphrase", "/test/"));
    assert!(ours.transact(&put()).await.unwrap().is_committed());
    assert_eq!(ours.read("").await.unwrap().entries.len(), 1);
    let mut watch = ours.watch("", 1);
    let event = within(watch.next(), "the watch is served").await.unwrap();
    assert!(matches!(event, WatchEvent::Connected { .. }), "{event:?}");
    for (wrong, expected) in [
        (settings("bellrock", "password", "/test/"), "invalid user ID or password"),
        (settings("bellrock", "passphrase", "/elsewhere/"), "permission denied"),
        (cluster.settings(), "user name is empty"),
    ] {
        let wrong = client(wrong);
        let error = wrong.transact(&put()).await.unwrap_err();
        assert!(matches!(error, Error::Access { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        let event = within(wrong.watch("", 1).next(), "the watch is refused").await.unwrap();
        assert!(
            matches!(event, WatchEvent::Disconnected { error: Error::Access { .. } }),
            "{event:?}"
        );
    }
    // A restart forgets proofs; the client makes new ones.
    cluster.kill(0);
    cluster.run(0);
    let again = async {
        while !ours.transact(&put()).await.is_ok_and(|outcome| outcome.is_committed()) {
            tokio::time::sleep(SHORT).await;
        }
        loop {
            match watch.next().await.unwrap() {
                WatchEvent::Changes { changes, .. } if changes.len() == 1 => break,
                _ => {}
            }
        }
    };
    within(again, "the client goes on after a restart").await;
    let reconnected =
        async { while !matches!(watch.next().await.unwrap(), WatchEvent::Changes { .. }) {} };
    within(reconnected, "the watch goes on after a restart").await;
}

#[tokio::test]
async fn endpoints_that_are_no_etcd_are_skipped() {
    let cluster = Cluster::start(1).await;
    let mut settings = cluster.settings();
    // One accepts and is silent, one answers for another protocol, one as a web server does, one
    // refuses.
    let mut listeners = Vec::new();
    for answer in
        ["", "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"]
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        settings.endpoints.insert(0, format!("http://{}", listener.local_addr().unwrap()));
        listeners.push(tokio::spawn(async move {
            let mut open = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.write_all(answer.as_bytes()).await.unwrap();
                open.push(stream);
            }
        }));
    }
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    settings.endpoints.insert(0, format!("http://{}", closed.local_addr().unwrap()));
    drop(closed);
    settings.attempt = Duration::from_millis(500);
    let client = Client::new(&settings).unwrap();
    // Not repeatable: it was not sent to any of the others.
    assert!(client.transact(&put()).await.unwrap().is_committed());

    settings.endpoints.pop();
    settings.total = Duration::from_secs(4);
    let client = Client::new(&settings).unwrap();
    let error = client.transact(&put()).await.unwrap_err();
    let Error::NoneAnswered { each, .. } = &error else { panic!("{error}") };
    assert!(
        matches!(
            each[..],
            [
                Error::Unreachable { .. },
                Error::NoGateway { .. } | Error::Closed { .. },
                Error::Malformed { .. } | Error::Closed { .. },
                Error::Silent { .. },
            ]
        ),
        "{error}"
    );
    let mut watch = client.watch("", 1);
    let event = within(watch.next(), "the watch reports").await.unwrap();
    assert!(matches!(event, WatchEvent::Disconnected { .. }), "{event:?}");
    for listener in listeners {
        listener.abort();
    }
}
