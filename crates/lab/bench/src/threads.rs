//! Cores and priorities of threads, and the limit of open files.

use core_affinity::CoreId;
use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::error::BenchError;

/// Open files beside switches: standard streams, pollers, `/proc`, and those of the surrounding
/// program.
const OTHER_FILES: u64 = 64;

/// What is added to the niceness of threads that only disturb the controller.
const ADDED_NICENESS: i32 = 10;

/// Lets the threads that measure go first: an attack on the same core must not delay their clock.
pub fn lower_priority() {
    // On Linux it is of this thread alone, and of those that it starts.
    let _ = nice(ADDED_NICENESS);
}

pub(crate) fn pin(core: usize) -> Result<(), BenchError> {
    match core_affinity::set_for_current(CoreId { id: core }) {
        true => Ok(()),
        false => Err(BenchError::NoSuchCore { core, usable: usable_cores() }),
    }
}

/// Pins the calling thread and its children to these cores; to none if the list is empty.
pub(crate) fn keep_on(cores: &[usize]) -> Result<(), BenchError> {
    if cores.is_empty() {
        return Ok(());
    }
    check_cores(cores)?;
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    sched_setaffinity(None, &set).map_err(BenchError::system("pin to cores"))
}

/// Returns the cores that this process may use.
pub fn usable_cores() -> Vec<usize> {
    core_affinity::get_core_ids().unwrap_or_default().iter().map(|core| core.id).collect()
}

/// Checks that these cores can be pinned to, before threads start.
pub fn check_cores(cores: &[usize]) -> Result<(), BenchError> {
    let usable = usable_cores();
    match cores.iter().find(|core| !usable.contains(core)) {
        Some(core) => Err(BenchError::NoSuchCore { core: *core, usable }),
        None => Ok(()),
    }
}

/// Raises the soft limit of open files, often 1,024, as far as needed: each connection is a file.
pub fn allow_files(switches: u32) -> Result<(), BenchError> {
    let needed = u64::from(switches) + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if let Some(hard) = limit.maximum.filter(|hard| *hard < needed) {
        return Err(BenchError::OpenFiles { switches, needed, limit: hard });
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_err(BenchError::system("raise the limit of open files"))
}
