//! How each kind of row is measured.

use std::time::Duration;

use bellrock_openflow::Version;

use bellrock_bench::callgrind;
use bellrock_bench::peer;
use bellrock_bench::{
    BenchError, Comparison, ConnectedTest, Load, LoadMode, Report, Side, Spread, TestStep,
    alternate, run,
};

use super::judge::{MIB, Ratio, TargetVerdict, judge};
use super::rows::{self, LoadShape, Measure, RatioCondition, TargetRow};
use super::running::RunningController;
use super::{TargetResult, Targets, program, tls};

/// Number of packet_ins for counting instructions; a second run has twice as many. It is some
/// thousand per host of the benchmark.
const PACKETS: u64 = 200_000;

/// Echo requests per second of an idle switch (the default of Open vSwitch), and the minimum time
/// to observe idle switches.
const IDLE_RATE: f64 = 0.2;
pub(super) const IDLE_TIME: Duration = Duration::from_secs(2);

/// Minimum time to measure fairness: a thousand switches take turns of up to some hundred packets
/// each.
const FAIRNESS_TIME: Duration = Duration::from_secs(1);

/// Reports the completed share of a row.
pub(super) type ReportProgress<'a> = &'a mut dyn FnMut(f64);

/// Why a row has no result.
pub(super) type NotMeasured = String;

pub(super) struct Measurement {
    pub(super) measured: String,
    pub(super) verdict: TargetVerdict,
    pub(super) reports: Vec<(String, Report)>,
}

pub(super) fn measure(targets: &Targets, row: TargetRow, tell: ReportProgress<'_>) -> TargetResult {
    match found(targets, row.measure, tell) {
        Ok(Measurement { measured, verdict, reports }) => {
            TargetResult { row, measured, verdict, reports }
        }
        Err(why) => TargetResult {
            row,
            measured: String::from("-"),
            verdict: TargetVerdict::NotMeasured(why),
            reports: Vec::new(),
        },
    }
}

fn found(
    targets: &Targets,
    measure: Measure,
    tell: ReportProgress<'_>,
) -> Result<Measurement, NotMeasured> {
    match measure {
        Measure::Responder { load, idle, checks } => {
            let ours = RunningController::ours(targets, 1)?;
            let responder = RunningController::responder(targets, idle)?;
            pairs(targets, (&ours, load), ("the responder", &responder, load), checks, tell)
        }
        Measure::Itself { load, than, checks } => {
            let (ours, other) =
                (RunningController::ours(targets, 1)?, RunningController::ours(targets, 1)?);
            pairs(targets, (&ours, load), ("itself, compared with", &other, than), checks, tell)
        }
        Measure::Variant { name, load, settle_s, checks } => {
            let (ours, other) =
                (RunningController::variant(targets, name)?, RunningController::ours(targets, 1)?);
            let settled = |side: Side| {
                let settle = side.settle + Duration::from_secs_f64(settle_s);
                Side { settle, ..side }
            };
            let sides = [&ours, &other].map(|running| settled(running.side(targets, load)));
            sides_in_turn(targets, sides, "itself, learning alone", checks, tell)
        }
        Measure::Workers { workers, checks } => {
            let (ours, other) =
                (RunningController::ours(targets, workers)?, RunningController::ours(targets, 1)?);
            let load = rows::BASE;
            pairs(targets, (&ours, load), ("itself, 1 worker", &other, load), checks, tell)
        }
        Measure::Instructions { version, most } => instructions(targets, version, most),
        Measure::Fairness { load, jain, slowest } => fairness(targets, load, jain, slowest, tell),
        Measure::Idle { switches, connect_s, memory_mib, cpu } => {
            idle(targets, switches, connect_s, memory_mib, cpu, tell)
        }
        Measure::Peer { name, version, least } => peer(targets, name, version, least, tell),
        Measure::TlsCost { load, checks } => tls::cost(targets, load, checks, tell),
        Measure::TlsIdle { switches, kib } => tls::idle(targets, switches, kib, tell),
        Measure::TlsStorm { switches, connect_s, p99_ms } => {
            tls::storm(targets, switches, connect_s, p99_ms)
        }
        Measure::Program { program, asked } => program::measure(targets, program, asked),
    }
}

fn pairs(
    targets: &Targets,
    (ours, load): (&RunningController, LoadShape),
    (name, theirs, their_load): (&str, &RunningController, LoadShape),
    checks: &[RatioCondition],
    tell: ReportProgress<'_>,
) -> Result<Measurement, NotMeasured> {
    let sides = [ours.side(targets, load), theirs.side(targets, their_load)];
    sides_in_turn(targets, sides, name, checks, tell)
}

pub(super) fn sides_in_turn(
    targets: &Targets,
    [ours, theirs]: [Side; 2],
    name: &str,
    checks: &[RatioCondition],
    tell: ReportProgress<'_>,
) -> Result<Measurement, NotMeasured> {
    let found = in_turn(targets, &ours, &theirs, tell)?;
    let (measured, verdict) = judge(checks, &found);
    Ok(Measurement { measured, verdict, reports: reports(found, name) })
}

fn in_turn(
    targets: &Targets,
    ours: &Side,
    theirs: &Side,
    tell: ReportProgress<'_>,
) -> Result<Comparison, NotMeasured> {
    let pairs = targets.effort.pairs();
    let found = alternate(ours, theirs, pairs, &mut |turn, _| {
        tell(f64::from(turn - 1) / f64::from(2 * pairs));
    });
    found.map_err(|error| error.to_string())
}

