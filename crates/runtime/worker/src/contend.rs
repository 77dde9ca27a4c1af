//! Two connections with the same datapath id: decides which one stays.
//!
//! The new connection claims the id in the directory. If an older one owns it, that one's worker
//! sends it an echo at once. If the answer comes within [`DUPLICATE_ECHO`], the new connection is
//! refused. Otherwise the old one is closed and replaced. The two may be at different workers, so
//! question and answer go by mail.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::SwitchInfo;
use tracing::warn;

use crate::connection::{Challenge, ConnectionStage, EndCause};
use crate::mailbox::{ConnectionId, Mail};
use crate::settings::{DUPLICATE_CLAIMANTS, DUPLICATE_ECHO, DUPLICATE_WAIT};
use crate::transport::{ConnectionKey, Transport};
use crate::worker::Worker;

impl Worker {
    /// Claims the datapath id of a ready session. If that succeeds, the switch comes up or stands
    /// by.
    pub(crate) fn claim<T: Transport>(
        &mut self,
        key: ConnectionKey,
        info: Arc<SwitchInfo>,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(id) = self.id(key) else { return };
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Err(old) = self.shared.claim(id, &info, &connection.counts) else {
            if let Err(error) = self.shared.admit(info.dpid, info.identity.as_deref()) {
                self.shared.release(id, info.dpid);
                self.counters.identity_refusals.add(1);
                return self.close(key, EndCause::Identity(info.dpid, error), now, transport);
            }
            return self.begin(key, info, now, transport);
        };
        let dpid = info.dpid;
        if self.log.allows(now, &self.counters) {
            let peer = connection.peer;
            warn!(%dpid, %peer, "datapath id is connected already: asking the old connection");
        }
        connection.stage = ConnectionStage::Claiming { info, deadline: now + DUPLICATE_WAIT };
        self.set_timer(key);
        let message = Mail::AreYouAlive { id: old, claimant: id };
        if !self.shared.post(old.worker, message) {
            self.counters.duplicates_refused.add(1);
            self.close(key, EndCause::Duplicate(dpid), now, transport);
        }
    }

    /// Handles the claim of another connection to the datapath id of this one.
    pub(crate) fn challenge<T: Transport>(
        &mut self,
        id: ConnectionId,
        claimant: ConnectionId,
        now: Duration,
        transport: &mut T,
    ) {
        // If it was handed over, the claimant asks again at its new worker.
        let Some(key) = self.local_key(id) else {
            return self.send_challenge_answer(claimant, false);
        };
        let Some(connection) = self.connections.get_mut(key) else { return };
        match &mut connection.challenge {
            Some(challenge) if challenge.claimants.len() >= DUPLICATE_CLAIMANTS => {
                return self.send_challenge_answer(claimant, true);
            }
            Some(challenge) => challenge.claimants.push(claimant),
            None => {
                let deadline = now + DUPLICATE_ECHO;
                connection.challenge =
                    Some(Box::new(Challenge { claimants: vec![claimant], deadline }));
                // If the echo cannot be written, only silence counts.
                let _ = connection.session.probe(&mut self.out);
            }
        }
        self.flush(key, transport);
        self.set_timer(key);
    }

    /// Answers the claimants: the old connection is alive.
    pub(crate) fn end_challenge(&mut self, key: ConnectionKey) {
        let challenge = self.connections.get_mut(key).and_then(|c| c.challenge.take());
        for claimant in challenge.into_iter().flat_map(|challenge| challenge.claimants) {
            self.send_challenge_answer(claimant, true);
        }
    }

    /// Handles the answer about the old connection.
    pub(crate) fn handle_challenge_answer<T: Transport>(
        &mut self,
        claimant: ConnectionId,
        is_alive: bool,
        now: Duration,
        transport: &mut T,
    ) {
        let connection = self
            .connections
            .get_mut(claimant.key)
            .filter(|connection| connection.serial == claimant.serial);
        let Some(ConnectionStage::Claiming { info, .. }) =
            connection.map(|connection| &connection.stage)
        else {
            return;
        };
        let info = Arc::clone(info);
        if is_alive {
            self.counters.duplicates_refused.add(1);
            self.close(claimant.key, EndCause::Duplicate(info.dpid), now, transport);
        } else {
            self.claim(claimant.key, info, now, transport);
        }
    }

    pub(crate) fn send_challenge_answer(&self, claimant: ConnectionId, is_alive: bool) {
        // A full mailbox loses the answer. The claimant gives up after DUPLICATE_WAIT.
        let _ = self.shared.post(claimant.worker, Mail::OldConnection { claimant, is_alive });
    }
}
