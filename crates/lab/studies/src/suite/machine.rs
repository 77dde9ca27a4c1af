//! The machine and the time of a measurement: figures mean nothing without them.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The machine that was used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the processor.
    pub processor: String,
    /// Number of cores that the process may use.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Name and version of the kernel.
    pub kernel: String,
    /// Average number of processes that ran or waited to run in the minute before the start. Shows
    /// whether the machine was quiet.
    pub load_average: f64,
}

/// Maximum load average of a quiet machine.
const QUIET: f64 = 0.5;

impl Machine {
    /// Returns whether other processes ran before the measurement.
    pub(crate) fn is_busy(&self) -> bool {
        self.load_average > QUIET
    }

    /// Describes this machine, from `/proc`.
    pub(crate) fn this(cores: usize) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key));
            line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
        };
        let memory = value(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let kibibytes = memory.split(' ').next().and_then(|number| number.parse().ok());
        let load = read("/proc/loadavg");
        Machine {
            processor: value(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            cores,
            memory_bytes: kibibytes.unwrap_or(0u64) * 1024,
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            load_average: load.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0),
        }
    }
}

/// Current time in seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Writes a time as `2026-11-21 17:05 UTC`.
pub(crate) fn date(seconds: u64) -> String {
    // Counts days from 1 March of the year 0, so that a leap day is the last of its year.
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (seconds % 86_400 / 3600, seconds % 3600 / 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_700_000_000), "2023-11-14 22:13 UTC");
        assert_eq!(date(4_107_542_399), "2100-02-28 23:59 UTC");
    }

    #[test]
    fn this_machine_has_a_kernel_and_memory() {
        let machine = Machine::this(2);
        assert!(machine.kernel.len() > "Linux ".len() && machine.memory_bytes > 1 << 20);
    }
}
