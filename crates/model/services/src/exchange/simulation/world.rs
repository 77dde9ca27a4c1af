//! The world of the controllers: time, switches, cables, connections, and what is on its way.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{Dpid, Event, HostId, Hosts, MacAddr, Port, SwitchPort, Topology};

use super::shared::Queue;
use super::{Faults, Spoilt};
use crate::discovery::DiscoveryKey;
use crate::discovery::testing::TestLinks;
use crate::exchange::{
    Buckets, Exchange, LinkInput, NumberedFrame, PassedAnnouncement, Peer, PeerFrame,
};
use crate::hosts::testing::TestHosts;

/// How long faults happen, and how long nothing happens after them.
const FAULTS: Duration = Duration::from_secs(25);
const QUIET: Duration = Duration::from_secs(20);
/// Nothing fails while the network is found.
const BEGIN: Duration = Duration::from_secs(5);
/// Time between two announcements of a port.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time between two turns of a controller.
const TURN: Duration = Duration::from_millis(25);
/// Time between two packets of a host.
const HOST_SENDS: Duration = Duration::from_secs(3);

pub(super) const NODES: usize = 3;
const HOSTS: usize = 6;

pub(super) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A controller.
pub(super) struct Node {
    /// Number of the process.
    pub(super) process: u64,
    pub(super) is_alive: bool,
    pub(super) is_stopped: bool,
    pub(super) started: Duration,
    /// What came while the process was stopped.
    pub(super) waiting: Vec<Happening>,
    pub(super) exchange: Arc<Exchange>,
    links: TestLinks,
    tracker: TestHosts,
    topology: Topology,
    pub(super) hosts: Hosts,
    /// Switches that it is master of, as far as it knows.
    own: BTreeSet<usize>,
    nonce: u64,
}

pub(super) struct Switch {
    pub(super) master: Option<usize>,
    /// The election that has made it the master.
    pub(super) term: u64,
}

pub(super) struct Cable {
    ends: [SwitchPort; 2],
    pub(super) is_cut: bool,
}

/// The connection by which a controller sends to another one.
#[derive(Clone, Copy, Default)]
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) stands: bool,
    /// When the last frame will come in: they come in order.
    pub(super) busy_until: Duration,
    pub(super) slowness_ms: u64,
    pub(super) loses: bool,
}

pub(super) enum Happening {
    Turn(usize),
    Round(usize),
    /// An announcement has left a port.
    Announced {
        from: SwitchPort,
        node: usize,
        process: u64,
        nonce: u64,
        sent: Duration,
    },
    Frame {
        from: usize,
        to: usize,
        connection: u64,
        frame: Frame,
    },
    /// A controller gets to know that it is, or is not, master of a switch.
    Learn {
        node: usize,
        process: u64,
        switch: usize,
    },
    PortDown(SwitchPort),
    PortUp(SwitchPort),
    HostSends(usize),
    /// A host answers where it is.
    Answer {
        host: usize,
        node: usize,
        process: u64,
    },
    Dead {
        node: usize,
        to: usize,
    },
    Fault,
    Start(usize),
    TakeOver(usize),
    Continue(usize),
    HealCable(usize),
    HealConnection(usize, usize),
    Connect(usize, usize),
}

pub(super) enum Frame {
    Facts(NumberedFrame),
    Applied(u64, u64),
    Again,
}

pub(super) struct World {
    pub(super) random: fastrand::Rng,
    pub(super) faults: Faults,
    pub(super) spoilt: Spoilt,
    is_loud: bool,
    pub(super) now: Duration,
    processes: u64,
    queue: Queue<Happening>,
    pub(super) nodes: Vec<Node>,
    pub(super) switches: Vec<Switch>,
    pub(super) cables: Vec<Cable>,
    pub(super) connections: [[Connection; NODES]; NODES],
    /// The ports of hosts, and where each host is.
    pub(super) edge: Vec<SwitchPort>,
    pub(super) places: Vec<SwitchPort>,
    failure: Option<String>,
}

