//! Roles of a switch that a test plays.

use bellrock_api::openflow::{
    Bytes, ErrorMessage, FromSwitch, Out, RoleExtension, RoleKind, RoleMessage, ToSwitch,
};
use bellrock_api::{ErrorCode, Version};

/// How a switch handles requests for roles.
#[derive(Default)]
pub struct FakeRoles {
    /// `None`: it ignores them.
    pub kind: Option<RoleKind>,
    /// The newest generation id that it has seen.
    pub generation: Option<u64>,
    /// It refuses all requests so.
    pub refuses: Option<ErrorCode>,
    /// It refuses requests that change the role so.
    pub refuses_changes: Option<ErrorCode>,
    /// It grants this role instead of any other.
    pub grants: Option<RoleKind>,
    /// Number of elections of others behind each question for the role.
    pub elections: u64,
}

impl FakeRoles {
    /// A switch with roles. The controller is equal.
    pub fn equal() -> Self {
        FakeRoles { kind: Some(RoleKind::Equal), ..FakeRoles::default() }
    }

    pub(super) fn answer(
        &mut self,
        version: Version,
        xid: u32,
        body: &ToSwitch<'_>,
        out: &mut Out,
    ) {
        let asked = match body {
            ToSwitch::RoleRequest(role) => *role,
            ToSwitch::Experimenter(message) => match RoleExtension::read(message) {
                // Without a generation id, none is stale.
                Some(RoleExtension::Request(role)) => {
                    RoleMessage { role, generation_id: self.generation.unwrap_or(0) }
                }
                _ => return,
            },
            _ => return,
        };
        let is_question = asked.role == RoleKind::NoChange;
        let takes_part = matches!(asked.role, RoleKind::Master | RoleKind::Slave);
        // Ids wrap around: the sign of the difference decides (1.3.5 §6.3.4).
        let distance = |newest| asked.generation_id.wrapping_sub(newest).cast_signed();
        let is_stale = self.generation.is_some_and(|newest| distance(newest) < 0);
        let change = self.refuses_changes.filter(|_| !is_question);
        let code =
            self.refuses.or(change).or((takes_part && is_stale).then_some(ErrorCode::RoleStale));
        if let Some(code) = code {
            let error = FromSwitch::Error(ErrorMessage::Standard { code, data: Bytes(&[]) });
            return error.encode(version, xid, out).unwrap();
        }
        let Some(kind) = &mut self.kind else { return };
        if !is_question {
            *kind = self.grants.unwrap_or(asked.role);
        }
        if takes_part {
            self.generation = Some(asked.generation_id);
        }
        let role = *kind;
        match version {
            Version::V1_0 => RoleExtension::Reply(role).write(version, xid, out).unwrap(),
            Version::V1_3 => {
                let generation_id = self.generation.unwrap_or(RoleMessage::NO_GENERATION);
                let reply = FromSwitch::RoleReply(RoleMessage { role, generation_id });
                reply.encode(version, xid, out).unwrap();
            }
        }
        if is_question && self.elections > 0 {
            self.generation = Some(self.generation.unwrap_or(0) + self.elections);
        }
    }
}
