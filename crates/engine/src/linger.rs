//! Connections that the worker has closed, with their last bytes on their way.
//!
//! A socket that is closed while bytes that it received are unread sends a reset, and the reset
//! overtakes what was written last: the very error that tells the peer why it was closed. So what
//! is left is written, our end is shut, and what still comes is thrown away until the peer has
//! closed its end too, for a short time.

use std::io::{self, Read};
use std::net::Shutdown;
use std::time::Duration;

use mio::net::TcpStream;

use crate::queue::Queue;

/// How long a connection that is closed may take to fetch its last bytes; then it is cut off.
const LINGER: Duration = Duration::from_secs(1);

/// Closed connections of a worker that may linger at a time; further ones are cut off at once.
/// They count for no limit of connections any more.
const MAX_LINGERING: usize = 1024;

/// How often they are looked at. They have no events of their own, so that what hostile peers make
/// linger costs the same however often the worker wakes up.
const CHECK: Duration = Duration::from_millis(20);

/// Bytes thrown away of a connection at each look; at most twice as many as that.
const SCRAP_BYTES: usize = 8 * 1024;

/// All of a worker's.
pub(crate) struct Lingering {
    closed: Vec<Closed>,
    next_check: Duration,
    /// The controller stops: everybody has until then, and nobody is one too many.
    stop_at: Option<Duration>,
    lost: Lost,
}

/// What was not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Connections that were cut off with bytes unsent.
    pub(crate) connections: usize,
    /// Those bytes.
    pub(crate) bytes: usize,
}

struct Closed {
    stream: TcpStream,
    queue: Queue,
    until: Duration,
    /// All is sent, and the peer has been told that nothing more comes.
    shut: bool,
}

impl Lingering {
    pub(crate) fn new() -> Self {
        Lingering {
            closed: Vec::new(),
            next_check: Duration::ZERO,
            stop_at: None,
            lost: Lost::default(),
        }
    }

    /// From here on, everybody has until `at`.
    pub(crate) fn stop_at(&mut self, at: Duration) {
        self.stop_at = Some(at);
        self.closed.iter_mut().for_each(|closed| closed.until = at);
    }

    /// Closes a connection that is not registered any more, once its bytes are sent.
    pub(crate) fn add(&mut self, stream: TcpStream, queue: Queue, now: Duration) {
        let until = self.stop_at.unwrap_or(now + LINGER);
        let mut closed = Closed { stream, queue, until, shut: false };
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

    /// Goes on with all of them, if it is time to.
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

    /// What was lost since this was last asked.
    pub(crate) fn take_lost(&mut self) -> Lost {
        std::mem::take(&mut self.lost)
    }
}

impl Lost {
    fn add(&mut self, queue: &Queue) {
        self.connections += usize::from(!queue.is_empty());
        self.bytes += queue.len();
    }
}

impl Closed {
    /// Sends what is left, then waits for the peer's end. `false` when it is over.
    fn go_on(&mut self) -> bool {
        if self.queue.write_to(&mut self.stream).is_err() {
            return false;
        }
        if self.queue.is_empty()
            && !std::mem::replace(&mut self.shut, true)
            && self.stream.shutdown(Shutdown::Write).is_err()
        {
            return false;
        }
        // A peer that waits for us to read may read only then.
        let mut scrap = [0; SCRAP_BYTES];
        for _ in 0..2 {
            match self.stream.read(&mut scrap) {
                // It sends no more. It may still want to read.
                Ok(0) => return !self.shut,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }
}
