//! Hosts and their locations: plain data, published by host tracking.

use std::fmt;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bellrock_openflow::MacAddr;
use rpds::{HashTrieMapSync, RedBlackTreeSetSync};
use siphasher::sip::SipHasher13;

use crate::SwitchPort;

/// Identifies a host: its Ethernet address, in its VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId {
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// VLAN of its packets, if they have a tag with one (1 to 4095).
    pub vlan: Option<u16>,
}

impl HostId {
    /// Identifies the host with this address in this VLAN.
    #[must_use]
    pub fn new(mac: MacAddr, vlan: Option<u16>) -> Self {
        HostId { mac, vlan }
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.vlan {
            Some(vlan) => write!(f, "{} (VLAN {vlan})", self.mac),
            None => write!(f, "{}", self.mac),
        }
    }
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its Ethernet address and VLAN.
    pub id: HostId,
    /// Its port, which has no link to a switch.
    pub at: SwitchPort,
    /// Its IP addresses, in the order in which they were learnt.
    pub addresses: Vec<IpAddr>,
    /// Time since when it is known, on the controller's clock.
    pub since: Duration,
}

/// The known hosts, and their locations.
///
/// An immutable value. Successive versions share all unchanged parts, so each change can publish a
/// new version, however many hosts there are. A look-up takes no lock. A handler keeps a
/// [reader](crate::Watch::reader), which costs one comparison while nothing has changed.
///
/// ```
/// use std::time::Duration;
/// use bellrock_api::{Dpid, Host, HostId, Hosts, MacAddr, Port, SwitchPort};
///
/// let (mac, at) = (MacAddr([2, 0, 0, 0, 0, 1]), SwitchPort::new(Dpid(1), Port(4)));
/// let addresses = vec!["10.0.0.1".parse().unwrap()];
/// let mut hosts = Hosts::default();
/// hosts.insert(Host { id: HostId::new(mac, None), at, addresses, since: Duration::ZERO });
/// assert_eq!(hosts.by_ip("10.0.0.1".parse().unwrap(), None).unwrap().at, at);
/// assert_eq!(hosts.get(mac, None).unwrap().at, at);
/// assert!(hosts.get(mac, Some(7)).is_none());
/// ```
#[derive(Clone, Default)]
pub struct Hosts {
    by_id: HashTrieMapSync<HostId, Arc<Host>, Keys>,
    by_ip: HashTrieMapSync<(IpAddr, Option<u16>), HostId, Keys>,
    /// Sorted by Ethernet address, to find all VLANs of one.
    ids: RedBlackTreeSetSync<HostId>,
    /// Sorted by port, to find the hosts at a port and to iterate in the same order in each run.
    by_port: RedBlackTreeSetSync<(SwitchPort, HostId)>,
}

/// Secret keys of the hash. Hosts choose their addresses, and must not be able to choose colliding
/// ones.
#[derive(Clone, Copy, Debug, Default)]
struct Keys([u64; 2]);

impl BuildHasher for Keys {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        let Keys([a, b]) = *self;
        SipHasher13::new_with_keys(a, b)
    }
}

impl Hosts {
    /// An empty table with these hash keys. The keys must be secret where strangers choose
    /// addresses.
    #[must_use]
    pub fn with_keys(keys: [u64; 2]) -> Self {
        let keys = Keys(keys);
        Hosts {
            by_id: HashTrieMapSync::new_with_hasher_and_ptr_kind(keys),
            by_ip: HashTrieMapSync::new_with_hasher_and_ptr_kind(keys),
            ids: RedBlackTreeSetSync::new_sync(),
            by_port: RedBlackTreeSetSync::new_sync(),
        }
    }

    /// Finds a host by its Ethernet address, in its VLAN.
    #[must_use]
    pub fn get(&self, mac: MacAddr, vlan: Option<u16>) -> Option<&Host> {
        self.by_id.get(&HostId { mac, vlan }).map(|host| &**host)
    }

