//! Keys of `dps.NAME` and of the sections in it.

use std::sync::Arc;

use super::{ANY, COUNT, Preset, SECONDS, keys};

/// Cookie of all flows, unless a switch has its own.
const COOKIE: i128 = 1_524_372_928;

/// Cookies have 64 bits.
const U64: Option<(i128, i128)> = Some((0, u64::MAX as i128));
/// Priorities of flows have 16 bits.
const PRIORITY: Option<(i128, i128)> = Some((0, u16::MAX as i128));

keys! {
    /// Plain settings of a switch.
    SwitchSettings,
    /// Keys of `dps.NAME`.
    DP {
        cookie: u64, INT, Preset::Int(COOKIE), U64, First,
            "Cookie of all flows. Controllers that share a switch have the same.";
        strict_packet_in_cookie: bool, BOOL, Preset::Bool(true), ANY, First,
            "Ignore packet-ins with another cookie.";
        timeout: u16, INT, Preset::Int(300), Some((15, 65535)), First,
            "Time after which a silent host is forgotten, in seconds.";
        arp_neighbor_timeout: u16, INT, Preset::Int(30), SECONDS, Routing,
            "Time after which an IPv4 neighbour is resolved again, in seconds; less than half of `timeout`.";
        nd_neighbor_timeout: u16, INT, Preset::Int(30), SECONDS, Routing,
            "Time after which an IPv6 neighbour is resolved again, in seconds; less than half of `timeout`.";
        learn_jitter: u32, INT, Preset::Int(0), COUNT, First,
            "Spread of the expiry of hosts, in seconds. 0: three times the square root of `timeout`.";
        learn_ban_timeout: u32, INT, Preset::Int(0), COUNT, First,
            "Time without learning after a limit or a loop, in seconds. 0: as `learn_jitter`.";
        cache_update_guard_time: u32, INT, Preset::Int(0), COUNT, First,
            "The flows of a host are not written again within this time, in seconds. 0: half of `timeout`.";
        ignore_learn_ins: u32, INT, Preset::Int(10), COUNT, First,
            "Ignore about one packet-in of this number for learning.";
        use_idle_timeout: bool, BOOL, Preset::Bool(false), ANY, First,
            "Hosts expire by the switch's flow_removed.";
        idle_dst: bool, BOOL, Preset::Bool(true), ANY, First,
            "Flows by destination have an idle timeout.";
        drop_broadcast_source_address: bool, BOOL, Preset::Bool(true), ANY, First,
            "Drop packets from the broadcast address.";
        drop_spoofed_faucet_mac: bool, BOOL, Preset::Bool(true), ANY, First,
            "Drop packets from the controller's own addresses.";
        group_table: bool, BOOL, Preset::Bool(false), ANY, First,
            "Flood with a group a VLAN. Not with `combinatorial_port_flood`.";
        combinatorial_port_flood: bool, BOOL, Preset::Bool(false), ANY, First,
            "Flood with a flow for each port of a VLAN, not with one for all.";
        multi_out: bool, BOOL, Preset::Bool(true), ANY, First,
            "One packet-out to many ports.";
        proactive_learn_v4: bool, BOOL, Preset::Bool(true), ANY, Routing,
            "Resolve IPv4 neighbours of packets in transit.";
        proactive_learn_v6: bool, BOOL, Preset::Bool(true), ANY, Routing,
            "Resolve IPv6 neighbours of packets in transit.";
        max_hosts_per_resolve_cycle: u32, INT, Preset::Int(5), COUNT, Routing,
            "Neighbours that are resolved in one turn.";
        max_host_fib_retry_count: u32, INT, Preset::Int(10), COUNT, Routing,
            "Tries to resolve a neighbour.";
        max_resolve_backoff_time: u32, INT, Preset::Int(64), COUNT, Routing,
            "Longest pause between tries, in seconds.";
        advertise_interval: u32, INT, Preset::Int(30), COUNT, Routing,
            "Interval of router advertisements, in seconds.";
        fast_advertise_interval: u32, INT, Preset::Int(5), COUNT, First,
            "Interval of LLDP and LACP, in seconds.";
        packetin_pps: Option<u32>, INT, Preset::Nothing, COUNT, First,
            "Maximum packet-ins a second, by a meter of the switch.";
        slowpath_pps: Option<u32>, INT, Preset::Nothing, COUNT, First,
            "Maximum packets a second on the slow path, by a meter of the switch.";
        metrics_rate_limit_sec: u32, INT, Preset::Int(0), COUNT, First,
            "Minimum interval of updates of metrics, in seconds.";
        lacp_timeout: u32, INT, Preset::Int(30), COUNT, Lacp,
            "A port without LACP for this time, in seconds, is down.";
        priority_offset: u16, INT, Preset::Int(0), PRIORITY, First,
            "Added to the priorities below.";
        lowest_priority: Option<u16>, INT, Preset::Other("`priority_offset`"), PRIORITY, First,
            "Priority of flows for what nothing else matches.";
        low_priority: Option<u16>, INT, Preset::Other("9000 + `priority_offset`"), PRIORITY, First,
            "Priority of general flows.";
        high_priority: Option<u16>, INT, Preset::Other("`low_priority` + 1"), PRIORITY, First,
            "Priority of special flows.";
        highest_priority: Option<u16>, INT, Preset::Other("`high_priority` + 98"), PRIORITY, First,
            "Priority of flows that block.";
        global_vlan: u16, INT, Preset::Int(0), Some((0, 4095)), Routing,
            "VLAN id of the one table of routes of all VLANs of a router. 0: a table each.";
        min_wildcard_table_size: u32, INT, Preset::Int(32), Some((1, u32::MAX as i128)), First,
            "Sizes of tables with wildcards are multiples of it (table features).";
        max_wildcard_table_size: u32, INT, Preset::Int(1280), COUNT, First,
            "Maximum size of a table with wildcards (table features).";
        port_table_scale_factor: f64, FLOAT, Preset::Float(1.0), ANY, First,
            "Factor of the sizes of tables that grow with ports (table features).";
        use_classification: bool, BOOL, Preset::Bool(false), ANY, First,
            "A table of its own for filters.";
        egress_pipeline: bool, BOOL, Preset::Bool(false), ANY, First,
            "Tables at the output. `acls_out` turns it on.";
        ofchannel_log: Option<Arc<str>>, TEXT, Preset::Nothing, ANY, First,
            "File for the text of all messages to the switch.";
        =
        "dp_id": INT, Preset::Nothing, First,
            "Datapath id. It must be given.";
        "name": TEXT, Preset::Other("the key"), First,
            "Its name, which must be the key.";
        "description": TEXT, Preset::Other("its name"), First,
            "Text for people.";
        "hardware": TEXT, Preset::Text("Open vSwitch"), First,
            "Kind of switch; a list is below.";
        "interfaces": MAP, Preset::Nothing, First,
            "Ports, by number or name.";
        "interface_ranges": MAP, Preset::Nothing, First,
            "Settings of several ports: `1-6,8`. A port of `interfaces` overrides them key by key.";
        "faucet_dp_mac": TEXT, Preset::Text("0e:00:00:00:00:01"), First,
            "Source of the controller's LLDP and LACP.";
        "dp_acls": LIST, Preset::Nothing, First,
            "ACLs of all ports; then no port has its own.";
        "lldp_beacon": MAP, Preset::Nothing, First,
            "LLDP of all ports.";
        "stack": MAP, Preset::Nothing, Stacking,
            "Part of this switch in a stack.";
        "dot1x": MAP, Preset::Nothing, Dot1x,
            "802.1X.";
        "table_sizes": MAP, Preset::Nothing, First,
            "Sizes of tables by name (table features).";
    }
}

