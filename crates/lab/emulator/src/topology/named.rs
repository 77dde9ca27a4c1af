//! Named topologies.
//!
//! A topology that Mininet has too numbers switches, hosts, ports and addresses as Mininet does.

use std::fmt;
use std::str::FromStr;

use super::{
    HostIndex, HostSpec, LinkShape, MAX_HOSTS, MAX_SWITCHES, Node, SwitchIndex, SwitchSpec,
    TopologyError, TopologyProblem, TopologySpec,
};

/// A named topology, as on the command line: `tree:2,3`.
///
/// All take `loop-free` as the last argument: only the links of a spanning tree remain, for apps
/// that cannot handle cycles. `fat-tree:16,loop-free` still has 320 switches and 1,024 hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedTopology {
    kind: TopologyKind,
    loop_free: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TopologyKind {
    Single { hosts: u32 },
    Linear { switches: u32, hosts: u32 },
    Ring { switches: u32, hosts: u32 },
    Tree { depth: u32, fanout: u32 },
    FatTree { k: u32 },
    LeafSpine { leaves: u32, spines: u32, hosts: u32 },
    Waxman { switches: u32, seed: u64 },
}

const fn named(kind: TopologyKind) -> NamedTopology {
    NamedTopology { kind, loop_free: false }
}

/// One switch with hosts at its ports 1, 2, and so on.
#[must_use]
pub const fn single(hosts: u32) -> NamedTopology {
    named(TopologyKind::Single { hosts })
}

/// A line of switches with `hosts` hosts each. Their names are `h1` to `hn` for one host each,
/// otherwise `h1s1`, `h2s1` and so on, as in Mininet.
#[must_use]
pub const fn linear(switches: u32, hosts: u32) -> NamedTopology {
    named(TopologyKind::Linear { switches, hosts })
}

/// [`linear`], with a link from the last switch to the first.
#[must_use]
pub const fn ring(switches: u32, hosts: u32) -> NamedTopology {
    named(TopologyKind::Ring { switches, hosts })
}

/// A tree of switches of this depth with `fanout` children each; the children of the lowest
/// switches are hosts.
#[must_use]
pub const fn tree(depth: u32, fanout: u32) -> NamedTopology {
    named(TopologyKind::Tree { depth, fanout })
}

/// The fat-tree of `k`-port switches (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008): `k` pods of
/// `k/2` aggregation and `k/2` edge switches, `(k/2)²` core switches, `k³/4` hosts.
///
/// Core switches come first, then each pod's aggregation and edge switches. Port p of a core switch
/// leads to pod p. An aggregation switch has edge switches at the lower half of its ports and cores
/// at the upper half. An edge switch has hosts at the lower half.
#[must_use]
pub const fn fat_tree(k: u32) -> NamedTopology {
    named(TopologyKind::FatTree { k })
}

/// Leaf switches with `hosts` hosts each at their first ports; the next ports of each leaf lead to
/// all spines. Leaves come first.
#[must_use]
pub const fn leaf_spine(leaves: u32, spines: u32, hosts: u32) -> NamedTopology {
    named(TopologyKind::LeafSpine { leaves, spines, hosts })
}

/// A random network (Waxman, JSAC 1988). Switches with a host each lie in a unit square. Two are
/// linked with probability `0.2 · exp(-d / (0.15 · √2))`, where d is their distance. Unconnected
/// parts are then joined by the shortest links between them.
#[must_use]
pub const fn waxman(switches: u32, seed: u64) -> NamedTopology {
    named(TopologyKind::Waxman { switches, seed })
}

impl NamedTopology {
    /// The same topology with only the links of a spanning tree.
    #[must_use]
    pub const fn loop_free(self) -> NamedTopology {
        NamedTopology { loop_free: true, ..self }
    }

    /// Builds the topology.
    ///
    /// # Errors
    /// An argument is out of range, or there would be too many switches or hosts.
    pub fn build(self) -> Result<TopologySpec, TopologyError> {
        let builder = TopologyBuilder::default();
        let topology = match self.kind {
            TopologyKind::Single { hosts } => {
                builder.single(check(hosts, "single", "1 host or more")?)
            }
            TopologyKind::Linear { switches, hosts } => {
                builder.linear(check(switches, "linear", "1 switch or more")?, hosts, false)
            }
            TopologyKind::Ring { switches, hosts } => {
                if switches < 3 {
                    return Err(bad("ring", "3 switches or more"));
                }
                builder.linear(switches, hosts, true)
            }
            TopologyKind::Tree { depth, fanout } => builder.tree(depth, fanout),
            TopologyKind::FatTree { k } => builder.fat_tree(k),
            TopologyKind::LeafSpine { leaves, spines, hosts } => {
                builder.leaf_spine(leaves, spines, hosts)
            }
            TopologyKind::Waxman { switches, seed } => builder.waxman(switches, seed),
        }?;
        if self.loop_free { Ok(topology.spanning_tree()) } else { Ok(topology) }
    }
}

