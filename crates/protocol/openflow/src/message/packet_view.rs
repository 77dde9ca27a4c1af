//! A packet_in that is read in place: the one message that comes by the million.

use std::hint::cold_path;

use zerocopy::FromBytes;

use super::packet::{PacketInMessage, PacketInReason, buffer_from_wire};
use super::{FromSwitch, Message};
use crate::template::InPort;
use crate::wire::{v10, v13};
use crate::{Family, MAX_MESSAGE_LEN, MessageKind, Port, Version, frame};

/// The type of a packet_in, which is that of all versions.
const PACKET_IN: u8 = 10;

const _: () = {
    let mut place = 0;
    while place < Version::ALL.len() {
        assert!(matches!(MessageKind::PacketIn.wire(Version::ALL[place]), Some(PACKET_IN)));
        place += 1;
    }
};

/// A match of 1.3 (type OXM, 12 bytes) with only an ingress port: the bytes before the port.
const MATCH_IN_PORT: [u8; 8] = [0, 1, 0, 12, 0x80, 0, 0, 4];

/// A checked packet_in. Fields are read from its bytes on demand, so an app that reads three fields
/// pays for three. They equal those of the [`PacketInMessage`] that [`FromSwitch::decode`] returns.
#[derive(Clone, Copy)]
pub struct PacketInView<'a> {
    version: Version,
    head: Head<'a>,
    /// The whole message.
    message: &'a [u8],
}

/// The fields before the packet.
#[derive(Clone, Copy)]
enum Head<'a> {
    /// At the start of the message, which is long enough.
    V10,
    V13(&'a v13::PacketInHead),
    /// 1.3 with another match, which was read once.
    Other {
        fixed: &'a v13::PacketInFixed,
        in_port: Port,
        data: &'a [u8],
    },
}

impl<'a> PacketInView<'a> {
    /// Splits off the first message of a stream, if it is a packet_in of the common form
    /// ([`PacketInView::common`]). Returns it with the rest.
    ///
    /// `None` does not mean an error. The message may have another form, type or version, be
    /// incomplete, or be invalid; [`frame`] and [`FromSwitch::decode`] decide.
    #[must_use]
    #[inline(always)]
    pub fn split_common(version: Version, stream: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let head_len = match version.family() {
            Family::Fixed => size_of::<v10::PacketInHead>(),
            Family::Oxm => {
                let (head, _) = v13::PacketInHead::ref_from_prefix(stream).ok()?;
                if head.match_head != MATCH_IN_PORT {
                    return None;
                }
                size_of_val(head)
            }
        };
        // With the right version and type, the length remains; otherwise the number is no valid
        // length.
        let packet_in = u32::from_be_bytes([version.wire(), PACKET_IN, 0, 0]);
        let len = u32::from_be_bytes(*stream.first_chunk()?).wrapping_sub(packet_in) as usize;
        if (head_len..=MAX_MESSAGE_LEN).contains(&len) {
            stream.split_at_checked(len)
        } else {
            None
        }
    }

    /// Views a whole message, from [`PacketInView::split_common`] or [`frame`], as a packet_in of
    /// the common form: in 1.3, with only the ingress port in its match.
    #[must_use]
    #[inline(always)]
    pub fn common(version: Version, message: &'a [u8]) -> Option<Self> {
        let head = match version.family() {
            Family::Fixed => Head::V10,
            Family::Oxm => {
                let (head, _) = v13::PacketInHead::ref_from_prefix(message).ok()?;
                if head.match_head != MATCH_IN_PORT {
                    return None;
                }
                Head::V13(head)
            }
        };
        Some(PacketInView { version, head, message })
    }

    /// Views the packet_in at the start of a stream, with any match. `None` if there is none, or an
    /// invalid one.
    #[must_use]
    pub fn of_any_form(stream: &'a [u8]) -> Option<Self> {
        let message = frame(stream).ok()??.bytes;
        let Ok(Message { version, body: FromSwitch::PacketIn(packet), .. }) =
            FromSwitch::decode(message)
        else {
            return None;
        };
        let head = match version.family() {
            Family::Fixed => Head::V10,
            Family::Oxm => {
                let (fixed, _) = v13::PacketInFixed::ref_from_prefix(message).ok()?;
                Head::Other { fixed, in_port: packet.in_port(), data: packet.data.0 }
            }
        };
        Some(PacketInView { version, head, message })
    }

