//! Finds the links between switches.
//!
//! The book describes its purpose, its settings, and which attacks it withstands. How it works:
//! - `frame` writes and reads announcements, and `key` signs them. `links` is the state machine,
//!   without I/O. `latency` helps it to tell relays from links. `switch` is the handler: it sends
//!   the switch's announcements, and checks signatures. `task` owns the state and publishes the
//!   topology.
//! - In a cluster, each controller announces the ports of its switches. An announcement that comes
//!   in at a switch of another controller goes back to the one that made it, which decides.
//! - Handlers send what they receive to the task through a bounded channel. What does not fit is
//!   counted and dropped; the next round repeats it. The task reads which switches and ports are up
//!   from what is published, so that is never lost.
//! - A packet that is not LLDP costs one look at its Ethernet type.

mod frame;
mod key;
mod latency;
mod links;
mod refused;
mod relays;
mod settings;
mod switch;
mod task;
#[cfg(test)]
pub(crate) mod testing;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use bellrock_api::{
    App, EarlierFlows, Needs, Network, Publisher, SharedCounter, SwitchInfo, SwitchPort, Topology,
    counters,
};

use crate::exchange::{Exchange, PassedAnnouncement, Peer};
use crate::outdated_flows;
use crate::registry::Registry;
pub(crate) use key::secret;
pub use key::{DiscoveryKey, MIN_KEY_LEN, NoRandomness, ParseKeyError};
pub use links::{
    ALARM_EVERY, COMPARED_LINKS, MAX_HEARD, MAX_SWITCHES, MISSED_ROUNDS, NEW_PORT, SEGMENT_AFTER,
    UNOWNED_KEPT,
};
pub use refused::{REFUSED_BEFORE_ALARM, RefusedAnnouncements};
pub use relays::{
    HOST_PORT_MEMORY, LinkVerdict, MAX_SUSPECTED, MAX_VERDICTS, Relays, SuspectedLink, VerdictsFull,
};
pub use settings::DiscoverySettings;
pub use switch::{ANNOUNCEMENTS_PER_TURN, DiscoverySwitch, LLDP_PER_PORT_PER_S};
pub use task::{PUBLISH_AT_ONCE, PUBLISH_EVERY};

use links::{LinkTable, ReceivedAnnouncement};

/// Maximum number of announcements that wait for the task, of all switches.
pub const MAX_WAITING: usize = 1 << 14;

/// Bytes for a generated key, as long as the hash (more would not help, RFC 2104 §3), and for the
/// instance number.
const SECRET_LEN: usize = 32 + 8;

/// The discovery app: finds the links between switches, and publishes them as
/// [`Network::topology`]. It stands before all other apps.
pub struct Discovery {
    settings: DiscoverySettings,
    /// From the operating system.
    secrets: Secrets,
    topology: Arc<Publisher<Topology>>,
    /// Created when the controller starts.
    shared: OnceLock<Arc<DiscoveryShared>>,
}

/// The key, and the number of this start. Others with the same key have another number.
#[derive(Clone)]
struct Secrets {
    key: DiscoveryKey,
    instance: u64,
}

/// Shared by the handlers and the task.
struct DiscoveryShared {
    secrets: Secrets,
    interval_s: u32,
    nonce: AtomicU64,
    sender: Sender<DiscoveryMessage>,
    receiver: Receiver<DiscoveryMessage>,
    /// Counters of each switch, for the task.
    counts: Registry<DiscoveryCounters>,
}

/// A message from a handler to the task.
#[derive(Clone, Copy, Debug)]
enum DiscoveryMessage {
    Heard(ReceivedAnnouncement),
    /// Another controller of the cluster has signed it.
    OfPeer(Peer, PassedAnnouncement),
    /// Another controller of the cluster may have signed it, whose key is not known now.
    Unknown(SwitchPort),
    Forged(SwitchPort),
    /// A port has gone down. It may be up again before the task publishes the topology.
    PortDown {
        at: SwitchPort,
        switch_since: Duration,
    },
}

