//! ARP (RFC 826): finds the Ethernet address of an IPv4 address.

use std::net::Ipv4Addr;

use bellrock_openflow::MacAddr;

use super::build::Ethernet;
use super::header::{EthHeader, eth_type};

/// The beginning of an ARP packet: Ethernet and IPv4, with lengths of addresses.
pub(super) const ARP_HEAD: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// An ARP packet for IPv4 on Ethernet, in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp<'p> {
    /// The frame's VLAN tags.
    tags: &'p [u8],
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

    /// Decodes a frame, with up to three VLAN tags. `None` if it is not ARP for IPv4 on Ethernet,
    /// or is truncated.
    #[must_use]
    pub fn read(frame: &'p [u8]) -> Option<Self> {
        Self::of(&EthHeader::read_tags(frame, Ethernet::MAX_TAGS)?)
    }

    /// Decodes what is behind a header. `None` if it is not ARP for IPv4 on Ethernet, or is
    /// truncated.
    #[must_use]
    pub fn of(header: &EthHeader<'p>) -> Option<Self> {
        let (head, rest) = header.payload.split_first_chunk()?;
        let (operation, rest) = rest.split_first_chunk()?;
        let (sender_mac, rest) = rest.split_first_chunk()?;
        let (sender_ip, rest) = rest.split_first_chunk::<4>()?;
        let (target_mac, rest) = rest.split_first_chunk()?;
        let target_ip = rest.first_chunk::<4>()?;
        let is_arp = header.eth_type == eth_type::ARP && *head == ARP_HEAD;
        is_arp.then(|| Arp {
            tags: header.tags,
            operation: u16::from_be_bytes(*operation),
            sender_mac: MacAddr(*sender_mac),
            sender_ip: (*sender_ip).into(),
            target_mac: MacAddr(*target_mac),
            target_ip: (*target_ip).into(),
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

    /// Whether it requests an address. A probe does: a reply to it means that the address is in
    /// use.
    #[must_use]
    pub fn is_request(&self) -> bool {
        self.operation == Self::REQUEST && !self.is_announcement()
    }

    /// Whether it requests this address.
    #[must_use]
    pub fn is_request_for(&self, ip: Ipv4Addr) -> bool {
        self.is_request() && self.target_ip == ip
    }

    /// Builds the reply, from `mac`: the requested address is at `mac`. The reply goes to the
    /// sender only, with the request's VLAN tags, and is padded.
    #[must_use]
    pub fn reply(&self, mac: MacAddr) -> Vec<u8> {
        self.reply_to(self.sender_mac, mac)
    }

    /// Builds the reply like [`Arp::reply`], in a frame to another address than the sender's: the
    /// source of the request's frame.
    #[must_use]
    pub fn reply_to(&self, to: MacAddr, mac: MacAddr) -> Vec<u8> {
        let asker = (self.sender_mac, self.sender_ip);
        let ethernet = Ethernet::new(mac, to).tags(self.tags);
        ethernet.arp(Self::REPLY, (mac, self.target_ip), asker)
    }
}

/// Builds a broadcast frame that requests `target`, from the host at `mac` with the address `ip`.
/// It is a probe if `ip` is 0.0.0.0.
#[must_use]
pub fn arp_request(mac: MacAddr, ip: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let ethernet = Ethernet::new(mac, MacAddr::BROADCAST);
    ethernet.arp(Arp::REQUEST, (mac, ip), (MacAddr::ZERO, target))
}

/// Builds a broadcast frame that announces `ip` at `mac` (gratuitous ARP, RFC 5227 §2.3), for an
/// address that has moved.
#[must_use]
pub fn arp_announcement(mac: MacAddr, ip: Ipv4Addr) -> Vec<u8> {
    arp_request(mac, ip, ip)
}
