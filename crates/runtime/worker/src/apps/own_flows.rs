//! The controller's own flows at a switch that is up: the table-miss entry, the flows that bring
//! apps what they see, and the meter towards the controller. They are sent when the switch comes
//! up, again after a refusal, and again after somebody else has removed them.

use std::time::Duration;

use bellrock_api::openflow::{ErrorMessage, Out, RequestKind};
use bellrock_api::{Cookie, FlowRemoved, FlowRemovedReason, OwnFlow, ToSwitch};
use bellrock_session::xid;
use tracing::warn;

use crate::apps::meter::CONTROLLER_METER;
use crate::apps::sight::SIGHT;
use crate::apps::stage::ConnectionStage;
use crate::apps::table_miss::TABLE_MISS;
use crate::apps::{Apps, Worker};
use crate::connection::Connection;
use crate::transport::{ConnectionKey, Transport};

/// Time after which a switch whose flows were removed is not just going away.
const GOING_AWAY: Duration = Duration::from_secs(2);

/// When another program removed flows of the controller, until that is logged.
#[derive(Clone, Copy, Default)]
pub(crate) struct RemovedOutside {
    /// The table-miss entry.
    table_miss: Option<Duration>,
    /// A flow of what an app sees.
    sight: Option<Duration>,
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

impl Worker {
    /// Sends the flows to a switch that has just come up. The send buffer is almost empty here.
    pub(super) fn send_own_flows(&mut self, key: ConnectionKey, now: Duration) {
        let wants_packet_ins = self.wants_packet_ins();
        let meter_rate = self.settings.limits.controller_meter;
        let Some(connection) = self.connections.get_mut(key) else { return };
        let version = connection.session.version();
        let ConnectionStage::Up(up) = &mut connection.stage else { return };
        if meter_rate.is_some() && version.has_meters() {
            up.controller_meter = Some(Box::new(OwnFlow::new(CONTROLLER_METER)));
        } else if meter_rate.is_some() && self.log.allows(now, &self.counters) {
            warn!(
                dpid = %up.info.dpid, %version,
                "`controller_meter` has no effect at this switch: its version has no meters; \
                 `packet_ins_per_second` limits its packet-ins at the controller"
            );
        }
        if wants_packet_ins {
            connection.write_table_miss(&mut self.out, None, now);
        }
        connection.write_sight(&mut self.out, None, now);
        connection.write_meter(&mut self.out, meter_rate, None, now);
    }

    /// Sends flows again that were refused, when they are due.
    pub(super) fn retry_own_flows<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Up(up) = &mut connection.stage else { return };
        if !up.own_flows().any(|flow| flow.is_due(now)) {
            return;
        }
        let meter_rate = self.settings.limits.controller_meter;
        let Some((connection, out)) = self.flushed(key, transport) else { return };
        connection.write_due_flows(out, meter_rate, now);
    }

    /// Restores flows that another program has removed: without them, no packet would come.
    pub(super) fn restore_own_flows<T: Transport>(
        &mut self,
        key: ConnectionKey,
        removed: &FlowRemoved<'_>,
        now: Duration,
        transport: &mut T,
    ) {
        if removed.reason != FlowRemovedReason::Delete {
            return;
        }
        let is_miss = Cookie::CONTROLLER.owns(removed.cookie) && self.wants_packet_ins();
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Up(up) = &mut connection.stage else { return };
        let is_sight = up.sight.iter().any(|flows| flows.owns(removed.cookie));
        if is_miss {
            up.removed_outside.table_miss.get_or_insert(now);
        }
        if is_sight {
            up.removed_outside.sight.get_or_insert(now);
        }
        if !is_miss && !is_sight {
            return;
        }
        let Some((connection, out)) = self.flushed(key, transport) else { return };
        match is_miss {
            true => connection.write_table_miss(out, None, now),
            false => connection.write_sight(out, None, now),
        }
    }

    /// Warns of flows that were removed from outside, if the switch stays: one that is going away
    /// removes all its flows first.
    pub(super) fn warn_of_removed_flows(&mut self, key: ConnectionKey, now: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Up(up) = &mut connection.stage else { return };
        for flow in up.removed_outside.take_due(now) {
            if self.log.allows(now, &self.counters) {
                warn!(dpid = %up.info.dpid, "the {flow} was removed from outside; it is restored");
            }
        }
    }

    /// Handles an error about a message of the session, which may be one of the flows.
    pub(super) fn own_flow_refused(
        &mut self,
        key: ConnectionKey,
        xid: u32,
        error: &ErrorMessage<'_>,
        now: Duration,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Up(up) = &mut connection.stage else { return };
        let switch = (&self.user.network, up.info.dpid);
        if up.table_miss.handle_error(switch, xid, error, now) {
            return self.counters.table_miss_refused.add(1);
        }
        for flow in up.own_flows() {
            flow.handle_error(switch, xid, error, now);
        }
    }

    /// Handles the reply to a barrier of the session: the flows before it are installed.
    pub(super) fn own_flows_installed(&mut self, key: ConnectionKey, barrier: u32, now: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Up(up) = &mut connection.stage else { return };
        let switch = (&self.user.network, up.info.dpid);
        for flow in up.own_flows() {
            flow.handle_barrier_reply(switch, barrier, now);
        }
    }
}

impl Connection<Apps> {
    /// Writes the flows that were refused and are due, and a barrier: its reply without an error
    /// before it means that they are installed.
    fn write_due_flows(&mut self, out: &mut Out, meter_rate: Option<u32>, now: Duration) {
        let ConnectionStage::Up(up) = &self.stage else { return };
        let is_miss_due = up.table_miss.is_due(now);
        let barrier = self.session.next_xid(xid::SESSION);
        if is_miss_due {
            self.write_table_miss(out, Some(barrier), now);
        }
        self.write_sight(out, Some(barrier), now);
        self.write_meter(out, meter_rate, Some(barrier), now);
        // If it cannot be written, or has no reply, the flows are sent once more.
        if ToSwitch::BarrierRequest.encode(self.session.version(), barrier, out).is_ok() {
            let _ = self.session.request(barrier, RequestKind::Barrier, now);
        }
    }
}

/// Notes that a flow was sent: for the first time, or again with this barrier behind it.
pub(super) fn record_sent(flow: &mut OwnFlow, xid: u32, barrier: Option<u32>, now: Duration) {
    flow.record_sent(xid, now);
    if let Some(barrier) = barrier {
        flow.record_barrier(barrier);
    }
}
