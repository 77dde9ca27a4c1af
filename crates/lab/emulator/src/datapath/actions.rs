//! Checks of actions: which ones a controller may use, and the errors for the rest (1.0 §5.4.4;
//! 1.3.5 §5.12, §7.2.5, §7.4.4.3).

use bellrock_openflow::{
    Action, ErrorCode, Group, ImpossibleAction, KnownHeaders, Match, Port, Version,
};

use super::groups::Groups;
use super::meters::Meters;
use super::ports::DatapathPorts;

/// Actions that were checked. None borrows: the check refuses actions that carry bytes.
pub type CheckedActions = Box<[Action<'static>]>;

/// Maximum number of actions of a flow, and of all buckets of a group. A request of 64 KiB could
/// have twice as many. A statistics reply says more about a flow than the request did, and could
/// then not hold it.
pub const MAX_ACTIONS: usize = 2_000;

/// Checks actions against the ports, groups, meters and tables of the switch.
#[derive(Clone, Copy, Debug)]
pub struct Checker<'a> {
    pub(super) version: Version,
    pub(super) tables: u8,
    pub(super) ports: &'a DatapathPorts,
    pub(super) groups: &'a Groups,
    pub(super) meters: &'a Meters,
    /// Whether the actions belong to a packet_out: only these may output to `TABLE`.
    pub(super) packet_out: bool,
    /// Whether the switch refuses FLOOD as an output port.
    pub(super) refuses_flood: bool,
}

impl Checker<'_> {
    /// Checks a list of actions. If the match of their flow is given, they must fit the packets
    /// that it matches (1.3).
    ///
    /// # Errors
    /// The OpenFlow error (`OFPET_BAD_ACTION`) of the first action that is wrong.
    pub(super) fn check<'a>(
        &self,
        actions: impl Iterator<Item = Action<'a>>,
        matching: Option<&Match>,
    ) -> Result<CheckedActions, ErrorCode> {
        // 1.0 has no such error: an action that does not fit a packet leaves it as it is.
        let inconsistent = ErrorCode::ActionMatchInconsistent;
        let mut known = matching.map(KnownHeaders::of);
        let checked = actions.map(|action| {
            let action = self.action(&action)?;
            if let Some(known) = &mut known {
                if known.check(&action).is_err() && inconsistent.exists_in(self.version) {
                    return Err(inconsistent);
                }
                known.apply(&action);
            }
            Ok(action)
        });
        checked.collect()
    }

    /// Checks the actions of a bucket of `group`. They may name the group itself: loops of groups
    /// are searched for when all buckets are known.
    pub(super) fn bucket<'a>(
        &self,
        group: u32,
        actions: impl Iterator<Item = Action<'a>>,
    ) -> Result<CheckedActions, ErrorCode> {
        let checked = actions.map(|action| match action {
            Action::Group(number) if number == group => Ok(Action::Group(number)),
            action => self.action(&action),
        });
        checked.collect()
    }

    /// Checks one action by itself.
    fn action(&self, action: &Action<'_>) -> Result<Action<'static>, ErrorCode> {
        let require = |ok: bool, error| if ok { Ok(()) } else { Err(error) };
        action.check().map_err(ImpossibleAction::answer)?;
        let bad_queue = ErrorCode::ActionBadQueue;
        Ok(match *action {
            Action::Output { port, max_len } => {
                require(self.is_output(port), ErrorCode::ActionBadOutPort)?;
                Action::Output { port, max_len }
            }
            Action::Enqueue { port, queue } => {
                // A queue belongs to a port. The queue of `IN_PORT` is looked up for each packet.
                let entry = self.ports.get(port.0);
                let known = port == Port::IN_PORT || entry.is_some();
                require(known, ErrorCode::ActionBadOutPort)?;
                require(entry.is_none_or(|entry| entry.queue(queue).is_some()), bad_queue)?;
                Action::Enqueue { port, queue }
            }
            Action::SetQueue(queue) => {
                // The output that follows decides the port.
                require(self.ports.iter().any(|port| port.queue(queue).is_some()), bad_queue)?;
                Action::SetQueue(queue)
            }
            Action::Group(group) => {
                let known = group <= Group::MAX && self.groups.get(group).is_some();
                require(known, ErrorCode::ActionBadOutGroup)?;
                Action::Group(group)
            }
            Action::SetVlanVid(vid) => Action::SetVlanVid(vid),
            Action::SetVlanPcp(pcp) => Action::SetVlanPcp(pcp),
            Action::PushVlan(eth_type) => Action::PushVlan(eth_type),
            Action::PushMpls(eth_type) => Action::PushMpls(eth_type),
            Action::PushPbb(eth_type) => Action::PushPbb(eth_type),
            Action::SetField(field, value) => {
                require(field.is_basic(), ErrorCode::ActionBadSetType)?;
                Action::SetField(field, value)
            }
            Action::SetUnknownField { .. } => return Err(ErrorCode::ActionBadSetType),
            Action::Experimenter { .. } => return Err(ErrorCode::ActionBadExperimenter),
            Action::Unknown { .. } => return Err(ErrorCode::ActionBadType),
            Action::SetTpSrc(port) => Action::SetTpSrc(port),
            Action::SetTpDst(port) => Action::SetTpDst(port),
            Action::CopyTtlOut => Action::CopyTtlOut,
            Action::CopyTtlIn => Action::CopyTtlIn,
            Action::SetMplsTtl(ttl) => Action::SetMplsTtl(ttl),
            Action::DecMplsTtl => Action::DecMplsTtl,
            Action::PopVlan => Action::PopVlan,
            Action::PopMpls(eth_type) => Action::PopMpls(eth_type),
            Action::SetNwTtl(ttl) => Action::SetNwTtl(ttl),
            Action::DecNwTtl => Action::DecNwTtl,
            Action::PopPbb => Action::PopPbb,
        })
    }

    /// Whether packets can be output to this port.
    ///
    /// A port that the switch does not have is refused. Both versions allow this: ports of the
    /// emulator do not come and go. `NORMAL` is refused: an OpenFlow-only switch has no other
    /// forwarding (1.3.5 §4.5).
    fn is_output(&self, port: Port) -> bool {
        match port {
            Port::FLOOD => !self.refuses_flood,
            Port::IN_PORT | Port::ALL | Port::CONTROLLER => true,
            Port::TABLE => self.packet_out,
            Port(number) => self.ports.get(number).is_some(),
        }
    }
}
