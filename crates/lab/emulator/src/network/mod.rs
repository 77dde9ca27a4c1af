//! Switches, hosts and links on a virtual clock.
//!
//! # What it is
//! An [`EmulatedNetwork`] is built from a [`TopologySpec`]. [`advance`](EmulatedNetwork::advance)
//! runs all events until a time: frames arrive, timers expire. Links delay, queue and lose frames.
//! Bytes for controllers are taken out and put in ([`take_dirty`](EmulatedNetwork::take_dirty),
//! [`control`](EmulatedNetwork::control)); the caller carries them.
//!
//! Runs repeat: the same topology, seed and calls give the same events at the same times, and so
//! the same [`digest`](EmulatedNetwork::digest). Nothing depends on a clock, on memory addresses,
//! or on the order of a hash map.
//!
//! # What it is not
//! It has no threads or sockets, decides nothing about packets, and knows no controllers.

mod control;
mod link;
mod messages;
mod path;
mod queue;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use bellrock_openflow::{FixedStr, Port};
use bellrock_session::Versions;

use crate::datapath::Effects;
use crate::host::{
    EmulatedHost, FlowGoal, HostError, HostFlowId, PingId, PingSettings, PingStatistics,
    StreamSettings,
};
use crate::packet::{EthernetFrame, digest};
use crate::switch::{EmulatedSwitch, SwitchSettings, port_desc, set_rate};
use crate::topology::{
    HostIndex, LinkEnd, LinkIndex, LinkRate, LinkSpec, Node, SwitchIndex, TopologySpec,
};
use link::EmulatedLink;
pub use link::{LinkCounters, SHORTEST_HOP};
pub use messages::{LoggedMessage, MAX_KEPT_BYTES, MessageDirection, MessageLog};
pub use path::{FrameHop, TraceId};
use path::{FrameHops, FrameSource};
use queue::EventQueue;

/// Maximum number of frames on links at a time; more are dropped and counted. A network that floods
/// in loops reaches this within some milliseconds of its time.
pub const MAX_FRAMES_ON_LINKS: u32 = 1 << 20;

/// Settings of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkSettings {
    /// Seed of the random choice of frames that links lose.
    pub seed: u64,
    /// The OpenFlow versions of the switches.
    pub versions: Versions,
    /// Number of flow tables, unless the topology sets it for a switch.
    pub tables: u8,
    /// Maximum number of flows in each table, unless the topology sets it.
    pub table_capacity: u32,
    /// Maximum number of packets that each switch buffers for controllers.
    pub n_buffers: u32,
    /// Number of additional ports of each switch. They are down until a host moves there.
    pub spare_ports: u32,
    /// Number of a queue that each port has.
    pub queue: Option<u32>,
    /// Maximum number of hops that are kept for [`EmulatedNetwork::hops`]; 0 for none.
    pub hops: usize,
    /// Maximum number of messages between each switch and its controllers that are kept for
    /// [`EmulatedNetwork::messages`]; 0 for none.
    pub messages: usize,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        NetworkSettings {
            seed: 0,
            versions: Versions::ALL,
            tables: SwitchSettings::TABLES,
            table_capacity: SwitchSettings::TABLE_CAPACITY,
            n_buffers: SwitchSettings::N_BUFFERS,
            spare_ports: 1,
            queue: None,
            hops: 0,
            messages: 0,
        }
    }
}

/// Counters of a network, besides those of its links, switches and hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Events that were run.
    pub events: u64,
    /// Frames that arrived at a host.
    pub delivered: u64,
    /// Frames that left a switch by a port without a link, including its local port.
    pub unlinked: u64,
    /// Frames dropped because [`MAX_FRAMES_ON_LINKS`] were on links.
    pub overload: u64,
}

/// Why a host cannot move.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// The host has no link.
    #[error("{0} has no link in its topology, so it cannot move")]
    NoLink(String),
    /// The port does not exist.
    #[error("{switch} has no port {port}; spare_ports gives switches ports for hosts to move to")]
    NoPort {
        /// The switch.
        switch: String,
        /// The port.
        port: u32,
    },
    /// The port has a link.
    #[error("port {port} of {switch} has a link; a host moves to a port without one")]
    Taken {
        /// The switch.
        switch: String,
        /// The port.
        port: u32,
    },
    /// All ports have links.
    #[error(
        "{0} has no port without a link; spare_ports gives switches ports for hosts to move to"
    )]
    NoFreePort(String),
}

