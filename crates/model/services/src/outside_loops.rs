//! Loops outside of the network: an ordinary switch or a cable joins edge ports, and brings flooded
//! frames back.
//!
//! # What it is
//! - [`RecentFloods`] remembers the frames that were flooded within [`REMEMBERED`], for all
//!   switches of this controller. An app that floods asks it first, and floods each frame once.
//! - [`OutsideLoops`] collects the ports where copies come back. If two ports bring copies,
//!   something joins them: one is *kept out* of floods and of host tracking until that is over. One
//!   event names the ports, and another the end.
//!
//! # Which copies count
//! A copy counts at a port where the frame did not come in first. So a host that repeats its own
//! frames shows no loop, and a host that repeats frames of others shows a loop at its own port
//! only.
//!
//! # What it is not
//! Another controller of a cluster has a table of its own: a copy that comes in at its switches is
//! flooded once more, by each controller once.
//!
//! # Cost
//! A flooded frame costs a digest of its bytes, and one shared word. Other packets cost nothing.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellrock_api::runtime::EventPublisher as _;
use bellrock_api::{Event, Network, PacketIn, Publisher, SwitchPort, Watch};

/// How long a flooded frame is remembered. Hosts repeat an ARP request only after a second.
pub const REMEMBERED: Duration = Duration::from_millis(800);

/// Maximum number of remembered frames. Further ones replace the oldest of their set.
pub const MAX_FRAMES: usize = SETS * WAYS;

/// Number of sets. A power of two.
const SETS: usize = 1 << 11;
const WAYS: usize = 8;

/// Copies at each of two ports, within [`EVIDENCE_KEPT`], that show a loop over these ports.
pub const COPIES_OF_A_LOOP: u32 = 3;

/// Copies at a single port, within [`EVIDENCE_KEPT`], that are reported.
pub const COPIES_OF_A_PORT: u32 = 16;

/// Time without a copy after which earlier copies at a port do not count any more.
pub const EVIDENCE_KEPT: Duration = Duration::from_secs(10);

/// Time without a copy after which a loop is over, if enough frames were flooded meanwhile.
pub const OVER_AFTER: Duration = Duration::from_secs(30);

/// Number of frames flooded without a copy that show that a loop is over.
pub const FLOODS_WITHOUT_COPY: u64 = 8;

/// Maximum number of ports with copies.
pub const MAX_PORTS: usize = 1024;

/// Maximum number of ports that an event names.
const MAX_NAMED: usize = 4;

/// The grain of the time in the table.
const GRAIN: Duration = Duration::from_millis(50);

/// Whether a frame was flooded a short time ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloodedBefore {
    /// It was not.
    No,
    /// It came in at the same port.
    HereFirst,
    /// It came in at another port.
    Elsewhere,
}

/// The frames that were flooded a short time ago, in one table for all switches.
///
/// An entry is one word: 32 bits of the frame's digest, 16 of its port's, and 16 of its time. Two
/// different frames are taken for one with a chance of 1 in 500 million.
#[derive(Debug)]
pub struct RecentFloods {
    sets: Box<[[AtomicU64; WAYS]]>,
}

impl Default for RecentFloods {
    fn default() -> Self {
        RecentFloods { sets: (0..SETS).map(|_| Default::default()).collect() }
    }
}

/// The digest of a frame: all bytes that came to the controller, and its whole length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameDigest(u64);

impl FrameDigest {
    /// Computes the digest of a packet. It need not resist forgery: a host that wants its own
    /// frames dropped need not send them.
    #[must_use]
    pub fn of(packet: &PacketIn<'_>) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write_u16(packet.total_len());
        hasher.write(packet.data());
        FrameDigest(hasher.finish())
    }
}

impl RecentFloods {
    /// Remembers a frame that is to be flooded. Returns whether it was flooded before, and is to be
    /// dropped instead.
    pub fn flood(&self, frame: FrameDigest, at: SwitchPort, now: Duration) -> FloodedBefore {
        let entry = Entry::new(frame, at, now);
        let set = self.set(frame);
        // Another worker may take the entry meanwhile; then this one looks again.
        for _ in 0..WAYS {
            let known = find(set, entry);
            if known != FloodedBefore::No {
                return known;
            }
            let age = |slot: &&AtomicU64| entry.age_of(slot.load(Ordering::Relaxed));
            let Some(oldest) = set.iter().max_by_key(age) else { break };
            let before = oldest.load(Ordering::Relaxed);
            let order = Ordering::Relaxed;
            if oldest.compare_exchange(before, entry.0, order, order).is_ok() {
                break;
            }
        }
        FloodedBefore::No
    }

