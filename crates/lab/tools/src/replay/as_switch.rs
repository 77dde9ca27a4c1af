//! Plays a switch of a recording at a controller.
//!
//! What the switch sent unasked (packet_in, port_status, flow_removed) is sent again, at its time
//! after the features reply. A reply is sent when the controller asks: if it sends a recorded
//! request again, with the recorded reply; else with that of the next recorded request of its kind,
//! or the last one again. Replies get the xid of their request. Echoes and barriers without a
//! recorded reply are answered; other requests are refused with an error, as a switch refuses what
//! it does not know.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use bellrock_openflow::{HEADER_LEN, Header, MessageKind, Version};

use super::super::decode::peers::{Sender, kind};
use super::compare::{Comparison, KindKey, kind_of};
use super::load::{RecordedConnection, is_upkeep};
use super::wire::Wire;

/// Time for the controller to request the features.
const FEATURES_WAIT: Duration = Duration::from_secs(10);

/// `OFPET_BAD_REQUEST`, `OFPBRC_BAD_TYPE` and `OFPBRC_BAD_STAT`, the same in both versions.
const BAD_REQUEST: u16 = 1;
const BAD_TYPE: u16 = 1;
const BAD_STAT: u16 = 2;

/// Bytes of a refused message in the error.
const ERROR_DATA_BYTES: usize = 64;

/// What a switch says in a recording.
pub(super) struct SwitchScript {
    version: Version,
    /// Messages without a request, with their times after the features reply.
    unasked: Vec<(Duration, Box<[u8]>)>,
    next: usize,
    /// Replies to each recorded message of the controller.
    replies: Vec<Vec<Box<[u8]>>>,
    /// Recorded messages with replies, by kind, whose replies were not sent.
    by_kind: HashMap<KindKey, VecDeque<usize>>,
    last_of_kind: HashMap<KindKey, usize>,
    is_replied: Vec<bool>,
    pub(super) comparison: Comparison,
    /// Requests without an answer in the recording.
    pub(super) refused: u64,
    connected: Instant,
    /// Time of the features reply.
    began: Option<Instant>,
    last_sent: Option<Instant>,
}

impl SwitchScript {
    pub(super) fn new(connection: &RecordedConnection) -> Self {
        let version = connection.version;
        let (mut requests, mut replies) = (Vec::<Box<[u8]>>::new(), Vec::<Vec<Box<[u8]>>>::new());
        let mut unasked = Vec::new();
        let mut by_xid = HashMap::<u32, usize>::new();
        let mut features_at = Duration::ZERO;
        for message in &connection.messages {
            let bytes = &message.bytes;
            if is_upkeep(bytes) {
                continue;
            }
            let Some(header) = Header::read(bytes) else { continue };
            if message.sender == Sender::Controller {
                by_xid.insert(header.xid, requests.len());
                requests.push(bytes.clone());
                replies.push(Vec::new());
                continue;
            }
            if kind(bytes) == Some(MessageKind::FeaturesReply) && features_at.is_zero() {
                features_at = message.time;
            }
            let request = by_xid.get(&header.xid).copied();
            match kind(bytes) {
                Some(
                    MessageKind::PacketIn | MessageKind::PortStatus | MessageKind::FlowRemoved,
                ) => {
                    unasked.push((message.time, bytes.clone()));
                }
                Some(MessageKind::Error | MessageKind::Experimenter) if request.is_none() => {
                    unasked.push((message.time, bytes.clone()));
                }
                _ => {
                    if let Some(replies) = request.and_then(|place| replies.get_mut(place)) {
                        replies.push(bytes.clone());
                    }
                }
            }
        }
        for (time, _) in &mut unasked {
            *time = time.saturating_sub(features_at);
        }
        let mut by_kind = HashMap::<KindKey, VecDeque<usize>>::new();
        for (place, request) in requests.iter().enumerate() {
            if replies.get(place).is_some_and(|replies| !replies.is_empty()) {
                by_kind.entry(kind_of(version, request)).or_default().push_back(place);
            }
        }
        let is_replied = vec![false; requests.len()];
        SwitchScript {
            version,
            unasked,
            next: 0,
            replies,
            by_kind,
            last_of_kind: HashMap::new(),
            is_replied,
            comparison: Comparison::new(version, Sender::Controller, requests),
            refused: 0,
            connected: Instant::now(),
            began: None,
            last_sent: None,
        }
    }

    /// Begins the conversation: a hello with the recorded version only.
    pub(super) fn greet(&mut self, wire: &mut Wire) {
        self.connected = Instant::now();
        wire.send(&[self.version.wire(), 0, 0, HEADER_LEN as u8, 0, 0, 0, 1]);
    }

    /// Number of messages without a request.
    pub(super) fn total(&self) -> usize {
        self.unasked.len()
    }

