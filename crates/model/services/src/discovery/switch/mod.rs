//! Discovery at one switch: sends the announcements of its ports, and sorts received LLDP frames.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::packet::eth_type;
use bellrock_api::runtime::EventPublisher as _;
use bellrock_api::{
    Action, Batch, Dpid, ErrorMessage, Flow, FlowRemoved, Handler, Match, Network, PacketFilter,
    PacketIn, Port, PortDesc, PortReason, PortStatus, Refusal, Result, Switch, SwitchInfo,
    SwitchPort, Topology, Verdict, WatchReader, Xid,
};

use super::frame::{self, Announcement, LldpKind, PreparedAnnouncement, Reach};
use super::links::{MISSED_ROUNDS, NEW_PORT, ReceivedAnnouncement};
use super::refused::{RefusedAnnouncements, RefusedPort};
use super::{DiscoveryCounters, DiscoveryMessage, DiscoveryShared};
use crate::exchange::{Exchange, PassedAnnouncement, PeerKeys, Signer};
use crate::own_flows::{OwnFlows, TOP_PRIORITY};

/// Maximum number of LLDP frames of a port that are read in a second. Further ones are dropped: no
/// correct device sends so many, and a host that floods LLDP harms its own port only.
pub const LLDP_PER_PORT_PER_S: u8 = 16;

/// Maximum number of announcements sent to a switch in one turn: some 700 KB of the 1 MiB that all
/// apps share. Announcements of further ports go out a second later, before the others.
pub const ANNOUNCEMENTS_PER_TURN: usize = 4096;

/// The one for segments is first: where both arrive, there may be a cable, which the second
/// decides.
const BOTH: [Reach; 2] = [Reach::Segment, Reach::Cable];

/// Number of recent round trips to the switch. The shortest counts.
const ROUND_TRIPS: usize = 4;

/// Seconds after which a switch that has connected again has refused what it refuses.
const REFUSALS_KNOWN_S: u32 = 5;

/// Name for operators of the flow that brings announcements.
const FLOW_NAME: &str = "flow for announcements";

/// Sends and reads the announcements of one switch.
pub struct DiscoverySwitch {
    shared: Arc<DiscoveryShared>,
    counts: Arc<DiscoveryCounters>,
    dpid: Dpid,
    /// When the switch came up.
    since: Duration,
    ports: BTreeMap<Port, ProbedPort>,
    /// Ticks since the switch came up. They decide which ports are announced.
    second: u32,
    control_latency: ControlLatency,
    topology: WatchReader<Topology>,
    /// Keys of other controllers of the cluster.
    keys: WatchReader<PeerKeys>,
    /// The flow that brings announcements.
    flow: OwnFlows,
    network: Network,
    /// Ports where announcements are refused, as was reported last.
    refused: Arc<RefusedAnnouncements>,
    /// Whether any such port of this switch was reported.
    is_refusal_reported: bool,
    /// The barrier behind announcements of ports that have refused some, and when it was sent.
    retry_barrier: Option<(Xid, Duration)>,
}

struct ProbedPort {
    frame: PreparedAnnouncement,
    since: Duration,
    /// LLDP frames since the last tick.
    lldp_frames: u8,
    /// Whether the port has answered an announcement since the last tick.
    is_answered: bool,
    /// Whether the port's announcement was due but did not fit.
    is_overdue: bool,
    /// The last announcement for each reach.
    xids: [Option<Xid>; BOTH.len()],
    /// Set if the switch has refused the last announcement.
    refused: Option<RefusedPort>,
}

/// Measures round trips to the switch.
#[derive(Default)]
struct ControlLatency {
    pending: Option<(Xid, Duration)>,
    recent: [Duration; ROUND_TRIPS],
    count: usize,
}

impl ControlLatency {
    fn record_reply(&mut self, xid: Xid, now: Duration) {
        if let Some((_, sent_at)) = self.pending.take_if(|(asked, _)| *asked == xid) {
            self.recent[self.count % ROUND_TRIPS] = now.saturating_sub(sent_at);
            self.count += 1;
        }
    }

    /// Returns the time of one way; zero until it is known.
    fn one_way_latency(&self) -> Duration {
        self.samples().min().unwrap_or_default() / 2
    }

    /// Returns the spread of the round trips.
    fn noise(&self) -> Duration {
        let known = self.samples();
        known.clone().max().unwrap_or_default() - known.min().unwrap_or_default()
    }

    fn samples(&self) -> impl Iterator<Item = Duration> + Clone {
        self.recent.iter().take(self.count).copied()
    }
}

