//! Roles of the controller at a switch: orders, requests, and what the switch says of them.
//!
//! An order ([`bellrock_api::RoleOrder`]) becomes a request. Only the switch makes the controller
//! master or equal: its reply moves the connection between the stages of `standby`. The controller
//! needs nobody's leave to stand by: an order for slave without a generation id takes effect at
//! once. A `role_status`, and an error that says that the controller is slave, move the connection
//! too. They are in order with everything else that the switch sends, so the last one holds.
//!
//! Orders for one switch are carried out one after the other, because one order may take several
//! requests (1.3 only): a slave without a generation id asks for the newest one first; after a
//! stale request the newest one is asked for; and after a refusal a question for the role shows
//! whether the switch has roles at all.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::{ErrorMessage, FromSwitch, RoleKind, RoleMessage, RoleStatus};
use bellrock_api::runtime::Promise;
use bellrock_api::{
    ControllerRole, Dpid, EndReason, Error, ErrorCode, GrantedRole, RateLimit, Refusal, RoleError,
    RoleOrder,
};
use tracing::{info, warn};

use crate::apps::Worker;
use crate::apps::asker::{Ended, ROLE};
use crate::apps::stage::ConnectionStage;
use crate::mailbox::ConnectionId;
use crate::transport::{ConnectionKey, Transport};

/// Maximum number of orders for one switch without an outcome. A further one is not carried out.
const ROLE_ORDERS: usize = 8;

/// Maximum number of requests of a slave that takes the switch's newest generation id. Each further
/// one means that another election came between the question and the request.
const SLAVE_REQUESTS: u8 = 4;

/// Number of times that a switch may give access back without an order, at once.
const RECLAIM_BURST: u32 = 4;

/// Time after which it may do so once more.
const RECLAIM_PERIOD: Duration = Duration::from_secs(60);

/// Types of the messages that Open vSwitch refuses from a slave in 1.0: PACKET_OUT, FLOW_MOD,
/// PORT_MOD (1.0 §5.1).
const REFUSED_FROM_SLAVES: [u8; 3] = [13, 14, 15];

/// An order to stand by that no election numbers.
pub(crate) const STAND_BY: RoleOrder = RoleOrder::Slave { generation_id: None };

type RoleOutcome = Result<GrantedRole, RoleError>;

/// An order on its way to the worker of a switch.
pub(crate) struct PostedOrder {
    pub(crate) dpid: Dpid,
    pub(crate) order: RoleOrder,
    pub(crate) promise: Promise<RoleOutcome>,
}

impl PostedOrder {
    /// Reports that the connection is gone.
    fn undeliverable(self) {
        self.promise.resolve(Err(Error::UnknownSwitch(self.dpid).into()));
    }
}

/// The orders for a connection.
pub(crate) struct Roles {
    /// Orders without an outcome. The first one is under way.
    orders: VecDeque<PendingOrder>,
    /// Whether only an order may end the standby.
    is_held: bool,
    /// Limits how often the switch may end the standby without an order.
    reclaims: RateLimit,
}

impl Default for Roles {
    fn default() -> Self {
        let reclaims = RateLimit::new(RECLAIM_BURST, RECLAIM_PERIOD);
        Roles { orders: VecDeque::new(), is_held: false, reclaims }
    }
}

impl Roles {
    /// Whether an order for slave has no outcome yet.
    fn awaits_slave(&self) -> bool {
        self.orders.iter().any(|pending| pending.order.role() == ControllerRole::Slave)
    }
}

/// An order without an outcome.
struct PendingOrder {
    /// The xid of its present request; `None` before the first one.
    xid: Option<u32>,
    order: RoleOrder,
    step: OrderStep,
    /// Number of requests that were sent to change the role.
    requests: u8,
    /// The newest generation id that the switch has reported for this order.
    newest: Option<u64>,
    /// Why the switch did not change the role, while it is asked whether it has roles.
    refused: Option<RoleError>,
    /// `None`: the worker's own order.
    promise: Option<Promise<RoleOutcome>>,
}

/// What the present request of an order is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OrderStep {
    /// It asks for the newest generation id, for a slave.
    Newest,
    /// It changes the role.
    Change,
    /// It asks for the newest generation id after the change was refused as stale.
    Stale,
    /// It asks for the role after the change was refused: a switch with roles answers.
    Probe,
}

