//! Actions in both versions: the bytes, or the name of what a version does not support.

#![allow(clippy::unwrap_used, reason = "a test fails so")]

use bellrock_openflow::{Bytes, EncodeError, List, Out, PacketOut, ToSwitch, Version};

use super::*;
use crate::Match;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);
const IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);

/// Returns the actions' bytes in hexadecimal, or the error that names what is unsupported.
fn written(version: Version, actions: &[Action<'_>]) -> Result<String, EncodeError> {
    let mut out = Out::with_capacity(4096);
    let packet = PacketOut {
        buffer_id: Some(1),
        in_port: Port(1),
        actions: List::of(actions),
        data: Bytes(&[]),
    };
    ToSwitch::PacketOut(packet).encode(version, 1, &mut out)?;
    let at = if version == Version::V1_0 { 16 } else { 24 };
    Ok(out.as_slice()[at..].iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Lists for each typed action the bytes in 1.0 (1.0 §5.2.4) and in 1.3 (1.3.5 §7.2.5). `!` marks
/// what 1.0 does not have, by name.
#[test]
fn an_action_is_written_as_its_version_wants_it_or_refused_by_its_name() {
    let ip6 = Ipv6Addr::LOCALHOST;
    let table: &[(Actions, &str, &str)] = &[
        (
            Actions::new().set_eth_dst(MAC),
            "00050010020000000007000000000000",
            "001900108000060602000000 0007 0000",
        ),
        (
            Actions::new().set_eth_src(MAC),
            "00040010020000000007000000000000",
            "00190010800008060200000000070000",
        ),
        (Actions::new().set_vlan_vid(7), "0001000800070000", "0019001080000c021007000000000000"),
        (Actions::new().set_vlan_pcp(5), "0002000805000000", "0019001080000e010500000000000000"),
        (Actions::new().push_vlan(0x8100), "!push_vlan (use tag)", "0011000881000000"),
        (Actions::new().pop_vlan(), "0003000800000000", "0012000800000000"),
        (
            Actions::new().tag(7).output(Port(3)),
            "00010008000700000000000800030000",
            "0011000881000000 0019001080000c021007000000000000 00000010000000030000000000000000",
        ),
        (Actions::new().untag(), "0003000800000000", "0012000800000000"),
        (Actions::new().set_ipv4_src(IP), "000600080a000007", "00190010800016040a00000700000000"),
        (Actions::new().set_ipv4_dst(IP), "000700080a000007", "00190010800018040a00000700000000"),
        (
            Actions::new().set_ipv6_src(ip6),
            "!set_ipv6_src",
            "001900188000341000000000000000000000000000000001",
        ),
        (
            Actions::new().set_ipv6_dst(ip6),
            "!set_ipv6_dst",
            "001900188000361000000000000000000000000000000001",
        ),
        (Actions::new().set_ipv6_flabel(9), "!set_ipv6_flabel", "00190010800038040000000900000000"),
        (Actions::new().set_ip_dscp(46), "00080008b8000000", "00190010800010012e00000000000000"),
        (Actions::new().set_ip_ecn(1), "!set_ip_ecn", "00190010800012010100000000000000"),
        (Actions::new().set_ip_ttl(9), "!set_ip_ttl and dec_ttl", "0017000809000000"),
        (Actions::new().dec_ttl(), "!set_ip_ttl and dec_ttl", "0018000800000000"),
        (Actions::new().set_tcp_src(80), "0009000800500000", "001900108000 1a02 0050000000000000"),
        (Actions::new().set_tcp_dst(80), "000a000800500000", "001900108000 1c02 0050000000000000"),
        (Actions::new().set_udp_src(80), "0009000800500000", "001900108000 1e02 0050000000000000"),
        (Actions::new().set_udp_dst(80), "000a000800500000", "001900108000 2002 0050000000000000"),
        (Actions::new().set_sctp_src(80), "!set_sctp_src", "001900108000 2202 0050000000000000"),
        (Actions::new().set_sctp_dst(80), "!set_sctp_dst", "001900108000 2402 0050000000000000"),
        (Actions::new().set_arp_op(2), "!set_arp_op", "001900108000 2a02 0002000000000000"),
        (Actions::new().set_arp_spa(IP), "!set_arp_spa", "001900108000 2c04 0a00000700000000"),
        (Actions::new().set_arp_tpa(IP), "!set_arp_tpa", "001900108000 2e04 0a00000700000000"),
        (Actions::new().set_arp_sha(MAC), "!set_arp_sha", "001900108000 3006 0200000000070000"),
        (Actions::new().set_arp_tha(MAC), "!set_arp_tha", "001900108000 3206 0200000000070000"),
        (Actions::new().push_mpls(0x8847), "!MPLS actions", "0013000888470000"),
        (Actions::new().pop_mpls(0x0800), "!MPLS actions", "0014000808000000"),
        (Actions::new().set_mpls_label(9), "!set_mpls_label", "001900108000 4404 0000000900000000"),
        (Actions::new().set_tunnel_id(9), "!set_tunnel_id", "001900108000 4c08 0000000000000009"),
        (Actions::new().set_queue(3), "!set_queue (use enqueue)", "0015000800000003"),
        (Actions::new().group(3), "!groups", "0016000800000003"),
        (Actions::new().output(Port(3)), "0000000800030000", "00000010000000030000000000000000"),
    ];
    for (actions, v1_0, v1_3) in table {
        let v1_3 = v1_3.replace(' ', "");
        assert_eq!(written(Version::V1_3, actions), Ok(v1_3), "{actions:?}");
        let expected = match v1_0.strip_prefix('!') {
            Some(what) => {
                // The name is a constant of the codec: compare the texts.
                let text = format!("OpenFlow 1.0 cannot express {what}");
                assert_eq!(written(Version::V1_0, actions).unwrap_err().to_string(), text);
                continue;
            }
            None => Ok((*v1_0).to_owned()),
        };
        assert_eq!(written(Version::V1_0, actions), expected, "{actions:?}");
    }
    let enqueue = Actions::new().enqueue(Port(2), 3);
    assert_eq!(written(Version::V1_0, &enqueue), Ok("000b0010000200000000000000000003".to_owned()));
    let refused = written(Version::V1_3, &enqueue).unwrap_err().to_string();
    assert_eq!(refused, "OpenFlow 1.3 cannot express enqueue (use set_queue and output)");
}

#[test]
fn a_value_that_does_not_fit_its_field_is_refused_and_not_cut() {
    for (actions, what) in [
        (Actions::new().set_vlan_vid(4096), "vlan_vid"),
        (Actions::new().set_vlan_vid(u16::MAX), "vlan_vid"),
        (Actions::new().tag(4096), "vlan_vid"),
        (Actions::new().set_vlan_pcp(8), "vlan_pcp"),
        (Actions::new().set_ip_dscp(64), "ip_dscp"),
        (Actions::new().set_mpls_label(1 << 20), "mpls_label"),
    ] {
        for version in Version::ALL {
            assert_eq!(written(version, &actions), Err(EncodeError::Range { what }));
        }
    }
    assert!(written(Version::V1_3, &Actions::new().set_vlan_vid(4095)).is_ok());
}

#[test]
fn a_flow_has_the_same_actions_in_the_order_in_which_they_are_named() {
    let rewritten = Flow::new(Match::any().eth_type(0x0800).ipv4_dst(IP))
        .set_eth_dst(MAC)
        .set_ipv4_dst(IP)
        .output(Port(3));
    let actions = Actions::new().set_eth_dst(MAC).set_ipv4_dst(IP).output(Port(3));
    assert_eq!(rewritten.applied(), &*actions);
    assert_eq!(
        rewritten.to_string(),
        "eth_type=0x0800,ipv4_dst=10.0.0.7 priority=2048 set_field:02:00:00:00:00:07->eth_dst \
         set_field:10.0.0.7->ipv4_dst output:3"
    );
}

#[test]
fn a_second_tag_or_a_provider_s_is_not_taken_for_what_1_0_has() {
    let push = |eth_type| Actions::new().push_vlan(eth_type);
    for actions in [
        push(0x8100).output(Port(3)),
        push(0x8100).set_vlan_pcp(5),
        push(0x88a8).set_vlan_vid(7),
        push(0x8100).tag(7),
    ] {
        let refused = written(Version::V1_0, &actions).unwrap_err().to_string();
        assert_eq!(refused, "OpenFlow 1.0 cannot express push_vlan (use tag)", "{actions:?}");
    }
}
