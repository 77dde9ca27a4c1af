//! Host tracking at one switch: reports new hosts, and drops packets that use another host's
//! address.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bellrock_api::packet::{EthHeader, eth_type};
use bellrock_api::{
    Batch, Dpid, ErrorMessage, Flow, FlowRemoved, Handler, HostId, Hosts, Match, Network,
    PacketFilter, PacketIn, Port, Result, Switch, SwitchInfo, SwitchPort, Topology, Verdict,
    WatchReader, Xid,
};

use super::cache::{CacheKey, HostPortCache};
use super::frame::{SenderAddresses, is_from_host, may_state_address, sender};
use super::probe::PROBE_SOURCE;
use super::tracker::Sighting;
use super::{SwitchShared, TrackingMessage, TrackingShared};
use crate::outside_loops::{FloodedBefore, FrameDigest, KeptOutPorts, OutsideLoops, RecentFloods};
use crate::own_flows::{OwnFlows, TOP_PRIORITY};

/// Maximum sightings of new or moved hosts per port and second. Others are learnt later.
pub const SIGHTINGS_PER_PORT_PER_S: u16 = 512;

/// Maximum sightings of known hosts at their ports, per port and second. They renew a host's age,
/// which is minutes: above the limit, each is reported some seconds later.
pub const SEEN_AGAIN_PER_PORT_PER_S: u16 = 2048;

/// Maximum packets of unknown hosts at a port with a link that are reported in a second.
pub const AT_LINKS_PER_PORT_PER_S: u8 = 8;

/// How often a handler clears its cache, in seconds, so that each host is reported again.
pub const REFRESH_S: u32 = 30;

/// Tracks the hosts of one switch.
pub struct HostTrackingSwitch {
    shared: Arc<TrackingShared>,
    state: Arc<SwitchShared>,
    dpid: Dpid,
    topology: WatchReader<Topology>,
    hosts: WatchReader<Hosts>,
    network: Network,
    recent: Arc<RecentFloods>,
    loops: Arc<OutsideLoops>,
    kept_out: WatchReader<KeptOutPorts>,
    /// Hosts at ports that need no action, until the topology or `stale` changes.
    cache: HostPortCache,
    topology_version: u64,
    stale: u64,
    /// Sightings of each port since the last tick.
    sightings: BTreeMap<Port, PortSightings>,
    second: u32,
    /// The flows that bring the answers to probes, whatever flows the apps have.
    flows: OwnFlows,
}

/// Numbers of sightings of one port.
#[derive(Default)]
struct PortSightings {
    /// Of hosts that are new, or elsewhere, or state a new address.
    new_hosts: u16,
    /// Of hosts at their known port.
    known_hosts: u16,
    /// Packets of unknown hosts, if the port has a link.
    at_link: u8,
    /// Whether a frame from [`PROBE_SOURCE`] was reported.
    is_impostor_reported: bool,
}

