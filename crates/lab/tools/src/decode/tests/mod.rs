//! From a capture file to messages. The tests build the files.

use std::net::{IpAddr, Ipv4Addr};

use etherparse::{IpHeaders, PacketBuilder};

use super::*;

mod command;
mod connections;
mod files;
mod streams;

const CONTROLLER: u16 = 6653;
const SWITCH: u16 = 40_000;

/// An OpenFlow 1.3 message with `body` random-looking bytes.
fn message(xid: u32, body: usize) -> Vec<u8> {
    let length = u16::try_from(HEADER_BYTES + body).unwrap();
    let mut bytes = vec![4, 2];
    bytes.extend(length.to_be_bytes());
    bytes.extend(xid.to_be_bytes());
    bytes.extend((0..body).map(|index| (index as u32 * 31 + xid) as u8));
    bytes
}

/// A TCP segment from the switch to the controller.
#[derive(Clone, Debug)]
struct Seg {
    sequence: u32,
    payload: Vec<u8>,
    syn: bool,
    fin: bool,
    rst: bool,
}

fn seg(sequence: u32, payload: &[u8]) -> Seg {
    Seg { sequence, payload: payload.to_vec(), syn: false, fin: false, rst: false }
}

fn syn(sequence: u32) -> Seg {
    Seg { syn: true, ..seg(sequence, &[]) }
}

fn fin(sequence: u32) -> Seg {
    Seg { fin: true, ..seg(sequence, &[]) }
}

fn rst(sequence: u32) -> Seg {
    Seg { rst: true, ..seg(sequence, &[]) }
}

impl Seg {
    /// The segment in an IPv4 packet.
    fn ipv4(&self) -> Vec<u8> {
        self.on(PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64))
    }

    fn ethernet(&self) -> Vec<u8> {
        self.on(PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64))
    }

    fn on(&self, ip: etherparse::PacketBuilderStep<IpHeaders>) -> Vec<u8> {
        self.between(ip, SWITCH, CONTROLLER)
    }

    /// The segment between these ports.
    fn between(&self, ip: etherparse::PacketBuilderStep<IpHeaders>, src: u16, dst: u16) -> Vec<u8> {
        let mut tcp = ip.tcp(src, dst, self.sequence, 65_535);
        if self.syn {
            tcp = tcp.syn();
        }
        if self.fin {
            tcp = tcp.fin();
        }
        if self.rst {
            tcp = tcp.rst();
        }
        let mut packet = Vec::new();
        tcp.write(&mut packet, &self.payload).unwrap();
        packet
    }
}

/// The segment in a frame to a server at this port.
fn port(port: u16, segment: Seg) -> Vec<u8> {
    let ip = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    segment.between(ip, SWITCH, port)
}

/// A pcap file of packets with their lengths on the wire. One a second, from second 1 on.
fn pcap_cut(link_type: u32, packets: &[(Vec<u8>, usize)]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    for half in [2_u16, 4] {
        file.extend(half.to_le_bytes());
    }
    for word in [0, 0, 262_144, link_type] {
        file.extend(word.to_le_bytes());
    }
    for (second, (packet, length)) in (1_u32..).zip(packets) {
        for word in [second, 250_000, packet.len() as u32, *length as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

fn pcap(link_type: u32, packets: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let packets: Vec<_> = packets.into_iter().map(|p| (p.clone(), p.len())).collect();
    pcap_cut(link_type, &packets)
}

const ETHERNET: u32 = 1;
const RAW: u32 = 101;

/// A block of a pcapng file in this byte order.
fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let word = |word: u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
    let padding = body.len().wrapping_neg() % 4;
    let length = word((12 + body.len() + padding) as u32);
    [&word(kind), &length, body, &[0; 3][..padding], &length].concat()
}

fn words(big: bool, words: &[u32]) -> Vec<u8> {
    let bytes = |word: &u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
    words.iter().flat_map(bytes).collect()
}

/// The start of a pcapng section with one interface of this link type, whose clock counts
/// nanoseconds.
fn section(big: bool, link_type: u16) -> Vec<u8> {
    let half = |half: u16| if big { half.to_be_bytes() } else { half.to_le_bytes() };
    let version = [half(1), half(0)].concat();
    let header = [words(big, &[0x1a2b_3c4d]), version, vec![0xff; 8]].concat();
    let options = [half(9).to_vec(), half(1).to_vec(), vec![9, 0, 0, 0], vec![0; 4]].concat();
    let interface = [half(link_type).to_vec(), vec![0; 2], words(big, &[65_535]), options].concat();
    [block(big, 0x0a0d_0d0a, &header), block(big, 1, &interface)].concat()
}

/// An enhanced packet block of interface 0.
fn enhanced(big: bool, nanos: u64, packet: &[u8]) -> Vec<u8> {
    let length = packet.len() as u32;
    let head = words(big, &[0, (nanos >> 32) as u32, nanos as u32, length, length]);
    block(big, 6, &[head, packet.to_vec()].concat())
}

/// Everything that the sink received.
#[derive(Debug, Default)]
struct Record {
    messages: Vec<(StreamId, Duration, u64, Vec<u8>)>,
    problems: Vec<CaptureProblem>,
    /// Streams that began before the capture.
    joined: usize,
}

impl Sink for Record {
    fn joined(&mut self, _: StreamId) {
        self.joined += 1;
    }

    fn message(&mut self, StreamMessage { stream, time, offset, bytes, .. }: StreamMessage<'_>) {
        self.messages.push((stream, time, offset, bytes.to_vec()));
    }

    fn problem(&mut self, problem: CaptureProblem) {
        self.problems.push(problem);
    }
}

impl Record {
    fn bytes(&self) -> Vec<Vec<u8>> {
        self.messages.iter().map(|(.., bytes)| bytes.clone()).collect()
    }
}

fn read(file: &[u8]) -> (Record, Result<CaptureSummary, CaptureError>) {
    let mut record = Record::default();
    let result = read_capture(file, &[CONTROLLER, 6633], &mut record);
    (record, result)
}

/// Reads segments as packets of a raw IP capture.
fn read_segments(segments: &[Seg]) -> Record {
    let (record, result) = read(&pcap(RAW, segments.iter().map(Seg::ipv4)));
    assert_eq!(result.unwrap().segments, segments.len() as u64);
    record
}

fn stream() -> StreamId {
    let at = |host, port| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port);
    StreamId { src: at(1, SWITCH), dst: at(2, CONTROLLER) }
}

/// Asserts that a file has this one message and no problems.
#[track_caller]
fn assert_one(file: &[u8], expected: &[u8]) {
    let (record, result) = read(file);
    assert_eq!(record.bytes(), [expected]);
    assert_eq!(record.problems, []);
    assert_eq!(result.unwrap().messages, 1);
}
