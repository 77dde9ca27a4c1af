//! The hosts of all switches, as one switch sees them.
//!
//! A switch distinguishes a passing packet from a host that has moved here:
//! - The packet comes by the port towards the host's switch, or towards other switches: it passes.
//! - The port towards the host's switch is unknown, and that switch has seen the host within the
//!   last [`PASSING_S`] seconds: it passes.
//! - Otherwise the host has moved here. (If this happens to several hosts of that switch in a row,
//!   the way to the switch itself has changed: [`PortsToSwitches`].)
//!
//! The port of a passing packet leads to the switch of its host from then on.
//!
//! A switch learns an unknown host, unless the port leads to other switches: one of them learns it.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use bellrock_api::{Dpid, PacketIn, Port};
use bellrock_tables::{Hashed, NotReplaced, SharedInsert, Stamp};

use super::host_cache::SwitchHostCache;
use super::notes::{HostNote, NoteAdded, NotedHost};
use super::place::{Attachment, SwitchNumber};
use super::ports_to_switches::PortsToSwitches;
use super::switches::{MAX_SWITCHES, SharedSwitch, SwitchMessage};
use super::{GlobalState, GlobalTable};
use crate::learning::earlier_flows::FlowEnds;
use crate::learning::frame::{FrameHeader, HostKey, HostPlace};
use crate::learning::hosts::{CACHED_BYTES, Destination, HostChange, HostTable, Learnt};

/// Seconds since its own switch saw a host within which it cannot have moved: its packet passes.
const PASSING_S: u32 = 2;

/// Number of attempts of a change while other switches change the same host. After that the packet
/// is handled as one from an unknown host.
const MAX_TRIES: usize = 4;

/// Maximum number of old notes that are removed at a time.
const NOTES_AT_A_TIME: usize = 16;

/// The hosts of all switches, as one switch sees them.
pub struct GlobalHosts<T: GlobalTable> {
    shared: Arc<GlobalState<T>>,
    own_switch: Arc<SharedSwitch>,
    own_number: SwitchNumber,
    ports_to_switches: PortsToSwitches,
    cache: SwitchHostCache,
    /// A port that led to a switch which is now behind another port.
    rerouted_port: Option<Port>,
    /// Hosts that this switch has noted, as they are not in the table: place, time in seconds.
    own_notes: VecDeque<(HostKey, HostPlace, u32)>,
    /// Time of the last removal of finished notes, in seconds.
    cleaned_s: u32,
}

impl<T: GlobalTable> GlobalHosts<T> {
    pub(super) fn new(shared: Arc<GlobalState<T>>, dpid: Dpid) -> Self {
        let own_switch = shared.switches.connect(dpid);
        let (own_number, ports_to_switches) = (own_switch.number, own_switch.stored_ports());
        let cache = SwitchHostCache::new(&shared.cache_budget, shared.seed.clone());
        let own_notes = VecDeque::new();
        GlobalHosts {
            shared,
            own_switch,
            own_number,
            ports_to_switches,
            cache,
            rerouted_port: None,
            own_notes,
            cleaned_s: 0,
        }
    }

    /// The same as [`HostTable::with_flows`], from the shared table.
    #[inline(never)]
    fn shared_with_flows(
        &mut self,
        in_port: Port,
        from: HostKey,
        to: HostKey,
        now: u32,
    ) -> Option<HostPlace> {
        let table = &self.shared.table;
        let (from, to) = (table.hash(from.0), table.hash(to.0));
        let here = Attachment::new(self.own_number, HostPlace::with_flows_at(in_port));
        let is_here = |from| Attachment(from).is_same_but_for_others(here);
        let from_is_known = match table.touch_if(from, now, is_here) {
            Some(from) => Attachment(from).has_flows_there(),
            None => self.passes_with_flows(from, in_port, now),
        };
        if !from_is_known {
            return None;
        }
        let found = table.lookup_fresh(to, now, self.shared.max_age_s)?;
        let found = self.local_place(Attachment(found))?;
        if !found.has_flows() || found.port() == in_port {
            return None;
        }
        if T::IS_CACHED {
            self.cache.note(from, HostPlace::with_flows_at(in_port), now);
            self.cache.note(to, found, now);
        }
        Some(found)
    }

