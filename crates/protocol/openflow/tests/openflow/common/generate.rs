//! Generators of messages: everything that a version can express, in its canonical form.
//!
//! Messages borrow their lists. The lists are leaked: some kilobytes per test run.

use bellrock_openflow::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::Direction;
use super::generate_stats::{reply_body, request_body};
use super::matches::{matching, packet_fields};

/// Maximum number of items in a list; nested lists multiply.
const ITEMS: usize = 4;
/// Maximum bytes of arbitrary data.
const DATA: usize = 40;

pub fn leak<T>(items: Vec<T>) -> &'static [T] {
    Box::leak(items.into_boxed_slice())
}

pub fn list<T: Element<'static> + Clone + std::fmt::Debug + 'static>(
    item: impl Strategy<Value = T>,
) -> impl Strategy<Value = List<'static, T>> {
    vec(item, 0..ITEMS).prop_map(|items| List::of(leak(items)))
}

pub fn bytes() -> impl Strategy<Value = Bytes<'static>> {
    vec(any::<u8>(), 0..DATA).prop_map(|bytes| Bytes(leak(bytes)))
}

/// Data whose length modulo eight is `rest`, to fill up a structure.
pub fn filling(rest: usize) -> impl Strategy<Value = Bytes<'static>> {
    (0..ITEMS)
        .prop_flat_map(move |words| vec(any::<u8>(), words * 8 + rest))
        .prop_map(|bytes| Bytes(leak(bytes)))
}

pub fn text<const N: usize>() -> impl Strategy<Value = FixedStr<N>> {
    vec(any::<u8>(), N).prop_map(|bytes| FixedStr(bytes.try_into().unwrap()))
}

pub fn mac() -> impl Strategy<Value = MacAddr> {
    any::<[u8; 6]>().prop_map(MacAddr)
}

pub fn port(version: Version) -> BoxedStrategy<Port> {
    let reserved = (0xffff_fff8_u32..=u32::MAX).prop_map(Port);
    match version {
        Version::V1_0 => prop_oneof![(0_u32..0xfff8).prop_map(Port), reserved].boxed(),
        Version::V1_3 => prop_oneof![any::<u32>().prop_map(Port), reserved].boxed(),
    }
}

fn buffer() -> impl Strategy<Value = Option<u32>> {
    proptest::option::of(0..u32::MAX)
}

pub fn action(version: Version) -> BoxedStrategy<Action<'static>> {
    let output =
        (port(version), any::<u16>()).prop_map(|(port, max_len)| Action::Output { port, max_len });
    let experimenter = (any::<u32>(), filling(0))
        .prop_map(|(experimenter, data)| Action::Experimenter { experimenter, data });
    let unknown = |kinds: &'static [u16]| {
        (select(kinds), filling(4)).prop_map(|(kind, body)| Action::Unknown { kind, body })
    };
    match version {
        Version::V1_0 => {
            let fields =
                [Field::EthSrc, Field::EthDst, Field::Ipv4Src, Field::Ipv4Dst, Field::IpDscp];
            prop_oneof![
                output,
                any::<u16>().prop_map(Action::SetVlanVid),
                any::<u8>().prop_map(Action::SetVlanPcp),
                Just(Action::PopVlan),
                set_field(fields.to_vec()),
                any::<u16>().prop_map(Action::SetTpSrc),
                any::<u16>().prop_map(Action::SetTpDst),
                (port(version), any::<u32>())
                    .prop_map(|(port, queue)| Action::Enqueue { port, queue }),
                experimenter,
                unknown(&[12, 25, 0xfffe]),
            ]
            .boxed()
        }
        Version::V1_3 => prop_oneof![
            3 => output,
            1 => select(vec![
                Action::CopyTtlOut,
                Action::CopyTtlIn,
                Action::DecMplsTtl,
                Action::PopVlan,
                Action::DecNwTtl,
                Action::PopPbb,
            ]),
            1 => any::<u8>().prop_map(Action::SetMplsTtl),
            1 => any::<u8>().prop_map(Action::SetNwTtl),
            1 => any::<u16>().prop_map(Action::PushVlan),
            1 => any::<u16>().prop_map(Action::PushMpls),
            1 => any::<u16>().prop_map(Action::PopMpls),
            1 => any::<u16>().prop_map(Action::PushPbb),
            1 => any::<u32>().prop_map(Action::SetQueue),
            1 => any::<u32>().prop_map(Action::Group),
            3 => set_field(Field::ALL.to_vec()),
            1 => set_unknown_field(),
            1 => experimenter,
            1 => unknown(&[1, 10, 13, 28, 0xfffe]),
        ]
        .boxed(),
    }
}

