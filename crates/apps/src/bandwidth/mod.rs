//! Bandwidth on demand: a request for a rate from one host to another gets it on every line of a
//! path, or fails with a reason and changes nothing.
//!
//! - `ledger` reserves bandwidth: a transaction takes it on all lines of the first of several paths
//!   with enough left, or on none (McNettle, Fig. 6).
//! - `route` is such a path with its flows. A meter at the ingress switch limits packets to their
//!   rate (1.3), or they enter a queue that is set up in the switches.
//! - `hold` is a reservation from request to release: it takes bandwidth, installs flows, and moves
//!   to another path when its path breaks. Each reservation has its own task.
//! - [`Reservations`] is the handle for requests, for other apps and for the command.

mod hold;
mod ledger;
mod names;
mod route;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use bellrock_api::runtime::PromiseFuture;
use bellrock_api::runtime::{Promise, promise};
use bellrock_api::{
    App, Dpid, EarlierFlows, Forwards, HostId, Needs, Network, Publisher, SwitchInfo, SwitchPort,
};
use bellrock_services::desired::{Desired, DesiredFlows, NotCommitted};
use bellrock_services::paths::paths;
use futures_lite::FutureExt;

pub use hold::{ALTERNATIVES, AWAY_FOR, CLEAR_WITHIN, CONFIRM_WITHIN, RETRY_LOST};
use ledger::Ledger;
pub use ledger::LinkDirection;
pub use names::{HostName, Kbps, NoHostName, NoRate, NotOneHost};
pub use route::{FIRST_LINKS_WITHIN, LINKS_WITHIN};

/// Maximum number of reservations at a time. Their numbers, 1 to this, also name their meters.
pub const MAX_RESERVATIONS: u32 = 10_000;

/// Time for which flows of reservations of an earlier run are kept, after the links are found.
pub const KEEP_EARLIER_FLOWS: Duration = Duration::from_secs(60);

/// Settings of the app.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BandwidthSettings {
    /// Capacity of every line; `None`: the speed of its port.
    pub rate: Option<Kbps>,
    /// Capacity of single lines, in both directions, by the port at either end; overrides `rate`.
    /// If both ends are listed, the smaller value counts.
    pub lines: BTreeMap<SwitchPort, Kbps>,
    /// Queues that are set up in all switches, by name.
    pub queues: BTreeMap<String, u32>,
}

/// A request for a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationRequest {
    /// The host that sends.
    pub from: HostName,
    /// The host that receives.
    pub to: HostName,
    /// Requested rate.
    pub rate: Kbps,
    /// Queue for its packets; `None`: a meter limits them to their rate.
    pub queue: Option<String>,
    /// How long to wait until other reservations release the missing bandwidth.
    pub wait: Duration,
}

/// A reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its number, used to release it.
    pub id: u32,
    /// The host that sends.
    pub from: HostId,
    /// The host that receives.
    pub to: HostId,
    /// Reserved rate.
    pub rate: Kbps,
    /// The name of its queue.
    pub queue: Option<String>,
    /// Its state.
    pub state: ReservationState,
}

/// State of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationState {
    /// It is being installed.
    Pending,
    /// Its flows are confirmed; packets leave switches by these ports.
    Installed(Vec<SwitchPort>),
    /// It is unknown whether packets get through, for this reason: a switch of its path is not
    /// connected, or has just reconnected, and there is no other path. It is kept for [`AWAY_FOR`].
    Unknown(String),
    /// Its path broke, and there is no other yet. It holds no bandwidth. It is retried when the
    /// network changes, when another reservation is released or lost, and after [`RETRY_LOST`].
    Lost(String),
}

