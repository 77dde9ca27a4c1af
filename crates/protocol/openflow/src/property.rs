//! Properties: a type, a length, a content, and padding to eight bytes.
//!
//! ```text
//! +---------------+---------------+--------...--------+---...---+
//! |     type      |    length     |      content      |  zeros  |
//! +---------------+---------------+--------...--------+---...---+
//! ```
//!
//! The length counts type, length and content, not the padding. In 1.3 queues (§7.2.2) and table
//! features (§7.3.5.5.2) have lists of them, and so has a message of a bundle; from 1.4 on also
//! ports, tables, and the configuration of asynchronous messages.
//!
//! The properties of a structure are an enumeration with the trait [`Element`]: its `decode` is
//! [`read`] and a `match` on the type, its `encode` is [`write`]. A type without a meaning here is
//! kept as a [`Property`].

use crate::list::Element;
use crate::reader::Reader;
use crate::wire::{Tlv, U16};
use crate::{Bytes, DecodeError, EncodeError, Out, Version};

/// Reads one property. Returns its type and its content, and moves the reader past the padding.
pub(crate) fn read<'a>(
    reader: &mut Reader<'a>,
    what: &'static str,
) -> Result<(u16, Reader<'a>), DecodeError> {
    let (kind, content) = read_unpadded(reader, what)?;
    let length = size_of::<Tlv>() + content.len();
    reader.take(length.next_multiple_of(8) - length, what)?;
    Ok((kind, content))
}

/// As [`read`], for a type and a content without padding.
pub(crate) fn read_unpadded<'a>(
    reader: &mut Reader<'a>,
    what: &'static str,
) -> Result<(u16, Reader<'a>), DecodeError> {
    let start = *reader;
    let head: &Tlv = reader.fixed(what)?;
    let length = usize::from(head.length.get());
    let content = length.checked_sub(size_of::<Tlv>());
    let content = content.ok_or_else(|| start.bad_length(what, length))?;
    Ok((head.kind.get(), reader.sub(content, what)?))
}

/// Writes one property, with its length and its padding.
pub(crate) fn write(
    kind: u16,
    what: &'static str,
    out: &mut Out,
    content: impl FnOnce(&mut Out) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    write_unpadded(kind, what, out, content)?;
    out.pad8(start)
}

/// As [`write`], without padding.
pub(crate) fn write_unpadded(
    kind: u16,
    what: &'static str,
    out: &mut Out,
    content: impl FnOnce(&mut Out) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.put(&Tlv { kind: U16::new(kind), length: U16::ZERO })?;
    content(out)?;
    out.patch_length(start, 2, what)
}

/// A property as type and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Property<'a> {
    /// Its type.
    pub kind: u16,
    /// Its content, without padding.
    pub content: Bytes<'a>,
}

impl<'a> Element<'a> for Property<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (kind, content) = read(reader, "property")?;
        Ok(Property { kind, content: Bytes(content.peek()) })
    }

    fn encode(&self, _: Version, out: &mut Out) -> Result<(), EncodeError> {
        write(self.kind, "property", out, |out| out.append(&self.content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{List, Reason};

    #[test]
    fn properties_of_all_lengths_come_back_and_begin_at_multiples_of_eight() {
        let content = [7; 20];
        let properties: Vec<_> = (0..=content.len())
            .map(|length| Property { kind: length as u16, content: Bytes(&content[..length]) })
            .collect();
        let mut out = Out::with_capacity(1024);
        for property in &properties {
            assert_eq!(out.len() % 8, 0);
            property.encode(Version::HIGHEST, &mut out).unwrap();
        }
        let read: List<'_, Property<'_>> =
            List::decode(Version::HIGHEST, Reader::new(out.as_slice())).unwrap();
        assert!(read.iter().eq(properties));
    }

    #[test]
    fn a_property_that_is_cut_or_too_short_is_an_error() {
        let whole = [0, 9, 0, 7, 1, 2, 3, 0];
        for length in 0..whole.len() {
            let mut reader = Reader::new(&whole[..length]);
            let error = read(&mut reader, "property").err().map(|error| error.reason);
            assert!(matches!(error, Some(Reason::Truncated { .. })), "{length}: {error:?}");
        }
        for length in 0..4 {
            let bytes = [0, 9, 0, length, 0, 0, 0, 0];
            let error = read(&mut Reader::new(&bytes), "property").err().map(|error| error.reason);
            assert_eq!(error, Some(Reason::Length(length.into())));
        }
    }
}
