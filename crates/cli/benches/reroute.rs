//! Measures the time from the failure of a link until all its flows have moved and are confirmed.
//!
//! `cargo bench -p bellrock-cli --bench reroute`, with `-- --rounds N` for N failures.
//! The controller, with routing and its services, and a live emulated network share this machine
//! and communicate over sockets. The load is that of the figures that ONOS published: 206 switches,
//! 416 links, 16,000 routes, of which a failure moves 1,000. A route is the path of the packets
//! from one host to another, with a flow at each switch.
//!
//! The time starts when the link goes down. It ends when all routes over the link lead around it
//! and barriers have confirmed each of their flows. This is checked every half millisecond. By then
//! the old flows carry no packets. They are removed after a delay for packets in transit
//! ([`DRAIN`]), which is not part of the time. The benchmark also notes when the failure is
//! detected, when new paths are known, and when the first and the last change is sent.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use bellrock_apps::{Routing, RoutingSettings};
use bellrock_emulator::check::dump_flows;
use bellrock_emulator::host::PingSettings;
use bellrock_emulator::live::{LiveNetwork, LiveSettings};
use bellrock_emulator::topology::{HostSpec, LinkIndex, LinkShape, Node, SwitchSpec, TopologySpec};
use bellrock_engine::{Engine, EngineSettings, Monitor};
use bellrock_services::chain::{ServiceSettings, chain};
use bellrock_services::paths::paths;
use bellrock_services::programming::DRAIN;
use fastrand::Rng;

const SWITCHES: u32 = 206;
const LINKS: usize = 416;

/// Number of hosts, and hosts per switch. All pairs of hosts make 16,002 routes.
const HOSTS: u32 = 127;
const HOSTS_PER_SWITCH: u32 = 8;

/// Routes that a failure should move.
const MOVED: usize = 1000;

/// Default number of measured failures.
const ROUNDS: usize = 30;

/// Time without changes after which the network counts as settled.
const QUIET: Duration = Duration::from_millis(300);

/// Time between two checks for changes.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// Time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Maximum number of pings at a time while routes are made.
const PINGS: usize = 500;

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo passes `--test` when it only checks that the program runs.
    let test = std::env::args().any(|argument| argument == "--test");
    let rounds = if test { 1 } else { asked_rounds()? };
    let topology = topology()?;
    let app = Routing::new(RoutingSettings { idle_timeout_s: 0, ..RoutingSettings::default() });
    let chain = chain(vec![Box::new(app)], &ServiceSettings::default())?;
    let settings = EngineSettings {
        listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
        workers: 1,
        ..EngineSettings::default()
    };
    let engine = Engine::start(&settings, chain)?;
    let mut bench = Bench {
        monitor: engine.monitor(),
        live: LiveNetwork::new(&topology, LiveSettings::new(engine.addresses()[0]))?,
        topology,
    };
    bench.begin()?;
    let (link, crossing) = bench.link_of_most_like(MOVED);
    println!("{SWITCHES} switches, {LINKS} links, {} flows", bench.flows());
    println!("{crossing} routes go over the link that fails");
    let mut times = Vec::new();
    for _ in 0..rounds {
        times.push(bench.fail(link)?);
    }
    engine.stop();
    let changes = times.first().map_or((0, 0), |first| (first.moved, first.removed));
    println!("{} changes of flows, and {} removed later", changes.0, changes.1);
    println!("{rounds} failures; ms from the failure on:    median     p99     max");
    tell("the link is known to be down", &times, |times| times.detected);
    tell("paths are known", &times, |times| times.paths);
    tell("the first change is sent", &times, |times| times.first_sent);
    tell("the last change is sent", &times, |times| times.last_sent);
    tell("all are confirmed", &times, |times| times.confirmed);
    Ok(())
}

/// The number after `--rounds` on the command line.
fn asked_rounds() -> Result<usize, Box<dyn Error>> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--rounds").skip(1);
    let Some(number) = arguments.next() else { return Ok(ROUNDS) };
    let number = number.parse().ok().filter(|rounds| *rounds > 0);
    number.ok_or_else(|| "--rounds needs a number, at least 1".into())
}

