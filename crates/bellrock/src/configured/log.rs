//! The log: lines on standard error, as text or as JSON.

use std::io::{IsTerminal, stderr};
use std::sync::Arc;

use bellrock_config::{Config, LogFormat};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{fmt, reload};

/// Target of lines that are logged at any level: who has ordered what.
const AUDIT: &str = "audit";

/// Sets the lowest level of logged lines. All clones are of one log.
#[derive(Clone)]
pub struct LogLevel(Arc<dyn Fn(LevelFilter) + Send + Sync>);

impl LogLevel {
    pub(super) fn set(&self, level: impl Into<LevelFilter>) {
        (self.0)(level.into());
    }
}

/// Sends the log to standard error from now on, in the format and from the level of the configuration.
/// If this process has a log already, that one stays.
pub fn start_log(config: &Config) -> LogLevel {
    let (filter, handle) = reload::Layer::new(lines_from(config.log_level.into()));
    let log = tracing_subscriber::registry().with(filter);
    let lines = fmt::layer().with_writer(stderr).with_target(false);
    // An error means that there is a log already.
    let _ = match config.log_format {
        LogFormat::Human => log.with(lines.with_ansi(stderr().is_terminal())).try_init(),
        LogFormat::Json => log.with(lines.json().flatten_event(true)).try_init(),
    };
    // An error means that there is no log any more.
    LogLevel(Arc::new(move |level| drop(handle.reload(lines_from(level)))))
}

/// The lines of this level and above, and the audit log.
fn lines_from(level: LevelFilter) -> Targets {
    Targets::new().with_default(level).with_target(AUDIT, level.max(LevelFilter::INFO))
}