enum NetworkEvent {
    Arrive { link: LinkIndex, to: usize, cuts: u32, trace: TraceId, frame: EthernetFrame },
    Host(HostIndex),
    Switch(SwitchIndex),
}

/// The link at a port, and the index of its end there.
type PortLink = (LinkIndex, usize);

struct SwitchSlot {
    switch: EmulatedSwitch,
    /// The ports with their links, by number.
    ports: Vec<(u32, Option<PortLink>)>,
    /// Time at which the switch is woken next.
    timer: Option<Duration>,
    /// Whether it is listed among the switches with bytes for controllers.
    dirty: bool,
}

impl SwitchSlot {
    /// Whether it has bytes for a controller, or a channel that must be closed.
    fn has_output(&self) -> bool {
        let switch = &self.switch;
        switch.channels().any(|channel| !switch.output(channel).is_empty())
            || switch.overrun().is_some()
    }

    fn port(&self, port: u32) -> Option<usize> {
        // The ports of most switches are 1, 2, 3, ...
        let guess = (port as usize).wrapping_sub(1);
        if self.ports.get(guess).is_some_and(|(number, _)| *number == port) {
            return Some(guess);
        }
        self.ports.binary_search_by_key(&port, |(number, _)| *number).ok()
    }
}

struct HostSlot {
    host: EmulatedHost,
    link: Option<PortLink>,
    timer: Option<Duration>,
}

/// A network. See the [module](self).
pub struct EmulatedNetwork {
    topology: TopologySpec,
    now: Duration,
    switches: Vec<SwitchSlot>,
    hosts: Vec<HostSlot>,
    links: Vec<EmulatedLink>,
    queue: EventQueue<NetworkEvent>,
    on_links: u32,
    dirty: Vec<SwitchIndex>,
    effects: Effects,
    hops: FrameHops,
    messages: MessageLog,
    counters: NetworkCounters,
    digest: u64,
}

impl EmulatedNetwork {
    /// A network with all links up, and switches without controllers.
    #[must_use]
    pub fn new(topology: &TopologySpec, settings: NetworkSettings) -> Self {
        let mut ports = vec![BTreeMap::new(); topology.switches().len()];
        for link in topology.links() {
            for end in link.ends {
                if let Node::Switch(switch) = end.node {
                    ports[switch.index()].insert(end.port, link.shape.bandwidth);
                }
            }
        }
        let switches = ports.into_iter().enumerate();
        let switches =
            switches.map(|(i, ports)| new_switch(topology, SwitchIndex::of(i), ports, settings));
        let hosts = topology.hosts().iter();
        let hosts = hosts.map(|spec| HostSlot {
            host: EmulatedHost::new(spec.mac, spec.ip).in_network(spec.network),
            link: None,
            timer: None,
        });
        let mut network = EmulatedNetwork {
            switches: switches.collect(),
            hosts: hosts.collect(),
            links: Vec::with_capacity(topology.links().len()),
            topology: topology.clone(),
            now: Duration::ZERO,
            queue: EventQueue::default(),
            on_links: 0,
            dirty: Vec::new(),
            effects: Effects::default(),
            hops: FrameHops::new(settings.hops),
            messages: MessageLog::new(topology.switches().len(), settings.messages),
            counters: NetworkCounters::default(),
            digest: 0,
        };
        for (index, LinkSpec { ends, shape }) in topology.links().iter().enumerate() {
            let seed =
                digest(&[settings.seed.to_le_bytes(), (index as u64).to_le_bytes()].concat());
            network.links.push(EmulatedLink::new(*ends, *shape, seed));
            network.set_present(LinkIndex::of(index), true);
        }
        network
    }

