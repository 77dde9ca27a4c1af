//! The packets of the load and the packet_ins that carry them, byte by byte.
//!
//! All packets of a test differ only in addresses and number, so they are built once and patched in
//! place. The frame has 64 bytes. This makes a packet_in of 1.0 82 bytes long, as in cbench and in
//! the Hot-ICE study:
//!
//! ```text
//! 0        6        12     14         34         42       46                  64
//! +--------+--------+------+----------+----------+--------+-------------------+
//! | dst    | src    | 0800 | IPv4     | UDP      | number | zeros             |
//! +--------+--------+------+----------+----------+--------+-------------------+
//! ```
//!
//! The number is also the packet's `buffer_id`, and shows which packet a packet_out sends back. IP
//! addresses and ports are the same in all packets, as in cbench.

use bellrock_openflow::{
    Bytes, EncodeError, Family, FromSwitch, MatchView, Out, PacketInMessage, PacketInReason, Port,
    Version, by_constant_version,
};

/// Length of each frame, in bytes.
pub const FRAME_LEN: usize = 64;

/// Length of the longest packet_in, in bytes.
pub const MAX_PACKET_IN_LEN: usize = frame_at(Family::Oxm) + FRAME_LEN;

/// Number of ports with hosts. They are ports 1 to 4; host `h` is at port `1 + h % 4`.
pub const HOST_PORTS: u32 = 4;

/// Port of the one destination of [`crate::Destinations::One`].
pub const UPLINK_PORT: u32 = 5;

/// `buffer_id` of a packet that is not buffered (`OFP_NO_BUFFER`).
pub(crate) const NO_BUFFER: u32 = 0xffff_ffff;

/// The bits of a packet's number that its `buffer_id` holds.
pub(crate) const NUMBER_MASK: u32 = 0x7fff_ffff;

/// IP addresses and UDP ports of all packets.
pub(crate) const IP_SRC: [u8; 4] = [192, 168, 0, 40];
pub(crate) const IP_DST: [u8; 4] = [192, 168, 1, 40];
pub(crate) const UDP_SRC: u16 = 31_256;
pub(crate) const UDP_DST: u16 = 22_635;
pub(crate) const ETH_IPV4: u16 = 0x0800;
pub(crate) const PROTO_UDP: u8 = 17;

pub(crate) const DST_AT: usize = 0;
pub(crate) const SRC_AT: usize = 6;
pub(crate) const ETH_TYPE_AT: usize = 12;
pub(crate) const NUMBER_AT: usize = 42;

/// Minimum length of an Ethernet frame without its checksum; shorter ones are padded.
const ARP_FRAME_LEN: usize = 60;
/// Offset of the sender's address in an ARP packet.
const ARP_SENDER_AT: usize = 22;

/// An Ethernet address as a number, which stays in a register until it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MacNumber(u64);

impl MacNumber {
    /// The address of a host. The first byte is that of a locally administered station address,
    /// with the port in its upper bits. The switch and the number of the host follow.
    ///
    /// A responder that learns nothing can read the port from it.
    #[must_use]
    #[inline]
    pub const fn of(port: u32, dpid: u32, host: u32) -> Self {
        let first = (port as u64) << 2 | 2;
        MacNumber(first << 40 | ((dpid & 0xffff) as u64) << 24 | (host & 0xff_ffff) as u64)
    }

    /// Returns the bytes.
    #[must_use]
    #[inline]
    pub const fn bytes(self) -> [u8; 6] {
        let [_, _, a, b, c, d, e, f] = self.0.to_be_bytes();
        [a, b, c, d, e, f]
    }

    /// Returns the address of another host of the same switch. `self` is that of host 0 at port 0.
    #[inline(always)]
    pub(crate) const fn moved(self, port: u32, host: u32) -> Self {
        MacNumber(self.0 | (port as u64) << 42 | host as u64)
    }

    /// Returns the address as a number of 48 bits.
    #[inline]
    pub(crate) const fn number(self) -> u64 {
        self.0
    }

    /// Returns the port of the host.
    #[must_use]
    pub const fn port(self) -> u32 {
        (self.0 >> 42) as u32
    }
}

/// Returns the port of a host other than the one destination.
#[must_use]
#[inline]
pub const fn host_port(host: u32) -> u32 {
    1 + host % HOST_PORTS
}

