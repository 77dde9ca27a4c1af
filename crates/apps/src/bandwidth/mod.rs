//! Bandwidth on demand: whoever asks for a rate from one host to another gets it on every line of a path,
//! or is told why not, and nothing is changed.
//!
//! - `ledger` is where bandwidth is given away: a transaction takes it on all lines of the first of
//!   several paths that has so much, or on none (McNettle, Fig. 6).
//! - `route` is such a path with its flows: packets from the one host to the other, kept to their rate by a
//!   meter where they come in (1.3), or put into a queue that is set up in the switches.
//! - `hold` is a reservation from the request to the release: it takes, installs, and moves to another
//!   path when the one it has breaks. Each has a task of its own.
//! - [`Reservations`] is the handle to ask by, for other apps and for the command.

mod hold;
mod ledger;
mod names;
mod route;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use bellrock_api::{
    Answer, App, Dpid, Forwards, HostId, LeftFlows, Needs, Network, Promise, SwitchInfo,
    SwitchPort, Watch, promise,
};
use bellrock_services::desired::{Desired, DesiredFlows, NotCommitted};
use bellrock_services::paths::paths;

pub use hold::{ALTERNATIVES, AWAY_FOR, CLEAR_WITHIN, CONFIRM_WITHIN, RETRY_LOST};
use ledger::Ledger;
pub use ledger::Line;
pub use names::{HostName, Kbps, NoHostName, NoRate, NotOneHost};
pub use route::LINKS_WITHIN;

/// Most reservations at a time. Their numbers, 1 to this, are those of their meters too.
pub const MAX_RESERVATIONS: u32 = 10_000;

/// How long the flows of reservations of an earlier run are kept, from when the links are found.
pub const KEEP_LEFT_FLOWS: Duration = Duration::from_secs(60);

/// What can be set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BandwidthSettings {
    /// What every line carries; `None`: what its port says.
    pub rate: Option<Kbps>,
    /// What single lines carry, in both directions, by the port at either end, whatever else is said. Where both
    /// ends are here, the less of the two.
    pub lines: BTreeMap<SwitchPort, Kbps>,
    /// Queues that are set up in all switches, by name.
    pub queues: BTreeMap<String, u32>,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The host that sends.
    pub from: HostName,
    /// The host that receives.
    pub to: HostName,
    /// How much.
    pub rate: Kbps,
    /// The queue that its packets get; `None`: a meter keeps them to their rate.
    pub queue: Option<String>,
    /// How long to wait for others to release what is missing.
    pub wait: Duration,
}

/// What was reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its number, to release it by.
    pub id: u32,
    /// The host that sends.
    pub from: HostId,
    /// The host that receives.
    pub to: HostId,
    /// How much.
    pub rate: Kbps,
    /// The name of its queue.
    pub queue: Option<String>,
    /// How it is.
    pub state: State,
}

/// How a reservation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is being made.
    Pending,
    /// Its flows are confirmed; packets leave switches by these ports.
    Installed(Vec<SwitchPort>),
    /// Whether packets get through is not known, for this reason: a switch of its path is not connected, or just back, and
    /// there is no other path. It is kept for [`AWAY_FOR`].
    Unknown(String),
    /// Its path broke, and there is no other yet. It holds nothing; it is tried again when the network changes,
    /// when another is released or lost, and after [`RETRY_LOST`].
    Lost(String),
}

/// Why nothing was reserved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReserved {
    /// The app is not in a running controller.
    #[error("no controller runs with this app")]
    NotRunning,
    /// A name is not that of one host.
    #[error(transparent)]
    Host(#[from] NotOneHost),
    /// It would be from a host to itself.
    #[error("{0} is both ends; name two hosts")]
    SameHost(HostId),
    /// They are in different VLANs, and nothing between them turns one into the other.
    #[error("{from} and {to} are in different VLANs; bandwidth is reserved within one")]
    OtherVlan {
        /// The host that sends.
        from: HostId,
        /// The host that receives.
        to: HostId,
    },
    /// They are at the same port, so that their packets do not pass the switch.
    #[error("both hosts are at port {0}, so their packets do not pass the switch")]
    SamePort(SwitchPort),
    /// There is one between these hosts already.
    #[error("from {from} to {to} there is reservation {id} already; release it first")]
    Reserved {
        /// The host that sends.
        from: HostId,
        /// The host that receives.
        to: HostId,
        /// Its number.
        id: u32,
    },
    /// There are too many.
    #[error("there are {MAX_RESERVATIONS} reservations already; release one first")]
    TooMany,
    /// No queue has this name.
    #[error("there is no queue {name:?}; {}", known_queues(known))]
    UnknownQueue {
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The switch of a host is away.
    #[error("switch {0} is not connected, and a host is there")]
    NotConnected(Dpid),
    /// The switch where packets come in speaks 1.0.
    #[error(
        "unsupported: switch {0} speaks OpenFlow 1.0, which has no meters; name a queue that is set up in the \
         switches"
    )]
    NoMeters(Dpid),
    /// It is not known what a line carries.
    #[error("{0} does not say what it carries; set `rate`, or `lines` for this one")]
    NoRate(Line),
    /// A line would carry less than what is asked for, if nobody had anything of it.
    #[error("{line} carries {carries}, less than {rate}, and there is no path without such a line")]
    AboveRate {
        /// What is asked for.
        rate: Kbps,
        /// The line.
        line: Line,
        /// What it carries.
        carries: Kbps,
    },
    /// No path leads there.
    #[error("no path leads from {from} to {to}")]
    NoPath {
        /// The host that sends.
        from: HostId,
        /// The host that receives.
        to: HostId,
    },
    /// Others have what is missing.
    #[error("{line} has {free} left of {carries}, less than {rate}, and no other path has so much")]
    Taken {
        /// What is asked for.
        rate: Kbps,
        /// The line of the shortest path that has the least left.
        line: Line,
        /// What is left of it.
        free: Kbps,
        /// What it carries.
        carries: Kbps,
    },
    /// A host has gone or moved meanwhile.
    #[error("host {0} is not there any more")]
    Gone(HostId),
    /// It was not known for too long whether packets get through.
    #[error("{0}, for too long")]
    Doubtful(String),
    /// The flows could not be installed, and what was reserved is given back.
    #[error("{0}")]
    NotInstalled(#[from] NotCommitted),
}

