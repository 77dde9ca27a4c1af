//! Hosts of one controller of several, for their simulation.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use bellrock_api::{Dpid, HostId, Hosts, SwitchPort, Topology};

use super::HostTrackingSettings;
use super::frame::SenderAddresses;
use super::task::share;
use super::tracker::{HostTracker, Probe, Sighting};
use crate::exchange::{Exchange, HostInput, Peer};

/// Hosts of one controller of several.
pub(crate) struct TestHosts(HostTracker);

impl TestHosts {
    pub(crate) fn new() -> Self {
        TestHosts(HostTracker::new(HostTrackingSettings::default(), [1, 2]))
    }

    pub(crate) fn own(&mut self, own: BTreeSet<Dpid>, now: Duration) {
        self.0.set_own_switches(own, now);
    }

    pub(crate) fn input(&mut self, peer: Peer, input: HostInput, at: (&Topology, Duration)) {
        self.0.handle_input(peer, input, at.0, at.1);
    }

    pub(crate) fn topology(&mut self, topology: &Topology, now: Duration) {
        self.0.topology(topology, now);
    }

    /// A host states its address.
    pub(crate) fn seen(
        &mut self,
        (host, ip, at): (HostId, IpAddr, SwitchPort),
        topology: &Topology,
        now: Duration,
    ) {
        let addresses = SenderAddresses::Address(ip);
        self.0.handle_sighting(Sighting { host, at, addresses, time: now }, topology, now);
    }

    /// Does what is due, and gives `exchange` what others must know. Returns the hosts, if they
    /// have changed, and the hosts to ask where they are.
    pub(crate) fn turn(
        &mut self,
        exchange: &Exchange,
        topology: &Topology,
        now: Duration,
    ) -> (Option<Hosts>, Vec<(HostId, SwitchPort)>) {
        self.0.timers(topology, now);
        // No switch counts packets.
        for counted in std::mem::take(&mut self.0.counts) {
            self.0.handle_count(counted, None, topology, now);
        }
        let hosts = self.0.take_hosts();
        self.0.stale.clear();
        self.0.refused.clear();
        self.0.events.clear();
        share(self.0.take_shared(), exchange, now);
        let asked = |Probe { at, host, .. }| (host, at);
        (hosts, std::mem::take(&mut self.0.probes).into_iter().map(asked).collect())
    }
}