/// Returns the flow that brings announcements, whichever destination they have. No flow of an app
/// is above it.
pub(super) fn flow_for_announcements() -> Flow {
    let lldp = Match::any().eth_type(eth_type::LLDP);
    Flow::new(lldp).priority(TOP_PRIORITY).output(Port::CONTROLLER)
}

impl DiscoverySwitch {
    pub(super) fn new(
        shared: Arc<DiscoveryShared>,
        counts: Arc<DiscoveryCounters>,
        info: &SwitchInfo,
        network: &Network,
    ) -> Self {
        let refused = network.extension::<RefusedAnnouncements>();
        DiscoverySwitch {
            is_refusal_reported: !refused.of_switch(info.dpid).is_empty(),
            refused,
            network: network.clone(),
            retry_barrier: None,
            shared,
            counts,
            dpid: info.dpid,
            since: info.since,
            ports: BTreeMap::new(),
            second: 0,
            control_latency: ControlLatency::default(),
            topology: network.topology().reader(),
            keys: Exchange::of(network).keys().reader(),
            flow: OwnFlows::new(network, info, [(FLOW_NAME, flow_for_announcements())]),
        }
    }

    fn add_port(&mut self, desc: &PortDesc, now: Duration) {
        let from = SwitchPort::new(self.dpid, desc.port);
        let ttl = Duration::from_secs(self.shared.interval_s.into()) * MISSED_ROUNDS;
        let frame =
            PreparedAnnouncement::new(self.shared.secrets.instance, from, desc.address, ttl);
        let state = ProbedPort {
            frame,
            since: now,
            lldp_frames: 0,
            is_answered: false,
            is_overdue: false,
            xids: [None; BOTH.len()],
            refused: None,
        };
        self.ports.insert(desc.port, state);
    }

    /// Sends announcements out of a port: one for the other end of the cable, and one for a
    /// segment, unless a cable is known there.
    fn announce(&mut self, switch: &mut Switch<'_>, port: Port, reaches: &[Reach]) -> Result<()> {
        let at = SwitchPort::new(self.dpid, port);
        let topology = self.topology.get();
        let is_cable = topology.link(at).is_some() && topology.segment(at).is_none();
        let Some(state) = self.ports.get_mut(&port) else { return Ok(()) };
        if let Some(refused) = &mut state.refused {
            if !refused.is_due(switch.now()) {
                return Ok(());
            }
            refused.retry(switch.now());
        }
        state.xids = [None; BOTH.len()];
        let reaches = reaches.iter().filter(|reach| !is_cable || **reach == Reach::Cable);
        for (reach, last) in reaches.copied().zip(&mut state.xids) {
            let (key, nonce) = (&self.shared.secrets.key, self.shared.next_nonce());
            // When it will be on the link.
            let sent = switch.now() + self.control_latency.one_way_latency();
            let data = state.frame.sign(key, reach, sent, nonce);
            let actions = [Action::output(port)];
            *last = Some(switch.send(&Switch::own_packet(switch.version(), data, &actions))?);
            self.counts.announcements_sent.add(1);
        }
        Ok(())
    }

    /// Announces as many of these ports as fit. The rest is owed.
    fn announce_all(&mut self, switch: &mut Switch<'_>, ports: &[Port]) {
        // With too many ports at once, cables are more important.
        let is_many = ports.len() * BOTH.len() > ANNOUNCEMENTS_PER_TURN;
        let reaches = if is_many { &[Reach::Cable][..] } else { &BOTH };
        let sent = ports.iter().take(ANNOUNCEMENTS_PER_TURN);
        let sent = sent.take_while(|port| self.announce(switch, **port, reaches).is_ok()).count();
        for port in ports.iter().skip(sent) {
            if let Some(state) = self.ports.get_mut(port) {
                state.is_overdue = true;
            }
        }
    }

    /// Handles the refusal of an announcement. The port is announced again after a pause.
    fn handle_refusal(&mut self, xid: Xid, error: &ErrorMessage<'_>, now: Duration) {
        let sent = |state: &&mut ProbedPort| state.xids.contains(&Some(xid));
        let Some(state) = self.ports.values_mut().find(sent) else { return };
        // Of both announcements the first refusal counts.
        state.xids = [None; BOTH.len()];
        state.refused = Some(RefusedPort::after(state.refused, Refusal::from(error), now));
        self.counts.announcements_refused.add(1);
    }

