//! `bellrock bench targets`: measures the engine against its targets, and prints the table.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellrock_bench::LoadTls;
use bellrock_bench::peer::{self, Contestant, ContestantRole, ContestantVariant};
use bellrock_studies::targets::{
    self, Effort, ROWS, TablePosition, TargetVerdict, Targets, TargetsError, TargetsProgress,
    TlsContestant,
};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::super::{Failure, pki, print};
use super::folder::Folder;
use super::suite::shared_tables;

/// Configuration of our controller: flows match all fields. All other settings have their defaults.
const CONFIGURATION: (&str, &str) = ("targets.yaml", "apps:\n  - learning:\n      match: exact\n");

/// The same with global learning, and with the network services that an app may need.
fn variants(command: impl Fn(&str) -> String) -> Vec<ContestantVariant> {
    let services = format!("services: hosts\n{}", CONFIGURATION.1);
    let services = ContestantVariant {
        name: targets::SERVICES,
        file: (format!("targets-{}.yaml", targets::SERVICES), services),
        command: None,
    };
    let tables = [targets::LOCK_FREE, targets::MUTEX, targets::STM];
    shared_tables(tables, command).chain([services]).collect()
}

/// Steps of the progress bar.
const STEPS: u64 = 1000;

/// Measure the engine against its targets, and print the table
///
/// Each row is measured in pairs of runs in turn, with fresh processes on the same two cores,
/// against the canned responder or another load. A missed target is reported, but is no failure.
///
/// `make bench` does this with everything that it needs.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct TargetsArgs {
    /// Rows by name [default: all]
    #[arg(value_name = "ROW")]
    rows: Vec<String>,

    /// Three short pairs for each row: seven minutes, for an impression (the default)
    #[arg(long, conflicts_with = "full")]
    quick: bool,

    /// Nine pairs of a second for each row: some twenty minutes, for a result
    #[arg(long)]
    full: bool,

    /// Print the rows and their targets, and measure nothing
    #[arg(long)]
    list: bool,

    /// Write the table to this Markdown file too
    #[arg(long, value_name = "FILE.md")]
    out: Option<PathBuf>,

    /// Measure this controller instead of `bellrock run`
    ///
    /// In the command, {address} is where it must listen, and {workers} its threads. A script must
    /// `exec` the controller.
    #[arg(long, value_name = "COMMAND")]
    controller: Option<String>,

    /// Core of the controllers
    #[arg(long, value_name = "CORE", default_value_t = 0)]
    controller_core: usize,

    /// Core of the generator
    #[arg(long, value_name = "CORE", default_value_t = 1)]
    core: usize,

    /// The worker's benchmark, built for release, whose instructions valgrind counts
    ///
    /// `cargo bench -p bellrock-worker --bench packet_in --no-run` builds it and prints its path.
    #[arg(long, value_name = "FILE")]
    packet_in_bench: Option<PathBuf>,

    /// The command that measures uneven load
    ///
    /// Its last line is the speed-up by the hand-over, such as "1.7 times"; status 0 means that
    /// nothing was lost.
    /// `cargo bench -p bellrock-cli --bench hand_over -- --pairs {pairs}` is one.
    #[arg(long, value_name = "COMMAND")]
    uneven_bench: Option<String>,

    /// The command that fills tables and measures their memory
    ///
    /// Its last line is the size of an entry, such as "21.8 bytes".
    /// `cargo bench -p bellrock-tables --bench capacity` is one.
    #[arg(long, value_name = "COMMAND")]
    capacity_bench: Option<String>,

    /// The command that counts the instructions of several workers for each packet
    ///
    /// Its last line is their difference, such as "0.1 percent"; status 0 means that nothing takes
    /// a lock. `scripts/hot-loop` is one.
    #[arg(long, value_name = "COMMAND")]
    workers_bench: Option<String>,

    /// The command that measures what operators get, and what it costs
    ///
    /// Its last line has the number, such as "62000 flows/s", for the {part} that it is given.
    /// `scripts/bench-operators {part} --pairs {pairs}` is one.
    #[arg(long, value_name = "COMMAND")]
    operators_bench: Option<String>,

    /// The command that measures apps in Python
    ///
    /// Its last line has the number, such as "512000 set-ups/s", for the {part} that it is given.
    /// `scripts/bench-python {part} --python FILE --wheel FILE --pairs {pairs}` is one.
    #[arg(long, value_name = "COMMAND")]
    python_bench: Option<String>,

    /// Name of the measured version, for the page
    #[arg(long, value_name = "TEXT", default_value = "not told")]
    commit: String,
}

const EXAMPLES: &str = "\
Examples:
  make bench                                   all rows, quick, into docs/performance.md
  bellrock bench targets learning-1.0 learning-1.3
  bellrock bench targets --full global-lock-free global-mutex global-stm services-1.0 services-1.3
  bellrock bench targets --full --out performance.md --commit $(git rev-parse --short HEAD)

Exit status: 0 if the rows were measured, even if targets were missed; 1 for a failure; 2 for a wrong
command line.";

impl From<TargetsError> for Failure {
    fn from(error: TargetsError) -> Self {
        match error {
            TargetsError::Bench(error) => error.into(),
            _ => Failure::Wrong(error.to_string()),
        }
    }
}

