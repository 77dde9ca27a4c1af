//! The hosts behind one switch: a flat table from VLAN and address to port, and the number of hosts
//! of each port. Also the interface to a host table, so that there can be another kind.

use std::ops::ControlFlow;
use std::sync::atomic::{Ordering, compiler_fence};

use bellrock_api::{PacketIn, Port, SwitchInfo};
use bellrock_tables::{Budget, FlatTable, Hashed, Insert, MAX_AGE_TICKS, Seed, Stamp};

use super::LearningSettings;
use super::earlier_flows::FlowEnds;
use super::frame::{FrameHeader, HostKey, HostPlace};

/// Maximum number of ports of a switch with hosts. Hosts behind further ports are not learnt, as if
/// those ports were at their limit. Far above real switches.
const MAX_PORTS_WITH_HOSTS: usize = 16_384;

/// Tables of at most this size together are assumed to fit a core's own cache: about twice the
/// second-level cache of current processors. Slightly above, a prefetch costs more than it saves.
pub(crate) const CACHED_BYTES: usize = 4 * 1024 * 1024;

/// A table of at most this size is in the cache soon after its switch's turn begins, so only first
/// lines are worth a prefetch.
const SMALL_TABLE_BYTES: usize = 1024 * 1024;

/// The hosts of a learning switch: in its own table, or in one table for all switches.
///
/// A [`HostPlace`] is one at this switch: the port by which it sends to a host. Times are in
/// seconds.
pub(crate) trait HostTable: Send + 'static {
    fn hash(&self, host: HostKey) -> Hashed;

    /// Starts to load the likely place of a host's entry into the cache.
    fn prefetch(&self, host: Hashed);

    /// Prefetches the other place, if the entry is not in the likely one.
    fn prefetch_rest(&self, host: Hashed);

    /// Returns whether the table is too large to be in the cache by the middle of a switch's turn.
    fn is_large(&self) -> bool;

    /// Returns whether all tables used in turn exceed the cache, so that a prefetch pays off.
    fn is_beyond_cache(&self) -> bool;

    /// Returns the destination of a packet without a tag, if both addresses are known stations with
    /// flows, behind different ports, and the source has not moved. `None` means nothing more.
    fn with_flows(
        &mut self,
        packet: &PacketIn<'_>,
        frame: &FrameHeader,
        now: Stamp,
    ) -> Option<HostPlace>;

    /// Records that a host was seen at a place. `to_group`: its packet went to a group of stations.
    fn learn(&mut self, host: Hashed, at: HostPlace, to_group: bool, now: u32) -> Learnt;

    fn find(&self, host: Hashed, now: u32) -> Destination;

    /// Records that flows to or from a host at a place are about to be installed. Returns false if
    /// the host is not there any more; then no flow may be installed.
    #[must_use]
    fn note_flows(&mut self, host: Hashed, at: HostPlace) -> bool;

    /// Returns whether a flow with these ends, left by an earlier run, may stay. If so, both hosts
    /// are recorded at their places, with flows. No other host is forgotten for it.
    fn adopt(&mut self, ends: &FlowEnds, now: u32) -> bool;

    /// Forgets a host that [`HostTable::find`] returned as stale.
    fn forget(&mut self, host: Hashed);

    /// Forgets all hosts behind a port. May read the whole table.
    fn forget_port(&mut self, port: Port);

    /// Continues a resize of this switch's own table by up to `steps` steps, if one is running. It
    /// may begin with the last new host, and look-ups cost more until it ends.
    fn continue_resize(&mut self, steps: usize);

    /// Number of calls of [`HostTable::age`] that cover this switch's part of the table.
    fn lines(&self) -> usize;

    /// Forgets the old hosts in the next line of the table, and passes each to `forgotten`.
    fn age(&mut self, now: u32, forgotten: impl FnMut(HostKey, HostPlace));

    /// Reports the hosts behind this switch with their ages, without those that are too old, until
    /// `report` breaks. Reports none if the app itself lists them ([`bellrock_api::App::hosts`]).
    fn for_each(
        &self,
        now: u32,
        report: &mut dyn FnMut(HostKey, HostPlace, u32) -> ControlFlow<()>,
    );

    /// Takes the list of all flapping hosts, every second, for a table that other switches display.
    fn note_flapping(&mut self, _: impl Iterator<Item = HostKey>) {}

    /// Returns whether another switch has changed something that flows of this switch depend on.
    #[inline(always)]
    fn has_changes(&self) -> bool {
        false
    }

    /// The next such change.
    fn next_change(&mut self) -> Option<HostChange> {
        None
    }
}

