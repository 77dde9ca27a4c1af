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

use bellrock_api::{Dpid, HostId, Network, Port, SwitchPort};
use bellrock_services::paths::Paths;

use super::flows::{FlowTraffic, look_for};

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
    ends: BTreeMap<HostId, BTreeSet<SwitchPort>>,
    /// Number of these places, as long as the network is not complete.
    places: usize,
    /// Switches whose flows were read.
    read: BTreeSet<Dpid>,
    /// Switches whose flows are being read, or will be when they return from a disconnect.
    unread: BTreeSet<Dpid>,
    /// Present as long as the network is not complete.
    waiting: Option<Settling>,
}

#[derive(Default)]
struct Settling {
    /// Time when discovery had probed all ports.
    settled: Option<Duration>,
    /// Time of the last change of paths or switches.
    since: Duration,
    /// Time of the next check, if the network may be complete then.
    look_at: Option<Duration>,
}

impl EarlierRun {
    pub(super) fn new(network: Network) -> Self {
        EarlierRun {
            network,
            ends: BTreeMap::new(),
            places: 0,
            read: BTreeSet::new(),
            unread: BTreeSet::new(),
            waiting: Some(Settling::default()),
        }
    }

    /// Reads the flows of a connected switch.
    pub(super) fn look_into(&mut self, dpid: Dpid) {
        if let Some(waiting) = &mut self.waiting {
            waiting.since = self.network.now();
        }
        self.unread.insert(dpid);
        look_for(&self.network, dpid);
    }

    /// Records the flows that were read.
    pub(super) fn found(&mut self, dpid: Dpid, flows: &[(FlowTraffic, Port)]) {
        self.unread.remove(&dpid);
        if self.waiting.is_none() {
            return;
        }
        if !self.read.insert(dpid) {
            // These flows replace the earlier ones of this switch.
            self.ends.retain(|_, ends| {
                ends.retain(|end| end.dpid != dpid);
                !ends.is_empty()
            });
            self.places = self.ends.values().map(BTreeSet::len).sum();
        }
        let room = MAX_ENDS_OF_A_SWITCH.min(MAX_ENDS.saturating_sub(self.places));
        for (traffic, port) in flows.iter().take(room) {
            let end = SwitchPort::new(dpid, *port);
            let is_new = self.ends.entry(traffic.destination()).or_default().insert(end);
            self.places += usize::from(is_new);
        }
    }

    /// Returns whether the flows of a connected switch are known.
    pub(super) fn is_read(&self, dpid: Dpid) -> bool {
        !self.unread.contains(&dpid)
    }

    /// Records that paths have changed.
    pub(super) fn paths_changed(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.since = self.network.now();
        }
    }

    /// Returns whether the network is complete. If not, [`EarlierRun::look_at`] returns when it may
    /// be.
    pub(super) fn is_over(&mut self, paths: &Paths) -> bool {
        let Some(waiting) = &mut self.waiting else { return true };
        waiting.look_at = None;
        if !paths.is_settled() {
            return false;
        }
        let now = self.network.now();
        let settled = *waiting.settled.get_or_insert(now);
        let last = settled + MAX_WAIT;
        let until = last.min(waiting.since.max(settled) + QUIET);
        if now >= last || (now >= until && self.unread.is_empty()) {
            self.waiting = None;
            return true;
        }
        // If only unread flows are missing, their arrival brings news; the maximum wait ends it.
        waiting.look_at = Some(if now < until { until } else { last });
        false
    }

    /// Time of the next check whether the network is complete, if nothing happens before.
    pub(super) fn look_at(&self) -> Option<Duration> {
        self.waiting.as_ref()?.look_at
    }

    /// The place that the flows to a host lead to, if hosts can be there.
    pub(super) fn place(&self, host: HostId, paths: &Paths) -> Option<SwitchPort> {
        let is_edge = |at: &&SwitchPort| paths.edge_ports(at.dpid).binary_search(&at.port).is_ok();
        self.ends.get(&host)?.iter().find(is_edge).copied()
    }

    /// The hosts that flows lead to, and their places.
    pub(super) fn places(&self, paths: &Paths) -> impl Iterator<Item = (HostId, SwitchPort)> {
        self.ends.keys().filter_map(|host| Some((*host, self.place(*host, paths)?)))
    }

    /// Forgets hosts that are known now, and in a complete network those that cannot be there.
    pub(super) fn forget(&mut self, is_known: impl Fn(HostId) -> bool, paths: &Paths) {
        let mut ends = std::mem::take(&mut self.ends);
        let waits = self.waiting.is_some();
        ends.retain(|host, ends| {
            let is_edge =
                |at: &SwitchPort| paths.edge_ports(at.dpid).binary_search(&at.port).is_ok();
            !is_known(*host) && (waits || ends.iter().any(is_edge))
        });
        self.ends = ends;
    }
}