    /// Finds a host by its IP address, in its VLAN.
    #[must_use]
    pub fn by_ip(&self, ip: IpAddr, vlan: Option<u16>) -> Option<&Host> {
        let id = self.by_ip.get(&(ip, vlan))?;
        self.get(id.mac, id.vlan)
    }

    /// The hosts with this Ethernet address: one for each VLAN that uses it.
    pub fn of_mac(&self, mac: MacAddr) -> impl Iterator<Item = &Host> {
        let (first, last) = (HostId::new(mac, None), HostId::new(mac, Some(u16::MAX)));
        self.known(self.ids.range(first..=last))
    }

    /// The hosts at a port.
    pub fn at(&self, at: SwitchPort) -> impl Iterator<Item = &Host> {
        let first = HostId { mac: MacAddr::ZERO, vlan: None };
        let last = HostId { mac: MacAddr::BROADCAST, vlan: Some(u16::MAX) };
        let range = self.by_port.range((at, first)..=(at, last));
        self.known(range.map(|(_, id)| id))
    }

    /// All hosts, sorted by their ports.
    pub fn iter(&self) -> impl Iterator<Item = &Host> {
        self.known(self.by_port.iter().map(|(_, id)| id))
    }

    /// The hosts after the one with this port and id, in the order of [`Hosts::iter`]. `None`: all.
    pub fn after(&self, last: Option<(SwitchPort, HostId)>) -> impl Iterator<Item = &Host> {
        let begin = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.known(self.by_port.range((begin, Bound::Unbounded)).map(|(_, id)| id))
    }

