//! Finds the connections of a capture that carry OpenFlow, whatever their ports are.
//!
//! A connection whose beginning is in the capture carries OpenFlow when both ends begin with a hello. Of one that began
//! before the capture, some segments have to be whole messages of one version. Until that is known, the segments of the
//! connection are held here, up to [`MAX_HELD_SEGMENTS`] and [`MAX_HELD_BYTES`]; then they are passed on or forgotten.
//!
//! On the ports that controllers usually listen on, [`USUAL_PORTS`], nothing has to be proved: what is broken there is
//! to be reported, and not to be left out.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use super::capture::Segment;
use super::{HEADER_BYTES, plausible};

/// The ports that controllers usually listen on: the one that IANA assigned, and the one before that.
pub const USUAL_PORTS: [u16; 2] = [6653, 6633];

/// Segments of one connection that are held before it is decided.
pub const MAX_HELD_SEGMENTS: usize = 64;

/// Payload of one connection that is held before it is decided, in bytes.
pub const MAX_HELD_BYTES: usize = 256 * 1024;

/// Payload of all connections that is held, in bytes. When there is more, the next connection is decided at once.
pub const MAX_HELD_BYTES_IN_ALL: usize = 64 * 1024 * 1024;

/// Connections that are remembered. When there is one more, all that do not carry OpenFlow are forgotten.
pub const MAX_CONNECTIONS: usize = 64 * 1024;

/// Segments that have to be whole messages where the beginning of a connection is not in the capture.
const EVIDENCE_SEGMENTS: usize = 2;

/// Type of a hello, and of its element "version bitmap" (OpenFlow 1.3.5, section 7.5.1).
const HELLO: u8 = 0;
const VERSION_BITMAP: [u8; 2] = [0, 1];

/// Which connections are read.
#[derive(Debug)]
pub struct Finder {
    /// Only those to or from one of these ports; where there are none, those that carry OpenFlow.
    ports: Vec<u16>,
    connections: HashMap<Connection, State>,
    held_bytes: usize,
    seen: Seen,
}

/// The TCP ports of a capture that are likely to be those of servers, and how many segments each had.
#[derive(Debug, Default)]
pub struct Seen {
    /// Ports are 16 bits, which bounds it.
    ports: BTreeMap<u16, u64>,
}

impl Seen {
    /// The ports with the most segments, at most `count`.
    #[must_use]
    pub fn busiest(&self, count: usize) -> Vec<(u16, u64)> {
        let mut ports: Vec<_> =
            self.ports.iter().map(|(&port, &segments)| (port, segments)).collect();
        ports.sort_by_key(|&(port, segments)| (std::cmp::Reverse(segments), port));
        ports.truncate(count);
        ports
    }
}

/// Both ends of a connection, the lower one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Connection(SocketAddr, SocketAddr);

#[derive(Debug)]
enum State {
    OpenFlow,
    Other,
    Undecided(Held),
}

/// What is held of a connection that is not decided.
#[derive(Debug, Default)]
struct Held {
    segments: Vec<OwnedSegment>,
    bytes: usize,
}

#[derive(Debug)]
struct OwnedSegment {
    /// Without its payload.
    segment: Segment<'static>,
    payload: Vec<u8>,
    /// Whether it comes from the lower end.
    from_lower: bool,
}

impl OwnedSegment {
    fn lend(&self) -> Segment<'_> {
        Segment { payload: &self.payload, ..self.segment }
    }
}

/// What the bytes of one end say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opinion {
    /// It begins with a hello.
    Yes,
    /// It begins with something else.
    No,
    /// Its beginning is not there, or not yet.
    Unknown,
}

impl Finder {
    /// Reads connections with these ports only; with none, all that carry OpenFlow.
    #[must_use]
    pub fn new(ports: &[u16]) -> Self {
        Finder {
            ports: ports.to_vec(),
            connections: HashMap::new(),
            held_bytes: 0,
            seen: Seen::default(),
        }
    }

