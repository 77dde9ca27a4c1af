//! The end of raw connections.

use std::time::Duration;

use bellrock_api::{ConnectionEnd, Event as Happening};
use tracing::{info, warn};

use super::{RawStage, RawWorker};
use crate::closing::count_end;
use crate::connection::EndCause;
use crate::drive::Drive;
use crate::settings::{MAIL_PER_TURN, MAILBOX_MESSAGES};
use crate::transport::{ConnectionKey, Transport};

impl RawWorker {
    /// Closes a connection: sends what is written, reports the end to the owner, and releases the
    /// datapath id.
    pub(super) fn close<T: Transport>(
        &mut self,
        key: ConnectionKey,
        end: EndCause,
        now: Duration,
        transport: &mut T,
    ) {
        self.flush(key, transport);
        let Some(id) = self.id(key) else { return };
        let Some(peer) = self.connections.try_remove(key) else { return };
        transport.close(key);
        count_end(&self.counters, &end);
        let why = ConnectionEnd::from(&end);
        let dpid = match &peer.stage {
            RawStage::Open { info, .. } => Some(info.dpid),
            RawStage::Early(_) => None,
        };
        if self.log.allows(now, &self.counters) {
            let name = dpid.map_or_else(|| "unknown".to_owned(), |dpid| dpid.to_string());
            match end {
                EndCause::Peer | EndCause::Stop => {
                    info!(dpid = %name, peer = %peer.peer, reason = %end, "connection closed");
                }
                _ => warn!(dpid = %name, peer = %peer.peer, reason = %end, "connection closed"),
            }
        }
        match peer.stage {
            RawStage::Open { connection, info, .. } => {
                self.shared.hide(id, info.dpid);
                self.counters.switches_down.add(1);
                if self.connection_events.allows(now) {
                    let (dpid, name, peer) = (info.dpid, Box::default(), peer.peer);
                    let why = why.clone();
                    self.shared.publish(now, Happening::SwitchDown { dpid, name, peer, why });
                } else {
                    self.counters.events_left_out.add(1);
                }
                // Before the id is free: the next connection with this id comes up after the end of
                // this one.
                self.owner.down(&connection, why);
                self.shared.release(id, info.dpid);
            }
            RawStage::Early(_) if end == EndCause::Stop => {}
            RawStage::Early(_) => {
                if let Some(event) = self.connection_events.record_end(peer.peer.ip(), why, now) {
                    self.shared.publish(now, event);
                }
            }
        }
        for claimant in peer.challenge.into_iter().flat_map(|challenge| challenge.claimants) {
            self.send_challenge_answer(claimant, false);
        }
    }

    /// Closes all connections, after the mail that was accepted for them.
    pub(super) fn end_all<T: Transport>(&mut self, now: Duration, transport: &mut T) {
        self.shared.lock().mark_stopped(self.index);
        self.process_mailbox(now, transport);
        let keys: Vec<ConnectionKey> = self.connections.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.close(key, EndCause::Stop, now, transport);
        }
        self.process_mailbox(now, transport);
    }

    /// Processes as much mail as a mailbox holds, but not mail that keeps coming.
    fn process_mailbox<T: Transport>(&mut self, now: Duration, transport: &mut T) {
        for _ in 0..MAILBOX_MESSAGES.div_ceil(MAIL_PER_TURN) {
            if !self.mail(now, transport) {
                return;
            }
        }
    }
}
