//! Which flows of an earlier run a learning switch adopts, and what it learns from them.

use crate::lab::{A, B, C, Lab, Packet, VERSIONS, port_desc, tagged, udp, udp_in_vlan};
use bellrock_api::openflow::{Instruction, Instructions, PortConfig, PortState};
use bellrock_api::{
    Action, Cookie, Field, FlowFlags, FlowStats, Handler, MacAddr, Match, PacketIn, PacketInView,
    Port, ToSwitch, Version,
};
use bellrock_apps::{LearningSettings, MatchKind};
use bellrock_tables::Budget;

fn l2() -> LearningSettings {
    LearningSettings::default()
}

fn exact() -> LearningSettings {
    LearningSettings { matching: MatchKind::Exact, ..l2() }
}

/// A flow from A at one port to B at another.
fn between(from: u32, to: u32) -> FlowStats<'static> {
    let matching = Match::any().in_port(Port(from)).eth_src(A).eth_dst(B).untagged();
    flow(&l2(), leak(matching), leak([Action::output(Port(to))]))
}

/// The flow for a packet from port 1 to a host at port 2, as its switch reports it.
fn left(version: Version, settings: LearningSettings, frame: &[u8]) -> FlowStats<'static> {
    let mut lab = Lab::new(version, settings);
    let back = [&frame[6..12], &frame[..6], &frame[12..]].concat();
    lab.packet_in(&Packet::new(2, back));
    let message = Packet::new(1, frame.to_vec()).message(version);
    let packet = PacketIn::new(PacketInView::of_any_form(&message).unwrap());
    lab.with(|handler, switch| handler.packet_in(switch, &packet)).unwrap();
    let sent = lab.out.as_slice();
    let sent = &sent[..usize::from(u16::from_be_bytes([sent[2], sent[3]]))];
    let ToSwitch::FlowMod(installed) = ToSwitch::decode(sent).unwrap().body else {
        panic!("no flow was installed")
    };
    flow(&settings, leak(installed.matching.to_match()), leak([Action::output(Port(2))]))
}

fn flow(
    settings: &LearningSettings,
    matching: &'static Match,
    actions: &'static [Action<'static>],
) -> FlowStats<'static> {
    FlowStats {
        table: 0,
        duration_sec: 7,
        duration_nsec: 0,
        priority: settings.priority,
        idle_timeout: settings.idle_timeout_s,
        hard_timeout: settings.hard_timeout_s,
        flags: FlowFlags::empty(),
        cookie: Cookie::of_app("learning").with(0),
        packet_count: 9,
        byte_count: 900,
        matching: matching.into(),
        instructions: Instructions::apply(actions),
    }
}

/// Leaks the few bytes of a test.
fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Returns whether a flow is adopted. No message may be sent for it.
fn adopts(lab: &mut Lab, flow: &FlowStats<'_>) -> bool {
    let adopted = lab.with(|handler, switch| handler.adopt(switch, flow)).unwrap();
    assert_eq!(lab.sent(), [""; 0]);
    adopted
}

/// The hosts and their ports.
fn hosts(lab: &Lab) -> Vec<(MacAddr, u32)> {
    lab.hosts().iter().map(|host| (host.mac, host.port.0)).collect()
}

/// Checks that a flow is refused, and nothing is learnt from it.
#[track_caller]
fn assert_refused(lab: &mut Lab, flow: &FlowStats<'_>) {
    let before = hosts(lab);
    assert!(!adopts(lab, flow), "{flow:?}");
    assert_eq!(hosts(lab), before);
}

