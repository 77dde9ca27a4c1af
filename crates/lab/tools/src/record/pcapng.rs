//! Writes OpenFlow messages as a pcapng file: each message in a TCP segment of its own.
//!
//! The packets are made up, since a proxy sees no packets: raw IP without Ethernet, each connection
//! with a SYN, sequence numbers without holes, and a FIN. The ends are the switch, and the address
//! that it connected to. The controller's port is written as 6653 if it is another one than 6653
//! and 6633, because programs such as Wireshark know OpenFlow by these ports.
//!
//! The blocks are those of the IETF's draft "PCAP Next Generation (pcapng) Capture File Format":
//! section header, interface description, and enhanced packets.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use etherparse::PacketBuilder;

use super::super::decode::find::USUAL_PORTS;
use super::super::decode::peers::Sender;

/// Maximum payload of a segment, in bytes: an IPv4 packet of at most 65,535 bytes holds it.
const MAX_SEGMENT_BYTES: usize = 65_000;

/// Link type of packets that begin with their IP header.
const LINKTYPE_RAW: u16 = 101;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// Options: of all blocks, of the section header, of interfaces, and of packets.
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;

/// Value of `if_tsresol`: times are in nanoseconds.
const NANOSECONDS: u8 = 9;

/// Values of `epb_flags`: to this end, and from it.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

const TTL: u8 = 64;
const WINDOW: u16 = 0xffff;

/// A connection in the file.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    switch: SocketAddr,
    controller: SocketAddr,
    /// Sequence numbers of the next byte of the switch, and of the controller.
    next: [u32; 2],
}

impl Flow {
    /// A connection between the switch and the address that it connected to.
    pub(crate) fn new(switch: SocketAddr, mut controller: SocketAddr) -> Self {
        if !USUAL_PORTS.contains(&controller.port()) {
            controller.set_port(USUAL_PORTS[0]);
        }
        Flow { switch, controller, next: [0; 2] }
    }
}

/// What a segment is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Segment<'b> {
    Syn,
    SynAck,
    Data(&'b [u8]),
    Fin,
}

/// The file. The caller counts its bytes by [`PcapngWriter::written`].
#[derive(Debug)]
pub(crate) struct PcapngWriter<W> {
    out: W,
    written: u64,
    block: Vec<u8>,
    packet: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Writes the header of the file, with a comment for its reader.
    pub(crate) fn new(out: W, comment: &str) -> io::Result<Self> {
        let mut file = PcapngWriter { out, written: 0, block: Vec::new(), packet: Vec::new() };
        let program = concat!("bellrock ", env!("CARGO_PKG_VERSION"));
        file.block.clear();
        file.block.extend(BYTE_ORDER.to_le_bytes());
        file.block.extend([1, 0, 0, 0]);
        // The length of the section is unknown.
        file.block.extend(u64::MAX.to_le_bytes());
        file.option(OPT_COMMENT, comment.as_bytes());
        file.option(SHB_USERAPPL, program.as_bytes());
        file.option(0, &[]);
        file.end_block(SECTION_HEADER)?;
        file.block.extend(LINKTYPE_RAW.to_le_bytes());
        file.block.extend([0; 2]);
        // No limit of a packet's length.
        file.block.extend([0; 4]);
        file.option(IF_NAME, b"openflow");
        file.option(IF_TSRESOL, &[NANOSECONDS]);
        file.option(0, &[]);
        file.end_block(INTERFACE_DESCRIPTION)?;
        Ok(file)
    }

    /// Bytes of the file so far.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    #[cfg(test)]
    pub(crate) fn into_inner(self) -> W {
        self.out
    }

    /// Passes buffered bytes on.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes the start of a connection. `time` is since the Unix epoch, here and below.
    pub(crate) fn open(&mut self, flow: &mut Flow, time: Duration) -> io::Result<()> {
        self.segment(flow, time, Sender::Switch, Segment::Syn)?;
        self.segment(flow, time, Sender::Controller, Segment::SynAck)
    }

    /// Writes a message, or bytes that are none.
    pub(crate) fn bytes(
        &mut self,
        flow: &mut Flow,
        time: Duration,
        from: Sender,
        bytes: &[u8],
    ) -> io::Result<()> {
        for part in bytes.chunks(MAX_SEGMENT_BYTES) {
            self.segment(flow, time, from, Segment::Data(part))?;
        }
        Ok(())
    }

    /// Writes that one end has closed the connection.
    pub(crate) fn close(
        &mut self,
        flow: &mut Flow,
        time: Duration,
        from: Sender,
    ) -> io::Result<()> {
        self.segment(flow, time, from, Segment::Fin)
    }

