//! Places of connections: how many there are, whose they are, and which one makes room for a new
//! one.
//!
//! A connection that is quiet (it has no request, no complete head or no handshake yet, and nothing
//! of an answer waits for its client) costs its owner nothing, so any number of them can be held.
//! Hence they must not keep others out: if all places are taken, the one that is quiet longest is
//! closed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bellrock_pace::network_of;
use tokio::sync::Notify;

use crate::limits::{
    MAX_CONNECTIONS, MAX_CONNECTIONS_PER_CLIENT, MAX_WAITING_ANSWER_BYTES, MIN_QUIET_TIME,
};

/// The places of all connections.
#[derive(Debug, Default)]
pub(crate) struct Places {
    taken: Mutex<Taken>,
    /// Bytes of answers that clients have not taken yet.
    waiting_bytes: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Taken {
    last_number: u64,
    connections: HashMap<u64, Arc<Connection>>,
}

/// The place of a connection. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    connection: Arc<Connection>,
}

/// What a connection does.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Its remote address, or the network of that.
    network: IpAddr,
    state: Mutex<State>,
    displaced: Notify,
    /// Those of all connections.
    waiting_bytes: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct State {
    /// Requests whose answers are not written into the buffer yet.
    requests: usize,
    /// Bytes of those answers, as far as they are known.
    held_bytes: usize,
    /// Bytes of answers in the buffer, of which some wait for the client.
    buffered_bytes: usize,
    /// Since when there is nothing of that.
    quiet_since: Instant,
}

impl Places {
    /// Takes a place, perhaps that of a quiet connection. Returns whether it was. `None`: all are
    /// taken, and busy.
    pub(crate) fn take(places: &Arc<Self>, ip: IpAddr, now: Instant) -> Option<(Place, bool)> {
        let network = network_of(ip);
        // Each change of it is one insertion or removal.
        let mut taken = places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own =
            taken.connections.values().filter(|connection| connection.network == network).count();
        let is_client_full = own >= MAX_CONNECTIONS_PER_CLIENT && !network.is_loopback();
        let is_full = is_client_full || taken.connections.len() >= MAX_CONNECTIONS;
        if is_full {
            let may_go = |other: &Connection| !is_client_full || other.network == network;
            let quiet = taken.connections.iter().filter(|(_, other)| may_go(other));
            let quiet =
                quiet.filter_map(|(number, other)| Some((other.quiet_since(now)?, *number)));
            let (_, number) = quiet.min()?;
            taken.connections.remove(&number)?.displaced.notify_one();
        }
        taken.last_number += 1;
        let connection = Arc::new(Connection {
            network,
            state: Mutex::new(State {
                requests: 0,
                held_bytes: 0,
                buffered_bytes: 0,
                quiet_since: now,
            }),
            displaced: Notify::new(),
            waiting_bytes: Arc::clone(&places.waiting_bytes),
        });
        let number = taken.last_number;
        taken.connections.insert(number, Arc::clone(&connection));
        Some((Place { places: Arc::clone(places), number, connection }, is_full))
    }
}

impl Place {
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.connections.remove(&self.number);
    }
}

impl Connection {
    /// Waits until another connection has got its place.
    pub(crate) async fn displaced(&self) {
        self.displaced.notified().await;
    }

    /// Begins a request.
    pub(crate) fn request(self: &Arc<Self>) -> Pending {
        self.state().requests += 1;
        Pending { connection: Arc::clone(self), bytes: 0 }
    }

    /// All bytes of the buffer are written.
    pub(crate) fn written(&self) {
        let mut state = self.state();
        let bytes = std::mem::take(&mut state.buffered_bytes);
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        // HTTP flushes after each byte of a head, too, which is no end of an answer.
        if bytes > 0 {
            state.quiet_since = Instant::now();
        }
    }

    /// Since when it is quiet, if that is long enough.
    fn quiet_since(&self, now: Instant) -> Option<Instant> {
        let state = self.state();
        let is_quiet = state.requests == 0 && state.buffered_bytes == 0;
        let long_enough = now.saturating_duration_since(state.quiet_since) >= MIN_QUIET_TIME;
        (is_quiet && long_enough).then_some(state.quiet_since)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Numbers, none of which depends on another.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let state = self.state();
        self.waiting_bytes.fetch_sub(state.held_bytes + state.buffered_bytes, Ordering::Relaxed);
    }
}