/// The fields of one packet_in, and what the right answer contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadPacket {
    /// Number of the packet at its switch, from 0.
    pub number: u64,
    /// Port that it came in by.
    pub in_port: u32,
    /// Port where its destination was learnt.
    pub out_port: u32,
    /// Source address.
    pub src: MacNumber,
    /// Destination address.
    pub dst: MacNumber,
}

impl LoadPacket {
    /// The low 31 bits of the number. They are in the frame, and in `buffer_id` if the packet is
    /// buffered.
    #[must_use]
    #[inline]
    pub const fn id(&self) -> u32 {
        self.number as u32 & NUMBER_MASK
    }

    /// Returns the frame.
    #[must_use]
    pub fn frame(&self) -> [u8; FRAME_LEN] {
        let mut frame = frame_template();
        self.patch_frame(&mut frame);
        frame
    }

    #[inline]
    pub(crate) fn patch_frame(&self, frame: &mut [u8; FRAME_LEN]) {
        // The source follows the destination directly, so two stores write both.
        let high = self.dst.0 << 16 | self.src.0 >> 32;
        frame[DST_AT..DST_AT + 8].copy_from_slice(&high.to_be_bytes());
        frame[DST_AT + 8..DST_AT + 12].copy_from_slice(&(self.src.0 as u32).to_be_bytes());
        frame[NUMBER_AT..NUMBER_AT + 4].copy_from_slice(&self.id().to_be_bytes());
    }
}

/// A frame with all fields that are the same in all packets.
fn frame_template() -> [u8; FRAME_LEN] {
    const IP_LEN: u16 = (FRAME_LEN - 14) as u16;
    const UDP_LEN: u16 = IP_LEN - 20;
    const TTL: u8 = 64;
    let mut frame = [0; FRAME_LEN];
    frame[ETH_TYPE_AT..14].copy_from_slice(&ETH_IPV4.to_be_bytes());
    let ip = &mut frame[14..34];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&IP_LEN.to_be_bytes());
    ip[8] = TTL;
    ip[9] = PROTO_UDP;
    ip[12..16].copy_from_slice(&IP_SRC);
    ip[16..20].copy_from_slice(&IP_DST);
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame[34..36].copy_from_slice(&UDP_SRC.to_be_bytes());
    frame[36..38].copy_from_slice(&UDP_DST.to_be_bytes());
    // The UDP checksum stays zero: no checksum, in IPv4.
    frame[38..40].copy_from_slice(&UDP_LEN.to_be_bytes());
    frame
}

/// A packet_in that is built once, and the offsets of the parts that change.
#[derive(Clone, Debug)]
pub struct PacketTemplate {
    bytes: Vec<u8>,
    arp: Vec<u8>,
    version: Version,
    kind: LoadPacketKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadPacketKind {
    Buffered,
    Unbuffered,
    Echo,
}

/// Offsets of `xid` and `buffer_id` in a packet_in of either version.
pub(crate) const XID_AT: usize = 4;
pub(crate) const BUFFER_ID_AT: usize = 8;

impl PacketTemplate {
    /// The packet_in of a version, with a `buffer_id` or without.
    ///
    /// # Errors
    /// Passes on the codec's errors; none can occur.
    pub fn new(version: Version, buffered: bool) -> Result<Self, EncodeError> {
        let frame = frame_template();
        let bytes = encode(version, buffered.then_some(0), 1, &frame)?;
        let arp = encode(version, None, 1, &arp_frame())?;
        let kind = if buffered { LoadPacketKind::Buffered } else { LoadPacketKind::Unbuffered };
        Ok(PacketTemplate { bytes, arp, version, kind })
    }

    /// An echo request whose `xid` is a packet's number.
    ///
    /// # Errors
    /// Passes on the codec's errors; none can occur.
    pub fn echo(version: Version) -> Result<Self, EncodeError> {
        let mut out = Out::with_capacity(MAX_PACKET_IN_LEN);
        FromSwitch::EchoRequest(Bytes(&[])).encode(version, 0, &mut out)?;
        let bytes = out.as_slice().to_vec();
        Ok(PacketTemplate {
            bytes,
            kind: LoadPacketKind::Echo,
            ..PacketTemplate::new(version, true)?
        })
    }

