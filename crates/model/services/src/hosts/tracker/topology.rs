//! What changes of the topology mean for hosts.

use std::time::Duration;

use bellrock_api::{HostGone, HostId, SwitchPort, Topology};

use super::{ASKED_ON_RETURN, HostTracker, ProbeReason};

impl HostTracker {
    /// Updates the hosts after the topology has changed. Hosts at trunk ports are forgotten, and
    /// hosts at ports that are down are gone. Hosts of a switch that is away stay, since it goes on
    /// forwarding. So do hosts at a port that is not judged yet.
    pub(in crate::hosts) fn topology(&mut self, topology: &Topology, now: Duration) {
        let is_down =
            |at: SwitchPort| topology.switches.contains_key(&at.dpid) && !topology.is_up(at);
        self.learn_believed(topology, now);
        let places: Vec<SwitchPort> = self.ports.all().collect();
        self.segment_places =
            topology.segments.values().filter_map(|ports| ports.first().copied()).collect();
        for at in places {
            let segment = topology.segment(at).and_then(|ports| ports.first().copied());
            if let Some(place) = segment {
                if place != at {
                    self.for_hosts_at(at, |tracker, host| tracker.move_host(host, place, now));
                }
            } else if topology.is_trunk(at) {
                self.for_hosts_at(at, |tracker, host| tracker.remove(host, HostGone::Link));
            } else if topology.is_edge(at) {
                if self.down_ports.remove(&at) {
                    self.port_returned(at, now);
                }
            } else if is_down(at) && self.down_ports.insert(at) {
                self.for_hosts_at(at, |tracker, host| tracker.mark_absent(host, HostGone::Port));
            }
        }
        self.forget_links(topology);
        self.down_ports.retain(|at| self.ports.count(*at) > 0);
        self.full_reported.retain(|at, _| topology.is_host_place(*at));
        self.impostor_reported.retain(|at, _| topology.is_up(*at));
    }

    fn for_hosts_at(&mut self, at: SwitchPort, mut visit: impl FnMut(&mut Self, HostId)) {
        let hosts: Vec<HostId> = self.ports.hosts(at).collect();
        hosts.into_iter().for_each(|host| visit(self, host));
    }

    /// A port is up again: probes its absent hosts, the last seen first.
    fn port_returned(&mut self, at: SwitchPort, now: Duration) {
        let absent = |host: &HostId| self.entries.get(host).filter(|entry| !entry.present);
        let mut hosts: Vec<(Duration, HostId)> = self
            .ports
            .hosts(at)
            .filter_map(|host| Some((absent(&host)?.last_seen, host)))
            .collect();
        hosts.sort_unstable_by(|a, b| b.cmp(a));
        for (_, host) in hosts.into_iter().take(ASKED_ON_RETURN) {
            self.probe(host, ProbeReason::Returned, now);
        }
    }
}