keys! {
    /// LLDP that a switch sends.
    SwitchLldp,
    /// Keys of `dps.NAME.lldp_beacon`.
    DP_LLDP {
        send_interval: u32, INT, Preset::Int(5), Some((1, u32::MAX as i128)), First,
            "Interval of LLDP of a port, in seconds.";
        max_per_interval: u32, INT, Preset::Int(5), COUNT, First,
            "Maximum number of ports in one turn.";
        system_name: Option<Arc<str>>, TEXT, Preset::Other("name of the switch"), ANY, First,
            "System name in LLDP.";
        =
    }
}

keys! {
    /// What a switch does in a stack.
    StackSettings,
    /// Keys of `dps.NAME.stack`.
    DP_STACK {
        priority: Option<u32>, INT, Preset::Nothing, COUNT, Stacking,
            "The switch may be the root; the lowest number is. 0: it may not.";
        route_learning: bool, BOOL, Preset::Bool(false), ANY, Stacking,
            "Learn as routing does; routing turns it on.";
        down_time_multiple: u32, INT, Preset::Int(3), COUNT, Stacking,
            "Intervals after which a switch that is away is not healthy.";
        min_stack_health: f64, FLOAT, Preset::Float(1.0), ANY, Stacking,
            "Share of stack ports that must be up for a healthy switch.";
        min_lacp_health: f64, FLOAT, Preset::Float(1.0), ANY, Stacking,
            "Share of LACP ports that must be up for a healthy switch.";
        =
    }
}