fn set_field(fields: Vec<Field>) -> impl Strategy<Value = Action<'static>> {
    (select(fields), any::<u128>())
        .prop_map(|(field, value)| Action::SetField(field, value & field.max()))
}

fn set_unknown_field() -> impl Strategy<Value = Action<'static>> {
    // A class without known fields, or a basic field after the last one.
    let head = prop_oneof![
        (2_u32..0x8000).prop_map(|class| class << 16),
        (40_u32..0x80).prop_map(|field| 0x8000 << 16 | field << 9),
    ];
    (head, bytes()).prop_map(|(head, value)| Action::SetUnknownField {
        header: head | value.len() as u32,
        value,
    })
}

fn actions(version: Version) -> impl Strategy<Value = List<'static, Action<'static>>> {
    list(action(version))
}

fn instruction() -> impl Strategy<Value = Instruction<'static>> {
    prop_oneof![
        any::<u8>().prop_map(Instruction::GotoTable),
        any::<(u64, u64)>()
            .prop_map(|(metadata, mask)| Instruction::WriteMetadata { metadata, mask }),
        actions(Version::V1_3).prop_map(Instruction::WriteActions),
        actions(Version::V1_3).prop_map(Instruction::ApplyActions),
        Just(Instruction::ClearActions),
        any::<u32>().prop_map(Instruction::Meter),
        (any::<u32>(), filling(0))
            .prop_map(|(experimenter, data)| Instruction::Experimenter { experimenter, data }),
        (select(vec![0_u16, 7, 0xfffe]), filling(4))
            .prop_map(|(kind, body)| Instruction::Unknown { kind, body }),
    ]
}

pub fn instructions(version: Version) -> BoxedStrategy<Instructions<'static>> {
    let apply =
        vec(action(version), 0..ITEMS).prop_map(|actions| Instructions::apply(leak(actions)));
    match version {
        Version::V1_0 => apply.boxed(),
        Version::V1_3 => prop_oneof![
            apply,
            vec(instruction(), 0..ITEMS).prop_map(|items| Instructions::of(leak(items))),
        ]
        .boxed(),
    }
}

pub fn bucket() -> impl Strategy<Value = Bucket<'static>> {
    (any::<(u16, u32, u32)>(), actions(Version::V1_3)).prop_map(
        |((weight, watch_port, watch_group), actions)| Bucket {
            weight,
            watch_port: Port(watch_port),
            watch_group,
            actions,
        },
    )
}

pub fn group_type() -> impl Strategy<Value = GroupType> {
    select(vec![
        GroupType::All,
        GroupType::Select,
        GroupType::Indirect,
        GroupType::FastFailover,
        GroupType::Unknown(4),
        GroupType::Unknown(255),
    ])
}

pub fn band() -> impl Strategy<Value = Band<'static>> {
    let kind = prop_oneof![
        Just(BandType::Drop),
        any::<u8>().prop_map(BandType::DscpRemark),
        (any::<u32>(), bytes())
            .prop_map(|(experimenter, data)| BandType::Experimenter { experimenter, data }),
        (select(vec![0_u16, 3, 0xfffe]), any::<[u8; 4]>(), bytes())
            .prop_map(|(kind, argument, data)| BandType::Unknown { kind, argument, data }),
    ];
    (any::<(u32, u32)>(), kind).prop_map(|((rate, burst_size), kind)| Band {
        rate,
        burst_size,
        kind,
    })
}

pub fn meter_flags() -> impl Strategy<Value = MeterFlags> {
    any::<u16>().prop_map(MeterFlags::from_bits_retain)
}

/// 1.0 has no rates above 10 Gb/s.
pub fn port_features(version: Version) -> impl Strategy<Value = PortFeatures> {
    any::<u32>().prop_map(move |bits| {
        let unsayable = if version == Version::V1_0 { 0x780 } else { 0 };
        PortFeatures::from_bits_retain(bits & !unsayable)
    })
}

pub fn port_desc(version: Version) -> impl Strategy<Value = PortDesc> {
    let features = || port_features(version);
    let speeds =
        if version == Version::V1_0 { Just((0, 0)).boxed() } else { any::<(u32, u32)>().boxed() };
    (
        (port(version), mac(), text(), any::<(u32, u32)>(), speeds),
        (features(), features(), features(), features()),
    )
        .prop_map(|((port, address, name, (config, state), speeds), features)| PortDesc {
            port,
            address,
            name,
            config: PortConfig::from_bits_retain(config),
            state: PortState::from_bits_retain(state),
            current: features.0,
            advertised: features.1,
            supported: features.2,
            peer: features.3,
            current_speed: speeds.0,
            max_speed: speeds.1,
        })
}

