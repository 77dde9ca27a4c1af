//! Links of a cluster: what other controllers report of their switches, and switches that go from
//! one controller to another.
//!
//! The controller that signs announcements, the master of the sending switch, decides about a link
//! and watches it. The others show what it reports, until it reports something else: that a third
//! controller's port is down ends no link here. A switch whose master is gone keeps its ports and
//! links until another controller reports it, or this one becomes its master: for [`UNOWNED_KEPT`]
//! at most.
//!
//! Reports of two controllers come in any order. If both report a switch, the one that won the
//! newer election is its master. The older report is kept until its sender takes it back.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellrock_api::{Hosts, Link};

use super::{
    BTreeSet, Dpid, Duration, Event, LinkDown, LinkLatency, LinkPort, LinkTable, LinkUp, Port,
    PortPair, PortTable, SwitchPort,
};
use crate::exchange::{Buckets, Digest, LinkFact, LinkInput, Peer, PortFact, SwitchFacts};

/// How long the ports and links of a switch are kept that no controller is master of. Longer than a
/// takeover, and than a switch needs to connect again. A link to a switch that has no power ends at
/// once: the port at its other end is down.
pub const UNOWNED_KEPT: Duration = Duration::from_secs(15);

/// Maximum number of switches of a cluster. What peers report of further ones is left out.
pub const MAX_SWITCHES: usize = 1 << 16;

/// The controller that is master of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// This one.
    Here,
    /// Another one, by the election of this number.
    Peer { peer: Peer, term: u64 },
    /// None is known. Its ports and links are kept until then.
    Nobody { until: Duration },
}

/// What a peer reports of a switch that another controller is taken to be master of.
#[derive(Debug)]
pub(super) struct OtherReport {
    term: u64,
    facts: SwitchFacts,
}

/// Whether an election is newer than another one. The numbers wrap around.
fn is_newer(term: u64, than: u64) -> bool {
    term.wrapping_sub(than) as i64 > 0
}

impl LinkTable {
    /// From now on, other controllers report links, and take over switches.
    pub(super) fn share(&mut self) {
        self.is_shared = true;
        self.changed = true;
    }

    /// Applies what a peer reports, or what has happened to it. Returns what it must report again.
    pub(in crate::discovery) fn handle_input(
        &mut self,
        peer: Peer,
        input: LinkInput,
        hosts: &Hosts,
        now: Duration,
    ) -> Buckets {
        match input {
            LinkInput::Open => self.share(),
            LinkInput::Restarted => self.peer_restarted(peer),
            LinkInput::Switch(term, facts) => self.peer_switch(peer, term, facts, hosts, now),
            LinkInput::Left(dpids) => self.peer_left(peer, &dpids, hosts, now),
            LinkInput::Complete(all, buckets) => {
                self.peer_complete(peer, (&all, buckets), hosts, now);
            }
            LinkInput::Digest(digest) => return self.compare(peer, &digest),
            // Its own numbers decide about it: see the task.
            LinkInput::Announcement(_) => {}
            LinkInput::Dead => self.peer_dead(peer, hosts, now),
        }
        Buckets::NONE
    }

    pub(super) fn is_here(&self, dpid: Dpid) -> bool {
        self.switches.get(&dpid).is_some_and(|table| table.owner == Owner::Here)
    }

    /// Whether a peer is master of a switch, or reports that it is.
    pub(in crate::discovery) fn is_of(&self, dpid: Dpid, peer: Peer) -> bool {
        let others = self.contested.get(&dpid);
        self.is_owned_by(dpid, peer) || others.is_some_and(|others| others.contains_key(&peer))
    }

    fn is_owned_by(&self, dpid: Dpid, peer: Peer) -> bool {
        let owner = self.switches.get(&dpid).map(|table| table.owner);
        matches!(owner, Some(Owner::Peer { peer: owner, .. }) if owner == peer)
    }

    /// Whether another controller decides about the links from a switch.
    pub(super) fn is_of_peer(&self, dpid: Dpid) -> bool {
        let owner = self.switches.get(&dpid).map(|table| table.owner);
        matches!(owner, Some(Owner::Peer { .. }))
    }

    /// Removes a switch that this controller is not connected to any more, or is not master of. In
    /// a cluster another controller may be its next master, so it is kept for a while.
    pub(in crate::discovery) fn switch_lost(&mut self, dpid: Dpid, hosts: &Hosts, now: Duration) {
        match self.is_shared {
            true => self.release(dpid, hosts, now),
            false => self.switch_down(dpid, now),
        }
    }

