//! Links that look like relays between hosts.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use bellrock_query::{JudgeRelay, ListRelays, RelayRow, Rows};

use super::PageParams;
use crate::access::Caller;
use crate::answer::{Fields, Known, NoParams, Params, Shared, Tagged};
use crate::problem::Problem;

/// The links that look like relays between hosts, and those that an operator has judged
#[utoipa::path(get, path = "/v1/relays", tag = "network", params(PageParams), responses(
    (status = 200, description = "A page of the links.", body = Rows<RelayRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn relays(
    State(shared): State<Arc<Shared>>,
    Params(page): Params<PageParams>,
    known: Known,
) -> Result<Tagged<Rows<RelayRow>>, Problem> {
    Ok(Tagged { answer: shared.ask(ListRelays { page: page.page()? }).await?, known })
}

/// Say that the link between two ports is one, or a relay between hosts
///
/// In both directions, until the controller ends. The verdict `none` leaves it to discovery again.
#[utoipa::path(post, path = "/v1/relays", tag = "network", security(("token" = [])),
    request_body = JudgeRelay,
    responses(
    (status = 200, description = "It is judged.", body = RelayRow),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn judge(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Extension(caller): Extension<Caller>,
    Fields(order): Fields<JudgeRelay>,
) -> Result<axum::Json<RelayRow>, Problem> {
    Ok(axum::Json(shared.order(caller, order).await?))
}
