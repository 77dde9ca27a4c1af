//! Asks a running controller, and prints its answer.

use std::path::PathBuf;

use bellrock_control::{AskError, Client, default_path};
use bellrock_query::{
    EventRow, FollowEvents, GetStatus, GetTopology, ListEvents, ListLinks, ListSwitches,
    MAX_EVENTS_WAIT_MS, Page, Query, QueryError, Request, Rows,
};
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Failure, print, print_more, show};

/// Arguments that all questions to a running controller share.
#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// Print JSON instead of a table
    ///
    /// A terminal that is narrower than a table is shown its most important columns; a pipe gets
    /// all.
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
        let text = error.to_string();
        let lines: Vec<_> = text.lines().map(show::printable).collect();
        Failure::Failed(lines.join("\n"))
    }
}

/// Asks the controller, and prints the answer as text or as JSON.
pub(crate) fn ask<Q: Query>(
    args: &Ask,
    query: Q,
    show: impl FnOnce(&Q::Answer) -> String,
) -> Result<(), Failure> {
    ask_for(args, query, show).map(|_| ())
}

/// The same, and returns the answer.
pub(crate) fn ask_for<Q: Query>(
    args: &Ask,
    query: Q,
    show: impl FnOnce(&Q::Answer) -> String,
) -> Result<Q::Answer, Failure> {
    let answer = client(args)?.ask(query)?;
    print_answer(args, &answer, show)?;
    Ok(answer)
}

/// Gives an order, and prints the answer. `problems` returns what is not as ordered, a line for
/// each: then the command fails, after the answer is printed.
pub(crate) fn order<Q: Query>(
    args: &Ask,
    order: Q,
    show: impl FnOnce(&Q::Answer) -> String,
    problems: impl FnOnce(&Q::Answer) -> Vec<String>,
) -> Result<(), Failure> {
    order_by_fields(args, order, |_| None, show, problems)
}

/// The same. `place`: what the user calls a field of the order that is wrong.
pub(crate) fn order_by_fields<Q: Query>(
    args: &Ask,
    order: Q,
    place: impl FnOnce(&str) -> Option<String>,
    show: impl FnOnce(&Q::Answer) -> String,
    problems: impl FnOnce(&Q::Answer) -> Vec<String>,
) -> Result<(), Failure> {
    let answer = client(args)?.ask(order).map_err(|error| match &error {
        AskError::Refused(refused) => match refused.field.as_deref().and_then(place) {
            Some(place) => {
                let lines = refused.message.lines().map(show::printable);
                let lines: Vec<String> = lines.collect();
                Failure::Failed(format!("{place}: {}", lines.join("\n")))
            }
            None => error.into(),
        },
        _ => error.into(),
    })?;
    print_answer(args, &answer, show)?;
    let problems = problems(&answer);
    if problems.is_empty() {
        return Ok(());
    }
    // They may quote a switch.
    let lines: Vec<_> = problems.iter().map(|line| show::printable(line)).collect();
    Err(Failure::Failed(lines.join("\n")))
}

/// Asks the controller for all pages of a list, and prints the rows.
pub(crate) fn ask_all<Q, T>(
    args: &Ask,
    query: impl Fn(Page) -> Q,
    format: impl FnOnce(&[T]) -> String,
) -> Result<(), Failure>
where
    Q: Query<Answer = Rows<T>>,
    T: Serialize + DeserializeOwned,
{
    ask_all_of(args, |page| Ok(query(page).into()), format)
}

/// The same for any request, whose rows are read as `T`.
pub(crate) fn ask_all_of<T: Serialize + DeserializeOwned>(
    args: &Ask,
    request: impl Fn(Page) -> Result<Request, QueryError>,
    format: impl FnOnce(&[T]) -> String,
) -> Result<(), Failure> {
    let rows = client(args)?.ask_all_of(request)?;
    print_answer(args, &rows.rows, |rows: &Vec<T>| format(rows))?;
    if let Some(why) = &rows.incomplete {
        eprintln!("bellrock: rows may be missing: {}", show::printable(why));
    }
    Ok(())
}

/// Asks the controller for its switches, and prints them, with those that are missing.
pub(crate) fn switches(args: &Ask) -> Result<(), Failure> {
    let client = client(args)?;
    let rows = client.ask_all(|page| ListSwitches { switch: None, page })?.rows;
    // A list in JSON stays a list of the switches that are connected.
    let missing = match args.json {
        true => Vec::new(),
        false => client.ask(GetStatus {})?.missing_switches,
    };
    print_answer(args, &rows, |rows| show::switches(rows, &missing))
}

/// Asks the controller for the links, and prints them, or why there are none.
pub(crate) fn links(args: &Ask) -> Result<(), Failure> {
    let client = client(args)?;
    let rows = client.ask_all(|page| ListLinks { page })?.rows;
    if rows.is_empty() && !args.json {
        let switches = client.ask(GetStatus {})?.switches;
        let discovered = client.ask(GetTopology {})?.switches.len();
        return print(show::no_links(switches, discovered));
    }
    print_answer(args, &rows, |rows| show::links(rows))
}

/// Prints the latest events, and then each event as it happens, until nobody reads the output.
pub(crate) fn follow_events(args: &Ask) -> Result<(), Failure> {
    let client = client(args)?;
    let format = |row: &EventRow| match args.json {
        true => Ok(serde_json::to_string(row)? + "\n"),
        false => Ok::<_, Failure>(show::event(row)),
    };
    let lines = |rows: &[EventRow]| rows.iter().map(format).collect::<Result<String, Failure>>();
    // Asked first, so that no event is between the list and what follows.
    let now = client.ask(FollowEvents::default())?;
    let latest = client.ask_all(|page| ListEvents { page, ..ListEvents::default() })?.rows;
    let mut after = latest.last().map_or(now.last, |row| row.id.clone());
    let mut is_read = print_more(&lines(&latest)?)?;
    while is_read {
        let query = FollowEvents { after: Some(after), wait_ms: MAX_EVENTS_WAIT_MS };
        let answer = client.ask(query)?;
        if answer.missed > 0 {
            eprintln!("bellrock: {} events are not kept any more", answer.missed);
        }
        is_read = print_more(&lines(&answer.events)?)?;
        after = answer.last;
    }
    Ok(())
}

/// The client of the control socket.
pub(crate) fn client(args: &Ask) -> Result<Client, Failure> {
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

/// Prints an answer as text or as JSON.
pub(crate) fn print_answer<A: Serialize>(
    args: &Ask,
    answer: &A,
    show: impl FnOnce(&A) -> String,
) -> Result<(), Failure> {
    if !args.json {
        return print(&show(answer));
    }
    print(&show::json(&serde_json::to_value(answer)?)?)
}
