//! A clock that goes on while the machine is suspended.
//!
//! etcd counts a lease on while this machine, often a virtual one, is suspended. `Instant` stands
//! still then, so a node that wakes up would believe for seconds that it still has what another one
//! has got.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time since the machine was booted, suspensions included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BootTime(Duration);

impl BootTime {
    pub(crate) fn now() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        BootTime(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0)))
    }

    /// The time that is so much later.
    pub(crate) fn after(self, time: Duration) -> Self {
        BootTime(self.0.saturating_add(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_with_the_time() {
        let before = BootTime::now();
        let waited = std::time::Instant::now();
        std::thread::sleep(Duration::from_millis(5));
        let least = waited.elapsed();
        let after = BootTime::now();
        assert!(after >= before.after(least), "{before:?} {after:?} {least:?}");
        assert!(before < before.after(Duration::from_nanos(1)));
    }
}
