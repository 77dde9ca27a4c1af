//! What operators see of a node of a cluster.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::Dpid;
use bellrock_cluster::mastership::{NodeState as Seen, SwitchRole};
use bellrock_cluster::remote::RequestCounters;
use bellrock_cluster::{Cluster, OrderError, SwitchStatus};
use bellrock_query::{
    ClusterHandle, ClusterRequestsRow, ClusterStatus, ClusterStoreRow, ClusterSwitchRow, ErrorKind,
    NodeRole, NodeRow, NodeState, QueryError,
};

/// A node, as operators ask it.
pub(crate) struct ClusterNode(pub(crate) Arc<Cluster>);

impl ClusterHandle for ClusterNode {
    fn status(&self) -> Result<ClusterStatus, QueryError> {
        let status = self.0.status().map_err(|error| refused(&error))?;
        let nodes = status.nodes.into_iter().map(|node| NodeRow {
            name: node.name,
            address: node.address,
            state: match node.state {
                Seen::Serving => NodeState::Serving,
                Seen::Draining => NodeState::Draining,
                Seen::StandingBy => NodeState::NoMajority,
                Seen::Dead => NodeState::Dead,
                Seen::Silent => NodeState::Unknown,
            },
            last_heard_ms: node.heard_ago.map(milliseconds),
            switches: node.switches,
            placed: node.placed,
        });
        Ok(ClusterStatus {
            name: status.cluster,
            node: status.node,
            serving: status.is_serving,
            epoch: status.epoch,
            certificate_expiry: status.not_after,
            crl_expiry: status.revocations_end,
            nodes: nodes.collect(),
            store: ClusterStoreRow {
                reachable: status.has_store,
                revision: status.revision.and_then(|revision| revision.try_into().ok()),
                last_heard_ms: status.store_heard_ago.map(milliseconds),
                last_error: Some(status.store_trouble).filter(|trouble| !trouble.is_empty()),
            },
            requests: requests(status.requests),
        })
    }

    fn switches(&self) -> Result<Vec<ClusterSwitchRow>, QueryError> {
        let node = self.0.status().map_err(|error| refused(&error))?.node;
        let switches = self.0.switches().map_err(|error| refused(&error))?;
        Ok(switches.into_iter().map(|switch| row(switch, &node)).collect())
    }

    fn move_switch(&self, dpid: Dpid, node: &str) -> Result<ClusterSwitchRow, QueryError> {
        self.0.move_switch(dpid, node).map_err(|error| refused(&error))?;
        let found = self.switches()?.into_iter().find(|row| row.dpid == dpid);
        found.ok_or_else(|| QueryError::not_found("switch", "the cluster does not know the switch"))
    }

    fn drain(&self, draining: bool) -> Result<ClusterStatus, QueryError> {
        self.0.drain(draining).map_err(|error| refused(&error))?;
        self.status()
    }

    fn balance(&self) -> Result<ClusterStatus, QueryError> {
        self.0.balance().map_err(|error| refused(&error))?;
        self.status()
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn requests(counters: RequestCounters) -> ClusterRequestsRow {
    let RequestCounters { sent, answered, not_sent, unknown, taken, refused } = counters;
    ClusterRequestsRow { sent, answered, not_sent, unknown, taken, refused }
}

/// A switch, as the node of this name sees it.
fn row(switch: SwitchStatus, node: &str) -> ClusterSwitchRow {
    let SwitchStatus { dpid, masters, epoch, master, placed, role } = switch;
    let obeys = match role {
        SwitchRole::Master(_) => Some(node.to_owned()),
        // The switch may have obeyed the next one for a moment.
        _ => master.or_else(|| masters.first().cloned()),
    };
    ClusterSwitchRow {
        dpid,
        name: None,
        epoch,
        obeys,
        masters,
        placed,
        role: match role {
            SwitchRole::Away => NodeRole::Away,
            SwitchRole::Standby => NodeRole::Standby,
            SwitchRole::Claiming => NodeRole::Claiming,
            SwitchRole::Master(_) => NodeRole::Master,
        },
    }
}

fn refused(error: &OrderError) -> QueryError {
    let kind = match error {
        OrderError::UnknownNode { .. } => ErrorKind::NotFound,
        OrderError::NotServing
        | OrderError::NoStore { .. }
        | OrderError::Moving { .. }
        | OrderError::NotMaster { .. }
        | OrderError::CannotTake { .. }
        | OrderError::TakenOver { .. } => ErrorKind::Refused,
        _ => ErrorKind::Timeout,
    };
    QueryError { kind, field: None, message: error.to_string() }
}
