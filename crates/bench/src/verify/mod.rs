//! Is this the right answer? Every flow_mod and packet_out that a controller sends is checked.
//!
//! What counts as a flow set-up:
//! - for a buffered packet, a flow_mod with its `buffer_id`, or a flow_mod and a packet_out that
//!   releases the buffer, in either order;
//! - for an unbuffered one, a flow_mod, and a packet_out that sends the very frame back;
//!
//! where the flow_mod adds a flow whose match fits the packet and names its destination, and whose
//! only output is the port where that destination was learnt ([`full`] has the rules).
//!
//! cbench counts every flow_mod and every packet_out that is not LLDP; Beacon's packet_outs came to
//! 20% of its figure in Primetime (§V).
//!
//! Reading each answer whole would cost more than the controller spends on making it. So the first
//! answer that was read and found right is kept as a [`shape`], and later ones are compared with what
//! it would look like for their packet, byte by byte. Any difference leads to the full reading. Runs of
//! right answers in order, which is what comes as a rule, are taken together ([`Verifier::run`]).

pub(crate) mod full;
pub(crate) mod shape;

use bellrock_openflow::{Field, FlowMod, Match, Message, ToSwitch, Version};
use serde::{Serialize, Serializer};

use crate::draw::Pattern;
use crate::packet::{FRAME_LEN, NO_BUFFER, Packet};
use crate::window::{Progress, Which, Window};
use full::Fault;
use shape::Shape;

/// Types of the two messages that are answers, the same in both versions.
pub(crate) const PACKET_OUT: u8 = 13;
pub(crate) const FLOW_MOD: u8 = 14;

/// Packets in flight that are looked through for the one that a flow_mod without `buffer_id` is
/// about, if it is not about the first that waits. Beyond, it is wrong.
const SEARCHED: usize = 4096;

/// Packets behind the window that are looked through to distinguish a second answer from a wrong one.
const REMEMBERED: u64 = 64;

/// What the answers to packet_ins were, in messages; `verified` and the last five in packet_ins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Packet_ins sent.
    pub sent: u64,
    /// Flow set-ups: packet_ins whose answer is complete and right.
    pub verified: u64,
    /// Answers with the `buffer_id` of no packet that was sent, or a frame that none had.
    pub wrong_buffer: u64,
    /// Flows whose match does not fit the packet, or does not name its destination.
    pub wrong_match: u64,
    /// Flows and packet_outs whose output is not the port where the destination was learnt.
    pub wrong_output: u64,
    /// Packet_outs whose frame is not that of the packet_in.
    pub wrong_frame: u64,
    /// Answers that cannot be read as OpenFlow.
    pub unreadable: u64,
    /// Answers to packet_ins that were answered, or given up, already.
    pub extra: u64,
    /// OpenFlow errors from the controller.
    pub errors: u64,
    /// Messages that answer no packet_in: echos, barriers, discovery, flows of the controller's own.
    pub other: u64,
    /// Packet_ins without any answer within the answer timeout.
    pub missing: u64,
    /// Packet_ins that were sent on, but for which no flow was installed.
    pub without_flow: u64,
    /// Packet_ins for which a flow was installed, but which were never sent on.
    pub without_packet: u64,
    /// Packet_ins whose answer was wrong in some part, and complete.
    pub spoilt: u64,
    /// Packet_ins that were still in the queue when the test ended, while answers came.
    pub unfinished: u64,
    /// The fields that right flows match.
    pub matched: Matched,
}

impl Tally {
    /// Answers that were wrong, of whatever kind.
    #[must_use]
    pub fn wrong(&self) -> u64 {
        self.wrong_buffer
            + self.wrong_match
            + self.wrong_output
            + self.wrong_frame
            + self.unreadable
    }

    /// Packet_ins with no answer, or with half of one.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.missing + self.without_flow + self.without_packet
    }

    /// Whether all that was sent was answered, once and right.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.wrong() + self.extra + self.errors + self.unanswered() == 0
    }

    /// Adds another one's numbers.
    pub fn add(&mut self, other: &Tally) {
        let Tally { sent, verified, wrong_buffer, wrong_match, wrong_output, .. } = other;
        let Tally { wrong_frame, unreadable, extra, errors, other: not_answers, .. } = other;
        let Tally { missing, without_flow, without_packet, spoilt, unfinished, .. } = other;
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

/// The fields that flows match, each once, whichever flow it is in.
///
/// Controllers differ in it: a learning switch that matches two addresses needs one flow for all
/// conversations of two hosts, and one that matches all fields a flow for each conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matched(u64);

/// Each field has a bit.
const _: () = assert!(Field::ALL.len() <= u64::BITS as usize);

impl Matched {
    /// Those of a match.
    pub(crate) fn of(matching: &Match) -> Self {
        let bit = |(bit, field): (usize, &Field)| u64::from(matching.has(*field)) << bit;
        Matched(Field::ALL.iter().enumerate().map(bit).sum())
    }

    /// These and those.
    #[must_use]
    pub const fn and(self, other: Matched) -> Self {
        Matched(self.0 | other.0)
    }

    /// The names of the fields, in the order of their numbers in OXM (1.3.5 §7.2.3.7).
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let is_in = move |(bit, _): &(usize, &Field)| self.0 >> bit & 1 == 1;
        Field::ALL.iter().enumerate().filter(is_in).map(|(_, field)| field.name())
    }
}

