//! Replies in parts: joined, interleaved, too large.

use std::time::Duration;

use crate::common::{Alone, VERSIONS, bytes, raw};
use bellrock_openflow::{
    Aggregate, FromSwitch, List, MultipartKind, MultipartReply, Port, PortStats, ReplyBody,
    RequestKind, Version,
};
use bellrock_session::{SessionEvent, SessionSettings};

const PORT_STATS: RequestKind = RequestKind::Multipart(MultipartKind::PortStats);

/// A part with the counters of these ports.
fn part(version: Version, xid: u32, more: bool, ports: std::ops::Range<u32>) -> Vec<u8> {
    let port = bytes(
        version,
        0,
        &FromSwitch::MultipartReply(MultipartReply::of(ReplyBody::PortStats(List::empty()))),
    )
    .len();
    let entry = if version == Version::V1_0 { 104 } else { 112 };
    let mut message = raw(
        version.wire(),
        bellrock_openflow::MessageKind::MultipartReply.wire(version).unwrap(),
        xid,
        &vec![0; port - 8 + entry * ports.len()],
    );
    message[9] = 4;
    message[11] = u8::from(more);
    for (i, number) in ports.enumerate() {
        let at = port + entry * i;
        match version {
            Version::V1_0 => message[at..at + 2].copy_from_slice(&(number as u16).to_be_bytes()),
            Version::V1_3 => message[at..at + 4].copy_from_slice(&number.to_be_bytes()),
        }
    }
    message
}

/// The ports in a reply.
fn ports(event: &SessionEvent<'_>) -> (u32, Vec<u32>) {
    let SessionEvent::Multipart { xid, reply } = event else { panic!("{event:?}") };
    assert_eq!(reply.kind(), MultipartKind::PortStats);
    let ReplyBody::PortStats(stats) = reply.body().unwrap() else { panic!() };
    (*xid, stats.iter().map(|stats: PortStats| stats.port.0).collect())
}

#[test]
fn parts_are_put_together_also_when_replies_are_interleaved() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &SessionSettings::default());
        let xids: Vec<u32> = (0..5).map(|_| end.controller.next_xid(3)).collect();
        for xid in &xids {
            end.controller.request(*xid, PORT_STATS, Duration::ZERO).unwrap();
        }
        for round in 0..10 {
            for (i, xid) in xids.iter().enumerate() {
                let first = round * 10 + i as u32 * 100 + 1;
                let message = part(version, *xid, true, first..first + 10);
                assert!(matches!(end.give(&message), Ok(SessionEvent::Nothing)));
            }
        }
        for (i, xid) in xids.iter().enumerate() {
            let first = i as u32 * 100 + 1;
            // Some switches end with an empty part.
            let last = part(version, *xid, false, 0..0);
            let event = end.give(&last).unwrap();
            assert_eq!(ports(&event), (*xid, (first..first + 100).collect()));
        }
        assert_eq!(end.controller.unanswered().count(), 0);
        let late = part(version, xids[0], false, 1..3);
        assert!(matches!(end.give(&late), Ok(SessionEvent::Nothing)));
        assert_eq!(end.controller.take_counters().unexpected, 1);
        assert!(end.sent().is_empty());
    }
}

#[test]
fn a_reply_in_one_part_is_not_copied() {
    for version in VERSIONS {
        let mut end = Alone::ready(
            version,
            &SessionSettings { max_multipart_bytes: 0, ..SessionSettings::default() },
        );
        let xid = end.controller.next_xid(3);
        end.controller.request(xid, PORT_STATS, Duration::ZERO).unwrap();
        let message = part(version, xid, false, 1..400);
        assert_eq!(ports(&end.give(&message).unwrap()).1.len(), 399);
    }
}

