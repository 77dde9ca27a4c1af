//! The experiments of the studies, by name. Each has a folder with raw data, plots and a report.
//!
//! # What it is
//! [`run`] measures every contestant in turn at each point of an experiment, in several rounds,
//! each time with a fresh process, on the same cores. [`redraw`] makes plots and reports again from
//! the raw data. [`EXPERIMENTS`] is the table of experiments.
//!
//! # What it is not
//! It does not depend on controllers: the caller gives their commands ([`Contestant`]).
//!
//! # Files
//! The folder has `report.html` on all experiments, files of the contestants, and `logs/`. Each
//! experiment has `raw.json`, each plot as SVG, PNG, PDF and CSV, and `report.html`. Each report is
//! one file that loads nothing. A suite that fails before it measures leaves no folder behind.

mod cores;
mod curves;
mod error;
mod experiments;
mod files;
mod hostile;
mod html;
pub(crate) mod machine;
mod record;
mod rows;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bellrock_bench::peer::{Contestant, ContestantRole, PlaceholderValues};
use bellrock_bench::threads::{allow_files, usable_cores};
use bellrock_bench::{
    BenchError, ControllerProcess, GeneratorCores, Load, LoadError, MeasuredProcess, Report,
    TestProgress, free_address,
};
use bellrock_openflow::Version;
use serde_json::Value;

use crate::plot::Unit;

use cores::Share;
pub use error::SuiteError;
pub use experiments::{EXPERIMENTS, Experiment, SHARED_TABLES, experiment};
use experiments::{ExperimentCase, READ_BYTES, Scope};
pub use files::redraw;
pub use hostile::WITH_SERVICES;
use machine::{Machine, now};
use record::{Entrant, FORMAT, PointResult, SuiteSettings};
pub use record::{ExperimentRecord, Figures};

/// Time for a contestant to listen after its start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

const MAX_RUNS: u32 = 1000;

/// Settings of a suite.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Names of experiments; all if empty.
    pub experiments: Vec<String>,
    /// Folder for results. It must be new or empty.
    pub folder: PathBuf,
    /// Contestants, in the order of their turns. One is [`ContestantRole::Ours`].
    pub contestants: Vec<Contestant>,
    /// Address for contestants whose command has no placeholder for it.
    pub connect: SocketAddr,
    /// The version that the switches speak.
    pub version: Version,
    /// Whether to measure fewer points.
    pub quick: bool,
    /// Number of rounds: runs of each contestant at each point.
    pub runs: u32,
    /// Time that each run measures.
    pub duration: Duration,
    /// Time of load before each measurement.
    pub warm_up: Duration,
    /// Time for a controller to learn the destinations of a point. If it takes longer, it does not
    /// get points with more.
    pub learn_timeout: Duration,
    /// Threads of the controllers where an experiment does not vary them.
    pub workers: usize,
    /// Power in watts, to estimate energy that cannot be measured.
    pub tdp_watts: Option<f64>,
}

/// Progress of a suite.
#[derive(Clone, Copy, Debug)]
pub struct SuiteProgress<'a> {
    /// Number of the run, from 1.
    pub run: u32,
    /// Number of all runs.
    pub of: u32,
    /// Name of the experiment.
    pub experiment: &'a str,
    /// Name of the contestant.
    pub contestant: &'a str,
    /// The point, in words.
    pub label: &'a str,
    /// Progress of the run.
    pub inner: TestProgress,
}

/// Result of a suite.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Path of the report on all experiments.
    pub report: PathBuf,
    /// Faults of the controller that the suite measures: runs that ended early, and wrong answers.
    pub faults: Vec<String>,
    /// Faults of peers and of the responder.
    pub others: Vec<String>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Runs the experiments and writes the results.
