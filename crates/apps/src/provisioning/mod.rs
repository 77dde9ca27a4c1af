//! Named circuits between ports and hosts, as the configuration says, installed from end to end and kept.
//!
//! - `circuit` is how they are written, and which cannot be together.
//! - `layout` is what a circuit is in the network as it is now: its flows, and on 1.3 a fast-failover
//!   group with a detour at each link of a circuit of two endpoints.
//! - Here a task lays all circuits anew whenever the network changes, and gives what it laid to
//!   [desired state](bellrock_services::desired), which installs the difference in an order without holes,
//!   also after a restart.

mod circuit;
mod layout;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::RangeInclusive;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bellrock_api::{App, Batch, Handler, LeftFlows, Needs, Network, Switch, SwitchInfo};
use bellrock_services::desired::{Desired, DesiredFlows};
use bellrock_services::paths::paths;

pub use circuit::{Circuit, Conflict, Endpoint, MAX_ENDPOINTS, NoCircuit};
use layout::{Layout, View, lay};
pub use layout::{MAX_LINKS, VLANS_PER_CIRCUIT};

/// How long flows of circuits that cannot be laid yet are kept after a restart: until their hosts are heard.
pub const KEEP_LEFT_FLOWS: Duration = Duration::from_secs(60);

/// What can be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvisioningSettings {
    /// The circuits.
    pub circuits: Vec<Circuit>,
    /// The VLANs that their frames have between switches, and nobody else's.
    pub vlans: RangeInclusive<u16>,
}

impl Default for ProvisioningSettings {
    fn default() -> Self {
        ProvisioningSettings { circuits: Vec::new(), vlans: 2000..=3999 }
    }
}

impl ProvisioningSettings {
    /// Whether the circuits can be together.
    ///
    /// # Errors
    /// [`Conflict`].
    pub fn check(&self) -> Result<(), Conflict> {
        let needed = self.circuits.len() * usize::from(VLANS_PER_CIRCUIT);
        circuit::check(&self.circuits, needed, self.vlans.len())
    }
}

/// A circuit, and how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitStatus {
    /// The circuit.
    pub circuit: Circuit,
    /// How it is.
    pub state: CircuitState,
}

/// How a circuit is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CircuitState {
    /// Its flows are confirmed.
    Up {
        /// Links without a detour, one direction each. A circuit with none survives the loss of any one
        /// link before the controller knows of it.
        bare_links: usize,
    },
    /// Its flows are being installed.
    Installing,
    /// It is not there, or not as the configuration says; flows of before are left as they are.
    Down(String),
}

/// The circuits, for whoever wants to look at them. All clones are the same.
#[derive(Clone, Default)]
pub struct Circuits(Arc<Inner>);

#[derive(Default)]
struct Inner {
    settings: ProvisioningSettings,
    /// Since the app has started.
    desired: OnceLock<Desired>,
    laid: Mutex<Laid>,
}

#[derive(Default)]
struct Laid {
    /// What came of laying each circuit, by its place in the settings.
    circuits: BTreeMap<usize, Result<Layout, String>>,
    /// How often desired state was told.
    told: u64,
}

impl Circuits {
    /// These circuits.
    ///
    /// # Errors
    /// [`Conflict`].
    pub fn new(settings: ProvisioningSettings) -> Result<Self, Conflict> {
        settings.check()?;
        Ok(Circuits(Arc::new(Inner { settings, ..Inner::default() })))
    }

