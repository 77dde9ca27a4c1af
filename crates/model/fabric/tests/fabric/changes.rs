//! From one state of a switch to another: which messages, in which order, and how many.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellrock_api::{Change, Flow};
use bellrock_fabric::compile::{Capabilities, Compiler, Fact, Facts, HostKey, Owner, Tables};
use bellrock_fabric::diff::Step;
use bellrock_fabric::intent::SwitchId;
use bellrock_fabric::{Plan, check, compile, diff};
use bellrock_openflow::MacAddr;

use super::intent;
use super::networks::{access_and_trunks, trunks, with_acls};

fn facts() -> Facts {
    Facts::with_ports(1..=48)
}

fn compiler(text: &str) -> Compiler {
    Compiler::new(Arc::new(intent(text)), SwitchId(0), Capabilities::default()).unwrap()
}

fn tables(text: &str) -> Tables {
    let intent = Arc::new(intent(text));
    let tables = compile(&intent, SwitchId(0), &facts()).unwrap();
    check(&intent, SwitchId(0), &facts(), &tables).unwrap_or_else(|why| panic!("{why}"));
    tables
}

/// The lines of a plan.
fn lines(plan: &Plan) -> Vec<String> {
    plan.to_string().lines().map(str::to_owned).collect()
}

/// Number of flows that are added or replaced, and that are removed.
fn counts(plan: &Plan) -> (usize, usize) {
    let is_added = |change: &&Change| matches!(change, Change::Add(_));
    let added = plan.changes().filter(is_added).count();
    (added, plan.changes().count() - added)
}

#[test]
fn a_network_of_48_ports_and_50_vlans_costs_a_flow_for_each_port_and_vlan() {
    // A flow for each port and VLAN, six for each VLAN, and the switch's own.
    assert_eq!(tables(&trunks(48, 50)).flows().count(), 48 * 50 + 6 * 50 + 11);
    // Three rules for each VLAN more, and a miss.
    assert_eq!(tables(&with_acls(2, 300)).flows().count(), 300 * (2 + 6 + 3) + 11 + 1);
}

#[test]
fn a_port_from_access_to_trunk_costs_what_changes_and_no_more() {
    let (old, new) = (tables(&access_and_trunks(48, 50)), tables(&trunks(48, 50)));
    let plan = diff(&old, &new);
    // The port's VLANs, and the five floods of each.
    assert_eq!(counts(&plan), (50 + 5 * 50, 1));
    assert!(plan.messages() <= 310, "{} messages", plan.messages());
    assert_eq!(counts(&diff(&new, &old)), (1 + 5 * 50, 50));
}

#[test]
fn nothing_changes_between_equals() {
    let text = with_acls(4, 20);
    assert!(diff(&tables(&text), &tables(&text)).is_empty());
    assert_eq!(tables(&text), tables(&text), "two instances compile alike");
    let described =
        text.replace("dp_id: 1", "description: the one\n    timeout: 301\n    dp_id: 1");
    assert!(diff(&tables(&text), &tables(&described)).is_empty());
}

#[test]
fn a_port_that_goes_down_costs_its_own_flows_only() {
    let compiler = compiler(&trunks(48, 50));
    let mut facts = facts();
    let down = compiler.change(&mut facts, Fact::PortDown(1));
    assert_eq!(counts(&down), (0, 50));
    assert!(compiler.change(&mut facts, Fact::PortDown(1)).is_empty(), "it is down already");
    assert_eq!(counts(&compiler.change(&mut facts, Fact::PortUp(1))), (50, 0));
    assert!(compiler.change(&mut facts, Fact::PortUp(77)).is_empty(), "no port of the file");
}

