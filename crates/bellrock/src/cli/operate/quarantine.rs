//! `bellrock quarantine`: the hosts that the app `quarantine` blocks.

use bellrock_apps::quarantine::{BlockLists, Blocked};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::info;

use super::super::args::Ask;
use super::super::show::{printable, table};

/// Block hosts at every switch, and let them back
///
/// Needs the app `quarantine` in the chain. Hosts added here are forgotten when the controller
/// ends; hosts in the file of the app are not.
#[derive(Debug, Args)]
pub(crate) struct Quarantine {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Block a host or a prefix
    Add(One),
    /// Let an added host or prefix back
    Remove(One),
    /// List blocked hosts, and switches that could not block them
    List(Ask),
}

#[derive(Debug, Args)]
struct One {
    /// An Ethernet address, or an IPv4 or IPv6 address or prefix
    host: Blocked,
    #[command(flatten)]
    ask: Ask,
}

impl Quarantine {
    /// The controller to ask, and the words of the question.
    pub(crate) fn question(&self) -> (&Ask, Vec<String>) {
        match &self.what {
            What::Add(one) => (&one.ask, vec!["add".into(), one.host.to_string()]),
            What::Remove(one) => (&one.ask, vec!["remove".into(), one.host.to_string()]),
            What::List(ask) => (ask, vec!["list".into()]),
        }
    }
}

/// Answer of the app, as the JSON that `--json` prints.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Blocked(String),
    LetBack(String),
    List {
        entries: Vec<Row>,
        /// Why the present list of the file is not in force.
        file_problem: Option<String>,
    },
}

/// A blocked host.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    host: String,
    /// Its line in the file. `None`: added by a command.
    line: Option<usize>,
    /// Switches that do not block it.
    gaps: Vec<Gap>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Gap {
    dpid: String,
    why: String,
}

/// Carries out the command in the words.
///
/// # Errors
/// Why it was not done.
pub(crate) fn call(lists: &BlockLists, words: &[&str]) -> Result<Value, String> {
    let host = |text: &str| text.parse::<Blocked>().map_err(|error| error.to_string());
    let answer = match *words {
        ["add", text] => {
            let host = host(text)?;
            lists.add(host).map_err(|error| error.to_string())?;
            info!("an operator blocked {host}");
            Answer::Blocked(host.to_string())
        }
        ["remove", text] => {
            let host = host(text)?;
            lists.remove(host).map_err(|error| error.to_string())?;
            info!("an operator let {host} back");
            Answer::LetBack(host.to_string())
        }
        ["list"] => Answer::List { entries: rows(lists), file_problem: lists.file_problem() },
        _ => {
            return Err(
                "give quarantine add HOST, quarantine remove HOST or quarantine list".into()
            );
        }
    };
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

fn rows(lists: &BlockLists) -> Vec<Row> {
    let entries = lists.entries().into_iter();
    let rows = entries.map(|entry| Row {
        host: entry.blocked.to_string(),
        line: entry.line,
        gaps: entry
            .gaps
            .into_iter()
            .map(|(dpid, why)| Gap { dpid: dpid.to_string(), why })
            .collect(),
    });
    rows.collect()
}

/// Formats the answer as text.
pub(crate) fn show(answer: Answer) -> String {
    let (rows, problem) = match answer {
        Answer::Blocked(host) => return format!("{} is blocked\n", printable(&host)),
        Answer::LetBack(host) => return format!("{} is let back\n", printable(&host)),
        Answer::List { entries, file_problem } => (entries, file_problem),
    };
    let row = |row: &Row| {
        let source =
            row.line.map_or_else(|| "added".to_owned(), |line| format!("file, line {line}"));
        let gaps: Vec<String> =
            row.gaps.iter().map(|gap| format!("{}: {}", gap.dpid, gap.why)).collect();
        vec![printable(&row.host), source, printable(&gaps.join("; "))]
    };
    let mut text = match rows[..] {
        [] => "nobody is blocked\n".to_owned(),
        _ => table(&["BLOCKED", "BY", "NOT AT"], rows.iter().map(row)),
    };
    for line in problem.iter().flat_map(|problem| problem.lines()) {
        text.push_str(&format!("not in force: {}\n", printable(line)));
    }
    text
}
