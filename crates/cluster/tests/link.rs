//! Links between nodes, on loopback: what they carry, and whom they refuse.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellrock_api::Dpid;
use bellrock_cluster::heartbeat::{Heartbeat, SwitchReport};
use bellrock_cluster::link::{
    LinkError, LinkEvent, LinkSettings, LinkTls, Links, TlsError, TlsFiles,
};
use bellrock_cluster::network::NetworkFrame;
use bellrock_cluster::node::{NodeId, NodeSet};
use bellrock_cluster::remote::{Answer, AnswerBody, RemoteFrame};
use bellrock_services::exchange::{NumberedFrame, PeerFrame};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, IsCa,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// A test that waits for longer fails.
const LIMIT: Duration = Duration::from_secs(30);

type Events = mpsc::Receiver<LinkEvent>;

/// Free addresses of the loopback for nodes a, b and c.
async fn addresses() -> Vec<(String, SocketAddr)> {
    let mut nodes = Vec::new();
    let mut held = Vec::new();
    for name in ["a", "b", "c"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        nodes.push((name.to_owned(), listener.local_addr().unwrap()));
        held.push(listener);
    }
    nodes
}

fn settings(nodes: &[(String, SocketAddr)], me: usize) -> LinkSettings {
    LinkSettings {
        apps: vec!["learning".to_owned()],
        cluster: "campus".into(),
        nodes: nodes.to_vec(),
        me: NodeId::new(me).unwrap(),
        listen: nodes[me].1,
        tls: None,
        incarnation: me as u64,
    }
}

