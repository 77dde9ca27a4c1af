//! From a packet to the match of its flow.
//!
//! A match has to cover the packet that it is made from, as the switch reads it; otherwise the flow
//! never applies and each packet comes to the controller. So what two readers may read differently
//! is left out: what stands behind a second VLAN tag, the length of IEEE 802.3 frames, ports of
//! fragments, headers that are malformed or cut. A match that says less is still right: packets go to
//! an address, whatever they carry.

use bellrock_api::{Field, Match, PacketIn, Version};
use etherparse::{
    ArpHardwareId, ArpPacketSlice, EtherType, Ipv4HeaderSlice, LaxIpPayloadSlice, LaxIpv4Slice,
    LaxIpv6Slice, LaxNetSlice, LenSource, TcpHeaderSlice, TransportSlice, UdpHeaderSlice,
    ip_number,
};

use super::frame::{Frame, is_vlan_tag};

/// Ethernet types below are lengths (IEEE 802.3 §3.2.6).
const FIRST_ETH_TYPE: u16 = 0x0600;

/// Ingress port, VLAN, Ethernet source and destination.
#[inline]
pub(super) fn l2(packet: &PacketIn<'_>, frame: &Frame) -> Match {
    let mut matching = Match::any();
    link(&mut matching, packet, frame);
    matching
}

/// The twelve fields of 1.0 (§3.4), as far as the packet has them; in 1.3 also what stands in their
/// place for IPv6, SCTP and ICMPv6.
#[inline]
pub(super) fn exact(packet: &PacketIn<'_>, frame: &Frame, version: Version) -> Match {
    let mut matching = Match::any();
    link(&mut matching, packet, frame);
    if let Some(tag) = frame.vlan {
        matching.set(Field::VlanPcp, tag.pcp.into());
    }
    if frame.eth_type < FIRST_ETH_TYPE || is_vlan_tag(frame.eth_type) {
        return matching;
    }
    matching.set(Field::EthType, frame.eth_type.into());
    if !plain_ipv4(&mut matching, packet, frame) {
        network(&mut matching, packet, frame, version);
    }
    matching
}

#[inline]
fn link(matching: &mut Match, packet: &PacketIn<'_>, frame: &Frame) {
    matching.set(Field::InPort, packet.in_port().0.into());
    matching.set(Field::EthSrc, frame.src.to_u64().into());
    matching.set(Field::EthDst, frame.dst.to_u64().into());
    let vid = frame.vlan.map_or(0, |tag| Match::VLAN_PRESENT | tag.id);
    matching.set(Field::VlanVid, vid.into());
}

/// What nearly all packets are: TCP or UDP over IPv4, without options, whole and in one piece. It
/// says the same as [`network`], which a test compares, for a fifth of the work. `false`: the packet
/// is something else, and nothing was set.
#[inline]
fn plain_ipv4(matching: &mut Match, packet: &PacketIn<'_>, frame: &Frame) -> bool {
    const PLAIN_HEADER_LEN: usize = 20;
    if EtherType(frame.eth_type) != EtherType::IPV4 {
        return false;
    }
    let behind_link = packet.data().get(frame.header_len()..).unwrap_or(&[]);
    let Ok(header) = Ipv4HeaderSlice::from_slice(behind_link) else { return false };
    let length = usize::from(header.total_len());
    if header.slice().len() != PLAIN_HEADER_LEN || header.is_fragmenting_payload() {
        return false;
    }
    let Some(payload) = behind_link.get(PLAIN_HEADER_LEN..length) else { return false };
    let protocol = header.protocol();
    let ports = match protocol {
        ip_number::TCP => TcpHeaderSlice::from_slice(payload)
            .map(|tcp| {
                [(Field::TcpSrc, tcp.source_port()), (Field::TcpDst, tcp.destination_port())]
            })
            .ok(),
        ip_number::UDP => UdpHeaderSlice::from_slice(payload)
            .map(|udp| {
                [(Field::UdpSrc, udp.source_port()), (Field::UdpDst, udp.destination_port())]
            })
            .ok(),
        _ => None,
    };
    let Some([(src, src_port), (dst, dst_port)]) = ports else { return false };
    matching.set(Field::IpDscp, header.dcp().value().into());
    matching.set(Field::IpProto, protocol.0.into());
    matching.set(Field::Ipv4Src, u32::from_be_bytes(header.source()).into());
    matching.set(Field::Ipv4Dst, u32::from_be_bytes(header.destination()).into());
    matching.set(src, src_port.into());
    matching.set(dst, dst_port.into());
    true
}

