//! Reads capture files: pcap and pcapng in, TCP segments out.
//!
//! Link types: Ethernet (with VLAN tags), Linux cooked v1 and v2, raw IP, BSD loopback. IPv4 and
//! IPv6 with extension headers. Fragments of IP packets are counted, not reassembled: OpenFlow runs
//! over TCP, whose segments fit the path. [`super::tcp`] reassembles streams; this file does not
//! look into the payload.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use etherparse::{EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket, TcpSlice, TransportSlice};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{
    Block, EnhancedPacketBlock, InterfaceDescriptionBlock, Linktype, PcapBlockOwned, PcapError,
    SimplePacketBlock, create_reader,
};

use super::{CaptureProblem, StreamId};

/// Initial size of the read buffer, in bytes. It grows up to [`MAX_BLOCK_BYTES`].
const BUFFER_BYTES: usize = 256 * 1024;

/// Maximum length of a packet or block, in bytes. A longer one is an error that ends the reading.
/// Name resolution blocks can be larger than a packet with the largest snap length, 256 KiB.
pub(crate) const MAX_BLOCK_BYTES: usize = 16 * 1024 * 1024;

/// Bytes to wait for before the format is guessed, since the parser looks only once: more than the
/// header of a pcap file or the first block of a pcapng file. A live pipe shows its first packets
/// after this many bytes.
const PROBE_BYTES: usize = 4096;

/// Maximum number of interfaces in a section of a pcapng file. Packets of others are unreadable.
const MAX_INTERFACES: usize = 4096;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Lengths of the link headers that are skipped by hand, in bytes.
const LOOPBACK_HEADER_BYTES: usize = 4;
const COOKED_V1_HEADER_BYTES: usize = 16;
const COOKED_V2_HEADER_BYTES: usize = 20;

/// Numbers that some BSDs use for raw IP.
const RAW_BSD: Linktype = Linktype(12);
const RAW_OPENBSD: Linktype = Linktype(14);

/// Why a capture cannot be read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The first bytes belong to neither format.
    #[error("neither a pcap nor a pcapng file; `tcpdump -w` and Wireshark write both")]
    NotACapture,
    /// The file has no bytes.
    #[error("the file is empty; even a capture without packets has a header")]
    Empty,
    /// The file is broken: the start of the next packet is unknown.
    #[error("broken at byte {offset}: {what}")]
    Broken {
        /// Position in the file, in bytes.
        offset: usize,
        /// Message of the parser.
        what: String,
    },
    /// A block is longer than 16 MiB.
    #[error("the block at byte {offset} is longer than {MAX_BLOCK_BYTES} bytes")]
    BlockTooLong {
        /// Position in the file, in bytes.
        offset: usize,
    },
    /// Reading failed.
    #[error("cannot read the capture: {0}")]
    Io(#[from] io::Error),
}

/// A TCP segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapturedSegment<'a> {
    /// Source and destination.
    pub(crate) stream: StreamId,
    /// Time of its capture, since the Unix epoch.
    pub(crate) time: Duration,
    /// Sequence number of its first byte (of the SYN, if there is one).
    pub(crate) sequence: u32,
    /// Whether it opens the stream.
    pub(crate) syn: bool,
    /// Whether it closes the stream.
    pub(crate) fin: bool,
    /// Whether it resets the connection.
    pub(crate) rst: bool,
    /// Its bytes, as far as they were captured.
    pub(crate) payload: &'a [u8],
    /// Bytes after `payload` that were on the wire but cut off by the snap length.
    pub(crate) missing: usize,
}

/// Packets in a capture, and packets that were left out.
#[derive(Debug, Default)]
pub(crate) struct CaptureTally {
    /// Packets of any kind.
    pub(crate) packets: u64,
    /// TCP segments.
    pub(crate) segments: u64,
    /// Time of the first packet, since the Unix epoch.
    pub(crate) start: Option<Duration>,
    fragments: u64,
    unreadable: u64,
    /// Packets by unknown link type. Link types have 16 bits, which limits the map.
    link_types: BTreeMap<i32, u64>,
    cut_at: Option<usize>,
}

impl CaptureTally {
    /// Lists the packets that were left out.
    pub(crate) fn problems(&self) -> impl Iterator<Item = CaptureProblem> {
        let fragments = CaptureProblem::Fragments { packets: self.fragments };
        let unreadable = CaptureProblem::Unreadable { packets: self.unreadable };
        let link_types = self.link_types.iter();
        link_types
            .map(|(&link_type, &packets)| CaptureProblem::LinkType { link_type, packets })
            .chain((self.fragments > 0).then_some(fragments))
            .chain((self.unreadable > 0).then_some(unreadable))
            .chain(self.cut_at.map(|offset| CaptureProblem::FileCut { offset }))
    }
}

