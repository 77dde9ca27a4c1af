//! The world of the nodes: time, connections, and what is on its way.

mod end;
mod moves;
mod watching;

use std::time::Duration;

use bellrock_api::{Dpid, RoleOrder};
use bellrock_cluster::heartbeat::{Heartbeat, SwitchReport};
use bellrock_cluster::mastership::{
    Input, KEEP_RECORDS, Mastership, MemberSettings, NotMoved, Notice, Output, SwitchRole,
};
use bellrock_cluster::node::NodeId;
use bellrock_cluster::record::Generation;

use crate::shared::Queue;
use crate::store::Store;
use crate::switch::{Claimed, Connection, Switch};
use watching::NewRecord;

/// How long faults happen, and how long nothing happens after them.
const FAULTS: Duration = Duration::from_secs(20);
const QUIET: Duration = Duration::from_secs(15);
/// A node that is master sends a flow_mod so often.
const FLOW_MOD_EVERY: Duration = Duration::from_millis(40);
/// A connection that is gone without a word is given up after so long.
const PROBE: Duration = Duration::from_secs(5);
/// How long records are kept where they are soon removed.
const SOON: Duration = Duration::from_secs(1);
/// Events after which a run is taken for endless.
const MAX_EVENTS: u64 = 2_000_000;

/// What guards a switch from old masters, and what is taken out to see whether a seed finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fence {
    /// All that Bellrock has.
    Whole,
    /// The same generation always.
    None,
    /// Generations of the epoch alone.
    WithoutRank,
    /// Generations of epoch and rank, without the node.
    WithoutNode,
    /// A restore of etcd is noticed only when the revision is smaller than before.
    RestoreUnnoticed,
    /// Switches do not answer what they are asked, and nodes do not say what they are master of, as
    /// in the first release.
    Silent,
}

/// What does not end with the faults.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lasting {
    /// A minority of the nodes stays away.
    nodes: bool,
    /// etcd is away for up to 15 s at a time.
    pub(crate) long_cuts: bool,
    /// etcd stays away.
    store: bool,
}

pub(crate) struct Node {
    machine: Mastership,
    /// Number of the process.
    process: u64,
    pub(crate) is_alive: bool,
    pub(crate) is_stopped: bool,
    /// Whether an operator has ever ordered the process to drain.
    has_drained: bool,
    /// What came while the process was stopped.
    waiting: Vec<Input>,
    /// Faults that keep the node from etcd.
    pub(crate) store_cuts: u32,
    /// Revision and history of etcd up to which it knows all records.
    seen: Option<(u64, u64)>,
    next_wake: Duration,
}

pub(crate) enum Event {
    Wake(usize),
    Input { node: usize, process: u64, input: Input },
    Heartbeat { from: usize, to: usize, heartbeat: Heartbeat },
    Write { node: usize, process: u64, new: NewRecord },
    Remove { node: usize, dpid: Dpid, expected: u64 },
    Watched { node: usize, history: u64 },
    Order { node: usize, switch: usize, number: u64, order: RoleOrder },
    Ask { node: usize, switch: usize, number: u64 },
    FlowMod { node: usize, process: u64, switch: usize, number: u64, generation: Generation },
    Reply { node: usize, process: u64, switch: usize, number: u64, input: Input },
    FlowMods,
    Fault,
    Start(usize),
    Continue(usize),
    Heal(Vec<(usize, usize)>),
    StoreBack(usize),
    Gone(usize, usize),
    Connect(usize, usize),
    Reconnect(usize, usize),
}

pub(crate) struct World {
    pub(crate) random: fastrand::Rng,
    fence: Fence,
    is_loud: bool,
    now: Duration,
    queue: Queue<Event>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) store: Store,
    /// All states of etcd so far.
    pub(crate) past: Vec<Store>,
    pub(crate) lasting: Lasting,
    /// How long records of switches that are gone are kept.
    pub(crate) keep_records: Duration,
    /// Number of records that were removed.
    pub(crate) removed: usize,
    /// What became of moves that were ordered.
    pub(crate) moved: Vec<(Dpid, Result<(), NotMoved>)>,
    /// The same of balances: how many switches were left where they had been moved.
    pub(crate) balanced: Vec<usize>,
    /// Nodes that stay away.
    gone: Vec<usize>,
    /// Pairs of nodes of which the second does not hear the first.
    pub(crate) cuts: Vec<(usize, usize)>,
    pub(crate) link_cuts: Vec<(usize, usize)>,
    is_quiet: bool,
    failure: Option<String>,
}

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

