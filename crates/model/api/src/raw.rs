//! Raw connections: one exclusive owner reads and writes all messages of all switches.
//!
//! A controller has a chain of apps, or a raw owner. An owner gets each message of a switch as its
//! bytes, in order, and sends bytes of its own: xids, cookies, priorities and the table-miss entry
//! are its own affair. The controller keeps to itself the agreement on a version, the first
//! features request, identities, limits and echoes: see [`RawUp`].
//!
//! The owner runs in a thread of its own, and may be slow: what waits for it is bounded
//! ([`MAX_OWNER_BYTES`], [`MAX_OWNER_BYTES_OF_ALL`]). Above a bound, switches are not read, so that
//! TCP slows them down. Nothing is dropped.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellrock_openflow::{DecodeError, MessageKind, Version, frame};

use crate::{ConnectionEnd, Dpid, SwitchInfo};

/// Bytes of one switch that wait for the owner, above which the switch is not read.
pub const MAX_OWNER_BYTES: usize = 1 << 20;

/// Bytes of all switches that wait for the owner, above which none is read.
pub const MAX_OWNER_BYTES_OF_ALL: usize = 256 << 20;

/// Maximum bytes of the owner that wait for one switch.
pub const MAX_UNSENT_BYTES: usize = 4 << 20;

/// An event of a raw connection, for its owner.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RawEvent {
    /// A switch is connected. Its first event.
    Up(RawUp),
    /// Messages of the switch, at least one, all whole.
    Messages {
        /// The connection.
        connection: RawConnection,
        /// The messages, as they came.
        bytes: Box<[u8]>,
    },
    /// At most half of [`MAX_UNSENT_BYTES`] wait for the switch, after [`RawConnection::send`]
    /// returned [`RawSendError::Full`].
    Writable(RawConnection),
    /// The connection has ended. Its last event.
    Down {
        /// The connection.
        connection: RawConnection,
        /// Why.
        why: ConnectionEnd,
    },
}

impl RawEvent {
    /// The connection of the event.
    #[must_use]
    pub fn connection(&self) -> &RawConnection {
        match self {
            RawEvent::Up(RawUp { connection, .. })
            | RawEvent::Messages { connection, .. }
            | RawEvent::Writable(connection)
            | RawEvent::Down { connection, .. } => connection,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            RawEvent::Messages { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }
}

/// A new raw connection. The controller has sent a hello and a features request, and nothing else.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RawUp {
    /// The connection.
    pub connection: RawConnection,
    /// The switch: datapath id, version, address and identity, and what its features contain.
    pub switch: Arc<SwitchInfo>,
    /// The switch's hello, as it came.
    pub hello: Box<[u8]>,
    /// Its reply to the controller's features request, as it came. An owner may send a request of
    /// its own.
    pub features: Box<[u8]>,
}

/// Why bytes of the owner are not sent. None of them is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RawSendError {
    /// Too many bytes wait for the switch. [`RawEvent::Writable`] follows.
    #[error("{unsent} bytes wait for switch {dpid}; send more when it is writable")]
    Full {
        /// The switch.
        dpid: Dpid,
        /// Number of waiting bytes.
        unsent: usize,
    },
    /// More bytes than may ever wait.
    #[error("{0} bytes at once are too many; send at most {MAX_UNSENT_BYTES}")]
    TooLong(usize),
    /// The connection has ended.
    #[error("switch {0} is not connected any more")]
    Closed(Dpid),
    /// A length below that of the header.
    #[error("the message at byte {offset} is broken: {error}")]
    Length {
        /// Offset of the message.
        offset: usize,
        /// The error.
        error: DecodeError,
    },
    /// The last message is not whole.
    #[error("the message at byte {offset} is not whole; send only whole messages")]
    Unfinished {
        /// Offset of the message.
        offset: usize,
    },
    /// Another version than that of the connection.
    #[error(
        "the message at byte {offset} has version byte {found}; the connection speaks {version}"
    )]
    Version {
        /// Offset of the message.
        offset: usize,
        /// Its version byte.
        found: u8,
        /// The version of the connection.
        version: Version,
    },
    /// A type that a controller does not send in this version.
    #[error("the message at byte {offset} has type {kind}, which no controller sends in {version}")]
    Kind {
        /// Offset of the message.
        offset: usize,
        /// Its type.
        kind: u8,
        /// The version of the connection.
        version: Version,
    },
}

