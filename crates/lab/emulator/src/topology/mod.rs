//! The parts of a network: switches, hosts, and the links between them.
//!
//! # What it is
//! A [`TopologySpec`] is plain data. It is always valid: names, datapath ids and addresses are
//! unique, every port has at most one link, every host at most one. It comes from a name
//! ([`NamedTopology`], `tree:2,3`), from a file ([`TopologySpec::parse`]), or from calls of
//! [`add_switch`](TopologySpec::add_switch), [`add_host`](TopologySpec::add_host) and
//! [`add_link`](TopologySpec::add_link). It prints as a topology file.
//!
//! # What it is not
//! It forwards nothing and does not change: the network handles links that go down and hosts that
//! move.
//!
//! A topology that Mininet has too uses Mininet's names, port numbers and addresses.

mod cycle;
mod error;
mod named;
mod text;
mod units;

use std::collections::HashMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use bellrock_openflow::MacAddr;

pub use error::{TopologyError, TopologyProblem};
pub use named::{NamedTopology, fat_tree, leaf_spine, linear, ring, single, tree, waxman};
pub use units::{LinkRate, LossRate};

/// Maximum number of switches: one machine has 65,536 ports for connections to one address.
pub const MAX_SWITCHES: usize = 65_536;
/// Maximum number of hosts. Their addresses come from 10.0.0.0/8, by their number.
pub const MAX_HOSTS: usize = 1 << 20;
/// Maximum number of links.
pub const MAX_LINKS: usize = 1 << 21;
/// Maximum length of a name, in bytes.
pub const MAX_NAME_BYTES: usize = 32;
/// Maximum length of a topology file: some 60 bytes for each of the maximum number of links.
pub const MAX_FILE_BYTES: usize = 128 << 20;
/// Maximum port number of a switch: below the reserved ports of OpenFlow 1.0.
pub const MAX_PORT: u32 = 0xfeff;

/// The number of a switch in its topology, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchIndex(pub u32);

/// The number of a host in its topology, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostIndex(pub u32);

/// The number of a link in its topology, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkIndex(pub u32);

macro_rules! index {
    ($($id:ident),*) => {$(
        impl $id {
            /// The number as an index into the topology's list.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            pub(crate) fn of(index: usize) -> Self {
                $id(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    )*};
}
index!(SwitchIndex, HostIndex, LinkIndex);

/// A switch or a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A switch.
    Switch(SwitchIndex),
    /// A host.
    Host(HostIndex),
}

/// A switch of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchSpec {
    /// Its name.
    pub name: String,
    /// Its datapath id.
    pub dpid: u64,
    /// Number of flow tables, 1 to 255, if it is set.
    pub tables: Option<u8>,
    /// Maximum number of flows in each table, if it is set.
    pub capacity: Option<u32>,
}

/// A host of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSpec {
    /// Its name.
    pub name: String,
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Its Internet address.
    pub ip: Ipv4Addr,
    /// Its network beside its addresses.
    pub network: HostNetwork,
}

/// The network that a host is in. By default, all hosts are in one network without routers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostNetwork {
    /// Length of the prefix of its subnet: it reaches other addresses by its gateway only. `None`:
    /// it asks for every address itself.
    pub prefix: Option<u8>,
    /// Router to other subnets. `None`: it reaches no other subnet.
    pub gateway: Option<Ipv4Addr>,
    /// VLAN of all its frames, which have a tag then. It ignores frames of others.
    pub vlan: Option<u16>,
}

impl HostNetwork {
    /// Longest prefix of an IPv4 address.
    pub const MAX_PREFIX: u8 = 32;

    /// Returns whether two addresses are in one subnet.
    #[must_use]
    pub fn are_together(&self, a: Ipv4Addr, b: Ipv4Addr) -> bool {
        let bits = u32::from(self.prefix.unwrap_or(0).min(Self::MAX_PREFIX));
        (a.to_bits() ^ b.to_bits()).checked_shr(u32::BITS - bits).unwrap_or(0) == 0
    }

    /// Returns the address to ask for, to reach another one. `None`: there is no way.
    #[must_use]
    pub fn next_hop(&self, own: Ipv4Addr, to: Ipv4Addr) -> Option<Ipv4Addr> {
        if self.are_together(own, to) { Some(to) } else { self.gateway }
    }
}

