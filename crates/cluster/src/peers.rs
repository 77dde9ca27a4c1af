//! Which nodes live: what this node hears, and what the others say that they hear.

use std::time::Duration;

use bellrock_api::Dpid;

use crate::heartbeat::{Heartbeat, PeerSwitches};
use crate::mastership::SILENCE;
use crate::node::{NodeId, NodeSet};
use crate::record::Generation;

/// A node that starts gives the others so long to connect to it: they try once a second. Until
/// then, one that it has not heard, and that a majority hears, may be master of any switch.
const FIRST_WORD: Duration = Duration::from_secs(2);

/// What this node knows of the others.
#[derive(Debug)]
pub(crate) struct Peers {
    me: NodeId,
    /// The random number of this process.
    incarnation: u64,
    /// By node. That of this node is not used.
    peers: Vec<Peer>,
    started: Duration,
}

#[derive(Debug, Default)]
struct Peer {
    /// When the last heartbeat came. `None`: none so far, or the connection has ended since.
    heard: Option<Duration>,
    /// Whether the connection has ended since the last heartbeat.
    is_lost: bool,
    serving: bool,
    draining: bool,
    suspects: NodeSet,
    /// Version of this node's list of switches that the peer knows.
    knows: Option<u64>,
    offer: Option<Dpid>,
    accept: Option<Dpid>,
    incarnation: Option<u64>,
    /// The process that it hears under this node's name.
    hears: Option<u64>,
    switches: PeerSwitches,
}

/// Who is there, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Nodes that this node does not hear.
    pub(crate) suspects: NodeSet,
    /// Nodes that a majority does not hear.
    pub(crate) dead: NodeSet,
    /// Nodes that may be master, without this one.
    pub(crate) serving: NodeSet,
    /// Nodes that give their switches to others, without this one.
    pub(crate) draining: NodeSet,
    /// Nodes that this node, which has just started, has not heard yet, and a majority may. They
    /// are among those that serve.
    pub(crate) unheard: NodeSet,
    /// Whether this node and those that hear it and are heard by it are a majority.
    pub(crate) has_majority: bool,
}

impl Peers {
    pub(crate) fn new(me: NodeId, nodes: usize, incarnation: u64, now: Duration) -> Self {
        let peers = (0..nodes).map(|_| Peer::default()).collect();
        Peers { me, incarnation, peers, started: now }
    }

