//! TCP streams put together again, each direction by itself.
//!
//! Segments may be out of order, repeated or overlapping: of two that disagree the first one wins, as it does in most
//! receivers. Numbers wrap around. What was lost from the capture is a gap, which is reported; then nothing is passed
//! on until a segment starts with a plausible OpenFlow header, since message boundaries are not known. The same goes
//! for a capture that starts in the middle of a stream.
//!
//! A hole is taken for a loss when the stream ends, or when the bytes that wait behind it reach a bound. Checksums are
//! not looked at: captures on the sending host are taken before the network card fills them in.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use super::capture::Segment;
use super::{StreamId, plausible};

/// Bytes of one stream that wait for a hole before them to be filled. When there are more, the first hole is a loss.
pub const MAX_WAITING_PER_STREAM_BYTES: usize = 1024 * 1024;

/// Bytes that wait in all streams. When there are more, the stream that wants to add some takes its holes for losses.
pub const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// Streams that are followed at a time. When one more begins, the quarter that was idle for longest is forgotten.
pub const MAX_STREAMS: usize = 16 * 1024;

/// How far a segment may be from the next byte that is due, in bytes. One that is farther away belongs to another
/// connection between the same ports, whose beginning is not in the capture.
pub const MAX_DISTANCE_BYTES: u64 = 64 * 1024 * 1024;

/// What a waiting segment counts beside its bytes, so that many small ones are bounded as well.
const WAITING_OVERHEAD_BYTES: usize = 128;

/// Why bytes of a stream are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The capture does not have the segment.
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

/// What a receiver made of the bytes that it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// They go on where the last ones ended.
    Kept,
    /// They are no OpenFlow. The rest is passed over up to the next segment that starts with a plausible header.
    Lost,
}

/// Takes the streams, in order within each.
pub trait Receiver {
    /// The next bytes of a stream; `offset` counts from its first byte, `time` is that of the packet they were in.
    fn bytes(&mut self, stream: StreamId, time: Duration, offset: u64, bytes: &[u8]) -> Step;
    /// Bytes are missing. The next ones begin with a plausible header.
    fn gap(&mut self, stream: StreamId, offset: u64, bytes: u64, cause: Gap);
    /// The first bytes of a stream that come begin a message, and are not its first: it began before the capture.
    fn joined(&mut self, stream: StreamId);
    /// Bytes from `offset` on were passed over because no segment of them starts with a plausible header.
    fn skipped(&mut self, stream: StreamId, offset: u64, bytes: u64);
    /// No more bytes of the stream will come.
    fn end(&mut self, stream: StreamId);
    /// The stream is no longer followed: there were more than [`MAX_STREAMS`].
    fn forgotten(&mut self, stream: StreamId);
}

/// All streams of a capture.
#[derive(Debug, Default)]
pub struct Reassembler {
    streams: HashMap<StreamId, Stream>,
    /// Bytes that wait in all streams, each with its overhead.
    waiting: usize,
    /// Segments so far: the clock by which streams are idle.
    clock: u64,
}

/// One direction of a connection. Offsets count from its first byte and do not wrap.
#[derive(Debug)]
struct Stream {
    /// The sequence number of the byte at offset 0.
    base: u32,
    /// The offset of the next byte that is due.
    next: u64,
    /// Bytes behind a hole, by the offset of the first; they do not overlap.
    waiting: BTreeMap<u64, Piece>,
    /// What `waiting` counts.
    waiting_bytes: usize,
    /// The offset behind the last byte, once a FIN told.
    end: Option<u64>,
    /// Bytes are passed over since this offset.
    searching: Option<u64>,
    /// Ended; what is not new is a retransmission.
    closed: bool,
    /// When it last got a segment.
    used: u64,
}

/// A part of a segment that is not there yet from another.
#[derive(Debug)]
struct Piece {
    time: Duration,
    bytes: Vec<u8>,
    /// Whether it begins where the segment began.
    whole: bool,
    /// Bytes behind it that the capture cut off.
    missing: u64,
}

impl Piece {
    fn cost(&self) -> usize {
        self.bytes.len() + WAITING_OVERHEAD_BYTES
    }
}

impl Reassembler {
    /// Takes a segment and passes on whatever is in order now.
    pub fn segment(&mut self, segment: &Segment<'_>, to: &mut impl Receiver) {
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
        let stream = self.streams.entry(id).or_insert_with(|| Stream::new(segment));
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

    /// Ends all streams, in the order of their names: the capture is over.
    pub fn finish(mut self, to: &mut impl Receiver) {
        let mut streams: Vec<_> = self.streams.drain().collect();
        streams.sort_by_key(|&(id, _)| id);
        for (id, mut stream) in streams {
            stream.close(id, to);
        }
    }

    /// Whether a segment belongs to another connection than the stream of that name that is followed.
    fn is_another(&self, segment: &Segment<'_>) -> bool {
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

impl Stream {
    fn new(first: &Segment<'_>) -> Self {
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

    /// The offset of the byte with this number: the one that is nearest to the next byte due. Negative before offset 0.
    fn position(&self, sequence: u32) -> i64 {
        let due = self.base.wrapping_add(self.next as u32);
        self.next as i64 + i64::from(sequence.wrapping_sub(due).cast_signed())
    }

    /// Adds what is new of a segment to the bytes that wait.
    fn add(&mut self, segment: &Segment<'_>) {
        let start = self.position(segment.sequence.wrapping_add(segment.syn.into()));
        let end = start + (segment.payload.len() + segment.missing) as i64;
        if segment.fin && end >= 0 {
            self.end.get_or_insert(end as u64);
        }
        let mut at = start.max(self.next as i64) as u64;
        let captured_end = start + segment.payload.len() as i64;
        while (at as i64) < captured_end {
            // Up to where the next waiting piece begins, and on where it ends.
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
        // Of a segment that was cut off behind its headers only the place is kept.
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

    /// Of the bytes from `at` to `end`: up to where those are new that come first, and where to go on behind those that
    /// wait already.
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
            // What lies in the part of another segment that was cut off comes too late.
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
        if to.bytes(id, piece.time, offset, bytes) == Step::Lost {
            self.searching = Some(self.next);
        }
    }

    /// Reports what was passed over until `offset`.
    fn end_search(&mut self, id: StreamId, offset: u64, to: &mut impl Receiver) {
        match self.searching.take() {
            Some(since) if since < offset => to.skipped(id, since, offset - since),
            Some(0) => to.joined(id),
            _ => {}
        }
    }

    /// Reports that nothing of what is due before `until` is there, and searches from there on.
    fn pass_gap(&mut self, id: StreamId, until: u64, cause: Gap, to: &mut impl Receiver) {
        if until > self.next {
            self.end_search(id, self.next, to);
            to.gap(id, self.next, until - self.next, cause);
            self.next = until;
            self.searching = Some(until);
        }
    }

    /// Takes the first hole for a loss.
    fn give_up_hole(&mut self, id: StreamId, to: &mut impl Receiver) {
        if let Some((&start, _)) = self.waiting.first_key_value() {
            self.pass_gap(id, start, Gap::Lost, to);
        }
    }

    /// Passes on all that waits, with gaps for the holes.
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
