//! Whole switches, from one worker to another: between two turns, in order, with nothing lost.
//!
//! What goes is the connection as it stands: the session, the handlers, the unfinished message, and
//! what carries its bytes with all that waits in it. Only a switch that is up goes, and not while
//! it is asked for a sign of life.
//!
//! **Mail.** Senders post under the directory's lock, shared with one another; a hand-over holds
//! it alone. So whatever was posted to the old worker is in its mailbox then, and is written to the
//! switch before it leaves; whatever is posted later goes to the new worker's mailbox, behind the
//! switch itself. Questions about a switch that are posted without the lock may come to the old
//! worker too late: they are answered with "it is not here", and who asked looks it up again.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use tracing::info;

use crate::balance::{Burden, Load, permille, pick};
use crate::connection::{Connection, Stage};
use crate::mailbox::{ConnectionId, Mail};
use crate::settings::{HAND_OVER_REST, HAND_OVER_SWITCHES, MAILBOX_MESSAGES};
use crate::transport::{Key, Transport};
use crate::worker::Worker;

/// A switch on its way to another worker.
pub(crate) struct Moving {
    connection: Connection,
    channel: Box<dyn Any + Send>,
    /// The new worker keeps it for a while. Not where somebody asked for the hand-over, who may be
    /// wrong about the load.
    stays: bool,
}

/// What became of a hand-over.
enum Outcome {
    /// So many switches went.
    Done(usize),
    /// Other mail has to be dealt with first.
    Later,
}

impl Worker {
    /// A window of time is over ([`crate::LOAD_WINDOW`]), of which the worker was busy for so
    /// long. Tells the others, and hands switches over to an idle one after it has been overloaded
    /// for some windows.
    pub fn window<T: Transport>(
        &mut self,
        busy: Duration,
        window: Duration,
        now: Duration,
        transport: &mut T,
    ) {
        let busy = permille(busy, window);
        let load = Load { busy, connections: self.connections.len() };
        self.shared.loads().publish(self.index, load);
        if self.strain.window(busy) && self.settings.hand_over {
            self.relieve(load, now, transport);
        }
    }

    fn relieve<T: Transport>(&mut self, mine: Load, now: Duration, transport: &mut T) {
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
            Load { busy: theirs.busy + moved, connections: theirs.connections + keys.len() };
        if keys.is_empty() || !shared.loads().reserve(to, theirs, expected) {
            return;
        }
        if let Outcome::Done(switches @ 1..) = self.hand_over(&keys, to, true, now, transport) {
            self.strain.relieved();
            if self.log.allows(now, &self.counters) {
                let from = self.index;
                info!(switches, from, to, "this worker is overloaded: switches handed over");
            }
        }
    }

    /// Hands one switch over because somebody asks for it.
    pub(crate) fn hand_over_one<T: Transport>(
        &mut self,
        who: ConnectionId,
        to: usize,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(key) = self.here(who).filter(|_| to != self.index) else { return };
        if let Outcome::Later = self.hand_over(&[key], to, false, now, transport) {
            self.postponed.push_back(Mail::HandOver { who, to });
        }
    }

    fn hand_over<T: Transport>(
        &mut self,
        keys: &[Key],
        to: usize,
        stays: bool,
        now: Duration,
        transport: &mut T,
    ) -> Outcome {
        let shared = Arc::clone(&self.shared);
        let mut directory = shared.hold();
        if !directory.takes_switches(to) {
            return Outcome::Done(0);
        }
        if !self.deliver_all(now, transport) {
            return Outcome::Later;
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
                // Its mailbox is full of something else: the switch stays.
                Err(Mail::Take(moving)) => self.settle_in(*moving, transport),
                Err(_) => {}
            }
        }
        self.counters.switches_handed_over.add(gone as u64);
        Outcome::Done(gone)
    }

    /// Writes what is in the mailbox for switches that are here; the rest is postponed. `false`: there
    /// are questions about all switches, that have to be answered before one leaves, or else it
    /// might be told of twice or not at all.
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
                // One that is not here may be about to come, in mail that stands before.
                Mail::Send { to, bytes } if self.here(to).is_some() => {
                    self.post(to, &bytes, transport);
                }
                Mail::Program { to, posted } if self.here(to).is_some() => {
                    self.program(to, posted, now, transport);
                }
                Mail::Question { to, question } if self.here(to).is_some() => {
                    self.question(to, question, now, transport);
                }
                mail => {
                    questions |= matches!(mail, Mail::Query(_));
                    self.postponed.push_back(mail);
                }
            }
        }
        !questions
    }

    /// A switch that was handed over to this worker.
    pub(crate) fn take<T: Transport>(
        &mut self,
        mut moving: Moving,
        now: Duration,
        transport: &mut T,
    ) {
        let rest_until = if moving.stays { now + HAND_OVER_REST } else { now };
        moving.connection.burden = Burden::resting(rest_until);
        self.counters.switches_taken_over.add(1);
        self.settle_in(moving, transport);
    }

    /// Gives a switch that was detached a place here.
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

    /// Where a connection is among this worker's, if it is: those that were handed over to it have
    /// other places than those that wrote to them know.
    pub(crate) fn here(&self, id: ConnectionId) -> Option<Key> {
        let at_home = self.connections.get(id.key).is_some_and(|its| its.serial == id.serial);
        if at_home { Some(id.key) } else { self.arrived.get(&id.serial).copied() }
    }
}

impl Connection {
    fn is_movable(&self) -> bool {
        matches!(self.stage, Stage::Up(_)) && self.challenge.is_none()
    }
}
