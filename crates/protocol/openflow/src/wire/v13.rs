//! OpenFlow 1.3.5, wire version 0x04.

use super::{U16, U32, U64, wire};

wire! {
    /// `ofp_port` (§7.2.1).
    Port: 64 {
        port_no: U32,
        pad: [u8; 4],
        hw_addr: [u8; 6],
        pad2: [u8; 2],
        name: [u8; 16],
        config: U32,
        state: U32,
        curr: U32,
        advertised: U32,
        supported: U32,
        peer: U32,
        curr_speed: U32,
        max_speed: U32,
    }

    /// `ofp_match` before its fields (§7.2.3.1). The length does not include the padding.
    Match: 4 { kind: U16, length: U16, }

    /// `ofp_instruction_goto_table` after type and length (§7.2.4).
    InstructionGotoTable: 4 { table_id: u8, pad: [u8; 3], }
    /// `ofp_instruction_write_metadata` after type and length.
    InstructionWriteMetadata: 20 { pad: [u8; 4], metadata: U64, mask: U64, }

    /// `ofp_action_output` after type and length (§7.2.5).
    ActionOutput: 12 { port: U32, max_len: U16, pad: [u8; 6], }
    /// `ofp_action_output`, whole: most actions written are this one.
    Output: 16 { kind: U16, length: U16, port: U32, max_len: U16, pad: [u8; 6], }
    /// The 8-bit argument of `ofp_action_mpls_ttl` and `ofp_action_nw_ttl`.
    ActionU8: 4 { value: u8, pad: [u8; 3], }
    /// The 16-bit argument of `ofp_action_push` and `ofp_action_pop_mpls`.
    ActionU16: 4 { value: U16, pad: [u8; 2], }
    /// The 32-bit argument of `ofp_action_group` and `ofp_action_set_queue`.
    ActionU32: 4 { value: U32, }

    /// `ofp_flow_mod` before its match (§7.3.4.1).
    FlowMod: 40 {
        cookie: U64,
        cookie_mask: U64,
        table_id: u8,
        command: u8,
        idle_timeout: U16,
        hard_timeout: U16,
        priority: U16,
        buffer_id: U32,
        out_port: U32,
        out_group: U32,
        flags: U16,
        pad: [u8; 2],
    }

    /// `ofp_group_mod` (§7.3.4.2).
    GroupMod: 8 { command: U16, kind: u8, pad: u8, group_id: U32, }
    /// `ofp_bucket` (§7.3.4.2).
    Bucket: 16 { length: U16, weight: U16, watch_port: U32, watch_group: U32, pad: [u8; 4], }

    /// `ofp_port_mod` (§7.3.4.3).
    PortMod: 32 {
        port_no: U32,
        pad: [u8; 4],
        hw_addr: [u8; 6],
        pad2: [u8; 2],
        config: U32,
        mask: U32,
        advertise: U32,
        pad3: [u8; 4],
    }

    /// `ofp_table_mod` (§7.3.3).
    TableMod: 8 { table_id: u8, pad: [u8; 3], config: U32, }

    /// `ofp_meter_mod` (§7.3.4.4).
    MeterMod: 8 { command: U16, flags: U16, meter_id: U32, }
    /// `ofp_meter_band_header` and the four bytes after it that each band has (§7.3.4.4).
    MeterBand: 16 { kind: U16, length: U16, rate: U32, burst_size: U32, argument: [u8; 4], }

    /// `ofp_queue_get_config_request` and `_reply` (§7.3.6).
    QueueGetConfig: 8 { port: U32, pad: [u8; 4], }

    /// `ofp_flow_stats_request` and `ofp_aggregate_stats_request` before the match (§7.3.5.2).
    FlowStatsRequest: 32 {
        table_id: u8,
        pad: [u8; 3],
        out_port: U32,
        out_group: U32,
        pad2: [u8; 4],
        cookie: U64,
        cookie_mask: U64,
    }

    /// `ofp_flow_stats` before the match (§7.3.5.2).
    FlowStats: 48 {
        length: U16,
        table_id: u8,
        pad: u8,
        duration_sec: U32,
        duration_nsec: U32,
        priority: U16,
        idle_timeout: U16,
        hard_timeout: U16,
        flags: U16,
        pad2: [u8; 4],
        cookie: U64,
        packet_count: U64,
        byte_count: U64,
    }

    /// `ofp_table_stats` (§7.3.5.4).
    TableStats: 24 {
        table_id: u8,
        pad: [u8; 3],
        active_count: U32,
        lookup_count: U64,
        matched_count: U64,
    }

    /// `ofp_table_features` before its properties (§7.3.5.5).
    TableFeatures: 64 {
        length: U16,
        table_id: u8,
        pad: [u8; 5],
        name: [u8; 32],
        metadata_match: U64,
        metadata_write: U64,
        config: U32,
        max_entries: U32,
    }

    /// `ofp_port_stats_request`, `ofp_group_stats_request` and `ofp_meter_multipart_request`
    /// (§7.3.5.6, §7.3.5.9, §7.3.5.12): a number and padding. `ofp_port_stats` starts with the
    /// same.
    NumberRequest: 8 { number: U32, pad: [u8; 4], }

    /// `ofp_queue_stats_request` (§7.3.5.8), and the head of `ofp_queue_stats`.
    QueueStatsRequest: 8 { port_no: U32, queue_id: U32, }

    /// `ofp_group_stats` before its bucket counters (§7.3.5.9).
    GroupStats: 40 {
        length: U16,
        pad: [u8; 2],
        group_id: U32,
        ref_count: U32,
        pad2: [u8; 4],
        packet_count: U64,
        byte_count: U64,
        duration_sec: U32,
        duration_nsec: U32,
    }
    /// `ofp_bucket_counter` (§7.3.5.9) and `ofp_meter_band_stats` (§7.3.5.12).
    Counter: 16 { packet_count: U64, byte_count: U64, }

    /// `ofp_group_desc` before its buckets (§7.3.5.10).
    GroupDesc: 8 { length: U16, kind: u8, pad: u8, group_id: U32, }

    /// `ofp_group_features` (§7.3.5.11).
    GroupFeatures: 40 {
        types: U32,
        capabilities: U32,
        max_groups: [U32; 4],
        actions: [U32; 4],
    }

    /// `ofp_meter_stats` before its band counters (§7.3.5.12).
    MeterStats: 40 {
        meter_id: U32,
        length: U16,
        pad: [u8; 6],
        flow_count: U32,
        packet_in_count: U64,
        byte_in_count: U64,
        duration_sec: U32,
        duration_nsec: U32,
    }

    /// `ofp_meter_config` before its bands (§7.3.5.13).
    MeterConfig: 8 { length: U16, flags: U16, meter_id: U32, }

    /// `ofp_meter_features` (§7.3.5.14).
    MeterFeatures: 16 {
        max_meter: U32,
        band_types: U32,
        capabilities: U32,
        max_bands: u8,
        max_color: u8,
        pad: [u8; 2],
    }

    /// Experimenter id and type, at the start of `ofp_experimenter_header` (§7.5.4) after the
    /// header, of `ofp_experimenter_multipart_header` (§7.3.5.15), and of an experimenter error or
    /// property.
    Experimenter: 8 { experimenter: U32, kind: U32, }

    /// `ofp_packet_out` (§7.3.7).
    PacketOut: 16 { buffer_id: U32, in_port: U32, actions_len: U16, pad: [u8; 6], }

    /// `ofp_role_request` (§7.3.9).
    Role: 16 { role: U32, pad: [u8; 4], generation_id: U64, }

    /// `onf_bundle_add_msg` after its header, before the message (ONF extension 230).
    BundleAdd: 8 { bundle_id: U32, pad: [u8; 2], flags: U16, }

    /// `ofp_async_config` (§7.3.10): each mask for master and equal, then for slave.
    Async: 24 { packet_in: [U32; 2], port_status: [U32; 2], flow_removed: [U32; 2], }

    /// `ofp_packet_in` before its match (§7.4.1).
    PacketIn: 16 { buffer_id: U32, total_len: U16, reason: u8, table_id: u8, cookie: U64, }
    /// `ofp_packet_in` with its header (§7.1).
    PacketInFixed: 24 { version_and_kind: [u8; 2], length: U16, xid: U32, packet_in: PacketIn, }
    /// Everything before the packet, if the match has only an ingress port (§7.2.3).
    PacketInHead: 42 {
        fixed: PacketInFixed,
        match_head: [u8; 8],
        in_port: U32,
        pad: [u8; 6],
    }

    /// `ofp_flow_removed` before its match (§7.4.2).
    FlowRemoved: 40 {
        cookie: U64,
        priority: U16,
        reason: u8,
        table_id: u8,
        duration_sec: U32,
        duration_nsec: U32,
        idle_timeout: U16,
        hard_timeout: U16,
        packet_count: U64,
        byte_count: U64,
    }
}

wire! {
    /// `ofp_port_stats` counters, the same twelve in both versions (1.0 §5.3.5; §7.3.5.6).
    PortCounters: 96 {
        rx_packets: U64,
        tx_packets: U64,
        rx_bytes: U64,
        tx_bytes: U64,
        rx_dropped: U64,
        tx_dropped: U64,
        rx_errors: U64,
        tx_errors: U64,
        rx_frame_err: U64,
        rx_over_err: U64,
        rx_crc_err: U64,
        collisions: U64,
    }
    /// `ofp_queue_stats` counters, the same in both versions (1.0 §5.3.5; §7.3.5.8).
    QueueCounters: 24 { tx_bytes: U64, tx_packets: U64, tx_errors: U64, }
    /// Age (1.3 adds it to ports, queues, groups and meters).
    Duration: 8 { seconds: U32, nanoseconds: U32, }
}
