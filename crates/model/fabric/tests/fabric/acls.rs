//! ACLs in the tables. The expected flows are written by hand, from Faucet's pipeline.

use std::sync::Arc;

use bellrock_fabric::compile::{Facts, RuleId, Tables};
use bellrock_fabric::intent::{AclId, SwitchId};
use bellrock_fabric::{check, compile};

use super::{intent, rule};

fn tables(text: &str) -> Tables {
    let facts = Facts::with_ports(1..=8);
    let (intent, switch) = (Arc::new(intent(text)), SwitchId(0));
    let tables = compile(&intent, switch, &facts).unwrap_or_else(|why| panic!("{why}\n{text}"));
    check(&intent, switch, &facts, &tables).unwrap_or_else(|why| panic!("{why}\n{text}"));
    tables
}

fn lines(text: &str, table: &str) -> Vec<String> {
    let shown = tables(text).to_string();
    let rest = shown.lines().filter_map(|line| line.strip_prefix(table)?.strip_prefix(' '));
    rest.map(str::to_owned).collect()
}

/// A switch with three ports in VLAN 100, whose keys are given, and ACLs `x` and `y`.
fn network(of_switch: &str, of_vlan: &str, of_port: &str) -> String {
    format!(
        "vlans:\n  a: {{vid: 100{of_vlan}}}\nacls:\n  x:\n  - {{dl_type: 0x800, nw_proto: 6, tcp_dst: 23, actions: {{allow: 0}}}}\n  - {{cookie: 9, actions: {{allow: 1}}}}\n  y:\n  - {{dl_type: 0x806, actions: {{allow: 1, force_port_vlan: 1}}}}\ndps:\n  sw1: {{dp_id: 1{of_switch}, interfaces: {{1: {{native_vlan: a{of_port}}}, 2: {{native_vlan: a}}, 3: {{output_only: true}}}}}}\n"
    )
}

#[test]
fn an_acl_of_a_port_is_in_front_of_the_vlans() {
    assert_eq!(
        lines(&network("", "", ", acls_in: [x, y]"), "port_acl"),
        [
            // A port without an ACL passes.
            "20480 in_port=2 -> vlan",
            "20480 in_port=1,eth_type=0x0800,ip_proto=6,tcp_dst=23 -> drop",
            "20479 in_port=1 -> vlan",
            "20478 in_port=1,eth_type=0x0806 -> eth_dst",
            "0 any -> drop",
        ]
    );
}

#[test]
fn rules_keep_their_cookie_and_their_place() {
    let tables = tables(&network("", "", ", acls_in: [y, x]"));
    let of_rules: Vec<(u64, RuleId)> =
        tables.flows().filter_map(|(_, it)| Some((it.cookie, it.rule?))).collect();
    let rule = |acl, position| RuleId { acl: AclId(acl), position };
    let cookie = 1_524_372_928;
    assert_eq!(of_rules, [(cookie, rule(1, 0)), (cookie, rule(0, 0)), (9, rule(0, 1))]);
}

#[test]
fn an_acl_of_the_switch_stands_for_all_ports() {
    assert_eq!(
        lines(&network(", dp_acls: [x]", "", ""), "port_acl"),
        [
            "20480 eth_type=0x0800,ip_proto=6,tcp_dst=23 -> drop",
            "20479 any -> vlan",
            "0 any -> drop",
        ]
    );
}

#[test]
fn an_acl_into_a_vlan_is_in_front_of_the_sources() {
    let text = network("", ", acls_in: [x, y]", "");
    assert_eq!(
        lines(&text, "vlan_acl"),
        [
            "20480 eth_type=0x0800,vlan_vid=0x1064,ip_proto=6,tcp_dst=23 -> drop",
            "20479 vlan_vid=0x1064 -> eth_src",
            "20478 eth_type=0x0806,vlan_vid=0x1064 -> eth_dst",
            "0 any -> drop",
        ]
    );
    assert!(lines(&text, "vlan")[1].ends_with(" vlan_acl"));
    assert_eq!(lines(&text, "port_acl"), ["0 any -> vlan"]);
}

#[test]
fn an_acl_out_of_a_vlan_is_in_front_of_the_outputs() {
    let text = network("", ", acls_out: [x]", ", tagged_vlans: [200]");
    assert_eq!(
        lines(&text, "egress_acl"),
        [
            "20480 vlan_vid=0x10c8 -> egress",
            "20480 eth_type=0x0800,vlan_vid=0x1064,ip_proto=6,tcp_dst=23 -> drop",
            "20479 vlan_vid=0x1064 -> egress",
            "0 any -> drop",
        ]
    );
    assert_eq!(
        lines(&text, "egress"),
        [
            "9001 metadata=0x64001/0xffffff,vlan_vid=0x1064 -> pop_vlan output:1",
            "9001 metadata=0xc8001/0xffffff,vlan_vid=0x10c8 -> output:1",
            "9001 metadata=0x64002/0xffffff,vlan_vid=0x1064 -> pop_vlan output:2",
            "0 any -> flood",
        ]
    );
    assert_eq!(lines(&text, "eth_dst"), ["0 any -> egress_acl"]);
}