fn error(version: Version) -> impl Strategy<Value = ErrorMessage<'static>> {
    let standard = (0_u16..15, 0_u16..17, bytes()).prop_map(move |(kind, code, data)| {
        ErrorMessage::Standard { code: ErrorCode::from_wire(version, kind, code), data }
    });
    let experimenter = (any::<(u32, u16)>(), bytes()).prop_map(|((experimenter, kind), data)| {
        ErrorMessage::Experimenter { experimenter, kind, data }
    });
    let vendor =
        (any::<u32>(), 0_u16..15, 0_u16..600, bytes()).prop_map(|(vendor, kind, code, data)| {
            let code = ErrorCode::UnknownOfVendor { vendor, kind, code };
            ErrorMessage::Standard { code, data }
        });
    match version {
        Version::V1_0 => prop_oneof![standard, vendor].boxed(),
        Version::V1_3 => prop_oneof![standard, experimenter].boxed(),
    }
}

fn experimenter(version: Version) -> impl Strategy<Value = Experimenter<'static>> {
    (any::<(u32, u32)>(), bytes()).prop_map(move |((experimenter, kind), data)| Experimenter {
        experimenter,
        kind: (version == Version::V1_3).then_some(kind),
        data,
    })
}

fn features(version: Version) -> impl Strategy<Value = Features<'static>> {
    let ports = match version {
        Version::V1_0 => list(port_desc(version)).boxed(),
        Version::V1_3 => Just(List::empty()).boxed(),
    };
    (any::<(u64, u32, u8, u8, u32, u32)>(), ports).prop_map(move |(numbers, ports)| {
        let (datapath_id, n_buffers, n_tables, auxiliary_id, bits, actions) = numbers;
        let capabilities = Capabilities::from_bits_retain(bits.into());
        let v10 = version == Version::V1_0;
        Features {
            datapath_id,
            n_buffers,
            n_tables,
            auxiliary_id: if v10 { 0 } else { auxiliary_id },
            capabilities: match v10 && capabilities.contains(Capabilities::GROUP_STATS) {
                true => (capabilities - Capabilities::GROUP_STATS) | Capabilities::STP,
                false => capabilities,
            },
            actions,
            ports,
        }
    })
}

fn config() -> impl Strategy<Value = SwitchConfig> {
    any::<(u16, u16)>().prop_map(|(flags, miss_send_len)| SwitchConfig {
        flags: ConfigFlags::from_bits_retain(flags),
        miss_send_len,
    })
}

fn role() -> impl Strategy<Value = RoleMessage> {
    let kinds = vec![
        RoleKind::NoChange,
        RoleKind::Equal,
        RoleKind::Master,
        RoleKind::Slave,
        RoleKind::Unknown(4),
    ];
    (select(kinds), any::<u64>())
        .prop_map(|(role, generation_id)| RoleMessage { role, generation_id })
}

fn async_config() -> impl Strategy<Value = AsyncConfig> {
    let masks = || {
        any::<(u32, u32, u32)>().prop_map(|(packet_in, port_status, flow_removed)| AsyncMasks {
            packet_in,
            port_status,
            flow_removed,
        })
    };
    (masks(), masks()).prop_map(|(master, slave)| AsyncConfig { master, slave })
}

fn packet_in(version: Version) -> impl Strategy<Value = PacketInMessage<'static>> {
    let reasons = vec![
        PacketInReason::NoMatch,
        PacketInReason::Action,
        PacketInReason::InvalidTtl,
        PacketInReason::Unknown(3),
    ];
    let origin = match version {
        Version::V1_0 => Just((0, PacketInMessage::NO_COOKIE)).boxed(),
        Version::V1_3 => any::<(u8, u64)>().boxed(),
    };
    (buffer(), any::<u16>(), select(reasons), origin, packet_fields(version), bytes()).prop_map(
        |(buffer_id, total_len, reason, (table, cookie), matching, data)| PacketInMessage {
            buffer_id,
            total_len,
            reason,
            table,
            cookie,
            matching,
            data,
        },
    )
}

