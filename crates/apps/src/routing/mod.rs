//! Routing: packets take shortest paths between hosts, spread over those of the same length, whatever
//! cycles the network has.
//!
//! What it is for and how it is set is told in the book; here is how it is made.
//! - `switch` is the handler: what becomes of a packet that comes to the controller. `neighbours` answers
//!   questions for addresses.
//! - `reactive` is the task that installs flows between two hosts when they talk, and `proactive` the one
//!   that installs flows to each host when it is found. Whichever runs is the only one that
//!   changes flows, so that no two parts of the app disagree about a path. `left` is about those of an
//!   earlier run.
//! - A packet for a host that is known is given to the host's own switch, by whatever path the
//!   flows go; so none is lost while flows are installed. A packet for everybody, or for a host that is not
//!   known, is given to all switches that have ports of hosts, for these ports alone. No flow and no switch
//!   floods, so that there is nothing that could run in circles.
//! - Where hosts are, and which paths there are, services find out; the app only reads it.

mod changes;
mod counters;
mod flows;
mod index;
mod left;
mod neighbours;
mod news;
mod proactive;
mod reactive;
mod switch;

use std::sync::Arc;

use bellrock_api::{App, Forwards, LeftFlows, Needs, Network, SwitchInfo};

use news::Inbox;
pub use switch::RoutingSwitch;

/// When flows are installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoutingMode {
    /// When two hosts talk: flows between these two, along one path, which go when they are silent.
    #[default]
    Reactive,
    /// When a host is found: flows to it at every switch, which stay as long as the host does.
    Proactive,
}

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingSettings {
    /// When flows are installed.
    pub mode: RoutingMode,
    /// Seconds without a packet after which a switch removes a flow between two hosts; 0 for never
    /// (reactive).
    pub idle_timeout_s: u16,
    /// Packets of each switch that are flooded in a second, at most. Further ones are dropped
    /// (`floods_over_limit`): each goes to all ports of hosts in the network.
    pub floods_per_s: u32,
}

impl Default for RoutingSettings {
    fn default() -> Self {
        RoutingSettings { mode: RoutingMode::Reactive, idle_timeout_s: 60, floods_per_s: 500 }
    }
}

/// The app: makes a [`RoutingSwitch`] for each switch, and runs the task that installs flows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Routing {
    settings: RoutingSettings,
}

impl Routing {
    /// The app with these settings.
    #[must_use]
    pub fn new(settings: RoutingSettings) -> Self {
        Routing { settings }
    }
}

impl App for Routing {
    type Handler = RoutingSwitch;

    fn name(&self) -> &'static str {
        "routing"
    }

    fn forwards(&self) -> Forwards {
        Forwards::All
    }

    fn needs(&self) -> Needs {
        Needs::TOPOLOGY | Needs::HOSTS | Needs::PATHS
    }

    /// What carries traffic goes on carrying it.
    fn left_flows(&self) -> LeftFlows {
        LeftFlows::Keep
    }

    fn start(&self, network: &Network) {
        let RoutingSettings { mode, idle_timeout_s, .. } = self.settings;
        match mode {
            RoutingMode::Reactive => {
                network.spawn("routes", reactive::keep(network.clone(), idle_timeout_s))
            }
            RoutingMode::Proactive => network.spawn("trees", proactive::keep(network.clone())),
        };
        news::tell_of_changes(network);
    }

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> RoutingSwitch {
        let inbox = network.extension::<Inbox>();
        let flow_mods = Arc::default();
        inbox.switch_up(info.dpid, Arc::clone(&flow_mods));
        RoutingSwitch::new(self.settings, network.clone(), inbox, flow_mods)
    }
}
