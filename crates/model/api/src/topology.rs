//! Switches and links: plain data, published by discovery.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bellrock_openflow::Port;

use crate::Dpid;

/// A port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchPort {
    /// The switch.
    pub dpid: Dpid,
    /// The port.
    pub port: Port,
}

impl SwitchPort {
    /// Port `port` of the switch `dpid`.
    #[must_use]
    pub fn new(dpid: Dpid, port: Port) -> Self {
        SwitchPort { dpid, port }
    }
}

impl fmt::Display for SwitchPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.dpid, self.port)
    }
}

/// A text that is not a port of a switch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a port of a switch; give SWITCH:PORT, such as a1:4 for port 4 of the switch whose datapath id is a1 in hexadecimal"
)]
pub struct ParseSwitchPortError(String);

/// Parses `SWITCH:PORT`: the switch in hexadecimal, the port in decimal or `LOCAL`.
impl FromStr for SwitchPort {
    type Err = ParseSwitchPortError;

    fn from_str(text: &str) -> Result<Self, ParseSwitchPortError> {
        let parsed = text.split_once(':').and_then(|(switch, port)| {
            let port = match port {
                "LOCAL" => Port::LOCAL,
                number => Port(Some(number).filter(|it| !it.starts_with('+'))?.parse().ok()?),
            };
            Some(SwitchPort::new(switch.parse().ok()?, port))
        });
        parsed.ok_or_else(|| ParseSwitchPortError(text.to_owned()))
    }
}

/// One direction of a link between two switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The port that sends.
    pub from: SwitchPort,
    /// The port that receives.
    pub to: SwitchPort,
    /// Its rate in kbit/s, as the sending port reports it; `None` if it reports none.
    pub rate_kbps: Option<u64>,
    /// Time when it came up, on the controller's clock.
    pub since: Duration,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

/// The switches that are up, and the links between them.
///
/// The two directions of a link are separate entries: if only one is present, packets pass one way.
/// Paths use links with both directions ([`Topology::bidirectional_links`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// The switches that are up, each with its ports that are up, in order.
    pub switches: BTreeMap<Dpid, Vec<Port>>,
    /// The directions of links that are up, by the sending port.
    pub links: BTreeMap<SwitchPort, Link>,
    /// Ports of hosts. They are up, have no link, and were probed long enough to find one. A port
    /// that has just come up is not among them yet.
    pub edge: BTreeSet<SwitchPort>,
    /// Ports to switches. They are up and have a link, or had one when the neighbour was last
    /// heard. What is behind a port that is neither here nor in [`edge`](Self::edge) is unknown.
    pub trunk: BTreeSet<SwitchPort>,
    /// Ports that ordinary switches join, each with all ports of its *segment*, in order. They are
    /// in [`trunk`](Self::trunk). A segment carries packets between its switches, and hosts may be
    /// on it: their place is its first port.
    pub segments: BTreeMap<SwitchPort, Arc<[SwitchPort]>>,
    /// Whether every port of the first switches was probed at least once. Before that, flood
    /// nothing: an apparent tree may have cycles. Never goes back to false; from then on,
    /// [`edge`](Self::edge) leaves out ports that are still unknown.
    pub settled: bool,
}

impl Topology {
    /// A completely known topology of these switches and links: every port without a link is a host
    /// port.
    #[must_use]
    pub fn of(
        switches: impl IntoIterator<Item = (Dpid, Vec<Port>)>,
        links: impl IntoIterator<Item = Link>,
    ) -> Self {
        let switches: BTreeMap<_, _> = switches.into_iter().collect();
        let links: BTreeMap<_, _> = links.into_iter().map(|link| (link.from, link)).collect();
        let ports = switches.iter().flat_map(|(dpid, ports)| {
            ports.iter().map(|port| SwitchPort::new(*dpid, *port)).collect::<Vec<_>>()
        });
        let mut edge: BTreeSet<SwitchPort> = ports.collect();
        let trunk: BTreeSet<_> = links.values().flat_map(|link| [link.from, link.to]).collect();
        edge.retain(|at| !trunk.contains(at));
        Topology { switches, links, edge, trunk, segments: BTreeMap::new(), settled: true }
    }

