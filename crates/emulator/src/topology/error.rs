//! Why a topology is refused.

use std::fmt;
use std::net::Ipv4Addr;

use bellrock_openflow::MacAddr;

use super::{MAX_FILE_BYTES, MAX_HOSTS, MAX_LINKS, MAX_NAME_BYTES, MAX_SWITCHES};

/// A topology that cannot be: where, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError {
    /// The line of the file, counted from 1. None if it did not come from a file.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: Problem,
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

impl From<Problem> for TopologyError {
    fn from(problem: Problem) -> Self {
        TopologyError { line: None, problem }
    }
}

/// What is wrong in a topology, with what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A line does not begin with a known word.
    #[error("unknown word {0:?}; a line begins with switch, host or link, or with # for a comment")]
    UnknownStatement(String),
    /// A `switch` or `host` without a name.
    #[error("a name is missing after {0:?}")]
    MissingName(&'static str),
    /// A name with other characters than allowed.
    #[error(
        "{0:?} is no name; a name begins with a letter and has at most {MAX_NAME_BYTES} letters, \
         digits, '-', '_' and '.'"
    )]
    BadName(String),
    /// A link does not name two ends.
    #[error("a link has two ends, like: link s1:1 h1")]
    MissingEnd,
    /// A setting that this kind of line does not have.
    #[error("a {statement} has no setting {key:?}; it has {known}")]
    UnknownKey {
        /// `switch`, `host` or `link`.
        statement: &'static str,
        /// What was written.
        key: String,
        /// The settings that it has.
        known: &'static str,
    },
    /// The same setting twice in one line.
    #[error("{0} is set twice in this line")]
    KeyTwice(String),
    /// A word that is no `key=value`.
    #[error("{0:?} is no setting; settings are written key=value")]
    NoSetting(String),
    /// A value that cannot be read.
    #[error("{key}={value} cannot be: {want}")]
    BadValue {
        /// The setting.
        key: &'static str,
        /// What was written.
        value: String,
        /// What would be right.
        want: &'static str,
    },
    /// The datapath id is not given and the name has no number that could be it.
    #[error("{0} has no number in its name to be its datapath id; write dpid=0x1 or another")]
    NoDpid(String),
    /// Two switches or hosts of the same name.
    #[error("the name {name} is taken{}", at(*.first))]
    DuplicateName {
        /// The name.
        name: String,
        /// The line that had it first.
        first: Option<usize>,
    },
    /// Two switches with the same datapath id.
    #[error("the datapath id {dpid:#x} is that of {switch} already; every switch has its own")]
    DuplicateDpid {
        /// The datapath id.
        dpid: u64,
        /// The switch that has it.
        switch: String,
    },
    /// Two hosts with the same Ethernet address.
    #[error("the address {mac} is that of {host} already; every host has its own")]
    DuplicateMac {
        /// The address.
        mac: MacAddr,
        /// The host that has it.
        host: String,
    },
    /// Two hosts with the same Internet address.
    #[error("the address {ip} is that of {host} already; every host has its own")]
    DuplicateIp {
        /// The address.
        ip: Ipv4Addr,
        /// The host that has it.
        host: String,
    },
    /// A link to something that is nowhere declared.
    #[error(
        "unknown switch or host {name:?}; a line \"switch {name}\" or \"host {name}\" would declare it"
    )]
    UnknownNode {
        /// What the link names.
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
    /// Both ends are the same switch.
    #[error("a link of {0} to itself")]
    SelfLink(String),
    /// Both ends are hosts.
    #[error("a link between the hosts {0} and {1}; one end of every link is a switch")]
    HostToHost(String, String),
    /// The topology has a cycle and must not.
    #[error(
        "the link {link} closes the cycle {}: what is flooded would go round for ever; leave the \
         link out, or choose an app that can take cycles", .path.join(" - ")
    )]
    Cycle {
        /// The link that closes it.
        link: String,
        /// The switches of the cycle; the first is also the last.
        path: Vec<String>,
    },
    /// More than the emulator takes.
    #[error("more than {MAX_SWITCHES} switches")]
    TooManySwitches,
    /// More than the emulator takes.
    #[error("more than {MAX_HOSTS} hosts")]
    TooManyHosts,
    /// More than the emulator takes.
    #[error("more than {MAX_LINKS} links")]
    TooManyLinks,
    /// A longer file than the emulator reads.
    #[error("a topology file has at most {MAX_FILE_BYTES} bytes")]
    TooLong,
    /// No topology of this name, or other arguments than it takes.
    #[error(
        "no topology {0:?}; there are single:hosts, linear:switches[,hosts], ring:switches[,hosts], \
         tree:depth,fanout, fat-tree:k, leaf-spine:leaves,spines,hosts and waxman:switches,seed, \
         and each takes ,loop-free at its end"
    )]
    UnknownTopology(String),
    /// An argument of a named topology that is out of its range.
    #[error("{topology}: {want}")]
    BadArgument {
        /// The topology.
        topology: &'static str,
        /// What would be right.
        want: &'static str,
    },
}

impl Problem {
    pub(super) fn at(self, line: Option<usize>) -> TopologyError {
        TopologyError { line, problem: self }
    }
}

/// " (line 3)", where a line is known.
fn at(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(" (line {line})"))
}
