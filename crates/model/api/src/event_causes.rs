//! Why things happen in the network: the causes and signs that events name.

use std::fmt;
use std::time::Duration;

use crate::{Dpid, HostId, Port, Refusal, SwitchPort};

/// A sign of a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StormSign {
    /// Flooded frames come in again by other ports of the switch.
    Returns {
        /// Port where the frame came in before.
        from: Port,
    },
    /// The same broadcast or multicast frame comes in by one port repeatedly.
    Copies,
    /// Hosts move back and forth between ports of the switch.
    Moves {
        /// Port of the host before the move.
        from: Port,
    },
}

/// Why a link is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkDown {
    /// One of its ports is down or gone.
    Port,
    /// One of its switches is gone.
    Switch,
    /// Nothing was heard through it for three rounds.
    Silent,
    /// Announcements of its sending port arrive elsewhere.
    Moved,
    /// An operator says that it is a relay.
    Refused,
    /// Three and more ports hear each other: a segment of ordinary switches, not a link.
    Segment,
}

/// Why a host is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostGone {
    /// Its port is down, or gone with its switch.
    Port,
    /// A link to a switch was found at its port.
    Link,
    /// It was not seen for too long, and does not answer probes.
    Aged,
    /// Removed to make space for other hosts: the maximum number is reached.
    Evicted,
}

/// The evidence for a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Suspicion {
    /// A host was seen at one of the ports, when a link would have been found there long before.
    HostTraffic {
        /// The port.
        at: SwitchPort,
    },
    /// A host was at one of the ports until that port went down and up again, while the other
    /// switch was connected.
    HostPort {
        /// The port.
        at: SwitchPort,
    },
    /// Announcements take longer than before, or than over other links.
    Latency {
        /// Measured latency.
        measured: Duration,
        /// Expected latency.
        expected: Duration,
    },
}

impl LinkDown {
    /// Whether an operator should look at it. A switch that is gone is an alarm itself, and an
    /// operator moves cables and judges relays.
    #[must_use]
    pub fn is_alarming(self) -> bool {
        matches!(self, LinkDown::Port | LinkDown::Silent)
    }
}

impl fmt::Display for LinkDown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LinkDown::Port => "a port is down",
            LinkDown::Segment => "ordinary switches join it with further ports",
            LinkDown::Switch => "a switch is gone",
            LinkDown::Silent => "nothing was heard for three rounds",
            LinkDown::Moved => "its sending port is heard elsewhere",
            LinkDown::Refused => "an operator says that it is a relay",
        })
    }
}

impl fmt::Display for HostGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HostGone::Port => "the port is down",
            HostGone::Link => "a switch is at its port",
            HostGone::Aged => "it was not seen for long, and does not answer",
            HostGone::Evicted => "the maximum number of hosts is reached",
        })
    }
}

/// A short time for readers: two digits and a unit.
struct Short(Duration);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.0.as_nanos() as f64 / 1e3;
        let (number, unit) = match us {
            ..1e3 => (us, "µs"),
            ..1e6 => (us / 1e3, "ms"),
            _ => (us / 1e6, "s"),
        };
        let digits = if number < 9.95 { 1 } else { 0 };
        write!(f, "{number:.digits$} {unit}")
    }
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Suspicion::HostTraffic { at } => write!(f, "a host was seen at {at}"),
            Suspicion::HostPort { at } => {
                write!(f, "a host was at {at} until the port went down and up again")
            }
            Suspicion::Latency { measured: is, expected: Duration::ZERO } => {
                write!(f, "its latency is {}, usually too low to measure", Short(*is))
            }
            Suspicion::Latency { measured: is, expected: usual } => {
                write!(f, "its latency is {}, usually {}", Short(*is), Short(*usual))
            }
        }
    }
}

/// Writes ports as a list.
pub(crate) fn write_ports(f: &mut fmt::Formatter<'_>, ports: &[SwitchPort]) -> fmt::Result {
    for (nth, port) in ports.iter().enumerate() {
        let before = match nth {
            0 => "",
            _ if nth + 1 == ports.len() => " and ",
            _ => ", ",
        };
        write!(f, "{before}{port}")?;
    }
    Ok(())
}

