//! Raw connections over real sockets.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod peer;

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};

use bellrock_api::runtime::raw_owner;
use bellrock_api::{Dpid, EndReason, RawEvent, RawOwner, RawUp, Version};
use bellrock_engine::{Engine, EngineSettings, Pinning};
use peer::{PATIENCE, Peer, counter, packet_in, until};

fn start(workers: usize) -> (Engine, RawOwner) {
    let (owner, port) = raw_owner();
    let settings = EngineSettings {
        listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
        workers,
        pin: Pinning::None,
        ..EngineSettings::default()
    };
    (Engine::start_raw(&settings, port).unwrap(), owner)
}

fn next(owner: &RawOwner) -> RawEvent {
    owner.next_within(PATIENCE).unwrap_or_else(|| panic!("no event within {PATIENCE:?}"))
}

fn connect(engine: &Engine, owner: &RawOwner, version: Version, dpid: u64) -> (Peer, RawUp) {
    let mut peer = Peer::connect(engine.addresses()[0], version, dpid);
    let mut up = None;
    until("the switch is up", || {
        peer.turn();
        up = owner.take(1).pop();
        up.is_some()
    });
    let Some(RawEvent::Up(up)) = up else { panic!("{up:?}") };
    assert_eq!(up.switch.dpid, Dpid(dpid));
    (peer, up)
}

#[test]
fn messages_pass_both_ways_as_they_are_and_the_stop_is_seen() {
    let (engine, owner) = start(2);
    for version in Version::ALL {
        let (mut peer, up) = connect(&engine, &owner, version, version.wire().into());
        let packets: Vec<u8> =
            (0..1000).flat_map(|n| packet_in(version, n, 100 + n as usize)).collect();
        peer.stream.write_all(&packets).unwrap();
        let mut got = Vec::new();
        while got.len() < packets.len() {
            match next(&owner) {
                RawEvent::Messages { bytes, .. } => got.extend_from_slice(&bytes),
                other => panic!("{other:?}"),
            }
        }
        assert!(got == packets);
        let barrier = if version == Version::V1_0 { 18 } else { 20 };
        // The switch's session answers it, with the owner's xid.
        up.connection.send(&[version.wire(), barrier, 0, 8, 0xff, 1, 2, 3]).unwrap();
        until("the barrier is answered", || {
            peer.turn();
            match owner.take(1).pop() {
                Some(RawEvent::Messages { bytes, .. }) => {
                    assert_eq!(bytes[4..], [0xff, 1, 2, 3]);
                    true
                }
                None => false,
                other => panic!("{other:?}"),
            }
        });
        drop(peer);
        let RawEvent::Down { why, .. } = next(&owner) else { panic!("no end") };
        assert_eq!(why.reason, EndReason::ClosedByPeer);
    }
    let (_peer, _up) = connect(&engine, &owner, Version::V1_3, 9);
    engine.stop();
    assert!(matches!(next(&owner), RawEvent::Down { why, .. } if why.reason == EndReason::Stopped));
    assert!(owner.next().is_none() && owner.is_over());
}

#[test]
fn a_slow_owner_slows_its_switches_by_tcp_and_loses_nothing() {
    const PACKETS: u64 = 40_000;
    const PACKET_BYTES: usize = 1000;
    let (engine, owner) = start(1);
    let (peer, _up) = connect(&engine, &owner, Version::V1_3, 1);
    let mut stream = peer.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        for n in 0..PACKETS {
            stream.write_all(&packet_in(Version::V1_3, n, PACKET_BYTES)).unwrap();
        }
    });
    until("the switch is left unread", || counter(&engine, "pauses") > 0);
    let read = counter(&engine, "bytes_in");
    assert!(read < 4 << 20, "{read}");
    let mut packets = 0;
    while packets < PACKETS {
        let RawEvent::Messages { bytes, .. } = next(&owner) else { panic!("another event") };
        let mut rest = &bytes[..];
        while let Some(message) = bellrock_api::openflow::frame(rest).unwrap() {
            assert!(message.bytes == packet_in(Version::V1_3, packets, PACKET_BYTES));
            rest = &rest[message.bytes.len()..];
            packets += 1;
        }
        assert!(rest.is_empty(), "only whole messages");
    }
    sending.join().unwrap();
}

#[test]
fn the_end_of_the_owner_closes_all_and_the_engine_goes_on() {
    let (engine, owner) = start(1);
    let (mut peer, _up) = connect(&engine, &owner, Version::V1_3, 1);
    drop(owner);
    peer.wait_closed();
    let mut late = Peer::connect(engine.addresses()[0], Version::V1_3, 2);
    late.wait_closed();
    assert!(!engine.has_failed());
}
