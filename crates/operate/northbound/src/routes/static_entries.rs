//! Static flows, groups and meters.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use bellrock_query::{
    ListStatic, Page, Rows, SetStatic, StaticAnswer, StaticEntry, StaticFlow, StaticGroup,
    StaticMeter, StaticRow,
};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::PageParams;
use super::network::switch_ref;
use crate::access::Caller;
use crate::answer::{Fields, Known, NoParams, Params, Part, Shared, Tagged, only};
use crate::problem::Problem;

/// Which entries are wanted.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct StaticParams {
    /// Only entries of this switch: its datapath id or its name.
    switch: Option<String>,
    /// Only entries of this owner.
    owner: Option<String>,
    /// Number of rows before the page.
    skip: Option<usize>,
    /// Maximum number of rows in the page.
    #[param(minimum = 1, maximum = 10_000)]
    limit: Option<usize>,
}

/// Who orders.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct OwnerParams {
    /// The owner of the entry. The default is the name of the token.
    owner: Option<String>,
}

/// An entry whose name is in the path. Exactly one of `flow`, `group` and `meter` is given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StaticBody {
    /// The switch: its datapath id or its name.
    switch: String,
    /// Time after which it is removed. Never if it is left out.
    #[serde(default)]
    ttl_seconds: Option<u32>,
    /// It is this flow.
    #[serde(default)]
    flow: Option<StaticFlow>,
    /// It is this group (1.3).
    #[serde(default)]
    group: Option<StaticGroup>,
    /// It is this meter (1.3).
    #[serde(default)]
    meter: Option<StaticMeter>,
}

/// The static flows, groups and meters, by name
#[utoipa::path(get, path = "/v1/static", tag = "orders", params(StaticParams), responses(
    (status = 200, description = "A page of the entries, with their states.", body = Rows<StaticRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn entries(
    State(shared): State<Arc<Shared>>,
    Params(params): Params<StaticParams>,
    known: Known,
) -> Result<Tagged<Rows<StaticRow>>, Problem> {
    let StaticParams { switch, owner, skip, limit } = params;
    let first = PageParams::default();
    let page = PageParams { skip: skip.unwrap_or(first.skip), limit: limit.unwrap_or(first.limit) };
    let switch = switch.as_deref().map(switch_ref);
    let query = ListStatic { name: None, switch, owner, page: page.page()? };
    Ok(Tagged { answer: shared.ask(query).await?, known })
}

/// A static flow, group or meter
#[utoipa::path(get, path = "/v1/static/{name}", tag = "orders",
    params(("name" = String, Path, description = "Its name.")),
    responses(
    (status = 200, description = "The entry, with its state.", body = StaticRow),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn entry(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Part(name): Part<String>,
    known: Known,
) -> Result<Tagged<StaticRow>, Problem> {
    let missing = format!("there is no entry {name}");
    let query = ListStatic { name: Some(name), page: Page::default(), ..ListStatic::default() };
    let answer = only(shared.ask(query).await?.rows, || missing)?;
    Ok(Tagged { answer, known })
}

/// Set and remove static flows, groups and meters
///
/// All of them, or none. The answer comes when the switches have confirmed them, or after some
/// seconds with the entries that are not confirmed.
#[utoipa::path(post, path = "/v1/static", tag = "orders", security(("token" = [])),
    request_body = SetStatic,
    responses(
    (status = 200, description = "They are wanted now.", body = StaticAnswer),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn set(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Extension(caller): Extension<Caller>,
    Fields(order): Fields<SetStatic>,
) -> Result<Json<StaticAnswer>, Problem> {
    order_of(&shared, caller, order).await
}

/// Set a static flow, group or meter
///
/// It replaces the entry of this name.
#[utoipa::path(put, path = "/v1/static/{name}", tag = "orders", security(("token" = [])),
    params(("name" = String, Path, description = "Its name."), OwnerParams),
    request_body = StaticBody,
    responses(
    (status = 200, description = "It is wanted now.", body = StaticAnswer),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn set_one(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    Part(name): Part<String>,
    Params(OwnerParams { owner }): Params<OwnerParams>,
    Fields(body): Fields<StaticBody>,
) -> Result<Json<StaticAnswer>, Problem> {
    let StaticBody { switch, ttl_seconds, flow, group, meter } = body;
    let switch = switch_ref(&switch);
    let entry = StaticEntry { name, switch, ttl_seconds, flow, group, meter };
    let order = SetStatic { owner, entries: vec![entry], ..SetStatic::default() };
    // The body is one entry, so its fields are not those of a list.
    order_of(&shared, caller, order).await.map_err(|problem| problem.within("entries[0]"))
}

/// Remove a static flow, group or meter
#[utoipa::path(delete, path = "/v1/static/{name}", tag = "orders", security(("token" = [])),
    params(("name" = String, Path, description = "Its name."), OwnerParams),
    responses(
    (status = 200, description = "It is removed.", body = StaticAnswer),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn remove(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    Part(name): Part<String>,
    Params(OwnerParams { owner }): Params<OwnerParams>,
) -> Result<Json<StaticAnswer>, Problem> {
    let order = SetStatic { owner, remove: vec![name], ..SetStatic::default() };
    // The name is a part of the path.
    order_of(&shared, caller, order).await.map_err(|problem| problem.renamed("remove", "name"))
}

/// Gives an order. Entries belong to the token's name unless the order names an owner.
async fn order_of(
    shared: &Arc<Shared>,
    caller: Caller,
    mut order: SetStatic,
) -> Result<Json<StaticAnswer>, Problem> {
    order.owner = order.owner.or_else(|| caller.name().map(str::to_owned));
    Ok(Json(shared.order(caller, order).await?))
}
