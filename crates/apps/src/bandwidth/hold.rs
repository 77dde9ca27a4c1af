//! One reservation, from the request to its end.

use std::time::Duration;

use bellrock_api::{Change, Dpid, Flow, HostId, MeterEntry, Network, Promise, SwitchPort};
use bellrock_services::paths::{Path, paths};
use bellrock_services::programming::{CommitError, FlowProgramming, Plan};

use super::ledger::{Way, give_back, take_one};
use super::route::{Route, carries};
use super::{
    Kbps, Line, NotReleased, NotReserved, Order, Orders, Reservation, Reservations, State, next,
};

/// Paths that are tried, the shortest first.
pub const ALTERNATIVES: usize = 8;

/// After how long a reservation that is lost is tried again, if nothing has changed before.
pub const RETRY_LOST: Duration = Duration::from_secs(30);

/// A request that makes sense.
pub(super) struct Asked {
    pub(super) id: u32,
    pub(super) from: HostId,
    pub(super) to: HostId,
    pub(super) rate: Kbps,
    pub(super) queue: Option<u32>,
    pub(super) orders: Orders,
}

/// What a reservation has while its flows are installed.
struct Held {
    route: Route,
    way: Way,
}

/// Reserves, answers, and keeps the reservation until it is released.
pub(super) async fn hold(
    network: Network,
    book: Reservations,
    asked: Asked,
    wait: Duration,
    answer: Promise<Result<Reservation, NotReserved>>,
) {
    let task = Holding { network, book, asked };
    let mut held = match task.obtain(None, wait).await {
        Ok(held) => Some(held),
        Err(error) => {
            task.book.close(task.asked.id);
            return answer.keep(Err(error));
        }
    };
    if let Some(told) = task.note(&held, None) {
        answer.keep(Ok(told));
    }
    loop {
        match task.next(&held).await {
            Order::Look if task.is_intact(&held) => {}
            Order::Look => {
                let moved = task.obtain(held.take(), Duration::ZERO).await;
                let why = moved.as_ref().err().map(ToString::to_string);
                held = moved.ok();
                task.note(&held, why);
            }
            Order::Release(answer) => {
                let released = match held {
                    Some(held) => task.let_go(held).await,
                    None => Ok(()),
                };
                task.book.close(task.asked.id);
                task.book.look_for_lost();
                return answer.keep(released.map_err(NotReleased::FlowsLeft));
            }
        }
    }
}

/// A route, and what each of its lines carries, in kbit/s.
type Candidate = (Route, Vec<(Line, u64)>);

struct Holding {
    network: Network,
    book: Reservations,
    asked: Asked,
}

impl Holding {
    /// The next order. What is lost is looked for now and then without one.
    async fn next(&self, held: &Option<Held>) -> Order {
        let order = next(&self.asked.orders);
        match held {
            Some(_) => order.await,
            None => self.network.timeout(RETRY_LOST, order).await.unwrap_or(Order::Look),
        }
    }

    fn note(&self, held: &Option<Held>, why_not: Option<String>) -> Option<Reservation> {
        let state = match held {
            Some(held) => State::Installed(held.route.ports().collect()),
            None => State::Lost(why_not.unwrap_or_default()),
        };
        self.book.note(self.asked.id, state)
    }

    fn is_intact(&self, held: &Option<Held>) -> bool {
        let paths = paths(&self.network).load();
        held.as_ref().is_some_and(|held| held.route.is_intact(&self.network, &paths))
    }

