//! The cluster that the controller is a node of.

use std::net::SocketAddr;

use bellrock_api::Dpid;
use serde::{Deserialize, Serialize};

use crate::gauges::word;
use crate::{Count, ErrorKind, Gauge, Page, QueryError, SwitchRef, text};

/// Asks for the state of the cluster, as this node sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GetCluster {}

/// Asks for the switches of the cluster and their masters, by datapath id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListClusterSwitches {
    /// Which of them.
    pub page: Page,
}

/// Gives a switch to another node. The node that is asked must be its master, and answers when the
/// other one is. The switch stays there until that node is lost or drains, or until the next
/// [`MoveSwitch`] or [`BalanceCluster`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MoveSwitch {
    /// The switch.
    #[serde(with = "text")]
    pub switch: SwitchRef,
    /// Name of the node that is to be its master.
    pub node: String,
}

/// Gives all switches of the node that is asked to others, or ends that.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DrainNode {
    /// Whether the node drains.
    pub draining: bool,
}

/// Ends what [`MoveSwitch`] has ordered, for all switches: the nodes spread them evenly again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BalanceCluster {}

/// The state of a cluster, as one of its nodes sees it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClusterStatus {
    /// Name of the cluster.
    pub name: String,
    /// Name of the node that answers.
    pub node: String,
    /// Whether that node may be master of switches: it has a majority, and has read etcd.
    pub serving: bool,
    /// The newest epoch of a switch's order of masters. It grows with each new order.
    #[serde(default)]
    pub epoch: u64,
    /// End of the certificate that the node shows to others, in seconds since 1970. `None`: it has
    /// none.
    #[serde(default)]
    pub certificate_expiry: Option<i64>,
    /// Time by which the first list of revoked certificates of nodes is to be replaced
    /// (`nextUpdate`), in seconds since 1970. `None`: there is none, or it has no end.
    #[serde(default)]
    pub crl_expiry: Option<i64>,
    /// All nodes, by name.
    pub nodes: Vec<NodeRow>,
    /// Its connection to etcd.
    pub store: ClusterStoreRow,
    /// What it has sent to switches of other nodes, and taken from other nodes for its own.
    #[serde(default)]
    pub requests: ClusterRequestsRow,
}

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// Address where it listens for other nodes.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub address: SocketAddr,
    /// What it does.
    pub state: NodeState,
    /// Time since its last heartbeat. `None`: it was never heard, or it is the node that answers.
    #[serde(default)]
    pub last_heard_ms: Option<u64>,
    /// Number of switches that it is to be master of.
    pub switches: usize,
    /// Number of these that an operator has moved to it, and that balancing leaves there.
    #[serde(default)]
    pub placed: usize,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeState {
    /// It may be master of switches.
    Serving,
    /// It gives its switches to others.
    Draining,
    /// It runs, and stands by at all switches: it hears no majority, or has not read etcd.
    NoMajority,
    /// A majority of the nodes does not hear it.
    Dead,
    /// It was not heard yet, or a newer controller has sent a state that this release does not
    /// know.
    #[serde(other)]
    Unknown,
}

impl NodeState {
    /// Whether the node runs, as far as the others know.
    #[must_use]
    pub fn is_alive(self) -> bool {
        matches!(self, NodeState::Serving | NodeState::Draining | NodeState::NoMajority)
    }
}

/// The connection of a node to etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClusterStoreRow {
    /// Whether etcd answers.
    pub reachable: bool,
    /// The revision up to which the node knows all changes. `None`: it has read nothing yet.
    #[serde(default)]
    pub revision: Option<u64>,
    /// Time since etcd was heard, in milliseconds. It is asked for a sign of life twice a second.
    /// `None`: it was never heard.
    #[serde(default)]
    pub last_heard_ms: Option<u64>,
    /// The latest error.
    #[serde(default)]
    pub last_error: Option<String>,
}

/// Messages between nodes, since the node has started. What is sent and not counted otherwise is on
/// its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct ClusterRequestsRow {
    /// Number of requests that apps and operators of this node made for switches of other nodes.
    pub sent: u64,
    /// Number of these that a master has answered.
    pub answered: u64,
    /// Number of these that no switch has got: there was no master in time, or too many were on
    /// their way.
    pub not_sent: u64,
    /// Number of these whose outcome is unknown: the master was lost, or did not answer in time.
    pub unknown: u64,
    /// Number of requests that other nodes made for switches of this one.
    pub taken: u64,
    /// Number of these that this node has refused, as it was not the switch's master.
    pub refused: u64,
}

