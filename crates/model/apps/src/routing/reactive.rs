//! Flows between two hosts, installed when they talk.
//!
//! Each switch on their path has two flows, one in each direction. They match both addresses and
//! the VLAN, which also select one of several shortest paths (equal-cost multipath).
//!
//! # When a path changes
//! A link fails, a host moves, a shorter path appears: a pair's flows on changed paths are updated
//! in stages, from the destination on. Each stage is confirmed before the next
//! ([`PairRoute::stages`]). So an updated flow leads to updated flows, and to the destination. Any
//! other flow leads where it led before, or into the new path: never in a circle. All changes of a
//! switch are sent together. A slow switch delays only the pairs that have flows there
//! ([`changes`](super::changes)). Unneeded flows are removed when all others are confirmed and
//! [`DRAIN`] has passed: packets on their way have then left them, and removals do not delay
//! updates.
//!
//! # Failures
//! Until a switch has confirmed a change, its state is unknown: the flow is sent again, or removed,
//! in any case. If a flow was not confirmed, the pair's flows that lead to it stay unchanged. If a
//! flow was refused, an older flow there is removed, and the other flows are changed: the
//! controller delivers the packets that arrive there. Both cases are retried after a pause, which
//! doubles each time ([`Backoff`]). The flows of a switch that reconnects are read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{
    Backoff, Change, ChangeOutcome, Dpid, Error, Flow, HostId, Hosts, Latencies, Network,
    NoConfirmation, Port, ProgramFuture, SharedCounter, Snapshot, SwitchPort, Watch,
};
use bellrock_services::hosts::believe;
use bellrock_services::paths::{Paths, paths};
use bellrock_services::programming::DRAIN;
use bellrock_services::reserved::{ReservedPorts, reserved_ports};
use bellrock_services::wait::wait_until;
use futures_lite::FutureExt;

use super::changes::{DueEdit, EditStage, FlowChanges, FlowEdit};
use super::earlier_run::{EarlierRun, place};
use super::flows::{self, FlowTraffic, HostPair};
use super::index::RouteIndex;
use super::queue::{RoutingEvent, RoutingQueue};

/// Maximum number of pairs with flows. The controller delivers all packets of further pairs.
const MAX_ROUTES: usize = 1 << 18;

/// Maximum number of pairs adopted from the flows of one switch, so that one switch cannot use up
/// [`MAX_ROUTES`]. Flows of further pairs are removed.
const MAX_NEW_ROUTES: usize = 1 << 16;

/// Minimum time before the flows of a pair are sent again, whatever packets come.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Maximum number of events handled before paths are checked again.
const EVENTS_PER_TURN: usize = 1024;

/// A switch on a path, and the path's output port there.
type PathStep = (Dpid, Port);

/// Stands for the output port of a flow that may lead anywhere, or may not exist.
const UNKNOWN: Port = Port::ANY;

/// Keeps flows between hosts that talk. Runs as a task.
pub(super) async fn run(network: Network, idle_timeout_s: u16) {
    let inbox = network.extension::<RoutingQueue>();
    let mut routes = PairRoutes::new(network, idle_timeout_s);
    loop {
        let first = routes.next(&inbox).await;
        for (dpid, flow_mods) in inbox.take_connected() {
            routes.flow_mods.insert(dpid, flow_mods);
            routes.earlier_run.read_flows(dpid);
        }
        routes.handle_outcomes();
        let further = std::iter::from_fn(|| inbox.receiver.try_recv().ok());
        first
            .into_iter()
            .chain(further)
            .take(EVENTS_PER_TURN)
            .for_each(|event| routes.handle(event));
        routes.update();
        routes.send_ready();
    }
}