    /// Takes the bandwidth on the first path that has it, and installs the flows there, in the place of those
    /// of the path before. If that fails, nothing is held any more. What flows use is given back when they are
    /// gone.
    async fn obtain(&self, before: Option<Held>, wait: Duration) -> Result<Held, NotReserved> {
        let mut routes = match self.routes() {
            Ok(routes) => routes,
            Err(error) => {
                if let Some(before) = before {
                    // Who refuses to remove a flow that leads nowhere does it no good and no harm.
                    let _ = self.let_go(before).await;
                }
                return Err(error);
            }
        };
        let taken = self.take(&routes, before.as_ref(), wait).await;
        let Some((index, way)) = taken else {
            if let Some(before) = before {
                self.let_go(before).await.ok();
            }
            return Err(self.taken(&routes));
        };
        let (route, _) = routes.swap_remove(index);
        let (route_before, way_before) = before.map(|before| (before.route, before.way)).unzip();
        let installed = self.install(route_before.as_ref(), &route).await;
        if let Err(error) = installed {
            self.remove(&[route_before.as_slice(), &[route]].concat()).await.ok();
            self.give_back(&way).await;
            if let Some(before) = way_before {
                self.give_back(&before.without(&way)).await;
            }
            return Err(error.into());
        }
        if let Some(before) = way_before {
            self.give_back(&before.without(&way)).await;
            self.book.look_for_lost();
        }
        Ok(Held { route, way })
    }

    /// Removes the flows, and gives back what was taken.
    async fn let_go(&self, held: Held) -> Result<(), CommitError> {
        let removed = self.remove(&[held.route]).await;
        self.give_back(&held.way).await;
        removed
    }

    /// The shortest paths whose lines carry so much, and what each of their lines carries.
    fn routes(&self) -> Result<Vec<Candidate>, NotReserved> {
        let Asked { from, to, rate, queue, .. } = self.asked;
        let (hosts, switches) = (self.network.hosts().load(), self.network.switches());
        let host = |id: HostId| hosts.get(id.mac, id.vlan).ok_or(NotReserved::Gone(id));
        let ends = [host(from)?, host(to)?];
        if ends[0].at == ends[1].at {
            return Err(NotReserved::SamePort(ends[0].at));
        }
        let (settings, paths) = (&self.book.0.settings, paths(&self.network).load());
        let carries = |line: Line| carries(line, settings, &switches, &paths);
        let enough = |line: Line| match carries(line)? {
            kbps if kbps < rate.0 => {
                Err(NotReserved::AboveRate { rate, line, carries: Kbps(kbps) })
            }
            kbps => Ok((line, kbps)),
        };
        enough(Line::To(ends[0].at))?;
        enough(Line::From(ends[1].at))?;

        let [first, last] = ends.map(|host| host.at.dpid);
        let usable = |from: SwitchPort| enough(Line::From(from)).is_ok();
        let found = match first == last {
            true => vec![Path { from: first, to: last, hops: Vec::new() }],
            false => paths.k_shortest(first, last, ALTERNATIVES, |hop| usable(hop.from)),
        };
        let mut routes = Vec::new();
        for route in found.iter().filter_map(|path| Route::over(path, ends, &switches)) {
            if queue.is_none() {
                route.check_meters()?;
            }
            let lines = route.lines().map(enough).collect::<Result<Vec<_>, _>>()?;
            routes.push((route, lines));
        }
        if routes.is_empty() {
            // Is it for the rate, or does no path lead there at all?
            let any = paths.k_shortest(first, last, 1, |_| true);
            for hop in any.iter().flat_map(|path| &path.hops) {
                enough(Line::From(hop.from))?;
            }
            return Err(NotReserved::NoPath { from, to });
        }
        Ok(routes)
    }

    /// Takes the bandwidth on the first of these paths that has it, but for lines that it has already.
    async fn take(
        &self,
        routes: &[Candidate],
        before: Option<&Held>,
        wait: Duration,
    ) -> Option<(usize, Way)> {
        let ledger = &self.book.0.ledger;
        let ways: Vec<Way> = routes.iter().map(|(_, lines)| ledger.way(lines.clone())).collect();
        let new = |way: &Way| before.map_or_else(|| way.clone(), |before| way.without(&before.way));
        let (kbps, missing): (u64, Vec<Way>) = (self.asked.rate.0, ways.iter().map(new).collect());
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
        Some((index, ways.get(index)?.clone()))
    }

