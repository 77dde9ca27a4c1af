//! The end that opens a flow, and sends.

use std::time::Duration;

use super::{
    ACK, FIN, FlowGoal, FlowReport, FlowState, INITIAL_RTO, MAX_RETRIES, MAX_RTO, RST, SYN,
    TcpSegment, WINDOW_SHIFT, WINDOW_UNITS, reset,
};

/// Maximum bytes of data in a segment: an Ethernet frame of the usual size holds it.
const MSS: usize = 1460;
/// Initial window of a sender, in segments (RFC 6928).
const INITIAL_WINDOW_SEGMENTS: u64 = 10;
/// Minimum time until a retransmission: as in Linux, less than RFC 6298's second.
pub(super) const MIN_RTO: Duration = Duration::from_millis(200);
/// Slow start ends when a round trip is longer than the shortest by an eighth, within these limits
/// (RFC 9406 §4.3).
const SLOW_START_DELAYS: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(16)];

/// The sending end.
pub(in crate::host) struct Sender {
    ports: (u16, u16),
    isn: u32,
    peer_isn: u32,
    state: FlowState,
    goal: FlowGoal,
    /// End of the stream, once known: the position of the FIN.
    end: Option<u64>,
    acked: u64,
    next: u64,
    /// The highest position that was ever sent.
    high: u64,
    peer_window: u64,
    peer_shift: u8,
    window: u64,
    threshold: u64,
    duplicates: u32,
    /// Fast recovery lasts until this is acknowledged.
    recover: Option<u64>,
    /// End of what was sent before the last timeout: duplicate acknowledgements of it are ignored.
    repaired: u64,
    /// The shortest round trip.
    shortest: Option<Duration>,
    rto: Duration,
    smoothed: Option<(Duration, Duration)>,
    /// The position whose acknowledgement is timed, and when it was sent.
    timed: Option<(u64, Duration)>,
    deadline: Option<Duration>,
    retries: u32,
    retransmissions: u64,
    began: Duration,
    last: Duration,
}

impl Sender {
    /// Opens a flow. `ports`: the local and the remote port.
    pub(in crate::host) fn open(
        ports: (u16, u16),
        isn: u32,
        goal: FlowGoal,
        now: Duration,
        out: &mut Vec<TcpSegment>,
    ) -> Self {
        let mut sender = Sender {
            ports,
            isn,
            peer_isn: 0,
            state: FlowState::Opening,
            goal,
            end: None,
            acked: 0,
            next: 0,
            high: 0,
            peer_window: 0,
            peer_shift: 0,
            window: INITIAL_WINDOW_SEGMENTS * MSS as u64,
            threshold: u64::MAX,
            duplicates: 0,
            recover: None,
            repaired: 0,
            shortest: None,
            rto: INITIAL_RTO,
            smoothed: None,
            timed: None,
            deadline: None,
            retries: 0,
            retransmissions: 0,
            began: now,
            last: now,
        };
        sender.transmit(now, out);
        sender
    }

    pub(in crate::host) fn report(&self) -> FlowReport {
        let data = self.acked.saturating_sub(1);
        let bytes = self.end.map_or(data, |end| data.min(end - 1));
        FlowReport {
            state: self.state,
            bytes,
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
            // The other end has missed the last acknowledgement.
            out.extend(reset(segment));
            return;
        }
        let acked =
            self.acked + u64::from(segment.acknowledgement.wrapping_sub(self.wire(self.acked)));
        // An acknowledgement of more than was sent, or of less than was acknowledged, is old.
        let acceptable = segment.flags & ACK != 0 && acked <= self.high;
        if segment.flags & RST != 0 {
            if acceptable {
                self.finish(FlowState::Reset, now);
            }
            return;
        }
        if !acceptable {
            return;
        }
        if self.state == FlowState::Opening {
            if segment.flags & SYN == 0 || acked != 1 {
                return;
            }
            self.peer_isn = segment.sequence;
            self.peer_shift = segment.scale.unwrap_or(0).min(14);
            self.state = FlowState::Open;
        }
        let shift = if segment.flags & SYN == 0 { self.peer_shift } else { 0 };
        self.peer_window = u64::from(segment.window) << shift;
        if acked > self.acked {
            self.advance(acked, now, out);
        } else if self.next > self.acked && segment.len == 0 && segment.flags & (SYN | FIN) == 0 {
            self.duplicate(out);
        }
        let fin = segment.flags & FIN != 0;
        if self.state == FlowState::Closing
            && fin
            && Some(self.acked) == self.end.map(|end| end + 1)
        {
            out.push(TcpSegment {
                acknowledgement: self.peer_isn.wrapping_add(2),
                ..self.empty_segment(self.next)
            });
            self.finish(FlowState::Done, now);
            return;
        }
        self.transmit(now, out);
    }

    /// Sends the overdue segments again.
    pub(in crate::host) fn timer(&mut self, now: Duration, out: &mut Vec<TcpSegment>) {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        if self.retries == MAX_RETRIES {
            self.finish(FlowState::TimedOut, now);
            return;
        }
        self.retries += 1;
        self.rto = (self.rto * 2).min(MAX_RTO);
        self.threshold = self.half_of_flight();
        self.window = MSS as u64;
        self.recover = None;
        self.repaired = self.high;
        self.duplicates = 0;
        self.timed = None;
        self.next = self.acked;
        self.deadline = None;
        self.transmit(now, out);
    }

