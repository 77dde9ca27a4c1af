//! What a version says that it can do is what its messages can express.

use bellrock_openflow::{
    Action, Bytes, Capabilities, EncodeError, ErrorCode, Features, Field, FixedStr, FlowFlags,
    FlowMod, FlowRemoved, FlowRemovedReason, FlowStats, FromSwitch, GroupCommand, GroupMod,
    GroupType, Instructions, List, MacAddr, Match, MatchView, MessageKind, MeterCommand,
    MeterFlags, MeterMod, MultipartKind, MultipartReply, Out, PacketInMessage, PacketInReason,
    Port, PortConfig, PortCounters, PortDesc, PortFeatures, PortReason, PortState, PortStats,
    PortStatus, ReplyBody, ToSwitch, Version,
};

fn is_written(encode: impl FnOnce(&mut Out) -> Result<(), EncodeError>) -> bool {
    match encode(&mut Out::with_capacity(4096)) {
        Ok(()) => true,
        Err(EncodeError::Unsupported { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

fn can_send(version: Version, message: &ToSwitch<'_>) -> bool {
    is_written(|out| message.encode(version, 1, out))
}

fn can_install(version: Version, flow: FlowMod<'_>) -> bool {
    can_send(version, &ToSwitch::FlowMod(flow))
}

fn can_do(version: Version, action: Action<'_>) -> bool {
    can_install(version, FlowMod::add(&Match::any()).actions(&[action]))
}

fn can_report(version: Version, message: &FromSwitch<'_>) -> bool {
    is_written(|out| message.encode(version, 1, out))
}

fn can_reply(version: Version, body: ReplyBody<'_>) -> bool {
    can_report(version, &FromSwitch::MultipartReply(MultipartReply::of(body)))
}

fn has(version: Version, kind: MessageKind) -> bool {
    kind.wire(version).is_some()
}

fn asks(version: Version, kind: MultipartKind) -> bool {
    kind.wire(version).is_some()
}

#[test]
fn requests() {
    let any = Match::any();
    for version in Version::ALL {
        let (command, kind) = (GroupCommand::Add, GroupType::All);
        let group = GroupMod { command, kind, group: 1, buckets: List::empty() };
        assert_eq!(can_send(version, &ToSwitch::GroupMod(group)), version.has_groups());
        let (command, flags) = (MeterCommand::Add, MeterFlags::KBPS);
        let meter = MeterMod { command, flags, meter: 1, bands: List::empty() };
        assert_eq!(can_send(version, &ToSwitch::MeterMod(meter)), version.has_meters());
        assert_eq!(can_install(version, FlowMod::add(&any).table(1)), version.names_tables());
        let by_cookie = FlowMod::delete(&any).cookie_mask(1, 1);
        assert_eq!(can_install(version, by_cookie), version.selects_by_cookie());
        assert_eq!(can_do(version, Action::PushVlan(0x8100)), version.pushes_vlan_tags());
        assert_eq!(can_do(version, Action::SetQueue(1)), version.has_set_queue());
        let enqueue = Action::Enqueue { port: Port(1), queue: 1 };
        assert_eq!(can_do(version, enqueue), !version.has_set_queue());
        assert_eq!(has(version, MessageKind::RoleRequest), version.has_roles());
        assert_eq!(has(version, MessageKind::SetAsync), version.has_async_config());
    }
}

/// The match with this field, and the fields that it depends on.
fn matching(field: Field) -> Match {
    let mut matching = match field {
        Field::VlanVid => Match::any().vlan_id(1),
        Field::VlanPcp => Match::any().vlan_id(1).with(field, 1),
        field => Match::any().with(field, 1),
    };
    while let Err(EncodeError::Prerequisite(prerequisite)) = matching.check() {
        let missing = prerequisite.missing().next().unwrap();
        // The first allowed value is in the text: `add .eth_type(0x0800)`.
        let text = prerequisite.to_string();
        let (_, value) = text.split_once(&format!(".{missing}(")).unwrap();
        let value = value.split_once(')').unwrap().0;
        let value = match value.strip_prefix("0x") {
            Some(hex) => u128::from_str_radix(hex, 16).unwrap(),
            None => value.parse().unwrap_or(1),
        };
        matching.set(missing, value);
    }
    matching
}

#[test]
fn every_field_of_a_match() {
    for version in Version::ALL {
        for field in Field::ALL {
            let matching = matching(*field);
            let written = can_install(version, FlowMod::add(&matching));
            assert_eq!(written, version.can_match(*field), "{version} {field}");
        }
        assert_eq!(version.has_oxm(), Field::ALL.iter().all(|field| version.can_match(*field)));
    }
}

fn port() -> PortDesc {
    PortDesc {
        port: Port(1),
        address: MacAddr::ZERO,
        name: FixedStr::default(),
        config: PortConfig::empty(),
        state: PortState::empty(),
        current: PortFeatures::empty(),
        advertised: PortFeatures::empty(),
        supported: PortFeatures::empty(),
        peer: PortFeatures::empty(),
        current_speed: 0,
        max_speed: 0,
    }
}

fn can_describe(version: Version, desc: PortDesc) -> bool {
    let status = PortStatus { reason: PortReason::Modify, desc };
    can_report(version, &FromSwitch::PortStatus(status))
}

#[test]
fn reports() {
    let any = Match::any();
    for version in Version::ALL {
        // 1.0 has the request as an extension too.
        assert!(asks(version, MultipartKind::PortDesc));
        let ports = [port()];
        let features = FromSwitch::FeaturesReply(Features {
            datapath_id: 1,
            n_buffers: 0,
            n_tables: 1,
            auxiliary_id: 0,
            capabilities: Capabilities::empty(),
            actions: 0,
            ports: List::of(&ports),
        });
        assert_eq!(can_report(version, &features), !version.has_port_desc());
        assert_eq!(asks(version, MultipartKind::TableFeatures), version.has_table_features());
        assert!(can_describe(version, port()));
        let fast = PortDesc { current: PortFeatures::RATE_40GB_FD, ..port() };
        assert_eq!(can_describe(version, fast), version.has_port_speeds());

        let packet = |cookie| {
            FromSwitch::PacketIn(PacketInMessage {
                buffer_id: None,
                total_len: 0,
                reason: PacketInReason::NoMatch,
                table: 0,
                cookie,
                matching: MatchView::port(Port(1)),
                data: Bytes(&[]),
            })
        };
        assert!(can_report(version, &packet(PacketInMessage::NO_COOKIE)));
        assert_eq!(can_report(version, &packet(7)), version.packet_in_has_cookie());

        let removed = |table, hard_timeout| {
            FromSwitch::FlowRemoved(FlowRemoved {
                cookie: 0,
                priority: 0,
                reason: FlowRemovedReason::IdleTimeout,
                table,
                duration_sec: 0,
                duration_nsec: 0,
                idle_timeout: 0,
                hard_timeout,
                packet_count: 0,
                byte_count: 0,
                matching: MatchView::from(&any),
            })
        };
        assert_eq!(can_report(version, &removed(1, 0)), version.names_tables());
        assert_eq!(can_report(version, &removed(0, 1)), version.flow_removed_has_hard_timeout());

        let flow = FlowStats {
            table: 0,
            duration_sec: 0,
            duration_nsec: 0,
            priority: 0,
            idle_timeout: 0,
            hard_timeout: 0,
            flags: FlowFlags::SEND_FLOW_REM,
            cookie: 0,
            packet_count: 0,
            byte_count: 0,
            matching: MatchView::from(&any),
            instructions: Instructions::none(),
        };
        let flows = ReplyBody::Flow(List::of(std::slice::from_ref(&flow)));
        assert_eq!(can_reply(version, flows), version.reports_flow_flags());

        let counters = PortCounters::default();
        let port = PortStats { port: Port(1), counters, duration_sec: 1, duration_nsec: 0 };
        let ports = ReplyBody::PortStats(List::of(std::slice::from_ref(&port)));
        assert_eq!(can_reply(version, ports), version.reports_ages());

        let emergency = ErrorCode::FlowModBadEmergencyTimeout.exists_in(version);
        assert_eq!(emergency, version.has_emergency_flows());
    }
}

/// The rules of a switch, which show in no message.
#[test]
fn rules() {
    type Rule = (fn(Version) -> bool, bool, bool);
    let rules: [Rule; 9] = [
        (Version::has_table_miss_entries, false, true),
        (Version::ranks_exact_flows_first, true, false),
        (Version::modify_adds, true, false),
        (Version::replacing_keeps_counters, false, true),
        (Version::buffered_packets_pass_tables, false, true),
        (Version::floods_to_local, false, true),
        (Version::has_spanning_tree, true, false),
        (Version::has_any_port, false, true),
        (Version::sends_from_controller_port, false, true),
    ];
    for (index, (rule, in_1_0, in_1_3)) in rules.into_iter().enumerate() {
        assert_eq!((rule(Version::V1_0), rule(Version::V1_3)), (in_1_0, in_1_3), "rule {index}");
    }
}
