//! The processes of a row: the controllers started for it, and their loads.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bellrock_bench::peer::{self, Contestant, PlaceholderValues};
use bellrock_bench::{
    BenchError, ControllerProcess, GeneratorCores, Load, LoadMode, MeasuredProcess, ResponderIdle,
    Side, free_address,
};

use super::Targets;
use super::measure::NotMeasured;
use super::rows::LoadShape;

/// Time for a controller to listen after its start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for switches to come up: thousands at once take long, and so do ten million ARPs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum bytes per read of our controller; its default.
const READ_BYTES: u32 = 64 * 1024;

/// Assumed number of hosts that a controller learns per second: with all packets at once, and with
/// one packet per switch at a time.
const LEARNT_PER_S: f64 = 2e6;
const LEARNT_IN_TURN_PER_S: f64 = 1e5;

/// A started controller and its address.
pub(super) struct RunningController {
    process: ControllerProcess,
    target: SocketAddr,
}

impl RunningController {
    fn start(
        targets: &Targets,
        command: impl Fn(SocketAddr) -> String,
    ) -> Result<Self, BenchError> {
        let target = free_address()?;
        let core = targets.controller_core;
        let log = targets.folder.join("log");
        let command = format!("{} 2>{}", command(target), peer::quoted(&log));
        match ControllerProcess::start(&command, core.as_slice(), target, START_TIMEOUT) {
            Ok(process) => Ok(RunningController { process, target }),
            Err(error) => Err(with_log(error, &log)),
        }
    }

    pub(super) fn ours(targets: &Targets, workers: usize) -> Result<Self, NotMeasured> {
        RunningController::contestant(targets, &targets.ours, workers, None)
    }

    /// Starts ours with the file of a variant.
    pub(super) fn variant(targets: &Targets, variant: &str) -> Result<Self, NotMeasured> {
        if !targets.ours.has_variant(variant) {
            return Err(format!("this controller has no configuration {variant:?}"));
        }
        RunningController::contestant(targets, &targets.ours, 1, Some(variant))
    }

    pub(super) fn contestant(
        targets: &Targets,
        it: &Contestant,
        workers: usize,
        variant: Option<&str>,
    ) -> Result<Self, NotMeasured> {
        let folder = &targets.folder;
        it.write_file(folder).map_err(|error| error.to_string())?;
        let command = |target| {
            it.command_line(PlaceholderValues {
                folder,
                target,
                workers,
                read_bytes: READ_BYTES,
                variant,
            })
        };
        RunningController::start(targets, command).map_err(|error| error.to_string())
    }

    pub(super) fn responder(targets: &Targets, idle: ResponderIdle) -> Result<Self, NotMeasured> {
        let command = match idle {
            ResponderIdle::Sleep => &targets.responder,
            ResponderIdle::Spin => &targets.spinning_responder,
        };
        RunningController::other(targets, command)
    }

    /// Starts the loop that only answers echo requests.
    pub(super) fn echo_loop(targets: &Targets) -> Result<Self, NotMeasured> {
        RunningController::other(targets, &targets.echo_loop)
    }

    fn other(targets: &Targets, command: &str) -> Result<Self, NotMeasured> {
        let started = RunningController::start(targets, |target| {
            command.replace("{address}", &target.to_string())
        });
        started.map_err(|error| error.to_string())
    }

    /// Returns this controller under a load, as a side of a comparison.
    pub(super) fn side(&self, targets: &Targets, shape: LoadShape) -> Side {
        let watch = MeasuredProcess { pid: Some(self.process.pid()), tdp_watts: None };
        Side { load: load(targets, self.target, shape), watch, settle: first_round(shape) }
    }
}

/// Adds the last line of the controller's log to the error.
fn with_log(error: BenchError, log: &Path) -> BenchError {
    let said = fs::read_to_string(log).unwrap_or_default();
    match (error, said.lines().last()) {
        (BenchError::StartController { command_line, why }, Some(last)) => {
            BenchError::StartController { command_line, why: format!("{why}; it said: {last}") }
        }
        (error, _) => error,
    }
}

pub(super) fn load(targets: &Targets, target: SocketAddr, shape: LoadShape) -> Load {
    shape.on(Load {
        target,
        cores: targets
            .generator_core
            .map_or(GeneratorCores::Any, |core| GeneratorCores::List(vec![core])),
        runs: 1,
        duration: targets.effort.duration(),
        warm_up: targets.effort.warm_up(),
        answer_timeout: START_TIMEOUT,
        connect_timeout: CONNECT_TIMEOUT,
        ..Load::default()
    })
}

/// Time for each host to send once. After it, the controller has learnt all hosts and installed
/// their first flows, so the measurement does not include this.
pub(super) fn first_round(shape: LoadShape) -> Duration {
    let hosts = f64::from(shape.switches) * f64::from(shape.macs);
    let per_s = if shape.mode == LoadMode::Latency { LEARNT_IN_TURN_PER_S } else { LEARNT_PER_S };
    Duration::from_secs_f64(hosts / per_s)
}
