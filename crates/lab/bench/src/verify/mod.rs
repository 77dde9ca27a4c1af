//! Verifies every flow_mod and packet_out that a controller sends.
//!
//! A flow set-up is:
//! - for a buffered packet, a flow_mod with its `buffer_id`, or a flow_mod and a packet_out that
//!   releases the buffer, in either order;
//! - for an unbuffered packet, a flow_mod, and a packet_out that sends the same frame back.
//!
//! The flow_mod has to add a flow whose match fits the packet and names its destination. Its only
//! output is the port where that destination was learnt ([`full`] has the rules).
//!
//! cbench counts every flow_mod and every packet_out that is not LLDP. Beacon's packet_outs were
//! 20% of its result in Primetime (§V).
//!
//! Decoding each answer fully would cost more than the controller spends on it. So the first right
//! answer is kept as a [`shape`], and later answers are compared with it byte by byte, adjusted to
//! their packet. On any difference, the answer is decoded fully. Runs of right answers in order,
//! the usual case, are checked together ([`Verifier::run`]).

pub(crate) mod full;
pub(crate) mod shape;

use bellrock_openflow::{Field, FlowMod, Match, Message, ToSwitch, Version};
use serde::{Serialize, Serializer};

use crate::draw::TrafficPattern;
use crate::packet::{FRAME_LEN, LoadPacket, NO_BUFFER};
use crate::window::{AnswerProgress, BufferMeaning, Window};
use full::AnswerFault;
use shape::AnswerShape;

/// Types of the two messages that are answers, in both versions.
pub(crate) const PACKET_OUT: u8 = 13;
pub(crate) const FLOW_MOD: u8 = 14;

/// Maximum number of packets in flight that a flow_mod without `buffer_id` is compared with. If it
/// fits none of them, it is wrong.
const SEARCHED: usize = 4096;

/// Number of answered packets to search, to distinguish a second answer from a wrong one.
const REMEMBERED: u64 = 64;

/// Counts of the answers to packet_ins. Units are messages; `sent`, `verified` and the counts from
/// `missing` to `unfinished` are packet_ins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AnswerTally {
    /// Number of packet_ins sent.
    pub sent: u64,
    /// Flow set-ups: packet_ins whose answer is complete and right.
    pub verified: u64,
    /// Answers whose `buffer_id` or frame belongs to no packet sent.
    pub wrong_buffer: u64,
    /// Flows whose match does not fit the packet, or does not name its destination.
    pub wrong_match: u64,
    /// Flows and packet_outs whose output is not the port where the destination was learnt.
    pub wrong_output: u64,
    /// Packet_outs whose frame is not that of the packet_in.
    pub wrong_frame: u64,
    /// Answers that cannot be read as OpenFlow.
    pub unreadable: u64,
    /// Answers to packet_ins that were already answered or given up.
    pub extra: u64,
    /// OpenFlow errors from the controller.
    pub errors: u64,
    /// Messages that answer no packet_in: echoes, barriers, discovery, the controller's own flows.
    pub other: u64,
    /// Packet_ins without any answer within the answer timeout.
    pub missing: u64,
    /// Packet_ins that were forwarded, but for which no flow was installed.
    pub without_flow: u64,
    /// Packet_ins for which a flow was installed, but which were never forwarded.
    pub without_packet: u64,
    /// Packet_ins whose answer was complete, but wrong in some part.
    pub spoilt: u64,
    /// Packet_ins still in the queue when the test ended, while answers came.
    pub unfinished: u64,
    /// The fields that right flows match.
    pub matched: MatchedFields,
}

impl AnswerTally {
    /// Returns the number of wrong answers of any kind.
    #[must_use]
    pub fn wrong(&self) -> u64 {
        self.wrong_buffer
            + self.wrong_match
            + self.wrong_output
            + self.wrong_frame
            + self.unreadable
    }