fn packet_out(version: Version) -> impl Strategy<Value = PacketOut<'static>> {
    (buffer(), port(version), actions(version), bytes()).prop_map(
        |(buffer_id, in_port, actions, data)| PacketOut {
            buffer_id,
            in_port,
            actions,
            data: if buffer_id.is_some() { Bytes(&[]) } else { data },
        },
    )
}

pub fn flow_flags(version: Version) -> impl Strategy<Value = FlowFlags> {
    any::<u16>().prop_map(move |bits| {
        let flags = FlowFlags::from_bits_retain(bits.into());
        match version == Version::V1_0 && flags.contains(FlowFlags::RESET_COUNTS) {
            true => (flags - FlowFlags::RESET_COUNTS) | FlowFlags::EMERG,
            false => flags,
        }
    })
}

fn flow_mod(version: Version) -> impl Strategy<Value = FlowMod<'static>> {
    let commands = vec![
        FlowCommand::Add,
        FlowCommand::Modify,
        FlowCommand::ModifyStrict,
        FlowCommand::Delete,
        FlowCommand::DeleteStrict,
    ];
    (
        (select(commands), buffer(), port(version), flow_flags(version)),
        any::<(u8, u64, u64, u16, u16, u16, u32)>(),
        (matching(version), instructions(version)),
    )
        .prop_map(
            move |((command, buffer_id, out_port, flags), numbers, (matching, instructions))| {
                let (table, cookie, cookie_mask, idle_timeout, hard_timeout, priority, out_group) =
                    numbers;
                let (table, cookie_mask, out_group) = match version {
                    Version::V1_3 => (table, cookie_mask, out_group),
                    Version::V1_0 if command.is_delete() => {
                        (FlowMod::ALL_TABLES, 0, FlowMod::ANY_GROUP)
                    }
                    Version::V1_0 => (0, 0, FlowMod::ANY_GROUP),
                };
                FlowMod {
                    command,
                    table,
                    cookie,
                    cookie_mask,
                    idle_timeout,
                    hard_timeout,
                    priority,
                    buffer_id,
                    out_port,
                    out_group,
                    flags,
                    matching,
                    instructions,
                }
            },
        )
}

fn flow_removed(version: Version) -> impl Strategy<Value = FlowRemoved<'static>> {
    let reasons = vec![
        FlowRemovedReason::IdleTimeout,
        FlowRemovedReason::HardTimeout,
        FlowRemovedReason::Delete,
        FlowRemovedReason::GroupDelete,
        FlowRemovedReason::Unknown(4),
    ];
    let only13 = match version {
        Version::V1_0 => Just((0, 0)).boxed(),
        Version::V1_3 => any::<(u8, u16)>().boxed(),
    };
    (select(reasons), only13, any::<(u64, u16, u32, u32, u16, u64, u64)>(), matching(version))
        .prop_map(|(reason, (table, hard_timeout), numbers, matching)| FlowRemoved {
            cookie: numbers.0,
            priority: numbers.1,
            reason,
            table,
            duration_sec: numbers.2,
            duration_nsec: numbers.3,
            idle_timeout: numbers.4,
            hard_timeout,
            packet_count: numbers.5,
            byte_count: numbers.6,
            matching,
        })
}

fn port_status(version: Version) -> impl Strategy<Value = PortStatus> {
    let reasons =
        vec![PortReason::Add, PortReason::Delete, PortReason::Modify, PortReason::Unknown(3)];
    (select(reasons), port_desc(version)).prop_map(|(reason, desc)| PortStatus { reason, desc })
}

fn port_mod(version: Version) -> impl Strategy<Value = PortMod> {
    (port(version), mac(), any::<(u32, u32)>(), port_features(version)).prop_map(
        |(port, address, (config, mask), advertise)| PortMod {
            port,
            address,
            config: PortConfig::from_bits_retain(config),
            mask: PortConfig::from_bits_retain(mask),
            advertise,
        },
    )
}

fn queue_config(version: Version) -> impl Strategy<Value = QueueConfig<'static>> {
    let property = prop_oneof![
        any::<u16>().prop_map(QueueProperty::MinRate),
        any::<u16>().prop_map(QueueProperty::MaxRate),
        (any::<u32>(), bytes())
            .prop_map(|(experimenter, data)| QueueProperty::Experimenter { experimenter, data }),
        (select(vec![0_u16, 3, 0xfffe]), bytes())
            .prop_map(|(kind, body)| QueueProperty::Unknown { kind, body }),
    ];
    let queue =
        (any::<(u32, u32)>(), list(property)).prop_map(move |((queue, port), properties)| Queue {
            queue,
            port: if version == Version::V1_0 { Port::ANY } else { Port(port) },
            properties,
        });
    (port(version), list(queue)).prop_map(|(port, queues)| QueueConfig { port, queues })
}