impl Serialize for Matched {
    /// A list of names.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

/// What one message was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It completes a flow set-up.
    SetUp {
        /// When the packet was sent, or was due, in nanoseconds.
        sent_ns: u64,
    },
    /// It completes an answer, and a part of that was wrong: this message, or an earlier one.
    Spoilt(Option<Fault>),
    /// A right part of an answer.
    Part,
    /// Wrong, and the answer is not complete, or it is not known whose it is.
    Wrong(Fault),
    /// About a packet that is answered already.
    Extra,
    /// No answer to a packet_in.
    Other,
}

/// Checks the answers that switches get. It keeps the shapes of right ones, so a thread has one for
/// all its switches, and with it they stay in its cache.
pub(crate) struct Verifier {
    version: Version,
    pattern: Pattern,
    flow_mod: Option<Shape>,
    packet_out: Option<Shape>,
    /// Of all right flows that were read whole.
    matched: Matched,
}

impl Verifier {
    pub(crate) fn new(version: Version, pattern: Pattern) -> Self {
        let matched = Matched::default();
        Verifier { version, pattern, flow_mod: None, packet_out: None, matched }
    }

    /// The fields that right flows have matched so far.
    pub(crate) fn matched(&self) -> Matched {
        self.matched
    }

    /// Takes the answers that a stream starts with, as long as they are those that come when all is
    /// well: whole, right, of the known shapes, and in the order in which the packets were sent. Says
    /// how many packets they answer, and how many bytes they are; the caller passes this on to the window.
    ///
    /// What it stops at goes through [`Verifier::check`], so what is right or wrong is said there.
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
        flow: &Shape,
        packets: impl Iterator<Item = Packet>,
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

    /// Where the packet_out ends that begins there, if it is the right one for a packet.
    #[inline]
    fn sent_on(&self, stream: &[u8], at: usize, packet: &Packet) -> Option<usize> {
        let shape = self.packet_out.as_ref()?;
        let end = at + shape.len();
        shape.fits(stream.get(at..end)?, packet).map(|_| end)
    }

    /// Checks a whole message of type [`FLOW_MOD`] or [`PACKET_OUT`] that came to a switch.
    #[inline]
    pub(crate) fn check(
        &mut self,
        message: &[u8],
        dpid: u32,
        window: &mut Window,
        now_ns: u64,
        tally: &mut Tally,
    ) -> Answer {
        let answer = match message.get(1) {
            Some(&FLOW_MOD) => self.flow_mod(message, dpid, window, now_ns),
            _ => self.packet_out(message, dpid, window, now_ns),
        };
        count(answer, tally);
        answer
    }