/// A ring of all switches, with random further links.
fn topology() -> Result<TopologySpec, Box<dyn Error>> {
    let mut rng = Rng::with_seed(1);
    let mut topology = TopologySpec::new();
    let mut switches = Vec::new();
    for number in 1..=SWITCHES {
        let (name, dpid) = (format!("s{number}"), u64::from(number));
        let spec = SwitchSpec { name, dpid, tables: None, capacity: None };
        switches.push(Node::Switch(topology.add_switch(spec)?));
    }
    let shape = LinkShape::default();
    let next = switches.iter().cycle().skip(1);
    for (one, other) in switches.iter().zip(next) {
        topology.add_link((*one, None), (*other, None), shape)?;
    }
    while topology.links().len() < LINKS {
        let [one, other] = [0; 2].map(|_| switches[rng.usize(..switches.len())]);
        if one != other && topology.links_between(one, other).next().is_none() {
            topology.add_link((one, None), (other, None), shape)?;
        }
    }
    for number in 1..=HOSTS {
        let host = Node::Host(topology.add_host(HostSpec::numbered(format!("h{number}"), number))?);
        let places = HOSTS.div_ceil(HOSTS_PER_SWITCH);
        let at = (number - 1) % places * (SWITCHES / places);
        topology.add_link((host, None), (switches[at as usize], None), shape)?;
    }
    Ok(topology)
}

struct Bench {
    monitor: Monitor,
    live: LiveNetwork,
    topology: TopologySpec,
}

impl Bench {
    /// Waits for all switches and links, and sends traffic between all hosts.
    fn begin(&mut self) -> Result<(), Box<dyn Error>> {
        let network = self.monitor.network();
        let found = self.live.run_until(PATIENCE, |_| {
            let topology = network.topology().load();
            topology.links.len() == 2 * LINKS && topology.edge.len() == HOSTS as usize
        })?;
        if !found {
            let links = network.topology().load().links.len();
            return Err(format!("{links} of {} directions of links are found", 2 * LINKS).into());
        }
        let hosts: Vec<_> = self.topology.hosts().iter().map(|host| host.name.clone()).collect();
        let ids: Vec<_> = hosts.iter().filter_map(|name| self.topology.host(name)).collect();
        for host in &ids {
            self.live.network_mut().with(*host, |host, _, out| host.announce(out));
        }
        self.live.run_for(QUIET)?;
        let pairs = ids.iter().flat_map(|from| ids.iter().map(move |to| (*from, *to)));
        let pairs: Vec<_> = pairs.filter(|(from, to)| from != to).collect();
        for some in pairs.chunks(PINGS) {
            let mut pings = Vec::new();
            for (from, to) in some {
                let ping = self.live.network_mut().ping(*from, *to, PingSettings::default())?;
                pings.push((*from, ping));
            }
            self.live.run_until(PATIENCE, |live| {
                pings.iter().all(|(from, ping)| live.network().host(*from).is_ping_over(*ping))
            })?;
            for (from, ping) in pings {
                self.live.network_mut().end_ping(from, ping);
            }
        }
        self.settle()?;
        Ok(())
    }

    /// Waits until all changes are confirmed and no more come. Returns the time of the last one.
    fn settle(&mut self) -> Result<Instant, Box<dyn Error>> {
        let began = Instant::now();
        let mut last = (self.changes(), began);
        while began.elapsed() < PATIENCE {
            self.live.turn(LOOK_EVERY)?;
            let changes = self.changes();
            if changes != last.0 {
                last = (changes, Instant::now());
            } else if changes.0 == changes.1 && last.1.elapsed() > QUIET {
                return Ok(last.1);
            }
        }
        Err("the network does not settle".into())
    }

    fn changes(&self) -> (u64, u64) {
        changes(&self.monitor)
    }

    /// Number of the app's flows.
    fn flows(&self) -> usize {
        let switches = self.topology.switches().iter();
        switches.map(|switch| self.flows_ending(&switch.name, "")).sum()
    }

    /// The link whose number of routes is nearest to `routes`, and that number.
    fn link_of_most_like(&self, routes: usize) -> (LinkIndex, usize) {
        let mut best: Option<(LinkIndex, usize)> = None;
        for (one, other) in self.pairs_of_switches() {
            for link in self.topology.links_between(one, other) {
                let crossing = self.flows_over(link);
                let is_better =
                    |(_, best): (_, usize)| crossing.abs_diff(routes) < best.abs_diff(routes);
                if best.is_none_or(is_better) {
                    best = Some((link, crossing));
                }
            }
        }
        best.unwrap_or_else(|| unreachable!("there are links"))
    }

