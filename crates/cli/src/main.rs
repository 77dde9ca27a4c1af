//! The command `bellrock`, with one module for each part.
//!
//! `args` and `operate` are the command line, `start` runs the controller, `ask` asks a running
//! one, `declared` lists what requests declare, `show` prints answers, and `bench` is the load
//! generator. The tools of a laboratory are in the crate `tools`.

mod args;
mod ask;
mod bench;
mod declared;
mod doctor;
mod documents;
mod new;
mod operate;
mod overrides;
mod pki;
mod problems;
mod python;
mod show;
mod start;
mod token;
mod usage_error;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use bellrock_config::{Change, Checked, Config, FileError, Sources, default_yaml};
use bellrock_daemon::{RunOptions, Store};
use bellrock_query as query;
use bellrock_sharing::CostlyTable;
use bellrock_tools::terminal;
use clap::Parser;

use args::{Cli, Command, EventsArgs, HostsArgs, Run};
use ask::{ask, ask_all, ask_for};
use operate::identities::IdentitiesCommand;

/// Exit status of a command that only lists changes of settings, if one of them needs a restart.
const NEEDS_RESTART: u8 = 3;

/// Failure of a command.
#[derive(Debug)]
enum Failure {
    /// The command failed.
    Failed(String),
    /// The command line or the configuration is wrong.
    Wrong(String),
}

