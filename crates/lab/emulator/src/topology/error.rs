//! Why a topology is refused.

use std::fmt;
use std::net::Ipv4Addr;

use bellrock_openflow::MacAddr;

use super::{MAX_FILE_BYTES, MAX_HOSTS, MAX_LINKS, MAX_NAME_BYTES, MAX_SWITCHES};

/// An error in a topology: the line and the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError {
    /// The line of the file, counted from 1; `None` if it did not come from a file.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: TopologyProblem,
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.problem),
            None => self.problem.fmt(f),
        }
    }
}

impl std::error::Error for TopologyError {}

impl From<TopologyProblem> for TopologyError {
    fn from(problem: TopologyProblem) -> Self {
        TopologyError { line: None, problem }
    }
}

/// An error in a topology, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyProblem {
    /// A line does not begin with a known word.
    #[error("unknown word {0:?}; a line begins with switch, host or link, or with # for a comment")]
    UnknownStatement(String),
    /// A `switch` or `host` without a name.
    #[error("a name is missing after {0:?}")]
    MissingName(&'static str),
    /// A name with forbidden characters.
    #[error(
        "{0:?} is not a name; a name begins with a letter and has at most {MAX_NAME_BYTES} letters, \
         digits, '-', '_' and '.'"
    )]
    BadName(String),
    /// A link without two ends.
    #[error("a link has two ends, like: link s1:1 h1")]
    MissingEnd,
    /// A setting that this kind of line does not have.
    #[error("a {statement} has no setting {key:?}; it has {known}")]
    UnknownKey {
        /// `switch`, `host` or `link`.
        statement: &'static str,
        /// The setting in the file.
        key: String,
        /// The settings of this kind of line.
        known: &'static str,
    },
    /// A setting twice in one line.
    #[error("{0} is set twice in this line")]
    KeyTwice(String),
    /// A word that is not `key=value`.
    #[error("{0:?} is not a setting; write key=value")]
    NoSetting(String),
    /// An invalid value.
    #[error("{key}={value} is wrong: {want}")]
    BadValue {
        /// The setting.
        key: &'static str,
        /// The value in the file.
        value: String,
        /// The valid values.
        want: &'static str,
    },
    /// A switch without a datapath id, whose name has no number to take.
    #[error("{0} has no number in its name for a datapath id; write one, like dpid=0x1")]
    NoDpid(String),
    /// Two switches or hosts with the same name.
    #[error("the name {name} is taken{}", at(*.first))]
    DuplicateName {
        /// The name.
        name: String,
        /// The line of the first one.
        first: Option<usize>,
    },
    /// Two switches with the same datapath id.
    #[error("the datapath id {dpid:#x} is taken by {switch}; every switch has its own")]
    DuplicateDpid {
        /// The datapath id.
        dpid: u64,
        /// The switch that has it.
        switch: String,
    },
    /// Two hosts with the same Ethernet address.
    #[error("the address {mac} is taken by {host}; every host has its own")]
    DuplicateMac {
        /// The address.
        mac: MacAddr,
        /// The host that has it.
        host: String,
    },
    /// Two hosts with the same Internet address.
    #[error("the address {ip} is taken by {host}; every host has its own")]
    DuplicateIp {
        /// The address.
        ip: Ipv4Addr,
        /// The host that has it.
        host: String,
    },
    /// A link to an unknown node.
    #[error("unknown switch or host {name:?}; declare it: \"switch {name}\" or \"host {name}\"")]
    UnknownNode {
        /// The name in the link.
        name: String,
    },
    /// Two links at the same port.
    #[error("port {port} of {switch} has a link already{}; a port has one", at(*.first))]
    DuplicatePort {
        /// The switch.
        switch: String,
        /// Its port.
        port: u32,
        /// The line of the first link.
        first: Option<usize>,
    },
    /// A second link of a host.
    #[error("{host} has a link already{}; a host has one, without a port number", at(*.first))]
    DuplicateHostLink {
        /// The host.
        host: String,
        /// The line of its first link.
        first: Option<usize>,
    },
    /// A link between a switch and itself.
    #[error("a link of {0} to itself")]
    SelfLink(String),
    /// A link between two hosts.
    #[error("a link between the hosts {0} and {1}; one end of every link is a switch")]
    HostToHost(String, String),
    /// The topology has a cycle, and must have none.
    #[error(
        "the link {link} closes the cycle {}: flooded packets would circulate for ever; \
         remove the link, or choose an app that allows cycles", .path.join(" - ")
    )]
    Cycle {
        /// The link that closes the cycle.
        link: String,
        /// The switches of the cycle; the first is also the last.
        path: Vec<String>,
    },
    /// Too many switches.
    #[error("more than {MAX_SWITCHES} switches")]
    TooManySwitches,
    /// Too many hosts.
    #[error("more than {MAX_HOSTS} hosts")]
    TooManyHosts,
    /// Too many links.
    #[error("more than {MAX_LINKS} links")]
    TooManyLinks,
    /// The file is too long.
    #[error("a topology file has at most {MAX_FILE_BYTES} bytes")]
    TooLong,
    /// An unknown named topology, or wrong arguments for it.
    #[error(
        "no topology {0:?}; there are single:hosts, linear:switches[,hosts], ring:switches[,hosts], \
         tree:depth,fanout, fat-tree:k, leaf-spine:leaves,spines,hosts and waxman:switches,seed, \
         and each takes ,loop-free at its end"
    )]
    UnknownTopology(String),
    /// An argument of a named topology is out of range.
    #[error("{topology}: {want}")]
    BadArgument {
        /// The topology.
        topology: &'static str,
        /// The valid values.
        want: &'static str,
    },
}

impl TopologyProblem {
    pub(super) fn at(self, line: Option<usize>) -> TopologyError {
        TopologyError { line, problem: self }
    }
}

/// " (line 3)", if the line is known.
fn at(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(" (line {line})"))
}
