//! Packets that match flows need no allocation, once the buffers have grown.

use bellrock_openflow::Field;

use super::*;

/// Number of allocations for a thousand packets, after others of the same kind.
fn allocations(lab: &mut Lab, frame: &EthernetFrame) -> u64 {
    let mut carry = |packets: u32| {
        for packet in 0..packets {
            let mut frame = lab.effects.copy(frame);
            // A few conversations in turn.
            frame[29] = (packet % 7) as u8;
            lab.datapath.receive(1, frame, lab.now, &mut lab.effects);
            assert!(!lab.effects.frames.is_empty());
            while let Some((_, frame)) = lab.effects.frames.pop() {
                lab.effects.recycle(frame);
            }
        }
    };
    carry(100);
    allocation_counter::measure(|| carry(1_000)).count_total
}

#[test]
fn a_packet_that_is_changed_flooded_and_sent_on_by_an_action_set_costs_no_allocation() {
    let mut lab = Lab::new(V13);
    let apply = [Action::SetField(Field::EthDst, 5), Action::DecNwTtl, Action::output(Port::FLOOD)];
    let write = [Action::PushVlan(0x8100), out(3)];
    let ip = Match::any().eth_type(0x0800);
    lab.flow(0, &ip, &[Instruction::WriteActions(List::of(&write)), Instruction::GotoTable(1)]);
    lab.flow(1, &ip, &[Instruction::ApplyActions(List::of(&apply))]);
    assert_eq!(allocations(&mut lab, &frame()), 0);
}

#[test]
fn nor_does_a_packet_that_passes_a_group() {
    let mut lab = Lab::new(V13);
    let (two, three) = ([out(2)], [Action::PopVlan, out(3)]);
    lab.group(GroupType::All, 1, &[Bucket::of(&two), Bucket::of(&three)]).unwrap();
    lab.apply(&[Action::Group(1)]);
    assert_eq!(allocations(&mut lab, &frame()), 0);
}
