//! Traffic of a lab's hosts.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use super::{Lab, LabError, PingResults, fail};
use crate::check::Reachability;
use crate::host::{
    FlowGoal, FlowReport, FlowState, HostError, HostFlowId, PingId, PingSettings, PingStatistics,
    StreamSettings,
};
use crate::topology::HostIndex;

/// Destination port of datagrams and flows.
const PORT: u16 = 5001;

/// Source port of datagrams.
const FROM_PORT: u16 = 5000;

/// Bytes of data in each datagram.
const DATAGRAM_BYTES: usize = 64;

/// Time for the last datagrams of a stream to arrive.
const LAST_ARRIVAL: Duration = Duration::from_secs(5);

/// Maximum time of a flow.
const FLOW_LIMIT: Duration = Duration::from_secs(600);

/// Running pings, for [`Lab::statistics`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pings {
    host: HostIndex,
    id: PingId,
}

impl Lab {
    /// Pings from one host to another once, with ARP if necessary. Returns whether the ping was
    /// answered within the timeout of [`PingSettings::default`].
    ///
    /// # Panics
    /// There is no such host, or both are the same.
    #[track_caller]
    pub fn ping(&mut self, from: &str, to: &str) -> bool {
        self.ping_pairs(&[(from, to)]).is_complete()
    }

    /// Pings between all hosts, all at the same time.
    pub fn ping_all(&mut self) -> PingResults {
        let pings = Reachability::begin_all(&mut self.network, PingSettings::default());
        self.finish(pings)
    }

    /// Pings from the first to the second host of each pair, all at the same time.
    ///
    /// # Panics
    /// There is no such host.
    #[track_caller]
    pub fn ping_pairs(&mut self, pairs: &[(&str, &str)]) -> PingResults {
        let mut ids = Vec::with_capacity(pairs.len());
        for (from, to) in pairs {
            ids.push(self.pair(from, to));
        }
        let settings = PingSettings::default();
        let pings = Reachability::begin_pairs(&mut self.network, &ids, settings);
        self.finish(pings)
    }

    /// Pings an address from a host once, with ARP if necessary. The address may be an app's
    /// instead of a host's. Returns whether the ping was answered within the timeout of
    /// [`PingSettings::default`].
    ///
    /// # Panics
    /// There is no such host, or the address is its own.
    #[track_caller]
    pub fn ping_address(&mut self, from: &str, to: Ipv4Addr) -> bool {
        let from = self.host_id(from);
        let settings = PingSettings::default();
        let ping = self.network.with(from, |host, now, out| host.ping(to, settings, now, out));
        let ping = ping.unwrap_or_else(|error| fail(&error.into()));
        let limit = settings.timeout + Duration::from_secs(1);
        self.run_until(limit, |lab| lab.network.host(from).is_ping_over(ping));
        let statistics = self.network.end_ping(from, ping);
        statistics.is_some_and(|statistics| statistics.complete())
    }

    /// Starts `count` pings from one host to another, one in each `interval`. No time passes.
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

    /// The result of pings so far; empty for pings of another lab.
    #[must_use]
    pub fn statistics(&self, pings: &Pings) -> PingStatistics {
        self.network.host(pings.host).ping_statistics(pings.id).unwrap_or_default()
    }

    /// Sends a datagram from one host to another. No time passes.
    ///
    /// # Panics
    /// There is no such host, or both are the same.
    #[track_caller]
    pub fn send_datagram(&mut self, from: &str, to: &str) {
        self.stream(from, to, 1, Duration::ZERO);
    }

    /// Sends datagrams from one host to another, one in each `interval`. Returns how many arrived.
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

    /// Sends datagrams from a host to an address, one in each `interval`. Returns how many each
    /// host of the lab received, by name, without hosts that received none.
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
        let hosts: Vec<_> = (0..self.network.topology().hosts().len()).map(HostIndex::of).collect();
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

    /// Sends bytes over a flow like TCP's from a host to an address, where all hosts of the lab
    /// listen. Returns the sender's report.
    ///
    /// # Panics
    /// There is no such host, or the address is its own.
    #[track_caller]
    pub fn tcp_to_address(&mut self, from: &str, to: Ipv4Addr, bytes: u64) -> FlowReport {
        let from = self.host_id(from);
        for host in (0..self.network.topology().hosts().len()).map(HostIndex::of) {
            self.network.with(host, |host, _, _| host.listen(PORT));
        }
        let goal = FlowGoal::Bytes(bytes);
        let opened =
            self.network.with(from, |host, now, out| host.open_flow(to, PORT, goal, now, out));
        let flow = opened.unwrap_or_else(|error| fail(&error.into()));
        self.finish_flow(from, flow)
    }

    /// Sends these bytes as a frame from a host. No time passes.
    ///
    /// # Panics
    /// There is no such host.
    #[track_caller]
    pub fn send_frame(&mut self, from: &str, frame: &[u8]) {
        let host = self.host_id(from);
        self.network.with(host, |host, _, out| host.send_bytes(frame, out));
    }

    /// Captures the received frames of a host from now on. Returns the frames captured so far, at
    /// most the last [`CAPTURED_FRAMES`](crate::host::CAPTURED_FRAMES).
    ///
    /// # Panics
    /// There is no such host.
    #[track_caller]
    pub fn capture(&mut self, host: &str) -> Vec<Vec<u8>> {
        let host = self.host_id(host);
        self.network.with(host, |host, _, _| host.capture())
    }

    /// Sends bytes over a flow like TCP's from one host to another. Returns the sender's report.
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

    fn finish_flow(&mut self, from: HostIndex, flow: HostFlowId) -> FlowReport {
        let report = |lab: &Lab| lab.network.host(from).flow(flow);
        self.run_until(FLOW_LIMIT, |lab| {
            report(lab).is_none_or(|flow_report| flow_report.state.is_over())
        });
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
    fn stream_to(&mut self, from: HostIndex, to: Ipv4Addr, count: u64, interval: Duration) {
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

    fn finish(&mut self, pings: Reachability) -> PingResults {
        let limit = PingSettings::default().timeout + Duration::from_secs(1);
        self.run_until(limit, |lab| pings.is_over(&lab.network));
        PingResults::new(pings.finish(&mut self.network), self)
    }

    #[track_caller]
    fn pair(&self, from: &str, to: &str) -> (HostIndex, HostIndex) {
        let pair = (self.host_id(from), self.host_id(to));
        if pair.0 == pair.1 {
            fail(&LabError::Host(HostError::ToItself));
        }
        pair
    }
}
