//! Generators of the contents of multipart messages.

use bellrock_openflow::*;
use proptest::prelude::*;
use proptest::sample::select;

use super::generate::*;
use super::matches::matching;

fn flow_stats_request(version: Version) -> impl Strategy<Value = FlowStatsRequest<'static>> {
    let only13 = match version {
        Version::V1_0 => Just((FlowMod::ANY_GROUP, 0, 0)).boxed(),
        Version::V1_3 => any::<(u32, u64, u64)>().boxed(),
    };
    (any::<u8>(), port(version), only13, matching(version)).prop_map(
        |(table, out_port, (out_group, cookie, cookie_mask), matching)| FlowStatsRequest {
            table,
            out_port,
            out_group,
            cookie,
            cookie_mask,
            matching,
        },
    )
}

fn queue_stats_request(version: Version) -> impl Strategy<Value = QueueStatsRequest> {
    (port(version), any::<u32>()).prop_map(|(port, queue)| QueueStatsRequest { port, queue })
}

/// In 1.3 the data starts with a type of four bytes.
fn experimenter(version: Version) -> impl Strategy<Value = (u32, Bytes<'static>)> {
    (any::<u32>(), bytes(), filling(4)).prop_map(move |(experimenter, any, with_type)| {
        (experimenter, if version == Version::V1_0 { any } else { with_type })
    })
}

pub fn request_body(version: Version) -> BoxedStrategy<RequestBody<'static>> {
    let both = prop_oneof![
        select(vec![RequestBody::Desc, RequestBody::Table, RequestBody::PortDesc]),
        flow_stats_request(version).prop_map(RequestBody::Flow),
        flow_stats_request(version).prop_map(RequestBody::Aggregate),
        port(version).prop_map(RequestBody::PortStats),
        queue_stats_request(version).prop_map(RequestBody::Queue),
        experimenter(version)
            .prop_map(|(experimenter, data)| RequestBody::Experimenter { experimenter, data }),
    ];
    let only13 = prop_oneof![
        any::<u32>().prop_map(RequestBody::Group),
        any::<u32>().prop_map(RequestBody::Meter),
        any::<u32>().prop_map(RequestBody::MeterConfig),
        select(vec![
            RequestBody::GroupDesc,
            RequestBody::GroupFeatures,
            RequestBody::MeterFeatures
        ]),
        list(table_features()).prop_map(RequestBody::TableFeatures),
    ];
    match version {
        Version::V1_0 => both.boxed(),
        Version::V1_3 => prop_oneof![both, only13].boxed(),
    }
}

/// Seconds and nanoseconds, if the version has them.
fn age(version: Version) -> BoxedStrategy<(u32, u32)> {
    match version {
        Version::V1_0 => Just((0, 0)).boxed(),
        Version::V1_3 => any::<(u32, u32)>().boxed(),
    }
}

fn desc() -> impl Strategy<Value = Desc<'static>> {
    proptest::array::uniform5("\\PC{0,40}").prop_map(|[a, b, c, d, e]| {
        let texts: &'static DescBuf = Box::leak(Box::new(DescBuf::new(&a, &b, &c, &d, &e)));
        texts.view()
    })
}

fn flow_stats(version: Version) -> impl Strategy<Value = FlowStats<'static>> {
    let flags = match version {
        Version::V1_0 => Just(FlowFlags::empty()).boxed(),
        Version::V1_3 => flow_flags(version).boxed(),
    };
    let numbers = any::<(u8, u32, u32, u16, u16, u16, u64, u64, u64)>();
    (numbers, flags, matching(version), instructions(version)).prop_map(
        |(numbers, flags, matching, instructions)| FlowStats {
            table: numbers.0,
            duration_sec: numbers.1,
            duration_nsec: numbers.2,
            priority: numbers.3,
            idle_timeout: numbers.4,
            hard_timeout: numbers.5,
            flags,
            cookie: numbers.6,
            packet_count: numbers.7,
            byte_count: numbers.8,
            matching,
            instructions,
        },
    )
}