impl From<terminal::Failure> for Failure {
    fn from(failure: terminal::Failure) -> Self {
        match failure {
            terminal::Failure::Failed(why) => Failure::Failed(why),
            terminal::Failure::Wrong(why) => Failure::Wrong(why),
        }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Failure::Wrong(error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        terminal::Failure::from(error).into()
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        terminal::Failure::from(error).into()
    }
}

/// Runs the command line, prints failures, and returns the exit status.
fn main() -> ExitCode {
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
        Command::Run(run) => run_controller(&run, None),
        Command::Check(check) => match check_file(&check.file, check.diff.as_deref()) {
            Ok(true) => return ExitCode::from(NEEDS_RESTART),
            Ok(false) => Ok(()),
            Err(failure) => Err(failure),
        },
        Command::New(args) => new::run(&args),
        Command::Token(args) => token::run(&args),
        Command::Pki(args) => pki::run(&args),
        Command::Config => print(&default_yaml()),
        Command::Status(asked) => ask(&asked, query::GetStatus {}, show::status),
        Command::Switches(asked) => ask::switches(&asked),
        Command::Hosts(HostsArgs { switch, ask }) => {
            let hosts = |page| query::ListHosts { switch: switch.clone(), page };
            ask_all(&ask, hosts, show::hosts)
        }
        Command::Apps(asked) => ask(&asked, query::ListApps {}, |apps| show::apps(apps)),
        Command::Tasks(asked) => ask_all(&asked, |page| query::ListTasks { page }, show::tasks),
        Command::Topology(asked) => ask(&asked, query::GetTopology {}, show::topology),
        Command::Links(asked) => ask::links(&asked),
        Command::Ports(asked) => ask_all(&asked.ask, |page| asked.request(page), show::ports),
        Command::Events(EventsArgs { follow: true, ask, .. }) => ask::follow_events(&ask),
        Command::Events(EventsArgs { kind, alarms, open, ask, .. }) => {
            let (alarming, none) = (alarms, if alarms || open { "no alarm" } else { "no event" });
            let events = |page| query::ListEvents { kind: kind.clone(), alarming, open, page };
            ask_all(&ask, events, |events| show::events(events, none))
        }
        Command::Flows(asked) if asked.orphans => asked.list_orphans(),
        Command::Clean(args) => operate::clean::run(&args),
        Command::Flows(asked) => match asked.of_switch() {
            Ok(Some(flows)) => ask(&asked.ask, flows, show::flows),
            Ok(None) => {
                let all = |page| query::CountFlows { switch: None, page };
                ask_all(&asked.ask, all, show::flow_counts)
            }
            Err(error) => Err(Failure::Wrong(error.to_string())),
        },
        Command::Declared(list) => list.run(),
        Command::Counters(asked) => match asked.meanings {
            false => ask(&asked.ask, query::GetCounters {}, show::counters),
            true => ask(&asked.ask, query::DescribeCounters {}, |rows| show::meanings(rows)),
        },
        Command::Latencies(asked) => {
            ask(&asked, query::ListLatencies {}, |rows| show::latencies(rows))
        }
        Command::OfApp(command) => command.run(),
        Command::Cluster(args) => operate::cluster::run(&args),
        Command::Relays(args) => operate::relays::run(&args.command),
        Command::Identities(args) => match args.command {
            IdentitiesCommand::List(asked) => {
                ask_all(&asked, |page| query::ListIdentities { page }, show::identities)
            }
            IdentitiesCommand::Forget(forget) => {
                let text = |row: &query::PinRow| format!("datapath id {} is free\n", row.dpid);
                ask(&forget.ask, forget.order(), text)
            }
        },
        Command::Request(asked) => ask(&asked.ask, asked.query(), show::reply),
        Command::Send(asked) => {
            ask::order(&asked.ask, asked.order(), show::outcomes, problems::messages)
        }
        Command::Reload(asked) => {
            let order = query::Reload { dry_run: asked.dry_run };
            match ask_for(&asked.ask, order, show::reload) {
                Ok(answer) if answer.changes.iter().any(|change| change.needs_restart) => {
                    return ExitCode::from(NEEDS_RESTART);
                }
                done => done.map(|_| ()),
            }
        }
        Command::Completions(args) => documents::completions(&args),
        Command::ManualPages(args) => documents::manual_pages(&args),
        Command::Bench(asked) => bench::run(&asked),
        Command::Demo(asked) => bellrock_tools::demo(&asked).map_err(Failure::from),
        Command::Doctor(args) => match doctor::run(&args) {
            Ok(true) => Ok(()),
            // Problems have been printed.
            Ok(false) => return ExitCode::FAILURE,
            Err(failure) => Err(failure),
        },
        Command::Emulate(asked) => match bellrock_tools::emulate(&asked) {
            Ok(true) => Ok(()),
            // Lost pings and failed commands have been printed.
            Ok(false) => return ExitCode::FAILURE,
            Err(failure) => Err(failure.into()),
        },
        Command::Record(args) => bellrock_tools::record(&args).map_err(Failure::from),
        Command::Replay(args) => match bellrock_tools::replay(&args) {
            Ok(outcome) if outcome.is_success() => Ok(()),
            // What failed or differs has been printed.
            Ok(_) => return ExitCode::FAILURE,
            Err(failure) => Err(failure.into()),
        },
        Command::OskenManager(args) => python::run_osken(&args),
        Command::Decode(asked) => match bellrock_tools::decode(&asked) {
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

/// Runs a controller. `table`: the one of `global_learning`, in an experiment.
fn run_controller(run: &Run, table: Option<CostlyTable>) -> Result<(), Failure> {
    let (config, warnings) = configure(run)?;
    let options = RunOptions {
        sources: run.sources(),
        watch_config: run.watch_config,
        reload_apps: run.reload,
    };
    // The experiment has no interpreter.
    if table.is_none() && config.python_files().next().is_some() {
        return python::run(&config, options, misspelled());
    }
    if run.reload {
        let why = "--reload loads files with apps in Python again; there is none, such as --app ./my_app.py";
        return Err(Failure::Wrong(why.to_owned()));
    }
    let log_level = bellrock_daemon::start_log(&config);
    let warnings = misspelled().into_iter().chain(warnings);
    // The level says that it is one.
    warnings.for_each(|warning| tracing::warn!("{}", warning.replacen(": warning: ", ": ", 1)));
    start::run(config, options, log_level, table)
        .map_err(|error| Failure::Failed(error.to_string()))
}

/// Reads the settings. Returns warnings too.
fn configure(run: &Run) -> Result<(Config, Vec<String>), Failure> {
    let Checked { config, errors, warnings } = run.sources().check()?;
    if !errors.is_empty() {
        return Err(Failure::Wrong(errors.join("\n")));
    }
    Ok((config, warnings))
}

/// Warns of variables of the environment that are probably misspelled.
fn misspelled() -> Vec<String> {
    let variables = args::misspelled_variables().into_iter();
    variables.map(|(name, near)| format!("{name} is no setting; did you mean {near}?")).collect()
}

/// Checks a file, and prints what changes from the file `from`. Returns whether that needs a
/// restart.
fn check_file(path: &Path, from: Option<&Path>) -> Result<bool, Failure> {
    let before = from.map(|from| usable(from).map(|checked| (from, checked.config)));
    let before = before.transpose()?;
    let Checked { config, warnings, .. } = usable(path)?;
    warnings.iter().for_each(|warning| eprintln!("bellrock: {warning}"));
    let file = path.display();
    let mut text = match warnings.len() {
        0 => format!("{file}: all right\n"),
        n => format!("{file}: it can be used; warnings: {n}\n"),
    };
    let mut needs_restart = false;
    if let Some((from, before)) = before {
        let difference = bellrock_daemon::difference(&before, &config);
        needs_restart = difference.at(Change::Restart).next().is_some();
        let from = from.display();
        match difference.changes.len() {
            0 => text.push_str(&format!("no setting changes from {from}\n")),
            n => text.push_str(&format!("changes from {from}: {n}\n{difference}")),
        }
    }
    print(&text)?;
    Ok(needs_restart)
}

/// The configuration of a file that can be used.
fn usable(path: &Path) -> Result<Checked, Failure> {
    let checked = bellrock_daemon::check(&Sources::file(path), Store::Free)?;
    match checked.errors.is_empty() {
        true => Ok(checked),
        false => Err(Failure::Wrong([checked.errors, checked.warnings].concat().join("\n"))),
    }
}

/// Prints to standard output. A closed output (`| head`) is no failure.
fn print(text: &str) -> Result<(), Failure> {
    Ok(terminal::print(text)?)
}

/// Prints a part of the output. Returns whether somebody still reads it.
fn print_more(text: &str) -> Result<bool, Failure> {
    Ok(terminal::print_more(text)?)
}

/// A new directory for a test.
#[cfg(test)]
fn test_directory(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("bellrock-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}
