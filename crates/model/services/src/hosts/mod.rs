//! Finds the hosts and the ports that they are at.
//!
//! The book describes its purpose, its settings, and which attacks it withstands. How it works:
//! - `frame` reads what a packet reports of its sender, and `probe` builds the frames that ask a
//!   host whether it is there. `tracker` is the state: a state machine without I/O, which counts
//!   hosts with `ports`. `switch` is the handler. Its `cache` lets nearly all packets pass without
//!   a closer look. `task` owns the state and publishes the hosts. With `counting` it asks switches
//!   how many packets of a host they have forwarded.
//! - Two flows above those of all apps bring the answers to probes. Frames from the source address
//!   of probes are dropped and reported.
//! - Handlers send sightings to the task through a bounded channel. What does not fit is counted
//!   and dropped; a later packet repeats it.
//! - A packet of a host at its known port costs one look into the cache: no lock, and no write.

mod asked;
mod believed;
mod cache;
mod counting;
mod frame;
mod last_seen;
mod ports;
mod probe;
mod settings;
mod switch;
mod task;
#[cfg(test)]
pub(crate) mod testing;
mod tracker;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use async_channel::{Receiver, Sender};
use bellrock_api::{
    App, EarlierFlows, HostId, Hosts, Needs, Network, Publisher, SharedCounter, SwitchInfo,
    SwitchPort, counters,
};

use crate::discovery::{NoRandomness, secret};
use crate::exchange::Exchange;
use crate::outdated_flows;
use crate::registry::Registry;
pub use asked::{ASKED_PER_S, ask_for};
pub use believed::{BelievedHosts, believe};
pub use counting::{COUNT_EVERY, COUNTED_AT_A_TIME};
pub use last_seen::LastSeen;
pub use probe::PROBE_SOURCE;
pub use settings::HostTrackingSettings;
pub use switch::{
    AT_LINKS_PER_PORT_PER_S, HostTrackingSwitch, REFRESH_S, SEEN_AGAIN_PER_PORT_PER_S,
    SIGHTINGS_PER_PORT_PER_S,
};
pub use tracker::{
    AGE_PROBES, ALARM_EVERY, ANSWER_WITHIN, ASK_AGAIN_AFTER, ASKED_ON_RETURN, AT_LINK_AFTER,
    CLAIM_PAUSE, COUNTED_WITHIN, MAX_ADDRESSES, REPLACED_PER_S,
};

use tracker::{HostTracker, Sighting};

/// Maximum number of sightings that wait for the task, of all switches.
pub const MAX_WAITING: usize = 1 << 14;

/// The host tracking app: finds the hosts, and publishes them as [`Network::hosts`]. It stands
/// behind discovery and before all other apps.
pub struct HostTracking {
    settings: HostTrackingSettings,
    guards: bool,
    /// From the operating system, for the hashes of addresses.
    secrets: [u64; 3],
    hosts: Arc<Publisher<Hosts>>,
    /// Created when the controller starts.
    shared: OnceLock<Arc<TrackingShared>>,
}

/// Shared by the handlers and the task.
struct TrackingShared {
    multiplier: u64,
    /// Whether packets with the address of a host that is elsewhere are dropped.
    guards: bool,
    sender: Sender<TrackingMessage>,
    receiver: Receiver<TrackingMessage>,
    switches: Registry<SwitchShared>,
}

/// A message from a handler to the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrackingMessage {
    /// A host was seen.
    Seen(Sighting),
    /// A packet of an unknown host came in at a port with a link.
    AtLink(HostId, SwitchPort),
    /// A frame from [`PROBE_SOURCE`] came in.
    ProbeAddress(SwitchPort),
}

/// Shared by the task and the handler of a switch.
#[derive(Default)]
struct SwitchShared {
    /// Incremented when the handler's cached hosts may be out of date.
    stale: AtomicU64,
    counts: TrackingCounters,
}

counters! {
    /// Counters of host tracking for each switch. The handler and the task both add to them.
    pub(super) struct TrackingCounters: SharedCounter {
        /// Packets dropped because the host with their source address is elsewhere.
        claims_dropped,
        /// Claims refused because the host answered at its port.
        claims_refused,
        /// Hosts not learnt because their port has its maximum of hosts.
        over_port_limit,
        /// Hosts not learnt because the network has its maximum of hosts.
        over_limit,
        /// Packets not looked into because their port had too many sightings.
        sightings_over_limit,
        /// Sightings lost because the controller was too busy.
        sightings_lost,
        /// Probes sent to hosts.
        probes_sent,
        /// Requests to the switch for the packet counts of a host's flows.
        packet_counts_asked,
        /// Frames from the source address of probes that were dropped.
        probe_address_used,
    }
}

impl HostTracking {
    /// Creates host tracking, which publishes the hosts. With `guards`, it drops packets with the
    /// address of a host that is elsewhere; otherwise it only observes.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn new(
        settings: HostTrackingSettings,
        guards: bool,
        hosts: Publisher<Hosts>,
    ) -> Result<Self, NoRandomness> {
        let bytes: [u8; 24] = secret()?;
        let (words, _) = bytes.as_chunks();
        let mut secrets = [0; 3];
        secrets.iter_mut().zip(words).for_each(|(to, word)| *to = u64::from_le_bytes(*word));
        let hosts = Arc::new(hosts);
        Ok(HostTracking { settings, guards, secrets, hosts, shared: OnceLock::new() })
    }

    fn secrets(&self, network: &Network) -> [u64; 3] {
        match network.seed() {
            None => self.secrets,
            Some(seed) => {
                let mut random = fastrand::Rng::with_seed(seed);
                std::array::from_fn(|_| random.u64(..))
            }
        }
    }

    fn shared(&self, network: &Network) -> &Arc<TrackingShared> {
        self.shared.get_or_init(|| {
            let [multiplier, ..] = self.secrets(network);
            Arc::new(TrackingShared::new(multiplier, self.guards))
        })
    }
}

impl TrackingShared {
    fn new(multiplier: u64, guards: bool) -> Self {
        let (sender, receiver) = async_channel::bounded(MAX_WAITING);
        TrackingShared { multiplier, guards, sender, receiver, switches: Registry::default() }
    }
}

impl App for HostTracking {
    type Handler = HostTrackingSwitch;

    fn name(&self) -> &'static str {
        "hosts"
    }

    /// No hosts are learnt at ports that lead to switches.
    /// The hosts are its own.
    fn needs(&self) -> Needs {
        Needs::TOPOLOGY | Needs::HOSTS
    }

    /// Each run replaces equal flows, so that no packet is missed, and removes the others.
    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Keep
    }

    fn counter_meanings(&self) -> Vec<(&'static str, &'static str)> {
        TrackingCounters::ALL.to_vec()
    }

    fn start(&self, network: &Network) {
        let shared = Arc::clone(self.shared(network));
        Exchange::of(network).begin_hosts();
        let [_, keys @ ..] = self.secrets(network);
        let tracker = HostTracker::new(self.settings, keys);
        let hosts = Arc::clone(&self.hosts);
        network.spawn("hosts", task::run(network.clone(), shared, hosts, tracker));
        let wanted = switch::flows_for_answers().map(|(_, flow)| flow).into();
        network.spawn("outdated flows", outdated_flows::run(network.clone(), wanted));
    }

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> HostTrackingSwitch {
        let shared = Arc::clone(self.shared(network));
        let state = shared.switches.add(info.dpid);
        HostTrackingSwitch::new(shared, state, network, info)
    }
}
