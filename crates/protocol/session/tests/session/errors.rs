//! Answers to wrong messages, their rate limit, and a full `out`.

use std::time::Duration;

use crate::common::{Alone, OUT_BYTES, VERSIONS, bytes, ms, raw, to_switch};
use bellrock_openflow::{
    Bytes, EncodeError, ErrorCode, ErrorMessage, FromSwitch, MessageKind, MultipartKind, Out,
    RequestKind, ToSwitch, Version,
};
use bellrock_session::{CloseReason, SessionEvent, SessionSettings, xid};

/// Takes the errors that were sent: xid, code, data.
fn errors(end: &mut Alone) -> Vec<(u32, ErrorCode, Vec<u8>)> {
    let sent = to_switch(end.out.as_slice(), |_, xid, body| match body {
        ToSwitch::Error(ErrorMessage::Standard { code, data }) => (xid, code, data.to_vec()),
        other => panic!("{other:?} is no error"),
    });
    end.out.clear();
    sent
}

#[test]
fn a_wrong_message_is_answered_with_the_error_of_the_specification() {
    for version in VERSIONS {
        let wire = version.wire();
        let other = if version == Version::V1_0 { 4 } else { 1 };
        let flow_mod = MessageKind::FlowMod.wire(version).unwrap();
        for (message, code) in [
            // An unknown type, and one that switches do not send.
            (raw(wire, 99, 5, &[]), ErrorCode::RequestBadType),
            (raw(wire, flow_mod, 5, &[0; 80]), ErrorCode::RequestBadType),
            // Another version than agreed on: one of this end, and an unknown one.
            (raw(other, 2, 5, &[]), ErrorCode::RequestBadVersion),
            (raw(9, 2, 5, &[]), ErrorCode::RequestBadVersion),
            // Too short, and too long.
            (raw(wire, 12, 5, &[0; 20]), ErrorCode::RequestBadLength),
            (raw(wire, 10, 5, &[0; 3]), ErrorCode::RequestBadLength),
        ] {
            let mut end = Alone::ready(version, &SessionSettings::default());
            let event = end.give(&message).unwrap();
            let SessionEvent::Malformed { xid: 5, error, request: None } = event else {
                panic!("{event:?} for {message:?}");
            };
            assert_eq!(error.answer, code);
            let told = message[..message.len().min(64)].to_vec();
            assert_eq!(errors(&mut end), [(5, code, told)]);
            assert_eq!(end.controller.take_counters().malformed, 1);
        }
    }
}

#[test]
fn a_reply_is_never_answered_whatever_is_wrong_with_it() {
    for version in VERSIONS {
        let wire = version.wire();
        let stats = MessageKind::MultipartReply.wire(version).unwrap();
        let barrier = MessageKind::BarrierReply.wire(version).unwrap();
        for message in [
            raw(wire, 8, 5, &[0; 5]),
            raw(wire, barrier, 5, &[0; 5]),
            raw(wire, stats, 5, &[0x77, 0, 0, 0, 0, 0, 0, 0]),
            // Flows, the first with an impossible length.
            raw(wire, stats, 5, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 1]),
        ] {
            let mut end = Alone::ready(version, &SessionSettings::default());
            let xid = 5;
            let kind = RequestKind::Multipart(MultipartKind::Flow);
            end.controller.request(xid, kind, Duration::ZERO).unwrap();
            let event = end.give(&message).unwrap();
            assert!(
                matches!(event, SessionEvent::Malformed { xid: 5, .. }),
                "{event:?} for {message:?}"
            );
            assert!(end.sent().is_empty(), "{message:?}");
            assert_eq!(end.controller.take_counters().malformed, 1);
        }
    }
}

#[test]
fn an_error_is_never_answered() {
    for version in VERSIONS {
        let wire = version.wire();
        for message in [
            raw(wire, 1, 5, &[]),
            raw(wire, 1, 5, &[0, 1, 0]),
            raw(9, 1, 5, &[0, 1, 0, 0]),
            raw(wire, 1, 5, &[0xff, 0xff, 0, 1]),
            raw(wire, 1, 5, &[0, 1, 0, 6, 1, 2, 3]),
        ] {
            let mut end = Alone::ready(version, &SessionSettings::default());
            let event = end.give(&message).unwrap();
            assert!(
                matches!(event, SessionEvent::Malformed { .. } | SessionEvent::Error { .. }),
                "{event:?}"
            );
            assert!(end.sent().is_empty(), "{message:?}");
        }
        let mut end = Alone::ready(version, &SessionSettings::default());
        let broken = [wire, 1, 0, 7, 0, 0, 0, 5];
        assert!(matches!(end.give(&broken), Err(CloseReason::BadLength(_))));
        assert!(end.sent().is_empty());
    }
}

