//! Roles of controllers (1.3.5 §6.3.4, §7.3.9), and the extensions about them: Open vSwitch's
//! requests in 1.0, which has no roles, and the ONF's role_status in 1.3.

use bellrock_openflow::{
    ErrorCode, Experimenter, FromSwitch, RoleExtension, RoleKind, RoleMessage, RoleReason,
    RoleStatus,
};

use super::{ChannelClose, EmulatedSwitch, RequestContext};

/// The xid of messages that are not replies.
const UNASKED: u32 = 0;

impl EmulatedSwitch {
    /// Handles a controller's request for a role. A new master makes the old one a slave.
    pub(super) fn role_request(
        &mut self,
        index: usize,
        request: RequestContext<'_>,
        message: RoleMessage,
    ) -> Result<(), ChannelClose> {
        let refused = match message.role {
            RoleKind::Unknown(_) => Some(ErrorCode::RoleBadRole),
            RoleKind::Master | RoleKind::Slave if self.is_stale(message.generation_id) => {
                Some(ErrorCode::RoleStale)
            }
            _ => None,
        };
        if let Some(code) = refused {
            return self.refuse(index, request, code);
        }
        if matches!(message.role, RoleKind::Master | RoleKind::Slave) {
            self.generation = Some(message.generation_id);
        }
        self.set_role(index, message.role);
        let role = self.channels[index].role;
        let generation_id = self.generation.unwrap_or(RoleMessage::NO_GENERATION);
        self.send(index, request.xid, &FromSwitch::RoleReply(RoleMessage { role, generation_id }))
    }

    /// Handles an experimenter's message. In 1.0 it can be a request for a role, as Open vSwitch
    /// knows it: without a generation id, so none is stale.
    pub(super) fn experimenter(
        &mut self,
        index: usize,
        request: RequestContext<'_>,
        message: &Experimenter<'_>,
    ) -> Result<(), ChannelClose> {
        let version = self.channels[index].version();
        let extension = RoleExtension::read(message).filter(|_| !version.has_roles());
        let Some(RoleExtension::Request(role)) = extension else {
            return self.refuse(index, request, ErrorCode::RequestBadExperimenter);
        };
        if let RoleKind::Unknown(_) = role {
            return self.refuse(index, request, ErrorCode::RoleBadRole);
        }
        self.set_role(index, role);
        let reply = RoleExtension::Reply(role);
        reply.write(version, request.xid, &mut self.scratch).map_err(super::replies::cannot_write)
    }

    fn set_role(&mut self, index: usize, role: RoleKind) {
        let others = self.channels.iter_mut().enumerate().filter(|(other, _)| *other != index);
        for (_, other) in others {
            if role == RoleKind::Master && other.role == RoleKind::Master {
                other.role = RoleKind::Slave;
                let generation_id = self.generation.unwrap_or(RoleMessage::NO_GENERATION);
                let role = RoleMessage { role: RoleKind::Slave, generation_id };
                let status = RoleStatus { role, reason: RoleReason::MasterRequest };
                let status = RoleExtension::Status(status);
                // 1.0 does not have this message. The reply is not written yet.
                if status.write(other.version(), UNASKED, &mut self.scratch).is_ok() {
                    other.outbox.append(self.scratch.as_slice());
                }
                self.scratch.clear();
            }
        }
        if role != RoleKind::NoChange {
            self.channels[index].role = role;
        }
    }

    /// Whether an election is older than the newest known one. Generations wrap: the sign of the
    /// difference decides (1.3.5 §6.3.4).
    fn is_stale(&self, generation: u64) -> bool {
        self.generation.is_some_and(|newest| (generation.wrapping_sub(newest) as i64) < 0)
    }
}