    /// Returns whether a frame was flooded a short time ago.
    #[must_use]
    pub fn has(&self, frame: FrameDigest, at: SwitchPort, now: Duration) -> FloodedBefore {
        find(self.set(frame), Entry::new(frame, at, now))
    }

    fn set(&self, FrameDigest(digest): FrameDigest) -> &[AtomicU64; WAYS] {
        &self.sets[digest as usize % SETS]
    }
}

/// Looks for the frame of `wanted` in a set.
fn find(set: &[AtomicU64; WAYS], wanted: Entry) -> FloodedBefore {
    for slot in set {
        let word = slot.load(Ordering::Relaxed);
        if wanted.is_same_frame(word) && wanted.age_of(word) < REMEMBERED_GRAINS {
            return match wanted.is_same_port(word) {
                true => FloodedBefore::HereFirst,
                false => FloodedBefore::Elsewhere,
            };
        }
    }
    FloodedBefore::No
}

const REMEMBERED_GRAINS: u16 = (REMEMBERED.as_millis() / GRAIN.as_millis()) as u16;

/// A frame, its port and its time in one word. Zero is no frame.
#[derive(Clone, Copy)]
struct Entry(u64);

impl Entry {
    fn new(FrameDigest(digest): FrameDigest, at: SwitchPort, now: Duration) -> Self {
        let mut hasher = DefaultHasher::new();
        at.hash(&mut hasher);
        let port = hasher.finish() & 0xffff;
        let time = (now.as_millis() / GRAIN.as_millis()) as u64 & 0xffff;
        // A set bit, so that no entry is zero.
        let frame = digest >> 32 | 1;
        Entry(frame << 32 | port << 16 | time)
    }

    fn is_same_frame(self, word: u64) -> bool {
        self.0 >> 32 == word >> 32
    }

    fn is_same_port(self, word: u64) -> bool {
        self.0 >> 16 & 0xffff == word >> 16 & 0xffff
    }

    /// Grains of time since an entry was written. A free entry is the oldest.
    fn age_of(self, word: u64) -> u16 {
        if word == 0 { u16::MAX } else { (self.0 as u16).wrapping_sub(word as u16) }
    }
}

/// The ports that are kept out of floods and of host tracking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptOutPorts(Vec<SwitchPort>);

impl KeptOutPorts {
    /// Whether a port is kept out.
    #[inline]
    #[must_use]
    pub fn contains(&self, at: SwitchPort) -> bool {
        // Nearly always there are none.
        !self.0.is_empty() && self.0.contains(&at)
    }
}

/// Loops outside of the network. An [extension](bellrock_api::Network::extension) of the network.
#[derive(Default)]
pub struct OutsideLoops {
    /// Frames that were flooded, of all switches.
    floods: AtomicU64,
    /// Whether `state` has any port.
    is_busy: AtomicBool,
    state: Mutex<BTreeMap<SwitchPort, ReturningPort>>,
    kept_out: Publisher<KeptOutPorts>,
}

/// A port where copies come in.
#[derive(Clone, Copy, Debug)]
struct ReturningPort {
    copies: u32,
    last_copy: Duration,
    /// Frames flooded by all switches before the last copy.
    floods: u64,
    /// Since when it is kept out.
    kept_out: Option<Duration>,
    is_reported: bool,
}

impl OutsideLoops {
    /// Returns the loops of this controller.
    #[must_use]
    pub fn of(network: &Network) -> Arc<Self> {
        network.extension()
    }

    /// Returns the ports that are kept out.
    #[must_use]
    pub fn kept_out(&self) -> Watch<KeptOutPorts> {
        self.kept_out.watch().clone()
    }

