//! Handshakes of TLS, on threads of their own: one takes as long as thousands of packets, so a
//! worker must not do it.
//!
//! The acceptor gives each new connection to one of the threads, and gets it back as a channel or
//! with the reason of its failure. A thread bounds its handshakes: a stranger who makes no progress
//! gives way to a newcomer.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bellrock_pace::{NoPlace, PlaceLimits, Places};
use bellrock_tls::unbuffered::{MAX_CARRY_BYTES, go_on};
use crossbeam_queue::ArrayQueue;
use mio::event::Events;
use mio::net::TcpStream;
use mio::{Interest, Poll, Token, Waker};
use rustls::HandshakeKind;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use tracing::error;

use super::TlsServer;
use super::certificate::identity;
use super::refusal_text::explain;
use super::session::{TlsSession, encode_alert, take_records};
use crate::halt::Halt;
use crate::priority::let_workers_go_first;
use crate::refusals::RefusalReason;
use crate::thread::WAKE;

/// Number of threads for handshakes.
pub(crate) const HANDSHAKE_THREADS: usize = 2;

/// Maximum number of handshakes at a time. A further connection displaces one of them, or is
/// closed.
pub(crate) const MAX_HANDSHAKES: usize = 2048;

/// Maximum number of handshakes at a time of one network (see [`bellrock_pace::network_of`]),
/// except those of the loopback.
pub(crate) const MAX_HANDSHAKES_PER_NETWORK: usize = 256;

/// Minimum time without a byte before a handshake gives way to that of a network with as many.
/// Longer than the threads need for a crowd of switches that come at once: their work is not thrown
/// away.
pub(crate) const MIN_QUIET_TIME: Duration = Duration::from_secs(1);

/// Maximum number of connections that the acceptor has given to the threads and not got back: those
/// in handshakes, and as many that wait.
pub(crate) const MAX_PENDING: usize = 2 * MAX_HANDSHAKES;

/// The places of one thread.
const PLACES: PlaceLimits = PlaceLimits {
    total: MAX_HANDSHAKES / HANDSHAKE_THREADS,
    per_network: MAX_HANDSHAKES_PER_NETWORK / HANDSHAKE_THREADS,
    spares_loopback: true,
    quiet: MIN_QUIET_TIME,
};

/// Time for a handshake.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of bytes read at once.
const READ_BYTES: usize = 16 << 10;

/// Maximum number of events taken from the poller at once.
const EVENTS: usize = 256;

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error(
        "it is not TLS, but OpenFlow without it; the switch connects with `tcp:`, and this address is for `ssl:`"
    )]
    Plain,
    #[error("its TLS handshake was not finished within {} s", HANDSHAKE_TIMEOUT.as_secs())]
    Late,
    #[error("it closed the connection during the TLS handshake; its log may say why")]
    Closed,
    #[error("{}", explain(.0))]
    Tls(#[from] rustls::Error),
    #[error(
        "there are {MAX_HANDSHAKES} TLS handshakes, or {MAX_HANDSHAKES_PER_NETWORK} of its address; find out \
         what connects"
    )]
    TooMany,
    #[error(
        "its TLS handshake made no progress, and its place went to another connection; find out what \
         connects"
    )]
    Displaced,
    #[error("its certificate cannot be read; make it anew as one of X.509 version 3")]
    Unreadable,
    #[error("its socket failed during the TLS handshake: {0}")]
    Socket(#[from] io::Error),
}

/// The end of a handshake.
struct Ended {
    peer: SocketAddr,
    outcome: Result<TlsSession, HandshakeError>,
}

/// The queues between the acceptor and the threads.
pub(crate) struct Handshakes {
    threads: Vec<ThreadQueue>,
    ended: ArrayQueue<Ended>,
    acceptor: Arc<Waker>,
}

struct ThreadQueue {
    new: ArrayQueue<(TcpStream, SocketAddr)>,
    waker: Waker,
}

impl Handshakes {
    /// Makes the queues, and a poller for each thread. `acceptor` is woken by the end of a
    /// handshake.
    pub(crate) fn new(acceptor: Arc<Waker>) -> io::Result<(Arc<Self>, Vec<Poll>)> {
        let (mut threads, mut polls) = (Vec::new(), Vec::new());
        for _ in 0..HANDSHAKE_THREADS {
            let poll = Poll::new()?;
            let waker = Waker::new(poll.registry(), WAKE)?;
            threads.push(ThreadQueue { new: ArrayQueue::new(MAX_PENDING), waker });
            polls.push(poll);
        }
        let ended = ArrayQueue::new(MAX_PENDING);
        Ok((Arc::new(Handshakes { threads, ended, acceptor }), polls))
    }

    /// Begins a handshake, on the thread whose turn it is.
    fn begin(&self, number: usize, stream: TcpStream, peer: SocketAddr) {
        let Some(thread) = self.threads.get(number % self.threads.len().max(1)) else { return };
        // There is a place for each.
        let _ = thread.new.push((stream, peer));
        wake(&thread.waker);
    }

