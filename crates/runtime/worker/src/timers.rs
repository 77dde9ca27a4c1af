//! Timers of connections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::settings::TIMER_GRAIN;
use crate::transport::ConnectionKey;

/// The timers of all connections. Only the earliest timer of a connection counts. An entry that an
/// earlier one has overtaken stays until its time, and is then ignored.
#[derive(Debug, Default)]
pub(crate) struct ConnectionTimers(BinaryHeap<Reverse<(Duration, ConnectionKey, u64)>>);

impl ConnectionTimers {
    /// Sets a timer for `at`, unless an earlier one is set (`current`). Returns the timer that
    /// counts from now on.
    pub(crate) fn set(
        &mut self,
        at: Duration,
        key: ConnectionKey,
        serial: u64,
        current: Option<Duration>,
    ) -> Option<Duration> {
        let at = round_up(at);
        if current.is_some_and(|current| current <= at) {
            return current;
        }
        self.0.push(Reverse((at, key, serial)));
        Some(at)
    }

    /// Takes the next timer that is due, with its connection.
    pub(crate) fn due(&mut self, now: Duration) -> Option<(Duration, ConnectionKey, u64)> {
        let Reverse((at, key, serial)) = *self.0.peek()?;
        if at > now {
            return None;
        }
        self.0.pop();
        Some((at, key, serial))
    }

    /// Time of the next timer.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.0.peek().map(|Reverse((at, ..))| *at)
    }
}

/// Rounds up to the next multiple of the timer grain. Never down, not by a nanosecond: a timer
/// would be set again and be due at once, for ever.
fn round_up(at: Duration) -> Duration {
    Duration::from_nanos((at.as_nanos() as u64).next_multiple_of(TIMER_GRAIN.as_nanos() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_in_order_and_never_early() {
        let mut timers = ConnectionTimers::default();
        let ms = Duration::from_millis;
        assert_eq!(timers.set(ms(120), 1, 10, None), Some(ms(150)));
        assert_eq!(timers.set(ms(101), 2, 20, None), Some(ms(150)));
        assert_eq!(timers.set(ms(50), 3, 30, None), Some(ms(50)));
        assert_eq!(timers.next(), Some(ms(50)));
        assert_eq!(timers.due(ms(49)), None);
        assert_eq!(timers.due(ms(50)), Some((ms(50), 3, 30)));
        assert_eq!(timers.next(), Some(ms(150)));
        assert_eq!(timers.due(ms(150)), Some((ms(150), 1, 10)));
        assert_eq!(timers.due(ms(150)), Some((ms(150), 2, 20)));
        assert_eq!(timers.due(ms(1000)), None);
        let just_after = ms(100) + Duration::from_nanos(1);
        assert_eq!(timers.set(just_after, 1, 10, None), Some(ms(150)));
    }

    #[test]
    fn a_timer_that_changes_nothing_takes_no_room() {
        let mut timers = ConnectionTimers::default();
        let ms = Duration::from_millis;
        let current = timers.set(ms(100), 1, 10, None);
        for at in 100..1000 {
            assert_eq!(timers.set(ms(at), 1, 10, current), current);
        }
        assert_eq!(timers.0.len(), 1);
        assert_eq!(timers.set(ms(50), 1, 10, current), Some(ms(50)));
    }
}
