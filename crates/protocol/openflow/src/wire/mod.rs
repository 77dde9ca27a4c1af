//! The fixed parts of messages on the wire: big-endian, unaligned, byte for byte.
//!
//! Nothing here has a meaning by itself; the modules above give it one. Sections are those of the
//! OpenFlow Switch Specification 1.0.0 ("1.0 §") and 1.3.5 ("1.3.5 §").

pub(crate) mod v10;
pub(crate) mod v13;

pub(crate) use zerocopy::byteorder::network_endian::{U16, U32, U64};

/// Defines `#[repr(C)]` structs that are read from and written to bytes in place. Asserts the size
/// of each, in bytes.
macro_rules! wire {
    ($($(#[$doc:meta])* $name:ident: $size:literal { $($field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout,
            zerocopy::Immutable, zerocopy::Unaligned,
        )]
        #[repr(C)]
        pub(crate) struct $name { $(pub(crate) $field: $type,)* }
        const _: () = assert!(size_of::<$name>() == $size);

        impl Default for $name {
            fn default() -> Self {
                zerocopy::FromZeros::new_zeroed()
            }
        }
    )*};
}
pub(crate) use wire;

wire! {
    /// `ofp_header` (1.0 §5.1; 1.3.5 §7.1). The same in both versions.
    Header: 8 { version: u8, kind: u8, length: U16, xid: U32, }

    /// `ofp_error_msg` (1.0 §5.4.4; 1.3.5 §7.4.4). The same in both versions.
    Error: 4 { kind: U16, code: U16, }

    /// `ofp_switch_config` (1.0 §5.3.2; 1.3.5 §7.3.2). The same in both versions.
    SwitchConfig: 4 { flags: U16, miss_send_len: U16, }

    /// `ofp_switch_features` (1.0 §5.3.1; 1.3.5 §7.3.1). 1.0 has neither `auxiliary_id` (padding)
    /// nor `reserved` (there: `actions`), and is followed by ports.
    Features: 24 {
        datapath_id: U64,
        n_buffers: U32,
        n_tables: u8,
        auxiliary_id: u8,
        pad: [u8; 2],
        capabilities: U32,
        reserved: U32,
    }

    /// `ofp_stats_request` and `_reply` (1.0 §5.3.5). 1.3 (`ofp_multipart_*`, 1.3.5 §7.3.5) adds
    /// four bytes of padding.
    Multipart: 4 { kind: U16, flags: U16, }

    /// Type and length at the start of an action, an instruction, a property, or a hello element.
    Tlv: 4 { kind: U16, length: U16, }

    /// `ofp_desc_stats` (1.0 §5.3.5; 1.3.5 §7.3.5.1).
    Desc: 1056 {
        manufacturer: [u8; 256],
        hardware: [u8; 256],
        software: [u8; 256],
        serial_number: [u8; 32],
        datapath: [u8; 256],
    }

    /// `ofp_aggregate_stats_reply` (1.0 §5.3.5; 1.3.5 §7.3.5.3).
    Aggregate: 24 { packet_count: U64, byte_count: U64, flow_count: U32, pad: [u8; 4], }

    /// `ofp_packet_queue` of 1.0 (§5.2.2).
    Queue10: 8 { queue_id: U32, length: U16, pad: [u8; 2], }

    /// `ofp_packet_queue` of 1.3 (1.3.5 §7.2.2).
    Queue13: 16 { queue_id: U32, port: U32, length: U16, pad: [u8; 6], }

    /// The rest of `ofp_queue_prop_min_rate` and `_max_rate`.
    QueueRate: 8 { rate: U16, pad: [u8; 6], }

    /// `ofp_queue_prop_experimenter` after its header: experimenter, padding, data.
    QueueExperimenter: 8 { experimenter: U32, pad: [u8; 4], }
}
