//! The hosts of all switches, as one of them sees them.
//!
//! How a switch tells a packet that passes by from one of a host that has moved here:
//! - It comes by the port that leads to the host's switch, or by one that leads to others: it passes by.
//! - It is not known which port leads to that switch, and that one has seen the host within the last [`PASSING_S`]
//!   seconds: it passes by.
//! - Otherwise the host has moved here. (If that happens to one host of that switch after another, it is the
//!   switch that is somewhere else: [`Ways`].)
//!
//! A port by which a packet passes by leads to the switch of its host from then on.
//!
//! A host that nobody knows is learnt here, unless the port leads to other switches: then one of those will learn it.

use std::ops::ControlFlow;
use std::sync::Arc;

use bellrock_api::{Dpid, PacketIn, Port};
use bellrock_tables::{Hashed, NotReplaced, SharedInsert};

use super::place::{Attachment, SwitchNumber};
use super::switches::{Corner, Letter};
use super::ways::Ways;
use super::{GlobalTable, Shared};
use crate::learning::frame::{Frame, HostKey, Place};
use crate::learning::hosts::{CACHED_BYTES, Found, HostTable, Learnt, News};

/// A host that its own switch saw so lately, in seconds, has not moved: its packet passes by.
const PASSING_S: u32 = 2;

/// Times that a change is tried when others change the same host at the same time. After that the
/// packet is as one from a host that is not known.
const MAX_TRIES: usize = 4;

/// The hosts of all switches, as one switch sees them.
pub struct GlobalHosts<T: GlobalTable> {
    shared: Arc<Shared<T>>,
    corner: Arc<Corner>,
    me: SwitchNumber,
    ways: Ways,
    /// A port that led to a switch which is behind another one now.
    rerouted: Option<Port>,
}

impl<T: GlobalTable> GlobalHosts<T> {
    pub(super) fn new(shared: Arc<Shared<T>>, dpid: Dpid) -> Self {
        let corner = shared.switches.comes(dpid);
        let (me, ways) = (corner.number, corner.ways());
        GlobalHosts { shared, corner, me, ways, rerouted: None }
    }

    /// The source is at another switch, or its entry was not where it is looked for first.
    #[inline(never)]
    fn passes_with_flows(&self, from: HostKey, in_port: Port, now: u32) -> bool {
        let from = self.shared.table.lookup_age(self.hash(from), now);
        from.is_some_and(|(from, _)| {
            let from = Attachment(from);
            from.switch() != self.me
                && from.has_flows_elsewhere()
                && self.ways.to(from.switch()) == Some(in_port)
        })
    }

    /// Whether a packet that came by a port passes by, from a host of another switch that was seen so
    /// long ago.
    fn passes(&mut self, from: SwitchNumber, by: Port, age: u32) -> bool {
        let before = self.ways.to(from);
        if before == Some(by) {
            self.ways.confirm(from);
            return true;
        }
        let is_fresh = age <= PASSING_S;
        let passes =
            self.ways.lead_over(by) || (is_fresh && (before.is_none() || self.ways.doubt(from)));
        if passes {
            self.rerouted = self.ways.set(from, by).or(self.rerouted);
        }
        passes
    }

    /// Where a host is for this switch; `None` if the way there is not known.
    #[inline(always)]
    fn seen_from_here(&self, host: Attachment) -> Option<Place> {
        if host.switch() == self.me {
            return Some(host.place());
        }
        let place = Place::at(self.ways.to(host.switch())?)?;
        Some(if host.has_flows_elsewhere() { place.with_flows() } else { place })
    }

    /// The same; a place without flows if the way there is not known, since there are none then.
    fn was_from_here(&self, host: Attachment) -> Place {
        self.seen_from_here(host).unwrap_or_default()
    }

