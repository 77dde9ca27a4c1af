//! What drives a worker: the engine's thread calls workers with apps and those of raw connections
//! alike. The way of the bytes of a read begins here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bellrock_session::{FirstRole, Versions};
use tracing::{debug, warn};

use super::{EndCause, Session, User, WorkerOf};
use crate::balance::{WorkerLoad, permille};
use crate::counters::WorkerCounters;
use crate::mailbox::Mail;
use crate::settings::MAIL_PER_TURN;
use crate::transport::{ConnectionKey, ReadOutcome, Transport};

/// The calls of a thread to its worker. `now` is the time since the controller's start, the same
/// for all workers. It never goes back.
pub trait Drive {
    /// Its counters.
    fn counters(&self) -> &Arc<WorkerCounters>;
    /// Number of its connections.
    fn connections(&self) -> usize;
    /// Key of the next connection.
    fn next_key(&self) -> ConnectionKey;
    /// Opens a connection of a switch: sends a hello. The transport must already know
    /// [`Drive::next_key`].
    fn open<T: Transport>(&mut self, peer: SocketAddr, now: Duration, transport: &mut T) {
        self.open_in(peer, None, now, transport);
    }
    /// The same, in these versions instead of those of the sessions.
    fn open_in<T: Transport>(
        &mut self,
        peer: SocketAddr,
        versions: Option<Versions>,
        now: Duration,
        transport: &mut T,
    );
    /// Sets the maximum bytes of the next reads, at most `bytes_per_turn`: while reads take long,
    /// its caller makes them shorter.
    fn set_turn_bytes(&mut self, bytes: usize);
    /// Gives a switch its turn: one read, processing of all that came, one write. Returns whether
    /// there may be more to read at once.
    fn read<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T) -> bool;
    /// The same for a switch whose bytes have waited for too long: a whole read, of which only a
    /// share of the packet-ins reaches the apps. Its ports have fair shares. So its other messages
    /// are processed soon, and the other switches do not wait longer for it. A raw owner gets all.
    fn read_share<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) -> bool;
    /// Processes mail. Returns whether there may be more.
    fn mail<T: Transport>(&mut self, now: Duration, transport: &mut T) -> bool;
    /// Time when [`Drive::timers`] has something to do next.
    fn next_timer(&self) -> Option<Duration>;
    /// Processes all timers that are due.
    fn timers<T: Transport>(&mut self, now: Duration, transport: &mut T);
    /// Notes that the transport has sent queued bytes; `queued` are left.
    fn drained(&mut self, key: ConnectionKey, queued: usize, now: Duration);
    /// Handles a connection that has failed, or that the switch has closed.
    fn closed<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T);
    /// Closes a connection whose switch reads no bytes.
    fn stalled<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T);
    /// Ends a window of time ([`crate::LOAD_WINDOW`]) in which the worker was busy for `busy`.
    /// Publishes the load, and hands switches over to an idle worker after some windows of
    /// overload.
    fn window<T: Transport>(
        &mut self,
        busy: Duration,
        window: Duration,
        now: Duration,
        transport: &mut T,
    );
    /// Closes every connection, after the mail that was accepted for it.
    fn stop<T: Transport>(&mut self, now: Duration, transport: &mut T);
}

impl<U: User> Drive for WorkerOf<U> {
    fn counters(&self) -> &Arc<WorkerCounters> {
        &self.counters
    }

    fn connections(&self) -> usize {
        self.connections.len()
    }

    fn next_key(&self) -> ConnectionKey {
        self.connections.vacant_key()
    }

    fn open_in<T: Transport>(
        &mut self,
        peer: SocketAddr,
        versions: Option<Versions>,
        now: Duration,
        transport: &mut T,
    ) {
        let mut settings = self.settings.session;
        settings.versions = versions.unwrap_or(settings.versions);
        if self.shared.has_orders() {
            // One of them may be to stand by at this switch, whose datapath id is not known yet.
            settings.first_role = FirstRole::Standby;
        }
        let session = match U::Session::open(&settings, now, &mut self.out) {
            Ok(session) => session,
            Err(error) => {
                warn!(%peer, %error, "a hello could not be written");
                return transport.close(self.next_key());
            }
        };
        let key = self.connections.add(peer, session, U::own(&self.settings));
        self.counters.connections_opened.add(1);
        debug!(%peer, worker = self.index, "connected");
        self.flush(key, transport);
        self.connections.set_timer(key);
    }