    /// The master of a switch is its master no more. Another controller that reports it may be.
    fn release(&mut self, dpid: Dpid, hosts: &Hosts, now: Duration) {
        let until = now + UNOWNED_KEPT;
        if let Some(table) = self.switches.get_mut(&dpid) {
            table.owner = Owner::Nobody { until };
            table.forget_reported();
            self.changed = true;
            self.wake_at(until);
        }
        let others = self.contested.remove(&dpid).unwrap_or_default();
        let mut others: Vec<(Peer, OtherReport)> = others.into_iter().collect();
        // The newest first: the others are contested again.
        others.sort_by_key(|(_, report)| std::cmp::Reverse(report.term));
        for (peer, OtherReport { term, facts }) in others {
            self.peer_switch(peer, term, facts, hosts, now);
        }
    }

    /// Makes this controller the master of a switch that is known. Its links stay up, and must be
    /// confirmed by announcements from now on.
    pub(super) fn adopt(&mut self, dpid: Dpid, since: Duration, now: Duration) {
        self.contested.remove(&dpid);
        let Some(table) = self.switches.get_mut(&dpid) else { return };
        (table.owner, table.since) = (Owner::Here, since);
        table.forget_reported();
        for port in table.ports.values_mut().filter(|port| !port.is_known) {
            port.since = now;
        }
        for (_, pair) in self.pairs.range_mut(ports_of(dpid)) {
            pair.latency = LinkLatency::default();
            if let Some(up) = &mut pair.up {
                up.last_seen = now;
            }
        }
        self.changed = true;
        self.wake_at(now);
    }

    /// Applies what a peer reports of a switch of its, of which the election of this number has
    /// made it the master.
    pub(super) fn peer_switch(
        &mut self,
        peer: Peer,
        term: u64,
        facts: SwitchFacts,
        hosts: &Hosts,
        now: Duration,
    ) {
        let dpid = facts.dpid;
        let is_contested = match self.switches.get(&dpid).map(|table| table.owner) {
            // One of the two does not know yet that the switch obeys the other.
            Some(Owner::Here) => true,
            Some(Owner::Peer { peer: owner, term: newest }) => {
                owner != peer && is_newer(newest, term)
            }
            Some(Owner::Nobody { .. }) | None => false,
        };
        if is_contested {
            self.contested.entry(dpid).or_default().insert(peer, OtherReport { term, facts });
            return;
        }
        self.withdraw(dpid, peer);
        if self.switches.len() >= MAX_SWITCHES && !self.switches.contains_key(&dpid) {
            return;
        }
        let owner = Owner::Peer { peer, term };
        let new = || PortTable { owner, since: now, ports: BTreeMap::new() };
        let table = self.switches.entry(dpid).or_insert_with(new);
        table.owner = owner;
        self.changed = true;
        let reported: BTreeSet<Port> = facts.ports.iter().map(|fact| fact.port).collect();
        let gone = table.ports.keys().filter(|port| !reported.contains(port));
        let gone: Vec<SwitchPort> = gone.map(|port| SwitchPort::new(dpid, *port)).collect();
        for at in gone {
            self.note_hosts(at, hosts, now);
            self.port_down(at, now);
        }
        for fact in &facts.ports {
            self.peer_port(peer, SwitchPort::new(dpid, fact.port), *fact, now);
        }
        self.peer_links(dpid, &facts, now);
    }

    /// A peer takes back what it has reported of a switch of another controller.
    fn withdraw(&mut self, dpid: Dpid, peer: Peer) {
        if let Some(others) = self.contested.get_mut(&dpid) {
            others.remove(&peer);
            if others.is_empty() {
                self.contested.remove(&dpid);
            }
        }
    }

    /// A peer has started again. When its ports came up is not told by the clock of before.
    pub(super) fn peer_restarted(&mut self, peer: Peer) {
        let of_peer = |table: &&mut PortTable| matches!(table.owner, Owner::Peer { peer: it, .. } if it == peer);
        self.switches.values_mut().filter(of_peer).for_each(PortTable::forget_reported);
    }

