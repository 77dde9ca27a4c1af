//! Roles of the controller at a switch: orders, requests, and what the switch says of them.
//!
//! The switch decides. An order ([`bellrock_api::RoleOrder`]) becomes a request; its reply moves
//! the connection between the stages of `standby`. So do a `role_status`, and an error that says
//! that the controller is slave. All three are in order with everything else that the switch sends,
//! so the last one holds.
//!
//! One order takes more than one request in two cases, both in 1.3 only: a slave that knows no
//! generation id asks for the newest first, and behind a stale request the newest is asked for. So
//! orders for one switch are carried out one after the other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::{ErrorMessage, RoleKind, RoleMessage, RoleStatus};
use bellrock_api::runtime::Promise;
use bellrock_api::{
    ControllerRole, Dpid, EndReason, Error, ErrorCode, GrantedRole, Refusal, RoleError, RoleOrder,
};
use tracing::debug;

use crate::connection::ConnectionStage;
use crate::mailbox::ConnectionId;
use crate::transport::{ConnectionKey, Transport};
use crate::worker::Worker;

/// Maximum number of orders for one switch without an outcome. A further one is not carried out.
const ROLE_ORDERS: usize = 8;

/// Maximum number of requests of a slave that takes the switch's newest generation id. Each further
/// one means that another election came between the question and the request.
const SLAVE_REQUESTS: u8 = 4;

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
        self.promise.keep(Err(Error::UnknownSwitch(self.dpid).into()));
    }
}

/// The orders for a connection.
#[derive(Default)]
pub(crate) struct Roles {
    /// Orders without an outcome. The first one is under way.
    orders: VecDeque<PendingOrder>,
    /// Whether only an order may end the standby: the last order was for a slave.
    is_held: bool,
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
}

