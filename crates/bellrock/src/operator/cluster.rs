//! Answers about the cluster, and orders to it.

use std::collections::BTreeMap;

use bellrock_api::runtime::RoleControl;
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

    /// The nodes that switches obey. Empty if the controller is alone, or its node is ending.
    pub(super) fn masters(&self) -> BTreeMap<Dpid, String> {
        let rows = self.cluster().and_then(ClusterHandle::switches).unwrap_or_default();
        rows.into_iter().filter_map(|row| Some((row.dpid, row.obeys?))).collect()
    }

    /// The switches that another controller changes, and who that is. `does`: what it does with
    /// what is ordered, such as "installs it".
    pub(super) fn elsewhere(&self, names: &Names, does: &str) -> BTreeMap<Dpid, String> {
        let name = |dpid| name_of(names, dpid).unwrap_or_else(|| dpid.to_string());
        let standbys = self.network.standbys().load();
        let standbys: Vec<Dpid> = standbys.iter().map(|info| info.dpid).collect();
        let status = self.cluster().and_then(ClusterHandle::status).ok();
        let why = |dpid| match &status {
            Some(status) if !status.serving => format!(
                "this node does not serve, so it does not know which node is master of switch {}: \
                 that one {does}, if there is one (see `bellrock cluster`)",
                name(dpid)
            ),
            _ => format!("this controller stands by at switch {}", name(dpid)),
        };
        let mut elsewhere: BTreeMap<Dpid, String> =
            standbys.into_iter().map(|dpid| (dpid, why(dpid))).collect();
        let Some(own) = status.filter(|status| status.serving).map(|status| status.node) else {
            return elsewhere;
        };
        for (dpid, node) in self.masters().into_iter().filter(|(_, node)| *node != own) {
            let switch = name(dpid);
            let why = format!(
                "switch {switch} obeys node {node}, which {does}, and shows whether it has"
            );
            elsewhere.insert(dpid, why);
        }
        elsewhere
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
