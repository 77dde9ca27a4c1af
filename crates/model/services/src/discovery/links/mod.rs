//! The state of switches, ports and links, without I/O. Announcements and the time go in; a
//! topology and events come out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{Dpid, Event, Hosts, Link, LinkDown, Port, SwitchPort, Topology};

use super::latency::LinkLatency;
use super::relays::RelayTable;
use crate::exchange::{Comparison, Peer};
pub use segments::{MAX_HEARD, SEGMENT_AFTER};
use segments::{SegmentTable, is_of_segment};
#[cfg(test)]
pub(super) use shared::ReportedPorts;
pub use shared::{MAX_SWITCHES, UNOWNED_KEPT};
use shared::{OtherReport, Owner};

/// How long a new port is announced before it counts as an edge port: at once, and every second.
pub const NEW_PORT: Duration = Duration::from_secs(2);

/// Number of missed rounds after which a link is down.
pub const MISSED_ROUNDS: u32 = 3;

/// Minimum time between two equal alarms about a port.
pub const ALARM_EVERY: Duration = Duration::from_secs(10);

/// Number of links whose latency must be known before new links are compared with them.
pub const COMPARED_LINKS: usize = 4;

/// Granularity of the timer. Each run goes through all ports.
const LOOK_GRAIN: Duration = Duration::from_millis(100);

/// An announcement received that this start of the controller signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReceivedAnnouncement {
    pub(super) from: SwitchPort,
    pub(super) to: SwitchPort,
    pub(super) nonce: u64,
    /// When it was sent, on the controller's clock.
    pub(super) sent: Duration,
    /// When it came in. It may have waited for the task since.
    pub(super) arrived: Duration,
    /// Estimated time on the link. `None`: another controller has received it, whose clock is
    /// another one.
    pub(super) latency: Option<Duration>,
    /// Uncertainty of `latency`: the spread of the round trips to the receiving switch.
    pub(super) noise: Duration,
}

/// A port that is up.
#[derive(Clone, Copy, Debug)]
pub(super) struct PortUp {
    pub(super) port: Port,
    pub(super) rate_kbps: Option<u64>,
}

/// The outcome of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnnouncementOutcome {
    /// It is genuine and was used.
    Accepted,
    /// One of its ports is not up.
    Stale,
    /// It was used before, or is too old and came over no known link.
    Replayed,
    /// It came over a known link, once, and is too old: a switch was slow.
    Late,
    /// It came in at the port that sent it.
    Reflected,
    /// It may have come over a relay.
    Suspected,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct LinkTable {
    interval: Duration,
    /// Whether a new link that looks like a relay because it is slow stays down.
    refuse_slow: bool,
    /// What is known of relays.
    relays: RelayTable,
    switches: BTreeMap<Dpid, PortTable>,
    /// By sending port: where it was heard last. Removed with either port.
    pairs: BTreeMap<SwitchPort, PortPair>,
    /// The same pairs as (receiving port, sending port).
    by_receiver: BTreeSet<(SwitchPort, SwitchPort)>,
    /// Ports that hear each other by way of ordinary switches.
    segments: SegmentTable,
    /// The last nonces of ports that were up less than a round ago, and until when to keep them.
    last_nonces: BTreeMap<SwitchPort, (u64, Duration)>,
    settled: bool,
    changed: bool,
    /// When all links were last checked. Once a round.
    last_check: Duration,
    /// Median latency of the links that are up, as of `last_check`.
    median: Option<Duration>,
    /// How much longer than usual announcements took on most links, as of `last_check`: load.
    load: Duration,
    /// When [`LinkTable::timers`] has work.
    due: Option<Duration>,
    events: Vec<Event>,
    /// Whether other controllers report links, and take over switches.
    is_shared: bool,
    /// What peers report of switches that another controller, or this one, is taken to be master
    /// of.
    contested: BTreeMap<Dpid, BTreeMap<Peer, OtherReport>>,
    /// How the digests of peers compared.
    comparisons: BTreeMap<Peer, Comparison>,
}

#[derive(Debug)]
struct PortTable {
    owner: Owner,
    /// When the switch came up.
    since: Duration,
    ports: BTreeMap<Port, LinkPort>,
}

