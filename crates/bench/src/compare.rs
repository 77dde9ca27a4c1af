//! A controller and the canned responder under the same load, in alternation.
//!
//! A machine's mood changes: single runs of the same program differ by a fifth on a busy one. So a
//! controller's figure is given as a share of the responder's, pair by pair, each pair measured within
//! seconds, and the median of the pairs with their spread is the result.

use std::fmt;
use std::net::SocketAddr;

use serde::Serialize;

use crate::error::BenchError;
use crate::lead::{Progress, Watch, run};
use crate::load::Load;
use crate::process::Stopped;
use crate::report::{Bound, Report, Spread, Summary};

/// Pairs that are enough for a result that is worth telling.
pub const ENOUGH_PAIRS: u32 = 9;

/// The responder, or whatever else the controller is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    /// Where it listens.
    pub target: SocketAddr,
    /// Its process.
    pub pid: u32,
}

/// A controller and a reference, compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Pairs that were measured.
    pub pairs: u32,
    /// The controller's runs.
    pub controller: Report,
    /// The reference's.
    pub reference: Report,
    /// The controller's rate as a share of the reference's.
    pub rate: Spread,
    /// The controller's CPU time for each flow set-up, in those of the reference.
    pub cpu: Option<Spread>,
    /// The controller's median latency, in those of the reference.
    pub p50: Option<Spread>,
    /// The controller's latency that 1% exceed, in those of the reference.
    pub p99: Option<Spread>,
}

/// Measures a controller and a reference in turn, so many times. The load's runs are those of each
/// half of a pair; the median of several is taken.
///
/// # Errors
/// As [`run`]; and when either ends before its time.
pub fn compare(
    load: &Load,
    watch: &Watch,
    reference: &Reference,
    pairs: u32,
    progress: &mut dyn FnMut(u32, Progress),
) -> Result<Comparison, BenchError> {
    let ours = Side { load: load.clone(), watch: *watch, stops: false };
    let theirs = Side {
        load: Load { target: reference.target, ..load.clone() },
        watch: Watch { pid: Some(reference.pid), ..*watch },
        stops: false,
    };
    alternate(&ours, &theirs, pairs, progress)
}

/// One of two that take turns.
#[derive(Clone, Debug)]
pub struct Side {
    /// The load that is put on it.
    pub load: Load,
    /// What is measured beside it.
    pub watch: Watch,
    /// Whether its process is stopped by a signal while it is not its turn. One that spins would
    /// otherwise take the core from the other.
    pub stops: bool,
}

impl Side {
    fn stop(&self) -> Option<Stopped> {
        self.watch.pid.filter(|_| self.stops).map(Stopped::new)
    }
}

/// Measures two in turn, so many times.
///
/// # Errors
/// As [`run`]; and when either ends before its time.
pub fn alternate(
    ours: &Side,
    theirs: &Side,
    pairs: u32,
    progress: &mut dyn FnMut(u32, Progress),
) -> Result<Comparison, BenchError> {
    let mut half = |pair, side: &Side, other: &Side| {
        let _stopped = other.stop();
        let report = run(&side.load, &side.watch, &mut |at| progress(pair, at))?;
        match &report.failure {
            None => Ok(report),
            Some(failure) => Err(BenchError::EndedEarly(failure.clone())),
        }
    };
    let mut controller = half(1, ours, theirs)?;
    let mut reference = half(1, theirs, ours)?;
    let mut ratios = Ratios::default();
    ratios.add(&controller.summary, &reference.summary);
    for pair in 2..=pairs {
        let our_half = half(pair, ours, theirs)?;
        let their_half = half(pair, theirs, ours)?;
        ratios.add(&our_half.summary, &their_half.summary);
        controller.absorb(our_half);
        reference.absorb(their_half);
    }
    let spread = |ratios: &[f64]| (!ratios.is_empty()).then(|| Spread::of(ratios));
    Ok(Comparison {
        pairs: pairs.max(1),
        rate: Spread::of(&ratios.rate),
        cpu: spread(&ratios.cpu),
        p50: spread(&ratios.p50),
        p99: spread(&ratios.p99),
        controller,
        reference,
    })
}

/// What each pair said.
#[derive(Default)]
struct Ratios {
    rate: Vec<f64>,
    cpu: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
}

impl Ratios {
    fn add(&mut self, ours: &Summary, theirs: &Summary) {
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
    /// Whether every answer of the controller, and of the reference, was right.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.controller.summary.tally.is_clean() && self.reference.summary.tally.is_clean()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "CONTROLLER\n{}\nREFERENCE\n{}", self.controller, self.reference)?;
        let row = |f: &mut fmt::Formatter<'_>, name: &str, spread: Spread| {
            let Spread { median, least, most } = spread;
            writeln!(f, "{name:<28}{median:>7.3} of the reference's ({least:.3} to {most:.3})")
        };
        writeln!(f, "COMPARED, median of {} pairs", self.pairs)?;
        let bound = |report: &Report| report.summary.bound == Bound::Generator;
        if bound(&self.controller) || bound(&self.reference) {
            writeln!(f, "the rates are generator-bound; go by the CPU time")?;
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