///
/// # Errors
/// Any error before the first measurement, or results that cannot be written. If a contestant fails
/// during a measurement, this is noted, and the suite goes on.
pub fn run(
    suite: &Suite,
    progress: &mut dyn FnMut(SuiteProgress<'_>),
) -> Result<Finished, SuiteError> {
    let chosen = choose(&suite.experiments)?;
    let cores = usable_cores();
    in_range("runs", suite.runs.into(), MAX_RUNS.into())?;
    in_range("workers", suite.workers as u64, cores.len().max(1) as u64)?;
    let scope = Scope {
        quick: suite.quick,
        cores: cores.len().max(1),
        workers: suite.workers,
        version: suite.version,
        warm_up: suite.warm_up,
        duration: suite.duration,
        learn_timeout: suite.learn_timeout,
    };
    let cases: Vec<_> = chosen.iter().map(|one| (one, (one.cases)(&scope))).collect();
    for case in cases.iter().flat_map(|(_, cases)| cases) {
        case.load.check().map_err(BenchError::from)?;
        allow_files(case.load.switches + case.attack.switches(suite.quick))?;
    }
    let made = files::prepare(&suite.folder, &suite.contestants)?;
    let folder = suite.folder.canonicalize().map_err(SuiteError::file(&suite.folder))?;
    let machine = Machine::this(cores.len());
    let mut work =
        SuiteWork { suite, folder, machine, cores, run: 0, of: 0, too_many: Vec::new(), progress };
    work.of = cases.iter().flat_map(|(_, cases)| cases).map(|case| work.runs_of(case)).sum();
    if let Err(error) = work.try_all() {
        made.take_back();
        return Err(error);
    }
    let mut records = Vec::new();
    for (experiment, cases) in &cases {
        let record = work.experiment(experiment, cases);
        files::write(&work.folder.join(experiment.name), &record)?;
        records.push(record);
    }
    let report = files::write_all(&work.folder, &records)?;
    Ok(finished(report, &records))
}

/// Checks that a number is between one and a maximum.
fn in_range(what: &'static str, value: u64, most: u64) -> Result<(), BenchError> {
    match (1..=most).contains(&value) {
        true => Ok(()),
        false => Err(LoadError::Range { what, value, least: 1, most }.into()),
    }
}

fn choose(names: &[String]) -> Result<Vec<&'static Experiment>, SuiteError> {
    if names.is_empty() {
        return Ok(EXPERIMENTS.iter().collect());
    }
    let mut chosen: Vec<&'static Experiment> = Vec::new();
    for name in names {
        let found = experiment(name).ok_or_else(|| SuiteError::unknown(name))?;
        if !chosen.iter().any(|one| one.name == found.name) {
            chosen.push(found);
        }
    }
    Ok(chosen)
}

struct SuiteWork<'s, 'p> {
    suite: &'s Suite,
    folder: PathBuf,
    /// The machine before the first measurement.
    machine: Machine,
    /// Cores that the process may use.
    cores: Vec<usize>,
    run: u32,
    of: u32,
    /// Contestants that did not learn this many destinations in time, by index.
    too_many: Vec<(usize, u64)>,
    progress: &'p mut dyn FnMut(SuiteProgress<'_>),
}

impl SuiteWork<'_, '_> {
    /// Starts each contestant once, so that a contestant that does not start is reported at once
    /// and not after hours.
    fn try_all(&self) -> Result<(), SuiteError> {
        for contestant in &self.suite.contestants {
            let share = Share::of(&self.cores, 1);
            let started = self.start(contestant, 1, READ_BYTES, None, &share);
            started.map_err(|error| self.died(contestant, error))?;
        }
        Ok(())
    }

    fn died(&self, contestant: &Contestant, error: BenchError) -> SuiteError {
        SuiteError::Contestant {
            name: contestant.name.clone(),
            error: Box::new(error),
            said: files::log_end(&self.folder, contestant),
        }
    }

    fn start(
        &self,
        contestant: &Contestant,
        workers: usize,
        read_bytes: u32,
        variant: Option<&str>,
        share: &Share,
    ) -> Result<(ControllerProcess, SocketAddr), BenchError> {
        let target = match contestant.listens_anywhere() {
            true => free_address()?,
            false => self.suite.connect,
        };
        let places =
            PlaceholderValues { folder: &self.folder, target, workers, read_bytes, variant };
        let log = bellrock_bench::peer::quoted(&files::log(&self.folder, contestant));
        let line = format!("{} 2>>{log}", contestant.command_line(places));
        let controller = ControllerProcess::start(&line, &share.controller, target, START_TIMEOUT)?;
        Ok((controller, target))
    }

    /// Returns whether a contestant is measured at a point.
    fn takes_part(&self, contestant: &Contestant, case: &ExperimentCase) -> bool {
        let few_enough = contestant.most_switches.is_none_or(|most| case.load.switches <= most);
        let is_known = case.variant.is_none_or(|variant| contestant.has_variant(variant));
        few_enough && is_known && (case.read_bytes.is_none() || contestant.has_read_size())
    }

