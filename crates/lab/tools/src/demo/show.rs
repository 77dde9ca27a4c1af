//! The network of the demo, its traffic and its cuts, and what the display shows of them.

use std::collections::VecDeque;
use std::time::Duration;

use bellrock_emulator::live::{ConnectionState, LiveNetwork};
use bellrock_emulator::topology::{HostIndex, HostSpec, LinkIndex, Node, SwitchIndex};

use super::cuts::{CutLosses, Cuts, LinkEvent};
use super::traffic::{DemoTraffic, FinishedPing};
use super::view::{DemoView, HostView, LinkView, NewsKind, Rates, SwitchView};
use crate::emulate;
use crate::terminal::Ending;
use crate::terminal::Failure;

/// Time from the connection of the last switch until the hosts begin to send.
const SETTLE: Duration = Duration::from_millis(200);

/// The network, its traffic, and the view of both.
pub(super) struct Show {
    live: LiveNetwork,
    traffic: DemoTraffic,
    cuts: Cuts,
    pub(super) view: DemoView,
    /// When all switches were connected for the first time.
    connected: Option<Duration>,
    /// The links between switches, in the order of the display.
    links: Vec<LinkIndex>,
    /// The counts of the latest update, from which rates are calculated.
    last: CountsAt,
    /// Datagrams that had not arrived at each update of the last [`SETTLED`]. Some may have been
    /// late.
    lost: VecDeque<(Duration, u64)>,
}

/// Time after which a datagram that has not arrived is lost for the totals, which never fall.
const SETTLED: Duration = Duration::from_secs(1);

/// Counts at one time.
#[derive(Default)]
struct CountsAt {
    at: Duration,
    switches: Vec<Counted>,
    hosts: Vec<Heard>,
    /// Frames of each link.
    links: Vec<u64>,
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
    /// Makes a demo on this network. Links are cut automatically, or only by hand.
    pub(super) fn new(live: LiveNetwork, view: DemoView, seed: u64, automatic: bool) -> Self {
        let topology = live.network().topology();
        let (switches, hosts) = (topology.switches().len(), topology.hosts().len());
        let between_switches = |link: &LinkIndex| {
            topology.links()[link.index()]
                .ends
                .iter()
                .all(|end| matches!(end.node, Node::Switch(_)))
        };
        let links: Vec<LinkIndex> =
            (0..topology.links().len() as u32).map(LinkIndex).filter(between_switches).collect();
        let mut show = Show {
            traffic: DemoTraffic::new(hosts, seed),
            cuts: Cuts::new(seed, automatic),
            view,
            connected: None,
            lost: VecDeque::new(),
            last: CountsAt {
                at: Duration::ZERO,
                switches: vec![Counted::default(); switches],
                hosts: vec![Heard::default(); hosts],
                links: vec![0; links.len()],
            },
            links,
            live,
        };
        show.name_all();
        show
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.live.elapsed()
    }

    /// Whether all switches were connected at one time.
    pub(super) fn was_connected(&self) -> bool {
        self.connected.is_some()
    }

    /// Runs network, traffic and cuts for this time, or until the demo is asked to end.
    pub(super) fn run_for(&mut self, time: Duration, ending: &Ending) -> Result<(), Failure> {
        let end = self.live.elapsed() + time;
        while self.live.elapsed() < end && !ending.is_asked_for() {
            let remaining = end.saturating_sub(self.live.elapsed());
            if !self.is_ready() {
                self.live.turn(remaining.min(SETTLE / 4))?;
                continue;
            }
            let was_talking = self.traffic.is_talking();
            let network = self.live.network_mut();
            self.traffic.go_on(network);
            if self.traffic.is_talking() {
                if !was_talking {
                    self.begin();
                }
                self.go_on_with_cuts();
            }
            let next = self.traffic.next().min(self.cuts.next());
            let wait = next.saturating_sub(self.live.network_mut().now());
            self.live.turn(remaining.min(wait))?;
        }
        Ok(())
    }