#[derive(Debug)]
struct LinkPort {
    since: Duration,
    rate_kbps: Option<u64>,
    /// The highest nonce that was accepted from this port.
    nonce: u64,
    /// Whether the port was announced for long enough to count as an edge port.
    is_known: bool,
    /// Whether this port had a link whose switch was lost, or whose announcements stopped. The
    /// switch may forward without its controller and the link may carry packets. So this is no edge
    /// port until the port itself goes down, or the link is up again.
    lost_switch: bool,
    /// Until when this is no edge port, since it hears a controller that cannot be asked.
    held_until: Option<Duration>,
    /// The other controller that has reported it last, and when it came up on that one's clock.
    reported: Option<(Peer, Duration)>,
    /// When each alarm was last reported.
    alarms: BTreeMap<&'static str, Duration>,
}

/// A sending and a receiving port: one direction of a link, up or not.
#[derive(Debug)]
struct PortPair {
    to: SwitchPort,
    latency: LinkLatency,
    /// Both ports lead to switches, as the operator states.
    is_trusted: bool,
    /// It was slow from the start.
    is_slow: bool,
    /// Another controller receives its announcements, so its latency is not judged.
    is_passed: bool,
    up: Option<LinkUp>,
}

/// A direction of a link that is up.
#[derive(Debug)]
struct LinkUp {
    link: Link,
    /// When its last announcement came in.
    last_seen: Duration,
    is_one_way_reported: bool,
    is_miswired_reported: bool,
}

impl LinkTable {
    pub(super) fn new(
        interval: Duration,
        refuse_slow: bool,
        trusted: BTreeSet<SwitchPort>,
    ) -> Self {
        LinkTable {
            interval,
            refuse_slow,
            relays: RelayTable::new(trusted),
            switches: BTreeMap::new(),
            pairs: BTreeMap::new(),
            by_receiver: BTreeSet::new(),
            segments: SegmentTable::default(),
            last_nonces: BTreeMap::new(),
            settled: false,
            changed: false,
            last_check: Duration::ZERO,
            median: None,
            load: Duration::ZERO,
            due: None,
            events: Vec::new(),
            is_shared: false,
            contested: BTreeMap::new(),
            comparisons: BTreeMap::new(),
        }
    }

    /// Adds or updates a switch that has been up since `since`, with its ports that are up.
    pub(super) fn switch(
        &mut self,
        dpid: Dpid,
        since: Duration,
        ports: Vec<PortUp>,
        now: Duration,
    ) {
        match self.switches.get(&dpid).map(|known| (known.owner, known.since == since)) {
            None | Some((Owner::Here, true)) => {}
            Some((Owner::Here, false)) if !self.is_shared => self.switch_down(dpid, now),
            Some(_) => self.adopt(dpid, since, now),
        }
        self.ports(dpid, since, ports, now);
    }

    fn ports(&mut self, dpid: Dpid, since: Duration, ports: Vec<PortUp>, now: Duration) {
        self.changed |= !self.switches.contains_key(&dpid);
        let new = || PortTable { owner: Owner::Here, since, ports: BTreeMap::new() };
        let table = self.switches.entry(dpid).or_insert_with(new);
        let mut removed: BTreeSet<Port> = table.ports.keys().copied().collect();
        for port in ports {
            removed.remove(&port.port);
            self.port_up(dpid, since, port, now);
        }
        removed.into_iter().for_each(|port| self.port_down(SwitchPort::new(dpid, port), now));
    }

    /// Adds or updates a port that is up, of a switch that has been up since `since`.
    pub(super) fn port_up(&mut self, dpid: Dpid, since: Duration, port: PortUp, now: Duration) {
        if !self.is_current(dpid, since) {
            return;
        }
        let Some(table) = self.switches.get_mut(&dpid) else { return };
        let PortUp { port, rate_kbps } = port;
        let is_new = !table.ports.contains_key(&port);
        let state = table.ports.entry(port).or_insert_with(|| {
            let nonce = self.last_nonces.remove(&SwitchPort::new(dpid, port));
            let nonce = nonce.map_or(0, |(nonce, _)| nonce);
            LinkPort { rate_kbps, ..LinkPort::new(now, nonce) }
        });
        state.rate_kbps = rate_kbps;
        if is_new {
            self.changed = true;
            self.wake_at(now + NEW_PORT);
        }
    }

    /// Whether a switch is one of this controller and has been up since `since`.
    pub(super) fn is_current(&self, dpid: Dpid, since: Duration) -> bool {
        self.is_here(dpid) && self.switches.get(&dpid).is_some_and(|known| known.since == since)
    }

    /// Removes a switch.
    pub(super) fn switch_down(&mut self, dpid: Dpid, now: Duration) {
        let Some(ports) = self.switches.remove(&dpid) else { return };
        self.changed = true;
        for (port, state) in ports.ports {
            self.remove_links(SwitchPort::new(dpid, port), state.nonce, LinkDown::Switch, now);
        }
    }

