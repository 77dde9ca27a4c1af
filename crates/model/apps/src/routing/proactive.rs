//! Flows to each host at every switch, installed when the host is found.
//!
//! The flows to one host are a tree: each switch sends to a neighbour that is nearer to the host.
//! The host's address selects one of several such neighbours, so the trees of different hosts
//! spread over all links (also on 1.0, which has no groups). The service
//! [`bellrock_services::desired`] keeps the flows installed, ordered from the host. Each tree has a
//! number of its own, the same in each run.
//!
//! A flow by destination carries all packets for the host, also from unknown hosts. If such a host
//! only answers requests, it would never be seen, and all packets for it would be flooded. So flows
//! above the trees send the answers to address requests to the controller.

use std::collections::{BTreeMap, BTreeSet};

use bellrock_api::{Dpid, HostId, Hosts, Network, Port, Snapshot, SwitchPort, Version, Watch};
use bellrock_services::desired::{Desired, DesiredFlows};
use bellrock_services::hosts::believe;
use bellrock_services::paths::{Paths, paths};
use bellrock_services::reserved::reserved_ports;
use bellrock_services::wait::wait_until;
use futures_lite::FutureExt;

use super::earlier_run::EarlierRun;
use super::flows::{self, FlowTraffic};
use super::queue::{RoutingEvent, RoutingQueue};

/// Number of the flows for answers; no tree has it.
const ANSWERS: u32 = u32::MAX;

/// The flows to a host: distance from it, switch, and output port.
type DestinationTree = Vec<(u32, Dpid, Port)>;

/// Keeps flows to all hosts. Runs as a task.
pub(super) async fn run(network: Network) {
    let inbox = network.extension::<RoutingQueue>();
    let mut trees = Trees::new(network);
    loop {
        let event = trees.next(&inbox).await;
        inbox.take_connected().into_keys().for_each(|dpid| trees.earlier_run.read_flows(dpid));
        if let Some(RoutingEvent::Found(dpid, flows)) = event {
            trees.adopt(dpid, &flows);
        }
        trees.update();
    }
}

struct Trees {
    network: Network,
    desired: Desired,
    watch: (Watch<Paths>, Watch<Hosts>),
    paths: Snapshot<Paths>,
    hosts: Snapshot<Hosts>,
    /// Number and tree of each host.
    trees: BTreeMap<HostId, (u32, DestinationTree)>,
    numbers: BTreeSet<u32>,
    /// Switches that send answers to the controller.
    answering: BTreeMap<Dpid, Version>,
    has_begun: bool,
    earlier_run: EarlierRun,
}

impl Trees {
    fn new(network: Network) -> Self {
        let watch = (paths(&network), network.hosts().clone());
        Trees {
            desired: network.desired(),
            paths: watch.0.load(),
            hosts: watch.1.load(),
            watch,
            trees: BTreeMap::new(),
            numbers: BTreeSet::from([ANSWERS]),
            answering: BTreeMap::new(),
            has_begun: false,
            earlier_run: EarlierRun::new(network.clone()),
            network,
        }
    }

    /// Waits for an event, for changes of paths and hosts, or until the network may be complete.
    async fn next(&mut self, inbox: &RoutingQueue) -> Option<RoutingEvent> {
        let mut event = None;
        let (paths, hosts) = &self.watch;
        let changes = paths.newer(self.paths.version()).or(hosts.newer(self.hosts.version()));
        let next_event = async { event = inbox.receiver.recv().await.ok() };
        changes.or(wait_until(&self.network, self.earlier_run.next_check())).or(next_event).await;
        event
    }

    /// Updates all trees after changes of paths and hosts, once the network is complete.
    fn update(&mut self) {
        let (paths, hosts) = (self.watch.0.load(), self.watch.1.load());
        let is_new_path = paths.version() != self.paths.version();
        let is_new = is_new_path || hosts.version() != self.hosts.version();
        (self.paths, self.hosts) = (paths, hosts);
        if is_new_path {
            self.earlier_run.paths_changed();
        }
        if !self.earlier_run.is_over(&self.paths) {
            return;
        }
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if is_first {
            // Other apps, and operators, know these hosts from now on too.
            believe(&self.network, self.earlier_run.places(&self.paths));
        }
        if is_new || is_first {
            self.update_desired();
        }
        if is_first {
            self.desired.complete();
        }
    }

