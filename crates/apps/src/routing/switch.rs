//! The handler of routing for packets that come to the controller.

use std::sync::Arc;

use bellrock_api::{
    Action, Dpid, FlowRemoved, FlowRemovedReason, Handler, Host, HostId, Hosts, MacAddr, Network,
    PacketIn, Port, RateLimit, Result, SharedCounter, Switch, SwitchPort, Verdict, WatchReader,
};
use bellrock_services::paths::{Paths, paths};
use bellrock_services::reserved::{ReservedPorts, reserved_ports, vlan_of};

use super::counters::RoutingCounters;
use super::flows::{FlowTraffic, HostPair};
use super::neighbours::{NeighbourAnswer, answer};
use super::queue::{RoutingEvent, RoutingQueue};
use super::{RoutingMode, RoutingSettings};

/// Routing at one switch.
pub struct RoutingSwitch {
    settings: RoutingSettings,
    network: Network,
    paths: WatchReader<Paths>,
    hosts: WatchReader<Hosts>,
    reserved: WatchReader<ReservedPorts>,
    inbox: Arc<RoutingQueue>,
    counters: RoutingCounters,
    /// Counts the flows that the task sends to the switch.
    flow_mods: Arc<SharedCounter>,
    floods: RateLimit,
}

impl Handler for RoutingSwitch {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        let (Some(src), Some(dst)) = (packet.eth_src(), packet.eth_dst()) else {
            self.counters.malformed += 1;
            return discard(switch, packet);
        };
        if !src.is_station() || dst.is_link_local() {
            self.counters.not_forwarded += 1;
            return discard(switch, packet);
        }
        let vlan = vlan_of(packet);
        if self.is_reserved(SwitchPort::new(switch.dpid(), packet.in_port()), vlan) {
            return discard(switch, packet);
        }
        if dst.is_group() {
            return self.answer_or_flood(switch, packet, vlan);
        }
        match self.hosts.get().get(dst, vlan).map(|host| host.at) {
            Some(at) if self.is_reserved(at, vlan) => discard(switch, packet),
            Some(at) => {
                self.request_flows(src, dst, vlan);
                self.deliver(switch, packet, at)
            }
            None => self.flood(switch, packet, vlan),
        }
    }

    fn flow_removed(&mut self, switch: &mut Switch<'_>, flow: &FlowRemoved<'_>) -> Result<()> {
        let is_over =
            matches!(flow.reason, FlowRemovedReason::IdleTimeout | FlowRemovedReason::HardTimeout);
        if is_over
            && switch.cookie().owns(flow.cookie)
            && let Some(FlowTraffic::Between(pair)) = FlowTraffic::of(&flow.matching.to_match())
        {
            // If this is lost, the flow counts as installed until the two talk again.
            self.inbox.send(RoutingEvent::Silent(pair, switch.dpid()));
        }
        Ok(())
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("flow_mods", self.flow_mods.get());
        self.counters.iter().for_each(|(name, n)| report(name, n));
    }
}

impl RoutingSwitch {
    pub(super) fn new(
        settings: RoutingSettings,
        network: Network,
        inbox: Arc<RoutingQueue>,
        flow_mods: Arc<SharedCounter>,
    ) -> Self {
        RoutingSwitch {
            settings,
            paths: paths(&network).reader(),
            hosts: network.hosts().reader(),
            reserved: reserved_ports(&network).reader(),
            network,
            inbox,
            counters: RoutingCounters::default(),
            flow_mods,
            floods: RateLimit::per_second(settings.floods_per_s),
        }
    }

    /// Returns whether frames of a VLAN at a port belong to another app, and counts them.
    fn is_reserved(&mut self, at: SwitchPort, vlan: Option<u16>) -> bool {
        let is_reserved = self.reserved.get().is_reserved(at, vlan);
        self.counters.reserved += u64::from(is_reserved);
        is_reserved
    }

    /// Answers an address request if possible; otherwise floods the packet.
    fn answer_or_flood(
        &mut self,
        switch: &mut Switch<'_>,
        packet: &PacketIn<'_>,
        vlan: Option<u16>,
    ) -> Result<Verdict> {
        let reserved = self.reserved.get();
        let others = |host: &Host| reserved.is_reserved(host.at, vlan);
        match answer(packet.data(), vlan, self.hosts.get(), others) {
            Some(NeighbourAnswer::Frame(frame)) => {
                self.counters.answered += 1;
                switch.send_packet(&frame, &[Action::output(packet.in_port())])?;
                discard(switch, packet)
            }
            Some(NeighbourAnswer::By(host)) => {
                let at = host.at;
                self.deliver(switch, packet, at)
            }
            None => self.flood(switch, packet, vlan),
        }
    }

