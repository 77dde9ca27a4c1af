//! What the hosts of a lab do.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use super::{Lab, LabError, Pinged, fail};
use crate::check::Reachability;
use crate::host::{
    FlowGoal, FlowId, FlowReport, FlowState, HostError, PingId, PingSettings, PingStatistics,
    StreamSettings,
};
use crate::topology::HostId;

/// The port that datagrams and flows go to.
const PORT: u16 = 5001;

/// The port that datagrams come from.
const FROM_PORT: u16 = 5000;

/// Bytes of data in each datagram.
const DATAGRAM_BYTES: usize = 64;

/// How long the last datagrams of a stream have to arrive.
const LAST_ARRIVAL: Duration = Duration::from_secs(5);

/// How long a flow has to carry its bytes.
const FLOW_LIMIT: Duration = Duration::from_secs(600);

/// Pings that go on; [`Lab::statistics`] tells of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pings {
    host: HostId,
    id: PingId,
}

impl Lab {
    /// Lets a host ping another once, with what it takes to learn its address. Whether it was
    /// answered within the time of [`PingSettings::default`].
    ///
    /// # Panics
    /// There is no such host, or both are the same.
    #[track_caller]
    pub fn ping(&mut self, from: &str, to: &str) -> bool {
        self.ping_pairs(&[(from, to)]).is_complete()
    }

    /// Lets all hosts ping each other, all at the same time.
    pub fn ping_all(&mut self) -> Pinged {
        let pings = Reachability::begin_all(&mut self.network, PingSettings::default());
        self.finish(pings)
    }

    /// Lets the first host of each pair ping the second, all at the same time.
    ///
    /// # Panics
    /// There is no such host.
    #[track_caller]
    pub fn ping_pairs(&mut self, pairs: &[(&str, &str)]) -> Pinged {
        let mut ids = Vec::with_capacity(pairs.len());
        for (from, to) in pairs {
            ids.push(self.pair(from, to));
        }
        let settings = PingSettings::default();
        let pings = Reachability::begin_pairs(&mut self.network, &ids, settings);
        self.finish(pings)
    }

    /// Lets a host ping an address once, whether a host of the lab has it or not, with what it takes to learn
    /// where it is: for the addresses of apps. Returns whether the ping was answered within the time of
    /// [`PingSettings::default`].
    ///
    /// # Panics
    /// There is no such host, or the address is its own.
    #[track_caller]
    pub fn ping_address(&mut self, from: &str, to: Ipv4Addr) -> bool {
        let from = self.host_id(from);
        let settings = PingSettings::default();
        let begun = self.network.with(from, |host, now, out| host.ping(to, settings, now, out));
        let ping = begun.unwrap_or_else(|error| fail(&error.into()));
        let limit = settings.timeout + Duration::from_secs(1);
        self.run_until(limit, |lab| lab.network.host(from).is_ping_over(ping));
        let statistics = self.network.end_ping(from, ping);
        statistics.is_some_and(|statistics| statistics.complete())
    }

    /// Lets a host ping another so many times, once in each `interval`, and lets no time pass.
    ///
    /// # Panics
    /// There is no such host, or both are the same.
    #[track_caller]
    pub fn start_pings(&mut self, from: &str, to: &str, count: u16, interval: Duration) -> Pings {
        let (from, to) = self.pair(from, to);
        let settings = PingSettings { count, interval, ..PingSettings::default() };
        match self.network.ping(from, to, settings) {
            Ok(id) => Pings { host: from, id },
            Err(error) => fail(&error.into()),
        }
    }

    /// What has come of pings so far; nothing of pings of another lab.
    #[must_use]
    pub fn statistics(&self, pings: &Pings) -> PingStatistics {
        self.network.host(pings.host).ping_statistics(pings.id).unwrap_or_default()
    }

    /// Sends a datagram from one host to another, and lets no time pass.
    ///
    /// # Panics
    /// There is no such host, or both are the same.
    #[track_caller]
    pub fn say(&mut self, from: &str, to: &str) {
        self.stream(from, to, 1, Duration::ZERO);
    }

    /// Sends so many datagrams from one host to another, one after each `interval`, and says how
    /// many arrived.
    ///
    /// # Panics
    /// There is no such host, or both are the same.
    #[track_caller]
    pub fn udp(&mut self, from: &str, to: &str, datagrams: u64, interval: Duration) -> u64 {
        let receiver = self.host_id(to);
        let arrived = |lab: &Lab| {
            lab.network.host(receiver).udp_counters(PORT).map_or(0, |counters| counters.datagrams)
        };
        let before = arrived(self);
        self.stream(from, to, datagrams, interval);
        let time = interval.saturating_mul(u32::try_from(datagrams).unwrap_or(u32::MAX));
        self.run_until(time + LAST_ARRIVAL, |lab| arrived(lab) - before == datagrams);
        arrived(self) - before
    }

