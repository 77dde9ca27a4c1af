//! Parsing of frames.

use bellrock_openflow::Field::*;
use bellrock_openflow::{Field, Version};

use super::*;

#[track_caller]
fn has(packet: &Packet, fields: &[(Field, u128)]) {
    for (field, value) in fields {
        assert_eq!(packet.key().value(*field), Some(*value), "{field}");
    }
}

#[track_caller]
fn lacks(packet: &Packet, fields: &[Field]) {
    for field in fields {
        assert_eq!(packet.key().value(*field), None, "{field}");
    }
}

#[test]
fn every_packet_has_its_pipeline_fields_and_its_ethernet_header() {
    let packet = read(eth().payload(0x1234, b"whatever"));
    has(&packet, &[(InPort, 7), (InPhyPort, 7), (Metadata, 0), (TunnelId, 0)]);
    has(&packet, &[(EthSrc, 0x0a), (EthDst, 0x0b), (EthType, 0x1234), (VlanVid, 0)]);
    lacks(&packet, &[VlanPcp, IpProto, ArpOp, MplsLabel, PbbIsid]);
}

#[test]
fn the_outermost_tag_tells_id_and_priority_and_the_type_stands_behind_all_tags() {
    let frame = eth().tag(0x88a8, 0x6005).vlan(9, 1).ip(&ip4().udp(1, 2, b""));
    let packet = read(frame.clone());
    has(&packet, &[(VlanVid, 0x1005), (VlanPcp, 3), (EthType, 0x0800), (UdpDst, 2)]);
    // 1.0 parses only one tag.
    let packet = Packet::new(frame, Port(7), Version::V1_0);
    has(&packet, &[(VlanVid, 0x1005), (EthType, 0x8100)]);
    lacks(&packet, &[IpProto]);
}

#[test]
fn a_priority_tag_is_a_tag_with_the_id_zero() {
    has(&read(eth().vlan(0, 5).payload(0x1234, b"")), &[(VlanVid, 0x1000), (VlanPcp, 5)]);
}

#[test]
fn a_frame_of_802_3_has_the_type_of_its_snap_header_or_none() {
    let snap = [&[0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00], ip4().udp(1, 2, b"").bytes()].concat();
    has(&read(eth().payload(snap.len() as u16, &snap)), &[(EthType, 0x0800), (UdpSrc, 1)]);
    has(&read(eth().payload(3, &[0x42, 0x42, 3])), &[(EthType, 0x05ff)]);
}

#[test]
fn ipv4_and_what_is_above_it() {
    let tcp = read(eth().ip(&ip4().dscp(46, 1).tcp((80, 443), 1, 2, 2, b"data")));
    has(&tcp, &[(Ipv4Src, 0x0a00_0001), (Ipv4Dst, 0x0a00_0002), (IpProto, 6)]);
    has(&tcp, &[(IpDscp, 46), (IpEcn, 1), (TcpSrc, 80), (TcpDst, 443)]);
    lacks(&tcp, &[UdpSrc, SctpSrc, Icmpv4Type, Ipv6Src]);
    has(&read(eth().ip(&ip4().sctp(7, 8, b"chunk..."))), &[(SctpSrc, 7), (SctpDst, 8)]);
    has(&read(eth().ip(&ip4().ping(1, 1, b""))), &[(Icmpv4Type, 8), (Icmpv4Code, 0)]);
    lacks(&read(eth().ip(&ip4().ping(1, 1, b""))), &[Icmpv6Type, TcpSrc]);
}

#[test]
fn options_of_ipv4_are_skipped() {
    let mut bytes = ip4().udp(5, 6, b"").bytes().to_vec();
    bytes.splice(20..20, [1, 1, 1, 0]);
    bytes[0] = 0x46;
    bytes[3] += 4;
    has(&read(eth().payload(0x0800, &bytes)), &[(UdpSrc, 5), (UdpDst, 6)]);
}

#[test]
fn a_later_fragment_has_no_ports_and_the_first_has_them() {
    let ports = [UdpSrc, UdpDst];
    let datagram = ip4().udp(5, 6, b"0123456789abcdef").bytes()[20..].to_vec();
    let first = read(eth().ip(&ip4().fragment(0, true).payload(17, &datagram)));
    has(&first, &[(IpProto, 17), (UdpSrc, 5), (UdpDst, 6)]);
    let later = read(eth().ip(&ip4().fragment(3, false).payload(17, &datagram)));
    has(&later, &[(IpProto, 17), (Ipv4Dst, 0x0a00_0002)]);
    lacks(&later, &ports);
    assert!(first.is_fragment() && later.is_fragment());

    let later = read(eth().ip(&ip6().payload(44, &ipv6_fragment(17, 3, false, &datagram))));
    has(&later, &[(IpProto, 17), (Ipv6Exthdr, 1 << 4)]);
    lacks(&later, &ports);
    let first = read(eth().ip(&ip6().payload(44, &ipv6_fragment(17, 0, true, &datagram))));
    has(&first, &[(UdpSrc, 5), (UdpDst, 6)]);
    // An atomic fragment is a whole packet (RFC 6946).
    let whole = read(eth().ip(&ip6().payload(44, &ipv6_fragment(17, 0, false, &datagram))));
    assert!(!whole.is_fragment() && first.is_fragment());
}

#[test]
fn in_1_0_every_fragment_has_the_ports_zero() {
    for (offset, more) in [(0, true), (3, false)] {
        let packet =
            ip4().fragment(offset, more).payload(6, ip4().tcp((1, 2), 0, 0, 0, b"").bytes());
        let packet = Packet::new(eth().ip(&packet), Port(1), Version::V1_0);
        has(&packet, &[(TcpSrc, 0), (TcpDst, 0)]);
    }
}

