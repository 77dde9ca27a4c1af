//! How each kind of row is measured.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bellrock_openflow::Version;

use crate::callgrind;
use crate::compare::{Comparison, Side, alternate};
use crate::error::BenchError;
use crate::lead::{Watch, run};
use crate::load::{Cores, Load, Mode};
use crate::peer::{self, Contestant, Places};
use crate::process::Controller;
use crate::report::{Report, Spread};
use crate::responder::Idle;

use super::judge::{Ratio, Verdict, judge};
use super::rows::{self, Check, Measure, Row, Shape};
use super::{Outcome, Targets};

/// Time that a controller has to listen after it was started.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Time that switches have to be known: thousands at once take some, and ten million ARPs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// What our controller may take in one read; its default.
const READ_BYTES: u32 = 64 * 1024;

/// Hosts that a controller is taken to learn in a second, as fast as they come, and one of each switch
/// at a time.
const LEARNT_PER_S: f64 = 2e6;
const LEARNT_IN_TURN_PER_S: f64 = 1e5;

/// Packet_ins for which instructions are counted, and then twice as many: some thousand for each host
/// that the benchmark knows.
const PACKETS: u64 = 200_000;

/// Echo requests a second of a switch that is idle, as Open vSwitch sends them by default, and how
/// long such switches are looked at at least.
const IDLE_RATE: f64 = 0.2;
const IDLE_TIME: Duration = Duration::from_secs(3);

/// How long fairness is looked at at least: a thousand switches take turns of up to some hundred
/// packets each.
const FAIRNESS_TIME: Duration = Duration::from_secs(2);

/// Pairs in which another controller is measured: it is slower by orders of magnitude.
const PEER_PAIRS: u32 = 3;

/// Why a row has no result.
type Failed = String;

/// What a row has to say.
struct Found {
    measured: String,
    verdict: Verdict,
    reports: Vec<(String, Report)>,
}

/// Measures a row.
pub(super) fn measure(targets: &Targets, row: Row) -> Outcome {
    match found(targets, row.measure) {
        Ok(Found { measured, verdict, reports }) => Outcome { row, measured, verdict, reports },
        Err(why) => Outcome {
            row,
            measured: String::from("-"),
            verdict: Verdict::NotMeasured(why),
            reports: Vec::new(),
        },
    }
}

fn found(targets: &Targets, measure: Measure) -> Result<Found, Failed> {
    let told = |error: BenchError| error.to_string();
    match measure {
        Measure::Responder { load, idle, checks } => {
            let ours = Running::ours(targets, 1)?;
            let responder = Running::responder(targets, idle).map_err(told)?;
            pairs(targets, (&ours, load), ("the responder", &responder, load), checks)
        }
        Measure::Itself { load, than, checks } => {
            let (ours, other) = (Running::ours(targets, 1)?, Running::ours(targets, 1)?);
            pairs(targets, (&ours, load), ("itself, compared with", &other, than), checks)
        }
        Measure::Workers { workers, checks } => {
            let (ours, other) = (Running::ours(targets, workers)?, Running::ours(targets, 1)?);
            let load = rows::base(Version::V1_0);
            pairs(targets, (&ours, load), ("itself, 1 worker", &other, load), checks)
        }
        Measure::Instructions { version, most } => instructions(targets, version, most),
        Measure::Fairness { load, jain, slowest } => fairness(targets, load, jain, slowest),
        Measure::Idle { switches, connect_s, memory_mib, cpu } => {
            idle(targets, switches, connect_s, memory_mib, cpu)
        }
        Measure::Peer { name, version, least } => peer(targets, name, version, least),
        Measure::UnevenLoad { least } => uneven(targets, least),
    }
}

/// A controller that was started, and where it listens.
struct Running {
    process: Controller,
    target: SocketAddr,
}

