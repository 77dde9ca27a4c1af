//! Exchanges links and hosts with the other controllers of a cluster.
//!
//! Each controller finds the links and hosts of the switches that it is master of, and reports them
//! to the others (its *peers*), so that all of them know the whole network. A single controller has
//! no peers, and none of this runs.
//!
//! # How it works
//! - `frame` is what controllers send to each other. It is plain data: the cluster decides how it
//!   looks on a connection.
//! - `outbox` notes what a peer does not know yet, and not the messages that say so. So a slow peer
//!   gets the newest state, and what waits for it is bounded by the network.
//! - Discovery and host tracking apply what comes in. Their own state decides: see
//!   `discovery::links::shared` and `hosts::tracker::shared`.
//! - At most [`WINDOW`] frames are on their way to a peer and not applied there.
//! - `digest` compares what a peer knows with what this controller has reported, once a while, and
//!   has the difference sent again.
//! - `keys` has the keys of peers' announcements. They come over the connection, and are stored
//!   nowhere.

mod digest;
mod frame;
mod input;
mod keys;
mod outbox;
mod own;
mod peer;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use bellrock_api::{Dpid, HostId, Hosts, MacAddr, Network, Port, Publisher, SwitchPort, Watch};

use crate::discovery::DiscoveryKey;
pub(crate) use digest::Comparison;
pub use digest::{BUCKETS, Buckets, DIGEST_EVERY, Digest};
pub use frame::{
    HostClaim, HostFact, HostFacts, InvalidFrame, LinkFact, MAX_LEFT, MAX_LINKS_OF_SWITCH,
    MAX_PORTS_OF_SWITCH, PassedAnnouncement, PeerFrame, PortFact, SwitchFacts,
};
use input::Applied;
pub(crate) use input::{HostInput, Input, LinkInput};
pub(crate) use keys::{PeerKeys, Signer};
pub use outbox::{HOSTS_PER_FRAME, MAX_CHANGED_HOSTS, MAX_POSTED, WINDOW};
use own::{ChangedSwitches, OwnSwitches};
use peer::{Noted, PeerState, ReportEnd};

/// Maximum number of controllers of a cluster.
pub const MAX_PEERS: usize = 16;

/// Maximum number of frames of a peer that wait for discovery and host tracking. A peer that keeps
/// to the [`WINDOW`] never reaches it: it may begin again while a window of frames still waits.
pub const MAX_WAITING: usize = 4 * WINDOW;

/// Another controller of the cluster: its place in the list of the cluster's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer(pub u8);

/// Exchanges links and hosts with the other controllers. An
/// [extension](bellrock_api::Network::extension) of the network.
pub struct Exchange {
    is_open: AtomicBool,
    has_hosts: AtomicBool,
    state: Mutex<ExchangeState>,
    links: (Sender<Input<LinkInput>>, Receiver<Input<LinkInput>>),
    hosts: (Sender<Input<HostInput>>, Receiver<Input<HostInput>>),
    /// Has a message when there may be something to send.
    wake: (Sender<()>, Receiver<()>),
    keys: Publisher<PeerKeys>,
}

#[derive(Default)]
struct ExchangeState {
    /// This controller.
    me: Option<Peer>,
    /// The key of this controller's announcements, when discovery runs.
    key: Option<(u64, DiscoveryKey)>,
    own: OwnSwitches,
    peers: BTreeMap<Peer, PeerState>,
}

/// A frame to send, and its place.
#[derive(Debug, PartialEq, Eq)]
pub struct NumberedFrame {
    /// Number of the stream. It grows with each new beginning.
    pub stream: u64,
    /// Place in the stream, from 1.
    pub number: u64,
    /// The frame.
    pub frame: PeerFrame,
}

/// Why a frame of a peer was not taken. The peer must begin again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotTaken {
    /// A frame is missing before it.
    #[error("frame {number} came in place of frame {expected}")]
    OutOfOrder {
        /// Its number.
        number: u64,
        /// The number that was due.
        expected: u64,
    },
    /// Its sender does not wait until frames are applied.
    #[error("{MAX_WAITING} frames of the node wait already")]
    TooMany,
    /// Its contents are beyond the bounds.
    #[error(transparent)]
    Invalid(#[from] InvalidFrame),
}

