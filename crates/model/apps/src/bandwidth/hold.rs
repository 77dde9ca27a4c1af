//! The life of one reservation, from the request to its end.
//!
//! Each controller has a task for each stored reservation. It wants the flows of the stored route
//! in the switches; each controller installs those of the switches that obey it. One controller
//! decides: that which has the order, until the flows are confirmed, and then the leader. It stores
//! what it decides, and then the others want the same.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellrock_api::{AppEvent, Dpid, HostId, Network};
use bellrock_book::{Draft, NotOrdered};
use bellrock_services::desired::{Commit, Desired, DesiredFlows, NotCommitted};
use bellrock_services::paths::paths;
use futures_lite::FutureExt;

use super::book::{Orders, ReservationBook, ReservationOrder, lock, next_order, send_order};
use super::booking::{self, BookedModel, Booking, Status, Work, take, taken};
use super::errors::{NotReleased, NotReserved};
use super::names::Kbps;
use super::reservation::{Reservation, ReservationState};
use super::route::{FIRST_LINKS_WITHIN, HostRoute, LINKS_WITHIN, RouteState, capacity, routes};

/// Time for the switches of a path to confirm a reservation.
pub const CONFIRM_WITHIN: Duration = Duration::from_secs(5);

/// Maximum time to remove a reservation's flows; then its bandwidth is released anyway.
pub const CLEAR_WITHIN: Duration = Duration::from_secs(5);

/// Time for which a reservation stays on a path with a disconnected switch, when there is no other
/// path. The same time applies again after the switch has reconnected, until it confirms its part.
pub const AWAY_FOR: Duration = Duration::from_secs(30);

/// Name of the alarm that a reservation is lost. It ends when it is up again, or released.
const LOST: &str = "reservation_lost";

/// Time after which an unconfirmed switch is checked again, or a store that cannot be used.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Time after which a lost reservation is retried without a change of the network.
pub const RETRY_LOST: Duration = Duration::from_secs(30);

/// A valid request.
#[derive(Clone)]
pub(super) struct ValidRequest {
    pub(super) from: HostId,
    pub(super) to: HostId,
    pub(super) rate: Kbps,
    /// Name and number of the queue.
    pub(super) queue: Option<(String, u32)>,
}

/// The path of a reservation.
pub(super) struct HeldPath {
    route: HostRoute,
    doubt: Option<Doubt>,
    /// Whether hosts that were not seen count as being where they were: nobody has seen them since
    /// this controller knows of the reservation.
    assumes_hosts: bool,
    /// Whether the switches are to confirm the flows, although there is no doubt.
    is_unconfirmed: bool,
}

/// State of a reservation while it is unknown whether packets get through.
struct Doubt {
    why: String,
    /// Time of the next check, if nothing changes before.
    next_check: Duration,
    /// Time when the reservation is given up.
    deadline: Duration,
}

pub(super) struct ReservationTask {
    network: Network,
    desired: Desired,
    pub(super) book: Arc<ReservationBook>,
    id: u32,
    request: ValidRequest,
    pub(super) orders: Orders,
    /// The route whose flows are wanted in the switches.
    laid: Mutex<Option<HostRoute>>,
}

impl ReservationTask {
    pub(super) fn new(
        network: Network,
        book: Arc<ReservationBook>,
        id: u32,
        request: &ValidRequest,
        orders: Orders,
    ) -> Self {
        let (desired, request, laid) = (network.desired(), request.clone(), Mutex::default());
        ReservationTask { desired, network, book, id, request, orders, laid }
    }

