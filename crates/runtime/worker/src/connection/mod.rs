//! The connections of a worker, and what is done with each of them whoever uses them: bytes come
//! and go, timers fire, a datapath id is claimed, and the connection ends.
//!
//! [`WorkerOf`] is a worker for one kind of [`User`]: the chain of apps (`apps`), or an owner of
//! raw connections (`raw`). The user gets the bytes of each read, and hears of each switch that may
//! begin and of each connection that has ended. This module knows neither of the two.
//!
//! `drive` has the way of the bytes of a read, and calls everything else.
#![allow(private_bounds, reason = "only this crate has users of connections")]

mod claims;
mod closing;
mod drive;
mod events;
mod info;
mod sending;
mod table;
mod timers;

pub(crate) use closing::EndCause;
pub use drive::Drive;
pub(crate) use info::{apply, description_of};
pub(crate) use table::{Connection, ConnectionCounts, Connections};

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::{EncodeError, Out};
use bellrock_api::{ConnectionEnd, SwitchInfo};
use bellrock_session::{CloseReason, SessionSettings, SwitchDescription};

use crate::balance::WorkerLoad;
use crate::counters::WorkerCounters;
use crate::directory::SharedState;
use crate::log_budget::LogBudget;
use crate::mailbox::{ConnectionId, Mail};
use crate::settings::{SEND_BUFFER_BYTES, WorkerSettings};
use crate::transport::{ConnectionKey, Transport};

use events::ConnectionEvents;

/// A worker, for one kind of user of its connections: see [`crate::Worker`] and
/// [`crate::RawWorker`]. [`Drive`] has its calls.
pub struct WorkerOf<U: User> {
    pub(crate) index: usize,
    pub(crate) settings: WorkerSettings,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) counters: Arc<WorkerCounters>,
    pub(crate) connections: Connections<U>,
    /// Receive buffer, for one switch at a time.
    receive: Box<[u8]>,
    /// Maximum bytes of a read.
    pub(crate) turn_bytes: usize,
    /// Send buffer, for one switch at a time.
    pub(crate) out: Out,
    /// Mail that was taken from the mailbox without processing it.
    pub(crate) postponed: VecDeque<Mail>,
    pub(crate) log: LogBudget,
    events: ConnectionEvents,
    pub(crate) user: U,
}

impl<U: User> WorkerOf<U> {
    /// Makes a worker without connections. The calling thread allocates the buffers.
    pub(crate) fn with_user(
        index: usize,
        settings: WorkerSettings,
        shared: Arc<SharedState>,
        user: U,
    ) -> Self {
        WorkerOf {
            index,
            settings,
            counters: shared.counters().get(index).cloned().unwrap_or_default(),
            connections: Connections::of_worker(index),
            receive: vec![0; settings.receive_buffer_bytes()].into_boxed_slice(),
            turn_bytes: settings.limits.bytes_per_turn,
            out: Out::with_capacity(SEND_BUFFER_BYTES),
            postponed: VecDeque::new(),
            log: LogBudget::default(),
            events: ConnectionEvents::default(),
            user,
            shared,
        }
    }

    pub(crate) fn id(&self, key: ConnectionKey) -> Option<ConnectionId> {
        let connection = self.connections.get(key)?;
        let (serial, term) = (connection.serial, connection.term);
        Some(ConnectionId { worker: self.index, key, serial, term })
    }
}

/// The user of a worker's connections.
pub(crate) trait User: Sized {
    /// The session of a connection.
    type Session: Session;
    /// How far a connection is. The default: the datapath id is not known, or not claimed.
    type Stage: Default;
    /// What else the user keeps of a connection.
    type Own;

    /// What it keeps of a new connection.
    fn own(settings: &WorkerSettings) -> Self::Own;

    /// Data of the switch, if the connection owns its datapath id.
    fn owned_info(stage: &Self::Stage) -> Option<&Arc<SwitchInfo>>;

    /// Whether the switch is up: its end is an event of the switch.
    fn is_up(stage: &Self::Stage) -> bool;

    /// Time when [`User::stage_timer`] has something to do next.
    fn next_time(connection: &Connection<Self>) -> Option<Duration>;

    /// Whether a connection may be read now. If not, the user has the transport read it again.
    fn may_read(&self, stage: &Self::Stage) -> bool {
        let _ = stage;
        true
    }

    /// Processes all whole messages at the start of `stream`, which are those of one read and the
    /// incomplete one of the read before. Returns their total length.
    fn received<T: Transport>(
        worker: &mut WorkerOf<Self>,
        key: ConnectionKey,
        stream: &[u8],
        now: Duration,
        transport: &mut T,
    ) -> usize;

    /// Begins with a switch whose datapath id the connection has claimed.
    fn begin<T: Transport>(
        worker: &mut WorkerOf<Self>,
        key: ConnectionKey,
        info: Arc<SwitchInfo>,
        now: Duration,
        transport: &mut T,
    );

    /// Does what is due in the connection's stage.
    fn stage_timer<T: Transport>(
        worker: &mut WorkerOf<Self>,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    );

    /// Processes mail that is not about connections alone.
    fn mail<T: Transport>(
        worker: &mut WorkerOf<Self>,
        mail: Mail,
        now: Duration,
        transport: &mut T,
    );

    /// Sends whole messages of the worker.
    fn send<T: Transport>(
        worker: &mut WorkerOf<Self>,
        key: ConnectionKey,
        bytes: &[u8],
        transport: &mut T,
    ) {
        worker.send(key, bytes, transport);
    }

    /// Notes the number of bytes that wait for the switch.
    fn queued(&self, stage: &Self::Stage, bytes: usize) {
        let _ = (stage, bytes);
    }

    /// Ends what belongs to a connection that is closed. Its datapath id is not free yet: the next
    /// connection of the switch begins after this.
    fn ended<T: Transport>(
        worker: &mut WorkerOf<Self>,
        connection: Connection<Self>,
        why: ConnectionEnd,
        now: Duration,
        transport: &mut T,
    );

    /// Reads a switch whose bytes have waited for too long.
    fn read_share<T: Transport>(
        worker: &mut WorkerOf<Self>,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) -> bool {
        worker.read(key, now, transport)
    }

    /// Ends a window of time with this load.
    fn end_window<T: Transport>(
        worker: &mut WorkerOf<Self>,
        load: WorkerLoad,
        now: Duration,
        transport: &mut T,
    ) {
        let _ = (worker, load, now, transport);
    }
}

/// What a worker needs of a session, whoever uses it.
pub(crate) trait Session: Sized {
    /// Starts a session: writes a hello.
    fn open(settings: &SessionSettings, now: Duration, out: &mut Out) -> Result<Self, EncodeError>;

    /// Notes a sign of life.
    fn received(&mut self, now: Duration);

    /// Time when [`Session::timeout`] has something to do next.
    fn deadline(&self) -> Duration;

    /// Does what is due. Returns the switch, if that ends the handshake.
    fn timeout(
        &mut self,
        now: Duration,
        out: &mut Out,
    ) -> Result<Option<SwitchDescription>, CloseReason>;

    /// Sends an echo request at once, to check whether the switch is alive.
    fn probe(&mut self, out: &mut Out) -> Result<(), EncodeError>;
}
