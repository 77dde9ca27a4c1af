//! Switches without FLOOD.
//!
//! FLOOD is optional in both versions: it sends along the switch's own spanning tree, which only
//! hybrid switches have (1.0 §3.3; 1.3.5 §4.5). ALL is required. It sends out of every port but the
//! ingress port, also of those that the spanning tree blocks or that are set NO_FLOOD. So ALL must
//! not replace a working FLOOD: it could close loops. FLOOD is sent until the switch refuses it.
//! From then on, the worker replaces it by ALL in all messages of the apps, in place, before they
//! are sent. The first, refused message is lost.
//!
//! A switch that drops such packets silently looks like one that sends them.

use std::time::Duration;

use bellrock_api::Port;
use bellrock_api::openflow::{ErrorCode, ErrorMessage, HEADER_LEN, MessageKind, Version, frame};
use tracing::warn;

use crate::transport::ConnectionKey;
use crate::worker::Worker;

impl Worker {
    /// Notes that a switch has refused FLOOD, if this error means that.
    pub(crate) fn flood_by_all(
        &mut self,
        key: ConnectionKey,
        error: &ErrorMessage<'_>,
        now: Duration,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.floods_by_all || !is_about_flood(error) {
            return;
        }
        connection.floods_by_all = true;
        let dpid = connection.dpid();
        if let Some(dpid) = dpid
            && self.log.allows(now, &self.counters)
        {
            warn!(
                %dpid,
                "the switch has no FLOOD: ALL is used instead, which also sends to ports that are \
                 blocked or set NO_FLOOD"
            );
        }
    }
}

/// Whether an error refuses an output to FLOOD: it concerns the port of an action, and the quoted
/// message sends to FLOOD only.
fn is_about_flood(error: &ErrorMessage<'_>) -> bool {
    let ErrorMessage::Standard {
        code: ErrorCode::ActionBadOutPort | ErrorCode::ActionBadArgument | ErrorCode::RequestBadPort,
        data,
    } = error
    else {
        return false;
    };
    let (mut floods, mut others) = (false, false);
    outputs(&mut data.to_vec(), &mut |port| {
        let is_flood = port == numbers(port).0;
        (floods, others) = (floods | is_flood, others | !is_flood);
    });
    floods && !others
}

/// Replaces FLOOD by ALL in all actions of these messages.
pub(crate) fn use_all(messages: &mut [u8]) {
    let mut at = 0;
    while let Some(rest) = messages.get_mut(at..)
        && let Ok(Some(message)) = frame(rest)
    {
        let len = message.bytes.len();
        outputs(rest.get_mut(..len).unwrap_or_default(), &mut |port| {
            let (flood, all) = numbers(port);
            if port == flood {
                port.copy_from_slice(all);
            }
        });
        at += len;
    }
}

/// FLOOD and ALL, with the length of a port in this version.
fn numbers(port: &[u8]) -> (&'static [u8], &'static [u8]) {
    const FLOOD: [u8; 4] = Port::FLOOD.0.to_be_bytes();
    const ALL: [u8; 4] = Port::ALL.0.to_be_bytes();
    let skip = FLOOD.len().saturating_sub(port.len());
    (FLOOD.get(skip..).unwrap_or(&[]), ALL.get(skip..).unwrap_or(&[]))
}

type Visit<'v> = dyn FnMut(&mut [u8]) + 'v;

/// Visits the port of each output action of a message, whose end may be cut off.
fn outputs(message: &mut [u8], visit: &mut Visit<'_>) {
    let Some([version, kind]) = message.first_chunk().copied() else { return };
    let Some(version) = Version::from_wire(version) else { return };
    let kind = MessageKind::from_wire(version, kind);
    match (version, kind) {
        (Version::V1_0, Some(MessageKind::PacketOut)) => {
            let len = number(message, HEADER_LEN + 6);
            actions(version, upto(message, 16, len), visit);
        }
        (Version::V1_3, Some(MessageKind::PacketOut)) => {
            let len = number(message, HEADER_LEN + 8);
            actions(version, upto(message, 24, len), visit);
        }
        (Version::V1_0, Some(MessageKind::FlowMod)) => {
            actions(version, upto(message, 72, usize::MAX), visit);
        }
        (Version::V1_3, Some(MessageKind::FlowMod)) => {
            const MATCH_AT: usize = 48;
            let matching = number(message, MATCH_AT + 2).next_multiple_of(8);
            let mut rest = upto(message, MATCH_AT + matching, usize::MAX);
            while let Some((kind, instruction, behind)) = next(rest) {
                // Write_actions and apply_actions.
                if matches!(kind, 3 | 4) {
                    actions(version, upto(instruction, 8, usize::MAX), visit);
                }
                rest = behind;
            }
        }
        (Version::V1_3, Some(MessageKind::GroupMod)) => {
            let mut rest = upto(message, HEADER_LEN + 8, usize::MAX);
            while !rest.is_empty() {
                let len = number(rest, 0).clamp(16, rest.len().max(16));
                let (bucket, behind) = rest.split_at_mut_checked(len).unwrap_or_default();
                actions(version, upto(bucket, 16, usize::MAX), visit);
                rest = behind;
            }
        }
        _ => {}
    }
}

