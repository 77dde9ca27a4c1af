//! Multipart requests: each type, in each version that has it.

use bellrock_openflow::{
    Band, BandType, Bucket, Field, FlowFlags, FlowStatsRequest, Group, GroupCommand, GroupMod,
    GroupType, Instruction, InstructionId, List, Meter, MeterCommand, MeterFlags, MeterMod,
    MultipartReply, PortStats, QueueStatsRequest, TableFeatures, TableProperty,
};

use super::*;
use crate::datapath::{MAX_ACTIONS, MAX_BUCKETS};

impl Lab {
    /// Sends a request, and passes each part of the reply to `each`, with whether more follow.
    fn parts(
        &mut self,
        peer: Peer,
        body: RequestBody<'_>,
        mut each: impl FnMut(bool, ReplyBody<'_>),
    ) {
        let said = self.ask(peer, &ToSwitch::MultipartRequest(multipart(body)));
        for (xid, message) in said.messages() {
            let FromSwitch::MultipartReply(MultipartReply { more, body }) = message else {
                panic!("{message:?}")
            };
            assert_eq!(xid, 7);
            each(more, body);
        }
    }

    /// Sends a request whose reply has one part.
    fn one(&mut self, peer: Peer, asked: RequestBody<'_>, mut each: impl FnMut(ReplyBody<'_>)) {
        let mut parts = 0;
        self.parts(peer, asked, |more, body| {
            assert!(!more);
            parts += 1;
            each(body);
        });
        assert_eq!(parts, 1);
    }

    fn stats_error(&mut self, peer: Peer, asked: RequestBody<'_>) -> ErrorCode {
        self.refused(peer, &ToSwitch::MultipartRequest(multipart(asked)))
    }
}

#[test]
fn flows_come_in_as_many_parts_as_they_take() {
    for version in BOTH {
        let (mut lab, peer) = Lab::with(version);
        let any = Match::any();
        let asked = RequestBody::Flow(FlowStatsRequest::all(&any));
        lab.one(peer, asked, |body| assert_eq!(body, ReplyBody::Flow(List::empty())));
        // Long entries: only some of the maximum of 256 fit into one part.
        let actions = [Action::output(Port(2)); 40];
        for n in 0..1_000_u64 {
            let matching = Match::any().eth_dst(bellrock_openflow::MacAddr::from_u64(n));
            lab.flow(peer, FlowMod::add(&matching).cookie(n).actions(&actions));
        }
        let (mut cookies, mut mores) = (Vec::new(), Vec::new());
        lab.parts(peer, asked, |more, body| {
            let ReplyBody::Flow(flows) = body else { panic!() };
            mores.push(more);
            cookies.extend(flows.iter().map(|flow| flow.cookie));
            assert!(
                flows
                    .iter()
                    .all(|flow| flow.instructions
                        == bellrock_openflow::Instructions::apply(&actions))
            );
        });
        assert_eq!(cookies, (0..1_000).collect::<Vec<_>>());
        assert!(mores.len() > 4);
        assert!(mores.iter().rev().skip(1).all(|more| *more) && !mores.last().unwrap());
    }
}

#[test]
fn flow_statistics_tell_all_of_a_flow() {
    for version in BOTH {
        let (mut lab, peer) = Lab::with(version);
        let one = Match::any().in_port(Port(1));
        let flags = if version == V1_3 {
            FlowFlags::SEND_FLOW_REM | FlowFlags::NO_BYT_COUNTS
        } else {
            FlowFlags::SEND_FLOW_REM
        };
        let to_two = [Action::output(Port(2))];
        let flow = FlowMod::add(&one).cookie(3).priority(9).idle_timeout(5).hard_timeout(60);
        lab.flow(peer, flow.flags(flags).actions(&to_two));
        lab.packet(1, &packet(100));
        lab.now = Duration::from_millis(1_250);
        let any = Match::any();
        lab.one(peer, RequestBody::Flow(FlowStatsRequest::all(&any)), |body| {
            let ReplyBody::Flow(flows) = body else { panic!() };
            let flow = flows.iter().next().unwrap();
            assert_eq!((flow.cookie, flow.priority, flow.table), (3, 9, 0));
            assert_eq!((flow.idle_timeout, flow.hard_timeout), (5, 60));
            assert_eq!((flow.duration_sec, flow.duration_nsec), (1, 250_000_000));
            assert_eq!(flow.packet_count, 1);
            // A counter that is off is all ones.
            let (bytes, told) = match version {
                V1_0 => (100, FlowFlags::empty()),
                V1_3 => (u64::MAX, flags),
            };
            assert_eq!((flow.byte_count, flow.flags), (bytes, told));
            assert_eq!(flow.matching.to_match(), one);
        });
    }
}