/// A raw connection. All clones are of one connection.
#[derive(Clone)]
pub struct RawConnection(Arc<RawState>);

impl RawConnection {
    /// Number of the connection, unique in a controller.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The switch.
    #[must_use]
    pub fn dpid(&self) -> Dpid {
        self.0.dpid
    }

    /// The version of the connection.
    #[must_use]
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// Number of the owner's bytes that wait for the switch.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.0.unsent()
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_down.load(Ordering::Acquire)
    }

    /// Sends whole messages, as they are, behind those that were sent before. Never waits. Only the
    /// headers are checked: lengths, versions and types.
    ///
    /// # Errors
    /// [`RawSendError`]. Nothing is sent then.
    pub fn send(&self, messages: &[u8]) -> Result<(), RawSendError> {
        check_messages(self.0.version, messages)?;
        self.0.send(messages)
    }

    /// Leaves the switch unread until [`resume`](Self::resume), after at most one more read: for an
    /// owner that takes events, but has not handled those of this switch yet.
    pub fn pause(&self) {
        self.0.is_held.store(true, Ordering::SeqCst);
    }

    /// Reads the switch again.
    pub fn resume(&self) {
        if self.0.is_held.swap(false, Ordering::SeqCst) {
            // If its mailbox is full, the worker looks by itself, once a second.
            self.0.link.resume();
        }
    }

    /// Closes the connection, behind all that was sent, for this reason. [`RawEvent::Down`]
    /// follows.
    ///
    /// # Errors
    /// [`RawSendError::Full`]: its worker has too much mail. Try again.
    pub fn close(&self, why: &str) -> Result<(), RawSendError> {
        match self.0.link.close(why.into()) {
            true => Ok(()),
            false => Err(RawSendError::Full { dpid: self.0.dpid, unsent: self.0.unsent() }),
        }
    }
}

impl fmt::Debug for RawConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawConnection({}, switch {}, {})", self.0.id, self.0.dpid, self.0.version)
    }
}

/// Checks the headers of whole messages that a controller sends.
fn check_messages(version: Version, messages: &[u8]) -> Result<(), RawSendError> {
    let mut offset = 0;
    while let Some(rest) = messages.get(offset..).filter(|rest| !rest.is_empty()) {
        let message = frame(rest)
            .map_err(|error| RawSendError::Length { offset, error })?
            .ok_or(RawSendError::Unfinished { offset })?;
        let header = message.header;
        if header.version != version.wire() {
            return Err(RawSendError::Version { offset, found: header.version, version });
        }
        if !MessageKind::from_wire(version, header.kind).is_some_and(is_sent_by_controllers) {
            return Err(RawSendError::Kind { offset, kind: header.kind, version });
        }
        offset += message.bytes.len();
    }
    Ok(())
}

fn is_sent_by_controllers(kind: MessageKind) -> bool {
    !matches!(
        kind,
        MessageKind::FeaturesReply
            | MessageKind::GetConfigReply
            | MessageKind::PacketIn
            | MessageKind::FlowRemoved
            | MessageKind::PortStatus
            | MessageKind::MultipartReply
            | MessageKind::BarrierReply
            | MessageKind::QueueGetConfigReply
            | MessageKind::RoleReply
            | MessageKind::GetAsyncReply
    )
}

/// The way of a connection to its worker.
pub trait RawLink: Send + Sync + 'static {
    /// Passes messages to the worker. `false`: its mailbox is full.
    fn post(&self, messages: Box<[u8]>) -> bool;
    /// Asks the worker to read the switch again.
    fn resume(&self);
    /// Asks the worker to close the connection. `false`: its mailbox is full.
    fn close(&self, why: Box<str>) -> bool;
}

