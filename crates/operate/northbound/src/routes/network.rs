//! Switches, links, hosts and flows.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError};

use axum::extract::State;
use bellrock_query::{
    CountFlows, FlowPage, GetTopology, GroupRow, HostRow, LinkRow, ListFlows, ListGroups,
    ListHosts, ListLinks, ListMeters, ListPorts, ListSwitches, MeterRow, Page, PortStatsRow, Rows,
    SwitchFlows, SwitchRef, SwitchRow, TopologyAnswer,
};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::PageParams;
use crate::answer::{Known, NoParams, Params, Part, Shared, Tagged, only};
use crate::layout::LayoutAnswer;
use crate::problem::Problem;

/// The switch of a path.
pub(super) fn switch_ref(text: &str) -> SwitchRef {
    let parsed: Result<SwitchRef, Infallible> = text.parse();
    match parsed {
        Ok(switch) => switch,
    }
}

/// The switches that are connected, by datapath id
#[utoipa::path(get, path = "/v1/switches", tag = "network", params(PageParams), responses(
    (status = 200, description = "A page of the switches.", body = Rows<SwitchRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn switches(
    State(shared): State<Arc<Shared>>,
    Params(page): Params<PageParams>,
    known: Known,
) -> Result<Tagged<Rows<SwitchRow>>, Problem> {
    let query = ListSwitches { switch: None, page: page.page()? };
    Ok(Tagged { answer: shared.ask(query).await?, known })
}

/// A switch that is connected
#[utoipa::path(get, path = "/v1/switches/{switch}", tag = "network",
    params(("switch" = String, Path, description = "Its datapath id or its name.")),
    responses(
    (status = 200, description = "The switch.", body = SwitchRow),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
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

/// The ports of a switch, with their counters
///
/// The switch is asked for the counters.
#[utoipa::path(get, path = "/v1/switches/{switch}/ports", tag = "network",
    params(("switch" = String, Path, description = "Its datapath id or its name."), PageParams),
    responses(
    (status = 200, description = "A page of the ports.", body = Rows<PortStatsRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn switch_ports(
    State(shared): State<Arc<Shared>>,
    Part(switch): Part<String>,
    Params(page): Params<PageParams>,
    known: Known,
) -> Result<Tagged<Rows<PortStatsRow>>, Problem> {
    let query = ListPorts { switch: Some(switch_ref(&switch)), page: page.page()? };
    Ok(Tagged { answer: shared.ask(query).await?, known })
}

/// Which flows of a switch are wanted.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct FlowParams {
    /// Only flows of this app, of `controller`, or `foreign` ones.
    app: Option<String>,
    /// Number of rows before the page.
    skip: usize,
    /// Maximum number of rows in the page.
    #[param(minimum = 1, maximum = 10_000)]
    limit: usize,
}

impl Default for FlowParams {
    fn default() -> Self {
        let PageParams { skip, limit } = PageParams::default();
        FlowParams { app: None, skip, limit }
    }
}

/// The flows of a switch
///
/// The switch is asked for them. They are ordered by table, then by priority (highest first), then
/// by match.
#[utoipa::path(get, path = "/v1/switches/{switch}/flows", tag = "network",
    params(("switch" = String, Path, description = "Its datapath id or its name."), FlowParams),
    responses(
    (status = 200, description = "A page of the flows.", body = FlowPage),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn switch_flows(
    State(shared): State<Arc<Shared>>,
    Part(switch): Part<String>,
    Params(FlowParams { app, skip, limit }): Params<FlowParams>,
    known: Known,
) -> Result<Tagged<FlowPage>, Problem> {
    let page = PageParams { skip, limit }.page()?;
    let query = ListFlows { switch: switch_ref(&switch), app, page };
    Ok(Tagged { answer: shared.ask(query).await?, known })
}

/// The groups of a switch
///
/// The switch is asked for them. A switch with OpenFlow 1.0 has none, and is refused (409).
#[utoipa::path(get, path = "/v1/switches/{switch}/groups", tag = "network",
    params(("switch" = String, Path, description = "Its datapath id or its name."), PageParams),
    responses(
    (status = 200, description = "A page of the groups.", body = Rows<GroupRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn switch_groups(
    State(shared): State<Arc<Shared>>,
    Part(switch): Part<String>,
    Params(page): Params<PageParams>,
    known: Known,
) -> Result<Tagged<Rows<GroupRow>>, Problem> {
    let query = ListGroups { switch: switch_ref(&switch), page: page.page()? };
    Ok(Tagged { answer: shared.ask(query).await?, known })
}

/// The meters of a switch
///
/// The switch is asked for them. A switch with OpenFlow 1.0 has none, and is refused (409).
#[utoipa::path(get, path = "/v1/switches/{switch}/meters", tag = "network",
    params(("switch" = String, Path, description = "Its datapath id or its name."), PageParams),
    responses(
    (status = 200, description = "A page of the meters.", body = Rows<MeterRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn switch_meters(
    State(shared): State<Arc<Shared>>,
    Part(switch): Part<String>,
    Params(page): Params<PageParams>,
    known: Known,
) -> Result<Tagged<Rows<MeterRow>>, Problem> {
    let query = ListMeters { switch: switch_ref(&switch), page: page.page()? };
    Ok(Tagged { answer: shared.ask(query).await?, known })
}

/// The ports of all switches, or of one, with their counters
///
/// The switches of the page are asked for the counters.
#[utoipa::path(get, path = "/v1/ports", tag = "network", params(SwitchParams), responses(
    (status = 200, description = "A page of the ports.", body = Rows<PortStatsRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn ports(
    State(shared): State<Arc<Shared>>,
    Params(SwitchParams { switch, skip, limit }): Params<SwitchParams>,
    known: Known,
) -> Result<Tagged<Rows<PortStatsRow>>, Problem> {
    let page = PageParams { skip, limit }.page()?;
    let query = ListPorts { switch: switch.as_deref().map(switch_ref), page };
    Ok(Tagged { answer: shared.ask(query).await?, known })
}

/// Numbers of flows by switch and app
///
/// The switches of the page are asked for their flows.
#[utoipa::path(get, path = "/v1/flows", tag = "network", params(PageParams), responses(
    (status = 200, description = "A page of the switches.", body = Rows<SwitchFlows>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn flows(
    State(shared): State<Arc<Shared>>,
    Params(page): Params<PageParams>,
    known: Known,
) -> Result<Tagged<Rows<SwitchFlows>>, Problem> {
    Ok(Tagged { answer: shared.ask(CountFlows { switch: None, page: page.page()? }).await?, known })
}

/// Which rows are wanted.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct SwitchParams {
    /// Only those at this switch: its datapath id or its name.
    switch: Option<String>,
    /// Number of rows before the page.
    skip: usize,
    /// Maximum number of rows in the page.
    #[param(minimum = 1, maximum = 10_000)]
    limit: usize,
}

impl Default for SwitchParams {
    fn default() -> Self {
        let PageParams { skip, limit } = PageParams::default();
        SwitchParams { switch: None, skip, limit }
    }
}

/// The hosts, by switch and port
#[utoipa::path(get, path = "/v1/hosts", tag = "network", params(SwitchParams), responses(
    (status = 200, description = "A page of the hosts.", body = Rows<HostRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn hosts(
    State(shared): State<Arc<Shared>>,
    Params(SwitchParams { switch, skip, limit }): Params<SwitchParams>,
    known: Known,
) -> Result<Tagged<Rows<HostRow>>, Problem> {
    let page = PageParams { skip, limit }.page()?;
    let query = ListHosts { switch: switch.as_deref().map(switch_ref), page };
    Ok(Tagged { answer: shared.ask(query).await?, known })
}

/// The switches and links that discovery knows
#[utoipa::path(get, path = "/v1/topology", tag = "network", responses(
    (status = 200, description = "The topology.", body = TopologyAnswer),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn topology(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    known: Known,
) -> Result<Tagged<TopologyAnswer>, Problem> {
    Ok(Tagged { answer: shared.ask(GetTopology {}).await?, known })
}

/// Where to draw the switches
///
/// The unit is the length of a link. A layout stays while no switch and no link is added, and then
/// changes as little as possible.
#[utoipa::path(get, path = "/v1/topology/layout", tag = "network", responses(
    (status = 200, description = "The layout.", body = LayoutAnswer),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
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

/// The links between switches, by their first port
#[utoipa::path(get, path = "/v1/links", tag = "network", params(PageParams), responses(
    (status = 200, description = "A page of the links.", body = Rows<LinkRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn links(
    State(shared): State<Arc<Shared>>,
    Params(page): Params<PageParams>,
    known: Known,
) -> Result<Tagged<Rows<LinkRow>>, Problem> {
    Ok(Tagged { answer: shared.ask(ListLinks { page: page.page()? }).await?, known })
}
