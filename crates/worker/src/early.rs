//! Packet-ins that come before the switch is up. They are kept, and the apps get them in order when
//! it is up. A switch that still has a table-miss entry sends them as soon as it connects, and the
//! first packets of hosts show where the hosts are.
//!
//! Waiting packets shorten the wait for a switch's answers before it comes up: see
//! [`bellrock_session::PACKET_WAIT`].

use std::time::Duration;

use bellrock_api::Batch;
use bellrock_api::openflow::frame;
use bellrock_session::PACKET_WAIT;

use crate::connection::{Cleaning, Connection, FlowsAsked, Stage};
use crate::settings::{EARLY_PACKET_BYTES, EARLY_PACKET_BYTES_OF_ALL};
use crate::transport::{Key, Transport};
use crate::worker::Worker;

/// The packet-ins of a switch that is not up.
pub(crate) struct EarlyPackets {
    /// The messages, concatenated.
    messages: Vec<u8>,
    /// Arrival time of the first one.
    since: Duration,
}

impl EarlyPackets {
    /// Number of bytes that it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.messages.len()
    }
}

impl Connection {
    /// Time when the switch comes up without an answer to this request. `true`: the wait is over
    /// for good; `false`: the answer may still come.
    pub(crate) fn waits_until(&self, asked: &FlowsAsked) -> (Duration, bool) {
        let since = self.early.as_ref().map(|early| early.since.max(asked.packets_since));
        match since.map(|since| since + PACKET_WAIT) {
            Some(until) if until < asked.until => (until, false),
            _ => (asked.until, true),
        }
    }
}

impl Worker {
    /// Keeps a packet-in that came before the switch was up, within the limits of rate and memory.
    #[cold]
    #[inline(never)]
    pub(crate) fn early_packet(&mut self, key: Key, message: &[u8], now: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let is_first = connection.early.is_none();
        let early = connection
            .early
            .get_or_insert_with(|| Box::new(EarlyPackets { messages: Vec::new(), since: now }));
        if early.bytes() + message.len() <= EARLY_PACKET_BYTES
            && self.early_bytes + message.len() <= EARLY_PACKET_BYTES_OF_ALL
            && connection.limit.as_mut().is_none_or(|limit| limit.pass(now))
        {
            early.messages.extend_from_slice(message);
            self.early_bytes += message.len();
        } else {
            self.counters.packet_ins_early.add(1);
        }
        if is_first {
            self.set_timer(key);
        }
    }

    /// Takes the packets that a switch sent before it was up.
    pub(crate) fn take_early_packets(&mut self, key: Key) -> Vec<u8> {
        let connection = self.connections.get_mut(key);
        let early = connection.and_then(|connection| connection.early.take());
        let messages = early.map(|early| early.messages).unwrap_or_default();
        self.early_bytes -= messages.len();
        messages
    }

    /// Passes the packets that a switch sent before it was up to the apps.
    pub(crate) fn early_packets<T: Transport>(
        &mut self,
        key: Key,
        now: Duration,
        transport: &mut T,
    ) {
        let early = self.take_early_packets(key);
        let mut rest = early.as_slice();
        while let Some(connection) = self.connections.get(key) {
            let mut batch = Batch::new(&early);
            batch.begin(connection.session.version());
            while let Ok(Some(message)) = frame(rest)
                && !batch.is_full()
            {
                batch.push(message.bytes);
                rest = rest.get(message.bytes.len()..).unwrap_or(&[]);
            }
            if batch.is_empty() {
                return;
            }
            self.packets(key, &mut batch, now);
            self.flush(key, transport);
        }
    }

    /// Time of the next timer of a switch whose flows are being requested.
    pub(crate) fn cleaning_until(&self, key: Key) -> Option<(Duration, bool)> {
        let connection = self.connections.get(key)?;
        let Stage::Cleaning(Cleaning { asked: Some(asked), .. }) = &connection.stage else {
            return None;
        };
        Some(connection.waits_until(asked))
    }
}
