//! What the kernel says about the machine.

use std::collections::BTreeSet;
use std::fs;
#[cfg(test)]
use std::path::Path;
use std::path::PathBuf;

/// A machine, below the root of its file system.
pub(super) struct Machine {
    root: PathBuf,
    /// Maximum number of open files of a process, which it may set itself.
    pub(super) max_files: u64,
}

impl Machine {
    /// This machine.
    pub(super) fn this() -> Self {
        use rustix::process::{Resource, getrlimit};
        let max_files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        Machine { root: "/".into(), max_files }
    }

    /// A machine with these files.
    #[cfg(test)]
    pub(super) fn at(root: &Path, max_files: u64) -> Self {
        Machine { root: root.into(), max_files }
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
    fn lists_of_cores() {
        assert_eq!(cores("0-2,5"), BTreeSet::from([0, 1, 2, 5]));
        assert_eq!(cores("7"), BTreeSet::from([7]));
        assert!(cores("").is_empty() && cores("a-b").is_empty());
    }
}
