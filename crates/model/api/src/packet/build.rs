//! Building of frames.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bellrock_openflow::MacAddr;
use etherparse::{
    IpHeaders, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, PacketBuilder, PacketBuilderStep,
    TcpHeader,
};

use super::arp::ARP_HEAD;
use super::header::{EthHeader, VlanTag, eth_type};
use super::neighbour::{HOP_LIMIT, NeighbourMessage, SOURCE_ADDRESS, TARGET_ADDRESS};

/// Minimum length of an Ethernet frame without its check sequence, in bytes (IEEE 802.3 §3.2.7).
/// Shorter frames are padded with zeros.
pub const MIN_FRAME_BYTES: usize = 60;

/// Default TTL or hop limit.
const DEFAULT_TTL: u8 = 64;

/// Maximum number of bytes of a packet that an ICMP error about it returns: the error has at most
/// 576 bytes, with 20 bytes of IPv4 header and 8 of ICMP (RFC 1812 §4.3.2.3).
const MAX_ORIGINAL_BYTES_V4: usize = 576 - 20 - 8;

/// The same for ICMPv6: the error has at most 1,280 bytes, 40 of them the IPv6 header (RFC 4443
/// §2.4).
const MAX_ORIGINAL_BYTES_V6: usize = 1280 - 40 - 8;

/// The payload does not fit into an IP packet of 65,535 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a payload of {bytes} bytes does not fit an IP packet, which has at most 65,535 with its headers"
)]
pub struct TooLong {
    /// Length of the payload, in bytes.
    pub bytes: usize,
}

/// The Ethernet header of a new frame.
///
/// ```
/// use std::net::Ipv4Addr;
/// use bellrock_api::MacAddr;
/// use bellrock_api::packet::Ethernet;
///
/// let (us, host) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
/// let frame = Ethernet::new(us, host)
///     .ipv4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2))
///     .udp(5000, 53, b"hello")?;
/// assert_eq!(frame.len(), 60, "it is padded");
/// # Ok::<_, bellrock_api::packet::TooLong>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ethernet {
    source: MacAddr,
    destination: MacAddr,
    /// The VLAN tags with their types, the outermost first.
    tags: [Option<[u8; VlanTag::BYTES]>; Ethernet::MAX_TAGS],
}

impl Ethernet {
    /// Maximum number of VLAN tags. An answer has the tags of the frame that it answers.
    pub const MAX_TAGS: usize = 3;

    /// Starts a frame from `source` to `destination`, without a VLAN tag.
    #[must_use]
    pub fn new(source: MacAddr, destination: MacAddr) -> Self {
        Ethernet { source, destination, tags: [None; Self::MAX_TAGS] }
    }

    /// Sets the VLAN tag, of type 0x8100. Excess bits of the id and the priority are cut off.
    #[must_use]
    pub fn vlan(self, VlanTag { id, pcp }: VlanTag) -> Self {
        let tci = u16::from(pcp & 7) << 13 | id & 0x0fff;
        self.tags(&(u32::from(eth_type::VLAN) << 16 | u32::from(tci)).to_be_bytes())
    }

    /// Sets the VLAN tags, given as they stand in a frame. Excess tags are cut off.
    pub(super) fn tags(self, tags: &[u8]) -> Self {
        let (tags, _) = tags.as_chunks();
        Ethernet { tags: std::array::from_fn(|nth| tags.get(nth).copied()), ..self }
    }

    /// Returns the frame with a payload of this Ethernet type, padded.
    #[must_use]
    pub fn payload(self, eth_type: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = self.header(eth_type, payload.len());
        frame.extend_from_slice(payload);
        padded(frame)
    }

    /// Returns the frame with an ARP packet for IPv4 (RFC 826): operation 1 is a request, 2 a
    /// reply.
    #[must_use]
    pub fn arp(
        self,
        operation: u16,
        (sender_mac, sender_ip): (MacAddr, Ipv4Addr),
        (target_mac, target_ip): (MacAddr, Ipv4Addr),
    ) -> Vec<u8> {
        let mut packet = ARP_HEAD.to_vec();
        packet.extend_from_slice(&operation.to_be_bytes());
        for (mac, ip) in [(sender_mac, sender_ip), (target_mac, target_ip)] {
            packet.extend_from_slice(&mac.0);
            packet.extend_from_slice(&ip.octets());
        }
        self.payload(eth_type::ARP, &packet)
    }

