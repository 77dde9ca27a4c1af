//! Hand-over of switches between workers: between two turns, in order, without loss.
//!
//! The whole connection moves: the session, the handlers, the incomplete message, and the
//! transport's part with all bytes that wait in it. Only a switch that is up can move, and not
//! while an echo checks whether it is alive.
//!
//! **Mail.** Senders post under a shared lock of the directory; a hand-over locks it exclusively.
//! So everything posted before is in the old worker's mailbox, and is written to the switch before
//! it leaves. Everything posted later goes to the new worker's mailbox, behind the switch itself.
//! Questions that are posted without the lock may reach the old worker too late: it answers "not
//! here", and the asker looks the switch up again.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{Dpid, Error};
use tracing::info;

use crate::apps::budget::PacketBudget;
use crate::apps::stage::ConnectionStage;
use crate::apps::{Apps, Worker};
use crate::balance::{SwitchLoad, WorkerLoad, pick};
use crate::connection::Connection;
use crate::mailbox::{ConnectionId, Mail};
use crate::settings::{HAND_OVER_REST, HAND_OVER_SWITCHES, MAILBOX_MESSAGES};
use crate::transport::{ConnectionKey, Transport};

/// A switch on its way to another worker.
pub(crate) struct Moving {
    connection: Connection<Apps>,
    channel: Box<dyn Any + Send>,
    /// Whether the new worker must keep it for a while. False after an explicit request, which may
    /// be wrong about the load.
    is_pinned: bool,
}

/// The outcome of a hand-over.
enum HandOverOutcome {
    /// This number of switches went.
    Done(usize),
    /// Other mail must be processed first.
    Later,
}

impl Worker {
    /// Hands switches over to an idle worker, because this one is overloaded.
    pub(super) fn reduce_load<T: Transport>(
        &mut self,
        own_load: WorkerLoad,
        now: Duration,
        transport: &mut T,
    ) {
        let max_switches = self.settings.limits.switches_per_worker;
        let shared = Arc::clone(&self.shared);
        let Some((to, other_load)) = shared.loads().idlest(self.index, max_switches) else {
            return;
        };
        let (mut movable, mut total) = (Vec::new(), 0);
        for (key, connection) in self.connections.iter() {
            let bytes = connection.own.load.bytes(&self.user.overload);
            total += bytes;
            if connection.is_movable() && !connection.own.load.is_pinned(now) {
                movable.push((bytes, key));
            }
        }
        let room = max_switches.saturating_sub(other_load.connections);
        let (keys, moved) = pick(movable, total, own_load.busy, other_load.busy, room);
        let expected = WorkerLoad {
            busy: other_load.busy + moved,
            connections: other_load.connections + keys.len(),
        };
        if keys.is_empty() || !shared.loads().reserve(to, other_load, expected) {
            return;
        }
        if let HandOverOutcome::Done(switches @ 1..) =
            self.hand_over(&keys, to, true, now, transport)
        {
            self.user.overload.restart();
            if self.log.allows(now, &self.counters) {
                let from = self.index;
                info!(switches, from, to, "this worker is overloaded: switches handed over");
            }
        }
    }

    /// Hands one switch over on request.
    pub(crate) fn hand_over_one<T: Transport>(
        &mut self,
        id: ConnectionId,
        to: usize,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(key) = self.connections.find(id).filter(|_| to != self.index) else { return };
        if let HandOverOutcome::Later = self.hand_over(&[key], to, false, now, transport) {
            self.postponed.push_back(Mail::HandOver { id, to });
        }
    }

    fn hand_over<T: Transport>(
        &mut self,
        keys: &[ConnectionKey],
        to: usize,
        is_pinned: bool,
        now: Duration,
        transport: &mut T,
    ) -> HandOverOutcome {
        let shared = Arc::clone(&self.shared);
        let mut directory = shared.lock();
        if !directory.accepts_switches(to) {
            return HandOverOutcome::Done(0);
        }
        if !self.deliver_all(now, transport) {
            return HandOverOutcome::Later;
        }
        let mut moved = 0;
        for key in keys.iter().copied().take(HAND_OVER_SWITCHES) {
            if !self.connections.get(key).is_some_and(Connection::is_movable) {
                continue;
            }
            let Some(channel) = transport.detach(key) else { continue };
            let Some(connection) = self.connections.remove(key) else { continue };
            self.user.unfinished -= connection.own.unfinished;
            let (serial, dpid) = (connection.serial, connection.dpid());
            let moving = Box::new(Moving { connection, channel, is_pinned });
            match shared.try_post(to, Mail::Take(moving)) {
                Ok(()) => {
                    if let Some(dpid) = dpid {
                        directory.set_worker(dpid, serial, to);
                    }
                    moved += 1;
                }
                // The mailbox is full: the switch stays.
                Err(Mail::Take(moving)) => self.insert_moved(*moving, transport),
                Err(_) => {}
            }
        }
        self.counters.switches_handed_over.add(moved as u64);
        HandOverOutcome::Done(moved)
    }

