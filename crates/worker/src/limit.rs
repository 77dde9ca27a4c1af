//! Limit of packet-ins a second.

use std::time::Duration;

/// Passes `per_second` packets each second, also all at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    per_second: u32,
    left: u32,
    since: Duration,
}

impl RateLimit {
    pub(crate) fn new(per_second: u32, now: Duration) -> Self {
        RateLimit { per_second, left: per_second, since: now }
    }

    /// Whether one more packet may pass.
    pub(crate) fn pass(&mut self, now: Duration) -> bool {
        if now.saturating_sub(self.since) >= Duration::from_secs(1) {
            self.since = now;
            self.left = self.per_second;
        }
        let pass = self.left > 0;
        self.left = self.left.saturating_sub(1);
        pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_pass_in_each_second() {
        let mut limit = RateLimit::new(3, Duration::ZERO);
        let mut passed = |at: u64| (0..5).filter(|_| limit.pass(Duration::from_millis(at))).count();
        assert_eq!(passed(0), 3);
        assert_eq!(passed(999), 0);
        assert_eq!(passed(1000), 3);
    }
}
