//! Watches: changes under a prefix, from a revision on, in order and without gaps.

use std::sync::Arc;

use http_body_util::BodyExt;
use http_body_util::channel::Sender as Requests;
use hyper::body::{Bytes, Frame, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout_at};

use super::answers::{self, Event, EventType, Refusal, Status, Streamed, WatchResponse};
use super::endpoint::Endpoint;
use super::error::{Remedy, refused};
use super::limits::{
    MAX_WAITING_BYTES, MAX_WAITING_MESSAGES, MAX_WATCH_MESSAGE_BYTES, MAX_WATCH_PAUSE, PAUSE,
    WATCH_PROBE, WATCH_PROBE_EACH, WATCH_SILENCE,
};
use super::{Client, Entry, Error, Snapshot, requests};

/// What a watch reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// A member of etcd serves the watch from now on.
    Connected {
        /// Its address.
        endpoint: String,
    },
    /// No member serves the watch at the moment: changes come late. The watch looks for another
    /// member by itself, and misses nothing. Reported once until it is connected again.
    Disconnected {
        /// Why.
        error: Error,
    },
    /// Changes, all those of each revision in it.
    Changes {
        /// The last revision of them.
        revision: i64,
        /// In the order in which they happened.
        changes: Vec<Change>,
    },
    /// Nothing else was changed up to this revision.
    Progress {
        /// The revision.
        revision: i64,
    },
    /// etcd was heard: it still serves the watch. While nothing changes it is asked for that twice
    /// a second.
    Alive,
    /// The watch ends here. Read everything, and watch from there.
    ReadNeeded(ReadNeeded),
}

/// A change of one key, which does not contain the client's prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was written.
    Put(Entry),
    /// It was removed, or its lease expired.
    Delete {
        /// Key.
        key: Vec<u8>,
        /// Revision of the removal.
        mod_revision: i64,
    },
}

/// Why a watch cannot go on without a gap.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadNeeded {
    /// The next revision is gone.
    #[error("etcd has compacted what was not yet reported, up to revision {revision}: read anew")]
    Compacted {
        /// First revision that is left.
        revision: i64,
    },
    /// Too much changed at once.
    #[error("a message of a watch has more than {MAX_WATCH_MESSAGE_BYTES} bytes: read anew")]
    TooLarge,
    /// An old snapshot was restored.
    #[error("{0}")]
    WentBack(Error),
    /// The connection has ended, and there is no entry by which a restore would show.
    #[error(
        "etcd had nothing here before the connection ended, so a restore would not show: read anew"
    )]
    NothingKnown,
    /// Most addresses lead to another cluster. [`Client::is_replaced`] finds out whether it has
    /// taken the place of this one.
    #[error("{0}")]
    OtherCluster(Error),
}

/// A stream of changes. It ends when it is dropped.
#[derive(Debug)]
pub struct Watch {
    receiver: mpsc::Receiver<(WatchEvent, OwnedSemaphorePermit)>,
    task: AbortHandle,
}

impl Watch {
    /// Waits for the next event. `None`: the one before was [`WatchEvent::ReadNeeded`]. Dropping
    /// the future loses nothing.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        self.receiver.recv().await.map(|(event, _)| event)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Client {
    /// Follows all changes of keys that begin with `prefix`, from this revision on (that of a
    /// snapshot, plus 1). Call it in a runtime of tokio. The revision before must be one that etcd
    /// has had: a member that has less is asked whether an old snapshot was restored.
    ///
    /// A member is asked for a sign of life when it was silent for [`super::limits::WATCH_PROBE`],
    /// and left for the next address after [`super::limits::WATCH_SILENCE`].
    #[must_use]
    pub fn watch(&self, prefix: &str, from_revision: i64) -> Watch {
        self.follow(prefix, from_revision, Anchor::Unknown)
    }

    /// Follows all changes after a snapshot of the same prefix.
    ///
    /// Whenever the watch is opened, etcd must still have the newest change that is known, at its
    /// revision. Otherwise an old snapshot was restored, and others have written since: the watch
    /// ends.
    #[must_use]
    pub fn watch_after(&self, prefix: &str, snapshot: &Snapshot) -> Watch {
        let newest = snapshot.entries.iter().max_by_key(|entry| entry.mod_revision);
        let anchor = newest.map_or(Anchor::Empty, |newest| Anchor::Change {
            key: newest.key.clone(),
            revision: newest.mod_revision,
            value: Some(newest.value.clone()),
        });
        self.follow(prefix, snapshot.revision + 1, anchor)
    }

