//! The log: lines on standard error, or for a program that has a log of its own, as text or as JSON.

use std::io::{self, IsTerminal, Write, stderr};
use std::sync::Arc;

use bellrock_config::{Config, LogFormat};
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
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

/// Gives each line of the log to `sink` from now on, with its level and without a line end: in the
/// text format without time and level, which the program's own log has. `sink` must not wait or
/// log: any thread calls it. If this process has a log already, that one stays.
pub fn start_log_to(
    config: &Config,
    sink: impl Fn(Level, &str) + Send + Sync + 'static,
) -> LogLevel {
    let (filter, handle) = reload::Layer::new(lines_from(config.log_level.into()));
    let log = tracing_subscriber::registry().with(filter);
    let lines = fmt::layer().with_writer(Sink(sink)).with_target(false).with_ansi(false);
    // An error means that there is a log already.
    let _ = match config.log_format {
        LogFormat::Human => log.with(lines.without_time().with_level(false)).try_init(),
        LogFormat::Json => log.with(lines.json().flatten_event(true)).try_init(),
    };
    // An error means that there is no log any more.
    LogLevel(Arc::new(move |level| drop(handle.reload(lines_from(level)))))
}

/// What takes lines.
struct Sink<F>(F);

impl<'a, F: Fn(Level, &str) + 'a> MakeWriter<'a> for Sink<F> {
    type Writer = Line<'a, F>;

    fn make_writer(&'a self) -> Line<'a, F> {
        Line { sink: &self.0, level: Level::INFO }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Line<'a, F> {
        Line { sink: &self.0, level: *meta.level() }
    }
}

/// Writes one line, which comes in one piece.
struct Line<'a, F> {
    sink: &'a F,
    level: Level,
}

impl<F: Fn(Level, &str)> Write for Line<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        (self.sink)(self.level, text.trim_end_matches('\n'));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines of this level and above, and the audit log.
fn lines_from(level: LevelFilter) -> Targets {
    Targets::new().with_default(level).with_target(AUDIT, level.max(LevelFilter::INFO))
}
