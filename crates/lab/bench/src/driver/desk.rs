//! State that all switches of a thread share: buffers, templates, the verifier, counts.
//!
//! Switches use it in turn, so it stays in the thread's cache, whatever their number.

use bellrock_openflow::Out;

use super::transport::{MAX_READ_BYTES, SCRATCH_LEN};
use crate::control::{Latencies, RunPhase};
use crate::draw::TrafficPattern;
use crate::error::BenchError;
use crate::load::{Load, LoadMode};
use crate::packet::PacketTemplate;
use crate::usage::ReadCounter;
use crate::verify::{AnswerTally, Verifier};

/// Maximum number of bytes per read. More would save few system calls, and the first answers would
/// have left the cache before they are verified.
pub(super) const READ_LEN: usize = 64 * 1024;

/// Length of the longest message. The carried beginning of a message is placed before the data
/// read.
pub(super) const CARRY_LEN: usize = 1 << 16;

/// Maximum number of bytes per write.
const BURST_LEN: usize = 64 * 1024;

/// Maximum bytes of the session's answers to one message. Its longest answer, the port description,
/// is far shorter.
const OUT_LEN: usize = 128 * 1024;

pub(super) struct Desk {
    pub(super) phase: RunPhase,
    pub(super) mode: LoadMode,
    pub(super) as_cbench: bool,
    pub(super) pattern: TrafficPattern,
    pub(super) template: PacketTemplate,
    /// Packet_ins to patch and write.
    pub(super) burst: Vec<u8>,
    /// ARPs to patch and write.
    pub(super) arps: Vec<u8>,
    pub(super) receive: Vec<u8>,
    /// Encrypted bytes, while a switch with TLS reads or writes. Empty without TLS.
    pub(super) scratch: Vec<u8>,
    pub(super) out: Out,
    pub(super) verifier: Verifier,
    pub(super) tally: AnswerTally,
    pub(super) latency: Latencies,
    pub(super) lateness: Latencies,
    pub(super) reads: ReadCounter,
    /// Minimum number of packet_ins to send to one switch at once in throughput mode.
    pub(super) least_burst: u64,
    /// Time of the last message received, in nanoseconds.
    pub(super) heard_ns: u64,
    /// When packets are due, at a rate.
    pub(super) schedule: Schedule,
}

impl Desk {
    pub(super) fn new(load: &Load) -> Result<Self, BenchError> {
        let pattern = TrafficPattern::new(load);
        let template = match load.echoes {
            true => PacketTemplate::echo(load.version)?,
            false => PacketTemplate::new(load.version, load.buffered)?,
        };
        let burst = template.as_slice().repeat(BURST_LEN / template.len());
        let arps = template.arp().repeat(BURST_LEN / template.arp().len());
        let (read_len, scratch_len) = match &load.tls {
            Some(_) => (MAX_READ_BYTES, SCRATCH_LEN),
            None => (READ_LEN, 0),
        };
        Ok(Desk {
            phase: RunPhase::Idle,
            mode: load.mode,
            as_cbench: load.as_cbench,
            pattern,
            template,
            burst,
            arps,
            receive: vec![0; CARRY_LEN + read_len],
            scratch: vec![0; scratch_len],
            out: Out::with_capacity(OUT_LEN),
            verifier: Verifier::new(load.version, pattern),
            tally: AnswerTally::default(),
            latency: Latencies::new()?,
            lateness: Latencies::new()?,
            reads: ReadCounter::default(),
            least_burst: u64::from(load.in_flight() / 4).clamp(1, 256),
            heard_ns: 0,
            schedule: Schedule::default(),
        })
    }

    /// Returns the counts since the run began. `matched` covers earlier runs too.
    pub(super) fn counted(&self) -> AnswerTally {
        AnswerTally { matched: self.verifier.matched(), ..self.tally }
    }

    /// Returns whether packets are sent in this phase.
    pub(super) fn is_loaded(&self) -> bool {
        matches!(self.phase, RunPhase::Load | RunPhase::Measure)
    }
}

/// Schedule of packets at a rate: the switches take turns, at even distances.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Schedule {
    start_ns: u64,
    /// Nanoseconds between two packets of the thread.
    step_ns: f64,
    switches: u64,
    /// Number of packets that were due so far.
    due: u64,
}

impl Schedule {
    /// A schedule of `rate` packets per second from each of `switches` switches, from `start_ns`
    /// on.
    pub(super) fn new(rate: f64, switches: usize, start_ns: u64) -> Self {
        let step_ns = 1e9 / rate / switches.max(1) as f64;
        Schedule { start_ns, step_ns, switches: switches as u64, due: 0 }
    }

    /// Returns the switch whose next packet is due, if any.
    pub(super) fn next_due(&mut self, now_ns: u64) -> Option<usize> {
        if self.due_at(self.due) > now_ns {
            return None;
        }
        self.due += 1;
        Some(((self.due - 1) % self.switches) as usize)
    }

    /// Time when the next packet of any switch is due, in nanoseconds.
    pub(super) fn next_ns(&self) -> u64 {
        self.due_at(self.due)
    }

    /// Time when the `index`-th packet of a switch is due, in nanoseconds.
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
