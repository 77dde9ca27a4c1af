//! TLS over real sockets: sessions, certificates, refusals, back-pressure, hand-over.
#![cfg(feature = "tls")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]
#![allow(unreachable_pub, reason = "parts of a test")]

mod identities;
#[path = "../peer/mod.rs"]
mod peer;
mod pki;
mod resumption;
mod tunnel;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Instant;

use bellrock_api::{Dpid, EndReason, Event, Version};
use bellrock_engine::{
    Engine, Identities, IdentityMap, Pins, TlsFiles, TlsServer, TlsSettings, UnnamedIdentity,
};
use peer::{PATIENCE, Peer, counter, start, until};
use pki::Pki;
use rustls::version::{TLS12, TLS13};
use socket2::{Domain, SockAddr, Socket, Type};
use tunnel::Tunnel;

/// Starts an engine that listens with TLS too. Its address is the second one.
fn start_tls(workers: usize, pki: &Pki) -> (Engine, TlsServer) {
    let server = TlsServer::read(&pki.files()).unwrap();
    let any = UnnamedIdentity::Any;
    let identities = Identities::new(&server, any, IdentityMap::new(), Pins::new(), None);
    (start_with_identities(workers, &server, &identities), server)
}

fn start_with_identities(workers: usize, server: &TlsServer, identities: &Identities) -> Engine {
    start(workers, |settings| settings.tls = Some(with_identities(server, identities)))
}

fn with_identities(server: &TlsServer, identities: &Identities) -> TlsSettings {
    let listen = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))];
    TlsSettings { listen, server: server.clone(), identities: identities.clone() }
}

fn tls_address(engine: &Engine) -> SocketAddr {
    engine.addresses()[1]
}

/// A switch that comes up by a tunnel.
fn up(engine: &Engine, tunnel: &Tunnel, version: Version, dpid: u64) -> Peer {
    let mut peer = Peer::connect(tunnel.address(), version, dpid);
    until("a switch comes up", || {
        peer.turn();
        engine.network().switch(Dpid(dpid)).is_some()
    });
    peer.ping(u64::MAX);
    peer
}

/// The last event of this kind: its reason and text.
fn last(engine: &Engine, kind: impl Fn(&Event) -> bool) -> Option<(EndReason, String)> {
    let events = engine.network().events().latest(usize::MAX);
    let mut events = events.into_iter().map(|record| record.event).filter(kind);
    events.next_back().map(|event| (event.connection_end().unwrap().reason, event.to_string()))
}

fn last_refusal(engine: &Engine) -> Option<(EndReason, String)> {
    last(engine, |event| matches!(event, Event::ConnectionsRefused { .. }))
}

#[test]
fn switches_come_up_with_each_version_of_tls_and_of_openflow() {
    let pki = Pki::new();
    let (engine, _) = start_tls(2, &pki);
    for (n, tls) in [&TLS12, &TLS13].into_iter().enumerate() {
        let tunnel = Tunnel::start(tls_address(&engine), pki.client(&[tls], "switch"));
        for version in Version::ALL {
            let dpid = 10 * (n as u64 + 1) + u64::from(version.wire());
            let mut peer = up(&engine, &tunnel, version, dpid);
            (0..100).for_each(|sequence| peer.ping(sequence));
        }
    }
    // Plain connections are as before.
    Peer::up(&engine, Version::V1_3, 99).ping(1);
}

