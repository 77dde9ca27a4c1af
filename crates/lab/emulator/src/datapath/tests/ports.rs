//! Ports: outputs, configuration, counters, packet_outs.

use bellrock_openflow::{PortMod, PortReason};

use super::*;

fn set(lab: &mut Lab, port: u32, config: PortConfig) -> Result<(), ErrorCode> {
    let address = lab.datapath.ports().get(port).map_or(A, |entry| entry.desc.address);
    let request = PortMod {
        port: Port(port),
        address,
        config,
        mask: config,
        advertise: PortFeatures::empty(),
    };
    let version = lab.datapath.rules();
    lab.datapath.port_mod(version, &request, &mut lab.effects)
}

#[test]
fn a_packet_goes_back_only_by_in_port() {
    let mut lab = Lab::new(V13);
    lab.apply(&[out(1), out(2)]);
    assert_eq!(lab.send(&frame()), [2]);
    lab.apply(&[Action::output(Port::IN_PORT)]);
    assert_eq!(lab.send(&frame()), [1]);
}

#[test]
fn flood_and_all_leave_the_ingress_port_out_and_in_1_3_include_local() {
    for port in [Port::FLOOD, Port::ALL] {
        let mut lab = Lab::new(V13);
        lab.apply(&[Action::output(port)]);
        assert_eq!(lab.send(&frame()), [2, 3, 4, Port::LOCAL.0]);
        let mut lab = Lab::new(V10);
        lab.apply(&[Action::output(port)]);
        assert_eq!(lab.send(&frame()), [2, 3, 4]);
    }
}

#[test]
fn in_1_0_a_port_can_be_left_out_of_floods() {
    let mut lab = Lab::new(V10);
    set(&mut lab, 3, PortConfig::NO_FLOOD).unwrap();
    lab.apply(&[Action::output(Port::FLOOD)]);
    assert_eq!(lab.send(&frame()), [2, 4]);
    lab.apply(&[Action::output(Port::ALL)]);
    assert_eq!(lab.send(&frame()), [2, 3, 4]);
    let mut lab = Lab::new(V13);
    assert_eq!(set(&mut lab, 3, PortConfig::NO_FLOOD), Err(ErrorCode::PortModBadConfig));
}

#[test]
fn a_port_that_is_down_or_without_link_neither_sends_nor_receives() {
    let mut lab = Lab::new(V13);
    lab.apply(&[Action::output(Port::ALL)]);
    set(&mut lab, 2, PortConfig::PORT_DOWN).unwrap();
    lab.datapath.link(3, false, &mut lab.effects);
    assert_eq!(lab.send(&frame()), [4, Port::LOCAL.0]);
    lab.receive(2, &frame());
    assert!(lab.left().is_empty());
    lab.receive(3, &frame());
    assert!(lab.left().is_empty());
    let counters = lab.datapath.ports().get(2).unwrap().counters;
    assert_eq!((counters.tx_dropped, counters.rx_dropped, counters.tx_packets), (1, 1, 0));
}

#[test]
fn ports_set_up_not_to_receive_or_not_to_forward_do_not() {
    let mut lab = Lab::new(V13);
    lab.apply(&[out(2), out(3)]);
    set(&mut lab, 2, PortConfig::NO_FWD).unwrap();
    assert_eq!(lab.send(&frame()), [3]);
    set(&mut lab, 1, PortConfig::NO_RECV).unwrap();
    assert!(lab.send(&frame()).is_empty());
    assert_eq!(lab.datapath.ports().get(1).unwrap().counters.rx_dropped, 1);
}

