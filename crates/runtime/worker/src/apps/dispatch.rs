//! Dispatch of events to the chain of handlers.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::{
    ErrorMessage, FlowStats, FromSwitch, Out, PortReason, PortStatus, RequestKind,
};
use bellrock_api::runtime::SwitchControl;
use bellrock_api::{
    AppId, ControllerRole, Dpid, FlowRemoved, Handler, ReplyBody, Result, Switch, SwitchInfo,
};
use bellrock_session::{CompleteReply, ControllerSession, MAX_PORTS, SessionEvent};
use tracing::{debug, error, warn};

use crate::activity::{Calls, EventKind};
use crate::apps::Worker;
use crate::apps::allowed::{Checked, keep_allowed};
use crate::apps::asker::{Asker, Ended};
use crate::apps::sight::Raising;
use crate::apps::stage::{AppRequests, ConnectionStage, SessionRequests, StandbySwitch, UpSwitch};
use crate::apps::worker_app::WorkerApp;
use crate::connection::{apply, description_of};
use crate::counters::WorkerCounters;
use crate::guard::guarded;
use crate::log_budget::LogBudget;
use crate::transport::{ConnectionKey, Transport};

/// The arguments of a handler's call, besides the event.
pub(super) struct Call<'a> {
    pub(super) info: &'a SwitchInfo,
    pub(super) out: &'a mut Out,
    pub(super) session: &'a mut ControllerSession,
    pub(super) asked: &'a mut AppRequests,
    pub(super) now: Duration,
    pub(super) counters: &'a WorkerCounters,
    pub(super) log: &'a mut LogBudget,
    pub(super) calls: &'a mut Calls,
}

