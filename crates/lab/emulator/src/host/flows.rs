//! A host's flows: those that it opens, and those that other hosts open to it.

use std::net::Ipv4Addr;
use std::time::Duration;

use super::tcp::{self, FlowGoal, FlowReport, Receiver, Sender};
use super::timers::HostTimer;
use super::wire::{self, Ipv4, TcpSegment};
use super::{EmulatedHost, HostError, HostFlowId};
use crate::datapath::Effects;
use crate::packet::digest;

/// Maximum number of flows from other hosts. A further flow replaces the one that ended first; if
/// none has ended, it is refused.
const MAX_RECEIVERS: usize = 4096;
/// First port for flows that the host opens itself (RFC 6335 §6).
const FIRST_OWN_PORT: u16 = 49_152;

impl EmulatedHost {
    /// Accepts flows at this port.
    pub fn listen(&mut self, port: u16) {
        self.listening.insert(port);
    }

    /// Opens a flow to a port of another host.
    ///
    /// # Errors
    /// `to` is this host, or there are too many flows.
    pub fn open_flow(
        &mut self,
        to: Ipv4Addr,
        port: u16,
        goal: FlowGoal,
        now: Duration,
        out: &mut Effects,
    ) -> Result<HostFlowId, HostError> {
        if to == self.ip {
            return Err(HostError::ToItself);
        }
        let mut ports = (1..=u16::MAX).map(|n| self.last_port.wrapping_add(n));
        let free = |port: &u16| *port >= FIRST_OWN_PORT && !self.senders.contains_key(port);
        let own = ports.find(free).ok_or(HostError::TooManyFlows)?;
        self.last_port = own;
        let mut segments = Vec::new();
        let isn = self.initial_sequence(own);
        let sender = Sender::open((own, port), isn, goal, now, &mut segments);
        self.timers.set(HostTimer::Sender(own), None, sender.deadline());
        self.senders.insert(own, (to, sender));
        self.send_segments(to, segments, now, out);
        Ok(HostFlowId(own))
    }

    /// State of a flow that this host opened; `None` after it was removed.
    #[must_use]
    pub fn flow(&self, id: HostFlowId) -> Option<FlowReport> {
        self.senders.get(&id.0).map(|(_, sender)| sender.report())
    }

    /// Flows that other hosts opened to this host: their address and port, this host's port, and
    /// the state.
    pub fn flows_in(&self) -> impl Iterator<Item = (Ipv4Addr, u16, u16, FlowReport)> + '_ {
        self.receivers.iter().map(|((ip, from, to), flow)| (*ip, *from, *to, flow.report()))
    }

    /// Removes a flow that this host opened. The other end gets a reset for its next segment.
    pub fn end_flow(&mut self, id: HostFlowId) -> Option<FlowReport> {
        let (_, sender) = self.senders.remove(&id.0)?;
        self.timers.set(HostTimer::Sender(id.0), sender.deadline(), None);
        Some(sender.report())
    }

    /// The initial sequence number of a flow, different for each host and port.
    fn initial_sequence(&self, port: u16) -> u32 {
        let [a, b, c, d] = self.ip.octets();
        let [e, f] = port.to_be_bytes();
        digest(&[a, b, c, d, e, f]) as u32
    }

    pub(super) fn receive_tcp(&mut self, ip: &Ipv4<'_>, now: Duration, out: &mut Effects) -> bool {
        let Some(segment) = ip.tcp() else { return false };
        let peer = ip.src;
        if self.senders.get(&segment.to).is_some_and(|(to, _)| *to == peer) {
            self.with_sender(segment.to, now, out, |sender, out| {
                sender.receive(&segment, now, out);
            });
            return true;
        }
        let key = (peer, segment.from, segment.to);
        if self.receivers.contains_key(&key) {
            self.with_receiver(key, now, out, |receiver, out| receiver.receive(&segment, now, out));
            return true;
        }
        let mut segments = Vec::new();
        let is_request = segment.flags & (wire::SYN | wire::ACK) == wire::SYN;
        if is_request && self.listening.contains(&segment.to) && self.has_room_for_receiver() {
            let isn = self.initial_sequence(segment.from ^ segment.to);
            let receiver = Receiver::open(&segment, isn, now, &mut segments);
            self.timers.set(timer_of(key), None, receiver.deadline());
            self.receivers.insert(key, receiver);
        } else {
            self.counters.no_flow += 1;
            segments.extend(tcp::reset(&segment));
        }
        self.send_segments(peer, segments, now, out);
        true
    }

    /// Whether a flow from another host can be added. Removes an ended one if necessary.
    fn has_room_for_receiver(&mut self) -> bool {
        if self.receivers.len() < MAX_RECEIVERS {
            return true;
        }
        let reports = self.receivers.iter().map(|(key, receiver)| (*key, receiver.report()));
        let ended = reports.filter(|(_, report)| report.state.is_over());
        let first = ended.min_by_key(|(_, report)| report.last).map(|(key, _)| key);
        // An ended flow has no timer.
        first.is_some_and(|key| self.receivers.remove(&key).is_some())
    }

    pub(super) fn with_sender(
        &mut self,
        port: u16,
        now: Duration,
        out: &mut Effects,
        act: impl FnOnce(&mut Sender, &mut Vec<TcpSegment>),
    ) {
        let Some((peer, sender)) = self.senders.get_mut(&port) else { return };
        let (peer, before) = (*peer, sender.deadline());
        let mut segments = std::mem::take(&mut self.segments);
        act(sender, &mut segments);
        self.timers.set(HostTimer::Sender(port), before, sender.deadline());
        self.send_segments(peer, segments, now, out);
    }

    pub(super) fn with_receiver(
        &mut self,
        key: (Ipv4Addr, u16, u16),
        now: Duration,
        out: &mut Effects,
        act: impl FnOnce(&mut Receiver, &mut Vec<TcpSegment>),
    ) {
        let Some(receiver) = self.receivers.get_mut(&key) else { return };
        let before = receiver.deadline();
        let mut segments = std::mem::take(&mut self.segments);
        act(receiver, &mut segments);
        self.timers.set(timer_of(key), before, receiver.deadline());
        self.send_segments(key.0, segments, now, out);
    }

    fn send_segments(
        &mut self,
        to: Ipv4Addr,
        mut segments: Vec<TcpSegment>,
        now: Duration,
        out: &mut Effects,
    ) {
        for segment in segments.drain(..) {
            self.send(to, now, out, |route, frame| route.tcp(&segment, frame));
        }
        self.segments = segments;
    }
}

fn timer_of((ip, from, to): (Ipv4Addr, u16, u16)) -> HostTimer {
    HostTimer::Receiver(ip, from, to)
}