fn table_stats(version: Version) -> impl Strategy<Value = TableStats> {
    (any::<(u8, u32, u64, u64)>(), text(), any::<(u32, u32)>()).prop_map(
        move |((table, active_count, lookup_count, matched_count), name, details)| TableStats {
            table,
            v1_0: (version == Version::V1_0).then_some(TableDetails {
                name,
                wildcards: details.0,
                max_entries: details.1,
            }),
            active_count,
            lookup_count,
            matched_count,
        },
    )
}

fn port_stats(version: Version) -> impl Strategy<Value = PortStats> {
    (port(version), any::<[u64; 12]>(), age(version)).prop_map(|(port, c, age)| PortStats {
        port,
        counters: PortCounters {
            rx_packets: c[0],
            tx_packets: c[1],
            rx_bytes: c[2],
            tx_bytes: c[3],
            rx_dropped: c[4],
            tx_dropped: c[5],
            rx_errors: c[6],
            tx_errors: c[7],
            rx_frame_err: c[8],
            rx_over_err: c[9],
            rx_crc_err: c[10],
            collisions: c[11],
        },
        duration_sec: age.0,
        duration_nsec: age.1,
    })
}

fn queue_stats(version: Version) -> impl Strategy<Value = QueueStats> {
    (queue_stats_request(version), any::<[u64; 3]>(), age(version)).prop_map(|(of, c, age)| {
        QueueStats {
            port: of.port,
            queue: of.queue,
            tx_bytes: c[0],
            tx_packets: c[1],
            tx_errors: c[2],
            duration_sec: age.0,
            duration_nsec: age.1,
        }
    })
}

fn counters() -> impl Strategy<Value = List<'static, PacketByteCount>> {
    list(
        any::<(u64, u64)>()
            .prop_map(|(packet_count, byte_count)| PacketByteCount { packet_count, byte_count }),
    )
}

fn group_stats() -> impl Strategy<Value = GroupStats<'static>> {
    (any::<(u32, u32, u64, u64, u32, u32)>(), counters()).prop_map(|(n, buckets)| GroupStats {
        group: n.0,
        ref_count: n.1,
        packet_count: n.2,
        byte_count: n.3,
        duration_sec: n.4,
        duration_nsec: n.5,
        buckets,
    })
}

fn meter_stats() -> impl Strategy<Value = MeterStats<'static>> {
    (any::<(u32, u32, u64, u64, u32, u32)>(), counters()).prop_map(|(n, bands)| MeterStats {
        meter: n.0,
        flow_count: n.1,
        packet_in_count: n.2,
        byte_in_count: n.3,
        duration_sec: n.4,
        duration_nsec: n.5,
        bands,
    })
}

fn oxm_id() -> impl Strategy<Value = OxmId> {
    let basic =
        (select(Field::ALL), any::<bool>()).prop_map(|(field, masked)| OxmId::of(field, masked));
    let other = (0_u32..0xffff_0000).prop_map(|header| OxmId { header, experimenter: None });
    let experimenter = any::<(u16, u32)>().prop_map(|(low, experimenter)| OxmId {
        header: 0xffff_0000 | u32::from(low),
        experimenter: Some(experimenter),
    });
    prop_oneof![basic, other, experimenter]
}

