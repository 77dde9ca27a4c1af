//! A request for a reservation, until its flows are confirmed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::Network;
use bellrock_api::runtime::Promise;
use bellrock_book::{Draft, NotOrdered};
use bellrock_services::desired::NotCommitted;

use super::book::{Orders, ReservationBook};
use super::booking::{self, BookedModel, Booking, Status, Work, free_id, take, taken};
use super::errors::NotReserved;
use super::hold::{ReservationTask, ValidRequest, take_changed};
use super::reservation::Reservation;
use super::route::{HostRoute, routes};

/// Reserves, answers, and keeps the reservation until its release.
pub(super) async fn reserve(
    network: Network,
    book: Arc<ReservationBook>,
    request: ValidRequest,
    wait: Duration,
    answer: Promise<Result<Reservation, NotReserved>>,
) {
    let order = book.begin_order();
    let (id, route) = match book_route(&network, &book, &request, wait, order).await {
        Ok(booked) => booked,
        Err(why) => {
            end_order(&book, &network, order);
            return answer.resolve(Err(why));
        }
    };
    let task = ReservationTask::new(network.clone(), book, id, &request, Orders::default());
    task.book.add_task(id, &task.orders);
    end_order(&task.book, &network, order);
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

/// Ends what [`ReservationBook::begin_order`] has begun. If the outcome is unknown, the reservation
/// gets its task here, or when this controller sees it.
fn end_order(book: &Arc<ReservationBook>, network: &Network, order: u64) {
    if let Some(id) = book.end_order(order) {
        take_changed(book, network, [id].into());
    }
}

/// Stores a new reservation, with the first path whose lines are free. Waits for them.
async fn book_route(
    network: &Network,
    book: &Arc<ReservationBook>,
    request: &ValidRequest,
    wait: Duration,
    order: u64,
) -> Result<(u32, HostRoute), NotReserved> {
    let ValidRequest { from, to, rate, .. } = *request;
    let settings = book.settings.watch().load();
    let needs_meter = request.queue.is_none();
    let routes = routes(network, &settings, [from, to], rate, needs_meter, &BTreeSet::new())?;
    let until = network.now() + wait;
    loop {
        let seen = book.bookings.changes().load().version();
        let (request, routes, book_of_order) = (request.clone(), routes.clone(), Arc::clone(book));
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
        let error = match book.bookings.order(plan).await {
            Ok(booked) => return Ok(booked),
            Err(error @ NotOrdered::Refused(NotReserved::Taken { .. })) => error,
            Err(error) => return Err(error.into()),
        };
        let now = network.now();
        let changed = book.bookings.changes().newer(seen);
        if now >= until || network.timeout(until - now, changed).await.is_none() {
            return Err(error.into());
        }
    }
}
