//! The controller itself.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bellrock_query::{
    AppRow, CounterMeaning, Counters, DescribeCounters, EventRow, GetCounters, GetStatus, ListApps,
    ListEvents, ListTasks, Rows, Status, TaskRow,
};

use super::PageParams;
use crate::answer::{Known, Params, Shared, Tagged};
use crate::metrics;
use crate::problem::Problem;

/// Whether the server runs
///
/// For supervisors that restart a process that hangs. Needs no token.
#[utoipa::path(get, path = "/healthz", tag = "controller",
    responses((status = 200, description = "It runs.", body = String)))]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether the controller is ready for switches
///
/// For supervisors and load balancers. Needs no token.
#[utoipa::path(get, path = "/readyz", tag = "controller", responses(
    (status = 200, description = "Switches can connect.", body = String),
    (status = "default", description = "It is not ready.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn readyz(State(shared): State<Arc<Shared>>) -> Result<&'static str, Problem> {
    let status = shared.ask(GetStatus {}).await?;
    match status.listen.is_empty() {
        true => Err(Problem::busy("the controller does not listen")),
        false => Ok("ready\n"),
    }
}

/// The state of the controller
#[utoipa::path(get, path = "/v1/status", tag = "controller", responses(
    (status = 200, description = "The state.", body = Status),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn status(
    State(shared): State<Arc<Shared>>,
    known: Known,
) -> Result<Tagged<Status>, Problem> {
    Ok(Tagged { answer: shared.ask(GetStatus {}).await?, known })
}

/// All counters
///
/// They start at zero with the controller, and only grow.
#[utoipa::path(get, path = "/v1/counters", tag = "controller", responses(
    (status = 200, description = "The counters.", body = Counters),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn counters(
    State(shared): State<Arc<Shared>>,
    known: Known,
) -> Result<Tagged<Counters>, Problem> {
    Ok(Tagged { answer: shared.ask(GetCounters {}).await?, known })
}

/// What each counter counts
#[utoipa::path(get, path = "/v1/counters/meanings", tag = "controller", responses(
    (status = 200, description = "The counters with their meanings.", body = Vec<CounterMeaning>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn counter_meanings(
    State(shared): State<Arc<Shared>>,
    known: Known,
) -> Result<Tagged<Vec<CounterMeaning>>, Problem> {
    Ok(Tagged { answer: shared.ask(DescribeCounters {}).await?, known })
}

/// Metrics for Prometheus
///
/// In its text format, version 0.0.4.
#[utoipa::path(get, path = "/metrics", tag = "controller", responses(
    (status = 200, description = "The metrics.", body = String),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Result<Response, Problem> {
    let text = metrics::scrape(&shared).await?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}

/// The apps of the chain, in order
#[utoipa::path(get, path = "/v1/apps", tag = "controller", responses(
    (status = 200, description = "The apps.", body = Vec<AppRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn apps(
    State(shared): State<Arc<Shared>>,
    known: Known,
) -> Result<Tagged<Vec<AppRow>>, Problem> {
    Ok(Tagged { answer: shared.ask(ListApps {}).await?, known })
}

/// The background tasks of the apps
#[utoipa::path(get, path = "/v1/tasks", tag = "controller", params(PageParams), responses(
    (status = 200, description = "A page of the tasks.", body = Rows<TaskRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn tasks(
    State(shared): State<Arc<Shared>>,
    Params(page): Params<PageParams>,
    known: Known,
) -> Result<Tagged<Rows<TaskRow>>, Problem> {
    Ok(Tagged { answer: shared.ask(ListTasks { page: page.page()? }).await?, known })
}

/// The latest events of the network
///
/// The newest are on the first page. Each page is ordered by time, the oldest first.
#[utoipa::path(get, path = "/v1/events", tag = "controller", params(PageParams), responses(
    (status = 200, description = "A page of the events.", body = Rows<EventRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn events(
    State(shared): State<Arc<Shared>>,
    Params(page): Params<PageParams>,
    known: Known,
) -> Result<Tagged<Rows<EventRow>>, Problem> {
    Ok(Tagged { answer: shared.ask(ListEvents { page: page.page()? }).await?, known })
}