    fn peer_port(&mut self, peer: Peer, at: SwitchPort, fact: PortFact, now: Duration) {
        let before = self.port(at).and_then(|port| port.reported).filter(|(by, _)| *by == peer);
        if before.is_some_and(|(_, came_up)| came_up != fact.came_up) {
            // It was down meanwhile, which ends its links.
            self.port_down(at, now);
        }
        let Some(table) = self.switches.get_mut(&at.dpid) else { return };
        let nonces = &mut self.last_nonces;
        let port = table.ports.entry(at.port).or_insert_with(|| {
            LinkPort::new(fact.since, nonces.remove(&at).map_or(0, |(nonce, _)| nonce))
        });
        (port.is_known, port.lost_switch, port.held_until) = (fact.is_known, fact.is_lost, None);
        port.reported = Some((peer, fact.came_up));
    }

    /// Applies the links from a switch of a peer.
    fn peer_links(&mut self, dpid: Dpid, facts: &SwitchFacts, now: Duration) {
        let links: BTreeMap<Port, LinkFact> =
            facts.links.iter().map(|fact| (fact.port, *fact)).collect();
        let known = self.pairs.range(ports_of(dpid)).map(|(from, pair)| (*from, pair.to));
        let ended = known.filter(|(from, to)| links.get(&from.port).is_none_or(|it| it.to != *to));
        let ended: Vec<(SwitchPort, SwitchPort)> = ended.collect();
        for (from, to) in ended {
            let is_lost = self.port(from).is_some_and(|port| port.lost_switch);
            let why = match links.contains_key(&from.port) {
                true => LinkDown::Moved,
                false if is_lost => LinkDown::Silent,
                false => LinkDown::Port,
            };
            self.by_receiver.remove(&(to, from));
            if let Some(pair) = self.pairs.remove(&from) {
                self.link_down(pair.up, why);
            }
        }
        for fact in links.into_values() {
            let from = SwitchPort::new(dpid, fact.port);
            let link = Link { from, to: fact.to, rate_kbps: fact.rate_kbps, since: fact.since };
            self.peer_link(link, now);
        }
    }

    fn peer_link(&mut self, link: Link, now: Duration) {
        let Link { from, to, .. } = link;
        if self.is_here(to.dpid) && self.port(to).is_none() {
            // The peer does not know yet that the port is down.
            return;
        }
        let is_trusted = self.relays.is_trusted(from, to);
        let pair = self.pairs.entry(from).or_insert_with(|| PortPair {
            to,
            latency: LinkLatency::default(),
            is_trusted,
            is_slow: false,
            is_passed: true,
            up: None,
        });
        self.by_receiver.insert((to, from));
        let is_new = pair.up.is_none();
        let up = pair.up.get_or_insert(LinkUp {
            link,
            last_seen: now,
            is_one_way_reported: false,
            is_miswired_reported: false,
        });
        up.link.rate_kbps = link.rate_kbps;
        if is_new {
            for end in [from, to] {
                if let Some(port) = self.port_mut(end) {
                    port.lost_switch = false;
                }
            }
            self.events.push(Event::LinkUp(link));
        }
    }

    /// A peer is master of these switches no more.
    pub(super) fn peer_left(&mut self, peer: Peer, dpids: &[Dpid], hosts: &Hosts, now: Duration) {
        for &dpid in dpids {
            self.withdraw(dpid, peer);
            if self.is_owned_by(dpid, peer) {
                self.release(dpid, hosts, now);
            }
        }
    }

    /// A peer has reported all its switches of some buckets: it is master of these only.
    pub(super) fn peer_complete(
        &mut self,
        peer: Peer,
        (all, buckets): (&BTreeSet<Dpid>, Buckets),
        hosts: &Hosts,
        now: Duration,
    ) {
        let owned = self.switches.keys().filter(|dpid| self.is_owned_by(**dpid, peer));
        let claimed = self.contested.iter().filter(|(_, others)| others.contains_key(&peer));
        let known = owned.chain(claimed.map(|(dpid, _)| dpid)).copied();
        let left = known.filter(|dpid| buckets.has_switch(*dpid) && !all.contains(dpid));
        let left: Vec<Dpid> = left.collect();
        self.peer_left(peer, &left, hosts, now);
    }

    /// A majority does not hear a peer: it is master of nothing any more.
    pub(super) fn peer_dead(&mut self, peer: Peer, hosts: &Hosts, now: Duration) {
        self.peer_complete(peer, (&BTreeSet::new(), Buckets::ALL), hosts, now);
    }

    /// Compares what is known of a peer's switches with its digest. Returns what it must report
    /// again.
    pub(super) fn compare(&mut self, peer: Peer, reported: &Digest) -> Buckets {
        let mut known = Digest::default();
        for (&dpid, table) in &self.switches {
            if self.is_owned_by(dpid, peer) {
                known.add_switch(&self.facts(dpid, table, |port, _| port.is_known));
            }
        }
        for report in self.contested.values().filter_map(|others| others.get(&peer)) {
            known.add_switch(&report.facts);
        }
        self.comparisons.entry(peer).or_default().compare(&known, reported)
    }

