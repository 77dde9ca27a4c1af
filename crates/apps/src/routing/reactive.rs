//! Flows between two hosts, installed when they talk.
//!
//! The two flows of a switch on their path, one in each direction, match both hosts' addresses and the VLAN.
//! Which of several shortest paths they take is drawn from these (equal-cost multipath).
//!
//! # When a path changes
//! A link fails, a host moves, a shorter path comes up: the flows of all pairs that have to go another way are
//! changed together, by their distance from the destination, the nearest first, and each distance is
//! confirmed before the next. So a flow that was changed leads to flows that were, and to the destination; one
//! that was not leads where it led, or into the new path: never in a circle. A switch that does not
//! confirm in time ([`CONFIRM_WITHIN`]) holds up nobody else. Flows that are not needed any more are
//! removed last; a packet that still needed one comes to the controller, and is delivered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bellrock_api::{
    Change, Dpid, Flow, HostId, Hosts, Network, Port, Programmed, Snapshot, SwitchPort, Watch,
};
use bellrock_services::paths::{Paths, paths};

use super::flows::{self, Pair, Traffic};
use super::left::Left;
use super::news::{Inbox, News};

/// Pairs of hosts that have flows. Packets of others are all delivered by the controller.
const MAX_ROUTES: usize = 1 << 18;

/// The flows of a pair are not sent again within this time, whatever packets come.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How long flows that are nearer to the destination have to be confirmed before those that lead to them
/// are sent in any case.
const CONFIRM_WITHIN: Duration = Duration::from_millis(500);

/// A switch on a path, and the port that the path leaves it by.
type Step = (Dpid, Port);

/// Keeps flows between hosts that talk. The task.
pub(super) async fn keep(network: Network, idle_timeout_s: u16) {
    let inbox = network.extension::<Inbox>();
    let mut routes = Routes::new(network, idle_timeout_s);
    while let Ok(news) = inbox.receiver.recv().await {
        for (dpid, flow_mods) in inbox.take_up() {
            routes.flow_mods.insert(dpid, flow_mods);
            routes.left.look_into(dpid);
        }
        match news {
            News::Changed => {}
            News::Talking(pair) => routes.install(pair),
            News::Silent(pair, dpid) => routes.forget(pair, dpid),
            News::Found(dpid, flows) => routes.adopt(dpid, flows),
        }
        routes.follow().await;
    }
}

/// What is known of a pair's flows.
struct Route {
    /// Where they are.
    steps: Vec<Step>,
    /// Whether both hosts were known since, or flows were sent: not so of an earlier run's.
    is_known: bool,
    sent: Duration,
}

