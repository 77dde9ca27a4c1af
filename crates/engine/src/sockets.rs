//! The sockets of a worker: reading, writing, queues for what the kernel does not take, closing.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use bellrock_worker::{Key, ReadOutcome, Transport};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use tracing::debug;

/// How long a connection that is closed may take to fetch its last bytes.
const LINGER: Duration = Duration::from_secs(1);

/// Closed connections that may linger at a time; further ones are cut off at once.
const MAX_LINGERING: usize = 1024;

/// Bytes of queue that are kept for the next time when a queue has become empty.
const QUEUE_KEEP_BYTES: usize = 4096;

/// Sockets by their worker's keys.
pub(crate) struct Sockets {
    slots: Vec<Option<Socket>>,
    lingering: Vec<Lingering>,
    /// Keys whose writes failed; the worker has to hear of it.
    failed: Vec<Key>,
    /// Keys with a queue, to find those that take nothing.
    blocked: Vec<Key>,
    registry: Registry,
    high_water: usize,
    pub(crate) now: Duration,
}

struct Socket {
    stream: TcpStream,
    queue: Queue,
    /// In the ready list.
    ready: bool,
    /// Not read, because too much waits to be written.
    paused: bool,
    /// When the peer last took bytes, while some wait.
    blocked_since: Duration,
    failed: bool,
}

/// A connection that the worker has closed, with its last bytes on their way.
struct Lingering {
    stream: TcpStream,
    queue: Queue,
    until: Duration,
    /// All is sent; only the peer's end is awaited, lest unread bytes turn ours into a reset.
    shut: bool,
}

impl Sockets {
    pub(crate) fn new(registry: Registry, high_water: usize) -> Self {
        Sockets {
            slots: Vec::new(),
            lingering: Vec::new(),
            failed: Vec::new(),
            blocked: Vec::new(),
            registry,
            high_water,
            now: Duration::ZERO,
        }
    }

    /// Takes a new connection in, under the key that the worker is about to give it.
    pub(crate) fn insert(&mut self, key: Key, mut stream: TcpStream) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.registry.register(&mut stream, Token(key), interest)?;
        if self.slots.len() <= key {
            self.slots.resize_with(key + 1, || None);
        }
        let socket = Socket {
            stream,
            queue: Queue::default(),
            ready: false,
            paused: false,
            blocked_since: self.now,
            failed: false,
        };
        if let Some(slot) = self.slots.get_mut(key) {
            *slot = Some(socket);
        }
        Ok(())
    }

    fn get(&mut self, key: Key) -> Option<&mut Socket> {
        self.slots.get_mut(key)?.as_mut()
    }

    /// Marks a socket as ready to be read. `true`: it has to be put on the ready list.
    pub(crate) fn mark_ready(&mut self, key: Key) -> bool {
        self.get(key).is_some_and(|socket| !std::mem::replace(&mut socket.ready, true))
    }

    /// The socket leaves the ready list to be read. `false`: it must not be read now, because too
    /// much waits to be written to it; it comes back when that has shrunk.
    pub(crate) fn take_turn(&mut self, key: Key) -> Turn {
        let high_water = self.high_water;
        let Some(socket) = self.get(key) else { return Turn::Gone };
        socket.ready = false;
        if socket.queue.len() > high_water {
            socket.paused = true;
            return Turn::Paused;
        }
        Turn::Read
    }

    /// Writes what is queued. Returns what is left, and whether the peer took anything; and
    /// whether the socket may be read again, which was paused.
    pub(crate) fn drain(&mut self, key: Key) -> Option<Drained> {
        let (now, high_water) = (self.now, self.high_water);
        let socket = self.get(key)?;
        if socket.queue.is_empty() {
            return None;
        }
        let before = socket.queue.len();
        let outcome = socket.queue.write_to(&mut socket.stream);
        let left = socket.queue.len();
        if left < before {
            socket.blocked_since = now;
        }
        let resume = socket.paused && left <= high_water / 2;
        if resume {
            socket.paused = false;
        }
        if outcome.is_err() {
            self.fail(key);
        }
        Some(Drained { left, took: left < before, resume })
    }

    /// Keys whose connection failed while it was written to.
    pub(crate) fn take_failed(&mut self) -> Vec<Key> {
        std::mem::take(&mut self.failed)
    }

    /// Keys whose peers have taken none of what waits for them for so long.
    pub(crate) fn stalled(&mut self, limit: Duration) -> Vec<Key> {
        let now = self.now;
        let mut stalled = Vec::new();
        let slots = &self.slots;
        self.blocked.retain(|key| {
            let socket = slots.get(*key).and_then(Option::as_ref);
            let Some(socket) = socket.filter(|socket| !socket.queue.is_empty()) else {
                return false;
            };
            if now.saturating_sub(socket.blocked_since) >= limit {
                stalled.push(*key);
            }
            true
        });
        stalled
    }

    /// Goes on with connections that are being closed. `true` while there are any.
    pub(crate) fn linger(&mut self) -> bool {
        let now = self.now;
        self.lingering.retain_mut(|lingering| now < lingering.until && lingering.go_on());
        !self.lingering.is_empty()
    }

    fn fail(&mut self, key: Key) {
        if let Some(socket) = self.get(key)
            && !std::mem::replace(&mut socket.failed, true)
        {
            socket.queue = Queue::default();
            self.failed.push(key);
        }
    }
}

