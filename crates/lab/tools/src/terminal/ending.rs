//! SIGINT and SIGTERM for commands that clean up: the first asks, the second ends the process.
//!
//! A command with a prompt can let SIGINT interrupt only the current line
//! ([`Ending::interrupt_only`]). The prompt then continues.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// A shell reports this plus the signal's number for a process that a signal ended.
const SIGNAL_STATUS: i32 = 128;

/// Whether the command is to end. The default watches for nothing.
#[derive(Clone, Default)]
pub struct Ending(Arc<Flags>);

#[derive(Default)]
struct Flags {
    is_requested: AtomicBool,
    interrupt_only: AtomicBool,
    interrupted: AtomicBool,
}

impl Flags {
    /// Takes a signal. Returns false if it is the second one of its kind.
    fn take(&self, signal: i32) -> bool {
        let interrupts = signal == SIGINT && self.interrupt_only.load(Ordering::SeqCst);
        let flag = if interrupts { &self.interrupted } else { &self.is_requested };
        !flag.swap(true, Ordering::SeqCst)
    }
}

impl Ending {
    /// Watches for signals from now on. Each signal calls `wake`. The first one asks the command to
    /// end. The second one calls `give_up` and ends the process.
    pub fn watch(
        wake: impl Fn() + Send + 'static,
        give_up: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let ending = Ending(Arc::new(Flags::default()));
        let flags = Arc::clone(&ending.0);
        let wait = move || {
            let second = signals.forever().find(|signal| {
                let is_first = flags.take(*signal);
                wake();
                !is_first
            });
            if let Some(signal) = second {
                give_up();
                std::process::exit(SIGNAL_STATUS + signal);
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
        Ok(ending)
    }

    /// Returns whether the command is to end.
    pub fn is_asked_for(&self) -> bool {
        self.0.is_requested.load(Ordering::SeqCst)
    }

    /// From here on SIGINT interrupts only the current action.
    pub fn interrupt_only(&self) {
        self.0.interrupt_only.store(true, Ordering::SeqCst);
    }

    /// Whether the current action is to stop.
    pub fn is_interrupted(&self) -> bool {
        self.is_asked_for() || self.0.interrupted.load(Ordering::SeqCst)
    }

    /// Begins a new action. Returns whether the previous one was interrupted.
    pub fn begin(&self) -> bool {
        self.0.interrupted.swap(false, Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_stops_what_is_done_and_asks_for_nothing_more() {
        let ending = Ending(Arc::default());
        ending.interrupt_only();
        for _ in 0..2 {
            assert!(ending.0.take(SIGINT) && ending.is_interrupted() && !ending.is_asked_for());
            assert!(!ending.0.take(SIGINT), "what does not stop ends the process");
            assert!(ending.begin() && !ending.is_interrupted());
        }
        assert!(ending.0.take(SIGTERM) && ending.is_asked_for() && ending.is_interrupted());
        assert!(!ending.0.take(SIGTERM));
    }
}