    /// Checks a source that is at another switch, or whose entry is not in its first line.
    #[inline(never)]
    fn passes_with_flows(&self, from: Hashed, in_port: Port, now: u32) -> bool {
        let from = self.shared.table.lookup_age(from, now);
        from.is_some_and(|(from, _)| {
            let from = Attachment(from);
            from.switch() != self.own_number
                && from.has_flows_elsewhere()
                && self.ports_to_switches.to(from.switch()) == Some(in_port)
        })
    }

    /// Returns whether a packet by this port passes. It is from a host of another switch that was
    /// last seen `age` seconds ago.
    fn passes(&mut self, from: SwitchNumber, in_port: Port, age: u32) -> bool {
        let before = self.ports_to_switches.to(from);
        if before == Some(in_port) {
            self.ports_to_switches.confirm(from);
            return true;
        }
        let is_recent = age <= PASSING_S;
        let is_passing = self.ports_to_switches.has_switches_behind(in_port)
            || (is_recent && (before.is_none() || self.ports_to_switches.record_doubt(from)));
        if is_passing && let Some(before) = self.ports_to_switches.set(from, in_port) {
            self.cache.forget_port(before);
            self.rerouted_port = Some(before);
        }
        is_passing
    }

    /// The place of a host as this switch sees it; `None` if the way to it is unknown.
    #[inline(always)]
    fn local_place(&self, host: Attachment) -> Option<HostPlace> {
        self.ports_to_switches.place_of(host, self.own_number)
    }

    /// As [`GlobalHosts::local_place`]; a place without flows if the way is unknown.
    fn local_place_or_default(&self, host: Attachment) -> HostPlace {
        self.local_place(host).unwrap_or_default()
    }

    /// Learns an unknown host. `None` if another switch has learnt it meanwhile.
    fn learn_new(&mut self, host: Hashed, here: Attachment, now: u32) -> Option<Learnt> {
        let at = here.place();
        if !self.own_switch.add_host(at) {
            return Some(Learnt::OverLimit { from: None });
        }
        match self.shared.table.insert(host, here.0, now) {
            SharedInsert::Inserted => Some(Learnt::New(at, None)),
            SharedInsert::Evicted { key, value } => {
                let (key, old) = (HostKey(key), Attachment(value));
                self.host_left(key, old);
                Some(Learnt::New(at, Some((key, self.local_place_or_default(old)))))
            }
            SharedInsert::There { .. } => {
                self.own_switch.remove_host(at);
                None
            }
            SharedInsert::Busy => {
                self.own_switch.remove_host(at);
                Some(Learnt::NoMemory)
            }
        }
    }