/// Reads a capture and passes on its TCP segments in order, until `each` returns false.
///
/// # Errors
///
/// [`CaptureError`]. The segments before the error were passed on, and `tally` has their counts.
pub(crate) fn read<R: Read + Send>(
    input: R,
    tally: &mut CaptureTally,
    mut each: impl FnMut(CapturedSegment<'_>, &CaptureTally) -> bool,
) -> Result<(), CaptureError> {
    let mut probe = Vec::with_capacity(PROBE_BYTES);
    let mut input = input;
    input.by_ref().take(PROBE_BYTES as u64).read_to_end(&mut probe)?;
    if probe.is_empty() {
        return Err(CaptureError::Empty);
    }
    let mut failure = None;
    let input = WatchedReader { input: io::Cursor::new(probe).chain(input), failure: &mut failure };
    let wants_more = Cell::new(true);
    let result = read_blocks(input, &wants_more, |interface, packet| {
        tally.packets += 1;
        tally.start.get_or_insert(packet.time);
        if let Some(segment) = dissect(interface, &packet, tally) {
            tally.segments += 1;
            wants_more.set(each(segment, tally));
        }
    });
    match (failure, result) {
        (Some(error), _) => Err(CaptureError::Io(error)),
        (None, Ok(FileEnd::Whole)) => Ok(()),
        (None, Ok(FileEnd::Cut(offset))) => {
            tally.cut_at = Some(offset);
            Ok(())
        }
        (None, Err(error)) => Err(error),
    }
}

/// Keeps the error of a failed read, which the parser drops. Repeats a read that was interrupted.
struct WatchedReader<'f, R> {
    input: R,
    failure: &'f mut Option<io::Error>,
}

impl<R: Read> Read for WatchedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.input.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let kind = error.kind();
                    *self.failure = Some(error);
                    return Err(kind.into());
                }
                Ok(length) => return Ok(length),
            }
        }
    }
}

/// End of a file.
enum FileEnd {
    Whole,
    /// The file ends inside the block that begins at this byte.
    Cut(usize),
}

/// Properties of an interface that are needed to read its packets.
#[derive(Clone, Copy)]
struct Interface {
    link_type: Linktype,
    /// Maximum number of bytes kept of a packet; 0 means all.
    snap_length: u32,
    /// Ticks of its clock per second.
    resolution: u64,
    /// Seconds to add to its clock.
    offset: i64,
}

impl Interface {
    fn new(block: &InterfaceDescriptionBlock<'_>) -> Self {
        const MICROSECONDS: u64 = 1_000_000;
        Self {
            link_type: block.linktype,
            snap_length: block.snaplen,
            resolution: block.ts_resolution().filter(|&ticks| ticks > 0).unwrap_or(MICROSECONDS),
            offset: block.ts_offset(),
        }
    }

    fn time(&self, ticks: u64) -> Duration {
        let seconds = (ticks / self.resolution).saturating_add_signed(self.offset);
        let fraction = u128::from(ticks % self.resolution);
        let nanos = fraction * NANOS_PER_SECOND / u128::from(self.resolution);
        Duration::from_secs(seconds) + Duration::from_nanos(nanos as u64)
    }
}

/// A packet as it was captured.
struct CapturedPacket<'a> {
    time: Duration,
    data: &'a [u8],
}