impl TryFrom<NamedTopology> for TopologySpec {
    type Error = TopologyError;

    fn try_from(named: NamedTopology) -> Result<Self, TopologyError> {
        named.build()
    }
}

impl fmt::Display for NamedTopology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TopologyKind::Single { hosts } => write!(f, "single:{hosts}"),
            TopologyKind::Linear { switches, hosts: 1 } => write!(f, "linear:{switches}"),
            TopologyKind::Linear { switches, hosts } => write!(f, "linear:{switches},{hosts}"),
            TopologyKind::Ring { switches, hosts: 1 } => write!(f, "ring:{switches}"),
            TopologyKind::Ring { switches, hosts } => write!(f, "ring:{switches},{hosts}"),
            TopologyKind::Tree { depth, fanout } => write!(f, "tree:{depth},{fanout}"),
            TopologyKind::FatTree { k } => write!(f, "fat-tree:{k}"),
            TopologyKind::LeafSpine { leaves, spines, hosts } => {
                write!(f, "leaf-spine:{leaves},{spines},{hosts}")
            }
            TopologyKind::Waxman { switches, seed } => write!(f, "waxman:{switches},{seed}"),
        }?;
        if self.loop_free { f.write_str(",loop-free") } else { Ok(()) }
    }
}

impl FromStr for NamedTopology {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Self, TopologyError> {
        let unknown = || TopologyError::from(TopologyProblem::UnknownTopology(text.to_owned()));
        let (name, arguments) = text.split_once(':').ok_or_else(unknown)?;
        let (arguments, loop_free) = match arguments.strip_suffix(",loop-free") {
            Some(arguments) => (arguments, true),
            None => (arguments, false),
        };
        let numbers: Option<Vec<u64>> = arguments.split(',').map(|n| n.parse().ok()).collect();
        let numbers = numbers.ok_or_else(unknown)?;
        let small = |n: u64| u32::try_from(n).map_err(|_| unknown());
        let topology = match (name, &*numbers) {
            ("single", &[hosts]) => single(small(hosts)?),
            ("linear", &[switches]) => linear(small(switches)?, 1),
            ("linear", &[switches, hosts]) => linear(small(switches)?, small(hosts)?),
            ("ring", &[switches]) => ring(small(switches)?, 1),
            ("ring", &[switches, hosts]) => ring(small(switches)?, small(hosts)?),
            ("tree", &[depth, fanout]) => tree(small(depth)?, small(fanout)?),
            ("fat-tree", &[k]) => fat_tree(small(k)?),
            ("leaf-spine", &[leaves, spines, hosts]) => {
                leaf_spine(small(leaves)?, small(spines)?, small(hosts)?)
            }
            ("waxman", &[switches, seed]) => waxman(small(switches)?, seed),
            _ => return Err(unknown()),
        };
        Ok(NamedTopology { loop_free, ..topology })
    }
}

fn bad(topology: &'static str, want: &'static str) -> TopologyError {
    TopologyProblem::BadArgument { topology, want }.into()
}

fn check(n: u32, topology: &'static str, want: &'static str) -> Result<u32, TopologyError> {
    if n == 0 { Err(bad(topology, want)) } else { Ok(n) }
}

type Built = Result<TopologySpec, TopologyError>;

/// Builds a topology, and numbers switches and hosts in the order in which they are added.
#[derive(Default)]
struct TopologyBuilder {
    topology: TopologySpec,
}

impl TopologyBuilder {
    /// Checks the size first: building would take minutes before it fails.
    fn sized(&self, switches: u64, hosts: u64) -> Result<(), TopologyError> {
        if switches > MAX_SWITCHES as u64 {
            return Err(TopologyProblem::TooManySwitches.into());
        }
        if hosts > MAX_HOSTS as u64 {
            return Err(TopologyProblem::TooManyHosts.into());
        }
        Ok(())
    }