    /// Number of the app's flows that lead into a link, at either end.
    fn flows_over(&self, link: LinkIndex) -> usize {
        let ends = self.live.network().link_ends(link);
        let flows = ends.map(|end| {
            let name = self.topology.name(end.node).to_owned();
            self.flows_ending(&name, &format!(" output:{}", end.port))
        });
        flows.iter().sum()
    }

    /// Number of the app's flows at a switch that end with this text.
    fn flows_ending(&self, switch: &str, text: &str) -> usize {
        let Some(id) = self.topology.switch(switch) else { return 0 };
        let dump = dump_flows(self.live.network().switch(id), self.live.network().now());
        dump.lines().filter(|line| line.contains("dl_src=") && line.ends_with(text)).count()
    }

    fn pairs_of_switches(&self) -> Vec<(Node, Node)> {
        let links = self.topology.links().iter().map(|link| (link.ends[0].node, link.ends[1].node));
        let switches = |(a, b): &(Node, Node)| matches!((a, b), (Node::Switch(_), Node::Switch(_)));
        links.filter(switches).collect()
    }

    /// Cuts a link, and mends it after all routes have moved. Returns the times of the events.
    fn fail(&mut self, link: LinkIndex) -> Result<Times, Box<dyn Error>> {
        let network = self.monitor.network();
        let (known, paths) = (network.topology().clone(), paths(&network));
        let (before, paths_before) = (self.changes().0, paths.load().version());
        let mut times = Times::default();
        let began = Instant::now();
        self.live.network_mut().set_link(link, false);
        let mut last = (before, before);
        // Old flows are removed after the drain delay. Before it there is a pause when all flows
        // have moved. If the pause is missed, the removals are counted too.
        while times.moved == 0 || began.elapsed() < times.confirmed + DRAIN / 2 {
            self.live.turn(LOOK_EVERY)?;
            let (now, changes) = (began.elapsed(), self.changes());
            let is_known = known.load().links.len() < 2 * LINKS;
            note(&mut times.detected, is_known, now);
            note(&mut times.paths, paths.load().version() != paths_before, now);
            note(&mut times.first_sent, changes.0 != before, now);
            if changes.0 != last.0 {
                times.last_sent = now;
            }
            if changes != last {
                times.confirmed = now;
                // Unconfirmed changes do not count as moved yet.
                times.moved = if changes.0 == changes.1 { changes.1 - before } else { 0 };
            }
            last = changes;
            if now > PATIENCE {
                return Err("nothing is moved away from the link".into());
            }
        }
        self.settle()?;
        let left = self.flows_over(link);
        if left > 0 {
            return Err(format!("{left} flows lead over the failed link still").into());
        }
        times.removed = self.changes().0 - before - times.moved;
        self.live.network_mut().set_link(link, true);
        self.live.run_until(PATIENCE, |_| known.load().links.len() == 2 * LINKS)?;
        self.settle()?;
        Ok(times)
    }
}

/// Times of the events after a failure.
#[derive(Clone, Copy, Default)]
struct Times {
    detected: Duration,
    paths: Duration,
    first_sent: Duration,
    last_sent: Duration,
    confirmed: Duration,
    /// Changes that move flows, and changes that remove old ones.
    moved: u64,
    removed: u64,
}

fn note(when: &mut Duration, has_happened: bool, now: Duration) {
    if has_happened && when.is_zero() {
        *when = now;
    }
}

/// Number of changes sent, and number of those that are done.
fn changes(monitor: &Monitor) -> (u64, u64) {
    let all = monitor.worker_counters();
    let sum = |name: &str| -> u64 {
        all.iter().flatten().filter(|(its, _)| *its == name).map(|(_, n)| n).sum()
    };
    let ended = sum("changes_confirmed") + sum("changes_refused") + sum("changes_unknown");
    (sum("changes_sent"), ended)
}

fn tell(what: &str, times: &[Times], which: impl Fn(&Times) -> Duration) {
    let mut times: Vec<Duration> = times.iter().map(which).collect();
    times.sort_unstable();
    let ms = |at: usize| times[at.min(times.len() - 1)].as_secs_f64() * 1e3;
    let (median, p99) = (ms(times.len() / 2), ms(times.len() * 99 / 100));
    println!("    {what:<36}{median:>7.1} {p99:>7.1} {:>7.1}", ms(times.len()));
}
