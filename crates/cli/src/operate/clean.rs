//! The arguments of `bellrock clean`.

use bellrock_query::{CleanFlows, ListOrphans, SwitchRef};
use clap::Args;

use crate::Failure;
use crate::ask::{Ask, ask_all, ask_for};
use crate::show;

/// Remove flows of apps that do not run any more
///
/// Lists them first; with --yes it removes them. Only flows with the cookies of Bellrock's own
/// apps, or of the app that --app names, are removed, and none of other controllers.
#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// The switch: its datapath id in hexadecimal, or its name. Without it: all switches
    switch: Option<SwitchRef>,
    /// Only flows of the app with this name: one of your own, or one of `bellrock config`
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// Remove them. Without it they are only listed
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    ask: Ask,
}

/// Lists the flows, or removes them.
pub(crate) fn run(args: &CleanArgs) -> Result<(), Failure> {
    let CleanArgs { switch, app, yes, ask } = args;
    if !yes {
        list(ask, switch.as_ref(), app.as_deref())?;
        eprintln!("bellrock: nothing is removed yet; `bellrock clean --yes` removes these flows");
        return Ok(());
    }
    let order = CleanFlows { switch: switch.clone(), app: app.clone() };
    let answer = ask_for(ask, order, show::cleaned)?;
    match show::not_cleaned(&answer) {
        problems if problems.is_empty() => Ok(()),
        problems => Err(Failure::Failed(problems.join("\n"))),
    }
}

/// Lists flows of apps that do not run.
pub(crate) fn list(
    ask: &Ask,
    switch: Option<&SwitchRef>,
    app: Option<&str>,
) -> Result<(), Failure> {
    let (switch, app) = (switch.cloned(), app.map(str::to_owned));
    let query = |page| ListOrphans { switch: switch.clone(), app: app.clone(), page };
    ask_all(ask, query, show::orphans)
}
