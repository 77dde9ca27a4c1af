//! The command `bellrock`, with one module for each part.
//!
//! `args` is the command line, `start` runs the controller, `control` is the
//! control socket, `answers` its answers, `flows` asks switches for their flows, `show` prints
//! answers, `decode` reads captures, `bench` is the load generator, `emulate` an emulated network,
//! `demo` a controller with such a network, and `own` the control socket of your own program. Only
//! the binary uses this module; programs use the library.

mod amounts;
mod answers;
mod args;
mod bench;
mod control;
pub mod decode;
mod demo;
mod emulate;
mod ending;
mod flows;
mod hosts;
mod log;
mod network;
mod operate;
mod own;
mod show;
mod start;
mod usage_error;
mod wait;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bellrock_config::{Checked, Config, FileError, Sources, default_yaml};
use clap::Parser;
use serde_json::Value;

use args::{Ask, Cli, Command, Run};
use control::{AskError, Question};
pub(crate) use own::{ControlSocket, serve_control};

/// Failure of a command.
enum Failure {
    /// The command failed.
    Failed(String),
    /// The command line or the configuration is wrong.
    Wrong(String),
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Failure::Wrong(error.to_string())
    }
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        Failure::Failed(error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Failure::Failed(format!(
            "the controller's answer is not understood ({error}); is it of another version?"
        ))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Failed(error.to_string())
    }
}

/// Runs the command line, prints failures, and returns the exit status.
#[must_use]
pub fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) if error.use_stderr() => {
            return failed(Failure::Wrong(usage_error::text(&error)));
        }
        // The help or the version. A closed output (`| head`) is no failure.
        Err(help) => {
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    let done = match command {
        Command::Run(run) => run_controller(&run),
        Command::Check(check) => check_file(&check.file),
        Command::Config => print(&default_yaml()),
        Command::Status(asked) => ask(&asked, &Question::Status),
        Command::Switches(asked) => ask(&asked, &Question::Switches),
        Command::Hosts(asked) => ask(&asked, &Question::Hosts),
        Command::Apps(asked) => ask(&asked, &Question::Apps),
        Command::Tasks(asked) => ask(&asked, &Question::Tasks),
        Command::Topology(asked) => ask(&asked, &Question::Topology),
        Command::Links(asked) => ask(&asked, &Question::Links),
        Command::Events(asked) => ask(&asked, &Question::Events),
        Command::Flows(asked) => {
            let (asked, words) = asked.question();
            Question::flows(words).map_err(Failure::Wrong).and_then(|flows| ask(asked, &flows))
        }
        Command::Counters(asked) => ask(&asked, &Question::Counters),
        Command::Quarantine(asked) => tell("quarantine", asked.question()),
        Command::Circuits(asked) => tell("circuits", (&asked, Vec::new())),
        Command::Reserve(asked) => tell("reserve", asked.question()),
        Command::Release(asked) => tell("release", asked.question()),
        Command::Reservations(asked) => tell("reservations", (&asked, Vec::new())),
        Command::Bench(asked) => bench::run(&asked),
        Command::Demo(asked) => demo::run(&asked),
        Command::Emulate(asked) => match emulate::run(&asked) {
            Ok(true) => Ok(()),
            // Lost pings and failed commands have been printed.
            Ok(false) => return ExitCode::FAILURE,
            Err(failure) => Err(failure),
        },
        Command::Decode(asked) => match decode::command::run(&asked) {
            Ok(outcome) if outcome.faults == 0 => Ok(()),
            // Faults have been printed at their places.
            Ok(_) => return ExitCode::FAILURE,
            Err(failure) => Err(Failure::Failed(failure.to_string())),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(failure),
    }
}

/// Prints a failure, with our name before each line.
fn failed(failure: Failure) -> ExitCode {
    let (message, status) = match failure {
        Failure::Failed(message) => (message, 1),
        Failure::Wrong(message) => (message, 2),
    };
    for line in message.lines() {
        eprintln!("bellrock: {line}");
    }
    ExitCode::from(status)
}

fn run_controller(run: &Run) -> Result<(), Failure> {
    let (config, warnings) = configure(run)?;
    log::start(&config);
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    start::run(&config).map_err(|error| Failure::Failed(error.to_string()))
}

/// Reads the settings. Returns warnings too.
fn configure(run: &Run) -> Result<(Config, Vec<String>), Failure> {
    let Checked { config, errors, warnings } = run.sources().check()?;
    if !errors.is_empty() {
        return Err(Failure::Wrong(errors.join("\n")));
    }
    let misspelled = args::misspelled_variables().into_iter();
    let misspelled =
        misspelled.map(|(name, near)| format!("{name} is no setting; did you mean {near}?"));
    Ok((config, misspelled.chain(warnings).collect()))
}

fn check_file(path: &Path) -> Result<(), Failure> {
    let Checked { errors, warnings, .. } = Sources::file(path).check()?;
    if !errors.is_empty() {
        return Err(Failure::Wrong([errors, warnings].concat().join("\n")));
    }
    warnings.iter().for_each(|warning| eprintln!("bellrock: {warning}"));
    let file = path.display();
    match warnings.len() {
        0 => print(&format!("{file}: all right\n")),
        n => print(&format!("{file}: it can be used; warnings: {n}\n")),
    }
}

/// Sends a command to an app of the running controller.
fn tell(command: &'static str, (asked, words): (&Ask, Vec<String>)) -> Result<(), Failure> {
    ask(asked, &Question::app(command, words).map_err(Failure::Wrong)?)
}

fn ask(asked: &Ask, question: &Question) -> Result<(), Failure> {
    let path = match asked.control.as_deref() {
        None | Some("" | "auto") => control::default_path()?,
        Some("none") => {
            return Err(Failure::Wrong(
                "without a control socket nothing can be asked; name one with --control".into(),
            ));
        }
        Some(path) => PathBuf::from(path),
    };
    let answer: Value = control::ask(&path, question)?;
    if asked.json {
        return print(&show::json(&answer)?);
    }
    print(&match question {
        Question::Status => show::status(&serde_json::from_value(answer)?),
        Question::Switches => show::switches(&serde_json::from_value::<Vec<_>>(answer)?),
        Question::Hosts => hosts::show(&serde_json::from_value::<Vec<_>>(answer)?),
        Question::Apps => show::apps(&serde_json::from_value::<Vec<_>>(answer)?),
        Question::Tasks => show::tasks(&serde_json::from_value::<Vec<_>>(answer)?),
        Question::Topology => network::show_topology(&serde_json::from_value(answer)?),
        Question::Links => network::show_links(&serde_json::from_value(answer)?),
        Question::Events => network::show_events(&serde_json::from_value::<Vec<_>>(answer)?),
        Question::Counters => show::counters(&serde_json::from_value(answer)?),
        Question::Flows(_) => flows::show(&serde_json::from_value(answer)?),
        Question::App(command, _) => operate::show(command, answer)?,
    })
}

/// Prints to standard output. A closed output (`| head`) is no failure.
fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// A new directory for a test.
#[cfg(test)]
fn test_directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("bellrock-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}