    /// Length of the message in bytes: 82 in 1.0, 106 in 1.3.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a message is never empty")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The message as it was built.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Turns `message`, a copy of the template, into the packet_in of `packet`.
    #[inline]
    pub fn patch(&self, message: &mut [u8], packet: &LoadPacket) {
        self.patch_all(message, std::iter::once(*packet));
    }

    /// Turns `messages`, consecutive copies of the template, into the packet_ins of `packets`.
    #[inline]
    pub fn patch_all(&self, messages: &mut [u8], packets: impl Iterator<Item = LoadPacket>) {
        // All offsets are constants in each branch, so the compiler removes the bounds checks.
        match self.kind {
            LoadPacketKind::Echo => {
                for (message, packet) in messages.chunks_exact_mut(self.len()).zip(packets) {
                    message[XID_AT..XID_AT + 4].copy_from_slice(&packet.id().to_be_bytes());
                }
            }
            LoadPacketKind::Buffered => by_constant_version!(self.version, VERSION => {
                const LEN: usize = packet_in_len(VERSION);
                const PORT: usize = in_port_at(VERSION.family());
                const FRAME: usize = frame_at(VERSION.family());
                patch_all::<LEN, PORT, FRAME, true>(messages, packets);
            }),
            LoadPacketKind::Unbuffered => by_constant_version!(self.version, VERSION => {
                const LEN: usize = packet_in_len(VERSION);
                const PORT: usize = in_port_at(VERSION.family());
                const FRAME: usize = frame_at(VERSION.family());
                patch_all::<LEN, PORT, FRAME, false>(messages, packets);
            }),
        }
    }

    /// The packet_in by which a host announces itself: a gratuitous ARP (RFC 5227 §3), never
    /// buffered. [`PacketTemplate::patch_arp`] fills in the host.
    #[must_use]
    pub fn arp(&self) -> &[u8] {
        &self.arp
    }

    /// Turns `message`, a copy of [`PacketTemplate::arp`], into that of a host.
    pub fn patch_arp(&self, message: &mut [u8], port: u32, mac: MacNumber) {
        let family = self.version.family();
        message[in_port_at(family)] = port as u8;
        let frame = &mut message[frame_at(family)..];
        frame[SRC_AT..SRC_AT + 6].copy_from_slice(&mac.bytes());
        frame[ARP_SENDER_AT..ARP_SENDER_AT + 6].copy_from_slice(&mac.bytes());
    }
}

/// Length of a packet_in in bytes.
pub const fn packet_in_len(version: Version) -> usize {
    frame_at(version.family()) + FRAME_LEN
}

#[inline(always)]
fn patch_all<const LEN: usize, const IN_PORT: usize, const FRAME: usize, const BUFFERED: bool>(
    messages: &mut [u8],
    packets: impl Iterator<Item = LoadPacket>,
) {
    let (messages, _) = messages.as_chunks_mut::<LEN>();
    for (message, packet) in messages.iter_mut().zip(packets) {
        let id = packet.id().to_be_bytes();
        message[XID_AT..XID_AT + 4].copy_from_slice(&id);
        if BUFFERED {
            message[BUFFER_ID_AT..BUFFER_ID_AT + 4].copy_from_slice(&id);
        }
        // Port numbers are below 256, and the upper bytes of their fields are zero already.
        message[IN_PORT] = packet.in_port as u8;
        if let Some(frame) = message[FRAME..].first_chunk_mut() {
            packet.patch_frame(frame);
        }
    }
}

/// Offset of the last byte of the in_port in a packet_in.
const fn in_port_at(family: Family) -> usize {
    match family {
        // Header, buffer_id, total_len.
        Family::Fixed => 8 + 4 + 2 + 1,
        // Header and fixed part, then the match: its head, and that of its field.
        Family::Oxm => 8 + 16 + 4 + 4 + 3,
    }
}

/// Offset of the frame in a packet_in.
pub(crate) const fn frame_at(family: Family) -> usize {
    match family {
        Family::Fixed => 8 + 10,
        // Header, fixed part, match, padding.
        Family::Oxm => 8 + 16 + 16 + 2,
    }
}

fn encode(
    version: Version,
    buffer_id: Option<u32>,
    port: u32,
    frame: &[u8],
) -> Result<Vec<u8>, EncodeError> {
    let packet_in = PacketInMessage {
        buffer_id,
        total_len: frame.len() as u16,
        reason: PacketInReason::NoMatch,
        table: 0,
        cookie: if version.packet_in_has_cookie() { 0 } else { PacketInMessage::NO_COOKIE },
        matching: MatchView::port(Port(port)),
        data: Bytes(frame),
    };
    let mut out = Out::with_capacity(MAX_PACKET_IN_LEN);
    FromSwitch::PacketIn(packet_in).encode(version, 0, &mut out)?;
    Ok(out.as_slice().to_vec())
}

/// An ARP request whose sender asks for its own address.
fn arp_frame() -> [u8; ARP_FRAME_LEN] {
    const REQUEST: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 1];
    let mut frame = [0; ARP_FRAME_LEN];
    frame[..6].fill(0xff);
    frame[12..14].copy_from_slice(&[0x08, 0x06]);
    frame[14..22].copy_from_slice(&REQUEST);
    frame[28..32].copy_from_slice(&IP_DST);
    frame[38..42].copy_from_slice(&IP_DST);
    frame
}

