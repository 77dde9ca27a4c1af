//! The app's flows, and the search for flows of an earlier run.

use bellrock_api::openflow::{FlowStatsRequest, RequestBody};
use bellrock_api::packet::{Arp, NeighbourMessage, eth_type};
use bellrock_api::{
    Action, Backoff, Change, Dpid, Field, Flow, FlowFlags, HostId, Instruction, MacAddr, Match,
    Network, Port, ReplyBody, Version,
};

use super::queue::{RoutingEvent, RoutingQueue};

/// A sender and a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostPair {
    pub(super) from: HostId,
    pub(super) to: HostId,
}

/// The packets of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowTraffic {
    /// From one host to another.
    Between(HostPair),
    /// To a host, from anywhere.
    To(HostId),
}

impl FlowTraffic {
    pub(super) fn matching(self) -> Match {
        let (from, to) = match self {
            FlowTraffic::Between(pair) => (Some(pair.from), pair.to),
            FlowTraffic::To(host) => (None, host),
        };
        let vlan = to.vlan.map_or(0, |id| Match::VLAN_PRESENT | id);
        let mut matching = Match::any().eth_dst(to.mac).with(Field::VlanVid, vlan.into());
        if let Some(from) = from {
            matching.set(Field::EthSrc, from.mac.to_u64().into());
        }
        matching
    }

    /// Reads the traffic of a match, if a flow of the app may have it.
    pub(super) fn of(matching: &Match) -> Option<Self> {
        let value = |field| matching.value(field).map(|value| value as u64);
        let vlan = value(Field::VlanVid)? as u16 & !Match::VLAN_PRESENT;
        let vlan = (vlan != 0).then_some(vlan);
        let host = |mac| HostId::new(MacAddr::from_u64(mac), vlan);
        let to = host(value(Field::EthDst)?);
        Some(match value(Field::EthSrc) {
            Some(from) => FlowTraffic::Between(HostPair { from: host(from), to }),
            None => FlowTraffic::To(to),
        })
    }

    /// The destination host.
    pub(super) fn destination(self) -> HostId {
        match self {
            FlowTraffic::Between(pair) => pair.to,
            FlowTraffic::To(host) => host,
        }
    }

    /// Key that selects one of several shortest paths.
    pub(super) fn key(self) -> u64 {
        let key = |host: HostId| u64::from(host.vlan.unwrap_or(0)) << 48 | host.mac.to_u64();
        match self {
            FlowTraffic::Between(pair) => {
                key(pair.from).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32) ^ key(pair.to)
            }
            FlowTraffic::To(host) => key(host),
        }
    }

    /// A flow that sends this traffic to a port.
    pub(super) fn flow_to(self, port: Port) -> Flow {
        Flow::new(self.matching()).output(port)
    }
}

impl HostPair {
    /// A flow that lasts while the two hosts talk. The switch reports its removal.
    pub(super) fn flow_to(self, port: Port, idle_timeout_s: u16) -> Flow {
        FlowTraffic::Between(self)
            .flow_to(port)
            .idle(idle_timeout_s)
            .flags(FlowFlags::SEND_FLOW_REM)
    }
}

/// Flows with a higher priority than those to hosts. They send hosts' answers to address requests
/// to the controller: ARP replies, and neighbour advertisements, which 1.0 cannot match.
pub(super) fn answer_flows(version: Version) -> Vec<Flow> {
    let arp = Match::any().eth_type(eth_type::ARP).with(Field::ArpOp, Arp::REPLY.into());
    let ipv6 = Match::any()
        .eth_type(eth_type::IPV6)
        .ip_proto(NeighbourMessage::PROTOCOL)
        .with(Field::Icmpv6Type, NeighbourMessage::ADVERTISEMENT.into());
    let matches = match version.can_match(Field::Icmpv6Type) {
        true => vec![arp, ipv6],
        false => vec![arp],
    };
    let flow = |matching| {
        let flow = Flow::new(matching).output(Port::CONTROLLER);
        let above = flow.priority + 1;
        flow.priority(above)
    };
    matches.into_iter().map(flow).collect()
}

/// Requests the app's flows of a switch, and sends them to the inbox. Repeats the request, after
/// pauses that double, while the switch is connected: to continue without the list would remove
/// flows that carry traffic. Sends nothing if this connection ends before: its flows are still as
/// last known, and the next connection has a task of its own.
pub(super) fn request_flows(network: &Network, dpid: Dpid) {
    let task_network = network.clone();
    let connected = move |network: &Network| network.switch(dpid).map(|info| info.since);
    let Some(since) = connected(network) else { return };
    network.spawn(format!("read the flows of {dpid}"), async move {
        let mut backoff = Backoff::default();
        while connected(&task_network) == Some(since) {
            let reported = reported_flows(&task_network, dpid).await;
            if let Some(reported) = reported.filter(|_| connected(&task_network) == Some(since)) {
                let inbox = task_network.extension::<RoutingQueue>();
                return inbox.send_wait(RoutingEvent::Found(dpid, reported)).await;
            }
            backoff.failed(task_network.now());
            task_network.sleep_until(backoff.until()).await;
        }
    });
}

/// The app's flows that a switch reports, and their output ports.
async fn reported_flows(network: &Network, dpid: Dpid) -> Option<Vec<(FlowTraffic, Port)>> {
    let any = Match::any();
    let request = RequestBody::Flow(FlowStatsRequest::all(&any));
    let reply = match network.request(dpid, request).await {
        Ok(reply) => reply,
        // The switch does not report flows: it counts as having none.
        Err(why) if why.is_none() => return Some(Vec::new()),
        Err(_) => return None,
    };
    let Ok(ReplyBody::Flow(flows)) = reply.body() else { return None };
    let own = flows.iter().filter(|flow| network.cookie().owns_flow(flow));
    let traffic = own.filter_map(|flow| {
        let port = flow.instructions.iter().find_map(|instruction| output(&instruction))?;
        Some((FlowTraffic::of(&flow.matching.to_match())?, port))
    });
    Some(traffic.collect())
}

/// Removes flows of the other mode from a switch, left by an earlier run.
pub(super) fn remove(network: &Network, dpid: Dpid, flows: impl Iterator<Item = FlowTraffic>) {
    let removals = flows.map(|traffic| Change::Remove(Flow::new(traffic.matching())));
    let removals: Vec<Change> = removals.collect();
    if !removals.is_empty() {
        // If a removal fails, the next start repeats it.
        drop(network.program(dpid, removals));
    }
}

/// The output port of an instruction.
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
            let pair = HostPair { from: host(1), to: host(2) };
            for traffic in [FlowTraffic::Between(pair), FlowTraffic::To(host(1))] {
                assert_eq!(FlowTraffic::of(&traffic.matching()), Some(traffic));
            }
        }
        assert_eq!(FlowTraffic::of(&Match::any().eth_dst(MacAddr::ZERO)), None, "any VLAN");
        assert_eq!(FlowTraffic::of(&Match::any()), None);
    }
}
