//! What operators order: moves, which hold, and the end of that.
//!
//! A move writes a record that is marked as *placed*, so that balancing leaves the switch where it is.
//! The mark is in etcd, so all nodes see the same one, also after a restart. It goes with the next node
//! in front of the record: a takeover, a drain or another move. Any node takes it away on request, by a
//! record with the same masters.

use std::collections::BTreeMap;
use std::time::Duration;

use bellrock_api::Dpid;

use super::switch::Entry;
use super::{Mastership, Output};
use crate::node::NodeId;
use crate::record::Record;

/// Time after which an order that is not done is given up. It includes an election of etcd, which takes
/// one to two seconds; without one, a move takes some 35 ms.
pub const ORDER_LIMIT: Duration = Duration::from_secs(5);
/// Maximum number of records that a node writes at once to take marks away. The others follow.
const MAX_RELEASES: usize = 256;

/// A switch that an operator moves to a node, from this one.
#[derive(Clone, Copy, Debug)]
pub(super) struct MoveOrder {
    pub(super) to: NodeId,
    /// When it is given up.
    until: Duration,
    /// Number of offers to the other node so far.
    pub(super) offers: u32,
    /// Whether the other node has accepted one, so that its record was sent to etcd.
    pub(super) is_sent: bool,
    /// Whether that record was seen.
    is_written: bool,
}

/// Marks that are taken away.
#[derive(Debug)]
pub(super) struct Release {
    /// The switches that have one, with the node where they were placed.
    marks: BTreeMap<Dpid, NodeId>,
    /// When it is given up.
    until: Duration,
}

/// Why a switch was not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMoved {
    /// This node is not its master, or not any more. The master by the record, if that is another node.
    NotMaster(Option<NodeId>),
    /// The other node does not serve, drains, or does not have the switch.
    CannotTake,
    /// The other node has not accepted the switch within [`ORDER_LIMIT`].
    NotAccepted,
    /// etcd has not confirmed the new order of masters within [`ORDER_LIMIT`]. It may have it.
    NotWritten,
    /// The other node is first in the order, and has not become master within [`ORDER_LIMIT`].
    NotObeyed,
    /// The other node was first in the order, and has lost that place since, to this one if it is known.
    TakenOver(Option<NodeId>),
}

impl Mastership {
    /// Begins to move a switch. A move of it that is not done yet is forgotten.
    pub(super) fn order_move(&mut self, dpid: Dpid, to: NodeId, now: Duration) {
        self.moves.withdraw(dpid);
        if let Some(release) = &mut self.release {
            release.marks.remove(&dpid);
        }
        let until = now + ORDER_LIMIT;
        let order = MoveOrder { to, until, offers: 0, is_sent: false, is_written: false };
        self.moves.orders.insert(dpid, order);
    }

    /// Begins to take the marks of all switches away. Those of moves that come later stay.
    pub(super) fn order_balance(&mut self, now: Duration) {
        let marked = self.switches.keys().filter_map(|&dpid| Some((dpid, self.placed_at(dpid)?)));
        let marks = marked.collect();
        self.release = Some(Release { marks, until: now + ORDER_LIMIT });
    }

    /// Carries on what operators have ordered, and reports what is done or given up.
    pub(super) fn carry_on_orders(&mut self, now: Duration, out: &mut Vec<Output>) {
        self.end_moves(now, out);
        self.hold_here(now, out);
        self.release_marks(now, out);
    }

    fn end_moves(&mut self, now: Duration, out: &mut Vec<Output>) {
        let mut ended = Vec::new();
        let orders: Vec<(Dpid, MoveOrder)> =
            self.moves.orders.iter().map(|(&dpid, &order)| (dpid, order)).collect();
        for (dpid, mut order) in orders {
            order.is_written |= self.placed_at(dpid) == Some(order.to);
            if let Some(result) = self.outcome(dpid, order, now) {
                ended.push((dpid, result));
            } else {
                self.moves.orders.insert(dpid, order);
            }
        }
        for (dpid, result) in ended {
            self.moves.orders.remove(&dpid);
            self.moves.withdraw(dpid);
            out.push(Output::Moved(dpid, result));
        }
    }

    /// What has become of a move. `None`: it is under way.
    fn outcome(&self, dpid: Dpid, order: MoveOrder, now: Duration) -> Option<Result<(), NotMoved>> {
        let first = self.record(dpid).and_then(Record::first);
        let is_over = now >= order.until;
        if order.is_written && first != Some(order.to) {
            return Some(Err(NotMoved::TakenOver(first)));
        }
        if order.is_written {
            let is_done = self.has_become_master(order.to, dpid);
            return if is_done {
                Some(Ok(()))
            } else {
                is_over.then_some(Err(NotMoved::NotObeyed))
            };
        }
        // The switch may obey the other node before etcd has answered this one.
        let may_be_done = order.is_sent && first == Some(self.me);
        if !may_be_done && !self.is_movable(dpid) {
            return Some(Err(NotMoved::NotMaster(first.filter(|&node| node != self.me))));
        }
        let can_take =
            if order.to == self.me { !self.draining } else { self.can_take(order.to, dpid) };
        if !may_be_done && !can_take {
            return Some(Err(NotMoved::CannotTake));
        }
        let is_sent = order.is_sent || order.to == self.me;
        let why = if is_sent { NotMoved::NotWritten } else { NotMoved::NotAccepted };
        is_over.then_some(Err(why))
    }

    /// Whether the first node of a record has become master by it.
    fn has_become_master(&self, node: NodeId, dpid: Dpid) -> bool {
        if node == self.me {
            return self.is_master(dpid);
        }
        if !self.peers.has_generations(node) {
            // It is of the first release, and does not say so. The switch has left this node for it.
            return !self.is_master(dpid);
        }
        let by_record = self.record(dpid).and_then(|record| record.generation(node));
        let held = self.peers.generation(node, dpid);
        held.zip(by_record).is_some_and(|(held, by_record)| !by_record.is_newer_than(held))
    }

    /// Marks switches as placed that an operator wants to stay at this node.
    fn hold_here(&mut self, now: Duration, out: &mut Vec<Output>) {
        let me = self.me;
        let orders = self.moves.orders.iter();
        let here = orders.filter(|(_, order)| order.to == me && !order.is_written);
        let here: Vec<Dpid> = here.map(|(&dpid, _)| dpid).collect();
        for dpid in here {
            let masters = self.order_with(dpid, me);
            self.write(dpid, masters, true, now, out);
        }
    }

    fn release_marks(&mut self, now: Duration, out: &mut Vec<Output>) {
        let Some(mut release) = self.release.take() else { return };
        // A move that came later has a mark of its own.
        release.marks.retain(|&dpid, &mut node| self.placed_at(dpid) == Some(node));
        let left = release.marks.len();
        if left == 0 || now >= release.until || !self.serving {
            out.push(Output::Balanced { left });
            return;
        }
        let mut on_the_way = 0;
        for &dpid in release.marks.keys() {
            if on_the_way == MAX_RELEASES {
                break;
            }
            let masters = self.record(dpid).map(|record| record.masters.clone());
            let is_sent = self.write(dpid, masters.unwrap_or_default(), false, now, out);
            let is_writing = self.switches.get(&dpid).is_some_and(Entry::is_writing);
            on_the_way += usize::from(is_sent || is_writing);
        }
        self.release = Some(release);
    }
}
