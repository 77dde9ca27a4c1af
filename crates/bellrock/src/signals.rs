//! SIGTERM and SIGINT: the first asks to stop, the second does not ask.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bellrock_engine::Engine;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, iterator};

/// What the shell reports of a process that a signal ended is its number and this.
const SIGNAL_STATUS: i32 = 128;

/// How often it is looked whether a signal has come, or the engine has failed.
const CHECK: Duration = Duration::from_millis(100);

/// The signals that stop a controller, watched for.
pub(crate) struct Signals(iterator::Signals);

impl Signals {
    /// From here on the first signal does not end the process; the second does.
    pub(crate) fn watch() -> io::Result<Self> {
        let stopping = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            // In this order: the first signal finds the flag down, and then raises it.
            let status = SIGNAL_STATUS + signal;
            flag::register_conditional_shutdown(signal, status, Arc::clone(&stopping))?;
            flag::register(signal, Arc::clone(&stopping))?;
        }
        Ok(Signals(iterator::Signals::new([SIGTERM, SIGINT])?))
    }

    /// Waits for the first, and tells its name; `None` if the engine has failed before.
    pub(crate) fn wait(mut self, engine: &Engine) -> Option<&'static str> {
        while !engine.has_failed() {
            match self.0.pending().next() {
                Some(SIGINT) => return Some("SIGINT"),
                Some(_) => return Some("SIGTERM"),
                None => std::thread::sleep(CHECK),
            }
        }
        None
    }
}
