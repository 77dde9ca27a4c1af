//! Named circuits between ports and hosts, as configured: installed from end to end, and kept.
//!
//! - `circuit` is their text form, and finds conflicts between them.
//! - `layout` computes the flows of a circuit in the present network. On 1.3, a circuit of two
//!   endpoints also gets a fast-failover group with a detour at each link.
//! - `laid` moves a circuit from one layout to the next.
//! - `places` stores the present or last places of circuits' hosts.
//! - A task in this module computes all layouts whenever the network changes, and commits them to
//!   [desired state](bellrock_services::desired). That service installs the difference, in an order
//!   without gaps, with each flow confirmed, also after a restart.

mod circuit;
mod endpoint_hosts;
mod layout;
mod progress;

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellrock_api::{App, EarlierFlows, Forwards, Needs, Network, SwitchInfo};
use bellrock_services::desired::{Desired, DesiredFlows, DesiredState};
use bellrock_services::paths::paths;
use bellrock_services::reserved::reserve;
use bellrock_services::wait::until;
use futures_lite::FutureExt;

pub use circuit::{Circuit, Conflict, Endpoint, MAX_ENDPOINTS, NoCircuit, conflicts};
use endpoint_hosts::EndpointHosts;
use layout::NetworkView;
pub use layout::{MAX_LINKS, VLANS_PER_CIRCUIT};
use progress::CircuitProgress;
pub use progress::SETTLE_WITHIN;

/// Time for which flows of removed circuits stay after a restart, if not all other circuits can be
/// laid before: those may share switches and ports with them.
pub const KEEP_LEFT_FLOWS: Duration = Duration::from_secs(60);

/// Settings of the app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvisioningSettings {
    /// The circuits.
    pub circuits: Vec<Circuit>,
    /// VLANs of their frames between switches; no other traffic may use them.
    pub vlans: RangeInclusive<u16>,
}

impl Default for ProvisioningSettings {
    fn default() -> Self {
        ProvisioningSettings { circuits: Vec::new(), vlans: 2000..=3999 }
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
        let (circuits, have) = (self.circuits.len(), self.vlans.len());
        let needed = circuits * usize::from(VLANS_PER_CIRCUIT);
        if needed > have { Err(Conflict::Vlans { circuits, needed, have }) } else { Ok(()) }
    }
}

/// A circuit and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitStatus {
    /// The circuit.
    pub circuit: Circuit,
    /// Its state.
    pub state: CircuitState,
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

/// The circuits, for reading. All clones are the same.
#[derive(Clone, Default)]
pub struct Circuits(Arc<CircuitTable>);

#[derive(Default)]
struct CircuitTable {
    settings: ProvisioningSettings,
    /// Whether the app has started.
    is_kept: AtomicBool,
    /// State of each circuit, in the order of the settings; empty before the first attempt.
    laid: Mutex<Vec<CircuitProgress>>,
}

/// The intent of a circuit: its position in the settings and a hash of its text. So flows of an
/// earlier run are recognised as those of the same circuit, with the same VLANs. 0 is not used.
fn intent(index: usize, circuit: &Circuit, first_vlan: u16) -> u32 {
    const TEXT_BITS: u32 = 20;
    // FNV-1a: flows in switches contain it, so it must be the same in each run.
    let text = format!("{circuit} {first_vlan}");
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let text = (hash ^ (hash >> 32)) as u32 & ((1 << TEXT_BITS) - 1);
    (index as u32 + 1) << TEXT_BITS | text
}

impl Circuits {
    /// Creates these circuits.
    ///
    /// # Errors
    /// [`Conflict`].
    pub fn new(settings: ProvisioningSettings) -> Result<Self, Conflict> {
        settings.check()?;
        Ok(Circuits(Arc::new(CircuitTable { settings, ..CircuitTable::default() })))
    }

    /// Lists all circuits, in the order of the settings.
    #[must_use]
    pub fn list(&self) -> Vec<CircuitStatus> {
        let laid = self.laid();
        let state_of = |index: usize| {
            let discovering = || CircuitState::Down("links are still being discovered".to_owned());
            laid.get(index).map_or_else(discovering, CircuitProgress::state)
        };
        let circuits = self.0.settings.circuits.iter().enumerate();
        circuits
            .map(|(index, circuit)| CircuitStatus {
                circuit: circuit.clone(),
                state: state_of(index),
            })
            .collect()
    }

