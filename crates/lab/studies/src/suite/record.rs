//! The results of an experiment, as stored in `raw.json`. Plots and reports are made from them, so
//! they can be made again without measuring.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use bellrock_bench::peer::ContestantRole;
use bellrock_bench::{ENOUGH_PAIRS, LatencyReport, RateBound, Report, RunReport, Spread};

use super::machine::Machine;

/// Version of the file format. Files with another version cannot be read.
pub(super) const FORMAT: u32 = 1;

/// An experiment with all its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExperimentRecord {
    /// Version of the file format.
    pub format: u32,
    /// Version of Bellrock.
    pub bellrock: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Time of the start, in seconds since 1970.
    pub began: u64,
    /// The machine.
    pub machine: Machine,
    /// Settings of the suite.
    pub settings: SuiteSettings,
    /// The contestants.
    pub contestants: Vec<Entrant>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The results.
    pub outcomes: Vec<PointResult>,
}

/// Settings of a suite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SuiteSettings {
    /// OpenFlow version.
    pub openflow: String,
    /// Whether fewer points were measured.
    pub quick: bool,
    /// Runs of each contestant at each point, in turn.
    pub runs: u32,
    /// Seconds that each run measures.
    pub duration_s: f64,
    /// Seconds of load before each measurement.
    pub warm_up_s: f64,
    /// Power in watts, to estimate energy that cannot be measured.
    pub tdp_watts: Option<f64>,
}

/// A controller that took part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entrant {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: ContestantRole,
    /// Its command.
    pub command: String,
}

/// Result of one contestant at one point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PointResult {
    /// Index in [`ExperimentRecord::contestants`].
    pub contestant: usize,
    /// Its curve.
    pub line: String,
    /// Its position on the x axis.
    pub x: f64,
    /// The position in words.
    pub label: String,
    /// Cores of the controller.
    pub controller_cores: Vec<usize>,
    /// Cores of the generator.
    pub generator_cores: Vec<usize>,
    /// The figures; `None` if no run was completed.
    pub figures: Option<Figures>,
    /// Why it ended early.
    pub failure: Option<String>,
    /// The full report, as `bellrock bench --json` prints it.
    pub report: Value,
}

/// The figures that plots and tables need from a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Flow set-ups per second of each run, in order. The runs with the same index of two
    /// contestants are a pair.
    pub rates: Vec<f64>,
    /// CPU nanoseconds per flow set-up, of each run.
    pub cpu_ns: Vec<f64>,
    /// Jain's index.
    pub jain: Spread,
    /// The slowest switch's rate divided by the median.
    pub slowest: Spread,
    /// Latencies.
    pub latency: Option<LatencyReport>,
    /// Flow set-ups per joule.
    pub per_joule: Option<Spread>,
    /// Whether the joules are estimated from thermal design power.
    pub joules_estimated: bool,
    /// Bytes per read of the controller, if known.
    pub bytes_per_read: Option<Spread>,
    /// Rate times mean latency, divided by the number in flight.
    pub little: Option<Spread>,
    /// Whether the generator limited the rate in some run.
    pub generator_bound: bool,
    /// The fields that flows matched, with their OpenFlow 1.3 names. Empty in older files.
    #[serde(default)]
    pub matched: Vec<String>,
    /// Number of packet_ins with a complete and right answer.
    pub verified: u64,
    /// Number of wrong or extra answers, errors, and packet_ins without an answer.
    pub not_right: u64,
    /// Number of packet_ins still in the queue long after the run.
    pub unfinished: u64,
}

impl PointResult {
    /// Returns whether controller and generator shared a core.
    pub(crate) fn shares_cores(&self) -> bool {
        self.generator_cores.iter().any(|core| self.controller_cores.contains(core))
    }
}