    /// Sends so many datagrams from a host to an address, one after each `interval`, and returns how many each
    /// host of the lab has received, by name, without those that received none.
    ///
    /// # Panics
    /// There is no such host, or the address is its own.
    #[track_caller]
    pub fn udp_to_address(
        &mut self,
        from: &str,
        to: Ipv4Addr,
        datagrams: u64,
        interval: Duration,
    ) -> BTreeMap<String, u64> {
        let from = self.host_id(from);
        let hosts: Vec<_> = (0..self.network.topology().hosts().len()).map(HostId::of).collect();
        for host in &hosts {
            self.network.with(*host, |host, _, _| host.udp_sink(PORT));
        }
        let arrived = |lab: &Lab| -> Vec<u64> {
            let counters = hosts.iter().map(|host| lab.network.host(*host).udp_counters(PORT));
            counters.map(|counters| counters.map_or(0, |counters| counters.datagrams)).collect()
        };
        let before = arrived(self);
        self.stream_to(from, to, datagrams, interval);
        let time = interval.saturating_mul(u32::try_from(datagrams).unwrap_or(u32::MAX));
        let sum = |counts: &[u64]| counts.iter().sum::<u64>();
        let expected = sum(&before) + datagrams;
        self.run_until(time + LAST_ARRIVAL, |lab| sum(&arrived(lab)) >= expected);
        let counts = arrived(self).into_iter().zip(before).map(|(now, before)| now - before);
        let names = self.network.topology().hosts().iter().map(|host| host.name.clone());
        names.zip(counts).filter(|(_, count)| *count > 0).collect()
    }

    /// Carries so many bytes over a flow like TCP's from a host to an address, at which all other hosts of the lab
    /// listen, and returns what became of it, as its sender sees it.
    ///
    /// # Panics
    /// There is no such host, or the address is its own.
    #[track_caller]
    pub fn tcp_to_address(&mut self, from: &str, to: Ipv4Addr, bytes: u64) -> FlowReport {
        let from = self.host_id(from);
        for host in (0..self.network.topology().hosts().len()).map(HostId::of) {
            self.network.with(host, |host, _, _| host.listen(PORT));
        }
        let goal = FlowGoal::Bytes(bytes);
        let opened =
            self.network.with(from, |host, now, out| host.open_flow(to, PORT, goal, now, out));
        let flow = opened.unwrap_or_else(|error| fail(&error.into()));
        self.finish_flow(from, flow)
    }

    /// Sends a frame from a host, byte for byte as it is given, and lets no time pass.
    ///
    /// # Panics
    /// There is no such host.
    #[track_caller]
    pub fn send_frame(&mut self, from: &str, frame: &[u8]) {
        let host = self.host_id(from);
        self.network.with(host, |host, _, out| host.send_bytes(frame, out));
    }

    /// Lets a host keep the frames that it receives from now on, and returns those that it has kept,
    /// at most the last [`CAPTURED_FRAMES`](crate::host::CAPTURED_FRAMES).
    ///
    /// # Panics
    /// There is no such host.
    #[track_caller]
    pub fn capture(&mut self, host: &str) -> Vec<Vec<u8>> {
        let host = self.host_id(host);
        self.network.with(host, |host, _, _| host.capture())
    }

    /// Carries so many bytes over a flow like TCP's, and says what became of it, as its sender sees
    /// it.
    ///
    /// # Panics
    /// There is no such host, or both are the same.
    #[track_caller]
    pub fn tcp(&mut self, from: &str, to: &str, bytes: u64) -> FlowReport {
        let (from, to) = self.pair(from, to);
        let flow = match self.network.open_flow(from, to, PORT, FlowGoal::Bytes(bytes)) {
            Ok(flow) => flow,
            Err(error) => fail(&error.into()),
        };
        self.finish_flow(from, flow)
    }

    fn finish_flow(&mut self, from: HostId, flow: FlowId) -> FlowReport {
        let report = |lab: &Lab| lab.network.host(from).flow(flow);
        self.run_until(FLOW_LIMIT, |lab| report(lab).is_none_or(|it| it.state.is_over()));
        let ended = self.network.with(from, |host, _, _| host.end_flow(flow));
        ended.unwrap_or(FlowReport {
            state: FlowState::TimedOut,
            bytes: 0,
            retransmissions: 0,
            began: self.now(),
            last: self.now(),
        })
    }

    #[track_caller]
    fn stream(&mut self, from: &str, to: &str, count: u64, interval: Duration) {
        let (from, to) = self.pair(from, to);
        self.network.with(to, |host, _, _| host.udp_sink(PORT));
        self.stream_to(from, self.network.host(to).ip(), count, interval);
    }

    #[track_caller]
    fn stream_to(&mut self, from: HostId, to: Ipv4Addr, count: u64, interval: Duration) {
        let settings = StreamSettings {
            to,
            from_port: FROM_PORT,
            to_port: PORT,
            data_len: DATAGRAM_BYTES,
            interval,
            count,
        };
        if let Err(error) = self.network.udp_stream(from, settings) {
            fail(&error.into());
        }
    }

    fn finish(&mut self, pings: Reachability) -> Pinged {
        let limit = PingSettings::default().timeout + Duration::from_secs(1);
        self.run_until(limit, |lab| pings.is_over(&lab.network));
        Pinged::new(pings.finish(&mut self.network), self)
    }

    #[track_caller]
    fn pair(&self, from: &str, to: &str) -> (HostId, HostId) {
        let pair = (self.host_id(from), self.host_id(to));
        if pair.0 == pair.1 {
            fail(&LabError::Host(HostError::ToItself));
        }
        pair
    }
}
