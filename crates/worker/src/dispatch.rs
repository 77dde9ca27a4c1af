//! Events, to the chain of handlers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::{ErrorMessage, FromSwitch, Out, PortStatus};
use bellrock_api::{BATCH_PACKETS, Batch, Cookie, Handler, Network, SwitchInfo, Xid};
use bellrock_api::{DynApp, Result, Switch};
use bellrock_session::{Controller, Event, xid};
use tracing::{debug, error, warn};

use crate::connection::{Asked, Stage, Up, apply};
use crate::counters::Counters;
use crate::log_budget::LogBudget;
use crate::transport::{Key, Transport};
use crate::worker::Worker;

/// What a handler is called with, besides the event.
struct Call<'a> {
    info: &'a SwitchInfo,
    out: &'a mut Out,
    session: &'a mut Controller,
    now: Duration,
    counters: &'a Counters,
    log: &'a mut LogBudget,
}

impl Call<'_> {
    /// Calls one handler, with a [`Switch`] of its own. After an error or a panic, what it wrote is
    /// taken back.
    fn one(&mut self, place: usize, app: &App, call: impl FnOnce(&mut Switch<'_>) -> Result<()>) {
        let mark = self.out.len();
        let (xids, pending) = self.session.split();
        let mut asked = Asked(pending);
        let id = (owner(place), app.cookie);
        let mut switch = Switch::new(self.info, self.out, xids, &mut asked, self.now, id);
        let (dpid, counters) = (self.info.dpid, self.counters);
        match catch_unwind(AssertUnwindSafe(|| call(&mut switch))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => {
                counters.handler_errors.add(1);
                if self.log.allows(self.now, counters) {
                    warn!(%dpid, app = app.name, %error, "a handler failed");
                }
            }
            Err(_) => {
                counters.handler_panics.add(1);
                if self.log.allows(self.now, counters) {
                    error!(%dpid, app = app.name, "a handler panicked; its writes are taken back");
                }
            }
        }
        switch.undo_to(mark);
    }
}

/// An app, as its worker knows it.
pub(crate) struct App {
    pub(crate) name: &'static str,
    pub(crate) cookie: Cookie,
}

/// The owner of the transaction ids of the app at this place; 0 is the session.
fn owner(place: usize) -> u8 {
    (place + 1) as u8
}

/// The most apps in a chain: each needs an owner's number of its own.
pub(crate) const MAX_APPS: usize = u8::MAX as usize;

impl Worker {
    /// Hands a batch down the chain.
    pub(crate) fn packets(&mut self, key: Key, batch: &mut Batch<'_>, now: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Stage::Up(up) = &mut connection.stage else { return };
        let packets = batch.len();
        let (xids, pending) = connection.session.split();
        let mut asked = Asked(pending);
        for (place, (handler, app)) in up.handlers.iter_mut().zip(&self.apps).enumerate() {
            if batch.is_done() {
                break;
            }
            let id = (owner(place), app.cookie);
            let mut switch = Switch::new(&up.info, &mut self.out, xids, &mut asked, now, id);
            batch.rewind(&switch);
            // Each panic costs the packet that it happened over; the rest of the batch goes on.
            for _ in 0..BATCH_PACKETS {
                let call = || handler.packet_ins(&mut switch, batch);
                if catch_unwind(AssertUnwindSafe(call)).is_ok() {
                    break;
                }
                batch.abandon_current(&mut switch);
                self.counters.handler_panics.add(1);
                if self.log.allows(now, &self.counters) {
                    let dpid = up.info.dpid;
                    error!(%dpid, app = app.name, "a handler panicked over a packet");
                }
            }
        }
        self.counters.packet_ins.add(packets as u64);
        if !batch.is_done() {
            let unhandled = packets as u64 - u64::from(batch.consumed());
            self.counters.packet_ins_unhandled.add(unhandled);
        }
        if let (errors @ 1.., Some(error)) = batch.errors() {
            self.counters.handler_errors.add(errors);
            debug!(dpid = %up.info.dpid, errors, last = %error, "handlers failed over packets");
        }
    }

    /// Everything but packets. The session has dealt with what is its own.
    pub(crate) fn event<T: Transport>(
        &mut self,
        key: Key,
        event: Event<'_>,
        now: Duration,
        transport: &mut T,
    ) {
        match event {
            Event::Ready => self.ready(key, now, transport),
            Event::ProbeAnswered => self.challenge_met(key),
            Event::PortStatus(status) => self.port_status(key, &status, now),
            Event::FlowRemoved(flow) => {
                self.each(key, now, |handler, switch| handler.flow_removed(switch, &flow));
            }
            Event::Error { xid, error, .. } => self.error(key, xid, &error, now, transport),
            Event::Multipart { xid, reply } => {
                if self.is_cleaning(key, xid) {
                    return self.cleaned(key, Some(&reply), now, transport);
                }
                if let Ok(body) = reply.body() {
                    self.owner(key, xid, now, |handler, switch| {
                        handler.reply(switch, Xid(xid), &body)
                    });
                }
            }
            Event::MultipartOverflow { xid, kind } => {
                debug!(key, ?kind, "a multipart reply grew too large and was dropped");
                if self.is_cleaning(key, xid) {
                    self.cleaned(key, None, now, transport);
                }
            }
            Event::Reply { xid, body: FromSwitch::BarrierReply } => {
                self.owner(key, xid, now, |handler, switch| handler.barrier(switch, Xid(xid)));
            }
            Event::Malformed { xid, error, .. } => {
                debug!(key, xid, %error, "malformed message");
                if self.is_cleaning(key, xid) {
                    self.cleaned(key, None, now, transport);
                }
            }
            // Answers that no handler method exists for, and experimenters' messages: an app that
            // needs them will bring the method.
            Event::Reply { .. } | Event::Experimenter { .. } => {}
            _ => {}
        }
    }