    /// Removes a port that is down or deleted.
    pub(super) fn port_down(&mut self, at: SwitchPort, now: Duration) {
        let Some(ports) = self.switches.get_mut(&at.dpid) else { return };
        if let Some(state) = ports.ports.remove(&at.port) {
            self.changed = true;
            self.remove_links(at, state.nonce, LinkDown::Port, now);
        }
    }

    /// Removes the links at a port and its state, except its last nonce: used announcements stay
    /// used.
    fn remove_links(&mut self, at: SwitchPort, nonce: u64, why: LinkDown, now: Duration) {
        self.relays.port_removed(at);
        self.segments.port_removed(at);
        self.last_nonces.insert(at, (nonce, now + self.interval));
        self.wake_at(now + self.interval);
        let mut senders = self.senders_to(at);
        if !self.is_here(at.dpid) {
            // Other controllers decide about their links, and report them when they end.
            senders.retain(|from| !self.is_of_peer(from.dpid));
        }
        senders.push(at);
        for from in senders {
            if let Some(pair) = self.pairs.remove(&from) {
                self.by_receiver.remove(&(pair.to, from));
                self.changed |= self.is_unjudged(&pair);
                self.link_down(pair.up, why);
            }
        }
    }

    /// Returns the ports that are heard at a port.
    fn senders_to(&self, to: SwitchPort) -> Vec<SwitchPort> {
        let none = SwitchPort::new(Dpid(0), Port(0));
        let range =
            self.by_receiver.range((to, none)..).take_while(|(receiver, _)| *receiver == to);
        range.map(|(_, from)| *from).collect()
    }

    fn link_down(&mut self, up: Option<LinkUp>, why: LinkDown) {
        let Some(LinkUp { link, .. }) = up else { return };
        self.changed = true;
        self.events.push(Event::LinkDown { link, why });
        if matches!(why, LinkDown::Port | LinkDown::Refused | LinkDown::Segment) {
            return;
        }
        for end in [link.from, link.to] {
            if let Some(port) = self.port_mut(end) {
                port.lost_switch = true;
            }
        }
    }

