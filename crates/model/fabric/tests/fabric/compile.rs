//! Tables that networks compile to. The expected ones are written by hand, from Faucet's pipeline.

use std::sync::Arc;

use bellrock_fabric::compile::{
    Capabilities, Compiler, Fact, Facts, HostKey, Owner, Refused, Table, Tables,
};
use bellrock_fabric::intent::SwitchId;
use bellrock_fabric::{check, compile};
use bellrock_openflow::MacAddr;

use super::{intent, port, rule, stack, switch, vlan};

const FIRST: SwitchId = SwitchId(0);

fn facts() -> Facts {
    Facts::with_ports(1..=8)
}

fn tables_with(text: &str, facts: &Facts) -> Tables {
    let intent = Arc::new(intent(text));
    let tables = compile(&intent, FIRST, facts).unwrap_or_else(|why| panic!("{why}\n{text}"));
    check(&intent, FIRST, facts, &tables).unwrap_or_else(|why| panic!("{why}\n{text}"));
    tables
}

fn refused(text: &str, capabilities: Capabilities) -> String {
    let facts = facts().with_capabilities(capabilities);
    let refused: Refused = compile(&Arc::new(intent(text)), FIRST, &facts).unwrap_err();
    refused.to_string()
}

/// The lines of some tables, without their names if it is one.
fn lines(tables: &Tables, names: &[&str]) -> Vec<String> {
    let text = tables.to_string();
    let of_tables = text.lines().filter(|line| names.contains(&line.split(' ').next().unwrap()));
    let [name] = names else { return of_tables.map(str::to_owned).collect() };
    of_tables.map(|line| line[name.len() + 1..].to_owned()).collect()
}

#[track_caller]
fn assert_lines(text: &str, name: &str, expected: &[&str]) {
    assert_eq!(lines(&tables_with(text, &facts()), &[name]), expected, "{name} of\n{text}");
}

/// A switch with these ports, and VLANs 100 (`a`), 200 (`b`).
fn ports(keys: &str) -> String {
    network("", "", keys)
}

fn network(of_switch: &str, of_vlan: &str, keys: &str) -> String {
    format!(
        "vlans:\n  a: {{vid: 100{of_vlan}}}\n  b: {{vid: 200}}\ndps:\n  sw1: {{dp_id: 1{of_switch}, interfaces: {{{keys}}}}}\n"
    )
}

#[test]
fn the_smallest_network_has_all_tables_of_its_kind() {
    let tables = tables_with(&ports("1: {native_vlan: a}, 2: {native_vlan: a}"), &facts());
    let expected = "\
port_acl 0 any -> vlan
vlan 4096 in_port=1,vlan_vid=0x0 -> push_vlan:0x8100 set_field:0x1064->vlan_vid eth_src
vlan 4096 in_port=2,vlan_vid=0x0 -> push_vlan:0x8100 set_field:0x1064->vlan_vid eth_src
vlan 0 any -> drop
eth_src 20490 eth_type=0x9000 -> drop
eth_src 20480 eth_src=0e:00:00:00:00:01 -> drop
eth_src 20480 eth_src=ff:ff:ff:ff:ff:ff -> drop
eth_src 4096 vlan_vid=0x1064 -> CONTROLLER:96 eth_dst
eth_src 0 any -> eth_dst
eth_dst 0 any -> flood
flood 8240 eth_dst=01:00:0c:cc:cc:cc -> drop
flood 8240 eth_dst=01:00:0c:cc:cc:cd -> drop
flood 8240 eth_dst=ff:ff:ff:ff:ff:ff,vlan_vid=0x1064 -> pop_vlan output:1 output:2
flood 8236 eth_dst=01:80:c2:00:00:00/ff:ff:ff:ff:ff:f0 -> drop
flood 8216 eth_dst=01:80:c2:00:00:00/ff:ff:ff:00:00:00,vlan_vid=0x1064 -> pop_vlan output:1 output:2
flood 8216 eth_dst=01:00:5e:00:00:00/ff:ff:ff:00:00:00,vlan_vid=0x1064 -> pop_vlan output:1 output:2
flood 8208 eth_dst=33:33:00:00:00:00/ff:ff:00:00:00:00,vlan_vid=0x1064 -> pop_vlan output:1 output:2
flood 8192 vlan_vid=0x1064 -> pop_vlan output:1 output:2
flood 0 any -> drop
";
    assert_eq!(tables.to_string(), expected);
    assert!(tables.flows().all(|(_, it)| it.cookie == 1_524_372_928 && it.rule.is_none()));
}

