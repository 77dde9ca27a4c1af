//! Compares a controller with a reference, such as the canned responder: same load, in alternation.
//!
//! The speed of a machine varies: on a busy one, single runs of the same program differ by a fifth.
//! So a controller's figure is a ratio to the reference's figure, pair by pair. Each pair is
//! measured within seconds. The result is the median of the pairs, with their spread.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::error::BenchError;
use crate::lead::{ConnectedTest, MeasuredProcess, TestProgress};
use crate::load::Load;
use crate::process::PausedProcess;
use crate::report::{RateBound, Report, RunSummary, Spread};
use crate::threads::allow_files;

/// Number of pairs for a result that can be relied on.
pub const ENOUGH_PAIRS: u32 = 9;

/// A controller and a reference, compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Name of the reference, for the report. `alternate` does not know it.
    pub name: String,
    /// Number of pairs measured.
    pub pairs: u32,
    /// The controller's runs.
    pub controller: Report,
    /// The reference's runs.
    pub reference: Report,
    /// The controller's rate divided by the reference's.
    pub rate: Spread,
    /// The controller's CPU time per flow set-up, divided by the reference's.
    pub cpu: Option<Spread>,
    /// The controller's median latency, divided by the reference's.
    pub p50: Option<Spread>,
    /// The controller's 99th percentile of latency, divided by the reference's.
    pub p99: Option<Spread>,
}

/// One side of a comparison. While the other side is measured, its process is stopped by a signal
/// if this program started it: a process that spins would take CPU time from the other.
#[derive(Clone, Debug)]
pub struct Side {
    /// The load on it. [`Load::runs`] is the number of runs of one half of a pair; their median
    /// counts.
    pub load: Load,
    /// What to measure beside the load.
    pub watch: MeasuredProcess,
    /// Time of load before its first run, after its switches are connected.
    pub settle: Duration,
}

impl Side {
    fn stop(&self) -> Option<PausedProcess> {
        self.watch.pid.map(PausedProcess::new)
    }
}

/// Measures a controller and a reference in turn, `pairs` times.
///
/// The switches of both stay connected from the first pair to the last, so that each pair is
/// measured within moments. If the process may not open that many files, each side connects anew
/// for each turn.
///
/// `progress` also gets the number of the turn, from 1 to twice the pairs.
///
/// # Errors
/// As [`crate::run`]; also if either side ends early.
pub fn alternate(
    ours: &Side,
    theirs: &Side,
    pairs: u32,
    progress: &mut dyn FnMut(u32, TestProgress),
) -> Result<Comparison, BenchError> {
    let turn = Cell::new(0);
    let progress = RefCell::new(progress);
    let tell = |at| (progress.borrow_mut())(turn.get(), at);
    let keep = allow_files(ours.load.switches + theirs.load.switches).is_ok();
    let mut our_turns = Turns { side: ours, other: theirs, test: None, keep, tell };
    let mut their_turns = Turns { side: theirs, other: ours, test: None, keep, tell };
    let mut pair = || {
        turn.set(turn.get() + 1);
        let ours = our_turns.next()?;
        turn.set(turn.get() + 1);
        Ok::<_, BenchError>((ours, their_turns.next()?))
    };
    let (mut controller, mut reference) = pair()?;
    let mut ratios = Ratios::default();
    ratios.add(&controller.summary, &reference.summary);
    for _ in 2..=pairs {
        let (our_half, their_half) = pair()?;
        ratios.add(&our_half.summary, &their_half.summary);
        controller.absorb(our_half);
        reference.absorb(their_half);
    }
    let spread = |ratios: &[f64]| (!ratios.is_empty()).then(|| Spread::of(ratios));
    Ok(Comparison {
        name: String::from("reference"),
        pairs: pairs.max(1),
        rate: Spread::of(&ratios.rate),
        cpu: spread(&ratios.cpu),
        p50: spread(&ratios.p50),
        p99: spread(&ratios.p99),
        controller,
        reference,
    })
}

struct Turns<'a, F> {
    side: &'a Side,
    other: &'a Side,
    /// Its test, with switches connected, after the first turn.
    test: Option<ConnectedTest<'a>>,
    keep: bool,
    tell: F,
}

impl<'a, F: FnMut(TestProgress) + Copy + 'a> Turns<'a, F> {
    fn next(&mut self) -> Result<Report, BenchError> {
        let _stopped = self.other.stop();
        let mut test = match self.test.take() {
            Some(test) => test,
            None => {
                let Side { load, watch, settle } = self.side;
                let mut test = ConnectedTest::begin(load, watch, Box::new(self.tell))?;
                test.settle(*settle)?;
                test
            }
        };
        let report = test.runs()?;
        self.test = self.keep.then_some(test);
        match &report.failure {
            None => Ok(report),
            Some(failure) => Err(BenchError::EndedEarly(failure.clone())),
        }
    }
}

#[derive(Default)]
struct Ratios {
    rate: Vec<f64>,
    cpu: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
}

impl Ratios {
    fn add(&mut self, ours: &RunSummary, theirs: &RunSummary) {
        let ratio = |ours: f64, theirs: f64| (theirs > 0.0).then(|| ours / theirs);
        self.rate.extend(ratio(ours.rate.median, theirs.rate.median));
        if let (Some(ours), Some(theirs)) = (ours.controller_cpu_ns, theirs.controller_cpu_ns) {
            self.cpu.extend(ratio(ours.median, theirs.median));
        }
        if let (Some(ours), Some(theirs)) = (&ours.latency, &theirs.latency) {
            self.p50.extend(ratio(ours.p50 as f64, theirs.p50 as f64));
            self.p99.extend(ratio(ours.p99 as f64, theirs.p99 as f64));
        }
    }
}

impl Comparison {
    /// Whether every answer of both sides was right.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.controller.summary.tally.is_clean() && self.reference.summary.tally.is_clean()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "CONTROLLER\n{}\nREFERENCE: {}\n{}",
            self.controller, self.name, self.reference
        )?;
        let row = |f: &mut fmt::Formatter<'_>, name: &str, spread: Spread| {
            let Spread { median, least, most } = spread;
            writeln!(f, "{name:<28}{median:>8.3} times the reference's ({least:.3} to {most:.3})")
        };
        writeln!(f, "COMPARED, median of {} pairs", self.pairs)?;
        let bound = |report: &Report| report.summary.bound == RateBound::Generator;
        if bound(&self.controller) || bound(&self.reference) {
            writeln!(f, "the rates are generator-bound; compare the CPU time instead")?;
        }
        row(f, "rate", self.rate)?;
        for (name, spread) in
            [("CPU time for each", self.cpu), ("latency p50", self.p50), ("latency p99", self.p99)]
        {
            if let Some(spread) = spread {
                row(f, name, spread)?;
            }
        }
        if self.pairs < ENOUGH_PAIRS {
            writeln!(f, "fewer than {ENOUGH_PAIRS} pairs: an impression, not a result")?;
        }
        Ok(())
    }
}
