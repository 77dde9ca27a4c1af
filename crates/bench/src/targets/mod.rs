//! The targets of this project, measured: a table with what is asked, what was found, and a verdict.
//!
//! # What it is
//! [`ROWS`] is the table; [`run`] measures its rows, each with fresh processes on the same cores, in
//! pairs that take turns; [`page`] is the table as a Markdown page, with machine, commit and date.
//!
//! # What it is not
//! It knows no controller: those are command lines, as anywhere in this crate. It asserts nothing:
//! times are reported, never a reason to fail.

mod estimate;
mod judge;
mod measure;
mod page;
mod program;
mod rows;
mod running;

use std::path::PathBuf;
use std::time::Duration;

use crate::error::BenchError;
use crate::peer::Contestant;
use crate::report::Report;

use estimate::Clock;

pub use judge::Verdict;
pub use page::page;
pub use rows::{LOCK_FREE, MUTEX, ROWS, Row, SERVICES, STM};

/// How long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// All rows in some five minutes.
    Quick,
    /// As many pairs as are enough for a result: a quarter of an hour.
    Full,
}

impl Effort {
    /// Pairs of runs for each row.
    #[must_use]
    pub const fn pairs(self) -> u32 {
        match self {
            Effort::Quick => 3,
            Effort::Full => crate::compare::ENOUGH_PAIRS,
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

/// What is measured, and with what.
#[derive(Clone, Debug)]
pub struct Targets {
    /// Rows by name; all if there are none.
    pub rows: Vec<String>,
    /// How long it may take.
    pub effort: Effort,
    /// The controller. In its command `{address}` stands for where it has to listen, `{workers}` for
    /// its threads, `{file}` for its file. Its variants are [`LOCK_FREE`], [`MUTEX`], [`STM`] and [`SERVICES`]; a
    /// row whose variant it has not is not measured.
    pub ours: Contestant,
    /// The command of the canned responder that sleeps. `{address}` stands for where it listens.
    pub responder: String,
    /// That of the one that spins.
    pub spinning_responder: String,
    /// The command of the bare loop that only answers echo requests, likewise.
    pub echo_loop: String,
    /// The core of controllers; `None`: the scheduler decides.
    pub controller_core: Option<usize>,
    /// The core of the generator.
    pub generator_core: Option<usize>,
    /// The benchmark of the worker that takes `VERSION MATCH PACKETS`, for callgrind.
    pub packet_in: Option<PathBuf>,
    /// The command that measures uneven load: its last line says how many "times" faster it is after the
    /// hand-over. In this and the next two `{pairs}` stands for the pairs of runs to do.
    pub uneven: Option<String>,
    /// The one that measures full tables: so many "bytes" for each entry.
    pub capacity: Option<String>,
    /// The one that counts what several workers execute: they differ by so many "percent".
    pub workers: Option<String>,
    /// A folder for files that controllers need.
    pub folder: PathBuf,
}

/// What was found for a row.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The row.
    pub row: Row,
    /// What was found, in words.
    pub measured: String,
    /// Whether that is as it should be.
    pub verdict: Verdict,
    /// The reports that it comes from, by whose they are.
    pub reports: Vec<(String, Report)>,
}

/// Why the table could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetsError {
    /// There is no such row.
    #[error("there is no row {name:?}; there are {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// The generator, or something that it started.
    #[error(transparent)]
    Bench(#[from] BenchError),
}

/// Progress of the measurement.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// A row begins.
    Begins(&'a Row, Place),
    /// It goes on.
    GoesOn(Place),
    /// A row is done.
    Done(&'a Outcome),
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The row, from 1.
    pub row: usize,
    /// Of so many.
    pub of: usize,
    /// The share of the whole that is over, 0 to 1, as far as it is known before.
    pub share: f64,
    /// The time that the rest will take, about.
    pub left: Duration,
}

/// Measures rows, one after the other. A row that cannot be measured says why in its verdict, and the
/// others go on.
///
/// # Errors
/// Rows that there are not, or a core.
pub fn run(
    targets: &Targets,
    news: &mut dyn FnMut(News<'_>),
) -> Result<Vec<Outcome>, TargetsError> {
    let rows = chosen(&targets.rows)?;
    let cores: Vec<usize> =
        targets.controller_core.into_iter().chain(targets.generator_core).collect();
    crate::threads::check_cores(&cores)?;
    let mut clock = Clock::new(&rows, targets.effort);
    let of = rows.len();
    let mut outcomes = Vec::new();
    for (number, row) in (1..).zip(rows) {
        let place = |share| {
            let (share, left) = clock.at(share);
            Place { row: number, of, share, left }
        };
        news(News::Begins(&row, place(0.0)));
        let outcome = measure::measure(targets, row, &mut |share| news(News::GoesOn(place(share))));
        news(News::Done(&outcome));
        clock.next();
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// The rows of these names, in the order of the table.
fn chosen(names: &[String]) -> Result<Vec<Row>, TargetsError> {
    let known = || ROWS.iter().map(|row| row.name);
    match names.iter().find(|name| !known().any(|known| known == **name)) {
        Some(name) => Err(TargetsError::Unknown { name: name.clone(), known: known().collect() }),
        None => {
            let wanted = |row: &&Row| names.is_empty() || names.iter().any(|name| name == row.name);
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
