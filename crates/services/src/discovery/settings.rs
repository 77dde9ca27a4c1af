//! How discovery is set.

use std::collections::BTreeSet;
use std::time::Duration;

use bellrock_api::SwitchPort;

use super::Key;

/// How links are discovered.
#[derive(Clone, Debug)]
pub struct DiscoverySettings {
    /// How often each port is asked: a round. In whole seconds, at least one.
    pub interval: Duration,
    /// The secret that announcements are signed with. `None`: one is made at start.
    ///
    /// One that is configured is for controllers of one network, so that they take each other's
    /// announcements for genuine ones, though not for links.
    pub key: Option<Key>,
    /// Whether a new link that is much slower than the others stays down: it may be a relay between
    /// two hosts. It is reported in either case. For networks whose links are much alike.
    pub refuse_slow_links: bool,
    /// Ports that lead to other switches, by the operator's word. A link between two of them is never taken for a relay,
    /// whatever hosts were seen there and however slow it is.
    pub trusted_ports: BTreeSet<SwitchPort>,
}

impl DiscoverySettings {
    /// How often each port is asked if nothing is said.
    pub const INTERVAL: Duration = Duration::from_secs(5);
    /// Shortest and longest interval.
    pub const INTERVALS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3600)];

    /// The interval in seconds, within its bounds.
    pub(super) fn interval_s(&self) -> u32 {
        let [least, most] = Self::INTERVALS;
        self.interval.clamp(least, most).as_secs() as u32
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
