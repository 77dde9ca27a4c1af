//! Spreads switches over nodes: where a new switch goes, and which ones are moved.
//!
//! What an operator has placed stays where it is, unless its node drains.

use std::collections::BTreeMap;
use std::time::Duration;

use bellrock_api::Dpid;

use super::orders::MoveOrder;
use super::{Mastership, Output};
use crate::node::{MAX_NODES, NodeId};
use crate::record::Record;

/// After a node came or went, nothing is moved for so long.
const SETTLE_BEFORE_MOVES: Duration = Duration::from_secs(5);
/// An offer that was not accepted is withdrawn after so long, and none is made for as long again.
const OFFER_TIMEOUT: Duration = Duration::from_secs(1);
/// A node has more switches than another one by at most one in so many of an even share.
const TOLERATED_PART: usize = 10;

/// The moves of this node's switches to others.
#[derive(Debug)]
pub(super) struct Moves {
    /// Nothing is moved before.
    not_before: Duration,
    offer: Option<Offer>,
    /// Moves that operators have ordered, and that are not done yet.
    pub(super) orders: BTreeMap<Dpid, MoveOrder>,
    /// Offers of others that this node has accepted, by node.
    accepted: [Option<Dpid>; MAX_NODES],
}

#[derive(Clone, Copy, Debug)]
struct Offer {
    dpid: Dpid,
    to: NodeId,
    until: Duration,
    is_accepted: bool,
    /// Whether an operator has ordered it.
    is_ordered: bool,
}

impl Moves {
    pub(super) fn new(now: Duration) -> Self {
        let not_before = now + SETTLE_BEFORE_MOVES;
        Moves { not_before, offer: None, orders: BTreeMap::new(), accepted: [None; MAX_NODES] }
    }

    /// Waits, as a node came or went.
    pub(super) fn settle(&mut self, now: Duration) {
        self.not_before = now + SETTLE_BEFORE_MOVES;
    }

    /// Withdraws the offer of a switch: it is not this node's to move any more, or goes elsewhere.
    pub(super) fn withdraw(&mut self, dpid: Dpid) {
        self.offer = self.offer.filter(|offer| offer.dpid != dpid);
    }

    /// Whether another node has accepted the switch, and the record of that is on its way.
    pub(super) fn is_handing_over(&self, dpid: Dpid) -> bool {
        self.offer.is_some_and(|offer| offer.dpid == dpid && offer.is_accepted)
    }

    /// The switch that is offered to a node.
    pub(super) fn offer_to(&self, node: NodeId) -> Option<Dpid> {
        self.offer.filter(|offer| offer.to == node).map(|offer| offer.dpid)
    }

    /// The switch of a node's offer, if it is accepted.
    pub(super) fn accepted_from(&self, node: NodeId) -> Option<Dpid> {
        self.accepted.get(node.index()).copied().flatten()
    }
}

impl Mastership {
    pub(super) fn drain(&mut self, draining: bool, now: Duration) {
        self.draining = draining;
        self.next_heartbeat = now;
    }

    /// Accepts the offer of a peer, if this node can be master of the switch.
    pub(super) fn answer_offer(&mut self, node: NodeId, now: Duration) {
        let offered = self.peers.offer(node).filter(|&dpid| {
            let is_theirs = self.record(dpid).and_then(Record::first) == Some(node);
            is_theirs && self.serving && !self.draining && self.own.contains(dpid)
        });
        if let Some(accepted) = self.moves.accepted.get_mut(node.index())
            && *accepted != offered
        {
            *accepted = offered;
            self.next_heartbeat = now;
        }
    }

    /// Hands over a switch that a peer has accepted.
    pub(super) fn answered(&mut self, node: NodeId, now: Duration, out: &mut Vec<Output>) {
        let Some(offer) = &mut self.moves.offer else { return };
        let is_answer = offer.to == node && self.peers.accept(node) == Some(offer.dpid);
        if !is_answer || offer.is_accepted {
            return;
        }
        let (dpid, is_ordered) = (offer.dpid, offer.is_ordered);
        if !self.is_master(dpid) {
            return;
        }
        let masters = self.order_with(dpid, node);
        // If another record was written a moment ago, the next heartbeat accepts the offer too.
        let is_sent = self.write(dpid, masters, is_ordered, now, out);
        if let Some(offer) = &mut self.moves.offer {
            offer.is_accepted = is_sent;
        }
        if let Some(order) = self.moves.orders.get_mut(&dpid).filter(|_| is_ordered) {
            order.is_sent |= is_sent;
        }
    }

