//! The flows that the app installs, and how it finds those that it has installed before.

use std::time::Duration;

use bellrock_api::openflow::{FlowStatsRequest, RequestBody};
use bellrock_api::{
    Action, Change, Dpid, Field, Flow, FlowFlags, HostId, Instruction, MacAddr, Match, Network,
    Port, ReplyBody, Version,
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

/// Flows above those to hosts, which bring the controller what hosts answer to questions for their addresses: ARP
/// replies, and neighbour advertisements, of which 1.0 knows nothing.
pub(super) fn of_answers(version: Version) -> Vec<Flow> {
    const ARP: u16 = 0x0806;
    const REPLY: u128 = 2;
    const IPV6: u16 = 0x86dd;
    const ICMPV6: u128 = 58;
    const NEIGHBOUR_ADVERTISEMENT: u128 = 136;
    let arp = Match::any().eth_type(ARP).with(Field::ArpOp, REPLY);
    let ipv6 = Match::any()
        .eth_type(IPV6)
        .with(Field::IpProto, ICMPV6)
        .with(Field::Icmpv6Type, NEIGHBOUR_ADVERTISEMENT);
    let matches = if version == Version::V1_0 { vec![arp] } else { vec![arp, ipv6] };
    let flow = |matching| {
        let flow = Flow::new(matching).output(Port::CONTROLLER);
        let above = flow.priority + 1;
        flow.priority(above)
    };
    matches.into_iter().map(flow).collect()
}

/// A switch that did not tell its flows is asked again after this.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// Asks a switch for the flows of the app that it has, and tells the inbox. As long as it is there it is asked until it tells
/// them: to go on without would be to take away what carries traffic. Of one that leaves before, nothing is told: it has what
/// it had.
pub(super) fn look_for(network: &Network, dpid: Dpid) {
    let asking = network.clone();
    network.spawn(format!("read the flows of {dpid}"), async move {
        while asking.switch(dpid).is_some() {
            if let Some(found) = told(&asking, dpid).await {
                let inbox = asking.extension::<Inbox>();
                return inbox.tell_in_time(News::Found(dpid, found)).await;
            }
            asking.sleep(ASK_AGAIN).await;
        }
    });
}

/// The flows of the app that a switch tells of, and the ports that they send to.
async fn told(network: &Network, dpid: Dpid) -> Option<Vec<(Traffic, Port)>> {
    let any = Match::any();
    let request = RequestBody::Flow(FlowStatsRequest::all(&any));
    let reply = match network.request(dpid, request).await {
        Ok(reply) => reply,
        // It does not report flows: as far as is known it has none.
        Err(why) if why.is_none() => return Some(Vec::new()),
        Err(_) => return None,
    };
    let Ok(ReplyBody::Flow(flows)) = reply.body() else { return None };
    let own = flows.iter().filter(|flow| network.cookie().owns_flow(flow));
    let traffic = own.filter_map(|flow| {
        let port = flow.instructions.iter().find_map(|it| output(&it))?;
        Some((Traffic::of(&flow.matching.to_match())?, port))
    });
    Some(traffic.collect())
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
