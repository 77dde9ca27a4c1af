//! Computes the ports that a flooded packet goes out of, so that it reaches each host once.

use bellrock_api::Port;

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
        let mut flood = Flood { first: vec![0], ports: Vec::new() };
        for (node, tree) in graph.nodes.iter().zip(tree) {
            let begin = flood.ports.len();
            flood.ports.extend(tree.iter().chain(&node.edge));
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
