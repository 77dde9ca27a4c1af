//! Flows to each host at every switch, installed when the host is found.
//!
//! The flows to one host are a tree: each switch sends to a neighbour that is nearer, and which of several,
//! is drawn from the host's address (so the trees of different hosts spread over all links, also on
//! 1.0, which has no groups). What is wanted is given to the service that keeps it so
//! ([`bellrock_services::desired`]), from the host outward, a tree under a number of its own.
//!
//! # When the controller starts again
//! Traffic goes on by the flows that are there, and the controller sees none of it: it does not know the
//! hosts. So it reads the flows, and takes a host to be where they lead. It changes nothing
//! before switches and links have stayed the same for [`QUIET`]; then paths are chosen as the last run has chosen
//! them, and what has to be sent is what has changed meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellrock_api::{Dpid, HostId, Hosts, Network, Port, Snapshot, SwitchPort, Watch};
use bellrock_services::desired::{Desired, DesiredFlows};
use bellrock_services::paths::{Paths, paths};

use super::flows::{self, Traffic};
use super::news::{Inbox, News};

/// How long a network has to stay as it is until it is taken to be all there, after a start that found
/// flows of an earlier run: longer than switches take to try their controller again (Open vSwitch: 8 s).
const QUIET: Duration = Duration::from_secs(10);

/// The flows to a host: their distance from it, the switch, and the port that they send to.
type Tree = Vec<(u32, Dpid, Port)>;

/// Keeps flows to all hosts. The task.
pub(super) async fn keep(network: Network) {
    let inbox = network.extension::<Inbox>();
    let mut trees = Trees::new(network);
    while let Ok(news) = inbox.receiver.recv().await {
        match news {
            News::Changed | News::Talking(_) | News::Silent(..) => {}
            News::SwitchUp(dpid, _) => trees.look_into(dpid),
            News::Found(dpid, flows) => trees.adopt(dpid, &flows),
        }
        trees.follow();
    }
}

struct Trees {
    network: Network,
    desired: Desired,
    watch: (Watch<Paths>, Watch<Hosts>),
    paths: Snapshot<Paths>,
    hosts: Snapshot<Hosts>,
    /// What is wanted for each host, and under which number.
    trees: BTreeMap<HostId, (u32, Tree)>,
    numbers: BTreeSet<u32>,
    /// Where flows of an earlier run lead.
    left: BTreeMap<HostId, BTreeSet<SwitchPort>>,
    /// Switches whose flows are being read.
    unread: BTreeSet<Dpid>,
    /// As long as the network is not all there.
    waiting: Option<Waiting>,
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
            numbers: BTreeSet::new(),
            left: BTreeMap::new(),
            unread: BTreeSet::new(),
            waiting: Some(Waiting::default()),
            network,
        }
    }

    /// Wants for each host what paths and hosts say now, once the network is all there.
    fn follow(&mut self) {
        let (paths, hosts) = (self.watch.0.load(), self.watch.1.load());
        let is_new_path = paths.version() != self.paths.version();
        let is_new = is_new_path || hosts.version() != self.hosts.version();
        (self.paths, self.hosts) = (paths, hosts);
        let now = self.network.now();
        if let Some(waiting) = &mut self.waiting {
            if is_new_path {
                waiting.since = now;
            }
            if !self.paths.is_settled() || !self.unread.is_empty() {
                return;
            }
            if !self.left.is_empty() && now < waiting.since + QUIET {
                return self.look_again();
            }
            self.waiting = None;
            self.want();
            self.desired.complete();
        } else if is_new {
            self.want();
        }
    }

    /// Looks whether the network is still as it is when it could be all there.
    fn look_again(&mut self) {
        let Some(waiting) = &mut self.waiting else { return };
        let at = waiting.since + QUIET;
        if waiting.alarm < at {
            waiting.alarm = at;
            let network = self.network.clone();
            self.network.spawn("wait for switches", async move {
                network.sleep_until(at).await;
                network.extension::<Inbox>().tell_in_time(News::Changed).await;
            });
        }
    }

    fn want(&mut self) {
        let mut gone: BTreeSet<HostId> = self.trees.keys().copied().collect();
        for (host, at) in self.places() {
            gone.remove(&host);
            let tree = self.tree(host, at);
            let before = self.trees.remove(&host);
            if before.as_ref().is_some_and(|(_, before)| *before == tree) {
                self.trees.extend(before.map(|tree| (host, tree)));
                continue;
            }
            let number = before.map_or_else(|| self.number(host), |(number, _)| number);
            let flow = |port| Traffic::To(host).out_of(port);
            let flows = tree.iter().map(|(distance, dpid, port)| (*distance, *dpid, flow(*port)));
            self.desired.set_tree(number, flows);
            self.trees.insert(host, (number, tree));
        }
        for host in gone {
            if let Some((number, _)) = self.trees.remove(&host) {
                self.numbers.remove(&number);
                self.desired.withdraw(number);
            }
        }
    }

    /// Where hosts are: as is known, and otherwise where the flows of the last run lead, if hosts can be there.
    fn places(&mut self) -> BTreeMap<HostId, SwitchPort> {
        let (paths, hosts) = (&self.paths, &self.hosts);
        let mut places: BTreeMap<HostId, SwitchPort> =
            hosts.iter().map(|host| (host.id, host.at)).collect();
        let is_edge = |at: &SwitchPort| paths.edge_ports(at.dpid).binary_search(&at.port).is_ok();
        self.left.retain(|host, ends| {
            let end = ends.iter().find(|at| is_edge(at)).filter(|_| !places.contains_key(host));
            places.extend(end.map(|at| (*host, *at)));
            end.is_some()
        });
        places
    }

    fn tree(&self, host: HostId, at: SwitchPort) -> Tree {
        let key = Traffic::To(host).key();
        let others = self.paths.switches().filter_map(|(dpid, _)| {
            let distance = self.paths.distance(dpid, at.dpid)?;
            let hop = self.paths.next_hop(dpid, at.dpid, key)?;
            Some((u32::from(distance), dpid, hop.from.port))
        });
        let mut tree: Tree = others.chain([(0, at.dpid, at.port)]).collect();
        tree.sort_unstable();
        tree
    }

    /// A number for the flows to a host: the same in each run, unless two hosts come to the same.
    fn number(&mut self, host: HostId) -> u32 {
        let key = Traffic::To(host).key();
        let mut number = (key ^ (key >> 32)) as u32;
        // 0 is the number of flows that are no tree's.
        while number == 0 || !self.numbers.insert(number) {
            number = number.wrapping_add(1);
        }
        number
    }

    fn look_into(&mut self, dpid: Dpid) {
        if let Some(waiting) = &mut self.waiting {
            waiting.since = self.network.now();
            self.unread.insert(dpid);
        }
        flows::look_for(&self.network, dpid);
    }

    fn adopt(&mut self, dpid: Dpid, flows: &[(Traffic, Port)]) {
        self.unread.remove(&dpid);
        let of_pairs = |traffic: &Traffic| matches!(traffic, Traffic::Between(_));
        let all = flows.iter().map(|(traffic, _)| *traffic);
        flows::remove(&self.network, dpid, all.filter(of_pairs));
        if self.waiting.is_some() {
            for (traffic, port) in flows {
                if let Traffic::To(host) = traffic {
                    self.left.entry(*host).or_default().insert(SwitchPort::new(dpid, *port));
                }
            }
        }
    }
}

/// A network that is not all there yet.
#[derive(Default)]
struct Waiting {
    /// When paths or switches changed last.
    since: Duration,
    /// When it will be looked at again.
    alarm: Duration,
}
