//! Timers of connections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::{Connections, EndCause, Session, User, WorkerOf};
use crate::settings::TIMER_GRAIN;
use crate::transport::{ConnectionKey, Transport};

/// The timers of all connections. Only the earliest timer of a connection counts. An entry that an
/// earlier one has overtaken stays until its time, and is then ignored.
#[derive(Debug, Default)]
pub(super) struct ConnectionTimers(BinaryHeap<Reverse<(Duration, ConnectionKey, u64)>>);

impl ConnectionTimers {
    /// Sets a timer for `at`, unless an earlier one is set (`current`). Returns the timer that
    /// counts from now on.
    fn set(
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
    pub(super) fn due(&mut self, now: Duration) -> Option<(Duration, ConnectionKey, u64)> {
        let Reverse((at, key, serial)) = *self.0.peek()?;
        if at > now {
            return None;
        }
        self.0.pop();
        Some((at, key, serial))
    }

    /// Time of the next timer.
    pub(super) fn next(&self) -> Option<Duration> {
        self.0.peek().map(|Reverse((at, ..))| *at)
    }
}

impl<U: User> Connections<U> {
    /// Sets the timer of a connection to the earliest time that it waits for.
    pub(crate) fn set_timer(&mut self, key: ConnectionKey) {
        let Some(connection) = self.slab.get_mut(key) else { return };
        let claim = connection.claim.as_ref().map(|claim| claim.deadline);
        let challenge = connection.challenge.as_ref().map(|challenge| challenge.deadline);
        let times = [U::next_time(connection), claim, challenge];
        let at = times.into_iter().flatten().fold(connection.session.deadline(), Duration::min);
        connection.timer = self.timers.set(at, key, connection.serial, connection.timer);
    }
}

impl<U: User> WorkerOf<U> {
    /// Does what is due for a connection.
    pub(super) fn timer<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.carry.is_empty() {
            connection.carry = Vec::new();
        }
        if connection.session.deadline() <= now
            && (connection.is_paused || transport.has_unread(key))
        {
            // An overloaded worker must not take a switch for dead whose bytes it has not read.
            connection.session.received(now);
        }
        match connection.session.timeout(now, &mut self.out) {
            Err(close) => return self.close(key, EndCause::Session(close), now, transport),
            Ok(Some(switch)) => return self.identified(key, switch, now, transport),
            Ok(None) => {}
        }
        if connection.challenge.as_ref().is_some_and(|challenge| challenge.deadline <= now) {
            self.counters.duplicates_replaced.add(1);
            return self.close(key, EndCause::Replaced, now, transport);
        }
        match connection.claim.as_ref().filter(|claim| claim.deadline <= now) {
            Some(claim) => {
                let dpid = claim.info.dpid;
                self.refuse_duplicate(key, dpid, now, transport);
            }
            None => U::stage_timer(self, key, now, transport),
        }
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
