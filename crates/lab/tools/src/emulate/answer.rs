//! Carries out requests and prints the results.

use std::collections::VecDeque;
use std::fmt::{Display, Write};
use std::net::Ipv4Addr;
use std::time::Duration;

use bellrock_emulator::check::{Reachability, dump_flows};
use bellrock_emulator::host::{
    FlowGoal, FlowState, HostError, PingId, PingSettings, PingStatistics,
};
use bellrock_emulator::live::{ConnectionState, LiveNetwork};
use bellrock_emulator::topology::{HostIndex, LinkIndex, Node, SwitchIndex, TopologySpec};

use super::request::{COMMANDS, CommandHelp, DEFAULT_PINGS, HOST_PING, PromptRequest};
use super::{CommandsOutcome, Emulator, LOOK, QUEUE_FRAMES};
use crate::terminal::amounts::{BitRate, ByteCount};
use crate::terminal::table;
use crate::terminal::{Failure, print};

/// Time between two echo requests of a `ping`.
const PING_INTERVAL: Duration = Duration::from_millis(200);

/// Time between two echo requests of a host's own `ping`, as on Linux.
const HOST_PING_INTERVAL: Duration = Duration::from_secs(1);

/// Pairs of a `pingall` that ping at the same time. Their ARP requests must fit into queues.
const PAIRS_AT_A_TIME: usize = 64;
const _: () = assert!(PAIRS_AT_A_TIME < QUEUE_FRAMES as usize);

/// Maximum number of failed pairs that a `pingall` of random pairs names.
const PAIRS_NAMED: usize = 20;

/// Destination port of a stream, as in Mininet's iperf.
const IPERF_PORT: u16 = 5001;

/// Time that a stream may take to end after its duration.
const STREAM_END: Duration = Duration::from_secs(10);

impl Emulator {
    /// Carries out a request, and prints the result.
    pub(super) fn answer(&mut self, request: &PromptRequest) -> Result<CommandsOutcome, Failure> {
        match request {
            PromptRequest::Ping { from, to, count } => self.ping(*from, *to, *count),
            PromptRequest::HostPing { from, to, count } => self.host_ping(*from, *to, *count),
            PromptRequest::PingAll { pairs } => self.ping_all(*pairs),
            PromptRequest::Iperf { from, to, time } => self.iperf(*from, *to, *time),
            PromptRequest::Link { up, ends } => self.set_links(*up, *ends),
            PromptRequest::Move { host, to, port } => self.place(*host, *to, *port),
            PromptRequest::Restart { switch, keep_tables } => self.restart(*switch, *keep_tables),
            PromptRequest::DumpFlows(switch) => self.tell_each(*switch, flows),
            PromptRequest::DumpPorts(switch) => self.tell_each(*switch, ports),
            PromptRequest::Switches => self.print(&switches(&self.live)),
            PromptRequest::Hosts => self.print(&hosts(&self.live)),
            PromptRequest::Links => self.print(&links(&self.live)),
            PromptRequest::Wait(time) => {
                self.run_until(*time, |_| false)?;
                Ok(CommandsOutcome::Good)
            }
            PromptRequest::Help => self.print(&help()),
            PromptRequest::Quit => Ok(CommandsOutcome::Good),
        }
    }

    fn print(&self, text: &str) -> Result<CommandsOutcome, Failure> {
        print(text)?;
        Ok(CommandsOutcome::Good)
    }

    fn tell_each(
        &self,
        switch: Option<SwitchIndex>,
        text: impl Fn(&LiveNetwork, SwitchIndex) -> String,
    ) -> Result<CommandsOutcome, Failure> {
        for id in switch.map_or_else(|| all_switches(self.topology()).collect(), |id| vec![id]) {
            print(&text(&self.live, id))?;
        }
        Ok(CommandsOutcome::Good)
    }

    /// Prints why a request could not be carried out. The next one follows.
    fn refuse(&self, why: impl Display) -> Result<CommandsOutcome, Failure> {
        eprintln!("bellrock: {why}");
        Ok(CommandsOutcome::Bad)
    }

    fn topology(&self) -> &TopologySpec {
        self.live.network().topology()
    }

    fn name(&self, node: Node) -> String {
        self.topology().name(node).to_owned()
    }

