//! The table of a worker's connections.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bellrock_api::{Counter, Dpid, SwitchInfo};
use slab::Slab;

use super::User;
use super::claims::{Challenge, Claim};
use super::timers::ConnectionTimers;
use crate::mailbox::ConnectionId;
use crate::port_counts::PublishedPortCounts;
use crate::transport::ConnectionKey;

/// The number of a connection's first worker is above this many bits of its serial, so serials are
/// unique in a controller.
const SERIAL_BITS: u32 = 48;

/// A connection and its state.
pub(crate) struct Connection<U: User> {
    /// Unique number: keys are used again.
    pub(crate) serial: u64,
    /// Number of times that it has begun to stand by. Mail of an earlier term is not delivered.
    pub(crate) term: u32,
    pub(crate) peer: SocketAddr,
    pub(crate) session: U::Session,
    /// Incomplete message at the end of the last read.
    pub(super) carry: Vec<u8>,
    pub(crate) counts: Arc<ConnectionCounts>,
    /// Whether its bytes are left unread because its user has no space.
    pub(crate) is_paused: bool,
    /// Time of its next timer.
    pub(super) timer: Option<Duration>,
    /// Set while another connection owns its datapath id.
    pub(super) claim: Option<Box<Claim>>,
    /// Set while an echo checks whether it is alive, because another connection claims its datapath
    /// id.
    pub(super) challenge: Option<Box<Challenge>>,
    pub(crate) stage: U::Stage,
    pub(crate) own: U::Own,
}

impl<U: User> Connection<U> {
    /// The datapath id that this connection owns.
    pub(crate) fn dpid(&self) -> Option<Dpid> {
        U::owned_info(&self.stage).map(|info| info.dpid)
    }

    /// Number of bytes at the start of each read that the read before has left.
    pub(crate) fn carried(&self) -> usize {
        self.carry.len()
    }

    /// Data of the switch while the connection claims its datapath id.
    pub(crate) fn claimed_info_mut(&mut self) -> Option<&mut Arc<SwitchInfo>> {
        self.claim.as_deref_mut().map(|claim| &mut claim.info)
    }

    /// Whether another connection claims its datapath id.
    pub(crate) fn is_challenged(&self) -> bool {
        self.challenge.is_some()
    }
}

/// Counts of a connection. Only its worker writes them, any thread reads them.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCounts {
    /// Number of bytes that wait to be written.
    pub(crate) backlog: AtomicUsize,
    /// Packet-ins that reached the apps.
    pub(crate) packet_ins: Counter,
    /// Packet-ins that were dropped before the apps.
    pub(crate) packet_ins_ignored: Counter,
    /// Packet-ins by port: those that reached the apps, and those that a budget dropped.
    pub(crate) ports: OnceLock<Box<PublishedPortCounts>>,
    /// OpenFlow errors that the switch sent.
    pub(crate) errors: Counter,
    /// Messages that were sent, without echoes. The worker adds them once a second.
    pub(crate) messages_sent: Counter,
}

/// The connections of a worker, and their timers.
pub(crate) struct Connections<U: User> {
    pub(super) slab: Slab<Connection<U>>,
    /// Keys of connections that were handed over to this worker, by their serials.
    arrived: BTreeMap<u64, ConnectionKey>,
    next_serial: u64,
    pub(super) timers: ConnectionTimers,
}

impl<U: User> Connections<U> {
    pub(super) fn of_worker(index: usize) -> Self {
        Connections {
            slab: Slab::new(),
            arrived: BTreeMap::new(),
            next_serial: (index as u64) << SERIAL_BITS,
            timers: ConnectionTimers::default(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, key: ConnectionKey) -> Option<&Connection<U>> {
        self.slab.get(key)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: ConnectionKey) -> Option<&mut Connection<U>> {
        self.slab.get_mut(key)
    }

    #[inline]
    pub(super) fn contains(&self, key: ConnectionKey) -> bool {
        self.slab.contains(key)
    }

    pub(crate) fn iter(&self) -> slab::Iter<'_, Connection<U>> {
        self.slab.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> slab::IterMut<'_, Connection<U>> {
        self.slab.iter_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Key of the next connection.
    pub(super) fn vacant_key(&self) -> ConnectionKey {
        self.slab.vacant_key()
    }

    /// Adds a new connection.
    pub(super) fn add(
        &mut self,
        peer: SocketAddr,
        session: U::Session,
        own: U::Own,
    ) -> ConnectionKey {
        let serial = self.next_serial;
        self.next_serial += 1;
        self.slab.insert(Connection {
            serial,
            term: 0,
            peer,
            session,
            carry: Vec::new(),
            counts: Arc::default(),
            is_paused: false,
            timer: None,
            claim: None,
            challenge: None,
            stage: U::Stage::default(),
            own,
        })
    }

    /// Adds a connection that [`Connections::remove`] of any worker has returned, with a new key.
    pub(crate) fn add_moved(&mut self, connection: Connection<U>) -> ConnectionKey {
        let serial = connection.serial;
        let key = self.slab.insert(Connection { timer: None, ..connection });
        self.arrived.insert(serial, key);
        key
    }

    pub(crate) fn remove(&mut self, key: ConnectionKey) -> Option<Connection<U>> {
        let connection = self.slab.try_remove(key)?;
        self.arrived.remove(&connection.serial);
        Some(connection)
    }

    /// Finds the key of a connection, if it is here. A connection that was handed over has another
    /// key than its id says.
    pub(crate) fn find(&self, id: ConnectionId) -> Option<ConnectionKey> {
        let is_original =
            self.slab.get(id.key).is_some_and(|connection| connection.serial == id.serial);
        if is_original { Some(id.key) } else { self.arrived.get(&id.serial).copied() }
    }
}
