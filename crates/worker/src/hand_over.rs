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

use tracing::info;

use crate::balance::{SwitchLoad, WorkerLoad, permille, pick};
use crate::connection::{Connection, ConnectionStage};
use crate::mailbox::{ConnectionId, Mail};
use crate::settings::{HAND_OVER_REST, HAND_OVER_SWITCHES, MAILBOX_MESSAGES};
use crate::transport::{ConnectionKey, Transport};
use crate::worker::Worker;

/// A switch on its way to another worker.
pub(crate) struct Moving {
    connection: Connection,
    channel: Box<dyn Any + Send>,
    /// Whether the new worker must keep it for a while. False after an explicit request, which may
    /// be wrong about the load.
    stays: bool,
}

/// The outcome of a hand-over.
enum HandOverOutcome {
    /// This number of switches went.
    Done(usize),
    /// Other mail must be processed first.
    Later,
}

impl Worker {
    /// Ends a window of time ([`crate::LOAD_WINDOW`]) in which the worker was busy for `busy`.
    /// Publishes the load, and hands switches over to an idle worker after some windows of
    /// overload.
    pub fn window<T: Transport>(
        &mut self,
        busy: Duration,
        window: Duration,
        now: Duration,
        transport: &mut T,
    ) {
        let busy = permille(busy, window);
        let load = WorkerLoad { busy, connections: self.connections.len() };
        self.shared.loads().publish(self.index, load);
        if self.strain.window(busy) && self.settings.hand_over {
            self.relieve(load, now, transport);
        }
    }

    fn relieve<T: Transport>(&mut self, mine: WorkerLoad, now: Duration, transport: &mut T) {
        let most = self.settings.limits.switches_per_worker;
        let shared = Arc::clone(&self.shared);
        let Some((to, theirs)) = shared.loads().idlest(self.index, most) else { return };
        let (mut movable, mut total) = (Vec::new(), 0);
        for (key, connection) in &self.connections {
            let bytes = connection.burden.bytes(&self.strain);
            total += bytes;
            if connection.is_movable() && !connection.burden.rests(now) {
                movable.push((bytes, key));
            }
        }
        let room = most.saturating_sub(theirs.connections);
        let (keys, moved) = pick(movable, total, mine.busy, theirs.busy, room);
        let expected =
            WorkerLoad { busy: theirs.busy + moved, connections: theirs.connections + keys.len() };
        if keys.is_empty() || !shared.loads().reserve(to, theirs, expected) {
            return;
        }
        if let HandOverOutcome::Done(switches @ 1..) =
            self.hand_over(&keys, to, true, now, transport)
        {
            self.strain.relieved();
            if self.log.allows(now, &self.counters) {
                let from = self.index;
                info!(switches, from, to, "this worker is overloaded: switches handed over");
            }
        }
    }

    /// Hands one switch over on request.
    pub(crate) fn hand_over_one<T: Transport>(
        &mut self,
        who: ConnectionId,
        to: usize,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(key) = self.here(who).filter(|_| to != self.index) else { return };
        if let HandOverOutcome::Later = self.hand_over(&[key], to, false, now, transport) {
            self.postponed.push_back(Mail::HandOver { who, to });
        }
    }

    fn hand_over<T: Transport>(
        &mut self,
        keys: &[ConnectionKey],
        to: usize,
        stays: bool,
        now: Duration,
        transport: &mut T,
    ) -> HandOverOutcome {
        let shared = Arc::clone(&self.shared);
        let mut directory = shared.hold();
        if !directory.takes_switches(to) {
            return HandOverOutcome::Done(0);
        }
        if !self.deliver_all(now, transport) {
            return HandOverOutcome::Later;
        }
        let mut gone = 0;
        for key in keys.iter().copied().take(HAND_OVER_SWITCHES) {
            if !self.connections.get(key).is_some_and(Connection::is_movable) {
                continue;
            }
            let Some(channel) = transport.detach(key) else { continue };
            let connection = self.connections.remove(key);
            self.arrived.remove(&connection.serial);
            self.unfinished -= connection.unfinished;
            let (serial, dpid) = (connection.serial, connection.dpid());
            let moving = Box::new(Moving { connection, channel, stays });
            match shared.give(to, Mail::Take(moving)) {
                Ok(()) => {
                    if let Some(dpid) = dpid {
                        directory.moved(dpid, serial, to);
                    }
                    gone += 1;
                }
                // The mailbox is full: the switch stays.
                Err(Mail::Take(moving)) => self.settle_in(*moving, transport),
                Err(_) => {}
            }
        }
        self.counters.switches_handed_over.add(gone as u64);
        HandOverOutcome::Done(gone)
    }

