//! `bellrock decode`: prints the OpenFlow messages of a capture file or of lines of hex.
//!
//! [`read_capture`] reads the packets of a pcap or pcapng file ([`capture`]), finds the connections
//! that carry OpenFlow ([`find`]), reassembles their TCP streams ([`tcp`]), cuts them into messages
//! and passes each one to a [`Sink`]. [`hex`] reads one message per line. A part that cannot be
//! read is a [`CaptureProblem`], and reading continues after it.
//!
//! All of these look only at the header of a message. [`command`] decodes and prints messages;
//! `filter` selects messages, `clock` prints times, and `headers` prints packets.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) mod capture;
#[cfg(not(fuzzing))]
mod clock;
#[cfg(not(fuzzing))]
pub(crate) mod command;
#[cfg(not(fuzzing))]
mod filter;
pub(crate) mod find;
#[cfg(not(fuzzing))]
pub(crate) mod headers;
pub(crate) mod hex;
#[cfg(not(fuzzing))]
pub(crate) mod peers;
pub(crate) mod tcp;

pub use capture::CaptureError;
use find::{Finder, ServerPorts};
use tcp::{Gap, ReceiveStep, Receiver};

/// Length of the header that every OpenFlow message starts with, in bytes (OpenFlow 1.3.5, section
/// 7.1).
pub(crate) const HEADER_BYTES: usize = 8;

/// The highest published version number: 1.5.
pub(crate) const HIGHEST_VERSION: u8 = 6;

/// The highest message type of each version, from 1.0 to 1.5.
const HIGHEST_TYPE: [u8; HIGHEST_VERSION as usize] = [21, 23, 25, 29, 33, 35];

/// One direction of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StreamId {
    /// The sender.
    pub(crate) src: SocketAddr,
    /// The receiver.
    pub(crate) dst: SocketAddr,
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.src, self.dst)
    }
}

/// A whole OpenFlow message from a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamMessage<'a> {
    /// Its stream.
    pub(crate) stream: StreamId,
    /// Time of the packet with its last byte, since the Unix epoch.
    pub(crate) time: Duration,
    /// Time of the first packet of the capture, since the Unix epoch.
    pub(crate) start: Duration,
    /// Offset of its start: 0 is the first byte after the SYN, or the first byte captured.
    pub(crate) offset: u64,
    /// The message with its header. Its length is that of the header, at least [`HEADER_BYTES`].
    pub(crate) bytes: &'a [u8],
}

