//! Errors of a lab, written for the reader of a failed test.

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use bellrock_services::discovery::NoRandomness;

use crate::host::HostError;
use crate::network::MoveError;
use crate::topology::{Node, TopologyError, TopologySpec};

/// Maximum number of names that an error lists; of more, only the first and the last.
const NAMES_LISTED: usize = 8;

/// Why a lab cannot do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The topology is wrong.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// No host has this name.
    #[error("no host {name}; there {known}")]
    UnknownHost {
        /// The name.
        name: String,
        /// The hosts' names.
        known: KnownNames,
    },
    /// No switch has this name.
    #[error("no switch {name}; there {known}")]
    UnknownSwitch {
        /// The name.
        name: String,
        /// The switches' names.
        known: KnownNames,
    },
    /// No link joins these two nodes.
    #[error("no link between {a} and {b}; {a} has links to {known}")]
    UnknownLink {
        /// One node.
        a: String,
        /// The other node.
        b: String,
        /// The neighbours of the first node.
        known: String,
    },
    /// The apps did not get this switch in time.
    #[error("switch {switch} was not up {after:?} after the start; does an app block?")]
    NotUp {
        /// Its name.
        switch: String,
        /// How long the lab waited.
        after: Duration,
    },
    /// No worker has this counter.
    #[error("workers have no counter {0}; bellrock_worker::COUNTERS lists them")]
    UnknownCounter(String),
    /// A host cannot send.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A host cannot move.
    #[error(transparent)]
    Move(#[from] MoveError),
    /// A service cannot be created.
    #[error(transparent)]
    Services(#[from] NoRandomness),
    /// A controller refuses this order of apps.
    #[error("{0}")]
    Chain(String),
    /// A controller runs already, or none runs.
    #[error("{0}")]
    Controller(&'static str),
}

impl LabError {
    pub(super) fn unknown_host(topology: &TopologySpec, name: &str) -> Self {
        let known = KnownNames::new(topology.hosts().iter().map(|host| &*host.name));
        LabError::UnknownHost { name: name.to_owned(), known }
    }

    pub(super) fn unknown_switch(topology: &TopologySpec, name: &str) -> Self {
        let known = KnownNames::new(topology.switches().iter().map(|switch| &*switch.name));
        LabError::UnknownSwitch { name: name.to_owned(), known }
    }

    pub(super) fn unknown_link(topology: &TopologySpec, a: Node, b: Node) -> Self {
        let other_end = |ends: &[Node; 2]| match *ends {
            [one, other] | [other, one] if one == a => Some(other),
            _ => None,
        };
        let links = topology.links().iter().map(|link| link.ends.map(|end| end.node));
        let known: Vec<&str> =
            links.filter_map(|ends| other_end(&ends)).map(|node| topology.name(node)).collect();
        let (a, b) = (topology.name(a).to_owned(), topology.name(b).to_owned());
        LabError::UnknownLink { a, b, known: known.join(", ") }
    }
}

impl From<Infallible> for LabError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// The known names, as an error lists them: `are h1 to h9`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownNames(Vec<String>);

impl KnownNames {
    pub(super) fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        KnownNames(names.map(str::to_owned).collect())
    }
}

impl fmt::Display for KnownNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            [] => f.write_str("are none"),
            [one] => write!(f, "is {one}"),
            [first, .., last] if is_run(&self.0) => write!(f, "are {first} to {last}"),
            [first, .., last] if self.0.len() > NAMES_LISTED => {
                write!(f, "are {first}, …, {last}, {} in all", self.0.len())
            }
            [names @ .., last] => write!(f, "are {} and {last}", names.join(", ")),
        }
    }
}

/// Whether all names are one word with consecutive numbers.
fn is_run(names: &[String]) -> bool {
    let parts = |name: &String| {
        let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit()).len();
        let (word, number) = name.split_at_checked(name.len() - digits)?;
        Some((word.to_owned(), number.parse::<u64>().ok()?))
    };
    let Some(parts) = names.iter().map(parts).collect::<Option<Vec<_>>>() else { return false };
    parts.len() > 2 && parts.is_sorted_by(|(a, m), (b, n)| a == b && m + 1 == *n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_as_a_reader_wants_them() {
        let known = |names: &[&str]| KnownNames::new(names.iter().copied()).to_string();
        assert_eq!(known(&[]), "are none");
        assert_eq!(known(&["h1"]), "is h1");
        assert_eq!(known(&["h1", "h2"]), "are h1 and h2");
        assert_eq!(known(&["h1", "h2", "h3"]), "are h1 to h3");
        assert_eq!(known(&["h1", "h3", "web"]), "are h1, h3 and web");
        let many: Vec<String> = (0..20).map(|n| format!("host{}", 3 * n)).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(known(&many), "are host0, …, host57, 20 in all");
    }
}
