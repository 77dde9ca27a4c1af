//! Behaviour of the learning switch, one statement a test, on both versions.

use std::time::Duration;

use crate::lab::{A, B, C, Lab, Packet, VERSIONS, batch, port_desc, tagged, udp, udp_in_vlan};
use bellrock_api::openflow::{Out, PortConfig, PortState};
use bellrock_api::{
    ErrorCode, Handler, MacAddr, PacketIn, PacketInView, Port, PortReason, PortStatus, Verdict,
    Version, Xid,
};
use bellrock_apps::{LearningSettings, MatchKind};
use bellrock_tables::Budget;

const NONE: [&str; 0] = [];
const UDP_LEN: usize = 14 + 20 + 8 + 200;

/// Time after which a flooded frame that comes in by another port is no copy.
const COPY_TIME: Duration = Duration::from_secs(1);

fn settings() -> LearningSettings {
    LearningSettings::default()
}

/// Runs a test on both versions.
fn on_both(test: impl Fn(Lab)) {
    on_both_with(settings(), test);
}

fn on_both_with(settings: LearningSettings, test: impl Fn(Lab)) {
    for version in VERSIONS {
        test(Lab::new(version, settings));
    }
}

/// The flow from A at port 1 to B at port 2.
fn flow_a_to_b(end: &str) -> String {
    format!("flow in_port=1,eth_dst={B},eth_src={A},vlan_vid=0x0 to 2{end} {LIMITS}")
}
const LIMITS: &str = "priority 100 idle 60 hard 0";

fn removal(mac: MacAddr, port: u32) -> [String; 2] {
    [
        format!("remove eth_dst={mac} to {port}"),
        format!("remove in_port={port},eth_src={mac} to ANY"),
    ]
}

#[test]
fn an_unknown_destination_is_flooded_and_the_source_learnt() {
    on_both(|mut lab| {
        assert_eq!(lab.see(1, A, B), [format!("packet {UDP_LEN} bytes from 1 to FLOOD")]);
        let hosts = lab.hosts();
        assert_eq!((hosts.len(), hosts[0].mac, hosts[0].port), (1, A, Port(1)));
        assert_eq!((lab.counter("floods"), lab.counter("flow_mods")), (1, 0));
    });
}

#[test]
fn a_known_destination_gets_a_flow_and_a_packet_that_is_not_buffered_follows_it() {
    on_both(|mut lab| {
        lab.see(2, B, A);
        let sent = lab.see(1, A, B);
        assert_eq!(sent, [flow_a_to_b(""), format!("packet {UDP_LEN} bytes from 1 to 2")]);
        assert_eq!((lab.counter("flow_mods"), lab.counter("packet_outs")), (1, 1));
    });
}

#[test]
fn a_buffered_packet_goes_with_the_flow_or_out_of_its_buffer() {
    on_both(|mut lab| {
        let sent = lab.packet_in(&Packet::new(2, udp(B, A)).buffered(6));
        assert_eq!(sent, ["packet buffer 6 from 2 to FLOOD"]);
        let sent = lab.packet_in(&Packet::new(1, udp(A, B)).buffered(7));
        assert_eq!(sent, [flow_a_to_b(" buffer 7")]);
        assert_eq!((lab.counter("flow_mods"), lab.counter("packet_outs")), (1, 0));
    });
}

#[test]
fn settings_are_in_the_flows() {
    let set = LearningSettings { idle_timeout_s: 7, hard_timeout_s: 2, priority: 9, ..settings() };
    on_both_with(set, |mut lab| {
        lab.see(2, B, A);
        assert!(lab.see(1, A, B)[0].ends_with("to 2 priority 9 idle 7 hard 2"));
    });
}

#[test]
fn a_source_that_is_a_group_or_zero_is_dropped_and_counted() {
    on_both(|mut lab| {
        for (n, src) in [MacAddr::ZERO, MacAddr::BROADCAST, MacAddr([1, 0, 0x5e, 0, 0, 1])]
            .into_iter()
            .enumerate()
        {
            assert_eq!(lab.see(1, src, B), NONE);
            let buffered = Packet::new(1, udp(src, B)).buffered(5);
            assert_eq!(lab.packet_in(&buffered), ["packet buffer 5 from 1 to nowhere"]);
            assert_eq!(lab.counter("bad_source"), 2 * (n as u64 + 1));
        }
        assert!(lab.hosts().is_empty());
    });
}

