//! Messages between the lead thread of a test and the threads that run it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::error::BenchError;
use crate::usage::ReadCounter;
use crate::verify::AnswerTally;

/// Maximum latency that is recorded, in nanoseconds: one minute. Longer ones count as this.
const LONGEST_NS: u64 = 60_000_000_000;

/// Significant digits of a recorded latency.
const DIGITS: u8 = 3;

/// Phase of the threads. The lead starts each phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunPhase {
    /// Nothing to do yet.
    Idle,
    /// Connect all switches. Wait until they are up and the controller is quiet.
    Connect,
    /// Make the destinations known.
    Learn,
    /// Send the load.
    Load,
    /// Send the load and measure.
    Measure,
    /// Stop the load and wait for the last answers.
    Drain,
    /// Close all connections and end.
    Close,
}

const PHASES: [RunPhase; 7] = [
    RunPhase::Idle,
    RunPhase::Connect,
    RunPhase::Learn,
    RunPhase::Load,
    RunPhase::Measure,
    RunPhase::Drain,
    RunPhase::Close,
];

/// State that the lead and the threads share: the phase and the progress.
#[derive(Debug)]
pub(crate) struct RunControl {
    /// Number of phases so far, and the current phase in the lowest byte.
    word: AtomicU64,
    epoch: Instant,
    pub(crate) up: AtomicU64,
    /// Number of flow set-ups or connections.
    pub(crate) done: AtomicU64,
}

impl RunControl {
    pub(crate) fn new() -> Self {
        RunControl {
            word: AtomicU64::new(0),
            epoch: Instant::now(),
            up: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }

    /// Starts a phase on all threads.
    pub(crate) fn enter(&self, phase: RunPhase) {
        let count = self.word.load(Ordering::Relaxed) >> 8;
        self.word.store(((count + 1) << 8) | phase as u64, Ordering::Release);
    }

    /// Returns a number that changes with each phase, and the phase.
    pub(crate) fn phase(&self) -> (u64, RunPhase) {
        let word = self.word.load(Ordering::Acquire);
        (word >> 8, PHASES.get((word & 0xff) as usize).copied().unwrap_or(RunPhase::Close))
    }

    /// Returns the nanoseconds since the test began.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}

/// Report of a thread to the lead.
#[derive(Debug)]
pub(crate) enum ThreadReport {
    /// The thread has entered the phase of the load or of the measurement.
    Entered,
    /// The phase is done: all switches are connected, or all destinations are learnt.
    Ready,
    /// Result of the measurement. It comes when the next phase begins.
    Measured(Box<ThreadMeasurement>),
    /// No more answers will come. Carries the counts of all messages of this run.
    Drained(AnswerTally),
    /// The thread has failed and ended.
    Failed {
        error: BenchError,
        /// Result of the measurement until then.
        measured: Option<Box<ThreadMeasurement>>,
        /// Counts of all messages of this run.
        tally: AnswerTally,
    },
}

/// Measurement of one thread.
#[derive(Debug)]
pub(crate) struct ThreadMeasurement {
    pub(crate) thread: usize,
    pub(crate) elapsed: Duration,
    pub(crate) cpu: Duration,
    /// Number of flow set-ups or connections, for each of its switches.
    pub(crate) done: Vec<u64>,
    /// Time from sent (or due) to answered, or from connecting to up.
    pub(crate) latency: Histogram<u64>,
    /// Time from due to sent.
    pub(crate) lateness: Histogram<u64>,
    pub(crate) failed_connections: u64,
    pub(crate) reads: ReadCounter,
}

/// Recorder of latencies, in nanoseconds. A value that repeats, as when one read brings many
/// answers, is recorded once with its count.
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

    /// Adds a latency. One above a minute counts as a minute.
    #[inline]
    pub(crate) fn add(&mut self, ns: u64) {
        self.add_times(ns, 1);
    }

    /// Adds the same latency `times` times.
    #[inline]
    pub(crate) fn add_times(&mut self, ns: u64, times: u64) {
        if self.last.0 == ns {
            self.last.1 += times;
        } else {
            self.flush();
            self.last = (ns, times);
        }
    }

    /// Takes the histogram and leaves an empty one.
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
