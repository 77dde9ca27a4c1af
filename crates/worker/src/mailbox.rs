//! How other threads reach a worker's switches: a bounded queue, and a wake-up.

use std::sync::mpsc::SyncSender;

use bellrock_api::{Dpid, HostEntry};
use crossbeam_queue::ArrayQueue;

use crate::settings::MAILBOX_MESSAGES;
use crate::transport::Key;

/// Wakes a worker that may be asleep.
pub trait Wake: Send + Sync + 'static {
    /// Makes the worker look at its mailbox soon.
    fn wake(&self);
}

/// A connection of a worker, told apart from later ones in the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId {
    pub(crate) worker: usize,
    pub(crate) key: Key,
    pub(crate) serial: u64,
}

/// Something for a worker to do.
pub(crate) enum Mail {
    /// Send these bytes, whole messages, to a switch.
    Send { to: ConnectionId, bytes: Box<[u8]> },
    /// Another connection has come with this one's datapath id: is it alive?
    AreYouAlive { who: ConnectionId, claimant: ConnectionId },
    /// The answer, to the claimant.
    OldConnection { claimant: ConnectionId, alive: bool },
    /// A question of the operator's.
    Query(Query),
}

/// A counter of an app: its name, the counter's name, its value.
pub type AppCounter = (&'static str, &'static str, u64);

/// A host that an app knows: the switch, the app's name, and the host.
pub type SeenHost = (Dpid, &'static str, HostEntry);

/// A question that a worker answers between two turns. It answers at once if the channel has room,
/// and never waits.
pub enum Query {
    /// The hosts that handlers know, at most so many.
    Hosts(usize, SyncSender<Vec<SeenHost>>),
    /// The counters of the apps.
    AppCounters(SyncSender<Vec<AppCounter>>),
}

/// The mailbox of a worker.
pub struct Mailbox {
    queue: ArrayQueue<Mail>,
    wake: Box<dyn Wake>,
}

impl Mailbox {
    /// An empty mailbox whose worker is woken by `wake`.
    #[must_use]
    pub fn new(wake: Box<dyn Wake>) -> Self {
        Mailbox { queue: ArrayQueue::new(MAILBOX_MESSAGES), wake }
    }

    /// Asks the worker something. `false` if its mailbox is full.
    #[must_use]
    pub fn ask(&self, query: Query) -> bool {
        self.push(Mail::Query(query))
    }

    /// Whether there is mail.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    #[must_use]
    pub(crate) fn push(&self, mail: Mail) -> bool {
        let pushed = self.queue.push(mail).is_ok();
        if pushed {
            self.wake.wake();
        }
        pushed
    }

    pub(crate) fn pop(&self) -> Option<Mail> {
        self.queue.pop()
    }
}