#[test]
fn ten_errors_at_once_and_ten_a_second_are_sent_and_the_rest_is_counted() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &SessionSettings::default());
        let wrong = raw(version.wire(), 99, 5, &[]);
        for _ in 0..1_000 {
            assert!(matches!(end.give(&wrong), Ok(SessionEvent::Malformed { .. })));
        }
        assert_eq!(errors(&mut end).len(), 10);
        let counters = end.controller.take_counters();
        assert_eq!((counters.malformed, counters.errors_suppressed), (1_000, 990));
        for (pause_ms, sent) in [(99, 0), (1, 1), (500, 5), (10_000, 10)] {
            end.now += ms(pause_ms);
            for _ in 0..20 {
                end.give(&wrong).unwrap();
            }
            assert_eq!(errors(&mut end).len(), sent, "after {pause_ms} ms");
        }
    }
}

#[test]
fn a_broken_length_is_told_and_closes() {
    for version in VERSIONS {
        for length in 0..8 {
            let mut end = Alone::ready(version, &SessionSettings::default());
            let broken = [version.wire(), 2, 0, length, 0, 0, 0, 5, 1, 2, 3];
            assert!(matches!(end.give(&broken), Err(CloseReason::BadLength(_))));
            let data = broken[..8].to_vec();
            assert_eq!(errors(&mut end), [(5, ErrorCode::RequestBadLength, data)]);
        }
    }
}

#[test]
fn an_error_goes_to_the_owner_of_its_xid_and_ends_its_request() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &SessionSettings::default());
        let (barrier, flow) = (end.controller.next_xid(7), end.controller.next_xid(200));
        end.controller.request(barrier, RequestKind::Barrier, Duration::ZERO).unwrap();
        let error = |xid| {
            let (code, data) = (ErrorCode::FlowModTableFull, Bytes(&[1, 2, 3]));
            bytes(version, xid, &FromSwitch::Error(ErrorMessage::Standard { code, data }))
        };
        for (sent, owner, expected) in
            [(flow, 200, None), (barrier, 7, Some(RequestKind::Barrier)), (barrier, 7, None)]
        {
            let message = error(sent);
            let Ok(SessionEvent::Error { xid: got, request, .. }) = end.give(&message) else {
                panic!("no error");
            };
            assert_eq!((got, xid::owner(got), request), (sent, owner, expected));
        }
        assert_eq!(end.controller.unanswered().count(), 0);
    }
}

#[test]
fn a_reply_that_cannot_be_read_ends_its_request_but_only_a_reply_does() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &SessionSettings::default());
        let xid = end.controller.next_xid(1);
        end.controller.request(xid, RequestKind::Config, Duration::ZERO).unwrap();
        // A switch chooses the numbers of its own messages.
        let unasked = raw(version.wire(), 12, xid, &[0; 3]);
        assert!(matches!(end.give(&unasked), Ok(SessionEvent::Malformed { request: None, .. })));
        let reply = raw(version.wire(), 8, xid, &[0; 3]);
        let Ok(SessionEvent::Malformed { request, .. }) = end.give(&reply) else { panic!() };
        assert_eq!(request, Some(RequestKind::Config));
    }
}

#[test]
fn replies_that_nobody_asked_for_are_counted_and_dropped() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &SessionSettings::default());
        let xid = end.controller.next_xid(1);
        let barrier = bytes(version, xid, &FromSwitch::BarrierReply);
        assert!(matches!(end.give(&barrier), Ok(SessionEvent::Nothing)));
        end.controller.request(xid, RequestKind::Config, Duration::ZERO).unwrap();
        assert!(matches!(end.give(&barrier), Ok(SessionEvent::Nothing)), "another kind");
        assert_eq!(end.controller.take_counters().unexpected, 2);
        assert_eq!(end.controller.split().1.cancel(xid), Some(RequestKind::Config));
        end.controller.request(xid, RequestKind::Barrier, Duration::ZERO).unwrap();
        assert!(matches!(end.give(&barrier), Ok(SessionEvent::Reply { .. })));
        assert!(end.sent().is_empty());
    }
}

