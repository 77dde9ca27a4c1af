//! Keys of interfaces and of the sections in them.

use std::sync::Arc;

use super::{ANY, COUNT, Key, Part, Preset, SECONDS, Types, keys, row};

keys! {
    /// Plain settings of a port.
    PortSettings,
    /// Keys of `dps.NAME.interfaces.PORT` and `dps.NAME.interface_ranges.RANGE`.
    PORT {
        enabled: bool, BOOL, Preset::Bool(true), ANY, First,
            "The port is used.";
        permanent_learn: bool, BOOL, Preset::Bool(false), ANY, First,
            "A host that was learned here stays, and is dropped at other ports.";
        unicast_flood: bool, BOOL, Preset::Bool(true), ANY, First,
            "Packets to unknown hosts leave by this port too.";
        max_hosts: u32, INT, Preset::Int(255), COUNT, First,
            "Maximum number of hosts.";
        hairpin: bool, BOOL, Preset::Bool(false), ANY, First,
            "Packets may leave by the port that they came in by. Not with `hairpin_unicast`.";
        hairpin_unicast: bool, BOOL, Preset::Bool(false), ANY, First,
            "The same, for packets to known hosts only.";
        loop_protect: bool, BOOL, Preset::Bool(false), ANY, First,
            "A host that moves here and away quickly bans the port for a time.";
        loop_protect_external: bool, BOOL, Preset::Bool(false), ANY, First,
            "The port leads to a network that has other ways back; floods use one such port.";
        restricted_bcast_arpnd: bool, BOOL, Preset::Bool(false), ANY, First,
            "Of broadcasts, only ARP and neighbour discovery pass between such ports.";
        opstatus_reconf: bool, BOOL, Preset::Bool(true), ANY, First,
            "Use the port's state. `false`: it counts as up.";
        receive_lldp: bool, BOOL, Preset::Bool(false), ANY, First,
            "LLDP goes to the controller.";
        max_lldp_lost: u32, INT, Preset::Int(3), COUNT, Stacking,
            "Lost LLDP after which a stack port is down.";
        count_untag_vlan_miss: bool, BOOL, Preset::Bool(false), ANY, First,
            "A flow counts untagged packets without a VLAN.";
        lacp: u16, INT, Preset::Int(0), SECONDS, Lacp,
            "Number of the link aggregation. 0: none.";
        lacp_active: bool, BOOL, Preset::Bool(false), ANY, Lacp,
            "Send LACP first.";
        lacp_collect_and_distribute: bool, BOOL, Preset::Bool(false), ANY, Lacp,
            "Always collect and distribute.";
        lacp_selected: bool, BOOL, Preset::Bool(false), ANY, Lacp,
            "Force this state. Only one of the three.";
        lacp_unselected: bool, BOOL, Preset::Bool(false), ANY, Lacp,
            "Force this state. Only one of the three.";
        lacp_standby: bool, BOOL, Preset::Bool(false), ANY, Lacp,
            "Force this state. Only one of the three.";
        lacp_resp_interval: u32, INT, Preset::Int(1), Some((1, 65535)), Lacp,
            "Minimum interval of answers, in seconds.";
        lacp_port_priority: u8, INT, Preset::Int(255), Some((0, 255)), Lacp,
            "Port priority in LACP.";
        lacp_port_id: i64, INT, Preset::Int(-1), Some((-1, 65535)), Lacp,
            "Port id in LACP. -1: from the switch's position and the port.";
        dot1x: bool, BOOL, Preset::Bool(false), ANY, Dot1x,
            "Hosts log in.";
        dot1x_acl: bool, BOOL, Preset::Bool(false), ANY, Dot1x,
            "`auth_acl` and `noauth_acl` of the switch apply.";
        dot1x_mab: bool, BOOL, Preset::Bool(false), ANY, Dot1x,
            "Hosts without 802.1X log in by their address. Not with `dot1x_dyn_acl`.";
        dot1x_dyn_acl: bool, BOOL, Preset::Bool(false), ANY, Dot1x,
            "RADIUS names the ACL. Not with `dot1x_acl`.";
        =
        "number": INT, Preset::Other("the key"), First,
            "Port number of the switch.";
        "name": TEXT, Preset::Other("the key"), First,
            "Its name.";
        "description": TEXT, Preset::Other("its name"), First,
            "Text for people.";
        "native_vlan": NAME, Preset::Nothing, First,
            "VLAN of untagged packets, by id or name.";
        "tagged_vlans": LIST, Preset::Nothing, First,
            "VLANs of tagged packets, by id or name.";
        "output_only": BOOL, Preset::Bool(false), First,
            "Packets from this port are dropped.";
        "mirror": NAMES, Preset::Nothing, First,
            "This port gets copies of all packets of these ports.";
        "acl_in": NAME, Preset::Nothing, First,
            "Old form of `acls_in` with one ACL.";
        "acls_in": LIST, Preset::Nothing, First,
            "ACLs of packets from this port, in order.";
        "lldp_beacon": MAP, Preset::Nothing, First,
            "LLDP of this port.";
        "lldp_peer_mac": TEXT, Preset::Nothing, First,
            "Only LLDP from this address counts.";
        "stack": MAP, Preset::Nothing, Stacking,
            "The port of another switch at the other end.";
        "lacp_passthrough": LIST, Preset::Nothing, Lacp,
            "This port is down if one of these is.";
        "coprocessor": MAP, Preset::Nothing, Coprocessor,
            "A coprocessor is at this port.";
    }
}

keys! {
    /// LLDP that leaves by a port.
    PortLldp,
    /// Keys of `interfaces.PORT.lldp_beacon`.
    PORT_LLDP {
        enable: bool, BOOL, Preset::Bool(false), ANY, First,
            "Send LLDP.";
        system_name: Option<Arc<str>>, TEXT, Preset::Other("that of the switch"), ANY, First,
            "System name in LLDP.";
        port_descr: Option<Arc<str>>, TEXT, Preset::Other("description of the port"), ANY, First,
            "Port description in LLDP.";
        =
        "org_tlvs": LIST, Preset::Nothing, First,
            "Further TLVs: `{oui, subtype, info}`.";
    }
}

keys! {
    /// A TLV of an organisation, in LLDP.
    OrgTlv,
    /// Keys of an item of `interfaces.PORT.lldp_beacon.org_tlvs`.
    ORG_TLV {
        oui: u32, INT, Preset::Nothing, Some((0, 0xff_ffff)), First,
            "Number of the organisation, 24 bits.";
        subtype: u8, INT, Preset::Nothing, Some((0, 255)), First,
            "Number of the TLV.";
        info: Arc<str>, TEXT, Preset::Nothing, ANY, First,
            "Its content: hexadecimal digits, or else text.";
        =
    }
}

keys! {
    /// Plain settings of a coprocessor.
    CoprocessorSettings,
    /// Keys of `interfaces.PORT.coprocessor`.
    COPROCESSOR {
        vlan_vid_base: u16, INT, Preset::Int(1000), Some((0, 4095)), Coprocessor,
            "A packet with VLAN id base + n leaves by port n.";
        =
        "strategy": TEXT, Preset::Nothing, Coprocessor,
            "`vlan_vid`, the only one. It must be given.";
    }
}

/// Keys of `interfaces.PORT.stack`.
pub const PORT_STACK: &[Key] = &[
    row(
        "dp",
        Types::TEXT,
        Part::Stacking,
        "Name of the other switch. It must be given; its port must lead back here.",
    ),
    row("port", Types::NAME, Part::Stacking, "Its port, by number or name. It must be given."),
];