async fn start(settings: LinkSettings) -> (Links, Events) {
    let begun = async {
        loop {
            let (sender, receiver) = mpsc::channel(64);
            match Links::start(settings.clone(), sender).await {
                Ok(links) => return (links, receiver),
                // The links before this one are just ending.
                Err(LinkError::Listen { .. }) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    };
    timeout(LIMIT, begun).await.unwrap()
}

async fn next(events: &mut Events, wanted: impl Fn(&LinkEvent) -> bool) -> LinkEvent {
    let found = async {
        loop {
            let event = events.recv().await.unwrap();
            if wanted(&event) {
                return event;
            }
        }
    };
    timeout(LIMIT, found).await.unwrap()
}

async fn trouble(events: &mut Events, part: &str) {
    let is_it =
        |event: &LinkEvent| matches!(event, LinkEvent::Trouble(text) if text.contains(part));
    next(events, is_it).await;
}

fn heartbeat(known: u64) -> Heartbeat {
    Heartbeat {
        serving: true,
        draining: false,
        suspects: NodeSet::EMPTY,
        switches: SwitchReport::All { version: 1, switches: vec![Dpid(7)], generations: None },
        known: Some(known),
        offer: None,
        accept: None,
        incarnation: None,
        hears: None,
    }
}

/// Sends from one node to another until it is heard.
async fn exchange(from: &Links, to: usize, events: &mut Events, known: u64) -> NodeId {
    let sent = heartbeat(known);
    loop {
        from.send(NodeId::new(to).unwrap(), sent.clone());
        let heard = timeout(Duration::from_millis(50), async {
            loop {
                if let LinkEvent::Heard(node, heartbeat) = events.recv().await.unwrap()
                    && heartbeat.known == sent.known
                {
                    assert_eq!(heartbeat, sent);
                    return node;
                }
            }
        });
        if let Ok(node) = heard.await {
            return node;
        }
    }
}

#[tokio::test]
async fn nodes_hear_each_other_and_the_end_of_each_other() {
    let nodes = addresses().await;
    let (a, mut a_events) = start(settings(&nodes, 0)).await;
    let (b, mut b_events) = start(settings(&nodes, 1)).await;
    timeout(LIMIT, async {
        assert_eq!(exchange(&a, 1, &mut b_events, 1).await.index(), 0);
        assert_eq!(exchange(&b, 0, &mut a_events, 2).await.index(), 1);
        drop(b);
        next(&mut a_events, |event| matches!(event, LinkEvent::Lost(node) if node.index() == 1))
            .await;
        // The next process of that name.
        let again = LinkSettings { incarnation: 99, ..settings(&nodes, 1) };
        let (_b, mut b_events) = start(again).await;
        assert_eq!(exchange(&a, 1, &mut b_events, 3).await.index(), 0);
    })
    .await
    .expect("within the limit");
}

#[tokio::test]
async fn facts_about_the_network_arrive_in_order() {
    let nodes = addresses().await;
    let (a, mut a_events) = start(settings(&nodes, 0)).await;
    let (_b, mut b_events) = start(settings(&nodes, 1)).await;
    next(&mut a_events, |event| matches!(event, LinkEvent::Connected(node) if node.index() == 1))
        .await;
    let to = NodeId::new(1).unwrap();
    let facts = |number| {
        let frame = PeerFrame::Left(vec![Dpid(number); 4096]);
        NetworkFrame::Facts(NumberedFrame { stream: 1, number, frame })
    };
    (1..=100).for_each(|number| assert!(a.send_network(to, facts(number))));
    assert!(!a.send_network(NodeId::new(0).unwrap(), NetworkFrame::Again), "to itself");
    for number in 1..=100 {
        let event = next(&mut b_events, |event| matches!(event, LinkEvent::Network(..))).await;
        let LinkEvent::Network(from, frame) = event else { panic!("{event:?}") };
        assert_eq!((from.index(), frame), (0, facts(number)));
    }
}

#[tokio::test]
async fn strangers_are_refused_with_the_reason() {
    let nodes = addresses().await;
    let (_a, mut a_events) = start(settings(&nodes, 0)).await;
    let other = LinkSettings { cluster: "lab".into(), ..settings(&nodes, 1) };
    let (b, mut b_events) = start(other).await;
    trouble(&mut b_events, "node b is of the cluster \"lab\", and a of \"campus\"").await;
    trouble(&mut a_events, "node b is of the cluster \"lab\", and a of \"campus\"").await;
    drop(b);
    let mut two = settings(&nodes, 1);
    two.nodes[2].0 = "d".into();
    let (b, mut b_events) = start(two).await;
    trouble(&mut b_events, "node b has the nodes a b d, and a has a b c").await;
    drop(b);
    let apps = vec!["quarantine".to_owned(), "learning".to_owned()];
    let (b, mut b_events) = start(LinkSettings { apps, ..settings(&nodes, 1) }).await;
    let reason = "node b has the apps [quarantine, learning], and a has [learning]: `apps` must name the same ones, \
                  in the same order";
    trouble(&mut b_events, reason).await;
    trouble(&mut a_events, reason).await;
    drop(b);
    // b takes a's address for that of c.
    let mut crossed = settings(&nodes, 1);
    crossed.nodes[2].1 = nodes[0].1;
    let (_b, mut b_events) = start(crossed).await;
    trouble(&mut b_events, "node b looks for c, and this is a").await;
}

#[tokio::test]
async fn a_second_process_of_a_name_is_refused_while_the_first_lives() {
    let nodes = addresses().await;
    let (_a, mut a_events) = start(settings(&nodes, 0)).await;
    let (b, _b_events) = start(settings(&nodes, 1)).await;
    timeout(LIMIT, exchange(&b, 0, &mut a_events, 1)).await.expect("heard");
    let listen = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let twin = LinkSettings { listen, incarnation: 77, ..settings(&nodes, 1) };
    let (_twin, mut twin_events) = start(twin).await;
    let refused = async {
        loop {
            b.send(NodeId::new(0).unwrap(), heartbeat(2));
            let part = "two controllers have the same cluster.node";
            let event = timeout(Duration::from_millis(50), trouble(&mut twin_events, part));
            if event.await.is_ok() {
                return;
            }
        }
    };
    timeout(LIMIT, refused).await.expect("the second one is refused");
}

#[tokio::test]
async fn without_tls_other_machines_are_refused() {
    let nodes = addresses().await;
    let mut far = settings(&nodes, 0);
    far.nodes[1].1 = "192.0.2.2:6640".parse().unwrap();
    let (sender, _events) = mpsc::channel(1);
    let refused = Links::start(far, sender).await;
    assert!(
        matches!(refused, Err(LinkError::Plain(address)) if address.ip().to_string() == "192.0.2.2")
    );
}

/// An authority, which writes certificates into a folder.
struct Authority<'a> {
    folder: &'a Path,
    name: &'a str,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl<'a> Authority<'a> {
    fn new(folder: &'a Path, name: &'a str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.join(name), issuer.pem()).unwrap();
        Authority { folder, name, issuer }
    }

    /// Writes a list that has revoked the certificate in this file, if there is one.
    fn revoke(&self, file: Option<&TlsFiles>) -> PathBuf {
        let serial = |files: &TlsFiles| {
            let pem = std::fs::read(&files.certificate).unwrap();
            let pem = x509_parser::pem::parse_x509_pem(&pem).unwrap().1;
            SerialNumber::from_slice(pem.parse_x509().unwrap().raw_serial())
        };
        let revoked = file.map(|files| RevokedCertParams {
            serial_number: serial(files),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(2100, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.into_iter().collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let path = self.folder.join("crl.pem");
        let list = list.signed_by(&self.issuer).unwrap();
        std::fs::write(&path, list.pem().unwrap()).unwrap();
        path
    }

    /// Signs a certificate with this DNS name, for the node of the name.
    fn sign(&self, file: &str, node: &str) -> LinkTls {
        LinkTls::read(&self.files(file, node), node).unwrap()
    }

    fn files(&self, file: &str, node: &str) -> TlsFiles {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![node.to_owned()]).unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        let path = |kind: &str| self.folder.join(format!("{file}.{kind}"));
        std::fs::write(path("pem"), signed.pem()).unwrap();
        std::fs::write(path("key"), key.serialize_pem()).unwrap();
        TlsFiles {
            certificate: path("pem"),
            key: path("key"),
            authorities: self.folder.join(self.name),
            revocations: None,
        }
    }
}

#[tokio::test]
async fn with_tls_each_node_shows_a_certificate_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let stranger = Authority::new(folder.path(), "other");
    let nodes = addresses().await;
    let with = |me, tls| LinkSettings { tls: Some(tls), ..settings(&nodes, me) };
    let (_a, mut a_events) = start(with(0, authority.sign("a", "a"))).await;
    let (b, _events) = start(with(1, authority.sign("b", "b"))).await;
    timeout(LIMIT, exchange(&b, 0, &mut a_events, 1)).await.expect("heard");
    drop(b);
    // Another authority.
    let (b, _events) = start(with(1, stranger.sign("b2", "b"))).await;
    trouble(&mut a_events, "a connection from").await;
    drop(b);
    // No TLS at all.
    let (b, _events) = start(settings(&nodes, 1)).await;
    trouble(&mut a_events, "a connection from").await;
    drop(b);
    // The certificate of another node: this one notices it itself.
    let refused = LinkTls::read(&authority.files("c", "c"), "b");
    assert!(matches!(refused, Err(TlsError::OtherName { node, .. }) if node == "b"));
}

#[tokio::test]
async fn a_renewed_certificate_and_authority_are_used_by_the_connections_that_follow() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let next = Authority::new(folder.path(), "next");
    let nodes = addresses().await;
    let with = |me, tls| LinkSettings { tls: Some(tls), ..settings(&nodes, me) };
    let a_tls = authority.sign("a", "a");
    let (_a, mut a_events) = start(with(0, a_tls.clone())).await;
    let (b, _events) = start(with(1, next.sign("b", "b"))).await;
    trouble(&mut a_events, "a connection from").await;
    a_tls.replace(&next.sign("a2", "a"));
    // Neither node starts again.
    timeout(LIMIT, exchange(&b, 0, &mut a_events, 1)).await.expect("heard");
}

