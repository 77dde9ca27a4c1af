//! The sockets of a worker: reads, writes, queues of unsent bytes, and closes.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::SwitchIdentity;
use bellrock_worker::{ConnectionKey, Limits, ReadOutcome, Transport};
use mio::{Registry, Token};
use tracing::{debug, warn};

use crate::channel::{Channel, Received};
use crate::linger::Lingering;
use crate::queue::{SendQueue, write_some};
use crate::ready::{Backlog, ReadyList};
use crate::short_answers::{HELD_BYTES, ShortAnswers};

/// Sockets by their worker's keys.
pub(crate) struct Sockets {
    slots: Vec<Option<Socket>>,
    /// Sockets to read, each once.
    pub(crate) ready: ReadyList,
    pub(crate) lingering: Lingering,
    /// Keys with failed writes, to report to the worker.
    failed: Vec<ConnectionKey>,
    /// Keys with queued bytes, to find those that read nothing.
    blocked: Vec<ConnectionKey>,
    registry: Registry,
    /// Answers of this round that wait for others.
    short_answers: ShortAnswers,
    /// Whether short answers wait: the round has several switches.
    holds_answers: bool,
    high_water: usize,
    /// Fair share of a switch in a round, in bytes: half of the maximum of one read. A large read
    /// is cheap for each packet, so a switch that got more than its share waits for the others
    /// (deficit round robin, Shreedhar and Varghese 1995). Otherwise a switch with 128 KiB ready at
    /// its turn would get twice as much as one with 64 KiB.
    share: usize,
    pub(crate) now: Duration,
}

struct Socket {
    channel: Channel,
    queue: SendQueue,
    /// Time of the first byte in the queue, while there are any.
    queued_since: Duration,
    /// Whether it is in the ready list.
    ready: bool,
    /// Set while it has more bytes than were read, and the peer reads too.
    backlog: Option<Box<Backlog>>,
    /// Bytes read beyond its share of the rounds so far.
    ahead: usize,
    /// The peer has closed its end, or the connection has failed. It must be read until that shows,
    /// since no other event comes.
    hung_up: bool,
    /// Not read, because too many bytes wait to be written.
    paused: bool,
    /// Whether it is in the list of keys with queued bytes.
    blocked: bool,
    /// Last known time when the peer took bytes, while some wait.
    blocked_since: Duration,
    /// Unacknowledged bytes at the last check of the kernel. `None` if the worker has written bytes
    /// since.
    unacknowledged: Option<usize>,
    failed: bool,
}

impl Sockets {
    pub(crate) fn new(registry: Registry, limits: &Limits) -> Self {
        Sockets {
            slots: Vec::new(),
            ready: ReadyList::default(),
            lingering: Lingering::new(),
            failed: Vec::new(),
            blocked: Vec::new(),
            registry,
            short_answers: ShortAnswers::default(),
            holds_answers: false,
            high_water: limits.high_water_bytes,
            share: (limits.bytes_per_turn / 2).max(1),
            now: Duration::ZERO,
        }
    }

    /// Adds a new connection, with the key that the worker will give it next.
    pub(crate) fn insert(&mut self, key: ConnectionKey, channel: Channel) -> io::Result<()> {
        let mut socket = Socket {
            channel,
            queue: SendQueue::default(),
            queued_since: self.now,
            ready: false,
            backlog: None,
            ahead: 0,
            hung_up: false,
            paused: false,
            blocked: false,
            blocked_since: self.now,
            unacknowledged: None,
            failed: false,
        };
        self.register(key, &mut socket)?;
        self.insert_registered(key, socket);
        Ok(())
    }

    /// Registers a socket. The poller reports at once what is already there.
    fn register(&self, key: ConnectionKey, socket: &mut Socket) -> io::Result<()> {
        socket.channel.register(&self.registry, Token(key))
    }

    /// Adds a socket, which is ready if its channel has bytes that no event reports.
    fn insert_registered(&mut self, key: ConnectionKey, socket: Socket) {
        let has_buffered_bytes = socket.channel.buffered_bytes() > 0;
        self.put(key, socket);
        if has_buffered_bytes {
            self.make_ready(key);
        }
    }

    fn put(&mut self, key: ConnectionKey, socket: Socket) {
        if self.slots.len() <= key {
            self.slots.resize_with(key + 1, || None);
        }
        if let Some(slot) = self.slots.get_mut(key) {
            *slot = Some(socket);
        }
    }

    fn get(&mut self, key: ConnectionKey) -> Option<&mut Socket> {
        self.slots.get_mut(key)?.as_mut()
    }

