//! The buffer that messages are written to.

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{Immutable, IntoBytes};

use crate::wire;
use crate::{EncodeError, MAX_MESSAGE_LEN};

/// A send buffer of fixed size. Messages are appended in place. A message that does not fit or
/// fails half-way leaves no trace.
///
/// It is allocated once and never grows: a writer gets [`EncodeError::Full`] at the limit.
pub struct Out {
    bytes: Box<[u8]>,
    len: usize,
}

impl Out {
    /// Creates an empty buffer for `capacity` bytes, at most 4 GiB.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.min(u32::MAX as usize);
        Out { bytes: vec![0; capacity].into_boxed_slice(), len: 0 }
    }

    /// Returns the messages written so far.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }

    /// Number of bytes written so far. [`Out::truncate`] takes it as a mark.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether nothing is written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of bytes that still fit.
    #[must_use]
    pub fn room(&self) -> usize {
        self.bytes.len() - self.len
    }

    /// Removes everything after `mark`, an earlier [`Out::len`].
    pub fn truncate(&mut self, mark: usize) {
        self.len = self.len.min(mark);
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends encoded messages.
    ///
    /// # Errors
    /// [`EncodeError::Full`]; then nothing is appended.
    #[inline]
    pub fn append(&mut self, messages: &[u8]) -> Result<(), EncodeError> {
        let end = self.len + messages.len();
        let room = self.bytes.get_mut(self.len..end).ok_or(EncodeError::Full)?;
        room.copy_from_slice(messages);
        self.len = end;
        Ok(())
    }

    /// Returns the next `N` bytes to write to, and the length of the buffer. The caller adds the
    /// number of bytes written to the length.
    #[inline(always)]
    pub(crate) fn window<const N: usize>(
        &mut self,
    ) -> Result<(&mut [u8; N], &mut usize), EncodeError> {
        // As 32 bits, so that the compiler can see that the end does not overflow.
        let start = self.len as u32 as usize;
        let room = self.bytes.get_mut(start..start + N).and_then(<[u8]>::first_chunk_mut);
        Ok((room.ok_or(EncodeError::Full)?, &mut self.len))
    }

    /// Writes one message: header, the output of `body`, then the length.
    ///
    /// Until then its length is zero, which no receiver takes for a message. If `body` fails or
    /// panics, the buffer is truncated to where it was.
    pub(crate) fn message(
        &mut self,
        version: u8,
        kind: u8,
        xid: u32,
        body: impl FnOnce(&mut Out) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let open = OpenMessage { start: self.len, out: self, closed: false };
        open.out.put(&wire::Header { version, kind, length: U16::ZERO, xid: U32::new(xid) })?;
        body(open.out)?;
        open.close()
    }

    #[inline]
    pub(crate) fn put<T: IntoBytes + Immutable>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.append(value.as_bytes())
    }

    #[inline]
    pub(crate) fn zeros(&mut self, n: usize) -> Result<(), EncodeError> {
        let end = self.len + n;
        self.bytes.get_mut(self.len..end).ok_or(EncodeError::Full)?.fill(0);
        self.len = end;
        Ok(())
    }

    /// Appends zeros until the bytes since `start` are a multiple of eight.
    pub(crate) fn pad8(&mut self, start: usize) -> Result<(), EncodeError> {
        let written = self.len - start;
        self.zeros(written.next_multiple_of(8) - written)
    }

    /// Writes the bytes since `start` as the 16-bit length at `start + at`.
    pub(crate) fn patch_length(
        &mut self,
        start: usize,
        at: usize,
        what: &'static str,
    ) -> Result<(), EncodeError> {
        self.patch_length_less(start, at, 0, what)
    }

    /// Writes the bytes since `start`, minus `head`, as the 16-bit length at `start + at`.
    pub(crate) fn patch_length_less(
        &mut self,
        start: usize,
        at: usize,
        head: usize,
        what: &'static str,
    ) -> Result<(), EncodeError> {
        let length =
            u16::try_from(self.len - start - head).map_err(|_| EncodeError::TooLong { what })?;
        let field = self.bytes.get_mut(start + at..start + at + 2).ok_or(EncodeError::Full)?;
        field.copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

impl std::fmt::Debug for Out {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Out({} of {} bytes)", self.len, self.bytes.len())
    }
}

/// A message being written. If dropped before it is closed, it is removed.
struct OpenMessage<'o> {
    out: &'o mut Out,
    start: usize,
    closed: bool,
}

impl OpenMessage<'_> {
    fn close(mut self) -> Result<(), EncodeError> {
        if self.out.len - self.start > MAX_MESSAGE_LEN {
            return Err(EncodeError::TooLong { what: "message" });
        }
        self.out.patch_length(self.start, 2, "message")?;
        self.closed = true;
        Ok(())
    }
}

impl Drop for OpenMessage<'_> {
    fn drop(&mut self) {
        if !self.closed {
            self.out.truncate(self.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer full of old bytes, which shows whether each relevant byte is written.
    fn dirty(capacity: usize) -> Out {
        Out { bytes: vec![0xa5; capacity].into_boxed_slice(), len: 0 }
    }

    #[test]
    fn a_message_gets_its_length_when_it_closes() {
        let mut out = dirty(64);
        out.message(4, 2, 7, |out| out.append(b"abc")).unwrap();
        assert_eq!(out.as_slice(), [4, 2, 0, 11, 0, 0, 0, 7, b'a', b'b', b'c']);
    }

    #[test]
    fn a_message_that_fails_leaves_no_trace() {
        let mut out = dirty(16);
        out.message(4, 2, 7, |_| Ok(())).unwrap();
        let before = out.as_slice().to_vec();
        assert_eq!(out.message(4, 2, 8, |out| out.append(b"a")), Err(EncodeError::Full));
        assert_eq!(out.as_slice(), before);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = out.message(4, 2, 8, |_| panic!("in a body"));
        }));
        assert!(panicked.is_err());
        assert_eq!(out.as_slice(), before);
    }

    #[test]
    fn a_message_over_64_kib_is_refused() {
        let mut out = dirty(1 << 17);
        assert_eq!(
            out.message(4, 2, 7, |out| out.zeros(MAX_MESSAGE_LEN - 7)),
            Err(EncodeError::TooLong { what: "message" })
        );
        assert!(out.is_empty());
        out.message(4, 2, 7, |out| out.zeros(MAX_MESSAGE_LEN - 8)).unwrap();
        assert_eq!(out.len(), MAX_MESSAGE_LEN);
    }
}