#[test]
fn large_messages_pass_both_ways_in_order_though_the_peer_reads_late() {
    const ECHOES: usize = 400;
    const ECHO_BYTES: usize = 60_000;
    let pki = Pki::new();
    let (engine, _) = start_tls(1, &pki);
    for version in [&TLS12, &TLS13] {
        let tunnel = Tunnel::start(tls_address(&engine), pki.client(&[version], "switch"));
        let stream = TcpStream::connect(tunnel.address()).unwrap();
        let mut reader = stream.try_clone().unwrap();
        reader.set_read_timeout(Some(PATIENCE)).unwrap();
        let echo = |kind: u8, n: usize| {
            let mut echo = vec![4, kind, 0, 0, 0, 0, (n >> 8) as u8, n as u8];
            echo.extend((0..ECHO_BYTES - 8).map(|i| (i * 7 + n) as u8));
            echo[2..4].copy_from_slice(&(ECHO_BYTES as u16).to_be_bytes());
            echo
        };
        let sending = std::thread::spawn(move || {
            let mut stream = stream;
            stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 0]).unwrap();
            (0..ECHOES).for_each(|n| stream.write_all(&echo(2, n)).unwrap());
            stream
        });
        // The controller has to hold its answers back meanwhile.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let mut answered = 0;
        while answered < ECHOES {
            let mut header = [0; 8];
            reader.read_exact(&mut header).unwrap();
            let mut message = header.to_vec();
            message.resize(usize::from(u16::from_be_bytes([header[2], header[3]])), 0);
            reader.read_exact(&mut message[8..]).unwrap();
            if header[1] == 3 {
                assert!(message == echo(3, answered), "answer {answered}");
                answered += 1;
            }
        }
        drop(sending.join().unwrap());
    }
}

#[test]
fn a_session_is_handed_over_with_half_a_record() {
    let pki = Pki::new();
    let (engine, _) = start_tls(2, &pki);
    let tunnel = Tunnel::start(tls_address(&engine), pki.client(&[&TLS13], "switch"));
    let mut peer = up(&engine, &tunnel, Version::V1_3, 7);
    let monitor = engine.monitor();
    for round in 0..20 {
        let from = monitor.worker_of(Dpid(7)).unwrap();
        tunnel.hold_half_a_record();
        peer.packet_in(round, 1000);
        until("half of it is sent", || tunnel.holds());
        assert!(monitor.hand_over(Dpid(7), 1 - from));
        until("it is handed over", || monitor.worker_of(Dpid(7)) == Some(1 - from));
        tunnel.release();
        assert_eq!(peer.sequence(), round);
    }
    assert_eq!(counter(&engine, "switches_taken_over"), 20);
}

#[test]
fn a_record_that_was_changed_on_the_way_ends_the_session_and_is_named() {
    let pki = Pki::new();
    let (engine, _) = start_tls(1, &pki);
    for (version, how) in [(Version::V1_0, &TLS12), (Version::V1_3, &TLS13)] {
        let tunnel = Tunnel::start(tls_address(&engine), pki.client(&[how], "switch"));
        let mut peer = up(&engine, &tunnel, version, 7);
        let packets = counter(&engine, "packet_ins");
        let closed = counter(&engine, "protocol_closes");
        tunnel.change_a_record();
        peer.packet_in(1, 100);
        peer.wait_closed();
        until("it is counted", || counter(&engine, "protocol_closes") == closed + 1);
        assert_eq!(counter(&engine, "packet_ins"), packets, "nothing of it was processed");
        until("it is gone", || engine.network().switch(Dpid(7)).is_none());
        let (reason, text) =
            last(&engine, |event| matches!(event, Event::SwitchDown { .. })).unwrap();
        assert_eq!(reason, EndReason::Malformed);
        assert!(text.contains("something changed it on the way"), "{text}");
    }
}

