//! What nodes read of etcd, and what they ask switches.

use std::time::Duration;

use bellrock_api::Dpid;
use bellrock_cluster::mastership::{Input, WriteResult};
use bellrock_cluster::node::NodeId;

use super::{Event, Fence, World, ms};

/// A record on its way to etcd.
pub(crate) struct NewRecord {
    pub(super) dpid: Dpid,
    pub(super) masters: Vec<NodeId>,
    pub(super) floor: u64,
    pub(super) placed: bool,
    pub(super) expected: u64,
}

impl World {
    pub(super) fn read_store(&mut self, node: usize) {
        let process = self.nodes[node].process;
        // Changes after the read come later.
        let input = Input::Read(self.store.all());
        self.nodes[node].seen = Some((self.store.revision, self.store.history));
        self.after(Duration::from_micros(50), Event::Input { node, process, input });
    }

    /// etcd serves the node again: its watch goes on where it was, unless etcd was restored.
    pub(super) fn watch_again(&mut self, node: usize) {
        let (revision, history) = (self.store.revision, self.store.history);
        let goes_on = self.nodes[node].seen.is_some_and(|(seen, known)| match self.fence {
            Fence::RestoreUnnoticed => seen <= revision,
            _ => known == history,
        });
        if goes_on {
            self.watch_on(node);
        } else {
            self.read_store(node);
        }
    }

    /// Reports to a node what was written since the last time, in order.
    pub(super) fn watch_on(&mut self, node: usize) {
        let Some((seen, _)) = self.nodes[node].seen else { return };
        self.nodes[node].seen = Some((self.store.revision, self.store.history));
        for (dpid, record) in self.store.since(seen) {
            self.give(node, Input::Changed(dpid, record));
        }
    }

    /// Restores a state of etcd of any time before.
    pub(crate) fn restore_store(&mut self) {
        let place = self.random.usize(0..self.past.len());
        self.log(|| format!("etcd goes back from revision {} to {place}", self.store.revision));
        let history = self.store.history + 1;
        self.store = self.past[place].clone();
        self.store.history = history;
        for node in 0..self.nodes.len() {
            self.cut_store(node, ms(100));
        }
    }

    pub(super) fn write(&mut self, node: usize, process: u64, new: NewRecord) {
        let dpid = new.dpid;
        let delay = self.delay();
        // Half of the writes that fail are done all the same.
        let fails = self.nodes[node].store_cuts > 0;
        if fails && self.random.bool() {
            let input = Input::Written(dpid, WriteResult::Failed);
            return self.after(ms(200), Event::Input { node, process, input });
        }
        let gives_away = self.gives_away(node, &new);
        let NewRecord { masters, floor, placed, expected, .. } = new;
        let result = self.store.write(dpid, masters, floor, placed, expected);
        self.log(|| format!("node {node} writes {dpid}: {result:?}"));
        if let WriteResult::Written(_) = &result {
            if gives_away {
                self.failure =
                    Some(format!("node {node} gives {dpid} away, which was moved to it"));
            }
            self.store_changed();
        }
        let result = if fails { WriteResult::Failed } else { result };
        let input = Input::Written(dpid, result);
        self.after(2 * delay, Event::Input { node, process, input });
    }

    /// Removes a record, if etcd serves the node.
    pub(super) fn remove(&mut self, node: usize, dpid: Dpid, expected: u64) {
        if self.nodes[node].store_cuts == 0 && self.store.remove(dpid, expected) {
            self.log(|| format!("node {node} removes the record of {dpid}"));
            self.removed += 1;
            self.store_changed();
        }
    }

    fn store_changed(&mut self) {
        self.past.push(self.store.clone());
        let history = self.store.history;
        for watcher in 0..self.nodes.len() {
            let delay = 2 * self.delay();
            self.after(delay, Event::Watched { node: watcher, history });
        }
    }

    pub(super) fn ask(&mut self, node: usize, switch: usize, number: u64) {
        let it = &mut self.switches[switch];
        let is_live = it.connections[node].is_some_and(|connection| connection.number == number);
        if !is_live {
            return;
        }
        it.stand_by(node);
        let seen = match self.fence {
            // What the node knows already.
            Fence::Silent => it.told[node],
            _ => it.newest(),
        };
        it.told[node] = seen;
        self.log(|| format!("switch {switch} is asked by node {node}: {seen:x?}"));
        let (process, input) = (self.nodes[node].process, Input::Asked(World::dpid(switch), seen));
        self.after(ms(1), Event::Reply { node, process, switch, number, input });
    }
}