impl Call<'_> {
    /// Calls one handler with its own [`Switch`]. Discards what it wrote before an error or a
    /// panic.
    fn call_handler(
        &mut self,
        (app, handler): (&WorkerApp, &mut dyn Handler),
        event: EventKind,
        call: impl FnOnce(&mut dyn Handler, &mut Switch<'_>) -> Result<()>,
    ) {
        if app.health.is_disabled() {
            return;
        }
        self.calls.begin(app.place(), event, self.info.dpid);
        self.call_guarded(app, handler, call);
        self.calls.end();
    }

    fn call_guarded(
        &mut self,
        app: &WorkerApp,
        handler: &mut dyn Handler,
        call: impl FnOnce(&mut dyn Handler, &mut Switch<'_>) -> Result<()>,
    ) {
        let mark = self.out.len();
        let xids_before = self.session.xids();
        let (xids, pending) = self.session.split();
        let mut requests = SessionRequests { pending, asked: self.asked };
        let mut switch = Switch::new(self.info, self.out, xids, &mut requests, self.now, app.id);
        let (dpid, counters) = (self.info.dpid, self.counters);
        match guarded(|| call(&mut *handler, &mut switch)) {
            Some(Ok(())) => {
                app.messages.add(self.session.xids().given_since(xids_before).into());
                if app.is_looked_at {
                    self.look_at(app, handler, mark);
                }
                return;
            }
            Some(Err(error)) => {
                counters.handler_errors.add(1);
                app.health.failed(1);
                if error.is_fault() {
                    app.panicked(self.now, counters);
                }
                let is_logged = self.log.allows(self.now, counters);
                // Its `Display` and `Drop` are code of the app too.
                let logged = guarded(move || {
                    if is_logged {
                        app.health.keep_error(&error);
                        let error_type = error.type_name();
                        warn!(%dpid, app = app.name, %error, error_type, "a handler failed");
                    }
                });
                if logged.is_none() {
                    app.panicked(self.now, counters);
                }
            }
            None => {
                app.panicked(self.now, counters);
                if self.log.allows(self.now, counters) {
                    error!(%dpid, app = app.name, "a handler panicked; its messages are discarded");
                }
            }
        }
        switch.undo_to(mark);
    }

    /// Looks at the messages that the app has written since `mark`.
    pub(super) fn look_at(&mut self, app: &WorkerApp, handler: &mut dyn Handler, mark: usize) {
        let Call { info, out, session, asked, now, counters, log, .. } = self;
        if let Some(guard) = &app.guard {
            let checked = Checked { info, out, session, asked, now: *now, counters };
            keep_allowed((app, guard), handler, mark, checked);
        }
        if !app.fronts.is_empty() {
            let allowed = &mut asked.allowed;
            Raising { out, session, allowed, now: *now, counters, log }.raise(app, mark);
        }
    }
}

impl Worker {
    /// Handles all events but packets. The session has already processed its own.
    pub(crate) fn event<T: Transport>(
        &mut self,
        key: ConnectionKey,
        event: SessionEvent<'_>,
        now: Duration,
        transport: &mut T,
    ) {
        match event {
            SessionEvent::Ready => {
                let connection = self.connections.get_mut(key);
                if let Some(switch) = connection.and_then(|it| it.session.take_switch()) {
                    self.identified(key, switch, now, transport);
                }
            }
            SessionEvent::Identified { datapath_id } => {
                self.check_identity(key, Dpid(datapath_id), now, transport);
            }
            SessionEvent::ProbeAnswered => self.end_challenge(key),
            SessionEvent::PortStatus(status) => {
                self.early_port_status(key, &status);
                self.port_status(key, &status, now);
            }
            SessionEvent::FlowRemoved(flow) => {
                self.restore_own_flows(key, &flow, now, transport);
                self.for_each_handler(key, EventKind::FlowRemoved, now, |app, handler, switch| {
                    handler.flow_removed(switch, &with_app_priority(app, flow))
                });
            }
            SessionEvent::Error { xid, error, request } => {
                self.error(key, xid, (error, request), now, transport);
            }
            SessionEvent::Multipart { xid, reply } => {
                self.end(key, xid, Ended::Multipart(reply), now, transport);
            }
            SessionEvent::MultipartOverflow { xid, kind } => {
                debug!(key, ?kind, "a multipart reply grew too large and was dropped");
                self.end(key, xid, Ended::TooLarge, now, transport);
            }
            SessionEvent::Silent { xid, kind } => {
                debug!(key, xid, ?kind, "the switch does not answer this question");
                self.counters.requests_unanswered.add(1);
                self.end(key, xid, Ended::Silent, now, transport);
            }
            SessionEvent::Role { xid, role } => {
                if Asker::of(xid) != Asker::Role {
                    // An app or a task has asked. The role may be news for the worker too.
                    self.handle_role_report(key, ControllerRole::of(role.role), now, transport);
                }
                self.end(key, xid, Ended::Reply(FromSwitch::RoleReply(role)), now, transport);
            }
            SessionEvent::RoleStatus(status) => self.role_status(key, &status, now, transport),
            SessionEvent::Reply { xid, body } => {
                self.end(key, xid, Ended::Reply(body), now, transport);
            }
            // Whether an experimenter's message expects a reply, only its sender knows.
            SessionEvent::Experimenter { xid, message, .. } => {
                let reply = FromSwitch::Experimenter(message);
                self.end(key, xid, Ended::Reply(reply), now, transport);
            }
            SessionEvent::Malformed { xid, error, .. } => {
                self.log_malformed(key, error, now);
                self.end(key, xid, Ended::Unreadable(error), now, transport);
            }
            _ => {}
        }
    }

    /// Handles a description, or ports, that a slow switch sends after it is up.
    pub(crate) fn handle_description(
        &mut self,
        key: ConnectionKey,
        reply: &CompleteReply<'_>,
        now: Duration,
    ) {
        match reply.body() {
            Ok(ReplyBody::Desc(desc)) => {
                let Some(connection) = self.connections.get_mut(key) else { return };
                if let Some(info) = connection.info_mut() {
                    Arc::make_mut(info).description = description_of(&desc);
                }
                connection.stage.mark_changed();
            }
            Ok(ReplyBody::PortDesc(ports)) => {
                // At most as many as are kept: each is searched among the others.
                for desc in ports.iter().take(MAX_PORTS) {
                    let is_known = self
                        .connections
                        .get_mut(key)
                        .and_then(|connection| connection.info_mut())
                        .is_some_and(|info| info.ports.iter().any(|other| other.port == desc.port));
                    let reason = if is_known { PortReason::Modify } else { PortReason::Add };
                    self.port_status(key, &PortStatus { reason, desc }, now);
                }
            }
            _ => {}
        }
    }

    fn port_status(&mut self, key: ConnectionKey, status: &PortStatus, now: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(info) = connection.info_mut() else { return };
        if !apply(Arc::make_mut(info), status) {
            self.counters.ports_left_out.add(1);
        }
        connection.stage.mark_changed();
        self.port_changed(key, status, now);
    }

    /// Calls the handlers of a switch for a change of a port.
    pub(crate) fn port_changed(&mut self, key: ConnectionKey, status: &PortStatus, now: Duration) {
        self.for_each_handler(key, EventKind::PortStatus, now, |_, handler, switch| {
            handler.port_status(switch, status)
        });
    }

    /// Publishes the changes of a switch in the directory, once a turn: the first change after that
    /// copies all data of the switch.
    pub(crate) fn publish(&mut self, key: ConnectionKey) {
        let id = self.id(key);
        let connection = self.connections.get_mut(key);
        let (Some(connection), Some(id)) = (connection, id) else { return };
        match &mut connection.stage {
            ConnectionStage::Up(UpSwitch { info, changed, .. }) => {
                if std::mem::take(changed) {
                    self.shared.update(id, info);
                }
            }
            ConnectionStage::Standby(StandbySwitch { info, changed, .. }) => {
                if std::mem::take(changed) {
                    self.shared.publish_standby(id, info);
                }
            }
            ConnectionStage::Handshake | ConnectionStage::Cleaning(_) => {}
        }
    }

    fn error<T: Transport>(
        &mut self,
        key: ConnectionKey,
        xid: u32,
        (error, request): (ErrorMessage<'_>, Option<RequestKind>),
        now: Duration,
        transport: &mut T,
    ) {
        self.counters.errors_received.add(1);
        if let Some(connection) = self.connections.get(key) {
            connection.counts.errors.add(1);
        }
        let asker = Asker::of(xid);
        // A refused request for a role says nothing about other messages, and its order reports it.
        if asker != Asker::Role {
            if self.is_slave_error(key, &error) {
                // While the switch stands by, it is about what was sent before.
                if !self.stands_by(key) {
                    // Before any handler: nobody may answer with more messages.
                    match asker {
                        Asker::Task => self.task_ended(key, xid, Ended::Refused(error)),
                        Asker::Program => _ = self.record_refusal(key, xid, &error),
                        Asker::Session | Asker::Role | Asker::Cleaning | Asker::App(_) => {}
                    }
                    self.handle_role_report(key, Some(ControllerRole::Slave), now, transport);
                }
                return;
            }
            self.log_refused(key, xid, &error, request, now);
            let connection = self.connections.get_mut(key);
            if let Some(dpid) = connection.and_then(|it| it.refuses_flood(&error))
                && self.log.allows(now, &self.counters)
            {
                warn!(
                    %dpid,
                    "the switch has no FLOOD: ALL is used instead, which also sends to ports that \
                     are blocked or set NO_FLOOD"
                );
            }
        }
        self.end(key, xid, Ended::Refused(error), now, transport);
    }

    /// Calls each handler once a second.
    pub(crate) fn tick(&mut self, key: ConnectionKey, now: Duration) {
        self.for_each_handler(key, EventKind::Tick, now, |_, handler, switch| handler.tick(switch));
    }

    /// Gives up requests without an answer in time.
    pub(crate) fn give_up_requests<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        // Bounded: at most `max_requests` are unanswered.
        while let Some(connection) = self.connections.get_mut(key)
            && let Some((xid, kind)) = connection.session.give_up(now)
        {
            self.counters.requests_unanswered.add(1);
            debug!(key, xid, ?kind, "no answer in time");
            self.end(key, xid, Ended::Late, now, transport);
        }
    }

    /// Calls the handlers of a new switch for the first time.
    pub(crate) fn first_event(&mut self, key: ConnectionKey, now: Duration) {
        self.for_each_handler(key, EventKind::SwitchUp, now, |_, handler, switch| {
            handler.switch_up(switch)
        });
    }

    /// Calls the handler of each app, in the order of the chain.
    fn for_each_handler(
        &mut self,
        key: ConnectionKey,
        kind: EventKind,
        now: Duration,
        mut event: impl FnMut(AppId, &mut dyn Handler, &mut Switch<'_>) -> Result<()>,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Up(UpSwitch { info, handlers, .. }) = &mut connection.stage else {
            return;
        };
        let (out, session) = (&mut self.out, &mut connection.session);
        let asked = &mut connection.own.asked;
        let (counters, log) = (&*self.counters, &mut self.log);
        let calls = &mut self.user.calls;
        let mut call = Call { info, out, session, asked, now, counters, log, calls };
        for (handler, app) in handlers.iter_mut().zip(&self.user.chain) {
            call.call_handler((app, handler.as_mut()), kind, |handler, switch| {
                event(app.id, handler, switch)
            });
        }
    }

    /// Offers a flow of an earlier run to its app. Returns whether the app adopts it.
    pub(crate) fn offer_flow(
        &mut self,
        key: ConnectionKey,
        place: usize,
        flow: FlowStats<'_>,
        now: Duration,
    ) -> bool {
        let mut adopted = false;
        self.call_handler_at(key, place, (EventKind::Adopt, now), |app, handler, switch| {
            // Another chain had other bands: the order of its flows among those of other apps was
            // another one.
            if let Some(priority) = app.band().lower(flow.priority) {
                adopted = handler.adopt(switch, &FlowStats { priority, ..flow })?;
            }
            Ok(())
        });
        adopted
    }

    /// Calls the handler of the app at this place of the chain.
    pub(crate) fn call_handler_at(
        &mut self,
        key: ConnectionKey,
        place: usize,
        (kind, now): (EventKind, Duration),
        event: impl FnOnce(AppId, &mut dyn Handler, &mut Switch<'_>) -> Result<()>,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Up(UpSwitch { info, handlers, .. }) = &mut connection.stage else {
            return;
        };
        let (Some(handler), Some(app)) = (handlers.get_mut(place), self.user.chain.get(place))
        else {
            return;
        };
        let (out, session) = (&mut self.out, &mut connection.session);
        let asked = &mut connection.own.asked;
        let (counters, log) = (&*self.counters, &mut self.log);
        let calls = &mut self.user.calls;
        let mut call = Call { info, out, session, asked, now, counters, log, calls };
        call.call_handler((app, handler.as_mut()), kind, |handler, switch| {
            event(app.id, handler, switch)
        });
    }
}

/// A removed flow as an app sees it: its own flows have the priorities that it gave.
fn with_app_priority(app: AppId, mut flow: FlowRemoved<'_>) -> FlowRemoved<'_> {
    if app.cookie().owns(flow.cookie) {
        flow.priority = app.band().lower(flow.priority).unwrap_or(flow.priority);
    }
    flow
}
