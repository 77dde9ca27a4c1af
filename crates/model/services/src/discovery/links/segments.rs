//! Segments: ports that ordinary switches join. Announcements to an address that ordinary switches
//! forward show them.
//!
//! A cable carries both kinds of announcements, so two ports that hear each other directly are a
//! link. Ports that hear each other only by way of ordinary switches are a segment, and so are
//! three and more ports that hear each other in any way: cheap switches forward both kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{Dpid, Event, Hosts, Link, LinkDown, SwitchPort};

use super::{AnnouncementOutcome, LinkTable, ReceivedAnnouncement};
use crate::discovery::frame::is_forwarded;
use crate::exchange::{LinkFact, SwitchFacts};

/// Maximum number of ports that a port hears by way of ordinary switches. Further ones are left
/// out.
pub const MAX_HEARD: usize = 64;

/// How long two ports hear each other before they are a segment: the direct announcement that shows
/// a cable comes right after.
pub const SEGMENT_AFTER: Duration = Duration::from_secs(1);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct SegmentTable {
    /// Which port is heard where.
    heard: BTreeMap<(SwitchPort, SwitchPort), HeardPort>,
    /// The ports that each port hears, or is heard at, now.
    joined: BTreeMap<SwitchPort, BTreeSet<SwitchPort>>,
    /// The segments that were published last.
    known: Vec<Arc<[SwitchPort]>>,
}

#[derive(Clone, Copy, Debug)]
struct HeardPort {
    /// The last nonce that was accepted.
    nonce: u64,
    since: Duration,
    last: Duration,
    is_fresh: bool,
    /// Whether [`SEGMENT_AFTER`] is over.
    is_settled: bool,
}

impl SegmentTable {
    fn is_joined(&self, one: SwitchPort, other: SwitchPort) -> bool {
        self.joined.get(&one).is_some_and(|others| others.contains(&other))
    }

    /// Returns the ports that are joined with this one, and itself.
    fn component(&self, at: SwitchPort) -> BTreeSet<SwitchPort> {
        let (mut found, mut open) = (BTreeSet::from([at]), vec![at]);
        while let Some(at) = open.pop() {
            let others = self.joined.get(&at).into_iter().flatten();
            open.extend(others.filter(|other| found.insert(**other)));
        }
        found
    }

    fn hear(&mut self, from: SwitchPort, to: SwitchPort, nonce: u64, now: Duration) {
        let new = HeardPort { nonce, since: now, last: now, is_fresh: false, is_settled: false };
        let heard = self.heard.entry((from, to)).or_insert(new);
        if !heard.is_fresh {
            (heard.since, heard.is_settled) = (now, false);
        }
        (heard.nonce, heard.last, heard.is_fresh) = (nonce.max(heard.nonce), now, true);
        self.joined.entry(from).or_default().insert(to);
        self.joined.entry(to).or_default().insert(from);
    }

    fn separate(&mut self, one: SwitchPort, other: SwitchPort) {
        for (one, other) in [(one, other), (other, one)] {
            if let Some(others) = self.joined.get_mut(&one) {
                others.remove(&other);
                if others.is_empty() {
                    self.joined.remove(&one);
                }
            }
        }
    }

    /// Forgets what was heard between two ports: they are a cable's ends.
    pub(super) fn forget(&mut self, one: SwitchPort, other: SwitchPort) {
        self.heard.remove(&(one, other));
        self.heard.remove(&(other, one));
        self.separate(one, other);
    }

    /// A port is down.
    pub(super) fn port_removed(&mut self, at: SwitchPort) {
        if self.heard.is_empty() {
            return;
        }
        self.heard.retain(|(from, to), _| *from != at && *to != at);
        for other in self.joined.remove(&at).unwrap_or_default() {
            self.separate(other, at);
        }
    }

    /// Ports that have not heard each other for so long are not joined any more. Returns whether
    /// anything changes.
    pub(super) fn age(&mut self, silent: Duration, now: Duration) -> bool {
        let (mut old, mut has_new) = (Vec::new(), false);
        for (pair, heard) in self.heard.iter_mut().filter(|(_, heard)| heard.is_fresh) {
            if heard.last + silent <= now {
                heard.is_fresh = false;
                old.push(*pair);
            } else if heard.since + SEGMENT_AFTER <= now {
                has_new |= !std::mem::replace(&mut heard.is_settled, true);
            }
        }
        for (from, to) in &old {
            if !self.heard.get(&(*to, *from)).is_some_and(|back| back.is_fresh) {
                self.separate(*from, *to);
            }
        }
        has_new || !old.is_empty()
    }