#[test]
fn statistics_are_of_the_flows_that_were_asked_for() {
    let (mut lab, peer) = Lab::with(V1_3);
    let (one, two, any) =
        (Match::any().in_port(Port(1)), Match::any().in_port(Port(2)), Match::any());
    lab.flow(peer, FlowMod::add(&one).cookie(0x11).actions(&[Action::output(Port(2))]));
    lab.flow(peer, FlowMod::add(&two).cookie(0x12).table(1));
    lab.packet(1, &packet(70));
    let all = FlowStatsRequest::all(&any);
    for (request, count) in [
        (all, 2),
        (FlowStatsRequest { table: 1, ..all }, 1),
        (FlowStatsRequest { out_port: Port(2), ..all }, 1),
        (FlowStatsRequest { cookie: 0x12, cookie_mask: 0x0f, ..all }, 1),
        (FlowStatsRequest { cookie: 0x10, cookie_mask: 0xf0, ..all }, 2),
        (FlowStatsRequest { matching: (&two).into(), ..all }, 1),
        (FlowStatsRequest { out_group: 4, ..all }, 0),
    ] {
        lab.one(peer, RequestBody::Flow(request), |body| {
            let ReplyBody::Flow(flows) = body else { panic!() };
            assert_eq!(flows.len(), count);
        });
        lab.one(peer, RequestBody::Aggregate(request), |body| {
            let ReplyBody::Aggregate(sum) = body else { panic!() };
            assert_eq!(sum.flow_count as usize, count);
        });
    }
    lab.one(peer, RequestBody::Aggregate(all), |body| {
        let ReplyBody::Aggregate(sum) = body else { panic!() };
        assert_eq!((sum.packet_count, sum.byte_count), (1, 70));
    });
    let nowhere = RequestBody::Flow(FlowStatsRequest { table: 3, ..all });
    assert_eq!(lab.stats_error(peer, nowhere), ErrorCode::RequestBadTable);
}

#[test]
fn tables_tell_what_they_looked_up_and_in_1_0_how_large_they_are() {
    for version in BOTH {
        let (mut lab, peer) = Lab::with(version);
        let one = Match::any().in_port(Port(1));
        lab.flow(peer, FlowMod::add(&one));
        lab.packet(1, &packet(60));
        lab.packet(2, &packet(60));
        lab.take(peer);
        lab.one(peer, RequestBody::Table, |body| {
            let ReplyBody::Table(tables) = body else { panic!() };
            let first = tables.iter().next().unwrap();
            assert_eq!((tables.len(), first.active_count), (3, 1));
            assert_eq!((first.lookup_count, first.matched_count), (2, 1));
            let size = first.v1_0.map(|details| details.max_entries);
            assert_eq!(size, (version == V1_0).then_some(5_000));
        });
    }
}

#[test]
fn ports_tell_what_they_counted() {
    for version in BOTH {
        let (mut lab, peer) = Lab::with(version);
        let any = Match::any();
        lab.flow(peer, FlowMod::add(&any).actions(&[Action::output(Port(3))]));
        lab.packet(1, &packet(60));
        lab.now = Duration::from_secs(4);
        lab.one(peer, RequestBody::PortStats(Port::ANY), |body| {
            let ReplyBody::PortStats(ports) = body else { panic!() };
            let ports: Vec<PortStats> = ports.iter().collect();
            assert_eq!(ports.len(), 4);
            let (first, third) = (ports[0].counters, ports[2].counters);
            assert_eq!((first.rx_packets, first.rx_bytes, first.tx_packets), (1, 60, 0));
            assert_eq!((third.tx_packets, third.tx_bytes, third.rx_packets), (1, 60, 0));
            assert_eq!(ports[0].duration_sec, if version == V1_0 { 0 } else { 4 });
        });
        lab.one(peer, RequestBody::PortStats(Port(2)), |body| {
            let ReplyBody::PortStats(ports) = body else { panic!() };
            assert_eq!(ports.iter().map(|port| port.port).collect::<Vec<_>>(), [Port(2)]);
        });
    }
    let (mut lab, peer) = Lab::with(V1_3);
    assert_eq!(lab.stats_error(peer, RequestBody::PortStats(Port(9))), ErrorCode::RequestBadPort);
    let (mut lab, peer) = Lab::with(V1_0);
    lab.one(peer, RequestBody::PortStats(Port(9)), |body| {
        assert_eq!(body, ReplyBody::PortStats(List::empty()));
    });
}