/// The known flows of a pair.
#[derive(Default)]
struct PairRoute {
    /// The wanted path, from the destination on. Empty for flows that were found.
    path: Vec<PathStep>,
    /// Existing flows, in any order; with [`UNKNOWN`] if a flow may exist.
    steps: Vec<PathStep>,
    /// Whether both hosts have been known since, or flows were sent. False after a restart.
    is_known: bool,
    sent: Duration,
    /// Whether a change has failed since the last changes began.
    has_failed: bool,
    /// Pause after a failure, before the next attempt.
    backoff: Backoff,
    /// Time when packets have left the unneeded flows, if all others are confirmed.
    drained_at: Option<Duration>,
}

impl PairRoute {
    /// Records the flow in a switch.
    fn set(&mut self, dpid: Dpid, port: Option<Port>) {
        self.steps.retain(|(at, _)| *at != dpid);
        self.steps.extend(port.map(|port| (dpid, port)));
    }

    /// Returns whether the flows are exactly those of the path.
    fn is_right(&self) -> bool {
        self.path.len() == self.steps.len()
            && self.path.iter().all(|step| self.steps.contains(step))
    }

    /// Removals of the unneeded flows.
    fn removals(&self) -> EditStage {
        let is_kept = |dpid: Dpid| self.path.iter().any(|(at, _)| *at == dpid);
        let unneeded = self.steps.iter().filter(|(at, _)| !is_kept(*at));
        unneeded.map(|(at, _)| FlowEdit { at: *at, port: None }).collect()
    }

    /// Changes that make the flows follow the path, from the destination on.
    ///
    /// Switches without a flow of the pair form one stage, up to the next switch that has another
    /// flow or is unread. That switch is a stage by itself, after their confirmation. An unchanged
    /// switch of a stage sends packets only to the controller. From a changed switch they reach the
    /// destination or an unchanged switch. So the order within a stage does not matter.
    fn stages(&self, is_read: impl Fn(Dpid) -> bool) -> Vec<EditStage> {
        let (mut stages, mut new) = (Vec::new(), EditStage::new());
        for step @ (at, port) in &self.path {
            let edit = FlowEdit { at: *at, port: Some(*port) };
            match self.steps.iter().find(|(present, _)| present == at) {
                Some(there) if there == step => {}
                None if is_read(*at) => new.push(edit),
                _ => stages.extend([std::mem::take(&mut new), vec![edit]]),
            }
        }
        stages.push(new);
        stages.retain(|stage| !stage.is_empty());
        stages
    }
}

struct PairRoutes {
    network: Network,
    idle_timeout_s: u16,
    watch: (Watch<Paths>, Watch<Hosts>),
    /// State that `routes` follow.
    paths: Snapshot<Paths>,
    hosts: Snapshot<Hosts>,
    /// Places where routes may not lead.
    reserved: Snapshot<ReservedPorts>,
    routes: BTreeMap<HostPair, PairRoute>,
    index: RouteIndex,
    /// Pairs whose route may be out of date.
    stale: BTreeSet<HostPair>,
    changes: FlowChanges,
    /// Times at which pairs are checked again, to retry a failure or to remove unneeded flows.
    checks: BTreeSet<(Duration, HostPair)>,
    earlier_run: EarlierRun,
    /// Whether the network is complete, so that flows of an earlier run may be changed.
    is_whole: bool,
    /// Counts the flows sent to each switch.
    flow_mods: BTreeMap<Dpid, Arc<SharedCounter>>,
}

impl PairRoutes {
    fn new(network: Network, idle_timeout_s: u16) -> Self {
        let watch = (paths(&network), network.hosts().clone());
        PairRoutes {
            paths: watch.0.load(),
            hosts: watch.1.load(),
            reserved: reserved_ports(&network).load(),
            watch,
            idle_timeout_s,
            routes: BTreeMap::new(),
            index: RouteIndex::default(),
            stale: BTreeSet::new(),
            changes: FlowChanges::default(),
            checks: BTreeSet::new(),
            is_whole: false,
            earlier_run: EarlierRun::new(network.clone()),
            flow_mods: BTreeMap::new(),
            network,
        }
    }

