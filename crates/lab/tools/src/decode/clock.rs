//! Formats the times of a capture.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use clap::ValueEnum;

const SECONDS_PER_DAY: u64 = 86_400;

/// Years of a full cycle of the Gregorian calendar, and their days.
const ERA_YEARS: u64 = 400;
const ERA_DAYS: u64 = 146_097;

/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: u64 = 719_468;

/// Origin of the printed times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum TimeFormat {
    /// Seconds since the first packet of the capture.
    Relative,
    /// Date and time of day, in UTC.
    Absolute,
    /// Seconds since 1970.
    Epoch,
}

/// A time, ready to print.
pub(super) struct PrintedTime {
    pub(super) format: TimeFormat,
    /// Time since 1970.
    pub(super) time: Duration,
    /// Start of the capture, since 1970.
    pub(super) start: Duration,
}

impl Display for PrintedTime {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let seconds = |f: &mut Formatter<'_>, sign: &str, time: Duration| {
            write!(f, "{sign}{}.{:06}", time.as_secs(), time.subsec_micros())
        };
        match (self.format, self.time.checked_sub(self.start)) {
            (TimeFormat::Epoch, _) => seconds(f, "", self.time),
            (TimeFormat::Relative, Some(since)) => seconds(f, "", since),
            // Packets of several interfaces are not always in order.
            (TimeFormat::Relative, None) => seconds(f, "-", self.start - self.time),
            (TimeFormat::Absolute, _) => self.date(f),
        }
    }
}

impl PrintedTime {
    /// `2026-11-22T18:05:18.250000Z`, by the proleptic Gregorian calendar. The years of the
    /// calculation begin in March, so that a leap day is the last day of its year.
    fn date(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let days = self.time.as_secs() / SECONDS_PER_DAY + EPOCH_DAYS;
        let (era, day) = (days / ERA_DAYS, days % ERA_DAYS);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (year, month) = match month {
            0..10 => (year, month + 3),
            _ => (year + 1, month - 9),
        };
        let of_day = self.time.as_secs() % SECONDS_PER_DAY;
        let (hours, minutes, seconds) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        let (year, micros) = (era * ERA_YEARS + year, self.time.subsec_micros());
        write!(f, "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{micros:06}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(format: TimeFormat, seconds: u64, start: u64) -> String {
        let time = Duration::new(seconds, 250_000_999);
        PrintedTime { format, time, start: Duration::from_secs(start) }.to_string()
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // The dates that `date -u -d @SECONDS` prints.
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_799, "2000-02-29T23:59:59"),
            (951_868_800, "2000-03-01T00:00:00"),
            (1_709_164_800, "2024-02-29T00:00:00"),
            (1_795_370_718, "2026-11-22T18:05:18"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(print(TimeFormat::Absolute, seconds, 9), format!("{date}.250000Z"));
        }
    }

    #[test]
    fn other_times_are_seconds() {
        assert_eq!(print(TimeFormat::Epoch, 12, 9), "12.250000");
        assert_eq!(print(TimeFormat::Relative, 12, 9), "3.250000");
        assert_eq!(print(TimeFormat::Relative, 8, 9), "-0.749999");
    }
}