#[test]
fn a_packet_that_ends_in_its_ethernet_header_is_dropped_and_counted() {
    on_both(|mut lab| {
        let whole = udp_in_vlan(A, B, 7, 0);
        for len in 0..18 {
            let cut = Packet::new(1, whole[..len].to_vec());
            assert_eq!(lab.packet_in(&cut), NONE, "{len}");
        }
        assert_eq!(lab.counter("malformed"), 18);
        assert!(lab.hosts().is_empty());
        assert_eq!(lab.packet_in(&Packet::new(1, whole[..18].to_vec())).len(), 1);
    });
}

#[test]
fn a_group_destination_is_flooded() {
    on_both(|mut lab| {
        for dst in [MacAddr::BROADCAST, MacAddr([0x33, 0x33, 0, 0, 0, 1])] {
            assert_eq!(lab.see(1, A, dst), [format!("packet {UDP_LEN} bytes from 1 to FLOOD")]);
        }
        assert_eq!(lab.counter("floods"), 2);
    });
}

#[test]
fn lldp_and_link_local_destinations_are_not_forwarded_but_their_sources_learnt() {
    on_both(|mut lab| {
        for last in 0..16 {
            assert_eq!(lab.see(1, A, MacAddr([1, 0x80, 0xc2, 0, 0, last])), NONE);
        }
        let lldp_to = |dst: MacAddr| {
            let mut frame = udp(A, dst);
            frame[12..14].copy_from_slice(&[0x88, 0xcc]);
            frame
        };
        assert_eq!(lab.packet_in(&Packet::new(1, lldp_to(MacAddr::BROADCAST))), NONE);
        let buffered = Packet::new(1, lldp_to(B)).buffered(3);
        assert_eq!(lab.packet_in(&buffered), ["packet buffer 3 from 1 to nowhere"]);
        assert_eq!(lab.counter("link_local"), 18);
        assert_eq!(lab.hosts().len(), 1);
        // The next address is an ordinary group address.
        assert_eq!(lab.see(1, A, MacAddr([1, 0x80, 0xc2, 0, 0, 0x10])).len(), 1);
    });
}

#[test]
fn a_packet_is_not_sent_back_to_where_it_came_from() {
    on_both(|mut lab| {
        lab.see(1, B, A);
        assert_eq!(lab.see(1, A, B), NONE);
        let buffered = Packet::new(1, udp(A, B)).buffered(4);
        assert_eq!(lab.packet_in(&buffered), ["packet buffer 4 from 1 to nowhere"]);
        assert_eq!(lab.counter("same_port"), 2);
    });
}

#[test]
fn a_truncated_packet_that_is_not_buffered_is_never_sent_on() {
    on_both(|mut lab| {
        let cut = |src, dst| Packet::new(if src == A { 1 } else { 2 }, udp(src, dst)).cut_to(60);
        assert_eq!(lab.packet_in(&cut(B, A)), NONE);
        // The flow needs only the addresses.
        assert_eq!(lab.packet_in(&cut(A, B)), [flow_a_to_b("")]);
        assert_eq!(lab.packet_in(&cut(A, MacAddr::BROADCAST)), NONE);
        assert_eq!(lab.counter("truncated"), 3);
        assert_eq!((lab.counter("floods"), lab.counter("packet_outs")), (0, 0));
    });
}

#[test]
fn hosts_of_different_vlans_are_different_and_a_priority_tag_is_no_vlan() {
    on_both(|mut lab| {
        lab.packet_in(&Packet::new(2, udp_in_vlan(B, A, 7, 0)));
        lab.packet_in(&Packet::new(3, udp_in_vlan(B, A, 8, 0)));
        lab.packet_in(&Packet::new(4, udp_in_vlan(B, A, 0, 5)));
        let vlans: Vec<_> = lab.hosts().iter().map(|host| (host.vlan, host.port.0)).collect();
        assert_eq!(vlans, [(None, 4), (Some(7), 2), (Some(8), 3)]);
        for (frame, vlan, port) in [
            (udp_in_vlan(A, B, 7, 0), "0x1007", 2),
            (udp_in_vlan(A, B, 8, 6), "0x1008", 3),
            (udp_in_vlan(A, B, 0, 6), "0x1000", 4),
            (tagged(udp(A, B), 0x88a8, 8), "0x1008", 3),
            (udp(A, B), "0x0", 4),
        ] {
            let matching = format!("in_port=1,eth_dst={B},eth_src={A},vlan_vid={vlan}");
            let sent = lab.packet_in(&Packet::new(1, frame));
            assert_eq!(sent[0], format!("flow {matching} to {port} {LIMITS}"));
        }
    });
}

