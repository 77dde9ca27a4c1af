//! Hosts that talk: streams of datagrams, which show for how long a path is broken, and pings.

use std::collections::VecDeque;
use std::time::Duration;

use bellrock_emulator::host::{PingId, PingSettings, StreamSettings};
use bellrock_emulator::network::Network;
use bellrock_emulator::topology::HostId;

/// Time between two datagrams of a stream; times of healing are multiples of it.
pub(super) const INTERVAL: Duration = Duration::from_millis(1);

/// How long a datagram may be on its way before it counts as lost.
const ON_THE_WAY: Duration = Duration::from_micros(500);

/// Data of a datagram: 8 Mb/s a stream.
const DATA_BYTES: usize = 1000;

/// Streams at most. Each sends a thousand datagrams a second.
const MAX_STREAMS: usize = 16;

/// Ports that streams go to: this one and those behind it, one a stream.
const FIRST_PORT: u16 = 5001;

/// Time between two pings, of all hosts together.
const PING_EVERY: Duration = Duration::from_millis(100);

/// How long the first pings, by which the controller gets to know the hosts, may take before they are sent again.
const FIRST_PING: Duration = Duration::from_millis(500);

/// A ping that is over, and between whom.
pub(super) struct Answer {
    pub(super) from: HostId,
    pub(super) to: HostId,
    /// None is no answer.
    pub(super) trip: Option<Duration>,
}

/// Datagrams of all streams: how many each has sent, and how many have arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Datagrams {
    /// So many of each stream.
    pub(super) sent: u64,
    pub(super) received: Vec<u64>,
}

impl Datagrams {
    /// What each stream has lost since `before`.
    pub(super) fn lost_since(&self, before: &Datagrams) -> Vec<u64> {
        let lost = self.lost_by_stream().zip(before.lost_by_stream());
        lost.map(|(now, before)| now.saturating_sub(before)).collect()
    }

    /// What each stream has lost. One that has arrived although it could still be on its way is no gain.
    fn lost_by_stream(&self) -> impl Iterator<Item = u64> {
        self.received.iter().map(|received| self.sent.saturating_sub(*received))
    }

    /// All that were sent.
    pub(super) fn total(&self) -> u64 {
        self.sent * self.received.len() as u64
    }

    /// All that have not arrived.
    pub(super) fn lost(&self) -> u64 {
        self.lost_by_stream().sum()
    }
}

/// The traffic of the demo. Times are the network's.
pub(super) struct Traffic {
    hosts: usize,
    chance: fastrand::Rng,
    streams: Vec<(HostId, HostId)>,
    stage: Stage,
    pings: VecDeque<(HostId, HostId, PingId)>,
}

/// How far it is.
enum Stage {
    /// Both ends of each stream ping each other until all have answered.
    Meeting { again: Duration },
    /// Streams run since `began`.
    Talking { began: Duration, next_ping: Duration },
}

impl Traffic {
    /// Between so many hosts, at least two.
    pub(super) fn new(hosts: usize, seed: u64) -> Self {
        let host = |index: usize| HostId((index % hosts) as u32);
        // Each host to the one that is farthest from it in a ring.
        let streams = (0..hosts.min(MAX_STREAMS)).map(|i| (host(i), host(i + hosts.div_ceil(2))));
        Traffic {
            hosts,
            chance: fastrand::Rng::with_seed(seed),
            streams: streams.filter(|(from, to)| from != to).collect(),
            stage: Stage::Meeting { again: Duration::ZERO },
            pings: VecDeque::new(),
        }
    }

    /// The ends of the streams.
    pub(super) fn streams(&self) -> &[(HostId, HostId)] {
        &self.streams
    }

    /// Whether the streams run.
    pub(super) fn is_talking(&self) -> bool {
        matches!(self.stage, Stage::Talking { .. })
    }

    /// When there is something to begin.
    pub(super) fn next(&self) -> Duration {
        match self.stage {
            Stage::Meeting { again } => again,
            Stage::Talking { next_ping, .. } => next_ping,
        }
    }

