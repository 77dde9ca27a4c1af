//! Hosts of a cluster: what other controllers report, and hosts that go from one controller to
//! another.
//!
//! The controller that is master of a host's switch decides about the host: it asks whether the
//! host is there, and whether it has moved. The others show what it reports, and pass claims on to
//! it. When this controller becomes master of a switch, the switch's hosts are its own from then
//! on, as if they had just sent a packet.
//!
//! If two controllers find the same host before they hear of each other, the one that has known it
//! for longer asks the host, and the other one gives way: who comes later must not win by its
//! place. Of two that have found it at the same moment it is the first one in the list of nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellrock_api::{Dpid, HostId, SwitchPort, Topology};

use super::{CLAIM_PAUSE, HostTracker, SenderAddresses, TrackedHost};
use crate::exchange::{
    Buckets, Comparison, Digest, HostClaim, HostFact, HostFacts, HostInput, Peer,
};

/// Maximum number of hosts that are given to the master of their switch at a time.
const ORPHANS_PER_DIGEST: usize = 256;

/// Two controllers that have found a host within this time have found it at the same moment: their
/// clocks and what is on its way between them say no more.
const SAME_MOMENT: Duration = Duration::from_secs(2);

/// Whether the first of two controllers decides about a host that both have. Each has known it
/// since a time. Both come to the same answer.
fn is_first(own: (Duration, Peer), other: (Duration, Peer)) -> bool {
    if own.0.abs_diff(other.0) > SAME_MOMENT { own.0 < other.0 } else { own.1 < other.1 }
}

/// What host tracking keeps for the other controllers of a cluster.
#[derive(Debug)]
pub(super) struct Sharing {
    me: Peer,
    /// The switches of this controller.
    pub(super) own: BTreeSet<Dpid>,
    /// Hosts that have changed since the last call of [`HostTracker::take_shared`].
    changed: BTreeSet<HostId>,
    claims: Vec<(Peer, HostClaim)>,
    moved: Vec<(Peer, HostFact)>,
    gone: Vec<(Peer, HostId)>,
    /// How often each peer has begun to report its hosts.
    reports: BTreeMap<Peer, u32>,
    /// How the digests of peers compared, and what they are asked to report again.
    comparisons: BTreeMap<Peer, Comparison>,
    differing: Vec<(Peer, Buckets)>,
}

/// What is to be sent to the other controllers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::hosts) struct ToShare {
    /// Hosts that have changed.
    pub(in crate::hosts) changed: BTreeSet<HostId>,
    /// Claims that a peer decides about.
    pub(in crate::hosts) claims: Vec<(Peer, HostClaim)>,
    /// Hosts that have moved to a switch of a peer.
    pub(in crate::hosts) moved: Vec<(Peer, HostFact)>,
    /// Hosts that a peer takes for those of this controller, which they are not.
    pub(in crate::hosts) gone: Vec<(Peer, HostId)>,
    /// Hosts that a peer must report again.
    pub(in crate::hosts) differing: Vec<(Peer, Buckets)>,
}

impl HostTracker {
    /// Applies what a peer reports.
    pub(in crate::hosts) fn handle_input(
        &mut self,
        peer: Peer,
        input: HostInput,
        topology: &Topology,
        now: Duration,
    ) {
        match input {
            HostInput::Open(me) => self.share(me),
            HostInput::Begin => {
                if let Some(sharing) = &mut self.sharing {
                    *sharing.reports.entry(peer).or_default() += 1;
                }
            }
            HostInput::Facts(HostFacts { present, gone }) => {
                for fact in present {
                    self.peer_host(peer, fact, topology, now);
                }
                gone.into_iter().for_each(|host| self.peer_host_gone(peer, host));
            }
            HostInput::Complete(switches, buckets) => {
                self.peer_complete(peer, &switches, buckets, now);
            }
            HostInput::Digest(digest, switches) => {
                self.compare(peer, &digest);
                self.give_orphans(peer, &switches);
            }
            HostInput::Claim(claim) => self.peer_claim(peer, claim, topology, now),
            HostInput::Moved(fact) => self.take_host(fact, now),
            HostInput::Dead => self.peer_dead(peer, now),
        }
    }

    fn share(&mut self, me: Peer) {
        self.sharing.get_or_insert_with(|| Sharing {
            me,
            own: BTreeSet::new(),
            changed: BTreeSet::new(),
            claims: Vec::new(),
            moved: Vec::new(),
            gone: Vec::new(),
            reports: BTreeMap::new(),
            comparisons: BTreeMap::new(),
            differing: Vec::new(),
        });
    }

    /// Whether other controllers report hosts.
    pub(in crate::hosts) fn is_shared(&self) -> bool {
        self.sharing.is_some()
    }

