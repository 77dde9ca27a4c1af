//! `bellrock bench suite` and `bellrock bench report`: the controllers and the progress.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use bellrock_bench::TestStep;
use bellrock_bench::peer::{self, Contestant, ContestantRole, ContestantVariant, PeerError};
use bellrock_openflow::Version;
use bellrock_studies::suite::{self, Finished, Suite, SuiteError, SuiteProgress};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::super::{Failure, print};
use super::{resolve, time};
use bellrock_tools::terminal::version_parser;

/// Default time of each run and of the load before it; second is the short form (`--quick`).
const DURATION: [Duration; 2] = [Duration::from_secs(3), Duration::from_millis(500)];
const WARM_UP: [Duration; 2] = [Duration::from_secs(1), Duration::from_millis(200)];

/// Default number of rounds; second is the short form.
const RUNS: [u32; 2] = [3, 1];

/// Steps of the progress bar for each run.
const STEPS: u64 = 100;

/// Configuration of our controller: flows match all fields, as the controllers of the studies did.
const CONFIGURATION: (&str, &str) = ("bellrock.yaml", "apps:\n  - learning:\n      match: exact\n");

/// The same with one table for all switches, once for each kind of table: their names. `command`
/// makes the command line of a controller from the command that runs it.
pub(super) fn shared_tables(
    [lock_free, mutex, stm]: [&'static str; 3],
    command: impl Fn(&str) -> String,
) -> impl Iterator<Item = ContestantVariant> {
    const CONFIGURATION: &str = "apps:\n  - global_learning:\n      match: exact\n";
    let variant = |(name, command)| {
        let file = (format!("bellrock-{name}.yaml"), CONFIGURATION.to_owned());
        ContestantVariant { name, file, command }
    };
    let experiment = |table| Some(command(&format!("bench shared-table {table}")));
    [(lock_free, None), (mutex, experiment("mutex")), (stm, experiment("stm"))]
        .map(variant)
        .into_iter()
}

/// The same with discovery and host tracking.
fn with_services() -> ContestantVariant {
    let name = suite::WITH_SERVICES;
    let file = format!("services: hosts\n{}", CONFIGURATION.1);
    ContestantVariant { name, file: (format!("bellrock-{name}.yaml"), file), command: None }
}

/// Repeat the experiments of published studies, and report with plots
///
/// Each experiment measures this controller, the canned responder and given peers, in turns on the
/// same cores. Results are raw JSON, plots as SVG and PNG, and an HTML report.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SuiteArgs {
    /// Experiments: threads, switches, macs, latency, window, fairness, batch, energy,
    /// shared-state, hostile [default: all]
    #[arg(value_name = "EXPERIMENT")]
    experiments: Vec<String>,

    /// Folder for the results; new or empty
    #[arg(long, short, value_name = "FOLDER")]
    out: PathBuf,

    /// Fewer points and short runs: a few minutes for an impression
    #[arg(long)]
    quick: bool,

    /// Number of rounds, each a run of each controller at each point; 9 are enough for a result
    /// [default: 3; 1 with --quick]
    #[arg(long, value_name = "N")]
    runs: Option<u32>,

    /// Measured seconds of each run [default: 3; 0.5 with --quick]
    #[arg(long, short, value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,

    /// Seconds of load before each measurement [default: 1; 0.2 with --quick]
    #[arg(long, value_name = "TIME", value_parser = time)]
    warm_up: Option<Duration>,

    /// Time limit to learn all hosts of a point; a slower controller skips larger points
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    learn_timeout: Duration,

    /// Threads of the controllers, unless an experiment varies them; at most one for each core
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: usize,

    /// OpenFlow version of the switches
    #[arg(long, value_name = "VERSION", default_value = "1.0",
          value_parser = version_parser())]
    of: Version,

    /// Measure this controller instead of `bellrock run`
    ///
    /// In the command, {port} is its port, {address} is 127.0.0.1:PORT, {workers} its threads, and
    /// {read_bytes} the bytes of one read. A script must `exec` the controller.
    #[arg(long, value_name = "COMMAND")]
    controller: Option<String>,

    /// Measure another controller too, under the same load on the same cores; can be repeated
    ///
    /// The command is as for --controller. Built in, without a command: ovs-testcontroller and
    /// os-ken; `scripts/tools install peers` installs them.
    #[arg(long = "peer", value_name = "NAME=COMMAND")]
    peers: Vec<String>,

    /// Address of controllers whose command has neither {port} nor {address}
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6653")]
    connect: String,

    /// Estimate energy from this thermal design power where it cannot be measured
    #[arg(long, value_name = "WATTS", value_parser = watts)]
    tdp_watts: Option<f64>,
}

const EXAMPLES: &str = "\
Examples:
  bellrock bench suite --quick --out /tmp/bench
  bellrock bench suite switches macs --runs 9 --out results
  bellrock bench suite latency --out results --peer ovs-testcontroller --peer os-ken
  bellrock bench suite --out results --peer 'nox=nox_core -i ptcp:{port} switch'
  bellrock bench report results             plots and reports again, from the raw JSON

