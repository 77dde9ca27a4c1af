//! OpenFlow 1.0.0, wire version 0x01.

use super::{U16, U32, U64, wire};

wire! {
    /// `ofp_phy_port` (§5.2.1).
    Port: 48 {
        port_no: U16,
        hw_addr: [u8; 6],
        name: [u8; 16],
        config: U32,
        state: U32,
        curr: U32,
        advertised: U32,
        supported: U32,
        peer: U32,
    }

    /// `ofp_match` (§5.2.3).
    Match: 40 {
        wildcards: U32,
        in_port: U16,
        dl_src: [u8; 6],
        dl_dst: [u8; 6],
        dl_vlan: U16,
        dl_vlan_pcp: u8,
        pad1: u8,
        dl_type: U16,
        nw_tos: u8,
        nw_proto: u8,
        pad2: [u8; 2],
        nw_src: [u8; 4],
        nw_dst: [u8; 4],
        tp_src: U16,
        tp_dst: U16,
    }

    /// `ofp_action_output` (§5.2.4), after type and length.
    ActionOutput: 4 { port: U16, max_len: U16, }
    /// `ofp_action_output`, whole: most actions written are this one.
    Output: 8 { kind: U16, length: U16, port: U16, max_len: U16, }
    /// The 16-bit argument of `ofp_action_vlan_vid` and `ofp_action_tp_port`.
    ActionU16: 4 { value: U16, pad: [u8; 2], }
    /// The 8-bit argument of `ofp_action_vlan_pcp` and `ofp_action_nw_tos`.
    ActionU8: 4 { value: u8, pad: [u8; 3], }
    /// `ofp_action_dl_addr`.
    ActionMac: 12 { address: [u8; 6], pad: [u8; 6], }
    /// `ofp_action_enqueue`.
    ActionEnqueue: 12 { port: U16, pad: [u8; 6], queue_id: U32, }

    /// `nx_vendor_error` of Open vSwitch, after type and code of an error.
    VendorError: 8 { vendor: U32, kind: U16, code: U16, }

    /// `ofp_flow_mod` after its match (§5.3.3).
    FlowMod: 24 {
        cookie: U64,
        command: U16,
        idle_timeout: U16,
        hard_timeout: U16,
        priority: U16,
        buffer_id: U32,
        out_port: U16,
        flags: U16,
    }

    /// `ofp_port_mod` (§5.3.3).
    PortMod: 24 {
        port_no: U16,
        hw_addr: [u8; 6],
        config: U32,
        mask: U32,
        advertise: U32,
        pad: [u8; 4],
    }

    /// `ofp_queue_get_config_request` (§5.3.4).
    QueueGetConfigRequest: 4 { port: U16, pad: [u8; 2], }
    /// `ofp_queue_get_config_reply` (§5.3.4).
    QueueGetConfigReply: 8 { port: U16, pad: [u8; 6], }

    /// `ofp_flow_stats_request` and `ofp_aggregate_stats_request` after the match (§5.3.5).
    FlowStatsRequest: 4 { table_id: u8, pad: u8, out_port: U16, }

    /// `ofp_flow_stats` before the match (§5.3.5).
    FlowStatsHead: 4 { length: U16, table_id: u8, pad: u8, }
    /// `ofp_flow_stats` after the match.
    FlowStatsTail: 44 {
        duration_sec: U32,
        duration_nsec: U32,
        priority: U16,
        idle_timeout: U16,
        hard_timeout: U16,
        pad: [u8; 6],
        cookie: U64,
        packet_count: U64,
        byte_count: U64,
    }

    /// `ofp_table_stats` (§5.3.5).
    TableStats: 64 {
        table_id: u8,
        pad: [u8; 3],
        name: [u8; 32],
        wildcards: U32,
        max_entries: U32,
        active_count: U32,
        lookup_count: U64,
        matched_count: U64,
    }

    /// `ofp_port_stats_request` (§5.3.5).
    PortStatsRequest: 8 { port_no: U16, pad: [u8; 6], }
    /// `ofp_port_stats` before its counters (§5.3.5).
    PortStats: 8 { port_no: U16, pad: [u8; 6], }

    /// `ofp_queue_stats_request` (§5.3.5), and the head of `ofp_queue_stats`.
    QueueStatsRequest: 8 { port_no: U16, pad: [u8; 2], queue_id: U32, }

    /// `ofp_packet_out` (§5.3.6).
    PacketOut: 8 { buffer_id: U32, in_port: U16, actions_len: U16, }

    /// `ofp_packet_in` (§5.4.1).
    PacketIn: 10 { buffer_id: U32, total_len: U16, in_port: U16, reason: u8, pad: u8, }
    /// `ofp_packet_in` with its header (§5.1).
    PacketInHead: 18 { version_and_kind: [u8; 2], length: U16, xid: U32, packet_in: PacketIn, }

    /// `ofp_flow_removed` after its match (§5.4.2).
    FlowRemoved: 40 {
        cookie: U64,
        priority: U16,
        reason: u8,
        pad: u8,
        duration_sec: U32,
        duration_nsec: U32,
        idle_timeout: U16,
        pad2: [u8; 2],
        packet_count: U64,
        byte_count: U64,
    }

    /// `ofp_port_status` before the port (§5.4.3). The same in 1.3 (1.3.5 §7.4.3).
    PortStatus: 8 { reason: u8, pad: [u8; 7], }
}