    /// Returns what is to be sent since the last call.
    pub(in crate::hosts) fn take_shared(&mut self) -> ToShare {
        let Some(sharing) = &mut self.sharing else { return ToShare::default() };
        ToShare {
            changed: std::mem::take(&mut sharing.changed),
            claims: std::mem::take(&mut sharing.claims),
            moved: std::mem::take(&mut sharing.moved),
            gone: std::mem::take(&mut sharing.gone),
            differing: std::mem::take(&mut sharing.differing),
        }
    }

    /// Notes that a host of this controller has changed.
    pub(super) fn note_change(&mut self, host: HostId) {
        if let Some(sharing) = &mut self.sharing {
            sharing.changed.insert(host);
        }
    }

    /// Whether a host belongs to another controller.
    pub(super) fn is_of_peer(&self, host: HostId) -> bool {
        self.entries.get(&host).is_some_and(|entry| entry.of.is_some())
    }

    /// Updates which switches this controller is master of. It has the hosts of new ones from now
    /// on.
    pub(in crate::hosts) fn set_own_switches(&mut self, own: BTreeSet<Dpid>, now: Duration) {
        let Some(sharing) = &mut self.sharing else { return };
        let before = std::mem::replace(&mut sharing.own, own);
        let new: Vec<Dpid> = sharing.own.difference(&before).copied().collect();
        let lost: Vec<Dpid> = before.difference(&sharing.own).copied().collect();
        for dpid in new {
            for host in self.hosts_of(dpid) {
                self.own_host(host, now);
                self.note_change(host);
            }
        }
        for dpid in lost {
            for host in self.hosts_of(dpid) {
                // The next master asks.
                if let Some(entry) = self.entries.get_mut(&host) {
                    entry.probe = None;
                }
                self.reschedule(host);
            }
        }
    }

    fn hosts_of(&self, dpid: Dpid) -> Vec<HostId> {
        self.ports.of_switch(dpid).flat_map(|at| self.ports.hosts(at)).collect()
    }

    /// Makes a host one of this controller, as if it had sent a packet a while ago: not all hosts
    /// of a switch are asked in the same moment.
    fn own_host(&mut self, host: HostId, now: Duration) {
        let max_age = self.settings.max_age;
        let Some(entry) = self.entries.get_mut(&host) else { return };
        if entry.of.take().is_some() {
            let ago = max_age / 2 * u32::from(host.mac.0[5]) / 256;
            (entry.last_seen, entry.probe) = (now.saturating_sub(ago), None);
            entry.paused_until = Duration::ZERO;
            self.reschedule(host);
        }
    }

    /// A host was seen at its port, at a switch of this controller: it is one of this controller,
    /// whatever a peer has reported.
    pub(super) fn reclaim(&mut self, host: HostId, at: SwitchPort, now: Duration) {
        let Some(sharing) = &self.sharing else { return };
        let is_own = sharing.own.contains(&at.dpid);
        let entry = self.entries.get(&host);
        if is_own && entry.is_some_and(|entry| entry.of.is_some() && entry.at == at) {
            self.own_host(host, now);
            self.note_change(host);
        }
    }

    /// Applies what a peer reports of a host.
    fn peer_host(&mut self, peer: Peer, fact: HostFact, topology: &Topology, now: Duration) {
        let Some(sharing) = &self.sharing else { return };
        let (me, id) = (sharing.me, fact.id);
        let Some(entry) = self.entries.get(&id) else {
            if self.entries.len() < self.settings.max_hosts {
                self.insert_peer_host(peer, fact, now);
            }
            return;
        };
        let is_own = entry.of.is_none() && entry.present && sharing.own.contains(&entry.at.dpid);
        if is_own && entry.at != fact.at && is_first((entry.since, me), (fact.since, peer)) {
            // It is asked where it is.
            let ip = fact.addresses.first().copied();
            self.note_change(id);
            let claim = HostClaim::Place { host: id, at: fact.at, ip };
            return self.peer_claim(peer, claim, topology, now);
        }
        self.update_peer_host(peer, fact, now);
    }

    fn insert_peer_host(&mut self, peer: Peer, fact: HostFact, now: Duration) {
        let HostFact { id, at, since, .. } = fact;
        let entry =
            TrackedHost { since, of: Some(peer), ..TrackedHost::new(at, now, Duration::MAX) };
        self.entries.insert(id, entry);
        self.ports.add(at, id);
        self.update_peer_host(peer, fact, now);
    }

