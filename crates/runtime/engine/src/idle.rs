//! How a worker waits: it polls repeatedly for a short time if that pays, and sleeps otherwise.
//!
//! A wake-up takes longer than the answer to a packet. If the next packet comes within [`SPIN`], a
//! worker that is still polling answers it sooner. Polling in vain takes CPU time from others. So a
//! worker stops polling until its sleeps show that it would pay.

use std::time::Duration;

/// How a worker waits when it has nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdleMode {
    /// Polls for at most 100 microseconds, if that paid recently, then sleeps.
    #[default]
    Adaptive,
    /// Sleeps at once.
    Sleep,
    /// Never sleeps: lowest delay, at the cost of a whole core for each worker.
    Spin,
}

/// Maximum time that an adaptive worker polls before it sleeps: a few times the cost of sleep and
/// wake-up.
pub(crate) const SPIN: Duration = Duration::from_micros(100);

/// A sleep of at most this time would have been avoided by polling: the event came within [`SPIN`],
/// and the wake-up took the rest.
const SHORT_SLEEP: Duration = Duration::from_micros(200);

/// Number of unsuccessful polls, not offset by successful ones, after which the worker stops
/// polling.
const MISSES: u32 = 8;

/// Number of successful polls that offset an unsuccessful one. Success saves a few microseconds,
/// failure costs [`SPIN`]: a lower number would not be worth it. A worker with ten thousand idle
/// switches, with 2,000 echoes a second, must not poll for them.
const HITS_FOR_MISS: u32 = 3;

/// Number of successful polls of a trial, with all failures offset, after which earlier
/// unsuccessful trials are forgotten.
const PROOF: u32 = 64;

/// Number of short sleeps before a worker tries to poll again. It doubles after each unsuccessful
/// trial.
const FIRST_RETRY_SLEEPS: u32 = 8;

/// Maximum number of short sleeps before the next trial. A worker that shares its core with its
/// peer sleeps shortly but always polls in vain: it then spends [`MISSES`] times [`SPIN`] in this
/// many waits, about a hundredth of its time.
const MOST_RETRY_SLEEPS: u32 = 4096;

/// Statistics of a worker's waits.
#[derive(Debug)]
pub(crate) struct WaitStatistics {
    idle: IdleMode,
    /// Cost of recent unsuccessful polls that is not offset.
    losses: u32,
    /// Number of successful polls of this trial, with all failures offset.
    gains: u32,
    /// Number of short sleeps until the next trial; 0 while it polls.
    retry_in: u32,
    /// Next value of `retry_in`, if the present trial is unsuccessful.
    next_retry: u32,
}

impl WaitStatistics {
    pub(crate) fn new(idle: IdleMode) -> Self {
        // No statistics yet: the first short sleeps decide.
        WaitStatistics {
            idle,
            losses: 0,
            gains: 0,
            retry_in: FIRST_RETRY_SLEEPS,
            next_retry: FIRST_RETRY_SLEEPS,
        }
    }

    /// Time to poll before sleeping; `None`: never sleep.
    pub(crate) fn spin(&self) -> Option<Duration> {
        match self.idle {
            IdleMode::Spin => None,
            IdleMode::Adaptive if self.retry_in == 0 => Some(SPIN),
            IdleMode::Adaptive | IdleMode::Sleep => Some(Duration::ZERO),
        }
    }

    /// Notes whether polling was successful.
    pub(crate) fn record_poll(&mut self, paid: bool) {
        if paid {
            self.losses = self.losses.saturating_sub(1);
            self.gains = self.gains.saturating_add(u32::from(self.losses == 0));
            if self.gains >= PROOF {
                self.next_retry = FIRST_RETRY_SLEEPS;
            }
            return;
        }
        self.losses += HITS_FOR_MISS;
        if self.losses >= MISSES * HITS_FOR_MISS {
            (self.losses, self.gains) = (0, 0);
            self.retry_in = self.next_retry;
            self.next_retry = (self.next_retry * 2).min(MOST_RETRY_SLEEPS);
        }
    }

