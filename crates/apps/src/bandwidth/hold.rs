//! The life of one reservation, from the request to its end.

use std::collections::BTreeSet;
use std::time::Duration;

use bellrock_api::runtime::Promise;
use bellrock_api::{AppEvent, Dpid, Host, HostId, Network, SwitchPort};
use bellrock_services::desired::{Commit, Desired, DesiredFlows, NotCommitted};
use bellrock_services::paths::{Path, paths};
use futures_lite::FutureExt;

use super::ledger::{LedgerPath, release, take_one};
use super::route::{FIRST_LINKS_WITHIN, HostRoute, LINKS_WITHIN, RouteState, capacity};
use super::{
    Kbps, LinkDirection, NotReleased, NotReserved, Orders, Reservation, ReservationOrder,
    ReservationState, Reservations, next_order,
};

/// Maximum number of paths that are tried, shortest first.
pub const ALTERNATIVES: usize = 8;

/// Time for the switches of a path to confirm a reservation.
pub const CONFIRM_WITHIN: Duration = Duration::from_secs(5);

/// Maximum time to remove a reservation's flows; then its bandwidth is released anyway.
pub const CLEAR_WITHIN: Duration = Duration::from_secs(5);

/// Time for which a reservation stays on a path with a disconnected switch, when there is no other
/// path. The same time applies again after the switch has reconnected, until it confirms its part.
pub const AWAY_FOR: Duration = Duration::from_secs(30);

/// Time after which an unconfirmed switch is checked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Time after which a lost reservation is retried without a change of the network.
pub const RETRY_LOST: Duration = Duration::from_secs(30);

/// A valid request.
pub(super) struct ValidRequest {
    pub(super) id: u32,
    pub(super) from: HostId,
    pub(super) to: HostId,
    pub(super) rate: Kbps,
    pub(super) queue: Option<u32>,
    pub(super) orders: Orders,
}

/// The path of a reservation, and the bandwidth taken on it.
struct HeldPath {
    route: HostRoute,
    path: LedgerPath,
    doubt: Option<Doubt>,
}

/// State of a reservation while it is unknown whether packets get through.
struct Doubt {
    why: String,
    /// Time of the next check, if nothing changes before.
    next_check: Duration,
    /// Time when the reservation is given up.
    deadline: Duration,
}

/// Reserves, answers, and keeps the reservation until its release.
pub(super) async fn hold(
    network: Network,
    book: Reservations,
    request: ValidRequest,
    wait: Duration,
    answer: Promise<Result<Reservation, NotReserved>>,
) {
    let task = ReservationTask { desired: network.desired(), network, book, request };
    let first = match task.reserve(wait).await {
        Ok(held) => held,
        Err(why) => {
            task.book.close(task.request.id);
            return answer.resolve(Err(why));
        }
    };
    if let Some(reservation) = task.record_installed(&first) {
        answer.resolve(Ok(reservation));
    }
    let mut held = Some(first);
    loop {
        match task.next(&held).await {
            ReservationOrder::Check => held = task.check(held).await,
            ReservationOrder::Release(answer) => {
                let released = match held {
                    Some(held) => task.release(held).await,
                    // Its flows may remain in a switch that was disconnected then.
                    None => task.withdraw().await,
                };
                task.book.close(task.request.id);
                task.book.retry_lost();
                return answer.resolve(released.map_err(NotReleased::FlowsLeft));
            }
        }
    }
}

/// A route, and the capacity of each of its lines in kbit/s.
type CandidateRoute = (HostRoute, Vec<(LinkDirection, u64)>);

/// A route with bandwidth taken on all lines.
type ReservedRoute = (HostRoute, LedgerPath);

struct ReservationTask {
    network: Network,
    desired: Desired,
    book: Reservations,
    request: ValidRequest,
}

