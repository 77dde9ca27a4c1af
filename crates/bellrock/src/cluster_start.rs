//! Starts a node of a cluster.

use std::sync::Arc;

use bellrock_api::Network;
use bellrock_cluster::{Cluster, ClusterSettings, StartError};
use bellrock_services::desired::OperatorChange;

/// Starts the node. Orders of operators of other nodes count as those of this one's operators.
pub(crate) fn start_cluster(
    settings: ClusterSettings,
    network: &Network,
) -> Result<Cluster, StartError> {
    let orders = network.clone();
    let begin_order = Arc::new(move |dpid| {
        let order: Box<dyn std::any::Any + Send> = Box::new(OperatorChange::begin(&orders, dpid));
        order
    });
    Cluster::start(settings, network.clone(), begin_order)
}
