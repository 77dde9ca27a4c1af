//! The end of connections: last messages, notifications, and counters.

use std::net::SocketAddr;
use std::time::Duration;

use bellrock_api::{ConnectionEnd, Event as Happening, RequestError, SwitchInfo};
use bellrock_session::CloseReason;
use tracing::{debug, info, warn};

use crate::connection::{Connection, ConnectionStage, EndCause, UpSwitch};
use crate::counters::WorkerCounters;
use crate::settings::{MAIL_PER_TURN, MAILBOX_MESSAGES};
use crate::transport::{ConnectionKey, Transport};
use crate::worker::Worker;

impl Worker {
    /// Handles a connection that has failed, or that the switch has closed.
    pub fn closed<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T) {
        self.close(key, EndCause::Peer, now, transport);
    }

    /// Closes a connection whose switch reads no bytes.
    pub fn stalled<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T) {
        self.close(key, EndCause::Stalled, now, transport);
    }

    /// Stops the worker: closes every connection, after the mail that was accepted for it.
    pub fn stop<T: Transport>(&mut self, now: Duration, transport: &mut T) {
        // From here on, no worker hands switches over to this one.
        self.shared.lock().mark_stopped(self.index);
        self.process_mailbox(now, transport);
        let keys: Vec<ConnectionKey> = self.connections.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.close(key, EndCause::Stop, now, transport);
        }
        // From here on, senders get the error that the switch is unknown. Mail from before counts
        // as undeliverable.
        self.process_mailbox(now, transport);
    }

    /// Processes as much mail as a mailbox holds, but not mail that keeps coming.
    fn process_mailbox<T: Transport>(&mut self, now: Duration, transport: &mut T) {
        let max_messages = MAILBOX_MESSAGES + self.postponed.len();
        for _ in 0..max_messages.div_ceil(MAIL_PER_TURN) {
            if !self.mail(now, transport) {
                return;
            }
        }
    }

    /// Closes a connection: sends what is written, notifies the handlers, and releases its datapath
    /// id.
    pub(crate) fn close<T: Transport>(
        &mut self,
        key: ConnectionKey,
        end: EndCause,
        now: Duration,
        transport: &mut T,
    ) {
        self.flush(key, transport);
        let Some(id) = self.id(key) else { return };
        self.take_early_packets(key);
        let Some(mut connection) = self.connections.try_remove(key) else { return };
        transport.close(key);
        self.arrived.remove(&connection.serial);
        self.unfinished -= connection.unfinished;
        self.turns.taken -= connection.stage.release_turn();
        count_end(&self.counters, &end);
        count_session(&self.counters, &mut connection);
        let claimed_dpid = connection.stage.owned_info().map(|info| info.dpid);
        if let Some(dpid) = claimed_dpid {
            self.shared.hide(id, dpid);
        }
        let dpid = connection.stage.info_mut().map(|info| info.dpid.to_string());
        let dpid = dpid.unwrap_or_else(|| "unknown".into());
        let peer = connection.peer;
        self.publish_end(&connection, &end, now);
        if self.log.allows(now, &self.counters) {
            match end {
                EndCause::Peer | EndCause::Stop => {
                    info!(%dpid, %peer, reason = %end, "connection closed");
                }
                _ => warn!(%dpid, %peer, reason = %end, "connection closed"),
            }
        }
        if let Some(confirms) = connection.confirms.take() {
            self.counters.changes_unknown.add(confirms.end(RequestError::Disconnected));
        }
        if let ConnectionStage::Up(up) = connection.stage {
            self.end_switch(up, now);
        }
        if let Some(dpid) = claimed_dpid {
            self.shared.release(id, dpid);
        }
        let claimants = connection.challenge.into_iter().flat_map(|challenge| challenge.claimants);
        for claimant in claimants {
            self.send_challenge_answer(claimant, false);
        }
        self.next_turns(now, transport);
        debug!(worker = self.index, at = ?now, "forgotten");
    }

    /// Ends what belongs to a switch that was up.
    pub(crate) fn end_switch(&mut self, mut up: UpSwitch, now: Duration) {
        self.counters.switches_down.add(1);
        let dpid = up.info.dpid;
        up.own_flows().for_each(|flow| flow.forget(&self.network, dpid));
        self.farewell(up, now);
    }

    /// Publishes that a switch is down.
    pub(crate) fn publish_down(
        &mut self,
        info: &SwitchInfo,
        peer: SocketAddr,
        why: ConnectionEnd,
        now: Duration,
    ) {
        if self.connection_events.allows(now) {
            let (dpid, name) = (info.dpid, info.description.datapath.clone());
            self.shared.publish(now, Happening::SwitchDown { dpid, name, peer, why });
        } else {
            self.counters.events_left_out.add(1);
        }
    }

    fn publish_end(&mut self, connection: &Connection, end: &EndCause, now: Duration) {
        let (peer, why) = (connection.peer, ConnectionEnd::from(end));
        let event = match &connection.stage {
            ConnectionStage::Up(UpSwitch { info, .. }) => {
                return self.publish_down(info, peer, why, now);
            }
            _ if *end == EndCause::Stop => None,
            _ => self.connection_events.record_end(peer.ip(), why, now),
        };
        if let Some(event) = event {
            self.shared.publish(now, event);
        }
    }

    /// Does what each session needs once a second.
    pub(crate) fn tick_session<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.carry.is_empty() {
            connection.carry = Vec::new();
        }
        count_session(&self.counters, connection);
        self.give_up_requests(key, now, transport);
        self.count_unfinished(key);
    }
}

/// Counts the end of a connection.
pub(crate) fn count_end(counters: &WorkerCounters, end: &EndCause) {
    counters.connections_closed.add(1);
    match end {
        EndCause::Session(CloseReason::HandshakeTimeout { .. }) => {
            counters.handshake_timeouts.add(1);
        }
        EndCause::Session(CloseReason::Dead) => counters.dead_closes.add(1),
        EndCause::Session(_) | EndCause::Corrupt | EndCause::EarlyMessages => {
            counters.protocol_closes.add(1);
        }
        EndCause::Stalled => counters.stalled_closes.add(1),
        EndCause::UnfinishedReplies => counters.unfinished_closes.add(1),
        // Counted where it is decided.
        EndCause::Auxiliary(_)
        | EndCause::Duplicate(_)
        | EndCause::Identity(..)
        | EndCause::Ordered(_)
        | EndCause::Replaced
        | EndCause::Peer
        | EndCause::Stop => {}
    }
}

/// Adds the counters of a session since the last call.
pub(crate) fn count_session(counters: &WorkerCounters, connection: &mut Connection) {
    // By name: a new counter that is not exported does not compile.
    let bellrock_session::SessionCounters {
        early_others,
        unexpected,
        malformed,
        errors_suppressed,
        multipart_overflows,
        ports_left_out,
    } = connection.session.take_counters();
    connection.counts.messages_sent.add(connection.session.take_sent().into());
    connection.port_tally.publish(&connection.counts);
    counters.messages_early.add(early_others.into());
    counters.unexpected.add(unexpected.into());
    counters.malformed.add(malformed.into());
    counters.errors_suppressed.add(errors_suppressed.into());
    counters.multipart_overflows.add(multipart_overflows.into());
    counters.ports_left_out.add(ports_left_out.into());
}
