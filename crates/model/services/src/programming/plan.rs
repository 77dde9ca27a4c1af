//! The changes of a plan, and their order.

use bellrock_api::{Change, Dpid, Flow, GroupEntry, MeterEntry, Version};

use super::two_phase;
use super::{CommitError, PlanOutcome};

/// Changes of any number of switches. See the [module](super) for the kinds of plans.
///
/// ```
/// use bellrock_api::{Dpid, Flow, MacAddr, Match, Port};
/// use bellrock_services::programming::Plan;
///
/// let to_host = || Flow::new(Match::any().eth_dst(MacAddr([2, 0, 0, 0, 0, 1])));
/// let plan = Plan::tree()
///     .add_at(0, Dpid(1), to_host().output(Port(1)))
///     .add_at(1, Dpid(2), to_host().output(Port(7)))
///     .add_at(1, Dpid(3), to_host().output(Port(7)));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a plan changes nothing until it is committed"]
pub struct Plan {
    pub(super) order: ChangeOrder,
    pub(super) steps: Vec<PlanStep>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeOrder {
    OneSwitch,
    Independent,
    Tree,
    TwoPhase { tag: u16 },
}

/// When a change is made: all changes of a moment are made before those of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    /// Groups and meters, which flows use.
    Before,
    /// Flows, by their distance from the destination or by their phase.
    At(u32),
    /// Removed flows, after packets under way have had time to leave.
    Removed,
    /// Groups and meters that no flow uses any more.
    After,
}

/// What a flow does with the version tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagRole {
    /// Nothing.
    Plain,
    /// It puts the tag on packets.
    Ingress,
    /// It matches the tag and forwards.
    Transit,
    /// It takes the tag off.
    Egress,
}

#[derive(Clone, Debug)]
pub(super) struct PlanStep {
    pub(super) dpid: Dpid,
    pub(super) moment: Moment,
    pub(super) role: TagRole,
    pub(super) change: Change,
    /// The change that undoes it, if there is one.
    pub(super) undo: Option<Change>,
    pub(super) outcome: PlanOutcome,
}

impl Plan {
    /// Changes of one switch, made together.
    #[expect(clippy::new_without_default, reason = "an empty plan is nothing to fall back on")]
    pub fn new() -> Self {
        Plan { order: ChangeOrder::OneSwitch, steps: Vec::new() }
    }

    /// Changes of any switches of which no packet meets two.
    pub fn independent() -> Self {
        Plan { order: ChangeOrder::Independent, steps: Vec::new() }
    }

    /// Flows that lead to destinations, each with its distance ([`Plan::add_at`]); one or several
    /// trees.
    pub fn tree() -> Self {
        Plan { order: ChangeOrder::Tree, steps: Vec::new() }
    }

    /// Flows of which each packet meets all or none. Within the network they match the VLAN id
    /// `tag` (1 to 4094), which no packet carries yet: a plan that replaces another needs a
    /// different tag. Use [`Plan::ingress`] and [`Plan::egress`] at the edge, and [`Plan::transit`]
    /// between.
    pub fn two_phase(tag: u16) -> Self {
        Plan { order: ChangeOrder::TwoPhase { tag }, steps: Vec::new() }
    }

    /// Adds a flow. If another with the same match and priority exists, use [`Plan::replace`]: then
    /// the old flow comes back if the plan fails.
    pub fn add(self, dpid: Dpid, flow: Flow) -> Self {
        self.add_at(0, dpid, flow)
    }

    /// Adds a flow `distance` hops from the destination: 0 where the destination is attached. Each
    /// flow sends packets to a switch that is nearer.
    pub fn add_at(self, distance: u32, dpid: Dpid, flow: Flow) -> Self {
        let undo = Change::Remove(flow.clone());
        self.step(dpid, Moment::At(distance), Change::Add(flow), Some(undo))
    }

    /// Adds a flow in place of another with the same match and priority.
    pub fn replace(self, dpid: Dpid, old: Flow, new: Flow) -> Self {
        self.replace_at(0, dpid, old, new)
    }

    /// Replaces a flow `distance` hops from the destination.
    pub fn replace_at(self, distance: u32, dpid: Dpid, old: Flow, new: Flow) -> Self {
        self.step(dpid, Moment::At(distance), Change::Add(new), Some(Change::Add(old)))
    }

    /// Removes a flow, after all added flows are confirmed and packets have had time to leave.
    pub fn remove(self, dpid: Dpid, flow: Flow) -> Self {
        let undo = Change::Add(flow.clone());
        self.step(dpid, Moment::Removed, Change::Remove(flow), Some(undo))
    }