#[test]
fn in_1_0_frames_of_the_spanning_tree_are_let_in_apart_from_all_others() {
    let bridges = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0]);
    let spanning = Eth::new(A, bridges).payload(38, &[0x42, 0x42, 3]);
    for (config, tree, other) in [
        (PortConfig::NO_RECV, true, false),
        (PortConfig::NO_RECV_STP, false, true),
        (PortConfig::NO_RECV | PortConfig::NO_RECV_STP, false, false),
    ] {
        let mut lab = Lab::new(V10);
        lab.apply(&[out(2)]);
        set(&mut lab, 1, config).unwrap();
        assert_eq!(lab.send(&spanning).len() == 1, tree);
        assert_eq!(lab.send(&frame()).len() == 1, other);
    }
}

#[test]
fn a_port_can_be_silent_about_table_misses_and_not_about_actions() {
    for rules in [V10, V13] {
        let mut lab = Lab::new(rules);
        set(&mut lab, 1, PortConfig::NO_PACKET_IN).unwrap();
        lab.send(&frame());
        assert!(lab.packet_ins().is_empty());
        lab.apply(&[Action::output(Port::CONTROLLER)]);
        lab.send(&frame());
        assert_eq!(lab.packet_ins().len(), 1);
    }
}

#[test]
fn changes_of_ports_are_told_once() {
    let mut lab = Lab::new(V13);
    lab.datapath.link(2, false, &mut lab.effects);
    lab.datapath.link(2, false, &mut lab.effects);
    lab.datapath.link(9, false, &mut lab.effects);
    let [Notice::PortStatus(status)] = &lab.effects.notices[..] else { panic!("told once") };
    assert_eq!((status.reason, status.desc.port), (PortReason::Modify, Port(2)));
    assert_eq!(status.desc.state, PortState::LINK_DOWN);
    lab.effects.notices.clear();
    lab.datapath.link(2, true, &mut lab.effects);
    let [Notice::PortStatus(status)] = &lab.effects.notices[..] else { panic!("told once") };
    assert_eq!(status.desc.state, PortState::LIVE);
}

#[test]
fn port_mods_that_cannot_be_done_change_nothing() {
    let mut lab = Lab::new(V13);
    assert_eq!(set(&mut lab, 9, PortConfig::PORT_DOWN), Err(ErrorCode::PortModBadPort));
    let request = PortMod {
        port: Port(2),
        address: A,
        config: PortConfig::PORT_DOWN,
        mask: PortConfig::PORT_DOWN,
        advertise: PortFeatures::RATE_10GB_FD,
    };
    let Lab { datapath, effects, .. } = &mut lab;
    let refused = datapath.port_mod(V13, &request, effects);
    assert_eq!(refused, Err(ErrorCode::PortModBadAddress));
    let request = PortMod { address: port(Port(2)).address, ..request };
    let refused = datapath.port_mod(V13, &request, effects);
    assert_eq!(refused, Err(ErrorCode::PortModBadAdvertise));
    assert!(effects.notices.is_empty());
    let request = PortMod { advertise: PortFeatures::RATE_100MB_FD, ..request };
    assert_eq!(datapath.port_mod(V13, &request, effects), Ok(()));
    let desc = datapath.ports().get(2).unwrap().desc;
    assert_eq!(desc.advertised, PortFeatures::RATE_100MB_FD);
    assert!(!desc.is_up());
}

#[test]
fn ports_and_queues_count_what_passes() {
    let mut lab = Lab::new(V13);
    lab.apply(&[Action::SetQueue(7), out(2), out(3)]);
    lab.send(&frame());
    lab.send(&EthernetFrame::from(&[0; 13][..]));
    let len = frame().len() as u64;
    let ports = lab.datapath.ports();
    let one = ports.get(1).unwrap().counters;
    assert_eq!((one.rx_packets, one.rx_bytes, one.rx_errors), (2, len + 13, 1));
    let two = ports.get(2).unwrap();
    assert_eq!((two.counters.tx_packets, two.counters.tx_bytes), (1, len));
    let queue = two.queue(7).unwrap();
    assert_eq!((queue.tx_packets, queue.tx_bytes, queue.tx_errors), (1, len, 0));
}

