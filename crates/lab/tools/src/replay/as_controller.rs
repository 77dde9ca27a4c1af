//! Plays the controller of a recording at a switch.
//!
//! It says hello with the recorded version, and requests the features with an xid of its own, to
//! find out which switch this is. Then it sends the recorded messages with their recorded xids, at
//! their times. Hellos and echoes of the recording are left out; echo requests of the switch are
//! answered.

use std::time::{Duration, Instant};

use bellrock_openflow::{HEADER_LEN, Header, MessageKind, Version};

use super::super::decode::peers::Sender;
use super::compare::Comparison;
use super::load::{RecordedConnection, is_upkeep};
use super::wire::Wire;

/// Time for the switch to answer the features request.
const FEATURES_WAIT: Duration = Duration::from_secs(10);

/// Offset of the datapath id in a features reply, and its end.
const DPID: std::ops::Range<usize> = HEADER_LEN..HEADER_LEN + 8;

/// A switch whose datapath id is not known yet.
pub(super) struct Greeting {
    version: Version,
    xid: u32,
    since: Instant,
}

impl Greeting {
    /// Says hello. The xid is none of those in `recording`.
    pub(super) fn new(recording: &[RecordedConnection], wire: &mut Wire) -> Self {
        let used = |xid: u32| {
            let messages = recording.iter().flat_map(|connection| &connection.messages);
            messages.filter_map(|message| Header::read(&message.bytes)).any(|h| h.xid == xid)
        };
        let xid = (1..u32::MAX).rev().find(|xid| !used(*xid)).unwrap_or_default();
        // All connections of a recording speak the version of their switch; the first one decides
        // the hello, and a switch of another version says so.
        let versions = recording.iter().map(|connection| connection.version);
        let version = versions.max().unwrap_or(Version::HIGHEST);
        wire.send(&[version.wire(), 0, 0, HEADER_LEN as u8, 0, 0, 0, 1]);
        Greeting { version, xid, since: Instant::now() }
    }

    /// Waits for the features. Returns the datapath id and the version of the switch.
    pub(super) fn step(&mut self, wire: &mut Wire) -> (bool, Option<(u64, Version)>) {
        let mut moved = wire.pump();
        while let Some((header, bytes)) = wire.next() {
            moved = true;
            match MessageKind::from_wire(self.version, header.kind) {
                Some(MessageKind::Hello) => {
                    // The lower of both versions (1.3.5 §6.3.1).
                    let theirs = Version::from_wire(header.version);
                    let theirs = theirs.filter(|theirs| theirs.wire() < self.version.wire());
                    self.version = theirs.unwrap_or(self.version);
                    let kind = MessageKind::FeaturesRequest.wire(self.version).unwrap_or_default();
                    let length = HEADER_LEN as u8;
                    wire.send_as(self.xid, &[self.version.wire(), kind, 0, length, 0, 0, 0, 0]);
                }
                Some(MessageKind::EchoRequest) => echo(self.version, &bytes, wire),
                Some(MessageKind::FeaturesReply) if header.xid == self.xid => {
                    let dpid = bytes.get(DPID).and_then(|dpid| dpid.try_into().ok());
                    return (moved, dpid.map(|dpid| (u64::from_be_bytes(dpid), self.version)));
                }
                Some(MessageKind::Error) => {
                    let why = "the switch refuses the hello or the features request".to_owned();
                    wire.ended.get_or_insert(why);
                }
                _ => {}
            }
        }
        if self.since.elapsed() > FEATURES_WAIT {
            wire.ended.get_or_insert("the switch sends no features".to_owned());
        }
        (moved, None)
    }
}

fn echo(version: Version, request: &[u8], wire: &mut Wire) {
    let mut reply = request.to_vec();
    if let (Some(kind), Some(wire)) = (reply.get_mut(1), MessageKind::EchoReply.wire(version)) {
        *kind = wire;
    }
    wire.send(&reply);
}

/// What the controller says to one switch in a recording.
pub(super) struct ControllerScript {
    version: Version,
    /// The messages, with their times after the first one.
    messages: Vec<(Duration, Box<[u8]>)>,
    next: usize,
    pub(super) comparison: Comparison,
    began: Instant,
    last_sent: Option<Instant>,
}

impl ControllerScript {
    pub(super) fn new(connection: &RecordedConnection) -> Self {
        let of = |sender: Sender| {
            let messages = connection.messages.iter();
            messages.filter(move |one| one.sender == sender && !is_upkeep(&one.bytes))
        };
        let first = of(Sender::Controller).next().map_or(Duration::ZERO, |first| first.time);
        let messages = of(Sender::Controller)
            .map(|one| (one.time.saturating_sub(first), one.bytes.clone()))
            .collect();
        let expected = of(Sender::Switch).map(|one| one.bytes.clone()).collect();
        ControllerScript {
            version: connection.version,
            messages,
            next: 0,
            comparison: Comparison::new(connection.version, Sender::Switch, expected),
            began: Instant::now(),
            last_sent: None,
        }
    }

    /// Number of messages.
    pub(super) fn total(&self) -> usize {
        self.messages.len()
    }

    /// Number of those that were sent.
    pub(super) fn sent(&self) -> usize {
        self.next
    }

    /// Time of the last message, once all were sent.
    pub(super) fn finished(&self) -> Option<Instant> {
        let all = self.next == self.messages.len();
        all.then(|| self.last_sent.unwrap_or(self.began))
    }

    /// Sends what is due, and compares what has come. Returns whether there was anything.
    pub(super) fn step(&mut self, wire: &mut Wire, is_fast: bool) -> bool {
        let mut moved = wire.pump();
        while let Some((header, bytes)) = wire.next() {
            moved = true;
            match MessageKind::from_wire(self.version, header.kind) {
                Some(MessageKind::EchoRequest) => echo(self.version, &bytes, wire),
                Some(MessageKind::Hello | MessageKind::EchoReply) => {}
                _ => _ = self.comparison.take(&bytes),
            }
        }
        while wire.has_space()
            && let Some((time, bytes)) = self.messages.get(self.next)
            && (is_fast || self.began.elapsed() >= *time)
        {
            wire.send(bytes);
            self.next += 1;
            self.last_sent = Some(Instant::now());
            moved = true;
        }
        moved
    }
}
