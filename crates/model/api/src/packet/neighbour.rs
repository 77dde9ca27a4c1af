//! Neighbour discovery (RFC 4861): finds the Ethernet address of an IPv6 address.

use std::net::Ipv6Addr;

use bellrock_openflow::MacAddr;
use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};

use super::VlanTag;
use super::build::Ethernet;
use super::header::{EthHeader, eth_type};

/// Hop limit of all messages: it proves that no router forwarded them (RFC 4861 §7.1.1).
pub(super) const HOP_LIMIT: u8 = 255;

/// Options with an Ethernet address: the sender's in a solicitation, the target's in an
/// advertisement (RFC 4861 §4.6.1).
pub(super) const SOURCE_ADDRESS: u8 = 1;
pub(super) const TARGET_ADDRESS: u8 = 2;

/// A solicitation or advertisement behind an IPv6 header (RFC 4861 §4.3, §4.4). Its end may be cut
/// off: then a field that is not there is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourMessage<'p> {
    /// Source of the packet.
    pub source: Ipv6Addr,
    /// The ICMPv6 message.
    message: &'p [u8],
}

impl<'p> NeighbourMessage<'p> {
    /// Protocol number of ICMPv6.
    pub const PROTOCOL: u8 = 58;
    /// ICMPv6 type of a solicitation.
    pub const SOLICITATION: u8 = 135;
    /// ICMPv6 type of an advertisement.
    pub const ADVERTISEMENT: u8 = 136;
    /// Flag of an advertisement that answers a solicitation (RFC 4861 §4.4).
    pub const SOLICITED: u8 = 0x40;
    /// Flag of an advertisement that replaces what its receiver knows (RFC 4861 §4.4).
    pub const OVERRIDE: u8 = 0x20;

    /// Reads what is behind a header. `None` if it is not an ICMPv6 message directly behind an IPv6
    /// header, or has passed a router.
    #[must_use]
    pub fn of(header: &EthHeader<'p>) -> Option<Self> {
        let (ip, message) = header.payload.split_first_chunk::<40>()?;
        let source: &[u8; 16] = ip.get(8..)?.first_chunk()?;
        let is_neighbours =
            header.eth_type == eth_type::IPV6 && ip.get(6..8) == Some(&[Self::PROTOCOL, HOP_LIMIT]);
        is_neighbours.then(|| NeighbourMessage { source: (*source).into(), message })
    }

    /// Its ICMPv6 type.
    #[must_use]
    pub fn kind(&self) -> Option<u8> {
        self.message.first().copied()
    }

    /// The address that a solicitation requests. `None` for other messages.
    #[must_use]
    pub fn requested(&self) -> Option<Ipv6Addr> {
        let is_solicitation = self.message.starts_with(&[Self::SOLICITATION, 0]);
        self.target().filter(|_| is_solicitation)
    }

    /// The address that the message is about.
    #[must_use]
    pub fn target(&self) -> Option<Ipv6Addr> {
        let target: &[u8; 16] = self.message.get(8..)?.first_chunk()?;
        Some(Ipv6Addr::from(*target))
    }

    /// The Ethernet address of the target, if the first option has it.
    #[must_use]
    pub fn target_mac(&self) -> Option<MacAddr> {
        match self.message.get(24..)?.first_chunk::<8>()? {
            [TARGET_ADDRESS, 1, mac @ ..] => Some(MacAddr(*mac)),
            _ => None,
        }
    }
}

/// A neighbour solicitation (RFC 4861 §4.3) in a frame: it requests an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Solicitation {
    /// The sender's Ethernet address.
    pub sender_mac: MacAddr,
    /// The sender's IPv6 address; `::` when it checks that an address is free (RFC 4862 §5.4).
    pub sender_ip: Ipv6Addr,
    /// The requested address.
    pub target: Ipv6Addr,
    /// VLAN tag of the frame.
    vlan: Option<VlanTag>,
}

impl Solicitation {
    /// Decodes a frame, in which IPv6 extension headers may stand before the message. `None` if it
    /// is not a solicitation, is truncated, or has passed a router.
    #[must_use]
    pub fn read(frame: &[u8]) -> Option<Self> {
        let headers = LaxSlicedPacket::from_ethernet(frame).ok()?;
        let Some(LaxNetSlice::Ipv6(ip)) = &headers.net else { return None };
        let Some(TransportSlice::Icmpv6(icmp)) = &headers.transport else { return None };
        if ip.header().hop_limit() != HOP_LIMIT {
            return None;
        }
        let source = ip.header().source_addr();
        Some(Solicitation {
            sender_mac: MacAddr(*frame.get(6..)?.first_chunk()?),
            sender_ip: source,
            target: NeighbourMessage { source, message: icmp.slice() }.requested()?,
            vlan: VlanTag::of(frame),
        })
    }

    /// Builds the advertisement: the requested address is at `mac`. It goes to the sender only, or
    /// to all nodes if the sender has no address yet (RFC 4861 §7.2.4). It has the solicitation's
    /// VLAN tag.
    #[must_use]
    pub fn advertisement(&self, mac: MacAddr) -> Vec<u8> {
        const ALL_NODES: (MacAddr, Ipv6Addr) =
            (MacAddr([0x33, 0x33, 0, 0, 0, 1]), Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1));
        let (to, solicited) = match self.sender_ip.is_unspecified() {
            true => (ALL_NODES, 0),
            false => ((self.sender_mac, self.sender_ip), NeighbourMessage::SOLICITED),
        };
        let ethernet = Ethernet::new(mac, to.0);
        let ethernet = self.vlan.map_or(ethernet, |tag| ethernet.vlan(tag));
        let kind = NeighbourMessage::ADVERTISEMENT;
        let flags = solicited | NeighbourMessage::OVERRIDE;
        ethernet.neighbour(kind, flags, (self.target, to.1), self.target)
    }
}
