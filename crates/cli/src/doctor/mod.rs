//! `bellrock doctor`: whether this machine suits the controller, and what to do if it does not.
//!
//! `machine` reads what the kernel says, and `checks` draws conclusions: `addresses` about ports
//! and the control socket, `private` about files that others must not read, `python` about the
//! interpreter of apps in Python. It changes nothing, and needs no running controller.

mod addresses;
mod checks;
mod machine;
mod private;
mod python;

use std::path::PathBuf;

use bellrock_config::{Checked, Config, Sources};
use bellrock_daemon::{Store, check};
use clap::Args;
use serde::Serialize;

use crate::overrides::Overrides;
use crate::show::{json, printable, table};
use crate::{Failure, print};
use machine::Machine;

/// Check this machine: limits, cores, interrupts, ports, clock, memory, files
///
/// Prints what was found and what to do. The exit status is 1 if something keeps the controller
/// from working as configured. Give it the flags and variables of `bellrock run`, and run it as the
/// same user; `--control` also names the socket of a controller that runs already.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Check for this configuration file instead of the defaults
    #[arg(long, value_name = "FILE", env = "BELLROCK_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,

    /// Check for this chain of apps, as `bellrock run --app`
    #[arg(
        long = "app",
        value_name = "NAME",
        env = "BELLROCK_APP",
        value_delimiter = ',',
        hide_env_values = true
    )]
    apps: Vec<String>,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: Overrides,
}

/// How good something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// As it should be.
    Good,
    /// The controller works, but something could be better, or cannot be told.
    Note,
    /// The controller does not work as configured.
    Problem,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    /// What was checked, in a word or two.
    topic: &'static str,
    verdict: Verdict,
    /// What was found.
    found: String,
    /// What to do.
    advice: Option<String>,
}

impl Finding {
    fn good(topic: &'static str, found: impl Into<String>) -> Self {
        Finding { topic, verdict: Verdict::Good, found: found.into(), advice: None }
    }

    fn note(topic: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        let (found, advice) = (found.into(), Some(advice.into()));
        Finding { topic, verdict: Verdict::Note, found, advice }
    }

    fn problem(topic: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Finding { verdict: Verdict::Problem, ..Finding::note(topic, found, advice) }
    }
}

/// Returns whether nothing keeps the controller from working.
pub(crate) fn run(args: &DoctorArgs) -> Result<bool, Failure> {
    let (config, mut findings) = configuration(args)?;
    findings.extend(checks::all(&Machine::this(), &config));
    let is_well = findings.iter().all(|finding| finding.verdict < Verdict::Problem);
    match args.json {
        true => print(&json(&serde_json::to_value(&findings)?)?)?,
        false => print(&text(&findings))?,
    }
    Ok(is_well)
}

/// The configuration to check for. A wrong one is a finding, and the defaults take its place.
fn configuration(args: &DoctorArgs) -> Result<(Config, Vec<Finding>), Failure> {
    let sources = Sources {
        file: args.config.clone(),
        overrides: args.settings.0.clone(),
        apps: args.apps.iter().filter(|name| !name.is_empty()).cloned().collect(),
        text: None,
        shared: None,
    };
    let Checked { config, errors, warnings } = check(&sources, Store::Free)?;
    let wrong = |error: String| {
        Finding::problem("configuration", error, "correct it: the controller does not start so")
    };
    let doubtful =
        |warning: String| Finding::note("configuration", warning, "correct it, if it is not meant");
    if errors.is_empty() && warnings.is_empty() {
        let found = match &args.config {
            Some(file) => format!("{} is right, with all files that it names", file.display()),
            None => "the settings are right, with all files that they name".to_owned(),
        };
        return Ok((config, vec![Finding::good("configuration", found)]));
    }
    let findings = errors.into_iter().map(wrong).chain(warnings.into_iter().map(doubtful));
    Ok((config, findings.collect()))
}

fn text(findings: &[Finding]) -> String {
    let row = |finding: &Finding| {
        let verdict = match finding.verdict {
            Verdict::Good => "good",
            Verdict::Note => "note",
            Verdict::Problem => "PROBLEM",
        };
        vec![verdict.to_owned(), finding.topic.to_owned(), printable(&finding.found)]
    };
    let mut text = table(&["", "", ""], findings.iter().map(row));
    // The table's head is empty.
    text.drain(..text.find('\n').map_or(0, |end| end + 1));
    let advised = findings.iter().filter_map(|it| Some((it.topic, it.advice.as_ref()?)));
    for (number, (topic, advice)) in advised.enumerate() {
        let head = if number == 0 { "\nWhat to do:\n" } else { "" };
        text.push_str(&format!("{head}- {topic}: {}\n", printable(advice)));
    }
    text
}
