//! Measures the latency of announcements on a link, and detects when it changes.
//!
//! Noise, such as a busy switch or a queue, only adds time, so the minimum of several samples
//! counts. A relay adds to all of them. The time on the control connections is subtracted, so a
//! sample is as uncertain as that time: the spread of their round trips counts as noise. Load of
//! the controller or of its machine slows announcements on all links: what most links show at the
//! same time counts as noise too ([`LinkLatency::excess`]).

use std::time::Duration;

/// Number of first announcements whose minimum is the usual latency.
pub(super) const SAMPLES: u32 = 4;

/// Number of late announcements in a row that count as a change: a minute of rounds, at the
/// default. Load delays some of them, a relay all.
pub(super) const LATE_SAMPLES: u32 = 12;

/// A latency is late above `usual * TIMES + MARGIN`.
const TIMES: u32 = 2;
const MARGIN: Duration = Duration::from_millis(1);

/// Latencies of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkLatency {
    count: u32,
    /// The minimum so far, or since the last change.
    minimum: Option<Duration>,
    last: Duration,
    /// Number of late announcements in a row, and their minimum.
    late: (u32, Duration),
}

/// Result of adding one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LatencyChange {
    Nothing,
    /// The first [`SAMPLES`] are complete. Their minimum.
    Known(Duration),
    /// The first [`LATE_SAMPLES`] are complete. Their minimum: load does not explain it.
    Confirmed(Duration),
    /// The last [`LATE_SAMPLES`] took longer than before: their minimum, and the usual latency so
    /// far. The new latency is the usual one from now on.
    Late {
        current: Duration,
        usual: Duration,
    },
}

impl LinkLatency {
    /// Adds the latency of one announcement. `noise` is what else may explain a longer one.
    pub(super) fn add(&mut self, latency: Duration, noise: Duration) -> LatencyChange {
        self.count = self.count.saturating_add(1);
        self.last = latency;
        let usual = self.minimum.unwrap_or(latency);
        if self.count <= SAMPLES || !is_late(latency, usual + noise) {
            self.late.0 = 0;
            self.minimum = Some(usual.min(latency));
        } else {
            let (count, minimum) = self.late;
            self.late = match count {
                0 => (1, latency),
                _ => (count + 1, minimum.min(latency)),
            };
        }
        match (self.late, self.count) {
            ((LATE_SAMPLES, current), _) => {
                (self.late.0, self.minimum) = (0, Some(current));
                LatencyChange::Late { current, usual }
            }
            (_, SAMPLES) => LatencyChange::Known(usual.min(latency)),
            (_, LATE_SAMPLES) => LatencyChange::Confirmed(usual.min(latency)),
            _ => LatencyChange::Nothing,
        }
    }

    /// Returns the minimum latency, once there are enough samples.
    pub(super) fn usual(&self) -> Option<Duration> {
        self.minimum.filter(|_| self.count >= SAMPLES)
    }

    /// Returns how much longer than usual the last announcement took.
    pub(super) fn excess(&self) -> Option<Duration> {
        self.usual().map(|usual| self.last.saturating_sub(usual))
    }
}

/// Whether a latency is longer than noise explains.
pub(super) fn is_late(latency: Duration, usual: Duration) -> bool {
    latency > usual * TIMES + MARGIN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn add(latency: &mut LinkLatency, took: &[u64], noise: u64) -> Vec<LatencyChange> {
        took.iter().map(|took| latency.add(ms(*took), ms(noise))).collect()
    }

    #[test]
    fn noise_passes_and_a_relay_does_not() {
        let mut latency = LinkLatency::default();
        let first = add(&mut latency, &[2, 90, 3, 2, 40, 50, 60, 70, 80, 90, 45, 55, 3], 0);
        assert_eq!(first[3], LatencyChange::Known(ms(2)));
        assert_eq!(first[11], LatencyChange::Confirmed(ms(2)));
        let others = first.iter().filter(|it| **it != LatencyChange::Nothing);
        assert_eq!(others.count(), 2, "ten slow ones in a row are load: {first:?}");
        let relayed = add(&mut latency, &[9, 8, 9, 12, 8, 9, 9, 9, 10, 11, 9, 9, 8], 0);
        assert_eq!(relayed[11], LatencyChange::Late { current: ms(8), usual: ms(2) });
        assert_eq!(relayed[12], LatencyChange::Nothing, "it is reported once");
        assert_eq!(latency.usual(), Some(ms(8)));
    }

    #[test]
    fn noise_and_load_explain_late_announcements() {
        let mut latency = LinkLatency::default();
        add(&mut latency, &[0; 20], 3);
        let slow = add(&mut latency, &[5; 20], 3);
        assert!(slow.iter().all(|it| *it == LatencyChange::Nothing), "{slow:?}");
        let quiet = add(&mut latency, &[5; 12], 1);
        assert_eq!(quiet[11], LatencyChange::Late { current: ms(5), usual: ms(0) });
    }
}
