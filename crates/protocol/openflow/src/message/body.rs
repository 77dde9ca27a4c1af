//! The content of a message, behind its header.

use crate::reader::Reader;
use crate::{Bytes, DecodeError, EncodeError, Out, Version};

/// The content of a message: what is behind the header.
pub(crate) trait Body<'a>: Sized {
    /// Reads the content. What it leaves is an error, except where its direction allows it.
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// Writes the content.
    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError>;
}

/// The data of an echo.
impl<'a> Body<'a> for Bytes<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Bytes(reader.take_rest()))
    }

    fn encode(&self, _: Version, out: &mut Out) -> Result<(), EncodeError> {
        out.append(self)
    }
}
