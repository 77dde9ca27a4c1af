//! Finds the links between switches.
//!
//! What it is for, how it is set and what it is worth against somebody who attacks is told in the book; here
//! is how it is made.
//! - `frame` writes and reads announcements, `key` signs them. `links` is what is known: a state
//!   machine without I/O, which `latency` helps to tell relays from links. `switch` is the handler: it
//!   sends the announcements of its switch, and checks the signature of those that come in. `task` owns
//!   the state and publishes the topology.
//! - Handlers tell the task what they heard through a bounded channel. What does not fit is lost and
//!   counted, and heard again a round later. Which switches and ports are up the task reads from what
//!   is published, so none of that can be lost.
//! - A packet that is no LLDP costs a look at its Ethernet type.

mod frame;
mod key;
mod latency;
mod links;
mod settings;
mod switch;
mod task;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use bellrock_api::{App, Network, SwitchInfo, SwitchPort};

use crate::counters::counters;
use crate::registry::Registry;
pub(crate) use key::secret;
pub use key::{Key, MIN_KEY_LEN, NoRandomness, ParseKeyError};
pub use links::{ALARM_EVERY, COMPARED_LINKS, MISSED_ROUNDS, NEW_PORT};
pub use settings::DiscoverySettings;
pub use switch::{ANNOUNCEMENTS_PER_TURN, DiscoverySwitch, LLDP_PER_PORT_PER_S};
pub use task::{PUBLISH_AT_ONCE, PUBLISH_EVERY};

use links::{Heard, Links};

/// Announcements that wait for the task, of all switches.
pub const MAX_WAITING: usize = 1 << 14;

/// Bytes of a key that is made at start, as many as the hash has (more would not help, RFC 2104 §3), and of
/// the number of the start.
const SECRET_LEN: usize = 32 + 8;

/// The app: finds the links between switches, and publishes them as
/// [`Network::topology`]. It stands before all others.
pub struct Discovery {
    settings: DiscoverySettings,
    /// From the operating system.
    secrets: Secrets,
    /// Made when the controller starts.
    shared: OnceLock<Arc<Shared>>,
}

/// What nobody else knows, and what tells this start of this controller from others with the same key.
#[derive(Clone)]
struct Secrets {
    key: Key,
    instance: u64,
}

/// What the handlers and the task share.
struct Shared {
    secrets: Secrets,
    interval_s: u32,
    nonce: AtomicU64,
    tell: Sender<Told>,
    told: Receiver<Told>,
    /// What is counted for each switch, for the task.
    counts: Registry<Counts>,
}

/// What a handler tells the task.
#[derive(Clone, Copy, Debug)]
enum Told {
    Heard(Heard),
    Forged(SwitchPort),
    /// A port has gone down. It may be up again by the time that this is dealt with: what is published is
    /// what there is at the end of a turn.
    PortDown {
        at: SwitchPort,
        switch_since: Duration,
    },
}

counters! {
    /// What discovery counts of each switch.
    Counts {
        /// Announcements that were sent.
        sent: "announcements_sent",
        /// Announcements that came in and were signed by this start of the controller.
        heard: "announcements_heard",
        /// LLDP frames that claimed to be announcements and were not signed by the controller.
        forged: "announcements_forged",
        /// Announcements that were used before, or too old.
        replayed: "announcements_replayed",
        /// Announcements that came in where they went out.
        reflected: "announcements_reflected",
        /// Announcements that came over what may be a relay between hosts.
        suspected: "announcements_suspected",
        /// Announcements of another controller with the same key, or of an earlier start.
        other_instance: "announcements_of_others",
        /// LLDP frames of others, which were passed on.
        foreign: "lldp_of_others",
        /// LLDP frames above what a port may send.
        over_limit: "lldp_over_limit",
        /// Announcements that were lost because the controller was too busy.
        lost: "announcements_lost",
    }
}

impl Discovery {
    /// Discovery with these settings. A run that repeats takes its key from its seed, if none is set.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn new(settings: DiscoverySettings) -> Result<Self, NoRandomness> {
        let fresh = Secrets::fresh()?;
        let key = settings.key.clone().unwrap_or(fresh.key);
        let secrets = Secrets { key, ..fresh };
        Ok(Discovery { settings, secrets, shared: OnceLock::new() })
    }

    fn shared(&self, network: &Network) -> &Arc<Shared> {
        self.shared.get_or_init(|| {
            let mut secrets = self.secrets.clone();
            if let Some(seed) = network.seed() {
                let seeded = Secrets::of_seed(seed);
                let key = self.settings.key.clone().unwrap_or(seeded.key);
                secrets = Secrets { key, ..seeded };
            }
            Arc::new(Shared::new(secrets, &self.settings))
        })
    }
}

impl Secrets {
    fn fresh() -> Result<Self, NoRandomness> {
        Ok(Self::of(secret()?))
    }

    /// No secrets: whoever runs a lab knows its seed.
    fn of_seed(seed: u64) -> Self {
        let mut bytes = [0; SECRET_LEN];
        fastrand::Rng::with_seed(seed).fill(&mut bytes);
        Self::of(bytes)
    }

    fn of(bytes: [u8; SECRET_LEN]) -> Self {
        let (instance, key) = bytes.split_at(8);
        let number = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Secrets { instance: instance.iter().fold(0, number), key: Key::of(key) }
    }
}

impl Shared {
    fn new(secrets: Secrets, settings: &DiscoverySettings) -> Self {
        let (tell, told) = async_channel::bounded(MAX_WAITING);
        let (interval_s, nonce) = (settings.interval_s(), AtomicU64::new(0));
        Shared { secrets, interval_s, nonce, tell, told, counts: Registry::default() }
    }

    fn next_nonce(&self) -> u64 {
        // From 1 on.
        self.nonce.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl App for Discovery {
    type Handler = DiscoverySwitch;

    fn name(&self) -> &'static str {
        "discovery"
    }

    /// Announcements come by a flow of their own.
    fn wants_packet_ins(&self) -> bool {
        false
    }

    fn start(&self, network: &Network) {
        let shared = Arc::clone(self.shared(network));
        let interval = Duration::from_secs(shared.interval_s.into());
        let DiscoverySettings { refuse_slow_links, trusted_ports, .. } = &self.settings;
        let links = Links::new(interval, *refuse_slow_links, trusted_ports.clone());
        network.spawn("links", task::run(network.clone(), shared, links));
    }

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> DiscoverySwitch {
        let shared = Arc::clone(self.shared(network));
        let counts = shared.counts.add(info.dpid);
        DiscoverySwitch::new(shared, counts, info, network)
    }
}