    /// Wakes all threads, for their end.
    pub(crate) fn wake_all(&self) {
        self.threads.iter().for_each(|thread| wake(&thread.waker));
    }

    fn end(&self, peer: SocketAddr, outcome: Result<TlsSession, HandshakeError>) {
        // There is a place for each.
        let _ = self.ended.push(Ended { peer, outcome });
        wake(&self.acceptor);
    }
}

fn wake(waker: &Waker) {
    if let Err(error) = waker.wake() {
        error!(%error, "a thread of TLS handshakes could not be woken");
    }
}

/// The handshakes that have not ended, as the acceptor counts them.
pub(crate) struct PendingHandshakes {
    queues: Arc<Handshakes>,
    number: usize,
    /// Number of handshakes so far: the threads get them in turn.
    begun: usize,
}

impl PendingHandshakes {
    pub(crate) fn new(queues: Arc<Handshakes>) -> Self {
        PendingHandshakes { queues, number: 0, begun: 0 }
    }

    /// Begins a handshake.
    ///
    /// # Errors
    /// More have come than the threads can look at.
    pub(crate) fn begin(
        &mut self,
        stream: TcpStream,
        peer: SocketAddr,
    ) -> Result<(), RefusalReason> {
        if self.number >= MAX_PENDING {
            return Err(RefusalReason::Handshake(HandshakeError::TooMany));
        }
        self.number += 1;
        self.queues.begin(self.begun, stream, peer);
        self.begun = self.begun.wrapping_add(1);
        Ok(())
    }

    /// Takes a handshake that has ended.
    pub(crate) fn take_ended(
        &mut self,
    ) -> Option<(SocketAddr, Result<TlsSession, HandshakeError>)> {
        let Ended { peer, outcome } = self.queues.ended.pop()?;
        self.number = self.number.saturating_sub(1);
        Some((peer, outcome))
    }
}

/// Runs one of the threads until the engine stops.
pub(crate) fn run(
    all: &Handshakes,
    index: usize,
    poll: Poll,
    server: &TlsServer,
    halt: &Halt,
) -> io::Result<()> {
    let_workers_go_first();
    let Some(ThreadQueue { new, .. }) = all.threads.get(index) else { return Ok(()) };
    let places = Places::new(PLACES, []);
    let pending = HashMap::new();
    let start = Instant::now();
    Thread { all, new, server, poll, pending, places, start, next_token: 0 }.run(halt)
}

/// What one of the threads has.
struct Thread<'a> {
    all: &'a Handshakes,
    new: &'a ArrayQueue<(TcpStream, SocketAddr)>,
    server: &'a TlsServer,
    poll: Poll,
    pending: HashMap<Token, Handshake>,
    places: Places<Token>,
    /// Start of the clock of `places`.
    start: Instant,
    next_token: usize,
}

impl Thread<'_> {
    fn run(mut self, halt: &Halt) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        while !halt.is_stopping() {
            let deadline = self.pending.values().map(|handshake| handshake.deadline).min();
            let wait = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            match self.poll.poll(&mut events, wait) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            // Before new ones: what has come counts as progress.
            events.iter().for_each(|event| self.advance(event.token()));
            while let Some((stream, peer)) = self.new.pop() {
                if let Some(token) = self.begin(stream, peer) {
                    self.advance(token);
                }
            }
            let now = Instant::now();
            let late = self.pending.iter().filter(|(_, handshake)| handshake.deadline <= now);
            for token in late.map(|(token, _)| *token).collect::<Vec<_>>() {
                self.end(token, Err(HandshakeError::Late));
            }
        }
        Ok(())
    }

    /// Gives a new connection a place, perhaps that of another one.
    fn begin(&mut self, stream: TcpStream, peer: SocketAddr) -> Option<Token> {
        let token = Token(self.next_token);
        self.next_token = (self.next_token + 1) % WAKE.0;
        match self.places.take(token, peer.ip(), self.start.elapsed()) {
            Ok(None) => {}
            Ok(Some(displaced)) => self.end(displaced, Err(HandshakeError::Displaced)),
            Err(NoPlace) => {
                self.all.end(peer, Err(HandshakeError::TooMany));
                return None;
            }
        }
        match Handshake::begin(stream, peer, self.server, &self.poll, token) {
            Ok(handshake) => drop(self.pending.insert(token, handshake)),
            Err(error) => {
                self.places.free(&token);
                self.all.end(peer, Err(error));
                return None;
            }
        }
        Some(token)
    }

    /// Goes on with a handshake, as far as possible now.
    fn advance(&mut self, token: Token) {
        let Some(handshake) = self.pending.get_mut(&token) else { return };
        let received = handshake.received;
        match handshake.advance() {
            Ok(false) if handshake.received != received => {
                self.places.progress(&token, self.start.elapsed());
            }
            Ok(false) => {}
            Ok(true) => self.end(token, Ok(())),
            Err(error) => self.end(token, Err(error)),
        }
    }

    fn end(&mut self, token: Token, outcome: Result<(), HandshakeError>) {
        self.places.free(&token);
        let Some(mut handshake) = self.pending.remove(&token) else { return };
        let peer = handshake.peer;
        let left = self.poll.registry().deregister(&mut handshake.stream);
        let outcome = outcome.and(left.map_err(HandshakeError::from));
        self.all.end(peer, outcome.and_then(|()| handshake.into_session(self.server)));
    }
}