/// Writes what a segment is.
pub(crate) fn write_segment(
    f: &mut fmt::Formatter<'_>,
    ports: &[SwitchPort],
    is_loop: bool,
) -> fmt::Result {
    f.write_str("ordinary switches join ")?;
    write_ports(f, ports)?;
    match is_loop {
        true => f.write_str(
            ", which the network connects too: a loop. Each flooded frame takes one way only; apps that do not \
             use paths, such as learning, need one connection less",
        ),
        false => f.write_str(": a segment, which carries packets between these switches"),
    }
}

/// Writes what an outside loop is, and what to do.
pub(crate) fn write_loop(
    f: &mut fmt::Formatter<'_>,
    ports: &[SwitchPort],
    kept_out: Option<SwitchPort>,
) -> fmt::Result {
    f.write_str("flooded frames come back at ")?;
    write_ports(f, ports)?;
    match kept_out {
        Some(port) => write!(
            f,
            ": an ordinary switch or a cable outside joins these ports. {port} is kept out of floods until that \
             ends. Connect one of the ports only"
        ),
        None => f.write_str(
            ": what is behind it repeats them; they are not flooded again. Look for a loop or a repeater there",
        ),
    }
}

/// Writes what a storm is, and what to do.
pub(crate) fn write_storm(
    f: &mut fmt::Formatter<'_>,
    app: &str,
    at: SwitchPort,
    sign: StormSign,
) -> fmt::Result {
    write!(f, "storm at switch {}: ", at.dpid)?;
    match sign {
        StormSign::Returns { from } => write!(
            f,
            "flooded frames come back (by port {from}, then by port {}): the network has a loop",
            at.port
        )?,
        StormSign::Copies => write!(
            f,
            "port {} brings the same broadcast again and again: there is a loop behind it",
            at.port
        )?,
        StormSign::Moves { from } => write!(
            f,
            "hosts move back and forth (between ports {from} and {}): the network has a loop, or two hosts \
             have the same address",
            at.port
        )?,
    }
    write!(
        f,
        ", and {app} works only without loops. It floods less until this ends. Use the app routing \
         (bellrock run --app routing), which works on any topology, or take a link out of the loop"
    )
}

/// Maximum number of ports that an event about refused announcements names.
const MAX_NAMED: usize = 8;

/// Writes which ports are not announced, and what that means.
pub(crate) fn write_refused_announcements(
    f: &mut fmt::Formatter<'_>,
    dpid: Dpid,
    ports: &[Port],
    why: Refusal,
) -> fmt::Result {
    let what = if ports.len() == 1 { "port" } else { "ports" };
    write!(f, "switch {dpid} refuses announcements at {what} ")?;
    for (nth, port) in ports.iter().take(MAX_NAMED).enumerate() {
        write!(f, "{}{port}", if nth == 0 { "" } else { ", " })?;
    }
    if ports.len() > MAX_NAMED {
        write!(f, " and {} more", ports.len() - MAX_NAMED)?;
    }
    write!(f, ", so no link is found there: {why}. They are sent again from time to time")
}

/// Writes where the host is, and what to do.
pub(crate) fn write_host_at_link(
    f: &mut fmt::Formatter<'_>,
    host: HostId,
    ports: &[SwitchPort],
) -> fmt::Result {
    write!(f, "host {host} is at the link between ")?;
    write_ports(f, ports)?;
    f.write_str(
        ": an ordinary switch joins these ports and forwards LLDP, so its hosts are not found. Connect it by one port \
         only, or by a switch that does not forward LLDP (01:80:c2:00:00:0e)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let texts = [6_289_303, 1_001_004, 950, 45_000_000, 2_500_000_000, 0]
            .map(|ns| Short(Duration::from_nanos(ns)).to_string());
        assert_eq!(texts, ["6.3 ms", "1.0 ms", "0.9 µs", "45 ms", "2.5 s", "0.0 µs"]);
    }
}