    /// Learns a host that is not in the table, while there are notes of flows of an earlier run.
    #[cold]
    fn learn_noted(
        &mut self,
        host: Hashed,
        at: HostPlace,
        to_group: bool,
        now: u32,
    ) -> Option<Learnt> {
        let key = HostKey(host.key());
        // A packet from another switch does not show where its host is attached.
        let may_be_here = !self.ports_to_switches.has_switches_behind(at.port());
        let to_group = to_group && may_be_here;
        let here = Attachment::new(self.own_number, at);
        match self.shared.notes.packet_seen(key, self.note(at, false, now), to_group, now) {
            NotedHost::AsNoted => Some(Learnt::Known(at.with_flows())),
            NotedHost::Noted { since } => {
                // The oldest notes are at the front.
                if self.own_notes.front().is_some_and(|(.., front)| since < *front) {
                    self.own_notes.push_front((key, at, since));
                } else {
                    self.own_notes.push_back((key, at, since));
                }
                Some(Learnt::Known(at.with_flows()))
            }
            NotedHost::Nothing if may_be_here => self.learn_new(host, here, now),
            NotedHost::Nothing | NotedHost::Going => Some(Learnt::Elsewhere),
            NotedHost::Attached(others) => {
                let here = here.with_flows_there();
                let here = if others.is_empty() { here } else { here.with_flows_elsewhere() };
                let learnt = self.learn_new(host, here, now);
                if matches!(learnt, Some(Learnt::New(..))) {
                    self.shared.switches.host_attached(key, self.own_number, &others);
                } else {
                    self.shared.switches.host_gone(key, &others);
                    self.shared.switches.host_gone(key, &[self.note(at, true, now)]);
                }
                learnt
            }
            NotedHost::Elsewhere(notes) => {
                self.shared.switches.host_gone(key, &notes);
                if to_group { self.learn_new(host, here, now) } else { Some(Learnt::Elsewhere) }
            }
        }
    }

    fn note(&self, place: HostPlace, is_of_flow: bool, since: u32) -> HostNote {
        HostNote { switch: self.own_number, place, is_of_flow, since }
    }

    /// The place of a host that is not in the table, from a flow of an earlier run.
    #[cold]
    fn noted_place(&self, host: HostKey) -> Option<HostPlace> {
        let place =
            self.shared.notes.has_notes().then(|| self.shared.notes.place(host, self.own_number));
        place.flatten().map(HostPlace::with_flows)
    }

    /// Records a host at a place with flows, if it may be there. Returns whether it is newly noted.
    fn adopt_host(&mut self, (host, at): (HostKey, HostPlace), now: u32) -> Option<bool> {
        let hashed = self.hash(host);
        // Switches beyond the maximum number get no messages.
        if self.own_number.index() >= MAX_SWITCHES {
            return None;
        }
        if self.shared.table.lookup_age(hashed, 0).is_some() {
            return self.note_flows(hashed, at).then_some(false);
        }
        match self.shared.notes.add(host, self.note(at, true, now)) {
            // Another switch has learnt the host meanwhile without seeing this note.
            NoteAdded::New if self.shared.table.lookup_age(hashed, 0).is_some() => {
                self.shared.notes.withdraw(host, self.own_number, at);
                self.note_flows(hashed, at).then_some(false)
            }
            NoteAdded::New => {
                self.own_notes.push_back((host, at, now));
                Some(true)
            }
            NoteAdded::Known => Some(false),
            NoteAdded::Refused => None,
        }
    }

    /// Moves a host to this switch. `None` if another switch has changed its entry meanwhile.
    fn learn_move(
        &mut self,
        host: Hashed,
        old: Attachment,
        at: HostPlace,
        now: u32,
    ) -> Option<Learnt> {
        let from = self.local_place_or_default(old);
        if !self.own_switch.add_host(at) {
            self.shared.table.remove(host, old.0).ok()?;
            self.host_left(HostKey(host.key()), old);
            return Some(Learnt::OverLimit { from: Some(from) });
        }
        let moved =
            self.shared.table.replace(host, old.0, Attachment::new(self.own_number, at).0, now);
        if moved.is_err() {
            self.own_switch.remove_host(at);
            return None;
        }
        self.host_left(HostKey(host.key()), old);
        Some(Learnt::Moved { from, to: at })
    }

    /// Records that a host has left its place; this switch needs no message about it.
    fn host_left(&mut self, host: HostKey, old: Attachment) {
        self.cache.forget(host);
        self.shared.switches.host_left(host, old, self.own_number);
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
        self.is_beyond_cache()
    }

    #[inline]
    fn is_beyond_cache(&self) -> bool {
        !(T::IS_CACHED && self.cache.is_on()) && self.shared.table.bytes_in_use() > CACHED_BYTES
    }