    /// Adds a group, before all flows (1.3).
    pub fn group(self, dpid: Dpid, group: GroupEntry) -> Self {
        let undo = Change::RemoveGroup(group.id);
        self.step(dpid, Moment::Before, Change::AddGroup(group), Some(undo))
    }

    /// Changes a group, before all flows (1.3).
    pub fn modify_group(self, dpid: Dpid, old: GroupEntry, new: GroupEntry) -> Self {
        let undo = Change::ModifyGroup(old);
        self.step(dpid, Moment::Before, Change::ModifyGroup(new), Some(undo))
    }

    /// Removes a group, after all flows (1.3).
    pub fn remove_group(self, dpid: Dpid, group: GroupEntry) -> Self {
        let change = Change::RemoveGroup(group.id);
        self.step(dpid, Moment::After, change, Some(Change::AddGroup(group)))
    }

    /// Adds a meter, before all flows (1.3).
    pub fn meter(self, dpid: Dpid, meter: MeterEntry) -> Self {
        let undo = Change::RemoveMeter(meter.id);
        self.step(dpid, Moment::Before, Change::AddMeter(meter), Some(undo))
    }

    /// Changes a meter, before all flows (1.3).
    pub fn modify_meter(self, dpid: Dpid, old: MeterEntry, new: MeterEntry) -> Self {
        let undo = Change::ModifyMeter(old);
        self.step(dpid, Moment::Before, Change::ModifyMeter(new), Some(undo))
    }

    /// Removes a meter, after all flows (1.3).
    pub fn remove_meter(self, dpid: Dpid, meter: MeterEntry) -> Self {
        let change = Change::RemoveMeter(meter.id);
        self.step(dpid, Moment::After, change, Some(Change::AddMeter(meter)))
    }

    /// Adds a flow where packets come in: it puts the version tag on them before its own actions.
    /// It replaces `old` if match and priority are equal. In OpenFlow 1.0 it must match untagged
    /// packets.
    pub fn ingress(self, dpid: Dpid, old: Option<Flow>, new: Flow) -> Self {
        let undo = old.map_or_else(|| Change::Remove(new.clone()), Change::Add);
        let mut plan = self.step(dpid, Moment::At(1), Change::Add(new), Some(undo));
        plan.set_role(TagRole::Ingress);
        plan
    }

    /// Adds a flow that forwards packets with the version tag.
    pub fn transit(self, dpid: Dpid, flow: Flow) -> Self {
        let mut plan = self.add_at(0, dpid, flow);
        plan.set_role(TagRole::Transit);
        plan
    }

    /// Adds a flow where packets leave: it takes the tag off before its own actions.
    pub fn egress(self, dpid: Dpid, flow: Flow) -> Self {
        let mut plan = self.add_at(0, dpid, flow);
        plan.set_role(TagRole::Egress);
        plan
    }

    /// Number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether the plan has no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    fn set_role(&mut self, role: TagRole) {
        if let Some(step) = self.steps.last_mut() {
            step.role = role;
        }
    }

    fn step(mut self, dpid: Dpid, moment: Moment, change: Change, undo: Option<Change>) -> Self {
        let (role, outcome) = (TagRole::Plain, PlanOutcome::NotReached);
        self.steps.push(PlanStep { dpid, moment, role, change, undo, outcome });
        self
    }

    /// Returns the steps in the order in which they are made, with the flows as they are sent.
    pub(super) fn ordered(
        mut self,
        version: impl Fn(Dpid) -> Option<Version>,
    ) -> Result<Vec<PlanStep>, CommitError> {
        let is_two_phase = matches!(self.order, ChangeOrder::TwoPhase { .. });
        if let Some(step) =
            self.steps.iter().find(|step| (step.role != TagRole::Plain) && !is_two_phase)
        {
            return Err(CommitError::NoTag { dpid: step.dpid });
        }
        match self.order {
            ChangeOrder::OneSwitch => {
                let mut switches: Vec<Dpid> = self.steps.iter().map(|step| step.dpid).collect();
                switches.sort_unstable();
                switches.dedup();
                if switches.len() > 1 {
                    return Err(CommitError::NeedsOrder { switches: switches.len() });
                }
            }
            ChangeOrder::Independent | ChangeOrder::Tree => {}
            ChangeOrder::TwoPhase { tag } => two_phase::tag(&mut self.steps, tag, version)?,
        }
        // Steps of one moment stay in the order given.
        self.steps.sort_by_key(|step| step.moment);
        Ok(self.steps)
    }
}
