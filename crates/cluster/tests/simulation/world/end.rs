//! The end of the faults, and what must hold some time later.

use bellrock_cluster::mastership::{Input, SwitchRole};
use bellrock_cluster::node::NodeId;

use super::{Event, Node, PROBE, World, ms};

impl World {
    /// Mends everything that does not last, and lets the nodes find their way.
    pub(super) fn end_faults(&mut self) {
        self.is_quiet = true;
        self.log(|| "the faults are over".into());
        self.cuts.clear();
        self.link_cuts.clear();
        let most = (self.nodes.len() - 1) / 2;
        let gone = if self.lasting.nodes { self.random.usize(0..=most) } else { 0 };
        let switch = self.random.usize(0..self.switches.len());
        let first = self.switches[switch].master().unwrap_or(0);
        let count = self.nodes.len();
        for node in (0..gone).map(|place| (first + place) % count) {
            self.log(|| format!("node {node} stays away"));
            self.resume(node);
            self.kill(node);
            self.gone.push(node);
        }
        for node in 0..self.nodes.len() {
            self.start(node);
            self.resume(node);
            self.give(node, Input::Drain(false));
            if self.lasting.store {
                // It does not heal.
                self.nodes[node].store_cuts = u32::MAX / 2;
            } else {
                self.nodes[node].store_cuts = 0;
                self.watch_again(node);
            }
            for switch in 0..self.switches.len() {
                let delay = PROBE / 4 + ms(self.random.u64(1..1000));
                self.after(delay, Event::Connect(node, switch));
            }
        }
    }

    pub(super) fn has_converged(&self) -> Result<(), String> {
        if self.lasting.store {
            return self.has_masters();
        }
        let mut loads = vec![0; self.nodes.len()];
        for (switch, it) in self.switches.iter().enumerate() {
            let dpid = World::dpid(switch);
            let record = self.store.record(dpid).ok_or(format!("switch {switch} has no record"))?;
            let master = it.master();
            self.has_master(switch, &format!("{record:?}"))?;
            if record.first().map(NodeId::index) != master {
                return Err(format!("switch {switch} obeys {master:?}, and not {record:?}"));
            }
            for (node, this) in self.living() {
                if this.machine.record(dpid) != Some(record) {
                    return Err(format!("node {node} does not know {record:?} of switch {switch}"));
                }
            }
            loads[master.unwrap_or_default()] += 1;
        }
        self.is_spread(&loads)
    }

    pub(super) fn living(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter(|(_, node)| node.is_alive)
    }

    /// Whether a switch obeys one node, which knows it, and no other node takes itself for its
    /// master.
    pub(super) fn has_master(&self, switch: usize, why: &str) -> Result<(), String> {
        let dpid = World::dpid(switch);
        let believers = self
            .living()
            .filter(|(_, node)| matches!(node.machine.role(dpid), SwitchRole::Master(_)));
        let believers: Vec<usize> = believers.map(|(node, _)| node).collect();
        let master = self.switches[switch].master();
        if master.is_none() && believers.is_empty() {
            return Err(format!("switch {switch} has no master; {why}"));
        }
        if master.is_none() || believers != Vec::from_iter(master) {
            return Err(format!(
                "switch {switch} obeys {master:?}, and {believers:?} are master; {why}"
            ));
        }
        Ok(())
    }

    /// Without etcd, the switches whose record all nodes know have a master all the same.
    pub(super) fn has_masters(&self) -> Result<(), String> {
        let serving = self.living().filter(|(_, node)| node.machine.is_serving()).count();
        if 2 * serving <= self.nodes.len() {
            return Ok(());
        }
        for (switch, it) in self.switches.iter().enumerate() {
            let dpid = World::dpid(switch);
            let knows = |(_, node): (usize, &Node)| node.machine.record(dpid).is_some();
            if self.living().all(knows) && it.master().is_none() {
                let views: Vec<_> = self
                    .living()
                    .map(|(node, it)| (node, it.machine.record(dpid), it.machine.master(dpid)))
                    .collect();
                return Err(format!("switch {switch} has no master without etcd: {views:?}"));
            }
        }
        Ok(())
    }
}
