//! A limit on events in a time.

use std::time::Duration;

/// Lets `burst` events pass at once, and then one in each `period`: a token bucket of `burst`
/// tokens, which gets a token back in each period. So no time `t` has more than
/// `burst + t / period` events.
///
/// It keeps the time at which the bucket is full again instead of its tokens, so it divides and
/// rounds nothing (the generic cell rate algorithm of ITU-T I.371).
///
/// ```
/// # use std::time::Duration;
/// use bellrock_pace::RateLimit;
///
/// let mut limit = RateLimit::per_second(2);
/// let mut pass = |ms| limit.pass(Duration::from_millis(ms));
/// assert_eq!([0, 0, 0].map(&mut pass), [true, true, false]);
/// assert_eq!([499, 500, 501].map(&mut pass), [false, true, false]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    period: Duration,
    /// Time to fill the empty bucket.
    depth: Duration,
    /// Time at which the bucket is full.
    full: Duration,
}

impl RateLimit {
    /// A limit whose bucket is full. With a burst of 0 nothing passes.
    #[must_use]
    pub const fn new(burst: u32, period: Duration) -> Self {
        RateLimit { period, depth: period.saturating_mul(burst), full: Duration::ZERO }
    }

    /// Lets `events` pass at once, and as many in each second. With 0 nothing passes. Above
    /// 10^9, the resolution of a [`Duration`], everything passes.
    #[must_use]
    pub const fn per_second(events: u32) -> Self {
        match Duration::from_secs(1).checked_div(events) {
            Some(period) => RateLimit::new(events, period),
            None => RateLimit::new(0, Duration::from_secs(1)),
        }
    }

    /// Whether an event may pass now.
    #[must_use]
    pub fn allows(&self, now: Duration) -> bool {
        self.full.max(now).saturating_add(self.period) <= now.saturating_add(self.depth)
    }

    /// Number of events that may pass now.
    #[must_use]
    pub fn available(&self, now: Duration) -> u64 {
        let used = self.full.saturating_sub(now);
        let free = self.depth.saturating_sub(used).as_nanos();
        free.checked_div(self.period.as_nanos()).map_or(u64::MAX, |events| events as u64)
    }

    /// Counts an event that passes. Returns whether it may.
    pub fn pass(&mut self, now: Duration) -> bool {
        let may_pass = self.allows(now);
        if may_pass {
            self.full = self.full.max(now).saturating_add(self.period);
        }
        may_pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(limit: &mut RateLimit, at: Duration, events: usize) -> usize {
        (0..events).filter(|_| limit.pass(at)).count()
    }

    #[test]
    fn a_burst_passes_and_then_one_event_a_period() {
        let mut limit = RateLimit::new(1000, Duration::from_millis(50));
        let mut passed = |ms| passed(&mut limit, Duration::from_millis(ms), 2000);
        assert_eq!(passed(500), 1000);
        assert_eq!(passed(549), 0);
        assert_eq!(passed(550), 1);
        assert_eq!(passed(700), 3);
        assert_eq!(passed(10_000_000), 1000, "no more than the burst is saved up");
    }

    #[test]
    fn no_second_sees_more_than_the_burst_and_its_share() {
        for step_ms in [1, 30, 99, 100, 101, 333, 999, 1000, 1500] {
            let mut limit = RateLimit::per_second(10);
            let times = (0..20_000).map(|i| Duration::from_millis(i * step_ms));
            let sent: Vec<Duration> = times.filter(|now| limit.pass(*now)).collect();
            assert!(sent.len() >= (19 * step_ms as usize * 10).min(20_000), "{step_ms}");
            for (i, end) in sent.iter().enumerate() {
                let since = sent[..=i].iter().filter(|at| **at + Duration::from_secs(1) > *end);
                let within = since.count();
                assert!(within <= 20, "{within} events within a second, one every {step_ms} ms");
            }
            // All of them together keep the rate.
            let seconds = 20 * step_ms as usize;
            assert!(sent.len() <= 10 + 10 * seconds, "{} in {seconds} s", sent.len());
        }
    }

    #[test]
    fn a_rate_of_zero_lets_nothing_pass_and_the_greatest_everything() {
        for at in [Duration::ZERO, Duration::from_secs(9)] {
            assert_eq!(passed(&mut RateLimit::per_second(0), at, 3), 0);
            assert_eq!(passed(&mut RateLimit::per_second(u32::MAX), at, 3), 3);
        }
    }

    #[test]
    fn as_many_as_are_available_pass() {
        let mut limit = RateLimit::new(100, Duration::from_millis(10));
        for ms in [5, 6, 40, 41, 333, 5000] {
            let now = Duration::from_millis(ms);
            let available = limit.available(now);
            assert_eq!(passed(&mut limit, now, 1000) as u64, available, "{ms}");
        }
        assert_eq!(RateLimit::per_second(0).available(Duration::ZERO), 0);
        assert_eq!(RateLimit::per_second(u32::MAX).available(Duration::ZERO), u64::MAX);
    }

    #[test]
    fn a_check_of_the_limit_is_not_counted() {
        let limit = RateLimit::per_second(1);
        assert!(limit.allows(Duration::ZERO) && limit.allows(Duration::ZERO));
    }
}