    /// Waits for an event, for changes of paths and hosts, for outcomes of changes, or until a
    /// check is due.
    async fn next(&mut self, inbox: &RoutingQueue) -> Option<RoutingEvent> {
        let mut event = None;
        let due = [self.checks.first().map(|(at, _)| *at), self.earlier_run.next_check()];
        let due = wait_until(&self.network, due.into_iter().flatten().min());
        let (paths, hosts) = &self.watch;
        let network_changes =
            paths.newer(self.paths.version()).or(hosts.newer(self.hosts.version()));
        let next_event = async { event = inbox.receiver.recv().await.ok() };
        self.changes.any_finished().or(due).or(network_changes).or(next_event).await;
        event
    }

    fn handle(&mut self, event: RoutingEvent) {
        match event {
            // It is in the inbox's own list.
            RoutingEvent::SwitchUp => {}
            RoutingEvent::Talking(pair) => self.install(pair),
            RoutingEvent::Silent(pair, dpid) => self.flow_removed(pair, dpid),
            RoutingEvent::Found(dpid, flows) => self.adopt(dpid, flows),
        }
    }

    /// The path of a pair, from the destination on. `None` if a host is unknown or no path exists.
    fn path(&self, pair: HostPair) -> Option<Vec<PathStep>> {
        let (from, to) = (self.place(pair.from)?, self.place(pair.to)?);
        if self.paths.segment(from).is_some_and(|ports| ports.contains(&to)) {
            // They reach each other on their segment.
            return None;
        }
        let (from, to) =
            (self.paths.attachment(from, to.dpid).dpid, self.paths.attachment(to, from.dpid));
        self.paths.distance(from, to.dpid)?;
        let hops = self.paths.walk(from, to.dpid, FlowTraffic::Between(pair).key());
        let mut steps: Vec<PathStep> = hops.map(|hop| (hop.from.dpid, hop.from.port)).collect();
        steps.push((to.dpid, to.port));
        steps.reverse();
        Some(steps)
    }

    fn place(&self, host: HostId) -> Option<SwitchPort> {
        place(host, &self.hosts, &self.reserved, &self.earlier_run, &self.paths)
    }

    /// Adds the route of a pair that has none.
    fn insert(&mut self, pair: HostPair, route: PairRoute) {
        let (hosts, earlier_run, paths) = (&self.hosts, &self.earlier_run, &self.paths);
        let reserved = &self.reserved;
        self.index.insert(pair, |host| place(host, hosts, reserved, earlier_run, paths));
        self.routes.insert(pair, route);
    }

    /// Installs flows for two hosts that talk. The controller delivers packets until the flows
    /// exist, so nothing waits for confirmations.
    fn install(&mut self, pair: HostPair) {
        let now = self.network.now();
        match self.routes.get(&pair) {
            None if self.routes.len() >= MAX_ROUTES => return,
            None => {}
            Some(route) => {
                let is_recent = now < route.sent + AGAIN_AFTER || !route.backoff.is_over(now);
                if is_recent || self.is_earlier(route) || self.changes.has_pending(pair) {
                    return;
                }
                if !route.is_right() {
                    // It has flows; `update` changes them in stages.
                    self.stale.insert(pair);
                    return;
                }
            }
        }
        let Some(path) = self.path(pair) else { return };
        for step in &path {
            // A later packet shows that the flow is missing.
            drop(self.send(step.0, vec![self.add(pair, *step)]));
        }
        let steps = path.clone();
        let route = PairRoute { path, steps, is_known: true, sent: now, ..PairRoute::default() };
        self.insert(pair, route);
    }

    /// Returns whether it is a route of an earlier run that may not be changed yet.
    fn is_earlier(&self, route: &PairRoute) -> bool {
        !route.is_known && !self.is_whole
    }

