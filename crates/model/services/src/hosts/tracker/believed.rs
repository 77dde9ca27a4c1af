//! Hosts that an app assumes before they have sent a packet.

use std::time::Duration;

use bellrock_api::{HostId, Topology};

use super::HostTracker;
use crate::hosts::believed::BelievedHosts;

impl HostTracker {
    /// Assumes these hosts at these ports, each once only: what is learnt later counts.
    pub(in crate::hosts) fn believe(
        &mut self,
        believed: &BelievedHosts,
        topology: &Topology,
        now: Duration,
    ) {
        for (host, at) in believed {
            if self.once_believed.insert(*host) && !self.entries.contains_key(host) {
                self.believed.insert(*host, *at);
            }
        }
        self.learn_believed(topology, now);
    }

    /// Learns assumed hosts whose ports are edge ports now.
    pub(super) fn learn_believed(&mut self, topology: &Topology, now: Duration) {
        let hosts: Vec<HostId> = self.believed.keys().copied().collect();
        for host in hosts {
            if self.believed.get(&host).is_some_and(|at| topology.is_edge(*at)) {
                self.learn_believed_host(host, topology, now);
            }
        }
    }

    /// Learns a host at its assumed port, unless no host can be there.
    pub(super) fn learn_believed_host(&mut self, host: HostId, topology: &Topology, now: Duration) {
        let Some(at) = self.believed.remove(&host) else { return };
        let is_down = topology.switches.contains_key(&at.dpid) && !topology.is_up(at);
        if !self.entries.contains_key(&host) && !topology.is_trunk(at) && !is_down {
            self.learn(host, at, now);
        }
    }
}
