//! Switches, and where to draw them.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError};

use axum::extract::State;
use axum::{Extension, Json};
use bellrock_query::{
    ClusterSwitchRow, GetTopology, ListSwitches, MoveSwitch, Page, SwitchRef, SwitchRow,
};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::answer::{Fields, Known, NoParams, Part, Shared, Tagged, only};
use crate::layout::LayoutAnswer;
use crate::problem::Problem;

/// The switch of a path.
pub(super) fn switch_ref(text: &str) -> SwitchRef {
    let parsed: Result<SwitchRef, Infallible> = text.parse();
    match parsed {
        Ok(switch) => switch,
    }
}

/// A switch that is connected.
pub(super) async fn switch(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Part(switch): Part<String>,
    known: Known,
) -> Result<Tagged<SwitchRow>, Problem> {
    let query = ListSwitches { switch: Some(switch_ref(&switch)), page: Page::default() };
    let rows = shared.ask(query).await?.rows;
    let missing = || format!("switch {switch} is not connected");
    let answer = only(rows, missing).map_err(|problem| problem.at("switch"))?;
    Ok(Tagged { answer, known })
}

/// Where to draw the switches.
pub(super) async fn layout(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    known: Known,
) -> Result<Tagged<LayoutAnswer>, Problem> {
    let layouts = Arc::clone(&shared.layouts);
    let answer = shared.ask_more("layout", move |operator| {
        let topology = operator.ask(GetTopology {})?;
        // A layout is taken as a whole or not at all.
        Ok(layouts.lock().unwrap_or_else(PoisonError::into_inner).of(&topology))
    });
    Ok(Tagged { answer: answer.await?, known })
}

/// The node that is to be master of a switch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveBody {
    /// Its name.
    node: String,
}

/// Gives a switch to another node.
pub(super) async fn move_switch(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Extension(caller): Extension<Caller>,
    Part(switch): Part<String>,
    Fields(body): Fields<MoveBody>,
) -> Result<Json<ClusterSwitchRow>, Problem> {
    let order = MoveSwitch { switch: switch_ref(&switch), node: body.node };
    Ok(Json(shared.order(caller, order).await?))
}
