//! The load to put on a controller: how many switches, which packets, which mode, how long.
//!
//! Plain data with bounds. [`Load::check`] reports what is wrong before anything starts. Nothing
//! here does I/O.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use bellrock_openflow::Version;

use crate::error::LoadError;
use crate::tls::LoadTls;

/// Maximum number of switches of one process. For more, start several processes with different
/// [`Load::first_dpid`].
pub const MAX_SWITCHES: u32 = 10_000;

/// Maximum number of hosts of one switch: the 10^7 unique MACs of Primetime (§V-B). They fit in the
/// 24 bits of a MAC that number the host.
pub const MAX_MACS: u32 = 10_000_000;

/// Maximum number of threads.
pub const MAX_THREADS: usize = 256;

/// Maximum number of unanswered packet_ins of one switch.
pub const MAX_IN_FLIGHT: u32 = 16_384;

/// Maximum number of unanswered packet_ins of all switches; each takes a byte of memory.
pub const MAX_IN_FLIGHT_TOTAL: u32 = 1 << 21;

/// Highest datapath id: a MAC has 16 bits for its switch.
pub const MAX_DPID: u32 = 0xffff;

/// How the generator behaves towards the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadMode {
    /// As many packet_ins as the socket takes (cbench's throughput mode), at most
    /// [`MAX_IN_FLIGHT`] of them unanswered.
    Throughput,
    /// One packet_in in flight per switch (cbench's latency mode, ping-pong of McNettle Fig. 14).
    Latency,
    /// A fixed number of packet_ins in flight per switch (cbench's hybrid; Hot-ICE §4). The result
    /// is checked against Little's law.
    Window(u32),
    /// A fixed number of packet_ins per second and switch, whatever the answers: an open loop.
    /// Latency counts from when a packet_in was due, so that a controller that stalls cannot hide
    /// it.
    Rate(f64),
    /// Each switch connects, waits until it is up, resets the connection, and connects again.
    Connect,
    /// All switches connect at once. A run lasts until the last one is up.
    Storm,
}

impl LoadMode {
    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LoadMode::Throughput => "throughput",
            LoadMode::Latency => "latency",
            LoadMode::Window(_) => "window",
            LoadMode::Rate(_) => "rate",
            LoadMode::Connect => "connect",
            LoadMode::Storm => "storm",
        }
    }

    /// Returns whether the mode counts connections instead of packet_ins.
    #[must_use]
    pub const fn is_connecting(self) -> bool {
        matches!(self, LoadMode::Connect | LoadMode::Storm)
    }
}

/// The order in which the hosts of a switch send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOrder {
    /// One after the other, in a circle (cbench).
    InOrder,
    /// All equally likely.
    Random,
    /// The k-th about 1/k times as often as the first (Zipf with exponent 1).
    Zipf,
}

/// Destinations of the packets. The controller learns all of them before the test, from one ARP
/// each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destinations {
    /// One host behind a port of its own (cbench). Its table entry never leaves the cache.
    One,
    /// All sending hosts, equally likely. Experiments with many MACs have to use this (Primetime
    /// Fig. 2b/e).
    Uniform,
    /// All sending hosts, the k-th about 1/k times as often as the first.
    Zipf,
}

/// The CPU cores of the generator's threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GeneratorCores {
    /// The scheduler decides.
    #[default]
    Any,
    /// One core per thread, in this order; starts again if there are more threads than cores.
    List(Vec<usize>),
}

/// The load. [`Load::default`] is cbench's: 16 switches of 1,000 MACs, 1.0, throughput.
#[derive(Clone, Debug)]
pub struct Load {
    /// Address of the controller.
    pub target: SocketAddr,
    /// What the switches show and accept, if they connect by TLS.
    pub tls: Option<LoadTls>,
    /// The version that the switches speak.
    pub version: Version,
    /// Number of switches, 1 to [`MAX_SWITCHES`].
    pub switches: u32,
    /// Datapath id of the first switch; the others follow. The last is at most [`MAX_DPID`].
    pub first_dpid: u32,
    /// Number of threads, 1 to [`MAX_THREADS`]. No more start than there are switches.
    pub threads: usize,
    /// Cores of the threads.
    pub cores: GeneratorCores,
    /// The mode.
    pub mode: LoadMode,
    /// Whether the switches buffer their packets, so that an answer needs no packet_out.
    pub buffered: bool,
    /// Whether the switches send echo requests in place of packet_ins, as idle switches do, in the
    /// modes that count packet_ins. The answer is an echo reply with the same xid.
    pub echoes: bool,
    /// Whether the switches answer only what the switches of cbench (2010) answer: features,
    /// description, barriers and echoes. They announce their destinations directly behind their
    /// features, before the controller can have set them up.
    pub as_cbench: bool,
    /// Number of hosts per switch, 1 to [`MAX_MACS`]; at least 2 unless `destinations` is `One`.
    pub macs: u32,
    /// The order in which hosts send.
    pub order: HostOrder,
    /// The destinations of the packets.
    pub destinations: Destinations,
    /// Seed of the random choices. The same seed makes the same packets.
    pub seed: u64,
    /// Switches that connect per second before the test; 0 for no limit.
    pub ramp_per_second: u32,
    /// Time of load before each measurement.
    pub warm_up: Duration,
    /// Time that each run measures.
    pub duration: Duration,
    /// Number of runs. Results are the median over them.
    pub runs: u32,
    /// Time after which the answer counts as missing, for a packet_in that was overtaken or a
    /// switch that gets no answer.
    pub answer_timeout: Duration,
    /// Maximum time of a connection until the switch is up.
    pub connect_timeout: Duration,
    /// Maximum time for the controller to learn the destinations of all switches.
    pub learn_timeout: Duration,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            target: SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 6653)),
            tls: None,
            version: Version::V1_0,
            switches: 16,
            first_dpid: 1,
            threads: 1,
            cores: GeneratorCores::Any,
            mode: LoadMode::Throughput,
            buffered: true,
            echoes: false,
            as_cbench: false,
            macs: 1000,
            order: HostOrder::InOrder,
            destinations: Destinations::One,
            seed: 1,
            ramp_per_second: 0,
            warm_up: Duration::from_secs(1),
            duration: Duration::from_secs(5),
            runs: 3,
            answer_timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(10),
            learn_timeout: Duration::from_secs(60),
        }
    }
}