    /// Moves flows to new paths after changes of paths or hosts.
    fn update(&mut self) {
        let (paths, hosts) = (self.watch.0.load(), self.watch.1.load());
        let is_new_path = paths.version() != self.paths.version();
        let is_new_host = hosts.version() != self.hosts.version();
        let before = std::mem::replace(&mut self.paths, paths);
        self.hosts = hosts;
        self.reserved = reserved_ports(&self.network).load();
        if is_new_path {
            self.earlier_run.paths_changed();
        }
        let was_whole =
            std::mem::replace(&mut self.is_whole, self.earlier_run.is_over(&self.paths));
        let is_first = was_whole != self.is_whole;
        if is_new_path || is_new_host || is_first {
            self.find_stale(&before);
        }
        if is_first {
            self.stale.extend(self.routes.keys());
            // Other apps, and operators, know these hosts from now on too.
            believe(&self.network, self.earlier_run.places(&self.paths));
        }
        self.mark_due();
        for pair in std::mem::take(&mut self.stale) {
            self.update_pair(pair);
        }
    }

    /// Finds the pairs with moved hosts, and those between switches with changed paths.
    fn find_stale(&mut self, before: &Snapshot<Paths>) {
        let (hosts, paths) = (&self.hosts, &self.paths);
        if self.is_whole {
            self.earlier_run.remove_hosts(|host| hosts.get(host.mac, host.vlan).is_some(), paths);
        }
        let (earlier_run, reserved) = (&self.earlier_run, &self.reserved);
        let place = |host| place(host, hosts, reserved, earlier_run, paths);
        self.stale.extend(self.index.update_hosts(place));
        if before.version() != paths.version() {
            let changes = paths.changes_since(before);
            self.stale.extend(self.index.pairs_between(|from, to| changes.affect(from, to)));
            if paths.segments().next().is_some() {
                // Hosts on segments may be nearer by another port now.
                let is_on_segment =
                    |host| place(host).is_some_and(|at| paths.segment(at).is_some());
                let pairs = self.routes.keys().copied();
                self.stale.extend(
                    pairs.filter(|pair| is_on_segment(pair.from) || is_on_segment(pair.to)),
                );
            }
        }
    }

    /// Marks the pairs that are due for a check.
    fn mark_due(&mut self) {
        let now = self.network.now();
        while let Some((at, pair)) = self.checks.first().copied().filter(|(at, _)| *at <= now) {
            self.checks.remove(&(at, pair));
            self.stale.insert(pair);
        }
    }

    /// Moves a pair's flows to its current path.
    fn update_pair(&mut self, pair: HostPair) {
        let Some(route) = self.routes.get(&pair).filter(|route| !self.is_earlier(route)) else {
            return;
        };
        let path = match self.path(pair) {
            Some(path) => path,
            None if self.place(pair.from).is_none() || self.place(pair.to).is_none() => Vec::new(),
            // There is no path now: keep the flows.
            None => return,
        };
        let now = self.network.now();
        if route.path == path && (self.changes.has_pending(pair) || !route.backoff.is_over(now)) {
            return;
        }
        let network = &self.network;
        let Some(route) = self.routes.get_mut(&pair) else { return };
        if !route.is_known {
            // Another controller of the cluster has installed it, or still keeps it: its other
            // flows are taken to be there. If one is missing, a packet shows it.
            let is_elsewhere = |dpid| network.switch(dpid).is_none();
            let is_reachable = |dpid| network.reachable(dpid).is_some();
            let others = path.iter().filter(|(at, _)| is_elsewhere(*at) && is_reachable(*at));
            others.for_each(|(at, port)| route.set(*at, Some(*port)));
        }
        (route.path, route.is_known, route.has_failed) = (path, true, false);
        let mut stages = route.stages(|dpid| self.earlier_run.is_read(dpid));
        if !stages.is_empty() {
            (route.sent, route.drained_at) = (now, None);
        } else if route.path.is_empty() || route.drained_at.is_some_and(|at| at <= now) {
            stages.push(route.removals());
        }
        if !stages.is_empty() || self.changes.has_pending(pair) {
            self.changes.begin(pair, stages);
        }
        if !self.changes.has_pending(pair) {
            self.finish_changes(pair);
        }
    }

