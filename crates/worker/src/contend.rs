//! Two connections with the same datapath id: who stays.
//!
//! The new one claims the id in the directory. If an older one has it, that one's worker sends it an
//! echo at once: answered within [`DUPLICATE_ECHO`], the new one is refused; silent, the old one
//! is closed and the new one takes its place. The two may live in different workers, so question
//! and answer go by mail.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::SwitchInfo;
use tracing::warn;

use crate::connection::{Challenge, End, Stage};
use crate::mailbox::{ConnectionId, Mail};
use crate::settings::{DUPLICATE_CLAIMANTS, DUPLICATE_ECHO, DUPLICATE_WAIT};
use crate::transport::{Key, Transport};
use crate::worker::Worker;

impl Worker {
    /// The session of `key` is ready: claim its datapath id, and come up if that succeeds.
    pub(crate) fn claim<T: Transport>(
        &mut self,
        key: Key,
        info: Arc<SwitchInfo>,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(id) = self.id(key) else { return };
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Err(old) = self.shared.claim(id, &info, &connection.backlog) else {
            return self.clean(key, info, now, transport);
        };
        let dpid = info.dpid;
        if self.log.allows(now, &self.counters) {
            let peer = connection.peer;
            warn!(%dpid, %peer, "datapath id is connected already: asking the old connection");
        }
        connection.stage = Stage::Claiming { info, until: now + DUPLICATE_WAIT };
        self.set_timer(key);
        let question = Mail::AreYouAlive { who: old, claimant: id };
        if !self.shared.post(old.worker, question) {
            self.counters.duplicates_refused.add(1);
            self.close(key, End::Duplicate(dpid), now, transport);
        }
    }

    /// Another connection claims the datapath id of one of ours.
    pub(crate) fn challenge<T: Transport>(
        &mut self,
        who: ConnectionId,
        claimant: ConnectionId,
        now: Duration,
        transport: &mut T,
    ) {
        // One that was handed over is not here any more: the claimant asks again where it is now.
        let Some(key) = self.here(who) else { return self.answer(claimant, false) };
        let Some(connection) = self.connections.get_mut(key) else { return };
        match &mut connection.challenge {
            Some(challenge) if challenge.claimants.len() >= DUPLICATE_CLAIMANTS => {
                return self.answer(claimant, true);
            }
            Some(challenge) => challenge.claimants.push(claimant),
            None => {
                let until = now + DUPLICATE_ECHO;
                connection.challenge =
                    Some(Box::new(Challenge { claimants: vec![claimant], until }));
                // If the echo cannot be written, only the silence counts.
                let _ = connection.session.probe(&mut self.out);
            }
        }
        self.flush(key, transport);
        self.set_timer(key);
    }

    /// The old connection has shown that it is alive.
    pub(crate) fn challenge_met(&mut self, key: Key) {
        let challenge = self.connections.get_mut(key).and_then(|c| c.challenge.take());
        for claimant in challenge.into_iter().flat_map(|challenge| challenge.claimants) {
            self.answer(claimant, true);
        }
    }

    /// What became of the old connection.
    pub(crate) fn old_connection<T: Transport>(
        &mut self,
        claimant: ConnectionId,
        alive: bool,
        now: Duration,
        transport: &mut T,
    ) {
        let waiting = self
            .connections
            .get_mut(claimant.key)
            .filter(|connection| connection.serial == claimant.serial);
        let Some(Stage::Claiming { info, .. }) = waiting.map(|connection| &connection.stage) else {
            return;
        };
        let info = Arc::clone(info);
        if alive {
            self.counters.duplicates_refused.add(1);
            self.close(claimant.key, End::Duplicate(info.dpid), now, transport);
        } else {
            self.claim(claimant.key, info, now, transport);
        }
    }

    pub(crate) fn answer(&self, claimant: ConnectionId, alive: bool) {
        // A full mailbox loses the answer; the claimant gives up after DUPLICATE_WAIT.
        let _ = self.shared.post(claimant.worker, Mail::OldConnection { claimant, alive });
    }
}
