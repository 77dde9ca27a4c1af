//! Reads of all entries under a prefix.

use std::time::Duration;

use super::answers::Range;
use super::client::{Answered, Call};
use super::limits::{MAX_READ_RESTARTS, MAX_SNAPSHOT_BYTES, MAX_SNAPSHOT_ENTRIES, PAGE_ENTRIES};
use super::{Client, Error, LeaseId, requests};

/// A key with its value. The key does not contain the client's prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Key.
    pub key: Vec<u8>,
    /// Value.
    pub value: Vec<u8>,
    /// Revision of its last change.
    pub mod_revision: i64,
    /// Lease that it ends with.
    pub lease: Option<LeaseId>,
}

/// All entries under a prefix, as they were at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The revision. A watch that goes on from it starts at the next one.
    pub revision: i64,
    /// Entries, ordered by key.
    pub entries: Vec<Entry>,
}

impl Client {
    /// Reads all entries whose keys begin with `prefix`, in pages of one revision. What was written
    /// before the read began is in it.
    ///
    /// # Errors
    /// [`Error`]; also if there are more entries or bytes than a snapshot may have.
    pub async fn read(&self, prefix: &str) -> Result<Snapshot, Error> {
        self.read_in_pages(prefix, PAGE_ENTRIES).await
    }

    /// As [`Client::read`], with at most this number of entries in a page.
    ///
    /// # Errors
    /// As there.
    pub async fn read_in_pages(&self, prefix: &str, entries: usize) -> Result<Snapshot, Error> {
        let mut restarts = 0;
        loop {
            match self.read_once(prefix, entries.clamp(1, PAGE_ENTRIES)).await {
                Err(Error::Compacted { .. }) if restarts < MAX_READ_RESTARTS => restarts += 1,
                read => return read,
            }
        }
    }

    async fn read_once(&self, prefix: &str, mut limit: usize) -> Result<Snapshot, Error> {
        let full = [self.prefix(), prefix.as_bytes()].concat();
        let mut snapshot = Snapshot { revision: 0, entries: Vec::new() };
        let (mut from, mut bytes) = (full.clone(), 0);
        loop {
            let body = requests::read_page(&from, &full, limit, snapshot.revision);
            let Answered { answer: page, endpoint, .. } =
                match self.call::<Range>(range(body)).await {
                    Ok(answered) => answered,
                    Err(failure) => match failure.error {
                        Error::AnswerTooLarge { .. } if limit > 1 => {
                            limit /= 2;
                            continue;
                        }
                        error => return Err(error),
                    },
                };
            if snapshot.revision == 0 {
                snapshot.revision = page.header.revision;
            }
            let Some(last) = page.kvs.last().map(|last| last.key.clone()) else {
                return Ok(snapshot);
            };
            // Keys that do not grow would be read for ever.
            if last < from {
                let why = "a page is not after the page before".into();
                return Err(self.endpoints()[endpoint].malformed(why));
            }
            for one in page.kvs {
                bytes += one.key.len() + one.value.len();
                snapshot.entries.extend(one.entry(self.prefix()));
            }
            if bytes > MAX_SNAPSHOT_BYTES || snapshot.entries.len() > MAX_SNAPSHOT_ENTRIES {
                let (entries, bytes) = (MAX_SNAPSHOT_ENTRIES, MAX_SNAPSHOT_BYTES);
                return Err(Error::SnapshotTooLarge { prefix: prefix.into(), entries, bytes });
            }
            if !page.more {
                return Ok(snapshot);
            }
            from = last;
            from.push(0);
        }
    }

    /// Reads one entry. `None`: there is none.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn read_key(&self, key: &[u8]) -> Result<Option<Entry>, Error> {
        let body = requests::read_key(&[self.prefix(), key].concat(), 0);
        let answered = self.call::<Range>(range(body)).await;
        Ok(self.only(answered.map_err(|failure| failure.error)?.answer))
    }

    /// Reads the entry that a key had at a revision (0: now), within a time.
    pub(super) async fn read_at(
        &self,
        key: &[u8],
        revision: i64,
        time: Duration,
    ) -> Result<Option<Entry>, Error> {
        let body = requests::read_key(&[self.prefix(), key].concat(), revision);
        let answered = self.call_within::<Range>(range(body), time).await;
        Ok(self.only(answered.map_err(|failure| failure.error)?.answer))
    }

    fn only(&self, range: Range) -> Option<Entry> {
        range.kvs.into_iter().next().and_then(|one| one.entry(self.prefix()))
    }
}

fn range(body: hyper::body::Bytes) -> Call {
    let path = requests::RANGE;
    Call { path, body, repeatable: true, linearizable: true, streamed: false }
}
