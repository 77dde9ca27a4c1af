//! Finds the connections of a capture that carry OpenFlow, whatever their ports are.
//!
//! A connection whose start is in the capture carries OpenFlow if both ends begin with a hello. If
//! it started before the capture, some segments must be whole messages of one version. Until that
//! is decided, this module holds the segments of the connection, up to [`MAX_HELD_SEGMENTS`] and
//! [`MAX_HELD_BYTES`]. Then it passes them on or drops them.
//!
//! On the usual ports of controllers, [`USUAL_PORTS`], no proof is needed: broken messages there
//! must be reported, not left out.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use super::capture::CapturedSegment;
use super::{HEADER_BYTES, plausible};

/// The usual ports of controllers: the one that IANA assigned, and its predecessor.
pub(crate) const USUAL_PORTS: [u16; 2] = [6653, 6633];

/// Segments of one connection held until it is decided.
pub(crate) const MAX_HELD_SEGMENTS: usize = 64;

/// Payload of one connection held until it is decided, in bytes.
pub(crate) const MAX_HELD_BYTES: usize = 256 * 1024;

/// Payload held of all connections, in bytes. Above it, the next connection is decided at once.
pub(crate) const MAX_HELD_BYTES_IN_ALL: usize = 64 * 1024 * 1024;

/// Connections remembered. Above this limit, all that do not carry OpenFlow are forgotten.
pub(crate) const MAX_CONNECTIONS: usize = 64 * 1024;

/// Segments that must be whole messages if the start of a connection is not in the capture.
const EVIDENCE_SEGMENTS: usize = 2;

/// Type of a hello, and of its element "version bitmap" (OpenFlow 1.3.5, section 7.5.1).
const HELLO: u8 = 0;
const VERSION_BITMAP: [u8; 2] = [0, 1];

/// Finds the connections to read.
#[derive(Debug)]
pub(crate) struct Finder {
    /// Reads only connections with one of these ports. If empty, reads all that carry OpenFlow.
    ports: Vec<u16>,
    connections: HashMap<ConnectionEnds, SearchState>,
    held_bytes: usize,
    seen: ServerPorts,
}

/// TCP ports of a capture that probably belong to servers, and the number of segments of each.
#[derive(Debug, Default)]
pub(crate) struct ServerPorts {
    /// Ports have 16 bits, which limits the map.
    ports: BTreeMap<u16, u64>,
}

impl ServerPorts {
    /// The ports with the most segments, at most `count`.
    #[must_use]
    pub(crate) fn busiest(&self, count: usize) -> Vec<(u16, u64)> {
        let mut ports: Vec<_> =
            self.ports.iter().map(|(&port, &segments)| (port, segments)).collect();
        ports.sort_by_key(|&(port, segments)| (std::cmp::Reverse(segments), port));
        ports.truncate(count);
        ports
    }
}

/// Both ends of a connection, the lower one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ConnectionEnds(SocketAddr, SocketAddr);

#[derive(Debug)]
enum SearchState {
    OpenFlow,
    Other,
    Undecided(HeldSegments),
}

/// Segments held of an undecided connection.
#[derive(Debug, Default)]
struct HeldSegments {
    segments: Vec<OwnedSegment>,
    bytes: usize,
}

#[derive(Debug)]
struct OwnedSegment {
    /// The segment without its payload.
    segment: CapturedSegment<'static>,
    payload: Vec<u8>,
    /// Whether the lower end sent it.
    from_lower: bool,
}

impl OwnedSegment {
    fn lend(&self) -> CapturedSegment<'_> {
        CapturedSegment { payload: &self.payload, ..self.segment }
    }
}

/// What the first bytes of one end show.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opinion {
    /// They are a hello.
    Yes,
    /// They are no hello.
    No,
    /// They are missing, or not there yet.
    Unknown,
}

impl Finder {
    /// Reads only connections with these ports. If empty, reads all that carry OpenFlow.
    #[must_use]
    pub(crate) fn new(ports: &[u16]) -> Self {
        Finder {
            ports: ports.to_vec(),
            connections: HashMap::new(),
            held_bytes: 0,
            seen: ServerPorts::default(),
        }
    }

