//! How hosts are tracked.

use std::time::Duration;

/// How hosts are tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSettings {
    /// After how long without a packet a host is asked whether it is still there.
    pub max_age: Duration,
    /// Most hosts in all. Beyond it, a port with few hosts gets room from the one with most.
    pub max_hosts: usize,
    /// Most hosts at one port.
    pub max_hosts_per_port: usize,
}

impl Default for HostSettings {
    fn default() -> Self {
        HostSettings {
            max_age: Duration::from_secs(300),
            max_hosts: 100_000,
            max_hosts_per_port: 1024,
        }
    }
}
