//! Reads what a packet reports of the host that sent it.

use std::net::{IpAddr, Ipv4Addr};

use bellrock_api::HostId;
use bellrock_api::packet::{Arp, EthHeader, NeighbourMessage, VlanTag, eth_type};

/// What a packet reports of its sender's IP addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SenderAddresses {
    Nothing,
    /// The sender states that this is its address: ARP or neighbour discovery.
    Address(IpAddr),
    /// The packet's source address. It may belong to another host behind the sender.
    Used(IpAddr),
}

/// Returns the host that sent a packet.
pub(super) fn sender(header: &EthHeader<'_>) -> HostId {
    HostId::new(header.src, header.vlan().and_then(VlanTag::vlan))
}

/// Whether the sender may be a host, and the packet is not for the other end of its link only.
pub(super) fn is_from_host(header: &EthHeader<'_>) -> bool {
    header.src.is_station() && !header.dst.is_link_local()
}

/// Whether the packet may state an address of its sender, and needs a closer look.
#[inline]
pub(super) fn may_state_address(header: &EthHeader<'_>) -> bool {
    let is_icmpv6 = || header.payload.get(6) == Some(&NeighbourMessage::PROTOCOL);
    header.eth_type == eth_type::ARP || (header.eth_type == eth_type::IPV6 && is_icmpv6())
}

impl SenderAddresses {
    /// Reads what the packet reports.
    pub(super) fn of(header: &EthHeader<'_>) -> Self {
        let addresses = match header.eth_type {
            eth_type::ARP => stated_by_arp(header).map(Self::Address),
            eth_type::IPV6 => stated_by_neighbour(header).map(Self::Address),
            eth_type::IPV4 => ipv4_source(header).map(Self::Used),
            _ => None,
        };
        let is_usable = |ip: &IpAddr| match ip {
            IpAddr::V4(ip) => !ip.is_unspecified() && !ip.is_multicast() && !ip.is_broadcast(),
            IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast(),
        };
        match addresses {
            Some(known @ (Self::Address(ip) | Self::Used(ip))) if is_usable(&ip) => known,
            _ => Self::Nothing,
        }
    }
}

/// Returns the sender's address in an ARP packet, if the packet is about its own sender.
fn stated_by_arp(header: &EthHeader<'_>) -> Option<IpAddr> {
    let arp = Arp::of(header).filter(|arp| arp.sender_mac == header.src)?;
    Some(arp.sender_ip.into())
}

/// Returns the sender's address in a neighbour solicitation or advertisement.
fn stated_by_neighbour(header: &EthHeader<'_>) -> Option<IpAddr> {
    let message = NeighbourMessage::of(header)?;
    match message.kind()? {
        NeighbourMessage::SOLICITATION => Some(message.source.into()),
        NeighbourMessage::ADVERTISEMENT => {
            // Without the option, the sender speaks of its own address.
            let is_own = message.target_mac().is_none_or(|mac| mac == header.src);
            message.target().filter(|_| is_own).map(IpAddr::V6)
        }
        _ => None,
    }
}

fn ipv4_source(header: &EthHeader<'_>) -> Option<IpAddr> {
    let source: &[u8; 4] = header.payload.get(12..)?.first_chunk()?;
    Some(IpAddr::V4(Ipv4Addr::from(*source)))
}
