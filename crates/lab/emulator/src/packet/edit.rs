//! Setting header fields (1.3.5 §5.12 "Set-Field"; 1.0 §3.3), with their checksums.

use std::iter::repeat_n;

use bellrock_openflow::Field;

use super::parse::{ICMP, ICMPV6, SCTP, TCP, TYPE_IPV4, UDP, parse};
use super::{Packet, checksum};

/// The checksums that include a header field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Covered {
    Nothing,
    /// IPv4's header checksum.
    Header,
    /// Addresses: IPv4's header checksum, and through the pseudo-header the checksum above IP.
    Addresses,
    /// The checksum above IP.
    Transport,
}

impl Packet {
    /// Sets a field. If the packet does not have the field, nothing happens.
    ///
    /// Setting the Ethernet type or the IP protocol changes which fields the packet has, and
    /// nothing else in it.
    pub fn set_field(&mut self, field: Field, value: u128) {
        use Field::*;
        let (l3, l4) = (self.layout.l3, self.layout.l4);
        if !self.key.has(field) {
            return;
        }
        let bytes = value.to_be_bytes();
        let last = |count: usize| &bytes[bytes.len() - count..];
        let number = value as u32;
        match field {
            // Pipeline fields are in the key only.
            InPort | InPhyPort | Metadata | TunnelId => {}
            EthDst => self.write(0, last(6), Covered::Nothing),
            EthSrc => self.write(6, last(6), Covered::Nothing),
            EthType => return self.set_eth_type(value as u16),
            VlanVid | VlanPcp => return self.set_tag(field, value),
            IpDscp | IpEcn => self.set_traffic_class(field, value as u8),
            IpProto => return self.set_protocol(value as u8),
            Ipv4Src => self.write(l3 + 12, last(4), Covered::Addresses),
            Ipv4Dst => self.write(l3 + 16, last(4), Covered::Addresses),
            Ipv6Src => self.write(l3 + 8, last(16), Covered::Addresses),
            // With a routing header, the checksum includes the address there, not this one.
            Ipv6Dst if self.layout.routed => self.write(l3 + 24, last(16), Covered::Nothing),
            Ipv6Dst => self.write(l3 + 24, last(16), Covered::Addresses),
            Ipv6Flabel => self.merge32(l3, number, 0x000f_ffff),
            // Nothing to set: fragments (in 1.0 their port is 0) and packets without the header.
            TcpSrc | UdpSrc | SctpSrc | TcpDst | UdpDst | SctpDst | Icmpv4Type | Icmpv4Code
            | Icmpv6Type | Icmpv6Code
                if l4 == 0 =>
            {
                return;
            }
            TcpSrc | UdpSrc | SctpSrc => self.write(l4, last(2), Covered::Transport),
            TcpDst | UdpDst | SctpDst => self.write(l4 + 2, last(2), Covered::Transport),
            Icmpv4Type | Icmpv6Type => {
                let code = self.frame[l4 + 1];
                self.write(l4, &[value as u8, code], Covered::Transport);
                if field == Icmpv6Type {
                    return self.parse_again();
                }
            }
            Icmpv4Code | Icmpv6Code => {
                let kind = self.frame[l4];
                self.write(l4, &[kind, value as u8], Covered::Transport);
            }
            ArpOp => self.write(l3 + 6, last(2), Covered::Nothing),
            ArpSha => self.write(l3 + 8, last(6), Covered::Nothing),
            ArpSpa => self.write(l3 + 14, last(4), Covered::Nothing),
            ArpTha => self.write(l3 + 18, last(6), Covered::Nothing),
            ArpTpa => self.write(l3 + 24, last(4), Covered::Nothing),
            Ipv6NdTarget => self.write(l4 + 8, last(16), Covered::Transport),
            Ipv6NdSll | Ipv6NdTll => {
                self.write(self.layout.nd_link, last(6), Covered::Transport);
            }
            MplsLabel => self.merge32(l3, number << 12, 0xffff_f000),
            MplsTc => self.merge32(l3, number << 9, 0x0e00),
            MplsBos => self.merge32(l3, number << 8, 0x0100),
            PbbIsid => self.merge32(l3, number, 0x00ff_ffff),
            // It only summarises the headers.
            Ipv6Exthdr => return,
            // The switch refuses these, and no packet has them.
            TcpFlags | Reg0 => return,
        }
        self.key.put(field, value);
    }

    /// Sets the source port of a TCP or UDP packet (1.0).
    pub fn set_tp_src(&mut self, port: u16) {
        for field in [Field::TcpSrc, Field::UdpSrc] {
            self.set_field(field, port.into());
        }
    }

    /// Sets the destination port of a TCP or UDP packet (1.0).
    pub fn set_tp_dst(&mut self, port: u16) {
        for field in [Field::TcpDst, Field::UdpDst] {
            self.set_field(field, port.into());
        }
    }

    /// Parses all header fields again, after the headers have changed.
    pub(super) fn parse_again(&mut self) {
        let mut key = self.key.pipeline();
        self.layout = parse(&self.frame, self.rules, &mut key);
        self.key = key;
    }