    /// A port hears a controller that cannot be asked about it now. So it may lead to a switch: it
    /// is no edge port for a while, also if hosts were there.
    pub(in crate::discovery) fn hold(&mut self, at: SwitchPort, now: Duration) {
        let until = now + self.silent_after();
        if let Some(port) = self.port_mut(at) {
            self.changed |= port.held_until.replace(until).is_none();
            self.wake_at(until);
        }
    }

    /// Removes the switches that nobody has taken over in time. Returns when the next one is due.
    pub(super) fn remove_unowned(&mut self, now: Duration) -> Option<Duration> {
        let (mut over, mut next) = (Vec::new(), None);
        for (dpid, table) in &self.switches {
            match table.owner {
                Owner::Nobody { until } if until <= now => over.push(*dpid),
                Owner::Nobody { until } => {
                    next = Some(next.map_or(until, |next: Duration| next.min(until)));
                }
                Owner::Here | Owner::Peer { .. } => {}
            }
        }
        over.into_iter().for_each(|dpid| self.switch_down(dpid, now));
        next
    }

    /// What peers get to know of the switches of this controller.
    pub(in crate::discovery) fn own_facts(&self) -> BTreeMap<Dpid, Arc<SwitchFacts>> {
        let unjudged = self.unjudged_ports();
        let own = self.switches.iter().filter(|(_, table)| table.owner == Owner::Here);
        let facts = own.map(|(&dpid, table)| {
            let is_known = |port: &LinkPort, at| {
                port.is_known && port.held_until.is_none() && !unjudged.contains(&at)
            };
            let mut facts = self.facts(dpid, table, is_known);
            self.add_segments(&mut facts);
            (dpid, Arc::new(facts))
        });
        facts.collect()
    }

    fn facts(
        &self,
        dpid: Dpid,
        table: &PortTable,
        is_known: impl Fn(&LinkPort, SwitchPort) -> bool,
    ) -> SwitchFacts {
        let ports = table.ports.iter().map(|(&port, state)| PortFact {
            port,
            since: state.since,
            came_up: state.since,
            is_known: is_known(state, SwitchPort::new(dpid, port)),
            is_lost: state.lost_switch,
        });
        let pairs = self.pairs.range(ports_of(dpid)).map(|(_, pair)| pair);
        let links = pairs.filter_map(|pair| pair.up.as_ref()).map(|up| LinkFact {
            port: up.link.from.port,
            to: up.link.to,
            rate_kbps: up.link.rate_kbps,
            since: up.link.since,
        });
        SwitchFacts { dpid, ports: ports.collect(), links: links.collect() }
    }
}

/// For tests: what peers have reported of ports.
#[cfg(test)]
pub(in crate::discovery) type ReportedPorts = Vec<(SwitchPort, Option<(Peer, Duration)>)>;

#[cfg(test)]
impl LinkTable {
    pub(in crate::discovery) fn reported_ports(&self) -> ReportedPorts {
        let all = self.switches.iter().flat_map(|(dpid, table)| {
            table.ports.iter().map(|(port, state)| (SwitchPort::new(*dpid, *port), state.reported))
        });
        all.collect()
    }

    pub(in crate::discovery) fn restore_reported(&mut self, before: &ReportedPorts) {
        for (at, reported) in before {
            if let Some(port) = self.port_mut(*at) {
                port.reported = *reported;
            }
        }
    }
}

impl PortTable {
    /// Forgets when its ports came up by the clock of the controller that was its master. A later
    /// master, or a later start of the same one, has another clock.
    fn forget_reported(&mut self) {
        self.ports.values_mut().for_each(|port| port.reported = None);
    }
}

impl LinkPort {
    /// A port that is up since then, of which nothing else is known.
    pub(super) fn new(since: Duration, nonce: u64) -> Self {
        LinkPort {
            since,
            rate_kbps: None,
            nonce,
            is_known: false,
            lost_switch: false,
            held_until: None,
            reported: None,
            alarms: BTreeMap::new(),
        }
    }
}

/// All ports of a switch.
fn ports_of(dpid: Dpid) -> std::ops::RangeInclusive<SwitchPort> {
    SwitchPort::new(dpid, Port(0))..=SwitchPort::new(dpid, Port(u32::MAX))
}
