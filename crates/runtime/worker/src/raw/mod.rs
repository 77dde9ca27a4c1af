//! A worker of raw connections: all messages go to one owner, as they are, and the owner's messages
//! go to the switches.
//!
//! A read brings one event: the whole messages of the read, without those that the session answers
//! itself. Before each read the worker looks whether the owner has space. If not, the switch stays
//! unread until the owner has taken more ([`Mail::RawResume`]), or the next second. An unread
//! switch counts as alive.
//!
//! There is no hand-over, no budget of packet-ins and no share of an overloaded worker: an owner
//! must get every message. Limits of connections, of what waits for a switch, and of silence are
//! those of all workers.

mod claims;
mod closing;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bellrock_api::openflow::{Header, MessageKind, Out, frame};
use bellrock_api::runtime::{OWNER_GONE, RawLink, RawPort};
use bellrock_api::{RawConnection, SwitchInfo, Version};
use bellrock_session::{RawSession, RawSessionEvent, Versions};
use slab::Slab;
use tracing::{debug, warn};

use crate::balance::{WorkerLoad, permille};
use crate::connection::{Challenge, ConnectionCounts, EndCause};
use crate::connection_events::ConnectionEvents;
use crate::counters::WorkerCounters;
use crate::directory::SharedState;
use crate::drive::Drive;
use crate::log_budget::LogBudget;
use crate::mailbox::{ConnectionId, Mail, WorkerQuery};
use crate::settings::{MAIL_PER_TURN, SEND_BUFFER_BYTES, TICK, WorkerSettings};
use crate::timers::ConnectionTimers;
use crate::transport::{ConnectionKey, ReadOutcome, Transport};
use crate::worker::SERIAL_BITS;

/// Maximum bytes of messages that a switch may send before its features. Beyond it, the connection
/// ends: none of them may be dropped.
pub const MAX_EARLY_BYTES: usize = 1 << 20;

/// A worker of raw connections. The engine calls it as it calls a [`crate::Worker`]: see [`Drive`].
pub struct RawWorker {
    index: usize,
    settings: WorkerSettings,
    shared: Arc<SharedState>,
    counters: Arc<WorkerCounters>,
    owner: RawPort,
    connections: Slab<RawPeer>,
    next_serial: u64,
    /// Receive buffer, for one switch at a time.
    receive: Box<[u8]>,
    /// Maximum bytes of a read.
    turn_bytes: usize,
    /// The session's own messages, for one switch at a time.
    out: Out,
    timers: ConnectionTimers,
    log: LogBudget,
    connection_events: ConnectionEvents,
}

/// A raw connection and its state.
struct RawPeer {
    /// Unique number: keys are used again.
    serial: u64,
    peer: SocketAddr,
    session: RawSession,
    /// Incomplete message at the end of the last read.
    carry: Vec<u8>,
    counts: Arc<ConnectionCounts>,
    stage: RawStage,
    /// Whether its bytes are left unread because the owner has no space.
    is_paused: bool,
    /// Time of its next timer.
    timer: Option<Duration>,
    /// Set while an echo checks whether it is alive, because another connection claims its datapath
    /// id.
    challenge: Option<Challenge>,
}

enum RawStage {
    /// Features, or the right to the datapath id, are missing.
    Early(Box<EarlyRaw>),
    /// The owner knows the connection.
    Open { connection: RawConnection, info: Arc<SwitchInfo>, next_tick: Duration },
}

/// What waits until the owner may know the connection.
#[derive(Default)]
struct EarlyRaw {
    hello: Vec<u8>,
    features: Vec<u8>,
    /// Messages for the owner.
    messages: Vec<u8>,
    /// The switch, while another connection owns its datapath id, and the time limit for the answer
    /// of that one.
    claim: Option<(Arc<SwitchInfo>, Duration)>,
}

/// The way from the owner to a connection, by the mailbox of its worker.
struct MailLink {
    shared: Arc<SharedState>,
    id: ConnectionId,
}

impl RawLink for MailLink {
    fn post(&self, messages: Box<[u8]>) -> bool {
        self.shared.post(self.id.worker, Mail::Raw { to: self.id, bytes: messages })
    }

    fn resume(&self) {
        // If the mailbox is full, the worker looks by itself at the next tick.
        let _ = self.shared.post(self.id.worker, Mail::RawResume { at: self.id });
    }

    fn close(&self, why: Box<str>) -> bool {
        self.shared.post(self.id.worker, Mail::Close { id: self.id, why })
    }
}

