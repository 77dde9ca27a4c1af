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

use bellrock_api::openflow::{ErrorCode, ErrorMessage, frame, map_outputs};
use bellrock_api::{Dpid, Port};

use crate::apps::Apps;
use crate::connection::Connection;

impl Connection<Apps> {
    /// Notes that the switch has refused FLOOD, if this error means that. Returns the switch, the
    /// first time.
    pub(super) fn refuses_flood(&mut self, error: &ErrorMessage<'_>) -> Option<Dpid> {
        if self.own.uses_all_for_flood || !is_about_flood(error) {
            return None;
        }
        self.own.uses_all_for_flood = true;
        self.dpid()
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
    let (mut has_flood, mut has_other) = (false, false);
    map_outputs(&mut data.to_vec(), &mut |port| {
        let is_flood = port == Port::FLOOD;
        (has_flood, has_other) = (has_flood | is_flood, has_other | !is_flood);
        port
    });
    has_flood && !has_other
}

/// Replaces FLOOD by ALL in all actions of these messages.
pub(crate) fn use_all(messages: &mut [u8]) {
    let mut rest = messages;
    while let Ok(Some(message)) = frame(rest) {
        let len = message.bytes.len();
        let Some((message, remaining)) = rest.split_at_mut_checked(len) else { return };
        map_outputs(message, &mut |port| if port == Port::FLOOD { Port::ALL } else { port });
        rest = remaining;
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::openflow::{
        Bucket, Bytes, GroupCommand, GroupMod, GroupType, List, Out, PacketOut, Version,
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
        if version.has_groups() {
            all.push(ToSwitch::GroupMod(group));
        }
        all.iter().for_each(|message| message.encode(version, 1, out).unwrap());
        all.len()
    }

    #[test]
    fn all_stands_for_flood_in_every_action_and_nothing_else_changes() {
        for version in Version::ALL {
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
        for version in Version::ALL {
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
}