    #[inline]
    fn flow_mod(&mut self, message: &[u8], dpid: u32, window: &mut Window, now_ns: u64) -> Answer {
        let guess = match buffer_id(message, self.version) {
            Some(NO_BUFFER) => window.first_without_flow(),
            Some(id) => match window.which(id) {
                Which::Waiting(number) => Some(number),
                Which::Over(_) | Which::Unknown => None,
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
    ) -> Answer {
        if let Some(shape) = &self.packet_out
            && let Some(id) = shape.packet_id(message)
            && let Which::Waiting(number) = window.which(id)
        {
            let packet = self.pattern.packet(dpid, number);
            if shape.fits(message, &packet).is_some() {
                return settle(window.packet(number, true, now_ns), None);
            }
        }
        self.read_packet_out(message, dpid, window, now_ns)
    }

    /// Reads a flow_mod whole.
    #[cold]
    fn read_flow_mod(
        &mut self,
        message: &[u8],
        dpid: u32,
        window: &mut Window,
        now_ns: u64,
    ) -> Answer {
        let Ok(Message { body: ToSwitch::FlowMod(flow), .. }) = ToSwitch::decode(message) else {
            return Answer::Wrong(Fault::Unreadable);
        };
        if !full::is_answer(&flow) {
            return Answer::Other;
        }
        let Some(id) = flow.buffer_id else {
            return self.read_flow_mod_without_buffer(message, &flow, dpid, window, now_ns);
        };
        let number = match window.which(id) {
            Which::Waiting(number) => number,
            Which::Over(_) => return Answer::Extra,
            Which::Unknown => return Answer::Wrong(Fault::Buffer),
        };
        let packet = self.pattern.packet(dpid, number);
        let fault = full::flow_mod(&flow, &packet).err();
        if fault.is_none() {
            self.right_flow_mod(message, &flow, &packet);
        }
        settle(window.both(number, fault.is_none(), now_ns), fault)
    }

    /// Finds the packet that a flow_mod without `buffer_id` is about.
    fn read_flow_mod_without_buffer(
        &mut self,
        message: &[u8],
        flow: &FlowMod<'_>,
        dpid: u32,
        window: &mut Window,
        now_ns: u64,
    ) -> Answer {
        let pattern = self.pattern;
        let fits = |number: &u64| full::flow_mod(flow, &pattern.packet(dpid, *number)).is_ok();
        let found = window.without_flow().take(SEARCHED).find(fits);
        if let Some(number) = found {
            self.right_flow_mod(message, flow, &pattern.packet(dpid, number));
            return settle(window.flow(number, true, now_ns), None);
        }
        if window.recent(REMEMBERED).any(|number| fits(&number)) {
            return Answer::Extra;
        }
        // About no packet. Answers come in order, so it should have been about the first.
        let Some(number) = window.first_without_flow() else { return Answer::Extra };
        let packet = pattern.packet(dpid, number);
        let fault = full::flow_mod(flow, &packet).err().unwrap_or(Fault::Match);
        settle(window.flow(number, false, now_ns), Some(fault))
    }

    /// Keeps what is common to flows of this controller.
    fn right_flow_mod(&mut self, message: &[u8], flow: &FlowMod<'_>, packet: &Packet) {
        self.matched = self.matched.and(Matched::of(&flow.matching.to_match()));
        self.flow_mod = Shape::of_flow_mod(message, self.version, packet);
    }

    /// Reads a packet_out whole.
    #[cold]
    fn read_packet_out(
        &mut self,
        message: &[u8],
        dpid: u32,
        window: &mut Window,
        now_ns: u64,
    ) -> Answer {
        let Ok(Message { body: ToSwitch::PacketOut(out), .. }) = ToSwitch::decode(message) else {
            return Answer::Wrong(Fault::Unreadable);
        };
        let id = match out.buffer_id {
            Some(id) => id,
            None if !full::is_load(&out.data) => return Answer::Other,
            None => match full::number(&out.data) {
                Some(id) => id,
                None => return Answer::Wrong(Fault::Frame),
            },
        };
        let number = match window.which(id) {
            Which::Waiting(number) => number,
            Which::Over(_) => return Answer::Extra,
            Which::Unknown => return Answer::Wrong(Fault::Buffer),
        };
        let packet = self.pattern.packet(dpid, number);
        let fault = full::packet_out(&out, &packet).err();
        if fault.is_none() {
            self.packet_out = Shape::of_packet_out(message, self.version, &packet);
        }
        settle(window.packet(number, fault.is_none(), now_ns), fault)
    }
}

/// What an answer was, by what it did to the window.
#[inline]
fn settle(progress: Progress, fault: Option<Fault>) -> Answer {
    match (progress, fault) {
        (Progress::Twice, _) => Answer::Extra,
        (Progress::Complete { right: true, sent_ns }, _) => Answer::SetUp { sent_ns },
        (Progress::Complete { right: false, .. }, fault) => Answer::Spoilt(fault),
        (Progress::Half, None) => Answer::Part,
        (Progress::Half, Some(fault)) => Answer::Wrong(fault),
    }
}

#[inline]
fn count(answer: Answer, tally: &mut Tally) {
    let fault = match answer {
        Answer::SetUp { .. } => {
            tally.verified += 1;
            return;
        }
        Answer::Part => return,
        Answer::Extra => {
            tally.extra += 1;
            return;
        }
        Answer::Other => {
            tally.other += 1;
            return;
        }
        Answer::Spoilt(fault) => {
            tally.spoilt += 1;
            fault
        }
        Answer::Wrong(fault) => Some(fault),
    };
    match fault {
        Some(Fault::Buffer) => tally.wrong_buffer += 1,
        Some(Fault::Match) => tally.wrong_match += 1,
        Some(Fault::Output) => tally.wrong_output += 1,
        Some(Fault::Frame) => tally.wrong_frame += 1,
        Some(Fault::Unreadable) => tally.unreadable += 1,
        None => {}
    }
}

/// The `buffer_id` of a flow_mod, if it is long enough to have one.
#[inline]
fn buffer_id(flow_mod: &[u8], version: Version) -> Option<u32> {
    flow_mod
        .get(shape::flow_mod_buffer_at(version)..)?
        .first_chunk()
        .copied()
        .map(u32::from_be_bytes)
}

/// The number in a frame of the load, wherever the frame is.
#[inline]
pub(crate) fn number_in(frame: &[u8; FRAME_LEN]) -> u32 {
    const AT: usize = crate::packet::NUMBER_AT;
    u32::from_be_bytes([frame[AT], frame[AT + 1], frame[AT + 2], frame[AT + 3]])
}

#[cfg(test)]
mod tests;
