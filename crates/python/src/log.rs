//! The log: lines of Python go where those of the native half go.

use pyo3::prelude::*;
use tracing::level_filters::LevelFilter;
use tracing::{Level, debug, error, info, trace, warn};

/// Levels of Python's `logging`, beside those of the log.
const ERROR: u32 = 40;
const WARNING: u32 = 30;
const INFO: u32 = 20;
const DEBUG: u32 = 10;
/// Python has no name for it.
const TRACE: u32 = 5;

/// Logger of the package itself, which lines need not name.
const OURS: &str = "bellrock";

/// Logs a text of a logger in Python.
#[pyfunction]
pub(crate) fn log(level: u32, logger: &str, text: &str) {
    let logger = Some(logger).filter(|logger| *logger != OURS);
    match level {
        ERROR.. => error!(logger, "{text}"),
        WARNING.. => warn!(logger, "{text}"),
        INFO.. => info!(logger, "{text}"),
        DEBUG.. => debug!(logger, "{text}"),
        _ => trace!(logger, "{text}"),
    }
}

/// Returns the lowest level that is logged, as a level of Python's `logging`. The log itself may
/// leave out more.
#[pyfunction]
pub(crate) fn log_level() -> u32 {
    LevelFilter::current().into_level().map_or(ERROR, level_of)
}

/// The level of Python's `logging` for one of the log.
pub(crate) fn level_of(level: Level) -> u32 {
    match level {
        Level::ERROR => ERROR,
        Level::WARN => WARNING,
        Level::INFO => INFO,
        Level::DEBUG => DEBUG,
        Level::TRACE => TRACE,
    }
}

/// Writes the log of the native half to standard error, from level info on.
#[pyfunction]
pub(crate) fn log_to_stderr() {
    bellrock::log_to_stderr();
}