#[test]
fn a_host_that_moves_takes_its_flows_with_it() {
    on_both(|mut lab| {
        lab.see(1, A, B);
        lab.see(2, B, A);
        lab.see(1, A, B);
        lab.now += COPY_TIME;
        let [to, from] = removal(A, 1);
        let sent = lab.see(3, A, B);
        assert_eq!(sent[..2], [to, from]);
        assert!(sent[2].starts_with("flow in_port=3,"), "{sent:?}");
        assert_eq!((lab.counter("moves"), lab.counter("flaps")), (1, 0));
        assert_eq!(lab.hosts()[0].port, Port(3));
        // Packets for it now go to its new port.
        assert!(lab.see(2, B, A)[0].contains("to 3"));
    });
}

#[test]
fn a_move_in_a_vlan_removes_flows_of_that_vlan_only() {
    on_both(|mut lab| {
        let frame = |src, dst| udp_in_vlan(src, dst, 7, 0);
        lab.packet_in(&Packet::new(2, frame(B, A)));
        lab.packet_in(&Packet::new(1, frame(A, B)));
        let sent = lab.packet_in(&Packet::new(3, frame(A, B)));
        assert_eq!(sent[0], format!("remove eth_dst={A},vlan_vid=0x1007 to 1"));
        assert_eq!(sent[1], format!("remove in_port=1,eth_src={A},vlan_vid=0x1007 to ANY"));
    });
}

#[test]
fn a_host_without_flows_moves_without_a_message_about_it() {
    on_both(|mut lab| {
        lab.see(1, A, B);
        lab.now += COPY_TIME;
        assert_eq!(lab.see(3, A, B), [format!("packet {UDP_LEN} bytes from 3 to FLOOD")]);
        assert_eq!(lab.counter("moves"), 1);
    });
}

#[test]
fn an_address_that_moves_to_and_fro_is_reported_and_gets_no_flows_until_it_is_calm() {
    on_both(|mut lab| {
        lab.see(2, B, A);
        for port in [1, 3, 1, 3, 1] {
            lab.see(port, A, B);
        }
        assert_eq!((lab.counter("moves"), lab.counter("flaps")), (4, 1));
        assert_eq!(lab.hosts().iter().map(|host| host.flapping).collect::<Vec<_>>(), [true, false]);
        // Packets from it and to it still use its last port.
        assert_eq!(lab.see(3, A, B), [format!("packet {UDP_LEN} bytes from 3 to 2")]);
        assert_eq!(lab.see(2, B, A), [format!("packet {UDP_LEN} bytes from 2 to 3")]);
        assert_eq!(lab.counter("flaps"), 1, "one loop is reported once");
        assert_eq!(lab.wait(10), NONE);
        assert!(lab.see(3, A, B)[0].starts_with("flow "));
        assert!(!lab.hosts()[0].flapping);
    });
}

#[test]
fn a_port_that_goes_down_takes_its_hosts_and_flows_with_it() {
    let ways = [
        (PortReason::Delete, PortConfig::empty(), PortState::empty()),
        (PortReason::Modify, PortConfig::empty(), PortState::LINK_DOWN),
        (PortReason::Modify, PortConfig::PORT_DOWN, PortState::empty()),
    ];
    for (reason, config, state) in ways {
        on_both(|mut lab| {
            lab.see(1, A, C);
            lab.see(1, B, C);
            lab.see(2, C, A);
            let status = PortStatus { reason, desc: port_desc(1, config, state) };
            lab.with(|handler, switch| handler.port_status(switch, &status)).unwrap();
            assert_eq!(lab.sent(), ["remove any to 1", "remove in_port=1 to ANY"]);
            assert_eq!(lab.hosts().iter().map(|host| host.mac).collect::<Vec<_>>(), [C]);
            // To another port: it is new there.
            assert!(lab.see(3, A, C)[0].starts_with("flow in_port=3,"));
            assert_eq!(lab.counter("moves"), 0);
        });
    }
}

#[test]
fn a_port_that_comes_up_or_changes_otherwise_changes_nothing() {
    on_both(|mut lab| {
        lab.see(1, A, B);
        assert_eq!(lab.port_status(PortReason::Add, 1, PortState::empty()), NONE);
        assert_eq!(lab.port_status(PortReason::Modify, 1, PortState::empty()), NONE);
        assert_eq!(lab.hosts().len(), 1);
    });
}

