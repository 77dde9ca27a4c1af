//! Hosts: small network stacks that send packets, and count and check what they receive.
//!
//! # What it is
//! An [`EmulatedHost`] has one link, one Ethernet and one IPv4 address. It asks for and answers
//! addresses (ARP), sends and answers pings, sends and receives UDP, and carries flows like TCP's
//! ([`FlowState`]'s module says what these lack). It counts what it receives, also what should not
//! arrive: the same unicast frame twice, and malformed frames.
//!
//! Frames and the time go in; frames come out. Each frame of a host differs from its recent frames,
//! in the identification of IPv4 or in the padding of ARP. So a frame that arrives twice was
//! duplicated by the network.
//!
//! # What it is not
//! It routes nothing: packets to other subnets go to its gateway, if it has one ([`HostNetwork`]).
//! It has no other VLAN than its own, neither sends nor reads fragments or IPv6, and does not send
//! to itself.

mod flows;
mod neighbours;
mod ping;
mod tcp;
mod timers;
mod udp;
mod wire;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use bellrock_openflow::MacAddr;

use crate::datapath::Effects;
use crate::packet::{EthernetFrame, digest};
use crate::topology::HostNetwork;
use neighbours::{Neighbours, Overdue};
use ping::Ping;
pub use ping::{PingSettings, PingStatistics};
pub use tcp::{FlowGoal, FlowReport, FlowState};
use tcp::{Receiver, Sender};
use timers::{HostTimer, HostTimers};
pub use udp::{Datagram, StreamSettings, UdpCounters};
use udp::{UdpPort, UdpStream};
use wire::{ArpMessage, EthernetHeader, Ipv4, PacketAddresses, TcpSegment};

/// Number of frames whose digests a host keeps to detect duplicates.
const RECENT_FRAMES: usize = 256;

/// Maximum number of frames that a host keeps when it [captures](EmulatedHost::capture).
pub const CAPTURED_FRAMES: usize = 1024;

/// What a host cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// All identifiers of pings are in use.
    #[error("a host keeps at most 65535 pings; end some with end_ping")]
    TooManyPings,
    /// All own ports are in use.
    #[error("a host keeps at most 16384 flows; end some with end_flow")]
    TooManyFlows,
    /// Too many streams at a time.
    #[error("a host sends at most 65536 streams of datagrams at a time")]
    TooManyStreams,
    /// More data than a frame can carry.
    #[error("a datagram has at most {max} bytes of data, not {0}", max = udp::MAX_DATA_BYTES)]
    TooLong(usize),
    /// Packets to itself.
    #[error("a host cannot send to itself")]
    ToItself,
}

/// A ping of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PingId(u16);

/// A flow that a host opened: its own port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostFlowId(u16);

/// A host's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Frames received.
    pub frames_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Frames sent.
    pub frames_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Unicast frames to another host, as a network floods them until it has learnt the way.
    pub for_others: u64,
    /// Multicast frames that a host does not use, such as LLDP.
    pub ignored: u64,
    /// Unicast frames to this host that arrived a second time.
    pub duplicates: u64,
    /// Bad frames to this host: malformed, tagged, with a wrong checksum, with another host's IP
    /// address, with an unknown protocol.
    pub unexpected: u64,
    /// Echo requests answered.
    pub echo_requests: u64,
    /// Echo replies that no ping waits for, for example after the ping was ended.
    pub stray_replies: u64,
    /// Packets dropped: no host answered for their address, or too many packets waited.
    pub no_address: u64,
    /// ICMP messages "destination unreachable".
    pub unreachable: u64,
    /// Segments that belong to no flow.
    pub no_flow: u64,
}

/// The echo request of one host to another.
pub(crate) fn echo_request(from: &EmulatedHost, to: &EmulatedHost) -> EthernetFrame {
    let (src_mac, src, dst_mac, dst) = (from.mac, from.ip, to.mac, to.ip);
    let mut frame = EthernetFrame::new();
    let route = PacketAddresses { src_mac, dst_mac, src, dst, identification: 0 };
    let data = [0; 56];
    route.icmp(wire::ECHO_REQUEST, 0, [0, 1, 0, 1], &data, &mut frame);
    if let Some(vlan) = from.network.vlan {
        add_tag(vlan, &mut frame);
    }
    frame
}

