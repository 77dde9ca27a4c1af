//! `bellrock token`: makes a token for the HTTP server.

use std::path::PathBuf;
use std::time::Duration;

use bellrock::http::tokens::{Scope, TokenEntry};
use clap::Args;

use super::{Failure, print};

/// Make a token for the HTTP server
///
/// Adds a line with the name, the scope and a hash to the file of `http.tokens`, and prints the
/// token, which is kept nowhere. A running controller takes it within a second. To end a token,
/// remove its line. Without a file: also prints what to add to `http.token_hashes`, such as in the
/// configuration that the nodes of a cluster share.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct TokenArgs {
    /// Name of the token, which the log shows
    name: String,

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

const EXAMPLES: &str = "\
Examples:
  bellrock token grafana --file /etc/bellrock/tokens
  bellrock token deploy --scope write --days 90 --file /etc/bellrock/tokens
  bellrock token grafana
  curl -H \"Authorization: Bearer $TOKEN\" -X DELETE http://127.0.0.1:8080/v1/reservations/1";

/// Maximum number of days until a token expires: ten years.
const MAX_DAYS: i64 = 3650;

const SECONDS_PER_DAY: u64 = 86_400;

pub(super) fn run(args: &TokenArgs) -> Result<(), Failure> {
    let failed = |error: bellrock::http::tokens::TokenError| Failure::Failed(error.to_string());
    let lifetime = args.days.map(|days| Duration::from_secs(u64::from(days) * SECONDS_PER_DAY));
    let (entry, token) = TokenEntry::make(&args.name, args.scope, lifetime).map_err(failed)?;
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