    /// Keeps the reservation as it is stored, and decides when it is this controller's turn.
    pub(super) async fn keep(self, mut held: Option<HeldPath>) {
        loop {
            let Some(booking) = self.booking() else {
                // Another controller has released it.
                drop(self.withdraw_flows());
                self.end_alarm("reservation_released", "is released");
                return self.book.close(self.id);
            };
            held = self.follow(&booking, held);
            if matches!(booking.status, Status::Installed(_)) {
                // Another controller may have decided it, which publishes only at its own node.
                self.end_alarm("reservation_up", "is up");
            }
            let decides = self.decides(&booking);
            match self.next(held.as_ref(), decides).await {
                ReservationOrder::Changed if decides && booking.refused.is_some() => {
                    held = self.check(held).await;
                }
                ReservationOrder::Changed => {}
                ReservationOrder::Check if decides => held = self.check(held).await,
                ReservationOrder::Check => self.report_refusal(held.as_ref()).await,
                ReservationOrder::Release(answer) => {
                    let released = self.release().await;
                    if !matches!(released, Err(NotReleased::NotStored(_))) {
                        self.end_alarm("reservation_released", "is released");
                        self.book.close(self.id);
                        self.book.retry_lost();
                        return answer.resolve(released);
                    }
                    answer.resolve(released);
                }
            }
        }
    }

    /// Ends the alarm that the reservation is lost, if it is open at this controller.
    fn end_alarm(&self, name: &str, what: &str) {
        let ValidRequest { from, to, rate, .. } = &self.request;
        let text = format!("reservation {}, {rate} from {from} to {to}, {what}", self.id);
        let event = AppEvent::new(name, &text).ending(LOST, &self.id.to_string());
        if self.network.would_end(&event) {
            self.network.publish(event);
        }
    }

    /// Wants the flows of the stored route.
    fn follow(&self, booking: &Booking, held: Option<HeldPath>) -> Option<HeldPath> {
        if booking.route != *self.laid() {
            match &booking.route {
                Some(route) => drop(self.commit(route)),
                None => drop(self.withdraw_flows()),
            }
        }
        let route = booking.route.clone()?;
        match held {
            Some(held) if held.route == route => Some(held),
            _ => {
                let is_unfinished = booking.work.is_some() || booking.holds.len() > 1;
                Some(HeldPath {
                    route,
                    doubt: None,
                    assumes_hosts: true,
                    is_unconfirmed: is_unfinished || self.book.is_unverified(self.id),
                })
            }
        }
    }

    fn booking(&self) -> Option<Booking> {
        self.book.bookings.value(&booking::name(self.id)).map(|booking| (*booking).clone())
    }

    fn decides(&self, booking: &Booking) -> bool {
        let bookings = &self.book.bookings;
        booking.is_decided_by(bookings.node(), bookings.is_leader(), |node| bookings.is_alive(node))
    }

    /// Returns the next order. A lost or doubtful reservation is also checked from time to time.
    async fn next(&self, held: Option<&HeldPath>, decides: bool) -> ReservationOrder {
        let order = next_order(&self.orders);
        let next_check = match held {
            _ if !decides => return order.await,
            None => self.network.now() + RETRY_LOST,
            Some(HeldPath { doubt: Some(doubt), .. }) => doubt.next_check.min(doubt.deadline),
            Some(_) => return order.await,
        };
        let check = async {
            self.network.sleep_until(next_check).await;
            ReservationOrder::Check
        };
        order.or(check).await
    }

