//! Bytes that wait for a socket.

use std::io::{self, Write};

/// Maximum capacity that an empty queue keeps.
const KEEP_BYTES: usize = 4096;

/// Bytes that the kernel did not take yet. Not bounded here: above the high-water mark the switch
/// is not read.
#[derive(Default)]
pub(crate) struct SendQueue {
    bytes: Vec<u8>,
    /// Index of the first byte that is not written yet.
    head: usize,
}

impl SendQueue {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.head
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        // Reuse the space at the front before the queue grows, but only if it is at least as long
        // as the bytes to move. Otherwise a peer that takes one byte at a time would have them all
        // moved each time.
        let full = self.bytes.len() + bytes.len() > self.bytes.capacity();
        if full && self.head >= self.len() {
            self.bytes.drain(..self.head);
            self.head = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn write_to(&mut self, stream: &mut impl Write) -> io::Result<()> {
        self.head += write_some(stream, self.bytes.get(self.head..).unwrap_or(&[]))?;
        if self.is_empty() {
            self.head = 0;
            self.bytes.clear();
            if self.bytes.capacity() > KEEP_BYTES {
                self.bytes = Vec::new();
            }
        }
        Ok(())
    }
}

/// Writes as many bytes as the kernel takes. Returns their number.
pub(crate) fn write_some(stream: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            // A short write means that the kernel's buffer is full: do not try again.
            Ok(n) => {
                written += n;
                if n < rest.len() {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use super::*;

    /// Takes `room` bytes, then none.
    struct Pipe {
        took: Vec<u8>,
        room: usize,
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.room);
            if n == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.room -= n;
            self.took.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn bytes_leave_the_queue_in_order_in_writes_of_any_size() {
        let (mut queue, mut pipe) = (SendQueue::default(), Pipe { took: Vec::new(), room: 0 });
        let mut pushed = Vec::new();
        for step in 0..5000_usize {
            let bytes: Vec<u8> = (0..step % 97).map(|i| (step + i) as u8).collect();
            queue.push(&bytes);
            pushed.extend_from_slice(&bytes);
            pipe.room = step % 89;
            queue.write_to(&mut pipe).unwrap();
            assert_eq!(pipe.took.len() + queue.len(), pushed.len());
        }
        pipe.room = usize::MAX;
        queue.write_to(&mut pipe).unwrap();
        assert!(queue.is_empty());
        assert!(pipe.took == pushed);
    }

    #[test]
    fn a_queue_that_never_empties_stays_as_small_as_what_waits_in_it() {
        let (mut queue, mut pipe) = (SendQueue::default(), Pipe { took: Vec::new(), room: 0 });
        queue.push(&[7; 64 * 1024]);
        for _ in 0..10_000 {
            queue.push(&[7; 1000]);
            pipe.room = 1000;
            queue.write_to(&mut pipe).unwrap();
            pipe.took.clear();
        }
        assert_eq!(queue.len(), 64 * 1024);
        assert!(queue.bytes.capacity() <= 4 * 64 * 1024, "{}", queue.bytes.capacity());
    }
}
