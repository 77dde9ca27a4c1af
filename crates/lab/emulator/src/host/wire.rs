//! Reads and writes the frames of hosts.
//!
//! Hosts use plain Ethernet II (tags are added and taken off elsewhere), ARP (RFC 826), IPv4
//! without options and fragments (RFC 791), ICMP echo (RFC 792), UDP (RFC 768) and TCP (RFC 9293).

use std::net::Ipv4Addr;

use bellrock_openflow::MacAddr;

use crate::packet::EthernetFrame;
use crate::packet::build::{self, IpFields};
use crate::packet::checksum::{add, finish};
use crate::packet::parse::{ARP_HEAD, ARP_LEN, ETH_LEN, IPV4_LEN};
pub(super) use crate::packet::parse::{ICMP, TCP, TYPE_ARP, TYPE_IPV4, UDP};

const UDP_LEN: usize = 8;
const TCP_LEN: usize = 20;
/// Where the type stands in a frame, or the tag of a VLAN (IEEE 802.1Q §9.6).
pub(super) const TYPE_AT: usize = 12;
/// Length of a tag.
pub(super) const TAG_LEN: usize = 4;
/// Type of a customer's tag.
pub(super) const TYPE_VLAN: u16 = 0x8100;
/// Shortest Ethernet frame, without its checksum.
const MIN_FRAME_LEN: usize = 60;

pub(super) const ARP_REQUEST: u16 = 1;
pub(super) const ARP_REPLY: u16 = 2;

pub(super) const ECHO_REPLY: u8 = 0;
pub(super) const UNREACHABLE: u8 = 3;
pub(super) const ECHO_REQUEST: u8 = 8;
/// ICMP code for a UDP port that does not listen.
pub(super) const PORT_UNREACHABLE: u8 = 3;

pub(super) struct EthernetHeader<'f> {
    pub(super) dst: MacAddr,
    pub(super) src: MacAddr,
    pub(super) ethertype: u16,
    pub(super) payload: &'f [u8],
}

impl<'f> EthernetHeader<'f> {
    pub(super) fn read(frame: &'f [u8]) -> Option<Self> {
        let (header, payload) = frame.split_first_chunk::<ETH_LEN>()?;
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *header;
        Some(EthernetHeader {
            dst: MacAddr([d0, d1, d2, d3, d4, d5]),
            src: MacAddr([s0, s1, s2, s3, s4, s5]),
            ethertype: u16::from_be_bytes([t0, t1]),
            payload,
        })
    }

    fn write(&self, frame: &mut EthernetFrame) {
        frame.extend_from_slice(&self.dst.0);
        frame.extend_from_slice(&self.src.0);
        frame.extend_from_slice(&self.ethertype.to_be_bytes());
        frame.extend_from_slice(self.payload);
    }
}

#[derive(Clone, Copy)]
pub(super) struct ArpMessage {
    pub(super) operation: u16,
    pub(super) sender_mac: MacAddr,
    pub(super) sender_ip: Ipv4Addr,
    pub(super) target_mac: MacAddr,
    pub(super) target_ip: Ipv4Addr,
}

impl ArpMessage {
    pub(super) fn read(payload: &[u8]) -> Option<ArpMessage> {
        let bytes = payload.first_chunk::<ARP_LEN>()?.strip_prefix(&ARP_HEAD)?;
        let mac = |at: usize| bytes[at..].first_chunk().map(|mac| MacAddr(*mac));
        let ip = |at: usize| bytes[at..].first_chunk::<4>().map(|ip| Ipv4Addr::from(*ip));
        Some(ArpMessage {
            operation: u16::from_be_bytes(*bytes.first_chunk()?),
            sender_mac: mac(2)?,
            sender_ip: ip(8)?,
            target_mac: mac(12)?,
            target_ip: ip(18)?,
        })
    }

