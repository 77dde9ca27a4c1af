//! Reads a message from front to back, and knows the offset for errors.

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::{DecodeError, ErrorCode, Reason};

/// How strictly the content of a message is read. Framing is always strict: a length beyond the
/// enclosing structure is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Everything has to follow the specification. For messages to a switch.
    Strict,
    /// Framed content without a meaning is kept as bytes: match types, instructions, actions, and
    /// match fields that are repeated or have a wrong length or mask. A match field may lack the
    /// fields that it depends on. For messages from a switch: its content exists, whether it is
    /// valid or not.
    Liberal,
}

/// The unread rest of a message or of a structure in it.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Offset of `rest` in the message.
    offset: usize,
    /// Error code for a length fault in this part of the message.
    bad_length: ErrorCode,
    reading: Strictness,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        let (offset, bad_length) = (0, ErrorCode::RequestBadLength);
        Reader { rest: message, offset, bad_length, reading: Strictness::Strict }
    }

    /// Sets how strictly the rest is read.
    pub(crate) fn reading(mut self, reading: Strictness) -> Self {
        self.reading = reading;
        self
    }

    /// Returns whether framed content without a meaning is kept as bytes ([`Strictness::Liberal`]).
    pub(crate) fn is_liberal(&self) -> bool {
        self.reading == Strictness::Liberal
    }

    pub(crate) fn how(&self) -> Strictness {
        self.reading
    }

    /// Returns the result of `read`. If it fails in a liberal reading, returns `kept` of the unread
    /// bytes.
    pub(crate) fn or_keep<T>(
        self,
        read: impl FnOnce(Reader<'a>) -> Result<T, DecodeError>,
        kept: impl FnOnce(&'a [u8]) -> T,
    ) -> Result<T, DecodeError> {
        match read(self) {
            Err(_) if self.is_liberal() => Ok(kept(self.rest)),
            result => result,
        }
    }

    /// Answers later length faults with `code`.
    pub(crate) fn answering(mut self, code: ErrorCode) -> Self {
        self.bad_length = code;
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Offset of the next byte, from the start of the message.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the rest without reading it.
    pub(crate) fn peek(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads the next `T`, in place.
    pub(crate) fn fixed<T>(&mut self, what: &'static str) -> Result<&'a T, DecodeError>
    where
        T: FromBytes + KnownLayout + Immutable + Unaligned,
    {
        match T::ref_from_prefix(self.rest) {
            Ok((value, rest)) => {
                self.offset += self.rest.len() - rest.len();
                self.rest = rest;
                Ok(value)
            }
            Err(_) => Err(self.truncated(what, size_of::<T>())),
        }
    }

    pub(crate) fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or_else(|| self.truncated(what, n))?;
        self.rest = rest;
        self.offset += n;
        Ok(head)
    }

    /// Returns a reader of the next `n` bytes, and moves this one past them.
    pub(crate) fn sub(&mut self, n: usize, what: &'static str) -> Result<Reader<'a>, DecodeError> {
        let offset = self.offset;
        let rest = self.take(n, what)?;
        Ok(Reader { rest, offset, bad_length: self.bad_length, reading: self.reading })
    }

    pub(crate) fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest;
        self.offset += rest.len();
        self.rest = &[];
        rest
    }

    pub(crate) fn finish(&self, what: &'static str) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.error(what, Reason::Trailing(self.rest.len()), self.bad_length))
        }
    }

    /// Makes an error for an invalid length field.
    pub(crate) fn bad_length(&self, what: &'static str, length: usize) -> DecodeError {
        self.error(what, Reason::Length(length), self.bad_length)
    }

    pub(crate) fn error(
        &self,
        what: &'static str,
        reason: Reason,
        answer: ErrorCode,
    ) -> DecodeError {
        DecodeError { what, offset: self.offset, reason, answer }
    }

    fn truncated(&self, what: &'static str, need: usize) -> DecodeError {
        self.error(what, Reason::Truncated { need, have: self.rest.len() }, self.bad_length)
    }
}
