//! The end of connections: why, last messages, events, and counters.

use std::net::SocketAddr;
use std::time::Duration;

use bellrock_api::{ConnectionEnd, Dpid, Event, SwitchInfo};
use bellrock_session::CloseReason;
use tracing::{info, warn};

use super::{Drive, User, WorkerOf};
use crate::admission::AdmissionError;
use crate::counters::WorkerCounters;
use crate::settings::{MAIL_PER_TURN, MAILBOX_MESSAGES};
use crate::transport::{ConnectionKey, Transport};

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EndCause {
    #[error(transparent)]
    Session(#[from] CloseReason),
    #[error("the switch closed the connection")]
    Peer,
    #[error(
        "what came by TLS cannot be decrypted: something changed it on the way, or the switch's \
         TLS needs a fix"
    )]
    Corrupt,
    #[error(
        "auxiliary connection {0} refused: Bellrock uses main connections only; remove the \
         auxiliary connection from the switch's configuration"
    )]
    Auxiliary(u8),
    #[error(
        "datapath id {0} is connected already, and that connection is alive; give each switch a \
         datapath id of its own"
    )]
    Duplicate(Dpid),
    #[error("it may not speak for datapath id {0}: {1}")]
    Identity(Dpid, AdmissionError),
    /// By order of the operator, or of a rule: the sentence says which.
    #[error("{0}")]
    Ordered(Box<str>),
    #[error("a new connection with the same datapath id replaced this one, which was silent")]
    Replaced,
    #[error("the switch read none of the waiting bytes for too long")]
    Stalled,
    #[error(
        "unfinished replies of this worker's switches exceed {} MiB; send fewer requests at a time",
        crate::settings::UNFINISHED_REPLY_BYTES >> 20
    )]
    UnfinishedReplies,
    #[error(
        "the switch sent {} KiB of messages before its features; check the switch's load",
        crate::settings::MAX_EARLY_BYTES >> 10
    )]
    EarlyMessages,
    #[error("the controller stops")]
    Stop,
}

impl<U: User> WorkerOf<U> {
    /// Closes a connection: sends what is written, lets the user end its part, and releases its
    /// datapath id.
    pub(crate) fn close<T: Transport>(
        &mut self,
        key: ConnectionKey,
        end: EndCause,
        now: Duration,
        transport: &mut T,
    ) {
        self.flush(key, transport);
        let Some(id) = self.id(key) else { return };
        let Some(mut connection) = self.connections.remove(key) else { return };
        transport.close(key);
        count_end(&self.counters, &end);
        let owned_dpid = connection.dpid();
        if let Some(dpid) = owned_dpid {
            self.shared.hide(id, dpid);
        }
        let peer = connection.peer;
        let why = ConnectionEnd::from(&end);
        let owned = U::owned_info(&connection.stage);
        match owned.filter(|_| U::is_up(&connection.stage)) {
            Some(info) => self.publish_down(info, peer, why.clone(), now),
            None if end == EndCause::Stop => {}
            None => {
                if let Some(event) = self.events.record_end(peer.ip(), why.clone(), now) {
                    self.shared.publish(now, event);
                }
            }
        }
        if self.log.allows(now, &self.counters) {
            let known = owned.or(connection.claim.as_ref().map(|claim| &claim.info));
            let dpid = known.map_or_else(|| "unknown".to_owned(), |info| info.dpid.to_string());
            match end {
                EndCause::Peer | EndCause::Stop => {
                    info!(%dpid, %peer, reason = %end, "connection closed");
                }
                _ => warn!(%dpid, %peer, reason = %end, "connection closed"),
            }
        }
        let challenge = connection.challenge.take();
        U::ended(self, connection, why, now, transport);
        if let Some(dpid) = owned_dpid {
            self.shared.release(id, dpid);
        }
        self.answer_challenge(challenge, false);
    }

    /// Publishes that a switch is up. The end of an alarm is never left out: the alarm itself was
    /// counted.
    pub(crate) fn publish_up(&mut self, info: &SwitchInfo, now: Duration) {
        let name = info.description.datapath.clone();
        let (dpid, peer, version) = (info.dpid, info.peer, info.version);
        let event = Event::SwitchUp { dpid, name, peer, version };
        let is_allowed = self.events.allows(now) || self.shared.would_end_alarm(&event);
        self.publish_event(event, is_allowed, now);
    }

    /// Publishes that a switch is down.
    pub(crate) fn publish_down(
        &mut self,
        info: &SwitchInfo,
        peer: SocketAddr,
        why: ConnectionEnd,
        now: Duration,
    ) {
        let (dpid, name) = (info.dpid, info.description.datapath.clone());
        let is_allowed = self.events.allows(now);
        self.publish_event(Event::SwitchDown { dpid, name, peer, why }, is_allowed, now);
    }

    fn publish_event(&self, event: Event, is_allowed: bool, now: Duration) {
        match is_allowed {
            true => self.shared.publish(now, event),
            false => self.counters.events_left_out.add(1),
        }
    }

    /// Closes all connections, after the mail that was accepted for them.
    pub(super) fn close_all<T: Transport>(&mut self, now: Duration, transport: &mut T) {
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
}

/// Counts the end of a connection.
fn count_end(counters: &WorkerCounters, end: &EndCause) {
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
