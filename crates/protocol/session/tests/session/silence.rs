//! Requests that a switch ignores, refuses, or answers with bytes that cannot be decoded.

use std::time::Duration;

use crate::common::{Alone, Half, VERSIONS, asked, bytes, port, raw, refuse};
use bellrock_openflow::{
    Bytes, FromSwitch, List, MatchView, MultipartKind, MultipartReply, MultipartRequest,
    PacketInMessage, PacketInReason, Port, ReplyBody, RequestBody, RequestKind, ToSwitch, Version,
};
use bellrock_session::{CloseReason, MissingReply, PACKET_WAIT, SessionEvent, SessionSettings};

/// Maximum time that a packet waits for a missing answer, with timers of this grain.
const LONGEST: Duration = Duration::from_millis(200);
const TIMER_GRAIN: Duration = Duration::from_millis(50);

fn packet_in(version: Version) -> Vec<u8> {
    let packet = FromSwitch::PacketIn(PacketInMessage {
        buffer_id: None,
        total_len: 60,
        reason: PacketInReason::NoMatch,
        table: 0,
        cookie: PacketInMessage::NO_COOKIE,
        matching: MatchView::port(Port(2)),
        data: Bytes(&[7; 60]),
    });
    bytes(version, 0, &packet)
}

/// A switch's reaction to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// It answers only the barrier behind it.
    Nothing,
    Refuses,
    /// It answers with half a body.
    Garbles,
}

fn garbled(version: Version, xid: u32, kind: MultipartKind) -> Vec<u8> {
    let (wire, multipart) = match (version, kind) {
        (Version::V1_0, MultipartKind::Desc) => (17, 0_u16),
        (Version::V1_3, MultipartKind::Desc) => (19, 0),
        (Version::V1_3, MultipartKind::PortDesc) => (19, 13),
        other => panic!("{other:?}"),
    };
    let padding = if version == Version::V1_0 { 0 } else { 4 };
    let mut body = multipart.to_be_bytes().to_vec();
    body.extend(vec![0; 2 + padding + 9]);
    raw(version.wire(), wire, xid, &body)
}

/// A handshake in which the switch reacts like this to both requests: it comes up, and nothing is
/// closed.
#[test]
fn description_and_ports_may_be_missing() {
    for version in VERSIONS {
        for does in [Does::Nothing, Does::Refuses, Does::Garbles] {
            let Half { mut end, xids } = asked(version);
            let questions = if version == Version::V1_0 { 1 } else { 2 };
            let kinds = [MultipartKind::Desc, MultipartKind::PortDesc];
            let mut ready = 0;
            for (xid, kind) in xids[1..].iter().zip(kinds).take(questions) {
                let answer = match does {
                    Does::Nothing => continue,
                    Does::Refuses => refuse(version, *xid),
                    Does::Garbles => garbled(version, *xid, kind),
                };
                ready += usize::from(matches!(end.give(&answer).unwrap(), SessionEvent::Ready));
            }
            let barrier = bytes(version, xids[1 + questions], &FromSwitch::BarrierReply);
            ready += usize::from(matches!(end.give(&barrier).unwrap(), SessionEvent::Ready));
            assert_eq!(ready, 1, "{version} {does:?}");
            let switch = end.controller.take_switch().unwrap();
            assert_eq!(&*switch.software, "");
            let missing = match does {
                Does::Nothing => MissingReply::Silent,
                Does::Refuses => MissingReply::Refused,
                Does::Garbles => MissingReply::Unreadable,
            };
            let expected = (version == Version::V1_3).then_some(missing);
            assert_eq!(switch.ports_missing, expected, "{version} {does:?}");
            assert_eq!(end.controller.unanswered().count(), 0);
            assert_eq!(end.controller.take_counters().unexpected, 0);
        }
    }
}