#[test]
fn a_full_flow_table_leads_to_packet_outs_with_back_off() {
    on_both(|mut lab| {
        lab.see(2, B, A);
        let by_packet_out = [format!("packet {UDP_LEN} bytes from 1 to 2")];
        for pause in [1, 2, 4] {
            lab.refuse(ErrorCode::FlowModTableFull);
            assert_eq!(lab.see(1, A, B), by_packet_out);
            // The packet's buffer is valid.
            let buffered = lab.packet_in(&Packet::new(1, udp(A, B)).buffered(7));
            assert_eq!(buffered, ["packet buffer 7 from 1 to 2"]);
            lab.now += Duration::from_secs(pause) - Duration::from_millis(1);
            assert_eq!(lab.see(1, A, B), by_packet_out);
            lab.now += Duration::from_millis(1);
            assert_eq!(lab.see(1, A, B)[0], flow_a_to_b(""));
        }
        assert_eq!(lab.counter("table_full"), 3);
    });
}

#[test]
fn an_unknown_buffer_leads_to_packet_outs_without_buffers() {
    for code in [ErrorCode::RequestBufferUnknown, ErrorCode::RequestBufferEmpty] {
        on_both(|mut lab| {
            lab.see(2, B, A);
            lab.refuse(code);
            // The whole packet came, so its buffer is not needed.
            let mut whole = Packet::new(1, udp(A, B));
            whole.buffer_id = Some(7);
            assert_eq!(lab.packet_in(&whole), [format!("packet {UDP_LEN} bytes from 1 to 2")]);
            // Only the switch has this packet in full.
            let cut = Packet::new(1, udp(A, B)).buffered(8);
            assert_eq!(lab.packet_in(&cut), ["packet buffer 8 from 1 to 2"]);
            // A buffer that may hold another packet by now is not freed.
            assert_eq!(lab.packet_in(&Packet::new(1, udp(A, A)).buffered(9)), NONE);
            lab.wait(1);
            assert_eq!(lab.packet_in(&whole), [flow_a_to_b(" buffer 7")]);
            assert_eq!(lab.counter("buffer_unknown"), 1);
        });
    }
}

#[test]
fn other_errors_are_counted() {
    on_both(|mut lab| {
        lab.refuse(ErrorCode::ActionBadOutPort);
        assert_eq!(lab.counter("other_errors"), 1);
        lab.see(2, B, A);
        assert!(lab.see(1, A, B)[0].starts_with("flow "));
    });
}

#[test]
fn a_full_table_forgets_an_old_host_for_a_new_one() {
    let small = LearningSettings { max_entries: 8, max_macs_per_port: 0, ..settings() };
    on_both_with(small, |mut lab| {
        for n in 0..20 {
            lab.see(1, MacAddr([2, 0, 0, 0, 1, n]), B);
            lab.now += Duration::from_secs(1);
        }
        assert_eq!((lab.hosts().len(), lab.counter("evicted")), (8, 12));
        // A forgotten host loses its flows.
        lab.see(2, B, A);
        lab.see(1, A, B);
        lab.now += Duration::from_secs(30);
        let sent: Vec<_> = (100..120)
            .flat_map(|n| lab.see(3, MacAddr([2, 0, 0, 0, 1, n]), MacAddr::BROADCAST))
            .collect();
        for line in removal(A, 1).into_iter().chain(removal(B, 2)) {
            assert!(sent.contains(&line), "{line}");
        }
    });
}

#[test]
fn a_port_has_no_more_hosts_than_it_may_and_forwards_for_others_all_the_same() {
    let small = LearningSettings { max_macs_per_port: 2, ..settings() };
    on_both_with(small, |mut lab| {
        let flooded = [format!("packet {UDP_LEN} bytes from 1 to FLOOD")];
        for n in 1..=5 {
            assert_eq!(lab.see(1, MacAddr([2, 0, 0, 0, 1, n]), C), flooded);
        }
        assert_eq!((lab.hosts().len(), lab.counter("over_port_limit")), (2, 3));
        // Other ports have their own limit.
        lab.see(2, B, A);
        assert_eq!(lab.hosts().len(), 3);
        // No flow from an unknown host: it would hide the host's port from the controller.
        assert_eq!(lab.see(1, A, B), [format!("packet {UDP_LEN} bytes from 1 to 2")]);
        // A host that comes from another port is forgotten.
        lab.now += COPY_TIME;
        assert_eq!(lab.see(1, B, A).len(), 1);
        assert_eq!((lab.hosts().len(), lab.counter("moves")), (2, 0));
        // The limit has space again when the port's hosts are forgotten.
        lab.port_status(PortReason::Delete, 1, PortState::empty());
        lab.see(1, A, B);
        assert_eq!(lab.hosts().len(), 1);
    });
}