    /// Writes it as a frame to `dst`. `number` goes into the padding, which Ethernet leaves open,
    /// so that the frames of a host differ.
    pub(super) fn write(&self, dst: MacAddr, number: u64, frame: &mut EthernetFrame) {
        let sender = (self.sender_mac, self.sender_ip);
        let payload = &build::arp(self.operation, sender, (self.target_mac, self.target_ip));
        EthernetHeader { dst, src: self.sender_mac, ethertype: TYPE_ARP, payload }.write(frame);
        frame.extend_from_slice(&number.to_be_bytes());
        pad(frame);
    }
}

fn pad(frame: &mut EthernetFrame) {
    if let Some(missing) = MIN_FRAME_LEN.checked_sub(frame.len()) {
        frame.extend_from_slice(&[0; MIN_FRAME_LEN][..missing]);
    }
}

/// Source and destination of an IPv4 packet, on the link and in the network.
#[derive(Clone, Copy)]
pub(super) struct PacketAddresses {
    pub(super) src_mac: MacAddr,
    pub(super) dst_mac: MacAddr,
    pub(super) src: Ipv4Addr,
    pub(super) dst: Ipv4Addr,
    /// Differs between the packets of a host.
    pub(super) identification: u16,
}

impl PacketAddresses {
    fn write(&self, protocol: u8, payload_len: usize, frame: &mut EthernetFrame) {
        let (dst, src) = (self.dst_mac, self.src_mac);
        let header = self.ip().id(self.identification).ipv4_header(
            (self.src, self.dst),
            protocol,
            len16(payload_len),
        );
        EthernetHeader { dst, src, ethertype: TYPE_IPV4, payload: &header }.write(frame);
    }

    fn ip(&self) -> IpFields {
        IpFields::v4(self.src, self.dst)
    }

    /// Writes an ICMP message: type, code, the last four bytes of the header, data.
    pub(super) fn icmp(
        &self,
        kind: u8,
        code: u8,
        head: [u8; 4],
        data: &[u8],
        frame: &mut EthernetFrame,
    ) {
        self.write(ICMP, 8 + data.len(), frame);
        let [h0, h1, h2, h3] = head;
        let mut header = [kind, code, 0, 0, h0, h1, h2, h3];
        let sum = finish(add(add(0, &header), data));
        header[2..4].copy_from_slice(&sum.to_be_bytes());
        frame.extend_from_slice(&header);
        frame.extend_from_slice(data);
        pad(frame);
    }

    pub(super) fn udp(&self, from: u16, to: u16, data: &[u8], frame: &mut EthernetFrame) {
        let len = UDP_LEN + data.len();
        self.write(UDP, len, frame);
        let ([f0, f1], [t0, t1], [l0, l1]) =
            (from.to_be_bytes(), to.to_be_bytes(), len16(len).to_be_bytes());
        let mut header = [f0, f1, t0, t1, l0, l1, 0, 0];
        let sum = add(self.ip().pseudo(UDP, len), &header);
        // Zero would mean "no checksum" (RFC 768).
        let sum = match finish(add(sum, data)) {
            0 => 0xffff,
            sum => sum,
        };
        header[6..8].copy_from_slice(&sum.to_be_bytes());
        frame.extend_from_slice(&header);
        frame.extend_from_slice(data);
        pad(frame);
    }

    pub(super) fn tcp(&self, segment: &TcpSegment, frame: &mut EthernetFrame) {
        let options: &[u8] = match segment.scale {
            // No-operation, then window scale (RFC 7323 §2.2).
            Some(shift) => &[1, 3, 3, shift],
            None => &[],
        };
        let len = TCP_LEN + options.len() + segment.len;
        self.write(TCP, len, frame);
        let mut header = [0; TCP_LEN];
        header[0..2].copy_from_slice(&segment.from.to_be_bytes());
        header[2..4].copy_from_slice(&segment.to.to_be_bytes());
        header[4..8].copy_from_slice(&segment.sequence.to_be_bytes());
        header[8..12].copy_from_slice(&segment.acknowledgement.to_be_bytes());
        header[12] = ((TCP_LEN + options.len()) as u8 / 4) << 4;
        header[13] = segment.flags;
        header[14..16].copy_from_slice(&segment.window.to_be_bytes());
        let start = frame.len();
        frame.extend_from_slice(&header);
        frame.extend_from_slice(options);
        let mut remaining = segment.len;
        while remaining > 0 {
            let part = remaining.min(ZEROS.len());
            frame.extend_from_slice(&ZEROS[..part]);
            remaining -= part;
        }
        let sum = add(self.ip().pseudo(TCP, len), &frame[start..]);
        let sum = finish(sum).to_be_bytes();
        frame[start + 16..start + 18].copy_from_slice(&sum);
        pad(frame);
    }
}

