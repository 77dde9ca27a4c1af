//! Removal of one app's flows from a 1.0 switch.
//!
//! 1.0 removes by match alone, which would also remove flows of other apps. So the worker requests
//! the matching flows, and removes those with the app's cookie one by one. A flow that is installed
//! after the request is not in the answer. One that replaces a flow of the answer before it
//! arrives, with the same match and priority, is removed too; its packets then come to the
//! controller again, as those of a new flow do.

use std::time::Duration;

use bellrock_api::openflow::{Action, FlowStats, Instruction};
use bellrock_api::{Cookie, Event, FlowMod, Port, ReplyBody};
use bellrock_session::CompleteReply;

use crate::apps::Worker;
use crate::transport::{ConnectionKey, Transport};

/// Maximum number of removals of one connection that wait for the switch's flows. A further one is
/// an error for the app.
pub(crate) const MAX_REMOVALS: usize = 256;

/// Minimum time between two reports that a switch does not list its flows.
const REPORTED_EVERY: Duration = Duration::from_secs(60);

/// Flows to remove when the switch has listed them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Removal {
    /// Transaction id of the request. The app gets it if the flows cannot be removed.
    pub(crate) xid: u32,
    pub(crate) cookie: Cookie,
    pub(crate) out_port: Port,
}

impl Worker {
    /// Takes the removal that waits for this reply, if any.
    pub(crate) fn take_removal(&mut self, key: ConnectionKey, xid: u32) -> Option<Removal> {
        let removals = &mut self.connections.get_mut(key)?.own.asked.removals;
        let at = removals.iter().position(|removal| removal.xid == xid)?;
        Some(removals.swap_remove(at))
    }

    /// Reports that flows of the app at this place stay, since the switch does not list them.
    pub(crate) fn report_removal(&mut self, key: ConnectionKey, place: usize, now: Duration) {
        self.counters.removals_unanswered.add(1);
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(dpid) = connection.dpid() else { return };
        if connection.own.removal_reported.is_some_and(|at| now < at + REPORTED_EVERY) {
            return;
        }
        connection.own.removal_reported = Some(now);
        let app = self.user.chain.get(place).map_or("", |app| app.name);
        // No log line: the event log has it.
        self.shared.publish(now, Event::RemovalUnanswered { app, dpid });
    }

    /// Removes the listed flows of the app.
    pub(crate) fn remove_reported<T: Transport>(
        &mut self,
        key: ConnectionKey,
        removal: Removal,
        flows: &CompleteReply<'_>,
        transport: &mut T,
    ) {
        let Ok(ReplyBody::Flow(flows)) = flows.body() else { return };
        let Some(connection) = self.connections.get(key) else { return };
        let version = connection.session.version();
        for flow in flows.iter().filter(|flow| removal.cookie.owns_flow(flow)) {
            let out_port =
                if removal.out_port == Port::ANY { first_output(&flow) } else { removal.out_port };
            let old = FlowMod::delete(flow.matching).strict().priority(flow.priority);
            // A flow that has replaced it meanwhile likely sends to another port.
            self.remove(key, removal.xid, &old.out_port(out_port), version, transport);
        }
    }
}

/// First port that a flow sends to; [`Port::ANY`] if it drops its packets.
fn first_output(flow: &FlowStats<'_>) -> Port {
    let outputs = flow.instructions.iter().filter_map(|instruction| match instruction {
        Instruction::ApplyActions(actions) => actions.iter().find_map(|action| match action {
            Action::Output { port, .. } | Action::Enqueue { port, .. } => Some(port),
            _ => None,
        }),
        _ => None,
    });
    outputs.take(1).last().unwrap_or(Port::ANY)
}
