//! Flows of apps that do not run.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use bellrock_query::{CleanAnswer, CleanFlows, ListOrphans, Rows, SwitchOrphans};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::PageParams;
use super::network::switch_ref;
use crate::access::Caller;
use crate::answer::{Fields, Known, NoParams, Params, Shared, Tagged};
use crate::problem::Problem;

/// Which flows to list.
#[derive(Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct OrphanParams {
    /// Only this switch: its datapath id or its name.
    switch: Option<String>,
    /// Only flows of the app with this name.
    app: Option<String>,
    /// Number of switches to skip: those of earlier pages.
    skip: usize,
    /// Maximum number of switches.
    #[param(minimum = 1, maximum = 10_000)]
    limit: usize,
}

impl Default for OrphanParams {
    fn default() -> Self {
        let PageParams { skip, limit } = PageParams::default();
        OrphanParams { switch: None, app: None, skip, limit }
    }
}

/// Which flows to remove.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CleanBody {
    /// Only at this switch: its datapath id or its name.
    switch: Option<String>,
    /// Only flows of the app with this name. An app that does not come with Bellrock has to be
    /// named.
    app: Option<String>,
}

/// The flows of apps that do not run here, by switch
///
/// An app leaves them that was taken out of the chain. The switches of the page are asked for their
/// flows. Flows of other controllers are never among them.
#[utoipa::path(get, path = "/v1/orphans", tag = "network", params(OrphanParams), responses(
    (status = 200, description = "A page of the switches.", body = Rows<SwitchOrphans>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn orphans(
    State(shared): State<Arc<Shared>>,
    Params(OrphanParams { switch, app, skip, limit }): Params<OrphanParams>,
    known: Known,
) -> Result<Tagged<Rows<SwitchOrphans>>, Problem> {
    let page = PageParams { skip, limit }.page()?;
    let query = ListOrphans { switch: switch.as_deref().map(switch_ref), app, page };
    Ok(Tagged { answer: shared.ask(query).await?, known })
}

/// Remove the flows of apps that do not run here
///
/// Those that `GET /v1/orphans` lists, each by its match, priority and cookie.
#[utoipa::path(post, path = "/v1/orphans/clean", tag = "network", security(("token" = [])),
    request_body = CleanBody,
    responses(
    (status = 200, description = "What is removed.", body = CleanAnswer),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn clean(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Extension(caller): Extension<Caller>,
    Fields(CleanBody { switch, app }): Fields<CleanBody>,
) -> Result<axum::Json<CleanAnswer>, Problem> {
    let order = CleanFlows { switch: switch.as_deref().map(switch_ref), app };
    Ok(axum::Json(shared.order(caller, order).await?))
}
