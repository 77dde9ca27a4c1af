//! The cluster that the controller is a node of.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use bellrock_query::{
    BalanceCluster, ClusterStatus, ClusterSwitchRow, DrainNode, GetCluster, GetSharedConfig,
    ListClusterSwitches, MoveSwitch, ReloadAnswer, Rows, SetSharedConfig, SharedConfig,
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::PageParams;
use super::network::switch_ref;
use crate::access::Caller;
use crate::answer::{Fields, Known, NoParams, Params, Part, Shared, Tagged};
use crate::problem::Problem;

/// The node that is to be master of a switch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveBody {
    /// Its name.
    node: String,
}

/// The cluster, as this node sees it
///
/// A controller that is alone answers with the problem `no_cluster`.
#[utoipa::path(get, path = "/v1/cluster", tag = "controller", responses(
    (status = 200, description = "The nodes, and the connection to etcd.", body = ClusterStatus),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn cluster(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    known: Known,
) -> Result<Tagged<ClusterStatus>, Problem> {
    Ok(Tagged { answer: shared.ask(GetCluster {}).await?, known })
}

/// The switches of the cluster and their masters, by datapath id
#[utoipa::path(get, path = "/v1/cluster/switches", tag = "controller", params(PageParams), responses(
    (status = 200, description = "A page of the switches.", body = Rows<ClusterSwitchRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn cluster_switches(
    State(shared): State<Arc<Shared>>,
    Params(page): Params<PageParams>,
    known: Known,
) -> Result<Tagged<Rows<ClusterSwitchRow>>, Problem> {
    Ok(Tagged { answer: shared.ask(ListClusterSwitches { page: page.page()? }).await?, known })
}

/// Give a switch to another node
///
/// Ask the node that is its master. The answer comes when the other node is master, or after 5 s
/// with a problem. Balancing leaves the switch there until that node is lost or drains, or until
/// the next order to move it or to balance.
#[utoipa::path(post, path = "/v1/cluster/switches/{switch}/move", tag = "controller", security(("token" = [])),
    params(("switch" = String, Path, description = "Its datapath id or its name.")),
    request_body = MoveBody,
    responses(
    (status = 200, description = "The switch obeys the other node.", body = ClusterSwitchRow),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
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

/// Give all switches of this node to others, before it is stopped, or end that
#[utoipa::path(post, path = "/v1/cluster/drain", tag = "controller", security(("token" = [])),
    request_body = DrainNode,
    responses(
    (status = 200, description = "The cluster, with the new state of this node.", body = ClusterStatus),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn drain_node(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Extension(caller): Extension<Caller>,
    Fields(order): Fields<DrainNode>,
) -> Result<Json<ClusterStatus>, Problem> {
    Ok(Json(shared.order(caller, order).await?))
}

/// Let the nodes spread all switches evenly, those that were moved by order too
///
/// Any node takes this order. The answer comes when etcd has confirmed it, and the switches follow
/// one at a time.
#[utoipa::path(post, path = "/v1/cluster/balance", tag = "controller", security(("token" = [])), responses(
    (status = 200, description = "The cluster. No switch is placed by order any more.", body = ClusterStatus),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn balance_cluster(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Extension(caller): Extension<Caller>,
) -> Result<Json<ClusterStatus>, Problem> {
    Ok(Json(shared.order(caller, BalanceCluster {}).await?))
}

/// The configuration that the nodes share
#[utoipa::path(get, path = "/v1/cluster/configuration", tag = "controller", responses(
    (status = 200, description = "The configuration, as this node knows it.", body = SharedConfig),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn shared_config(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    known: Known,
) -> Result<Tagged<SharedConfig>, Problem> {
    Ok(Tagged { answer: shared.ask(GetSharedConfig {}).await?, known })
}

/// Replace the configuration that the nodes share
///
/// All nodes apply it at once. The answer lists what has changed at the node that is asked.
#[utoipa::path(put, path = "/v1/cluster/configuration", tag = "controller", security(("token" = [])),
    request_body = SetSharedConfig,
    responses(
    (status = 200, description = "It is stored, and in force at this node.", body = ReloadAnswer),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn set_shared_config(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Extension(caller): Extension<Caller>,
    Fields(order): Fields<SetSharedConfig>,
) -> Result<Json<ReloadAnswer>, Problem> {
    Ok(Json(shared.order(caller, order).await?))
}
