//! The rules of a right answer, for fully decoded messages.

use bellrock_openflow::{Action, Field, FlowCommand, FlowMod, Instruction, Match, PacketOut, Port};

use super::number_in;
use crate::packet::{
    ETH_IPV4, ETH_TYPE_AT, FRAME_LEN, IP_DST, IP_SRC, LoadPacket, MacNumber, PROTO_UDP, UDP_DST,
    UDP_SRC,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerFault {
    /// The `buffer_id`, or the number in the frame, is not that of a packet sent.
    Buffer,
    /// The match does not fit the packet, or does not name the destination.
    Match,
    /// The output is not the port where the destination was learnt.
    Output,
    /// The frame is not that of the packet.
    Frame,
    /// The message is not OpenFlow.
    Unreadable,
}

/// Returns whether a flow_mod can be an answer. It must add a flow, other than the controller's own
/// flows, which match everything or send to the controller.
pub(super) fn is_answer(flow: &FlowMod<'_>) -> bool {
    if flow.command != FlowCommand::Add {
        return false;
    }
    if flow.buffer_id.is_some() {
        return true;
    }
    let to_controller =
        |action: Action<'_>| matches!(action, Action::Output { port: Port::CONTROLLER, .. });
    !flow.matching.to_match().is_any() && !actions(flow).any(to_controller)
}

/// Checks a flow_mod for a packet: the match fits, and the actions send the packet only to its
/// destination.
pub(super) fn flow_mod(flow: &FlowMod<'_>, packet: &LoadPacket) -> Result<(), AnswerFault> {
    if !fits(&flow.matching.to_match(), packet) {
        return Err(AnswerFault::Match);
    }
    let plain = flow.instructions.iter().all(|instruction| {
        matches!(
            instruction,
            Instruction::ApplyActions(_) | Instruction::WriteActions(_) | Instruction::ClearActions
        )
    });
    if plain { outputs(actions(flow), packet.out_port) } else { Err(AnswerFault::Output) }
}

/// Checks a packet_out for a packet. It carries the same frame (unless the switch has buffered it),
/// and sends it only to its destination, or through the flows.
pub(super) fn packet_out(out: &PacketOut<'_>, packet: &LoadPacket) -> Result<(), AnswerFault> {
    if out.buffer_id.is_none() && *out.data != packet.frame() {
        return Err(AnswerFault::Frame);
    }
    let mut actions = out.actions.iter();
    match (actions.next(), actions.next()) {
        (Some(Action::Output { port: Port::TABLE, .. }), None) => Ok(()),
        _ => outputs(out.actions.iter(), packet.out_port),
    }
}

/// Returns whether a frame belongs to the load. ARPs before the test and discovery do not.
pub(super) fn is_load(frame: &[u8]) -> bool {
    frame.get(ETH_TYPE_AT..ETH_TYPE_AT + 2) == Some(&ETH_IPV4.to_be_bytes())
}

/// Returns the number of the packet with this frame.
pub(super) fn number(frame: &[u8]) -> Option<u32> {
    <&[u8; FRAME_LEN]>::try_from(frame).ok().map(number_in)
}

fn actions<'a>(flow: &FlowMod<'a>) -> impl Iterator<Item = Action<'a>> {
    flow.instructions.iter().flat_map(|instruction| match instruction {
        Instruction::ApplyActions(list) | Instruction::WriteActions(list) => list,
        _ => Default::default(),
    })
}

fn outputs<'a>(
    mut actions: impl Iterator<Item = Action<'a>>,
    port: u32,
) -> Result<(), AnswerFault> {
    match (actions.next(), actions.next()) {
        (Some(Action::Output { port: to, .. }), None) if to == Port(port) => Ok(()),
        _ => Err(AnswerFault::Output),
    }
}

/// Returns whether each field of a match equals the packet's, and the destination is one of the
/// fields. A flow without it would also send packets for other hosts there.
fn fits(matching: &Match, packet: &LoadPacket) -> bool {
    let same = |field: Field| {
        let mask = matching.mask(field).unwrap_or(0);
        value(field, packet).is_some_and(|value| matching.value(field) == Some(value & mask))
    };
    matching.unknown().is_empty()
        && matching.has(Field::EthDst)
        && !matching.is_masked(Field::EthDst)
        && matching.fields().all(same)
}

/// Returns a field's value in a packet; `None` if the packet does not have this field.
fn value(field: Field, packet: &LoadPacket) -> Option<u128> {
    let mac = |mac: MacNumber| mac.bytes().iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte));
    let ip = |ip: [u8; 4]| u128::from(u32::from_be_bytes(ip));
    Some(match field {
        Field::InPort | Field::InPhyPort => packet.in_port.into(),
        Field::EthSrc => mac(packet.src),
        Field::EthDst => mac(packet.dst),
        Field::EthType => ETH_IPV4.into(),
        Field::IpProto => PROTO_UDP.into(),
        Field::Ipv4Src => ip(IP_SRC),
        Field::Ipv4Dst => ip(IP_DST),
        Field::UdpSrc => UDP_SRC.into(),
        Field::UdpDst => UDP_DST.into(),
        Field::VlanVid | Field::IpDscp | Field::IpEcn | Field::Metadata | Field::TunnelId => 0,
        _ => return None,
    })
}