    fn set_eth_type(&mut self, eth_type: u16) {
        self.frame[self.layout.l3 - 2..][..2].copy_from_slice(&eth_type.to_be_bytes());
        self.parse_again();
    }

    fn set_tag(&mut self, field: Field, value: u128) {
        // Id and priority of the outermost tag. Only a tagged packet has a priority.
        if !self.key.has(Field::VlanPcp) {
            return;
        }
        let (value, mask) = match field {
            Field::VlanVid => (value as u32 & 0x0fff, 0x0fff),
            _ => ((value as u32 & 7) << 13, 0xe000),
        };
        self.merge32(12, value, mask);
        self.parse_tag();
    }

    fn parse_tag(&mut self) {
        let tci = u16::from_be_bytes([self.frame[14], self.frame[15]]);
        let vid = tci & 0x0fff | bellrock_openflow::Match::VLAN_PRESENT;
        self.key.put(Field::VlanVid, vid.into());
        self.key.put(Field::VlanPcp, (tci >> 13).into());
    }

    fn set_traffic_class(&mut self, field: Field, value: u8) {
        let at = self.layout.l3;
        let (value, mask) =
            if field == Field::IpDscp { (value << 2, 0xfc_u8) } else { (value & 3, 0x03) };
        if self.key.has(Field::Ipv4Src) {
            let old = [self.frame[at], self.frame[at + 1]];
            self.write(at, &[old[0], old[1] & !mask | value], Covered::Header);
        } else {
            self.merge32(at, u32::from(value) << 20, u32::from(mask) << 20);
        }
    }

    /// Sets the protocol of the IP packet, also after IPv6's extension headers.
    fn set_protocol(&mut self, protocol: u8) {
        let at = self.layout.protocol;
        if self.key.has(Field::Ipv4Src) {
            let ttl = self.frame[at - 1];
            self.write(at - 1, &[ttl, protocol], Covered::Header);
        } else {
            self.frame[at] = protocol;
        }
        self.parse_again();
    }

    /// Sets bits of the four bytes at `at`, which no checksum includes.
    fn merge32(&mut self, at: usize, value: u32, mask: u32) {
        if let Some(bytes) = self.frame[at..].first_chunk_mut::<4>() {
            let old = u32::from_be_bytes(*bytes);
            *bytes = (old & !mask | value & mask).to_be_bytes();
        }
    }

    /// Writes an even number of bytes, and updates the checksums that include them.
    fn write(&mut self, at: usize, new: &[u8], covered: Covered) {
        let mut old = [0; 16];
        let old = &mut old[..new.len()];
        old.copy_from_slice(&self.frame[at..at + new.len()]);
        self.frame[at..at + new.len()].copy_from_slice(new);
        let ipv4 = self.key.number(Field::EthType) == u64::from(TYPE_IPV4);
        if ipv4 && matches!(covered, Covered::Header | Covered::Addresses) {
            self.mend(self.layout.l3 + 10, old, new);
        }
        if self.layout.l4 != 0 && matches!(covered, Covered::Addresses | Covered::Transport) {
            self.mend_transport(at, old, new, covered);
        }
    }

    fn mend_transport(&mut self, at: usize, old: &[u8], new: &[u8], covered: Covered) {
        let l4 = self.layout.l4;
        match self.key.number(Field::IpProto) as u8 {
            TCP => self.mend(l4 + 16, old, new),
            UDP => {
                // Zero means "no checksum", so a sum of zero is sent as 0xffff (RFC 768).
                let checksum = &self.frame[l4 + 6..][..2];
                if checksum != [0, 0] {
                    self.mend(l4 + 6, old, new);
                    let checksum = &mut self.frame[l4 + 6..][..2];
                    if *checksum == [0, 0] {
                        checksum.fill(0xff);
                    }
                }
            }
            // ICMP's checksum has no pseudo-header, ICMPv6's has one.
            ICMP if covered == Covered::Transport => self.mend(l4 + 2, old, new),
            ICMPV6 => self.mend(l4 + 2, old, new),
            SCTP if covered == Covered::Transport => self.mend_sctp(at, old, new),
            _ => {}
        }
    }

    fn mend(&mut self, at: usize, old: &[u8], new: &[u8]) {
        if let Some(bytes) = self.frame[at..].first_chunk_mut::<2>() {
            *bytes = checksum::updated(u16::from_be_bytes(*bytes), old, new).to_be_bytes();
        }
    }

    /// Updates SCTP's CRC after the bytes at `at` have changed. The CRC is linear: it changes by
    /// the CRC of the difference, without the initial value and the final inversion. For a fragment
    /// the length of the rest is unknown: its CRC stays, and the receiver of the whole packet drops
    /// it.
    fn mend_sctp(&mut self, at: usize, old: &[u8], new: &[u8]) {
        if self.layout.fragment {
            return;
        }
        let difference = old.iter().zip(new).map(|(old, new)| old ^ new);
        let remaining = self.layout.end - at - new.len();
        let register = checksum::crc32c_register(0, difference.chain(repeat_n(0, remaining)));
        let field = &mut self.frame[self.layout.l4 + 8..][..4];
        for (byte, change) in field.iter_mut().zip(register.to_le_bytes()) {
            *byte ^= change;
        }
    }
}
