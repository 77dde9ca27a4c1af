//! What the switches share besides the table: how many hosts each port has, and what they have to tell
//! each other. Nothing of it is touched for a packet between hosts that are known and stay where they are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bellrock_api::{Dpid, Port};

use super::notes::Note;
use super::place::{Attachment, SwitchNumber};
use super::ways::Ways;
use crate::learning::frame::{HostKey, Place};

/// Most switches that are told apart in the life of a controller. Hosts of further ones are not learnt: their packets are
/// flooded.
pub const MAX_SWITCHES: usize = 16_384;

/// Counts of hosts by port of each switch. Ports whose numbers differ by a multiple of it share one, and
/// with it their limit.
pub const PORT_COUNTS: usize = 256;

/// Letters that wait for a switch at most. If more come, it removes all of its flows instead of some.
pub const MAX_NEWS: usize = 1024;

pub(super) struct Switches {
    /// By their numbers, and the numbers by datapath id.
    known: RwLock<Known>,
    /// Switches that are up.
    up: AtomicUsize,
    max_hosts_per_port: u32,
}

#[derive(Default)]
struct Known {
    corners: Vec<Arc<Corner>>,
    numbers: HashMap<Dpid, SwitchNumber>,
}

/// What others may touch of a switch.
pub(super) struct Corner {
    pub(super) number: SwitchNumber,
    dpid: Dpid,
    is_up: AtomicBool,
    /// Hosts that flap, as it sees them: for the operator.
    flapping: Mutex<Vec<HostKey>>,
    hosts: [AtomicU32; PORT_COUNTS],
    max_hosts_per_port: u32,
    /// Whether there are letters: all that is looked at while there are none.
    has_letters: AtomicBool,
    letters: Mutex<Letters>,
    /// While it is not connected: what it knew of the ways to others, for when it comes back. Their flows
    /// may hide from it what it would learn of them.
    ways: Mutex<Ways>,
}

#[derive(Default)]
struct Letters {
    waiting: Vec<Letter>,
    lost: bool,
}

/// What a switch finds in its letters.
pub(super) enum Letter {
    /// A host was there, and is not any more.
    Gone(HostKey, Attachment),
    /// A host is attached to that switch; flows of an earlier run have it at this place.
    Attached(HostKey, SwitchNumber, Place),
    /// There were more than are kept.
    Lost,
}

impl Switches {
    pub(super) fn new(max_hosts_per_port: u32) -> Self {
        let max_hosts_per_port = match max_hosts_per_port {
            0 => u32::MAX,
            limit => limit,
        };
        Switches { known: RwLock::default(), up: AtomicUsize::new(0), max_hosts_per_port }
    }

    /// A switch is up, perhaps again. Letters to what it was before are none of its business: each of its flows is
    /// looked at anew.
    pub(super) fn comes(&self, dpid: Dpid) -> Arc<Corner> {
        self.up.fetch_add(1, Ordering::Relaxed);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(corner) = known.numbers.get(&dpid).and_then(|number| known.get(*number)) {
            corner.clear();
            corner.is_up.store(true, Ordering::Relaxed);
            return Arc::clone(corner);
        }
        let number = SwitchNumber(known.corners.len() as u32);
        if known.corners.len() >= MAX_SWITCHES {
            return Arc::new(Corner::new(number, dpid, 0));
        }
        let corner = Arc::new(Corner::new(number, dpid, self.max_hosts_per_port));
        known.corners.push(Arc::clone(&corner));
        known.numbers.insert(dpid, number);
        corner
    }

    /// A switch is down.
    pub(super) fn goes(&self, corner: &Corner) {
        corner.is_up.store(false, Ordering::Relaxed);
        self.up.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn up(&self) -> usize {
        self.up.load(Ordering::Relaxed)
    }

    /// All switches that were ever up, in the order of their numbers.
    pub(super) fn all(&self) -> Vec<Arc<Corner>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).corners.clone()
    }

    /// A host is not where it was: it does not count there any more, and the switches that may have
    /// flows from it or to it are told, all but one, which knows.
    pub(super) fn left(&self, host: HostKey, was: Attachment, knows: SwitchNumber) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(its) = known.get(was.switch()) {
            its.leave(was.place());
            if was.has_flows_there() && was.switch() != knows {
                its.write(Letter::Gone(host, was));
            }
        }
        if was.has_flows_elsewhere() {
            let others = |corner: &&Arc<Corner>| ![knows, was.switch()].contains(&corner.number);
            let others = known.corners.iter().filter(others);
            others.for_each(|corner| corner.write(Letter::Gone(host, was)));
        }
    }

    /// A host is attached to a switch: those that have noted where they look for it are told.
    pub(super) fn attached(&self, host: HostKey, to: SwitchNumber, notes: &[Note]) {
        self.tell(notes, |note| Letter::Attached(host, to, note.place));
    }

    /// A host is not where it is noted: the flows go.
    pub(super) fn gone(&self, host: HostKey, notes: &[Note]) {
        self.tell(notes, |note| {
            Letter::Gone(host, Attachment::new(note.switch, note.place.with_flows()))
        });
    }

    fn tell(&self, notes: &[Note], letter: impl Fn(&Note) -> Letter) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        for note in notes {
            if let Some(corner) = known.get(note.switch) {
                corner.write(letter(note));
            }
        }
    }
}

impl Known {
    fn get(&self, number: SwitchNumber) -> Option<&Arc<Corner>> {
        self.corners.get(number.index())
    }
}

impl Corner {
    fn new(number: SwitchNumber, dpid: Dpid, max_hosts_per_port: u32) -> Self {
        Corner {
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

    /// Its datapath id, if the switch is up.
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

    /// Keeps what its switch knows of the ways, until it is back.
    pub(super) fn keep(&self, ways: Ways) {
        *self.ways.lock().unwrap_or_else(PoisonError::into_inner) = ways;
    }

    pub(super) fn ways(&self) -> Ways {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a host at a port, if the port may have one more.
    pub(super) fn enter(&self, place: Place) -> bool {
        let count = self.count(place.port());
        if count.fetch_add(1, Ordering::Relaxed) < self.max_hosts_per_port {
            return true;
        }
        count.fetch_sub(1, Ordering::Relaxed);
        false
    }

    pub(super) fn leave(&self, place: Place) {
        self.count(place.port()).fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether there may be hosts at a port.
    pub(super) fn has_hosts(&self, port: Port) -> bool {
        self.count(port).load(Ordering::Relaxed) > 0
    }

    fn count(&self, port: Port) -> &AtomicU32 {
        &self.hosts[port.0 as usize % PORT_COUNTS]
    }

    #[inline(always)]
    pub(super) fn has_letters(&self) -> bool {
        // Acquire: who sees that there is one sees it.
        self.has_letters.load(Ordering::Acquire)
    }

    pub(super) fn next_letter(&self) -> Option<Letter> {
        let mut letters = self.letters();
        if std::mem::take(&mut letters.lost) {
            letters.waiting.clear();
            return Some(Letter::Lost);
        }
        let letter = letters.waiting.pop();
        if letter.is_none() {
            self.has_letters.store(false, Ordering::Relaxed);
        }
        letter
    }

    fn write(&self, letter: Letter) {
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
        *letters = Letters::default();
        self.has_letters.store(false, Ordering::Relaxed);
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