    fn wake_at(&mut self, at: Duration) {
        let at = round_up(at);
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    fn up(&self, from: SwitchPort) -> Option<&LinkUp> {
        self.pairs.get(&from)?.up.as_ref()
    }

    fn up_mut(&mut self, from: SwitchPort) -> Option<&mut LinkUp> {
        self.pairs.get_mut(&from)?.up.as_mut()
    }

    /// Returns the links that are up.
    fn links(&self) -> impl Iterator<Item = &LinkUp> {
        self.pairs.values().filter_map(|pair| pair.up.as_ref())
    }

    /// Handles an announcement that this start of the controller signed.
    pub(super) fn handle_announcement(
        &mut self,
        announcement: ReceivedAnnouncement,
        hosts: &Hosts,
        now: Duration,
    ) -> AnnouncementOutcome {
        let ReceivedAnnouncement { from, to, nonce, sent, arrived, latency: took, noise } =
            announcement;
        if from == to {
            self.alarm(to, Event::ReflectedAnnouncement { at: to }, now);
            return AnnouncementOutcome::Reflected;
        }
        if is_of_segment(&announcement) {
            return self.handle_forwarded(announcement, hosts, now);
        }
        if self.is_on_large_segment(from) || self.is_on_large_segment(to) {
            return AnnouncementOutcome::Accepted;
        }
        let (interval, is_receiving) = (self.interval, self.port(to).is_some());
        let is_receiving = is_receiving && self.is_here(from.dpid);
        let is_known = self.pairs.get(&from).is_some_and(|pair| pair.to == to);
        let Some(sender) = self.port_mut(from).filter(|_| is_receiving) else {
            return AnnouncementOutcome::Stale;
        };
        // The nonces of a port count up. One that is not above all accepted ones was used or
        // overtaken.
        let (is_used, is_late) = (nonce <= sender.nonce, arrived.saturating_sub(sent) > interval);
        if is_late && is_known && !is_used {
            sender.nonce = nonce;
            return AnnouncementOutcome::Late;
        }
        if is_used || is_late {
            if !is_late && self.is_forwarded_twice(from, to, now) {
                return AnnouncementOutcome::Accepted;
            }
            self.alarm(to, Event::ReplayedAnnouncement { at: to, sender: from }, now);
            return AnnouncementOutcome::Replayed;
        }
        sender.nonce = nonce;
        let rate_kbps = sender.rate_kbps;
        if !is_known && self.is_relay(from, to, hosts, now) {
            return AnnouncementOutcome::Suspected;
        }
        if !is_known {
            self.pair(from, to, took.is_none());
        }
        let is_suspected = took.is_some_and(|took| self.measure(from, (took, noise), now));
        if let Some(up) = self.up_mut(from) {
            up.last_seen = now;
        } else if !self.is_held(from) {
            self.link_up(Link { from, to, rate_kbps, since: now });
        }
        if is_suspected { AnnouncementOutcome::Suspected } else { AnnouncementOutcome::Accepted }
    }

    /// Records that `to` hears `from`, for the first time or after another port heard it.
    fn pair(&mut self, from: SwitchPort, to: SwitchPort, is_passed: bool) {
        let is_trusted = self.relays.is_trusted(from, to);
        let latency = LinkLatency::default();
        let pair = PortPair { to, latency, is_trusted, is_slow: false, is_passed, up: None };
        // Its ports are no edge ports until its latency is judged.
        self.changed |= self.is_unjudged(&pair);
        if let Some(previous) = self.pairs.insert(from, pair) {
            self.by_receiver.remove(&(previous.to, from));
            self.link_down(previous.up, LinkDown::Moved);
        }
        self.by_receiver.insert((to, from));
        self.is_paired(from, to);
    }

    fn link_up(&mut self, link: Link) {
        let up = LinkUp {
            link,
            last_seen: link.since,
            is_one_way_reported: false,
            is_miswired_reported: false,
        };
        if let Some(pair) = self.pairs.get_mut(&link.from) {
            pair.up = Some(up);
            self.changed = true;
            for end in [link.from, link.to] {
                if let Some(port) = self.port_mut(end) {
                    port.lost_switch = false;
                }
            }
            self.events.push(Event::LinkUp(link));
            self.wake_at(link.since + self.interval);
            self.report_miswired(link);
        }
    }

    /// Whether a link stays down because it is slow, or until its latency is judged.
    fn is_held(&self, from: SwitchPort) -> bool {
        let Some(pair) = self.pairs.get(&from) else { return false };
        self.is_unjudged(pair) || self.refuse_slow && pair.is_slow
    }

    /// Whether a pair waits for more samples to be judged as a link or a relay.
    fn is_unjudged(&self, pair: &PortPair) -> bool {
        let is_judged = pair.latency.usual().is_some() || self.median.is_none();
        let is_exempt = pair.is_trusted || pair.is_passed;
        self.refuse_slow && !is_exempt && pair.up.is_none() && !is_judged
    }

    /// Reports an announcement whose signature is not the controller's.
    pub(super) fn report_forged(&mut self, at: SwitchPort, now: Duration) {
        self.alarm(at, Event::ForgedAnnouncement { at }, now);
    }

    /// Reports a problem at a port, at most once every [`ALARM_EVERY`].
    fn alarm(&mut self, at: SwitchPort, event: Event, now: Duration) {
        let Some(port) = self.port_mut(at) else { return };
        let reported = port.alarms.get(event.name());
        if reported.is_none_or(|reported| now >= *reported + ALARM_EVERY) {
            port.alarms.insert(event.name(), now);
            self.events.push(event);
        }
    }

    /// Does what is due.
    pub(super) fn timers(&mut self, now: Duration) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        let (interval, silent) = (self.interval, self.silent_after());
        let late = self.due.map_or(Duration::ZERO, |due| now.saturating_sub(due));
        if late >= interval / 2 {
            self.excuse(late, now);
        }
        self.last_nonces.retain(|_, (_, until)| *until > now);
        self.relays.forget_old(now);
        let mut due = None;
        let mut wake = |at: Duration| {
            let at = round_up(at);
            due = Some(due.map_or(at, |due: Duration| due.min(at)));
        };
        let own = self.switches.values_mut().filter(|table| table.owner == Owner::Here);
        for port in own.flat_map(|table| table.ports.values_mut()) {
            if let Some(until) = port.held_until {
                if until <= now {
                    (port.held_until, self.changed) = (None, true);
                } else {
                    wake(until);
                }
            }
            if port.is_known {
                continue;
            }
            if port.since + NEW_PORT <= now {
                port.is_known = true;
                self.changed = true;
            } else {
                wake(port.since + NEW_PORT);
            }
        }
        let mut silent_links = Vec::new();
        for (from, pair) in &mut self.pairs {
            let is_here = |dpid| self.switches.get(dpid).is_some_and(|it| it.owner == Owner::Here);
            let is_silent = |up: &mut LinkUp| up.last_seen + silent <= now && is_here(&from.dpid);
            silent_links.extend(pair.up.take_if(is_silent));
        }
        silent_links.into_iter().for_each(|up| self.link_down(Some(up), LinkDown::Silent));
        self.changed |= self.segments.age(silent, now);
        if self.links().next().is_some()
            || !self.segments.is_empty()
            || !self.last_nonces.is_empty()
        {
            wake(now + interval);
        }
        self.due = due;
        if let Some(at) = self.remove_unowned(now) {
            self.wake_at(at);
        }
        if self.last_check + interval <= now {
            self.last_check = now;
            self.median = self.median_latency();
            self.load = self.load();
            self.report_one_way(now);
        }
    }

