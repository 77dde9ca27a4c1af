//! The acceptor: accepts, and gives each connection to the least loaded worker.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bellrock_worker::{Limits, Wake};
use mio::event::Events;
use mio::{Interest, Poll, Token};
use socket2::{Domain, Protocol, Socket, Type};
use tracing::{info, warn};

use crate::settings::StartError;
use crate::thread::{Inbox, WAKE};

/// Connections that the kernel keeps for us while we are busy.
const BACKLOG: i32 = 4096;

/// Connections that wait for their worker to take them in; more are closed at once.
pub(crate) const INBOX: usize = 4096;

/// How long to wait when the system has no file descriptors left.
const OUT_OF_FILES_WAIT: Duration = Duration::from_millis(100);

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
    pub(crate) stop: Arc<AtomicBool>,
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
        let mut again = false;
        while !self.stop.load(Ordering::Relaxed) {
            let timeout = again.then_some(OUT_OF_FILES_WAIT);
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            let all = std::mem::take(&mut again);
            for place in 0..self.listeners.len() {
                let ready = events.iter().any(|e| e.token() != WAKE && e.token() == Token(place));
                if all || ready {
                    again |= self.accept_all(place);
                }
            }
        }
        Ok(())
    }

    /// Accepts until nobody waits. `true`: the system had nothing left to accept with, and it has
    /// to be tried again, since the poller will not say so.
    fn accept_all(&self, place: usize) -> bool {
        let Some(listener) = self.listeners.get(place) else { return false };
        loop {
            match listener.accept() {
                Ok((stream, peer)) => self.give(stream.into(), peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if is_out_of_files(&error) => {
                    warn!(
                        "no file descriptors left: raise the limit (ulimit -n), or lower limits.connections"
                    );
                    return true;
                }
                // The peer gave up meanwhile, or the call was interrupted: the next one.
                Err(_) => {}
            }
        }
    }

    /// Gives a connection to the least loaded worker under its limit, or closes it.
    fn give(&self, stream: std::net::TcpStream, peer: SocketAddr) {
        let loads = self.inboxes.iter().map(|inbox| (inbox.load.load(Ordering::Relaxed), inbox));
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
        inbox.load.fetch_add(1, Ordering::Relaxed);
        if inbox.streams.push(stream).is_err() {
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

/// No file descriptors, of the process or of the system.
fn is_out_of_files(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(errno, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}
