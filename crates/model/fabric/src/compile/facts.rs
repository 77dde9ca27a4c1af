//! Facts: what is so at a switch now. The file says what is wanted.

use std::collections::{BTreeMap, BTreeSet};

use bellrock_openflow::MacAddr;

/// Abilities of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Number of its tables.
    pub tables: u8,
    /// It has groups.
    pub has_groups: bool,
    /// It has meters.
    pub has_meters: bool,
}

/// Those of Open vSwitch.
impl Default for Capabilities {
    fn default() -> Self {
        Capabilities { tables: 254, has_groups: true, has_meters: true }
    }
}

/// A host: an Ethernet address in a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostKey {
    /// VLAN id.
    pub vid: u16,
    /// Ethernet address.
    pub mac: MacAddr,
}

/// A fact about a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A port is up.
    PortUp(u32),
    /// A port is down, or the switch does not have it.
    PortDown(u32),
    /// A host is at a port.
    HostAt(HostKey, u32),
    /// A host is unknown.
    HostGone(HostKey),
    /// Hosts at a port are not learned for `learn_ban_timeout`.
    PortBanned(u32),
    /// Hosts at a port are learned again.
    PortAllowed(u32),
    /// Hosts in a VLAN are not learned for `learn_ban_timeout`.
    VlanBanned(u16),
    /// Hosts in a VLAN are learned again.
    VlanAllowed(u16),
    /// The address of a host that stays at its port came in by another port.
    Stray(MacAddr, u32),
    /// It is forgotten that the address came in by that port.
    StrayGone(MacAddr, u32),
}

/// The facts about a switch that its tables depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its abilities.
    pub capabilities: Capabilities,
    up: BTreeSet<u32>,
    hosts: BTreeMap<HostKey, u32>,
    hosts_by_port: BTreeSet<(u32, HostKey)>,
    banned_ports: BTreeSet<u32>,
    banned_vlans: BTreeSet<u16>,
    strays: BTreeSet<(MacAddr, u32)>,
}

impl Facts {
    /// A switch with these ports up, and nothing else known.
    #[must_use]
    pub fn with_ports(ports: impl IntoIterator<Item = u32>) -> Self {
        Facts { up: ports.into_iter().collect(), ..Facts::default() }
    }

    /// The same, of a switch with these abilities.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Capabilities) -> Self {
        Facts { capabilities, ..self }
    }

    /// Takes a fact in. Returns whether it is new.
    pub fn set(&mut self, fact: Fact) -> bool {
        match fact {
            Fact::PortUp(port) => self.up.insert(port),
            Fact::PortDown(port) => self.up.remove(&port),
            Fact::HostAt(host, port) => {
                let earlier = self.hosts.insert(host, port);
                if let Some(earlier) = earlier.filter(|earlier| *earlier != port) {
                    self.hosts_by_port.remove(&(earlier, host));
                }
                self.hosts_by_port.insert((port, host));
                earlier != Some(port)
            }
            Fact::HostGone(host) => {
                let port = self.hosts.remove(&host);
                port.is_some_and(|port| self.hosts_by_port.remove(&(port, host)))
            }
            Fact::PortBanned(port) => self.banned_ports.insert(port),
            Fact::PortAllowed(port) => self.banned_ports.remove(&port),
            Fact::VlanBanned(vid) => self.banned_vlans.insert(vid),
            Fact::VlanAllowed(vid) => self.banned_vlans.remove(&vid),
            Fact::Stray(mac, port) => self.strays.insert((mac, port)),
            Fact::StrayGone(mac, port) => self.strays.remove(&(mac, port)),
        }
    }

    /// Whether a port is up.
    #[must_use]
    pub fn is_up(&self, port: u32) -> bool {
        self.up.contains(&port)
    }

    /// The port that a host is at.
    #[must_use]
    pub fn port_of(&self, host: HostKey) -> Option<u32> {
        self.hosts.get(&host).copied()
    }

    /// All hosts, with their ports.
    pub fn hosts(&self) -> impl Iterator<Item = (HostKey, u32)> + '_ {
        self.hosts.iter().map(|(host, port)| (*host, *port))
    }

    /// Hosts in order, from one on.
    pub(crate) fn hosts_from(&self, first: HostKey) -> impl Iterator<Item = (HostKey, u32)> + '_ {
        self.hosts.range(first..).map(|(host, port)| (*host, *port))
    }

    /// The hosts at a port.
    pub fn hosts_at(&self, port: u32) -> impl Iterator<Item = HostKey> + '_ {
        let first = HostKey { vid: 0, mac: MacAddr::ZERO };
        let last = HostKey { vid: u16::MAX, mac: MacAddr::BROADCAST };
        self.hosts_by_port.range((port, first)..=(port, last)).map(|(_, host)| *host)
    }

    /// The ports without learning.
    pub fn banned_ports(&self) -> impl Iterator<Item = u32> + '_ {
        self.banned_ports.iter().copied()
    }

    /// The VLANs without learning.
    pub fn banned_vlans(&self) -> impl Iterator<Item = u16> + '_ {
        self.banned_vlans.iter().copied()
    }

    /// The addresses at ports where they do not belong.
    pub fn strays(&self) -> impl Iterator<Item = (MacAddr, u32)> + '_ {
        self.strays.iter().copied()
    }

    pub(crate) fn is_port_banned(&self, port: u32) -> bool {
        self.banned_ports.contains(&port)
    }

    pub(crate) fn is_vlan_banned(&self, vid: u16) -> bool {
        self.banned_vlans.contains(&vid)
    }

    pub(crate) fn is_stray(&self, mac: MacAddr, port: u32) -> bool {
        self.strays.contains(&(mac, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_at_one_port_at_a_time() {
        let host = HostKey { vid: 100, mac: MacAddr([2, 0, 0, 0, 0, 1]) };
        let mut facts = Facts::default();
        assert!(facts.set(Fact::HostAt(host, 1)) && !facts.set(Fact::HostAt(host, 1)));
        assert!(facts.set(Fact::HostAt(host, 2)));
        assert_eq!((facts.hosts_at(1).count(), facts.hosts_at(2).count()), (0, 1));
        assert!(facts.set(Fact::HostGone(host)) && !facts.set(Fact::HostGone(host)));
        assert_eq!(facts, Facts::default());
    }
}
