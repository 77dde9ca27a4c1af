//! Whole conversations between both ends, in both versions.

use std::time::Duration;

use crate::common::{
    Alone, Half, OUT_BYTES, Pair, VERSIONS, asked, bytes, description, ms, port, raw, refuse,
    to_switch,
};
use bellrock_openflow::{
    Action, Bytes, ErrorCode, FlowMod, FlowRemoved, FlowRemovedReason, FromSwitch, Match,
    MatchView, Message, MultipartKind, MultipartRequest, Out, PacketInMessage, PacketInReason,
    Port, PortDesc, PortReason, PortState, PortStatus, RequestBody, RequestKind, RoleKind,
    RoleMessage, ToSwitch, Version, frame,
};
use bellrock_session::{
    CloseReason, ControllerSession, SessionEvent, SessionSettings, SwitchDescription, Versions,
};
use proptest::prelude::*;

fn packet_in(data: &[u8]) -> FromSwitch<'_> {
    FromSwitch::PacketIn(PacketInMessage {
        buffer_id: Some(9),
        total_len: 1500,
        reason: PacketInReason::NoMatch,
        table: 0,
        cookie: PacketInMessage::NO_COOKIE,
        matching: MatchView::port(Port(2)),
        data: Bytes(data),
    })
}

fn status(reason: PortReason, desc: PortDesc) -> FromSwitch<'static> {
    FromSwitch::PortStatus(PortStatus { reason, desc })
}

fn down(number: u32) -> PortDesc {
    PortDesc { state: PortState::LINK_DOWN, ..port(number) }
}

#[test]
fn a_handshake_tells_the_whole_switch() {
    for version in VERSIONS {
        for ports in [0, 1, 48] {
            let switch = description(version, ports);
            let mut pair =
                Pair::new(&SessionSettings::default(), switch.clone(), Versions::only(version));
            let datapath_id = switch.datapath_id;
            let identified = format!("Identified {{ datapath_id: {datapath_id} }}");
            assert_eq!(pair.run().unwrap(), [&identified, "Ready"]);
            assert_eq!(pair.controller.take_switch(), Some(switch));
            assert_eq!(pair.controller.take_switch(), None);
            assert_eq!(pair.switch.config().miss_send_len, 0xffff);
            assert_eq!(pair.controller.take_counters(), Default::default());
        }
    }
}

#[test]
fn an_auxiliary_connection_can_be_told() {
    let switch = SwitchDescription { auxiliary_id: 3, ..description(Version::V1_3, 1) };
    let mut pair = Pair::new(&SessionSettings::default(), switch, Versions::ALL);
    pair.run().unwrap();
    assert_eq!(pair.controller.take_switch().map(|switch| switch.auxiliary_id), Some(3));
}

#[test]
fn requests_are_answered_and_the_rest_is_handed_on() {
    for version in VERSIONS {
        let mut pair = Pair::new(
            &SessionSettings::default(),
            description(version, 2),
            Versions::only(version),
        );
        pair.run().unwrap();
        let any = Match::any();
        let to_all = [Action::output(Port::ALL)];
        let flow = ToSwitch::FlowMod(FlowMod::add(&any).actions(&to_all));
        let role = RoleMessage { role: RoleKind::Master, generation_id: 1 };
        let role = ToSwitch::RoleRequest(role);
        let desc = ToSwitch::MultipartRequest(MultipartRequest::of(RequestBody::Desc));
        let echo = ToSwitch::EchoRequest(Bytes(b"hi"));
        let desc_kind = RequestKind::Multipart(MultipartKind::Desc);
        let wanted = [
            (flow, None, "switch: Message"),
            (ToSwitch::BarrierRequest, Some(RequestKind::Barrier), "body: BarrierReply"),
            (ToSwitch::GetConfigRequest, Some(RequestKind::Config), "miss_send_len: 65535"),
            (ToSwitch::FeaturesRequest, Some(RequestKind::Features), "n_tables: 3"),
            (desc, Some(desc_kind), "Multipart {"),
            (echo, Some(RequestKind::Echo), "EchoReply(Bytes(6869))"),
            (role, None, "switch: Message"),
        ];
        for (message, kind, expected) in wanted {
            if version == Version::V1_0 && matches!(message, ToSwitch::RoleRequest(_)) {
                continue;
            }
            let xid = pair.controller.next_xid(9);
            message.encode(version, xid, &mut pair.down).unwrap();
            if let Some(kind) = kind {
                pair.controller.request(xid, kind, Duration::ZERO).unwrap();
            }
            let events = pair.run().unwrap();
            assert_eq!(events.len(), 1, "{events:?}");
            assert!(events[0].contains(expected), "{expected} in {events:?}");
            assert!(events[0].contains(&format!("xid: {xid},")), "{events:?}");
        }
        assert_eq!(pair.controller.unanswered().count(), 0);
    }
}