/// Measures the rows.
pub(super) fn run(args: &TargetsArgs) -> Result<(), Failure> {
    if args.list {
        let lines =
            ROWS.iter().map(|row| format!("{:<20}{}: {}\n", row.name, row.what, row.target));
        return print(&lines.collect::<String>());
    }
    // Holds files that controllers need. It is removed when this function returns.
    let folder = Folder::new()?;
    let bellrock = peer::quoted(&std::env::current_exe()?);
    let responder = format!("{bellrock} bench responder --listen {{address}}");
    let bar = bar();
    let targets = Targets {
        rows: args.rows.clone(),
        effort: if args.full { Effort::Full } else { Effort::Quick },
        ours: ours(args, &bellrock),
        tls: with_tls(args, &bellrock, folder.path())?,
        spinning_responder: format!("{responder} --idle spin"),
        echo_loop: format!("{responder} --echo-only"),
        responder,
        controller_core: Some(args.controller_core),
        generator_core: Some(args.core),
        packet_in: args.packet_in_bench.clone(),
        uneven: args.uneven_bench.clone(),
        capacity: args.capacity_bench.clone(),
        workers: args.workers_bench.clone(),
        operators: args.operators_bench.clone(),
        python: args.python_bench.clone(),
        folder: folder.path().to_owned(),
    };
    let outcomes = targets::run(&targets, &mut |progress| match progress {
        TargetsProgress::Begins(row, place) => {
            let TablePosition { row: number, of, left, .. } = place;
            print_line(
                &bar,
                &format!("[{number}/{of}, {} to go] {}: {}", some(left), row.name, row.what),
            );
            show(&bar, place);
        }
        TargetsProgress::GoesOn(place) => show(&bar, place),
        TargetsProgress::Done(outcome) => print_line(
            &bar,
            &match &outcome.verdict {
                TargetVerdict::NotMeasured(why) => format!("  not measured: {why}"),
                verdict => format!("  {}: {}", outcome.measured, verdict.text()),
            },
        ),
    })?;
    bar.finish_and_clear();
    let page = targets::page(&outcomes, targets.effort, &args.commit);
    if let Some(out) = &args.out {
        std::fs::write(out, &page)
            .map_err(|error| Failure::Failed(format!("{}: {error}", out.display())))?;
    }
    print(&page)
}

fn ours(args: &TargetsArgs, bellrock: &str) -> Contestant {
    let (command, file, variants) = match &args.controller {
        Some(command) => (command.clone(), None, Vec::new()),
        None => {
            let command = |run: &str| {
                format!(
                    "{bellrock} {run} --config {{file}} --listen {{address}} --workers {{workers}} \
                     --control none --log-level error"
                )
            };
            let file = (CONFIGURATION.0.to_owned(), CONFIGURATION.1.to_owned());
            (command("run"), Some(file), variants(command))
        }
    };
    let name = String::from("ours");
    Contestant { name, role: ContestantRole::Ours, command, file, variants, most_switches: None }
}

/// Our controller with TLS, and an authority for it. Another controller is not measured so.
fn with_tls(
    args: &TargetsArgs,
    bellrock: &str,
    folder: &Path,
) -> Result<Option<TlsContestant>, Failure> {
    if args.controller.is_some() {
        return Ok(None);
    }
    pki::make_pair(folder)?;
    let file = |name: &str| folder.join(name);
    let switches =
        LoadTls::read(&file("switches-cert.pem"), &file("switches-key.pem"), &file("ca-cert.pem"));
    let switches = switches.map_err(|error| Failure::Failed(error.to_string()))?;
    let quoted = |name| peer::quoted(&folder.join(name));
    let ours = ours(args, bellrock);
    let command = format!(
        "{} --listen tls:{{address}} --tls-certificate {} --tls-key {} --tls-ca {}",
        ours.command.replace("{address}", "{plain}"),
        quoted("controller-cert.pem"),
        quoted("controller-key.pem"),
        quoted("ca-cert.pem"),
    );
    // All switches have one certificate, which cannot be pinned to as many.
    let configuration = format!("tls:\n  identity: any\n{}", CONFIGURATION.1);
    let file = Some(("targets-tls.yaml".to_owned(), configuration));
    Ok(Some(TlsContestant { controller: Contestant { command, file, ..ours }, switches }))
}

/// A progress bar, on a terminal.
fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(STEPS);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, place: TablePosition) {
    bar.set_position((place.share * STEPS as f64) as u64);
    bar.set_message(format!("row {} of {}, {} to go", place.row, place.of, some(place.left)));
}

/// Prints a line above the progress bar, if there is one.
fn print_line(bar: &ProgressBar, line: &str) {
    bar.suspend(|| eprintln!("{line}"));
}

/// Formats an estimated time.
fn some(time: Duration) -> String {
    const MINUTE: u64 = 60;
    match time.as_secs() {
        seconds @ ..=89 => format!("some {} s", seconds.next_multiple_of(5)),
        seconds => format!("some {} min", seconds.div_ceil(MINUTE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_rounded() {
        let some = |seconds| some(Duration::from_secs(seconds));
        assert_eq!([some(0), some(7), some(89)], ["some 0 s", "some 10 s", "some 90 s"]);
        assert_eq!([some(90), some(121)], ["some 2 min", "some 3 min"]);
    }
}
