//! Links and hosts of all nodes, between discovery, host tracking and the links.

use std::sync::Arc;

use bellrock_api::{Dpid, Network};
use bellrock_services::exchange::{BUCKETS, Exchange, NumberedFrame, PeerFrame};

use crate::link::Links;
use crate::network::{NetworkFrame, peer_of};
use crate::node::NodeId;
use crate::record::Generation;

/// The exchange of links and hosts.
pub(super) struct MemberNetwork {
    exchange: Arc<Exchange>,
    network: Network,
    peers: Vec<NodeId>,
}

impl MemberNetwork {
    /// `incarnation` is a random number of this process.
    pub(super) fn new(network: Network, me: NodeId, nodes: usize, incarnation: u64) -> Self {
        let exchange = Exchange::of(&network);
        let peers: Vec<NodeId> = NodeId::all(nodes).filter(|&node| node != me).collect();
        exchange.open(peer_of(me), peers.iter().copied().map(peer_of), incarnation);
        MemberNetwork { exchange, network, peers }
    }

    /// Waits until there may be something to send. Safe to drop.
    pub(super) async fn next(&self) {
        self.exchange.changed().await;
    }

    /// This node asks a switch to make it its master.
    pub(super) fn elected(&self, dpid: Dpid, generation: Generation) {
        self.exchange.elected(dpid, generation.0);
    }

    /// This node can send to another one.
    pub(super) fn connected(&self, node: NodeId) {
        self.exchange.connected(peer_of(node));
    }

    /// It cannot any more.
    pub(super) fn disconnected(&self, node: NodeId) {
        self.exchange.disconnected(peer_of(node));
    }

    /// Nothing of a node comes any more, until it connects again.
    pub(super) fn lost(&self, node: NodeId) {
        self.exchange.lost(peer_of(node));
    }

    /// A majority does not hear a node.
    pub(super) fn dead(&self, node: NodeId) {
        self.exchange.dead(peer_of(node));
    }

    /// A majority hears a node again. If its connection has never ended, it does not know that this
    /// node has forgotten its switches.
    pub(super) fn alive(&self, node: NodeId, links: &Links) {
        let _ = links.send_network(node, NetworkFrame::Again);
    }

    /// Says so, if a node asks for what it should know of this one.
    pub(super) fn difference(frame: &NetworkFrame) -> Option<String> {
        let NetworkFrame::Facts(NumberedFrame { frame, .. }) = frame else { return None };
        let PeerFrame::Differs { switches, hosts } = frame else { return None };
        let [switches, hosts] = [switches, hosts].map(|buckets| buckets.0.count_ones());
        Some(format!(
            "did not know what this one had reported of links or hosts: it gets {switches} of {BUCKETS} parts of \
             links, and {hosts} of hosts, again"
        ))
    }

    /// Takes a frame of a node. Returns why it was not taken.
    pub(super) fn receive(
        &self,
        node: NodeId,
        frame: NetworkFrame,
        links: &Links,
    ) -> Option<String> {
        let peer = peer_of(node);
        match frame {
            NetworkFrame::Facts(frame) => {
                let error = self.exchange.receive(peer, frame, self.network.now()).err()?;
                // If this is lost, the next frame is refused too.
                let _ = links.send_network(node, NetworkFrame::Again);
                return Some(error.to_string());
            }
            NetworkFrame::Applied { stream, count } => {
                self.exchange.peer_applied(peer, stream, count);
            }
            NetworkFrame::Again => self.exchange.again(peer),
        }
        None
    }

    /// Sends what there is to send.
    pub(super) fn advance(&self, links: &Links) {
        for &node in &self.peers {
            let peer = peer_of(node);
            if let Some((stream, count)) = self.exchange.applied(peer) {
                let _ = links.send_network(node, NetworkFrame::Applied { stream, count });
            }
            while let Some(frame) = self.exchange.next(peer, &self.network) {
                if !links.send_network(node, NetworkFrame::Facts(frame)) {
                    break;
                }
            }
        }
    }
}