impl RawWorker {
    /// Makes a worker without connections. See [`crate::Worker::new`].
    #[must_use]
    pub fn new(
        index: usize,
        settings: WorkerSettings,
        shared: Arc<SharedState>,
        owner: RawPort,
    ) -> Self {
        RawWorker {
            index,
            settings,
            counters: shared.counters().get(index).cloned().unwrap_or_default(),
            owner,
            connections: Slab::new(),
            next_serial: (index as u64) << SERIAL_BITS,
            receive: vec![0; settings.receive_buffer_bytes()].into_boxed_slice(),
            turn_bytes: settings.limits.bytes_per_turn,
            out: Out::with_capacity(SEND_BUFFER_BYTES),
            timers: ConnectionTimers::default(),
            log: LogBudget::default(),
            connection_events: ConnectionEvents::default(),
            shared,
        }
    }

    fn id(&self, key: ConnectionKey) -> Option<ConnectionId> {
        let serial = self.connections.get(key)?.serial;
        Some(ConnectionId { worker: self.index, key, serial, term: 0 })
    }

    /// Finds the key of a connection, if it has not ended.
    fn local_key(&self, id: ConnectionId) -> Option<ConnectionKey> {
        let peer = self.connections.get(id.key)?;
        (peer.serial == id.serial).then_some(id.key)
    }

    /// Processes the whole messages at the start of `stream`. Returns their total length.
    fn handle_messages<T: Transport>(
        &mut self,
        key: ConnectionKey,
        stream: &[u8],
        now: Duration,
        transport: &mut T,
    ) -> usize {
        let (mut used, mut chunk) = (0, Vec::new());
        let end = loop {
            let Some(peer) = self.connections.get_mut(key) else { return used };
            let rest = stream.get(used..).unwrap_or_default();
            let (length, event) = match peer.session.next(rest, now, &mut self.out) {
                Ok(Some(next)) => next,
                Ok(None) => break None,
                Err(close) => break Some(EndCause::Session(close)),
            };
            let message = rest.get(..length).unwrap_or_default();
            used += length;
            match event {
                RawSessionEvent::Message => match &mut peer.stage {
                    RawStage::Open { .. } => {
                        count_message(&peer.counts, peer.session.version(), message);
                        chunk.extend_from_slice(message);
                    }
                    RawStage::Early(early) => {
                        if early.messages.len() + message.len() > MAX_EARLY_BYTES {
                            break Some(EndCause::EarlyMessages);
                        }
                        early.messages.extend_from_slice(message);
                    }
                },
                RawSessionEvent::Hello => {
                    if let RawStage::Early(early) = &mut peer.stage {
                        early.hello = message.to_vec();
                    }
                }
                RawSessionEvent::Identified(switch) => {
                    if let RawStage::Early(early) = &mut peer.stage {
                        early.features = message.to_vec();
                    }
                    self.identified(key, *switch, now, transport);
                }
                RawSessionEvent::OutFull => self.flush(key, transport),
                RawSessionEvent::ProbeAnswered => self.end_challenge(key),
                _ => {}
            }
        };
        if let Some(RawPeer { stage: RawStage::Open { connection, .. }, .. }) =
            self.connections.get(key)
            && !chunk.is_empty()
        {
            self.owner.messages(connection, chunk.into_boxed_slice());
        }
        if let Some(end) = end {
            self.close(key, end, now, transport);
        }
        used
    }

    /// Passes the session's own messages to the transport.
    fn flush<T: Transport>(&mut self, key: ConnectionKey, transport: &mut T) {
        if !self.out.is_empty() {
            let out = std::mem::replace(&mut self.out, Out::with_capacity(0));
            self.send(key, out.as_slice(), transport);
            self.out = out;
            self.out.clear();
        }
    }

    fn send<T: Transport>(&mut self, key: ConnectionKey, bytes: &[u8], transport: &mut T) {
        let Some(peer) = self.connections.get(key) else { return };
        self.counters.writes.add(1);
        self.counters.bytes_out.add(bytes.len() as u64);
        let queued = transport.send(key, bytes);
        self.note_backlog(peer, queued);
    }

    fn note_backlog(&self, peer: &RawPeer, queued: usize) {
        peer.counts.backlog.store(queued, Ordering::Relaxed);
        if let RawStage::Open { connection, .. } = &peer.stage {
            self.owner.backlog(connection, queued);
        }
    }

    /// Sends messages of the owner.
    fn post<T: Transport>(&mut self, to: ConnectionId, bytes: &[u8], transport: &mut T) {
        let Some(key) = self.local_key(to) else {
            self.counters.mail_undeliverable.add(1);
            return;
        };
        self.counters.mail_in.add(1);
        if let Some(RawPeer { stage: RawStage::Open { connection, .. }, counts, .. }) =
            self.connections.get(key)
        {
            self.owner.taken(connection, bytes.len());
            counts.messages_sent.add(count_frames(bytes));
        }
        self.send(key, bytes, transport);
    }

