//! The log: lines on standard error, for people or for programs.

use std::io::stderr;

use super::config::{Config, LogFormat};

/// Sends all that is logged from now on to standard error. Called once.
pub(super) fn start(config: &Config) {
    let lines = tracing_subscriber::fmt()
        .with_max_level(config.log_level)
        .with_writer(stderr)
        .with_target(false);
    match config.log_format {
        LogFormat::Human => lines.with_ansi(std::io::IsTerminal::is_terminal(&stderr())).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}
