//! Searches shortest paths on request: paths that avoid links, and several paths.

use std::collections::{BTreeSet, VecDeque};

use bellrock_api::Port;

use super::Hop;
use super::Paths;
use super::graph::{GraphLink, GraphNode, NodeIndex};
use super::rows::UNREACHABLE;

/// A path: the index of each sending switch, and its link.
pub(super) type IndexedPath = Vec<(NodeIndex, GraphLink)>;

/// What a search leaves out.
pub(super) struct SearchFilter<'f> {
    /// Whether a link may be used in this direction.
    pub(super) usable: &'f dyn Fn(Hop) -> bool,
    /// Switches that may not be passed.
    pub(super) switches: BTreeSet<NodeIndex>,
    /// Ports of the first switch that may not be taken.
    pub(super) first: BTreeSet<Port>,
}

impl Paths {
    /// Returns the shortest path that the filter allows; of several, the one by the lowest port.
    pub(super) fn search(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        filter: &SearchFilter<'_>,
    ) -> Option<IndexedPath> {
        let distances = self.distances_to(to, from, filter);
        let mut path = Vec::new();
        let mut at = from;
        while at != to {
            let closer = |link: &&GraphLink| {
                let distance = distances[link.to as NodeIndex];
                distance != UNREACHABLE
                    && distance + 1 == distances[at]
                    && self.may_use(at, link, from, filter)
            };
            let link = self.nodes[at].links.iter().find(closer)?;
            path.push((at, *link));
            at = link.to as NodeIndex;
        }
        Some(path)
    }

    /// Returns the distances of switches to `to`, as far as needed to find `from`.
    fn distances_to(&self, to: NodeIndex, from: NodeIndex, filter: &SearchFilter<'_>) -> Vec<u16> {
        let mut distances = vec![UNREACHABLE; self.nodes.len()];
        distances[to] = 0;
        let mut found = VecDeque::from([to]);
        while let Some(at) = found.pop_front() {
            if at == from {
                break;
            }
            for back in &self.nodes[at].links {
                let before = back.to as NodeIndex;
                if distances[before] != UNREACHABLE || filter.switches.contains(&before) {
                    continue;
                }
                let link =
                    GraphLink { out_port: back.to_port, to: at as u32, to_port: back.out_port };
                if self.may_use(before, &link, from, filter) {
                    distances[before] = distances[at] + 1;
                    found.push_back(before);
                }
            }
        }
        distances
    }

    fn may_use(
        &self,
        at: NodeIndex,
        link: &GraphLink,
        from: NodeIndex,
        filter: &SearchFilter<'_>,
    ) -> bool {
        let is_banned = at == from && filter.first.contains(&link.out_port);
        !is_banned && (filter.usable)(self.hop(&self.nodes[at], link))
    }

    /// Returns the `k` shortest loop-free paths (Yen, Management Science 1971), the shortest first;
    /// paths of equal length are ordered by their ports.
    pub(super) fn search_k(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        k: usize,
        usable: &dyn Fn(Hop) -> bool,
    ) -> Vec<IndexedPath> {
        let mut filter = SearchFilter { usable, switches: BTreeSet::new(), first: BTreeSet::new() };
        let Some(shortest) = self.search(from, to, &filter).filter(|_| k > 0) else {
            return Vec::new();
        };
        let mut paths = vec![shortest];
        let mut candidates = BTreeSet::new();
        while paths.len() < k {
            let last = &paths[paths.len() - 1];
            filter.switches.clear();
            for spur in 0..last.len() {
                let (root, spur_node) = (&last[..spur], last[spur].0);
                // A new path that begins like this must leave here by a port that no known path
                // takes.
                filter.first = paths
                    .iter()
                    .filter(|path| path.len() > spur && path[..spur] == *root)
                    .map(|path| path[spur].1.out_port)
                    .collect();
                if let Some(spur_path) = self.search(spur_node, to, &filter) {
                    candidates.insert(CandidatePath::new([root, &spur_path].concat()));
                }
                filter.switches.insert(spur_node);
            }
            filter.first.clear();
            let Some(best) = candidates.pop_first() else { break };
            paths.push(best.path);
        }
        paths
    }
}

/// A path in the order in which paths are chosen.
#[derive(PartialEq, Eq)]
struct CandidatePath {
    ports: Vec<Port>,
    path: IndexedPath,
}

impl CandidatePath {
    fn new(path: IndexedPath) -> Self {
        CandidatePath { ports: path.iter().map(|(_, link)| link.out_port).collect(), path }
    }
}

impl Ord for CandidatePath {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // From the same switch, equal ports mean equal paths.
        self.ports.len().cmp(&other.ports.len()).then_with(|| self.ports.cmp(&other.ports))
    }
}

impl PartialOrd for CandidatePath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl GraphNode {
    /// Returns the link at a port.
    pub(super) fn link_at(&self, port: Port) -> Option<&GraphLink> {
        let at = self.links.binary_search_by_key(&port, |link| link.out_port).ok()?;
        self.links.get(at)
    }
}
