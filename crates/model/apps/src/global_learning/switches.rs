//! State that the switches share besides the table: the number of hosts of each port, and messages
//! between switches. Packets between known hosts that do not move use none of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bellrock_api::{Dpid, Port};

use super::notes::HostNote;
use super::place::{Attachment, SwitchNumber};
use super::ports_to_switches::PortsToSwitches;
use crate::learning::frame::{HostKey, HostPlace};

/// Maximum number of switches over the life of a controller. Hosts of further switches are not
/// learnt: their packets are flooded.
pub const MAX_SWITCHES: usize = 16_384;

/// Counters of hosts by port of each switch. Ports that differ by a multiple of it share one.
pub const PORT_COUNTS: usize = 256;

/// Maximum number of messages that wait for a switch. If more come, it removes all its flows.
pub const MAX_MESSAGES: usize = 1024;

pub(super) struct SharedSwitches {
    /// Switches by their numbers, and the numbers by datapath id.
    registry: RwLock<SwitchRegistry>,
    /// Number of connected switches.
    connected: AtomicUsize,
    max_hosts_per_port: u32,
}

#[derive(Default)]
struct SwitchRegistry {
    switches: Vec<Arc<SharedSwitch>>,
    numbers: HashMap<Dpid, SwitchNumber>,
}

/// State of a switch that other switches access.
pub(super) struct SharedSwitch {
    pub(super) number: SwitchNumber,
    dpid: Dpid,
    is_up: AtomicBool,
    /// Its flapping hosts, for the operator.
    flapping: Mutex<Vec<HostKey>>,
    hosts: [AtomicU32; PORT_COUNTS],
    max_hosts_per_port: u32,
    /// Whether there are messages: the only check while there are none.
    has_messages: AtomicBool,
    messages: Mutex<SwitchMessages>,
    /// While it is not connected: the ports to other switches that it knew, for its return. Flows
    /// of the other switches may hide from it the packets that would show the ports.
    ports_to_switches: Mutex<PortsToSwitches>,
}

#[derive(Default)]
struct SwitchMessages {
    queue: Vec<SwitchMessage>,
    is_overflown: bool,
}

/// A message from another switch.
pub(super) enum SwitchMessage {
    /// A host has left this place.
    Gone(HostKey, Attachment),
    /// A host is attached to that switch; flows of an earlier run have it at this place.
    Attached(HostKey, SwitchNumber, HostPlace),
    /// There were too many messages.
    Lost,
}

impl SharedSwitches {
    pub(super) fn new(max_hosts_per_port: u32) -> Self {
        let max_hosts_per_port = match max_hosts_per_port {
            0 => u32::MAX,
            limit => limit,
        };
        SharedSwitches {
            registry: RwLock::default(),
            connected: AtomicUsize::new(0),
            max_hosts_per_port,
        }
    }

    /// Registers a switch that connects. Discards old messages: all its flows are read again.
    pub(super) fn connect(&self, dpid: Dpid) -> Arc<SharedSwitch> {
        self.connected.fetch_add(1, Ordering::Relaxed);
        let mut registry = self.registry.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(switch) = registry.numbers.get(&dpid).and_then(|number| registry.get(*number)) {
            switch.clear();
            switch.is_up.store(true, Ordering::Relaxed);
            return Arc::clone(switch);
        }
        let number = SwitchNumber(registry.switches.len() as u32);
        if registry.switches.len() >= MAX_SWITCHES {
            return Arc::new(SharedSwitch::new(number, dpid, 0));
        }
        let switch = Arc::new(SharedSwitch::new(number, dpid, self.max_hosts_per_port));
        registry.switches.push(Arc::clone(&switch));
        registry.numbers.insert(dpid, number);
        switch
    }

