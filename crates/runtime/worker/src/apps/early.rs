//! Packet-ins that come before the switch is up. They are kept, and the apps get them in order when
//! it is up. A switch that still has a table-miss entry sends them as soon as it connects, and the
//! first packets of hosts show where the hosts are.
//!
//! Changes of ports keep their places between the packets: an app that learns a host from a packet
//! forgets it when the port is deleted. Other early messages are about what apps do not know yet.
//!
//! Waiting packets shorten the wait for a switch's answers before it comes up: see
//! [`bellrock_session::PACKET_WAIT`].

use std::time::Duration;

use bellrock_api::Batch;
use bellrock_api::openflow::{PortStatus, frame};
use bellrock_api::runtime::BatchControl;
use bellrock_session::{FirstRole, PACKET_WAIT};

use crate::apps::stage::{CleaningSwitch, ConnectionStage, FlowsRequest};
use crate::apps::{Apps, Worker};
use crate::connection::Connection;
use crate::settings::{EARLY_PACKET_BYTES, EARLY_PACKET_BYTES_OF_ALL, EARLY_PORT_STATUSES};
use crate::transport::{ConnectionKey, Transport};

/// The packet-ins of a switch that is not up.
#[derive(Default)]
pub(crate) struct EarlyPackets {
    /// The messages, concatenated.
    messages: Vec<u8>,
    /// Changes of ports, each with the number of bytes of messages before it. None before the first
    /// message.
    statuses: Vec<(usize, PortStatus)>,
    /// Arrival time of the first message.
    since: Duration,
}

impl EarlyPackets {
    /// Number of bytes that it holds.
    fn bytes(&self) -> usize {
        self.messages.len() + self.statuses.len() * STATUS_BYTES
    }
}

/// Memory for a change of a port.
const STATUS_BYTES: usize = size_of::<(usize, PortStatus)>();

impl Connection<Apps> {
    /// Time when the switch comes up without an answer to this request. `true`: the wait is over
    /// for good; `false`: the answer may still come.
    fn cleaning_deadline(&self, request: &FlowsRequest) -> (Duration, bool) {
        let early = self.own.early_packets.as_ref();
        let since = early.map(|early| early.since.max(request.packets_since));
        match since.map(|since| since + PACKET_WAIT) {
            Some(deadline) if deadline < request.deadline => (deadline, false),
            _ => (request.deadline, true),
        }
    }

    /// The same for a switch whose flows are being requested.
    pub(super) fn cleaning_until(&self) -> Option<(Duration, bool)> {
        match &self.stage {
            ConnectionStage::Cleaning(CleaningSwitch { request: Some(request), .. }) => {
                Some(self.cleaning_deadline(request))
            }
            _ => None,
        }
    }
}

impl Worker {
    /// Keeps a packet-in that came before the switch was up, within the limits of rate and memory.
    /// Drops those that a standby gets.
    #[cold]
    #[inline(never)]
    pub(crate) fn early_packet(&mut self, key: ConnectionKey, message: &[u8], now: Duration) {
        let is_standby_first = self.settings.session.first_role == FirstRole::Standby;
        let Some(connection) = self.connections.get_mut(key) else { return };
        let is_standby = match connection.stage {
            ConnectionStage::Standby(_) => true,
            ConnectionStage::Handshake => is_standby_first,
            ConnectionStage::Cleaning(_) | ConnectionStage::Up(_) => false,
        };
        if is_standby {
            // They are for the master.
            connection.counts.packet_ins_ignored.add(1);
            return self.counters.packet_ins_standby.add(1);
        }
        let is_first = connection.own.early_packets.is_none();
        let early = connection.own.early_packets.get_or_insert_with(|| {
            Box::new(EarlyPackets { since: now, ..EarlyPackets::default() })
        });
        if early.messages.len() + message.len() <= EARLY_PACKET_BYTES
            && self.user.early_bytes + message.len() <= EARLY_PACKET_BYTES_OF_ALL
            && (connection.own.budget.as_mut())
                .is_none_or(|budget| budget.pass(connection.session.version(), message, now))
        {
            early.messages.extend_from_slice(message);
            self.user.early_bytes += message.len();
        } else {
            self.counters.packet_ins_early.add(1);
            connection.counts.packet_ins_ignored.add(1);
        }
        if is_first {
            self.connections.set_timer(key);
        }
    }

