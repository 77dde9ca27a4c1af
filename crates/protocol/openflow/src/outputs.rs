//! The ports of the output actions in a message that is already encoded.

use std::mem::offset_of;

use crate::instruction::{APPLY_ACTIONS, WRITE_ACTIONS};
use crate::wire::{Tlv, v10, v13};
use crate::{Family, HEADER_LEN, MessageKind, Port, Version};

type NewPort<'n> = dyn FnMut(Port) -> Port + 'n;

/// Calls `new_port` with the port of each output action of a packet_out, flow_mod or group_mod, and
/// writes the returned port in its place. A port that the version cannot express is not written.
/// The end of the message may be missing, as in an error about it.
pub fn map_outputs(message: &mut [u8], new_port: &mut NewPort<'_>) {
    let Some([version, kind]) = message.first_chunk().copied() else { return };
    let Some(version) = Version::from_wire(version) else { return };
    match MessageKind::from_wire(version, kind) {
        Some(MessageKind::PacketOut) => packet_out(version, message, new_port),
        Some(MessageKind::FlowMod) => flow_mod(version, message, new_port),
        Some(MessageKind::GroupMod) => group_mod(version, message, new_port),
        _ => {}
    }
}

fn packet_out(version: Version, message: &mut [u8], new_port: &mut NewPort<'_>) {
    let (len_at, fixed_len) = match version.family() {
        Family::Fixed => (offset_of!(v10::PacketOut, actions_len), size_of::<v10::PacketOut>()),
        Family::Oxm => (offset_of!(v13::PacketOut, actions_len), size_of::<v13::PacketOut>()),
    };
    let len = number(message, HEADER_LEN + len_at);
    actions(version, part(message, HEADER_LEN + fixed_len, len), new_port);
}

fn flow_mod(version: Version, message: &mut [u8], new_port: &mut NewPort<'_>) {
    if version.family() == Family::Fixed {
        let at = HEADER_LEN + size_of::<v10::Match>() + size_of::<v10::FlowMod>();
        return actions(version, part(message, at, usize::MAX), new_port);
    }
    let match_at = HEADER_LEN + size_of::<v13::FlowMod>();
    let match_len = number(message, match_at + offset_of!(v13::Match, length));
    let mut rest = part(message, match_at + match_len.next_multiple_of(8), usize::MAX);
    while let Some((kind, instruction, behind)) = next(rest) {
        if matches!(kind, WRITE_ACTIONS | APPLY_ACTIONS) {
            // Four bytes of padding follow type and length.
            actions(version, part(instruction, 8, usize::MAX), new_port);
        }
        rest = behind;
    }
}

fn group_mod(version: Version, message: &mut [u8], new_port: &mut NewPort<'_>) {
    const BUCKET_LEN: usize = size_of::<v13::Bucket>();
    let mut rest = part(message, HEADER_LEN + size_of::<v13::GroupMod>(), usize::MAX);
    while !rest.is_empty() {
        let len = number(rest, 0).clamp(BUCKET_LEN, rest.len().max(BUCKET_LEN));
        let (bucket, behind) = rest.split_at_mut_checked(len).unwrap_or_default();
        actions(version, part(bucket, BUCKET_LEN, usize::MAX), new_port);
        rest = behind;
    }
}

fn actions(version: Version, mut rest: &mut [u8], new_port: &mut NewPort<'_>) {
    const OUTPUT: u16 = 0;
    while let Some((kind, action, behind)) = next(rest) {
        let port = action.get_mut(size_of::<Tlv>()..).filter(|_| kind == OUTPUT);
        match (version.family(), port) {
            (Family::Fixed, Some([high, low, ..])) => {
                let port = Port::from_v10(u16::from_be_bytes([*high, *low]));
                if let Ok(port) = new_port(port).to_v10() {
                    [*high, *low] = port.to_be_bytes();
                }
            }
            (Family::Oxm, Some([a, b, c, d, ..])) => {
                let port = Port(u32::from_be_bytes([*a, *b, *c, *d]));
                [*a, *b, *c, *d] = new_port(port).0.to_be_bytes();
            }
            _ => {}
        }
        rest = behind;
    }
}

