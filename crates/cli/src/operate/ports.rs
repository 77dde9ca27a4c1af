//! The arguments of `bellrock ports`.

use bellrock_query::{ListPorts, Page, SwitchRef};
use clap::Args;

use crate::ask::Ask;

/// List the ports of a switch or of all switches, with state, rate and counters
///
/// The switches are asked for the counters, which count since the port was added. `-` stands for
/// what a switch does not report. --json has received and sent drops and errors apart.
#[derive(Debug, Args)]
pub(crate) struct Ports {
    /// The switch: its datapath id in hexadecimal, or its name. Without it: the ports of all
    /// switches
    switch: Option<SwitchRef>,
    #[command(flatten)]
    pub(crate) ask: Ask,
}

impl Ports {
    /// The request for a page of these ports.
    pub(crate) fn request(&self, page: Page) -> ListPorts {
        ListPorts { switch: self.switch.clone(), page }
    }
}
