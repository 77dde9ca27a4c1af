//! Reservations, circuits and quarantine.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bellrock_query::{
    Block, BlockedList, CircuitRow, ListBlocked, ListCircuits, ListReservations, QuarantineAnswer,
    Release, ReservationRow, Reserve, Rows, Unblock,
};

use super::PageParams;
use crate::access::Caller;
use crate::answer::{Fields, Known, NoParams, Params, Part, Shared, Tagged, created};
use crate::problem::Problem;

/// The circuits and their states
#[utoipa::path(get, path = "/v1/circuits", tag = "orders", params(PageParams), responses(
    (status = 200, description = "A page of the circuits.", body = Rows<CircuitRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn circuits(
    State(shared): State<Arc<Shared>>,
    Params(page): Params<PageParams>,
    known: Known,
) -> Result<Tagged<Rows<CircuitRow>>, Problem> {
    Ok(Tagged { answer: shared.ask(ListCircuits { page: page.page()? }).await?, known })
}

/// The reservations, by number
#[utoipa::path(get, path = "/v1/reservations", tag = "orders", params(PageParams), responses(
    (status = 200, description = "A page of the reservations.", body = Rows<ReservationRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn reservations(
    State(shared): State<Arc<Shared>>,
    Params(page): Params<PageParams>,
    known: Known,
) -> Result<Tagged<Rows<ReservationRow>>, Problem> {
    Ok(Tagged { answer: shared.ask(ListReservations { page: page.page()? }).await?, known })
}

/// Reserve bandwidth from one host to another
#[utoipa::path(post, path = "/v1/reservations", tag = "orders", security(("token" = [])),
    request_body = Reserve,
    responses(
    (status = 201, description = "It is reserved.", body = ReservationRow,
        headers(("location" = String, description = "Its path."))),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn reserve(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Extension(caller): Extension<Caller>,
    Fields(order): Fields<Reserve>,
) -> Result<Response, Problem> {
    let row = shared.order(caller, order).await?;
    Ok(created(&format!("/v1/reservations/{}", row.id), row).into_response())
}

/// Release a reservation
///
/// The answer is the reservation as it was.
#[utoipa::path(delete, path = "/v1/reservations/{id}", tag = "orders", security(("token" = [])),
    params(("id" = u32, Path, description = "Its number.")),
    responses(
    (status = 200, description = "It is released.", body = ReservationRow),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn release(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Extension(caller): Extension<Caller>,
    Part(id): Part<u32>,
) -> Result<axum::Json<ReservationRow>, Problem> {
    Ok(axum::Json(shared.order(caller, Release { id }).await?))
}

/// The blocked hosts
#[utoipa::path(get, path = "/v1/quarantine", tag = "orders", params(PageParams), responses(
    (status = 200, description = "A page of the blocked hosts.", body = BlockedList),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn blocked(
    State(shared): State<Arc<Shared>>,
    Params(page): Params<PageParams>,
    known: Known,
) -> Result<Tagged<BlockedList>, Problem> {
    Ok(Tagged { answer: shared.ask(ListBlocked { page: page.page()? }).await?, known })
}

/// Block a host or a prefix at every switch
///
/// The block lasts until it is ended. With a store, as under systemd and in a cluster, it stays
/// over a restart of the controller; else it ends with the controller.
#[utoipa::path(post, path = "/v1/quarantine", tag = "orders", security(("token" = [])),
    request_body = Block,
    responses(
    (status = 200, description = "It is blocked.", body = QuarantineAnswer),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn block(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Extension(caller): Extension<Caller>,
    Fields(order): Fields<Block>,
) -> Result<axum::Json<QuarantineAnswer>, Problem> {
    Ok(axum::Json(shared.order(caller, order).await?))
}

/// End the block of a host or a prefix
#[utoipa::path(delete, path = "/v1/quarantine/{host}", tag = "orders", security(("token" = [])),
    params(("host" = String, Path, description = "The host as it is listed, or its name; `/` is written `%2F`.")),
    responses(
    (status = 200, description = "It is let back.", body = QuarantineAnswer),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn unblock(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Extension(caller): Extension<Caller>,
    Part(host): Part<String>,
) -> Result<axum::Json<QuarantineAnswer>, Problem> {
    Ok(axum::Json(shared.order(caller, Unblock { host }).await?))
}