    /// The ports seen so far.
    #[must_use]
    pub(crate) fn seen(&self) -> &ServerPorts {
        &self.seen
    }

    /// Takes a segment. Passes on the segments that are now known to carry OpenFlow, in order.
    pub(crate) fn segment(
        &mut self,
        segment: &CapturedSegment<'_>,
        mut pass: impl FnMut(&CapturedSegment<'_>),
    ) {
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
        let name = ConnectionEnds(src.min(dst), src.max(dst));
        if self.connections.len() >= MAX_CONNECTIONS && !self.connections.contains_key(&name) {
            self.forget();
        }
        let state =
            self.connections.entry(name).or_insert(SearchState::Undecided(HeldSegments::default()));
        if matches!(state, SearchState::Other) && segment.syn {
            // A new connection between the same ports.
            *state = SearchState::Undecided(HeldSegments::default());
        }
        let held = match state {
            SearchState::OpenFlow => return pass(segment),
            SearchState::Other => return,
            SearchState::Undecided(held) => held,
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
            *state = if is_openflow { SearchState::OpenFlow } else { SearchState::Other };
            if is_openflow {
                held.segments.iter().for_each(|segment| pass(&segment.lend()));
            }
        }
    }

    /// Ends the capture: passes on the held segments that are probably OpenFlow.
    pub(crate) fn finish(&mut self, mut pass: impl FnMut(&CapturedSegment<'_>)) {
        let mut left: Vec<_> = self.connections.drain().collect();
        left.sort_by_key(|&(ConnectionEnds(a, b), _)| (a, b));
        for (_, state) in left {
            if let SearchState::Undecided(held) = state
                && held.is_likely()
            {
                held.segments.iter().for_each(|segment| pass(&segment.lend()));
            }
        }
        self.held_bytes = 0;
    }

    fn forget(&mut self) {
        self.connections.retain(|_, state| matches!(state, SearchState::OpenFlow));
        self.held_bytes = 0;
        if self.connections.len() >= MAX_CONNECTIONS {
            self.connections.clear();
        }
    }
}

/// The probable port of the server: the lower one.
fn server_port(segment: &CapturedSegment<'_>) -> u16 {
    segment.stream.src.port().min(segment.stream.dst.port())
}

impl HeldSegments {
    fn add(&mut self, segment: &CapturedSegment<'_>, from_lower: bool) {
        self.bytes += segment.payload.len();
        self.segments.push(OwnedSegment {
            segment: CapturedSegment { payload: &[], ..*segment },
            payload: segment.payload.to_vec(),
            from_lower,
        });
    }

    /// Whether the connection is OpenFlow, if that is certain.
    fn is_openflow(&self) -> Option<bool> {
        match [self.opinion(true), self.opinion(false)] {
            [Opinion::No, _] | [_, Opinion::No] => Some(false),
            [Opinion::Yes, Opinion::Yes] => Some(true),
            [Opinion::Unknown, Opinion::Unknown] => {
                (!self.has_beginning() && self.evidence() >= EVIDENCE_SEGMENTS).then_some(true)
            }
            // One end sent a hello. The other has no start, but whole messages.
            _ => (self.evidence() > EVIDENCE_SEGMENTS).then_some(true),
        }
    }

    /// Whether the connection is probably OpenFlow, when no more segments will come.
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

    /// What the first bytes of one end show.
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

    /// Counts the segments that are whole messages of one version. Repeated segments count once.
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
    /// Sequence number of the first byte of its payload.
    fn first_byte(&self) -> u32 {
        self.segment.sequence.wrapping_add(self.segment.syn.into())
    }
}

/// Bytes examined of a stream: a header, and type and length of a hello's first element.
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
        // Other protocols begin much like a long hello, so the element must be right too.
        [high, low, ..] if [*high, *low] != VERSION_BITMAP => Opinion::No,
        [_, _, _, _] => Opinion::Yes,
        _ => Opinion::Unknown,
    }
}

/// Whether a segment is whole messages of one version. After two whole ones, one may be cut.
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
