//! The invariants: tables that are changed by hand are found, with a packet that shows it.

use std::sync::Arc;

use bellrock_api::{Change, Flow};
use bellrock_fabric::check::{Invariant, State, Violation, Wanted, check_state};
use bellrock_fabric::compile;
use bellrock_fabric::compile::{Fact, Facts, HostKey, Tables};
use bellrock_fabric::intent::SwitchId;
use bellrock_openflow::{Action, MacAddr, Match, Port};

use super::intent;

const FIRST: SwitchId = SwitchId(0);

/// Ports 1 and 2 in VLAN 100, port 3 in 100 with tags and in 200; 4 in 200.
fn network(of_switch: &str, of_vlan: &str, of_port: &str) -> String {
    format!(
        "vlans:\n  a: {{vid: 100{of_vlan}}}\n  b: {{vid: 200}}\nmeters: {{m: {{meter_id: 3, entry: {{flags: KBPS, bands: [{{type: DROP, rate: 1}}]}}}}}}\nacls:\n  x:\n  - {{dl_type: 0x800, nw_proto: 6, tcp_dst: 23, actions: {{allow: 0}}}}\n  - {{actions: {{allow: 1, meter: m}}}}\ndps:\n  sw1: {{dp_id: 1{of_switch}, interfaces: {{1: {{native_vlan: a{of_port}}}, 2: {{native_vlan: a}}, 3: {{tagged_vlans: [a], native_vlan: b}}, 4: {{native_vlan: b}}}}}}\n"
    )
}

/// The violations of the tables of a network, after changes of them.
fn violations(
    text: &str,
    facts: &Facts,
    change: impl Fn(&Tables) -> Vec<Change>,
) -> Vec<Violation> {
    let intent = Arc::new(intent(text));
    let tables = compile(&intent, FIRST, facts).unwrap();
    let wanted = Wanted::new(&intent, FIRST, facts).unwrap();
    check_state(&wanted, &State::of(&tables)).unwrap();
    let changes = change(&tables);
    let mut state = State::of(&tables);
    changes.iter().for_each(|change| state.change(change));
    check_state(&wanted, &state).unwrap_err().0
}

/// Asserts that changed tables are found: the invariant, the ports, a part of the packet, and what
/// is said.
#[track_caller]
fn assert_found(
    text: &str,
    change: impl Fn(&Tables) -> Vec<Change>,
    (invariant, ports): (Invariant, &[u32]),
    packet: &str,
    why: &str,
) {
    let all = violations(text, &facts(), change);
    let shown: Vec<String> = all.iter().map(ToString::to_string).collect();
    let is_it = |it: &&Violation| {
        it.invariant == invariant
            && it.ports == ports
            && it.packet.to_string().contains(packet)
            && it.why.contains(why)
            && !it.flows.is_empty()
    };
    assert!(all.iter().any(|it| is_it(&it)), "{invariant:?} among\n{}", shown.join("\n"));
}

fn facts() -> Facts {
    Facts::with_ports(1..=4)
}

/// The flow of a table whose line ends or goes on so: `in_port=1,vlan_vid=0x0 ->`.
fn flow(tables: &Tables, table: u8, matching: &str) -> Flow {
    let is_it = |flow: &&Flow| flow.table == table && flow.matching.to_string() == matching;
    let mut flows = tables.flows().map(|(_, it)| &it.flow);
    flows.find(is_it).unwrap_or_else(|| panic!("{matching} in\n{tables}")).clone()
}