#[test]
fn a_packet_of_the_controllers_leaves_as_its_actions_say() {
    let mut lab = Lab::new(V13);
    lab.packet_out(Port(2), &[Action::output(Port::FLOOD)], &frame()).unwrap();
    assert_eq!(lab.left(), [1, 3, 4, Port::LOCAL.0]);
    lab.packet_out(Port::CONTROLLER, &[out(1), Action::PushVlan(0x8100), out(2)], &frame())
        .unwrap();
    let tagged = eth().vlan(0, 0).ip(&ip().udp(1_000, 53, b"a question"));
    assert_eq!(lab.frames(), [(1, &frame()[..]), (2, &tagged[..])]);
    lab.packet_out(Port::CONTROLLER, &[], &frame()).unwrap();
    assert!(lab.left().is_empty());
}

#[test]
fn a_packet_of_the_controllers_can_be_sent_through_the_tables() {
    let mut lab = Lab::new(V13);
    let from_two = Match::any().in_port(Port(2));
    let to_four = [out(4)];
    lab.flow(0, &from_two, &[Instruction::ApplyActions(List::of(&to_four))]);
    let table = Action::output(Port::TABLE);
    lab.packet_out(Port(2), &[out(1), table, out(3)], &frame()).unwrap();
    let mut left = lab.left();
    left.sort_unstable();
    assert_eq!(left, [1, 3, 4]);
    lab.packet_out(Port(3), &[table], &frame()).unwrap();
    assert!(lab.left().is_empty());
}

#[test]
fn a_packet_out_that_cannot_be_done_sends_nothing() {
    let mut lab = Lab::new(V13);
    let refused = |lab: &mut Lab, port, actions: &[Action<'_>], data: &[u8]| {
        let refused = lab.packet_out(port, actions, data).unwrap_err();
        assert!(lab.left().is_empty());
        refused
    };
    assert_eq!(refused(&mut lab, Port(9), &[out(1)], &frame()), ErrorCode::RequestBadPort);
    assert_eq!(refused(&mut lab, Port::ANY, &[out(1)], &frame()), ErrorCode::RequestBadPort);
    assert_eq!(refused(&mut lab, Port(1), &[out(2)], b"short"), ErrorCode::RequestBadPacket);
    let bad = refused(&mut lab, Port(1), &[out(2), out(9)], &frame());
    assert_eq!(bad, ErrorCode::ActionBadOutPort);
    let mut lab = Lab::new(V10);
    lab.packet_out(Port::ANY, &[out(1)], &frame()).unwrap();
    assert_eq!(lab.left(), [1]);
}

#[test]
fn a_frame_that_is_too_long_is_dropped_by_its_port() {
    let mut lab = Lab::new(V13);
    lab.apply(&[Action::PushVlan(0x8100), out(2)]);
    let longest = crate::datapath::MAX_FRAME_BYTES;
    let long = |len: usize| eth().payload(0x1234, &vec![0; len - 14]);
    assert_eq!(lab.send(&long(longest - 4)), [2]);
    assert!(lab.send(&long(longest - 3)).is_empty());
    assert_eq!(lab.datapath.ports().get(2).unwrap().counters.tx_dropped, 1);
}

#[test]
fn one_request_does_not_fill_the_memory_with_frames() {
    let mut lab = Lab::new(V13);
    let floods = vec![Action::output(Port::ALL); crate::datapath::MAX_FRAMES / 5 + 1];
    lab.packet_out(Port::CONTROLLER, &floods, &frame()).unwrap();
    assert_eq!(lab.left().len(), crate::datapath::MAX_FRAMES);
    let dropped: u64 = lab.datapath.ports().iter().map(|port| port.counters.tx_dropped).sum();
    assert_eq!(dropped as usize, floods.len() * 5 - crate::datapath::MAX_FRAMES);
    let asks = vec![Action::output(Port::CONTROLLER); 20_000];
    lab.packet_out(Port(1), &asks, &frame()).unwrap();
    assert_eq!(lab.packet_ins().len(), 16_384);
}
