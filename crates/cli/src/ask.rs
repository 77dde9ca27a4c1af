//! Asks a running controller, and prints its answer.

use std::path::PathBuf;

use bellrock_control::{AskError, Client, default_path};
use bellrock_query::{BlockedList, ListBlocked, MAX_PAGE_ROWS, Page, Query, Rows};
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
    asked: &Ask,
    query: Q,
    show: impl FnOnce(&Q::Answer) -> String,
) -> Result<(), Failure> {
    let answer = client(asked)?.ask(query)?;
    print_answer(asked, &answer, show)
}

/// Asks the controller for all pages of a list, and prints the rows. A list that changes meanwhile
/// may miss a row, or have one twice.
pub(crate) fn ask_all<Q, T>(
    asked: &Ask,
    query: impl Fn(Page) -> Q,
    show: impl FnOnce(&[T]) -> String,
) -> Result<(), Failure>
where
    Q: Query<Answer = Rows<T>>,
    T: Serialize,
{
    let client = client(asked)?;
    let mut rows = Vec::new();
    loop {
        let mut page: Rows<T> = client.ask(query(full_page(rows.len())?))?;
        let was_last = page.rows.is_empty() || rows.len() + page.rows.len() >= page.total;
        rows.append(&mut page.rows);
        if was_last {
            return print_answer(asked, &rows, |rows| show(rows));
        }
    }
}

/// Asks the controller for all blocked hosts, and prints them.
pub(crate) fn blocked(asked: &Ask) -> Result<(), Failure> {
    let client = client(asked)?;
    let mut list: BlockedList = client.ask(ListBlocked { page: full_page(0)? })?;
    while list.entries.len() < list.total {
        let mut page = client.ask(ListBlocked { page: full_page(list.entries.len())? })?;
        if page.entries.is_empty() {
            break;
        }
        list.entries.append(&mut page.entries);
    }
    print_answer(asked, &list, show::blocked)
}

fn full_page(skip: usize) -> Result<Page, Failure> {
    Page::new(skip, MAX_PAGE_ROWS).map_err(|error| Failure::Failed(error.to_string()))
}

fn client(asked: &Ask) -> Result<Client, Failure> {
    Ok(Client::new(match asked.control.as_deref() {
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
    asked: &Ask,
    answer: &A,
    show: impl FnOnce(&A) -> String,
) -> Result<(), Failure> {
    if !asked.json {
        return print(&show(answer));
    }
    print(&show::json(&serde_json::to_value(answer)?)?)
}