/// A flow with the match of another that has these actions, and goes nowhere.
fn with(flow: &Flow, actions: &[Action<'_>]) -> Flow {
    let new = Flow::new(flow.matching.clone()).table(flow.table).priority(flow.priority);
    new.actions(actions)
}

fn outputs(first: &[Action<'static>], ports: &[u32]) -> Vec<Action<'static>> {
    let outputs = ports.iter().map(|port| Action::output(Port(*port)));
    first.iter().copied().chain(outputs).collect()
}

const BROADCAST: &str = "eth_dst=ff:ff:ff:ff:ff:ff,vlan_vid=0x1064";
const PORT_ACL: u8 = 0;
const VLAN: u8 = 1;
const VLAN_ACL: u8 = 3;
const ETH_SRC: u8 = 5;
const ETH_DST: u8 = 10;
const FLOOD: u8 = 13;

/// Replaces the broadcast flood of VLAN 100.
fn flood(actions: &[Action<'static>]) -> impl Fn(&Tables) -> Vec<Change> {
    move |tables| vec![Change::Add(with(&flow(tables, FLOOD, BROADCAST), actions))]
}

/// Removes a flow.
fn without(table: u8, matching: &'static str) -> impl Fn(&Tables) -> Vec<Change> {
    move |tables| vec![Change::Remove(flow(tables, table, matching))]
}

#[test]
fn a_flood_to_a_port_without_the_vlan_is_found() {
    let mut actions = outputs(&[], &[3]);
    actions.extend(outputs(&[Action::PopVlan], &[1, 2, 4]));
    let found = (Invariant::Vlan, &[4][..]);
    let packet = "eth_dst=ff:ff:ff:ff:ff:ff";
    assert_found(&network("", "", ""), flood(&actions), found, packet, "port 4 is not in VLAN 100");
}

#[test]
fn a_second_copy_is_found() {
    let mut actions = outputs(&[], &[3]);
    actions.extend(outputs(&[Action::PopVlan], &[1, 2, 2]));
    let found = (Invariant::OneCopy, &[2][..]);
    assert_found(
        &network("", "", ""),
        flood(&actions),
        found,
        "in_port=1",
        "left by this port before",
    );
}

#[test]
fn a_tag_that_stays_is_found() {
    let found = (Invariant::Vlan, &[1][..]);
    let tagged = outputs(&[], &[3, 1, 2]);
    let change = flood(&tagged);
    assert_found(&network("", "", ""), change, found, "in_port=2", "tag 100 instead of no tag");
    let popped = outputs(&[Action::PopVlan], &[1, 2, 3]);
    let all_popped = flood(&popped);
    let found = (Invariant::Vlan, &[3][..]);
    assert_found(&network("", "", ""), all_popped, found, "", "no tag instead of tag 100");
}

#[test]
fn a_port_that_a_flood_leaves_out_is_found() {
    let mut actions = outputs(&[], &[3]);
    actions.extend(outputs(&[Action::PopVlan], &[1]));
    let found = (Invariant::Reach, &[2][..]);
    assert_found(&network("", "", ""), flood(&actions), found, "eth_dst=ff:ff:ff:ff:ff:ff", "");
}

#[test]
fn a_rule_that_is_missing_is_found() {
    let rule = "in_port=1,eth_type=0x0800,ip_proto=6,tcp_dst=23";
    let text = network("", "", ", acls_in: [x]");
    let found = (Invariant::Acl, &[3, 2][..1]);
    assert_found(&text, without(PORT_ACL, rule), found, rule_of(rule), "drops it");
    let rule = "eth_type=0x0800,vlan_vid=0x1064,ip_proto=6,tcp_dst=23";
    let text = network("", ", acls_in: [x]", "");
    let found = (Invariant::Acl, &[3][..]);
    assert_found(&text, without(VLAN_ACL, rule), found, "tcp_dst=23", "drops it");
}

/// The part of a match that a packet shows alike.
fn rule_of(matching: &str) -> &str {
    matching.rsplit(',').next().unwrap()
}

#[test]
fn a_way_round_an_acl_is_found() {
    let text = network("", ", acls_in: [x]", "");
    let round = |tables: &Tables| {
        let input = flow(tables, VLAN, "in_port=2,vlan_vid=0x0");
        let actions = input.applied().into_owned();
        vec![Change::Add(with(&input, &actions).goto_table(ETH_SRC))]
    };
    let found = (Invariant::Acl, &[3][..]);
    assert_found(&text, round, found, "in_port=2,", "drops it");
}

#[test]
fn a_rule_of_packets_that_leave_a_vlan_is_looked_at_for_known_hosts() {
    let mut facts = facts();
    let mac = MacAddr([2, 0, 0, 0, 0, 7]);
    facts.set(Fact::HostAt(HostKey { vid: 100, mac }, 2));
    let text = network("", ", acls_out: [x]", "");
    let round = |tables: &Tables| {
        let host = flow(tables, ETH_DST, "eth_dst=02:00:00:00:00:07,vlan_vid=0x1064");
        let actions = [Action::PopVlan, Action::output(Port(2))];
        vec![Change::Add(with(&host, &actions))]
    };
    let all = violations(&text, &facts, round);
    assert!(all.iter().any(|it| it.invariant == Invariant::Acl), "{all:?}");
}

#[test]
fn a_known_hosts_packets_at_another_port_are_found() {
    let mut facts = facts();
    let mac = MacAddr([2, 0, 0, 0, 0, 7]);
    facts.set(Fact::HostAt(HostKey { vid: 100, mac }, 2));
    let elsewhere = |tables: &Tables| {
        let host = flow(tables, ETH_DST, "eth_dst=02:00:00:00:00:07,vlan_vid=0x1064");
        vec![Change::Add(with(&host, &outputs(&[], &[3])))]
    };
    let all = violations(&network("", "", ""), &facts, elsewhere);
    let first = &all[0];
    assert_eq!((first.invariant, &first.ports[..]), (Invariant::Prune, &[3][..]), "{first}");
    assert!(first.packet.to_string().contains("eth_dst=02:00:00:00:00:07"), "{first}");
}

#[test]
fn flows_of_a_port_that_is_down_are_found() {
    let text = network("", "", "");
    let intent = Arc::new(intent(&text));
    let tables = compile(&intent, FIRST, &facts()).unwrap();
    let down = Facts::with_ports(2..=4);
    let why = bellrock_fabric::check(&intent, FIRST, &down, &tables).unwrap_err();
    let is_it = |it: &Violation| {
        it.invariant == Invariant::Input && it.packet.in_port() == 1 && it.why == "port 1 is down"
    };
    assert!(why.0.iter().any(is_it), "{why}");
}

#[test]
fn gotos_groups_meters_and_tables_that_do_not_exist_are_found() {
    let text = network("", "", ", acls_in: [x]");
    let to = |next: u8| {
        move |tables: &Tables| {
            let input = flow(tables, VLAN, "in_port=2,vlan_vid=0x0");
            vec![Change::Add(with(&input, &[]).goto_table(next))]
        }
    };
    let none: &[u32] = &[];
    assert_found(
        &text,
        to(2),
        (Invariant::Goto, none),
        "in_port=2",
        "table 2 (copro) has no flows",
    );
    assert_found(&text, to(1), (Invariant::Goto, none), "in_port=2", "is not a later one");
    assert_found(&text, to(77), (Invariant::Goto, none), "in_port=2", "table 77 (?) has no flows");
    let meter = |_: &Tables| vec![Change::RemoveMeter(3)];
    assert_found(&text, meter, (Invariant::Meter, none), "in_port=1", "there is no meter 3");
    let group = |_: &Tables| vec![Change::RemoveGroup(100)];
    let of_groups = network(", group_table: true", "", "");
    assert_found(&of_groups, group, (Invariant::Group, none), "vlan_vid=0x1064", "no group 100");
    let table = |_: &Tables| vec![Change::Add(Flow::new(Match::any()).table(254))];
    assert_found(&text, table, (Invariant::Table, none), "", "254 tables, and no table 254");
    let ttl = |tables: &Tables| {
        vec![Change::Add(with(&flow(tables, FLOOD, BROADCAST), &[Action::DecNwTtl]))]
    };
    assert_found(&text, ttl, (Invariant::Known, none), "vlan_vid=0x1064", "not known");
}

#[test]
fn filters_and_reserved_addresses_are_looked_at() {
    let text = network("", "", "");
    let cases = [
        (without(ETH_SRC, "eth_src=0e:00:00:00:00:01"), Invariant::Filter, "controller's address"),
        (without(ETH_SRC, "eth_type=0x9000"), Invariant::Filter, "test for loops"),
    ];
    for (change, invariant, why) in cases {
        assert_found(&text, change, (invariant, &[3]), "in_port=1", why);
    }
    let kept = without(FLOOD, "eth_dst=01:80:c2:00:00:00/ff:ff:ff:ff:ff:f0");
    let why = "bridges keep its destination";
    assert_found(&text, kept, (Invariant::Reserved, &[3]), "eth_dst=01:80:c2:00:00:0", why);
}

#[test]
fn a_flood_between_external_networks_is_found() {
    let text = "dps: {sw1: {dp_id: 1, interfaces: {1: {native_vlan: 100, loop_protect_external: true}, 2: {native_vlan: 100, loop_protect_external: true}, 3: {native_vlan: 100}}}}\n";
    let row = "in_port=2,eth_dst=ff:ff:ff:ff:ff:ff,vlan_vid=0x1064";
    let change = |tables: &Tables| {
        let actions = outputs(&[Action::PopVlan], &[1, 3]);
        vec![Change::Add(with(&flow(tables, FLOOD, row), &actions))]
    };
    let why = "in VLAN 100 it is not for this port";
    assert_found(
        text,
        change,
        (Invariant::Prune, &[1]),
        "in_port=2,eth_dst=ff:ff:ff:ff:ff:ff",
        why,
    );
}

#[test]
fn a_violation_says_the_packet_the_port_the_reason_and_the_flows() {
    let mut actions = outputs(&[], &[3]);
    actions.extend(outputs(&[Action::PopVlan], &[1, 2, 4]));
    let all = violations(&network("", "", ""), &facts(), flood(&actions));
    let expected = "\
no packet leaves its VLAN: in_port=1,eth_dst=ff:ff:ff:ff:ff:ff,eth_src=02:5a:5a:5a:5a:02,eth_type=0x88b5 leaves by port 4: port 4 is not in VLAN 100
  any priority=0 goto_table:1
  in_port=1,vlan_vid=0x0 table=1 priority=4096 push_vlan:0x8100 set_field:0x1064->vlan_vid goto_table:5
  vlan_vid=0x1064 table=5 priority=4096 CONTROLLER:96 goto_table:10
  any table=10 priority=0 goto_table:13
  eth_dst=ff:ff:ff:ff:ff:ff,vlan_vid=0x1064 table=13 priority=8240 output:3 pop_vlan output:1 output:2 output:4";
    assert_eq!(all[0].to_string(), expected);
}
