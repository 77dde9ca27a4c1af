//! A learning switch: it learns behind which port each host is from the packets that come by, and
//! installs flows between hosts that it knows.
//!
//! What it is for and how it is set is told in the book; here is how it is made.
//! - `frame` reads what forwarding looks at, `hosts` keeps where each host is, `matching` makes
//!   the match of a flow, `prepared` has the flows of nearly all packets ready, `flaps` watches addresses that do not stay,
//!   `left` reads flows that an earlier run has left, `switch` puts them together: it is the handler. It takes any `hosts::HostTable`, so that the global learning switch is
//!   the same with another one.
//! - There are flows only between hosts that the table knows, and a host that is forgotten, moves or
//!   loses its port takes its flows with it. So a host's first packet at a new place is never
//!   hidden by an old flow, and no old flow leads to where it was.
//! - It is not a spanning tree: in a network with loops it needs one, or ports without flooding. It notices the storm
//!   that a loop makes, reports it, and slows it down (`storm.rs`).

mod counters;
mod flaps;
pub(crate) mod frame;
pub(crate) mod hosts;
pub(crate) mod left;
mod matching;
pub(crate) mod prepared;
mod settings;
mod switch;

use bellrock_api::{App, Forwards, LeftFlows, Network, SwitchInfo};
use bellrock_services::reserved::Fence;
use bellrock_tables::Budget;

use prepared::ByVersion;
pub use settings::{LearningSettings, MatchKind};
pub use switch::LearningSwitch;
pub(crate) use switch::seconds;

use crate::storm::StormGuard;

/// The app: makes a [`LearningSwitch`] for each switch.
pub struct Learning {
    settings: LearningSettings,
    budget: Budget,
    seed: Option<u64>,
    prepared: ByVersion,
}

impl Learning {
    /// Its tables take their memory out of `budget`, all of them together. A table that gets no
    /// more forgets old hosts for new ones; one that gets none at all learns nothing and floods
    /// (`no_memory`).
    #[must_use]
    pub fn new(settings: LearningSettings, budget: &Budget) -> Self {
        let budget = budget.clone();
        Learning { settings, budget, seed: None, prepared: ByVersion::default() }
    }

    /// The same with hash tables that are the same in each run, for simulations. Never where
    /// strangers choose addresses. A network that has a [seed](Network::seed) needs no call of this.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Learning { seed: Some(seed), ..self }
    }
}

/// With the default settings, and as much memory as its tables take.
impl Default for Learning {
    fn default() -> Self {
        Learning::new(LearningSettings::default(), &Budget::unlimited())
    }
}

const NAME: &str = "learning";

impl App for Learning {
    type Handler = LearningSwitch;

    fn name(&self) -> &'static str {
        NAME
    }

    fn forwards(&self) -> Forwards {
        Forwards::All
    }

    fn left_flows(&self) -> LeftFlows {
        LeftFlows::Adopt
    }

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> LearningSwitch {
        let seed = self.seed.or_else(|| network.seed());
        LearningSwitch::new(
            self.settings,
            self.prepared.of(info.version, &self.settings, network),
            hosts::Hosts::new(&self.settings, &self.budget, seed, info),
            Fence::new(network, info.dpid),
            StormGuard::new(network),
        )
    }
}