#[test]
fn a_port_takes_packets_into_its_vlans() {
    let text = ports(
        "1: {native_vlan: a, tagged_vlans: [b]}, 2: {tagged_vlans: [b], count_untag_vlan_miss: true}",
    );
    assert_lines(
        &text,
        "vlan",
        &[
            "4096 in_port=2,vlan_vid=0x0 -> drop",
            "4096 in_port=1,vlan_vid=0x0 -> push_vlan:0x8100 set_field:0x1064->vlan_vid eth_src",
            "4096 in_port=1,vlan_vid=0x10c8 -> eth_src",
            "4096 in_port=2,vlan_vid=0x10c8 -> eth_src",
            "0 any -> drop",
        ],
    );
    let floods = lines(&tables_with(&text, &facts()), &["flood"]);
    assert!(floods.contains(&"8192 vlan_vid=0x10c8 -> output:1 output:2".to_owned()), "{floods:?}");
    assert!(floods.contains(&"8192 vlan_vid=0x1064 -> pop_vlan output:1".to_owned()), "{floods:?}");
}

#[test]
fn a_port_that_is_down_or_disabled_takes_nothing() {
    let text = ports(
        "1: {native_vlan: a}, 2: {native_vlan: a, enabled: false}, 3: {native_vlan: a, opstatus_reconf: false}",
    );
    let tables = tables_with(&text, &Facts::with_ports([2]));
    assert_eq!(
        lines(&tables, &["vlan"]),
        [
            "4096 in_port=3,vlan_vid=0x0 -> push_vlan:0x8100 set_field:0x1064->vlan_vid eth_src",
            "0 any -> drop",
        ]
    );
    let floods = lines(&tables, &["flood"]);
    assert!(floods.contains(&"8192 vlan_vid=0x1064 -> pop_vlan output:1 output:3".to_owned()));
}

#[test]
fn lldp_goes_to_the_controller_and_input_of_output_ports_nowhere() {
    let text = ports("1: {native_vlan: a, receive_lldp: true}, 2: {output_only: true}");
    assert_lines(
        &text,
        "vlan",
        &[
            "9099 in_port=1,eth_dst=01:80:c2:00:00:00/ff:ff:ff:ff:ff:f0,eth_type=0x88cc -> CONTROLLER:128",
            "9099 in_port=2 -> drop",
            "4096 in_port=1,vlan_vid=0x0 -> push_vlan:0x8100 set_field:0x1064->vlan_vid eth_src",
            "0 any -> drop",
        ],
    );
}

#[test]
fn a_mirror_gets_what_comes_in_and_what_goes_out() {
    let text = ports(
        "1: {native_vlan: a}, 2: {tagged_vlans: [a]}, 3: {native_vlan: a}, 4: {mirror: [1, 2]}",
    );
    let input = &lines(&tables_with(&text, &facts()), &["vlan"])[1];
    assert_eq!(
        input,
        "4096 in_port=1,vlan_vid=0x0 -> output:4 push_vlan:0x8100 set_field:0x1064->vlan_vid eth_src"
    );
    let unknown = of_unknown(&text);
    assert_eq!(
        unknown,
        [
            // Ports 1 and 2 have the same mirror, which has got the packet when it came in.
            "8193 in_port=2,vlan_vid=0x1064 -> pop_vlan output:1 output:3",
            "8193 in_port=1,vlan_vid=0x1064 -> output:2 pop_vlan output:3",
            "8192 vlan_vid=0x1064 -> output:2 output:4 pop_vlan output:1 output:3 output:4",
        ]
    );
}

/// The floods of unknown hosts.
fn of_unknown(text: &str) -> Vec<String> {
    let lines = lines(&tables_with(text, &facts()), &["flood"]);
    lines.into_iter().filter(|line| !line.contains("eth_dst") && !line.contains("any")).collect()
}