    /// Runs the network until `done`, `limit`, or the end of the command. Returns whether `done`.
    pub(super) fn run_until(
        &mut self,
        limit: Duration,
        mut is_done: impl FnMut(&LiveNetwork) -> bool,
    ) -> Result<bool, Failure> {
        let end = self.live.elapsed() + limit;
        loop {
            let remaining = end.saturating_sub(self.live.elapsed());
            if self.ending.is_interrupted() {
                // Ends the line with the ^C.
                if self.at_terminal {
                    eprintln!();
                }
                return Ok(is_done(&self.live));
            }
            if remaining.is_zero() {
                return Ok(is_done(&self.live));
            }
            // Waits in short steps, so that a signal just before the wait is seen.
            if self.live.run_until(remaining.min(LOOK), &mut is_done)? {
                return Ok(true);
            }
        }
    }

    fn ping(
        &mut self,
        from: HostIndex,
        to: Ipv4Addr,
        count: u16,
    ) -> Result<CommandsOutcome, Failure> {
        let settings = PingSettings { count, interval: PING_INTERVAL, ..PingSettings::default() };
        let id = match self.live.network_mut().ping_address(from, to, settings) {
            Ok(id) => id,
            Err(error) => return self.refuse(error),
        };
        let limit = settings.interval * count.into() + settings.timeout * 2;
        self.run_until(limit, |live| live.network().host(from).is_ping_over(id))?;
        let statistics = self.live.network_mut().end_ping(from, id).unwrap_or_default();
        let (from, to) = (self.name(Node::Host(from)), self.name_of_address(to));
        print(&format!("{from} -> {to}: {statistics}\n"))?;
        Ok(CommandsOutcome::good_if(statistics.complete()))
    }

    /// Pings as a host's shell does: a line for each answer; at a terminal, until it is stopped.
    fn host_ping(
        &mut self,
        from: HostIndex,
        address: Ipv4Addr,
        count: Option<u16>,
    ) -> Result<CommandsOutcome, Failure> {
        let limit = match count {
            None if self.at_terminal => u64::MAX,
            count => count.unwrap_or(DEFAULT_PINGS).into(),
        };
        let length = PingSettings::default().data_len;
        print(&format!("PING {address} ({address}) {length} bytes of data.\n"))?;
        let mut echoes = Echoes {
            from,
            address,
            sent: 0,
            waiting: VecDeque::new(),
            all: PingStatistics::default(),
        };
        let mut next = self.live.elapsed();
        loop {
            if echoes.sent < limit && self.live.elapsed() >= next {
                if let Err(error) = echoes.send(&mut self.live) {
                    return self.refuse(error);
                }
                next += HOST_PING_INTERVAL;
            }
            echoes.collect(&mut self.live)?;
            if echoes.sent >= limit && echoes.waiting.is_empty() {
                break;
            }
            let due = next.saturating_sub(self.live.elapsed()).max(Duration::from_millis(1));
            let wait = if echoes.sent < limit { due } else { HOST_PING_INTERVAL };
            let waiting = echoes.waiting.clone();
            self.run_until(wait, |live| {
                waiting.iter().any(|&(_, id)| live.network().host(from).is_ping_over(id))
            })?;
            if self.ending.is_interrupted() {
                break;
            }
        }
        echoes.collect(&mut self.live)?;
        let (from, to) = (self.name(Node::Host(from)), self.name_of_address(address));
        let statistics = echoes.finish(&mut self.live);
        print(&format!("{from} -> {to}: {statistics}\n"))?;
        Ok(CommandsOutcome::good_if(statistics.lost == 0))
    }

    /// The name of the host with an address; the address, if no host has it.
    fn name_of_address(&self, address: Ipv4Addr) -> String {
        let host = self.topology().host_by_ip(address);
        host.map_or_else(|| address.to_string(), |host| self.name(Node::Host(host)).to_string())
    }

