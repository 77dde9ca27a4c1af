//! What commands share that print to a terminal.

pub mod amounts;
mod ending;
mod table;
mod versions;

use std::io::{self, Write};

pub use ending::Ending;
pub use table::{named_table, table, wide_table};
pub use versions::{version_parser, versions_of};

/// Failure of a command.
#[derive(Debug)]
pub enum Failure {
    /// The command failed.
    Failed(String),
    /// The command line or the configuration is wrong.
    Wrong(String),
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Failure::Failed(format!("the result cannot be written as JSON: {error}"))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Failed(error.to_string())
    }
}

/// Prints to standard output. A closed output (`| head`) is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    print_more(text).map(|_| ())
}

/// Prints a part of the output. Returns whether somebody still reads it.
pub fn print_more(text: &str) -> Result<bool, Failure> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Escapes text from outside for a terminal.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            ' '..='~' => shown.push(char),
            _ if char.is_alphanumeric() => shown.push(char),
            _ => shown.extend(char.escape_default()),
        }
    }
    shown
}
