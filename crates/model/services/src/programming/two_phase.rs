//! Adds version tags to the flows of a two-phase plan.
//!
//! 1.0 sets a VLAN id, which tags an untagged packet, and strips it. 1.3 pushes and pops a tag.

use bellrock_api::packet::eth_type;
use bellrock_api::{Action, Change, Dpid, Field, Flow, Version, openflow::Versions};

use super::CommitError;
use super::plan::{PlanStep, TagRole};

/// Valid VLAN ids of packets.
const TAGS: std::ops::RangeInclusive<u16> = 1..=4094;

/// Adds the version tag to each flow that has a role.
pub(super) fn tag(
    steps: &mut [PlanStep],
    tag: u16,
    version: impl Fn(Dpid) -> Option<Version>,
) -> Result<(), CommitError> {
    if !TAGS.contains(&tag) {
        return Err(CommitError::BadTag { tag });
    }
    for step in steps.iter_mut().filter(|step| step.role != TagRole::Plain) {
        // A switch that is not up fails when the plan is sent; any version will do here.
        let version = version(step.dpid).unwrap_or(Versions::ALL.highest());
        let (dpid, role) = (step.dpid, step.role);
        let Change::Add(flow) = &step.change else { continue };
        if role == TagRole::Ingress
            && !version.pushes_vlan_tags()
            && flow.matching.clone().untagged() != flow.matching
        {
            return Err(CommitError::LosesTags { dpid });
        }
        let tagged = tagged(flow, role, tag, version).ok_or(CommitError::OwnTags { dpid })?;
        if let Some(Change::Remove(undone)) = &mut step.undo {
            *undone = tagged.clone();
        }
        step.change = Change::Add(tagged);
    }
    Ok(())
}

/// Returns the flow with the tag. `None` if it uses VLAN tags: a packet has one version tag only.
fn tagged(flow: &Flow, role: TagRole, tag: u16, version: Version) -> Option<Flow> {
    let matches_vlan = flow.matching.has(Field::VlanVid) && role != TagRole::Ingress;
    if matches_vlan || flow.applied().iter().any(is_about_vlans) {
        return None;
    }
    let put_on: &[Action<'static>] = match version.pushes_vlan_tags() {
        false => &[Action::SetVlanVid(tag)],
        true => &[
            Action::PushVlan(eth_type::VLAN),
            Action::SetField(
                Field::VlanVid,
                bellrock_api::Match::VLAN_PRESENT as u128 | tag as u128,
            ),
        ],
    };
    let mut tagged = flow.clone();
    match role {
        TagRole::Plain => {}
        TagRole::Ingress => tagged.prepend(put_on),
        TagRole::Transit => tagged.matching = tagged.matching.vlan_id(tag),
        TagRole::Egress => {
            tagged.matching = tagged.matching.vlan_id(tag);
            tagged.prepend(&[Action::PopVlan]);
        }
    }
    Some(tagged)
}

fn is_about_vlans(action: &Action<'_>) -> bool {
    matches!(
        action,
        Action::PushVlan(_)
            | Action::PopVlan
            | Action::SetVlanVid(_)
            | Action::SetVlanPcp(_)
            | Action::SetField(Field::VlanVid | Field::VlanPcp, _)
    )
}
