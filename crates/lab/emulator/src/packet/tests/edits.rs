//! Setting fields with their checksums, and TTLs.

use bellrock_openflow::Field::*;

use super::*;
use crate::packet::InvalidTtl;
use crate::packet::checksum;

/// The checksum over a header that includes its checksum: zero if it is right (RFC 1071).
fn ipv4_sum(packet: &Packet) -> u16 {
    checksum::finish(checksum::add(0, &packet.bytes()[14..34]))
}

/// Compares the packet with a frame that was built with the new values.
#[track_caller]
fn becomes(packet: &Packet, frame: &EthernetFrame) {
    assert_eq!(packet.bytes(), &frame[..]);
    assert_eq!(packet.key(), read(frame.clone()).key());
}

#[test]
fn a_packet_that_is_edited_is_the_packet_made_so() {
    let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(192, 168, 1, 2));
    for (old, new) in [
        (ip4().udp(1, 2, b"odd"), IpFields::v4(src, dst).udp(80, 2, b"odd")),
        (ip4().tcp((1, 2), 3, 4, 2, b"x"), IpFields::v4(src, dst).tcp((80, 2), 3, 4, 2, b"x")),
        (ip4().sctp(1, 2, b"chunk of data"), IpFields::v4(src, dst).sctp(80, 2, b"chunk of data")),
    ] {
        let mut packet = read(eth().ip(&old));
        packet.set_field(Ipv4Dst, u32::from(dst).into());
        for field in [UdpSrc, TcpSrc, SctpSrc] {
            packet.set_field(field, 80);
        }
        becomes(&packet, &eth().ip(&new));
    }
    let v6 = IpFields::v6(Ipv6Addr::from_bits(5), Ipv6Addr::from_bits(6 << 64));
    for (old, new) in [
        (ip6().udp(1, 2, b"odd"), v6.udp(1, 443, b"odd")),
        (ip6().tcp((1, 2), 3, 4, 2, b"x"), v6.tcp((1, 443), 3, 4, 2, b"x")),
        (ip6().sctp(1, 2, b"chunk of data"), v6.sctp(1, 443, b"chunk of data")),
        (ip6().ping(1, 2, b"ping"), v6.pong(1, 2, b"ping")),
    ] {
        let mut packet = read(eth().ip(&old));
        packet.set_field(Ipv6Src, 5);
        packet.set_field(Ipv6Dst, 6 << 64);
        for field in [UdpDst, TcpDst, SctpDst] {
            packet.set_field(field, 443);
        }
        packet.set_field(Icmpv6Type, 129);
        becomes(&packet, &eth().ip(&new));
    }
}

#[test]
fn a_udp_checksum_of_zero_stays_none_and_none_becomes_zero() {
    let mut frame = eth().ip(&ip4().udp(1, 2, b"data"));
    frame[40..42].fill(0);
    let mut packet = read(frame);
    packet.set_field(UdpDst, 9);
    packet.set_field(Ipv4Src, 9);
    assert_eq!(packet.bytes()[40..42], [0, 0]);
    // One of all ports makes the sum zero; then 0xffff is sent.
    let sent = (0..=u16::MAX).map(|port| {
        let mut packet = read(eth().ip(&ip4().udp(1, 2, b"data")));
        packet.set_field(UdpSrc, port.into());
        u16::from_be_bytes([packet.bytes()[40], packet.bytes()[41]])
    });
    assert!(sent.filter(|sum| *sum == 0).count() == 0);
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    for at in [24, 40] {
        let mut frame = eth().ip(&ip4().udp(1, 2, b"data"));
        frame[at] ^= 0x55;
        let mut packet = read(frame);
        packet.set_field(Ipv4Src, 9);
        packet.set_field(UdpSrc, 9);
        let right = eth()
            .ip(&IpFields::v4(Ipv4Addr::from_bits(9), Ipv4Addr::new(10, 0, 0, 2))
                .udp(9, 2, b"data"));
        assert_ne!(packet.bytes(), &right[..]);
    }
}