    /// Writes the mail for switches that are here, and postpones the rest. `false`: the mail has
    /// questions about all switches. They must be answered before a switch leaves, or it could
    /// appear twice or not at all.
    fn deliver_all<T: Transport>(&mut self, now: Duration, transport: &mut T) -> bool {
        if self.postponed.len() > MAILBOX_MESSAGES {
            return false;
        }
        let mut questions = false;
        let before = std::mem::take(&mut self.postponed);
        let shared = Arc::clone(&self.shared);
        let popped = (0..MAILBOX_MESSAGES).map_while(|_| shared.mailbox(self.index)?.pop());
        let mail: Vec<Mail> = before.into_iter().chain(popped).collect();
        for mail in mail {
            match mail {
                // A switch that is not here may still come, by earlier mail.
                Mail::Send { to, bytes } if self.here(to).is_some() => {
                    self.post(to, &bytes, transport);
                }
                Mail::Program { to, posted } if self.here(to).is_some() => {
                    self.program(to, posted, now, transport);
                }
                Mail::Question { to, question } if self.here(to).is_some() => {
                    self.question(to, question, now, transport);
                }
                Mail::Role { to, order } if self.here(to).is_some() => {
                    self.role_order(to, order, now, transport);
                }
                mail => {
                    questions |= matches!(mail, Mail::Query(_));
                    self.postponed.push_back(mail);
                }
            }
        }
        !questions
    }

    /// Takes over a switch from another worker.
    pub(crate) fn take<T: Transport>(
        &mut self,
        mut moving: Moving,
        now: Duration,
        transport: &mut T,
    ) {
        let rest_until = if moving.stays { now + HAND_OVER_REST } else { now };
        moving.connection.burden = SwitchLoad::resting(rest_until);
        self.counters.switches_taken_over.add(1);
        self.settle_in(moving, transport);
    }

    /// Adds a detached switch to this worker.
    fn settle_in<T: Transport>(&mut self, moving: Moving, transport: &mut T) {
        let Moving { mut connection, channel, .. } = moving;
        connection.timer = None;
        self.unfinished += connection.unfinished;
        let serial = connection.serial;
        let key = self.connections.insert(connection);
        self.arrived.insert(serial, key);
        transport.attach(key, channel);
        self.set_timer(key);
    }

    /// Finds the key of a connection, if it is here. A connection that was handed over has another
    /// key than its id says.
    pub(crate) fn here(&self, id: ConnectionId) -> Option<ConnectionKey> {
        let at_home = self.connections.get(id.key).is_some_and(|its| its.serial == id.serial);
        if at_home { Some(id.key) } else { self.arrived.get(&id.serial).copied() }
    }
}

impl Worker {
    /// Finds the key of a connection whose switch is up here. Mail that was posted while it was up
    /// may come when it stands by, or is up again: then it is not for this term.
    pub(crate) fn up_here(&self, id: ConnectionId) -> Option<ConnectionKey> {
        let key = self.here(id)?;
        let connection = self.connections.get(key)?;
        let is_up = matches!(connection.stage, ConnectionStage::Up(_));
        (is_up && connection.term == id.term).then_some(key)
    }
}

impl Connection {
    fn is_movable(&self) -> bool {
        matches!(self.stage, ConnectionStage::Up(_)) && self.challenge.is_none()
    }
}