impl ReservationTask {
    /// Returns the next order. A lost or doubtful reservation is also checked from time to time.
    async fn next(&self, held: &Option<HeldPath>) -> ReservationOrder {
        let order = next_order(&self.request.orders);
        let next_check = match held {
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

    /// Records the state, and publishes it if the reservation goes up or down, or moves.
    fn record(&self, state: ReservationState) -> Option<Reservation> {
        let (reservation, before) = self.book.note(self.request.id, state)?;
        if let Some(event) = change(&reservation, &before) {
            self.network.publish(event);
        }
        Some(reservation)
    }

    fn record_installed(&self, held: &HeldPath) -> Option<Reservation> {
        self.record(ReservationState::Installed(held.route.ports().collect()))
    }

    /// Checks a reservation after a change, and moves it to another path if necessary.
    async fn check(&self, held: Option<HeldPath>) -> Option<HeldPath> {
        let Some(held) = held else {
            return self.record_result(self.reserve(Duration::ZERO).await);
        };
        let (why, next_check) = match held.route.state(&self.network) {
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
        match self.find(Some(&held), Duration::ZERO, &BTreeSet::new()).await {
            Ok((route, path)) => match self.install((route, path.clone()), Some(&held)).await {
                Ok(moved) => {
                    self.release_lines(&held.path.without(&moved.path)).await;
                    self.book.retry_lost();
                    self.record_result(Ok(moved))
                }
                Err(_) => {
                    let commit = self.commit(&held.route);
                    if commit.settled(&self.network, CLEAR_WITHIN).await.is_err() {
                        // While a switch is disconnected, nothing shows when the others have
                        // removed the flows.
                        self.network.sleep(CLEAR_WITHIN).await;
                    }
                    self.release_lines(&path.without(&held.path)).await;
                    self.keep_doubtful(held, why, next_check).await
                }
            },
            Err(_) => self.keep_doubtful(held, why, next_check).await,
        }
    }

    /// Whether no line of a route is known to carry less than the rate, by itself.
    fn carries_rate(&self, route: &HostRoute) -> bool {
        let (switches, paths) = (self.network.switches(), paths(&self.network).load());
        let settings = self.book.0.settings.watch().load();
        let least = self.request.rate.0;
        let mut capacities = route.lines().map(|line| capacity(line, &settings, &switches, &paths));
        capacities.all(|kbps| kbps.is_err() || kbps.is_ok_and(|kbps| kbps >= least))
    }

    /// Handles an intact path. A switch that was disconnected, or that refuses, may lack flows.
    async fn confirm_flows(&self, held: HeldPath) -> Option<HeldPath> {
        let state = self.desired.state().load();
        let is_refused = held.route.switches().any(|dpid| state.refused.contains_key(&dpid));
        if held.doubt.is_none() && !is_refused {
            return Some(held);
        }
        let commit = self.commit(&held.route);
        match commit.confirmed(&self.network, CONFIRM_WITHIN).await {
            Ok(()) => self.record_result(Ok(HeldPath { doubt: None, ..held })),
            Err(NotCommitted::Refused(..)) => self.reserve_again(held, None).await,
            Err(error) => {
                let next_check = self.network.now() + ASK_AGAIN;
                self.keep_doubtful(held, error.to_string(), next_check).await
            }
        }
    }

    /// Handles a broken path.
    async fn replace(&self, held: HeldPath) -> Option<HeldPath> {
        let found = match self.find(Some(&held), Duration::ZERO, &BTreeSet::new()).await {
            Ok(found) => found,
            Err(why) => return self.mark_lost(held, why).await,
        };
        let path = found.1.clone();
        match self.install(found, Some(&held)).await {
            Ok(moved) => {
                self.release_lines(&held.path.without(&moved.path)).await;
                self.book.retry_lost();
                self.record_result(Ok(moved))
            }
            Err(_) => self.reserve_again(held, Some(&path)).await,
        }
    }

    /// Releases all bandwidth, also that taken on another path, and reserves anew: a flow refused
    /// on one path may be accepted on another.
    async fn reserve_again(&self, held: HeldPath, other: Option<&LedgerPath>) -> Option<HeldPath> {
        let other = other.map(|other| other.without(&held.path));
        // Ignored: a remaining flow that leads nowhere has no effect.
        let _ = self.release(held).await;
        if let Some(other) = other {
            self.release_lines(&other).await;
        }
        self.book.retry_lost();
        self.record_result(self.reserve(Duration::ZERO).await)
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
            return self.mark_lost(held, NotReserved::Doubtful(why)).await;
        }
        self.record(ReservationState::Unknown(why.clone()));
        Some(HeldPath { doubt: Some(Doubt { why, next_check, deadline }), ..held })
    }

    /// Ends the hold on all lines.
    async fn mark_lost(&self, held: HeldPath, why: NotReserved) -> Option<HeldPath> {
        // Ignored: a remaining flow that leads nowhere has no effect.
        let _ = self.release(held).await;
        self.book.retry_lost();
        self.record_result(Err(why))
    }

    /// Records the result.
    fn record_result(&self, result: Result<HeldPath, NotReserved>) -> Option<HeldPath> {
        match result {
            Ok(held) => {
                self.record_installed(&held);
                Some(held)
            }
            Err(why) => {
                self.record(ReservationState::Lost(why.to_string()));
                None
            }
        }
    }

    /// Takes the bandwidth on a path, and installs the flows. If a switch refuses its part, tries
    /// paths without this switch.
    async fn reserve(&self, wait: Duration) -> Result<HeldPath, NotReserved> {
        let (mut refused, mut excluded) = (None, BTreeSet::new());
        loop {
            let wait = if excluded.is_empty() { wait } else { Duration::ZERO };
            let found = match (self.find(None, wait, &excluded).await, refused) {
                (Ok(found), _) => found,
                // The first refusal is a better reason than the lack of other paths.
                (Err(_), Some(refused)) => return Err(NotReserved::NotInstalled(refused)),
                (Err(why), None) => return Err(why),
            };
            match self.install(found, None).await {
                Err(NotReserved::NotInstalled(error @ NotCommitted::Refused(dpid, _)))
                    if excluded.insert(dpid) =>
                {
                    refused.get_or_insert(error);
                }
                held => return held,
            }
        }
    }

    /// Takes the bandwidth on the first path that has it, except on lines of `before`.
    /// No path passes `excluded`.
    async fn find(
        &self,
        before: Option<&HeldPath>,
        wait: Duration,
        excluded: &BTreeSet<Dpid>,
    ) -> Result<ReservedRoute, NotReserved> {
        let mut routes = self.routes(excluded)?;
        match self.take_bandwidth(&routes, before, wait).await {
            Some((index, path)) => Ok((routes.swap_remove(index).0, path)),
            None => Err(self.taken_error(&routes)),
        }
    }

    /// Installs the flows of a route, in place of those of the previous path. If this fails without
    /// a previous path, the bandwidth is released. Otherwise the caller releases it, when the flows
    /// of both paths are removed or restored.
    async fn install(
        &self,
        (route, path): ReservedRoute,
        before: Option<&HeldPath>,
    ) -> Result<HeldPath, NotReserved> {
        let commit = self.commit(&route);
        let confirmed = commit.confirmed(&self.network, CONFIRM_WITHIN).await;
        // Bandwidth is released when its flows are gone, or after the time limit.
        match (confirmed, before) {
            (Ok(()), before) => {
                if before.is_some() {
                    let _ = commit.settled(&self.network, CLEAR_WITHIN).await;
                }
                Ok(HeldPath { route, path, doubt: None })
            }
            (Err(error), None) => {
                let _ = self.withdraw().await;
                self.release_lines(&path).await;
                Err(error.into())
            }
            (Err(error), Some(_)) => Err(error.into()),
        }
    }

    /// Removes the flows, and releases the bandwidth.
    async fn release(&self, held: HeldPath) -> Result<(), NotCommitted> {
        let withdrawn = self.withdraw().await;
        self.release_lines(&held.path).await;
        withdrawn
    }

    fn commit(&self, route: &HostRoute) -> Commit {
        let ValidRequest { id, rate, queue, .. } = self.request;
        self.desired.commit(id, route.entries(id, rate, queue))
    }

    async fn withdraw(&self) -> Result<(), NotCommitted> {
        self.desired.withdraw(self.request.id).settled(&self.network, CLEAR_WITHIN).await
    }

    /// Returns the shortest paths whose lines have the capacity and that avoid these switches, with
    /// the capacity of each line.
    fn routes(&self, excluded: &BTreeSet<Dpid>) -> Result<Vec<CandidateRoute>, NotReserved> {
        let ValidRequest { from, to, rate, queue, .. } = self.request;
        let (hosts, switches) = (self.network.hosts().load(), self.network.switches());
        let host = |id: HostId| hosts.get(id.mac, id.vlan).ok_or(NotReserved::Gone(id));
        let endpoints = [host(from)?, host(to)?];
        if endpoints[0].at == endpoints[1].at {
            return Err(NotReserved::SamePort(endpoints[0].at));
        }
        let is_away = |host: &&Host| switches.get(host.at.dpid).is_none();
        if let Some(host) = endpoints.into_iter().find(is_away) {
            return Err(NotReserved::NotConnected(host.at.dpid));
        }
        let (settings, paths) = (self.book.0.settings.watch().load(), paths(&self.network).load());
        let capacity = |line: LinkDirection| capacity(line, &settings, &switches, &paths);
        let check_rate = |line: LinkDirection| match capacity(line)? {
            kbps if kbps < rate.0 => {
                Err(NotReserved::AboveRate { rate, line, capacity: Kbps(kbps) })
            }
            kbps => Ok((line, kbps)),
        };
        check_rate(LinkDirection::To(endpoints[0].at))?;
        check_rate(LinkDirection::From(endpoints[1].at))?;

        let [first, last] = endpoints.map(|host| host.at.dpid);
        let usable = |from: SwitchPort| {
            !excluded.contains(&from.dpid) && check_rate(LinkDirection::From(from)).is_ok()
        };
        let found = match first == last {
            true => vec![Path { from: first, to: last, hops: Vec::new() }],
            false => paths.k_shortest(first, last, ALTERNATIVES, |hop| usable(hop.from)),
        };
        let mut routes = Vec::new();
        for route in found.iter().filter_map(|path| HostRoute::of_path(path, endpoints, &switches))
        {
            if queue.is_none() {
                route.check_meters()?;
            }
            let lines = route.lines().map(check_rate).collect::<Result<Vec<_>, _>>()?;
            routes.push((route, lines));
        }
        routes.retain(|(route, _)| !route.switches().any(|dpid| excluded.contains(&dpid)));
        if routes.is_empty() {
            // Decides whether the rate is too high or there is no path at all.
            let any = paths.k_shortest(first, last, 1, |_| true);
            for hop in any.iter().flat_map(|path| &path.hops) {
                check_rate(LinkDirection::From(hop.from))?;
            }
            return Err(NotReserved::NoPath { from, to });
        }
        Ok(routes)
    }

    /// Takes the bandwidth on the first of these paths that has it, except on lines held already.
    async fn take_bandwidth(
        &self,
        routes: &[CandidateRoute],
        before: Option<&HeldPath>,
        wait: Duration,
    ) -> Option<(usize, LedgerPath)> {
        let ledger = &self.book.0.ledger;
        let paths: Vec<LedgerPath> =
            routes.iter().map(|(_, lines)| ledger.path(lines.clone())).collect();
        let new_lines = |path: &LedgerPath| {
            before.map_or_else(|| path.clone(), |before| path.without(&before.path))
        };
        let (kbps, missing): (u64, Vec<LedgerPath>) =
            (self.request.rate.0, paths.iter().map(new_lines).collect());
        let now = self.network.transaction(|tx| {
            tx.or_else(|tx| take_one(tx, &missing, kbps).map(Some), |_| Ok(None))
        });
        let index = match now.await {
            None if !wait.is_zero() => {
                let later = self.network.transaction(|tx| take_one(tx, &missing, kbps));
                self.network.timeout(wait, later).await?
            }
            now => now?,
        };
        Some((index, paths.get(index)?.clone()))
    }

    /// The error when other reservations use the missing bandwidth.
    fn taken_error(&self, routes: &[CandidateRoute]) -> NotReserved {
        let ValidRequest { from, to, rate, .. } = self.request;
        let ledger = &self.book.0.ledger;
        let free = |(line, capacity): (LinkDirection, u64)| {
            (capacity.saturating_sub(ledger.reserved(line)), line, capacity)
        };
        let lines = routes.first().into_iter().flat_map(|(_, lines)| lines.iter().copied());
        match lines.map(free).min() {
            Some((free, line, capacity)) => {
                NotReserved::Taken { rate, line, free: Kbps(free), capacity: Kbps(capacity) }
            }
            None => NotReserved::NoPath { from, to },
        }
    }

    async fn release_lines(&self, path: &LedgerPath) {
        self.network.transaction(|tx| release(tx, path, self.request.rate.0)).await;
    }
}

/// Returns the event that reports a change of a reservation from the state `before`. A reservation
/// that is not confirmed counts as unchanged.
fn change(reservation: &Reservation, before: &ReservationState) -> Option<AppEvent> {
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
            Some(AppEvent::new(name, &format!("{what} is up, by {}", ports.join(", "))))
        }
        (ReservationState::Lost(why), _) => {
            Some(AppEvent::new("reservation_lost", &format!("{what} is lost: {why}")).alarming())
        }
        (ReservationState::Pending | ReservationState::Unknown(_), _) => None,
    }
}
