//! Named circuits between ports and hosts, as configured: installed from end to end, and kept.
//!
//! - `circuit` is their text form, and finds conflicts between them.
//! - `layout` computes the flows of a circuit in the present network. On 1.3, a circuit of two
//!   endpoints also gets a fast-failover group with a detour at each link.
//! - `plan` gives each circuit its numbers, and keeps them while other circuits change.
//! - `progress` moves a circuit from one layout to the next.
//! - `endpoint_hosts` stores the present or last places of circuits' hosts.
//! - A task in this module computes all layouts whenever the network changes, and commits them to
//!   [desired state](bellrock_services::desired). That service installs the difference, in an order
//!   without gaps, with each flow confirmed, also after a restart.

mod circuit;
mod endpoint_hosts;
mod layout;
mod plan;
mod progress;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellrock_api::{
    App, EarlierFlows, Forwards, Latencies, Needs, Network, Publisher, SwitchInfo, SwitchPort,
};
use bellrock_services::desired::{Desired, DesiredFlows, DesiredState};
use bellrock_services::paths::paths;
use bellrock_services::reserved::{release, reserve};
use bellrock_services::wait::wait_until;
use futures_lite::FutureExt;

pub use circuit::{Circuit, Conflict, Endpoint, MAX_ENDPOINTS, NoCircuit, conflicts};
use endpoint_hosts::EndpointHosts;
pub(crate) use layout::FIRST_GROUP;
use layout::NetworkView;
pub use layout::{MAX_LINKS, VLANS_PER_CIRCUIT};
use plan::{CircuitPlan, CircuitVlans, PlannedCircuit};
use progress::CircuitProgress;
pub use progress::SETTLE_WITHIN;

/// Time for which flows of removed circuits stay after a restart, if not all other circuits can be
/// laid before: those may share switches and ports with them.
pub const KEEP_EARLIER_FLOWS: Duration = Duration::from_secs(60);

/// Time after the start in which no event reports that a circuit is down. Many are, until their
/// hosts are seen.
const FIRST_DOWN_AFTER: Duration = Duration::from_secs(5);

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
    /// Output ports of the links that carry it: of the path from the first endpoint to the second, or
    /// of the tree between several.
    pub path: Vec<SwitchPort>,
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
    plan: Publisher<CircuitPlan>,
    /// Whether the app has started.
    is_started: AtomicBool,
    /// State of each number of the plan; empty before the first attempt.
    progress: Mutex<Vec<CircuitProgress>>,
}

/// No circuit.
impl Default for Circuits {
    fn default() -> Self {
        Circuits::planned(ProvisioningSettings::default())
    }
}

impl Circuits {
    /// Creates these circuits.
    ///
    /// # Errors
    /// [`Conflict`].
    pub fn new(settings: ProvisioningSettings) -> Result<Self, Conflict> {
        settings.check()?;
        Ok(Circuits::planned(settings))
    }

