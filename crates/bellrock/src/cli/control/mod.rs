//! The control socket: questions to a running controller, and commands to its apps.
//!
//! A client connects to a Unix socket, sends one line that is a [`Question`], and gets one line of
//! JSON: `{"answer": ...}` or `{"error": "..."}`. Then the controller closes the connection. Only
//! the commands of apps change anything ([`super::operate`]). The file system decides access: only
//! the owner of the socket can open it.

mod client;
mod path;
mod server;

pub(super) use client::{AskError, ask};
pub(super) use path::default_path;
pub(super) use server::{Server, ServerError};

use super::operate::COMMANDS;

/// Maximum size of a question, in bytes with its line end. A longer one is refused.
const MAX_QUESTION_BYTES: u64 = 512;

/// A question to the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Status,
    Switches,
    Hosts,
    Apps,
    Tasks,
    Counters,
    Topology,
    Links,
    Events,
    /// The flows of switches, selected by the words ([`super::flows`]).
    Flows(Vec<String>),
    /// A command for an app of the chain: the command, then its words.
    App(&'static str, Vec<String>),
}

impl Question {
    const FIXED: [Question; 9] = [
        Question::Status,
        Question::Switches,
        Question::Hosts,
        Question::Apps,
        Question::Tasks,
        Question::Counters,
        Question::Topology,
        Question::Links,
        Question::Events,
    ];

    /// The first word on the wire, which is also the name of the command.
    fn word(&self) -> &'static str {
        match self {
            Question::Status => "status",
            Question::Switches => "switches",
            Question::Hosts => "hosts",
            Question::Apps => "apps",
            Question::Tasks => "tasks",
            Question::Counters => "counters",
            Question::Topology => "topology",
            Question::Links => "links",
            Question::Events => "events",
            Question::Flows(_) => "flows",
            Question::App(command, _) => command,
        }
    }

    /// Makes a command for an app.
    ///
    /// # Errors
    /// A word is empty or contains a character that would split it.
    pub(super) fn app(command: &'static str, words: Vec<String>) -> Result<Self, String> {
        Question::App(command, words).checked()
    }

    /// Makes a question about flows.
    ///
    /// # Errors
    /// A word is empty or contains a character that would split it.
    pub(super) fn flows(words: Vec<String>) -> Result<Self, String> {
        Question::Flows(words).checked()
    }

    fn checked(self) -> Result<Self, String> {
        let broken = |word: &&String| {
            word.is_empty() || word.contains(|c: char| c.is_whitespace() || c.is_control())
        };
        if let Some(word) = self.words().iter().find(broken) {
            return Err(format!("{word:?} is empty or has a space in it; give one word"));
        }
        if self.line().len() as u64 > MAX_QUESTION_BYTES {
            return Err(format!(
                "a question has at most {MAX_QUESTION_BYTES} bytes; say it shorter"
            ));
        }
        Ok(self)
    }

    /// The words after the first.
    fn words(&self) -> &[String] {
        match self {
            Question::Flows(words) | Question::App(_, words) => words,
            _ => &[],
        }
    }

    /// The line that is sent, with its line end.
    fn line(&self) -> String {
        let mut line = self.word().to_owned();
        for word in self.words() {
            line.push(' ');
            line.push_str(word);
        }
        line + "\n"
    }

    /// Reads a question from a line without its line end. The error lists the possible questions.
    fn from_line(line: &str) -> Result<Self, String> {
        if let Some(fixed) = Question::FIXED.into_iter().find(|fixed| fixed.word() == line) {
            return Ok(fixed);
        }
        let mut words = line.split(' ');
        let first = words.next().unwrap_or_default();
        if first == "flows" {
            return Ok(Question::Flows(words.map(str::to_owned).collect()));
        }
        if let Some((command, _)) = COMMANDS.iter().find(|(command, _)| *command == first) {
            return Ok(Question::App(command, words.map(str::to_owned).collect()));
        }
        let fixed = Question::FIXED.map(|fixed| fixed.word());
        let commands = COMMANDS.iter().map(|(command, _)| *command);
        let words =
            fixed.into_iter().chain(["flows"]).chain(commands).collect::<Vec<_>>().join(", ");
        Err(format!("no such question: {line:?}; there are: {words}"))
    }
}

#[cfg(test)]
mod tests;
