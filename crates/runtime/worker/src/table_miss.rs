//! The table-miss entry (1.3): the controller's own flow, which sends it the packets that match no
//! other flow.

use std::time::Duration;

use bellrock_api::openflow::{ErrorMessage, FlowCommand, FlowMod, Group, RequestKind, frame};
use bellrock_api::{Cookie, FlowRemoved, FlowRemovedReason, Port, ToSwitch};
use bellrock_session::xid;
use tracing::warn;

use crate::connection::ConnectionStage;
use crate::sight::SIGHT;
use crate::transport::{ConnectionKey, Transport};
use crate::worker::Worker;

/// Table of the entry.
const TABLE: u8 = 0;

/// Time after which a switch whose flows were removed is not just going away.
const GOING_AWAY: Duration = Duration::from_secs(2);

/// When another program removed flows of the controller, until that is logged.
#[derive(Clone, Copy, Default)]
pub(crate) struct RemovedOutside {
    /// The table-miss entry.
    table_miss: Option<Duration>,
    /// A flow of what an app sees.
    pub(crate) sight: Option<Duration>,
}

impl RemovedOutside {
    /// Takes the names of the flows that were removed so long ago that the switch has stayed.
    fn take_due(&mut self, now: Duration) -> impl Iterator<Item = &'static str> {
        let is_due = |at: &mut Duration| now >= *at + GOING_AWAY;
        let table_miss = self.table_miss.take_if(is_due).map(|_| TABLE_MISS);
        let sight = self.sight.take_if(is_due).map(|_| SIGHT);
        [table_miss, sight].into_iter().flatten()
    }
}

/// Name of the flow for operators.
pub(crate) const TABLE_MISS: &str = "table-miss entry";

/// Whether messages of an operator remove the entry's place: all flows of its table, or the flow
/// with its match and priority. An operator's own flow may have taken that place before, silently.
pub(crate) fn is_removed_by(messages: &[u8]) -> bool {
    let mut rest = messages;
    while let Ok(Some(message)) = frame(rest) {
        if let Ok(decoded) = ToSwitch::decode(message.bytes)
            && let ToSwitch::FlowMod(flow) = decoded.body
            && removes(&flow)
        {
            return true;
        }
        rest = rest.get(message.bytes.len()..).unwrap_or(&[]);
    }
    false
}

fn removes(flow: &FlowMod<'_>) -> bool {
    let is_selected = match flow.command {
        FlowCommand::Delete => true,
        FlowCommand::DeleteStrict => flow.priority == 0,
        _ => false,
    };
    let is_whole =
        flow.cookie_mask == 0 && flow.out_port == Port::ANY && flow.out_group == Group::ANY;
    is_selected
        && is_whole
        && matches!(flow.table, TABLE | FlowMod::ALL_TABLES)
        && flow.matching.to_match().is_any()
}

impl Worker {
    /// Restores the entry after another program has removed it: without it, no packet would come.
    pub(crate) fn restore_table_miss<T: Transport>(
        &mut self,
        key: ConnectionKey,
        removed: &FlowRemoved<'_>,
        now: Duration,
        transport: &mut T,
    ) {
        let was_deleted = removed.reason == FlowRemovedReason::Delete;
        let is_own = Cookie::CONTROLLER.owns(removed.cookie);
        if !was_deleted || !is_own || !self.wants_packet_ins() {
            return;
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Up(up) = &mut connection.stage else { return };
        up.removed_outside.table_miss.get_or_insert(now);
        self.flush(key, transport);
        self.send_table_miss(key, now);
    }

    /// Warns of flows that were removed from outside, if the switch stays: one that is going away
    /// removes all its flows first.
    pub(crate) fn warn_of_removed_flows(&mut self, key: ConnectionKey, now: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Up(up) = &mut connection.stage else { return };
        for flow in up.removed_outside.take_due(now) {
            if self.log.allows(now, &self.counters) {
                warn!(dpid = %up.info.dpid, "the {flow} was removed from outside; it is restored");
            }
        }
    }

    /// Sends the entry again after a refusal, when it is due.
    pub(crate) fn retry_table_miss<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Up(up) = &connection.stage else { return };
        if !up.table_miss.is_due(now) {
            return;
        }
        self.flush(key, transport);
        self.send_table_miss(key, now);
        // A barrier reply without an error before it means that the entry is installed.
        let Some(connection) = self.connections.get_mut(key) else { return };
        let barrier = connection.session.next_xid(xid::SESSION);
        let version = connection.session.version();
        if ToSwitch::BarrierRequest.encode(version, barrier, &mut self.out).is_ok()
            && connection.session.request(barrier, RequestKind::Barrier, now).is_ok()
            && let ConnectionStage::Up(up) = &mut connection.stage
        {
            up.table_miss.record_barrier(barrier);
        }
    }

    /// Handles an error about a message of the session, which may be one of the controller's own
    /// flows.
    pub(crate) fn own_flow_refused(
        &mut self,
        key: ConnectionKey,
        xid: u32,
        error: &ErrorMessage<'_>,
        now: Duration,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Up(up) = &mut connection.stage else { return };
        let switch = (&self.network, up.info.dpid);
        if up.table_miss.handle_error(switch, xid, error, now) {
            return self.counters.table_miss_refused.add(1);
        }
        for flow in up.own_flows() {
            flow.handle_error(switch, xid, error, now);
        }
    }

    /// Handles the reply to a barrier of the session: the flows before it are installed.
    pub(crate) fn own_flows_installed(&mut self, key: ConnectionKey, barrier: u32, now: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Up(up) = &mut connection.stage else { return };
        let switch = (&self.network, up.info.dpid);
        for flow in up.own_flows() {
            flow.handle_barrier_reply(switch, barrier, now);
        }
    }

    /// Writes the entry. The send buffer is almost empty here.
    pub(crate) fn send_table_miss(&mut self, key: ConnectionKey, now: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let sent = connection.session.table_miss(Cookie::CONTROLLER.with(0), &mut self.out);
        if let (Ok(Some(xid)), ConnectionStage::Up(up)) = (sent, &mut connection.stage) {
            up.table_miss.record_sent(xid, now);
        }
    }
}
