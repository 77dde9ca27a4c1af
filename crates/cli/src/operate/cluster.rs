//! The arguments of `bellrock cluster`.

use bellrock_query::{self as query, SwitchRef};
use clap::{Args, Subcommand};

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
    /// Give a switch to another node; ask the node that is its master
    Move(MoveArgs),
    /// Give all switches of the node that is asked to others, before it is stopped
    Drain(DrainArgs),
}

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
    }
}