#[test]
fn the_checksum_of_a_first_fragment_stays_right_for_the_whole() {
    let whole =
        |src| IpFields::v4(Ipv4Addr::from_bits(src), Ipv4Addr::from_bits(7)).udp(1, 2, &[9; 40]);
    let first = |src: u32| {
        let ip = IpFields::v4(Ipv4Addr::from_bits(src), Ipv4Addr::from_bits(7)).fragment(0, true);
        eth().ip(&ip.payload(17, &whole(src).bytes()[20..44]))
    };
    let mut packet = read(first(3));
    packet.set_field(Ipv4Src, 4);
    becomes(&packet, &first(4));
}

#[test]
fn set_field_changes_no_transport_header_in_a_later_fragment() {
    let ip =
        |src| IpFields::v4(Ipv4Addr::from_bits(src), Ipv4Addr::from_bits(7)).fragment(5, false);
    let mut packet = read(eth().ip(&ip(3).payload(17, &[7; 16])));
    packet.set_field(Ipv4Src, 4);
    packet.set_field(UdpSrc, 4);
    becomes(&packet, &eth().ip(&ip(4).payload(17, &[7; 16])));
}

#[test]
fn behind_a_routing_header_the_destination_is_not_in_the_checksum() {
    let udp = ip6().udp(1, 2, b"data").bytes()[40..].to_vec();
    let via = |left: u8| [&[17, 2, 0, left][..], &[0; 20], &udp].concat();
    for (left, mended) in [(1, false), (0, true)] {
        let mut packet = read(eth().ip(&ip6().payload(43, &via(left))));
        let before = packet.bytes()[84..86].to_vec();
        packet.set_field(Ipv6Dst, 77);
        assert_eq!(packet.bytes()[84..86] != before[..], mended);
    }
}

#[test]
fn dscp_and_ecn_share_a_byte() {
    let mut packet = read(eth().ip(&ip4().dscp(10, 1).udp(1, 2, b"")));
    packet.set_field(IpDscp, 46);
    becomes(&packet, &eth().ip(&ip4().dscp(46, 1).udp(1, 2, b"")));
    packet.set_field(IpEcn, 3);
    becomes(&packet, &eth().ip(&ip4().dscp(46, 3).udp(1, 2, b"")));
    let mut packet = read(eth().ip(&ip6().dscp(10, 1).udp(1, 2, b"")));
    packet.set_field(IpDscp, 46);
    packet.set_field(IpEcn, 2);
    becomes(&packet, &eth().ip(&ip6().dscp(46, 2).udp(1, 2, b"")));
    packet.set_field(Ipv6Flabel, 0xabcde);
    assert_eq!(packet.bytes()[14..18], [0x6b, 0xaa, 0xbc, 0xde]);
}

#[test]
fn fields_absent_from_a_packet_are_not_set() {
    let frame = eth().ip(&ip4().udp(1, 2, b""));
    let mut packet = read(frame.clone());
    for field in [TcpSrc, ArpOp, Ipv6Src, VlanVid, VlanPcp, MplsLabel, PbbIsid, Icmpv4Type] {
        packet.set_field(field, 1);
    }
    becomes(&packet, &frame);
}

#[test]
fn arp_is_set_field_by_field() {
    let mut packet = read(eth().arp(1, (A, Ipv4Addr::from_bits(1)), (B, Ipv4Addr::from_bits(2))));
    packet.set_field(ArpOp, 2);
    packet.set_field(ArpSha, 0x0b);
    packet.set_field(ArpSpa, 2);
    packet.set_field(ArpTha, 0x0a);
    packet.set_field(ArpTpa, 1);
    becomes(&packet, &eth().arp(2, (B, Ipv4Addr::from_bits(2)), (A, Ipv4Addr::from_bits(1))));
}

#[test]
fn neighbour_discovery_keeps_its_checksum() {
    let message = |target: u128, link: u8| {
        [&[0; 4], &target.to_be_bytes()[..], &[1, 1, 0, 0, 0, 0, 0, link]].concat()
    };
    let mut packet = read(eth().ip(&ip6().icmp(135, 0, &message(1 << 100, 3))));
    packet.set_field(Ipv6NdTarget, 2 << 100);
    packet.set_field(Ipv6NdSll, 4);
    becomes(&packet, &eth().ip(&ip6().icmp(135, 0, &message(2 << 100, 4))));
    // An advertisement has no source address.
    packet.set_field(Icmpv6Type, 136);
    assert!(!packet.key().has(Ipv6NdSll) && packet.key().has(Ipv6NdTarget));
}

