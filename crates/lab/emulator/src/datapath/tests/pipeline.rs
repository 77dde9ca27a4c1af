//! The path of a packet through the tables.

use bellrock_openflow::{
    ConfigFlags, Field, FlowCommand, FlowFlags, FlowRemovedReason, PacketInReason, SwitchConfig,
};

use super::*;

#[test]
fn in_1_3_a_packet_that_no_flow_matches_is_dropped_and_in_1_0_the_controller_gets_it() {
    let mut lab = Lab::new(V13);
    assert!(lab.send(&frame()).is_empty() && lab.packet_ins().is_empty());
    let mut lab = Lab::new(V10);
    assert!(lab.send(&frame()).is_empty());
    let [packet] = lab.packet_ins()[..] else { panic!("one packet_in") };
    assert_eq!((packet.reason, packet.in_port), (PacketInReason::NoMatch, Port(1)));
    assert_eq!(packet.cookie, u64::MAX);
}

#[test]
fn the_table_miss_flow_sends_with_the_reason_no_match_and_other_flows_with_action() {
    let mut lab = Lab::new(V13);
    let any = Match::any();
    let whole = [Action::output(Port::CONTROLLER)];
    lab.ask(&FlowMod::add(&any).priority(0).cookie(5).actions(&whole)).unwrap();
    lab.send(&frame());
    let [packet] = lab.packet_ins()[..] else { panic!("one packet_in") };
    assert_eq!((packet.reason, packet.cookie, packet.table), (PacketInReason::NoMatch, 5, 0));
    assert_eq!((packet.data(), packet.buffer_id), (&frame()[..], None));
    lab.ask(&FlowMod::add(&any).priority(1).cookie(6).actions(&whole)).unwrap();
    lab.send(&frame());
    let [packet] = lab.packet_ins()[..] else { panic!("one packet_in") };
    assert_eq!((packet.reason, packet.cookie), (PacketInReason::Action, 6));
}

#[test]
fn metadata_and_fields_that_one_table_writes_are_matched_by_the_next() {
    let mut lab = Lab::new(V13);
    let set = [Action::SetField(Field::EthDst, 0x77)];
    lab.flow(
        0,
        &Match::any(),
        &[
            Instruction::WriteMetadata { metadata: 0xab, mask: 0xff },
            Instruction::ApplyActions(List::of(&set)),
            Instruction::GotoTable(2),
        ],
    );
    let wanted = Match::any().metadata(0xab).eth_dst(MacAddr::from_u64(0x77));
    let to_three = [out(3)];
    lab.flow(2, &wanted, &[Instruction::ApplyActions(List::of(&to_three))]);
    assert_eq!(lab.send(&frame()), [3]);
    // Table 1 was not searched.
    let lookups: Vec<_> = lab.datapath.tables().iter().map(|(_, t)| t.lookup_count).collect();
    assert_eq!(lookups, [1, 0, 1, 0]);
}

#[test]
fn a_miss_in_a_later_table_drops_the_packet_with_its_action_set() {
    let mut lab = Lab::new(V13);
    let write = [out(2)];
    let write = Instruction::WriteActions(List::of(&write));
    let apply = [out(3)];
    let apply = Instruction::ApplyActions(List::of(&apply));
    lab.flow(0, &Match::any(), &[write, apply, Instruction::GotoTable(1)]);
    assert_eq!(lab.send(&frame()), [3]);
}

#[test]
fn applied_actions_are_done_at_once_and_written_ones_at_the_end() {
    let mut lab = Lab::new(V13);
    let write = [out(2), Action::SetField(Field::EthSrc, 1)];
    let apply = [out(3), Action::PushVlan(0x8100), out(4)];
    lab.flow(
        0,
        &Match::any(),
        &[Instruction::WriteActions(List::of(&write)), Instruction::ApplyActions(List::of(&apply))],
    );
    lab.send(&frame());
    let tagged = eth().vlan(0, 0).ip(&ip().udp(1_000, 53, b"a question"));
    let from_one = Eth::new(MacAddr::from_u64(1), B).vlan(0, 0);
    let from_one = from_one.ip(&ip().udp(1_000, 53, b"a question"));
    assert_eq!(lab.frames(), [(3, &frame()[..]), (4, &tagged[..]), (2, &from_one[..])]);
}

#[test]
fn a_later_table_can_change_and_clear_the_action_set() {
    let mut lab = Lab::new(V13);
    let (two, three) = ([out(2)], [out(3)]);
    lab.flow(
        0,
        &Match::any(),
        &[Instruction::WriteActions(List::of(&two)), Instruction::GotoTable(1)],
    );
    lab.flow(1, &Match::any(), &[Instruction::WriteActions(List::of(&three))]);
    assert_eq!(lab.send(&frame()), [3]);
    // Clearing comes before writing, in any order of the instructions.
    let four = [out(4)];
    lab.flow(
        1,
        &Match::any(),
        &[Instruction::WriteActions(List::of(&four)), Instruction::ClearActions],
    );
    assert_eq!(lab.send(&frame()), [4]);
    lab.flow(1, &Match::any(), &[Instruction::ClearActions]);
    assert!(lab.send(&frame()).is_empty());
    // A packet does not keep the action set of the one before.
    lab.flow(1, &Match::any(), &[]);
    assert_eq!(lab.send(&frame()), [2]);
}

