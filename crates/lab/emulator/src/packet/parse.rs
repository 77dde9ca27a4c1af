//! Parses the fields of a frame (1.0 §3.4; 1.3.5 §5.3, §7.2.3.7).
//!
//! A header that is truncated or contradicts itself has no fields, and parsing ends there. The
//! headers before it keep their fields.

use bellrock_openflow::{Field, Match, Version};

use super::PacketKey;

pub(crate) const ETH_LEN: usize = 14;
pub(super) const TAG_LEN: usize = 4;
pub(super) const LABEL_LEN: usize = 4;
/// The service tag with the customer's addresses after it (IEEE 802.1ah).
pub(super) const PBB_LEN: usize = 16;

pub(crate) const TYPE_IPV4: u16 = 0x0800;
pub(crate) const TYPE_ARP: u16 = 0x0806;
pub(crate) const TYPE_VLAN: u16 = 0x8100;
pub(crate) const TYPE_IPV6: u16 = 0x86dd;
pub(crate) const TYPE_MPLS: u16 = 0x8847;
pub(crate) const TYPE_MPLS_MULTICAST: u16 = 0x8848;
pub(crate) const TYPE_PROVIDER_VLAN: u16 = 0x88a8;
pub(crate) const TYPE_PBB: u16 = 0x88e7;
/// The Ethernet type for frames of IEEE 802.3 without one (1.0 §3.4, `OFP_DL_TYPE_NOT_ETH_TYPE`).
const TYPE_NONE: u16 = 0x05ff;
/// The smallest Ethernet type; a smaller number is a length (IEEE 802.3 §3.2.6).
const FIRST_TYPE: u16 = 0x0600;
/// LLC and SNAP headers that announce an Ethernet type.
const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;
pub(crate) const SCTP: u8 = 132;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const ESP: u8 = 50;
const AUTHENTICATION: u8 = 51;
const NO_NEXT: u8 = 59;
const DESTINATION: u8 = 60;

pub(crate) const SOLICITATION: u8 = 135;
pub(crate) const ADVERTISEMENT: u8 = 136;

pub(crate) const IPV4_LEN: usize = 20;
pub(super) const IPV6_LEN: usize = 40;
pub(crate) const ARP_LEN: usize = 28;
/// Start of an ARP message for Ethernet and IPv4: their numbers and address lengths (6 and 4).
pub(crate) const ARP_HEAD: [u8; 6] = [0, 1, 0x08, 0, 6, 4];

/// Positions of a frame's headers, in bytes from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeaderLayout {
    /// The header that the Ethernet type announces, after all tags.
    pub(super) l3: usize,
    /// TCP, UDP, SCTP or ICMP; 0 for none.
    pub(super) l4: usize,
    /// The byte of the IP header with the protocol above it.
    pub(super) protocol: usize,
    /// The end of the IP packet; padding may follow.
    pub(super) end: usize,
    /// The Ethernet address in a neighbour discovery option; 0 for none.
    pub(super) nd_link: usize,
    /// Whether the IP packet is a fragment, the first or a later one.
    pub(super) fragment: bool,
    /// Whether a routing header has another final destination than the IPv6 header.
    pub(super) routed: bool,
}

