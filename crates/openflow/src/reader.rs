//! Reading a message from front to back, with the offset at hand for errors.

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::{DecodeError, ErrorCode, Reason};

/// What is left to read of a message, or of a structure in it.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Offset of `rest` in the message.
    offset: usize,
    /// The error that answers a length fault in this part of the message.
    bad_length: ErrorCode,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Reader { rest: message, offset: 0, bad_length: ErrorCode::RequestBadLength }
    }

    /// From here on, a length fault is answered with `code`.
    pub(crate) fn answering(mut self, code: ErrorCode) -> Self {
        self.bad_length = code;
        self
    }

    /// Bytes that are left.
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

    /// What is left, without reading it.
    pub(crate) fn peek(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `T`, in place.
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

    /// The next `n` bytes.
    pub(crate) fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or_else(|| self.truncated(what, n))?;
        self.rest = rest;
        self.offset += n;
        Ok(head)
    }

    /// A reader of the next `n` bytes; this one goes on behind them.
    pub(crate) fn sub(&mut self, n: usize, what: &'static str) -> Result<Reader<'a>, DecodeError> {
        let offset = self.offset;
        let rest = self.take(n, what)?;
        Ok(Reader { rest, offset, bad_length: self.bad_length })
    }

    /// All that is left.
    pub(crate) fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest;
        self.offset += rest.len();
        self.rest = &[];
        rest
    }

    /// Nothing may be left.
    pub(crate) fn finish(&self, what: &'static str) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.error(what, Reason::Trailing(self.rest.len()), self.bad_length))
        }
    }

    /// A length field that cannot be.
    pub(crate) fn bad_length(&self, what: &'static str, length: usize) -> DecodeError {
        self.error(what, Reason::Length(length), self.bad_length)
    }

    /// An error at the next byte.
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