    fn ping_all(&mut self, pairs: Option<usize>) -> Result<CommandsOutcome, Failure> {
        let hosts = self.topology().hosts().len();
        if hosts < 2 {
            return self.refuse("a ping needs two hosts, and the network has fewer");
        }
        let wanted = match pairs {
            Some(count) => self.random_pairs(hosts, count),
            None => all_pairs(hosts),
        };
        let began = self.live.elapsed();
        let (mut tried, mut lost, mut slowest) = (0, Vec::new(), None);
        for part in wanted.chunks(PAIRS_AT_A_TIME) {
            if self.ending.is_interrupted() {
                break;
            }
            let settings = PingSettings::default();
            let pings = Reachability::begin_pairs(self.live.network_mut(), part, settings);
            self.run_until(settings.timeout * 2, |live| pings.is_over(live.network()))?;
            let matrix = pings.finish(self.live.network_mut());
            tried += matrix.pings;
            lost.extend(matrix.lost);
            slowest = slowest.max(matrix.slowest);
        }
        let took = self.live.elapsed().saturating_sub(began);
        for (from, to) in lost.iter().take(PAIRS_NAMED) {
            let [from, to] = [*from, *to].map(|host| self.name(Node::Host(host)));
            print(&format!("{from} -> {to}: no answer\n"))?;
        }
        if lost.len() > PAIRS_NAMED {
            print(&format!("and {} more\n", lost.len() - PAIRS_NAMED))?;
        }
        let slowest = slowest.unwrap_or_default();
        print(&format!(
            "{} of {tried} pairs answered, {} lost; the slowest round trip {} ms; it took {:.1} s\n",
            tried - lost.len(),
            lost.len(),
            ms(slowest),
            took.as_secs_f64(),
        ))?;
        Ok(CommandsOutcome::good_if(lost.is_empty() && tried == wanted.len()))
    }

    /// Random pairs of two different hosts.
    fn random_pairs(&mut self, hosts: usize, count: usize) -> Vec<(HostIndex, HostIndex)> {
        let mut pair = || {
            let from = self.chance.usize(..hosts);
            let to = self.chance.usize(..hosts - 1);
            (host(from), host(if to < from { to } else { to + 1 }))
        };
        (0..count).map(|_| pair()).collect()
    }

    fn iperf(
        &mut self,
        from: HostIndex,
        to: HostIndex,
        time: Duration,
    ) -> Result<CommandsOutcome, Failure> {
        let network = self.live.network_mut();
        let goal = FlowGoal::Until(network.now() + time);
        let flow = match network.open_flow(from, to, IPERF_PORT, goal) {
            Ok(flow) => flow,
            Err(error) => return self.refuse(error),
        };
        self.run_until(time + STREAM_END, |live| {
            live.network().host(from).flow(flow).is_none_or(|report| report.state.is_over())
        })?;
        let report = self.live.network_mut().with(from, |host, _, _| host.end_flow(flow));
        let [from, to] = [from, to].map(|host| self.name(Node::Host(host)));
        let Some(report) = report else { return self.refuse("the stream is gone") };
        print(&format!(
            "{from} -> {to}: {} in {:.2} s, {}; {} segments sent again\n",
            ByteCount(report.bytes),
            report.last.saturating_sub(report.began).as_secs_f64(),
            BitRate(report.bits_per_second()),
            report.retransmissions,
        ))?;
        match report.state {
            FlowState::Done => Ok(CommandsOutcome::Good),
            FlowState::Opening => self.refuse(format!("{to} has not answered")),
            FlowState::Open | FlowState::Closing => {
                self.refuse("the stream was cut off before its end")
            }
            FlowState::Reset => self.refuse(format!("{to} has refused the stream")),
            FlowState::TimedOut => self.refuse(format!("{to} does not answer any more")),
        }
    }

    fn set_links(&mut self, up: bool, ends: [Node; 2]) -> Result<CommandsOutcome, Failure> {
        let between = |id: &LinkIndex| {
            let [a, b] = self.live.network().link_ends(*id).map(|end| end.node);
            [a, b] == ends || [b, a] == ends
        };
        let links: Vec<LinkIndex> = all_links(self.topology()).filter(between).collect();
        if links.is_empty() {
            let [a, b] = ends.map(|node| self.name(node));
            return self.refuse(format!("no link between {a} and {b}; `links` lists all"));
        }
        for link in links {
            self.live.network_mut().set_link(link, up);
            let [a, b] = link_ends(&self.live, link);
            print(&format!("{a} - {b}: {}\n", up_or_down(up)))?;
        }
        Ok(CommandsOutcome::Good)
    }

    fn place(
        &mut self,
        host: HostIndex,
        to: SwitchIndex,
        port: Option<u32>,
    ) -> Result<CommandsOutcome, Failure> {
        match self.live.network_mut().move_host(host, to, port, true) {
            Ok(()) => {
                let name = self.name(Node::Host(host));
                self.print(&format!("{name} is at {}\n", place(&self.live, host)))
            }
            Err(error) => self.refuse(error),
        }
    }

