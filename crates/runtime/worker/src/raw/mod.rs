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

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bellrock_api::openflow::{EncodeError, Header, MessageKind, Out, frame};
use bellrock_api::runtime::{OWNER_GONE, RawLink, RawPort};
use bellrock_api::{ConnectionEnd, RawConnection, SwitchInfo, Version};
use bellrock_session::{
    CloseReason, RawSession, RawSessionEvent, SessionSettings, SwitchDescription,
};
use tracing::info;

use crate::connection::{Connection, ConnectionCounts, EndCause, Session, User, WorkerOf};
use crate::directory::SharedState;
use crate::mailbox::{ConnectionId, Mail, WorkerQuery};
use crate::settings::{MAX_EARLY_BYTES, TICK, WorkerSettings};
use crate::transport::{ConnectionKey, Transport};

/// A worker of raw connections. The engine calls it as it calls a [`crate::Worker`]: see
/// [`crate::Drive`].
pub type RawWorker = WorkerOf<Raw>;

/// The owner of raw connections as user of a worker's connections.
pub struct Raw(RawPort);

/// The stage of a raw connection.
pub(crate) enum RawStage {
    /// Features, or the right to the datapath id, are missing.
    Early(Box<EarlyRaw>),
    /// The owner knows the connection.
    Open { connection: RawConnection, info: Arc<SwitchInfo>, next_tick: Duration },
}

impl Default for RawStage {
    fn default() -> Self {
        RawStage::Early(Box::default())
    }
}

/// What waits until the owner may know the connection.
#[derive(Default)]
pub(crate) struct EarlyRaw {
    hello: Vec<u8>,
    features: Vec<u8>,
    /// Messages for the owner.
    messages: Vec<u8>,
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
        WorkerOf::with_user(index, settings, shared, Raw(owner))
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
            let Some(connection) = self.connections.get_mut(key) else { return used };
            let rest = stream.get(used..).unwrap_or_default();
            let (length, event) = match connection.session.next(rest, now, &mut self.out) {
                Ok(Some(next)) => next,
                Ok(None) => break None,
                Err(close) => break Some(EndCause::Session(close)),
            };
            let message = rest.get(..length).unwrap_or_default();
            used += length;
            match event {
                RawSessionEvent::Message => match &mut connection.stage {
                    RawStage::Open { .. } => {
                        count_message(&connection.counts, connection.session.version(), message);
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
                    if let RawStage::Early(early) = &mut connection.stage {
                        early.hello = message.to_vec();
                    }
                }
                RawSessionEvent::Identified(switch) => {
                    if let RawStage::Early(early) = &mut connection.stage {
                        early.features = message.to_vec();
                    }
                    if !self.user.0.has_owner() {
                        break Some(EndCause::Ordered(OWNER_GONE.into()));
                    }
                    self.identified(key, *switch, now, transport);
                }
                RawSessionEvent::OutFull => self.flush(key, transport),
                RawSessionEvent::ProbeAnswered => self.end_challenge(key),
                _ => {}
            }
        };
        if let Some(Connection { stage: RawStage::Open { connection, .. }, .. }) =
            self.connections.get(key)
            && !chunk.is_empty()
        {
            self.user.0.messages(connection, chunk.into_boxed_slice());
        }
        if let Some(end) = end {
            self.close(key, end, now, transport);
        }
        used
    }

    /// Sends messages of the owner.
    fn post<T: Transport>(&mut self, to: ConnectionId, bytes: &[u8], transport: &mut T) {
        let Some(key) = self.connections.find(to) else {
            self.counters.mail_undeliverable.add(1);
            return;
        };
        self.counters.mail_in.add(1);
        if let Some(Connection { stage: RawStage::Open { connection, .. }, counts, .. }) =
            self.connections.get(key)
        {
            self.user.0.taken(connection, bytes.len());
            counts.messages_sent.add(count_frames(bytes));
        }
        self.send(key, bytes, transport);
    }

    /// Reads a switch again, if it was left unread and the owner has space.
    fn resume<T: Transport>(&mut self, key: ConnectionKey, transport: &mut T) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.is_paused && self.user.may_read(&connection.stage) {
            connection.is_paused = false;
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
}

impl User for Raw {
    type Session = RawSession;
    type Stage = RawStage;
    type Own = ();

    fn own(_: &WorkerSettings) {}

    fn owned_info(stage: &RawStage) -> Option<&Arc<SwitchInfo>> {
        match stage {
            RawStage::Open { info, .. } => Some(info),
            RawStage::Early(_) => None,
        }
    }

