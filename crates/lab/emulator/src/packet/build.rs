//! Builds frames for hosts and tests, with the right lengths and checksums.
//!
//! ```
//! use bellrock_emulator::packet::build::{Eth, IpFields};
//! use bellrock_openflow::MacAddr;
//! use std::net::Ipv4Addr;
//!
//! let eth = Eth::new(MacAddr([0, 0, 0, 0, 0, 1]), MacAddr([0, 0, 0, 0, 0, 2])).vlan(5, 0);
//! let ip = IpFields::v4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)).ttl(64);
//! let frame = eth.ip(&ip.udp(1_000, 53, b"a question"));
//! assert_eq!(frame.len(), 14 + 4 + 20 + 8 + 10);
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bellrock_openflow::MacAddr;

use super::EthernetFrame;
use super::checksum;
use super::parse::{
    ARP_HEAD, ARP_LEN, ICMP, ICMPV6, IPV4_LEN, SCTP, TCP, TYPE_ARP, TYPE_IPV4, TYPE_IPV6,
    TYPE_VLAN, UDP,
};

/// The start of a frame: addresses and tags.
#[derive(Clone, Debug)]
pub struct Eth(Vec<u8>);

impl Eth {
    /// A frame from one address to another.
    #[must_use]
    pub fn new(src: MacAddr, dst: MacAddr) -> Self {
        Eth([dst.0, src.0].concat())
    }

    /// Appends a VLAN tag of type 0x8100.
    #[must_use]
    pub fn vlan(self, id: u16, pcp: u8) -> Self {
        self.tag(TYPE_VLAN, u16::from(pcp) << 13 | id & 0x0fff)
    }

    /// Appends a tag of this type with these two bytes.
    #[must_use]
    pub fn tag(mut self, eth_type: u16, tci: u16) -> Self {
        self.0.extend([eth_type.to_be_bytes(), tci.to_be_bytes()].concat());
        self
    }

    /// The frame, with a payload of this Ethernet type.
    #[must_use]
    pub fn payload(mut self, eth_type: u16, payload: &[u8]) -> EthernetFrame {
        self.0.extend(eth_type.to_be_bytes());
        self.0.extend(payload);
        EthernetFrame::from(self.0)
    }

    /// The frame, with an IP packet.
    #[must_use]
    pub fn ip(self, packet: &IpPacket) -> EthernetFrame {
        self.payload(packet.eth_type, &packet.bytes)
    }

    /// The frame, with an ARP message: operation 1 is a request, 2 a reply (RFC 826).
    #[must_use]
    pub fn arp(
        self,
        operation: u16,
        sender: (MacAddr, Ipv4Addr),
        target: (MacAddr, Ipv4Addr),
    ) -> EthernetFrame {
        self.payload(TYPE_ARP, &arp(operation, sender, target))
    }
}

/// An ARP message for Ethernet and IPv4 (RFC 826).
pub(crate) fn arp(
    operation: u16,
    sender: (MacAddr, Ipv4Addr),
    target: (MacAddr, Ipv4Addr),
) -> [u8; ARP_LEN] {
    let mut arp = [0; ARP_LEN];
    arp[..6].copy_from_slice(&ARP_HEAD);
    arp[6..8].copy_from_slice(&operation.to_be_bytes());
    for (at, (mac, ip)) in [(8, sender), (18, target)] {
        arp[at..at + 6].copy_from_slice(&mac.0);
        arp[at + 6..at + 10].copy_from_slice(&ip.octets());
    }
    arp
}

/// An IP packet.
#[derive(Clone, Debug)]
pub struct IpPacket {
    eth_type: u16,
    bytes: Vec<u8>,
}

impl IpPacket {
    /// Its bytes, from its first header on.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The values of an IP header. The methods for higher protocols make a packet of it.
#[derive(Clone, Debug)]
pub struct IpFields {
    src: IpAddr,
    dst: IpAddr,
    ttl: u8,
    traffic_class: u8,
    /// IPv4's "more fragments" and the offset in units of eight bytes, as in the header.
    fragment: u16,
    id: u16,
}

/// The initial TTL of most hosts.
const TTL: u8 = 64;

impl IpFields {
    /// From one IPv4 address to another, with a TTL of 64.
    #[must_use]
    pub const fn v4(src: Ipv4Addr, dst: Ipv4Addr) -> Self {
        Self::new(IpAddr::V4(src), IpAddr::V4(dst))
    }

    /// From one IPv6 address to another, with a hop limit of 64.
    #[must_use]
    pub const fn v6(src: Ipv6Addr, dst: Ipv6Addr) -> Self {
        Self::new(IpAddr::V6(src), IpAddr::V6(dst))
    }

    const fn new(src: IpAddr, dst: IpAddr) -> Self {
        IpFields { src, dst, ttl: TTL, traffic_class: 0, fragment: 0, id: 0 }
    }

    /// Sets the TTL or hop limit.
    #[must_use]
    pub const fn ttl(self, ttl: u8) -> Self {
        IpFields { ttl, ..self }
    }

    /// Sets the DSCP (6 bits) and ECN (2 bits).
    #[must_use]
    pub const fn dscp(self, dscp: u8, ecn: u8) -> Self {
        IpFields { traffic_class: dscp << 2 | ecn & 3, ..self }
    }

    /// Sets the identification (IPv4).
    #[must_use]
    pub const fn id(self, id: u16) -> Self {
        IpFields { id, ..self }
    }

    /// Makes it a fragment: `offset` in units of eight bytes (IPv4).
    #[must_use]
    pub const fn fragment(self, offset: u16, more: bool) -> Self {
        IpFields { fragment: offset & 0x1fff | (more as u16) << 13, ..self }
    }