/// The next type-length-value, as far as present, and the bytes behind it.
fn next(rest: &mut [u8]) -> Option<(u16, &mut [u8], &mut [u8])> {
    let head: [u8; 2] = *rest.first_chunk()?;
    let len = number(rest, offset_of!(Tlv, length));
    if rest.len() < size_of::<Tlv>() || len < size_of::<Tlv>() {
        return None;
    }
    let (item, behind) = rest.split_at_mut_checked(len.min(rest.len()))?;
    Some((u16::from_be_bytes(head), item, behind))
}

/// At most `len` bytes from `at` on.
fn part(bytes: &mut [u8], at: usize, len: usize) -> &mut [u8] {
    let rest = bytes.get_mut(at..).unwrap_or_default();
    let len = len.min(rest.len());
    rest.get_mut(..len).unwrap_or_default()
}

/// The 16 bits at this place; 0 beyond the end.
fn number(bytes: &[u8], at: usize) -> usize {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u16::from_be_bytes(*bytes).into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use super::*;
    use crate::{
        Action, Bucket, Bytes, Field, FlowMod, GroupCommand, GroupMod, GroupType, List, Match, Out,
        PacketOut, ToSwitch,
    };

    /// One message of each kind that has actions, with an output to `port` in each list.
    fn messages(version: Version, port: Port) -> Vec<Vec<u8>> {
        let actions = [Action::SetField(Field::EthSrc, 7), Action::output(port)];
        let matching = Match::any().in_port(Port(3)).eth_type(0x0800);
        let (list, data) = (List::of(&actions), Bytes(&[9; 60]));
        let packet = PacketOut { buffer_id: None, in_port: Port(1), actions: list, data };
        let buckets = [Bucket::of(&actions), Bucket::of(&actions)];
        let (command, kind) = (GroupCommand::Add, GroupType::All);
        let group = GroupMod { command, kind, group: 1, buckets: List::of(&buckets) };
        let all = [
            ToSwitch::PacketOut(packet),
            ToSwitch::FlowMod(FlowMod::add(&matching).actions(&actions)),
            ToSwitch::GroupMod(group),
        ];
        let groups = if version.has_groups() { 1 } else { 0 };
        let encoded = all.iter().take(2 + groups).map(|message| {
            let mut out = Out::with_capacity(1024);
            message.encode(version, 1, &mut out).unwrap();
            out.as_slice().to_vec()
        });
        encoded.collect()
    }

    #[test]
    fn each_output_gets_its_new_port_and_nothing_else_changes() {
        for version in Version::ALL {
            for (from, to) in [(Port(2), Port(7)), (Port::FLOOD, Port::ALL)] {
                for (mut message, expected) in
                    messages(version, from).into_iter().zip(messages(version, to))
                {
                    let mut ports = Vec::new();
                    map_outputs(&mut message, &mut |port| {
                        ports.push(port);
                        to
                    });
                    assert_eq!(message, expected, "{version}");
                    assert!(!ports.is_empty() && ports.iter().all(|port| *port == from));
                }
            }
        }
    }

    #[test]
    fn a_port_that_the_version_cannot_express_is_not_written() {
        let large = Port(0x1_0000);
        for message in messages(Version::V1_0, Port(2)) {
            let mut mapped = message.clone();
            map_outputs(&mut mapped, &mut |_| large);
            assert_eq!(mapped, message);
        }
        for (mut message, expected) in
            messages(Version::V1_3, Port(2)).into_iter().zip(messages(Version::V1_3, large))
        {
            map_outputs(&mut message, &mut |_| large);
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn whatever_bytes_come_are_walked_to_their_end() {
        for message in Version::ALL.into_iter().flat_map(|version| messages(version, Port(2))) {
            for at in 0..message.len() {
                for value in [0, 1, 0x7f, 0xff] {
                    let mut bytes = message.clone();
                    bytes[at] = value;
                    map_outputs(&mut bytes, &mut |port| port);
                    assert_eq!(bytes[at], value);
                    map_outputs(&mut bytes[at..], &mut |port| port);
                    map_outputs(&mut bytes[..at], &mut |_| Port::ALL);
                }
            }
        }
    }
}
