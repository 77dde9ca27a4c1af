//! Whose turn it is to report its flows. When a controller comes back, all of its switches come at once, and each of them has
//! flows of the earlier run to report: together more than a worker has memory for.
//!
//! A worker asks [`FLOWS_ASKED_AT_A_TIME`] switches; the others wait, the first to come first. A switch has its turn until it has
//! reported, but at most [`FLOWS_TURN`]: one that is silent or slow goes on, and the next one has its turn beside it. So
//! switches that do not answer cannot keep others from coming up.

use std::collections::VecDeque;
use std::time::Duration;

use crate::connection::{Cleaning, Stage};
use crate::settings::{FLOWS_ASKED_AT_A_TIME, FLOWS_TURN};
use crate::transport::{Key, Transport};
use crate::worker::Worker;

/// The turns of a worker's switches.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Number of switches that have their turn.
    pub(crate) taken: usize,
    /// Connections that wait, by their keys and serials. Some may have ended meanwhile.
    waiting: VecDeque<(Key, u64)>,
}

/// How far a switch is that reports its flows before it comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is not asked yet.
    Waits,
    /// It is asked, until this time.
    Has(Duration),
    /// It is asked, and the next one has its turn by now.
    Over,
}

impl Stage {
    /// Gives back the turn that this connection has; how many those are.
    pub(crate) fn give_turn_back(&mut self) -> usize {
        match self {
            Stage::Cleaning(Cleaning { turn: turn @ Turn::Has(_), .. }) => {
                *turn = Turn::Over;
                1
            }
            _ => 0,
        }
    }
}

impl Worker {
    /// The switch of `key` is to report its flows, when it is its turn.
    pub(crate) fn wait_for_turn<T: Transport>(
        &mut self,
        key: Key,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(id) = self.id(key) else { return };
        if self.turns.waiting.len() > 2 * self.connections.len() {
            let connections = &self.connections;
            let lives = |key, serial| connections.get(key).is_some_and(|its| its.serial == serial);
            self.turns.waiting.retain(|(key, serial)| lives(*key, *serial));
        }
        self.turns.waiting.push_back((key, id.serial));
        self.next_turns(now, transport);
    }

    /// Asks those that wait, as many as have their turn now. The send buffer has to be empty: what is in it would go to
    /// another switch.
    pub(crate) fn next_turns<T: Transport>(&mut self, now: Duration, transport: &mut T) {
        while self.turns.taken < FLOWS_ASKED_AT_A_TIME
            && let Some((key, serial)) = self.turns.waiting.pop_front()
        {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            if connection.serial != serial {
                continue;
            }
            let Stage::Cleaning(Cleaning { turn, .. }) = &mut connection.stage else { continue };
            *turn = Turn::Has(now + FLOWS_TURN);
            self.turns.taken += 1;
            self.ask_for_flows(key, now);
            self.flush(key, transport);
            self.set_timer(key);
        }
    }

    /// Ends the turn of `key`'s switch, if it has it: it takes too long, or there is nothing to wait for any more. The caller
    /// gives the turn to the next one ([`Worker::next_turns`]).
    pub(crate) fn end_turn(&mut self, key: Key) {
        if let Some(connection) = self.connections.get_mut(key) {
            self.turns.taken -= connection.stage.give_turn_back();
        }
    }
}
