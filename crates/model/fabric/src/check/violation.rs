//! What is wrong with tables: the invariant, and the packet that shows it.

use std::fmt;

use bellrock_api::Flow;

use super::Packet;

/// Maximum number of violations that are looked for.
pub const MAX_VIOLATIONS: usize = 20;

/// What holds for the tables of each switch, at each moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// No port gets a second copy of a packet. Mirrors, and rules that name a port, may send one.
    OneCopy,
    /// No packet of a VLAN leaves by a port without it, or with a wrong tag.
    Vlan,
    /// A rule holds on every way.
    Acl,
    /// A port that is down, disabled, for output only, or not in the file, lets nothing in.
    Input,
    /// Filters hold: spoofed and stray sources, learning that is off, tests for loops.
    Filter,
    /// Addresses that bridges keep are not forwarded.
    Reserved,
    /// Floods leave out the ports that they should; packets to a known host go to its port only.
    Prune,
    /// A packet reaches the ports that it is for.
    Reach,
    /// A goto leads forward, to a table that the switch has, and that has flows.
    Goto,
    /// Each group that is used exists.
    Group,
    /// Each meter that is used exists.
    Meter,
    /// Each flow is in a table that the switch has.
    Table,
    /// Each instruction and action is of a kind that can be checked.
    Known,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Invariant::OneCopy => "a port gets one copy",
            Invariant::Vlan => "no packet leaves its VLAN",
            Invariant::Acl => "ACLs hold",
            Invariant::Input => "a closed port lets nothing in",
            Invariant::Filter => "filters hold",
            Invariant::Reserved => "reserved addresses are not forwarded",
            Invariant::Prune => "packets leave only by ports that they are for",
            Invariant::Reach => "packets reach the ports that they are for",
            Invariant::Goto => "a goto leads forward to a table with flows",
            Invariant::Group => "groups exist",
            Invariant::Meter => "meters exist",
            Invariant::Table => "tables exist",
            Invariant::Known => "actions are known",
        })
    }
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: Invariant,
    /// A packet that shows it.
    pub packet: Packet,
    /// The ports where it leaves and should not, or does not and should.
    pub ports: Vec<u32>,
    /// The flows that it meets, in order.
    pub flows: Vec<Flow>,
    /// What is wrong.
    pub why: String,
    /// Number of steps of a plan that were done. `None`: there was no plan.
    pub after: Option<usize>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { invariant, packet, ports, flows, why, after } = self;
        write!(f, "{invariant}: {packet}")?;
        if let [first, rest @ ..] = &ports[..] {
            let verb = if *invariant == Invariant::Reach { "does not leave" } else { "leaves" };
            write!(f, " {verb} by port {first}")?;
            rest.iter().try_for_each(|port| write!(f, ", {port}"))?;
        }
        write!(f, ": {why}")?;
        if let Some(after) = after {
            write!(f, ", after {after} steps")?;
        }
        flows.iter().try_for_each(|flow| write!(f, "\n  {flow}"))
    }
}

/// All violations that were found, at most [`MAX_VIOLATIONS`], at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Violations(pub Vec<Violation>);

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, violation) in self.0.iter().enumerate() {
            write!(f, "{}{violation}", if position == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}
