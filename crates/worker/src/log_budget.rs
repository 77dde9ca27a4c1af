//! Limit of a worker's log lines: hostile switches must not fill a disk.

use std::time::Duration;

use tracing::warn;

use crate::counters::Counters;

/// Maximum number of lines at once: enough for all switches of a worker to come up or go at the
/// same time.
const BURST_LINES: u32 = 10_000;

/// Number of lines a second, continuously.
const LINES_PER_SECOND: u32 = 20;

/// Limits lines about switches, at level info and above. Lines left out are counted, and reported
/// with the next line.
#[derive(Debug)]
pub(crate) struct LogBudget {
    left: u32,
    /// Time up to which lines have been added to `left`.
    since: Duration,
    left_out: u64,
}

impl Default for LogBudget {
    fn default() -> Self {
        LogBudget { left: BURST_LINES, since: Duration::ZERO, left_out: 0 }
    }
}

impl LogBudget {
    /// Whether one more line may be written.
    pub(crate) fn allows(&mut self, now: Duration, counters: &Counters) -> bool {
        let seconds = now.saturating_sub(self.since).as_secs();
        self.since += Duration::from_secs(seconds);
        let new_lines = u32::try_from(seconds).unwrap_or(u32::MAX).saturating_mul(LINES_PER_SECOND);
        self.left = self.left.saturating_add(new_lines).min(BURST_LINES);
        if self.left == 0 {
            self.left_out += 1;
            counters.log_lines_left_out.add(1);
            return false;
        }
        self.left -= 1;
        if self.left_out > 0 {
            let lines = std::mem::take(&mut self.left_out);
            warn!(lines, "lines about switches were left out: more than {LINES_PER_SECOND}/s came");
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_so_many_a_second() {
        let (mut budget, counters) = (LogBudget::default(), Counters::default());
        let mut passed = |at_ms: u64| {
            let now = Duration::from_millis(at_ms);
            (0..20_000).filter(|_| budget.allows(now, &counters)).count() as u32
        };
        assert_eq!(passed(500), BURST_LINES);
        assert_eq!(passed(999), 0);
        assert_eq!(passed(1000), LINES_PER_SECOND);
        assert_eq!(passed(1999), 0);
        assert_eq!(passed(4000), 3 * LINES_PER_SECOND);
        assert_eq!(passed(1_000_000_000_000), BURST_LINES);
        let all = u64::from(2 * BURST_LINES + 4 * LINES_PER_SECOND);
        assert_eq!(counters.log_lines_left_out.get(), 6 * 20_000 - all);
    }
}