#[tokio::test]
async fn a_revoked_node_is_heard_no_more_and_gets_nothing_after_a_reload() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let nodes = addresses().await;
    let with = |me, tls| LinkSettings { tls: Some(tls), ..settings(&nodes, me) };
    let (a_files, b_files) = (authority.files("a", "a"), authority.files("b", "b"));
    let read = |revoked| {
        let revocations = Some(authority.revoke(revoked));
        LinkTls::read(&TlsFiles { revocations, ..a_files.clone() }, "a").unwrap()
    };
    let a_tls = read(None);
    let (a, mut a_events) = start(with(0, a_tls.clone())).await;
    let b_tls = LinkTls::read(&b_files, "b").unwrap();
    let (b, mut b_events) = start(with(1, b_tls)).await;
    timeout(LIMIT, exchange(&b, 0, &mut a_events, 1)).await.expect("heard");
    timeout(LIMIT, exchange(&a, 1, &mut b_events, 1)).await.expect("heard");
    a_tls.replace(&read(Some(&b_files)));
    // Both connections end: each at the next thing that is said on it.
    let ended = async {
        loop {
            a.send(NodeId::new(1).unwrap(), heartbeat(2));
            b.send(NodeId::new(0).unwrap(), heartbeat(2));
            sleep(Duration::from_millis(10)).await;
            while let Ok(event) = a_events.try_recv() {
                match event {
                    LinkEvent::Lost(_) => return true,
                    LinkEvent::Trouble(text) => assert!(text.contains("revoked"), "{text}"),
                    _ => {}
                }
            }
        }
    };
    assert!(timeout(LIMIT, ended).await.expect("it ends"));
    let refused = |text: &str| text.contains("revoked") || text.contains("Revoked");
    next(&mut a_events, |event| matches!(event, LinkEvent::Trouble(text) if refused(text))).await;
    drop(b);
}

