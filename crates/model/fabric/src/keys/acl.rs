//! Keys of `acls.NAME` and of the sections in it.

use super::{Key, Part, Preset, Types, row};

/// Keys of `acls.NAME`, if it is no list of rules.
pub const ACL: &[Key] = &[
    row("rules", Types::LIST, Part::First, "Rules; the first that matches decides."),
    Key {
        name: "exact_match",
        types: Types::BOOL,
        preset: Preset::Bool(false),
        range: None,
        part: Part::First,
        meaning: "All rules have one priority, for tables with exact matches.",
    },
    Key {
        name: "dot1x_assigned",
        types: Types::BOOL,
        preset: Preset::Bool(false),
        range: None,
        part: Part::Dot1x,
        meaning: "RADIUS may name it.",
    },
];

/// Keys of a rule that are no fields of packets.
pub const RULE: &[Key] = &[
    Key {
        name: "cookie",
        types: Types::INT,
        preset: Preset::Nothing,
        range: Some((0, 65536)),
        part: Part::First,
        meaning: "Cookie of the rule's flows.",
    },
    row(
        "actions",
        Types::MAP,
        Part::First,
        "What happens to its packets. Without it, they are dropped.",
    ),
    row("description", Types::TEXT, Part::First, "Text for people."),
];

/// Keys of `actions`.
pub const ACTIONS: &[Key] = &[
    row("allow", Types::INT, Part::First, "1: the packet goes on. 0: it does not."),
    row("force_port_vlan", Types::INT, Part::First, "1: it goes on without a check of its VLAN."),
    row("meter", Types::TEXT, Part::First, "Name of a meter for these packets."),
    row(
        "mirror",
        Types::NAME,
        Part::First,
        "Port that gets a copy; the packet goes on, unless `allow` is given.",
    ),
    row(
        "output",
        Types::MAP_OR_LIST,
        Part::First,
        "Outputs and changes: a map, or a list in order.",
    ),
    row("ct", Types::MAP, Part::Conntrack, "Connection tracking of Open vSwitch."),
];

/// Keys of `output`, or of an item of it.
pub const OUTPUT: &[Key] = &[
    row("port", Types::NAME, Part::First, "Port, by number or name."),
    row("ports", Types::LIST, Part::First, "Ports, by number or name."),
    row(
        "set_fields",
        Types::LIST,
        Part::First,
        "Fields with new values: `{eth_dst: \"0e:00:00:00:00:02\"}`.",
    ),
    row("pop_vlans", Types::INT, Part::First, "Number of VLAN tags to remove."),
    row("vlan_vid", Types::INT, Part::First, "VLAN id of a tag to add."),
    row("vlan_vids", Types::LIST, Part::First, "Tags to add: ids, or `{vid, eth_type}`."),
    row("swap_vid", Types::INT, Part::First, "New VLAN id of the tag."),
    row("failover", Types::MAP, Part::First, "The first of several ports that is up."),
    row("tunnel", Types::MAP, Part::Tunnels, "A port of another switch of the stack."),
];

/// Keys of `output.failover`. Both must be given.
pub const FAILOVER: &[Key] = &[
    row("group_id", Types::INT, Part::First, "Number of the group."),
    row("ports", Types::LIST, Part::First, "Ports, the best one first."),
];

/// Keys of an item of `output.vlan_vids`.
pub const VLAN_VID: &[Key] = &[
    row("vid", Types::INT, Part::First, "VLAN id. It must be given."),
    row("eth_type", Types::INT, Part::First, "Ethernet type of the tag, `0x8100` if left out."),
];

/// Keys of `output.tunnel`.
pub const TUNNEL: &[Key] = &[
    row("dp", Types::TEXT, Part::Tunnels, "Name of the other switch. It must be given."),
    row("port", Types::NAME, Part::Tunnels, "Its port; without it, its table of hosts decides."),
    row("type", Types::TEXT, Part::Tunnels, "`vlan`."),
    row("tunnel_id", Types::NAME, Part::Tunnels, "VLAN of the tunnel; a free one if left out."),
    row(
        "exit_instructions",
        Types::LIST,
        Part::Tunnels,
        "Changes at the other end, as in `output`.",
    ),
    row("maintain_encapsulation", Types::BOOL, Part::Tunnels, "The packet keeps the tunnel's tag."),
    row("bi_directional", Types::BOOL, Part::Tunnels, "Packets come back too."),
    row("reverse", Types::BOOL, Part::Tunnels, "This is the way back. Not with `bi_directional`."),
];

/// Keys of `ct`.
pub const CT: &[Key] = &[
    row("flags", Types::INT, Part::Conntrack, "Flags."),
    row("alg", Types::INT, Part::Conntrack, "Port of an application's gateway."),
    row(
        "table",
        Types::INT,
        Part::Conntrack,
        "Table where the packet goes on. Needed without `clear`.",
    ),
    row("zone", Types::INT, Part::Conntrack, "Zone. Needed without `clear`."),
    row("zone_src", Types::INT, Part::Conntrack, "Field with the zone."),
    row("clear", Types::BOOL, Part::Conntrack, "Forget the state. Alone only."),
    row("nat", Types::MAP, Part::Conntrack, "Translate addresses."),
    row("mark", Types::INT, Part::Conntrack, "Mark of the connection."),
    row("label", Types::INT, Part::Conntrack, "Label of the connection."),
];

/// Keys of `ct.nat`.
pub const NAT: &[Key] = &[
    row("flags", Types::INT, Part::Conntrack, "Flags."),
    row("range_ipv4_min", Types::TEXT, Part::Conntrack, "First address."),
    row("range_ipv4_max", Types::TEXT, Part::Conntrack, "Last address."),
    row("range_ipv6_min", Types::TEXT, Part::Conntrack, "First address."),
    row("range_ipv6_max", Types::TEXT, Part::Conntrack, "Last address."),
    row("range_proto_min", Types::INT, Part::Conntrack, "First port."),
    row("range_proto_max", Types::INT, Part::Conntrack, "Last port."),
];

/// Old names of match fields, and the new ones.
pub const OLD_FIELDS: &[(&str, &str)] = &[
    ("dl_dst", "eth_dst"),
    ("dl_src", "eth_src"),
    ("dl_type", "eth_type"),
    ("dl_vlan", "vlan_vid"),
    ("nw_proto", "ip_proto"),
    ("nw_src", "ipv4_src"),
    ("nw_dst", "ipv4_dst"),
];

/// Match fields of Nicira, with their bits and whether a mask is allowed.
pub const NICIRA_FIELDS: &[(&str, u32, bool)] = &[
    ("eth_type_nxm", 16, false),
    ("ip_proto_nxm", 8, false),
    ("nw_ttl", 8, false),
    ("ct_state", 32, true),
    ("ct_zone", 16, false),
    ("ct_mark", 32, true),
    ("ct_label", 128, true),
];