/// Puts the tag of a VLAN into a frame.
fn add_tag(vlan: u16, frame: &mut EthernetFrame) {
    frame.insert_zeros(wire::TYPE_AT, wire::TAG_LEN);
    frame[wire::TYPE_AT..][..2].copy_from_slice(&wire::TYPE_VLAN.to_be_bytes());
    frame[wire::TYPE_AT + 2..][..2].copy_from_slice(&vlan.to_be_bytes());
}

/// The frame without its tag. `None`: it has none, or that of another VLAN.
fn without_tag_of(vlan: u16, frame: &[u8]) -> Option<Vec<u8>> {
    let (addresses, rest) = frame.split_at_checked(wire::TYPE_AT)?;
    let ([t0, t1, c0, c1], rest) = rest.split_first_chunk()?;
    let is_own = u16::from_be_bytes([*t0, *t1]) == wire::TYPE_VLAN
        && u16::from_be_bytes([*c0, *c1]) & VLAN_ID_BITS == vlan;
    is_own.then(|| [addresses, rest].concat())
}

/// The bits of a tag's control information that are the id of the VLAN.
const VLAN_ID_BITS: u16 = 0x0fff;

/// A host. See the [module](self).
pub struct EmulatedHost {
    mac: MacAddr,
    ip: Ipv4Addr,
    network: HostNetwork,
    identification: u16,
    arp_number: u64,
    neighbours: Neighbours,
    pings: BTreeMap<u16, Ping>,
    last_ping: u16,
    inboxes: BTreeMap<u16, UdpPort>,
    streams: BTreeMap<u32, UdpStream>,
    last_stream: u32,
    senders: BTreeMap<u16, (Ipv4Addr, Sender)>,
    last_port: u16,
    receivers: BTreeMap<(Ipv4Addr, u16, u16), Receiver>,
    listening: BTreeSet<u16>,
    timers: HostTimers,
    /// Buffer for the segments of one event.
    segments: Vec<TcpSegment>,
    recent: VecDeque<u64>,
    /// The received frames, while the host captures.
    captured: Option<VecDeque<Vec<u8>>>,
    counters: HostCounters,
}

impl EmulatedHost {
    /// A host with these addresses.
    #[must_use]
    pub fn new(mac: MacAddr, ip: Ipv4Addr) -> Self {
        EmulatedHost {
            mac,
            ip,
            network: HostNetwork::default(),
            identification: 0,
            arp_number: 0,
            neighbours: Neighbours::default(),
            pings: BTreeMap::new(),
            last_ping: u16::MAX,
            inboxes: BTreeMap::new(),
            streams: BTreeMap::new(),
            last_stream: 0,
            senders: BTreeMap::new(),
            last_port: u16::MAX,
            receivers: BTreeMap::new(),
            listening: BTreeSet::new(),
            timers: HostTimers::default(),
            segments: Vec::new(),
            recent: VecDeque::new(),
            captured: None,
            counters: HostCounters::default(),
        }
    }

    /// Puts it into a network: its subnet, gateway and VLAN.
    #[must_use]
    pub fn in_network(self, network: HostNetwork) -> Self {
        EmulatedHost { network, ..self }
    }

    /// VLAN of its frames, if they have a tag.
    #[must_use]
    pub fn vlan(&self) -> Option<u16> {
        self.network.vlan
    }

    /// Its Ethernet address.
    #[must_use]
    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    /// Its Internet address.
    #[must_use]
    pub fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// Its counters.
    #[must_use]
    pub fn counters(&self) -> HostCounters {
        self.counters
    }