struct Routes {
    network: Network,
    idle_timeout_s: u16,
    watch: (Watch<Paths>, Watch<Hosts>),
    /// What `routes` follow.
    paths: Snapshot<Paths>,
    hosts: Snapshot<Hosts>,
    routes: BTreeMap<Pair, Route>,
    /// Whether some do not follow these yet.
    is_stale: bool,
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
            watch,
            idle_timeout_s,
            routes: BTreeMap::new(),
            is_stale: false,
            is_whole: false,
            left: Left::new(network.clone()),
            flow_mods: BTreeMap::new(),
            network,
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
        let known = self.hosts.get(host.mac, host.vlan).map(|host| host.at);
        known.or_else(|| self.left.place(host, &self.paths))
    }

    /// Two hosts talk: they get flows. Packets that come before these are there are delivered by the
    /// controller, so that nothing has to be waited for.
    fn install(&mut self, pair: Pair) {
        let now = self.network.now();
        let stays = |route: &Route| now < route.sent + AGAIN_AFTER || self.is_left(route);
        if self.routes.get(&pair).is_some_and(stays) || self.routes.len() >= MAX_ROUTES {
            return;
        }
        let Some(steps) = self.path(pair) else { return };
        for step in &steps {
            // Whether it is there shows when another packet comes, or none.
            drop(self.send(step.0, vec![self.add(pair, *step)]));
        }
        self.routes.insert(pair, Route { steps, is_known: true, sent: now });
    }

    /// Whether it is one of an earlier run that is not to be changed yet.
    fn is_left(&self, route: &Route) -> bool {
        !route.is_known && !self.is_whole
    }

    /// Paths or hosts have changed, perhaps: flows that have to go another way do so.
    async fn follow(&mut self) {
        loop {
            let (paths, hosts) = (self.watch.0.load(), self.watch.1.load());
            let is_new_path = paths.version() != self.paths.version();
            let is_new = is_new_path || hosts.version() != self.hosts.version();
            (self.paths, self.hosts) = (paths, hosts);
            if is_new_path {
                self.left.paths_changed();
            }
            let was_whole = std::mem::replace(&mut self.is_whole, self.left.is_over(&self.paths));
            let is_stale = std::mem::take(&mut self.is_stale) || was_whole != self.is_whole;
            if !is_new && !is_stale {
                return;
            }
            let moves = self.moves();
            self.carry_out(moves).await;
        }
    }

    /// What has to be sent, by the distance from the destination, removals last.
    fn moves(&mut self) -> BTreeMap<usize, Vec<(Dpid, Change)>> {
        const REMOVALS: usize = usize::MAX;
        let now = self.network.now();
        let mut moves: BTreeMap<usize, Vec<(Dpid, Change)>> = BTreeMap::new();
        let mut routes = std::mem::take(&mut self.routes);
        routes.retain(|pair, route| {
            if self.is_left(route) {
                return true;
            }
            let known = |host: HostId| self.place(host).is_some();
            let steps = match self.path(*pair) {
                Some(steps) => steps,
                None if route.is_known && !(known(pair.from) && known(pair.to)) => Vec::new(),
                // There is no path now, or its hosts are not known yet: what is there may do.
                None => return true,
            };
            route.is_known = true;
            if steps == route.steps {
                return true;
            }
            for (distance, step) in steps.iter().enumerate() {
                if !route.steps.contains(step) {
                    moves.entry(distance).or_default().push((step.0, self.add(*pair, *step)));
                }
            }
            for (dpid, _) in &route.steps {
                if !steps.iter().any(|(kept, _)| kept == dpid) {
                    let flow = Change::Remove(Flow::new(Traffic::Between(*pair).matching()));
                    moves.entry(REMOVALS).or_default().push((*dpid, flow));
                }
            }
            (route.steps, route.sent) = (steps, now);
            !route.steps.is_empty()
        });
        self.routes = routes;
        moves
    }

    /// Sends changes, those of a distance when those before are confirmed.
    async fn carry_out(&self, moves: BTreeMap<usize, Vec<(Dpid, Change)>>) {
        for (_, mut changes) in moves {
            changes.sort_by_key(|(dpid, _)| *dpid);
            let mut programs = Vec::new();
            while let Some((dpid, _)) = changes.last() {
                let dpid = *dpid;
                let first = changes.partition_point(|(other, _)| *other < dpid);
                let of_one = changes.split_off(first).into_iter().map(|(_, change)| change);
                programs.push(self.send(dpid, of_one.collect()));
            }
            let confirmed = async {
                for program in programs {
                    program.await;
                }
            };
            self.network.timeout(CONFIRM_WITHIN, confirmed).await;
        }
    }

    /// A flow has gone by itself.
    fn forget(&mut self, pair: Pair, dpid: Dpid) {
        if let Some(route) = self.routes.get_mut(&pair) {
            route.steps.retain(|(at, _)| *at != dpid);
            if route.steps.is_empty() {
                self.routes.remove(&pair);
            }
        }
    }

    /// A switch has these flows and no others.
    fn adopt(&mut self, dpid: Dpid, flows: Vec<(Traffic, Port)>) {
        self.left.found(dpid, &flows);
        for route in self.routes.values_mut() {
            route.steps.retain(|(at, _)| *at != dpid);
        }
        let of_hosts = |traffic: &Traffic| matches!(traffic, Traffic::To(_));
        let all = flows.iter().map(|(traffic, _)| *traffic);
        flows::remove(&self.network, dpid, all.filter(of_hosts));
        let now = self.network.now();
        for (traffic, port) in flows {
            if let Traffic::Between(pair) = traffic {
                let new = || Route { steps: Vec::new(), is_known: false, sent: now };
                self.routes.entry(pair).or_insert_with(new).steps.push((dpid, port));
            }
        }
        self.is_stale = true;
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
