//! The control socket: how an operator asks a running controller.
//!
//! A client connects to a Unix socket, sends one line that names a [`Question`], and gets one line
//! of JSON: `{"answer": ...}` or `{"error": "..."}`. Then the controller closes the connection.
//! Nothing can be changed through it, and who may ask is decided by the file system: only the owner
//! of the socket can open it.

mod client;
mod path;
mod server;

pub(super) use client::{AskError, ask};
pub(super) use path::default_path;
pub(super) use server::{Server, ServerError};

/// Longest question, in bytes with its line end. A longer one is refused.
const MAX_QUESTION_BYTES: u64 = 64;

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Status,
    Switches,
    Hosts,
    Counters,
}

impl Question {
    const ALL: [Question; 4] =
        [Question::Status, Question::Switches, Question::Hosts, Question::Counters];

    /// The word on the wire, which is the command's too.
    fn word(self) -> &'static str {
        match self {
            Question::Status => "status",
            Question::Switches => "switches",
            Question::Hosts => "hosts",
            Question::Counters => "counters",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        Question::ALL.into_iter().find(|question| question.word() == word)
    }
}

#[cfg(test)]
mod tests;
