//! Reassembles TCP streams, each direction by itself.
//!
//! Segments may be out of order, repeated or overlapping. Of two that disagree the first one wins,
//! as in most receivers. Sequence numbers wrap around. Bytes missing from the capture are reported
//! as a gap. After a gap, nothing is passed on until a segment starts with a plausible OpenFlow
//! header, since the message boundaries are unknown. A capture inside a stream begins likewise.
//!
//! A hole counts as lost when the stream ends, or when the bytes waiting behind it reach a limit.
//! Checksums are ignored: the network card of the sender may not have filled them in.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use super::capture::CapturedSegment;
use super::{StreamId, plausible};

/// Bytes of one stream that wait behind a hole. Above this limit, the first hole counts as lost.
pub(crate) const MAX_WAITING_PER_STREAM_BYTES: usize = 1024 * 1024;

/// Bytes that wait in all streams. Above it, holes of the next stream count as lost.
pub(crate) const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// Streams followed at a time. Above it, the idlest quarter is forgotten.
pub(crate) const MAX_STREAMS: usize = 16 * 1024;

/// Maximum distance of a segment from the next expected byte, in bytes. A segment farther away
/// belongs to another connection between the same ports, whose start is not in the capture.
pub(crate) const MAX_DISTANCE_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes added for each waiting segment, so that many small ones are limited as well.
const WAITING_OVERHEAD_BYTES: usize = 128;

/// Why bytes of a stream are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// The segment is not in the capture.
    Lost,
    /// The snap length of the capture cut the segment off.
    SnapLength,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "the capture has lost a segment",
            Self::SnapLength => "the capture has cut segments off; capture with `tcpdump -s 0`",
        })
    }
}

/// What a receiver did with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiveStep {
    /// The bytes continue the messages before them.
    Kept,
    /// The bytes are no OpenFlow. They are skipped up to the next plausible header.
    Lost,
}

/// Receives the streams, each in order.
pub(crate) trait Receiver {
    /// Receives the next bytes of a stream. `offset` is from its start; `time` is the packet's.
    fn bytes(&mut self, stream: StreamId, time: Duration, offset: u64, bytes: &[u8])
    -> ReceiveStep;
    /// Bytes are missing. The next bytes begin with a plausible header.
    fn gap(&mut self, stream: StreamId, offset: u64, bytes: u64, cause: Gap);
    /// The stream began before the capture. Its first bytes to be passed on begin a message.
    fn joined(&mut self, stream: StreamId);
    /// Bytes from `offset` on were skipped, without a plausible header at the start of a segment.
    fn skipped(&mut self, stream: StreamId, offset: u64, bytes: u64);
    /// The stream has no more bytes.
    fn end(&mut self, stream: StreamId);
    /// The stream is no longer followed: there were more than [`MAX_STREAMS`].
    fn forgotten(&mut self, stream: StreamId);
}

/// All streams of a capture.
#[derive(Debug, Default)]
pub(crate) struct Reassembler {
    streams: HashMap<StreamId, OneWayStream>,
    /// Bytes waiting in all streams, with their overhead.
    waiting: usize,
    /// Number of segments so far. It is the clock that measures how long a stream is idle.
    clock: u64,
}

/// One direction of a connection. Offsets count from its first byte and do not wrap.
#[derive(Debug)]
struct OneWayStream {
    /// Sequence number of the byte at offset 0.
    base: u32,
    /// Offset of the next expected byte.
    next: u64,
    /// Bytes behind a hole, by the offset of the first. They do not overlap.
    waiting: BTreeMap<u64, Piece>,
    /// Size of `waiting`, with its overhead.
    waiting_bytes: usize,
    /// Offset after the last byte, once a FIN was seen.
    end: Option<u64>,
    /// Offset from which bytes are skipped.
    searching: Option<u64>,
    /// Whether the stream has ended. Further segments are retransmissions.
    closed: bool,
    /// Value of the clock at its latest segment.
    used: u64,
}

/// A part of a segment that no earlier segment has.
#[derive(Debug)]
struct Piece {
    time: Duration,
    bytes: Vec<u8>,
    /// Whether it begins at the start of its segment.
    whole: bool,
    /// Bytes after it that the capture cut off.
    missing: u64,
}

impl Piece {
    fn cost(&self) -> usize {
        self.bytes.len() + WAITING_OVERHEAD_BYTES
    }
}

