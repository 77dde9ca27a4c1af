//! Connections with apps: what comes from a switch goes to the handlers of the chain of apps, and
//! what they write goes to the switch.
//!
//! `packets` has the way of a packet-in, `dispatch` that of all other events, and `asker` that of
//! answers. `stage` has the stages of a connection, and `up` what happens in them.

mod allowed;
mod asker;
mod budget;
mod clean;
mod confirm;
mod dispatch;
mod early;
mod faults;
mod flood;
mod hand_over;
mod handlers;
mod meter;
mod own_flows;
mod packets;
mod queries;
mod removal;
mod resume;
mod roles;
mod sight;
mod stage;
mod standby;
mod table_miss;
mod turns;
mod up;
mod worker_app;

pub use confirm::{MIN_REQUESTS, TASKS_UNANSWERED};
pub(crate) use confirm::{PostedProgram, PostedRequest, post_program, post_request};
pub use faults::FAULT_LINES_PER_SECOND;
pub(crate) use hand_over::Moving;
pub(crate) use roles::{PostedOrder, STAND_BY};
pub use worker_app::MAX_APPS;

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::{EncodeError, Out};
use bellrock_api::{ConnectionEnd, Dpid, Network, Repeats, RequestError, SwitchInfo};
use bellrock_session::{CloseReason, ControllerSession, SessionSettings, SwitchDescription};

use crate::activity::Calls;
use crate::apps::asker::Ended;
use crate::apps::budget::{PacketBudget, drop_reports};
use crate::apps::faults::FaultLines;
use crate::apps::queries::Sums;
use crate::apps::stage::{AppConnection, CleaningSwitch, ConnectionStage};
use crate::apps::turns::{CleaningTurn, CleaningTurns};
use crate::apps::up::count_session;
use crate::apps::worker_app::{WorkerApp, chain_of};
use crate::balance::{OverloadWindows, WorkerLoad};
use crate::connection::{Connection, Session, User, WorkerOf};
use crate::directory::SharedState;
use crate::mailbox::{ConnectionId, Mail};
use crate::settings::{TICK, WorkerSettings};
use crate::transport::{ConnectionKey, Transport};

/// A worker with a chain of apps.
pub type Worker = WorkerOf<Apps>;

/// The chain of apps as user of a worker's connections.
pub struct Apps {
    network: Network,
    chain: Vec<WorkerApp>,
    /// The calls of handlers, for the watchdog.
    calls: Calls,
    /// Set in a turn in which only packet-ins of so many bytes may pass.
    share_bytes: Option<usize>,
    drop_reports: Repeats<Option<Dpid>>,
    /// Bytes of unfinished multipart replies of all connections.
    unfinished: usize,
    /// Bytes of kept packet-ins of all switches that are not up.
    early_bytes: usize,
    /// Turns of switches that report flows of an earlier run.
    turns: CleaningTurns,
    overload: OverloadWindows,
    faults: FaultLines,
    /// Counters of handlers whose switches are gone.
    earlier_counters: Sums,
}

impl Worker {
    /// Makes a worker without connections. `index` is its place among the workers of `shared`. The
    /// calling thread allocates the buffers; it should be the one that runs the worker, so that
    /// they are in its nearest memory.
    ///
    /// Apps beyond the 15th ([`crate::MAX_APPS`]) are left out: there are that many bands of
    /// priorities.
    #[must_use]
    pub fn new(index: usize, settings: WorkerSettings, shared: Arc<SharedState>) -> Self {
        let apps = Apps {
            network: shared.network(),
            chain: chain_of(&shared, index),
            calls: Calls::new(shared.activity(index)),
            share_bytes: None,
            drop_reports: drop_reports(),
            unfinished: 0,
            early_bytes: 0,
            turns: CleaningTurns::default(),
            overload: OverloadWindows::default(),
            faults: FaultLines::default(),
            earlier_counters: Sums::new(),
        };
        WorkerOf::with_user(index, settings, shared, apps)
    }

    fn post<T: Transport>(&mut self, to: ConnectionId, bytes: &[u8], transport: &mut T) {
        let Some(key) = self.local_up_key(to) else {
            self.counters.mail_undeliverable.add(1);
            return;
        };
        self.counters.mail_in.add(1);
        if let Some(connection) = self.connections.get(key) {
            connection.counts.messages_sent.add(1);
        }
        Apps::send(self, key, bytes, transport);
    }
}

impl User for Apps {
    type Session = ControllerSession;
    type Stage = ConnectionStage;
    type Own = AppConnection;

    fn own(settings: &WorkerSettings) -> AppConnection {
        let budget = PacketBudget::of_limit(settings.limits.packet_ins_per_second);
        AppConnection { budget, ..AppConnection::default() }
    }

    fn owned_info(stage: &ConnectionStage) -> Option<&Arc<SwitchInfo>> {
        stage.owned_info()
    }

    fn is_up(stage: &ConnectionStage) -> bool {
        matches!(stage, ConnectionStage::Up(_))
    }

    fn next_time(connection: &Connection<Self>) -> Option<Duration> {
        match &connection.stage {
            ConnectionStage::Handshake => None,
            ConnectionStage::Cleaning(CleaningSwitch { turn, .. }) => {
                let turn = if let CleaningTurn::Has(until) = turn { Some(*until) } else { None };
                let answer = connection.cleaning_until().map(|(until, _)| until);
                [answer, turn].into_iter().flatten().min()
            }
            ConnectionStage::Standby(standby) => Some(standby.next_tick),
            ConnectionStage::Up(up) => Some(up.next_tick),
        }
    }