    /// Ports that were announced again and have not refused it before this barrier take
    /// announcements.
    fn handle_retries(&mut self, barrier: Xid) {
        let Some((_, sent)) = self.retry_barrier.take_if(|(asked, _)| *asked == barrier) else {
            return;
        };
        for state in self.ports.values_mut() {
            state.refused.take_if(|refused| refused.retried().is_some_and(|time| time <= sent));
        }
    }

    /// Publishes which ports refuse announcements, if that has changed.
    fn report_refusals(&mut self, now: Duration) {
        let alarms = self
            .ports
            .iter()
            .filter_map(|(port, state)| Some((*port, state.refused.as_ref()?.alarm()?)));
        let (ports, why): (BTreeSet<Port>, Vec<Refusal>) = alarms.unzip();
        let is_known = self.second >= REFUSALS_KNOWN_S;
        if ports.is_empty() && !(is_known && self.is_refusal_reported) {
            return;
        }
        self.is_refusal_reported = !ports.is_empty();
        if let Some(event) = self.refused.record(self.dpid, ports, why.first().copied(), is_known) {
            self.network.events().publish(now, event);
        }
    }

    /// Starts to measure a round trip.
    fn start_measuring(&mut self, switch: &mut Switch<'_>) {
        // With too many requests open, the next round measures again.
        if let Ok(xid) = switch.barrier() {
            self.control_latency.pending = Some((xid, switch.now()));
        }
    }

    /// Reads an LLDP frame.
    fn lldp(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Verdict {
        let at = SwitchPort::new(self.dpid, packet.in_port());
        let Some(state) = self.ports.get_mut(&at.port) else { return Verdict::Pass };
        if state.lldp_frames == LLDP_PER_PORT_PER_S {
            self.counts.lldp_over_limit.add(1);
            return Verdict::Consume;
        }
        state.lldp_frames += 1;
        let own = &self.shared.secrets;
        let stated = frame::stated_instance(packet.data()).filter(|it| *it != own.instance);
        let signer = stated.map_or(Signer::Nobody, |instance| self.keys.get().signer(instance));
        let (key, peer) = match signer {
            Signer::Peer(peer, key) => (key, Some(peer)),
            Signer::Former(key) => (key, None),
            Signer::Unknown | Signer::Nobody => (&own.key, None),
        };
        let announcement = match LldpKind::read(packet.data(), key) {
            LldpKind::Announcement(announcement) => announcement,
            LldpKind::Forged if matches!(signer, Signer::Unknown) => {
                self.counts.announcements_of_others.add(1);
                self.send(DiscoveryMessage::Unknown(at));
                return Verdict::Consume;
            }
            LldpKind::Forged => {
                self.counts.announcements_forged.add(1);
                self.send(DiscoveryMessage::Forged(at));
                return Verdict::Consume;
            }
            LldpKind::Foreign => {
                self.counts.lldp_of_others.add(1);
                return Verdict::Pass;
            }
        };
        let Announcement { instance, from, sent, nonce } = announcement;
        let message = match peer {
            Some(peer) => {
                let passed = PassedAnnouncement { instance, from, to: at, nonce, sent };
                DiscoveryMessage::OfPeer(peer, passed)
            }
            None if instance == own.instance => {
                let arrived = switch.now().saturating_sub(self.control_latency.one_way_latency());
                DiscoveryMessage::Heard(ReceivedAnnouncement {
                    from,
                    to: at,
                    nonce,
                    sent,
                    arrived: switch.now(),
                    latency: Some(arrived.saturating_sub(sent)),
                    noise: self.control_latency.noise(),
                })
            }
            None => {
                self.counts.announcements_of_others.add(1);
                return Verdict::Consume;
            }
        };
        self.counts.announcements_heard.add(1);
        self.send(message);
        self.announce_back(switch, at);
        Verdict::Consume
    }

    /// Announces a port on which a new link was heard: then both directions are known together.
    fn announce_back(&mut self, switch: &mut Switch<'_>, at: SwitchPort) {
        let topology = self.topology.get();
        let is_known = topology.link(at).is_some() || topology.segment(at).is_some();
        let Some(state) = self.ports.get_mut(&at.port) else { return };
        if !is_known && !std::mem::replace(&mut state.is_answered, true) {
            // If it does not fit now, the port's next turn sends it.
            let _ = self.announce(switch, at.port, &BOTH);
        }
    }

    fn send(&self, message: DiscoveryMessage) {
        if self.shared.sender.try_send(message).is_err() {
            self.counts.announcements_lost.add(1);
        }
    }
}

/// Whether a port is up and can receive packets. Includes the switch's own port ([`Port::LOCAL`]):
/// its machine behind it is a host, or a bridge to another switch.
pub(super) fn is_up(desc: &PortDesc) -> bool {
    desc.port.is_ingress() && desc.is_up()
}

impl PacketFilter for DiscoverySwitch {
    /// Whether a packet is LLDP, without a tag.
    #[inline(always)]
    fn wants(&self, packet: &PacketIn<'_>) -> bool {
        const LLDP: [u8; 2] = eth_type::LLDP.to_be_bytes();
        packet.data().first_chunk::<14>().is_some_and(|[.., t0, t1]| [*t0, *t1] == LLDP)
    }
}

impl Handler for DiscoverySwitch {
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.flow.install(switch)?;
        self.start_measuring(switch);
        let now = switch.now();
        for desc in switch.info().ports.iter().filter(|desc| is_up(desc)) {
            self.add_port(desc, now);
        }
        let ports: Vec<Port> = self.ports.keys().copied().collect();
        self.announce_all(switch, &ports);
        Ok(())
    }