#[test]
fn a_switch_answers_what_it_cannot_read() {
    for version in VERSIONS {
        let mut pair = Pair::new(
            &SessionSettings::default(),
            description(version, 2),
            Versions::only(version),
        );
        pair.run().unwrap();
        pair.down.append(&raw(version.wire(), 77, 0x0900_0001, &[])).unwrap();
        let events = pair.run().unwrap();
        assert!(events[0].starts_with("switch: Malformed"), "{events:?}");
        assert!(events[1].starts_with("Error { xid: 150994945"), "{events:?}");
        assert!(events[1].contains("RequestBadType"), "{events:?}");
    }
}

#[test]
fn a_switch_that_does_not_describe_itself_is_welcome() {
    for version in VERSIONS {
        let Half { mut end, xids } = asked(version);
        assert!(
            matches!(end.give(&refuse(version, xids[0])), Ok(SessionEvent::Nothing)),
            "SET_CONFIG"
        );
        if version == Version::V1_3 {
            assert!(matches!(end.give(&refuse(version, xids[2])), Ok(SessionEvent::Nothing)));
        }
        assert!(matches!(end.give(&refuse(version, xids[1])), Ok(SessionEvent::Ready)));
        let switch = end.controller.take_switch().unwrap();
        let ports = if version == Version::V1_0 { 2 } else { 0 };
        assert_eq!((&*switch.software, switch.ports.len()), ("", ports));
        assert_eq!(end.controller.unanswered().count(), 0);
    }
}

#[test]
fn a_switch_that_does_not_tell_its_features_is_not() {
    for version in VERSIONS {
        for refused in [true, false] {
            let mut end = Alone::new(&SessionSettings::default());
            end.give(&raw(version.wire(), 0, 1, &[])).unwrap();
            let xid = crate::common::last_xid(&end.out);
            let answer =
                if refused { refuse(version, xid) } else { raw(version.wire(), 6, xid, &[0; 9]) };
            let close = end.give(&answer).unwrap_err();
            match refused {
                true => {
                    assert_eq!(close, CloseReason::FeaturesRefused(ErrorCode::RequestBadMultipart));
                }
                false => assert!(matches!(close, CloseReason::BadReply { .. }), "{close:?}"),
            }
        }
    }
}