#[test]
fn queues_tell_what_they_sent_and_how_they_are_set_up() {
    for version in BOTH {
        let queues = vec![(Port(2), 7), (Port(3), 7), (Port(3), 8)];
        let mut lab = Lab::of(SwitchSettings { queues, ..SwitchSettings::new(1, 4) });
        let peer = lab.join(version);
        let all_queues = QueueStatsRequest::ALL_QUEUES;
        let all_ports = if version == V1_0 { Port::ALL } else { Port::ANY };
        for (port, queue, count) in [
            (all_ports, all_queues, 3),
            (Port(3), all_queues, 2),
            (all_ports, 7, 2),
            (Port(3), 8, 1),
            (Port(1), all_queues, 0),
        ] {
            lab.one(peer, RequestBody::Queue(QueueStatsRequest { port, queue }), |body| {
                let ReplyBody::Queue(queues) = body else { panic!() };
                assert_eq!(queues.len(), count);
            });
        }
        for (port, queue, code) in
            [(Port(9), 7, ErrorCode::QueueBadPort), (Port(2), 9, ErrorCode::QueueBadQueue)]
        {
            let asked = RequestBody::Queue(QueueStatsRequest { port, queue });
            assert_eq!(lab.stats_error(peer, asked), code);
        }
        let said = lab.ask(peer, &ToSwitch::QueueGetConfigRequest(Port(3)));
        let FromSwitch::QueueGetConfigReply(config) = said.only() else { panic!() };
        assert_eq!(config.queues.iter().map(|queue| queue.queue).collect::<Vec<_>>(), [7, 8]);
        let nowhere = ToSwitch::QueueGetConfigRequest(Port(9));
        assert_eq!(lab.refused(peer, &nowhere), ErrorCode::QueueBadPort);
    }
}

#[test]
fn groups_tell_what_they_counted_who_uses_them_and_how_they_are_set_up() {
    let (mut lab, peer) = Lab::with(V1_3);
    let any = Match::any();
    let (two, three) = ([Action::output(Port(2))], [Action::output(Port(3))]);
    let buckets = [Bucket::of(&two), Bucket::of(&three)];
    for group in [4, 9] {
        let (command, kind, buckets) = (GroupCommand::Add, GroupType::All, List::of(&buckets));
        lab.tell(peer, &ToSwitch::GroupMod(GroupMod { command, kind, group, buckets }));
    }
    lab.flow(peer, FlowMod::add(&any).actions(&[Action::Group(9)]));
    assert_eq!(lab.packet(1, &packet(60)), [2, 3]);
    lab.now = Duration::from_secs(2);
    for (asked, groups) in [(Group::ALL, &[4, 9][..]), (9, &[9]), (5, &[])] {
        lab.one(peer, RequestBody::Group(asked), |body| {
            let ReplyBody::Group(stats) = body else { panic!() };
            assert_eq!(stats.iter().map(|group| group.group).collect::<Vec<_>>(), groups);
            if let Some(group) = stats.iter().find(|group| group.group == 9) {
                assert_eq!((group.ref_count, group.packet_count, group.byte_count), (1, 1, 60));
                assert_eq!(group.duration_sec, 2);
                let buckets: Vec<_> =
                    group.buckets.iter().map(|bucket| bucket.packet_count).collect();
                assert_eq!(buckets, [1, 1]);
            }
        });
    }
    lab.one(peer, RequestBody::GroupDesc, |body| {
        let ReplyBody::GroupDesc(descs) = body else { panic!() };
        let desc = descs.iter().nth(1).unwrap();
        assert_eq!((desc.group, desc.kind), (9, GroupType::All));
        assert_eq!(desc.buckets, List::of(&buckets));
    });
    lab.one(peer, RequestBody::GroupFeatures, |body| {
        let ReplyBody::GroupFeatures(features) = body else { panic!() };
        assert_eq!((features.types, features.capabilities), (0b1111, 0b1111));
        // Output and set_field are actions, and no number is above pop_pbb.
        assert_eq!(features.actions[0] & (1 << 25 | 1), 1 << 25 | 1);
        assert!(features.actions[3] < 1 << 28);
    });
}