    /// Returns the frame with a message of neighbour discovery about `target` (RFC 4861 §4.3,
    /// §4.4), with the frame's source in its option: `kind` 135 is a solicitation, 136 an
    /// advertisement with `flags`.
    #[must_use]
    pub fn neighbour(
        self,
        kind: u8,
        flags: u8,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        target: Ipv6Addr,
    ) -> Vec<u8> {
        let option = match kind {
            NeighbourMessage::SOLICITATION => SOURCE_ADDRESS,
            _ => TARGET_ADDRESS,
        };
        // The option has one unit of 8 bytes (RFC 4861 §4.6.1).
        let mut rest = [0; 24];
        rest[..16].copy_from_slice(&target.octets());
        rest[16..18].copy_from_slice(&[option, 1]);
        rest[18..].copy_from_slice(&self.source.0);
        let ip = self.ipv6(source, destination).ttl(HOP_LIMIT);
        // 24 bytes fit.
        ip.icmpv6(kind, 0, [flags, 0, 0, 0], &rest).unwrap_or_default()
    }

    /// Adds an IPv4 header (RFC 791).
    #[must_use]
    pub fn ipv4(self, source: Ipv4Addr, destination: Ipv4Addr) -> Ip {
        Ip {
            ethernet: self,
            source: source.into(),
            destination: destination.into(),
            ttl: DEFAULT_TTL,
            dscp: 0,
        }
    }

    /// Adds an IPv6 header (RFC 8200).
    #[must_use]
    pub fn ipv6(self, source: Ipv6Addr, destination: Ipv6Addr) -> Ip {
        Ip {
            ethernet: self,
            source: source.into(),
            destination: destination.into(),
            ttl: DEFAULT_TTL,
            dscp: 0,
        }
    }

    /// Writes the header. Reserves capacity for a payload of this many bytes.
    fn header(self, eth_type: u16, room: usize) -> Vec<u8> {
        let length = EthHeader::BYTES + Self::MAX_TAGS * VlanTag::BYTES + room;
        let mut frame = Vec::with_capacity(length.max(MIN_FRAME_BYTES));
        frame.extend_from_slice(&self.destination.0);
        frame.extend_from_slice(&self.source.0);
        frame.extend(self.tags.iter().flatten().flatten());
        frame.extend_from_slice(&eth_type.to_be_bytes());
        frame
    }
}

/// The Ethernet and IP headers of a new frame. Lengths and checksums are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    ethernet: Ethernet,
    source: IpAddr,
    destination: IpAddr,
    ttl: u8,
    dscp: u8,
}

impl Ip {
    /// Sets the TTL or hop limit (default 64).
    #[must_use]
    pub fn ttl(self, ttl: u8) -> Self {
        Ip { ttl, ..self }
    }

    /// Sets the DSCP (default 0). Bits above its 6 are cut off.
    #[must_use]
    pub fn dscp(self, dscp: u8) -> Self {
        Ip { dscp: dscp & 0x3f, ..self }
    }

    /// Returns the frame with a UDP datagram (RFC 768).
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn udp(self, source: u16, destination: u16, data: &[u8]) -> Result<Vec<u8>, TooLong> {
        let step = self.builder().udp(source, destination);
        self.finish(data, |frame| step.write(frame, data).is_ok())
    }