    /// The ports that were seen so far.
    #[must_use]
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Takes a segment, and passes on those that are known to carry OpenFlow now, in their order.
    pub fn segment(&mut self, segment: &Segment<'_>, mut pass: impl FnMut(&Segment<'_>)) {
        let (src, dst) = (segment.stream.src, segment.stream.dst);
        let ports = [src.port(), dst.port()];
        *self.seen.ports.entry(server_port(segment)).or_default() += 1;
        let of = |list: &[u16]| ports.iter().any(|port| list.contains(port));
        if !self.ports.is_empty() {
            if of(&self.ports) {
                pass(segment);
            }
            return;
        }
        if of(&USUAL_PORTS) {
            return pass(segment);
        }
        let name = Connection(src.min(dst), src.max(dst));
        if self.connections.len() >= MAX_CONNECTIONS && !self.connections.contains_key(&name) {
            self.forget();
        }
        let state = self.connections.entry(name).or_insert(State::Undecided(Held::default()));
        if matches!(state, State::Other) && segment.syn {
            // The ports are used again.
            *state = State::Undecided(Held::default());
        }
        let held = match state {
            State::OpenFlow => return pass(segment),
            State::Other => return,
            State::Undecided(held) => held,
        };
        if segment.payload.is_empty() && !segment.syn {
            return;
        }
        held.add(segment, src < dst);
        self.held_bytes += segment.payload.len();
        let is_full = held.segments.len() >= MAX_HELD_SEGMENTS
            || held.bytes >= MAX_HELD_BYTES
            || self.held_bytes >= MAX_HELD_BYTES_IN_ALL;
        let decision = held.is_openflow().or_else(|| is_full.then(|| held.is_likely()));
        if let Some(is_openflow) = decision {
            self.held_bytes -= held.bytes;
            let held = std::mem::take(held);
            *state = if is_openflow { State::OpenFlow } else { State::Other };
            if is_openflow {
                held.segments.iter().for_each(|segment| pass(&segment.lend()));
            }
        }
    }

    /// The capture is over: passes on what is likely to be OpenFlow of what is held.
    pub fn finish(&mut self, mut pass: impl FnMut(&Segment<'_>)) {
        let mut left: Vec<_> = self.connections.drain().collect();
        left.sort_by_key(|&(Connection(a, b), _)| (a, b));
        for (_, state) in left {
            if let State::Undecided(held) = state
                && held.is_likely()
            {
                held.segments.iter().for_each(|segment| pass(&segment.lend()));
            }
        }
        self.held_bytes = 0;
    }

    fn forget(&mut self) {
        self.connections.retain(|_, state| matches!(state, State::OpenFlow));
        self.held_bytes = 0;
        if self.connections.len() >= MAX_CONNECTIONS {
            self.connections.clear();
        }
    }
}

/// The port that the server is likely to have: where the SYN goes, or else the lower one.
fn server_port(segment: &Segment<'_>) -> u16 {
    segment.stream.src.port().min(segment.stream.dst.port())
}

impl Held {
    fn add(&mut self, segment: &Segment<'_>, from_lower: bool) {
        self.bytes += segment.payload.len();
        self.segments.push(OwnedSegment {
            segment: Segment { payload: &[], ..*segment },
            payload: segment.payload.to_vec(),
            from_lower,
        });
    }

    /// Whether it is OpenFlow, if that is certain.
    fn is_openflow(&self) -> Option<bool> {
        match [self.opinion(true), self.opinion(false)] {
            [Opinion::No, _] | [_, Opinion::No] => Some(false),
            [Opinion::Yes, Opinion::Yes] => Some(true),
            [Opinion::Unknown, Opinion::Unknown] => {
                (!self.has_beginning() && self.evidence() >= EVIDENCE_SEGMENTS).then_some(true)
            }
            // One hello, and whole messages from an end whose beginning was lost.
            _ => (self.evidence() > EVIDENCE_SEGMENTS).then_some(true),
        }
    }

