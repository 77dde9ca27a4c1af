//! `bellrock token`: makes a token for the HTTP server.

use std::path::PathBuf;

use bellrock::http::tokens::{Scope, TokenEntry};
use clap::Args;

use super::{Failure, print};

/// Make a token for the HTTP server
///
/// Adds a line with the name, the scope and a hash to the file of `http.tokens`, and prints the
/// token, which is kept nowhere. A running controller takes it within a second. To end a token,
/// remove its line.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct TokenArgs {
    /// Name of the token, which the log shows
    name: String,

    /// What it allows: read, or write (to ask, and to change something)
    #[arg(long, value_name = "SCOPE", default_value = "read")]
    scope: Scope,

    /// The file of the setting http.tokens; it is made if it does not exist
    #[arg(long, value_name = "FILE", env = "BELLROCK_HTTP_TOKENS", hide_env_values = true)]
    file: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  bellrock token grafana --file /etc/bellrock/tokens
  bellrock token deploy --scope write --file /etc/bellrock/tokens
  curl -H \"Authorization: Bearer $TOKEN\" -X DELETE http://127.0.0.1:8080/v1/reservations/1";

pub(super) fn run(args: &TokenArgs) -> Result<(), Failure> {
    let failed = |error: bellrock::http::tokens::TokenError| Failure::Failed(error.to_string());
    let (entry, token) = TokenEntry::make(&args.name, args.scope).map_err(failed)?;
    entry.add_to(&args.file).map_err(failed)?;
    eprintln!(
        "{} ({}) is in {}; this is the token:",
        entry.name,
        entry.scope.word(),
        args.file.display()
    );
    print(&format!("{token}\n"))
}
