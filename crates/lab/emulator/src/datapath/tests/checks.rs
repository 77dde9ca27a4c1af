//! Requests that are refused, and their errors.

use bellrock_openflow::{Field, TableMod};

use super::*;

#[track_caller]
fn refused(rules: Version, matching: &Match, actions: &[Action<'_>], error: ErrorCode) {
    let mut lab = Lab::new(rules);
    let asked = lab.ask(&FlowMod::add(matching).actions(actions));
    assert_eq!(asked, Err(error), "{actions:?}");
    assert!(lab.datapath.tables().table(0).unwrap().is_empty());
}

#[track_caller]
fn taken(matching: &Match, actions: &[Action<'_>]) {
    assert_eq!(Lab::new(V13).ask(&FlowMod::add(matching).actions(actions)), Ok(()), "{actions:?}");
}

#[test]
fn ports_queues_and_groups_have_to_be_there() {
    let any = Match::any();
    for port in [Port(0), Port(9), Port::MAX, Port::TABLE, Port::NORMAL, Port::ANY] {
        refused(V13, &any, &[Action::output(port)], ErrorCode::ActionBadOutPort);
    }
    for port in [Port::IN_PORT, Port::FLOOD, Port::ALL, Port::CONTROLLER, Port::LOCAL, Port(4)] {
        taken(&any, &[Action::output(port)]);
    }
    refused(V13, &any, &[Action::SetQueue(8)], ErrorCode::ActionBadQueue);
    taken(&any, &[Action::SetQueue(7)]);
    let enqueue = |port, queue| [Action::Enqueue { port: Port(port), queue }];
    refused(V10, &any, &enqueue(3, 7), ErrorCode::ActionBadQueue);
    refused(V10, &any, &enqueue(9, 7), ErrorCode::ActionBadOutPort);
    let mut lab = Lab::new(V10);
    lab.apply(&enqueue(2, 7));
    assert_eq!(lab.send(&frame()), [2]);
    assert_eq!(lab.datapath.ports().get(2).unwrap().queue(7).unwrap().tx_packets, 1);
    refused(V13, &any, &[Action::Group(1)], ErrorCode::ActionBadOutGroup);
}

#[test]
fn arguments_have_to_be_possible() {
    let any = Match::any();
    for (rules, action) in [
        (V10, Action::SetVlanVid(0x1000)),
        (V10, Action::SetVlanPcp(8)),
        (V13, Action::PushVlan(0x0800)),
        (V13, Action::PushMpls(0x8100)),
        (V13, Action::PushPbb(0x8100)),
    ] {
        refused(rules, &any, &[action], ErrorCode::ActionBadArgument);
    }
    let untagged = Action::SetField(Field::VlanVid, 5);
    refused(V13, &any, &[untagged], ErrorCode::ActionBadSetArgument);
    for field in [Field::InPort, Field::InPhyPort, Field::Metadata, Field::Ipv6Exthdr] {
        refused(V13, &any, &[Action::SetField(field, 1)], ErrorCode::ActionBadSetType);
    }
}

#[test]
fn unknown_actions_and_fields_are_refused() {
    let any = Match::any();
    let data = Bytes(&[0; 4]);
    let action = Action::Experimenter { experimenter: 1, data };
    refused(V13, &any, &[action], ErrorCode::ActionBadExperimenter);
    refused(V13, &any, &[Action::Unknown { kind: 99, body: data }], ErrorCode::ActionBadType);
    let action = Action::SetUnknownField { header: 0x0001_0204, value: data };
    refused(V13, &any, &[action], ErrorCode::ActionBadSetType);
    refused(V13, &any, &[Action::SetField(Field::Reg0, 1)], ErrorCode::ActionBadSetType);
    refused(V13, &any.with(Field::Reg0, 1), &[], ErrorCode::MatchBadField);
}

#[test]
fn in_1_3_an_action_has_to_fit_the_packets_that_the_match_lets_pass() {
    let (any, ip) = (Match::any(), Match::any().eth_type(0x0800));
    let tcp = ip.clone().ip_proto(6);
    let inconsistent = ErrorCode::ActionMatchInconsistent;
    let set = |field| [Action::SetField(field, 0x1001 & Field::max(field))];
    for (matching, field, fits) in [
        (&any, Field::EthDst, true),
        (&any, Field::Ipv4Src, false),
        (&ip, Field::Ipv4Src, true),
        (&ip, Field::Ipv6Src, false),
        (&ip, Field::TcpDst, false),
        (&tcp, Field::TcpDst, true),
        (&tcp, Field::UdpDst, false),
        (&tcp, Field::ArpOp, false),
        (&any, Field::VlanVid, false),
    ] {
        if fits {
            taken(matching, &set(field));
        } else {
            refused(V13, matching, &set(field), inconsistent);
        }
    }
    for action in [Action::PopVlan, Action::DecNwTtl, Action::PopMpls(0x0800), Action::PopPbb] {
        refused(V13, &any, &[action], inconsistent);
    }
    refused(V13, &Match::any().untagged(), &[Action::PopVlan], inconsistent);
    taken(&Match::any().vlan_id(5), &[Action::PopVlan, Action::PopVlan]);
    taken(&ip, &[Action::DecNwTtl, Action::SetNwTtl(5)]);
}

#[test]
fn headers_added_by_an_action_are_there_for_the_next() {
    let ip = Match::any().eth_type(0x0800);
    let vid = Action::SetField(Field::VlanVid, 0x1005);
    let label = Action::SetField(Field::MplsLabel, 5);
    let source = Action::SetField(Field::Ipv4Src, 5);
    taken(&ip, &[Action::PushVlan(0x8100), vid]);
    taken(
        &ip,
        &[Action::PushMpls(0x8847), label, Action::DecMplsTtl, Action::PopMpls(0x0800), source],
    );
    let hidden = [Action::PushMpls(0x8847), source];
    refused(V13, &ip, &hidden, ErrorCode::ActionMatchInconsistent);
    let hidden = [Action::PushVlan(0x8100), Action::PushPbb(0x88e7), vid];
    refused(V13, &ip, &hidden, ErrorCode::ActionMatchInconsistent);
}

#[test]
fn in_1_0_what_does_not_fit_a_packet_does_nothing_to_it() {
    let mut lab = Lab::new(V10);
    lab.apply(&[
        Action::SetTpDst(80),
        Action::SetField(Field::Ipv4Src, 1),
        Action::PopVlan,
        out(2),
    ]);
    let other = eth().payload(0x1234, b"data");
    lab.send(&other);
    assert_eq!(lab.frames(), [(2, &other[..])]);
    lab.send(&frame());
    let changed = IpFields::v4(Ipv4Addr::from_bits(1), Ipv4Addr::new(10, 0, 0, 2));
    let changed = eth().ip(&changed.udp(1_000, 80, b"a question"));
    assert_eq!(lab.frames(), [(2, &changed[..])]);
}

#[test]
fn instructions_lead_forward_and_come_once() {
    let any = Match::any();
    let mut lab = Lab::new(V13);
    let mut ask = |table, instructions: &[Instruction<'_>]| {
        lab.ask(&FlowMod::add(&any).table(table).instructions(instructions)).err()
    };
    let goto = Instruction::GotoTable;
    assert_eq!(ask(1, &[goto(1)]), Some(ErrorCode::InstructionBadTable));
    assert_eq!(ask(1, &[goto(0)]), Some(ErrorCode::InstructionBadTable));
    assert_eq!(ask(1, &[goto(4)]), Some(ErrorCode::InstructionBadTable));
    assert_eq!(ask(1, &[goto(3)]), None);
    assert_eq!(ask(0, &[goto(1), goto(2)]), Some(ErrorCode::InstructionUnsupported));
    let data = Bytes(&[]);
    let odd = Instruction::Experimenter { experimenter: 1, data };
    assert_eq!(ask(0, &[odd]), Some(ErrorCode::InstructionBadExperimenter));
    let odd = Instruction::Unknown { kind: 99, body: data };
    assert_eq!(ask(0, &[odd]), Some(ErrorCode::InstructionUnknown));
    assert_eq!(ask(0, &[Instruction::Meter(9)]), Some(ErrorCode::MeterModInvalid));
    let bad = [out(9)];
    let write = Instruction::WriteActions(List::of(&bad));
    assert_eq!(ask(0, &[write]), Some(ErrorCode::ActionBadOutPort));
}

#[test]
fn a_program_tells_its_instructions_in_the_order_that_they_run_in() {
    let mut lab = Lab::new(V13);
    let actions = [out(2), Action::SetField(Field::EthSrc, 5)];
    let write = Instruction::WriteActions(List::of(&actions));
    let metadata = Instruction::WriteMetadata { metadata: 5, mask: 7 };
    lab.flow(
        0,
        &Match::any(),
        &[Instruction::GotoTable(2), metadata, write, Instruction::ClearActions],
    );
    let (_, flow) = lab.datapath.tables().table(0).unwrap().flows().next().unwrap();
    let told = flow.program.instructions();
    assert_eq!(told, [Instruction::ClearActions, write, metadata, Instruction::GotoTable(2)]);
    assert!(flow.program.outputs_to(Port(2)) && !flow.program.outputs_to(Port(3)));
}

#[test]
fn tables_have_nothing_to_set_up_but_what_means_nothing() {
    let mut lab = Lab::new(V13);
    for (table, config, answer) in [
        (0, 0, Ok(())),
        (0xff, 3, Ok(())),
        (9, 0, Err(ErrorCode::TableModBadTable)),
        (0, 4, Err(ErrorCode::TableModBadConfig)),
    ] {
        assert_eq!(lab.datapath.table_mod(&TableMod { table, config }), answer);
    }
}
