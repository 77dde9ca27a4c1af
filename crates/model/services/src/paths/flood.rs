//! Computes the ports that a flooded packet goes out of, so that it reaches each host once.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellrock_api::{Port, SwitchPort};

use super::graph::{Graph, NodeIndex};

/// For each switch, the ports of a spanning tree and its edge ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flood {
    /// Where the ports of each switch begin, and the end of the last.
    first: Vec<u32>,
    ports: Vec<Port>,
}

impl Flood {
    /// Computes the spanning tree of each part of the network by breadth-first search from the
    /// switch with the lowest datapath id. So the same network always has the same tree.
    pub(super) fn of(graph: &Graph) -> Self {
        let mut tree: Vec<Vec<Port>> = vec![Vec::new(); graph.nodes.len()];
        let mut is_found = vec![false; graph.nodes.len()];
        for (_, root) in graph.numbers.iter() {
            grow(graph, *root as NodeIndex, &mut is_found, &mut tree);
        }
        // Each segment gets a flooded packet by a port of the tree, or by its first port.
        let mut reached = BTreeSet::new();
        for (node, tree) in graph.nodes.iter().zip(&tree) {
            let of_tree = node.segments.iter().filter(|(port, _)| tree.contains(port));
            reached.extend(of_tree.filter_map(|(_, ports)| ports.first().copied()));
        }
        let mut flood = Flood { first: vec![0], ports: Vec::new() };
        for (node, mut tree) in graph.nodes.iter().zip(tree) {
            let begin = flood.ports.len();
            // A port on a segment leads to several switches.
            tree.sort_unstable();
            tree.dedup();
            let is_first = |(port, ports): &&(Port, Arc<[SwitchPort]>)| {
                let at = SwitchPort::new(node.dpid, *port);
                ports.first() == Some(&at) && !reached.contains(&at)
            };
            let first = node.segments.iter().filter(is_first).map(|(port, _)| port);
            flood.ports.extend(tree.iter().chain(&node.edge).chain(first));
            flood.ports[begin..].sort_unstable();
            flood.first.push(flood.ports.len() as u32);
        }
        flood
    }

    pub(super) fn ports(&self, index: NodeIndex) -> &[Port] {
        match self.first.get(index..index + 2) {
            Some([begin, end]) => &self.ports[*begin as usize..*end as usize],
            _ => &[],
        }
    }
}

fn grow(graph: &Graph, root: NodeIndex, is_found: &mut [bool], tree: &mut [Vec<Port>]) {
    if std::mem::replace(&mut is_found[root], true) {
        return;
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(index) = found.get(next).copied() {
        next += 1;
        for link in &graph.nodes[index].links {
            let to = link.to as NodeIndex;
            if !std::mem::replace(&mut is_found[to], true) {
                tree[index].push(link.out_port);
                tree[to].push(link.to_port);
                found.push(to);
            }
        }
    }
}
