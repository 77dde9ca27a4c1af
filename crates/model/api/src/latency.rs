//! How long things take: histograms that any thread adds to and reads.

use std::time::Duration;

use crate::SharedCounter;

/// The upper bounds of the buckets of a [`LatencyHistogram`]. A longer time is in one more bucket.
pub const LATENCY_BOUNDS: [Duration; 20] = [
    Duration::from_micros(5),
    Duration::from_micros(10),
    Duration::from_micros(25),
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2500),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// Numbers of times by their length.
#[derive(Debug, Default)]
pub struct LatencyHistogram {
    buckets: [SharedCounter; LATENCY_BOUNDS.len() + 1],
    nanoseconds: SharedCounter,
}

/// What a [`LatencyHistogram`] has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyCounts {
    /// Numbers of times in each bucket: up to its bound, and above the previous one. The last has
    /// no bound.
    pub buckets: [u64; LATENCY_BOUNDS.len() + 1],
    /// Sum of all times.
    pub sum: Duration,
}

impl LatencyHistogram {
    /// Adds a time.
    pub fn record(&self, time: Duration) {
        let bucket = LATENCY_BOUNDS.partition_point(|bound| *bound < time);
        self.buckets[bucket].add(1);
        self.nanoseconds.add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The counts so far. Times that are added meanwhile may be in some of them only.
    #[must_use]
    pub fn counts(&self) -> LatencyCounts {
        let sum = Duration::from_nanos(self.nanoseconds.get());
        LatencyCounts { buckets: std::array::from_fn(|bucket| self.buckets[bucket].get()), sum }
    }
}

impl LatencyCounts {
    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &LatencyCounts) {
        for (sum, more) in self.buckets.iter_mut().zip(other.buckets) {
            *sum += more;
        }
        self.sum += other.sum;
    }

    /// Number of times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// Defines [`Latencies`] with a histogram of each name and meaning.
macro_rules! latencies {
    ($(#[doc = $doc:literal] $name:ident;)*) => {
        /// The latencies of a controller: [`Network::extension`](crate::Network::extension) gives
        /// them to services, to apps and to who reports them.
        #[derive(Debug, Default)]
        pub struct Latencies { $(#[doc = $doc] pub $name: LatencyHistogram,)* }

        impl Latencies {
            /// Name, meaning and counts of each.
            pub fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, LatencyCounts)> {
                [$((stringify!($name), $doc, self.$name.counts()),)*].into_iter()
            }
        }
    };
}

latencies! {
    /// From changes sent to a switch, until its barrier reply has reached the task that waits.
    confirmation;
    /// From desired state committed, until all its switches have confirmed it.
    commit;
    /// From a changed path of two hosts, or of a circuit, until all its switches have confirmed it.
    path_change;
    /// From an announcement of discovery sent, until it has arrived at the other end of the link.
    announcement;
    /// From a packet of a host that host tracking did not know there, until apps see the host.
    host;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_the_bucket_of_its_length() {
        let histogram = LatencyHistogram::default();
        for time in [0, 5_000, 5_001, 10_000_000_000, 10_000_000_001] {
            histogram.record(Duration::from_nanos(time));
        }
        let counts = histogram.counts();
        assert_eq!((counts.buckets[0], counts.buckets[1]), (2, 1));
        assert_eq!(counts.buckets[LATENCY_BOUNDS.len() - 1..], [1, 1]);
        assert_eq!((counts.count(), counts.sum.as_nanos()), (5, 20_000_010_002));
        let mut twice = counts.clone();
        twice.add(&counts);
        assert_eq!((twice.count(), twice.buckets[0]), (10, 4));
        assert!(LATENCY_BOUNDS.is_sorted());
    }

    #[test]
    fn the_latencies_are_told_by_name() {
        let latencies = Latencies::default();
        latencies.commit.record(Duration::from_millis(3));
        let counted: Vec<_> = latencies.all().filter(|(.., counts)| counts.count() > 0).collect();
        assert_eq!(counted.len(), 1);
        assert_eq!(counted[0].0, "commit");
        assert!(counted[0].1.contains("From desired state committed"));
    }
}