pub fn from_switch(version: Version) -> BoxedStrategy<FromSwitch<'static>> {
    use FromSwitch::*;
    let both = prop_oneof![
        Just(Hello(bellrock_openflow::Hello::bare())),
        error(version).prop_map(Error),
        bytes().prop_map(EchoRequest),
        bytes().prop_map(EchoReply),
        experimenter(version).prop_map(Experimenter),
        features(version).prop_map(FeaturesReply),
        config().prop_map(GetConfigReply),
        packet_in(version).prop_map(PacketIn),
        flow_removed(version).prop_map(FlowRemoved),
        port_status(version).prop_map(PortStatus),
    ];
    let replies = prop_oneof![
        10 => (any::<bool>(), reply_body(version)).prop_map(|(more, body)| MultipartReply(
            bellrock_openflow::MultipartReply { more, body }
        )),
        1 => Just(BarrierReply),
        3 => queue_config(version).prop_map(QueueGetConfigReply),
    ];
    let only13 = prop_oneof![role().prop_map(RoleReply), async_config().prop_map(GetAsyncReply)];
    match version {
        Version::V1_0 => prop_oneof![both, replies].boxed(),
        Version::V1_3 => prop_oneof![4 => both, 4 => replies, 1 => only13].boxed(),
    }
}

pub fn to_switch(version: Version) -> BoxedStrategy<ToSwitch<'static>> {
    use ToSwitch::*;
    let both = prop_oneof![
        1 => Just(Hello(bellrock_openflow::Hello::bare())),
        1 => error(version).prop_map(Error),
        1 => bytes().prop_map(EchoRequest),
        1 => bytes().prop_map(EchoReply),
        1 => experimenter(version).prop_map(Experimenter),
        1 => select(vec![FeaturesRequest, GetConfigRequest, BarrierRequest]),
        1 => config().prop_map(SetConfig),
        4 => packet_out(version).prop_map(PacketOut),
        8 => flow_mod(version).prop_map(FlowMod),
        1 => port_mod(version).prop_map(PortMod),
    ];
    let requests = prop_oneof![
        8 => (any::<bool>(), request_body(version)).prop_map(|(more, body)| MultipartRequest(
            bellrock_openflow::MultipartRequest { more, body }
        )),
        1 => port(version).prop_map(QueueGetConfigRequest),
    ];
    match version {
        Version::V1_0 => prop_oneof![2 => both, 1 => requests].boxed(),
        Version::V1_3 => prop_oneof![4 => both, 2 => requests, 1 => to_switch_only13()].boxed(),
    }
}

fn to_switch_only13() -> impl Strategy<Value = ToSwitch<'static>> {
    let group = (
        select(vec![GroupCommand::Add, GroupCommand::Modify, GroupCommand::Delete]),
        group_type(),
        any::<u32>(),
        list(bucket()),
    )
        .prop_map(|(command, kind, group, buckets)| GroupMod { command, kind, group, buckets });
    let meter = (
        select(vec![MeterCommand::Add, MeterCommand::Modify, MeterCommand::Delete]),
        meter_flags(),
        any::<u32>(),
        list(band()),
    )
        .prop_map(|(command, flags, meter, bands)| MeterMod { command, flags, meter, bands });
    let table = any::<(u8, u32)>().prop_map(|(table, config)| TableMod { table, config });
    prop_oneof![
        group.prop_map(ToSwitch::GroupMod),
        meter.prop_map(ToSwitch::MeterMod),
        table.prop_map(ToSwitch::TableMod),
        role().prop_map(ToSwitch::RoleRequest),
        async_config().prop_map(ToSwitch::SetAsync),
        Just(ToSwitch::GetAsyncRequest),
    ]
}

/// Any message, encoded.
pub fn encoded() -> impl Strategy<Value = (Direction, Vec<u8>)> {
    select(Version::ALL.to_vec()).prop_flat_map(|version| {
        prop_oneof![
            (from_switch(version), any::<u32>()).prop_map(move |(body, xid)| {
                (Direction::FromSwitch, super::encode(|out| body.encode(version, xid, out)))
            }),
            (to_switch(version), any::<u32>()).prop_map(move |(body, xid)| {
                (Direction::ToSwitch, super::encode(|out| body.encode(version, xid, out)))
            }),
        ]
    })
}