    /// Returns the number of packet_ins without a complete answer.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.missing + self.without_flow + self.without_packet
    }

    /// Returns whether every packet_in was answered once, and right.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.wrong() + self.extra + self.errors + self.unanswered() == 0
    }

    /// Adds other counts to these.
    pub fn add(&mut self, other: &AnswerTally) {
        let AnswerTally { sent, verified, wrong_buffer, wrong_match, wrong_output, .. } = other;
        let AnswerTally { wrong_frame, unreadable, extra, errors, other: not_answers, .. } = other;
        let AnswerTally { missing, without_flow, without_packet, spoilt, unfinished, .. } = other;
        self.sent += sent;
        self.verified += verified;
        self.wrong_buffer += wrong_buffer;
        self.wrong_match += wrong_match;
        self.wrong_output += wrong_output;
        self.wrong_frame += wrong_frame;
        self.unreadable += unreadable;
        self.extra += extra;
        self.errors += errors;
        self.other += not_answers;
        self.missing += missing;
        self.without_flow += without_flow;
        self.without_packet += without_packet;
        self.spoilt += spoilt;
        self.unfinished += unfinished;
        self.matched = self.matched.and(other.matched);
    }
}

/// The set of fields that flows match.
///
/// Controllers differ in it. A learning switch that matches two addresses needs one flow for all
/// conversations of two hosts; one that matches all fields needs a flow for each conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchedFields(u64);

/// Each field needs a bit.
const _: () = assert!(Field::ALL.len() <= u64::BITS as usize);

impl MatchedFields {
    pub(crate) fn of(matching: &Match) -> Self {
        let bit = |(bit, field): (usize, &Field)| u64::from(matching.has(*field)) << bit;
        MatchedFields(Field::ALL.iter().enumerate().map(bit).sum())
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn and(self, other: MatchedFields) -> Self {
        MatchedFields(self.0 | other.0)
    }

    /// Returns the names of the fields, in the order of their OXM numbers (1.3.5 §7.2.3.7).
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let is_in = move |(bit, _): &(usize, &Field)| self.0 >> bit & 1 == 1;
        Field::ALL.iter().enumerate().filter(is_in).map(|(_, field)| field.name())
    }
}

impl Serialize for MatchedFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

/// Kind of a message from the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// Completes a flow set-up.
    SetUp {
        /// Time when the packet was sent, or was due, in nanoseconds.
        sent_ns: u64,
    },
    /// Completes an answer of which a part was wrong: this message, or an earlier one.
    Spoilt(Option<AnswerFault>),
    /// A right part of an answer that is not complete.
    Part,
    /// A wrong message. Its answer is not complete, or its packet is unknown.
    Wrong(AnswerFault),
    /// Belongs to a packet that is already answered.
    Extra,
    /// Not an answer to a packet_in.
    Other,
}

/// Checks the answers to switches. A thread has one verifier for all its switches, so the shapes of
/// right answers stay in its cache.
pub(crate) struct Verifier {
    version: Version,
    pattern: TrafficPattern,
    flow_mod: Option<AnswerShape>,
    packet_out: Option<AnswerShape>,
    /// Fields of all right flows that were decoded fully.
    matched: MatchedFields,
}

impl Verifier {
    pub(crate) fn new(version: Version, pattern: TrafficPattern) -> Self {
        let matched = MatchedFields::default();
        Verifier { version, pattern, flow_mod: None, packet_out: None, matched }
    }

    /// Returns the fields that right flows have matched so far.
    pub(crate) fn matched(&self) -> MatchedFields {
        self.matched
    }

    /// Takes the answers at the start of a stream that are whole, right, of known shape, and in the
    /// order in which the packets were sent. Returns how many packets they answer, and their length
    /// in bytes. The caller passes both on to the window.
    ///
    /// The message after them goes through [`Verifier::check`], which decides whether it is right.
    #[inline]
    pub(crate) fn run(&self, stream: &[u8], dpid: u32, window: &Window) -> (u64, usize) {
        let (Some(flow), Some(waiting)) = (&self.flow_mod, window.untouched()) else {
            return (0, 0);
        };
        match self.pattern.in_turn(dpid, waiting.start) {
            Some(packets) => {
                self.run_of(stream, flow, packets.take((waiting.end - waiting.start) as usize))
            }
            None => self.run_of(stream, flow, self.pattern.packets(dpid, waiting)),
        }
    }

    #[inline(always)]
    fn run_of(
        &self,
        stream: &[u8],
        flow: &AnswerShape,
        packets: impl Iterator<Item = LoadPacket>,
    ) -> (u64, usize) {
        let (mut answered, mut used) = (0, 0);
        for packet in packets {
            let end = used + flow.len();
            let end = match stream.get(used..end).and_then(|message| flow.fits(message, &packet)) {
                Some(true) => Some(end),
                Some(false) => self.sent_on(stream, end, &packet),
                None => None,
            };
            let Some(end) = end else { break };
            used = end;
            answered += 1;
        }
        (answered, used)
    }