    /// Whether two ports have heard each other for [`SEGMENT_AFTER`].
    fn is_settled(&self, one: SwitchPort, other: SwitchPort) -> bool {
        let heard = [(one, other), (other, one)].map(|pair| self.heard.get(&pair));
        heard.into_iter().flatten().any(|heard| heard.is_fresh && heard.is_settled)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.joined.is_empty()
    }
}

impl LinkTable {
    /// Handles an announcement that ordinary switches may have forwarded.
    pub(super) fn handle_forwarded(
        &mut self,
        announcement: ReceivedAnnouncement,
        hosts: &Hosts,
        now: Duration,
    ) -> AnnouncementOutcome {
        let ReceivedAnnouncement { from, to, nonce, sent, arrived, .. } = announcement;
        let is_known_port = self.port(from).is_some() && self.port(to).is_some();
        if !is_known_port || !self.is_here(from.dpid) {
            return AnnouncementOutcome::Stale;
        }
        if self.refuse_slow && !self.relays.is_trusted(from, to) {
            // The latency over ordinary switches proves nothing.
            return AnnouncementOutcome::Stale;
        }
        let known = self.segments.heard.get(&(from, to)).copied();
        if known.is_some_and(|known| nonce <= known.nonce) {
            // A loop behind the port brings it twice.
            return AnnouncementOutcome::Replayed;
        }
        if arrived.saturating_sub(sent) > self.interval {
            if known.is_some() {
                return AnnouncementOutcome::Late;
            }
            self.alarm(to, Event::ReplayedAnnouncement { at: to, sender: from }, now);
            return AnnouncementOutcome::Replayed;
        }
        let is_joined = self.segments.component(to).contains(&from);
        if !is_joined {
            if self.is_cable(from, to) && self.segments.component(to).len() == 1 {
                return AnnouncementOutcome::Accepted;
            }
            let heard = self.segments.joined.get(&to).map_or(0, BTreeSet::len);
            if heard >= MAX_HEARD {
                return AnnouncementOutcome::Stale;
            }
            let was_joined = known.is_some();
            if !was_joined && !self.is_cable(from, to) && self.is_relay(from, to, hosts, now) {
                return AnnouncementOutcome::Suspected;
            }
        }
        self.segments.hear(from, to, nonce, now);
        if !is_joined {
            self.changed = true;
            self.wake_at(now + SEGMENT_AFTER);
            self.dissolve_links(from);
        }
        AnnouncementOutcome::Accepted
    }

    /// Whether one of two ports hears the other directly.
    fn is_cable(&self, one: SwitchPort, other: SwitchPort) -> bool {
        let hears = |from: SwitchPort, to| {
            self.is_here(from.dpid) && self.pairs.get(&from).is_some_and(|pair| pair.to == to)
        };
        hears(one, other) || hears(other, one)
    }

    /// Whether a port is on a segment of three and more ports. Direct announcements mean nothing
    /// there.
    pub(super) fn is_on_large_segment(&self, at: SwitchPort) -> bool {
        !self.segments.is_empty() && self.segments.component(at).len() > 2
    }

    /// A direct announcement that was heard elsewhere already. Returns whether an ordinary switch
    /// has forwarded it to both: it is not a replay.
    pub(super) fn is_forwarded_twice(
        &mut self,
        from: SwitchPort,
        to: SwitchPort,
        now: Duration,
    ) -> bool {
        if !self.segments.is_joined(from, to) {
            return false;
        }
        if let Some(other) = self.pairs.get(&from).map(|pair| pair.to).filter(|it| *it != to) {
            self.segments.hear(from, other, 0, now);
            self.changed = true;
            self.dissolve_links(from);
        }
        true
    }

    /// Two ports hear each other directly. Unless they are two of several, they are no segment.
    pub(super) fn is_paired(&mut self, from: SwitchPort, to: SwitchPort) {
        if !self.segments.is_empty() && self.segments.component(from).len() <= 2 {
            self.changed |= self.segments.is_joined(from, to);
            self.segments.forget(from, to);
        }
    }

    /// Ends the links between ports of a segment of three and more ports.
    fn dissolve_links(&mut self, at: SwitchPort) {
        let ports = self.segments.component(at);
        if ports.len() <= 2 {
            return;
        }
        for from in &ports {
            if let Some(pair) = self.pairs.remove(from) {
                self.by_receiver.remove(&(pair.to, *from));
                self.link_down(pair.up, LinkDown::Segment);
            }
        }
    }