#[test]
fn a_port_without_unicast_flood_gets_known_hosts_only() {
    let text = ports("1: {native_vlan: a}, 2: {native_vlan: a, unicast_flood: false}");
    assert_eq!(of_unknown(&text), ["8192 vlan_vid=0x1064 -> pop_vlan output:1"]);
    let floods = lines(&tables_with(&text, &facts()), &["flood"]);
    assert!(floods.iter().any(|line| line.ends_with("pop_vlan output:1 output:2")));
    let text = network("", ", unicast_flood: false", "1: {native_vlan: a}, 2: {native_vlan: a}");
    assert_eq!(of_unknown(&text), [""; 0]);
}

#[test]
fn a_hairpin_port_sends_back() {
    let text = ports("1: {native_vlan: a, hairpin: true}, 2: {native_vlan: a}");
    assert_eq!(
        of_unknown(&text),
        [
            "8193 in_port=1,vlan_vid=0x1064 -> pop_vlan output:2 IN_PORT",
            "8192 vlan_vid=0x1064 -> pop_vlan output:1 output:2",
        ]
    );
    let tables = tables_with(&text, &with_host(1));
    assert_eq!(
        lines(&tables, &["eth_src", "eth_dst_hairpin", "eth_dst"])[3..],
        [
            format!(
                "eth_src 8191 in_port=1,eth_src={HOST},vlan_vid=0x1064 hard=290 -> eth_dst_hairpin"
            ),
            "eth_src 4096 vlan_vid=0x1064 -> CONTROLLER:96 eth_dst_hairpin".to_owned(),
            "eth_src 0 any -> eth_dst".to_owned(),
            format!(
                "eth_dst_hairpin 8192 in_port=1,eth_dst={HOST},vlan_vid=0x1064 idle=440 -> pop_vlan IN_PORT"
            ),
            "eth_dst_hairpin 0 any -> eth_dst".to_owned(),
            format!("eth_dst 8192 eth_dst={HOST},vlan_vid=0x1064 idle=440 -> pop_vlan output:1"),
            "eth_dst 0 any -> flood".to_owned(),
        ]
    );
}

const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);

/// A host in VLAN 100 at a port.
fn with_host(port: u32) -> Facts {
    let mut facts = facts();
    facts.set(Fact::HostAt(HostKey { vid: 100, mac: HOST }, port));
    facts
}

fn of_host(text: &str, port: u32) -> Vec<String> {
    let tables = tables_with(text, &with_host(port));
    let lines = lines(&tables, &["eth_src", "eth_dst_hairpin", "eth_dst"]);
    lines.into_iter().filter(|line| line.contains(&HOST.to_string())).collect()
}

#[test]
fn a_host_has_a_flow_by_source_and_one_by_destination() {
    let two = "1: {native_vlan: a}, 2: {tagged_vlans: [a]}";
    // 300 - 51 + 41, and half of 300 more.
    assert_eq!(
        of_host(&ports(two), 1),
        [
            "eth_src 8191 in_port=1,eth_src=02:00:00:00:00:07,vlan_vid=0x1064 hard=290 -> eth_dst",
            "eth_dst 8192 eth_dst=02:00:00:00:00:07,vlan_vid=0x1064 idle=440 -> pop_vlan output:1",
        ]
    );
    let to_tagged = &of_host(&ports(two), 2)[1];
    assert_eq!(
        to_tagged,
        "eth_dst 8192 eth_dst=02:00:00:00:00:07,vlan_vid=0x1064 idle=440 -> output:2"
    );
    let never = of_host(&network(", idle_dst: false", "", two), 1);
    assert!(never[0].contains(" hard=290 ") && !never[1].contains("idle"), "{never:?}");
    let reported = of_host(&network(", use_idle_timeout: true", "", two), 1);
    assert!(reported[0].contains(" idle=290 ") && reported[1].contains(" idle=440 "));
    let stays = of_host(&ports("1: {native_vlan: a, permanent_learn: true}"), 1);
    assert!(!stays[0].contains("hard") && stays[1].contains(" idle=150 "), "{stays:?}");
    assert_eq!(of_host(&ports(two), 9), [""; 0], "no such port");
    assert_eq!(of_host(&ports("1: {native_vlan: b}"), 1), [""; 0], "not a port of the VLAN");
}