#[test]
fn a_flow_as_it_would_be_installed_today_stays_and_tells_where_its_hosts_are() {
    let frames = [
        udp(A, B),
        udp_in_vlan(A, B, 7, 0),
        udp_in_vlan(A, B, 7, 5),
        udp_in_vlan(A, B, 0, 5),
        tagged(udp(A, B), 0x88a8, 8),
        [&B.0[..], &A.0, &[0x88, 0xb5], &[0; 46]].concat(),
    ];
    for (version, settings) in
        VERSIONS.into_iter().flat_map(|version| [(version, l2()), (version, exact())])
    {
        for frame in &frames {
            let mut lab = Lab::new(version, settings);
            assert!(adopts(&mut lab, &left(version, settings, frame)), "{version} {frame:x?}");
            assert_eq!(hosts(&lab), [(A, 1), (B, 2)]);
            // The other direction takes one flow, without a flood.
            let back = [&frame[6..12], &frame[..6], &frame[12..]].concat();
            let sent = lab.packet_in(&Packet::new(2, back).buffered(7));
            assert!(sent.len() == 1 && sent[0].starts_with("flow in_port=2,"), "{sent:?}");
        }
    }
}

#[test]
fn a_host_that_has_moved_is_found_and_the_flows_that_it_left_go() {
    for version in VERSIONS {
        let mut lab = Lab::new(version, l2());
        assert!(adopts(&mut lab, &between(1, 2)));
        let sent = lab.see(3, A, B);
        assert_eq!(sent[0], format!("remove eth_dst={A} to 1"));
        assert_eq!(sent[1], format!("remove in_port=1,eth_src={A} to ANY"));
        assert!(sent[2].starts_with("flow in_port=3,"), "{sent:?}");
        assert_eq!((lab.counter("moves"), hosts(&lab)), (1, vec![(A, 3), (B, 2)]));
    }
}

#[test]
fn a_host_that_is_not_heard_of_is_forgotten_with_what_was_taken_on() {
    for version in VERSIONS {
        let mut lab = Lab::new(version, LearningSettings { max_age_s: 100, ..l2() });
        assert!(adopts(&mut lab, &between(1, 2)));
        assert!(lab.wait(100).is_empty());
        let sent = lab.wait(60);
        assert_eq!(sent.len(), 4, "two for each host: {sent:?}");
        assert_eq!(hosts(&lab), []);
    }
}

#[test]
fn flows_of_other_settings_go() {
    for version in VERSIONS {
        for other in [
            LearningSettings { idle_timeout_s: 30, ..l2() },
            LearningSettings { hard_timeout_s: 30, ..l2() },
            LearningSettings { priority: 101, ..l2() },
            exact(),
        ] {
            for frame in [udp(A, B), udp_in_vlan(A, B, 7, 5)] {
                for (then, now) in [(l2(), other), (other, l2())] {
                    assert_refused(&mut Lab::new(version, now), &left(version, then, &frame));
                }
            }
        }
    }
}

#[test]
fn a_flow_that_contradicts_what_is_known_goes() {
    for version in VERSIONS {
        let mut lab = Lab::new(version, l2());
        lab.see(3, B, C);
        assert_refused(&mut lab, &between(1, 2));
        assert!(adopts(&mut lab, &between(1, 3)));
        assert_refused(&mut lab, &between(2, 3));
        // The same flow again changes nothing.
        assert!(adopts(&mut lab, &between(1, 3)));
        assert_eq!(hosts(&lab), [(A, 1), (B, 3)]);
    }
}

#[test]
fn a_flow_of_a_port_that_is_down_or_gone_goes() {
    for version in VERSIONS {
        let mut lab = Lab::new(version, l2());
        lab.info.ports[0] = port_desc(1, PortConfig::empty(), PortState::LINK_DOWN);
        assert_refused(&mut lab, &between(1, 2));
        assert_refused(&mut lab, &between(2, 1));
        assert_refused(&mut lab, &between(2, 5));
        assert_refused(&mut lab, &between(5, 2));
        assert!(adopts(&mut lab, &between(2, 3)));
    }
}

