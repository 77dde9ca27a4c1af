//! The limits of a controller, their ranges, and the one place where they are checked.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::apps::{MIN_REQUESTS, TASKS_UNANSWERED};
use crate::settings::WorkerSettings;

/// Limits against switches that are broken, hostile, or just many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of TCP connections, with or without a finished handshake. A further one is
    /// closed at once.
    pub connections: usize,
    /// Maximum number of connections of one worker. When all workers are full, a further one is
    /// closed at once.
    pub switches_per_worker: usize,
    /// Maximum bytes of one read from a switch, before the next switch's turn.
    pub bytes_per_turn: usize,
    /// Packet-ins of one switch: so many at once, and so many a second after that. More are dropped
    /// and counted. `None`: no limit.
    pub packet_ins_per_second: Option<u32>,
    /// Packet-ins a second that a switch sends, by a meter in the switch itself (1.3). `None`: no
    /// meter is set.
    pub controller_meter: Option<u32>,
    /// Maximum bytes that wait to be written to a switch. Above it, the switch is not read.
    pub high_water_bytes: usize,
    /// Time after which a switch that reads none of the waiting bytes is closed.
    pub stalled: Duration,
    /// Time for one event of a handler. One that takes longer is named and counted.
    pub handler_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 20_000,
            switches_per_worker: 10_000,
            bytes_per_turn: 128 * 1024,
            packet_ins_per_second: None,
            controller_meter: None,
            high_water_bytes: 1024 * 1024,
            stalled: Duration::from_secs(10),
            handler_time: Duration::from_secs(1),
        }
    }
}

/// A limit that no controller can run with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// It is out of its range.
    #[error("the limit {name} is {value}; give {minimum} to {maximum}{unit}")]
    OutOfRange {
        /// Its field.
        name: &'static str,
        /// Its value.
        value: String,
        /// The minimum.
        minimum: String,
        /// The maximum.
        maximum: String,
        /// The unit, after a space.
        unit: &'static str,
    },
    /// `max_requests` is so low that the requests of tasks leave none for the apps.
    #[error(
        "max_requests is {0}, and tasks of the controller have up to {TASKS_UNANSWERED} unanswered \
         themselves; give at least {MIN_REQUESTS}"
    )]
    FewRequests(u16),
}

impl Limits {
    /// Range of [`connections`](Self::connections) and
    /// [`switches_per_worker`](Self::switches_per_worker).
    pub const CONNECTIONS: RangeInclusive<u64> = 1..=1_000_000;

    /// Range of [`bytes_per_turn`](Self::bytes_per_turn): each worker has a buffer of that length,
    /// and while it processes the bytes, its other switches wait.
    pub const BYTES_PER_TURN: RangeInclusive<u64> = 4 << 10..=16 << 20;

    /// Range of [`packet_ins_per_second`](Self::packet_ins_per_second) and of
    /// [`controller_meter`](Self::controller_meter).
    pub const PACKET_INS_PER_SECOND: RangeInclusive<u64> = 1..=10_000_000;

    /// Range of [`high_water_bytes`](Self::high_water_bytes): it has room for the largest message.
    pub const HIGH_WATER_BYTES: RangeInclusive<u64> = 64 << 10..=1 << 30;

    /// Range of [`stalled`](Self::stalled).
    pub const STALLED: RangeInclusive<Duration> =
        Duration::from_millis(100)..=Duration::from_secs(3600);

    /// Range of [`handler_time`](Self::handler_time): a watchdog looks ten times a second.
    pub const HANDLER_TIME: RangeInclusive<Duration> =
        Duration::from_millis(200)..=Duration::from_secs(3600);