keys! {
    /// 802.1X of a switch.
    Dot1xSettings,
    /// Keys of `dps.NAME.dot1x`.
    DOT1X {
        nfv_intf: Option<Arc<str>>, TEXT, Preset::Nothing, ANY, Dot1x,
            "Interface of the controller's machine towards the switch.";
        nfv_sw_port: Option<u32>, INT, Preset::Nothing, COUNT, Dot1x,
            "Port of the switch towards the controller's machine; it must be `output_only`.";
        radius_ip: Option<Arc<str>>, TEXT, Preset::Nothing, ANY, Dot1x,
            "Address of the RADIUS server.";
        radius_port: u16, INT, Preset::Int(1812), SECONDS, Dot1x,
            "UDP port of the RADIUS server.";
        radius_secret: Option<Arc<str>>, TEXT, Preset::Nothing, ANY, Dot1x,
            "Secret that the RADIUS server shares.";
        auth_acl: Option<Arc<str>>, TEXT, Preset::Nothing, ANY, Dot1x,
            "ACL of a port after a login.";
        noauth_acl: Option<Arc<str>>, TEXT, Preset::Nothing, ANY, Dot1x,
            "ACL of a port before a login.";
        =
    }
}

keys! {
    /// Sizes of tables, in flows.
    TableSizes,
    /// Keys of `dps.NAME.table_sizes`.
    TABLE_SIZES {
        port_acl: Option<u32>, INT, Preset::Nothing, COUNT, First, "Size of this table, in flows.";
        vlan: Option<u32>, INT, Preset::Nothing, COUNT, First, "Size of this table, in flows.";
        vlan_acl: Option<u32>, INT, Preset::Nothing, COUNT, First, "Size of this table, in flows.";
        classification: Option<u32>, INT, Preset::Nothing, COUNT, First, "Size of this table, in flows.";
        eth_src: Option<u32>, INT, Preset::Nothing, COUNT, First, "Size of this table, in flows.";
        ipv4_fib: Option<u32>, INT, Preset::Nothing, COUNT, First, "Size of this table, in flows.";
        ipv6_fib: Option<u32>, INT, Preset::Nothing, COUNT, First, "Size of this table, in flows.";
        vip: Option<u32>, INT, Preset::Nothing, COUNT, First, "Size of this table, in flows.";
        eth_dst_hairpin: Option<u32>, INT, Preset::Nothing, COUNT, First, "Size of this table, in flows.";
        eth_dst: Option<u32>, INT, Preset::Nothing, COUNT, First, "Size of this table, in flows.";
        flood: Option<u32>, INT, Preset::Nothing, COUNT, First, "Size of this table, in flows.";
        =
    }
}