impl PendingOrder {
    /// The request of the present step.
    fn request(&self) -> RoleMessage {
        let (role, generation_id) = match (self.step, self.order) {
            (OrderStep::Newest | OrderStep::Stale | OrderStep::Probe, _) => (RoleKind::NoChange, 0),
            (OrderStep::Change, RoleOrder::Equal) => (RoleKind::Equal, 0),
            (OrderStep::Change, RoleOrder::Master { generation_id }) => {
                (RoleKind::Master, generation_id)
            }
            // Before any election, the first generation.
            (OrderStep::Change, RoleOrder::Slave { generation_id }) => {
                (RoleKind::Slave, generation_id.or(self.newest).unwrap_or(0))
            }
        };
        RoleMessage { role, generation_id }
    }
}

/// Why a request for a role has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoleFailure {
    /// The generation id is too old.
    Stale,
    /// It may be that the switch has no roles: it refuses the request so, or ignores it (`None`).
    Unsupported(Option<Refusal>),
    /// Another error.
    Refused(Refusal),
    /// Nothing came in time, or nothing that can be read.
    Unanswered,
}

impl RoleFailure {
    /// Returns what it means that a request for a role ended so.
    fn of(ended: &Ended<'_>) -> Self {
        let error = match ended {
            Ended::Refused(error) => error,
            Ended::Silent | Ended::Reply(_) => return RoleFailure::Unsupported(None),
            Ended::Multipart(_) | Ended::Late | Ended::TooLarge | Ended::Unreadable(_) => {
                return RoleFailure::Unanswered;
            }
        };
        let refusal = Refusal::from(error);
        let ErrorMessage::Standard { code, .. } = error else {
            return RoleFailure::Refused(refusal);
        };
        match code {
            ErrorCode::RoleStale => RoleFailure::Stale,
            ErrorCode::RoleUnsupported
            | ErrorCode::RequestBadType
            | ErrorCode::RequestBadExperimenter
            | ErrorCode::RequestBadExperimenterType => RoleFailure::Unsupported(Some(refusal)),
            _ => RoleFailure::Refused(refusal),
        }
    }
}

impl Worker {
    /// Handles an order for a switch of this worker, which may be gone.
    pub(crate) fn role_order<T: Transport>(
        &mut self,
        to: ConnectionId,
        posted: PostedOrder,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(key) = self.connections.find(to) else {
            self.counters.mail_undeliverable.add(1);
            return posted.undeliverable();
        };
        self.counters.mail_in.add(1);
        self.request_role(key, posted.order, Some(posted.promise), now, transport);
    }

