//! Owners: what each flow, group and meter is there for.

use std::fmt;

use bellrock_openflow::MacAddr;

use super::HostKey;

/// What a flow, group or meter is there for: the unit that is compiled at once. Each flow of a
/// switch has one owner, and no two owners have a flow with the same table, match and priority.
///
/// Owners name numbers that stay when the file changes: of ports, VLANs, groups, meters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The switch: misses of tables, and filters for all ports.
    Switch,
    /// A meter, by number.
    Meter(u32),
    /// The group of a `failover`, by number.
    Failover(u32),
    /// `dp_acls`.
    SwitchAcl,
    /// A port, by number, whichever its VLANs.
    Port(u32),
    /// `acls_in` of a port.
    PortAcl(u32),
    /// A port in a VLAN.
    PortVlan {
        /// The port's number.
        port: u32,
        /// The VLAN id.
        vid: u16,
    },
    /// A VLAN, by id, whichever its ports.
    Vlan(u16),
    /// `acls_in` of a VLAN.
    VlanAclIn(u16),
    /// `acls_out` of a VLAN.
    VlanAclOut(u16),
    /// The floods of a VLAN, with their groups.
    Flood(u16),
    /// A host that was learned.
    Host(HostKey),
    /// A port without learning for a time.
    PortBan(u32),
    /// A VLAN without learning for a time.
    VlanBan(u16),
    /// The address of a permanent host, at another port.
    Stray {
        /// The address.
        mac: MacAddr,
        /// The other port.
        port: u32,
    },
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Switch => f.write_str("the switch"),
            Owner::Meter(number) => write!(f, "meter {number}"),
            Owner::Failover(group) => write!(f, "failover group {group}"),
            Owner::SwitchAcl => f.write_str("ACLs of the switch"),
            Owner::Port(port) => write!(f, "port {port}"),
            Owner::PortAcl(port) => write!(f, "ACLs of port {port}"),
            Owner::PortVlan { port, vid } => write!(f, "port {port} in VLAN {vid}"),
            Owner::Vlan(vid) => write!(f, "VLAN {vid}"),
            Owner::VlanAclIn(vid) => write!(f, "ACLs into VLAN {vid}"),
            Owner::VlanAclOut(vid) => write!(f, "ACLs out of VLAN {vid}"),
            Owner::Flood(vid) => write!(f, "floods of VLAN {vid}"),
            Owner::Host(HostKey { vid, mac }) => write!(f, "host {mac} in VLAN {vid}"),
            Owner::PortBan(port) => write!(f, "ban of port {port}"),
            Owner::VlanBan(vid) => write!(f, "ban of VLAN {vid}"),
            Owner::Stray { mac, port } => write!(f, "stray {mac} at port {port}"),
        }
    }
}
