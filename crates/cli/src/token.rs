//! `bellrock token`: makes, lists and revokes tokens of the HTTP server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bellrock::http::tokens::{self, Scope, TokenEntry, TokenError};
use clap::{Args, Subcommand};

use super::show::table;
use super::{Failure, print};

/// Make, list and revoke tokens of the HTTP server
///
/// Adds a line with the name, the scope and a hash to the file of `http.tokens`, and prints the
/// token, which is kept nowhere. A running controller takes it within a second. Without a file:
/// also prints what to add to `http.token_hashes`, such as in the configuration that the nodes of a
/// cluster share.
#[derive(Debug, Args)]
#[command(
    after_long_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true
)]
pub(super) struct TokenArgs {
    #[command(subcommand)]
    order: Option<TokenOrder>,

    /// Name of the token, which the log shows
    #[arg(required = true)]
    name: Option<String>,

    /// What it allows: read, or write (to ask, and to change something)
    #[arg(long, value_name = "SCOPE", default_value = "read")]
    scope: Scope,

    /// Days until it expires; otherwise it does not
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=MAX_DAYS))]
    days: Option<u32>,

    /// The file of the setting http.tokens; it is made if it does not exist
    #[arg(long, value_name = "FILE", env = "BELLROCK_HTTP_TOKENS", hide_env_values = true)]
    file: Option<PathBuf>,
}

/// What to do with the tokens of a file.
#[derive(Debug, Subcommand)]
enum TokenOrder {
    /// List the tokens of a file: names, scopes, and when they expire
    List(TokenFile),
    /// Revoke a token: take its line out of the file. A running controller refuses it within a
    /// second
    Revoke {
        /// Name of the token
        name: String,
        #[command(flatten)]
        file: TokenFile,
    },
}

#[derive(Debug, Args)]
struct TokenFile {
    /// The file of the setting http.tokens
    #[arg(long, value_name = "FILE", env = "BELLROCK_HTTP_TOKENS", hide_env_values = true)]
    file: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  bellrock token grafana --file /etc/bellrock/tokens
  bellrock token list --file /etc/bellrock/tokens
  bellrock token revoke grafana --file /etc/bellrock/tokens
  bellrock token deploy --scope write --days 90 --file /etc/bellrock/tokens
  bellrock token grafana
  curl -H \"Authorization: Bearer $TOKEN\" -X DELETE http://127.0.0.1:8080/v1/reservations/1";

/// Maximum number of days until a token expires: ten years.
const MAX_DAYS: i64 = 3650;

const SECONDS_PER_DAY: u64 = 86_400;

pub(super) fn run(args: &TokenArgs) -> Result<(), Failure> {
    match &args.order {
        None => make(args),
        Some(TokenOrder::List(TokenFile { file })) => print(&list(file)?),
        Some(TokenOrder::Revoke { name, file: TokenFile { file } }) => {
            tokens::remove(file, name).map_err(failed)?;
            print(&format!("{name} is revoked\n"))
        }
    }
}

fn failed(error: TokenError) -> Failure {
    Failure::Failed(error.to_string())
}

fn list(file: &Path) -> Result<String, Failure> {
    let entries = tokens::read(file).map_err(failed)?;
    if entries.is_empty() {
        return Ok("no token\n".to_owned());
    }
    let row = |entry: &TokenEntry| {
        let end = match (entry.expiry(), entry.has_expired()) {
            (None, _) => "never".to_owned(),
            (Some(time), false) => time,
            (Some(time), true) => format!("{time} (expired)"),
        };
        vec![entry.name.clone(), entry.scope.word().to_owned(), end]
    };
    Ok(table(&["TOKEN", "SCOPE", "EXPIRES"], entries.iter().map(row)))
}

fn make(args: &TokenArgs) -> Result<(), Failure> {
    let given = args.name.as_deref().unwrap_or_default();
    let lifetime = args.days.map(|days| Duration::from_secs(u64::from(days) * SECONDS_PER_DAY));
    let (entry, token) = TokenEntry::make(given, args.scope, lifetime).map_err(failed)?;
    let until = entry.expiry().map(|time| format!(", until {time}")).unwrap_or_default();
    let (name, scope) = (&entry.name, entry.scope.word());
    match &args.file {
        Some(file) => {
            entry.add_to(file).map_err(failed)?;
            eprintln!("{name} ({scope}{until}) is in {}; this is the token:", file.display());
        }
        None => eprintln!(
            "add this to a configuration:\n\nhttp: {{token_hashes: {{{name}: {}}}}}\n\nthis is the token:",
            entry.rest()
        ),
    }
    print(&format!("{token}\n"))
}