/// The data of TCP flows: only its length matters.
const ZEROS: [u8; 512] = [0; 512];

/// Every length here fits an Ethernet frame of the usual size: hosts send no longer packets.
fn len16(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

pub(super) struct Ipv4<'f> {
    pub(super) src: Ipv4Addr,
    pub(super) dst: Ipv4Addr,
    pub(super) protocol: u8,
    pub(super) payload: &'f [u8],
}

impl<'f> Ipv4<'f> {
    /// Returns `None` if the packet is malformed, a fragment, or has a wrong checksum.
    pub(super) fn read(packet: &'f [u8]) -> Option<Self> {
        let header = packet.first_chunk::<IPV4_LEN>()?;
        let header_len = usize::from(header[0] & 0x0f) * 4;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
        let is_valid = header_len >= IPV4_LEN && total >= header_len && total <= packet.len();
        if header[0] >> 4 != 4 || !is_valid || fragment != 0 {
            return None;
        }
        if finish(add(0, &packet[..header_len])) != 0 {
            return None;
        }
        let address =
            |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
        Some(Ipv4 {
            src: address(12),
            dst: address(16),
            protocol: header[9],
            payload: &packet[header_len..total],
        })
    }

    fn pseudo(&self) -> u64 {
        IpFields::v4(self.src, self.dst).pseudo(self.protocol, self.payload.len())
    }

    /// Type, code, the last four bytes of the header, and data. `None` if the checksum is wrong.
    pub(super) fn icmp(&self) -> Option<(u8, u8, [u8; 4], &'f [u8])> {
        let (header, data) = self.payload.split_first_chunk::<8>()?;
        let [kind, code, _, _, h0, h1, h2, h3] = *header;
        (finish(add(0, self.payload)) == 0).then_some((kind, code, [h0, h1, h2, h3], data))
    }

    /// Source port, destination port and data. `None` if the checksum is wrong.
    pub(super) fn udp(&self) -> Option<(u16, u16, &'f [u8])> {
        let (header, data) = self.payload.split_first_chunk::<UDP_LEN>()?;
        let [f0, f1, t0, t1, l0, l1, c0, c1] = *header;
        let len = usize::from(u16::from_be_bytes([l0, l1])).checked_sub(UDP_LEN)?;
        if [c0, c1] != [0, 0] && finish(add(self.pseudo(), self.payload)) != 0 {
            return None;
        }
        Some((u16::from_be_bytes([f0, f1]), u16::from_be_bytes([t0, t1]), data.get(..len)?))
    }

    /// A segment. `None` if it is malformed or the checksum is wrong.
    pub(super) fn tcp(&self) -> Option<TcpSegment> {
        let header = self.payload.first_chunk::<TCP_LEN>()?;
        let header_len = usize::from(header[12] >> 4) * 4;
        let options = self.payload.get(TCP_LEN..header_len)?;
        if finish(add(self.pseudo(), self.payload)) != 0 {
            return None;
        }
        let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        Some(TcpSegment {
            from: half(0),
            to: half(2),
            sequence: word(4),
            acknowledgement: word(8),
            flags: header[13],
            window: half(14),
            // Reads the only option that hosts send, at its fixed place.
            scale: options.strip_prefix(&[1, 3, 3]).and_then(|rest| rest.first().copied()),
            len: self.payload.len() - header_len,
        })
    }
}

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const ACK: u8 = 0x10;

