//! Refusals: a table of files, each with the place and words of its problem.

use super::{declared, port, rule, stack, switch, vlan};

/// Asserts that each file is refused with a problem at this `LINE:COLUMN` that has these words.
fn refused(cases: &[(String, &str, &str)]) {
    let mut wrong = Vec::new();
    for (text, place, words) in cases {
        let Err(problems) = declared(text) else {
            wrong.push(format!("it is accepted, not refused at {place} with {words:?}:\n{text}"));
            continue;
        };
        let at = format!("faucet.yaml:{place}: ");
        let is_there = problems.list.iter().any(|problem| {
            let shown = problem.to_string();
            shown.starts_with(&at) && shown.contains(words)
        });
        if !is_there {
            wrong.push(format!(
                "no problem at {place} with {words:?}, but:\n{problems}\nin:\n{text}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn files_without_sections_are_refused() {
    refused(&[
        (text(""), "1:1", "the file is empty"),
        (text("# nothing\n"), "1:1", "the file is empty"),
        (text("{}"), "1:1", "the file is empty"),
        (text("5"), "1:1", "5 stands where keys must be"),
        (text("5.5"), "1:1", "5.5 stands where"),
        (text("aaaa"), "1:1", "\"aaaa\" stands where"),
        (text("False"), "1:1", "false stands where"),
        (text("1967-07-31"), "1:1", "1967-07-31 stands where"),
        (text("-"), "1:1", "a list stands where"),
        (text("[2, 2]"), "1:1", "a list stands where"),
        (text("vlans: {100: {}}"), "1:1", "no switch is declared"),
        (text("dps:\nvlans: {100: {}}"), "1:4", "`dps` is empty"),
        (format!("vlans:\n{}", switch("")), "1:6", "`vlans` is empty"),
        (format!("include:\n{}", switch("")), "1:8", "`include` is empty; give it a list of files"),
        (format!("include: x\n{}", switch("")), "1:10", "give a list"),
        (format!("version: 1\n{}", switch("")), "1:10", "from 2 to 2"),
        (format!("acl: {{}}\n{}", switch("")), "1:1", "did you mean `acls`?"),
        (format!("vlans: 7\n{}", switch("")), "1:8", "`vlans` cannot be 7; give a map"),
        (format!("bellrock: {{x: 1}}\n{}", switch("")), "1:12", "`x` is no key of Bellrock yet"),
    ]);
}

#[test]
fn texts_that_are_no_yaml_are_refused() {
    refused(&[
        (text("a: [1, 2\nb: 3\n"), "2:2", "look here and just above"),
        (text("vlans: {1: {}}\nvlans: {1: {}}\n"), "2:1", "`vlans` stands here twice"),
        (text("a: 1\n---\nb: 1\n"), "2:1", "a second document"),
        (text("dps: *x\n"), "1:6", "look here"),
        (text("dps: !thing {}\n"), "1:13", "cannot have the tag `!thing`"),
        (text("vlans:\n? office:\n    vid: 100\n"), "2:3", "a map cannot be a key"),
    ]);
}

#[test]
fn wrong_switches_are_refused() {
    refused(&[
        (text("dps: {sw1: 5}"), "1:12", "5 stands where a map must be"),
        (
            text("dps: {1: {dp_id: 1, interfaces: {1: {output_only: true}}}}"),
            "1:7",
            "put it in quotes",
        ),
        (text("dps: {sw1: {dp_id: 1}}"), "1:7", "has no ports"),
        (text("dps: {sw1: {dp_id: 1, interfaces: {}}}"), "1:7", "has no ports"),
        (
            text("dps: {sw1: {dp_id: 1, interfaces: , interface_ranges: {1-2: {native_vlan: 1}}}}"),
            "1:33",
            "`interfaces` is empty",
        ),
        (text("dps: {sw1: {interfaces: {1: {native_vlan: 1}}}}"), "1:7", "needs `dp_id`"),
        (text("dps: {sw1: {dp_id: , interfaces: {1: {native_vlan: 1}}}}"), "1:7", "needs `dp_id`"),
        (
            text("dps: {sw1: {dp_id: x, interfaces: {1: {native_vlan: 1}}}}"),
            "1:20",
            "give a whole number",
        ),
        (
            text("dps: {sw1: {dp_id: -1, interfaces: {1: {native_vlan: 1}}}}"),
            "1:20",
            "of up to 64 bits",
        ),
        (
            text(
                "dps: {sw1: {dp_id: 0xfffffffffffffffffffffff, interfaces: {1: {native_vlan: 1}}}}",
            ),
            "1:20",
            "of up to 64 bits",
        ),
        (switch("name: sw2"), "5:5", "`name` must be the key, `sw1`"),
        (switch("name: 5"), "5:11", "give text"),
        (switch("nmae: x"), "5:5", "did you mean `name`?"),
        (switch("timeout: 14"), "5:14", "from 15 to 65535"),
        (switch("timeout: 65536"), "5:14", "from 15 to 65535"),
        (switch("timeout: 60.0"), "5:14", "give a whole number"),
        (switch("arp_neighbor_timeout: 150"), "5:5", "less than half of `timeout` (300)"),
        (switch("nd_neighbor_timeout: 65536"), "5:26", "from 0 to 65535"),
        (switch("timeout: 60"), "5:5", "`arp_neighbor_timeout` (30) must be less than half"),
        (switch("group_table: yes"), "5:18", "`group_table` cannot be \"yes\"; give true or false"),
        (switch("group_table: 1"), "5:18", "give true or false"),
        (switch("{group_table: true"), "5:5", ""),
        (
            switch("group_table: true\n    combinatorial_port_flood: true"),
            "6:5",
            "exclude each other",
        ),
        (switch("hardware: Open VSwitch"), "5:5", "did you mean `Open vSwitch`?"),
        (switch("faucet_dp_mac: 11:22:33:44:55"), "5:20", "give an Ethernet address"),
        (switch("lldp_beacon: {send_interval: 0}"), "5:34", "from 1 to"),
        (switch("lldp_beacon: {interval: 0}"), "5:19", "is no key of a switch's LLDP"),
        (switch("stack: {priority: -1}"), "5:23", "from 0 to"),
        (switch("stack: {route_learning: abc}"), "5:29", "give true or false"),
        (switch("stack: {min_stack_health: 1}"), "5:31", "a number with a point"),
        (switch("table_sizes: {vlans: 1}"), "5:19", "did you mean `vlan`?"),
        (switch("dp_acls: [x]"), "5:15", "there is no ACL `x`"),
        (switch("global_vlan: 100"), "2:3", "`global_vlan` 100 is a VLAN's id"),
        (switch("interface_ranges: {abc: {native_vlan: 1}}"), "5:24", "give one such as 1-6,8"),
        (
            switch("interface_ranges: {6-1: {native_vlan: 1}}"),
            "5:24",
            "give the smaller number first",
        ),
        (switch("interface_ranges: {1-9999999: {}}"), "5:24", "has more ports than 4096"),
        (
            switch("interface_ranges:\n      3-5: {native_vlan: 1}\n      5-6: {native_vlan: 1}"),
            "7:7",
            "port 5 is in the range of line 6 too",
        ),
        (switch("interface_ranges: {3-5: 7}"), "5:29", "port `3-5` is 7; give a map"),
        (
            text(
                "dps:\n  a: {dp_id: 1, interfaces: {1: {native_vlan: 1}}}\n  b: {dp_id: 1, interfaces: {1: {native_vlan: 1}}}\n",
            ),
            "3:3",
            "`a` has the `dp_id` 0x1 too",
        ),
        (
            text("dps: {a: {dp_id: 1, interfaces: {1: {description: x}}}}"),
            "1:7",
            "no port of `a` has a VLAN",
        ),
    ]);
}

#[test]
fn wrong_ports_are_refused() {
    refused(&[
        (text("dps: {sw1: {dp_id: 1, interfaces: {1: }}}"), "1:37", "port `1` is empty"),
        (text("dps: {sw1: {dp_id: 1, interfaces: {'5': 5}}}"), "1:41", "port `5` is 5; give a map"),
        (
            text("dps: {s: {dp_id: 1, interfaces: {x: {native_vlan: 1}}}}"),
            "1:34",
            "port `x` needs `number`",
        ),
        (
            text("dps: {s: {dp_id: 1, interfaces: {0: {native_vlan: 1}}}}"),
            "1:34",
            "port `0` needs `number`",
        ),
        (
            text("dps: {s: {dp_id: 1, interfaces: {x: {number: 0xf0000001, native_vlan: 1}}}}"),
            "1:46",
            "from 1 to 4026531840",
        ),
        (port("number: {a: 1}"), "6:19", "`number` cannot be a map"),
        (
            port("name: a, number: 7"),
            "6:5",
            "the key `1` must be the port's `name` (`a`) or `number` (7)",
        ),
        (port("native_vlans: office"), "6:11", "did you mean `native_vlan`?"),
        (port("native_vlan: ofice"), "6:24", "there is no VLAN `ofice`"),
        (port("native_vlan: 5000"), "6:24", "a VLAN cannot be 5000"),
        (port("native_vlan: '200'"), "6:24", "there is no VLAN `200`"),
        (port("native_vlan: [office]"), "6:24", "give a whole number or text"),
        (port("tagged_vlans: office"), "6:25", "give a list"),
        (port("tagged_vlans: [office: guest]"), "6:26", "a VLAN cannot be a map"),
        (
            port("tagged_vlans: [office], native_vlan: 100"),
            "6:26",
            "is the port's `native_vlan` too",
        ),
        (port("native_vlan: office, mirror: 2"), "6:11", "it cannot have VLANs"),
        (port("native_vlan: office, output_only: true"), "6:11", "it cannot have VLANs"),
        (port("mirror: 7"), "6:19", "has no port 7 to mirror"),
        (port("mirror: two"), "6:19", "has no port `two` to mirror"),
        (port("mirror: [[2]]"), "6:20", "a list is no port to mirror"),
        (port("output_only: true, coprocessor: {strategy: vlan_vid}"), "6:11", "cannot have"),
        (port("output_only: true, max_hosts: 3"), "6:30", "`max_hosts` has no meaning"),
        (port("output_only: true, acls_in: [a]"), "6:30", "`acls_in` has no meaning"),
        (port("coprocessor: {strategy: other}"), "6:25", "must be `vlan_vid`"),
        (port("coprocessor: {strateg: other}"), "6:25", "did you mean `strategy`?"),
        (port("hairpin: true, hairpin_unicast: true"), "6:26", "exclude each other"),
        (port("lacp_resp_interval: 0"), "6:31", "from 1 to 65535"),
        (port("lacp_resp_interval: 0xfffffffffffffffff"), "6:31", "from 1 to 65535"),
        (port("lacp_port_priority: 256"), "6:31", "from 0 to 255"),
        (port("lacp_selected: true, lacp_standby: true"), "6:5", "only one of `lacp_selected`"),
        (port("lacp_port_selected: true"), "6:11", "did you mean `lacp_port_id`?"),
        (port("lldp_peer_mac: '11:22:33:44:55:66:77:88'"), "6:26", "give an Ethernet address"),
        (
            port("lldp_beacon: {enable: true, org_tlvs: [{oui: 1}]}"),
            "6:50",
            "the TLV needs `subtype`",
        ),
        (port("lldp_beacon: {enable: true, org_tlvs: }"), "6:47", "`org_tlvs` is empty"),
        (port("lldp_beacon: {enabled: true}"), "6:25", "did you mean `enable`?"),
        (port("dot1x: true, dot1x_mab: true, dot1x_dyn_acl: true"), "6:24", "exclude each other"),
        (port("dot1x: true, dot1x_acl: true, dot1x_dyn_acl: true"), "6:24", "exclude each other"),
        (port("acl_in: a"), "6:19", "there is no ACL `a`"),
        (port("acls_in: [1.5]"), "6:21", "1.5 is no name of an ACL"),
        (port("acl_in: a, acls_in: [a]"), "6:11", "use `acls_in` only"),
        (port("stack: {dp: sw2}"), "6:18", "`stack` needs `port`"),
        (port("stack: {dp: sw2, 0ort: 1}"), "6:28", "did you mean `port`?"),
        (port("stack: {dp: sw2, port: []}"), "6:34", "give a whole number or text"),
    ]);
}

#[test]
fn wrong_vlans_are_refused() {
    refused(&[
        (vlan("vid: 10000"), "7:5", "from 1 to 4095"),
        (vlan("vid: 0"), "7:5", "from 1 to 4095"),
        (text("vlans: {office: }\ndps: {}"), "1:9", "VLAN `office` needs `vid`"),
        (text("vlans: {office: {vid: }}\ndps: {}"), "1:9", "VLAN `office` needs `vid`"),
        (text("vlans: {office: [1]}\ndps: {}"), "1:17", "a list stands where a map must be"),
        (text("vlans: {1.5: {vid: 1}}\ndps: {}"), "1:9", "`1.5` cannot name a VLAN"),
        (text("vlans: {a: {vid: 1}, b: {vid: 1}}\ndps: {}"), "1:26", "is that of another VLAN too"),
        (
            text("vlans: {x: {vid: 1, name: y}}\ndps: {}"),
            "1:9",
            "the key `x` must be the VLAN's `name`",
        ),
        (vlan("faucet_mac: ''"), "7:17", "give an Ethernet address"),
        (vlan("faucet_mac: '11:22:33:44:55:66:77:88'"), "7:17", "give an Ethernet address"),
        (vlan("acl_in: a\n    acls_in: [b]"), "7:5", "use `acls_in` only"),
        (vlan("acl_out: a\n    acls_out: [b]"), "7:5", "use `acls_out` only"),
        (vlan("acl_in: a"), "7:13", "there is no ACL `a`"),
        (vlan("faucet_vips: [192.168.4.1]"), "7:19", "with the length of its network"),
        (vlan("faucet_vips: [false, 5.5, []]"), "7:19", "cannot be false"),
        (vlan("faucet_vips: ['aaaaa', '']"), "7:28", "cannot be \"\""),
        (vlan("routes: [{route: {ip_dst: , ip_gw: }}]"), "7:29", "a route needs `ip_dst`"),
        (vlan("routes: [{route: {ip_dst: 5.5, ip_gw: []}}]"), "7:43", "a route needs `ip_gw`"),
        (vlan("routes: [{ip_dst: 10.0.0.0/8}]"), "7:14", "a route needs `ip_gw`"),
        (
            vlan("routes: [{ip_dst: 10.0.0.1/8, ip_gw: 10.0.0.1}]"),
            "7:23",
            "a network with its length",
        ),
        (vlan("routes: [{ip_dst: 10.0.0.0/8, ip_gw: '::1'}]"), "7:42", "of two versions of IP"),
        (vlan("routes: [[{route: 1}]]"), "7:14", "a list is no route"),
        (vlan("routes: [{}]"), "7:14", "a route needs"),
        (vlan("max_hosts: many"), "7:16", "give a whole number"),
        (vlan("vlan_acl: x"), "7:5", "is no key of a VLAN"),
    ]);
}

#[test]
fn wrong_acls_are_refused() {
    refused(&[
        (format!("acls: {{a: }}\n{}", switch("")), "1:9", "empty stands where a map must be"),
        (format!("acls: {{a: {{}}}}\n{}", switch("")), "1:8", "ACL `a` has no rules"),
        (format!("acls: {{a: []}}\n{}", switch("")), "1:8", "ACL `a` has no rules"),
        (format!("acls: {{a: {{vid: 1}}}}\n{}", switch("")), "1:12", "is no key of an ACL"),
        (format!("acls: [{{a: 1}}]\n{}", switch("")), "1:7", "`acls` cannot be a list"),
        (rule("5"), "6:7", "5 is no rule"),
        (rule("rule: []"), "6:13", "a list is no rule"),
        (rule("xrule: {udp_src: v7}"), "6:7", "did you mean `rule`?"),
        (rule("cookie: 999999"), "6:15", "from 0 to 65536"),
        (rule("cookie:"), "6:13", "`cookie` is empty"),
        (rule("actions:"), "6:14", "`actions` is empty"),
        (rule("actions: {}"), "6:16", "give `allow: 0` to drop"),
        (rule("actions: {alow: 1}"), "6:17", "did you mean `allow`?"),
        (rule("notsuch: match"), "6:7", "is no field of packets or key of a rule"),
        (rule("ipv4_src: q0.0.200.0/24"), "6:17", "give an IPv4 address or network"),
        (rule("ipv4_src: 10/0.200.0/24"), "6:17", "give an IPv4 address or network"),
        (rule("ipv4_src: 'fc00::1'"), "6:17", "give an IPv4 address or network"),
        (rule("ipv6_src: zyx"), "6:17", "give an IPv6 address or network"),
        (rule("nw_src: 10.0.0.0/33"), "6:15", "give an IPv4 address or network"),
        (rule("ipv4_src:"), "6:15", "cannot be empty"),
        (rule("dl_dst:"), "6:13", "cannot be empty"),
        (rule("dl_dst: x"), "6:15", "give an Ethernet address"),
        (rule("udp_src: v7"), "6:16", "from 0 to 65535"),
        (rule("udp_src: 65536"), "6:16", "from 0 to 65535"),
        (rule("dl_type: 0x12345"), "6:16", "from 0 to 65535"),
        (rule("ip_dscp: 64"), "6:16", "from 0 to 63"),
        (rule("in_port: nowhere"), "6:16", "a port number, or LOCAL"),
        (rule("dl_vlan: abc"), "6:16", "a VLAN id"),
        (rule("eth_type: [1]"), "6:17", "cannot be a list"),
        (rule("udp_src: '010'"), "6:16", "from 0 to 65535"),
        (rule("actions: {mirror: NOWHERE}"), "6:25", "has no port `NOWHERE`"),
        (rule("actions: {mirror: {port: 1}}"), "6:25", "give a whole number or text"),
        (rule("actions: {meter: x}"), "6:24", "there is no meter \"x\""),
        (rule("actions: {output: }"), "6:23", "`output` is empty"),
        (rule("actions: {output: {port: 3}}"), "6:32", "switch `sw1` uses ACL `a` (faucet.yaml:2:"),
        (rule("actions: {output: [{port: 3}]}"), "6:33", "has no port 3"),
        (rule("actions: {output: {ports: [1, x]}}"), "6:37", "has no port `x`"),
        (rule("actions: {output: {prt: 1}}"), "6:26", "did you mean `port`?"),
        (rule("actions: {output: {port: 1, ports: [1]}}"), "6:26", "exclude each other"),
        (rule("actions: {output: {vlan_vid: 1, vlan_vids: [1]}}"), "6:26", "exclude each other"),
        (rule("actions: {output: [{port: 1, pop_vlans: 1}]}"), "6:26", "has one key"),
        (rule("actions: {output: {vlan_vid: 5000}}"), "6:36", "give a number up to 4095"),
        (rule("actions: {output: {vlan_vids: [{eth_type: 1}]}}"), "6:38", "a tag needs `vid`"),
        (
            rule("actions: {output: {set_fields: [{nosuchfield: 1}]}}"),
            "6:40",
            "is no field of packets",
        ),
        (
            rule("actions: {output: {set_fields: [{eth_dst: 1}]}}"),
            "6:49",
            "give an Ethernet address",
        ),
        (rule("actions: {output: {set_fields: [{eth_type: '1'}]}}"), "6:50", "without quotes"),
        (rule("actions: {output: {set_fields: [{}]}}"), "6:39", "has one field"),
        (rule("actions: {output: {failover: {ports: [1]}}}"), "6:36", "needs `group_id`"),
        (rule("actions: {output: {failover: {group_id: 1}}}"), "6:36", "needs `ports`"),
        (rule("actions: {output: {failover: {group_id: 1, ports: [9]}}}"), "6:58", "has no port 9"),
        (rule("actions: {output: {tunnel: {port: 1}}}"), "6:34", "a tunnel needs `dp`"),
        (rule("actions: {output: {tunnel: {dp: sw9}}}"), "6:34", "there is no switch `sw9`"),
        (rule("actions: {output: {tunnel: {dp: sw1, port: 9}}}"), "6:34", "has no port `9`"),
        (
            rule("actions: {output: {tunnel: {dp: sw1, tunnel_id: x}}}"),
            "6:34",
            "there is no VLAN `x`",
        ),
        (
            rule("actions: {output: {tunnel: {dp: sw1, tunnel_id: 100}}}"),
            "6:34",
            "reserved_internal_vlan",
        ),
        (
            rule("actions: {output: {tunnel: {dp: sw1, port: 0.5}}}"),
            "6:50",
            "`port` cannot be 0.5; give a whole number or text",
        ),
        (
            rule("actions: {output: {tunnel: {dp: sw1, exit_instructions: 7}}}"),
            "6:63",
            "give a list",
        ),
        (
            rule("actions: {output: {tunnel: {dp: sw1, reverse: true, bi_directional: true}}}"),
            "6:34",
            "not both",
        ),
        (rule("actions: {ct: {zone: 1}}"), "6:21", "`ct` needs `table`"),
        (rule("actions: {ct: {clear: true, zone: 1}}"), "6:22", "`clear` stands alone"),
        (rule("actions: {ct: {table: 1, zone: 1, nat: {x: 1}}}"), "6:47", "is no key of `nat`"),
        (
            format!(
                "acls: {{a: [{{udp_src: 1}}], b: {{exact_match: true, rules: [{{udp_src: 2}}]}}}}\n{}",
                port("native_vlan: office, acls_in: [a, b]")
            ),
            "7:45",
            "must all have `exact_match`",
        ),
        (
            format!(
                "acls: {{a: [{{udp_src: 1}}]}}\n{}",
                port("native_vlan: 100, acl_in: a").replace("dp_id: 1", "dp_id: 1, dp_acls: [a]")
            ),
            "7:5",
            "its ports cannot have ACLs",
        ),
    ]);
}

#[test]
fn an_acl_of_a_vlan_must_fit_every_switch_and_has_no_tunnel() {
    let acl = "acls: {a: [{actions: {output: {port: 2}}}]}\nvlans: {100: {acls_in: [a]}}\ndps:\n  x: {dp_id: 1, interfaces: {1: {native_vlan: 100}, 2: {native_vlan: 100}}}\n  y: {dp_id: 2, interfaces: {1: {native_vlan: 100}}}\n";
    refused(&[
        (text(acl), "1:38", "switch `y` uses ACL `a` (faucet.yaml:2:25), but has no port 2"),
        (
            acl.replace("{port: 2}", "{tunnel: {dp: y}}"),
            "1:40",
            "an ACL of a VLAN cannot have a tunnel",
        ),
    ]);
}

#[test]
fn wrong_meters_and_routers_are_refused() {
    let with = |text: &str| format!("{text}\n{}", switch(""));
    refused(&[
        (with("meters: {m: }"), "1:11", "empty stands where a map must be"),
        (with("meters: {m: {meter_id: 1}}"), "1:10", "has no `entry`"),
        (with("meters: {m: {meter_id: -1}}"), "1:24", "from 0 to 4294901760"),
        (with("meters: {m: {entry: {flags: KBPS, bands: []}}}"), "1:10", "has no `meter_id`"),
        (
            with("meters: {m: {meter_id: 1, entry: {flags: KBPS, bands: []}}}"),
            "1:34",
            "has no bands",
        ),
        (with("meters: {m: {meter_id: 1, entry: {flags: KB, bands: []}}}"), "1:42", "give KBPS"),
        (with("meters: {m: {meter_id: 1, entry: {bands: [{type: X}]}}}"), "1:34", "has no `flags`"),
        (
            with("meters: {m: {meter_id: 1, entry: {bands: [{type: X}]}}}"),
            "1:44",
            "DROP or DSCP_REMARK",
        ),
        (with("routers: {r: }"), "1:11", "router `r` has no VLANs"),
        (with("routers: {r: {vlan: 1}}"), "1:15", "did you mean `vlans`?"),
        (with("routers: {r: {vlans: [nowhere]}}"), "1:11", "has no VLAN that there is"),
        (
            with("routers: {r: {vlans: [100]}, s: {vlans: [100]}}"),
            "1:30",
            "is in another router too",
        ),
        (with("routers: {r: {bgp: {as: 1}}}"), "1:20", "`bgp` needs `port`"),
        (with("routers: {r: {bgp: {server_addresses: [256.0.0.1]}}}"), "1:40", "is no address"),
        (
            with("routers: {r: {bgp: {server_addresses: [127.0.0.1, 127.0.0.2]}}}"),
            "1:21",
            "one address of each version",
        ),
        (with("routers: {r: {bgp: {connect_mode: active}}}"), "1:21", "must be `passive`"),
        (
            format!(
                "vlans: {{a: {{vid: 7, faucet_vips: [10.0.0.1/24]}}, b: {{vid: 8, faucet_vips: [10.0.0.2/24]}}}}\nrouters: {{r: {{vlans: [a, b]}}}}\n{}",
                switch("")
            ),
            "1:35",
            "10.0.0.1/24 is in the network of 10.0.0.2/24",
        ),
    ]);
}

#[test]
fn bgp_is_for_one_switch() {
    let bgp = "routers:\n  r: {vlans: [100], bgp: {as: 1, port: 9179, routerid: 1.1.1.1, neighbor_as: 2, server_addresses: [127.0.0.1], neighbor_addresses: [127.0.0.1]}}\n";
    assert!(declared(&format!("{bgp}{}", switch(""))).is_ok());
    let two = format!(
        "{bgp}{}  sw2: {{dp_id: 2, interfaces: {{1: {{native_vlan: 100}}}}}}\n",
        switch("")
    );
    refused(&[(two, "2:26", "BGP works with one switch in the file")]);
}

#[test]
fn wrong_stacks_are_refused() {
    let (to_1, to_2) = ("stack: {dp: sw1, port: 1}", "stack: {dp: sw2, port: 1}");
    assert!(declared(&stack(to_2, to_1)).is_ok());
    refused(&[
        (stack("stack: {dp: sw9, port: 1}", to_1), "4:27", "there is no switch `sw9`"),
        (stack("stack: {dp: sw2, port: 9}", to_1), "4:38", "switch `sw2` has no port `9`"),
        (stack(to_2, "native_vlan: 100"), "4:27", "port 1 of `sw2` does not lead back here"),
        (stack("stack: {dp: sw2, port: 2}", to_1), "4:27", "port 2 of `sw2` does not lead back"),
        (stack(&format!("{to_2}, native_vlan: 100"), to_1), "4:42", "it cannot have VLANs"),
        (stack(&format!("{to_2}, output_only: true"), to_1), "4:42", "cannot have"),
        (
            stack(&format!("{to_2}, receive_lldp: true"), to_1),
            "4:42",
            "`receive_lldp` has no meaning",
        ),
        (
            stack(to_2, to_1).replace("priority: 1", "priority: 0"),
            "4:27",
            "no switch of the stack may be",
        ),
        (
            format!(
                "{}  sw3: {{dp_id: 3, interfaces: {{1: {{stack: {{dp: sw4, port: 1}}}}}}}}\n  sw4: {{dp_id: 4, interfaces: {{1: {{stack: {{dp: sw3, port: 1}}}}}}}}\n",
                stack(to_2, to_1)
            ),
            "9:3",
            "no links lead from `sw3` to the root",
        ),
    ]);
}

#[test]
fn login_excludes_other_acls() {
    let login = "dot1x: {nfv_intf: lo, nfv_sw_port: 2}";
    refused(&[
        (switch("dot1x: {nfv_intf: lo}"), "2:3", "needs `nfv_sw_port`"),
        (switch(login), "4:41", "must have `output_only: true`"),
        (switch("dot1x: {nfv_if: lo}"), "5:13", "did you mean `nfv_intf`?"),
        (
            format!(
                "acls: {{a: [{{udp_src: 1}}]}}\n{}",
                switch(&format!("{login}\n    dp_acls: [a]"))
            ),
            "3:3",
            "has `dp_acls` and `dot1x`",
        ),
        (
            format!(
                "acls: {{a: [{{udp_src: 1}}]}}\n{}",
                port("native_vlan: 100, dot1x: true, acls_in: [a]")
            ),
            "7:5",
            "cannot have ACLs of its own",
        ),
    ]);
}

#[test]
fn many_problems_are_found_in_one_pass() {
    let text = "vlans:\n  a: {vid: 0}\n  b: {vid: 1, x: 1}\ndps:\n  s: {dp_id: x, interfaces: {1: {native_vlan: c}, y: {}}, timeout: 1}\n";
    let problems = declared(text).unwrap_err();
    let lines: Vec<(u32, u32)> =
        problems.list.iter().map(|it| (it.place.line, it.place.column)).collect();
    assert_eq!(lines, [(2, 7), (3, 15), (5, 14), (5, 47), (5, 51), (5, 68)], "{problems}");
}

#[test]
fn the_number_of_problems_in_a_report_is_bounded() {
    let keys: Vec<String> = (0..150).map(|n| format!("x{n}: 1")).collect();
    let problems = declared(&port(&keys.join(", "))).unwrap_err();
    assert_eq!((problems.list.len(), problems.left_out), (bellrock_fabric::MAX_PROBLEMS, 50));
    assert!(problems.to_string().ends_with("and 50 more"));
}