    /// All nodes but this one.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        let me = self.me;
        NodeId::all(self.peers.len()).filter(move |&node| node != me)
    }

    /// Takes a heartbeat. Adds switches that have connected to the peer, or have left it, to
    /// `changed`.
    pub(crate) fn hear(
        &mut self,
        node: NodeId,
        heartbeat: &Heartbeat,
        now: Duration,
        changed: &mut Vec<Dpid>,
    ) {
        let Some(peer) = self.peers.get_mut(node.index()) else { return };
        peer.heard = Some(now);
        peer.is_lost = false;
        peer.serving = heartbeat.serving;
        peer.draining = heartbeat.draining;
        peer.suspects = heartbeat.suspects;
        peer.knows = heartbeat.known;
        peer.offer = heartbeat.offer;
        peer.accept = heartbeat.accept;
        peer.incarnation = heartbeat.incarnation;
        peer.hears = heartbeat.hears;
        peer.switches.apply(&heartbeat.switches, changed);
    }

    /// The connection to a peer has ended.
    pub(crate) fn lose(&mut self, node: NodeId) {
        if let Some(peer) = self.peers.get_mut(node.index()) {
            peer.is_lost = true;
        }
    }

    /// Who is there now.
    pub(crate) fn view(&self, now: Duration) -> View {
        let suspects: NodeSet = self
            .nodes()
            .filter(|&node| self.silent_from(node).is_none_or(|at| now >= at))
            .collect();
        let heard =
            || self.nodes().filter(|&node| !suspects.contains(node) && self.has_heard(node));
        let is_suspected = |node: NodeId| {
            let by_peers = heard().filter(|&other| other != node && self.suspects(other, node));
            by_peers.count() + usize::from(suspects.contains(node))
        };
        let dead: NodeSet = NodeId::all(self.peers.len())
            .filter(|&node| self.is_majority(is_suspected(node)))
            .collect();
        let mutual = 1 + heard().filter(|&other| self.is_heard_by(other)).count();
        let those = |is_it: fn(&Peer) -> bool| -> NodeSet {
            heard().filter(|&node| self.peers.get(node.index()).is_some_and(is_it)).collect()
        };
        let is_new = now < self.started + FIRST_WORD;
        let unheard: NodeSet = self
            .nodes()
            .filter(|&node| is_new && !dead.contains(node) && !self.has_heard(node))
            .collect();
        let says_it_serves =
            |node: NodeId| self.peers.get(node.index()).is_some_and(|peer| peer.serving);
        View {
            suspects,
            dead,
            unheard,
            // A node that only this one does not hear is taken at its last word: it may be master.
            serving: self
                .nodes()
                .filter(|&node| !dead.contains(node))
                .filter(|&node| unheard.contains(node) || says_it_serves(node))
                .collect(),
            draining: those(|peer| peer.draining),
            has_majority: self.is_majority(mutual) && !dead.contains(self.me),
        }
    }

    /// When the next peer becomes silent, unless it is heard before.
    pub(crate) fn next_silence(&self, now: Duration) -> Option<Duration> {
        self.nodes().filter_map(|node| self.silent_from(node)).filter(|&at| at > now).min()
    }

    /// Whether so many nodes are a majority of the cluster.
    pub(crate) fn is_majority(&self, count: usize) -> bool {
        2 * count > self.peers.len()
    }

    /// Whether a switch is connected to a peer.
    pub(crate) fn is_connected(&self, node: NodeId, dpid: Dpid) -> bool {
        self.peers.get(node.index()).is_some_and(|peer| peer.switches.contains(dpid))
    }

    /// Version of the peer's list of switches that this node knows, and version of this node's list
    /// that the peer knows.
    pub(crate) fn versions(&self, node: NodeId) -> (Option<u64>, Option<u64>) {
        let peer = self.peers.get(node.index());
        peer.map_or((None, None), |peer| (peer.switches.version(), peer.knows))
    }

    /// The process of a peer that was heard last.
    pub(crate) fn incarnation(&self, node: NodeId) -> Option<u64> {
        self.peers.get(node.index()).and_then(|peer| peer.incarnation)
    }

    /// The generation by which a peer is master of a switch, by its last word.
    pub(crate) fn generation(&self, node: NodeId, dpid: Dpid) -> Option<Generation> {
        self.peers.get(node.index()).and_then(|peer| peer.switches.generation(dpid))
    }

    /// Whether a peer says by which generations it is master.
    pub(crate) fn has_generations(&self, node: NodeId) -> bool {
        self.peers.get(node.index()).is_some_and(|peer| peer.switches.has_generations())
    }

    /// The switch that a peer offers.
    pub(crate) fn offer(&self, node: NodeId) -> Option<Dpid> {
        self.peers.get(node.index()).and_then(|peer| peer.offer)
    }

    /// The switch that a peer takes.
    pub(crate) fn accept(&self, node: NodeId) -> Option<Dpid> {
        self.peers.get(node.index()).and_then(|peer| peer.accept)
    }

    /// When a peer counts as silent. `None`: it does already, since its connection has ended.
    fn silent_from(&self, node: NodeId) -> Option<Duration> {
        let peer = self.peers.get(node.index())?;
        (!peer.is_lost).then(|| peer.heard.unwrap_or(self.started) + SILENCE)
    }

    /// When a peer was last heard.
    pub(crate) fn heard(&self, node: NodeId) -> Option<Duration> {
        self.peers.get(node.index()).and_then(|peer| peer.heard)
    }

    pub(crate) fn has_heard(&self, node: NodeId) -> bool {
        self.peers.get(node.index()).is_some_and(|peer| peer.heard.is_some())
    }

    /// Whether `node` says that it hears this process. It may hear another one of the same name.
    fn is_heard_by(&self, node: NodeId) -> bool {
        self.peers.get(node.index()).is_some_and(|peer| {
            let is_this = peer.incarnation.is_none() || peer.hears == Some(self.incarnation);
            is_this && !peer.suspects.contains(self.me)
        })
    }

    /// Whether `node` says that it does not hear `other`.
    fn suspects(&self, node: NodeId, other: NodeId) -> bool {
        self.peers.get(node.index()).is_some_and(|peer| peer.suspects.contains(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heartbeat::SwitchReport;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn node(place: usize) -> NodeId {
        NodeId::new(place).unwrap()
    }

    fn set(places: &[usize]) -> NodeSet {
        places.iter().map(|&place| node(place)).collect()
    }

    /// The process of the node under test.
    const ME: u64 = 7;

    fn heartbeat(suspects: &[usize]) -> Heartbeat {
        Heartbeat {
            serving: true,
            draining: false,
            suspects: set(suspects),
            switches: SwitchReport::Same { version: 1 },
            known: None,
            offer: None,
            accept: None,
            incarnation: Some(1),
            hears: Some(ME),
        }
    }

    /// Node 0 of three at 1 s, which heard nodes 1 and 2 that long ago, with these suspects.
    fn view(one: (u64, &[usize]), two: (u64, &[usize])) -> View {
        let mut peers = Peers::new(node(0), 3, ME, ms(0));
        for (place, (ago, suspects)) in [(1, one), (2, two)] {
            peers.hear(node(place), &heartbeat(suspects), ms(1000 - ago), &mut Vec::new());
        }
        peers.view(ms(1000))
    }

    #[test]
    fn a_node_is_dead_when_a_majority_does_not_hear_it() {
        assert_eq!(view((40, &[]), (40, &[])).dead, set(&[]));
        // Only this node does not hear node 1: it may be master still.
        let alone = view((400, &[]), (40, &[]));
        assert_eq!((alone.suspects, alone.dead), (set(&[1]), set(&[])));
        assert!(alone.serving.contains(node(1)) && alone.has_majority);
        assert_eq!(view((400, &[]), (40, &[1])).dead, set(&[1]));
        // What a silent node said does not count any more.
        assert_eq!(view((400, &[2]), (400, &[1])).dead, set(&[]));
    }

    #[test]
    fn a_node_that_is_not_heard_by_others_has_no_majority() {
        assert!(view((40, &[]), (40, &[0])).has_majority);
        let unheard = view((40, &[0]), (40, &[0]));
        assert_eq!((unheard.has_majority, unheard.dead), (false, set(&[0])));
        assert!(!view((400, &[]), (400, &[])).has_majority);
    }

    #[test]
    fn a_node_whose_name_another_process_has_taken_has_no_majority() {
        let mut peers = Peers::new(node(0), 3, ME, ms(0));
        for (hears, has_majority) in [(Some(8), false), (None, false), (Some(ME), true)] {
            for place in [1, 2] {
                let heard = Heartbeat { hears, ..heartbeat(&[]) };
                peers.hear(node(place), &heard, ms(100), &mut Vec::new());
            }
            assert_eq!(peers.view(ms(101)).has_majority, has_majority, "{hears:?}");
        }
        // The first release does not say which process it hears.
        let heard = Heartbeat { incarnation: None, hears: None, ..heartbeat(&[]) };
        peers.hear(node(1), &heard, ms(100), &mut Vec::new());
        assert!(peers.view(ms(101)).has_majority);
    }

    #[test]
    fn a_connection_that_ends_is_silence_at_once_until_the_next_heartbeat() {
        let mut peers = Peers::new(node(0), 3, ME, ms(0));
        peers.hear(node(1), &heartbeat(&[]), ms(100), &mut Vec::new());
        assert_eq!(peers.next_silence(ms(100)), Some(SILENCE));
        peers.lose(node(1));
        assert_eq!(peers.view(ms(101)).suspects, set(&[1]));
        peers.hear(node(1), &heartbeat(&[]), ms(110), &mut Vec::new());
        assert_eq!(peers.view(ms(111)).suspects, set(&[]));
    }

    #[test]
    fn nobody_is_suspected_before_it_had_time_to_speak() {
        let peers = Peers::new(node(2), 3, ME, ms(500));
        assert_eq!(peers.view(ms(500)).suspects, set(&[]));
        assert!(!peers.view(ms(500)).has_majority);
        assert_eq!(peers.view(ms(500) + SILENCE).suspects, set(&[0, 1]));
    }

    #[test]
    fn a_node_that_was_not_heard_yet_may_be_master_unless_a_majority_does_not_hear_it() {
        let mut peers = Peers::new(node(0), 3, ME, ms(500));
        peers.hear(node(1), &heartbeat(&[]), ms(900), &mut Vec::new());
        let early = peers.view(ms(900));
        assert_eq!((early.unheard, early.serving), (set(&[2]), set(&[1, 2])));
        let late = peers.view(ms(500) + FIRST_WORD);
        assert_eq!(late.unheard, set(&[]));
        assert!(!late.serving.contains(node(2)));
        peers.hear(node(1), &heartbeat(&[2]), ms(910), &mut Vec::new());
        let dead = peers.view(ms(910));
        assert_eq!((dead.dead, dead.unheard, dead.serving), (set(&[2]), set(&[]), set(&[1])));
        peers.hear(node(2), &heartbeat(&[]), ms(920), &mut Vec::new());
        assert_eq!(peers.view(ms(920)).unheard, set(&[]));
    }
}
