//! What all switches of a thread share: buffers, templates, the verifier, and what is counted.
//!
//! The switches take turns with it, so it stays in the thread's cache however many they are.

use bellrock_openflow::Out;

use crate::control::{Latencies, Phase};
use crate::draw::Pattern;
use crate::error::BenchError;
use crate::load::{Load, Mode};
use crate::packet::Template;
use crate::usage::Reads;
use crate::verify::{Tally, Verifier};

/// Bytes read at a time. More would save few system calls, and the answers would have left the cache
/// again before they are looked at.
pub(super) const READ_LEN: usize = 64 * 1024;

/// Bytes of the longest message, whose beginning may stand before what is read.
pub(super) const CARRY_LEN: usize = 1 << 16;

/// Bytes written at a time.
const BURST_LEN: usize = 64 * 1024;

/// Bytes of answers of the session to one message: its longest answer is the port description, far
/// below this.
const OUT_LEN: usize = 128 * 1024;

pub(super) struct Desk {
    pub(super) phase: Phase,
    pub(super) mode: Mode,
    pub(super) as_cbench: bool,
    pub(super) pattern: Pattern,
    pub(super) template: Template,
    /// Packet_ins that are patched and written.
    pub(super) burst: Vec<u8>,
    /// ARPs, likewise.
    pub(super) arps: Vec<u8>,
    pub(super) receive: Vec<u8>,
    pub(super) out: Out,
    pub(super) verifier: Verifier,
    pub(super) tally: Tally,
    pub(super) latency: Latencies,
    pub(super) lateness: Latencies,
    /// What was read.
    pub(super) reads: Reads,
    /// Packet_ins to one switch are not sent in throughput mode while fewer than so many may be.
    pub(super) least_burst: u64,
    /// When a message came last, in nanoseconds.
    pub(super) heard_ns: u64,
    /// When packets at a rate are due.
    pub(super) schedule: Schedule,
}

impl Desk {
    pub(super) fn new(load: &Load) -> Result<Self, BenchError> {
        let pattern = Pattern::new(load);
        let template = match load.echoes {
            true => Template::echo(load.version)?,
            false => Template::new(load.version, load.buffered)?,
        };
        let burst = template.as_slice().repeat(BURST_LEN / template.len());
        let arps = template.arp().repeat(BURST_LEN / template.arp().len());
        Ok(Desk {
            phase: Phase::Idle,
            mode: load.mode,
            as_cbench: load.as_cbench,
            pattern,
            template,
            burst,
            arps,
            receive: vec![0; CARRY_LEN + READ_LEN],
            out: Out::with_capacity(OUT_LEN),
            verifier: Verifier::new(load.version, pattern),
            tally: Tally::default(),
            latency: Latencies::new()?,
            lateness: Latencies::new()?,
            reads: Reads::default(),
            least_burst: u64::from(load.in_flight() / 4).clamp(1, 256),
            heard_ns: 0,
            schedule: Schedule::default(),
        })
    }

    /// What was counted since the run began. What flows match is known from earlier runs too.
    pub(super) fn counted(&self) -> Tally {
        Tally { matched: self.verifier.matched(), ..self.tally }
    }

    /// Whether packets are sent now.
    pub(super) fn is_loaded(&self) -> bool {
        matches!(self.phase, Phase::Load | Phase::Measure)
    }
}

/// Packets that are due at a rate, those of one switch after those of another, evenly.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Schedule {
    start_ns: u64,
    /// Between one packet of the thread and the next.
    step_ns: f64,
    switches: u64,
    /// Packets that were due so far.
    due: u64,
}

impl Schedule {
    /// So many packets a second from each of so many switches, from now on.
    pub(super) fn new(rate: f64, switches: usize, start_ns: u64) -> Self {
        let step_ns = 1e9 / rate / switches.max(1) as f64;
        Schedule { start_ns, step_ns, switches: switches as u64, due: 0 }
    }

    /// The switch whose next packet is due, if one is.
    pub(super) fn next_due(&mut self, now_ns: u64) -> Option<usize> {
        if self.due_at(self.due) > now_ns {
            return None;
        }
        self.due += 1;
        Some(((self.due - 1) % self.switches) as usize)
    }

    /// When the next packet of any switch is due, in nanoseconds.
    pub(super) fn next_ns(&self) -> u64 {
        self.due_at(self.due)
    }

    /// When the `index`-th packet of a switch is due.
    #[inline]
    pub(super) fn packet_ns(&self, switch: usize, index: u64) -> u64 {
        self.due_at(index * self.switches + switch as u64)
    }

    #[inline]
    fn due_at(&self, packet: u64) -> u64 {
        self.start_ns + (packet as f64 * self.step_ns) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_due_evenly_and_in_turn() {
        let mut schedule = Schedule::new(1000.0, 4, 1_000_000);
        let mut due = Vec::new();
        while let Some(switch) = schedule.next_due(2_500_000) {
            due.push(switch);
        }
        assert_eq!(due, [0, 1, 2, 3, 0, 1, 2]);
        assert_eq!(schedule.packet_ns(1, 2), 1_000_000 + 2_250_000);
        assert_eq!(schedule.next_ns(), schedule.packet_ns(3, 1));
    }
}