    /// Learns a host that nobody knows. `None`: somebody does by now.
    fn learn_new(&self, host: Hashed, at: Place, now: u32) -> Option<Learnt> {
        if !self.corner.enter(at) {
            return Some(Learnt::OverLimit { from: None });
        }
        match self.shared.table.insert(host, Attachment::new(self.me, at).0, now) {
            SharedInsert::Inserted => Some(Learnt::New(at, None)),
            SharedInsert::Evicted { key, value } => {
                let (key, was) = (HostKey(key), Attachment(value));
                self.left(key, was);
                Some(Learnt::New(at, Some((key, self.was_from_here(was)))))
            }
            SharedInsert::There { .. } => {
                self.corner.leave(at);
                None
            }
            SharedInsert::Busy => {
                self.corner.leave(at);
                Some(Learnt::NoMemory)
            }
        }
    }

    /// A host is here now. `None`: it is not where it was any more, by somebody else's doing.
    fn learn_move(&self, host: Hashed, was: Attachment, at: Place, now: u32) -> Option<Learnt> {
        let from = self.was_from_here(was);
        if !self.corner.enter(at) {
            self.shared.table.remove(host, was.0).ok()?;
            self.left(HostKey(host.key()), was);
            return Some(Learnt::OverLimit { from: Some(from) });
        }
        let moved = self.shared.table.replace(host, was.0, Attachment::new(self.me, at).0, now);
        if moved.is_err() {
            self.corner.leave(at);
            return None;
        }
        self.left(HostKey(host.key()), was);
        Some(Learnt::Moved { from, to: at })
    }

    /// A host is not where it was; this switch knows.
    fn left(&self, host: HostKey, was: Attachment) {
        self.shared.switches.left(host, was, self.me);
    }
}

impl<T: GlobalTable> HostTable for GlobalHosts<T> {
    #[inline(always)]
    fn hash(&self, host: HostKey) -> Hashed {
        self.shared.table.hash(host.0)
    }

    #[inline]
    fn prefetch(&self, host: Hashed) {
        self.shared.table.prefetch(host);
    }

    #[inline]
    fn prefetch_rest(&self, host: Hashed) {
        self.shared.table.prefetch_rest(host);
    }

    #[inline]
    fn is_large(&self) -> bool {
        self.are_beyond_cache()
    }

    #[inline]
    fn are_beyond_cache(&self) -> bool {
        self.shared.table.bytes_in_use() > CACHED_BYTES
    }

    #[inline(always)]
    fn with_flows(&mut self, packet: &PacketIn<'_>, frame: &Frame, now: u32) -> Option<Place> {
        let in_port = packet.in_port();
        let table = &self.shared.table;
        let here = Attachment::new(self.me, Place::with_flows_at(in_port));
        let is_here = |from| Attachment(from).is_same_but_for_others(here);
        let from_is_known = match table.touch_if(self.hash(frame.from()), now, is_here) {
            Some(from) => Attachment(from).has_flows_there(),
            None => self.passes_with_flows(frame.from(), in_port, now),
        };
        if !from_is_known {
            return None;
        }
        let to = table.lookup_fresh(self.hash(frame.to()), now, self.shared.max_age_s)?;
        let to = self.seen_from_here(Attachment(to))?;
        (to.has_flows() && to.port() != in_port).then_some(to)
    }

    fn learn(&mut self, host: Hashed, at: Place, now: u32) -> Learnt {
        for _ in 0..MAX_TRIES {
            let Some((was, age)) = self.shared.table.lookup_age(host, now) else {
                if self.ways.lead_over(at.port()) {
                    return Learnt::Elsewhere;
                }
                match self.learn_new(host, at, now) {
                    Some(learnt) => return learnt,
                    None => continue,
                }
            };
            let was = Attachment(was);
            if was.switch() == self.me {
                if was.place().port() == at.port() {
                    self.shared.table.touch_if(host, now, |value| value == was.0);
                    return Learnt::Known(was.place());
                }
                if self.ways.lead_over(at.port()) {
                    // Its own packet has come back, or its new switch has not been heard of yet.
                    return Learnt::Elsewhere;
                }
            } else if self.passes(was.switch(), at.port(), age) {
                return Learnt::Known(self.was_from_here(was));
            }
            if let Some(learnt) = self.learn_move(host, was, at, now) {
                return learnt;
            }
        }
        Learnt::Elsewhere
    }

