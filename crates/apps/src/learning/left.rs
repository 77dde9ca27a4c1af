//! Flows that an earlier run has left: whether this one would install them too, and what they say of hosts.
//!
//! A flow is a host's word, given to the last run: the one behind the ingress port has sent, and the other one was behind the port that
//! it leads to. If both may still be there it stays, so that their packets go on without the controller; a host that has moved
//! meanwhile is found as always, by its first packet from elsewhere, which no flow of the old place hides.

use bellrock_api::{Action, Field, FlowStats, Instruction, MacAddr, Match, Port, Version};

use super::frame::{HostKey, Place};
use super::{LearningSettings, MatchKind};

/// The two ends of a flow: hosts, and where they are for its switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) from: (HostKey, Place),
    pub(crate) to: (HostKey, Place),
}

impl Ends {
    pub(super) fn ports(&self) -> [Port; 2] {
        [self.from.1.port(), self.to.1.port()]
    }

    /// The VLAN of its packets, if they have a tag with one.
    pub(super) fn vlan(&self) -> Option<u16> {
        self.from.0.vlan()
    }
}

/// The ends of a flow, if it is one as these settings would have it installed.
pub(super) fn ends(
    flow: &FlowStats<'_>,
    version: Version,
    settings: &LearningSettings,
) -> Option<Ends> {
    let as_set = flow.priority == settings.priority
        && flow.idle_timeout == settings.idle_timeout_s
        && flow.hard_timeout == settings.hard_timeout_s;
    // 1.0 has no tables to choose from; its switches number those that they have as they like.
    if !as_set || (version == Version::V1_3 && flow.table != 0) {
        return None;
    }
    let matching = flow.matching.to_match();
    // Flows of 1.0 that leave nothing open are above all priorities: an earlier version of the app had them.
    let open = [Field::VlanPcp, Field::IpDscp, Field::ArpOp];
    if version == Version::V1_0 && open.into_iter().any(|field| matching.has(field)) {
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
    let from = (host(Field::EthSrc)?, Place::at(in_port)?);
    let to = (host(Field::EthDst)?, Place::at(output(flow)?)?);
    (from.1 != to.1).then_some(Ends { from, to })
}

/// Which kind of match it is, if it is one of a learning switch. An exact one says at least what type of packet it is about;
/// frames without a type get flows that could be of either kind, and that the first packet brings back.
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

/// Where a flow sends its packets, if that is all it does.
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