#[test]
fn meters_tell_what_they_counted_who_uses_them_and_how_they_are_set_up() {
    let (mut lab, peer) = Lab::with(V1_3);
    let any = Match::any();
    let bands = [Band { rate: 1, burst_size: 1, kind: BandType::Drop }];
    let flags = MeterFlags::PKTPS | MeterFlags::BURST;
    let (command, bands) = (MeterCommand::Add, List::of(&bands));
    lab.tell(peer, &ToSwitch::MeterMod(MeterMod { command, flags, meter: 3, bands }));
    let metered = [Instruction::Meter(3)];
    lab.flow(peer, FlowMod::add(&any).instructions(&metered));
    lab.packet(1, &packet(60));
    lab.packet(1, &packet(60));
    for asked in [Meter::ALL, 3] {
        lab.one(peer, RequestBody::Meter(asked), |body| {
            let ReplyBody::Meter(meters) = body else { panic!() };
            let meter = meters.iter().next().unwrap();
            assert_eq!((meter.meter, meter.flow_count, meter.packet_in_count), (3, 1, 2));
            assert_eq!(meter.bands.iter().next().unwrap().packet_count, 1);
        });
        lab.one(peer, RequestBody::MeterConfig(asked), |body| {
            let ReplyBody::MeterConfig(meters) = body else { panic!() };
            let meter = meters.iter().next().unwrap();
            assert_eq!((meter.flags, meter.bands), (flags, bands));
        });
    }
    for asked in [RequestBody::Meter(8), RequestBody::MeterConfig(8)] {
        assert_eq!(lab.stats_error(peer, asked), ErrorCode::MeterModUnknownMeter);
    }
    lab.one(peer, RequestBody::MeterFeatures, |body| {
        let ReplyBody::MeterFeatures(features) = body else { panic!() };
        assert_eq!((features.band_types, features.capabilities), (0b110, 0b1111));
    });
}

#[test]
fn tables_tell_what_they_can_do() {
    let mut lab = Lab::of(SwitchSettings { tables: 255, ..SwitchSettings::new(1, 2) });
    let peer = lab.join(V1_3);
    let mut tables = Vec::new();
    lab.parts(peer, RequestBody::TableFeatures(List::empty()), |_, body| {
        let ReplyBody::TableFeatures(features) = body else { panic!() };
        for table in features.iter() {
            let properties: Vec<_> = table.properties.iter().collect();
            let next = properties.iter().find_map(|property| match property {
                TableProperty::NextTables { tables, .. } => Some(tables.len()),
                _ => None,
            });
            let goto = properties.iter().any(|property| match property {
                TableProperty::Instructions { ids, .. } => {
                    ids.iter().any(|id: InstructionId| id.kind == 1)
                }
                _ => false,
            });
            assert_eq!(next, Some(254 - usize::from(table.table)));
            assert_eq!(goto, table.table < 254);
            tables.push(table.table);
        }
    });
    assert_eq!(tables, (0..255).collect::<Vec<u8>>());
    // A request for all of them ends.
    let any = Match::any();
    lab.flow(peer, FlowMod::add(&any).table(254));
    lab.one(peer, RequestBody::Flow(FlowStatsRequest::all(&any)), |body| {
        let ReplyBody::Flow(flows) = body else { panic!() };
        assert_eq!(flows.iter().map(|flow| flow.table).collect::<Vec<_>>(), [254]);
    });
    lab.flow(peer, FlowMod::delete(&any));
    lab.switch.timers(lab.now, &mut lab.effects);
}

fn wanted_features() -> TableFeatures<'static> {
    TableFeatures {
        table: 0,
        name: bellrock_openflow::FixedStr::new("acl"),
        metadata_match: 0,
        metadata_write: 0,
        config: 0,
        max_entries: 1,
        properties: List::empty(),
    }
}

