//! How a worker waits: it asks its poller again and again for a moment where that pays, and sleeps
//! otherwise.
//!
//! To be woken takes longer than to answer a packet. A worker whose next packet comes within
//! [`SPIN`] answers it sooner if it has not gone to sleep. A worker that asks in vain takes time
//! from others, and so it stops asking until its own sleeps show that it would pay.

use std::time::Duration;

/// How a worker waits when it has nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// It asks for at most 100 microseconds, where asking has paid lately, and sleeps then.
    #[default]
    Adaptive,
    /// It sleeps at once.
    Sleep,
    /// It never sleeps: least delay, and a whole core for each worker.
    Spin,
}

/// The longest time that an adaptive worker asks before it sleeps: a few times what it takes to be
/// put to sleep and woken.
pub(crate) const SPIN: Duration = Duration::from_micros(100);

/// A sleep that was no longer than this would have been none with asking: what came, came within
/// [`SPIN`], and the wake-up took the rest.
const SHORT_SLEEP: Duration = Duration::from_micros(200);

/// Waits in which asking brought nothing, beyond what others make up for, after which the worker asks no
/// more.
const MISSES: u32 = 8;

/// Waits in which asking paid that make up for one in which it did not. Something that pays saves a few
/// microseconds, and what does not costs [`SPIN`]: less than so many would not be worth it. A worker
/// with ten thousand idle switches, whose echoes come 2,000 a second, is not to ask for them.
const HITS_FOR_MISS: u32 = 3;

/// Waits of a trial in which asking paid, with nothing left to make up for, after which trials that were
/// in vain are forgotten.
const PROOF: u32 = 64;

/// Short sleeps after which a worker that asked in vain tries again; twice as many after each trial
/// that was in vain too.
const FIRST_RETRY_SLEEPS: u32 = 8;

/// Short sleeps before the next trial at most. A worker that shares its core with whoever sends to
/// it sleeps shortly and asks in vain for ever: then it spends [`MISSES`] times [`SPIN`] in each so
/// many waits, about a hundredth of its time.
const MOST_RETRY_SLEEPS: u32 = 4096;

/// What a worker has learnt about its waits.
#[derive(Debug)]
pub(crate) struct Waits {
    idle: Idle,
    /// What asking in vain has cost lately, in waits in which asking pays.
    losses: u32,
    /// Waits of this trial in which asking paid, with nothing left to make up for.
    gains: u32,
    /// Short sleeps until it tries again; 0 while it asks.
    retry_in: u32,
    /// What `retry_in` will be when the present trial is in vain.
    next_retry: u32,
}

impl Waits {
    pub(crate) fn new(idle: Idle) -> Self {
        // It has nothing to go by yet: the first short sleeps tell.
        Waits {
            idle,
            losses: 0,
            gains: 0,
            retry_in: FIRST_RETRY_SLEEPS,
            next_retry: FIRST_RETRY_SLEEPS,
        }
    }

    /// How long to ask before sleeping; `None`: never sleep.
    pub(crate) fn spin(&self) -> Option<Duration> {
        match self.idle {
            Idle::Spin => None,
            Idle::Adaptive if self.retry_in == 0 => Some(SPIN),
            Idle::Adaptive | Idle::Sleep => Some(Duration::ZERO),
        }
    }

    /// Asking brought something, or did not.
    pub(crate) fn asked(&mut self, paid: bool) {
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

    /// It has slept for so long, without asking, until something came.
    pub(crate) fn slept(&mut self, time: Duration) {
        if time <= SHORT_SLEEP {
            self.retry_in = self.retry_in.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits in which something comes after `after` each time, as long as nothing is asked, and
    /// `asking_pays` or not. Returns in how many of them it was asked.
    fn waits(waits: &mut Waits, count: u32, after: Duration, asking_pays: bool) -> u32 {
        let mut asked = 0;
        for _ in 0..count {
            if waits.spin() == Some(Duration::ZERO) {
                waits.slept(after);
            } else {
                asked += 1;
                waits.asked(asking_pays);
            }
        }
        asked
    }

    #[test]
    fn a_worker_asks_where_its_sleeps_are_short_and_asking_pays() {
        let mut adaptive = Waits::new(Idle::Adaptive);
        assert_eq!(waits(&mut adaptive, 1000, SHORT_SLEEP, true), 1000 - FIRST_RETRY_SLEEPS);
        assert_eq!(adaptive.spin(), Some(SPIN));
    }

    #[test]
    fn a_worker_for_which_asking_pays_now_and_then_only_stops_asking() {
        let mut adaptive = Waits::new(Idle::Adaptive);
        waits(&mut adaptive, FIRST_RETRY_SLEEPS, SHORT_SLEEP, true);
        for nth in 0..100 {
            adaptive.asked(nth % 2 == 0);
        }
        assert_eq!(adaptive.spin(), Some(Duration::ZERO));
        // And it tries again ever more seldom.
        let mut asked = 0;
        for nth in 0..1_000_000 {
            match adaptive.spin() {
                Some(Duration::ZERO) => adaptive.slept(SHORT_SLEEP),
                _ => {
                    asked += 1;
                    adaptive.asked(nth % 3 == 0);
                }
            }
        }
        assert!(asked <= 1_000_000 / 200, "{asked} of a million");
    }

    #[test]
    fn a_worker_for_which_asking_pays_nearly_always_goes_on_asking() {
        let mut adaptive = Waits::new(Idle::Adaptive);
        waits(&mut adaptive, FIRST_RETRY_SLEEPS, SHORT_SLEEP, true);
        for nth in 0..10_000 {
            adaptive.asked(nth % (HITS_FOR_MISS + 2) != 0);
        }
        assert_eq!(adaptive.spin(), Some(SPIN));
    }

    #[test]
    fn a_worker_with_long_sleeps_never_asks() {
        let mut adaptive = Waits::new(Idle::Adaptive);
        assert_eq!(waits(&mut adaptive, 100_000, Duration::from_millis(50), true), 0);
    }

    #[test]
    fn a_worker_that_asks_in_vain_asks_ever_more_seldom() {
        let mut adaptive = Waits::new(Idle::Adaptive);
        let first = waits(&mut adaptive, 1000, SHORT_SLEEP, false);
        assert!(first <= 1000 / 8, "{first} of the first 1000");
        waits(&mut adaptive, 100_000, SHORT_SLEEP, false);
        let later = waits(&mut adaptive, 1_000_000, SHORT_SLEEP, false);
        assert!(later <= 1_000_000 / 500, "{later} of a million later");
    }

    #[test]
    fn a_worker_stops_asking_soon_after_its_load_has_gone_and_asks_again_when_it_is_back() {
        let mut adaptive = Waits::new(Idle::Adaptive);
        waits(&mut adaptive, 1000, SHORT_SLEEP, true);
        let long = Duration::from_secs(1);
        assert_eq!(waits(&mut adaptive, 1000, long, false), MISSES);
        let asked = waits(&mut adaptive, 1000, SHORT_SLEEP, true);
        assert_eq!(asked, 1000 - FIRST_RETRY_SLEEPS);
    }

    #[test]
    fn the_other_ways_of_waiting_do_not_adapt() {
        for (idle, spin) in [(Idle::Sleep, Some(Duration::ZERO)), (Idle::Spin, None)] {
            let mut fixed = Waits::new(idle);
            for paid in [true, false] {
                fixed.asked(paid);
                fixed.slept(SHORT_SLEEP);
                assert_eq!(fixed.spin(), spin);
            }
        }
    }
}
