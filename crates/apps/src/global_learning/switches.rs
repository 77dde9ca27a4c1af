//! State that the switches share besides the table: the number of hosts of each port, and letters
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

/// Maximum number of letters that wait for a switch. If more come, it removes all its flows.
pub const MAX_NEWS: usize = 1024;

pub(super) struct SharedSwitches {
    /// Switches by their numbers, and the numbers by datapath id.
    known: RwLock<SwitchRegistry>,
    /// Number of connected switches.
    up: AtomicUsize,
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
    /// Whether there are letters: the only check while there are none.
    has_letters: AtomicBool,
    letters: Mutex<SwitchMessages>,
    /// While it is not connected: the ways to other switches that it knew, for its return. Flows of
    /// the other switches may hide from it the packets that would show the ways.
    ways: Mutex<PortsToSwitches>,
}

#[derive(Default)]
struct SwitchMessages {
    waiting: Vec<SwitchMessage>,
    lost: bool,
}

/// A message from another switch.
pub(super) enum SwitchMessage {
    /// A host has left this place.
    Gone(HostKey, Attachment),
    /// A host is attached to that switch; flows of an earlier run have it at this place.
    Attached(HostKey, SwitchNumber, HostPlace),
    /// There were too many letters.
    Lost,
}

impl SharedSwitches {
    pub(super) fn new(max_hosts_per_port: u32) -> Self {
        let max_hosts_per_port = match max_hosts_per_port {
            0 => u32::MAX,
            limit => limit,
        };
        SharedSwitches { known: RwLock::default(), up: AtomicUsize::new(0), max_hosts_per_port }
    }

    /// Registers a switch that connects. Discards old letters: all its flows are read again.
    pub(super) fn comes(&self, dpid: Dpid) -> Arc<SharedSwitch> {
        self.up.fetch_add(1, Ordering::Relaxed);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(corner) = known.numbers.get(&dpid).and_then(|number| known.get(*number)) {
            corner.clear();
            corner.is_up.store(true, Ordering::Relaxed);
            return Arc::clone(corner);
        }
        let number = SwitchNumber(known.switches.len() as u32);
        if known.switches.len() >= MAX_SWITCHES {
            return Arc::new(SharedSwitch::new(number, dpid, 0));
        }
        let corner = Arc::new(SharedSwitch::new(number, dpid, self.max_hosts_per_port));
        known.switches.push(Arc::clone(&corner));
        known.numbers.insert(dpid, number);
        corner
    }

    /// Records that a switch has disconnected.
    pub(super) fn goes(&self, corner: &SharedSwitch) {
        corner.is_up.store(false, Ordering::Relaxed);
        self.up.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn up(&self) -> usize {
        self.up.load(Ordering::Relaxed)
    }

    /// All switches that have ever connected, in the order of their numbers.
    pub(super) fn all(&self) -> Vec<Arc<SharedSwitch>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).switches.clone()
    }

    /// Records that a host has left its place. Its port counts it no longer, and the switches that
    /// may have flows from or to it get a letter, except `knows`.
    pub(super) fn left(&self, host: HostKey, was: Attachment, knows: SwitchNumber) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(its) = known.get(was.switch()) {
            its.leave(was.place());
            if was.has_flows_there() && was.switch() != knows {
                its.write(SwitchMessage::Gone(host, was));
            }
        }
        if was.has_flows_elsewhere() {
            let others =
                |corner: &&Arc<SharedSwitch>| ![knows, was.switch()].contains(&corner.number);
            let others = known.switches.iter().filter(others);
            others.for_each(|corner| corner.write(SwitchMessage::Gone(host, was)));
        }
    }

    /// Sends letters that a host is attached to a switch, to the switches with these notes.
    pub(super) fn attached(&self, host: HostKey, to: SwitchNumber, notes: &[HostNote]) {
        self.tell(notes, |note| SwitchMessage::Attached(host, to, note.place));
    }

    /// Sends letters that a host is not at the noted places: the flows are removed.
    pub(super) fn gone(&self, host: HostKey, notes: &[HostNote]) {
        self.tell(notes, |note| {
            SwitchMessage::Gone(host, Attachment::new(note.switch, note.place.with_flows()))
        });
    }

    fn tell(&self, notes: &[HostNote], letter: impl Fn(&HostNote) -> SwitchMessage) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        for note in notes {
            if let Some(corner) = known.get(note.switch) {
                corner.write(letter(note));
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
            has_letters: AtomicBool::new(false),
            letters: Mutex::default(),
            ways: Mutex::default(),
        }
    }

    /// Its datapath id, if the switch is connected.
    pub(super) fn up(&self) -> Option<Dpid> {
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

    /// Stores the ways of its switch until the switch returns.
    pub(super) fn keep(&self, ways: PortsToSwitches) {
        *self.ways.lock().unwrap_or_else(PoisonError::into_inner) = ways;
    }

    pub(super) fn ways(&self) -> PortsToSwitches {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a host at a port, if the port is below its limit.
    pub(super) fn enter(&self, place: HostPlace) -> bool {
        let count = self.count(place.port());
        if count.fetch_add(1, Ordering::Relaxed) < self.max_hosts_per_port {
            return true;
        }
        count.fetch_sub(1, Ordering::Relaxed);
        false
    }

    pub(super) fn leave(&self, place: HostPlace) {
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
    pub(super) fn has_letters(&self) -> bool {
        // Acquire: a thread that sees the flag also sees the letter.
        self.has_letters.load(Ordering::Acquire)
    }

    pub(super) fn next_letter(&self) -> Option<SwitchMessage> {
        let mut letters = self.letters();
        if std::mem::take(&mut letters.lost) {
            letters.waiting.clear();
            return Some(SwitchMessage::Lost);
        }
        let letter = letters.waiting.pop();
        if letter.is_none() {
            self.has_letters.store(false, Ordering::Relaxed);
        }
        letter
    }

    fn write(&self, letter: SwitchMessage) {
        let mut letters = self.letters();
        if letters.waiting.len() < MAX_NEWS {
            letters.waiting.push(letter);
        } else {
            letters.lost = true;
        }
        self.has_letters.store(true, Ordering::Release);
    }

    fn clear(&self) {
        let mut letters = self.letters();
        *letters = SwitchMessages::default();
        self.has_letters.store(false, Ordering::Relaxed);
    }

    fn letters(&self) -> MutexGuard<'_, SwitchMessages> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
