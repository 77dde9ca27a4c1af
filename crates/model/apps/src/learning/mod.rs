//! A learning switch: learns hosts' ports from packets, and installs flows between known hosts.
//!
//! The book describes its use and its settings; this is its structure.
//! - `frame` reads the fields used for forwarding, `hosts` stores the port of each host, `matching`
//!   makes the match of a flow. `prepared` has templates for the flows of nearly all packets.
//!   `flaps` watches addresses that keep moving, `earlier_flows` reads flows that an earlier run
//!   has left. `switch` is the handler. It accepts any `hosts::HostTable`; the global learning
//!   switch is the same handler with another table.
//! - Flows exist only between hosts that the table knows. When a host is forgotten, moves or loses
//!   its port, its flows are removed. So no old flow hides a host's first packet at a new port, and
//!   no old flow leads to its old port.
//! - It is not a spanning tree: a network with loops needs one, or ports without flooding. It
//!   detects the storm that a loop causes, reports it, and slows it down (`storm.rs`).

mod counters;
pub(crate) mod earlier_flows;
mod flaps;
pub(crate) mod frame;
pub(crate) mod hosts;
mod matching;
pub(crate) mod prepared;
mod settings;
mod switch;

use bellrock_api::{App, EarlierFlows, Forwards, Network, SwitchInfo};
use bellrock_services::reserved::ReservedFrames;
use bellrock_tables::Budget;

use counters::LearningCounters;
use prepared::PreparedByVersion;
pub use settings::{LearningSettings, MatchKind};
pub use switch::LearningSwitch;
pub(crate) use switch::seconds;

use crate::storm::StormGuard;

/// The app: creates a [`LearningSwitch`] for each switch.
pub struct Learning {
    settings: LearningSettings,
    budget: Budget,
    seed: Option<u64>,
    prepared: PreparedByVersion,
}

impl Learning {
    /// Creates the app. All its tables together take their memory out of `budget`. A table that
    /// gets no more memory forgets old hosts for new ones. A table that gets none at all learns
    /// nothing and floods (`no_memory`).
    #[must_use]
    pub fn new(settings: LearningSettings, budget: &Budget) -> Self {
        let budget = budget.clone();
        Learning { settings, budget, seed: None, prepared: PreparedByVersion::default() }
    }

    /// Makes the hash tables the same in each run, for simulations. Never use it where strangers
    /// choose addresses. A network that has a [seed](Network::seed) does not need this call.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Learning { seed: Some(seed), ..self }
    }
}

/// With the default settings and unlimited memory.
impl Default for Learning {
    fn default() -> Self {
        Learning::new(LearningSettings::default(), &Budget::unlimited())
    }
}

const NAME: &str = "learning";

/// Name and meaning of each counter of a [`LearningSwitch`].
pub(crate) fn learning_counters() -> Vec<(&'static str, &'static str)> {
    [LearningCounters::ALL, &StormGuard::COUNTERS].concat()
}

crate::boxed::boxed!(Learning);

impl App for Learning {
    type Handler = LearningSwitch;

    fn name(&self) -> &'static str {
        NAME
    }

    fn forwards(&self) -> Forwards {
        Forwards::All
    }

    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Adopt
    }

    fn counter_meanings(&self) -> Vec<(&'static str, &'static str)> {
        learning_counters()
    }

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> LearningSwitch {
        let seed = self.seed.or_else(|| network.seed());
        LearningSwitch::new(
            self.settings,
            self.prepared.of(info.version, &self.settings, network),
            hosts::SwitchHosts::new(&self.settings, &self.budget, seed, info),
            ReservedFrames::new(network, info.dpid),
            StormGuard::new(network),
        )
    }
}