    fn switch(&mut self) -> Result<SwitchIndex, TopologyError> {
        let number = self.topology.switches().len() as u64 + 1;
        let name = format!("s{number}");
        self.topology.add_switch(SwitchSpec { name, dpid: number, tables: None, capacity: None })
    }

    fn switches(&mut self, n: u32) -> Result<Vec<SwitchIndex>, TopologyError> {
        (0..n).map(|_| self.switch()).collect()
    }

    fn host(&mut self) -> Result<HostIndex, TopologyError> {
        let number = self.topology.hosts().len() + 1;
        self.host_called(format!("h{number}"))
    }

    fn host_called(&mut self, name: String) -> Result<HostIndex, TopologyError> {
        let number = HostIndex::of(self.topology.hosts().len() + 1).0;
        self.topology.add_host(HostSpec::numbered(name, number))
    }

    fn hosts_at(&mut self, switch: SwitchIndex, n: u32) -> Result<(), TopologyError> {
        for _ in 0..n {
            let host = self.host()?;
            self.link(Node::Switch(switch), Node::Host(host))?;
        }
        Ok(())
    }

    fn link(&mut self, a: Node, b: Node) -> Result<(), TopologyError> {
        self.topology.add_link((a, None), (b, None), LinkShape::default()).map(|_| ())
    }

    fn join(&mut self, a: SwitchIndex, b: SwitchIndex) -> Result<(), TopologyError> {
        self.link(Node::Switch(a), Node::Switch(b))
    }

    fn single(mut self, hosts: u32) -> Built {
        self.sized(1, hosts.into())?;
        let switch = self.switch()?;
        self.hosts_at(switch, hosts)?;
        Ok(self.topology)
    }

    /// A line or a ring of switches.
    fn linear(mut self, switches: u32, hosts: u32, ring: bool) -> Built {
        self.sized(switches.into(), u64::from(switches) * u64::from(hosts))?;
        let line = self.switches(switches)?;
        let mut own = Vec::new();
        // Addresses follow the natural order of the hosts' names, as in Mininet: h1s1, h1s2, h2s1.
        for host in 1..=hosts {
            for switch in 1..=switches {
                let name =
                    if hosts == 1 { format!("h{switch}") } else { format!("h{host}s{switch}") };
                own.push(self.host_called(name)?);
            }
        }
        for (i, switch) in line.iter().enumerate() {
            for host in own.iter().skip(i).step_by(line.len()) {
                self.link(Node::Switch(*switch), Node::Host(*host))?;
            }
            if i > 0 {
                self.join(*switch, line[i - 1])?;
            }
        }
        if ring {
            self.join(line[line.len() - 1], line[0])?;
        }
        Ok(self.topology)
    }

    fn tree(mut self, depth: u32, fanout: u32) -> Built {
        if depth == 0 || fanout == 0 {
            return Err(bad("tree", "a depth and a fanout of 1 or more"));
        }
        let (mut switches, mut hosts) = (0_u64, 1_u64);
        for _ in 0..depth {
            switches += hosts;
            hosts *= u64::from(fanout);
            self.sized(switches, hosts)?;
        }
        self.subtree(depth, fanout)?;
        Ok(self.topology)
    }

    /// Mininet numbers a switch before its children, and links a child after building everything
    /// below it. So ports 1 to `fanout` lead to the children, and the next port to the parent. (The
    /// depth of the recursion is at most [`MAX_TREE_DEPTH`].)
    fn subtree(&mut self, depth: u32, fanout: u32) -> Result<Node, TopologyError> {
        if depth > MAX_TREE_DEPTH {
            return Err(bad("tree", "a depth of 1000 or less; linear is a long line"));
        }
        if depth == 0 {
            return self.host().map(Node::Host);
        }
        let switch = Node::Switch(self.switch()?);
        for _ in 0..fanout {
            let child = self.subtree(depth - 1, fanout)?;
            self.link(switch, child)?;
        }
        Ok(switch)
    }