    /// Stores a change of the reservation, and publishes it if the reservation goes up or down, or
    /// moves. While the store cannot be used, it is tried again. `None`: another controller
    /// decides now, or the reservation is gone.
    async fn update(
        &self,
        change: impl Fn(&mut Booking) + Clone + Send + 'static,
    ) -> Option<Reservation> {
        let (id, node) = (self.id, self.book.node().to_owned());
        loop {
            let (change, node) = (change.clone(), node.clone());
            let plan = move |draft: &mut Draft<'_, BookedModel>| {
                let before = ours(draft, id, &node).ok_or(())?;
                let mut after = before.clone();
                change(&mut after);
                let shown = (before.shown(id).state, after.shown(id));
                draft.put(&booking::name(id), after);
                Ok::<_, ()>(shown)
            };
            match self.book.bookings.order(plan).await {
                Ok((before, reservation)) => {
                    self.book.set_verified(id);
                    if let Some(event) = state_change(&reservation, &before) {
                        self.network.publish(event);
                    }
                    return Some(reservation);
                }
                Err(NotOrdered::Refused(())) => return None,
                // The same again does no harm, if it was stored.
                Err(_) => self.network.sleep(ASK_AGAIN).await,
            }
        }
    }

    pub(super) async fn record_installed(&self, held: &HeldPath) -> Option<Reservation> {
        let route = held.route.clone();
        self.update(move |booking| {
            booking.status = Status::Installed(route.ports().collect());
            booking.work = None;
            booking.refused = None;
            booking.holds = vec![route.clone()];
            booking.route = Some(route.clone());
        })
        .await
    }

    /// Checks a reservation after a change, and moves it to another path if necessary.
    async fn check(&self, held: Option<HeldPath>) -> Option<HeldPath> {
        let booking = self.booking()?;
        if matches!(booking.work, Some(Work::Releasing(_))) {
            // The controller that had the order has ended.
            let _ = self.release().await;
            self.book.retry_lost();
            return None;
        }
        let Some(mut held) = held else {
            return self.record_result(self.reserve(BTreeSet::new(), None).await).await;
        };
        if let Some((dpid, why)) = booking.refused {
            let why = NotReserved::RefusedBy(dpid, why);
            return self.reserve_again([dpid].into(), Some(why)).await;
        }
        if held.assumes_hosts && held.route.has_seen_hosts(&self.network) {
            held.assumes_hosts = false;
        }
        let (why, next_check) = match held.route.state(&self.network, held.assumes_hosts) {
            RouteState::Intact if self.carries_rate(&held.route) => {
                return self.confirm_flows(held).await;
            }
            RouteState::Intact => return self.replace(held).await,
            RouteState::Broken => return self.replace(held).await,
            RouteState::Away(dpid) => (NotCommitted::Away(dpid).to_string(), Duration::MAX),
            RouteState::New(dpid, since) => {
                let why = format!("switch {dpid} has just reconnected");
                let first_links = since + FIRST_LINKS_WITHIN;
                if self.network.now() < first_links {
                    return self.keep_doubtful(held, why, first_links).await;
                }
                (why, since + LINKS_WITHIN)
            }
        };
        // The flows may still be in place: they stay until those of another path are confirmed.
        match self.find(&BTreeSet::new()).await {
            Ok(route) => match self.install(route, true).await {
                Ok(moved) => self.record_moved(moved).await,
                Err(_) => {
                    let commit = self.go_back(&held).await;
                    if commit.settled(&self.network, CLEAR_WITHIN).await.is_err() {
                        // While a switch is disconnected, nothing shows when the others have
                        // removed the flows.
                        self.network.sleep(CLEAR_WITHIN).await;
                    }
                    self.hold_only(&held.route).await;
                    self.keep_doubtful(held, why, next_check).await
                }
            },
            Err(_) => self.keep_doubtful(held, why, next_check).await,
        }
    }

    /// Wants the flows of the previous path again.
    async fn go_back(&self, held: &HeldPath) -> Commit {
        let route = held.route.clone();
        self.update(move |booking| booking.route = Some(route.clone())).await;
        self.commit(&held.route)
    }

    /// Releases the lines of all paths but one.
    async fn hold_only(&self, route: &HostRoute) {
        let route = route.clone();
        self.update(move |booking| booking.holds = vec![route.clone()]).await;
    }

    /// Whether no line of a route is known to carry less than the rate, by itself.
    fn carries_rate(&self, route: &HostRoute) -> bool {
        let (network, paths) = (&self.network, paths(&self.network).load());
        let settings = self.book.settings.watch().load();
        let least = self.request.rate.0;
        let mut capacities = route.lines().map(|line| capacity(line, &settings, network, &paths));
        capacities.all(|kbps| kbps.is_err() || kbps.is_ok_and(|kbps| kbps >= least))
    }

    /// Handles an intact path. A switch that was disconnected, or that refuses, may lack flows.
    async fn confirm_flows(&self, held: HeldPath) -> Option<HeldPath> {
        if held.doubt.is_none() && !held.is_unconfirmed && !self.is_refused(&held.route) {
            return Some(held);
        }
        let commit = self.commit(&held.route);
        match commit.confirmed(&self.network, CONFIRM_WITHIN).await {
            Ok(()) => {
                if held.is_unconfirmed {
                    let _ = commit.settled(&self.network, CLEAR_WITHIN).await;
                }
                let confirmed = HeldPath { doubt: None, is_unconfirmed: false, ..held };
                self.record_result(Ok(confirmed)).await
            }
            Err(NotCommitted::Refused(..)) => self.reserve_again(BTreeSet::new(), None).await,
            Err(error) => {
                let next_check = self.network.now() + ASK_AGAIN;
                self.keep_doubtful(held, error.to_string(), next_check).await
            }
        }
    }

    fn is_refused(&self, route: &HostRoute) -> bool {
        let state = self.desired.state().load();
        route.switches().any(|dpid| state.refused.contains_key(&dpid))
    }

    /// Stores that a switch of this controller refuses its part, for the one that decides.
    async fn report_refusal(&self, held: Option<&HeldPath>) {
        let Some(held) = held.filter(|held| self.is_refused(&held.route)) else { return };
        let commit = self.commit(&held.route);
        let confirmed = commit.confirmed(&self.network, CONFIRM_WITHIN).await;
        let Err(NotCommitted::Refused(dpid, why)) = confirmed else { return };
        let (name, route, why) = (booking::name(self.id), held.route.clone(), why.to_string());
        let plan = move |draft: &mut Draft<'_, BookedModel>| {
            let booking = draft.value(&name).filter(|it| it.route.as_ref() == Some(&route));
            let mut booking = booking.cloned().ok_or(())?;
            booking.refused = Some((dpid, why.clone()));
            draft.put(&name, booking);
            Ok::<_, ()>(())
        };
        // If it is not stored, the switch refuses again.
        let _ = self.book.bookings.order(plan).await;
    }

    /// Handles a broken path.
    async fn replace(&self, held: HeldPath) -> Option<HeldPath> {
        let found = match self.find(&BTreeSet::new()).await {
            Ok(found) => found,
            Err(why) => return self.mark_lost(why).await,
        };
        match self.install(found, true).await {
            Ok(moved) => self.record_moved(moved).await,
            Err(_) => {
                drop(held);
                self.reserve_again(BTreeSet::new(), None).await
            }
        }
    }

    async fn record_moved(&self, moved: HeldPath) -> Option<HeldPath> {
        let moved = self.record_result(Ok(moved)).await;
        self.book.retry_lost();
        moved
    }

    /// Releases all bandwidth, also that taken on another path, and reserves anew: a flow refused
    /// on one path may be accepted on another.
    async fn reserve_again(
        &self,
        excluded: BTreeSet<Dpid>,
        why: Option<NotReserved>,
    ) -> Option<HeldPath> {
        // Ignored: a remaining flow that leads nowhere has no effect.
        let _ = self.clear(None).await;
        self.book.retry_lost();
        self.record_result(self.reserve(excluded, why).await).await
    }

    /// Keeps a doubtful reservation for a while.
    async fn keep_doubtful(
        &self,
        held: HeldPath,
        why: String,
        next_check: Duration,
    ) -> Option<HeldPath> {
        let now = self.network.now();
        let deadline = match &held.doubt {
            // A different reason restarts the time.
            Some(doubt) if doubt.why == why => doubt.deadline,
            _ => now + AWAY_FOR,
        };
        if now >= deadline {
            return self.mark_lost(NotReserved::Doubtful(why)).await;
        }
        let text = why.clone();
        self.update(move |booking| booking.status = Status::Unknown(text.clone())).await;
        Some(HeldPath { doubt: Some(Doubt { why, next_check, deadline }), ..held })
    }

    /// Ends the hold on all lines.
    async fn mark_lost(&self, why: NotReserved) -> Option<HeldPath> {
        // Ignored: a remaining flow that leads nowhere has no effect.
        let _ = self.clear(Some(why.to_string())).await;
        self.book.retry_lost();
        None
    }

    /// Removes the flows, and releases the bandwidth. `lost`: why the reservation is lost.
    async fn clear(&self, lost: Option<String>) -> Result<(), NotCommitted> {
        let status = lost.clone().map(Status::Lost);
        self.update(move |booking| booking.route = None).await;
        let withdrawn = self.withdraw().await;
        self.update(move |booking| {
            booking.holds.clear();
            booking.refused = None;
            if let Some(status) = status.clone() {
                (booking.status, booking.work) = (status, None);
            }
        })
        .await;
        withdrawn
    }

    /// Records the result.
    async fn record_result(&self, result: Result<HeldPath, NotReserved>) -> Option<HeldPath> {
        match result {
            Ok(held) => {
                self.record_installed(&held).await;
                Some(held)
            }
            Err(why) => {
                let why = why.to_string();
                let lost = move |booking: &mut Booking| {
                    booking.status = Status::Lost(why.clone());
                    booking.work = None;
                };
                self.update(lost).await;
                None
            }
        }
    }

    /// Takes the bandwidth on a path, and installs the flows. If a switch refuses its part, tries
    /// paths without this switch. `refused`: the first refusal, which is a better reason than the
    /// lack of other paths.
    pub(super) async fn reserve(
        &self,
        mut excluded: BTreeSet<Dpid>,
        mut refused: Option<NotReserved>,
    ) -> Result<HeldPath, NotReserved> {
        loop {
            let found = match (self.find(&excluded).await, refused) {
                (Ok(found), before) => {
                    refused = before;
                    found
                }
                (Err(_), Some(refused)) => return Err(refused),
                (Err(why), None) => return Err(why),
            };
            match self.install(found, false).await {
                Err(NotReserved::NotInstalled(error @ NotCommitted::Refused(dpid, _)))
                    if excluded.insert(dpid) =>
                {
                    refused.get_or_insert(error.into());
                }
                held => return held,
            }
        }
    }

    /// Takes the bandwidth on the first path that has it, besides the lines that are held. No path
    /// passes `excluded`.
    async fn find(&self, excluded: &BTreeSet<Dpid>) -> Result<HostRoute, NotReserved> {
        let ValidRequest { from, to, rate, .. } = self.request;
        let settings = self.book.settings.watch().load();
        let needs_meter = self.request.queue.is_none();
        let routes = routes(&self.network, &settings, [from, to], rate, needs_meter, excluded)?;
        let (id, node) = (self.id, self.book.node().to_owned());
        let plan = move |draft: &mut Draft<'_, BookedModel>| {
            let mut booking = ours(draft, id, &node).cloned().ok_or(NotReserved::Released(id))?;
            let Some(index) = take(draft, &routes, &booking.holds, rate) else {
                return Err(taken(draft, &routes, [from, to], rate));
            };
            let route = routes[index].0.clone();
            if !booking.holds.contains(&route) {
                booking.holds.push(route.clone());
            }
            (booking.route, booking.refused) = (Some(route.clone()), None);
            draft.put(&booking::name(id), booking);
            Ok(route)
        };
        Ok(self.book.bookings.order(plan).await?)
    }

    /// Installs the flows of a route that is stored, in place of those of the previous path. If
    /// this fails without a previous path, the bandwidth is released. Otherwise the caller releases
    /// it, when the flows of both paths are removed or restored.
    pub(super) async fn install(
        &self,
        route: HostRoute,
        is_move: bool,
    ) -> Result<HeldPath, NotReserved> {
        let commit = self.commit(&route);
        // Bandwidth is released when its flows are gone, or after the time limit.
        match commit.confirmed(&self.network, CONFIRM_WITHIN).await {
            Ok(()) => {
                if is_move {
                    let _ = commit.settled(&self.network, CLEAR_WITHIN).await;
                }
                let (doubt, assumes_hosts, is_unconfirmed) = (None, false, false);
                Ok(HeldPath { route, doubt, assumes_hosts, is_unconfirmed })
            }
            Err(error) if is_move => Err(error.into()),
            Err(error) => {
                let _ = self.clear(None).await;
                Err(error.into())
            }
        }
    }

    /// Removes the flows, releases the bandwidth, and ends the reservation.
    async fn release(&self) -> Result<(), NotReleased> {
        let (id, node) = (self.id, self.book.node().to_owned());
        let plan = move |draft: &mut Draft<'_, BookedModel>| {
            let booking = draft.value(&booking::name(id)).cloned();
            let mut booking = booking.ok_or(NotReleased::Unknown(id))?;
            (booking.work, booking.route) = (Some(Work::Releasing(node.clone())), None);
            draft.put(&booking::name(id), booking);
            Ok(())
        };
        match self.book.bookings.order(plan).await {
            Ok(()) => {}
            Err(NotOrdered::Refused(why)) => return Err(why),
            Err(error) => return Err(NotReleased::NotStored(error.to_string())),
        }
        let withdrawn = self.withdraw().await;
        self.remove().await;
        withdrawn.map_err(NotReleased::FlowsLeft)
    }

    /// Removes the reservation from the store. While the store cannot be used, it is tried again.
    pub(super) async fn remove(&self) {
        let (id, node) = (self.id, self.book.node().to_owned());
        loop {
            let node = node.clone();
            let plan = move |draft: &mut Draft<'_, BookedModel>| {
                if ours(draft, id, &node).is_some() {
                    draft.remove(&booking::name(id));
                }
                Ok::<_, ()>(())
            };
            match self.book.bookings.order(plan).await {
                Ok(()) => return,
                Err(_) => self.network.sleep(ASK_AGAIN).await,
            }
        }
    }

    fn commit(&self, route: &HostRoute) -> Commit {
        let ValidRequest { rate, queue, .. } = &self.request;
        let queue = queue.as_ref().map(|(_, number)| *number);
        *self.laid() = Some(route.clone());
        self.desired.commit(self.id, route.entries(self.id, *rate, queue))
    }

    fn withdraw_flows(&self) -> Commit {
        *self.laid() = None;
        self.desired.withdraw(self.id)
    }

    async fn withdraw(&self) -> Result<(), NotCommitted> {
        self.withdraw_flows().settled(&self.network, CLEAR_WITHIN).await
    }

    fn laid(&self) -> std::sync::MutexGuard<'_, Option<HostRoute>> {
        self.laid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stored reservation about which this controller decides.
