//! Finds the hosts and where they are.
//!
//! What it is for, how it is set and what it is worth against somebody who attacks is told in the book; here
//! is how it is made.
//! - `frame` reads what a packet tells of its sender, `probe` asks a host whether it is there. `tracker` is
//!   what is known: a state machine without I/O, which counts hosts with `ports`. `switch` is the
//!   handler, and `cache` what keeps nearly all packets from being looked at. `task` owns the state
//!   and publishes the hosts; by `counting` it asks switches how many packets of a host they have forwarded.
//! - Two flows above those of all apps bring the answers to probes. Frames from the address that probes are sent from
//!   are dropped and reported.
//! - Handlers tell the task what they saw through a bounded channel. What does not fit is lost and
//!   counted, and seen again with a later packet.
//! - A packet of a host that is known to be where it came from costs a look into the cache: no lock, and
//!   no write.

mod believed;
mod cache;
mod counting;
mod frame;
mod ports;
mod probe;
mod settings;
mod switch;
mod task;
mod tracker;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use async_channel::{Receiver, Sender};
use bellrock_api::{App, Dpid, Needs, Network, Refusal, SwitchInfo, SwitchPort};

use crate::counters::counters;
use crate::discovery::{NoRandomness, secret};
use crate::registry::Registry;
pub use believed::{BelievedHosts, believe};
pub use counting::{COUNT_EVERY, COUNTED_AT_A_TIME};
pub use probe::PROBE_SOURCE;
pub use settings::HostSettings;
pub use switch::{HostsAtSwitch, REFRESH_S, SEEN_AGAIN_PER_PORT_PER_S, SIGHTINGS_PER_PORT_PER_S};
pub use tracker::{
    AGE_PROBES, ALARM_EVERY, ANSWER_WITHIN, ASK_AGAIN_AFTER, ASKED_ON_RETURN, CLAIM_PAUSE,
    COUNTED_WITHIN, MAX_ADDRESSES, REPLACED_PER_S,
};

use tracker::{Sighting, Tracker};

/// Sightings that wait for the task, of all switches.
pub const MAX_WAITING: usize = 1 << 14;

/// The app: finds the hosts, and publishes them as
/// [`Network::hosts`]. It stands behind discovery and before all others.
pub struct HostTracking {
    settings: HostSettings,
    /// From the operating system, for the hashes of addresses.
    secrets: [u64; 3],
    /// Made when the controller starts.
    shared: OnceLock<Arc<Shared>>,
}

/// What the handlers and the task share.
struct Shared {
    multiplier: u64,
    tell: Sender<News>,
    told: Receiver<News>,
    switches: Registry<PerSwitch>,
}

/// What a handler reports to the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// A host was seen.
    Seen(Sighting),
    /// A frame from [`PROBE_SOURCE`] came in.
    ProbeAddress(SwitchPort),
    /// The switch refuses the flows that bring answers to probes.
    Refused(Dpid, Refusal),
}

/// What the task and the handler of a switch share.
#[derive(Default)]
struct PerSwitch {
    /// Counted up when what the handler believes of hosts may not be so any more.
    stale: AtomicU64,
    counts: Counts,
}

counters! {
    /// What host tracking counts of each switch.
    Counts {
        /// Packets that were dropped since they came from the address of a host that is elsewhere.
        claims: "claims_dropped",
        /// Claims that were refused since the host answered where it is.
        refused: "claims_refused",
        /// Hosts that were not learnt since their port has as many as it may.
        port_full: "over_port_limit",
        /// Hosts that were not learnt since there are as many as there may be.
        full: "over_limit",
        /// Packets whose senders were not looked into since their port had told of too many.
        over_limit: "sightings_over_limit",
        /// Sightings that were lost because the controller was too busy.
        lost: "sightings_lost",
        /// Questions to hosts whether they are still there.
        probes: "probes_sent",
        /// Questions to the switch how many packets of a host its flows have counted.
        counted: "packet_counts_asked",
        /// Frames from the controller's own probe address that were dropped.
        impostors: "probe_address_used",
    }
}

impl HostTracking {
    /// Host tracking with these settings.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn new(settings: HostSettings) -> Result<Self, NoRandomness> {
        let bytes: [u8; 24] = secret()?;
        let (words, _) = bytes.as_chunks();
        let mut secrets = [0; 3];
        secrets.iter_mut().zip(words).for_each(|(to, word)| *to = u64::from_le_bytes(*word));
        Ok(HostTracking { settings, secrets, shared: OnceLock::new() })
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

    fn shared(&self, network: &Network) -> &Arc<Shared> {
        self.shared.get_or_init(|| {
            let [multiplier, ..] = self.secrets(network);
            Arc::new(Shared::new(multiplier))
        })
    }
}

impl Shared {
    fn new(multiplier: u64) -> Self {
        let (tell, told) = async_channel::bounded(MAX_WAITING);
        Shared { multiplier, tell, told, switches: Registry::default() }
    }
}

impl App for HostTracking {
    type Handler = HostsAtSwitch;

    fn name(&self) -> &'static str {
        "hosts"
    }

    /// Where switches are, no hosts are learnt.
    fn needs(&self) -> Needs {
        Needs::TOPOLOGY
    }

    fn start(&self, network: &Network) {
        let shared = Arc::clone(self.shared(network));
        let [_, keys @ ..] = self.secrets(network);
        let tracker = Tracker::new(self.settings, keys);
        network.spawn("hosts", task::run(network.clone(), shared, tracker));
    }

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> HostsAtSwitch {
        let shared = Arc::clone(self.shared(network));
        let own = shared.switches.add(info.dpid);
        let readers = (network.topology().reader(), network.hosts().reader());
        HostsAtSwitch::new(shared, own, (info.dpid, info.since), readers)
    }
}
