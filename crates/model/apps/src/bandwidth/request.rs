//! A request for a reservation, until its flows are confirmed.

use std::collections::BTreeSet;
use std::time::Duration;

use bellrock_api::runtime::Promise;
use bellrock_api::{HostId, Network};
use bellrock_book::{Draft, NotOrdered};
use bellrock_services::desired::NotCommitted;

use super::booking::{
    self, BookedModel, Booking, CandidateRoute, Status, Work, free_id, reserved, take,
};
use super::hold::ReservationTask;
use super::route::{HostRoute, routes};
use super::{Kbps, LinkDirection, NotReserved, Orders, Reservation, Reservations};

/// A valid request.
#[derive(Clone)]
pub(super) struct ValidRequest {
    pub(super) from: HostId,
    pub(super) to: HostId,
    pub(super) rate: Kbps,
    /// Name and number of the queue.
    pub(super) queue: Option<(String, u32)>,
}

/// Reserves, answers, and keeps the reservation until its release.
pub(super) async fn reserve(
    network: Network,
    book: Reservations,
    request: ValidRequest,
    wait: Duration,
    answer: Promise<Result<Reservation, NotReserved>>,
) {
    let order = book.begin_order();
    let (id, route) = match book_route(&network, &book, &request, wait, order).await {
        Ok(booked) => booked,
        Err(why) => {
            book.end_order(order);
            return answer.resolve(Err(why));
        }
    };
    let task = ReservationTask::new(network, book, id, &request, Orders::default());
    task.book.add_task(id, &task.orders);
    task.book.end_order(order);
    let installed = match task.install(route, false).await {
        Ok(held) => Ok(held),
        Err(NotReserved::NotInstalled(error @ NotCommitted::Refused(dpid, _))) => {
            task.reserve([dpid].into(), Some(error.into())).await
        }
        Err(why) => Err(why),
    };
    let held = match installed {
        Ok(held) => held,
        Err(why) => {
            task.remove().await;
            task.book.close(id);
            return answer.resolve(Err(why));
        }
    };
    match task.record_installed(&held).await {
        Some(reservation) => answer.resolve(Ok(reservation)),
        // It was released meanwhile.
        None => answer.resolve(Err(NotReserved::Released(id))),
    }
    task.keep(Some(held)).await;
}

/// Stores a new reservation, with the first path whose lines are free. Waits for them.
async fn book_route(
    network: &Network,
    book: &Reservations,
    request: &ValidRequest,
    wait: Duration,
    order: u64,
) -> Result<(u32, HostRoute), NotReserved> {
    let ValidRequest { from, to, rate, .. } = *request;
    let settings = book.0.settings.watch().load();
    let needs_meter = request.queue.is_none();
    let routes = routes(network, &settings, [from, to], rate, needs_meter, &BTreeSet::new())?;
    let until = network.now() + wait;
    loop {
        let seen = book.0.bookings.changes().load().version();
        let (request, routes, book_of_order) = (request.clone(), routes.clone(), book.clone());
        let plan = move |draft: &mut Draft<'_, BookedModel>| {
            let id = free_id(draft, from, to)?;
            book_of_order.note_order(order, id);
            let Some(index) = take(draft, &routes, &[], rate) else {
                return Err(taken(draft, &routes, [from, to], rate));
            };
            let route = routes[index].0.clone();
            let booking = Booking {
                from,
                to,
                rate,
                queue: request.queue.clone(),
                work: Some(Work::Installing(book_of_order.node().to_owned())),
                status: Status::Installed(Vec::new()),
                route: Some(route.clone()),
                holds: vec![route.clone()],
                refused: None,
            };
            draft.put(&booking::name(id), booking);
            Ok((id, route))
        };
        let error = match book.0.bookings.order(plan).await {
            Ok(booked) => return Ok(booked),
            Err(error @ NotOrdered::Refused(NotReserved::Taken { .. })) => error,
            Err(error) => return Err(error.into()),
        };
        let now = network.now();
        let changed = book.0.bookings.changes().newer(seen);
        if now >= until || network.timeout(until - now, changed).await.is_none() {
            return Err(error.into());
        }
    }
}

/// The error when other reservations use the missing bandwidth.
pub(super) fn taken(
    draft: &Draft<'_, BookedModel>,
    routes: &[CandidateRoute],
    [from, to]: [HostId; 2],
    rate: Kbps,
) -> NotReserved {
    let free = |(line, capacity): (LinkDirection, u64)| {
        (capacity.saturating_sub(reserved(draft, line)), line, capacity)
    };
    let lines = routes.first().into_iter().flat_map(|(_, lines)| lines.iter().copied());
    match lines.map(free).min() {
        Some((free, line, capacity)) => {
            NotReserved::Taken { rate, line, free: Kbps(free), capacity: Kbps(capacity) }
        }
        None => NotReserved::NoPath { from, to },
    }
}
