//! Turns in which switches report their flows. When a controller restarts, all switches connect at
//! once, and each reports its flows of the earlier run: together more than a worker has memory for.
//!
//! A worker asks [`FLOWS_ASKED_AT_A_TIME`] switches; the others wait, in order of arrival. A turn
//! lasts until the switch has reported, at most [`FLOWS_TURN`]. A silent or slow switch goes on
//! beside the next one, so it cannot keep others from coming up.

use std::collections::VecDeque;
use std::time::Duration;

use crate::apps::Worker;
use crate::apps::stage::{CleaningSwitch, ConnectionStage};
use crate::settings::{FLOWS_ASKED_AT_A_TIME, FLOWS_TURN};
use crate::transport::{ConnectionKey, Transport};

/// The turns of a worker's switches.
#[derive(Debug, Default)]
pub(crate) struct CleaningTurns {
    /// Number of switches that have their turn.
    pub(crate) taken: usize,
    /// Waiting connections, by keys and serials. Some may have ended meanwhile.
    queue: VecDeque<(ConnectionKey, u64)>,
}

/// The turn of a switch that reports its flows before it comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CleaningTurn {
    /// It is not asked yet.
    Waits,
    /// It is asked, and has its turn until this time.
    Has(Duration),
    /// It is asked, and its turn is over.
    Over,
}

impl ConnectionStage {
    /// Ends the turn of this connection. Returns the number of turns that this frees: 0 or 1.
    pub(crate) fn release_turn(&mut self) -> usize {
        match self {
            ConnectionStage::Cleaning(CleaningSwitch {
                turn: turn @ CleaningTurn::Has(_), ..
            }) => {
                *turn = CleaningTurn::Over;
                1
            }
            _ => 0,
        }
    }
}

impl Worker {
    /// Queues the switch of `key` to report its flows.
    pub(crate) fn wait_for_turn<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(id) = self.id(key) else { return };
        if self.user.turns.queue.len() > 2 * self.connections.len() {
            let connections = &self.connections;
            let is_same = |key, serial| {
                connections.get(key).is_some_and(|connection| connection.serial == serial)
            };
            self.user.turns.queue.retain(|(key, serial)| is_same(*key, *serial));
        }
        self.user.turns.queue.push_back((key, id.serial));
        self.next_turns(now, transport);
    }

    /// Asks the waiting switches whose turn it is. The send buffer must be empty: its content would
    /// go to another switch.
    pub(crate) fn next_turns<T: Transport>(&mut self, now: Duration, transport: &mut T) {
        while self.user.turns.taken < FLOWS_ASKED_AT_A_TIME
            && let Some((key, serial)) = self.user.turns.queue.pop_front()
        {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            if connection.serial != serial {
                continue;
            }
            let ConnectionStage::Cleaning(CleaningSwitch {
                turn: turn @ CleaningTurn::Waits, ..
            }) = &mut connection.stage
            else {
                continue;
            };
            *turn = CleaningTurn::Has(now + FLOWS_TURN);
            self.user.turns.taken += 1;
            self.request_flows(key, now);
            self.flush(key, transport);
            self.connections.set_timer(key);
        }
    }

    /// Gives up the turn of `key`'s switch, or its place among those that wait.
    pub(crate) fn leave_queue(&mut self, key: ConnectionKey) {
        let stage = self.connections.get(key).map(|connection| &connection.stage);
        if let Some(ConnectionStage::Cleaning(CleaningSwitch {
            turn: CleaningTurn::Waits, ..
        })) = stage
        {
            self.user.turns.queue.retain(|(waiting, _)| *waiting != key);
        }
        self.end_turn(key);
    }

    /// Ends the turn of `key`'s switch, if it has one: it takes too long, or there is nothing more
    /// to wait for. The caller starts the next turn ([`Worker::next_turns`]).
    pub(crate) fn end_turn(&mut self, key: ConnectionKey) {
        if let Some(connection) = self.connections.get_mut(key) {
            self.user.turns.taken -= connection.stage.release_turn();
        }
    }
}