/// Passes on packets while more are wanted; with `None` for an undescribed interface.
fn read_blocks(
    input: impl Read + Send,
    wants_more: &Cell<bool>,
    mut each: impl FnMut(Option<Interface>, CapturedPacket<'_>),
) -> Result<FileEnd, CaptureError> {
    let mut reader = match create_reader(BUFFER_BYTES, input) {
        Ok(reader) => reader,
        Err(PcapError::ReadError) => return Err(CaptureError::Io(io::ErrorKind::Other.into())),
        Err(_) => return Err(CaptureError::NotACapture),
    };
    let mut blocks = Blocks::default();
    let mut capacity = BUFFER_BYTES;
    let is_pcapng = reader.data().starts_with(&SECTION_HEADER);
    while wants_more.get() {
        let offset = reader.consumed();
        if is_pcapng && is_process_block_too_short(reader.data()) {
            let what = "this block of process information is shorter than a block".to_owned();
            return Err(CaptureError::Broken { offset, what });
        }
        let step = match reader.next() {
            Ok((length, block)) => {
                blocks.block(block, &mut each);
                Ok(length)
            }
            Err(PcapError::BufferTooSmall | PcapError::Incomplete(_)) => Err(()),
            Err(PcapError::Eof) => return Ok(FileEnd::Whole),
            Err(PcapError::UnexpectedEof) => return Ok(FileEnd::Cut(offset)),
            Err(error) => return Err(CaptureError::Broken { offset, what: explain(&error) }),
        };
        let Err(()) = step.map(|length| reader.consume(length)) else { continue };
        let before = reader.data().len();
        if reader.refill().is_err() {
            return Err(CaptureError::Io(io::ErrorKind::Other.into()));
        }
        // No new bytes although the input has not ended: one block fills the buffer.
        if reader.data().len() == before && !reader.reader_exhausted() {
            if capacity >= MAX_BLOCK_BYTES {
                return Err(CaptureError::BlockTooLong { offset });
            }
            capacity *= 2;
            reader.grow(capacity);
        }
    }
    Ok(FileEnd::Whole)
}

/// Type of the block that begins a pcapng file.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Whether a block of process information has less than the bytes of any block: type, length, and
/// length again. The parser checks this for all other types of blocks, but computes with a length
/// below zero here (0.17).
fn is_process_block_too_short(data: &[u8]) -> bool {
    const TYPE: u32 = 0x8000_0001;
    const MIN_BLOCK_BYTES: u32 = 12;
    let Some(&[a, b, c, d, length @ ..]) = data.first_chunk::<8>() else { return false };
    let of_type =
        |read: fn([u8; 4]) -> u32| read([a, b, c, d]) == TYPE && read(length) < MIN_BLOCK_BYTES;
    of_type(u32::from_le_bytes) || of_type(u32::from_be_bytes)
}

/// The parser's message, without the bytes that it quotes.
fn explain(error: &PcapError<&[u8]>) -> String {
    match error {
        PcapError::NomError(_, kind) | PcapError::OwnedNomError(_, kind) => {
            format!("this is no block of a capture ({kind:?})")
        }
        other => other.to_string(),
    }
}

/// State that the blocks of a capture file share.
#[derive(Default)]
struct Blocks {
    /// Interfaces of this section of a pcapng file, or the only one of a pcap file.
    interfaces: Vec<Interface>,
}

impl Blocks {
    fn block(
        &mut self,
        block: PcapBlockOwned<'_>,
        each: &mut impl FnMut(Option<Interface>, CapturedPacket<'_>),
    ) {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let nanos = header.is_nanosecond_precision();
                self.interfaces = vec![Interface {
                    // The upper bits: whether each packet ends with a checksum.
                    link_type: Linktype(header.network.0 & 0xffff),
                    snap_length: header.snaplen,
                    resolution: if nanos { 1_000_000_000 } else { 1_000_000 },
                    offset: 0,
                }];
            }
            PcapBlockOwned::Legacy(packet) => {
                let interface = self.interfaces.first().copied();
                let fraction = interface.map_or(0, |interface| {
                    u64::from(packet.ts_usec) * (NANOS_PER_SECOND as u64 / interface.resolution)
                });
                let time =
                    Duration::from_secs(packet.ts_sec.into()) + Duration::from_nanos(fraction);
                each(interface, CapturedPacket { time, data: packet.data });
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
                if self.interfaces.len() < MAX_INTERFACES {
                    self.interfaces.push(Interface::new(&block));
                }
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => self.enhanced(&packet, each),
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => self.simple(&packet, each),
            PcapBlockOwned::NG(_) => {}
        }
    }

    fn enhanced(
        &self,
        packet: &EnhancedPacketBlock<'_>,
        each: &mut impl FnMut(Option<Interface>, CapturedPacket<'_>),
    ) {
        let index = usize::try_from(packet.if_id).unwrap_or(usize::MAX);
        let interface = self.interfaces.get(index).copied();
        let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
        let time = interface.map_or(Duration::ZERO, |interface| interface.time(ticks));
        each(interface, CapturedPacket { time, data: packet.packet_data() });
    }

    /// Reads a simple packet: of the first interface, without a time, cut at the snap length.
    fn simple(
        &self,
        packet: &SimplePacketBlock<'_>,
        each: &mut impl FnMut(Option<Interface>, CapturedPacket<'_>),
    ) {
        let interface = self.interfaces.first().copied();
        let snap = interface.map_or(0, |interface| interface.snap_length as usize);
        let data = packet.packet_data();
        let length = if snap == 0 { data.len() } else { data.len().min(snap) };
        each(interface, CapturedPacket { time: Duration::ZERO, data: &data[..length] });
    }
}

/// Returns the TCP segment in a packet. `tally` counts what could not be read.
fn dissect<'a>(
    interface: Option<Interface>,
    packet: &CapturedPacket<'a>,
    tally: &mut CaptureTally,
) -> Option<CapturedSegment<'a>> {
    let Some(interface) = interface else {
        tally.unreadable += 1;
        return None;
    };
    let sliced = slice(interface.link_type, packet.data, tally)?;
    let ip = sliced.net.as_ref().and_then(IpInfo::new)?;
    if ip.protocol != IpNumber::TCP {
        return None;
    }
    if ip.fragmented {
        tally.fragments += 1;
        return None;
    }
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else {
        tally.unreadable += 1;
        return None;
    };
    Some(segment(&ip, tcp, packet.time))
}

/// Splits a packet into headers. Returns `None` and counts in `tally` if that fails.
fn slice<'a>(
    link_type: Linktype,
    data: &'a [u8],
    tally: &mut CaptureTally,
) -> Option<LaxSlicedPacket<'a>> {
    let ip = |data| LaxSlicedPacket::from_ip(data).ok();
    let cooked = |header: usize, protocol: usize| {
        let kind = u16::from_be_bytes(*data.get(protocol..)?.first_chunk()?);
        Some(LaxSlicedPacket::from_ether_type(EtherType(kind), data.get(header..)?))
    };
    let sliced = match link_type {
        Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | RAW_BSD | RAW_OPENBSD => ip(data),
        // The address family differs between systems, so IP's version decides.
        Linktype::NULL | Linktype::LOOP => data.get(LOOPBACK_HEADER_BYTES..).and_then(ip),
        Linktype::LINUX_SLL => cooked(COOKED_V1_HEADER_BYTES, COOKED_V1_HEADER_BYTES - 2),
        Linktype::LINUX_SLL2 => cooked(COOKED_V2_HEADER_BYTES, 0),
        Linktype(other) => {
            *tally.link_types.entry(other).or_default() += 1;
            return None;
        }
    };
    // If a header is cut before the end of IP, there is no network layer.
    let broken =
        sliced.as_ref().is_none_or(|sliced| sliced.net.is_none() && sliced.stop_err.is_some());
    if broken {
        tally.unreadable += 1;
    }
    sliced.filter(|_| !broken)
}

