//! The arguments of `bellrock relays`.

use bellrock_query::{self as query, PortRef, RelayVerdict};
use clap::{Args, Subcommand};

use crate::Failure;
use crate::ask::{Ask, ask, ask_all};
use crate::show;

/// List links that look like relays between hosts, and overrule that
///
/// Discovery reports `relay_suspected`. An order holds until the controller ends; the setting
/// discovery_trusted_ports holds always.
#[derive(Debug, Args)]
pub(crate) struct RelaysArgs {
    #[command(subcommand)]
    pub(crate) command: RelaysCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RelaysCommand {
    /// List the links that look like relays, and those that were judged
    List(Ask),
    /// Say that it is a link: it is up with its next announcement
    Trust(JudgeArgs),
    /// Say that it is a relay: it is no link, whatever it looks like
    Refuse(JudgeArgs),
    /// Leave it to discovery again
    Forget(JudgeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct JudgeArgs {
    /// One port: SWITCH:PORT, such as a1:4 or core-1:4
    from: PortRef,
    /// The other port
    to: PortRef,
    #[command(flatten)]
    ask: Ask,
}

/// Asks the controller, or gives it an order.
pub(crate) fn run(command: &RelaysCommand) -> Result<(), Failure> {
    let (args, verdict) = match command {
        RelaysCommand::List(asked) => {
            return ask_all(asked, |page| query::ListRelays { page }, show::relays);
        }
        RelaysCommand::Trust(args) => (args, RelayVerdict::Link),
        RelaysCommand::Refuse(args) => (args, RelayVerdict::Relay),
        RelaysCommand::Forget(args) => (args, RelayVerdict::None),
    };
    ask(&args.ask, args.order(verdict), |row| show::relays(std::slice::from_ref(row)))
}

impl JudgeArgs {
    fn order(&self, verdict: RelayVerdict) -> query::JudgeRelay {
        query::JudgeRelay { from: self.from.clone(), to: self.to.clone(), verdict }
    }
}
