//! Named circuits between ports and hosts, as configured: installed from end to end, and kept.
//!
//! - `circuit` is their text form, and finds conflicts between them.
//! - `plan` gives each circuit its numbers, and keeps them while other circuits change.
//! - `route` chooses the path or tree of a circuit in the present network, and a detour at each
//!   link.
//! - `stored` is a circuit with its numbers and its route, as it is stored.
//! - `layout` computes the flows from that. On 1.3, a circuit of two endpoints gets a fast-failover
//!   group for each detour.
//! - `progress` decides when a circuit gets another route, and lays the stored one.
//! - `endpoint_hosts` stores the present or last places of circuits' hosts.
//! - `task` does so for all circuits whenever the network or the store changes.
//!
//! One controller of a cluster decides, the leader of the store
//! ([`EntryBook`](bellrock_book::EntryBook)); a controller that is alone leads itself.
//! Each hands what is stored to [desired state](bellrock_services::desired). That service installs
//! the difference in the switches that obey this controller, in an order without gaps, with each
//! flow confirmed, also after a restart.

mod circuit;
mod endpoint_hosts;
mod layout;
#[cfg(feature = "orders")]
mod orders;
mod plan;
mod progress;
mod route;
mod stored;
mod task;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellrock_api::{
    App, EarlierFlows, Forwards, Needs, Network, Publisher, SwitchInfo, SwitchPort,
};
use bellrock_book::{EntryStore, MemoryStore};
use bellrock_services::desired::DesiredFlows;
use bellrock_services::reserved::reserve;

pub use circuit::{Circuit, Conflict, Endpoint, MAX_ENDPOINTS, NoCircuit, conflicts};
pub(crate) use layout::FIRST_GROUP;
pub use layout::VLANS_PER_CIRCUIT;
use plan::CircuitVlans;
use progress::CircuitProgress;
pub use progress::SETTLE_WITHIN;
pub use route::MAX_LINKS;
use stored::{Allocations, StoredCircuit, StoredCircuits, stored_circuits};
pub use task::LINKS_WITHIN;

/// Time for which flows of removed circuits stay after a restart, if not all other circuits can be
/// laid before: those may share switches and ports with them.
pub const KEEP_EARLIER_FLOWS: Duration = Duration::from_secs(60);

/// Settings of the app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvisioningSettings {
    /// The circuits.
    pub circuits: Vec<Circuit>,
    /// VLANs of their frames between switches; no other traffic may use them.
    pub vlans: RangeInclusive<u16>,
    /// Number of VLANs of each circuit: one of [`VLANS_PER_CIRCUIT`]. With fewer, there can be more
    /// circuits, and more of their links have no detour.
    pub vlans_per_circuit: u16,
}

impl Default for ProvisioningSettings {
    fn default() -> Self {
        ProvisioningSettings {
            circuits: Vec::new(),
            vlans: 2000..=3999,
            vlans_per_circuit: VLANS_PER_CIRCUIT[0],
        }
    }
}

impl ProvisioningSettings {
    /// Checks that the circuits are compatible.
    ///
    /// # Errors
    /// The first [`Conflict`].
    pub fn check(&self) -> Result<(), Conflict> {
        if let Some((_, conflict)) = conflicts(&self.circuits).into_iter().next() {
            return Err(conflict);
        }
        if !VLANS_PER_CIRCUIT.contains(&self.vlans_per_circuit) {
            return Err(Conflict::VlansPerCircuit(self.vlans_per_circuit));
        }
        let (circuits, available) = (self.circuits.len(), self.vlans.len());
        let needed = circuits * usize::from(self.vlans_per_circuit);
        if needed > available {
            Err(Conflict::Vlans { circuits, needed, available })
        } else {
            Ok(())
        }
    }
}

/// A circuit and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitStatus {
    /// The circuit.
    pub circuit: Circuit,
    /// Its state.
    pub state: CircuitState,
    /// Output ports of the links that carry it: of the path from the first endpoint to the second,
    /// or of the tree between several.
    pub path: Vec<SwitchPort>,
    /// How the configuration of this controller differs from that of the leader of the cluster,
    /// which counts.
    pub difference: Option<String>,
}

/// State of a circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CircuitState {
    /// Its flows are confirmed.
    Up {
        /// Links without a detour, counted by direction. A circuit with none survives the loss of
        /// any single link before the controller notices it.
        bare_links: usize,
    },
    /// Its flows are being installed.
    Installing,
    /// It is not installed, or not as configured; earlier flows stay.
    Down(String),
}

/// The circuits: reads their states, and changes them while the controller runs. All clones are the
/// same.
#[derive(Clone)]
pub struct Circuits(Arc<CircuitTable>);

struct CircuitTable {
    vlans: CircuitVlans,
    /// The circuits of the settings.
    configured: Publisher<Vec<Circuit>>,
    book: Allocations,
    /// Whether the app has started.
    is_started: AtomicBool,
    /// Whether the settings have more circuits, which are not known yet.
    is_held: AtomicBool,
    /// State of each number; empty before the first attempt.
    progress: Mutex<Vec<CircuitProgress>>,
    /// Why the store did not take the last decisions.
    trouble: Mutex<Option<String>>,
}

