//! What is accepted, and the intent that it makes.

use bellrock_api::Dpid;
use bellrock_fabric::intent::{Hardware, Name, NiciraMatch, Output, PortRef, SwitchId};
use bellrock_openflow::{Field, MacAddr, MeterFlags};

use super::{declared, intent, port, rule, stack, switch, vlan};

#[test]
fn a_switch_has_what_the_file_says_and_presets_for_the_rest() {
    let intent = intent(
        "vlans: {office: {vid: 100}}\ndps:\n  sw1:\n    dp_id: 0xCAFEF00D\n    interfaces:\n      testing: {number: 1, native_vlan: office}\n",
    );
    let [switch] = &intent.switches[..] else { panic!("one switch") };
    assert_eq!((&*switch.name, &*switch.description), ("sw1", "sw1"));
    assert_eq!((switch.dpid, switch.hardware), (Dpid(0xcafe_f00d), Hardware::OpenVSwitch));
    assert_eq!(switch.mac, MacAddr([0x0e, 0, 0, 0, 0, 1]));
    let settings = &switch.settings;
    assert_eq!((settings.timeout, settings.cookie), (300, 1_524_372_928));
    // int(sqrt(300) * 3), and half of 300.
    assert_eq!((settings.learn_jitter, settings.learn_ban_timeout), (51, 51));
    assert_eq!(settings.cache_update_guard_time, 150);
    assert_eq!((settings.lowest_priority, settings.low_priority), (Some(0), Some(9000)));
    assert_eq!((settings.high_priority, settings.highest_priority), (Some(9001), Some(9099)));
    let [port] = &switch.ports[..] else { panic!("one port") };
    assert_eq!((port.number, &*port.name, &*port.description), (1, "testing", "testing"));
    assert_eq!((port.settings.max_hosts, port.settings.unicast_flood), (255, true));
    let vlan = intent.vlan(port.native_vlan.unwrap()).unwrap();
    assert_eq!((vlan.vid, &*vlan.name, vlan.settings.max_hosts), (100, "office", 256));
    assert_eq!((vlan.settings.proactive_arp_limit, vlan.mac), (512, switch.mac));
    assert_eq!(intent.switch_with(Dpid(0xcafe_f00d)), Some(SwitchId(0)));
}

#[test]
fn everything_keeps_its_place() {
    let intent = intent(&rule("{dl_type: 0x800, actions: {output: {port: two}}}"));
    assert_eq!(intent.switches[0].place.to_string(), "faucet.yaml:2:3");
    assert_eq!(intent.switches[0].ports[0].place.to_string(), "faucet.yaml:2:32");
    assert_eq!(intent.switches[0].ports[0].acls[0].place.to_string(), "faucet.yaml:2:64");
    assert_eq!(intent.vlans[0].place.to_string(), "faucet.yaml:2:49");
    assert_eq!(intent.acls[0].place.to_string(), "faucet.yaml:5:3");
    assert_eq!(intent.acls[0].rules[0].place.to_string(), "faucet.yaml:6:7");
}

#[test]
fn vlans_are_found_by_key_or_id_and_made_by_number() {
    let intent = intent(&port("native_vlan: office, tagged_vlans: [200, 0xC8, 300]"));
    let vids: Vec<u16> = intent.vlans.iter().map(|vlan| vlan.vid).collect();
    assert_eq!(vids, [100, 200, 300]);
    assert_eq!(&*intent.vlans[1].name, "200");
    let port = intent.switches[0].port_numbered(1).unwrap();
    assert_eq!(port.tagged_vlans.len(), 2, "each once");
    for keys in ["native_vlan: 100", "tagged_vlans: [100]"] {
        assert_eq!(super::intent(&super::port(keys)).vlans.len(), 1, "{keys}");
    }
}

#[test]
fn ports_are_found_by_number_or_name() {
    let intent = intent(&switch(""));
    let found = |name: Name| intent.switches[0].port(&name).map(|port| port.number);
    assert_eq!(found(Name::Number(2)), Some(2));
    assert_eq!(found(Name::Text("two".into())), Some(2));
    assert_eq!(found(Name::Text("2".into())), None);
    assert_eq!(found(Name::Text("1".into())), Some(1), "a port's name is its key");
}

