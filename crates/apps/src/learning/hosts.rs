//! The hosts behind one switch: a flat table from VLAN and address to port, and how many hosts each
//! port has.

use bellrock_api::{Port, SwitchInfo};
use bellrock_tables::{Budget, FlatTable, Hashed, Insert, MAX_AGE_TICKS, Seed};

use super::LearningSettings;
use super::frame::{Frame, HostKey, Place};

/// Most ports of a switch with hosts behind them; hosts behind further ports are not learnt, as if
/// those ports were over their limit. Far above what switches have.
const MAX_PORTS_WITH_HOSTS: usize = 16_384;

/// Tables of at most so many bytes, all together, are taken to be in a core's own cache: about twice the
/// second-level cache of current processors. Slightly beyond it, to look ahead costs more than to wait.
const CACHED_BYTES: usize = 4 * 1024 * 1024;

/// A table of at most so many bytes is in the cache soon after its switch's turn has begun, so that
/// only first lines are worth looking ahead.
const SMALL_TABLE_BYTES: usize = 1024 * 1024;

pub(super) struct Hosts {
    table: FlatTable<Place>,
    /// Hosts by port, sorted; only ports that have any.
    ports: Vec<(Port, u32)>,
    max_per_port: u32,
    /// In seconds.
    max_age: u32,
}

/// What became of the source of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learnt {
    /// It is where it was.
    Known(Place),
    /// It is new; in a full table, for another that had to go.
    New(Place, Option<(HostKey, Place)>),
    /// It was elsewhere before.
    Moved { from: Place, to: Place },
    /// Its port has as many hosts as it may. If it came from another port, it is forgotten there.
    OverLimit { from: Option<Place> },
    /// The memory of all tables is used up.
    NoMemory,
}

/// What is known of the destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    At(Place),
    /// It was there, too long ago.
    Stale(Place),
    Nowhere,
}