impl Default for Exchange {
    fn default() -> Self {
        Exchange {
            is_open: AtomicBool::new(false),
            has_hosts: AtomicBool::new(false),
            state: Mutex::default(),
            // Bounded by `MAX_WAITING` for each peer.
            links: async_channel::unbounded(),
            hosts: async_channel::unbounded(),
            wake: async_channel::bounded(1),
            keys: Publisher::default(),
        }
    }
}

impl Exchange {
    /// The exchange of a controller.
    #[must_use]
    pub fn of(network: &Network) -> Arc<Exchange> {
        network.extension()
    }

    /// A panic under this lock leaves facts that were not reported at most.
    fn lock(&self) -> MutexGuard<'_, ExchangeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // If it is full, the other end is about to look.
        let _ = self.wake.0.try_send(());
    }

    /// Whether the controller is one of a cluster.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Discovery runs, and signs by this key.
    pub(crate) fn begin_links(&self, instance: u64, key: DiscoveryKey) {
        let mut state = self.lock();
        state.key = Some((instance, key));
        state.peers.values_mut().for_each(|peer| peer.outbox.restart());
        let me = state.me;
        drop(state);
        if let Some(me) = me {
            self.input_links(me, LinkInput::Open, None);
        }
        self.wake();
    }

    /// Host tracking runs.
    pub(crate) fn begin_hosts(&self) {
        self.has_hosts.store(true, Ordering::Release);
        let me = self.lock().me;
        if let Some(me) = me {
            self.input_hosts(me, HostInput::Open(me), None);
        }
    }

    /// What peers report of links.
    pub(crate) fn link_inputs(&self) -> &Receiver<Input<LinkInput>> {
        &self.links.1
    }

    /// What peers report of hosts.
    pub(crate) fn host_inputs(&self) -> &Receiver<Input<HostInput>> {
        &self.hosts.1
    }

    /// Keys of peers' announcements.
    pub(crate) fn keys(&self) -> &Watch<PeerKeys> {
        self.keys.watch()
    }

    /// Replaces what is known of the switches of this controller. The hosts of new ones are
    /// reported with them.
    pub(crate) fn set_switches(&self, all: BTreeMap<Dpid, Arc<SwitchFacts>>, hosts: &Hosts) {
        if !self.is_open() {
            return;
        }
        let mut state = self.lock();
        let ChangedSwitches { new, changed, left } = state.own.set(all);
        let new_hosts: Vec<HostId> = new.iter().flat_map(|dpid| hosts_of(*dpid, hosts)).collect();
        for PeerState { outbox, .. } in state.peers.values_mut() {
            outbox.switches_changed(&changed, &left);
            outbox.hosts_changed(&new_hosts);
        }
        drop(state);
        self.wake();
    }

    /// Notes that hosts of this controller have changed, or are not there any more.
    pub(crate) fn hosts_changed(&self, changed: impl IntoIterator<Item = HostId>) {
        if !self.is_open() {
            return;
        }
        let changed: Vec<HostId> = changed.into_iter().collect();
        if changed.is_empty() {
            return;
        }
        let mut state = self.lock();
        state.own.hosts_changed();
        for PeerState { outbox, .. } in state.peers.values_mut() {
            outbox.hosts_changed(&changed);
        }
        drop(state);
        self.wake();
    }

    /// Sends a frame to a peer. `false`: it is not connected, or too many wait.
    pub(crate) fn post(&self, to: Peer, frame: PeerFrame) -> bool {
        let posted = self.lock().peers.get_mut(&to).is_some_and(|peer| peer.outbox.post(frame));
        self.wake();
        posted
    }

    fn input_links(&self, peer: Peer, body: LinkInput, applied: Option<Arc<Applied>>) {
        // Without discovery nobody would take it.
        if self.lock().key.is_some() {
            let _ = self.links.0.try_send(Input { peer, body, applied });
        }
    }

    fn input_hosts(&self, peer: Peer, body: HostInput, applied: Option<Arc<Applied>>) {
        if self.has_hosts.load(Ordering::Acquire) {
            let _ = self.hosts.0.try_send(Input { peer, body, applied });
        }
    }
}