/// A connection during its handshake.
struct Handshake {
    stream: TcpStream,
    peer: SocketAddr,
    session: Box<UnbufferedServerConnection>,
    /// See [`SwitchIdentity::epoch`](bellrock_api::SwitchIdentity::epoch).
    epoch: u64,
    deadline: Instant,
    /// Received bytes that are not used yet.
    incoming: Vec<u8>,
    /// Decrypted bytes for the worker.
    decrypted: Vec<u8>,
    /// Bytes to be sent.
    outgoing: Vec<u8>,
    /// Number of bytes received so far.
    received: usize,
}

impl Handshake {
    fn begin(
        mut stream: TcpStream,
        peer: SocketAddr,
        server: &TlsServer,
        poll: &Poll,
        token: Token,
    ) -> Result<Self, HandshakeError> {
        let (config, epoch) = server.config();
        let session = Box::new(UnbufferedServerConnection::new(config)?);
        poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
        Ok(Handshake {
            stream,
            peer,
            session,
            epoch,
            deadline,
            incoming: Vec::new(),
            decrypted: Vec::new(),
            outgoing: Vec::new(),
            received: 0,
        })
    }

    /// Goes on as far as possible now. `true`: the session is established.
    fn advance(&mut self) -> Result<bool, HandshakeError> {
        loop {
            let is_established = self.process()?;
            if !self.send()? {
                return Ok(false);
            }
            if is_established {
                return Ok(true);
            }
            if !self.receive()? {
                return Ok(false);
            }
        }
    }

    /// Processes what was received. `true`: the session is established.
    fn process(&mut self) -> Result<bool, HandshakeError> {
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.session.process_tls_records(&mut self.incoming);
            let goes_on = match state {
                Ok(ConnectionState::WriteTraffic(_)) => {
                    self.incoming.drain(..discard);
                    return Ok(true);
                }
                Ok(ConnectionState::PeerClosed) => return Err(HandshakeError::Closed),
                // The hello of OpenFlow may come with the last message of the handshake.
                Ok(ConnectionState::ReadTraffic(traffic)) => {
                    discard += take_records(traffic, |bytes| {
                        self.decrypted.extend_from_slice(bytes);
                    })?;
                    true
                }
                Ok(state) => go_on(state, &mut self.outgoing)?,
                Err(error) => {
                    self.incoming.drain(..discard);
                    self.send_alert();
                    return Err(error.into());
                }
            };
            self.incoming.drain(..discard);
            if !goes_on {
                return Ok(false);
            }
        }
    }

    /// Sends the reason of a failure to the peer, as far as the kernel takes it at once.
    fn send_alert(&mut self) {
        encode_alert(&mut self.session, &mut self.incoming, &mut self.outgoing);
        let _ = self.send();
    }

    /// Sends what waits. `false`: the kernel does not take all of it now.
    fn send(&mut self) -> io::Result<bool> {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => drop(self.outgoing.drain(..taken)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Receives more. `false`: nothing has come.
    fn receive(&mut self) -> Result<bool, HandshakeError> {
        let before = self.incoming.len();
        if before + READ_BYTES > MAX_CARRY_BYTES {
            return Err(
                rustls::Error::from(rustls::InvalidMessage::HandshakePayloadTooLarge).into()
            );
        }
        self.incoming.resize(before + READ_BYTES, 0);
        let room = self.incoming.get_mut(before..).unwrap_or_default();
        let received = rustix::io::read(&self.stream, room);
        self.incoming.truncate(before + received.unwrap_or(0));
        match received {
            Ok(0) => Err(HandshakeError::Closed),
            Ok(_) if self.received == 0 && is_openflow(&self.incoming) => {
                Err(HandshakeError::Plain)
            }
            Ok(bytes) => {
                self.received = self.received.saturating_add(bytes);
                Ok(true)
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(rustix::io::Errno::INTR) => self.receive(),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    fn into_session(self, server: &TlsServer) -> Result<TlsSession, HandshakeError> {
        // Without what it says, it would count as a plain connection.
        let identity = identity(&self.session, self.epoch).ok_or(HandshakeError::Unreadable)?;
        if self.session.handshake_kind() == Some(HandshakeKind::Resumed) {
            // It was verified when the session began, perhaps hours ago.
            server.verify(&identity)?;
        }
        let Handshake { stream, session, incoming, decrypted, .. } = self;
        Ok(TlsSession::new(stream, session, Arc::new(identity), incoming, decrypted))
    }
}

/// Whether the bytes begin with an OpenFlow hello of any version (1.0 §5.1). A record of a
/// handshake begins with 22.
fn is_openflow(bytes: &[u8]) -> bool {
    matches!(bytes, [1..=6, 0, ..])
}