    /// Reads a switch again, if it was left unread and the owner has space.
    fn resume<T: Transport>(&mut self, key: ConnectionKey, transport: &mut T) {
        let Some(peer) = self.connections.get_mut(key) else { return };
        if peer.is_paused
            && let RawStage::Open { connection, .. } = &peer.stage
            && self.owner.may_read(connection)
        {
            peer.is_paused = false;
            transport.resume(key);
        }
    }

    fn answer(&self, query: WorkerQuery) {
        // There are no apps. If the asker is gone, the answer is dropped.
        match query {
            WorkerQuery::Hosts(_, reply) => drop(reply.try_send(Vec::new())),
            WorkerQuery::AppCounters(reply) => drop(reply.try_send(Vec::new())),
            WorkerQuery::LimitPacketIns(_) => {}
        }
    }

    fn timer<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T) {
        let Some(peer) = self.connections.get_mut(key) else { return };
        if peer.session.deadline() <= now && (peer.is_paused || transport.has_unread(key)) {
            // A switch whose bytes are left unread is not dead.
            peer.session.received(now);
        }
        if let Err(close) = peer.session.timeout(now, &mut self.out) {
            return self.close(key, EndCause::Session(close), now, transport);
        }
        if peer.challenge.as_ref().is_some_and(|challenge| challenge.deadline <= now) {
            self.counters.duplicates_replaced.add(1);
            return self.close(key, EndCause::Replaced, now, transport);
        }
        match &mut peer.stage {
            RawStage::Early(early) => {
                if let Some((info, deadline)) = &early.claim
                    && *deadline <= now
                {
                    let dpid = info.dpid;
                    self.counters.duplicates_refused.add(1);
                    self.close(key, EndCause::Duplicate(dpid), now, transport);
                }
            }
            RawStage::Open { next_tick, .. } if *next_tick <= now => {
                *next_tick = now + TICK;
                if peer.carry.is_empty() {
                    peer.carry = Vec::new();
                }
                if !self.owner.has_owner() {
                    return self.close(key, EndCause::Ordered(OWNER_GONE.into()), now, transport);
                }
                let queued = peer.counts.backlog.load(Ordering::Relaxed);
                if let Some(peer) = self.connections.get(key) {
                    self.note_backlog(peer, queued);
                }
                self.resume(key, transport);
            }
            RawStage::Open { .. } => {}
        }
    }

    /// Sets the connection's timer to the earliest time that it waits for.
    fn set_timer(&mut self, key: ConnectionKey) {
        let Some(peer) = self.connections.get_mut(key) else { return };
        let stage = match &peer.stage {
            RawStage::Early(early) => early.claim.as_ref().map(|(_, deadline)| *deadline),
            RawStage::Open { next_tick, .. } => Some(*next_tick),
        };
        let challenge = peer.challenge.as_ref().map(|challenge| challenge.deadline);
        let session = peer.session.deadline();
        let at = [stage, challenge].into_iter().flatten().fold(session, Duration::min);
        peer.timer = self.timers.set(at, key, peer.serial, peer.timer);
    }
}

