//! Times, on a clock that the test moves.

use crate::common::{Alone, Pair, VERSIONS, bytes, description, last_xid, ms, raw};
use bellrock_openflow::{Bytes, FromSwitch, Out, Version};
use bellrock_session::{CloseReason, ControllerSession, SessionEvent, SessionSettings, Versions};

#[test]
fn a_handshake_that_stands_still_is_closed_after_5_s_wherever_it_stands() {
    let settings = SessionSettings::default();
    // A silent peer.
    let mut end = Alone::new(&settings);
    times_out(&mut end.controller, "hello");
    // A peer that sends half a hello, byte by byte: bytes alone do not prolong it.
    let mut end = Alone::new(&settings);
    let hello = raw(4, 0, 1, &[0, 1, 0, 8, 0, 0, 0, 0x12]);
    for n in 1..8 {
        end.now = ms(n * 600);
        end.controller.received(end.now);
        let so_far = &hello[..n as usize];
        assert!(end.controller.next(so_far, end.now, &mut end.out).unwrap().is_none());
    }
    times_out(&mut end.controller, "hello");
    // A peer that does not send its features.
    let mut end = Alone::new(&settings);
    end.give(&raw(4, 0, 1, &[])).unwrap();
    times_out(&mut end.controller, "features reply");
}

fn times_out(controller: &mut ControllerSession, missing: &str) {
    let mut out = Out::with_capacity(4096);
    assert_eq!(controller.deadline(), ms(5_000));
    assert_eq!(controller.timeout(ms(4_999), &mut out), Ok(false));
    let close = controller.timeout(ms(5_000), &mut out).unwrap_err();
    assert!(matches!(close, CloseReason::HandshakeTimeout { .. }));
    assert!(close.to_string().contains(&format!("no {missing};")), "{close}");
    assert!(out.is_empty());
}

#[test]
fn silence_is_asked_after_15_s_and_closed_15_s_later() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &SessionSettings::default());
        end.controller.received(ms(1_000));
        assert_eq!(end.controller.deadline(), ms(16_000));
        end.controller.timeout(ms(15_999), &mut end.out).unwrap();
        assert!(end.sent().is_empty());
        end.controller.timeout(ms(16_000), &mut end.out).unwrap();
        assert_eq!(end.sent(), ["EchoRequest(Bytes())"]);
        assert_eq!(end.controller.deadline(), ms(31_000));
        end.controller.timeout(ms(30_999), &mut end.out).unwrap();
        assert!(end.sent().is_empty(), "one echo is enough");
        assert_eq!(end.controller.timeout(ms(31_000), &mut end.out), Err(CloseReason::Dead));
    }
}

#[test]
fn any_sign_of_life_postpones_the_next_echo() {
    let mut end = Alone::ready(Version::V1_3, &SessionSettings::default());
    for round in 1..=5 {
        end.controller.timeout(end.controller.deadline(), &mut end.out).unwrap();
        assert_eq!(end.sent().len(), 1, "an echo in round {round}");
        let late = end.controller.deadline() - ms(1);
        end.controller.received(late);
        assert_eq!(end.controller.deadline(), late + ms(15_000));
    }
}

#[test]
fn the_handshake_prolongs_the_time_to_the_first_echo() {
    let mut pair =
        Pair::new(&SessionSettings::default(), description(Version::V1_3, 1), Versions::ALL);
    pair.now = ms(4_900);
    assert_eq!(pair.run().unwrap().last().unwrap(), "Ready");
    assert_eq!(pair.controller.deadline(), ms(19_900));
}

#[test]
fn an_echo_that_does_not_fit_leaves_the_peer_its_time() {
    let mut end = Alone::ready(Version::V1_3, &SessionSettings::default());
    let mut full = Out::with_capacity(7);
    let deadline = end.controller.deadline();
    assert_eq!(end.controller.timeout(deadline, &mut full), Ok(false));
    assert_eq!(end.controller.deadline(), deadline + ms(15_000));
    let dead = end.controller.timeout(deadline + ms(15_000), &mut full);
    assert_eq!(dead, Err(CloseReason::Dead));
}

#[test]
fn a_probe_is_answered_by_its_own_echo_only() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &SessionSettings::default());
        let echo = |xid| bytes(version, xid, &FromSwitch::EchoReply(Bytes(&[])));
        end.controller.timeout(end.controller.deadline(), &mut end.out).unwrap();
        let keepalive = last_xid(&end.out);
        end.controller.probe(&mut end.out).unwrap();
        let probe = last_xid(&end.out);
        assert!(matches!(end.give(&echo(keepalive)), Ok(SessionEvent::Nothing)));
        assert!(matches!(end.give(&echo(probe)), Ok(SessionEvent::ProbeAnswered)));
        assert!(matches!(end.give(&echo(probe)), Ok(SessionEvent::Nothing)), "answered once");
        let mut full = Out::with_capacity(7);
        assert!(end.controller.probe(&mut full).is_err());
    }
}

#[test]
fn times_at_the_end_of_the_clock_do_not_overflow() {
    let forever = SessionSettings {
        handshake_timeout: std::time::Duration::MAX,
        echo_after: std::time::Duration::MAX,
        ..SessionSettings::default()
    };
    let mut end = Alone::ready(Version::V1_0, &forever);
    end.controller.received(ms(u64::MAX));
    assert_eq!(end.controller.deadline(), std::time::Duration::MAX);
}
