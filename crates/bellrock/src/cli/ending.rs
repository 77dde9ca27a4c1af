//! SIGINT and SIGTERM for commands that clean up after themselves: the first asks them to end, the
//! second ends the process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What the shell reports of a process that a signal ended is its number and this.
const SIGNAL_STATUS: i32 = 128;

/// Whether the command was asked to end.
#[derive(Clone)]
pub(super) struct Ending(Arc<AtomicBool>);

impl Ending {
    /// From here on the first signal asks, and `wake` is called then; on the second, `give_up` is
    /// called, and the process ends.
    pub(super) fn watch(
        wake: impl Fn() + Send + 'static,
        give_up: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let ending = Ending(Arc::new(AtomicBool::new(false)));
        let asked = ending.clone();
        let wait = move || {
            let mut signals = signals.forever();
            if signals.next().is_some() {
                asked.0.store(true, Ordering::SeqCst);
                wake();
            }
            if let Some(signal) = signals.next() {
                give_up();
                std::process::exit(SIGNAL_STATUS + signal);
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
        Ok(ending)
    }

    pub(super) fn is_asked_for(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
