//! Limit of a worker's log lines: hostile switches must not fill a disk.

use std::time::Duration;

use bellrock_api::RateLimit;
use tracing::warn;

use crate::counters::WorkerCounters;

/// Maximum number of lines at once: enough for all switches of a worker to come up or go at the
/// same time.
const BURST_LINES: u32 = 10_000;

/// Number of lines a second, continuously.
const LINES_PER_SECOND: u32 = 20;

/// Limits lines about switches, at level info and above. Lines left out are counted, and reported
/// with the next line.
#[derive(Debug)]
pub(crate) struct LogBudget {
    limit: RateLimit,
    left_out: u64,
}

impl Default for LogBudget {
    fn default() -> Self {
        let limit = RateLimit::new(BURST_LINES, Duration::from_secs(1) / LINES_PER_SECOND);
        LogBudget { limit, left_out: 0 }
    }
}

impl LogBudget {
    /// Whether one more line may be written.
    pub(crate) fn allows(&mut self, now: Duration, counters: &WorkerCounters) -> bool {
        if !self.limit.pass(now) {
            self.left_out += 1;
            counters.log_lines_left_out.add(1);
            return false;
        }
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
        let (mut budget, counters) = (LogBudget::default(), WorkerCounters::default());
        let mut passed = |at_ms: u64| {
            let now = Duration::from_millis(at_ms);
            (0..20_000).filter(|_| budget.allows(now, &counters)).count() as u32
        };
        assert_eq!(passed(500), BURST_LINES);
        assert_eq!(passed(549), 0);
        assert_eq!(passed(1500), LINES_PER_SECOND);
        assert_eq!(passed(1501), 0);
        assert_eq!(passed(4500), 3 * LINES_PER_SECOND);
        assert_eq!(passed(1_000_000_000_000), BURST_LINES);
        let all = u64::from(2 * BURST_LINES + 4 * LINES_PER_SECOND);
        assert_eq!(counters.log_lines_left_out.get(), 6 * 20_000 - all);
    }
}
