//! Links of a cluster: what other controllers report of their switches, and switches that go from one
//! controller to another.
//!
//! The controller that signs announcements, the master of the sending switch, decides about a link
//! and watches it. The others show what it reports. A switch whose master is gone keeps its ports and
//! links until another controller reports it, or this one becomes its master: for [`UNOWNED_KEPT`]
//! at most.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellrock_api::{Hosts, Link};

use super::{
    BTreeSet, Dpid, Duration, Event, LinkDown, LinkLatency, LinkPort, LinkTable, LinkUp, Port,
    PortPair, PortTable, SwitchPort,
};
use crate::exchange::{LinkFact, Peer, PortFact, SwitchFacts};

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
    Peer(Peer),
    /// None is known. Its ports and links are kept until then.
    Nobody {
        until: Duration,
    },
}

impl LinkTable {
    /// From now on, other controllers report links, and take over switches.
    pub(in crate::discovery) fn share(&mut self) {
        self.is_shared = true;
        self.changed = true;
    }

    pub(super) fn is_here(&self, dpid: Dpid) -> bool {
        self.switches.get(&dpid).is_some_and(|table| table.owner == Owner::Here)
    }

    /// Whether a peer is master of a switch, as far as it is known.
    pub(in crate::discovery) fn is_of(&self, dpid: Dpid, peer: Peer) -> bool {
        self.switches.get(&dpid).is_some_and(|table| table.owner == Owner::Peer(peer))
    }

    /// Removes a switch that this controller is not connected to any more, or is not master of. In a
    /// cluster another controller may be its next master, so it is kept for a while.
    pub(in crate::discovery) fn switch_lost(&mut self, dpid: Dpid, hosts: &Hosts, now: Duration) {
        if !self.is_shared {
            return self.switch_down(dpid, now);
        }
        self.release(dpid, now);
        // What was refused while this controller was its master.
        if let Some((peer, facts)) = self.contested.remove(&dpid) {
            self.peer_switch(peer, facts, hosts, now);
        }
    }

    fn release(&mut self, dpid: Dpid, now: Duration) {
        let until = now + UNOWNED_KEPT;
        if let Some(table) = self.switches.get_mut(&dpid) {
            table.owner = Owner::Nobody { until };
            self.changed = true;
            self.wake_at(until);
        }
    }

    /// Makes this controller the master of a switch that is known. Its links stay up, and must be
    /// confirmed by announcements from now on.
    pub(super) fn adopt(&mut self, dpid: Dpid, since: Duration, now: Duration) {
        self.contested.remove(&dpid);
        let Some(table) = self.switches.get_mut(&dpid) else { return };
        (table.owner, table.since) = (Owner::Here, since);
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

    /// Applies what a peer reports of a switch of its.
    pub(in crate::discovery) fn peer_switch(
        &mut self,
        peer: Peer,
        facts: SwitchFacts,
        hosts: &Hosts,
        now: Duration,
    ) {
        let dpid = facts.dpid;
        if self.is_here(dpid) {
            // One of the two does not know yet that the switch obeys the other.
            self.contested.insert(dpid, (peer, facts));
            return;
        }
        if self.switches.len() >= MAX_SWITCHES && !self.switches.contains_key(&dpid) {
            return;
        }
        let owner = Owner::Peer(peer);
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
    pub(in crate::discovery) fn peer_left(&mut self, peer: Peer, dpids: &[Dpid], now: Duration) {
        for dpid in dpids {
            if self.is_of(*dpid, peer) {
                self.release(*dpid, now);
            }
            if self.contested.get(dpid).is_some_and(|(by, _)| *by == peer) {
                self.contested.remove(dpid);
            }
        }
    }

    /// A peer has reported all its switches: it is master of these only.
    pub(in crate::discovery) fn peer_complete(
        &mut self,
        peer: Peer,
        all: &BTreeSet<Dpid>,
        now: Duration,
    ) {
        let of_peer = self.switches.iter().filter(|(_, table)| table.owner == Owner::Peer(peer));
        let others = of_peer.map(|(dpid, _)| *dpid).filter(|dpid| !all.contains(dpid));
        let others: Vec<Dpid> = others.collect();
        self.peer_left(peer, &others, now);
        self.contested.retain(|dpid, (by, _)| *by != peer || all.contains(dpid));
    }

    /// A majority does not hear a peer: it is master of nothing any more.
    pub(in crate::discovery) fn peer_dead(&mut self, peer: Peer, now: Duration) {
        self.peer_complete(peer, &BTreeSet::new(), now);
    }

    /// A port hears a controller that cannot be asked about it now. So it may lead to a switch: it is
    /// no edge port for a while, also if hosts were there.
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
                Owner::Here | Owner::Peer(_) => {}
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
            let ports = table.ports.iter().map(|(&port, state)| PortFact {
                port,
                since: state.since,
                came_up: state.since,
                is_known: state.is_known
                    && state.held_until.is_none()
                    && !unjudged.contains(&SwitchPort::new(dpid, port)),
                is_lost: state.lost_switch,
            });
            let pairs = self.pairs.range(ports_of(dpid)).map(|(_, pair)| pair);
            let links = pairs.filter_map(|pair| pair.up.as_ref()).map(|up| LinkFact {
                port: up.link.from.port,
                to: up.link.to,
                rate_kbps: up.link.rate_kbps,
                since: up.link.since,
            });
            let facts = SwitchFacts { dpid, ports: ports.collect(), links: links.collect() };
            (dpid, Arc::new(facts))
        });
        facts.collect()
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
