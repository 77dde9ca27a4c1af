//! The arguments of `bellrock quarantine`.

use bellrock_apps::quarantine::Blocked;
use clap::{Args, Subcommand};

use super::host;
use crate::ask::Ask;

/// Block hosts at every switch, and let them back
///
/// Needs the app `quarantine` in the chain. Hosts added here are forgotten when the controller
/// ends; hosts in the file of the app are not.
#[derive(Debug, Args)]
pub(crate) struct QuarantineArgs {
    #[command(subcommand)]
    pub(crate) order: QuarantineOrder,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineOrder {
    /// Block a host or a prefix
    Add(BlockedHost),
    /// Let an added host or prefix back
    Remove(BlockedHost),
    /// List blocked hosts, and switches that could not block them
    List(Ask),
}

#[derive(Debug, Args)]
pub(crate) struct BlockedHost {
    /// An Ethernet address, an IPv4 or IPv6 address or prefix, or the name of a host
    #[arg(value_parser = host::<Blocked>)]
    pub(crate) host: String,
    #[command(flatten)]
    pub(crate) ask: Ask,
}