/// Returns the flows that bring the answers to probes, with their names. A forged ARP reply can
/// make a host send other packets to that address. IPv4 is never an answer, so the switch drops it.
pub(super) fn flows_for_answers() -> [(&'static str, Flow); 2] {
    let to_probe_source = || Match::any().eth_dst(PROBE_SOURCE);
    [
        (
            "flow for answers of hosts",
            Flow::new(to_probe_source()).priority(TOP_PRIORITY - 1).output(Port::CONTROLLER),
        ),
        (
            "flow against forged answers of hosts",
            Flow::new(to_probe_source().eth_type(eth_type::IPV4)).priority(TOP_PRIORITY),
        ),
    ]
}

impl HostTrackingSwitch {
    pub(super) fn new(
        shared: Arc<TrackingShared>,
        state: Arc<SwitchShared>,
        network: &Network,
        info: &SwitchInfo,
    ) -> Self {
        let dpid = info.dpid;
        let loops = OutsideLoops::of(network);
        HostTrackingSwitch {
            network: network.clone(),
            recent: network.extension(),
            kept_out: loops.kept_out().reader(),
            loops,
            cache: HostPortCache::new(shared.multiplier ^ dpid.0),
            shared,
            state,
            dpid,
            topology: network.topology().reader(),
            hosts: network.hosts().reader(),
            topology_version: 0,
            stale: 0,
            sightings: BTreeMap::new(),
            // Switches clear their caches at different times.
            second: (dpid.0 % u64::from(REFRESH_S)) as u32,
            flows: OwnFlows::new(network, info, flows_for_answers()),
        }
    }

    /// Clears the cache if it may be out of date.
    #[inline]
    fn refresh(&mut self) {
        let version = self.topology.get().version();
        let stale = self.state.stale.load(Ordering::Relaxed);
        if (version, stale) != (self.topology_version, self.stale) {
            (self.topology_version, self.stale) = (version, stale);
            self.cache.clear();
        }
    }

    #[inline(never)]
    fn needs_look(&self, packet: &PacketIn<'_>) -> bool {
        let Some(frame) = EthHeader::read(packet.data()) else { return false };
        let is_known = || self.cache.has(CacheKey::of(sender(&frame)), packet.in_port());
        may_state_address(&frame) || frame.dst == PROBE_SOURCE || !is_known()
    }

    /// Looks at a packet. Returns whether the apps get it.
    fn handle_packet(&mut self, packet: &PacketIn<'_>, now: Duration) -> Verdict {
        let Some(frame) = EthHeader::read(packet.data()) else { return Verdict::Pass };
        let at = SwitchPort::new(self.dpid, packet.in_port());
        let on_segment = self.topology.get().segment(at).and_then(|ports| ports.first().copied());
        if frame.src == PROBE_SOURCE {
            // A question for a host on a segment comes in at the segment's other ports.
            return if on_segment.is_some() { Verdict::Consume } else { self.drop_impostor(at) };
        }
        if !is_from_host(&frame) {
            return Verdict::Pass;
        }
        let host = sender(&frame);
        let key = CacheKey::of(host);
        // A packet to the source address of probes is an answer.
        let verdict = if frame.dst == PROBE_SOURCE { Verdict::Consume } else { Verdict::Pass };
        if let Some(place) = on_segment {
            self.look_on_segment(&frame, at.port, place, now);
            return verdict;
        }
        let topology = self.topology.get();
        if topology.is_trunk(at) {
            self.look_at_link(host, key, at);
            return verdict;
        }
        let is_edge = topology.is_edge(at);
        if self.kept_out.get().contains(at) {
            // Hosts behind it are seen at the other port of the loop.
            return verdict;
        }
        let addresses = SenderAddresses::of(&frame);
        let known = self.hosts.get().get(host.mac, host.vlan);
        let (is_known, is_here) = (known.is_some(), known.is_some_and(|known| known.at == at));
        let is_new = match addresses {
            SenderAddresses::Address(ip) => {
                !known.is_some_and(|known| known.addresses.contains(&ip))
            }
            SenderAddresses::Used(_) | SenderAddresses::Nothing => false,
        };
        if is_known && !is_here && self.is_copy(packet, at, now) {
            return Verdict::Consume;
        }
        if !is_edge {
            // For example a port that has just come up. A host that is known elsewhere is not
            // there.
            return if is_known && !is_here { self.drop_claim() } else { verdict };
        }
        let was_seen = is_here && self.cache.has(key, at.port);
        if was_seen && !is_new && verdict == Verdict::Pass {
            return Verdict::Pass;
        }
        // Each host at its known port is reported again once in a while.
        if !self.may_report(at.port, is_here && !was_seen) {
            self.state.counts.sightings_over_limit.add(1);
            return if is_known && !is_here { self.drop_claim() } else { verdict };
        }
        let sighting = Sighting { host, at, addresses, time: now };
        match self.shared.sender.try_send(TrackingMessage::Seen(sighting)) {
            Ok(()) if is_here => self.cache.insert(key, at.port),
            Ok(()) => {}
            Err(_) => self.state.counts.sightings_lost.add(1),
        }
        // Until a claim is decided, packets with the host's address from another port are dropped.
        if is_known && !is_here { self.drop_claim() } else { verdict }
    }

    /// Looks at a packet that came in at a port of a segment: its sender is on the segment, or its
    /// packet only crosses it. All ports of a segment are one place. Nothing is dropped.
    fn look_on_segment(
        &mut self,
        frame: &EthHeader<'_>,
        port: Port,
        place: SwitchPort,
        now: Duration,
    ) {
        let host = sender(frame);
        let (key, addresses) = (CacheKey::of(host), SenderAddresses::of(frame));
        let known = self.hosts.get().get(host.mac, host.vlan);
        let is_known = known.is_some();
        let is_new_address = match addresses {
            SenderAddresses::Address(ip) => {
                known.is_some_and(|known| known.at == place && !known.addresses.contains(&ip))
            }
            SenderAddresses::Used(_) | SenderAddresses::Nothing => false,
        };
        if self.cache.has(key, port) && !is_new_address {
            return;
        }
        if !self.may_report(port, is_known) {
            self.state.counts.sightings_over_limit.add(1);
            return;
        }
        let sighting = Sighting { host, at: place, addresses, time: now };
        match self.shared.sender.try_send(TrackingMessage::Seen(sighting)) {
            Ok(()) if is_known => self.cache.insert(key, port),
            Ok(()) => {}
            Err(_) => self.state.counts.sightings_lost.add(1),
        }
    }

    /// Looks at a packet that came in at a port with a link. It only crosses the link if its sender
    /// is known.
    fn look_at_link(&mut self, host: HostId, key: CacheKey, at: SwitchPort) {
        let is_known = self.hosts.get().get(host.mac, host.vlan).is_some();
        let reported = &mut self.sightings.entry(at.port).or_default().at_link;
        if is_known || *reported >= AT_LINKS_PER_PORT_PER_S {
            self.cache.insert(key, at.port);
            return;
        }
        *reported += 1;
        self.send(TrackingMessage::AtLink(host, at));
    }

    /// Drops a packet from the source address of probes, and reports it: nothing but an attack
    /// sends it. Apps that learnt the address would send answers of hosts to that port.
    fn drop_impostor(&mut self, at: SwitchPort) -> Verdict {
        self.state.counts.probe_address_used.add(1);
        let sightings = self.sightings.entry(at.port).or_default();
        if !std::mem::replace(&mut sightings.is_impostor_reported, true) {
            self.send(TrackingMessage::ProbeAddress(at));
        }
        Verdict::Consume
    }

    fn send(&self, message: TrackingMessage) {
        if self.shared.sender.try_send(message).is_err() {
            self.state.counts.sightings_lost.add(1);
        }
    }

    /// Decides about a packet with the address of a host that is elsewhere. No app that relies on
    /// the places of hosts gets it. Apps that do not are served as without host tracking.
    fn drop_claim(&self) -> Verdict {
        if !self.shared.guards {
            return Verdict::Pass;
        }
        self.state.counts.claims_dropped.add(1);
        Verdict::Consume
    }

    /// Whether a packet of a host that is elsewhere is a flooded frame that a loop outside brings
    /// back. It is dropped, and is no claim.
    fn is_copy(&self, packet: &PacketIn<'_>, at: SwitchPort, now: Duration) -> bool {
        let before = self.recent.has(FrameDigest::of(packet), at, now);
        if before == FloodedBefore::Elsewhere {
            self.loops.record_copy(&self.network, at, now);
        }
        before != FloodedBefore::No
    }

    fn may_report(&mut self, port: Port, is_seen_again: bool) -> bool {
        let sightings = self.sightings.entry(port).or_default();
        let (count, maximum) = match is_seen_again {
            true => (&mut sightings.known_hosts, SEEN_AGAIN_PER_PORT_PER_S),
            false => (&mut sightings.new_hosts, SIGHTINGS_PER_PORT_PER_S),
        };
        *count = count.saturating_add(1);
        *count <= maximum
    }
}

impl PacketFilter for HostTrackingSwitch {
    /// Whether a packet needs a closer look. For nearly all, the sender is known at its port.
    #[inline(always)]
    fn wants(&self, packet: &PacketIn<'_>) -> bool {
        const IPV4: [u8; 2] = eth_type::IPV4.to_be_bytes();
        let Some(header) = packet.data().first_chunk::<14>() else { return false };
        let [.., t0, t1] = *header;
        if [t0, t1] == IPV4 {
            return !self.cache.has(CacheKey::untagged(header), packet.in_port());
        }
        self.needs_look(packet)
    }
}

impl Handler for HostTrackingSwitch {
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.flows.install(switch)
    }

    #[inline]
    fn packet_ins(&mut self, switch: &mut Switch<'_>, batch: &mut Batch<'_>) {
        self.refresh();
        batch.for_each_wanted(switch, self);
    }

    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        let verdict = self.handle_packet(packet, switch.now());
        if verdict == Verdict::Consume && packet.buffer_id().is_some() {
            // Frees the switch's buffer.
            switch.packet_out_with(packet, &[])?;
        }
        Ok(verdict)
    }

    fn flow_removed(&mut self, switch: &mut Switch<'_>, flow: &FlowRemoved<'_>) -> Result<()> {
        self.flows.handle_flow_removed(switch, flow)
    }

    fn error(&mut self, switch: &mut Switch<'_>, xid: Xid, error: &ErrorMessage<'_>) -> Result<()> {
        self.flows.handle_error(xid, error, switch.now());
        Ok(())
    }

    fn barrier(&mut self, switch: &mut Switch<'_>, xid: Xid) -> Result<()> {
        self.flows.handle_barrier_reply(xid, switch.now());
        Ok(())
    }

    fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.sightings.clear();
        self.second = self.second.wrapping_add(1);
        if self.second.is_multiple_of(REFRESH_S) {
            self.cache.clear();
        }
        self.flows.tick(switch)
    }

    fn switch_down(&mut self, _: &SwitchInfo) {
        self.flows.forget();
        self.shared.switches.remove(self.dpid, &self.state);
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.state.counts.iter().for_each(|(name, n)| report(name, n));
    }
}

#[cfg(test)]
mod tests;