impl Figures {
    /// Takes the figures of a report; `None` if no run is complete.
    #[must_use]
    pub fn of(report: &Report) -> Option<Self> {
        let runs: Vec<&RunReport> = report.runs.iter().filter(|run| run.complete).collect();
        let numbers = |number: &dyn Fn(&RunReport) -> Option<f64>| -> Vec<f64> {
            runs.iter().filter_map(|run| number(run)).collect()
        };
        let some = |numbers: Vec<f64>| (!numbers.is_empty()).then(|| Spread::of(&numbers));
        let tally = &report.summary.tally;
        (!runs.is_empty()).then(|| Figures {
            rates: numbers(&|run| Some(run.rate)),
            cpu_ns: numbers(&|run| run.controller_cpu_ns),
            jain: report.summary.jain,
            slowest: Spread::of(&numbers(&|run| Some(run.fairness.slowest))),
            latency: report.summary.latency.clone(),
            per_joule: report.summary.done_per_joule,
            joules_estimated: runs.iter().any(|run| run.energy.is_some_and(|e| e.estimated)),
            bytes_per_read: some(numbers(&|run| run.controller_bytes_per_read)),
            little: some(numbers(&|run| run.little.map(|little| little.ratio()))),
            generator_bound: report.summary.bound == RateBound::Generator,
            matched: tally.matched.names().map(str::to_owned).collect(),
            verified: tally.verified,
            not_right: tally.wrong() + tally.extra + tally.errors + tally.unanswered(),
            unfinished: tally.unfinished,
        })
    }

    /// Flow set-ups per second.
    #[must_use]
    pub fn rate(&self) -> Spread {
        Spread::of(&self.rates)
    }

    /// CPU nanoseconds per flow set-up, if known.
    #[must_use]
    pub fn cpu(&self) -> Option<Spread> {
        (!self.cpu_ns.is_empty()).then(|| Spread::of(&self.cpu_ns))
    }
}

/// Divides each number by that of the same turn; `None` if there are none.
pub(crate) fn shares(ours: &[f64], theirs: &[f64]) -> Option<Spread> {
    let pairs = ours.iter().zip(theirs).filter(|(_, theirs)| **theirs > 0.0);
    let shares: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
    (!shares.is_empty()).then(|| Spread::of(&shares))
}

impl ExperimentRecord {
    pub(crate) fn entrant(&self, outcome: &PointResult) -> Option<&Entrant> {
        self.contestants.get(outcome.contestant)
    }

    /// Returns the fields that the flows of a contestant matched, from the first outcome that has
    /// them.
    pub(crate) fn matched(&self, contestant: usize) -> Vec<&str> {
        let figures = self.outcomes.iter().filter(|one| one.contestant == contestant);
        let found = figures.filter_map(|one| one.figures.as_ref()).find(|f| !f.matched.is_empty());
        found.map_or_else(Vec::new, |one| one.matched.iter().map(String::as_str).collect())
    }

    /// Returns warnings for readers who see only the picture.
    pub(crate) fn caveats(&self) -> Vec<String> {
        let SuiteSettings { quick, runs, duration_s, .. } = &self.settings;
        let mut caveats = Vec::new();
        if *quick {
            caveats.push(format!(
                "quick: fewer points, {runs} run(s) of {duration_s} s each; an impression, not a result"
            ));
        } else if *runs < ENOUGH_PAIRS {
            caveats.push(format!(
                "{runs} run(s) of each controller: an impression; {ENOUGH_PAIRS} make a result"
            ));
        }
        if self.machine.is_busy() {
            caveats.push(format!(
                "busy machine: {:.2} processes ran on average before it began, so rates are too low",
                self.machine.load_average
            ));
        }
        if self.outcomes.iter().any(PointResult::shares_cores) {
            caveats.push(
                "too few cores: at some points the generator shared a core with the controller"
                    .to_owned(),
            );
        }
        caveats
    }

    /// Returns the responder's figures at the same point.
    pub(crate) fn responder_at(&self, outcome: &PointResult) -> Option<&Figures> {
        let same = |other: &&PointResult| {
            other.line == outcome.line
                && other.x == outcome.x
                && self
                    .entrant(other)
                    .is_some_and(|entrant| entrant.role == ContestantRole::Responder)
        };
        self.outcomes.iter().find(same).and_then(|other| other.figures.as_ref())
    }
}
