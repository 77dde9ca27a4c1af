//! The match of a flow, for each kind of packet, on both versions.

use crate::lab::{A, B, Lab, Packet, VERSIONS, tagged};
use bellrock_api::Version;
use bellrock_apps::{LearningSettings, MatchKind};
use etherparse::{
    ArpHardwareId, ArpOperation, ArpPacket, EtherType, Ethernet2Header, IpFragOffset, IpNumber,
    Ipv4Header, PacketBuilder, PacketBuilderStep,
};

const FROM: [u8; 4] = [10, 0, 0, 1];
const TO: [u8; 4] = [10, 0, 0, 2];

fn ethernet() -> PacketBuilderStep<Ethernet2Header> {
    PacketBuilder::ethernet2(A.0, B.0)
}

fn with(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

fn tcp() -> Vec<u8> {
    with(|bytes| {
        ethernet().ipv4(FROM, TO, 64).tcp(1000, 80, 1, 4096).write(bytes, &[0; 10]).unwrap();
    })
}

fn udp() -> Vec<u8> {
    with(|bytes| ethernet().ipv4(FROM, TO, 64).udp(1000, 53).write(bytes, &[0; 10]).unwrap())
}

/// An IPv4 packet with this protocol and a changed header.
fn ipv4(protocol: u8, payload: &[u8], change: impl FnOnce(&mut Ipv4Header)) -> Vec<u8> {
    let mut header =
        Ipv4Header::new(payload.len() as u16, 64, IpNumber(protocol), FROM, TO).unwrap();
    change(&mut header);
    let mut frame = frame_of(0x0800);
    header.write_raw(&mut frame).unwrap();
    frame.extend_from_slice(payload);
    frame
}

fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = frame_of(0x86dd);
    frame.extend_from_slice(&[0x6b, 0x80, 0, 0]); // DSCP 46
    frame.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    frame.extend_from_slice(&[next_header, 64]);
    frame.extend_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    frame.extend_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    frame.extend_from_slice(payload);
    frame
}