#[test]
fn ranges_give_ports_what_they_lack() {
    let text = "dps:\n  s:\n    dp_id: 1\n    interfaces:\n      2: {native_vlan: 300}\n      five: {number: 5, max_hosts: 7}\n    interface_ranges:\n      1-3,5: {native_vlan: 100, max_hosts: 3, number: 9}\n      7: {tagged_vlans: [100]}\n";
    let intent = intent(text);
    let rows: Vec<_> = intent.switches[0]
        .ports
        .iter()
        .map(|port| {
            let vlan = port.native_vlan.map(|id| intent.vlan(id).unwrap().vid);
            (port.number, &*port.name, vlan, port.settings.max_hosts)
        })
        .collect();
    assert_eq!(
        rows,
        [
            (1, "1", Some(100), 3),
            (2, "2", Some(300), 3),
            (3, "3", Some(100), 3),
            (5, "five", Some(100), 7),
            (7, "7", None, 255),
        ]
    );
}

#[test]
fn a_port_that_gets_copies_has_no_input() {
    let intent = intent(&port("mirror: [2, 2]"));
    let port = |number| intent.switches[0].port_numbered(number).unwrap();
    assert_eq!(port(2).mirrored_to, [1]);
    assert!(port(1).output_only && !port(2).output_only);
    let intent = super::intent(&rule("actions: {mirror: two}"));
    assert!(intent.switches[0].port_numbered(2).unwrap().output_only);
    assert!(intent.acls[0].rules[0].actions.goes_on(), "a mirrored packet goes on");
}

#[test]
fn reserved_ports_may_be_configured() {
    for (text, number) in [("0xfffffff8", 0xffff_fff8), ("0xfffffffe", 0xffff_fffe)] {
        let text =
            format!("dps: {{s: {{dp_id: 1, interfaces: {{{text}: {{output_only: true}}}}}}}}");
        assert_eq!(intent(&text).switches[0].ports[0].number, number);
    }
}

#[test]
fn rules_are_written_in_three_ways() {
    for keys in [
        "rule: {dl_type: 0x800, actions: {allow: 1}}",
        "rule:\n      dl_type: 0x800\n      actions: {allow: True}",
        "{dl_type: 0x800, actions: {allow: 1}}",
        "{rule: {dl_type: '0x800', actions: {allow: 1}}}",
    ] {
        let intent = intent(&rule(keys));
        let [rule] = &intent.acls[0].rules[..] else { panic!("one rule") };
        assert_eq!(rule.matches.value(Field::EthType), Some(0x800), "{keys}");
        assert_eq!((rule.actions.allow, rule.actions.goes_on()), (Some(true), true), "{keys}");
    }
}

#[test]
fn an_empty_allow_is_no() {
    let declared = declared(&rule("actions: {mirror: two, allow: }")).unwrap();
    assert_eq!(declared.intent.acls[0].rules[0].actions.allow, Some(false));
    assert!(declared.warnings[0].message.contains("`allow` is empty"));
}

#[test]
fn old_names_of_fields_mean_the_new_ones() {
    let intent = intent(&rule(
        "{dl_src: '0E:0:0:0:0:2', dl_dst: '01:00:00:00:00:00/01:00:00:00:00:00', dl_vlan: 100, nw_proto: 6, \
         nw_src: 10.0.0.0/24, nw_dst: 10.1.0.1, tcp_dst: '0x50'}",
    ));
    let matches = &intent.acls[0].rules[0].matches;
    assert_eq!(
        matches.to_string(),
        "eth_dst=01:00:00:00:00:00/01:00:00:00:00:00,eth_src=0e:00:00:00:00:02,vlan_vid=0x1064,\
         ip_proto=6,ipv4_src=10.0.0.0/24,ipv4_dst=10.1.0.1,tcp_dst=80"
    );
    assert_eq!(intent.acls[0].rules[0].actions.allow, None);
    assert!(!intent.acls[0].rules[0].actions.goes_on(), "without actions it drops");
}

#[test]
fn vlan_ids_in_matches_have_the_bit_for_tagged() {
    for (text, value) in [
        ("vlan_vid: 100", 0x1064),
        ("vlan_vid: '100'", 0x1064),
        ("vlan_vid: '0x1064'", 0x1064),
        ("vlan_vid: '0x64'", 0x64),
        ("vlan_vid: 0", 0x1000),
    ] {
        let intent = intent(&rule(text));
        let matches = &intent.acls[0].rules[0].matches;
        assert_eq!(matches.value(Field::VlanVid), Some(value), "{text}");
    }
}

