//! What an earlier run has left in the switches, when the controller starts again.
//!
//! Traffic goes on by the flows that are there, and the controller sees none of it: it does not know the
//! hosts. So the flows are read, and a host is taken to be where they lead, until it is heard. Nothing
//! is changed before switches and links have stayed the same for [`QUIET`] and each switch that came up has told its
//! flows, or for [`MAX_WAIT`] that was not so: then
//! paths are chosen as the last run has chosen them, and what has to be sent is what has changed meanwhile.
//!
//! Whether there was an earlier run shows when all switches are there; the first may be one that has lost its flows.
//! So it is waited after each start.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellrock_api::{Dpid, HostId, Network, Port, SwitchPort};
use bellrock_services::paths::Paths;

use super::flows::{Traffic, look_for};
use super::news::{Inbox, News};

/// How long a network has to stay as it is until it is taken to be all there, after a start: longer
/// than switches take to try their controller again (Open vSwitch: 8 s).
const QUIET: Duration = Duration::from_secs(10);

/// After how long it is taken to be all there in any case, from when discovery has asked all ports on. So a link
/// that comes and goes more often than every [`QUIET`] does not keep all flows as they are for ever.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Places that flows lead to which are remembered: of all switches, and of the flows of one. A host that only
/// further ones lead to is known when it is heard.
const MAX_ENDS: usize = 1 << 21;
const MAX_ENDS_OF_A_SWITCH: usize = 1 << 17;

/// See the [module](self).
pub(super) struct Left {
    network: Network,
    /// Where flows lead to hosts, and also where they lead on the way.
    ends: BTreeMap<HostId, BTreeSet<SwitchPort>>,
    /// How many places these are, as long as the network is not all there.
    places: usize,
    /// Switches whose flows were read.
    read: BTreeSet<Dpid>,
    /// Switches whose flows are being read, or will be when they come back: those that left before they told them.
    unread: BTreeSet<Dpid>,
    /// As long as the network is not all there.
    waiting: Option<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Since when discovery has asked all ports.
    settled: Option<Duration>,
    /// When paths or switches changed last.
    since: Duration,
    /// When it will be looked at again.
    alarm: Duration,
}

impl Left {
    pub(super) fn new(network: Network) -> Self {
        Left {
            network,
            ends: BTreeMap::new(),
            places: 0,
            read: BTreeSet::new(),
            unread: BTreeSet::new(),
            waiting: Some(Waiting::default()),
        }
    }

    /// Reads the flows of a switch that is up.
    pub(super) fn look_into(&mut self, dpid: Dpid) {
        if let Some(waiting) = &mut self.waiting {
            waiting.since = self.network.now();
        }
        self.unread.insert(dpid);
        look_for(&self.network, dpid);
    }

    /// What was read.
    pub(super) fn found(&mut self, dpid: Dpid, flows: &[(Traffic, Port)]) {
        self.unread.remove(&dpid);
        if self.waiting.is_none() {
            return;
        }
        if !self.read.insert(dpid) {
            // It has these now, and those no more.
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

    /// Whether it is known which flows a switch has that is up.
    pub(super) fn is_read(&self, dpid: Dpid) -> bool {
        !self.unread.contains(&dpid)
    }

    /// Paths have changed.
    pub(super) fn paths_changed(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.since = self.network.now();
        }
    }

    /// Whether the network is all there. If not, the inbox is told when it may be.
    pub(super) fn is_over(&mut self, paths: &Paths) -> bool {
        let Some(waiting) = &mut self.waiting else { return true };
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
        // Who waits for flows alone is told when they were read, or in the end.
        let until = if now < until { until } else { last };
        if waiting.alarm < until {
            waiting.alarm = until;
            let network = self.network.clone();
            self.network.spawn("wait for switches", async move {
                network.sleep_until(until).await;
                network.extension::<Inbox>().tell_in_time(News::Changed).await;
            });
        }
        false
    }

    /// Where the flows to a host lead, if hosts can be there.
    pub(super) fn place(&self, host: HostId, paths: &Paths) -> Option<SwitchPort> {
        let is_edge = |at: &&SwitchPort| paths.edge_ports(at.dpid).binary_search(&at.port).is_ok();
        self.ends.get(&host)?.iter().find(is_edge).copied()
    }

    /// The hosts that flows lead to, and where they are.
    pub(super) fn places(&self, paths: &Paths) -> impl Iterator<Item = (HostId, SwitchPort)> {
        self.ends.keys().filter_map(|host| Some((*host, self.place(*host, paths)?)))
    }

    /// Forgets the hosts that are known now, and, once the network is all there, those that cannot be where
    /// flows lead.
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