/// For the cluster.
impl Exchange {
    /// Begins the exchange, as `me`, with these peers. At most [`MAX_PEERS`] take part.
    ///
    /// `incarnation` is a random number of this start. The streams of frames are numbered from
    /// there: a peer must not take a stream of this start for one of the start before.
    pub fn open(&self, me: Peer, peers: impl IntoIterator<Item = Peer>, incarnation: u64) {
        let mut state = self.lock();
        state.me = Some(me);
        let new = |peer| (peer, PeerState::new(incarnation));
        state.peers = peers.into_iter().take(MAX_PEERS).map(new).collect();
        let peers: Vec<Peer> = state.peers.keys().copied().collect();
        drop(state);
        self.keys.publish(PeerKeys::new(peers));
        self.is_open.store(true, Ordering::Release);
        self.input_links(me, LinkInput::Open, None);
        self.input_hosts(me, HostInput::Open(me), None);
    }

    /// Notes that this controller asks a switch to make it its master, by the election of this
    /// number. Of two controllers that report a switch, the one of the newer election is its
    /// master.
    pub fn elected(&self, dpid: Dpid, term: u64) {
        let mut state = self.lock();
        if state.own.elected(dpid, term) {
            state.peers.values_mut().for_each(|it| it.outbox.switches_changed(&[dpid], &[]));
        }
    }

    /// Notes that this controller can send to a peer. The peer gets everything.
    pub fn connected(&self, peer: Peer) {
        if let Some(peer) = self.lock().peers.get_mut(&peer) {
            peer.outbox.connected();
            // The last report may have been lost with the connection.
            peer.reported = 0;
        }
        self.wake();
    }

    /// Notes that this controller cannot send to a peer any more.
    pub fn disconnected(&self, peer: Peer) {
        if let Some(peer) = self.lock().peers.get_mut(&peer) {
            peer.outbox.disconnected();
        }
    }

    /// Notes that nothing of a peer comes any more, until it connects again. It may live.
    pub fn lost(&self, peer: Peer) {
        self.keys.update(|keys| keys.lost(peer));
    }

    /// Notes that a majority of the cluster does not hear a peer: others take over its switches.
    pub fn dead(&self, peer: Peer) {
        self.input_links(peer, LinkInput::Dead, None);
        self.input_hosts(peer, HostInput::Dead, None);
    }

    /// Sends everything to a peer again: it has missed something.
    pub fn again(&self, peer: Peer) {
        if let Some(peer) = self.lock().peers.get_mut(&peer) {
            peer.outbox.restart();
        }
        self.wake();
    }

    /// Waits until there may be something to send. Safe to drop.
    pub async fn changed(&self) {
        // Both ends live in this value.
        let _ = self.wake.1.recv().await;
    }

    /// Returns the next frame for a peer. `None`: the peer knows everything, or must apply frames
    /// first.
    pub fn next(&self, to: Peer, network: &Network) -> Option<NumberedFrame> {
        self.next_at(to, &network.hosts().load(), network.now())
    }

    /// The same with these hosts, at this time.
    fn next_at(&self, to: Peer, hosts: &Hosts, now: Duration) -> Option<NumberedFrame> {
        let mut state = self.lock();
        let ExchangeState { key, own, peers, .. } = &mut *state;
        let outbox = &mut peers.get_mut(&to)?.outbox;
        // Without discovery there is nothing to say.
        let key = key.as_ref()?;
        outbox.next(key, own, hosts, now)
    }