    fn find(&self, host: Hashed, now: u32) -> Found {
        let Some((place, age)) = self.shared.table.lookup_age(host, now) else {
            return Found::Nowhere;
        };
        let host = Attachment(place);
        if age > self.shared.max_age_s {
            return Found::Stale(self.was_from_here(host));
        }
        self.seen_from_here(host).map_or(Found::Nowhere, Found::At)
    }

    fn note_flows(&mut self, host: Hashed, at: Place) -> bool {
        if at.has_flows() {
            return true;
        }
        let table = &self.shared.table;
        let Some((mut now_at, _)) = table.lookup_age(host, 0) else { return false };
        for _ in 0..MAX_TRIES {
            let host_at = Attachment(now_at);
            if self.seen_from_here(host_at).is_none_or(|place| place.port() != at.port()) {
                return false;
            }
            let noted = if host_at.switch() == self.me {
                host_at.with_flows_there()
            } else {
                host_at.with_flows_elsewhere()
            };
            match table.replace_unseen(host, now_at, noted.0) {
                Ok(()) => return true,
                Err(NotReplaced::Is(other)) => now_at = other,
                Err(NotReplaced::Absent | NotReplaced::Busy) => return false,
            }
        }
        false
    }

    fn forget(&mut self, host: Hashed) {
        let table = &self.shared.table;
        if let Some((was, _)) = table.lookup_age(host, 0)
            && table.remove(host, was).is_ok()
        {
            self.left(HostKey(host.key()), Attachment(was));
        }
    }

    fn forget_port(&mut self, port: Port) {
        self.ways.forget(port);
        if !self.corner.has_hosts(port) {
            return;
        }
        let is_there = |value| {
            let host = Attachment(value);
            host.switch() == self.me && host.place().port() == port
        };
        self.shared.table.remove_where(&mut |_, value| is_there(value), &mut |key, value| {
            self.left(HostKey(key), Attachment(value));
        });
    }

    /// Its share of the table: all switches sweep it together.
    fn lines(&self) -> usize {
        self.shared.table.lines().div_ceil(self.shared.switches.up().max(1))
    }

    fn age(&mut self, now: u32, mut forgotten: impl FnMut(HostKey, Place)) {
        self.shared.table.age(now, self.shared.max_age_s, 1, &mut |key, value| {
            let (host, was) = (HostKey(key), Attachment(value));
            self.left(host, was);
            forgotten(host, self.was_from_here(was));
        });
    }

    /// Those that are here.
    fn for_each(&self, now: u32, report: &mut dyn FnMut(HostKey, Place, u32) -> ControlFlow<()>) {
        self.shared.table.for_each(now, &mut |key, value, age| {
            let host = Attachment(value);
            if host.switch() != self.me || age > self.shared.max_age_s {
                return ControlFlow::Continue(());
            }
            report(HostKey(key), host.place(), age)
        });
    }

    #[inline(always)]
    fn has_news(&self) -> bool {
        self.corner.has_letters() || self.rerouted.is_some()
    }

    fn next_news(&mut self) -> Option<News> {
        if let Some(port) = self.rerouted.take() {
            return Some(News::Rerouted(port));
        }
        Some(match self.corner.next_letter()? {
            Letter::Gone(host, was) => News::Gone(host, self.was_from_here(was)),
            Letter::Lost => News::Lost,
        })
    }
}

impl<T: GlobalTable> Drop for GlobalHosts<T> {
    fn drop(&mut self) {
        self.corner.keep(std::mem::take(&mut self.ways));
        self.shared.switches.goes();
    }
}
