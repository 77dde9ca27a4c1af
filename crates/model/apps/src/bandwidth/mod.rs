//! Bandwidth on demand: a request for a rate from one host to another gets it on every line of a
//! path, or fails with a reason and changes nothing.
//!
//! - `booking` is a reservation as it is stored. An order takes bandwidth on all lines of the first
//!   of several paths with enough left, or on none, whatever other orders there are at the moment,
//!   also at other controllers of a cluster. `ledger` is what is reserved on each line.
//! - `route` is such a path with its flows. A meter at the ingress switch limits packets to their
//!   rate (1.3), or they enter a queue that is set up in the switches.
//! - `book` is what a controller knows of all reservations, and the orders for the task of each.
//! - `hold` is a reservation from request to release: it takes bandwidth, installs flows, and moves
//!   to another path when its path breaks. Each reservation has its own task at each controller.
//! - [`Reservations`] is the handle for requests, for other apps and for the command.

mod book;
mod booking;
mod errors;
mod hold;
mod ledger;
mod names;
#[cfg(feature = "orders")]
mod orders;
mod request;
mod reservation;
mod route;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::runtime::PromiseFuture;
use bellrock_api::runtime::{Promise, promise};
use bellrock_api::{App, Dpid, EarlierFlows, Forwards, Hosts, Needs, Network, SwitchInfo};
use bellrock_book::{EntryStore, MemoryStore};
use bellrock_services::desired::{Desired, DesiredFlows};
use bellrock_services::hosts::{ask_for, believe};
use bellrock_services::paths::paths;
use futures_lite::FutureExt;

use book::{ReservationBook, ReservationOrder, lock, send_order};
use booking::Bookings;
use hold::take_changed;

pub use errors::{NotReleased, NotReserved};
pub use hold::{AWAY_FOR, CLEAR_WITHIN, CONFIRM_WITHIN, RETRY_LOST};
pub use ledger::LinkDirection;
pub use names::{HostName, Kbps, NoHostName, NoRate, NotOneHost};
pub use reservation::{
    BandwidthSettings, MAX_RESERVATIONS, Reservation, ReservationRequest, ReservationState,
};
pub use route::{ALTERNATIVES, FIRST_LINKS_WITHIN, LINKS_WITHIN};

/// How long a request waits for the answers of hosts that are unknown by their addresses.
const SEARCH_TIME: Duration = Duration::from_millis(1500);

/// Time for which flows of reservations of an earlier run are kept, after the links are found.
pub const KEEP_EARLIER_FLOWS: Duration = Duration::from_secs(60);

/// The handle for requests. All clones share the same reservations.
#[derive(Clone)]
pub struct Reservations(Arc<ReservationBook>);

impl Default for Reservations {
    fn default() -> Self {
        Reservations::new(BandwidthSettings::default())
    }
}

impl Reservations {
    /// Creates a handle for an app with these settings. Reservations end with the controller.
    #[must_use]
    pub fn new(settings: BandwidthSettings) -> Self {
        Reservations::stored(settings, Arc::new(MemoryStore::default()))
    }

    /// The same, with a store of this controller alone: reservations come back after a restart, and
    /// their flows are kept as they are. Fails to order anything while the store has entries that
    /// this release cannot read.
    #[must_use]
    pub fn stored(settings: BandwidthSettings, store: Arc<dyn EntryStore>) -> Self {
        Reservations::of(settings, Bookings::alone(store))
    }

    /// The same, with a store that several controllers share. `node`: the name of this one.
    #[must_use]
    pub fn shared(settings: BandwidthSettings, store: Arc<dyn EntryStore>, node: String) -> Self {
        Reservations::of(settings, Bookings::shared(store, node))
    }

    fn of(settings: BandwidthSettings, bookings: Bookings) -> Self {
        Reservations(ReservationBook::new(settings, bookings))
    }