/// The state of a connection that its worker and the owner share.
struct RawState {
    id: u64,
    dpid: Dpid,
    version: Version,
    link: Box<dyn RawLink>,
    /// Bytes of the switch that wait for the owner.
    waiting: AtomicUsize,
    /// Bytes of the owner on their way to the worker.
    posted: AtomicUsize,
    /// Bytes that wait at the worker because the switch does not take them.
    backlog: AtomicUsize,
    wants_writable: AtomicBool,
    /// Whether the owner wants no more of the switch for now.
    is_held: AtomicBool,
    is_down: AtomicBool,
}

impl RawState {
    fn unsent(&self) -> usize {
        self.posted.load(Ordering::SeqCst) + self.backlog.load(Ordering::SeqCst)
    }

    fn send(&self, messages: &[u8]) -> Result<(), RawSendError> {
        let bytes = messages.len();
        if bytes > MAX_UNSENT_BYTES {
            return Err(RawSendError::TooLong(bytes));
        }
        if self.is_down.load(Ordering::Acquire) {
            return Err(RawSendError::Closed(self.dpid));
        }
        if self.unsent() + bytes > MAX_UNSENT_BYTES {
            // Looked at again: the worker may have sent the last bytes before it could see the
            // wish.
            self.wants_writable.store(true, Ordering::SeqCst);
            if self.unsent() + bytes > MAX_UNSENT_BYTES {
                return Err(RawSendError::Full { dpid: self.dpid, unsent: self.unsent() });
            }
        }
        self.posted.fetch_add(bytes, Ordering::SeqCst);
        if !self.link.post(messages.into()) {
            self.posted.fetch_sub(bytes, Ordering::SeqCst);
            self.wants_writable.store(true, Ordering::SeqCst);
            return Err(RawSendError::Full { dpid: self.dpid, unsent: self.unsent() });
        }
        Ok(())
    }
}

/// The queue of all events, with what the bounds need.
#[derive(Default)]
struct RawQueue {
    inner: Mutex<RawQueueInner>,
    arrived: Condvar,
    /// Bytes of all switches that wait for the owner.
    waiting: AtomicUsize,
    has_owner: AtomicBool,
    /// Number of [`RawPort`]s: of workers that add events.
    ports: AtomicUsize,
}

#[derive(Default)]
struct RawQueueInner {
    events: VecDeque<RawEvent>,
    /// Connections that are not read because too much waits.
    paused: Vec<Arc<RawState>>,
    /// Connections that are up, for the end of the owner.
    up: Vec<Arc<RawState>>,
    on_event: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl RawQueue {
    /// A panic under this lock leaves the queue as it was: each change is one call.
    fn lock(&self) -> MutexGuard<'_, RawQueueInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: RawEvent) {
        let mut inner = self.lock();
        if !self.has_owner.load(Ordering::Acquire) {
            return;
        }
        let bytes = event.bytes();
        event.connection().0.waiting.fetch_add(bytes, Ordering::Relaxed);
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let was_empty = inner.events.is_empty();
        inner.events.push_back(event);
        let on_event = if was_empty { inner.on_event.clone() } else { None };
        drop(inner);
        self.arrived.notify_one();
        if let Some(on_event) = on_event {
            on_event();
        }
    }

    fn is_above(&self, state: &RawState) -> bool {
        state.waiting.load(Ordering::Relaxed) > MAX_OWNER_BYTES
            || self.waiting.load(Ordering::Relaxed) > MAX_OWNER_BYTES_OF_ALL
    }

    /// Takes the next event, and the connections that can be read again.
    fn pop(&self, inner: &mut RawQueueInner) -> Option<(RawEvent, Vec<Arc<RawState>>)> {
        let event = inner.events.pop_front()?;
        let bytes = event.bytes();
        let state = &event.connection().0;
        let own = state.waiting.fetch_sub(bytes, Ordering::Relaxed) - bytes;
        let before = self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        let all = before - bytes;
        let mut resumed = Vec::new();
        if bytes == 0 || inner.paused.is_empty() || all > MAX_OWNER_BYTES_OF_ALL {
            return Some((event, resumed));
        }
        let half_of_all = MAX_OWNER_BYTES_OF_ALL / 2;
        if before > half_of_all && all <= half_of_all {
            // Those that were paused because of the others.
            let is_low = |state: &mut Arc<RawState>| {
                state.waiting.load(Ordering::Relaxed) <= MAX_OWNER_BYTES / 2
            };
            resumed.extend(inner.paused.extract_if(.., is_low));
        } else if own <= MAX_OWNER_BYTES / 2
            && let Some(place) = inner.paused.iter().position(|other| other.id == state.id)
        {
            resumed.push(inner.paused.swap_remove(place));
        }
        Some((event, resumed))
    }
}