    /// Sends the changes that are ready.
    fn send_ready(&mut self) {
        for (dpid, dues) in self.changes.take_ready() {
            let mut changes = Vec::with_capacity(dues.len());
            for DueEdit { pair, edit, .. } in &dues {
                if let Some(route) = self.routes.get_mut(pair) {
                    route.set(dpid, Some(UNKNOWN));
                }
                let removal = || Change::Remove(Flow::new(FlowTraffic::Between(*pair).matching()));
                changes.push(edit.port.map_or_else(removal, |port| self.add(*pair, (dpid, port))));
            }
            let program = self.send(dpid, changes);
            self.changes.sent(dpid, dues, program);
        }
    }

    /// Handles the outcomes of changes.
    fn handle_outcomes(&mut self) {
        for (DueEdit { pair, edit: FlowEdit { at, port }, .. }, outcome) in
            self.changes.take_finished()
        {
            let Some(route) = self.routes.get_mut(&pair) else { continue };
            let may_go_on = match outcome {
                ChangeOutcome::Installed => {
                    route.set(at, port);
                    true
                }
                // Its flows are read when it returns.
                ChangeOutcome::NotSent(Error::UnknownSwitch(_) | Error::NoMaster(_))
                | ChangeOutcome::Unknown(NoConfirmation::Disconnected) => {
                    route.set(at, None);
                    route.has_failed |= port.is_some();
                    port.is_none()
                }
                // Without a flow the controller delivers; an older flow might lead into a circle.
                ChangeOutcome::Refused(_) if port.is_some() => {
                    route.has_failed = true;
                    self.changes.insert(pair, FlowEdit { at, port: None });
                    true
                }
                _ => {
                    route.has_failed = true;
                    false
                }
            };
            if !may_go_on && self.changes.has_adds(pair) {
                self.changes.cancel(pair);
            }
            let was_adding = self.changes.is_adding(pair);
            let goes_on = self.changes.change_ended(pair);
            // Older flows stay for a while, so that packets on their way are not lost.
            if was_adding && !self.changes.is_adding(pair) {
                self.record_time(pair);
            }
            if !goes_on {
                self.finish_changes(pair);
            }
        }
    }

    /// Measures how long the change of a pair's path took, if it succeeded.
    fn record_time(&self, pair: HostPair) {
        let Some(route) = self.routes.get(&pair) else { return };
        if !route.has_failed && !route.path.is_empty() {
            let time = self.network.now().saturating_sub(route.sent);
            self.network.extension::<Latencies>().path_change.record(time);
        }
    }

    /// Ends the changes of a pair: nothing is under way any more.
    fn finish_changes(&mut self, pair: HostPair) {
        let Some(route) = self.routes.get_mut(&pair) else { return };
        if route.has_failed {
            route.backoff.failed(self.network.now());
            self.checks.insert((route.backoff.until(), pair));
            return;
        }
        self.checks.remove(&(route.backoff.until(), pair));
        route.backoff = Backoff::default();
        if route.path.is_empty() && route.steps.is_empty() {
            self.remove(pair);
        } else if route.is_right() {
            route.drained_at = None;
        } else if !route.path.iter().all(|step| route.steps.contains(step)) {
            // A switch has lost a flow meanwhile.
            self.stale.insert(pair);
        } else if route.drained_at.is_none() {
            let at = self.network.now() + DRAIN;
            route.drained_at = Some(at);
            self.checks.insert((at, pair));
        }
    }

