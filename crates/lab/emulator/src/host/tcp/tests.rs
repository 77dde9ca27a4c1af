//! Two ends, and a path between them that drops chosen segments.

use std::collections::VecDeque;

use super::*;
use crate::host::tcp::sender::MIN_RTO;

const TRIP: Duration = Duration::from_millis(5);

/// Two ends and a path between them. The path takes `TRIP` each way and drops the segments whose
/// number `lose` selects. The numbers count the first 10 segments (the handshake and the first
/// data), then only segments with data.
struct Path {
    sender: Sender,
    receiver: Option<Receiver>,
    now: Duration,
    /// Time of arrival, whether it goes to the receiver, segment.
    flying: VecDeque<(Duration, bool, TcpSegment)>,
    sent: u64,
}

impl Path {
    fn open(goal: FlowGoal) -> Path {
        let mut first = Vec::new();
        // Sequence numbers that soon wrap to 0.
        let sender = Sender::open((1000, 5001), u32::MAX - 5000, goal, Duration::ZERO, &mut first);
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
    // A window of 1 MiB in each round trip of 10 ms, once the window is open.
    assert!((60_000_000..105_000_000).contains(&sender.bytes), "{}", sender.bytes);
}

#[test]
fn lost_segments_are_sent_again() {
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
fn all_that_comes_behind_one_loss_is_kept() {
    // Some 700 segments are in flight.
    let mut path = Path::open(FlowGoal::Bytes(3_000_000));
    path.run(|n| n == 700);
    let [sender, receiver] = path.reports();
    assert_eq!((sender.retransmissions, receiver.bytes), (1, 3_000_000));
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
    assert_eq!(sender.report().state, FlowState::Opening, "it acknowledges what was never sent");
    sender.receive(&reset(&syn[0]).unwrap(), TRIP, &mut Vec::new());
    assert_eq!(sender.report().state, FlowState::Reset);
    assert_eq!(reset(&reset(&syn[0]).unwrap()), None);
}
