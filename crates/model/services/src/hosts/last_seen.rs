//! When hosts were last seen, for operators.
//!
//! The published hosts do not have it: they would change with every packet.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bellrock_api::{HostId, Hosts};

/// Number of times kept beside those of the known hosts, until the others are dropped.
const SPARE: usize = 1024;

/// When the known hosts were last seen, on the controller's clock. Host tracking sees a host when
/// its packets reach the controller, when it answers a probe, and when its flows have counted
/// packets.
///
/// Shared by [`Network::extension`](bellrock_api::Network::extension).
#[derive(Debug, Default)]
pub struct LastSeen(Mutex<HashMap<HostId, Duration>>);

impl LastSeen {
    /// When the host was last seen. `None`: not by this controller, since it started.
    #[must_use]
    pub fn of(&self, host: HostId) -> Option<Duration> {
        self.times().get(&host).copied()
    }

    /// These hosts were seen. `known`: all hosts that are known now.
    pub(super) fn add(
        &self,
        seen: impl IntoIterator<Item = (HostId, Duration)>,
        known: impl FnOnce() -> Hosts,
    ) {
        let mut times = self.times();
        times.extend(seen);
        if times.len() > SPARE {
            let known = known();
            if times.len() > 2 * known.len() + SPARE {
                times.retain(|host, _| known.get(host.mac, host.vlan).is_some());
            }
        }
    }

    fn times(&self) -> std::sync::MutexGuard<'_, HashMap<HostId, Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::{Host, MacAddr, Port, SwitchPort};

    use super::*;

    fn host(n: u32) -> HostId {
        let [a, b, c, d] = n.to_be_bytes();
        HostId::new(MacAddr([2, 0, a, b, c, d]), None)
    }

    #[test]
    fn hosts_that_are_gone_are_dropped_in_time() {
        let at = SwitchPort::new(bellrock_api::Dpid(1), Port(1));
        let mut known = Hosts::default();
        known.insert(Host { id: host(0), at, addresses: Vec::new(), since: Duration::ZERO });
        let last = LastSeen::default();
        for n in 0..100_000u32 {
            last.add([(host(n), Duration::from_secs(n.into()))], || known.clone());
            assert!(last.times().len() <= 2 + SPARE, "{n}");
        }
        last.add([(host(0), Duration::from_secs(9))], || known.clone());
        assert_eq!(last.of(host(0)), Some(Duration::from_secs(9)));
        assert_eq!(last.of(host(1)), None);
    }
}
