//! The network of the demo and its traffic, and what is seen of them.

use std::time::Duration;

use bellrock_emulator::live::{LineState, Live};
use bellrock_emulator::topology::{HostId, HostSpec, LinkId, Node, SwitchId};

use super::traffic::{News, Traffic, What, ended};
use super::view::{HostView, Rates, SwitchView, View};
use crate::cli::amounts::BitRate;
use crate::cli::ending::Ending;
use crate::cli::{Failure, emulate};

/// When every switch has been connected for so long, the hosts begin to talk.
const SETTLE: Duration = Duration::from_millis(200);

/// The network, its traffic, and what is shown of both.
pub(super) struct Show {
    live: Live,
    traffic: Traffic,
    pub(super) view: View,
    chance: fastrand::Rng,
    /// When all switches were connected for the first time.
    connected: Option<Duration>,
    /// The link that was taken down by hand.
    cut: Option<LinkId>,
    /// The last look, to tell rates from.
    last: Look,
}

/// What is counted, at one time.
#[derive(Default)]
struct Look {
    at: Duration,
    switches: Vec<Counted>,
    hosts: Vec<Heard>,
}

#[derive(Clone, Copy, Default)]
struct Counted {
    packet_ins: u64,
    frames: u64,
}

#[derive(Clone, Copy, Default)]
struct Heard {
    sent: u64,
    received: u64,
}

impl Show {
    pub(super) fn new(live: Live, view: View, seed: u64) -> Self {
        let topology = live.network().topology();
        let (switches, hosts) = (topology.switches().len(), topology.hosts().len());
        let mut show = Show {
            traffic: Traffic::new(hosts, seed),
            view,
            chance: fastrand::Rng::with_seed(seed),
            connected: None,
            cut: None,
            last: Look {
                at: Duration::ZERO,
                switches: vec![Counted::default(); switches],
                hosts: vec![Heard::default(); hosts],
            },
            live,
        };
        show.name_all();
        show
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.live.elapsed()
    }

    /// Whether all switches were connected at some time.
    pub(super) fn was_connected(&self) -> bool {
        self.connected.is_some()
    }

    /// Lets the network run, and its hosts talk, for so long, or until it is to end.
    pub(super) fn run_for(&mut self, time: Duration, ending: &Ending) -> Result<(), Failure> {
        let end = self.live.elapsed() + time;
        while self.live.elapsed() < end && !ending.is_asked_for() {
            let left = end.saturating_sub(self.live.elapsed());
            if !self.is_talking() {
                self.live.turn(left.min(SETTLE / 4))?;
                continue;
            }
            let network = self.live.network_mut();
            self.traffic.go_on(network);
            let wait = self.traffic.next().saturating_sub(network.now());
            self.live.turn(left.min(wait))?;
        }
        Ok(())
    }

    /// Whether hosts talk: not before there is somebody who says where to.
    fn is_talking(&mut self) -> bool {
        let now = self.live.elapsed();
        match self.connected {
            Some(at) if now >= at + SETTLE => true,
            Some(_) => false,
            None => {
                if self.live.connected() == self.view.switches.len() {
                    self.connected = Some(now);
                    self.traffic.begin(self.live.network().now() + SETTLE);
                    let all = self.view.switches.len();
                    self.view.elapsed = now;
                    self.view.tell(format!("all {all} switches are connected"));
                }
                false
            }
        }
    }

    /// Takes a link between two switches down; if one is down already, that one comes up again.
    pub(super) fn toggle_link(&mut self) {
        let (link, up) = match self.cut.take() {
            Some(link) => (link, true),
            None => {
                let links = self.live.network().topology().links();
                let inner = links.iter().enumerate().filter(|(_, link)| {
                    link.ends.iter().all(|end| matches!(end.node, Node::Switch(_)))
                });
                let inner: Vec<usize> = inner.map(|(index, _)| index).collect();
                if inner.is_empty() {
                    return self.view.tell("no link joins two switches here".to_owned());
                }
                let link = LinkId(inner[self.chance.usize(..inner.len())] as u32);
                self.cut = Some(link);
                (link, false)
            }
        };
        self.live.network_mut().set_link(link, up);
        let [a, b] = emulate::link_ends(&self.live, link);
        let state = if up { "up again" } else { "down" };
        self.view.tell(format!("the link {a} - {b} is {state}"));
    }

