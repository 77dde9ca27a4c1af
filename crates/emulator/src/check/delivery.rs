//! What packets did that were sent.

use crate::network::{Hop, Network};
use crate::topology::{HostId, Node};

/// The ways that unicast packets from one host to another took, each once, as the nodes that they
/// passed: a host, switches, a host. They come from the hops that the network remembers
/// ([`hops`](crate::network::NetworkSettings::hops)), the oldest first.
#[must_use]
pub fn paths(network: &Network, from: HostId, to: HostId) -> Vec<Vec<Node>> {
    let sent = |hop: &&Hop| hop.source == Some(from) && !hop.group;
    let hops: Vec<&Hop> = network.hops().filter(sent).collect();
    let mut paths = Vec::new();
    for (index, last) in hops.iter().enumerate() {
        if last.to.node != Node::Host(to) {
            continue;
        }
        // Back from the end: before a hop, the same packet arrived where the hop begins.
        let mut path = vec![last.to.node, last.from.node];
        for hop in hops[..index].iter().rev() {
            if hop.trace == last.trace && path.last() == Some(&hop.to.node) {
                path.push(hop.from.node);
            }
        }
        path.reverse();
        if path.first() == Some(&Node::Host(from)) && !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// The hosts to which the network delivered unicast frames more than once, and how many.
#[must_use]
pub fn duplicates(network: &Network) -> Vec<(HostId, u64)> {
    let hosts = (0..network.topology().hosts().len()).map(HostId::of);
    let counted = hosts.map(|host| (host, network.host(host).counters().duplicates));
    counted.filter(|(_, count)| *count > 0).collect()
}
