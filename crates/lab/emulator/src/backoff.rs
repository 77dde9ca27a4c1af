//! Time that a switch waits before it connects to its controller again.

use std::time::Duration;

/// Waiting times between attempts to connect. The time doubles after each failure, up to the
/// maximum, as in Open vSwitch. A connection that has lasted for some seconds resets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconnectBackoff {
    /// Before the second attempt.
    pub first: Duration,
    /// The maximum.
    pub maximum: Duration,
}

impl Default for ReconnectBackoff {
    fn default() -> Self {
        ReconnectBackoff { first: Duration::from_secs(1), maximum: Duration::from_secs(8) }
    }
}

impl ReconnectBackoff {
    /// Time to wait after this many failures in a row, from 1.
    #[must_use]
    pub fn after(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(u32::BITS - 1);
        self.first.saturating_mul(1 << doublings).min(self.maximum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_the_longest() {
        let backoff = ReconnectBackoff::default();
        let waits: Vec<u64> = (1..=6).map(|n| backoff.after(n).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 8, 8]);
        assert_eq!(backoff.after(u32::MAX), backoff.maximum);
    }

    #[test]
    fn a_longest_below_the_first_is_the_longest() {
        let backoff =
            ReconnectBackoff { first: Duration::from_secs(1), maximum: Duration::from_millis(50) };
        assert_eq!(backoff.after(1), Duration::from_millis(50));
    }
}