impl World {
    pub(crate) fn new(seed: u64, fence: Fence, is_loud: bool) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let nodes = if random.u32(0..4) == 0 { 5 } else { 3 };
        let switches = random.usize(1..9);
        let mut world = World::without_faults(random, nodes, switches, fence, is_loud);
        world.after(ms(2000), Event::Fault);
        world.lasting = match seed % 4 {
            0 => Lasting::default(),
            1 => Lasting { nodes: true, ..Lasting::default() },
            2 => Lasting { nodes: true, long_cuts: true, store: false },
            _ => Lasting { nodes: true, long_cuts: true, store: true },
        };
        world
    }

    /// As [`World::new`], with records that are soon removed, and switches that no node has for a
    /// while.
    pub(crate) fn forgetful(seed: u64) -> Self {
        let mut world = World::new(seed, Fence::Whole, false);
        world.keep_records = SOON;
        world
    }

    /// A world in which nothing fails by itself.
    pub(crate) fn calm(nodes: usize, switches: usize) -> Self {
        World::without_faults(fastrand::Rng::with_seed(1), nodes, switches, Fence::Whole, false)
    }

    fn without_faults(
        mut random: fastrand::Rng,
        nodes: usize,
        switches: usize,
        fence: Fence,
        is_loud: bool,
    ) -> Self {
        let switches =
            (0..switches).map(|_| Switch::new(nodes, random.bool(), random.bool())).collect();
        let mut world = World {
            fence,
            is_loud,
            now: Duration::ZERO,
            queue: Queue::default(),
            nodes: Vec::new(),
            switches,
            store: Store::default(),
            past: vec![Store::default()],
            lasting: Lasting::default(),
            keep_records: KEEP_RECORDS,
            removed: 0,
            moved: Vec::new(),
            balanced: Vec::new(),
            gone: Vec::new(),
            cuts: Vec::new(),
            link_cuts: Vec::new(),
            is_quiet: false,
            failure: None,
            random,
        };
        for node in 0..nodes {
            let machine = world.machine(node, nodes);
            world.nodes.push(Node {
                machine,
                process: node as u64,
                is_alive: false,
                is_stopped: false,
                has_drained: false,
                waiting: Vec::new(),
                store_cuts: 0,
                seen: None,
                next_wake: Duration::MAX,
            });
            let at = ms(world.random.u64(0..500));
            world.after(at, Event::Start(node));
        }
        world.after(ms(1), Event::FlowMods);
        world
    }

    /// Plays up to this time.
    pub(crate) fn run_until(&mut self, end: Duration) {
        while let Some((at, event)) = self.queue.pop_until(end) {
            self.now = at;
            self.happen(event);
            assert_eq!(self.failure, None);
        }
        self.now = end;
    }

    /// The switches that obey a node.
    pub(crate) fn switches_of(&self, node: usize) -> Vec<usize> {
        let all = 0..self.switches.len();
        all.filter(|&switch| self.switches[switch].master() == Some(node)).collect()
    }

    pub(crate) fn dpid(switch: usize) -> Dpid {
        Dpid(switch as u64 + 1)
    }

    fn machine(&mut self, node: usize, nodes: usize) -> Mastership {
        let me = NodeId::new(node).unwrap();
        let incarnation = self.random.u64(..);
        let settings = MemberSettings { me, nodes, incarnation, keep_records: self.keep_records };
        Mastership::new(settings, self.now)
    }

    /// Plays all faults, and says what went wrong.
    pub(crate) fn play(mut self) -> Result<(), String> {
        self.play_on()
    }

    pub(crate) fn play_on(&mut self) -> Result<(), String> {
        self.play_until(FAULTS + QUIET)?;
        self.has_converged()?;
        self.ends_moves()
    }

    fn play_until(&mut self, end: Duration) -> Result<(), String> {
        let mut events = 0;
        while let Some((at, event)) = self.queue.pop_until(end) {
            self.now = at;
            if at >= FAULTS && !self.is_quiet {
                self.end_faults();
            }
            self.happen(event);
            if let Some(failure) = self.failure.take() {
                return Err(format!("at {:?}: {failure}", self.now));
            }
            events += 1;
            if events > MAX_EVENTS {
                return Err("there is no end of events".into());
            }
        }
        self.now = end;
        Ok(())
    }

    pub(crate) fn after(&mut self, delay: Duration, event: Event) {
        self.queue.push(self.now + delay, event);
    }

    /// Delay of a message in a network that is well.
    fn delay(&mut self) -> Duration {
        Duration::from_micros(self.random.u64(100..3000))
    }

    pub(crate) fn log(&self, line: impl FnOnce() -> String) {
        if self.is_loud {
            println!("{:>9.3} {}", self.now.as_secs_f64(), line());
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Wake(node) => {
                if self.nodes[node].next_wake <= self.now {
                    self.advance(node, None);
                }
            }
            Event::Input { node, process, input } => {
                if self.nodes[node].process == process {
                    self.give(node, input);
                }
            }
            Event::Heartbeat { from, to, heartbeat } => {
                if !self.cuts.contains(&(from, to))
                    && let Some(from) = NodeId::new(from)
                {
                    self.give(to, Input::Heard(from, heartbeat));
                }
            }
            Event::Write { node, process, new } => self.write(node, process, new),
            Event::Remove { node, dpid, expected } => self.remove(node, dpid, expected),
            Event::Watched { node, history } => {
                // What is missed comes later.
                let it = &self.nodes[node];
                if it.store_cuts == 0 && it.is_alive && history == self.store.history {
                    self.watch_on(node);
                }
            }
            Event::Order { node, switch, number, order } => self.order(node, switch, number, order),
            Event::Ask { node, switch, number } => self.ask(node, switch, number),
            Event::FlowMod { node, process, switch, number, generation } => {
                self.flow_mod(node, process, switch, number, generation);
            }
            Event::Reply { node, process, switch, number, input } => {
                let connection = self.switches[switch].connections[node];
                if self.nodes[node].process == process
                    && connection.is_some_and(|connection| connection.number == number)
                {
                    self.give(node, input);
                }
            }
            Event::FlowMods => self.send_flow_mods(),
            Event::Fault => {
                if !self.is_quiet {
                    self.fault();
                    let next = ms(self.random.u64(50..2000));
                    self.after(next, Event::Fault);
                }
            }
            Event::Start(node) => self.start(node),
            Event::Continue(node) => self.resume(node),
            Event::Heal(healed) => self.heal(&healed),
            Event::StoreBack(node) => {
                let cuts = &mut self.nodes[node].store_cuts;
                *cuts = cuts.saturating_sub(1);
                if *cuts == 0 {
                    self.watch_again(node);
                }
            }
            Event::Gone(node, switch) => {
                if self.switches[switch].connections[node].is_none() {
                    self.give(node, Input::Disconnected(World::dpid(switch)));
                }
            }
            Event::Connect(node, switch) => self.connect(node, switch),
            Event::Reconnect(node, switch) => {
                self.link_cuts.retain(|&cut| cut != (node, switch));
                self.connect(node, switch);
            }
        }
    }

    pub(crate) fn give(&mut self, node: usize, input: Input) {
        if !self.nodes[node].is_alive {
            return;
        }
        if self.nodes[node].is_stopped {
            self.nodes[node].waiting.push(input);
        } else {
            self.advance(node, Some(input));
        }
    }

    fn advance(&mut self, node: usize, mut input: Option<Input>) {
        let now = self.now;
        let this = &mut self.nodes[node];
        if !this.is_alive || this.is_stopped {
            return;
        }
        let mut out = Vec::new();
        this.has_drained |= matches!(input, Some(Input::Drain(true)));
        if let Some(Input::Heard(_, heartbeat)) = &mut input
            && self.fence == Fence::Silent
        {
            forget_generations(heartbeat);
        }
        match input {
            Some(input) => this.machine.handle(now, input, &mut out),
            None => this.machine.advance(now, &mut out),
        }
        let wake = this.machine.next_wake(now).max(now + Duration::from_micros(1));
        this.next_wake = wake;
        self.after(wake - now, Event::Wake(node));
        for output in out {
            self.put_out(node, output);
        }
    }

    fn put_out(&mut self, node: usize, output: Output) {
        let delay = self.delay();
        let process = self.nodes[node].process;
        match output {
            Output::Send(peer, heartbeat) => {
                let to = peer.index();
                self.after(delay, Event::Heartbeat { from: node, to, heartbeat });
            }
            Output::Write { dpid, masters, floor, placed, expected } => {
                let new = NewRecord { dpid, masters, floor, placed, expected };
                self.after(2 * delay, Event::Write { node, process, new });
            }
            Output::Remove { dpid, expected } => {
                self.after(2 * delay, Event::Remove { node, dpid, expected });
            }
            Output::Order(dpid, order) => {
                let switch = dpid.0 as usize - 1;
                if let Some(connection) = self.switches[switch].connections[node] {
                    let number = connection.number;
                    // One delay for a connection: messages keep their order.
                    self.after(ms(1), Event::Order { node, switch, number, order });
                }
            }
            Output::Ask(dpid) => {
                let switch = dpid.0 as usize - 1;
                if let Some(connection) = self.switches[switch].connections[node] {
                    let number = connection.number;
                    self.after(ms(1), Event::Ask { node, switch, number });
                }
            }
            Output::Moved(dpid, result) => {
                self.log(|| format!("node {node}: move of {dpid}: {result:?}"));
                if result.is_ok() {
                    self.check_move(dpid);
                }
                self.moved.push((dpid, result));
            }
            Output::Balanced { left } => {
                self.log(|| format!("node {node}: balanced, {left} left"));
                self.balanced.push(left);
            }
            Output::Notice(notice) => {
                self.log(|| format!("node {node}: {notice:?}"));
                if self.is_quiet && self.now > FAULTS + QUIET / 2 {
                    let is_bad = matches!(notice, Notice::LostMajority | Notice::Fenced(_));
                    if is_bad {
                        self.failure =
                            Some(format!("node {node}: {notice:?} long after all faults"));
                    }
                }
            }
        }
    }

    fn order(&mut self, node: usize, switch: usize, number: u64, order: RoleOrder) {
        let dpid = World::dpid(switch);
        let it = &mut self.switches[switch];
        let is_live = it.connections[node].is_some_and(|connection| connection.number == number);
        if !is_live {
            return;
        }
        let generation = match order {
            RoleOrder::Master { generation_id } => generation_id,
            RoleOrder::Equal | RoleOrder::Slave { .. } => return it.stand_by(node),
        };
        let sent = match self.fence {
            Fence::None => 0,
            Fence::WithoutRank => generation >> 8 << 8,
            Fence::WithoutNode => generation >> 4 << 4,
            Fence::Whole | Fence::RestoreUnnoticed | Fence::Silent => generation,
        };
        let process = self.nodes[node].process;
        let input = match it.claim(node, sent) {
            Claimed::Stale(newest) => {
                it.told[node] = Some(Generation(newest));
                Input::Stale(dpid, Some(Generation(newest)))
            }
            Claimed::Granted(before) => {
                it.told[node] = Some(Generation(generation));
                if let Some(before) = before
                    && let Some(connection) = it.connections[before]
                {
                    let (number, process) = (connection.number, self.nodes[before].process);
                    let input = Input::Demoted(dpid);
                    let reply = Event::Reply { node: before, process, switch, number, input };
                    self.after(ms(1), reply);
                }
                Input::Granted(dpid, Generation(generation))
            }
        };
        self.log(|| {
            format!("switch {switch}, claim of node {node} with {generation:x}: {input:x?}")
        });
        self.after(ms(1), Event::Reply { node, process, switch, number, input });
    }

    fn send_flow_mods(&mut self) {
        for node in 0..self.nodes.len() {
            for switch in 0..self.switches.len() {
                let this = &self.nodes[node];
                let connection = self.switches[switch].connections[node];
                if this.is_alive
                    && !this.is_stopped
                    && self.switches[switch].is_busy
                    && let Some(Connection { number, .. }) = connection
                    && let SwitchRole::Master(generation) = this.machine.role(World::dpid(switch))
                {
                    let process = this.process;
                    self.after(ms(1), Event::FlowMod { node, process, switch, number, generation });
                }
            }
        }
        self.after(FLOW_MOD_EVERY, Event::FlowMods);
    }

    fn flow_mod(
        &mut self,
        node: usize,
        process: u64,
        switch: usize,
        number: u64,
        generation: Generation,
    ) {
        let it = &mut self.switches[switch];
        if it.connections[node].is_none_or(|connection| connection.number != number) {
            return;
        }
        match it.flow_mod(node, generation) {
            Ok(true) => {}
            Ok(false) => {
                let input = Input::Demoted(World::dpid(switch));
                self.after(ms(1), Event::Reply { node, process, switch, number, input });
            }
            Err(failure) => self.failure = Some(format!("switch {switch}: {failure}")),
        }
    }

    pub(crate) fn start(&mut self, node: usize) {
        if self.nodes[node].is_alive || self.gone.contains(&node) {
            return;
        }
        let machine = self.machine(node, self.nodes.len());
        let this = &mut self.nodes[node];
        this.machine = machine;
        this.is_alive = true;
        this.is_stopped = false;
        this.has_drained = false;
        this.seen = None;
        this.waiting.clear();
        this.process = self.queue.number();
        self.log(|| format!("node {node} starts"));
        if self.nodes[node].store_cuts == 0 {
            self.read_store(node);
        }
        for switch in 0..self.switches.len() {
            let delay = ms(self.random.u64(1..800));
            self.after(delay, Event::Connect(node, switch));
        }
        self.advance(node, None);
    }

    pub(crate) fn kill(&mut self, node: usize) {
        if !self.nodes[node].is_alive {
            return;
        }
        self.nodes[node].is_alive = false;
        self.nodes[node].process = u64::MAX;
        for switch in &mut self.switches {
            switch.connections[node] = None;
        }
        for peer in 0..self.nodes.len() {
            if let Some(lost) = NodeId::new(node)
                && peer != node
                && !self.cuts.contains(&(node, peer))
            {
                let process = self.nodes[peer].process;
                let delay = self.delay();
                self.after(
                    delay,
                    Event::Input { node: peer, process, input: Input::PeerLost(lost) },
                );
            }
        }
    }

    fn resume(&mut self, node: usize) {
        if !std::mem::take(&mut self.nodes[node].is_stopped) {
            return;
        }
        self.log(|| format!("node {node} goes on"));
        self.advance(node, None);
        for input in std::mem::take(&mut self.nodes[node].waiting) {
            self.give(node, input);
        }
    }

    fn heal(&mut self, healed: &[(usize, usize)]) {
        for cut in healed {
            if let Some(place) = self.cuts.iter().position(|other| other == cut) {
                self.cuts.swap_remove(place);
            }
        }
    }

    pub(crate) fn connect(&mut self, node: usize, switch: usize) {
        let is_cut = self.link_cuts.contains(&(node, switch));
        let it = &mut self.switches[switch];
        if !self.nodes[node].is_alive || is_cut || !it.is_up || it.connections[node].is_some() {
            return;
        }
        let number = self.queue.number();
        it.connections[node] = Some(Connection { number, is_master: false });
        it.told[node] = it.newest();
        let input = Input::Connected(World::dpid(switch), it.newest());
        // A node sees the end of a connection before the next one begins.
        self.give(node, Input::Disconnected(World::dpid(switch)));
        let process = self.nodes[node].process;
        self.after(ms(1), Event::Reply { node, process, switch, number, input });
    }

    pub(crate) fn disconnect(&mut self, node: usize, switch: usize) {
        if self.switches[switch].connections[node].take().is_some() {
            // The node may see the end of the connection late.
            let delay = if self.random.bool() { ms(1) } else { PROBE / 4 };
            self.after(delay, Event::Gone(node, switch));
        }
    }

    pub(crate) fn restart(&mut self, switch: usize) {
        for node in 0..self.nodes.len() {
            self.disconnect(node, switch);
            let delay = PROBE / 4 + ms(self.random.u64(1..1000));
            self.after(delay, Event::Connect(node, switch));
        }
        self.switches[switch].restart();
    }
}

/// Makes a heartbeat one of the first release.
fn forget_generations(heartbeat: &mut Heartbeat) {
    (heartbeat.incarnation, heartbeat.hears) = (None, None);
    match &mut heartbeat.switches {
        SwitchReport::Same { .. } => {}
        SwitchReport::Changes { generations, .. } | SwitchReport::All { generations, .. } => {
            *generations = None;
        }
    }
}