    /// Checks each limit against its range.
    ///
    /// # Errors
    /// The first limit that is out of its range.
    pub fn check(&self) -> Result<(), LimitError> {
        let numbers = [
            ("connections", self.connections as u64, Self::CONNECTIONS, ""),
            ("switches_per_worker", self.switches_per_worker as u64, Self::CONNECTIONS, ""),
            ("bytes_per_turn", self.bytes_per_turn as u64, Self::BYTES_PER_TURN, " bytes"),
            ("high_water_bytes", self.high_water_bytes as u64, Self::HIGH_WATER_BYTES, " bytes"),
        ];
        for (name, value, range, unit) in numbers {
            in_range(name, &value, &range, unit)?;
        }
        if let Some(limit) = self.packet_ins_per_second {
            let range = Self::PACKET_INS_PER_SECOND;
            in_range("packet_ins_per_second", &limit.into(), &range, "")?;
        }
        if let Some(limit) = self.controller_meter {
            in_range("controller_meter", &limit.into(), &Self::PACKET_INS_PER_SECOND, "")?;
        }
        let ms = |time: Duration| time.as_millis();
        let times = [
            ("stalled", self.stalled, Self::STALLED),
            ("handler_time", self.handler_time, Self::HANDLER_TIME),
        ];
        for (name, time, range) in times {
            in_range(name, &ms(time), &(ms(*range.start())..=ms(*range.end())), " ms")?;
        }
        Ok(())
    }
}

impl WorkerSettings {
    /// Checks all limits, those of the sessions too.
    ///
    /// # Errors
    /// [`LimitError`].
    pub fn check(&self) -> Result<(), LimitError> {
        self.limits.check()?;
        let requests = self.session.max_requests;
        if requests < MIN_REQUESTS { Err(LimitError::FewRequests(requests)) } else { Ok(()) }
    }
}

fn in_range<T: PartialOrd + fmt::Display>(
    name: &'static str,
    value: &T,
    range: &RangeInclusive<T>,
    unit: &'static str,
) -> Result<(), LimitError> {
    if range.contains(value) {
        return Ok(());
    }
    Err(LimitError::OutOfRange {
        name,
        value: value.to_string(),
        minimum: range.start().to_string(),
        maximum: range.end().to_string(),
        unit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_each_range_pass_and_what_is_beyond_does_not() {
        type Set = fn(&mut Limits, u64);
        let all: [(&str, RangeInclusive<u64>, Set); 7] = [
            ("connections", Limits::CONNECTIONS, |it, n| it.connections = n as usize),
            ("switches_per_worker", Limits::CONNECTIONS, |it, n| {
                it.switches_per_worker = n as usize;
            }),
            ("bytes_per_turn", Limits::BYTES_PER_TURN, |it, n| it.bytes_per_turn = n as usize),
            ("packet_ins_per_second", Limits::PACKET_INS_PER_SECOND, |it, n| {
                it.packet_ins_per_second = Some(n as u32);
            }),
            ("high_water_bytes", Limits::HIGH_WATER_BYTES, |it, n| {
                it.high_water_bytes = n as usize;
            }),
            ("stalled", 100..=3_600_000, |it, ms| it.stalled = Duration::from_millis(ms)),
            ("handler_time", 200..=3_600_000, |it, ms| {
                it.handler_time = Duration::from_millis(ms);
            }),
        ];
        assert_eq!(Limits::default().check(), Ok(()));
        for (name, range, set) in all {
            let check = |value| {
                let mut limits = Limits::default();
                set(&mut limits, value);
                limits.check()
            };
            assert_eq!((check(*range.start()), check(*range.end())), (Ok(()), Ok(())), "{name}");
            for value in [0, range.start() - 1, range.end() + 1] {
                let error = check(value).unwrap_err().to_string();
                let expected = format!(
                    "the limit {name} is {value}; give {} to {}",
                    range.start(),
                    range.end()
                );
                assert!(error.starts_with(&expected), "{error}");
            }
        }
    }

    #[test]
    fn as_few_requests_as_tasks_have_themselves_are_refused() {
        let with = |max_requests| {
            let mut settings = WorkerSettings::default();
            settings.session.max_requests = max_requests;
            settings.check()
        };
        assert_eq!(with(MIN_REQUESTS), Ok(()));
        assert_eq!(
            with(MIN_REQUESTS - 1).unwrap_err().to_string(),
            "max_requests is 31, and tasks of the controller have up to 24 unanswered themselves; \
             give at least 32"
        );
    }
}
