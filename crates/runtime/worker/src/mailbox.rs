//! The mailbox of a worker, for other threads: a bounded queue, and a wake-up.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;

use bellrock_api::{Dpid, HostEntry};
use crossbeam_queue::ArrayQueue;

use crate::apps::{Moving, PostedOrder, PostedProgram, PostedRequest};
use crate::settings::{MAILBOX_BYTES, MAILBOX_MESSAGES};
use crate::transport::ConnectionKey;

/// Wakes a worker that may be asleep.
pub trait Wake: Send + Sync + 'static {
    /// Makes the worker check its mailbox soon.
    fn wake(&self);
}

/// Identifies a connection among those of all workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionId {
    pub(crate) worker: usize,
    /// Its key at that worker, unless it was handed over.
    pub(crate) key: ConnectionKey,
    /// Its unique number, at any worker.
    pub(crate) serial: u64,
    /// See `Connection::term`.
    pub(crate) term: u32,
}

/// A job for a worker.
pub(crate) enum Mail {
    /// Sends these bytes, whole messages, to a switch.
    Send { to: ConnectionId, bytes: Box<[u8]> },
    /// Resumes the handler of the app at this place of the chain.
    Resume { at: ConnectionId, place: usize },
    /// Changes that a switch must confirm.
    Program { to: ConnectionId, posted: PostedProgram },
    /// A task's request to a switch.
    Question { to: ConnectionId, request: PostedRequest },
    /// An order for a role at a switch.
    Role { to: ConnectionId, order: PostedOrder },
    /// Another connection has the same datapath id: is this one alive?
    AreYouAlive { id: ConnectionId, claimant: ConnectionId },
    /// The answer, to the claimant.
    OldConnection { claimant: ConnectionId, is_alive: bool },
    /// Hands this switch over to that worker.
    HandOver { id: ConnectionId, to: usize },
    /// A switch that is handed over to this worker.
    Take(Box<Moving>),
    /// Closes a connection, for this reason.
    Close { id: ConnectionId, why: Box<str> },
    /// A question of the operator.
    Query(WorkerQuery),
    /// Messages of the owner of a raw connection.
    Raw { to: ConnectionId, bytes: Box<[u8]> },
    /// The owner of raw connections can take more of this one.
    RawResume { at: ConnectionId },
}

impl Mail {
    /// Number of bytes that it carries.
    fn bytes(&self) -> usize {
        match self {
            Mail::Send { bytes, .. } | Mail::Raw { bytes, .. } => bytes.len(),
            Mail::Program { posted, .. } => posted.bytes(),
            Mail::Question { request: question, .. } => question.bytes(),
            _ => 0,
        }
    }
}

/// A counter of an app: names of the app and the counter, and its value.
pub type AppCounter = (&'static str, &'static str, u64);

/// A host that an app reports: switch, name of the app, host.
pub type SeenHost = (Dpid, &'static str, HostEntry);

/// A question that a worker answers between two turns. It answers at once if the channel has space,
/// and never waits.
pub enum WorkerQuery {
    /// Hosts that handlers report, at most this many.
    Hosts(usize, SyncSender<Vec<SeenHost>>),
    /// Counters of the apps.
    AppCounters(SyncSender<Vec<AppCounter>>),
    /// An order: replaces [`packet_ins_per_second`](crate::Limits::packet_ins_per_second), also for
    /// the switches that are connected. It has no answer.
    LimitPacketIns(Option<u32>),
}

/// The mailbox of a worker.
pub struct Mailbox {
    queue: ArrayQueue<Mail>,
    /// Bytes of messages in `queue`, and of those about to be added.
    bytes: AtomicUsize,
    wake: Box<dyn Wake>,
}

impl Mailbox {
    /// Makes an empty mailbox whose worker is woken by `wake`.
    #[must_use]
    pub fn new(wake: Box<dyn Wake>) -> Self {
        let (queue, bytes) = (ArrayQueue::new(MAILBOX_MESSAGES), AtomicUsize::new(0));
        Mailbox { queue, bytes, wake }
    }

    /// Asks the worker. `false` if its mailbox is full. To ask all workers, use
    /// [`crate::SharedState::query`].
    #[must_use]
    pub fn query(&self, query: WorkerQuery) -> bool {
        self.push(Mail::Query(query))
    }

    /// Whether there is no mail.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    #[must_use]
    pub(crate) fn push(&self, mail: Mail) -> bool {
        self.try_push(mail).is_ok()
    }

    /// Adds mail, or returns it if the mailbox is full.
    pub(crate) fn try_push(&self, mail: Mail) -> Result<(), Mail> {
        let bytes = mail.bytes();
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        // Mail without bytes, such as questions whether a connection is alive, is limited only by
        // the queue.
        let fits = bytes == 0 || before.saturating_add(bytes) <= MAILBOX_BYTES;
        let result = if fits { self.queue.push(mail) } else { Err(mail) };
        if result.is_ok() {
            self.wake.wake();
        } else {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        result
    }

    pub(crate) fn pop(&self) -> Option<Mail> {
        let mail = self.queue.pop()?;
        self.bytes.fetch_sub(mail.bytes(), Ordering::Relaxed);
        Some(mail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Awake;
    impl Wake for Awake {
        fn wake(&self) {}
    }

    #[test]
    fn a_mailbox_is_bounded_in_messages_and_in_bytes() {
        let mailbox = Mailbox::new(Box::new(Awake));
        let to = ConnectionId { worker: 0, key: 0, serial: 0, term: 0 };
        let send = |len| mailbox.push(Mail::Send { to, bytes: vec![0; len].into() });
        let pushed = (0..MAILBOX_MESSAGES).take_while(|_| send(64 * 1024)).count();
        assert_eq!(pushed, MAILBOX_BYTES / (64 * 1024));
        assert!(mailbox.push(Mail::OldConnection { claimant: to, is_alive: true }));
        assert!(mailbox.pop().is_some());
        assert!(send(64 * 1024));
        assert!(!send(1));
        while mailbox.pop().is_some() {}
        let pushed = (0..2 * MAILBOX_MESSAGES).take_while(|_| send(8)).count();
        assert_eq!(pushed, MAILBOX_MESSAGES);
        while mailbox.pop().is_some() {}
        assert!(send(MAILBOX_BYTES));
    }
}
