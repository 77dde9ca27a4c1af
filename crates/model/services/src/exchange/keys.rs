//! Keys of the announcements of other controllers.

use std::collections::BTreeMap;

use super::Peer;
use crate::discovery::DiscoveryKey;

/// Keys of the announcements of other controllers.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerKeys(BTreeMap<Peer, PeerKey>);

#[derive(Clone, Debug, Default)]
struct PeerKey {
    current: Option<(u64, DiscoveryKey)>,
    /// That of the start before: its last announcements may still be on their way.
    former: Option<(u64, DiscoveryKey)>,
    /// Whether the current key has come over the connection that stands. A controller that is not
    /// connected may have started again, with another key.
    is_connected: bool,
}

/// Who may have signed an announcement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signer<'k> {
    /// A controller with this key.
    Peer(Peer, &'k DiscoveryKey),
    /// An earlier start of a controller, with this key.
    Former(&'k DiscoveryKey),
    /// Perhaps a controller whose key is not known now.
    Unknown,
    /// No controller of the cluster.
    Nobody,
}

impl PeerKeys {
    pub(super) fn new(peers: impl IntoIterator<Item = Peer>) -> Self {
        PeerKeys(peers.into_iter().map(|peer| (peer, PeerKey::default())).collect())
    }

    /// The same with the key of a peer that is connected.
    pub(super) fn learn(&self, peer: Peer, instance: u64, key: DiscoveryKey) -> Self {
        let mut keys = self.clone();
        if let Some(known) = keys.0.get_mut(&peer) {
            let before = known.current.replace((instance, key));
            if let Some(before) = before.filter(|(former, _)| *former != instance) {
                known.former = Some(before);
            }
            known.is_connected = true;
        }
        keys
    }

    /// The same without the connection of a peer.
    pub(super) fn lost(&self, peer: Peer) -> Self {
        let mut keys = self.clone();
        if let Some(known) = keys.0.get_mut(&peer) {
            known.is_connected = false;
        }
        keys
    }

    /// Finds who may have signed announcements with this number.
    pub(crate) fn signer(&self, instance: u64) -> Signer<'_> {
        for (peer, known) in &self.0 {
            let is_it = |key: &&(u64, DiscoveryKey)| key.0 == instance;
            if let Some((_, key)) = known.current.as_ref().filter(is_it) {
                return Signer::Peer(*peer, key);
            }
            if let Some((_, key)) = known.former.as_ref().filter(is_it) {
                return Signer::Former(key);
            }
        }
        match self.0.values().all(|known| known.is_connected) {
            true => Signer::Nobody,
            false => Signer::Unknown,
        }
    }
}