fn ours<'d>(draft: &'d Draft<'_, BookedModel>, id: u32, node: &str) -> Option<&'d Booking> {
    let booking = draft.value(&booking::name(id))?;
    let is_alive = |node: &str| draft.is_alive(node);
    booking.is_decided_by(node, draft.is_leader(), is_alive).then_some(booking)
}

/// Returns the event that reports a change of a reservation from the state `before`. A reservation
/// that is not confirmed counts as unchanged.
fn state_change(reservation: &Reservation, before: &ReservationState) -> Option<AppEvent> {
    let Reservation { id, from, to, rate, state, .. } = reservation;
    let what = format!("reservation {id}, {rate} from {from} to {to},");
    match (state, before) {
        (now, before) if now == before => None,
        (ReservationState::Lost(_), ReservationState::Lost(_)) => None,
        (ReservationState::Installed(ports), before) => {
            let name = match before {
                ReservationState::Installed(_) => "reservation_moved",
                ReservationState::Unknown(_) => return None,
                ReservationState::Pending | ReservationState::Lost(_) => "reservation_up",
            };
            let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
            let up = AppEvent::new(name, &format!("{what} is up, by {}", ports.join(", ")));
            Some(up.ending(LOST, &id.to_string()))
        }
        (ReservationState::Lost(why), _) => {
            let lost = AppEvent::new(LOST, &format!("{what} is lost: {why}"));
            Some(lost.alarming_until_ended(&id.to_string()))
        }
        (ReservationState::Pending | ReservationState::Unknown(_), _) => None,
    }
}

/// Makes the tasks of these reservations look at what is stored. New ones get a task.
pub(super) fn take_changed(book: &Arc<ReservationBook>, network: &Network, changed: BTreeSet<u32>) {
    for id in changed {
        let mut tasks = lock(&book.tasks);
        if let Some(orders) = tasks.get(&id) {
            send_order(orders, ReservationOrder::Changed);
            continue;
        }
        if book.is_ordered(id) {
            continue;
        }
        let Some(booking) = book.bookings.value(&booking::name(id)) else { continue };
        let orders = Orders::default();
        tasks.insert(id, Arc::clone(&orders));
        drop(tasks);
        let Booking { from, to, rate, .. } = *booking;
        let valid = ValidRequest { from, to, rate, queue: booking.queue.clone() };
        let network = network.clone();
        let task = ReservationTask::new(network.clone(), Arc::clone(book), id, &valid, orders);
        network.spawn(format!("reservation {id}"), task.keep(None));
    }
}