/// Reason why nothing was reserved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReserved {
    /// No controller runs with this app.
    #[error("no controller runs with this app")]
    NotRunning,
    /// A name does not match exactly one host.
    #[error(transparent)]
    Host(#[from] NotOneHost),
    /// Source and destination are the same host.
    #[error("{0} is both ends; name two hosts")]
    SameHost(HostId),
    /// The hosts are in different VLANs, and nothing translates between them.
    #[error("{from} and {to} are in different VLANs; bandwidth is reserved within one")]
    OtherVlan {
        /// The host that sends.
        from: HostId,
        /// The host that receives.
        to: HostId,
    },
    /// The hosts are at the same port, so their packets do not pass the switch.
    #[error("both hosts are at port {0}, so their packets do not pass the switch")]
    SamePort(SwitchPort),
    /// There is already a reservation between these hosts.
    #[error("reservation {id} from {from} to {to} exists already; release it first")]
    Reserved {
        /// The host that sends.
        from: HostId,
        /// The host that receives.
        to: HostId,
        /// The number of that reservation.
        id: u32,
    },
    /// There are too many reservations.
    #[error("there are {MAX_RESERVATIONS} reservations already; release one first")]
    TooMany,
    /// There is no queue with this name.
    #[error("there is no queue {name:?}; {}", known_queues(queues))]
    UnknownQueue {
        /// The name.
        name: String,
        /// The existing queues.
        queues: Vec<String>,
    },
    /// The switch of a host is not connected.
    #[error("a host is at switch {0}, which is not connected")]
    NotConnected(Dpid),
    /// The ingress switch speaks 1.0.
    #[error(
        "unsupported: switch {0} speaks OpenFlow 1.0, which has no meters; name a queue that is set up in the \
         switches"
    )]
    NoMeters(Dpid),
    /// The capacity of a line is unknown.
    #[error("{0} does not report its speed; set `rate`, or `lines` for this line")]
    NoRate(LinkDirection),
    /// The whole capacity of a line is less than the requested rate.
    #[error(
        "{line} carries {capacity}, less than {rate}, and there is no path without such a line"
    )]
    AboveRate {
        /// Requested rate.
        rate: Kbps,
        /// The line.
        line: LinkDirection,
        /// Its capacity.
        capacity: Kbps,
    },
    /// There is no path.
    #[error("no path leads from {from} to {to}")]
    NoPath {
        /// The host that sends.
        from: HostId,
        /// The host that receives.
        to: HostId,
    },
    /// Other reservations use the missing bandwidth.
    #[error("{line} has {free} left of {capacity}, less than {rate}, and no other path has enough")]
    Taken {
        /// Requested rate.
        rate: Kbps,
        /// The line of the shortest path with the minimum left.
        line: LinkDirection,
        /// Free rate on this line.
        free: Kbps,
        /// Its capacity.
        capacity: Kbps,
    },
    /// A host has disappeared or moved meanwhile.
    #[error("host {0} has disappeared or moved")]
    Gone(HostId),
    /// For too long it was unknown whether packets get through.
    #[error("{0}, for too long")]
    Doubtful(String),
    /// The flows could not be installed, and the bandwidth was released.
    #[error("{0}")]
    NotInstalled(#[from] NotCommitted),
}

fn known_queues(known: &[String]) -> String {
    match known {
        [] => "none is configured; give some in the file, such as `queues: {gold: 1}`".to_owned(),
        known => format!("there are: {}", known.join(", ")),
    }
}

/// Reason why a reservation was not released completely.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReleased {
    /// There is no reservation with this number.
    #[error("there is no reservation {0}; `bellrock reservations` lists all")]
    Unknown(u32),
    /// It is released, but some of its flows may remain.
    #[error("it is released, but some of its flows may remain: {0}")]
    FlowsLeft(NotCommitted),
}

/// The handle for requests. All clones share the same reservations.
#[derive(Clone, Default)]
pub struct Reservations(Arc<ReservationBook>);

#[derive(Default)]
struct ReservationBook {
    settings: Publisher<BandwidthSettings>,
    /// Set when the app starts.
    network: OnceLock<Network>,
    ledger: Ledger,
    book: Mutex<BTreeMap<u32, ReservationEntry>>,
}

/// A reservation in the book.
struct ReservationEntry {
    reservation: Reservation,
    orders: Orders,
}

/// An order for the task of a reservation.
enum ReservationOrder {
    /// The network has changed: check the path.
    Check,
    /// Release the bandwidth, and end.
    Release(Promise<Result<(), NotReleased>>),
}

/// The orders of one reservation.
type Orders = Arc<Mutex<(VecDeque<ReservationOrder>, Option<Waker>)>>;

impl Reservations {
    /// Creates a handle for an app with these settings.
    #[must_use]
    pub fn new(settings: BandwidthSettings) -> Self {
        let settings = Publisher::new(settings);
        Reservations(Arc::new(ReservationBook { settings, ..ReservationBook::default() }))
    }