    fn follow(&self, prefix: &str, from_revision: i64, anchor: Anchor) -> Watch {
        let (sender, receiver) = mpsc::channel(MAX_WAITING_MESSAGES);
        let watcher = Watcher {
            client: self.clone(),
            prefix: [self.prefix(), prefix.as_bytes()].concat(),
            next: from_revision.max(1),
            anchor,
            was_open: false,
            sender,
            incomplete: Vec::new(),
            token: None,
            space: Arc::new(Semaphore::new(MAX_WAITING_BYTES)),
            connected: false,
            reported: false,
        };
        Watch { receiver, task: tokio::spawn(watcher.run()).abort_handle() }
    }
}

/// What etcd must still have when a watch is opened again.
enum Anchor {
    /// Nothing was read before the watch, and nothing has changed since.
    Unknown,
    /// There was no entry, and nothing has changed since.
    Empty,
    /// The newest change.
    Change {
        /// Key, without the prefix of the client.
        key: Vec<u8>,
        revision: i64,
        /// `None`: it was removed.
        value: Option<Vec<u8>>,
    },
}

/// The task of a watch.
struct Watcher {
    client: Client,
    /// With that of the client.
    prefix: Vec<u8>,
    /// First revision that was not reported.
    next: i64,
    anchor: Anchor,
    was_open: bool,
    sender: mpsc::Sender<(WatchEvent, OwnedSemaphorePermit)>,
    /// Changes of a revision whose others are in the next fragment.
    incomplete: Vec<Event>,
    /// Proof of the user that the watch was opened with.
    token: Option<Arc<str>>,
    /// Bytes that may wait for the reader.
    space: Arc<Semaphore>,
    connected: bool,
    /// The reader knows that nothing is connected.
    reported: bool,
}

/// Why a member does not serve the watch any more.
enum End {
    /// Nobody reads it.
    Unread,
    ReadNeeded(ReadNeeded),
    Failed(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        match error {
            Error::WentBack { .. } | Error::Rewritten { .. } => {
                End::ReadNeeded(ReadNeeded::WentBack(error))
            }
            Error::Compacted { .. } => End::ReadNeeded(ReadNeeded::Compacted { revision: 0 }),
            Error::AnswerTooLarge { .. } => End::ReadNeeded(ReadNeeded::TooLarge),
            error => End::Failed(error),
        }
    }
}

impl Watcher {
    async fn run(mut self) {
        let client = self.client.clone();
        let (mut index, count) = (client.preferred(), client.endpoints().len());
        let (mut in_row, mut pause) = (0, PAUSE);
        // Addresses of another cluster among the last `in_row % count`.
        let mut others = 0;
        loop {
            let end = self.follow(&client.endpoints()[index], index).await;
            let was_connected = std::mem::take(&mut self.connected);
            let error = match end {
                End::Unread => return,
                End::ReadNeeded(why) => {
                    let _ = self.report(WatchEvent::ReadNeeded(why), 0).await;
                    return;
                }
                End::Failed(error) => error,
            };
            if was_connected {
                (in_row, others, pause) = (0, 0, PAUSE);
            }
            let other = matches!(error, Error::OtherCluster { .. }).then(|| error.clone());
            others += usize::from(other.is_some());
            if !std::mem::replace(&mut self.reported, true) {
                let event = WatchEvent::Disconnected { error };
                if self.report(event, 0).await.is_err() {
                    return;
                }
            }
            index = (index + 1) % count;
            in_row += 1;
            if let Some(error) = other.filter(|_| 2 * others > count) {
                let why = ReadNeeded::OtherCluster(error);
                let _ = self.report(WatchEvent::ReadNeeded(why), 0).await;
                return;
            }
            if in_row % count == 0 {
                others = 0;
                sleep(pause).await;
                pause = (pause * 2).min(MAX_WATCH_PAUSE);
            }
        }
    }

