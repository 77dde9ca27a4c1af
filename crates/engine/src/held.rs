//! Short answers of a round, until some are together.
//!
//! Where many switches have a packet each, a read and a write take turns, and each write wakes whoever reads the
//! answers. Sixteen reads and then sixteen writes wake it once, and the kernel's code for each stays in the cache.

use bellrock_worker::Key;

/// Answers that are written together.
pub(crate) const HELD_ANSWERS: usize = 16;

/// The longest answer that waits for others, in bytes. What is longer has its share of a call already, and is
/// written at once, after those that wait: none of them waits for more than one turn with much to do.
pub(crate) const HELD_BYTES: usize = 512;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Held {
    bytes: Vec<u8>,
    /// Whose they are, and how long, one behind the other.
    answers: Vec<(Key, usize)>,
}

impl Held {
    pub(crate) fn push(&mut self, key: Key, answer: &[u8]) {
        self.bytes.extend_from_slice(answer);
        self.answers.push((key, answer.len()));
    }

    pub(crate) fn is_full(&self) -> bool {
        self.answers.len() >= HELD_ANSWERS
    }

    pub(crate) fn has(&self, key: Key) -> bool {
        self.answers.iter().any(|(its, _)| *its == key)
    }

    /// All of them, in the order in which they were given.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.answers.iter().map(move |(key, len)| {
            let (answer, behind) = rest.split_at_checked(*len).unwrap_or((rest, &[]));
            rest = behind;
            (*key, answer)
        })
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.answers.clear();
    }
}
