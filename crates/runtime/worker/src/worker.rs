//! The worker itself: connections, bytes and time come in, bytes go out.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bellrock_api::openflow::{FlowStats, List, Out};
use bellrock_api::runtime::BatchControl;
use bellrock_api::{AppId, Batch, Dpid, Event as Happening, Network, OwnFlow, Repeats, SwitchInfo};
use bellrock_session::{ControllerSession, FirstRole, SessionEvent, Versions};
use slab::Slab;
use tracing::{debug, info, warn};

use crate::activity::Calls;
use crate::asker::Ended;
use crate::balance::{OverloadWindows, SwitchLoad};
use crate::budget::{PacketBudget, drop_reports};
use crate::connection::{
    AppRequests, CleaningSwitch, Connection, ConnectionStage, EndCause, UpSwitch, info_of,
};
use crate::connection_events::ConnectionEvents;
use crate::counters::WorkerCounters;
use crate::directory::SharedState;
use crate::faults::FaultLines;
use crate::handlers::handlers;
use crate::log_budget::LogBudget;
use crate::mailbox::{ConnectionId, Mail};
use crate::port_counts::PortTally;
use crate::queries::Sums;
use crate::settings::{
    BATCH_BYTES, FLUSH_BYTES, MAIL_PER_TURN, SEND_BUFFER_BYTES, TICK, UNFINISHED_REPLY_BYTES,
    WorkerSettings, WriteMode,
};
use crate::sight::{SightFlows, fronts};
use crate::table_miss::{RemovedOutside, TABLE_MISS};
use crate::timers::ConnectionTimers;
use crate::transport::{ConnectionKey, ReadOutcome, Transport};
use crate::turns::{CleaningTurn, CleaningTurns};
use crate::worker_app::WorkerApp;

/// The number of a connection's first worker is above this many bits of its serial, so serials are
/// unique in a controller.
pub(crate) const SERIAL_BITS: u32 = 48;

