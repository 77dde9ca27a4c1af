//! What discovery and host tracking get to know of other controllers.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use bellrock_api::Dpid;

use super::digest::{Buckets, Digest};
use super::frame::{HostClaim, HostFact, HostFacts, PassedAnnouncement, SwitchFacts};
use super::{Exchange, Peer};

/// What a peer has sent, or what has happened to it.
pub(crate) struct Input<T> {
    pub(crate) peer: Peer,
    pub(crate) body: T,
    /// When it is dropped, the frame counts as applied.
    pub(super) applied: Option<Arc<Applied>>,
}

impl<T> Input<T> {
    /// Returns the peer, what it has sent, and what is to be dropped when that is applied.
    pub(crate) fn split(self) -> (Peer, T, impl Sized + use<T>) {
        (self.peer, self.body, self.applied)
    }
}

/// For discovery.
#[derive(Debug)]
pub(crate) enum LinkInput {
    /// Links and hosts are exchanged from now on.
    Open,
    /// The peer has started again: its clock is another one.
    Restarted,
    /// A switch of the peer, and the election that made the peer its master.
    Switch(u64, SwitchFacts),
    Left(Vec<Dpid>),
    /// The peer has reported all its switches of some buckets. These are all.
    Complete(Arc<BTreeSet<Dpid>>, Buckets),
    /// What must be known of the switches of the peer.
    Digest(Digest),
    Announcement(PassedAnnouncement),
    /// A majority does not hear the peer.
    Dead,
}

/// For host tracking.
#[derive(Debug)]
pub(crate) enum HostInput {
    /// Links and hosts are exchanged from now on, by this controller.
    Open(Peer),
    /// The peer begins to report all its hosts, or all those of some buckets.
    Begin,
    Facts(HostFacts),
    /// The peer has reported all its hosts of some buckets. These are all its switches.
    Complete(Arc<BTreeSet<Dpid>>, Buckets),
    /// What must be known of the hosts of the peer. These are all its switches.
    Digest(Digest, Arc<BTreeSet<Dpid>>),
    Claim(HostClaim),
    /// A host of the peer has moved to a switch of this controller.
    Moved(HostFact),
    /// A majority does not hear the peer.
    Dead,
}

/// A frame of a peer that is being applied.
pub(super) struct Applied {
    pub(super) exchange: Weak<Exchange>,
    pub(super) peer: Peer,
    pub(super) stream: u64,
    pub(super) waiting: Arc<AtomicUsize>,
}

impl Drop for Applied {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        let Some(exchange) = self.exchange.upgrade() else { return };
        if let Some(peer) = exchange.lock().peers.get_mut(&self.peer)
            && peer.stream == self.stream
        {
            peer.applied += 1;
        }
        exchange.wake();
    }
}
