//! The log of programs that bring none of their own: a line on standard error for what is of level
//! info and above. The command's is another, which can be set.

use std::fmt::{self, Write as _};
use std::io::Write as _;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The least level that is written.
const LEVEL: Level = Level::INFO;

/// Has all that is logged from now on written, unless the program has a subscriber already.
pub(crate) fn start() {
    let _ = tracing::subscriber::set_global_default(Lines);
}

/// Writes events as lines. Spans are not told apart.
struct Lines;

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= LEVEL
    }

    fn event(&self, event: &Event<'_>) {
        let line = line(event);
        // Whoever has closed standard error does not want it.
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

/// Level, message, and the other fields as `name=value`. Whatever a switch says of itself, it is one
/// line, and commands no terminal.
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
}

impl Visit for Parts {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