/// A switch that answers neither the requests nor the barrier comes up at the time limit.
#[test]
fn without_barriers_the_time_of_the_handshake_ends_the_wait() {
    for version in VERSIONS {
        let Half { mut end, .. } = asked(version);
        let within = SessionSettings::default().handshake_timeout;
        assert_eq!(end.controller.deadline(), within);
        let before = within - Duration::from_millis(1);
        assert_eq!(end.controller.timeout(before, &mut end.out), Ok(false));
        assert_eq!(end.controller.timeout(within, &mut end.out), Ok(true));
        // From here on, silence counts.
        assert_eq!(end.controller.deadline(), within + SessionSettings::default().echo_after);
        let switch = end.controller.take_switch().unwrap();
        assert_eq!(switch.ports.len(), if version == Version::V1_0 { 2 } else { 0 });
    }
}

/// Waiting packets shorten the time; the first one counts.
#[test]
fn packets_that_wait_shorten_the_handshake() {
    assert!(PACKET_WAIT + TIMER_GRAIN <= LONGEST);
    for version in VERSIONS {
        let Half { mut end, .. } = asked(version);
        for at in [1000, 1100] {
            end.now = Duration::from_millis(at);
            assert!(matches!(end.give(&packet_in(version)), Ok(SessionEvent::PacketIn { .. })));
        }
        let due = Duration::from_secs(1) + PACKET_WAIT;
        assert_eq!(end.controller.deadline(), due);
        assert_eq!(end.controller.timeout(due, &mut end.out), Ok(true));
    }
}

/// Before the features nothing can be shortened: there is no switch without them.
#[test]
fn packets_do_not_shorten_the_wait_for_features() {
    for version in VERSIONS {
        let mut end = Alone::new(&SessionSettings::default());
        end.give(&raw(version.wire(), 0, 1, &[])).unwrap();
        assert!(matches!(end.give(&packet_in(version)), Ok(SessionEvent::PacketIn { .. })));
        let within = SessionSettings::default().handshake_timeout;
        assert_eq!(end.controller.deadline(), within);
        let closed = end.controller.timeout(within, &mut end.out).unwrap_err();
        assert_eq!(closed, CloseReason::HandshakeTimeout { waiting_for: "features reply" });
    }
}

/// A late answer is an ordinary answer.
#[test]
fn an_answer_after_the_handshake_is_not_lost() {
    let version = Version::V1_3;
    let Half { mut end, xids } = asked(version);
    end.give(&packet_in(version)).unwrap();
    assert_eq!(end.controller.timeout(PACKET_WAIT, &mut end.out), Ok(true));
    end.controller.take_switch().unwrap();
    let ports = [port(1), port(2)];
    let reply = MultipartReply::of(ReplyBody::PortDesc(List::of(&ports)));
    let reply = bytes(version, xids[2], &FromSwitch::MultipartReply(reply));
    let Ok(SessionEvent::Multipart { xid, reply }) = end.give(&reply) else { panic!() };
    assert_eq!(xid, xids[2]);
    assert!(matches!(reply.body(), Ok(ReplyBody::PortDesc(told)) if told.iter().count() == 2));
    // The description stays unanswered.
    let barrier = bytes(version, xids[3], &FromSwitch::BarrierReply);
    let silent = end.give(&barrier).unwrap();
    let kind = RequestKind::Multipart(MultipartKind::Desc);
    assert!(
        matches!(silent, SessionEvent::Silent { xid, kind: its } if xid == xids[1] && its == kind),
        "{silent:?}"
    );
    assert_eq!(end.controller.unanswered().count(), 0);
}

/// A request of the caller with a barrier behind it. Returns both xids.
fn question(end: &mut Alone) -> (u32, u32) {
    let version = end.version();
    let xid = end.controller.next_xid(3);
    let body = RequestBody::Desc;
    let kind = RequestKind::Multipart(body.kind());
    end.controller.request(xid, kind, end.now).unwrap();
    let request = ToSwitch::MultipartRequest(MultipartRequest::of(body));
    request.encode(version, xid, &mut end.out).unwrap();
    end.controller.follow(xid, end.now, &mut end.out).unwrap();
    let barrier = crate::common::last_xid(&end.out);
    assert_eq!(end.sent().last().map(String::as_str), Some("BarrierRequest"));
    (xid, barrier)
}

