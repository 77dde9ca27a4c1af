//! `bellrock bench`: the load generator's command line, its progress, and where its report goes.
//!
//! The measurements themselves are in `bellrock-bench`.

mod args;
mod folder;
mod suite;
mod targets;

use std::io::IsTerminal;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use bellrock_bench::peer::{self, Contestant, PlaceholderValues};
use bellrock_bench::{
    BenchError, Comparison, ControllerProcess, Destinations, ENOUGH_PAIRS, GeneratorCores,
    HostOrder, Load, LoadMode, LoadTls, MeasuredProcess, Report, Responder, ResponderIdle,
    ResponderSettings, Side, TestProgress, TestStep, free_address,
};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{Failure, print, run_controller};
pub(super) use args::BenchArgs;
use args::{
    BenchCommand, DestinationsArg, IdleArg, LoadArgs, ModeArg, OrderArg, ResponderArgs, time,
};
use folder::Folder;

/// A test that takes longer than this shows its progress, on a terminal.
const SHOW_PROGRESS: Duration = Duration::from_secs(2);

/// Steps of the progress bar for each run.
const STEPS: u64 = 1000;

/// Bytes that one read of a controller may take, if its command has a place for it.
const READ_BYTES: u32 = 64 << 10;

/// A shell reports this plus the signal's number for a process that a signal ended.
const SIGNAL_STATUS: i32 = 128;

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        match error {
            BenchError::Load(_) | BenchError::NoSuchCore { .. } => {
                Failure::Wrong(error.to_string())
            }
            _ => Failure::Failed(error.to_string()),
        }
    }
}

/// Does what the command line says.
pub(super) fn run(bench: &BenchArgs) -> Result<(), Failure> {
    // A controller handles its signals itself.
    if !matches!(bench.command, Some(BenchCommand::SharedTable(_))) {
        end_controllers_on_signals()?;
    }
    match &bench.command {
        Some(BenchCommand::SharedTable(args)) => run_controller(&args.run, Some(args.table())),
        Some(BenchCommand::Responder(responder)) => respond(responder),
        Some(BenchCommand::Suite(args)) => suite::run(args),
        Some(BenchCommand::Report(args)) => suite::report(args),
        Some(BenchCommand::Targets(args)) => targets::run(args),
        None => test(&bench.load),
    }
}

/// On SIGINT or SIGTERM, ends the started controllers, and then exits with 128 plus the signal.
fn end_controllers_on_signals() -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            ControllerProcess::end_all();
            std::process::exit(SIGNAL_STATUS + signal);
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(())
}

fn respond(args: &ResponderArgs) -> Result<(), Failure> {
    let idle = match args.idle {
        IdleArg::Sleep => ResponderIdle::Sleep,
        IdleArg::Spin => ResponderIdle::Spin,
    };
    let listen = resolve(&args.listen)?;
    let (core, echo_only) = (args.core, args.echo_only);
    let responder = Responder::start(&ResponderSettings { listen, idle, core, echo_only })?;
    eprintln!("the responder listens on {}", responder.address());
    Ok(responder.wait()?)
}

fn test(args: &LoadArgs) -> Result<(), Failure> {
    let load = load(args)?;
    load.check().map_err(BenchError::from)?;
    // The controller ends when this function returns.
    let controller = match &args.controller {
        Some(command) => {
            let timeout = load.connect_timeout;
            Some(ControllerProcess::start(
                command,
                args.controller_core.as_slice(),
                load.target,
                timeout,
            )?)
        }
        None => None,
    };
    let pid = args.pid.or(controller.as_ref().map(ControllerProcess::pid));
    let watch = MeasuredProcess { pid, tdp_watts: args.tdp_watts };
    if args.pairs.is_some() || args.peer.is_some() {
        return compare(args, &load, watch);
    }
    let bar = bar(&load, 1);
    let report = bellrock_bench::run(&load, &watch, &mut |progress| show(&bar, &load, 1, progress));
    bar.finish_and_clear();
    drop(controller);
    let report = report?;
    print_report(args, &report)?;
    verdict(&report)
}

