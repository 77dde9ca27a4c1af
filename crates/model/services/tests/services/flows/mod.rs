//! Labs for tests of flows: an app that does nothing by itself, and trees of flows to one host.
#![allow(missing_docs, unreachable_pub, reason = "a test program has no interface")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};

use bellrock_api::{
    App, Cookie, Dpid, EarlierFlows, Flow, Handler, MacAddr, Match, Network, Port, SwitchInfo,
};
use bellrock_emulator::check::{Analysis, PathFault};
use bellrock_emulator::lab::Lab;
use bellrock_emulator::topology::{HostIndex, LinkShape, Node, SwitchIndex, TopologySpec, ring};
use fastrand::Rng;

/// An app that keeps its handle to the network, through which the test installs flows.
#[derive(Clone, Default)]
pub struct Hand(Arc<Mutex<Option<Network>>>);

pub struct Idle;

impl Handler for Idle {}

pub const NAME: &str = "hand";

impl App for Hand {
    type Handler = Idle;
    fn name(&self) -> &'static str {
        NAME
    }
    fn wants_packet_ins(&self) -> bool {
        false
    }
    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Keep
    }
    fn start(&self, network: &Network) {
        *self.0.lock().unwrap() = Some(network.clone());
    }
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Idle {
        Idle
    }
}

impl Hand {
    pub fn network(&self) -> Network {
        self.0.lock().unwrap().clone().unwrap()
    }

    /// Runs a task. Returns a place for its result.
    pub fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Arc<Mutex<Option<T>>> {
        let result = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&result);
        self.network().spawn("test", async move {
            let value = task.await;
            *kept.lock().unwrap() = Some(value);
        });
        result
    }
}

/// Returns the app's flows in all switches: switch, priority in its band, and match.
pub fn flows_of(lab: &Lab, name: &str) -> Vec<(Dpid, u16, String)> {
    let cookie = Cookie::of_app(name);
    let mut flows = Vec::new();
    for switch in lab.topology().switches() {
        for (_, table) in lab.switch(&switch.name).datapath().tables().iter() {
            for (_, flow) in table.flows().filter(|(_, flow)| cookie.owns(flow.cookie)) {
                let matching = flow.matching().to_string();
                flows.push((Dpid(switch.dpid), flow.priority & 0xfff, matching));
            }
        }
    }
    flows.sort();
    flows
}

/// A path from every switch to one host: the distance in hops, and the port towards it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree(pub BTreeMap<Dpid, (u32, Port)>);

impl Tree {
    /// A random tree over the links that are up.
    pub fn random(topology: &TopologySpec, to: HostIndex, rng: &mut Rng) -> Tree {
        let host_link = topology.link_at(Node::Host(to), 0).unwrap();
        let [a, b] = topology.links()[host_link.index()].ends;
        let root = if a.node == Node::Host(to) { b } else { a };
        let mut tree = BTreeMap::new();
        let Node::Switch(first) = root.node else { panic!("a host is at a switch") };
        tree.insert(first, (0, root.port));
        loop {
            // All links from a switch outside the tree to one in it.
            let mut ways = Vec::new();
            for link in topology.links() {
                for [near, far] in [link.ends, [link.ends[1], link.ends[0]]] {
                    if let (Node::Switch(near_id), Node::Switch(far_id)) = (near.node, far.node)
                        && tree.contains_key(&near_id)
                        && !tree.contains_key(&far_id)
                    {
                        ways.push((far_id, tree[&near_id].0 + 1, far.port));
                    }
                }
            }
            let Some((switch, distance, port)) = rng.choice(ways) else { break };
            tree.insert(switch, (distance, port));
        }
        let dpid = |switch: SwitchIndex| Dpid(topology.switches()[switch.index()].dpid);
        Tree(tree.into_iter().map(|(id, (hops, port))| (dpid(id), (hops, Port(port)))).collect())
    }

    /// Returns the tree's path from one switch, from the destination: switches and ports.
    pub fn path_from(&self, topology: &TopologySpec, from: Dpid) -> Vec<(Dpid, Port)> {
        let mut path = Vec::new();
        let mut at = Some(from);
        while let Some(dpid) = at {
            let (_, port) = self.0[&dpid];
            path.push((dpid, port));
            let id = topology.switches().iter().position(|switch| switch.dpid == dpid.0).unwrap();
            let here = Node::Switch(SwitchIndex(id as u32));
            let ends = topology.links()[topology.link_at(here, port.0).unwrap().index()].ends;
            let next = if ends[0].node == here { ends[1] } else { ends[0] };
            at = match next.node {
                Node::Switch(next) => Some(Dpid(topology.switches()[next.index()].dpid)),
                Node::Host(_) => None,
            };
        }
        path.reverse();
        path
    }

    /// Returns the tree's flows: distance, switch and flow.
    pub fn flows(&self, to: MacAddr) -> Vec<(u32, Dpid, Flow)> {
        let matching = || Match::any().eth_dst(to);
        let flow = |(dpid, (distance, port)): (&Dpid, &(u32, Port))| {
            (*distance, *dpid, Flow::new(matching()).priority(100).output(*port))
        };
        self.0.iter().map(flow).collect()
    }
}

/// Returns problems of packets from all hosts to one. A switch without a host is not checked.
pub fn findings(lab: &Lab, to: HostIndex) -> Vec<String> {
    let all = 0..lab.topology().hosts().len() as u32;
    findings_from(lab, all.map(HostIndex), to)
}

/// Returns problems of packets from these hosts to one.
pub fn findings_from(
    lab: &Lab,
    hosts: impl IntoIterator<Item = HostIndex>,
    to: HostIndex,
) -> Vec<String> {
    let mut analysis = Analysis::new(lab.network());
    let mut found = Vec::new();
    for from in hosts.into_iter().filter(|from| *from != to) {
        let findings: Vec<PathFault> = analysis.ping(from, to).findings(to);
        let name = lab.topology().name(Node::Host(from));
        let named =
            |finding: &PathFault| format!("from {name}: {}", finding.display(lab.topology()));
        found.extend(findings.iter().map(named));
    }
    found
}

/// A ring of switches with a host each, and as many links across it: it has many trees.
pub fn mesh(switches: u32, rng: &mut Rng) -> TopologySpec {
    let mut topology: TopologySpec = ring(switches, 1).build().unwrap();
    let at = |n: u32| (Node::Switch(SwitchIndex(n)), None);
    for _ in 0..switches {
        let (a, b) = (rng.u32(0..switches), rng.u32(0..switches));
        if a != b {
            topology.add_link(at(a), at(b), LinkShape::default()).unwrap();
        }
    }
    topology
}