    /// Replaces the rates of lines and the queues. Every reservation checks its path: one whose line
    /// carries less than its rate now is moved to another path, or lost. Reservations that together
    /// exceed a smaller rate stay, and further ones get nothing on that line. Requests that wait
    /// already go on with the earlier rates.
    pub fn change(&self, settings: BandwidthSettings) {
        self.0.settings.publish(settings);
        self.check_all();
    }

    /// Makes a reservation, even if the answer is dropped. `None` if the controller ends meanwhile.
    pub fn reserve(
        &self,
        request: ReservationRequest,
    ) -> PromiseFuture<Result<Reservation, NotReserved>> {
        let (promise, answer) = promise();
        match self.open(&request) {
            Ok((network, id, valid)) => {
                let task = hold::hold(network.clone(), self.clone(), valid, request.wait, promise);
                network.spawn(format!("reservation {id}"), task);
            }
            Err(error) => promise.resolve(Err(error)),
        }
        answer
    }

    /// Releases a reservation.
    pub fn release(&self, id: u32) -> PromiseFuture<Result<(), NotReleased>> {
        let (promise, answer) = promise();
        match self.book().get(&id) {
            Some(entry) => send_order(&entry.orders, ReservationOrder::Release(promise)),
            None => promise.resolve(Err(NotReleased::Unknown(id))),
        }
        answer
    }

    /// Lists all reservations, by number.
    #[must_use]
    pub fn list(&self) -> Vec<Reservation> {
        self.book().values().map(|entry| entry.reservation.clone()).collect()
    }

    /// Reserved rate on a line.
    #[must_use]
    pub fn reserved(&self, line: LinkDirection) -> Kbps {
        Kbps(self.0.ledger.reserved(line))
    }

    /// Resolves the hosts and the queue of a request, and assigns a number.
    fn open(
        &self,
        request: &ReservationRequest,
    ) -> Result<(&Network, u32, hold::ValidRequest), NotReserved> {
        let network = self.0.network.get().ok_or(NotReserved::NotRunning)?;
        let queue = request.queue.as_deref().map(|name| self.queue(name)).transpose()?;
        let hosts = network.hosts().load();
        let (from, to) = (request.from.find(&hosts)?, request.to.find(&hosts)?);
        let (from, to, at, to_at) = (from.id, to.id, from.at, to.at);
        if from.mac == to.mac {
            return Err(NotReserved::SameHost(from));
        }
        if from.vlan != to.vlan {
            return Err(NotReserved::OtherVlan { from, to });
        }
        if at == to_at {
            return Err(NotReserved::SamePort(at));
        }
        let mut book = self.book();
        let is_same = |entry: &&ReservationEntry| {
            (entry.reservation.from, entry.reservation.to) == (from, to)
        };
        if let Some(id) = book.values().find(is_same).map(|entry| entry.reservation.id) {
            return Err(NotReserved::Reserved { from, to, id });
        }
        let id = (1..=MAX_RESERVATIONS).find(|id| !book.contains_key(id));
        let id = id.ok_or(NotReserved::TooMany)?;
        let (rate, state) = (request.rate, ReservationState::Pending);
        let reservation = Reservation { id, from, to, rate, queue: request.queue.clone(), state };
        let orders = Orders::default();
        book.insert(id, ReservationEntry { reservation, orders: Arc::clone(&orders) });
        Ok((network, id, hold::ValidRequest { id, from, to, rate, queue, orders }))
    }

    fn queue(&self, name: &str) -> Result<u32, NotReserved> {
        let settings = self.0.settings.watch().load();
        let queues = &settings.queues;
        queues.get(name).copied().ok_or_else(|| NotReserved::UnknownQueue {
            name: name.to_owned(),
            queues: queues.keys().cloned().collect(),
        })
    }

    /// Records the state of a reservation; returns the reservation and its earlier state.
    fn note(&self, id: u32, state: ReservationState) -> Option<(Reservation, ReservationState)> {
        let mut book = self.book();
        let reservation = &mut book.get_mut(&id)?.reservation;
        let before = std::mem::replace(&mut reservation.state, state);
        Some((reservation.clone(), before))
    }

    /// Ends a reservation. Waiting releases fail, as it no longer exists.
    fn close(&self, id: u32) {
        let closed = self.book().remove(&id);
        let Some(ReservationEntry { orders, .. }) = closed else { return };
        let waiting = std::mem::take(&mut lock(&orders).0);
        for order in waiting {
            if let ReservationOrder::Release(answer) = order {
                answer.resolve(Err(NotReleased::Unknown(id)));
            }
        }
    }