    /// The link that this port sends to.
    #[must_use]
    pub fn link(&self, from: SwitchPort) -> Option<&Link> {
        self.links.get(&from)
    }

    /// The links that are up in both directions. Returns each direction.
    pub fn bidirectional_links(&self) -> impl Iterator<Item = &Link> {
        self.links
            .values()
            .filter(|link| self.links.get(&link.to).is_some_and(|back| back.to == link.from))
    }

    /// Whether a port is a host port (see [`Topology::edge`]).
    #[must_use]
    pub fn is_edge(&self, at: SwitchPort) -> bool {
        self.edge.contains(&at)
    }

    /// Whether a port leads to a switch (see [`Topology::trunk`]).
    #[must_use]
    pub fn is_trunk(&self, at: SwitchPort) -> bool {
        self.trunk.contains(&at)
    }

    /// Returns all ports of the segment that a port is on.
    #[must_use]
    pub fn segment(&self, at: SwitchPort) -> Option<&Arc<[SwitchPort]>> {
        self.segments.get(&at)
    }

    /// Whether hosts can have this place: a host port, or the first port of a segment.
    #[must_use]
    pub fn is_host_place(&self, at: SwitchPort) -> bool {
        self.is_edge(at) || self.segment(at).is_some_and(|ports| ports.first() == Some(&at))
    }

    /// The host ports of a switch, in order.
    pub fn edge_of(&self, dpid: Dpid) -> impl Iterator<Item = Port> {
        let all = SwitchPort::new(dpid, Port(0))..=SwitchPort::new(dpid, Port(u32::MAX));
        self.edge.range(all).map(|at| at.port)
    }

    /// Whether a port is up.
    #[must_use]
    pub fn is_up(&self, at: SwitchPort) -> bool {
        self.switches.get(&at.dpid).is_some_and(|ports| ports.binary_search(&at.port).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_a_switch_is_read_as_it_is_printed() {
        let at = SwitchPort::new(Dpid(0xa1), Port(4));
        assert_eq!((at.to_string().parse(), "a1:4".parse()), (Ok(at), Ok(at)));
        let local = SwitchPort::new(Dpid(0xa1), Port::LOCAL);
        assert_eq!((local.to_string().parse(), "a1:LOCAL".parse()), (Ok(local), Ok(local)));
        for text in ["", "a1", "a1:", ":4", "a1:x", "a1:4:5", "a1:+4", "g:4"] {
            let error = text.parse::<SwitchPort>().unwrap_err().to_string();
            assert!(error.contains("give SWITCH:PORT"), "{error}");
        }
    }

    #[test]
    fn ports_without_links_are_for_hosts_and_a_link_needs_both_directions_to_be_used() {
        let at = |dpid, port| SwitchPort::new(Dpid(dpid), Port(port));
        let link = |from, to| Link { from, to, rate_kbps: None, since: Duration::ZERO };
        let ports = || (1..=3).map(Port).collect();
        let topology = Topology::of(
            [(Dpid(1), ports()), (Dpid(2), ports())],
            [link(at(1, 3), at(2, 3)), link(at(2, 3), at(1, 3)), link(at(1, 2), at(2, 2))],
        );
        assert_eq!(topology.edge.iter().copied().collect::<Vec<_>>(), [at(1, 1), at(2, 1)]);
        assert_eq!(topology.edge_of(Dpid(2)).collect::<Vec<_>>(), [Port(1)]);
        assert!(topology.is_trunk(at(2, 2)) && !topology.is_trunk(at(1, 1)));
        assert!(topology.is_edge(at(1, 1)) && !topology.is_edge(at(2, 2)));
        assert!(topology.is_up(at(2, 2)) && !topology.is_up(at(2, 4)) && !topology.is_up(at(3, 1)));
        assert_eq!(topology.bidirectional_links().count(), 2);
        assert_eq!(topology.link(at(1, 2)).map(|link| link.to), Some(at(2, 2)));
    }
}