    /// Counts a frame that is flooded.
    pub fn count_flood(&self) {
        self.floods.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that a copy of a flooded frame came in at a port, and not its first copy there.
    #[cold]
    pub fn record_copy(&self, network: &Network, at: SwitchPort, now: Duration) {
        let floods = self.floods.load(Ordering::Relaxed);
        let mut ports = self.ports();
        ports.retain(|_, port| port.kept_out.is_some() || now < port.last_copy + EVIDENCE_KEPT);
        if ports.len() >= MAX_PORTS && !ports.contains_key(&at) {
            return;
        }
        self.is_busy.store(true, Ordering::Relaxed);
        let port = ports.entry(at).or_insert(ReturningPort {
            copies: 0,
            last_copy: now,
            floods,
            kept_out: None,
            is_reported: false,
        });
        (port.last_copy, port.floods) = (now, floods);
        port.copies = port.copies.saturating_add(1);
        let (copies, is_kept_out, is_reported) =
            (port.copies, port.kept_out.is_some(), port.is_reported);
        if is_kept_out {
            return;
        }
        let is_joined = |(_, it): &(&SwitchPort, &ReturningPort)| {
            it.kept_out.is_none() && it.copies >= COPIES_OF_A_LOOP
        };
        let joined: Vec<SwitchPort> = ports.iter().filter(is_joined).map(|(at, _)| *at).collect();
        let event = if let [.., _, highest] = joined[..] {
            if let Some(port) = ports.get_mut(&highest) {
                (port.kept_out, port.is_reported) = (Some(now), true);
            }
            // The others must show again that they are in a loop without this port.
            for port in ports.values_mut().filter(|port| port.kept_out.is_none()) {
                port.copies = 0;
            }
            let mut named = joined;
            named.truncate(MAX_NAMED);
            if !named.contains(&highest) {
                named.push(highest);
            }
            Event::OutsideLoop { ports: named.into(), kept_out: Some(highest) }
        } else if copies >= COPIES_OF_A_PORT && !is_reported {
            if let Some(port) = ports.get_mut(&at) {
                port.is_reported = true;
            }
            Event::OutsideLoop { ports: [at].into(), kept_out: None }
        } else {
            return;
        };
        self.publish(&ports);
        network.events().publish(now, event);
    }

    /// Ends the loops that are over. Called every second; costs one look if there is no loop.
    pub fn tick(&self, network: &Network, now: Duration) {
        if !self.is_busy.load(Ordering::Relaxed) {
            return;
        }
        let topology = network.topology().load();
        let floods = self.floods.load(Ordering::Relaxed);
        let is_over = |at: SwitchPort, port: &ReturningPort| {
            let is_quiet =
                now >= port.last_copy + OVER_AFTER && floods >= port.floods + FLOODS_WITHOUT_COPY;
            is_quiet || !topology.is_up(at)
        };
        let mut ports = self.ports();
        let mut over = Vec::new();
        ports.retain(|at, port| {
            let Some(since) = port.kept_out else { return now < port.last_copy + EVIDENCE_KEPT };
            let is_over = is_over(*at, port);
            if is_over {
                over.push((*at, port.last_copy.saturating_sub(since)));
            }
            !is_over
        });
        self.is_busy.store(!ports.is_empty(), Ordering::Relaxed);
        if over.is_empty() {
            return;
        }
        self.publish(&ports);
        for (at, duration) in over {
            network.events().publish(now, Event::OutsideLoopOver { at, duration });
        }
    }

    fn publish(&self, ports: &BTreeMap<SwitchPort, ReturningPort>) {
        let kept_out = ports.iter().filter(|(_, port)| port.kept_out.is_some());
        self.kept_out.publish(KeptOutPorts(kept_out.map(|(at, _)| *at).collect()));
    }

    fn ports(&self) -> MutexGuard<'_, BTreeMap<SwitchPort, ReturningPort>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::{Dpid, Port};

    use super::*;

    fn at(dpid: u64, port: u32) -> SwitchPort {
        SwitchPort::new(Dpid(dpid), Port(port))
    }

    #[test]
    fn a_frame_is_flooded_once_within_its_time() {
        let ms = Duration::from_millis;
        let recent = RecentFloods::default();
        let frame = FrameDigest(0x1234_5678_9abc_def0);
        assert_eq!(recent.flood(frame, at(1, 1), ms(1000)), FloodedBefore::No);
        assert_eq!(recent.flood(frame, at(1, 1), ms(1700)), FloodedBefore::HereFirst);
        assert_eq!(recent.flood(frame, at(2, 1), ms(1700)), FloodedBefore::Elsewhere);
        assert_eq!(recent.has(FrameDigest(7), at(2, 1), ms(1700)), FloodedBefore::No);
        assert_eq!(recent.flood(frame, at(2, 1), ms(1900)), FloodedBefore::No, "it is a new one");
        assert_eq!(recent.has(frame, at(1, 1), ms(1950)), FloodedBefore::Elsewhere);
    }

    #[test]
    fn frames_beyond_the_space_replace_the_oldest() {
        let ms = Duration::from_millis;
        let recent = RecentFloods::default();
        let frame = |n: u64| FrameDigest(n << 33);
        for n in 0..WAYS as u64 + 1 {
            assert_eq!(recent.flood(frame(n), at(1, 1), ms(50 * n)), FloodedBefore::No);
        }
        let now = ms(50 * WAYS as u64);
        assert_eq!(recent.has(frame(0), at(1, 1), now), FloodedBefore::No);
        assert!(
            (1..=WAYS as u64).all(|n| recent.has(frame(n), at(1, 1), now) != FloodedBefore::No)
        );
    }
}