    fn runs_of(&self, case: &ExperimentCase) -> u32 {
        let part = self.suite.contestants.iter().filter(|one| self.takes_part(one, case));
        part.count() as u32 * self.suite.runs
    }

    fn experiment(
        &mut self,
        experiment: &Experiment,
        cases: &[ExperimentCase],
    ) -> ExperimentRecord {
        let suite = self.suite;
        let mut record = ExperimentRecord {
            format: FORMAT,
            bellrock: env!("CARGO_PKG_VERSION").to_owned(),
            experiment: experiment.name.to_owned(),
            began: now(),
            machine: self.machine.clone(),
            settings: SuiteSettings {
                openflow: suite.version.to_string(),
                quick: suite.quick,
                runs: suite.runs,
                duration_s: suite.duration.as_secs_f64(),
                warm_up_s: suite.warm_up.as_secs_f64(),
                tdp_watts: suite.tdp_watts,
            },
            contestants: suite.contestants.iter().map(Entrant::of).collect(),
            notes: self.notes(cases),
            outcomes: Vec::new(),
        };
        for case in cases {
            record.outcomes.extend(self.case(experiment, case));
        }
        record.note_what_is_missing();
        record
    }

    /// Returns notes that a reader needs before the figures.
    fn notes(&self, cases: &[ExperimentCase]) -> Vec<String> {
        let mut notes = Vec::new();
        if self.machine.is_busy() {
            notes.push(format!(
                "The machine was busy before the start ({:.2} processes on average), so the figures \
                 are too low.",
                self.machine.load_average
            ));
        }
        let shared: Vec<_> =
            cases.iter().filter(|case| Share::of(&self.cores, case.workers).shared).collect();
        if let Some(first) = shared.first() {
            notes.push(format!(
                "This machine has {} usable core(s). At {} the generator shares cores with the \
                 controller. Both get less time than on a larger machine, so such a rate does not \
                 show how the controller scales.",
                self.cores.len(),
                first.label
            ));
        }
        for contestant in &self.suite.contestants {
            let cases = || cases.iter();
            let out: Vec<&ExperimentCase> =
                cases().filter(|case| !self.takes_part(contestant, case)).collect();
            let Some(first) = out.first() else { continue };
            let name = &contestant.name;
            if let Some(variant) = first.variant {
                notes.push(format!("{name} has no variant {variant}, and so no curve for it."));
                continue;
            }
            notes.push(match contestant.most_switches {
                Some(most) if first.load.switches > most => {
                    format!("{name} takes at most {most} switches, and has no points above.")
                }
                _ => format!(
                    "{name} has no setting for the size of a read, and so no points with \
                     different sizes."
                ),
            });
        }
        notes
    }

    /// Measures all contestants at a point, in turn.
    fn case(&mut self, experiment: &Experiment, case: &ExperimentCase) -> Vec<PointResult> {
        let share = Share::of(&self.cores, case.workers);
        let suite = self.suite;
        let part = suite.contestants.iter().enumerate();
        let part: Vec<_> = part.filter(|(_, one)| self.takes_part(one, case)).collect();
        let destinations = case.load.destinations_of_all();
        let untried = |(index, _): &(usize, _)| (None, self.untried(*index, destinations));
        let mut results: Vec<(Option<Report>, Option<String>)> = part.iter().map(untried).collect();
        for _ in 0..suite.runs {
            for ((index, contestant), (report, failure)) in part.iter().zip(&mut results) {
                self.run += 1;
                if failure.is_some() {
                    continue;
                }
                match self.turn(experiment, case, contestant, &share) {
                    Ok(more) => {
                        *failure = more.failure.clone();
                        match report {
                            Some(report) => report.absorb(more),
                            None => *report = Some(more),
                        }
                    }
                    Err(error) => {
                        if let BenchError::LearnsTooSlowly { destinations, .. } = &error {
                            self.too_many.push((*index, *destinations));
                        }
                        *failure = Some(error.to_string());
                    }
                }
            }
        }
        let outcome = |((index, _), (report, failure)): (&(usize, _), (Option<Report>, _))| {
            let figures = report.as_ref().and_then(Figures::of);
            PointResult {
                contestant: *index,
                line: case.line.to_owned(),
                x: case.x,
                label: case.label.clone(),
                controller_cores: share.controller.clone(),
                generator_cores: share.generator.clone(),
                figures,
                failure,
                report: serde_json::to_value(&report).unwrap_or(Value::Null),
            }
        };
        part.iter().zip(results).map(outcome).collect()
    }

