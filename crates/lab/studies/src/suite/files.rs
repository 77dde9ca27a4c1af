//! The folder of a suite: its files and their formats.

use std::fs;
use std::path::{Path, PathBuf};

use bellrock_bench::peer::Contestant;

use crate::plot::{self, Plot};

use super::error::SuiteError;
use super::experiments::{EXPERIMENTS, experiment};
use super::html;
use super::record::{ExperimentRecord, FORMAT};

const RAW: &str = "raw.json";
const REPORT: &str = "report.html";
const LOGS: &str = "logs";

/// A folder made for results. It can be removed while it has none.
pub(super) struct ResultsFolder {
    folder: PathBuf,
    /// Whether the folder existed before, empty.
    was_there: bool,
}

impl ResultsFolder {
    /// Removes the folder. Failures are ignored: the caller has a better error to report.
    pub(super) fn take_back(self) {
        if !self.was_there {
            let _ = fs::remove_dir_all(&self.folder);
            return;
        }
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
}

/// Makes the folder with the files of the contestants.
pub(super) fn prepare(
    folder: &Path,
    contestants: &[Contestant],
) -> Result<ResultsFolder, SuiteError> {
    let was_there = folder.is_dir();
    fs::create_dir_all(folder).map_err(SuiteError::file(folder))?;
    if fs::read_dir(folder).map_err(SuiteError::file(folder))?.next().is_some() {
        return Err(SuiteError::NotEmpty(folder.to_owned()));
    }
    let logs = folder.join(LOGS);
    fs::create_dir(&logs).map_err(SuiteError::file(&logs))?;
    for (name, text) in contestants.iter().flat_map(Contestant::files) {
        save(&folder.join(name), text.as_bytes())?;
    }
    Ok(ResultsFolder { folder: folder.to_owned(), was_there })
}

/// Bytes of a log's end that an error shows.
const LOG_END_BYTES: usize = 2048;

/// Returns the end of a contestant's log, for an error.
pub(super) fn log_end(folder: &Path, contestant: &Contestant) -> String {
    let text = fs::read(log(folder, contestant)).unwrap_or_default();
    let end = String::from_utf8_lossy(&text[text.len().saturating_sub(LOG_END_BYTES)..]);
    let lines: Vec<String> =
        end.lines().map(|line| format!("\n  {}", line.escape_debug())).collect();
    match lines.is_empty() {
        true => "It has said nothing.".to_owned(),
        false => format!("It has said last:{}", lines.concat()),
    }
}

pub(super) fn log(folder: &Path, contestant: &Contestant) -> PathBuf {
    folder.join(LOGS).join(format!("{}.log", contestant.name))
}

pub(super) fn write(folder: &Path, record: &ExperimentRecord) -> Result<(), SuiteError> {
    fs::create_dir_all(folder).map_err(SuiteError::file(folder))?;
    let raw = folder.join(RAW);
    let text = serde_json::to_vec(record)
        .map_err(|error| SuiteError::Raw { path: raw.clone(), error: error.to_string() })?;
    save(&raw, &text)?;
    draw(folder, record)
}

/// Writes the report on all experiments.
pub(super) fn write_all(
    folder: &Path,
    records: &[ExperimentRecord],
) -> Result<PathBuf, SuiteError> {
    let report = folder.join(REPORT);
    save(&report, html::report(records)?.as_bytes())?;
    Ok(report)
}

/// Makes plots and reports again from the raw data in the folder of a suite or of an experiment.
/// Returns the path of the report.
///
/// # Errors
/// There is no raw data, it cannot be read, or a file cannot be written.
pub fn redraw(folder: &Path) -> Result<PathBuf, SuiteError> {
    if folder.join(RAW).is_file() {
        let record = read(&folder.join(RAW))?;
        draw(folder, &record)?;
        return Ok(folder.join(REPORT));
    }
    let mut records = Vec::new();
    for experiment in EXPERIMENTS {
        let part = folder.join(experiment.name);
        if part.join(RAW).is_file() {
            let record = read(&part.join(RAW))?;
            draw(&part, &record)?;
            records.push(record);
        }
    }
    if records.is_empty() {
        return Err(SuiteError::NoResults(folder.to_owned()));
    }
    write_all(folder, &records)
}

/// Makes the plots of an experiment that have data.
pub(super) fn plots(record: &ExperimentRecord) -> Vec<Plot> {
    let known = experiment(&record.experiment);
    known.map_or_else(Vec::new, |one| (one.plots)(record).into_iter().flatten().collect())
}

fn draw(folder: &Path, record: &ExperimentRecord) -> Result<(), SuiteError> {
    for plot in plots(record) {
        let file = |ending: &str| folder.join(format!("{}.{ending}", plot.name));
        save(&file("svg"), plot::svg(&plot)?.as_bytes())?;
        save(&file("png"), &plot::png(&plot)?)?;
        save(&file("pdf"), &plot::pdf(&plot)?)?;
        save(&file("csv"), plot::csv(&plot)?.as_bytes())?;
    }
    let report = html::report(std::slice::from_ref(record))?;
    save(&folder.join(REPORT), report.as_bytes())
}

fn read(path: &Path) -> Result<ExperimentRecord, SuiteError> {
    let text = fs::read(path).map_err(SuiteError::file(path))?;
    let wrong = |error: String| SuiteError::Raw { path: path.to_owned(), error };
    let record: ExperimentRecord =
        serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    if record.format != FORMAT {
        return Err(wrong(format!("its format is {}, this version reads {FORMAT}", record.format)));
    }
    if experiment(&record.experiment).is_none() {
        return Err(wrong(format!("there is no experiment {:?}", record.experiment)));
    }
    if record.outcomes.iter().any(|outcome| record.entrant(outcome).is_none()) {
        return Err(wrong("an outcome is nobody's".to_owned()));
    }
    Ok(record)
}

fn save(path: &Path, bytes: &[u8]) -> Result<(), SuiteError> {
    fs::write(path, bytes).map_err(SuiteError::file(path))
}
