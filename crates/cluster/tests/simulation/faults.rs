//! Faults, chosen by seed.

use std::time::Duration;

use bellrock_cluster::mastership::{Input, KEEP_RECORDS};
use bellrock_cluster::node::NodeId;

use crate::world::{Event, World};

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

impl World {
    /// Does something bad, and says when it ends.
    pub(crate) fn fault(&mut self) {
        let any = self.random.usize(0..self.nodes.len());
        let other = self.random.usize(0..self.nodes.len());
        let switch = self.random.usize(0..self.switches.len());
        // Every other fault strikes a master.
        let master = self.switches[switch].master().filter(|_| self.random.bool());
        let node = master.unwrap_or(any);
        let lasts = ms(self.random.u64(20..3000));
        if self.keep_records < KEEP_RECORDS && self.random.u32(0..4) == 0 {
            return self.lose_switch(switch, 3 * lasts);
        }
        match self.random.u32(0..18) {
            0 | 1 => {
                self.log(|| format!("node {node} ends for {lasts:?}"));
                self.kill(node);
                self.after(lasts, Event::Start(node));
            }
            2 | 3 => {
                self.log(|| format!("node {node} is stopped for {lasts:?}"));
                if self.nodes[node].is_alive {
                    self.nodes[node].is_stopped = true;
                }
                self.after(lasts, Event::Continue(node));
            }
            4 => {
                self.log(|| format!("nodes {node} and {other} are cut for {lasts:?}"));
                self.cuts.push((node, other));
                self.cuts.push((other, node));
                self.after(lasts, Event::Heal(vec![(node, other), (other, node)]));
            }
            5 => {
                self.log(|| format!("node {other} does not hear node {node} for {lasts:?}"));
                self.cuts.push((node, other));
                self.after(lasts, Event::Heal(vec![(node, other)]));
            }
            6 => {
                self.log(|| format!("node {node} is alone for {lasts:?}"));
                let all = 0..self.nodes.len();
                let cuts: Vec<_> = all.flat_map(|peer| [(node, peer), (peer, node)]).collect();
                self.cuts.extend(&cuts);
                self.after(lasts, Event::Heal(cuts));
                self.cut_store(node, lasts);
            }
            7 => self.cut_store(node, lasts),
            8 => {
                let is_long = self.lasting.long_cuts;
                let lasts = if is_long { ms(self.random.u64(1000..15_000)) } else { lasts };
                for node in 0..self.nodes.len() {
                    self.cut_store(node, lasts);
                }
            }
            9 => {
                self.log(|| format!("switch {switch} starts again"));
                self.restart(switch);
            }
            10 | 11 => {
                self.log(|| format!("switch {switch} loses node {node} for {lasts:?}"));
                self.disconnect(node, switch);
                self.link_cuts.push((node, switch));
                self.after(lasts, Event::Reconnect(node, switch));
            }
            12 | 13 => self.restore_store(),
            14 => {
                // It may be away while etcd is restored, and until others have written as much.
                let lasts = ms(self.random.u64(1000..10_000));
                self.cut_store(node, lasts);
            }
            15 => {
                self.log(|| format!("node {node} ends what was ordered"));
                self.give(node, Input::Balance);
            }
            16 => {
                self.log(|| "all nodes end, and etcd comes back with an old snapshot".into());
                self.restore_store();
                for node in 0..self.nodes.len() {
                    self.kill(node);
                    let delay = ms(self.random.u64(100..1000));
                    self.after(delay, Event::Start(node));
                }
            }
            _ => {
                let draining = self.random.bool();
                self.log(|| format!("node {node} drains: {draining}"));
                self.give(node, Input::Drain(draining));
                if let Some(to) = NodeId::new(other) {
                    self.give(node, Input::Move(World::dpid(switch), to));
                }
            }
        }
    }

    /// No node has a switch for some time.
    fn lose_switch(&mut self, switch: usize, lasts: Duration) {
        self.log(|| format!("switch {switch} is away for {lasts:?}"));
        for node in 0..self.nodes.len() {
            self.disconnect(node, switch);
            self.link_cuts.push((node, switch));
            self.after(lasts, Event::Reconnect(node, switch));
        }
    }

    pub(crate) fn cut_store(&mut self, node: usize, lasts: Duration) {
        self.log(|| format!("node {node} loses etcd for {lasts:?}"));
        self.nodes[node].store_cuts += 1;
        self.after(lasts, Event::StoreBack(node));
    }
}