    /// Returns why a contestant does not get this many destinations, if so.
    fn untried(&self, contestant: usize, destinations: u64) -> Option<String> {
        let fewer = self
            .too_many
            .iter()
            .find(|(other, many)| *other == contestant && *many <= destinations);
        fewer.map(|(_, many)| {
            format!(
                "not tried: it did not learn {} destinations in time",
                Unit::Count.write(*many as f64)
            )
        })
    }

    /// Does one run of a contestant, in a new process.
    fn turn(
        &mut self,
        experiment: &Experiment,
        case: &ExperimentCase,
        contestant: &Contestant,
        share: &Share,
    ) -> Result<Report, BenchError> {
        let read_bytes = case.read_bytes.unwrap_or(READ_BYTES);
        let (workers, variant) = (case.workers, case.variant);
        let (controller, target) = self.start(contestant, workers, read_bytes, variant, share)?;
        let load = Load {
            target,
            threads: share.generator.len(),
            cores: GeneratorCores::List(share.generator.clone()),
            ..case.load.clone()
        };
        let attackers = case.attack.switches(self.suite.quick);
        let patience = case.load.connect_timeout;
        let attack = case
            .attack
            .start(target, self.suite.version, attackers, patience)
            .map_err(BenchError::system("start the hostile switches"))?;
        let watch =
            MeasuredProcess { pid: Some(controller.pid()), tdp_watts: self.suite.tdp_watts };
        let report = bellrock_bench::run(&load, &watch, &mut |inner| {
            (self.progress)(SuiteProgress {
                run: self.run,
                of: self.of,
                experiment: experiment.name,
                contestant: &contestant.name,
                label: &case.label,
                inner,
            });
        })?;
        attack.end().map_err(BenchError::system("go on with the hostile switches"))?;
        Ok(report)
    }
}

impl Entrant {
    fn of(contestant: &Contestant) -> Self {
        let Contestant { name, role, command, .. } = contestant;
        Entrant { name: name.clone(), role: *role, command: command.clone() }
    }
}

impl ExperimentRecord {
    /// Adds notes on data that readers may miss.
    fn note_what_is_missing(&mut self) {
        let figures = || self.outcomes.iter().filter_map(|one| one.figures.as_ref());
        if self.experiment == "energy" && figures().all(|figures| figures.per_joule.is_none()) {
            self.notes.push(
                "Energy was not measured: this process cannot read the processor's counters (RAPL; \
                 often only root can), and no --tdp-watts was given for an estimate. The plot \
                 shows CPU time instead."
                    .to_owned(),
            );
        }
        if self.experiment == "energy" && figures().any(|figures| figures.joules_estimated) {
            let watts = self.settings.tdp_watts.unwrap_or_default();
            self.notes.push(format!(
                "Energy is an estimate: {watts} W of thermal design power times the time. The \
                 machine uses less when it is not busy."
            ));
        }
    }
}

fn finished(report: PathBuf, records: &[ExperimentRecord]) -> Finished {
    let (mut faults, mut others, mut notes) = (Vec::new(), Vec::new(), Vec::<String>::new());
    for record in records {
        // Reports a note that several experiments share once.
        for note in &record.notes {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        for outcome in &record.outcomes {
            let Some(entrant) = record.entrant(outcome) else { continue };
            let place = format!("{}, {}, {}", record.experiment, outcome.label, entrant.name);
            let wrong = outcome.figures.as_ref().map_or(0, |figures| figures.not_right);
            let list = if entrant.role == ContestantRole::Ours { &mut faults } else { &mut others };
            list.extend(outcome.failure.as_ref().map(|failure| format!("{place}: {failure}")));
            if wrong > 0 {
                list.push(format!("{place}: {wrong} answers wrong, missing or too many"));
            }
        }
    }
    Finished { report, faults, others, notes }
}

/// Returns the names of all experiments, for messages and help.
#[must_use]
pub fn names() -> Vec<&'static str> {
    EXPERIMENTS.iter().map(|one| one.name).collect()
}

#[cfg(test)]
mod tests;
