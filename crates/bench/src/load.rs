//! What load is asked for: how many switches, which packets, in which mode, for how long.
//!
//! Plain data with its bounds. [`Load::check`] says what is wrong with one before anything is
//! started; nothing here does I/O.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use bellrock_openflow::Version;

use crate::error::LoadError;

/// Most switches of one process. A start of several processes with their own
/// [`Load::first_dpid`] makes more.
pub const MAX_SWITCHES: u32 = 10_000;

/// Most hosts of one switch: the 10^7 unique MACs of Primetime (§V-B), a MAC has 24 bits for them.
pub const MAX_MACS: u32 = 10_000_000;

/// Most threads.
pub const MAX_THREADS: usize = 256;

/// Most packet_ins of one switch that may be unanswered.
pub const MAX_IN_FLIGHT: u32 = 16_384;

/// Most packet_ins of all switches that may be unanswered; each takes a byte of memory.
pub const MAX_IN_FLIGHT_TOTAL: u32 = 1 << 21;

/// Highest datapath id: a MAC has 16 bits for its switch.
pub const MAX_DPID: u32 = 0xffff;

/// How the generator behaves towards the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// As many packet_ins as the socket takes (cbench's throughput mode), at most
    /// [`MAX_IN_FLIGHT`] of them unanswered.
    Throughput,
    /// One packet_in in flight per switch (cbench's latency mode, ping-pong of McNettle Fig. 14).
    Latency,
    /// So many packet_ins in flight per switch (cbench's hybrid; Hot-ICE §4). The result is
    /// checked against Little's law.
    Window(u32),
    /// So many packet_ins per second and switch, whatever the answers do: an open loop. Latency
    /// counts from when a packet_in was due, so that a controller that stalls cannot hide it.
    Rate(f64),
    /// Each switch connects, waits until it is known, resets the connection, and connects again.
    Connect,
    /// All switches connect at once, and it is measured until the last is known: one storm a run.
    Storm,
}

impl Mode {
    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Throughput => "throughput",
            Mode::Latency => "latency",
            Mode::Window(_) => "window",
            Mode::Rate(_) => "rate",
            Mode::Connect => "connect",
            Mode::Storm => "storm",
        }
    }

    /// Whether it is connections, not packet_ins, that are counted.
    #[must_use]
    pub const fn is_connecting(self) -> bool {
        matches!(self, Mode::Connect | Mode::Storm)
    }
}

/// In which order the hosts of a switch send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other, in a circle (cbench).
    InOrder,
    /// Each as likely as any other.
    Random,
    /// The k-th about 1/k times as often as the first (Zipf with exponent 1).
    Zipf,
}

/// Where the packets go. All destinations are learnt before the test, by one ARP each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destinations {
    /// All to one host behind a port of its own (cbench): its table entry never leaves the cache.
    One,
    /// To each of the hosts that also send, as likely as to any other: what experiments with many
    /// MACs have to use (Primetime Fig. 2b/e).
    Uniform,
    /// To each of the hosts that also send, to the k-th about 1/k times as often as to the first.
    Zipf,
}

/// The cores that the generator's threads stay on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cores {
    /// The scheduler decides.
    #[default]
    Any,
    /// The first thread on the first of these, and so on; around again if there are more threads.
    List(Vec<usize>),
}

/// The load. [`Load::default`] is cbench's: 16 switches of 1,000 MACs, 1.0, throughput.
#[derive(Clone, Debug)]
pub struct Load {
    /// The controller.
    pub target: SocketAddr,
    /// The version that the switches speak.
    pub version: Version,
    /// Switches, 1 to [`MAX_SWITCHES`].
    pub switches: u32,
    /// Datapath id of the first switch; the others follow. At most [`MAX_DPID`] for the last.
    pub first_dpid: u32,
    /// Threads, 1 to [`MAX_THREADS`]; never more than switches are started.
    pub threads: usize,
    /// Where they run.
    pub cores: Cores,
    /// What they do.
    pub mode: Mode,
    /// Whether the switches buffer their packets, so that an answer needs no packet_out.
    pub buffered: bool,
    /// Whether the switches send echo requests in place of packet_ins, as idle switches do, in the
    /// modes that count those. An answer is an echo reply with the same xid.
    pub echoes: bool,
    /// Whether the switches answer what those of cbench (2010) answer, and no more: features, description, barriers and
    /// echoes. They announce their destinations right behind their features, before the controller can have set them up.
    pub as_cbench: bool,
    /// Hosts of each switch, 1 to [`MAX_MACS`]; at least 2 unless `destinations` is `One`.
    pub macs: u32,
    /// In which order they send.
    pub order: Order,
    /// Where they send to.
    pub destinations: Destinations,
    /// Where the random choices start. The same seed makes the same packets.
    pub seed: u64,
    /// Switches that connect per second while they connect before the test; 0 for as fast as they
    /// can.
    pub ramp_per_second: u32,
    /// Time before each run's measurement in which the load is on already.
    pub warm_up: Duration,
    /// Time that each run measures.
    pub duration: Duration,
    /// Runs. Results are the median over them.
    pub runs: u32,
    /// Time after which a packet_in that was overtaken, or a switch that gets no answer, counts as
    /// having a missing answer.
    pub answer_timeout: Duration,
    /// Time that a connection may take until the switch is known.
    pub connect_timeout: Duration,
    /// Time that a controller may take to learn the destinations of all switches.
    pub learn_timeout: Duration,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            target: SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 6653)),
            version: Version::V1_0,
            switches: 16,
            first_dpid: 1,
            threads: 1,
            cores: Cores::Any,
            mode: Mode::Throughput,
            buffered: true,
            echoes: false,
            as_cbench: false,
            macs: 1000,
            order: Order::InOrder,
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
    /// Most unanswered packet_ins of one switch: what the mode says, within the bounds of memory.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        let share = (MAX_IN_FLIGHT_TOTAL / self.switches.max(1)).clamp(1, MAX_IN_FLIGHT);
        match self.mode {
            Mode::Throughput | Mode::Rate(_) => share,
            Mode::Window(n) => n,
            Mode::Latency | Mode::Connect | Mode::Storm => 1,
        }
    }

    /// Destinations of all switches, which are learnt before the test.
    #[must_use]
    pub fn destinations_of_all(&self) -> u64 {
        let each = match self.destinations {
            Destinations::One => 1,
            Destinations::Uniform | Destinations::Zipf => self.macs,
        };
        u64::from(self.switches) * u64::from(each)
    }

    /// Says what is wrong with it, and what would be right.
    ///
    /// # Errors
    /// [`LoadError`], the first thing that is wrong.
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
        if let Mode::Window(n) = self.mode {
            let most = (MAX_IN_FLIGHT_TOTAL / self.switches).min(MAX_IN_FLIGHT);
            range("packet_ins in flight per switch", n.into(), 1, most.into())?;
        }
        if let Mode::Rate(rate) = self.mode
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
    fn what_is_out_of_range_is_named_with_the_range() {
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
        assert!(wrong(Load { mode: Mode::Rate(0.0), ..default() }).contains("0.001"));
        assert!(wrong(Load { duration: Duration::ZERO, ..default() }).contains("duration"));
    }

    #[test]
    fn what_is_in_flight_is_bounded_in_all() {
        for switches in [1, 16, 128, 5_000, 10_000] {
            let load = Load { switches, ..Load::default() };
            assert!(u64::from(load.in_flight()) * u64::from(switches) <= 1 << 21);
            assert!(load.in_flight() >= 200);
        }
    }
}
