//! ACLs: rules, what they match, what they do.

use std::sync::Arc;

use bellrock_openflow::{Field, Match};

use super::{MeterId, Name};
use crate::Place;

/// An ACL: the first rule that matches a packet decides.
#[derive(Clone, Debug)]
pub struct Acl {
    /// Its key in the file.
    pub place: Place,
    /// Its name.
    pub name: Name,
    /// All rules have one priority.
    pub exact_match: bool,
    /// RADIUS may name it.
    pub dot1x_assigned: bool,
    /// Its rules, at least one.
    pub rules: Vec<Rule>,
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Where it begins.
    pub place: Place,
    /// Text for people.
    pub description: Option<Arc<str>>,
    /// Cookie of its flows; else that of the switch.
    pub cookie: Option<u32>,
    /// Packets that it matches, by standard fields.
    pub matches: Match,
    /// Packets that it matches, by fields of Nicira.
    pub nicira: Vec<NiciraMatch>,
    /// What it does with them.
    pub actions: Actions,
}

/// A match on a field of Nicira.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NiciraMatch {
    /// The field's name: `ct_state`.
    pub field: &'static str,
    /// The value.
    pub value: u128,
    /// The bits that count, if not all do.
    pub mask: Option<u128>,
}

/// What a rule does. Without anything, it drops.
#[derive(Clone, Debug, Default)]
pub struct Actions {
    /// The packet goes on. `None`: `allow` is not given; then it goes on if it is mirrored.
    pub allow: Option<bool>,
    /// It goes on without a check of its VLAN.
    pub force_port_vlan: bool,
    /// Meter of its packets.
    pub meter: Option<MeterId>,
    /// Port that gets a copy before all changes.
    pub mirror: Option<PortRef>,
    /// Outputs and changes, in order.
    pub output: Vec<Output>,
    /// Connection tracking.
    pub conntrack: Option<Conntrack>,
}

impl Actions {
    /// Whether the packet goes on to the next table.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.allow.unwrap_or(self.mirror.is_some())
    }
}

/// A port, by number or name. Each switch that uses the ACL has such a port:
/// [`Switch::port`](super::Switch::port) finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRef {
    /// Where it is.
    pub place: Place,
    /// Its number or name.
    pub name: Name,
}

/// A step of `output`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send it out of a port.
    Port(PortRef),
    /// Give a field a value.
    SetField(Field, u128),
    /// Give a field of Nicira a value.
    SetNicira(NiciraMatch),
    /// Remove the outermost VLAN tag.
    PopVlan,
    /// Add a VLAN tag.
    PushVlan {
        /// VLAN id.
        vid: u16,
        /// Ethernet type of the tag.
        eth_type: u16,
    },
    /// Change the VLAN id of the outermost tag.
    SwapVlan(u16),
    /// Send it out of the first port that is up.
    Failover(Failover),
    /// Send it through a tunnel.
    Tunnel(Box<Tunnel>),
}

/// A group of ports, of which the first that is up is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failover {
    /// Where it is.
    pub place: Place,
    /// Number of the group at the switch.
    pub group_id: u32,
    /// The ports.
    pub ports: Vec<PortRef>,
}

/// A tunnel through the stack. Its names are resolved, but it is not built yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// Where it is.
    pub place: Place,
    /// Name of the switch at the other end.
    pub switch: Arc<str>,
    /// Its port.
    pub port: Option<Name>,
    /// VLAN of the tunnel.
    pub vlan: Option<Name>,
    /// Changes at the other end.
    pub exit: Vec<Output>,
    /// The packet keeps the tunnel's tag.
    pub maintain_encapsulation: bool,
    /// Packets come back too.
    pub bi_directional: bool,
    /// This is the way back.
    pub reverse: bool,
}

/// Connection tracking (Open vSwitch's `ct`). It is not built yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conntrack {
    /// Where it is.
    pub place: Place,
    /// Forget the state, and nothing else.
    pub clear: bool,
    /// Table where the packet goes on.
    pub table: Option<u8>,
    /// Zone.
    pub zone: Option<u16>,
}
