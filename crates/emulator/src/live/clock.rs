//! The network's clock, when it follows the real one.

use std::time::{Duration, Instant};

/// How far the network goes on before sockets are looked after again.
const STEP: Duration = Duration::from_millis(5);

/// How far the network may be behind before it gives up catching up. A network that is more than the
/// machine can carry would else fall behind further and further, and what is said to it now would
/// happen minutes later.
const MAX_LAG: Duration = Duration::from_millis(100);

/// Follows real time; where the machine is too slow, it stands still meanwhile.
pub(super) struct Clock {
    start: Instant,
    slipped: Duration,
}

impl Clock {
    pub(super) fn start() -> Self {
        Clock { start: Instant::now(), slipped: Duration::ZERO }
    }

    /// Real time since the start.
    pub(super) fn real(&self) -> Duration {
        self.start.elapsed()
    }

    /// How much real time the network has left out.
    pub(super) fn slipped(&self) -> Duration {
        self.slipped
    }

    /// When the network should be now, if it could do all at once.
    pub(super) fn now(&self) -> Duration {
        self.real().saturating_sub(self.slipped)
    }

    /// How far a network that is at `at` should go on in one step, and whether it is up to date then.
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

    fn started(ago: Duration) -> Clock {
        Clock { start: Instant::now().checked_sub(ago).unwrap(), slipped: Duration::ZERO }
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