    /// Replaces the rates of lines and the queues. Every reservation checks its path: one whose
    /// line carries less than its rate now is moved to another path, or lost. Reservations that
    /// together exceed a smaller rate stay, and further ones get nothing on that line. Requests
    /// that wait already go on with the earlier rates.
    pub fn change(&self, settings: BandwidthSettings) {
        self.0.settings.publish(settings);
        self.0.check_all();
    }

    /// Makes a reservation, even if the answer is dropped. `None` if the controller ends meanwhile.
    /// In a cluster it is stored for all controllers, and this one has confirmed the flows of its
    /// own switches.
    pub fn reserve(
        &self,
        request: ReservationRequest,
    ) -> PromiseFuture<Result<Reservation, NotReserved>> {
        let (promise, answer) = promise();
        match (self.check_request(&request), self.0.network.get()) {
            (Ok((network, valid)), _) => {
                let (from, to) = (valid.from, valid.to);
                let task = request::reserve(
                    network.clone(),
                    Arc::clone(&self.0),
                    valid,
                    request.wait,
                    promise,
                );
                network.spawn(format!("reservation from {from} to {to}"), task);
            }
            (Err(NotReserved::Host(NotOneHost::Unknown(_))), Some(network)) => {
                let task = self.clone().search_and_reserve(network.clone(), request, promise);
                network.spawn("search for hosts of a reservation", task);
            }
            (Err(error), _) => promise.resolve(Err(error)),
        }
        answer
    }

    /// Asks for hosts that are unknown by their addresses, as after a restart, and reserves.
    async fn search_and_reserve(
        self,
        network: Network,
        request: ReservationRequest,
        promise: Promise<Result<Reservation, NotReserved>>,
    ) {
        let until = network.now() + SEARCH_TIME;
        let names = [request.from, request.to];
        let unknown = |hosts: &Hosts| {
            let unknown = names.into_iter().filter(|name| name.find(hosts).is_err());
            unknown.filter_map(HostName::ipv4).collect::<Vec<_>>()
        };
        let hosts = network.hosts();
        for (ip, vlan) in unknown(&hosts.load()) {
            ask_for(&network, ip, vlan);
        }
        loop {
            let seen = hosts.load();
            let now = network.now();
            let newer = hosts.newer(seen.version());
            if unknown(&seen).is_empty()
                || network.timeout(until.saturating_sub(now), newer).await.is_none()
            {
                break;
            }
        }
        match self.check_request(&request) {
            Ok((_, valid)) => {
                request::reserve(
                    network.clone(),
                    Arc::clone(&self.0),
                    valid,
                    request.wait,
                    promise,
                )
                .await;
            }
            Err(error) => promise.resolve(Err(error)),
        }
    }

    /// Releases a reservation, at whichever controller of a cluster it was made.
    pub fn release(&self, id: u32) -> PromiseFuture<Result<(), NotReleased>> {
        let (promise, answer) = promise();
        match lock(&self.0.tasks).get(&id) {
            Some(orders) => send_order(orders, ReservationOrder::Release(promise)),
            None => promise.resolve(Err(NotReleased::Unknown(id))),
        }
        answer
    }

    /// Lists all reservations, by number.
    #[must_use]
    pub fn list(&self) -> Vec<Reservation> {
        self.0.list()
    }

    /// Reserved rate on a line.
    #[must_use]
    pub fn reserved(&self, line: LinkDirection) -> Kbps {
        Kbps(self.0.bookings.with_model(|model| model.reserved(line)))
    }

