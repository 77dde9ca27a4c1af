//! From a packet to the match of its flow.
//!
//! A match has to cover the packet that it is made from, as the switch reads it; otherwise the flow
//! never applies and each packet comes to the controller. So what two readers may read differently
//! is left out: what stands behind a second VLAN tag, the length of IEEE 802.3 frames, ports of
//! fragments, headers that are malformed or cut. A match that says less is still right: packets go to
//! an address, whatever they carry.

use bellrock_api::{Match, PacketIn, Version};
use etherparse::{
    ArpHardwareId, ArpPacketSlice, EtherType, LaxIpPayloadSlice, LaxIpv4Slice, LaxIpv6Slice,
    LaxNetSlice, LenSource, TransportSlice, ip_number,
};

use super::frame::{Frame, is_vlan_tag};

/// Ethernet types below are lengths (IEEE 802.3 §3.2.6).
const FIRST_ETH_TYPE: u16 = 0x0600;

/// Ingress port, VLAN, Ethernet source and destination.
#[inline]
pub(super) fn l2(packet: &PacketIn<'_>, frame: &Frame) -> Match {
    let matching = Match::any().in_port(packet.in_port()).eth_src(frame.src).eth_dst(frame.dst);
    match frame.vlan {
        Some(tag) => matching.vlan_id(tag.id),
        None => matching.untagged(),
    }
}

/// The twelve fields of 1.0 (§3.4), as far as the packet has them; in 1.3 also what stands in their
/// place for IPv6, SCTP and ICMPv6.
#[inline]
pub(super) fn exact(packet: &PacketIn<'_>, frame: &Frame, version: Version) -> Match {
    let mut matching = l2(packet, frame);
    if let Some(tag) = frame.vlan {
        matching = matching.vlan_pcp(tag.pcp);
    }
    if frame.eth_type < FIRST_ETH_TYPE || is_vlan_tag(frame.eth_type) {
        return matching;
    }
    matching = matching.eth_type(frame.eth_type);
    let Ok(headers) = packet.headers() else { return matching };
    // The parser looks into more kinds of tags than a switch does.
    if headers.link_exts.len() != usize::from(frame.vlan.is_some()) {
        return matching;
    }
    let whole = packet.is_whole();
    // The parser goes by the version in the IP header, a switch by the Ethernet type first.
    match (&headers.net, EtherType(frame.eth_type)) {
        (Some(LaxNetSlice::Arp(header)), EtherType::ARP) => arp(matching, header),
        (Some(LaxNetSlice::Ipv4(header)), EtherType::IPV4)
            if has_its_length(header.payload(), whole) =>
        {
            ipv4(matching, header, headers.transport.as_ref(), version)
        }
        (Some(LaxNetSlice::Ipv6(header)), EtherType::IPV6)
            if has_its_length(header.payload(), whole) && version == Version::V1_3 =>
        {
            ipv6(matching, header, headers.transport.as_ref())
        }
        _ => matching,
    }
}

/// Operation and IPv4 addresses. Operations above 255 are left out: 1.0 has eight bits for them.
#[inline]
fn arp(matching: Match, header: &ArpPacketSlice<'_>) -> Match {
    const ETHERNET_ADDRESS_LEN: u8 = 6;
    let (Ok(sender), Ok(target)) = (
        <[u8; 4]>::try_from(header.sender_protocol_addr()),
        <[u8; 4]>::try_from(header.target_protocol_addr()),
    ) else {
        return matching;
    };
    if header.hw_addr_type() != ArpHardwareId::ETHERNET
        || header.proto_addr_type() != EtherType::IPV4
        || header.hw_addr_size() != ETHERNET_ADDRESS_LEN
    {
        return matching;
    }
    let matching = matching.arp_spa(sender.into()).arp_tpa(target.into());
    match header.operation().0 {
        operation @ 0..=255 => matching.arp_op(operation),
        _ => matching,
    }
}

/// Whether an IP packet is as long as its header says, or was cut on the way to us only. A switch
/// reads nothing of one that lies about its length.
#[inline]
fn has_its_length(payload: &LaxIpPayloadSlice<'_>, whole: bool) -> bool {
    payload.len_source != LenSource::Slice || (payload.incomplete && !whole)
}

#[inline]
fn ipv4(
    matching: Match,
    packet: &LaxIpv4Slice<'_>,
    parsed: Option<&TransportSlice<'_>>,
    version: Version,
) -> Match {
    let (header, payload) = (packet.header(), packet.payload());
    let matching = matching
        .ip_dscp(header.dcp().value())
        .ip_proto(header.protocol().0)
        .ipv4_src(header.source_addr())
        .ipv4_dst(header.destination_addr());
    // The parser looks behind an authentication header, where a switch does not.
    if header.protocol() != payload.ip_number {
        return matching;
    }
    match (parsed, version) {
        (Some(TransportSlice::Icmpv4(icmp)), _) => {
            matching.icmpv4_type(icmp.type_u8()).icmpv4_code(icmp.code_u8())
        }
        (None, Version::V1_3) => sctp(matching, payload),
        _ => tcp_or_udp(matching, parsed),
    }
}

fn ipv6(matching: Match, packet: &LaxIpv6Slice<'_>, parsed: Option<&TransportSlice<'_>>) -> Match {
    let (header, payload) = (packet.header(), packet.payload());
    let matching = matching
        .ip_dscp(header.dscp().value())
        .ipv6_src(header.source_addr())
        .ipv6_dst(header.destination_addr());
    // The protocol stands behind the extension headers. Where that is, is not agreed upon for
    // fragments, nor for extension headers that cannot be read.
    if payload.fragmented || payload.ip_number.is_ipv6_ext_header_value() {
        return matching;
    }
    let matching = matching.ip_proto(payload.ip_number.0);
    match parsed {
        Some(TransportSlice::Icmpv6(icmp)) => {
            matching.icmpv6_type(icmp.type_u8()).icmpv6_code(icmp.code_u8())
        }
        None => sctp(matching, payload),
        _ => tcp_or_udp(matching, parsed),
    }
}

/// The ports of TCP and UDP. The parser gives none for fragments, not even for the first, which is
/// right: 1.0 (§3.4) matches every fragment as if its ports were zero, and Open vSwitch does the
/// same in 1.3.
#[inline]
fn tcp_or_udp(matching: Match, parsed: Option<&TransportSlice<'_>>) -> Match {
    match parsed {
        Some(TransportSlice::Tcp(tcp)) => {
            matching.tcp_src(tcp.source_port()).tcp_dst(tcp.destination_port())
        }
        Some(TransportSlice::Udp(udp)) => {
            matching.udp_src(udp.source_port()).udp_dst(udp.destination_port())
        }
        _ => matching,
    }
}

/// The ports of SCTP, which the parser does not know.
fn sctp(matching: Match, payload: &LaxIpPayloadSlice<'_>) -> Match {
    const COMMON_HEADER_LEN: usize = 12;
    let is_sctp = payload.ip_number == ip_number::SCTP && !payload.fragmented;
    match payload.payload.first_chunk::<COMMON_HEADER_LEN>() {
        Some(&[a, b, c, d, ..]) if is_sctp => {
            matching.sctp_src(u16::from_be_bytes([a, b])).sctp_dst(u16::from_be_bytes([c, d]))
        }
        _ => matching,
    }
}