    /// All circuits, in the order of the settings.
    #[must_use]
    pub fn list(&self) -> Vec<CircuitStatus> {
        let state = self.0.desired.get().map(|desired| desired.state().load());
        let laid = self.laid();
        let state_of = |index: usize| match (laid.circuits.get(&index), &state) {
            (None, _) | (_, None) => {
                CircuitState::Down("links are still being discovered".to_owned())
            }
            (Some(Err(why)), _) => CircuitState::Down(why.clone()),
            (Some(Ok(layout)), Some(state)) => {
                let refused = state.refused.iter().find(|(dpid, _)| layout.switches.contains(dpid));
                match refused {
                    Some((dpid, why)) => CircuitState::Down(format!("switch {dpid}: {why}")),
                    None if state.written >= laid.told && state.is_settled() => {
                        CircuitState::Up { bare_links: layout.bare.len() }
                    }
                    None => CircuitState::Installing,
                }
            }
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
        let (paths, hosts) = (paths(&network), network.hosts().clone());
        let (mut is_complete, mut settled_at) = (false, None);
        loop {
            let (known_paths, known_hosts) = (paths.load(), hosts.load());
            if known_paths.is_settled() {
                let view = View {
                    topology: &network.topology().load(),
                    hosts: &known_hosts,
                    switches: &network.switches(),
                    paths: &known_paths,
                };
                let all_laid = self.lay_all(&view, &desired);
                let since = *settled_at.get_or_insert_with(|| network.now());
                if !is_complete && (all_laid || network.now() >= since + KEEP_LEFT_FLOWS) {
                    desired.complete();
                    is_complete = true;
                }
            }
            let mut next_paths = pin!(paths.changed(known_paths.version()));
            let mut next_hosts = pin!(hosts.changed(known_hosts.version()));
            let either = poll_fn(|context| {
                let paths = next_paths.as_mut().poll(context).is_ready();
                let hosts = next_hosts.as_mut().poll(context).is_ready();
                if paths || hosts { Poll::Ready(()) } else { Poll::Pending }
            });
            match is_complete {
                true => either.await,
                false => network.timeout(KEEP_LEFT_FLOWS, either).await.unwrap_or_default(),
            }
        }
    }

    /// Says whether all could be laid.
    fn lay_all(&self, view: &View<'_>, desired: &Desired) -> bool {
        let settings = &self.0.settings;
        let mut laid = self.laid();
        let tags = settings.vlans.clone().step_by(usize::from(VLANS_PER_CIRCUIT));
        for ((index, circuit), tag) in settings.circuits.iter().enumerate().zip(tags) {
            let number = index as u32;
            let now = lay(circuit, number, tag, view).map_err(|why| why.to_string());
            if let Ok(layout) = &now
                && laid.circuits.get(&index) != Some(&now)
            {
                laid.told += 1;
                // Intent 0 is nobody's.
                desired.set_tree(number + 1, layout.entries.iter().cloned());
            }
            laid.circuits.insert(index, now);
        }
        laid.circuits.values().all(Result::is_ok)
    }

    fn laid(&self) -> MutexGuard<'_, Laid> {
        // A panic between its two changes leaves a circuit that is never said to be up.
        self.0.laid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The app.
#[derive(Clone, Default)]
pub struct Provisioning(Circuits);

impl Provisioning {
    /// Keeps these circuits.
    #[must_use]
    pub fn new(circuits: &Circuits) -> Self {
        Provisioning(circuits.clone())
    }
}

impl App for Provisioning {
    type Handler = NoHandler;

    fn name(&self) -> &'static str {
        "provisioning"
    }

    fn wants_packet_ins(&self) -> bool {
        false
    }

    fn needs(&self) -> Needs {
        Needs::TOPOLOGY | Needs::HOSTS | Needs::PATHS
    }

    fn left_flows(&self) -> LeftFlows {
        LeftFlows::Keep
    }

    fn start(&self, network: &Network) {
        let (Provisioning(circuits), desired) = (self, network.desired());
        if circuits.0.desired.set(desired.clone()).is_ok() {
            network.spawn("lay circuits", circuits.clone().keep(network.clone(), desired));
        }
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> NoHandler {
        NoHandler
    }
}

/// All is done by a task; packets are the next app's.
#[derive(Debug)]
pub struct NoHandler;

impl Handler for NoHandler {
    fn packet_ins(&mut self, _: &mut Switch<'_>, _: &mut Batch<'_>) {}
}
