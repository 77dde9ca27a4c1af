//! Storms: a loop in the network brings flooded frames back, and each copy is flooded again.
//!
//! Apps ask a [`StormGuard`] before they flood. A frame that was flooded and comes in again by
//! another port is a copy: it is not flooded, and its source is not learnt there. So a loop with
//! few packets does no harm. The guard detects a storm, reports it once as an event, and slows it
//! down until it is over.
//!
//! # Signs of a storm
//! - **Returns.** Flooded frames come in again at other ports. On a tree this cannot happen.
//! - **Copies.** A group frame comes in very often at one port: there is a loop behind that port.
//! - **Moves.** Hosts move back and forth between ports, many times a second.
//!
//! A high rate of floods alone is no sign: a benchmark has it without a loop. Above a rate, frames
//! are not compared: most of them would find no space.
//!
//! # Why not the memory of `routing`
//! [`RecentFloods`](bellrock_services::outside_loops::RecentFloods) is one table for all switches:
//! an app that sends a frame to all edge ports at once floods it once in the network. Here each
//! switch floods each frame itself. So each has a memory of its own, which no other worker writes.
//!
//! # During a storm
//! All switches of the controller flood each frame once within [`REMEMBERED`], and do not learn
//! from its copies. Switches that have seen a sign flood at most [`MAX_FRAMES`] frames in that
//! time. So broadcasts still arrive, and traffic between known hosts is not affected. The storm is
//! over when no switch has seen a sign for [`CALM`].
//!
//! # Cost
//! A flooded frame costs a digest, and a search among at most [`MAX_FRAMES`]. Packets between known
//! hosts cost nothing. A switch that floods uses up to 4 KiB. All switches share two numbers, which
//! are written about once a second during a storm.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bellrock_api::runtime::EventPublisher as _;
use bellrock_api::{Event, Network, PacketIn, Port, StormSign, Switch, SwitchPort};

/// Floods of a switch in one second up to which frames are compared outside a storm: a cost limit.
const LOOK_UP_TO: u32 = 4096;

/// Time for which a flooded frame is remembered. Hosts repeat an ARP request only after a second.
const REMEMBERED: Duration = Duration::from_millis(800);

/// Maximum number of remembered frames of a switch. During a storm also the maximum number of
/// different frames that a switch floods within [`REMEMBERED`].
const MAX_FRAMES: usize = 100;

/// Returned frames at a switch that show a storm, without [`RETURNS_KEPT`] between two of them. A
/// host that moves causes one.
const RETURNS_TO_STORM: u32 = 16;

/// Time without a returned frame after which earlier ones do not count any more.
const RETURNS_KEPT: Duration = Duration::from_secs(10);

/// Copies of a group frame within [`REMEMBERED`] that show a storm: no host repeats one so often.
const COPIES_TO_STORM: u32 = 1000;

/// Moves of flapping hosts at one switch within a second that show a storm.
const MOVES_TO_STORM: u32 = 64;

/// Time without a sign after which a storm is over.
pub(crate) const CALM: Duration = Duration::from_secs(30);

/// Time of [`CALM`] that passes before a storm is prolonged: not every frame writes its end.
const PROLONGED_EVERY: Duration = Duration::from_secs(1);

/// Bytes of a frame that are compared, and its length: a switch that buffers sends as many.
const FRAME_BYTES: usize = 128;

/// Frames whose memory a switch keeps when it floods no more.
const FEW_FRAMES: usize = 4;

/// The state of a storm, shared by all switches of a controller.
#[derive(Debug, Default)]
struct Storm {
    /// End of the storm without a further sign, in ms of the controller's clock. 0: no storm.
    until_ms: AtomicU64,
    /// Start of the storm, in the same unit.
    began_ms: AtomicU64,
}

/// Watches the floods of one switch.
#[derive(Debug)]
pub(crate) struct StormGuard {
    network: Network,
    storm: Arc<Storm>,
    /// The second of the controller's clock in which the next two numbers were counted.
    second: u64,
    floods: u32,
    moves: u32,
    /// Returned frames, and the time of the last.
    returns: u32,
    last_return: Duration,
    /// Time until which `frames` has a frame that is not too old.
    remembers_until: Duration,
    /// Time until which this switch takes part in the storm.
    involved_until: Duration,
    /// Whether the app has learnt of the storm ([`StormGuard::is_new_storm`]).
    is_known: bool,
    frames: Vec<FloodedFrame>,
    /// Storms that this switch was the first to detect.
    storms: u64,
    floods_held: u64,
}

/// A flooded frame.
#[derive(Clone, Copy, Debug)]
struct FloodedFrame {
    digest: u64,
    at: Duration,
    /// Port of its last arrival.
    port: Port,
    copies: u32,
    /// It came in by another port than before: each arrival is a copy.
    has_returned: bool,
}