    /// Number of those that were sent.
    pub(super) fn sent(&self) -> usize {
        self.next
    }

    /// Time of the last message without a request, once all were sent.
    pub(super) fn finished(&self) -> Option<Instant> {
        let all = self.next == self.unasked.len();
        all.then(|| self.last_sent.or(self.began)).flatten()
    }

    /// Sends what is due, and answers what has come. Returns whether there was anything.
    pub(super) fn step(&mut self, wire: &mut Wire, is_fast: bool) -> bool {
        let mut moved = wire.pump();
        while let Some((header, bytes)) = wire.next() {
            self.answer(header, &bytes, wire);
            moved = true;
        }
        let Some(began) = self.began else {
            if self.connected.elapsed() > FEATURES_WAIT {
                let why = "the controller requests no features".to_owned();
                wire.ended.get_or_insert(why);
            }
            return moved;
        };
        while wire.has_space()
            && let Some((time, bytes)) = self.unasked.get(self.next)
            && (is_fast || began.elapsed() >= *time)
        {
            wire.send(bytes);
            self.next += 1;
            self.last_sent = Some(Instant::now());
            moved = true;
        }
        moved
    }

    fn answer(&mut self, header: Header, bytes: &[u8], wire: &mut Wire) {
        match MessageKind::from_wire(self.version, header.kind) {
            Some(MessageKind::EchoRequest) => {
                let mut reply = bytes.to_vec();
                if let (Some(kind), Some(wire)) =
                    (reply.get_mut(1), MessageKind::EchoReply.wire(self.version))
                {
                    *kind = wire;
                }
                return wire.send(&reply);
            }
            Some(MessageKind::Hello | MessageKind::EchoReply) => return,
            _ => {}
        }
        let key = kind_of(self.version, bytes);
        let known = MessageKind::from_wire(self.version, header.kind);
        let equal = self.comparison.take(bytes);
        let place = match equal {
            Some(place) => Some(place),
            None if is_request(known) => self.next_of_kind(key),
            None => None,
        };
        if let Some(replied) = place.and_then(|place| self.is_replied.get_mut(place)) {
            *replied = true;
        }
        let has_replies =
            |place: &usize| self.replies.get(*place).is_some_and(|replies| !replies.is_empty());
        let again = || self.last_of_kind.get(&key).copied();
        let place = place.filter(has_replies).or_else(|| is_request(known).then(again).flatten());
        let Some(place) = place else {
            return self.answer_unknown(known, header, bytes, wire);
        };
        self.last_of_kind.insert(key, place);
        for reply in self.replies.get(place).into_iter().flatten() {
            wire.send_as(header.xid, reply);
        }
        if known == Some(MessageKind::FeaturesRequest) {
            self.began.get_or_insert_with(Instant::now);
        }
    }

    /// The next recorded request of this kind whose reply was not sent.
    fn next_of_kind(&mut self, key: KindKey) -> Option<usize> {
        let places = self.by_kind.get_mut(&key)?;
        while let Some(place) = places.pop_front() {
            if self.is_replied.get(place) == Some(&false) {
                return Some(place);
            }
        }
        None
    }

    fn answer_unknown(
        &mut self,
        known: Option<MessageKind>,
        header: Header,
        bytes: &[u8],
        wire: &mut Wire,
    ) {
        let version = self.version.wire();
        if known == Some(MessageKind::BarrierRequest)
            && let Some(kind) = MessageKind::BarrierReply.wire(self.version)
        {
            return wire.send_as(header.xid, &[version, kind, 0, HEADER_LEN as u8, 0, 0, 0, 0]);
        }
        if known == Some(MessageKind::FeaturesRequest) {
            let why = "the recording has no features reply of this switch".to_owned();
            wire.ended.get_or_insert(why);
            return;
        }
        if !is_request(known) {
            return;
        }
        self.refused += 1;
        let code = if known == Some(MessageKind::MultipartRequest) { BAD_STAT } else { BAD_TYPE };
        let data = bytes.get(..ERROR_DATA_BYTES).unwrap_or(bytes);
        let length = (HEADER_LEN + 4 + data.len()) as u16;
        let mut error = vec![version, 1];
        error.extend(length.to_be_bytes());
        error.extend([0; 4]);
        error.extend(BAD_REQUEST.to_be_bytes());
        error.extend(code.to_be_bytes());
        error.extend_from_slice(data);
        wire.send_as(header.xid, &error);
    }
}

/// Whether a message expects a reply.
fn is_request(kind: Option<MessageKind>) -> bool {
    matches!(
        kind,
        Some(
            MessageKind::FeaturesRequest
                | MessageKind::GetConfigRequest
                | MessageKind::MultipartRequest
                | MessageKind::BarrierRequest
                | MessageKind::QueueGetConfigRequest
                | MessageKind::RoleRequest
                | MessageKind::GetAsyncRequest
        )
    )
}