fn dpid(switch: usize) -> Dpid {
    Dpid(switch as u64 + 1)
}

fn switch_of(dpid: Dpid) -> usize {
    dpid.0 as usize - 1
}

pub(super) fn peer(node: usize) -> Peer {
    Peer(node as u8)
}

fn host(host: usize) -> (HostId, IpAddr) {
    let id = HostId::new(MacAddr::from_u64(0x0200_0000_0000 + host as u64), None);
    (id, IpAddr::from([10, 0, 0, host as u8]))
}

impl World {
    /// A random tree of switches, with one further cable. Each switch has a port for hosts.
    pub(super) fn new(seed: u64, faults: Faults, spoilt: Spoilt, is_loud: bool) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let count = random.usize(4..8);
        let mut ports = vec![1_u32; count];
        let mut pairs: Vec<(usize, usize)> =
            (1..count).map(|it| (it, random.usize(0..it))).collect();
        pairs.push((0, count - 1));
        let mut next = |switch: usize| {
            ports[switch] += 1;
            SwitchPort::new(dpid(switch), Port(ports[switch]))
        };
        let cable = |(a, b)| Cable { ends: [next(a), next(b)], is_cut: false };
        let cables = pairs.into_iter().map(cable).collect();
        let edge: Vec<SwitchPort> =
            (0..count).map(|it| SwitchPort::new(dpid(it), Port(1))).collect();
        let places = (0..HOSTS).map(|_| edge[random.usize(..count)]).collect();
        let mut world = World {
            faults,
            spoilt,
            is_loud,
            now: Duration::ZERO,
            processes: 0,
            queue: Queue::default(),
            nodes: Vec::new(),
            switches: (0..count).map(|_| Switch { master: None, term: 0 }).collect(),
            cables,
            connections: Default::default(),
            edge,
            places,
            failure: None,
            random,
        };
        for node in 0..NODES {
            let begun = world.process(node);
            world.nodes.push(begun);
            world.after(ms(1), Happening::Start(node));
        }
        for switch in 0..count {
            let master = world.random.usize(..NODES);
            world.switches[switch] = Switch { master: Some(master), term: u64::MAX - 3 };
        }
        for host in 0..HOSTS {
            let at = ms(world.random.u64(3000..5000));
            world.after(at, Happening::HostSends(host));
        }
        world.after(BEGIN, Happening::Fault);
        world
    }

    /// A process of a controller that has just begun.
    fn process(&mut self, node: usize) -> Node {
        self.processes += 1;
        let exchange = Arc::new(Exchange::default());
        exchange.begin_links(self.processes, DiscoveryKey::of(&[node as u8; 32]));
        exchange.begin_hosts();
        let incarnation = if self.spoilt.same_streams { 0 } else { self.random.u64(..) };
        let others = (0..NODES).filter(|it| *it != node).map(peer);
        exchange.open(peer(node), others, incarnation);
        Node {
            process: self.processes,
            is_alive: false,
            is_stopped: false,
            started: self.now,
            waiting: Vec::new(),
            exchange,
            links: TestLinks::new(INTERVAL, self.spoilt.keeps_reported),
            tracker: TestHosts::new(),
            topology: Topology::default(),
            hosts: Hosts::default(),
            own: BTreeSet::new(),
            nonce: 0,
        }
    }

    /// Plays all faults, and says what went wrong.
    pub(super) fn play(mut self) -> Result<(), String> {
        while let Some((at, happening)) = self.queue.pop() {
            self.now = at;
            if at >= BEGIN + FAULTS + QUIET {
                break;
            }
            self.happen(happening);
            if let Some(failure) = self.failure.take() {
                return Err(format!("at {:?}: {failure}", self.now));
            }
        }
        self.all_know_the_network()
    }

    pub(super) fn has_faults(&self) -> bool {
        self.now < BEGIN + FAULTS
    }

    pub(super) fn after(&mut self, delay: Duration, happening: Happening) {
        self.queue.push(self.now + delay, happening);
    }

    pub(super) fn log(&self, line: impl FnOnce() -> String) {
        if self.is_loud {
            println!("{:>9.3} {}", self.now.as_secs_f64(), line());
        }
    }

    pub(super) fn fail(&mut self, failure: String) {
        self.failure.get_or_insert(failure);
    }

    /// The controller that a happening is for.
    fn node_of(&self, happening: &Happening) -> Option<usize> {
        match *happening {
            Happening::Turn(node) | Happening::Round(node) => Some(node),
            Happening::Frame { to, .. } | Happening::Dead { to, .. } => Some(to),
            Happening::Learn { node, .. } | Happening::Answer { node, .. } => Some(node),
            Happening::PortDown(at) | Happening::PortUp(at) => {
                self.switches[switch_of(at.dpid)].master
            }
            _ => None,
        }
    }

    pub(super) fn happen(&mut self, happening: Happening) {
        if let Some(node) = self.node_of(&happening) {
            let node = &mut self.nodes[node];
            if node.is_stopped {
                return node.waiting.push(happening);
            }
            let is_for_all = matches!(happening, Happening::Turn(_) | Happening::Round(_));
            if !node.is_alive && !is_for_all {
                return;
            }
        }
        match happening {
            Happening::Turn(node) => {
                if self.nodes[node].is_alive {
                    self.turn(node);
                }
                self.after(TURN, Happening::Turn(node));
            }
            Happening::Round(node) => {
                if self.nodes[node].is_alive {
                    self.announce(node);
                }
                self.after(INTERVAL, Happening::Round(node));
            }
            Happening::Announced { from, node, process, nonce, sent } => {
                self.come_in(from, (node, process), nonce, sent);
            }
            Happening::Frame { from, to, connection, frame } => {
                if self.connections[from][to].number == connection {
                    self.receive(from, to, frame);
                }
            }
            Happening::Learn { node, process, switch } => {
                if self.nodes[node].process == process {
                    self.learn(node, switch);
                }
            }
            Happening::PortDown(at) => self.port_down(at),
            Happening::PortUp(at) => {
                if let Some(node) = self.switches[switch_of(at.dpid)].master {
                    self.learn(node, switch_of(at.dpid));
                }
            }
            Happening::HostSends(host) => {
                self.host_sends(host);
                self.after(HOST_SENDS, Happening::HostSends(host));
            }
            Happening::Answer { host, node, process } => {
                if self.nodes[node].process == process {
                    self.see(node, host, self.places[host]);
                }
            }
            Happening::Dead { node, to } => {
                if !self.nodes[node].is_alive || self.nodes[node].is_stopped {
                    self.nodes[to].exchange.dead(peer(node));
                }
            }
            fault => self.fault(fault),
        }
    }

    /// Starts a controller again.
    pub(super) fn start(&mut self, node: usize) {
        if self.nodes[node].is_alive {
            return;
        }
        self.nodes[node] = Node { is_alive: true, ..self.process(node) };
        if self.now < ms(10) {
            let (turn, round) = (self.random.u64(1..25), self.random.u64(100..1000));
            self.after(ms(turn), Happening::Turn(node));
            self.after(ms(round), Happening::Round(node));
        }
        for other in (0..NODES).filter(|it| *it != node) {
            for (from, to) in [(node, other), (other, node)] {
                let delay = ms(self.random.u64(1..60));
                self.after(delay, Happening::Connect(from, to));
            }
        }
        let still: Vec<usize> =
            (0..self.switches.len()).filter(|it| self.switches[*it].master == Some(node)).collect();
        for switch in still {
            self.tell(node, switch, 100..400);
        }
    }

    /// Makes a controller the master of a switch. It and the former one get to know it a little
    /// later.
    pub(super) fn give(&mut self, switch: usize, to: usize) {
        let before = self.switches[switch].master.replace(to);
        self.switches[switch].term = self.switches[switch].term.wrapping_add(1);
        self.log(|| format!("switch {} goes from {before:?} to {to}", switch + 1));
        if let Some(before) = before.filter(|before| *before != to) {
            self.tell(before, switch, 1..1000);
        }
        self.tell(to, switch, 1..30);
    }

    fn tell(&mut self, node: usize, switch: usize, after_ms: std::ops::Range<u64>) {
        let (delay, process) = (ms(self.random.u64(after_ms)), self.nodes[node].process);
        self.after(delay, Happening::Learn { node, process, switch });
    }

    /// A controller gets to know whether it is master of a switch, and its ports.
    fn learn(&mut self, node: usize, switch: usize) {
        let (now, dpid) = (self.now, dpid(switch));
        let is_master = self.switches[switch].master == Some(node);
        let cut = self.cables.iter().filter(|cable| cable.is_cut).flat_map(|cable| cable.ends);
        let cut: Vec<SwitchPort> = cut.collect();
        let ends = self.cables.iter().flat_map(|cable| cable.ends);
        let ports = ends.chain(self.edge.iter().copied()).filter(|at| at.dpid == dpid);
        let up: Vec<Port> = ports.filter(|at| !cut.contains(at)).map(|at| at.port).collect();
        let term = self.switches[switch].term;
        let it = &mut self.nodes[node];
        if is_master {
            it.exchange.elected(dpid, term);
            it.own.insert(switch);
            it.links.switch(dpid, Duration::ZERO, &up, now);
        } else if it.own.remove(&switch) {
            it.links.lost(dpid, &it.hosts, now);
        } else {
            return;
        }
        it.tracker.own(it.own.iter().map(|own| self::dpid(*own)).collect(), now);
    }

    fn port_down(&mut self, at: SwitchPort) {
        let switch = switch_of(at.dpid);
        let Some(master) = self.switches[switch].master else { return };
        if self.nodes[master].own.contains(&switch) {
            self.nodes[master].links.port_down(at, self.now);
        }
    }

    /// The port at the other end of a cable that is whole.
    fn other_end(&self, at: SwitchPort) -> Option<SwitchPort> {
        let cable = self.cables.iter().find(|cable| cable.ends.contains(&at))?;
        let [one, other] = cable.ends;
        (!cable.is_cut).then_some(if one == at { other } else { one })
    }

    fn announce(&mut self, node: usize) {
        let own = self.nodes[node].own.clone();
        let ports: Vec<SwitchPort> = self.cables.iter().flat_map(|cable| cable.ends).collect();
        for from in ports {
            let switch = switch_of(from.dpid);
            // A switch takes no packet from a controller that it does not obey any more.
            if own.contains(&switch) && self.switches[switch].master == Some(node) {
                self.nodes[node].nonce += 1;
                let (nonce, process) = (self.nodes[node].nonce, self.nodes[node].process);
                let delay = ms(self.random.u64(1..5));
                let sent = self.now;
                self.after(delay, Happening::Announced { from, node, process, nonce, sent });
            }
        }
    }

    /// An announcement comes in at the other end of a cable, and there at the switch's master.
    fn come_in(&mut self, from: SwitchPort, by: (usize, u64), nonce: u64, sent: Duration) {
        let Some(to) = self.other_end(from) else { return };
        let Some(master) = self.switches[switch_of(to.dpid)].master else { return };
        let now = self.now;
        let (signer, instance) = by;
        let it = &mut self.nodes[master];
        if !it.is_alive || it.is_stopped || !it.own.contains(&switch_of(to.dpid)) {
            return;
        }
        let passed = PassedAnnouncement { instance, from, to, nonce, sent };
        if signer != master {
            it.exchange.post(peer(signer), PeerFrame::Announcement(passed));
        } else if it.process == instance {
            it.links.heard(passed, None, &it.hosts, now);
        }
    }

    fn host_sends(&mut self, host: usize) {
        let at = self.places[host];
        if let Some(master) = self.switches[switch_of(at.dpid)].master
            && self.nodes[master].is_alive
            && !self.nodes[master].is_stopped
        {
            self.see(master, host, at);
        }
    }

    fn see(&mut self, node: usize, which: usize, at: SwitchPort) {
        let (now, it) = (self.now, &mut self.nodes[node]);
        if it.own.contains(&switch_of(at.dpid)) {
            let (host, ip) = host(which);
            it.tracker.seen((host, ip, at), &it.topology, now);
        }
    }

    /// Discovery, host tracking and the exchange of a controller do what there is to do.
    fn turn(&mut self, node: usize) {
        let now = self.now;
        let it = &mut self.nodes[node];
        while let Ok(input) = it.exchange.link_inputs().try_recv() {
            let (peer, body, _applied) = input.split();
            match body {
                LinkInput::Announcement(passed) if passed.instance == it.process => {
                    it.links.heard(passed, Some(peer), &it.hosts, now);
                }
                body => {
                    let differing = it.links.input(peer, body, &it.hosts, now);
                    if !differing.is_empty() {
                        let frame =
                            PeerFrame::Differs { switches: differing, hosts: Buckets::NONE };
                        it.exchange.post(peer, frame);
                    }
                }
            }
        }
        while let Ok(input) = it.exchange.host_inputs().try_recv() {
            let (peer, body, _applied) = input.split();
            it.tracker.input(peer, body, (&it.topology, now));
        }
        it.links.timers(now);
        if let Some(topology) = it.links.take_topology() {
            it.topology = topology;
            it.exchange.set_switches(it.links.own_facts(), &it.hosts);
            it.tracker.topology(&it.topology, now);
        }
        let (hosts, asked) = it.tracker.turn(&it.exchange, &it.topology, now);
        if let Some(hosts) = hosts {
            it.hosts = hosts;
        }
        let (events, process) = (it.links.take_events(), it.process);
        for (id, at) in asked {
            let is_there = |which: &usize| host(*which).0 == id && self.places[*which] == at;
            if let Some(host) = (0..HOSTS).find(is_there) {
                self.after(ms(5), Happening::Answer { host, node, process });
            }
        }
        for event in events {
            self.log(|| format!("at {node}: {event}"));
            let is_down = matches!(event, Event::LinkDown { .. });
            if is_down && self.faults == Faults::OfControllers {
                self.fail(format!("a link is down at {node}: {event}"));
            }
        }
        self.send(node);
    }

    /// Whether all controllers know the links and hosts of the network.
    fn all_know_the_network(&self) -> Result<(), String> {
        let whole = self.cables.iter().filter(|cable| !cable.is_cut);
        let links: BTreeMap<SwitchPort, SwitchPort> =
            whole.flat_map(|Cable { ends: [a, b], .. }| [(*a, *b), (*b, *a)]).collect();
        let hosts: BTreeMap<HostId, (SwitchPort, Vec<IpAddr>)> =
            (0..HOSTS).map(|it| (host(it).0, (self.places[it], vec![host(it).1]))).collect();
        let mut wrong = Vec::new();
        for (place, node) in self.nodes.iter().enumerate() {
            let known: BTreeMap<SwitchPort, SwitchPort> =
                node.topology.links.values().map(|link| (link.from, link.to)).collect();
            if known != links {
                return Err(format!("links at {place} are\n{known:?}, not\n{links:?}"));
            }
            let known: BTreeMap<_, _> =
                node.hosts.iter().map(|it| (it.id, (it.at, it.addresses.clone()))).collect();
            for (id, place_of_it) in &hosts {
                if known.get(id) != Some(place_of_it) {
                    let known = known.get(id);
                    wrong.push(format!("{id} at {place} is {known:?}, not {place_of_it:?}"));
                }
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }
}

impl Cable {
    pub(super) fn ends(&self) -> [SwitchPort; 2] {
        self.ends
    }
}
