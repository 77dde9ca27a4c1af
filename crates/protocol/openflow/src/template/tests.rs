//! Filled templates, byte by byte, and rejected values.

use std::net::Ipv4Addr;

use super::*;
use crate::{Bytes, FromSwitch, MacAddr, MatchView, PacketInMessage, PacketInReason};

const BOTH: [Version; Version::ALL.len()] = Version::ALL;
const OWNER: u8 = 3;
const TO_ONE: &[Action<'_>] = &[Action::output(Port(1))];

/// A buffer full of old bytes, which shows whether each relevant byte is written.
fn dirty() -> Out {
    let mut out = Out::with_capacity(1024);
    out.append(&[0xa5; 1024]).unwrap();
    out.clear();
    out
}

fn written(version: Version, flow: FlowMod<'_>) -> Vec<u8> {
    let mut out = dirty();
    ToSwitch::FlowMod(flow).encode(version, xid::xid(OWNER, 9), &mut out).unwrap();
    out.as_slice().to_vec()
}

/// A match with every field that has a place in both versions, and one field with a mask.
fn tcp(port: u32, n: u8) -> Match {
    Match::any()
        .in_port(Port(port))
        .eth_src(MacAddr([2, 0, 0, 0, 1, n]))
        .eth_dst(MacAddr([2, 0, 0, 0, 2, n]))
        .vlan_id(n.into())
        .vlan_pcp(n % 8)
        .eth_type(0x0800)
        .ip_dscp(n % 64)
        .ip_proto(6)
        .ipv4_src(Ipv4Addr::new(10, 0, 1, n))
        .ipv4_dst_prefix(Ipv4Addr::new(10, 0, 2, 0), 24)
        .tcp_src(1000 + u16::from(n))
        .tcp_dst(2000 + u16::from(n))
}

#[test]
fn a_filled_template_is_what_the_encoder_writes() {
    for version in BOTH {
        let (one, two) = (tcp(1, 1), tcp(0xff00, 77));
        let flow = |matching| FlowMod::add(matching).cookie(5).idle_timeout(60).actions(TO_ONE);
        let template = FlowModTemplate::new(version, OWNER, &flow(&one)).unwrap();
        let mut out = dirty();
        let mut filling = template.fill(9, &mut out).unwrap();
        filling.in_port(Port(0xff00)).unwrap();
        filling.set(Field::EthSrc, &[2, 0, 0, 0, 1, 77]);
        filling.set(Field::EthDst, &[2, 0, 0, 0, 2, 77]);
        filling.set(Field::VlanVid, &[0x10, 77]);
        filling.set(Field::VlanPcp, &[77 % 8]);
        filling.set(Field::IpDscp, &[77 % 64]);
        filling.set(Field::Ipv4Src, &[10, 0, 1, 77]);
        filling.set_ports(&(1077 << 16 | 2077_u32).to_be_bytes());
        filling.buffer_id(4);
        filling.output(Port(6)).unwrap();
        filling.finish().unwrap();
        let to_six = [Action::output(Port(6))];
        let expected = flow(&two).buffer_id(Some(4)).actions(&to_six);
        assert_eq!(out.as_slice(), written(version, expected), "{version}");
    }
}

#[test]
fn unfilled_fields_stay_and_a_dropped_filling_writes_nothing() {
    for version in BOTH {
        let matching = Match::any().in_port(Port(1)).untagged();
        let flow = FlowMod::add(&matching).buffer_id(Some(8)).actions(TO_ONE);
        let template = FlowModTemplate::new(version, OWNER, &flow).unwrap();
        let mut out = dirty();
        template.fill(9, &mut out).unwrap().finish().unwrap();
        assert_eq!(out.as_slice(), written(version, flow), "{version}");
        drop(template.fill(9, &mut out).unwrap());
        assert_eq!(out.as_slice(), written(version, flow), "{version}");
        let mut filling = template.fill(9, &mut out).unwrap();
        filling.set(Field::VlanVid, &[0, 0]);
        filling.finish().unwrap();
        assert_eq!(out.len(), 2 * written(version, flow).len());
    }
}

#[test]
fn values_without_a_place_are_errors_and_nothing_is_written() {
    for version in BOTH {
        let matching = Match::any().in_port(Port(1));
        let output = FlowModTemplate::new(version, OWNER, &FlowMod::add(&matching).actions(TO_ONE));
        let drop = FlowModTemplate::new(version, OWNER, &FlowMod::add(&matching)).unwrap();
        let output = output.unwrap();
        let mut out = dirty();
        type Fill = dyn Fn(&mut Filling<'_>) -> Result<(), EncodeError>;
        let mut refused = |template: &FlowModTemplate, fill: &Fill| {
            let mut filling = template.fill(9, &mut out).unwrap();
            let refused = fill(&mut filling).and_then(|()| filling.finish());
            assert!(matches!(refused, Err(EncodeError::Unsupported { .. })), "{refused:?}");
            assert!(out.is_empty());
        };
        refused(&output, &|flow| {
            flow.set(Field::EthType, &[8, 0]);
            Ok(())
        });
        refused(&output, &|flow| {
            flow.set_ports(&[0, 1, 0, 2]);
            Ok(())
        });
        refused(&output, &|flow| flow.output(Port::CONTROLLER));
        refused(&drop, &|flow| flow.output(Port(2)));
        if version.family() == Family::Fixed {
            refused(&output, &|flow| flow.in_port(Port(0x1_0000)));
        }
    }
}

#[test]
fn addresses_and_ports_go_in_by_pairs() {
    for version in BOTH {
        let flow = |src: u8, dst: u8| {
            let addresses = Match::any()
                .eth_type(0x0800)
                .ip_proto(17)
                .ipv4_src(Ipv4Addr::new(10, 0, 0, src))
                .ipv4_dst(Ipv4Addr::new(10, 0, 0, dst));
            addresses.udp_src(1000 + u16::from(src)).udp_dst(1000 + u16::from(dst))
        };
        let template = FlowModTemplate::new(version, OWNER, &FlowMod::add(&flow(1, 1))).unwrap();
        let mut out = dirty();
        let mut filling = template.fill(9, &mut out).unwrap();
        filling.set_ipv4(&[10, 0, 0, 5, 10, 0, 0, 6]);
        filling.set_ports(&(1005 << 16 | 1006_u32).to_be_bytes());
        filling.finish().unwrap();
        assert_eq!(out.as_slice(), written(version, FlowMod::add(&flow(5, 6))), "{version}");
    }
}

#[test]
fn the_flow_of_a_packet_has_its_port_and_its_buffer() {
    for version in BOTH {
        for (port, buffer_id) in [(Port(3), Some(7)), (Port::LOCAL, None)] {
            let packet = PacketInMessage {
                buffer_id,
                total_len: 0,
                reason: PacketInReason::NoMatch,
                table: 0,
                cookie: if version.packet_in_has_cookie() { 0 } else { PacketInMessage::NO_COOKIE },
                matching: MatchView::port(port),
                data: Bytes(&[]),
            };
            let mut message = dirty();
            FromSwitch::PacketIn(packet).encode(version, 0, &mut message).unwrap();
            let packet = PacketInView::of_any_form(message.as_slice()).unwrap();
            let any = Match::any().in_port(Port(1));
            let flow = FlowMod::add(&any).actions(TO_ONE);
            let template = FlowModTemplate::new(version, OWNER, &flow).unwrap();
            let mut out = dirty();
            template.fill_for(&packet, 9, &mut out).unwrap().finish().unwrap();
            let matching = Match::any().in_port(port);
            let expected = FlowMod::add(&matching).buffer_id(buffer_id).actions(TO_ONE);
            assert_eq!(out.as_slice(), written(version, expected), "{version}");

            let other = BOTH.into_iter().find(|other| *other != version).unwrap();
            let other = FlowModTemplate::new(other, OWNER, &flow).unwrap();
            let refused = other.fill_for(&packet, 9, &mut out).unwrap().finish();
            assert!(matches!(refused, Err(EncodeError::Unsupported { .. })), "{refused:?}");
            let no_port =
                FlowModTemplate::new(version, OWNER, &FlowMod::add(&Match::any())).unwrap();
            let refused = no_port.fill_for(&packet, 9, &mut out).unwrap().finish();
            assert!(matches!(refused, Err(EncodeError::Unsupported { .. })), "{refused:?}");
        }
    }
}

#[test]
fn an_ethernet_header_gives_its_addresses_and_nothing_else() {
    let link = |n| {
        let (src, dst) = (MacAddr([2, 0, 0, 0, 1, n]), MacAddr([2, 0, 0, 0, 2, n]));
        Match::any().eth_src(src).eth_dst(dst).untagged().eth_type(0x0800)
    };
    for version in BOTH {
        let (one, two) = (link(1), link(77));
        let template = FlowModTemplate::new(version, OWNER, &FlowMod::add(&one)).unwrap();
        let mut out = dirty();
        let mut filling = template.fill(9, &mut out).unwrap();
        filling.set_eth(&[2, 0, 0, 0, 2, 77, 2, 0, 0, 0, 1, 77, 0x86, 0xdd]);
        filling.finish().unwrap();
        assert_eq!(out.as_slice(), written(version, FlowMod::add(&two)), "{version}");
        let none = FlowModTemplate::new(version, OWNER, &FlowMod::add(&Match::any())).unwrap();
        let mut filling = none.fill(9, &mut out).unwrap();
        filling.set_eth(&[0; 14]);
        assert!(matches!(filling.finish(), Err(EncodeError::Unsupported { .. })));
    }
}

#[test]
fn a_full_buffer_and_a_template_that_is_too_long_are_errors() {
    let any = Match::any();
    for version in BOTH {
        let template = FlowModTemplate::new(version, OWNER, &FlowMod::add(&any)).unwrap();
        let mut out = Out::with_capacity(MAX_TEMPLATE_LEN);
        assert_eq!(template.fill(9, &mut out).err(), Some(EncodeError::Full));
        let many = [Action::output(Port(1)); 40];
        assert_eq!(
            FlowModTemplate::new(version, OWNER, &FlowMod::add(&any).actions(&many)).err(),
            Some(EncodeError::TooLong { what: "flow template" })
        );
    }
}

#[test]
fn a_flow_of_any_length_is_what_the_encoder_writes() {
    let any = Match::any().in_port(Port(1));
    let flow = |count: usize, last: u32| -> Vec<Action<'static>> {
        (1..count).map(|_| Action::output(Port(7))).chain([Action::output(Port(last))]).collect()
    };
    for version in BOTH {
        for count in 0..12 {
            let (one, two) = (flow(count, 1), flow(count, 9));
            let template = |actions| FlowMod::add(&any).actions(actions);
            let (one, two) = match count {
                0 => (template(&[]), template(&[])),
                _ => (template(&one), template(&two)),
            };
            let template = FlowModTemplate::new(version, OWNER, &one).unwrap();
            let mut out = dirty();
            let mut filling = template.fill(9, &mut out).unwrap();
            if count > 0 {
                filling.output(Port(9)).unwrap();
            }
            filling.finish().unwrap();
            assert_eq!(out.as_slice(), written(version, two), "{version} {count}");
            template.fill(9, &mut out).unwrap().finish().unwrap();
            let both = [written(version, two), written(version, one)].concat();
            assert_eq!(out.as_slice(), both, "{version} {count}, not filled in");
        }
    }
}

#[test]
fn a_field_of_a_vendor_keeps_its_value_in_a_template() {
    let matching = tcp(1, 1).with(Field::Reg0, 7);
    let flow = FlowMod::add(&matching).actions(TO_ONE);
    let template = FlowModTemplate::new(Version::V1_3, OWNER, &flow).unwrap();
    let mut out = dirty();
    let mut filling = template.fill(9, &mut out).unwrap();
    filling.in_port(Port(2)).unwrap();
    filling.finish().unwrap();
    let expected = matching.clone().in_port(Port(2));
    let flow = FlowMod::add(&expected).actions(TO_ONE);
    assert_eq!(out.as_slice(), written(Version::V1_3, flow));
    // It has no place there.
    let mut filling = template.fill(9, &mut out).unwrap();
    filling.set(Field::Reg0, &[0, 0, 0, 8]);
    assert!(matches!(filling.finish(), Err(EncodeError::Unsupported { .. })));
}