impl Running {
    fn start(
        targets: &Targets,
        command: impl Fn(SocketAddr) -> String,
    ) -> Result<Self, BenchError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let target = listener
            .and_then(|listener| listener.local_addr())
            .map_err(BenchError::system("find a free port"))?;
        let core = targets.controller_core;
        let log = targets.folder.join("log");
        let command = format!("{} 2>{}", command(target), peer::quoted(&log));
        match Controller::start(&command, core.as_slice(), target, START_TIMEOUT) {
            Ok(process) => Ok(Running { process, target }),
            Err(error) => Err(with_log(error, &log)),
        }
    }

    fn ours(targets: &Targets, workers: usize) -> Result<Self, Failed> {
        Running::contestant(targets, &targets.ours, workers)
    }

    fn contestant(targets: &Targets, it: &Contestant, workers: usize) -> Result<Self, Failed> {
        let folder = &targets.folder;
        if let Some((name, contents)) = &it.file {
            let written = fs::write(folder.join(name), contents);
            written.map_err(|error| format!("{}: {error}", folder.join(name).display()))?;
        }
        let command =
            |target| it.command_line(Places { folder, target, workers, read_bytes: READ_BYTES });
        Running::start(targets, command).map_err(|error| error.to_string())
    }

    fn responder(targets: &Targets, idle: Idle) -> Result<Self, BenchError> {
        let command = match idle {
            Idle::Sleep => &targets.responder,
            Idle::Spin => &targets.spinning_responder,
        };
        Running::start(targets, |target| command.replace("{address}", &target.to_string()))
    }

    /// It under a load, in turns with another.
    fn side(&self, targets: &Targets, shape: Shape) -> Side {
        let watch = Watch { pid: Some(self.process.pid()), tdp_watts: None };
        Side { load: load(targets, self.target, shape), watch, stops: true }
    }
}

/// What went wrong, with the last that the controller said of it.
fn with_log(error: BenchError, log: &Path) -> BenchError {
    let said = fs::read_to_string(log).unwrap_or_default();
    match (error, said.lines().last()) {
        (BenchError::StartController { command_line, why }, Some(last)) => {
            BenchError::StartController { command_line, why: format!("{why}; it said: {last}") }
        }
        (error, _) => error,
    }
}

fn load(targets: &Targets, target: SocketAddr, shape: Shape) -> Load {
    shape.on(Load {
        target,
        cores: targets.generator_core.map_or(Cores::Any, |core| Cores::List(vec![core])),
        runs: 1,
        duration: targets.effort.duration(),
        warm_up: targets.effort.warm_up() + first_round(shape),
        answer_timeout: START_TIMEOUT,
        connect_timeout: CONNECT_TIMEOUT,
        ..Load::default()
    })
}

/// Time in which each host has been a source once, so that what is measured is not how a controller
/// learns them, and installs the first flow of each.
fn first_round(shape: Shape) -> Duration {
    let hosts = f64::from(shape.switches) * f64::from(shape.macs);
    let per_s = if shape.mode == Mode::Latency { LEARNT_IN_TURN_PER_S } else { LEARNT_PER_S };
    Duration::from_secs_f64(hosts / per_s)
}

fn pairs(
    targets: &Targets,
    (ours, load): (&Running, Shape),
    (name, theirs, their_load): (&str, &Running, Shape),
    checks: &[Check],
) -> Result<Found, Failed> {
    let (ours, theirs) = (ours.side(targets, load), theirs.side(targets, their_load));
    let found = alternate(&ours, &theirs, targets.effort.pairs(), &mut |_, _| {});
    let found = found.map_err(|error| error.to_string())?;
    let (measured, verdict) = judge(checks, &found);
    Ok(Found { measured, verdict, reports: reports(found, name) })
}

fn reports(found: Comparison, name: &str) -> Vec<(String, Report)> {
    vec![("ours".into(), found.controller), (name.into(), found.reference)]
}

fn instructions(targets: &Targets, version: Version, most: f64) -> Result<Found, Failed> {
    let Some(program) = &targets.packet_in else {
        return Err(
            "give the worker's benchmark with --packet-in-bench, as `make bench` does".into()
        );
    };
    let each = callgrind::per_unit(program, &[&version.to_string(), "exact"], PACKETS);
    let each = each.map_err(|error| error.to_string())?;
    let verdict = Verdict::of(&[Some(each <= most)]);
    Ok(Found { measured: format!("{each:.1}"), verdict, reports: Vec::new() })
}

fn fairness(targets: &Targets, shape: Shape, jain: f64, slowest: f64) -> Result<Found, Failed> {
    let ours = Running::ours(targets, 1)?;
    let side = ours.side(targets, shape);
    // All runs in one report: the worst of them counts.
    let duration = side.load.duration.max(FAIRNESS_TIME);
    let load = Load { runs: targets.effort.pairs(), duration, ..side.load };
    let report = run(&load, &side.watch, &mut |_| {}).map_err(|error| error.to_string())?;
    complete(&report)?;
    let worst = |of: fn(&crate::Fairness) -> f64| {
        report.runs.iter().map(|run| of(&run.fairness)).fold(f64::INFINITY, f64::min)
    };
    let (worst_jain, worst_slowest) = (worst(|of| of.jain), worst(|of| of.slowest));
    let clean = report.summary.tally.is_clean();
    let parts = [Some(worst_jain >= jain), Some(worst_slowest >= slowest), Some(clean)];
    Ok(Found {
        measured: format!(
            "Jain {worst_jain:.4}, slowest {worst_slowest:.2} (the worst of {} runs)",
            report.runs.len()
        ),
        verdict: Verdict::of(&parts),
        reports: vec![("ours".into(), report)],
    })
}