    /// Requests a role. An order for slave replaces the orders that wait.
    pub(crate) fn request_role<T: Transport>(
        &mut self,
        key: ConnectionKey,
        order: RoleOrder,
        promise: Option<Promise<RoleOutcome>>,
        now: Duration,
        transport: &mut T,
    ) {
        if order == STAND_BY {
            // Whatever the switch answers, and when.
            self.hold_standby(key);
            if promise.is_some() {
                self.keep_order(key, order);
            }
            self.demote(key, EndReason::StoodBy, now, transport);
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        let step = match order {
            STAND_BY if connection.session.version().has_roles() => OrderStep::Newest,
            // 1.0 has neither generation ids nor a question for the role.
            _ => OrderStep::Change,
        };
        let (requests, newest, refused) = (0, None, None);
        let pending = PendingOrder { xid: None, order, step, requests, newest, refused, promise };
        let orders = &mut connection.own.roles.get_or_insert_default().orders;
        let replaced = match order.role() {
            ControllerRole::Slave => orders.split_off(orders.len().min(1)),
            ControllerRole::Equal | ControllerRole::Master => VecDeque::new(),
        };
        let unanswered = orders.len();
        let is_taken = unanswered < ROLE_ORDERS;
        let rejected = match is_taken {
            true => {
                orders.push_back(pending);
                None
            }
            false => Some(pending),
        };
        for replaced in replaced {
            self.end_order(key, replaced, Err(RoleError::Replaced), now);
        }
        if let Some(pending) = rejected {
            self.end_order(key, pending, Err(Error::TooManyRequests { unanswered }.into()), now);
        } else if unanswered == 0 {
            self.send_first_order(key, now, transport);
        }
    }

    /// Ends an order with its outcome.
    fn end_order(
        &mut self,
        key: ConnectionKey,
        pending: PendingOrder,
        outcome: RoleOutcome,
        now: Duration,
    ) {
        let dpid = self.connections.get(key).and_then(|connection| connection.dpid());
        if let Some(dpid) = dpid
            && self.log.allows(now, &self.counters)
        {
            let order = pending.order.role();
            match (&outcome, &pending.promise) {
                (Ok(granted), _) => {
                    let (role, generation_id) = (granted.role, granted.generation_id);
                    info!(%dpid, %role, generation_id, "role granted");
                }
                // Nobody else gets the reason.
                (Err(reason), None) => warn!(%dpid, %order, %reason, "role not granted"),
                (Err(reason), Some(_)) => info!(%dpid, %order, %reason, "role not granted"),
            }
        }
        if let Some(promise) = pending.promise {
            promise.resolve(outcome);
        }
    }

    /// Sends the present request of the first order.
    fn send_first_order<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        // What was written before goes first, and the request gets the whole buffer.
        self.flush(key, transport);
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(roles) = &mut connection.own.roles else { return };
        let mut not_sent = Vec::new();
        while let Some(pending) = roles.orders.front_mut() {
            pending.requests += u8::from(pending.step == OrderStep::Change);
            let request = pending.request();
            match connection.session.request_role(ROLE, request, now, &mut self.out) {
                Ok(xid) => {
                    pending.xid = Some(xid);
                    break;
                }
                Err(error) => {
                    not_sent.extend(roles.orders.pop_front().map(|pending| (pending, error)));
                }
            }
        }
        for (pending, error) in not_sent {
            self.end_order(key, pending, Err(Error::from(error).into()), now);
        }
        self.flush(key, transport);
    }

    /// Goes on with the first order, in this step.
    fn continue_order<T: Transport>(
        &mut self,
        key: ConnectionKey,
        pending: PendingOrder,
        step: OrderStep,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let orders = &mut connection.own.roles.get_or_insert_default().orders;
        orders.push_front(PendingOrder { step, ..pending });
        self.send_first_order(key, now, transport);
    }

    /// Handles the end of a request for a role.
    pub(crate) fn role_ended<T: Transport>(
        &mut self,
        key: ConnectionKey,
        xid: u32,
        ended: &Ended<'_>,
        now: Duration,
        transport: &mut T,
    ) {
        match (self.take_role(key, xid), ended) {
            (Some(pending), Ended::Reply(FromSwitch::RoleReply(role))) => {
                self.handle_role_reply(key, pending, *role, now, transport);
            }
            // Its order ended when something unreadable had its xid.
            (None, Ended::Reply(FromSwitch::RoleReply(role))) => {
                self.handle_role_report(key, ControllerRole::of(role.role), now, transport);
            }
            (Some(pending), _) => {
                self.handle_refusal(key, pending, RoleFailure::of(ended), now, transport);
            }
            (None, _) => {}
        }
    }

    fn handle_role_reply<T: Transport>(
        &mut self,
        key: ConnectionKey,
        mut pending: PendingOrder,
        reply: RoleMessage,
        now: Duration,
        transport: &mut T,
    ) {
        let reported = ControllerRole::of(reply.role);
        pending.newest = reply.generation();
        match (pending.step, pending.order) {
            (OrderStep::Newest, _) => {
                return self.continue_order(key, pending, OrderStep::Change, now, transport);
            }
            (OrderStep::Stale, RoleOrder::Slave { generation_id: None })
                if pending.requests < SLAVE_REQUESTS =>
            {
                return self.continue_order(key, pending, OrderStep::Change, now, transport);
            }
            (OrderStep::Stale, _) => {
                let newest = pending.newest;
                self.end_order(key, pending, Err(RoleError::Stale { newest }), now);
            }
            (OrderStep::Probe, _) => {
                // It has roles, but does not change this one.
                let why = pending.refused.unwrap_or(RoleError::Unanswered);
                self.end_not_granted(key, pending, why, now, transport);
                if reported == Some(ControllerRole::Slave) {
                    self.handle_role_report(key, reported, now, transport);
                }
            }
            (OrderStep::Change, _) => {
                let Some(role) = reported else {
                    return self.handle_refusal(
                        key,
                        pending,
                        RoleFailure::Unanswered,
                        now,
                        transport,
                    );
                };
                let wanted = pending.order.role();
                self.note_role(key, role);
                self.apply_role(key, &pending, role, now, transport);
                let generation_id = pending.newest;
                let outcome = match role == wanted {
                    true => Ok(GrantedRole { role, generation_id }),
                    false => Err(RoleError::Other(role)),
                };
                self.end_order(key, pending, outcome, now);
            }
        }
        self.send_first_order(key, now, transport);
    }

