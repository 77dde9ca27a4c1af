//! Makes the match of a flow from a packet.
//!
//! A match must cover its packet as the switch reads it. Otherwise the flow never applies, and each
//! packet comes to the controller. So the match omits everything that two readers may read
//! differently: fields behind a second VLAN tag, the length of IEEE 802.3 frames, ports of
//! fragments, headers that are malformed or cut. A match with fewer fields is still right: the
//! address alone decides where packets go.
//!
//! In 1.0 a flow without wildcards is above all priorities (§3.4), so also above the drops of apps
//! in front. Switches differ in whether a field that does not apply to a packet counts as a
//! wildcard. So in 1.0 the match omits the fields that do not affect forwarding: the priority of a
//! VLAN tag, the DSCP, and the operation of ARP.

use bellrock_api::packet::eth_type;
use bellrock_api::{Field, Match, PacketIn, Version};
use etherparse::{
    LaxIpPayloadSlice, LaxIpv4Slice, LaxIpv6Slice, LaxNetSlice, LenSource, TransportSlice,
    ip_number,
};

use super::frame::FrameHeader;

/// Smaller values of the Ethernet type are lengths (IEEE 802.3 §3.2.6).
const FIRST_ETH_TYPE: u16 = 0x0600;

/// Sets the fields of 1.0 (§3.4) that the packet has, without the omitted ones; in 1.3 all of them,
/// and the corresponding fields for IPv6, SCTP and ICMPv6.
#[inline(never)]
pub(super) fn exact(packet: &PacketIn<'_>, frame: &FrameHeader, version: Version) -> Match {
    let mut matching = Match::any();
    link(&mut matching, packet, frame);
    if let Some(tag) = frame.vlan
        && !version.ranks_exact_flows_first()
    {
        matching.set(Field::VlanPcp, tag.pcp.into());
    }
    if frame.eth_type < FIRST_ETH_TYPE || eth_type::is_vlan_tag(frame.eth_type) {
        return matching;
    }
    matching.set(Field::EthType, frame.eth_type.into());
    network(&mut matching, packet, frame, version);
    matching
}

fn link(matching: &mut Match, packet: &PacketIn<'_>, frame: &FrameHeader) {
    matching.set(Field::InPort, packet.in_port().0.into());
    matching.set(Field::EthSrc, frame.src().to_u64().into());
    matching.set(Field::EthDst, frame.dst().to_u64().into());
    matching.set(Field::VlanVid, frame.vlan_vid().into());
}

/// Sets the fields above the link.
fn network(matching: &mut Match, packet: &PacketIn<'_>, frame: &FrameHeader, version: Version) {
    let Ok(headers) = packet.headers() else { return };
    // The parser accepts more kinds of tags than a switch does.
    if headers.link_exts.len() != usize::from(frame.vlan.is_some()) {
        return;
    }
    let whole = packet.is_whole();
    // The parser uses the version in the IP header, a switch first the Ethernet type.
    match (&headers.net, frame.eth_type) {
        (Some(LaxNetSlice::Arp(_)), eth_type::ARP) => arp(matching, packet, version),
        (Some(LaxNetSlice::Ipv4(header)), eth_type::IPV4)
            if has_its_length(header.payload(), whole) =>
        {
            ipv4(matching, header, headers.transport.as_ref(), version);
        }
        (Some(LaxNetSlice::Ipv6(header)), eth_type::IPV6)
            if has_its_length(header.payload(), whole) && version.can_match(Field::Ipv6Src) =>
        {
            ipv6(matching, header, headers.transport.as_ref());
        }
        _ => {}
    }
}

/// Sets the IPv4 addresses, and in 1.3 the operation. Operations above 255 are omitted: Open
/// vSwitch reads eight bits of them.
fn arp(matching: &mut Match, packet: &PacketIn<'_>, version: Version) {
    let Some(arp) = packet.arp() else { return };
    matching.set(Field::ArpSpa, arp.sender_ip.to_bits().into());
    matching.set(Field::ArpTpa, arp.target_ip.to_bits().into());
    if let operation @ 0..=255 = arp.operation
        && !version.ranks_exact_flows_first()
    {
        matching.set(Field::ArpOp, operation.into());
    }
}

/// Returns whether an IP packet is as long as its header says, or was cut only on its way to the
/// controller. A switch reads nothing of a packet with a wrong length.
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
    if !version.ranks_exact_flows_first() {
        matching.set(Field::IpDscp, header.dcp().value().into());
    }
    matching.set(Field::IpProto, header.protocol().0.into());
    matching.set(Field::Ipv4Src, u32::from_be_bytes(header.source()).into());
    matching.set(Field::Ipv4Dst, u32::from_be_bytes(header.destination()).into());
    // The parser reads behind an authentication header, a switch does not.
    if header.protocol() != payload.ip_number {
        return;
    }
    match parsed {
        Some(TransportSlice::Icmpv4(icmp)) => {
            matching.set(Field::Icmpv4Type, icmp.type_u8().into());
            matching.set(Field::Icmpv4Code, icmp.code_u8().into());
        }
        None if version.can_match(Field::SctpSrc) => sctp(matching, payload),
        _ => tcp_or_udp(matching, parsed),
    }
}

fn ipv6(matching: &mut Match, packet: &LaxIpv6Slice<'_>, parsed: Option<&TransportSlice<'_>>) {
    let (header, payload) = (packet.header(), packet.payload());
    matching.set(Field::IpDscp, header.dscp().value().into());
    matching.set(Field::Ipv6Src, header.source_addr().to_bits());
    matching.set(Field::Ipv6Dst, header.destination_addr().to_bits());
    // The protocol is behind the extension headers. Readers disagree on its place in fragments, and
    // behind extension headers that cannot be read.
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

/// Sets the ports of TCP and UDP. The parser returns none for fragments, not even for the first:
/// 1.0 (§3.4) matches every fragment with zero ports, and Open vSwitch does the same in 1.3.
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

/// Sets the ports of SCTP, which the parser does not support.
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
