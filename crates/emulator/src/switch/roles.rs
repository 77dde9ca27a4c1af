//! Roles of controllers (1.3.5 §6.3.4, §7.3.9).

use bellrock_openflow::{ErrorCode, FromSwitch, Role, RoleKind};

use super::{Close, Request, Switch};

/// The generation that is reported before any election.
const NO_GENERATION: u64 = u64::MAX;

impl Switch {
    /// Handles a controller's request for a role. A new master makes the old one a slave.
    pub(super) fn role_request(
        &mut self,
        index: usize,
        request: Request<'_>,
        asked: Role,
    ) -> Result<(), Close> {
        let refused = match asked.role {
            RoleKind::Unknown(_) => Some(ErrorCode::RoleBadRole),
            RoleKind::Master | RoleKind::Slave if self.is_stale(asked.generation_id) => {
                Some(ErrorCode::RoleStale)
            }
            _ => None,
        };
        if let Some(code) = refused {
            return self.refuse(index, request, code);
        }
        if matches!(asked.role, RoleKind::Master | RoleKind::Slave) {
            self.generation = Some(asked.generation_id);
        }
        if asked.role == RoleKind::Master {
            let masters = self.channels.iter_mut().filter(|other| other.role == RoleKind::Master);
            masters.for_each(|other| other.role = RoleKind::Slave);
        }
        if asked.role != RoleKind::NoChange {
            self.channels[index].role = asked.role;
        }
        let role = self.channels[index].role;
        let generation_id = self.generation.unwrap_or(NO_GENERATION);
        self.send(index, request.xid, &FromSwitch::RoleReply(Role { role, generation_id }))
    }

    /// Whether an election is older than the newest known one. Generations wrap: the sign of the
    /// difference decides (1.3.5 §6.3.4).
    fn is_stale(&self, generation: u64) -> bool {
        self.generation.is_some_and(|newest| (generation.wrapping_sub(newest) as i64) < 0)
    }
}