    /// Looks at everything, and brings the view up to date.
    pub(super) fn look(&mut self) {
        let now = self.live.elapsed();
        let seconds = now.saturating_sub(self.last.at).as_secs_f64();
        self.last.at = now;
        self.view.elapsed = now;
        self.hear_news();
        let mut rates = Rates::default();
        self.look_at_switches(seconds, &mut rates);
        self.look_at_hosts(seconds, &mut rates);
        self.view.rate(rates);
    }

    fn look_at_switches(&mut self, seconds: f64, rates: &mut Rates) {
        let totals = &mut self.view.totals;
        (totals.connected, totals.flows, totals.packet_ins, totals.frames) = (0, 0, 0, 0);
        let shown = self.view.switches.iter_mut().zip(&mut self.last.switches);
        for (index, (shown, last)) in shown.enumerate() {
            let id = SwitchId(index as u32);
            let switch = self.live.network().switch(id);
            let ports = switch.datapath().ports().iter();
            let counted = Counted {
                packet_ins: switch.counters().packet_ins,
                frames: ports.map(|port| port.counters.rx_packets).sum(),
            };
            shown.version = self.live.lines(id).find_map(|(_, state)| match state {
                LineState::Up(version) => Some(version.to_string()),
                _ => None,
            });
            shown.flows = emulate::flow_count(&self.live, id);
            shown.packet_ins_per_second = per_second(counted.packet_ins, last.packet_ins, seconds);
            shown.frames_per_second = per_second(counted.frames, last.frames, seconds);
            rates.packet_ins += shown.packet_ins_per_second;
            rates.frames += shown.frames_per_second;
            totals.connected += usize::from(shown.version.is_some());
            totals.flows += shown.flows;
            totals.packet_ins += counted.packet_ins;
            totals.frames += counted.frames;
            *last = counted;
        }
    }

    fn look_at_hosts(&mut self, seconds: f64, rates: &mut Rates) {
        self.view.totals.bytes = 0;
        let shown = self.view.hosts.iter_mut().zip(&mut self.last.hosts);
        for (index, (shown, last)) in shown.enumerate() {
            let counters = self.live.network().host(HostId(index as u32)).counters();
            let heard = Heard { sent: counters.bytes_out, received: counters.bytes_in };
            shown.sent_bits_per_second = 8.0 * per_second(heard.sent, last.sent, seconds);
            shown.received_bits_per_second =
                8.0 * per_second(heard.received, last.received, seconds);
            rates.bits += shown.received_bits_per_second;
            self.view.totals.bytes += heard.received;
            *last = heard;
        }
    }

    /// What has come to its end since.
    fn hear_news(&mut self) {
        let mut heard = Vec::new();
        self.traffic.over(self.live.network_mut(), |news| heard.push(news));
        for News { from, to, what } in heard {
            let [a, b] = [from, to].map(|host| self.view.hosts[host.index()].name.clone());
            match what {
                What::Ping(Some(trip)) => {
                    self.view.totals.pings += 1;
                    self.view.hosts[from.index()].round_trip = Some(trip);
                }
                What::Ping(None) => {
                    self.view.totals.pings += 1;
                    self.view.totals.lost += 1;
                    self.view.hosts[from.index()].round_trip = None;
                    self.view.tell(format!("{a} pings {b}: no answer"));
                }
                What::Stream(report) => {
                    self.view.totals.streams += 1;
                    let rate = BitRate(report.bits_per_second());
                    let state = ended(report.state);
                    self.view.tell(format!("{a} streams to {b}: {rate}, {state}"));
                }
            }
        }
    }

    /// Who there is.
    fn name_all(&mut self) {
        let topology = self.live.network().topology();
        let switch = |name: &str| SwitchView { name: name.to_owned(), ..SwitchView::default() };
        self.view.switches = topology.switches().iter().map(|spec| switch(&spec.name)).collect();
        let host = |(index, spec): (usize, &HostSpec)| HostView {
            name: spec.name.clone(),
            ip: spec.ip,
            place: emulate::place(&self.live, HostId(index as u32)),
            sent_bits_per_second: 0.0,
            received_bits_per_second: 0.0,
            round_trip: None,
        };
        self.view.hosts = topology.hosts().iter().enumerate().map(host).collect();
    }
}

/// How much a counter has grown in a second, on the average.
fn per_second(now: u64, before: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { now.saturating_sub(before) as f64 / seconds } else { 0.0 }
}
