//! The intent: what a file declares, typed, with all references resolved.
//!
//! Everything keeps its [`Place`], for errors of the compiler and for `bellrock trace`. An id is a
//! position in a list of [`Intent`]; it holds for this intent only.

mod acl;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use bellrock_api::Dpid;
use bellrock_openflow::{MacAddr, MeterFlags};

pub use acl::*;

use crate::Place;
use crate::keys::{
    CoprocessorSettings, Dot1xSettings, OrgTlv, Part, PortLldp, PortSettings, StackSettings,
    SwitchLldp, SwitchSettings, TableSizes, VlanSettings,
};

/// A declared network.
#[derive(Clone, Debug, Default)]
pub struct Intent {
    /// Switches, in the order of the file.
    pub switches: Vec<Switch>,
    /// VLANs: those of the file in its order, then those that are only referred to by number.
    pub vlans: Vec<Vlan>,
    /// ACLs, in the order of the file.
    pub acls: Vec<Acl>,
    /// Meters, in the order of the file.
    pub meters: Vec<Meter>,
    /// Routers, in the order of the file.
    pub routers: Vec<Router>,
    /// The stack, if ports are linked.
    pub stack: Option<Stack>,
    pub(crate) noted: Vec<Unsupported>,
}

/// Position of a switch in [`Intent::switches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub u32);

/// Position of a VLAN in [`Intent::vlans`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VlanId(pub u32);

/// Position of an ACL in [`Intent::acls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AclId(pub u32);

/// Position of a meter in [`Intent::meters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeterId(pub u32);

/// A number or a text: a key, or a reference to one. `1` and `"1"` differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// A number.
    Number(i64),
    /// Text.
    Text(Arc<str>),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Number(number) => write!(f, "{number}"),
            Name::Text(text) => f.write_str(text),
        }
    }
}

/// A switch.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Its key in the file.
    pub place: Place,
    /// Its name, which other switches use in their stack ports.
    pub name: Arc<str>,
    /// Its datapath id.
    pub dpid: Dpid,
    /// Text for people.
    pub description: Arc<str>,
    /// Its kind.
    pub hardware: Hardware,
    /// Its plain settings.
    pub settings: SwitchSettings,
    /// Source of the controller's LLDP and LACP.
    pub mac: MacAddr,
    /// Its ports, by number.
    pub ports: Vec<Port>,
    /// ACLs of all ports, in order.
    pub acls: Vec<AclUse>,
    /// LLDP, if it is configured, or the switch is in a stack.
    pub lldp: Option<SwitchLldp>,
    /// Its part in the stack, if it has stack ports.
    pub stack: Option<StackSettings>,
    /// 802.1X.
    pub dot1x: Option<Dot1xSettings>,
    /// Sizes of tables.
    pub table_sizes: TableSizes,
}

impl Switch {
    /// The port with this number.
    #[must_use]
    pub fn port_numbered(&self, number: u32) -> Option<&Port> {
        let position = self.ports.binary_search_by_key(&number, |port| port.number).ok()?;
        self.ports.get(position)
    }

    /// The port that a number or a name refers to. Of several with one name, the first in the
    /// file's order of numbers.
    #[must_use]
    pub fn port(&self, name: &Name) -> Option<&Port> {
        match name {
            Name::Number(number) => self.port_numbered(u32::try_from(*number).ok()?),
            Name::Text(text) => self.ports.iter().find(|port| port.name == *text),
        }
    }
}

/// Kinds of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hardware {
    /// Any with several tables.
    Generic,
    /// Any with several tables, which takes table features.
    GenericTfm,
    /// Allied Telesis.
    AlliedTelesis,
    /// Aruba.
    Aruba,
    /// Cisco Catalyst 9000.
    CiscoC9k,
    /// Lagopus.
    Lagopus,
    /// Netronome.
    Netronome,
    /// NoviFlow, with fixed numbers of tables.
    NoviFlow,
    /// Open vSwitch.
    OpenVSwitch,
    /// Open vSwitch, with table features.
    OpenVSwitchTfm,
    /// Zodiac FX.
    ZodiacFx,
    /// Zodiac GX.
    ZodiacGx,
}

impl Hardware {
    /// All kinds, with their names in a file.
    pub const ALL: &'static [(&'static str, Hardware)] = &[
        ("Generic", Hardware::Generic),
        ("GenericTFM", Hardware::GenericTfm),
        ("Allied-Telesis", Hardware::AlliedTelesis),
        ("Aruba", Hardware::Aruba),
        ("CiscoC9K", Hardware::CiscoC9k),
        ("Lagopus", Hardware::Lagopus),
        ("Netronome", Hardware::Netronome),
        ("NoviFlow", Hardware::NoviFlow),
        ("Open vSwitch", Hardware::OpenVSwitch),
        ("Open vSwitch TFM", Hardware::OpenVSwitchTfm),
        ("ZodiacFX", Hardware::ZodiacFx),
        ("ZodiacGX", Hardware::ZodiacGx),
    ];
}

