//! ARP (RFC 826): finds the Ethernet address of an IPv4 address.

use std::net::Ipv4Addr;

use bellrock_openflow::MacAddr;
use etherparse::{ArpEthIpv4Packet, ArpOperation, LaxNetSlice, LaxSlicedPacket};

use super::build::{Ethernet, padded};

const ETH_TYPE: u16 = 0x0806;

/// Length of an ARP packet for IPv4 on Ethernet, in bytes.
const ARP_BYTES: usize = 28;

/// An ARP packet for IPv4 on Ethernet, in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp<'p> {
    /// The Ethernet header, with its VLAN tags and the type ARP.
    header: &'p [u8],
    /// 1 for a request, 2 for a reply.
    pub operation: u16,
    /// The sender's Ethernet address.
    pub sender_mac: MacAddr,
    /// The sender's IPv4 address; 0.0.0.0 in a probe.
    pub sender_ip: Ipv4Addr,
    /// The target's Ethernet address; undefined in a request.
    pub target_mac: MacAddr,
    /// The requested address.
    pub target_ip: Ipv4Addr,
}

impl<'p> Arp<'p> {
    /// `operation` of a request.
    pub const REQUEST: u16 = 1;
    /// `operation` of a reply.
    pub const REPLY: u16 = 2;

    /// Decodes a frame. `None` if it is not ARP for IPv4 on Ethernet, or is truncated.
    #[must_use]
    pub fn read(frame: &'p [u8]) -> Option<Self> {
        let headers = LaxSlicedPacket::from_ethernet(frame).ok()?;
        let Some(LaxNetSlice::Arp(arp)) = headers.net else { return None };
        let tags = headers.link_exts.len() * Ethernet::TAG_BYTES;
        let arp = arp.to_packet().try_eth_ipv4().ok()?;
        Some(Arp {
            header: frame.get(..Ethernet::HEADER_BYTES + tags)?,
            operation: arp.operation.0,
            sender_mac: MacAddr(arp.sender_mac),
            sender_ip: arp.sender_ipv4.into(),
            target_mac: MacAddr(arp.target_mac),
            target_ip: arp.target_ipv4.into(),
        })
    }

    /// Whether it announces its sender's own address (gratuitous ARP, RFC 5227 §2.3), and asks for
    /// none.
    #[must_use]
    pub fn is_announcement(&self) -> bool {
        self.sender_ip == self.target_ip
    }

    /// Whether its sender checks that an address is free before using it (RFC 5227 §2.1.1).
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.operation == Self::REQUEST && self.sender_ip.is_unspecified()
    }

    /// Whether it requests this address. A probe does: a reply to it means that the address is in
    /// use.
    #[must_use]
    pub fn is_request_for(&self, ip: Ipv4Addr) -> bool {
        self.operation == Self::REQUEST && self.target_ip == ip && !self.is_announcement()
    }

    /// Builds the reply, from `mac`: the requested address is at `mac`. The reply goes to the
    /// sender only, with the request's VLAN tags, and is padded.
    #[must_use]
    pub fn reply(&self, mac: MacAddr) -> Vec<u8> {
        let mut frame = Vec::with_capacity(self.header.len() + ARP_BYTES);
        frame.extend_from_slice(&self.sender_mac.0);
        frame.extend_from_slice(&mac.0);
        frame.extend_from_slice(self.header.get(12..).unwrap_or(&[]));
        let asker = (self.sender_mac, self.sender_ip);
        frame.extend_from_slice(&body(Self::REPLY, (mac, self.target_ip), asker));
        padded(frame)
    }
}

/// Builds a broadcast frame that requests `target`, from the host at `mac` with the address `ip`.
/// It is a probe if `ip` is 0.0.0.0.
#[must_use]
pub fn arp_request(mac: MacAddr, ip: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let request = body(Arp::REQUEST, (mac, ip), (MacAddr::ZERO, target));
    Ethernet::new(mac, MacAddr::BROADCAST).payload(ETH_TYPE, &request)
}

/// Builds a broadcast frame that announces `ip` at `mac` (gratuitous ARP, RFC 5227 §2.3), for an
/// address that has moved.
#[must_use]
pub fn arp_announcement(mac: MacAddr, ip: Ipv4Addr) -> Vec<u8> {
    arp_request(mac, ip, ip)
}

fn body(
    operation: u16,
    sender: (MacAddr, Ipv4Addr),
    target: (MacAddr, Ipv4Addr),
) -> [u8; ARP_BYTES] {
    let arp = ArpEthIpv4Packet {
        operation: ArpOperation(operation),
        sender_mac: sender.0.0,
        sender_ipv4: sender.1.octets(),
        target_mac: target.0.0,
        target_ipv4: target.1.octets(),
    };
    arp.to_bytes()
}
