//! Pings: echo requests and their answers.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Settings of a ping. The default is one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingSettings {
    /// Requests to send; 1 to 65,535.
    pub count: u16,
    /// Time between two requests.
    pub interval: Duration,
    /// Maximum time for an answer; then the request counts as lost.
    pub timeout: Duration,
    /// Bytes of data in each request; at most 1,472.
    pub data_len: u16,
}

impl PingSettings {
    /// Maximum bytes of data, so that a request fits a frame of the usual size.
    pub const MAX_DATA_BYTES: u16 = 1472;
}

impl Default for PingSettings {
    fn default() -> Self {
        PingSettings {
            count: 1,
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(5),
            data_len: 56,
        }
    }
}

/// The result of a ping so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PingStatistics {
    /// Requests sent.
    pub sent: u32,
    /// Requests answered in time.
    pub received: u32,
    /// Requests that were not answered in time.
    pub lost: u32,
    /// Answers that came too late, or a second time.
    pub duplicates: u32,
    /// The shortest round trip.
    pub min: Duration,
    /// The longest round trip.
    pub max: Duration,
    sum: Duration,
    sum_of_squares: u128,
}

impl PingStatistics {
    /// The mean round trip; zero if there was none.
    #[must_use]
    pub fn mean(&self) -> Duration {
        self.sum.checked_div(self.received).unwrap_or_default()
    }

    /// The standard deviation of round trips, as `ping` prints it (mdev).
    #[must_use]
    pub fn deviation(&self) -> Duration {
        let n = u128::from(self.received.max(1));
        let mean = self.sum.as_nanos() / n;
        let variance = (self.sum_of_squares / n).saturating_sub(mean * mean);
        Duration::from_nanos(u64::try_from(variance.isqrt()).unwrap_or(u64::MAX))
    }

    /// Whether every request was answered, and there was at least one.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.sent > 0 && self.received == self.sent
    }

    /// Adds the result of another ping, as if both were one.
    pub fn merge(&mut self, other: &PingStatistics) {
        self.min = match (self.received, other.received) {
            (_, 0) => self.min,
            (0, _) => other.min,
            _ => self.min.min(other.min),
        };
        self.max = self.max.max(other.max);
        self.sent += other.sent;
        self.received += other.received;
        self.lost += other.lost;
        self.duplicates += other.duplicates;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
    }

    fn add(&mut self, trip: Duration) {
        self.min = if self.received == 0 { trip } else { self.min.min(trip) };
        self.max = self.max.max(trip);
        self.sum += trip;
        self.sum_of_squares += trip.as_nanos() * trip.as_nanos();
        self.received += 1;
    }
}

impl fmt::Display for PingStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PingStatistics { sent, received, lost, duplicates, min, max, .. } = self;
        write!(f, "{sent} sent, {received} received, {lost} lost")?;
        if *duplicates > 0 {
            write!(f, ", {duplicates} duplicates")?;
        }
        if *received > 0 {
            let [min, mean, max, deviation] =
                [*min, self.mean(), *max, self.deviation()].map(|time| time.as_secs_f64() * 1000.0);
            write!(
                f,
                "; round trip min/avg/max/mdev {min:.3}/{mean:.3}/{max:.3}/{deviation:.3} ms"
            )?;
        }
        Ok(())
    }
}

/// A ping that runs or has ended.
pub(super) struct Ping {
    pub(super) to: Ipv4Addr,
    pub(super) settings: PingSettings,
    pub(super) statistics: PingStatistics,
    pub(super) deadline: Option<Duration>,
    next: Option<Duration>,
    /// Requests without an answer: number and time of sending.
    open: BTreeMap<u16, Duration>,
}

impl Ping {
    pub(super) fn new(to: Ipv4Addr, settings: PingSettings, now: Duration) -> Self {
        let settings = PingSettings {
            count: settings.count.max(1),
            data_len: settings.data_len.min(PingSettings::MAX_DATA_BYTES),
            ..settings
        };
        let (statistics, next) = (PingStatistics::default(), Some(now));
        Ping { to, settings, statistics, deadline: None, next, open: BTreeMap::new() }
    }

    pub(super) fn is_over(&self) -> bool {
        self.next.is_none() && self.open.is_empty()
    }

    /// Counts late answers, and returns the number of the request that is due.
    pub(super) fn due(&mut self, now: Duration) -> Option<u16> {
        while let Some(first) = self.open.first_entry() {
            if *first.get() + self.settings.timeout > now {
                break;
            }
            first.remove();
            self.statistics.lost += 1;
        }
        self.next.filter(|next| *next <= now)?;
        self.statistics.sent += 1;
        let number = u16::try_from(self.statistics.sent).unwrap_or(u16::MAX);
        self.open.insert(number, now);
        let has_more = number < self.settings.count;
        self.next = has_more.then(|| now + self.settings.interval);
        Some(number)
    }

    pub(super) fn record_answer(&mut self, number: u16, now: Duration) {
        match self.open.remove(&number) {
            Some(sent) => self.statistics.add(now.saturating_sub(sent)),
            None => self.statistics.duplicates += 1,
        }
    }

    /// Time of its next event: the next request, or the first timeout.
    pub(super) fn wants(&self) -> Option<Duration> {
        let late = self.open.first_key_value().map(|(_, sent)| *sent + self.settings.timeout);
        self.next.into_iter().chain(late).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pings_merge_into_one() {
        let ping = |trips: &[u64], lost| {
            let mut all =
                PingStatistics { sent: trips.len() as u32 + lost, lost, ..Default::default() };
            trips.iter().for_each(|ms| all.add(Duration::from_millis(*ms)));
            all
        };
        for (a, b) in [(&[5, 3][..], &[9][..]), (&[], &[7]), (&[7], &[]), (&[], &[])] {
            let mut merged = ping(a, 1);
            merged.merge(&ping(b, 2));
            assert_eq!(merged, ping(&[a, b].concat(), 3), "{a:?} {b:?}");
        }
    }
}