    /// Whether it is more likely OpenFlow than not, when no more will be known.
    fn is_likely(&self) -> bool {
        let with_payload = self.segments.iter().filter(|held| !held.payload.is_empty()).count();
        let opinions = [self.opinion(true), self.opinion(false)];
        !opinions.contains(&Opinion::No)
            && (opinions.contains(&Opinion::Yes)
                || (with_payload > 0 && self.evidence() == with_payload))
    }

    fn has_beginning(&self) -> bool {
        self.segments.iter().any(|held| held.segment.syn)
    }

    /// What one end begins with.
    fn opinion(&self, lower: bool) -> Opinion {
        let of_end = || self.segments.iter().filter(move |held| held.from_lower == lower);
        let Some(syn) = of_end().find(|held| held.segment.syn) else { return Opinion::Unknown };
        let first = syn.segment.sequence.wrapping_add(1);
        // The start of the stream: a header and the start of an element.
        let mut start = Vec::with_capacity(START_BYTES);
        while start.len() < START_BYTES {
            let due = first.wrapping_add(start.len() as u32);
            let next = of_end().find_map(|held| {
                let at = due.wrapping_sub(held.first_byte()) as usize;
                held.payload.get(at..).filter(|rest| !rest.is_empty())
            });
            match next {
                Some(bytes) => start.extend(bytes.iter().take(START_BYTES - start.len())),
                None => break,
            }
        }
        is_hello(&start)
    }

    /// Segments that are whole messages of one version; those that come again do not count.
    fn evidence(&self) -> usize {
        let mut seen = Vec::new();
        let mut version = None;
        for held in &self.segments {
            let place = (held.from_lower, held.first_byte());
            if is_messages(&held.payload)
                && !seen.contains(&place)
                && *version.get_or_insert(held.payload[0]) == held.payload[0]
            {
                seen.push(place);
            }
        }
        seen.len()
    }
}

impl OwnedSegment {
    /// The number of the first byte of its payload.
    fn first_byte(&self) -> u32 {
        self.segment.sequence.wrapping_add(self.segment.syn.into())
    }
}

/// Bytes of a stream that are looked at: a header, and type and length of a hello's first element.
const START_BYTES: usize = HEADER_BYTES + 4;

/// Whether a stream that begins with these bytes begins with a hello.
fn is_hello(start: &[u8]) -> Opinion {
    let Some((header, rest)) = start.split_first_chunk::<HEADER_BYTES>() else {
        return match start {
            [] => Opinion::Unknown,
            [version, ..] if !(1..=6).contains(version) => Opinion::No,
            _ => Opinion::Unknown,
        };
    };
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if !plausible(header) || header[1] != HELLO {
        return Opinion::No;
    }
    match rest {
        _ if length == HEADER_BYTES => Opinion::Yes,
        // Other protocols begin much like a long hello: the element has to be right too.
        [high, low, ..] if [*high, *low] != VERSION_BITMAP => Opinion::No,
        [_, _, _, _] => Opinion::Yes,
        _ => Opinion::Unknown,
    }
}

/// Whether a segment is whole messages of one version; behind two whole ones, the last may be cut.
fn is_messages(bytes: &[u8]) -> bool {
    let (mut rest, mut whole) = (bytes, 0);
    while !rest.is_empty() {
        if rest[0] != bytes[0] || rest.len() >= HEADER_BYTES && !plausible(rest) {
            return false;
        }
        let length = match rest.first_chunk::<HEADER_BYTES>() {
            Some(header) => usize::from(u16::from_be_bytes([header[2], header[3]])),
            None => usize::MAX,
        };
        match rest.get(length..) {
            Some(left) => (rest, whole) = (left, whole + 1),
            None => return whole >= 2,
        }
    }
    whole > 0
}
