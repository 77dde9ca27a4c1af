//! Packets that wait for a controller's decision.

use super::*;

fn to_controller(max_len: u16) -> [Action<'static>; 1] {
    [Action::Output { port: Port::CONTROLLER, max_len }]
}

#[test]
fn a_packet_that_is_buffered_is_cut_short_and_one_that_is_not_goes_whole() {
    let mut lab = Lab::new(V13);
    lab.apply(&to_controller(20));
    lab.send(&frame());
    let [packet] = lab.packet_ins()[..] else { panic!("one packet_in") };
    assert_eq!(packet.data(), &frame()[..20]);
    assert_eq!((packet.buffer_id, packet.frame.len()), (Some(0), frame().len()));
    lab.apply(&to_controller(Action::NO_BUFFER));
    lab.send(&frame());
    assert_eq!(lab.packet_ins()[0].data(), &frame()[..]);
    assert_eq!(lab.packet_ins()[0].buffer_id, None);
    // There are four buffers, and one is in use.
    lab.apply(&to_controller(0));
    let ids: Vec<_> =
        (0..4).map(|_| (lab.send(&frame()), lab.packet_ins()[0].buffer_id).1).collect();
    assert_eq!(ids, [Some(1), Some(2), Some(3), None]);
    assert_eq!(lab.packet_ins()[0].data(), &frame()[..]);
}

#[test]
fn on_a_miss_in_1_0_the_switchs_own_length_counts() {
    let mut lab = Lab::new(V10);
    let long = eth().payload(0x1234, &[7; 500]);
    lab.send(&long);
    assert_eq!(lab.packet_ins()[0].data(), &long[..128]);
}

fn release(lab: &mut Lab, id: u32, actions: &[Action<'_>]) -> Result<(), ErrorCode> {
    lab.effects.frames.clear();
    let actions = List::of(actions);
    let data = Bytes(&[]);
    let request = PacketOut { buffer_id: Some(id), in_port: Port(1), actions, data };
    let version = lab.datapath.rules();
    lab.datapath.packet_out(version, &request, lab.now, &mut lab.effects)
}

#[test]
fn a_buffered_packet_is_sent_once_and_whole() {
    let mut lab = Lab::new(V13);
    lab.apply(&to_controller(20));
    lab.send(&frame());
    // A refused request leaves the packet in its buffer.
    assert_eq!(release(&mut lab, 0, &[out(9)]), Err(ErrorCode::ActionBadOutPort));
    assert_eq!(release(&mut lab, 0, &[out(2)]), Ok(()));
    assert_eq!(lab.frames(), [(2, &frame()[..])]);
    assert_eq!(release(&mut lab, 0, &[out(2)]), Err(ErrorCode::RequestBufferEmpty));
    assert_eq!(release(&mut lab, 1, &[out(2)]), Err(ErrorCode::RequestBufferUnknown));
}

#[test]
fn in_1_3_a_flow_that_takes_a_buffered_packet_with_it_sends_it_through_the_tables_from_the_first() {
    let mut lab = Lab::new(V13);
    lab.apply(&to_controller(20));
    lab.send(&frame());
    // The new flow is in a table that the packet reaches only through the first.
    let matching = Match::any().in_port(Port(1));
    let goto = [Instruction::GotoTable(1)];
    lab.ask(&FlowMod::add(&matching).priority(0xf000).instructions(&goto)).unwrap();
    let any = Match::any();
    lab.effects.frames.clear();
    let to_three = [out(3)];
    lab.ask(&FlowMod::add(&any).table(1).actions(&to_three).buffer_id(Some(0))).unwrap();
    assert_eq!(lab.frames(), [(3, &frame()[..])]);
    let matched = lab.datapath.tables().table(0).unwrap().matched_count;
    assert_eq!(matched, 2);
}

#[test]
fn in_1_0_the_actions_of_the_new_flow_are_done_to_it() {
    let mut lab = Lab::new(V10);
    lab.send(&frame());
    let elsewhere = Match::any().in_port(Port(4));
    lab.ask(&FlowMod::add(&elsewhere).actions(&[out(3)]).buffer_id(Some(0))).unwrap();
    assert_eq!(lab.frames(), [(3, &frame()[..])]);
}

#[test]
fn a_flow_is_added_though_its_buffer_is_gone() {
    let mut lab = Lab::new(V13);
    let any = Match::any();
    let to_three = [out(3)];
    let flow = FlowMod::add(&any).actions(&to_three).buffer_id(Some(5));
    assert_eq!(lab.ask(&flow), Err(ErrorCode::RequestBufferUnknown));
    assert_eq!(lab.send(&frame()), [3]);
}