#[test]
fn a_header_that_is_cut_short_or_lies_has_no_fields() {
    let whole = eth().ip(&ip4().udp(1, 2, b"data"));
    let cut = |len: usize| read(EthernetFrame::from(&whole[..len]));
    lacks(&cut(33), &[Ipv4Src, IpProto]);
    // The packet's length is longer than the frame.
    lacks(&cut(41), &[Ipv4Src, UdpSrc]);
    lacks(&cut(13), &[EthSrc, EthType]);
    let mut short = ip4().payload(17, &[0, 1, 0, 2]).bytes().to_vec();
    // Padding of the frame does not belong to the packet.
    short.extend([0; 20]);
    let packet = read(eth().payload(0x0800, &short));
    has(&packet, &[(IpProto, 17)]);
    lacks(&packet, &[UdpSrc]);
    let mut bad = whole.to_vec();
    bad[14] = 0x44;
    lacks(&read(EthernetFrame::from(bad)), &[Ipv4Src]);
    // A truncated tag is an Ethernet type.
    has(&read(eth().payload(0x8100, &[1])), &[(EthType, 0x8100), (VlanVid, 0)]);
}

#[test]
fn arp_has_its_addresses_and_1_0_the_low_bits_of_its_operation() {
    let (sender, target) = ((A, Ipv4Addr::new(1, 2, 3, 4)), (B, Ipv4Addr::new(5, 6, 7, 8)));
    let packet = read(eth().arp(0x0102, sender, target));
    has(&packet, &[(ArpOp, 0x0102), (ArpSpa, 0x0102_0304), (ArpTpa, 0x0506_0708)]);
    has(&packet, &[(ArpSha, 0x0a), (ArpTha, 0x0b)]);
    let old = Packet::new(eth().arp(0x0102, sender, target), Port(1), Version::V1_0);
    has(&old, &[(ArpOp, 2)]);
    let mut token_ring = eth().arp(1, sender, target);
    token_ring[15] = 6;
    lacks(&read(token_ring), &[ArpOp, ArpSpa]);
}

#[test]
fn ipv6_extension_headers_are_skipped_and_their_kinds_told() {
    let udp = ip6().udp(5, 6, b"").bytes()[40..].to_vec();
    // Hop-by-hop, then destination options, eight bytes each.
    let options = [&[60, 0, 1, 4, 0, 0, 0, 0], &[17, 0, 1, 4, 0, 0, 0, 0], &udp[..]].concat();
    let packet = read(eth().ip(&ip6().payload(0, &options)));
    has(&packet, &[(IpProto, 17), (UdpDst, 6), (Ipv6Exthdr, 1 << 6 | 1 << 3)]);
    has(&read(eth().ip(&ip6().udp(5, 6, b""))), &[(Ipv6Exthdr, 0)]);
    has(&read(eth().ip(&ip6().payload(59, b""))), &[(IpProto, 59), (Ipv6Exthdr, 1)]);
    let secret = read(eth().ip(&ip6().payload(50, &[17; 32])));
    has(&secret, &[(IpProto, 50), (Ipv6Exthdr, 1 << 1)]);
    lacks(&secret, &[UdpSrc]);
}

#[test]
fn extension_headers_twice_or_out_of_order_are_flagged() {
    let header = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
    let flags = |kinds: &[u8]| {
        let behind = kinds.iter().skip(1).chain(&[17]);
        let bytes: Vec<u8> = behind.flat_map(|next| header(*next)).collect();
        let packet = read(eth().ip(&ip6().payload(kinds[0], &bytes)));
        packet.key().value(Ipv6Exthdr).unwrap() >> 7
    };
    assert_eq!(flags(&[0, 60, 43, 60]), 0, "destination options may come twice");
    assert_eq!(flags(&[60, 60]), 0);
    assert_eq!(flags(&[43, 43]), 1, "routing twice");
    assert_eq!(flags(&[43, 0]), 2, "hop-by-hop comes first");
    assert_eq!(flags(&[60, 60, 60]), 1);
}

#[test]
fn neighbour_discovery_has_its_target_and_its_link_address() {
    let target = 0x2001_0db8_u128 << 96 | 9;
    let message = |option: &[u8]| [&[0; 4], &target.to_be_bytes()[..], option].concat();
    let ask = message(&[14, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0x0c]);
    let packet = read(eth().ip(&ip6().icmp(135, 0, &ask)));
    has(&packet, &[(Icmpv6Type, 135), (Ipv6NdTarget, target), (Ipv6NdSll, 0x0c)]);
    lacks(&packet, &[Ipv6NdTll, Icmpv4Type]);
    let answer = message(&[2, 1, 0, 0, 0, 0, 0, 0x0d]);
    has(&read(eth().ip(&ip6().icmp(136, 0, &answer))), &[(Ipv6NdTll, 0x0d)]);
    // An option of length zero must not loop.
    lacks(&read(eth().ip(&ip6().icmp(135, 0, &message(&[1, 0, 0, 0])))), &[Ipv6NdSll]);
    lacks(&read(eth().ip(&ip6().icmp(128, 0, &ask))), &[Ipv6NdTarget]);
}

#[test]
fn mpls_and_pbb_hide_what_is_behind_them() {
    let mpls = read(eth().payload(0x8847, &[0x00, 0x01, 0x2b, 0x40]));
    has(&mpls, &[(MplsLabel, 0x12), (MplsTc, 5), (MplsBos, 1)]);
    lacks(&mpls, &[IpProto]);
    let pbb = read(eth().payload(0x88e7, &[&[0x20, 1, 2, 3][..], &[0; 14]].concat()));
    has(&pbb, &[(PbbIsid, 0x01_0203)]);
}