    /// The fields of 1.0. The length check is here, so that callers that have checked the length of
    /// the packet need no other check.
    #[inline(always)]
    fn v10(&self) -> v10::PacketIn {
        let Ok((head, _)) = v10::PacketInHead::ref_from_prefix(self.message) else {
            cold_path();
            return v10::PacketIn::default();
        };
        head.packet_in
    }

    /// The fields that all forms of 1.3 have.
    #[inline(always)]
    fn v13(&self) -> Option<&'a v13::PacketIn> {
        match self.head {
            Head::V10 => None,
            Head::V13(head) => Some(&head.fixed.packet_in),
            Head::Other { fixed, .. } => Some(&fixed.packet_in),
        }
    }

    /// Returns the version of its message.
    #[must_use]
    #[inline(always)]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the ingress port in the form of a flow_mod of the same version.
    #[inline(always)]
    pub(crate) fn wire_in_port(&self) -> InPort {
        match self.head {
            Head::V10 => InPort::V10(self.v10().in_port.to_bytes()),
            Head::V13(head) => InPort::V13(head.in_port.to_bytes()),
            Head::Other { in_port, .. } => InPort::V13(in_port.0.to_be_bytes()),
        }
    }

    /// Returns the `buffer_id` in the form of a flow_mod of the same version.
    #[inline(always)]
    pub(crate) fn wire_buffer_id(&self) -> [u8; 4] {
        let buffer_id = match self.head {
            Head::V10 => self.v10().buffer_id,
            Head::V13(head) => head.fixed.packet_in.buffer_id,
            Head::Other { fixed, .. } => fixed.packet_in.buffer_id,
        };
        buffer_id.to_bytes()
    }

    /// Returns the whole message.
    #[must_use]
    #[inline(always)]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// Length of the whole message, in bytes.
    #[must_use]
    #[inline(always)]
    pub fn message_len(&self) -> usize {
        self.message.len()
    }

    /// See [`PacketInMessage::buffer_id`].
    #[must_use]
    #[inline(always)]
    pub fn buffer_id(&self) -> Option<u32> {
        buffer_from_wire(u32::from_be_bytes(self.wire_buffer_id()))
    }

    /// See [`PacketInMessage::total_len`].
    #[must_use]
    #[inline(always)]
    pub fn total_len(&self) -> u16 {
        match self.head {
            Head::V10 => self.v10().total_len.get(),
            Head::V13(head) => head.fixed.packet_in.total_len.get(),
            Head::Other { fixed, .. } => fixed.packet_in.total_len.get(),
        }
    }

    /// See [`PacketInMessage::reason`].
    #[must_use]
    pub fn reason(&self) -> PacketInReason {
        PacketInReason::from_wire(match self.head {
            Head::V10 => self.v10().reason,
            Head::V13(head) => head.fixed.packet_in.reason,
            Head::Other { fixed, .. } => fixed.packet_in.reason,
        })
    }

    /// See [`PacketInMessage::table`].
    #[must_use]
    pub fn table(&self) -> u8 {
        self.v13().map_or(0, |head| head.table_id)
    }

    /// See [`PacketInMessage::cookie`].
    #[must_use]
    pub fn cookie(&self) -> u64 {
        self.v13().map_or(PacketInMessage::NO_COOKIE, |head| head.cookie.get())
    }

    /// Returns the ingress port; [`Port::ANY`] if the switch did not report it.
    #[must_use]
    #[inline(always)]
    pub fn in_port(&self) -> Port {
        match self.head {
            Head::V10 => Port::from_v10(self.v10().in_port.get()),
            Head::V13(head) => Port(head.in_port.get()),
            Head::Other { in_port, .. } => in_port,
        }
    }

    /// Returns the number of the ingress port as in the message. It equals that of [`Port`], except
    /// for 1.0's reserved ports, which have 16 bits there, and for invalid numbers.
    #[must_use]
    #[inline(always)]
    pub fn in_port_number(&self) -> u32 {
        match self.head {
            Head::V10 => self.v10().in_port.get().into(),
            Head::V13(head) => head.in_port.get(),
            Head::Other { in_port, .. } => in_port.0,
        }
    }

    /// Returns the packet, from its Ethernet header on. It may be truncated if it is buffered.
    #[must_use]
    #[inline(always)]
    pub fn data(&self) -> &'a [u8] {
        match self.head {
            Head::V10 => self.message.get(size_of::<v10::PacketInHead>()..).unwrap_or(&[]),
            Head::V13(_) => self.message.get(size_of::<v13::PacketInHead>()..).unwrap_or(&[]),
            Head::Other { data, .. } => data,
        }
    }

    /// Returns whether [`PacketInView::data`] is the whole packet.
    #[must_use]
    #[inline(always)]
    pub fn is_whole(&self) -> bool {
        self.data().len() >= usize::from(self.total_len())
    }

    /// Decodes all fields, including those of the match.
    #[must_use]
    pub fn decode(&self) -> Option<PacketInMessage<'a>> {
        match FromSwitch::decode(self.message).ok()?.body {
            FromSwitch::PacketIn(packet) => Some(packet),
            _ => None,
        }
    }
}

