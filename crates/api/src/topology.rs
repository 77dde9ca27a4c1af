//! How switches are connected: plain data, published by whoever finds it out.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bellrock_openflow::Port;

use crate::Dpid;

/// A port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchPort {
    /// The switch.
    pub dpid: Dpid,
    /// Its port.
    pub port: Port,
}

impl SwitchPort {
    /// This port of that switch.
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

/// One direction of a link between two switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The port that sends.
    pub from: SwitchPort,
    /// The port that receives.
    pub to: SwitchPort,
    /// What it carries, in kbit/s, as the sending port says it; `None` where the port does not say it.
    pub rate_kbps: Option<u64>,
    /// When it came up, on the controller's clock.
    pub since: Duration,
}

/// The switches that are up and the links between them.
///
/// A link has two directions, and each is here on its own: where only one is, packets pass one way.
/// Paths use links that have both ([`Topology::both_ways`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// The switches that are up, and each one's ports that are up, in order.
    pub switches: BTreeMap<Dpid, Vec<Port>>,
    /// The directions of links that are up, by the port that sends.
    pub links: BTreeMap<SwitchPort, Link>,
    /// Whether every port was asked at least once, so that a port without a link can be taken for one of a
    /// host. Before that nothing may be flooded: what looks like a tree may have cycles.
    pub settled: bool,
}

impl Topology {
    /// The link that a port sends into, if that leads to another switch.
    #[must_use]
    pub fn link(&self, from: SwitchPort) -> Option<&Link> {
        self.links.get(&from)
    }

    /// The links that are up in both directions. Each direction is one of them.
    pub fn both_ways(&self) -> impl Iterator<Item = &Link> {
        self.links
            .values()
            .filter(|link| self.links.get(&link.to).is_some_and(|back| back.to == link.from))
    }

    /// Whether a port is one that hosts are at: it is up, and no link to another switch begins or ends there.
    #[must_use]
    pub fn is_edge(&self, at: SwitchPort) -> bool {
        self.switches.get(&at.dpid).is_some_and(|ports| ports.contains(&at.port))
            && !self.links.contains_key(&at)
            && !self.links.values().any(|link| link.to == at)
    }
}