fn actions(version: Version, mut rest: &mut [u8], visit: &mut Visit<'_>) {
    let port_len = match version {
        Version::V1_0 => 2,
        Version::V1_3 => 4,
    };
    while let Some((kind, action, behind)) = next(rest) {
        const OUTPUT: usize = 0;
        if kind == OUTPUT
            && let Some(port) = action.get_mut(4..4 + port_len)
        {
            visit(port);
        }
        rest = behind;
    }
}

/// The next type-length-value, as far as present, and the bytes behind it.
fn next(rest: &mut [u8]) -> Option<(usize, &mut [u8], &mut [u8])> {
    let (kind, len) = (number(rest, 0), number(rest, 2));
    if rest.len() < 4 || len < 4 {
        return None;
    }
    let (item, behind) = rest.split_at_mut_checked(len.min(rest.len()))?;
    Some((kind, item, behind))
}

/// At most `len` bytes from `at` on.
fn upto(bytes: &mut [u8], at: usize, len: usize) -> &mut [u8] {
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
mod tests {
    use bellrock_api::openflow::{
        Bucket, Bytes, GroupCommand, GroupMod, GroupType, List, Out, PacketOut,
    };
    use bellrock_api::{Action, FlowMod, Match, ToSwitch};

    use super::*;

    /// One message of each kind that has actions, sending to `port`. Returns their number.
    fn messages(version: Version, port: Port, out: &mut Out) -> usize {
        let actions =
            [Action::SetField(bellrock_api::openflow::Field::EthSrc, 7), Action::output(port)];
        let matching = Match::any().in_port(Port(3)).eth_type(0x0800);
        let in_port = Port(1);
        let (list, data) = (List::of(&actions), Bytes(&[9; 60]));
        let packet = PacketOut { buffer_id: None, in_port, actions: list, data };
        let buckets = [Bucket::of(&actions), Bucket::of(&actions)];
        let (command, kind) = (GroupCommand::Add, GroupType::All);
        let group = GroupMod { command, kind, group: 1, buckets: List::of(&buckets) };
        let mut all = vec![
            ToSwitch::PacketOut(packet),
            ToSwitch::FlowMod(FlowMod::add(&matching).actions(&actions)),
            ToSwitch::BarrierRequest,
        ];
        if version == Version::V1_3 {
            all.push(ToSwitch::GroupMod(group));
        }
        all.iter().for_each(|message| message.encode(version, 1, out).unwrap());
        all.len()
    }

    #[test]
    fn all_stands_for_flood_in_every_action_and_nothing_else_changes() {
        for version in [Version::V1_0, Version::V1_3] {
            for (port, expected) in [(Port::FLOOD, Port::ALL), (Port(2), Port(2))] {
                let (mut sent, mut wanted) = (Out::with_capacity(4096), Out::with_capacity(4096));
                messages(version, port, &mut sent);
                messages(version, expected, &mut wanted);
                let mut sent = sent.as_slice().to_vec();
                use_all(&mut sent);
                assert_eq!(sent, wanted.as_slice(), "{version} {port}");
            }
        }
    }

    fn refusing(code: ErrorCode, data: &[u8]) -> bool {
        is_about_flood(&ErrorMessage::Standard { code, data: Bytes(data) })
    }

    #[test]
    fn an_error_about_a_port_in_a_message_to_flood_is_about_flood() {
        for version in [Version::V1_0, Version::V1_3] {
            for (port, expected) in [(Port::FLOOD, true), (Port(99), false)] {
                let mut out = Out::with_capacity(4096);
                messages(version, port, &mut out);
                // The first is a packet_out, of which errors quote 64 bytes.
                let data = &out.as_slice()[..64];
                assert_eq!(refusing(ErrorCode::ActionBadOutPort, data), expected);
                assert!(!refusing(ErrorCode::RequestBufferUnknown, data));
                assert!(!refusing(ErrorCode::ActionBadOutPort, &data[..20]));
                assert!(!refusing(ErrorCode::ActionBadOutPort, b"no such port"));
            }
        }
    }

    #[test]
    fn whatever_bytes_come_are_walked_to_their_end() {
        for version in [Version::V1_0, Version::V1_3] {
            let mut out = Out::with_capacity(4096);
            messages(version, Port::FLOOD, &mut out);
            for at in 0..out.len() {
                for value in [0, 1, 0x7f, 0xff] {
                    let mut bytes = out.as_slice().to_vec();
                    bytes[at] = value;
                    use_all(&mut bytes);
                    outputs(&mut bytes, &mut |_| {});
                    outputs(&mut bytes[at..], &mut |_| {});
                }
            }
        }
    }
}