    fn fat_tree(mut self, k: u32) -> Built {
        if k < 2 || !k.is_multiple_of(2) {
            return Err(bad("fat-tree", "an even number of ports, 2 or more"));
        }
        let (k64, half) = (u64::from(k), k / 2);
        self.sized(k64.saturating_mul(k64).saturating_mul(5) / 4, k64.saturating_pow(3) / 4)?;
        let cores = self.switches(half * half)?;
        let mut aggregations = Vec::new();
        for _ in 0..k {
            let aggregation = self.switches(half)?;
            let edges = self.switches(half)?;
            for edge in &edges {
                self.hosts_at(*edge, half)?;
            }
            for upper in &aggregation {
                for edge in &edges {
                    self.join(*upper, *edge)?;
                }
            }
            aggregations.push(aggregation);
        }
        for pod in &aggregations {
            for (upper, cores) in pod.iter().zip(cores.chunks(half as usize)) {
                for core in cores {
                    self.join(*core, *upper)?;
                }
            }
        }
        Ok(self.topology)
    }

    fn leaf_spine(mut self, leaves: u32, spines: u32, hosts: u32) -> Built {
        if leaves == 0 || spines == 0 {
            return Err(bad("leaf-spine", "1 leaf and 1 spine or more"));
        }
        self.sized(u64::from(leaves) + u64::from(spines), u64::from(leaves) * u64::from(hosts))?;
        let lower = self.switches(leaves)?;
        let upper = self.switches(spines)?;
        for leaf in lower {
            self.hosts_at(leaf, hosts)?;
            for spine in &upper {
                self.join(leaf, *spine)?;
            }
        }
        Ok(self.topology)
    }

    fn waxman(mut self, n: u32, seed: u64) -> Built {
        if n == 0 || n > MAX_WAXMAN_SWITCHES {
            return Err(bad("waxman", "1 to 4096 switches"));
        }
        let mut random = fastrand::Rng::with_seed(seed);
        let places: Vec<(f64, f64)> = (0..n).map(|_| (random.f64(), random.f64())).collect();
        let switches = self.switches(n)?;
        for switch in &switches {
            self.hosts_at(*switch, 1)?;
        }
        let distance = |i: usize, j: usize| {
            let ((a, b), (c, d)) = (places[i], places[j]);
            (a - c).hypot(b - d)
        };
        let pairs = || (0..places.len()).flat_map(|i| (i + 1..places.len()).map(move |j| (i, j)));
        let mut parts = super::cycle::Parts::new(switches.len());
        for (i, j) in pairs() {
            let far = distance(i, j) / (WAXMAN_ALPHA * std::f64::consts::SQRT_2);
            if random.f64() < WAXMAN_BETA * (-far).exp() {
                parts.join(i, j);
                self.join(switches[i], switches[j])?;
            }
        }
        // Of the links that would join two parts, the shortest comes first.
        let mut gaps: Vec<_> = pairs().filter(|(i, j)| parts.are_apart(*i, *j)).collect();
        gaps.sort_by(|(i, j), (k, l)| distance(*i, *j).total_cmp(&distance(*k, *l)));
        for (i, j) in gaps {
            if parts.join(i, j) {
                self.join(switches[i], switches[j])?;
            }
        }
        Ok(self.topology)
    }
}