impl PendingOrder {
    /// The request of the present step.
    fn request(&self) -> RoleMessage {
        let (role, generation_id) = match (self.step, self.order) {
            (OrderStep::Newest | OrderStep::Stale, _) => (RoleKind::NoChange, 0),
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

    fn end(self, outcome: RoleOutcome) {
        debug!(order = ?self.order, ?outcome, "role");
        if let Some(promise) = self.promise {
            promise.keep(outcome);
        }
    }
}

/// Why a request for a role has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoleFailure {
    /// The generation id is too old.
    Stale,
    /// The switch has no roles.
    Unsupported,
    /// Another error.
    Refused(Refusal),
    /// Nothing came in time, or nothing that can be read.
    Unanswered,
}

impl RoleFailure {
    /// The failure that an error means, if it is about a request for a role.
    pub(crate) fn of(error: &ErrorMessage<'_>) -> Self {
        let ErrorMessage::Standard { code, .. } = error else {
            return RoleFailure::Refused(Refusal::from(error));
        };
        match code {
            ErrorCode::RoleStale => RoleFailure::Stale,
            ErrorCode::RoleUnsupported
            | ErrorCode::RequestBadType
            | ErrorCode::RequestBadExperimenter
            | ErrorCode::RequestBadExperimenterType => RoleFailure::Unsupported,
            _ => RoleFailure::Refused(Refusal::from(error)),
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
        let Some(key) = self.here(to) else {
            self.counters.mail_undeliverable.add(1);
            return posted.undeliverable();
        };
        self.counters.mail_in.add(1);
        self.request_role(key, posted.order, Some(posted.promise), now, transport);
    }

    /// Requests a role.
    pub(crate) fn request_role<T: Transport>(
        &mut self,
        key: ConnectionKey,
        order: RoleOrder,
        promise: Option<Promise<RoleOutcome>>,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let step = match order {
            RoleOrder::Slave { generation_id: None }
                if connection.session.version().has_roles() =>
            {
                OrderStep::Newest
            }
            // 1.0 has neither generation ids nor a question for the role.
            _ => OrderStep::Change,
        };
        let asked = PendingOrder { xid: None, order, step, requests: 0, newest: None, promise };
        let orders = &mut connection.roles.get_or_insert_default().orders;
        let waiting = orders.len();
        if waiting >= ROLE_ORDERS {
            return asked.end(Err(Error::TooManyRequests { waiting }.into()));
        }
        orders.push_back(asked);
        if waiting == 0 {
            self.carry_out(key, now, transport);
        }
    }

    /// Sends the present request of the first order.
    fn carry_out<T: Transport>(&mut self, key: ConnectionKey, now: Duration, transport: &mut T) {
        // What was written before goes first, and the request gets the whole buffer.
        self.flush(key, transport);
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(roles) = &mut connection.roles else { return };
        while let Some(asked) = roles.orders.front_mut() {
            asked.requests += u8::from(asked.step == OrderStep::Change);
            match connection.session.request_role(asked.request(), now, &mut self.out) {
                Ok(xid) => {
                    asked.xid = Some(xid);
                    break;
                }
                Err(error) => {
                    if let Some(asked) = roles.orders.pop_front() {
                        asked.end(Err(Error::from(error).into()));
                    }
                }
            }
        }
        self.flush(key, transport);
    }

    /// Goes on with the first order, in this step.
    fn carry_on<T: Transport>(
        &mut self,
        key: ConnectionKey,
        asked: PendingOrder,
        step: OrderStep,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let orders = &mut connection.roles.get_or_insert_default().orders;
        orders.push_front(PendingOrder { step, ..asked });
        self.carry_out(key, now, transport);
    }

    /// Handles the reply to a request for a role.
    pub(crate) fn role_answered<T: Transport>(
        &mut self,
        key: ConnectionKey,
        xid: u32,
        reply: RoleMessage,
        now: Duration,
        transport: &mut T,
    ) {
        let reported = ControllerRole::of(reply.role);
        let Some(mut asked) = self.take_role(key, xid) else {
            // A handler has asked.
            return self.role_reported(key, reported, now, transport);
        };
        asked.newest = reply.generation();
        match (asked.step, asked.order) {
            (OrderStep::Newest, _) => {
                return self.carry_on(key, asked, OrderStep::Change, now, transport);
            }
            (OrderStep::Stale, RoleOrder::Slave { generation_id: None })
                if asked.requests < SLAVE_REQUESTS =>
            {
                return self.carry_on(key, asked, OrderStep::Change, now, transport);
            }
            (OrderStep::Stale, _) => {
                let newest = asked.newest;
                asked.end(Err(RoleError::Stale { newest }));
            }
            (OrderStep::Change, _) => {
                let Some(role) = reported else {
                    return self.role_refused(key, asked, RoleFailure::Unanswered, now, transport);
                };
                let wanted = asked.order.role();
                self.note_role(key, role);
                self.ordered(key, wanted, role, now, transport);
                let generation_id = asked.newest;
                asked.end(match role == wanted {
                    true => Ok(GrantedRole { role, generation_id }),
                    false => Err(RoleError::Other(role)),
                });
            }
        }
        self.carry_out(key, now, transport);
    }

    /// Handles a request for a role that gets no reply. Returns whether the xid is that of one.
    pub(crate) fn role_failed<T: Transport>(
        &mut self,
        key: ConnectionKey,
        xid: u32,
        failure: RoleFailure,
        now: Duration,
        transport: &mut T,
    ) -> bool {
        let Some(asked) = self.take_role(key, xid) else { return false };
        self.role_refused(key, asked, failure, now, transport);
        true
    }

    fn role_refused<T: Transport>(
        &mut self,
        key: ConnectionKey,
        asked: PendingOrder,
        failure: RoleFailure,
        now: Duration,
        transport: &mut T,
    ) {
        let why = match (asked.step, failure) {
            (OrderStep::Change, RoleFailure::Stale) => {
                return self.carry_on(key, asked, OrderStep::Stale, now, transport);
            }
            (OrderStep::Stale, _) => RoleError::Stale { newest: None },
            (_, RoleFailure::Unsupported | RoleFailure::Stale) => RoleError::Unsupported,
            (_, RoleFailure::Refused(refusal)) => RoleError::Refused(refusal),
            (_, RoleFailure::Unanswered) => RoleError::Unanswered,
        };
        let wanted = asked.order.role();
        match wanted {
            // Where there are no roles, every controller is equal.
            ControllerRole::Equal if why == RoleError::Unsupported => {
                self.note_role(key, wanted);
                self.ordered(key, wanted, wanted, now, transport);
                asked.end(Ok(GrantedRole { role: wanted, generation_id: None }));
            }
            // Whatever the switch would accept: the order was to stand by.
            ControllerRole::Slave if !matches!(why, RoleError::Stale { .. }) => {
                self.ordered(key, wanted, wanted, now, transport);
                asked.end(Err(why));
            }
            _ => asked.end(Err(why)),
        }
        self.carry_out(key, now, transport);
    }

    /// Handles a report of the switch that it has changed the controller's role.
    pub(crate) fn role_status<T: Transport>(
        &mut self,
        key: ConnectionKey,
        status: &RoleStatus,
        now: Duration,
        transport: &mut T,
    ) {
        self.role_reported(key, ControllerRole::of(status.role.role), now, transport);
    }

    /// Whether an error means that the controller is slave. 1.3 has an error of its own for that.
    /// Open vSwitch sends "no permission" in 1.0, where it makes no one slave but a master.
    pub(crate) fn is_slave_error(&self, key: ConnectionKey, error: &ErrorMessage<'_>) -> bool {
        let ErrorMessage::Standard { code, .. } = error else { return false };
        let info = self.connections.get(key).and_then(|its| its.stage.claimed());
        let has_role = info.is_some_and(|info| info.role != ControllerRole::Equal);
        match code {
            ErrorCode::RequestIsSlave => true,
            ErrorCode::RequestPermission => {
                has_role && info.is_some_and(|info| !info.version.has_roles())
            }
            _ => false,
        }
    }

    /// Handles a role that the switch reports without an order.
    pub(crate) fn role_reported<T: Transport>(
        &mut self,
        key: ConnectionKey,
        reported: Option<ControllerRole>,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(role) = reported else { return };
        self.note_role(key, role);
        let roles = self.connections.get(key).and_then(|connection| connection.roles.as_ref());
        let is_held = roles.is_some_and(|roles| roles.is_held);
        match role {
            ControllerRole::Slave => self.leave(key, EndReason::Demoted, now, transport),
            ControllerRole::Equal | ControllerRole::Master if !is_held => {
                self.take_over(key, now, transport);
            }
            ControllerRole::Equal | ControllerRole::Master => {}
        }
        self.publish(key);
    }

    /// Moves the connection to the stage of the role that was ordered and granted.
    fn ordered<T: Transport>(
        &mut self,
        key: ConnectionKey,
        wanted: ControllerRole,
        granted: ControllerRole,
        now: Duration,
        transport: &mut T,
    ) {
        let stands_by = wanted == ControllerRole::Slave;
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.roles.get_or_insert_default().is_held = stands_by;
        if stands_by {
            self.leave(key, EndReason::StoodBy, now, transport);
        } else if granted == ControllerRole::Slave {
            self.leave(key, EndReason::Demoted, now, transport);
        } else {
            self.take_over(key, now, transport);
        }
        self.publish(key);
    }

    /// Sets the role that is published.
    fn note_role(&mut self, key: ConnectionKey, role: ControllerRole) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(info) = connection.stage.info_mut().filter(|info| info.role != role) else {
            return;
        };
        Arc::make_mut(info).role = role;
        connection.stage.is_changed();
    }

    /// Takes the first order, if its present request has this xid.
    fn take_role(&mut self, key: ConnectionKey, xid: u32) -> Option<PendingOrder> {
        let orders = &mut self.connections.get_mut(key)?.roles.as_mut()?.orders;
        orders.pop_front_if(|asked| asked.xid == Some(xid))
    }

    /// Whether the connection stands by.
    pub(crate) fn stands_by(&self, key: ConnectionKey) -> bool {
        let stage = self.connections.get(key).map(|connection| &connection.stage);
        matches!(stage, Some(ConnectionStage::Standby(_)))
    }
}
