//! The targets of this project, measured: a table with target, result and verdict.
//!
//! # What it is
//! [`ROWS`] is the table. [`run`] measures its rows, each with fresh processes on the same cores,
//! in pairs that take turns. [`page`] writes the table as a Markdown page, with machine, commit and
//! date.
//!
//! # What it is not
//! It does not depend on controllers: they are command lines, as everywhere in this crate. It
//! asserts nothing: times are reported and never make it fail.

mod estimate;
mod judge;
mod measure;
mod page;
mod program;
mod rows;
mod running;
mod tls;

use std::path::PathBuf;
use std::time::Duration;

use bellrock_bench::peer::Contestant;
use bellrock_bench::{BenchError, Report};

use estimate::TimeEstimate;

pub use judge::TargetVerdict;
pub use page::page;
pub use rows::{LOCK_FREE, MUTEX, ROWS, SERVICES, STM, TargetRow};
pub use tls::TlsContestant;

/// Effort of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// All rows in about six minutes.
    Quick,
    /// Enough pairs for a reliable result: some twenty minutes.
    Full,
}

impl Effort {
    /// Number of pairs of runs per row.
    #[must_use]
    pub const fn pairs(self) -> u32 {
        match self {
            Effort::Quick => 3,
            Effort::Full => bellrock_bench::ENOUGH_PAIRS,
        }
    }

    const fn duration(self) -> Duration {
        match self {
            Effort::Quick => Duration::from_millis(700),
            Effort::Full => Duration::from_secs(1),
        }
    }

    const fn warm_up(self) -> Duration {
        match self {
            Effort::Quick => Duration::from_millis(200),
            Effort::Full => Duration::from_millis(500),
        }
    }
}

/// What to measure, and with which programs.
#[derive(Clone, Debug)]
pub struct Targets {
    /// Names of rows; all if empty.
    pub rows: Vec<String>,
    /// The effort.
    pub effort: Effort,
    /// The controller. Placeholders of its command: `{address}` to listen on, `{workers}` threads,
    /// `{file}` for its file. Its variants are [`LOCK_FREE`], [`MUTEX`], [`STM`] and [`SERVICES`];
    /// the row of a missing variant is not measured.
    pub ours: Contestant,
    /// The controller with TLS; rows that need it are not measured without.
    pub tls: Option<TlsContestant>,
    /// The command of the canned responder that sleeps. `{address}` is its address.
    pub responder: String,
    /// The command of the canned responder that spins.
    pub spinning_responder: String,
    /// The command of the bare loop that only answers echo requests.
    pub echo_loop: String,
    /// The core of controllers; `None` leaves it to the scheduler.
    pub controller_core: Option<usize>,
    /// The core of the generator.
    pub generator_core: Option<usize>,
    /// The worker's benchmark for callgrind, with the arguments `VERSION MATCH PACKETS`.
    pub packet_in: Option<PathBuf>,
    /// The command that measures uneven load. Its last line has a number of "times": the speed-up
    /// after the hand-over. In this command and the next two, `{pairs}` is the number of pairs of
    /// runs.
    pub uneven: Option<String>,
    /// The command that measures full tables. Its last line has a number of "bytes" per entry.
    pub capacity: Option<String>,
    /// The command that compares what several workers execute. Its last line has the difference in
    /// "percent".
    pub workers: Option<String>,
    /// The command that measures what operators get: `{part}` is one of `static-flows`,
    /// `single-flows`, `requests`, `status`, `watched` and `reload`. Its last line has the number.
    pub operators: Option<String>,
    /// The command that measures apps in Python: `{part}` is one of `learning`, `unplaced`,
    /// `headers`, `batches`, `os-ken`, `latency`, `import` and `wheel`. Its last line has the
    /// number.
    pub python: Option<String>,
    /// Folder for the files of controllers.
    pub folder: PathBuf,
}

/// Result of a row.
#[derive(Clone, Debug)]
pub struct TargetResult {
    /// The row.
    pub row: TargetRow,
    /// The measurement, in words.
    pub measured: String,
    /// Its verdict.
    pub verdict: TargetVerdict,
    /// The reports behind it, with the name of the controller.
    pub reports: Vec<(String, Report)>,
}

/// Why the table could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetsError {
    /// An unknown row.
    #[error("there is no row {name:?}; there are {}", known.join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
        /// Known rows.
        known: Vec<&'static str>,
    },
    /// The generator or a program that it started failed.
    #[error(transparent)]
    Bench(#[from] BenchError),
}

/// Progress of the measurement.
#[derive(Clone, Copy, Debug)]
pub enum TargetsProgress<'a> {
    /// A row begins.
    Begins(&'a TargetRow, TablePosition),
    /// A row goes on.
    GoesOn(TablePosition),
    /// A row is completed.
    Done(&'a TargetResult),
}

/// Position in the table.
#[derive(Clone, Copy, Debug)]
pub struct TablePosition {
    /// Number of the row, from 1.
    pub row: usize,
    /// Number of rows.
    pub of: usize,
    /// Estimated share that is completed, 0 to 1.
    pub share: f64,
    /// Estimated time left.
    pub left: Duration,
}

/// Measures rows, one after the other. If a row cannot be measured, its verdict says why, and the
/// others follow.
///
/// # Errors
/// An unknown row, or an unusable core.
pub fn run(
    targets: &Targets,
    news: &mut dyn FnMut(TargetsProgress<'_>),
) -> Result<Vec<TargetResult>, TargetsError> {
    let rows = chosen(&targets.rows)?;
    let cores: Vec<usize> =
        targets.controller_core.into_iter().chain(targets.generator_core).collect();
    bellrock_bench::threads::check_cores(&cores)?;
    let mut clock = TimeEstimate::new(&rows, targets.effort);
    let of = rows.len();
    let mut outcomes = Vec::new();
    for (number, row) in (1..).zip(rows) {
        let place = |share| {
            let (share, left) = clock.at(share);
            TablePosition { row: number, of, share, left }
        };
        news(TargetsProgress::Begins(&row, place(0.0)));
        let outcome = measure::measure(targets, row, &mut |share| {
            news(TargetsProgress::GoesOn(place(share)));
        });
        news(TargetsProgress::Done(&outcome));
        clock.next();
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Returns the rows with these names, in the order of the table.
fn chosen(names: &[String]) -> Result<Vec<TargetRow>, TargetsError> {
    let known = || ROWS.iter().map(|row| row.name);
    match names.iter().find(|name| !known().any(|known| known == **name)) {
        Some(name) => Err(TargetsError::Unknown { name: name.clone(), known: known().collect() }),
        None => {
            let wanted =
                |row: &&TargetRow| names.is_empty() || names.iter().any(|name| name == row.name);
            Ok(ROWS.iter().filter(wanted).copied().collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_name() {
        let names = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            chosen(&names).map(|rows| rows.iter().map(|row| row.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap().len(), ROWS.len());
        assert_eq!(names(&["os-ken", "learning-1.0"]).unwrap(), ["learning-1.0", "os-ken"]);
        let error = names(&["learning"]).unwrap_err().to_string();
        assert!(error.contains("no row \"learning\"; there are learning-1.0, "), "{error}");
    }
}
