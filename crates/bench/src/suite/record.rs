//! What an experiment found, as it is kept in `raw.json`: all that plots and reports are made from,
//! so that they can be made again without measuring.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compare::ENOUGH_PAIRS;
use crate::peer::Role;
use crate::report::{Bound, Latency, Report, Run, Spread};

use super::machine::Machine;

/// The form of the file. Another one cannot be read.
pub(super) const FORMAT: u32 = 1;

/// An experiment with all that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The form of the file.
    pub format: u32,
    /// The version of Bellrock that measured.
    pub bellrock: String,
    /// The experiment's name.
    pub experiment: String,
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// Where.
    pub machine: Machine,
    /// How long and how often.
    pub settings: Settings,
    /// Who took part.
    pub contestants: Vec<Entrant>,
    /// What a reader has to know.
    pub notes: Vec<String>,
    /// What was measured.
    pub outcomes: Vec<Outcome>,
}

/// How long and how often was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The version of OpenFlow.
    pub openflow: String,
    /// Whether it was the short form.
    pub quick: bool,
    /// Runs of each contestant at each point, in turn.
    pub runs: u32,
    /// Seconds of each.
    pub duration_s: f64,
    /// Seconds of load before each.
    pub warm_up_s: f64,
    /// Power that energy is estimated from where it cannot be measured.
    pub tdp_watts: Option<f64>,
}

/// A controller that took part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entrant {
    /// Its name.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// How it was started.
    pub command: String,
}

/// What one contestant did at one point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Which, by its place in [`Record::contestants`].
    pub contestant: usize,
    /// The curve that the point belongs to.
    pub line: String,
    /// Where on the axis.
    pub x: f64,
    /// That in words.
    pub label: String,
    /// Cores that the controller was kept on.
    pub controller_cores: Vec<usize>,
    /// Those that the generator was kept on.
    pub generator_cores: Vec<usize>,
    /// What was found, in short; `None` if no run came to its end.
    pub figures: Option<Figures>,
    /// Why it ended before its time.
    pub failure: Option<String>,
    /// All of it: what `bellrock bench --json` prints.
    pub report: Value,
}

/// What plots and tables need of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Flow set-ups a second of each run, in order: that with the same place is the other half of a
    /// pair.
    pub rates: Vec<f64>,
    /// CPU nanoseconds for each flow set-up, of each run.
    pub cpu_ns: Vec<f64>,
    /// Jain's index.
    pub jain: Spread,
    /// The slowest switch's share of the median switch.
    pub slowest: Spread,
    /// Latencies.
    pub latency: Option<Latency>,
    /// Flow set-ups per joule.
    pub per_joule: Option<Spread>,
    /// Joules were estimated from thermal design power.
    pub joules_estimated: bool,
    /// Bytes that the controller got with each read, where that is known.
    pub bytes_per_read: Option<Spread>,
    /// Rate times mean latency as a share of what was in flight.
    pub little: Option<Spread>,
    /// The generator set the pace in some run.
    pub generator_bound: bool,
    /// The fields that flows matched, by their names in OpenFlow 1.3. Empty in older files.
    #[serde(default)]
    pub matched: Vec<String>,
    /// Packet_ins that were answered completely and rightly.
    pub verified: u64,
    /// Answers that were wrong or too many, errors, and packet_ins without an answer.
    pub not_right: u64,
    /// Packet_ins that were still in the queue long after the run.
    pub unfinished: u64,
}

impl Outcome {
    /// Whether controller and generator were kept on a common core.
    pub(crate) fn shares_cores(&self) -> bool {
        self.generator_cores.iter().any(|core| self.controller_cores.contains(core))
    }
}

impl Figures {
    /// Those of a report; `None` if no run is complete.
    #[must_use]
    pub fn of(report: &Report) -> Option<Self> {
        let runs: Vec<&Run> = report.runs.iter().filter(|run| run.complete).collect();
        let numbers = |number: &dyn Fn(&Run) -> Option<f64>| -> Vec<f64> {
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
            generator_bound: report.summary.bound == Bound::Generator,
            matched: tally.matched.names().map(str::to_owned).collect(),
            verified: tally.verified,
            not_right: tally.wrong() + tally.extra + tally.errors + tally.unanswered(),
            unfinished: tally.unfinished,
        })
    }

    /// Flow set-ups a second.
    #[must_use]
    pub fn rate(&self) -> Spread {
        Spread::of(&self.rates)
    }

    /// CPU nanoseconds for each flow set-up, if they are known.
    #[must_use]
    pub fn cpu(&self) -> Option<Spread> {
        (!self.cpu_ns.is_empty()).then(|| Spread::of(&self.cpu_ns))
    }
}

/// Numbers as shares of those that were measured in the same turn; `None` without any.
pub(crate) fn shares(ours: &[f64], theirs: &[f64]) -> Option<Spread> {
    let pairs = ours.iter().zip(theirs).filter(|(_, theirs)| **theirs > 0.0);
    let shares: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
    (!shares.is_empty()).then(|| Spread::of(&shares))
}

impl Record {
    /// The contestant of an outcome.
    pub(crate) fn entrant(&self, outcome: &Outcome) -> Option<&Entrant> {
        self.contestants.get(outcome.contestant)
    }

    /// The fields that the flows of a contestant matched, wherever it was measured.
    pub(crate) fn matched(&self, contestant: usize) -> Vec<&str> {
        let figures = self.outcomes.iter().filter(|one| one.contestant == contestant);
        let found = figures.filter_map(|one| one.figures.as_ref()).find(|f| !f.matched.is_empty());
        found.map_or_else(Vec::new, |one| one.matched.iter().map(String::as_str).collect())
    }

    /// What a reader has to know who sees nothing but a picture.
    pub(crate) fn caveats(&self) -> Vec<String> {
        let Settings { quick, runs, duration_s, .. } = &self.settings;
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
        if self.outcomes.iter().any(Outcome::shares_cores) {
            caveats.push(
                "too few cores: at some points the generator shared a core with the controller"
                    .to_owned(),
            );
        }
        caveats
    }

    /// The responder's figures at the same point.
    pub(crate) fn responder_at(&self, outcome: &Outcome) -> Option<&Figures> {
        let same = |other: &&Outcome| {
            other.line == outcome.line
                && other.x == outcome.x
                && self.entrant(other).is_some_and(|entrant| entrant.role == Role::Responder)
        };
        self.outcomes.iter().find(same).and_then(|other| other.figures.as_ref())
    }
}
