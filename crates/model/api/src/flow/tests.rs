//! Flows that a switch reports match the wanted ones, and no others.

use std::net::Ipv4Addr;

use bellrock_openflow::{
    Action, Bytes, Field, FlowCommand, FlowFlags, FlowMod, FlowStats, Instruction, Instructions,
    List, Match, MatchView, Out, Port, ToSwitch, Version,
};

use super::*;
use crate::AppId;

fn app() -> AppId {
    AppId::new(1, "app").unwrap()
}

fn web() -> Match {
    Match::any()
        .in_port(Port(3))
        .eth_type(0x0800)
        .ip_proto(6)
        .ipv4_dst_prefix(Ipv4Addr::new(10, 1, 2, 3), 24)
        .tcp_dst(80)
}

/// A flow as the switch reports it.
fn told<'t>(flow: &Flow, matching: &'t Match, instructions: Instructions<'t>) -> FlowStats<'t> {
    FlowStats {
        table: flow.table,
        duration_sec: 7,
        duration_nsec: 9,
        priority: app().band().lift(flow.priority).unwrap(),
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        flags: FlowFlags::empty(),
        cookie: app().cookie().with(flow.number.into()),
        packet_count: 3,
        byte_count: 200,
        matching: MatchView::from(matching),
        instructions,
    }
}

/// Actions with bytes, which a caller may drop when the flow is made.
fn with_bytes() -> Flow {
    let (resubmit, value) = (vec![0, 14, 0xff, 0xf8, 7, 0, 0, 0], vec![1, 2, 3, 4]);
    let nicira = Action::Experimenter { experimenter: 0x2320, data: Bytes(&resubmit) };
    let field = Action::SetUnknownField { header: 0x7fff_0204, value: Bytes(&value) };
    let mut flow = Flow::new(web()).output(Port(1)).actions(&[nicira]).write_actions(&[nicira]);
    flow.prepend(&[field, Action::DecNwTtl]);
    flow.output(Port(2))
}

#[test]
fn a_flow_owns_the_bytes_of_its_actions_and_a_switch_may_report_them() {
    let flow = with_bytes();
    assert_eq!(flow, with_bytes());
    assert_eq!(
        flow.applied().iter().map(Action::to_string).collect::<Vec<_>>(),
        [
            "set_field:01020304->oxm(0x7fff0204)",
            "dec_nw_ttl",
            "output:1",
            "experimenter(0x00002320,000efff807000000)",
            "output:2"
        ]
    );
    assert_eq!(flow.outputs().collect::<Vec<_>>(), [Port(1), Port(2)]);
    assert!(flow.to_string().contains(" write:experimenter(0x00002320,000efff807000000)"));
    let mut form = FlowNormalizer::new(Version::V1_3);
    let wanted = form.of_flow(app(), &flow).unwrap();
    let mut reported = |flow: &Flow| {
        let (apply, write) = (flow.applied(), flow.treatment.write.all());
        let list = [
            Instruction::ApplyActions(List::of(&apply)),
            Instruction::WriteActions(List::of(&write)),
        ];
        form.of_stats(&told(flow, &web(), Instructions::of(&list))).unwrap()
    };
    assert_eq!(reported(&flow), wanted);
    let other = Action::Experimenter { experimenter: 0x2320, data: Bytes(&[1; 8]) };
    assert_ne!(reported(&Flow::new(web()).actions(&[other])), wanted);
}

#[test]
fn equivalent_flow_stats_have_the_same_normal_form() {
    let flow = Flow::new(web())
        .priority(9)
        .number(5)
        .flags(FlowFlags::CHECK_OVERLAP | FlowFlags::RESET_COUNTS)
        .meter(4)
        .actions(&[Action::Output { port: Port(1), max_len: 128 }, Action::DecNwTtl])
        .write_actions(&[Action::output(Port(2)), Action::PopVlan, Action::output(Port(3))])
        .write_metadata(0xff, 0x0f)
        .goto_table(2);
    let mut form = FlowNormalizer::new(Version::V1_3);
    let wanted = form.of_flow(app(), &flow).unwrap();

    let apply = [Action::Output { port: Port(1), max_len: 0 }, Action::DecNwTtl];
    let write = [Action::PopVlan, Action::output(Port(3))];
    let in_another_order = [
        Instruction::GotoTable(2),
        Instruction::WriteMetadata { metadata: 0x0f, mask: 0x0f },
        Instruction::WriteActions(List::of(&write)),
        Instruction::ApplyActions(List::of(&apply)),
        Instruction::Meter(4),
    ];
    let matching = web();
    let stats = told(&flow, &matching, Instructions::of(&in_another_order));
    assert_eq!(form.of_stats(&stats).unwrap(), wanted);
}