    /// Writes the mail for switches that are here, and postpones the rest. `false`: the mail has
    /// questions about all switches. They must be answered before a switch leaves, or it could
    /// appear twice or not at all.
    fn deliver_all<T: Transport>(&mut self, now: Duration, transport: &mut T) -> bool {
        if self.postponed.len() > MAILBOX_MESSAGES {
            return false;
        }
        let mut has_queries = false;
        let before = std::mem::take(&mut self.postponed);
        let shared = Arc::clone(&self.shared);
        let new_mail = (0..MAILBOX_MESSAGES).map_while(|_| shared.mailbox(self.index)?.pop());
        let mail: Vec<Mail> = before.into_iter().chain(new_mail).collect();
        for mail in mail {
            match mail {
                // A switch that is not here may still come, by earlier mail.
                Mail::Send { to, bytes } if self.connections.find(to).is_some() => {
                    self.post(to, &bytes, transport);
                }
                Mail::Resume { at, place } if self.connections.find(at).is_some() => {
                    self.resume(at, place, now, transport);
                }
                Mail::Program { to, posted } if self.connections.find(to).is_some() => {
                    self.program(to, posted, now, transport);
                }
                Mail::Question { to, request } if self.connections.find(to).is_some() => {
                    self.task_request(to, request, now, transport);
                }
                Mail::Role { to, order } if self.connections.find(to).is_some() => {
                    self.role_order(to, order, now, transport);
                }
                mail => {
                    has_queries |= matches!(mail, Mail::Query(_));
                    self.postponed.push_back(mail);
                }
            }
        }
        !has_queries
    }

    /// Takes over a switch from another worker.
    pub(crate) fn accept<T: Transport>(
        &mut self,
        mut moving: Moving,
        now: Duration,
        transport: &mut T,
    ) {
        let rest_until = if moving.is_pinned { now + HAND_OVER_REST } else { now };
        moving.connection.own.load = SwitchLoad::pinned(rest_until);
        self.counters.switches_taken_over.add(1);
        self.insert_moved(moving, transport);
    }

    /// Adds a detached switch to this worker.
    fn insert_moved<T: Transport>(&mut self, moving: Moving, transport: &mut T) {
        let Moving { mut connection, channel, .. } = moving;
        // The limit may have changed on the way.
        let limit = self.settings.limits.packet_ins_per_second;
        connection.own.budget = PacketBudget::of_limit(limit);
        self.user.unfinished += connection.own.unfinished;
        let key = self.connections.add_moved(connection);
        transport.attach(key, channel);
        self.connections.set_timer(key);
    }

    /// Finds the key of a connection whose switch is up here. Mail that was posted while it was up
    /// may come when it stands by, or is up again: then it is not for this term.
    pub(crate) fn local_up_key(&self, id: ConnectionId) -> Option<ConnectionKey> {
        let key = self.connections.find(id)?;
        let connection = self.connections.get(key)?;
        let is_up = matches!(connection.stage, ConnectionStage::Up(_));
        (is_up && connection.term == id.term).then_some(key)
    }

    /// Why mail does not reach a switch: this controller stands by there, or its connection has
    /// ended.
    pub(crate) fn not_up(&self, id: ConnectionId, dpid: Dpid) -> Error {
        match self.connections.find(id) {
            Some(_) => Error::NoMaster(dpid),
            None => Error::UnknownSwitch(dpid),
        }
    }
}

impl Connection<Apps> {
    fn is_movable(&self) -> bool {
        matches!(self.stage, ConnectionStage::Up(_)) && !self.is_challenged()
    }
}