#[test]
fn fields_of_nicira_are_kept() {
    let intent = intent(&rule("{ct_state: '0x20/0x20', ct_zone: 1}"));
    let nicira = &intent.acls[0].rules[0].nicira;
    assert_eq!(
        nicira[..],
        [
            NiciraMatch { field: "ct_state", value: 0x20, mask: Some(0x20) },
            NiciraMatch { field: "ct_zone", value: 1, mask: None },
        ]
    );
}

fn port_step(step: &Output) -> String {
    match step {
        Output::Port(PortRef { name, .. }) => format!("port {name}"),
        Output::SetField(field, value) => format!("set {field} {value:#x}"),
        Output::SetNicira(set) => format!("set {} {}", set.field, set.value),
        Output::PopVlan => "pop".to_owned(),
        Output::PushVlan { vid, eth_type } => format!("push {vid} {eth_type:#x}"),
        Output::SwapVlan(vid) => format!("swap {vid}"),
        Output::Failover(it) => format!("failover {} {}", it.group_id, it.ports.len()),
        Output::Tunnel(it) => format!("tunnel {}", it.switch),
    }
}

#[test]
fn outputs_of_a_map_have_a_fixed_order_and_those_of_a_list_their_own() {
    let steps = |keys: &str| -> Vec<String> {
        let intent = intent(&rule(&format!("actions: {{output: {keys}}}")));
        intent.acls[0].rules[0].actions.output.iter().map(port_step).collect()
    };
    assert_eq!(
        steps(
            "{port: 1, set_fields: [{eth_dst: '0e:00:00:00:00:01'}], vlan_vids: [{vid: 200, eth_type: 0x88a8}, 7], pop_vlans: 2}"
        ),
        ["pop", "pop", "push 200 0x88a8", "push 7 0x8100", "set eth_dst 0xe0000000001", "port 1"]
    );
    assert_eq!(
        steps(
            "[{port: two}, {swap_vid: 101}, {set_fields: [{ipv4_dst: 10.0.0.1}]}, {ports: [1, 2]}]"
        ),
        ["port two", "swap 101", "set ipv4_dst 0xa000001", "port 1", "port 2"]
    );
    assert_eq!(steps("{failover: {group_id: 1, ports: [1, two]}}"), ["failover 1 2"]);
    assert_eq!(steps("{tunnel: {dp: sw1, tunnel_id: 200}}"), ["tunnel sw1"]);
}

#[test]
fn an_acl_that_nothing_uses_may_be_wrong() {
    let text = format!(
        "acls: {{a: [{{udp_src: v7, actions: {{output: {{port: 77}}}}}}]}}\n{}",
        switch("")
    );
    let declared = declared(&text).unwrap();
    let [warning] = &declared.warnings[..] else { panic!("{:?}", declared.warnings) };
    assert_eq!(
        warning.to_string(),
        "faucet.yaml:1:22: `udp_src` cannot be \"v7\"; give a whole number from 0 to 65535, also with \
         /MASK; nothing uses ACL `a` yet"
    );
}

#[test]
fn suspicious_files_are_accepted_with_warnings() {
    for (text, words) in [
        (switch("interface_ranges: {3: {native_vlan: 100}}").replace("two:", "1:"), None),
        (
            switch("").replace("two: {number: 2,", "two: {number: 1,"),
            Some("this port is declared again at line 4"),
        ),
        (
            rule("{rule: {udp_src: 1}, actions: {allow: 1}}"),
            Some("`actions` stands beside `rule:`"),
        ),
        (
            rule("actions: {output: {vlan_vid: 1, swap_vid: 2}}"),
            Some("`swap_vid` is ignored beside"),
        ),
        (
            vlan("routes: [{ip_dst: 0.0.0.0/0, ip_gw: 10.0.0.1, metric: 3}]"),
            Some("`metric` is no key of a route"),
        ),
        (
            format!("routers: {{r: {{vlans: [100, 999]}}}}\n{}", switch("")),
            Some("there is no VLAN 999"),
        ),
    ] {
        let text = if words.is_none() { switch("") } else { text };
        let warnings = declared(&text).unwrap_or_else(|it| panic!("{it}\n{text}")).warnings;
        let shown: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        match words {
            Some(words) => assert!(shown.iter().any(|it| it.contains(words)), "{shown:?}\n{text}"),
            None => assert!(shown.is_empty(), "{shown:?}"),
        }
    }
}

