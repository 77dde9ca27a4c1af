//! A match in a message.

use std::fmt;

use zerocopy::IntoBytes;

use crate::reader::Reader;
use crate::wire::{U16, U32, v10, v13};
use crate::{
    DecodeError, EncodeError, ErrorCode, Family, Field, Match, Out, Port, Reason, Version,
};
use crate::{match_v10, oxm};

/// A match in a message: the checked bytes that were read, or a [`Match`] to write.
///
/// Two views are equal if they mean the same. [`MatchView::to_match`] returns the meaning.
#[derive(Clone, Copy)]
pub struct MatchView<'a>(Repr<'a>);

#[derive(Clone, Copy)]
enum Repr<'a> {
    V10(&'a v10::Match),
    /// Fields, without header and padding.
    Oxm(&'a [u8]),
    /// A match of 1.3 of another type, without padding, or bytes that are not a match.
    Unread(&'a [u8]),
    /// The ingress port: the whole match of a packet_in in 1.0.
    InPort(Port),
    Match(&'a Match),
}

/// `OFPMT_OXM`, the only match type that is not deprecated (1.3.5 §7.2.3.1).
const TYPE_OXM: u16 = 1;

impl<'a> MatchView<'a> {
    /// The match of packets that came in by `port`.
    #[must_use]
    pub const fn port(port: Port) -> Self {
        MatchView(Repr::InPort(port))
    }

    /// Converts it to a [`Match`], field by field.
    #[must_use]
    pub fn to_match(&self) -> Match {
        match self.0 {
            Repr::V10(wire) => match_v10::to_match(wire),
            Repr::Oxm(bytes) => oxm::collect(bytes),
            Repr::Unread(bytes) => {
                let mut m = Match::any();
                m.push_unread(bytes);
                m
            }
            Repr::InPort(port) => Match::any().in_port(port),
            Repr::Match(m) => m.clone(),
        }
    }

    /// The bytes that it was read from, without header and padding. They order matches without
    /// making anything of them. Empty for a match to write.
    #[must_use]
    pub fn received_bytes(&self) -> &'a [u8] {
        match self.0 {
            Repr::V10(wire) => wire.as_bytes(),
            Repr::Oxm(bytes) | Repr::Unread(bytes) => bytes,
            Repr::InPort(_) | Repr::Match(_) => &[],
        }
    }

    /// Whether it matches, as a match of 1.0, without wildcards ([`Match::is_exact`]).
    #[must_use]
    pub fn is_exact(&self) -> bool {
        match self.0 {
            Repr::Match(m) => m.is_exact(),
            _ => self.to_match().is_exact(),
        }
    }

    /// Returns the ingress port, and reads as little as possible for it.
    #[must_use]
    #[inline(always)]
    pub fn in_port(&self) -> Option<Port> {
        match self.0 {
            Repr::InPort(port) => Some(port),
            other => MatchView(other).look_for_in_port(),
        }
    }

    // Takes `self` by value, so that callers of `in_port` need not store the match in memory.
    fn look_for_in_port(self) -> Option<Port> {
        match self.0 {
            Repr::Oxm([0x80, 0x00, 0x00, 0x04, a, b, c, d, ..]) => {
                Some(Port(u32::from_be_bytes([*a, *b, *c, *d])))
            }
            _ => self.to_match().value(Field::InPort).map(|value| Port(value as u32)),
        }
    }

    pub(crate) fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version.family() {
            Family::Fixed => Ok(MatchView(Repr::V10(reader.fixed("match")?))),
            Family::Oxm => {
                let start = *reader;
                let head: &v13::Match = reader.fixed("match")?;
                let is_oxm = head.kind.get() == TYPE_OXM;
                if !is_oxm && !reader.is_liberal() {
                    let reason = Reason::Value(head.kind.get().into());
                    return Err(start.error("match.type", reason, ErrorCode::MatchBadType));
                }
                let length = usize::from(head.length.get());
                let fields_len = length.checked_sub(size_of::<v13::Match>()).ok_or_else(|| {
                    start.answering(ErrorCode::MatchBadLength).bad_length("match.length", length)
                })?;
                let fields =
                    reader.answering(ErrorCode::MatchBadLength).sub(fields_len, "match fields")?;
                let bytes = fields.peek();
                let mut behind_head = length.next_multiple_of(8) - size_of::<v13::Match>();
                if reader.is_liberal() {
                    // Some switches omit the padding of a match at the end of its message.
                    behind_head = behind_head.min(reader.len());
                } else {
                    oxm::check(fields)?;
                }
                reader.take(behind_head, "match")?;
                if is_oxm {
                    return Ok(MatchView(Repr::Oxm(bytes)));
                }
                let whole = start.peek().get(..length).unwrap_or(&[]);
                Ok(MatchView(Repr::Unread(whole)))
            }
        }
    }

    /// Reads the match at the start of the rest of an item. In a liberal reading, a match of
    /// invalid length takes the whole rest.
    pub(crate) fn decode_within(
        version: Version,
        reader: &mut Reader<'a>,
    ) -> Result<Self, DecodeError> {
        let start = *reader;
        match MatchView::decode(version, reader) {
            Err(_) if start.is_liberal() => {
                *reader = start;
                Ok(MatchView(Repr::Unread(reader.take_rest())))
            }
            result => result,
        }
    }

    /// See [`Match::check`]. A match that was read is not checked: it stays as received.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), EncodeError> {
        match self.0 {
            Repr::Match(m) => m.check(),
            _ => Ok(()),
        }
    }

    pub(crate) fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        match (version.family(), self.0) {
            (Family::Fixed, Repr::V10(wire)) => out.put(wire),
            (Family::Fixed, Repr::Match(m)) => out.put(&match_v10::from_match(m)?),
            (Family::Fixed, _) => out.put(&match_v10::from_match(&self.to_match())?),
            (Family::Oxm, Repr::Unread(bytes)) => {
                let start = out.len();
                out.append(bytes)?;
                out.pad8(start)
            }
            (Family::Oxm, repr) => {
                let start = out.len();
                out.put(&v13::Match { kind: U16::new(TYPE_OXM), length: U16::ZERO })?;
                match repr {
                    Repr::Oxm(bytes) => out.append(bytes)?,
                    Repr::InPort(port) => {
                        out.put(&U32::new(oxm::header(Field::InPort, false)))?;
                        out.put(&U32::new(port.0))?;
                    }
                    Repr::Match(m) => oxm::encode(m, out)?,
                    // Handled by an arm above.
                    Repr::Unread(_) => {}
                    Repr::V10(wire) => oxm::encode(&match_v10::to_match(wire), out)?,
                }
                out.patch_length(start, 2, "match")?;
                out.pad8(start)
            }
        }
    }
}

impl<'a> From<&'a Match> for MatchView<'a> {
    fn from(m: &'a Match) -> Self {
        MatchView(Repr::Match(m))
    }
}

impl PartialEq for MatchView<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.to_match() == other.to_match()
    }
}

impl Eq for MatchView<'_> {}

/// Prints as `ovs-ofctl` does, `tcp,in_port=1,tp_dst=80`; `any` for a match of all packets. A
/// [`Match`] prints with the names of the specification.
impl fmt::Display for MatchView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_v10 = matches!(self.0, Repr::V10(_));
        let matching = &self.to_match();
        match matching.is_any() {
            true => f.write_str("any"),
            false => crate::print::OvsMatch { matching, is_v10 }.fmt(f),
        }
    }
}

impl fmt::Debug for MatchView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_match(), f)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for MatchView<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_match().serialize(serializer)
    }
}