    /// Returns the frame with a TCP segment (RFC 9293). `header` gives the ports, numbers, flags
    /// and window; the checksum is computed.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn tcp(self, header: TcpHeader, data: &[u8]) -> Result<Vec<u8>, TooLong> {
        let step = self.builder().tcp_header(header);
        self.finish(data, |frame| step.write(frame, data).is_ok())
    }

    /// Returns the frame with an ICMP (RFC 792) or ICMPv6 (RFC 4443) echo request.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn echo_request(self, id: u16, sequence: u16, data: &[u8]) -> Result<Vec<u8>, TooLong> {
        match self.source {
            IpAddr::V4(_) => {
                let step = self.builder().icmpv4_echo_request(id, sequence);
                self.finish(data, |frame| step.write(frame, data).is_ok())
            }
            IpAddr::V6(_) => {
                let step = self.builder().icmpv6_echo_request(id, sequence);
                self.finish(data, |frame| step.write(frame, data).is_ok())
            }
        }
    }

    /// Returns the frame with an ICMP (RFC 792) or ICMPv6 (RFC 4443) echo reply.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn echo_reply(self, id: u16, sequence: u16, data: &[u8]) -> Result<Vec<u8>, TooLong> {
        match self.source {
            IpAddr::V4(_) => {
                let step = self.builder().icmpv4_echo_reply(id, sequence);
                self.finish(data, |frame| step.write(frame, data).is_ok())
            }
            IpAddr::V6(_) => {
                let step = self.builder().icmpv6_echo_reply(id, sequence);
                self.finish(data, |frame| step.write(frame, data).is_ok())
            }
        }
    }

    /// Returns the frame with a payload of any protocol, such as 2 for IGMP. Its checksum, if the
    /// protocol has one, is the payload's own affair.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn payload(self, protocol: u8, data: &[u8]) -> Result<Vec<u8>, TooLong> {
        let protocol = IpNumber(protocol);
        let step = self.builder();
        self.finish(data, |frame| step.write(frame, protocol, data).is_ok())
    }

    /// Returns the frame with an ICMP (RFC 792) or ICMPv6 (RFC 4443) error about a packet:
    /// "destination unreachable" with this code. `original` is that packet from its IP header on;
    /// as much of it is returned as an error holds.
    ///
    /// # Errors
    /// [`TooLong`]: not in practice, since `original` is cut.
    pub fn unreachable(self, code: u8, original: &[u8]) -> Result<Vec<u8>, TooLong> {
        let kind = if self.source.is_ipv4() { 3 } else { 1 };
        self.icmp_error(kind, code, [0; 4], original)
    }

    /// Returns the frame with an ICMP or ICMPv6 error "time exceeded": the TTL or hop limit of the
    /// packet was used up. `original` as for [`Ip::unreachable`].
    ///
    /// # Errors
    /// [`TooLong`]: not in practice, since `original` is cut.
    pub fn time_exceeded(self, original: &[u8]) -> Result<Vec<u8>, TooLong> {
        let kind = if self.source.is_ipv4() { 11 } else { 3 };
        self.icmp_error(kind, 0, [0; 4], original)
    }

    fn icmp_error(
        self,
        kind: u8,
        code: u8,
        word: [u8; 4],
        original: &[u8],
    ) -> Result<Vec<u8>, TooLong> {
        match self.source {
            IpAddr::V4(_) => {
                let original = &original[..original.len().min(MAX_ORIGINAL_BYTES_V4)];
                let step = self.builder().icmpv4_raw(kind, code, word);
                self.finish(original, |frame| step.write(frame, original).is_ok())
            }
            IpAddr::V6(_) => {
                let original = &original[..original.len().min(MAX_ORIGINAL_BYTES_V6)];
                self.icmpv6(kind, code, word, original)
            }
        }
    }

    /// Returns the frame with an ICMPv6 message: type, code, the four bytes after the checksum, and
    /// the rest.
    pub(super) fn icmpv6(
        self,
        kind: u8,
        code: u8,
        word: [u8; 4],
        rest: &[u8],
    ) -> Result<Vec<u8>, TooLong> {
        let step = self.builder().icmpv6_raw(kind, code, word);
        self.finish(rest, |frame| step.write(frame, rest).is_ok())
    }

    fn builder(self) -> PacketBuilderStep<IpHeaders> {
        PacketBuilder::ip(match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => IpHeaders::Ipv4(
                Ipv4Header {
                    dscp: self.dscp.try_into().unwrap_or_default(),
                    time_to_live: self.ttl,
                    source: source.octets(),
                    destination: destination.octets(),
                    ..Ipv4Header::default()
                },
                Default::default(),
            ),
            // Both are of one family: only `ipv4` and `ipv6` make an `Ip`.
            (source, destination) => {
                let octets = |ip| match ip {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                    IpAddr::V6(ip) => ip.octets(),
                };
                IpHeaders::Ipv6(
                    Ipv6Header {
                        traffic_class: self.dscp << 2,
                        flow_label: Ipv6FlowLabel::ZERO,
                        payload_length: 0,
                        next_header: IpNumber(255),
                        hop_limit: self.ttl,
                        source: octets(source),
                        destination: octets(destination),
                    },
                    Default::default(),
                )
            }
        })
    }

    /// Calls `write` to append to the Ethernet header. `write` fails only if a length does not fit.
    fn finish(
        self,
        data: &[u8],
        write: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> Result<Vec<u8>, TooLong> {
        /// More than the IP and TCP headers with all options.
        const HEADERS: usize = 40 + 60;
        let eth_type = if self.source.is_ipv4() { eth_type::IPV4 } else { eth_type::IPV6 };
        let mut frame = self.ethernet.header(eth_type, HEADERS + data.len());
        if !write(&mut frame) {
            return Err(TooLong { bytes: data.len() });
        }
        Ok(padded(frame))
    }
}

pub(super) fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    if frame.len() < MIN_FRAME_BYTES {
        frame.resize(MIN_FRAME_BYTES, 0);
    }
    frame
}