    /// Offers a switch to another node, if this one has too many.
    pub(super) fn balance(&mut self, now: Duration) {
        if let Some(offer) = self.moves.offer {
            let is_done = self.record(offer.dpid).and_then(Record::first) != Some(self.me);
            if is_done {
                self.moves.offer = None;
            } else if now < offer.until {
                return;
            } else {
                self.moves.offer = None;
                self.moves.not_before = self.moves.not_before.max(now + OFFER_TIMEOUT);
            }
        }
        if !self.serving {
            return;
        }
        let ordered = self.next_ordered();
        let Some((dpid, to)) = ordered.or_else(|| self.next_move(now)) else { return };
        if let Some(order) = self.moves.orders.get_mut(&dpid) {
            order.offers += 1;
        }
        let (until, is_ordered) = (now + OFFER_TIMEOUT, ordered.is_some());
        self.moves.offer = Some(Offer { dpid, to, until, is_accepted: false, is_ordered });
        self.next_heartbeat = now;
    }

    /// The next move that an operator has ordered. One that was not accepted comes after the
    /// others.
    fn next_ordered(&self) -> Option<(Dpid, NodeId)> {
        let orders = self.moves.orders.iter();
        let due = orders
            .filter(|&(&dpid, order)| self.is_movable(dpid) && self.can_take(order.to, dpid))
            .min_by_key(|(_, order)| order.offers);
        due.map(|(&dpid, order)| (dpid, order.to))
    }

    /// The next move that evens out the numbers of switches, or empties a node that drains.
    fn next_move(&self, now: Duration) -> Option<(Dpid, NodeId)> {
        if now < self.moves.not_before && !self.draining {
            return None;
        }
        let may_go = |dpid: Dpid| {
            let is_held = self.placed_at(dpid).is_some() || self.moves.orders.contains_key(&dpid);
            self.is_movable(dpid) && (self.draining || !is_held)
        };
        let mut takers: Vec<NodeId> = NodeId::all(self.nodes)
            .filter(|&node| node != self.me && self.may_serve(node) && !self.is_draining(node))
            .collect();
        takers.sort_by_key(|&node| self.load(node));
        let share = self.loads.iter().sum::<usize>() / (takers.len() + 1);
        let tolerated = (share / TOLERATED_PART).max(1);
        takers
            .into_iter()
            .take_while(|&to| self.draining || self.load(self.me) > self.load(to) + tolerated)
            .find_map(|to| {
                let mut dpids = self.switches.keys().copied();
                let next = dpids.find(|&dpid| may_go(dpid) && self.can_take(to, dpid));
                next.map(|dpid| (dpid, to))
            })
    }

    /// Whether this node is master of a switch, and by the record too.
    pub(super) fn is_movable(&self, dpid: Dpid) -> bool {
        self.is_master(dpid) && self.record(dpid).and_then(Record::first) == Some(self.me)
    }

    /// Whether a peer could be master of a switch.
    pub(crate) fn can_take(&self, node: NodeId, dpid: Dpid) -> bool {
        node != self.me
            && self.may_serve(node)
            && !self.is_draining(node)
            && self.is_connected(node, dpid)
    }

    /// The order for a switch without one: first the node with the fewest switches, of those that
    /// have this one. The others take it over in an order that differs from switch to switch, so
    /// that all of them share what a lost node leaves.
    pub(super) fn placement(&self, dpid: Dpid) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = NodeId::all(self.nodes).collect();
        nodes.sort_by_cached_key(|&node| (!self.may_serve(node), spread(dpid, node)));
        let with_switch = nodes
            .iter()
            .enumerate()
            .filter(|&(_, &node)| self.may_serve(node) && self.is_connected(node, dpid));
        let first = with_switch.min_by_key(|&(_, &node)| {
            (self.is_draining(node), self.load(node) + self.writing[node.index()])
        });
        if let Some((place, _)) = first {
            nodes[..=place].rotate_right(1);
        }
        nodes
    }
}

/// A number that mixes a switch and a node (the finalizer of SplitMix64).
fn spread(dpid: Dpid, node: NodeId) -> u64 {
    let seed = (node.index() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = dpid.0.wrapping_add(seed);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