#[test]
fn a_host_costs_two_messages_and_a_move_three() {
    let compiler = compiler(&trunks(48, 50));
    let mut facts = facts();
    let host = HostKey { vid: 100, mac: MacAddr([2, 0, 0, 0, 0, 7]) };
    let learned = compiler.change(&mut facts, Fact::HostAt(host, 1));
    assert_eq!(
        lines(&learned),
        [
            // By destination first: from then on nothing is flooded.
            "add eth_dst=02:00:00:00:00:07,vlan_vid=0x1064 table=10 priority=8192 output:1",
            "add in_port=1,eth_src=02:00:00:00:00:07,vlan_vid=0x1064 table=5 priority=8191 goto_table:10",
        ]
    );
    assert!(compiler.change(&mut facts, Fact::HostAt(host, 1)).is_empty());
    let moved = compiler.change(&mut facts, Fact::HostAt(host, 2));
    assert_eq!(counts(&moved), (2, 1));
    assert_eq!(
        lines(&moved)[2..],
        ["barrier", "remove in_port=1,eth_src=02:00:00:00:00:07,vlan_vid=0x1064 priority=8191"]
    );
    assert_eq!(counts(&compiler.refresh(host, &facts)), (1, 0), "the flow by source");
    assert_eq!(counts(&compiler.change(&mut facts, Fact::PortDown(2))), (0, 50 + 2));
    assert_eq!(counts(&compiler.change(&mut facts, Fact::HostGone(host))), (0, 0));
}

#[test]
fn flows_are_added_behind_what_they_go_to_and_removed_before_it() {
    let text = |acl: &str| {
        format!(
            "acls: {{x: [{{eth_type: 0x800, actions: {{allow: 0}}}}, {{actions: {{allow: 1}}}}]}}\nvlans: {{a: {{vid: 100{acl}}}}}\ndps: {{sw1: {{dp_id: 1, interfaces: {{1: {{native_vlan: a}}}}}}}}\n"
        )
    };
    let (without, with) = (tables(&text("")), tables(&text(", acls_in: [x]")));
    let input = |next: u8| {
        format!(
            "add in_port=1,vlan_vid=0x0 table=1 priority=4096 push_vlan:0x8100 set_field:0x1064->vlan_vid goto_table:{next}"
        )
    };
    assert_eq!(
        lines(&diff(&without, &with)),
        [
            // A rule that denies is there before one that allows.
            "add eth_type=0x0800,vlan_vid=0x1064 table=3 priority=20480 drop",
            "add vlan_vid=0x1064 table=3 priority=20479 goto_table:5",
            "add any table=3 priority=0 drop",
            &input(3),
        ]
    );
    assert_eq!(
        lines(&diff(&with, &without)),
        [
            &input(5),
            "barrier",
            "remove any priority=0",
            "remove vlan_vid=0x1064 priority=20479",
            "remove eth_type=0x0800,vlan_vid=0x1064 priority=20480",
        ]
    );
}

#[test]
fn groups_and_meters_come_first_and_go_last() {
    let text = |actions: &str| {
        format!(
            "meters: {{m: {{meter_id: 3, entry: {{flags: KBPS, bands: [{{type: DROP, rate: 1}}]}}}}}}\nacls: {{x: [{{actions: {{{actions}}}}}]}}\ndps: {{sw1: {{dp_id: 1, interfaces: {{1: {{native_vlan: 100, acls_in: [x]}}, 2: {{native_vlan: 100}}}}}}}}\n"
        )
    };
    let plain = tables(&text("allow: 1"));
    let used = tables(&text("meter: m, output: {failover: {group_id: 7, ports: [1, 2]}}"));
    let flow = "add in_port=1 priority=20480";
    assert_eq!(
        lines(&diff(&plain, &used)),
        ["add meter 3", "add group 7", "barrier", &format!("{flow} meter:3 group:7")]
    );
    assert_eq!(
        lines(&diff(&used, &plain)),
        [&format!("{flow} goto_table:1"), "barrier", "remove group 7", "remove meter 3"]
    );
    let other = tables(&text("meter: m, output: {failover: {group_id: 7, ports: [2, 1]}}"));
    assert_eq!(lines(&diff(&used, &other)), ["change group 7"]);
}

