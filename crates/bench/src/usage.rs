//! What a test cost: CPU time and memory of processes, CPU time of threads, energy of the machine.
//!
//! Read from `/proc` and `/sys` (proc(5), the kernel's powercap documentation), only before and
//! after a measurement.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Ticks in a second of the times in `/proc/PID/stat`. It is 100 on every Linux that Rust runs on:
/// the kernel converts to `USER_HZ`.
const TICKS_PER_S: u64 = 100;

/// CPU time of the calling thread so far.
pub(crate) fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// CPU time of a process and its threads at one time, in steps of 10 ms.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessCpu {
    user: Duration,
    system: Duration,
    /// By thread id.
    threads: Vec<(u32, Duration)>,
}

impl ProcessCpu {
    /// That of a process now.
    pub(crate) fn read(pid: u32) -> io::Result<Self> {
        let (user, system) = stat_times(&fs::read_to_string(format!("/proc/{pid}/stat"))?)?;
        let mut threads = Vec::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            let entry = entry?;
            let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A thread may be gone by now.
            if let Ok(text) = fs::read_to_string(entry.path().join("stat")) {
                let (user, system) = stat_times(&text)?;
                threads.push((tid, user + system));
            }
        }
        Ok(ProcessCpu { user, system, threads })
    }
}

/// User and system time in a `stat` file: its 14th and 15th field. The second field, the name, is in
/// parentheses and may have anything in it.
fn stat_times(text: &str) -> io::Result<(Duration, Duration)> {
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "a stat file without times");
    let (_, behind_name) = text.rsplit_once(')').ok_or_else(broken)?;
    let mut fields = behind_name.split_whitespace().skip(11).map(str::parse);
    let mut ticks = || fields.next().and_then(Result::ok).ok_or_else(broken);
    let duration = |ticks: u64| Duration::from_millis(ticks * 1000 / TICKS_PER_S);
    Ok((duration(ticks()?), duration(ticks()?)))
}

/// What a process used during a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessUse {
    /// CPU seconds in user mode.
    pub user_s: f64,
    /// CPU seconds in the kernel.
    pub system_s: f64,
    /// The share of the measurement that its busiest thread was running, 0 to 1.
    pub busiest_thread: f64,
    /// Resident memory at the end, in bytes.
    pub resident_bytes: u64,
    /// The most resident memory that it ever had, in bytes.
    pub peak_resident_bytes: u64,
}

impl ProcessUse {
    /// What a process has used since `before`, `elapsed` ago.
    pub(crate) fn since(pid: u32, before: &ProcessCpu, elapsed: Duration) -> io::Result<Self> {
        let now = ProcessCpu::read(pid)?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let busiest = now.threads.iter().map(|(tid, time)| {
            let known = before.threads.iter().find(|(other, _)| other == tid);
            time.saturating_sub(known.map_or(Duration::ZERO, |(_, time)| *time))
        });
        let busiest = busiest.max().unwrap_or_default().as_secs_f64();
        Ok(ProcessUse {
            user_s: now.user.saturating_sub(before.user).as_secs_f64(),
            system_s: now.system.saturating_sub(before.system).as_secs_f64(),
            busiest_thread: busiest / elapsed.as_secs_f64().max(f64::MIN_POSITIVE),
            resident_bytes: kibibytes(&status, "VmRSS:"),
            peak_resident_bytes: kibibytes(&status, "VmHWM:"),
        })
    }

    /// All its CPU time, in seconds.
    #[must_use]
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// A line of a `status` file, in bytes. A process that has ended has none.
fn kibibytes(status: &str, key: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

/// The energy counters of the processor packages (RAPL), where the kernel has them and lets us read
/// them.
#[derive(Clone, Debug)]
pub(crate) struct Energy {
    /// For each package: its counter, where it starts again, and what it was, in microjoules.
    packages: Vec<(PathBuf, u64, u64)>,
}

impl Energy {
    /// The counters now. `None` where there are none.
    pub(crate) fn read() -> Option<Self> {
        Energy::read_in("/sys/class/powercap".into())
    }

    fn read_in(directory: PathBuf) -> Option<Self> {
        let mut packages = Vec::new();
        for entry in fs::read_dir(directory).ok()?.filter_map(Result::ok) {
            let path = entry.path();
            let name = fs::read_to_string(path.join("name")).unwrap_or_default();
            if !name.starts_with("package-") {
                continue;
            }
            let range = number_in(path.join("max_energy_range_uj"))?;
            let counter = path.join("energy_uj");
            let now = number_in(counter.clone())?;
            packages.push((counter, range, now));
        }
        (!packages.is_empty()).then_some(Energy { packages })
    }

    /// Joules that were used since then. The counters start again at zero about once an hour, so a
    /// measurement has to be shorter.
    pub(crate) fn joules_since(&self) -> Option<f64> {
        let mut microjoules = 0;
        for (counter, range, before) in &self.packages {
            let now = number_in(counter.clone())?;
            microjoules += now.checked_sub(*before).unwrap_or_else(|| now + range - before);
        }
        Some(microjoules as f64 / 1e6)
    }
}

fn number_in(path: PathBuf) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_may_be_anything() {
        let stat = "7 (a) b ) c) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 1 0 100 1 1";
        let (user, system) = stat_times(stat).unwrap();
        assert_eq!((user, system), (Duration::from_millis(2500), Duration::from_millis(500)));
        assert!(stat_times("7 (a) S 1 7").is_err());
    }

    #[test]
    fn this_process_uses_memory_and_has_a_thread() {
        let pid = std::process::id();
        let before = ProcessCpu::read(pid).unwrap();
        assert!(!before.threads.is_empty());
        let used = ProcessUse::since(pid, &before, Duration::from_secs(1)).unwrap();
        assert!(used.resident_bytes > 100 * 1024, "{used:?}");
        assert!(used.peak_resident_bytes >= used.resident_bytes);
        assert!(ProcessCpu::read(u32::MAX).is_err());
    }

    #[test]
    fn energy_counters_start_again() {
        let directory = std::env::temp_dir().join(format!("bellrock-rapl-{}", std::process::id()));
        let package = directory.join("intel-rapl:0");
        fs::create_dir_all(&package).unwrap();
        let write = |name: &str, text: &str| fs::write(package.join(name), text).unwrap();
        write("name", "package-0\n");
        write("max_energy_range_uj", "10000000\n");
        write("energy_uj", "9000000\n");
        let before = Energy::read_in(directory.clone()).unwrap();
        write("energy_uj", "2000000\n");
        assert_eq!(before.joules_since(), Some(3.0));
        fs::remove_dir_all(&directory).unwrap();
        assert!(Energy::read_in(directory).is_none());
    }
}