#[test]
fn a_packet_whose_ttl_runs_out_goes_to_the_controller_and_no_further() {
    let mut lab = Lab::new(V13);
    let actions = [out(2), Action::DecNwTtl, out(3)];
    let matching = Match::any().eth_type(0x0800);
    lab.flow(0, &matching, &[Instruction::ApplyActions(List::of(&actions))]);
    assert_eq!(lab.send(&frame()), [2, 3]);
    assert_eq!(lab.send(&eth().ip(&ip().ttl(1).udp(1, 2, b""))), [2]);
    let [packet] = lab.packet_ins()[..] else { panic!("one packet_in") };
    assert_eq!((packet.reason, packet.cookie), (PacketInReason::InvalidTtl, 0xc0));
}

#[test]
fn fragments_are_dropped_where_the_switch_is_set_up_so() {
    let mut lab = Lab::new(V13);
    lab.apply(&[out(2)]);
    let fragment = eth().ip(&ip().fragment(0, true).payload(17, &[0; 8]));
    assert_eq!(lab.send(&fragment), [2]);
    let config = |flags| SwitchConfig { flags, miss_send_len: 77 };
    let drop = config(ConfigFlags::FRAG_DROP);
    assert_eq!(lab.datapath.set_config(V13, &drop), Ok(()));
    assert!(lab.send(&fragment).is_empty());
    assert_eq!(lab.send(&frame()), [2]);
    // The switch cannot reassemble fragments.
    let reassemble = config(ConfigFlags::FRAG_REASM);
    let refused = Err(ErrorCode::SwitchConfigBadFlags);
    assert_eq!(lab.datapath.set_config(V13, &reassemble), refused);
    assert_eq!(lab.datapath.set_config(V10, &reassemble), Ok(()));
    assert_eq!(lab.datapath.config(), drop);
}

#[test]
fn in_1_0_fragments_match_the_port_zero() {
    let mut lab = Lab::new(V10);
    let zero = Match::any().eth_type(0x0800).ip_proto(17).udp_dst(0);
    lab.ask(&FlowMod::add(&zero).actions(&[out(2)])).unwrap();
    let datagram = ip().udp(5, 6, &[0; 16]).bytes()[20..].to_vec();
    assert_eq!(lab.send(&eth().ip(&ip().fragment(0, true).payload(17, &datagram))), [2]);
    assert_eq!(lab.send(&eth().ip(&ip().fragment(2, false).payload(17, &datagram))), [2]);
    assert!(lab.send(&frame()).is_empty());
}

#[test]
fn flows_count_what_they_match_and_tell_it_when_they_go() {
    let mut lab = Lab::new(V13);
    let any = Match::any();
    let flow = FlowMod::add(&any).idle_timeout(10).hard_timeout(15).cookie(9);
    lab.ask(&flow.flags(FlowFlags::SEND_FLOW_REM)).unwrap();
    lab.now += Duration::from_secs(6);
    lab.send(&frame());
    lab.now += Duration::from_secs(6);
    lab.datapath.timers(lab.now, &mut lab.effects);
    assert!(lab.effects.notices.is_empty());
    lab.now += Duration::from_millis(3_500);
    lab.datapath.timers(lab.now, &mut lab.effects);
    let [Notice::FlowRemoved(gone)] = &lab.effects.notices[..] else { panic!("one is gone") };
    assert_eq!((gone.reason, gone.cookie), (FlowRemovedReason::HardTimeout, 9));
    assert_eq!((gone.packet_count, gone.byte_count), (1, frame().len() as u64));
    assert_eq!(gone.duration, Duration::from_millis(15_500));
    assert_eq!(lab.datapath.next_timer(), None);
}

#[test]
fn a_flow_that_is_deleted_is_told_of_only_if_it_asked_for_it() {
    let mut lab = Lab::new(V13);
    for (port, flags) in [(1, FlowFlags::SEND_FLOW_REM), (2, FlowFlags::empty())] {
        let matching = Match::any().in_port(Port(port));
        lab.ask(&FlowMod::add(&matching).flags(flags)).unwrap();
    }
    let all = Match::any();
    lab.ask(&FlowMod { command: FlowCommand::Delete, ..FlowMod::add(&all) }).unwrap();
    let [Notice::FlowRemoved(gone)] = &lab.effects.notices[..] else { panic!("one is told of") };
    assert_eq!(gone.matching, Match::any().in_port(Port(1)));
    assert_eq!(gone.reason, FlowRemovedReason::Delete);
}

#[test]
fn a_switch_that_restarts_has_forgotten_what_it_was_told() {
    let mut lab = Lab::new(V13);
    lab.group(GroupType::All, 1, &[]).unwrap();
    lab.apply(&[out(2)]);
    lab.datapath.clear();
    assert!(lab.send(&frame()).is_empty());
    assert!(lab.datapath.groups().get(1).is_none());
}

#[test]
fn in_1_0_a_flow_for_all_packets_is_no_table_miss() {
    let any = Match::any();
    let actions = [Action::Output { port: Port::CONTROLLER, max_len: 64 }];
    for (rules, reason) in [(V10, PacketInReason::Action), (V13, PacketInReason::NoMatch)] {
        let mut lab = Lab::new(rules);
        lab.ask(&FlowMod::add(&any).priority(0).actions(&actions)).unwrap();
        lab.receive(1, &frame());
        assert_eq!(lab.packet_ins()[0].reason, reason, "{rules}");
    }
}
