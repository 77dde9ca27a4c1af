//! `bellrock decode`: from a capture file or from lines of hex to whole OpenFlow messages, and those printed.
//!
//! [`read_capture`] takes a pcap or pcapng file apart ([`capture`]), finds the connections that carry OpenFlow ([`find`]),
//! puts their TCP streams together again ([`tcp`]), cuts them into messages and hands each one to a [`Sink`]. [`hex`]
//! reads one message a line. What cannot be read is a [`Problem`], and reading goes on behind it.
//!
//! Nothing of this knows what a message means: only its header is looked at. [`command`] is the command that decodes and
//! prints; `filter` says which messages, `clock` how times are printed, `headers` how packets are.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

pub mod capture;
mod clock;
pub mod command;
mod filter;
pub mod find;
pub mod headers;
pub mod hex;
mod peers;
pub mod tcp;

pub use capture::CaptureError;
use find::{Finder, Seen};
use tcp::{Gap, Receiver, Step};

/// Length of the header that every OpenFlow message starts with, in bytes (OpenFlow 1.3.5, section 7.1).
pub const HEADER_BYTES: usize = 8;

/// The highest version number that has been published: 1.5.
const HIGHEST_VERSION: u8 = 6;

/// The highest message type of each version, from 1.0 to 1.5.
const HIGHEST_TYPE: [u8; HIGHEST_VERSION as usize] = [21, 23, 25, 29, 33, 35];

/// One direction of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId {
    /// Who sends.
    pub src: SocketAddr,
    /// Who receives.
    pub dst: SocketAddr,
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.src, self.dst)
    }
}

/// A whole OpenFlow message out of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The stream that it was in.
    pub stream: StreamId,
    /// When the packet with its last byte was captured, since the Unix epoch.
    pub time: Duration,
    /// When the first packet of the capture was captured, since the Unix epoch.
    pub start: Duration,
    /// Where it begins in the stream: 0 is the first byte after the SYN, or the first that was captured.
    pub offset: u64,
    /// The message with its header; as long as the header says, and at least [`HEADER_BYTES`].
    pub bytes: &'a [u8],
}

/// Takes what [`read_capture`] finds, in the order of the capture.
pub trait Sink {
    /// A whole message; whether it decodes is for the sink to find out.
    fn message(&mut self, message: Message<'_>);

    /// Something that could not be read. Reading goes on.
    fn problem(&mut self, problem: Problem);

    /// A stream is read from here on; it began before the capture.
    fn joined(&mut self, _stream: StreamId) {}

    /// Whether to read on. Nobody may be there any more to read what the sink prints.
    fn wants_more(&self) -> bool {
        true
    }
}

/// Something in a capture that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Bytes of a stream are not in the capture. What comes next is read from the next segment that starts with an
    /// OpenFlow header; a message that had begun before the gap is gone.
    Gap {
        /// The stream that they are missing from.
        stream: StreamId,
        /// Where in the stream the gap begins.
        offset: u64,
        /// How long it is, in bytes.
        bytes: u64,
        /// Why.
        cause: Gap,
    },
    /// Bytes were passed over to find the start of a message: after a gap, after something that is not OpenFlow, or
    /// because the capture starts in the middle of the stream.
    Skipped {
        /// The stream that they were in.
        stream: StreamId,
        /// Where in the stream they begin.
        offset: u64,
        /// How many there were.
        bytes: u64,
    },
    /// Where a message should begin are bytes that are no OpenFlow header: the version is not 1 to 6, or the length
    /// is less than that of the header.
    NotOpenFlow {
        /// The stream that they are in.
        stream: StreamId,
        /// Where in the stream they begin.
        offset: u64,
        /// The bytes in the header's place.
        header: [u8; HEADER_BYTES],
    },
    /// The stream ended inside of a message.
    Unfinished {
        /// The stream that ended.
        stream: StreamId,
        /// Where in the stream the message begins.
        offset: u64,
        /// Bytes of it that are there.
        have: usize,
    },
    /// There were more than [`tcp::MAX_STREAMS`] streams at a time, and this one had been idle for longest.
    Forgotten {
        /// The stream that is no longer followed.
        stream: StreamId,
    },
    /// Fragments of IP packets that may carry TCP; they are not put together.
    Fragments {
        /// How many.
        packets: u64,
    },
    /// Packets whose IP or TCP header is cut off or broken.
    Unreadable {
        /// How many.
        packets: u64,
    },
    /// Packets of a link type that is not Ethernet, Linux cooked, raw IP or loopback.
    LinkType {
        /// The number of the link type, as in the list of tcpdump.
        link_type: i32,
        /// How many.
        packets: u64,
    },
    /// The file ends inside of a packet; what came before was read.
    FileCut {
        /// Where in the file the last whole block ends, in bytes.
        offset: usize,
    },
}

