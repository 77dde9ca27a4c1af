//! One switch between a worker and the thread of the app.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bellrock_api::runtime::Expected;
use bellrock_api::{AppId, Dpid, Network, Version};
use crossbeam_queue::SegQueue;

/// Maximum number of bytes that wait for the worker of a switch. Above it, writing to the switch is
/// an error, as with a full send buffer.
pub const MAX_WAITING_BYTES: usize = 4 << 20;

/// A switch, for one app and one connection. The worker's handler and the thread of the app share
/// it.
#[derive(Debug)]
pub struct SwitchLink {
    number: u64,
    dpid: Dpid,
    version: Version,
    app: AppId,
    /// The app's handle to the network.
    network: Network,
    /// What the thread of the app wrote, in order.
    parcels: SegQueue<Parcel>,
    /// Bytes in `parcels`.
    waiting: AtomicUsize,
    /// Bytes of this switch's packet_ins in the feed.
    pub(crate) packet_bytes: AtomicUsize,
    /// Whether a tick waits in the feed.
    pub(crate) has_tick: AtomicBool,
    counts: Arc<AppCounts>,
    /// Number of times that the code of the app was replaced.
    code_version: AtomicU64,
}

/// The counters of an app at one switch, which the app names itself.
#[derive(Debug)]
pub(crate) struct AppCounts(Box<[(&'static str, AtomicU64)]>);

impl AppCounts {
    pub(crate) fn new(counters: &[(&'static str, &'static str)]) -> Self {
        AppCounts(counters.iter().map(|(name, _)| (*name, AtomicU64::new(0))).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(name, n)| (*name, n.load(Ordering::Relaxed)))
    }
}

/// What goes back to the worker together.
#[derive(Debug)]
pub(crate) enum Parcel {
    /// Messages for the switch, what is expected for them, and packet_ins for the rest of the
    /// chain.
    Written { messages: Box<[u8]>, expected: Box<[Expected]>, passed: Box<[u8]> },
    /// The app failed: this counts as a panic, of this version of its code.
    Fault { why: Box<str>, version: u64 },
}

impl Parcel {
    fn bytes(&self) -> usize {
        match self {
            Parcel::Written { messages, passed, .. } => messages.len() + passed.len(),
            Parcel::Fault { why, .. } => why.len(),
        }
    }
}

impl SwitchLink {
    pub(crate) fn new(
        number: u64,
        dpid: Dpid,
        version: Version,
        (app, network): (AppId, Network),
        counts: Arc<AppCounts>,
    ) -> Self {
        SwitchLink {
            number,
            dpid,
            version,
            app,
            network,
            parcels: SegQueue::new(),
            waiting: AtomicUsize::new(0),
            packet_bytes: AtomicUsize::new(0),
            has_tick: AtomicBool::new(false),
            counts,
            code_version: AtomicU64::new(0),
        }
    }

    /// Notes that the code of the app was replaced: faults of the last version do not count any
    /// more.
    pub fn renew_code(&self) {
        self.code_version.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn code_version(&self) -> u64 {
        self.code_version.load(Ordering::Relaxed)
    }

    /// Its number. No other link of the same feed has it.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Datapath id of the switch.
    #[must_use]
    pub fn dpid(&self) -> Dpid {
        self.dpid
    }

    /// OpenFlow version of the connection.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The app, with its place in the chain.
    #[must_use]
    pub fn app(&self) -> AppId {
        self.app
    }

    /// The app's handle to the network, also where [`App::start`](bellrock_api::App::start) was not
    /// called.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Adds to a counter of the app. Returns whether the app has a counter of this name
    /// ([`DetachedSettings::counters`](crate::DetachedSettings::counters)).
    pub fn count(&self, name: &str, n: u64) -> bool {
        let counter = self.counts.0.iter().find(|(own, _)| *own == name);
        counter.map(|(_, count)| count.fetch_add(n, Ordering::Relaxed)).is_some()
    }

    /// Whether so much waits for the worker that nothing more may be written.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= MAX_WAITING_BYTES
    }

    pub(crate) fn push(&self, parcel: Parcel) {
        self.waiting.fetch_add(parcel.bytes(), Ordering::Relaxed);
        self.parcels.push(parcel);
    }

    pub(crate) fn pop(&self) -> Option<Parcel> {
        let parcel = self.parcels.pop()?;
        self.waiting.fetch_sub(parcel.bytes(), Ordering::Relaxed);
        Some(parcel)
    }

    pub(crate) fn has_parcels(&self) -> bool {
        !self.parcels.is_empty()
    }
}