    /// Makes every lost reservation look for a path: bandwidth was released.
    fn retry_lost(&self) {
        for entry in self.book().values() {
            if matches!(entry.reservation.state, ReservationState::Lost(_)) {
                send_order(&entry.orders, ReservationOrder::Check);
            }
        }
    }

    /// Makes reservations check their paths: all of them when paths, hosts or switches change, and
    /// those over a switch each time that it refuses a change.
    async fn watch_changes(self, network: Network, desired: Desired) {
        let (paths, hosts, switches) = (paths(&network), network.hosts(), network.watch_switches());
        let versions =
            || (paths.load().version(), hosts.load().version(), switches.load().version());
        let (mut seen, mut before) = (versions(), desired.state().load());
        loop {
            let network_changes =
                paths.newer(seen.0).or(hosts.newer(seen.1)).or(switches.newer(seen.2));
            network_changes.or(desired.state().newer(before.version())).await;
            if versions() != std::mem::replace(&mut seen, versions()) {
                self.check_all();
            }
            let state = desired.state().load();
            let is_new = |(dpid, times): &(&Dpid, &u64)| before.refusals.get(dpid) != Some(times);
            let new: BTreeSet<Dpid> =
                state.refusals.iter().filter(is_new).map(|(dpid, _)| *dpid).collect();
            self.check_switches(&new);
            before = state;
        }
    }

    /// Makes all reservations check their path.
    fn check_all(&self) {
        self.book().values().for_each(|entry| send_order(&entry.orders, ReservationOrder::Check));
    }

    /// Makes the reservations that pass one of these switches check their path. Not the lost ones:
    /// their own refusals would make them retry.
    fn check_switches(&self, switches: &BTreeSet<Dpid>) {
        for entry in self.book().values() {
            if let ReservationState::Installed(ports) = &entry.reservation.state
                && ports.iter().any(|port| switches.contains(&port.dpid))
            {
                send_order(&entry.orders, ReservationOrder::Check);
            }
        }
    }

    fn book(&self) -> MutexGuard<'_, BTreeMap<u32, ReservationEntry>> {
        // Each change of it is one insertion, removal or assignment.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock(orders: &Orders) -> MutexGuard<'_, (VecDeque<ReservationOrder>, Option<Waker>)> {
    // Each change of it is one insertion or removal.
    orders.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Queues an order. Several waiting orders to look become one.
fn send_order(orders: &Orders, order: ReservationOrder) {
    let mut orders = lock(orders);
    let (waiting, waker) = &mut *orders;
    if !(matches!(order, ReservationOrder::Check)
        && waiting.iter().any(|order| matches!(order, ReservationOrder::Check)))
    {
        waiting.push_back(order);
    }
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

/// Waits for the next order.
async fn next_order(orders: &Orders) -> ReservationOrder {
    std::future::poll_fn(|context| {
        let mut orders = lock(orders);
        match orders.0.pop_front() {
            Some(order) => Poll::Ready(order),
            None => {
                orders.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}

/// Removes the flows of an earlier run's reservations, which ended with its controller. They still
/// carry packets, so they stay until the app for all other packets has found the hosts.
async fn remove_earlier_flows(network: Network, desired: Desired) {
    let paths = paths(&network);
    let mut current = paths.load();
    while !current.is_settled() {
        current = paths.changed(current.version()).await;
    }
    network.sleep(KEEP_EARLIER_FLOWS).await;
    desired.complete();
}

/// The app.
#[derive(Clone, Default)]
pub struct Bandwidth(Reservations);

impl Bandwidth {
    /// Creates an app that serves the requests of this handle.
    #[must_use]
    pub fn new(reservations: &Reservations) -> Self {
        Bandwidth(reservations.clone())
    }
}

impl App for Bandwidth {
    type Handler = ();

    fn name(&self) -> &'static str {
        "bandwidth"
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
        let Bandwidth(reservations) = self;
        if reservations.0.network.set(network.clone()).is_ok() {
            let desired = network.desired();
            network.spawn(
                "flows of an earlier run",
                remove_earlier_flows(network.clone(), desired.clone()),
            );
            let (task_reservations, task_network) = (reservations.clone(), network.clone());
            let watch = move || {
                task_reservations.clone().watch_changes(task_network.clone(), desired.clone())
            };
            network.supervise("look at changes", watch);
        }
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}