    fn restart(
        &mut self,
        switch: SwitchIndex,
        keep_tables: bool,
    ) -> Result<CommandsOutcome, Failure> {
        self.live.restart(switch, keep_tables);
        let began = self.live.elapsed();
        let up = |live: &LiveNetwork| {
            live.lines(switch).all(|(_, state)| matches!(state, ConnectionState::Up(_)))
        };
        let back = self.run_until(self.wait, up)?;
        self.settle()?;
        let name = self.name(Node::Switch(switch));
        if !back && self.ending.is_interrupted() {
            return self.refuse(format!("{name} was not connected again yet"));
        }
        if !back {
            let wait = self.wait.as_secs_f64();
            return self.refuse(format!("{name} is not connected again after {wait} s"));
        }
        let took = self.live.elapsed().saturating_sub(began);
        self.print(&format!("{name} is connected again after {:.1} s\n", took.as_secs_f64()))
    }
}

/// The echo requests of one host. Each is a ping.
struct Echoes {
    from: HostIndex,
    address: Ipv4Addr,
    sent: u64,
    /// Requests without an answer yet, with their numbers. Time limits bound them.
    waiting: VecDeque<(u64, PingId)>,
    all: PingStatistics,
}

impl Echoes {
    fn send(&mut self, live: &mut LiveNetwork) -> Result<(), HostError> {
        let settings = PingSettings::default();
        let id = live.network_mut().ping_address(self.from, self.address, settings)?;
        self.sent += 1;
        self.waiting.push_back((self.sent, id));
        Ok(())
    }

    /// Prints the pings that have ended.
    fn collect(&mut self, live: &mut LiveNetwork) -> Result<(), Failure> {
        for _ in 0..self.waiting.len() {
            let Some((number, id)) = self.waiting.pop_front() else { break };
            if !live.network().host(self.from).is_ping_over(id) {
                self.waiting.push_back((number, id));
                continue;
            }
            let one = live.network_mut().end_ping(self.from, id).unwrap_or_default();
            self.all.merge(&one);
            let address = self.address;
            print(&match one.complete() {
                true => format!("from {address}: icmp_seq={number} time={} ms\n", ms(one.max)),
                false => format!("from {address}: icmp_seq={number} no answer\n"),
            })?;
        }
        Ok(())
    }

    /// Ends the pings without a result, which do not count, and returns the sums of the others.
    fn finish(&mut self, live: &mut LiveNetwork) -> PingStatistics {
        for (_, id) in self.waiting.drain(..) {
            live.network_mut().end_ping(self.from, id);
        }
        self.all
    }
}

impl CommandsOutcome {
    fn good_if(good: bool) -> Self {
        if good { CommandsOutcome::Good } else { CommandsOutcome::Bad }
    }
}

fn host(index: usize) -> HostIndex {
    HostIndex(index as u32)
}

fn all_pairs(hosts: usize) -> Vec<(HostIndex, HostIndex)> {
    let pairs = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
    pairs.filter(|(from, to)| from != to).map(|(from, to)| (host(from), host(to))).collect()
}

fn all_switches(topology: &TopologySpec) -> impl Iterator<Item = SwitchIndex> + use<> {
    (0..topology.switches().len() as u32).map(SwitchIndex)
}

fn all_links(topology: &TopologySpec) -> impl Iterator<Item = LinkIndex> + use<> {
    (0..topology.links().len() as u32).map(LinkIndex)
}

fn flows(live: &LiveNetwork, id: SwitchIndex) -> String {
    let network = live.network();
    let flows = dump_flows(network.switch(id), network.now());
    let name = network.topology().name(Node::Switch(id));
    let mut text = match flows.lines().count() {
        1 => format!("{name}: 1 flow\n"),
        n => format!("{name}: {n} flows\n"),
    };
    for flow in flows.lines() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {flow}");
    }
    text
}