/// Measures the controller and the responder, or another controller, in turn.
fn compare(args: &LoadArgs, load: &Load, watch: MeasuredProcess) -> Result<(), Failure> {
    let pairs = args.pairs.unwrap_or(ENOUGH_PAIRS);
    let other = match &args.peer {
        Some(peer) => peer_for(peer, load)?,
        None => suite::responder(&peer::quoted(&std::env::current_exe()?)),
    };
    // The folder is removed when this function returns.
    let folder = Folder::new()?;
    other.write_file(folder.path())?;
    let target = free_address()?;
    let places = PlaceholderValues {
        folder: folder.path(),
        target,
        workers: 1,
        read_bytes: READ_BYTES,
        variant: None,
    };
    let (command, core) = (other.command_line(places), args.controller_core);
    let running =
        ControllerProcess::start(&command, core.as_slice(), target, load.connect_timeout)?;
    let bar = bar(load, pairs * 2);
    let settle = Duration::ZERO;
    let ours = Side { load: load.clone(), watch, settle };
    let theirs = Side {
        // The other one is plain: so the cost of TLS shows.
        load: Load { target, tls: None, ..load.clone() },
        watch: MeasuredProcess { pid: Some(running.pid()), ..watch },
        settle,
    };
    let comparison = bellrock_bench::alternate(&ours, &theirs, pairs, &mut |turn, progress| {
        show(&bar, load, turn, progress);
        bar.set_prefix(format!("pair {} of {pairs}, ", turn.div_ceil(2)));
    });
    bar.finish_and_clear();
    let comparison = Comparison { name: other.name, ..comparison? };
    match args.json {
        true => print(&format!("{}\n", serde_json::to_string_pretty(&comparison)?))?,
        false => print(&comparison.to_string())?,
    }
    match comparison.is_clean() {
        true => Ok(()),
        false => Err(Failure::Failed("not all answers were right; the report has them".into())),
    }
}

/// Returns the other controller of the comparison, if it can take part under this load.
fn peer_for(text: &str, load: &Load) -> Result<Contestant, Failure> {
    let peer = peer::parse(text)?;
    let name = &peer.name;
    if !peer.listens_anywhere() {
        return Err(Failure::Wrong(format!(
            "the peer {name} gets no address to listen on; put {{port}} or {{address}} into its \
             command"
        )));
    }
    match peer.most_switches {
        Some(most) if load.switches > most => Err(Failure::Wrong(format!(
            "{name} takes at most {most} switches; give --switches {most}"
        ))),
        _ => Ok(peer),
    }
}

/// Decides the exit status: whether the test succeeded, and all answers were right.
fn verdict(report: &Report) -> Result<(), Failure> {
    if let Some(failure) = &report.failure {
        return Err(Failure::Failed(failure.clone()));
    }
    if report.runs.iter().all(|run| run.done == 0) {
        return Err(Failure::Failed("no answer was right".into()));
    }
    if !report.summary.tally.is_clean() {
        return Err(Failure::Failed("not all answers were right; the report has them".into()));
    }
    Ok(())
}

fn print_report(args: &LoadArgs, report: &Report) -> Result<(), Failure> {
    if args.json {
        return print(&format!("{}\n", serde_json::to_string_pretty(report)?));
    }
    if args.cbench {
        return print(&format!("{}\n", report.cbench()));
    }
    print(&report.to_string())
}

fn load(args: &LoadArgs) -> Result<Load, Failure> {
    let mode = match (args.mode, args.in_flight, args.rate) {
        (ModeArg::Throughput, None, None) => LoadMode::Throughput,
        (ModeArg::Latency, None, None) => LoadMode::Latency,
        (ModeArg::Window, Some(n), None) => LoadMode::Window(n),
        (ModeArg::Rate, None, Some(rate)) => LoadMode::Rate(rate),
        (ModeArg::Connect, None, None) => LoadMode::Connect,
        (ModeArg::Storm, None, None) => LoadMode::Storm,
        (ModeArg::Window, None, _) => {
            return Err(Failure::Wrong("--mode window needs --in-flight N".into()));
        }
        (ModeArg::Rate, _, None) => {
            return Err(Failure::Wrong("--mode rate needs --rate N".into()));
        }
        (_, Some(_), _) => {
            return Err(Failure::Wrong("--in-flight goes with --mode window only".into()));
        }
        (_, _, Some(_)) => return Err(Failure::Wrong("--rate goes with --mode rate only".into())),
    };
    let tls = match (&args.tls_certificate, &args.tls_key, &args.tls_ca) {
        (Some(certificate), Some(key), Some(ca)) => {
            let tls = LoadTls::read(certificate, key, ca);
            Some(tls.map_err(|error| Failure::Wrong(error.to_string()))?)
        }
        _ => None,
    };
    let in_pairs = args.pairs.is_some() || args.peer.is_some();
    Ok(Load {
        target: resolve(&args.connect)?,
        tls,
        version: args.of,
        switches: args.switches,
        first_dpid: args.first_dpid,
        threads: args.threads,
        cores: match args.cores.is_empty() {
            true => GeneratorCores::Any,
            false => GeneratorCores::List(args.cores.clone()),
        },
        mode,
        buffered: !args.unbuffered,
        echoes: args.echoes,
        as_cbench: args.cbench,
        macs: args.macs,
        order: match args.order {
            OrderArg::InOrder => HostOrder::InOrder,
            OrderArg::Random => HostOrder::Random,
            OrderArg::Zipf => HostOrder::Zipf,
        },
        destinations: match args.dst {
            DestinationsArg::One => Destinations::One,
            DestinationsArg::Uniform => Destinations::Uniform,
            DestinationsArg::Zipf => Destinations::Zipf,
        },
        seed: args.seed,
        ramp_per_second: args.ramp,
        warm_up: args.warm_up,
        duration: args.duration,
        runs: args.runs.unwrap_or(if in_pairs { 1 } else { 3 }),
        answer_timeout: args.answer_timeout,
        connect_timeout: args.connect_timeout,
        learn_timeout: args.learn_timeout,
    })
}

