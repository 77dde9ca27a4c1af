//! Flows of one app that are removed from a switch of 1.0.
//!
//! 1.0 removes by match alone, which would take other apps' flows along. So the switch is asked for the
//! flows that fit, and those with the app's cookie are removed one by one. A flow that is installed after
//! the question is not in the answer. One that takes the place of another in the answer, with the same
//! match and priority, before the answer is there, goes too; its packets come to the controller
//! again, as those of a new flow do.

use std::time::Duration;

use bellrock_api::openflow::{Action, FlowStats, Instruction};
use bellrock_api::{Cookie, Event, FlowMod, Port, ReplyBody};
use bellrock_session::{Gathered, xid};

use crate::transport::{Key, Transport};
use crate::worker::Worker;

/// Removals of one connection that wait for the switch to tell its flows; beyond, the app gets an error.
pub(crate) const MAX_REMOVALS: usize = 256;

/// How often it is reported that a switch does not say which flows it has.
const REPORTED_EVERY: Duration = Duration::from_secs(60);

/// Flows that are to go when the switch has told them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Removal {
    /// The request for the flows. The app hears of this id if they cannot be removed.
    pub(crate) xid: u32,
    pub(crate) cookie: Cookie,
    pub(crate) out_port: Port,
}

impl Worker {
    /// Whether a reply is what a removal waits for; it waits no longer then.
    pub(crate) fn take_removal(&mut self, key: Key, xid: u32) -> Option<Removal> {
        let removals = &mut self.connections.get_mut(key)?.removals;
        let at = removals.iter().position(|removal| removal.xid == xid)?;
        Some(removals.swap_remove(at))
    }

    /// Reports that flows stay which an app removes, since the switch does not say which ones there are.
    pub(crate) fn report_removal(&mut self, key: Key, xid: u32, now: Duration) {
        self.counters.removals_unanswered.add(1);
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(dpid) = connection.dpid() else { return };
        if connection.removal_reported.is_some_and(|at| now < at + REPORTED_EVERY) {
            return;
        }
        connection.removal_reported = Some(now);
        let place = usize::from(xid::owner(xid)).checked_sub(1);
        let app = place.and_then(|place| self.apps.get(place)).map_or("", |app| app.name);
        // The log of events has it.
        self.shared.publish(now, Event::RemovalUnanswered { app, dpid });
    }

    /// The switch has told the flows that fit.
    pub(crate) fn remove_told<T: Transport>(
        &mut self,
        key: Key,
        removal: Removal,
        flows: &Gathered<'_>,
        transport: &mut T,
    ) {
        let Ok(ReplyBody::Flow(flows)) = flows.body() else { return };
        let Some(connection) = self.connections.get(key) else { return };
        let version = connection.session.version();
        for flow in flows.iter().filter(|flow| removal.cookie.owns_flow(flow)) {
            let out_port =
                if removal.out_port == Port::ANY { first_output(&flow) } else { removal.out_port };
            let old = FlowMod::delete(flow.matching).strict().priority(flow.priority);
            // What has been put into its place meanwhile likely sends elsewhere.
            self.remove(key, removal.xid, &old.out_port(out_port), version, transport);
        }
    }
}

/// The port that a flow sends to first; [`Port::ANY`] for one that drops its packets.
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