impl Drive for RawWorker {
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
        let session = match RawSession::new(&settings, now, &mut self.out) {
            Ok(session) => session,
            Err(error) => {
                warn!(%peer, %error, "a hello could not be written");
                return transport.close(self.next_key());
            }
        };
        let serial = self.next_serial;
        self.next_serial += 1;
        let key = self.connections.insert(RawPeer {
            serial,
            peer,
            session,
            carry: Vec::new(),
            counts: Arc::default(),
            stage: RawStage::Early(Box::default()),
            is_paused: false,
            timer: None,
            challenge: None,
        });
        self.counters.connections_opened.add(1);
        debug!(%peer, worker = self.index, "connected");
        self.flush(key, transport);
        self.set_timer(key);
    }

    fn set_turn_bytes(&mut self, bytes: usize) {
        self.turn_bytes = bytes.min(self.settings.limits.bytes_per_turn);
    }

    fn read<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T) -> bool {
        let Some(peer) = self.connections.get_mut(key) else { return false };
        if let RawStage::Open { connection, .. } = &peer.stage
            && !self.owner.may_read(connection)
        {
            self.counters.pauses.add(1);
            peer.is_paused = true;
            return false;
        }
        peer.is_paused = false;
        let carried = peer.carry.len();
        let end = carried + self.turn_bytes;
        let Some((carry, room)) =
            self.receive.get_mut(..end).and_then(|buffer| buffer.split_at_mut_checked(carried))
        else {
            return false;
        };
        carry.copy_from_slice(&peer.carry);
        let (n, has_more) = match transport.read(key, room) {
            ReadOutcome::Empty => return false,
            ReadOutcome::Closed => {
                self.close(key, EndCause::Peer, now, transport);
                return false;
            }
            ReadOutcome::Corrupt => {
                self.close(key, EndCause::Corrupt, now, transport);
                return false;
            }
            ReadOutcome::Bytes { n, has_more } => (n, has_more),
        };
        peer.session.received(now);
        self.counters.reads.add(1);
        self.counters.bytes_in.add(n as u64);
        let receive = std::mem::take(&mut self.receive);
        let stream = receive.get(..carried + n).unwrap_or_default();
        let used = self.handle_messages(key, stream, now, transport);
        self.flush(key, transport);
        if let Some(peer) = self.connections.get_mut(key) {
            peer.carry.clear();
            peer.carry.extend_from_slice(stream.get(used..).unwrap_or_default());
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
        self.read(key, now, transport)
    }

    fn mail<T: Transport>(&mut self, now: Duration, transport: &mut T) -> bool {
        for _ in 0..MAIL_PER_TURN {
            let shared = Arc::clone(&self.shared);
            match shared.mailbox(self.index).and_then(|mailbox| mailbox.pop()) {
                None => return false,
                Some(Mail::Raw { to, bytes }) => self.post(to, &bytes, transport),
                Some(Mail::RawResume { at }) => {
                    if let Some(key) = self.local_key(at) {
                        self.resume(key, transport);
                    }
                }
                Some(Mail::AreYouAlive { id, claimant }) => {
                    self.challenge(id, claimant, now, transport);
                }
                Some(Mail::OldConnection { claimant, is_alive }) => {
                    self.handle_challenge_answer(claimant, is_alive, now, transport);
                }
                Some(Mail::Close { id, why }) => {
                    if let Some(key) = self.local_key(id) {
                        self.close(key, EndCause::Ordered(why), now, transport);
                    }
                }
                Some(Mail::Query(query)) => self.answer(query),
                // There are no handlers, nobody else may write, and no switch moves.
                Some(
                    Mail::Send { .. }
                    | Mail::Resume { .. }
                    | Mail::Program { .. }
                    | Mail::Question { .. }
                    | Mail::Role { .. }
                    | Mail::HandOver { .. }
                    | Mail::Take(_),
                ) => self.counters.mail_undeliverable.add(1),
            }
        }
        true
    }

    fn next_timer(&self) -> Option<Duration> {
        self.timers.next()
    }

    fn timers<T: Transport>(&mut self, now: Duration, transport: &mut T) {
        while let Some((at, key, serial)) = self.timers.due(now) {
            let Some(peer) = self.connections.get_mut(key) else { continue };
            if peer.serial != serial || peer.timer != Some(at) {
                continue;
            }
            peer.timer = None;
            self.timer(key, now, transport);
            self.flush(key, transport);
            self.set_timer(key);
        }
    }

    fn drained(&mut self, key: ConnectionKey, queued: usize, now: Duration) {
        if let Some(peer) = self.connections.get_mut(key) {
            peer.session.drained(now);
        }
        if let Some(peer) = self.connections.get(key) {
            self.note_backlog(peer, queued);
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

    fn window<T: Transport>(&mut self, busy: Duration, window: Duration, _: Duration, _: &mut T) {
        let load = WorkerLoad { busy: permille(busy, window), connections: self.connections.len() };
        self.shared.loads().publish(self.index, load);
    }

    fn stop<T: Transport>(&mut self, now: Duration, transport: &mut T) {
        self.end_all(now, transport);
    }
}

/// Counts a message of the switch for metrics.
fn count_message(counts: &ConnectionCounts, version: Version, message: &[u8]) {
    let Some(header) = Header::read(message) else { return };
    match MessageKind::from_wire(version, header.kind) {
        Some(MessageKind::PacketIn) => counts.packet_ins.add(1),
        Some(MessageKind::Error) => counts.errors.add(1),
        _ => {}
    }
}

/// Number of messages in these bytes.
fn count_frames(bytes: &[u8]) -> u64 {
    let (mut rest, mut n) = (bytes, 0);
    while let Ok(Some(message)) = frame(rest) {
        rest = rest.get(message.bytes.len()..).unwrap_or_default();
        n += 1;
    }
    n
}
