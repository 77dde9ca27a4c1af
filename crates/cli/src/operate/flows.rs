//! The arguments of `bellrock flows`.

use bellrock_query::{DEFAULT_PAGE_ROWS, ListFlows, MAX_PAGE_ROWS, Page, QueryError, SwitchRef};
use clap::Args;

use super::clean;
use crate::Failure;
use crate::ask::Ask;

/// List the flows of a switch and their apps, or count the flows of all switches
///
/// Flows whose cookie belongs to no app of this controller are foreign, and so are flows that no
/// app can have installed. `bellrock apps` lists the priorities and cookies of each app.
#[derive(Debug, Args)]
pub(crate) struct FlowsArgs {
    /// The switch: its datapath id in hexadecimal, or its name. Without it: counts for all switches
    switch: Option<SwitchRef>,
    /// Only flows of this app, of `controller`, or `foreign` ones
    #[arg(long, value_name = "NAME", requires = "switch")]
    app: Option<String>,
    /// Only flows of apps that do not run any more; `bellrock clean` removes them
    #[arg(long, conflicts_with_all = ["app", "limit", "skip"])]
    pub(crate) orphans: bool,
    /// Maximum number of flows to list
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_PAGE_ROWS, value_parser = number, requires = "switch")]
    limit: usize,
    /// Number of flows to skip: those of earlier pages
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "switch")]
    skip: usize,
    #[command(flatten)]
    pub(crate) ask: Ask,
}

impl FlowsArgs {
    /// Lists flows of apps that do not run.
    pub(crate) fn list_orphans(&self) -> Result<(), Failure> {
        clean::list(&self.ask, self.switch.as_ref(), None)
    }

    /// The flows of one switch to ask for. `None`: the numbers of flows of all switches.
    pub(crate) fn of_switch(&self) -> Result<Option<ListFlows>, QueryError> {
        let Some(switch) = &self.switch else { return Ok(None) };
        let page = Page::new(self.skip, self.limit)?;
        Ok(Some(ListFlows { switch: switch.clone(), app: self.app.clone(), page }))
    }
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX_PAGE_ROWS).contains(number));
    number.ok_or_else(|| format!("give a whole number from 1 to {MAX_PAGE_ROWS}"))
}
