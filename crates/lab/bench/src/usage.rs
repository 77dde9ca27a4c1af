//! Cost of a test: CPU time and memory of processes, CPU time of threads, energy of the machine.
//!
//! It reads `/proc` and `/sys` (proc(5), the kernel's powercap documentation), only before and
//! after a measurement.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Ticks per second of times in `/proc/PID/stat`. It is 100 on every Linux that Rust runs on: the
/// kernel converts to `USER_HZ`.
const TICKS_PER_S: u64 = 100;

/// Returns the CPU time of the calling thread so far.
pub(crate) fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// CPU time of a process and its threads at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessCpu {
    /// In steps of 10 ms. The division between user and system is sampled.
    user: Duration,
    system: Duration,
    /// By thread id. Exact to the nanosecond if the kernel reports it (at most a tick late),
    /// otherwise to the tick.
    threads: Vec<(u32, Duration)>,
    reads: Option<ReadCounter>,
}

/// Data that a process has read with read(2) and similar calls. recv(2) does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReadCounter {
    /// Number of calls, including those that returned no data.
    pub calls: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl ProcessCpu {
    /// Reads the CPU time of a process.
    pub(crate) fn read(pid: u32) -> io::Result<Self> {
        let (user, system) = stat_times(&fs::read_to_string(format!("/proc/{pid}/stat"))?)?;
        let mut threads = Vec::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            let entry = entry?;
            let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if let Some(time) = thread_time(&entry.path()) {
                threads.push((tid, time));
            }
        }
        // Only the owner and root may read it.
        let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        Ok(ProcessCpu { user, system, threads, reads: io_reads(&io) })
    }
}

/// Returns the CPU time of a thread, by its folder in `/proc`; `None` if it has ended.
fn thread_time(task: &Path) -> Option<Duration> {
    // A kernel without scheduler statistics has no such file, or zeros in it.
    let schedstat = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    let nanoseconds = schedstat.split_whitespace().next().and_then(|ns| ns.parse().ok());
    if let Some(ns) = nanoseconds.filter(|ns| *ns > 0) {
        return Some(Duration::from_nanos(ns));
    }
    let (user, system) = stat_times(&fs::read_to_string(task.join("stat")).ok()?).ok()?;
    Some(user + system)
}

/// Parses bytes and calls of an `io` file.
fn io_reads(text: &str) -> Option<ReadCounter> {
    let number =
        |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    Some(ReadCounter { calls: number("syscr:")?, bytes: number("rchar:")? })
}

/// Parses user and system time of a `stat` file: its 14th and 15th field. The second field, the
/// name, is in parentheses and may contain any character.
fn stat_times(text: &str) -> io::Result<(Duration, Duration)> {
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "a stat file without times");
    let (_, behind_name) = text.rsplit_once(')').ok_or_else(broken)?;
    let mut fields = behind_name.split_whitespace().skip(11).map(str::parse);
    let mut ticks = || fields.next().and_then(Result::ok).ok_or_else(broken);
    let duration = |ticks: u64| Duration::from_millis(ticks * 1000 / TICKS_PER_S);
    Ok((duration(ticks()?), duration(ticks()?)))
}

/// Resources that a process used during a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessUse {
    /// CPU seconds of all its threads, exact to the nanosecond if the kernel reports that.
    pub cpu_s: f64,
    /// User part of `cpu_s`. The kernel samples the division between both modes some hundred times
    /// per second.
    pub user_s: f64,
    /// Kernel part of `cpu_s`.
    pub system_s: f64,
    /// Data read with read(2), if known.
    pub reads: Option<ReadCounter>,
    /// Share of the measurement that its busiest thread ran, 0 to 1.
    pub busiest_thread: f64,
    /// Resident memory at the end, in bytes.
    pub resident_bytes: u64,
    /// Maximum resident memory so far, in bytes.
    pub peak_resident_bytes: u64,
}

