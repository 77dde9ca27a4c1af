//! The arguments of `bellrock identities`.

use bellrock_query::{self as query, SwitchRef};
use clap::{Args, Subcommand};

use crate::ask::Ask;

/// List which certificate speaks for which datapath id, or free one
///
/// Of switches that connect by TLS. A datapath id that has a certificate is refused to all others.
#[derive(Debug, Args)]
pub(crate) struct IdentitiesArgs {
    #[command(subcommand)]
    pub(crate) command: IdentitiesCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum IdentitiesCommand {
    /// List the datapath ids that have a certificate
    List(Ask),
    /// Free a datapath id: the next certificate that connects with it has it
    ///
    /// For a switch with a new key, or one that is plain from now on.
    Forget(ForgetArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ForgetArgs {
    /// The switch: its datapath id in hexadecimal, or its name
    switch: SwitchRef,
    #[command(flatten)]
    pub(crate) ask: Ask,
}

impl ForgetArgs {
    pub(crate) fn order(&self) -> query::ForgetIdentity {
        query::ForgetIdentity { switch: self.switch.clone() }
    }
}
