//! Cycles of switches: detection, and spanning trees.

use std::collections::VecDeque;

use super::{LinkIndex, Node, SwitchIndex, TopologyError, TopologyProblem, TopologySpec};

impl TopologySpec {
    /// Checks that every two switches are connected by at most one path.
    ///
    /// # Errors
    /// [`TopologyProblem::Cycle`] for the first link that closes a cycle, with its line and the
    /// cycle.
    pub fn check_loop_free(&self) -> Result<(), TopologyError> {
        let mut parts = Parts::new(self.switches().len());
        let mut tree = Vec::new();
        for (index, ends) in self.switch_links() {
            let [a, b] = ends;
            if parts.join(a.index(), b.index()) {
                tree.push(ends);
                continue;
            }
            let mut path = self.path_in(&tree, a, b);
            path.push(path[0].clone());
            let [x, y] = self.links()[index].ends.map(|end| self.end_name(end).to_string());
            let line = self.line_of(LinkIndex::of(index));
            return Err(TopologyProblem::Cycle { link: format!("{x} {y}"), path }.at(line));
        }
        Ok(())
    }

    /// The same switches and hosts, with only the links of a spanning tree: a search from the
    /// lowest numbered switch, in order of ports, keeps the link that reaches each switch first. If
    /// the switches are not all connected, each part has its own tree.
    #[must_use]
    pub fn spanning_tree(&self) -> TopologySpec {
        let mut neighbours = vec![Vec::new(); self.switches().len()];
        for (index, [a, b]) in self.switch_links() {
            let [x, y] = self.links()[index].ends;
            neighbours[a.index()].push((x.port, b, index));
            neighbours[b.index()].push((y.port, a, index));
        }
        let mut is_kept = vec![false; self.links().len()];
        let mut seen = vec![false; neighbours.len()];
        for root in 0..neighbours.len() {
            if std::mem::replace(&mut seen[root], true) {
                continue;
            }
            let mut waiting = VecDeque::from([root]);
            while let Some(switch) = waiting.pop_front() {
                neighbours[switch].sort_unstable();
                for (_, next, link) in &neighbours[switch] {
                    if !std::mem::replace(&mut seen[next.index()], true) {
                        is_kept[*link] = true;
                        waiting.push_back(next.index());
                    }
                }
            }
        }
        for (index, link) in self.links().iter().enumerate() {
            is_kept[index] |= link.ends.iter().any(|end| matches!(end.node, Node::Host(_)));
        }
        self.with_links(|link| is_kept[link.index()])
    }

    /// The same switches and hosts with some of the links, at the same ports.
    fn with_links(&self, keep: impl Fn(LinkIndex) -> bool) -> TopologySpec {
        let mut other = TopologySpec {
            switches: self.switches.clone(),
            hosts: self.hosts.clone(),
            names: self.names.clone(),
            dpids: self.dpids.clone(),
            macs: self.macs.clone(),
            ips: self.ips.clone(),
            last_port: vec![0; self.switches.len()],
            ..TopologySpec::default()
        };
        for (index, link) in self.links.iter().enumerate() {
            let id = LinkIndex::of(index);
            if keep(id) {
                let [a, b] = link.ends.map(|end| (end.node, Some(end.port)));
                let added = other.put_link(a, b, link.shape, self.line_of(id));
                debug_assert!(added.is_ok(), "a part of a topology is one");
            }
        }
        other
    }

    /// The links between two switches.
    fn switch_links(&self) -> impl Iterator<Item = (usize, [SwitchIndex; 2])> + '_ {
        self.links().iter().enumerate().filter_map(|(index, link)| {
            match link.ends.map(|end| end.node) {
                [Node::Switch(a), Node::Switch(b)] => Some((index, [a, b])),
                _ => None,
            }
        })
    }

    /// The names of the switches on the path between two switches, over links that form a tree.
    fn path_in(
        &self,
        tree: &[[SwitchIndex; 2]],
        from: SwitchIndex,
        to: SwitchIndex,
    ) -> Vec<String> {
        let mut neighbours = vec![Vec::new(); self.switches().len()];
        for [a, b] in tree {
            neighbours[a.index()].push(*b);
            neighbours[b.index()].push(*a);
        }
        let mut before = vec![None; neighbours.len()];
        let mut waiting = VecDeque::from([to]);
        while let Some(switch) = waiting.pop_front() {
            for next in &neighbours[switch.index()] {
                if before[next.index()].is_none() && *next != to {
                    before[next.index()] = Some(switch);
                    waiting.push_back(*next);
                }
            }
        }
        let mut path = vec![from];
        while let Some(next) = path.last().and_then(|last| before[last.index()]) {
            path.push(next);
        }
        path.into_iter().map(|id| self.name(Node::Switch(id)).to_owned()).collect()
    }
}

/// The connected parts of the switches so far (union-find).
pub(super) struct Parts {
    above: Vec<usize>,
}

impl Parts {
    pub(super) fn new(n: usize) -> Self {
        Parts { above: (0..n).collect() }
    }

    /// Joins the parts of two switches. Returns false if they are one already.
    pub(super) fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.top(a), self.top(b));
        self.above[a] = b;
        a != b
    }

    /// Whether two switches are in different parts.
    pub(super) fn are_apart(&mut self, a: usize, b: usize) -> bool {
        self.top(a) != self.top(b)
    }

    fn top(&mut self, mut at: usize) -> usize {
        while self.above[at] != at {
            // Halving the path keeps it short for later calls.
            self.above[at] = self.above[self.above[at]];
            at = self.above[at];
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::{TopologySpec, fat_tree, ring, tree};

    #[test]
    fn a_cycle_is_named_with_the_line_that_closes_it() {
        let text = "switch s1\nswitch s2\nswitch s3\nlink s1 s2\nlink s2 s3\n\nlink s3 s1\n";
        let error = TopologySpec::parse(text).unwrap().check_loop_free().unwrap_err().to_string();
        assert!(
            error.starts_with("line 7: the link s3:2 s1:2 closes the cycle s3 - s2 - s1 - s3:"),
            "{error}"
        );
    }

    #[test]
    fn two_links_between_two_switches_are_a_cycle() {
        let text = "switch s1\nswitch s2\nlink s1 s2\nlink s1 s2\n";
        let error = TopologySpec::parse(text).unwrap().check_loop_free().unwrap_err().to_string();
        assert!(
            error.contains("line 4: the link s1:2 s2:2 closes the cycle s1 - s2 - s1"),
            "{error}"
        );
    }

    #[test]
    fn a_tree_has_no_cycle_and_is_its_own_spanning_tree() {
        let tree = tree(3, 2).build().unwrap();
        tree.check_loop_free().unwrap();
        assert_eq!(tree.spanning_tree(), tree);
    }

    #[test]
    fn a_spanning_tree_keeps_ports_and_leaves_out_what_closes_a_cycle() {
        let ring = ring(4, 1).build().unwrap();
        assert!(ring.check_loop_free().is_err());
        let open = ring.spanning_tree();
        open.check_loop_free().unwrap();
        assert_eq!(open.links().len(), ring.links().len() - 1);
        assert!(open.links().iter().all(|link| ring.links().contains(link)));
        fat_tree(6).build().unwrap().spanning_tree().check_loop_free().unwrap();
    }
}
