//! The end that accepts a flow, and receives.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{
    ACK, FIN, FlowReport, FlowState, INITIAL_RTO, MAX_RETRIES, MAX_RTO, RST, SYN, TcpSegment,
    WINDOW_BYTES, WINDOW_SHIFT, WINDOW_UNITS,
};

/// Maximum number of gaps in the data that has arrived. Data behind one more is dropped.
const MAX_GAPS: usize = 256;

/// The receiving end. It acknowledges every segment at once.
pub(in crate::host) struct Receiver {
    ports: (u16, u16),
    isn: u32,
    peer_isn: u32,
    state: FlowState,
    next: u64,
    /// Where the sender's stream ends, after its FIN arrived.
    end: Option<u64>,
    /// Data beyond a gap: from, to.
    early: BTreeMap<u64, u64>,
    deadline: Option<Duration>,
    rto: Duration,
    retries: u32,
    retransmissions: u64,
    began: Duration,
    last: Duration,
}

impl Receiver {
    /// Answers a SYN.
    pub(in crate::host) fn open(
        syn: &TcpSegment,
        isn: u32,
        now: Duration,
        out: &mut Vec<TcpSegment>,
    ) -> Self {
        let receiver = Receiver {
            ports: (syn.to, syn.from),
            isn,
            peer_isn: syn.sequence,
            state: FlowState::Opening,
            next: 1,
            end: None,
            early: BTreeMap::new(),
            deadline: Some(now + INITIAL_RTO),
            rto: INITIAL_RTO,
            retries: 0,
            retransmissions: 0,
            began: now,
            last: now,
        };
        out.push(receiver.answer());
        receiver
    }

    pub(in crate::host) fn report(&self) -> FlowReport {
        let fin = u64::from(self.end.is_some_and(|end| self.next > end));
        FlowReport {
            state: self.state,
            bytes: self.next - 1 - fin,
            retransmissions: self.retransmissions,
            began: self.began,
            last: self.last,
        }
    }

    pub(in crate::host) fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    pub(in crate::host) fn receive(
        &mut self,
        segment: &TcpSegment,
        now: Duration,
        out: &mut Vec<TcpSegment>,
    ) {
        if self.state.is_over() {
            return;
        }
        if segment.flags & RST != 0 {
            if segment.sequence == self.peer_isn.wrapping_add(self.next as u32) {
                // After its FIN the sender removes the flow; all data has arrived.
                let is_done = self.state == FlowState::Closing;
                self.finish(if is_done { FlowState::Done } else { FlowState::Reset }, now);
            }
            return;
        }
        if segment.flags & SYN != 0 {
            out.push(self.answer());
            return;
        }
        if segment.flags & ACK == 0 {
            return;
        }
        if self.state == FlowState::Opening && segment.acknowledgement == self.isn.wrapping_add(1) {
            self.state = FlowState::Open;
            self.merge();
        }
        if self.state == FlowState::Closing && segment.acknowledgement == self.isn.wrapping_add(2) {
            self.finish(FlowState::Done, now);
            return;
        }
        self.take(segment, now);
        if self.state == FlowState::Open && self.end.is_some_and(|end| self.next > end) {
            self.state = FlowState::Closing;
            self.deadline = Some(now + self.rto);
        }
        if segment.len > 0 || segment.flags & FIN != 0 {
            out.push(self.answer());
        }
    }

    /// Sends the SYN or FIN again.
    pub(in crate::host) fn timer(&mut self, now: Duration, out: &mut Vec<TcpSegment>) {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        if self.retries == MAX_RETRIES {
            // All data has arrived, so the missing acknowledgement of the FIN loses nothing.
            let is_done = self.state == FlowState::Closing;
            self.finish(if is_done { FlowState::Done } else { FlowState::TimedOut }, now);
            return;
        }
        self.retries += 1;
        self.retransmissions += 1;
        self.rto = (self.rto * 2).min(MAX_RTO);
        self.deadline = Some(now + self.rto);
        out.push(self.answer());
    }

    fn take(&mut self, segment: &TcpSegment, now: Duration) {
        // The position nearest to the next one; a segment far behind it is old.
        let offset = segment.sequence.wrapping_sub(self.peer_isn.wrapping_add(self.next as u32));
        let Some(from) = self.next.checked_add_signed(i64::from(offset as i32)) else { return };
        let mut to = from + segment.len as u64;
        if to > self.next + WINDOW_BYTES {
            return;
        }
        if segment.flags & FIN != 0 {
            self.end = Some(to);
            to += 1;
        }
        if from > self.next {
            self.insert(from, to);
            return;
        }
        if to > self.next {
            self.next = to;
            self.last = now;
        }
        while let Some(entry) = self.early.first_entry().filter(|entry| *entry.key() <= self.next) {
            self.next = self.next.max(entry.remove());
        }
    }

    /// Keeps data beyond a gap, as one piece with all that it touches.
    fn insert(&mut self, mut from: u64, mut to: u64) {
        let touched = |early: &BTreeMap<u64, u64>, from, to| {
            let last = early.range(..=to).next_back().map(|(start, end)| (*start, *end));
            last.filter(|(_, end)| *end >= from)
        };
        while let Some((start, end)) = touched(&self.early, from, to) {
            self.early.remove(&start);
            (from, to) = (from.min(start), to.max(end));
        }
        if self.early.len() < MAX_GAPS {
            self.early.insert(from, to);
        }
    }

    fn merge(&mut self) {
        self.deadline = None;
        self.rto = INITIAL_RTO;
        self.retries = 0;
    }

    /// This end's next segment: its SYN, its acknowledgement, or its FIN.
    fn answer(&self) -> TcpSegment {
        let (from, to) = self.ports;
        let (flags, place, window, scale) = match self.state {
            // The window of a SYN is not scaled.
            FlowState::Opening => (SYN | ACK, 0, u16::MAX, Some(WINDOW_SHIFT)),
            FlowState::Closing => (FIN | ACK, 1, WINDOW_UNITS, None),
            _ => (ACK, 1, WINDOW_UNITS, None),
        };
        TcpSegment {
            from,
            to,
            sequence: self.isn.wrapping_add(place),
            acknowledgement: self.peer_isn.wrapping_add(self.next as u32),
            flags,
            window,
            scale,
            len: 0,
        }
    }

    fn finish(&mut self, state: FlowState, now: Duration) {
        self.state = state;
        if state != FlowState::Done {
            self.last = now;
        }
        self.deadline = None;
    }
}