/// A request, until its answer is in the buffer.
#[derive(Debug)]
pub(crate) struct Pending {
    connection: Arc<Connection>,
    bytes: usize,
}

impl Pending {
    /// Takes so many bytes of an answer into account. Returns whether they may wait for the client;
    /// if not, none is taken into account.
    pub(crate) fn holds(&mut self, bytes: usize) -> bool {
        let all = self.connection.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        if all.saturating_add(bytes) > MAX_WAITING_ANSWER_BYTES {
            self.connection.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.connection.state().held_bytes += bytes;
        self.bytes += bytes;
        true
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut state = self.connection.state();
        state.requests -= 1;
        state.held_bytes -= self.bytes;
        state.buffered_bytes += self.bytes;
        state.quiet_since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn ip(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn take(places: &Arc<Places>, ip: IpAddr, now: Instant) -> Option<(Place, bool)> {
        Places::take(places, ip, now)
    }

    #[test]
    fn a_new_connection_displaces_the_one_that_is_quiet_longest_and_never_a_busy_one() {
        let (places, start) = (Arc::new(Places::default()), Instant::now());
        let held: Vec<_> =
            (0..MAX_CONNECTIONS).map(|_| take(&places, LOOPBACK, start).unwrap().0).collect();
        assert!(take(&places, ip(1), start).is_none(), "they have just come");
        // All but one have a request. It lasts longer than any time here.
        let requests: Vec<_> =
            held.iter().skip(1).map(|place| place.connection().request()).collect();
        let later = start + MIN_QUIET_TIME;
        let (new, displaced) = take(&places, ip(1), later).unwrap();
        assert!(displaced);
        assert!(take(&places, ip(2), later).is_none(), "all are busy, or have just come");
        // The displaced one frees no place of another.
        drop(held);
        drop(requests);
        assert_eq!(places.taken.lock().unwrap().connections.len(), 1);
        drop(new);
        assert!(places.taken.lock().unwrap().connections.is_empty());
    }

    #[test]
    fn a_remote_address_has_a_share_and_displaces_its_own_connections_only() {
        let (places, start) = (Arc::new(Places::default()), Instant::now());
        let other = take(&places, ip(2), start).unwrap().0;
        let held: Vec<_> = (0..MAX_CONNECTIONS_PER_CLIENT)
            .map(|_| take(&places, ip(1), start + MIN_QUIET_TIME).unwrap().0)
            .collect();
        // Only the other address's connection is quiet for long enough.
        assert!(take(&places, ip(1), start + MIN_QUIET_TIME).is_none());
        let (own, displaced) = take(&places, ip(1), start + 2 * MIN_QUIET_TIME).unwrap();
        assert!(displaced);
        assert!(places.taken.lock().unwrap().connections.contains_key(&other.number));
        let of_loopback: Vec<_> = (0..=MAX_CONNECTIONS_PER_CLIENT)
            .filter_map(|_| take(&places, LOOPBACK, start))
            .collect();
        assert_eq!(of_loopback.len(), MAX_CONNECTIONS_PER_CLIENT + 1, "it has no share");
        drop((own, held));
    }

    #[test]
    fn bytes_count_until_they_are_written_or_the_connection_ends() {
        let (places, now) = (Arc::new(Places::default()), Instant::now());
        let waiting = || places.waiting_bytes.load(Ordering::Relaxed);
        let (one, other) =
            (take(&places, ip(1), now).unwrap().0, take(&places, ip(2), now).unwrap().0);
        let mut first = one.connection().request();
        assert!(first.holds(MAX_WAITING_ANSWER_BYTES - 1));
        let mut second = other.connection().request();
        assert!(!second.holds(2) && second.holds(1));
        assert_eq!(waiting(), MAX_WAITING_ANSWER_BYTES);
        // It is in the buffer, but not written.
        drop(first);
        one.connection().written();
        assert_eq!(waiting(), 1);
        drop(other);
        assert_eq!(waiting(), 1, "the request is not over");
        drop(second);
        assert_eq!(waiting(), 0);
    }
}
