//! Answers about the cluster, and orders to it.

use bellrock_api::{Dpid, Names};
use bellrock_query::{
    ClusterHandle, ClusterStatus, ClusterSwitchRow, DrainNode, MoveSwitch, Page, QueryError, Rows,
};

use super::{ControllerOperator, name_of};

impl ControllerOperator {
    /// The cluster, if this controller is a node of one.
    pub(super) fn cluster(&self) -> Result<&dyn ClusterHandle, QueryError> {
        self.handles.cluster.as_deref().ok_or_else(QueryError::no_cluster)
    }
}

pub(super) fn list(
    cluster: &dyn ClusterHandle,
    names: &Names,
    page: Page,
) -> Result<Rows<ClusterSwitchRow>, QueryError> {
    Ok(Rows::of(cluster.switches()?, page).map(|row| with_name(row, names)))
}

pub(super) fn move_switch(
    cluster: &dyn ClusterHandle,
    names: &Names,
    dpid: Dpid,
    order: &MoveSwitch,
) -> Result<ClusterSwitchRow, QueryError> {
    let nodes = cluster.status()?.nodes;
    if !nodes.iter().any(|node| node.name == order.node) {
        let all: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
        let why = format!(
            "there is no node {:?} in this cluster; give one of {}",
            order.node,
            all.join(", ")
        );
        return Err(QueryError::not_found("node", why));
    }
    Ok(with_name(cluster.move_switch(dpid, &order.node)?, names))
}

pub(super) fn drain(
    cluster: &dyn ClusterHandle,
    order: &DrainNode,
) -> Result<ClusterStatus, QueryError> {
    cluster.drain(order.draining)
}

fn with_name(row: ClusterSwitchRow, names: &Names) -> ClusterSwitchRow {
    ClusterSwitchRow { name: name_of(names, row.dpid), ..row }
}