/// The entry of a frame, or a free entry for it.
enum FrameSlot {
    Known(usize),
    Free(usize),
    None,
}

impl StormGuard {
    /// The guard of one switch, for the app that owns this handle.
    pub(crate) fn new(network: &Network) -> Self {
        StormGuard {
            network: network.clone(),
            storm: network.extension(),
            second: 0,
            floods: 0,
            moves: 0,
            returns: 0,
            last_return: Duration::ZERO,
            remembers_until: Duration::ZERO,
            involved_until: Duration::ZERO,
            is_known: false,
            frames: Vec::new(),
            storms: 0,
            floods_held: 0,
        }
    }

    /// Counts a packet that is to be flooded. Returns whether to hold it back instead.
    pub(crate) fn holds_back(&mut self, switch: &Switch<'_>, packet: &PacketIn<'_>) -> bool {
        let now = switch.now();
        self.count_in(now);
        self.floods = self.floods.saturating_add(1);
        let in_storm = self.is_on();
        if !in_storm && self.floods >= LOOK_UP_TO {
            return false;
        }
        let digest = digest(packet);
        let is_held = match self.slot(digest, now) {
            // This copy may have started a storm.
            FrameSlot::Known(slot) => self.record_arrival(switch, packet, slot) || self.is_on(),
            FrameSlot::Free(slot) => {
                let port = packet.in_port();
                let frame = FloodedFrame { digest, at: now, port, copies: 1, has_returned: false };
                self.insert_frame(slot, frame);
                false
            }
            FrameSlot::None => in_storm && now < self.involved_until,
        };
        self.floods_held += u64::from(is_held);
        is_held
    }

    /// Returns whether a packet is a copy of a flooded frame: the app must neither learn from it
    /// nor send it. `may_be_copy`: whether it can be one outside a storm, if anything is
    /// remembered. Only then its bytes are looked at.
    pub(crate) fn is_copy(
        &mut self,
        switch: &Switch<'_>,
        packet: &PacketIn<'_>,
        may_be_copy: impl FnOnce() -> bool,
    ) -> bool {
        let now = switch.now();
        self.count_in(now);
        let in_storm = self.is_on();
        let remembers = self.floods < LOOK_UP_TO && now < self.remembers_until;
        let is_looked_at = in_storm || (remembers && may_be_copy());
        if !is_looked_at {
            return false;
        }
        let FrameSlot::Known(slot) = self.slot(digest(packet), now) else { return false };
        if !in_storm && !self.is_return(packet, slot) {
            return false;
        }
        self.record_arrival(switch, packet, slot);
        self.floods_held += 1;
        true
    }

    /// Counts a move of a flapping host to another port.
    pub(crate) fn flapping_host_moved(&mut self, switch: &Switch<'_>, from: Port, to: Port) {
        self.count_in(switch.now());
        self.moves = self.moves.saturating_add(1);
        if self.moves >= MOVES_TO_STORM {
            let at = SwitchPort { dpid: switch.dpid(), port: to };
            self.record_sign(switch.now(), at, StormSign::Moves { from });
        }
    }

    /// Returns whether there is a storm that is new to this switch's app. True once for each storm.
    pub(crate) fn is_new_storm(&mut self) -> bool {
        let is_on = self.is_on();
        is_on && !std::mem::replace(&mut self.is_known, is_on)
    }

    /// Returns whether a storm has just begun. Copies may be under way that this switch does not
    /// know yet, so the app must not learn from any packet.
    pub(crate) fn is_young(&self, now: Duration) -> bool {
        let began_ms = self.storm.began_ms.load(Ordering::Relaxed);
        self.is_on() && millis(now) < began_ms + millis(REMEMBERED)
    }

    /// Reports the end of a storm that is over, and frees the memory of old frames. Called every
    /// second.
    pub(crate) fn tick(&mut self, now: Duration) {
        if now >= self.remembers_until && self.frames.capacity() > FEW_FRAMES {
            self.frames = Vec::new();
        }
        let until_ms = self.storm.until_ms.load(Ordering::Relaxed);
        self.is_known &= until_ms != 0;
        if until_ms == 0 || millis(now) < until_ms {
            return;
        }
        // Only one switch reports it.
        let exchanged =
            self.storm.until_ms.compare_exchange(until_ms, 0, Ordering::Relaxed, Ordering::Relaxed);
        if exchanged.is_ok() {
            let began_ms = self.storm.began_ms.load(Ordering::Relaxed);
            let last_ms = until_ms.saturating_sub(millis(CALM));
            let lasted = Duration::from_millis(last_ms.saturating_sub(began_ms));
            let app = self.network.app();
            self.network.events().publish(now, Event::StormOver { app, duration: lasted });
        }
    }

