//! The arguments of `bellrock cluster`.

use std::path::PathBuf;

use bellrock_query::{self as query, SwitchRef};
use clap::{Args, Subcommand};

use super::read_text;
use crate::Failure;
use crate::ask::{Ask, ask, ask_all};
use crate::show;

/// Show the cluster that the controller is a node of, or move its switches
///
/// Without a command: the nodes, and the connection to etcd, as the node sees it that is asked.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    command: Option<ClusterCommand>,
    /// List the switches and their masters instead
    #[arg(long)]
    switches: bool,
    #[command(flatten)]
    ask: Ask,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Give a switch to another node, where it stays; ask the node that is its master
    Move(MoveArgs),
    /// Give all switches of the node that is asked to others, before it is stopped
    Drain(DrainArgs),
    /// Spread all switches evenly again, also those that were moved; ask any node
    Balance(BalanceArgs),
    /// Show the configuration that the nodes share, or replace it
    Config(ConfigArgs),
}

/// Without a file it is printed, so that it can be changed and given back.
#[derive(Debug, Args)]
#[command(after_long_help = CONFIG_EXAMPLES)]
struct ConfigArgs {
    /// The new one: a file in the form of a configuration file, or - for standard input
    file: Option<PathBuf>,
    /// Share nothing any more: each node has its own file alone
    #[arg(long, conflicts_with = "file")]
    none: bool,
    /// Only list what would change at the node that is asked
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    ask: Ask,
}

const CONFIG_EXAMPLES: &str = "\
Examples:
  bellrock cluster config > network.yaml
  bellrock cluster config network.yaml --dry-run
  bellrock cluster config network.yaml";

#[derive(Debug, Args)]
struct MoveArgs {
    /// The switch: its datapath id in hexadecimal, or its name
    switch: SwitchRef,
    /// Name of the node that is to be its master
    node: String,
    #[command(flatten)]
    ask: Ask,
}

#[derive(Debug, Args)]
struct BalanceArgs {
    #[command(flatten)]
    ask: Ask,
}

#[derive(Debug, Args)]
struct DrainArgs {
    /// End it: the node takes switches again
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    ask: Ask,
}

/// Asks the controller, or gives it an order.
pub(crate) fn run(args: &ClusterArgs) -> Result<(), Failure> {
    match &args.command {
        None if args.switches => {
            let list = |page| query::ListClusterSwitches { page };
            ask_all(&args.ask, list, show::cluster_switches)
        }
        None => ask(&args.ask, query::GetCluster {}, show::cluster),
        Some(ClusterCommand::Move(MoveArgs { switch, node, ask: asked })) => {
            let order = query::MoveSwitch { switch: switch.clone(), node: node.clone() };
            ask(asked, order, |row| show::cluster_switches(std::slice::from_ref(row)))
        }
        Some(ClusterCommand::Drain(DrainArgs { undo, ask: asked })) => {
            ask(asked, query::DrainNode { draining: !undo }, show::cluster)
        }
        Some(ClusterCommand::Balance(BalanceArgs { ask: asked })) => {
            ask(asked, query::BalanceCluster {}, show::cluster)
        }
        Some(ClusterCommand::Config(args)) => config(args),
    }
}

fn config(args: &ConfigArgs) -> Result<(), Failure> {
    let text = match &args.file {
        None if args.none => String::new(),
        None if args.dry_run => {
            let why = "--dry-run needs a file, or --none: there is nothing that would change";
            return Err(Failure::Wrong(why.to_owned()));
        }
        None => return ask(&args.ask, query::GetSharedConfig {}, show::shared_config),
        Some(file) => {
            let (name, text) = read_text(file, "give a shorter text")?;
            // An empty file is rather the rest of a failure than the wish to share nothing.
            if text.trim().is_empty() {
                let why = format!("{name}: it is empty; --none shares nothing any more");
                return Err(Failure::Failed(why));
            }
            text
        }
    };
    let order = query::SetSharedConfig { text, generation: None, dry_run: args.dry_run };
    ask(&args.ask, order, show::reload)
}