#[test]
fn a_reply_beyond_the_bound_is_dropped_and_its_requester_told() {
    for version in VERSIONS {
        let entry = if version == Version::V1_0 { 104 } else { 112 };
        let settings =
            SessionSettings { max_multipart_bytes: 20 * entry, ..SessionSettings::default() };
        // Exactly the limit.
        let mut end = Alone::ready(version, &settings);
        let xid = end.controller.next_xid(3);
        end.controller.request(xid, PORT_STATS, Duration::ZERO).unwrap();
        end.give(&part(version, xid, true, 1..11)).unwrap();
        let last = part(version, xid, false, 11..21);
        assert_eq!(ports(&end.give(&last).unwrap()).1.len(), 20);
        // One more, in the last part or before. The limit is for all replies together.
        for more in [true, false] {
            let (small, large) = (end.controller.next_xid(3), end.controller.next_xid(3));
            end.controller.request(small, PORT_STATS, Duration::ZERO).unwrap();
            end.controller.request(large, PORT_STATS, Duration::ZERO).unwrap();
            end.give(&part(version, small, true, 1..3)).unwrap();
            end.give(&part(version, large, true, 1..11)).unwrap();
            let message = part(version, large, more, 11..20);
            let event = end.give(&message).unwrap();
            assert!(
                matches!(event, SessionEvent::MultipartOverflow { xid, kind: MultipartKind::PortStats } if xid == large),
                "{event:?}"
            );
            // Later parts are ignored; the other reply is not affected.
            let rest = part(version, large, false, 20..30);
            assert!(matches!(end.give(&rest), Ok(SessionEvent::Nothing)));
            let last = part(version, small, false, 3..21);
            assert_eq!(ports(&end.give(&last).unwrap()), (small, (1..21).collect()));
        }
        assert_eq!(end.controller.take_counters().multipart_overflows, 2);
        assert!(end.sent().is_empty(), "errors are about requests");
    }
}

#[test]
fn a_part_of_another_kind_does_not_mix_in() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &SessionSettings::default());
        let xid = end.controller.next_xid(3);
        end.controller.request(xid, PORT_STATS, Duration::ZERO).unwrap();
        end.give(&part(version, xid, true, 1..5)).unwrap();
        let sum = Aggregate { packet_count: 1, byte_count: 2, flow_count: 3 };
        let reply = MultipartReply::of(ReplyBody::Aggregate(sum));
        let other = bytes(version, xid, &FromSwitch::MultipartReply(reply));
        assert!(matches!(end.give(&other), Ok(SessionEvent::Nothing)));
        assert_eq!(end.controller.take_counters().unexpected, 1);
        let last = part(version, xid, false, 5..6);
        assert_eq!(ports(&end.give(&last).unwrap()).1, [1, 2, 3, 4, 5]);
    }
}

#[test]
fn a_body_that_has_no_parts_is_refused_in_parts() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &SessionSettings::default());
        let xid = end.controller.next_xid(3);
        let kind = RequestKind::Multipart(MultipartKind::Aggregate);
        end.controller.request(xid, kind, Duration::ZERO).unwrap();
        let sum = Aggregate { packet_count: 1, byte_count: 2, flow_count: 3 };
        let body = ReplyBody::Aggregate(sum);
        let first = FromSwitch::MultipartReply(MultipartReply { more: true, body });
        let second = FromSwitch::MultipartReply(MultipartReply::of(body));
        assert!(matches!(end.give(&bytes(version, xid, &first)), Ok(SessionEvent::Nothing)));
        let last = bytes(version, xid, &second);
        let event = end.give(&last).unwrap();
        let SessionEvent::Malformed { request, .. } = event else { panic!("{event:?}") };
        assert_eq!(request, Some(kind), "its requester is told");
        assert_eq!(end.controller.unanswered().count(), 0);
    }
}

#[test]
fn a_broken_part_ends_the_reply() {
    for version in VERSIONS {
        let mut end = Alone::ready(version, &SessionSettings::default());
        let xid = end.controller.next_xid(3);
        end.controller.request(xid, PORT_STATS, Duration::ZERO).unwrap();
        end.give(&part(version, xid, true, 1..5)).unwrap();
        let mut broken = part(version, xid, true, 5..9);
        broken.truncate(broken.len() - 1);
        let length = (broken.len() as u16).to_be_bytes();
        broken[2..4].copy_from_slice(&length);
        let Ok(SessionEvent::Malformed { request, .. }) = end.give(&broken) else { panic!() };
        assert_eq!(request, Some(PORT_STATS));
        assert!(end.sent().is_empty(), "a reply is not answered");
    }
}

#[test]
fn the_ports_of_a_large_switch_come_in_parts() {
    let mut description = crate::common::description(Version::V1_3, 3000);
    description.ports[2999].port = Port::LOCAL;
    let versions = bellrock_session::Versions::ALL;
    let mut pair =
        crate::common::Pair::new(&SessionSettings::default(), description.clone(), versions);
    assert_eq!(pair.run().unwrap().last().unwrap(), "Ready");
    assert_eq!(pair.controller.take_switch(), Some(description));
}