/// Whether a socket is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Read,
    Paused,
    Gone,
}

/// What became of a queue.
pub(crate) struct Drained {
    pub(crate) left: usize,
    pub(crate) took: bool,
    pub(crate) resume: bool,
}

impl Transport for Sockets {
    fn read(&mut self, key: Key, buffer: &mut [u8]) -> ReadOutcome {
        let Some(socket) = self.get(key) else { return ReadOutcome::Closed };
        loop {
            match socket.stream.read(buffer) {
                Ok(0) => return ReadOutcome::Closed,
                Ok(n) => return ReadOutcome::Bytes { n, more: n == buffer.len() },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return ReadOutcome::Empty;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    debug!(key, %error, "read failed");
                    return ReadOutcome::Closed;
                }
            }
        }
    }

    fn send(&mut self, key: Key, bytes: &[u8]) -> usize {
        let now = self.now;
        let Some(socket) = self.get(key).filter(|socket| !socket.failed) else { return 0 };
        if !socket.queue.is_empty() {
            socket.queue.push(bytes);
            return socket.queue.len();
        }
        match write_some(&mut socket.stream, bytes) {
            Ok(n) if n == bytes.len() => 0,
            Ok(n) => {
                socket.queue.push(bytes.get(n..).unwrap_or(&[]));
                socket.blocked_since = now;
                let queued = socket.queue.len();
                if !self.blocked.contains(&key) {
                    self.blocked.push(key);
                }
                queued
            }
            Err(error) => {
                debug!(key, %error, "write failed");
                self.fail(key);
                0
            }
        }
    }

    fn close(&mut self, key: Key) {
        let Some(mut socket) = self.slots.get_mut(key).and_then(Option::take) else { return };
        if let Err(error) = self.registry.deregister(&mut socket.stream) {
            debug!(key, %error, "deregistering failed");
        }
        let mut lingering = Lingering {
            stream: socket.stream,
            queue: socket.queue,
            until: self.now + LINGER,
            shut: false,
        };
        if !socket.failed && self.lingering.len() < MAX_LINGERING && lingering.go_on() {
            self.lingering.push(lingering);
        }
    }
}

impl Lingering {
    /// Sends what is left, then waits for the peer's end. `false` when it is over.
    fn go_on(&mut self) -> bool {
        if self.queue.write_to(&mut self.stream).is_err() {
            return false;
        }
        if !self.queue.is_empty() {
            return true;
        }
        if !std::mem::replace(&mut self.shut, true)
            && self.stream.shutdown(Shutdown::Write).is_err()
        {
            return false;
        }
        // Bounded: a peer that sends without end is cut off when its time is over.
        let mut scrap = [0; 4096];
        for _ in 0..16 {
            match self.stream.read(&mut scrap) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }
}

/// Bytes that the kernel did not take yet.
#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    head: usize,
}

impl Queue {
    fn len(&self) -> usize {
        self.bytes.len() - self.head
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn push(&mut self, bytes: &[u8]) {
        // Room at the front is used before the queue grows.
        if self.head > 0 && self.bytes.len() + bytes.len() > self.bytes.capacity() {
            self.bytes.drain(..self.head);
            self.head = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn write_to(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        self.head += write_some(stream, self.bytes.get(self.head..).unwrap_or(&[]))?;
        if self.is_empty() {
            self.head = 0;
            self.bytes.clear();
            if self.bytes.capacity() > QUEUE_KEEP_BYTES {
                self.bytes = Vec::new();
            }
        }
        Ok(())
    }
}

/// Writes as much as the kernel takes; returns how many bytes that was.
fn write_some(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            // A short write means that the kernel's buffer is full: asking again would only say
            // so.
            Ok(n) => {
                written += n;
                if n < rest.len() {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}
