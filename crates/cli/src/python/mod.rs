//! Leaves a run to Python, for a chain with apps in Python.
//!
//! The command does not contain Python. The interpreter of the system, or of an active virtual environment, takes the
//! place of this process, so the process id, the terminal and the environment stay, and so does what systemd knows.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use bellrock::configured::{PythonRun, RunOptions};
use bellrock_config::Config;

use crate::Failure;

/// Variable with another interpreter.
pub(crate) const VARIABLE: &str = "BELLROCK_PYTHON";

/// The interpreter, found in PATH. In an active virtual environment it is that of the environment.
const INTERPRETER: &str = "python3";

/// What the interpreter runs: it says so if the package is missing, and else calls it.
const BOOTSTRAP: &str = include_str!("bootstrap.py");

/// Returns the interpreter that the variable names, if it names one.
fn chosen() -> Option<OsString> {
    env::var_os(VARIABLE).filter(|chosen| !chosen.is_empty())
}

/// Returns the interpreter that runs apps in Python.
pub(crate) fn interpreter() -> OsString {
    chosen().unwrap_or_else(|| OsString::from(INTERPRETER))
}

/// Replaces this process by Python, which runs the controller.
///
/// # Errors
/// Python cannot be started. Otherwise this does not return.
pub(crate) fn run(
    config: &Config,
    options: RunOptions,
    warnings: Vec<String>,
) -> Result<(), Failure> {
    let run = PythonRun::new(options, warnings).to_text()?;
    let chosen = chosen();
    let error = Command::new(interpreter()).args(["-c", BOOTSTRAP, &run]).exec();
    let file = config.python_files().next().map(|file| file.path().display().to_string());
    let file = file.unwrap_or_default();
    Err(Failure::Failed(match (chosen, error.kind()) {
        (Some(chosen), _) => format!("{VARIABLE}: {}: {error}", chosen.display()),
        (None, io::ErrorKind::NotFound) => format!(
            "{file} needs {INTERPRETER}, which is not in PATH; install Python 3.10 or later, or set {VARIABLE}"
        ),
        (None, _) => format!("{file} needs {INTERPRETER}, which cannot be started: {error}"),
    }))
}