#[test]
fn the_first_acl_lets_other_ports_pass_before_the_table_drops() {
    let text = |acl: &str| {
        format!(
            "acls: {{x: [{{actions: {{allow: 1}}}}]}}\ndps: {{sw1: {{dp_id: 1, interfaces: {{1: {{native_vlan: 100{acl}}}, 2: {{native_vlan: 100}}}}}}}}\n"
        )
    };
    let (without, with) = (tables(&text("")), tables(&text(", acls_in: [x]")));
    assert_eq!(
        lines(&diff(&without, &with)),
        [
            "add in_port=2 priority=20480 goto_table:1",
            "add in_port=1 priority=20480 goto_table:1",
            "add any priority=0 drop",
        ]
    );
    assert_eq!(lines(&diff(&with, &without))[..2], ["add any priority=0 goto_table:1", "barrier"]);
}

#[test]
fn a_match_that_moves_to_another_owner_is_replaced() {
    let text = |keys: &str| {
        format!(
            "dps: {{sw1: {{dp_id: 1, interfaces: {{1: {{{keys}}}, 2: {{native_vlan: 100}}}}}}}}\n"
        )
    };
    let counted = tables(&text("tagged_vlans: [200], count_untag_vlan_miss: true"));
    let native = tables(&text("tagged_vlans: [200], native_vlan: 100"));
    let untagged = |tables: &Tables| -> Vec<Owner> {
        let is_it = |flow: &Flow| flow.matching.to_string() == "in_port=1,vlan_vid=0x0";
        tables.flows().filter(|(_, it)| is_it(&it.flow)).map(|(owner, _)| owner).collect()
    };
    assert_eq!(untagged(&counted), [Owner::Port(1)]);
    assert_eq!(untagged(&native), [Owner::PortVlan { port: 1, vid: 100 }]);
    let plan = diff(&counted, &native);
    assert_eq!(counts(&plan).1, 0, "{plan}");
    let shown = plan.to_string();
    assert_eq!(shown.matches("in_port=1,vlan_vid=0x0").count(), 1, "{shown}");
}

#[test]
fn a_plan_leads_from_the_one_state_to_the_other() {
    let old = access_and_trunks(6, 5);
    let texts = [
        trunks(6, 5),
        trunks(3, 7),
        with_acls(6, 5),
        old.replace("dp_id: 1", "dp_id: 1\n    group_table: true"),
        old.replace("dp_id: 1", "dp_id: 1\n    use_classification: true"),
        old.replace("dp_id: 1", "dp_id: 1\n    egress_pipeline: true\n    cookie: 5"),
        old.replace("{native_vlan: v100}", "{native_vlan: v100, hairpin: true}"),
    ];
    for text in &texts {
        for (one, other) in [(&old, text), (text, &old)] {
            let (one, other) = (tables(one), tables(other));
            assert_eq!(after(&one, &diff(&one, &other)), state(&other), "{text}");
        }
    }
}

/// Flows by table, priority and match.
type State = BTreeMap<(u8, u16, String), (Flow, u64)>;

fn key(flow: &Flow) -> (u8, u16, String) {
    (flow.table, flow.priority, flow.matching.to_string())
}

fn state(tables: &Tables) -> State {
    let flows: Vec<_> = tables.flows().map(|(_, it)| (it.flow.clone(), it.cookie)).collect();
    let number = flows.len();
    let state: State = flows.into_iter().map(|it| (key(&it.0), it)).collect();
    assert_eq!(state.len(), number, "each match and priority once");
    state
}

fn after(tables: &Tables, plan: &Plan) -> State {
    let mut state = state(tables);
    for step in plan.steps() {
        match step {
            Step::Change { change: Change::Add(flow), cookie } => {
                state.insert(key(flow), (flow.clone(), *cookie));
            }
            Step::Change { change: Change::Remove(flow), .. } => {
                assert!(state.remove(&key(flow)).is_some(), "{flow} was there");
            }
            Step::Change { .. } | Step::Barrier => {}
        }
    }
    state
}
