//! A switch with cached paths behaves like one that always searches its tables.

use bellrock_openflow::Field;
use proptest::prelude::*;

use super::*;
use crate::datapath::paths::PathCache;

/// The actions of a flow, by number; some of them show fields that were hidden before.
fn actions(number: u8) -> Vec<Action<'static>> {
    match number {
        0 => vec![out(2)],
        1 => vec![Action::SetField(Field::EthDst, 3)],
        2 => vec![Action::PopVlan],
        3 => vec![Action::PushVlan(0x8100), Action::SetField(Field::VlanVid, 0x1007)],
        4 => vec![Action::PopMpls(0x0800)],
        5 => vec![Action::DecNwTtl, out(3)],
        6 => vec![Action::SetField(Field::UdpDst, 7)],
        _ => vec![Action::SetField(Field::IpProto, 6)],
    }
}

/// A match that fits the actions of the same number; for some numbers, all packets with `any`.
fn matching(number: u8, any: bool) -> Match {
    let ip = Match::any().eth_type(0x0800);
    match number {
        2 => Match::any().vlan_id(5),
        4 => Match::any().eth_type(0x8847),
        5 | 7 => ip,
        6 => ip.ip_proto(17),
        _ if any => Match::any(),
        _ => ip.ip_proto(17).udp_dst(7),
    }
}

fn frames() -> Vec<EthernetFrame> {
    let udp = |ttl, port| ip().ttl(ttl).udp(1, port, b"data");
    let label = [&[0, 0, 1, 9][..], udp(9, 7).bytes()].concat();
    vec![
        eth().ip(&udp(9, 7)),
        eth().ip(&udp(1, 7)),
        eth().ip(&udp(9, 8)),
        eth().vlan(5, 0).ip(&udp(9, 7)),
        eth().vlan(5, 0).vlan(6, 1).ip(&udp(9, 7)),
        eth().vlan(5, 0).vlan(5, 1).ip(&udp(9, 7)),
        eth().payload(0x8847, &label),
        eth().payload(0x8847, &[0, 0, 1, 9, 0x45]),
        eth().ip(&ip().fragment(1, true).payload(17, &[0; 16])),
    ]
}

fn program(lab: &mut Lab, table: u8, number: u8, any: bool, version: Version) {
    let actions = actions(number);
    let apply = Instruction::ApplyActions(List::of(&actions));
    let goto = Instruction::GotoTable(table + 1);
    let instructions = [apply, goto];
    let instructions = if table < 3 { &instructions[..] } else { &instructions[..1] };
    let matching = matching(number, any);
    let flow = FlowMod::add(&matching).table(table).priority(number.into());
    let flow = flow.instructions(instructions);
    let Lab { datapath, effects, now } = lab;
    datapath.flow_mod(version, &flow, *now, effects).unwrap();
}

proptest! {
    #[test]
    fn remembering_changes_nothing(
        flows in proptest::collection::vec((0_u8..4, 0_u8..8, any::<bool>()), 1..14),
        packets in proptest::collection::vec((0_usize..9, 1_u32..3, prop::option::of(0_u8..8)), 1..40),
        rules in proptest::sample::select(vec![V10, V13]),
    ) {
        let (mut one, mut other) = (Lab::new(rules), Lab::new(rules));
        other.datapath.paths = PathCache::new(0);
        for (table, number, any) in flows {
            program(&mut one, table, number, any, V13);
            program(&mut other, table, number, any, V13);
        }
        for (frame, port, change) in packets {
            let frame = &frames()[frame];
            one.receive(port, frame);
            other.receive(port, frame);
            prop_assert_eq!(one.frames(), other.frames());
            prop_assert_eq!(&one.effects.notices, &other.effects.notices);
            if let Some(number) = change {
                program(&mut one, number % 4, number, true, V13);
                program(&mut other, number % 4, number, true, V13);
            }
        }
        let counted = |lab: &Lab| {
            let tables = || lab.datapath.tables().iter();
            let flows = tables().flat_map(|(_, table)| table.flows());
            let flows: Vec<_> = flows.map(|(_, flow)| (flow.packet_count, flow.used)).collect();
            let tables: Vec<_> = tables().map(|(_, t)| (t.lookup_count, t.matched_count)).collect();
            (flows, tables)
        };
        prop_assert_eq!(counted(&one), counted(&other));
    }
}