fn complete(report: &Report) -> Result<(), Failed> {
    match &report.failure {
        Some(failure) => Err(failure.clone()),
        None => Ok(()),
    }
}

/// Connects many switches at once, then lets them be idle.
fn idle(
    targets: &Targets,
    switches: u32,
    connect_s: f64,
    memory_mib: f64,
    cpu: f64,
) -> Result<Found, Failed> {
    const MIB: f64 = 1024.0 * 1024.0;
    let told = |error: BenchError| error.to_string();
    let ours = Running::ours(targets, 1)?;
    let responder = Running::responder(targets, Idle::Sleep).map_err(told)?;
    let base = Shape { switches, ..rows::base(Version::V1_0) };
    let storm = ours.side(targets, Shape { mode: Mode::Storm, ..base });
    let connected = run(&storm.load, &storm.watch, &mut |_| {}).map_err(told)?;
    complete(&connected)?;
    let seconds: Vec<f64> = connected.runs.iter().map(|run| run.seconds).collect();
    let seconds = Spread::of(&seconds).median;
    let quiet = Shape { mode: Mode::Rate(IDLE_RATE), ..base };
    let long = |side: Side| {
        let duration = side.load.duration.max(IDLE_TIME);
        Side { load: Load { duration, echoes: true, ..side.load }, ..side }
    };
    let (ours, theirs) = (long(ours.side(targets, quiet)), long(responder.side(targets, quiet)));
    let found = alternate(&ours, &theirs, targets.effort.pairs(), &mut |_, _| {}).map_err(told)?;
    let used = found.controller.runs.iter().filter_map(|run| run.controller.as_ref());
    let bytes = used.map(|used| used.resident_bytes).max().unwrap_or(0) as f64;
    let ratio = found.cpu.ok_or("the controller's CPU time is not known")?;
    let clean = found.is_clean();
    let parts = [
        Some(seconds < connect_s),
        Some(bytes < memory_mib * MIB),
        Some(ratio.median <= cpu),
        Some(clean),
    ];
    Ok(Found {
        measured: format!(
            "connected in {seconds:.2} s, {:.1} MiB resident, CPU {}",
            bytes / MIB,
            Ratio(ratio)
        ),
        verdict: Verdict::of(&parts),
        reports: reports(found, "the responder"),
    })
}

fn peer(targets: &Targets, name: &str, version: Version, least: f64) -> Result<Found, Failed> {
    let contestant = peer::parse(name).map_err(|error| error.to_string())?;
    let theirs = Running::contestant(targets, &contestant, 1)?;
    let ours = Running::ours(targets, 1)?;
    let ours = ours.side(targets, rows::base(version));
    let theirs = theirs.side(targets, rows::peer_load(version));
    let found = alternate(&ours, &theirs, PEER_PAIRS, &mut |_, _| {});
    let found = found.map_err(|error| error.to_string())?;
    let clean = found.controller.summary.tally.is_clean();
    let parts = [Some(found.rate.median >= least), Some(clean)];
    Ok(Found {
        measured: format!("{} times", Ratio(found.rate)),
        verdict: Verdict::of(&parts),
        reports: reports(found, name),
    })
}

/// Runs the command that measures it, and takes its last line for what it found.
fn uneven(targets: &Targets, least: f64) -> Result<Found, Failed> {
    let Some(command) = &targets.uneven else {
        return Err(
            "give the command that measures it with --uneven-bench, as `make bench` does".into()
        );
    };
    let output = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{command}`: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let times = times(last).ok_or_else(|| {
        let error = String::from_utf8_lossy(&output.stderr);
        let error = error.lines().last().unwrap_or_default();
        format!(
            "`{command}` ended ({}) without a line such as \"1.7 times\": {last} {error}",
            output.status
        )
    })?;
    let verdict = Verdict::of(&[Some(times >= least), Some(output.status.success())]);
    Ok(Found { measured: last.to_owned(), verdict, reports: Vec::new() })
}

/// The number before the word `times`.
fn times(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(2).find(|pair| pair[1] == "times").and_then(|pair| pair[0].parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_much_faster_it_is_stands_before_the_word_times() {
        assert_eq!(
            times("after the hand-over 1.87 times the rate before (median; 1.8 to 2)"),
            Some(1.87)
        );
        assert_eq!(times("1.7 times"), Some(1.7));
        assert_eq!(times("many times"), None);
        assert_eq!(times("times"), None);
    }
}