/// Receives the results of [`read_capture`], in the order of the capture.
pub(crate) trait Sink {
    /// Receives a whole message, which may still fail to decode.
    fn message(&mut self, message: StreamMessage<'_>);

    /// Receives a problem. Reading continues.
    fn problem(&mut self, problem: CaptureProblem);

    /// Reading of this stream starts in its middle: it began before the capture.
    fn joined(&mut self, _stream: StreamId) {}

    /// Whether to read on. The output of the sink may have been closed.
    fn wants_more(&self) -> bool {
        true
    }
}

/// A part of a capture that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CaptureProblem {
    /// Bytes of a stream are not in the capture. Reading continues at the next segment that starts
    /// with an OpenFlow header. A message that began before the gap is lost.
    Gap {
        /// The stream with the gap.
        stream: StreamId,
        /// Offset of the gap in the stream.
        offset: u64,
        /// Length of the gap, in bytes.
        bytes: u64,
        /// Cause of the gap.
        cause: Gap,
    },
    /// Bytes were skipped to find the start of a message: after a gap, after something that is not
    /// OpenFlow, or because the capture starts in the middle of the stream.
    Skipped {
        /// The stream of the bytes.
        stream: StreamId,
        /// Offset of the first skipped byte in the stream.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// The bytes at the start of a message are no OpenFlow header: the version is not 1 to 6, or
    /// the length is less than that of the header.
    NotOpenFlow {
        /// The stream of the bytes.
        stream: StreamId,
        /// Their offset in the stream.
        offset: u64,
        /// The bytes in place of the header.
        header: [u8; HEADER_BYTES],
    },
    /// The stream ended inside a message.
    Unfinished {
        /// The stream that ended.
        stream: StreamId,
        /// Offset of the message in the stream.
        offset: u64,
        /// Bytes of it that are present.
        have: usize,
    },
    /// There were more than [`tcp::MAX_STREAMS`] streams at a time, and this one was idle.
    Forgotten {
        /// The stream that is no longer followed.
        stream: StreamId,
    },
    /// Fragments of IP packets that may carry TCP. They are not reassembled.
    Fragments {
        /// Number of packets.
        packets: u64,
    },
    /// Packets whose IP or TCP header is cut off or broken.
    Unreadable {
        /// Number of packets.
        packets: u64,
    },
    /// Packets of a link type that is not Ethernet, Linux cooked, raw IP or loopback.
    LinkType {
        /// The number of the link type, as in the list of tcpdump.
        link_type: i32,
        /// Number of packets.
        packets: u64,
    },
    /// The file ends inside a packet. Everything before it was read.
    FileCut {
        /// Position of the end of the last whole block in the file, in bytes.
        offset: usize,
    },
}

impl CaptureProblem {
    /// The stream of the problem, if it has one.
    #[must_use]
    pub(crate) fn stream(&self) -> Option<StreamId> {
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

/// Content type and major version at the start of a TLS connection (RFC 8446, section 5.1).
const TLS_HANDSHAKE: [u8; 2] = [22, 3];

impl fmt::Display for CaptureProblem {
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
                    true => f.write_str(
                        " (this is TLS: tshark decrypts it with the keys of SSLKEYLOGFILE; the guide to \
                         TLS has the command)",
                    ),
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

/// Contents of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CaptureSummary {
    /// Packets of any kind in the file.
    pub(crate) packets: u64,
    /// TCP segments of the connections that were read.
    pub(crate) segments: u64,
    /// OpenFlow messages passed to the sink.
    pub(crate) messages: u64,
    /// TCP ports of servers with the most segments, and the number of segments of each.
    pub(crate) ports: Vec<(u16, u64)>,
}

/// Number of ports in a [`CaptureSummary`].
const SUMMARY_PORTS: usize = 8;

/// Reads a pcap or pcapng file and passes its OpenFlow messages to `sink`. Reads connections with
/// one of these ports, or all that carry OpenFlow if `ports` is empty.
///
/// # Errors
///
/// The file is neither pcap nor pcapng, cannot be read, or is broken so that the next packet cannot
/// be found. Messages before the error were passed on.
pub(crate) fn read_capture(
    input: impl Read + Send,
    ports: &[u16],
    sink: &mut impl Sink,
) -> Result<CaptureSummary, CaptureError> {
    let mut framer = Framer { sink, carry: HashMap::new(), messages: 0, start: Duration::ZERO };
    let mut streams = tcp::Reassembler::default();
    let mut tally = capture::CaptureTally::default();
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
    let ports = ServerPorts::busiest(finder.seen(), SUMMARY_PORTS);
    Ok(CaptureSummary { packets: tally.packets, segments, messages, ports })
}

/// Whether bytes can be the start of a message: version, type and length are possible.
fn plausible(bytes: &[u8]) -> bool {
    let &[version, kind, high, low, ..] = bytes else { return false };
    let highest = usize::from(version).checked_sub(1).and_then(|index| HIGHEST_TYPE.get(index));
    let length = usize::from(u16::from_be_bytes([high, low]));
    highest.is_some_and(|&highest| kind <= highest) && length >= HEADER_BYTES
}

/// Cuts streams into messages. A message in one piece is passed on without a copy. The start of an
/// unfinished one is kept in `carry`, at most 65,535 bytes per stream by the header's length field.
struct Framer<'s, S> {
    sink: &'s mut S,
    carry: HashMap<StreamId, Carry>,
    messages: u64,
    /// Start of the capture.
    start: Duration,
}

/// The start of a message, and its offset in the stream.
struct Carry {
    offset: u64,
    bytes: Vec<u8>,
}

/// Result of looking for a message at the start of bytes.
enum FrameSearch {
    /// A message of this length, with all its bytes.
    Whole(usize),
    /// More bytes are needed: this many in total, as far as is known.
    Short(usize),
    /// The bytes are not OpenFlow.
    Broken([u8; HEADER_BYTES]),
}

fn frame(bytes: &[u8]) -> FrameSearch {
    let Some(&header) = bytes.first_chunk::<HEADER_BYTES>() else {
        return FrameSearch::Short(HEADER_BYTES);
    };
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if !(1..=HIGHEST_VERSION).contains(&header[0]) || length < HEADER_BYTES {
        FrameSearch::Broken(header)
    } else if bytes.len() < length {
        FrameSearch::Short(length)
    } else {
        FrameSearch::Whole(length)
    }
}

impl<S: Sink> Framer<'_, S> {
    /// Completes the message in `carry` and returns the rest, or `None` if it is no OpenFlow.
    fn complete<'b>(
        &mut self,
        carry: &mut Carry,
        stream: StreamId,
        time: Duration,
        mut bytes: &'b [u8],
    ) -> Option<&'b [u8]> {
        loop {
            match frame(&carry.bytes) {
                FrameSearch::Broken(header) => {
                    let offset = carry.offset;
                    self.sink.problem(CaptureProblem::NotOpenFlow { stream, offset, header });
                    return None;
                }
                FrameSearch::Whole(_) => {
                    self.hand_over(stream, time, carry.offset, &carry.bytes);
                    carry.bytes.clear();
                    return Some(bytes);
                }
                FrameSearch::Short(_) if bytes.is_empty() => return Some(bytes),
                FrameSearch::Short(need) => {
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
        self.sink.message(StreamMessage { stream, time, start: self.start, offset, bytes });
    }

    /// Removes the unfinished message of a stream.
    fn drop_carry(&mut self, stream: StreamId) -> Option<Carry> {
        self.carry.remove(&stream).filter(|carry| !carry.bytes.is_empty())
    }
}

impl<S: Sink> Receiver for Framer<'_, S> {
    fn bytes(
        &mut self,
        stream: StreamId,
        time: Duration,
        offset: u64,
        bytes: &[u8],
    ) -> ReceiveStep {
        let end = offset + bytes.len() as u64;
        let mut rest = bytes;
        if let Some(mut carry) = self.drop_carry(stream) {
            let Some(left) = self.complete(&mut carry, stream, time, rest) else {
                return ReceiveStep::Lost;
            };
            if !carry.bytes.is_empty() {
                self.carry.insert(stream, carry);
                return ReceiveStep::Kept;
            }
            rest = left;
        }
        loop {
            let offset = end - rest.len() as u64;
            match frame(rest) {
                FrameSearch::Whole(length) => {
                    let (message, left) = rest.split_at(length);
                    self.hand_over(stream, time, offset, message);
                    rest = left;
                }
                FrameSearch::Short(_) if rest.is_empty() => return ReceiveStep::Kept,
                FrameSearch::Short(_) => {
                    self.carry.insert(stream, Carry { offset, bytes: rest.to_vec() });
                    return ReceiveStep::Kept;
                }
                FrameSearch::Broken(header) => {
                    self.sink.problem(CaptureProblem::NotOpenFlow { stream, offset, header });
                    return ReceiveStep::Lost;
                }
            }
        }
    }

    fn gap(&mut self, stream: StreamId, offset: u64, bytes: u64, cause: Gap) {
        self.drop_carry(stream);
        self.sink.problem(CaptureProblem::Gap { stream, offset, bytes, cause });
    }

    fn joined(&mut self, stream: StreamId) {
        self.sink.joined(stream);
    }

    fn skipped(&mut self, stream: StreamId, offset: u64, bytes: u64) {
        self.sink.problem(CaptureProblem::Skipped { stream, offset, bytes });
    }

    fn end(&mut self, stream: StreamId) {
        if let Some(Carry { offset, bytes }) = self.drop_carry(stream) {
            self.sink.problem(CaptureProblem::Unfinished { stream, offset, have: bytes.len() });
        }
    }

    fn forgotten(&mut self, stream: StreamId) {
        self.drop_carry(stream);
        self.sink.problem(CaptureProblem::Forgotten { stream });
    }
}

#[cfg(test)]
mod tests;
