//! Settings of host tracking.

use std::time::Duration;

/// Settings of host tracking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTrackingSettings {
    /// Time without a packet after which a host is probed.
    pub max_age: Duration,
    /// Maximum number of hosts. Above it, a new host at a less full port replaces one at the
    /// fullest.
    pub max_hosts: usize,
    /// Maximum number of hosts at one port.
    pub max_hosts_per_port: usize,
}

impl Default for HostTrackingSettings {
    fn default() -> Self {
        HostTrackingSettings {
            max_age: Duration::from_secs(300),
            max_hosts: 100_000,
            max_hosts_per_port: 1024,
        }
    }
}