#[test]
fn a_flow_that_does_something_else_is_another() {
    let flow = Flow::new(web()).priority(9).number(5).output(Port(1));
    let mut form = FlowNormalizer::new(Version::V1_3);
    let wanted = form.of_flow(app(), &flow).unwrap();
    let (matching, output) = (web(), [Action::output(Port(1))]);
    let same = told(&flow, &matching, Instructions::apply(&output));
    assert_eq!(form.of_stats(&same).unwrap(), wanted);
    let other_port = [Action::output(Port(2))];
    let twice = [Action::output(Port(1)), Action::output(Port(1))];
    let wider = web().ipv4_dst_prefix(Ipv4Addr::new(10, 1, 2, 3), 16);
    for other in [
        told(&flow, &matching, Instructions::apply(&other_port)),
        told(&flow, &matching, Instructions::apply(&twice)),
        told(&flow, &matching, Instructions::none()),
        told(&flow, &wider, Instructions::apply(&output)),
        FlowStats { priority: 9, ..same },
        FlowStats { cookie: app().cookie().with(6), ..same },
        FlowStats { idle_timeout: 1, ..same },
        FlowStats { table: 1, ..same },
        FlowStats { flags: FlowFlags::SEND_FLOW_REM, ..same },
    ] {
        assert_ne!(form.of_stats(&other).unwrap(), wanted, "{other:?}");
    }
}

#[test]
fn in_1_0_what_is_wanted_is_compared_in_its_words() {
    let flow = Flow::new(web()).flags(FlowFlags::SEND_FLOW_REM).actions(&[
        Action::SetField(Field::VlanVid, u128::from(Match::VLAN_PRESENT | 7)),
        Action::SetField(Field::TcpDst, 8080),
        Action::output(Port(1)),
    ]);
    let mut form = FlowNormalizer::new(Version::V1_0);
    let wanted = form.of_flow(app(), &flow).unwrap();
    let actions = [Action::SetVlanVid(7), Action::SetTpDst(8080), Action::output(Port(1))];
    let matching = web();
    let stats = told(&flow, &matching, Instructions::apply(&actions));
    assert_eq!(form.of_stats(&stats).unwrap(), wanted);
    let meter = Flow::new(web()).meter(1);
    assert!(form.of_flow(app(), &meter).is_err(), "1.0 has none");
}

#[test]
fn a_removal_names_the_flow_and_not_what_it_does() {
    let flow = Flow::new(web()).priority(9).table(0).meter(1).group(7);
    for version in Version::ALL {
        let mut out = Out::with_capacity(1024);
        Change::Remove(flow.clone()).encode(app(), version, 1, &mut out).unwrap();
        let ToSwitch::FlowMod(message) = ToSwitch::decode(out.as_slice()).unwrap().body else {
            panic!("a flow_mod");
        };
        assert_eq!(message.command, FlowCommand::DeleteStrict);
        assert_eq!(message.priority, app().band().lift(9).unwrap());
        assert_eq!(message.matching.to_match(), web());
        assert_eq!(message.instructions.iter().count(), 0);
    }
}

#[test]
fn a_flow_of_somebody_else_is_not_removed() {
    let flow = Flow::new(web());
    let matching = web();
    let stats = FlowStats { cookie: 1, ..told(&flow, &matching, Instructions::none()) };
    let told = FlowNormalizer::new(Version::V1_3).of_stats(&stats).unwrap();
    let mut out = Out::with_capacity(1024);
    let refused = Change::RemoveReported(told).encode(app(), Version::V1_3, 1, &mut out);
    assert!(refused.is_err() && out.is_empty());
    let any = Match::any();
    let whole = FlowMod::delete(&any);
    assert_eq!(
        app().owned_flow_mod(Version::V1_3, &whole).unwrap().cookie_mask,
        crate::Cookie::MASK
    );
    assert!(app().owned_flow_mod(Version::V1_0, &whole).is_err());
}

#[test]
fn it_prints_what_it_does() {
    let flow = Flow::new(Match::any().in_port(Port(1))).priority(1);
    assert_eq!(flow.to_string(), "in_port=1 priority=1 drop");
    let flow = flow.table(2).meter(3).group(4).goto_table(5);
    let text = "in_port=1 table=2 priority=1 meter:3 group:4 goto_table:5";
    assert_eq!(flow.to_string(), text);
}