fn known_queues(known: &[String]) -> String {
    match known {
        [] => "none is configured (`queues: [NAME=NUMBER]`)".to_owned(),
        known => format!("there are: {}", known.join(", ")),
    }
}

/// Why a reservation was not released as it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReleased {
    /// There is none with this number.
    #[error("there is no reservation {0}; `bellrock reservations` lists those that there are")]
    Unknown(u32),
    /// It is released, but flows of it are left.
    #[error("it is released, but flows of it may be left: {0}")]
    FlowsLeft(NotCommitted),
}

/// The handle by which bandwidth is reserved. All clones are the same.
#[derive(Clone, Default)]
pub struct Reservations(Arc<Inner>);

#[derive(Default)]
struct Inner {
    settings: BandwidthSettings,
    /// Since the app has started.
    network: OnceLock<Network>,
    ledger: Ledger,
    book: Mutex<BTreeMap<u32, Entry>>,
}

/// What the book has of a reservation.
struct Entry {
    told: Reservation,
    orders: Orders,
}

/// What the task of a reservation is told to do.
enum Order {
    /// The network has changed: look whether the path is still there.
    Look,
    /// Give all back, and end.
    Release(Promise<Result<(), NotReleased>>),
}

/// The orders of one reservation.
type Orders = Arc<Mutex<(VecDeque<Order>, Option<Waker>)>>;

impl Reservations {
    /// A handle, for an app with these settings.
    #[must_use]
    pub fn new(settings: BandwidthSettings) -> Self {
        Reservations(Arc::new(Inner { settings, ..Inner::default() }))
    }

    /// Reserves. It goes on whether or not somebody waits for the answer; `None`: the controller has ended
    /// meanwhile.
    pub fn reserve(&self, request: Request) -> Answer<Result<Reservation, NotReserved>> {
        let (promise, answer) = promise();
        match self.open(&request) {
            Ok((network, id, asked)) => {
                let task = hold::hold(network.clone(), self.clone(), asked, request.wait, promise);
                network.spawn(format!("reservation {id}"), task);
            }
            Err(error) => promise.keep(Err(error)),
        }
        answer
    }

    /// Releases a reservation.
    pub fn release(&self, id: u32) -> Answer<Result<(), NotReleased>> {
        let (promise, answer) = promise();
        match self.book().get(&id) {
            Some(entry) => give(&entry.orders, Order::Release(promise)),
            None => promise.keep(Err(NotReleased::Unknown(id))),
        }
        answer
    }

    /// All reservations, by number.
    #[must_use]
    pub fn list(&self) -> Vec<Reservation> {
        self.book().values().map(|entry| entry.told.clone()).collect()
    }

    /// What is reserved of a line.
    #[must_use]
    pub fn reserved(&self, line: Line) -> Kbps {
        Kbps(self.0.ledger.promised(line))
    }

    /// Finds out who and what is meant, and gives it a number.
    fn open(&self, request: &Request) -> Result<(&Network, u32, hold::Asked), NotReserved> {
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
        let same = |entry: &&Entry| (entry.told.from, entry.told.to) == (from, to);
        if let Some(id) = book.values().find(same).map(|entry| entry.told.id) {
            return Err(NotReserved::Reserved { from, to, id });
        }
        let id = (1..=MAX_RESERVATIONS).find(|id| !book.contains_key(id));
        let id = id.ok_or(NotReserved::TooMany)?;
        let (rate, state) = (request.rate, State::Pending);
        let told = Reservation { id, from, to, rate, queue: request.queue.clone(), state };
        let orders = Orders::default();
        book.insert(id, Entry { told, orders: Arc::clone(&orders) });
        Ok((network, id, hold::Asked { id, from, to, rate, queue, orders }))
    }