/// The owner of all raw connections of a controller. When it is dropped, they end.
pub struct RawOwner(Arc<RawQueue>);

/// Makes an owner, and the end of its queue for the workers.
#[must_use]
pub fn raw_owner() -> (RawOwner, RawPort) {
    let queue = Arc::new(RawQueue::default());
    queue.has_owner.store(true, Ordering::Release);
    queue.ports.store(1, Ordering::Release);
    (RawOwner(Arc::clone(&queue)), RawPort(queue))
}

impl RawOwner {
    /// Waits for the next event and takes it. `None`: the controller has stopped, and no event is
    /// left.
    #[must_use]
    pub fn next(&self) -> Option<RawEvent> {
        let mut inner = self.0.lock();
        loop {
            if let Some(popped) = self.0.pop(&mut inner) {
                drop(inner);
                return Some(resume(popped));
            }
            if self.0.ports.load(Ordering::Acquire) == 0 {
                return None;
            }
            inner = self.0.arrived.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes the next event, and waits for one at most so long. `None`: none has come, or the
    /// controller has stopped, and no event is left.
    #[must_use]
    pub fn next_within(&self, time: Duration) -> Option<RawEvent> {
        let is_waiting = |inner: &mut RawQueueInner| {
            inner.events.is_empty() && self.0.ports.load(Ordering::Acquire) > 0
        };
        let waited = self.0.arrived.wait_timeout_while(self.0.lock(), time, is_waiting);
        let (mut inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let popped = self.0.pop(&mut inner)?;
        drop(inner);
        Some(resume(popped))
    }

    /// Takes the events that wait, at most so many, without waiting.
    #[must_use]
    pub fn take(&self, max_events: usize) -> Vec<RawEvent> {
        let mut inner = self.0.lock();
        let popped: Vec<_> = (0..max_events).map_while(|_| self.0.pop(&mut inner)).collect();
        drop(inner);
        popped.into_iter().map(resume).collect()
    }

    /// Whether the controller has stopped, and no event is left.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over_with(&self.0.lock())
    }

    fn is_over_with(&self, inner: &RawQueueInner) -> bool {
        inner.events.is_empty() && self.0.ports.load(Ordering::Acquire) == 0
    }

    /// Calls `ring` whenever an event comes while none waits, and when the controller stops: for
    /// owners that wait in a loop of their own, with an eventfd. It is called by a worker, so it
    /// must not block. It rings at once if an event waits already.
    pub fn on_event(&self, ring: impl Fn() + Send + Sync + 'static) {
        let ring: Arc<dyn Fn() + Send + Sync> = Arc::new(ring);
        let mut inner = self.0.lock();
        inner.on_event = Some(Arc::clone(&ring));
        let waits = !inner.events.is_empty();
        drop(inner);
        if waits {
            ring();
        }
    }
}

fn resume((event, resumed): (RawEvent, Vec<Arc<RawState>>)) -> RawEvent {
    // If a mailbox is full, its worker looks by itself, once a second.
    resumed.iter().for_each(|state| state.link.resume());
    event
}

impl Drop for RawOwner {
    fn drop(&mut self) {
        self.0.has_owner.store(false, Ordering::Release);
        let mut inner = self.0.lock();
        let up = std::mem::take(&mut inner.up);
        inner.paused.clear();
        inner.on_event = None;
        let events = std::mem::take(&mut inner.events);
        drop(inner);
        drop(events);
        // If a mailbox is full, its worker sees within a second that there is no owner.
        up.iter().for_each(|state| _ = state.link.close(OWNER_GONE.into()));
    }
}

impl fmt::Debug for RawOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawOwner({} events wait)", self.0.lock().events.len())
    }
}

