//! Raw connections: what the session does itself, and what it leaves to the owner.

use std::time::Duration;

use crate::common::{OUT_BYTES, VERSIONS, description, ms, raw};
use bellrock_openflow::{Out, Version, frame};
use bellrock_session::{
    CloseReason, RawSession, RawSessionEvent, SessionSettings, SwitchSession, Versions,
};
use proptest::prelude::*;

/// A raw session after its handshake, and its empty send buffer.
fn open(version: Version) -> (RawSession, Out) {
    let mut out = Out::with_capacity(OUT_BYTES);
    let mut up = Out::with_capacity(OUT_BYTES);
    let mut session =
        RawSession::new(&SessionSettings::default(), Duration::ZERO, &mut out).unwrap();
    let mut switch =
        SwitchSession::new(description(version, 2), Versions::only(version), &mut up).unwrap();
    let mut events = Vec::new();
    while !session.is_open() {
        let mut bytes = out.as_slice();
        while let Some((used, _)) = switch.next(bytes, &mut up).unwrap() {
            bytes = &bytes[used..];
        }
        out.clear();
        let mut bytes = up.as_slice();
        while let Some((used, event)) = session.next(bytes, ms(100), &mut out).unwrap() {
            bytes = &bytes[used..];
            events.push(event);
        }
        up.clear();
    }
    let [RawSessionEvent::Hello, RawSessionEvent::Identified(found)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((found.datapath_id, found.version), (0x1_0000_0000_0001, version));
    assert_eq!(found.ports.len(), if version.has_port_desc() { 0 } else { 2 });
    assert_eq!(session.version(), version);
    assert!(out.is_empty(), "nothing but hello and features request is sent");
    (session, out)
}

fn give(session: &mut RawSession, message: &[u8], out: &mut Out) -> RawSessionEvent {
    let (used, event) = session.next(message, ms(200), out).unwrap().unwrap();
    assert_eq!(used, message.len());
    event
}

fn sent(out: &mut Out) -> Vec<Vec<u8>> {
    let (mut messages, mut rest) = (Vec::new(), out.as_slice());
    while let Some(message) = frame(rest).unwrap() {
        messages.push(message.bytes.to_vec());
        rest = &rest[message.bytes.len()..];
    }
    out.clear();
    messages
}

proptest! {
    #[test]
    fn any_message_but_an_echo_is_the_owners_and_causes_no_answer(
        old in any::<bool>(), wire in any::<u8>(), kind in any::<u8>(), xid in any::<u32>(),
        body in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let version = if old { Version::V1_0 } else { Version::V1_3 };
        let (mut session, mut out) = open(version);
        let is_echo = wire == version.wire() && (kind == 2 || kind == 3);
        prop_assume!(!is_echo);
        let message = raw(wire, kind, xid, &body);
        prop_assert!(matches!(give(&mut session, &message, &mut out), RawSessionEvent::Message));
        prop_assert!(out.is_empty());
    }

    #[test]
    fn an_echo_request_is_answered_with_its_bytes_and_a_strange_reply_is_the_owners(
        old in any::<bool>(), xid in any::<u32>(), body in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let version = if old { Version::V1_0 } else { Version::V1_3 };
        let (mut session, mut out) = open(version);
        let request = raw(version.wire(), 2, xid, &body);
        prop_assert!(matches!(give(&mut session, &request, &mut out), RawSessionEvent::Nothing));
        let reply = raw(version.wire(), 3, xid, &body);
        prop_assert_eq!(sent(&mut out), vec![reply.clone()]);
        prop_assume!(!body.starts_with(b"bellrock"));
        prop_assert!(matches!(give(&mut session, &reply, &mut out), RawSessionEvent::Message));
    }
}

#[test]
fn the_sessions_echoes_are_known_by_their_payload_so_that_owners_use_any_xid() {
    for version in VERSIONS {
        let (mut session, mut out) = open(version);
        assert_eq!(session.deadline(), ms(15_100));
        session.timeout(ms(15_100), &mut out).unwrap();
        let mut reply = sent(&mut out).remove(0);
        let xid = u32::from_be_bytes(reply[4..8].try_into().unwrap());
        reply[1] = 3;
        // The owner's echo with the same xid is the owner's.
        let of_owner = raw(version.wire(), 3, xid, b"mine");
        assert!(matches!(give(&mut session, &of_owner, &mut out), RawSessionEvent::Message));
        assert!(matches!(give(&mut session, &reply, &mut out), RawSessionEvent::Nothing));
        session.received(ms(15_200));
        assert_eq!(session.deadline(), ms(30_200));
        session.probe(&mut out).unwrap();
        let mut reply = sent(&mut out).remove(0);
        reply[1] = 3;
        assert!(matches!(give(&mut session, &reply, &mut out), RawSessionEvent::ProbeAnswered));
        assert!(matches!(give(&mut session, &reply, &mut out), RawSessionEvent::Nothing));
        session.timeout(ms(30_200), &mut out).unwrap();
        assert_eq!(session.timeout(ms(45_200), &mut out), Err(CloseReason::Dead));
    }
}

#[test]
fn messages_before_the_features_are_kept_and_the_handshake_has_a_time_limit() {
    let mut out = Out::with_capacity(OUT_BYTES);
    let settings = SessionSettings::default();
    let mut session = RawSession::new(&settings, Duration::ZERO, &mut out).unwrap();
    let hello = raw(4, 0, 7, &[]);
    assert!(matches!(give(&mut session, &hello, &mut out), RawSessionEvent::Hello));
    let packet_in = raw(4, 10, 0, &[1, 2, 3]);
    assert!(matches!(give(&mut session, &packet_in, &mut out), RawSessionEvent::Message));
    // A features reply with another xid answers nothing of the session.
    let strange = raw(4, 6, 99, &[0; 24]);
    assert!(matches!(give(&mut session, &strange, &mut out), RawSessionEvent::Message));
    session.received(ms(4_000));
    let late = session.timeout(ms(5_000), &mut out).unwrap_err();
    assert!(matches!(late, CloseReason::HandshakeTimeout { waiting_for: "features reply" }));
    // An unreadable one ends the connection, and so does a refusal.
    let broken = raw(4, 6, 1, &[0; 3]);
    let close = session.next(&broken, ms(100), &mut out).unwrap_err();
    assert!(matches!(close, CloseReason::BadReply { .. }), "{close}");
    let refusal = raw(4, 1, 1, &[0, 1, 0, 5]);
    let close = session.next(&refusal, ms(100), &mut out).unwrap_err();
    assert!(matches!(close, CloseReason::FeaturesRefused(_)), "{close}");
}

#[test]
fn a_length_below_the_header_ends_the_connection_and_a_full_buffer_waits() {
    let (mut session, mut out) = open(Version::V1_3);
    let close = session.next(&[4, 10, 0, 7, 0, 0, 0, 1], ms(200), &mut out).unwrap_err();
    assert!(matches!(close, CloseReason::BadLength(_)));
    assert_eq!(sent(&mut out)[0][1], 1, "an error says so");
    let request = raw(4, 2, 1, &[0; 1000]);
    let mut narrow = Out::with_capacity(1500);
    assert!(matches!(give(&mut session, &request, &mut narrow), RawSessionEvent::Nothing));
    let again = session.next(&request, ms(200), &mut narrow).unwrap().unwrap();
    assert!(matches!(again, (0, RawSessionEvent::OutFull)));
    narrow.clear();
    assert!(matches!(give(&mut session, &request, &mut narrow), RawSessionEvent::Nothing));
}
