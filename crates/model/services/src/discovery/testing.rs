//! Links of one controller of several, for their simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{Dpid, Event, Hosts, Port, SwitchPort, Topology};

use super::links::{LinkTable, PortUp, ReceivedAnnouncement, ReportedPorts};
use crate::exchange::{Buckets, LinkInput, PassedAnnouncement, Peer, SwitchFacts};

/// Links of one controller of several.
pub(crate) struct TestLinks {
    links: LinkTable,
    /// Whether what other controllers have reported of ports outlives that they are masters of
    /// their switches: a fault that the simulation must find.
    keeps_reported: bool,
}

impl TestLinks {
    pub(crate) fn new(interval: Duration, keeps_reported: bool) -> Self {
        TestLinks { links: LinkTable::new(interval, false, BTreeSet::new()), keeps_reported }
    }

    fn spoilt<T>(&mut self, change: impl FnOnce(&mut LinkTable) -> T) -> T {
        let before: ReportedPorts = match self.keeps_reported {
            true => self.links.reported_ports(),
            false => Vec::new(),
        };
        let result = change(&mut self.links);
        self.links.restore_reported(&before);
        result
    }

    /// This controller is master of a switch, with these ports.
    pub(crate) fn switch(&mut self, dpid: Dpid, since: Duration, ports: &[Port], now: Duration) {
        let up = |port: &Port| PortUp { port: *port, rate_kbps: None };
        let ports = ports.iter().map(up).collect();
        self.spoilt(|links| links.switch(dpid, since, ports, now));
    }

    pub(crate) fn lost(&mut self, dpid: Dpid, hosts: &Hosts, now: Duration) {
        self.spoilt(|links| links.switch_lost(dpid, hosts, now));
    }

    pub(crate) fn port_down(&mut self, at: SwitchPort, now: Duration) {
        self.links.port_down(at, now);
    }

    pub(crate) fn input(
        &mut self,
        peer: Peer,
        input: LinkInput,
        hosts: &Hosts,
        now: Duration,
    ) -> Buckets {
        let is_switch = matches!(input, LinkInput::Switch(..));
        match is_switch {
            true => self.links.handle_input(peer, input, hosts, now),
            false => self.spoilt(|links| links.handle_input(peer, input, hosts, now)),
        }
    }

    /// An announcement of this controller came in: at a switch of its own, or at one of a peer.
    pub(crate) fn heard(
        &mut self,
        passed: PassedAnnouncement,
        by: Option<Peer>,
        hosts: &Hosts,
        now: Duration,
    ) {
        let PassedAnnouncement { from, to, nonce, sent, .. } = passed;
        if by.is_none_or(|peer| self.links.is_of(to.dpid, peer)) {
            let (arrived, latency, noise) = (now, None, Duration::ZERO);
            let received = ReceivedAnnouncement { from, to, nonce, sent, arrived, latency, noise };
            self.links.handle_announcement(received, hosts, now);
        }
    }

    pub(crate) fn timers(&mut self, now: Duration) {
        self.links.timers(now);
    }

    pub(crate) fn take_topology(&mut self) -> Option<Topology> {
        self.links.take_topology()
    }

    pub(crate) fn own_facts(&self) -> BTreeMap<Dpid, Arc<SwitchFacts>> {
        self.links.own_facts()
    }

    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        self.links.take_events()
    }
}