#[test]
fn a_mirror_sees_a_packet_as_the_host_does() {
    let text = ports("1: {native_vlan: a}, 2: {tagged_vlans: [a]}, 3: {mirror: [1, 2]}");
    assert!(of_host(&text, 1)[1].ends_with("-> pop_vlan output:3 output:1"));
    assert!(of_host(&text, 2)[1].ends_with("-> output:3 output:2"));
}

#[test]
fn one_external_port_stands_for_all() {
    let text = ports(
        "1: {tagged_vlans: [a]}, 2: {native_vlan: a, loop_protect_external: true}, 3: {native_vlan: a, loop_protect_external: true}",
    );
    assert_eq!(
        lines(&tables_with(&text, &facts()), &["vlan"])[..2],
        [
            "4096 in_port=1,vlan_vid=0x1064 -> set_field:2->vlan_pcp eth_src",
            "4096 in_port=2,vlan_vid=0x0 -> push_vlan:0x8100 set_field:0x1064->vlan_vid set_field:0->vlan_pcp eth_src",
        ]
    );
    // Port 2 has the list of the VLAN, as no switch outputs to the ingress port.
    let of_all = "8192 vlan_vid=0x1064 -> set_field:2->vlan_pcp output:1 pop_vlan output:2";
    let of_other = "8193 in_port=3,vlan_vid=0x1064 -> set_field:2->vlan_pcp output:1";
    assert_eq!(of_unknown(&text), [of_other, of_all]);
    // The lowest that is up.
    let tables = tables_with(&text, &Facts::with_ports([1, 3]));
    let floods = lines(&tables, &["flood"]);
    assert!(floods.contains(&of_all.replace("output:2", "output:3")), "{floods:?}");
    // Packets from one external network do not go to the other.
    let text = ports(
        "2: {native_vlan: a, loop_protect_external: true}, 3: {native_vlan: a, loop_protect_external: true}",
    );
    assert_eq!(
        of_unknown(&text),
        ["8193 in_port=3,vlan_vid=0x1064 -> drop", "8192 vlan_vid=0x1064 -> pop_vlan output:2"]
    );
}

#[test]
fn packets_from_an_external_network_reach_no_host_in_another() {
    let text = ports("1: {tagged_vlans: [a]}, 2: {native_vlan: a, loop_protect_external: true}");
    assert_eq!(
        of_host(&text, 1)[1..],
        [
            "eth_dst 8192 eth_dst=02:00:00:00:00:07,vlan_vid=0x1064,vlan_pcp=2 idle=440 -> set_field:2->vlan_pcp output:1",
            "eth_dst 8192 eth_dst=02:00:00:00:00:07,vlan_vid=0x1064,vlan_pcp=0 idle=440 -> set_field:2->vlan_pcp output:1",
        ]
    );
    assert_eq!(
        of_host(&text, 2)[1..],
        [
            "eth_dst 8192 eth_dst=02:00:00:00:00:07,vlan_vid=0x1064,vlan_pcp=2 idle=440 -> pop_vlan output:2"
        ]
    );
}

#[test]
fn restricted_ports_get_address_resolution_only_from_each_other() {
    let text = ports(
        "1: {native_vlan: a}, 2: {native_vlan: a, restricted_bcast_arpnd: true}, 3: {native_vlan: a, restricted_bcast_arpnd: true}",
    );
    assert_eq!(
        of_unknown(&text),
        [
            "8193 in_port=1,vlan_vid=0x1064 -> pop_vlan output:2 output:3",
            "8192 vlan_vid=0x1064 -> pop_vlan output:1",
        ]
    );
    let floods = lines(&tables_with(&text, &facts()), &["flood"]);
    let arp: Vec<&String> = floods.iter().filter(|line| line.contains("0x0806")).collect();
    assert_eq!(
        arp,
        [
            "10295 in_port=1,eth_dst=ff:ff:ff:ff:ff:ff,eth_type=0x0806,vlan_vid=0x1064 -> pop_vlan output:2 output:3",
            "10295 in_port=2,eth_dst=ff:ff:ff:ff:ff:ff,eth_type=0x0806,vlan_vid=0x1064 -> pop_vlan output:1 output:3",
            "10295 in_port=3,eth_dst=ff:ff:ff:ff:ff:ff,eth_type=0x0806,vlan_vid=0x1064 -> pop_vlan output:1 output:2",
            "10294 eth_dst=ff:ff:ff:ff:ff:ff,eth_type=0x0806,vlan_vid=0x1064 -> pop_vlan output:1",
        ]
    );
    let nd: Vec<&String> = floods.iter().filter(|line| line.contains("0x86dd")).collect();
    assert!(nd[0].starts_with("42766 in_port=1,eth_dst=33:33:00:00:00:02,"), "{nd:?}");
    assert_eq!(nd.len(), 12);
}

