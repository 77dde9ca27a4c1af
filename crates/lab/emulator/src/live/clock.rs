//! The clock of a network that follows real time.

use std::time::{Duration, Instant};

/// Maximum time that the network advances before sockets are served again.
const STEP: Duration = Duration::from_millis(5);

/// Maximum lag of the network; beyond it, time is skipped. Otherwise an overloaded network would
/// lag more and more, and would handle messages minutes late.
const MAX_LAG: Duration = Duration::from_millis(100);

/// Follows real time, and pauses when the machine is too slow.
pub(super) struct LiveClock {
    start: Instant,
    slipped: Duration,
}

impl LiveClock {
    pub(super) fn start() -> Self {
        LiveClock { start: Instant::now(), slipped: Duration::ZERO }
    }

    /// Real time since the start.
    pub(super) fn real(&self) -> Duration {
        self.start.elapsed()
    }

    /// The real time that the network has skipped.
    pub(super) fn slipped(&self) -> Duration {
        self.slipped
    }

    /// The time that the network should have.
    pub(super) fn now(&self) -> Duration {
        self.real().saturating_sub(self.slipped)
    }

    /// How far a network at time `at` should advance in one step, and whether it is then up to
    /// date.
    pub(super) fn step(&mut self, at: Duration) -> (Duration, bool) {
        let now = self.now();
        let lag = now.saturating_sub(at);
        if lag > MAX_LAG {
            self.slipped += lag - MAX_LAG;
        }
        match at + STEP {
            until if until < now => (until, false),
            _ => (now.max(at), true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(ago: Duration) -> LiveClock {
        LiveClock { start: Instant::now().checked_sub(ago).unwrap(), slipped: Duration::ZERO }
    }

    #[test]
    fn a_network_that_is_up_to_date_goes_to_now() {
        let mut clock = started(Duration::from_secs(10));
        let at = clock.now();
        let (until, current) = clock.step(at);
        assert!(current && until >= at && clock.slipped().is_zero());
    }

    #[test]
    fn one_that_is_behind_goes_on_in_steps() {
        let mut clock = started(Duration::from_secs(10));
        let at = clock.now() - MAX_LAG / 2;
        assert_eq!(clock.step(at), (at + STEP, false));
        assert_eq!(clock.slipped(), Duration::ZERO);
    }

    #[test]
    fn one_that_cannot_catch_up_leaves_time_out() {
        let mut clock = started(Duration::from_secs(10));
        let (until, _) = clock.step(Duration::from_secs(1));
        assert_eq!(until, Duration::from_secs(1) + STEP);
        assert!(clock.slipped() > Duration::from_secs(8));
        assert!(clock.now() < Duration::from_secs(2));
    }
}
