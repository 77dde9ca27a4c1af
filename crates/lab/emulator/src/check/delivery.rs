//! What happened to packets that were sent.

use crate::network::{EmulatedNetwork, FrameHop};
use crate::topology::{HostIndex, Node};

/// The paths of unicast packets from one host to another, each path once: a host, switches, a host.
/// They come from the hops that the network keeps
/// ([`hops`](crate::network::NetworkSettings::hops)), the oldest first.
#[must_use]
pub fn paths(network: &EmulatedNetwork, from: HostIndex, to: HostIndex) -> Vec<Vec<Node>> {
    let sent = |hop: &&FrameHop| hop.source == Some(from) && !hop.group;
    let hops: Vec<&FrameHop> = network.hops().filter(sent).collect();
    let mut paths = Vec::new();
    for (index, last) in hops.iter().enumerate() {
        if last.to.node != Node::Host(to) {
            continue;
        }
        // Backwards from the end: the hop before ended where this one begins, with the same packet.
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

/// The hosts that received a unicast frame more than once, with the number of duplicates.
#[must_use]
pub fn duplicates(network: &EmulatedNetwork) -> Vec<(HostIndex, u64)> {
    let hosts = (0..network.topology().hosts().len()).map(HostIndex::of);
    let counted = hosts.map(|host| (host, network.host(host).counters().duplicates));
    counted.filter(|(_, count)| *count > 0).collect()
}