    /// An IPv4 header without options, for a payload of this length.
    pub(crate) fn ipv4_header(
        &self,
        (src, dst): (Ipv4Addr, Ipv4Addr),
        protocol: u8,
        len: u16,
    ) -> [u8; IPV4_LEN] {
        let [l0, l1] = (len + IPV4_LEN as u16).to_be_bytes();
        let ([i0, i1], [f0, f1]) = (self.id.to_be_bytes(), self.fragment.to_be_bytes());
        let ([s0, s1, s2, s3], [d0, d1, d2, d3]) = (src.octets(), dst.octets());
        let (class, ttl) = (self.traffic_class, self.ttl);
        let mut header = [
            0x45, class, l0, l1, i0, i1, f0, f1, ttl, protocol, 0, 0, s0, s1, s2, s3, d0, d1, d2,
            d3,
        ];
        let sum = checksum::finish(checksum::add(0, &header));
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    }

    /// The packet, with a payload of this protocol.
    #[must_use]
    pub fn payload(&self, protocol: u8, payload: &[u8]) -> IpPacket {
        let len = payload.len() as u16;
        let mut bytes = Vec::with_capacity(40 + payload.len());
        let eth_type = match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                bytes.extend(self.ipv4_header((src, dst), protocol, len));
                TYPE_IPV4
            }
            (src, dst) => {
                let class = u32::from(self.traffic_class);
                bytes.extend((6 << 28 | class << 20).to_be_bytes());
                bytes.extend(len.to_be_bytes());
                bytes.extend([protocol, self.ttl]);
                bytes.extend([ipv6(src).octets(), ipv6(dst).octets()].concat());
                TYPE_IPV6
            }
        };
        bytes.extend(payload);
        IpPacket { eth_type, bytes }
    }

    /// A UDP datagram.
    #[must_use]
    pub fn udp(&self, src: u16, dst: u16, data: &[u8]) -> IpPacket {
        let mut udp = [src, dst, data.len() as u16 + 8, 0].map(u16::to_be_bytes).concat();
        udp.extend(data);
        // A sum of zero is sent as 0xffff: zero means "no checksum" (RFC 768).
        let sum = match self.checksum(UDP, &udp) {
            0 => 0xffff,
            sum => sum,
        };
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        self.payload(UDP, &udp)
    }

    /// A TCP segment without options. `flags`: the low byte of the flags (FIN is 1, SYN 2, RST 4,
    /// PSH 8, ACK 16).
    #[must_use]
    pub fn tcp(&self, ports: (u16, u16), seq: u32, ack: u32, flags: u8, data: &[u8]) -> IpPacket {
        let mut tcp = [ports.0, ports.1].map(u16::to_be_bytes).concat();
        tcp.extend([seq, ack].map(u32::to_be_bytes).concat());
        tcp.extend([5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(data);
        let sum = self.checksum(TCP, &tcp);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        self.payload(TCP, &tcp)
    }

    /// An SCTP packet of these chunks (RFC 9260 §3).
    #[must_use]
    pub fn sctp(&self, src: u16, dst: u16, chunks: &[u8]) -> IpPacket {
        let mut sctp = [src, dst, 0, 0, 0, 0].map(u16::to_be_bytes).concat();
        sctp.extend(chunks);
        let crc = checksum::crc32c(sctp.iter().copied());
        sctp[8..12].copy_from_slice(&crc);
        self.payload(SCTP, &sctp)
    }

    /// An ICMP or ICMPv6 message: type, code, and all after the checksum (at least four bytes).
    #[must_use]
    pub fn icmp(&self, kind: u8, code: u8, rest: &[u8]) -> IpPacket {
        let mut icmp = vec![kind, code, 0, 0];
        icmp.extend(rest);
        let (protocol, sum) = match self.src {
            IpAddr::V4(_) => (ICMP, checksum::finish(checksum::add(0, &icmp))),
            IpAddr::V6(_) => (ICMPV6, self.checksum(ICMPV6, &icmp)),
        };
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        self.payload(protocol, &icmp)
    }

    /// An echo request (RFC 792, RFC 4443).
    #[must_use]
    pub fn ping(&self, id: u16, sequence: u16, data: &[u8]) -> IpPacket {
        self.echo(if self.src.is_ipv4() { 8 } else { 128 }, id, sequence, data)
    }

    /// An echo reply.
    #[must_use]
    pub fn pong(&self, id: u16, sequence: u16, data: &[u8]) -> IpPacket {
        self.echo(if self.src.is_ipv4() { 0 } else { 129 }, id, sequence, data)
    }

    fn echo(&self, kind: u8, id: u16, sequence: u16, data: &[u8]) -> IpPacket {
        let mut rest = [id, sequence].map(u16::to_be_bytes).concat();
        rest.extend(data);
        self.icmp(kind, 0, &rest)
    }

    /// The Internet checksum of the data above IP, with the pseudo-header (RFC 768, RFC 8200 §8.1).
    fn checksum(&self, protocol: u8, bytes: &[u8]) -> u16 {
        checksum::finish(checksum::add(self.pseudo(protocol, bytes.len()), bytes))
    }

    /// The sum over the pseudo-header, for data of this length above IP.
    pub(crate) fn pseudo(&self, protocol: u8, len: usize) -> u64 {
        let sum = u64::from(protocol) + len as u64;
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                checksum::add(checksum::add(sum, &src.octets()), &dst.octets())
            }
            (src, dst) => {
                checksum::add(checksum::add(sum, &ipv6(src).octets()), &ipv6(dst).octets())
            }
        }
    }
}

fn ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}