    fn planned(settings: ProvisioningSettings) -> Self {
        let ProvisioningSettings { circuits, vlans: all, vlans_per_circuit: per_circuit } =
            settings;
        let vlans = CircuitVlans { all, per_circuit };
        let plan = Publisher::new(CircuitPlan::new(&circuits, &vlans));
        Circuits(Arc::new(CircuitTable {
            vlans,
            plan,
            is_started: AtomicBool::default(),
            progress: Mutex::default(),
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
        self.0.plan.update(|plan| plan.changed(&settings.circuits, &self.0.vlans));
        Ok(())
    }

    /// Lists all circuits: at first in the order of the settings, with new ones at the end.
    #[must_use]
    pub fn list(&self) -> Vec<CircuitStatus> {
        let progress = self.progress();
        let state_of = |index: usize| {
            let discovering = || CircuitState::Down("links are still being discovered".to_owned());
            progress.get(index).map_or_else(discovering, CircuitProgress::state)
        };
        let status = |(index, planned): (usize, &PlannedCircuit)| CircuitStatus {
            circuit: planned.circuit.clone(),
            state: state_of(index),
            path: progress.get(index).map_or_else(Vec::new, |circuit| circuit.path().to_vec()),
        };
        self.0.plan.watch().load().circuits().map(status).collect()
    }

    /// Lays all circuits whenever the network or the circuits change.
    async fn run(self, network: Network, desired: Desired) {
        let (paths, hosts, state) = (paths(&network), network.hosts(), desired.state());
        let plans = self.0.plan.watch();
        let mut plan = plans.load();
        let mut places = EndpointHosts::default();
        places.retain(&plan);
        let endpoint_hosts = places.clone();
        let found_flows = desired.find_flows(move |matching| endpoint_hosts.is_entrance(matching));
        let (mut is_complete, mut settled_at) = (false, None);
        let latencies = network.extension::<Latencies>();
        loop {
            let (known_paths, known_hosts, known_state) =
                (paths.load(), hosts.load(), state.load());
            let known_flows = found_flows.load();
            let next = plans.load();
            if next.version() != plan.version() {
                self.withdraw_removed(&plan, &next, &network, &desired);
                places.retain(&next);
                plan = next;
            }
            places.update(&known_hosts);
            places.recall(&known_flows, &network);
            let (mut retry_at, mut is_changing) = (None, false);
            if known_paths.is_settled() {
                let view = NetworkView {
                    topology: &network.topology().load(),
                    hosts: &known_hosts,
                    places: &places,
                    switches: &network.switches(),
                    paths: &known_paths,
                };
                let now = network.now();
                retry_at = self.update_all(&plan, &view, (&desired, &known_state), &latencies, now);
                let since = *settled_at.get_or_insert_with(|| network.now());
                let (reports_at, changing) = self.report(&plan, &network, since);
                is_changing = changing;
                retry_at = [retry_at, reports_at].into_iter().flatten().min();
                let keep_until = since + KEEP_EARLIER_FLOWS;
                if !is_complete && (self.is_all_laid(&plan) || network.now() >= keep_until) {
                    desired.complete_except(self.missing_intents(&plan));
                    is_complete = true;
                }
                if !is_complete {
                    retry_at = Some(retry_at.map_or(keep_until, |again| again.min(keep_until)));
                }
            }
            let time = wait_until(&network, retry_at);
            let hosts_change =
                hosts.newer(known_hosts.version()).or(found_flows.newer(known_flows.version()));
            let changes = paths.newer(known_paths.version()).or(hosts_change).or(time);
            let changes = async {
                changes.or(async { _ = plans.newer(plan.version()).await }).await;
            };
            let is_waiting = is_changing || self.progress().iter().any(CircuitProgress::is_waiting);
            if is_waiting {
                changes.or(async { _ = state.newer(known_state.version()).await }).await;
            } else {
                changes.await;
            }
        }
    }

    /// Removes the circuits of one plan that the next does not have, and reserves the ports of the
    /// next.
    fn withdraw_removed(
        &self,
        plan: &CircuitPlan,
        next: &CircuitPlan,
        network: &Network,
        desired: &Desired,
    ) {
        let ports: BTreeSet<_> = reserved_by(next).collect();
        release(network, reserved_by(plan).filter(|port| !ports.contains(port)));
        reserve(network, ports);
        let mut progress = self.progress();
        for (index, planned) in plan.circuits() {
            let next_slot = next.slots().get(index).and_then(Option::as_ref);
            if next_slot.is_none_or(|slot| slot.intent != planned.intent) {
                let commit = desired.withdraw(planned.intent);
                if let Some(progress) = progress.get_mut(index) {
                    progress.withdrawn(commit, network.now());
                }
            }
        }
    }

    /// Lays all circuits that have changed. Returns when to do so again if nothing changes before.
    fn update_all(
        &self,
        plan: &CircuitPlan,
        view: &NetworkView<'_>,
        (desired, state): (&Desired, &DesiredState),
        latencies: &Latencies,
        now: Duration,
    ) -> Option<Duration> {
        let mut progress = self.progress();
        progress.resize_with(plan.slots().len(), CircuitProgress::default);
        let mut retry_at = None;
        for (index, PlannedCircuit { circuit, intent, vlans }) in plan.circuits() {
            let progress = &mut progress[index];
            if let Some(time) = progress.take_time(state, now) {
                latencies.path_change.record(time);
            }
            let numbers = (index as u32, vlans);
            if let Some(layout) = progress.update(circuit, numbers, view, state, now) {
                let commit = desired.commit_tree(*intent, layout.entries.iter().cloned());
                progress.committed(layout, commit, now);
            }
            retry_at = [retry_at, progress.next_layout_at()].into_iter().flatten().min();
        }
        retry_at
    }

    /// Publishes which circuits are up, down, or on another path. Returns when circuits are next
    /// reported that are down since the start, and whether a circuit is being installed.
    fn report(
        &self,
        plan: &CircuitPlan,
        network: &Network,
        settled_at: Duration,
    ) -> (Option<Duration>, bool) {
        let mut progress = self.progress();
        let first_down_at = settled_at + FIRST_DOWN_AFTER;
        let is_early = network.now() < first_down_at;
        let (mut has_hidden, mut is_changing) = (false, false);
        for (index, PlannedCircuit { circuit, .. }) in plan.circuits() {
            let progress = &mut progress[index];
            is_changing |= progress.is_changing();
            if is_early && progress.was_never_up() {
                has_hidden = true;
            } else if let Some(event) = progress.change(&circuit.name) {
                network.publish(event);
            }
        }
        (has_hidden.then_some(first_down_at), is_changing)
    }

    /// The intents of circuits that have not been laid since the controller started.
    fn missing_intents(&self, plan: &CircuitPlan) -> Vec<u32> {
        let progress = self.progress();
        let has_layout =
            |index: usize| progress.get(index).is_some_and(CircuitProgress::has_layout);
        let missing = plan.circuits().filter(|(index, _)| !has_layout(*index));
        missing.map(|(_, planned)| planned.intent).collect()
    }

    fn is_all_laid(&self, plan: &CircuitPlan) -> bool {
        let progress = self.progress();
        plan.circuits().all(|(index, _)| progress.get(index).is_some_and(CircuitProgress::is_laid))
    }

    fn progress(&self) -> MutexGuard<'_, Vec<CircuitProgress>> {
        // After a panic between two changes, the circuit is laid again when the network changes.
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ports that belong to the circuits of a plan.
fn reserved_by(plan: &CircuitPlan) -> impl Iterator<Item = (SwitchPort, Option<u16>)> {
    let endpoints = plan.circuits().flat_map(|(_, planned)| &planned.circuit.endpoints);
    endpoints.filter_map(|endpoint| match endpoint {
        Endpoint::Port(at, vlan) => Some((*at, *vlan)),
        Endpoint::Host(_) => None,
    })
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
        reserve(network, reserved_by(&circuits.0.plan.watch().load()));
        if !circuits.0.is_started.swap(true, Ordering::Relaxed) {
            let task = circuits.clone().run(network.clone(), network.desired());
            network.spawn("lay circuits", task);
        }
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}
