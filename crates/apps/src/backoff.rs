//! Pauses after a failure: a switch refused a message, or did not confirm it.

use std::time::Duration;

/// The pause after a first failure. Each failure that follows a pause doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Maximum pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Time without a failure after which the next failure counts as a first.
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

/// Pauses that double from one second to a minute.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    pause: Duration,
    until: Duration,
}

impl Backoff {
    /// Returns whether no pause is running at `now`, a time on the controller's clock.
    #[inline]
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        now >= self.until
    }

    /// Whether the pause has reached its maximum.
    pub(crate) fn is_longest(&self) -> bool {
        self.pause == MAX_PAUSE
    }

    /// Time at which the pause ends.
    pub(crate) fn until(&self) -> Duration {
        self.until
    }

    /// Records a failure. A failure during a pause is ignored: it concerns an earlier message.
    pub(crate) fn failed(&mut self, now: Duration) {
        if !self.is_over(now) {
            return;
        }
        let again = !self.pause.is_zero() && now < self.until + FORGIVEN_AFTER;
        self.pause = if again { (self.pause * 2).min(MAX_PAUSE) } else { FIRST_PAUSE };
        self.until = now + self.pause;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn pauses_double_up_to_a_minute_and_start_anew_after_a_good_minute() {
        let mut backoff = Backoff::default();
        let mut now = Duration::from_secs(100);
        assert!(backoff.is_over(now));
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            backoff.failed(now);
            backoff.failed(now + MS);
            let end = now + Duration::from_secs(seconds);
            assert_eq!(backoff.is_longest(), seconds == 60);
            assert!(!backoff.is_over(end - MS) && backoff.is_over(end), "{seconds}");
            now = end;
        }
        now += FORGIVEN_AFTER;
        backoff.failed(now);
        assert!(backoff.is_over(now + FIRST_PAUSE));
    }
}
