//! Measures the latency of announcements on a link, and detects when it changes.
//!
//! Noise, such as a busy switch or a queue, only adds time, so the minimum of several samples
//! counts. A relay adds to all of them. The time on the control connections is subtracted, so a
//! sample is as uncertain as that time: the spread of their round trips counts as noise.

use std::time::Duration;

/// Number of late announcements in a row that count as a change.
pub(super) const SAMPLES: usize = 4;

/// A latency is late above `usual * TIMES + MARGIN`.
const TIMES: u32 = 2;
const MARGIN: Duration = Duration::from_millis(1);

/// Latencies of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkLatency {
    recent: [Duration; SAMPLES],
    count: u64,
    usual: Option<Duration>,
}

/// Result of adding one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LatencyChange {
    Nothing,
    /// The first [`SAMPLES`] are complete. Their minimum.
    Known(Duration),
    /// The last [`SAMPLES`] took longer than before: their minimum, and the usual latency so far.
    /// The new latency is the usual one from now on.
    Late {
        current: Duration,
        usual: Duration,
    },
}

impl LinkLatency {
    /// Adds the latency of one announcement. `noise` is the spread of the round trips.
    pub(super) fn add(&mut self, latency: Duration, noise: Duration) -> LatencyChange {
        self.recent[self.count as usize % SAMPLES] = latency;
        self.count += 1;
        if self.count < SAMPLES as u64 {
            return LatencyChange::Nothing;
        }
        let minimum = self.recent.into_iter().min().unwrap_or_default();
        let Some(usual) = self.usual else {
            self.usual = Some(minimum);
            return LatencyChange::Known(minimum);
        };
        if is_late(minimum, usual + noise) {
            self.usual = Some(minimum);
            return LatencyChange::Late { current: minimum, usual };
        }
        self.usual = Some(usual.min(minimum));
        LatencyChange::Nothing
    }

    /// Returns the minimum latency, once there are enough samples.
    pub(super) fn usual(&self) -> Option<Duration> {
        self.usual
    }
}

/// Whether a latency is longer than noise explains.
pub(super) fn is_late(latency: Duration, usual: Duration) -> bool {
    latency > usual * TIMES + MARGIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_passes_and_a_relay_does_not() {
        let ms = Duration::from_millis;
        let mut latency = LinkLatency::default();
        let quiet = [2, 90, 3, 2, 40, 50, 60, 3, 70, 80, 90, 2];
        let findings: Vec<_> = quiet.into_iter().map(|took| latency.add(ms(took), ms(0))).collect();
        assert_eq!(findings[3], LatencyChange::Known(ms(2)));
        assert!(
            findings.iter().filter(|it| **it != LatencyChange::Nothing).count() == 1,
            "{findings:?}"
        );
        let relayed: Vec<_> =
            [9, 8, 9, 12, 8].into_iter().map(|took| latency.add(ms(took), ms(0))).collect();
        assert_eq!(relayed[3], LatencyChange::Late { current: ms(8), usual: ms(2) });
        assert_eq!(relayed[4], LatencyChange::Nothing, "it is reported once");
        assert_eq!(latency.usual(), Some(ms(8)));
    }

    #[test]
    fn while_control_connections_are_slow_now_and_then_so_much_is_noise() {
        let ms = Duration::from_millis;
        let mut latency = LinkLatency::default();
        for took in [0, 0, 0, 0, 5, 5, 5, 5] {
            assert!(!matches!(latency.add(ms(took), ms(3)), LatencyChange::Late { .. }));
        }
        assert_eq!(latency.add(ms(5), ms(1)), LatencyChange::Late { current: ms(5), usual: ms(0) });
    }
}
