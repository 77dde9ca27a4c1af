//! Static flows, groups and meters.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use bellrock_query::{
    ListStatic, Page, SetStatic, StaticAnswer, StaticEntry, StaticFlow, StaticGroup, StaticMeter,
    StaticRow,
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::network::switch_ref;
use crate::access::Caller;
use crate::answer::{Fields, Known, NoParams, Params, Part, Shared, Tagged, only};
use crate::problem::Problem;

/// Who orders.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OwnerParams {
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

/// A static flow, group or meter.
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

/// Sets and removes static flows, groups and meters.
pub(super) async fn set(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Extension(caller): Extension<Caller>,
    Fields(order): Fields<SetStatic>,
) -> Result<Json<StaticAnswer>, Problem> {
    order_of(&shared, caller, order).await
}

/// Sets a static flow, group or meter.
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

/// Removes a static flow, group or meter.
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
