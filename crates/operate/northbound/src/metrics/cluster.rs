//! Families of a cluster, its nodes, its store, and what nodes send to each other.

use std::fmt;

use bellrock_query::{ClusterRequestsRow, ClusterStoreRow, NodeRow};

use super::families::{Families, Output, alone};

const MS_PER_S: f64 = 1000.0;

impl Families {
    /// The cluster, unless the controller is alone.
    pub(super) fn cluster(&self, output: &mut Output<'_, '_>) -> fmt::Result {
        let Some(status) = &self.readings.cluster else { return Ok(()) };
        output.gauge(
            "bellrock_cluster_serving",
            "1 if this node may be master of switches: it has a majority, and has read etcd.",
            alone(u64::from(status.serving)),
        )?;
        output.gauge(
            "bellrock_cluster_epoch",
            "Newest epoch of an order of masters that this node knows.",
            alone(status.epoch),
        )?;
        output.gauge(
            "bellrock_cluster_certificate_expiry_timestamp_seconds",
            "End of the certificate that this node shows to other nodes, in seconds since 1970.",
            status.certificate_expiry.map(|end| (Vec::new(), end)),
        )?;
        output.gauge(
            "bellrock_cluster_crl_expiry_timestamp_seconds",
            "Time by which the list of revoked certificates of nodes is to be replaced, in seconds since 1970.",
            status.crl_expiry.map(|end| (Vec::new(), end)),
        )?;
        nodes(&status.nodes, output)?;
        store(&status.store, output)?;
        requests(&status.requests, output)
    }
}

fn nodes(nodes: &[NodeRow], output: &mut Output<'_, '_>) -> fmt::Result {
    let label = |node: &NodeRow| vec![("node", node.name.clone())];
    output.gauge(
        "bellrock_cluster_nodes",
        "Number of nodes of the cluster.",
        alone(nodes.len() as u64),
    )?;
    output.gauge(
        "bellrock_cluster_nodes_alive",
        "Number of nodes of the cluster that run, as far as this node knows.",
        alone(nodes.iter().filter(|node| node.state.is_alive()).count() as u64),
    )?;
    output.gauge(
        "bellrock_cluster_node_up",
        "1 for each node that runs, as far as this node knows, and 0 for each other one.",
        nodes.iter().map(|node| (label(node), u64::from(node.state.is_alive()))),
    )?;
    output.gauge(
        "bellrock_cluster_node_switches",
        "Number of switches that the node is to be master of.",
        nodes.iter().map(|node| (label(node), node.switches as u64)),
    )?;
    let silence = |node: &NodeRow| Some((label(node), node.last_heard_ms? as f64 / MS_PER_S));
    output.gauge(
        "bellrock_cluster_node_silence_seconds",
        "Time since the last heartbeat of the other node.",
        nodes.iter().filter_map(silence),
    )
}

fn store(store: &ClusterStoreRow, output: &mut Output<'_, '_>) -> fmt::Result {
    output.gauge(
        "bellrock_cluster_store_up",
        "1 if etcd answers this node.",
        alone(u64::from(store.reachable)),
    )?;
    output.gauge(
        "bellrock_cluster_store_revision",
        "Revision of etcd up to which this node knows all changes.",
        store.revision.map(|revision| (Vec::new(), revision)),
    )?;
    output.gauge(
        "bellrock_cluster_store_silence_seconds",
        "Time since etcd was last heard. It is asked for a sign of life twice a second.",
        store.last_heard_ms.map(|ms| (Vec::new(), ms as f64 / MS_PER_S)),
    )
}

fn requests(requests: &ClusterRequestsRow, output: &mut Output<'_, '_>) -> fmt::Result {
    let ClusterRequestsRow { sent, answered, not_sent, unknown, taken, refused } = *requests;
    let outcomes = [("answered", answered), ("not_sent", not_sent), ("unknown", unknown)];
    output.counter(
        "bellrock_cluster_requests",
        "Requests of this node for switches of other nodes.",
        alone(sent),
    )?;
    output.counter(
        "bellrock_cluster_request_outcomes",
        "Requests of this node for switches of other nodes whose outcome is known or given up.",
        outcomes.map(|(outcome, n)| (vec![("outcome", outcome.to_owned())], n)),
    )?;
    output.counter(
        "bellrock_cluster_requests_taken",
        "Requests of other nodes for switches of this one.",
        alone(taken),
    )?;
    output.counter(
        "bellrock_cluster_requests_refused",
        "Requests of other nodes for switches that this node was not master of.",
        alone(refused),
    )
}
