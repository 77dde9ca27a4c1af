//! Asks a running controller, and prints its answer.

use std::path::PathBuf;

use bellrock_control::{AskError, Client, default_path};
use bellrock_query::{BlockedList, ListBlocked, Page, Query, Rows};
use clap::Args;
use serde::Serialize;

use crate::{Failure, print, show};

/// Arguments that all questions to a running controller share.
#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// The control socket of the controller
    ///
    /// Default, as for `bellrock run`: /run/bellrock.sock for root, else
    /// $XDG_RUNTIME_DIR/bellrock.sock or /tmp/bellrock-UID/bellrock.sock.
    #[arg(long, value_name = "PATH", env = "BELLROCK_CONTROL", hide_env_values = true)]
    control: Option<String>,
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        // It may quote a switch.
        Failure::Failed(show::printable(&error.to_string()))
    }
}

/// Asks the controller, and prints the answer as text or as JSON.
pub(crate) fn ask<Q: Query>(
    args: &Ask,
    query: Q,
    show: impl FnOnce(&Q::Answer) -> String,
) -> Result<(), Failure> {
    let answer = client(args)?.ask(query)?;
    print_answer(args, &answer, show)
}

/// Asks the controller for all pages of a list, and prints the rows.
pub(crate) fn ask_all<Q, T>(
    args: &Ask,
    query: impl Fn(Page) -> Q,
    format: impl FnOnce(&[T]) -> String,
) -> Result<(), Failure>
where
    Q: Query<Answer = Rows<T>>,
    T: Serialize,
{
    let rows = client(args)?.ask_all(query)?;
    print_answer(args, &rows.rows, |rows| format(rows))?;
    if let Some(why) = &rows.incomplete {
        eprintln!("bellrock: rows may be missing: {}", show::printable(why));
    }
    Ok(())
}

/// Asks the controller for all blocked hosts, and prints them.
pub(crate) fn blocked(args: &Ask) -> Result<(), Failure> {
    let client = client(args)?;
    let ask = |skip| client.ask(ListBlocked { page: Page::largest(skip) });
    let mut list: BlockedList = ask(0)?;
    while list.hosts.rows.len() < list.hosts.total {
        let mut next = ask(list.hosts.rows.len())?;
        if next.hosts.rows.is_empty() {
            break;
        }
        list.hosts.rows.append(&mut next.hosts.rows);
    }
    print_answer(args, &list, show::blocked)
}

fn client(args: &Ask) -> Result<Client, Failure> {
    Ok(Client::new(match args.control.as_deref() {
        None | Some("" | "auto") => default_path()?,
        Some("none") => {
            return Err(Failure::Wrong(
                "without a control socket nothing can be asked; name one with --control".into(),
            ));
        }
        Some(path) => PathBuf::from(path),
    }))
}

fn print_answer<A: Serialize>(
    args: &Ask,
    answer: &A,
    show: impl FnOnce(&A) -> String,
) -> Result<(), Failure> {
    if !args.json {
        return print(&show(answer));
    }
    print(&show::json(&serde_json::to_value(answer)?)?)
}
