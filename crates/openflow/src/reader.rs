//! Reading a message from front to back, with the offset at hand for errors.

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::{DecodeError, ErrorCode, Reason};

/// How strictly the content of a message is read. Framing is always strict: a length that overruns what
/// encloses it is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Everything has to be as the specification has it. For what a switch is asked to do.
    Strict,
    /// What is framed and makes no sense is kept as bytes: match fields with a wrong length, a wrong mask or
    /// twice, match types, instructions and actions. A match field may lack the fields that it depends on.
    /// For what a switch reports: it is there, whatever anybody says against it.
    Liberal,
}

/// What is left to read of a message, or of a structure in it.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Offset of `rest` in the message.
    offset: usize,
    /// The error that answers a length fault in this part of the message.
    bad_length: ErrorCode,
    reading: Reading,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        let (offset, bad_length) = (0, ErrorCode::RequestBadLength);
        Reader { rest: message, offset, bad_length, reading: Reading::Strict }
    }

    /// Reads the rest in this way.
    pub(crate) fn reading(mut self, reading: Reading) -> Self {
        self.reading = reading;
        self
    }

    /// Whether what is odd and can be framed is kept as bytes ([`Reading::Liberal`]).
    pub(crate) fn is_liberal(&self) -> bool {
        self.reading == Reading::Liberal
    }

    pub(crate) fn how(&self) -> Reading {
        self.reading
    }

    /// `read`, or, where it fails and the reading is liberal, `kept` of the bytes that were to be read.
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
        Ok(Reader { rest, offset, bad_length: self.bad_length, reading: self.reading })
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