impl Problem {
    /// The stream that it is about, if it is one.
    #[must_use]
    pub fn stream(&self) -> Option<StreamId> {
        match self {
            Self::Gap { stream, .. }
            | Self::Skipped { stream, .. }
            | Self::NotOpenFlow { stream, .. }
            | Self::Unfinished { stream, .. }
            | Self::Forgotten { stream } => Some(*stream),
            _ => None,
        }
    }
}

/// Content type and major version of the records that TLS begins with (RFC 8446, section 5.1).
const TLS_HANDSHAKE: [u8; 2] = [22, 3];

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { stream, offset, bytes, cause } => {
                write!(f, "{stream}: {bytes} bytes are missing at offset {offset}: {cause}")
            }
            Self::Skipped { stream, offset: 0, bytes } => write!(
                f,
                "{stream}: {bytes} bytes skipped: the capture begins inside of a message of this stream"
            ),
            Self::Skipped { stream, offset, bytes } => {
                write!(f, "{stream}: {bytes} bytes skipped at offset {offset}: no OpenFlow header")
            }
            Self::NotOpenFlow { stream, offset, header } => {
                write!(f, "{stream}: not an OpenFlow header at offset {offset}:")?;
                header.iter().try_for_each(|byte| write!(f, " {byte:02x}"))?;
                match header.starts_with(&TLS_HANDSHAKE) {
                    true => f.write_str(" (this is TLS, which cannot be read here)"),
                    false => Ok(()),
                }
            }
            Self::Unfinished { stream, offset, have } => {
                write!(f, "{stream}: the stream ends {have} bytes into the message at {offset}")
            }
            Self::Forgotten { stream } => {
                write!(f, "{stream}: no longer followed: more than {} streams", tcp::MAX_STREAMS)
            }
            Self::Fragments { packets } => {
                write!(f, "{packets} IP fragments left out; capture before fragmentation")
            }
            Self::Unreadable { packets } => {
                write!(f, "{packets} packets left out: their IP or TCP headers are cut or broken")
            }
            Self::LinkType { link_type, packets } => write!(
                f,
                "{packets} packets left out: link type {link_type} is not Ethernet, Linux cooked, \
                 raw IP or loopback"
            ),
            Self::FileCut { offset } => {
                write!(f, "the file is cut off inside of the block at byte {offset}")
            }
        }
    }
}

/// What was in a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Packets in the file, of whatever kind.
    pub packets: u64,
    /// TCP segments of the connections that were read.
    pub segments: u64,
    /// OpenFlow messages handed to the sink.
    pub messages: u64,
    /// TCP ports of servers, and how many segments each had: those with the most.
    pub ports: Vec<(u16, u64)>,
}

/// Ports of servers that a [`Summary`] has.
const SUMMARY_PORTS: usize = 8;

/// Reads a pcap or pcapng file and hands every OpenFlow message to `sink`: of connections with one of these ports, or
/// where there are none, of all that carry OpenFlow.
///
/// # Errors
///
/// When the file is neither pcap nor pcapng, cannot be read, or is broken so that what follows cannot be found. What
/// was read up to there has been handed over.
pub fn read_capture(
    input: impl Read + Send,
    ports: &[u16],
    sink: &mut impl Sink,
) -> Result<Summary, CaptureError> {
    let mut framer = Framer { sink, carry: HashMap::new(), messages: 0, start: Duration::ZERO };
    let mut streams = tcp::Reassembler::default();
    let mut tally = capture::Tally::default();
    let mut finder = Finder::new(ports);
    let mut segments = 0;
    let result = capture::read(input, &mut tally, |segment, tally| {
        framer.start = tally.start.unwrap_or_default();
        finder.segment(&segment, |segment| {
            segments += 1;
            streams.segment(segment, &mut framer);
        });
        framer.sink.wants_more()
    });
    finder.finish(|segment| {
        segments += 1;
        streams.segment(segment, &mut framer);
    });
    streams.finish(&mut framer);
    let messages = framer.messages;
    tally.problems().for_each(|problem| sink.problem(problem));
    result?;
    let ports = Seen::busiest(finder.seen(), SUMMARY_PORTS);
    Ok(Summary { packets: tally.packets, segments, messages, ports })
}

/// Whether bytes can be the start of a message: a known version, a type that it has, a possible length.
fn plausible(bytes: &[u8]) -> bool {
    let &[version, kind, high, low, ..] = bytes else { return false };
    let highest = usize::from(version).checked_sub(1).and_then(|index| HIGHEST_TYPE.get(index));
    let length = usize::from(u16::from_be_bytes([high, low]));
    highest.is_some_and(|&highest| kind <= highest) && length >= HEADER_BYTES
}

