//! What the kernel says about the machine.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
#[cfg(test)]
use std::path::Path;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A machine, below the root of its file system.
pub(super) struct Machine {
    root: PathBuf,
    /// Maximum number of open files of a process, which it may set itself.
    pub(super) max_files: u64,
    /// Whether programs of the machine may be asked: it is this one.
    is_this: bool,
}

/// Whether the time of day is kept right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockState {
    Synchronised,
    Free,
    /// Nobody says so.
    Unknown,
}

/// Who has a TCP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PortOwner {
    /// The process asked about.
    This,
    Other,
    /// The open files of the process cannot be read.
    Unknown,
}

impl Machine {
    /// This machine.
    pub(super) fn this() -> Self {
        use rustix::process::{Resource, getrlimit};
        let max_files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        Machine { root: "/".into(), max_files, is_this: true }
    }

    /// A machine with these files.
    #[cfg(test)]
    pub(super) fn at(root: &Path, max_files: u64) -> Self {
        Machine { root: root.into(), max_files, is_this: false }
    }

    /// The text of a file, without space around it.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        Some(fs::read_to_string(self.path(path)).ok()?.trim().to_owned())
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The names in a directory. Empty: there is none.
    pub(super) fn list(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The value of a line `KEY: VALUE`.
    pub(super) fn field(&self, path: &str, key: &str) -> Option<String> {
        let text = self.read(path)?;
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        value.map(|value| value.trim().to_owned())
    }

    /// The cores that this process may run on.
    pub(super) fn allowed_cores(&self) -> BTreeSet<usize> {
        let list = self.field("/proc/self/status", "Cpus_allowed_list");
        list.map(|list| cores(&list)).unwrap_or_default()
    }

    /// The share of the machine that its control group may use, in cores. `None`: all of it.
    pub(super) fn core_quota(&self) -> Option<f64> {
        let text = self.read("/sys/fs/cgroup/cpu.max")?;
        let (quota, period) = text.split_once(' ')?;
        let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
        (period > 0.0).then_some(quota / period)
    }

    /// Memory that programs can still get, in bytes.
    pub(super) fn available_memory(&self) -> Option<u64> {
        let text = self.field("/proc/meminfo", "MemAvailable")?;
        Some(text.strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
    }

    /// Whether the clock is synchronised: systemd's own time service leaves a file, and
    /// `timedatectl` reports what any service has told the kernel (adjtimex, `STA_UNSYNC`).
    pub(super) fn clock_state(&self) -> ClockState {
        if self.path("/run/systemd/timesync/synchronized").exists() {
            return ClockState::Synchronised;
        }
        if !self.is_this {
            return ClockState::Unknown;
        }
        let mut command = Command::new("timedatectl");
        command.args(["show", "--property=NTPSynchronized", "--value"]);
        let output = command.stdin(Stdio::null()).output().ok().filter(|it| it.status.success());
        match output.as_ref().map(|it| it.stdout.trim_ascii()) {
            Some(b"yes") => ClockState::Synchronised,
            Some(b"no") => ClockState::Free,
            _ => ClockState::Unknown,
        }
    }

    /// Whether `process` listens at the port of `address`.
    pub(super) fn port_owner(&self, address: SocketAddr, process: u32) -> PortOwner {
        let Ok(files) = fs::read_dir(self.path(&format!("/proc/{process}/fd"))) else {
            return PortOwner::Unknown;
        };
        let files = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
        let sockets: BTreeSet<String> =
            files.filter_map(|file| file.to_str().map(str::to_owned)).collect();
        let mut listeners = ["/proc/net/tcp", "/proc/net/tcp6"]
            .into_iter()
            .filter_map(|table| self.read(table))
            .flat_map(|table| listeners(&table, address.port()));
        match listeners.any(|inode| sockets.contains(&format!("socket:[{inode}]"))) {
            true => PortOwner::This,
            false => PortOwner::Other,
        }
    }

    /// The network cards with interrupts of their own, and the cores that these may go to.
    pub(super) fn card_interrupts(&self) -> Vec<(String, BTreeSet<usize>)> {
        let of_card = |card: String| {
            let numbers = self.list(&format!("/sys/class/net/{card}/device/msi_irqs"));
            let cores_of = |number: &String| {
                self.read(&format!("/proc/irq/{number}/effective_affinity_list"))
                    .or_else(|| self.read(&format!("/proc/irq/{number}/smp_affinity_list")))
            };
            let used = numbers.iter().filter_map(cores_of).flat_map(|list| cores(&list));
            let used: BTreeSet<_> = used.collect();
            (!used.is_empty()).then_some((card, used))
        };
        self.list("/sys/class/net").into_iter().filter_map(of_card).collect()
    }
}

/// State of a listening socket in the kernel's table of TCP sockets.
const LISTENING: &str = "0A";

/// The inodes of the sockets that listen at a port, from the kernel's table of TCP sockets.
fn listeners(table: &str, port: u16) -> Vec<String> {
    let inode = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(local, 16) == Ok(port) && *fields.get(3)? == LISTENING;
        is_it.then(|| fields.get(9).map(ToString::to_string)).flatten()
    };
    table.lines().skip(1).filter_map(inode).collect()
}

/// The cores of a list such as `0-2,5`.
fn cores(list: &str) -> BTreeSet<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// Writes a file of a machine, for tests.
#[cfg(test)]
pub(super) fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:19FD 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0
   1: 0100007F:19FD 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 20 4 30 10 -1
   2: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 100 0 0 10 0
";
        assert_eq!(listeners(table, 6653), ["4711"]);
        let root = crate::test_directory("doctor-ports");
        put(&root, "/proc/net/tcp", table);
        put(&root, "/proc/7/fd/0", "");
        std::os::unix::fs::symlink("socket:[4711]", root.join("proc/7/fd/5")).unwrap();
        let machine = Machine::at(&root, 1);
        let owner = |port, process| machine.port_owner(([127, 0, 0, 1], port).into(), process);
        assert_eq!(owner(6653, 7), PortOwner::This);
        assert_eq!(owner(8080, 7), PortOwner::Other);
        assert_eq!(owner(6653, 8), PortOwner::Unknown);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn lists_of_cores() {
        assert_eq!(cores("0-2,5"), BTreeSet::from([0, 1, 2, 5]));
        assert_eq!(cores("7"), BTreeSet::from([7]));
        assert!(cores("").is_empty() && cores("a-b").is_empty());
    }
}