    /// Begins what is due.
    pub(super) fn go_on(&mut self, network: &mut Network) {
        let now = network.now();
        match &mut self.stage {
            Stage::Meeting { again } if *again <= now => {
                *again = now + FIRST_PING;
                self.meet(network);
            }
            Stage::Talking { next_ping, .. } if *next_ping <= now => {
                *next_ping = now + PING_EVERY;
                let (from, to) = self.pair();
                // A host that has no room for another one has pings enough.
                if let Ok(ping) = network.ping(from, to, PingSettings::default()) {
                    self.pings.push_back((from, to, ping));
                }
            }
            _ => {}
        }
    }

    /// Begins the streams once all their hosts have met, and else lets them ping again.
    fn meet(&mut self, network: &mut Network) {
        let pings: Vec<_> = self.pings.drain(..).collect();
        let mut answered = !pings.is_empty();
        for (from, _, ping) in pings {
            answered &= network.end_ping(from, ping).is_some_and(|ping| ping.complete());
        }
        if answered {
            return self.begin(network);
        }
        for &(from, to) in &self.streams {
            if let Ok(ping) = network.ping(from, to, PingSettings::default()) {
                self.pings.push_back((from, to, ping));
            }
        }
    }

    fn begin(&mut self, network: &mut Network) {
        let began = network.now();
        for (port, &(from, to)) in (FIRST_PORT..).zip(&self.streams) {
            let address = network.host(to).ip();
            network.with(to, |host, _, _| host.udp_sink(port));
            let settings = StreamSettings {
                to: address,
                from_port: port,
                to_port: port,
                data_len: DATA_BYTES,
                interval: INTERVAL,
                count: u64::MAX,
            };
            // One stream a host is never too many.
            let _ = network.udp_stream(from, settings);
        }
        self.stage = Stage::Talking { began, next_ping: began };
    }

    /// What the streams have sent and received by now.
    pub(super) fn datagrams(&self, network: &Network) -> Datagrams {
        let Stage::Talking { began, .. } = self.stage else {
            return Datagrams { sent: 0, received: vec![0; self.streams.len()] };
        };
        let Some(since) = network.now().checked_sub(began + ON_THE_WAY) else {
            return Datagrams { sent: 0, received: vec![0; self.streams.len()] };
        };
        let received = (FIRST_PORT..).zip(&self.streams).map(|(port, (_, to))| {
            network.host(*to).udp_counters(port).unwrap_or_default().datagrams
        });
        Datagrams {
            // The first one goes out at once.
            sent: (since.as_nanos() / INTERVAL.as_nanos()) as u64 + 1,
            received: received.collect(),
        }
    }

    /// Takes out the pings that are over.
    pub(super) fn over(&mut self, network: &mut Network, mut each: impl FnMut(Answer)) {
        if !self.is_talking() {
            return;
        }
        for _ in 0..self.pings.len() {
            let Some((from, to, ping)) = self.pings.pop_front() else { break };
            if !network.host(from).is_ping_over(ping) {
                self.pings.push_back((from, to, ping));
                continue;
            }
            let statistics = network.end_ping(from, ping).unwrap_or_default();
            each(Answer { from, to, trip: statistics.complete().then_some(statistics.max) });
        }
    }

    /// Two different hosts.
    fn pair(&mut self) -> (HostId, HostId) {
        let from = self.chance.usize(..self.hosts);
        let to = self.chance.usize(..self.hosts - 1);
        let to = if to < from { to } else { to + 1 };
        (HostId(from as u32), HostId(to as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_go_to_other_hosts_and_are_bounded() {
        for hosts in [2, 3, 5, 6, 16, 1024] {
            let traffic = Traffic::new(hosts, 1);
            assert_eq!(traffic.streams().len(), hosts.min(MAX_STREAMS), "{hosts}");
            assert!(traffic.streams().iter().all(|(from, to)| from != to), "{hosts}");
        }
    }

    #[test]
    fn what_is_lost_is_counted_for_each_stream() {
        // The third has received one that the others still wait for.
        let before = Datagrams { sent: 10, received: vec![10, 8, 11] };
        let now = Datagrams { sent: 30, received: vec![25, 28, 30] };
        assert_eq!(now.lost_since(&before), [5, 0, 0]);
        assert_eq!((now.total(), now.lost()), (90, 7));
    }
}