/// No circuit.
impl Default for Circuits {
    fn default() -> Self {
        let book = Allocations::alone(Arc::new(MemoryStore::default()));
        Circuits::of(ProvisioningSettings::default(), book)
    }
}

impl Circuits {
    /// Creates these circuits. Their numbers and routes end with the controller.
    ///
    /// # Errors
    /// [`Conflict`].
    pub fn new(settings: ProvisioningSettings) -> Result<Self, Conflict> {
        Circuits::stored(settings, Arc::new(MemoryStore::default()))
    }

    /// The same, with a store of this controller alone: after a restart, circuits have the same
    /// routes and tags, so no flow changes. No circuit is laid anew while the store has entries
    /// that this release cannot read.
    ///
    /// # Errors
    /// [`Conflict`].
    pub fn stored(
        settings: ProvisioningSettings,
        store: Arc<dyn EntryStore>,
    ) -> Result<Self, Conflict> {
        settings.check()?;
        Ok(Circuits::of(settings, Allocations::alone(store)))
    }

    /// The same, with a store that several controllers share. `node`: the name of this one. The
    /// settings of the leader count. If it is another one, what differs in the settings here is
    /// reported.
    ///
    /// # Errors
    /// [`Conflict`].
    pub fn shared(
        settings: ProvisioningSettings,
        store: Arc<dyn EntryStore>,
        node: String,
    ) -> Result<Self, Conflict> {
        settings.check()?;
        Ok(Circuits::of(settings, Allocations::shared(store, node)))
    }

    fn of(settings: ProvisioningSettings, book: Allocations) -> Self {
        let ProvisioningSettings { circuits, vlans: all, vlans_per_circuit: per_circuit } =
            settings;
        Circuits(Arc::new(CircuitTable {
            vlans: CircuitVlans { all, per_circuit },
            configured: Publisher::new(circuits),
            book,
            is_started: AtomicBool::default(),
            is_held: AtomicBool::default(),
            progress: Mutex::default(),
            trouble: Mutex::default(),
        }))
    }

    /// Replaces all circuits. A circuit that stays is not touched, and one with other endpoints
    /// moves as after a failed link. One that gets a third end, or loses it, is removed and
    /// installed again. The VLANs stay.
    ///
    /// # Errors
    /// [`Conflict`]. Then nothing has changed.
    pub fn change(&self, circuits: Vec<Circuit>) -> Result<(), Conflict> {
        let CircuitVlans { all, per_circuit } = self.0.vlans.clone();
        let settings =
            ProvisioningSettings { circuits, vlans: all, vlans_per_circuit: per_circuit };
        settings.check()?;
        self.0.configured.publish(settings.circuits);
        Ok(())
    }

    /// Decides nothing about circuits until [`release`](Self::release), as not all settings are
    /// known yet: a leader removes what its settings do not have.
    pub fn hold(&self) {
        self.0.is_held.store(true, Ordering::Relaxed);
    }

    /// Ends [`hold`](Self::hold). All settings are known.
    pub fn release(&self) {
        if self.0.is_held.swap(false, Ordering::Relaxed) {
            let configured = self.0.configured.watch().load().to_vec();
            // So that the task looks again.
            self.0.configured.publish(configured);
        }
    }

    /// Lists all circuits, in the order of the settings. If another controller leads, its circuits
    /// are listed, and how the settings of this one differ.
    #[must_use]
    pub fn list(&self) -> Vec<CircuitStatus> {
        let (stored, progress) = (stored_circuits(&self.0.book), self.progress());
        let configured = self.0.configured.watch().load();
        let numbers = numbers_by_name(&stored);
        let mut differences = self.differences(&configured, &stored);
        let status = |circuit: Circuit| {
            let known = numbers.get(&*circuit.name);
            let known =
                known.and_then(|number| Some((stored.get(number)?, progress.get(*number)?)));
            let state = match known {
                Some((stored, progress)) => progress.state(stored),
                None => CircuitState::Down(self.waits_for()),
            };
            let path = known.map_or_else(Vec::new, |(_, progress)| progress.path().to_vec());
            let difference = differences.remove(&circuit.name);
            CircuitStatus { circuit, state, path, difference }
        };
        self.circuits(&configured, &stored).into_iter().map(status).collect()
    }