impl HostSpec {
    /// Makes the host of this number, counted from 1, with Mininet's addresses: 10.0.0.1 and
    /// 00:00:00:00:00:01 for the first.
    #[must_use]
    pub fn numbered(name: impl Into<String>, number: u32) -> HostSpec {
        HostSpec {
            name: name.into(),
            mac: MacAddr::from_u64(u64::from(number)),
            ip: Ipv4Addr::from_bits(0x0a00_0000 | (number & 0x00ff_ffff)),
            network: HostNetwork::default(),
        }
    }
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkEnd {
    /// The switch or host.
    pub node: Node,
    /// The number of the switch's port. A host has only port 0.
    pub port: u32,
}

/// How a link carries frames, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkShape {
    /// Propagation delay.
    pub delay: Duration,
    /// Share of frames that are lost; the network's seed decides which.
    pub loss: LossRate,
    /// Rate at which frames are sent; `None` is unlimited.
    pub bandwidth: Option<LinkRate>,
    /// Maximum number of frames in the queue, with the one that is being sent; more are dropped.
    /// Without a bandwidth no frame waits.
    pub queue: u32,
}

impl LinkShape {
    /// Default queue length in frames: 12 ms of full frames at 100 Mb/s.
    pub const DEFAULT_QUEUE_FRAMES: u32 = 100;
}

impl Default for LinkShape {
    fn default() -> Self {
        LinkShape {
            delay: Duration::ZERO,
            loss: LossRate::NONE,
            bandwidth: None,
            queue: Self::DEFAULT_QUEUE_FRAMES,
        }
    }
}

/// A link of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Its ends; at least one is a switch.
    pub ends: [LinkEnd; 2],
    /// How it carries frames.
    pub shape: LinkShape,
}

/// The parts of a network. See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct TopologySpec {
    switches: Vec<SwitchSpec>,
    hosts: Vec<HostSpec>,
    links: Vec<LinkSpec>,
    /// The lines of the links in the file; empty, or one for each link.
    link_lines: Vec<usize>,
    names: HashMap<String, (Node, Option<usize>)>,
    dpids: HashMap<u64, SwitchIndex>,
    macs: HashMap<MacAddr, HostIndex>,
    ips: HashMap<Ipv4Addr, HostIndex>,
    ends: HashMap<(Node, u32), LinkIndex>,
    /// The highest port with a link, for each switch.
    last_port: Vec<u32>,
}

/// Two topologies are equal if they have the same switches, hosts and links in the same order. The
/// lines of the file do not matter.
impl PartialEq for TopologySpec {
    fn eq(&self, other: &Self) -> bool {
        (&self.switches, &self.hosts, &self.links) == (&other.switches, &other.hosts, &other.links)
    }
}

impl Eq for TopologySpec {}

impl TopologySpec {
    /// An empty topology.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a switch.
    ///
    /// # Errors
    /// Its name or datapath id is used already, or there are too many switches.
    pub fn add_switch(&mut self, switch: SwitchSpec) -> Result<SwitchIndex, TopologyError> {
        self.put_switch(switch, None)
    }

    /// Adds a host.
    ///
    /// # Errors
    /// Its name or an address is used already, the address is no host's, or there are too many
    /// hosts.
    pub fn add_host(&mut self, host: HostSpec) -> Result<HostIndex, TopologyError> {
        self.put_host(host, None)
    }

    /// Adds a link between two nodes. `None` as a port means the port after the highest one with a
    /// link. A host has no choice of ports.
    ///
    /// # Errors
    /// A port or a host has a link already, no end is a switch, both ends are the same switch, or
    /// there are too many links.
    pub fn add_link(
        &mut self,
        a: (Node, Option<u32>),
        b: (Node, Option<u32>),
        shape: LinkShape,
    ) -> Result<LinkIndex, TopologyError> {
        self.put_link(a, b, shape, None)
    }

    /// Gives this bandwidth and queue length to all links without a bandwidth.
    pub fn limit_links(&mut self, bandwidth: LinkRate, queue: u32) {
        for shape in self.links.iter_mut().map(|link| &mut link.shape) {
            if shape.bandwidth.is_none() {
                (shape.bandwidth, shape.queue) = (Some(bandwidth), queue);
            }
        }
    }

    /// The switches, in order of their numbers.
    #[must_use]
    pub fn switches(&self) -> &[SwitchSpec] {
        &self.switches
    }

    /// The hosts, in order of their numbers.
    #[must_use]
    pub fn hosts(&self) -> &[HostSpec] {
        &self.hosts
    }

