//! Flows between two hosts, installed when they talk.
//!
//! The two flows of a switch on their path, one in each direction, match both hosts' addresses and the VLAN.
//! Which of several shortest paths they take is drawn from these (equal-cost multipath).
//!
//! # When a path changes
//! A link fails, a host moves, a shorter path comes up: the flows of a pair that have to go another way are
//! changed in stages, from the destination on, and each is confirmed before the next ([`Route::stages`]). So a flow that was
//! changed leads to flows that were, and to the destination; one that was not leads where it led, or into
//! the new path: never in a circle. All that is to be changed in a switch at a time goes together. A switch that is
//! slow to confirm holds up those pairs alone that it has a flow of ([`changes`](super::changes)). Flows that are
//! not needed any more are removed when all others are confirmed and [`DRAIN`] is over: packets that were on their way
//! have left them, and what moves does not wait for what goes.
//!
//! # What fails
//! As long as a switch has not confirmed a change, it is not known what it has: the flow is sent again, or removed,
//! whatever comes. A pair of which a flow was not confirmed keeps those that lead to it as they are. Where one was
//! refused, an older one is removed, and the others are changed: the controller delivers what comes there. Both are
//! tried again after a pause, which doubles each time ([`Backoff`]). A switch whose connection ends is read when it
//! comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bellrock_api::{
    Change, Dpid, Error, Flow, HostId, Hosts, Loss, Network, Outcome, Port, Programmed, Snapshot,
    SwitchPort, Watch,
};
use bellrock_services::paths::{Paths, paths};
use bellrock_services::programming::DRAIN;
use bellrock_services::reserved::{ReservedPorts, reserved_ports};
use bellrock_services::wait::{first, until};

use super::changes::{Changes, Due, Edit, Stage};
use super::flows::{self, Pair, Traffic};
use super::index::Index;
use super::left::Left;
use super::news::{Inbox, News};
use crate::backoff::Backoff;

/// Pairs of hosts that have flows. Packets of others are all delivered by the controller.
const MAX_ROUTES: usize = 1 << 18;

/// Pairs that are taken on from the flows of one switch: none of those that only it tells of take the room of all
/// others. Flows of further ones are removed.
const MAX_NEW_ROUTES: usize = 1 << 16;

/// The flows of a pair are not sent again within this time, whatever packets come.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// News that are dealt with before paths are looked at again.
const NEWS_PER_TURN: usize = 1024;

/// A switch on a path, and the port that the path leaves it by.
type Step = (Dpid, Port);

/// Stands for the port of a flow while it is not known where it leads, or whether it is there.
const UNKNOWN: Port = Port::ANY;

/// Keeps flows between hosts that talk. The task.
pub(super) async fn keep(network: Network, idle_timeout_s: u16) {
    let inbox = network.extension::<Inbox>();
    let mut routes = Routes::new(network, idle_timeout_s);
    loop {
        let first = routes.next(&inbox).await;
        for (dpid, flow_mods) in inbox.take_up() {
            routes.flow_mods.insert(dpid, flow_mods);
            routes.left.look_into(dpid);
        }
        routes.ended();
        let more = std::iter::from_fn(|| inbox.receiver.try_recv().ok());
        first.into_iter().chain(more).take(NEWS_PER_TURN).for_each(|news| routes.hear(news));
        routes.follow();
        routes.send_ready();
    }
}

/// What is known of a pair's flows.
#[derive(Default)]
struct Route {
    /// The path that they are to take, from the destination on. Empty for those that were found.
    path: Vec<Step>,
    /// Where flows are, in any order, or may be: to [`UNKNOWN`].
    steps: Vec<Step>,
    /// Whether both hosts were known since, or flows were sent: not so of an earlier run's.
    is_known: bool,
    sent: Duration,
    /// Whether something has failed since the last changes were begun.
    has_failed: bool,
    /// How long they are left alone then, before they are tried again.
    backoff: Backoff,
    /// When packets have left the flows that are not needed any more, if all others are confirmed.
    drained: Option<Duration>,
}

impl Route {
    /// What is in a switch now.
    fn set(&mut self, dpid: Dpid, port: Option<Port>) {
        self.steps.retain(|(at, _)| *at != dpid);
        self.steps.extend(port.map(|port| (dpid, port)));
    }