    /// Records that a flow was removed by its switch.
    fn flow_removed(&mut self, pair: HostPair, dpid: Dpid) {
        let Some(route) = self.routes.get_mut(&pair) else { return };
        route.set(dpid, None);
        if route.steps.is_empty() && !self.changes.has_pending(pair) {
            self.remove(pair);
        }
    }

    fn remove(&mut self, pair: HostPair) {
        self.index.remove(pair);
        if let Some(route) = self.routes.remove(&pair) {
            self.checks.remove(&(route.backoff.until(), pair));
            if let Some(at) = route.drained_at {
                self.checks.remove(&(at, pair));
            }
        }
    }

    /// Records the flows of a switch, which replace all known ones.
    fn adopt(&mut self, dpid: Dpid, flows: Vec<(FlowTraffic, Port)>) {
        self.earlier_run.record_flows(dpid, &flows);
        let has_some = |route: &PairRoute| route.steps.iter().any(|(at, _)| *at == dpid);
        let known_pairs: BTreeSet<HostPair> = self
            .routes
            .iter()
            .filter(|(_, route)| has_some(route))
            .map(|(pair, _)| *pair)
            .collect();
        for pair in &known_pairs {
            if let Some(route) = self.routes.get_mut(pair) {
                route.set(dpid, None);
            }
        }
        let mut unneeded = Vec::new();
        let (mut new, now) = (0, self.network.now());
        for (traffic, port) in flows {
            let FlowTraffic::Between(pair) = traffic else {
                unneeded.push(traffic);
                continue;
            };
            if !self.routes.contains_key(&pair) {
                if self.routes.len() >= MAX_ROUTES || new >= MAX_NEW_ROUTES {
                    unneeded.push(traffic);
                    continue;
                }
                new += 1;
                self.insert(pair, PairRoute { sent: now, ..PairRoute::default() });
            }
            if let Some(route) = self.routes.get_mut(&pair) {
                route.set(dpid, Some(port));
            }
            self.stale.insert(pair);
        }
        flows::remove(&self.network, dpid, unneeded.into_iter());
        for pair in known_pairs {
            let is_empty = self.routes.get(&pair).is_some_and(|route| route.steps.is_empty());
            if is_empty && !self.changes.has_pending(pair) {
                self.remove(pair);
            } else {
                self.stale.insert(pair);
            }
        }
    }

    fn send(&self, dpid: Dpid, changes: Vec<Change>) -> ProgramFuture {
        if let Some(flow_mods) = self.flow_mods.get(&dpid) {
            flow_mods.add(changes.len() as u64);
        }
        self.network.program(dpid, changes)
    }

