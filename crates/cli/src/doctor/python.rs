//! The interpreter of apps in Python, if the chain has any.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use bellrock_config::Config;
use serde::Deserialize;

use super::Finding;
use crate::python::{VARIABLE, wheel};

const TOPIC: &str = "python";

/// The oldest version of Python that the package runs in (`requires-python` in
/// python/pyproject.toml).
const MIN_PYTHON: (u32, u32) = (3, 10);

/// What the interpreter runs. It prints its report as the last line: what `import bellrock` runs
/// may print too.
const REPORT: &str = include_str!("python_report.py");

/// What an interpreter reports of itself and its package `bellrock`.
#[derive(Deserialize)]
struct Report {
    /// Path of the interpreter.
    executable: String,
    /// Its version.
    python: (u32, u32, u32),
    /// Version of the package. `None`: it names none, as those of earlier versions.
    package: Option<String>,
    /// Why the package cannot be imported.
    error: Option<String>,
    /// Whether there is no package at all.
    is_missing: bool,
}

/// Whether the interpreter that `bellrock run` takes has the package of this version. `None` for a
/// chain without apps in Python.
pub(super) fn package(config: &Config, interpreter: &OsStr) -> Option<Finding> {
    config.python_files().next()?;
    let shown = Path::new(interpreter).display();
    let choose = format!("install Python 3.10 or later, or set {VARIABLE} to an interpreter");
    let mut command = Command::new(interpreter);
    command.args(["-c", REPORT]).stdin(Stdio::null());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return Some(Finding::problem(TOPIC, format!("{shown}: {error}"), choose)),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let report = text.lines().next_back().and_then(|line| serde_json::from_str(line).ok());
    Some(match report.filter(|_| output.status.success()) {
        Some(report) => judge(report),
        None => {
            let error = String::from_utf8_lossy(&output.stderr);
            let why = error.lines().next_back().unwrap_or("it reports nothing").to_owned();
            Finding::problem(TOPIC, format!("{shown}, {}: {why}", output.status), choose)
        }
    })
}

fn judge(report: Report) -> Finding {
    const OWN: &str = env!("CARGO_PKG_VERSION");
    let Report { executable, python: (major, minor, patch), package, error, is_missing } = report;
    let shown = format!("{executable} (Python {major}.{minor}.{patch})");
    let install = wheel::advice(&executable, "");
    if (major, minor) < MIN_PYTHON {
        let advice = format!("install Python 3.10 or later, or set {VARIABLE}");
        return Finding::problem(TOPIC, format!("{shown} is too old for the package"), advice);
    }
    match (error, package) {
        (Some(_), _) if is_missing => {
            Finding::problem(TOPIC, format!("{shown} has no package bellrock"), install)
        }
        (Some(error), _) => {
            Finding::problem(TOPIC, format!("{shown} cannot load its package: {error}"), install)
        }
        (None, Some(version)) if version == OWN => {
            Finding::good(TOPIC, format!("{shown} has the package bellrock {version}"))
        }
        (None, version) => {
            let version = version.unwrap_or_else(|| "of an unknown version".to_owned());
            let found = format!("{shown} has the package bellrock {version}, not {OWN}");
            Finding::problem(TOPIC, found, install)
        }
    }
}
