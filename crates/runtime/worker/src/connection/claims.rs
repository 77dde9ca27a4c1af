//! Datapath ids: which connection may speak for one, and which of two connections stays.
//!
//! The new connection claims the id in the directory. If an older one owns it, that one's worker
//! sends it an echo at once. If the answer comes within [`DUPLICATE_ECHO`], the new connection is
//! refused. Otherwise the old one is closed and replaced. The two may be at different workers, so
//! question and answer go by mail.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{Dpid, SwitchInfo};
use bellrock_session::SwitchDescription;
use tracing::warn;

use super::info::info_of;
use super::{EndCause, Session, User, WorkerOf};
use crate::admission::AdmissionError;
use crate::mailbox::{ConnectionId, Mail};
use crate::settings::{DUPLICATE_CLAIMANTS, DUPLICATE_ECHO, DUPLICATE_WAIT};
use crate::transport::{ConnectionKey, Transport};

/// The claim of a connection whose datapath id another one owns.
pub(super) struct Claim {
    pub(super) info: Arc<SwitchInfo>,
    /// Time limit for the answer about the other connection.
    pub(super) deadline: Duration,
}

/// The connections that claim the datapath id, and the time limit for a sign of life.
pub(super) struct Challenge {
    claimants: Vec<ConnectionId>,
    pub(super) deadline: Duration,
}

impl<U: User> WorkerOf<U> {
    /// Handles the end of a handshake: checks the right to the datapath id, and claims it.
    pub(crate) fn identified<T: Transport>(
        &mut self,
        key: ConnectionKey,
        switch: SwitchDescription,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get(key) else { return };
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
        if self.check_identity(key, info.dpid, now, transport) {
            self.claim(key, Arc::new(info), now, transport);
        }
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
        let checked = self.shared.check_admission(dpid, identity.as_deref());
        checked.map_err(|error| self.refuse(key, dpid, error, now, transport)).is_ok()
    }

    fn refuse<T: Transport>(
        &mut self,
        key: ConnectionKey,
        dpid: Dpid,
        error: AdmissionError,
        now: Duration,
        transport: &mut T,
    ) {
        self.counters.identity_refusals.add(1);
        self.close(key, EndCause::Identity(dpid, error), now, transport);
    }

    /// Claims the datapath id. If that succeeds, the user begins with the switch.
    fn claim<T: Transport>(
        &mut self,
        key: ConnectionKey,
        info: Arc<SwitchInfo>,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(id) = self.id(key) else { return };
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.claim = None;
        let Err(old) = self.shared.claim(id, &info, &connection.counts) else {
            if let Err(error) = self.shared.admit(info.dpid, info.identity.as_deref()) {
                self.shared.release(id, info.dpid);
                return self.refuse(key, info.dpid, error, now, transport);
            }
            return U::begin(self, key, info, now, transport);
        };
        let dpid = info.dpid;
        if self.log.allows(now, &self.counters) {
            let peer = connection.peer;
            warn!(%dpid, %peer, "datapath id is connected already: asking the old connection");
        }
        connection.claim = Some(Box::new(Claim { info, deadline: now + DUPLICATE_WAIT }));
        self.connections.set_timer(key);
        if !self.shared.post(old.worker, Mail::AreYouAlive { id: old, claimant: id }) {
            self.refuse_duplicate(key, dpid, now, transport);
        }
    }

    /// Closes a connection whose datapath id another one keeps.
    pub(super) fn refuse_duplicate<T: Transport>(
        &mut self,
        key: ConnectionKey,
        dpid: Dpid,
        now: Duration,
        transport: &mut T,
    ) {
        self.counters.duplicates_refused.add(1);
        self.close(key, EndCause::Duplicate(dpid), now, transport);
    }

    /// Handles the claim of another connection to the datapath id of this one.
    pub(super) fn challenge<T: Transport>(
        &mut self,
        id: ConnectionId,
        claimant: ConnectionId,
        now: Duration,
        transport: &mut T,
    ) {
        // If it was handed over, the claimant asks again at its new worker.
        let Some(key) = self.connections.find(id) else {
            return self.send_challenge_answer(claimant, false);
        };
        let Some(connection) = self.connections.get_mut(key) else { return };
        match &mut connection.challenge {
            Some(challenge) if challenge.claimants.len() >= DUPLICATE_CLAIMANTS => {
                return self.send_challenge_answer(claimant, true);
            }
            Some(challenge) => challenge.claimants.push(claimant),
            // It is alive: its user is too slow to read it.
            None if connection.is_paused => return self.send_challenge_answer(claimant, true),
            None => {
                let deadline = now + DUPLICATE_ECHO;
                connection.challenge =
                    Some(Box::new(Challenge { claimants: vec![claimant], deadline }));
                // If the echo cannot be written, only silence counts.
                let _ = connection.session.probe(&mut self.out);
            }
        }
        self.flush(key, transport);
        self.connections.set_timer(key);
    }

    /// Answers the claimants: the old connection is alive.
    pub(crate) fn end_challenge(&mut self, key: ConnectionKey) {
        let challenge = self.connections.get_mut(key).and_then(|c| c.challenge.take());
        self.answer_challenge(challenge, true);
    }

    pub(super) fn answer_challenge(&self, challenge: Option<Box<Challenge>>, is_alive: bool) {
        for claimant in challenge.into_iter().flat_map(|challenge| challenge.claimants) {
            self.send_challenge_answer(claimant, is_alive);
        }
    }

    /// Handles the answer about the old connection.
    pub(super) fn handle_challenge_answer<T: Transport>(
        &mut self,
        claimant: ConnectionId,
        is_alive: bool,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(key) = self.connections.find(claimant) else { return };
        let Some(connection) = self.connections.get(key) else { return };
        let Some(claim) = &connection.claim else { return };
        let info = Arc::clone(&claim.info);
        match is_alive {
            true => self.refuse_duplicate(key, info.dpid, now, transport),
            false => self.claim(key, info, now, transport),
        }
        self.flush(key, transport);
    }

    fn send_challenge_answer(&self, claimant: ConnectionId, is_alive: bool) {
        // A full mailbox loses the answer. The claimant gives up after DUPLICATE_WAIT.
        let _ = self.shared.post(claimant.worker, Mail::OldConnection { claimant, is_alive });
    }
}
