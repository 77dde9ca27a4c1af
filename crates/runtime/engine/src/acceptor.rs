//! Accepts connections, and gives each one to the least loaded worker.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bellrock_api::runtime::EventPublisher as _;
use bellrock_api::{Network, RateLimit};
use bellrock_worker::{Limits, Wake};
use mio::event::Events;
use mio::{Poll, Token};
use tracing::{debug, info, warn};

use crate::channel::Channel;
use crate::halt::Halt;
use crate::listener::{Accepted, Listener};
use crate::refusals::{RefusalReason, Refusals};
use crate::thread::ConnectionInbox;
#[cfg(feature = "tls")]
use crate::tls::handshake::PendingHandshakes;

/// Maximum number of connections accepted from one listener, before the next listener's turn and
/// the check for a stop.
const ACCEPTS_PER_TURN: usize = 256;

/// Delay before the next attempt when no file descriptors are left, or accepting fails for another
/// reason.
const ACCEPT_WAIT: Duration = Duration::from_millis(100);

/// Minimum time between two log lines about missing file descriptors.
const OUT_OF_FILES_SILENCE: Duration = Duration::from_secs(10);

/// Maximum number of log lines about refused TLS handshakes at once, and time after which there may
/// be a further one.
const HANDSHAKE_LINES: u32 = 32;
const HANDSHAKE_LINE_EVERY: Duration = Duration::from_secs(1);

/// Counters of the acceptor.
#[derive(Debug, Default)]
pub(crate) struct AcceptorCounters {
    /// Number of connections given to a worker.
    pub(crate) accepted: AtomicU64,
    /// Number of connections closed at once because of a limit.
    pub(crate) refused: AtomicU64,
}

pub(crate) struct Acceptor {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) poll: Poll,
    pub(crate) inboxes: Vec<Arc<ConnectionInbox>>,
    pub(crate) limits: Limits,
    pub(crate) counts: Arc<AcceptorCounters>,
    pub(crate) halt: Arc<Halt>,
    /// Time of the last log line about missing file descriptors.
    pub(crate) said_out_of_files: Option<Instant>,
    pub(crate) refusals: Refusals,
    /// Which refused handshakes are logged.
    pub(crate) handshake_lines: RateLimit,
    /// Publishes events, and is their clock.
    pub(crate) network: Network,
    #[cfg(feature = "tls")]
    pub(crate) handshakes: Option<PendingHandshakes>,
}

/// A full limit of log lines about refused handshakes.
pub(crate) const fn handshake_lines() -> RateLimit {
    RateLimit::new(HANDSHAKE_LINES, HANDSHAKE_LINE_EVERY)
}

impl Acceptor {
    pub(crate) fn register(&mut self) -> io::Result<()> {
        for (place, listener) in self.listeners.iter_mut().enumerate() {
            listener.register(self.poll.registry(), Token(place))?;
        }
        Ok(())
    }

    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(self.listeners.len() + 1);
        let mut again_in = None;
        while !self.halt.is_stopping() {
            let report_in = self.refusals.next().map(|at| at.saturating_sub(self.network.now()));
            let wait = [again_in, report_in].into_iter().flatten().min();
            match self.poll.poll(&mut events, wait) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            // The poller reports each connection once, so the remaining ones are tried without an
            // event.
            let all = again_in.take().is_some();
            for place in 0..self.listeners.len() {
                if all || events.iter().any(|event| event.token() == Token(place)) {
                    let remaining = self.accept_some(place);
                    again_in = [again_in, remaining].into_iter().flatten().min();
                }
            }
            #[cfg(feature = "tls")]
            self.end_handshakes();
            let now = self.network.now();
            if let Some(event) = self.refusals.due(now) {
                self.network.events().publish(now, event);
            }
        }
        Ok(())
    }

    /// Accepts waiting connections. Returns when to try again, if some may be left.
    fn accept_some(&mut self, place: usize) -> Option<Duration> {
        let mut failures = 0;
        for _ in 0..ACCEPTS_PER_TURN {
            match self.listeners.get(place)?.accept() {
                Ok((Accepted::Channel(channel), peer)) => self.assign(channel, peer),
                #[cfg(feature = "tls")]
                Ok((Accepted::Tls(stream), peer)) => self.begin_handshake(stream, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if is_out_of_files(&error) => {
                    self.say_out_of_files(&error);
                    return Some(ACCEPT_WAIT);
                }
                // The peer gave up meanwhile, or the call was interrupted: try the next one.
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
            "connections wait: the system has no file descriptors or memory for them; raise the \
             limit of open files (ulimit -n), or lower limits.connections"
        );
    }

    /// Gives a connection to the least loaded worker under its limit, or closes it.
    fn assign(&mut self, channel: Channel, peer: SocketAddr) {
        let loads = self.inboxes.iter().map(|inbox| (inbox.load(), inbox));
        let total: usize = loads.clone().map(|(load, _)| load).sum();
        let Limits { connections, switches_per_worker, .. } = self.limits;
        if total >= connections {
            return self.refuse(peer, RefusalReason::Connections(connections));
        }
        let idlest = loads.min_by_key(|(load, _)| *load);
        let Some((_, inbox)) = idlest.filter(|(load, _)| *load < switches_per_worker) else {
            return self.refuse(peer, RefusalReason::Workers(switches_per_worker));
        };
        if let Err(error) = channel.send_at_once() {
            return self.refuse(peer, error.into());
        }
        inbox.passed.fetch_add(1, Ordering::Relaxed);
        if inbox.channels.push(channel).is_err() {
            inbox.passed.fetch_sub(1, Ordering::Relaxed);
            return self.refuse(peer, RefusalReason::Busy);
        }
        self.counts.accepted.fetch_add(1, Ordering::Relaxed);
        inbox.sleeper.wake();
    }

    fn refuse(&mut self, peer: SocketAddr, reason: RefusalReason) {
        let refused = self.counts.refused.fetch_add(1, Ordering::Relaxed) + 1;
        // Many connections must not cause many log lines. But why a certificate is refused is
        // different each time, and its owner looks for it here.
        if refused.is_power_of_two()
            || reason.is_of_handshake() && self.handshake_lines.pass(self.network.now())
        {
            info!(%peer, %reason, refused, "connection refused");
        }
        self.refusals.refused(peer.ip(), reason);
    }
}

#[cfg(feature = "tls")]
impl Acceptor {
    /// Begins the TLS handshake of a connection, or closes it.
    fn begin_handshake(&mut self, stream: mio::net::TcpStream, peer: SocketAddr) {
        let Some(handshakes) = &mut self.handshakes else { return };
        if let Err(reason) = handshakes.begin(stream, peer) {
            self.refuse(peer, reason);
        }
    }

    /// Gives the connections whose handshakes have ended to workers, or closes them.
    fn end_handshakes(&mut self) {
        while let Some((peer, outcome)) =
            self.handshakes.as_mut().and_then(PendingHandshakes::take_ended)
        {
            match outcome {
                Ok(session) => self.assign(Channel::Tls(session), peer),
                Err(error) => self.refuse(peer, RefusalReason::Handshake(error)),
            }
        }
    }
}

/// Whether file descriptors are used up, of the process or the system, or memory for one.
fn is_out_of_files(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}