    /// The hosts with these ids, in this order.
    fn known<'h>(
        &'h self,
        ids: impl Iterator<Item = &'h HostId>,
    ) -> impl Iterator<Item = &'h Host> {
        #[cfg(test)]
        let ids = ids.inspect(|_| tests::LOOKED_AT.with(|count| count.set(count.get() + 1)));
        ids.filter_map(|id| self.get(id.mac, id.vlan))
    }

    /// Number of hosts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.size()
    }

    /// Whether there are no hosts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Inserts a host, and replaces its earlier entry. Removes its IP addresses from other hosts of
    /// the VLAN.
    pub fn insert(&mut self, host: Host) {
        self.remove(host.id);
        for ip in &host.addresses {
            self.remove_address(*ip, host.id);
            self.by_ip.insert_mut((*ip, host.id.vlan), host.id);
        }
        self.by_port.insert_mut((host.at, host.id));
        self.ids.insert_mut(host.id);
        self.by_id.insert_mut(host.id, Arc::new(host));
    }

    /// Removes a host.
    pub fn remove(&mut self, id: HostId) -> Option<Arc<Host>> {
        let host = Arc::clone(self.by_id.get(&id)?);
        self.by_id.remove_mut(&id);
        self.by_port.remove_mut(&(host.at, id));
        self.ids.remove_mut(&id);
        for ip in &host.addresses {
            self.by_ip.remove_mut(&(*ip, id.vlan));
        }
        Some(host)
    }

    /// Removes the IP address from another host of the VLAN.
    fn remove_address(&mut self, ip: IpAddr, id: HostId) {
        let other = self.by_ip.get(&(ip, id.vlan)).filter(|other| **other != id);
        if let Some(host) = other.and_then(|other| self.by_id.get(other)) {
            let mut host = Host::clone(host);
            host.addresses.retain(|address| *address != ip);
            self.by_id.insert_mut(host.id, Arc::new(host));
        }
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use bellrock_openflow::Port;

    use super::*;
    use crate::Dpid;

    thread_local! {
        /// Number of hosts that look-ups have visited.
        pub(super) static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    fn host(n: u8, port: u32, addresses: &[&str]) -> Host {
        Host {
            id: HostId::new(MacAddr([2, 0, 0, 0, 0, n]), None),
            at: SwitchPort::new(Dpid(1), Port(port)),
            addresses: addresses.iter().map(|ip| ip.parse().unwrap()).collect(),
            since: Duration::ZERO,
        }
    }

    #[test]
    fn an_older_value_stays_what_it_was() {
        let mut hosts = Hosts::with_keys([1, 2]);
        hosts.insert(host(1, 1, &["10.0.0.1"]));
        let before = hosts.clone();
        hosts.insert(host(1, 2, &["10.0.0.1", "fe80::1"]));
        hosts.insert(host(2, 2, &[]));
        assert_eq!((before.len(), hosts.len()), (1, 2));
        let ip = "fe80::1".parse().unwrap();
        assert!(before.by_ip(ip, None).is_none());
        assert_eq!(hosts.by_ip(ip, None).unwrap().at.port, Port(2));
        let at = |port| SwitchPort::new(Dpid(1), Port(port));
        assert_eq!((before.at(at(1)).count(), hosts.at(at(1)).count()), (1, 0));
        assert_eq!(hosts.at(at(2)).map(|host| host.id.mac.0[5]).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_reader_goes_on_after_the_last_host_that_it_has_seen() {
        let mut hosts = Hosts::default();
        [(3, 1), (1, 2), (2, 2), (4, 3)]
            .into_iter()
            .for_each(|(n, port)| hosts.insert(host(n, port, &[])));
        let (mut last, mut seen) = (None, Vec::new());
        while let Some(next) = hosts.after(last).next() {
            last = Some((next.at, next.id));
            seen.push(next.id.mac.0[5]);
        }
        assert_eq!(seen, [3, 1, 2, 4]);
    }

    #[test]
    fn an_ethernet_address_has_a_host_in_each_vlan() {
        let mut hosts = Hosts::default();
        for (n, vlan) in [(1, Some(4095)), (1, None), (2, None), (1, Some(7)), (0, Some(1))] {
            let id = HostId::new(MacAddr([2, 0, 0, 0, 0, n]), vlan);
            hosts.insert(Host { id, ..host(n, 1, &[]) });
        }
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let vlans = |hosts: &Hosts| hosts.of_mac(mac).map(|host| host.id.vlan).collect::<Vec<_>>();
        assert_eq!(vlans(&hosts), [None, Some(7), Some(4095)]);
        hosts.remove(HostId::new(mac, Some(7)));
        assert_eq!(vlans(&hosts), [None, Some(4095)]);
    }

    /// `provisioning` looks up its hosts after each change of any host: that must not take longer
    /// with more hosts.
    #[test]
    fn nobody_looks_at_other_hosts_to_find_those_of_an_address_or_of_a_port() {
        let mut hosts = Hosts::default();
        for n in 0..=255 {
            for vlan in [None, Some(7)] {
                let id = HostId::new(MacAddr([2, 0, 0, 0, 0, n]), vlan);
                hosts.insert(Host { id, ..host(n, n.into(), &[]) });
            }
        }
        let looked_at = |found: usize| (found, LOOKED_AT.with(|count| count.take()));
        assert_eq!(looked_at(hosts.of_mac(MacAddr([2, 0, 0, 0, 0, 9])).count()), (2, 2));
        assert_eq!(looked_at(hosts.at(SwitchPort::new(Dpid(1), Port(9))).count()), (2, 2));
        assert_eq!(looked_at(hosts.of_mac(MacAddr([3, 0, 0, 0, 0, 9])).count()), (0, 0));
        assert_eq!(looked_at(hosts.iter().count()), (512, 512));
    }

    #[test]
    fn an_internet_address_is_of_one_host_and_goes_with_it() {
        let mut hosts = Hosts::default();
        let ip = "10.0.0.1".parse().unwrap();
        hosts.insert(host(1, 1, &["10.0.0.1", "10.0.0.9"]));
        hosts.insert(host(2, 2, &["10.0.0.1"]));
        assert_eq!(hosts.by_ip(ip, None).unwrap().id.mac.0[5], 2);
        let first = hosts.get(MacAddr([2, 0, 0, 0, 0, 1]), None).unwrap();
        assert_eq!(first.addresses, ["10.0.0.9".parse::<IpAddr>().unwrap()]);
        assert!(hosts.by_ip(ip, Some(3)).is_none());
        hosts.remove(host(2, 2, &[]).id);
        assert!(hosts.by_ip(ip, None).is_none());
        assert_eq!(hosts.iter().count(), 1);
    }
}
