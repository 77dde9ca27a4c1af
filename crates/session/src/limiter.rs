//! Rate limit of errors.

use std::time::Duration;

/// The period of `max_errors_per_second`.
const WINDOW: Duration = Duration::from_secs(1);

/// Allows at most `max` errors within any second.
///
/// A burst is a series of errors with less than a second between two. It ends at its `max`th error.
/// So no second has more, and this needs only two words instead of the time of each error.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    /// End of the burst, if no error follows.
    until: Duration,
    sent: u16,
}

impl Limiter {
    pub(crate) fn allows(&self, max: u16, now: Duration) -> bool {
        if now >= self.until { max > 0 } else { self.sent < max }
    }

    pub(crate) fn count(&mut self, now: Duration) {
        self.sent = if now >= self.until { 1 } else { self.sent.saturating_add(1) };
        self.until = now.saturating_add(WINDOW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_sees_more_than_the_bound() {
        for step_ms in [1, 30, 99, 100, 101, 333, 999, 1000, 1500] {
            let mut limiter = Limiter::default();
            let mut sent: Vec<Duration> = Vec::new();
            for i in 0..20_000 {
                let now = Duration::from_millis(i * step_ms);
                if limiter.allows(10, now) {
                    limiter.count(now);
                    sent.push(now);
                }
            }
            assert!(sent.len() > 100, "{step_ms}: {}", sent.len());
            for (i, end) in sent.iter().enumerate() {
                let within = sent[..=i].iter().filter(|at| **at + WINDOW > *end).count();
                assert!(within <= 10, "{within} errors within a second, one every {step_ms} ms");
            }
        }
    }

    #[test]
    fn a_bound_of_zero_lets_nothing_through() {
        assert!(!Limiter::default().allows(0, Duration::ZERO));
        assert!(!Limiter::default().allows(0, Duration::from_secs(9)));
    }
}