    /// Requests flows from one host to another, if the source is known too: forged source addresses
    /// must not fill the table of routes.
    fn request_flows(&mut self, src: MacAddr, dst: MacAddr, vlan: Option<u16>) {
        let is_known = self.hosts.get().get(src, vlan).is_some();
        if self.settings.mode == RoutingMode::Reactive && is_known {
            let pair = HostPair { from: HostId::new(src, vlan), to: HostId::new(dst, vlan) };
            self.counters.busy += u64::from(!self.inbox.send(RoutingEvent::Talking(pair)));
        }
    }

    /// Sends a packet to the host that it is for, if there is a path.
    fn deliver(
        &mut self,
        switch: &mut Switch<'_>,
        packet: &PacketIn<'_>,
        to: SwitchPort,
    ) -> Result<Verdict> {
        let own = switch.dpid();
        if to == SwitchPort::new(own, packet.in_port()) {
            self.counters.same_port += 1;
            return discard(switch, packet);
        }
        let paths = self.paths.get();
        if paths.distance(own, to.dpid).is_none() {
            self.counters.no_path += 1;
            return discard(switch, packet);
        }
        self.counters.delivered += 1;
        if to.dpid == own {
            switch.packet_out(packet, to.port)?;
        } else if packet.is_whole() {
            self.send(to.dpid, packet.data(), &[Action::output(to.port)]);
            return discard(switch, packet);
        } else if let Some(hop) = paths.next_hop(own, to.dpid, 0) {
            // Only this switch has the whole packet.
            switch.packet_out(packet, hop.from.port)?;
        }
        Ok(Verdict::Consume)
    }

    /// Sends a host's packet to all other reachable host ports, except those of another app.
    fn flood(
        &mut self,
        switch: &mut Switch<'_>,
        packet: &PacketIn<'_>,
        vlan: Option<u16>,
    ) -> Result<Verdict> {
        let (own, in_port) = (switch.dpid(), packet.in_port());
        let paths = self.paths.get();
        if paths.edge_ports(own).binary_search(&in_port).is_err() {
            self.counters.not_from_host += 1;
            return discard(switch, packet);
        }
        if !self.floods.pass(switch.now()) {
            self.counters.floods_over_limit += 1;
            return discard(switch, packet);
        }
        self.counters.floods += 1;
        let reserved = self.reserved.get();
        let outputs = |dpid: Dpid, ports: &[Port]| -> Vec<Action<'static>> {
            let is_other = |port: &&Port| dpid != own || **port != in_port;
            let is_open = |port: &&Port| !reserved.is_reserved(SwitchPort::new(dpid, **port), vlan);
            let open_ports = ports.iter().filter(is_other).filter(is_open);
            open_ports.map(|port| Action::output(*port)).collect()
        };
        let own_actions = outputs(own, paths.edge_ports(own));
        if !packet.is_whole() {
            self.counters.truncated += 1;
            switch.packet_out_with(packet, &own_actions)?;
            return Ok(Verdict::Consume);
        }
        let others: Vec<(Dpid, Vec<Action<'_>>)> = paths
            .switches()
            .filter(|(dpid, _)| *dpid != own)
            .filter(|(dpid, _)| paths.distance(own, *dpid).is_some())
            .map(|(dpid, ports)| (dpid, outputs(dpid, ports)))
            .filter(|(_, actions)| !actions.is_empty())
            .collect();
        for (dpid, actions) in others {
            self.send(dpid, packet.data(), &actions);
        }
        if own_actions.is_empty() {
            return discard(switch, packet);
        }
        switch.packet_out_with(packet, &own_actions)?;
        Ok(Verdict::Consume)
    }

    /// Sends a packet_out with these actions to another switch.
    fn send(&mut self, dpid: Dpid, data: &[u8], actions: &[Action<'_>]) {
        let sent = self.network.reachable(dpid).is_some_and(|info| {
            let message = Switch::own_packet(info.version, data, actions);
            self.network.send(dpid, &message).is_ok()
        });
        self.counters.not_sent += u64::from(!sent);
    }
}

/// Drops a packet, and frees its buffer in the switch.
fn discard(switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
    if packet.buffer_id().is_some() {
        switch.packet_out_with(packet, &[])?;
    }
    Ok(Verdict::Consume)
}
