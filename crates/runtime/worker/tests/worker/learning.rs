//! The learning switch over whole sessions: its messages to a switch with buffers, and to one
//! without.

use crate::lab::Lab;
use bellrock_api::openflow::{
    Bytes, FlowCommand, FromSwitch, Message, PacketInMessage, PacketInReason, ToSwitch,
};
use bellrock_api::{Action, ErrorCode, ErrorMessage, Instruction, MacAddr, Port, Version};
use bellrock_apps::{Learning, LearningSettings};
use bellrock_tables::Budget;

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;
const ONE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const TWO: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn lab(version: Version) -> (Lab, usize) {
    let learning = Learning::new(LearningSettings::default(), &Budget::new(1 << 20));
    let mut lab = Lab::with_app(learning);
    let s = lab.up(version, 7);
    (lab, s)
}

fn frame(destination: [u8; 6], source: [u8; 6]) -> Vec<u8> {
    let mut frame = [&destination[..], &source, &[0x88, 0xb5]].concat();
    frame.resize(60, 0xee);
    frame
}

/// Host one is known at port 1; host two, at port 2, sends to it.
fn known_destination(lab: &mut Lab, s: usize, buffer_id: Option<u32>) -> Vec<Vec<u8>> {
    lab.packet_in(s, 1, None, &frame([0xff; 6], ONE));
    lab.run();
    lab.switches[s].received.clear();
    lab.packet_in(s, 2, buffer_id, &frame(ONE, TWO));
    lab.run();
    std::mem::take(&mut lab.switches[s].received)
}

/// The port of a list's only output action.
fn output<'a>(mut actions: impl Iterator<Item = Action<'a>>) -> Port {
    match (actions.next(), actions.next()) {
        (Some(Action::Output { port, .. }), None) => port,
        other => panic!("{other:?}"),
    }
}

fn assert_flow(message: &[u8], buffer_id: Option<u32>) {
    let Message { body: ToSwitch::FlowMod(flow), .. } = ToSwitch::decode(message).unwrap() else {
        panic!("no flow_mod");
    };
    assert_eq!((flow.command, flow.buffer_id), (FlowCommand::Add, buffer_id));
    let matching = flow.matching.to_match();
    assert_eq!(matching.value(bellrock_api::Field::InPort), Some(2));
    let mac = |bytes| Some(u128::from(MacAddr(bytes).to_u64()));
    assert_eq!(matching.value(bellrock_api::Field::EthSrc), mac(TWO));
    assert_eq!(matching.value(bellrock_api::Field::EthDst), mac(ONE));
    let instructions: Vec<_> = flow.instructions.iter().collect();
    let [Instruction::ApplyActions(actions)] = instructions[..] else { panic!() };
    assert_eq!(output(actions.iter()), Port(1));
}

#[test]
fn a_buffered_packet_is_released_by_its_flow() {
    for version in VERSIONS {
        let (mut lab, s) = lab(version);
        let sent = known_destination(&mut lab, s, Some(42));
        assert_eq!(sent.len(), 1, "the flow_mod releases the packet: {version}");
        assert_flow(&sent[0], Some(42));
    }
}

#[test]
fn an_unbuffered_packet_is_sent_on_beside_its_flow() {
    for version in VERSIONS {
        let (mut lab, s) = lab(version);
        let sent = known_destination(&mut lab, s, None);
        assert_eq!(sent.len(), 2, "{version}");
        assert_flow(&sent[0], None);
        let Message { body: ToSwitch::PacketOut(packet), .. } = ToSwitch::decode(&sent[1]).unwrap()
        else {
            panic!("no packet_out");
        };
        assert_eq!((packet.buffer_id, packet.in_port), (None, Port(2)));
        assert_eq!(packet.data.0, frame(ONE, TWO));
        assert_eq!(output(packet.actions.iter()), Port(1));
    }
}

#[test]
fn a_truncated_packet_is_released_from_its_buffer_or_not_sent_at_all() {
    for version in VERSIONS {
        for (buffer_id, expected) in [(Some(9), 1), (None, 0)] {
            let (mut lab, s) = lab(version);
            let whole = frame([0xff; 6], TWO);
            let packet = PacketInMessage {
                buffer_id,
                total_len: 1500,
                reason: PacketInReason::NoMatch,
                table: 0,
                cookie: if version.packet_in_has_cookie() { 0 } else { PacketInMessage::NO_COOKIE },
                matching: bellrock_api::openflow::MatchView::port(Port(2)),
                data: Bytes(&whole),
            };
            lab.send(s, &FromSwitch::PacketIn(packet));
            lab.run();
            let sent = lab.switches[s].take();
            assert_eq!(sent.len(), expected, "{version} {buffer_id:?} {sent:?}");
        }
    }
}

#[test]
fn a_full_table_or_an_unknown_buffer_leads_to_packet_out_only() {
    for version in VERSIONS {
        for code in [ErrorCode::FlowModTableFull, ErrorCode::RequestBufferUnknown] {
            let (mut lab, s) = lab(version);
            let sent = known_destination(&mut lab, s, Some(42));
            let xid = ToSwitch::decode(&sent[0]).unwrap().xid;
            let error = ErrorMessage::Standard { code, data: Bytes(&sent[0][..64]) };
            let mut out = bellrock_api::openflow::Out::with_capacity(1024);
            FromSwitch::Error(error).encode(version, xid, &mut out).unwrap();
            lab.send_bytes(s, out.as_slice());
            lab.run();
            lab.switches[s].received.clear();
            lab.packet_in(s, 2, Some(43), &frame(ONE, TWO));
            lab.run();
            let sent = lab.switches[s].take();
            assert!(sent.iter().all(|text| text.starts_with("packet_out")), "{version} {sent:?}");
            assert_eq!(sent.len(), 1, "{version} {code:?}");
        }
    }
}