#[test]
fn port_changes_during_the_handshake_are_in_the_switch() {
    for version in VERSIONS {
        let Half { mut end, xids } = asked(version);
        for (reason, desc) in [
            (PortReason::Modify, down(2)),
            (PortReason::Add, port(7)),
            (PortReason::Add, port(8)),
            (PortReason::Delete, port(8)),
            (PortReason::Delete, port(1)),
        ] {
            let message = bytes(version, 0, &status(reason, desc));
            assert!(matches!(end.give(&message), Ok(SessionEvent::PortStatus(_))));
        }
        let message = bytes(version, 0, &packet_in(b"early"));
        assert!(matches!(end.give(&message), Ok(SessionEvent::PacketIn { .. })));
        if version == Version::V1_3 {
            let body = bellrock_openflow::ReplyBody::PortDesc;
            let ports = [port(1), port(2)];
            let reply = body(bellrock_openflow::List::of(&ports));
            let reply = bellrock_openflow::MultipartReply::of(reply);
            end.give(&bytes(version, xids[2], &FromSwitch::MultipartReply(reply))).unwrap();
        }
        assert!(matches!(end.give(&refuse(version, xids[1])), Ok(SessionEvent::Ready)));
        let switch = end.controller.take_switch().unwrap();
        assert_eq!(switch.ports, [down(2), port(7)]);
        assert!(switch.port(Port(2)).is_some_and(|port| !port.is_up()));
        let message = bytes(version, 0, &status(PortReason::Modify, port(2)));
        assert!(matches!(end.give(&message), Ok(SessionEvent::PortStatus(_))));
    }
}

#[test]
fn a_full_out_in_the_handshake_loses_nothing() {
    for version in VERSIONS {
        let mut pair = Pair::new(
            &SessionSettings::default(),
            description(version, 3),
            Versions::only(version),
        );
        // A buffer that has only a few bytes left each time a message comes.
        let (mut stalls, mut sent) = (0, pair.down.as_slice().to_vec());
        while !pair.controller.is_ready() {
            let mut bytes = sent.as_slice();
            while let Some((used, _)) = pair.switch.next(bytes, &mut pair.up).unwrap() {
                bytes = &bytes[used..];
            }
            sent.clear();
            let mut bytes = pair.up.as_slice();
            for room in (0..100).chain([4096]).cycle() {
                let mut out = Out::with_capacity(1 + room);
                out.append(&[0]).unwrap();
                let next = pair.controller.next(bytes, ms(0), &mut out).unwrap();
                let Some((used, event)) = next else { break };
                bytes = &bytes[used..];
                stalls += usize::from(matches!(event, SessionEvent::OutFull));
                sent.extend_from_slice(&out.as_slice()[1..]);
            }
            pair.up.clear();
        }
        assert!(stalls > 20, "{stalls}");
        assert_eq!(pair.controller.take_switch(), Some(description(version, 3)));
    }
}