    /// Watches at one address, until that fails.
    async fn follow(&mut self, at: &Endpoint, index: usize) -> End {
        let (mut open, mut body) = match self.open(at, index).await {
            Ok(both) => both,
            Err(end) => return end,
        };
        let (mut lines, mut heard, mut asked) = (Lines::default(), Instant::now(), false);
        let mut until = heard + WATCH_PROBE;
        self.incomplete.clear();
        loop {
            match timeout_at(until, body.frame()).await {
                Err(_) if asked => return at.silent(WATCH_SILENCE).into(),
                // Another watch asks this member already. That shows that the member lives, and
                // each connection is still asked from time to time.
                Err(_) if heard.elapsed() < WATCH_PROBE_EACH && self.client.is_asked(index) => {
                    until = Instant::now() + WATCH_PROBE;
                    continue;
                }
                Err(_) => {
                    asked = true;
                    until = Instant::now() + WATCH_SILENCE.saturating_sub(WATCH_PROBE);
                    // There is space for one. What is wrong with the connection shows below.
                    let progress = Bytes::from_static(requests::PROGRESS.as_bytes());
                    let _ = open.try_send(Frame::data(progress));
                    continue;
                }
                Ok(None) => {
                    let (endpoint, why) = (at.name().into(), "the watch ended".into());
                    return Error::Closed { endpoint, why }.into();
                }
                Ok(Some(Err(error))) => return at.broken(&error).error.into(),
                Ok(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    lines.push(&data);
                }
            }
            while let Some(line) = lines.next() {
                if let Err(end) = self.message(at, &line).await {
                    return end;
                }
            }
            if lines.waiting() > MAX_WATCH_MESSAGE_BYTES {
                return End::ReadNeeded(ReadNeeded::TooLarge);
            }
            // The time that the reader took is not etcd's.
            (heard, asked) = (Instant::now(), false);
            until = heard + WATCH_PROBE;
            self.client.note_heard(index);
        }
    }

    async fn open(
        &mut self,
        at: &Endpoint,
        index: usize,
    ) -> Result<(Requests<Bytes>, Incoming), End> {
        // It fails after an earlier answer went back.
        let seen = self.client.history().revision()?.max(self.next - 1);
        let deadline = Instant::now() + self.client.total();
        self.token = self.client.token(index, deadline).await?;
        let mut revision = 0;
        let mut connection = at
            .connect(deadline, |status: &Status| {
                revision = status.header.revision;
                self.client.history().check_cluster(at.name(), status.header)
            })
            .await?;
        if revision < seen {
            // It lags behind, or all went back: a linearizable read shows it. The newest revision
            // may have been that of a write, whose change the watch has not shown yet.
            self.client.history().seen(seen);
            self.client.read_key(b"-").await?;
        }
        self.check_anchor(at).await?;
        let create = requests::watch(&self.prefix, self.next);
        let opened = at.watch(&mut connection, self.token.as_deref(), create).await;
        if opened.as_ref().is_err_and(|error| error.remedy() == Remedy::Authenticate) {
            self.client.forget_token(self.token.as_deref()).await;
        }
        Ok(opened?)
    }

    /// Checks that etcd has the history of before: a restore does not show in the revision, once
    /// others have written as much as was lost.
    async fn check_anchor(&mut self, at: &Endpoint) -> Result<(), End> {
        let (key, revision, value) = match &self.anchor {
            Anchor::Empty if self.was_open => {
                return Err(End::ReadNeeded(ReadNeeded::NothingKnown));
            }
            Anchor::Unknown | Anchor::Empty => return Ok(()),
            Anchor::Change { key, revision, value } => (key.as_slice(), *revision, value.as_ref()),
        };
        let (client, time) = (&self.client, self.client.total());
        let is_it = |found: Option<&Entry>| {
            found.is_some_and(|it| it.mod_revision == revision && Some(&it.value) == value)
        };
        // Mostly it is still there, also when its revision was compacted.
        let mut holds = is_it(client.read_key(key).await?.as_ref());
        if !holds {
            let then = client.read_at(key, revision, time).await?;
            holds = match value {
                Some(_) => is_it(then.as_ref()),
                None => then.is_none() && client.read_at(key, revision - 1, time).await?.is_some(),
            };
        }
        if !holds {
            return Err(Error::Rewritten { endpoint: at.name().into(), revision }.into());
        }
        // What a restored etcd has after this change may have smaller revisions than those that
        // etcd has reached in the meantime.
        if self.was_open {
            self.next = revision + 1;
        }
        Ok(())
    }

    /// Reports a message of etcd.
    async fn message(&mut self, at: &Endpoint, line: &[u8]) -> Result<(), End> {
        let message = answers::parse::<Streamed<WatchResponse>>(line);
        let message = message.map_err(|why| at.malformed(why))?;
        if let Some(error) = message.error {
            return Err(refused(at.name(), &error.into()).0.into());
        }
        let response = message.result.unwrap_or_default();
        self.client.history().check_cluster(at.name(), response.header)?;
        if response.canceled {
            return Err(self.canceled(at, &response).await);
        }
        if response.created {
            (self.connected, self.reported, self.was_open) = (true, false, true);
            let endpoint = at.name().to_owned();
            return self.report(WatchEvent::Connected { endpoint }, 0).await;
        }
        // A sign of life. Its revision may be ahead of changes that are on their way.
        if response.watch_id < 0 {
            return self.report(WatchEvent::Alive, 0).await;
        }
        let mut events = std::mem::take(&mut self.incomplete);
        events.extend(response.events);
        if response.fragment {
            let last = events.last().map(|last| last.kv.mod_revision);
            let end = events.partition_point(|event| Some(event.kv.mod_revision) < last);
            self.incomplete = events.split_off(end);
        }
        match events.last().map(|last| last.kv.mod_revision) {
            Some(revision) => self.changes(events, revision, line.len()).await,
            None if response.fragment => Ok(()),
            None => {
                let revision = response.header.revision;
                self.next = self.next.max(revision + 1);
                self.report(WatchEvent::Progress { revision }, 0).await
            }
        }
    }

