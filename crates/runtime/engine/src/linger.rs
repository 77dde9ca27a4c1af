//! Connections that the worker has closed, while their last bytes are sent.
//!
//! If a socket is closed while received bytes are unread, it sends a reset. The reset overtakes the
//! last written bytes: the very error that explains the close. So the remaining bytes are sent and
//! the writing side is shut down. Incoming bytes are then discarded until the peer closes its side,
//! for a short time.

use std::io;
use std::time::Duration;

use crate::channel::{Channel, Received};
use crate::queue::SendQueue;

/// Maximum time for a closed connection to take its last bytes. Then it is cut off.
const LINGER: Duration = Duration::from_secs(1);

/// Maximum number of lingering connections of a worker. Further ones are cut off at once. They do
/// not count for the limits of connections.
const MAX_LINGERING: usize = 1024;

/// Time between two checks. Lingering connections have no events, so hostile peers cost the same
/// however often the worker wakes up.
const CHECK: Duration = Duration::from_millis(20);

/// Number of bytes discarded of a connection in one read. A check makes at most two reads.
const SCRAP_BYTES: usize = 8 * 1024;

/// All lingering connections of a worker.
pub(crate) struct Lingering {
    closed: Vec<Closed>,
    next_check: Duration,
    /// Set when the controller stops: all connections have until this time, and their number is not
    /// limited.
    stop_at: Option<Duration>,
    lost: LostBytes,
}

/// Unsent bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LostBytes {
    /// Number of connections that were cut off with unsent bytes.
    pub(crate) connections: usize,
    /// Number of those bytes.
    pub(crate) bytes: usize,
}

struct Closed {
    channel: Channel,
    queue: SendQueue,
    until: Duration,
    /// All bytes are sent, and the writing side is shut down.
    shut: bool,
}

impl Lingering {
    pub(crate) fn new() -> Self {
        Lingering {
            closed: Vec::new(),
            next_check: Duration::ZERO,
            stop_at: None,
            lost: LostBytes::default(),
        }
    }

    /// Sets the time limit of all connections to `at`.
    pub(crate) fn stop_at(&mut self, at: Duration) {
        self.stop_at = Some(at);
        self.closed.iter_mut().for_each(|closed| closed.until = at);
    }

    /// Closes a connection after its bytes are sent. It must be deregistered already.
    pub(crate) fn add(&mut self, channel: Channel, queue: SendQueue, now: Duration) {
        let until = self.stop_at.unwrap_or(now + LINGER);
        let mut closed = Closed { channel, queue, until, shut: false };
        if !closed.go_on() {
            return self.lost.add(&closed.queue);
        }
        if self.closed.len() >= MAX_LINGERING && self.stop_at.is_none() {
            return self.lost.add(&closed.queue);
        }
        if self.closed.is_empty() {
            self.next_check = now + CHECK;
        }
        self.closed.push(closed);
    }

    /// Time until [`Lingering::check`] has something to do.
    pub(crate) fn wait(&self, now: Duration) -> Option<Duration> {
        (!self.closed.is_empty()).then(|| self.next_check.saturating_sub(now))
    }

    /// Continues with all connections, if a check is due.
    pub(crate) fn check(&mut self, now: Duration) {
        if self.closed.is_empty() || now < self.next_check {
            return;
        }
        self.next_check = now + CHECK;
        let lost = &mut self.lost;
        self.closed.retain_mut(|closed| {
            let stays = closed.go_on() && now < closed.until;
            if !stays {
                lost.add(&closed.queue);
            }
            stays
        });
        if self.closed.is_empty() {
            self.closed = Vec::new();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.closed.is_empty()
    }

    /// Takes the counters of unsent bytes.
    pub(crate) fn take_lost(&mut self) -> LostBytes {
        std::mem::take(&mut self.lost)
    }
}

impl LostBytes {
    fn add(&mut self, queue: &SendQueue) {
        self.connections += usize::from(!queue.is_empty());
        self.bytes += queue.len();
    }
}

impl Closed {
    /// Sends remaining bytes, then waits for the peer's close. `false` at the end.
    fn go_on(&mut self) -> bool {
        if self.queue.write_to(&mut self.channel).is_err() {
            return false;
        }
        if self.queue.is_empty()
            && !std::mem::replace(&mut self.shut, true)
            && self.channel.finish_writing().is_err()
        {
            return false;
        }
        // A peer may read only after its own bytes are read.
        let mut scrap = [0; SCRAP_BYTES];
        for _ in 0..2 {
            match self.channel.read(&mut scrap) {
                // It sends no more, but may still read.
                Ok(Received { bytes: 0, .. }) => return !self.shut,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }
}