/// Whatever the packet carries.
#[inline(never)]
fn network(matching: &mut Match, packet: &PacketIn<'_>, frame: &Frame, version: Version) {
    let Ok(headers) = packet.headers() else { return };
    // The parser looks into more kinds of tags than a switch does.
    if headers.link_exts.len() != usize::from(frame.vlan.is_some()) {
        return;
    }
    let whole = packet.is_whole();
    // The parser goes by the version in the IP header, a switch by the Ethernet type first.
    match (&headers.net, EtherType(frame.eth_type)) {
        (Some(LaxNetSlice::Arp(header)), EtherType::ARP) => arp(matching, header),
        (Some(LaxNetSlice::Ipv4(header)), EtherType::IPV4)
            if has_its_length(header.payload(), whole) =>
        {
            ipv4(matching, header, headers.transport.as_ref(), version);
        }
        (Some(LaxNetSlice::Ipv6(header)), EtherType::IPV6)
            if has_its_length(header.payload(), whole) && version == Version::V1_3 =>
        {
            ipv6(matching, header, headers.transport.as_ref());
        }
        _ => {}
    }
}

/// Operation and IPv4 addresses. Operations above 255 are left out: 1.0 has eight bits for them.
fn arp(matching: &mut Match, header: &ArpPacketSlice<'_>) {
    const ETHERNET_ADDRESS_LEN: u8 = 6;
    let (Ok(sender), Ok(target)) = (
        <[u8; 4]>::try_from(header.sender_protocol_addr()),
        <[u8; 4]>::try_from(header.target_protocol_addr()),
    ) else {
        return;
    };
    if header.hw_addr_type() != ArpHardwareId::ETHERNET
        || header.proto_addr_type() != EtherType::IPV4
        || header.hw_addr_size() != ETHERNET_ADDRESS_LEN
    {
        return;
    }
    matching.set(Field::ArpSpa, u32::from_be_bytes(sender).into());
    matching.set(Field::ArpTpa, u32::from_be_bytes(target).into());
    if let operation @ 0..=255 = header.operation().0 {
        matching.set(Field::ArpOp, operation.into());
    }
}

/// Whether an IP packet is as long as its header says, or was cut on the way to us only. A switch
/// reads nothing of one that lies about its length.
fn has_its_length(payload: &LaxIpPayloadSlice<'_>, whole: bool) -> bool {
    payload.len_source != LenSource::Slice || (payload.incomplete && !whole)
}

fn ipv4(
    matching: &mut Match,
    packet: &LaxIpv4Slice<'_>,
    parsed: Option<&TransportSlice<'_>>,
    version: Version,
) {
    let (header, payload) = (packet.header(), packet.payload());
    matching.set(Field::IpDscp, header.dcp().value().into());
    matching.set(Field::IpProto, header.protocol().0.into());
    matching.set(Field::Ipv4Src, u32::from_be_bytes(header.source()).into());
    matching.set(Field::Ipv4Dst, u32::from_be_bytes(header.destination()).into());
    // The parser looks behind an authentication header, where a switch does not.
    if header.protocol() != payload.ip_number {
        return;
    }
    match (parsed, version) {
        (Some(TransportSlice::Icmpv4(icmp)), _) => {
            matching.set(Field::Icmpv4Type, icmp.type_u8().into());
            matching.set(Field::Icmpv4Code, icmp.code_u8().into());
        }
        (None, Version::V1_3) => sctp(matching, payload),
        _ => tcp_or_udp(matching, parsed),
    }
}

fn ipv6(matching: &mut Match, packet: &LaxIpv6Slice<'_>, parsed: Option<&TransportSlice<'_>>) {
    let (header, payload) = (packet.header(), packet.payload());
    matching.set(Field::IpDscp, header.dscp().value().into());
    matching.set(Field::Ipv6Src, header.source_addr().to_bits());
    matching.set(Field::Ipv6Dst, header.destination_addr().to_bits());
    // The protocol stands behind the extension headers. Where that is, is not agreed upon for
    // fragments, nor for extension headers that cannot be read.
    if payload.fragmented || payload.ip_number.is_ipv6_ext_header_value() {
        return;
    }
    matching.set(Field::IpProto, payload.ip_number.0.into());
    match parsed {
        Some(TransportSlice::Icmpv6(icmp)) => {
            matching.set(Field::Icmpv6Type, icmp.type_u8().into());
            matching.set(Field::Icmpv6Code, icmp.code_u8().into());
        }
        None => sctp(matching, payload),
        _ => tcp_or_udp(matching, parsed),
    }
}

