//! OpenFlow extensible match: a run of type-length-values (1.3.5 §7.2.3.2).
//!
//! ```text
//! +-------------------------------+-------------+-+---------------+----------------...
//! |             class             |    field    |M|    length     | value [mask]
//! +-------------------------------+-------------+-+---------------+----------------...
//! ```

use crate::field::Field;
use crate::reader::Reader;
use crate::wire::U32;
use crate::{DecodeError, EncodeError, ErrorCode, Match, Out, Reason, prerequisite};

/// The header of a field (1.3.5 §7.2.3.2): class, number, whether it has a mask, and length.
#[inline]
pub(crate) const fn header(field: Field, masked: bool) -> u32 {
    let length = if masked { field.bytes() * 2 } else { field.bytes() };
    (field.class() as u32) << 16
        | (field.number() as u32) << 9
        | (masked as u32) << 8
        | length as u32
}

pub(crate) fn field(header: u32) -> Option<Field> {
    Field::from_oxm((header >> 16) as u16, (header >> 9 & 0x7f) as u8)
}

pub(crate) const fn has_mask(header: u32) -> bool {
    header & 0x100 != 0
}

/// One type-length-value. Its length is checked, its value is not.
#[derive(Clone, Copy)]
pub(crate) struct Tlv<'a> {
    pub(crate) header: u32,
    pub(crate) payload: &'a [u8],
    /// Offset in the message, for errors.
    pub(crate) offset: usize,
}

impl<'a> Tlv<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let offset = reader.offset();
        let header = reader.fixed::<U32>("oxm header")?.get();
        let payload = reader.take((header & 0xff) as usize, "oxm value")?;
        Ok(Tlv { header, payload, offset })
    }

    /// Returns its basic field; `None` for other classes and unknown fields.
    pub(crate) fn field(&self) -> Option<Field> {
        field(self.header)
    }

    pub(crate) fn has_mask(&self) -> bool {
        has_mask(self.header)
    }

    /// Checks and returns the value of a basic field, with its mask if it has one.
    pub(crate) fn value(&self, field: Field) -> Result<(u128, Option<u128>), DecodeError> {
        let expected = header(field, self.has_mask()) & 0xff;
        if self.payload.len() != expected as usize {
            let reason = Reason::Length(self.payload.len());
            return Err(self.error(field.name(), reason, ErrorCode::MatchBadLength));
        }
        let (value, mask) = self.payload.split_at(field.bytes());
        let value = number(value);
        if value > field.max() {
            let reason = Reason::Value(value as u64);
            return Err(self.error(field.name(), reason, ErrorCode::MatchBadValue));
        }
        if !self.has_mask() {
            return Ok((value, None));
        }
        let mask = number(mask);
        if value & !mask != 0 {
            return Err(self.error(field.name(), Reason::Mask, ErrorCode::MatchBadWildcards));
        }
        Ok((value, Some(mask)))
    }

    pub(crate) fn error(
        &self,
        what: &'static str,
        reason: Reason,
        answer: ErrorCode,
    ) -> DecodeError {
        DecodeError { what, offset: self.offset, reason, answer }
    }
}

/// Reads a big-endian number of at most 16 bytes.
pub(crate) fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |n, byte| n << 8 | u128::from(*byte))
}

/// Fields read so far, as prerequisites need them.
#[derive(Clone, Copy, Default)]
struct Seen {
    fields: u64,
    eth_type: u16,
    ip_proto: u8,
    icmpv6_type: u8,
    vlan_vid: u16,
}

impl Seen {
    fn value(&self, field: Field) -> Option<u16> {
        (self.fields & field.bit() != 0).then_some(match field {
            Field::EthType => self.eth_type,
            Field::IpProto => self.ip_proto.into(),
            Field::Icmpv6Type => self.icmpv6_type.into(),
            Field::VlanVid => self.vlan_vid,
            _ => 0,
        })
    }
}