    /// Whether flows are where they are to be, and nowhere else.
    fn is_right(&self) -> bool {
        self.path.len() == self.steps.len()
            && self.path.iter().all(|step| self.steps.contains(step))
    }

    /// The flows that are not needed any more.
    fn removals(&self) -> Stage {
        let is_kept = |dpid: Dpid| self.path.iter().any(|(at, _)| *at == dpid);
        let needless = self.steps.iter().filter(|(at, _)| !is_kept(*at));
        needless.map(|(at, _)| Edit { at: *at, port: None }).collect()
    }

    /// What makes flows lead along its path, from the destination on.
    ///
    /// Switches that have no flow of the pair are changed together, up to the next that has another, or of which it is not
    /// known: that one is changed by itself, when they have confirmed. As long as one of them is not changed, packets that
    /// come there go nowhere but to the controller, and from one that is changed they get to the destination or to such a
    /// one. So it does not matter which is changed first.
    fn stages(&self, is_read: impl Fn(Dpid) -> bool) -> Vec<Stage> {
        let (mut stages, mut new) = (Vec::new(), Stage::new());
        for step @ (at, port) in &self.path {
            let edit = Edit { at: *at, port: Some(*port) };
            match self.steps.iter().find(|(its, _)| its == at) {
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

struct Routes {
    network: Network,
    idle_timeout_s: u16,
    watch: (Watch<Paths>, Watch<Hosts>),
    /// What `routes` follow.
    paths: Snapshot<Paths>,
    hosts: Snapshot<Hosts>,
    /// Places that nobody has flows to.
    reserved: Snapshot<ReservedPorts>,
    routes: BTreeMap<Pair, Route>,
    index: Index,
    /// Those that do not follow these yet, perhaps.
    stale: BTreeSet<Pair>,
    changes: Changes,
    /// When pairs are looked at again: what has failed is tried again then, or what is not needed any more goes.
    again: BTreeSet<(Duration, Pair)>,
    left: Left,
    /// Whether the network is all there, so that flows of an earlier run may be changed.
    is_whole: bool,
    /// What is sent to each switch is counted there.
    flow_mods: BTreeMap<Dpid, Arc<AtomicU64>>,
}

impl Routes {
    fn new(network: Network, idle_timeout_s: u16) -> Self {
        let watch = (paths(&network), network.hosts().clone());
        Routes {
            paths: watch.0.load(),
            hosts: watch.1.load(),
            reserved: reserved_ports(&network).load(),
            watch,
            idle_timeout_s,
            routes: BTreeMap::new(),
            index: Index::default(),
            stale: BTreeSet::new(),
            changes: Changes::default(),
            again: BTreeSet::new(),
            is_whole: false,
            left: Left::new(network.clone()),
            flow_mods: BTreeMap::new(),
            network,
        }
    }

    /// Waits for news, for switches to say what became of changes, or until a pair is looked at again.
    async fn next(&mut self, inbox: &Inbox) -> Option<News> {
        let again = until(&self.network, self.again.first().map(|(at, _)| *at));
        let others = first(self.changes.some_ended(), again);
        first(others, inbox.receiver.recv()).await.b()?.ok()
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Changed => {}
            News::Talking(pair) => self.install(pair),
            News::Silent(pair, dpid) => self.forget(pair, dpid),
            News::Found(dpid, flows) => self.adopt(dpid, flows),
        }
    }

    /// The path of a pair, from the destination on. `None`: a host is not known, or no path leads there.
    fn path(&self, pair: Pair) -> Option<Vec<Step>> {
        let (from, to) = (self.place(pair.from)?.dpid, self.place(pair.to)?);
        self.paths.distance(from, to.dpid)?;
        let hops = self.paths.walk(from, to.dpid, Traffic::Between(pair).key());
        let mut steps: Vec<Step> = hops.map(|hop| (hop.from.dpid, hop.from.port)).collect();
        steps.push((to.dpid, to.port));
        steps.reverse();
        Some(steps)
    }

    fn place(&self, host: HostId) -> Option<SwitchPort> {
        place(host, &self.hosts, &self.reserved, &self.left, &self.paths)
    }

    /// The route of a pair that has none.
    fn insert(&mut self, pair: Pair, route: Route) {
        let (hosts, left, paths) = (&self.hosts, &self.left, &self.paths);
        let reserved = &self.reserved;
        self.index.insert(pair, |host| place(host, hosts, reserved, left, paths));
        self.routes.insert(pair, route);
    }

    /// Two hosts talk: they get flows. Packets that come before these are there are delivered by the
    /// controller, so that nothing has to be waited for.
    fn install(&mut self, pair: Pair) {
        let now = self.network.now();
        match self.routes.get(&pair) {
            None if self.routes.len() >= MAX_ROUTES => return,
            None => {}
            Some(route) => {
                let is_recent = now < route.sent + AGAIN_AFTER || !route.backoff.is_over(now);
                if is_recent || self.is_left(route) || self.changes.has(pair) {
                    return;
                }
                if !route.is_right() {
                    // It has flows; those that lead to them come after them.
                    self.stale.insert(pair);
                    return;
                }
            }
        }
        let Some(path) = self.path(pair) else { return };
        for step in &path {
            // Whether it is there shows when another packet comes, or none.
            drop(self.send(step.0, vec![self.add(pair, *step)]));
        }
        let steps = path.clone();
        let route = Route { path, steps, is_known: true, sent: now, ..Route::default() };
        self.insert(pair, route);
    }

    /// Whether it is one of an earlier run that is not to be changed yet.
    fn is_left(&self, route: &Route) -> bool {
        !route.is_known && !self.is_whole
    }

    /// Paths or hosts have changed, perhaps: flows that have to go another way do so.
    fn follow(&mut self) {
        let (paths, hosts) = (self.watch.0.load(), self.watch.1.load());
        let is_new_path = paths.version() != self.paths.version();
        let is_new_host = hosts.version() != self.hosts.version();
        let before = std::mem::replace(&mut self.paths, paths);
        self.hosts = hosts;
        self.reserved = reserved_ports(&self.network).load();
        if is_new_path {
            self.left.paths_changed();
        }
        let was_whole = std::mem::replace(&mut self.is_whole, self.left.is_over(&self.paths));
        let is_first = was_whole != self.is_whole;
        if is_new_path || is_new_host || is_first {
            self.find_stale(&before);
        }
        if is_first {
            self.stale.extend(self.routes.keys());
        }
        self.look_again();
        for pair in std::mem::take(&mut self.stale) {
            self.lead(pair);
        }
    }

    /// Finds the pairs whose hosts are elsewhere now, and those between which paths are not what they were.
    fn find_stale(&mut self, before: &Snapshot<Paths>) {
        let (hosts, paths) = (&self.hosts, &self.paths);
        if self.is_whole {
            self.left.forget(|host| hosts.get(host.mac, host.vlan).is_some(), paths);
        }
        let (left, reserved) = (&self.left, &self.reserved);
        let place = |host| place(host, hosts, reserved, left, paths);
        self.stale.extend(self.index.follow_hosts(place));
        if before.version() != paths.version() {
            let changes = paths.changes_since(before);
            self.stale.extend(self.index.between(|from, to| changes.affect(from, to)));
        }
    }

    /// Looks again at those whose time has come.
    fn look_again(&mut self) {
        let now = self.network.now();
        while let Some((at, pair)) = self.again.first().copied().filter(|(at, _)| *at <= now) {
            self.again.remove(&(at, pair));
            self.stale.insert(pair);
        }
    }

    /// Has a pair's flows take the path that there is now.
    fn lead(&mut self, pair: Pair) {
        let Some(route) = self.routes.get(&pair).filter(|route| !self.is_left(route)) else {
            return;
        };
        let path = match self.path(pair) {
            Some(path) => path,
            None if self.place(pair.from).is_none() || self.place(pair.to).is_none() => Vec::new(),
            // There is no path now: what is there may do.
            None => return,
        };
        let now = self.network.now();
        if route.path == path && (self.changes.has(pair) || !route.backoff.is_over(now)) {
            return;
        }
        let Some(route) = self.routes.get_mut(&pair) else { return };
        (route.path, route.is_known, route.has_failed) = (path, true, false);
        let mut stages = route.stages(|dpid| self.left.is_read(dpid));
        if !stages.is_empty() {
            (route.sent, route.drained) = (now, None);
        } else if route.path.is_empty() || route.drained.is_some_and(|at| at <= now) {
            stages.push(route.removals());
        }
        if !stages.is_empty() || self.changes.has(pair) {
            self.changes.begin(pair, stages);
        }
        if !self.changes.has(pair) {
            self.settled(pair);
        }
    }

    /// Sends what can be sent now.
    fn send_ready(&mut self) {
        for (dpid, dues) in self.changes.take_ready() {
            let mut changes = Vec::with_capacity(dues.len());
            for Due { pair, edit, .. } in &dues {
                if let Some(route) = self.routes.get_mut(pair) {
                    route.set(dpid, Some(UNKNOWN));
                }
                let removal = || Change::Remove(Flow::new(Traffic::Between(*pair).matching()));
                changes.push(edit.port.map_or_else(removal, |port| self.add(*pair, (dpid, port))));
            }
            let program = self.send(dpid, changes);
            self.changes.sent(dpid, dues, program);
        }
    }

    /// Switches have said what became of changes, some perhaps.
    fn ended(&mut self) {
        for (Due { pair, edit: Edit { at, port }, .. }, outcome) in self.changes.take_ended() {
            let Some(route) = self.routes.get_mut(&pair) else { continue };
            let may_go_on = match outcome {
                Outcome::Installed => {
                    route.set(at, port);
                    true
                }
                // What it has is read when it comes back.
                Outcome::NotSent(Error::UnknownSwitch(_))
                | Outcome::Unknown(Loss::Disconnected) => {
                    route.set(at, None);
                    route.has_failed |= port.is_some();
                    port.is_none()
                }
                // Where there is no flow the controller delivers; an older one might lead into a circle.
                Outcome::Refused(_) if port.is_some() => {
                    route.has_failed = true;
                    self.changes.insert(pair, Edit { at, port: None });
                    true
                }
                _ => {
                    route.has_failed = true;
                    false
                }
            };
            if !may_go_on && self.changes.has_adds(pair) {
                self.changes.give_up(pair);
            }
            if !self.changes.next(pair) {
                self.settled(pair);
            }
        }
    }

    /// Nothing is under way for a pair any more.
    fn settled(&mut self, pair: Pair) {
        let Some(route) = self.routes.get_mut(&pair) else { return };
        if route.has_failed {
            route.backoff.failed(self.network.now());
            self.again.insert((route.backoff.until(), pair));
            return;
        }
        self.again.remove(&(route.backoff.until(), pair));
        route.backoff = Backoff::default();
        if route.path.is_empty() && route.steps.is_empty() {
            self.remove(pair);
        } else if route.is_right() {
            route.drained = None;
        } else if !route.path.iter().all(|step| route.steps.contains(step)) {
            // A switch has lost what it had meanwhile.
            self.stale.insert(pair);
        } else if route.drained.is_none() {
            let at = self.network.now() + DRAIN;
            route.drained = Some(at);
            self.again.insert((at, pair));
        }
    }

    /// A flow has gone by itself.
    fn forget(&mut self, pair: Pair, dpid: Dpid) {
        let Some(route) = self.routes.get_mut(&pair) else { return };
        route.set(dpid, None);
        if route.steps.is_empty() && !self.changes.has(pair) {
            self.remove(pair);
        }
    }

    fn remove(&mut self, pair: Pair) {
        self.index.remove(pair);
        if let Some(route) = self.routes.remove(&pair) {
            self.again.remove(&(route.backoff.until(), pair));
            if let Some(at) = route.drained {
                self.again.remove(&(at, pair));
            }
        }
    }

    /// A switch has these flows and no others.
    fn adopt(&mut self, dpid: Dpid, flows: Vec<(Traffic, Port)>) {
        self.left.found(dpid, &flows);
        let has_some = |route: &Route| route.steps.iter().any(|(at, _)| *at == dpid);
        let had: BTreeSet<Pair> = self
            .routes
            .iter()
            .filter(|(_, route)| has_some(route))
            .map(|(pair, _)| *pair)
            .collect();
        for pair in &had {
            if let Some(route) = self.routes.get_mut(pair) {
                route.set(dpid, None);
            }
        }
        let mut needless = Vec::new();
        let (mut new, now) = (0, self.network.now());
        for (traffic, port) in flows {
            let Traffic::Between(pair) = traffic else {
                needless.push(traffic);
                continue;
            };
            if !self.routes.contains_key(&pair) {
                if self.routes.len() >= MAX_ROUTES || new >= MAX_NEW_ROUTES {
                    needless.push(traffic);
                    continue;
                }
                new += 1;
                self.insert(pair, Route { sent: now, ..Route::default() });
            }
            if let Some(route) = self.routes.get_mut(&pair) {
                route.set(dpid, Some(port));
            }
            self.stale.insert(pair);
        }
        flows::remove(&self.network, dpid, needless.into_iter());
        for pair in had {
            let is_empty = self.routes.get(&pair).is_some_and(|route| route.steps.is_empty());
            if is_empty && !self.changes.has(pair) {
                self.remove(pair);
            } else {
                self.stale.insert(pair);
            }
        }
    }

    fn send(&self, dpid: Dpid, changes: Vec<Change>) -> Programmed {
        if let Some(flow_mods) = self.flow_mods.get(&dpid) {
            flow_mods.fetch_add(changes.len() as u64, Ordering::Relaxed);
        }
        self.network.program(dpid, changes)
    }

    fn add(&self, pair: Pair, (_, port): Step) -> Change {
        Change::Add(pair.out_of(port, self.idle_timeout_s))
    }
}

/// Where a host is: as is known, and otherwise where the flows of the last run lead. Nowhere, where its frames belong
/// to another app.
fn place(
    host: HostId,
    hosts: &Hosts,
    reserved: &ReservedPorts,
    left: &Left,
    paths: &Paths,
) -> Option<SwitchPort> {
    let known = hosts.get(host.mac, host.vlan).map(|host| host.at);
    let at = known.or_else(|| left.place(host, paths));
    at.filter(|at| !reserved.is_reserved(*at, host.vlan))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edit(at: u64, port: Option<u32>) -> Edit {
        Edit { at: Dpid(at), port: port.map(Port) }
    }

    /// A route to the first of these, and what is in switches.
    fn route(path: &[u64], steps: &[(u64, Port)]) -> Route {
        let path = path.iter().map(|dpid| (Dpid(*dpid), Port(1))).collect();
        let steps = steps.iter().map(|(dpid, port)| (Dpid(*dpid), *port)).collect();
        Route { path, steps, ..Route::default() }
    }

    #[test]
    fn what_is_not_known_to_be_there_is_sent_again_or_removed() {
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
        // 3 and 6 lead elsewhere, 5 is as it is to be, and what 8 has was not read.
        let steps = [(3, Port(2)), (5, Port(1)), (6, Port(2))];
        let route = route(&[1, 2, 3, 4, 5, 6, 7, 8, 9], &steps);
        let stages = route.stages(|dpid| dpid != Dpid(8));
        let at: Vec<Vec<u64>> =
            stages.iter().map(|stage| stage.iter().map(|edit| edit.at.0).collect()).collect();
        assert_eq!(at, [vec![1, 2], vec![3], vec![4], vec![6], vec![7], vec![8], vec![9]]);
    }

    /// Switches of these tests have the numbers below.
    const SWITCHES: usize = 8;

    /// The flow of each switch in the tests below: the switch that it leads to, or the host.
    type Flows = BTreeMap<u64, u64>;
    const HOST: u64 = 99;

    fn is_circle(flows: &Flows, from: u64) -> bool {
        let hops = std::iter::successors(Some(from), |at| flows.get(at).copied());
        hops.take(SWITCHES + 2).count() > SWITCHES + 1
    }

    proptest! {
        /// Whatever was there, as far as it led in no circle, in whatever order switches do what they are sent
        /// together.
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
                // To one that stands before it, so that it is no circle.
                let next = next.map(|next| if at == 0 { HOST } else { order[next % at] });
                flows.extend(next.map(|next| (order[at], next)));
            }
            let (unread, unconfirmed) = (0, 1);
            let mut route = Route::default();
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