    /// Whether hosts may send: not before all switches have been connected for `SETTLE`.
    fn is_ready(&mut self) -> bool {
        let now = self.live.elapsed();
        match self.connected {
            Some(at) => now >= at + SETTLE,
            None => {
                if self.live.connected() == self.view.switches.len() {
                    self.connected = Some(now);
                    let all = self.view.switches.len();
                    self.view.elapsed = now;
                    self.view
                        .add_news(NewsKind::Plain, format!("all {all} switches are connected"));
                }
                false
            }
        }
    }

    fn begin(&mut self) {
        self.cuts.begin(self.live.network().now());
        let streams = self.traffic.streams().len();
        self.view.elapsed = self.live.elapsed();
        self.view.add_news(
            NewsKind::Plain,
            format!("the hosts have met; {streams} streams of 1000 datagrams/s begin"),
        );
    }

    fn go_on_with_cuts(&mut self) {
        let network = self.live.network_mut();
        if self.cuts.next() > network.now() {
            return;
        }
        let datagrams = self.traffic.datagrams(network);
        if let Some(event) = self.cuts.go_on(network, &datagrams) {
            self.tell_event(event);
        }
    }

    /// Cuts a link, or mends the one that is down.
    pub(super) fn toggle_link(&mut self) {
        if self.traffic.is_talking() {
            let network = self.live.network_mut();
            let datagrams = self.traffic.datagrams(network);
            let event = self.cuts.toggle(network, &datagrams);
            self.tell_event(event);
        }
    }

    fn tell_event(&mut self, event: LinkEvent) {
        let name = |link| {
            let [a, b] = emulate::link_ends(&self.live, link);
            format!("link {a} - {b}")
        };
        let lost = |CutLosses { streams, lost, .. }: CutLosses| {
            let all = self.traffic.streams().len();
            let datagrams = if lost == 1 { "datagram" } else { "datagrams" };
            format!("{lost} {datagrams} lost in {streams} of {all} streams")
        };
        let (kind, text) = match event {
            LinkEvent::Cut(link) => (NewsKind::Bad, format!("{} is cut", name(link))),
            LinkEvent::Mended(link) => (NewsKind::Plain, format!("{} is mended", name(link))),
            LinkEvent::Counted(_, wound) if wound.lost == 0 => {
                (NewsKind::Good, "healed before a datagram was lost".to_owned())
            }
            LinkEvent::Counted(_, wound) if wound.healed => {
                let ms = wound.longest.as_millis();
                (NewsKind::Good, format!("healed in {ms} ms: {}", lost(wound)))
            }
            LinkEvent::Counted(_, wound) => (NewsKind::Bad, format!("not healed: {}", lost(wound))),
            // The mending of a link is only shown if datagrams were lost.
            LinkEvent::CountedAfter(_, wound) if wound.lost == 0 => return,
            LinkEvent::CountedAfter(_, wound) => {
                (NewsKind::Bad, format!("with the mending, {}", lost(wound)))
            }
            LinkEvent::NoneToCut => {
                (NewsKind::Plain, "no link can be cut without separating the network".to_owned())
            }
        };
        match event {
            LinkEvent::Cut(_) => self.view.cuts.cuts += 1,
            LinkEvent::Counted(_, wound) if wound.healed => self.view.cuts.heal(wound.longest),
            _ => {}
        }
        self.view.elapsed = self.live.elapsed();
        self.view.add_news(kind, text);
    }

    /// Updates the view from the network and the traffic.
    pub(super) fn update(&mut self) {
        let now = self.live.elapsed();
        let seconds = now.saturating_sub(self.last.at).as_secs_f64();
        self.last.at = now;
        self.view.elapsed = now;
        self.take_pings();
        let mut rates = Rates::default();
        self.look_at_switches(seconds, &mut rates);
        self.look_at_hosts(seconds, &mut rates);
        self.look_at_links(seconds);
        self.view.rate(rates);
        let datagrams = self.traffic.datagrams(self.live.network_mut());
        self.view.totals.datagrams = datagrams.total();
        let lost = datagrams.lost();
        self.lost.push_back((now, lost));
        while self.lost.front().is_some_and(|(at, _)| *at + SETTLED < now) {
            self.lost.pop_front();
        }
        let certain = self.lost.iter().map(|(_, lost)| *lost).min().unwrap_or(lost);
        let totals = &mut self.view.totals;
        totals.lost_datagrams = totals.lost_datagrams.max(certain);
        self.cuts.update(datagrams);
    }