    /// The controller did nothing for so long: it was stopped, or its machine was. So it has sent
    /// no announcements, and heard none. That is not the links' fault.
    fn excuse(&mut self, late: Duration, now: Duration) {
        for up in self.pairs.values_mut().filter_map(|pair| pair.up.as_mut()) {
            up.last_seen = now.min(up.last_seen + late);
        }
    }

    /// How long a link may be silent. The half round is for late announcements.
    fn silent_after(&self) -> Duration {
        self.interval * MISSED_ROUNDS + self.interval / 2
    }

    /// When [`timers`](Self::timers) has work.
    pub(super) fn due(&self) -> Option<Duration> {
        self.due
    }

    /// Returns the events since the last call.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Whether the topology has changed since it was last taken.
    pub(super) fn has_changed(&self) -> bool {
        self.changed
    }

    /// Returns the topology, if it has changed since it was last taken.
    pub(super) fn take_topology(&mut self) -> Option<Topology> {
        std::mem::take(&mut self.changed).then(|| self.topology())
    }

    fn topology(&mut self) -> Topology {
        let all_known = self.switches.values().all(|it| it.ports.values().all(|it| it.is_known));
        self.settled |= all_known && !self.switches.is_empty();
        let segments = self.update_segments();
        let on_segments: BTreeMap<SwitchPort, Arc<[SwitchPort]>> = segments
            .iter()
            .flat_map(|ports| ports.iter().map(|at| (*at, Arc::clone(ports))))
            .collect();
        let switches = self.switches.iter();
        let mut trunk: BTreeSet<SwitchPort> =
            self.links().flat_map(|up| [up.link.from, up.link.to]).collect();
        trunk.extend(on_segments.keys());
        let unjudged = self.unjudged_ports();
        let mut edge = BTreeSet::new();
        for (dpid, ports) in switches.clone() {
            for (port, state) in &ports.ports {
                let at = SwitchPort::new(*dpid, *port);
                if state.lost_switch {
                    trunk.insert(at);
                } else if state.is_known
                    && state.held_until.is_none()
                    && !trunk.contains(&at)
                    && !unjudged.contains(&at)
                {
                    edge.insert(at);
                }
            }
        }
        Topology {
            switches: switches
                .map(|(dpid, ports)| (*dpid, ports.ports.keys().copied().collect()))
                .collect(),
            links: self
                .known_links()
                .chain(self.segment_links(&segments))
                .map(|link| (link.from, link))
                .collect(),
            edge,
            trunk,
            segments: on_segments,
            settled: self.settled,
        }
    }

    /// Returns the links that are up, between ports that are known: peers report their switches one
    /// after the other.
    fn known_links(&self) -> impl Iterator<Item = Link> {
        let is_known = |at| self.port(at).is_some();
        let links = self.links().map(|up| up.link);
        links.filter(move |link| is_known(link.from) && is_known(link.to))
    }

    fn unjudged_ports(&self) -> BTreeSet<SwitchPort> {
        let unjudged = self.pairs.iter().filter(|(_, pair)| self.is_unjudged(pair));
        unjudged.flat_map(|(from, pair)| [*from, pair.to]).collect()
    }

    fn port(&self, at: SwitchPort) -> Option<&LinkPort> {
        self.switches.get(&at.dpid)?.ports.get(&at.port)
    }

    fn port_mut(&mut self, at: SwitchPort) -> Option<&mut LinkPort> {
        self.switches.get_mut(&at.dpid)?.ports.get_mut(&at.port)
    }
}

/// Rounds a time up to the timer's granularity.
fn round_up(at: Duration) -> Duration {
    let (at, grain) = (at.as_nanos() as u64, LOOK_GRAIN.as_nanos() as u64);
    Duration::from_nanos(at.next_multiple_of(grain))
}

mod judge;
mod segments;
mod shared;
#[cfg(test)]
mod tests;
mod wiring;