#[test]
fn without_memory_nothing_is_learnt_and_all_is_flooded() {
    for version in VERSIONS {
        let mut lab = Lab::with_budget(version, settings(), &Budget::new(0));
        lab.see(2, B, A);
        assert_eq!(lab.see(1, A, B), [format!("packet {UDP_LEN} bytes from 1 to FLOOD")]);
        assert_eq!((lab.counter("no_memory"), lab.hosts().len()), (2, 0));
    }
}

#[test]
fn a_host_that_is_not_seen_is_forgotten_with_its_flows() {
    let short = LearningSettings { max_age_s: 100, ..settings() };
    on_both_with(short, |mut lab| {
        lab.see(2, B, A);
        lab.see(1, A, B);
        lab.see(4, C, MacAddr::BROADCAST);
        assert_eq!(lab.wait(100), NONE);
        assert_eq!(lab.hosts().len(), 3);
        let sent = lab.wait(60);
        for line in removal(A, 1).into_iter().chain(removal(B, 2)) {
            assert!(sent.contains(&line), "{line}");
        }
        assert_eq!(sent.len(), 4, "C had no flows: {sent:?}");
        assert_eq!((lab.hosts().len(), lab.counter("aged_out")), (0, 3));
    });
}

#[test]
fn an_old_entry_is_not_used_even_before_it_is_swept() {
    let short = LearningSettings { max_age_s: 100, ..settings() };
    on_both_with(short, |mut lab| {
        lab.see(2, B, A);
        lab.see(1, A, B);
        lab.now += Duration::from_secs(101);
        let [to, from] = removal(B, 2);
        let flooded = format!("packet {UDP_LEN} bytes from 1 to FLOOD");
        assert_eq!(lab.see(1, A, B), [to, from, flooded]);
        assert_eq!(lab.counter("aged_out"), 1);
        assert_eq!(lab.hosts().iter().map(|host| host.mac).collect::<Vec<_>>(), [A]);
    });
}

#[test]
fn no_second_forgets_more_hosts_with_flows_than_fit_a_send_buffer() {
    let short = LearningSettings { max_age_s: 10, ..settings() };
    on_both_with(short, |mut lab| {
        lab.see(2, B, A);
        let hosts = 10_000u32;
        for n in 0..hosts {
            let [_, _, c, d] = n.to_be_bytes();
            assert_eq!(lab.see(1, MacAddr([2, 1, 0, 0, c, d]), B).len(), 2);
        }
        lab.now += Duration::from_secs(11);
        let mut gone = 0;
        // A table that shrinks meanwhile needs more than one sweep.
        for _ in 0..1_000 {
            let sent = lab.wait(1);
            assert!(sent.len() <= 2 * (64 + 4), "{}", sent.len());
            gone += sent.len();
        }
        assert_eq!(gone, 2 * (hosts as usize + 1));
        assert!(lab.hosts().is_empty());
    });
}

#[test]
fn hosts_tell_their_age() {
    on_both(|mut lab| {
        lab.see(1, A, B);
        lab.wait(30);
        lab.see(2, B, C);
        lab.wait(12);
        let ages: Vec<_> = lab.hosts().iter().map(|host| host.age.as_secs()).collect();
        assert_eq!(ages, [42, 12]);
        // A flow to a host does not refresh the host.
        lab.see(2, B, A);
        assert_eq!(lab.hosts()[0].age, Duration::from_secs(42));
    });
}

#[test]
fn the_switchs_own_port_is_learnt_and_ports_that_are_none_are_not() {
    on_both(|mut lab| {
        lab.see(Port::LOCAL.0, A, B);
        assert_eq!(lab.hosts()[0].port, Port::LOCAL);
        let sent = lab.see(Port::CONTROLLER.0, B, A);
        assert_eq!(sent, [format!("packet {UDP_LEN} bytes from CONTROLLER to LOCAL")]);
        assert_eq!((lab.hosts().len(), lab.counter("bad_port")), (1, 1));
    });
}

