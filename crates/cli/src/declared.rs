//! Commands that are declared with their requests: arguments, table, CSV and JSON of a list.

use bellrock_apps::bandwidth::Kbps;
use bellrock_query::{
    Cell, Column, DECLARED, Declared, List, Page, Param, ParamKind, QueryError, Request, Route,
};
use bellrock_tools::terminal::wide_table;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::Failure;
use crate::ask::{Ask, ask_all_of};
use crate::show::{duration, printable};

/// A list to print.
#[derive(Debug)]
pub(crate) struct DeclaredList {
    declared: &'static Declared,
    list: List,
    /// Fields of the request, without its page.
    fields: Map<String, Value>,
    csv: bool,
    ask: Ask,
}

/// The requests with a command: each with how it lists, and the route whose parameters are its
/// arguments.
fn all() -> impl Iterator<Item = (&'static Declared, List, &'static Route)> {
    DECLARED
        .iter()
        .filter_map(|declared| Some((declared, declared.list?, declared.routes.first()?)))
}

/// The parameters of a route that are arguments.
fn arguments(route: &'static Route) -> impl Iterator<Item = &'static Param> {
    route.params.iter().filter(|param| param.kind != ParamKind::Page)
}

fn command(list: List, route: &'static Route) -> Command {
    let (about, _) = list.about.split_once("\n\n").unwrap_or((list.about, ""));
    let args = arguments(route).map(|param| {
        let arg = Arg::new(param.name).help(param.about.trim_end_matches('.'));
        let arg = arg.value_name(param.name.to_uppercase());
        match param.is_in(route.path) {
            true => arg.required(true),
            false => arg.long(param.name),
        }
    });
    let csv = Arg::new("csv").long("csv").action(ArgAction::SetTrue).conflicts_with("json");
    let csv = csv.help("Print CSV instead of a table (RFC 4180)");
    let command = Ask::augment_args(Command::new(list.command).args(args)).arg(csv);
    // After the arguments, which bring a text of their own.
    command.about(about).long_about(list.about)
}

impl Subcommand for DeclaredList {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(all().map(|(_, list, route)| self::command(list, route)))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        all().any(|(_, list, _)| list.command == name)
    }
}

