//! SIGTERM, SIGINT and SIGHUP: the first stops the controller in order, the second ends it at once.
//! SIGHUP reloads instead, if the program asks for that.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, iterator};

use crate::Controller;

/// A shell reports this plus the signal's number for a process that a signal ended.
const SIGNAL_STATUS: i32 = 128;

/// The signals that stop a controller, with their names. SIGHUP comes when the terminal is closed.
const STOPPING: [(i32, &str); 3] = [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT"), (SIGHUP, "SIGHUP")];

/// Time between two checks for a signal, or for a failed engine.
const CHECK: Duration = Duration::from_millis(100);

/// Watches for the signals that stop a controller: SIGTERM, SIGINT and SIGHUP.
///
/// [`ControllerBuilder::run`](crate::ControllerBuilder::run) does this itself. It is for programs
/// that do something between the start of the controller and its end.
pub struct Signals {
    signals: iterator::Signals,
    reloads: bool,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// To stop. With the name of the signal.
    Stop(&'static str),
    /// To read the configuration again.
    Reload,
}

impl Signals {
    /// From here on the first signal does not end the process. The second one does. Call it before
    /// any thread starts.
    ///
    /// # Errors
    /// The system refuses to install the handlers.
    pub fn watch() -> io::Result<Self> {
        Signals::install(false)
    }

    /// The same, but SIGHUP asks to reload, and never ends the process.
    ///
    /// # Errors
    /// As [`watch`](Self::watch).
    pub fn watch_with_reload() -> io::Result<Self> {
        Signals::install(true)
    }

    fn install(reloads: bool) -> io::Result<Self> {
        let stopping = Arc::new(AtomicBool::new(false));
        let signals = STOPPING.map(|(signal, _)| signal);
        let is_watched = |signal: &i32| reloads || *signal != SIGHUP || !is_ignored(SIGHUP);
        let signals = signals.into_iter().filter(is_watched);
        for signal in signals.clone().filter(|signal| !(reloads && *signal == SIGHUP)) {
            // In this order: the first signal finds the flag false, and then sets it.
            let status = SIGNAL_STATUS + signal;
            flag::register_conditional_shutdown(signal, status, Arc::clone(&stopping))?;
            flag::register(signal, Arc::clone(&stopping))?;
        }
        Ok(Signals { signals: iterator::Signals::new(signals)?, reloads })
    }

    /// The next signal that has come, if there is one.
    #[must_use]
    pub fn poll(&mut self) -> Option<Signal> {
        let came = self.signals.pending().next()?;
        if self.reloads && came == SIGHUP {
            return Some(Signal::Reload);
        }
        let (_, name) = STOPPING.iter().find(|(signal, _)| *signal == came)?;
        Some(Signal::Stop(name))
    }

    /// Waits for the next signal. Returns `None` if the controller fails first.
    #[must_use]
    pub fn wait(&mut self, controller: &Controller) -> Option<Signal> {
        while !controller.has_failed() {
            if let Some(signal) = self.poll() {
                return Some(signal);
            }
            std::thread::sleep(CHECK);
        }
        None
    }
}

/// Whether the process was started with this signal ignored, as SIGHUP under `nohup`.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Signals count from 1, bits from 0 (proc(5)).
    mask.unwrap_or_default() >> (signal - 1) & 1 == 1
}