    fn look_at_switches(&mut self, seconds: f64, rates: &mut Rates) {
        let totals = &mut self.view.totals;
        (totals.connected, totals.flows, totals.packet_ins, totals.frames) = (0, 0, 0, 0);
        let shown = self.view.switches.iter_mut().zip(&mut self.last.switches);
        for (index, (shown, last)) in shown.enumerate() {
            let id = SwitchIndex(index as u32);
            let switch = self.live.network().switch(id);
            let ports = switch.datapath().ports().iter();
            let counted = Counted {
                packet_ins: switch.counters().packet_ins,
                frames: ports.map(|port| port.counters.rx_packets).sum(),
            };
            shown.version = self.live.lines(id).find_map(|(_, state)| match state {
                ConnectionState::Up(version) => Some(version.to_string()),
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
            let counters = self.live.network().host(HostIndex(index as u32)).counters();
            let bytes = Heard { sent: counters.bytes_out, received: counters.bytes_in };
            shown.sent_bits_per_second = 8.0 * per_second(bytes.sent, last.sent, seconds);
            shown.received_bits_per_second =
                8.0 * per_second(bytes.received, last.received, seconds);
            rates.bits += shown.received_bits_per_second;
            self.view.totals.bytes += bytes.received;
            *last = bytes;
        }
    }

    fn look_at_links(&mut self, seconds: f64) {
        let shown = self.view.links.iter_mut().zip(&mut self.last.links).zip(&self.links);
        for ((shown, last), link) in shown {
            let [a, b] = self.live.network().link_counters(*link);
            let frames = a.frames + b.frames;
            shown.is_up = self.live.network().is_link_up(*link);
            shown.frames_per_second = per_second(frames, *last, seconds);
            *last = frames;
        }
    }

    /// Takes the pings that have ended since the last call.
    fn take_pings(&mut self) {
        let mut pings = Vec::new();
        self.traffic.over(self.live.network_mut(), |answer| pings.push(answer));
        for FinishedPing { from, to, trip } in pings {
            self.view.totals.pings += 1;
            self.view.hosts[from.index()].round_trip = trip;
            if trip.is_none() {
                self.view.totals.lost_pings += 1;
                let [a, b] = [from, to].map(|host| self.view.hosts[host.index()].name.clone());
                self.view.add_news(NewsKind::Bad, format!("{a} pings {b}: no answer"));
            }
        }
    }

    /// Fills in the names of switches, hosts and links.
    fn name_all(&mut self) {
        let topology = self.live.network().topology();
        let switch = |name: &str| SwitchView { name: name.to_owned(), ..SwitchView::default() };
        self.view.switches = topology.switches().iter().map(|spec| switch(&spec.name)).collect();
        let host = |(index, spec): (usize, &HostSpec)| HostView {
            name: spec.name.clone(),
            ip: spec.ip,
            place: emulate::place(&self.live, HostIndex(index as u32)),
            sent_bits_per_second: 0.0,
            received_bits_per_second: 0.0,
            round_trip: None,
        };
        self.view.hosts = topology.hosts().iter().enumerate().map(host).collect();
        let link = |link: &LinkIndex| LinkView {
            name: emulate::link_ends(&self.live, *link).join(" - "),
            is_up: true,
            frames_per_second: 0.0,
        };
        self.view.links = self.links.iter().map(link).collect();
    }

    /// Whether a link is down now.
    pub(super) fn is_cut(&self) -> bool {
        self.cuts.down().is_some()
    }
}

/// Average growth of a counter per second.
fn per_second(now: u64, before: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { now.saturating_sub(before) as f64 / seconds } else { 0.0 }
}