counters! {
    /// Counters of discovery for each switch. The handler and the task both add to them.
    pub(super) struct DiscoveryCounters: SharedCounter {
        /// Announcements sent.
        announcements_sent,
        /// Announcements received that this start of the controller signed, or another controller
        /// of the cluster.
        announcements_heard,
        /// LLDP frames that claimed to be announcements but had no valid signature.
        announcements_forged,
        /// Announcements that were used before, or are too old and came over no known link.
        announcements_replayed,
        /// Announcements that came over a known link once, but too late: a switch was slow.
        announcements_late,
        /// Announcements received at the port that sent them.
        announcements_reflected,
        /// Announcements that may have come over a relay between hosts.
        announcements_suspected,
        /// Announcements of a controller that is not of the cluster and has the same key, of an
        /// earlier start, or of a controller of the cluster that is not connected.
        announcements_of_others,
        /// LLDP frames of other devices, passed on to the apps.
        lldp_of_others,
        /// LLDP frames above a port's limit.
        lldp_over_limit,
        /// Announcements lost because the controller was too busy.
        announcements_lost,
        /// Flows for announcements that switches refused.
        announcement_flow_refused,
        /// Announcements that switches refused to send.
        announcements_refused,
    }
}

impl Discovery {
    /// Creates discovery, which publishes the topology. If no key is set, a repeatable run derives
    /// the key from its seed.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn new(
        settings: DiscoverySettings,
        topology: Publisher<Topology>,
    ) -> Result<Self, NoRandomness> {
        let random = Secrets::random()?;
        let key = settings.key.clone().unwrap_or(random.key);
        let secrets = Secrets { key, ..random };
        let topology = Arc::new(topology);
        Ok(Discovery { settings, secrets, topology, shared: OnceLock::new() })
    }

    fn shared(&self, network: &Network) -> &Arc<DiscoveryShared> {
        self.shared.get_or_init(|| {
            let mut secrets = self.secrets.clone();
            if let Some(seed) = network.seed() {
                let from_seed = Secrets::of_seed(seed);
                let key = self.settings.key.clone().unwrap_or(from_seed.key);
                secrets = Secrets { key, ..from_seed };
            }
            Arc::new(DiscoveryShared::new(secrets, &self.settings))
        })
    }
}

impl Secrets {
    fn random() -> Result<Self, NoRandomness> {
        Ok(Self::of(secret()?))
    }

    /// Not secret: the seed is known to whoever runs the lab.
    fn of_seed(seed: u64) -> Self {
        let mut bytes = [0; SECRET_LEN];
        fastrand::Rng::with_seed(seed).fill(&mut bytes);
        Self::of(bytes)
    }

    fn of(bytes: [u8; SECRET_LEN]) -> Self {
        let (instance, key) = bytes.split_at(8);
        let number = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Secrets { instance: instance.iter().fold(0, number), key: DiscoveryKey::of(key) }
    }
}

impl DiscoveryShared {
    fn new(secrets: Secrets, settings: &DiscoverySettings) -> Self {
        let (sender, receiver) = async_channel::bounded(MAX_WAITING);
        let (interval_s, nonce) = (settings.interval_s(), AtomicU64::new(0));
        DiscoveryShared {
            secrets,
            interval_s,
            nonce,
            sender,
            receiver,
            counts: Registry::default(),
        }
    }

    fn next_nonce(&self) -> u64 {
        // The first nonce is 1.
        self.nonce.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl App for Discovery {
    type Handler = DiscoverySwitch;

    fn name(&self) -> &'static str {
        "discovery"
    }

    /// The topology is its own. It reads the hosts if they are tracked.
    fn needs(&self) -> Needs {
        Needs::TOPOLOGY | Needs::HOSTS
    }

    /// Its own flow brings the announcements.
    fn wants_packet_ins(&self) -> bool {
        false
    }

    /// Each run replaces equal flows, so that no packet is missed, and removes the others.
    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Keep
    }

    /// Events report refused announcements, and refused flows of its own.
    fn reports_refusals(&self) -> bool {
        true
    }

    fn counter_meanings(&self) -> Vec<(&'static str, &'static str)> {
        DiscoveryCounters::ALL.to_vec()
    }

    fn start(&self, network: &Network) {
        let shared = Arc::clone(self.shared(network));
        Exchange::of(network).begin_links(shared.secrets.instance, shared.secrets.key.clone());
        let interval = Duration::from_secs(shared.interval_s.into());
        let DiscoverySettings { refuse_slow_links, trusted_ports, .. } = &self.settings;
        let links = LinkTable::new(interval, *refuse_slow_links, trusted_ports.clone());
        let topology = Arc::clone(&self.topology);
        let (orders, received) = async_channel::bounded(relays::MAX_ORDERS);
        Relays::serve(network, orders);
        network.spawn("links", task::run(network.clone(), shared, received, topology, links));
        let wanted = vec![switch::flow_for_announcements()];
        network.spawn("outdated flows", outdated_flows::run(network.clone(), wanted));
    }

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> DiscoverySwitch {
        let shared = Arc::clone(self.shared(network));
        let counts = shared.counts.add(info.dpid);
        DiscoverySwitch::new(shared, counts, info, network)
    }
}