    /// The links, in order of their numbers.
    #[must_use]
    pub fn links(&self) -> &[LinkSpec] {
        &self.links
    }

    /// The switch or host of this name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<Node> {
        self.names.get(name).map(|(node, _)| *node)
    }

    /// The switch of this name.
    #[must_use]
    pub fn switch(&self, name: &str) -> Option<SwitchIndex> {
        self.node(name).and_then(|node| if let Node::Switch(id) = node { Some(id) } else { None })
    }

    /// The host of this name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<HostIndex> {
        self.node(name).and_then(|node| if let Node::Host(id) = node { Some(id) } else { None })
    }

    /// The switch with this datapath id.
    #[must_use]
    pub fn switch_by_dpid(&self, dpid: u64) -> Option<SwitchIndex> {
        self.dpids.get(&dpid).copied()
    }

    /// The host with this Internet address.
    #[must_use]
    pub fn host_by_ip(&self, ip: Ipv4Addr) -> Option<HostIndex> {
        self.ips.get(&ip).copied()
    }

    /// The host with this Ethernet address.
    #[must_use]
    pub fn host_by_mac(&self, mac: MacAddr) -> Option<HostIndex> {
        self.macs.get(&mac).copied()
    }

    /// The link at a switch's port, or at port 0 of a host.
    #[must_use]
    pub fn link_at(&self, node: Node, port: u32) -> Option<LinkIndex> {
        self.ends.get(&(node, port)).copied()
    }

    /// The links between two nodes, in order of their numbers.
    pub fn links_between(&self, a: Node, b: Node) -> impl Iterator<Item = LinkIndex> + '_ {
        let between = move |link: &LinkSpec| {
            let [x, y] = link.ends.map(|end| end.node);
            (x, y) == (a, b) || (y, x) == (a, b)
        };
        self.links
            .iter()
            .enumerate()
            .filter(move |(_, link)| between(link))
            .map(|(i, _)| LinkIndex::of(i))
    }

    /// The highest port of a switch with a link; 0 if it has no links.
    ///
    /// # Panics
    /// The switch belongs to another topology.
    #[must_use]
    pub fn last_port(&self, switch: SwitchIndex) -> u32 {
        self.last_port[switch.index()]
    }

    /// The name of a switch or host.
    ///
    /// # Panics
    /// The node belongs to another topology.
    #[must_use]
    pub fn name(&self, node: Node) -> &str {
        match node {
            Node::Switch(id) => &self.switches[id.index()].name,
            Node::Host(id) => &self.hosts[id.index()].name,
        }
    }

    /// An end of a link as in a topology file: `s1:3`, or a host's name.
    #[must_use]
    pub fn end_name(&self, end: LinkEnd) -> impl fmt::Display + '_ {
        EndName { topology: self, end }
    }

    fn put_switch(
        &mut self,
        switch: SwitchSpec,
        line: Option<usize>,
    ) -> Result<SwitchIndex, TopologyError> {
        if self.switches.len() == MAX_SWITCHES {
            return Err(TopologyProblem::TooManySwitches.at(line));
        }
        self.check_name(&switch.name).map_err(|problem| problem.at(line))?;
        if let Some(id) = self.dpids.get(&switch.dpid) {
            let other = self.switches[id.index()].name.clone();
            return Err(
                TopologyProblem::DuplicateDpid { dpid: switch.dpid, switch: other }.at(line)
            );
        }
        if switch.tables.is_some_and(|n| n == 0) {
            let want = "a switch has 1 to 255 tables";
            return Err(
                TopologyProblem::BadValue { key: "tables", value: "0".to_owned(), want }.at(line)
            );
        }
        let id = SwitchIndex::of(self.switches.len());
        self.names.insert(switch.name.clone(), (Node::Switch(id), line));
        self.dpids.insert(switch.dpid, id);
        self.last_port.push(0);
        self.switches.push(switch);
        Ok(id)
    }

    fn put_host(
        &mut self,
        host: HostSpec,
        line: Option<usize>,
    ) -> Result<HostIndex, TopologyError> {
        if self.hosts.len() == MAX_HOSTS {
            return Err(TopologyProblem::TooManyHosts.at(line));
        }
        self.check_name(&host.name).map_err(|problem| problem.at(line))?;
        let HostSpec { mac, ip, .. } = host;
        let bad =
            |key, value: String, want| Err(TopologyProblem::BadValue { key, value, want }.at(line));
        if !mac.is_station() {
            return bad("mac", mac.to_string(), "a host's address is neither zero nor a group's");
        }
        if ip.is_unspecified() || ip.is_broadcast() || ip.is_multicast() {
            return bad("ip", ip.to_string(), "a host's address is neither 0.0.0.0 nor a group's");
        }
        if let Some(id) = self.macs.get(&mac) {
            let host = self.hosts[id.index()].name.clone();
            return Err(TopologyProblem::DuplicateMac { mac, host }.at(line));
        }
        if let Some(id) = self.ips.get(&ip) {
            let host = self.hosts[id.index()].name.clone();
            return Err(TopologyProblem::DuplicateIp { ip, host }.at(line));
        }
        let id = HostIndex::of(self.hosts.len());
        self.names.insert(host.name.clone(), (Node::Host(id), line));
        self.macs.insert(mac, id);
        self.ips.insert(ip, id);
        self.hosts.push(host);
        Ok(id)
    }

    fn put_link(
        &mut self,
        a: (Node, Option<u32>),
        b: (Node, Option<u32>),
        shape: LinkShape,
        line: Option<usize>,
    ) -> Result<LinkIndex, TopologyError> {
        if self.links.len() == MAX_LINKS {
            return Err(TopologyProblem::TooManyLinks.at(line));
        }
        if a.0 == b.0 {
            return Err(TopologyProblem::SelfLink(self.name(a.0).to_owned()).at(line));
        }
        if let (Node::Host(_), Node::Host(_)) = (a.0, b.0) {
            let (a, b) = (self.name(a.0).to_owned(), self.name(b.0).to_owned());
            return Err(TopologyProblem::HostToHost(a, b).at(line));
        }
        let ends = [self.free_end(a), self.free_end(b)];
        let [a, b] = ends;
        let ends = [a.map_err(|problem| problem.at(line))?, b.map_err(|problem| problem.at(line))?];
        let id = LinkIndex::of(self.links.len());
        for end in ends {
            self.ends.insert((end.node, end.port), id);
            if let Node::Switch(switch) = end.node {
                let last = &mut self.last_port[switch.index()];
                *last = end.port.max(*last);
            }
        }
        self.links.push(LinkSpec { ends, shape });
        self.link_lines.extend(line);
        Ok(id)
    }

    /// The end of a new link at a port that must have no link.
    fn free_end(&self, (node, port): (Node, Option<u32>)) -> Result<LinkEnd, TopologyProblem> {
        let port = match (node, port) {
            (Node::Host(_), _) => 0,
            (Node::Switch(id), None) => self.last_port[id.index()] + 1,
            (Node::Switch(_), Some(port)) => port,
        };
        let name = || self.name(node).to_owned();
        if let Some(link) = self.link_at(node, port) {
            let first = self.line_of(link);
            return Err(match node {
                Node::Switch(_) => TopologyProblem::DuplicatePort { switch: name(), port, first },
                Node::Host(_) => TopologyProblem::DuplicateHostLink { host: name(), first },
            });
        }
        if matches!(node, Node::Switch(_)) && (port == 0 || port > MAX_PORT) {
            let value = format!("{}:{port}", name());
            let want = "ports are numbered from 1 to 65279";
            return Err(TopologyProblem::BadValue { key: "port", value, want });
        }
        Ok(LinkEnd { node, port })
    }

    fn check_name(&self, name: &str) -> Result<(), TopologyProblem> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        let begins = name.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
        if !begins || name.len() > MAX_NAME_BYTES || !name.bytes().all(allowed) {
            return Err(TopologyProblem::BadName(name.to_owned()));
        }
        match self.names.get(name) {
            Some((_, first)) => {
                Err(TopologyProblem::DuplicateName { name: name.to_owned(), first: *first })
            }
            None => Ok(()),
        }
    }

    /// The line of a link in the file.
    fn line_of(&self, link: LinkIndex) -> Option<usize> {
        self.link_lines.get(link.index()).copied()
    }
}

struct EndName<'t> {
    topology: &'t TopologySpec,
    end: LinkEnd,
}

impl fmt::Display for EndName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.topology.name(self.end.node))?;
        match self.end.node {
            Node::Switch(_) => write!(f, ":{}", self.end.port),
            Node::Host(_) => Ok(()),
        }
    }
}
