//! What is read but not carried out yet is named.

use super::{intent, port, rule, stack, switch, vlan};

fn unsupported(text: &str) -> Vec<String> {
    intent(text).unsupported().iter().map(ToString::to_string).collect()
}

#[test]
fn plain_networks_need_nothing_that_is_not_built() {
    for text in [
        switch("arp_neighbor_timeout: 20\n    stack: {priority: 1}"),
        port("native_vlan: office, max_hosts: 5, loop_protect: true"),
        port("native_vlan: office, lacp: 0, dot1x: false, dot1x_mab: true"),
        rule("actions: {mirror: two, meter: m}"),
        vlan("acls_in: []"),
    ] {
        assert_eq!(unsupported(&text), [""; 0], "{text}");
    }
}

#[test]
fn each_part_that_is_not_built_is_named_with_its_keys() {
    for (text, shown) in [
        (
            port("native_vlan: office, lacp: 1, lacp_active: true"),
            &["`lacp` is read, but LACP", "`lacp_active`"][..],
        ),
        (port("native_vlan: office, dot1x: true"), &["802.1X is not built yet"][..]),
        (
            port("coprocessor: {strategy: vlan_vid}"),
            &["`coprocessor` is read", "`strategy` is read"][..],
        ),
        (vlan("faucet_vips: [10.0.0.1/24]"), &["7:5: `faucet_vips` is read, but routing"][..]),
        (rule("actions: {ct: {clear: true}}"), &["connection tracking", "`clear`"][..]),
        (rule("actions: {output: {tunnel: {dp: sw1}}}"), &["tunnels"][..]),
        (format!("routers: {{r: {{vlans: [100]}}}}\n{}", switch("")), &["`routers` is read"][..]),
    ] {
        let list = unsupported(&text);
        for shown in shown {
            assert!(list.iter().any(|it| it.contains(shown)), "no {shown} in {list:?}\n{text}");
        }
    }
    let text = stack("stack: {dp: sw2, port: 1}", "stack: {dp: sw1, port: 1}");
    assert!(unsupported(&text).iter().any(|it| it.contains("stacking is not built yet")));
}