    fn add(&self, pair: HostPair, (_, port): PathStep) -> Change {
        Change::Add(pair.flow_to(port, self.idle_timeout_s))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edit(at: u64, port: Option<u32>) -> FlowEdit {
        FlowEdit { at: Dpid(at), port: port.map(Port) }
    }

    /// A route with this path and these flows in switches.
    fn route(path: &[u64], steps: &[(u64, Port)]) -> PairRoute {
        let path = path.iter().map(|dpid| (Dpid(*dpid), Port(1))).collect();
        let steps = steps.iter().map(|(dpid, port)| (Dpid(*dpid), *port)).collect();
        PairRoute { path, steps, ..PairRoute::default() }
    }

    #[test]
    fn flows_of_unknown_state_are_sent_again_or_removed() {
        let (add_near, add_far, remove) = (edit(1, Some(1)), edit(2, Some(1)), edit(3, None));
        let mut route = route(&[1, 2], &[(3, Port(1))]);
        assert_eq!(route.stages(|_| true), [[add_near, add_far]]);
        route.set(Dpid(2), Some(Port(1)));
        assert_eq!(route.stages(|_| true), [[add_near]]);
        [1, 2, 3].into_iter().for_each(|dpid| route.set(Dpid(dpid), Some(UNKNOWN)));
        assert_eq!(
            (route.stages(|_| true), route.removals()),
            (vec![vec![add_near], vec![add_far]], vec![remove])
        );
        route.path = vec![(Dpid(1), Port(1))];
        assert_eq!(route.stages(|_| true), [[add_near]]);
        assert_eq!(route.removals(), [edit(2, None), remove]);
        assert!(!route.is_right());
        route.steps = route.path.clone();
        assert!(
            route.is_right() && route.stages(|_| true).is_empty() && route.removals().is_empty()
        );
    }

    #[test]
    fn a_flow_that_may_lead_elsewhere_waits_for_all_that_are_nearer_and_all_that_are_farther_wait_for_it()
     {
        // 3 and 6 lead elsewhere, 5 is right already, and the flows of 8 are unread.
        let steps = [(3, Port(2)), (5, Port(1)), (6, Port(2))];
        let route = route(&[1, 2, 3, 4, 5, 6, 7, 8, 9], &steps);
        let stages = route.stages(|dpid| dpid != Dpid(8));
        let at: Vec<Vec<u64>> =
            stages.iter().map(|stage| stage.iter().map(|edit| edit.at.0).collect()).collect();
        assert_eq!(at, [vec![1, 2], vec![3], vec![4], vec![6], vec![7], vec![8], vec![9]]);
    }

    /// The switches of these tests have the numbers below it.
    const SWITCHES: usize = 8;

    /// The flow of each switch in the tests below: its next switch, or the host.
    type Flows = BTreeMap<u64, u64>;
    const HOST: u64 = 99;

    fn is_circle(flows: &Flows, from: u64) -> bool {
        let hops = std::iter::successors(Some(from), |at| flows.get(at).copied());
        hops.take(SWITCHES + 2).count() > SWITCHES + 1
    }

    proptest! {
        /// Starts with any flows without a circle. Switches execute a stage in any order.
        #[test]
        fn at_no_moment_do_flows_lead_in_a_circle(
            order in Just((0..SWITCHES as u64).collect::<Vec<_>>()).prop_shuffle(),
            leads_to in prop::collection::vec(prop::option::of(0..SWITCHES), SWITCHES),
            known in prop::collection::vec(0..4, SWITCHES),
            path in Just((0..SWITCHES as u64).collect::<Vec<_>>()).prop_shuffle(),
            hops in 1..=SWITCHES,
            first in Just((0..SWITCHES as u64).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let mut flows = Flows::new();
            for (at, next) in leads_to.iter().enumerate() {
                // Leads to an earlier switch in `order`, so that there is no circle.
                let next = next.map(|next| if at == 0 { HOST } else { order[next % at] });
                flows.extend(next.map(|next| (order[at], next)));
            }
            let (unread, unconfirmed) = (0, 1);
            let mut route = PairRoute::default();
            for (at, next) in &flows {
                let port = if known[*at as usize] == unconfirmed { UNKNOWN } else { Port(*next as u32) };
                route.set(Dpid(*at), (known[*at as usize] != unread).then_some(port));
            }
            let nexts = std::iter::once(&HOST).chain(&path);
            let new: Flows = path.iter().zip(nexts).take(hops).map(|(at, to)| (*at, *to)).collect();
            route.path = path.iter().take(hops).map(|at| (Dpid(*at), Port(new[at] as u32))).collect();
            for mut stage in route.stages(|dpid| known[dpid.0 as usize] != unread) {
                stage.sort_by_key(|edit| first.iter().position(|at| *at == edit.at.0));
                for edit in stage {
                    flows.insert(edit.at.0, edit.port.unwrap().0.into());
                    let circle = flows.keys().find(|at| is_circle(&flows, **at));
                    prop_assert_eq!(circle, None, "{:?}", flows);
                }
            }
            prop_assert!(new.iter().all(|(at, to)| flows.get(at) == Some(to)), "{:?}", flows);
        }
    }
}