    fn update_peer_host(&mut self, peer: Peer, fact: HostFact, now: Duration) {
        let HostFact { id, at, addresses, since } = fact;
        let addresses: Vec<_> =
            addresses.into_iter().filter(|ip| self.yields_address(*ip, id, since, peer)).collect();
        let report = self.sharing.as_ref().and_then(|it| it.reports.get(&peer)).copied();
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let is_published = self.hosts.get(id.mac, id.vlan).is_some();
        let is_same = is_published && entry.at == at && entry.addresses == addresses;
        let from = std::mem::replace(&mut entry.at, at);
        (entry.of, entry.report) = (Some(peer), report.unwrap_or_default());
        (entry.present, entry.probe, entry.addresses) = (true, None, addresses);
        if !is_same {
            (entry.since, entry.last_seen) = (since, now);
        }
        if from != at {
            self.ports.remove(from, id);
            self.ports.add(at, id);
            self.stale.push(from);
        }
        self.reschedule(id);
        if !is_same {
            self.publish(id);
        }
    }

    /// Takes an address from the host that has it, for a host of a peer. Returns whether that one
    /// may have it: if a host of this controller has it too, the host that was known first keeps
    /// it.
    fn yields_address(
        &mut self,
        ip: std::net::IpAddr,
        id: HostId,
        since: Duration,
        peer: Peer,
    ) -> bool {
        let owner = self.hosts.by_ip(ip, id.vlan).map(|owner| owner.id).filter(|it| *it != id);
        let Some(owner) = owner else { return true };
        let own_since = self.entries.get(&owner).map(|entry| entry.since);
        let is_first =
            self.sharing.as_ref().zip(own_since).is_some_and(|(sharing, own_since)| {
                is_first((own_since, sharing.me), (since, peer))
            });
        if is_first && !self.is_of_peer(owner) {
            return false;
        }
        if let Some(entry) = self.entries.get_mut(&owner) {
            entry.addresses.retain(|address| *address != ip);
        }
        self.publish(owner);
        true
    }

    fn peer_host_gone(&mut self, peer: Peer, host: HostId) {
        if self.entries.get(&host).is_some_and(|entry| entry.of == Some(peer)) {
            self.remove_silently(host);
        }
    }

    /// Removes a host without an event: its own controller reports it.
    pub(super) fn remove_silently(&mut self, host: HostId) {
        let Some(entry) = self.entries.remove(&host) else { return };
        self.due.remove(&(entry.due, host));
        self.ports.remove(entry.at, host);
        self.changed |= self.hosts.remove(host).is_some();
        self.stale.push(entry.at);
    }

    /// A peer has reported all its hosts of some buckets: others at its switches are gone. Others
    /// elsewhere may be those of a switch that it is not master of any more.
    fn peer_complete(
        &mut self,
        peer: Peer,
        switches: &BTreeSet<Dpid>,
        buckets: Buckets,
        now: Duration,
    ) {
        let report = self.sharing.as_ref().and_then(|it| it.reports.get(&peer)).copied();
        let of_peer = self.entries.iter().filter(|(_, entry)| entry.of == Some(peer));
        let old = of_peer.filter(|(_, entry)| Some(entry.report) != report);
        let old = old.filter(|(host, _)| buckets.has_host(**host));
        let old: Vec<(HostId, Dpid)> = old.map(|(host, entry)| (*host, entry.at.dpid)).collect();
        for (host, dpid) in old {
            match switches.contains(&dpid) {
                true => self.remove_silently(host),
                false => self.own_host(host, now),
            }
        }
    }

    /// Compares what is known of a peer's hosts with its digest.
    fn compare(&mut self, peer: Peer, reported: &Digest) {
        let mut known = Digest::default();
        for (host, entry) in self.entries.iter().filter(|(_, entry)| entry.of == Some(peer)) {
            known.add_host(*host, entry.at, &entry.addresses);
        }
        let Some(sharing) = &mut self.sharing else { return };
        let differing = sharing.comparisons.entry(peer).or_default().compare(&known, reported);
        if !differing.is_empty() {
            sharing.differing.push((peer, differing));
        }
    }

    /// Gives a peer the hosts at its switches that belong to nobody. It has started again, and does
    /// not know them, so it says nothing of them; nor does anybody else decide about them.
    fn give_orphans(&mut self, peer: Peer, switches: &BTreeSet<Dpid>) {
        let Some(sharing) = &mut self.sharing else { return };
        let orphans = self.entries.iter().filter(|(_, entry)| {
            let dpid = entry.at.dpid;
            entry.of.is_none()
                && entry.present
                && switches.contains(&dpid)
                && !sharing.own.contains(&dpid)
        });
        let fact = |(id, entry): (&HostId, &TrackedHost)| {
            let (at, addresses, since) = (entry.at, entry.addresses.clone(), entry.since);
            (peer, HostFact { id: *id, at, addresses, since })
        };
        sharing.moved.extend(orphans.take(ORPHANS_PER_DIGEST).map(fact));
    }

