//! Counts the hosts of each port.

use std::collections::{BTreeMap, BTreeSet};

use bellrock_api::{Dpid, HostId, MacAddr, Port, SwitchPort};

/// The hosts of each port, and the ports by their number of hosts.
#[derive(Debug, Default)]
pub(super) struct HostPorts {
    hosts: BTreeSet<(SwitchPort, HostId)>,
    counts: BTreeMap<SwitchPort, usize>,
    by_count: BTreeSet<(usize, SwitchPort)>,
}

impl HostPorts {
    pub(super) fn add(&mut self, at: SwitchPort, host: HostId) {
        if self.hosts.insert((at, host)) {
            self.set_count(at, self.count(at) + 1);
        }
    }

    pub(super) fn remove(&mut self, at: SwitchPort, host: HostId) {
        if self.hosts.remove(&(at, host)) {
            self.set_count(at, self.count(at) - 1);
        }
    }

    fn set_count(&mut self, at: SwitchPort, count: usize) {
        if let Some(before) = self.counts.remove(&at) {
            self.by_count.remove(&(before, at));
        }
        if count > 0 {
            self.counts.insert(at, count);
            self.by_count.insert((count, at));
        }
    }

    /// Returns the number of hosts at a port.
    pub(super) fn count(&self, at: SwitchPort) -> usize {
        self.counts.get(&at).copied().unwrap_or(0)
    }

    /// Returns the port with most hosts, and their number.
    pub(super) fn fullest(&self) -> Option<(usize, SwitchPort)> {
        self.by_count.last().copied()
    }

    /// Returns the ports that have hosts.
    pub(super) fn all(&self) -> impl Iterator<Item = SwitchPort> {
        self.counts.keys().copied()
    }

    /// Returns the ports of a switch that have hosts.
    pub(super) fn of_switch(&self, dpid: Dpid) -> impl Iterator<Item = SwitchPort> {
        let all = SwitchPort::new(dpid, Port(0))..=SwitchPort::new(dpid, Port(u32::MAX));
        self.counts.range(all).map(|(at, _)| *at)
    }

    /// Returns the hosts at a port.
    pub(super) fn hosts(&self, at: SwitchPort) -> impl Iterator<Item = HostId> {
        let first = HostId::new(MacAddr::ZERO, None);
        let from = self.hosts.range((at, first)..);
        from.take_while(move |(port, _)| *port == at).map(|(_, host)| *host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_counted() {
        let at = |port| SwitchPort::new(Dpid(1), Port(port));
        let host = |n| HostId::new(MacAddr([2, 0, 0, 0, 0, n]), None);
        let mut ports = HostPorts::default();
        assert_eq!(ports.fullest(), None);
        for (port, n) in [(1, 1), (1, 2), (2, 3), (1, 1)] {
            ports.add(at(port), host(n));
        }
        assert_eq!((ports.fullest(), ports.count(at(2))), (Some((2, at(1))), 1));
        assert_eq!(ports.hosts(at(1)).collect::<Vec<_>>(), [host(1), host(2)]);
        ports.remove(at(1), host(1));
        ports.remove(at(1), host(2));
        ports.remove(at(1), host(2));
        assert_eq!((ports.fullest(), ports.all().count()), (Some((1, at(2))), 1));
    }
}