/// A change made by another switch.
pub(crate) enum HostChange {
    /// A host is no longer at a place.
    Gone(HostKey, HostPlace),
    /// Hosts that were behind a port are now behind another one.
    Rerouted(Port),
    /// More changes than could be stored.
    Lost,
}

/// The hosts behind one switch, in its own table.
pub struct SwitchHosts {
    table: FlatTable<HostPlace>,
    /// Number of hosts by port, sorted by port; only ports with hosts.
    ports: Vec<(Port, u32)>,
    max_per_port: u32,
    /// In seconds.
    max_age: u32,
}

/// Result of learning the source of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learnt {
    /// It is at the same place as before.
    Known(HostPlace),
    /// It is new; in a full table it replaced this other host.
    New(HostPlace, Option<(HostKey, HostPlace)>),
    /// It was at another place before.
    Moved { from: HostPlace, to: HostPlace },
    /// Its port is at its limit of hosts. If it came from another port, it is forgotten there.
    OverLimit { from: Option<HostPlace> },
    /// Not learnt by this switch: it is behind another one.
    Elsewhere,
    /// The memory of all tables is used up.
    NoMemory,
}

/// Place of the destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    At(HostPlace),
    /// It was there, but too long ago.
    Stale(HostPlace),
    Nowhere,
}

impl HostTable for SwitchHosts {
    #[inline]
    fn hash(&self, host: HostKey) -> Hashed {
        self.table.hash(host.0)
    }

    #[inline]
    fn prefetch(&self, host: Hashed) {
        self.table.prefetch(host);
    }

    #[inline]
    fn is_large(&self) -> bool {
        self.table.memory() > SMALL_TABLE_BYTES
    }

    #[inline]
    fn prefetch_rest(&self, host: Hashed) {
        self.table.prefetch_rest(host);
    }

    #[inline]
    fn is_beyond_cache(&self) -> bool {
        self.table.budget().used() > CACHED_BYTES
    }

    #[inline(always)]
    fn with_flows(
        &mut self,
        packet: &PacketIn<'_>,
        frame: &FrameHeader,
        now: Stamp,
    ) -> Option<HostPlace> {
        // No check for group addresses: the table has none. Reserved ports of 1.0 have no hosts.
        let to = self.find_fresh(self.hash(frame.to()), now)?;
        // Makes the second look-up load the table's fields again from the first-level cache. Kept
        // in registers for both look-ups, they would leave none for the packet.
        compiler_fence(Ordering::SeqCst);
        let from = self.table.touch_hashed(self.hash(frame.from()), now)?;
        let in_port = Port(packet.in_port_number());
        if from != HostPlace::with_flows_at(in_port) || !from.has_flows() || !to.has_flows() {
            return None;
        }
        (to != from).then_some(to)
    }

    fn learn(&mut self, host: Hashed, at: HostPlace, _: bool, now: u32) -> Learnt {
        match self.table.touch_hashed(host, Stamp::at(now)) {
            Some(known) if known.port() == at.port() => Learnt::Known(known),
            Some(from) => self.learn_move(host, from, at, now),
            None => self.learn_new(host, at, now),
        }
    }

    fn find(&self, host: Hashed, now: u32) -> Destination {
        match self.find_fresh(host, Stamp::at(now)) {
            Some(place) => Destination::At(place),
            None => self.table.lookup_hashed(host).map_or(Destination::Nowhere, Destination::Stale),
        }
    }

    #[inline]
    fn note_flows(&mut self, host: Hashed, at: HostPlace) -> bool {
        if !at.has_flows() {
            self.table.replace_hashed(host, at.with_flows());
        }
        true
    }

    fn adopt(&mut self, ends: &FlowEnds, now: u32) -> bool {
        let Some(from_is_new) = self.adopt_host(ends.from, now) else { return false };
        let adopted = self.adopt_host(ends.to, now).is_some();
        if !adopted && from_is_new {
            self.forget(self.hash(ends.from.0));
        }
        adopted
    }

    fn forget(&mut self, host: Hashed) {
        if let Some(place) = self.table.remove(host.key()) {
            self.remove_host(place);
        }
    }

    fn forget_port(&mut self, port: Port) {
        if let Ok(at) = self.slot(port) {
            self.table.remove_where(|_, place| place.port() == port, |_, _| ());
            self.ports.remove(at);
        }
    }

    fn age(&mut self, now: u32, mut forgotten: impl FnMut(HostKey, HostPlace)) {
        let SwitchHosts { table, ports, max_age, .. } = self;
        table.age(now, *max_age, 1, |key, place| {
            remove_host(ports, place);
            forgotten(HostKey(key), place);
        });
    }

