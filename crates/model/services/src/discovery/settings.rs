//! Settings of discovery.

use std::collections::BTreeSet;
use std::time::Duration;

use bellrock_api::SwitchPort;

use super::DiscoveryKey;

/// Settings of discovery.
#[derive(Clone, Debug)]
pub struct DiscoverySettings {
    /// Time between two announcements of a port: one round. In whole seconds, at least 1.
    pub interval: Duration,
    /// The secret key that signs announcements. `None` generates one at start.
    ///
    /// Configure one if several controllers share a network: each then takes the announcements of
    /// the others for genuine, though not for links.
    pub key: Option<DiscoveryKey>,
    /// Whether a new link that is much slower than the others stays down: it may be a relay between
    /// two hosts. It is reported in either case. For networks of links with similar latency.
    pub refuse_slow_links: bool,
    /// Ports that lead to other switches, as the operator states. A link between two of them is
    /// never taken for a relay, even if hosts were seen there or it is slow.
    pub trusted_ports: BTreeSet<SwitchPort>,
}

impl DiscoverySettings {
    /// Default interval.
    pub const INTERVAL: Duration = Duration::from_secs(5);
    /// Minimum and maximum interval.
    pub const INTERVALS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3600)];

    /// Returns the interval in seconds, within its bounds.
    pub(super) fn interval_s(&self) -> u32 {
        let [minimum, maximum] = Self::INTERVALS;
        self.interval.clamp(minimum, maximum).as_secs() as u32
    }
}

impl Default for DiscoverySettings {
    fn default() -> Self {
        DiscoverySettings {
            interval: Self::INTERVAL,
            key: None,
            refuse_slow_links: false,
            trusted_ports: BTreeSet::new(),
        }
    }
}