impl Hosts {
    pub(super) fn new(
        settings: &LearningSettings,
        budget: &Budget,
        seed: Option<u64>,
        info: &SwitchInfo,
    ) -> Self {
        let seed = seed.map_or_else(Seed::random, |seed| Seed::from_number(seed ^ info.dpid.0));
        Hosts {
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

    #[inline]
    pub(super) fn hash(&self, host: HostKey) -> Hashed {
        self.table.hash(host.0)
    }

    #[inline]
    pub(super) fn prefetch(&self, host: Hashed) {
        self.table.prefetch(host);
    }

    /// Whether its own table is too large to be in the cache by the middle of its switch's turn.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.table.memory() > SMALL_TABLE_BYTES
    }

    #[inline]
    pub(super) fn prefetch_rest(&self, host: Hashed) {
        self.table.prefetch_rest(host);
    }

    /// Whether the tables of all switches, which take turns, are too large for the processor's cache,
    /// so that it pays to prefetch.
    #[inline]
    pub(super) fn are_beyond_cache(&self) -> bool {
        self.table.budget().used() > CACHED_BYTES
    }

    /// A packet without a tag came in at a port, at `now` in seconds: where it goes to, if it is from one
    /// station to another, both are known, have flows and are behind different ports, and the one is
    /// where it was. `None` says nothing.
    #[inline(always)]
    pub(super) fn with_flows(
        &mut self,
        frame: &Frame<'_>,
        in_port: Port,
        now: u32,
    ) -> Option<Place> {
        if !frame.is_between_stations() {
            return None;
        }
        let from = self.table.touch_hashed(self.hash(frame.from()), now)?;
        let to = self.find_fresh(self.hash(frame.to()), now)?;
        if from != Place::with_flows_at(in_port) || !from.has_flows() || !to.has_flows() {
            return None;
        }
        (to != from).then_some(to)
    }

    /// A host was seen at a place, at `now` in seconds.
    pub(super) fn learn(&mut self, host: Hashed, at: Place, now: u32) -> Learnt {
        match self.table.touch_hashed(host, now) {
            Some(known) if known.port() == at.port() => Learnt::Known(known),
            Some(from) => self.learn_move(host, from, at, now),
            None => self.learn_new(host, at, now),
        }
    }

    fn learn_move(&mut self, host: Hashed, from: Place, to: Place, now: u32) -> Learnt {
        self.leave(from);
        if !self.enter(to) {
            self.table.remove(host.key());
            return Learnt::OverLimit { from: Some(from) };
        }
        let _ = self.table.insert_hashed(host, to, now);
        Learnt::Moved { from, to }
    }

    fn learn_new(&mut self, host: Hashed, at: Place, now: u32) -> Learnt {
        if !self.enter(at) {
            return Learnt::OverLimit { from: None };
        }
        match self.table.insert_hashed(host, at, now) {
            Insert::Inserted | Insert::Updated { .. } => Learnt::New(at, None),
            Insert::Evicted { key, value } => {
                self.leave(value);
                Learnt::New(at, Some((HostKey(key), value)))
            }
            Insert::Refused => {
                self.leave(at);
                Learnt::NoMemory
            }
        }
    }

    pub(super) fn find(&self, host: Hashed, now: u32) -> Found {
        match self.find_fresh(host, now) {
            Some(place) => Found::At(place),
            None => self.table.lookup_hashed(host).map_or(Found::Nowhere, Found::Stale),
        }
    }

    /// Where a host is, if it was seen lately.
    #[inline(always)]
    pub(super) fn find_fresh(&self, host: Hashed, now: u32) -> Option<Place> {
        self.table.lookup_fresh_hashed(host, now, self.max_age)
    }

    /// Notes that there are flows to or from a host.
    #[inline]
    pub(super) fn note_flows(&mut self, host: Hashed, at: Place) {
        if !at.has_flows() {
            self.table.replace_hashed(host, at.with_flows());
        }
    }

    pub(super) fn forget(&mut self, host: Hashed) {
        if let Some(place) = self.table.remove(host.key()) {
            self.leave(place);
        }
    }

    /// Forgets all hosts behind a port. Reads the whole table, unless the port has no hosts.
    pub(super) fn forget_port(&mut self, port: Port) {
        if let Ok(at) = self.slot(port) {
            self.table.remove_where(|_, place| place.port() == port, |_, _| ());
            self.ports.remove(at);
        }
    }

    /// Forgets the hosts that are too old in the next line of the table, and hands each to
    /// `forgotten`.
    pub(super) fn age(&mut self, now: u32, mut forgotten: impl FnMut(HostKey, Place)) {
        let Hosts { table, ports, max_age, .. } = self;
        table.age(now, *max_age, 1, |key, place| {
            leave(ports, place);
            forgotten(HostKey(key), place);
        });
    }

    /// Lines of the table: calls of [`Hosts::age`] that see all of it.
    pub(super) fn lines(&self) -> usize {
        self.table.lines()
    }

    /// All hosts, with their ages in seconds; those left out that are too old.
    pub(super) fn iter(&self, now: u32) -> impl Iterator<Item = (HostKey, Place, u32)> {
        let max_age = self.max_age;
        let all = self.table.iter_ages(now).map(|(key, place, age)| (HostKey(key), place, age));
        all.filter(move |(_, _, age)| *age <= max_age)
    }

    /// Counts a host at a port, if the port may have one more.
    fn enter(&mut self, place: Place) -> bool {
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

    fn leave(&mut self, place: Place) {
        leave(&mut self.ports, place);
    }

    fn slot(&self, port: Port) -> Result<usize, usize> {
        self.ports.binary_search_by_key(&port, |(port, _)| *port)
    }
}

fn leave(ports: &mut Vec<(Port, u32)>, place: Place) {
    let Ok(at) = ports.binary_search_by_key(&place.port(), |(port, _)| *port) else { return };
    match ports.get_mut(at) {
        Some((_, hosts)) if *hosts > 1 => *hosts -= 1,
        _ => {
            ports.remove(at);
        }
    }
}
