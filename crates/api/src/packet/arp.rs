//! ARP (RFC 826): who has an IPv4 address.

use std::net::Ipv4Addr;

use bellrock_openflow::MacAddr;
use etherparse::{ArpEthIpv4Packet, ArpOperation, LaxNetSlice, LaxSlicedPacket};

use super::build::{Ethernet, padded};

const ETH_TYPE: u16 = 0x0806;

/// Bytes of an ARP packet for IPv4 on Ethernet.
const ARP_BYTES: usize = 28;

/// An ARP packet for IPv4 on Ethernet, in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp<'p> {
    /// The Ethernet header, with its tags and the type ARP.
    header: &'p [u8],
    /// 1: a request; 2: a reply.
    pub operation: u16,
    /// The sender's Ethernet address.
    pub sender_mac: MacAddr,
    /// The sender's IPv4 address; 0.0.0.0 in a probe.
    pub sender_ip: Ipv4Addr,
    /// The target's Ethernet address; without meaning in a request.
    pub target_mac: MacAddr,
    /// The address that a request asks for.
    pub target_ip: Ipv4Addr,
}

impl<'p> Arp<'p> {
    /// `operation` of a request.
    pub const REQUEST: u16 = 1;
    /// `operation` of a reply.
    pub const REPLY: u16 = 2;

    /// Reads a frame. `None`: it is not ARP for IPv4 on Ethernet, or is cut off.
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

    /// Whether it tells everybody where its own sender is (gratuitous ARP, RFC 5227 §2.3): it asks nobody.
    #[must_use]
    pub fn is_announcement(&self) -> bool {
        self.sender_ip == self.target_ip
    }

    /// Whether its sender wants to know if the address is free before taking it (RFC 5227 §2.1.1).
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.operation == Self::REQUEST && self.sender_ip.is_unspecified()
    }

    /// Whether it asks who has this address. A probe does: an answer says that the address is taken.
    #[must_use]
    pub fn asks_for(&self, ip: Ipv4Addr) -> bool {
        self.operation == Self::REQUEST && self.target_ip == ip && !self.is_announcement()
    }

    /// The reply to it: the address that it asks for is at `mac`. It goes to the asker alone, from `mac`, with
    /// the request's VLAN tags, and is padded.
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

/// A frame that asks everybody who has `target`, for the host at `mac` with the address `ip`. With 0.0.0.0 as
/// `ip` it is a probe.
#[must_use]
pub fn arp_request(mac: MacAddr, ip: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let request = body(Arp::REQUEST, (mac, ip), (MacAddr::ZERO, target));
    Ethernet::new(mac, MacAddr::BROADCAST).payload(ETH_TYPE, &request)
}

/// A frame that tells everybody that `ip` is at `mac` (gratuitous ARP, RFC 5227 §2.3): for an address that has
/// moved.
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
