//! The controller itself.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bellrock_query::{
    AppRow, CounterMeaning, Counters, DescribeCounters, EventRow, GetCounters, GetStatus,
    LatencyRow, ListApps, ListEvents, ListLatencies, ListTasks, QueryError, Reload, ReloadAnswer,
    Rows, Status, TaskRow,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::PageParams;
use crate::access::Caller;
use crate::answer::{Known, NoParams, OptionalFields, Params, Shared, Tagged};
use crate::metrics;
use crate::problem::Problem;
use crate::stream;

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
    match status.listen.is_empty() && status.listen_tls.is_empty() {
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
    _: NoParams,
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
    _: NoParams,
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
    _: NoParams,
    known: Known,
) -> Result<Tagged<Vec<CounterMeaning>>, Problem> {
    Ok(Tagged { answer: shared.ask(DescribeCounters {}).await?, known })
}

/// How long things take
#[utoipa::path(get, path = "/v1/latencies", tag = "controller", responses(
    (status = 200, description = "Histograms, with what they measure.", body = Vec<LatencyRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn latencies(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    known: Known,
) -> Result<Tagged<Vec<LatencyRow>>, Problem> {
    Ok(Tagged { answer: shared.ask(ListLatencies {}).await?, known })
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

/// The token of this request
///
/// So a client knows whether it may order changes.
#[utoipa::path(get, path = "/v1/token", tag = "controller", responses(
    (status = 200, description = "The token, or null without one.", body = Option<TokenAnswer>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn token(
    _: NoParams,
    Extension(caller): Extension<Caller>,
) -> Json<Option<TokenAnswer>> {
    Json(caller.token.map(|token| TokenAnswer {
        expires: token.expiry(),
        scope: token.scope.word(),
        name: token.name,
    }))
}

/// A token, without its text.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TokenAnswer {
    /// Its name.
    name: String,
    /// `read`, or `write` if it allows orders.
    scope: &'static str,
    /// When it expires (RFC 3339), if it does.
    expires: Option<String>,
}

/// Read the configuration again
///
/// Changes are applied together. If anything is wrong, or needs a restart, nothing changes.
/// `dry_run` may also be in a body.
#[utoipa::path(post, path = "/v1/reload", tag = "controller", params(ReloadParams), security(("token" = [])),
    responses(
    (status = 200, description = "What has changed, or would.", body = ReloadAnswer),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn reload(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    Params(params): Params<ReloadParams>,
    OptionalFields(body): OptionalFields<ReloadParams>,
) -> Result<Json<ReloadAnswer>, Problem> {
    let dry_run = params.dry_run || body.dry_run;
    Ok(Json(shared.order(caller, Reload { dry_run }).await?))
}

/// How to reload.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct ReloadParams {
    /// Only list what would change.
    dry_run: bool,
}

/// The apps of the chain, in order
#[utoipa::path(get, path = "/v1/apps", tag = "controller", responses(
    (status = 200, description = "The apps.", body = Vec<AppRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn apps(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
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

/// The latest events of the network, or all as they happen
///
/// The newest are on the first page. Each page is ordered by time, the oldest first.
///
/// With `Accept: text/event-stream` the answer is a stream of server-sent events that goes on. The
/// data of each is a row of the list. A stream begins with the events after the id in
/// `Last-Event-ID` or `after`, or with the next event. An event `missed` has the number of `events`
/// that are not kept any more, and `restarted` says that the controller has started since. A stream
/// ends after 15 minutes, or when its token is removed, and is to be resumed then, as browsers do.
#[utoipa::path(get, path = "/v1/events", tag = "controller", params(EventParams), responses(
    (status = 200, description = "A page of the events, or a stream.", content(
        (Rows<EventRow> = "application/json"),
        (String = "text/event-stream"),
    )),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn events(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    Params(EventParams { after, kind, alarming, open, skip, limit }): Params<EventParams>,
    headers: HeaderMap,
    known: Known,
) -> Result<Response, Problem> {
    if stream::is_wanted(&headers) {
        if kind.is_some() || alarming || open {
            let field = match (alarming, open) {
                (true, _) => "alarming",
                (false, true) => "open",
                (false, false) => "kind",
            };
            let why = format!("a stream has all events; leave `{field}` out");
            return Err(Problem::from(QueryError::invalid(field, why)));
        }
        let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
        return stream::respond(shared, caller, last.map(str::to_owned).or(after)).await;
    }
    if after.is_some() {
        let why = "`after` is for streams; send `Accept: text/event-stream`";
        return Err(Problem::from(QueryError::invalid("after", why)));
    }
    let page = PageParams { skip, limit }.page()?;
    let query = ListEvents { kind, alarming, open, page };
    Ok(Tagged { answer: shared.ask(query).await?, known }.into_response())
}

/// Which events are wanted.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct EventParams {
    /// For a stream: the id of the last event that is known.
    after: Option<String>,
    /// Only events of this kind, such as `link_down`; not for a stream.
    kind: Option<String>,
    /// Only alarms; not for a stream.
    alarming: bool,
    /// Only open alarms: what they report still lasts. Not for a stream.
    open: bool,
    /// Number of rows before the page.
    skip: usize,
    /// Maximum number of rows in the page.
    #[param(minimum = 1, maximum = 10_000)]
    limit: usize,
}

impl Default for EventParams {
    fn default() -> Self {
        let PageParams { skip, limit } = PageParams::default();
        EventParams { after: None, kind: None, alarming: false, open: false, skip, limit }
    }
}