#[test]
fn an_untrusted_switch_is_refused_with_the_reason() {
    let (pki, other, impostor) = (Pki::new(), Pki::named("another one"), Pki::new());
    type Trial<'t> = (&'t str, Box<dyn Fn(SocketAddr) + 't>, EndReason, &'t str);
    let by_tunnel = |client| {
        move |address| {
            let tunnel = Tunnel::start(address, client);
            Peer::connect(tunnel.address(), Version::V1_3, 8).wait_closed();
        }
    };
    let trials: [Trial<'_>; 7] = [
        (
            "no certificate",
            Box::new(|address| by_tunnel(pki.anonymous())(address)),
            EndReason::Refused,
            "it shows no certificate",
        ),
        (
            "of another authority",
            Box::new(|address| by_tunnel(pki.stranger(&other))(address)),
            EndReason::Refused,
            "no authority of `tls.ca` has signed its certificate",
        ),
        (
            "of an authority with the same name",
            Box::new(|address| by_tunnel(pki.stranger(&impostor))(address)),
            EndReason::Refused,
            "another authority may have the same name",
        ),
        (
            "expired",
            Box::new(|address| by_tunnel(pki.expired())(address)),
            EndReason::Refused,
            "its certificate has expired",
        ),
        (
            "plain OpenFlow",
            Box::new(|address| Peer::connect(address, Version::V1_3, 8).wait_closed()),
            EndReason::Malformed,
            "it is not TLS, but OpenFlow without it",
        ),
        (
            "no TLS",
            Box::new(|address| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
                let _ = stream.read_to_end(&mut Vec::new());
            }),
            EndReason::Refused,
            "what it sends is not TLS",
        ),
        (
            "silence",
            Box::new(|address| {
                let mut stream = TcpStream::connect(address).unwrap();
                let _ = stream.read_to_end(&mut Vec::new());
            }),
            EndReason::HandshakeTimeout,
            "not finished within 5 s",
        ),
    ];
    for (name, attempt, reason, text) in trials {
        let (engine, _) = start_tls(1, &pki);
        let tunnel = Tunnel::start(tls_address(&engine), pki.client(&[&TLS13], "switch"));
        let mut honest = up(&engine, &tunnel, Version::V1_3, 7);
        let began = Instant::now();
        attempt(tls_address(&engine));
        until("the refusal is an event", || last_refusal(&engine).is_some());
        let (found, said) = last_refusal(&engine).unwrap();
        assert!(said.contains(text), "{name}: {said}");
        assert_eq!(found, reason, "{name}: {said}");
        assert!(began.elapsed() < PATIENCE);
        assert!(engine.network().switch(Dpid(8)).is_none(), "{name}");
        assert_eq!(engine.monitor().status().refused, 1, "{name}");
        honest.ping(1);
    }
}

#[test]
fn a_revoked_switch_is_refused_and_replaced_files_are_for_new_connections() {
    let pki = Pki::new();
    let (engine, server) = start_tls(1, &pki);
    let tunnel = Tunnel::start(tls_address(&engine), pki.client(&[&TLS13], "switch"));
    let mut established = up(&engine, &tunnel, Version::V1_3, 7);
    let files = TlsFiles { revocations: Some(pki.revoke("switch")), ..pki.files() };
    server.replace(TlsServer::read(&files).unwrap());
    let revoked = Tunnel::start(tls_address(&engine), pki.client(&[&TLS13], "switch"));
    Peer::connect(revoked.address(), Version::V1_3, 8).wait_closed();
    until("the refusal is an event", || last_refusal(&engine).is_some());
    let (_, said) = last_refusal(&engine).unwrap();
    assert!(said.contains("its certificate is revoked"), "{said}");
    established.ping(1);
    let other = Tunnel::start(tls_address(&engine), pki.client(&[&TLS13], "other"));
    up(&engine, &other, Version::V1_3, 9).ping(1);
}

#[test]
fn many_switches_connect_at_once_while_others_work() {
    const SWITCHES: u64 = 200;
    let pki = Pki::new();
    let (engine, _) = start_tls(2, &pki);
    let mut plain = Peer::up(&engine, Version::V1_3, 1);
    let tunnel = Tunnel::start(tls_address(&engine), pki.client(&[&TLS13], "switch"));
    let mut peers: Vec<Peer> =
        (0..SWITCHES).map(|n| Peer::connect(tunnel.address(), Version::V1_3, 100 + n)).collect();
    let mut sequence = 0;
    until("all are up", || {
        plain.ping(sequence);
        sequence += 1;
        for peer in &mut peers {
            peer.stream.set_nonblocking(true).unwrap();
            peer.turn();
        }
        engine.monitor().status().switches == SWITCHES as usize + 1
    });
}

