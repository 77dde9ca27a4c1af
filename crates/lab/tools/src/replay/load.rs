//! Reads a recording: the connections, and their messages in order.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bellrock_openflow::{MessageKind, Version, Versions};
use flate2::read::MultiGzDecoder;

use super::super::decode::peers::{Peers, Sender, kind};
use super::super::decode::{CaptureProblem, Sink, StreamId, StreamMessage, read_capture};

/// Maximum bytes of the messages of a recording, which are all in memory, with [`ENTRY_BYTES`] for
/// each.
const MAX_BYTES: usize = 1 << 30;

/// Bytes that a message takes besides its own: its place, and what the allocator adds. Most
/// messages of a connection can be echoes of 8 bytes.
const ENTRY_BYTES: usize = size_of::<(SocketAddr, Duration, Box<[u8]>)>() + 16;

/// Bytes that a connection takes.
const CONNECTION_BYTES: usize = 256;

/// Maximum number of connections of a recording.
pub(super) const MAX_CONNECTIONS: usize = 512;

/// Number of problems of a capture that are printed.
const PROBLEMS_SHOWN: usize = 10;

/// The first bytes of gzip files (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A message of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedMessage {
    /// Time since the first message of the recording.
    pub(super) time: Duration,
    pub(super) sender: Sender,
    pub(super) bytes: Box<[u8]>,
}

/// A connection of a recording.
#[derive(Clone, Debug)]
pub(super) struct RecordedConnection {
    /// The switch's address.
    pub(super) switch: SocketAddr,
    /// The switch's datapath id, if its features are in the recording.
    pub(super) dpid: Option<u64>,
    pub(super) version: Version,
    pub(super) messages: Vec<RecordedMessage>,
}

impl RecordedConnection {
    /// Name for the operator.
    pub(super) fn name(&self) -> String {
        match self.dpid {
            Some(dpid) => format!("switch {dpid:016x}"),
            None => format!("switch {}", self.switch),
        }
    }
}

/// A recording, and what of it cannot be played.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) connections: Vec<RecordedConnection>,
    /// For the operator.
    pub(super) problems: Vec<String>,
}

/// Reads the connections of a file.
///
/// # Errors
/// A sentence: the file cannot be read, or has nothing to play.
pub(super) fn load(path: &Path) -> Result<Recorded, String> {
    let name = path.display();
    let file = File::open(path).map_err(|error| format!("cannot open {name}: {error}"))?;
    let mut input = BufReader::new(file);
    let mut first = Vec::new();
    let taken = input.by_ref().take(GZIP.len() as u64).read_to_end(&mut first);
    taken.map_err(|error| format!("cannot read {name}: {error}"))?;
    let is_gzip = first == GZIP;
    let input = std::io::Cursor::new(first).chain(input);
    let mut loader = Loader::default();
    let result = match is_gzip {
        true => read_capture(MultiGzDecoder::new(input), &[], &mut loader),
        false => read_capture(input, &[], &mut loader),
    };
    let summary = result.map_err(|error| format!("{name}: {error}"))?;
    if loader.bytes > MAX_BYTES {
        return Err(format!(
            "{name}: its messages need more than {} MiB of memory; filter the file, for instance with editcap",
            MAX_BYTES >> 20
        ));
    }
    let recorded = loader.finish();
    match recorded.connections.len() {
        0 if summary.messages == 0 => {
            Err(format!("{name}: no OpenFlow in {} packets", summary.packets))
        }
        0 => {
            let why = recorded.problems.first().map_or("", String::as_str);
            Err(format!("{name}: no connection can be played: {why}"))
        }
        n if n > MAX_CONNECTIONS => {
            Err(format!("{name}: {n} connections are too many; at most {MAX_CONNECTIONS}"))
        }
        _ => Ok(recorded),
    }
}

/// Messages with the sender's address: which end is the controller is known later.
struct LoadedConnection {
    stream: StreamId,
    messages: Vec<(SocketAddr, Duration, Box<[u8]>)>,
    /// Ends that have sent something other than a hello.
    talked: Vec<SocketAddr>,
}