    /// What to say when others have what is missing.
    fn taken(&self, routes: &[Candidate]) -> NotReserved {
        let Asked { from, to, rate, .. } = self.asked;
        let ledger = &self.book.0.ledger;
        let free = |(line, carries): (Line, u64)| {
            (carries.saturating_sub(ledger.promised(line)), line, carries)
        };
        let lines = routes.first().into_iter().flat_map(|(_, lines)| lines.iter().copied());
        match lines.map(free).min() {
            Some((free, line, carries)) => {
                NotReserved::Taken { rate, line, free: Kbps(free), carries: Kbps(carries) }
            }
            None => NotReserved::NoPath { from, to },
        }
    }

    async fn give_back(&self, way: &Way) {
        self.network.transaction(|tx| give_back(tx, way, self.asked.rate.0)).await;
    }

    /// Installs the flows of a route, from its end to its beginning, in the place of those of the route
    /// before.
    async fn install(&self, before: Option<&Route>, route: &Route) -> Result<(), CommitError> {
        let mut plan = Plan::tree();
        let meter = self.meter_of(route);
        let meter_before = before.and_then(|before| self.meter_of(before));
        if let Some(dpid) = meter.filter(|_| meter != meter_before) {
            // An earlier run of the controller may have left one with this number.
            self.network.program(dpid, vec![Change::RemoveMeter(self.asked.id)]).await;
            plan = plan.meter(dpid, self.meter());
        }
        if let Some(dpid) = meter_before.filter(|_| meter != meter_before) {
            plan = plan.remove_meter(dpid, self.meter());
        }
        let mut old = before.map_or_else(Vec::new, |before| self.flows_left(before));
        for (distance, (dpid, flow)) in (0..).zip(route.flows(self.asked.id, self.asked.queue)) {
            let same = |(at, old): &(Dpid, Flow)| (at, &old.matching) == (&dpid, &flow.matching);
            plan = match old.iter().position(same) {
                Some(index) => plan.replace_at(distance, dpid, old.swap_remove(index).1, flow),
                None => plan.add_at(distance, dpid, flow),
            };
        }
        for (dpid, flow) in old {
            plan = plan.remove(dpid, flow);
        }
        self.network.commit(plan).await.map(drop)
    }

    /// Removes the flows of routes, and their meters.
    async fn remove(&self, routes: &[Route]) -> Result<(), CommitError> {
        let mut plan = Plan::tree();
        for route in routes {
            for (dpid, flow) in self.flows_left(route) {
                plan = plan.remove(dpid, flow);
            }
            if let Some(dpid) = self.meter_of(route) {
                plan = plan.remove_meter(dpid, self.meter());
            }
        }
        match plan.is_empty() {
            true => Ok(()),
            false => self.network.commit(plan).await.map(drop),
        }
    }

    /// The flows of a route, but for those that went with their switches.
    fn flows_left(&self, route: &Route) -> Vec<(Dpid, Flow)> {
        let switches = self.network.switches();
        let mut flows = route.flows(self.asked.id, self.asked.queue);
        flows.retain(|(dpid, _)| {
            let step = route.steps.iter().find(|step| step.dpid == *dpid);
            step.is_some_and(|step| step.is_up(&switches))
        });
        flows
    }

    /// The switch that has the meter of a route, unless it has gone with it.
    fn meter_of(&self, route: &Route) -> Option<Dpid> {
        let first = route.steps.first().filter(|_| self.asked.queue.is_none())?;
        first.is_up(&self.network.switches()).then_some(first.dpid)
    }

    fn meter(&self) -> MeterEntry {
        // Rates have been read as 32 bits.
        let kbps = u32::try_from(self.asked.rate.0).unwrap_or(u32::MAX);
        MeterEntry::drop_above_kbps(self.asked.id, kbps)
    }
}