/// A port of a switch.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its key in the file, or that of its range.
    pub place: Place,
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: Arc<str>,
    /// Text for people.
    pub description: Arc<str>,
    /// Its plain settings.
    pub settings: PortSettings,
    /// VLAN of untagged packets.
    pub native_vlan: Option<VlanId>,
    /// VLANs of tagged packets, in the order of the file, each once.
    pub tagged_vlans: Vec<VlanId>,
    /// Packets from it are dropped. Also set for ports that get copies.
    pub output_only: bool,
    /// Numbers of the ports that get copies of its packets.
    pub mirrored_to: Vec<u32>,
    /// ACLs of its packets, in order.
    pub acls: Vec<AclUse>,
    /// LLDP that leaves by it. Enabled at stack ports.
    pub lldp: Option<PortLldp>,
    /// Further TLVs in LLDP.
    pub org_tlvs: Vec<OrgTlv>,
    /// Only LLDP from this address counts.
    pub lldp_peer: Option<MacAddr>,
    /// The other end, if it is a stack port.
    pub stack: Option<StackEnd>,
    /// It is down if one of these ports is.
    pub lacp_passthrough: Vec<Name>,
    /// The coprocessor at it.
    pub coprocessor: Option<CoprocessorSettings>,
}

/// One end of a link of the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackEnd {
    /// Where it is configured.
    pub place: Place,
    /// The switch at the other end.
    pub switch: SwitchId,
    /// The number of its port.
    pub port: u32,
}

/// An ACL that something uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclUse {
    /// Where it is used.
    pub place: Place,
    /// The ACL.
    pub acl: AclId,
}

/// A VLAN.
#[derive(Clone, Debug)]
pub struct Vlan {
    /// Its key in the file, or the first reference.
    pub place: Place,
    /// Its id, 1 to 4095.
    pub vid: u16,
    /// Its name.
    pub name: Arc<str>,
    /// Text for people.
    pub description: Option<Arc<str>>,
    /// Its plain settings.
    pub settings: VlanSettings,
    /// ACLs of packets that come into it, in order.
    pub acls_in: Vec<AclUse>,
    /// ACLs of packets that leave it, in order.
    pub acls_out: Vec<AclUse>,
    /// Addresses of the controller.
    pub vips: Vec<Vip>,
    /// Ethernet address of the controller's addresses.
    pub mac: MacAddr,
    /// Static routes.
    pub routes: Vec<Route>,
}

/// An address of the controller in a VLAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vip {
    /// Where it is.
    pub place: Place,
    /// The address, and its network's length.
    pub prefix: Prefix,
}

/// An address and the length of its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    /// The address, which may have bits behind the prefix.
    pub address: IpAddr,
    /// Length, in bits.
    pub len: u8,
}

impl Prefix {
    /// Number of bits of an address of its version.
    #[must_use]
    pub fn max_len(self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// Whether an address is in its network.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        let bits = |address: IpAddr, len: u8| match address {
            IpAddr::V4(it) => u128::from(it.to_bits()).checked_shr(32 - u32::from(len.min(32))),
            IpAddr::V6(it) => it.to_bits().checked_shr(128 - u32::from(len.min(128))),
        };
        let is_same_version = self.address.is_ipv4() == address.is_ipv4();
        is_same_version
            && bits(self.address, self.len).unwrap_or(0) == bits(address, self.len).unwrap_or(0)
    }

    /// Whether it is a link's own: 169.254.0.0/16 or fe80::/10.
    #[must_use]
    pub fn is_link_local(self) -> bool {
        match self.address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

/// A static route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where it is.
    pub place: Place,
    /// Destination.
    pub destination: Prefix,
    /// Next hop, of the same version.
    pub gateway: IpAddr,
}

/// A router.
#[derive(Clone, Debug)]
pub struct Router {
    /// Its key in the file.
    pub place: Place,
    /// Its name.
    pub name: Name,
    /// VLANs between which it routes.
    pub vlans: Vec<VlanId>,
    /// Its BGP speaker.
    pub bgp: Option<Bgp>,
}

