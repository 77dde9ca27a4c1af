//! Reads what a packet reports of the host that sent it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bellrock_api::{HostId, MacAddr};

pub(super) const ETH_TYPE_IPV4: u16 = 0x0800;
pub(super) const ETH_TYPE_ARP: u16 = 0x0806;
pub(super) const ETH_TYPE_IPV6: u16 = 0x86dd;
const TAGS: [u16; 2] = [0x8100, 0x88a8];

const HEADER_LEN: usize = 14;
const TAG_LEN: usize = 4;

/// ARP for IPv4 over Ethernet: hardware, protocol, and the lengths of their addresses (RFC 826).
const ARP_HEAD: [u8; 6] = [0, 1, 8, 0, 6, 4];

const IPV6_LEN: usize = 40;
const ICMPV6: u8 = 58;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
const TARGET_LINK_ADDRESS: u8 = 2;

/// The Ethernet header of a packet, with its outermost VLAN tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameHeader<'p> {
    pub(super) src: MacAddr,
    pub(super) dst: MacAddr,
    /// `None` also for a tag with only a priority.
    pub(super) vlan: Option<u16>,
    pub(super) eth_type: u16,
    /// The bytes behind the header.
    payload: &'p [u8],
}

/// What a packet reports of its sender's IP addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SenderAddresses {
    Nothing,
    /// The sender states that this is its address: ARP or neighbour discovery.
    Address(IpAddr),
    /// The packet's source address. It may belong to another host behind the sender.
    Used(IpAddr),
}

impl<'p> FrameHeader<'p> {
    /// Returns `None` for a packet that ends within its header.
    pub(super) fn read(data: &'p [u8]) -> Option<Self> {
        let (dst, rest) = data.split_first_chunk()?;
        let (src, rest) = rest.split_first_chunk()?;
        let (eth_type, rest) = rest.split_first_chunk()?;
        let (src, dst) = (MacAddr(*src), MacAddr(*dst));
        let eth_type = u16::from_be_bytes(*eth_type);
        if !TAGS.contains(&eth_type) {
            return Some(FrameHeader { src, dst, vlan: None, eth_type, payload: rest });
        }
        let ([t0, t1, e0, e1], payload) = rest.split_first_chunk()?;
        let vlan = u16::from_be_bytes([*t0, *t1]) & 0x0fff;
        let eth_type = u16::from_be_bytes([*e0, *e1]);
        Some(FrameHeader { src, dst, vlan: (vlan != 0).then_some(vlan), eth_type, payload })
    }

    pub(super) fn host(&self) -> HostId {
        HostId::new(self.src, self.vlan)
    }

    /// Whether the sender may be a host, and the packet is not for the other end of its link only.
    pub(super) fn is_from_host(&self) -> bool {
        self.src.is_station() && !self.dst.is_link_local()
    }

    /// Returns what the packet reports of its sender's addresses.
    pub(super) fn sender_addresses(&self) -> SenderAddresses {
        let addresses = match self.eth_type {
            ETH_TYPE_ARP => self.arp().map(SenderAddresses::Address),
            ETH_TYPE_IPV6 => self.neighbour_discovery().map(SenderAddresses::Address),
            ETH_TYPE_IPV4 => self.ipv4_source().map(SenderAddresses::Used),
            _ => None,
        };
        let is_usable = |ip: &IpAddr| match ip {
            IpAddr::V4(ip) => !ip.is_unspecified() && !ip.is_multicast() && !ip.is_broadcast(),
            IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast(),
        };
        match addresses {
            Some(addresses @ (SenderAddresses::Address(ip) | SenderAddresses::Used(ip)))
                if is_usable(&ip) =>
            {
                addresses
            }
            _ => SenderAddresses::Nothing,
        }
    }

    /// Whether the packet may state an address of its sender, and needs a closer look.
    #[inline]
    pub(super) fn may_state_address(&self) -> bool {
        self.eth_type == ETH_TYPE_ARP
            || (self.eth_type == ETH_TYPE_IPV6 && self.payload.get(6) == Some(&ICMPV6))
    }

    /// Returns the sender's address in an ARP packet, if the packet is about its own sender.
    fn arp(&self) -> Option<IpAddr> {
        let (head, rest) = self.payload.split_first_chunk()?;
        let sender_mac: &[u8; 6] = rest.get(2..)?.first_chunk()?;
        let sender_ip: &[u8; 4] = rest.get(8..)?.first_chunk()?;
        let is_own = *head == ARP_HEAD && MacAddr(*sender_mac) == self.src;
        is_own.then(|| IpAddr::V4(Ipv4Addr::from(*sender_ip)))
    }

    /// Returns the sender's address in a neighbour solicitation or advertisement (RFC 4861
    /// §4.3-4.4).
    fn neighbour_discovery(&self) -> Option<IpAddr> {
        let (header, message) = self.payload.split_at_checked(IPV6_LEN)?;
        // Only neighbours can send it with this hop limit (§7.1).
        const HOP_LIMIT: u8 = 255;
        if header.get(6..8) != Some(&[ICMPV6, HOP_LIMIT]) {
            return None;
        }
        match *message.first()? {
            NEIGHBOUR_SOLICITATION => {
                let source: &[u8; 16] = header.get(8..)?.first_chunk()?;
                Some(IpAddr::V6(Ipv6Addr::from(*source)))
            }
            NEIGHBOUR_ADVERTISEMENT => {
                let target: &[u8; 16] = message.get(8..)?.first_chunk()?;
                let option = message.get(24..).and_then(<[u8]>::first_chunk::<8>);
                // Without the option, the sender speaks of its own address.
                let is_own = match option {
                    Some([TARGET_LINK_ADDRESS, 1, mac @ ..]) => MacAddr(*mac) == self.src,
                    _ => true,
                };
                is_own.then(|| IpAddr::V6(Ipv6Addr::from(*target)))
            }
            _ => None,
        }
    }

    fn ipv4_source(&self) -> Option<IpAddr> {
        let source: &[u8; 4] = self.payload.get(12..)?.first_chunk()?;
        Some(IpAddr::V4(Ipv4Addr::from(*source)))
    }
}

/// Bytes of a frame before its payload.
pub(super) const fn header_len(vlan: Option<u16>) -> usize {
    if vlan.is_some() { HEADER_LEN + TAG_LEN } else { HEADER_LEN }
}
