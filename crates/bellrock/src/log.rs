//! The log of programs that install no subscriber: one line on standard error for each event of
//! level info and above. The command has another log, which can be configured.

use std::fmt::{self, Write as _};
use std::io::Write as _;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::event_log::EVENT_FIELD;

/// Lowest level that is written.
const LEVEL: Level = Level::INFO;

/// Writes everything logged at level info and above to standard error from now on, unless the
/// program has installed its own `tracing` subscriber. [`Controller::run`](crate::Controller) does
/// it; a program that calls `start` may.
pub fn log_to_stderr() {
    let _ = tracing::subscriber::set_global_default(Lines);
}

/// Writes events as lines. All spans have the same id.
struct Lines;

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= LEVEL
    }

    fn event(&self, event: &Event<'_>) {
        let line = line(event);
        // If standard error is closed, the line is lost.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Formats level, message, and the other fields as `name=value`. The result is always one line:
/// control characters that a switch sends are escaped, so they cannot command a terminal.
fn line(event: &Event<'_>) -> String {
    let mut parts = Parts::default();
    event.record(&mut parts);
    format!("{:>5} {}{}\n", event.metadata().level(), tame(&parts.message), tame(&parts.fields))
}

fn tame(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len());
    for char in text.chars() {
        match char.is_control() {
            true => tamed.extend(char.escape_default()),
            false => tamed.push(char),
        }
    }
    tamed
}

#[derive(Default)]
struct Parts {
    message: String,
    fields: String,
    /// Whether it is an event of the network, whose message has all that its other fields have.
    is_event: bool,
}

impl Visit for Parts {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let name = field.name();
        self.is_event |= name == EVENT_FIELD;
        let _ = match name {
            "message" => write!(self.message, "{value:?}"),
            _ if self.is_event && name != EVENT_FIELD => Ok(()),
            _ => write!(self.fields, " {name}={value:?}"),
        };
    }
}