    fn is_up(stage: &RawStage) -> bool {
        matches!(stage, RawStage::Open { .. })
    }

    fn next_time(connection: &Connection<Self>) -> Option<Duration> {
        match &connection.stage {
            RawStage::Open { next_tick, .. } => Some(*next_tick),
            RawStage::Early(_) => None,
        }
    }

    fn may_read(&self, stage: &RawStage) -> bool {
        match stage {
            RawStage::Open { connection, .. } => self.0.may_read(connection),
            RawStage::Early(_) => true,
        }
    }

    fn received<T: Transport>(
        worker: &mut RawWorker,
        key: ConnectionKey,
        stream: &[u8],
        now: Duration,
        transport: &mut T,
    ) -> usize {
        let used = worker.handle_messages(key, stream, now, transport);
        worker.flush(key, transport);
        used
    }

    /// Gives a connection to the owner.
    fn begin<T: Transport>(
        worker: &mut RawWorker,
        key: ConnectionKey,
        info: Arc<SwitchInfo>,
        now: Duration,
        _: &mut T,
    ) {
        let Some(id) = worker.id(key) else { return };
        worker.shared.publish_raw(id, &info);
        let link = Box::new(MailLink { shared: Arc::clone(&worker.shared), id });
        let raw = worker.user.0.connection(id.serial, &info, link);
        let Some(connection) = worker.connections.get_mut(key) else { return };
        let (next_tick, open) = (now + TICK, Arc::clone(&info));
        let open = RawStage::Open { connection: raw.clone(), info: open, next_tick };
        let RawStage::Early(early) = std::mem::replace(&mut connection.stage, open) else { return };
        if worker.log.allows(now, &worker.counters) {
            let (dpid, version, peer) = (info.dpid, info.version, info.peer);
            info!(%dpid, %version, %peer, worker = worker.index, "switch up, for its raw owner");
        }
        worker.publish_up(&info, now);
        worker.counters.switches_up.add(1);
        let owner = &worker.user.0;
        owner.up(&raw, info, early.hello.into(), early.features.into());
        if !early.messages.is_empty() {
            owner.messages(&raw, early.messages.into());
        }
        worker.connections.set_timer(key);
    }

    fn stage_timer<T: Transport>(
        worker: &mut RawWorker,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = worker.connections.get_mut(key) else { return };
        let RawStage::Open { next_tick, .. } = &mut connection.stage else { return };
        if *next_tick > now {
            return;
        }
        *next_tick = now + TICK;
        if !worker.user.0.has_owner() {
            return worker.close(key, EndCause::Ordered(OWNER_GONE.into()), now, transport);
        }
        let queued = connection.counts.backlog.load(Ordering::Relaxed);
        connection.note_queued(&worker.user, queued);
        worker.resume(key, transport);
    }

    fn mail<T: Transport>(worker: &mut RawWorker, mail: Mail, _: Duration, transport: &mut T) {
        match mail {
            Mail::Raw { to, bytes } => worker.post(to, &bytes, transport),
            Mail::RawResume { at } => {
                if let Some(key) = worker.connections.find(at) {
                    worker.resume(key, transport);
                }
            }
            Mail::Query(query) => worker.answer(query),
            // There are no handlers, nobody else may write, and no switch moves.
            _ => worker.counters.mail_undeliverable.add(1),
        }
    }

    fn queued(&self, stage: &RawStage, bytes: usize) {
        if let RawStage::Open { connection, .. } = stage {
            self.0.backlog(connection, bytes);
        }
    }

    fn ended<T: Transport>(
        worker: &mut RawWorker,
        connection: Connection<Self>,
        why: ConnectionEnd,
        _: Duration,
        _: &mut T,
    ) {
        if let RawStage::Open { connection, .. } = &connection.stage {
            worker.counters.switches_down.add(1);
            worker.user.0.down(connection, why);
        }
    }
}

impl Session for RawSession {
    fn open(settings: &SessionSettings, now: Duration, out: &mut Out) -> Result<Self, EncodeError> {
        RawSession::new(settings, now, out)
    }

    fn received(&mut self, now: Duration) {
        self.received(now);
    }

    fn deadline(&self) -> Duration {
        self.deadline()
    }

    /// Only messages end the handshake.
    fn timeout(
        &mut self,
        now: Duration,
        out: &mut Out,
    ) -> Result<Option<SwitchDescription>, CloseReason> {
        self.timeout(now, out).map(|()| None)
    }

    fn probe(&mut self, out: &mut Out) -> Result<(), EncodeError> {
        self.probe(out)
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