#[test]
fn flows_unlike_those_of_a_learning_switch_are_not_adopted() {
    let link = || Match::any().in_port(Port(1)).eth_src(A).eth_dst(B).untagged();
    let group = MacAddr([3, 0, 0, 0, 0, 1]);
    let matches = [
        Match::any(),
        Match::any().in_port(Port(1)).eth_src(A).eth_dst(B),
        Match::any().eth_src(A).eth_dst(B).untagged(),
        Match::any().in_port(Port(1)).eth_dst(B).untagged(),
        link().eth_src(group),
        link().eth_dst(MacAddr::BROADCAST),
        link().eth_src(MacAddr::ZERO),
        link().eth_src(B),
        link().in_port(Port::CONTROLLER),
        link().eth_type(0x0800),
        link().vlan_id(7).vlan_pcp(0),
        link().with_masked(Field::EthSrc, A.to_u64().into(), 0xff),
    ];
    let actions: [&'static [Action<'static>]; 6] = [
        &[],
        const { &[Action::output(Port(1))] },
        const { &[Action::output(Port::FLOOD)] },
        const { &[Action::output(Port::CONTROLLER)] },
        const { &[Action::output(Port(2)), Action::output(Port(3))] },
        const { &[Action::SetQueue(1), Action::output(Port(2))] },
    ];
    for version in VERSIONS {
        let mut lab = Lab::new(version, l2());
        for matching in &matches {
            let matching = leak(matching.clone());
            assert_refused(&mut lab, &flow(&l2(), matching, const { &[Action::output(Port(2))] }));
        }
        for actions in actions {
            assert_refused(&mut lab, &flow(&l2(), leak(link()), actions));
        }
        let two = [Instruction::GotoTable(1), Instruction::ApplyActions(actions[1].into())];
        let instructions = Instructions::of(leak(two));
        assert_refused(&mut lab, &FlowStats { instructions, ..between(1, 2) });
        assert!(adopts(&mut lab, &between(1, 2)));
    }
    let elsewhere = FlowStats { table: 1, ..between(1, 2) };
    assert_refused(&mut Lab::new(Version::V1_3, l2()), &elsewhere);
    assert!(adopts(&mut Lab::new(Version::V1_0, l2()), &elsewhere), "1.0 has no tables to choose");
}

#[test]
fn nobody_goes_for_a_flow_that_is_taken_on_and_limits_are_kept() {
    let flow = |from: u8, port: u32| {
        let src = MacAddr([2, 0, 0, 0, 1, from]);
        let matching = Match::any().in_port(Port(port)).eth_src(src).eth_dst(B).untagged();
        flow(&l2(), leak(matching), const { &[Action::output(Port(2))] })
    };
    for version in VERSIONS {
        let mut lab = Lab::new(version, LearningSettings { max_entries: 8, ..l2() });
        let adopted = (0..20).filter(|n| adopts(&mut lab, &flow(*n, 1))).count();
        assert_eq!((adopted, hosts(&lab).len(), lab.counter("evicted")), (7, 8, 0));

        let mut lab = Lab::new(version, LearningSettings { max_macs_per_port: 3, ..l2() });
        let adopted = (0..20).filter(|n| adopts(&mut lab, &flow(*n, 1))).count();
        assert_eq!((adopted, hosts(&lab).len()), (3, 4));
        assert!(adopts(&mut lab, &flow(30, 3)), "at another port");

        let mut lab = Lab::with_budget(version, l2(), &Budget::new(0));
        assert_refused(&mut lab, &flow(1, 1));
    }
}

#[test]
fn a_place_at_a_port_that_is_given_back_is_free() {
    for version in VERSIONS {
        // The other end has no place, so the place taken for the first end is released.
        let mut lab = Lab::new(version, LearningSettings { max_macs_per_port: 1, ..l2() });
        lab.see(2, C, A);
        for _ in 0..3 {
            assert_refused(&mut lab, &between(1, 2));
        }
        assert!(adopts(&mut lab, &between(1, 3)));
    }
}
