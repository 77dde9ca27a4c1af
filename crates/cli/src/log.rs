//! The log: lines on standard error, as text or as JSON.

use std::io::stderr;

use bellrock_config::{Config, LogFormat};

/// Sends the log to standard error from now on. Called once.
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
