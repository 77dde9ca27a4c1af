//! The acceptor: accepts, and gives each connection to the least loaded worker.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bellrock_worker::{Limits, Wake};
use mio::event::Events;
use mio::{Interest, Poll, Token};
use socket2::{Domain, Protocol, Socket, Type};
use tracing::{debug, info, warn};

use crate::halt::Halt;
use crate::settings::StartError;
use crate::thread::Inbox;

/// Connections that the kernel keeps for us while we are busy.
const BACKLOG: i32 = 4096;

/// Connections accepted from one listener before it is the next one's turn, and the turn of a
/// stop.
const ACCEPTS_PER_TURN: usize = 256;

/// What the kernel keeps of a connection that is not read yet; it doubles that, and lets the switch
/// know when it is full. Otherwise it would take up to `tcp_rmem`'s maximum, megabytes, from each
/// switch; and the more of it there is, the later is each packet's turn, and out of the cache by then.
const RECEIVE_BUFFER_BYTES: usize = 128 * 1024;

/// Bytes that the kernel keeps of what is written to a connection, until the peer has acknowledged them; the
/// kernel doubles that. Otherwise it would keep up to `tcp_wmem`'s maximum, megabytes, for each slow
/// switch. It is also what can be under way: 256 KiB and 10 ms are some 100,000 flow_mods a second.
const SEND_BUFFER_BYTES: usize = 128 * 1024;

/// How long to wait when the system has no file descriptors left, or nothing can be accepted for
/// another reason.
const ACCEPT_WAIT: Duration = Duration::from_millis(100);

/// How long it is silent about file descriptors after it has said that there are none.
const OUT_OF_FILES_SILENCE: Duration = Duration::from_secs(10);

/// What the acceptor counts.
#[derive(Debug, Default)]
pub(crate) struct Accepted {
    /// Connections that a worker got.
    pub(crate) accepted: AtomicU64,
    /// Connections that were closed at once, because a limit was reached.
    pub(crate) refused: AtomicU64,
}

pub(crate) struct Acceptor {
    pub(crate) listeners: Vec<mio::net::TcpListener>,
    pub(crate) poll: Poll,
    pub(crate) inboxes: Vec<Arc<Inbox>>,
    pub(crate) limits: Limits,
    pub(crate) counts: Arc<Accepted>,
    pub(crate) halt: Arc<Halt>,
    /// When it last said that there are no file descriptors left.
    pub(crate) said_out_of_files: Option<Instant>,
}

/// Listens on an address. An IPv6 address takes IPv6 only, so that `[::]` and `0.0.0.0` can be
/// asked for side by side.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    let bind = || -> io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        // Before it listens, so that the connections have it from their first segment on.
        socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
        socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    bind().map_err(|error| StartError::Listen { address, error })
}

impl Acceptor {
    pub(crate) fn register(&mut self) -> io::Result<()> {
        for (place, listener) in self.listeners.iter_mut().enumerate() {
            self.poll.registry().register(listener, Token(place), Interest::READABLE)?;
        }
        Ok(())
    }

    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(self.listeners.len() + 1);
        let mut again_in = None;
        while !self.halt.is_stopping() {
            match self.poll.poll(&mut events, again_in) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            // The poller tells of each connection once, so those that were left are tried unasked.
            let all = again_in.take().is_some();
            for place in 0..self.listeners.len() {
                if all || events.iter().any(|event| event.token() == Token(place)) {
                    let left = self.accept_some(place);
                    again_in = [again_in, left].into_iter().flatten().min();
                }
            }
        }
        Ok(())
    }

    /// Accepts those that wait. Returns when to try again, if some may be left.
    fn accept_some(&mut self, place: usize) -> Option<Duration> {
        let mut failures = 0;
        for _ in 0..ACCEPTS_PER_TURN {
            match self.listeners.get(place)?.accept() {
                Ok((stream, peer)) => self.give(stream.into(), peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if is_out_of_files(&error) => {
                    self.say_out_of_files(&error);
                    return Some(ACCEPT_WAIT);
                }
                // The peer gave up meanwhile, or the call was interrupted: the next one.
                Err(error) => {
                    debug!(%error, "a connection could not be accepted");
                    failures += 1;
                }
            }
        }
        Some(if failures == ACCEPTS_PER_TURN { ACCEPT_WAIT } else { Duration::ZERO })
    }

    fn say_out_of_files(&mut self, error: &io::Error) {
        if self.said_out_of_files.is_some_and(|said| said.elapsed() < OUT_OF_FILES_SILENCE) {
            return;
        }
        self.said_out_of_files = Some(Instant::now());
        warn!(
            %error,
            "connections wait, because the system has nothing left to accept them with; raise the \
             limit of open files (ulimit -n), or lower limits.connections"
        );
    }

    /// Gives a connection to the least loaded worker under its limit, or closes it.
    fn give(&self, stream: std::net::TcpStream, peer: SocketAddr) {
        let loads = self.inboxes.iter().map(|inbox| (inbox.load(), inbox));
        let total: usize = loads.clone().map(|(load, _)| load).sum();
        let least = loads.min_by_key(|(load, _)| *load);
        let Some((_, inbox)) = least.filter(|(load, _)| {
            total < self.limits.connections && *load < self.limits.switches_per_worker
        }) else {
            return self.refuse(peer, "the limit of connections is reached");
        };
        // Answers are small and late ones help nobody: no waiting for more to send.
        if let Err(error) = stream.set_nodelay(true) {
            return self.refuse(peer, &error.to_string());
        }
        inbox.given.fetch_add(1, Ordering::Relaxed);
        if inbox.streams.push(stream).is_err() {
            inbox.given.fetch_sub(1, Ordering::Relaxed);
            return self.refuse(peer, "its worker does not keep up with new connections");
        }
        self.counts.accepted.fetch_add(1, Ordering::Relaxed);
        inbox.sleeper.wake();
    }

    fn refuse(&self, peer: SocketAddr, reason: &str) {
        let refused = self.counts.refused.fetch_add(1, Ordering::Relaxed) + 1;
        // A flood of connections must not become a flood of log lines: powers of two only.
        if refused.is_power_of_two() {
            info!(%peer, reason, refused, "connection refused");
        }
    }
}

/// No file descriptors, of the process or of the system, or no memory for one.
fn is_out_of_files(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use socket2::SockRef;

    use super::*;

    #[test]
    fn what_the_kernel_keeps_of_a_connection_is_bounded_in_both_directions() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        listener.set_nonblocking(false).unwrap();
        let _peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let socket = SockRef::from(&stream);
        // The kernel doubles what it is given; less where `wmem_max` and `rmem_max` are smaller.
        let (send, receive) =
            (socket.send_buffer_size().unwrap(), socket.recv_buffer_size().unwrap());
        assert!(send <= 2 * SEND_BUFFER_BYTES, "{send} bytes to be sent");
        assert!(receive <= 2 * RECEIVE_BUFFER_BYTES, "{receive} bytes received");
    }
}