/// A UDP header of 8 bytes for 8 more, from 1000 to 53.
const UDP: [u8; 16] = [3, 0xe8, 0, 53, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
/// An SCTP common header and four more bytes, from 1000 to 53.
const SCTP: [u8; 16] = [3, 0xe8, 0, 53, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4];
/// An ICMP echo request (and, by its numbers, an ICMPv6 message of type 8).
const ICMP: [u8; 8] = [8, 0, 0, 0, 0, 1, 0, 1];

fn frame_of(eth_type: u16) -> Vec<u8> {
    let mut frame = [B.0, A.0].concat();
    frame.extend_from_slice(&eth_type.to_be_bytes());
    frame
}

fn arp(operation: u16) -> Vec<u8> {
    let packet = ArpPacket::new(
        ArpHardwareId::ETHERNET,
        EtherType::IPV4,
        ArpOperation(operation),
        &A.0,
        &FROM,
        &B.0,
        &TO,
    )
    .unwrap();
    with(|bytes| ethernet().arp(packet).write(bytes).unwrap())
}

/// The match for a packet from A at port 1 to B, without the common fields.
fn exact(version: Version, packet: &Packet) -> String {
    let settings = LearningSettings { matching: MatchKind::Exact, ..Default::default() };
    let mut lab = Lab::new(version, settings);
    // B in each VLAN of the tests.
    lab.see(2, B, A);
    for vlan in [7, 8] {
        lab.packet_in(&Packet::new(2, crate::lab::udp_in_vlan(B, A, vlan, 0)));
    }
    let sent = lab.packet_in(packet);
    let matching = sent[0].strip_prefix("flow ").unwrap().split(' ').next().unwrap();
    let all_have = format!("in_port=1,eth_dst={B},eth_src={A},");
    matching.strip_prefix(&all_have).unwrap().to_owned()
}

/// Checks the match of a packet on 1.0 and on 1.3.
#[track_caller]
fn expect(frame: Vec<u8>, on_1_0: &str, on_1_3: &str) {
    let packet = Packet::new(1, frame);
    for (version, expected) in VERSIONS.into_iter().zip([on_1_0, on_1_3]) {
        assert_eq!(exact(version, &packet), expected, "{version}");
    }
}

/// Expects the same match on both versions, except fields omitted on 1.0.
#[track_caller]
fn expect_on_both(frame: Vec<u8>, expected: &str) {
    expect(frame, &on_1_0(expected), expected);
}

/// Removes the fields omitted on 1.0, where a flow without wildcards is above all priorities.
fn on_1_0(expected: &str) -> String {
    let is_open = |field: &&str| {
        ["vlan_pcp=", "ip_dscp=", "arp_op="].iter().any(|open| field.starts_with(open))
    };
    let fields: Vec<&str> = expected.split(',').filter(|field| !is_open(field)).collect();
    fields.join(",")
}

const IPV4: &str = "eth_type=0x0800,vlan_vid=0x0";
const ADDRESSES: &str = "ipv4_src=10.0.0.1,ipv4_dst=10.0.0.2";

#[test]
fn tcp_udp_and_icmp() {
    for (frame, protocol, end) in [
        (tcp(), 6, "tcp_src=1000,tcp_dst=80"),
        (udp(), 17, "udp_src=1000,udp_dst=53"),
        (ipv4(1, &ICMP, |_| ()), 1, "icmpv4_type=8,icmpv4_code=0"),
    ] {
        let expected = format!("{IPV4},ip_dscp=0,ip_proto={protocol},{ADDRESSES},{end}");
        expect_on_both(frame, &expected);
    }
}

#[test]
fn dscp_counts_and_ecn_does_not() {
    let frame = ipv4(17, &UDP, |header| {
        header.dscp = 46.try_into().unwrap();
        header.ecn = 3.try_into().unwrap();
    });
    let end = "udp_src=1000,udp_dst=53";
    expect_on_both(frame, &format!("{IPV4},ip_dscp=46,ip_proto=17,{ADDRESSES},{end}"));
}

#[test]
fn protocols_without_ports_end_with_the_addresses() {
    for protocol in [2, 47, 50, 89, 255] {
        let frame = ipv4(protocol, &[0; 32], |_| ());
        expect_on_both(frame, &format!("{IPV4},ip_dscp=0,ip_proto={protocol},{ADDRESSES}"));
    }
}

#[test]
fn sctp_has_ports_in_1_3_only() {
    let common = format!("{IPV4},ip_dscp=0,ip_proto=132,{ADDRESSES}");
    let on_1_3 = format!("{common},sctp_src=1000,sctp_dst=53");
    expect(ipv4(132, &SCTP, |_| ()), &on_1_0(&common), &on_1_3);
    expect_on_both(ipv4(132, &SCTP[..11], |_| ()), &common);
}

#[test]
fn no_fragment_has_ports() {
    let common = |protocol| format!("{IPV4},ip_dscp=0,ip_proto={protocol},{ADDRESSES}");
    for (protocol, payload) in [(17, &UDP[..]), (1, &ICMP), (132, &SCTP)] {
        let first = ipv4(protocol, payload, |header| header.more_fragments = true);
        let later = ipv4(protocol, payload, |header| {
            header.fragment_offset = IpFragOffset::try_new(185).unwrap();
        });
        expect_on_both(first, &common(protocol));
        expect_on_both(later, &common(protocol));
    }
}

#[test]
fn options_are_passed_over() {
    let frame = ipv4(17, &UDP, |header| {
        header.options = [1u8; 8][..].try_into().unwrap();
        header.total_len += 8;
    });
    let end = "udp_src=1000,udp_dst=53";
    expect_on_both(frame, &format!("{IPV4},ip_dscp=0,ip_proto=17,{ADDRESSES},{end}"));
}

#[test]
fn an_authentication_header_of_ipv4_is_its_protocol() {
    let mut payload = vec![17, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1];
    payload.extend_from_slice(&[0; 12]);
    payload.extend_from_slice(&UDP);
    let frame = ipv4(51, &payload, |_| ());
    expect_on_both(frame, &format!("{IPV4},ip_dscp=0,ip_proto=51,{ADDRESSES}"));
}

#[test]
fn ipv6_counts_in_1_3_as_far_as_its_headers_go() {
    let on_1_0 = "eth_type=0x86dd,vlan_vid=0x0";
    let addresses = "ipv6_src=2001:db8::1,ipv6_dst=2001:db8::2";
    let options = |next: u8| [vec![next, 0, 1, 4, 0, 0, 0, 0], UDP.to_vec()].concat();
    let fragment = |next: u8, offset: u16| {
        let [high, low] = offset.to_be_bytes();
        [vec![next, 0, high, low, 0, 0, 0, 1], UDP.to_vec()].concat()
    };
    for (frame, ip_proto, end) in [
        (ipv6(17, &UDP), ",ip_proto=17", ",udp_src=1000,udp_dst=53"),
        (ipv6(58, &ICMP), ",ip_proto=58", ",icmpv6_type=8,icmpv6_code=0"),
        (ipv6(132, &SCTP), ",ip_proto=132", ",sctp_src=1000,sctp_dst=53"),
        // ICMP of the other version is an ordinary protocol.
        (ipv6(1, &ICMP), ",ip_proto=1", ""),
        (ipv6(59, &[0; 8]), ",ip_proto=59", ""),
        // Behind hop-by-hop and destination options.
        (ipv6(0, &options(17)), ",ip_proto=17", ",udp_src=1000,udp_dst=53"),
        (ipv6(60, &options(17)), ",ip_proto=17", ",udp_src=1000,udp_dst=53"),
        // Fragments, first and later.
        (ipv6(44, &fragment(17, 1)), "", ""),
        (ipv6(44, &fragment(17, 8)), "", ""),
        // An extension header that is cut, and one that hides the headers behind it.
        (ipv6(60, &[17, 9, 0, 0]), "", ""),
        (ipv6(50, &[0; 32]), "", ""),
    ] {
        // The fields are ordered by number: ports before IPv6 addresses before ICMPv6.
        let (ports, icmp) = if end.starts_with(",icmp") { ("", end) } else { (end, "") };
        let on_1_3 = format!("{on_1_0},ip_dscp=46{ip_proto}{ports},{addresses}{icmp}");
        expect(frame, on_1_0, &on_1_3);
    }
}

#[test]
fn icmpv6_over_ipv4_is_a_protocol_like_any_other() {
    let frame = ipv4(58, &ICMP, |_| ());
    expect_on_both(frame, &format!("{IPV4},ip_dscp=0,ip_proto=58,{ADDRESSES}"));
}

#[test]
fn arp_has_operation_and_addresses() {
    let arp_type = "eth_type=0x0806,vlan_vid=0x0";
    let addresses = "arp_spa=10.0.0.1,arp_tpa=10.0.0.2";
    expect_on_both(arp(1), &format!("{arp_type},arp_op=1,{addresses}"));
    expect_on_both(arp(2), &format!("{arp_type},arp_op=2,{addresses}"));
    // 1.0 has eight bits for the operation, and Open vSwitch reads eight in 1.3 too.
    expect_on_both(arp(258), &format!("{arp_type},{addresses}"));
    // Addresses of another type, and a cut packet.
    let mut other = arp(1);
    other[14] = 1;
    expect_on_both(other, arp_type);
    expect_on_both(arp(1)[..40].to_vec(), arp_type);
}

#[test]
fn a_vlan_counts_with_its_priority() {
    let end = format!("ip_dscp=0,ip_proto=17,{ADDRESSES},udp_src=1000,udp_dst=53");
    for (tpid, tci, vlan) in [
        (0x8100, 7, "vlan_vid=0x1007,vlan_pcp=0"),
        (0x8100, 5 << 13 | 7, "vlan_vid=0x1007,vlan_pcp=5"),
        (0x8100, 3 << 13, "vlan_vid=0x1000,vlan_pcp=3"),
        (0x88a8, 8, "vlan_vid=0x1008,vlan_pcp=0"),
        // The drop eligible bit is ignored.
        (0x8100, 1 << 12 | 7, "vlan_vid=0x1007,vlan_pcp=0"),
    ] {
        let frame = tagged(udp(), tpid, tci);
        expect_on_both(frame, &format!("eth_type=0x0800,{vlan},{end}"));
    }
}

#[test]
fn nothing_counts_behind_a_second_tag() {
    let twice = |outer| tagged(tagged(udp(), 0x8100, 9), outer, 7);
    expect_on_both(twice(0x8100), "vlan_vid=0x1007,vlan_pcp=0");
    expect_on_both(twice(0x88a8), "vlan_vid=0x1007,vlan_pcp=0");
}

#[test]
fn other_types_end_with_their_number() {
    for eth_type in [0x88e5, 0x9100, 0x8847, 0x88f7, 0x0600] {
        let mut frame = udp();
        frame[12..14].copy_from_slice(&u16::to_be_bytes(eth_type));
        expect_on_both(frame, &format!("eth_type=0x{eth_type:04x},vlan_vid=0x0"));
    }
}

#[test]
fn a_length_is_no_type() {
    let mut frame = frame_of(46);
    frame.extend_from_slice(&[0x42; 46]);
    expect_on_both(frame, "vlan_vid=0x0");
}

#[test]
fn of_malformed_headers_what_can_be_read_counts() {
    // IPv4: no whole header; impossible version or header length; total length too long or short.
    expect_on_both(udp()[..14 + 19].to_vec(), IPV4);
    for (at, value) in [(14, 0x65), (14, 0x44), (16, 0xff), (17, 12)] {
        let mut frame = udp();
        frame[at] = value;
        expect_on_both(frame, IPV4);
    }
    // The Ethernet type of one version of IP before the header of the other.
    let mut frame = udp();
    frame[12..14].copy_from_slice(&[0x86, 0xdd]);
    expect_on_both(frame, "eth_type=0x86dd,vlan_vid=0x0");
    // UDP and TCP headers that are cut.
    let no_ports = |protocol| format!("{IPV4},ip_dscp=0,ip_proto={protocol},{ADDRESSES}");
    expect_on_both(ipv4(17, &UDP[..7], |_| ()), &no_ports(17));
    expect_on_both(ipv4(6, &UDP, |_| ()), &no_ports(6));
    expect_on_both(ipv4(1, &ICMP[..3], |_| ()), &no_ports(1));
    let type_alone = "eth_type=0x86dd,vlan_vid=0x0";
    expect_on_both(ipv6(17, &UDP)[..14 + 39].to_vec(), type_alone);
}

#[test]
fn a_buffered_packet_that_came_in_part_counts_as_far_as_it_came() {
    let whole = tcp();
    let end = |len: usize| match len {
        54.. => format!("{IPV4},ip_dscp=0,ip_proto=6,{ADDRESSES},tcp_src=1000,tcp_dst=80"),
        34..54 => format!("{IPV4},ip_dscp=0,ip_proto=6,{ADDRESSES}"),
        _ => IPV4.to_owned(),
    };
    for len in 14..=whole.len() {
        let packet = Packet::new(1, whole.clone()).buffered(7).cut_to(len);
        for version in VERSIONS {
            let expected = if version == Version::V1_0 { on_1_0(&end(len)) } else { end(len) };
            assert_eq!(exact(version, &packet), expected, "{len} bytes");
        }
    }
}

#[test]
fn l2_looks_at_addresses_and_vlan_only() {
    for version in VERSIONS {
        let mut lab = Lab::new(version, LearningSettings::default());
        lab.see(2, B, A);
        let all_have = format!("flow in_port=1,eth_dst={B},eth_src={A},");
        for frame in [tcp(), arp(1), ipv6(17, &UDP), frame_of(46)] {
            let sent = lab.packet_in(&Packet::new(1, frame));
            let end = "vlan_vid=0x0 to 2 priority 100 idle 60 hard 0";
            assert_eq!(sent[0], format!("{all_have}{end}"));
        }
    }
}