    /// Returns the end of the packet_out at `at` if it is the right one for the packet.
    #[inline]
    fn sent_on(&self, stream: &[u8], at: usize, packet: &LoadPacket) -> Option<usize> {
        let shape = self.packet_out.as_ref()?;
        let end = at + shape.len();
        shape.fits(stream.get(at..end)?, packet).map(|_| end)
    }

    /// Checks a whole message of type [`FLOW_MOD`] or [`PACKET_OUT`].
    #[inline]
    pub(crate) fn check(
        &mut self,
        message: &[u8],
        dpid: u32,
        window: &mut Window,
        now_ns: u64,
        tally: &mut AnswerTally,
    ) -> AnswerKind {
        let answer = match message.get(1) {
            Some(&FLOW_MOD) => self.flow_mod(message, dpid, window, now_ns),
            _ => self.packet_out(message, dpid, window, now_ns),
        };
        count(answer, tally);
        answer
    }

    #[inline]
    fn flow_mod(
        &mut self,
        message: &[u8],
        dpid: u32,
        window: &mut Window,
        now_ns: u64,
    ) -> AnswerKind {
        let guess = match buffer_id(message, self.version) {
            Some(NO_BUFFER) => window.first_without_flow(),
            Some(id) => match window.which(id) {
                BufferMeaning::Waiting(number) => Some(number),
                BufferMeaning::Over(_) | BufferMeaning::Unknown => None,
            },
            None => None,
        };
        if let (Some(number), Some(shape)) = (guess, &self.flow_mod) {
            let packet = self.pattern.packet(dpid, number);
            match shape.fits(message, &packet) {
                Some(true) => return settle(window.both(number, true, now_ns), None),
                Some(false) => return settle(window.flow(number, true, now_ns), None),
                None => {}
            }
        }
        self.read_flow_mod(message, dpid, window, now_ns)
    }

    #[inline]
    fn packet_out(
        &mut self,
        message: &[u8],
        dpid: u32,
        window: &mut Window,
        now_ns: u64,
    ) -> AnswerKind {
        if let Some(shape) = &self.packet_out
            && let Some(id) = shape.packet_id(message)
            && let BufferMeaning::Waiting(number) = window.which(id)
        {
            let packet = self.pattern.packet(dpid, number);
            if shape.fits(message, &packet).is_some() {
                return settle(window.packet(number, true, now_ns), None);
            }
        }
        self.read_packet_out(message, dpid, window, now_ns)
    }

    /// Decodes a flow_mod fully.
    #[cold]
    fn read_flow_mod(
        &mut self,
        message: &[u8],
        dpid: u32,
        window: &mut Window,
        now_ns: u64,
    ) -> AnswerKind {
        let Ok(Message { body: ToSwitch::FlowMod(flow), .. }) = ToSwitch::decode(message) else {
            return AnswerKind::Wrong(AnswerFault::Unreadable);
        };
        if !full::is_answer(&flow) {
            return AnswerKind::Other;
        }
        let Some(id) = flow.buffer_id else {
            return self.read_flow_mod_without_buffer(message, &flow, dpid, window, now_ns);
        };
        let number = match window.which(id) {
            BufferMeaning::Waiting(number) => number,
            BufferMeaning::Over(_) => return AnswerKind::Extra,
            BufferMeaning::Unknown => return AnswerKind::Wrong(AnswerFault::Buffer),
        };
        let packet = self.pattern.packet(dpid, number);
        let fault = full::flow_mod(&flow, &packet).err();
        if fault.is_none() {
            self.right_flow_mod(message, &flow, &packet);
        }
        settle(window.both(number, fault.is_none(), now_ns), fault)
    }

    /// Finds the packet that a flow_mod without `buffer_id` belongs to.
    fn read_flow_mod_without_buffer(
        &mut self,
        message: &[u8],
        flow: &FlowMod<'_>,
        dpid: u32,
        window: &mut Window,
        now_ns: u64,
    ) -> AnswerKind {
        let pattern = self.pattern;
        let fits = |number: &u64| full::flow_mod(flow, &pattern.packet(dpid, *number)).is_ok();
        let found = window.without_flow().take(SEARCHED).find(fits);
        if let Some(number) = found {
            self.right_flow_mod(message, flow, &pattern.packet(dpid, number));
            return settle(window.flow(number, true, now_ns), None);
        }
        if window.recent(REMEMBERED).any(|number| fits(&number)) {
            return AnswerKind::Extra;
        }
        // It fits no packet. Answers come in order, so it was probably meant for the first.
        let Some(number) = window.first_without_flow() else { return AnswerKind::Extra };
        let packet = pattern.packet(dpid, number);
        let fault = full::flow_mod(flow, &packet).err().unwrap_or(AnswerFault::Match);
        settle(window.flow(number, false, now_ns), Some(fault))
    }

