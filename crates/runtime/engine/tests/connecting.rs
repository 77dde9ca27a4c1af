//! Connecting over real sockets: addresses, versions, limits, the choice of workers, duplicates.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod peer;

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use bellrock_api::runtime::DynApp;
use bellrock_api::{Dpid, EndReason, Event, Version};
use bellrock_engine::{Engine, EngineSettings, MAX_WORKERS, Pinning};
use peer::{Answer, Background, Peer, counter, counters, start, until};

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

#[test]
fn switches_of_both_versions_come_up_on_both_kinds_of_address() {
    let listen =
        [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))];
    let engine = start(2, |settings| settings.listen = listen.to_vec());
    assert_eq!(engine.addresses().len(), 2);
    for (address, asked) in engine.addresses().iter().zip(listen) {
        assert_eq!(address.ip(), asked.ip());
        assert_ne!(address.port(), 0, "port 0 is answered with the port that it became");
    }
    let mut peers = Vec::new();
    for (place, address) in engine.addresses().iter().enumerate() {
        for version in VERSIONS {
            let dpid = 100 * (place as u64 + 1) + u64::from(version.wire());
            let mut peer = Peer::connect(*address, version, dpid).come_up(&engine);
            peer.ping(dpid);
            let info = engine.network().switch(Dpid(dpid)).unwrap();
            assert_eq!(info.version, version);
            assert_eq!(info.peer, peer.stream.local_addr().unwrap());
            peers.push(peer);
        }
    }
    assert_eq!(engine.monitor().status().switches, 4);
    drop(peers);
    until("all are forgotten", || engine.monitor().status().connections == 0);
    assert_eq!(engine.monitor().status().switches, 0);
    assert_eq!(counter(&engine, "switches_down"), 4);
}

#[test]
fn connections_beyond_the_limit_are_closed_at_once_and_counted() {
    let engine = start(2, |settings| settings.worker.limits.connections = 3);
    refuses_the_fourth(&engine, "there are 3 connections", "max_connections");
}

#[test]
fn connections_beyond_what_the_workers_may_have_are_closed_at_once_and_counted() {
    let engine = start(3, |settings| settings.worker.limits.switches_per_worker = 1);
    refuses_the_fourth(&engine, "each worker has 1 connections", "max_switches_per_worker");
    assert_eq!(counters(&engine, "connections_opened").iter().max(), Some(&2));
}

fn refuses_the_fourth(engine: &Engine, why: &str, setting: &str) {
    let mut peers: Vec<Peer> = (1..=3).map(|dpid| Peer::up(engine, Version::V1_3, dpid)).collect();
    for dpid in 4..=5 {
        Peer::connect(engine.addresses()[0], Version::V1_3, dpid).wait_closed();
    }
    let status = engine.monitor().status();
    assert_eq!((status.connections, status.accepted, status.refused), (3, 3, 2));
    // One event for now, however many are refused.
    let refused = || {
        let events = engine.network().events().latest(usize::MAX);
        let refused = events.into_iter().map(|it| it.event);
        refused.filter(|it| matches!(it, Event::ConnectionsRefused { .. })).collect::<Vec<_>>()
    };
    until("the first is published", || !refused().is_empty());
    let events = refused();
    let text = events[0].to_string();
    assert!(text.starts_with("a connection from 127.0.0.1 was refused: "), "{text}");
    assert!(text.contains(why) && text.contains(setting), "{text}");
    assert_eq!(events[0].connection_end().map(|why| why.reason), Some(EndReason::Limit));
    assert_eq!(events.len(), 1);
    peers.iter_mut().for_each(|peer| peer.ping(7));
    // One connection ends, which allows another.
    drop(peers.pop());
    until("one is forgotten", || engine.monitor().status().connections == 2);
    peers.push(Peer::up(engine, Version::V1_0, 6));
    peers.iter_mut().for_each(|peer| peer.ping(8));
    assert_eq!(engine.monitor().status().refused, 2);
}

#[test]
fn connections_go_to_the_least_loaded_worker() {
    let engine = start(4, |_| {});
    let mut peers: Vec<Peer> = (0..16).map(|dpid| Peer::up(&engine, Version::V1_3, dpid)).collect();
    assert_eq!(counters(&engine, "connections_opened"), [4, 4, 4, 4]);
    // All connections of one worker end; the next ones go to it.
    let of_one: Vec<Peer> = {
        let reads = counters(&engine, "packet_ins");
        peers[0].ping(1);
        let now = counters(&engine, "packet_ins");
        let first = (0..4).find(|worker| now[*worker] > reads[*worker]).unwrap();
        let mut of_first = Vec::new();
        let mut place = 0;
        while place < peers.len() {
            let before = counters(&engine, "packet_ins")[first];
            peers[place].ping(2);
            if counters(&engine, "packet_ins")[first] > before {
                of_first.push(peers.remove(place));
            } else {
                place += 1;
            }
        }
        of_first
    };
    assert_eq!(of_one.len(), 4);
    drop(of_one);
    until("four are forgotten", || engine.monitor().status().connections == 12);
    peers.extend((20..24).map(|dpid| Peer::up(&engine, Version::V1_3, dpid)));
    let mut opened = counters(&engine, "connections_opened");
    opened.sort_unstable();
    assert_eq!(opened, [4, 4, 4, 8]);
}

