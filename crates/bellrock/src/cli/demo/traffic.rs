//! Hosts that talk: pings all the time, and a stream now and then.

use std::collections::VecDeque;
use std::time::Duration;

use bellrock_emulator::host::{FlowGoal, FlowId, FlowReport, FlowState, PingId, PingSettings};
use bellrock_emulator::network::Network;
use bellrock_emulator::topology::HostId;

/// Time between two pings, of all hosts together.
const PING_EVERY: Duration = Duration::from_millis(100);

/// Time between two streams, and how long one lasts: one or two at a time.
const STREAM_EVERY: Duration = Duration::from_secs(2);
const STREAM_TIME: Duration = Duration::from_secs(3);

/// Where streams go.
const STREAM_PORT: u16 = 5001;

/// Something that has come to its end, and between whom.
pub(super) struct News {
    pub(super) from: HostId,
    pub(super) to: HostId,
    pub(super) what: What,
}

pub(super) enum What {
    /// A ping was answered after this time, or not at all.
    Ping(Option<Duration>),
    /// A stream is over.
    Stream(FlowReport),
}

/// The traffic of the demo. Times are the network's.
pub(super) struct Traffic {
    hosts: usize,
    chance: fastrand::Rng,
    next_ping: Duration,
    next_stream: Duration,
    pings: VecDeque<(HostId, HostId, PingId)>,
    streams: Vec<(HostId, HostId, FlowId)>,
}

impl Traffic {
    /// Between so many hosts, at least two.
    pub(super) fn new(hosts: usize, seed: u64) -> Self {
        Traffic {
            hosts,
            chance: fastrand::Rng::with_seed(seed),
            next_ping: Duration::ZERO,
            next_stream: STREAM_EVERY / 2,
            pings: VecDeque::new(),
            streams: Vec::new(),
        }
    }

    /// Begins to talk now, whatever the time is.
    pub(super) fn begin(&mut self, now: Duration) {
        self.next_ping = now;
        self.next_stream = now + STREAM_EVERY / 2;
    }

    /// When there is something to begin.
    pub(super) fn next(&self) -> Duration {
        self.next_ping.min(self.next_stream)
    }

    /// Begins what is due.
    pub(super) fn go_on(&mut self, network: &mut Network) {
        let now = network.now();
        if self.next_ping <= now {
            self.next_ping = now + PING_EVERY;
            let (from, to) = self.pair();
            // A host that has no room for another one has pings enough.
            if let Ok(ping) = network.ping(from, to, PingSettings::default()) {
                self.pings.push_back((from, to, ping));
            }
        }
        if self.next_stream <= now {
            self.next_stream = now + STREAM_EVERY;
            let (from, to) = self.pair();
            let goal = FlowGoal::Until(now + STREAM_TIME);
            if let Ok(flow) = network.open_flow(from, to, STREAM_PORT, goal) {
                self.streams.push((from, to, flow));
            }
        }
    }

    /// Takes out what is over.
    pub(super) fn over(&mut self, network: &mut Network, mut tell: impl FnMut(News)) {
        for _ in 0..self.pings.len() {
            let Some((from, to, ping)) = self.pings.pop_front() else { break };
            if !network.host(from).is_ping_over(ping) {
                self.pings.push_back((from, to, ping));
                continue;
            }
            let statistics = network.end_ping(from, ping).unwrap_or_default();
            let trip = statistics.complete().then_some(statistics.max);
            tell(News { from, to, what: What::Ping(trip) });
        }
        self.streams.retain(|(from, to, flow)| {
            let report = network.host(*from).flow(*flow);
            let Some(report) = report.filter(|report| report.state.is_over()) else { return true };
            network.with(*from, |host, _, _| host.end_flow(*flow));
            tell(News { from: *from, to: *to, what: What::Stream(report) });
            false
        });
    }

    /// Two different hosts.
    fn pair(&mut self) -> (HostId, HostId) {
        let from = self.chance.usize(..self.hosts);
        let to = self.chance.usize(..self.hosts - 1);
        let to = if to < from { to } else { to + 1 };
        (HostId(from as u32), HostId(to as u32))
    }
}

/// How a stream ended, for people.
pub(super) fn ended(state: FlowState) -> &'static str {
    match state {
        FlowState::Done => "done",
        FlowState::Reset => "refused",
        FlowState::TimedOut => "given up: no answer any more",
        FlowState::Opening | FlowState::Open | FlowState::Closing => "running",
    }
}