/// All messages of a switch, concatenated: handshake, then `more`.
fn recorded(version: Version, more: &[FromSwitch<'_>]) -> Vec<u8> {
    let mut pair =
        Pair::new(&SessionSettings::default(), description(version, 4), Versions::only(version));
    let mut stream = Vec::new();
    let mut controller_says = std::mem::replace(&mut pair.down, Out::with_capacity(1 << 16));
    loop {
        let mut bytes = controller_says.as_slice();
        while let Some((used, _)) = pair.switch.next(bytes, &mut pair.up).unwrap() {
            bytes = &bytes[used..];
        }
        stream.extend_from_slice(pair.up.as_slice());
        let mut bytes = pair.up.as_slice();
        let mut answers = Out::with_capacity(1 << 16);
        while let Some((used, _)) = pair.controller.next(bytes, ms(0), &mut answers).unwrap() {
            bytes = &bytes[used..];
        }
        pair.up.clear();
        controller_says = answers;
        if controller_says.is_empty() {
            break;
        }
    }
    for message in more {
        stream.extend_from_slice(&bytes(version, 0x0500_0001, message));
    }
    stream
}

fn life(version: Version) -> Vec<u8> {
    let any = Match::any();
    let removed = FlowRemoved {
        cookie: 1,
        priority: 2,
        reason: FlowRemovedReason::IdleTimeout,
        table: 0,
        duration_sec: 3,
        duration_nsec: 4,
        idle_timeout: 5,
        hard_timeout: 0,
        packet_count: 6,
        byte_count: 7,
        matching: MatchView::from(&any),
    };
    recorded(
        version,
        &[
            packet_in(&[1; 60]),
            packet_in(&[2; 1500]),
            FromSwitch::EchoRequest(Bytes(b"alive?")),
            status(PortReason::Modify, down(1)),
            packet_in(&[]),
            FromSwitch::FlowRemoved(removed),
            FromSwitch::BarrierReply,
            packet_in(&[3; 700]),
        ],
    )
}

/// Feeds a stream in chunks, as reads would return it. Returns the events as text, and the output.
fn feed(stream: &[u8], chunks: &[usize]) -> (Vec<String>, Vec<u8>) {
    let mut down = Out::with_capacity(OUT_BYTES);
    let mut controller =
        ControllerSession::new(&SessionSettings::default(), ms(0), &mut down).unwrap();
    let (mut events, mut from, mut to) = (Vec::new(), 0, 0);
    for chunk in chunks.iter().chain(std::iter::repeat(&1500)) {
        to = (to + chunk).min(stream.len());
        loop {
            match controller.next(&stream[from..to], ms(0), &mut down) {
                Ok(Some((used, event))) => {
                    from += used;
                    events.push(format!("{event:?}"));
                }
                Ok(None) => break,
                Err(close) => {
                    events.push(format!("{close:?}"));
                    return (events, down.as_slice().to_vec());
                }
            }
        }
        if to == stream.len() {
            break;
        }
    }
    (events, down.as_slice().to_vec())
}

#[test]
fn a_life_has_the_events_that_it_should() {
    for version in VERSIONS {
        let (events, sent) = feed(&life(version), &[usize::MAX / 2]);
        let names: Vec<&str> =
            events.iter().map(|event| event.split([' ', '(', '{']).next().unwrap()).collect();
        let handshake = if version == Version::V1_0 { 2 } else { 3 };
        let before = ["Nothing", "Identified", "Nothing"];
        assert_eq!(names[..handshake], before[..handshake]);
        let expected = [
            "Ready",
            // The reply to the barrier of the handshake.
            "Nothing",
            "PacketIn",
            "PacketIn",
            "Nothing",
            "PortStatus",
            "PacketIn",
            "FlowRemoved",
            "Nothing",
            "PacketIn",
        ];
        assert_eq!(names[handshake..], expected);
        let replies = to_switch(&sent, |_, _, body| format!("{body:?}"));
        assert_eq!(replies.last().unwrap(), "EchoReply(Bytes(616c6976653f))");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_chunks_give_the_same_events(
        version in prop::sample::select(VERSIONS.to_vec()),
        chunks in prop::collection::vec(1_usize..200, 0..100),
    ) {
        let stream = life(version);
        prop_assert_eq!(feed(&stream, &chunks), feed(&stream, &[stream.len()]));
        let bytewise = vec![1; stream.len()];
        prop_assert_eq!(feed(&stream, &bytewise), feed(&stream, &[stream.len()]));
    }

    #[test]
    fn bytes_that_were_changed_end_in_events_or_a_reason_to_close(
        version in prop::sample::select(VERSIONS.to_vec()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut stream = life(version);
        for (at, byte) in changes {
            *at.get_mut(&mut stream) = byte;
        }
        let (events, sent) = feed(&stream, &[]);
        // Each event has a message, and each answer can be decoded.
        prop_assert!(events.len() <= stream.len() / 8 + 1);
        let mut sent = sent.as_slice();
        while let Some(message) = frame(sent).unwrap() {
            let Message { .. } = ToSwitch::decode(message.bytes).unwrap();
            sent = &sent[message.bytes.len()..];
        }
        prop_assert!(sent.is_empty());
    }

    #[test]
    fn garbage_ends_in_events_or_a_reason_to_close(
        version in prop::sample::select(VERSIONS.to_vec()),
        after_handshake: bool,
        garbage in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let mut stream = if after_handshake { recorded(version, &[]) } else { Vec::new() };
        stream.extend_from_slice(&garbage);
        let (events, _) = feed(&stream, &[]);
        prop_assert!(events.len() <= stream.len() / 8 + 1);
    }
}