Minutes, with this controller and the responder: threads 1, switches 5, macs 4, latency 6, window 6,
fairness 6, batch 8, energy 4, shared-state 2, hostile 2; all of them 44, and 3 with --quick. --runs 9 takes three
times as long, and each peer adds half.

Exit status: 0 if all answers of the controller are right, 1 for a failure, 2 for a wrong command line.";

/// Draw a suite's plots and reports again, from its raw JSON
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The folder of a suite, or of one experiment in it
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

fn watts(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|watts: &f64| watts.is_finite() && *watts > 0.0);
    number.ok_or_else(|| "give watts, more than 0".to_owned())
}

impl From<SuiteError> for Failure {
    fn from(error: SuiteError) -> Self {
        match error {
            SuiteError::Bench(error) => (*error).into(),
            SuiteError::Unknown { .. } | SuiteError::NotEmpty(_) => {
                Failure::Wrong(error.to_string())
            }
            _ => Failure::Failed(error.to_string()),
        }
    }
}

impl From<PeerError> for Failure {
    fn from(error: PeerError) -> Self {
        match error {
            PeerError::NotInstalled { .. } => Failure::Failed(error.to_string()),
            _ => Failure::Wrong(error.to_string()),
        }
    }
}

/// Measures the experiments.
pub(super) fn run(args: &SuiteArgs) -> Result<(), Failure> {
    let form = usize::from(args.quick);
    let suite = Suite {
        experiments: args.experiments.clone(),
        folder: args.out.clone(),
        contestants: contestants(args)?,
        connect: resolve(&args.connect)?,
        version: args.of,
        quick: args.quick,
        runs: args.runs.unwrap_or(RUNS[form]),
        duration: args.duration.unwrap_or(DURATION[form]),
        warm_up: args.warm_up.unwrap_or(WARM_UP[form]),
        learn_timeout: args.learn_timeout,
        workers: args.workers,
        tdp_watts: args.tdp_watts,
    };
    let bar = match std::io::stderr().is_terminal() {
        true => ProgressBar::new(1),
        false => ProgressBar::hidden(),
    };
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {eta} to go  {msg}") {
        bar.set_style(style);
    }
    let finished = suite::run(&suite, &mut |progress| show(&bar, &progress));
    bar.finish_and_clear();
    print_finished(&finished?)
}

/// Draws the plots and reports again.
pub(super) fn report(args: &ReportArgs) -> Result<(), Failure> {
    print(&format!("{}\n", suite::redraw(&args.folder)?.display()))
}

/// The controller, the responder, and the peers, in the order of their turns.
fn contestants(args: &SuiteArgs) -> Result<Vec<Contestant>, Failure> {
    let bellrock = peer::quoted(&std::env::current_exe()?);
    let ours = match &args.controller {
        Some(command) => contestant("controller", ContestantRole::Ours, command.clone()),
        None => {
            let command = |run: &str| {
                format!(
                    "{bellrock} {run} --config {{file}} --listen {{address}} --workers {{workers}} \
                     --bytes-per-turn {{read_bytes}} --control none --log-level warn"
                )
            };
            let file = Some((CONFIGURATION.0.to_owned(), CONFIGURATION.1.to_owned()));
            let ours = contestant("bellrock", ContestantRole::Ours, command("run"));
            let variants = shared_tables(suite::SHARED_TABLES, command).chain([with_services()]);
            Contestant { file, variants: variants.collect(), ..ours }
        }
    };
    let mut all = vec![ours, responder(&bellrock)];
    for text in &args.peers {
        let peer = peer::parse(text)?;
        if all.iter().any(|other| other.name == peer.name) {
            return Err(PeerError::Name(peer.name).into());
        }
        all.push(peer);
    }
    Ok(all)
}

fn contestant(name: &str, role: ContestantRole, command: String) -> Contestant {
    let (name, variants) = (name.to_owned(), Vec::new());
    Contestant { name, role, command, file: None, variants, most_switches: None }
}

/// The canned responder, which is a command of this program.
pub(super) fn responder(bellrock: &str) -> Contestant {
    let command = format!("{bellrock} bench responder --listen {{address}}");
    contestant("responder", ContestantRole::Responder, command)
}

fn show(bar: &ProgressBar, progress: &SuiteProgress<'_>) {
    let SuiteProgress { run, of, experiment, contestant, label, inner } = progress;
    let share = match inner.step {
        TestStep::Connecting | TestStep::Learning | TestStep::WarmingUp => 0.0,
        TestStep::Measuring => inner.share.unwrap_or(0.0),
        TestStep::Draining => 1.0,
    };
    bar.set_length(u64::from(*of) * STEPS);
    let done = u64::from(run.saturating_sub(1)) * STEPS + (share * STEPS as f64) as u64;
    bar.set_position(done);
    bar.set_message(format!("{experiment}: {label}, {contestant} (run {run} of {of})"));
}

fn print_finished(finished: &Finished) -> Result<(), Failure> {
    for note in finished.notes.iter().chain(&finished.others) {
        eprintln!("{note}");
    }
    print(&format!("{}\n", finished.report.display()))?;
    match finished.faults.as_slice() {
        [] => Ok(()),
        faults => Err(Failure::Failed(faults.join("\n"))),
    }
}
