//! Flows that an earlier run has left: whether this run would install them, and their hosts.
//!
//! A flow shows where its hosts were in the last run: the source sent from behind the ingress port,
//! and the destination was behind the output port. If both may still be there, the flow stays, so
//! that packets continue without the controller. A host that has moved meanwhile is found as usual
//! by its first packet, which no flow of its old place hides.

use bellrock_api::{Action, Field, FlowStats, Instruction, MacAddr, Match, Port, Version};

use super::frame::{HostKey, HostPlace};
use super::{LearningSettings, MatchKind};

/// The two ends of a flow: hosts, and their places at the flow's switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowEnds {
    pub(crate) from: (HostKey, HostPlace),
    pub(crate) to: (HostKey, HostPlace),
}

impl FlowEnds {
    pub(super) fn ports(&self) -> [Port; 2] {
        [self.from.1.port(), self.to.1.port()]
    }

    /// The VLAN of its packets, if they are tagged with one.
    pub(super) fn vlan(&self) -> Option<u16> {
        self.from.0.vlan()
    }
}

/// Returns the ends of a flow, if these settings would install such a flow.
pub(super) fn ends(
    flow: &FlowStats<'_>,
    version: Version,
    settings: &LearningSettings,
) -> Option<FlowEnds> {
    let has_settings = flow.priority == settings.priority
        && flow.idle_timeout == settings.idle_timeout_s
        && flow.hard_timeout == settings.hard_timeout_s;
    // 1.0 cannot select tables; its switches number their tables as they like.
    if !has_settings || (version.names_tables() && flow.table != 0) {
        return None;
    }
    let matching = flow.matching.to_match();
    // Flows of 1.0 without wildcards are above all priorities: an earlier version installed them.
    let omitted = [Field::VlanPcp, Field::IpDscp, Field::ArpOp];
    if version.ranks_exact_flows_first() && omitted.into_iter().any(|field| matching.has(field)) {
        return None;
    }
    if kind(&matching)? != settings.matching {
        return None;
    }
    let vlan_vid = matching.value(Field::VlanVid)? as u16;
    let host = |address: Field| {
        let mac = MacAddr::from_u64(matching.value(address)? as u64);
        HostKey::of_station(mac, vlan_vid & !Match::VLAN_PRESENT)
    };
    let in_port = Port(matching.value(Field::InPort)? as u32);
    let from = (host(Field::EthSrc)?, HostPlace::at(in_port)?);
    let to = (host(Field::EthDst)?, HostPlace::at(output(flow)?)?);
    (from.1 != to.1).then_some(FlowEnds { from, to })
}

/// Returns the kind of a match that a learning switch may have made. An exact match has an Ethernet
/// type. Flows for frames without a type could be of either kind; the first packet restores them.
fn kind(matching: &Match) -> Option<MatchKind> {
    const LINK: [Field; 4] = [Field::InPort, Field::EthSrc, Field::EthDst, Field::VlanVid];
    let is_exact = |field| !matching.is_masked(field);
    if !matching.unknown().is_empty() || !matching.fields().all(is_exact) {
        return None;
    }
    if matching.fields().all(|field| LINK.contains(&field)) {
        return Some(MatchKind::L2);
    }
    matching.has(Field::EthType).then_some(MatchKind::Exact)
}

/// The output port of a flow, if output is its only action.
fn output(flow: &FlowStats<'_>) -> Option<Port> {
    let mut instructions = flow.instructions.iter();
    let (Some(Instruction::ApplyActions(actions)), None) =
        (instructions.next(), instructions.next())
    else {
        return None;
    };
    let mut actions = actions.iter();
    match (actions.next(), actions.next()) {
        (Some(Action::Output { port, .. }), None) => Some(port),
        _ => None,
    }
}