/// One worker: see the crate's documentation.
///
/// `now` is the time since the controller's start, the same for all workers. It never goes back.
pub struct Worker {
    pub(crate) index: usize,
    pub(crate) settings: WorkerSettings,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) network: Network,
    pub(crate) counters: Arc<WorkerCounters>,
    pub(crate) apps: Vec<WorkerApp>,
    pub(crate) connections: Slab<Connection>,
    /// Keys of connections that were handed over to this worker, by their serials.
    pub(crate) arrived: BTreeMap<u64, ConnectionKey>,
    next_serial: u64,
    /// Receive buffer, for one switch at a time.
    receive: Box<[u8]>,
    /// Maximum bytes of a read.
    pub(crate) turn_bytes: usize,
    /// Set in a turn in which only packet-ins of so many bytes may pass.
    pub(crate) share_bytes: Option<usize>,
    pub(crate) drop_reports: Repeats<Option<Dpid>>,
    /// The calls of handlers, for the watchdog.
    pub(crate) calls: Calls,
    /// Send buffer, for one switch at a time.
    pub(crate) out: Out,
    timers: ConnectionTimers,
    /// Bytes of unfinished multipart replies of all connections.
    pub(crate) unfinished: usize,
    /// Bytes of kept packet-ins of all switches that are not up.
    pub(crate) early_bytes: usize,
    /// Mail that a hand-over took from the mailbox without processing it.
    pub(crate) postponed: VecDeque<Mail>,
    /// Turns of switches that report flows of an earlier run.
    pub(crate) turns: CleaningTurns,
    pub(crate) overload: OverloadWindows,
    pub(crate) log: LogBudget,
    pub(crate) faults: FaultLines,
    pub(crate) connection_events: ConnectionEvents,
    /// Counters of handlers whose switches are gone.
    pub(crate) earlier_counters: Sums,
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
        let mut apps: Vec<WorkerApp> = Vec::new();
        for (place, app) in shared.apps().iter().enumerate() {
            let (name, earlier_flows) = (app.name, app.earlier_flows);
            let Some(id) = AppId::new(place, name) else { break };
            let health = shared.health(place);
            let fronts = fronts(&apps);
            let guard = app.guard.checks_handlers().then(|| Arc::clone(&app.guard));
            let messages = shared.messages_counter(index, place);
            apps.push(WorkerApp {
                name,
                id,
                earlier_flows,
                reports_refusals: app.reports_refusals,
                health,
                network: shared.network_of(place, name),
                is_looked_at: guard.is_some() || !fronts.is_empty(),
                guard,
                sees: Arc::clone(&app.sees),
                fronts,
                messages,
            });
        }
        Worker {
            index,
            settings,
            network: shared.network(),
            counters: shared.counters().get(index).cloned().unwrap_or_default(),
            apps,
            connections: Slab::new(),
            arrived: BTreeMap::new(),
            next_serial: (index as u64) << SERIAL_BITS,
            receive: vec![0; settings.receive_buffer_bytes()].into_boxed_slice(),
            turn_bytes: settings.limits.bytes_per_turn,
            share_bytes: None,
            drop_reports: drop_reports(),
            calls: Calls::new(shared.activity(index)),
            out: Out::with_capacity(SEND_BUFFER_BYTES),
            timers: ConnectionTimers::default(),
            unfinished: 0,
            early_bytes: 0,
            postponed: VecDeque::new(),
            turns: CleaningTurns::default(),
            overload: OverloadWindows::default(),
            log: LogBudget::default(),
            faults: FaultLines::default(),
            connection_events: ConnectionEvents::default(),
            earlier_counters: BTreeMap::new(),
            shared,
        }
    }

    /// Its counters.
    #[must_use]
    pub fn counters(&self) -> &Arc<WorkerCounters> {
        &self.counters
    }

    /// Number of its connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Key of the next connection.
    #[must_use]
    pub fn next_key(&self) -> ConnectionKey {
        self.connections.vacant_key()
    }

    /// Opens a connection of a switch: sends a hello. The transport must already know
    /// [`Worker::next_key`].
    pub fn open<T: Transport>(&mut self, peer: SocketAddr, now: Duration, transport: &mut T) {
        self.open_in(peer, None, now, transport);
    }

    /// As [`Worker::open`], in these versions instead of those of the sessions.
    pub fn open_in<T: Transport>(
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
        let session = match ControllerSession::new(&settings, now, &mut self.out) {
            Ok(session) => session,
            Err(error) => {
                warn!(%peer, %error, "a hello could not be written");
                return transport.close(self.next_key());
            }
        };
        let serial = self.next_serial;
        self.next_serial += 1;
        let limit = self.settings.limits.packet_ins_per_second;
        let key = self.connections.insert(Connection {
            serial,
            term: 0,
            peer,
            session,
            carry: Vec::new(),
            counts: Arc::default(),
            unfinished: 0,
            load: SwitchLoad::default(),
            budget: PacketBudget::of_limit(limit),
            port_tally: PortTally::default(),
            asked: AppRequests::default(),
            uses_all_for_flood: false,
            removal_reported: None,
            confirms: None,
            stage: ConnectionStage::Handshake,
            timer: None,
            roles: None,
            early_packets: None,
            challenge: None,
        });
        self.counters.connections_opened.add(1);
        debug!(%peer, worker = self.index, "connected");
        self.flush(key, transport);
        self.set_timer(key);
    }

    /// Gives a switch its turn: one read, processing of all that came, one write. Returns whether
    /// there may be more to read at once.
    pub fn read<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) -> bool {
        let Some(connection) = self.connections.get_mut(key) else { return false };
        let carried = connection.carry.len();
        let end = carried + self.turn_bytes;
        let Some((carry, room)) =
            self.receive.get_mut(..end).and_then(|buffer| buffer.split_at_mut_checked(carried))
        else {
            return false;
        };
        carry.copy_from_slice(&connection.carry);
        match transport.read(key, room) {
            ReadOutcome::Empty => false,
            ReadOutcome::Closed => {
                self.close(key, EndCause::Peer, now, transport);
                false
            }
            ReadOutcome::Corrupt => {
                self.close(key, EndCause::Corrupt, now, transport);
                false
            }
            ReadOutcome::Bytes { n, has_more: more } => {
                connection.session.received(now);
                connection.load.add(&self.overload, n);
                self.counters.reads.add(1);
                self.counters.bytes_in.add(n as u64);
                self.handle_bytes(key, carried + n, now, transport);
                more && self.connections.contains(key)
            }
        }
    }

    /// Processes `len` bytes of `key` in the receive buffer.
    fn handle_bytes<T: Transport>(
        &mut self,
        key: ConnectionKey,
        len: usize,
        now: Duration,
        transport: &mut T,
    ) {
        let receive = std::mem::take(&mut self.receive);
        let stream = receive.get(..len).unwrap_or(&[]);
        let has_budget = self.share_bytes.is_some()
            || self.connections.get(key).is_some_and(|connection| connection.budget.is_some());
        if has_budget {
            self.begin_budget(key, stream, now);
        }
        let used = self.handle_messages(key, stream, now, transport);
        if has_budget {
            self.end_budget(key, now);
        }
        self.flush(key, transport);
        self.publish(key);
        self.count_unfinished(key);
        if self.unfinished > UNFINISHED_REPLY_BYTES {
            self.close(key, EndCause::UnfinishedReplies, now, transport);
        }
        if let Some(connection) = self.connections.get_mut(key) {
            connection.carry.clear();
            connection.carry.extend_from_slice(stream.get(used..).unwrap_or(&[]));
        }
        self.receive = receive;
    }

    /// Updates the sum of unfinished replies with those of `key`'s session.
    pub(crate) fn count_unfinished(&mut self, key: ConnectionKey) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let unfinished_bytes = connection.session.kept_bytes();
        self.unfinished = self.unfinished - connection.unfinished + unfinished_bytes;
        connection.unfinished = unfinished_bytes;
    }

    /// Processes all whole messages at the start of `stream`. Returns their total length.
    fn handle_messages<T: Transport>(
        &mut self,
        key: ConnectionKey,
        stream: &[u8],
        now: Duration,
        transport: &mut T,
    ) -> usize {
        let mut used = 0;
        let mut batch = Batch::new(stream);
        let mut batch_bytes = 0;
        let batch_max = if self.settings.write == WriteMode::Immediate { 0 } else { BATCH_BYTES };
        loop {
            let Some(connection) = self.connections.get_mut(key) else { return used };
            let takes_packets = matches!(connection.stage, ConnectionStage::Up(_));
            if takes_packets && batch.is_empty() {
                batch.begin(connection.session.version());
            }
            if takes_packets && connection.budget.is_none() && batch_bytes <= batch_max {
                let end = batch.fill(used, batch_max - batch_bytes);
                batch_bytes += end - used;
                used = end;
            }
            let is_full = batch.is_full() || batch_bytes > batch_max;
            let next = if is_full {
                Ok(None)
            } else {
                let rest = stream.get(used..).unwrap_or(&[]);
                connection.session.next(rest, now, &mut self.out)
            };
            if let Ok(Some((n, SessionEvent::PacketIn { .. }))) = next {
                if !takes_packets {
                    self.early_packet(key, stream.get(used..used + n).unwrap_or(&[]), now);
                } else {
                    let message = stream.get(used..used + n).unwrap_or(&[]);
                    let version = connection.session.version();
                    let budget = &mut connection.budget;
                    if budget.as_mut().is_none_or(|budget| budget.pass(version, message, now)) {
                        batch.push(message);
                        batch_bytes += n;
                    }
                }
                used += n;
                continue;
            }
            // Any other event ends the batch, so that all events stay in order.
            if !batch.is_empty() {
                self.packets(key, &mut batch, now);
                batch.clear();
                batch_bytes = 0;
                if self.out.len() > FLUSH_BYTES || self.settings.write == WriteMode::Immediate {
                    self.flush(key, transport);
                }
            }
            match next {
                Ok(None) if is_full => {}
                Ok(None) => return used,
                Ok(Some((_, SessionEvent::OutFull))) => self.flush(key, transport),
                Ok(Some((n, event))) => {
                    used += n;
                    self.event(key, event, now, transport);
                }
                Err(close) => {
                    self.close(key, EndCause::Session(close), now, transport);
                    return used;
                }
            }
        }
    }

    /// Processes mail. Returns whether there may be more.
    pub fn mail<T: Transport>(&mut self, now: Duration, transport: &mut T) -> bool {
        for _ in 0..MAIL_PER_TURN {
            let postponed = self.postponed.pop_front();
            let mail = postponed.or_else(|| self.shared.mailbox(self.index)?.pop());
            match mail {
                None => return false,
                Some(Mail::Send { to, bytes }) => self.post(to, &bytes, transport),
                Some(Mail::Resume { at, place }) => self.resume(at, place, now, transport),
                Some(Mail::Program { to, posted }) => self.program(to, posted, now, transport),
                Some(Mail::Question { to, request: question }) => {
                    self.task_request(to, question, now, transport);
                }
                Some(Mail::Role { to, order }) => self.role_order(to, order, now, transport),
                Some(Mail::AreYouAlive { id: who, claimant }) => {
                    self.challenge(who, claimant, now, transport);
                }
                Some(Mail::OldConnection { claimant, is_alive: alive }) => {
                    self.handle_challenge_answer(claimant, alive, now, transport);
                    self.flush(claimant.key, transport);
                }
                Some(Mail::HandOver { id: who, to }) => self.hand_over_one(who, to, now, transport),
                Some(Mail::Take(moving)) => self.accept(*moving, now, transport),
                Some(Mail::Close { id, why }) => {
                    if let Some(key) = self.local_key(id) {
                        self.close(key, EndCause::Ordered(why), now, transport);
                    }
                }
                Some(Mail::Query(query)) => self.query(query, now),
                // For workers of raw connections only.
                Some(Mail::Raw { .. } | Mail::RawResume { .. }) => {}
            }
        }
        true
    }

    pub(crate) fn post<T: Transport>(&mut self, to: ConnectionId, bytes: &[u8], transport: &mut T) {
        let Some(key) = self.local_up_key(to) else {
            self.counters.mail_undeliverable.add(1);
            return;
        };
        self.counters.mail_in.add(1);
        if let Some(connection) = self.connections.get(key) {
            connection.counts.messages_sent.add(1);
        }
        self.send_messages(key, bytes, transport);
    }

    /// Time when [`Worker::timers`] has something to do next.
    #[must_use]
    pub fn next_timer(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// Processes all timers that are due.
    pub fn timers<T: Transport>(&mut self, now: Duration, transport: &mut T) {
        while let Some((at, key, serial)) = self.timers.due(now) {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            if connection.serial != serial || connection.timer != Some(at) {
                continue;
            }
            connection.timer = None;
            self.timer(key, now, transport);
            self.flush(key, transport);
            self.set_timer(key);
        }
    }

    fn timer<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.session.deadline() <= now && transport.has_unread(key) {
            // An overloaded worker must not take a switch for dead whose bytes it has not read.
            connection.session.received(now);
        }
        if connection.session.deadline() <= now {
            match connection.session.timeout(now, &mut self.out) {
                Err(close) => return self.close(key, EndCause::Session(close), now, transport),
                Ok(true) => return self.ready(key, now, transport),
                Ok(false) => {}
            }
        }
        if connection.challenge.as_ref().is_some_and(|challenge| challenge.deadline <= now) {
            self.counters.duplicates_replaced.add(1);
            return self.close(key, EndCause::Replaced, now, transport);
        }
        if let Some((until, for_good)) = self.cleaning_until(key)
            && until <= now
        {
            return match for_good {
                true => self.handle_earlier_flows(key, &Ended::Late, now, transport),
                false => self.up_before_answer(key, now, transport),
            };
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        match &mut connection.stage {
            ConnectionStage::Claiming { info, deadline: until } if *until <= now => {
                let dpid = info.dpid;
                self.counters.duplicates_refused.add(1);
                self.close(key, EndCause::Duplicate(dpid), now, transport);
            }
            ConnectionStage::Cleaning(CleaningSwitch {
                turn: CleaningTurn::Has(until), ..
            }) if *until <= now => {
                self.end_turn(key);
                // The buffer may hold an echo.
                self.flush(key, transport);
                self.next_turns(now, transport);
            }
            ConnectionStage::Standby(standby) if standby.next_tick <= now => {
                standby.next_tick = now + TICK;
                self.tick_session(key, now, transport);
                self.publish(key);
            }
            ConnectionStage::Up(up) if up.next_tick <= now => {
                up.next_tick = now + TICK;
                let is_late = up.flows_request.is_some_and(|request| request.deadline <= now);
                self.tick_session(key, now, transport);
                self.give_up_programs(key, now, transport);
                if is_late {
                    self.handle_earlier_flows(key, &Ended::Late, now, transport);
                }
                self.retry_table_miss(key, now, transport);
                self.retry_sight(key, now, transport);
                self.warn_of_removed_flows(key, now);
                self.retry_meter(key, now, transport);
                self.tick(key, now);
            }
            _ => {}
        }
    }

    /// Sets the connection's timer to the earliest time that it waits for.
    pub(crate) fn set_timer(&mut self, key: ConnectionKey) {
        let cleaning_until = self.cleaning_until(key).map(|(until, _)| until);
        let Some(connection) = self.connections.get_mut(key) else { return };
        let stage = match &connection.stage {
            ConnectionStage::Handshake => None,
            ConnectionStage::Claiming { deadline: until, .. } => Some(*until),
            ConnectionStage::Cleaning(CleaningSwitch { turn, .. }) => {
                let turn = if let CleaningTurn::Has(until) = turn { Some(*until) } else { None };
                [cleaning_until, turn].into_iter().flatten().min()
            }
            ConnectionStage::Standby(standby) => Some(standby.next_tick),
            ConnectionStage::Up(up) => Some(up.next_tick),
        };
        let challenge = connection.challenge.as_ref().map(|challenge| challenge.deadline);
        let session = connection.session.deadline();
        let at = [stage, challenge].into_iter().flatten().fold(session, Duration::min);
        connection.timer = self.timers.set(at, key, connection.serial, connection.timer);
    }

    /// Whether a connection may speak for a datapath id; closes it if not. This is before the
    /// claim: a stranger neither finds out whether the switch is connected, nor disturbs it.
    pub(crate) fn check_identity<T: Transport>(
        &mut self,
        key: ConnectionKey,
        dpid: Dpid,
        now: Duration,
        transport: &mut T,
    ) -> bool {
        let identity = transport.identity(key);
        let Err(error) = self.shared.check_admission(dpid, identity.as_deref()) else {
            return true;
        };
        self.counters.identity_refusals.add(1);
        self.close(key, EndCause::Identity(dpid, error), now, transport);
        false
    }

    /// Handles the end of the handshake of `key`'s session.
    pub(crate) fn ready<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(switch) = connection.session.take_switch() else { return };
        if switch.auxiliary_id != 0 {
            self.counters.auxiliary_refused.add(1);
            return self.close(key, EndCause::Auxiliary(switch.auxiliary_id), now, transport);
        }
        if let Some(reason) = switch.ports_missing
            && self.log.allows(now, &self.counters)
        {
            let dpid = Dpid(switch.datapath_id);
            warn!(%dpid, %reason, "the switch does not report its ports: they become known as they change");
        }
        let mut info = info_of(switch, connection.peer, now);
        info.identity = transport.identity(key);
        // Again: certificates may have been revoked since the features came.
        if self.check_identity(key, info.dpid, now, transport) {
            self.claim(key, Arc::new(info), now, transport);
        }
    }

    /// Brings a switch up: gives it to the apps. `earlier_flows` has the flows that apps may adopt,
    /// if the switch reported them.
    pub(crate) fn up<T: Transport>(
        &mut self,
        key: ConnectionKey,
        info: Arc<SwitchInfo>,
        earlier_flows: Option<List<'_, FlowStats<'_>>>,
        now: Duration,
        transport: &mut T,
    ) {
        // Before any app gets the switch: a task that an app starts then may send to it at once.
        // Such mail is processed after this.
        if let Some(id) = self.id(key) {
            self.shared.update(id, &info);
        }
        let apps = self.shared.apps();
        let handlers = handlers(apps, &self.apps, &info, (&self.counters, &mut self.calls));
        if self.log.allows(now, &self.counters) {
            info!(
                dpid = %info.dpid, version = %info.version, peer = %info.peer,
                ports = info.ports.len(), software = %info.description.software,
                worker = self.index, "switch up"
            );
        }
        let name = info.description.datapath.clone();
        let (dpid, peer, version) = (info.dpid, info.peer, info.version);
        let event = Happening::SwitchUp { dpid, name, peer, version };
        // The end of an alarm is never left out: the alarm itself was counted.
        if self.connection_events.allows(now) || self.network.events().would_end(&event) {
            self.shared.publish(now, event);
        } else {
            self.counters.events_left_out.add(1);
        }
        let next_tick = now + TICK;
        let table_miss = OwnFlow::new(TABLE_MISS);
        let sight = SightFlows::of(&self.apps, info.dpid);
        let up = UpSwitch {
            info,
            handlers,
            next_tick,
            flows_request: None,
            table_miss,
            sight,
            removed_outside: RemovedOutside::default(),
            controller_meter: None,
            changed: false,
        };
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.stage = ConnectionStage::Up(up);
        if self.wants_packet_ins() {
            // The buffer is almost empty here.
            self.send_table_miss(key, now);
        }
        self.send_sight(key, now);
        self.send_first_meter(key, now);
        self.counters.switches_up.add(1);
        if let Some(flows) = earlier_flows {
            self.adopt(key, flows, Duration::ZERO, now, transport);
        }
        // The apps' first messages get the whole buffer, and so do answers to early packets.
        self.flush(key, transport);
        self.first_event(key, now);
        self.flush(key, transport);
        self.early_packets(key, now, transport);
        self.set_timer(key);
    }

    /// Notes that the transport has sent some queued bytes of `key`; `queued` are left.
    pub fn drained(&mut self, key: ConnectionKey, queued: usize, now: Duration) {
        if let Some(connection) = self.connections.get_mut(key) {
            connection.session.drained(now);
            connection.counts.backlog.store(queued, Ordering::Relaxed);
        }
        // Its echo reply may be behind much that it must read first.
        self.end_challenge(key);
    }

    pub(crate) fn id(&self, key: ConnectionKey) -> Option<ConnectionId> {
        let connection = self.connections.get(key)?;
        let (serial, term) = (connection.serial, connection.term);
        Some(ConnectionId { worker: self.index, key, serial, term })
    }
}
