//! The controller itself.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bellrock_query::{
    DEFAULT_PAGE_ROWS, GetStatus, ListEvents, Page, QueryError, Reload, ReloadAnswer,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Caller;
use crate::answer::{Known, NoParams, OptionalFields, Params, Shared, Tagged};
use crate::metrics;
use crate::problem::Problem;
use crate::stream;

/// Answers whether the server runs.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Answers whether the controller is ready for switches.
pub(super) async fn readyz(State(shared): State<Arc<Shared>>) -> Result<&'static str, Problem> {
    let status = shared.ask(GetStatus {}).await?;
    match status.listen.is_empty() && status.listen_tls.is_empty() {
        true => Err(Problem::busy("the controller does not listen")),
        false => Ok("ready\n"),
    }
}

/// Answers with metrics for Prometheus.
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Result<Response, Problem> {
    let text = metrics::scrape(&shared).await?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}

/// Answers with the token of this request.
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

/// Reads the configuration again. `dry_run` may be in the path or in a body.
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
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ReloadParams {
    /// Only list what would change.
    dry_run: bool,
}

/// Answers with the latest events, or with all as they happen.
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
    let query = ListEvents { kind, alarming, open, page: Page::new(skip, limit)? };
    Ok(Tagged { answer: shared.ask(query).await?, known }.into_response())
}

/// Which events are wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EventParams {
    after: Option<String>,
    kind: Option<String>,
    alarming: bool,
    open: bool,
    skip: usize,
    limit: usize,
}

impl Default for EventParams {
    fn default() -> Self {
        let (skip, limit) = (0, DEFAULT_PAGE_ROWS);
        EventParams { after: None, kind: None, alarming: false, open: false, skip, limit }
    }
}
