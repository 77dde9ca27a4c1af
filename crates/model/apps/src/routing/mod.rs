//! Routing: packets take shortest paths between hosts. The paths are spread over all those of equal
//! length. The network may have cycles.
//!
//! The book describes its use and its settings; this is its structure.
//! - `switch` is the handler for packets at the controller. `neighbours` answers address requests.
//! - `reactive` is the task that installs flows between two hosts when they talk. `proactive`
//!   installs flows to each host when it is found. Only one of them runs, and only it changes
//!   flows, so each path is decided once. `earlier_run` handles flows of an earlier run.
//! - A packet for a known host is delivered by the host's own switch, so none is lost while flows
//!   are installed. A broadcast, or a packet for an unknown host, goes to the host ports of all
//!   switches. No flow and no switch floods, so no packet can circle.
//! - Services find hosts and paths; the app only reads them.

mod changes;
mod counters;
mod earlier_run;
mod flows;
mod index;
mod neighbours;
mod proactive;
mod queue;
mod reactive;
mod switch;

use std::sync::Arc;

use bellrock_api::{App, EarlierFlows, Forwards, Needs, Network, SwitchInfo};

use counters::RoutingCounters;
use queue::RoutingQueue;
pub use switch::RoutingSwitch;

/// Decides when flows are installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoutingMode {
    /// When two hosts talk: flows between these two, along one path. Idle flows are removed.
    #[default]
    Reactive,
    /// When a host is found: flows to it at every switch, which stay as long as the host.
    Proactive,
}

/// Settings of the app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingSettings {
    /// Decides when flows are installed.
    pub mode: RoutingMode,
    /// Seconds without a packet after which a flow is removed; 0 for never (reactive).
    pub idle_timeout_s: u16,
    /// Maximum number of packets of each switch that are flooded in a second. Further packets are
    /// dropped (`floods_over_limit`): each would go to all host ports in the network.
    pub floods_per_s: u32,
}

impl Default for RoutingSettings {
    fn default() -> Self {
        RoutingSettings { mode: RoutingMode::Reactive, idle_timeout_s: 60, floods_per_s: 500 }
    }
}

/// The app: creates a [`RoutingSwitch`] for each switch, and runs the task that installs flows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Routing {
    settings: RoutingSettings,
}

impl Routing {
    /// Creates the app with these settings.
    #[must_use]
    pub fn new(settings: RoutingSettings) -> Self {
        Routing { settings }
    }
}

crate::boxed::boxed!(Routing);

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

    /// Flows that carry traffic stay.
    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Keep
    }

    fn counter_meanings(&self) -> Vec<(&'static str, &'static str)> {
        let of_task = ("flow_mods", "Flows sent to this switch.");
        [&[of_task], RoutingCounters::ALL].concat()
    }

    fn start(&self, network: &Network) {
        let RoutingSettings { mode, idle_timeout_s, .. } = self.settings;
        match mode {
            RoutingMode::Reactive => {
                network.spawn("routes", reactive::run(network.clone(), idle_timeout_s))
            }
            RoutingMode::Proactive => network.spawn("trees", proactive::run(network.clone())),
        };
    }

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> RoutingSwitch {
        let inbox = network.extension::<RoutingQueue>();
        let flow_mods = Arc::default();
        inbox.switch_up(info.dpid, Arc::clone(&flow_mods));
        RoutingSwitch::new(self.settings, network.clone(), inbox, flow_mods)
    }
}
