//! The way of a packet-in, from the bytes of a read to the handlers of the chain. `connection`
//! has read the bytes, and sends the answers.

use std::time::Duration;

use bellrock_api::runtime::BatchControl;
use bellrock_api::{BATCH_PACKETS, Batch, Switch};
use bellrock_session::SessionEvent;
use tracing::{error, warn};

use crate::activity::EventKind;
use crate::apps::Worker;
use crate::apps::dispatch::Call;
use crate::apps::stage::{ConnectionStage, SessionRequests};
use crate::apps::worker_app::WorkerApp;
use crate::connection::EndCause;
use crate::guard::guarded;
use crate::settings::{BATCH_BYTES, FLUSH_BYTES, UNFINISHED_REPLY_BYTES, WriteMode};
use crate::transport::{ConnectionKey, Transport};

impl Worker {
    /// Processes all whole messages of a read. Returns their total length.
    pub(super) fn received<T: Transport>(
        &mut self,
        key: ConnectionKey,
        stream: &[u8],
        now: Duration,
        transport: &mut T,
    ) -> usize {
        let Some(connection) = self.connections.get_mut(key) else { return 0 };
        connection.own.load.add(&self.user.overload, stream.len() - connection.carried());
        let has_budget = self.user.share_bytes.is_some() || connection.own.budget.is_some();
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
        if self.user.unfinished > UNFINISHED_REPLY_BYTES {
            self.close(key, EndCause::UnfinishedReplies, now, transport);
        }
        used
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
            if takes_packets && connection.own.budget.is_none() && batch_bytes <= batch_max {
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
                    let budget = &mut connection.own.budget;
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

    /// Passes a batch along the chain.
    // Inlined into the loop of reads: a call for each batch would cost too much.
    #[inline(always)]
    pub(crate) fn packets(&mut self, key: ConnectionKey, batch: &mut Batch<'_>, now: Duration) {
        self.packets_from(0, key, batch, now);
    }

    /// Passes a batch along the chain, from the app at this place on.
    #[inline(always)]
    pub(crate) fn packets_from(
        &mut self,
        place: usize,
        key: ConnectionKey,
        batch: &mut Batch<'_>,
        now: Duration,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Up(up) = &mut connection.stage else { return };
        let packets = batch.len();
        for (handler, app) in up.handlers.iter_mut().zip(&self.user.chain).skip(place) {
            if batch.is_done() {
                break;
            }
            if app.health.is_disabled() {
                continue;
            }
            let mark = self.out.len();
            self.user.calls.begin(app.place(), EventKind::PacketIn, up.info.dpid);
            let xids_before = connection.session.xids();
            let (xids, pending) = connection.session.split();
            let mut requests = SessionRequests { pending, asked: &mut connection.own.asked };
            let mut switch = Switch::new(&up.info, &mut self.out, xids, &mut requests, now, app.id);
            batch.rewind(&switch);
            // A panic costs only its packet; the rest of the batch goes on.
            for _ in 0..BATCH_PACKETS {
                let call = || handler.packet_ins(&mut switch, batch);
                if guarded(call).is_some() {
                    break;
                }
                batch.abandon_current(&mut switch);
                app.panicked(now, &self.counters);
                if self.log.allows(now, &self.counters) {
                    let dpid = up.info.dpid;
                    error!(%dpid, app = app.name, "a handler panicked at a packet");
                }
                if app.health.is_disabled() {
                    break;
                }
            }
            app.messages.add(connection.session.xids().given_since(xids_before).into());
            if app.is_looked_at {
                let (info, out, counters) = (&*up.info, &mut self.out, &*self.counters);
                let (session, asked) = (&mut connection.session, &mut connection.own.asked);
                let (log, calls) = (&mut self.log, &mut self.user.calls);
                let mut call = Call { info, out, session, asked, now, counters, log, calls };
                call.look_at(app, handler.as_mut(), mark);
            }
        }
        self.user.calls.end();
        if place == 0 {
            connection.own.port_tally.count(batch, connection.counts.packet_ins.get());
            self.counters.packet_ins.add(packets as u64);
            connection.counts.packet_ins.add(packets as u64);
        }
        if !batch.is_done() {
            let unhandled = packets as u64 - u64::from(batch.consumed());
            self.counters.packet_ins_unhandled.add(unhandled);
        }
        if let (errors @ 1.., Some((app_id, error))) = batch.errors() {
            self.counters.handler_errors.add(errors);
            if let Some(WorkerApp { name: app, health, .. }) =
                self.user.chain.iter().find(|app| app.id == app_id)
            {
                health.failed(errors);
                if self.log.allows(now, &self.counters) {
                    health.keep_error(error);
                    let (dpid, error_type) = (up.info.dpid, error.type_name());
                    warn!(%dpid, app, errors, last = %error, error_type, "handlers failed at packets");
                }
            }
        }
    }

    /// Updates the sum of unfinished replies with those of `key`'s session.
    pub(super) fn count_unfinished(&mut self, key: ConnectionKey) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let unfinished_bytes = connection.session.kept_bytes();
        self.user.unfinished = self.user.unfinished - connection.own.unfinished + unfinished_bytes;
        connection.own.unfinished = unfinished_bytes;
    }
}