#[test]
fn combinatorial_floods_have_a_flow_for_each_port() {
    let ports = "1: {native_vlan: a}, 2: {tagged_vlans: [a]}, 3: {native_vlan: b}";
    let text = network(", combinatorial_port_flood: true", "", ports);
    assert_eq!(
        of_unknown(&text),
        [
            "8193 in_port=2,vlan_vid=0x1064 -> pop_vlan output:1",
            "8193 in_port=1,vlan_vid=0x1064 -> output:2",
        ]
    );
}

#[test]
fn groups_flood_a_vlan() {
    let ports =
        "1: {native_vlan: a}, 2: {tagged_vlans: [a], unicast_flood: false}, 3: {tagged_vlans: [b]}";
    let text = network(", group_table: true", "", ports);
    let shown = tables_with(&text, &facts()).to_string();
    let groups: Vec<&str> = shown.lines().filter(|line| line.starts_with("group")).collect();
    assert_eq!(
        groups,
        [
            "group 100 all [output:2] [pop_vlan output:1]",
            "group 4196 all [pop_vlan output:1]",
            "group 200 all [output:3]",
        ]
    );
    assert_eq!(
        of_unknown(&text),
        ["8192 vlan_vid=0x1064 -> group:4196", "8192 vlan_vid=0x10c8 -> group:200"]
    );
    assert_eq!(shown.matches("-> group:100\n").count(), 4);
}

#[test]
fn filters_may_have_a_table_of_their_own() {
    let text = network(", use_classification: true", "", "1: {native_vlan: a}");
    assert_lines(
        &text,
        "classification",
        &[
            "20490 eth_type=0x9000 -> drop",
            "20480 eth_src=0e:00:00:00:00:01 -> drop",
            "20480 eth_src=ff:ff:ff:ff:ff:ff -> drop",
            "0 any -> eth_src",
        ],
    );
    let tables = tables_with(&text, &facts());
    assert!(lines(&tables, &["vlan"])[0].ends_with(" classification"));
    let keys = ", drop_broadcast_source_address: false, drop_spoofed_faucet_mac: false";
    assert_lines(
        &network(keys, "", "1: {native_vlan: a}"),
        "eth_src",
        &[
            "20490 eth_type=0x9000 -> drop",
            "4096 vlan_vid=0x1064 -> CONTROLLER:96 eth_dst",
            "0 any -> eth_dst",
        ],
    );
}

#[test]
fn priorities_and_cookies_are_those_of_the_file() {
    let keys = ", priority_offset: 7, cookie: 4294967298";
    let tables = tables_with(&network(keys, "", "1: {native_vlan: a}"), &facts());
    assert!(lines(&tables, &["vlan"])[0].starts_with("4096 "));
    assert_eq!(lines(&tables, &["flood"]).last().unwrap(), "7 any -> drop");
    assert!(tables.flows().all(|(_, it)| (it.cookie, it.flow.number) == (0x1_0000_0002, 2)));
}

#[test]
fn bans_and_strays_are_dropped_while_they_last() {
    let text = ports("1: {native_vlan: a}");
    let mut facts = facts();
    for fact in [Fact::PortBanned(1), Fact::VlanBanned(100), Fact::Stray(HOST, 1)] {
        assert!(facts.set(fact));
    }
    let sources = lines(&tables_with(&text, &facts), &["eth_src"]);
    for line in [
        "4097 in_port=1 hard=51 -> drop",
        "4097 vlan_vid=0x1064 hard=51 -> drop",
        "20480 in_port=1,eth_src=02:00:00:00:00:07 -> drop",
    ] {
        assert!(sources.contains(&line.to_owned()), "{line} in {sources:?}");
    }
}

#[test]
fn a_vlan_for_tunnels_forwards_nothing() {
    let text = network("", ", reserved_internal_vlan: true", "1: {native_vlan: a}");
    let tables = tables_with(&text, &with_host(1));
    assert!(lines(&tables, &["flood"]).iter().all(|line| !line.contains("vlan_vid")));
    assert!(lines(&tables, &["eth_src"]).iter().all(|line| !line.contains("vlan_vid")));
}