    /// A majority does not hear a peer. Its hosts stay until another controller reports them, or
    /// until they are too old.
    fn peer_dead(&mut self, peer: Peer, now: Duration) {
        let of_peer = self.entries.iter().filter(|(_, entry)| entry.of == Some(peer));
        let hosts: Vec<HostId> = of_peer.map(|(host, _)| *host).collect();
        hosts.into_iter().for_each(|host| self.own_host(host, now));
    }

    /// Passes a claim on to the controller of a host. Returns `false` if this one decides.
    pub(super) fn pass_claim(
        &mut self,
        host: HostId,
        at: SwitchPort,
        addresses: SenderAddresses,
        topology: &Topology,
        now: Duration,
    ) -> bool {
        let Some(sharing) = &mut self.sharing else { return false };
        let Some(entry) = self.entries.get_mut(&host) else { return false };
        if sharing.own.contains(&entry.at.dpid) && entry.of.is_none() {
            return false;
        }
        let Some(peer) = entry.of else {
            // The next master of its switch decides, if there will be one.
            return topology.switches.contains_key(&entry.at.dpid);
        };
        if now >= entry.paused_until {
            entry.paused_until = now + CLAIM_PAUSE;
            let ip = match addresses {
                SenderAddresses::Address(ip) | SenderAddresses::Used(ip) => Some(ip),
                SenderAddresses::Nothing => None,
            };
            sharing.claims.push((peer, HostClaim::Place { host, at, ip }));
        }
        true
    }

    /// Passes the claim of an address on to the controller of the host that has it.
    pub(super) fn pass_address_claim(
        &mut self,
        ip: std::net::IpAddr,
        owner: HostId,
        by: HostId,
        now: Duration,
    ) {
        let Some(sharing) = &mut self.sharing else { return };
        let Some(entry) = self.entries.get_mut(&owner) else { return };
        if let Some(peer) = entry.of.filter(|_| now >= entry.paused_until) {
            entry.paused_until = now + CLAIM_PAUSE;
            sharing.claims.push((peer, HostClaim::Address { ip, owner, by }));
        }
    }

    /// A peer passes a claim on that concerns a host of this controller.
    fn peer_claim(&mut self, peer: Peer, claim: HostClaim, topology: &Topology, now: Duration) {
        let host = match claim {
            HostClaim::Place { host, .. } | HostClaim::Address { owner: host, .. } => host,
        };
        let Some(sharing) = &mut self.sharing else { return };
        let entry = self.entries.get_mut(&host).filter(|it| it.present && it.of.is_none());
        let Some(entry) = entry else {
            sharing.gone.push((peer, host));
            return;
        };
        match claim {
            HostClaim::Place { at, .. } if at == entry.at || sharing.own.contains(&at.dpid) => {}
            HostClaim::Place { at, ip, .. } => {
                entry.claimed_by = Some(peer);
                let addresses = ip.map_or(SenderAddresses::Nothing, SenderAddresses::Used);
                self.handle_claim(host, at, addresses, topology, now);
            }
            HostClaim::Address { ip, by, .. } => {
                if entry.addresses.contains(&ip) {
                    self.claim_address(ip, host, by, now);
                }
            }
        }
    }

    /// A claim of a host was decided. If the host has moved to a switch of a peer, it is the
    /// peer's.
    pub(super) fn claim_decided(&mut self, host: HostId) {
        let Some(sharing) = &mut self.sharing else { return };
        let Some(entry) = self.entries.get_mut(&host) else { return };
        let Some(peer) = entry.claimed_by.take() else { return };
        let at = entry.at;
        if entry.present && !sharing.own.contains(&at.dpid) {
            entry.of = Some(peer);
            let (addresses, since) = (entry.addresses.clone(), entry.since);
            sharing.moved.push((peer, HostFact { id: host, at, addresses, since }));
            self.reschedule(host);
        }
    }

    /// A host of a peer has moved to a switch of this controller.
    fn take_host(&mut self, fact: HostFact, now: Duration) {
        let Some(sharing) = &self.sharing else { return };
        let (id, me) = (fact.id, sharing.me);
        let is_elsewhere = |it: &TrackedHost| it.of.is_none() && it.present && it.at != fact.at;
        if !sharing.own.contains(&fact.at.dpid) || self.entries.get(&id).is_some_and(is_elsewhere) {
            return;
        }
        let fact = HostFact { since: now, ..fact };
        match self.entries.contains_key(&id) {
            true => self.update_peer_host(me, fact, now),
            false => self.insert_peer_host(me, fact, now),
        }
        self.own_host(id, now);
        self.note_change(id);
    }
}