    /// Takes a frame of a peer.
    ///
    /// # Errors
    /// [`NotTaken`]: the peer must begin again.
    pub fn receive(
        self: &Arc<Self>,
        peer: Peer,
        numbered: NumberedFrame,
        now: Duration,
    ) -> Result<(), NotTaken> {
        let NumberedFrame { stream, number, frame } = numbered;
        let mut state = self.lock();
        let Some(from) = state.peers.get_mut(&peer) else { return Ok(()) };
        if number == 1 && stream != from.stream {
            from.begin(stream);
        }
        if stream != from.stream || number != from.number + 1 {
            return Err(NotTaken::OutOfOrder { number, expected: from.number + 1 });
        }
        if from.waiting.load(Ordering::Acquire) >= MAX_WAITING {
            return Err(NotTaken::TooMany);
        }
        from.number = number;
        let waiting = Arc::clone(&from.waiting);
        waiting.fetch_add(1, Ordering::AcqRel);
        let exchange = Arc::downgrade(self);
        let applied = Some(Arc::new(Applied { exchange, peer, stream, waiting }));
        let checked = frame.check();
        let noted = if checked.is_ok() { from.note(&frame) } else { Noted::default() };
        drop(state);
        checked?;
        let [links, hosts] = [applied.clone(), applied];
        match frame {
            PeerFrame::Key { instance, key } => {
                let key = DiscoveryKey::of(&key);
                self.keys.update(|keys| keys.learn(peer, instance, key));
                if noted.has_restarted {
                    self.input_links(peer, LinkInput::Restarted, links);
                }
            }
            PeerFrame::Begin { .. } => self.input_hosts(peer, HostInput::Begin, hosts),
            PeerFrame::Switch { sent_at, term, facts } => {
                let facts = facts.at_clock(sent_at, now);
                self.input_links(peer, LinkInput::Switch(term, facts), links);
            }
            PeerFrame::Left(dpids) => self.input_links(peer, LinkInput::Left(dpids), links),
            PeerFrame::Hosts { sent_at, facts } => {
                self.input_hosts(peer, HostInput::Facts(facts.at_clock(sent_at, now)), hosts);
            }
            PeerFrame::End => {
                let ReportEnd { reported, all, switches, hosts: of_hosts } = noted.end;
                self.input_links(peer, LinkInput::Complete(reported, switches), links);
                self.input_hosts(peer, HostInput::Complete(all, of_hosts), hosts);
            }
            PeerFrame::Announcement(announcement) => {
                self.input_links(peer, LinkInput::Announcement(announcement), links);
            }
            PeerFrame::Claim(claim) => self.input_hosts(peer, HostInput::Claim(claim), hosts),
            PeerFrame::Moved(fact) => self.input_hosts(peer, HostInput::Moved(fact), hosts),
            PeerFrame::Digest { switches: of_switches, hosts: of_hosts } => {
                self.input_links(peer, LinkInput::Digest(of_switches), links);
                self.input_hosts(peer, HostInput::Digest(of_hosts, noted.switches), hosts);
            }
            PeerFrame::Differs { switches, hosts } => {
                if let Some(peer) = self.lock().peers.get_mut(&peer) {
                    peer.outbox.repeat(switches, hosts);
                }
                self.wake();
            }
        }
        Ok(())
    }

    /// Returns the stream of a peer and the number of its frames that were applied, if that has
    /// changed since the last call.
    #[must_use]
    pub fn applied(&self, peer: Peer) -> Option<(u64, u64)> {
        let mut state = self.lock();
        let from = state.peers.get_mut(&peer)?;
        if from.reported == from.applied {
            return None;
        }
        from.reported = from.applied;
        Some((from.stream, from.applied))
    }

    /// Notes that a peer has applied so many frames of a stream.
    pub fn peer_applied(&self, peer: Peer, stream: u64, count: u64) {
        if let Some(peer) = self.lock().peers.get_mut(&peer) {
            peer.outbox.applied(stream, count);
        }
        self.wake();
    }
}

/// The hosts of a switch.
fn hosts_of(dpid: Dpid, hosts: &Hosts) -> impl Iterator<Item = HostId> {
    let first = (SwitchPort::new(dpid, Port(0)), HostId::new(MacAddr::ZERO, None));
    hosts.after(Some(first)).take_while(move |host| host.at.dpid == dpid).map(|host| host.id)
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("is_open", &self.is_open()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
