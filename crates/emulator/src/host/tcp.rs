//! One end of a flow like TCP's: enough to measure what a path carries.
//!
//! # What it is
//! The handshake, a byte stream in one direction (from the end that opened), cumulative
//! acknowledgements, windows with scaling (RFC 7323), segments out of order kept, retransmission by
//! time (RFC 6298) and by three duplicate acknowledgements, slow start and congestion avoidance
//! (RFC 5681) with NewReno's recovery (RFC 6582), and the closing by FIN.
//!
//! # What it is not
//! It carries no data but zeros, and none back. There are no selective acknowledgements, no
//! timestamps, no delayed acknowledgements, no urgent data, no zero window (a receiver reads at
//! once), and no waiting state after the end: a segment that comes later is answered with a reset.
//!
//! Positions in the stream are 64-bit numbers: the SYN is 0, data begins at 1, the FIN is behind it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::wire::{ACK, FIN, RST, SYN, Segment};

/// Longest data of a segment, in bytes: what an Ethernet frame of the usual size has room for.
const MSS: usize = 1460;
/// What a receiver takes ahead of the first missing byte.
const WINDOW_BYTES: u64 = 1 << 20;
/// Both ends give their windows in units of 2^7 bytes.
const WINDOW_SHIFT: u8 = 7;
const WINDOW_UNITS: u16 = (WINDOW_BYTES >> WINDOW_SHIFT) as u16;
/// The first window of a sender, in segments (RFC 6928).
const INITIAL_WINDOW_SEGMENTS: u64 = 10;
/// Time until the first retransmission before a round trip was measured (RFC 6298 §2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// Shortest time until a retransmission: as Linux does it, less than RFC 6298's second.
const MIN_RTO: Duration = Duration::from_millis(200);
/// Longest time until a retransmission.
const MAX_RTO: Duration = Duration::from_secs(60);
/// So many retransmissions of the same segment, and the flow is given up.
const MAX_RETRIES: u32 = 8;
/// Gaps in what a receiver has; a segment that would make a further one is dropped.
const MAX_GAPS: usize = 256;

/// Where a flow stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowState {
    /// It waits for the answer to its SYN.
    Opening,
    /// Data goes.
    Open,
    /// All data was sent, and the FIN.
    Closing,
    /// All data has come over.
    Done,
    /// The other end refused or broke it.
    Reset,
    /// The other end has not answered any more.
    TimedOut,
}

impl FlowState {
    /// Whether nothing more will come of it.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, FlowState::Done | FlowState::Reset | FlowState::TimedOut)
    }
}

/// How much a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowGoal {
    /// So many bytes.
    Bytes(u64),
    /// As much as it can until this time of the network's clock.
    Until(Duration),
}

/// What became of a flow, as one of its ends sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// Where it stands.
    pub state: FlowState,
    /// Bytes that were acknowledged (at the sender), or that came in order (at the receiver).
    pub bytes: u64,
    /// Segments that were sent again.
    pub retransmissions: u64,
    /// When it began: the SYN was sent or received.
    pub began: Duration,
    /// When its bytes grew last, or it ended.
    pub last: Duration,
}

impl FlowReport {
    /// Bytes of the stream carried in a second, in bits; 0 if no time passed.
    #[must_use]
    pub fn bits_per_second(&self) -> f64 {
        let seconds = self.last.saturating_sub(self.began).as_secs_f64();
        if seconds > 0.0 { self.bytes as f64 * 8.0 / seconds } else { 0.0 }
    }
}

/// The end that sends.
pub(super) struct Sender {
    ports: (u16, u16),
    isn: u32,
    peer_isn: u32,
    state: FlowState,
    goal: FlowGoal,
    /// Where the stream ends, once that is known: the place of the FIN.
    end: Option<u64>,
    acked: u64,
    next: u64,
    /// The highest place that was ever sent.
    high: u64,
    peer_window: u64,
    peer_shift: u8,
    window: u64,
    threshold: u64,
    duplicates: u32,
    /// Fast recovery lasts until this is acknowledged.
    recover: Option<u64>,
    rto: Duration,
    smoothed: Option<(Duration, Duration)>,
    /// The place whose acknowledgement gives a round trip, and when it was sent.
    timed: Option<(u64, Duration)>,
    deadline: Option<Duration>,
    retries: u32,
    retransmissions: u64,
    began: Duration,
    last: Duration,
}

