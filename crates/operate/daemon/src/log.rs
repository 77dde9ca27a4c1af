//! The log: lines on standard error, or for a program that has a log of its own, as text or as
//! JSON.

use std::io::{self, IsTerminal, Write, stderr};
use std::sync::{Arc, OnceLock};

use bellrock_api::{Names, Watch};
use bellrock_config::{Config, LogFormat};
use tracing::field::{Field, Visit};
use tracing::{Level, Metadata};
use tracing_subscriber::field::{RecordFields, VisitOutput};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{DefaultVisitor, Writer};
use tracing_subscriber::fmt::{FormatFields, MakeWriter};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{fmt, reload};

use bellrock::event::EVENT_FIELD;

/// Target of lines that are logged at any level: who has ordered what.
const AUDIT: &str = "audit";

/// Sets the lowest level of logged lines. All clones are of one log.
#[derive(Clone)]
pub struct LogLevel {
    set: Arc<dyn Fn(LevelFilter) + Send + Sync>,
    names: LogNames,
}

impl LogLevel {
    pub(super) fn set(&self, level: impl Into<LevelFilter>) {
        (self.set)(level.into());
    }

    /// Shows switches and hosts by these names from now on, in lines for people. JSON keeps the
    /// identifiers in its fields.
    pub(super) fn show_names(&self, names: &Watch<Names>) {
        // Names that are there already are of an earlier controller in this process.
        let _ = self.names.0.set(names.clone());
    }
}

/// The names that lines show, once they are known.
#[derive(Clone, Default)]
struct LogNames(Arc<OnceLock<Watch<Names>>>);

impl LogNames {
    /// A line with names in place of identifiers. Colours stay.
    fn in_line(&self, line: &str) -> String {
        let Some(names) = self.0.get().map(Watch::load) else { return line.to_owned() };
        let mut named = String::with_capacity(line.len());
        for (index, part) in line.split(ESCAPE).enumerate() {
            let (colour, text) = match part.find('m') {
                Some(end) if index > 0 => part.split_at(end + 1),
                _ => ("", part),
            };
            if index > 0 {
                named.push_str(ESCAPE);
            }
            named.push_str(colour);
            named.push_str(&names.in_text(text));
        }
        named
    }
}

/// Begins a colour, which ends with `m`.
const ESCAPE: &str = "\u{1b}[";

/// The fields of a line for people. The text of an event of the network has all that its fields
/// have.
struct HumanFields;

impl<'a> FormatFields<'a> for HumanFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'a>, fields: R) -> std::fmt::Result {
        let mut shown = Shown { fields: DefaultVisitor::new(writer, true), is_event: false };
        fields.record(&mut shown);
        shown.fields.finish()
    }
}

/// Writes fields, but of an event only its text and its name, which comes before the others.
struct Shown<'a> {
    fields: DefaultVisitor<'a>,
    is_event: bool,
}

impl Visit for Shown<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if self.shows(field) {
            self.fields.record_str(field, value);
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        if self.shows(field) {
            self.fields.record_error(field, value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if self.shows(field) {
            self.fields.record_debug(field, value);
        }
    }
}

impl Shown<'_> {
    fn shows(&mut self, field: &Field) -> bool {
        self.is_event |= field.name() == EVENT_FIELD;
        !self.is_event || matches!(field.name(), EVENT_FIELD | "message")
    }
}

/// Lines on standard error, with names.
struct NamedStderr(LogNames);

impl<'a> MakeWriter<'a> for NamedStderr {
    type Writer = NamedLine<'a>;

    fn make_writer(&'a self) -> NamedLine<'a> {
        NamedLine(&self.0)
    }
}

/// Writes one line, which comes in one piece.
struct NamedLine<'a>(&'a LogNames);

impl Write for NamedLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = self.0.in_line(&String::from_utf8_lossy(bytes));
        stderr().write_all(line.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        stderr().flush()
    }
}

/// Sends the log to standard error from now on, in the format and from the level of the
/// configuration. If this process has a log already, that one stays.
pub fn start_log(config: &Config) -> LogLevel {
    let (filter, handle) = reload::Layer::new(lines_from(config.log_level.into()));
    let log = tracing_subscriber::registry().with(filter);
    let names = LogNames::default();
    let lines = fmt::layer().with_target(false);
    // An error means that there is a log already.
    let _ = match config.log_format {
        LogFormat::Human => {
            let lines = lines.with_ansi(stderr().is_terminal()).fmt_fields(HumanFields);
            log.with(lines.with_writer(NamedStderr(names.clone()))).try_init()
        }
        LogFormat::Json => {
            log.with(lines.with_writer(stderr).json().flatten_event(true)).try_init()
        }
    };
    // An error means that there is no log any more.
    LogLevel { set: Arc::new(move |level| drop(handle.reload(lines_from(level)))), names }
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
        LogFormat::Human => {
            let lines = lines.without_time().with_level(false).fmt_fields(HumanFields);
            log.with(lines).try_init()
        }
        LogFormat::Json => log.with(lines.json().flatten_event(true)).try_init(),
    };
    // An error means that there is no log any more.
    let set = Arc::new(move |level| drop(handle.reload(lines_from(level))));
    LogLevel { set, names: LogNames::default() }
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

#[cfg(test)]
mod tests {
    use bellrock_api::{Dpid, Publisher};

    use super::*;

    #[test]
    fn a_line_has_names_beside_colours() {
        let (shown, mut names) = (LogNames::default(), Names::default());
        names.add_switch("core-1", Dpid(1)).unwrap();
        let line = "\u{1b}[3mdpid\u{1b}[0m\u{1b}[2m=\u{1b}[0m0000000000000001 port=3";
        assert_eq!(shown.in_line(line), line);
        assert!(shown.0.set(Publisher::new(names).watch().clone()).is_ok());
        let named = line.replace("0000000000000001", "core-1");
        assert_eq!(shown.in_line(line), named);
    }
}