#[test]
fn an_echo_is_answered_with_its_payload_when_there_is_room_again() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &SessionSettings::default());
        let payload = [7; 100];
        let echo = bytes(version, 5, &FromSwitch::EchoRequest(Bytes(&payload)));
        let mut small = Out::with_capacity(128);
        small.append(&[0; 64]).unwrap();
        for _ in 0..3 {
            let (used, event) = end.controller.next(&echo, ms(0), &mut small).unwrap().unwrap();
            assert!(used == 0 && matches!(event, SessionEvent::OutFull));
            assert_eq!(small.len(), 64);
        }
        small.clear();
        let (used, event) = end.controller.next(&echo, ms(0), &mut small).unwrap().unwrap();
        assert!(used == echo.len() && matches!(event, SessionEvent::Nothing));
        let sent = to_switch(small.as_slice(), |_, xid, body| (xid, format!("{body:?}")));
        assert_eq!(sent, [(5, format!("{:?}", ToSwitch::EchoReply(Bytes(&payload))))]);
        // Never wait for a buffer that can never hold the answer.
        let mut tiny = Out::with_capacity(64);
        let close = end.controller.next(&echo, ms(0), &mut tiny).unwrap_err();
        assert_eq!(close, CloseReason::CannotWrite(EncodeError::Full));
    }
}

#[test]
fn an_error_that_does_not_fit_is_counted_instead() {
    let mut end = Alone::ready(Version::V1_3, &SessionSettings::default());
    let wrong = raw(4, 99, 5, &[]);
    let mut full = Out::with_capacity(8);
    let (used, _) = end.controller.next(&wrong, ms(0), &mut full).unwrap().unwrap();
    assert_eq!(used, wrong.len());
    assert!(full.is_empty());
    assert_eq!(end.controller.take_counters().errors_suppressed, 1);
}

#[test]
fn a_request_too_many_is_refused() {
    let mut end = Alone::ready(Version::V1_3, &SessionSettings::default());
    let xids: Vec<u32> = (0..64).map(|_| end.controller.next_xid(1)).collect();
    for xid in &xids {
        end.controller.request(*xid, RequestKind::Barrier, Duration::ZERO).unwrap();
    }
    let next = end.controller.next_xid(1);
    let error = end.controller.request(next, RequestKind::Barrier, Duration::ZERO).unwrap_err();
    assert_eq!(
        error.to_string(),
        "64 requests to this switch are unanswered; wait for some of them"
    );
    let reply = bytes(Version::V1_3, xids[5], &FromSwitch::BarrierReply);
    assert!(matches!(end.give(&reply), Ok(SessionEvent::Reply { .. })));
    assert!(
        end.controller.request(xids[6], RequestKind::Barrier, Duration::ZERO).is_err(),
        "in use"
    );
    end.controller.request(next, RequestKind::Barrier, Duration::ZERO).unwrap();
    assert_eq!(end.controller.unanswered().count(), 64);
}

#[test]
fn the_table_miss_entry_is_1_3s() {
    let mut end = Alone::ready(Version::V1_0, &SessionSettings::default());
    assert_eq!(end.controller.table_miss(0, &mut end.out), Ok(None));
    assert!(end.out.is_empty());
    let mut end = Alone::ready(Version::V1_3, &SessionSettings::default());
    let sent = end.controller.table_miss(0x77, &mut end.out).unwrap().unwrap();
    assert_eq!(xid::owner(sent), xid::SESSION);
    let entry = end.sent().remove(0);
    for part in [
        "command: Add",
        "cookie: 119",
        "priority: 0",
        "SEND_FLOW_REM",
        "Match(any)",
        "max_len: 65535",
    ] {
        assert!(entry.contains(part), "{part} in {entry}");
    }
    let mut full = Out::with_capacity(OUT_BYTES);
    full.append(&vec![0; OUT_BYTES]).unwrap();
    assert_eq!(end.controller.table_miss(0, &mut full), Err(EncodeError::Full));
}

#[test]
fn a_request_without_an_answer_is_given_up_after_its_time() {
    for version in VERSIONS {
        let settings = SessionSettings::default();
        let mut end = Alone::ready(version, &settings);
        let (early, late) = (end.controller.next_xid(1), end.controller.next_xid(2));
        end.controller.request(early, RequestKind::Barrier, ms(1_000)).unwrap();
        end.controller.request(late, RequestKind::Config, ms(2_000)).unwrap();
        assert_eq!(end.controller.give_up(ms(60_999)), None);
        assert_eq!(end.controller.give_up(ms(61_000)), Some((early, RequestKind::Barrier)));
        assert_eq!(end.controller.give_up(ms(61_000)), None);
        let barrier = bytes(version, early, &FromSwitch::BarrierReply);
        assert!(matches!(end.give(&barrier), Ok(SessionEvent::Nothing)), "too late");
    }
}
