//! Hosts that an app believes in before anybody heard them.

use std::time::Duration;

use bellrock_api::{HostId, Topology};

use super::Tracker;
use crate::hosts::believed::BelievedHosts;

impl Tracker {
    /// Hosts are believed to be at these ports. Each is believed in once: what is known of it later counts.
    pub(in crate::hosts) fn believe(
        &mut self,
        all: &BelievedHosts,
        topology: &Topology,
        now: Duration,
    ) {
        for (host, at) in all {
            if self.were_believed.insert(*host) && !self.entries.contains_key(host) {
                self.believed.insert(*host, *at);
            }
        }
        self.learn_believed(topology, now);
    }

    /// Learns the hosts that are believed in where hosts can be now.
    pub(super) fn learn_believed(&mut self, topology: &Topology, now: Duration) {
        let hosts: Vec<HostId> = self.believed.keys().copied().collect();
        for host in hosts {
            if self.believed.get(&host).is_some_and(|at| topology.is_edge(*at)) {
                self.recall(host, topology, now);
            }
        }
    }

    /// Learns a host where it is believed to be, unless no host can be there.
    pub(super) fn recall(&mut self, host: HostId, topology: &Topology, now: Duration) {
        let Some(at) = self.believed.remove(&host) else { return };
        let is_down = topology.switches.contains_key(&at.dpid) && !topology.is_up(at);
        if !self.entries.contains_key(&host) && !topology.is_trunk(at) && !is_down {
            self.learn(host, at, now);
        }
    }
}