#[test]
fn every_packet_is_consumed() {
    on_both(|mut lab| {
        for dst in [A, B, MacAddr::BROADCAST, MacAddr([1, 0x80, 0xc2, 0, 0, 0])] {
            let packet = Packet::new(1, udp(A, dst));
            let message = packet.message(lab.info.version);
            let packet = PacketIn::new(PacketInView::of_any_form(&message).unwrap());
            let verdict = lab.with(|handler, switch| handler.packet_in(switch, &packet));
            assert_eq!(verdict, Ok(Verdict::Consume));
        }
    });
}

#[test]
fn when_a_removal_is_lost_all_flows_go_at_the_next_second() {
    on_both(|mut lab| {
        lab.see(2, B, A);
        lab.see(1, A, B);
        // Space for the removals, but not for the messages after them.
        let mut small = Out::with_capacity(200);
        std::mem::swap(&mut lab.out, &mut small);
        let packet = Packet::new(3, udp(A, B));
        let message = packet.message(lab.info.version);
        let mut batch = batch(lab.info.version, &message);
        lab.with(|handler, switch| handler.packet_ins(switch, &mut batch));
        assert_eq!((batch.errors().0, lab.out.len()), (1, 0));
        std::mem::swap(&mut lab.out, &mut small);
        assert_eq!(lab.wait(1), ["remove any to ANY"]);
        assert_eq!(lab.wait(5), NONE);
    });
}

#[test]
fn when_a_switch_does_not_answer_a_removal_all_flows_are_removed_again_with_back_off() {
    on_both(|mut lab| {
        let unanswered = |lab: &mut Lab| {
            lab.with(|handler, switch| handler.unanswered(switch, Xid(1))).unwrap();
        };
        unanswered(&mut lab);
        assert_eq!(lab.wait(1), ["remove any to ANY"]);
        assert_eq!(lab.wait(5), NONE);
        unanswered(&mut lab);
        assert_eq!(lab.wait(1), NONE);
        assert_eq!(lab.wait(1), ["remove any to ANY"]);
        assert_eq!(lab.wait(5), NONE);
    });
}

#[test]
fn exact_flows_are_one_for_each_connection() {
    let exact = LearningSettings { matching: MatchKind::Exact, ..settings() };
    on_both_with(exact, |mut lab| {
        lab.see(2, B, A);
        let sent = lab.see(1, A, B);
        let link = format!("in_port=1,eth_dst={B},eth_src={A},eth_type=0x0800,vlan_vid=0x0");
        let end = "ip_proto=17,ipv4_src=10.0.0.1,ipv4_dst=10.0.0.2,udp_src=1000,udp_dst=2000";
        // On 1.0 a flow without wildcards would be above all priorities.
        let flows = ["", "ip_dscp=0,"].map(|dscp| format!("flow {link},{dscp}{end} to 2 {LIMITS}"));
        assert!(flows.contains(&sent[0]), "{sent:?}");
    });
}

/// A learning switch of which the last new host has started a resize of the table, the budget of
/// that table, and the number of hosts.
fn resized_with_the_last_host(version: Version) -> (Lab, Budget, u32) {
    let budget = Budget::unlimited();
    let mut lab = Lab::with_budget(version, settings(), &budget);
    let mut hosts = 0;
    let mut before;
    loop {
        before = budget.used();
        lab.see(1, host(hosts), MacAddr::BROADCAST);
        hosts += 1;
        if hosts > 1_000 && budget.used() > before {
            return (lab, budget, hosts);
        }
    }
}

fn host(n: u32) -> MacAddr {
    let [a, b, c, d] = n.to_be_bytes();
    MacAddr([2, 0, a, b, c, d])
}

#[test]
fn packets_of_known_hosts_end_a_resize_of_their_table() {
    for version in VERSIONS {
        let (mut lab, budget, hosts) = resized_with_the_last_host(version);
        let both = budget.used();
        for n in 0..hosts {
            lab.batch(&[Packet::new(1, udp(host(n), MacAddr::BROADCAST))]);
        }
        assert!(budget.used() < both, "the old lines are still there: {both} bytes");
        assert_eq!(lab.hosts().len(), hosts as usize);
    }
}

#[test]
fn a_resize_of_the_table_ends_without_any_packet() {
    for version in VERSIONS {
        let (mut lab, budget, hosts) = resized_with_the_last_host(version);
        let both = budget.used();
        lab.wait(6);
        assert!(budget.used() < both, "the old lines are still there: {both} bytes");
        assert_eq!(lab.hosts().len(), hosts as usize);
    }
}