#[test]
fn a_datapath_id_that_another_worker_has_is_given_to_whoever_is_alive() {
    let engine = start(2, |_| {});
    let first = Background::run(Peer::up(&engine, Version::V1_3, 1));
    let mut second = Peer::connect(engine.addresses()[0], Version::V1_0, 1);
    second.wait_closed();
    assert_eq!(counters(&engine, "connections_opened"), [1, 1]);
    assert_eq!(counter(&engine, "duplicates_refused"), 1);
    let mut first = first.stop();
    first.ping(1);
    // Now the old one is silent.
    let mut third = Peer::connect(engine.addresses()[0], Version::V1_0, 1).come_up(&engine);
    third.ping(2);
    first.wait_closed();
    assert_eq!(counter(&engine, "duplicates_replaced"), 1);
    assert_eq!(counter(&engine, "duplicates_refused"), 1);
    assert_eq!(engine.monitor().status().connections, 1);
}

#[test]
fn a_peer_that_sends_and_hangs_up_at_once_is_forgotten_at_once() {
    // Only the end of the stream may end them.
    let engine = start(1, |settings| {
        settings.worker.session.handshake_timeout = Duration::from_secs(3600);
    });
    for round in 0..200 {
        let mut stream = TcpStream::connect(engine.addresses()[0]).unwrap();
        // Half of a hello: the connection is open until its end is seen.
        stream.write_all(&[4, 0, 0, 8]).unwrap();
        // Both kinds of end: with and without a half-open direction.
        if round % 2 == 0 {
            stream.shutdown(Shutdown::Write).unwrap();
        }
    }
    until("all are forgotten", || counter(&engine, "connections_closed") == 200);
    assert_eq!(engine.monitor().status().connections, 0);
}

#[test]
fn a_spared_core_has_no_worker_unless_it_is_the_only_one() {
    let workers = |spared_cores| {
        let engine = start(0, |settings| {
            settings.pin = Pinning::Auto;
            settings.spared_cores = spared_cores;
        });
        engine.worker_cores().to_vec()
    };
    let all = workers(0);
    assert_eq!(workers(1), all[..(all.len() - 1).max(1)]);
    assert_eq!(workers(usize::MAX), all[..1]);
}

#[test]
fn a_failed_start_reports_its_reason() {
    let running = start(1, |_| {});
    let taken = running.addresses()[0];
    let refusal = |change: &dyn Fn(&mut EngineSettings), apps: usize| {
        let mut settings = EngineSettings {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
            workers: 1,
            pin: Pinning::None,
            ..EngineSettings::default()
        };
        change(&mut settings);
        let apps: Vec<_> = (0..apps).map(|_| Box::new(Answer) as Box<dyn DynApp>).collect();
        match Engine::start(&settings, apps) {
            Ok(_) => panic!("it started"),
            Err(error) => error.to_string(),
        }
    };
    let limits = |change: &dyn Fn(&mut bellrock_engine::Limits)| {
        refusal(&|settings| change(&mut settings.worker.limits), 0)
    };
    let table = [
        (
            refusal(&|settings| settings.listen.clear(), 0),
            "no address to listen on; give at least one, such as 127.0.0.1:6653",
        ),
        (
            refusal(&|settings| settings.workers = MAX_WORKERS + 1, 0),
            "1025 workers are too many; at most 1024",
        ),
        (
            refusal(&|settings| settings.pin = Pinning::Cores(vec![0, 1, 2]), 0),
            "3 cores to pin to for 1 workers; name one core for each worker",
        ),
        (
            refusal(&|_| {}, 2),
            "two apps are called Answer; each app of a chain needs a name of its own",
        ),
        (refusal(&|_| {}, 16), "16 apps are too many; at most 15 can have priorities of their own"),
        (limits(&|limits| limits.connections = 0), "the limit connections is 0; give 1 to 1000000"),
        (
            limits(&|limits| limits.switches_per_worker = 0),
            "the limit switches_per_worker is 0; give 1 to 1000000",
        ),
        (
            limits(&|limits| limits.high_water_bytes = 0),
            "the limit high_water_bytes is 0; give 65536 to 1073741824 bytes",
        ),
        (
            limits(&|limits| limits.bytes_per_turn = 0),
            "the limit bytes_per_turn is 0; give 4096 to 16777216 bytes",
        ),
        (
            limits(&|limits| limits.packet_ins_per_second = Some(0)),
            "the limit packet_ins_per_second is 0; give 1 to 10000000",
        ),
        (
            limits(&|limits| limits.stalled = Duration::ZERO),
            "the limit stalled is 0; give 100 to 3600000 ms",
        ),
        (
            limits(&|limits| limits.bytes_per_turn = 16_777_217),
            "the limit bytes_per_turn is 16777217; give 4096 to 16777216 bytes",
        ),
    ];
    for (said, expected) in table {
        assert_eq!(said, expected);
    }
    let said = refusal(&|settings| settings.pin = Pinning::Cores(vec![70_000]), 0);
    assert!(said.starts_with("core 70000 cannot be pinned to; this process may use ["), "{said}");
    let said = refusal(&|settings| settings.listen = vec![taken], 0);
    assert!(said.starts_with(&format!("cannot listen on {taken}: ")), "{said}");
    assert!(said.ends_with("; another controller may be running there"), "{said}");
}

#[test]
fn an_address_can_be_listened_on_again_as_soon_as_the_engine_has_stopped() {
    let engine = start(1, |_| {});
    let address = engine.addresses()[0];
    let mut peer = Peer::up(&engine, Version::V1_3, 1);
    // A remaining monitor keeps no connection open.
    let monitor = engine.monitor();
    engine.stop();
    peer.wait_closed();
    let engine = start(1, |settings| settings.listen = vec![address]);
    Peer::up(&engine, Version::V1_3, 1).ping(1);
    assert_eq!(monitor.status().connections, 0);
}