impl ProcessUse {
    /// Returns the resources that a process has used since `before`, `elapsed` ago.
    pub(crate) fn since(pid: u32, before: &ProcessCpu, elapsed: Duration) -> io::Result<Self> {
        let now = ProcessCpu::read(pid)?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let used = |(tid, time): &(u32, Duration)| {
            let known = before.threads.iter().find(|(other, _)| other == tid);
            time.saturating_sub(known.map_or(Duration::ZERO, |(_, time)| *time))
        };
        let busiest = now.threads.iter().map(used).max().unwrap_or_default().as_secs_f64();
        let user = now.user.saturating_sub(before.user);
        let system = now.system.saturating_sub(before.system);
        // The time of threads that have ended is only in the sum of the process.
        let all_live =
            before.threads.iter().all(|(tid, _)| now.threads.iter().any(|(t, _)| t == tid));
        let cpu_s = match all_live {
            true => now.threads.iter().map(used).sum::<Duration>().as_secs_f64(),
            false => (user + system).as_secs_f64(),
        };
        let user_share = match (user + system).as_secs_f64() {
            0.0 => 0.0,
            sum => user.as_secs_f64() / sum,
        };
        let reads = now.reads.zip(before.reads).map(|(now, before)| ReadCounter {
            calls: now.calls.saturating_sub(before.calls),
            bytes: now.bytes.saturating_sub(before.bytes),
        });
        Ok(ProcessUse {
            cpu_s,
            user_s: cpu_s * user_share,
            system_s: cpu_s * (1.0 - user_share),
            reads,
            busiest_thread: busiest / elapsed.as_secs_f64().max(f64::MIN_POSITIVE),
            resident_bytes: kibibytes(&status, "VmRSS:"),
            peak_resident_bytes: kibibytes(&status, "VmHWM:"),
        })
    }

    /// Mean bytes per read(2); `None` if the process has read much less than `sent` with it: then
    /// it uses other calls.
    #[must_use]
    pub fn bytes_per_read(&self, sent: u64) -> Option<f64> {
        /// Sent and read bytes do not match exactly.
        const NEARLY: f64 = 0.5;
        let reads = self.reads.filter(|reads| reads.calls > 0)?;
        let bytes = reads.bytes as f64;
        (sent > 0 && bytes >= sent as f64 * NEARLY).then(|| bytes / reads.calls as f64)
    }
}

/// Reads a line of a `status` file, in bytes. A process that has ended has none.
fn kibibytes(status: &str, key: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

/// The energy counters of the processor packages (RAPL), if the kernel has them and this process
/// may read them.
#[derive(Clone, Debug)]
pub(crate) struct EnergyCounters {
    /// For each package: path of its counter, value at which it wraps, value at the start, in
    /// microjoules.
    packages: Vec<(PathBuf, u64, u64)>,
}

impl EnergyCounters {
    /// Reads the counters; `None` if there are none.
    pub(crate) fn read() -> Option<Self> {
        EnergyCounters::read_in("/sys/class/powercap".into())
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
        (!packages.is_empty()).then_some(EnergyCounters { packages })
    }

    /// Returns the joules since then. The counters wrap about once an hour, so a measurement has to
    /// be shorter.
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
    fn bytes_of_each_read_are_known_where_it_reads_by_read() {
        let text = "rchar: 4000\nwchar: 7\nsyscr: 4\nsyscw: 1\n";
        assert_eq!(io_reads(text), Some(ReadCounter { calls: 4, bytes: 4000 }));
        assert_eq!(io_reads(""), None);
        let pid = std::process::id();
        let before = ProcessCpu::read(pid).unwrap();
        let text = fs::read_to_string("/proc/self/stat").unwrap();
        let used = ProcessUse::since(pid, &before, Duration::from_secs(1)).unwrap();
        assert!(used.reads.unwrap().bytes >= text.len() as u64, "{used:?}");
        assert!(used.bytes_per_read(text.len() as u64).is_some());
        assert_eq!(used.bytes_per_read(1 << 40), None, "that came by recv");
        assert_eq!(used.bytes_per_read(0), None);
    }

    #[test]
    fn cpu_time_is_finer_than_a_tick() {
        let pid = std::process::id();
        let before = ProcessCpu::read(pid).unwrap();
        let start = thread_cpu();
        while thread_cpu() - start < Duration::from_millis(15) {}
        let used = ProcessUse::since(pid, &before, Duration::from_secs(1)).unwrap();
        // Other threads of this process run too. The counter is up to a tick late.
        assert!(used.cpu_s > 0.005, "{used:?}");
        assert!((used.user_s + used.system_s - used.cpu_s).abs() < 1e-9, "{used:?}");
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
        let before = EnergyCounters::read_in(directory.clone()).unwrap();
        write("energy_uj", "2000000\n");
        assert_eq!(before.joules_since(), Some(3.0));
        fs::remove_dir_all(&directory).unwrap();
        assert!(EnergyCounters::read_in(directory).is_none());
    }
}