    /// Name and meaning of each of its counters.
    pub(crate) const COUNTERS: [(&str, &str); 2] = [
        ("storms", "Storms that this switch detected first."),
        ("floods_held", "Packets not flooded: copies that came back, and others in a storm."),
    ];

    /// Reports the counters.
    pub(crate) fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("storms", self.storms);
        report("floods_held", self.floods_held);
    }

    fn is_on(&self) -> bool {
        self.storm.until_ms.load(Ordering::Relaxed) != 0
    }

    /// Restarts the counts in each second.
    fn count_in(&mut self, now: Duration) {
        if self.second != now.as_secs() {
            (self.second, self.floods, self.moves) = (now.as_secs(), 0, 0);
        }
    }

    fn slot(&self, digest: u64, now: Duration) -> FrameSlot {
        let is_old = |frame: &FloodedFrame| now >= frame.at + REMEMBERED;
        let mut free = None;
        for (slot, frame) in self.frames.iter().enumerate() {
            match (is_old(frame), frame.digest == digest) {
                (true, _) => free = free.or(Some(slot)),
                (false, true) => return FrameSlot::Known(slot),
                (false, false) => {}
            }
        }
        match free {
            Some(slot) => FrameSlot::Free(slot),
            None if self.frames.len() < MAX_FRAMES => FrameSlot::Free(self.frames.len()),
            None => FrameSlot::None,
        }
    }

    fn insert_frame(&mut self, slot: usize, frame: FloodedFrame) {
        self.remembers_until = frame.at + REMEMBERED;
        if let Some(old) = self.frames.get_mut(slot) {
            *old = frame;
            return;
        }
        // Most switches flood rarely: room for all frames at once would be half of an idle switch's
        // memory.
        self.frames.push(frame);
    }

    /// Whether a remembered frame has come back: by another port now, or before.
    fn is_return(&self, packet: &PacketIn<'_>, slot: usize) -> bool {
        let frame = self.frames.get(slot);
        frame.is_some_and(|frame| frame.has_returned || frame.port != packet.in_port())
    }

    /// Records that a remembered frame has come in again. Returns whether it has come back by
    /// another port, now or before.
    fn record_arrival(&mut self, switch: &Switch<'_>, packet: &PacketIn<'_>, slot: usize) -> bool {
        let Some(frame) = self.frames.get_mut(slot) else { return false };
        frame.copies = frame.copies.saturating_add(1);
        let (copies, from) = (frame.copies, frame.port);
        frame.port = packet.in_port();
        let at = SwitchPort { dpid: switch.dpid(), port: packet.in_port() };
        if from == packet.in_port() {
            let has_returned = frame.has_returned;
            if copies >= COPIES_TO_STORM && is_to_group(packet) {
                self.record_sign(switch.now(), at, StormSign::Copies);
            }
            return has_returned;
        }
        frame.has_returned = true;
        let now = switch.now();
        if now >= self.last_return + RETURNS_KEPT {
            self.returns = 0;
        }
        (self.returns, self.last_return) = (self.returns.saturating_add(1), now);
        // During a storm, one returning frame shows that the loop still exists.
        if self.returns >= RETURNS_TO_STORM || self.is_on() {
            self.record_sign(now, at, StormSign::Returns { from });
        }
        true
    }

    /// Records a sign of a storm, which starts or prolongs it.
    #[cold]
    fn record_sign(&mut self, now: Duration, at: SwitchPort, sign: StormSign) {
        self.involved_until = now + CALM;
        let calm_ms = millis(now + CALM);
        let until_ms = self.storm.until_ms.load(Ordering::Relaxed);
        if until_ms != 0 && calm_ms < until_ms + millis(PROLONGED_EVERY) {
            return;
        }
        let changed = self.storm.until_ms.compare_exchange(
            until_ms,
            calm_ms,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if changed.is_ok() && until_ms == 0 {
            self.storm.began_ms.store(millis(now), Ordering::Relaxed);
            self.storms += 1;
            let app = self.network.app();
            self.network.events().publish(now, Event::Storm { app, at, sign });
        }
    }
}

/// Milliseconds of the controller's clock. They fit for half a billion years.
fn millis(time: Duration) -> u64 {
    time.as_millis() as u64
}

/// Digest of a frame. It need not resist forgery: an attacker could as well repeat a frame.
fn digest(packet: &PacketIn<'_>) -> u64 {
    let data = packet.data();
    let mut hasher = DefaultHasher::new();
    hasher.write_u16(packet.total_len());
    hasher.write(data.get(..FRAME_BYTES).unwrap_or(data));
    hasher.finish()
}

fn is_to_group(packet: &PacketIn<'_>) -> bool {
    packet.data().first().is_some_and(|byte| byte & 1 != 0)
}