    /// Handles the acknowledgement of new data.
    fn advance(&mut self, acked: u64, now: Duration, out: &mut Vec<TcpSegment>) {
        let fresh = acked - self.acked;
        self.acked = acked;
        self.next = self.next.max(acked);
        self.retries = 0;
        self.last = now;
        self.measure(now);
        let mss = MSS as u64;
        match self.recover {
            Some(recover) if acked < recover => {
                // A partial acknowledgement: the next gap is sent at once (RFC 6582 §3.2).
                self.window = self.window.saturating_sub(fresh).max(mss) + mss;
                self.resend(out);
            }
            Some(_) => {
                self.recover = None;
                self.duplicates = 0;
                self.window = self.threshold;
            }
            None => {
                self.duplicates = 0;
                let step = if self.window < self.threshold {
                    fresh.min(mss)
                } else {
                    mss * mss / self.window
                };
                self.window = self.window.saturating_add(step.max(1));
            }
        }
        self.deadline = (self.acked < self.next).then(|| now + self.rto);
    }

    /// Handles a duplicate acknowledgement: a segment is missing at the other end.
    fn duplicate(&mut self, out: &mut Vec<TcpSegment>) {
        self.duplicates += 1;
        if self.recover.is_some() {
            self.window = self.window.saturating_add(MSS as u64);
        } else if self.duplicates == 3 && self.acked >= self.repaired {
            self.threshold = self.half_of_flight();
            self.window = self.threshold + 3 * MSS as u64;
            self.recover = Some(self.high);
            self.resend(out);
        }
    }

    fn half_of_flight(&self) -> u64 {
        ((self.high - self.acked) / 2).max(2 * MSS as u64)
    }

    /// Sends the first unacknowledged segment again.
    fn resend(&mut self, out: &mut Vec<TcpSegment>) {
        self.timed = None;
        self.retransmissions += 1;
        let len = self.len_at(self.acked);
        out.push(self.segment(self.acked, len));
    }

    /// Measures a round trip, if the timed position was acknowledged (RFC 6298 §2).
    fn measure(&mut self, now: Duration) {
        let Some((place, sent)) = self.timed else { return };
        if self.acked < place {
            return;
        }
        self.timed = None;
        let trip = now.saturating_sub(sent);
        let shortest = self.shortest.map_or(trip, |shortest| shortest.min(trip));
        self.shortest = Some(shortest);
        let [minimum, maximum] = SLOW_START_DELAYS;
        if self.window < self.threshold && trip >= shortest + (shortest / 8).clamp(minimum, maximum)
        {
            // A queue is growing.
            self.threshold = self.window;
        }
        let (smooth, variation) = match self.smoothed {
            None => (trip, trip / 2),
            Some((smooth, variation)) => {
                ((smooth * 7 + trip) / 8, (variation * 3 + smooth.abs_diff(trip)) / 4)
            }
        };
        self.smoothed = Some((smooth, variation));
        self.rto = (smooth + variation * 4).clamp(MIN_RTO, MAX_RTO);
    }

    /// Sends what the windows and the goal allow.
    fn transmit(&mut self, now: Duration, out: &mut Vec<TcpSegment>) {
        loop {
            self.end = self.end.or(match self.goal {
                FlowGoal::Bytes(bytes) => Some(1 + bytes),
                FlowGoal::Until(until) => (now >= until).then_some(self.high.max(1)),
            });
            let limit = match self.state {
                FlowState::Opening => 1,
                _ => self.acked + self.window.min(self.peer_window),
            };
            let len = self.len_at(self.next);
            // A segment is not cut to the rest of a window, unless nothing else is in flight.
            let fits = self.next + len <= limit || self.next == self.acked;
            if len == 0 || !fits || self.state.is_over() {
                break;
            }
            out.push(self.segment(self.next, len));
            if self.next < self.high {
                self.retransmissions += 1;
            } else if self.timed.is_none() {
                self.timed = Some((self.next + len, now));
            }
            self.next += len;
            self.high = self.high.max(self.next);
            if self.state == FlowState::Open && self.end.is_some_and(|end| self.next > end) {
                self.state = FlowState::Closing;
            }
        }
        if self.deadline.is_none() && self.acked < self.next {
            self.deadline = Some(now + self.rto);
        }
    }

    /// Length of the segment at this position; 0 after the FIN.
    fn len_at(&self, place: u64) -> u64 {
        match self.end {
            _ if place == 0 => 1,
            Some(end) if place == end => 1,
            Some(end) => end.saturating_sub(place).min(MSS as u64),
            None => MSS as u64,
        }
    }

    fn segment(&self, place: u64, len: u64) -> TcpSegment {
        if place == 0 {
            let scale = Some(WINDOW_SHIFT);
            return TcpSegment { flags: SYN, scale, acknowledgement: 0, ..self.empty_segment(0) };
        }
        if self.end == Some(place) {
            return TcpSegment { flags: FIN | ACK, ..self.empty_segment(place) };
        }
        TcpSegment { len: len as usize, ..self.empty_segment(place) }
    }

    /// A segment without data.
    fn empty_segment(&self, place: u64) -> TcpSegment {
        let (from, to) = self.ports;
        TcpSegment {
            from,
            to,
            sequence: self.wire(place),
            acknowledgement: self.peer_isn.wrapping_add(1),
            flags: ACK,
            window: WINDOW_UNITS,
            scale: None,
            len: 0,
        }
    }

    fn wire(&self, place: u64) -> u32 {
        self.isn.wrapping_add(place as u32)
    }

    fn finish(&mut self, state: FlowState, now: Duration) {
        self.state = state;
        self.last = now;
        self.deadline = None;
    }
}
