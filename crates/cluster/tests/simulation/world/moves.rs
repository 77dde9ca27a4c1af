//! What must hold of switches that operators move.

use std::time::Duration;

use bellrock_api::Dpid;
use bellrock_cluster::mastership::{Input, SwitchRole};
use bellrock_cluster::node::NodeId;

use super::World;
use super::watching::NewRecord;

/// Time after an order to balance within which the few switches of a world are spread.
const SPREAD: Duration = Duration::from_secs(10);

impl World {
    /// Whether a node gives a switch to another one, though an operator has moved it to this node.
    pub(super) fn gives_away(&self, node: usize, new: &NewRecord) -> bool {
        let this = &self.nodes[node];
        let placed = self.store.record(new.dpid).and_then(|record| record.placed_at());
        let is_master = matches!(this.machine.role(new.dpid), SwitchRole::Master(_));
        is_master
            && !this.has_drained
            && !new.placed
            && placed.map(NodeId::index) == Some(node)
            && new.masters.first().map(|first| first.index()) != Some(node)
    }

    /// A move is reported as done only if a record has said so.
    pub(super) fn check_move(&mut self, dpid: Dpid) {
        let is_known = self
            .past
            .iter()
            .any(|store| store.record(dpid).is_some_and(|record| record.placed_at().is_some()));
        if !is_known {
            self.failure = Some(format!("{dpid} is reported as moved, and no record says so"));
        }
    }

    /// Whether no node has more switches than another one that it may give away.
    pub(super) fn is_spread(&self, loads: &[usize]) -> Result<(), String> {
        let least = self.living().map(|(node, _)| loads[node]).min().unwrap_or(0);
        for (node, _) in self.living().filter(|&(node, _)| loads[node] > least + 1) {
            let placed = self.placed().filter(|&at| at == node).count();
            if placed < loads[node] {
                return Err(format!(
                    "the switches are not spread: {loads:?}, {placed} were moved to node {node}"
                ));
            }
        }
        Ok(())
    }

    /// After an order to balance at any node, no switch is where an operator has moved it, and all are
    /// spread.
    pub(super) fn ends_moves(&mut self) -> Result<(), String> {
        if self.lasting.store || self.placed().next().is_none() {
            return Ok(());
        }
        let serving = self.living().find(|(_, node)| node.machine.is_serving());
        let Some((node, _)) = serving else { return Err("no node serves".into()) };
        self.balanced.clear();
        self.give(node, Input::Balance);
        self.play_until(self.now + SPREAD)?;
        if self.balanced != [0] || self.placed().next().is_some() {
            let left: Vec<usize> = self.placed().collect();
            return Err(format!("after the balance of node {node}: {:?}, {left:?}", self.balanced));
        }
        self.has_converged()
    }

    /// The nodes that switches were moved to, by the records.
    pub(crate) fn placed(&self) -> impl Iterator<Item = usize> {
        let records = self.store.all().into_iter();
        records.filter_map(|(_, record)| Some(record.placed_at()?.index()))
    }
}
