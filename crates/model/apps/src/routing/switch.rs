//! The handler of routing for packets that come to the controller.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellrock_api::{
    Action, Dpid, FlowRemoved, FlowRemovedReason, Handler, Host, HostId, Hosts, MacAddr, Network,
    PacketIn, Port, RateLimit, Result, SharedCounter, Switch, SwitchPort, Verdict, WatchReader,
};
use bellrock_services::outside_loops::{
    FloodedBefore, FrameDigest, KeptOutPorts, OutsideLoops, RecentFloods,
};
use bellrock_services::paths::{Paths, paths};
use bellrock_services::reserved::{ReservedPorts, reserved_ports, vlan_of};

use super::counters::RoutingCounters;
use super::flows::{FlowTraffic, HostPair};
use super::neighbours::{NeighbourAnswer, answer};
use super::queue::{RoutingEvent, RoutingQueue};
use super::{RoutingMode, RoutingSettings};

/// Maximum number of hosts without a path to their place that are searched for in a second.
const SEARCHED_PER_S: usize = 64;

/// Routing at one switch.
pub struct RoutingSwitch {
    settings: RoutingSettings,
    network: Network,
    paths: WatchReader<Paths>,
    hosts: WatchReader<Hosts>,
    reserved: WatchReader<ReservedPorts>,
    recent: Arc<RecentFloods>,
    loops: Arc<OutsideLoops>,
    kept_out: WatchReader<KeptOutPorts>,
    inbox: Arc<RoutingQueue>,
    counters: RoutingCounters,
    /// Counts the flows that the task sends to the switch.
    flow_mods: Arc<SharedCounter>,
    floods: RateLimit,
    /// Hosts that were searched for since the last tick.
    searched: BTreeSet<HostId>,
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
            Some(at) if !self.is_reachable(switch.dpid(), at) => {
                self.search(switch, packet, HostId::new(dst, vlan))
            }
            Some(at) => {
                if self.is_crossing(switch, packet, at) {
                    return discard(switch, packet);
                }
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

    fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.searched.clear();
        self.loops.tick(&self.network, switch.now());
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
        let loops = OutsideLoops::of(&network);
        RoutingSwitch {
            settings,
            recent: network.extension(),
            kept_out: loops.kept_out().reader(),
            loops,
            paths: paths(&network).reader(),
            hosts: network.hosts().reader(),
            reserved: reserved_ports(&network).reader(),
            network,
            inbox,
            counters: RoutingCounters::default(),
            flow_mods,
            floods: RateLimit::per_second(settings.floods_per_s),
            searched: BTreeSet::new(),
        }
    }

    /// Returns whether frames of a VLAN at a port belong to another app, and counts them.
    fn is_reserved(&mut self, at: SwitchPort, vlan: Option<u16>) -> bool {
        let is_reserved = self.reserved.get().is_reserved(at, vlan);
        self.counters.reserved += u64::from(is_reserved);
        is_reserved
    }

    /// Whether there is a path to the place of a host. There is none if its switch is lost or was
    /// replaced, or is in another part of the network.
    fn is_reachable(&mut self, from: Dpid, place: SwitchPort) -> bool {
        is_reachable(self.paths.get(), from, place)
    }

    /// Searches for a host without a path to its place: floods a packet for it, once a second.
    /// Where it is now, it answers. Flows of before may have brought the packet, so it may come
    /// over a link.
    fn search(
        &mut self,
        switch: &mut Switch<'_>,
        packet: &PacketIn<'_>,
        host: HostId,
    ) -> Result<Verdict> {
        self.counters.no_path += 1;
        if self.searched.len() >= SEARCHED_PER_S || !self.searched.insert(host) {
            return discard(switch, packet);
        }
        let at = SwitchPort::new(switch.dpid(), packet.in_port());
        if self.recent.flood(FrameDigest::of(packet), at, switch.now()) != FloodedBefore::No {
            return discard(switch, packet);
        }
        self.counters.searches += 1;
        self.send_to_all(switch, packet, host.vlan)
    }

    /// Answers an address request if possible; otherwise floods the packet.
    fn answer_or_flood(
        &mut self,
        switch: &mut Switch<'_>,
        packet: &PacketIn<'_>,
        vlan: Option<u16>,
    ) -> Result<Verdict> {
        let (reserved, paths, own) = (self.reserved.get(), self.paths.get(), switch.dpid());
        // Nobody is answered for whose place is gone: the host itself answers, where it is now.
        let others =
            |host: &Host| reserved.is_reserved(host.at, vlan) || !is_reachable(paths, own, host.at);
        let found = answer(packet.data(), vlan, self.hosts.get(), others);
        let frame = match found {
            Some(NeighbourAnswer::Frame(frame)) => frame,
            Some(NeighbourAnswer::By(host)) => {
                let at = host.at;
                return self.deliver(switch, packet, at);
            }
            None => return self.flood(switch, packet, vlan),
        };
        if self.may_answer(switch, packet, &frame, vlan) {
            self.counters.answered += 1;
            switch.send_packet(&frame, &[Action::output(packet.in_port())])?;
        }
        discard(switch, packet)
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
        let to = self.paths.get().attachment(to, own);
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
        let at = SwitchPort::new(own, in_port);
        let paths = self.paths.get();
        // All ports of a segment get what hosts there flood; the first floods it.
        let is_first = paths.segment(at).is_some_and(|ports| ports.first() == Some(&at));
        if !is_first && paths.edge_ports(own).binary_search(&in_port).is_err() {
            self.counters.not_from_host += 1;
            return discard(switch, packet);
        }
        if self.is_copy(switch, packet) {
            self.counters.copies += 1;
            return discard(switch, packet);
        }
        if !self.floods.pass(switch.now()) {
            self.counters.floods_over_limit += 1;
            return discard(switch, packet);
        }
        self.counters.floods += 1;
        self.send_to_all(switch, packet, vlan)
    }

