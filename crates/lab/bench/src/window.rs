//! The packet_ins of one switch in flight: which are answered, and when they were sent.
//!
//! A ring of one byte per packet, limited by the load's [`in_flight`](crate::Load::in_flight), and
//! the times at which runs of packets were sent. Nothing here decides whether an answer is right.

use std::collections::VecDeque;
use std::ops::Range;

use crate::packet::NUMBER_MASK;

/// A flow was installed for the packet.
const FLOW: u8 = 1;
/// The packet was forwarded.
const PACKET: u8 = 2;
/// Both parts: the answer is complete.
const DONE: u8 = FLOW | PACKET;
/// A part of the answer was wrong.
const WRONG: u8 = 4;

/// Number of packets before the window that still count as answered.
const REMEMBERED: u64 = 1 << 24;

/// Meaning of a `buffer_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferMeaning {
    /// The packet with this number waits for an answer or a part of one.
    Waiting(u64),
    /// The packet with this number is answered or given up.
    Over(u64),
    /// No packet sent has it.
    Unknown,
}

/// Effect of a part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerProgress {
    /// This part had come already.
    Twice,
    /// The other part is still missing.
    Half,
    /// The answer is complete.
    Complete {
        /// Whether all parts were right.
        right: bool,
        /// Time when the packet was sent, or was due, in nanoseconds.
        sent_ns: u64,
    },
}

/// Number of packets given up, by the missing part of their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GivenUp {
    /// No answer came.
    pub(crate) missing: u64,
    /// The packet was forwarded, but no flow was installed.
    pub(crate) without_flow: u64,
    /// A flow was installed, but the packet was never forwarded.
    pub(crate) without_packet: u64,
}

/// The packets of one switch in flight.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// The first packet that waits.
    base: u64,
    /// The next packet to send.
    next: u64,
    /// All packets before this one have their flow.
    flows: u64,
    /// Time of the last change of `base`, in nanoseconds.
    since_ns: u64,
    /// Parts of answers that came. The index is the number modulo the length, a power of two.
    parts: Box<[u8]>,
    /// Number of nonzero `parts`: packets in the window with a complete or partial answer.
    marked: u32,
    most: u64,
    /// Runs of packets sent together: first number, and time in nanoseconds.
    sent: VecDeque<(u64, u64)>,
}

