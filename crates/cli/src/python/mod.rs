//! Leaves a run to Python, for a chain with apps in Python, and for programs of Ryu and os-ken.
//!
//! The command does not contain Python. The interpreter of the system, or of an active virtual
//! environment, takes the place of this process, so the process id, the terminal and the
//! environment stay, and so does what systemd knows.

pub(crate) mod wheel;

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use bellrock_config::Config;
use bellrock_daemon::{PythonRun, RunOptions};
use clap::Args;

use crate::Failure;

/// Variable with another interpreter.
pub(crate) const VARIABLE: &str = "BELLROCK_PYTHON";

/// The interpreter, found in PATH. In an active virtual environment it is that of the environment.
const INTERPRETER: &str = "python3";

/// What the interpreter runs: it says so if the package is missing, and else calls it.
const BOOTSTRAP: &str = include_str!("bootstrap.py");

/// What it runs for programs of Ryu and os-ken.
const OSKEN: &str = include_str!("osken.py");

/// Run programs that are written for Ryu or os-ken, unchanged
///
/// Takes the options of osken-manager, and has them from os-ken 3.1, which must be installed beside
/// the Python package bellrock (its extra `osken`). Connections, limits, TLS and echoes are
/// Bellrock's; events, parsers and libraries are os-ken's. `import ryu...` finds the modules of
/// os-ken.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct OskenArgs {
    /// Files and modules with programs, and options of osken-manager; after `--`, --help lists them
    #[arg(value_name = "APP", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  bellrock osken-manager simple_switch_13.py
  bellrock osken-manager --ofp-tcp-listen-port 6633 --verbose my_app.py os_ken.app.ofctl.service
  bellrock osken-manager --bellrock-config bellrock.yaml simple_switch_13.py
  bellrock osken-manager -- --help";

/// Replaces this process by Python, which runs programs of Ryu and os-ken.
///
/// # Errors
/// Python cannot be started. Otherwise this does not return.
pub(crate) fn run_osken(args: &OskenArgs) -> Result<(), Failure> {
    let error = Command::new(interpreter())
        .args(["-c", &with_advice(OSKEN, "[osken]")])
        .args(&args.arguments)
        .exec();
    Err(not_started("osken-manager", &error))
}

/// A program of Python with the advice how to get the package.
fn with_advice(program: &str, extra: &str) -> String {
    // The escapes of JSON are Python's too.
    let advice = serde_json::Value::from(wheel::advice("@PYTHON@", extra)).to_string();
    program.replacen("\"@ADVICE@\"", &advice, 1)
}

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
    let error = Command::new(interpreter()).args(["-c", &with_advice(BOOTSTRAP, ""), &run]).exec();
    let file = config.python_files().next().map(|file| file.path().display().to_string());
    Err(not_started(&file.unwrap_or_default(), &error))
}

/// The failure of what needs Python, which cannot be started.
fn not_started(what: &str, error: &io::Error) -> Failure {
    Failure::Failed(match (chosen(), error.kind()) {
        (Some(chosen), _) => format!("{VARIABLE}: {}: {error}", chosen.display()),
        (None, io::ErrorKind::NotFound) => format!(
            "{what} needs {INTERPRETER}, which is not in PATH; install Python 3.10 or later, or set {VARIABLE}"
        ),
        (None, _) => format!("{what} needs {INTERPRETER}, which cannot be started: {error}"),
    })
}
