//! Answers about the cluster, and orders to it.

use std::collections::BTreeMap;

use bellrock_api::runtime::RoleControl;
use bellrock_api::{Dpid, Names};
use bellrock_query::{
    ClusterHandle, ClusterStatus, ClusterSwitchRow, DrainNode, MoveSwitch, Page, QueryError, Rows,
};

use super::{ControllerOperator, name_of};

/// What an order for all nodes does at a node that hears no majority, or has not read etcd.
const NOT_SERVING: &str = "this node does not serve (`bellrock cluster` shows why): the order is \
                           stored, the nodes that serve carry it out, and this one when it serves \
                           again";

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

    /// What answers to orders for all nodes say at a node that does not serve: it stores the order,
    /// and is master of no switch. `None`: it serves, or there is no cluster.
    pub(super) fn notice(&self) -> Option<String> {
        let status = self.cluster().and_then(ClusterHandle::status).ok()?;
        (!status.serving).then(|| NOT_SERVING.to_owned())
    }

    /// The switches that obey other nodes of the cluster, and the names of these. Empty at a node
    /// that does not serve: it does not hear the others.
    pub(super) fn at_other_nodes(&self) -> BTreeMap<Dpid, String> {
        match self.cluster().and_then(ClusterHandle::status) {
            Ok(ClusterStatus { serving: true, node: own, .. }) => {
                self.masters().into_iter().filter(|(_, node)| *node != own).collect()
            }
            _ => BTreeMap::new(),
        }
    }

    /// The switches at which this controller stands by, and why an order is not in force there.
    /// `does`: what a master does with what is ordered, such as "installs it".
    pub(super) fn standbys(&self, names: &Names, does: &str) -> BTreeMap<Dpid, String> {
        let is_serving = self.notice().is_none();
        let why = |dpid| {
            let switch = name_of(names, dpid).unwrap_or_else(|| dpid.to_string());
            match is_serving {
                true => format!("this controller stands by at switch {switch}"),
                false => format!(
                    "this node does not serve, so it does not know which node is master of \
                     switch {switch}: that one {does}, if there is one (see `bellrock cluster`)"
                ),
            }
        };
        let standbys = self.network.standbys().load();
        standbys.iter().map(|info| (info.dpid, why(info.dpid))).collect()
    }

    /// The switches that another controller changes, and who that is. `does`: as above.
    pub(super) fn elsewhere(&self, names: &Names, does: &str) -> BTreeMap<Dpid, String> {
        let mut elsewhere = self.standbys(names, does);
        for (dpid, node) in self.at_other_nodes() {
            let switch = name_of(names, dpid).unwrap_or_else(|| dpid.to_string());
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