    /// Keeps a change of a port behind the packets that wait. If it cannot be kept, the packets are
    /// dropped: without it, apps would learn from them what is not true any more.
    pub(crate) fn early_port_status(&mut self, key: ConnectionKey, status: &PortStatus) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let counts = &connection.counts;
        let Some(early) = connection.own.early_packets.as_mut() else { return };
        if early.messages.is_empty() {
            return;
        }
        if early.statuses.len() < EARLY_PORT_STATUSES
            && self.user.early_bytes + STATUS_BYTES <= EARLY_PACKET_BYTES_OF_ALL
        {
            early.statuses.push((early.messages.len(), *status));
            self.user.early_bytes += STATUS_BYTES;
            return;
        }
        self.user.early_bytes -= early.bytes();
        early.statuses.clear();
        let messages = std::mem::take(&mut early.messages);
        let mut rest = messages.as_slice();
        while let Ok(Some(message)) = frame(rest) {
            self.counters.packet_ins_early.add(1);
            counts.packet_ins_ignored.add(1);
            rest = rest.get(message.bytes.len()..).unwrap_or(&[]);
        }
    }

    /// Takes the packets and changes of ports that a switch sent before it was up.
    fn take_early_packets(&mut self, key: ConnectionKey) -> EarlyPackets {
        let Some(connection) = self.connections.get_mut(key) else {
            return EarlyPackets::default();
        };
        let early = connection.own.early_packets.take().map(|early| *early).unwrap_or_default();
        self.user.early_bytes -= early.bytes();
        early
    }

    /// Drops what the switch of a closed connection sent before it was up.
    pub(super) fn release_early_packets(&mut self, connection: &mut Connection<Apps>) {
        let early = connection.own.early_packets.take();
        self.user.early_bytes -= early.map_or(0, |early| early.bytes());
    }

    /// Drops what a switch sent before it was up.
    pub(crate) fn drop_early_packets(&mut self, key: ConnectionKey) {
        let early = self.take_early_packets(key);
        let mut rest = early.messages.as_slice();
        while let Ok(Some(message)) = frame(rest) {
            self.counters.packet_ins_standby.add(1);
            if let Some(connection) = self.connections.get(key) {
                connection.counts.packet_ins_ignored.add(1);
            }
            rest = rest.get(message.bytes.len()..).unwrap_or(&[]);
        }
    }

    /// Passes the packets that a switch sent before it was up to the apps, and the changes of ports
    /// between them.
    pub(crate) fn early_packets<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        let early = self.take_early_packets(key);
        let (mut passed, mut statuses) = (0, early.statuses.iter().peekable());
        while let Some(connection) = self.connections.get(key) {
            let end = statuses.peek().map_or(early.messages.len(), |(before, _)| *before);
            let mut rest = early.messages.get(passed..end).unwrap_or(&[]);
            let mut batch = Batch::new(&early.messages);
            batch.begin(connection.session.version());
            while let Ok(Some(message)) = frame(rest)
                && !batch.is_full()
            {
                batch.push(message.bytes);
                rest = rest.get(message.bytes.len()..).unwrap_or(&[]);
            }
            passed = end - rest.len();
            if !batch.is_empty() {
                self.packets(key, &mut batch, now);
            } else if let Some((_, status)) = statuses.next() {
                self.port_changed(key, status, now);
            } else {
                return;
            }
            self.flush(key, transport);
        }
    }
}