    #[inline(always)]
    fn with_flows(
        &mut self,
        packet: &PacketIn<'_>,
        frame: &FrameHeader,
        now: Stamp,
    ) -> Option<HostPlace> {
        let in_port = packet.in_port();
        if T::IS_CACHED
            && self.cache.is_on()
            && let Some(to) = self.cache.with_flows(in_port, frame, now)
        {
            return Some(to);
        }
        self.shared_with_flows(in_port, frame.from(), frame.to(), now.ticks())
    }

    fn learn(&mut self, host: Hashed, at: HostPlace, to_group: bool, now: u32) -> Learnt {
        for _ in 0..MAX_TRIES {
            let Some((old, age)) = self.shared.table.lookup_age(host, now) else {
                let learnt = if self.shared.notes.has_notes() {
                    self.learn_noted(host, at, to_group, now)
                } else if self.ports_to_switches.has_switches_behind(at.port()) {
                    Some(Learnt::Elsewhere)
                } else {
                    self.learn_new(host, Attachment::new(self.own_number, at), now)
                };
                match learnt {
                    Some(learnt) => return learnt,
                    None => continue,
                }
            };
            let old = Attachment(old);
            if old.switch() == self.own_number {
                if old.place().port() == at.port() {
                    self.shared.table.touch_if(host, now, |value| value == old.0);
                    return Learnt::Known(old.place());
                }
                if self.ports_to_switches.has_switches_behind(at.port()) {
                    // Its own packet came back, or it moved to a switch that has not learnt it yet.
                    return Learnt::Elsewhere;
                }
            } else if self.passes(old.switch(), at.port(), age) {
                return Learnt::Known(self.local_place_or_default(old));
            }
            if let Some(learnt) = self.learn_move(host, old, at, now) {
                return learnt;
            }
        }
        Learnt::Elsewhere
    }

    fn find(&self, host: Hashed, now: u32) -> Destination {
        let Some((place, age)) = self.shared.table.lookup_age(host, now) else {
            return self
                .noted_place(HostKey(host.key()))
                .map_or(Destination::Nowhere, Destination::At);
        };
        let host = Attachment(place);
        if age > self.shared.max_age_s {
            return Destination::Stale(self.local_place_or_default(host));
        }
        self.local_place(host).map_or(Destination::Nowhere, Destination::At)
    }