impl Reassembler {
    /// Takes a segment and passes on all bytes that are in order now.
    pub(crate) fn segment(&mut self, segment: &CapturedSegment<'_>, to: &mut impl Receiver) {
        self.clock += 1;
        let id = segment.stream;
        if self.is_another(segment)
            && let Some(mut old) = self.streams.remove(&id)
        {
            self.waiting -= old.waiting_bytes;
            old.close(id, to);
        }
        if !self.streams.contains_key(&id) {
            if !segment.syn && segment.payload.is_empty() && segment.missing == 0 {
                return;
            }
            if self.streams.len() >= MAX_STREAMS {
                self.forget_idle(to);
            }
        }
        let stream = self.streams.entry(id).or_insert_with(|| OneWayStream::new(segment));
        stream.used = self.clock;
        if stream.closed {
            return;
        }
        let before = stream.waiting_bytes;
        stream.add(segment);
        stream.drain(id, to);
        let others = self.waiting - before;
        while stream.waiting_bytes > MAX_WAITING_PER_STREAM_BYTES
            || (stream.waiting_bytes > 0 && others + stream.waiting_bytes > MAX_WAITING_BYTES)
        {
            stream.give_up_hole(id, to);
            stream.drain(id, to);
        }
        if segment.rst || stream.end.is_some_and(|end| stream.next >= end) {
            stream.close(id, to);
        }
        self.waiting = others + stream.waiting_bytes;
    }

    /// Ends the capture: ends all streams, in the order of their names.
    pub(crate) fn finish(mut self, to: &mut impl Receiver) {
        let mut streams: Vec<_> = self.streams.drain().collect();
        streams.sort_by_key(|&(id, _)| id);
        for (id, mut stream) in streams {
            stream.close(id, to);
        }
    }

    /// Whether a segment belongs to another connection than the followed stream of that name.
    fn is_another(&self, segment: &CapturedSegment<'_>) -> bool {
        let Some(stream) = self.streams.get(&segment.stream) else { return false };
        if segment.syn {
            return segment.sequence.wrapping_add(1) != stream.base;
        }
        let start = stream.position(segment.sequence);
        let length = segment.payload.len() as i64;
        let distance = start.abs_diff(stream.next as i64);
        let new = length > 0 && start + length > stream.next as i64;
        distance > MAX_DISTANCE_BYTES || (stream.closed && new)
    }

    fn forget_idle(&mut self, to: &mut impl Receiver) {
        let mut idle: Vec<_> = self.streams.iter().map(|(&id, stream)| (stream.used, id)).collect();
        idle.sort_unstable();
        for (_, id) in idle.into_iter().take(MAX_STREAMS.div_ceil(4)) {
            if let Some(mut stream) = self.streams.remove(&id) {
                self.waiting -= stream.waiting_bytes;
                if !stream.closed {
                    stream.flush(id, to);
                    to.forgotten(id);
                }
            }
        }
    }
}

impl OneWayStream {
    fn new(first: &CapturedSegment<'_>) -> Self {
        Self {
            base: first.sequence.wrapping_add(first.syn.into()),
            next: 0,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            end: None,
            searching: (!first.syn).then_some(0),
            closed: false,
            used: 0,
        }
    }

    /// The offset of this sequence number, nearest to the next byte. Negative before offset 0.
    fn position(&self, sequence: u32) -> i64 {
        let due = self.base.wrapping_add(self.next as u32);
        self.next as i64 + i64::from(sequence.wrapping_sub(due).cast_signed())
    }

    /// Adds the new bytes of a segment to the waiting ones.
    fn add(&mut self, segment: &CapturedSegment<'_>) {
        let start = self.position(segment.sequence.wrapping_add(segment.syn.into()));
        let end = start + (segment.payload.len() + segment.missing) as i64;
        if segment.fin && end >= 0 {
            self.end.get_or_insert(end as u64);
        }
        let mut at = start.max(self.next as i64) as u64;
        let captured_end = start + segment.payload.len() as i64;
        while (at as i64) < captured_end {
            // `until`: start of the next waiting piece; `on`: its end.
            let (until, on) = self.next_hole(at, captured_end as u64);
            if at < until {
                let from = (at as i64 - start) as usize;
                let to = (until as i64 - start) as usize;
                let last = until as i64 == captured_end;
                self.keep(
                    at,
                    Piece {
                        time: segment.time,
                        bytes: segment.payload[from..to].to_vec(),
                        whole: at as i64 == start,
                        missing: if last { segment.missing as u64 } else { 0 },
                    },
                );
            }
            at = on;
        }
        // A segment without captured payload keeps only its place.
        if segment.payload.is_empty() && segment.missing > 0 && start >= self.next as i64 {
            let at = start as u64;
            if self.next_hole(at, at + 1).0 > at {
                let missing = segment.missing as u64;
                self.keep(
                    at,
                    Piece { time: segment.time, bytes: Vec::new(), whole: false, missing },
                );
            }
        }
    }

