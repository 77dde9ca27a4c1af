//! The command line of `bellrock demo`.

use std::ops::RangeInclusive;
use std::time::Duration;

use clap::Args;

use crate::cli::config::values;

/// What `--for` may be.
const FOR: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);

/// Show Bellrock at work: a controller and an emulated network, in this process alone
///
/// The controller runs the learning switch on a free port of the loopback; the switches of an
/// emulated network connect to it over TCP, and its hosts talk to each other. What happens is shown
/// live, or told in a line a second where standard output is no terminal. No root, no other software.
#[derive(Debug, Args)]
pub(in crate::cli) struct Demo {
    /// The network: a name such as tree:2,3, or a file; it must have no cycle
    #[arg(long, short, value_name = "NAME|FILE", default_value = "tree:2,3")]
    pub(super) topology: String,

    /// End after this time, with a summary; until Ctrl-C if it is not said
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(super) time: Option<Duration>,

    /// The only OpenFlow version that the switches speak; both if it is not said
    #[arg(long, value_name = "1.0|1.3", value_parser = ["1.0", "1.3"])]
    pub(super) version: Option<String>,

    /// Lines instead of the live display, on a terminal too
    #[arg(long)]
    pub(super) plain: bool,

    /// For what is random: who talks to whom
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(super) seed: u64,
}

fn time(text: &str) -> Result<Duration, String> {
    values::time(text, FOR).map_err(|expected| format!("give {expected}"))
}
