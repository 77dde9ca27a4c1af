//! Neighbour discovery (RFC 4861): finds the Ethernet address of an IPv6 address.

use std::net::Ipv6Addr;

use bellrock_openflow::MacAddr;
use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};

use super::build::Ethernet;
use super::{PacketIn, VlanTag};

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;

/// Hop limit of all messages: it proves that no router forwarded them (RFC 4861 §7.1.1).
const HOP_LIMIT: u8 = 255;

/// Flags of an advertisement (RFC 4861 §4.4).
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

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
    /// Decodes a frame. `None` if it is not a solicitation, is truncated, or has passed a router.
    #[must_use]
    pub fn read(frame: &[u8]) -> Option<Self> {
        let headers = LaxSlicedPacket::from_ethernet(frame).ok()?;
        let Some(LaxNetSlice::Ipv6(ip)) = &headers.net else { return None };
        let Some(TransportSlice::Icmpv6(icmp)) = &headers.transport else { return None };
        if icmp.type_u8() != SOLICITATION
            || icmp.code_u8() != 0
            || ip.header().hop_limit() != HOP_LIMIT
        {
            return None;
        }
        let target = icmp.payload().first_chunk::<16>()?;
        Some(Solicitation {
            sender_mac: MacAddr(*frame.get(6..)?.first_chunk()?),
            sender_ip: ip.header().source_addr(),
            target: Ipv6Addr::from(*target),
            vlan: PacketIn::vlan_of(frame),
        })
    }

    /// Builds the advertisement: the requested address is at `mac`. It goes to the sender only, or
    /// to all nodes if the sender has no address yet (RFC 4861 §7.2.4). It has the solicitation's
    /// VLAN tag.
    #[must_use]
    pub fn advertisement(&self, mac: MacAddr) -> Vec<u8> {
        const ALL_NODES: (MacAddr, Ipv6Addr) =
            (MacAddr([0x33, 0x33, 0, 0, 0, 1]), Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1));
        let (to, flags) = match self.sender_ip.is_unspecified() {
            true => (ALL_NODES, OVERRIDE),
            false => ((self.sender_mac, self.sender_ip), SOLICITED | OVERRIDE),
        };
        let ethernet = Ethernet::new(mac, to.0);
        let ethernet = self.vlan.map_or(ethernet, |tag| ethernet.vlan(tag));
        // The address, and the link-layer option: type 2, one unit of 8 bytes (RFC 4861 §4.6.1).
        let mut rest = [0; 24];
        rest[..16].copy_from_slice(&self.target.octets());
        rest[16..18].copy_from_slice(&[2, 1]);
        rest[18..].copy_from_slice(&mac.0);
        let ip = ethernet.ipv6(self.target, to.1).ttl(HOP_LIMIT);
        // 24 bytes fit.
        ip.icmpv6(ADVERTISEMENT, 0, [flags, 0, 0, 0], &rest).unwrap_or_default()
    }
}