/// Cuts streams into messages. A message in one piece is passed on without a copy; the start of one is kept in `carry`,
/// which the header's length field bounds to 65,535 bytes a stream.
struct Framer<'s, S> {
    sink: &'s mut S,
    carry: HashMap<StreamId, Carry>,
    messages: u64,
    /// When the capture began.
    start: Duration,
}

/// The start of a message, and where it is in its stream.
struct Carry {
    offset: u64,
    bytes: Vec<u8>,
}

/// What the bytes at the start of a message say about its length.
enum Frame {
    /// It is this long, and its bytes are all there.
    Whole(usize),
    /// More bytes are needed: so many in all, as far as is known.
    Short(usize),
    /// This is not OpenFlow.
    Broken([u8; HEADER_BYTES]),
}

fn frame(bytes: &[u8]) -> Frame {
    let Some(&header) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Frame::Short(HEADER_BYTES);
    };
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if !(1..=HIGHEST_VERSION).contains(&header[0]) || length < HEADER_BYTES {
        Frame::Broken(header)
    } else if bytes.len() < length {
        Frame::Short(length)
    } else {
        Frame::Whole(length)
    }
}

impl<S: Sink> Framer<'_, S> {
    /// Completes the message in `carry` and returns the bytes that are left over, or `None` when it is not OpenFlow.
    fn complete<'b>(
        &mut self,
        carry: &mut Carry,
        stream: StreamId,
        time: Duration,
        mut bytes: &'b [u8],
    ) -> Option<&'b [u8]> {
        loop {
            match frame(&carry.bytes) {
                Frame::Broken(header) => {
                    let offset = carry.offset;
                    self.sink.problem(Problem::NotOpenFlow { stream, offset, header });
                    return None;
                }
                Frame::Whole(_) => {
                    self.hand_over(stream, time, carry.offset, &carry.bytes);
                    carry.bytes.clear();
                    return Some(bytes);
                }
                Frame::Short(_) if bytes.is_empty() => return Some(bytes),
                Frame::Short(need) => {
                    let take = (need - carry.bytes.len()).min(bytes.len());
                    let (head, rest) = bytes.split_at(take);
                    carry.bytes.extend_from_slice(head);
                    bytes = rest;
                }
            }
        }
    }

    fn hand_over(&mut self, stream: StreamId, time: Duration, offset: u64, bytes: &[u8]) {
        self.messages += 1;
        self.sink.message(Message { stream, time, start: self.start, offset, bytes });
    }

    /// Forgets the unfinished message of a stream.
    fn drop_carry(&mut self, stream: StreamId) -> Option<Carry> {
        self.carry.remove(&stream).filter(|carry| !carry.bytes.is_empty())
    }
}

impl<S: Sink> Receiver for Framer<'_, S> {
    fn bytes(&mut self, stream: StreamId, time: Duration, offset: u64, bytes: &[u8]) -> Step {
        let end = offset + bytes.len() as u64;
        let mut rest = bytes;
        if let Some(mut carry) = self.drop_carry(stream) {
            let Some(left) = self.complete(&mut carry, stream, time, rest) else {
                return Step::Lost;
            };
            if !carry.bytes.is_empty() {
                self.carry.insert(stream, carry);
                return Step::Kept;
            }
            rest = left;
        }
        loop {
            let offset = end - rest.len() as u64;
            match frame(rest) {
                Frame::Whole(length) => {
                    let (message, left) = rest.split_at(length);
                    self.hand_over(stream, time, offset, message);
                    rest = left;
                }
                Frame::Short(_) if rest.is_empty() => return Step::Kept,
                Frame::Short(_) => {
                    self.carry.insert(stream, Carry { offset, bytes: rest.to_vec() });
                    return Step::Kept;
                }
                Frame::Broken(header) => {
                    self.sink.problem(Problem::NotOpenFlow { stream, offset, header });
                    return Step::Lost;
                }
            }
        }
    }

    fn gap(&mut self, stream: StreamId, offset: u64, bytes: u64, cause: Gap) {
        self.drop_carry(stream);
        self.sink.problem(Problem::Gap { stream, offset, bytes, cause });
    }

    fn joined(&mut self, stream: StreamId) {
        self.sink.joined(stream);
    }

    fn skipped(&mut self, stream: StreamId, offset: u64, bytes: u64) {
        self.sink.problem(Problem::Skipped { stream, offset, bytes });
    }

    fn end(&mut self, stream: StreamId) {
        if let Some(Carry { offset, bytes }) = self.drop_carry(stream) {
            self.sink.problem(Problem::Unfinished { stream, offset, have: bytes.len() });
        }
    }

    fn forgotten(&mut self, stream: StreamId) {
        self.drop_carry(stream);
        self.sink.problem(Problem::Forgotten { stream });
    }
}

#[cfg(test)]
mod tests;