    /// The addresses that it has learnt, in order.
    pub fn neighbours(&self) -> impl Iterator<Item = (Ipv4Addr, MacAddr)> + '_ {
        self.neighbours.known()
    }

    /// Removes all addresses that it has learnt.
    pub fn forget_neighbours(&mut self) {
        self.neighbours.forget();
    }

    /// Time at which [`timers`](Self::timers) has work.
    #[must_use]
    pub fn next_timer(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// Runs the timers that are due.
    pub fn timers(&mut self, now: Duration, out: &mut Effects) {
        while let Some(timer) = self.timers.pop(now) {
            match timer {
                HostTimer::Neighbour(ip) => self.repeat_request(ip, now, out),
                HostTimer::Ping(id) => {
                    if let Some(ping) = self.pings.get_mut(&id) {
                        ping.deadline = None;
                    }
                    self.continue_ping(id, now, out);
                }
                HostTimer::Stream(id) => self.continue_stream(id, now, out),
                HostTimer::Sender(port) => {
                    self.with_sender(port, now, out, |sender, out| sender.timer(now, out));
                }
                HostTimer::Receiver(ip, from, to) => {
                    let key = (ip, from, to);
                    self.with_receiver(key, now, out, |receiver, out| receiver.timer(now, out));
                }
            }
        }
    }

    /// Receives a frame.
    pub fn receive(&mut self, frame: &[u8], now: Duration, out: &mut Effects) {
        self.counters.frames_in += 1;
        self.counters.bytes_in += frame.len() as u64;
        if let Some(captured) = &mut self.captured {
            if captured.len() == CAPTURED_FRAMES {
                captured.pop_front();
            }
            captured.push_back(frame.to_vec());
        }
        let without_tag;
        let frame = match self.network.vlan {
            None => frame,
            Some(vlan) => match without_tag_of(vlan, frame) {
                Some(bare) => {
                    without_tag = bare;
                    &without_tag
                }
                None => {
                    self.counters.ignored += 1;
                    return;
                }
            },
        };
        let Some(ethernet) = EthernetHeader::read(frame) else {
            self.counters.unexpected += 1;
            return;
        };
        let is_for_host = ethernet.dst == self.mac;
        if !is_for_host && !ethernet.dst.is_group() {
            self.counters.for_others += 1;
            return;
        }
        if is_for_host && self.came_before(frame) {
            self.counters.duplicates += 1;
        }
        let understood = match ethernet.ethertype {
            wire::TYPE_ARP => self.receive_arp(&ethernet, now, out),
            wire::TYPE_IPV4 => self.receive_ipv4(ethernet.payload, now, out),
            _ => false,
        };
        match (understood, is_for_host) {
            (true, _) => {}
            (false, true) => self.counters.unexpected += 1,
            (false, false) => self.counters.ignored += 1,
        }
    }

    fn came_before(&mut self, frame: &[u8]) -> bool {
        let digest = digest(frame);
        if self.recent.contains(&digest) {
            return true;
        }
        if self.recent.len() == RECENT_FRAMES {
            self.recent.pop_front();
        }
        self.recent.push_back(digest);
        false
    }

    /// Sends a frame of these bytes, without a check.
    pub fn send_bytes(&mut self, bytes: &[u8], out: &mut Effects) {
        let mut frame = out.frame();
        frame.extend_from_slice(bytes);
        self.send_as_is(frame, out);
    }

    /// Captures the received frames from now on. Returns the frames captured so far, the oldest
    /// first.
    pub fn capture(&mut self) -> Vec<Vec<u8>> {
        self.captured.replace(VecDeque::new()).map(Vec::from).unwrap_or_default()
    }

    /// Sends a frame, with the tag of the host's VLAN.
    fn send_frame(&mut self, mut frame: EthernetFrame, out: &mut Effects) {
        if let Some(vlan) = self.network.vlan {
            add_tag(vlan, &mut frame);
        }
        self.send_as_is(frame, out);
    }

    fn send_as_is(&mut self, frame: EthernetFrame, out: &mut Effects) {
        self.counters.frames_out += 1;
        self.counters.bytes_out += frame.len() as u64;
        out.frames.push((0, frame));
    }

    // Addresses.

    /// Announces its address to all hosts, as a host does in a new place.
    pub fn announce(&mut self, out: &mut Effects) {
        self.send_arp(wire::ARP_REQUEST, MacAddr::BROADCAST, (MacAddr::ZERO, self.ip), out);
    }

    fn send_request(&mut self, ip: Ipv4Addr, out: &mut Effects) {
        self.send_arp(wire::ARP_REQUEST, MacAddr::BROADCAST, (MacAddr::ZERO, ip), out);
    }

    fn repeat_request(&mut self, ip: Ipv4Addr, now: Duration, out: &mut Effects) {
        match self.neighbours.overdue(ip, now) {
            Some(Overdue::Ask(again)) => {
                self.timers.set(HostTimer::Neighbour(ip), None, Some(again));
                self.send_request(ip, out);
            }
            Some(Overdue::GiveUp(waiting)) => {
                self.counters.no_address += waiting.len() as u64;
                waiting.into_iter().for_each(|frame| out.recycle(frame));
            }
            None => {}
        }
    }

    fn send_arp(
        &mut self,
        operation: u16,
        dst: MacAddr,
        (target_mac, target_ip): (MacAddr, Ipv4Addr),
        out: &mut Effects,
    ) {
        self.arp_number += 1;
        let (sender_mac, sender_ip) = (self.mac, self.ip);
        let mut frame = out.frame();
        ArpMessage { operation, sender_mac, sender_ip, target_mac, target_ip }.write(
            dst,
            self.arp_number,
            &mut frame,
        );
        self.send_frame(frame, out);
    }

    fn receive_arp(
        &mut self,
        ethernet: &EthernetHeader<'_>,
        now: Duration,
        out: &mut Effects,
    ) -> bool {
        let Some(arp) = ArpMessage::read(ethernet.payload) else { return false };
        if !arp.sender_mac.is_station() || arp.sender_ip == self.ip {
            return false;
        }
        let for_me = arp.target_ip == self.ip;
        let waiting = self.neighbours.learn(arp.sender_ip, arp.sender_mac, for_me, now);
        if let Some((waiting, again)) = waiting {
            self.timers.set(HostTimer::Neighbour(arp.sender_ip), Some(again), None);
            for mut frame in waiting {
                frame[..6].copy_from_slice(&arp.sender_mac.0);
                self.send_frame(frame, out);
            }
        }
        if for_me && arp.operation == wire::ARP_REQUEST {
            let target = (arp.sender_mac, arp.sender_ip);
            self.send_arp(wire::ARP_REPLY, arp.sender_mac, target, out);
        }
        true
    }

    // Packets.

    fn receive_ipv4(&mut self, packet: &[u8], now: Duration, out: &mut Effects) -> bool {
        let Some(ip) = Ipv4::read(packet) else { return false };
        if ip.dst != self.ip && !ip.dst.is_broadcast() {
            return false;
        }
        match ip.protocol {
            wire::ICMP => self.receive_icmp(&ip, now, out),
            wire::UDP => self.receive_udp(&ip, packet, now, out),
            wire::TCP => self.receive_tcp(&ip, now, out),
            _ => false,
        }
    }

    /// Sends a packet, at once or when the Ethernet address of its destination is known.
    fn send(
        &mut self,
        to: Ipv4Addr,
        now: Duration,
        out: &mut Effects,
        write: impl FnOnce(&PacketAddresses, &mut EthernetFrame),
    ) {
        let Some(hop) = self.network.next_hop(self.ip, to).or(to.is_broadcast().then_some(to))
        else {
            self.counters.no_address += 1;
            return;
        };
        let known = match to.is_broadcast() {
            true => Some(MacAddr::BROADCAST),
            false => self.neighbours.mac(hop, now),
        };
        self.identification = self.identification.wrapping_add(1);
        let mut frame = out.frame();
        let route = PacketAddresses {
            src_mac: self.mac,
            dst_mac: known.unwrap_or(MacAddr::ZERO),
            src: self.ip,
            dst: to,
            identification: self.identification,
        };
        write(&route, &mut frame);
        if known.is_some() {
            self.send_frame(frame, out);
            return;
        }
        match self.neighbours.wait(hop, frame, now) {
            Ok(None) => {}
            Ok(Some(again)) => {
                self.timers.set(HostTimer::Neighbour(hop), None, Some(again));
                self.send_request(hop, out);
            }
            Err(frame) => {
                self.counters.no_address += 1;
                out.recycle(frame);
            }
        }
    }

    // Pings.

    /// Starts to ping an address.
    ///
    /// # Errors
    /// `to` is this host, or there are too many pings.
    pub fn ping(
        &mut self,
        to: Ipv4Addr,
        settings: PingSettings,
        now: Duration,
        out: &mut Effects,
    ) -> Result<PingId, HostError> {
        if to == self.ip {
            return Err(HostError::ToItself);
        }
        let mut ids = (1..=u16::MAX).map(|n| self.last_ping.wrapping_add(n));
        let free = ids.find(|id| !self.pings.contains_key(id));
        let id = free.ok_or(HostError::TooManyPings)?;
        self.last_ping = id;
        self.pings.insert(id, Ping::new(to, settings, now));
        self.continue_ping(id, now, out);
        Ok(PingId(id))
    }

    /// The result of a ping so far; `None` after it was ended.
    #[must_use]
    pub fn ping_statistics(&self, id: PingId) -> Option<PingStatistics> {
        self.pings.get(&id.0).map(|ping| ping.statistics)
    }

    /// Whether a ping has sent all requests and waits for no answer, or was ended.
    #[must_use]
    pub fn is_ping_over(&self, id: PingId) -> bool {
        self.pings.get(&id.0).is_none_or(Ping::is_over)
    }

    /// Ends and removes a ping, and returns its result.
    pub fn end_ping(&mut self, id: PingId) -> Option<PingStatistics> {
        let ping = self.pings.remove(&id.0)?;
        self.timers.set(HostTimer::Ping(id.0), ping.deadline, None);
        Some(ping.statistics)
    }

    fn continue_ping(&mut self, id: u16, now: Duration, out: &mut Effects) {
        let Some(ping) = self.pings.get_mut(&id) else { return };
        let (to, data_len) = (ping.to, usize::from(ping.settings.data_len));
        let due = ping.due(now);
        self.set_ping_timer(id);
        if let Some(number) = due {
            let [i0, i1] = id.to_be_bytes();
            let [n0, n1] = number.to_be_bytes();
            let data = &[0; PingSettings::MAX_DATA_BYTES as usize][..data_len];
            self.send(to, now, out, |route, frame| {
                route.icmp(wire::ECHO_REQUEST, 0, [i0, i1, n0, n1], data, frame);
            });
        }
    }

    fn set_ping_timer(&mut self, id: u16) {
        let Some(ping) = self.pings.get_mut(&id) else { return };
        let wants = ping.wants();
        self.timers.set(HostTimer::Ping(id), ping.deadline, wants);
        ping.deadline = wants;
    }

    fn receive_icmp(&mut self, ip: &Ipv4<'_>, now: Duration, out: &mut Effects) -> bool {
        let Some((kind, code, head, data)) = ip.icmp() else { return false };
        match (kind, code) {
            (wire::ECHO_REQUEST, 0) => {
                self.counters.echo_requests += 1;
                self.send(ip.src, now, out, |route, frame| {
                    route.icmp(wire::ECHO_REPLY, 0, head, data, frame);
                });
            }
            (wire::ECHO_REPLY, 0) => {
                let [i0, i1, n0, n1] = head;
                let id = u16::from_be_bytes([i0, i1]);
                let Some(ping) = self.pings.get_mut(&id).filter(|ping| ping.to == ip.src) else {
                    self.counters.stray_replies += 1;
                    return true;
                };
                ping.record_answer(u16::from_be_bytes([n0, n1]), now);
                self.set_ping_timer(id);
            }
            (wire::UNREACHABLE, _) => self.counters.unreachable += 1,
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests;