    /// Lays all circuits whenever the network changes.
    async fn keep(self, network: Network, desired: Desired) {
        let (paths, hosts, state) = (paths(&network), network.hosts(), desired.state());
        let mut places = EndpointHosts::of(&self.0.settings.circuits);
        let looked_for = places.clone();
        let found = desired.look_for(move |matching| looked_for.is_looked_for(matching));
        let (mut is_complete, mut settled_at) = (false, None);
        loop {
            let (known_paths, known_hosts, known_state) =
                (paths.load(), hosts.load(), state.load());
            let known_found = found.load();
            places.follow(&known_hosts);
            places.recall(&known_found, &network);
            let mut again = None;
            if known_paths.is_settled() {
                let view = NetworkView {
                    topology: &network.topology().load(),
                    hosts: &known_hosts,
                    places: &places,
                    switches: &network.switches(),
                    paths: &known_paths,
                };
                again = self.lay_all(&view, &desired, &known_state, network.now());
                let since = *settled_at.get_or_insert_with(|| network.now());
                let kept_until = since + KEEP_LEFT_FLOWS;
                if !is_complete && (self.is_all_laid() || network.now() >= kept_until) {
                    desired.complete_except(self.not_laid());
                    is_complete = true;
                }
                if !is_complete {
                    again = Some(again.map_or(kept_until, |again| again.min(kept_until)));
                }
            }
            let time = until(&network, again);
            let hosts_change =
                hosts.newer(known_hosts.version()).or(found.newer(known_found.version()));
            let changes = paths.newer(known_paths.version()).or(hosts_change).or(time);
            let waits = self.laid().iter().any(CircuitProgress::waits);
            if waits {
                changes.or(state.newer(known_state.version())).await;
            } else {
                changes.await;
            }
        }
    }

    /// Lays all circuits that have changed. Returns when to do so again if nothing changes before.
    fn lay_all(
        &self,
        view: &NetworkView<'_>,
        desired: &Desired,
        state: &DesiredState,
        now: Duration,
    ) -> Option<Duration> {
        let mut laid = self.laid();
        laid.resize_with(self.0.settings.circuits.len(), CircuitProgress::default);
        for (laid, (index, circuit, first_vlan)) in laid.iter_mut().zip(self.circuits()) {
            if let Some(layout) = laid.lay(circuit, (index as u32, first_vlan), view, state, now) {
                let intent = intent(index, circuit, first_vlan);
                let commit = desired.commit_tree(intent, layout.entries.iter().cloned());
                laid.committed(layout, commit, now);
            }
        }
        laid.iter().filter_map(CircuitProgress::waits_until).min()
    }

    /// The circuits with their positions in the settings and their first VLANs.
    fn circuits(&self) -> impl Iterator<Item = (usize, &Circuit, u16)> {
        let ProvisioningSettings { circuits, vlans } = &self.0.settings;
        let vlans = vlans.clone().step_by(usize::from(VLANS_PER_CIRCUIT));
        let circuits = circuits.iter().enumerate().zip(vlans);
        circuits.map(|((index, circuit), first_vlan)| (index, circuit, first_vlan))
    }

    /// The intents of circuits that have not been laid since the controller started.
    fn not_laid(&self) -> Vec<u32> {
        let laid = self.laid();
        let unlaid = laid.iter().zip(self.circuits()).filter(|(laid, _)| !laid.was_laid());
        unlaid.map(|(_, (index, circuit, vlan))| intent(index, circuit, vlan)).collect()
    }

    fn is_all_laid(&self) -> bool {
        self.laid().iter().all(CircuitProgress::is_laid)
    }

    fn laid(&self) -> MutexGuard<'_, Vec<CircuitProgress>> {
        // After a panic between two changes, the circuit is laid again when the network changes.
        self.0.laid.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        let endpoints = circuits.0.settings.circuits.iter().flat_map(|circuit| &circuit.endpoints);
        let port = |endpoint: &Endpoint| match endpoint {
            Endpoint::Port(at, vlan) => Some((*at, *vlan)),
            Endpoint::Host(_) => None,
        };
        reserve(network, endpoints.filter_map(port));
        if !circuits.0.is_kept.swap(true, Ordering::Relaxed) {
            let keeping = circuits.clone().keep(network.clone(), network.desired());
            network.spawn("lay circuits", keeping);
        }
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}