    /// Sends a packet to all reachable host ports and segments but its own, except those of another
    /// app.
    fn send_to_all(
        &mut self,
        switch: &mut Switch<'_>,
        packet: &PacketIn<'_>,
        vlan: Option<u16>,
    ) -> Result<Verdict> {
        let (own, in_port) = (switch.dpid(), packet.in_port());
        let at = SwitchPort::new(own, in_port);
        self.loops.count_flood();
        let paths = self.paths.get();
        // A packet that came over a link does not go back to its sender.
        let sender = packet.eth_src().and_then(|src| self.hosts.get().get(src, vlan));
        let sender = sender.map(|host| host.at);
        let (reserved, kept_out) = (self.reserved.get(), self.kept_out.get());
        let entries: Vec<SwitchPort> = paths
            .segments()
            .filter(|ports| !ports.contains(&at) && !sender.is_some_and(|it| ports.contains(&it)))
            .filter_map(|ports| paths.entry(ports, own))
            .collect();
        let outputs = |dpid: Dpid, ports: &[Port]| -> Vec<Action<'static>> {
            let is_open = |port: &Port| {
                let to = SwitchPort::new(dpid, *port);
                to != at
                    && Some(to) != sender
                    && !reserved.is_reserved(to, vlan)
                    && !kept_out.contains(to)
            };
            let entries = entries.iter().filter(|at| at.dpid == dpid).map(|at| at.port);
            let all = ports.iter().copied().chain(entries).filter(is_open);
            all.map(Action::output).collect()
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

    /// Returns whether a packet for a host at this place needs nothing from this switch: it came in
    /// from a segment, and is for a host there, or came in at another port of the segment too.
    fn is_crossing(&mut self, switch: &Switch<'_>, packet: &PacketIn<'_>, to: SwitchPort) -> bool {
        let (at, now) = (SwitchPort::new(switch.dpid(), packet.in_port()), switch.now());
        let Some(ports) = self.paths.get().segment(at) else { return false };
        if ports.contains(&to) {
            self.counters.same_port += 1;
            return true;
        }
        let before = self.recent.flood(FrameDigest::of(packet), at, now);
        let is_copy = before == FloodedBefore::Elsewhere;
        self.counters.copies += u64::from(is_copy);
        is_copy
    }

    /// Returns whether this switch answers a question: on a segment, only the one through which the
    /// answering host's packets come, and none for a host on the segment. A question from a link is
    /// of a host at an ordinary switch between its ends: an answer from the other end would teach
    /// that switch the wrong port.
    fn may_answer(
        &mut self,
        switch: &Switch<'_>,
        packet: &PacketIn<'_>,
        answer: &[u8],
        vlan: Option<u16>,
    ) -> bool {
        let at = SwitchPort::new(switch.dpid(), packet.in_port());
        let paths = self.paths.get();
        let ends = paths.hop_at(at).map(|hop| [hop.from, hop.to]);
        let segment = paths.segment(at).map(|ports| &ports[..]);
        let Some(ports) = segment.or(ends.as_ref().map(|ends| &ends[..])) else { return true };
        let source = answer.get(6..).and_then(|rest| rest.first_chunk()).copied().map(MacAddr);
        let host = source.and_then(|mac| self.hosts.get().get(mac, vlan).map(|host| host.at));
        host.is_some_and(|to| !ports.contains(&to) && paths.entry(ports, to.dpid) == Some(at))
    }

    /// Returns whether a packet must not be flooded: a copy of it was flooded a short time ago, or
    /// its port is kept out. Records copies that show a loop outside.
    fn is_copy(&mut self, switch: &Switch<'_>, packet: &PacketIn<'_>) -> bool {
        let (at, now) = (SwitchPort::new(switch.dpid(), packet.in_port()), switch.now());
        let frame = FrameDigest::of(packet);
        let is_kept_out = self.kept_out.get().contains(at);
        // What comes in at a port that is kept out comes in at the other port too.
        let before = match is_kept_out {
            true => self.recent.has(frame, at, now),
            false => self.recent.flood(frame, at, now),
        };
        if before == FloodedBefore::Elsewhere {
            self.loops.record_copy(&self.network, at, now);
        }
        is_kept_out || before != FloodedBefore::No
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

/// Whether there is a path from a switch to a place.
fn is_reachable(paths: &Paths, from: Dpid, place: SwitchPort) -> bool {
    paths.distance(from, paths.attachment(place, from).dpid).is_some()
}

/// Drops a packet, and frees its buffer in the switch.
fn discard(switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
    if packet.buffer_id().is_some() {
        switch.packet_out_with(packet, &[])?;
    }
    Ok(Verdict::Consume)
}