#[test]
fn a_change_of_table_features_is_refused() {
    let (mut lab, peer) = Lab::with(V1_3);
    let wanted = [wanted_features()];
    let body = RequestBody::TableFeatures(List::of(&wanted));
    assert_eq!(lab.stats_error(peer, body), ErrorCode::TableFeaturesPermission);
    // A request in several parts is refused once, after the last part.
    let part = MultipartRequest { more: true, body };
    lab.tell(peer, &ToSwitch::MultipartRequest(part));
    lab.tell(peer, &ToSwitch::MultipartRequest(part));
    let last = RequestBody::TableFeatures(List::empty());
    assert_eq!(lab.stats_error(peer, last), ErrorCode::TableFeaturesPermission);
    lab.one(peer, last, |body| assert!(matches!(body, ReplyBody::TableFeatures(_))));
}

#[test]
fn a_request_in_too_many_parts_is_refused() {
    let (mut lab, peer) = Lab::with(V1_3);
    let wanted = [wanted_features(); 1_000];
    let body = RequestBody::TableFeatures(List::of(&wanted));
    let part = bytes(V1_3, 7, &ToSwitch::MultipartRequest(MultipartRequest { more: true, body }));
    let mut errors = Vec::new();
    for _ in 0..crate::switch::REQUEST_PARTS_BYTES / part.len() + 1 {
        lab.give(peer, &part).unwrap();
        errors.extend(lab.take(peer).errors());
    }
    assert_eq!(errors, [(7, ErrorCode::RequestMultipartOverflow)]);
    // A type that cannot have several parts.
    let body = RequestBody::Table;
    let refused =
        lab.refused(peer, &ToSwitch::MultipartRequest(MultipartRequest { more: true, body }));
    assert_eq!(refused, ErrorCode::RequestMultipartOverflow);
}

#[test]
fn experimenters_statistics_are_refused() {
    for version in BOTH {
        let (mut lab, peer) = Lab::with(version);
        let data = bellrock_openflow::Bytes(&[0; 4]);
        let asked = RequestBody::Experimenter { experimenter: 0x2320, data };
        assert_eq!(lab.stats_error(peer, asked), ErrorCode::RequestBadExperimenter);
    }
}

#[test]
fn the_longest_flow_and_group_fit_a_reply_and_longer_ones_are_refused() {
    let (mut lab, peer) = Lab::with(V1_3);
    // The longest possible action, in both lists.
    let ipv6 = Match::any().eth_type(0x86dd);
    let longest = vec![Action::SetField(Field::Ipv6Dst, u128::MAX); MAX_ACTIONS / 2 + 1];
    for (count, refused) in [(MAX_ACTIONS / 2, false), (MAX_ACTIONS / 2 + 1, true)] {
        let lists = [
            Instruction::ApplyActions(List::of(&longest[..MAX_ACTIONS / 2])),
            Instruction::WriteActions(List::of(&longest[..count])),
        ];
        let flow = ToSwitch::FlowMod(FlowMod::add(&ipv6).instructions(&lists));
        let errors = lab.ask(peer, &flow).errors();
        assert_eq!(errors == [(7, ErrorCode::ActionTooMany)], refused, "{errors:?}");
    }
    let any = Match::any();
    let asked = RequestBody::Flow(FlowStatsRequest::all(&any));
    lab.one(peer, asked, |body| {
        assert!(matches!(body, ReplyBody::Flow(flows) if flows.len() == 1));
    });

    for (count, refused) in [(MAX_ACTIONS, false), (MAX_ACTIONS + 1, true)] {
        let actions = vec![Action::SetField(Field::Ipv6Dst, u128::MAX); count];
        let mut buckets = vec![Bucket::of(&[]); MAX_BUCKETS];
        buckets[7] = Bucket::of(&actions);
        let group = GroupMod {
            command: GroupCommand::Add,
            kind: GroupType::All,
            group: count as u32,
            buckets: List::of(&buckets),
        };
        let errors = lab.ask(peer, &ToSwitch::GroupMod(group)).errors();
        assert_eq!(errors == [(7, ErrorCode::ActionTooMany)], refused, "{errors:?}");
    }
    lab.one(peer, RequestBody::GroupDesc, |body| {
        assert!(matches!(body, ReplyBody::GroupDesc(groups) if groups.len() == 1));
    });
}