    /// Notes that the peer has closed its end.
    pub(crate) fn hung_up(&mut self, key: ConnectionKey) {
        if let Some(socket) = self.get(key) {
            socket.hung_up = true;
        }
    }

    /// Adds a socket to the ready list, once: its bytes have just come.
    pub(crate) fn make_ready(&mut self, key: ConnectionKey) {
        if let Some(socket) = self.get(key)
            && !std::mem::replace(&mut socket.ready, true)
        {
            self.ready.push_fresh(key);
        }
    }

    /// Adds a socket to the ready list, once: its last read did not take all bytes.
    pub(crate) fn make_ready_again(&mut self, key: ConnectionKey) {
        if let Some(socket) = self.get(key)
            && !std::mem::replace(&mut socket.ready, true)
        {
            self.ready.push_backlogged(key);
        }
    }

    /// Begins a round of this number of switches.
    pub(crate) fn begin_round(&mut self, switches: usize) {
        self.holds_answers = switches > 1;
    }

    /// Ends the round: writes all waiting answers.
    pub(crate) fn end_round(&mut self) {
        self.holds_answers = false;
        self.release();
    }

    /// Writes all waiting answers.
    fn release(&mut self) {
        let mut short_answers = std::mem::take(&mut self.short_answers);
        for (key, answer) in short_answers.iter() {
            self.write(key, answer);
        }
        short_answers.clear();
        self.short_answers = short_answers;
    }

