//! Rows about switches that connect by TLS.

use std::sync::mpsc;
use std::time::Duration;

use bellrock_bench::free_address;
use bellrock_bench::peer::Contestant;
use bellrock_bench::threads::lower_priority;
use bellrock_bench::{
    BenchError, ConnectedTest, GeneratorCores, Load, LoadMode, LoadTls, MeasuredProcess,
    Nanoseconds, Report, Side, TestStep, run,
};

use super::Targets;
use super::judge::TargetVerdict;
use super::measure::{Measurement, NotMeasured, ReportProgress, complete, sides_in_turn};
use super::rows::{self, LoadShape, RatioCondition};
use super::running::{RunningController, load};

/// The controller with TLS, and what switches show to it.
#[derive(Clone, Debug)]
pub struct TlsContestant {
    /// The controller. Beside the usual placeholders, its command has `{plain}`, a second address
    /// to listen on, without TLS. At `{address}` it has TLS.
    pub controller: Contestant,
    /// What the switches show and accept.
    pub switches: LoadTls,
}

/// Packet_ins per second of the plain switch beside which others connect.
const LOADED_RATE: f64 = 20_000.0;

/// Time that it is measured, and number of times that all others connect within it.
const LOADED_TIME: Duration = Duration::from_secs(4);
const STORMS: u32 = 3;

/// Echo requests per second of an idle switch.
const IDLE_RATE: f64 = 0.2;

const KIB: f64 = 1024.0;

/// Measures the cost of TLS: the same load with it and without.
pub(super) fn cost(
    targets: &Targets,
    shape: LoadShape,
    checks: &[RatioCondition],
    tell: ReportProgress<'_>,
) -> Result<Measurement, NotMeasured> {
    let (controller, tls) = started(targets)?;
    let plain = RunningController::ours(targets, 1)?;
    let side = controller.side(targets, shape);
    let ours = Side { load: Load { tls: Some(tls), ..side.load }, ..side };
    sides_in_turn(targets, [ours, plain.side(targets, shape)], "itself, plain", checks, tell)
}

/// Measures the memory of idle switches: what more of them take than one does.
pub(super) fn idle(
    targets: &Targets,
    switches: u32,
    kib: f64,
    tell: ReportProgress<'_>,
) -> Result<Measurement, NotMeasured> {
    let (controller, tls) = started(targets)?;
    let report = |switches| {
        let shape = LoadShape { switches, mode: LoadMode::Rate(IDLE_RATE), ..rows::BASE };
        let side = controller.side(targets, shape);
        let load = Load { tls: Some(tls.clone()), echoes: true, ..side.load };
        let report = run(&load, &side.watch, &mut |_| {}).map_err(text)?;
        complete(&report)?;
        let used = report.runs.iter().filter_map(|run| run.controller.as_ref());
        let bytes = used.map(|used| used.resident_bytes).max();
        Ok::<_, NotMeasured>((bytes.ok_or("the controller's memory is not known")?, report))
    };
    let (first, _) = report(1)?;
    tell(0.1);
    let (all, report) = report(switches)?;
    let each = all.saturating_sub(first) as f64 / f64::from(switches.saturating_sub(1).max(1));
    let parts = [Some(each <= kib * KIB), Some(report.summary.tally.is_clean())];
    Ok(Measurement {
        measured: format!("{:.1} KiB", each / KIB),
        verdict: TargetVerdict::of(&parts),
        reports: vec![("ours".into(), report)],
    })
}

/// Lets many switches connect by TLS while a plain one is loaded. All share the cores.
pub(super) fn storm(
    targets: &Targets,
    switches: u32,
    connect_s: f64,
    p99_ms: f64,
) -> Result<Measurement, NotMeasured> {
    let plain = free_address().map_err(text)?;
    // All cores: the threads of handshakes are not on that of the worker.
    let wide = Targets { controller_core: None, ..targets.clone() };
    let (controller, tls) = started_with(&wide, &plain.to_string())?;
    let many = LoadShape { switches, mode: LoadMode::Storm, ..rows::BASE };
    let side = controller.side(targets, many);
    let (cores, watch) = (GeneratorCores::Any, side.watch);
    let storms = Load { tls: Some(tls), runs: STORMS, cores: cores.clone(), ..side.load };
    let one = LoadShape { switches: 1, mode: LoadMode::Rate(LOADED_RATE), ..rows::BASE };
    let loaded = Load {
        first_dpid: switches + 1,
        duration: LOADED_TIME,
        cores,
        ..load(targets, plain, one)
    };
    let (connected, beside) = beside(&loaded, &storms, watch)?;
    let seconds = connected.runs.iter().map(|run| run.seconds).fold(0.0, f64::max);
    let p99 = beside.summary.latency.as_ref().map(|latency| latency.p99 as f64);
    let p99 = p99.ok_or("the plain switch had no answer")?;
    let clean = beside.summary.tally.is_clean();
    let parts = [Some(seconds < connect_s), Some(p99 < p99_ms * 1e6), Some(clean)];
    Ok(Measurement {
        measured: format!(
            "connected in {seconds:.2} s (the slowest of {STORMS} times), p99 {}",
            Nanoseconds(p99)
        ),
        verdict: TargetVerdict::of(&parts),
        reports: vec![("storm".into(), connected), ("plain switch".into(), beside)],
    })
}

/// Runs the storms while the other load is measured. Returns the reports of both.
fn beside(
    loaded: &Load,
    storms: &Load,
    watch: MeasuredProcess,
) -> Result<(Report, Report), NotMeasured> {
    let (begin, begun) = mpsc::channel();
    std::thread::scope(|scope| {
        let plain = scope.spawn(move || -> Result<Report, BenchError> {
            let progress = Box::new(move |at: bellrock_bench::TestProgress| {
                if at.step == TestStep::Measuring {
                    // Later ones find nobody: the storms have begun.
                    let _ = begin.send(());
                }
            });
            ConnectedTest::begin(loaded, &watch, progress)?.runs()
        });
        let storms = scope.spawn(move || {
            lower_priority();
            // If it fails before that, the channel is closed, and its error is returned below.
            begun.recv().is_ok().then(|| run(storms, &watch, &mut |_| {}))
        });
        let plain = plain.join().map_err(|_| "the generator failed".to_owned())?;
        let plain = plain.map_err(text)?;
        complete(&plain)?;
        let storms = storms.join().map_err(|_| "the storm failed".to_owned())?;
        let storms = storms.ok_or("the plain switch was not measured")?.map_err(text)?;
        complete(&storms)?;
        Ok((storms, plain))
    })
}

fn started(targets: &Targets) -> Result<(RunningController, LoadTls), NotMeasured> {
    let plain = free_address().map_err(text)?;
    started_with(targets, &plain.to_string())
}

/// Starts the controller with TLS, and another address without.
fn started_with(
    targets: &Targets,
    plain: &str,
) -> Result<(RunningController, LoadTls), NotMeasured> {
    let Some(TlsContestant { controller, switches }) = &targets.tls else {
        return Err("there is no command of the controller with TLS".into());
    };
    let command = controller.command.replace("{plain}", plain);
    let it = Contestant { command, ..controller.clone() };
    Ok((RunningController::contestant(targets, &it, 1, None)?, switches.clone()))
}

fn text(error: BenchError) -> NotMeasured {
    error.to_string()
}