    /// The topology that it was built from. Hosts that have moved are at their old place.
    #[must_use]
    pub fn topology(&self) -> &TopologySpec {
        &self.topology
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Time of the next event.
    #[must_use]
    pub fn next_event(&self) -> Option<Duration> {
        self.queue.next()
    }

    /// Its counters.
    #[must_use]
    pub fn counters(&self) -> NetworkCounters {
        self.counters
    }

    /// A digest of all events in order; different runs share it only by chance.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Runs all events up to and including a time. Time does not go back: a time in the past means
    /// now.
    pub fn advance(&mut self, until: Duration) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    /// Runs events until a time, or until a switch has output for its controllers. Returns whether
    /// one has.
    pub fn advance_to_control(&mut self, until: Duration) -> bool {
        while self.dirty.is_empty() {
            if !self.step(until) {
                self.now = self.now.max(until);
                return false;
            }
        }
        true
    }

    /// Runs the next event, if it is due by `until`.
    fn step(&mut self, until: Duration) -> bool {
        let Some((at, event)) = self.queue.pop(until) else { return false };
        self.now = at;
        self.counters.events += 1;
        match event {
            NetworkEvent::Arrive { link, to, cuts, trace, frame } => {
                self.arrive((link, to), cuts, trace, frame);
            }
            NetworkEvent::Host(host) => {
                // An earlier timer may have replaced this event.
                if self.hosts[host.index()].timer == Some(at) {
                    self.hosts[host.index()].timer = None;
                    self.add_to_digest(1, host.0.into(), 0);
                    self.with_host(host, |host, now, out| host.timers(now, out));
                }
            }
            NetworkEvent::Switch(switch) => {
                if self.switches[switch.index()].timer == Some(at) {
                    self.switches[switch.index()].timer = None;
                    self.add_to_digest(2, switch.0.into(), 0);
                    self.with_switch(switch, FrameSource::Switch, |switch, now, out| {
                        switch.timers(now, out);
                    });
                }
            }
        }
        true
    }

    /// Adds an event to the digest.
    fn add_to_digest(&mut self, kind: u64, source: u64, content: u64) {
        let now = self.now.as_nanos() as u64;
        for word in [kind, now, source, content] {
            // As in `digest`.
            self.digest = (self.digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }

    fn arrive(&mut self, (id, to): PortLink, cuts: u32, trace: TraceId, frame: EthernetFrame) {
        self.on_links -= 1;
        let link = &mut self.links[id.index()];
        if !link.up || link.cuts != cuts {
            let counters = &mut link.directions[1 - to].counters;
            counters.down += 1;
            counters.frames -= 1;
            counters.bytes -= frame.len() as u64;
            return self.effects.recycle(frame);
        }
        let ends = [link.ends[1 - to], link.ends[to]];
        self.add_to_digest(0, u64::from(id.0) << 1 | to as u64, digest(&frame));
        self.hops.note(trace, self.now, ends, &frame);
        match ends[1].node {
            Node::Host(host) => {
                self.counters.delivered += 1;
                self.with_host(host, |host, now, out| {
                    host.receive(&frame, now, out);
                    out.recycle(frame);
                });
            }
            Node::Switch(switch) => {
                let port = ends[1].port;
                self.with_switch(switch, FrameSource::Trace(trace), |switch, now, out| {
                    switch.frame(port, frame, now, out);
                });
            }
        }
    }

    /// Calls `act` with a host, and sends the frames that result.
    fn with_host<T>(
        &mut self,
        id: HostIndex,
        act: impl FnOnce(&mut EmulatedHost, Duration, &mut Effects) -> T,
    ) -> T {
        let slot = &mut self.hosts[id.index()];
        let result = act(&mut slot.host, self.now, &mut self.effects);
        let link = slot.link;
        let wake = wake(slot.host.next_timer(), slot.timer, self.now);
        if let Some(at) = wake {
            slot.timer = Some(at);
            self.put(at, NetworkEvent::Host(id));
        }
        let mut frames = std::mem::take(&mut self.effects.frames);
        for (_, frame) in frames.drain(..) {
            let trace = self.hops.begin(FrameSource::Host(id), &frame);
            self.transmit(link, trace, frame);
        }
        self.effects.frames = frames;
        result
    }

    /// Calls `act` with a switch, and sends the frames that result.
    fn with_switch<T>(
        &mut self,
        id: SwitchIndex,
        source: FrameSource,
        act: impl FnOnce(&mut EmulatedSwitch, Duration, &mut Effects) -> T,
    ) -> T {
        let slot = &mut self.switches[id.index()];
        let result = act(&mut slot.switch, self.now, &mut self.effects);
        if !slot.dirty && slot.has_output() {
            slot.dirty = true;
            self.dirty.push(id);
        }
        let wake = wake(slot.switch.next_timer(), slot.timer, self.now);
        if let Some(at) = wake {
            slot.timer = Some(at);
            self.put(at, NetworkEvent::Switch(id));
        }
        if self.effects.frames.is_empty() {
            return result;
        }
        let mut frames = std::mem::take(&mut self.effects.frames);
        for (port, frame) in frames.drain(..) {
            let slot = &self.switches[id.index()];
            let link = slot.port(port).and_then(|index| slot.ports[index].1);
            let trace = self.hops.begin(source, &frame);
            self.transmit(link, trace, frame);
        }
        self.effects.frames = frames;
        result
    }

    /// Sends a frame on a link.
    fn transmit(&mut self, at: Option<PortLink>, trace: TraceId, frame: EthernetFrame) {
        let Some((id, from)) = at else {
            self.counters.unlinked += 1;
            return self.effects.recycle(frame);
        };
        if self.on_links == MAX_FRAMES_ON_LINKS {
            self.counters.overload += 1;
            return self.effects.recycle(frame);
        }
        let link = &mut self.links[id.index()];
        match link.send(from, frame.len(), self.now) {
            Some(arrives) => {
                let (to, cuts) = (1 - from, link.cuts);
                self.on_links += 1;
                self.put(arrives, NetworkEvent::Arrive { link: id, to, cuts, trace, frame });
            }
            None => self.effects.recycle(frame),
        }
    }

    fn put(&mut self, at: Duration, event: NetworkEvent) {
        // The number of frames is limited, and each host and switch has only a few timers.
        let full = self.queue.push(at, event).is_err();
        debug_assert!(!full, "the queue is bounded by what puts events into it");
    }
}

/// When to wake a host or switch earlier than at `timer`, if it wants that.
fn wake(wants: Option<Duration>, timer: Option<Duration>, now: Duration) -> Option<Duration> {
    // Not now: what is due now is done, and time must pass.
    let wants = wants?.max(now + Duration::from_nanos(1));
    timer.is_none_or(|timer| wants < timer).then_some(wants)
}

fn new_switch(
    topology: &TopologySpec,
    id: SwitchIndex,
    mut ports: BTreeMap<u32, Option<LinkRate>>,
    settings: NetworkSettings,
) -> SwitchSlot {
    let spec = &topology.switches()[id.index()];
    let last = topology.last_port(id);
    let spare = last.saturating_add(settings.spare_ports).min(crate::topology::MAX_PORT);
    ports.extend((last + 1..=spare).map(|port| (port, None)));
    let desc = |(port, bandwidth): (&u32, &Option<LinkRate>)| {
        let mut desc = port_desc(spec.dpid, *port);
        desc.name = FixedStr::new(&format!("{}-eth{port}", spec.name));
        if let Some(bandwidth) = bandwidth {
            set_rate(&mut desc, bandwidth.as_bits_per_second());
        }
        desc
    };
    let queues =
        settings.queue.iter().flat_map(|queue| ports.keys().map(|port| (Port(*port), *queue)));
    let mut switch = EmulatedSwitch::new(SwitchSettings {
        queues: queues.collect(),
        name: spec.name.as_str().into(),
        ports: ports.iter().map(desc).collect(),
        tables: spec.tables.unwrap_or(settings.tables),
        table_capacity: spec.capacity.unwrap_or(settings.table_capacity),
        n_buffers: settings.n_buffers,
        versions: settings.versions,
        ..SwitchSettings::new(spec.dpid, 0)
    });
    let mut effects = Effects::default();
    for port in ports.keys() {
        switch.set_link(*port, false, &mut effects);
    }
    let ports = ports.into_keys().map(|port| (port, None)).collect();
    SwitchSlot { switch, ports, timer: None, dirty: false }
}