fn reports(found: Comparison, name: &str) -> Vec<(String, Report)> {
    vec![("ours".into(), found.controller), (name.into(), found.reference)]
}

fn instructions(
    targets: &Targets,
    version: Version,
    most: f64,
) -> Result<Measurement, NotMeasured> {
    let Some(program) = &targets.packet_in else {
        return Err(
            "give the worker's benchmark with --packet-in-bench, as `make bench` does".into()
        );
    };
    let each = callgrind::per_unit(program, &[&version.to_string(), "exact"], PACKETS);
    let each = each.map_err(|error| error.to_string())?;
    let verdict = TargetVerdict::of(&[Some(each <= most)]);
    Ok(Measurement { measured: format!("{each:.1}"), verdict, reports: Vec::new() })
}

fn fairness(
    targets: &Targets,
    shape: LoadShape,
    jain: f64,
    slowest: f64,
    tell: ReportProgress<'_>,
) -> Result<Measurement, NotMeasured> {
    let text = |error: BenchError| error.to_string();
    let ours = RunningController::ours(targets, 1)?;
    let side = ours.side(targets, shape);
    // All runs in one report: the worst one counts.
    let duration = side.load.duration.max(FAIRNESS_TIME);
    let load = Load { runs: targets.effort.pairs(), duration, ..side.load };
    let progress = Box::new(|at: bellrock_bench::TestProgress| {
        if at.step == TestStep::Measuring {
            tell(f64::from(at.run - 1) / f64::from(load.runs));
        }
    });
    let mut test = ConnectedTest::begin(&load, &side.watch, progress).map_err(text)?;
    test.settle(side.settle).map_err(text)?;
    let report = test.runs().map_err(text)?;
    complete(&report)?;
    let worst = |of: fn(&bellrock_bench::Fairness) -> f64| {
        report.runs.iter().map(|run| of(&run.fairness)).fold(f64::INFINITY, f64::min)
    };
    let (worst_jain, worst_slowest) = (worst(|of| of.jain), worst(|of| of.slowest));
    let clean = report.summary.tally.is_clean();
    let parts = [Some(worst_jain >= jain), Some(worst_slowest >= slowest), Some(clean)];
    Ok(Measurement {
        measured: format!(
            "Jain {worst_jain:.4}, slowest {worst_slowest:.2} (the worst of {} runs)",
            report.runs.len()
        ),
        verdict: TargetVerdict::of(&parts),
        reports: vec![("ours".into(), report)],
    })
}

pub(super) fn complete(report: &Report) -> Result<(), NotMeasured> {
    match &report.failure {
        Some(failure) => Err(failure.clone()),
        None => Ok(()),
    }
}

/// Connects many switches at once, then lets them stay idle.
fn idle(
    targets: &Targets,
    switches: u32,
    connect_s: f64,
    memory_mib: f64,
    cpu: f64,
    tell: ReportProgress<'_>,
) -> Result<Measurement, NotMeasured> {
    let ours = RunningController::ours(targets, 1)?;
    let echo_loop = RunningController::echo_loop(targets)?;
    let base = LoadShape { switches, ..rows::BASE };
    let storm = ours.side(targets, LoadShape { mode: LoadMode::Storm, ..base });
    let connected = run(&storm.load, &storm.watch, &mut |_| {});
    let connected = connected.map_err(|error| error.to_string())?;
    complete(&connected)?;
    let seconds: Vec<f64> = connected.runs.iter().map(|run| run.seconds).collect();
    let seconds = Spread::of(&seconds).median;
    let quiet = LoadShape { mode: LoadMode::Rate(IDLE_RATE), ..base };
    let long = |side: Side| {
        let duration = side.load.duration.max(IDLE_TIME);
        let settle = Duration::ZERO;
        Side { load: Load { duration, echoes: true, ..side.load }, settle, ..side }
    };
    let (ours, theirs) = (long(ours.side(targets, quiet)), long(echo_loop.side(targets, quiet)));
    let found = in_turn(targets, &ours, &theirs, tell)?;
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
    Ok(Measurement {
        measured: format!(
            "connected in {seconds:.2} s, {:.1} MiB resident, CPU {}",
            bytes / MIB,
            Ratio(ratio)
        ),
        verdict: TargetVerdict::of(&parts),
        reports: reports(found, "the echo loop"),
    })
}

fn peer(
    targets: &Targets,
    name: &str,
    version: Version,
    least: f64,
    tell: ReportProgress<'_>,
) -> Result<Measurement, NotMeasured> {
    let contestant = peer::parse(name).map_err(|error| error.to_string())?;
    let theirs = RunningController::contestant(targets, &contestant, 1, None)?;
    let ours = RunningController::ours(targets, 1)?;
    let ours = ours.side(targets, rows::base(version));
    let theirs = theirs.side(targets, rows::peer_load(version));
    let found = in_turn(targets, &ours, &theirs, tell)?;
    let clean = found.controller.summary.tally.is_clean();
    let parts = [Some(found.rate.median >= least), Some(clean)];
    Ok(Measurement {
        measured: format!("{} times", Ratio(found.rate)),
        verdict: TargetVerdict::of(&parts),
        reports: reports(found, name),
    })
}