    /// Whether the reservations of the cluster are known. Always, if this controller is alone.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.0.bookings.is_read()
    }

    /// Resolves the hosts and the queue of a request.
    fn check_request(
        &self,
        request: &ReservationRequest,
    ) -> Result<(&Network, hold::ValidRequest), NotReserved> {
        let network = self.0.network.get().ok_or(NotReserved::NotRunning)?;
        let queue = request.queue.as_deref();
        let queue = queue
            .map(|name| self.0.queue(name).map(|number| (name.to_owned(), number)))
            .transpose()?;
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
        Ok((network, hold::ValidRequest { from, to, rate: request.rate, queue }))
    }

    /// Wants the flows of all stored reservations, before the first switch comes up: they are left
    /// as they are.
    fn restore(&self, network: &Network, desired: &Desired) {
        let stored = self.0.stored_reservations();
        let mut hosts = Vec::new();
        for (id, booking) in &stored {
            let Some(route) = &booking.route else { continue };
            let queue = booking.queue.as_ref().map(|(_, number)| *number);
            desired.set(*id, route.entries(*id, booking.rate, queue));
            hosts.extend(route.hosts());
        }
        if !hosts.is_empty() {
            believe(network, hosts);
        }
        *lock(&self.0.unverified) = stored.keys().copied().collect();
        take_changed(&self.0, network, stored.into_keys().collect());
    }

    /// Makes reservations check their paths: all of them when paths, hosts or switches change, or
    /// this controller becomes the leader, and those over a switch each time that it refuses a
    /// change. Nothing is checked until links have been found.
    async fn watch_changes(self, network: Network, desired: Desired) {
        let (paths, hosts, switches) = (paths(&network), network.hosts(), network.watch_switches());
        let bookings = &self.0.bookings;
        let versions =
            || (paths.load().version(), hosts.load().version(), switches.load().version());
        let (mut seen, mut before) = (versions(), desired.state().load());
        let (mut is_ready, mut was_leader) = (false, bookings.is_leader());
        loop {
            let stored = bookings.changes().load().version();
            let (changed, has_removed) = bookings.with_model(booking::BookedModel::take_changed);
            take_changed(&self.0, &network, changed);
            let is_leader = bookings.is_leader();
            if !is_ready && paths.load().is_settled() {
                is_ready = true;
                self.verify(&desired).await;
                self.0.check_all();
            } else if is_ready && is_leader && !was_leader {
                self.0.check_all();
            } else if is_ready && has_removed {
                self.0.retry_lost();
            }
            was_leader = is_leader;
            let network_changes =
                paths.newer(seen.0).or(hosts.newer(seen.1)).or(switches.newer(seen.2));
            let refusals = desired.state().newer(before.version());
            let store_changes = bookings.changes().newer(stored);
            network_changes.or(refusals).or(store_changes).await;
            if versions() != std::mem::replace(&mut seen, versions()) && is_ready {
                self.0.check_all();
            }
            let state = desired.state().load();
            let is_new = |(dpid, times): &(&Dpid, &u64)| before.refusals.get(dpid) != Some(times);
            let new: BTreeSet<Dpid> =
                state.refusals.iter().filter(is_new).map(|(dpid, _)| *dpid).collect();
            self.0.check_switches(&new);
            before = state;
        }
    }

    /// Finds the reservations of an earlier run whose flows the switches have. The others are
    /// checked one by one.
    async fn verify(&self, desired: &Desired) {
        let unverified = lock(&self.0.unverified).clone();
        if !unverified.is_empty() {
            let unsettled = desired.unsettled().await;
            lock(&self.0.unverified).retain(|id| unsettled.contains_key(id));
        }
    }
}

/// Removes the flows of an earlier run's reservations that are not stored. They still carry
/// packets, so they stay until the app for all other packets has found the hosts.
async fn remove_earlier_flows(network: Network, desired: Desired, book: Reservations) {
    let paths = paths(&network);
    let mut current = paths.load();
    while !current.is_settled() {
        current = paths.changed(current.version()).await;
    }
    network.sleep(KEEP_EARLIER_FLOWS).await;
    let changes = book.0.bookings.changes();
    let mut seen = changes.load();
    while !book.is_read() {
        seen = changes.changed(seen.version()).await;
    }
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

crate::boxed::boxed!(Bandwidth);

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
            reservations.restore(network, &desired);
            network
                .spawn("stored reservations", reservations.0.bookings.clone().run(network.clone()));
            network.spawn(
                "flows of an earlier run",
                remove_earlier_flows(network.clone(), desired.clone(), reservations.clone()),
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