#[test]
fn a_barrier_behind_a_question_ends_it_unless_it_was_answered() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &SessionSettings::default());
        let (silent, barrier) = question(&mut end);
        assert_eq!(end.controller.unanswered().count(), 1, "the barrier is nobody's request");
        let reply = bytes(version, barrier, &FromSwitch::BarrierReply);
        let kind = RequestKind::Multipart(MultipartKind::Desc);
        let event = end.give(&reply).unwrap();
        assert!(
            matches!(event, SessionEvent::Silent { xid, kind: its } if xid == silent && its == kind),
            "{event:?}"
        );
        assert_eq!(end.controller.unanswered().count(), 0);
        // A second, equal answer is unexpected.
        assert!(matches!(end.give(&reply), Ok(SessionEvent::Nothing)));
        assert_eq!(end.controller.take_counters().unexpected, 1);

        for answer in [refuse(version, 0), garbled(version, 0, MultipartKind::Desc)] {
            let (xid, barrier) = question(&mut end);
            let mut answer = answer;
            answer[4..8].copy_from_slice(&xid.to_be_bytes());
            let event = end.give(&answer).unwrap();
            assert!(
                matches!(event, SessionEvent::Error { .. } | SessionEvent::Malformed { .. }),
                "{event:?}"
            );
            let reply = bytes(version, barrier, &FromSwitch::BarrierReply);
            assert!(matches!(end.give(&reply), Ok(SessionEvent::Nothing)));
        }
        assert_eq!(end.controller.take_counters().unexpected, 0);
    }
}

/// A switch that sends parts is answering, whatever comes in between.
#[test]
fn a_question_of_which_a_part_is_answered_is_not_silent() {
    let version = Version::V1_3;
    let mut end = Alone::ready(version, &SessionSettings::default());
    let xid = end.controller.next_xid(3);
    let kind = RequestKind::Multipart(MultipartKind::PortDesc);
    end.controller.request(xid, kind, end.now).unwrap();
    end.controller.follow(xid, end.now, &mut end.out).unwrap();
    let barrier = crate::common::last_xid(&end.out);
    let ports = [port(1)];
    let part = |more| {
        let body = ReplyBody::PortDesc(List::of(&ports));
        bytes(version, xid, &FromSwitch::MultipartReply(MultipartReply { more, body }))
    };
    assert!(matches!(end.give(&part(true)), Ok(SessionEvent::Nothing)));
    let reply = bytes(version, barrier, &FromSwitch::BarrierReply);
    assert!(matches!(end.give(&reply), Ok(SessionEvent::Nothing)));
    assert!(matches!(end.give(&part(false)), Ok(SessionEvent::Multipart { .. })));
}

/// A switch without barriers refuses it: the request waits for its answer.
#[test]
fn a_refused_barrier_leaves_the_question() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &SessionSettings::default());
        let (_, barrier) = question(&mut end);
        assert!(matches!(end.give(&refuse(version, barrier)), Ok(SessionEvent::Nothing)));
        assert_eq!(end.controller.unanswered().count(), 1);
    }
}

/// Barriers behind requests do not count as requests, and end with them.
#[test]
fn barriers_behind_questions_do_not_count() {
    let settings = SessionSettings { max_requests: 4, ..SessionSettings::default() };
    for version in VERSIONS {
        let mut end = Alone::ready(version, &settings);
        let barriers: Vec<u32> = (0..4).map(|_| question(&mut end).1).collect();
        let more = end.controller.request(77, RequestKind::Barrier, end.now);
        assert!(more.is_err());
        let now = end.now + settings.request_timeout;
        let given_up = std::iter::from_fn(|| end.controller.give_up(now)).count();
        assert_eq!(given_up, 4);
        let late = bytes(version, barriers[0], &FromSwitch::BarrierReply);
        end.give(&late).unwrap();
        assert_eq!(end.controller.take_counters().unexpected, 1, "it is forgotten");
    }
}
