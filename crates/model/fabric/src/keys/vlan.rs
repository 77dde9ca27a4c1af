//! Keys of the top, of `vlans.NAME`, `routers.NAME` and `meters.NAME`.

use super::{ANY, COUNT, Key, Part, Preset, Types, keys, row};

/// Keys of the top of a file.
pub const TOP: &[Key] = &[
    Key {
        name: "version",
        types: Types::INT,
        preset: Preset::Int(2),
        range: Some((2, 2)),
        part: Part::First,
        meaning: "Version of the format.",
    },
    row(
        "include",
        Types::LIST,
        Part::First,
        "Files that are read too, from the folder of this one on. Later entries replace earlier ones of \
         the same name.",
    ),
    row("include-optional", Types::LIST, Part::First, "The same; a file may be absent."),
    row("dps", Types::MAP, Part::First, "Switches, by name."),
    row("vlans", Types::MAP, Part::First, "VLANs, by name or id."),
    row("acls", Types::MAP, Part::First, "ACLs, by name."),
    row("meters", Types::MAP, Part::First, "Meters, by name."),
    row("routers", Types::MAP, Part::Routing, "Routers, by name."),
    row("bellrock", Types::MAP, Part::First, "Keys that Faucet does not have. There are none yet."),
];

/// Keys below `bellrock`.
pub const BELLROCK: &[Key] = &[];

keys! {
    /// Plain settings of a VLAN.
    VlanSettings,
    /// Keys of `vlans.NAME`.
    VLAN {
        unicast_flood: bool, BOOL, Preset::Bool(true), ANY, First,
            "Packets to unknown hosts are flooded.";
        max_hosts: u32, INT, Preset::Int(256), COUNT, First,
            "Maximum number of hosts. 0: any.";
        proactive_arp_limit: u32, INT, Preset::Int(0), COUNT, Routing,
            "Maximum number of IPv4 neighbours. 0: twice `max_hosts`.";
        proactive_nd_limit: u32, INT, Preset::Int(0), COUNT, Routing,
            "Maximum number of IPv6 neighbours. 0: twice `max_hosts`.";
        targeted_gw_resolution: bool, BOOL, Preset::Bool(true), ANY, Routing,
            "Ask a known neighbour at its port first.";
        minimum_ip_size_check: bool, BOOL, Preset::Bool(true), ANY, First,
            "Ignore IP packets that are too short.";
        reserved_internal_vlan: bool, BOOL, Preset::Bool(false), ANY, First,
            "Packets go to the VLAN's ACLs only; for tunnels.";
        dot1x_assigned: bool, BOOL, Preset::Bool(false), ANY, Dot1x,
            "RADIUS may name it.";
        edge_learn_stack_root: bool, BOOL, Preset::Bool(true), ANY, Stacking,
            "Hosts of other switches are learned by the way over the root.";
        =
        "vid": INT, Preset::Other("the key"), First,
            "VLAN id, 1 to 4095.";
        "name": TEXT, Preset::Other("the key"), First,
            "Its name.";
        "description": TEXT, Preset::Nothing, First,
            "Text for people.";
        "acl_in": NAME, Preset::Nothing, First,
            "Old form of `acls_in` with one ACL.";
        "acls_in": LIST, Preset::Nothing, First,
            "ACLs of packets that come into the VLAN, in order.";
        "acl_out": NAME, Preset::Nothing, First,
            "Old form of `acls_out` with one ACL.";
        "acls_out": LIST, Preset::Nothing, First,
            "ACLs of packets that leave the VLAN, in order.";
        "faucet_vips": LIST, Preset::Nothing, Routing,
            "Addresses of the controller, with prefix lengths: a gateway each.";
        "faucet_mac": TEXT, Preset::Text("0e:00:00:00:00:01"), Routing,
            "Ethernet address of the gateways.";
        "routes": LIST, Preset::Nothing, Routing,
            "Static routes: `{ip_dst, ip_gw}`.";
    }
}

/// Keys of an item of `vlans.NAME.routes`.
pub const ROUTE: &[Key] = &[
    row("ip_dst", Types::TEXT, Part::Routing, "Destination, with a prefix length."),
    row("ip_gw", Types::TEXT, Part::Routing, "Address of the next hop, of the same IP version."),
];

/// Keys of `routers.NAME`.
pub const ROUTER: &[Key] = &[
    row("vlans", Types::LIST, Part::Routing, "VLANs between which it routes, by id or name."),
    row("bgp", Types::MAP, Part::Bgp, "A BGP speaker."),
];

/// Keys of `routers.NAME.bgp`. All must be given but `vlan` and `connect_mode`.
pub const BGP: &[Key] = &[
    row("as", Types::INT, Part::Bgp, "Number of the own autonomous system."),
    row("port", Types::INT, Part::Bgp, "TCP port to listen on."),
    row("routerid", Types::TEXT, Part::Bgp, "Router id."),
    row(
        "server_addresses",
        Types::LIST,
        Part::Bgp,
        "Addresses to listen on, one of an IP version.",
    ),
    row("neighbor_addresses", Types::LIST, Part::Bgp, "Addresses of peers."),
    row("neighbor_as", Types::INT, Part::Bgp, "Number of the peers' autonomous system."),
    row("vlan", Types::NAME, Part::Bgp, "VLAN of next hops; needed if the router has several."),
    Key {
        name: "connect_mode",
        types: Types::TEXT,
        preset: Preset::Text("passive"),
        range: None,
        part: Part::Bgp,
        meaning: "`passive`, the only one.",
    },
];

/// Maximum number of a meter (OpenFlow 1.3.5 §7.3.4.4, `OFPM_MAX`).
const MAX_METER: i128 = bellrock_openflow::Meter::MAX as i128;

/// Keys of `meters.NAME`.
pub const METER: &[Key] = &[
    Key {
        name: "meter_id",
        types: Types::INT,
        preset: Preset::Nothing,
        range: Some((0, MAX_METER)),
        part: Part::First,
        meaning: "Number of the meter. It must be given.",
    },
    row("entry", Types::MAP, Part::First, "What it does. It must be given."),
];

/// Keys of `meters.NAME.entry`.
pub const METER_ENTRY: &[Key] = &[
    row(
        "flags",
        Types::NAMES,
        Part::First,
        "`KBPS` or `PKTPS`, `BURST`, `STATS`; one, or a list. It must be given.",
    ),
    row("bands", Types::LIST, Part::First, "Rates and what happens above them. At least one."),
];

/// Keys of an item of `meters.NAME.entry.bands`.
pub const BAND: &[Key] = &[
    row("type", Types::TEXT, Part::First, "`DROP` or `DSCP_REMARK`."),
    row("rate", Types::NAME, Part::First, "Kilobits or packets a second."),
    row("burst_size", Types::NAME, Part::First, "Kilobits or packets of a burst."),
    row("prec_level", Types::NAME, Part::First, "Steps that the drop precedence rises by."),
];
