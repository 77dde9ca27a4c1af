//! The processes of a row: controllers that are started for it, and the load that is put on them.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::compare::Side;
use crate::error::BenchError;
use crate::lead::Watch;
use crate::load::{Cores, Load, Mode};
use crate::peer::{self, Contestant, Places};
use crate::process::{Controller, free_address};
use crate::responder::Idle;

use super::Targets;
use super::measure::Failed;
use super::rows::Shape;

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

/// A controller that was started, and where it listens.
pub(super) struct Running {
    process: Controller,
    target: SocketAddr,
}

impl Running {
    fn start(
        targets: &Targets,
        command: impl Fn(SocketAddr) -> String,
    ) -> Result<Self, BenchError> {
        let target = free_address()?;
        let core = targets.controller_core;
        let log = targets.folder.join("log");
        let command = format!("{} 2>{}", command(target), peer::quoted(&log));
        match Controller::start(&command, core.as_slice(), target, START_TIMEOUT) {
            Ok(process) => Ok(Running { process, target }),
            Err(error) => Err(with_log(error, &log)),
        }
    }

    pub(super) fn ours(targets: &Targets, workers: usize) -> Result<Self, Failed> {
        Running::contestant(targets, &targets.ours, workers, None)
    }

    /// Ours with the file of a variant.
    pub(super) fn variant(targets: &Targets, variant: &str) -> Result<Self, Failed> {
        if !targets.ours.has_variant(variant) {
            return Err(format!("this controller has no configuration {variant:?}"));
        }
        Running::contestant(targets, &targets.ours, 1, Some(variant))
    }

    pub(super) fn contestant(
        targets: &Targets,
        it: &Contestant,
        workers: usize,
        variant: Option<&str>,
    ) -> Result<Self, Failed> {
        let folder = &targets.folder;
        it.write_file(folder).map_err(|error| error.to_string())?;
        let command = |target| {
            it.command_line(Places { folder, target, workers, read_bytes: READ_BYTES, variant })
        };
        Running::start(targets, command).map_err(|error| error.to_string())
    }

    pub(super) fn responder(targets: &Targets, idle: Idle) -> Result<Self, Failed> {
        let command = match idle {
            Idle::Sleep => &targets.responder,
            Idle::Spin => &targets.spinning_responder,
        };
        Running::other(targets, command)
    }

    /// The loop that only answers echo requests.
    pub(super) fn echo_loop(targets: &Targets) -> Result<Self, Failed> {
        Running::other(targets, &targets.echo_loop)
    }

    fn other(targets: &Targets, command: &str) -> Result<Self, Failed> {
        let started =
            Running::start(targets, |target| command.replace("{address}", &target.to_string()));
        started.map_err(|error| error.to_string())
    }

    /// It under a load, in turns with another.
    pub(super) fn side(&self, targets: &Targets, shape: Shape) -> Side {
        let watch = Watch { pid: Some(self.process.pid()), tdp_watts: None };
        Side { load: load(targets, self.target, shape), watch, settle: first_round(shape) }
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
        warm_up: targets.effort.warm_up(),
        answer_timeout: START_TIMEOUT,
        connect_timeout: CONNECT_TIMEOUT,
        ..Load::default()
    })
}

/// Time in which each host has been a source once, so that what is measured is not how a controller
/// learns them, and installs the first flow of each.
pub(super) fn first_round(shape: Shape) -> Duration {
    let hosts = f64::from(shape.switches) * f64::from(shape.macs);
    let per_s = if shape.mode == Mode::Latency { LEARNT_IN_TURN_PER_S } else { LEARNT_PER_S };
    Duration::from_secs_f64(hosts / per_s)
}