    /// Returns the segments, and reports those that have come and gone.
    pub(super) fn update_segments(&mut self) -> Vec<Arc<[SwitchPort]>> {
        let mut seen = BTreeSet::new();
        let mut found: Vec<Arc<[SwitchPort]>> = Vec::new();
        for at in self.segments.joined.keys() {
            if seen.contains(at) {
                continue;
            }
            let ports = self.segments.component(*at);
            seen.extend(ports.iter().copied());
            let list: Vec<SwitchPort> = ports.into_iter().collect();
            let is_segment = match list[..] {
                [one, other] => self.segments.is_settled(one, other) && !self.is_cable(one, other),
                _ => true,
            };
            if is_segment {
                found.push(list.into());
            }
        }
        let before = std::mem::replace(&mut self.segments.known, found.clone());
        for ports in before.iter().filter(|ports| !found.contains(ports)) {
            self.events.push(Event::SegmentOver { ports: ports.iter().copied().collect() });
        }
        for ports in found.iter().filter(|ports| !before.contains(ports)) {
            let is_loop = self.is_loop(ports, &found);
            self.events.push(Event::Segment { ports: ports.iter().copied().collect(), is_loop });
        }
        found
    }

    /// Whether two ports of a segment are connected otherwise too.
    fn is_loop(&self, segment: &Arc<[SwitchPort]>, all: &[Arc<[SwitchPort]>]) -> bool {
        let mut near: BTreeMap<Dpid, BTreeSet<Dpid>> = BTreeMap::new();
        for up in self.links() {
            near.entry(up.link.from.dpid).or_default().insert(up.link.to.dpid);
        }
        for ports in all.iter().filter(|ports| *ports != segment) {
            for one in ports.iter() {
                near.entry(one.dpid).or_default().extend(ports.iter().map(|at| at.dpid));
            }
        }
        let mut found = BTreeSet::new();
        for at in segment.iter() {
            if !found.insert(at.dpid) {
                return true;
            }
            let mut open = vec![at.dpid];
            while let Some(dpid) = open.pop() {
                let next = near.get(&dpid).into_iter().flatten().copied();
                open.extend(next.filter(|dpid| found.insert(*dpid)).collect::<Vec<_>>());
            }
        }
        false
    }

    /// Returns the links between the ports of segments of two ports. Segments of more ports have
    /// none.
    pub(super) fn segment_links<'t>(
        &'t self,
        segments: &'t [Arc<[SwitchPort]>],
    ) -> impl Iterator<Item = Link> + 't {
        segments.iter().flat_map(move |ports| {
            let ends = match ports[..] {
                [one, other] if one.dpid != other.dpid => vec![(one, other), (other, one)],
                _ => Vec::new(),
            };
            ends.into_iter().map(move |(from, to)| {
                let heard = [(from, to), (to, from)];
                let heard = heard.iter().filter_map(|pair| self.segments.heard.get(pair));
                Link {
                    from,
                    to,
                    rate_kbps: self.port(from).and_then(|port| port.rate_kbps),
                    since: heard.map(|it| it.since).min().unwrap_or_default(),
                }
            })
        })
    }

    /// Adds what peers get to know of the segments at a switch: the links of those of two ports.
    /// Only controllers with a port on a larger one know it; its ports lead nowhere for the others.
    pub(super) fn add_segments(&self, facts: &mut SwitchFacts) {
        let dpid = facts.dpid;
        let segments = &self.segments.known;
        for port in &mut facts.ports {
            let at = SwitchPort::new(dpid, port.port);
            let is_large = |ports: &Arc<[SwitchPort]>| ports.len() > 2 && ports.contains(&at);
            port.is_lost |= segments.iter().any(is_large);
        }
        let across = self.segment_links(segments).filter(|link| link.from.dpid == dpid);
        facts.links.extend(across.map(|link| LinkFact {
            port: link.from.port,
            to: link.to,
            rate_kbps: link.rate_kbps,
            since: link.since,
        }));
        facts.links.sort_by_key(|link| link.port);
    }
}

/// Whether an announcement is one that ordinary switches forward.
pub(super) fn is_of_segment(announcement: &ReceivedAnnouncement) -> bool {
    is_forwarded(announcement.nonce)
}