impl Load {
    /// Maximum number of unanswered packet_ins of one switch, from the mode and the bound on
    /// memory.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        let share = (MAX_IN_FLIGHT_TOTAL / self.switches.max(1)).clamp(1, MAX_IN_FLIGHT);
        match self.mode {
            LoadMode::Throughput | LoadMode::Rate(_) => share,
            LoadMode::Window(n) => n,
            LoadMode::Latency | LoadMode::Connect | LoadMode::Storm => 1,
        }
    }

    /// Number of destinations of all switches, which are learnt before the test.
    #[must_use]
    pub fn destinations_of_all(&self) -> u64 {
        let each = match self.destinations {
            Destinations::One => 1,
            Destinations::Uniform | Destinations::Zipf => self.macs,
        };
        u64::from(self.switches) * u64::from(each)
    }

    /// Checks the load.
    ///
    /// # Errors
    /// [`LoadError`], for the first error found.
    pub fn check(&self) -> Result<(), LoadError> {
        let range = |what, value: u64, least: u64, most: u64| {
            let fits = (least..=most).contains(&value);
            fits.then_some(()).ok_or(LoadError::Range { what, value, least, most })
        };
        range("switches", self.switches.into(), 1, MAX_SWITCHES.into())?;
        range("first dpid", self.first_dpid.into(), 1, MAX_DPID.into())?;
        let last_dpid = self.first_dpid + self.switches - 1;
        range("last dpid (first dpid + switches - 1)", last_dpid.into(), 1, MAX_DPID.into())?;
        range("threads", self.threads as u64, 1, MAX_THREADS as u64)?;
        range("runs", self.runs.into(), 1, 10_000)?;
        let least_macs = if self.destinations == Destinations::One { 1 } else { 2 };
        range("macs", self.macs.into(), least_macs, MAX_MACS.into())?;
        if let LoadMode::Window(n) = self.mode {
            let most = (MAX_IN_FLIGHT_TOTAL / self.switches).min(MAX_IN_FLIGHT);
            range("packet_ins in flight per switch", n.into(), 1, most.into())?;
        }
        if let LoadMode::Rate(rate) = self.mode
            && !(0.001..=10_000_000.0).contains(&rate)
        {
            return Err(LoadError::Rate(rate));
        }
        if self.duration.is_zero() {
            return Err(LoadError::NoTime("duration"));
        }
        if self.answer_timeout.is_zero() {
            return Err(LoadError::NoTime("answer timeout"));
        }
        if self.connect_timeout.is_zero() {
            return Err(LoadError::NoTime("connect timeout"));
        }
        if self.learn_timeout.is_zero() {
            return Err(LoadError::NoTime("learn timeout"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_out_of_range_is_an_error_with_the_range() {
        let wrong = |load: Load| load.check().unwrap_err().to_string();
        let default = Load::default;
        assert_eq!(default().check(), Ok(()));
        assert_eq!(
            wrong(Load { switches: 10_001, ..default() }),
            "switches cannot be 10001; give 1 to 10000"
        );
        assert_eq!(
            wrong(Load { first_dpid: 65_530, ..default() }),
            "last dpid (first dpid + switches - 1) cannot be 65545; give 1 to 65535"
        );
        let uniform = Load { macs: 1, destinations: Destinations::Uniform, ..default() };
        assert_eq!(wrong(uniform), "macs cannot be 1; give 2 to 10000000");
        assert!(wrong(Load { mode: LoadMode::Rate(0.0), ..default() }).contains("0.001"));
        assert!(wrong(Load { duration: Duration::ZERO, ..default() }).contains("duration"));
    }

    #[test]
    fn packets_in_flight_are_bounded_in_total() {
        for switches in [1, 16, 128, 5_000, 10_000] {
            let load = Load { switches, ..Load::default() };
            assert!(u64::from(load.in_flight()) * u64::from(switches) <= 1 << 21);
            assert!(load.in_flight() >= 200);
        }
    }
}
