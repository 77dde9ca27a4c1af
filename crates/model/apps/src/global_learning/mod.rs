//! A learning switch whose switches share one table: it stores the switch and port of each host of
//! the network. (The global learning controller of McNettle, §4.2.)
//!
//! The book describes its use, and the network that it requires; this is its structure.
//! - The handler is that of [`crate::learning`] with another table: `hosts` implements its
//!   interface. So everything said there about flows holds here too.
//! - `place` is the table's value for a host. `switches` is the other shared state: the number of
//!   hosts of each port, and messages to switches whose flows have become wrong. `host_cache` is
//!   each switch's own cache of the table. `tables` is the interface of the table.
//! - `notes` stores what flows of an earlier run show about hosts that are not in the table.
//! - A host belongs to the switch that saw it first. A packet comes to the switch of its host
//!   before any other switch, and that switch records the host before it sends the packet on.
//! - A switch learns the port towards another switch from packets of that switch's hosts. So one
//!   packet from a switch shows the way to all its hosts, and flows to them need no flooding.

mod host_cache;
mod hosts;
mod notes;
mod place;
mod ports_to_switches;
mod switches;
mod tables;

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bellrock_api::{App, Dpid, EarlierFlows, Forwards, HostEntry, Network, SwitchInfo};
use bellrock_services::reserved::ReservedFrames;
use bellrock_tables::{Budget, MAX_AGE_TICKS, Seed, SharedTable};

pub use hosts::GlobalHosts;
pub use switches::{MAX_MESSAGES, MAX_SWITCHES, PORT_COUNTS};
pub use tables::GlobalTable;

use crate::learning::frame::HostKey;
use crate::learning::prepared::PreparedByVersion;
use crate::learning::{LearningSettings, LearningSwitch, learning_counters, seconds};
use crate::storm::StormGuard;
use notes::HostNotes;
use place::Attachment;
use switches::SharedSwitches;

/// The app. Its table is [`SharedTable`], without locks; other tables are for experiments on the
/// cost of sharing.
pub struct GlobalLearning<T: GlobalTable = SharedTable> {
    settings: LearningSettings,
    budget: Budget,
    seed: Option<u64>,
    prepared: PreparedByVersion,
    shared: OnceLock<Arc<GlobalState<T>>>,
}

/// State that all switches share.
struct GlobalState<T> {
    table: T,
    /// Seed of the table.
    seed: Seed,
    /// Budget of the switches' caches of the table.
    cache_budget: Budget,
    switches: SharedSwitches,
    notes: HostNotes,
    max_age_s: u32,
}

impl<T: GlobalTable> GlobalLearning<T> {
    /// Creates the app. [`LearningSettings::max_entries`] is for all switches together. The memory
    /// for so many hosts is taken out of `budget` when the first switch connects. If the budget is
    /// too small, the number is halved until it fits.
    #[must_use]
    pub fn new(settings: LearningSettings, budget: &Budget) -> Self {
        GlobalLearning {
            settings,
            budget: budget.clone(),
            seed: None,
            prepared: PreparedByVersion::default(),
            shared: OnceLock::new(),
        }
    }

    /// Makes the hash table the same in each run, for simulations. Never use it where strangers
    /// choose addresses. A network that has a [seed](Network::seed) does not need this call.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        GlobalLearning { seed: Some(seed), ..self }
    }

    /// Zero if the budget has too few bytes left, or switches keep no cache of this table.
    fn cache_budget(&self) -> Budget {
        let bytes = if T::IS_CACHED { host_cache::HOST_CACHE_BYTES } else { 0 };
        self.budget.part(bytes).unwrap_or(Budget::new(0))
    }

    fn shared_state(&self, seed: Option<u64>) -> Arc<GlobalState<T>> {
        let new = || {
            let seed = seed.map_or_else(Seed::random, Seed::from_number);
            let table = T::new(self.settings.max_entries, &self.budget, seed.clone());
            Arc::new(GlobalState {
                table,
                seed,
                cache_budget: self.cache_budget(),
                switches: SharedSwitches::new(self.settings.max_macs_per_port),
                notes: HostNotes::default(),
                max_age_s: match self.settings.max_age_s {
                    0 => MAX_AGE_TICKS,
                    age => age.min(MAX_AGE_TICKS),
                },
            })
        };
        Arc::clone(self.shared.get_or_init(new))
    }
}

/// With the default settings and unlimited memory.
impl<T: GlobalTable> Default for GlobalLearning<T> {
    fn default() -> Self {
        GlobalLearning::new(LearningSettings::default(), &Budget::unlimited())
    }
}

const NAME: &str = "global_learning";

crate::boxed::boxed!(GlobalLearning<SharedTable>);

impl<T: GlobalTable> App for GlobalLearning<T> {
    type Handler = LearningSwitch<GlobalHosts<T>>;

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

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> Self::Handler {
        let shared = self.shared_state(self.seed.or_else(|| network.seed()));
        LearningSwitch::new(
            self.settings,
            self.prepared.of(info.version, &self.settings, network),
            GlobalHosts::new(shared, info.dpid),
            ReservedFrames::new(network, info.dpid),
            StormGuard::new(network),
        )
    }

    fn hosts(&self, network: &Network, report: &mut dyn FnMut(Dpid, HostEntry) -> ControlFlow<()>) {
        // Without a shared state, no switch has connected yet.
        let Some(shared) = self.shared.get() else { return };
        let switches = shared.switches.all();
        shared.table.for_each(seconds(network.now()), &mut |key, value, age| {
            let (host, at) = (HostKey(key), Attachment(value));
            let switch = switches.get(at.switch().index());
            let Some((switch, dpid)) =
                switch.and_then(|corner| Some((corner, corner.connected_dpid()?)))
            else {
                return ControlFlow::Continue(());
            };
            if age > shared.max_age_s {
                return ControlFlow::Continue(());
            }
            let entry = HostEntry {
                mac: host.mac(),
                vlan: host.vlan(),
                port: at.place().port(),
                age: Duration::from_secs(age.into()),
                flapping: switch.is_flapping(host),
            };
            report(dpid, entry)
        });
    }
}
