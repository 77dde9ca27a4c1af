//! IP addresses of hosts: learnt, claimed by others, and taken over.

use std::net::IpAddr;
use std::time::Duration;

use bellrock_api::HostId;

use super::{HostTracker, MAX_ADDRESSES, ProbeReason};

impl HostTracker {
    /// A host has stated an address of its own.
    pub(super) fn handle_address(&mut self, host: HostId, ip: IpAddr, now: Duration) {
        let owner = self.hosts.by_ip(ip, host.vlan).map(|owner| owner.id);
        match owner {
            Some(owner) if owner == host => {}
            None => self.add_address(host, ip, now),
            Some(owner) if self.is_of_peer(owner) => self.pass_address_claim(ip, owner, host, now),
            Some(owner) => self.claim_address(ip, owner, host, now),
        }
    }

    /// Asks a host of this controller whether an address is its own, which another one states.
    pub(super) fn claim_address(&mut self, ip: IpAddr, owner: HostId, by: HostId, now: Duration) {
        let is_probed = self.entries.get(&owner).is_none_or(|entry| entry.probe.is_some());
        let is_paused = self.entries.get(&owner).is_some_and(|entry| now < entry.paused_until);
        if !is_probed && !is_paused {
            self.probe(owner, ProbeReason::Address(ip, by), now);
        }
    }

    pub(super) fn add_address(&mut self, host: HostId, ip: IpAddr, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host).filter(|entry| entry.present) else { return };
        if entry.addresses.len() == MAX_ADDRESSES {
            if !entry.may_replace(now) {
                return;
            }
            entry.addresses.remove(0);
        }
        entry.addresses.push(ip);
        self.publish(host);
    }

    /// A host does not answer for an address that another host states as its own.
    pub(super) fn transfer_address(&mut self, host: HostId, ip: IpAddr, by: HostId, now: Duration) {
        if let Some(entry) = self.entries.get_mut(&host) {
            entry.addresses.retain(|address| *address != ip);
            self.publish(host);
        }
        // The controller of the other host adds it, as soon as the host states it again.
        if !self.is_of_peer(by) {
            self.add_address(by, ip, now);
        }
    }
}