    #[inline]
    fn set_turn_bytes(&mut self, bytes: usize) {
        self.turn_bytes = bytes.min(self.settings.limits.bytes_per_turn);
    }

    fn read<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T) -> bool {
        let Some(connection) = self.connections.get_mut(key) else { return false };
        connection.is_paused = !self.user.may_read(&connection.stage);
        if connection.is_paused {
            self.counters.pauses.add(1);
            return false;
        }
        let carried = connection.carry.len();
        let end = carried + self.turn_bytes;
        let Some((carry, room)) =
            self.receive.get_mut(..end).and_then(|buffer| buffer.split_at_mut_checked(carried))
        else {
            return false;
        };
        carry.copy_from_slice(&connection.carry);
        let (n, has_more) = match transport.read(key, room) {
            ReadOutcome::Bytes { n, has_more } => (n, has_more),
            ReadOutcome::Empty => return false,
            ReadOutcome::Closed => {
                self.close(key, EndCause::Peer, now, transport);
                return false;
            }
            ReadOutcome::Corrupt => {
                self.close(key, EndCause::Corrupt, now, transport);
                return false;
            }
        };
        connection.session.received(now);
        self.counters.reads.add(1);
        self.counters.bytes_in.add(n as u64);
        let receive = std::mem::take(&mut self.receive);
        let stream = receive.get(..carried + n).unwrap_or(&[]);
        let used = U::received(self, key, stream, now, transport);
        if let Some(connection) = self.connections.get_mut(key) {
            connection.carry.clear();
            connection.carry.extend_from_slice(stream.get(used..).unwrap_or(&[]));
        }
        self.receive = receive;
        has_more && self.connections.contains(key)
    }

    fn read_share<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) -> bool {
        U::read_share(self, key, now, transport)
    }

    fn mail<T: Transport>(&mut self, now: Duration, transport: &mut T) -> bool {
        for _ in 0..MAIL_PER_TURN {
            let postponed = self.postponed.pop_front();
            let Some(mail) = postponed.or_else(|| self.shared.mailbox(self.index)?.pop()) else {
                return false;
            };
            match mail {
                Mail::AreYouAlive { id, claimant } => self.challenge(id, claimant, now, transport),
                Mail::OldConnection { claimant, is_alive } => {
                    self.handle_challenge_answer(claimant, is_alive, now, transport);
                }
                Mail::Close { id, why } => {
                    if let Some(key) = self.connections.find(id) {
                        self.close(key, EndCause::Ordered(why), now, transport);
                    }
                }
                mail => U::mail(self, mail, now, transport),
            }
        }
        true
    }

    fn next_timer(&self) -> Option<Duration> {
        self.connections.timers.next()
    }

    fn timers<T: Transport>(&mut self, now: Duration, transport: &mut T) {
        while let Some((at, key, serial)) = self.connections.timers.due(now) {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            if connection.serial != serial || connection.timer != Some(at) {
                continue;
            }
            connection.timer = None;
            self.timer(key, now, transport);
            self.flush(key, transport);
            self.connections.set_timer(key);
        }
    }

    fn drained(&mut self, key: ConnectionKey, queued: usize, now: Duration) {
        if let Some(connection) = self.connections.get_mut(key) {
            // Taken bytes are a sign of life: the switch's own may wait behind them.
            connection.session.received(now);
            connection.note_queued(&self.user, queued);
        }
        // Its echo reply may be behind much that it must read first.
        self.end_challenge(key);
    }

    fn closed<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T) {
        self.close(key, EndCause::Peer, now, transport);
    }

    fn stalled<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T) {
        self.close(key, EndCause::Stalled, now, transport);
    }

    fn window<T: Transport>(
        &mut self,
        busy: Duration,
        window: Duration,
        now: Duration,
        transport: &mut T,
    ) {
        let load = WorkerLoad { busy: permille(busy, window), connections: self.connections.len() };
        self.shared.loads().publish(self.index, load);
        U::end_window(self, load, now, transport);
    }

    fn stop<T: Transport>(&mut self, now: Duration, transport: &mut T) {
        self.close_all(now, transport);
    }
}
