//! The lines of the network, and the rate that is reserved on each.

use std::collections::BTreeMap;
use std::fmt;

use bellrock_api::SwitchPort;

/// A direction of a line, named by the switch port at its start or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkDirection {
    /// From this port to the switch or host behind it.
    From(SwitchPort),
    /// From the host behind this port to the switch.
    To(SwitchPort),
}

impl fmt::Display for LinkDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkDirection::From(port) => write!(f, "the line from port {port}"),
            LinkDirection::To(port) => write!(f, "the line of the host at {port}"),
        }
    }
}

/// Reserved rate of each line, in kbit/s.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger(BTreeMap<LinkDirection, u64>);

impl Ledger {
    /// Reserved rate of a line, in kbit/s.
    pub(super) fn reserved(&self, line: LinkDirection) -> u64 {
        self.0.get(&line).copied().unwrap_or_default()
    }

    pub(super) fn add(&mut self, line: LinkDirection, kbps: u64) {
        *self.0.entry(line).or_default() += kbps;
    }

    pub(super) fn subtract(&mut self, line: LinkDirection, kbps: u64) {
        if let Some(reserved) = self.0.get_mut(&line) {
            *reserved = reserved.saturating_sub(kbps);
            if *reserved == 0 {
                self.0.remove(&line);
            }
        }
    }
}