#[test]
fn a_vlan_without_ports_of_the_switch_has_no_flows() {
    let tables =
        tables_with(&ports("1: {native_vlan: a}, 2: {native_vlan: b, enabled: false}"), &facts());
    assert!(!tables.to_string().contains("0x10c8"));
}

#[test]
fn parts_that_are_not_built_are_refused_by_name() {
    for (text, part) in [
        (port("native_vlan: office, lacp: 1"), "LACP"),
        (vlan("faucet_vips: [10.0.0.1/24]"), "routing"),
        (stack("stack: {dp: sw2, port: 1}", "stack: {dp: sw1, port: 1}"), "stacking"),
        (rule("actions: {ct: {clear: true}}"), "connection tracking"),
        (rule("{ct_state: 1, actions: {allow: 1}}"), "support of Open vSwitch's own fields"),
        (rule("actions: {output: {set_fields: [{nw_ttl: 1}]}}"), "Open vSwitch's own fields"),
    ] {
        let why = refused(&text, Capabilities::default());
        assert!(why.contains(part) && why.contains("is not built yet"), "{why}\n{text}");
    }
}

#[test]
fn a_switch_that_lacks_something_is_refused_with_the_place() {
    let can = Capabilities::default();
    let few = Capabilities { tables: 4, ..can };
    assert_eq!(
        refused(&switch(""), few),
        "faucet.yaml:2:3: the switch has 4 tables, but needs 5; leave out ACLs or egress"
    );
    let no_groups = Capabilities { has_groups: false, ..can };
    assert!(refused(&switch("group_table: true"), no_groups).contains("no groups"));
    let failover = rule("actions: {output: {failover: {group_id: 7, ports: [1, two]}}}");
    assert!(refused(&failover, no_groups).starts_with("faucet.yaml:6:"), "the rule's place");
    let no_meters = Capabilities { has_meters: false, ..can };
    assert!(refused(&rule("actions: {meter: m}"), no_meters).contains("no meters"));
    assert!(refused(&switch("packetin_pps: 5"), no_meters).contains("no meters"));
    let high = "egress_pipeline: true, interface_ranges: {5000: {native_vlan: 100}}";
    let high = high.replace(", ", "\n    ");
    assert!(refused(&switch(&high), can).contains("at most 4095"));
    let missing = compile(&Arc::new(intent(&switch(""))), SwitchId(1), &facts()).unwrap_err();
    assert!(missing.to_string().contains("no switch number 1"));
}

#[test]
fn a_small_switch_has_tables_without_gaps() {
    let facts = facts().with_capabilities(Capabilities { tables: 5, ..Capabilities::default() });
    let tables = tables_with(&switch(""), &facts);
    let ids: Vec<u8> = tables.ids().used().map(|table| tables.ids().id(table)).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
    let fixed = tables_with(&switch(""), &self::facts());
    assert_eq!(fixed.ids().id(Table::Flood), 13);
    assert_eq!(tables.to_string(), fixed.to_string(), "by name they are the same");
}

#[test]
fn each_flow_has_one_owner() {
    let text = ports("1: {native_vlan: a}, 2: {tagged_vlans: [a, b], receive_lldp: true}");
    let tables = tables_with(&text, &with_host(1));
    let owners: Vec<String> = tables.owners().map(|(owner, _)| owner.to_string()).collect();
    assert_eq!(
        owners,
        [
            "the switch",
            "port 2",
            "port 1 in VLAN 100",
            "port 2 in VLAN 100",
            "port 2 in VLAN 200",
            "VLAN 100",
            "VLAN 200",
            "floods of VLAN 100",
            "floods of VLAN 200",
            "host 02:00:00:00:00:07 in VLAN 100",
        ]
    );
    let compiler = Compiler::new(Arc::new(intent(&text)), FIRST, Capabilities::default()).unwrap();
    for (owner, entries) in tables.owners() {
        assert_eq!(&compiler.compile_owner(owner, &with_host(1)), entries, "{owner}");
    }
    assert!(compiler.compile_owner(Owner::Port(77), &facts()).is_empty());
}