    /// Reports changes up to a revision, whose message had this number of bytes.
    async fn changes(&mut self, of: Vec<Event>, revision: i64, bytes: usize) -> Result<(), End> {
        self.client.history().seen(revision);
        self.next = self.next.max(revision + 1);
        let prefix = self.client.prefix();
        if let Some(last) =
            of.last().and_then(|last| last.kv.key.strip_prefix(prefix).zip(Some(last)))
        {
            let (key, Event { kind, kv }) = (last.0.to_vec(), last.1);
            let value = matches!(kind, EventType::Put).then(|| kv.value.clone());
            self.anchor = Anchor::Change { key, revision: kv.mod_revision, value };
        }
        let changes = of.into_iter().filter_map(|event| {
            let entry = event.kv.entry(prefix)?;
            Some(match event.kind {
                EventType::Put => Change::Put(entry),
                EventType::Delete => {
                    Change::Delete { key: entry.key, mod_revision: entry.mod_revision }
                }
            })
        });
        let changes = changes.collect();
        self.report(WatchEvent::Changes { revision, changes }, bytes).await
    }

    async fn canceled(&self, at: &Endpoint, response: &WatchResponse) -> End {
        if response.compact_revision > 0 {
            return End::ReadNeeded(ReadNeeded::Compacted { revision: response.compact_revision });
        }
        let (error, _) = refused(at.name(), &cancel_reason(&response.cancel_reason));
        if error.remedy() == Remedy::Authenticate {
            self.client.forget_token(self.token.as_deref()).await;
        }
        error.into()
    }

    /// Waits until there is space for an event of this size.
    async fn report(&self, event: WatchEvent, bytes: usize) -> Result<(), End> {
        let bytes = u32::try_from(bytes.min(MAX_WAITING_BYTES)).unwrap_or(u32::MAX);
        let space = Arc::clone(&self.space).acquire_many_owned(bytes).await;
        let space = space.map_err(|_| End::Unread)?;
        self.sender.send((event, space)).await.map_err(|_| End::Unread)
    }
}

/// Reads `rpc error: code = Unauthenticated desc = etcdserver: invalid auth token`.
fn cancel_reason(reason: &str) -> Refusal {
    let (code, message) = reason
        .strip_prefix("rpc error: code = ")
        .and_then(|rest| rest.split_once(" desc = "))
        .unwrap_or(("Unavailable", reason));
    let code = match code {
        "PermissionDenied" => 7,
        "Unauthenticated" => 16,
        // Another member may serve it.
        _ => 14,
    };
    Refusal { code, message: message.to_owned() }
}

/// Lines of a stream of bytes.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    /// Bytes that have no end of line.
    searched: usize,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the first line that is not empty.
    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let Some(end) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n')
            else {
                self.searched = self.bytes.len();
                return None;
            };
            let rest = self.bytes.split_off(self.searched + end + 1);
            let mut line = std::mem::replace(&mut self.bytes, rest);
            self.searched = 0;
            line.pop();
            if !line.is_empty() {
                return Some(line);
            }
        }
    }

    /// Number of bytes of the line that is not complete.
    fn waiting(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_however_they_came_in() {
        let text = b"{\"a\":1}\n\n{\"b\":2}\n{\"c\"";
        for size in 1..=text.len() {
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            for chunk in text.chunks(size) {
                lines.push(chunk);
                found.extend(std::iter::from_fn(|| lines.next()));
            }
            assert_eq!(found, [&b"{\"a\":1}"[..], &b"{\"b\":2}"[..]], "in pieces of {size} bytes");
            assert_eq!(lines.waiting(), 4);
        }
    }

    #[test]
    fn reasons_of_a_cancelled_watch_are_read() {
        for (reason, code, message) in [
            (
                "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token",
                16,
                "etcdserver: invalid auth token",
            ),
            (
                "rpc error: code = PermissionDenied desc = etcdserver: permission denied",
                7,
                "etcdserver: permission denied",
            ),
            ("etcdserver: no leader", 14, "etcdserver: no leader"),
            ("", 14, ""),
        ] {
            assert_eq!(cancel_reason(reason), Refusal { code, message: message.into() });
        }
    }
}
