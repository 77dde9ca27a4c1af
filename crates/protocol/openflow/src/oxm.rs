//! OpenFlow extensible match: a run of type-length-values (1.3.5 §7.2.3.2).
//!
//! ```text
//! +-------------------------------+-------------+-+---------------+----------------...
//! |             class             |    field    |M|    length     | value [mask]
//! +-------------------------------+-------------+-+---------------+----------------...
//! ```
//!
//! The value of class 0xffff begins with the number of an experimenter, which its length counts:
//! with it, the header has 64 bits.

use crate::field::{EXPERIMENTER_CLASS, EXPERIMENTER_LEN, Field};
use crate::r#match::Sparse;
use crate::reader::Reader;
use crate::wire::U32;
use crate::{DecodeError, EncodeError, ErrorCode, Match, Out, Reason, prerequisite};

/// The bit of a header that says that a mask follows the value.
const HAS_MASK: u32 = 1 << 8;

/// The first 32 bits of the header of a field (1.3.5 §7.2.3.2): class, number, whether it has a
/// mask, and length.
#[inline]
pub(crate) const fn header(field: Field, masked: bool) -> u32 {
    field.header() + if masked { HAS_MASK + field.bytes() as u32 } else { 0 }
}

/// Writes the header of a field, of 32 or 64 bits.
pub(crate) fn put_header(field: Field, masked: bool, out: &mut Out) -> Result<(), EncodeError> {
    out.put(&U32::new(header(field, masked)))?;
    field.experimenter().map_or(Ok(()), |experimenter| out.put(&U32::new(experimenter)))
}

/// Returns the field of a header; `None` for unknown fields.
pub(crate) fn field(header: u32, experimenter: Option<u32>) -> Option<Field> {
    Field::from_oxm((header >> 16) as u16, experimenter, (header >> 9 & 0x7f) as u8)
}

/// Returns whether an experimenter's number belongs to a header.
pub(crate) const fn has_experimenter(header: u32) -> bool {
    header >> 16 == EXPERIMENTER_CLASS as u32
}

pub(crate) const fn has_mask(header: u32) -> bool {
    header & HAS_MASK != 0
}

/// One type-length-value. Its length is checked, its value is not.
#[derive(Clone, Copy)]
pub(crate) struct Tlv<'a> {
    pub(crate) header: u32,
    /// What is behind it: the experimenter's number, value, mask.
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

    /// Returns its field; `None` for unknown ones.
    pub(crate) fn field(&self) -> Option<Field> {
        let experimenter = || self.payload.first_chunk().copied().map(u32::from_be_bytes);
        field(self.header, has_experimenter(self.header).then(experimenter).flatten())
    }

    pub(crate) fn has_mask(&self) -> bool {
        has_mask(self.header)
    }

    /// Checks and returns the value of its field, with its mask if it has one.
    pub(crate) fn value(&self, field: Field) -> Result<(u128, Option<u128>), DecodeError> {
        let expected = header(field, self.has_mask()) & 0xff;
        if self.payload.len() != expected as usize {
            let reason = Reason::Length(self.payload.len());
            return Err(self.error(field.name(), reason, ErrorCode::MatchBadLength));
        }
        let head = if field.experimenter().is_some() { EXPERIMENTER_LEN } else { 0 };
        let (value, mask) = self.payload[head..].split_at(field.bytes());
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
    fields: u128,
    eth_type: u16,
    ip_proto: u8,
    icmpv6_type: u8,
    vlan_vid: u16,
}

impl Seen {
    fn value(&self, field: Field) -> Option<u16> {
        (self.fields & field.bit_of_all() != 0).then_some(match field {
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
        if seen.fields & field.bit_of_all() != 0 {
            return Err(tlv.error(field.name(), Reason::Duplicate, ErrorCode::MatchDuplicateField));
        }
        if prerequisite::missing(field, |field| seen.value(field)) != 0 {
            return Err(tlv.error(
                field.name(),
                Reason::Prerequisite,
                ErrorCode::MatchBadPrerequisite,
            ));
        }
        seen.fields |= field.bit_of_all();
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

/// Collects a run of fields into a match. Fields without a meaning are kept as bytes: unknown
/// fields, fields with a wrong length, value or mask, and repeated fields.
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

/// Writes the fields of a match, by their places in [`Field::ALL`]. This order satisfies every
/// prerequisite.
pub(crate) fn encode(fields: &Match, out: &mut Out) -> Result<(), EncodeError> {
    for field in fields.basic_fields() {
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
    for Sparse { field, value, mask } in fields.sparse() {
        put_header(*field, mask.is_some(), out)?;
        for part in [Some(*value), *mask].into_iter().flatten() {
            out.append(part.to_be_bytes().get(16 - field.bytes()..).unwrap_or(&[]))?;
        }
    }
    if !fields.unread().is_empty() {
        return Err(EncodeError::Range { what: "a match that cannot be read" });
    }
    out.append(fields.unknown())
}