    fn received<T: Transport>(
        worker: &mut Worker,
        key: ConnectionKey,
        stream: &[u8],
        now: Duration,
        transport: &mut T,
    ) -> usize {
        worker.received(key, stream, now, transport)
    }

    fn begin<T: Transport>(
        worker: &mut Worker,
        key: ConnectionKey,
        info: Arc<SwitchInfo>,
        now: Duration,
        transport: &mut T,
    ) {
        worker.begin(key, info, now, transport);
    }

    fn stage_timer<T: Transport>(
        worker: &mut Worker,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = worker.connections.get_mut(key) else { return };
        if let Some((until, for_good)) = connection.cleaning_until()
            && until <= now
        {
            return match for_good {
                true => worker.handle_earlier_flows(key, &Ended::Late, now, transport),
                false => worker.up_before_answer(key, now, transport),
            };
        }
        match &mut connection.stage {
            ConnectionStage::Cleaning(CleaningSwitch {
                turn: CleaningTurn::Has(until), ..
            }) if *until <= now => {
                worker.end_turn(key);
                // The buffer may hold an echo.
                worker.flush(key, transport);
                worker.next_turns(now, transport);
            }
            ConnectionStage::Standby(standby) if standby.next_tick <= now => {
                standby.next_tick = now + TICK;
                worker.tick_session(key, now, transport);
                worker.publish(key);
            }
            ConnectionStage::Up(up) if up.next_tick <= now => {
                up.next_tick = now + TICK;
                let is_late = up.flows_request.is_some_and(|request| request.deadline <= now);
                worker.tick_session(key, now, transport);
                worker.give_up_programs(key, now, transport);
                if is_late {
                    worker.handle_earlier_flows(key, &Ended::Late, now, transport);
                }
                worker.retry_own_flows(key, now, transport);
                worker.warn_of_removed_flows(key, now);
                worker.tick(key, now);
            }
            _ => {}
        }
    }

    fn mail<T: Transport>(worker: &mut Worker, mail: Mail, now: Duration, transport: &mut T) {
        match mail {
            Mail::Send { to, bytes } => worker.post(to, &bytes, transport),
            Mail::Resume { at, place } => worker.resume(at, place, now, transport),
            Mail::Program { to, posted } => worker.program(to, posted, now, transport),
            Mail::Question { to, request } => worker.task_request(to, request, now, transport),
            Mail::Role { to, order } => worker.role_order(to, order, now, transport),
            Mail::HandOver { id, to } => worker.hand_over_one(id, to, now, transport),
            Mail::Take(moving) => worker.accept(*moving, now, transport),
            Mail::Query(query) => worker.query(query, now),
            // The first three are every worker's, the others are for workers of raw connections.
            Mail::AreYouAlive { .. }
            | Mail::OldConnection { .. }
            | Mail::Close { .. }
            | Mail::Raw { .. }
            | Mail::RawResume { .. } => {}
        }
    }

    fn send<T: Transport>(
        worker: &mut Worker,
        key: ConnectionKey,
        bytes: &[u8],
        transport: &mut T,
    ) {
        if worker.connections.get(key).is_some_and(|it| it.own.uses_all_for_flood) {
            let mut bytes = bytes.to_vec();
            flood::use_all(&mut bytes);
            return worker.send(key, &bytes, transport);
        }
        worker.send(key, bytes, transport);
    }

    fn ended<T: Transport>(
        worker: &mut Worker,
        mut connection: Connection<Self>,
        _: ConnectionEnd,
        now: Duration,
        transport: &mut T,
    ) {
        count_session(&worker.counters, &mut connection);
        worker.release_early_packets(&mut connection);
        worker.user.unfinished -= connection.own.unfinished;
        worker.user.turns.taken -= connection.stage.release_turn();
        if let Some(confirms) = connection.own.confirms.take() {
            worker.counters.changes_unknown.add(confirms.end(RequestError::Disconnected));
        }
        if let ConnectionStage::Up(up) = connection.stage {
            worker.end_switch(up, now);
        }
        worker.next_turns(now, transport);
    }

    fn read_share<T: Transport>(
        worker: &mut Worker,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) -> bool {
        worker.read_with_shares(key, now, transport)
    }

    fn end_window<T: Transport>(
        worker: &mut Worker,
        load: WorkerLoad,
        now: Duration,
        transport: &mut T,
    ) {
        if worker.user.overload.end_window(load.busy) && worker.settings.hand_over {
            worker.reduce_load(load, now, transport);
        }
    }
}

impl Session for ControllerSession {
    fn open(settings: &SessionSettings, now: Duration, out: &mut Out) -> Result<Self, EncodeError> {
        ControllerSession::new(settings, now, out)
    }

    #[inline]
    fn received(&mut self, now: Duration) {
        self.received(now);
    }

    fn deadline(&self) -> Duration {
        self.deadline()
    }

    fn timeout(
        &mut self,
        now: Duration,
        out: &mut Out,
    ) -> Result<Option<SwitchDescription>, CloseReason> {
        Ok(if self.timeout(now, out)? { self.take_switch() } else { None })
    }

    fn probe(&mut self, out: &mut Out) -> Result<(), EncodeError> {
        self.probe(out)
    }
}
