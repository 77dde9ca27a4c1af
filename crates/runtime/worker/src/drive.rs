//! What drives a worker: the engine's thread calls workers with apps and those of raw connections
//! alike.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bellrock_session::Versions;

use crate::counters::WorkerCounters;
use crate::transport::{ConnectionKey, Transport};
use crate::worker::Worker;

/// The calls of a thread to its worker. See the methods of the same names of [`Worker`].
pub trait Drive {
    /// Its counters.
    fn counters(&self) -> &Arc<WorkerCounters>;
    /// Number of its connections.
    fn connections(&self) -> usize;
    /// Key of the next connection.
    fn next_key(&self) -> ConnectionKey;
    /// Opens a connection of a switch.
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
    /// Sets the maximum bytes of the next reads.
    fn set_turn_bytes(&mut self, bytes: usize);
    /// Gives a switch its turn. Returns whether there may be more to read at once.
    fn read<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T) -> bool;
    /// The same for a switch whose bytes have waited for too long.
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
    /// Ends a window of time in which the worker was busy for `busy`.
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

impl Drive for Worker {
    #[inline]
    fn counters(&self) -> &Arc<WorkerCounters> {
        self.counters()
    }

    #[inline]
    fn connections(&self) -> usize {
        self.connections()
    }

    #[inline]
    fn next_key(&self) -> ConnectionKey {
        self.next_key()
    }

    #[inline]
    fn open_in<T: Transport>(
        &mut self,
        peer: SocketAddr,
        versions: Option<Versions>,
        now: Duration,
        transport: &mut T,
    ) {
        self.open_in(peer, versions, now, transport);
    }

    #[inline]
    fn set_turn_bytes(&mut self, bytes: usize) {
        self.set_turn_bytes(bytes);
    }

    #[inline]
    fn read<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T) -> bool {
        self.read(key, now, transport)
    }

    #[inline]
    fn read_share<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) -> bool {
        self.read_share(key, now, transport)
    }

    #[inline]
    fn mail<T: Transport>(&mut self, now: Duration, transport: &mut T) -> bool {
        self.mail(now, transport)
    }

    #[inline]
    fn next_timer(&self) -> Option<Duration> {
        self.next_timer()
    }

    #[inline]
    fn timers<T: Transport>(&mut self, now: Duration, transport: &mut T) {
        self.timers(now, transport);
    }

    #[inline]
    fn drained(&mut self, key: ConnectionKey, queued: usize, now: Duration) {
        self.drained(key, queued, now);
    }

    #[inline]
    fn closed<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T) {
        self.closed(key, now, transport);
    }

    #[inline]
    fn stalled<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T) {
        self.stalled(key, now, transport);
    }

    #[inline]
    fn window<T: Transport>(
        &mut self,
        busy: Duration,
        window: Duration,
        now: Duration,
        transport: &mut T,
    ) {
        self.window(busy, window, now, transport);
    }

    #[inline]
    fn stop<T: Transport>(&mut self, now: Duration, transport: &mut T) {
        self.stop(now, transport);
    }
}