/// Maximum depth of a tree: it is built by recursion, as in Mininet.
const MAX_TREE_DEPTH: u32 = 1000;
/// Maximum number of switches of a Waxman network: it compares every pair.
const MAX_WAXMAN_SWITCHES: u32 = 4096;
/// Reach of links, as a share of the longest distance. Both values are the defaults of the
/// generator BRITE.
const WAXMAN_ALPHA: f64 = 0.15;
/// Density of links.
const WAXMAN_BETA: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::*;

    fn links(topology: &TopologySpec) -> Vec<String> {
        let name = |end| topology.end_name(end).to_string();
        topology.links().iter().map(|link| link.ends.map(name).join(" ")).collect()
    }

    fn counts(text: &str) -> (usize, usize, usize) {
        let topology = text.parse::<NamedTopology>().unwrap().build().unwrap();
        (topology.switches().len(), topology.hosts().len(), topology.links().len())
    }

    #[test]
    fn a_tree_is_numbered_as_mininet_does() {
        let topology = tree(2, 2).build().unwrap();
        assert_eq!(
            links(&topology),
            ["s2:1 h1", "s2:2 h2", "s1:1 s2:3", "s3:1 h3", "s3:2 h4", "s1:2 s3:3"]
        );
        let h4 = topology.host("h4").unwrap();
        assert_eq!(
            topology.hosts()[h4.index()],
            HostSpec {
                name: "h4".to_owned(),
                mac: "00:00:00:00:00:04".parse().unwrap(),
                ip: "10.0.0.4".parse().unwrap(),
                network: crate::topology::HostNetwork::default(),
            }
        );
        assert_eq!(topology.switches()[2].dpid, 3);
    }

    #[test]
    fn a_line_is_numbered_as_mininet_does() {
        assert_eq!(
            links(&linear(3, 1).build().unwrap()),
            ["s1:1 h1", "s2:1 h2", "s2:2 s1:2", "s3:1 h3", "s3:2 s2:3"]
        );
        let two = linear(2, 2).build().unwrap();
        assert_eq!(links(&two), ["s1:1 h1s1", "s1:2 h2s1", "s2:1 h1s2", "s2:2 h2s2", "s2:3 s1:3"]);
        let addresses: Vec<_> =
            two.hosts().iter().map(|h| format!("{} {}", h.name, h.ip)).collect();
        assert_eq!(addresses, ["h1s1 10.0.0.1", "h1s2 10.0.0.2", "h2s1 10.0.0.3", "h2s2 10.0.0.4"]);
        assert_eq!(links(&single(2).build().unwrap()), ["s1:1 h1", "s1:2 h2"]);
    }

    #[test]
    fn a_ring_is_a_line_with_its_ends_joined() {
        let ring = ring(3, 0).build().unwrap();
        assert_eq!(links(&ring), ["s2:1 s1:1", "s3:1 s2:2", "s3:2 s1:2"]);
    }

    #[test]
    fn a_fat_tree_has_the_sizes_of_the_paper() {
        assert_eq!(counts("fat-tree:4"), (20, 16, 48));
        assert_eq!(counts("fat-tree:16"), (320, 1024, 3 * 1024));
        let topology = fat_tree(4).build().unwrap();
        for switch in 0..20 {
            assert_eq!(topology.last_port(SwitchIndex(switch)), 4, "all switches have 4 ports");
        }
        // Port p of a core switch leads to pod p.
        let core = Node::Switch(SwitchIndex(3));
        let pods: Vec<_> = (1..=4)
            .map(|port| topology.links()[topology.link_at(core, port).unwrap().index()].ends[1])
            .map(|end| topology.end_name(end).to_string())
            .collect();
        assert_eq!(pods, ["s6:4", "s10:4", "s14:4", "s18:4"]);
    }

    #[test]
    fn a_fat_tree_can_be_had_without_loops_and_of_the_same_size() {
        assert_eq!(counts("fat-tree:16,loop-free"), (320, 1024, 319 + 1024));
        fat_tree(16).loop_free().build().unwrap().check_loop_free().unwrap();
    }

    #[test]
    fn every_leaf_reaches_every_spine() {
        assert_eq!(counts("leaf-spine:4,2,3"), (6, 12, 4 * 2 + 12));
    }

    #[test]
    fn a_waxman_network_is_connected_and_repeats_from_its_seed() {
        for seed in 0..20 {
            let network = waxman(40, seed).build().unwrap();
            assert_eq!(network, waxman(40, seed).build().unwrap());
            assert_eq!(network.spanning_tree().links().len(), 39 + 40, "seed {seed}: connected");
        }
        assert_ne!(waxman(40, 1).build().unwrap(), waxman(40, 2).build().unwrap());
    }

    #[test]
    fn names_print_as_they_are_read() {
        for text in [
            "single:4",
            "linear:3",
            "linear:3,2",
            "ring:5",
            "ring:5,0",
            "tree:2,3",
            "fat-tree:4",
            "leaf-spine:4,2,8",
            "waxman:30,7",
            "ring:5,loop-free",
        ] {
            assert_eq!(text.parse::<NamedTopology>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn bad_names_and_arguments_say_what_would_be_right() {
        for (text, part) in [
            ("torus:3,3", "no topology \"torus:3,3\"; there are single:hosts"),
            ("tree:2", "tree:depth,fanout"),
            ("tree", "tree:depth,fanout"),
            ("tree:a,b", "no topology"),
            ("tree:0,2", "tree: a depth and a fanout of 1 or more"),
            ("tree:40,2", "more than 65536 switches"),
            ("tree:2000,1", "tree: a depth of 1000"),
            ("fat-tree:5", "fat-tree: an even number of ports"),
            ("fat-tree:4294967294", "more than 65536 switches"),
            ("ring:2", "ring: 3 switches"),
            ("single:0", "single: 1 host"),
            ("single:9999999", "more than 1048576 hosts"),
            ("waxman:5000,1", "waxman: 1 to 4096 switches"),
        ] {
            let error = text.parse().and_then(NamedTopology::build).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