/// Checks a run of fields: lengths, values, masks, duplicates and prerequisites.
///
/// A mask on a field for which the specification allows none is accepted: Open vSwitch accepts and
/// reports masked ports. A switch that does not support it answers `OFPBMC_BAD_MASK` itself.
pub(crate) fn check(mut reader: Reader<'_>) -> Result<(), DecodeError> {
    // The usual match of a packet_in: in_port, without a mask. It is always right.
    if let [0x80, 0x00, 0x00, 0x04, _, _, _, _] = reader.peek() {
        return Ok(());
    }
    let mut seen = Seen::default();
    while !reader.is_empty() {
        let tlv = Tlv::read(&mut reader)?;
        let Some(field) = tlv.field() else { continue };
        let (value, _) = tlv.value(field)?;
        if seen.fields & field.bit() != 0 {
            return Err(tlv.error(field.name(), Reason::Duplicate, ErrorCode::MatchDuplicateField));
        }
        if prerequisite::missing(field, |field| seen.value(field)) != 0 {
            return Err(tlv.error(
                field.name(),
                Reason::Prerequisite,
                ErrorCode::MatchBadPrerequisite,
            ));
        }
        seen.fields |= field.bit();
        match field {
            Field::EthType => seen.eth_type = value as u16,
            Field::IpProto => seen.ip_proto = value as u8,
            Field::Icmpv6Type => seen.icmpv6_type = value as u8,
            Field::VlanVid => seen.vlan_vid = value as u16,
            _ => {}
        }
    }
    Ok(())
}

/// Returns the fields at the start of `bytes` that are complete.
pub(crate) fn whole_fields(bytes: &[u8]) -> &[u8] {
    let mut reader = Reader::new(bytes);
    loop {
        let rest = reader.len();
        if Tlv::read(&mut reader).is_err() {
            return bytes.get(..bytes.len() - rest).unwrap_or(bytes);
        }
    }
}

/// Collects a run of fields into a match. Fields without a meaning are kept as bytes: fields of
/// other classes, fields with a wrong length, value or mask, and repeated fields.
pub(crate) fn collect(bytes: &[u8]) -> Match {
    let mut all = Match::any();
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let rest = reader.peek();
        let Ok(tlv) = Tlv::read(&mut reader) else {
            all.push_unread(rest);
            break;
        };
        match tlv.field().map(|field| (field, tlv.value(field))) {
            Some((field, Ok((value, mask)))) if !all.has(field) => {
                all.put_field(field, value, mask);
            }
            _ => all.push_unknown(tlv.header, tlv.payload),
        }
    }
    all
}

/// A whole field without a mask.
#[derive(zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::Unaligned)]
#[repr(C, packed)]
struct Exact<const N: usize> {
    header: U32,
    value: [u8; N],
}

/// Writes the fields of a match, by number. This order satisfies every prerequisite.
pub(crate) fn encode(fields: &Match, out: &mut Out) -> Result<(), EncodeError> {
    for field in fields.fields() {
        let masked = fields.is_masked(field);
        let head = U32::new(header(field, masked));
        // With lengths known at compile time, each of these is a few moves.
        match field.bytes() {
            1 => out.put(&Exact { header: head, value: fields.bytes::<1>(field) })?,
            2 => out.put(&Exact { header: head, value: fields.bytes::<2>(field) })?,
            4 => out.put(&Exact { header: head, value: fields.bytes::<4>(field) })?,
            6 => out.put(&Exact { header: head, value: fields.bytes::<6>(field) })?,
            _ => {
                out.put(&head)?;
                out.append(fields.value_bytes(field))?;
            }
        }
        if masked {
            out.append(fields.mask_bytes(field))?;
        }
    }
    if !fields.unread().is_empty() {
        return Err(EncodeError::Range { what: "a match that cannot be read" });
    }
    out.append(fields.unknown())
}