impl std::fmt::Debug for PacketInView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.decode().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Match, MatchView, Out};

    fn encoded(version: Version, packet: PacketInMessage<'_>) -> Vec<u8> {
        let mut out = Out::with_capacity(1024);
        FromSwitch::PacketIn(packet).encode(version, 7, &mut out).unwrap();
        out.as_slice().to_vec()
    }

    fn packets(version: Version) -> Vec<Vec<u8>> {
        let more = Match::any().in_port(Port(5)).metadata(9);
        let (cookie, table) = match version.family() {
            Family::Fixed => (PacketInMessage::NO_COOKIE, 0),
            Family::Oxm => (0x1234_5678_9abc_def0, 3),
        };
        let mut all = Vec::new();
        for matching in [MatchView::port(Port(3)), MatchView::port(Port::LOCAL), (&more).into()] {
            for (buffer_id, reason) in
                [(None, PacketInReason::NoMatch), (Some(0), PacketInReason::Unknown(9))]
            {
                for data in [&b""[..], b"a packet"] {
                    let data = Bytes(data);
                    let packet = PacketInMessage {
                        buffer_id,
                        total_len: 8,
                        reason,
                        table,
                        cookie,
                        matching,
                        data,
                    };
                    all.push(encoded(version, packet));
                }
            }
        }
        all
    }

    #[test]
    fn it_says_what_the_decoded_message_says() {
        for version in Version::ALL {
            for (nth, mut stream) in packets(version).into_iter().enumerate() {
                let len = stream.len();
                stream.extend([0xa5; 7]);
                let any = PacketInView::of_any_form(&stream).unwrap();
                let split = PacketInView::split_common(version, &stream);
                // A match of fixed fields has no other form.
                let is_common = version.family() == Family::Fixed || nth < 8;
                assert_eq!(split.is_some(), is_common, "{version} {nth}");
                let common = PacketInView::common(version, &stream[..len]);
                assert_eq!(common.is_some(), is_common, "{version} {nth}");
                if let Some((message, rest)) = split {
                    assert_eq!((message, rest), stream.split_at(len));
                }
                let decoded = any.decode().unwrap();
                for view in [Some(any), common].into_iter().flatten() {
                    assert_eq!(view.message_len(), len);
                    assert_eq!(view.buffer_id(), decoded.buffer_id);
                    assert_eq!(view.total_len(), decoded.total_len);
                    assert_eq!(view.reason(), decoded.reason);
                    assert_eq!((view.table(), view.cookie()), (decoded.table, decoded.cookie));
                    assert_eq!(view.in_port(), decoded.in_port());
                    assert_eq!(view.data(), decoded.data.0);
                    assert_eq!(view.is_whole(), decoded.is_whole());
                    assert_eq!(view.decode(), Some(decoded));
                }
            }
        }
    }

    #[test]
    fn truncated_and_other_messages_are_no_packet_in() {
        for version in Version::ALL {
            for message in packets(version) {
                for len in 0..message.len() {
                    assert!(PacketInView::split_common(version, &message[..len]).is_none());
                    assert!(PacketInView::of_any_form(&message[..len]).is_none());
                }
                for at in [0, 1] {
                    let mut other = message.clone();
                    other[at] ^= 0x40;
                    assert!(PacketInView::split_common(version, &other).is_none());
                }
                // A length that ends before the packet.
                let mut short = message.clone();
                short[2..4].copy_from_slice(&17_u16.to_be_bytes());
                assert!(PacketInView::split_common(version, &short).is_none());
                assert!(PacketInView::of_any_form(&short).is_none());
            }
        }
    }
}