    fn segment(
        &mut self,
        flow: &mut Flow,
        time: Duration,
        from: Sender,
        segment: Segment<'_>,
    ) -> io::Result<()> {
        let (src, dst, own, other, flags) = match from {
            Sender::Switch => (flow.switch, flow.controller, 0, 1, INBOUND),
            Sender::Controller => (flow.controller, flow.switch, 1, 0, OUTBOUND),
        };
        let ip = match (src, dst) {
            (SocketAddr::V4(src), SocketAddr::V4(dst)) => {
                PacketBuilder::ipv4(src.ip().octets(), dst.ip().octets(), TTL)
            }
            (src, dst) => {
                let octets = |address: SocketAddr| match address {
                    SocketAddr::V4(v4) => v4.ip().to_ipv6_mapped().octets(),
                    SocketAddr::V6(v6) => v6.ip().octets(),
                };
                PacketBuilder::ipv6(octets(src), octets(dst), TTL)
            }
        };
        let tcp = ip.tcp(src.port(), dst.port(), flow.next[own], WINDOW);
        let tcp = if segment == Segment::Syn { tcp } else { tcp.ack(flow.next[other]) };
        let (tcp, payload) = match segment {
            Segment::Syn | Segment::SynAck => (tcp.syn(), &[][..]),
            Segment::Data(payload) => (tcp.psh(), payload),
            Segment::Fin => (tcp.fin(), &[][..]),
        };
        let takes_number = !matches!(segment, Segment::Data(_));
        let length = payload.len() as u32 + u32::from(takes_number);
        flow.next[own] = flow.next[own].wrapping_add(length);
        self.packet.clear();
        tcp.write(&mut self.packet, payload).map_err(io::Error::other)?;
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let length = (self.packet.len() as u32).to_le_bytes();
        self.block.extend([0; 4]);
        self.block.extend(((nanos >> 32) as u32).to_le_bytes());
        self.block.extend((nanos as u32).to_le_bytes());
        self.block.extend(length);
        self.block.extend(length);
        self.block.extend_from_slice(&self.packet);
        self.pad();
        self.option(EPB_FLAGS, &flags.to_le_bytes());
        self.option(0, &[]);
        self.end_block(ENHANCED_PACKET)
    }

    /// Adds an option, shortened to what its length field can hold.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Writes the block, between its type and its lengths.
    fn end_block(&mut self, kind: u32) -> io::Result<()> {
        let length = self.block.len() as u32 + 12;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&length.to_le_bytes())?;
        self.written += u64::from(length);
        self.block.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::decode::{CaptureProblem, Sink, StreamMessage, read_capture};
    use super::*;

    #[derive(Default)]
    struct Seen {
        messages: Vec<(SocketAddr, Duration, Vec<u8>)>,
        problems: Vec<CaptureProblem>,
    }

    impl Sink for Seen {
        fn message(&mut self, message: StreamMessage<'_>) {
            let StreamMessage { stream, time, bytes, .. } = message;
            self.messages.push((stream.src, time, bytes.to_vec()));
        }
        fn problem(&mut self, problem: CaptureProblem) {
            self.problems.push(problem);
        }
    }

    fn message(kind: u8, length: u16) -> Vec<u8> {
        let mut message = vec![kind; length.into()];
        message[0] = 4;
        message[2..4].copy_from_slice(&length.to_be_bytes());
        message
    }

    #[test]
    fn a_written_capture_is_read_again_with_its_times_and_ends() {
        let time = |ms| Duration::from_secs(1_795_370_718) + Duration::from_millis(ms);
        for (switch, controller) in [
            ("192.0.2.7:40000", "192.0.2.1:6653"),
            ("[2001:db8::7]:40000", "[2001:db8::1]:6633"),
            ("192.0.2.7:40000", "127.0.0.1:7777"),
        ] {
            let [switch, controller] =
                [switch, controller].map(|a| a.parse::<SocketAddr>().unwrap());
            let mut file = PcapngWriter::new(Vec::new(), "a comment").unwrap();
            let mut flow = Flow::new(switch, controller);
            file.open(&mut flow, time(0)).unwrap();
            let sent = [
                (Sender::Switch, message(0, 8)),
                (Sender::Controller, message(0, 16)),
                (Sender::Switch, message(10, u16::MAX)),
                (Sender::Controller, message(13, 99)),
            ];
            for (n, (from, bytes)) in sent.iter().enumerate() {
                file.bytes(&mut flow, time(1 + n as u64), *from, bytes).unwrap();
            }
            file.close(&mut flow, time(9), Sender::Switch).unwrap();
            file.close(&mut flow, time(9), Sender::Controller).unwrap();
            assert_eq!(file.written(), file.out.len() as u64);
            let mut seen = Seen::default();
            let summary = read_capture(&file.out[..], &[], &mut seen).unwrap();
            assert_eq!(seen.problems, []);
            // The largest message needs two segments.
            assert_eq!((summary.packets, summary.messages), (9, 4));
            let written = if controller.port() == 7777 {
                "127.0.0.1:6653".parse().unwrap()
            } else {
                controller
            };
            let expected: Vec<_> = sent
                .into_iter()
                .enumerate()
                .map(|(n, (from, bytes))| {
                    let src = if from == Sender::Switch { switch } else { written };
                    (src, time(1 + n as u64), bytes)
                })
                .collect();
            assert!(seen.messages == expected);
        }
    }
}