fn ports(live: &LiveNetwork, id: SwitchIndex) -> String {
    let network = live.network();
    let topology = network.topology();
    let name = topology.name(Node::Switch(id));
    let rows = network.switch(id).datapath().ports().iter().map(|port| {
        let peer = network.peer(id, port.number());
        let counters = &port.counters;
        vec![
            format!("{name}:{}", port.desc.port),
            up_or_down(port.desc.is_up()).to_owned(),
            peer.map_or_else(|| "-".to_owned(), |end| topology.end_name(end).to_string()),
            counters.rx_packets.to_string(),
            counters.rx_bytes.to_string(),
            counters.tx_packets.to_string(),
            counters.tx_bytes.to_string(),
            (counters.rx_dropped + counters.tx_dropped).to_string(),
        ]
    });
    let head =
        ["PORT", "STATE", "PEER", "FRAMES IN", "BYTES IN", "FRAMES OUT", "BYTES OUT", "DROPS"];
    table(&head, rows)
}

fn switches(live: &LiveNetwork) -> String {
    let network = live.network();
    let topology = network.topology();
    let rows = all_switches(topology).map(|id| {
        let switch = network.switch(id);
        let lines = live.lines(id).map(|(at, state)| match state {
            ConnectionState::Up(version) => format!("{at}: up, {version}"),
            ConnectionState::Connecting => format!("{at}: connecting"),
            ConnectionState::Away { reason } => format!("{at}: away ({reason})"),
        });
        vec![
            topology.name(Node::Switch(id)).to_owned(),
            format!("{:016x}", switch.dpid()),
            flow_count(live, id).to_string(),
            switch.counters().packet_ins.to_string(),
            lines.collect::<Vec<_>>().join("; "),
        ]
    });
    table(&["SWITCH", "DPID", "FLOWS", "PACKET-INS", "CONTROLLER"], rows)
}

/// Number of flows in all tables of a switch.
pub(crate) fn flow_count(live: &LiveNetwork, id: SwitchIndex) -> usize {
    let tables = live.network().switch(id).datapath().tables().iter();
    tables.map(|(_, table)| table.len()).sum()
}

fn hosts(live: &LiveNetwork) -> String {
    let topology = live.network().topology();
    let rows = topology.hosts().iter().enumerate().map(|(index, spec)| {
        let id = host(index);
        let counters = live.network().host(id).counters();
        vec![
            spec.name.clone(),
            spec.ip.to_string(),
            spec.mac.to_string(),
            place(live, id),
            counters.frames_out.to_string(),
            counters.frames_in.to_string(),
        ]
    });
    table(&["HOST", "ADDRESS", "MAC", "AT", "FRAMES SENT", "FRAMES RECEIVED"], rows)
}

/// Switch and port of a host: `s2:1`.
pub(crate) fn place(live: &LiveNetwork, host: HostIndex) -> String {
    let network = live.network();
    let at = network.place(host);
    at.map_or_else(
        || "-".to_owned(),
        |(switch, port)| format!("{}:{port}", network.topology().name(Node::Switch(switch))),
    )
}

fn links(live: &LiveNetwork) -> String {
    let network = live.network();
    let rows = all_links(network.topology()).map(|id| {
        let [a, b] = link_ends(live, id);
        let [from, to] = network.link_counters(id);
        vec![
            a,
            b,
            up_or_down(network.is_link_up(id)).to_owned(),
            (from.frames + to.frames).to_string(),
            (from.lost + to.lost).to_string(),
            (from.overflows + to.overflows).to_string(),
        ]
    });
    table(&["END", "END", "STATE", "FRAMES", "LOST", "QUEUE FULL"], rows)
}

/// The present ends of a link.
pub(crate) fn link_ends(live: &LiveNetwork, link: LinkIndex) -> [String; 2] {
    let network = live.network();
    network.link_ends(link).map(|end| network.topology().end_name(end).to_string())
}

fn up_or_down(up: bool) -> &'static str {
    if up { "up" } else { "down" }
}

fn help() -> String {
    let words = |command: &CommandHelp| format!("{} {}", command.name, command.arguments);
    let mut rows: Vec<(String, &str)> =
        COMMANDS.iter().map(|command| (words(command), command.about)).collect();
    // After the other ping.
    rows.insert(1, (HOST_PING.to_owned(), "as in Mininet: one a second, until Ctrl-C or COUNT"));
    let width = rows.iter().map(|(words, _)| words.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (words, about) in rows {
        let _ = writeln!(text, "{words:width$}  {about}");
    }
    text.push_str("A HOST is its name or its address.\n");
    text
}

/// Milliseconds with three decimals.
fn ms(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e3)
}
