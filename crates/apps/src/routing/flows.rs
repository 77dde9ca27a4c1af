//! The flows that the app installs, and how it finds those that it has installed before.

use bellrock_api::openflow::{FlowStatsRequest, RequestBody};
use bellrock_api::{
    Action, Change, Dpid, Field, Flow, FlowFlags, HostId, Instruction, MacAddr, Match, Network,
    Port, ReplyBody,
};

use super::news::{Inbox, News};

/// Two hosts, of which one sends to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub(super) from: HostId,
    pub(super) to: HostId,
}

/// The packets of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    /// From one host to another.
    Between(Pair),
    /// To a host, from anywhere.
    To(HostId),
}

impl Traffic {
    pub(super) fn matching(self) -> Match {
        let (from, to) = match self {
            Traffic::Between(pair) => (Some(pair.from), pair.to),
            Traffic::To(host) => (None, host),
        };
        let vlan = to.vlan.map_or(0, |id| Match::VLAN_PRESENT | id);
        let mut matching = Match::any().eth_dst(to.mac).with(Field::VlanVid, vlan.into());
        if let Some(from) = from {
            matching.set(Field::EthSrc, from.mac.to_u64().into());
        }
        matching
    }

    /// The packets of a match, if it is one of these.
    pub(super) fn of(matching: &Match) -> Option<Self> {
        let value = |field| matching.value(field).map(|value| value as u64);
        let vlan = value(Field::VlanVid)? as u16 & !Match::VLAN_PRESENT;
        let vlan = (vlan != 0).then_some(vlan);
        let host = |mac| HostId::new(MacAddr::from_u64(mac), vlan);
        let to = host(value(Field::EthDst)?);
        Some(match value(Field::EthSrc) {
            Some(from) => Traffic::Between(Pair { from: host(from), to }),
            None => Traffic::To(to),
        })
    }

    /// The host that it is for.
    pub(super) fn destination(self) -> HostId {
        match self {
            Traffic::Between(pair) => pair.to,
            Traffic::To(host) => host,
        }
    }

    /// What its path is chosen by.
    pub(super) fn key(self) -> u64 {
        let key = |host: HostId| u64::from(host.vlan.unwrap_or(0)) << 48 | host.mac.to_u64();
        match self {
            Traffic::Between(pair) => {
                key(pair.from).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32) ^ key(pair.to)
            }
            Traffic::To(host) => key(host),
        }
    }

    /// A flow that sends it to a port.
    pub(super) fn out_of(self, port: Port) -> Flow {
        Flow::new(self.matching()).output(port)
    }
}

impl Pair {
    /// The same, for the time that the two talk. The app is told when it goes.
    pub(super) fn out_of(self, port: Port, idle_timeout_s: u16) -> Flow {
        Traffic::Between(self).out_of(port).idle(idle_timeout_s).flags(FlowFlags::SEND_FLOW_REM)
    }
}

/// Asks a switch for the flows of the app that it has, and tells the inbox.
pub(super) fn look_for(network: &Network, dpid: Dpid) {
    let asking = network.clone();
    network.spawn(format!("read the flows of {dpid}"), async move {
        let inbox = asking.extension::<Inbox>();
        let any = Match::any();
        let request = RequestBody::Flow(FlowStatsRequest::all(&any));
        let mut found = Vec::new();
        // Without an answer the switch is on its way down, or comes up again.
        if let Ok(reply) = asking.request(dpid, request).await
            && let Ok(ReplyBody::Flow(flows)) = reply.body()
        {
            for flow in flows.iter().filter(|flow| asking.cookie().owns(flow.cookie)) {
                let traffic = Traffic::of(&flow.matching.to_match());
                found.extend(traffic.zip(flow.instructions.iter().find_map(|it| output(&it))));
            }
        }
        inbox.tell_in_time(News::Found(dpid, found)).await;
    });
}

/// Removes flows of a switch: those of the other mode, which an earlier run had.
pub(super) fn remove(network: &Network, dpid: Dpid, flows: impl Iterator<Item = Traffic>) {
    let removals = flows.map(|traffic| Change::Remove(Flow::new(traffic.matching())));
    let removals: Vec<Change> = removals.collect();
    if !removals.is_empty() {
        // One that stays goes with the next start.
        drop(network.program(dpid, removals));
    }
}

/// The port that an instruction sends to.
fn output(instruction: &Instruction<'_>) -> Option<Port> {
    let Instruction::ApplyActions(actions) = instruction else { return None };
    actions.iter().find_map(|action| match action {
        Action::Output { port, .. } => Some(port),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_tells_whose_packets_it_is_about() {
        for vlan in [None, Some(1), Some(4095)] {
            let host = |n| HostId::new(MacAddr([2, 0, 0, 0, 0, n]), vlan);
            let pair = Pair { from: host(1), to: host(2) };
            for traffic in [Traffic::Between(pair), Traffic::To(host(1))] {
                assert_eq!(Traffic::of(&traffic.matching()), Some(traffic));
            }
        }
        assert_eq!(Traffic::of(&Match::any().eth_dst(MacAddr::ZERO)), None, "any VLAN");
        assert_eq!(Traffic::of(&Match::any()), None);
    }
}