    fn handle_refusal<T: Transport>(
        &mut self,
        key: ConnectionKey,
        pending: PendingOrder,
        failure: RoleFailure,
        now: Duration,
        transport: &mut T,
    ) {
        let has_role_query = self
            .connections
            .get(key)
            .is_some_and(|connection| connection.session.version().has_roles());
        let why = match (pending.step, failure) {
            (OrderStep::Change, RoleFailure::Stale) => {
                return self.continue_order(key, pending, OrderStep::Stale, now, transport);
            }
            (OrderStep::Change, RoleFailure::Unsupported(refusal)) if has_role_query => {
                // It may only refuse this change.
                let refused = Some(refusal.map_or(RoleError::Unanswered, RoleError::Refused));
                let pending = PendingOrder { refused, ..pending };
                return self.continue_order(key, pending, OrderStep::Probe, now, transport);
            }
            (OrderStep::Stale, _) => RoleError::Stale { newest: None },
            (_, RoleFailure::Unsupported(_) | RoleFailure::Stale) => RoleError::Unsupported,
            (OrderStep::Probe, _) => pending.refused.unwrap_or(RoleError::Unanswered),
            (_, RoleFailure::Refused(refusal)) => RoleError::Refused(refusal),
            (_, RoleFailure::Unanswered) => RoleError::Unanswered,
        };
        self.end_not_granted(key, pending, why, now, transport);
        self.send_first_order(key, now, transport);
    }

    /// Ends an order that the switch does not grant.
    fn end_not_granted<T: Transport>(
        &mut self,
        key: ConnectionKey,
        pending: PendingOrder,
        why: RoleError,
        now: Duration,
        transport: &mut T,
    ) {
        let wanted = pending.order.role();
        let outcome = match wanted {
            // Where there are no roles, every controller is equal.
            ControllerRole::Equal if why == RoleError::Unsupported => {
                self.note_role(key, wanted);
                self.apply_role(key, &pending, wanted, now, transport);
                Ok(GrantedRole { role: wanted, generation_id: None })
            }
            // Whatever the switch would accept: the order was to stand by.
            ControllerRole::Slave if !matches!(why, RoleError::Stale { .. }) => {
                self.apply_role(key, &pending, wanted, now, transport);
                Err(why)
            }
            _ => Err(why),
        };
        self.end_order(key, pending, outcome, now);
    }

    /// Handles a report of the switch that it has changed the controller's role.
    pub(crate) fn role_status<T: Transport>(
        &mut self,
        key: ConnectionKey,
        status: &RoleStatus,
        now: Duration,
        transport: &mut T,
    ) {
        self.handle_role_report(key, ControllerRole::of(status.role.role), now, transport);
    }

    /// Whether an error means that the controller is slave. 1.3 has an error of its own for that.
    /// In 1.0, Open vSwitch sends "no permission" for a message that a slave may not send, and only
    /// a controller that was master becomes slave.
    pub(crate) fn is_slave_error(&self, key: ConnectionKey, error: &ErrorMessage<'_>) -> bool {
        let ErrorMessage::Standard { code, data } = error else { return false };
        let info = self.connections.get(key).and_then(|connection| connection.stage.owned_info());
        let has_role = info.is_some_and(|info| info.role != ControllerRole::Equal);
        match code {
            ErrorCode::RequestIsSlave => true,
            ErrorCode::RequestPermission => {
                has_role
                    && info.is_some_and(|info| !info.version.has_roles())
                    && data.0.get(1).is_some_and(|kind| REFUSED_FROM_SLAVES.contains(kind))
            }
            _ => false,
        }
    }