#[test]
fn a_host_is_reached_by_the_metadata_of_its_port() {
    use bellrock_fabric::compile::{Fact, HostKey};
    let mut facts = Facts::with_ports(1..=8);
    let mac = "02:00:00:00:00:07".parse().unwrap();
    facts.set(Fact::HostAt(HostKey { vid: 100, mac }, 2));
    for (keys, next) in [(", acls_out: [x]", "egress_acl"), ("", "egress")] {
        let text = network(", egress_pipeline: true", keys, "");
        let shown = compile(&Arc::new(intent(&text)), SwitchId(0), &facts).unwrap().to_string();
        let flow = format!(
            "eth_dst 8192 eth_dst=02:00:00:00:00:07,vlan_vid=0x1064 idle=440 -> metadata:0x64002/0xffffff {next}\n"
        );
        assert!(shown.contains(&flow), "{shown}");
    }
}

/// The flow of a rule at port 1.
fn of_rule(keys: &str) -> String {
    let line = lines(&rule(keys), "port_acl").into_iter().find(|line| line.contains("in_port=1"));
    line.unwrap().split_once(" -> ").unwrap().1.to_owned()
}

#[test]
fn actions_of_a_rule_are_applied_in_order() {
    for (keys, expected) in [
        ("{actions: {allow: 1}}", "vlan"),
        ("{actions: {allow: 0}}", "drop"),
        ("{eth_type: 0x800}", "drop"),
        ("{actions: {mirror: two}}", "output:2 vlan"),
        ("{actions: {mirror: two, allow: 0}}", "output:2"),
        ("{actions: {meter: m, allow: 1}}", "meter:1 vlan"),
        ("{actions: {allow: 1, force_port_vlan: 1}}", "eth_dst"),
        ("{actions: {force_port_vlan: 1}}", "drop"),
        ("{actions: {output: {port: two}}}", "output:2"),
        ("{actions: {allow: 1, output: {port: two}}}", "output:2 vlan"),
        (
            "{actions: {output: {ports: [1, two], pop_vlans: 2}}}",
            "pop_vlan pop_vlan output:1 output:2",
        ),
        (
            "{actions: {output: {port: two, vlan_vid: 300}}}",
            "push_vlan:0x8100 set_field:0x112c->vlan_vid output:2",
        ),
        (
            "{actions: {output: [{vlan_vids: [{vid: 300, eth_type: 0x88a8}]}, {port: two}]}}",
            "push_vlan:0x88a8 set_field:0x112c->vlan_vid output:2",
        ),
        (
            "{actions: {output: [{port: two}, {swap_vid: 300}, {port: two}]}}",
            "output:2 set_field:0x112c->vlan_vid output:2",
        ),
        // Changes that nobody sees are left out.
        ("{actions: {output: [{port: two}, {swap_vid: 300}]}}", "output:2"),
        ("{actions: {output: {swap_vid: 300}}}", "drop"),
        ("{actions: {allow: 1, output: [{swap_vid: 300}]}}", "set_field:0x112c->vlan_vid vlan"),
        (
            "{actions: {allow: 1, output: {set_fields: [{eth_dst: '02:00:00:00:00:01'}]}}}",
            "set_field:02:00:00:00:00:01->eth_dst vlan",
        ),
        ("{actions: {output: {failover: {group_id: 7, ports: [two, 1]}}}}", "group:7"),
    ] {
        assert_eq!(of_rule(keys), expected, "{keys}");
    }
}

#[test]
fn groups_and_meters_are_those_that_rules_use() {
    let shown = |keys: &str| tables(&rule(keys)).to_string();
    let failover = "output: {failover: {group_id: 7, ports: [two, 1]}}";
    assert!(
        shown(&format!("actions: {{{failover}}}"))
            .starts_with("group 7 ff [output:2] [output:1]\n")
    );
    assert!(shown("actions: {meter: m}").starts_with("meter 1 KBPS band=drop, rate=1\n"));
    assert!(shown("actions: {allow: 1}").starts_with("port_acl "));
    let watched: Vec<u32> = tables(&rule(&format!("actions: {{{failover}}}")))
        .groups()
        .flat_map(|group| &group.buckets)
        .map(|bucket| bucket.watch_port.0)
        .collect();
    assert_eq!(watched, [2, 1]);
}