/// Opens connections to an address from another one, again and again, and says nothing.
fn hold(tasks: &mut JoinSet<()>, from: Ipv4Addr, to: SocketAddr, count: usize) {
    for _ in 0..count {
        tasks.spawn(async move {
            loop {
                let socket = TcpSocket::new_v4().unwrap();
                socket.bind((from, 0).into()).unwrap();
                if let Ok(mut stream) = socket.connect(to).await {
                    let _ = stream.read(&mut [0]).await;
                }
                sleep(Duration::from_millis(20)).await;
            }
        });
    }
}

#[tokio::test]
async fn strangers_who_say_nothing_do_not_keep_nodes_apart() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let nodes = addresses().await;
    let with = |me, tls| LinkSettings { tls: Some(tls), ..settings(&nodes, me) };
    let (_a, mut a_events) = start(with(0, authority.sign("a", "a"))).await;
    let mut strangers = JoinSet::new();
    // From an address of its own, and from that of the nodes, more than there are places.
    hold(&mut strangers, Ipv4Addr::new(127, 0, 0, 66), nodes[0].1, 150);
    hold(&mut strangers, Ipv4Addr::LOCALHOST, nodes[0].1, 50);
    sleep(Duration::from_millis(500)).await;
    for round in 0..5 {
        let (b, _events) = start(with(1, authority.sign("b", "b"))).await;
        timeout(LIMIT, exchange(&b, 0, &mut a_events, round)).await.expect("heard");
        drop(b);
        next(&mut a_events, |event| matches!(event, LinkEvent::Lost(_))).await;
    }
}

#[tokio::test]
async fn answers_for_a_node_that_cannot_be_reached_do_not_pile_up() {
    let nodes = addresses().await;
    let (a, _events) = start(settings(&nodes, 0)).await;
    let answer = |number| RemoteFrame::Answer(Answer { number, body: AnswerBody::NotMaster });
    let to = NodeId::new(1).unwrap();
    // They carry no bytes of OpenFlow.
    let taken = (0..1_000_000).take_while(|&number| a.send_remote(to, answer(number))).count();
    assert!((100_000..600_000).contains(&taken), "{taken}");
}