    /// Handles a role that the switch reports without an order.
    pub(crate) fn handle_role_report<T: Transport>(
        &mut self,
        key: ConnectionKey,
        reported: Option<ControllerRole>,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(role) = reported else { return };
        self.note_role(key, role);
        match role {
            ControllerRole::Slave => {
                if let Some(dpid) =
                    self.connections.get(key).and_then(|connection| connection.dpid())
                    && self.shared.record_demotion(dpid)
                {
                    // Who was ordered to write needs a new order.
                    self.hold_standby(key);
                }
                self.demote(key, EndReason::Demoted, now, transport);
            }
            ControllerRole::Equal | ControllerRole::Master => {
                if self.may_reclaim(key, now) {
                    self.take_over(key, now, transport);
                }
            }
        }
        self.publish(key);
    }

    /// Whether a standby may end because the switch says so. Reports that change nothing are
    /// counted.
    fn may_reclaim(&mut self, key: ConnectionKey, now: Duration) -> bool {
        if !self.stands_by(key) {
            return false;
        }
        let Some(connection) = self.connections.get_mut(key) else { return false };
        let roles = connection.own.roles.get_or_insert_default();
        let is_allowed = !roles.is_held && !roles.awaits_slave() && roles.reclaims.pass(now);
        self.counters.role_reports_ignored.add(u64::from(!is_allowed));
        is_allowed
    }

    /// Makes the standby last until an order ends it.
    pub(crate) fn hold_standby(&mut self, key: ConnectionKey) {
        if let Some(connection) = self.connections.get_mut(key) {
            connection.own.roles.get_or_insert_default().is_held = true;
        }
    }

    /// Keeps an order for the next connection of the switch.
    fn keep_order(&self, key: ConnectionKey, order: RoleOrder) {
        if let Some(dpid) = self.connections.get(key).and_then(|connection| connection.dpid()) {
            self.shared.store_order(dpid, order);
        }
    }

    /// Moves the connection to the stage of the role that was ordered and granted. Only the role
    /// that was ordered ends a standby.
    fn apply_role<T: Transport>(
        &mut self,
        key: ConnectionKey,
        pending: &PendingOrder,
        granted: ControllerRole,
        now: Duration,
        transport: &mut T,
    ) {
        let wanted = pending.order.role();
        let Some(connection) = self.connections.get_mut(key) else { return };
        let roles = connection.own.roles.get_or_insert_default();
        let is_replaced = roles.awaits_slave();
        if wanted == ControllerRole::Slave {
            self.hold_standby(key);
            if pending.promise.is_some() {
                self.keep_order(key, STAND_BY);
            }
            self.demote(key, EndReason::StoodBy, now, transport);
        } else if granted == ControllerRole::Slave {
            self.demote(key, EndReason::Demoted, now, transport);
        } else if granted == wanted && !is_replaced {
            roles.is_held = false;
            if pending.promise.is_some() {
                self.keep_order(key, pending.order);
            }
            self.take_over(key, now, transport);
        }
        self.publish(key);
    }

    /// Sets the role that is published.
    fn note_role(&mut self, key: ConnectionKey, role: ControllerRole) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(info) = connection.info_mut().filter(|info| info.role != role) else {
            return;
        };
        Arc::make_mut(info).role = role;
        connection.stage.mark_changed();
    }

    /// Takes the first order, if its present request has this xid.
    fn take_role(&mut self, key: ConnectionKey, xid: u32) -> Option<PendingOrder> {
        let orders = &mut self.connections.get_mut(key)?.own.roles.as_mut()?.orders;
        orders.pop_front_if(|pending| pending.xid == Some(xid))
    }

    /// Whether the connection stands by.
    pub(crate) fn stands_by(&self, key: ConnectionKey) -> bool {
        let stage = self.connections.get(key).map(|connection| &connection.stage);
        matches!(stage, Some(ConnectionStage::Standby(_)))
    }
}