    fn port_status(&mut self, key: Key, status: &PortStatus, now: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(info) = connection.stage.info_mut() else { return };
        apply(Arc::make_mut(info), status);
        if let Stage::Up(up) = &mut connection.stage {
            up.changed = true;
            self.each(key, now, |handler, switch| handler.port_status(switch, status));
        }
    }

    /// Tells the directory what has changed of a switch: once a turn, because what the directory
    /// has is copied whole before it can be changed again.
    pub(crate) fn publish(&mut self, key: Key) {
        let id = self.id(key);
        let connection = self.connections.get_mut(key);
        if let Some(Stage::Up(up)) = connection.map(|connection| &mut connection.stage)
            && std::mem::take(&mut up.changed)
            && let Some(id) = id
        {
            self.shared.update(id, &up.info);
        }
    }

    fn error<T: Transport>(
        &mut self,
        key: Key,
        xid: u32,
        error: &ErrorMessage<'_>,
        now: Duration,
        transport: &mut T,
    ) {
        self.counters.errors_received.add(1);
        debug!(key, xid, ?error, "the switch reports an error");
        if self.is_cleaning(key, xid) {
            return self.cleaned(key, None, now, transport);
        }
        self.owner(key, xid, now, |handler, switch| handler.error(switch, Xid(xid), error));
    }

    /// Tells each handler that a second has passed.
    pub(crate) fn tick(&mut self, key: Key, now: Duration) {
        self.each(key, now, |handler, switch| handler.tick(switch));
    }

    /// Gives up requests that were not answered in time.
    pub(crate) fn give_up_requests(&mut self, key: Key, now: Duration) {
        // Bounded: at most `max_requests` are unanswered.
        while let Some(connection) = self.connections.get_mut(key)
            && let Some((xid, kind)) = connection.session.give_up(now)
        {
            self.counters.requests_unanswered.add(1);
            debug!(key, xid, ?kind, "no answer in time");
            self.owner(key, xid, now, |handler, switch| handler.unanswered(switch, Xid(xid)));
        }
    }

    /// The first event of a new switch's handlers.
    pub(crate) fn first_event(&mut self, key: Key, now: Duration) {
        self.each(key, now, |handler, switch| handler.switch_up(switch));
    }

    /// Calls the handler of each app, in the order of the chain.
    fn each(
        &mut self,
        key: Key,
        now: Duration,
        mut event: impl FnMut(&mut dyn Handler, &mut Switch<'_>) -> Result<()>,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Stage::Up(Up { info, handlers, .. }) = &mut connection.stage else { return };
        let (out, session) = (&mut self.out, &mut connection.session);
        let (counters, log) = (&*self.counters, &mut self.log);
        let mut call = Call { info, out, session, now, counters, log };
        for (place, (handler, app)) in handlers.iter_mut().zip(&self.apps).enumerate() {
            call.one(place, app, |switch| event(handler.as_mut(), switch));
        }
    }

    /// Calls the handler of the app that a transaction id belongs to, if it belongs to one.
    fn owner(
        &mut self,
        key: Key,
        xid: u32,
        now: Duration,
        event: impl FnOnce(&mut dyn Handler, &mut Switch<'_>) -> Result<()>,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Stage::Up(Up { info, handlers, .. }) = &mut connection.stage else { return };
        let Some(place) = usize::from(xid::owner(xid)).checked_sub(1) else { return };
        let (Some(handler), Some(app)) = (handlers.get_mut(place), self.apps.get(place)) else {
            return;
        };
        let (out, session) = (&mut self.out, &mut connection.session);
        let (counters, log) = (&*self.counters, &mut self.log);
        let mut call = Call { info, out, session, now, counters, log };
        call.one(place, app, |switch| event(handler.as_mut(), switch));
    }
}

/// Makes the handlers of a switch. An app that panics over it gets none of its events.
pub(crate) fn handlers(
    apps: &[Box<dyn DynApp>],
    network: &Network,
    info: &SwitchInfo,
    counters: &Counters,
) -> Vec<Box<dyn Handler>> {
    /// Stands in for an app that failed.
    struct Absent;
    impl Handler for Absent {}

    let make = |app: &dyn DynApp| -> Box<dyn Handler> {
        let up = || app.switch_up(network, info);
        catch_unwind(AssertUnwindSafe(up)).unwrap_or_else(|_| {
            counters.handler_panics.add(1);
            error!(dpid = %info.dpid, app = app.name(), "an app panicked over a new switch");
            Box::new(Absent)
        })
    };
    apps.iter().map(|app| make(app.as_ref())).collect()
}