    /// Finds the first new bytes in `at..end`. Returns their end, and the end of the next piece.
    fn next_hole(&self, at: u64, end: u64) -> (u64, u64) {
        let before = self.waiting.range(..=at).next_back();
        if let Some((&start, piece)) = before
            && at < start + piece.bytes.len() as u64
        {
            let on = start + piece.bytes.len() as u64;
            return (at, on);
        }
        match self.waiting.range(at..end).find(|(_, piece)| !piece.bytes.is_empty()) {
            Some((&start, piece)) => (start, start + piece.bytes.len() as u64),
            None => (end, end),
        }
    }

    fn keep(&mut self, at: u64, piece: Piece) {
        self.waiting_bytes += piece.cost();
        if let Some(cut_off) = self.waiting.insert(at, piece) {
            self.waiting_bytes -= cut_off.cost();
        }
    }

    /// Passes on the bytes that are in order.
    fn drain(&mut self, id: StreamId, to: &mut impl Receiver) {
        while let Some(entry) = self.waiting.first_entry()
            && *entry.key() <= self.next
        {
            let (at, piece) = entry.remove_entry();
            self.waiting_bytes -= piece.cost();
            // Bytes in a part that was cut off from another segment come too late.
            let behind = usize::try_from(self.next - at).unwrap_or(usize::MAX);
            if let Some(bytes) = piece.bytes.get(behind..) {
                self.pass_on(id, &piece, bytes, piece.whole && behind == 0, to);
            }
            if piece.missing > 0 {
                self.pass_gap(
                    id,
                    at + piece.bytes.len() as u64 + piece.missing,
                    Gap::SnapLength,
                    to,
                );
            }
        }
    }

    fn pass_on(
        &mut self,
        id: StreamId,
        piece: &Piece,
        bytes: &[u8],
        whole: bool,
        to: &mut impl Receiver,
    ) {
        let offset = self.next;
        self.next += bytes.len() as u64;
        if self.searching.is_some() {
            if !(whole && plausible(bytes)) {
                return;
            }
            self.end_search(id, offset, to);
        }
        if to.bytes(id, piece.time, offset, bytes) == ReceiveStep::Lost {
            self.searching = Some(self.next);
        }
    }

    /// Reports the bytes skipped until `offset`.
    fn end_search(&mut self, id: StreamId, offset: u64, to: &mut impl Receiver) {
        match self.searching.take() {
            Some(since) if since < offset => to.skipped(id, since, offset - since),
            Some(0) => to.joined(id),
            _ => {}
        }
    }

    /// Reports a gap before `until`, and searches for a header from there on.
    fn pass_gap(&mut self, id: StreamId, until: u64, cause: Gap, to: &mut impl Receiver) {
        if until > self.next {
            self.end_search(id, self.next, to);
            to.gap(id, self.next, until - self.next, cause);
            self.next = until;
            self.searching = Some(until);
        }
    }

    /// Counts the first hole as lost.
    fn give_up_hole(&mut self, id: StreamId, to: &mut impl Receiver) {
        if let Some((&start, _)) = self.waiting.first_key_value() {
            self.pass_gap(id, start, Gap::Lost, to);
        }
    }

    /// Passes on all waiting bytes, with a gap for each hole.
    fn flush(&mut self, id: StreamId, to: &mut impl Receiver) {
        while !self.waiting.is_empty() {
            self.give_up_hole(id, to);
            self.drain(id, to);
        }
        self.end_search(id, self.next, to);
    }

    fn close(&mut self, id: StreamId, to: &mut impl Receiver) {
        if !self.closed {
            self.flush(id, to);
            if let Some(end) = self.end {
                self.pass_gap(id, end, Gap::Lost, to);
            }
            to.end(id);
            self.closed = true;
        }
    }
}