impl FromArgMatches for DeclaredList {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let unknown = || clap::Error::new(clap::error::ErrorKind::InvalidSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(unknown)?;
        let (declared, list, route) =
            all().find(|(_, list, _)| list.command == name).ok_or_else(unknown)?;
        let given = arguments(route).filter_map(|param| {
            let value = matches.get_one::<String>(param.name)?;
            Some((param.name.to_owned(), Value::from(value.as_str())))
        });
        let (fields, csv) = (given.collect(), matches.get_flag("csv"));
        Ok(DeclaredList { declared, list, fields, csv, ask: Ask::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl DeclaredList {
    /// Asks for the list, and prints it.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let request = |page: Page| {
            let mut fields = self.fields.clone();
            fields.insert("page".to_owned(), json!(page));
            Request::from_json(json!({ self.declared.name: fields }))
        };
        request(Page::default()).map_err(|QueryError { field, message, .. }| {
            Failure::Wrong(printable(&format!("{}: {message}", field.unwrap_or_default())))
        })?;
        ask_all_of(&self.ask, request, |rows: &[Value]| match self.csv {
            true => csv(self.list.columns, rows),
            false => table(&self.list, rows),
        })
    }
}

/// The row of an answer, as its list shows it.
pub(crate) fn row<T: Serialize>(list: &List, row: &T) -> String {
    // It came as JSON.
    table(list, &[serde_json::to_value(row).unwrap_or_default()])
}

fn table(list: &List, rows: &[Value]) -> String {
    if rows.is_empty() {
        return format!("{}\n", list.none);
    }
    let head: Vec<_> = list.columns.iter().map(|column| column.head).collect();
    let row = |row: &Value| list.columns.iter().map(|column| cell(column, row)).collect();
    wide_table(&head, list.optional, rows.iter().map(row))
}

/// A cell of a table.
fn cell(Column { field, cell, none, .. }: &Column, row: &Value) -> String {
    let value = &row[field];
    match (cell, value.as_u64()) {
        (Cell::Switch, _) if row["switch_name"].is_string() => plain(&row["switch_name"]),
        (Cell::Duration, Some(seconds)) => duration(seconds),
        (Cell::Rate, Some(rate)) => Kbps(rate).to_string(),
        (Cell::Counted([none, _, _]), Some(0)) => (*none).to_owned(),
        (Cell::Counted([_, one, _]), Some(1)) => (*one).to_owned(),
        (Cell::Counted([_, _, more]), Some(n)) => format!("{n} {more}"),
        (Cell::Words, _) => joined(value, " "),
        _ if value.is_null() => (*none).to_owned(),
        _ => plain(value),
    }
}

/// The parts of a list as text.
fn joined(list: &Value, between: &str) -> String {
    let parts = list.as_array().into_iter().flatten().map(plain);
    parts.collect::<Vec<_>>().join(between)
}

/// The rows as CSV (RFC 4180), with the names of fields as the head, and all values as they are.
fn csv(columns: &[Column], rows: &[Value]) -> String {
    let line = |cells: Vec<String>| cells.join(",") + "\r\n";
    let row = |row: &Value| {
        let cells = columns.iter().map(|column| match plain(&row[column.field]) {
            text if text.contains(['"', ',']) => format!("\"{}\"", text.replace('"', "\"\"")),
            text => text,
        });
        line(cells.collect())
    };
    let head = line(columns.iter().map(|column| column.field.to_owned()).collect());
    head + &rows.iter().map(row).collect::<String>()
}

/// A value as text that cannot control a terminal: it has no line ends either.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => printable(text),
        Value::Array(_) => joined(value, "; "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    use crate::args::{self, Cli};

    fn parsed(line: &str) -> DeclaredList {
        match Cli::try_parse_from(line.split(' ')).unwrap().command {
            args::Command::Declared(list) => list,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parameters_of_a_route_are_arguments_and_fields_of_the_request() {
        let list = parsed("bellrock queues --switch s1 --port LOCAL --csv");
        assert_eq!(json!(list.fields), json!({"switch": "s1", "port": "LOCAL"}));
        assert!(list.csv && !list.ask.json);
        let list = parsed("bellrock groups a1 --json");
        assert_eq!((list.list.command, json!(list.fields)), ("groups", json!({"switch": "a1"})));
        for wrong in ["bellrock groups", "bellrock queues s1", "bellrock queues --csv --json"] {
            assert!(Cli::try_parse_from(wrong.split(' ')).is_err(), "{wrong}");
        }
        let wrong = parsed("bellrock queues --port x").run();
        assert!(matches!(wrong, Err(Failure::Wrong(why)) if why.contains("port")));
    }

    #[test]
    fn a_list_is_a_table_for_people_and_csv_for_programs() {
        let list = bellrock_query::QueueRow::LIST;
        let row = json!({
            "dpid": "00000000000000a1", "switch_name": "core, 1", "port": "2", "queue": 1,
            "rate_kbps": 10_000, "tx_packets": 7, "tx_bytes": 700, "tx_errors": null,
            "age_seconds": 65,
        });
        let expected = "\
SWITCH   PORT  QUEUE  BIT/S  TX PACKETS  TX BYTES  ERRORS  AGE
core, 1  2     1      10M    7           700       -       1m 5s
";
        assert_eq!(table(&list, std::slice::from_ref(&row)), expected);
        assert_eq!(table(&list, &[]), "no port has a queue\n");
        let columns =
            [Column::new("S", "switch_name", Cell::Plain), list.columns[6], list.columns[7]];
        let text = csv(&columns, &[row]);
        assert_eq!(text, "switch_name,tx_errors,age_seconds\r\n\"core, 1\",,65\r\n");
    }

    #[test]
    fn a_number_may_stand_in_words_and_a_missing_value_has_its_own() {
        let row = |why: Option<&str>, bare: Option<u32>, state: &str| {
            json!({
                "name": "blue", "state": state, "endpoints": ["a1:4", "a2:3"], "path": ["a1:1"],
                "why": why, "bare_links": bare,
            })
        };
        let rows = [
            row(None, Some(0), "up"),
            row(None, Some(1), "up"),
            row(None, Some(3), "up"),
            row(Some("no path"), None, "down"),
        ];
        let expected = "\
CIRCUIT  STATE  ENDPOINTS  PATH  DETOURS                   REMARK
blue     up     a1:4 a2:3  a1:1  any one link may fail
blue     up     a1:4 a2:3  a1:1  1 link without a detour
blue     up     a1:4 a2:3  a1:1  3 links without a detour
blue     down   a1:4 a2:3  a1:1  -                         no path
";
        assert_eq!(table(&bellrock_query::CircuitRow::LIST, &rows), expected);
    }

    #[test]
    fn a_list_shows_fields_that_its_rows_have() {
        let document = bellrock::http::openapi();
        for (declared, list, _) in all() {
            let row = &document["components"]["schemas"][declared.row.unwrap()]["properties"];
            for column in list.columns {
                assert!(row[column.field].is_object(), "{}: {}", list.command, column.field);
            }
            let heads: Vec<_> = list.columns.iter().map(|column| column.head).collect();
            assert!(list.optional.iter().all(|head| heads.contains(head)), "{}", list.command);
        }
    }
}