    fn note_flows(&mut self, host: Hashed, at: HostPlace) -> bool {
        if at.has_flows() {
            return true;
        }
        let table = &self.shared.table;
        let Some((mut now_at, _)) = table.lookup_age(host, 0) else { return false };
        for _ in 0..MAX_TRIES {
            let host_at = Attachment(now_at);
            if self.local_place(host_at).is_none_or(|place| place.port() != at.port()) {
                return false;
            }
            let noted = if host_at.switch() == self.own_number {
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

    fn adopt(&mut self, ends: &FlowEnds, now: u32) -> bool {
        let Some(from_is_noted) = self.adopt_host(ends.from, now) else { return false };
        let adopted = self.adopt_host(ends.to, now).is_some();
        if !adopted && from_is_noted {
            self.own_notes.pop_back();
            self.shared.notes.withdraw(ends.from.0, self.own_number, ends.from.1);
        }
        adopted
    }

    fn forget(&mut self, host: Hashed) {
        let table = &self.shared.table;
        if let Some((old, _)) = table.lookup_age(host, 0)
            && table.remove(host, old).is_ok()
        {
            self.host_left(HostKey(host.key()), Attachment(old));
        }
    }

    fn forget_port(&mut self, port: Port) {
        self.ports_to_switches.forget(port);
        self.cache.forget_port(port);
        let GlobalHosts { shared, own_number, own_notes, .. } = self;
        own_notes.retain(|(host, at, _)| {
            let is_kept = at.port() != port;
            if !is_kept {
                shared.notes.withdraw(*host, *own_number, *at);
            }
            is_kept
        });
        if !self.own_switch.has_hosts(port) {
            return;
        }
        let GlobalHosts { shared, own_number, .. } = self;
        let is_there = |value| {
            let host = Attachment(value);
            host.switch() == *own_number && host.place().port() == port
        };
        // All of them were behind that port, so none is in the cache any more.
        shared.table.remove_where(&mut |_, value| is_there(value), &mut |key, value| {
            shared.switches.host_left(HostKey(key), Attachment(value), *own_number);
        });
    }

    /// The table of all switches keeps its size.
    #[inline]
    fn continue_resize(&mut self, steps: usize) {
        self.cache.continue_resize(steps);
    }

    /// Number of lines that this switch sweeps: all switches share the sweep.
    fn lines(&self) -> usize {
        self.shared.table.lines().div_ceil(self.shared.switches.connected().max(1))
    }

    fn age(&mut self, now: u32, mut forgotten: impl FnMut(HostKey, HostPlace)) {
        self.cache.age(now);
        if self.cleaned_s != now && self.shared.notes.has_notes() {
            self.cleaned_s = now;
            self.shared.notes.remove_old(now);
        }
        let GlobalHosts { shared, ports_to_switches, cache, own_number, own_notes, .. } = self;
        let is_old = |(_, _, since): &mut _| now.wrapping_sub(*since) > shared.max_age_s;
        for _ in 0..NOTES_AT_A_TIME {
            let Some((host, at, _)) = own_notes.pop_front_if(is_old) else { break };
            if shared.notes.withdraw(host, *own_number, at) {
                forgotten(host, at.with_flows());
            }
        }
        shared.table.age(now, shared.max_age_s, 1, &mut |key, value| {
            let (host, old) = (HostKey(key), Attachment(value));
            cache.forget(host);
            shared.switches.host_left(host, old, *own_number);
            forgotten(host, ports_to_switches.place_of(old, *own_number).unwrap_or_default());
        });
    }

    /// The app lists them: to find the hosts of one switch takes the whole table.
    fn for_each(&self, _: u32, _: &mut dyn FnMut(HostKey, HostPlace, u32) -> ControlFlow<()>) {}

    fn note_flapping(&mut self, flapping: impl Iterator<Item = HostKey>) {
        self.own_switch.note_flapping(flapping);
    }

    #[inline(always)]
    fn has_changes(&self) -> bool {
        self.own_switch.has_messages() || self.rerouted_port.is_some()
    }

    fn next_change(&mut self) -> Option<HostChange> {
        if let Some(port) = self.rerouted_port.take() {
            return Some(HostChange::Rerouted(port));
        }
        loop {
            return Some(match self.own_switch.next_message()? {
                SwitchMessage::Gone(host, old) => {
                    self.cache.forget(host);
                    HostChange::Gone(host, self.local_place_or_default(old))
                }
                SwitchMessage::Attached(host, switch, noted) => {
                    match self.ports_to_switches.to(switch) {
                        // The flows to the host show the way to its switch.
                        None => drop(self.ports_to_switches.set(switch, noted.port())),
                        Some(port) if port == noted.port() => {}
                        Some(_) => return Some(HostChange::Gone(host, noted.with_flows())),
                    }
                    continue;
                }
                SwitchMessage::Lost => {
                    self.cache.forget_all();
                    HostChange::Lost
                }
            });
        }
    }
}

impl<T: GlobalTable> Drop for GlobalHosts<T> {
    fn drop(&mut self) {
        for (host, at, _) in self.own_notes.drain(..) {
            self.shared.notes.withdraw(host, self.own_number, at);
        }
        self.own_switch.store_ports(std::mem::take(&mut self.ports_to_switches));
        self.shared.switches.disconnect(&self.own_switch);
    }
}

#[cfg(test)]
mod tests;
