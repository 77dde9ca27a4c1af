//! Flows that an earlier run has left in the switches, when the controller starts again.
//!
//! Traffic continues over these flows, and the controller does not see it, so it does not know the
//! hosts. It reads the flows, and takes each host to be where they lead, until it sees a packet of
//! the host. Nothing is changed before switches and links have been stable for [`QUIET`] and each
//! connected switch has reported its flows, or until [`MAX_WAIT`] has passed. Then paths are chosen
//! as in the last run, and only the differences are sent.
//!
//! Only when all switches are connected is it known whether there was an earlier run; the first one
//! may have lost its flows. So the app waits after each start.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellrock_api::{Dpid, HostId, Hosts, Network, Port, SwitchPort};
use bellrock_services::paths::Paths;
use bellrock_services::reserved::ReservedPorts;

use super::flows::{FlowTraffic, request_flows};

/// Time without a change after which a network counts as complete, after a start. Longer than
/// switches take to reconnect to their controller (Open vSwitch: 8 s).
const QUIET: Duration = Duration::from_secs(10);

/// Time after which it counts as complete in any case, measured from the moment when discovery has
/// probed all ports. So a flapping link does not freeze all flows for ever.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Maximum number of remembered places that flows lead to: of all switches, and of one switch. A
/// host beyond them is unknown until it sends a packet.
const MAX_ENDS: usize = 1 << 21;
const MAX_ENDS_OF_A_SWITCH: usize = 1 << 17;

/// See the [module](self).
pub(super) struct EarlierRun {
    network: Network,
    /// Output ports of the flows to each host, on the way to it and at its own switch.
    output_ports: BTreeMap<HostId, BTreeSet<SwitchPort>>,
    /// Number of these places, as long as the network is not complete.
    places: usize,
    /// Switches whose flows were read.
    read_switches: BTreeSet<Dpid>,
    /// Switches whose flows are being read, or will be when they return from a disconnect.
    unread_switches: BTreeSet<Dpid>,
    /// Present as long as the network is not complete.
    settling: Option<Settling>,
}

#[derive(Default)]
struct Settling {
    /// Time when discovery had probed all ports.
    settled_at: Option<Duration>,
    /// Time of the last change of paths or switches.
    since: Duration,
    /// Time of the next check, if the network may be complete then.
    next_check: Option<Duration>,
}

impl EarlierRun {
    pub(super) fn new(network: Network) -> Self {
        EarlierRun {
            network,
            output_ports: BTreeMap::new(),
            places: 0,
            read_switches: BTreeSet::new(),
            unread_switches: BTreeSet::new(),
            settling: Some(Settling::default()),
        }
    }

    /// Reads the flows of a connected switch.
    pub(super) fn read_flows(&mut self, dpid: Dpid) {
        if let Some(settling) = &mut self.settling {
            settling.since = self.network.now();
        }
        self.unread_switches.insert(dpid);
        request_flows(&self.network, dpid);
    }

    /// Records the flows that were read.
    pub(super) fn record_flows(&mut self, dpid: Dpid, flows: &[(FlowTraffic, Port)]) {
        self.unread_switches.remove(&dpid);
        if self.settling.is_none() {
            return;
        }
        if !self.read_switches.insert(dpid) {
            // These flows replace the earlier ones of this switch.
            self.output_ports.retain(|_, ports| {
                ports.retain(|port| port.dpid != dpid);
                !ports.is_empty()
            });
            self.places = self.output_ports.values().map(BTreeSet::len).sum();
        }
        let room = MAX_ENDS_OF_A_SWITCH.min(MAX_ENDS.saturating_sub(self.places));
        for (traffic, port) in flows.iter().take(room) {
            let output_port = SwitchPort::new(dpid, *port);
            let is_new =
                self.output_ports.entry(traffic.destination()).or_default().insert(output_port);
            self.places += usize::from(is_new);
        }
    }

    /// Returns whether the flows of a connected switch are known.
    pub(super) fn is_read(&self, dpid: Dpid) -> bool {
        !self.unread_switches.contains(&dpid)
    }

    /// Records that paths have changed.
    pub(super) fn paths_changed(&mut self) {
        if let Some(settling) = &mut self.settling {
            settling.since = self.network.now();
        }
    }

    /// Returns whether the network is complete. If not, [`EarlierRun::next_check`] returns when it
    /// may be.
    pub(super) fn is_over(&mut self, paths: &Paths) -> bool {
        let Some(settling) = &mut self.settling else { return true };
        settling.next_check = None;
        if !paths.is_settled() {
            return false;
        }
        let now = self.network.now();
        let settled_at = *settling.settled_at.get_or_insert(now);
        let deadline = settled_at + MAX_WAIT;
        let until = deadline.min(settling.since.max(settled_at) + QUIET);
        if now >= deadline || (now >= until && self.unread_switches.is_empty()) {
            self.settling = None;
            return true;
        }
        // If only unread flows are missing, their arrival is an event; the maximum wait ends it.
        settling.next_check = Some(if now < until { until } else { deadline });
        false
    }

    /// Time of the next check whether the network is complete, if nothing happens before.
    pub(super) fn next_check(&self) -> Option<Duration> {
        self.settling.as_ref()?.next_check
    }

    /// The place that the flows to a host lead to, if hosts can be there.
    pub(super) fn place(&self, host: HostId, paths: &Paths) -> Option<SwitchPort> {
        let is_edge = |at: &&SwitchPort| paths.edge_ports(at.dpid).binary_search(&at.port).is_ok();
        self.output_ports.get(&host)?.iter().find(is_edge).copied()
    }

    /// The hosts that flows lead to, and their places.
    pub(super) fn places(&self, paths: &Paths) -> impl Iterator<Item = (HostId, SwitchPort)> {
        self.output_ports.keys().filter_map(|host| Some((*host, self.place(*host, paths)?)))
    }

    /// Forgets hosts that are known now, and in a complete network those that cannot be there.
    pub(super) fn remove_hosts(&mut self, is_known: impl Fn(HostId) -> bool, paths: &Paths) {
        let mut output_ports = std::mem::take(&mut self.output_ports);
        let is_settling = self.settling.is_some();
        output_ports.retain(|host, ports| {
            let is_edge =
                |at: &SwitchPort| paths.edge_ports(at.dpid).binary_search(&at.port).is_ok();
            !is_known(*host) && (is_settling || ports.iter().any(is_edge))
        });
        self.output_ports = output_ports;
    }
}

/// The place of a host: the known place, otherwise where flows of the last run lead. `None` if its
/// frames belong to another app.
pub(super) fn place(
    host: HostId,
    hosts: &Hosts,
    reserved: &ReservedPorts,
    earlier_run: &EarlierRun,
    paths: &Paths,
) -> Option<SwitchPort> {
    let known = hosts.get(host.mac, host.vlan).map(|host| host.at);
    let at = known.or_else(|| earlier_run.place(host, paths));
    at.filter(|at| !reserved.is_reserved(*at, host.vlan))
}