    /// Keeps the shape and the fields of a right flow.
    fn right_flow_mod(&mut self, message: &[u8], flow: &FlowMod<'_>, packet: &LoadPacket) {
        self.matched = self.matched.and(MatchedFields::of(&flow.matching.to_match()));
        self.flow_mod = AnswerShape::of_flow_mod(message, self.version, packet);
    }

    /// Decodes a packet_out fully.
    #[cold]
    fn read_packet_out(
        &mut self,
        message: &[u8],
        dpid: u32,
        window: &mut Window,
        now_ns: u64,
    ) -> AnswerKind {
        let Ok(Message { body: ToSwitch::PacketOut(out), .. }) = ToSwitch::decode(message) else {
            return AnswerKind::Wrong(AnswerFault::Unreadable);
        };
        let id = match out.buffer_id {
            Some(id) => id,
            None if !full::is_load(&out.data) => return AnswerKind::Other,
            None => match full::number(&out.data) {
                Some(id) => id,
                None => return AnswerKind::Wrong(AnswerFault::Frame),
            },
        };
        let number = match window.which(id) {
            BufferMeaning::Waiting(number) => number,
            BufferMeaning::Over(_) => return AnswerKind::Extra,
            BufferMeaning::Unknown => return AnswerKind::Wrong(AnswerFault::Buffer),
        };
        let packet = self.pattern.packet(dpid, number);
        let fault = full::packet_out(&out, &packet).err();
        if fault.is_none() {
            self.packet_out = AnswerShape::of_packet_out(message, self.version, &packet);
        }
        settle(window.packet(number, fault.is_none(), now_ns), fault)
    }
}

/// Classifies an answer by its effect on the window.
#[inline]
fn settle(progress: AnswerProgress, fault: Option<AnswerFault>) -> AnswerKind {
    match (progress, fault) {
        (AnswerProgress::Twice, _) => AnswerKind::Extra,
        (AnswerProgress::Complete { right: true, sent_ns }, _) => AnswerKind::SetUp { sent_ns },
        (AnswerProgress::Complete { right: false, .. }, fault) => AnswerKind::Spoilt(fault),
        (AnswerProgress::Half, None) => AnswerKind::Part,
        (AnswerProgress::Half, Some(fault)) => AnswerKind::Wrong(fault),
    }
}

#[inline]
fn count(answer: AnswerKind, tally: &mut AnswerTally) {
    let fault = match answer {
        AnswerKind::SetUp { .. } => {
            tally.verified += 1;
            return;
        }
        AnswerKind::Part => return,
        AnswerKind::Extra => {
            tally.extra += 1;
            return;
        }
        AnswerKind::Other => {
            tally.other += 1;
            return;
        }
        AnswerKind::Spoilt(fault) => {
            tally.spoilt += 1;
            fault
        }
        AnswerKind::Wrong(fault) => Some(fault),
    };
    match fault {
        Some(AnswerFault::Buffer) => tally.wrong_buffer += 1,
        Some(AnswerFault::Match) => tally.wrong_match += 1,
        Some(AnswerFault::Output) => tally.wrong_output += 1,
        Some(AnswerFault::Frame) => tally.wrong_frame += 1,
        Some(AnswerFault::Unreadable) => tally.unreadable += 1,
        None => {}
    }
}

/// Returns the `buffer_id` of a flow_mod, if the message is long enough.
#[inline]
fn buffer_id(flow_mod: &[u8], version: Version) -> Option<u32> {
    flow_mod
        .get(shape::flow_mod_buffer_at(version.family())..)?
        .first_chunk()
        .copied()
        .map(u32::from_be_bytes)
}

/// Returns the number in a frame of the load.
#[inline]
pub(crate) fn number_in(frame: &[u8; FRAME_LEN]) -> u32 {
    const AT: usize = crate::packet::NUMBER_AT;
    u32::from_be_bytes([frame[AT], frame[AT + 1], frame[AT + 2], frame[AT + 3]])
}

#[cfg(test)]
mod tests;
