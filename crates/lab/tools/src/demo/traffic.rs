//! Traffic of the hosts: streams of datagrams, which show how long a path is broken, and pings.

use std::collections::VecDeque;
use std::time::Duration;

use bellrock_emulator::host::{PingId, PingSettings, StreamSettings};
use bellrock_emulator::network::EmulatedNetwork;
use bellrock_emulator::topology::HostIndex;

/// Time between two datagrams of a stream. Times to heal are multiples of it.
pub(super) const INTERVAL: Duration = Duration::from_millis(1);

/// Time after which a datagram counts as lost.
const ON_THE_WAY: Duration = Duration::from_micros(500);

/// Data bytes of a datagram: 8 Mb/s per stream.
const DATA_BYTES: usize = 1000;

/// Maximum number of streams. Each sends a thousand datagrams a second.
const MAX_STREAMS: usize = 16;

/// Destination port of the first stream. Each further stream takes the next port.
const FIRST_PORT: u16 = 5001;

/// Time between two pings, of all hosts together.
const PING_EVERY: Duration = Duration::from_millis(100);

/// Time until the first pings, by which the controller learns the hosts, are sent again.
const FIRST_PING: Duration = Duration::from_millis(500);

/// A ping that has ended, and its hosts.
pub(super) struct FinishedPing {
    pub(super) from: HostIndex,
    pub(super) to: HostIndex,
    /// Round trip time. `None`: no answer.
    pub(super) trip: Option<Duration>,
}

/// Datagrams of all streams: number sent per stream, and number received of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Datagrams {
    /// Number sent by each stream.
    pub(super) sent: u64,
    pub(super) received: Vec<u64>,
}

impl Datagrams {
    /// Datagrams that each stream lost since `before`.
    pub(super) fn lost_since(&self, before: &Datagrams) -> Vec<u64> {
        let lost = self.lost_by_stream().zip(before.lost_by_stream());
        lost.map(|(now, before)| now.saturating_sub(before)).collect()
    }

    /// Datagrams that each stream lost. One that arrived earlier than expected is no gain.
    fn lost_by_stream(&self) -> impl Iterator<Item = u64> {
        self.received.iter().map(|received| self.sent.saturating_sub(*received))
    }

    /// Datagrams sent by all streams.
    pub(super) fn total(&self) -> u64 {
        self.sent * self.received.len() as u64
    }

    /// Datagrams of all streams that did not arrive.
    pub(super) fn lost(&self) -> u64 {
        self.lost_by_stream().sum()
    }
}

/// The traffic of the demo. Times are those of the network.
pub(super) struct DemoTraffic {
    hosts: usize,
    chance: fastrand::Rng,
    streams: Vec<(HostIndex, HostIndex)>,
    stage: TrafficStage,
    pings: VecDeque<(HostIndex, HostIndex, PingId)>,
}

/// Stage of the traffic.
enum TrafficStage {
    /// The ends of each stream ping until all have answered. The next pings are at `again`.
    Meeting { again: Duration },
    /// Streams run since `began`.
    Talking { began: Duration, next_ping: Duration },
}

impl DemoTraffic {
    /// Traffic between this number of hosts, at least two.
    pub(super) fn new(hosts: usize, seed: u64) -> Self {
        let host = |index: usize| HostIndex((index % hosts) as u32);
        // Each host sends to the farthest one in a ring.
        let streams = (0..hosts.min(MAX_STREAMS)).map(|i| (host(i), host(i + hosts.div_ceil(2))));
        DemoTraffic {
            hosts,
            chance: fastrand::Rng::with_seed(seed),
            streams: streams.filter(|(from, to)| from != to).collect(),
            stage: TrafficStage::Meeting { again: Duration::ZERO },
            pings: VecDeque::new(),
        }
    }

    /// The ends of the streams.
    pub(super) fn streams(&self) -> &[(HostIndex, HostIndex)] {
        &self.streams
    }

    /// Whether the streams run.
    pub(super) fn is_talking(&self) -> bool {
        matches!(self.stage, TrafficStage::Talking { .. })
    }

    /// Time of the next action.
    pub(super) fn next(&self) -> Duration {
        match self.stage {
            TrafficStage::Meeting { again } => again,
            TrafficStage::Talking { next_ping, .. } => next_ping,
        }
    }

    /// Starts what is due.
    pub(super) fn go_on(&mut self, network: &mut EmulatedNetwork) {
        let now = network.now();
        match &mut self.stage {
            TrafficStage::Meeting { again } if *again <= now => {
                *again = now + FIRST_PING;
                self.meet(network);
            }
            TrafficStage::Talking { next_ping, .. } if *next_ping <= now => {
                *next_ping = now + PING_EVERY;
                let (from, to) = self.pair();
                // A host without space for another ping has enough of them.
                if let Ok(ping) = network.ping(from, to, PingSettings::default()) {
                    self.pings.push_back((from, to, ping));
                }
            }
            _ => {}
        }
    }

    /// Starts the streams if all their hosts have answered; otherwise pings again.
    fn meet(&mut self, network: &mut EmulatedNetwork) {
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

    fn begin(&mut self, network: &mut EmulatedNetwork) {
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
            // A host always has space for one stream.
            let _ = network.udp_stream(from, settings);
        }
        self.stage = TrafficStage::Talking { began, next_ping: began };
    }

    /// Datagrams that the streams have sent and received by now.
    pub(super) fn datagrams(&self, network: &EmulatedNetwork) -> Datagrams {
        let TrafficStage::Talking { began, .. } = self.stage else {
            return Datagrams { sent: 0, received: vec![0; self.streams.len()] };
        };
        let Some(since) = network.now().checked_sub(began + ON_THE_WAY) else {
            return Datagrams { sent: 0, received: vec![0; self.streams.len()] };
        };
        let received = (FIRST_PORT..).zip(&self.streams).map(|(port, (_, to))| {
            network.host(*to).udp_counters(port).unwrap_or_default().datagrams
        });
        Datagrams {
            // The first one is sent at once.
            sent: (since.as_nanos() / INTERVAL.as_nanos()) as u64 + 1,
            received: received.collect(),
        }
    }

    /// Removes the pings that have ended, and passes them to `each`.
    pub(super) fn over(
        &mut self,
        network: &mut EmulatedNetwork,
        mut each: impl FnMut(FinishedPing),
    ) {
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
            each(FinishedPing { from, to, trip: statistics.complete().then_some(statistics.max) });
        }
    }

    /// Chooses two different hosts.
    fn pair(&mut self) -> (HostIndex, HostIndex) {
        let from = self.chance.usize(..self.hosts);
        let to = self.chance.usize(..self.hosts - 1);
        let to = if to < from { to } else { to + 1 };
        (HostIndex(from as u32), HostIndex(to as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_go_to_other_hosts_and_are_bounded() {
        for hosts in [2, 3, 5, 6, 16, 1024] {
            let traffic = DemoTraffic::new(hosts, 1);
            assert_eq!(traffic.streams().len(), hosts.min(MAX_STREAMS), "{hosts}");
            assert!(traffic.streams().iter().all(|(from, to)| from != to), "{hosts}");
        }
    }

    #[test]
    fn lost_datagrams_are_counted_for_each_stream() {
        // The third has received one more than counts as sent.
        let before = Datagrams { sent: 10, received: vec![10, 8, 11] };
        let now = Datagrams { sent: 30, received: vec![25, 28, 30] };
        assert_eq!(now.lost_since(&before), [5, 0, 0]);
        assert_eq!((now.total(), now.lost()), (90, 7));
    }
}