#[cfg(test)]
mod tests {
    use bellrock_openflow::Message;

    use super::*;

    const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

    fn packet() -> LoadPacket {
        let (src, dst) =
            (MacNumber::of(2, 7, 9_999_997), MacNumber::of(UPLINK_PORT, 7, 10_000_000));
        LoadPacket { number: 0x1_8000_0002, in_port: 2, out_port: UPLINK_PORT, src, dst }
    }

    #[test]
    fn a_patched_template_is_the_packet_in_that_the_codec_reads() {
        for (version, buffered) in VERSIONS.into_iter().flat_map(|v| [(v, true), (v, false)]) {
            let template = PacketTemplate::new(version, buffered).unwrap();
            let mut message = template.as_slice().to_vec();
            template.patch(&mut message, &packet());
            let Message { body: FromSwitch::PacketIn(read), xid, .. } =
                FromSwitch::decode(&message).unwrap()
            else {
                panic!("it is a packet_in");
            };
            assert_eq!(xid, 2);
            assert_eq!(read.buffer_id, buffered.then_some(2));
            assert_eq!(read.in_port(), Port(2));
            assert!(read.is_whole());
            assert_eq!(*read.data, packet().frame());
        }
    }

    #[test]
    fn an_echo_has_the_number_of_its_packet() {
        for version in VERSIONS {
            let template = PacketTemplate::echo(version).unwrap();
            let mut message = template.as_slice().to_vec();
            template.patch(&mut message, &packet());
            let Message { body: FromSwitch::EchoRequest(payload), xid, .. } =
                FromSwitch::decode(&message).unwrap()
            else {
                panic!("it is an echo request");
            };
            assert_eq!((xid, payload.len()), (packet().id(), 0));
        }
    }

    #[test]
    fn a_host_makes_itself_known_by_an_arp() {
        for version in VERSIONS {
            let template = PacketTemplate::new(version, true).unwrap();
            let (mut message, host) = (template.arp().to_vec(), MacNumber::of(3, 1, 6));
            template.patch_arp(&mut message, 3, host);
            let Message { body: FromSwitch::PacketIn(read), .. } =
                FromSwitch::decode(&message).unwrap()
            else {
                panic!("it is a packet_in");
            };
            assert_eq!((read.in_port(), read.buffer_id), (Port(3), None));
            assert_eq!(
                (&read.data[6..12], &read.data[22..28]),
                (&host.bytes()[..], &host.bytes()[..])
            );
            assert!(read.is_whole());
        }
    }

    #[test]
    fn a_packet_in_has_the_size_of_cbench() {
        for version in VERSIONS {
            let template = PacketTemplate::new(version, true).unwrap();
            assert_eq!(template.len(), packet_in_len(version));
            assert!(template.len() <= MAX_PACKET_IN_LEN);
        }
        assert_eq!(packet_in_len(Version::V1_0), 82);
    }

    #[test]
    fn addresses_are_station_addresses_that_tell_their_port() {
        for port in 1..=UPLINK_PORT {
            let mac = MacNumber::of(port, 0xffff, 10_000_000);
            assert_eq!(mac.port(), port);
            assert_eq!(mac.bytes()[1..], [0xff, 0xff, 0x98, 0x96, 0x80]);
            assert!(bellrock_openflow::MacAddr(mac.bytes()).is_station());
        }
    }

    #[test]
    fn the_ip_header_adds_up() {
        let frame = packet().frame();
        let sum: u32 = frame[14..34]
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}
