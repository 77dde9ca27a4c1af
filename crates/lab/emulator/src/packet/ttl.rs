//! TTLs: setting, decrementing and copying them (1.3.5 §5.12 "Change-TTL").

use bellrock_openflow::Field;

use super::parse::{IPV4_LEN, IPV6_LEN, LABEL_LEN};
use super::{Packet, checksum};

/// A TTL has expired: the packet must not be forwarded (`OFPR_INVALID_TTL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidTtl;

/// The position of a TTL.
#[derive(Clone, Copy)]
enum Ttl {
    /// In an MPLS label.
    Mpls(usize),
    /// In an IPv4 header, which has a checksum.
    Ipv4(usize),
    /// In an IPv6 header.
    Ipv6(usize),
}

/// IP in IP: the protocols of IPv4 and IPv6 themselves.
const IPV4_INSIDE: u64 = 4;
const IPV6_INSIDE: u64 = 41;

impl Packet {
    /// The TTL or hop limit of IP.
    #[must_use]
    pub fn nw_ttl(&self) -> Option<u8> {
        self.ip().map(|ttl| self.read_ttl(ttl))
    }

    /// The TTL of the outermost MPLS label.
    #[must_use]
    pub fn mpls_ttl(&self) -> Option<u8> {
        self.mpls().map(|ttl| self.read_ttl(ttl))
    }

    /// Sets the TTL or hop limit of IP.
    pub fn set_nw_ttl(&mut self, value: u8) {
        if let Some(ttl) = self.ip() {
            self.write_ttl(ttl, value);
        }
    }

    /// Sets the TTL of the outermost MPLS label.
    pub fn set_mpls_ttl(&mut self, value: u8) {
        if let Some(ttl) = self.mpls() {
            self.write_ttl(ttl, value);
        }
    }

    /// Decrements the TTL or hop limit of IP.
    ///
    /// # Errors
    /// The TTL is 0 or 1; it stays as it is.
    pub fn dec_nw_ttl(&mut self) -> Result<(), InvalidTtl> {
        self.ip().map_or(Ok(()), |ttl| self.decrement(ttl))
    }

    /// Decrements the TTL of the outermost MPLS label.
    ///
    /// # Errors
    /// The TTL is 0 or 1; it stays as it is.
    pub fn dec_mpls_ttl(&mut self) -> Result<(), InvalidTtl> {
        self.mpls().map_or(Ok(()), |ttl| self.decrement(ttl))
    }

    /// Copies the TTL of the second outermost header to the outermost.
    pub fn copy_ttl_out(&mut self) {
        if let Some((outer, inner)) = self.ttls() {
            self.write_ttl(outer, self.read_ttl(inner));
        }
    }

    /// Copies the TTL of the outermost header to the second outermost.
    pub fn copy_ttl_in(&mut self) {
        if let Some((outer, inner)) = self.ttls() {
            self.write_ttl(inner, self.read_ttl(outer));
        }
    }

    fn decrement(&mut self, ttl: Ttl) -> Result<(), InvalidTtl> {
        match self.read_ttl(ttl) {
            0 | 1 => Err(InvalidTtl),
            value => {
                self.write_ttl(ttl, value - 1);
                Ok(())
            }
        }
    }

    fn ip(&self) -> Option<Ttl> {
        let l3 = self.layout.l3;
        if self.key.has(Field::Ipv4Src) {
            Some(Ttl::Ipv4(l3))
        } else {
            self.key.has(Field::Ipv6Src).then_some(Ttl::Ipv6(l3))
        }
    }

    fn mpls(&self) -> Option<Ttl> {
        self.key.has(Field::MplsLabel).then_some(Ttl::Mpls(self.layout.l3))
    }

    /// The two outermost headers with a TTL: label and label, label and IP, or IP in IP.
    fn ttls(&self) -> Option<(Ttl, Ttl)> {
        if let Some(outer) = self.mpls() {
            let behind = self.layout.l3 + LABEL_LEN;
            if self.key.number(Field::MplsBos) == 0 {
                self.frame.get(behind..behind + LABEL_LEN)?;
                return Some((outer, Ttl::Mpls(behind)));
            }
            // The type under the last label is not given; an IP header has its version.
            let version = self.frame.get(behind)? >> 4;
            return Some((outer, self.ip_at(behind, version)?));
        }
        let outer = self.ip()?;
        // Start of the inner header: after options or extension headers.
        let inside = match outer {
            Ttl::Ipv4(at) => at + usize::from(self.frame[at] & 0x0f) * 4,
            _ if self.layout.protocol == self.layout.l3 + 6 => self.layout.l3 + IPV6_LEN,
            // No search for another IP header after extension headers.
            _ => return None,
        };
        let version = match self.key.number(Field::IpProto) {
            IPV4_INSIDE if !self.layout.fragment => 4,
            IPV6_INSIDE if !self.layout.fragment => 6,
            _ => return None,
        };
        Some((outer, self.ip_at(inside, version)?))
    }

    fn ip_at(&self, at: usize, version: u8) -> Option<Ttl> {
        match version {
            4 => self.frame.get(at..at + IPV4_LEN).map(|_| Ttl::Ipv4(at)),
            6 => self.frame.get(at..at + IPV6_LEN).map(|_| Ttl::Ipv6(at)),
            _ => None,
        }
    }

    fn read_ttl(&self, ttl: Ttl) -> u8 {
        self.frame[ttl.offset()]
    }

    fn write_ttl(&mut self, ttl: Ttl, value: u8) {
        let at = ttl.offset();
        let old = std::mem::replace(&mut self.frame[at], value);
        if let Ttl::Ipv4(header) = ttl
            && let Some([_, protocol, high, low]) = self.frame[header + 8..].first_chunk_mut()
        {
            let checksum = u16::from_be_bytes([*high, *low]);
            let checksum = checksum::updated(checksum, &[old, *protocol], &[value, *protocol]);
            [*high, *low] = checksum.to_be_bytes();
        }
    }
}

impl Ttl {
    fn offset(self) -> usize {
        match self {
            Ttl::Mpls(at) => at + 3,
            Ttl::Ipv4(at) => at + 8,
            Ttl::Ipv6(at) => at + 7,
        }
    }
}
