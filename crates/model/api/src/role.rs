//! Roles of the controller at its switches (1.3.5 §6.3.4): orders, and their outcomes.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::task::{Context, Poll};

use bellrock_openflow::{RoleExtension, RoleKind, ToSwitch};

use crate::runtime::PromiseFuture;
use crate::{Error, Refusal};

/// The role of this controller at a switch (`ofp_controller_role`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ControllerRole {
    /// Full access, shared with other controllers. Every connection begins so.
    #[default]
    Equal,
    /// Full access of one controller. Another one that becomes master makes it a slave.
    Master,
    /// Read-only access. The switch sends it only changes of ports.
    Slave,
}

impl ControllerRole {
    /// The role in a message; `None` if it names none.
    #[must_use]
    pub fn of(kind: RoleKind) -> Option<Self> {
        match kind {
            RoleKind::Equal => Some(ControllerRole::Equal),
            RoleKind::Master => Some(ControllerRole::Master),
            RoleKind::Slave => Some(ControllerRole::Slave),
            RoleKind::NoChange | RoleKind::Unknown(_) => None,
        }
    }

    /// Name of the role in messages and listings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ControllerRole::Equal => "equal",
            ControllerRole::Master => "master",
            ControllerRole::Slave => "slave",
        }
    }
}

impl fmt::Display for ControllerRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ControllerRole {
    type Err = ParseRoleError;

    fn from_str(text: &str) -> Result<Self, ParseRoleError> {
        let all = [ControllerRole::Equal, ControllerRole::Master, ControllerRole::Slave];
        all.into_iter().find(|role| role.name() == text).ok_or(ParseRoleError)
    }
}

/// A text is no role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a role is equal, master or slave")]
pub struct ParseRoleError;

/// An order to take a role at a switch.
///
/// A generation id numbers the elections of a master. A switch refuses an older one than the newest
/// that it has seen; ids wrap around (1.3.5 §6.3.4). OpenFlow 1.0 has no generation ids: there the
/// last request wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleOrder {
    /// Become equal. It takes part in no election.
    Equal,
    /// Become master. The switch makes the present master a slave.
    Master {
        /// Generation id of the election.
        generation_id: u64,
    },
    /// Become slave, and stand by until the next order. Orders that wait behind others are replaced
    /// by it.
    Slave {
        /// Generation id of the election. The controller stands by unless the id is stale. `None`:
        /// the newest that the switch has seen; the controller stands by at once, whatever the
        /// switch answers.
        generation_id: Option<u64>,
    },
}

impl RoleOrder {
    /// The role that is ordered.
    #[must_use]
    pub fn role(self) -> ControllerRole {
        match self {
            RoleOrder::Equal => ControllerRole::Equal,
            RoleOrder::Master { .. } => ControllerRole::Master,
            RoleOrder::Slave { .. } => ControllerRole::Slave,
        }
    }
}

/// A role that a switch has confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantedRole {
    /// The role.
    pub role: ControllerRole,
    /// The newest generation id that the switch has seen. `None`: it has seen none, or the version
    /// has none (1.0).
    pub generation_id: Option<u64>,
}

/// Why an order for a role failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoleError {
    /// The request was not sent.
    #[error(transparent)]
    NotSent(#[from] Error),
    /// A later order to stand by came before this one was sent.
    #[error("a later order to stand by replaced this one before it was sent")]
    Replaced,
    /// The generation id is older than the newest that the switch has seen. The role has not
    /// changed.
    #[error(
        "the generation id is stale: the switch has seen {}",
        newest.map_or_else(|| "a newer one".into(), |newest| format!("{newest}"))
    )]
    Stale {
        /// The newest generation id of the switch, if it reports it.
        newest: Option<u64>,
    },
    /// The switch has no roles: it refuses the request or ignores it. Every controller has full
    /// access there. After an order for the role of slave, the controller stands by all the same.
    #[error("the switch has no roles: every controller has full access to it")]
    Unsupported,
    /// The switch refused the request for another reason.
    #[error("the switch refused the role: {0}")]
    Refused(Refusal),
    /// The switch granted another role than was ordered.
    #[error("the switch granted the role {0} instead")]
    Other(ControllerRole),
    /// The switch did not answer in time. After an order for the role of slave, the controller
    /// stands by all the same.
    #[error("the switch did not answer the request for a role in time")]
    Unanswered,
    /// The connection ended before the answer.
    #[error("the connection to the switch ended before it answered")]
    Disconnected,
}

/// An order on its way to a switch. It is already sent, whether or not a task awaits this future.
#[must_use = "await it for the outcome of the order"]
#[derive(Debug)]
pub struct RoleOrderFuture(
    Result<PromiseFuture<Result<GrantedRole, RoleError>>, Option<RoleError>>,
);

impl RoleOrderFuture {
    /// For runtimes: the order was sent; the promise of `answer` receives the outcome.
    pub fn sent(answer: PromiseFuture<Result<GrantedRole, RoleError>>) -> Self {
        RoleOrderFuture(Ok(answer))
    }

    /// For runtimes: the order was not sent.
    pub fn not_sent(error: Error) -> Self {
        RoleOrderFuture(Err(Some(error.into())))
    }
}

impl Future for RoleOrderFuture {
    type Output = Result<GrantedRole, RoleError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(answer) => {
                let answer = Pin::new(answer).poll(context);
                answer.map(|granted| granted.unwrap_or(Err(RoleError::Disconnected)))
            }
            Err(error) => Poll::Ready(Err(error.take().unwrap_or(RoleError::Disconnected))),
        }
    }
}

/// Refuses a message that changes the role of the controller: all apps share the role, and only the
/// worker of the switch may change it.
pub(crate) fn refuse_role_change(message: &ToSwitch<'_>) -> Result<(), Error> {
    let is_change = match message {
        ToSwitch::RoleRequest(role) => role.role != RoleKind::NoChange,
        ToSwitch::Experimenter(message) => {
            matches!(RoleExtension::read(message), Some(RoleExtension::Request(_)))
        }
        _ => false,
    };
    if is_change { Err(Error::RoleChange) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use super::*;
    use crate::Dpid;
    use crate::runtime::promise;

    fn poll(ordered: RoleOrderFuture) -> Poll<Result<GrantedRole, RoleError>> {
        pin!(ordered).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn an_order_ends_with_its_answer_or_with_the_connection() {
        let granted = GrantedRole { role: ControllerRole::Master, generation_id: Some(3) };
        let (kept, answer) = promise();
        kept.resolve(Ok(granted));
        assert_eq!(poll(RoleOrderFuture::sent(answer)), Poll::Ready(Ok(granted)));
        let (broken, answer) = promise();
        drop(broken);
        assert_eq!(poll(RoleOrderFuture::sent(answer)), Poll::Ready(Err(RoleError::Disconnected)));
        let unknown = Error::UnknownSwitch(Dpid(1));
        let not_sent = poll(RoleOrderFuture::not_sent(unknown));
        assert_eq!(not_sent, Poll::Ready(Err(RoleError::NotSent(unknown))));
    }

    #[test]
    fn a_stale_order_names_the_generation_to_jump_over() {
        let stale = |newest| RoleError::Stale { newest }.to_string();
        assert_eq!(stale(Some(7)), "the generation id is stale: the switch has seen 7");
        assert_eq!(stale(None), "the generation id is stale: the switch has seen a newer one");
    }
}