/// An address by number or by name.
fn resolve(text: &str) -> Result<SocketAddr, Failure> {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| {
        Failure::Wrong(format!("{text:?} is no address; give HOST:PORT, such as 127.0.0.1:6653"))
    })
}

/// A progress bar for all runs of `tests` tests. Hidden without a terminal, and for short tests.
fn bar(load: &Load, tests: u32) -> ProgressBar {
    let whole = (load.warm_up + load.duration) * load.runs * tests;
    if whole < SHOW_PROGRESS || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(u64::from(tests) * u64::from(load.runs) * STEPS);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {eta} to go, {prefix}{msg}") {
        bar.set_style(style);
    }
    bar
}

/// Shows the progress of the test of a turn. Turns count from 1.
fn show(bar: &ProgressBar, load: &Load, turn: u32, progress: TestProgress) {
    let TestProgress { step, run, up, done, share } = progress;
    let share = match step {
        TestStep::Connecting | TestStep::Learning | TestStep::WarmingUp => 0.0,
        TestStep::Measuring => share.unwrap_or(0.0),
        TestStep::Draining => 1.0,
    };
    let before = u64::from((turn - 1) * load.runs + run.saturating_sub(1)) * STEPS;
    bar.set_position(before + (share * STEPS as f64) as u64);
    bar.set_message(match step {
        TestStep::Connecting => format!("{up} of {} switches are up", load.switches),
        TestStep::Learning => "destinations are made known".to_owned(),
        TestStep::WarmingUp => format!("run {run} of {}: warms up", load.runs),
        TestStep::Measuring => format!("run {run} of {}: {done} so far", load.runs),
        TestStep::Draining => format!("run {run} of {}: the last answers", load.runs),
    });
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::args::{Cli, Command};
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Load, String> {
        let all = ["bellrock", "bench"].into_iter().chain(arguments.iter().copied());
        let cli = Cli::try_parse_from(all).map_err(|error| error.to_string())?;
        let Command::Bench(bench) = cli.command else { panic!("it is bench") };
        load(&bench.load).map_err(|failure| match failure {
            Failure::Failed(text) | Failure::Wrong(text) => text,
        })
    }

    #[test]
    fn without_flags_it_is_the_default_load() {
        let (parsed, default) = (parse(&[]).unwrap(), Load::default());
        assert_eq!(format!("{parsed:?}"), format!("{default:?}"));
    }

    #[test]
    fn every_mode_can_be_asked_for() {
        let mode = |arguments: &[&str]| parse(arguments).map(|load| load.mode);
        assert_eq!(mode(&["--mode", "latency"]), Ok(LoadMode::Latency));
        assert_eq!(mode(&["--mode", "window", "--in-flight", "7"]), Ok(LoadMode::Window(7)));
        assert_eq!(mode(&["--mode", "rate", "--rate", "0.5"]), Ok(LoadMode::Rate(0.5)));
        assert_eq!(mode(&["--mode", "connect"]), Ok(LoadMode::Connect));
        assert_eq!(mode(&["--mode", "storm"]), Ok(LoadMode::Storm));
        assert!(mode(&["--mode", "window"]).unwrap_err().contains("needs --in-flight"));
        assert!(mode(&["--mode", "rate"]).unwrap_err().contains("needs --rate"));
        assert!(mode(&["--in-flight", "7"]).unwrap_err().contains("--mode window only"));
        assert!(mode(&["--rate", "7"]).unwrap_err().contains("--mode rate only"));
    }

    #[test]
    fn wrong_addresses_and_times_are_errors() {
        assert!(parse(&["--connect", "nowhere"]).unwrap_err().contains("give HOST:PORT"));
        assert!(parse(&["--duration", "-1"]).is_err());
        assert!(parse(&["--of", "1.4"]).is_err());
        assert_eq!(parse(&["--duration", "0.25"]).unwrap().duration, Duration::from_millis(250));
    }
}