/// A TCP segment with the length of its data only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TcpSegment {
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    pub(super) scale: Option<u8>,
    pub(super) len: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: PacketAddresses = PacketAddresses {
        src_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        dst_mac: MacAddr([2, 0, 0, 0, 0, 2]),
        src: Ipv4Addr::new(10, 0, 0, 1),
        dst: Ipv4Addr::new(10, 0, 0, 2),
        identification: 7,
    };

    fn ip(frame: &EthernetFrame) -> Option<Ipv4<'_>> {
        let ethernet = EthernetHeader::read(frame)?;
        assert_eq!((ethernet.dst, ethernet.src), (ROUTE.dst_mac, ROUTE.src_mac));
        assert_eq!(ethernet.ethertype, TYPE_IPV4);
        Ipv4::read(ethernet.payload)
    }

    #[test]
    fn written_frames_read_back() {
        let mut frame = EthernetFrame::new();
        ROUTE.udp(1000, 2000, b"odd", &mut frame);
        assert_eq!(frame.len(), MIN_FRAME_LEN);
        assert_eq!(ip(&frame).unwrap().udp(), Some((1000, 2000, &b"odd"[..])));

        let mut frame = EthernetFrame::new();
        ROUTE.icmp(ECHO_REQUEST, 0, [0, 1, 0, 2], b"ping", &mut frame);
        assert_eq!(ip(&frame).unwrap().icmp(), Some((8, 0, [0, 1, 0, 2], &b"ping"[..])));

        for (scale, len) in [(Some(7), 0), (None, 1460), (None, 0)] {
            let segment = TcpSegment {
                from: 1,
                to: 2,
                sequence: 0x0102_0304,
                acknowledgement: u32::MAX,
                flags: ACK,
                window: 9,
                scale,
                len,
            };
            let mut frame = EthernetFrame::new();
            ROUTE.tcp(&segment, &mut frame);
            assert_eq!(ip(&frame).unwrap().tcp(), Some(segment));
        }

        let arp = ArpMessage {
            operation: ARP_REPLY,
            sender_mac: ROUTE.src_mac,
            sender_ip: ROUTE.src,
            target_mac: ROUTE.dst_mac,
            target_ip: ROUTE.dst,
        };
        let mut frame = EthernetFrame::new();
        arp.write(ROUTE.dst_mac, 1, &mut frame);
        let read = ArpMessage::read(EthernetHeader::read(&frame).unwrap().payload).unwrap();
        assert_eq!(
            (read.operation, read.sender_mac, read.sender_ip),
            (2, ROUTE.src_mac, ROUTE.src)
        );
        assert_eq!((read.target_mac, read.target_ip), (ROUTE.dst_mac, ROUTE.dst));
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let mut frame = EthernetFrame::new();
        ROUTE.udp(1000, 2000, &[1; 40], &mut frame);
        let checked =
            |frame: &EthernetFrame| ip(frame).and_then(|ip| ip.udp().map(|_| ())).is_some();
        assert!(checked(&frame));
        // A checksum covers everything after the Ethernet header; IPv4's own covers, for example,
        // the type of service.
        for at in ETH_LEN..frame.len() {
            frame[at] ^= 0x20;
            assert!(!checked(&frame), "byte {at}");
            frame[at] ^= 0x20;
        }
    }

    #[test]
    fn truncated_frames_are_no_frames() {
        let mut frame = EthernetFrame::new();
        ROUTE.tcp(
            &TcpSegment { flags: SYN, scale: Some(3), len: 30, ..TcpSegment::default() },
            &mut frame,
        );
        for len in 0..frame.len() {
            let whole = EthernetHeader::read(&frame[..len])
                .and_then(|ethernet| Ipv4::read(ethernet.payload))
                .and_then(|ip| ip.tcp());
            assert_eq!(whole, None, "{len} bytes");
        }
    }
}