    /// Notes a sleep of this length, without polling, until an event.
    pub(crate) fn slept(&mut self, time: Duration) {
        if time <= SHORT_SLEEP {
            self.retry_in = self.retry_in.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates waits: events come after `after` if the worker sleeps, and polling succeeds or
    /// not. Returns in how many waits it polled.
    fn waits(waits: &mut WaitStatistics, count: u32, after: Duration, asking_pays: bool) -> u32 {
        let mut asked = 0;
        for _ in 0..count {
            if waits.spin() == Some(Duration::ZERO) {
                waits.slept(after);
            } else {
                asked += 1;
                waits.record_poll(asking_pays);
            }
        }
        asked
    }

    #[test]
    fn a_worker_asks_where_its_sleeps_are_short_and_asking_pays() {
        let mut adaptive = WaitStatistics::new(IdleMode::Adaptive);
        assert_eq!(waits(&mut adaptive, 1000, SHORT_SLEEP, true), 1000 - FIRST_RETRY_SLEEPS);
        assert_eq!(adaptive.spin(), Some(SPIN));
    }

    #[test]
    fn a_worker_for_which_asking_pays_now_and_then_only_stops_asking() {
        let mut adaptive = WaitStatistics::new(IdleMode::Adaptive);
        waits(&mut adaptive, FIRST_RETRY_SLEEPS, SHORT_SLEEP, true);
        for nth in 0..100 {
            adaptive.record_poll(nth % 2 == 0);
        }
        assert_eq!(adaptive.spin(), Some(Duration::ZERO));
        // It tries again less and less often.
        let mut asked = 0;
        for nth in 0..1_000_000 {
            match adaptive.spin() {
                Some(Duration::ZERO) => adaptive.slept(SHORT_SLEEP),
                _ => {
                    asked += 1;
                    adaptive.record_poll(nth % 3 == 0);
                }
            }
        }
        assert!(asked <= 1_000_000 / 200, "{asked} of a million");
    }

    #[test]
    fn a_worker_for_which_asking_pays_nearly_always_goes_on_asking() {
        let mut adaptive = WaitStatistics::new(IdleMode::Adaptive);
        waits(&mut adaptive, FIRST_RETRY_SLEEPS, SHORT_SLEEP, true);
        for nth in 0..10_000 {
            adaptive.record_poll(nth % (HITS_FOR_MISS + 2) != 0);
        }
        assert_eq!(adaptive.spin(), Some(SPIN));
    }

    #[test]
    fn a_worker_with_long_sleeps_never_asks() {
        let mut adaptive = WaitStatistics::new(IdleMode::Adaptive);
        assert_eq!(waits(&mut adaptive, 100_000, Duration::from_millis(50), true), 0);
    }

    #[test]
    fn a_worker_that_asks_in_vain_asks_ever_more_seldom() {
        let mut adaptive = WaitStatistics::new(IdleMode::Adaptive);
        let first = waits(&mut adaptive, 1000, SHORT_SLEEP, false);
        assert!(first <= 1000 / 8, "{first} of the first 1000");
        waits(&mut adaptive, 100_000, SHORT_SLEEP, false);
        let later = waits(&mut adaptive, 1_000_000, SHORT_SLEEP, false);
        assert!(later <= 1_000_000 / 500, "{later} of a million later");
    }

    #[test]
    fn a_worker_stops_asking_soon_after_its_load_has_gone_and_asks_again_when_it_is_back() {
        let mut adaptive = WaitStatistics::new(IdleMode::Adaptive);
        waits(&mut adaptive, 1000, SHORT_SLEEP, true);
        let long = Duration::from_secs(1);
        assert_eq!(waits(&mut adaptive, 1000, long, false), MISSES);
        let asked = waits(&mut adaptive, 1000, SHORT_SLEEP, true);
        assert_eq!(asked, 1000 - FIRST_RETRY_SLEEPS);
    }

    #[test]
    fn the_other_ways_of_waiting_do_not_adapt() {
        for (idle, spin) in [(IdleMode::Sleep, Some(Duration::ZERO)), (IdleMode::Spin, None)] {
            let mut fixed = WaitStatistics::new(idle);
            for paid in [true, false] {
                fixed.record_poll(paid);
                fixed.slept(SHORT_SLEEP);
                assert_eq!(fixed.spin(), spin);
            }
        }
    }
}
