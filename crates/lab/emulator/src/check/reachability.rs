//! Reachability between hosts, by pings.

use std::fmt;
use std::time::Duration;

use crate::host::{PingId, PingSettings};
use crate::network::EmulatedNetwork;
use crate::topology::{HostIndex, Node, TopologySpec};

/// Pings between hosts that are under way. The owner of the network advances it, asks
/// [`Reachability::is_over`], and then calls [`Reachability::finish`].
pub struct Reachability {
    pings: Vec<(HostIndex, HostIndex, PingId)>,
    /// Pairs whose ping could not start.
    refused: Vec<(HostIndex, HostIndex)>,
    hosts: Vec<HostIndex>,
}

impl Reachability {
    /// Starts a ping from each of these hosts to each other one; advance the network then.
    pub fn begin(
        network: &mut EmulatedNetwork,
        hosts: &[HostIndex],
        settings: PingSettings,
    ) -> Self {
        let pairs = hosts.iter().flat_map(|from| hosts.iter().map(|to| (*from, *to)));
        let pairs: Vec<_> = pairs.filter(|(from, to)| from != to).collect();
        Self::begin_pairs(network, &pairs, settings)
    }

    /// Starts pings between all hosts.
    pub fn begin_all(network: &mut EmulatedNetwork, settings: PingSettings) -> Self {
        let hosts = network.topology().hosts().len();
        let hosts: Vec<HostIndex> = (0..hosts).map(HostIndex::of).collect();
        Self::begin(network, &hosts, settings)
    }

    /// Starts a ping from the first to the second host of each pair.
    pub fn begin_pairs(
        network: &mut EmulatedNetwork,
        pairs: &[(HostIndex, HostIndex)],
        settings: PingSettings,
    ) -> Self {
        let (mut pings, mut refused) = (Vec::with_capacity(pairs.len()), Vec::new());
        for (from, to) in pairs {
            match network.ping(*from, *to, settings) {
                Ok(id) => pings.push((*from, *to, id)),
                Err(_) => refused.push((*from, *to)),
            }
        }
        let mut hosts: Vec<HostIndex> = pairs.iter().flat_map(|(from, to)| [*from, *to]).collect();
        hosts.sort_unstable();
        hosts.dedup();
        Reachability { pings, refused, hosts }
    }

    /// Whether all pings were answered or given up.
    #[must_use]
    pub fn is_over(&self, network: &EmulatedNetwork) -> bool {
        self.pings.iter().all(|(from, _, id)| network.host(*from).is_ping_over(*id))
    }

    /// Ends all pings, also unanswered ones, and returns the result.
    #[must_use]
    pub fn finish(self, network: &mut EmulatedNetwork) -> Matrix {
        let mut matrix = Matrix { hosts: self.hosts, lost: self.refused, pings: 0, slowest: None };
        matrix.pings = self.pings.len() + matrix.lost.len();
        for (from, to, id) in self.pings {
            match network.end_ping(from, id) {
                Some(statistics) if statistics.complete() => {
                    matrix.slowest = matrix.slowest.max(Some(statistics.max));
                }
                _ => matrix.lost.push((from, to)),
            }
        }
        matrix.lost.sort_unstable();
        matrix
    }
}

/// The result of pings between hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// The hosts that took part, in order.
    pub hosts: Vec<HostIndex>,
    /// Number of pairs that were tried.
    pub pings: usize,
    /// Pairs with an unanswered ping (from, to), in order.
    pub lost: Vec<(HostIndex, HostIndex)>,
    /// The longest round trip.
    pub slowest: Option<Duration>,
}

impl Matrix {
    /// Whether every ping was answered.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty()
    }

    /// The matrix as text, like Mininet's `pingall`: one line for each host, with the hosts that it
    /// reached, and X for each host that it did not reach. With more than [`Matrix::MAX_LINES`]
    /// hosts, only hosts that missed some are listed.
    pub fn display<'m>(&'m self, topology: &'m TopologySpec) -> impl fmt::Display + 'm {
        Table { matrix: self, topology }
    }

    /// Maximum number of hosts for which every host has a line.
    pub const MAX_LINES: usize = 40;
}

struct Table<'m> {
    matrix: &'m Matrix,
    topology: &'m TopologySpec,
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Matrix { hosts, pings, lost, .. } = self.matrix;
        let name = |host: &HostIndex| self.topology.name(Node::Host(*host));
        for from in hosts {
            let missing = |to: &HostIndex| lost.binary_search(&(*from, *to)).is_ok();
            if hosts.len() > Matrix::MAX_LINES {
                let count = hosts.iter().filter(|to| missing(to)).count();
                if count > 0 {
                    writeln!(f, "{}: {count} of {} not reached", name(from), hosts.len() - 1)?;
                }
                continue;
            }
            write!(f, "{} ->", name(from))?;
            for to in hosts.iter().filter(|to| *to != from) {
                write!(f, " {}", if missing(to) { "X" } else { name(to) })?;
            }
            writeln!(f)?;
        }
        let percent = 100.0 * lost.len() as f64 / (*pings).max(1) as f64;
        write!(f, "{percent:.1}% lost ({} of {pings} answered)", pings - lost.len())
    }
}