/// Properties of the IP packet around a segment.
struct IpInfo {
    source: IpAddr,
    destination: IpAddr,
    protocol: IpNumber,
    fragmented: bool,
    /// Bytes of the packet that were on the wire and are not in the capture.
    missing: usize,
}

impl IpInfo {
    fn new(net: &LaxNetSlice<'_>) -> Option<Self> {
        let (source, destination, total, headers, payload): (IpAddr, IpAddr, _, _, _) = match net {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                let options = ip.extensions().auth.map_or(0, |auth| auth.slice().len());
                (
                    header.source_addr().into(),
                    header.destination_addr().into(),
                    usize::from(header.total_len()),
                    header.slice().len() + options,
                    ip.payload(),
                )
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                let fixed = header.slice().len();
                (
                    header.source_addr().into(),
                    header.destination_addr().into(),
                    fixed + usize::from(header.payload_length()),
                    fixed + ip.extensions().slice().len(),
                    ip.payload(),
                )
            }
            LaxNetSlice::Arp(_) => return None,
        };
        // A sender leaves a length of zero to its network card: then no bytes count as missing.
        let missing = total.saturating_sub(headers + payload.payload.len());
        let (protocol, fragmented) = (payload.ip_number, payload.fragmented);
        Some(Self { source, destination, protocol, fragmented, missing })
    }
}

fn segment<'a>(ip: &IpInfo, tcp: &TcpSlice<'a>, time: Duration) -> CapturedSegment<'a> {
    CapturedSegment {
        stream: StreamId {
            src: SocketAddr::new(ip.source, tcp.source_port()),
            dst: SocketAddr::new(ip.destination, tcp.destination_port()),
        },
        time,
        sequence: tcp.sequence_number(),
        syn: tcp.syn(),
        fin: tcp.fin(),
        rst: tcp.rst(),
        payload: tcp.payload(),
        missing: ip.missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_process_information_that_is_too_short_is_broken() {
        let file: &[u8] = include_bytes!("../../../../../fuzz/seeds/capture/short-block.pcapng");
        for length in 0..12u8 {
            let mut file = file.to_vec();
            assert_eq!(file[28..33], [1, 0, 0, 0x80, 4]);
            file[32] = length;
            let read = read(&file[..], &mut CaptureTally::default(), |_, _| true);
            let Err(CaptureError::Broken { offset, .. }) = read else { panic!("{read:?}") };
            assert_eq!(offset, 28, "{length}");
        }
    }
}
