//! The stage of a standby, and the ways into it and out of it.
//!
//! ```text
//!              role: standby, slave            role: master, equal
//! claimed ------------------------> standby ----------------------> cleaning -> up
//!    |                                 ^                               |         |
//!    |                                 +-------------------------------+---------+
//!    |                                                 role: slave
//!    +-------------------------------------------------------------> cleaning -> up
//!              role: equal (default)
//! ```
//!
//! A standby answers echoes, and knows the switch with its ports. It sends nothing that could
//! change the switch, neither its configuration nor its flows; packet-ins and flow_removed, which a
//! switch may still send, are dropped. Apps do not see the switch.
//!
//! Whoever takes over finds the flows of the master before, and treats them as those of an earlier
//! run: see `clean`.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{ConnectionEnd, ControllerRole, EndReason, RequestError, RoleOrder, SwitchInfo};
use bellrock_session::FirstRole;
use tracing::info;

use crate::apps::Worker;
use crate::apps::asker::Asker;
use crate::apps::roles::STAND_BY;
use crate::apps::stage::{CleaningSwitch, ConnectionStage, StandbySwitch, UpSwitch};
use crate::settings::TICK;
use crate::transport::{ConnectionKey, Transport};

impl Worker {
    /// Begins with a switch whose datapath id the connection has claimed.
    pub(crate) fn begin<T: Transport>(
        &mut self,
        key: ConnectionKey,
        info: Arc<SwitchInfo>,
        now: Duration,
        transport: &mut T,
    ) {
        let first_role = self.settings.session.first_role;
        let order = match (self.shared.stored_order(info.dpid), first_role) {
            (Some(order @ (RoleOrder::Slave { .. } | RoleOrder::Master { .. })), _)
            | (Some(order @ RoleOrder::Equal), FirstRole::Standby) => Some(order),
            (None, FirstRole::Standby) => Some(STAND_BY),
            // As switches take every new connection.
            (None | Some(RoleOrder::Equal), FirstRole::Equal) => None,
        };
        if let Some(order) = order {
            self.stand_by(key, info, EndReason::StoodBy, now, transport);
            // Until the switch has answered, it takes the controller for an equal.
            self.hold_standby(key);
            self.request_role(key, order, None, now, transport);
        } else if info.role == ControllerRole::Slave {
            self.stand_by(key, info, EndReason::Demoted, now, transport);
        } else {
            self.configure(key, transport);
            self.clean(key, info, now, transport);
        }
    }

    /// Configures the switch, unless the handshake has done so.
    fn configure<T: Transport>(&mut self, key: ConnectionKey, transport: &mut T) {
        self.flush(key, transport);
        if let Some(connection) = self.connections.get_mut(key)
            && connection.session.first_role() == FirstRole::Standby
        {
            // It fits: the buffer is empty.
            let _ = connection.session.configure(&mut self.out);
        }
    }

    /// Stands by at a switch that is up or being cleaned.
    pub(crate) fn demote<T: Transport>(
        &mut self,
        key: ConnectionKey,
        why: EndReason,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get(key) else { return };
        if let ConnectionStage::Up(UpSwitch { info, .. })
        | ConnectionStage::Cleaning(CleaningSwitch { info, .. }) = &connection.stage
        {
            let info = Arc::clone(info);
            self.stand_by(key, info, why, now, transport);
        }
    }

    /// Stands by at a switch. If it is up, the apps lose it. Its flows stay.
    fn stand_by<T: Transport>(
        &mut self,
        key: ConnectionKey,
        info: Arc<SwitchInfo>,
        why: EndReason,
        now: Duration,
        transport: &mut T,
    ) {
        self.flush(key, transport);
        self.drop_early_packets(key);
        self.cancel_requests(key);
        self.leave_queue(key);
        let Some(connection) = self.connections.get_mut(key) else { return };
        // Mail that was posted until now is for the apps' time that ends here.
        connection.term = connection.term.wrapping_add(1);
        let Some(id) = self.id(key) else { return };
        self.shared.hide(id, info.dpid);
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.own.asked.removals.clear();
        connection.own.asked.allowed.clear();
        let (next_tick, changed, peer) = (now + TICK, false, connection.peer);
        let confirms = connection.own.confirms.take();
        let standby = StandbySwitch { info: Arc::clone(&info), next_tick, changed };
        let before = std::mem::replace(&mut connection.stage, ConnectionStage::Standby(standby));
        if let Some(confirms) = confirms {
            self.counters.changes_unknown.add(confirms.end(RequestError::StoodBy));
        }
        // In a cluster another master is routine: who became it, and why, its own events say.
        let why = match (why, self.settings.session.first_role) {
            (EndReason::Demoted, FirstRole::Standby) => EndReason::TakenOver,
            _ => why,
        };
        if let ConnectionStage::Up(up) = before {
            self.publish_down(&up.info, peer, connection_end(why), now);
            self.end_switch(up, now);
        }
        self.shared.publish_standby(id, &info);
        self.counters.switches_standby.add(1);
        if self.log.allows(now, &self.counters) {
            let (dpid, version, role) = (info.dpid, info.version, info.role);
            info!(%dpid, %version, %peer, %role, reason = why.name(), "switch stands by");
        }
        self.connections.set_timer(key);
        self.next_turns(now, transport);
    }

    /// Ends the requests of handlers and tasks: their answers must not reach handlers that come
    /// later. Ends the request for flows of an earlier run too.
    fn cancel_requests(&mut self, key: ConnectionKey) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let requests = connection.session.unanswered().map(|(request, _)| request);
        let stays = |request: &u32| matches!(Asker::of(*request), Asker::Session | Asker::Role);
        let requests: Vec<u32> = requests.filter(|request| !stays(request)).collect();
        for request in requests {
            connection.session.split().1.cancel(request);
        }
        self.count_unfinished(key);
    }

    /// Takes over a switch that stands by: it is cleaned and comes up, as after a connect.
    pub(crate) fn take_over<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        self.flush(key, transport);
        let Some(id) = self.id(key) else { return };
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Standby(StandbySwitch { info, .. }) = &mut connection.stage else {
            return;
        };
        // Older flows are those of the master before.
        Arc::make_mut(info).since = now;
        let info = Arc::clone(info);
        // It fits: the buffer is empty. Another master may have changed the configuration.
        let _ = connection.session.configure(&mut self.out);
        self.shared.hide(id, info.dpid);
        self.clean(key, info, now, transport);
        self.flush(key, transport);
    }
}

/// Why a switch is down though its connection stays.
fn connection_end(reason: EndReason) -> ConnectionEnd {
    let text = match reason {
        EndReason::Demoted => "another controller has become its master; this one stands by",
        EndReason::TakenOver => "another node of the cluster is its master; this one stands by",
        _ => "this controller was ordered to stand by",
    };
    ConnectionEnd { reason, text: text.into() }
}