#[test]
fn setting_type_or_protocol_changes_which_fields_there_are() {
    let mut packet = read(eth().ip(&ip4().udp(1, 2, &[0; 16])));
    packet.set_field(IpProto, 6);
    assert_eq!(packet.key().value(TcpDst), Some(2));
    assert!(!packet.key().has(UdpDst));
    assert_eq!(ipv4_sum(&packet), 0);
    packet.set_field(EthType, 0x1234);
    assert!(!packet.key().has(Ipv4Src) && packet.key().has(EthSrc));
}

#[test]
fn metadata_is_written_under_its_mask_and_stays_when_headers_change() {
    let mut packet = read(eth().payload(0x1234, b""));
    packet.write_metadata(0xffff, 0x0ff0);
    packet.write_metadata(0, 0x00f0);
    packet.set_field(TunnelId, 5);
    packet.push_vlan(0x8100);
    assert_eq!(packet.metadata(), 0x0f00);
    assert_eq!(packet.key().value(TunnelId), Some(5));
    assert_eq!(packet.in_port(), Port(7));
}

#[test]
fn a_ttl_that_would_be_zero_is_invalid() {
    let mut packet = read(eth().ip(&ip4().ttl(3).udp(1, 2, b"")));
    assert_eq!(packet.dec_nw_ttl(), Ok(()));
    becomes(&packet, &eth().ip(&ip4().ttl(2).udp(1, 2, b"")));
    assert_eq!(packet.dec_nw_ttl(), Ok(()));
    assert_eq!(packet.dec_nw_ttl(), Err(InvalidTtl));
    assert_eq!(packet.nw_ttl(), Some(1));
    packet.set_nw_ttl(200);
    becomes(&packet, &eth().ip(&ip4().ttl(200).udp(1, 2, b"")));
    let mut packet = read(eth().ip(&ip6().ttl(2).udp(1, 2, b"")));
    assert_eq!(packet.dec_nw_ttl(), Ok(()));
    assert_eq!(packet.dec_nw_ttl(), Err(InvalidTtl));
    // A packet without a TTL cannot expire.
    assert_eq!(read(eth().payload(0x1234, b"")).dec_nw_ttl(), Ok(()));
}

#[test]
fn ttls_are_copied_between_label_and_label_label_and_ip_ip_and_ip() {
    let mut packet = read(eth().ip(&ip4().ttl(9).udp(1, 2, b"")));
    packet.push_mpls(0x8847);
    assert_eq!(packet.mpls_ttl(), Some(9));
    packet.set_mpls_ttl(50);
    packet.copy_ttl_in();
    packet.push_mpls(0x8847);
    packet.set_mpls_ttl(20);
    packet.copy_ttl_out();
    assert_eq!(packet.mpls_ttl(), Some(50));
    packet.pop_mpls(0x8847);
    packet.pop_mpls(0x0800);
    becomes(&packet, &eth().ip(&ip4().ttl(50).udp(1, 2, b"")));

    let inner = ip6().ttl(5).udp(1, 2, b"");
    let mut packet = read(eth().ip(&ip4().ttl(100).payload(41, inner.bytes())));
    packet.copy_ttl_out();
    becomes(&packet, &eth().ip(&ip4().ttl(5).payload(41, inner.bytes())));
    packet.set_nw_ttl(60);
    packet.copy_ttl_in();
    let inner = ip6().ttl(60).udp(1, 2, b"");
    becomes(&packet, &eth().ip(&ip4().ttl(60).payload(41, inner.bytes())));
}

#[test]
fn the_ttl_of_a_label_that_ends_the_frame_is_set_as_any_other() {
    let mut packet = read(eth().payload(0x8847, &[0, 0, 1, 9]));
    assert_eq!(packet.dec_mpls_ttl(), Ok(()));
    packet.copy_ttl_in();
    assert_eq!(packet.bytes()[14..], [0, 0, 1, 8]);
    let mut two = read(eth().payload(0x8847, &[0, 0, 0, 9, 0, 0, 1, 7]));
    two.copy_ttl_in();
    assert_eq!(two.bytes()[14..], [0, 0, 0, 9, 0, 0, 1, 9]);
}
