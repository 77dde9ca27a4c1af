//! Which number of commits the owner of a store has seen, byte for byte.
//!
//! An order is stored on condition of etcd's revision of that number. After a restore of etcd, the
//! same revision may belong to another commit, and an owner that has not heard of the restore yet
//! would pass. The stored bytes have a random number for each commit, so they are compared too:
//! those that the owner has seen, not the newest that have come.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of commits that are remembered. An owner that is further behind is refused.
const MAX_KNOWN: usize = 64;

/// The numbers of commits of one store.
#[derive(Debug, Default)]
pub(crate) struct KnownCommits(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Number of times that the store was read.
    reads: u64,
    /// The last read that the owner has taken. 0: none.
    taken: u64,
    seen: VecDeque<Seen>,
}

#[derive(Debug)]
struct Seen {
    /// The read that it follows.
    read: u64,
    revision: i64,
    bytes: Vec<u8>,
}

impl KnownCommits {
    /// Notes that the store was read. Returns the number of the read.
    pub(crate) fn read(&self) -> u64 {
        let mut known = self.lock();
        known.reads += 1;
        known.reads
    }

    /// Notes that the owner has taken what was read.
    pub(crate) fn take(&self, read: u64) {
        self.lock().taken = read;
    }

    /// Notes the number of commits as it was read, or as it has changed after a read.
    pub(crate) fn see(&self, read: u64, revision: i64, bytes: Vec<u8>) {
        let mut known = self.lock();
        if known.seen.len() >= MAX_KNOWN {
            known.seen.pop_front();
        }
        known.seen.push_back(Seen { read, revision, bytes });
    }

    /// Notes a commit of the owner.
    pub(crate) fn commit(&self, revision: i64, bytes: Vec<u8>) {
        let taken = self.lock().taken;
        self.see(taken, revision, bytes);
    }

    /// Returns the bytes that the number of commits must have for an order of the owner, which
    /// knows it at this revision. `None`: the owner has read nothing yet.
    ///
    /// # Errors
    /// The owner knows another number than etcd has had, or is too far behind.
    pub(crate) fn expected(&self, revision: i64) -> Result<Option<Vec<u8>>, ()> {
        let known = self.lock();
        if known.taken == 0 {
            return Ok(None);
        }
        let mut seen = known.seen.iter().rev();
        let it = seen.find(|it| it.read == known.taken && it.revision == revision);
        it.map(|it| Some(it.bytes.clone())).ok_or(())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Each change leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_passes_with_what_it_has_taken_and_not_with_what_has_come() {
        let known = KnownCommits::default();
        assert_eq!(known.expected(7), Ok(None), "it has read nothing");
        let first = known.read();
        known.see(first, 7, b"old".to_vec());
        known.take(first);
        assert_eq!(known.expected(7), Ok(Some(b"old".to_vec())));
        known.commit(8, b"own".to_vec());
        assert_eq!(known.expected(8), Ok(Some(b"own".to_vec())));
        // etcd was restored, and others have written as much.
        let second = known.read();
        known.see(second, 8, b"others'".to_vec());
        assert_eq!(known.expected(8), Ok(Some(b"own".to_vec())), "so etcd refuses it");
        known.take(second);
        assert_eq!(known.expected(8), Ok(Some(b"others'".to_vec())));
        assert_eq!(known.expected(7), Err(()));
        for revision in 9..9 + MAX_KNOWN as i64 {
            known.see(second, revision, Vec::new());
        }
        assert_eq!(known.expected(8), Err(()), "it is far behind");
    }
}
