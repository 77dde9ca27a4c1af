//! Messages between the thread that leads a test and the threads that run it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::error::BenchError;
use crate::usage::Reads;
use crate::verify::Tally;

/// The longest latency that is distinguished from longer ones, in nanoseconds: a minute.
const LONGEST_NS: u64 = 60_000_000_000;

/// Digits of a latency that are kept.
const DIGITS: u8 = 3;

/// What threads do at a time. Each is entered when the lead says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing yet.
    Idle,
    /// Connect all switches, and wait until they are known and the controller has no more to say.
    Connect,
    /// Make the destinations known.
    Learn,
    /// The load is on.
    Load,
    /// The load is on and measured.
    Measure,
    /// The load is off, and the last answers come.
    Drain,
    /// Close all connections, and end.
    Close,
}

const PHASES: [Phase; 7] = [
    Phase::Idle,
    Phase::Connect,
    Phase::Learn,
    Phase::Load,
    Phase::Measure,
    Phase::Drain,
    Phase::Close,
];

/// What the lead asks of the threads, and what it shows meanwhile.
#[derive(Debug)]
pub(crate) struct Control {
    /// How many phases there were, and which it is, in the lowest byte.
    word: AtomicU64,
    epoch: Instant,
    /// Switches that are up.
    pub(crate) up: AtomicU64,
    /// Flow set-ups, or connections.
    pub(crate) done: AtomicU64,
}

impl Control {
    pub(crate) fn new() -> Self {
        Control {
            word: AtomicU64::new(0),
            epoch: Instant::now(),
            up: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }

    /// The threads enter a phase.
    pub(crate) fn enter(&self, phase: Phase) {
        let count = self.word.load(Ordering::Relaxed) >> 8;
        self.word.store(((count + 1) << 8) | phase as u64, Ordering::Release);
    }

    /// A number that changes with each phase, and the phase.
    pub(crate) fn phase(&self) -> (u64, Phase) {
        let word = self.word.load(Ordering::Acquire);
        (word >> 8, PHASES.get((word & 0xff) as usize).copied().unwrap_or(Phase::Close))
    }

    /// Nanoseconds since the test began.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}

/// What a thread reports to the lead.
#[derive(Debug)]
pub(crate) enum Note {
    /// The load is on, or the measurement has begun: the thread has entered that phase.
    Entered,
    /// The phase is done: all are connected, or all destinations are learnt.
    Ready,
    /// What was measured. Comes when the phase after the measurement is entered.
    Measured(Box<Measured>),
    /// All answers have come that will. What all messages of this run were.
    Drained(Tally),
    /// It is over for this thread, and it has ended.
    Failed {
        /// Why.
        error: BenchError,
        /// What was measured until then.
        measured: Option<Box<Measured>>,
        /// What all messages of this run were.
        tally: Tally,
    },
}

/// What one thread measured.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Which thread it is.
    pub(crate) thread: usize,
    /// How long.
    pub(crate) elapsed: Duration,
    /// Its CPU time.
    pub(crate) cpu: Duration,
    /// Flow set-ups, or connections, of each of its switches.
    pub(crate) done: Vec<u64>,
    /// From sent, or due, to answered; or from connecting to known.
    pub(crate) latency: Histogram<u64>,
    /// From due to sent.
    pub(crate) lateness: Histogram<u64>,
    /// Connections that failed.
    pub(crate) failed_connections: u64,
    /// What was read from the controller.
    pub(crate) reads: Reads,
}

/// Latencies in nanoseconds. The same several times in a row, as when many answers come with one
/// read, costs no more than once.
#[derive(Debug)]
pub(crate) struct Latencies {
    histogram: Histogram<u64>,
    last: (u64, u64),
}

impl Latencies {
    pub(crate) fn new() -> Result<Self, BenchError> {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        let histogram = histogram.map_err(|error| BenchError::System {
            what: "make a histogram",
            error: std::io::Error::other(error),
        })?;
        Ok(Latencies { histogram, last: (0, 0) })
    }

    /// Adds one. Longer ones than a minute count as a minute.
    #[inline]
    pub(crate) fn add(&mut self, ns: u64) {
        self.add_times(ns, 1);
    }

    /// Adds the same one so many times.
    #[inline]
    pub(crate) fn add_times(&mut self, ns: u64, times: u64) {
        if self.last.0 == ns {
            self.last.1 += times;
        } else {
            self.flush();
            self.last = (ns, times);
        }
    }

    /// All of them; none are left.
    pub(crate) fn take(&mut self) -> Histogram<u64> {
        self.flush();
        let empty = Histogram::new_from(&self.histogram);
        std::mem::replace(&mut self.histogram, empty)
    }

    fn flush(&mut self) {
        let (ns, times) = std::mem::take(&mut self.last);
        if times > 0 {
            self.histogram.saturating_record_n(ns, times);
        }
    }
}