#[test]
fn the_way_to_the_controller_may_have_meters() {
    let text = network(", packetin_pps: 50, slowpath_pps: 60", "", "");
    let shown = tables(&text).to_string();
    assert!(
        shown.starts_with(
            "meter 4294967293 PKTPS band=drop, rate=60\nmeter 4294967294 PKTPS band=drop, rate=50\n"
        ),
        "{shown}"
    );
}

#[test]
fn exact_rules_have_one_priority_and_the_last_of_equals_counts() {
    let text = "acls:\n  x:\n    exact_match: true\n    rules:\n    - {eth_type: 0x800, actions: {allow: 0}}\n    - {eth_type: 0x806, actions: {allow: 1}}\n    - {eth_type: 0x800, actions: {allow: 1}}\ndps: {sw1: {dp_id: 1, interfaces: {1: {native_vlan: 100, acls_in: [x]}}}}\n";
    assert_eq!(
        lines(text, "port_acl"),
        [
            "20480 in_port=1,eth_type=0x0800 -> vlan",
            "20480 in_port=1,eth_type=0x0806 -> vlan",
            "0 any -> drop",
        ]
    );
}

#[test]
fn one_group_with_two_lists_of_ports_is_refused() {
    let two = "acls:\n  x:\n  - {eth_type: 0x800, actions: {output: {failover: {group_id: 7, ports: [1, 2]}}}}\n  - {actions: {output: {failover: {group_id: 7, ports: [2, 1]}}}}\n";
    let dps = "dps: {sw1: {dp_id: 1, interfaces: {1: {native_vlan: 100, acls_in: [x]}, 2: {native_vlan: 100}}}}\n";
    let facts = Facts::with_ports([1, 2]);
    let why =
        |text: &str| compile(&Arc::new(intent(text)), SwitchId(0), &facts).unwrap_err().to_string();
    let shown = why(&format!("{two}{dps}"));
    assert!(
        shown.starts_with("faucet.yaml:4:") && shown.contains("group 7 has another use"),
        "{shown}"
    );
    // Floods of VLAN 100 have group 100.
    let text =
        format!("{two}{dps}").replace("group_id: 7, ports: [2, 1]", "group_id: 100, ports: [1]");
    let text = text.replace("dp_id: 1,", "dp_id: 1, group_table: true,");
    assert!(why(&text).contains("group 100 has another use"), "{}", why(&text));
}

#[test]
fn two_meters_with_one_number_are_refused_if_both_are_used() {
    let text = |actions: &str| {
        let meter = "{meter_id: 3, entry: {flags: KBPS, bands: [{type: DROP, rate: 1}]}}";
        format!(
            "meters:\n  m: {meter}\n  n: {meter}\nacls: {{x: [{{eth_type: 0x800, actions: {{meter: m}}}}, {{actions: {{{actions}}}}}]}}\ndps: {{sw1: {{dp_id: 1, interfaces: {{1: {{native_vlan: 100, acls_in: [x]}}}}}}}}\n"
        )
    };
    let facts = Facts::with_ports([1]);
    let compiled = |text: &str| compile(&Arc::new(intent(text)), SwitchId(0), &facts);
    let why = compiled(&text("meter: n")).unwrap_err().to_string();
    assert_eq!(why, "faucet.yaml:3:3: another meter has `meter_id` 3 too; give another one");
    assert_eq!(compiled(&text("meter: m")).unwrap().meters().count(), 1);
}

#[test]
fn more_rules_than_priorities_are_refused() {
    const MOST: usize = 0x5000;
    let rules = "  - {eth_type: 0x800}\n".repeat(MOST + 1);
    let text = |rules: &str| {
        format!(
            "acls:\n  x:\n{rules}dps: {{sw1: {{dp_id: 1, interfaces: {{1: {{native_vlan: 100, acls_in: [x]}}}}}}}}\n"
        )
    };
    let facts = Facts::with_ports([1]);
    let compiled = |text: &str| compile(&Arc::new(intent(text)), SwitchId(0), &facts);
    let why = compiled(&text(&rules)).unwrap_err().to_string();
    assert!(why.contains("at most 20480 rules can be used together; here are 20481"), "{why}");
    let fits = compiled(&text(&"  - {eth_type: 0x800}\n".repeat(MOST))).unwrap();
    let lowest = fits.flows().filter(|(_, it)| it.rule.is_some()).map(|(_, it)| it.flow.priority);
    assert_eq!(lowest.min(), Some(1), "above the miss");
}