    /// Writes to a socket, and queues the bytes that it does not take. Returns the queued length.
    fn write(&mut self, key: ConnectionKey, bytes: &[u8]) -> usize {
        let now = self.now;
        let Some(socket) = self.get(key).filter(|socket| !socket.failed) else { return 0 };
        if !socket.queue.is_empty() {
            socket.queue.push(bytes);
            return socket.queue.len();
        }
        match write_some(&mut socket.channel, bytes) {
            Ok(n) if n == bytes.len() => 0,
            Ok(n) => {
                socket.queue.push(bytes.get(n..).unwrap_or(&[]));
                (socket.blocked_since, socket.unacknowledged) = (now, None);
                socket.queued_since = now;
                let queued = socket.queue.len();
                if !std::mem::replace(&mut socket.blocked, true) {
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

    /// Takes a socket off the ready list and decides whether it is read. Not if too many bytes wait
    /// to be written: it comes back when there are fewer. Not if it is ahead by a turn: it comes
    /// back at the end.
    pub(crate) fn take_turn(&mut self, key: ConnectionKey) -> ReadTurn {
        let (high_water, share, now) = (self.high_water, self.share, self.now);
        let Some(socket) = self.get(key) else { return ReadTurn::Gone };
        socket.ready = false;
        if socket.queue.len() > high_water {
            socket.paused = true;
            socket.backlog = None;
            return ReadTurn::Paused;
        }
        let is_slow = socket.backlog.as_mut().is_some_and(|backlog| backlog.is_slow(now));
        if let Some(ahead) = socket.ahead.checked_sub(share)
            && !is_slow
        {
            (socket.ahead, socket.ready) = (ahead, true);
            return ReadTurn::Later;
        }
        if is_slow { ReadTurn::Shed } else { ReadTurn::Read }
    }

    /// Writes queued bytes. Returns the number left, whether the peer took any, whether a paused
    /// socket may be read again, and how long the queue has had bytes, if it has none now.
    pub(crate) fn drain(&mut self, key: ConnectionKey) -> Option<Drained> {
        let (now, high_water) = (self.now, self.high_water);
        let socket = self.get(key)?;
        if socket.queue.is_empty() {
            return None;
        }
        let before = socket.queue.len();
        let outcome = socket.queue.write_to(&mut socket.channel);
        let queued = socket.queue.len();
        if queued < before {
            (socket.blocked_since, socket.unacknowledged) = (now, None);
        }
        let resume = socket.paused && queued <= high_water / 2;
        if resume {
            socket.paused = false;
        }
        let emptied = (queued == 0).then(|| now.saturating_sub(socket.queued_since));
        if outcome.is_err() {
            self.fail(key);
        }
        Some(Drained { queued, took: queued < before, resume, emptied })
    }

    /// Takes the keys whose writes failed.
    pub(crate) fn take_failed(&mut self) -> Vec<ConnectionKey> {
        std::mem::take(&mut self.failed)
    }

    /// Checks connections with waiting bytes and no write for `interval`: which ones have stalled
    /// for `limit`, and which are only slow.
    ///
    /// The kernel reports a socket as writable when a third of its send buffer is free. A slow peer
    /// takes minutes to free that much, so this reads the peer's acknowledgements from the kernel.
    pub(crate) fn look_at_blocked(&mut self, interval: Duration, limit: Duration) -> BlockedPeers {
        let now = self.now;
        let mut peers = BlockedPeers::default();
        let slots = &mut self.slots;
        self.blocked.retain(|key| {
            let Some(socket) = slots.get_mut(*key).and_then(Option::as_mut) else { return false };
            if socket.queue.is_empty() {
                socket.blocked = false;
                return false;
            }
            let waited = now.saturating_sub(socket.blocked_since);
            if waited < interval {
                return true;
            }
            // Fails for a broken connection, which ends another way.
            let unacknowledged = socket.channel.unacknowledged_bytes().unwrap_or(usize::MAX);
            match socket.unacknowledged {
                Some(before) if unacknowledged >= before => {
                    if waited >= limit {
                        peers.stalled.push(*key);
                    }
                }
                // First check after a write: what the peer took since then is unknown, maybe just
                // now.
                before => {
                    (socket.blocked_since, socket.unacknowledged) = (now, Some(unacknowledged));
                    if before.is_some() {
                        peers.slow.push((*key, socket.queue.len()));
                    }
                }
            }
            true
        });
        peers
    }

    fn fail(&mut self, key: ConnectionKey) {
        if let Some(socket) = self.get(key)
            && !std::mem::replace(&mut socket.failed, true)
        {
            socket.queue = SendQueue::default();
            self.failed.push(key);
        }
    }
}

/// Whether a socket is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadTurn {
    Read,
    /// Its bytes wait for too long: only a share of its packet-ins reaches the apps.
    Shed,
    Paused,
    Later,
    Gone,
}

/// State of a queue after a write.
pub(crate) struct Drained {
    pub(crate) queued: usize,
    pub(crate) took: bool,
    pub(crate) resume: bool,
    pub(crate) emptied: Option<Duration>,
}

/// State of peers with waiting bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockedPeers {
    /// Keys of peers that took no bytes for `limit`.
    pub(crate) stalled: Vec<ConnectionKey>,
    /// Keys of peers that took bytes since the last check, with their queued bytes.
    pub(crate) slow: Vec<(ConnectionKey, usize)>,
}

impl Transport for Sockets {
    fn has_unread(&self, key: ConnectionKey) -> bool {
        self.slots.get(key).and_then(Option::as_ref).is_some_and(|socket| socket.ready)
    }

    fn resume(&mut self, key: ConnectionKey) {
        self.make_ready(key);
    }

    fn identity(&self, key: ConnectionKey) -> Option<Arc<SwitchIdentity>> {
        self.slots.get(key)?.as_ref()?.channel.identity()
    }

    fn read(&mut self, key: ConnectionKey, buffer: &mut [u8]) -> ReadOutcome {
        let (share, now) = (self.share, self.now);
        let Some(socket) = self.get(key) else { return ReadOutcome::Closed };
        loop {
            match socket.channel.read(buffer) {
                Ok(Received { bytes: 0, .. }) => return ReadOutcome::Closed,
                Ok(Received { bytes: n, has_more: more }) => {
                    socket.ahead = (socket.ahead + n).saturating_sub(share);
                    if more {
                        socket.backlog.get_or_insert_with(|| Box::new(Backlog::new(now))).add(n);
                    } else {
                        socket.backlog = None;
                    }
                    // An edge-triggered poller does not report the close again.
                    let has_more = more || socket.hung_up;
                    return ReadOutcome::Bytes { n, has_more };
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.backlog = None;
                    return ReadOutcome::Empty;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    debug!(key, %error, "decryption failed");
                    return ReadOutcome::Corrupt;
                }
                Err(error) => {
                    debug!(key, %error, "read failed");
                    return ReadOutcome::Closed;
                }
            }
        }
    }

    fn send(&mut self, key: ConnectionKey, bytes: &[u8]) -> usize {
        let is_short = bytes.len() <= HELD_BYTES;
        if !is_short || self.short_answers.has(key) {
            self.release();
        }
        let is_free = |socket: &mut Socket| !socket.failed && socket.queue.is_empty();
        if !self.holds_answers || !is_short || !self.get(key).is_some_and(is_free) {
            return self.write(key, bytes);
        }
        self.short_answers.push(key, bytes);
        if self.short_answers.is_full() {
            self.release();
        }
        0
    }

    fn close(&mut self, key: ConnectionKey) {
        self.release();
        let Some(mut socket) = self.slots.get_mut(key).and_then(Option::take) else { return };
        if let Err(error) = socket.channel.deregister(&self.registry) {
            debug!(key, %error, "deregistering failed");
        }
        // The next connection may get this key, and must not be in these lists.
        if socket.failed {
            self.failed.retain(|other| *other != key);
        }
        if socket.blocked {
            self.blocked.retain(|other| *other != key);
        }
        if !socket.failed {
            self.lingering.add(socket.channel, socket.queue, self.now);
        }
    }

    fn detach(&mut self, key: ConnectionKey) -> Option<Box<dyn Any + Send>> {
        self.release();
        // A failed one stays: its worker is about to be notified.
        let socket = self.get(key).filter(|socket| !socket.failed)?;
        let blocked = std::mem::take(&mut socket.blocked);
        // The new worker's poller reports all that the kernel has.
        (socket.ready, socket.hung_up) = (false, false);
        let mut socket = self.slots.get_mut(key)?.take()?;
        if blocked {
            self.blocked.retain(|other| *other != key);
        }
        if let Err(error) = socket.channel.deregister(&self.registry) {
            debug!(key, %error, "deregistering failed");
        }
        Some(Box::new(socket))
    }

    fn attach(&mut self, key: ConnectionKey, channel: Box<dyn Any + Send>) {
        // Only sockets are ever detached.
        let Ok(mut socket) = channel.downcast::<Socket>() else { return };
        let registered = self.register(key, &mut socket);
        if !socket.queue.is_empty() {
            socket.blocked = true;
            self.blocked.push(key);
        }
        self.insert_registered(key, *socket);
        if let Err(error) = registered {
            warn!(key, %error, "a connection that was handed over is lost");
            self.fail(key);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]
mod tests {
    use std::io::{Read, Write};

    use mio::Poll;
    use mio::net::TcpStream;
    use socket2::{Domain, SockRef, Socket as RawSocket, Type};

    use super::*;
    use crate::short_answers::HELD_ANSWERS;

    fn channel(stream: std::net::TcpStream) -> Channel {
        Channel::Plain(TcpStream::from_std(stream))
    }

    /// Reads the bytes that `peer` writes, all at once.
    fn read(sockets: &mut Sockets, peer: &mut std::net::TcpStream, bytes: usize) {
        peer.write_all(&vec![7; bytes]).unwrap();
        let waiting = |sockets: &mut Sockets| {
            let Channel::Plain(stream) = &sockets.get(0).unwrap().channel else { panic!() };
            stream.peek(&mut vec![0; bytes]).is_ok_and(|waiting| waiting == bytes)
        };
        while !waiting(sockets) {
            std::thread::yield_now();
        }
        let outcome = sockets.read(0, &mut vec![0; bytes]);
        assert_eq!(outcome, ReadOutcome::Bytes { n: bytes, has_more: true });
    }

    #[test]
    fn a_connection_read_beyond_its_share_skips_turns() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let poll = Poll::new().unwrap();
        let limits = Limits { bytes_per_turn: 8192, ..Limits::default() };
        let mut sockets = Sockets::new(poll.registry().try_clone().unwrap(), &limits);
        sockets.insert(0, channel(stream)).unwrap();
        let mut turns_let_go_by = |bytes: usize| {
            read(&mut sockets, &mut peer, bytes);
            (0..10).position(|_| sockets.take_turn(0) == ReadTurn::Read).unwrap()
        };
        assert_eq!([4096, 8192, 100, 8192].map(&mut turns_let_go_by), [0, 1, 0, 1]);
        // Twice half a share too much is one turn.
        assert_eq!([6144, 6144, 6144].map(&mut turns_let_go_by), [0, 1, 0]);
        // Unused share is not saved.
        assert_eq!([1, 1, 8192].map(&mut turns_let_go_by), [0, 0, 1]);
    }

    #[test]
    fn a_peer_that_takes_few_bytes_is_slow_and_one_that_takes_none_has_stalled() {
        const INTERVAL: Duration = Duration::from_secs(1);
        const LIMIT: Duration = Duration::from_secs(10);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = RawSocket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        peer.set_recv_buffer_size(8 * 1024).unwrap();
        peer.connect(&listener.local_addr().unwrap().into()).unwrap();
        let mut peer = std::net::TcpStream::from(peer);
        let (stream, _) = listener.accept().unwrap();
        // As large as the system allows, so that it is not writable while the peer takes a few
        // bytes.
        SockRef::from(&stream).set_send_buffer_size(16 << 20).unwrap();
        stream.set_nonblocking(true).unwrap();
        let poll = Poll::new().unwrap();
        let mut sockets = Sockets::new(poll.registry().try_clone().unwrap(), &Limits::default());
        sockets.insert(0, channel(stream)).unwrap();
        while sockets.send(0, &[7; 64 * 1024]) == 0 {}
        let queued = sockets.get(0).unwrap().queue.len();
        let waits_for_peer =
            |sockets: &mut Sockets| sockets.get(0).unwrap().channel.unacknowledged_bytes().unwrap();
        let look = |sockets: &mut Sockets| {
            sockets.now += INTERVAL;
            sockets.look_at_blocked(INTERVAL, LIMIT)
        };
        let nobody = BlockedPeers::default;
        let slow = || BlockedPeers { slow: vec![(0, queued)], ..nobody() };
        // What the peer took before the first check is unknown. From then on, each byte counts.
        assert_eq!(look(&mut sockets), nobody());
        for _ in 0..30 {
            let before = waits_for_peer(&mut sockets);
            while waits_for_peer(&mut sockets) == before {
                peer.read_exact(&mut [0; 1024]).unwrap();
            }
            assert_eq!(look(&mut sockets), slow());
            // An acknowledgement may be late, so each check finds the peer slow, or silent for a
            // while.
            (0..8).for_each(|_| assert_eq!(look(&mut sockets).stalled, []));
        }
        let mut silent = 8;
        loop {
            let peers = look(&mut sockets);
            if !peers.stalled.is_empty() {
                break;
            }
            silent = if peers == slow() { 0 } else { silent + 1 };
        }
        assert_eq!(silent, 9, "looks without a byte before the one that finds it stalled");
    }

    #[test]
    fn a_connection_that_is_closed_leaves_nothing_to_the_next_one_with_its_key() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let poll = Poll::new().unwrap();
        let registry = poll.registry().try_clone().unwrap();
        let mut sockets = Sockets::new(registry, &Limits::default());
        let connect = |sockets: &mut Sockets| {
            let peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, _) = listener.accept().unwrap();
            stream.set_nonblocking(true).unwrap();
            sockets.insert(0, channel(stream)).unwrap();
            peer
        };
        let _peer = connect(&mut sockets);
        sockets.send(0, &vec![0; 64 << 20]);
        assert_eq!(sockets.blocked, [0]);
        sockets.fail(0);
        sockets.close(0);
        let _next = connect(&mut sockets);
        assert_eq!(sockets.take_failed(), [], "the next one has not failed");
        assert_eq!(sockets.blocked, []);
    }

    #[test]
    fn short_answers_of_a_round_wait_for_others_and_keep_their_order() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let poll = Poll::new().unwrap();
        let mut sockets = Sockets::new(poll.registry().try_clone().unwrap(), &Limits::default());
        let mut peers: Vec<_> = (0..HELD_ANSWERS + 1)
            .map(|key| {
                let peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let (stream, _) = listener.accept().unwrap();
                stream.set_nonblocking(true).unwrap();
                peer.set_nonblocking(true).unwrap();
                sockets.insert(key, channel(stream)).unwrap();
                peer
            })
            .collect();
        let mut got = |key: usize| {
            let mut buffer = vec![0; 2 * HELD_BYTES];
            match peers[key].read(&mut buffer) {
                Ok(n) => buffer[..n].to_vec(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Vec::new(),
                Err(error) => panic!("{error}"),
            }
        };
        // Alone, no answer waits.
        sockets.begin_round(1);
        sockets.send(0, b"a");
        assert_eq!(got(0), b"a");
        sockets.end_round();
        // With others, answers wait until there are enough, or the round ends.
        sockets.begin_round(HELD_ANSWERS + 1);
        (0..HELD_ANSWERS - 1).for_each(|key| assert_eq!(sockets.send(key, b"b"), 0));
        assert_eq!(got(0), b"");
        sockets.send(HELD_ANSWERS - 1, b"b");
        sockets.send(HELD_ANSWERS, b"c");
        assert_eq!(
            (got(0), got(HELD_ANSWERS - 1), got(HELD_ANSWERS)),
            (b"b".into(), b"b".into(), b"".into())
        );
        sockets.end_round();
        assert_eq!(got(HELD_ANSWERS), b"c");
        (1..HELD_ANSWERS - 1).for_each(|key| assert_eq!(got(key), b"b"));
        // A second answer, or a long one, does not overtake waiting ones, and a close loses
        // nothing.
        sockets.begin_round(2);
        sockets.send(1, b"d");
        sockets.send(1, b"e");
        sockets.send(2, &[7; HELD_BYTES + 1]);
        assert_eq!((got(1), got(2).len()), (b"de".into(), HELD_BYTES + 1));
        sockets.send(3, b"f");
        sockets.close(3);
        assert_eq!(got(3), b"f");
        sockets.end_round();
    }
}