    /// Records that a switch has disconnected.
    pub(super) fn disconnect(&self, switch: &SharedSwitch) {
        switch.is_up.store(false, Ordering::Relaxed);
        self.connected.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn connected(&self) -> usize {
        self.connected.load(Ordering::Relaxed)
    }

    /// All switches that have ever connected, in the order of their numbers.
    pub(super) fn all(&self) -> Vec<Arc<SharedSwitch>> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).switches.clone()
    }

    /// Records that a host has left its place. Its port counts it no longer, and the switches that
    /// may have flows from or to it get a message, except `informed`.
    pub(super) fn host_left(&self, host: HostKey, old: Attachment, informed: SwitchNumber) {
        let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(switch) = registry.get(old.switch()) {
            switch.remove_host(old.place());
            if old.has_flows_there() && old.switch() != informed {
                switch.push(SwitchMessage::Gone(host, old));
            }
        }
        if old.has_flows_elsewhere() {
            let is_other =
                |switch: &&Arc<SharedSwitch>| ![informed, old.switch()].contains(&switch.number);
            let others = registry.switches.iter().filter(is_other);
            others.for_each(|switch| switch.push(SwitchMessage::Gone(host, old)));
        }
    }

    /// Sends messages that a host is attached to a switch, to the switches with these notes.
    pub(super) fn host_attached(&self, host: HostKey, to: SwitchNumber, notes: &[HostNote]) {
        self.send(notes, |note| SwitchMessage::Attached(host, to, note.place));
    }

    /// Sends messages that a host is not at the noted places: the flows are removed.
    pub(super) fn host_gone(&self, host: HostKey, notes: &[HostNote]) {
        self.send(notes, |note| {
            SwitchMessage::Gone(host, Attachment::new(note.switch, note.place.with_flows()))
        });
    }

    fn send(&self, notes: &[HostNote], message: impl Fn(&HostNote) -> SwitchMessage) {
        let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
        for note in notes {
            if let Some(switch) = registry.get(note.switch) {
                switch.push(message(note));
            }
        }
    }
}

impl SwitchRegistry {
    fn get(&self, number: SwitchNumber) -> Option<&Arc<SharedSwitch>> {
        self.switches.get(number.index())
    }
}

impl SharedSwitch {
    fn new(number: SwitchNumber, dpid: Dpid, max_hosts_per_port: u32) -> Self {
        SharedSwitch {
            number,
            dpid,
            is_up: AtomicBool::new(true),
            flapping: Mutex::default(),
            hosts: std::array::from_fn(|_| AtomicU32::new(0)),
            max_hosts_per_port,
            has_messages: AtomicBool::new(false),
            messages: Mutex::default(),
            ports_to_switches: Mutex::default(),
        }
    }

    /// Its datapath id, if the switch is connected.
    pub(super) fn connected_dpid(&self) -> Option<Dpid> {
        self.is_up.load(Ordering::Relaxed).then_some(self.dpid)
    }

    pub(super) fn note_flapping(&self, hosts: impl Iterator<Item = HostKey>) {
        let mut flapping = self.flapping();
        flapping.clear();
        flapping.extend(hosts);
    }

    pub(super) fn is_flapping(&self, host: HostKey) -> bool {
        self.flapping().contains(&host)
    }

    fn flapping(&self) -> MutexGuard<'_, Vec<HostKey>> {
        self.flapping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the ports of its switch until the switch returns.
    pub(super) fn store_ports(&self, ports: PortsToSwitches) {
        *self.ports_to_switches.lock().unwrap_or_else(PoisonError::into_inner) = ports;
    }

    pub(super) fn stored_ports(&self) -> PortsToSwitches {
        self.ports_to_switches.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a host at a port, if the port is below its limit.
    pub(super) fn add_host(&self, place: HostPlace) -> bool {
        let count = self.count(place.port());
        if count.fetch_add(1, Ordering::Relaxed) < self.max_hosts_per_port {
            return true;
        }
        count.fetch_sub(1, Ordering::Relaxed);
        false
    }

    pub(super) fn remove_host(&self, place: HostPlace) {
        self.count(place.port()).fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns whether there may be hosts at a port.
    pub(super) fn has_hosts(&self, port: Port) -> bool {
        self.count(port).load(Ordering::Relaxed) > 0
    }

    fn count(&self, port: Port) -> &AtomicU32 {
        &self.hosts[port.0 as usize % PORT_COUNTS]
    }

    #[inline(always)]
    pub(super) fn has_messages(&self) -> bool {
        // Acquire: a thread that sees the flag also sees the message.
        self.has_messages.load(Ordering::Acquire)
    }

    pub(super) fn next_message(&self) -> Option<SwitchMessage> {
        let mut messages = self.messages();
        if std::mem::take(&mut messages.is_overflown) {
            messages.queue.clear();
            return Some(SwitchMessage::Lost);
        }
        let message = messages.queue.pop();
        if message.is_none() {
            self.has_messages.store(false, Ordering::Relaxed);
        }
        message
    }

    fn push(&self, message: SwitchMessage) {
        let mut messages = self.messages();
        if messages.queue.len() < MAX_MESSAGES {
            messages.queue.push(message);
        } else {
            messages.is_overflown = true;
        }
        self.has_messages.store(true, Ordering::Release);
    }

    fn clear(&self) {
        let mut messages = self.messages();
        *messages = SwitchMessages::default();
        self.has_messages.store(false, Ordering::Relaxed);
    }

    fn messages(&self) -> MutexGuard<'_, SwitchMessages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