impl Sender {
    /// Opens a flow. `ports`: this end's and the other's.
    pub(super) fn open(
        ports: (u16, u16),
        isn: u32,
        goal: FlowGoal,
        now: Duration,
        out: &mut Vec<Segment>,
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

    pub(super) fn report(&self) -> FlowReport {
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

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    pub(super) fn receive(&mut self, segment: &Segment, now: Duration, out: &mut Vec<Segment>) {
        if self.state.is_over() {
            // The other end has missed the last acknowledgement.
            out.extend(reset(segment));
            return;
        }
        let acked =
            self.acked + u64::from(segment.acknowledgement.wrapping_sub(self.wire(self.acked)));
        // What acknowledges more than was sent, or less than was acknowledged, is of old.
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
            out.push(Segment {
                acknowledgement: self.peer_isn.wrapping_add(2),
                ..self.bare(self.next)
            });
            self.finish(FlowState::Done, now);
            return;
        }
        self.transmit(now, out);
    }

    /// Sends again what is overdue.
    pub(super) fn timer(&mut self, now: Duration, out: &mut Vec<Segment>) {
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
        self.duplicates = 0;
        self.timed = None;
        self.next = self.acked;
        self.deadline = None;
        self.transmit(now, out);
    }

    /// New data was acknowledged.
    fn advance(&mut self, acked: u64, now: Duration, out: &mut Vec<Segment>) {
        let fresh = acked - self.acked;
        self.acked = acked;
        self.next = self.next.max(acked);
        self.retries = 0;
        self.last = now;
        self.measure(now);
        let mss = MSS as u64;
        match self.recover {
            Some(recover) if acked < recover => {
                // A partial one: the next gap is sent at once (RFC 6582 §3.2).
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

    /// The same was acknowledged again: something is missing at the other end.
    fn duplicate(&mut self, out: &mut Vec<Segment>) {
        self.duplicates += 1;
        if self.recover.is_some() {
            self.window = self.window.saturating_add(MSS as u64);
        } else if self.duplicates == 3 {
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
    fn resend(&mut self, out: &mut Vec<Segment>) {
        self.timed = None;
        self.retransmissions += 1;
        let len = self.len_at(self.acked);
        out.push(self.segment(self.acked, len));
    }

    /// Takes a round trip, if the place that is timed was acknowledged (RFC 6298 §2).
    fn measure(&mut self, now: Duration) {
        let Some((place, sent)) = self.timed else { return };
        if self.acked < place {
            return;
        }
        self.timed = None;
        let trip = now.saturating_sub(sent);
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
    fn transmit(&mut self, now: Duration, out: &mut Vec<Segment>) {
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
            // A segment is not cut to what is left of a window, but if nothing else is on its way.
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

    /// How much of the stream a segment at this place takes; 0 behind the FIN.
    fn len_at(&self, place: u64) -> u64 {
        match self.end {
            _ if place == 0 => 1,
            Some(end) if place == end => 1,
            Some(end) => end.saturating_sub(place).min(MSS as u64),
            None => MSS as u64,
        }
    }

    fn segment(&self, place: u64, len: u64) -> Segment {
        if place == 0 {
            let scale = Some(WINDOW_SHIFT);
            return Segment { flags: SYN, scale, acknowledgement: 0, ..self.bare(0) };
        }
        if self.end == Some(place) {
            return Segment { flags: FIN | ACK, ..self.bare(place) };
        }
        Segment { len: len as usize, ..self.bare(place) }
    }

    /// A segment without data.
    fn bare(&self, place: u64) -> Segment {
        let (from, to) = self.ports;
        Segment {
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

/// The end that receives. It acknowledges every segment at once.
pub(super) struct Receiver {
    ports: (u16, u16),
    isn: u32,
    peer_isn: u32,
    state: FlowState,
    next: u64,
    /// Where the other's stream ends, when its FIN came.
    end: Option<u64>,
    /// What came too early: from, to.
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
    pub(super) fn open(syn: &Segment, isn: u32, now: Duration, out: &mut Vec<Segment>) -> Self {
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

    pub(super) fn report(&self) -> FlowReport {
        let fin = u64::from(self.end.is_some_and(|end| self.next > end));
        FlowReport {
            state: self.state,
            bytes: self.next - 1 - fin,
            retransmissions: self.retransmissions,
            began: self.began,
            last: self.last,
        }
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    pub(super) fn receive(&mut self, segment: &Segment, now: Duration, out: &mut Vec<Segment>) {
        if self.state.is_over() {
            return;
        }
        if segment.flags & RST != 0 {
            if segment.sequence == self.peer_isn.wrapping_add(self.next as u32) {
                // Behind its FIN the other end has forgotten the flow, and all has come over.
                let done = self.state == FlowState::Closing;
                self.finish(if done { FlowState::Done } else { FlowState::Reset }, now);
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
            self.settle();
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

    /// Sends its SYN or FIN again.
    pub(super) fn timer(&mut self, now: Duration, out: &mut Vec<Segment>) {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        if self.retries == MAX_RETRIES {
            // What was to come has come: that its end was not acknowledged loses nothing.
            let done = self.state == FlowState::Closing;
            self.finish(if done { FlowState::Done } else { FlowState::TimedOut }, now);
            return;
        }
        self.retries += 1;
        self.retransmissions += 1;
        self.rto = (self.rto * 2).min(MAX_RTO);
        self.deadline = Some(now + self.rto);
        out.push(self.answer());
    }

    fn take(&mut self, segment: &Segment, now: Duration) {
        // Places around the next one; what lies far behind it is of old.
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
            if self.early.len() < MAX_GAPS {
                let known = self.early.entry(from).or_insert(to);
                *known = to.max(*known);
            }
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

    fn settle(&mut self) {
        self.deadline = None;
        self.rto = INITIAL_RTO;
        self.retries = 0;
    }

    /// What this end says: its SYN, its acknowledgement, or its FIN.
    fn answer(&self) -> Segment {
        let (from, to) = self.ports;
        let (flags, place, window, scale) = match self.state {
            // The window of a SYN is not scaled.
            FlowState::Opening => (SYN | ACK, 0, u16::MAX, Some(WINDOW_SHIFT)),
            FlowState::Closing => (FIN | ACK, 1, WINDOW_UNITS, None),
            _ => (ACK, 1, WINDOW_UNITS, None),
        };
        Segment {
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

/// The answer to a segment of no flow (RFC 9293 §3.5.2). A reset is not answered.
pub(super) fn reset(segment: &Segment) -> Option<Segment> {
    if segment.flags & RST != 0 {
        return None;
    }
    let acked = segment.flags & ACK != 0;
    let counted = u32::from(segment.flags & SYN != 0) + u32::from(segment.flags & FIN != 0);
    Some(Segment {
        from: segment.to,
        to: segment.from,
        sequence: if acked { segment.acknowledgement } else { 0 },
        acknowledgement: segment.sequence.wrapping_add(segment.len as u32).wrapping_add(counted),
        flags: if acked { RST } else { RST | ACK },
        ..Segment::default()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const TRIP: Duration = Duration::from_millis(5);

    /// Two ends and a path between them that takes `TRIP` each way and drops what `lose` says, by
    /// the number of the segment. Those before 10 are of the handshake and the first data; later
    /// only what carries data is counted.
    struct Path {
        sender: Sender,
        receiver: Option<Receiver>,
        now: Duration,
        /// When, to the receiver?, what.
        flying: VecDeque<(Duration, bool, Segment)>,
        sent: u64,
    }

    impl Path {
        fn open(goal: FlowGoal) -> Path {
            let mut first = Vec::new();
            // Sequence numbers that soon begin again at 0.
            let sender =
                Sender::open((1000, 5001), u32::MAX - 5000, goal, Duration::ZERO, &mut first);
            let flying = first.into_iter().map(|s| (TRIP, true, s)).collect();
            Path { sender, receiver: None, now: Duration::ZERO, flying, sent: 0 }
        }

        fn run(&mut self, lose: impl Fn(u64) -> bool) {
            for _ in 0..1_000_000 {
                let timers =
                    [self.sender.deadline(), self.receiver.as_ref().and_then(Receiver::deadline)];
                let timer = timers.into_iter().flatten().min();
                let arrival = self.flying.front().map(|(at, ..)| *at);
                let Some(next) = timer.into_iter().chain(arrival).min() else { return };
                self.now = self.now.max(next);
                let now = self.now;
                let (mut there, mut back) = (Vec::new(), Vec::new());
                if arrival == Some(next) {
                    let (_, to_receiver, segment) = self.flying.pop_front().unwrap();
                    let counted = self.sent < 10 || segment.len > 0;
                    self.sent += u64::from(counted);
                    if counted && lose(self.sent) {
                        continue;
                    }
                    match (&mut self.receiver, to_receiver) {
                        (_, false) => self.sender.receive(&segment, now, &mut there),
                        (Some(receiver), true) => receiver.receive(&segment, now, &mut back),
                        (none, true) => *none = Some(Receiver::open(&segment, 77, now, &mut back)),
                    }
                } else {
                    self.sender.timer(now, &mut there);
                    if let Some(receiver) = &mut self.receiver {
                        receiver.timer(now, &mut back);
                    }
                }
                self.flying.extend(there.into_iter().map(|s| (now + TRIP, true, s)));
                self.flying.extend(back.into_iter().map(|s| (now + TRIP, false, s)));
            }
            panic!("the flow does not end");
        }

        fn reports(&self) -> [FlowReport; 2] {
            [self.sender.report(), self.receiver.as_ref().unwrap().report()]
        }
    }

    #[test]
    fn all_bytes_come_over_and_both_ends_know_it() {
        for bytes in [0, 1, 1460, 1461, 10_000, 5_000_000] {
            let mut path = Path::open(FlowGoal::Bytes(bytes));
            path.run(|_| false);
            for report in path.reports() {
                assert_eq!((report.state, report.bytes), (FlowState::Done, bytes));
                assert_eq!(report.retransmissions, 0);
            }
        }
    }

    #[test]
    fn a_flow_that_is_limited_by_time_fills_it_and_ends() {
        let mut path = Path::open(FlowGoal::Until(Duration::from_secs(1)));
        path.run(|_| false);
        let [sender, receiver] = path.reports();
        assert_eq!((sender.state, receiver.state), (FlowState::Done, FlowState::Done));
        assert_eq!(sender.bytes, receiver.bytes);
        assert!(sender.last >= Duration::from_secs(1));
        // A window of 1 MiB in each round trip of 10 ms, once it is open.
        assert!((60_000_000..105_000_000).contains(&sender.bytes), "{}", sender.bytes);
    }

    #[test]
    fn what_is_lost_is_sent_again() {
        for (what, lose) in [
            ("the SYN", (|n| n == 1) as fn(u64) -> bool),
            ("its answer", |n| n == 2),
            ("a data segment", |n| n == 5),
            ("three of them", |n| (100..103).contains(&n)),
            ("every tenth", |n| n % 10 == 0),
            ("for a while all", |n| (40..90).contains(&n)),
        ] {
            let mut path = Path::open(FlowGoal::Bytes(300_000));
            path.run(lose);
            let [sender, receiver] = path.reports();
            assert_eq!((sender.state, sender.bytes), (FlowState::Done, 300_000), "{what}");
            assert_eq!((receiver.state, receiver.bytes), (FlowState::Done, 300_000), "{what}");
            assert!(sender.retransmissions + receiver.retransmissions > 0, "{what}");
        }
    }

    #[test]
    fn one_loss_in_a_full_window_is_repaired_without_a_timeout() {
        let mut path = Path::open(FlowGoal::Bytes(1_000_000));
        path.run(|n| n == 100);
        let [sender, _] = path.reports();
        assert_eq!(sender.retransmissions, 1);
        assert!(path.now < MIN_RTO, "{:?}", path.now);
    }

    #[test]
    fn nobody_there_ends_it() {
        let mut path = Path::open(FlowGoal::Bytes(1));
        path.run(|_| true);
        assert_eq!(path.sender.report().state, FlowState::TimedOut);
        assert_eq!(path.sent, u64::from(MAX_RETRIES) + 1);
    }

    #[test]
    fn a_reset_ends_it() {
        let mut syn = Vec::new();
        let goal = FlowGoal::Bytes(9);
        let mut sender = Sender::open((1, 2), 5, goal, Duration::ZERO, &mut syn);
        let mut stale = reset(&syn[0]).unwrap();
        stale.acknowledgement += 1;
        sender.receive(&stale, TRIP, &mut Vec::new());
        assert_eq!(
            sender.report().state,
            FlowState::Opening,
            "it acknowledges what was never sent"
        );
        sender.receive(&reset(&syn[0]).unwrap(), TRIP, &mut Vec::new());
        assert_eq!(sender.report().state, FlowState::Reset);
        assert_eq!(reset(&reset(&syn[0]).unwrap()), None);
    }
}
