//! The header of every message. [`frame`] cuts a stream into messages with it.

use std::fmt;

use crate::reader::Reader;
use crate::wire;
use crate::{DecodeError, ErrorCode, Reason};

/// Length of the header in bytes (1.0 §5.1; 1.3.5 §7.1).
pub const HEADER_LEN: usize = 8;

/// Length of the longest message in bytes: the length field has 16 bits.
pub const MAX_MESSAGE_LEN: usize = u16::MAX as usize;

/// The header of a message. Only its eight bytes are read; no value is checked.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+-------------------------------+
/// |    version    |     type      |            length             |
/// +---------------+---------------+-------------------------------+
/// |                              xid                              |
/// +---------------------------------------------------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version byte; see [`crate::Version::from_wire`].
    pub version: u8,
    /// Message type; its meaning depends on the version, see [`crate::MessageKind`].
    pub kind: u8,
    /// Length of the whole message in bytes, header included.
    pub length: u16,
    /// Transaction id: a reply has the xid of its request.
    pub xid: u32,
}

impl Header {
    /// Reads the header at the start of `bytes`; `None` if there are fewer than eight.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Header> {
        let wire: &wire::Header = Reader::new(bytes).fixed("header").ok()?;
        Some(Header {
            version: wire.version,
            kind: wire.kind,
            length: wire.length.get(),
            xid: wire.xid.get(),
        })
    }

    /// Returns the version as text, also for unsupported versions: `1.4`.
    #[must_use]
    pub fn version_name(&self) -> impl fmt::Display + use<> {
        crate::print::VersionName(self.version)
    }
}

/// One whole message of a stream: its header, and all its bytes (header included).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageFrame<'a> {
    /// The header.
    pub header: Header,
    /// The message, `header.length` bytes.
    pub bytes: &'a [u8],
}

/// Cuts the first message off a stream. `Ok(None)` means that more bytes are needed.
///
/// # Errors
/// A length below the header's own. The start of the next message is then unknown, so the
/// connection has to be closed.
pub fn frame(stream: &[u8]) -> Result<Option<MessageFrame<'_>>, DecodeError> {
    let Some(header) = Header::read(stream) else { return Ok(None) };
    let length = usize::from(header.length);
    if length < HEADER_LEN {
        return Err(DecodeError {
            what: "header.length",
            offset: 2,
            reason: Reason::Length(length),
            answer: ErrorCode::RequestBadLength,
        });
    }
    Ok(stream.get(..length).map(|bytes| MessageFrame { header, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_cut_at_message_ends() {
        let stream = [4, 2, 0, 9, 0, 0, 0, 7, 0xaa, 4, 3, 0, 8, 0, 0, 0, 7];
        let first = frame(&stream).unwrap().unwrap();
        assert_eq!((first.bytes.len(), first.header.kind, first.header.xid), (9, 2, 7));
        let second = frame(&stream[9..]).unwrap().unwrap();
        assert_eq!((second.bytes.len(), second.header.kind), (8, 3));
    }

    #[test]
    fn an_unfinished_message_waits_and_a_broken_length_is_an_error() {
        for n in 0..9 {
            assert_eq!(frame(&[4, 2, 0, 9, 0, 0, 0, 7, 1][..n]), Ok(None));
        }
        for length in 0..8 {
            assert!(frame(&[4, 2, 0, length, 0, 0, 0, 7]).is_err());
        }
    }
}