    fn queue(&self, name: &str) -> Result<u32, NotReserved> {
        let queues = &self.0.settings.queues;
        queues.get(name).copied().ok_or_else(|| NotReserved::UnknownQueue {
            name: name.to_owned(),
            known: queues.keys().cloned().collect(),
        })
    }

    /// Notes how a reservation is; returns it.
    fn note(&self, id: u32, state: State) -> Option<Reservation> {
        let mut book = self.book();
        let told = &mut book.get_mut(&id)?.told;
        told.state = state;
        Some(told.clone())
    }

    /// Ends a reservation. Who wanted it released meanwhile is told that there is none.
    fn close(&self, id: u32) {
        let closed = self.book().remove(&id);
        let Some(Entry { orders, .. }) = closed else { return };
        let waiting = std::mem::take(&mut lock(&orders).0);
        for order in waiting {
            if let Order::Release(answer) = order {
                answer.keep(Err(NotReleased::Unknown(id)));
            }
        }
    }

    /// Has every reservation that is lost look whether there is a path now: bandwidth was given back.
    fn look_for_lost(&self) {
        for entry in self.book().values() {
            if matches!(entry.told.state, State::Lost(_)) {
                give(&entry.orders, Order::Look);
            }
        }
    }

    /// Has every reservation look whether its path is still there, each time that something changes.
    async fn look_whenever<T>(self, changes: Watch<T>) {
        let mut seen = changes.load().version();
        loop {
            seen = changes.changed(seen).await.version();
            for entry in self.book().values() {
                give(&entry.orders, Order::Look);
            }
        }
    }

    /// Has those reservations look that pass a switch which refuses something, each time that one does.
    async fn look_whenever_refused(self, desired: Desired) {
        let mut before = desired.state().load();
        loop {
            let state = desired.state().changed(before.version()).await;
            let is_new = |(dpid, times): &(&Dpid, &u64)| before.refusals.get(dpid) != Some(times);
            let new: BTreeSet<Dpid> =
                state.refusals.iter().filter(is_new).map(|(dpid, _)| *dpid).collect();
            if !new.is_empty() {
                self.look_at(&new);
            }
            before = state;
        }
    }

    /// Has those reservations look that pass one of these switches. One that is lost is not among them: it would be made
    /// to try again by its own refusal.
    fn look_at(&self, switches: &BTreeSet<Dpid>) {
        for entry in self.book().values() {
            if let State::Installed(ports) = &entry.told.state
                && ports.iter().any(|port| switches.contains(&port.dpid))
            {
                give(&entry.orders, Order::Look);
            }
        }
    }

    fn book(&self) -> MutexGuard<'_, BTreeMap<u32, Entry>> {
        // Each change of it is one insertion, removal or assignment.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock(orders: &Orders) -> MutexGuard<'_, (VecDeque<Order>, Option<Waker>)> {
    // Each change of it is one insertion or removal.
    orders.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives an order. Whoever is to look already, looks once.
fn give(orders: &Orders, order: Order) {
    let mut orders = lock(orders);
    let (waiting, waker) = &mut *orders;
    if !(matches!(order, Order::Look) && waiting.iter().any(|order| matches!(order, Order::Look))) {
        waiting.push_back(order);
    }
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

/// Waits for the next order.
async fn next(orders: &Orders) -> Order {
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

/// Reservations end with the controller, and what an earlier run left is nobody's. Its flows carry packets still, so they
/// stay until whoever carries all others has found out where hosts are.
async fn let_left_go(network: Network, desired: Desired) {
    let paths = paths(&network);
    let mut known = paths.load();
    while !known.is_settled() {
        known = paths.changed(known.version()).await;
    }
    network.sleep(KEEP_LEFT_FLOWS).await;
    desired.complete();
}

/// The app.
#[derive(Clone, Default)]
pub struct Bandwidth(Reservations);

impl Bandwidth {
    /// Serves the requests that come by this handle.
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

    fn left_flows(&self) -> LeftFlows {
        LeftFlows::Keep
    }

    fn start(&self, network: &Network) {
        let Bandwidth(reservations) = self;
        if reservations.0.network.set(network.clone()).is_ok() {
            let desired = network.desired();
            network.spawn("flows of an earlier run", let_left_go(network.clone(), desired.clone()));
            let its = reservations.clone();
            let whenever_refused = move || its.clone().look_whenever_refused(desired.clone());
            network.supervise("look when switches refuse", whenever_refused);
            let (its, paths) = (reservations.clone(), paths(network));
            let whenever_paths = move || its.clone().look_whenever(paths.clone());
            network.supervise("look when paths change", whenever_paths);
            let (its, hosts) = (reservations.clone(), network.hosts().clone());
            let whenever_hosts = move || its.clone().look_whenever(hosts.clone());
            network.supervise("look when hosts change", whenever_hosts);
            let (its, switches) = (reservations.clone(), network.watch_switches().clone());
            let whenever_switches = move || its.clone().look_whenever(switches.clone());
            network.supervise("look when switches change", whenever_switches);
        }
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}