/// A switch of a cluster, and its masters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClusterSwitchRow {
    /// Its datapath id.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// Its name in the configuration.
    #[serde(default)]
    pub name: Option<String>,
    /// The order of its masters: the first that lives and is connected is master. Empty: there is
    /// no record of it yet.
    pub masters: Vec<String>,
    /// Epoch of that order. It grows with each change.
    #[serde(default)]
    pub epoch: Option<u64>,
    /// The node that the switch obeys, as far as this node knows.
    #[serde(default)]
    pub obeys: Option<String>,
    /// Whether an operator has moved it to the first of its masters, so that balancing leaves it
    /// there.
    #[serde(default)]
    pub placed: bool,
    /// What the node that answers is at the switch.
    pub role: NodeRole,
}

impl ClusterSwitchRow {
    /// How the switches of a cluster are counted.
    pub const GAUGES: &[Gauge<Self>] = &[Gauge {
        name: "bellrock_cluster_switches",
        about: "Number of switches of the cluster, by what this node is there.",
        count: Count::By("role", &["away", "claiming", "master", "standby"], |row| word(&row.role)),
    }];
}

/// What a node is at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeRole {
    /// The switch is not connected to it.
    Away,
    /// It only reads.
    Standby,
    /// It has asked to be master.
    Claiming,
    /// It is master.
    Master,
    /// A newer controller has sent it.
    #[serde(other)]
    Unknown,
}

/// Asks the cluster of a controller, and gives it orders. What runs the cluster implements it, and
/// the controller's [`Operator`](crate::Operator) calls it, in a thread that may wait for seconds.
pub trait ClusterHandle: Send + Sync {
    /// The state of the cluster.
    ///
    /// # Errors
    /// The node is ending.
    fn status(&self) -> Result<ClusterStatus, QueryError>;

    /// The switches of the cluster, by datapath id. Their names are filled in elsewhere.
    ///
    /// # Errors
    /// The node is ending.
    fn switches(&self) -> Result<Vec<ClusterSwitchRow>, QueryError>;

    /// Gives a switch to another node, waits until that is its master, and returns the switch.
    /// `node` is a node of [`status`](Self::status).
    ///
    /// # Errors
    /// This node is not its master, or does not know it; the other node cannot take it; etcd does
    /// not answer; or it is not done in time.
    fn move_switch(&self, dpid: Dpid, node: &str) -> Result<ClusterSwitchRow, QueryError>;

    /// Begins to give all switches of this node to others, or ends that. Returns the new state.
    ///
    /// # Errors
    /// The node has no majority, so that nobody can take them.
    fn drain(&self, draining: bool) -> Result<ClusterStatus, QueryError>;

    /// Ends what moves have ordered, so that all nodes begin to spread all switches evenly. Returns
    /// the new state.
    ///
    /// # Errors
    /// This node does not serve, or etcd does not answer or confirm it in time.
    fn balance(&self) -> Result<ClusterStatus, QueryError>;
}

impl QueryError {
    /// The controller is not a node of a cluster.
    #[must_use]
    pub fn no_cluster() -> Self {
        let why = "this controller is not a node of a cluster; set `cluster.name`, `cluster.node`, `cluster.peers` \
                   and `cluster.etcd.endpoints`, and start it again";
        QueryError::new(ErrorKind::NoCluster, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_a_newer_release_are_unknown_and_not_alive() {
        let state = |text: &str| serde_json::from_str::<NodeState>(text).unwrap();
        assert_eq!(state("\"no_majority\""), NodeState::NoMajority);
        assert_eq!(state("\"asleep\""), NodeState::Unknown);
        assert!(state("\"draining\"").is_alive() && state("\"no_majority\"").is_alive());
        assert!(!state("\"dead\"").is_alive() && !state("\"asleep\"").is_alive());
        assert_eq!(serde_json::from_str::<NodeRole>("\"king\"").unwrap(), NodeRole::Unknown);
    }
}