    fn update_desired(&mut self) {
        self.update_answer_flows();
        let mut removed: BTreeSet<HostId> = self.trees.keys().copied().collect();
        for (host, at) in self.places() {
            removed.remove(&host);
            let tree = self.tree(host, at);
            let before = self.trees.get(&host);
            if before.is_some_and(|(_, before)| *before == tree) {
                continue;
            }
            let number = before.map(|(number, _)| *number).unwrap_or_else(|| self.number(host));
            let flow = |port| FlowTraffic::To(host).flow_to(port);
            let flows = tree.iter().map(|(distance, dpid, port)| (*distance, *dpid, flow(*port)));
            self.desired.set_tree(number, flows);
            self.trees.insert(host, (number, tree));
        }
        for host in removed {
            if let Some((number, _)) = self.trees.remove(&host) {
                self.numbers.remove(&number);
                self.desired.withdraw(number);
            }
        }
    }

    /// Makes all switches with host ports send hosts' answers to the controller.
    fn update_answer_flows(&mut self) {
        let before = self.answering.len();
        let with_hosts = self.paths.switches().filter(|(_, ports)| !ports.is_empty());
        let version = |dpid| Some((dpid, self.network.switch(dpid)?.version));
        self.answering.extend(with_hosts.filter_map(|(dpid, _)| version(dpid)));
        if self.answering.len() > before {
            let flows_of = |(dpid, version): (&Dpid, &Version)| {
                let dpid = *dpid;
                flows::answer_flows(*version).into_iter().map(move |flow| (dpid, flow))
            };
            self.desired.set_independent(ANSWERS, self.answering.iter().flat_map(flows_of));
        }
    }

    /// The places of all hosts: the known place, otherwise where flows of the last run lead.
    /// Without hosts whose frames belong to another app.
    fn places(&mut self) -> BTreeMap<HostId, SwitchPort> {
        let hosts = &self.hosts;
        self.earlier_run.remove_hosts(|host| hosts.get(host.mac, host.vlan).is_some(), &self.paths);
        let known = hosts.iter().map(|host| (host.id, host.at));
        let all = known.chain(self.earlier_run.places(&self.paths));
        let reserved = reserved_ports(&self.network).load();
        all.filter(|(host, at)| !reserved.is_reserved(*at, host.vlan)).collect()
    }

    /// The flows to a host. A switch without a path keeps its previous flow: there is no better
    /// one, and it leads to the cut, not into a circle.
    fn tree(&self, host: HostId, at: SwitchPort) -> DestinationTree {
        let key = FlowTraffic::To(host).key();
        let mut tree: DestinationTree = vec![(0, at.dpid, at.port)];
        for (dpid, _) in self.paths.switches().filter(|(dpid, _)| *dpid != at.dpid) {
            // A host on a segment is reached by the nearest of its switches.
            let at = self.paths.attachment(at, dpid);
            if at.dpid == dpid {
                tree.push((0, dpid, at.port));
                continue;
            }
            let hop = self.paths.next_hop(dpid, at.dpid, key);
            let distance = self.paths.distance(dpid, at.dpid);
            let before = || {
                let (_, tree) = self.trees.get(&host)?;
                tree.iter().find(|(_, switch, _)| *switch == dpid).copied()
            };
            let new = distance.zip(hop).map(|(d, hop)| (u32::from(d), dpid, hop.from.port));
            tree.extend(new.or_else(before));
        }
        tree.sort_unstable();
        tree
    }

    /// A number for the flows to a host: the same in each run, unless two numbers collide.
    fn number(&mut self, host: HostId) -> u32 {
        let key = FlowTraffic::To(host).key();
        let mut number = (key ^ (key >> 32)) as u32;
        // 0 is the number of flows outside trees.
        while number == 0 || !self.numbers.insert(number) {
            number = number.wrapping_add(1);
        }
        number
    }

    /// Records the flows of a switch, and removes those between pairs.
    fn adopt(&mut self, dpid: Dpid, flows: &[(FlowTraffic, Port)]) {
        self.earlier_run.record_flows(dpid, flows);
        let of_pairs = |traffic: &FlowTraffic| matches!(traffic, FlowTraffic::Between(_));
        let all = flows.iter().map(|(traffic, _)| *traffic);
        flows::remove(&self.network, dpid, all.filter(of_pairs));
    }
}