    #[inline]
    fn packet_ins(&mut self, switch: &mut Switch<'_>, batch: &mut Batch<'_>) {
        batch.for_each_wanted(switch, self);
    }

    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        if !self.wants(packet) {
            return Ok(Verdict::Pass);
        }
        let verdict = self.lldp(switch, packet);
        if verdict == Verdict::Consume && packet.buffer_id().is_some() {
            // Frees the switch's buffer.
            switch.packet_out_with(packet, &[])?;
        }
        Ok(verdict)
    }

    fn flow_removed(&mut self, switch: &mut Switch<'_>, flow: &FlowRemoved<'_>) -> Result<()> {
        self.flow.handle_flow_removed(switch, flow)
    }

    fn port_status(&mut self, switch: &mut Switch<'_>, status: &PortStatus) -> Result<()> {
        let port = status.desc.port;
        if status.reason == PortReason::Delete || !is_up(&status.desc) {
            if self.ports.remove(&port).is_some() {
                let at = SwitchPort::new(self.dpid, port);
                self.send(DiscoveryMessage::PortDown { at, switch_since: self.since });
            }
            return Ok(());
        }
        // A port above the switch's maximum is not in its ports, and is ignored here.
        if !self.ports.contains_key(&port) && switch.info().port(port).is_some() {
            self.add_port(&status.desc, switch.now());
            self.announce_all(switch, &[port]);
        }
        Ok(())
    }

    fn barrier(&mut self, switch: &mut Switch<'_>, xid: Xid) -> Result<()> {
        let now = switch.now();
        self.control_latency.record_reply(xid, now);
        self.flow.handle_barrier_reply(xid, now);
        self.handle_retries(xid);
        Ok(())
    }

    fn error(&mut self, switch: &mut Switch<'_>, xid: Xid, error: &ErrorMessage<'_>) -> Result<()> {
        if self.flow.handle_error(xid, error, switch.now()) {
            self.counts.announcement_flow_refused.add(1);
        } else {
            self.handle_refusal(xid, error, switch.now());
        }
        Ok(())
    }

    fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.flow.tick(switch)?;
        self.second = self.second.wrapping_add(1);
        let (now, round) = (switch.now(), self.shared.interval_s);
        let turn = self.second % round;
        if turn == 0 {
            self.start_measuring(switch);
        }
        let (mut due, mut others) = (Vec::new(), Vec::new());
        for (index, (port, state)) in (0..).zip(&mut self.ports) {
            (state.lldp_frames, state.is_answered) = (0, false);
            if let Some(refused) = &state.refused {
                state.is_overdue = false;
                if refused.is_due(now) {
                    due.push(*port);
                }
            } else if std::mem::take(&mut state.is_overdue) {
                due.push(*port);
            } else if index % round == turn || now < state.since + NEW_PORT {
                others.push(*port);
            }
        }
        due.append(&mut others);
        self.announce_all(switch, &due);
        let is_retried =
            |state: &ProbedPort| state.refused.is_some_and(|it| it.retried().is_some());
        if self.retry_barrier.is_none() && self.ports.values().any(is_retried) {
            // Too many requests may be open: then the next tick asks.
            self.retry_barrier = switch.barrier().ok().map(|barrier| (barrier, now));
        }
        self.report_refusals(now);
        Ok(())
    }

    fn switch_down(&mut self, _: &SwitchInfo) {
        self.flow.forget();
        self.shared.counts.remove(self.dpid, &self.counts);
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counts.iter().for_each(|(name, n)| report(name, n));
    }
}

#[cfg(test)]
mod tests;
