//! Runs a controller from its configuration, until a signal ends it.

use bellrock::{RunError, Signal};
use bellrock_config::Config;
use bellrock_daemon::{Configured, LogLevel, NotRun, RunOptions, SharedTableKind};

/// Implementation of the table that all switches of `global_learning` share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum SharedTable {
    /// Without locks.
    #[default]
    LockFree,
    /// With a mutex.
    Mutex,
    /// In transactions.
    Stm,
}

impl From<SharedTable> for SharedTableKind {
    fn from(table: SharedTable) -> Self {
        match table {
            SharedTable::LockFree => SharedTableKind::LockFree,
            SharedTable::Mutex => SharedTableKind::Mutex,
            SharedTable::Stm => SharedTableKind::Stm,
        }
    }
}

/// Runs the controller until SIGTERM or SIGINT.
pub(super) fn run(config: Config, options: RunOptions, log_level: LogLevel) -> Result<(), NotRun> {
    // Before any thread starts, and before anything that a signal would leave half done.
    let mut signals = options.watch_signals()?;
    let configured = Configured::start(config, options, log_level)?;
    loop {
        match signals.wait(configured.controller()).ok_or(RunError::Failed)? {
            Signal::Reload => configured.reload(),
            Signal::Stop(signal) => {
                configured.stop(signal);
                return Ok(());
            }
        }
    }
}
