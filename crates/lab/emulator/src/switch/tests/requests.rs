//! Requests that change the switch, and the errors for those that fail.

use bellrock_openflow::{
    Bytes, ConfigFlags, Experimenter, FlowFlags, HEADER_LEN, List, MacAddr, MessageKind, PacketOut,
    PortConfig, PortFeatures, PortMod, SwitchConfig, TableMod,
};
use proptest::prelude::*;

use super::*;
use crate::switch::port_desc;

fn out_of(port: u32, in_port: Port, data: &[u8], send: impl FnOnce(&ToSwitch<'_>)) {
    let actions = [Action::output(Port(port))];
    let (actions, data) = (List::of(&actions), Bytes(data));
    send(&ToSwitch::PacketOut(PacketOut { buffer_id: None, in_port, actions, data }));
}

#[test]
fn an_error_has_the_xid_and_the_first_bytes_of_the_request() {
    for version in BOTH {
        let (mut lab, peer) = Lab::with(version);
        let frame = packet(200);
        out_of(99, Port(1), &frame, |message| {
            let sent = bytes(version, 7, message);
            let said = lab.ask(peer, message);
            let FromSwitch::Error(ErrorMessage::Standard { code, data }) = said.only() else {
                panic!()
            };
            assert_eq!(code, ErrorCode::ActionBadOutPort);
            assert_eq!(said.errors()[0].0, 7);
            assert_eq!(&*data, &sent[..ErrorMessage::DATA_LEN]);
        });
        let experimenter = ToSwitch::Experimenter(Experimenter {
            experimenter: 0x2320,
            kind: (version == V1_3).then_some(10),
            data: Bytes(&[]),
        });
        let sent = bytes(version, 7, &experimenter);
        let said = lab.ask(peer, &experimenter);
        let FromSwitch::Error(ErrorMessage::Standard { code, data }) = said.only() else {
            panic!()
        };
        assert_eq!(code, ErrorCode::RequestBadExperimenter);
        assert_eq!(&*data, sent, "a short request whole");
    }
}

#[test]
fn a_barrier_is_answered_after_everything_before_it_and_before_everything_after() {
    for version in BOTH {
        let (mut lab, peer) = Lab::with(version);
        let any = Match::any();
        let told = FlowFlags::SEND_FLOW_REM;
        let bad = [Action::output(Port(99))];
        let requests = [
            (1, ToSwitch::FlowMod(FlowMod::add(&any).flags(told))),
            (2, ToSwitch::FlowMod(FlowMod::add(&any).actions(&bad))),
            (3, ToSwitch::FlowMod(FlowMod::delete(&any))),
            (4, ToSwitch::BarrierRequest),
            (5, ToSwitch::FlowMod(FlowMod::add(&any).actions(&bad))),
        ];
        let all: Vec<u8> =
            requests.iter().flat_map(|(xid, message)| bytes(version, *xid, message)).collect();
        lab.give(peer, &all).unwrap();
        let said = lab.take(peer);
        let told: Vec<_> = said.messages().map(|(xid, message)| (xid, message.kind())).collect();
        assert_eq!(
            told,
            [
                (2, MessageKind::Error),
                (0, MessageKind::FlowRemoved),
                (4, MessageKind::BarrierReply),
                (5, MessageKind::Error),
            ]
        );
    }
}

#[test]
fn a_packet_out_leaves_by_its_actions() {
    for version in BOTH {
        let (mut lab, peer) = Lab::with(version);
        out_of(3, Port(1), &packet(60), |message| lab.tell(peer, message));
        assert_eq!(lab.sent(), [3]);
        let own = if version == V1_0 { Port::ANY } else { Port::CONTROLLER };
        out_of(Port::FLOOD.0, own, &packet(60), |message| lab.tell(peer, message));
        assert_eq!(lab.sent(), [1, 2, 3, 4]);
    }
    let (mut lab, peer) = Lab::with(V1_3);
    out_of(3, Port(99), &packet(60), |message| {
        assert_eq!(lab.refused(peer, message), ErrorCode::RequestBadPort);
    });
    let unknown = ToSwitch::PacketOut(PacketOut {
        buffer_id: Some(5),
        in_port: Port(1),
        actions: List::empty(),
        data: Bytes(&[]),
    });
    assert_eq!(lab.refused(peer, &unknown), ErrorCode::RequestBufferUnknown);
}

#[test]
fn a_buffered_packet_leaves_with_the_flow_that_names_its_buffer() {
    for version in BOTH {
        let (mut lab, peer) = Lab::with(version);
        let any = Match::any();
        if version == V1_3 {
            let up = [Action::Output { port: Port::CONTROLLER, max_len: 64 }];
            lab.flow(peer, miss_to_controller(&any, &up));
        }
        lab.packet(1, &packet(500));
        let said = lab.take(peer);
        let FromSwitch::PacketIn(packet_in) = said.only() else { panic!() };
        let buffer_id = packet_in.buffer_id;
        assert!(buffer_id.is_some());
        let to_three = [Action::output(Port(3))];
        let flow = FlowMod::add(&any).actions(&to_three).buffer_id(buffer_id);
        lab.flow(peer, flow);
        assert_eq!(lab.sent(), [3]);
        // Only once; the flow is installed all the same.
        assert_eq!(lab.refused(peer, &ToSwitch::FlowMod(flow)), ErrorCode::RequestBufferEmpty);
        assert_eq!(lab.packet(2, &packet(60)), [3]);
    }
}

#[test]
fn a_full_table_says_so_in_both_versions() {
    for version in BOTH {
        let mut lab = Lab::of(SwitchSettings { table_capacity: 1, ..SwitchSettings::new(1, 2) });
        let peer = lab.join(version);
        let (one, two) = (Match::any().in_port(Port(1)), Match::any().in_port(Port(2)));
        lab.flow(peer, FlowMod::add(&one));
        let full = lab.refused(peer, &ToSwitch::FlowMod(FlowMod::add(&two)));
        assert_eq!(full, ErrorCode::FlowModTableFull);
    }
}

#[test]
fn a_request_of_1_3_is_told_which_match_or_instruction_is_wrong() {
    let (mut lab, peer) = Lab::with(V1_3);
    let any = Match::any();
    let goto_back = [bellrock_openflow::Instruction::GotoTable(0)];
    let vlan = Match::any().with(bellrock_openflow::Field::VlanVid, 3);
    for (flow, code) in [
        (FlowMod::add(&any).table(9), ErrorCode::FlowModBadTable),
        (FlowMod::add(&any).instructions(&goto_back), ErrorCode::InstructionBadTable),
        (FlowMod::add(&any).actions(&[Action::Group(1)]), ErrorCode::ActionBadOutGroup),
        (FlowMod::add(&vlan), ErrorCode::MatchBadValue),
    ] {
        assert_eq!(lab.refused(peer, &ToSwitch::FlowMod(flow)), code);
    }
}

#[test]
fn a_port_mod_needs_the_address_of_its_port() {
    for version in BOTH {
        let (mut lab, peer) = Lab::with(version);
        let desc = port_desc(1, 2);
        let request = PortMod {
            port: desc.port,
            address: desc.address,
            config: PortConfig::PORT_DOWN,
            mask: PortConfig::PORT_DOWN,
            advertise: PortFeatures::empty(),
        };
        let wrong = PortMod { address: MacAddr([9; 6]), ..request };
        assert_eq!(lab.refused(peer, &ToSwitch::PortMod(wrong)), ErrorCode::PortModBadAddress);
        let nowhere = PortMod { port: Port(9), ..request };
        assert_eq!(lab.refused(peer, &ToSwitch::PortMod(nowhere)), ErrorCode::PortModBadPort);
        let any = Match::any();
        lab.flow(peer, FlowMod::add(&any).actions(&[Action::output(Port(2))]));
        lab.tell(peer, &ToSwitch::PortMod(request));
        assert!(lab.packet(1, &packet(60)).is_empty());
    }
}

#[test]
fn a_table_mod_names_a_table_that_is_there() {
    let (mut lab, peer) = Lab::with(V1_3);
    let table_mod = |table, config| ToSwitch::TableMod(TableMod { table, config });
    lab.tell(peer, &table_mod(2, 3));
    lab.tell(peer, &table_mod(255, 0));
    assert_eq!(lab.refused(peer, &table_mod(3, 0)), ErrorCode::TableModBadTable);
    assert_eq!(lab.refused(peer, &table_mod(0, 4)), ErrorCode::TableModBadConfig);
}

#[test]
fn how_the_switch_is_set_up_is_the_same_for_all_controllers() {
    let (mut lab, first) = Lab::with(V1_3);
    let second = lab.join(V1_3);
    let config = SwitchConfig { flags: ConfigFlags::FRAG_DROP, miss_send_len: 99 };
    lab.tell(first, &ToSwitch::SetConfig(config));
    let third = lab.join(V1_3);
    for peer in [first, second, third] {
        let said = lab.ask(peer, &ToSwitch::GetConfigRequest);
        assert_eq!(said.only(), FromSwitch::GetConfigReply(config));
    }
    let reassemble = SwitchConfig { flags: ConfigFlags::FRAG_REASM, miss_send_len: 1 };
    let refused = lab.refused(first, &ToSwitch::SetConfig(reassemble));
    assert_eq!(refused, ErrorCode::SwitchConfigBadFlags);
    let said = lab.ask(first, &ToSwitch::GetConfigRequest);
    assert_eq!(said.only(), FromSwitch::GetConfigReply(config));
}

#[test]
fn in_1_0_what_the_switch_cannot_be_set_up_to_shows_in_the_next_reply() {
    let (mut lab, peer) = Lab::with(V1_0);
    let asked = SwitchConfig { flags: ConfigFlags::FRAG_REASM, miss_send_len: 50 };
    lab.tell(peer, &ToSwitch::SetConfig(asked));
    let said = lab.ask(peer, &ToSwitch::GetConfigRequest);
    let effective = SwitchConfig { flags: ConfigFlags::empty(), miss_send_len: 50 };
    assert_eq!(said.only(), FromSwitch::GetConfigReply(effective));
}

/// A message that the codec did not write.
fn raw(version: Version, kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(HEADER_LEN + body.len()).unwrap().to_be_bytes();
    [&[version.wire(), kind][..], &length, &[0, 0, 0, 7], body].concat()
}

#[test]
fn an_unknown_message_gets_an_error_and_the_connection_goes_on() {
    for version in BOTH {
        let (mut lab, peer) = Lab::with(version);
        let other = if version == V1_0 { V1_3 } else { V1_0 };
        // A packet_in is not for switches, and the type 200 does not exist.
        for (message, code) in [
            (raw(version, 200, &[]), ErrorCode::RequestBadType),
            (raw(version, 10, &[0; 24]), ErrorCode::RequestBadType),
            (raw(version, 14, &[0; 3]), ErrorCode::RequestBadLength),
            (raw(other, 5, &[]), ErrorCode::RequestBadVersion),
        ] {
            lab.give(peer, &message).unwrap();
            assert_eq!(lab.take(peer).errors(), [(7, code)]);
        }
        let stats = if version == V1_0 { 16 } else { 18 };
        let unknown = [0, 99, 0, 0, 0, 0, 0, 0];
        lab.give(peer, &raw(version, stats, &unknown[..if version == V1_0 { 4 } else { 8 }]))
            .unwrap();
        assert_eq!(lab.take(peer).errors(), [(7, ErrorCode::RequestBadMultipart)]);
        assert_eq!(lab.ask(peer, &ToSwitch::BarrierRequest).kinds(), ["BarrierReply"]);
    }
}

#[test]
fn messages_of_1_3_are_unknown_in_1_0() {
    let (mut lab, peer) = Lab::with(V1_0);
    // 1.3's role request; its number does not exist in 1.0.
    lab.give(peer, &raw(V1_0, 24, &[0; 16])).unwrap();
    assert_eq!(lab.take(peer).errors(), [(7, ErrorCode::RequestBadType)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn in_which_portions_bytes_come_makes_no_difference(
        cuts in prop::collection::vec(1..50_usize, 1..200),
    ) {
        let any = Match::any();
        let actions = [Action::output(Port(2))];
        let requests = [
            ToSwitch::FlowMod(FlowMod::add(&any).actions(&actions).flags(FlowFlags::SEND_FLOW_REM)),
            ToSwitch::MultipartRequest(multipart(RequestBody::Table)),
            ToSwitch::FlowMod(FlowMod::add(&any).table(77)),
            ToSwitch::EchoRequest(Bytes(&[9; 100])),
            ToSwitch::FlowMod(FlowMod::delete(&any)),
            ToSwitch::BarrierRequest,
        ];
        let all: Vec<u8> = requests.iter().flat_map(|request| bytes(V1_3, 7, request)).collect();
        let (mut lab, peer) = Lab::with(V1_3);
        lab.give(peer, &all).unwrap();
        let whole = lab.take(peer).0;
        let (mut lab, peer) = Lab::with(V1_3);
        let (mut left, mut cuts) = (&all[..], cuts.iter().cycle());
        while !left.is_empty() {
            let (part, rest) = left.split_at(left.len().min(*cuts.next().unwrap()));
            lab.give(peer, part).unwrap();
            left = rest;
        }
        prop_assert_eq!(lab.take(peer).0, whole);
    }

    #[test]
    fn whatever_comes_the_switch_stands(
        version in prop::sample::select(&BOTH[..]),
        messages in prop::collection::vec(
            (0..32_u8, prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..120)), 1..20,
        ),
    ) {
        let (mut lab, peer) = Lab::with(version);
        for (kind, body) in messages {
            // Error and hello may end a connection; no other message does.
            if kind != 1 && kind != 0 {
                lab.give(peer, &raw(version, kind, &body)).unwrap();
            }
            lab.packet(1, &body);
        }
        lab.take(peer);
        let said = lab.ask(peer, &ToSwitch::BarrierRequest);
        prop_assert_eq!(said.kinds(), ["BarrierReply"]);
    }
}