/// The ports of TCP and UDP. The parser gives none for fragments, not even for the first, which is
/// right: 1.0 (§3.4) matches every fragment as if its ports were zero, and Open vSwitch does the
/// same in 1.3.
fn tcp_or_udp(matching: &mut Match, parsed: Option<&TransportSlice<'_>>) {
    match parsed {
        Some(TransportSlice::Tcp(tcp)) => {
            matching.set(Field::TcpSrc, tcp.source_port().into());
            matching.set(Field::TcpDst, tcp.destination_port().into());
        }
        Some(TransportSlice::Udp(udp)) => {
            matching.set(Field::UdpSrc, udp.source_port().into());
            matching.set(Field::UdpDst, udp.destination_port().into());
        }
        _ => {}
    }
}

/// The ports of SCTP, which the parser does not know.
fn sctp(matching: &mut Match, payload: &LaxIpPayloadSlice<'_>) {
    const COMMON_HEADER_LEN: usize = 12;
    let is_sctp = payload.ip_number == ip_number::SCTP && !payload.fragmented;
    if let Some(&[a, b, c, d, ..]) = payload.payload.first_chunk::<COMMON_HEADER_LEN>()
        && is_sctp
    {
        matching.set(Field::SctpSrc, u16::from_be_bytes([a, b]).into());
        matching.set(Field::SctpDst, u16::from_be_bytes([c, d]).into());
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::Port;
    use bellrock_api::openflow::{self, Bytes, MatchView, PacketInReason};
    use proptest::prelude::*;

    use super::*;

    /// A packet of TCP or UDP over IPv4, with some of its bytes changed and perhaps cut.
    fn packets() -> impl Strategy<Value = (Vec<u8>, u16)> {
        let changes = prop::collection::vec((12_usize..60, any::<u8>()), 0..4);
        (any::<bool>(), any::<bool>(), changes, 0_usize..70, 0_u16..4).prop_map(
            |(is_tcp, tagged, changes, cut, missing)| {
                let mut packet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
                if tagged {
                    packet.extend([0x81, 0, 0x20, 7]);
                }
                let protocol = if is_tcp { 6 } else { 17 };
                packet.extend([8, 0, 0x45, 0xb8, 0, 46, 0, 1, 0, 0, 64, protocol, 0, 0]);
                packet.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x12, 0x34, 0, 80, 0, 26, 0, 0]);
                packet.extend([0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
                for (at, value) in changes {
                    packet[at] = value;
                }
                packet.truncate(packet.len().min(14 + cut));
                let total = packet.len() as u16 + missing;
                (packet, total)
            },
        )
    }

    fn packet_in(data: &[u8], total_len: u16) -> PacketIn<'_> {
        PacketIn::new(openflow::PacketIn {
            buffer_id: None,
            total_len,
            reason: PacketInReason::NoMatch,
            table: 0,
            cookie: 0,
            matching: MatchView::port(Port(1)),
            data: Bytes(data),
        })
    }

    proptest! {
        #[test]
        fn the_short_way_says_what_the_long_way_says((data, total) in packets()) {
            let packet = packet_in(&data, total);
            if let Some(frame) = Frame::read(&packet) {
                let (mut short, mut long) = (Match::any(), Match::any());
                if plain_ipv4(&mut short, &packet, &frame) {
                    network(&mut long, &packet, &frame, Version::V1_3);
                    prop_assert_eq!(short, long);
                } else {
                    prop_assert_eq!(short, Match::any());
                }
            }
        }
    }

    #[test]
    fn the_short_way_is_taken() {
        let mut data = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 28, 0, 1, 0, 0];
        data.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 5, 0, 6, 0, 8, 0, 0]);
        let packet = packet_in(&data, data.len() as u16);
        let frame = Frame::read(&packet).unwrap();
        assert!(plain_ipv4(&mut Match::any(), &packet, &frame));
    }
}