/// Why connections end whose owner has been dropped.
pub const OWNER_GONE: &str = "the program that owns the raw connections has ended";

/// A worker's end of the owner's queue.
pub struct RawPort(Arc<RawQueue>);

impl RawPort {
    /// Makes the state of a connection.
    #[must_use]
    pub fn connection(
        &self,
        id: u64,
        switch: &SwitchInfo,
        link: Box<dyn RawLink>,
    ) -> RawConnection {
        RawConnection(Arc::new(RawState {
            id,
            dpid: switch.dpid,
            version: switch.version,
            link,
            waiting: AtomicUsize::new(0),
            posted: AtomicUsize::new(0),
            backlog: AtomicUsize::new(0),
            wants_writable: AtomicBool::new(false),
            is_held: AtomicBool::new(false),
            is_down: AtomicBool::new(false),
        }))
    }

    /// Whether there still is an owner.
    #[must_use]
    pub fn has_owner(&self) -> bool {
        self.0.has_owner.load(Ordering::Acquire)
    }

    /// Reports a new connection.
    pub fn up(
        &self,
        connection: &RawConnection,
        switch: Arc<SwitchInfo>,
        hello: Box<[u8]>,
        features: Box<[u8]>,
    ) {
        self.0.lock().up.push(Arc::clone(&connection.0));
        let connection = connection.clone();
        self.0.push(RawEvent::Up(RawUp { connection, switch, hello, features }));
    }

    /// Adds whole messages of a switch. Call [`may_read`](Self::may_read) before a read.
    pub fn messages(&self, connection: &RawConnection, bytes: Box<[u8]>) {
        self.0.push(RawEvent::Messages { connection: connection.clone(), bytes });
    }

    /// Whether the switch may be read now. If not, [`RawLink::resume`] follows.
    #[must_use]
    pub fn may_read(&self, connection: &RawConnection) -> bool {
        if connection.0.is_held.load(Ordering::SeqCst) {
            return false;
        }
        if !self.0.is_above(&connection.0) {
            return true;
        }
        let mut inner = self.0.lock();
        // The owner may have taken the last event before it could see that this one waits.
        if !self.0.is_above(&connection.0) {
            return true;
        }
        if !inner.paused.iter().any(|other| other.id == connection.0.id) {
            inner.paused.push(Arc::clone(&connection.0));
        }
        false
    }

    /// Notes that posted bytes have come to the worker.
    pub fn taken(&self, connection: &RawConnection, bytes: usize) {
        connection.0.posted.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Notes the number of bytes that the switch has not taken. Call it once a second too: the
    /// owner may wait for a mailbox that was full.
    pub fn backlog(&self, connection: &RawConnection, bytes: usize) {
        let state = &connection.0;
        state.backlog.store(bytes, Ordering::SeqCst);
        if state.wants_writable.load(Ordering::SeqCst)
            && state.unsent() <= MAX_UNSENT_BYTES / 2
            && state.wants_writable.swap(false, Ordering::SeqCst)
        {
            self.0.push(RawEvent::Writable(connection.clone()));
        }
    }

    /// Reports the end of a connection.
    pub fn down(&self, connection: &RawConnection, why: ConnectionEnd) {
        connection.0.is_down.store(true, Ordering::Release);
        let mut inner = self.0.lock();
        inner.up.retain(|other| other.id != connection.0.id);
        inner.paused.retain(|other| other.id != connection.0.id);
        drop(inner);
        self.0.push(RawEvent::Down { connection: connection.clone(), why });
    }
}

impl Clone for RawPort {
    fn clone(&self) -> Self {
        self.0.ports.fetch_add(1, Ordering::AcqRel);
        RawPort(Arc::clone(&self.0))
    }
}

impl Drop for RawPort {
    fn drop(&mut self) {
        if self.0.ports.fetch_sub(1, Ordering::AcqRel) == 1 {
            let on_event = self.0.lock().on_event.clone();
            self.0.arrived.notify_all();
            if let Some(on_event) = on_event {
                on_event();
            }
        }
    }
}

impl fmt::Debug for RawPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawPort(of {} events)", self.0.lock().events.len())
    }
}