    /// Whether the circuits of the cluster are known. Always, if this controller is alone.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.0.book.is_read()
    }

    /// Why a circuit is not stored yet.
    fn waits_for(&self) -> String {
        let trouble = self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(why) = trouble.filter(|_| !self.follows()) {
            return why;
        }
        match self.0.book.leader() {
            _ if self.is_held() => {
                "the configuration that the nodes share is not known yet".to_owned()
            }
            _ if !self.0.book.is_read() => {
                "the circuits of the cluster are not known yet".to_owned()
            }
            Some(leader) if self.follows() => {
                format!("node {leader} leads, and has not decided about it")
            }
            None if self.follows() => "no node of the cluster leads yet".to_owned(),
            _ => "links are still being discovered".to_owned(),
        }
    }

    fn set_trouble(&self, why: Option<String>) {
        *self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    fn is_held(&self) -> bool {
        self.0.is_held.load(Ordering::Relaxed)
    }

    /// Whether another controller decides.
    fn follows(&self) -> bool {
        !self.0.book.is_leader()
    }

    /// The circuits that count: those of the settings, or of the leader.
    fn circuits(&self, configured: &[Circuit], stored: &StoredCircuits) -> Vec<Circuit> {
        if !self.follows() && !self.is_held() {
            return configured.to_vec();
        }
        let mut by_name: BTreeMap<&str, &Circuit> =
            stored.values().map(|stored| (&*stored.circuit.name, &stored.circuit)).collect();
        let here = configured.iter().map(|own| by_name.remove(&*own.name).unwrap_or(own));
        let mut circuits: Vec<Circuit> = here.cloned().collect();
        circuits.extend(by_name.into_values().cloned());
        circuits
    }

    /// How the settings of this controller differ from those of the leader, if another one leads:
    /// by name of the circuit.
    fn differences(
        &self,
        configured: &[Circuit],
        stored: &StoredCircuits,
    ) -> BTreeMap<String, String> {
        let mut differences = BTreeMap::new();
        // A leader stores all of its circuits at once.
        let is_other = |leader: &String| leader != self.0.book.node() && self.follows();
        let Some(leader) = self.0.book.leader().filter(is_other).filter(|_| !stored.is_empty())
        else {
            return differences;
        };
        let mut theirs: BTreeMap<&str, &StoredCircuit> =
            stored.values().map(|stored| (&*stored.circuit.name, &**stored)).collect();
        let ranges = self.0.vlans.by_number();
        for own in configured {
            let how = match theirs.remove(&*own.name) {
                Some(StoredCircuit { circuit, vlans, .. }) if circuit == own => {
                    if ranges.contains(vlans) {
                        continue;
                    }
                    let (first, last) = (vlans.start, vlans.end.saturating_sub(1));
                    format!(
                        "node {leader} leads and has the VLANs {first}-{last} for it; `vlans` and \
                         `vlans_per_circuit` are others here"
                    )
                }
                Some(_) => {
                    let ends: Vec<_> = own.endpoints.iter().map(ToString::to_string).collect();
                    let ends = ends.join(" ");
                    format!(
                        "node {leader} leads and has other endpoints for it; here it has {ends}"
                    )
                }
                None => format!("node {leader} leads and does not have it"),
            };
            differences.insert(own.name.clone(), how);
        }
        for name in theirs.into_keys() {
            let how = format!("node {leader} leads and has it; here it is not configured");
            differences.insert(name.to_owned(), how);
        }
        differences
    }

    fn progress(&self) -> MutexGuard<'_, Vec<CircuitProgress>> {
        // After a panic between two changes, the circuit is laid again when the network changes.
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The numbers of stored circuits.
fn numbers_by_name(stored: &StoredCircuits) -> BTreeMap<&str, usize> {
    stored.iter().map(|(number, stored)| (&*stored.circuit.name, *number)).collect()
}

/// The ports that belong to circuits.
fn reserved_by(circuits: &[Circuit]) -> BTreeSet<(SwitchPort, Option<u16>)> {
    let endpoints = circuits.iter().flat_map(|circuit| &circuit.endpoints);
    let port = |endpoint: &Endpoint| match endpoint {
        Endpoint::Port(at, vlan) => Some((*at, *vlan)),
        Endpoint::Host(_) => None,
    };
    endpoints.filter_map(port).collect()
}

/// The app.
#[derive(Clone, Default)]
pub struct Provisioning(Circuits);

impl Provisioning {
    /// Creates an app that keeps these circuits.
    #[must_use]
    pub fn new(circuits: &Circuits) -> Self {
        Provisioning(circuits.clone())
    }
}

crate::boxed::boxed!(Provisioning);

impl App for Provisioning {
    type Handler = ();

    fn name(&self) -> &'static str {
        "provisioning"
    }

    fn forwards(&self) -> Forwards {
        Forwards::Selected
    }

    fn wants_packet_ins(&self) -> bool {
        false
    }

    fn needs(&self) -> Needs {
        Needs::TOPOLOGY | Needs::HOSTS | Needs::PATHS
    }

    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Keep
    }

    fn start(&self, network: &Network) {
        let Provisioning(circuits) = self;
        let stored = stored_circuits(&circuits.0.book);
        let all = circuits.circuits(&circuits.0.configured.watch().load(), &stored);
        reserve(network, reserved_by(&all));
        if !circuits.0.is_started.swap(true, Ordering::Relaxed) {
            network.spawn("stored circuits", circuits.0.book.clone().run(network.clone()));
            let task = circuits.clone().run(network.clone(), network.desired());
            network.spawn("lay circuits", task);
        }
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}