fn table_property() -> impl Strategy<Value = TableProperty<'static>> {
    let instructions =
        || list((any::<u16>(), bytes()).prop_map(|(kind, body)| InstructionId { kind, body }));
    let actions = || list((any::<u16>(), bytes()).prop_map(|(kind, body)| ActionId { kind, body }));
    prop_oneof![
        (any::<bool>(), instructions())
            .prop_map(|(miss, ids)| TableProperty::Instructions { miss, ids }),
        (any::<bool>(), bytes())
            .prop_map(|(miss, tables)| TableProperty::NextTables { miss, tables }),
        (any::<bool>(), actions())
            .prop_map(|(miss, ids)| TableProperty::WriteActions { miss, ids }),
        (any::<bool>(), actions())
            .prop_map(|(miss, ids)| TableProperty::ApplyActions { miss, ids }),
        list(oxm_id()).prop_map(|oxm| TableProperty::Match { oxm }),
        list(oxm_id()).prop_map(|oxm| TableProperty::Wildcards { oxm }),
        (any::<bool>(), list(oxm_id()))
            .prop_map(|(miss, oxm)| TableProperty::WriteSetField { miss, oxm }),
        (any::<bool>(), list(oxm_id()))
            .prop_map(|(miss, oxm)| TableProperty::ApplySetField { miss, oxm }),
        (select(vec![9_u16, 11, 16, 0xfffe, 0xffff]), bytes())
            .prop_map(|(kind, body)| TableProperty::Unknown { kind, body }),
    ]
}

fn table_features() -> impl Strategy<Value = TableFeatures<'static>> {
    (any::<(u8, u64, u64, u32, u32)>(), text(), list(table_property())).prop_map(
        |(n, name, properties)| TableFeatures {
            table: n.0,
            name,
            metadata_match: n.1,
            metadata_write: n.2,
            config: n.3,
            max_entries: n.4,
            properties,
        },
    )
}

pub fn reply_body(version: Version) -> BoxedStrategy<ReplyBody<'static>> {
    let aggregate = any::<(u64, u64, u32)>().prop_map(|(packet_count, byte_count, flow_count)| {
        Aggregate { packet_count, byte_count, flow_count }
    });
    let both = prop_oneof![
        1 => desc().prop_map(ReplyBody::Desc),
        3 => list(flow_stats(version)).prop_map(ReplyBody::Flow),
        1 => aggregate.prop_map(ReplyBody::Aggregate),
        1 => list(table_stats(version)).prop_map(ReplyBody::Table),
        1 => list(port_stats(version)).prop_map(ReplyBody::PortStats),
        1 => list(queue_stats(version)).prop_map(ReplyBody::Queue),
        1 => list(port_desc(version)).prop_map(ReplyBody::PortDesc),
        1 => experimenter(version)
            .prop_map(|(experimenter, data)| ReplyBody::Experimenter { experimenter, data }),
    ];
    match version {
        Version::V1_0 => both.boxed(),
        Version::V1_3 => prop_oneof![both, reply_body_only13()].boxed(),
    }
}

fn reply_body_only13() -> impl Strategy<Value = ReplyBody<'static>> {
    let group_desc = (group_type(), any::<u32>(), list(bucket()))
        .prop_map(|(kind, group, buckets)| GroupDesc { kind, group, buckets });
    let group_features = any::<(u32, u32, [u32; 4], [u32; 4])>().prop_map(
        |(types, capabilities, max_groups, actions)| GroupFeatures {
            types,
            capabilities,
            max_groups,
            actions,
        },
    );
    let meter_config = (meter_flags(), any::<u32>(), list(band()))
        .prop_map(|(flags, meter, bands)| MeterConfig { flags, meter, bands });
    let meter_features = any::<(u32, u32, u32, u8, u8)>().prop_map(|n| MeterFeatures {
        max_meter: n.0,
        band_types: n.1,
        capabilities: n.2,
        max_bands: n.3,
        max_color: n.4,
    });
    prop_oneof![
        list(group_stats()).prop_map(ReplyBody::Group),
        list(group_desc).prop_map(ReplyBody::GroupDesc),
        group_features.prop_map(ReplyBody::GroupFeatures),
        list(meter_stats()).prop_map(ReplyBody::Meter),
        list(meter_config).prop_map(ReplyBody::MeterConfig),
        meter_features.prop_map(ReplyBody::MeterFeatures),
        list(table_features()).prop_map(ReplyBody::TableFeatures),
    ]
}