impl Window {
    /// Creates an empty window for at most `most` packets.
    pub(crate) fn new(most: u32) -> Self {
        Window {
            base: 0,
            next: 0,
            flows: 0,
            since_ns: 0,
            parts: vec![0; most.next_power_of_two() as usize].into(),
            marked: 0,
            most: most.into(),
            sent: VecDeque::new(),
        }
    }

    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Number of packets without an answer, and of answered packets behind the first of them.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.next - self.base
    }

    /// Number of packets that may be sent now.
    #[inline]
    pub(crate) fn room(&self) -> u64 {
        self.most - self.in_flight()
    }

    /// Notes that `packets` packets, at most [`Window::room`], were sent or due at `at_ns`.
    #[inline]
    pub(crate) fn sent(&mut self, packets: u64, at_ns: u64) {
        debug_assert!(packets <= self.room());
        if packets == 0 {
            return;
        }
        if self.base == self.next {
            self.since_ns = at_ns;
            self.sent.clear();
        }
        self.sent.push_back((self.next, at_ns));
        self.next += packets;
    }

    /// Time when a packet in flight was sent, in nanoseconds.
    #[inline]
    pub(crate) fn sent_at(&self, number: u64) -> u64 {
        match (self.sent.front(), self.sent.get(1)) {
            // Answers usually come in order, so the first run is the right one.
            (Some((_, at)), None) => *at,
            (Some((_, at)), Some((second, _))) if number < *second => *at,
            _ => {
                let behind = self.sent.partition_point(|(first, _)| *first <= number);
                self.sent.get(behind.saturating_sub(1)).map_or(0, |(_, at)| *at)
            }
        }
    }

    /// Finds the packet with this `buffer_id`.
    #[inline]
    pub(crate) fn which(&self, id: u32) -> BufferMeaning {
        if id & !NUMBER_MASK != 0 {
            return BufferMeaning::Unknown;
        }
        let ahead = u64::from(id.wrapping_sub(self.base as u32) & NUMBER_MASK);
        if ahead < self.in_flight() {
            let number = self.base + ahead;
            return match self.part(number) & DONE {
                DONE => BufferMeaning::Over(number),
                _ => BufferMeaning::Waiting(number),
            };
        }
        let back = u64::from((self.base as u32).wrapping_sub(id) & NUMBER_MASK);
        match self.base.checked_sub(back) {
            Some(number) if back != 0 && back <= REMEMBERED => BufferMeaning::Over(number),
            _ => BufferMeaning::Unknown,
        }
    }

    /// Returns the first packet without a flow.
    #[inline]
    pub(crate) fn first_without_flow(&mut self) -> Option<u64> {
        self.flows = self.flows.max(self.base);
        while self.flows < self.next && self.part(self.flows) & FLOW != 0 {
            self.flows += 1;
        }
        (self.flows < self.next).then_some(self.flows)
    }

    /// Returns all packets without a flow.
    pub(crate) fn without_flow(&mut self) -> impl Iterator<Item = u64> + '_ {
        let from = self.first_without_flow().unwrap_or(self.next);
        (from..self.next).filter(|number| self.part(*number) & FLOW == 0)
    }

    /// Returns the packets in flight if none has any part of an answer.
    #[inline]
    pub(crate) fn untouched(&self) -> Option<Range<u64>> {
        (self.marked == 0).then_some(self.base..self.next)
    }

    /// Notes complete and right answers to the first `packets` of the
    /// [untouched](Window::untouched) packets. `each` gets the time when packets were sent or due,
    /// in nanoseconds, and their number.
    #[inline]
    pub(crate) fn answered(&mut self, packets: u64, now_ns: u64, mut each: impl FnMut(u64, u64)) {
        debug_assert!(packets == 0 || self.marked == 0 && packets <= self.in_flight());
        let end = self.base + packets;
        while self.base < end {
            let sent_ns = self.sent_at(self.base);
            let behind = self.sent.get(1).map_or(end, |(second, _)| end.min(*second));
            each(sent_ns, behind - self.base);
            self.base = behind;
            self.since_ns = now_ns;
            self.forget_sent();
        }
    }

    /// Returns recently answered packets, the last first.
    pub(crate) fn recent(&self, packets: u64) -> impl Iterator<Item = u64> + use<> {
        let end = self.flows.max(self.base);
        (end.saturating_sub(packets)..end).rev()
    }

    /// Notes a flow for a packet in flight.
    #[inline]
    pub(crate) fn flow(&mut self, number: u64, right: bool, now_ns: u64) -> AnswerProgress {
        self.came(number, FLOW, right, now_ns)
    }

    /// Notes that a packet in flight was forwarded.
    #[inline]
    pub(crate) fn packet(&mut self, number: u64, right: bool, now_ns: u64) -> AnswerProgress {
        self.came(number, PACKET, right, now_ns)
    }

    /// Notes a flow for a packet in flight that also forwards it.
    #[inline]
    pub(crate) fn both(&mut self, number: u64, right: bool, now_ns: u64) -> AnswerProgress {
        self.came(number, DONE, right, now_ns)
    }

    #[inline]
    fn came(&mut self, number: u64, parts: u8, right: bool, now_ns: u64) -> AnswerProgress {
        debug_assert!((self.base..self.next).contains(&number));
        let slot = self.slot(number);
        let before = self.parts[slot];
        if before & parts != 0 {
            return AnswerProgress::Twice;
        }
        let after = before | parts | if right { 0 } else { WRONG };
        self.parts[slot] = after;
        self.marked += u32::from(before == 0);
        if after & DONE != DONE {
            return AnswerProgress::Half;
        }
        let sent_ns = self.sent_at(number);
        if number == self.base {
            self.advance(now_ns);
        }
        AnswerProgress::Complete { right: after & WRONG == 0, sent_ns }
    }

    /// Gives up packets at the front that were sent before `now_ns - timeout_ns`, if the front has
    /// not moved for that long. Stops at the first answered packet.
    pub(crate) fn give_up(&mut self, now_ns: u64, timeout_ns: u64) -> GivenUp {
        let mut given_up = GivenUp::default();
        let limit = now_ns.saturating_sub(timeout_ns);
        if self.in_flight() == 0 || self.since_ns > limit {
            return given_up;
        }
        while self.base < self.next && self.sent_at(self.base) <= limit {
            let slot = self.slot(self.base);
            match self.parts[slot] & DONE {
                0 => given_up.missing += 1,
                PACKET => given_up.without_flow += 1,
                FLOW => given_up.without_packet += 1,
                // An answered packet: the packets behind it get their own time.
                _ => break,
            }
            self.marked -= u32::from(self.parts[slot] != 0);
            self.parts[slot] = 0;
            self.base += 1;
            self.forget_sent();
        }
        // The front may be an answered packet now.
        self.advance(now_ns);
        given_up
    }

    /// Moves the front past answered packets.
    #[inline]
    fn advance(&mut self, now_ns: u64) {
        while self.base < self.next && self.part(self.base) & DONE == DONE {
            let slot = self.slot(self.base);
            self.parts[slot] = 0;
            self.marked -= 1;
            self.base += 1;
        }
        self.since_ns = now_ns;
        self.forget_sent();
    }

    #[inline]
    fn forget_sent(&mut self) {
        while self.sent.get(1).is_some_and(|(second, _)| *second <= self.base) {
            self.sent.pop_front();
        }
    }

    #[inline]
    fn slot(&self, number: u64) -> usize {
        number as usize & (self.parts.len() - 1)
    }

    #[inline]
    fn part(&self, number: u64) -> u8 {
        self.parts[self.slot(number)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: AnswerProgress = AnswerProgress::Complete { right: true, sent_ns: 100 };

    #[test]
    fn answers_in_order_move_the_window() {
        let mut window = Window::new(4);
        window.sent(2, 100);
        window.sent(2, 200);
        assert_eq!(window.room(), 0);
        assert_eq!((window.sent_at(1), window.sent_at(2)), (100, 200));
        assert_eq!(window.which(0), BufferMeaning::Waiting(0));
        assert_eq!(window.both(0, true, 300), RIGHT);
        assert_eq!(window.which(0), BufferMeaning::Over(0));
        assert_eq!(window.which(4), BufferMeaning::Unknown);
        assert_eq!(window.flow(1, true, 300), AnswerProgress::Half);
        assert_eq!(window.first_without_flow(), Some(2));
        assert_eq!(window.flow(1, true, 300), AnswerProgress::Twice);
        let wrong = AnswerProgress::Complete { right: false, sent_ns: 100 };
        assert_eq!(window.packet(1, false, 300), wrong);
        assert_eq!((window.in_flight(), window.room(), window.sent_at(3)), (2, 2, 200));
    }

    #[test]
    fn answers_out_of_order_wait_for_the_front() {
        let mut window = Window::new(4);
        window.sent(4, 100);
        assert_eq!(window.both(2, true, 200), RIGHT);
        assert_eq!(window.which(2), BufferMeaning::Over(2));
        assert_eq!(window.in_flight(), 4);
        assert_eq!(window.without_flow().collect::<Vec<_>>(), [0, 1, 3]);
        assert_eq!(window.both(0, true, 200), RIGHT);
        assert_eq!(window.both(1, true, 200), RIGHT);
        assert_eq!((window.base, window.in_flight()), (3, 1));
        assert_eq!(window.recent(2).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn a_run_of_answers_is_as_many_single_ones() {
        let mut single = Window::new(8);
        for (packets, at_ns) in [(2, 100), (1, 200), (4, 300)] {
            single.sent(packets, at_ns);
        }
        let mut run = single.clone();
        let (mut of_single, mut of_run) = (Vec::new(), Vec::new());
        for number in 0..5 {
            if let AnswerProgress::Complete { right: true, sent_ns } =
                single.both(number, true, 400)
            {
                of_single.push(sent_ns);
            }
        }
        assert_eq!(run.untouched(), Some(0..7));
        run.answered(5, 400, |sent_ns, packets| {
            of_run.extend(std::iter::repeat_n(sent_ns, packets as usize));
        });
        assert_eq!(of_run, of_single);
        assert_eq!(format!("{run:?}"), format!("{single:?}"));
        run.answered(2, 500, |sent_ns, packets| assert_eq!((sent_ns, packets), (300, 2)));
        assert_eq!((run.in_flight(), run.untouched()), (0, Some(7..7)));
    }

    #[test]
    fn a_window_knows_whether_parts_of_answers_have_come() {
        let mut window = Window::new(8);
        window.sent(4, 100);
        window.both(2, true, 200);
        assert_eq!(window.untouched(), None);
        window.both(0, true, 200);
        window.flow(1, true, 200);
        assert_eq!(window.untouched(), None);
        window.packet(1, true, 200);
        assert_eq!(window.untouched(), Some(3..4));
        window.packet(3, true, 200);
        assert_eq!(window.untouched(), None);
        window.give_up(10_000, 1000);
        assert_eq!(window.untouched(), Some(4..4));
    }

    #[test]
    fn missing_answers_are_given_up_in_time() {
        let mut window = Window::new(8);
        window.sent(4, 100);
        window.sent(1, 900);
        window.both(1, true, 200);
        window.packet(2, true, 200);
        window.flow(3, true, 200);
        assert_eq!(window.give_up(1099, 1000), GivenUp::default());
        let first = GivenUp { missing: 1, ..GivenUp::default() };
        assert_eq!(window.give_up(1100, 1000), first);
        assert_eq!(window.base, 2);
        let halves = GivenUp { missing: 0, without_flow: 1, without_packet: 1 };
        assert_eq!(window.give_up(2100, 1000), GivenUp { missing: 1, ..halves });
        assert_eq!((window.in_flight(), window.which(4)), (0, BufferMeaning::Over(4)));
        window.sent(8, 3000);
        assert_eq!(window.without_flow().count(), 8, "slots are clean again");
    }

    #[test]
    fn numbers_outlast_the_bits_of_a_buffer_id() {
        let mut window = Window::new(2);
        window.base = 0x7fff_ffff;
        window.next = window.base;
        window.sent(2, 1);
        assert_eq!(window.which(0x7fff_ffff), BufferMeaning::Waiting(0x7fff_ffff));
        assert_eq!(window.which(0), BufferMeaning::Waiting(0x8000_0000));
        assert_eq!(window.which(0x8000_0000), BufferMeaning::Unknown);
        window.both(0x7fff_ffff, true, 2);
        window.both(0x8000_0000, true, 2);
        assert_eq!(window.which(0x7fff_ffff), BufferMeaning::Over(0x7fff_ffff));
    }
}
