//! Finds the pairs of hosts that a change affects.

use std::collections::{BTreeMap, BTreeSet};

use bellrock_api::{Dpid, HostId, SwitchPort};

use super::flows::HostPair;

/// The pairs with routes, by their hosts and by the switches of these hosts.
#[derive(Default)]
pub(super) struct RouteIndex {
    hosts: BTreeMap<HostId, OfHost>,
    /// Pairs by the switches of their source and destination.
    switches: BTreeMap<(Dpid, Dpid), BTreeSet<HostPair>>,
}

#[derive(Default)]
struct OfHost {
    place: Option<SwitchPort>,
    pairs: BTreeSet<HostPair>,
}

impl RouteIndex {
    /// Adds a pair, with the places of its hosts.
    pub(super) fn insert(&mut self, pair: HostPair, place: impl Fn(HostId) -> Option<SwitchPort>) {
        for host in [pair.from, pair.to] {
            let entry = || OfHost { place: place(host), pairs: BTreeSet::new() };
            self.hosts.entry(host).or_insert_with(entry).pairs.insert(pair);
        }
        self.join_switches(pair);
    }

    /// Removes a pair that has no route any more.
    pub(super) fn remove(&mut self, pair: HostPair) {
        self.leave_switches(pair);
        for host in [pair.from, pair.to] {
            if let Some(entry) = self.hosts.get_mut(&host) {
                entry.pairs.remove(&pair);
                if entry.pairs.is_empty() {
                    self.hosts.remove(&host);
                }
            }
        }
    }

    /// Updates the places of all hosts. Returns the pairs of hosts that have moved.
    pub(super) fn update_hosts(
        &mut self,
        place: impl Fn(HostId) -> Option<SwitchPort>,
    ) -> BTreeSet<HostPair> {
        let present = self.hosts.iter().map(|(host, entry)| (*host, entry, place(*host)));
        let moved = present.filter(|(_, entry, now)| *now != entry.place);
        let (moved, pairs): (Vec<_>, Vec<_>) =
            moved.map(|(host, entry, now)| ((host, now), entry.pairs.iter().copied())).unzip();
        let pairs: BTreeSet<HostPair> = pairs.into_iter().flatten().collect();
        pairs.iter().for_each(|pair| self.leave_switches(*pair));
        for (host, now) in moved {
            if let Some(entry) = self.hosts.get_mut(&host) {
                entry.place = now;
            }
        }
        pairs.iter().for_each(|pair| self.join_switches(*pair));
        pairs
    }

    /// The pairs between affected switches.
    pub(super) fn pairs_between(
        &self,
        affected: impl Fn(Dpid, Dpid) -> bool,
    ) -> impl Iterator<Item = HostPair> {
        let switches = self.switches.iter().filter(move |((from, to), _)| affected(*from, *to));
        switches.flat_map(|(_, pairs)| pairs.iter().copied())
    }

    fn join_switches(&mut self, pair: HostPair) {
        if let Some(switches) = self.switches_of(pair) {
            self.switches.entry(switches).or_default().insert(pair);
        }
    }

    fn leave_switches(&mut self, pair: HostPair) {
        if let Some(switches) = self.switches_of(pair)
            && let Some(pairs) = self.switches.get_mut(&switches)
        {
            pairs.remove(&pair);
            if pairs.is_empty() {
                self.switches.remove(&switches);
            }
        }
    }

    fn switches_of(&self, pair: HostPair) -> Option<(Dpid, Dpid)> {
        let at = |host: HostId| Some(self.hosts.get(&host)?.place?.dpid);
        Some((at(pair.from)?, at(pair.to)?))
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::{MacAddr, Port};

    use super::*;

    fn host(n: u8) -> HostId {
        HostId::new(MacAddr([2, 0, 0, 0, 0, n]), None)
    }

    fn pair(from: u8, to: u8) -> HostPair {
        HostPair { from: host(from), to: host(to) }
    }

    #[test]
    fn a_change_is_about_the_pairs_between_its_switches_and_those_of_hosts_that_move() {
        let at = |dpid: u64| Some(SwitchPort::new(Dpid(dpid), Port(1)));
        let mut index = RouteIndex::default();
        let before = |of: HostId| if of == host(9) { None } else { at(of.mac.0[5].into()) };
        for (from, to) in [(1, 2), (2, 1), (1, 3), (9, 1)] {
            index.insert(pair(from, to), before);
        }
        let between = |index: &RouteIndex, a, b| -> Vec<HostPair> {
            index.pairs_between(|from, to| (from, to) == (Dpid(a), Dpid(b))).collect()
        };
        assert_eq!(between(&index, 1, 2), [pair(1, 2)]);
        assert_eq!(index.update_hosts(before), BTreeSet::new());
        let after = |of: HostId| if of == host(2) { at(7) } else { at(of.mac.0[5].into()) };
        let moved = index.update_hosts(after);
        assert_eq!(moved, BTreeSet::from([pair(1, 2), pair(2, 1), pair(9, 1)]));
        assert_eq!((between(&index, 1, 2), between(&index, 1, 7)), (vec![], vec![pair(1, 2)]));
        assert_eq!(between(&index, 9, 1), [pair(9, 1)], "it is known now");
        for all in [pair(1, 2), pair(2, 1), pair(1, 3), pair(9, 1)] {
            index.remove(all);
        }
        assert!(index.hosts.is_empty() && index.switches.is_empty());
    }
}
