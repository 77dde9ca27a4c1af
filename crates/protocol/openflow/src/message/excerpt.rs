//! The part of a message that an error about it contains.

use std::fmt;

use super::FlowCommand;
use crate::header::Header;
use crate::reader::{Reader, Strictness};
use crate::wire::{U16, U64, v13};
use crate::{Family, HEADER_LEN, Match, MatchView, MessageKind, ToSwitch, Version, oxm};

/// The start of a message to a switch, from an error: at least 64 bytes, or the whole message (1.0
/// §5.4.4; 1.3.5 §7.4.4). Prints the name of the message. For a flow_mod it also prints command and
/// match, as far as they are present:
/// `OFPT_FLOW_MOD ADD priority=10,eth_type=0x0800,ip_proto=6,...`.
#[derive(Clone, Copy, Debug)]
pub struct Excerpt<'a> {
    version: Version,
    kind: MessageKind,
    bytes: &'a [u8],
    is_whole: bool,
}

impl<'a> Excerpt<'a> {
    /// Reads the data of an error. `None` if it is too short, or not a message to a switch in a
    /// supported version.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let header = Header::read(bytes)?;
        let version = Version::from_wire(header.version)?;
        let kind = MessageKind::from_wire(version, header.kind)?;
        let is_whole = bytes.len() >= usize::from(header.length);
        Some(Excerpt { version, kind, bytes, is_whole })
    }

    /// Returns the type of the message.
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    fn flow_mod(&self) -> Option<(FlowCommand, u16, Match)> {
        let mut reader = Reader::new(self.bytes).reading(Strictness::Liberal);
        reader.take(HEADER_LEN, "header").ok()?;
        match self.version.family() {
            Family::Fixed => {
                let matching = MatchView::decode(self.version, &mut reader).ok()?;
                // The 64 bytes end after the priority.
                let _cookie: &U64 = reader.fixed("flow_mod").ok()?;
                let [command, _, _, priority]: &[U16; 4] = reader.fixed("flow_mod").ok()?;
                let command = FlowCommand::from_wire(command.get())?;
                Some((command, priority.get(), matching.to_match()))
            }
            Family::Oxm => {
                let wire: &v13::FlowMod = reader.fixed("flow_mod").ok()?;
                let command = FlowCommand::from_wire(wire.command.into())?;
                let head: &v13::Match = reader.fixed("match").ok()?;
                let fields = usize::from(head.length.get()).saturating_sub(size_of::<v13::Match>());
                let fields = reader.take(fields.min(reader.len()), "match").ok()?;
                Some((command, wire.priority.get(), oxm::collect(oxm::whole_fields(fields))))
            }
        }
    }
}

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name(self.version))?;
        if self.kind == MessageKind::FlowMod
            && let Some((command, priority, matching)) = self.flow_mod()
        {
            write!(f, " {command} priority={priority}")?;
            if !matching.is_any() {
                write!(f, ",{matching}")?;
            }
            return f.write_str(if self.is_whole || self.version.family() == Family::Fixed {
                ""
            } else {
                ",..."
            });
        }
        match ToSwitch::decode_as(self.bytes, Strictness::Liberal).map(|message| message.body) {
            Ok(ToSwitch::PacketOut(packet)) => write!(f, " {packet}"),
            Ok(ToSwitch::GroupMod(group)) => write!(f, " group_id={}", group.group),
            Ok(ToSwitch::MeterMod(meter)) => write!(f, " meter={}", meter.meter),
            Ok(ToSwitch::MultipartRequest(request)) => {
                write!(f, " {}", request.body.kind().name(self.version))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, FlowMod, MacAddr, Out, Port};

    fn excerpt(version: Version, message: &ToSwitch<'_>, bytes: usize) -> String {
        let mut out = Out::with_capacity(4096);
        message.encode(version, 1, &mut out).unwrap();
        let all = out.as_slice();
        Excerpt::read(all.get(..bytes).unwrap_or(all))
            .map_or("none".to_owned(), |it| it.to_string())
    }

    #[test]
    fn a_flow_is_named_by_its_match_as_far_as_it_is_there() {
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let matching = Match::any().eth_dst(mac).eth_type(0x0800).ip_proto(6).tcp_dst(80);
        let actions = [Action::output(Port(1))];
        let flow = ToSwitch::FlowMod(FlowMod::add(&matching).priority(7).actions(&actions));
        let whole = "OFPT_FLOW_MOD ADD priority=7,eth_dst=02:00:00:00:00:01,eth_type=0x0800,ip_proto=6,tcp_dst=80";
        assert_eq!(excerpt(Version::V1_0, &flow, 64), whole);
        assert_eq!(excerpt(Version::V1_3, &flow, 4096), whole);
        let cut = "OFPT_FLOW_MOD ADD priority=7,eth_dst=02:00:00:00:00:01,...";
        assert_eq!(excerpt(Version::V1_3, &flow, 64), cut);
        // Shorter than the specification requires.
        assert_eq!(excerpt(Version::V1_3, &flow, 52), "OFPT_FLOW_MOD ADD priority=7,...");
        for bytes in [8, 20, 47] {
            assert_eq!(excerpt(Version::V1_3, &flow, bytes), "OFPT_FLOW_MOD");
        }
        assert_eq!(excerpt(Version::V1_3, &flow, 7), "none");
    }

    #[test]
    fn other_messages_are_named() {
        let actions = [Action::output(Port::FLOOD)];
        let packet = crate::PacketOut {
            buffer_id: Some(9),
            in_port: Port(3),
            actions: crate::List::of(&actions),
            data: crate::Bytes(&[]),
        };
        let packet = ToSwitch::PacketOut(packet);
        let text = "OFPT_PACKET_OUT in_port=3 actions=FLOOD buffer=0x00000009";
        assert_eq!(excerpt(Version::V1_3, &packet, 64), text);
        assert_eq!(excerpt(Version::V1_3, &packet, 30), "OFPT_PACKET_OUT");
        assert_eq!(excerpt(Version::V1_0, &ToSwitch::BarrierRequest, 64), "OFPT_BARRIER_REQUEST");
    }
}
