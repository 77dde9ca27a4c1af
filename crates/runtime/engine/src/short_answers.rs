//! Collects short answers of a round, to write them together.
//!
//! If many switches have one packet each, reads and writes alternate, and each write wakes the
//! reader of the answers. Sixteen reads followed by sixteen writes wake it once, and keep the
//! kernel's code for each in the cache.

use bellrock_worker::ConnectionKey;

/// Number of answers that are written together.
pub(crate) const HELD_ANSWERS: usize = 16;

/// Maximum length of an answer that waits for others, in bytes. A longer one is worth its own call:
/// it is written at once, after those that wait. So no answer waits for more than one long turn.
pub(crate) const HELD_BYTES: usize = 512;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct ShortAnswers {
    bytes: Vec<u8>,
    /// Keys and lengths of the answers, in order.
    answers: Vec<(ConnectionKey, usize)>,
}

impl ShortAnswers {
    pub(crate) fn push(&mut self, key: ConnectionKey, answer: &[u8]) {
        self.bytes.extend_from_slice(answer);
        self.answers.push((key, answer.len()));
    }

    pub(crate) fn is_full(&self) -> bool {
        self.answers.len() >= HELD_ANSWERS
    }

    pub(crate) fn has(&self, key: ConnectionKey) -> bool {
        self.answers.iter().any(|(other, _)| *other == key)
    }

    /// All answers, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnectionKey, &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.answers.iter().map(move |(key, len)| {
            let (answer, remaining) = rest.split_at_checked(*len).unwrap_or((rest, &[]));
            rest = remaining;
            (*key, answer)
        })
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.answers.clear();
    }
}