    #[inline]
    fn continue_resize(&mut self, steps: usize) {
        self.table.continue_resize(steps);
    }

    fn lines(&self) -> usize {
        self.table.lines()
    }

    fn for_each(
        &self,
        now: u32,
        report: &mut dyn FnMut(HostKey, HostPlace, u32) -> ControlFlow<()>,
    ) {
        let fresh = self.table.iter_ages(now).filter(|(_, _, age)| *age <= self.max_age);
        let mut hosts = fresh.map(|(key, place, age)| (HostKey(key), place, age));
        let _stopped = hosts.try_for_each(|(host, place, age)| report(host, place, age));
    }
}

impl SwitchHosts {
    pub(super) fn new(
        settings: &LearningSettings,
        budget: &Budget,
        seed: Option<u64>,
        info: &SwitchInfo,
    ) -> Self {
        let seed = seed.map_or_else(Seed::random, |seed| Seed::from_number(seed ^ info.dpid.0));
        SwitchHosts {
            table: FlatTable::with_seed(settings.max_entries, budget, seed),
            ports: Vec::new(),
            max_per_port: match settings.max_macs_per_port {
                0 => u32::MAX,
                limit => limit,
            },
            max_age: match settings.max_age_s {
                0 => MAX_AGE_TICKS,
                age => age.min(MAX_AGE_TICKS),
            },
        }
    }

    fn learn_move(&mut self, host: Hashed, from: HostPlace, to: HostPlace, now: u32) -> Learnt {
        self.remove_host(from);
        if !self.add_host(to) {
            self.table.remove(host.key());
            return Learnt::OverLimit { from: Some(from) };
        }
        let _ = self.table.insert_hashed(host, to, now);
        Learnt::Moved { from, to }
    }

    fn learn_new(&mut self, host: Hashed, at: HostPlace, now: u32) -> Learnt {
        if !self.add_host(at) {
            return Learnt::OverLimit { from: None };
        }
        match self.table.insert_hashed(host, at, now) {
            Insert::Inserted | Insert::Updated { .. } => Learnt::New(at, None),
            Insert::Evicted { key, value } => {
                self.remove_host(value);
                Learnt::New(at, Some((HostKey(key), value)))
            }
            Insert::Refused => {
                self.remove_host(at);
                Learnt::NoMemory
            }
        }
    }

    /// Records a host at a place with flows, if it may be there. Returns whether it is new; a new
    /// host counts as just seen. `None` if it is at another place, or there is no space for it.
    fn adopt_host(&mut self, (host, at): (HostKey, HostPlace), now: u32) -> Option<bool> {
        let host = self.hash(host);
        if let Some(known) = self.table.lookup_hashed(host) {
            let is_there = known.port() == at.port();
            return (is_there && self.note_flows(host, known)).then_some(false);
        }
        if !self.add_host(at) {
            return None;
        }
        if !self.table.insert_if_room(host, at.with_flows(), now) {
            self.remove_host(at);
            return None;
        }
        Some(true)
    }

    /// The place of a host, if it was seen recently.
    #[inline(always)]
    fn find_fresh(&self, host: Hashed, now: Stamp) -> Option<HostPlace> {
        self.table.lookup_fresh_hashed(host, now, &self.max_age)
    }

    /// Counts a host at a port, if the port is below its limit.
    fn add_host(&mut self, place: HostPlace) -> bool {
        match self.slot(place.port()) {
            Ok(at) => match self.ports.get_mut(at) {
                Some((_, hosts)) if *hosts < self.max_per_port => {
                    *hosts += 1;
                    true
                }
                _ => false,
            },
            Err(_) if self.ports.len() >= MAX_PORTS_WITH_HOSTS => false,
            Err(at) => {
                self.ports.insert(at, (place.port(), 1));
                true
            }
        }
    }

    fn remove_host(&mut self, place: HostPlace) {
        remove_host(&mut self.ports, place);
    }

    fn slot(&self, port: Port) -> Result<usize, usize> {
        self.ports.binary_search_by_key(&port, |(port, _)| *port)
    }
}

fn remove_host(ports: &mut Vec<(Port, u32)>, place: HostPlace) {
    let Ok(at) = ports.binary_search_by_key(&place.port(), |(port, _)| *port) else { return };
    match ports.get_mut(at) {
        Some((_, hosts)) if *hosts > 1 => *hosts -= 1,
        _ => {
            ports.remove(at);
        }
    }
}
