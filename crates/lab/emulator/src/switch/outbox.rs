//! Bytes that wait for a controller.

/// Memory that an empty outbox keeps; memory beyond it is freed after a large reply.
const KEPT_BYTES: usize = 64 << 10;

/// Bytes that wait for a controller, in order.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// Number of bytes that were sent.
    sent: usize,
}

impl Outbox {
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        // Sent bytes are removed once they are the larger part, so each byte moves at most once.
        if self.sent > self.len() {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes the first `n` bytes: they were sent.
    pub(super) fn consume(&mut self, n: usize) {
        self.sent += n.min(self.len());
        if self.len() == 0 {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_the_order_in_which_they_came() {
        let mut outbox = Outbox::default();
        let (mut sent, mut wanted): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
        for round in 0..100_u8 {
            outbox.append(&[round; 7]);
            wanted.extend([round; 7]);
            let part = outbox.len().min(5);
            sent.extend(&outbox.as_slice()[..part]);
            outbox.consume(part);
        }
        sent.extend(outbox.as_slice());
        outbox.consume(usize::MAX);
        assert_eq!(sent, wanted);
        assert_eq!((outbox.len(), outbox.as_slice()), (0, &[][..]));
    }
}