#[test]
fn meters_are_typed() {
    let text = format!(
        "meters: {{m: {{meter_id: 3, entry: {{flags: [KBPS, BURST], bands: [{{type: DROP, rate: '1000', burst_size: 5}}, {{type: DSCP_REMARK, rate: 7, prec_level: 1}}]}}}}}}\n{}",
        switch("")
    );
    let intent = intent(&text);
    let meter = &intent.meters[0];
    assert_eq!((meter.number, meter.flags), (3, MeterFlags::KBPS | MeterFlags::BURST));
    assert_eq!((meter.bands[0].rate, meter.bands[0].burst_size), (1000, 5));
    assert_eq!((meter.bands[0].dscp_remark, meter.bands[1].dscp_remark), (None, Some(1)));
    let intent = super::intent(&rule("actions: {meter: m, allow: 1}"));
    let meter = intent.acls[0].rules[0].actions.meter.unwrap();
    assert_eq!(intent.meter(meter).unwrap().number, 1);
}

#[test]
fn routing_is_read_in_all_parts() {
    let text = "vlans:\n  a: {vid: 1, faucet_vips: [10.0.0.254/24, 'fe80::1/64'], faucet_mac: 'E:0:0:F:2:3', routes: [{route: {ip_dst: 10.9.0.0/16, ip_gw: 10.0.0.1}}]}\n  b: {vid: 2, faucet_vips: [10.0.1.254/24, 'fe80::1/64']}\nrouters: {r: {vlans: [a, 2]}}\ndps:\n  s: {dp_id: 1, interfaces: {1: {native_vlan: a}, 2: {native_vlan: b}}}\n";
    let intent = intent(text);
    assert_eq!(intent.vlans[0].mac.to_string(), "0e:00:00:0f:02:03");
    assert_eq!(intent.vlans[0].vips[0].prefix.to_string(), "10.0.0.254/24");
    assert!(intent.vlans[0].vips[1].prefix.is_link_local());
    assert_eq!(intent.vlans[0].routes[0].destination.to_string(), "10.9.0.0/16");
    assert_eq!(intent.routers[0].vlans.len(), 2);
}

#[test]
fn a_stack_has_links_and_candidates_for_its_root() {
    let text = stack("stack: {dp: sw2, port: 1}", "stack: {dp: sw1, port: 1}, acls_in: []");
    let intent = intent(&text.replace("dp_id: 2,", "dp_id: 2, stack: {priority: 1},"));
    let stack = intent.stack.clone().unwrap();
    assert_eq!(stack.roots, [SwitchId(0), SwitchId(1)], "of equal ones, the lower datapath id");
    let [link] = stack.links[..] else { panic!("one link") };
    assert_eq!((link.a, link.z), ((SwitchId(0), 1), (SwitchId(1), 1)));
    let switch = &intent.switches[1];
    let port = switch.port_numbered(1).unwrap();
    assert!(port.settings.receive_lldp && port.lldp.as_ref().is_some_and(|lldp| lldp.enable));
    assert_eq!(switch.lldp.as_ref().map(|lldp| lldp.send_interval), Some(5));
    assert!(!stack.has_externals);
}

#[test]
fn a_switch_without_stack_ports_is_in_no_stack() {
    let intent = intent(&switch("stack: {priority: 1}"));
    assert!(intent.stack.is_none() && intent.switches[0].stack.is_none());
}

#[test]
fn numbers_follow_yaml_1_2() {
    for (text, vid) in [("0o144", 100), ("010", 10), ("0b11", 3), ("1_00", 100)] {
        let intent =
            intent(&switch("").replace("native_vlan: 100", &format!("native_vlan: {text}")));
        assert_eq!(intent.vlans[0].vid, vid, "{text}");
    }
}

#[test]
fn anchors_and_merges_are_followed() {
    let text = "dps:\n  s:\n    dp_id: 1\n    interfaces:\n      1: &access {native_vlan: 100, max_hosts: 5}\n      2: *access\n      3: {<<: *access, max_hosts: 6}\n";
    let hosts: Vec<u32> =
        intent(text).switches[0].ports.iter().map(|port| port.settings.max_hosts).collect();
    assert_eq!(hosts, [5, 5, 6]);
}