#[derive(Default)]
struct Loader {
    connections: Vec<LoadedConnection>,
    /// The last connection between two ends.
    current: HashMap<(SocketAddr, SocketAddr), usize>,
    bytes: usize,
    problems: Vec<String>,
    further_problems: u64,
}

impl Sink for Loader {
    fn message(&mut self, message: StreamMessage<'_>) {
        let StreamMessage { stream, time, start, bytes, .. } = message;
        self.bytes = self.bytes.saturating_add(bytes.len() + ENTRY_BYTES);
        if !self.wants_more() {
            return;
        }
        let is_hello = bytes.get(1) == Some(&0);
        let ends = (stream.src.min(stream.dst), stream.src.max(stream.dst));
        let current = self.current.get(&ends).copied().filter(|current| {
            // A hello in the middle begins another connection between the same ports.
            let connection = self.connections.get(*current);
            !(is_hello && connection.is_some_and(|one| one.talked.contains(&stream.src)))
        });
        let index = current.unwrap_or_else(|| {
            self.bytes = self.bytes.saturating_add(CONNECTION_BYTES);
            let (messages, talked) = (Vec::new(), Vec::new());
            self.connections.push(LoadedConnection { stream, messages, talked });
            self.current.insert(ends, self.connections.len() - 1);
            self.connections.len() - 1
        });
        let Some(connection) = self.connections.get_mut(index) else { return };
        if !is_hello && !connection.talked.contains(&stream.src) {
            connection.talked.push(stream.src);
        }
        connection.messages.push((stream.src, time.saturating_sub(start), bytes.into()));
    }

    fn problem(&mut self, problem: CaptureProblem) {
        match self.problems.len() < PROBLEMS_SHOWN {
            true => self.problems.push(problem.to_string()),
            false => self.further_problems += 1,
        }
    }

    fn wants_more(&self) -> bool {
        self.bytes <= MAX_BYTES
    }
}

impl Loader {
    fn finish(mut self) -> Recorded {
        if self.further_problems > 0 {
            self.problems.push(format!("{} more problems of the file", self.further_problems));
        }
        let mut recorded = Recorded { connections: Vec::new(), problems: self.problems };
        for connection in self.connections {
            let stream = connection.stream;
            match playable(connection) {
                Ok(connection) => recorded.connections.push(connection),
                Err(why) => recorded.problems.push(format!("{stream}: {why}")),
            }
        }
        recorded.connections.sort_by_key(|one| one.messages.first().map(|first| first.time));
        recorded
    }
}

/// Decides who sent what.
fn playable(connection: LoadedConnection) -> Result<RecordedConnection, String> {
    let LoadedConnection { stream, messages, .. } = connection;
    let mut peers = Peers::default();
    for (src, _, bytes) in &messages {
        let dst = if *src == stream.src { stream.dst } else { stream.src };
        peers.hear(StreamId { src: *src, dst }, None, bytes);
    }
    let unknown = "left out: it does not show which end is the switch";
    let peer = peers.get(stream).ok_or(unknown)?;
    let switch = peer.switch(stream).ok_or(unknown)?;
    let dpid = peer.dpid;
    let wire = messages.iter().find(|(_, _, bytes)| bytes.get(1) != Some(&0));
    let wire = wire.and_then(|(_, _, bytes)| bytes.first().copied()).ok_or(unknown)?;
    let version = Version::from_wire(wire)
        .ok_or_else(|| format!("left out: replay speaks OpenFlow {} only", Versions::ALL))?;
    let message = |(src, time, bytes): (SocketAddr, Duration, Box<[u8]>)| RecordedMessage {
        time,
        sender: if src == switch { Sender::Switch } else { Sender::Controller },
        bytes,
    };
    let messages = messages.into_iter().map(message).collect();
    Ok(RecordedConnection { switch, dpid, version, messages })
}

/// Whether a message is the session's own affair: hellos and echoes are not compared, and those of
/// the recording are not sent.
pub(super) fn is_upkeep(bytes: &[u8]) -> bool {
    matches!(
        kind(bytes),
        Some(MessageKind::Hello | MessageKind::EchoRequest | MessageKind::EchoReply)
    )
}
