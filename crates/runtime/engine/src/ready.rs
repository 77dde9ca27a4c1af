//! Which switches of a worker are read next.
//!
//! Switches whose bytes have just come are read before those with more bytes than one read takes
//! (the "new" and "old" flows of FQ-CoDel, RFC 8290 §4.1). So an echo or a change of a port of one
//! switch never waits for the floods of others, however many of them there are. A round ends after
//! [`round_time`], so the poller reports soon whose bytes have come meanwhile. The second list gets
//! at least half of the time, so no switch starves.
//!
//! If one read takes long, because apps take long, reads get shorter ([`TurnLength`]). If even so a
//! switch is read so slowly that its bytes would wait for seconds, it gets only a share of its
//! packet-ins through ([`Backlog`]).

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

use bellrock_worker::ConnectionKey;

/// Time of a round for switches with more bytes than one read takes, for each ready switch. The
/// poller takes some 0.1 microseconds for each, once a round, so it costs some two percent.
const ROUND_OF_SWITCH: Duration = Duration::from_micros(5);

/// Minimum and maximum of that time.
const ROUND: RangeInclusive<Duration> = Duration::from_micros(500)..=Duration::from_millis(4);

/// Maximum time that one read should take, with all that apps do. Longer ones halve the next reads.
const LONG_TURN: Duration = Duration::from_millis(1);

/// Shorter reads double the next ones.
const SHORT_TURN: Duration = Duration::from_micros(250);

/// Minimum bytes of a read: some forty packet-ins.
const MIN_TURN_BYTES: usize = 4 * 1024;

/// Time without a break for which a switch must have had more bytes than were read, before its rate
/// counts.
const BACKLOG_WINDOW: Duration = Duration::from_secs(1);

/// Bytes of a switch that wait in the kernel: the receive buffer of a socket.
const WAITING_BYTES: u64 = 256 * 1024;

/// Minimum time of a round with this number of ready switches, for those with more bytes than a
/// read takes.
pub(crate) fn round_time(switches: usize) -> Duration {
    let time = ROUND_OF_SWITCH.saturating_mul(u32::try_from(switches).unwrap_or(u32::MAX));
    time.clamp(*ROUND.start(), *ROUND.end())
}

/// The switches to read.
#[derive(Debug, Default)]
pub(crate) struct ReadyList {
    /// Those whose bytes have just come, or that were silent before.
    fresh: VecDeque<ConnectionKey>,
    /// Those that had more bytes than their last read took.
    backlogged: VecDeque<ConnectionKey>,
}

impl ReadyList {
    pub(crate) fn push_fresh(&mut self, key: ConnectionKey) {
        self.fresh.push_back(key);
    }

    pub(crate) fn push_backlogged(&mut self, key: ConnectionKey) {
        self.backlogged.push_back(key);
    }

    /// Number of fresh switches, and of all.
    pub(crate) fn lens(&self) -> (usize, usize) {
        (self.fresh.len(), self.fresh.len() + self.backlogged.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.backlogged.is_empty()
    }

    pub(crate) fn pop_fresh(&mut self) -> Option<ConnectionKey> {
        self.fresh.pop_front()
    }

    pub(crate) fn pop_backlogged(&mut self) -> Option<ConnectionKey> {
        self.backlogged.pop_front()
    }
}

/// Maximum bytes of a read, adapted to the time that reads take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnLength {
    bytes: usize,
    max: usize,
}

impl TurnLength {
    pub(crate) fn new(max: usize) -> Self {
        TurnLength { bytes: max, max }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adapts it to the mean time of some turns.
    pub(crate) fn record(&mut self, turns: u32, time: Duration) {
        let Some(mean) = time.checked_div(turns) else { return };
        if mean > LONG_TURN {
            self.bytes = (self.bytes / 2).max(MIN_TURN_BYTES.min(self.max));
        } else if mean < SHORT_TURN {
            self.bytes = (self.bytes * 2).min(self.max);
        }
    }
}

/// How fast a switch is read that always has more bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backlog {
    since: Duration,
    bytes: u64,
    is_slow: bool,
}

impl Backlog {
    pub(crate) fn new(now: Duration) -> Self {
        Backlog { since: now, bytes: 0, is_slow: false }
    }

    /// Counts bytes that were read. There are still more.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Whether its bytes wait for longer than [`BACKLOG_WINDOW`]: in that time fewer were read than
    /// the kernel holds.
    pub(crate) fn is_slow(&mut self, now: Duration) -> bool {
        let waited = now.saturating_sub(self.since);
        if waited >= BACKLOG_WINDOW {
            let windows = waited.as_millis() / BACKLOG_WINDOW.as_millis();
            let is_slow = u128::from(self.bytes) < u128::from(WAITING_BYTES) * windows;
            *self = Backlog { since: now, bytes: 0, is_slow };
        }
        self.is_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_get_shorter_while_they_take_long_and_longer_again_within_bounds() {
        let mut turn = TurnLength::new(128 * 1024);
        turn.record(0, Duration::from_secs(9));
        assert_eq!(turn.bytes(), 128 * 1024);
        turn.record(2, Duration::from_millis(3));
        assert_eq!(turn.bytes(), 64 * 1024);
        turn.record(1, Duration::from_micros(500));
        assert_eq!(turn.bytes(), 64 * 1024);
        (0..20).for_each(|_| turn.record(1, Duration::from_secs(1)));
        assert_eq!(turn.bytes(), MIN_TURN_BYTES);
        (0..20).for_each(|_| turn.record(64, Duration::from_millis(6)));
        assert_eq!(turn.bytes(), 128 * 1024);
    }

    #[test]
    fn rounds_are_short_with_few_switches_and_never_long() {
        let ms = |switches| round_time(switches).as_micros() as f64 / 1000.0;
        assert_eq!([0, 1, 100, 400, 100_000].map(ms), [0.5, 0.5, 0.5, 2.0, 4.0]);
    }

    #[test]
    fn a_switch_is_slow_if_less_than_a_socket_holds_is_read_of_it_in_a_second() {
        let s = Duration::from_secs;
        let mut backlog = Backlog::new(s(10));
        backlog.add(WAITING_BYTES as usize - 1);
        assert!(!backlog.is_slow(s(11) - Duration::from_millis(1)), "not for long");
        assert!(backlog.is_slow(s(11)));
        backlog.add(WAITING_BYTES as usize);
        assert!(backlog.is_slow(s(11) + Duration::from_millis(999)), "until its second is over");
        assert!(!backlog.is_slow(s(12)));
        backlog.add(2 * WAITING_BYTES as usize);
        assert!(backlog.is_slow(s(15)), "two windows' worth in three");
    }
}
