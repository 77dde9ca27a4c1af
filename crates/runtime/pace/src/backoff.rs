//! Pauses after a failure, such as a message that a switch refused or did not confirm.

use std::time::Duration;

/// Time without a failure after which the next failure counts as a first.
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

/// Pauses that double from [`Backoff::FIRST`] to [`Backoff::LONGEST`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Backoff {
    pause: Duration,
    until: Duration,
}

impl Backoff {
    /// The pause after a first failure. Each failure that follows a pause doubles it.
    pub const FIRST: Duration = Duration::from_secs(1);

    /// Maximum pause.
    pub const LONGEST: Duration = Duration::from_secs(60);

    /// Returns whether no pause is running at `now`, a time on the controller's clock.
    #[must_use]
    #[inline]
    pub fn is_over(&self, now: Duration) -> bool {
        now >= self.until
    }

    /// Whether the pause has reached its maximum.
    #[must_use]
    pub fn is_longest(&self) -> bool {
        self.pause == Self::LONGEST
    }

    /// Time at which the pause ends.
    #[must_use]
    pub fn until(&self) -> Duration {
        self.until
    }

    /// Records a failure. A failure during a pause is ignored: it concerns an earlier message.
    pub fn failed(&mut self, now: Duration) {
        if !self.is_over(now) {
            return;
        }
        let again = !self.pause.is_zero() && now < self.until + FORGIVEN_AFTER;
        self.pause = if again { (self.pause * 2).min(Self::LONGEST) } else { Self::FIRST };
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
        assert!(backoff.is_over(now + Backoff::FIRST));
    }
}