/// A BGP speaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bgp {
    /// Where it is.
    pub place: Place,
    /// Number of the own autonomous system.
    pub local_as: u32,
    /// TCP port to listen on.
    pub port: u16,
    /// Router id.
    pub router_id: Arc<str>,
    /// Addresses to listen on, at most one of a version.
    pub server_addresses: Vec<IpAddr>,
    /// Addresses of peers.
    pub neighbor_addresses: Vec<IpAddr>,
    /// Number of the peers' autonomous system.
    pub neighbor_as: u32,
    /// VLAN of next hops; `None` if there is no such VLAN, and so no BGP.
    pub vlan: Option<VlanId>,
}

/// A meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    /// Its key in the file.
    pub place: Place,
    /// Its name.
    pub name: Name,
    /// Its number at the switch.
    pub number: u32,
    /// Units, and what it counts.
    pub flags: MeterFlags,
    /// Its bands, at least one.
    pub bands: Vec<MeterBand>,
}

/// A rate, and what happens above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterBand {
    /// Where it is.
    pub place: Place,
    /// Kilobits or packets a second, by the flags.
    pub rate: u32,
    /// Kilobits or packets of a burst.
    pub burst_size: u32,
    /// Steps that the drop precedence of the DSCP rises by; `None`: packets are dropped.
    pub dscp_remark: Option<u8>,
}

/// The links between switches of the stack, and which of them may be its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// Candidates, the preferred one first: by priority, then by datapath id.
    pub roots: Vec<SwitchId>,
    /// Links, each once.
    pub links: Vec<StackLink>,
    /// Some port of a stack's switch has `loop_protect_external`.
    pub has_externals: bool,
}

/// A link of the stack: two ends, a switch and a port number each; the lower switch first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StackLink {
    /// One end.
    pub a: (SwitchId, u32),
    /// The other.
    pub z: (SwitchId, u32),
}

/// A key of a file whose effect Bellrock does not have yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unsupported {
    /// Where it stands.
    pub place: Place,
    /// Its name.
    pub key: &'static str,
    /// What it belongs to.
    pub part: Part,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unsupported { place, key, part } = self;
        write!(f, "{place}: `{key}` is read, but {part} is not built yet; remove the key")
    }
}

/// Keys that turn a part on. Other keys of the part have no effect without one of them.
const TURN_ON: &[&str] =
    &["faucet_vips", "routes", "routers", "bgp", "lacp", "dot1x", "tunnel", "coprocessor", "ct"];

impl Intent {
    /// The keys in the file whose effect is not built yet, by place: whoever compiles or installs
    /// the intent refuses it with them. A key without effect in this file is not among them: a time
    /// for neighbours where nothing is routed, a root's priority where there is no stack.
    #[must_use]
    pub fn unsupported(&self) -> Vec<Unsupported> {
        let is_on = |part: Part| match part {
            Part::First => false,
            Part::Stacking => self.stack.is_some(),
            part => self.noted.iter().any(|it| it.part == part && TURN_ON.contains(&it.key)),
        };
        let mut list: Vec<_> = self.noted.iter().filter(|it| is_on(it.part)).cloned().collect();
        list.extend(self.vendor_fields());
        list.sort();
        list.dedup();
        list
    }

    /// Fields in rules that only Open vSwitch has.
    fn vendor_fields(&self) -> impl Iterator<Item = Unsupported> {
        self.acls.iter().flat_map(|acl| &acl.rules).flat_map(|rule| {
            let set = rule.actions.output.iter().filter_map(|step| match step {
                Output::SetNicira(field) => Some(field),
                _ => None,
            });
            rule.nicira.iter().chain(set).map(|field| Unsupported {
                place: rule.place.clone(),
                key: field.field,
                part: Part::VendorFields,
            })
        })
    }

    /// A switch.
    #[must_use]
    pub fn switch(&self, id: SwitchId) -> Option<&Switch> {
        self.switches.get(id.0 as usize)
    }

    /// A VLAN.
    #[must_use]
    pub fn vlan(&self, id: VlanId) -> Option<&Vlan> {
        self.vlans.get(id.0 as usize)
    }

    /// An ACL.
    #[must_use]
    pub fn acl(&self, id: AclId) -> Option<&Acl> {
        self.acls.get(id.0 as usize)
    }

    /// A meter.
    #[must_use]
    pub fn meter(&self, id: MeterId) -> Option<&Meter> {
        self.meters.get(id.0 as usize)
    }

    /// The switch with this datapath id.
    #[must_use]
    pub fn switch_with(&self, dpid: Dpid) -> Option<SwitchId> {
        let position = self.switches.iter().position(|switch| switch.dpid == dpid)?;
        u32::try_from(position).ok().map(SwitchId)
    }
}
