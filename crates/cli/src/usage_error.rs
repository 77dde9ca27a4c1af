//! Errors of a command line: what is wrong and what would be right, in at most two lines.

use std::error::Error as _;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Longest usage shown, in characters.
const MAX_USAGE_CHARS: usize = 100;

/// Flags that are gone, and what does the same now.
const GONE: &[(&str, &str)] = &[(
    "--shared-table",
    "the tables behind a mutex and in transactions are an experiment: `bellrock bench shared-table --help`",
)];

/// What is wrong and what would be right.
pub(super) fn text(error: &Error) -> String {
    let usage = usage(error);
    let command = usage.as_deref().map_or("bellrock".to_owned(), command_of);
    let argument = all(error, ContextKind::InvalidArg).join(" and ");
    let value = all(error, ContextKind::InvalidValue).join(" ");
    match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            match command.as_str() {
                "bellrock" => "say what to do: `bellrock run` runs the controller, `bellrock demo` shows it at work\n\
                     `bellrock --help` lists all commands"
                    .to_owned(),
                _ => format!("`{command}` needs a command; `{command} --help` lists all"),
            }
        }
        ErrorKind::InvalidSubcommand => {
            let wrong = all(error, ContextKind::InvalidSubcommand).concat();
            let hint = suggestion(error, ContextKind::SuggestedSubcommand, &command);
            format!("{command} has no command {wrong:?}; {hint}")
        }
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            let gone = GONE.iter().find(|(flag, _)| *flag == argument);
            let hint = match gone {
                Some((_, now)) => (*now).to_owned(),
                None => suggestion(error, ContextKind::SuggestedArg, &command),
            };
            format!("`{command}` has no flag {argument}; {hint}")
        }
        ErrorKind::UnknownArgument => {
            with_usage(format!("`{command}` takes no argument {argument:?}"), usage)
        }
        ErrorKind::MissingRequiredArgument => {
            with_usage(format!("`{command}` needs {argument}"), usage)
        }
        ErrorKind::ArgumentConflict => {
            let others = all(error, ContextKind::PriorArg).join(" and ");
            if argument.is_empty() {
                // A flag in front of a command that has its own.
                return format!("`{command}`: write {others} behind the command that it is for");
            }
            format!("`{command}` takes {argument} or {others}, and not both; leave one out")
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            let valid = all(error, ContextKind::ValidValue).join(", ");
            let one_of = if valid.is_empty() { String::new() } else { format!(": one of {valid}") };
            format!("{argument} needs a value{one_of}")
        }
        ErrorKind::InvalidValue => {
            let valid = all(error, ContextKind::ValidValue).join(", ");
            format!("{argument} cannot be {value:?}; give one of {valid}")
        }
        ErrorKind::ValueValidation => {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            format!("{argument} cannot be {value:?}; {}", what_to_give(&why))
        }
        _ => {
            let rendered = error.to_string();
            let first = rendered.lines().next().unwrap_or_default();
            let what = first.strip_prefix("error: ").unwrap_or(first);
            with_usage(what.to_owned(), usage)
        }
    }
}

/// What would be right, for parsers that only say what is wrong.
fn what_to_give(why: &str) -> &str {
    match why {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "give a whole number"
        }
        "invalid float literal" | "cannot parse float from empty string" => "give a number",
        why => why,
    }
}

fn with_usage(what: String, usage: Option<String>) -> String {
    match usage.filter(|usage| usage.chars().count() <= MAX_USAGE_CHARS) {
        Some(usage) => format!("{what}; give {usage}"),
        None => what,
    }
}

fn suggestion(error: &Error, kind: ContextKind, command: &str) -> String {
    match all(error, kind).first() {
        Some(near) => format!("did you mean {near}?"),
        None => format!("`{command} --help` lists all"),
    }
}

/// The values of this kind, as text.
fn all(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(one)) if !one.is_empty() => vec![one.clone()],
        Some(ContextValue::Strings(many)) => many.clone(),
        _ => Vec::new(),
    }
}

/// The usage, `bellrock check <FILE>`. It is a context of the error, or in its help.
fn usage(error: &Error) -> Option<String> {
    let text = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => error.to_string(),
    };
    let usage = text.lines().find_map(|line| line.trim().strip_prefix("Usage:"))?;
    Some(usage.trim().to_owned())
}

/// The words of a usage that name the command.
fn command_of(usage: &str) -> String {
    let is_word = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
    usage.split_whitespace().take_while(is_word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::super::args::Cli;
    use super::*;

    fn said(words: &str) -> String {
        let words = ["bellrock"].into_iter().chain(words.split_whitespace());
        text(&Cli::try_parse_from(words).expect_err("it is wrong"))
    }

    #[test]
    fn each_command_says_what_it_does() {
        let command = Cli::command();
        let mut abouts = std::collections::BTreeMap::new();
        for command in command.get_subcommands() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let name = command.get_name();
            assert!(!about.is_empty(), "{name}");
            let other = abouts.insert(about, name);
            assert_eq!(other, None, "{name} says the same");
        }
    }

    #[test]
    fn a_wrong_command_line_is_told_what_would_be_right() {
        for (words, expected) in [
            ("", "say what to do: `bellrock run` runs the controller, "),
            ("chekc", "bellrock has no command \"chekc\"; did you mean check?"),
            ("xyzzy", "bellrock has no command \"xyzzy\"; `bellrock --help` lists all"),
            ("static", "`bellrock static` needs a command; "),
            ("static ad 1", "bellrock static has no command \"ad\"; did you mean add?"),
            ("run --wrkers 1", "`bellrock run` has no flag --wrkers; did you mean --workers?"),
            ("run --zzz", "`bellrock run` has no flag --zzz; `bellrock run --help` lists all"),
            (
                "run --shared-table mutex",
                "`bellrock run` has no flag --shared-table; the tables behind a mutex and in ",
            ),
            ("check", "`bellrock check` needs <FILE>; give bellrock check <FILE>"),
            ("check a b", "`bellrock check` takes no argument \"b\"; give bellrock check "),
            ("run --workers", "--workers <N> needs a value"),
            ("emulate --wait soon", "--wait <TIME> cannot be \"soon\"; give a time from "),
            (
                "bench --mode fast",
                "--mode <MODE> cannot be \"fast\"; give one of throughput, latency, ",
            ),
            ("decode --port x", "--port <PORT> cannot be \"x\"; give a whole number"),
            (
                "bench --duration soon",
                "--duration <TIME> cannot be \"soon\"; give a time from 0 s ",
            ),
            (
                "reserve a:1 a:2 10M --wait 9",
                "--wait <TIME> cannot be \"9\"; give a time from 0 s to 5 s",
            ),
        ] {
            let said = said(words);
            assert!(said.starts_with(expected), "{words}: {said}");
            assert!(said.lines().count() <= 2, "{words}: {said}");
        }
    }
}