#[test]
fn strangers_who_say_nothing_do_not_keep_a_switch_out() {
    // Of nine addresses, since one alone has a share (the loopback has not).
    const ADDRESSES: u8 = 9;
    const OF_EACH: usize = 260;
    raise_file_limit();
    let pki = Pki::new();
    let (engine, _) = start_tls(1, &pki);
    let to = SockAddr::from(tls_address(&engine));
    let hold = |last| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SockAddr::from(SocketAddr::from(([127, 0, 1, last], 0)))).unwrap();
        socket.connect(&to).unwrap();
        socket
    };
    let strangers: Vec<Socket> =
        (1..=ADDRESSES).flat_map(|last| std::iter::repeat_n(last, OF_EACH)).map(hold).collect();
    until("all places are taken", || last_refusal(&engine).is_some());
    // Some of them, or those whose place they got.
    let (reason, said) = last_refusal(&engine).unwrap();
    assert!(reason == EndReason::Limit && said.contains("TLS handshake"), "{said}");
    let tunnel = Tunnel::start(tls_address(&engine), pki.client(&[&TLS13], "switch"));
    for dpid in 1..10 {
        // Its only attempt takes the place of a stranger's.
        up(&engine, &tunnel, Version::V1_3, dpid).ping(1);
    }
    drop(strangers);
}

/// The test holds both ends of its connections.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let pki = Pki::new();
    let files = pki.files();
    let error = |files: TlsFiles| TlsServer::read(&files).unwrap_err().to_string();
    let wrong = TlsFiles { certificate: files.key.clone(), ..files.clone() };
    assert!(error(wrong).contains("it has no certificate in PEM"));
    let wrong = TlsFiles { key: files.certificate.clone(), ..files.clone() };
    assert!(error(wrong).contains("it has no private key in PEM"));
    let wrong = TlsFiles { key: Pki::new().keep().files().key, ..files.clone() };
    assert!(error(wrong).contains("it cannot be used with its key"));
    let wrong = TlsFiles { authorities: files.key.clone(), ..files.clone() };
    assert!(error(wrong).contains("it has no certificate in PEM"));
    let wrong = TlsFiles { revocations: Some(files.key.clone()), ..files.clone() };
    assert!(error(wrong).contains("it has no list of revocations in PEM"));
    let missing = TlsFiles { key: "/nowhere/key.pem".into(), ..files };
    assert!(error(missing).starts_with("/nowhere/key.pem: No such file"));
}

#[test]
fn a_raw_owner_gets_switches_by_tls_with_their_identity_and_only_those_that_may() {
    let pki = Pki::new();
    let server = TlsServer::read(&pki.files()).unwrap();
    let map = IdentityMap::from([("switch".into(), vec![Dpid(1)])]);
    let identities = Identities::new(&server, UnnamedIdentity::Strict, map, Pins::new(), None);
    let (owner, port) = bellrock_api::runtime::raw_owner();
    let settings = bellrock_engine::EngineSettings {
        listen: Vec::new(),
        workers: 1,
        pin: bellrock_engine::Pinning::None,
        tls: Some(with_identities(&server, &identities)),
        ..bellrock_engine::EngineSettings::default()
    };
    let engine = Engine::start_raw(&settings, port).unwrap();
    let tunnel = Tunnel::start(engine.addresses()[0], pki.client(&[&TLS13], "switch"));
    let mut stranger = Peer::connect(tunnel.address(), Version::V1_3, 2);
    stranger.wait_closed();
    let mut peer = Peer::connect(tunnel.address(), Version::V1_3, 1);
    let mut event = None;
    until("the switch is up", || {
        peer.turn();
        event = owner.take(1).pop();
        event.is_some()
    });
    let Some(bellrock_api::RawEvent::Up(up)) = event else { panic!("{event:?}") };
    assert_eq!(up.switch.dpid, Dpid(1));
    assert!(up.switch.identity.is_some());
}