/// Reads two, four or more bytes at `at` as a number.
pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn be48(bytes: &[u8], at: usize) -> Option<u64> {
    let [a, b, c, d, e, f] = *bytes.get(at..)?.first_chunk()?;
    Some(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

fn be128(bytes: &[u8], at: usize) -> Option<u128> {
    Some(u128::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) const fn is_tag(eth_type: u16) -> bool {
    matches!(eth_type, TYPE_VLAN | TYPE_PROVIDER_VLAN)
}

/// Parses a frame's headers into `key`. The pipeline fields of `key` stay.
pub(super) fn parse(frame: &[u8], rules: Version, key: &mut PacketKey) -> HeaderLayout {
    let mut parser = Parser { frame, rules, key, layout: HeaderLayout::default() };
    // If the frame is too short for a header, that header has no fields.
    let _ = parser.ethernet();
    parser.layout
}

struct Parser<'a> {
    frame: &'a [u8],
    rules: Version,
    key: &'a mut PacketKey,
    layout: HeaderLayout,
}

impl Parser<'_> {
    fn put(&mut self, field: Field, value: impl Into<u128>) {
        self.key.put(field, value.into());
    }

    fn ethernet(&mut self) -> Option<()> {
        self.layout.end = self.frame.len();
        let mut eth_type = be16(self.frame, 12)?;
        self.put(Field::EthDst, be48(self.frame, 0)?);
        self.put(Field::EthSrc, be48(self.frame, 6)?);
        self.put(Field::VlanVid, 0_u8);
        let mut at = ETH_LEN;
        // 1.0 parses one tag, and sees a second one as an Ethernet type. In 1.3 the Ethernet type
        // follows all tags.
        let mut first = true;
        while is_tag(eth_type) && (first || self.rules.has_oxm()) {
            let (Some(tci), Some(inner)) = (be16(self.frame, at), be16(self.frame, at + 2)) else {
                break;
            };
            if first {
                self.put(Field::VlanVid, tci & 0x0fff | Match::VLAN_PRESENT);
                self.put(Field::VlanPcp, tci >> 13);
            }
            (eth_type, at, first) = (inner, at + TAG_LEN, false);
        }
        if eth_type < FIRST_TYPE {
            (eth_type, at) = self.llc(at);
        }
        self.put(Field::EthType, eth_type);
        self.layout.l3 = at;
        match eth_type {
            TYPE_IPV4 => self.ipv4(at),
            TYPE_IPV6 => self.ipv6(at),
            TYPE_ARP => self.arp(at),
            TYPE_MPLS | TYPE_MPLS_MULTICAST => self.mpls(at),
            TYPE_PBB => self.pbb(at),
            _ => None,
        }
    }

    /// Parses a frame of IEEE 802.3, which has a length instead of a type.
    fn llc(&self, at: usize) -> (u16, usize) {
        match self.frame.get(at..).and_then(|bytes| bytes.split_first_chunk()) {
            Some((head, rest)) if *head == SNAP => {
                be16(rest, 0).map_or((TYPE_NONE, at), |eth_type| (eth_type, at + SNAP.len() + 2))
            }
            _ => (TYPE_NONE, at),
        }
    }

    fn arp(&mut self, at: usize) -> Option<()> {
        let arp = self.frame.get(at..at + ARP_LEN)?;
        if !arp.starts_with(&ARP_HEAD) {
            return None;
        }
        let operation = be16(arp, 6)?;
        // 1.0 matches the low 8 bits only (1.0 §5.2.3).
        let whole = self.rules.has_oxm();
        self.put(Field::ArpOp, if whole { operation } else { operation & 0xff });
        self.put(Field::ArpSha, be48(arp, 8)?);
        self.put(Field::ArpSpa, be32(arp, 14)?);
        self.put(Field::ArpTha, be48(arp, 18)?);
        self.put(Field::ArpTpa, be32(arp, 24)?);
        Some(())
    }

    fn mpls(&mut self, at: usize) -> Option<()> {
        let entry = be32(self.frame, at)?;
        self.put(Field::MplsLabel, entry >> 12);
        self.put(Field::MplsTc, entry >> 9 & 7);
        self.put(Field::MplsBos, entry >> 8 & 1);
        Some(())
    }

    fn pbb(&mut self, at: usize) -> Option<()> {
        self.frame.get(at..at + PBB_LEN)?;
        self.put(Field::PbbIsid, be32(self.frame, at)? & 0x00ff_ffff);
        Some(())
    }

    fn ipv4(&mut self, at: usize) -> Option<()> {
        let ip = self.frame.get(at..at + IPV4_LEN)?;
        let header_len = usize::from(ip[0] & 0x0f) * 4;
        let total_len = usize::from(be16(ip, 2)?);
        let room = self.frame.len() - at;
        if ip[0] >> 4 != 4 || header_len < IPV4_LEN || total_len < header_len || total_len > room {
            return None;
        }
        self.layout.end = at + total_len;
        let (tos, protocol) = (ip[1], ip[9]);
        self.layout.protocol = at + 9;
        self.put(Field::IpDscp, tos >> 2);
        self.put(Field::IpEcn, tos & 3);
        self.put(Field::IpProto, protocol);
        self.put(Field::Ipv4Src, be32(ip, 12)?);
        self.put(Field::Ipv4Dst, be32(ip, 16)?);
        let fragment = be16(ip, 6)?;
        // "More fragments" or an offset.
        self.layout.fragment = fragment & 0x3fff != 0;
        let later = fragment & 0x1fff != 0;
        self.transport(protocol, at + header_len, later)
    }

    fn ipv6(&mut self, at: usize) -> Option<()> {
        let ip = self.frame.get(at..at + IPV6_LEN)?;
        let end = at + IPV6_LEN + usize::from(be16(ip, 4)?);
        if ip[0] >> 4 != 6 || end > self.frame.len() {
            return None;
        }
        self.layout.end = end;
        let head = be32(ip, 0)?;
        self.put(Field::IpDscp, head >> 22 & 0x3f);
        self.put(Field::IpEcn, head >> 20 & 3);
        self.put(Field::Ipv6Flabel, head & 0x000f_ffff);
        self.put(Field::Ipv6Src, be128(ip, 8)?);
        self.put(Field::Ipv6Dst, be128(ip, 24)?);
        self.layout.protocol = at + 6;
        let mut headers = Ipv6Extensions::default();
        let (mut next, mut at, mut later) = (ip[6], at + IPV6_LEN, false);
        // Each step advances by at least eight bytes.
        while !later && headers.see(next) {
            let Some(header) = self.frame[..end].get(at..at + 8) else { break };
            let len = match next {
                FRAGMENT => 8,
                AUTHENTICATION => (usize::from(header[1]) + 2) * 4,
                _ => (usize::from(header[1]) + 1) * 8,
            };
            if at + len > end {
                break;
            }
            match next {
                FRAGMENT => {
                    let fragment = be16(header, 2)?;
                    self.layout.fragment = fragment & 0xfff9 != 0;
                    later = fragment & 0xfff8 != 0;
                }
                ROUTING => self.layout.routed = header[3] != 0,
                _ => {}
            }
            self.layout.protocol = at;
            (next, at) = (header[0], at + len);
        }
        self.put(Field::Ipv6Exthdr, headers.flags);
        self.put(Field::IpProto, next);
        self.transport(next, at, later)
    }

    /// Parses the header above IP at `at`. Later fragments do not have it.
    fn transport(&mut self, protocol: u8, at: usize, later: bool) -> Option<()> {
        use Field::*;
        let ipv6 = self.key.has(Ipv6Src);
        let (source, destination, header_len) = match protocol {
            TCP => (TcpSrc, TcpDst, 20),
            UDP => (UdpSrc, UdpDst, 8),
            SCTP => (SctpSrc, SctpDst, 12),
            ICMP if !ipv6 => (Icmpv4Type, Icmpv4Code, 8),
            ICMPV6 if ipv6 => (Icmpv6Type, Icmpv6Code, 4),
            _ => return None,
        };
        // In 1.0 all fragments, also the first, have the port 0 (1.0 §3.4).
        let as_zero = !self.rules.has_oxm() && self.layout.fragment;
        if as_zero {
            self.put(source, 0_u8);
            self.put(destination, 0_u8);
        }
        let header = self.frame[..self.layout.end].get(at..).filter(|_| !later)?;
        if header.len() < header_len {
            return None;
        }
        self.layout.l4 = at;
        if as_zero {
            return None;
        }
        if matches!(protocol, ICMP | ICMPV6) {
            self.put(source, header[0]);
            self.put(destination, header[1]);
        } else {
            self.put(source, be16(header, 0)?);
            self.put(destination, be16(header, 2)?);
        }
        if ipv6 { self.neighbour(at) } else { Some(()) }
    }

    /// Neighbour solicitations and advertisements (RFC 4861 §4.3, §4.4).
    fn neighbour(&mut self, l4: usize) -> Option<()> {
        let (option, field) = match self.key.value(Field::Icmpv6Type)? as u8 {
            SOLICITATION => (1, Field::Ipv6NdSll),
            ADVERTISEMENT => (2, Field::Ipv6NdTll),
            _ => return None,
        };
        let message = &self.frame[..self.layout.end];
        let target = be128(message, l4 + 8)?;
        self.put(Field::Ipv6NdTarget, target);
        let mut at = l4 + 24;
        // An option's length is in units of eight bytes, and never zero.
        while let Some(&[kind, units, ..]) = message.get(at..) {
            let body = message.get(at..at + usize::from(units) * 8).filter(|_| units > 0)?;
            if kind == option {
                self.put(field, be48(body, 2)?);
                self.layout.nd_link = at + 2;
                break;
            }
            at += body.len();
        }
        Some(())
    }
}

/// `ofp_ipv6exthdr_flags` (1.3.5 §7.2.3.8), collected header by header.
#[derive(Default)]
struct Ipv6Extensions {
    flags: u16,
    /// Position of the last header in the order of RFC 8200 §4.1.
    last: u8,
}

impl Ipv6Extensions {
    const NO_NEXT: u16 = 1 << 0;
    const ESP: u16 = 1 << 1;
    const AUTHENTICATION: u16 = 1 << 2;
    const DESTINATION: u16 = 1 << 3;
    const FRAGMENT: u16 = 1 << 4;
    const ROUTING: u16 = 1 << 5;
    const HOP: u16 = 1 << 6;
    const REPEATED: u16 = 1 << 7;
    const OUT_OF_ORDER: u16 = 1 << 8;

    /// Positions of destination options for the hosts on a route, and for the final destination.
    const DESTINATION_EARLY: u8 = 2;
    const DESTINATION_LATE: u8 = 7;

    /// Records a header. Returns whether another header follows that can be parsed.
    fn see(&mut self, header: u8) -> bool {
        let (flag, place) = match header {
            HOP_BY_HOP => (Self::HOP, 1),
            DESTINATION if self.last < Self::DESTINATION_EARLY => {
                (Self::DESTINATION, Self::DESTINATION_EARLY)
            }
            DESTINATION => (Self::DESTINATION, Self::DESTINATION_LATE),
            ROUTING => (Self::ROUTING, 3),
            FRAGMENT => (Self::FRAGMENT, 4),
            AUTHENTICATION => (Self::AUTHENTICATION, 5),
            ESP => (Self::ESP, 6),
            NO_NEXT => {
                self.flags |= Self::NO_NEXT;
                return false;
            }
            _ => return false,
        };
        let twice_in_place = place == self.last;
        if self.flags & flag != 0 && (flag != Self::DESTINATION || twice_in_place) {
            self.flags |= Self::REPEATED;
        } else if place < self.last {
            self.flags |= Self::OUT_OF_ORDER;
        }
        self.flags |= flag;
        self.last = self.last.max(place);
        // The data after ESP's header is encrypted.
        header != ESP
    }
}
