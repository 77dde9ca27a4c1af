//! Datapath ids of raw connections: who may speak for one, and which of two connections stays. See
//! `contend` for the rules.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::runtime::OWNER_GONE;
use bellrock_api::{Dpid, Event as Happening, SwitchInfo};
use bellrock_session::SwitchDescription;
use tracing::{info, warn};

use super::{MailLink, RawStage, RawWorker};
use crate::connection::{Challenge, EndCause, info_of};
use crate::mailbox::{ConnectionId, Mail};
use crate::settings::{DUPLICATE_CLAIMANTS, DUPLICATE_ECHO, DUPLICATE_WAIT, TICK};
use crate::transport::{ConnectionKey, Transport};

impl RawWorker {
    /// Handles the features of a switch: checks its right to the datapath id, and claims it.
    pub(super) fn identified<T: Transport>(
        &mut self,
        key: ConnectionKey,
        switch: SwitchDescription,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(peer) = self.connections.get(key) else { return };
        if switch.auxiliary_id != 0 {
            self.counters.auxiliary_refused.add(1);
            return self.close(key, EndCause::Auxiliary(switch.auxiliary_id), now, transport);
        }
        if !self.owner.has_owner() {
            return self.close(key, EndCause::Ordered(OWNER_GONE.into()), now, transport);
        }
        let mut info = info_of(switch, peer.peer, now);
        info.identity = transport.identity(key);
        // Before the claim: a stranger neither finds out whether the switch is connected, nor
        // disturbs it.
        if let Err(error) = self.shared.check_admission(info.dpid, info.identity.as_deref()) {
            self.counters.identity_refusals.add(1);
            return self.close(key, EndCause::Identity(info.dpid, error), now, transport);
        }
        self.claim(key, Arc::new(info), now, transport);
    }

    fn claim<T: Transport>(
        &mut self,
        key: ConnectionKey,
        info: Arc<SwitchInfo>,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(id) = self.id(key) else { return };
        let Some(peer) = self.connections.get_mut(key) else { return };
        let Err(old) = self.shared.claim(id, &info, &peer.counts) else {
            if let Err(error) = self.shared.admit(info.dpid, info.identity.as_deref()) {
                self.shared.release(id, info.dpid);
                self.counters.identity_refusals.add(1);
                return self.close(key, EndCause::Identity(info.dpid, error), now, transport);
            }
            return self.up(id, info, now);
        };
        let dpid = info.dpid;
        if self.log.allows(now, &self.counters) {
            let peer = peer.peer;
            warn!(%dpid, %peer, "datapath id is connected already: asking the old connection");
        }
        if let RawStage::Early(early) = &mut peer.stage {
            early.claim = Some((info, now + DUPLICATE_WAIT));
        }
        self.set_timer(key);
        if !self.shared.post(old.worker, Mail::AreYouAlive { id: old, claimant: id }) {
            self.counters.duplicates_refused.add(1);
            self.close(key, EndCause::Duplicate(dpid), now, transport);
        }
    }

    /// Gives a connection to the owner.
    fn up(&mut self, id: ConnectionId, info: Arc<SwitchInfo>, now: Duration) {
        self.shared.publish_raw(id, &info);
        let link = Box::new(MailLink { shared: Arc::clone(&self.shared), id });
        let connection = self.owner.connection(id.serial, &info, link);
        let Some(peer) = self.connections.get_mut(id.key) else { return };
        let open = RawStage::Open {
            connection: connection.clone(),
            info: Arc::clone(&info),
            next_tick: now + TICK,
        };
        let RawStage::Early(early) = std::mem::replace(&mut peer.stage, open) else { return };
        let (dpid, version, peer) = (info.dpid, info.version, info.peer);
        if self.log.allows(now, &self.counters) {
            info!(%dpid, %version, %peer, worker = self.index, "switch up, for its raw owner");
        }
        if self.connection_events.allows(now) {
            let name = Box::default();
            self.shared.publish(now, Happening::SwitchUp { dpid, name, peer, version });
        } else {
            self.counters.events_left_out.add(1);
        }
        self.counters.switches_up.add(1);
        self.owner.up(&connection, info, early.hello.into(), early.features.into());
        if !early.messages.is_empty() {
            self.owner.messages(&connection, early.messages.into());
        }
        self.set_timer(id.key);
    }

    /// Handles the claim of another connection to the datapath id of this one.
    pub(super) fn challenge<T: Transport>(
        &mut self,
        id: ConnectionId,
        claimant: ConnectionId,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(key) = self.local_key(id) else {
            return self.send_challenge_answer(claimant, false);
        };
        let Some(peer) = self.connections.get_mut(key) else { return };
        match &mut peer.challenge {
            Some(challenge) if challenge.claimants.len() >= DUPLICATE_CLAIMANTS => {
                return self.send_challenge_answer(claimant, true);
            }
            Some(challenge) => challenge.claimants.push(claimant),
            // It is alive: the owner is too slow to read it.
            None if peer.is_paused => return self.send_challenge_answer(claimant, true),
            None => {
                let deadline = now + DUPLICATE_ECHO;
                peer.challenge = Some(Challenge { claimants: vec![claimant], deadline });
                // If the echo cannot be written, only silence counts.
                let _ = peer.session.probe(&mut self.out);
            }
        }
        self.flush(key, transport);
        self.set_timer(key);
    }

    /// Answers the claimants: the old connection is alive.
    pub(super) fn end_challenge(&mut self, key: ConnectionKey) {
        let challenge = self.connections.get_mut(key).and_then(|peer| peer.challenge.take());
        for claimant in challenge.into_iter().flat_map(|challenge| challenge.claimants) {
            self.send_challenge_answer(claimant, true);
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
        let Some(key) = self.local_key(claimant) else { return };
        let Some(peer) = self.connections.get_mut(key) else { return };
        let RawStage::Early(early) = &mut peer.stage else { return };
        let Some((info, _)) = early.claim.take() else { return };
        if is_alive {
            let dpid: Dpid = info.dpid;
            self.counters.duplicates_refused.add(1);
            self.close(key, EndCause::Duplicate(dpid), now, transport);
        } else {
            self.claim(key, info, now, transport);
        }
    }

    pub(super) fn send_challenge_answer(&self, claimant: ConnectionId, is_alive: bool) {
        // A full mailbox loses the answer. The claimant gives up after DUPLICATE_WAIT.
        let _ = self.shared.post(claimant.worker, Mail::OldConnection { claimant, is_alive });
    }
}
